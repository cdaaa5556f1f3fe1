"""Terms with refund's numbers of functions, where terms leave their own to the fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fdadp.terms.numbers.smooth import Smooth
from fdadp.terms.spec import TermSpec, unsized
from fdadp.terms.times_column import By


def with_refund_sizes(term: TermSpec) -> TermSpec:
    """The term with refund's numbers of functions wherever it does not give its own.

    Examples
    --------
    >>> from fdadp import terms
    >>> with_refund_sizes(terms.ff("X")).k, with_refund_sizes(terms.linear("age", k=9)).k
    ((5, 5), 9)
    """
    if isinstance(term, By):
        return replace(term, term=with_refund_sizes(term.term))
    return term.with_refund_sizes() if isinstance(term, Smooth) else with_refund_k(term)


def with_refund_k(term: TermSpec) -> TermSpec:
    """The term with refund's `k`, where that is a property of its kind and the term does not give its own."""
    own: Any = term
    if own.refund_k is None or not unsized(own.k):
        return term
    return replace(own, k=own.refund_k)  # type: ignore[no-any-return]
