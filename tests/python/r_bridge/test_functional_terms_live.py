"""lf, af, sff and ffpc beside mgcv itself on fresh data: other sizes, orders, rules and grids than were recorded."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from refund_cases import far, one

from fdadp import FPCA, FunctionalRegression, ScalarRegression, terms
from fdadp.functional.quadrature import quadrature_weights
from r_bridge.gam_by_formula import fit_gam

pytestmark = pytest.mark.mgcv

EVEN, UNEVEN = np.linspace(-1, 3, 31), np.linspace(0, 2, 24) ** 1.4
MEAN = 's(t, bs = "ps", k = 20, m = c(2, 1))'


def curves(n, s, seed):
    rng = np.random.default_rng(seed)
    u = (s - s[0]) / (s[-1] - s[0])
    waves = np.stack([np.ones(s.size), *(wave(k * np.pi * u) for k in (1, 2, 3) for wave in (np.sin, np.cos))])
    return rng.normal(size=(n, 7)) @ waves + 0.1 * rng.normal(size=(n, s.size)), u


def legacy(s):
    """Refund's weights of lf and af, on uneven grids too."""
    return np.concatenate(([1], np.resize([4, 2], s.size - 2), [1])) * (s[-1] - s[0]) / s.size / 3


def differences(make, data, grids, theirs, new, sp=None):
    same = make(smoothing=theirs["sp"] if sp is None else sp).fit(data, grids=grids)
    own = make(smoothing="reml").fit(data, grids=grids)
    return {
        "fitted": far(same.fitted_values_, theirs["fitted"]),
        "edf": abs(same.edf_ / one(theirs["edf_total"]) - 1),
        "sigma2": abs(same.sigma2_ / one(theirs["sig2"]) - 1),
        "predicted": far(same.predict(new), theirs["predicted"]),
        "se": far(same.predict_se(new, kind="iid"), theirs["predicted_se"]),
        "above": max(own.criterion_ - same.criterion_, 0) / (1 + abs(same.criterion_)),
    }


SCALAR = {
    "lf": ('s(S, by = L * X, bs = "ps", k = 14, m = c(2, 2))', terms.lf, {"k": 14}),
    "lf quadratic": ('s(S, by = L * X, bs = "ps", k = 9, m = c(1, 1))', terms.lf, {"k": 9, "m": (1, 1)}),
    "af": ('te(S, X, by = L, bs = "ps", k = c(6, 5), m = list(c(2, 2), c(2, 2)))', terms.af, {"k": (6, 5)}),
    "af first": (
        'te(S, X, by = L, bs = "ps", k = c(5, 7), m = list(c(2, 1), c(2, 1)))',
        terms.af,
        {"k": (5, 7), "m": (2, 1)},
    ),
}


@pytest.mark.filterwarnings("ignore:.*lie outside the training range")
@pytest.mark.parametrize("rule", ["trapezoid", "simpson_legacy"])
@pytest.mark.parametrize("s", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("kind", SCALAR)
def test_scalar_responses(kind, s, rule):
    n = 90
    x, u = curves(n + 12, s, 0)
    weights = quadrature_weights(s) if rule == "trapezoid" else legacy(s)
    y = (np.sin(x) * np.cos(2 * u)) @ weights + 0.2 * np.random.default_rng(1).normal(size=n + 12)
    formula, term, settings = SCALAR[kind]
    wide = {"X": x, "S": np.tile(s, (n + 12, 1)), "L": np.tile(weights, (n + 12, 1))}
    wide["LX"] = wide["L"] * x
    formula = formula.replace("L * X", "LX")
    theirs = fit_gam(
        f"y ~ {formula}", {"y": y[:n], **{k: v[:n] for k, v in wide.items()}}, {k: v[n:] for k, v in wide.items()}
    )
    make = partial(ScalarRegression, [term("X", rule=rule, **settings)])
    found = differences(make, {"X": x[:n], "y": y[:n]}, {"X": s}, theirs, {"X": x[n:]})
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-9, found


def long_form(x, s, t, weights):
    """Rows of mgcv's matrix arguments, t fastest."""
    n = len(x)
    many = {"X": np.repeat(x, t.size, axis=0), "S": np.tile(s, (n * t.size, 1)), "L": np.tile(weights, (n * t.size, 1))}
    return many | {"t": np.tile(t, n), "T": np.tile(t, n)[:, None] * np.ones(s.size)}


@pytest.mark.filterwarnings("ignore:.*lie outside the training range")
@pytest.mark.parametrize(("k", "s"), [((5, 5, 5), EVEN), ((4, 6, 5), UNEVEN)], ids=["even", "uneven"])
def test_surfaces_of_curves(k, s):
    """At given smoothing parameters: mgcv's search takes a minute."""
    n, t, sp = 40, np.linspace(0, 1, 21), [50.0, 0.3, 2.0, 0.01]
    x, u = curves(n + 6, s, 2)
    weights = quadrature_weights(s)
    y = np.einsum("ns,s,t->nt", np.sin(x) * np.cos(2 * u), weights, 1 + t)
    y += np.cos(3 * t) + 0.2 * np.random.default_rng(3).normal(size=y.shape)
    formula = f'y ~ {MEAN} + te(T, S, X, by = L, bs = "ps", k = c{k}, m = list(c(2, 2), c(2, 2), c(2, 2)))'
    theirs = fit_gam(
        formula, {"y": y[:n].ravel(), **long_form(x[:n], s, t, weights)}, long_form(x[n:], s, t, weights), sp=sp
    )
    make = partial(FunctionalRegression, [terms.sff("X", k=k)])
    found = differences(make, {"X": x[:n], "Y": y[:n]}, {"X": s, "Y": t}, theirs, {"X": x[n:]}, sp)
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-9, found


def test_scores_of_components():
    """One smoothing parameter for all: mgcv's ``id``."""
    n, t = 50, np.linspace(0, 1, 21)
    x, _ = curves(n + 6, EVEN, 4)
    fpca = FPCA(n_components=3, method="dense").fit(x[:n], t=EVEN)
    scores = fpca.transform(x)
    y = scores @ np.stack([np.sin(2 * t), t, np.cos(4 * t)]) + 0.3 * np.random.default_rng(5).normal(size=(n + 6, 21))
    rows = {f"p{j}": np.repeat(scores[:, j], t.size) for j in range(3)} | {"t": np.tile(t, n + 6)}
    smooths = " + ".join(f's(t, by = p{j}, bs = "ps", k = 8, m = c(2, 1), id = 1)' for j in range(3))
    cut = n * t.size
    theirs = fit_gam(
        f"y ~ {MEAN} + {smooths}",
        {"y": y[:n].ravel(), **{name: v[:cut] for name, v in rows.items()}},
        {name: v[cut:] for name, v in rows.items()},
    )
    make = partial(FunctionalRegression, [terms.ffpc("X", n_components=3, method="dense")], k="refund")
    found = differences(make, {"X": x[:n], "Y": y[:n]}, {"X": EVEN, "Y": t}, theirs, {"X": x[n:]})
    assert found.pop("above") <= 1e-6
    assert max(found.values()) <= 1e-9, found
