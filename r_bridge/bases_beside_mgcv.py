"""Bases, penalties and quadrature weights beside mgcv's, fda's and refund's. Tolerances are rounding: 1e-12."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.bsplines import BSplines
from r_bridge.difference_report import Difference, absolute, relative
from r_bridge.mgcv_tensor_products import TensorProduct, te_margin

CASES = (
    "basis_ps_k7_m22",
    "basis_ps_k10_m21",
    "basis_bs_cubic",
    "basis_fda_bspline",
    "tensor_te_k76",
    "quadrature",
)

RULES = {"simpson": "simpson_legacy", "trapezoidal": "trapezoid", "riemann": "riemann"}
"""refund's name of a rule, and ours."""


def differences(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case of :data:`CASES`."""
    case = str(record["meta"]["case"][0])
    compare = {"basis_fda_bspline": _clamped, "tensor_te_k76": _tensor, "quadrature": _quadrature}.get(case, _uniform)
    for what, value in compare(record):
        yield Difference(case, what, value, 1e-12)


def _uniform(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    given, out = record["input"], record["output"]
    pspline = "_ps_" in str(record["meta"]["case"][0])
    m = given["m"].astype(int)
    basis = BSplines.uniform(given["x"].min(), given["x"].max(), int(given["k"][0]), degree=int(m[0]) + pspline)
    penalty = basis.difference_penalty(int(m[1])) if pspline else basis.derivative_penalty(int(m[1]))
    yield "knots", relative(basis.knots, out["knots"])
    yield "design", absolute(basis.design(given["x"]), out["X"])
    yield "design at new points", relative(basis.design(given["xnew"]), out["Xnew"])
    yield "penalty", relative(penalty, out["S_raw"])
    yield "penalty scale", relative(np.abs(penalty).sum(axis=0).max(), out["S_scale"])


def _clamped(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, part in record["output"].items():
        low, high = part["range"]
        basis = BSplines.clamped(low, high, int(part["nbasis"][0]), degree=int(part["norder"][0]) - 1)
        for order, key in enumerate(("eval", "eval_d1", "eval_d2")):
            yield f"{name}, derivative {order}", relative(basis.design(part["x"], order), part[key])
            yield f"{name}, penalty {order}", relative(basis.derivative_penalty(order), part[f"penalty{order}"])


def _tensor(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    given, out = record["input"], record["output"]["np_true"]
    x, u, k = given["x"], given["u"], given["k"].astype(int)
    margins = (
        te_margin(x.min(), x.max(), int(k[0])),
        te_margin(u.min(), u.max(), int(k[1])),
    )
    row_norm = float(np.abs(TensorProduct(*margins, 1.0).design(x, u)).sum(axis=1).max())
    smooth = TensorProduct(*margins, row_norm)
    for name, margin, to_raw in zip("xu", margins, out["XP"], strict=True):
        yield f"reparametrisation of {name}", relative(margin.to_basis, to_raw)
    yield "design", relative(smooth.design(x, u), out["X"])
    yield "design at new points", relative(smooth.design(given["xnew"], given["unew"]), out["Xnew"])
    yield "penalty scales", relative(smooth.penalty_scales, out["S_scale"])
    centred = smooth.mgcv_coordinates(smooth.design(x, u).sum(axis=0))
    yield "centred design", relative(out["X"] @ centred, out["centred"]["X"])


def _quadrature(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, part in record["output"].items():
        for theirs, ours in RULES.items():
            # On an uneven grid refund replaces Simpson's rule by the trapezoid.
            rule = "trapezoid" if name.startswith("uneven") and theirs == "simpson" else ours
            yield f"{name}, {theirs}", relative(quadrature_weights(part["s"], rule), part[theirs])
