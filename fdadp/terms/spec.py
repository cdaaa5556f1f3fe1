"""A term of a functional regression: as a user writes it, and on its bases.

The mean of a response is a sum of terms. Each is linear in coefficients: the row of record i at the point t is
``features_i ⊗ along(t)``, what the covariates say times how it varies along the response.

* :class:`TermSpec` says which columns and which bases are wanted, such as ``terms.ff("X", k=(5, 5))``.
* :class:`TermDesign` is what becomes of it when the training rows have been seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fdadp._common.argument_checks import like
from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.privacy import rowwise_matmul
from fdadp.terms.cycles import Cycle
from fdadp.terms.records import Records, TrainingSummary

MOST_ALONG = 15
"""Functions along the response where a term leaves their number to the fit; a penalty makes up for too many."""


class TermSpec(ABC):
    """A term as a user writes it; subclasses are frozen dataclasses, whose first field is the column, or the columns.

    Raises
    ------
    InputError
        A setting of another kind than its default.
    """

    function: ClassVar[str] = ""
    """Its name in formulas, such as ``"ff"``; none where a column stands by itself."""
    refund_k: ClassVar[Any] = None
    """Refund's `k`, of a term whose own default of `k` is None: the fit then chooses it by ``size_along``."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if f.type == "TermSpec" and not isinstance(value, TermSpec):
                raise InputError(f"{f.name} of {type(self).__name__} must be a term such as ff('X'), got {value!r}")
            example = f.default
            if f.name == "k" and self.refund_k is not None and not (unsized(value) or "str" in str(f.type)):
                example = self.refund_k
            elif "|" in str(f.type):  # of several kinds
                continue
            if example is not MISSING:
                object.__setattr__(self, f.name, like(value, example, f"{f.name} of {self.name}"))

    @property
    def name(self) -> str:
        """As in a formula: ``"ff(X)"``, ``"s(age):dose"``, ``"c(s(age))"``."""
        own, by = ", ".join(map(str, self._own_columns())), getattr(self, "by", None)
        effect = (f"{self.function}({own})" if self.function else own) + (f":{by}" if by else "")
        return f"c({effect})" if getattr(self, "constant", False) else effect

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the data that it reads: those of its first field, and the one that multiplies (`by`)."""
        by = getattr(self, "by", None)
        return (*self._own_columns(), by) if by else self._own_columns()

    def _own_columns(self) -> tuple[str, ...]:
        own = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return tuple(own) if isinstance(own, tuple | list) else (own,)

    @abstractmethod
    def fixed(self, seen: TrainingSummary, t: FloatArray | None) -> TermDesign:
        """The term on bases that suit the training rows.

        Parameters
        ----------
        seen : TrainingSummary
        t : ndarray of shape (T,) or None
            Points at which responses were observed: their common grid, or all points of all curves where each has its
            own. None: the response is a number.

        Raises
        ------
        InputError
            A column that is not there or of another kind, or bases that do not suit it.
        """

    def as_constant(self) -> TermSpec:
        """The term with an effect that is the same at all points of the response.

        Raises
        ------
        InputError
            An effect that is a function of t by its nature.
        """
        if hasattr(self, "constant"):
            return replace(self, constant=True)  # type: ignore[type-var]
        wanted = "a column, a factor, s(), te() or re()"
        raise InputError(f"c() must have a term that can be the same at all t: {wanted}, got {self.name}")

    def with_refund_sizes(self) -> TermSpec:
        """The term with refund's numbers of functions wherever it does not give its own.

        Examples
        --------
        >>> from fdadp import terms
        >>> terms.ff("X").with_refund_sizes().k, terms.linear("age", k=9).with_refund_sizes().k
        ((5, 5), 9)
        """
        return with_refund_k(self)


@dataclass(frozen=True, kw_only=True)
class TermDesign(ABC):
    """A term on its bases.

    Attributes
    ----------
    name : str
    columns : tuple of str
    along : SmoothMargin
        How coefficients vary along the response; constant where it is a number.
    along_norm : float
        Largest row sum of `along` over the training points (mgcv scales penalties by it).
    own_penalties : ndarray of shape (M', q)
        Diagonals of the penalties of the features, on mgcv's scale but for `along_norm`.
    own_norm : float
        Largest row sum of the features' basis.
    each_its_own : bool
        A smoothing parameter along the response for each feature, not one for all (levels of a factor).
    along_first : bool
        Order of smoothing parameters: the one along the response before those of the features, as in refund's sff.
    without_constant : bool
        The product of the first feature and of the first function of `along` is the intercept's, and left out.
    """

    name: str
    columns: tuple[str, ...]
    along: SmoothMargin = field(default_factory=SmoothMargin.constant)
    along_norm: float = 1.0
    own_penalties: FloatArray
    own_norm: float = 1.0
    each_its_own: bool = False
    along_first: bool = False
    without_constant: bool = False

    separable: ClassVar[bool] = True
    """Whether features are the same for all t."""

    @abstractmethod
    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """What the covariates of each row say, shape (n, q); of terms that are not separable (n, T, q).

        Parameters
        ----------
        records : Records
        t : ndarray of shape (T,), optional
            Points of the response; terms that are separable do not ask.

        Raises
        ------
        InputError
            A column that is not there, of another kind, or that the training rows do not cover.
        """

    def about(self, means: Mapping[str, Any]) -> TermDesign:
        """The term of curves or numbers less their mean over the training rows, where it is linear in them.

        Parameters
        ----------
        means : mapping of str
            Of columns of curves one curve (Curves), of numbers a float.
        """
        return self

    def by_numbers(self) -> TermDesign:
        """The term that is to be multiplied by numbers: what was the intercept's is now an effect of these."""
        return replace(self, without_constant=False)

    def beside_numbers(self) -> TermDesign:
        """The same where these numbers are a term of the model by themselves; mostly as it was, as in mgcv."""
        return self

    def trained(self, records: Records) -> tuple[FloatArray, Any]:
        """Features of training rows, and what the design has yet to learn from them; mostly nothing, None."""
        return self.features(records), None

    def learned(self, seen: Any, n: int) -> TermDesign:
        """The design with what n training rows taught it: all that :meth:`trained` gave of them, merged."""
        return self

    def features_at(self, records: Records, record: IntArray, t: FloatArray) -> FloatArray:
        """Features of single observations, of row ``record[j]`` at the point ``t[j]``: shape (N, q).

        Terms that are not separable go from record to record here, and may know better.
        """
        if self.separable:
            return self.features(records)[record]
        out = np.empty((len(t), self.n_features))
        order = np.argsort(record, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(record[order])) + 1) if len(t) else ():
            row = int(record[own[0]])
            out[own] = self.features(records[row : row + 1], t[own])[0]
        return out

    @property
    def n_features(self) -> int:
        """Number q of features."""
        return int(self.own_penalties.shape[1])

    @cached_property
    def kept(self) -> BoolArray:
        """Which products of features (slow) and functions along the response (fast) are coefficients, shape (q p,)."""
        keep = np.ones(self.n_features * self.along.size, dtype=bool)
        keep[0] = not self.without_constant
        return keep

    @property
    def own_margins(self) -> tuple[SmoothMargin, ...]:
        """Smooths whose products the features are, the slowest first; none where features are mgcv's or not such."""
        return ()

    @property
    def from_mgcv(self) -> FloatArray:
        """From coefficients in mgcv's coordinates to these, shape (size, size); the identity where not known."""
        own = [margin.from_mgcv for margin in self.own_margins] or [np.eye(self.n_features)]
        turn = self.along.from_mgcv
        for margin in reversed(own):
            turn = np.asarray(np.kron(margin, turn))
        return turn if self.kept.all() else np.eye(self.size)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.kept.sum())

    @cached_property
    def penalties(self) -> FloatArray:
        """Diagonals of the penalties, one smoothing parameter each, shape (M, size)."""
        q = self.n_features
        own = [np.asarray(np.kron(d, np.ones(self.along.size)) * self.along_norm**2) for d in self.own_penalties]
        along: list[FloatArray] = []
        if self.along.penalised:
            scaled = self.along.eigenvalues * (self.own_norm * self.along_norm) ** 2 / self.along.penalty_norm
            which = np.eye(q) if self.each_its_own else np.ones((1, q))
            along = [np.asarray(np.kron(features, scaled)) for features in which]
        every = along + own if self.along_first else own + along
        return np.array(every, dtype=np.float64).reshape(len(every), self.kept.size)[:, self.kept]

    @property
    def penalty_names(self) -> tuple[str, ...]:
        """What each smoothing parameter smooths, for summaries: along ``"t"`` or a number of the term's own."""
        own = [f"{self.name}.{i + 1}" for i in range(len(self.own_penalties))]
        along = []
        if self.along.penalised:
            along = (
                [f"{self.name}.{i + 1}.t" for i in range(self.n_features)] if self.each_its_own else [f"{self.name}.t"]
            )
        return tuple(along + own if self.along_first else own + along)

    # --- coefficients as functions, for coef() and pictures ---

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Axes of the coefficient function besides t with default points: ``{"s": points}`` of ``b(s, t)``; none."""
        return {}

    @property
    def periods(self) -> dict[str, float]:
        """Periods of axes that are circles, ``{"t": 24.0}``; none."""
        return {} if self.along.period is None else {"t": self.along.period}

    def effect(self, *points: Any) -> FloatArray:
        """Features of the coefficient function at the product of points of each axis, first axis slowest: (m, q)."""
        return np.ones((1, self.n_features))

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model, at the product of points; None: everywhere.

        Parameters
        ----------
        axes : mapping of str
            Points of each axis.
        """
        return None

    def unseen(self, axes: Mapping[str, Any]) -> FloatArray | None:
        """Variance of the coefficient function outside of the features, at the product of points; None: there is none.

        Parameters
        ----------
        axes : mapping of str
            Points of each axis.
        """
        return None


