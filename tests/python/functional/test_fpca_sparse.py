"""FPCA of incomplete curves: against the recorded fpca.sc, and by properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.stats import multivariate_normal

from fdadp.errors import InputError, NoiseVarianceWarning
from fdadp.functional.fpca import FPCA, sc_eigenbasis
from fdadp.functional.fpca.sparse import (
    gcv_fit,
    raw_covariance,
    smooth_covariance,
    smooth_mean,
)
from fdadp.functional.splines.mgcv_bases import CubicSplines, ThinPlate
from r_bridge.difference_report import relative
from r_bridge.fpca_beside_refund import sc_differences

CASES = ["fpca_dti", "fpca_dti_missing", "fpca_canadian"]


def read(reference: Any, case: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    given = reference(case)
    names = ("sc_Y", "sc_argvals") if "sc_Y" in given["input"] else ("Y", "argvals")
    return given["input"][names[0]], given["input"][names[1]], given["output"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("which", [0, 1])
def test_refund_given_its_mean_and_smoothing_parameter(reference: Any, case: str, which: int) -> None:
    Y, t, output = read(reference, case)
    recorded, sp = output["sc"][which], float(output["sc_internals"]["cov"]["sp"][0])
    share = float(recorded["pve_asked"][0])
    basis = sc_eigenbasis(Y, t, n_components=share, mean=recorded["mu"], smoothing=sp, noise="diagonal")
    assert basis.n_components == int(recorded["npc"][0])
    assert max(sc_differences(basis, Y, recorded).values()) < 2e-12


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("which", [0, 1])
def test_refund_with_our_own_searches(reference: Any, case: str, which: int) -> None:
    # The optima are flat, and mgcv stops a little before: its edf differ by 0.01 of 99 and 0.008 of 10.
    Y, t, output = read(reference, case)
    recorded = output["sc"][which]
    basis = sc_eigenbasis(Y, t, n_components=float(recorded["pve_asked"][0]), noise="diagonal")
    assert basis.n_components == int(recorded["npc"][0])
    got = sc_differences(basis, Y, recorded)
    assert max(got[k] for k in ("functions", "scores", "curves")) < 1e-3
    assert got["eigenvalues"] < 1e-5 and got["explained share"] < 2e-5
    assert max(got["noise variance"], got["variance of curves"]) < 3e-3


@pytest.mark.parametrize("case", CASES)
def test_mean_smoother_is_the_recorded_thin_plate_spline(reference: Any, case: str) -> None:
    Y, t, output = read(reference, case)
    recorded, mu = output["sc_internals"]["mean"], output["sc"][0]["mu"]
    splines = ThinPlate.of(t, 10)
    design, penalty = splines.design(t), splines.penalty
    q = np.linalg.qr(design)[0]
    assert relative(q @ (q.T @ recorded["design"]), recorded["design"]) < 1e-11  # the same space
    ours, fit = smooth_mean(Y, t)
    assert fit.score <= recorded["score"][0] * (1 + 1e-6)
    assert relative(ours, mu) < 3e-4
    # The same penalty: at mgcv's edf the fit is mgcv's.
    seen = ~np.isnan(Y)
    level = Y[seen].mean()
    filled = np.where(seen, Y - level, 0.0)
    gram, rhs = (design.T * seen.sum(axis=0)) @ design, design.T @ filled.sum(axis=0)

    def at(log_smoothing: float) -> Any:
        return gcv_fit(gram, penalty, rhs, (filled**2).sum(), int(seen.sum()), float(np.exp(log_smoothing)))

    own = np.log(fit.smoothing)
    root = brentq(lambda x: at(x).edf - recorded["edf_total"][0], own - 5, own + 5, xtol=1e-13, rtol=1e-14)
    assert relative(level + design @ at(root).coefficients, mu) < 1e-9
    assert at(root).score == pytest.approx(recorded["score"][0], rel=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_covariance_smoother(reference: Any, case: str) -> None:
    Y, t, output = read(reference, case)
    recorded = output["sc_internals"]
    raw, count = raw_covariance(Y - output["sc"][0]["mu"])
    assert relative(np.diag(raw), recorded["raw_diag"]) < 1e-13
    smooth, fit = smooth_covariance(raw, count, t, smoothing=float(recorded["cov"]["sp"][0]))
    assert relative(smooth, recorded["smoothed"]) < 1e-12
    assert fit.score == pytest.approx(recorded["cov"]["score"][0], rel=1e-10)
    assert fit.edf == pytest.approx(recorded["cov"]["edf_total"][0], rel=1e-12)
    own = smooth_covariance(raw, count, t)[1]
    assert own.score <= recorded["cov"]["score"][0] * (1 + 1e-9)
    assert own.smoothing == pytest.approx(recorded["cov"]["sp"][0], rel=0.02)


def test_cubic_regression_spline_interpolates_with_exact_penalty() -> None:
    knots = np.array([0.0, 0.3, 0.5, 1.2, 2.0])
    x = np.linspace(-1, 3, 4001)
    splines = CubicSplines(knots)
    design, penalty = splines.design(x), splines.penalty
    values = np.sin(3 * knots)
    spline = CubicSpline(knots, values, bc_type="natural")
    inside = (x >= 0) & (x <= 2)
    np.testing.assert_allclose(design[inside] @ values, spline(x[inside]), atol=1e-12)
    np.testing.assert_allclose(np.diff(design[~inside & (x > 2)] @ values, n=2), 0, atol=1e-12)
    np.testing.assert_allclose(values @ penalty @ values, trapezoid(spline(x[inside], 2) ** 2, x[inside]), rtol=1e-5)


def test_gcv_fit_against_direct_solution() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 8)), rng.normal(size=40)
    d = np.diff(np.eye(8), n=2, axis=0)
    S = d.T @ d
    for smoothing in (0.0, 0.3, 1e6):
        fit = gcv_fit(X.T @ X, S, X.T @ y, y @ y, 40, smoothing)
        beta = np.linalg.solve(X.T @ X + smoothing * S, X.T @ y)
        edf = np.trace(np.linalg.solve(X.T @ X + smoothing * S, X.T @ X))
        np.testing.assert_allclose(fit.coefficients, beta, rtol=1e-8)
        assert fit.edf == pytest.approx(edf)
        assert fit.score == pytest.approx(40 * ((y - X @ beta) ** 2).sum() / (40 - edf) ** 2)
    best = gcv_fit(X.T @ X, S, X.T @ y, y @ y, 40)
    assert best.score <= fit.score
    with pytest.raises(InputError, match="smoothing must be a finite number of at least 0, got nan"):
        gcv_fit(X.T @ X, S, X.T @ y, y @ y, 40, np.nan)


def sparse_sample(n: int, points: int, seed: int, noise: float = 0.2, size: int = 60) -> tuple[Any, ...]:
    """Curves with eigenvalues 4 and 1, seen at a few random points of an even grid."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, size)
    waves = np.sqrt(2) * np.array([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    truth = t + rng.normal(size=(n, 2)) * [2, 1] @ waves
    Y = np.full((n, size), np.nan)
    for i in range(n):
        seen = rng.choice(size, points, replace=False)
        Y[i, seen] = truth[i, seen] + noise * rng.normal(size=points)
    return t, truth, Y


def test_truth_is_recovered_from_five_points_a_curve() -> None:
    t, truth, Y = sparse_sample(1500, 5, seed=1)
    fpca = FPCA(method="sc", n_components=2).fit(Y, t=t)
    np.testing.assert_allclose(fpca.eigenvalues_, [4, 1], rtol=0.15)
    assert fpca.noise_variance_ == pytest.approx(0.04, abs=0.1)  # a small difference of variances of about 5
    back = fpca.inverse_transform(fpca.transform(Y))
    assert np.sqrt(((back - truth) ** 2).mean()) < 0.35 < truth.std()
    covered = np.abs(back - truth) < 2.5 * np.sqrt(fpca.basis_.conditional_variance(Y))
    assert covered.mean() > 0.9


def test_conditional_scores_are_the_gaussian_expectation() -> None:
    t, _, Y = sparse_sample(300, 6, seed=2)
    basis = sc_eigenbasis(Y, t, n_components=2)
    scores = basis.conditional_scores(Y)
    for i in range(5):
        seen = ~np.isnan(Y[i])
        phi = basis.functions[:, seen]
        sigma = (phi.T * basis.values) @ phi + basis.noise_variance * np.eye(seen.sum())
        want = basis.values * (phi @ np.linalg.solve(sigma, Y[i, seen] - basis.mean[seen]))
        np.testing.assert_allclose(scores[i], want, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::fdadp.errors.NoiseVarianceWarning")  # 30 curves of 2 points tell little
@given(seed=st.integers(0, 1000), points=st.integers(2, 12), n=st.integers(30, 80))
@settings(max_examples=20, deadline=None)
def test_any_pattern_gives_an_orthonormal_basis_and_finite_scores(seed: int, points: int, n: int) -> None:
    t, _, Y = sparse_sample(n, points, seed, size=30)
    basis = sc_eigenbasis(Y, t, n_components=0.9)
    k = basis.n_components
    np.testing.assert_allclose(basis.functions * basis.weights @ basis.functions.T, np.eye(k), atol=1e-9)
    assert basis.noise_variance >= 0
    assert np.isfinite(basis.conditional_scores(Y)).all()


def few_points(design: str, seed: int, n: int = 200, noise: float = 0.3) -> tuple[Any, ...]:
    """Curves with 3 to 8 points of an even grid; noise variance .09."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 51)
    waves = np.sqrt(2) * np.array([f(2 * np.pi * k * t) for k in (1, 2) for f in (np.sin, np.cos)])
    functions, variances = {
        "two": (waves[:2], [4.0, 1.0]),
        "three": (waves[:3], [2.0, 1.0, 0.5]),
        "line and waves": (np.vstack((t**0, np.sqrt(3) * (2 * t - 1), waves[1:3])), [2.0, 1.0, 0.3, 0.1]),
    }[design]
    truth = np.sin(3 * t) + t + rng.normal(size=(n, len(variances))) * np.sqrt(variances) @ functions
    Y = np.full((n, 51), np.nan)
    for i in range(n):
        seen = rng.choice(51, rng.integers(3, 9), replace=False)
        Y[i, seen] = truth[i, seen] + noise * rng.normal(size=seen.size)
    return t, truth, Y


@pytest.mark.parametrize("design", ["two", "three", "line and waves"])
def test_sparse_curves_are_never_far_off(design: str) -> None:
    """The raw diagonal gives a noise variance of 0 in some of these: errors of 20 and 2000 instead of 0.5."""
    errors, noise = [], []
    for seed in range(8):
        t, truth, Y = few_points(design, seed)
        fpca = FPCA(method="sc", n_components=0.99).fit(Y, t=t)
        errors.append(np.sqrt(((fpca.inverse_transform(fpca.transform(Y)) - truth) ** 2).mean()))
        noise.append(fpca.noise_variance_)
    assert max(errors) < 2 * np.median(errors) < 2
    assert min(noise) > 0.06 and max(noise) < 0.3  # the truth is .09, and what is left out counts as noise


def test_the_estimate_is_the_maximum_of_the_likelihood() -> None:
    t, _, Y = few_points("three", 1, n=40)
    basis = sc_eigenbasis(Y, t, n_components=3)

    def log_likelihood(noise: float) -> float:
        total = 0.0
        for y in Y:
            seen = ~np.isnan(y)
            phi = basis.functions[:, seen]
            law = multivariate_normal(basis.mean[seen], (phi.T * basis.values) @ phi + noise * np.eye(seen.sum()))
            total += law.logpdf(y[seen])
        return total

    best = log_likelihood(basis.noise_variance)
    assert all(best > log_likelihood(basis.noise_variance * c) for c in (0.5, 0.9, 1.1, 2.0))
    assert best - log_likelihood(basis.noise_variance * 1.001) < 1e-3


@pytest.mark.parametrize(("size", "length"), [(1e-9, 1.0), (1e9, 1e6), (1.0, 1e-6)])
def test_units_do_not_matter(size: float, length: float) -> None:
    t, _, Y = few_points("two", 2)
    one = sc_eigenbasis(Y, t, n_components=2)
    other = sc_eigenbasis(Y * size, t * length, n_components=2)
    assert other.noise_variance == pytest.approx(one.noise_variance * size**2, rel=1e-6)
    np.testing.assert_allclose(other.values, one.values * size**2 * length, rtol=1e-6)
    want = one.reconstruct(one.conditional_scores(Y))
    np.testing.assert_allclose(other.reconstruct(other.conditional_scores(Y * size)) / size, want, atol=1e-6)
    np.testing.assert_allclose(other.conditional_variance(Y) / size**2, one.conditional_variance(Y), rtol=1e-5)


def test_noise_that_cannot_be_told_from_0_is_a_small_floor_and_said() -> None:
    t, truth, Y = few_points("three", 1)  # a sample whose raw diagonal is below the smooth one
    with pytest.warns(NoiseVarianceWarning, match=r"estimated as 0 and is taken as 0\.000"):
        basis = sc_eigenbasis(Y, t, n_components=0.99, noise="diagonal")
    assert basis.noise_variance == pytest.approx(1e-4 * np.nanmean((Y - basis.mean) ** 2))
    off = basis.reconstruct(basis.conditional_scores(Y)) - truth
    assert np.sqrt((off**2).mean()) < 3  # 22 without the floor
    with pytest.raises(InputError, match="noise must be one of 'likelihood', 'diagonal', got 'reml'"):
        sc_eigenbasis(Y, t, noise="reml")


def test_bands_hold_the_curves_and_keep_their_kind() -> None:
    shares = []
    for seed in range(6):
        t, truth, Y = few_points("line and waves", seed)
        fpca = FPCA(method="sc", n_components=0.95).fit(Y, t=t)
        lower, upper = fpca.band(Y)
        shares.append(((lower < truth) & (truth < upper)).mean())
        narrow = fpca.band(Y, level=0.5)
        assert (narrow[0] > lower).all() and (narrow[1] < upper).all()
    assert 0.88 < np.mean(shares) < 0.98 and min(shares) > 0.83, shares
    frame = pd.DataFrame(Y, columns=t, index=[f"child {i}" for i in range(len(Y))])
    lower = FPCA(method="sc", n_components=0.95).fit(frame).band(frame)[0]
    assert lower.index.equals(frame.index) and lower.shape == Y.shape
    assert fpca.band(truth[:5, ::2], t=t[::2])[0].shape == (5, 51)  # seen at other points
    whole = FPCA(n_components=0.95).fit(truth, t=t)
    with pytest.raises(InputError, match="method must be 'sc', or 'face' with shrink=True"):
        whole.band(truth)
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        fpca.band(Y, level=95)


def test_what_is_left_open_is_the_conditional_covariance_of_the_scores() -> None:
    t, _, Y = few_points("three", 3, n=60)
    basis = sc_eigenbasis(Y, t, n_components=3)
    for i, got in enumerate(basis.conditional_covariance(Y)[:5]):
        seen = ~np.isnan(Y[i])
        phi = basis.functions[:, seen]
        prior, noise = np.diag(basis.values), basis.noise_variance * np.eye(seen.sum())
        want = prior - prior @ phi @ np.linalg.solve(phi.T @ prior @ phi + noise, phi.T @ prior)
        np.testing.assert_allclose(got, want, atol=1e-9)


def test_irregular_curves_of_scikit_fda() -> None:
    from skfda import FDataGrid, FDataIrregular

    t, _, Y = sparse_sample(200, 8, seed=3)
    curve, position = np.nonzero(~np.isnan(Y))
    starts = np.searchsorted(curve, np.arange(200))
    irregular = FDataIrregular(starts, t[position], Y[curve, position])
    fpca = FPCA(method="sc", n_components=2).fit(irregular)
    want = FPCA(method="sc", n_components=2).fit(Y, t=t)
    np.testing.assert_allclose(fpca.transform(irregular), want.transform(Y), rtol=1e-8)
    assert fpca.transform(irregular[:3]).shape == (3, 2)  # on the union of their own points
    assert isinstance(fpca.inverse_transform(fpca.transform(irregular)), FDataGrid)


def test_few_and_many_grid_points() -> None:
    t, _, Y = sparse_sample(60, 4, seed=4, size=6)
    assert sc_eigenbasis(Y, t, n_components=2).functions.shape == (2, 6)
    t, _, Y = sparse_sample(300, 6, seed=4, size=800)  # more points than knots of the mean
    np.testing.assert_allclose(sc_eigenbasis(Y, t, n_components=2).values, [4, 1], rtol=0.5)


def test_a_point_that_no_curve_has() -> None:
    t, _, Y = sparse_sample(200, 8, seed=5)
    Y[:, [0, 20, 59]] = np.nan
    basis = sc_eigenbasis(Y, t, n_components=2)
    assert np.isfinite(basis.functions).all() and np.isfinite(basis.noise_variance)


def test_bad_input() -> None:
    t, _, Y = sparse_sample(30, 5, seed=6)
    empty = Y.copy()
    empty[4] = np.nan
    with pytest.raises(InputError, match=r"Y must have at least 1 observed point\(s\) each, got 0 in curve 4"):
        FPCA(method="sc").fit(empty)
    fitted = FPCA(method="sc", n_components=1).fit(Y)
    with pytest.raises(InputError, match="got 0 in curve 4"):
        fitted.transform(empty)
    with pytest.raises(InputError, match=r"at least 1 observed point\(s\) each, got 0 in curve 4"):
        fitted.basis_.conditional_scores(empty)
    infinite = Y.copy()
    infinite[2, 3] = -np.inf
    with pytest.raises(InputError, match=r"must be finite or NaN \(missing\), got -inf in curve 2 at position 3"):
        FPCA(method="sc").fit(infinite)
    with pytest.raises(InputError, match="got -inf in curve 2 at position 3"):
        fitted.basis_.conditional_scores(infinite)
    with pytest.raises(InputError, match="n_basis must be a whole number of at least 4, got 3"):
        sc_eigenbasis(Y, t, n_basis=3)
    with pytest.raises(InputError, match="at least 2, at 4 points or more, got shape"):
        sc_eigenbasis(Y[:1], t)
    with pytest.raises(InputError, match="two-dimensional"):
        sc_eigenbasis(Y[0], t)
    with pytest.raises(InputError, match="mean must be 60 finite numbers"):
        sc_eigenbasis(Y, t, mean=np.zeros(59))
    with pytest.raises(InputError, match="share a curve with another, 0, got"):
        sc_eigenbasis(np.where(np.eye(30, 60, dtype=bool), 1.0, np.nan), t)
    with pytest.raises(InputError, match="do not vary"):
        sc_eigenbasis(np.where(np.isnan(Y), np.nan, 1.0), t)
    with pytest.raises(InputError, match="n_components must be at least 1 and at most"):
        sc_eigenbasis(Y, t, n_components=60)
