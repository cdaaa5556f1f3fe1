"""Ordinary fits of the additive model: one term on eigenfunctions, fitted as any other, and what is published of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.calling_language import warn
from fdadp._common.typing import ArrayLike, CurveData, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.containers.opened_tables import OpenedCurves, in_memory, on_grid, pieces_together
from fdadp.functional.fpca.eigenbasis import check_observed
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.private.release.mechanisms import NoiseAfterFit, Pass, mechanism_of
from fdadp.regression.additive.fitted_surface import FittedSurface
from fdadp.regression.fit_in_chunks import ChunkedResponses, ResponseReader
from fdadp.regression.fit_in_memory import Estimate, ModelSpec, estimate_whole, estimated, read_terms
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.chunked_records import ChunkedRecords
from fdadp.regression.reading.missing_entries import Completion, completed_response
from fdadp.solve.eigen.fit_to_scores import ComponentsFit
from fdadp.solve.eigen.surface_fit import SurfaceFit, surface_of_gaps
from fdadp.solve.fit.observations import ChunkedObservations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.curves.functional_additive import CentredSurface
from fdadp.terms.records import Records, SeenCurves, TrainingSummary

if TYPE_CHECKING:
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
    from fdadp.regression.reading.training_rows import Training


def settings_of(model: AdditiveFunctionOnFunction) -> ModelSettings:
    """The settings of the same model as a regression on terms."""
    k, m = (1, model.n_basis_s, model.n_basis_x), (model.degree - 1, model.penalty_order)  # none along the response
    return ModelSettings(
        formula=(CentredSurface("X", k, m, model.quadrature, model.period_s, model.x_transform),),
        smoothing=model.smoothing,
        missing=model._gaps,
        progress=model.progress,
        person_rows=model.person_rows,
        max_rows=model.max_rows,
        response_basis="eigen",
        n_components=model.n_components,
        fpca=model.fpca,
        n_unpenalized=model._n_unpenalized,
    )


def fit_curves(
    model: AdditiveFunctionOnFunction,
    X: CurveData,
    Y: CurveData,
    s: ArrayLike | None,
    t: ArrayLike | None,
    groups: Any,
    by: str | None,
) -> FittedSurface:
    """Fit to curves that are all at hand."""
    x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
    if len(x) != len(y):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    if by != "position":
        same_rows(X=x, Y=y, groups=groups)
    gaps = model._gaps == "fpca" and bool(np.isnan(y.values).any())
    if gaps:
        check_observed(y.values, "Y")
    whole = completed_response(y, "gaps" if gaps else model._gaps)
    _, training, persons, estimate = estimate_whole(settings_of(model), {"X": x}, whole, None, groups=groups, by=by)

    def read(_: str) -> Any:
        records, own = training.observed.records, whole
        if gaps:  # the published scheme is about complete curves
            about = training.observed.predictor(estimate.fit.form, estimate.fit.coefficients)
            own = completed_response(y, "fpca", about)
        return iter([(records, own)])

    return _fitted(model, estimate, training, read, persons, x, y)


def fit_chunks(
    model: AdditiveFunctionOnFunction, pairs: ChunkedRecords, x_range: tuple[float, float] | None, kind: Any
) -> FittedSurface:
    """Fit to pairs of curves in chunks."""
    settings = settings_of(model)
    spec = ModelSpec(settings=settings, parsed=read_terms(settings, dict), response="Y")
    x_range = x_range or pairs.over(_ends, _further, "range of X")
    x, y, known = pairs.head["X"], pairs.head["the response Y"], pairs.n
    curves = {"X": SeenCurves(x.grid, x_range, np.empty(0), np.empty(0))}
    read = ChunkedResponses(pairs, ResponseReader(settings.family, True, "Y"))
    observed = ChunkedObservations(read, known, np.nan, np.nan, np.nan, whole=True, weighted=False)

    def form(n: int) -> LongForm:
        """The term on bases for so many curves."""
        return LongForm((spec.parsed.terms[0].fixed(TrainingSummary(n, curves, {}, {}, pairs.over), None),), y.grid)

    own = form(known or sys.maxsize)
    estimate = estimated(spec, own, observed)
    if pairs.n != known and (again := form(pairs.n)).size != own.size:  # only now known how few curves there are
        estimate = estimated(spec, again, observed)
    return _fitted(model, estimate, None, pairs.read, None, x, replace(y, kind=kind or y.kind))


def _ends(records: Records, _: Any) -> tuple[float, float]:
    values = records.curves("X").values
    return float(values.min()), float(values.max())


def _further(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def _fitted(
    model: AdditiveFunctionOnFunction,
    estimate: Estimate,
    training: Training | None,
    read: Pass,
    persons: IntArray | None,
    x: Curves,
    y: Curves,
) -> FittedSurface:
    """The surface of a fit, to which a mechanism that is not private end to end adds its noise.

    Warns
    -----
    IdentificationWarning
        Naming what the curves do not identify.
    """
    components = estimate.components
    assert components is not None
    if isinstance(components, ComponentsFit):
        found = SurfaceFit.of(components)
    else:
        assert training is not None
        found = surface_of_gaps(components, training.observed)
    if found.unidentified:
        warn(
            f"the curves X do not identify {', '.join(found.unidentified)}: among the training curves they are "
            "functions of the other integrals of this kind, or do not vary (as for one shape times a number). They are "
            "left out; the fit is not affected, predictions for curves of another shape rest on this choice",
            IdentificationWarning,
        )
    fitted_with: dict[str, Any] = {"privacy": None}
    if model.privacy is not None:
        mechanism = mechanism_of(model.mechanism)
        assert isinstance(mechanism, NoiseAfterFit)
        fitted_with = {"privacy": replace(model.privacy), "mechanism": model.mechanism}
        found = mechanism.perturb(found, read, model.privacy, persons)
    completion = Completion.none() if training is None else training.covariates.completion
    return FittedSurface.of(found, completion, x, y, fitted_with=fitted_with)


# Pairs (X, Y) of curves as tables of two columns: all that a fit of one surface sees.


def curve_pairs(source: Any, s: Any = None, t: Any = None, progress: bool | str = "auto") -> ChunkedRecords:
    """Chunks of pairs (X, Y), or of tables with both columns, that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable, mapping of dask arrays or Partitions
        Each chunk holds curves as :func:`fdadp.functional.tables.curve_inputs.as_curves` reads them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        As of :class:`~fdadp.regression.reading.chunked_records.ChunkedRecords`.

    Raises
    ------
    InputError
        Something that cannot be read twice; while it is read, what is no pair, X and Y of different n or with other row
        labels, a value that is not finite, and what ``ChunkedRecords`` refuses.
    """
    return ChunkedRecords(source, ("X",), "Y", progress=progress, convert=partial(_table, s, t))


def pairs_of(x: Any, y: Any, s: Any = None, t: Any = None) -> Callable[[], Iterator[tuple[Any, Any]]] | None:
    """Pieces of curves of which at least one sample was opened, to be read on demand; None where none was.

    Tables of other libraries are opened before (:func:`fdadp.regression.reading.label_joins.aligned`).

    Raises
    ------
    InputError
        Samples of queries of their own, which may give their rows in another order each time.
    """
    given = {"X": x, "Y": y}
    if not any(isinstance(curves, OpenedCurves) for curves in given.values()):
        return None
    columns = {
        name: curves if isinstance(curves, OpenedCurves) else in_memory(as_curves(curves, grid, name=name))
        for (name, curves), grid in zip(given.items(), (s, t), strict=True)
    }
    pieces = pieces_together(columns)

    def pairs() -> Iterator[tuple[Any, Any]]:
        return ((on_grid(a, s, "X"), on_grid(b, t, "Y")) for a, b in pieces())

    return pairs


def _table(s: Any, t: Any, pair: Any, first: int) -> Mapping[str, Curves]:
    """Both columns of a pair, checked; `first` is the number of its first curve."""
    try:
        x_data, y_data = (pair["X"], pair["Y"]) if isinstance(pair, Mapping) and {"X", "Y"} <= pair.keys() else pair
    except (TypeError, ValueError) as exc:
        raise InputError(f"chunks: each chunk must be a pair (X, Y), got {type(pair).__name__}") from exc
    table = {"X": as_curves(x_data, s, name="X"), "Y": as_curves(y_data, t, name="Y")}
    x, y = table.values()
    if len(x) != len(y):
        raise InputError(f"X and Y must hold the same number of curves, got {len(x)} and {len(y)}")
    same_rows(**table)
    check_finite(y, "Y", first=first)  # X is checked where tables are read
    return table
