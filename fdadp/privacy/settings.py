"""What the user declares in public before any data are read: budget, bounds, mechanism, adjacency."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from fdadp._common.checks import is_one_of
from fdadp.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fdadp.privacy.budget import Budget
    from fdadp.privacy.cohort import Cohort
    from fdadp.privacy.noise import Noise

__all__ = ["ADJACENCIES", "MECHANISMS", "SENSITIVITIES", "UNIT_NAMES", "Bounds", "Privacy"]

MECHANISMS = ("dp-aff", "moments", "output", "published")
SENSITIVITIES = ("local", "coefficient", "scaled")
SMALLEST_WIDTH = 1e-30
ADJACENCIES = ("zero-out", "add-remove", "replace")
UNIT_NAMES = ("row", "person")
MATCHING = {
    None: "position; labels were not looked at",
    "public": "position, and labels declared public that were found equal",
}


def whole(value: Any, name: str, what: str, *, least: int = 1) -> int:
    """Return an integer as Python's, which can be saved, whatever type it had; raises PrivacyError for others."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:  # of an array, for one
        number = None
    if number is None or number < least:
        kind = "a positive" if least else "a non-negative"
        raise PrivacyError(f"{name} must be {kind} integer, {what}, got {value!r}")
    return number


LARGEST_DELTA = 1e-3
"""Where n is private, and δ cannot be held against it; see ``docs/theory/accounting.md#delta``."""


def check_delta(delta: float | None, n: float | None) -> None:
    """Refuse a δ of 1/n or more, n declared or released: it would allow to publish a person's data as they are.

    Without n, :data:`LARGEST_DELTA` is the limit.

    Raises
    ------
    PrivacyError
    """
    if delta is None:
        return
    if n is None and delta > LARGEST_DELTA:
        raise PrivacyError(
            f"delta must be at most {LARGEST_DELTA:g} where n is private, and better far below 1 over any n that you "
            f"think possible, got {delta:g}; nothing was read and nothing was spent"
        )
    if n is not None and delta * n >= 1:
        raise PrivacyError(f"delta must be below 1/n = {1 / n:g}, got {delta:g}")


@dataclass(frozen=True)
class Bounds:
    """Public ranges of the curves' values, chosen without looking at the data.

    Parameters
    ----------
    x, y : (float, float) or None
        Lower and upper bound of the values of the predictor and response curves, in their units. The regression takes
        them as hints of location and size, and clips at three half-widths (docs/bounds.md); summaries clip at them.

    Raises
    ------
    PrivacyError
        A bound is not finite, they do not increase, or their width is beyond what can be computed with.
    """

    x: tuple[float, float] | None = None
    y: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            pair = getattr(self, name)
            if pair is None:
                continue
            try:
                low, high = (float(v) for v in pair)
            except (TypeError, ValueError) as exc:
                raise PrivacyError(f"bounds {name} must be a pair (low, high) of numbers, got {pair!r}") from exc
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise PrivacyError(f"bounds {name} must be finite with low < high, got ({low:g}, {high:g})")
            if not (SMALLEST_WIDTH <= high - low <= 1 / SMALLEST_WIDTH and high - low > 1e-9 * max(-low, high)):
                raise PrivacyError(
                    f"bounds {name} must have a width that can be computed with: from {SMALLEST_WIDTH:g} to "
                    f"{1 / SMALLEST_WIDTH:g}, and above 1e-9 of the values, got ({low!r}, {high!r})"
                )
            object.__setattr__(self, name, (low, high))


