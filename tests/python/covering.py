"""A product of settings for a test: `make test` has each value once, `make audits` all that is left of the product."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def few(cases: Sequence[Sequence[Hashable]]) -> set[int]:
    """Places of few cases that together have each value which some case has at the same place.

    Each next one has as many values as any that none before has, the first of equals.
    """
    left = {place: set(enumerate(case)) for place, case in enumerate(cases)}
    chosen: set[int] = set()
    while any(left.values()):
        best = max(left, key=lambda place: (len(left[place]), -place))
        found = left.pop(best)
        chosen.add(best)
        left = {place: values - found for place, values in left.items()}
    return chosen
