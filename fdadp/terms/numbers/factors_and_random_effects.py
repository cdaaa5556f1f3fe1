"""A curve for each level of a factor, and random effects of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fdadp._common.argument_checks import numbers, one_of
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec, along_response, no_penalties, own_cycle, size_along
from fdadp.terms.times_column import multiplied

CODINGS = ("treatment", "full", "levels")

MANY = 20
"""Levels of a factor that may be more than half as many as rows."""


@dataclass(frozen=True)
class Factor(TermSpec):
    """Effect of the level of a factor: a curve over the response for each; of a scalar response a number.

    Parameters
    ----------
    column : str
        Column of labels, or of whole numbers that are codes.
    coding : {"treatment", "full", "levels"}
        ``"treatment"``: curves of differences from the first level. ``"full"``: a curve for every level, for models
        without an intercept. ``"levels"``: a curve for every level, each with mean zero over t, as refund's ``pffr``
        has it. There levels cannot differ in their means over t.
    k : int, optional
        Number of B-splines along the response. Default: 15, or as many as the response has points. ``"refund"`` takes
        5.
    m : (int, int)
        Their degree less one, and the order of the difference penalty.
    constant : bool
        The same at all t, refund's ``c(region)``.
    period : float, optional
        Makes the curves periodic in t, as ``t_period`` of :class:`fdadp.FunctionalRegression` does for all terms.

    References
    ----------
    refund's ``pffr``: ``s(t, by = region, bs = "ps", k = 5, m = c(2, 1))``; Scheipl, Staicu & Greven (2015),
    Functional additive mixed models, doi:10.1080/10618600.2014.901914.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.factor("region").name
    'region'
    """

    column: str
    coding: str = "treatment"
    k: int | Literal["refund"] | None = None
    m: tuple[int, int] = (2, 1)
    constant: bool = False
    period: float | None = None

    refund_k = 5

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A feature for each level, or for each but the first; each has its own smoothing parameter."""
        if self.coding not in CODINGS:
            raise InputError(f"coding of {self.name} must be 'treatment', 'full' or 'levels', got {self.coding!r}")
        centred, every = self.coding == "levels", self.coding != "treatment"
        if centred and (t is None or self.constant):
            raise InputError(
                f"coding of {self.name} must be 'treatment' where effects do not vary along the response, "
                "or 'full', got 'levels': its curves have mean zero over t"
            )
        levels = Levels.of(seen, self.column)
        if len(levels) < 2 and not every:
            raise InputError(f"{self.column} must have at least two levels, got {levels.levels[0]!r} in all rows")
        if len(levels) > max(MANY, seen.n / 2):
            raise InputError(
                f"{self.column} must have fewer levels, got {len(levels)} in {seen.n} rows, such as "
                f"{levels.levels[0]!r}; re({self.column}) is for many levels, pandas.to_numeric makes numbers of text"
            )
        cycle = own_cycle(self.period, self.name, seen, varies=t is not None and not self.constant)
        beside: dict[str, Any] = {"constant": self.constant, "centred": centred, "cycle": cycle}
        along = along_response(t, size_along(self.k, self.refund_k, t), self.m, name=f"k of {self.name}", **beside)
        own = no_penalties(len(levels) - int(not every))
        fields = {"levels": levels, "own_penalties": own, "each_its_own": True, **along}
        return _Curves(name=self.name, columns=self.columns, **fields)


def is_factor(design: TermDesign) -> bool:
    """Whether a design is that of a factor."""
    return isinstance(design, _Curves)


@dataclass(frozen=True, kw_only=True)
class _OfLevels(TermDesign):
    """A feature for each level, or for each but the first ones."""

    levels: Levels
    new_levels: ClassVar[bool] = False
    """Whether a level that was not seen in training has the effect zero, and is no error."""

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        return self.levels.indicators(records, unseen=self.new_levels)[:, len(self.levels) - self.n_features :]

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        return {self.columns[0]: self.levels.levels}

    def effect(self, *points: Any) -> FloatArray:
        return np.eye(len(self.levels))[self.levels.codes(points[0]), len(self.levels) - self.n_features :]


@dataclass(frozen=True, kw_only=True)
class _Curves(_OfLevels):
    @property
    def penalty_names(self) -> tuple[str, ...]:
        if not self.along.penalised:
            return ()
        return tuple(f"{self.name}[{level}].t" for level in self.levels.levels[-self.n_features :])


# Random effects of groups: a number for each group, or a curve.


COVARIANCES = ("free", "spline", "given")


