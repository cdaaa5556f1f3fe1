"""Families of responses by their names."""

from __future__ import annotations

import re

from fdadp.errors import InputError
from fdadp.solve.form.families_with_theta import NegativeBinomial
from fdadp.solve.form.response_families import Binomial, Family, Gamma, Gaussian, Poisson

FAMILIES: dict[str, Family] = {
    family.name: family for family in (Gaussian(), Binomial(), Poisson(), Gamma(), NegativeBinomial())
}


def family_of(family: str | Family) -> Family:
    """A family by its name; ``"negative_binomial(2.5)"`` is the one with θ = 2.5.

    Raises
    ------
    InputError
        No such family, or a θ that is no positive number.
    """
    if isinstance(family, Family):
        return family
    name = family.strip().lower() if isinstance(family, str) else ""
    given = re.fullmatch(r"negative_binomial\(([^()]+)\)", name)
    if given is not None:
        try:
            theta = float(given[1])
        except ValueError:
            raise InputError(f"theta must be a positive number, got {family!r}") from None
        return NegativeBinomial(theta)
    if name not in FAMILIES:
        raise InputError(f"family must be one of {', '.join(map(repr, FAMILIES))}, got {family!r}")
    return FAMILIES[name]
