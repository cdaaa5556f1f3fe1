"""A recorded fit of refund on several terms, and the same model here: what is compared, and how near it must be.

:func:`differences` fits the public estimator twice, and compares

* at refund's smoothing parameters: fitted values, predictions and their standard errors, what each term adds to them,
  effective degrees of freedom, residual variance, the REML score, coefficient functions and their standard errors;
* at our own optimum: the score, which must not be above that at refund's smoothing parameters (it may be lower: REML
  has local minima); and fitted values, where both came to the same one.

Default tolerances are :data:`TOLERANCES`; a case that needs others says so, and why.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fdadp import FunctionalRegression, ScalarRegression
from fdadp._common.typing import FloatArray
from fdadp.errors import FdadpWarning
from fdadp.terms.spec import TermSpec
from r_bridge.difference_report import Difference, of_range, relative

Recorded = Mapping[str, Any]
"""A part of a recorded case: numbers, arrays and parts of it by name."""

TOLERANCES = {
    "fitted": 1e-11,
    "predicted": 1e-11,
    "standard errors": 1e-11,
    "edf": 1e-11,
    "residual variance": 1e-11,
    "score": 1e-8,
    "term": 5e-11,
    "coefficient function": 5e-11,
    "its se": 5e-11,
    "its se with mean": 5e-11,
    "our score above R's": 1e-6,
    "fitted, our optimum": 1e-4,
}
"""Default tolerances, relative to the largest recorded value (of terms: of the fitted values). The score is compared
absolutely, since REML is a logarithm; fitted values at our own optimum relative to their range."""


@dataclass(frozen=True, kw_only=True)
class CoefficientFunction:
    """A recorded coefficient function on a grid.

    Attributes
    ----------
    term : str
        Our name of the term.
    points : mapping of str to array
        Points of its axes, the first fastest.
    value : ndarray
    se : mapping of str to ndarray
        Standard errors, by the quantity of :data:`TOLERANCES`.
    less : str
        Axis at whose middle point the function is subtracted: only such differences are identified then.
    """

    term: str
    points: Mapping[str, Any]
    value: Any
    se: Mapping[str, Any] = field(default_factory=dict)
    less: str = ""


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
    response : str
        Name of the response in the input, where it is not ``Y`` or ``y``.
    scalar : bool
        Whether the response is a number.
    long : callable, optional
        Given the recorded input, the response as a long table.
    settings : mapping
        Of the estimator, beyond the terms.
    read : callable
        The recorded fit with the names of a recorded pffr (``fitted, sp, edf_total, sig2, score, predicted,
        predicted_se, predicted_terms``), where it has others.
    new : callable, optional
        Given the recorded input, rows to predict; default the rows ``test``.
    predicts : {"response", "link"}
        What was predicted: means, or linear predictors.
    functions : callable
        Given the recorded fit, its coefficient functions.
    searched : bool
        Whether refund chose the smoothing parameters by REML.
    only_near : bool
        Compare fitted values at our own optimum only where the smoothing parameters are within a factor of 3: elsewhere
        the score is flat, and where a search stops is chance.
    tolerances : mapping of str to float
        Where they are others than :data:`TOLERANCES`.
    left_out : mapping of str to str
        What is not compared, and why.
    """

    record: str
    part: str = ""
    call: str
    terms: Callable[[Recorded], Sequence[TermSpec]]
    columns: Mapping[str, str] = field(default_factory=lambda: {"X": "X"})
    grids: Mapping[str, str] = field(default_factory=lambda: {"X": "s", "Y": "t"})
    response: str = ""
    scalar: bool = False
    long: Callable[[Recorded], pd.DataFrame] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Recorded], Recorded] = dict
    new: Callable[[Recorded], Recorded] | None = None
    predicts: str = "response"
    functions: Callable[[Recorded], Sequence[CoefficientFunction]] = lambda output: ()
    searched: bool = True
    only_near: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in reports."""
        return f"{self.record}, {self.part}" if self.part else self.record

    def output(self, record: Recorded) -> Recorded:
        """The recorded fit."""
        return self.read(record["output"][self.part] if self.part else record["output"])

    def training(self, record: Recorded) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Data and grids of the fit."""
        given = inputs(record)
        own = "y" if self.scalar else "Y"
        columns = {**({} if self.long else {own: self.response or own}), **self.columns}
        data = {name: _rows(given, source, "train") for name, source in columns.items()}
        return data, {name: np.ravel(given[source]) for name, source in self.grids.items()}

    def newcomers(self, record: Recorded) -> Recorded:
        """Rows that refund predicted."""
        given = inputs(record)
        if self.new is not None:
            return self.new(given)
        return {name: _rows(given, source, "test") for name, source in self.columns.items()}


def inputs(record: Recorded) -> Recorded:
    """What models are fitted to: the recorded input; scores and design columns that are given otherwise, too."""
    given = {**record["output"], **record["input"]}
    if "fixed_lambda" in given:  # of fosr, whose design is 1, case, female
        given |= {"case": given["X"][:, 1], "female": given["X"][:, 2]}
    if "ffpc_scores" in given:  # as curves on the points 0, 1, ...; refund takes 15
        given |= {"scores": given["ffpc_scores"][:, :15], "numbers": np.arange(15.0)}
    return given


