"""The plan of a private fit before any data are there, and how plans are shown. From public values only."""

from __future__ import annotations

import html
import math
from typing import NamedTuple

import numpy as np

from fdadp._common.checks import whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import as_grid
from fdadp.privacy import Privacy
from fdadp.privacy.budget import Budget
from fdadp.private.curves import LEAST_POINTS
from fdadp.private.moments_fit import plan_moments
from fdadp.private.output_fit import plan_output
from fdadp.private.plan import Plan, make_plan
from fdadp.private.prior import PublicPrior

__all__ = ["PLANNERS", "Row", "expected_left", "plan_html", "plan_rows", "plan_text", "preview"]

MOST_POINTS = 100_000
"""Of a grid that is only planned for."""

PLANNERS = {"dp-aff": make_plan, "moments": plan_moments, "output": plan_output}
"""How the budget of each mechanism is shared out."""

ORDER = (
    ("x rms", "root mean square of X"),
    ("x location", "location of X"),
    ("x scale", "scale of X"),
    ("x centre", "location of X, again"),
    ("x size", "scale of X, again"),
    ("y rms", "root mean square of Y"),
    ("y location", "location of Y"),
    ("y scale", "scale of Y"),
    ("y mean", "mean of Y"),
    ("y spread", "spread of Y"),
    ("outside", "shares outside the bounds"),
    ("gradient scale", "scale of gradient"),
    ("gradient", "gradient"),
    ("moments", "second moment"),
    ("output", "coefficients"),
    ("residual scale", "scale of residuals"),
    ("residual", "covariance of residuals"),
    ("residual profile", "residuals in blocks of time"),
    ("calibration", "calibration of intervals"),
)


class Row(NamedTuple):
    """One kind of release: how often, the share of the budget of all of them, noise relative to the clip."""

    release: str
    times: int
    share: float
    noise: float


def preview(
    privacy: Privacy, s: ArrayLike | int = 51, t: ArrayLike | int = 51, *, n: float | None = None
) -> tuple[Plan, float]:
    """Plan a private fit, with the share of the budget that is left to it (less than 1 where n is released first).

    Parameters
    ----------
    privacy : Privacy
    s, t : array_like or int
        Grids of X and Y, or their numbers of points.
    n : float, optional
        Number of persons to plan for where none is declared.

    Raises
    ------
    PrivacyError, InputError
        As the fit would, before it reads: missing bounds, hopeless n ε; or no n to plan for.
    """
    privacy.check()
    if privacy.mechanism == "published":
        raise InputError("mechanism must be private end to end to have a plan, got 'published'")
    people = privacy.n if n is None else n
    if not isinstance(people, (int, float, np.number)) or isinstance(people, bool) or not 1 <= people < math.inf:
        raise InputError(f"n must be a number of persons to plan for, as none is declared, got {n!r}")
    if privacy.n is not None and people != privacy.n:
        raise InputError(f"n must be left out where {privacy.n} is declared, got {n}")
    privacy.check_n(people)
    prior = PublicPrior() if privacy.prior is None else privacy.prior
    grids = [_grid(k, g) for k, g in (("s", s), ("t", t))]
    pure = privacy.delta is None
    amount = Budget(privacy.epsilon, privacy.delta).total  # also where the budget is shared: what this fit costs
    noise = (math.sqrt(2) / amount if pure else 1 / math.sqrt(2 * amount)) * (
        2 if privacy.stated_adjacency == "replace" else 1
    )
    left = 1.0 if privacy.n is not None else expected_left(people, noise, pure=pure)
    multiplier = noise / left if pure else noise / math.sqrt(left)
    planner = PLANNERS[privacy.mechanism]
    return planner(float(people), multiplier, prior.design(*grids), pure=pure).scaled(left), left


def expected_left(n: float, multiplier: float, *, pure: bool) -> float:
    """Share of the budget that the release of n persons leaves (see ``release_n``)."""
    relative = multiplier / (0.01 if pure else 0.1) / n
    if relative <= 0.02:
        return 0.99
    ratio = relative / 0.02
    return 0.99 - min(0.09, 0.01 * (ratio if pure else ratio**2))


def plan_rows(plan: Plan) -> list[Row]:
    """Releases of a plan, in their order; what the budget cannot afford has 0 times."""
    rows = []
    left = min(
        sum(plan.shares.get(key, 0.0) * (plan.rounds if key.startswith("gradient") else 1) for key, _ in ORDER), 1.0
    )
    whole = plan.eta * (left if plan.pure else math.sqrt(left))  # the plan's eta is that of what was left
    if left < 1 - 1e-9:
        count = whole / (1 - left if plan.pure else math.sqrt(1 - left))
        rows.append(Row("number of persons", 1 if left > 0.985 else 2, 1 - left, count))
    for key, name in ORDER:
        one = plan.shares.get(key, 0.0)
        times = (plan.rounds if key.startswith("gradient") else 1) if one else 0
        noise = math.inf if not one else whole / (one if plan.pure else math.sqrt(one))
        rows.append(Row(name, times, one * times, noise))
    return rows


def _heading(plan: Plan) -> str:
    kind = "pure ε, Laplace noise" if plan.pure else "(ε, δ), Gaussian noise"
    return (
        f"Plan for {plan.n:,.0f} persons: {kind} of {plan.eta:.3g} per person; "
        f"{plan.n_features} features x {plan.n_outputs} outputs, {plan.n_pairs} pairs measured in {plan.rounds} rounds"
    )


def plan_text(plan: Plan) -> str:
    """Plain text of a plan."""
    lines = [_heading(plan), "", f"{'release':<28}{'times':>6}{'share':>9}{'noise/clip':>14}"]
    for row in plan_rows(plan):
        noise = f"{row.noise:>14.3g}" if row.times else f"{'not afforded':>14}"
        lines.append(f"{row.release:<28}{row.times:>6}{row.share:>9.2%}{noise}")
    lines.append(f"{'together':<28}{'':>6}{sum(row.share for row in plan_rows(plan)):>9.2%}")
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """HTML table of a plan."""
    cells = "".join(
        f"<tr><td>{html.escape(row.release)}</td><td>{row.times}</td><td>{row.share:.2%}</td>"
        f"<td>{f'{row.noise:.3g}' if row.times else 'not afforded'}</td></tr>"
        for row in plan_rows(plan)
    )
    head = "".join(f"<th>{name}</th>" for name in ("release", "times", "share of the budget", "noise / clip"))
    return f"<p>{html.escape(_heading(plan))}</p><table><tr>{head}</tr>{cells}</table>"


def _grid(name: str, grid: ArrayLike | int) -> FloatArray:
    """Check a grid, or make an even one of a number of points."""
    if np.ndim(grid) == 0:
        return np.linspace(0, 1, whole(grid, name, least=LEAST_POINTS, most=MOST_POINTS))
    return as_grid(grid, np.size(grid), name)
