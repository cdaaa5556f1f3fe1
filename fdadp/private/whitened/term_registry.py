"""From terms as users write them to white features of a private fit; refusals come before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from fdadp._common.argument_checks import is_one_of, several, whole
from fdadp._common.calling_language import bounds_as
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.private.plan.private_design import made_of
from fdadp.private.public.column_ranges import Column, CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.whitened.of_additive_surfaces import WhiteSurface
from fdadp.private.whitened.of_any_term import derived_term
from fdadp.private.whitened.of_labels_and_numbers import ByLevels, ByNumber, WhiteLevels, WhiteNumbers, WhiteTimes
from fdadp.private.whitened.white_term import WhiteTerm
from fdadp.terms.curves.functional_additive import AdditiveFunctional, FunctionalAdditive
from fdadp.terms.curves.functional_concurrent import Concurrent
from fdadp.terms.curves.functional_linear import FunctionalLinear, LinearFunctional
from fdadp.terms.curves.principal_components import ComponentRegression, ComponentScores
from fdadp.terms.numbers.factors_and_random_effects import Factor, RandomEffect
from fdadp.terms.numbers.scalar_linear import Linear, ScalarsTogether
from fdadp.terms.numbers.smooth import Smooth, TensorSmooth
from fdadp.terms.spec import TermSpec, with_refund_k
from fdadp.terms.times_column import CODINGS, By

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior

# What a term asks of a private fit: public columns of the right kind, and no option without a private meaning.


FUNCTIONS = 10
"""B-splines over the domain of a curve that acts linearly."""
SPLINES = {1: 14, 2: 8, 3: 6}
"""B-splines over each number of a smooth function, by how many there are."""
OWN_BASIS = "ps"
"""Basis of smooth functions: cubic B-splines on even knots."""
SMALLEST, LARGEST = 5, 40
"""Numbers of cubic B-splines that may be asked for."""
RANGE, LEVELS = "a range", "all its levels"
_KINDS: dict[type, str] = {CurvesColumn: "curves", NumberColumn: "numbers", LabelColumn: "labels"}
C = TypeVar("C", CurvesColumn, NumberColumn, LabelColumn)


@dataclass(frozen=True)
class TermRequest:
    """A term and what is public of the model that it is in.

    Attributes
    ----------
    spec : TermSpec
    columns : mapping of str to Column
    prior : PublicPrior
    curves : bool
        Whether the response is a curve.
    beside : collection of str
        Names of the model's terms.
    t : ndarray of shape (T,), optional
        Grid of the response.
    """

    spec: TermSpec
    columns: Mapping[str, Column]
    prior: PublicPrior
    curves: bool
    beside: Collection[str] = ()
    t: FloatArray | None = None

    @property
    def name(self) -> str:
        """Of the term."""
        return self.spec.name

    # --- columns ---

    def curves_of(self, name: str) -> CurvesColumn:
        """A column of curves."""
        return self._of_kind(name, CurvesColumn, RANGE)

    def numbers_of(self, name: str) -> NumberColumn:
        """A column of numbers with a public range."""
        return self._of_kind(name, NumberColumn, RANGE)

    def labels_of(self, name: str) -> LabelColumn:
        """A column of labels with public levels."""
        column = self._of_kind(name, LabelColumn, LEVELS)
        if len(column.levels) < 2:
            raise InputError(f"{name} must have at least two levels, got {column.levels!r}")
        return column

    def _of_kind(self, name: str, kind: type[C], wanted: str) -> C:
        wanted = f"{wanted}, as in {bounds_as(name, holds='labels' if wanted == LEVELS else 'numbers')}"
        column = self._column(name, wanted)
        if isinstance(column, kind):
            return column
        if CurvesColumn not in (kind, type(column)):  # numbers or labels is what bounds say
            raise InputError(f"bounds of {name} must be {wanted}, for {self.name}; got {_declared(column)}")
        raise InputError(f"{name} must hold {_KINDS[kind]} for {self.name}, got a column of {_KINDS[type(column)]}")

    def public_of(self, name: str) -> Column:
        """A column of any kind."""
        return self._column(name, "its range, or all its levels if it holds labels")

    def _column(self, name: str, wanted: str) -> Column:
        if name not in self.columns:
            raise InputError(f"bounds of {name} must be public for {self.name}: give {wanted}; got none")
        return self.columns[name]

    @property
    def points(self) -> FloatArray:
        """Points of the response."""
        if self.t is None:
            raise InputError(f"t must be the grid of the response for {self.name}, got None")
        return self.t

    # --- options ---

    def of_curves(self, instead: str) -> None:
        """Refuse a response that is a number."""
        if not self.curves:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use {instead}()")

    def of_numbers(self, instead: str) -> None:
        """Refuse a response that is a curve."""
        if self.curves:
            raise InputError(f"{self.name} must have a response that is a number; for curves use {instead}()")

    def only(self, **why: str) -> None:
        """Refuse options that differ from their defaults; of each, what a private fit has instead."""
        for option, reason in why.items():
            self.refuse(option, getattr(self.spec, option), default_of(self.spec, option), reason)

    def refuse(self, option: str, value: Any, default: Any, reason: str) -> None:
        """Refuse a value of an option other than one."""
        if value != default:
            raise InputError(f"{option} of {self.name} must be {default!r} in a private fit, got {value!r}: {reason}")

    def along_t(self, k: Any, default: int) -> None:
        """Refuse another number of functions along the response than the default one."""
        if k != default:
            raise InputError(
                f"k of {self.name} must be {default}, its default, along t in a private fit, got {k!r}: effects vary "
                "along t as the prior's response functions do, PublicPrior(n_response=)"
            )

    def varies(self) -> None:
        """Refuse an effect that is the same at all t, where the response is a curve."""
        if self.curves and getattr(self.spec, "constant", False):
            raise InputError(
                f"{self.name} cannot be the same at all t in a private fit: each effect is measured along the response "
                "functions of the prior, which have none that is constant; write it without c()"
            )

    def size(self, k: Any, default: Any, own: int) -> int:
        """Number of B-splines: the private fit's own where the default was left, else as many as asked for."""
        if k == default:
            return own
        if not SMALLEST <= whole(k, f"k of {self.name}", least=None) <= LARGEST:
            raise InputError(
                f"k of {self.name} must be from {SMALLEST} to {LARGEST} in a private fit, or {default}, its default, "
                f"for {own}; got {k!r}"
            )
        return int(k)