def own_cycle(period: float | None, name: str, seen: TrainingSummary, *, varies: bool) -> Cycle | None:
    """The circle along the response of a term that has a period of its own, or else the model's.

    Raises
    ------
    InputError
        A period that is no number above 0, or of an effect that does not vary along the response.
    """
    own = Cycle.of(period, f"period of {name}")
    if own is not None and not varies:
        raise InputError(f"{own.name} must be None where the effect does not vary along the response, got {period:g}")
    return seen.t_cycle if own is None else own


def margin_rows(margin: SmoothMargin, x: FloatArray) -> FloatArray:
    """Functions of a margin at the numbers (n,) of rows, each row by itself bit for bit; shape (n, p)."""
    rows = rowwise_matmul(margin.basis.design(x), margin.to_raw)
    if margin.shift is not None:
        rows -= margin.shift
    return rows


def no_penalties(q: int) -> FloatArray:
    """Of features that are not penalised, shape (0, q)."""
    return np.zeros((0, q))


def own_norm(row_sums: FloatArray, seen: TrainingSummary, along: SmoothMargin, along_norm: float) -> float:
    """Largest row sum of features, such that times that of `along` it is mgcv's over all observations.

    Parameters
    ----------
    row_sums : ndarray
        Of each record, (n,), or of each observation where `seen` has them.
    seen : TrainingSummary
    along, along_norm
        Of the design.
    """
    if seen.observed is None:
        return float(row_sums.max())
    return float((row_sums * along.row_sums(seen.observed[1])).max() / along_norm)


