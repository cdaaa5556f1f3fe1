"""Recorded fits of refund's pffr, pfr, fosr and fpcr, and which terms stand for which call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fdadp import terms
from fdadp.functional.fpca import Eigenbasis
from fdadp.terms.spec import TermSpec
from r_bridge.refund_case import CoefficientFunction, Recorded, TermCase

LEGACY = "simpson_legacy"
"""Refund's default weights: Simpson's, divided by n where n - 1 is right."""

_THIN_PLATE = {
    "fitted": 2e-9,
    "predicted": 2e-9,
    "standard errors": 2e-9,
    "edf": 2e-9,
    "residual variance": 2e-9,
    "score": 1e-6,
}
"""Of this thin-plate spline's eight eigenvectors mgcv's last is off by 9e-10, ours by 2e-14 (against 40 digits)."""

ILL_CONDITIONED = {"fitted": 1e-9, "predicted": 1e-9, "edf": 1e-9, "residual variance": 1e-9, "standard errors": 3e-9}
ILL_CONDITIONED |= {"term": 1e-9, "coefficient function": 5e-9, "its se": 3e-9, "its se with mean": 3e-9}
"""Ratios of smoothing parameters up to 1e10: what mgcv's own coordinates keep of the digits."""

SCORE_OF_SURFACES = {
    "score": "mgcv's constrained coordinates change it by a constant, and it counts what is not identified"
}

FLAT = {"fitted, our optimum": 5e-4}
"""The smoothing parameter goes to infinity, where the score is flat."""

BY_NEWTON = {"fitted": 1e-10, "predicted": 1e-10, "standard errors": 1e-10, "edf": 1e-10}
"""Where mgcv's and our iterations for the coefficients stop."""

REGIONS = ("Arctic", "Atlantic", "Continental", "Pacific")


def _whole(given: Recorded) -> tuple[int, ...]:
    return tuple(int(v) for v in np.ravel(given["k"]))


def _surfaces(*axes: tuple[str, Sequence[str]], less: str = "") -> Any:
    """Reader of ``coef.pffr``'s functions: our names of the terms and of their axes, in the recorded order."""

    def read(output: Recorded) -> list[CoefficientFunction]:
        found = []
        for (term, names), part in zip(axes, output["surfaces"], strict=True):
            points = dict(zip(names, (part[axis] for axis in "xyz" if axis in part), strict=True))
            se = {"its se": part["se_without_mean"], "its se with mean": part["se"]}
            of_differences = less in points
            found.append(
                CoefficientFunction(
                    term=term,
                    points=points,
                    value=part["value"],
                    se={} if of_differences else se,
                    less=less if of_differences else "",
                )
            )
        return found

    return read


MEAN = ("s(t)", ("t",))


def _levels(names: Sequence[str]) -> Any:
    """Reader of a factor's functions: one a level."""

    def read(output: Recorded) -> list[CoefficientFunction]:
        mean, *others = output["surfaces"]
        found: list[CoefficientFunction] = _surfaces(MEAN)({"surfaces": [mean]})
        for level, part in zip(names, others, strict=True):
            points = {"t": part["x"], "region": np.array([level])}
            se = {"its se": part["se_without_mean"]}
            found.append(CoefficientFunction(term="region", points=points, value=part["value"], se=se))
        return found

    return read


def _ff(record: str) -> tuple[TermCase, TermCase]:
    """Both recorded fits of a linear function-on-function case."""
    functions = _surfaces(MEAN, ("ff(X)", ("s", "t")))
    return (
        TermCase(
            record=record,
            part="default",
            call="pffr(Y ~ ff(X, xind = s), yind = t)",
            terms=lambda given: [terms.ff("X", rule=LEGACY)],
            functions=functions,
        ),
        TermCase(
            record=record,
            part="trapezoidal",
            call='ff(X, integration = "trapezoidal", splinepars = list(m = list(c(2, 2), c(2, 2)), k = c(7, 7)))',
            terms=lambda given: [terms.ff("X", k=_whole(given), m=((2, 2), (2, 2)))],
            functions=functions,
        ),
    )


def _sff(record: str) -> TermCase:
    return TermCase(
        record=record,
        call='pffr(Y ~ sff(X, integration = "trapezoidal", splinepars = list(m = c(2, 2, 2), k = c(5, 5, 5))))',
        terms=lambda given: [terms.sff("X", k=_whole(given))],
        functions=_surfaces(MEAN, ("sff(X)", ("t", "s", "x")), less="x"),
        tolerances=ILL_CONDITIONED,
        left_out=SCORE_OF_SURFACES,
    )


