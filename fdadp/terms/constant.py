"""Effects that are the same at all points of the response."""

from __future__ import annotations

from dataclasses import replace

from fdadp.errors import InputError
from fdadp.terms.numbers.random_effect import RandomEffect
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By


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
    if isinstance(term, RandomEffect):
        return replace(term, k=None)
    if isinstance(term, By):
        return replace(term, term=constant(term.term))
    if hasattr(term, "constant"):
        return replace(term, constant=True)  # type: ignore[type-var]
    raise InputError(
        f"c() must have a term that can be the same at all t: a column, a factor, s(), te() or re(), got {term.name}"
    )
