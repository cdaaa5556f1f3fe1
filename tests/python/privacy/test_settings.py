"""Every public setting, given what it should not be: it works, or the error is ours and names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp import (
    DPAFF,
    FPCA,
    AdditiveFunctionOnFunction,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    PublicPrior,
    coverage,
    plan,
    rmspe,
    simulate_affr,
)
from fdadp._common.argument_checks import flag, is_one_of, one_of, whole
from fdadp.datasets import simulate_cosine
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.functional.metrics import functional_r2
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.smoothing import smooth_curves
from fdadp.learners import (
    DPPCA,
    DPAdditiveHistograms,
    DPAdditiveRegressor,
    DPBoostedStumps,
    DPGaussianNB,
    DPHistogramNB,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    Numeric,
)
from fdadp.published import PublishedNoise

pytestmark = pytest.mark.filterwarnings("ignore")  # what junk warns of is not looked at here

JUNK = [None, "3", "é", 2.0, np.int64(2), np.float64(2.5), True, float("nan"), float("inf"), [], {}, -1, 0, pd.NA]
JUNK += [np.array([1.0, 2.0]), object()]

COHORT = simulate_affr(scenario=1, n=40, seed=3, n_points=15)
X, Y = (c.data_matrix[..., 0] for c in (COHORT.X, COHORT.Y))
GRID = np.linspace(0, 1, 15)
SMALL: dict[str, Any] = {"n_basis_x": 5, "n_basis_s": 5, "n_components": 2, "progress": False}
PRIVATE: dict[str, Any] = {
    "epsilon": 50.0,
    "n": 40,
    "random_state": 0,
}
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
SUMMARY: dict[str, Any] = {"privacy": Privacy(**PRIVATE), "bounds": (-8, 8), "prior": None, "allow_useless": False}


def fitted() -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(**SMALL).fit(X, Y)


def private(**settings: Any) -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(privacy=Privacy(**{**PRIVATE, **settings}), bounds=BOUNDS, progress=False)


def names(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def settings_of(make: Callable[..., Any], of: Callable[..., Any], **base: Any) -> Iterator[Any]:
    """One case for each parameter of a function: what is called with junk in its place."""
    for name in names(of):
        yield pytest.param(name, lambda junk, name=name: make(**{**base, name: junk}), id=f"{of.__qualname__}-{name}")


def arguments(make: Callable[..., Any], label: str, **base: Any) -> Iterator[Any]:
    """One case for each of the arguments that are given."""
    for name in base:
        yield pytest.param(name, lambda junk, name=name: make(**{**base, name: junk}), id=f"{label}-{name}")


MODEL = fitted()
COMPONENTS = FPCA(n_components=2).fit(Y)
CASES = [
    *settings_of(lambda **k: AdditiveFunctionOnFunction(**k).fit(X, Y), AdditiveFunctionOnFunction.__init__, **SMALL),
    *arguments(lambda **k: AdditiveFunctionOnFunction(**SMALL).fit(**k), "fit", X=X, Y=Y, s=GRID, t=GRID, groups=None),
    *arguments(
        lambda **k: AdditiveFunctionOnFunction(**SMALL).fit_chunks(**k), "fit_chunks", chunks=[(X, Y)], x_range=None
    ),
    *arguments(MODEL.predict, "predict", X=X, s=None, t=None),
    *arguments(MODEL.predict_interval, "predict_interval", X=X, level=0.9),
    *arguments(MODEL.surface, "surface", x=[0.0], s=[0.5], t=[0.5]),
    *arguments(MODEL.score, "score", X=X, Y=Y),
    *settings_of(lambda **k: Privacy(**k), Privacy.__init__, **PRIVATE),
    *settings_of(lambda **k: DPAFF(**k), DPAFF.__init__),
    *settings_of(lambda **k: PublishedNoise(**k), PublishedNoise.__init__),
    *arguments(lambda **k: private().set_params(**k).fit(X, Y), "private", bounds=BOUNDS, mechanism="dp-aff"),
    pytest.param("X", lambda junk: private().set_params(bounds={**BOUNDS, "X": junk}).fit(X, Y), id="bounds of X"),
    *arguments(lambda **k: private().fit(**k), "private", X=X, Y=Y, s=GRID, t=GRID, groups=None),
    *arguments(lambda **k: private().fit_chunks(**k), "private chunks", chunks=[(X, Y)], s=GRID, t=GRID),
    *arguments(lambda **k: private().plan(**k), "model.plan", s=15, t=15, n=40),
    *settings_of(lambda **k: PublicPrior(**k).design(GRID, GRID), PublicPrior.__init__),
    *arguments(lambda **k: PrivateMean(**k).fit(Y), "PrivateMean", **SUMMARY),
    *arguments(
        lambda **k: PrivateMean(**SUMMARY).fit(**k),
        "PrivateMean.fit",
        Y=Y,
        t=GRID,
        groups=None,
    ),
    *arguments(
        lambda **k: PrivateFPCA(**k).fit(Y), "PrivateFPCA", n_components=2, privacy=Privacy(**PRIVATE), bounds=(-8, 8)
    ),
    *arguments(lambda Y, t: COMPONENTS.transform(Y, t=t), "transform", Y=Y, t=GRID),
    *arguments(COMPONENTS.inverse_transform, "inverse_transform", scores=np.zeros((1, 2))),
    *arguments(smooth_curves, "smooth_curves", values=Y, grid=None, new_grid=None, n_basis=None, criterion="reml"),
    *arguments(quadrature_weights, "quadrature_weights", grid=GRID, rule="simpson"),
    *arguments(rmspe, "rmspe", Y=Y, Y_hat=Y),
    *arguments(functional_r2, "functional_r2", Y=Y, Y_hat=Y, t=None),
    *arguments(coverage, "coverage", Y=Y, lower=Y, upper=Y),
    *arguments(plan, "plan", n=1000, epsilon=1.0, delta=None, accuracy=None, adjacency=None, prior=None),
    *settings_of(simulate_affr, simulate_affr, scenario=1, n=5, seed=0, n_points=11),
    *settings_of(simulate_cosine, simulate_cosine, n=5, seed=0),
]
for _method in ("face", "dense", "sc", "ssvd"):
    CASES += settings_of(lambda **k: FPCA(**k).fit(Y).transform(Y), FPCA.__init__, n_components=2, method=_method)


ROWS = np.random.default_rng(0).uniform(-1, 1, size=(60, 3))
SIGNS = (ROWS[:, 0] > 0).astype(int)
COMMON: dict[str, Any] = {"epsilon": 5.0, "n": 60, "random_state": 0}
LEARNERS: dict[Any, tuple[dict[str, Any], Any]] = {
    DPGaussianNB: ({"classes": [0, 1], "bounds": (-1, 1)}, SIGNS),
    DPHistogramNB: ({"classes": [0, 1], "features": [Numeric(-1, 1, edges=4)] * 3}, SIGNS),
    DPLogisticRegression: ({"classes": [0, 1], "data_norm": 2.0, "delta": 1e-4}, SIGNS),
    DPLinearRegression: ({"bounds": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-4}, ROWS[:, 1]),
    DPKMeans: ({"n_clusters": 2, "bounds": (-1, 1)}, None),
    DPPCA: ({"n_components": 2, "data_norm": 2.0, "delta": 1e-4}, None),
    DPBoostedStumps: ({"classes": [0, 1], "features": [Numeric(-1, 1, edges=4)] * 3, "n_rounds": 2}, SIGNS),
    DPAdditiveHistograms: ({"classes": [0, 1], "features": [Numeric(-1, 1, edges=4)] * 3, "n_passes": 1}, SIGNS),
    DPAdditiveRegressor: ({"features": [Numeric(-1, 1, edges=4)] * 3, "bounds_y": (-1, 1), "n_passes": 1}, ROWS[:, 1]),
}
for _learner, (_own, _target) in LEARNERS.items():
    _base = {**COMMON, **_own}
    _data = {"X": ROWS} if _target is None else {"X": ROWS, "y": _target}
    CASES += settings_of(lambda c=_learner, d=_data, **k: c(**k).fit(**d), _learner.__init__, **_base)
    CASES += arguments(
        lambda c=_learner, b=_base, **k: c(**b).fit(**k), f"{_learner.__name__}.fit", **_data, groups=None
    )


@pytest.mark.parametrize(("name", "call"), CASES)
def test_junk_works_or_is_refused_by_name(name: str, call: Callable[[Any], Any]) -> None:
    for junk in JUNK:
        try:
            call(junk)
        except FdadpError as exc:
            assert name.lower() in str(exc).lower(), f"{name}={junk!r}: {exc}"


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16])
def test_numpys_integers_are_counts(kind: Any) -> None:
    one = AdditiveFunctionOnFunction(
        n_basis_x=kind(5),
        n_basis_s=kind(5),
        n_components=kind(2),
        degree=kind(3),
        penalty_order=kind(2),
        progress=False,
    )
    np.testing.assert_array_equal(one.fit(X, Y).coef_, MODEL.coef_)
    counts = FPCA(n_components=kind(2), max_components=kind(3), n_knots=kind(5), n_basis=kind(10)).fit(Y)
    assert counts.n_components_ == 2
    assert private(n=kind(40), epsilon=np.float32(50.0), random_state=kind(0)).fit(X, Y).n_curves_ == 40
    assert len(simulate_affr(scenario=1, n=kind(5), seed=kind(0)).X) == 5
    np.testing.assert_array_equal(smooth_curves(Y, n_basis=kind(8)), smooth_curves(Y, n_basis=8))


def test_the_checks_themselves() -> None:
    assert whole(np.int8(3), "k") == 3 and type(whole(np.int8(3), "k")) is int
    for bad in (2.0, True, np.True_, "2", None, pd.NA, np.array([2]), 0, 7):
        with pytest.raises(InputError, match="k must be a whole number from 1 to 6, got"):
            whole(bad, "k", most=6)
    assert flag(np.True_, "shrink") is True
    for bad in (1, "yes", None, pd.NA):
        with pytest.raises(InputError, match="shrink must be True or False, got"):
            flag(bad, "shrink")
    for bad in (pd.NA, np.array(["a", "b"]), [], None, "b"):
        with pytest.raises(InputError, match="rule must be one of 'a', got"):
            one_of(bad, "rule", ("a",))
    assert is_one_of(None, (None, "a"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 1e200}, "epsilon must be at most 1e.15, got 1e.200"),
        ({"epsilon": 10**400}, "epsilon must be at most 1e.15, got inf"),
        ({"epsilon": 1.0, "n": 10**400}, "n must be at most 1e.15 persons, got inf"),
    ],
)
def test_numbers_that_no_float_holds_are_refused_where_they_are_given(settings: dict[str, Any], message: str) -> None:
    """They ended in OverflowError in the middle of a fit."""
    with pytest.raises(PrivacyError, match=message):
        Privacy(**settings)
