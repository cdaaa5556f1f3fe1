"""How the additive model is fitted privately: one frozen class a mechanism, with its own settings.

``AdditiveFunctionOnFunction(mechanism=)`` takes one of them, or the short name of an end-to-end one with its defaults.
The estimator does not know which there are: a new one is one subclass of :class:`EndToEnd`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from fdadp._common.argument_checks import flag
from fdadp._common.calling_language import advice
from fdadp._common.estimators import Parameters
from fdadp.errors import FileFormatError, InputError, PrivacyError
from fdadp.files.dataclass_json import class_at
from fdadp.files.npz_files import plain
from fdadp.privacy.settings import privacy_from_json, privacy_to_json
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import least_n_epsilon, make_plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import Range
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.public.tuned_constants import Tuning
from fdadp.private.release.dp_aff import fit_dp_aff, with_directions
from fdadp.private.release.noisy_moments import NoisyMoments, fit_moments, plan_moments
from fdadp.private.release.residual_sizes import PrivateFit
from fdadp.private.rows.anchored_forecasts import plan_forecasts
from fdadp.private.rows.curve_roughness import with_spectra
from fdadp.private.rows.errors_by_record import with_looks
from fdadp.private.rows.row_functions import RowFunctions

if TYPE_CHECKING:
    from fdadp._common.typing import IntArray
    from fdadp.privacy import Cohort, Privacy
    from fdadp.solve.eigen.surface_fit import SurfaceFit
    from fdadp.terms.records import Records

F = TypeVar("F")


class Mechanism(Parameters):
    """Base of all mechanisms: an :class:`EndToEnd`, or a :class:`NoiseAfterFit`.

    Attributes
    ----------
    name : str
        As ledgers say it.
    """

    name: ClassVar[str]


Pass = Callable[[str], Iterable[tuple["Records", Any]]]


class NoiseAfterFit(Mechanism, ABC):
    """Base of schemes that change a model which was fitted without privacy. None of them is private end to end."""

    @abstractmethod
    def perturb(self, found: SurfaceFit, read: Pass, privacy: Privacy, persons: IntArray | None = None) -> SurfaceFit:
        """Return the fit with noise added, and a ledger that says what that is worth.

        Parameters
        ----------
        found : SurfaceFit
        read : callable
            Goes through the training curves, gaps filled, under a progress bar of a name: X as records, and Y.
        privacy : Privacy
        persons : ndarray of shape (n,), optional
            Code of the person of each curve.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class EndToEnd(Mechanism, ABC, Generic[F]):
    """Base of mechanisms whose whole output is private: sums with noise from the kernel, and what follows from them.

    Parameters
    ----------
    prior : PublicPrior, optional
        What is believed in public about curves and surface; default ``PublicPrior()``. A wrong one costs accuracy, not
        privacy.
    allow_useless : bool
        Fit even where n ε is so small that the mean curve would do as well.

    Raises
    ------
    InputError, PrivacyError
    """

    prior: PublicPrior | str | None = None
    allow_useless: bool = False

    def __post_init__(self) -> None:
        check_prior(self.prior)
        check_allow_useless(self.allow_useless)

    @property
    def public_prior(self) -> PublicPrior:
        """The prior, or the default one."""
        return self.prior if isinstance(self.prior, PublicPrior) else PublicPrior()

    @property
    def anchor(self) -> str | None:
        """What fits are about, where it is not the mean: ``"persistence"``."""
        return self.prior if isinstance(self.prior, str) else None

    def check_n(self, privacy: Privacy, n: float) -> None:
        """Refuse a fit that would be no better than the mean curve.

        Parameters
        ----------
        privacy : Privacy
        n : float
            Declared or released.

        Raises
        ------
        PrivacyError
            n ε below 50 (100 with ``adjacency="replace"``), unless ``allow_useless``.
        """
        least = least_n_epsilon(privacy.stated_adjacency)
        if n * privacy.epsilon < least and not self.allow_useless:
            raise PrivacyError(
                f"n and epsilon must give n * epsilon of at least {least:g} for a fit better than the mean curve, got "
                f"{n:.0f} * {privacy.epsilon:g}; it takes n >= {np.ceil(least / privacy.epsilon):.0f} or epsilon >= "
                f"{least / n:.3g}{advice(', or allow_useless=True', r=', or allow_useless = TRUE', shell='')}"
            )

    @abstractmethod
    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Share out the budget, from public values alone; see :func:`fdadp.private.plan.budget_sharing.make_plan`."""

    def rows(self, design: PrivateDesign, y_bounds: Range) -> RowFunctions:
        """What is computed from a person's rows, before anything was released."""
        return RowFunctions(design, y_bounds)

    @abstractmethod
    def spend(self, cohort: Cohort, plan: Plan, rows: RowFunctions) -> tuple[F, NoisyMoments | None]:
        """Spend the budget as planned; see :func:`fdadp.private.release.dp_aff.fit_dp_aff`.

        Returns
        -------
        fit : PrivateFit, or that of another kind of response
        moments : NoisyMoments or None
            A statistic that is kept beside the fit.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class DPAFF(EndToEnd[PrivateFit]):
    """Noisy gradients of residuals on publicly whitened features: explains most, and the default.

    Parameters
    ----------
    prior : PublicPrior or "persistence", optional
        As of every mechanism that is private end to end (:class:`~fdadp.private.release.mechanisms.EndToEnd`); or
        ``"persistence"`` for forecasts of the same quantity by the regressions of many terms. It is the default prior
        about an anchor, half the last value and half the mean of a row's curve, as an offset. Anchors cost nothing, and
        the fit is dropped where it is no better than its own.
    allow_useless : bool
        As of :class:`~fdadp.private.release.mechanisms.EndToEnd`.
    errors_by_record : bool
        Of the regressions of many terms: prediction intervals vary by level and roughness of a record's curves, as
        those of forecasts do. That takes up to 3.5 % of the budget; default False: one width for all records.
    tuning : Tuning, optional
        Accuracies aimed at, caps and clips; default :data:`fdadp.private.public.tuned_constants.GAUSSIAN`, or ``PURE``
        without δ.

    Examples
    --------
    >>> DPAFF(allow_useless=True)
    DPAFF(allow_useless=True)
    """

    errors_by_record: bool = False
    tuning: Tuning | None = None

    name: ClassVar[str] = "dp-aff"

    def __post_init__(self) -> None:
        if not (isinstance(self.prior, str) and self.prior == "persistence"):
            check_prior(self.prior, " or 'persistence'")
        check_allow_useless(self.allow_useless)
        flag(self.errors_by_record, "errors_by_record")
        if self.tuning is not None and not isinstance(self.tuning, Tuning):
            raise InputError(f"tuning must be a Tuning, got {type(self.tuning).__name__}")

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Share out the budget over rounds of gradients."""
        make = make_plan if self.anchor is None else plan_forecasts
        plan = make(n, noise_multiplier, design, pure=pure, tuning=self.tuning)
        if self.anchor is not None:
            return plan
        plan = with_directions(with_spectra(plan, design), design)
        return with_looks(plan) if self.errors_by_record else plan

    def spend(self, cohort: Cohort, plan: Plan, rows: RowFunctions) -> tuple[PrivateFit, None]:
        """Spend it; nothing is kept beside the fit."""
        return fit_dp_aff(cohort, plan, rows), None


