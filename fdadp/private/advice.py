"""What the releases of a private fit say about its public inputs: post-processing, no private value is looked at."""

from __future__ import annotations

import math

from fdadp.private.columns import CurvesColumn
from fdadp.private.intervals import PrivateFit
from fdadp.private.plan import Plan
from fdadp.private.rows import Rows

__all__ = ["advise"]

OUTSIDE = 0.05
"""Share of values outside a public range from which it is worth a warning."""
WIDE = 50.0
"""Half-widths of a public range over the released scale, from which it is called far too wide."""
SURE, SURE_PURE = 3.0, 4.5
"""Standard deviations of known noise, Gaussian and Laplace, that chance exceeds once in a thousand times."""
NOTHING = 0.05
"""Explained share that counts as nothing."""


def advise(
    fit: PrivateFit, plan: Plan, rows: Rows, r2: float, response: str = "Y", beside: str = "the mean curve"
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
    warned, notes = [], []
    n, sure = plan.n, SURE_PURE if plan.pure else SURE
    counted, sd = fit.counted
    n_is_right = not abs(counted - 1) > max(0.2, sure * sd)
    if not n_is_right:
        warned.append(
            f"n is taken to be {n:,.0f}, but the releases show about {max(counted, 0) * n:,.0f} persons with usable "
            f"rows (give or take {2 * sd * n:,.0f}): means and intervals are wrong by that factor"
        )
    curves = [c for c in fit.columns if isinstance(c, CurvesColumn)]
    ranges = (
        *((c.name, c.mid, c.half, c.location, c.scale * c.geometric_scale) for c in curves),
        (response, rows.y_mid, rows.y_half, fit.y_location, math.sqrt(fit.regression.energy)),
    )
    for i, (name, middle, half, location, scale) in enumerate(ranges):
        bounds = f"bounds {name}=({middle - half:g}, {middle + half:g})"
        text = f"{bounds}: {half / scale:.2g} scales to each side (released: {scale:.3g} about {location:.4g})"
        outside = fit.regression.outside
        if outside is not None:  # in which a person who did not count is one half
            value, noise = float(outside.value[i]), outside.sd
            if math.isfinite(counted):
                value, noise = value - (1 - counted) / 2, math.hypot(noise, sd / 2)
            text += f", {100 * min(max(value, 0.0), 1.0):.0f} % of values outside (noise: {100 * noise:.1g} %)"
            if n_is_right and value - sure * noise > OUTSIDE:
                warned.append(
                    f"the releases say that at least {100 * min(value - sure * noise, 1.0):.0f} % of the values of "
                    f"{name} lie outside {bounds}: check its width and units"
                )
        notes.append(text + (", far too wide" if half / scale > WIDE else ""))
    if r2 < NOTHING:
        notes.append(f"the fit explains about nothing (R-squared {r2:.2f} by its releases): take it for {beside}")
    return tuple(warned), tuple(notes)
