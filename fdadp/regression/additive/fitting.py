"""Ordinary fits of the additive model: from curves to sums over curves, and to a fitted surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.door import warn
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, BoolArray, CurveData, FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.fpca.sparse import check_observed
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.curves import as_curves
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.private.release.mechanisms import NoiseAfterFit, mechanism_of
from fdadp.regression.additive.fitted import FittedSurface
from fdadp.regression.reading.chunked_records import CurvePairs
from fdadp.regression.reading.completion import MissingValues
from fdadp.regression.reading.person_rows import check_max_rows, check_person_rows, person_weights
from fdadp.responses import Functional
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.eigen.surface_of_gaps import surface_of_gaps
from fdadp.solve.fit.least_squares import ScoresFit, fit_scores, vary
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.sums import TrainingSums, add_up
from fdadp.solve.linear.moments import Moments
from fdadp.terms.curves.functional_additive import surface_on
from fdadp.terms.sizes import basis_sizes
from fdadp.terms.spec import TermDesign
from fdadp.terms.surface import QuantileTransform, Surface

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


def fit_curves(
    model: AdditiveFunctionOnFunction,
    X: CurveData,
    Y: CurveData,
    s: ArrayLike | None,
    t: ArrayLike | None,
    groups: Any,
    *,
    joined: str | None,
    by_position: bool,
) -> FittedSurface:
    """Fit to curves that are all at hand."""
    x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
    if len(x) != len(y):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    if not by_position:
        same_rows(X=x, Y=y, groups=groups)
    persons = codes_of(groups, len(x))
    check_person_rows(model.person_rows, grouped=persons is not None)
    check_max_rows(model.person_rows, model.max_rows, 1 if persons is None else int(np.bincount(persons).max()))
    if person_weights(persons) is not None and model.person_rows != "sum":
        raise InputError(
            "person_rows must be 'sum' (each curve counts once) in an ordinary fit where persons have different "
            f"numbers of curves, got {model.person_rows!r}; FunctionalRegression has 'mean' too"
        )
    missing = MissingValues(model._gaps)
    complete_x = missing.fit_x(x)
    transform = QuantileTransform.of(complete_x) if model.x_transform == "quantile" else None
    if missing.how == "fpca" and np.isnan(y.values).any():
        missing.refuse_unobserved(y, "Y")
        found = _of_gaps(model, complete_x, y, transform)
        if model.privacy is not None:  # the published scheme is about complete curves
            about = found.fit.form.predictor(Records(len(x), {"X": complete_x}), found.fit.coefficients)
            y = missing.complete_y(y, about)
        chunks = CurvePairs.of(complete_x, y, model.progress)
    else:
        chunks = CurvePairs.of(complete_x, missing.complete_y(y), model.progress)
        found = estimated(model, chunks, None, transform)
    found, fitted_with = published(model, found, chunks, persons)
    return FittedSurface.of(found, missing, x, y, fitted_with=fitted_with, joined=joined)


def fit_pairs(
    model: AdditiveFunctionOnFunction, source: CurvePairs, x_range: tuple[float, float] | None, kind: Any
) -> FittedSurface:
    """Fit to pairs of curves in chunks."""
    found, fitted_with = published(model, estimated(model, source, x_range), source)
    x, y = source.head["X"], source.head["Y"]
    y = replace(y, kind=kind or y.kind)
    return FittedSurface.of(found, MissingValues("raise"), x, y, fitted_with=fitted_with)


def estimated(
    model: AdditiveFunctionOnFunction,
    chunks: CurvePairs,
    x_range: tuple[float, float] | None = None,
    transform: QuantileTransform | None = None,
) -> SurfaceFit:
    """Fit to complete curves.

    Parameters
    ----------
    chunks : CurvePairs
    x_range : (float, float), optional
        Range of X, where it is known.
    transform : QuantileTransform, optional
        Of X.
    """
    sums = sums_of(model, chunks, x_range, transform)
    with one_blas_thread():
        return SurfaceFit.of(_scores(model, sums))


def _scores(model: AdditiveFunctionOnFunction, sums: TrainingSums) -> ScoresFit:
    """The scores of the response, fitted."""
    basis, (term,), smoothing = basis_of(model, sums), sums.designs, model.smoothing
    if not isinstance(smoothing, str):
        smoothing = _given(smoothing, (basis.n_components, len(term.penalties)))
    refuse_same_curves("X", sums.x)
    scores = fit_scores(sums, basis, smoothing, model._n_unpenalized)
    _say_what_is_not_identified(term, scores.identified)
    return scores


def _of_gaps(
    model: AdditiveFunctionOnFunction, x: Curves, y: Curves, transform: QuantileTransform | None = None
) -> SurfaceFit:
    """Fit to complete curves X, and to what was observed of the responses."""
    check_observed(y.values, "Y")
    sums = sums_of(model, CurvePairs.of(x, replace(y, values=np.nan_to_num(y.values)), model.progress), None, transform)
    refuse_same_curves("X", sums.x)
    (term,), observed = sums.designs, Observations(Records(len(x), {"X": x}), y.values)
    assert isinstance(term, Surface)
    response = Functional(model.n_components, model.fpca)
    found = surface_of_gaps(term, sums.x, observed, y.grid, response, model.smoothing, model._n_unpenalized)
    slopes = found.fit.identified[len(found.by_function.rest) :].reshape(-1, len(found.values))
    _say_what_is_not_identified(term, np.asarray(slopes.all(axis=1)))
    return found


def sums_of(
    model: AdditiveFunctionOnFunction,
    chunks: CurvePairs,
    x_range: tuple[float, float] | None = None,
    transform: QuantileTransform | None = None,
) -> TrainingSums:
    """Sums over the training curves."""
    x_range = x_range or chunks.range()
    s, t, known = chunks.head["X"].grid, chunks.head["Y"].grid, chunks.n
    term = surface_of(model, s, x_range, known or None, transform)
    sums = _added_up(chunks, term, t)
    if chunks.n == known:
        return sums
    again = surface_of(model, s, x_range, chunks.n)
    return sums if again.shape == term.shape else _added_up(chunks, again, t)  # few: only now known how many


def basis_of(model: AdditiveFunctionOnFunction, sums: TrainingSums) -> Eigenbasis:
    """Mean and eigenfunctions of the response."""
    y = sums.y
    least = 2 * model.penalty_order + 1
    if y.n < least:
        raise InputError(f"X and Y must hold at least {least} curves, got {y.n}")
    refuse_same_curves("Y", y)
    return Functional(model.n_components, model.fpca).fixed(y.n, y.mean, y.scatter, sums.t)


def surface_of(
    model: AdditiveFunctionOnFunction,
    grid: FloatArray,
    x_range: tuple[float, float],
    n: int | None,
    transform: QuantileTransform | None = None,
) -> Surface:
    """The term of curves whose range is known, n of them where that is."""
    return surface_on(
        "X",
        "X",
        grid,
        x_range,
        basis_sizes((model.n_basis_x, model.n_basis_s), n, grid.size, model.degree),
        (model.degree - 1, model.penalty_order),
        ("n_basis_x", "n_basis_s", "period_s"),
        rule=model.quadrature,
        period=model.period_s,
        transform=transform,
        centred=True,
    )


def published(
    model: AdditiveFunctionOnFunction, found: SurfaceFit, chunks: CurvePairs, persons: IntArray | None = None
) -> tuple[SurfaceFit, dict[str, Any]]:
    """Let a mechanism that is not private end to end add its noise; and say with which settings."""
    if model.privacy is None:
        return found, {"privacy": None}
    mechanism = mechanism_of(model.mechanism)
    assert isinstance(mechanism, NoiseAfterFit)
    settings = {"privacy": replace(model.privacy), "mechanism": model.mechanism}
    return mechanism.perturb(found, chunks.read, model.privacy, persons), settings


def _say_what_is_not_identified(term: TermDesign, identified: BoolArray) -> None:
    if identified.all():
        return
    assert isinstance(term, Surface)
    names = ", ".join(term.directions(np.flatnonzero(~identified).tolist()))
    warn(
        f"the curves X do not identify {names}: among the training curves they are functions of the other integrals of "
        "this kind, or do not vary (as for one shape times a number). They are left out; the fit is not affected, "
        "predictions for curves of another shape rest on this choice",
        IdentificationWarning,
    )


def refuse_same_curves(name: str, moments: Moments) -> None:
    """Refuse curves that are all the same but for rounding, from the moments of them or of their features.

    Raises
    ------
    InputError
        Naming the argument.
    """
    if not vary(moments):
        raise InputError(f"{name} must vary between curves, got the same curve every time")


def _added_up(chunks: CurvePairs, term: Surface, t: FloatArray) -> TrainingSums:
    return add_up([term], partial(_over_values, chunks), t)


def _over_values(chunks: CurvePairs, function: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
    return chunks.over(partial(_of_values, function), merge, "sums over curves")


def _of_values(function: Callable[..., Any], records: Records, y: Curves) -> Any:
    return function(records, y.values)


def _given(smoothing: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        return np.array(np.broadcast_to(np.asarray(smoothing, dtype=np.float64), shape))
    except (TypeError, ValueError) as exc:
        raise InputError(
            f"smoothing must be 'reml', 'gcv' or numbers of shape ({shape[1]},) or {shape}, got {smoothing!r}"
        ) from exc


def codes_of(groups: ArrayLike | None, n: int) -> IntArray | None:
    """Code of the person of each curve, from ids.

    Raises
    ------
    InputError
        Another number of ids than of curves.
    """
    if groups is None:
        return None
    if np.shape(groups) != (n,):
        raise InputError(f"groups must have shape ({n},), one entry per curve, got shape {np.shape(groups)}")
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.asarray(codes, dtype=np.int64)
