"""Private components of persons and of their curves: right, replayed, and of persons only."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from neighbour_tools import change, on_tape
from private_settings import summary_settings

from fdadp import MultilevelFPCA, Privacy
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.errors import ClippingWarning, InputError, PrivacyError
from fdadp.privacy import Budget
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.summaries import PrivateMultilevelFPCA

T = 40
t = np.linspace(0, 1, T)
BETWEEN = np.stack([np.ones(T), np.sqrt(2) * np.sin(2 * np.pi * t)])
WITHIN = np.stack([np.sqrt(2) * np.cos(np.pi * t), np.sqrt(2) * np.cos(2 * np.pi * t)])
OF_PERSONS, OF_ROWS = np.array([1.0, 0.5]), np.array([0.6, 0.3])
ICC = OF_PERSONS.sum() / (OF_PERSONS.sum() + OF_ROWS.sum())


def sample(persons=3000, seed=0, most=7, law="normal"):
    """Curves of persons with one to seven rows each, and whose they are."""
    rng = np.random.default_rng(seed)
    draw = rng.standard_normal if law == "normal" else (lambda size: rng.standard_t(4, size) / np.sqrt(2))
    ids = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    Y = np.sin(np.pi * t) + ((draw((persons, 2)) * np.sqrt(OF_PERSONS)) @ BETWEEN)[ids]
    Y += (draw((len(ids), 2)) * np.sqrt(OF_ROWS)) @ WITHIN + 0.3 * rng.normal(size=(len(ids), T))
    return Y, ids


def settings(**more):
    given = {"epsilon": 1.0, "delta": 1e-6, "n": 3000, "random_state": 0, "bounds": (-8, 8), "max_rows": 7}
    return summary_settings(**(given | more))


def captured(model, level, truth, values):
    """Share of a level's variance that its first two components hold."""
    K = (truth.T * values) @ truth / T
    functions = model.eigenfunctions_[level][:2]
    Q = np.linalg.qr((functions * np.sqrt(model.weights_)).T)[0]
    half = np.sqrt(model.weights_ / model.weights_.sum() * T)
    return np.trace(Q.T @ (K * np.outer(half, half)) @ Q) / np.trace(K * np.outer(half, half))


@pytest.mark.parametrize("delta", [1e-6, None])
def test_both_levels_are_found(delta):
    Y, ids = sample()
    model = PrivateMultilevelFPCA(n_components=2, **settings(delta=delta)).fit(Y, groups=ids)
    assert captured(model, "person", BETWEEN, OF_PERSONS) > 0.97
    assert captured(model, "row", WITHIN, OF_ROWS) > 0.97
    low, high = model.icc_interval()
    assert low < ICC < high and abs(model.icc_ - ICC) < 0.05
    assert np.abs(model.row_shares_ - 1 / 7).max() < (0.05 if delta else 0.1)  # noise of 0.008 and of 0.024
    assert abs(model.noise_variance_ - 0.09) < 0.02
    exact = MultilevelFPCA(n_components=2, k=12).fit(Y, groups=ids)
    for level in ("person", "row"):
        ratio = model.eigenvalues_[level] / exact.eigenvalues_[level]
        assert (np.abs(ratio - 1) < 0.25).all()
    scores, rows = model.transform(Y[:50], groups=ids[:50])
    theirs, _ = exact.transform(Y[:50], groups=ids[:50])
    assert scores.shape == theirs.shape and rows.shape == (50, 2)
    assert abs(np.corrcoef(scores.iloc[:, 0], theirs.iloc[:, 0])[0, 1]) > 0.95