@dataclass(frozen=True, kw_only=True, repr=False)
class MomentPerturbation(EndToEnd[PrivateFit]):
    """One noisy second moment of features and responses, from which any number of models follow; explains less.

    The statistic is kept as the model's ``moments_``.

    Parameters
    ----------
    prior, allow_useless
        As of every mechanism that is private end to end (:class:`~fdadp.private.release.mechanisms.EndToEnd`).

    Examples
    --------
    >>> MomentPerturbation()
    MomentPerturbation()
    """

    name: ClassVar[str] = "moments"

    def plan(self, n: float, noise_multiplier: float, design: PrivateDesign, *, pure: bool) -> Plan:
        """Choose the size of the matrix."""
        return plan_moments(n, noise_multiplier, design, pure=pure)

    def spend(self, cohort: Cohort, plan: Plan, rows: RowFunctions) -> tuple[PrivateFit, NoisyMoments]:
        """Release the matrix; it is kept beside the fit."""
        return fit_moments(cohort, plan, rows)


SHORT = {kind.name: kind for kind in (DPAFF, MomentPerturbation)}
"""Mechanisms that a name stands for."""


def mechanism_of(mechanism: str | Mechanism) -> EndToEnd[Any] | NoiseAfterFit:
    """Return a mechanism itself, or the one that a short name stands for.

    Raises
    ------
    PrivacyError
        It is neither.
    """
    if isinstance(mechanism, EndToEnd | NoiseAfterFit):
        return mechanism
    if not isinstance(mechanism, str) or mechanism not in SHORT:
        raise PrivacyError(
            f"mechanism must be one of {', '.join(SHORT)}, or an object such as DPAFF(prior=...) or "
            f"fdadp.published.PublishedNoise(), got {mechanism!r}"
        )
    return SHORT[mechanism]()