@dataclass(frozen=True)
class Privacy:
    """What a private fit may spend and what it may take as public.

    Parameters
    ----------
    epsilon : float
        Budget, > 0. With ``mechanism="published"``: the ε of each component's noise Laplace(Δ_k/ε), which is
        what that literature states; it is no end-to-end guarantee.
    delta : float, optional
        For (ε, δ) mechanisms, in (0, 1), below 1/n, and at most 0.001 where n is private. None means pure ε.
    bounds : Bounds, optional
        Public ranges of the data. End-to-end mechanisms require them.
    mechanism : {"dp-aff", "moments", "output", "published"}
        ``"dp-aff"``: residual gradients on publicly whitened features, private end to end; (ε, δ) with `delta`, else
        pure ε. ``"moments"``: one noisy second moment of features and responses, a statistic for any number of
        models (``moments_``), from which this one is computed; explains less. ``"output"``: the ridge solution with
        noise on its coefficients for the worst case; simple, and seldom of use. ``"published"``: Laplace noise on the
        coefficients, with the eigenbasis, mean and smoothing parameters taken from the data without noise; it is
        **not** differentially private.
    n : int, optional
        Declared public number of persons; makes the adjacency ``"zero-out"``.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default: ``"zero-out"`` where n is declared, else ``"add-remove"``.
    unit : {"row", "person"}, optional
        Whom the guarantee protects. ``"person"``: all rows with one id in ``groups=``, which must then be given, or
        the fit is refused before it reads a row (tools that fit for you may drop them). ``"row"``: one row, and groups
        are refused. Default: person where groups are given, else row; the ledger says which.
    labels : {"public"}, optional
        ``"public"``: labels of rows (the index of data frames and series) are public, and X, Y and groups are refused
        before the first read where these differ. Default: labels are not looked at, and rows belong together by their
        position, as the ledger says.
    sensitivity : {"local", "coefficient", "scaled"}
        Reading of Δ_k in the published scheme: largest L1 change of Θ_k when one person is left out
        (``"local"``), largest change of a single coefficient (``"coefficient"``), or the latter divided by n
        (``"scaled"``, the reading that reproduces the published pattern of results).
    random_state : int, optional
        Seeded noise, for simulations only: the ledger then says "not for release".
    prior : PublicPrior, optional
        What is believed in public about curves and surface; see :class:`fdadp.PublicPrior`. A wrong one costs
        accuracy, not privacy.
    budget : Budget, optional
        A budget shared with other fits of the same arrays and persons, with the same δ. This fit takes as much of it
        as `epsilon` says; it refuses the fit that would overspend. Default: a budget of its own.
    dataset : str, optional
        Public name of the data, by which a shared budget knows them again; default: their place in memory.
    allow_useless : bool
        Fit even where n ε is so small that the mean curve would do as well.

    Raises
    ------
    PrivacyError
        A setting is missing, out of range or unknown. Always raised before any data are read.
    """

    epsilon: float
    delta: float | None = None
    bounds: Bounds | None = None
    mechanism: str = "dp-aff"
    n: int | None = None
    adjacency: str | None = None
    unit: str | None = None
    labels: str | None = None
    sensitivity: str = "local"
    random_state: int | None = None
    prior: Any = None
    budget: Any = None
    dataset: str | None = None
    allow_useless: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):  # NumPy's numbers as Python's, which can be saved
            value = getattr(self, name)
            if isinstance(value, Real) and not isinstance(value, (bool, int, float)):
                object.__setattr__(self, name, float(value))
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, (int, float)) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon must be a number above 0, got {self.epsilon!r}")
        if not math.isfinite(self.epsilon):
            raise PrivacyError(f"epsilon must be finite, got {self.epsilon!r}")
        if self.delta is not None and not (isinstance(self.delta, (int, float)) and 0 < self.delta < 1):
            raise PrivacyError(f"delta must lie between 0 and 1, or be None for pure epsilon, got {self.delta!r}")
        for name, allowed in (("mechanism", MECHANISMS), ("sensitivity", SENSITIVITIES)):
            if getattr(self, name) is None or not is_one_of(getattr(self, name), allowed):
                raise PrivacyError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if not isinstance(self.allow_useless, bool):
            raise PrivacyError(f"allow_useless must be True or False, got {self.allow_useless!r}")
        if not is_one_of(self.adjacency, (*ADJACENCIES, None)):
            raise PrivacyError(f"adjacency must be one of {', '.join(ADJACENCIES)} or None, got {self.adjacency!r}")
        if not is_one_of(self.unit, (*UNIT_NAMES, None)):
            raise PrivacyError(f"unit must be one of {', '.join(UNIT_NAMES)} or None, got {self.unit!r}")
        if not is_one_of(self.labels, (None, "public")):
            raise PrivacyError(f"labels must be 'public' or None, got {self.labels!r}")
        if self.n is not None:
            object.__setattr__(self, "n", whole(self.n, "n", "the declared number of persons"))
        if self.random_state is not None:
            object.__setattr__(self, "random_state", whole(self.random_state, "random_state", "a seed", least=0))
        if self.bounds is not None and not isinstance(self.bounds, Bounds):
            raise PrivacyError(f"bounds must be a Bounds, got {type(self.bounds).__name__}")

    def check(self) -> None:
        """Refuse what cannot be had, from public values alone, before any data are read.

        Raises
        ------
        PrivacyError
            Missing bounds, an adjacency that does not fit a declared n, δ of 1/n or more, or a hopeless n ε.
        """
        if self.mechanism == "published":
            return
        for name in ("x", "y"):
            if getattr(self.bounds, name, None) is None:
                raise PrivacyError(
                    f"bounds must give a public range for {name}, as in Bounds(x=(low, high), y=(low, high)), got "
                    f"{self.bounds!r}; a range taken from the data would not be private"
                )
        self.check_adjacency()
        if self.n is not None:
            self.check_n(self.n)
        self.budget_share()

    def check_adjacency(self) -> None:
        """Refuse an adjacency that does not suit n; raises PrivacyError."""
        if (self.n is None) != (self.stated_adjacency == "add-remove"):
            raise PrivacyError(
                f"n must be {'declared' if self.n is None else 'left out'} with adjacency {self.adjacency!r}, "
                f"got {self.n}"
            )

    def check_unit(self, groups: Any) -> None:
        """Refuse persons where rows were asked for, and the other way round.

        Parameters
        ----------
        groups : object or None
            What says which rows are one person's; it is not looked at.

        Raises
        ------
        PrivacyError
        """
        if self.unit == "person" and groups is None:
            raise PrivacyError(
                "groups must say whose each row is where unit is 'person', got None; nothing was read and nothing was "
                "spent. scikit-learn's tools drop groups unless sklearn.set_config(enable_metadata_routing=True) and "
                "the estimator's set_fit_request(groups=True)"
            )
        if self.unit == "row" and groups is not None:
            raise PrivacyError("groups must be left out where unit is 'row'; nothing was read and nothing was spent")

    @property
    def stated_adjacency(self) -> str:
        """The adjacency, by default ``"zero-out"`` where n is declared and ``"add-remove"`` where it is not."""
        return self.adjacency or ("add-remove" if self.n is None else "zero-out")

    def budget_share(self) -> tuple[Budget, float]:
        """Return the budget to spend from, a new one unless shared, and the share of it that ε and δ amount to.

        Raises
        ------
        PrivacyError
            `budget` is no Budget, has another δ, or is smaller than this fit's ε.
        """
        from fdadp.privacy.budget import Budget

        own = Budget(self.epsilon, self.delta)
        if self.budget is None:
            return own, 1.0
        if not isinstance(self.budget, Budget):
            raise PrivacyError(f"budget must be a Budget, got {type(self.budget).__name__}")
        if self.budget.delta != own.delta:
            raise PrivacyError(
                f"delta must be that of the shared budget, {self.budget.delta}, got {self.delta}: what is counted in "
                "rho and in pure epsilon cannot be added up"
            )
        share = own.total / self.budget.total
        if share > 1 + 1e-9:
            raise PrivacyError(
                f"epsilon must be at most that of the shared budget, {self.budget.epsilon:g}, got {self.epsilon:g}"
            )
        return self.budget, min(share, 1.0)

    def cohort(
        self,
        data: Any,
        *,
        groups: Any = None,
        mechanism: str,
        public: Mapping[str, Any],
        noise: Noise | None = None,
        estimator: Any = None,
    ) -> Cohort:
        """Put data behind a cohort that has reserved what these settings amount to; no row is read.

        Parameters
        ----------
        data, groups
            As :class:`fdadp.privacy.Cohort` takes them.
        mechanism, public
            Name and public inputs, for the ledger.
        noise : Noise, optional
            Instead of OpenDP's, or of that seeded by `random_state`. For audits. By default that of
            :func:`fdadp.privacy.distributed.noise_source`, where a fit runs inside one.

        estimator : object, optional
            That is fitted: where it is not the first time, and on no common budget, a NotAccountedWarning says so.

        Raises
        ------
        PrivacyError
            As the Cohort does; the budget is not there.
        """
        from fdadp.privacy._seen import earlier_fits
        from fdadp.privacy.cohort import Cohort
        from fdadp.privacy.distributed import current_noise
        from fdadp.privacy.noise import OpenDPNoise, SeededNoise

        self.check_unit(groups)
        budget, share = self.budget_share()
        noise = noise or current_noise()
        alone = noise is None and self.budget is None and self.random_state is None
        if noise is None:
            noise = OpenDPNoise() if self.random_state is None else SeededNoise(self.random_state)
        cohort = Cohort(
            data,
            groups=groups,
            budget=budget,
            adjacency=self.stated_adjacency,
            n=self.n,
            noise=noise,
            share=share,
            dataset=self.dataset,
            mechanism=mechanism,
            public={**public, "rows belong together by": MATCHING[self.labels]},
        )
        if alone:
            cohort.others = earlier_fits(data, dataset=self.dataset, estimator=estimator)
        return cohort

    def check_n(self, n: float) -> None:
        """Refuse a δ that does not suit n, and a fit that would be no better than the mean curve.

        Parameters
        ----------
        n : float
            Declared or released.

        Raises
        ------
        PrivacyError
            δ of 1/n or more; n ε below 50 (100 with ``adjacency="replace"``), unless ``allow_useless``.
        """
        check_delta(self.delta, n)
        least = 100.0 if self.stated_adjacency == "replace" else 50.0
        if n * self.epsilon < least and not self.allow_useless:
            raise PrivacyError(
                f"n and epsilon must give n * epsilon of at least {least:g} for a fit better than the mean curve, got "
                f"{n:.0f} * {self.epsilon:g}; it takes n >= {math.ceil(least / self.epsilon)} or epsilon >= "
                f"{least / n:.3g}, or allow_useless=True"
            )