def default_of(spec: TermSpec, option: str) -> Any:
    """Default of an option; of `k` refund's, where ordinary fits choose."""
    if option == "k" and spec.refund_k is not None:
        return spec.refund_k
    (found,) = (f.default for f in fields(spec) if f.name == option)  # type: ignore[arg-type]
    assert found is not MISSING
    return found


def _declared(column: Column) -> str:
    return f"the levels {column.levels!r}" if isinstance(column, LabelColumn) else f"the range {column.bounds!r}"


NO_PENALTY = "how smooth effects are is up to the public prior"
NO_RULE = "integrals are by the trapezoid rule"
NO_PERIOD = "the public prior has no periodic surfaces"
NO_CIRCLE = "effects vary along t as the prior's response functions do, which do not go round a circle"
NO_RANKS = "ranks are those among other people's curves"
BASIS = "functions are cubic B-splines on the public range with a Gaussian process of the prior, not mgcv's"
ALONG_T = 5
COMPONENTS = "its components are those of the private curves; use %s({}), whose functions are public"

REFUSED: dict[type[TermSpec], str] = {
    RandomEffect: "its levels are private, as people are; where they are public, such as sites, use a factor, C({})",
    ComponentScores: COMPONENTS % "ff",
    ComponentRegression: COMPONENTS % "lf",
}
"""Why there is no private version of terms."""


