"""The response of a private fit: what is public of it by its family, and its entries, which the kernel alone reads."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fdadp.errors import InputError, PrivacyError
from fdadp.private.public.columns import Range
from fdadp.regression.private.table import DeclaredBounds
from fdadp.solve.form.family import FAMILIES, Family

if TYPE_CHECKING:
    from fdadp.private.release.fit import Spending
    from fdadp.private.release.mechanisms import EndToEnd
    from fdadp.private.rows.bounded_rows import BoundedResponse

OF_NUMBERS = ("gaussian", "binomial", "poisson")
"""Families of private fits of numbers."""


@dataclass(frozen=True)
class PublicResponse:
    """A response before the first read.

    Attributes
    ----------
    name : str
    bounds : (float, float)
        Public range.
    classes : tuple or None
        Where it is one of two classes.
    bounded : BoundedResponse or None
        Where it is of another family than the Gaussian.
    """

    name: str
    bounds: Range
    classes: tuple[Hashable, ...] | None = None
    bounded: BoundedResponse | None = None

    @property
    def public(self) -> dict[str, Any]:
        """Public inputs, for the ledger."""
        if self.classes is not None:
            return {f"classes of {self.name}": ", ".join(map(str, self.classes))}
        return {f"bounds of {self.name}": self.bounds}

    def check_offset(self, offset: Any) -> None:
        """Refuse an offset of another family than the Gaussian, where it would not be a part of the response."""
        if self.bounded is not None and offset is not None:
            family = self.bounded.family.name
            raise InputError(f"offset and prior='persistence' must be left out with family={family!r} in a private fit")

    def spending(self, mechanism: EndToEnd) -> Spending[Any]:
        """The mechanism for this kind of response."""
        from fdadp.private.release.families import DPAFFOfFamily
        from fdadp.private.release.mechanisms import DPAFF

        if self.bounded is None:
            return mechanism
        assert isinstance(mechanism, DPAFF)
        return DPAFFOfFamily(mechanism, self.bounded)


def check_family(family: Family, *, curves: bool) -> None:
    """Refuse a family that has no private fit; raises InputError."""
    known = ("gaussian",) if curves else OF_NUMBERS
    if family in [FAMILIES[name] for name in known]:
        return
    why = "" if curves else ": residuals must have a public bound, and those of other families have none"
    if family.name == "gamma" and not curves:
        why = ": its residuals (y - μ)/μ have no bound; fit the logarithm of the response with family='gaussian'"
    raise InputError(f"family must be {' or '.join(map(repr, known))} in a private fit, got {family.name!r}{why}")


def public_response(declared: DeclaredBounds, name: str, family: Family, *, curves: bool) -> PublicResponse:
    """What is public of a response.

    Parameters
    ----------
    declared : DeclaredBounds
    name : str
    family : Family
    curves : bool
        Whether it is a curve, or else a number.

    Raises
    ------
    InputError, PrivacyError
        No bounds or classes, or such as do not suit the family. Nothing was read.
    """
    from fdadp.private.rows.bounded_rows import BoundedResponse

    if family.name == "binomial" and not curves:
        return PublicResponse(name, (0.0, 1.0), declared.classes(name), BoundedResponse(family, (0.0, 1.0)))
    bounds = declared.range(name)
    if family.name == "poisson" and not curves:
        if bounds[0] < 0:
            raise PrivacyError(f"bounds of {name} must be counts of 0 or more for family='poisson', got {bounds!r}")
        return PublicResponse(name, bounds, bounded=BoundedResponse(family, bounds))
    return PublicResponse(name, bounds)
