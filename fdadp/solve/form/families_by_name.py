"""Families of responses by their names."""

from __future__ import annotations

import re
from collections.abc import Callable

from fdadp.errors import InputError
from fdadp.solve.form.families_with_theta import NegativeBinomial, ScaledT
from fdadp.solve.form.ordered_categories import Ordered
from fdadp.solve.form.response_families import Binomial, Family, Gamma, Gaussian, Poisson

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (Gaussian(), Binomial(), Poisson(), Gamma(), NegativeBinomial(), ScaledT(), Ordered())
}

PARAMETERS: dict[str, tuple[str, Callable[..., Family]]] = {
    "negative_binomial": ("theta", NegativeBinomial),
    "scaled_t": ("nu, sigma", ScaledT),
    "ordered": ("cuts", lambda *cuts: Ordered(cuts)),
}
"""Families whose parameters can be given, as numbers in parentheses, and what makes them."""


def family_of(family: str | Family) -> Family:
    """A family by its name; ``"negative_binomial(2.5)"`` has θ = 2.5, ``"scaled_t(4, 0.5)"`` ν = 4 and σ = 0.5.

    ``"ordered(-1, 0.5, 2)"`` has these cut points.

    Raises
    ------
    InputError
        No such family, or parameters that it cannot have.
    """
    if isinstance(family, Family):
        return family
    name = family.strip().lower() if isinstance(family, str) else ""
    given = re.fullmatch(r"(\w+)\(([^()]+)\)", name)
    if given is not None and given[1] in PARAMETERS:
        names, make = PARAMETERS[given[1]]
        try:
            values = [float(value) for value in given[2].split(",")]
        except ValueError:
            values = []
        if not values or (given[1] != "ordered" and len(values) != len(names.split(","))):
            raise InputError(f"{names} of family {given[1]} must be numbers, got {family!r}")
        return make(*values)
    if name not in FAMILIES:
        raise InputError(f"family must be one of {', '.join(map(repr, FAMILIES))}, got {family!r}")
    return FAMILIES[name]