def white_term(
    spec: TermSpec,
    columns: Mapping[str, Column],
    prior: PublicPrior,
    *,
    curves: bool,
    t: FloatArray | None = None,
    beside: Collection[str] = (),
) -> WhiteTerm:
    """White features of a term.

    Parameters
    ----------
    spec : TermSpec
        As a user wrote it.
    columns : mapping of str to Column
        What is public of the columns.
    prior : PublicPrior
    curves : bool
        Whether the response is a curve.
    t : ndarray of shape (T,), optional
        Its grid: terms ask for it whose features differ between its points.
    beside : collection of str
        Names of the model's terms: of an interaction, which parts stand beside it.

    Raises
    ------
    InputError
        A kind of term that has no private version, a column of another kind or without public bounds or levels, or an
        option without a private meaning. Nothing was read.
    """
    kind = type(spec)
    if kind in REFUSED:
        reason = REFUSED[kind].format(", ".join(spec.columns))
        raise InputError(f"terms of a private fit must have a private version, got {spec.name}: {reason}")
    if not issubclass(kind, TermSpec):
        raise InputError(
            f"terms of a private fit must be of {', '.join(sorted(k.__name__ for k in MAKERS))}, or another TermSpec, "
            f"got {kind.__name__}"
        )
    own: Any = with_refund_k(spec)
    asked = TermRequest(own, columns, prior, curves, beside, t)
    if kind in MAKERS and getattr(own, "by", None):
        return _times(asked, replace(own, by=None), own.by)
    return MAKERS.get(kind, derived_term)(asked, own)


def _ff(asked: TermRequest, spec: FunctionalLinear) -> WhiteTerm:
    asked.of_curves("lf")
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    k, k_t = several(spec.k, 2, f"k of {asked.name}")
    default = default_of(spec, "k")
    asked.along_t(k_t, default[1])
    size = asked.size(k, default[0], FUNCTIONS)
    asked.curves_of(spec.column)
    return derived_term(asked, replace(spec, k=(size, k_t)))


def _concurrent(asked: TermRequest, spec: Concurrent) -> WhiteTerm:
    asked.of_curves("lf")
    asked.only(m=NO_PENALTY, period=NO_CIRCLE)
    asked.along_t(spec.k, default_of(spec, "k"))
    asked.curves_of(spec.column)
    return derived_term(asked, spec)


def _lf(asked: TermRequest, spec: LinearFunctional) -> WhiteTerm:
    asked.of_numbers("ff")
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    size = asked.size(spec.k, default_of(spec, "k"), FUNCTIONS)
    asked.curves_of(spec.column)
    return derived_term(asked, replace(spec, k=size))


def _sff(asked: TermRequest, spec: FunctionalAdditive) -> WhiteTerm:
    asked.of_curves("af")
    k_t, *sizes = several(spec.k, 3, f"k of {asked.name}")
    default = default_of(spec, "k")
    asked.along_t(k_t, default[0])
    asked.only(period=NO_PERIOD, x_transform=NO_RANKS)
    return _surface(asked, spec.column, sizes, default[1:])


def _af(asked: TermRequest, spec: AdditiveFunctional) -> WhiteTerm:
    asked.of_numbers("sff")
    asked.only(period=NO_PERIOD, x_transform=NO_RANKS)
    return _surface(asked, spec.column, several(spec.k, 2, f"k of {asked.name}"), default_of(spec, "k"))


def _surface(asked: TermRequest, column: str, sizes: Any, default: Any) -> WhiteTerm:
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    prior = asked.prior
    over_s = asked.size(sizes[0], default[0], prior.n_basis_s)
    over_x = asked.size(sizes[1], default[1], prior.n_basis_x)
    prior = replace(prior, n_basis_s=over_s, n_basis_x=over_x)
    grid = asked.curves_of(column).grid
    return made_of(_white_surface, prior, [grid], asked.name, column)


def _white_surface(prior: PublicPrior, grid: FloatArray, name: str, column: str) -> WhiteSurface:
    return WhiteSurface.on(name, column, grid, prior)


def _linear(asked: TermRequest, spec: Linear) -> WhiteTerm:
    asked.varies()
    asked.only(m=NO_PENALTY, period=NO_CIRCLE)
    asked.along_t(spec.k, default_of(spec, "k"))
    return WhiteNumbers.of(asked.name, asked.numbers_of(spec.column).name)


