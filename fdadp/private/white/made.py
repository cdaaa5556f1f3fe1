"""From terms as users write them to white features of a private fit; refusals come before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fdadp._common.checks import is_one_of, several
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.private.columns import Column
from fdadp.private.white.asked import Asked, default_of
from fdadp.private.white.base import WhiteTerm
from fdadp.private.white.of_curves import FUNCTIONS, WhiteIntegral
from fdadp.private.white.of_history import WhiteHistory
from fdadp.private.white.of_labels import WhiteLevels
from fdadp.private.white.of_numbers import WhiteNumbers
from fdadp.private.white.of_points import WhiteConcurrent
from fdadp.private.white.of_smooths import FUNCTIONS as SPLINES
from fdadp.private.white.of_smooths import WhiteSmooth
from fdadp.private.white.of_surfaces import WhiteSurface
from fdadp.private.white.times import ByLevels, ByNumber, WhiteTimes
from fdadp.terms.additive_functional import AdditiveFunctional
from fdadp.terms.along import with_refund_k
from fdadp.terms.component_regression import ComponentRegression
from fdadp.terms.component_scores import ComponentScores
from fdadp.terms.functional_additive import FunctionalAdditive
from fdadp.terms.functional_concurrent import Concurrent
from fdadp.terms.functional_linear import FunctionalLinear
from fdadp.terms.linear_functional import LinearFunctional
from fdadp.terms.random_effect import RandomEffect
from fdadp.terms.scalar_factor import Factor
from fdadp.terms.scalar_linear import Linear
from fdadp.terms.scalars_together import ScalarsTogether
from fdadp.terms.smooth import Smooth
from fdadp.terms.spec import TermSpec
from fdadp.terms.tensor_smooth import TensorSmooth
from fdadp.terms.times_column import CODINGS, By

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

NO_PENALTY = "how smooth effects are is up to the public prior"
NO_RULE = "integrals are by the trapezoid rule"
NO_PERIOD = "the public prior has no periodic surfaces"
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
    if kind not in MAKERS:
        raise InputError(
            f"terms of a private fit must be of {', '.join(sorted(k.__name__ for k in MAKERS))}, got {kind.__name__}"
        )
    spec = with_refund_k(spec)
    return MAKERS[kind](Asked(spec, columns, prior, curves, beside, t), spec)


def _ff(asked: Asked, spec: FunctionalLinear) -> WhiteTerm:
    asked.of_curves("lf")
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    k, k_t = several(spec.k, 2, f"k of {asked.name}")
    default = default_of(spec, "k")
    asked.along_t(k_t, default[1])
    size = asked.size(k, default[0], FUNCTIONS)
    if spec.by:
        return _times(asked, replace(spec, by=None), spec.by)
    column = asked.curves_of(spec.column)
    if spec.limits is not None:
        return WhiteHistory.within(asked.name, column, asked.prior, asked.points, spec.limits, size)
    return WhiteIntegral.of(asked.name, column, asked.prior, size)


def _concurrent(asked: Asked, spec: Concurrent) -> WhiteTerm:
    asked.of_curves("lf")
    asked.only(m=NO_PENALTY)
    asked.along_t(spec.k, default_of(spec, "k"))
    return WhiteConcurrent.of(asked.name, asked.curves_of(spec.column), asked.points)


def _lf(asked: Asked, spec: LinearFunctional) -> WhiteTerm:
    asked.of_numbers("ff")
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    size = asked.size(spec.k, default_of(spec, "k"), FUNCTIONS)
    if spec.by:
        return _times(asked, replace(spec, by=None), spec.by)
    return WhiteIntegral.of(asked.name, asked.curves_of(spec.column), asked.prior, size)


def _sff(asked: Asked, spec: FunctionalAdditive) -> WhiteTerm:
    asked.of_curves("af")
    k_t, *sizes = several(spec.k, 3, f"k of {asked.name}")
    default = default_of(spec, "k")
    asked.along_t(k_t, default[0])
    asked.only(period=NO_PERIOD, x_transform=NO_RANKS)
    return _surface(asked, spec.column, sizes, default[1:])


def _af(asked: Asked, spec: AdditiveFunctional) -> WhiteTerm:
    asked.of_numbers("sff")
    asked.only(period=NO_PERIOD, x_transform=NO_RANKS)
    if spec.by:
        return _times(asked, replace(spec, by=None), spec.by)
    return _surface(asked, spec.column, several(spec.k, 2, f"k of {asked.name}"), default_of(spec, "k"))


def _surface(asked: Asked, column: str, sizes: Any, default: Any) -> WhiteTerm:
    asked.only(m=NO_PENALTY, rule=NO_RULE)
    prior = asked.prior
    over_s = asked.size(sizes[0], default[0], prior.n_basis_s)
    over_x = asked.size(sizes[1], default[1], prior.n_basis_x)
    prior = replace(prior, n_basis_s=over_s, n_basis_x=over_x)
    return WhiteSurface.on(asked.name, column, asked.curves_of(column).grid, prior)


def _linear(asked: Asked, spec: Linear) -> WhiteTerm:
    asked.varies()
    asked.only(m=NO_PENALTY)
    asked.along_t(spec.k, default_of(spec, "k"))
    return WhiteNumbers.of(asked.name, asked.numbers_of(spec.column).name)


def _together(asked: Asked, spec: ScalarsTogether) -> WhiteTerm:
    asked.of_curves("linear")
    asked.along_t(spec.k, default_of(spec, "k"))
    if isinstance(spec.numbers, str) or not spec.numbers:
        raise InputError(f"numbers of fosr() must be a tuple of columns, got {spec.numbers!r}")
    return WhiteNumbers.of(asked.name, *(asked.numbers_of(name).name for name in spec.numbers))


def _factor(asked: Asked, spec: Factor) -> WhiteTerm:
    asked.varies()
    asked.only(m=NO_PENALTY, coding="a private fit has a mean of its own, and levels may differ in all that t has")
    asked.along_t(spec.k, default_of(spec, "k"))
    return WhiteLevels.of(asked.name, asked.labels_of(spec.column))


def _smooth(asked: Asked, spec: Smooth) -> WhiteTerm:
    asked.varies()
    asked.only(bs=BASIS, m=NO_PENALTY, period="cyclic functions are not there yet in private fits")
    if isinstance(spec.k, tuple | list) and asked.curves:
        k, k_t = several(spec.k, 2, f"k of {asked.name}")
        asked.along_t(k_t, ALONG_T)
    else:
        k = None if spec.k == "refund" else spec.k
    size = asked.size(k, None, SPLINES[1])
    if spec.by:
        return _times(asked, replace(spec, by=None), spec.by)
    return WhiteSmooth.of(asked.name, [asked.numbers_of(spec.column).name], asked.prior, [size])


def _tensor(asked: Asked, spec: TensorSmooth) -> WhiteTerm:
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
    if spec.by:
        return _times(asked, replace(spec, by=None), spec.by)
    numbers = [asked.numbers_of(name).name for name in spec.covariates]
    return WhiteSmooth.of(asked.name, numbers, asked.prior, own)


def _by(asked: Asked, spec: By) -> WhiteTerm:
    return _times(asked, spec.term, spec.column, spec.coding)


def _times(asked: Asked, term: TermSpec, column: str, coding: str | None = None) -> WhiteTerm:
    if not is_one_of(coding, (*CODINGS, None)):
        raise InputError(f"coding of {asked.name} must be one of {CODINGS} or None, got {coding!r}")
    of = white_term(term, asked.columns, asked.prior, curves=asked.curves, t=asked.t, beside=asked.beside)
    alone = column not in asked.beside
    if (coding or asked.coding_of(column)) == "numbers":
        number = asked.numbers_of(column)
        by = ByNumber(column) if term.name in asked.beside else ByNumber.as_it_is(number)
        return WhiteTimes.product(asked.name, of, by, alone=alone)
    if column in term.columns:
        raise InputError(f"{asked.name} must have a term of other columns than {column}")
    levels = ByLevels.of(asked.labels_of(column), differences=coding == "treatment")
    return WhiteTimes.product(asked.name, of, levels, alone=alone and not of.centred)


MAKERS: dict[type[TermSpec], Callable[[Asked, Any], WhiteTerm]] = {
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
"""How the white features of each kind of term are made."""