def _pfr(kind: str, rule: str) -> TermCase:
    """One of the recorded fits of scalars on a curve."""

    def functions(output: Recorded) -> list[CoefficientFunction]:
        curve = output["curve"]
        axes = ("s",) if kind == "lf" else ("s", "x")
        points = {axis: np.unique(column) for axis, column in zip(axes, np.transpose(curve["grid"]), strict=True)}
        less = "" if kind == "lf" else "x"
        return [CoefficientFunction(term=f"{kind}(X)", points=points, value=curve["value"], less=less)]

    def make(given: Recorded) -> list[TermSpec]:
        weights = LEGACY if rule == "simpson" else "trapezoid"
        k = _whole(given)
        return [terms.lf("X", k=k[0], rule=weights) if kind == "lf" else terms.af("X", k=k, rule=weights)]

    def read(output: Recorded) -> dict[str, Any]:
        rows = np.asarray(output["design"])
        se = np.sqrt(np.einsum("ij,jk,ik->i", rows, output["Vp"], rows))
        return {**output, "predicted": output["fitted"], "predicted_se": se}  # of the training rows

    return TermCase(
        record=f"pfr_{kind}_dti",
        part=rule,
        call=f'pfr(y ~ {kind}(X, argvals = s, k = {"20" if kind == "lf" else "c(8, 8)"}, bs = "ps"))',
        terms=make,
        grids={"X": "argvals"},
        scalar=True,
        read=read,
        functions=functions,
        tolerances={**FLAT, **(ILL_CONDITIONED if kind == "af" else {})},
        left_out=SCORE_OF_SURFACES if kind == "af" else {},
    )


def _fpcr(part: str, call: str, **settings: Any) -> TermCase:
    def functions(output: Recorded) -> list[CoefficientFunction]:
        points = {"s": np.linspace(0, 1, np.size(output["fhat"]))}
        se = {"its se": output["se"]}
        return [CoefficientFunction(term="fpcr(X)", points=points, value=output["fhat"], se=se)]

    return TermCase(
        record="fpcr_dti",
        part=part,
        call=call,
        terms=lambda given: [terms.fpcr("X", rule="sum", **settings)],
        grids={"X": "argvals"},
        scalar=True,
        read=lambda output: {**output, "edf_total": output["edf"]},
        functions=functions,
    )


def _fosr(part: str, call: str, names: dict[str, str], **more: Any) -> TermCase:
    """Effects of all columns of a design at once; their curves are predictions of rows of zeros and ones."""

    def read(output: Recorded) -> dict[str, Any]:
        curves = np.transpose(output["est"])
        found = {ours: output[theirs] for ours, theirs in names.items()}
        return found | ({"predicted": curves + (np.arange(3) > 0)[:, None] * curves[0]} if "fitted" in names else {})

    return TermCase(
        record="fosr_dti",
        part=part,
        call=call,
        terms=lambda given: [terms.fosr(("case", "female"))],
        columns={"case": "case", "female": "female"},
        grids={"Y": "argvals"},
        settings={"intercept": False},
        read=read,
        new=lambda given: {"case": np.array([0.0, 1.0, 0.0]), "female": np.array([0.0, 0.0, 1.0])},
        **more,
    )


def _ffpc(given: Recorded) -> list[TermSpec]:
    """Components that are the single points: the scores are refund's own."""
    scores, numbers = given["scores"], given["numbers"]
    unit = np.ones(numbers.size)
    basis = Eigenbasis(numbers, unit, 0 * unit, np.diag(unit), scores.var(axis=0), 0.0, unit / unit.size)
    return [terms.ffpc("X", basis=basis)]


def _long(given: Recorded) -> pd.DataFrame:
    """The response at points of each curve's own."""
    parts = given["sparse"]
    row = np.ravel(parts["obs"]).astype(int) - 1
    return pd.DataFrame({"row": row, "t": np.ravel(parts["index"]), "value": np.ravel(parts["value"])})


def _live(part: str, call: str, make: Callable[[], Sequence[TermSpec]], *columns: str, **more: Any) -> TermCase:
    """A fit of the live session."""
    grids = {"X": "s", "Xt": "t"}
    return TermCase(
        record="pffr_live",
        part=part,
        call=f"pffr(Y ~ {call})",
        terms=lambda given: make(),
        columns={name: name for name in columns},
        grids={"Y": "t"} | {name: grids[name] for name in columns if name in grids},
        **more,
    )