def _rows(given: Recorded, source: str, which: str) -> Any:
    """Rows of a column of a recorded input, counted from 1 there; all where it has no such split."""
    values = np.asarray(given[source])
    values = values.astype(str) if values.dtype.kind in "OU" else values.astype(np.float64)
    if min(values.shape[1:], default=1) == 1:
        values = values.ravel()
    return values[np.ravel(given[which]).astype(int) - 1] if which in given else values


def fit_case(case: TermCase, record: Recorded, smoothing: Any = "reml") -> Any:
    """Fit the model of a case with refund's sizes, at smoothing parameters or by a criterion, without its warnings."""
    data, grids = case.training(record)
    more: dict[str, Any] = {} if case.long is None else {"response": case.long(inputs(record))}
    kind = ScalarRegression if case.scalar else FunctionalRegression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        model = kind(case.terms(inputs(record)), smoothing=smoothing, **case.settings)
        model.k = "refund"
        return model.fit(data, grids=grids, **more)


def differences(case: TermCase, record: Recorded, seconds: dict[str, float] | None = None) -> Iterator[Difference]:
    """Compare one recorded fit; `seconds` gets our time for the fit with its search, by the case's name, and R's."""
    output = case.output(record)
    same = fit_case(case, record, np.ravel(output["sp"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        found = [*_fit(same, output), *_predictions(case, record, same), *_functions(case, output, same)]
    if case.searched:
        started = time.perf_counter()
        own = fit_case(case, record)
        if seconds is not None:
            seconds[case.name] = time.perf_counter() - started
            if "seconds" in output:
                seconds[f"{case.name}, R"] = float(np.ravel(output["seconds"])[0])
        found += _at_ours(case, same, own, output)
    for quantity, value, kind in found:
        if quantity not in case.left_out:
            what = quantity.partition(": ")[0]
            yield Difference(case.name, quantity, value, case.tolerances.get(what, TOLERANCES[what]), kind)


Found = tuple[str, float, str]
"""Quantity, how far it is from refund's, and relative to what."""


def _fit(same: Any, output: Recorded) -> Iterator[Found]:
    sources = {"fitted": same.fitted_values_, "edf_total": same.edf_, "sig2": same.sigma2_}
    names = {"fitted": "fitted", "edf_total": "edf", "sig2": "residual variance"}
    for source, ours in sources.items():
        if source in output:
            theirs = output[source]
            yield names[source], relative(ours, np.sum(theirs) if source == "edf_total" else theirs), "relative"
    if "score" in output:
        yield "score", abs(same.criterion_ - float(np.ravel(output["score"])[0])), "absolute"


def _predictions(case: TermCase, record: Recorded, same: Any) -> Iterator[Found]:
    output = case.output(record)
    if "predicted" not in output:
        return
    new = case.newcomers(record)
    yield "predicted", relative(same.predict(new, type=case.predicts), output["predicted"]), "relative"
    if "predicted_se" in output:
        yield (
            "standard errors",
            relative(same.predict_se(new, kind="iid", type=case.predicts), output["predicted_se"]),
            "relative",
        )
    parts = {name: part for name, part in same.predict(new, type="terms").items() if name != "(Intercept)"}
    theirs = list(output.get("predicted_terms", ()))
    if theirs:
        last = len(parts) - 1
        theirs = [*theirs[:last], sum(theirs[last:])]  # a factor has one part a level
        size = float(np.abs(output["fitted"]).max())
        for (name, part), recorded in zip(parts.items(), theirs, strict=True):
            apart = np.asarray(part) - recorded
            constant = np.mean(apart) if name.startswith(("sff", "af")) else 0.0  # belongs to the intercept as well
            yield f"term: {name}", float(np.abs(apart - constant).max()) / size, "relative"


def _functions(case: TermCase, output: Recorded, same: Any) -> Iterator[Found]:
    for function in case.functions(output):
        axes = list(function.points)
        frame = same.coef(function.term, at=function.points).sort_values(axes[::-1])
        shape = tuple(np.size(function.points[axis]) for axis in axes)
        ours, theirs = (np.reshape(np.ravel(v), shape, order="F") for v in (frame["value"], function.value))
        if function.less:
            axis = axes.index(function.less)
            ours, theirs = (v - np.take(v, [shape[axis] // 2], axis) for v in (ours, theirs))
        yield f"coefficient function: {function.term}", relative(ours, theirs), "relative"
        for quantity, recorded in function.se.items():
            mean = quantity == "its se with mean"
            frame = same.coef(function.term, True, at=function.points, kind="iid", with_mean=mean)
            yield f"{quantity}: {function.term}", relative(frame.sort_values(axes[::-1])["se"], recorded), "relative"


def _at_ours(case: TermCase, same: Any, own: Any, output: Recorded) -> Iterator[Found]:
    above = own.criterion_ - same.criterion_
    yield "our score above R's", max(0.0, above) / (1 + abs(same.criterion_)), "excess"
    apart = np.abs(np.log(own.smoothing_parameters_ / same.smoothing_parameters_)).max(initial=0.0)
    if "fitted" in output and not (case.only_near and apart > np.log(3)):
        yield "fitted, our optimum", of_range(own.fitted_values_, output["fitted"]), "of range"
