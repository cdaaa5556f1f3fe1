"""A term times a column: by-variables, and the interaction of a factor with any term."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.numbers.scalar_linear import Linear, NumberDesign
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec

CODINGS = ("numbers", "levels", "treatment")


@dataclass(frozen=True)
class By(TermSpec):
    """A term times a column: of numbers, or of labels, a copy of the term for each level.

    Parameters
    ----------
    column : str
        Column of numbers or of labels.
    term : TermSpec
        Such as ``terms.ff("X")``: then ``C(region):ff(X)``, a surface for each region.
    coding : {"numbers", "levels", "treatment"}, optional
        What the column is. It is numbers, or levels with a copy for each. Or each level but the first has a copy, which
        gives differences from it beside the term itself. Default: numbers or levels, as the column is.

    Notes
    -----
    As in mgcv: each copy has smoothing parameters of its own; smooths by numbers have no constraint, smooths by levels
    sum to zero over all rows.

    References
    ----------
    Hastie & Tibshirani (1993), Varying-coefficient models, doi:10.1111/j.2517-6161.1993.tb01939.x; mgcv's ``by=``.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.by("dose", terms.s("age")).name
    's(age):dose'
    """

    column: str
    term: TermSpec
    coding: str | None = None

    @property
    def name(self) -> str:
        """As in a formula."""
        return f"{self.term.name}:{self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the term, and the one that multiplies."""
        return (*self.term.columns, self.column)

    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """The features of the term, multiplied."""
        return self.made(seen, lambda term: term.fixed(seen, t))

    def made(self, seen: TrainingSummary, fix: Callable[[TermSpec], TermDesign]) -> TermDesign:
        """The product, where `fix` says what becomes of the term."""
        coding = self.coding
        if coding is None:
            coding = "numbers" if is_numeric(seen, self.column) else "levels"
        if coding not in CODINGS:
            raise InputError(f"coding of {self.name} must be one of {CODINGS} or None, got {self.coding!r}")
        term = self.term
        if coding == "numbers":
            seen.numbers_of(self.column)
        if coding == "numbers" and getattr(term, "by", self.column) is None:
            return fix(replace(term, by=self.column))  # type: ignore[type-var]
        return multiplied(fix(term), seen, self.column, name=self.name, coding=coding)

    def as_constant(self) -> By:
        """The product with the term that is the same at all t."""
        return replace(self, term=self.term.as_constant())

    def with_refund_sizes(self) -> By:
        """With the term of refund's sizes."""
        return replace(self, term=self.term.with_refund_sizes())


def is_numeric(seen: TrainingSummary, column: str) -> bool:
    """Whether a column multiplies as numbers (else: as labels)."""
    return column not in seen.levels


def multiplied(
    design: TermDesign, seen: TrainingSummary, by: str | None, *, name: str, coding: str | None = None
) -> TermDesign:
    """A design times a column.

    Parameters
    ----------
    design : TermDesign
    seen : TrainingSummary
    by : str or None
        The column; None: the design as it is.
    name : str
        Of the product.
    coding : {"numbers", "levels", "treatment"}, optional

    Raises
    ------
    InputError
        No such column, or one of curves, or labels that are not levels; a factor times itself.
    """
    if by is None:
        return design if design.name == name else replace(design, name=name)
    kind = _Times if design.separable else _TimesAlong
    coding = coding or ("numbers" if is_numeric(seen, by) else "levels")
    levels: Levels | None = None
    n_copies = 1
    if coding == "numbers":
        seen.numbers_of(by)
        design = design.by_numbers()
    else:
        levels = Levels.of(seen, by)
        if by in design.columns:
            raise InputError(f"{name} must have a term of other columns than {by}")
        n_copies = len(levels) - int(coding == "treatment")
        if not n_copies:
            raise InputError(f"{by} must have at least two levels, got {levels.levels[0]!r} in all rows")
    return kind(
        name=name,
        columns=(*design.columns, by),
        along=design.along,
        along_norm=design.along_norm,
        own_penalties=np.tile(design.own_penalties, n_copies),
        own_norm=design.own_norm,
        of=design,
        levels=levels,
        n_copies=n_copies,
    )


