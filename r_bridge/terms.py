"""Models of several terms beside recorded fits of refund's pffr, pfr, fosr and fpcr: the public estimators.

Each :class:`TermCase` says which terms are refund's model, which rows and columns it was fitted to, and what of the
recorded fit is compared; :func:`differences` compares:

* at refund's smoothing parameters: fitted values, predictions and their standard errors, effective degrees of freedom,
  residual variance, the REML score;
* at our own optimum: the score, which must not be above that at refund's smoothing parameters (one of several local
  minima may be lower); and fitted values, where both came to the same one.

Default tolerances are :data:`TOLERANCES`; a case that needs others says so, and why.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp._common.typing import FloatArray
from fdadp.errors import FdadpWarning
from fdadp.terms.spec import TermSpec
from r_bridge.report import Difference, of_range, relative

__all__ = ["CASES", "TOLERANCES", "TermCase", "cases_of", "differences", "fit_case"]

Input = Mapping[str, Any]
"""What a recorded case was fitted to, by name."""

TOLERANCES = {
    "fitted": 1e-11,
    "predicted": 1e-11,
    "standard errors": 1e-11,
    "edf": 1e-11,
    "residual variance": 1e-11,
    "score": 1e-8,
    "our score above R's": 1e-6,
    "R's local minimum is higher": 0.0,
    "fitted, our optimum": 1e-4,
}
"""Default tolerances, relative to the largest recorded value; the score is compared absolutely, since REML is a
logarithm, and fitted values at our own optimum relative to their range."""


@dataclass(frozen=True, kw_only=True)
class TermCase:
    """One recorded fit of refund, and the same model here.

    Attributes
    ----------
    record, part : str
        The recorded case, and the fit within its output; ``""`` where there is one.
    call : str
        Refund's call.
    terms : callable
        Given the recorded input, the terms.
    columns, grids : mapping of str to str
        Column of the model: its name in the input; and that of its grid.
    new : callable, optional
        Given the recorded input, rows to predict; default the rows ``test``.
    scalar : bool
        Whether the response is a number.
    lower : float
        By how much our score is lower at least, where refund sits in a local minimum of REML; fitted values at our own
        optimum are not compared then.
    tolerances : mapping of str to float
        Where they are others than :data:`TOLERANCES`.
    left_out : mapping of str to str
        What is not compared, and why.
    """

    record: str
    part: str = ""
    call: str
    terms: Callable[[Input], Sequence[TermSpec]]
    columns: Mapping[str, str] = field(default_factory=lambda: {"X": "X"})
    grids: Mapping[str, str] = field(default_factory=lambda: {"X": "s", "Y": "t"})
    new: Callable[[Input], Mapping[str, Any]] | None = None
    scalar: bool = False
    lower: float = 0.0
    tolerances: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in reports."""
        return f"{self.record}, {self.part}" if self.part else self.record

    def output(self, record: Input) -> Mapping[str, Any]:
        """The recorded fit."""
        found: Mapping[str, Any] = record["output"][self.part] if self.part else record["output"]
        return found

    def training(self, record: Input) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Data and grids of the fit."""
        given = record["input"]
        response = "y" if self.scalar else "Y"
        data = {name: _rows(given, source, "train") for name, source in {**self.columns, response: response}.items()}
        return data, {name: np.ravel(given[source]) for name, source in self.grids.items()}

    def newcomers(self, record: Input) -> Mapping[str, Any] | None:
        """Rows that refund predicted; None where it did not."""
        given = record["input"]
        if "predicted" not in self.output(record):
            return None
        if self.new is not None:
            return self.new(given)
        return {name: _rows(given, source, "test") for name, source in self.columns.items()}

    def model(self, given: Input, **settings: Any) -> Any:
        """The public estimator, not fitted."""
        kind = ScalarRegression if self.scalar else FunctionalRegression
        return kind(self.terms(given), **settings)


def _rows(given: Input, source: str, which: str) -> Any:
    """Rows of a column of a recorded input, counted from 1 there; all where it has no such split."""
    values = np.asarray(given[source])
    values = values.astype(str) if values.dtype.kind in "OU" else values.astype(np.float64)
    if min(values.shape[1:], default=1) == 1:
        values = values.ravel()
    return values[np.ravel(given[which]).astype(int) - 1] if which in given else values


def fit_case(case: TermCase, record: Input, smoothing: Any = "reml") -> Any:
    """Fit the model of a case, at smoothing parameters or by a criterion; warnings of the model are left out."""
    data, grids = case.training(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        return case.model(record["input"], smoothing=smoothing).fit(data, grids=grids)


def differences(case: TermCase, record: Input, seconds: dict[str, float] | None = None) -> Iterator[Difference]:
    """Compare one recorded fit; `seconds` gets our time for the fit with its search, by the name of the case."""
    output = case.output(record)
    same = fit_case(case, record, np.ravel(output["sp"]))
    started = time.perf_counter()
    own = fit_case(case, record)
    if seconds is not None:
        seconds[case.name] = time.perf_counter() - started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        found = {**_at_theirs(case, record, same), **_at_ours(case, same, own, output)}
    for quantity, (value, kind) in found.items():
        if quantity not in case.left_out:
            what = next(name for name in (quantity, quantity.partition(":")[0]) if name in TOLERANCES)
            tolerance = case.tolerances.get(quantity, case.tolerances.get(what, TOLERANCES[what]))
            yield Difference(case.name, quantity, value, tolerance, kind)


def _at_theirs(case: TermCase, record: Input, same: Any) -> dict[str, tuple[float, str]]:
    output, new = case.output(record), case.newcomers(record)
    found = {
        "fitted": relative(same.fitted_values_, output["fitted"]),
        "edf": relative(same.edf_, np.sum(output["edf_total"])),
        "residual variance": relative(same.sigma2_, output["sig2"]),
    }
    if new is not None:
        found["predicted"] = relative(same.predict(new), output["predicted"])
        found["standard errors"] = relative(same.predict_se(new, kind="iid"), output["predicted_se"])
    several = {quantity: (value, "relative") for quantity, value in found.items()}
    return several | {"score": (abs(same.criterion_ - float(np.ravel(output["score"])[0])), "absolute")}


def _at_ours(case: TermCase, same: Any, own: Any, output: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    lower = same.criterion_ - own.criterion_
    found = {"our score above R's": (max(-lower, 0.0) / (1 + abs(same.criterion_)), "excess")}
    if case.lower:
        return found | {"R's local minimum is higher": (max(case.lower - lower, 0.0), "absolute")}
    return found | {"fitted, our optimum": (of_range(own.fitted_values_, output["fitted"]), "of range")}


LEGACY = "simpson_legacy"
"""Refund's default weights: Simpson's, divided by n where n - 1 is right."""

THIN_PLATE = {
    "fitted": 2e-9,
    "predicted": 2e-9,
    "standard errors": 2e-9,
    "edf": 2e-9,
    "residual variance": 2e-9,
    "score": 1e-6,
}
"""Of this thin-plate spline's eight eigenvectors mgcv's last is off by 9e-10, ours by 2e-14 (against 40 digits)."""


def _k(given: Input) -> tuple[int, ...]:
    return tuple(int(v) for v in np.ravel(given["k"]))


def _ff(record: str) -> tuple[TermCase, TermCase]:
    """Both recorded fits of a linear function-on-function case."""
    return (
        TermCase(
            record=record,
            part="default",
            call="pffr(Y ~ ff(X, xind = s), yind = t)",
            terms=lambda given: [terms.ff("X", rule=LEGACY)],
            lower=7.8 if record == "pffr_ff_dti2" else 0.0,
        ),
        TermCase(
            record=record,
            part="trapezoidal",
            call='ff(X, integration = "trapezoidal", splinepars = list(m = list(c(2, 2), c(2, 2)), k = c(7, 7)))',
            terms=lambda given: [terms.ff("X", k=_k(given), m=((2, 2), (2, 2)))],
        ),
    )


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
    TermCase(
        record="pffr_concurrent_canadian",
        call="pffr(Y ~ X, yind = t)",
        terms=lambda given: [terms.concurrent("X")],
        grids={"X": "t", "Y": "t"},
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
    _live("smooth_default", "s(z)", lambda: [terms.s("z")], "z", tolerances=THIN_PLATE),
    _live("re", 'c(s(g, bs = "re")) + x', lambda: [terms.re("g"), terms.linear("x")], "g", "x"),
    *(
        TermCase(
            record="pffr_fos_canadian",
            part=part,
            call=call,
            terms=lambda given, coding=coding: [terms.factor("region", coding=coding)],  # type: ignore[misc]
            columns={"region": "region"},
            grids={"Y": "t"},
            lower=lower,
            new=lambda given: {"region": np.array(given["region_levels"], dtype=str)},
        )
        for part, coding, lower, call in (
            ("factor", "levels", 0.4, "pffr(Y ~ region, yind = t)"),
            ("dummies", "treatment", 0.0, "pffr(Y ~ Atlantic + Continental + Pacific, yind = t)"),
        )
    ),
)

NOT_COMPARED: dict[str, str] = {}
"""Recorded fits that have no case, and why."""


def cases_of(record: str) -> tuple[TermCase, ...]:
    """The fits of a recorded case that are compared."""
    return tuple(case for case in CASES if case.record == record)