def _together(asked: TermRequest, spec: ScalarsTogether) -> WhiteTerm:
    asked.of_curves("linear")
    asked.along_t(spec.k, default_of(spec, "k"))
    if isinstance(spec.numbers, str) or not spec.numbers:
        raise InputError(f"numbers of fosr() must be a tuple of columns, got {spec.numbers!r}")
    return WhiteNumbers.of(asked.name, *(asked.numbers_of(name).name for name in spec.numbers))


def _factor(asked: TermRequest, spec: Factor) -> WhiteTerm:
    asked.varies()
    own_mean = "a private fit has a mean of its own, and levels may differ in all that t has"
    asked.only(m=NO_PENALTY, coding=own_mean, period=NO_CIRCLE)
    asked.along_t(spec.k, default_of(spec, "k"))
    return WhiteLevels.of(asked.name, asked.labels_of(spec.column))


def _smooth(asked: TermRequest, spec: Smooth) -> WhiteTerm:
    asked.varies()
    asked.only(bs=BASIS, m=NO_PENALTY, period="cyclic functions are not there yet in private fits")
    if isinstance(spec.k, tuple | list) and asked.curves:
        k, k_t = several(spec.k, 2, f"k of {asked.name}")
        asked.along_t(k_t, ALONG_T)
    else:
        k = None if spec.k == "refund" else spec.k
    size = asked.size(k, None, SPLINES[1])
    asked.numbers_of(spec.column)
    return derived_term(replace(asked, curves=False), replace(spec, k=size, bs=OWN_BASIS))


def _tensor(asked: TermRequest, spec: TensorSmooth) -> WhiteTerm:
    asked.varies()
    asked.only(bs=BASIS, m=NO_PENALTY)
    count = len(spec.covariates)
    if len(set(spec.covariates)) < count or count not in SPLINES or count < 2:
        raise InputError(f"{asked.name} must have two or three different columns in a private fit; for one use s()")
    default, sizes = default_of(spec, "k"), spec.k
    if not isinstance(sizes, tuple | list):
        sizes = (sizes,) * count
    if len(sizes) == count + 1 and asked.curves:
        asked.along_t(sizes[-1], ALONG_T)
        sizes = sizes[:-1]
    own = [asked.size(k, default, SPLINES[count]) for k in several(sizes, count, f"k of {asked.name}")]
    for name in spec.covariates:
        asked.numbers_of(name)
    return derived_term(replace(asked, curves=False), replace(spec, k=tuple(own), bs=OWN_BASIS))


def _by(asked: TermRequest, spec: By) -> WhiteTerm:
    return _times(asked, spec.term, spec.column, spec.coding)


def _times(asked: TermRequest, term: TermSpec, column: str, coding: str | None = None) -> WhiteTerm:
    if not is_one_of(coding, (*CODINGS, None)):
        raise InputError(f"coding of {asked.name} must be one of {CODINGS} or None, got {coding!r}")
    of = white_term(term, asked.columns, asked.prior, curves=asked.curves, t=asked.t, beside=asked.beside)
    alone = column not in asked.beside
    if coding == "numbers" or (coding is None and not isinstance(asked.public_of(column), LabelColumn)):
        number = asked.numbers_of(column)
        by = ByNumber(column) if term.name in asked.beside else ByNumber.as_it_is(number)
        return WhiteTimes.product(asked.name, of, by, alone=alone)
    if column in term.columns:
        raise InputError(f"{asked.name} must have a term of other columns than {column}")
    levels = ByLevels.of(asked.labels_of(column), differences=coding == "treatment")
    return WhiteTimes.product(asked.name, of, levels, alone=alone and not of.of_values)


MAKERS: dict[type[TermSpec], Callable[[TermRequest, Any], WhiteTerm]] = {
    FunctionalLinear: _ff,
    Concurrent: _concurrent,
    LinearFunctional: _lf,
    FunctionalAdditive: _sff,
    AdditiveFunctional: _af,
    Linear: _linear,
    ScalarsTogether: _together,
    Factor: _factor,
    Smooth: _smooth,
    TensorSmooth: _tensor,
    By: _by,
}
"""How white features are made of kinds of terms that do not leave it to :func:`derived_term`."""
