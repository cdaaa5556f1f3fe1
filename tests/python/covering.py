"""A product of settings for the tests: each value once in `make test`, all of the product in `make audits`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def few(cases: Iterable[tuple[Any, ...]], *asks: Callable[..., Hashable]) -> list[int]:
    """Places of few cases that together have every value that each question finds in some case.

    Each next one has as many values as any that none before has, the first of equals.
    """
    left = {place: {(ask, ask(*case)) for ask in asks} for place, case in enumerate(cases)}
    chosen: list[int] = []
    while any(left.values()):
        best = max(left, key=lambda place: (len(left[place]), -place))
        chosen.append(best)
        found = left.pop(best)
        for values in left.values():
            values -= found
    return sorted(chosen)


def covering(cases: Iterable[tuple[Any, ...]], *asks: Callable[..., Hashable]) -> list[Any]:
    """Parameters of a test: those of `few` run always, the others carry the marker `statistics`."""
    known = list(cases)
    quick = set(few(known, *asks))
    return [
        pytest.param(*case, marks=() if place in quick else pytest.mark.statistics) for place, case in enumerate(known)
    ]


def each_once(*lists: Sequence[Any]) -> list[Any]:
    """The product of some lists, of which `make test` has each entry once."""
    places = [range(len(entries)) for entries in lists]
    asks = [lambda *case, i=i: case[i] for i in range(len(lists))]
    quick = set(few(list(product(*places)), *asks))
    return [
        pytest.param(*case, marks=() if place in quick else pytest.mark.statistics)
        for place, case in enumerate(product(*lists))
    ]
