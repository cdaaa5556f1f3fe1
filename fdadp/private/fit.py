"""From a private setting to a fitted additive model: validate, plan, spend, post-process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.gaps import GAPS
from fdadp.privacy import Privacy
from fdadp.privacy.accounting import unit_noise
from fdadp.privacy.declared import check_delta
from fdadp.privacy.noise import Noise
from fdadp.private.advice import advise
from fdadp.private.as_surface import as_surface
from fdadp.private.counting import release_n
from fdadp.private.design import PrivateDesign
from fdadp.private.ranges import Range

if TYPE_CHECKING:
    from fdadp.privacy import Cohort
    from fdadp.privacy._local import RowFunction
    from fdadp.private.mechanisms import EndToEnd
    from fdadp.private.moments import NoisyMoments
    from fdadp.private.plan import Plan
    from fdadp.private.rows import Rows
    from fdadp.solve.surface_fit import SurfaceFit

__all__ = ["Released", "Spending", "Spent", "describe_grid", "fit_private", "spend"]

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)


class Spending(Protocol[F_co]):
    """What spends a budget: an :class:`~fdadp.private.mechanisms.EndToEnd`, or the like of other responses."""

    @property
    def name(self) -> str:
        """As ledgers say it."""

    @property
    def allow_useless(self) -> bool:
        """Fit even what is hopeless."""

    def check_n(self, privacy: Privacy, n: float) -> None:
        """Refuse useless settings."""

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Share out the budget."""

    def rows(self, design: PrivateDesign, y_bounds: Range) -> Rows:
        """Row functions, before anything was released."""

    def spend(self, cohort: Cohort, plan: Plan, design: PrivateDesign, rows: Rows) -> tuple[F_co, NoisyMoments | None]:
        """Spend it as planned."""


@dataclass(frozen=True)
class Spent(Generic[F]):
    """A budget that was spent, and what came of it.

    Attributes
    ----------
    fit : PrivateFit, or another mechanism's
    statistic : NoisyMoments or None
        The released moments, where the mechanism has them.
    design : PrivateDesign
    plan : Plan
    rows : Rows
    cohort : Cohort
        Whose ledger says what was released.
    """

    fit: F
    statistic: NoisyMoments | None
    design: PrivateDesign
    plan: Plan
    rows: Rows
    cohort: Cohort


class Released(NamedTuple):
    """What a private fit of one term gives back.

    Attributes
    ----------
    found : SurfaceFit
    statistic : NoisyMoments or None
        The released moments, where the mechanism has them.
    warned : tuple of str
        What is surely wrong with the public ranges or n. To be warned of when the fit is kept: where warnings are
        errors, the ledger must be there.
    """

    found: SurfaceFit
    statistic: NoisyMoments | None
    warned: tuple[str, ...]


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
    mechanism: Spending[F],
    public: Mapping[str, Any],
    *,
    noise: Noise | None = None,
    prepare: RowFunction | None = None,
) -> Spent[F]:
    """Spend the budget of a fit. The first read of the data comes after all validation.

    Parameters
    ----------
    model : estimator
        That is fitted; only known to be counted (:mod:`fdadp.privacy._seen`).
    data : tuple of tables, or PrivateChunks
        Columns in the design's order, then the response.
    groups : sequence of ids (n,), or True, optional
        Person of each row, as a :class:`~fdadp.privacy.Cohort` takes them.
    design : callable
        Returns the public coordinates.
    y_bounds : (float, float)
        Public range of the response.
    privacy : Privacy
    mechanism : Spending
    public : mapping of str
        Public inputs, for the ledger.
    noise : Noise, optional
        Instead of the source that `privacy` stands for. For audits: the ledger then says "not for release".
    prepare : callable, optional
        Row-local: from a block of `data` to one of the design's columns and the response; default: they are the same.
    """
    cohort = privacy.cohort(data, groups=groups, mechanism=mechanism.name, noise=noise, estimator=model, public=public)
    with one_blas_thread():
        coordinates = design()
    rows = mechanism.rows(coordinates, y_bounds)
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    with cohort.refusing():
        check_delta(privacy.delta, n)
        mechanism.check_n(privacy, n)
    plan = mechanism.plan(n, unit_noise(cohort, left), coordinates, pure=cohort.pure).scaled(left)
    if privacy.n is not None and not mechanism.allow_useless:  # nothing was read yet
        with cohort.refusing():
            refuse_unaffordable(coordinates, plan)
    if prepare is not None:
        with cohort.refusing():
            cohort = cohort.derive(prepare, name="columns computed within each row")
    with one_blas_thread():
        found, statistic = mechanism.spend(cohort, plan, coordinates, rows)
    return Spent(found, statistic, coordinates, plan, rows, cohort)


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
            f"model must have terms that the budget can carry, got {', '.join(out)}, of which it affords no feature at "
            f"n = {plan.n:,.0f}; leave them out, or say DPAFF(allow_useless=True) to fit the others. Nothing was read"
        )


def fit_private(
    model: Any,
    data: Any,
    groups: Any,
    s: FloatArray,
    t: FloatArray,
    privacy: Privacy,
    mechanism: EndToEnd,
    bounds: Mapping[str, Range],
    *,
    missing: str = "linear",
    noise: Noise | None = None,
) -> Released:
    """Fit the additive model privately.

    Parameters
    ----------
    model, groups, privacy, mechanism, noise
        As of :func:`spend`.
    data : (X, Y), or PrivateChunks
        Curves as they are (:mod:`fdadp.private.inputs`), or chunks of them.
    s, t : ndarray
        Grids of X and Y.
    bounds : mapping
        Public ranges of X and Y.
    missing : {"linear", "smooth"}
        How gaps of X are filled, each within its row.
    """
    if mechanism.anchor is not None:
        raise InputError("prior='persistence' is there for FunctionalRegression and ScalarRegression")
    if getattr(mechanism, "errors_by_record", False):
        raise InputError("errors_by_record is there for FunctionalRegression and ScalarRegression")
    prior = mechanism.public_prior
    public = {
        "bounds of X": bounds["X"],
        "bounds of Y": bounds["Y"],
        "grid of X": describe_grid(s),
        "grid of Y": describe_grid(t),
        "prior": prior.describe(),
        "gaps of X": GAPS[missing] + ", within each row",
        "gaps of Y": "a row counts where it was observed",
    }
    spent = spend(
        model,
        data,
        groups,
        lambda: prior.design(s, t, bounds=bounds["X"], missing=missing),
        bounds["Y"],
        privacy,
        mechanism,
        public,
        noise=noise,
    )
    with one_blas_thread():
        found = as_surface(spent.fit, spent.design, spent.plan)
    warned, notes = advise(spent.fit, spent.plan, spent.rows, found.r2)
    ledger = spent.cohort.ledger
    guarantee = replace(privacy) if ledger.private else None
    return Released(replace(found, notes=warned + notes, ledger=ledger, privacy=guarantee), spent.statistic, warned)
