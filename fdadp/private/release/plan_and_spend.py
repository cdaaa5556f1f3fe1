"""From a private setting to what was released: validate, plan, spend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.calling_language import advice
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.tables.curve_sample import as_grid
from fdadp.privacy import Cohort, Privacy
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier, unit_noise
from fdadp.privacy.guarantee_checks import check_delta
from fdadp.privacy.noise.sources import Noise
from fdadp.privacy.rows._person_row_caps import MEAN, Law
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import expected_left, release_n
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Range
from fdadp.private.public.curve_shapes import LEAST_POINTS

if TYPE_CHECKING:
    from fdadp.privacy.rows._sealed_row_functions import RowFunction
    from fdadp.private.release.mechanisms import EndToEnd
    from fdadp.private.release.noisy_moments import NoisyMoments
    from fdadp.private.rows.row_functions import RowFunctions


F = TypeVar("F")


@dataclass(frozen=True)
class Spent(Generic[F]):
    """A budget that was spent, and what came of it.

    Attributes
    ----------
    fit : PrivateFit, or another mechanism's
    statistic : NoisyMoments or None
        The released moments, where the mechanism has them.
    rows : RowFunctions
        With their design, the plan of the regression and what was released.
    cohort : Cohort
        Whose ledger says what was released.
    """

    fit: F
    statistic: NoisyMoments | None
    rows: RowFunctions
    cohort: Cohort

    @property
    def design(self) -> PrivateDesign:
        """Coordinates of the fit: the public ones, and what was added to them by released values."""
        return self.rows.design

    @property
    def plan(self) -> Plan:
        """What was measured in them."""
        return self.rows.plan


def describe_grid(grid: FloatArray) -> str:
    """One line for the ledger."""
    return f"{grid.size} points on [{grid[0]:g}, {grid[-1]:g}]"


def spend(
    model: Any,
    data: Any,
    groups: Any,
    design: Callable[[], PrivateDesign],
    y_bounds: Range,
    privacy: Privacy,
    mechanism: EndToEnd[F],
    public: Mapping[str, Any],
    *,
    noise: Noise | None = None,
    prepare: RowFunction | None = None,
    law: Law = MEAN,
) -> Spent[F]:
    """Spend the budget of a fit. The first read of the data comes after all validation.

    Parameters
    ----------
    model : estimator
        That is fitted; only known to be counted (:mod:`fdadp.privacy._unaccounted_fits`).
    data : tuple of tables, or PrivateChunks
        Columns in the design's order, then the response.
    groups : sequence of ids (n,), or True, optional
        Person of each row, as a :class:`~fdadp.privacy.Cohort` takes them.
    design : callable
        Returns the public coordinates.
    y_bounds : (float, float)
        Public range of the response.
    privacy : Privacy
    mechanism : EndToEnd
    public : mapping of str
        Public inputs, for the ledger.
    noise : Noise, optional
        Instead of the source that `privacy` stands for. For audits: the ledger then says "not for release".
    prepare : callable, optional
        Row-local: from a block of `data` to one of the design's columns and the response; default: they are the same.
    law : Law
        How the rows of a person are combined. Where they are added up their number is released first.
    """
    cohort = privacy.cohort(
        data,
        groups=groups,
        mechanism=mechanism.name,
        noise=noise,
        estimator=model,
        public=public,
        person_rows=law.name,
        max_rows=law.max_rows,
    )
    with one_blas_thread():
        coordinates = design()
    rows = mechanism.rows(coordinates, y_bounds)
    added = law.name == "sum"
    known = privacy.n is not None and not added
    n, left = (float(privacy.n or 0), 1.0) if known else release_n(cohort)
    of_a_person = 1.0
    if added:  # of so many rows at least a part are of persons of their own
        persons = n / law.most if privacy.n is None else float(privacy.n)
        n, of_a_person = persons, n / persons
    thin = law.most / of_a_person
    with cohort.refusing():
        check_delta(privacy.delta, n)
        mechanism.check_n(privacy, n / thin)
    plan = mechanism.plan(n, unit_noise(cohort, left) * thin, coordinates, pure=cohort.pure).scaled(left)
    plan = replace(plan, rows=of_a_person, max_rows=law.most)
    if known and not mechanism.allow_useless:  # nothing was read yet
        with cohort.refusing():
            refuse_unaffordable(coordinates, plan)
    if prepare is not None:
        cohort = cohort.derive(prepare, name="columns computed within each row")
    with one_blas_thread():
        found, statistic = mechanism.spend(cohort, plan, rows)
    return Spent(found, statistic, rows, cohort)


def refuse_unaffordable(design: PrivateDesign, plan: Plan) -> None:
    """Refuse terms that the budget cannot carry.

    Raises
    ------
    PrivacyError
        Naming them.
    """
    out = design.groups.left_out(plan.weights)
    if out:
        raise PrivacyError(
            f"formula must have terms that the budget can carry, got {', '.join(out)}. It affords no feature of "
            f"them at n = {plan.n:,.0f}: leave them out"
            + advice(
                ", or say DPAFF(allow_useless=True) to fit the others",
                r=", or say allow_useless = TRUE to fit the others",
                shell="",
            )
            + ". Nothing was read"
        )


# The plan of a private fit before any data are there, from public values only.


MOST_POINTS, GRID = 100_000, 51
"""Of a grid that is only planned for: at most, and by default."""


def preview(
    privacy: Privacy,
    mechanism: EndToEnd[Any],
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
    privacy: Privacy, mechanism: EndToEnd[Any], design: Callable[[], PrivateDesign], n: float | None, law: Law = MEAN
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