CASES: tuple[TermCase, ...] = (
    *_ff("pffr_ff_canadian"),
    *_ff("pffr_ff_dti2"),
    *_ff("pffr_ff_sim"),
    _sff("pffr_sff_canadian"),
    _sff("pffr_sff_sim"),
    TermCase(
        record="pffr_concurrent_canadian",
        call="pffr(Y ~ X, yind = t)",
        terms=lambda given: [terms.concurrent("X")],
        grids={"X": "t", "Y": "t"},
        functions=_surfaces(MEAN, ("concurrent(X)", ("t",))),
    ),
    *(
        TermCase(
            record="pffr_fos_canadian",
            part=part,
            call=call,
            terms=lambda given, coding=coding: [terms.factor("region", coding=coding)],  # type: ignore[misc]
            columns={"region": "region"},
            grids={"Y": "t"},
            new=lambda given: {"region": np.array(given["region_levels"], dtype=str)},
            functions=_levels(levels),
        )
        for part, coding, levels, call in (
            ("factor", "levels", REGIONS, "pffr(Y ~ region, yind = t)"),
            ("dummies", "treatment", REGIONS[1:], "pffr(Y ~ Atlantic + Continental + Pacific, yind = t)"),
        )
    ),
    *(_pfr(kind, rule) for kind in ("lf", "af") for rule in ("simpson", "trapezoidal")),
    _fpcr("ncomp8", "fpcr(y, X, nbasis = 30, ncomp = 8)", n_components=8, n_basis=30),
    _fpcr("default", "fpcr(y, X)"),
    _fosr(
        "ols_fixed",
        'fosr(Y = Y, X = X, method = "OLS", lambda = 1e-3)',
        {"sp": "lambda", "fitted": "yhat", "edf_total": "edf"},
        searched=False,
    ),
    _fosr(
        "gls",
        'fosr(Y = Y, X = X, method = "GLS")',
        {"sp": "lambda", "edf_total": "edf"},
        left_out={"fitted": "of a second fit, weighted by the raw covariance of the first one's residuals"},
    ),
    _live("hist", 'ff(X, limits = "s<=t")', lambda: [terms.ff("X", limits="s<=t", rule=LEGACY)], "X"),
    _live("hist_lt", 'ff(X, limits = "s<t")', lambda: [terms.ff("X", limits="s<t", rule=LEGACY)], "X"),
    _live(
        "const",
        "c(x) + ff(X)",
        lambda: [terms.linear("x", constant=True), terms.ff("X", rule=LEGACY)],
        "x",
        "X",
    ),
    _live("smooth_ps", 's(z, bs = "ps", k = 8, m = 2)', lambda: [terms.s("z", bs="ps", k=8, m=2)], "z"),
    _live("smooth_default", "s(z)", lambda: [terms.s("z")], "z", tolerances=_THIN_PLATE),
    _live("re", 'c(s(g, bs = "re")) + x', lambda: [terms.re("g"), terms.linear("x")], "g", "x"),
    _live(
        "poisson",
        "ff(X) + x, family = poisson()",
        lambda: [terms.ff("X", rule=LEGACY), terms.linear("x")],
        "X",
        "x",
        response="Yp",
        predicts="link",
        settings={"family": "poisson"},
        tolerances=BY_NEWTON,
    ),
    TermCase(
        record="pffr_live",
        part="sparse",
        call="pffr(Y ~ ff(X) + x, ydata = ydata)",
        terms=lambda given: [terms.ff("X", rule=LEGACY), terms.linear("x")],
        columns={"X": "X", "x": "x"},
        grids={"X": "s"},
        long=_long,
    ),
    TermCase(
        record="pffr_live",
        part="ffpc",
        call="pffr(Y ~ ffpc(X))",
        terms=_ffpc,
        columns={"X": "scores"},
        grids={"X": "numbers", "Y": "t"},
        read=lambda output: {name: v for name, v in output.items() if not name.startswith("predicted")},
        left_out={"predicted": "the scores of the new rows were not recorded"},
    ),
)

NOT_COMPARED: dict[str, str] = {
    "fosr_dti, ols_cv_90": "refund weights the left-out curves with the weights of the grid",
}
"""Recorded fits that have no case, and why."""


def cases_of(record: str) -> tuple[TermCase, ...]:
    """The fits of a recorded case that are compared."""
    return tuple(case for case in CASES if case.record == record)
