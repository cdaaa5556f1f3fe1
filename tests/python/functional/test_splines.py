"""B-splines and tensor products against mgcv's and fda's recorded ones, and as functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from r_bridge.mgcv_tensor_products import TensorProduct, te_margin


@pytest.mark.parametrize("case", ["basis_ps_k7_m22", "basis_ps_k10_m21", "basis_bs_cubic"])
def test_uniform_basis_is_mgcvs(reference, case):
    record = reference(case)
    x, xnew, m = record["input"]["x"], record["input"]["xnew"], record["input"]["m"].astype(int)
    out = record["output"]
    pspline = "_ps_" in case
    basis = BSplines.uniform(x.min(), x.max(), int(record["input"]["k"][0]), degree=int(m[0]) + pspline)
    np.testing.assert_allclose(basis.knots, out["knots"], atol=1e-14)
    np.testing.assert_allclose(basis.design(x), out["X"], atol=1e-14)
    np.testing.assert_allclose(basis.design(xnew), out["Xnew"], atol=1e-14)
    penalty = basis.difference_penalty(int(m[1])) if pspline else basis.derivative_penalty(int(m[1]))
    np.testing.assert_allclose(penalty, out["S_raw"], rtol=1e-12, atol=1e-12 * np.abs(penalty).max())
    # s(): row sums are one, so mgcv's scale is the penalty's own norm.
    scale = np.abs(penalty).sum(axis=0).max() / np.abs(basis.design(x)).sum(axis=1).max() ** 2
    np.testing.assert_allclose(scale, out["S_scale"], rtol=1e-13)
    np.testing.assert_allclose(penalty / scale, out["S_scaled"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", ["basis_ps_k7_m22", "basis_ps_k10_m21", "basis_bs_cubic"])
def test_centred_basis_is_mgcvs(reference, case):
    """The constraint (column sums of the design) absorbed by a Householder reflection, as smoothCon does."""
    record = reference(case)["output"]
    coordinates = np.linalg.qr(record["X"].sum(axis=0)[:, None], mode="complete")[0][:, 1:]
    np.testing.assert_allclose(record["X"] @ coordinates, record["centred"]["X"], atol=1e-13)
    np.testing.assert_allclose(coordinates.T @ record["S_scaled"] @ coordinates, record["centred"]["S"], atol=1e-12)


def test_clamped_basis_is_fdas(reference):
    for record in reference("basis_fda_bspline")["output"].values():
        low, high = record["range"]
        basis = BSplines.clamped(low, high, int(record["nbasis"][0]), degree=int(record["norder"][0]) - 1)
        for order, name in enumerate(("eval", "eval_d1", "eval_d2")):
            values = basis.design(record["x"], order)
            np.testing.assert_allclose(values, record[name], atol=1e-13 * np.abs(record[name]).max())
        for order in range(3):
            expected = record[f"penalty{order}"]
            np.testing.assert_allclose(basis.derivative_penalty(order), expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("function_values", [True, False])
def test_tensor_product_is_mgcvs(reference, function_values):
    record = reference("tensor_te_k76")
    x, u, k = record["input"]["x"], record["input"]["u"], record["input"]["k"].astype(int)
    out = record["output"]["np_true" if function_values else "np_false"]
    mx, mu = (
        te_margin(x.min(), x.max(), k[0]),
        te_margin(u.min(), u.max(), k[1]),
    )
    if function_values:
        for margin, name in ((mx, 0), (mu, 1)):
            np.testing.assert_allclose(margin.to_basis, out["XP"][name], atol=1e-12)
            np.testing.assert_allclose(margin.basis.difference_penalty(2), out["margin_S"][name], atol=1e-12)
        np.testing.assert_allclose(np.kron(mx.penalty, np.eye(k[1])), out["S_raw"][0], atol=1e-12)
        np.testing.assert_allclose(np.kron(np.eye(k[0]), mu.penalty), out["S_raw"][1], atol=1e-12)
        row_norm = np.abs(TensorProduct(mx, mu, 1.0).design(x, u)).sum(axis=1).max()
        smooth = TensorProduct(mx, mu, row_norm)
        np.testing.assert_allclose(smooth.design(x, u), out["X"], atol=1e-12)
        np.testing.assert_allclose(smooth.penalty_scales, out["S_scale"], rtol=1e-12)
        new = smooth.design(record["input"]["xnew"], record["input"]["unew"])
        np.testing.assert_allclose(new, out["Xnew"], atol=1e-12)
        scaled = [
            np.kron(mx.penalty, np.eye(k[1])) / smooth.penalty_scales[0],
            np.kron(np.eye(k[0]), mu.penalty) / smooth.penalty_scales[1],
        ]
        for ours, theirs in zip(scaled, out["S_scaled"], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)
        centred = smooth.mgcv_coordinates(smooth.design(x, u).sum(axis=0))
        np.testing.assert_allclose(out["X"] @ centred, out["centred"]["X"], atol=1e-12)
        for ours, theirs in zip(scaled, out["centred"]["S"], strict=True):
            np.testing.assert_allclose(centred.T @ ours @ centred, theirs, atol=1e-10)
    else:  # the same product of plain B-splines
        raw = (mx.basis.design(x)[:, :, None] * mu.basis.design(u)[:, None, :]).reshape(len(x), -1)
        np.testing.assert_allclose(raw, out["X"], atol=1e-13)
        penalties = [m.basis.difference_penalty(2) for m in (mx, mu)]
        penalties = [p / np.linalg.eigvalsh(p)[-1] for p in penalties]
        np.testing.assert_allclose(np.kron(penalties[0], np.eye(k[1])), out["S_raw"][0], atol=1e-12)
        np.testing.assert_allclose(np.kron(np.eye(k[0]), penalties[1]), out["S_raw"][1], atol=1e-12)


@given(
    low=st.floats(-50, 50),
    length=st.floats(0.1, 100),
    degree=st.integers(1, 5),
    extra=st.integers(0, 8),
    at=st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=20),
)
def test_basis_sums_to_one_and_is_linear_outside(low, length, degree, extra, at):
    basis = BSplines.uniform(low, low + length, degree + 1 + extra, degree=degree)
    x = low + length * np.asarray(at)
    np.testing.assert_allclose(basis.design(x).sum(axis=1), 1.0, atol=1e-9)
    far = basis.upper + length * np.array([0.0, 1.0, 2.0])
    steps = np.diff(basis.design(far), axis=0)
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-7)


@pytest.mark.parametrize("degree", range(1, 6))
@pytest.mark.parametrize("kind", ["uniform", "clamped"])
def test_functions_and_derivatives_are_those_of_scipy(degree, kind):
    rng = np.random.default_rng(degree)
    basis = getattr(BSplines, kind)(-0.7, 2.1, degree + 6, degree=degree)
    x = np.concatenate((rng.uniform(basis.lower, basis.upper, 9000), np.clip(basis.knots, basis.lower, basis.upper)))
    for order in range(degree + 1):
        wanted = BSpline(basis.knots, np.eye(basis.n_basis), degree)(x, nu=order)
        found = basis._derivative(x, order)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
        assert ((found != 0) == (wanted != 0)).all()


@given(n_basis=st.integers(5, 12), order=st.integers(1, 3))
def test_margin_is_diagonalised(n_basis, order):
    margin = SmoothMargin.pspline((-1.0, 2.0), n_basis, (2, order), values=True)
    u = margin.rotation
    np.testing.assert_allclose(u.T @ u, np.eye(n_basis), atol=1e-10)
    np.testing.assert_allclose(u.T @ margin.penalty @ u, np.diag(margin.eigenvalues), atol=1e-9)
    np.testing.assert_allclose(u[:, 0], u[0, 0], atol=1e-12)  # the constant
    assert (margin.eigenvalues == 0).sum() == order


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lower": 1.0, "upper": 1.0, "n_basis": 7}, r"lower < upper, got \[1, 1\]"),
        ({"lower": 0.0, "upper": 1.0, "n_basis": 3}, "n_basis must be an integer of at least degree"),
        ({"lower": 0.0, "upper": 1.0, "n_basis": 7.5}, "got 7.5"),
        ({"lower": 0.0, "upper": 1.0, "n_basis": 7, "degree": 0}, "degree must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_bases_are_refused(arguments, text):
    with pytest.raises(InputError, match=text):
        BSplines.uniform(**arguments)
    with pytest.raises(InputError, match=text):
        BSplines.clamped(**arguments)
