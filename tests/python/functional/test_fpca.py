"""FPCA of complete curves: against the recorded fpca.face, fpca.ssvd and fpca2s, scikit-fda, and by properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fdadp.errors import InputError
from fdadp.functional.fpca import (
    FPCA,
    Eigenbasis,
    FaceSmoother,
    dense_eigenbasis,
    face_eigenbasis,
    face_smooth,
    gavish_donoho,
    ssvd_eigenbasis,
)
from fdadp.functional.fpca.ssvd import sequential_scores
from r_bridge.difference_report import relative
from r_bridge.fpca_beside_refund import basis_differences

COMPLETE = ["fpca_dti", "fpca_canadian"]
AFFR = ["affr_dti2", "affr_lip", "affr_canadian"]


def moments(Y: np.ndarray, ddof: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return Y.mean(axis=0), np.cov(Y.T, ddof=ddof)


def compare(
    basis: Eigenbasis,
    scores: np.ndarray,
    recorded: dict[str, Any],
    weight: float,
    tolerance: float,
    n_scores: int | None = None,
) -> None:
    """Compare in the recorded normalisation: unit norm under `weight` at each point; signs are arbitrary."""
    found = basis_differences(basis, scores, recorded, weight, n_scores)
    assert found.pop("mean") < 1e-13
    assert found.keys() >= {"functions", "scores", "eigenvalues"}
    assert max(found.values()) < tolerance


# ---- recorded cases


@pytest.mark.parametrize("case", COMPLETE)
@pytest.mark.parametrize("which", ["0.95", "0.99", "default", "npc2_knots20"])
def test_face_reproduces_refund(reference: Any, case: str, which: str) -> None:
    given = reference(case)
    Y, t = given["input"]["Y"], given["input"]["argvals"]
    face = given["output"]["face"]
    recorded = {"0.95": face["unit"][0], "0.99": face["unit"][1], **face}[which]
    n_components = {"default": 0.99, "npc2_knots20": 2}.get(which) or float(which)
    n_knots = 20 if which == "npc2_knots20" else 35  # refund's default, whatever the grid
    basis = face_eigenbasis(*moments(Y), t, n_components=n_components, n_knots=n_knots, quadrature="equal")
    compare(basis, basis.conditional_scores(Y), recorded, weight=1.0, tolerance=1e-11)
    assert basis.explained_ratio.sum() == pytest.approx(recorded["pve"][0], rel=1e-12)
    if "sigma2" in recorded:
        assert basis.noise_variance == pytest.approx(recorded["sigma2"][0], rel=1e-11)


@pytest.mark.parametrize("case", COMPLETE)
def test_face_internals(reference: Any, case: str) -> None:
    given = reference(case)
    Y, t, want = given["input"]["Y"], given["input"]["argvals"], given["output"]["face"]["internals"]
    smoother = FaceSmoother.on(t, 35)
    np.testing.assert_allclose(smoother.penalty, want["s"], rtol=1e-7, atol=1e-9 * want["s"].max())
    covariance = moments(Y)[1]
    projected = smoother.basis.T @ covariance @ smoother.basis
    assert smoother.smooth(projected, np.trace(covariance))[2] == pytest.approx(want["lambda"][0], rel=1e-12)


@pytest.mark.parametrize("case", AFFR)
def test_face_gives_the_components_of_the_affr_cases(reference: Any, case: str) -> None:
    # Given refund's mean: its smoothing spline leaves the mean curve of lip as it is, but smooths those of
    # dti2 (by 0.09) and canadian (by 0.16).
    given = reference(case)
    Y, t, recorded = given["input"]["Y"], given["input"]["t"], given["output"]["fpca"]
    centred = Y - recorded["mu"]
    basis = face_eigenbasis(recorded["mu"], centred.T @ centred / len(Y), t, n_components=0.95, quadrature="equal")
    k = given["input"]["scores"].shape[1]
    recorded = {**recorded, "scores": given["input"]["scores"]}
    compare(basis, basis.conditional_scores(Y), recorded, weight=1.0, tolerance=1e-11, n_scores=k)


def test_estimator_gives_the_components_of_affr_lip(reference: Any) -> None:
    given = reference("affr_lip")
    Y, t, recorded = given["input"]["Y"], given["input"]["t"], given["output"]["fpca"]
    fpca = FPCA(n_components=0.95, shrink=True, quadrature="equal").fit(Y, t=t)
    recorded = {**recorded, "mu": fpca.mean_, "scores": given["input"]["scores"]}
    compare(fpca.basis_, fpca.transform(Y), recorded, weight=1.0, tolerance=1e-11, n_scores=3)


def test_the_mean_is_not_smoothed_where_refund_smooths_it(reference: Any) -> None:
    given = reference("affr_dti2")
    Y, t, recorded = given["input"]["Y"], given["input"]["t"], given["output"]["fpca"]
    mean = FPCA().fit(Y, t=t).mean_
    np.testing.assert_allclose(mean, Y.mean(axis=0), rtol=1e-13)  # R's memory order adds otherwise
    rough, smooth = (np.abs(np.diff(m, n=2)).max() for m in (mean, recorded["mu"]))
    assert smooth < 0.5 * rough and np.abs(mean - recorded["mu"]).max() > 0.01


@pytest.mark.parametrize("method", ["face", "dense"])
def test_weights_on_an_uneven_grid_are_those_of_the_integral_and_equal_on_demand(method: str) -> None:
    t = np.linspace(0, 1, 81) ** 2  # points lie close at the start
    waves = np.sqrt(2) * np.array([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)])
    scores = np.random.default_rng(0).normal(size=(4000, 2)) * [2, 1]
    integral = FPCA(n_components=2, method=method).fit(scores @ waves, t=t)
    equal = FPCA(n_components=2, method=method, quadrature="equal").fit(scores @ waves, t=t)
    np.testing.assert_allclose(integral.eigenvalues_, scores.var(axis=0), rtol=0.02)
    assert np.abs(equal.eigenvalues_ / scores.var(axis=0) - 1).max() > 0.1  # refund's convention: not the integral
    np.testing.assert_allclose(equal.eigenfunctions_ @ equal.eigenfunctions_.T / 81, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("case", COMPLETE)
@pytest.mark.parametrize("which", ["ssvd", "ssvd3"])
def test_ssvd_reproduces_refund_given_its_mean(reference: Any, case: str, which: str) -> None:
    given = reference(case)
    Y, t, recorded = given["input"]["Y"], given["input"]["argvals"], given["output"][which]
    basis = ssvd_eigenbasis(Y, t, quadrature="equal", n_components=None if which == "ssvd" else 3, mean=recorded["mu"])
    compare(basis, sequential_scores(basis, Y), recorded, weight=np.diff(t).mean(), tolerance=2e-12)


@pytest.mark.parametrize("case", COMPLETE)
@pytest.mark.parametrize("which", ["twostep", "twostep3"])
def test_dense_reproduces_fpca2s(reference: Any, case: str, which: str) -> None:
    given = reference(case)
    Y, t, recorded = given["input"]["Y"], given["input"]["argvals"], given["output"][which]
    fpca = FPCA(method="dense", quadrature="equal", n_components=gavish_donoho(Y) if which == "twostep" else 3).fit(
        Y, t=t
    )
    compare(fpca.basis_, fpca.transform(Y), recorded, weight=np.diff(t).mean(), tolerance=1e-11)


@pytest.mark.parametrize("case", COMPLETE)
def test_dense_agrees_with_scikit_fda(reference: Any, case: str) -> None:
    from skfda import FDataGrid
    from skfda.preprocessing.dim_reduction import FPCA as SkfdaFPCA

    given = reference(case)
    data = FDataGrid(given["input"]["Y"], given["input"]["argvals"])
    ours = FPCA(method="dense", n_components=4, quadrature="simpson").fit(data)
    theirs = SkfdaFPCA(n_components=4).fit(data)
    functions = theirs.components_.data_matrix[..., 0]
    sign = np.sign((ours.eigenfunctions_ * ours.weights_ @ functions.T).diagonal())
    assert relative(ours.eigenfunctions_ * sign[:, None], functions) < 1e-10
    np.testing.assert_allclose(ours.eigenvalues_, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    assert relative(ours.transform(data) * sign, theirs.transform(data)) < 1e-10


# ---- properties


def simulate(n: int, t: np.ndarray, seed: int, noise: float = 0.3) -> np.ndarray:
    """Three components with eigenvalues 4, 1, 0.25 on the domain scaled to [0, 1], and white noise."""
    rng = np.random.default_rng(seed)
    u = (t - t[0]) / (t[-1] - t[0])
    waves = np.sqrt(2) * np.array([np.sin(2 * np.pi * u), np.cos(2 * np.pi * u), np.sin(4 * np.pi * u)])
    return 1 + u + rng.normal(size=(n, 3)) * [2, 1, 0.5] @ waves + noise * rng.normal(size=(n, t.size))


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(12, 70),
    n=st.integers(4, 40),
    uneven=st.booleans(),
    method=st.sampled_from(["face", "dense", "sc"]),
    quadrature=st.sampled_from(["equal", "trapezoid"]),
)
@settings(max_examples=60, deadline=None)
def test_orthonormal_with_fixed_signs(seed: int, size: int, n: int, uneven: bool, method: str, quadrature: str) -> None:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.5, 1.5, size)) if uneven else np.linspace(-1, 2, size)
    Y = simulate(n, t, seed)
    fpca = FPCA(method=method, n_components=0.9, quadrature=quadrature).fit(Y, t=t)
    phi = fpca.eigenfunctions_
    np.testing.assert_allclose(phi * fpca.weights_ @ phi.T, np.eye(len(phi)), atol=1e-8)
    assert (phi[np.arange(len(phi)), np.abs(phi).argmax(axis=1)] > 0).all()
    assert (np.diff(fpca.eigenvalues_) <= 0).all() and (fpca.eigenvalues_ > 0).all()
    assert fpca.noise_variance_ >= 0
    assert fpca.explained_variance_ratio_.sum() > 0.9


@given(
    seed=st.integers(0, 10_000),
    shift=st.floats(-100, 100),
    scale=st.floats(1e-3, 1e3),
    method=st.sampled_from(["face", "dense", "sc", "ssvd"]),
)
@settings(max_examples=30, deadline=None)
def test_equivariant_under_affine_change_of_the_grid(seed: int, shift: float, scale: float, method: str) -> None:
    t = np.linspace(0, 1, 40)
    Y = simulate(30, t, seed)
    a = FPCA(method=method, n_components=2).fit(Y, t=t)
    b = FPCA(method=method, n_components=2).fit(Y, t=shift + scale * t)
    np.testing.assert_allclose(b.eigenvalues_, scale * a.eigenvalues_, rtol=1e-5)
    assert b.noise_variance_ == pytest.approx(a.noise_variance_, rel=1e-4)
    for f, g in zip(a.eigenfunctions_, b.eigenfunctions_ * np.sqrt(scale), strict=True):
        assert min(relative(g, f), relative(-g, f)) < 1e-3  # an extreme value of either sign may be the largest


@given(seed=st.integers(0, 10_000), method=st.sampled_from(["face", "dense", "sc", "ssvd"]))
@settings(max_examples=20, deadline=None)
def test_more_variance_takes_more_components(seed: int, method: str) -> None:
    t = np.linspace(0, 1, 40)
    Y = simulate(25, t, seed, noise=1.0)
    counts = [FPCA(method=method, n_components=p).fit(Y, t=t).n_components_ for p in (0.3, 0.6, 0.9, 0.95, 0.99)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("method", ["face", "sc"])
@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_noise_and_eigenvalues_are_recovered(method: str, noise: float) -> None:
    t = np.linspace(0, 1, 101)
    fpca = FPCA(method=method, n_components=3).fit(simulate(3000, t, seed=3, noise=noise), t=t)
    # FACE counts as noise what its smoother takes from the signal: here up to 1.5 % of 5.25.
    tolerance = 0.08 if method == "face" else 0.01
    assert fpca.noise_variance_ == pytest.approx(noise**2, abs=tolerance)
    np.testing.assert_allclose(fpca.eigenvalues_, [4, 1, 0.25], rtol=0.25)


def test_moments_are_enough() -> None:
    t = np.linspace(0, 1, 50)
    Y = simulate(60, t, seed=1)
    for method, make, ddof in (("face", face_eigenbasis, 0), ("dense", dense_eigenbasis, 1)):
        fitted = FPCA(method=method).fit(Y, t=t).basis_
        basis = make(*moments(Y, ddof), t)
        np.testing.assert_allclose(basis.functions, fitted.functions, atol=1e-10)
        np.testing.assert_allclose(basis.values, fitted.values, rtol=1e-10)
        doubled = make(Y.mean(axis=0), 2 * moments(Y, ddof)[1], t)  # any divisor
        np.testing.assert_allclose(doubled.functions, basis.functions, atol=1e-10)
        assert doubled.noise_variance == pytest.approx(2 * basis.noise_variance)


def test_face_smooth_is_the_covariance_of_all_components() -> None:
    t = np.linspace(0, 1, 50)
    mean, covariance = moments(simulate(60, t, seed=1))
    smooth, noise = face_smooth(covariance, t)
    basis = face_eigenbasis(mean, covariance, t, n_components=1.0)
    np.testing.assert_allclose(basis.covariance(), smooth, atol=1e-10)
    assert noise == pytest.approx(basis.noise_variance)
    assert np.trace(smooth) / 50 + noise == pytest.approx(np.trace(covariance) / 50)


def test_refinement_does_not_raise_gcv_and_given_smoothing_is_used() -> None:
    t = np.linspace(0, 1, 50)
    mean, covariance = moments(simulate(60, t, seed=1))
    smoother = FaceSmoother.on(t)
    projected = smoother.basis.T @ covariance @ smoother.basis
    coarse = smoother.smooth(projected, np.trace(covariance))[2]
    fine = smoother.smooth(projected, np.trace(covariance), refine=True)[2]
    assert coarse != fine and abs(np.log(coarse / fine)) < 40 / 99
    a = face_eigenbasis(mean, covariance, t, refine=True)
    b = face_eigenbasis(mean, covariance, t, smoothing=fine)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-12)


def test_uneven_grid_with_a_gap() -> None:
    t = np.concatenate((np.linspace(0, 0.3, 40), np.linspace(0.7, 1, 40)))
    given = moments(simulate(500, t, seed=2))
    basis, plain = (make(*given, t, n_components=2) for make in (face_eigenbasis, dense_eigenbasis))
    np.testing.assert_allclose(basis.functions * basis.weights @ basis.functions.T, np.eye(2), atol=1e-8)
    np.testing.assert_allclose(basis.values, plain.values, rtol=0.05)


@pytest.mark.parametrize("method", ["face", "dense", "ssvd", "sc"])
def test_reconstruction_and_new_grids(method: str) -> None:
    t = np.linspace(0, 1, 81)
    Y = simulate(100, t, seed=5, noise=0.0)
    fpca = FPCA(method=method, n_components=3).fit(Y, t=t)
    scores = fpca.transform(Y)
    assert relative(fpca.inverse_transform(scores), Y) < 0.05
    coarse = fpca.transform(Y[:, ::2], t=t[::2])
    assert relative(coarse, scores) < 0.05
    assert relative(coarse, fpca.transform(pd.DataFrame(Y[:, ::2], columns=t[::2]))) < 1e-12


@pytest.mark.parametrize("size", [5, 6, 7, 8, 10])
def test_short_grids(size: int) -> None:
    Y = np.random.default_rng(size).normal(size=(30, size)).cumsum(axis=1)
    assert FPCA(n_components=1).fit(Y).n_components_ == 1
    assert FPCA(n_components=1, method="dense").fit(Y[:, :2]).eigenfunctions_.shape == (1, 2)


def test_fewer_curves_than_points_and_one_component() -> None:
    Y = np.random.default_rng(0).normal(size=(4, 60)).cumsum(axis=1)
    assert FPCA(n_components=1.0, method="dense").fit(Y).n_components_ == 3
    assert FPCA(n_components=1.0).fit(Y).n_components_ == 3
    assert FPCA(n_components=0.999, max_components=2).fit(Y).n_components_ == 2


# ---- the estimator


@pytest.mark.parametrize("method", ["face", "dense", "ssvd", "sc"])
def test_scores_do_not_follow_settings_after_the_fit(method: str) -> None:
    Y = np.random.default_rng(0).normal(size=(40, 15)).cumsum(axis=1)
    fpca = FPCA(n_components=2, method=method).fit(Y)
    scores = fpca.transform(Y)
    for other in ({"method": "sc"}, {"method": "ssvd"}, {"method": "face", "shrink": True}, {"quadrature": "simpson"}):
        np.testing.assert_array_equal(fpca.set_params(**other).transform(Y), scores)


def test_scikit_learn_manners() -> None:
    t = np.linspace(0, 1, 30)
    Y = simulate(40, t, seed=0)
    fpca = FPCA(n_components=2, method="dense")
    assert clone(fpca).get_params() == fpca.get_params()
    pipeline = make_pipeline(fpca, StandardScaler())
    scaled = pipeline.fit_transform(Y, np.arange(40.0))
    np.testing.assert_allclose(scaled.std(axis=0), 1)
    assert list(pipeline[:1].get_feature_names_out()) == ["fpca0", "fpca1"]
    np.testing.assert_allclose(pipeline.inverse_transform(scaled), fpca.inverse_transform(fpca.transform(Y)))
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        FPCA().transform(Y)
    with pytest.raises(NotFittedError):
        FPCA().inverse_transform(np.zeros((1, 1)))


def test_gives_back_the_kind_it_got() -> None:
    from skfda import FDataGrid

    t = np.linspace(0, 2, 30)
    Y = simulate(40, t, seed=0)
    plain = FPCA(n_components=2).fit(Y, t=t)
    scores = plain.transform(Y)
    assert isinstance(plain.inverse_transform(scores), np.ndarray)

    grid_data = FDataGrid(Y, t)
    fpca = FPCA(n_components=2).fit(grid_data)
    np.testing.assert_allclose(fpca.transform(grid_data), scores)
    back = fpca.inverse_transform(scores)
    assert isinstance(back, FDataGrid)
    np.testing.assert_allclose(back.grid_points[0], t)
    np.testing.assert_array_equal(fpca.transform(FDataGrid(Y[:, ::3], t[::3])), plain.transform(Y[:, ::3], t=t[::3]))

    frame = pd.DataFrame(Y, index=[f"p{i}" for i in range(40)], columns=t)
    fpca = FPCA(n_components=2).fit(frame)
    np.testing.assert_allclose(fpca.transform(frame), scores)
    back = fpca.inverse_transform(pd.DataFrame(scores, index=frame.index))
    assert back.columns.equals(frame.columns) and back.index.equals(frame.index)

    named = frame.set_axis([f"c{j}" for j in range(30)], axis=1)
    fpca = FPCA(n_components=2).fit(named, t=t)
    np.testing.assert_allclose(fpca.transform(named, t=t), scores)


def test_basis_expansion_is_read() -> None:
    from skfda import FDataGrid
    from skfda.representation.basis import BSplineBasis

    t = np.linspace(0, 1, 50)
    data = FDataGrid(simulate(20, t, seed=0), t).to_basis(BSplineBasis(n_basis=12))
    fpca = FPCA(n_components=2).fit(data)
    assert fpca.grid_.size == 101 and fpca.transform(data).shape == (20, 2)


def test_evaluate_truncate_and_shrinkage() -> None:
    t = np.linspace(0, 1, 101)
    Y = simulate(200, t, seed=0)
    basis = FPCA(n_components=3, quadrature="equal").fit(Y, t=t).basis_
    mean, functions = basis.evaluate(t[::2])
    np.testing.assert_allclose(mean, basis.mean[::2])
    np.testing.assert_allclose(functions, basis.functions[:, ::2], atol=1e-12)
    assert basis.truncate(1).functions.shape == (1, 101)
    shrunk = basis.values / (basis.values + basis.noise_variance * basis.weights[0])
    np.testing.assert_allclose(basis.conditional_scores(Y), basis.scores(Y) * shrunk, rtol=1e-8, atol=1e-12)
    variance = basis.conditional_variance(Y)
    assert variance.shape == Y.shape and (variance > 0).all() and (variance < basis.noise_variance).all()


# ---- bad input


def bad_curves(position: tuple[int, int], value: float) -> np.ndarray:
    Y = simulate(10, np.linspace(0, 1, 30), seed=0)
    Y[position] = value
    return Y


@pytest.mark.parametrize("method", ["face", "dense", "ssvd"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(method: str, value: float) -> None:
    with pytest.raises(InputError, match=r"Y must be finite, got (nan|inf) in curve 3 at position 7"):
        FPCA(method=method).fit(bad_curves((3, 7), value))
    fitted = FPCA(method=method).fit(bad_curves((3, 7), 0.0))
    with pytest.raises(InputError, match="curve 3 at position 7"):
        fitted.transform(bad_curves((3, 7), value))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "pca"}, "method must be one of 'face', 'dense', 'sc', 'ssvd', got 'pca'"),
        ({"n_components": 0}, "n_components must be at least 1 and at most 9 here, got 0"),
        ({"n_components": 10}, "n_components must be at least 1 and at most 9 here, got 10"),
        ({"n_components": 5, "max_components": 4}, "at most 4 here, got 5"),
        ({"n_components": 10, "method": "dense"}, "at most 9 here, got 10"),
        ({"n_components": 11, "method": "ssvd"}, "n_components must be at least 1 and at most 10 here, got 11"),
        ({"n_components": 1.5}, r"share of variance in \(0, 1\], got 1.5"),
        ({"n_components": 0.0}, r"share of variance in \(0, 1\], got 0.0"),
        ({"n_components": np.nan}, r"share of variance in \(0, 1\], got nan"),
        ({"n_components": True}, "n_components must be an integer of at least 1 .* got True"),
        ({"n_components": "all", "method": "ssvd"}, "n_components must be an integer of at least 1 .* got 'all'"),
        ({"n_components": None}, "n_components must be a number with method='face', got None"),
        ({"max_components": 0}, "max_components must be a whole number of at least 1, got 0"),
        ({"n_knots": 27}, "n_knots must be a whole number from 1 to 26, got 27"),
        ({"n_knots": 2.5}, "n_knots must be a whole number from 1 to 26, got 2.5"),
        ({"quadrature": "gauss"}, "quadrature must be one of .* got 'gauss'"),
        ({"method": "dense", "shrink": True}, "shrink must be False with method='dense'"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FPCA(**parameters).fit(bad_curves((0, 0), 0.0))


def test_a_covariance_with_negative_eigenvalues_is_cut() -> None:
    # Private releases add noise to the covariance: what is not positive is left out.
    t = np.linspace(0, 1, 40)
    mean, covariance = moments(simulate(60, t, seed=1))
    noise = np.random.default_rng(0).normal(size=(40, 40))
    for make in (face_eigenbasis, dense_eigenbasis):
        basis = make(mean, covariance + 0.2 * (noise + noise.T), t, n_components=1.0)
        assert (basis.values > 0).all() and basis.explained_ratio.sum() == pytest.approx(1)
        assert basis.n_components < 40
        with pytest.raises(InputError, match="at least one positive eigenvalue"):
            make(mean, -covariance, t)


def test_bad_curves() -> None:
    Y = bad_curves((0, 0), 0.0)
    with pytest.raises(InputError, match="Y must have at least 2 curves, got 1"):
        FPCA().fit(Y[:1])
    with pytest.raises(InputError, match="at least 5 points for FACE, got 4; use method='dense'"):
        FPCA().fit(Y[:, :4])
    for method in ("face", "dense", "ssvd"):
        with pytest.raises(InputError, match="Y must vary from curve to curve, got 7 equal ones"):
            FPCA(method=method).fit(np.full((7, 30), 0.1))
    for make in (face_eigenbasis, dense_eigenbasis):
        with pytest.raises(InputError, match="the curves do not vary"):
            make(np.ones(30), np.zeros((30, 30)))
    with pytest.raises(InputError, match="the curves do not vary"):
        ssvd_eigenbasis(np.ones((5, 30)))
    with pytest.raises(InputError, match="at 4 points or more, got shape"):
        FPCA(method="ssvd").fit(Y[:, :3])
    with pytest.raises(InputError, match=r"y is ignored .* a grid is t="):
        FPCA().fit(Y, np.linspace(0, 1, 30))
    fitted = FPCA(n_components=2).fit(Y)
    with pytest.raises(
        InputError, match=r"Y must have 30 points a curve, as the fit had, or come with its grid, got 12 points"
    ):
        fitted.transform(Y[:, :12])
    with pytest.raises(InputError, match=r"t must be points within \[0, 1\], got 1.5"):
        fitted.transform(Y[:, :3], t=[0, 1, 1.5])
    with pytest.raises(InputError, match=r"scores must have shape \(n, 2\), got \(1, 3\)"):
        fitted.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(InputError, match="curves must be finite, got nan in curve 3 at position 7"):
        fitted.basis_.scores(bad_curves((3, 7), np.nan))
    with pytest.raises(InputError, match=r"curves must have shape \(n, 30\), got \(10, 29\)"):
        fitted.basis_.scores(Y[:, :29])


def test_bad_moments() -> None:
    mean, covariance = moments(bad_curves((0, 0), 0.0))
    with pytest.raises(InputError, match=r"square matrix of at least 2 rows, got shape \(30, 29\)"):
        face_eigenbasis(mean, covariance[:, :29])
    with pytest.raises(InputError, match="mean must be 30 finite numbers"):
        face_eigenbasis(mean[:29], covariance)
    with pytest.raises(InputError, match="must have 30 points"):
        face_eigenbasis(mean, covariance, np.arange(29))
    with pytest.raises(InputError, match=r"covariance must be finite, got nan at \(2, 3\)"):
        face_smooth(np.where(np.arange(900).reshape(30, 30) == 63, np.nan, covariance))
    with pytest.raises(InputError, match="covariance must be symmetric"):
        dense_eigenbasis(mean, covariance + np.triu(np.ones((30, 30))))
    with pytest.raises(InputError, match="smoothing must be a finite number of at least 0, got -1"):
        face_eigenbasis(mean, covariance, smoothing=-1)
    with pytest.raises(InputError, match="mean must be 30 finite numbers"):
        ssvd_eigenbasis(bad_curves((0, 0), 0.0), mean=[1.0])


@pytest.mark.parametrize("shape", [(1010, 1200), (1200, 1010)])
def test_few_components_of_many_curves_are_those_of_the_covariance(shape):
    """Found from products with vectors alone, where all would take the whole covariance."""
    rng, t = np.random.default_rng(0), np.linspace(0, 1, shape[1]) ** 1.2
    waves = np.stack([np.cos(k * np.pi * t) / k for k in range(1, 9)])
    curves = 5 + rng.normal(size=(shape[0], 8)) @ waves + 0.05 * rng.normal(size=shape)
    few = FPCA(n_components=6, method="dense").fit(curves, t=t).basis_
    whole = dense_eigenbasis(curves.mean(axis=0), np.cov(curves.T), t, n_components=6)
    np.testing.assert_allclose(few.values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(few.functions, whole.functions, atol=1e-7)
    np.testing.assert_allclose(few.explained_ratio, whole.explained_ratio, rtol=1e-9)
