"""``fdadp.plan``: predicted accuracy of a private fit as a function of n and ε, and what it takes to reach one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fdadp._common.argument_checks import one_of, whole
from fdadp.errors import InputError, PrivacyError
from fdadp.planner.forecast_display import Shown
from fdadp.planner.simulated_fit_of_one_curve import Outcome
from fdadp.planner.simulation_table import SimulatedOutcomes
from fdadp.privacy import Privacy
from fdadp.privacy.account.budget import Budget
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.privacy.guarantee_checks import ADJACENCIES, said_delta
from fdadp.private.plan.budget_sharing import expected_left, least_n_epsilon
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.release.plan_and_spend import preview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fdadp._common.typing import ArrayLike
    from fdadp.planner.forecast_of_formulas import TermsForecast

LARGEST_N, LARGEST_EPSILON = 1_000_000, 10.0


@dataclass(frozen=True)
class Forecast(Shown):
    """Predicted accuracy of a private fit; ``print`` shows it, :meth:`~fdadp.planner.Forecast.plot` draws it.

    Attributes
    ----------
    n : int
        Number of persons; the smallest that reaches `accuracy` where none was given.
    epsilon, delta, adjacency
        As asked for; the number of persons is private under ``"add-remove"``.
    share : float
        Predicted explained share of the explainable variance.
    rmspe_ratio, width_ratio : float
        Predicted error, and width of 95 % prediction intervals, relative to the fit without privacy.
    coverage : float
        Of nominal 95 % prediction intervals, in the simulation.
    accuracy : float or None
        The share that was wanted.
    smallest_n : int or None
        Least n that reaches it at this ε, None where none up to a million does.
    smallest_epsilon : float or None
        Least ε that reaches it at this n, None where none up to 10 does.
    by_n, by_epsilon : list of (float, Outcome)
        The prediction at other n and the same ε; at other ε and the same n.
    plan : Plan
        How the budget would be shared out.
    """

    share: float
    rmspe_ratio: float
    width_ratio: float
    coverage: float
    accuracy: float | None
    smallest_n: int | None
    smallest_epsilon: float | None
    by_n: list[tuple[float, Outcome]] = field(repr=False)
    by_epsilon: list[tuple[float, Outcome]] = field(repr=False)

    @property
    def reached(self) -> bool:
        """Whether the wanted accuracy is predicted to be reached (True where none was asked for)."""
        return self.accuracy is None or self.share >= self.accuracy

    @property
    def _closing(self) -> str:
        return "From simulation under the public prior, for one population of many: no promise about your data."

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("explained share of the explainable variance", f"{self.share:.2f}"),
            ("prediction error relative to no privacy", f"{self.rmspe_ratio:.2f}"),
            ("width of 95 % intervals relative to no privacy", f"{self.width_ratio:.2f}"),
        ]
        if self.accuracy is not None:
            n = f"none up to {LARGEST_N:,}" if self.smallest_n is None else f"{self.smallest_n:,}"
            e = f"none up to {LARGEST_EPSILON:g}" if self.smallest_epsilon is None else f"{self.smallest_epsilon:.2g}"
            facts += [
                (f"share {self.accuracy:g} reached", "yes" if self.reached else "no"),
                (f"smallest n for it at epsilon {self.epsilon:g}", n),
                (f"smallest epsilon for it at n = {self.n:,}", e),
            ]
        return facts

    def _curves(self) -> list[str]:
        lines = []
        for what, curve in (("n", self.by_n), ("epsilon", self.by_epsilon)):
            lines.append(f"  {what:<12}" + "".join(f"{at:>9,.4g}" if at < 1000 else f"{at:>9,.0f}" for at, _ in curve))
            for name in ("share", "rmspe_ratio", "width_ratio"):
                label = {"share": "share", "rmspe_ratio": "RMSPE ratio", "width_ratio": "width ratio"}[name]
                lines.append(f"  {label:<12}" + "".join(f"{getattr(o, name):>9.2f}" for _, o in curve))
            lines.append("")
        return lines

    def plot(self, **kwargs: Any) -> Any:
        """Picture of the prediction against n and ε, see :func:`fdadp.planner.forecast_plot.picture`."""
        from fdadp.planner.forecast_plot import picture

        return picture(self, **kwargs)


@overload
def plan(
    formula: None = None,
    n: int | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    accuracy: float | None = None,
    adjacency: str | None = None,
    prior: PublicPrior | None = None,
) -> Forecast: ...


@overload
def plan(
    formula: str,
    n: int | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    adjacency: str | None = None,
    prior: PublicPrior | str | None = None,
    family: str = "gaussian",
    rate: float | None = None,
    offset: str | None = None,
    bounds: Mapping[str, Any] | None = None,
    grids: Mapping[str, ArrayLike | int] | None = None,
    errors: str = "normal",
    mostly_zero: Sequence[str] = (),
    explained: float | None = None,
    effects: str | None = None,
    numbers: Mapping[str, Sequence[float]] | None = None,
    importances: Mapping[str, float] | None = None,
    curves: Mapping[str, ArrayLike] | None = None,
    person_rows: str | None = None,
    max_rows: int | None = None,
) -> TermsForecast: ...


def plan(
    formula: str | None = None,
    n: int | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    accuracy: float | None = None,
    adjacency: str | None = None,
    prior: PublicPrior | str | None = None,
    family: str = "gaussian",
    rate: float | None = None,
    offset: str | None = None,
    bounds: Mapping[str, Any] | None = None,
    grids: Mapping[str, ArrayLike | int] | None = None,
    errors: str = "normal",
    mostly_zero: Sequence[str] = (),
    explained: float | None = None,
    effects: str | None = None,
    numbers: Mapping[str, Sequence[float]] | None = None,
    importances: Mapping[str, float] | None = None,
    curves: Mapping[str, ArrayLike] | None = None,
    person_rows: str | None = None,
    max_rows: int | None = None,
) -> Forecast | TermsForecast:
    """Predict what a private fit explains, before any data are touched.

    Simulated cohorts are drawn from the public prior (curves, surface, response; the surface explains 60 % of the
    variance) and fitted with ``mechanism="dp-aff"``. What is predicted is an average over such populations. With a
    formula, what is not told differs from cohort to cohort, and the forecast says what the worst and best tenth have.

    Parameters
    ----------
    formula : str, optional
        Of a :class:`fdadp.FunctionalRegression` or :class:`fdadp.ScalarRegression`, such as ``"Y ~ ff(X) + s(age)"``:
        then 16 to 128 cohorts are drawn and fitted, fewer where they agree, which takes up to half a minute. Numbers
        fill a part of their bounds, off the middle. A term of numbers or labels has on average half the importance of
        one of curves; of numbers that vary more, more. Default: the additive model of one curve.
    n : int, optional
        Number of persons. May be left out where `accuracy` is given: then the smallest that reaches it.
    epsilon : float
    delta : float, optional
        None means pure ε, as in :class:`fdadp.Privacy`.
    accuracy : float, optional
        Wanted share of the explainable variance, in (0, 1): also answers which n, and which ε, would do.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default ``"zero-out"``, a declared n.
    prior : PublicPrior or "persistence", optional
        The default prior is answered from a table. Another one is simulated, which takes about a minute the first time.
        With a formula also ``"persistence"``, as of :class:`fdadp.DPAFF`: shares are then of what the anchor leaves.
        The fit is taken to explain a sixth of it. The plan has releases for the guard and for how errors vary.
    family : {"gaussian", "binomial", "poisson"}
        With a formula: of the response, a number. The plan simulates binary responses or counts. The terms explain 60 %
        of the variance of counts, and of binary responses 60 % of the variance of the log-odds.
    rate : float, optional
        With one of these two: the expected share of ones, or mean count. Default one half, or a tenth of the range.
        Rarer outcomes tell less.
    offset : str, optional
        With a formula: what the response is less of, a column or an expression of columns, as of ``fit(offset=)``. It
        is computed within each row and costs nothing.
    bounds : mapping of str
        With a formula: what is public of each column, as of a private fit.
    grids : mapping of str to array_like or int, optional
        With a formula: grids of curves, or their numbers of points; default 51.
    errors : {"normal", "skewed"}
        With a formula: skewed ones are log-normal, as costs and lengths of stay are; fits explain less of them.
    mostly_zero : sequence of str
        With a formula: numbers that are zero for most persons, as pack-years or costs are; fits explain less of them.
    explained : float, optional
        With a formula: the share of the variance of the response that all terms explain in truth, as an earlier study
        found it. Default: drawn anew for each cohort, eight of ten between .41 and .76, about .6; with
        ``"persistence"`` .09 to .30, about a sixth, of what the anchor leaves. Less is harder to find.
    effects : {"rough", "smooth", "level"}, optional
        With a formula: what an earlier study's pictures of effects look like. ``"rough"`` ones are as the public prior
        of fits has them. Smooth ones, nearly a level and a slope along t and a slow wave or two along s, are easier to
        find, at few persons most. The two slowest functions of t hold .96 of them on average, and .88 of rough ones.
        ``"level"``: hardly anything but the level of a curve has an effect, nearly constant along t. Default: drawn
        anew for each cohort, between rough and smooth.
    numbers : mapping of str to (float, float), optional
        With a formula: means and standard deviations of numbers, as a published table has them. Others are drawn off
        the middle of their bounds and fill a part of these, which bounds far too wide belie.
    importances : mapping of str to float, optional
        With a formula: how much of the explained variance each term has by itself, as an earlier study found it. All
        terms by the names that forecasts print; their ratios count. Default: drawn, as under `formula`.
    curves : mapping of str to array_like of shape (m, S), optional
        With a formula: public curves of at least 20 persons, as of an earlier study, by column. Persons have curves
        like these, on `grids` of as many points. Default: drawn from the prior, which has rougher ones than most.
    person_rows : {"mean", "sum"}, optional
        With a formula: how the rows of a person count, as in the fit. Of ``"mean"``, the default, persons of one row
        are simulated. Of ``"sum"`` persons of one to `max_rows` rows (at most 8) with the same covariates.
    max_rows : int, optional
        With ``"sum"``: rows of a person that count at most.

    Returns
    -------
    Forecast, or TermsForecast with a formula

    Raises
    ------
    PrivacyError
        A setting out of range, or a hopeless n ε; the text says which n or ε would do.
    InputError
        Neither n nor an accuracy, or an accuracy that no n up to a million reaches.

    Notes
    -----
    Predictions depend on n and on the noise per person alone. Above n = 10,000 the sampling error is taken to be that
    of 10,000 persons, which is cautious. Under "add-remove" the budget for releasing n is taken off; that the released
    n is not exact is not simulated.

    Examples
    --------
    >>> import fdadp
    >>> forecast = fdadp.plan(n=1000, epsilon=1.0, delta=1e-6)
    >>> 0.9 < forecast.share < 1
    True
    """
    stated = "zero-out" if adjacency is None else one_of(adjacency, "adjacency", ADJACENCIES)
    prior = PublicPrior() if prior is None else prior
    if not isinstance(prior, PublicPrior) and (formula is None or prior != "persistence"):
        raise InputError(f"prior must be a PublicPrior, got {type(prior).__name__}; 'persistence' comes with a formula")
    if accuracy is not None and not (isinstance(accuracy, (int, float, np.number)) and 0 < accuracy < 1):
        raise InputError(f"accuracy must be a share between 0 and 1, got {accuracy!r}")
    delta = said_delta(delta)
    if n is None and accuracy is None:
        raise InputError("n must be given, or an accuracy to find it for")
    if formula is not None:
        if accuracy is not None or not isinstance(formula, str):
            what = f"accuracy {accuracy!r}" if isinstance(formula, str) else repr(formula)
            raise InputError(f"formula must be text such as 'Y ~ ff(X)', and come with n, not accuracy, got {what}")
        from fdadp.planner.forecast_of_formulas import plan_formula
        from fdadp.regression.reading.training_rows import private_law

        people = whole(n, "n")
        law = private_law(person_rows, max_rows)
        own = (bounds, grids, prior, offset, family, rate, errors, mostly_zero, explained, effects)
        return plan_formula(formula, people, epsilon, delta, stated, *own, numbers, importances, curves, law)
    given = {"bounds": bounds, "grids": grids, "offset": offset, "rate": rate, "mostly_zero": mostly_zero or None}
    given |= {"numbers": numbers, "importances": importances, "curves": curves}
    given |= {"explained": explained, "person_rows": person_rows, "max_rows": max_rows}
    given |= {"effects": effects, "errors": None if errors == "normal" else errors}
    given |= {"family": None if family == "gaussian" else family}
    if any(value is not None for value in given.values()):
        raise InputError(
            "bounds, grids, offset, family, rate, errors, mostly_zero, explained, effects, numbers, importances, "
            "curves, person_rows and max_rows must be left out without a formula: the forecast does not depend on them"
        )
    assert isinstance(prior, PublicPrior)
    return _of_one_curve(n, epsilon, delta, accuracy, stated, prior)


def _of_one_curve(
    n: int | None, epsilon: float, delta: float | None, accuracy: float | None, stated: str, prior: PublicPrior
) -> Forecast:
    """Forecast of the additive model of one curve; arguments as of :func:`plan`, `stated` the adjacency."""
    cells = SimulatedOutcomes(prior, pure=delta is None)

    def predict(persons: float, eps: float) -> Outcome:
        return cells.at(persons, _noise(persons, eps, delta, stated))

    least, floor = None, least_n_epsilon(stated)
    if accuracy is not None:
        Privacy(epsilon, delta)  # refuses settings out of range
        least = _smallest(lambda m: predict(m, epsilon).share, accuracy, floor / epsilon, LARGEST_N)
    if n is None:
        if least is None:
            raise InputError(
                f"accuracy {accuracy:g} is not predicted to be reached by any n up to {LARGEST_N:,} at "
                f"epsilon = {epsilon:g}: {predict(LARGEST_N, epsilon).share:.2f} is"
            )
        n = math.ceil(least)
    declared = None if stated == "add-remove" else n
    if stated == "add-remove" and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise PrivacyError(f"n must be a positive integer, the number of persons to plan for, got {n!r}")
    privacy = Privacy(epsilon, delta, n=declared, adjacency=stated)
    shares, _ = preview(privacy, DPAFF(prior=prior), n=None if declared else n)
    enough = None
    if accuracy is not None:
        enough = _smallest(lambda e: predict(n, e).share, accuracy, floor / n, LARGEST_EPSILON)
    sizes = [m for m in (100, 300, 1000, 3000, 10_000, 30_000, 100_000) if m * epsilon >= floor]
    budgets = [e for e in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0) if n * e >= floor]
    here = predict(n, epsilon)
    return Forecast(
        n=n,
        epsilon=epsilon,
        delta=delta,
        adjacency=stated,
        **here._asdict(),
        accuracy=accuracy,
        smallest_n=None if least is None else math.ceil(least),
        smallest_epsilon=enough,
        by_n=[(m, predict(m, epsilon)) for m in sizes],
        by_epsilon=[(e, predict(n, e)) for e in budgets],
        plan=shares,
    )


def _noise(n: float, epsilon: float, delta: float | None, adjacency: str) -> float:
    """Noise per person at what the fit has left of the budget."""
    pure = delta is None
    multiplier = noise_multiplier(Budget(epsilon, delta).total, adjacency, pure=pure)
    left = expected_left(n, multiplier, pure=pure) if adjacency == "add-remove" else 1.0
    return multiplier / (left if pure else math.sqrt(left)) / n


def _smallest(share: Any, wanted: float, low: float, high: float) -> float | None:
    """Least argument from which on a share stays at or above what is wanted, by a fine scan of its logarithm."""
    least = None
    for point in np.geomspace(min(low, high), high, 160)[::-1]:
        if share(float(point)) < wanted:
            break
        least = float(point)
    return least