def test_heavy_tails_of_either_level_are_said(tmp_path):
    """Every seventh person eight times as large: most of a level's variance lies beyond the clip, and it is named."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(1000), 3)
    far = np.where(rng.random(1000) < 0.15, 8.0, 1.0)
    own, row = rng.normal(size=(1000, 1)), rng.normal(size=(ids.size, 1)) * np.cos(np.pi * t)
    how = settings(n=1000, bounds=(-60, 60), max_rows=3)
    for level in ("person", "row"):
        size = {"person": 1.0, "row": 1.0} | {level: far[ids][:, None]}
        Y = own[ids] * size["person"] + row * size["row"] + np.zeros(T)
        with pytest.warns(ClippingWarning, match=f"level '{level}'"):
            model = PrivateMultilevelFPCA(**how).fit(Y, groups=ids)
        assert model.variance_beyond_clip_[level] > 0.5
    loaded = PrivateMultilevelFPCA.load(model.save(tmp_path / "m"))
    assert loaded.variance_beyond_clip_ == model.variance_beyond_clip_
    Y, ids = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClippingWarning)
        quiet = PrivateMultilevelFPCA(**settings()).fit(Y, groups=ids)
    assert max(quiet.variance_beyond_clip_.values()) < 0.2


@pytest.mark.statistics
@pytest.mark.parametrize("law", ["normal", "heavy"])
def test_the_interval_of_the_icc_holds(law):
    held = []
    for seed in range(60):
        Y, ids = sample(2000, seed, law=law)
        low, high = PrivateMultilevelFPCA(**settings(n=2000, random_state=seed)).fit(Y, groups=ids).icc_interval()
        held.append(low <= ICC <= high)
    assert np.mean(held) > 0.86


def test_orders_chunks_and_containers_change_no_bit():
    Y, ids = sample(60)
    model = PrivateMultilevelFPCA(**settings(n=60, epsilon=50.0, max_rows=3))

    def fit(data):
        Y, ids = data
        PrivateMultilevelFPCA(**model.get_params(deep=False)).fit(Y, groups=ids)

    def in_chunks(data):
        Y, ids = data
        source = [(Y[i : i + 17], ids[i : i + 17]) for i in range(0, len(Y), 17)]
        PrivateMultilevelFPCA(**model.get_params(deep=False)).fit_chunks(source, t=t, groups=True)

    wanted = [entry.exact for entry in on_tape(fit, (Y, ids))]
    order = np.random.default_rng(0).permutation(len(Y))
    texts = np.array([f"p{i}" for i in ids], dtype=object)
    for how, data in (
        (fit, (Y[order], ids[order])),
        (fit, (np.asfortranarray(Y), texts)),
        (in_chunks, (Y, ids)),
        (in_chunks, (Y[order], ids[order])),
    ):
        assert [entry.exact for entry in on_tape(how, data)] == wanted


NASTY = {"high": np.full(T, 1e9), "missing": np.full(T, np.nan), "text": np.array(["?"] * T, dtype=object)}
VARIANTS = {"zero-out": {}, "replace": {"adjacency": "replace"}, "add-remove": {"n": None}, "pure": {"delta": None}}


def neighbours(kinds=tuple(NASTY), variants=tuple(VARIANTS)):
    for number, (kind, variant) in enumerate(itertools.product(kinds, variants)):
        rng = np.random.default_rng(number)
        Y, ids = sample(40, number)
        Y, ids = Y.astype(object), ids.astype(object)
        rows = ids == ids[len(ids) // 2]
        Y[rows] = NASTY[kind] * np.where(rng.random((rows.sum(), 1)) < 0.5, 1, -1) if kind == "high" else NASTY[kind]
        second = Y.copy(), ids
        if variant == "replace":
            second[0][rows] = 0.0
        elif variant == "add-remove":
            second = Y[~rows], ids[~rows]
        else:
            second[0][rows] = np.nan
        how = settings(**({"n": 40, "epsilon": 8.0, "max_rows": 4, "allow_useless": True} | VARIANTS[variant]))

        def run(data, noise, how=how):
            model = PrivateMultilevelFPCA(**how)
            model._check_groups(data[1])
            model._fit(data[0], t, data[1], noise)
            return {"attributes": vars(model), "texts": [str(model.ledger_), model.summary().as_text()]}

        yield Neighbours(f"{kind}, {variant}", run, (Y, ids), second, Budget(8.0, how["privacy"].delta).total)


def test_fits_cost_at_most_their_budget_and_show_nothing_else():
    result = replay_audit(neighbours(), seed=3)
    assert result.passed, str(result)
    assert 0.9 < result.changes.max() <= 1 and result.finished == 12


def test_the_audit_notices_a_kernel_that_clips_rows_and_not_persons(monkeypatch):
    """Each row within the clip, a person of four rows adds up to four of them."""
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *args: right(self, *args) / 4)  # of four rows in one
    assert not replay_audit(neighbours(("high",), ("zero-out",)), seed=1).passed


def test_a_person_with_many_rows_moves_no_sum_by_more_than_its_sensitivity():
    Y, ids = sample(40)
    other = Y.copy()
    other[ids == 5] = 7.0

    def fit(data):
        how = settings(n=40, epsilon=8.0, adjacency="replace", allow_useless=True, max_rows=2)
        PrivateMultilevelFPCA(**how).fit(data, groups=ids)

    assert 0 < change(fit, Y, other) <= 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_rows": None}, "max_rows must be given"),
        ({"max_rows": 0}, "max_rows must be given"),
        ({"max_rows": 1}, "max_rows must be at least 2"),
        ({"n_components": -1}, "n_components"),
        ({"bounds": None}, "bounds"),
        ({"levels": ("a", "a")}, "levels must be two names"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(given, says):
    Y, ids = sample(40)
    budget = Budget(1.0, 1e-6)
    model = PrivateMultilevelFPCA(**settings(n=40, budget=budget, allow_useless=True, **given))
    with pytest.raises((InputError, PrivacyError), match=says):
        model.fit(Y, groups=ids)
    with pytest.raises(InputError, match="groups must say of each row whose it is"):
        PrivateMultilevelFPCA(**settings(n=40, budget=budget)).fit(Y)
    assert budget.spent == budget.reserved == 0


def test_saved_and_loaded_and_nothing_of_a_person_is_in_the_file(tmp_path):
    Y, ids = sample(300)
    Y[ids == 7] = 3.14159265
    model = PrivateMultilevelFPCA(n_components=(2, 1), **settings(n=300, allow_useless=True)).fit(Y, groups=ids)
    path = model.save(tmp_path / "levels.npz")
    again = PrivateMultilevelFPCA.load(path)
    assert again.icc_interval() == model.icc_interval() and again.summary().as_text() == model.summary().as_text()
    for level in ("person", "row"):
        np.testing.assert_array_equal(again.eigenfunctions_[level], model.eigenfunctions_[level])
    np.testing.assert_array_equal(again.row_shares_, model.row_shares_)
    with np.load(path) as file:
        numbers = [a.ravel() for a in file.values() if a.dtype.kind == "f"]
    assert not np.isclose(np.concatenate(numbers), 3.14159265).any()
    assert "ICC" in model.summary().as_text() and "person" in model.summary().as_text()
    model.plot()


def test_the_ledger_says_how_persons_count():
    Y, ids = sample(300)
    ledger = PrivateMultilevelFPCA(**settings(n=300, allow_useless=True)).fit(Y, groups=ids).ledger_
    assert "each person counts once, by all of its rows together, at most 7" in str(ledger)
    assert {r.name for r in ledger.releases} >= {"curves a person", "covariance", "covariance within persons", "mean"}
    budget = Privacy(1.0, 1e-6, n=300)
    assert sum(r.share for r in ledger.releases) == pytest.approx(1.0) and budget.epsilon == ledger.epsilon