@dataclass(frozen=True)
class RandomEffect(TermSpec):
    """A random effect of each level of a factor; a level that was not seen in training has effect zero.

    Parameters
    ----------
    column : str
        Column of labels, or of whole numbers that are codes.
    k : int, optional
        A curve for each level, with that many B-splines along the response; default: a number, the same at all t.
        Levels have coefficients of their own, and time grows with the third power of their number. Beyond 2,000 a fit
        takes the sums of ``covariance="spline"`` where the model allows it: curves with `k`, or numbers, all of weight
        1. Its log-likelihood and AIC are then those of the rows with random effects integrated out. A fit that would
        take more memory than is free, some 90 p² bytes for p coefficients, is refused.
    m : (int, int)
        Degree less one of the B-splines, and order of the difference penalty.
    covariance : {"free", "spline", "given"}, optional
        ``"free"``: a curve for each person whose covariance may be any, and smooth errors of rows whose covariance may
        be any, by REML from sums over the rows of persons. Time grows with the number of rows, not with its third
        power. `k` is then the number of smooth functions that carry both, by default that of least BIC. ``"spline"``:
        the model that `k` alone has, with white errors of rows, by the same sums. ``"given"``: curves of a covariance
        that is known up to a factor, and white errors, as refund's ``pcre``.
    slopes : str or tuple of str, optional
        Columns of numbers whose effects differ from person to person, with a curve each, as lme4's ``(1 + week | id)``:
        all curves of a person may be correlated, and covariances are free. Terms of the model must have these columns.
    intercept : bool
        False: slopes without a curve of their own beside them, as ``(0 + week | id)``.
    functions, values : array_like of shape (K, T) and (K,), optional
        Eigenfunctions at the points of the response, and eigenvalues, of ``covariance="given"``.
    by : str, optional
        Column that multiplies the effect, mgcv's ``s(g, by = x, bs = "re")``: of numbers, a slope of each level,
        independent of intercepts ``re(g)`` beside it. Or of labels, with an effect of each pair of levels, and a
        variance for each label. Not with `slopes` or `covariance`.

    References
    ----------
    Wood (2017), Generalized Additive Models, section 5.8, doi:10.1201/9781315370279. refund's ``pffr``:
    ``c(s(g, bs = "re"))`` for numbers, ``s(g, bs = "re")`` for curves. Of curves mgcv deletes coordinates that the mean
    curve has too; here all stay, because their penalties tell them apart.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.re("person").name
    're(person)'
    """

    column: str
    k: int | None = None
    m: tuple[int, int] = (1, 1)
    covariance: str | None = None
    slopes: str | tuple[str, ...] | None = None
    intercept: bool = True
    functions: Any = None
    values: Any = None
    by: str | None = None

    function = "re"

    def __post_init__(self) -> None:
        super().__post_init__()
        slopes = (self.slopes,) if isinstance(self.slopes, str) else self.slopes or ()
        object.__setattr__(self, "slopes", tuple(slopes))
        if not self.intercept and not slopes:
            raise InputError(f"{self.name} needs slopes with intercept=False")
        if self.covariance is not None:
            one_of(self.covariance, f"covariance of {self.name}", COVARIANCES)
        if self.by is not None and self.by_person:
            raise InputError(
                f"by of {self.name} must be None with {self.said}, got {self.by!r}: a number goes into slopes"
            )
        if slopes and self.covariance not in (None, "free"):
            raise InputError(f"{self.name} needs covariance='free' with slopes, got {self.covariance!r}")
        given = (self.functions is not None, self.values is not None)
        if given != ((True, True) if self.covariance == "given" else (False, False)):
            raise InputError(f"{self.name} needs functions and values with covariance='given', and only with it")
        if given[0]:  # as tuples: terms are compared
            functions, values = np.atleast_2d(numbers(self.functions, "functions")), numbers(self.values, "values")
            if values.shape != functions.shape[:1] or not (np.isfinite(functions).all() and (values > 0).all()):
                raise InputError(f"{self.name} needs one positive value for each function, got {values.shape}")
            object.__setattr__(self, "functions", tuple(map(tuple, functions.tolist())))
            object.__setattr__(self, "values", tuple(values.tolist()))
        if self.covariance == "spline" and self.k is None:
            raise InputError(f"{self.name} needs k with covariance='spline'")

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of labels, those of slopes, and the one that multiplies."""
        return (self.column, *(self.slopes or ()), *(() if self.by is None else (self.by,)))

    @property
    def by_person(self) -> bool:
        """Whether the fit takes sums over the rows of each level, not a feature for each."""
        return bool(self.slopes) or self.covariance is not None

    @property
    def white(self) -> bool:
        """Whether errors of rows are white, beside curves of persons of a penalised or a given covariance."""
        return self.by_person and self.covariance in ("spline", "given")

    def penalised(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Functions of a person's curve at the points of the response (T, K), and diagonals of their penalties (M, K).

        Raises
        ------
        InputError
            Given functions at another number of points, or more than there are points.
        """
        if self.covariance == "given":
            functions = np.array(self.functions).T
            if len(functions) != t.size or functions.shape[1] > t.size:
                raise InputError(f"functions of {self.name} must be at {t.size} points, got {len(functions)}")
            return functions, 1 / np.array([self.values])
        if t.size == 1:  # a number
            return np.ones((1, 1)), np.ones((1, 1))
        along = along_response(t, self.k or 1, self.m, values=True, name=f"k of {self.name}")
        one = _Groups(
            name=self.name, columns=(), levels=Levels(self.column, (0,)), own_penalties=np.ones((1, 1)), **along
        )
        return one.along.design(t), one.penalties

    @property
    def said(self) -> str:
        """What makes it such a term, for messages."""
        return f"slopes={', '.join(self.slopes)}" if self.slopes else f"covariance={self.covariance!r}"

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """A feature for each level, with the identity as penalty."""
        if self.by_person:
            raise InputError(f"{self.name} with {self.said} must explain curves, by itself, without privacy")
        levels = Levels.of(seen, self.column)
        beside: dict[str, Any] = {"constant": self.k is None, "cycle": seen.t_cycle}
        along = along_response(t, self.k or 1, self.m, values=True, name=f"k of {self.name}", **beside)
        own = np.ones((1, len(levels)))
        design = _Groups(name=f"re({self.column})", columns=(self.column,), levels=levels, own_penalties=own, **along)
        return multiplied(design, seen, self.by, name=self.name)

    def as_constant(self) -> TermSpec:
        """A number for each level."""
        return super().as_constant() if self.by_person else replace(self, k=None)


def levels_of(design: TermDesign) -> Levels | None:
    """The levels of a random effect; None of another term."""
    return design.levels if isinstance(design, _Groups) else None


@dataclass(frozen=True, kw_only=True)
class _Groups(_OfLevels):
    new_levels: ClassVar[bool] = True