def without_repeats(design: TermDesign, numbers: Collection[str]) -> TermDesign:
    """A design in a model that has these columns of numbers as terms: a column times 1 is not there twice."""
    if not isinstance(design, _Times) or design.levels is not None or design.columns[-1] not in numbers:
        return design
    return replace(design, of=design.of.beside_numbers())


def multiplier_of(design: TermDesign) -> str | None:
    """The column that multiplies a design; None where it is no product."""
    return design.columns[-1] if isinstance(design, _Times) else None


@dataclass(frozen=True, kw_only=True)
class _Times(TermDesign):
    of: TermDesign
    levels: Levels | None
    n_copies: int

    def about(self, means: Mapping[str, Any]) -> TermDesign:
        """The product of the term about its mean: another model, unless the column is in the model by itself.

        Of two numbers it stays: the effect of the one is where the other is 0, as it is written.
        """
        return self if isinstance(self.of, _Times | NumberDesign) else replace(self, of=self.of.about(means))

    def _weights(self, records: Records) -> FloatArray:
        """What multiplies each copy in each row, shape (n, copies)."""
        if self.levels is None:
            return records.numbers(self.columns[-1])[:, None]
        return self.levels.indicators(records)[:, len(self.levels) - self.n_copies :]

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        features, weights = self.of.features(records, t), self._weights(records)
        middle = (1,) * (features.ndim - 2)
        by_copy = weights.reshape(records.n, *middle, -1, 1) * features[..., None, :]
        return np.asarray(by_copy.reshape(*features.shape[:-1], -1))

    @cached_property
    def kept(self) -> BoolArray:
        return np.tile(self.of.kept, self.n_copies)

    @cached_property
    def penalties(self) -> FloatArray:
        each = np.kron(np.eye(self.n_copies)[:, None], self.of.penalties)
        return np.asarray(each.reshape(-1, self.size))

    @property
    def from_mgcv(self) -> FloatArray:
        return np.asarray(np.kron(np.eye(self.n_copies), self.of.from_mgcv))

    @property
    def penalty_names(self) -> tuple[str, ...]:
        if self.levels is None:
            return tuple(f"{name}:{self.columns[-1]}" for name in self.of.penalty_names)
        shown = self.levels.levels[-self.n_copies :]
        return tuple(f"{name}:{self.columns[-1]}[{level}]" for level in shown for name in self.of.penalty_names)

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        own: dict[str, FloatArray | tuple[Any, ...]] = {}
        if self.levels is not None:
            own[self.columns[-1]] = self.levels.levels
        return {**own, **self.of.axes}

    @property
    def periods(self) -> dict[str, float]:
        return self.of.periods

    def effect(self, *points: Any) -> FloatArray:
        if self.levels is None:
            return self.of.effect(*points)
        codes, first = self.levels.codes(points[0]), len(self.levels) - self.n_copies
        which: FloatArray = np.eye(len(self.levels))[codes, first:]
        return np.asarray(np.kron(which, self.of.effect(*points[1:])))

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        own = self.of.acts(axes)
        return own if own is None or self.levels is None else np.stack([own] * len(axes[self.columns[-1]]))


@dataclass(frozen=True, kw_only=True)
class _TimesAlong(_Times):
    separable: ClassVar[bool] = False


# Effects that are the same at all points of the response.


def constant(term: TermSpec | str) -> TermSpec:
    """The same term with an effect that does not vary along the response, refund's ``c()``.

    Parameters
    ----------
    term : TermSpec or str
        A term, or the name of a column of numbers.

    Raises
    ------
    InputError
        A term whose effect is a function of t by its nature.

    Examples
    --------
    >>> from fdadp import terms
    >>> terms.c(terms.linear("age")).name
    'c(age)'
    """
    if isinstance(term, str):
        return Linear(term, constant=True)
    return term.as_constant()
