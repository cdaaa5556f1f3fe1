"""The plan of a private fit before any data are there, from public values only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.sample import as_grid
from fdadp.privacy import Privacy
from fdadp.privacy.account.accounting import noise_multiplier
from fdadp.privacy.declared import check_delta
from fdadp.privacy.rows._laws import MEAN, Law
from fdadp.private.plan.counting import expected_left
from fdadp.private.plan.plan import Plan
from fdadp.private.public.inputs import LEAST_POINTS

if TYPE_CHECKING:
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.private.release.fit import Spending
    from fdadp.private.release.mechanisms import EndToEnd

MOST_POINTS, GRID = 100_000, 51
"""Of a grid that is only planned for: at most, and by default."""


def preview(
    privacy: Privacy,
    mechanism: EndToEnd,
    s: ArrayLike | int = GRID,
    t: ArrayLike | int = GRID,
    *,
    n: float | None = None,
    law: Law = MEAN,
) -> tuple[Plan, float]:
    """Plan a private fit, with the share of the budget that is left to it (less than 1 where n is released first).

    Parameters
    ----------
    privacy : Privacy
    mechanism : EndToEnd
    s, t : array_like or int
        Grids of X and Y, or their numbers of points.
    n : float, optional
        Number of persons to plan for where none is declared.
    law : Law
        How the rows of a person count. Where they are added up, persons are taken to have half of the most rows.

    Raises
    ------
    PrivacyError, InputError
        As the fit would, before it reads, but for bounds: hopeless n ε; or no n to plan for.
    """
    grids = [_grid(k, g) for k, g in (("s", s), ("t", t))]
    return planned(privacy, mechanism, lambda: mechanism.public_prior.design(grids[0], grids[1]), n, law)


def planned(
    privacy: Privacy, mechanism: Spending[Any], design: Callable[[], PrivateDesign], n: float | None, law: Law = MEAN
) -> tuple[Plan, float]:
    """Plan a fit in public coordinates, as :func:`preview` does."""
    privacy.check()
    people = privacy.n if n is None else n
    if not isinstance(people, (int, float, np.number)) or isinstance(people, bool) or not 1 <= people < math.inf:
        raise InputError(f"n must be a number of persons to plan for, as none is declared, got {n!r}")
    if privacy.n is not None and people != privacy.n:
        raise InputError(f"n must be left out where {privacy.n} is declared, got {n}")
    check_delta(privacy.delta, float(people))
    rows = law.usual_rows
    mechanism.check_n(privacy, float(people) * rows / law.most)
    pure = privacy.delta is None
    budget, share = privacy.budget_share()
    noise = noise_multiplier(share * budget.total, privacy.stated_adjacency, pure=pure)
    counted = privacy.n is None or law.name == "sum"
    left = expected_left(people * rows, noise * law.most, pure=pure) if counted else 1.0
    multiplier = (noise / left if pure else noise / math.sqrt(left)) * law.most / rows
    plan = mechanism.plan(float(people), multiplier, design(), pure=pure).scaled(left)
    return replace(plan, rows=rows, max_rows=law.most), left


def _grid(name: str, grid: ArrayLike | int) -> FloatArray:
    """Check a grid, or make an even one of a number of points."""
    if np.ndim(grid) == 0:
        return np.linspace(0, 1, whole(grid, name, least=LEAST_POINTS, most=MOST_POINTS))
    return as_grid(grid, np.size(grid), name)
