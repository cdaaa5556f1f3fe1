"""Ordinary fits of the additive model: one term on eigenfunctions, fitted as any other, and what is published of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fdadp._common.door import warn
from fdadp._common.typing import ArrayLike, CurveData, FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.functional.containers.open import opened
from fdadp.functional.containers.source_table import OpenedCurves, in_memory, on_grid, pieces_together
from fdadp.functional.fpca.basis import check_observed
from fdadp.functional.tables.alignment import same_rows
from fdadp.functional.tables.curves import as_curves, check_finite
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.functional.tables.sample import Curves
from fdadp.private.release.mechanisms import NoiseAfterFit, Pass, mechanism_of
from fdadp.regression.additive.fitted import FittedSurface
from fdadp.regression.formula import ParsedFormula
from fdadp.regression.reading.chunked_records import ChunkedRecords, Partitions
from fdadp.regression.reading.completion import Completion, completed_response
from fdadp.regression.reading.training import check_max_rows, check_person_rows, person_weights
from fdadp.regression.settings import ModelSettings
from fdadp.regression.whole import Estimate, ModelSpec, estimate_whole, estimated
from fdadp.solve.eigen.components import ComponentsFit, ComponentsOfGaps
from fdadp.solve.eigen.surface import SurfaceFit, surface_of_gaps
from fdadp.solve.fit.observations import ChunkedObservations, Observations
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.curves.functional_additive import surface_on
from fdadp.terms.spec import TermSpec
from fdadp.terms.surface import QuantileTransform, Surface, basis_sizes

if TYPE_CHECKING:
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction


@dataclass(frozen=True)
class SurfaceOfCurves(TermSpec):
    """The term ``∫ F{X(s), s, t} ds`` with the settings of :class:`fdadp.AdditiveFunctionOnFunction`.

    Parameters
    ----------
    sizes : (int or "auto", int or "auto")
        Numbers of B-splines over x and s.
    degree, penalty_order : int
    rule : str
    period : float or None
    x_transform : {None, "quantile"}
    """

    sizes: tuple[int | str, int | str]
    degree: int
    penalty_order: int
    rule: str
    period: float | None
    x_transform: str | None

    @classmethod
    def of(cls, model: AdditiveFunctionOnFunction) -> SurfaceOfCurves:
        """That of a model."""
        sizes = model.n_basis_x, model.n_basis_s
        return cls(sizes, model.degree, model.penalty_order, model.quadrature, model.period_s, model.x_transform)

    @property
    def name(self) -> str:
        """The column."""
        return "X"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return ("X",)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> Surface:
        """P-splines over the range of X and over s; their scale, and the mean of F, are learned with the sums."""
        curves = seen.curves_of("X")
        transform = None
        if self.x_transform == "quantile":
            values = seen.over(lambda rows: [rows.curves("X").values], lambda one, other: one + other)
            transform = QuantileTransform.of(Curves(np.concatenate(values), curves.grid))
        return self.on(curves.grid, curves.range, seen.n, transform)

    def on(
        self, grid: FloatArray, x_range: tuple[float, float], n: int | None, transform: QuantileTransform | None = None
    ) -> Surface:
        """The term of curves whose range is known, n of them where that is.

        Raises
        ------
        InputError
            Too few curves, or constant ones.
        """
        least = 2 * self.penalty_order + 1
        if n is not None and n < least:
            raise InputError(f"X and Y must hold at least {least} curves, got {n}")
        if not x_range[0] < x_range[1]:
            raise InputError(f"X must vary, got the constant {x_range[0]:g} everywhere")
        return surface_on(
            "X",
            "X",
            grid,
            x_range,
            basis_sizes(self.sizes, n, grid.size, self.degree),
            (self.degree - 1, self.penalty_order),
            ("n_basis_x", "n_basis_s", "period_s"),
            rule=self.rule,
            period=self.period,
            transform=transform,
            centred=True,
        )


def settings_of(model: AdditiveFunctionOnFunction) -> ModelSettings:
    """The settings of the same model as a regression on terms."""
    return ModelSettings(
        formula=(SurfaceOfCurves.of(model),),
        smoothing=model.smoothing,
        missing=model._gaps,
        progress=model.progress,
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
    persons = _persons(model, groups, len(x))
    gaps = model._gaps == "fpca" and bool(np.isnan(y.values).any())
    if gaps:
        check_observed(y.values, "Y")
    whole = completed_response(y, "gaps" if gaps else model._gaps)
    _, training, _, estimate = estimate_whole(settings_of(model), {"X": x}, whole, None)
    found = _published(estimate, training.observed)

    def read(_: str) -> Any:
        records, own = training.observed.records, whole
        if gaps:  # the published scheme is about complete curves
            about = training.observed.predictor(found.fit.form, found.fit.coefficients)
            own = completed_response(y, "fpca", about)
        return iter([(records, own)])

    return _with_noise(model, found, read, persons, training.covariates.completion, x, y, joined=joined)


def fit_pairs(
    model: AdditiveFunctionOnFunction, source: CurvePairs, x_range: tuple[float, float] | None, kind: Any
) -> FittedSurface:
    """Fit to pairs of curves in chunks."""
    term, settings = SurfaceOfCurves.of(model), settings_of(model)
    spec = ModelSpec(settings=settings, parsed=ParsedFormula(None, (term,), True, True), response="Y")
    x_range = x_range or source.range()
    s, t, known = source.head["X"].grid, source.head["Y"].grid, source.n
    design = term.on(s, x_range, known or None)
    observed = ChunkedObservations(Pairs(source), known, np.nan, np.nan, np.nan, whole=True, weighted=False)
    estimate = estimated(spec, LongForm((design,), t), observed)
    if source.n != known:  # only now known how many; of few curves smaller bases are taken
        again = term.on(s, x_range, source.n)
        if again.shape != design.shape:
            estimate = estimated(spec, LongForm((again,), t), observed)
    x, y = source.head["X"], source.head["Y"]
    found = _published(estimate, None)
    return _with_noise(model, found, source.read, None, Completion.none(), x, replace(y, kind=kind or y.kind))


@dataclass(frozen=True)
class Pairs:
    """Pairs of complete curves as chunks of observations."""

    source: CurvePairs

    def over(
        self, function: Callable[[Observations], Any], merge: Callable[[Any, Any], Any], finish: Any = None
    ) -> Any:
        """Merge what a function makes of each chunk."""
        return self.source.over(partial(_of_pairs, function), merge, "sums over curves", finish)

    def here(self) -> None:
        """No chunk is handed out."""


def _of_pairs(function: Callable[[Observations], Any], records: Records, y: Curves) -> Any:
    return function(Observations(records, y.values))


def _published(estimate: Estimate, observed: Observations | None) -> SurfaceFit:
    """The surface of a fit; warns of what is not identified."""
    components = estimate.components
    if isinstance(components, ComponentsOfGaps):
        assert observed is not None
        found = surface_of_gaps(components, observed)
        slopes = found.fit.identified[len(found.by_function.rest) :].reshape(-1, len(found.values))
        identified = np.asarray(slopes.all(axis=1))
    else:
        assert isinstance(components, ComponentsFit)
        found, identified = SurfaceFit.of(components), components.scores.identified
    if not identified.all():
        names = ", ".join(found.term.directions(np.flatnonzero(~identified).tolist()))
        warn(
            f"the curves X do not identify {names}: among the training curves they are functions of the other "
            "integrals of this kind, or do not vary (as for one shape times a number). They are left out; the fit is "
            "not affected, predictions for curves of another shape rest on this choice",
            IdentificationWarning,
        )
    return found


def _with_noise(
    model: AdditiveFunctionOnFunction,
    found: SurfaceFit,
    read: Pass,
    persons: IntArray | None,
    completion: Completion,
    x: Curves,
    y: Curves,
    **more: Any,
) -> FittedSurface:
    """The fitted model; a mechanism that is not private end to end adds its noise."""
    fitted_with: dict[str, Any] = {"privacy": None}
    if model.privacy is not None:
        mechanism = mechanism_of(model.mechanism)
        assert isinstance(mechanism, NoiseAfterFit)
        fitted_with = {"privacy": replace(model.privacy), "mechanism": model.mechanism}
        found = mechanism.perturb(found, read, model.privacy, persons)
    return FittedSurface.of(found, completion, x, y, fitted_with=fitted_with, **more)


def _persons(model: AdditiveFunctionOnFunction, groups: ArrayLike | None, n: int) -> IntArray | None:
    """Code of the person of each curve, from ids.

    Raises
    ------
    InputError
        Another number of ids than of curves, or persons with different numbers of curves where each is to count once.
    """
    codes = None
    if groups is not None:
        if np.shape(groups) != (n,):
            raise InputError(f"groups must have shape ({n},), one entry per curve, got shape {np.shape(groups)}")
        codes = np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1], dtype=np.int64)
    check_person_rows(model.person_rows, grouped=codes is not None)
    check_max_rows(model.person_rows, model.max_rows, 1 if codes is None else int(np.bincount(codes).max()))
    if person_weights(codes) is not None and model.person_rows != "sum":
        raise InputError(
            "person_rows must be 'sum' (each curve counts once) in an ordinary fit where persons have different "
            f"numbers of curves, got {model.person_rows!r}; FunctionalRegression has 'mean' too"
        )
    return codes


# Pairs (X, Y) of curves, as tables of two columns: all that a fit of one surface without privacy sees.


class CurvePairs(ChunkedRecords):
    """Pairs of curves that can be gone through more than once.

    Parameters
    ----------
    source : sequence, callable or Partitions
        A sequence of pairs, or a function that returns a fresh iterator over pairs. Each pair holds curves as
        :func:`fdadp.functional.tables.curves.as_curves` reads them. Pairs that are delayed, or of Dask's collections,
        stay where Dask computes them.
    s, t : array_like or None
        Grids of X and Y.
    progress : bool or "auto"
        Show a progress bar; ``"auto"``: on passes that take longer than two seconds.

    Raises
    ------
    InputError
        Something that cannot be read twice; while it is read, what is no pair, X and Y of different n or with other row
        labels, a value that is not finite, and what :class:`~fdadp.regression.reading.chunked_records.ChunkedRecords`
        refuses.
    """

    _rows: ClassVar[str] = "pairs"
    _response_called: ClassVar[str] = "{}"

    def __init__(
        self,
        source: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]] | Partitions,
        s: Any = None,
        t: Any = None,
        progress: bool | str = "auto",
    ) -> None:
        lazy = isinstance(source, Partitions)
        if not callable(source) and isinstance(source, Iterator):
            raise InputError(
                "chunks must be a sequence of (X, Y) pairs or a function that returns a fresh iterator "
                f"(the data are read twice), got a one-way {type(source).__name__}"
            )
        if not (callable(source) or lazy) and (isinstance(source, str) or not isinstance(source, Iterable)):
            raise InputError(f"chunks must be a sequence of (X, Y) pairs or a function, got {type(source).__name__}")

        super().__init__(source, ("X",), "Y", progress=progress, convert=partial(_table, s, t))

    def read(self, what: str = "sums") -> Iterator[tuple[Records, Curves]]:
        """X as records, and Y, under a progress bar labelled `what`."""
        for records, y in super().read(what):
            assert isinstance(y, Curves)
            yield records, y

    def range(self) -> tuple[float, float]:
        """Smallest and largest value of X."""
        low, high = self.over(_ends, _further, "range of X")
        return low, high


def _ends(records: Records, _: Curves) -> tuple[float, float]:
    values = records.curves("X").values
    return float(values.min()), float(values.max())


def _further(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


def pairs_of(x: Any, y: Any, s: Any = None, t: Any = None) -> Callable[[], Iterator[tuple[Any, Any]]] | None:
    """Pieces of curves of which at least one sample was opened, to be read on demand; None where none was.

    Raises
    ------
    InputError
        Samples of queries of their own, which may give their rows in another order each time.
    """
    given = {"X": opened(x, "X"), "Y": opened(y, "Y")}
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
