"""Owners who are told totals that nobody released, and owners without rows: what they answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from federation_tools import CURVES, GRIDS, D, contract

from fdadp.federated import federated_models, fit_together
from fdadp.federated.owners.one_process import owners_of
from fdadp.federated.owners.signed_messages import MessageKind, Ready, Refusal, RefusedMessage, SignedMessage
from fdadp.privacy.noise.distributed import NextRound

TABLE = {"epsilon": 1.0, "delta": 1e-6, "n_features": D}
BOUNDS = [[-1.0] * D, [1.0] * D]
TERMS = {
    "pca": TABLE | {"n_components": 1, "data_norm": 3.0},
    "linear": TABLE | {"n": 600, "bounds": BOUNDS, "bounds_y": [-1.0, 1.0]},
    "gaussian-naive-bayes": TABLE | {"n": 600, "bounds": BOUNDS, "classes": [0, 1]},
    "kmeans": TABLE | {"n": 600, "n_clusters": 2, "bounds": BOUNDS},
    "regression": CURVES | GRIDS | {"n": 600, "mechanism": "moments", "allow_useless": True},
}


def chosen(terms, rng, count):
    """Lists of totals as somebody may make them up: zeros, small, huge, all of one value."""
    totals = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(count):
            try:
                waits = federated_models.fit(terms, None, totals)
            except Exception:
                return totals
            if not isinstance(waits, NextRound):
                return totals
            top = int(rng.choice([1, 1000, 2**40, 2**62]))
            made = rng.integers(-top, top, waits.size) if rng.uniform() < 0.7 else np.full(waits.size, top)
            totals.append(made.astype(np.int64))
    return totals


def answered(owner, totals):
    """What an owner says that has added up these totals."""
    state = {"rows": bytes(32), "name": bytes(16)}
    return SignedMessage.from_bytes(owner._next_release(state, bytes(32), bytes(32), totals))


def data_of(model, rng, n):
    if model == "regression":
        return rng.uniform(0, 1, (n, 4)), rng.uniform(0, 1, (n, 3))
    X = rng.normal(size=(n, D))
    y = {"linear": rng.normal(size=n), "gaussian-naive-bayes": rng.integers(0, 2, n)}.get(model)
    return (X,) if y is None else (X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", TERMS)
@pytest.mark.parametrize("runs", [pytest.param(8, id="some"), pytest.param(150, id="many", marks=pytest.mark.long)])
def test_any_totals_get_an_answer(model, runs):
    terms = contract(model=model, settings=TERMS[model])
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(runs):
        totals = chosen(terms, rng, int(rng.integers(1, 12)))
        owner = owners_of(terms, [data_of(model, rng, 20)] * 3)[0]
        try:
            kinds.add(answered(owner, totals).kind)
        except RefusedMessage as exc:
            assert exc.code == Refusal.MODEL and owner._state is None
            kinds.add(MessageKind.REFUSAL)
    assert kinds <= {MessageKind.READY, MessageKind.DONE, MessageKind.REFUSAL} and len(kinds) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", TERMS)
def test_an_owner_without_rows_answers_as_others_do(model):
    """The same kind and size of message; the run goes through, and the others' rows count."""
    terms = contract(model=model, settings=TERMS[model])
    rng = np.random.default_rng(0)
    some, none = (answered(owners_of(terms, [data_of(model, rng, n)] * 3)[0], []) for n in (20, 0))
    assert none.kind == some.kind == MessageKind.READY
    said = [Ready.from_bytes(one.body) for one in (some, none)]
    assert len({(one.size, one.width, one.sd, one.arrays) for one in said}) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_run_with_an_owner_without_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, D)) * [1.5, 0.1, 0.1]
    model = fit_together(contract(3), [(X[:400],), (X[:0],), (X[400:],)])
    assert abs(model.components_[0, 0]) > 0.9
