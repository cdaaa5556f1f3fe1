"""Terms with more functions along the response than their defaults, which are refund's and few."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from fdadp.terms.component_scores import ComponentScores
from fdadp.terms.functional_additive import FunctionalAdditive
from fdadp.terms.functional_concurrent import Concurrent
from fdadp.terms.functional_linear import FunctionalLinear
from fdadp.terms.scalar_factor import Factor
from fdadp.terms.scalar_linear import Linear
from fdadp.terms.smooth import Smooth
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By

__all__ = ["MORE_ALONG", "with_more_along"]

MORE_ALONG = 15
"""Functions along the response, penalised: generalised least squares weights what few of them cannot follow."""


def with_more_along(term: TermSpec) -> TermSpec:
    """The term with :data:`MORE_ALONG` functions along the response, where its number is the default."""
    if isinstance(term, By):
        return replace(term, term=with_more_along(term.term))
    kind: Any = type(term)
    own: Any = term
    if not isinstance(
        term, FunctionalLinear | FunctionalAdditive | Concurrent | Linear | Factor | Smooth | ComponentScores
    ):
        return term
    default = next(f.default for f in fields(kind) if f.name == "k")
    if own.k != default or getattr(term, "constant", False):
        return term
    if isinstance(term, FunctionalLinear):
        return replace(term, k=(term.k[0], MORE_ALONG))
    if isinstance(term, FunctionalAdditive):
        return replace(term, k=(MORE_ALONG, *term.k[1:]))
    if isinstance(term, Smooth):
        return replace(term, k=(8, MORE_ALONG))
    return replace(own, k=MORE_ALONG)  # type: ignore[no-any-return]