def size_along(k: Any, refund: int, t: FloatArray | None) -> Any:
    """Number of functions along the response.

    Parameters
    ----------
    k : int, "refund" or None
        As a user set it; None: :data:`MOST_ALONG`, or one for each point of the response where it has fewer, and never
        fewer than refund has.
    refund : int
        Refund's number.
    t : ndarray or None
        Points of the response; None: it is a number.
    """
    if k is None and t is not None:
        return max(min(MOST_ALONG, np.unique(t).size), refund)
    return refund if unsized(k) else k


def unsized(k: Any) -> bool:
    """Whether a `k` gives no number of functions: None, or ``"refund"``."""
    return k is None or (isinstance(k, str) and k == "refund")


def with_refund_k(term: TermSpec) -> TermSpec:
    """The term with refund's `k`, where that is a property of its kind and the term does not give its own."""
    own: Any = term
    if own.refund_k is None or not unsized(own.k):
        return term
    return replace(own, k=own.refund_k)  # type: ignore[no-any-return]


def along_response(
    t: FloatArray | None,
    k: int,
    m: tuple[int, int],
    *,
    values: bool = False,
    constant: bool = False,
    centred: bool = False,
    name: str = "k",
    cycle: Cycle | None = None,
) -> dict[str, Any]:
    """Fields `along` and `along_norm` of a design: a P-spline over the response's points, or the constant.

    On a circle (`cycle`, which a term has of its own or as ``seen.t_cycle``) it is a periodic cubic spline, whatever m.
    """
    if t is None or constant:
        return {"along": SmoothMargin.constant(), "along_norm": 1.0}
    if cycle is None:
        margin = SmoothMargin.pspline(t, k, m, values=values, name=name)
    else:
        margin = cycle.margin(t, "the domain of the response", k, name=name)
    norm = margin.row_norm(t)
    return {"along": margin.centred(t) if centred else margin, "along_norm": norm}