def check_prior(prior: Any, others: str = "") -> None:
    """Refuse what is neither a PublicPrior nor None; `others`: what else there is. Raises InputError."""
    if prior is not None and not isinstance(prior, PublicPrior):
        got = repr(prior) if isinstance(prior, str) and others else type(prior).__name__
        raise InputError(f"prior must be a PublicPrior{others}, got {got}")


def check_allow_useless(value: Any) -> None:
    """Refuse what is neither True nor False; raises PrivacyError."""
    if not isinstance(value, bool):
        raise PrivacyError(f"allow_useless must be True or False, got {value!r}")


# Parameters of private estimators in files: plain JSON, without live objects.
#
# ``privacy`` is a dict of the guarantee's settings without the budget, ``bounds`` one of ranges, and a mechanism that
# is an object ``{"class": "fdadp.private.release.mechanisms.DPAFF", ...}`` with its own. Prior and tuning are not kept.


NOT_KEPT = ("prior", "tuning")
"""Parameters that a file does not hold: objects, of which the first may be large."""


def params_to_json(model: Any, fitted_with: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The constructor's arguments as JSON.

    Parameters
    ----------
    model : estimator with ``privacy``
    fitted_with : mapping, optional
        Those of the fit, whatever was set since.

    Raises
    ------
    InputError
        JSON cannot hold one of them.
    """
    params = model.get_params(deep=False) | dict(fitted_with or {})
    params |= guarantee_to_json(params)
    return {name: plain(None if name in NOT_KEPT else value, name) for name, value in params.items()}


def guarantee_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """``privacy`` and ``mechanism`` of an estimator's parameters as JSON."""
    found = {"privacy": privacy_to_json(params["privacy"])}
    if "mechanism" in params:
        found["mechanism"] = plain(_mechanism_to_json(params["mechanism"]), "mechanism")
    return found


def guarantee_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Read what :func:`guarantee_to_json` made."""
    found: dict[str, Any] = {"privacy": privacy_from_json(stored["privacy"])}
    if "mechanism" in stored:
        found["mechanism"] = _mechanism_from_json(stored["mechanism"])
    return found


def params_from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Read what :func:`params_to_json` made."""
    params = dict(stored) | guarantee_from_json(stored)
    if isinstance(params.get("bounds"), Mapping):
        params["bounds"] = {name: tuple(pair) for name, pair in params["bounds"].items()}
    elif params.get("bounds") is not None:
        params["bounds"] = tuple(params["bounds"])
    return params


def _mechanism_to_json(mechanism: Any) -> Any:
    if not isinstance(mechanism, Mechanism):  # a name
        return mechanism
    kept = mechanism.get_params()
    settings = {n: None if n in NOT_KEPT and not isinstance(value, str) else value for n, value in kept.items()}
    return {"class": f"{type(mechanism).__module__}.{type(mechanism).__qualname__}", **settings}


def _mechanism_from_json(stored: Any) -> Any:
    """Make a mechanism of a class of this package, or of a module that is imported already; a name stays one."""
    if not isinstance(stored, Mapping):
        return stored
    kind = class_at(str(stored["class"]))
    if kind is None or not issubclass(kind, Mechanism):
        raise FileFormatError(f"mechanism must be a class that can be found, got {stored['class']!r}: import it first")
    return kind(**{name: value for name, value in stored.items() if name != "class"})
