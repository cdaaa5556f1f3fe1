"""What the releases of a private fit say about its public inputs: post-processing, no private value is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fdadp.privacy.clipped_shares import SURE, SURE_PURE
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.public.column_ranges import NUMBERS_HALF_WIDTH, Column, CurvesColumn, NumberColumn
from fdadp.private.release.residual_sizes import PrivateFit
from fdadp.private.rows.row_functions import RowFunctions

OUTSIDE = 0.05
"""Share of values outside a public range from which it is worth a warning."""
WIDE = 50.0
"""Half-widths of a public range over the released scale, from which it is called far too wide."""
ASIDE, ASIDE_SDS, ASIDE_OF_RANGE = 0.77, 2.0, 0.25
"""Level of a response about where it was looked for, over its size there, and sds of noise beyond that: from both on it
is most of the size, which then says little of the spread. From this share of half the range on that does harm."""
BEYOND = 0.02
"""Share of numbers that the fit cuts off, from which it is worth a warning."""
NOTHING, PERCENT = 0.05, 100
"""Explained share that counts as nothing; and what shares are shown times."""


class RangeEvidence(NamedTuple):
    """A public range, given by its middle and half its width, and what was released of the values in it."""

    name: str
    middle: float
    half: float
    location: float
    scale: float

    @property
    def bounds(self) -> str:
        """As the user gave it."""
        return f"bounds {self.name}=({self.middle - self.half:g}, {self.middle + self.half:g})"

    @property
    def verdict(self) -> str:
        """What to say of its width, if anything."""
        return ", far too wide" if self.half / self.scale > WIDE else ""

    def __str__(self) -> str:
        released = f"(released: {self.scale:.3g} about {self.location:.4g})"
        return f"{self.bounds}: {self.half / self.scale:.2g} scales to each side {released}"


def describe_ranges(columns: Sequence[Column]) -> tuple[str, ...]:
    """How the public ranges of curves compare with what was released of them."""
    return tuple(f"{seen}{seen.verdict}" for seen in _of_curves(columns))


def beyond_scale(columns: Sequence[Column], *, pure: bool) -> tuple[str, ...]:
    """Warnings of numbers whose released counts contradict the scale that the fit took them to have."""
    out = []
    for c in columns:
        if isinstance(c, NumberColumn) and c.beyond is not None:
            least = c.beyond[0] - (SURE_PURE if pure else SURE) * c.beyond[1]
            if least > BEYOND:
                out.append(
                    f"at least {PERCENT * min(least, 1.0):.0f} % of the values of {c.name} lie more than "
                    f"{NUMBERS_HALF_WIDTH:g} of its released scales from its location, and count as that far: its "
                    f"coefficient may be wrong; a public transform of {c.name}, such as its logarithm, may help"
                )
    return tuple(out)


def _of_curves(columns: Sequence[Column]) -> Iterator[RangeEvidence]:
    for c in columns:
        if isinstance(c, CurvesColumn):
            yield RangeEvidence(c.name, c.mid, c.half, c.location, c.scale * c.geometric_scale)


def advise(
    fit: PrivateFit, plan: Plan, rows: RowFunctions, r2: float, response: str = "Y", beside: str = "the mean curve"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say how ranges and n compare with what was released, and whether the fit explains anything.

    Parameters
    ----------
    beside : str
        What would do as well where the fit explains nothing.

    Returns
    -------
    warnings : tuple of str
        What is surely wrong, given the known noise: many values outside a range, or a number of persons far from n.
    notes : tuple of str
    """
    warned, notes = list(beyond_scale(fit.columns, pure=plan.pure)), []
    n, sure = plan.n, SURE_PURE if plan.pure else SURE
    counted, sd = fit.counted
    n_is_right = not abs(counted - 1) > max(0.2, sure * sd)
    if not n_is_right:
        warned.append(
            f"n is taken to be {n:,.0f}, but the releases show about {max(counted, 0) * n:,.0f} persons with usable "
            f"rows (give or take {2 * sd * n:,.0f}): means and intervals are wrong by that factor"
            + ("; values are missing, or ids of tables do not meet" if counted < 1 else "")
        )
    of_response = RangeEvidence(response, rows.y_mid, rows.y_half, fit.y_location, math.sqrt(fit.regression.energy))
    for i, seen in enumerate((*_of_curves(fit.columns), of_response)):
        text, name, bounds = str(seen), seen.name, seen.bounds
        outside = fit.regression.outside
        if outside is not None:  # in which a person who did not count is one half
            value, noise = float(outside.value[i]), outside.sd
            if math.isfinite(counted):
                value, noise = value - (1 - counted) / 2, math.hypot(noise, sd / 2)
            text += f", {PERCENT * min(max(value, 0.0), 1.0):.0f} % +- {PERCENT * noise:.2g} % of values outside"
            if n_is_right and value - sure * noise > OUTSIDE:
                warned.append(
                    f"the releases say that at least {PERCENT * min(value - sure * noise, 1.0):.0f} % of the values of "
                    f"{name} lie outside {bounds}: check its width and units"
                )
        notes.append(text + seen.verdict)
    level, noise = _level(fit, rows)
    looked = of_response.scale * rows.geometric
    seen_again = plan.budget_shares.get("y spread")
    aside = max(ASIDE * looked + ASIDE_SDS * noise, ASIDE_OF_RANGE * rows.y_half)
    if n_is_right and not seen_again and abs(level) > aside:
        warned.append(
            f"the releases show {response} about {fit.y_location + level:.3g}, far from the middle of "
            f"{of_response.bounds}, and the budget did not afford to look at its spread there: the fit may be much "
            f"worse than {beside}; such a range should be about the middle of the values"
        )
    notes += rows.notes
    if r2 < NOTHING:
        notes.append(f"the fit explains about nothing (R-squared {r2:.2f} by its releases): take it for {beside}")
    return tuple(warned), tuple(notes)


def _level(fit: PrivateFit, rows: RowFunctions) -> tuple[float, float]:
    """Released mean over t of the response about its location, and the sd of its noise."""
    levels = rows.t_weights @ rows.design.response
    return float(levels @ fit.mean), math.sqrt(float(levels**2 @ fit.regression.mean_variance))
