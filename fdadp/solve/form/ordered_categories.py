"""Ordered categories 1 to R: a latent logistic variable about the linear predictor, cut at R - 1 points.

With cut points ``α_0 = -∞ < α_1 < … < α_R = ∞`` and the logistic distribution function F, the probability of category
k is ``F(α_k - η) - F(α_{k-1} - η)``. By ``F(u) - F(v) = F(u) F(-v) (1 - e^{v-u})`` its logarithm is a sum over both
ends, and of a number without η. So derivatives have no cancellation, and the likelihood is log-concave in η.

References
----------
McCullagh (1980), Regression models for ordinal data, doi:10.1111/j.2517-6161.1980.tb01109.x; Wood, Pya & Säfken (2016),
doi:10.1080/01621459.2016.1180986, section 3.1 and supplementary appendix on ordered categorical data; mgcv's ``ocat``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.solve.form.families_with_theta import FamilyWithTheta, ThetaSearch, ThetaSlopes
from fdadp.solve.form.response_families import Derivatives, Family

FIRST_CUT = -1.0
"""The first cut point where REML chooses the others, as in mgcv: a constant would undo its choice."""

MOST_CATEGORIES = 100

NARROWEST, WIDEST = 1e-6, 1e3
"""Distances of cut points within which their logarithms are searched."""

TRIES = 200
"""Of the search for the linear predictor of a mean."""


@dataclass(frozen=True)
class Ordered(FamilyWithTheta):
    """Ordered categories, numbered from 1; the mean is that of these numbers.

    Parameters
    ----------
    cuts : tuple of float, optional
        The R - 1 cut points, which increase. Default: -1, and others chosen by REML, together with the smoothing
        parameters.
    chosen : bool
        Whether the data chose cut points. Standard errors take them as known; AIC counts all but the first.
    """

    cuts: tuple[float, ...] | None = None
    chosen: bool = False

    name = "ordered"
    link = "cumulative logit"
    known_scale = True
    first_class = 1
    valid = f"whole numbers of categories, from 1 to at most {MOST_CATEGORIES}, or an ordered categorical"
    extremes = (1.0,)

    def __post_init__(self) -> None:
        """Refuse what are no cut points."""
        if self.cuts is None:
            return
        try:
            cuts = np.array(self.cuts, dtype=np.float64)
        except (TypeError, ValueError):
            cuts = np.zeros(0)
        some = cuts.ndim == 1 and 2 <= cuts.size < MOST_CATEGORIES
        if not (some and np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
            raise InputError(
                f"cuts must be two cut points or more, which increase, such as (-1, 0.5, 2), or None, got {self.cuts!r}"
            )
        object.__setattr__(self, "cuts", tuple(cuts.tolist()))

    @property
    def known(self) -> FloatArray:
        """The R - 1 cut points; without them the likelihood is not defined."""
        if self.cuts is None:
            raise InputError("cuts must be given, or chosen by a fit, got None")
        return np.array(self.cuts)

    @property
    def unknown(self) -> bool:
        """As :attr:`FamilyWithTheta.unknown`."""
        return self.cuts is None

    @property
    def n_estimated(self) -> int:
        """All cut points but the first, where the data chose them."""
        return self.known.size - 1 if self.chosen else 0

    @property
    def shown(self) -> str:
        """With cut points."""
        return self.name if self.cuts is None else f"{self.name}({_listed(self.known)})"

    @property
    def notes(self) -> tuple[str, ...]:
        """Where cut points are, and that standard errors know them."""
        if not self.chosen:
            return ()
        return (
            f"Cut points of the latent variable: {_listed(self.known)}. The first is fixed, REML chose the others; "
            "standard errors and tests take them as known.",
        )

    # --- the search for cut points ---

    def at(self, point: FloatArray, chosen: bool = False) -> Ordered:
        """With logarithms (R - 2,) of the distances of cut points."""
        cuts = FIRST_CUT + np.concatenate(([0.0], np.cumsum(np.exp(point))))
        return Ordered(tuple(cuts.tolist()), chosen)

    def tally(self, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Weights of the categories, of which 0 is none."""
        return np.asarray(np.bincount(y.astype(np.int64), weights, MOST_CATEGORIES + 1), dtype=np.float64)

    def search(self, tally: FloatArray) -> ThetaSearch:
        """From the cut points of a model that is one mean, along logarithms of their distances."""
        weights = tally[1 : np.flatnonzero(tally)[-1] + 1]
        check_categories(weights, "responses")
        below = np.cumsum(weights)[:-1] / weights.sum()
        start = np.log(np.clip(np.diff(logit(below)), NARROWEST, WIDEST))
        return ThetaSearch(start[None], np.full(start.size, np.log(NARROWEST)), np.full(start.size, np.log(WIDEST)))

    def slopes(self, y: FloatArray, eta: FloatArray) -> ThetaSlopes:
        """As :meth:`FamilyWithTheta.slopes`, in the logarithms of the distances of cut points."""
        upper, lower, width = self._ends(y, eta)
        own, other = _logistic(upper), _logistic(lower)
        with np.errstate(over="ignore"):
            apart = 1 / np.expm1(width)
        moved = np.arange(2, self.known.size + 1).reshape(-1, *np.ones(y.ndim, dtype=int))  # number of a cut point
        distance = np.diff(self.known).reshape(moved.shape)
        above = np.where((y >= moved) & (y <= self.known.size), distance, 0.0)  # how its upper end moves
        below = np.where(y > moved, distance, 0.0)
        return ThetaSlopes(
            above * (own.share - 1 - apart) + below * (other.share + apart),
            above * own.density + below * other.density,
            above * own.slope + below * other.slope,
        )

    # --- means ---

    def mean(self, eta: FloatArray) -> FloatArray:
        """Expected number of the category, 1 to R."""
        return np.asarray(1 + expit(np.asarray(eta)[..., None] - self.known).sum(axis=-1))

    def mean_slope(self, eta: FloatArray) -> FloatArray:
        """Derivative of the mean in η."""
        return np.asarray(_logistic(np.asarray(eta)[..., None] - self.known).density.sum(axis=-1))

    def predictor(self, mean: FloatArray) -> FloatArray:
        """The linear predictor of a mean, by Newton's method within bounds."""
        cuts = self.known
        with np.errstate(invalid="ignore", divide="ignore"):
            odds = logit((np.asarray(mean) - 1) / cuts.size)
            low, high = cuts[0] + odds, cuts[-1] + odds
            eta = (low + high) / 2
            for _ in range(TRIES):
                away = self.mean(eta) - mean
                low, high = np.where(away < 0, eta, low), np.where(away < 0, high, eta)
                step = eta - away / self.mean_slope(eta)
                new = np.where((step >= low) & (step <= high), step, (low + high) / 2)
                if np.array_equal(new, eta, equal_nan=True):
                    break
                eta = new
        return np.asarray(eta)

    def variance(self, mean: FloatArray) -> FloatArray:
        """Of the numbers of categories with a mean."""
        above = expit(self.predictor(mean)[..., None] - self.known)
        return np.asarray(1 + above @ np.arange(3, 2 * self.known.size + 2, 2) - mean**2)

    # --- the likelihood ---

    def half_deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Minus the logarithm of the probability."""
        upper, lower, width = self._ends(y, eta)
        with np.errstate(divide="ignore"):
            apart = np.log(-np.expm1(-width))
        return np.asarray(np.logaddexp(0.0, -upper) + np.logaddexp(0.0, lower) - apart)

    def working(self, y: FloatArray, eta: FloatArray) -> Derivatives:
        """Observed weights stand for the expected ones, too, as in mgcv."""
        upper, lower, _ = self._ends(y, eta)
        own, other = _logistic(upper), _logistic(lower)
        weight = own.density + other.density
        return Derivatives(own.share + other.share - 1, weight, -own.slope - other.slope, weight)

    def saturated(self, y: FloatArray, weights: FloatArray, scale: float) -> tuple[float, float, float]:
        """As :meth:`Family.saturated`: all probabilities are 1."""
        return 0.0, 0.0, 0.0

    def _ends(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Both ends of the category of each response less η, and their distance."""
        ends, category = np.concatenate(([-np.inf], self.known, [np.inf])), np.asarray(y).astype(np.int64)
        return ends[category] - eta, ends[category - 1] - eta, _widths(self.known)[category - 1]

    # --- what responses may be ---

    def check(self, y: FloatArray, weights: FloatArray | None = None, name: str = "Y", first: int = 0) -> None:
        """As :meth:`Family.check`; of numbers from 0 it says where they may come from."""
        try:
            super().check(y, weights, name, first)
        except InputError as error:
            if 0 not in y:
                raise
            raise InputError(
                f"{error}; scikit-learn's cross_val_predict numbers classes from 0 in alphabetical order: leave out "
                f"its y, and the column {name} of the data is taken"
            ) from None

    def _possible(self, y: FloatArray, weights: FloatArray | None) -> BoolArray:
        most = MOST_CATEGORIES if self.cuts is None else self.known.size + 1
        return np.asarray((y >= 1) & (y <= most) & (y == np.floor(y)))

    def check_mean(self, mean: float, name: str = "Y") -> None:
        """As :meth:`Family.check_mean`: all responses are in the first or in the last category."""
        if self.cuts is not None and mean in (1.0, self.known.size + 1.0):
            raise InputError(f"{name} must have two categories or more for family='ordered', got only {mean:g}")


class _Logistic(NamedTuple):
    """The logistic distribution function at points, its density, and the slope of that."""

    share: FloatArray
    density: FloatArray
    slope: FloatArray


def _logistic(at: FloatArray) -> _Logistic:
    share, rest = np.asarray(expit(at)), np.asarray(expit(-at))
    density = share * rest
    return _Logistic(share, density, density * (rest - share))


def _widths(cuts: FloatArray) -> FloatArray:
    """Distances of both ends of each category (R,)."""
    return np.concatenate(([np.inf], np.diff(cuts), [np.inf]))


def _listed(cuts: FloatArray) -> str:
    return ", ".join(f"{cut:.4g}" for cut in cuts)


# Classes of responses, which are two or ordered.


def classes_of(family: Family) -> list[int] | None:
    """Numbers of the classes; None where responses are no classes."""
    if isinstance(family, Ordered):
        return list(range(1, family.known.size + 2))
    return None if family.first_class is None else [0, 1]


def probabilities(family: Family, eta: FloatArray) -> FloatArray:
    """Of each class, shape (..., K), by the linear predictor."""
    if not isinstance(family, Ordered):
        mean = family.mean(eta)
        return np.stack((1 - mean, mean), axis=-1)
    ends = np.concatenate(([-np.inf], family.known, [np.inf])) - eta[..., None]
    return np.asarray(expit(ends[..., 1:]) * expit(-ends[..., :-1]) * -np.expm1(-_widths(family.known)))


def probability_slopes(family: Family, eta: FloatArray) -> FloatArray:
    """Derivatives of :func:`probabilities` in the linear predictor, shape (..., K)."""
    if not isinstance(family, Ordered):
        slope = family.mean_slope(eta)
        return np.stack((-slope, slope), axis=-1)
    ends = np.concatenate(([-np.inf], family.known, [np.inf])) - eta[..., None]
    return -np.diff(_logistic(ends).density, axis=-1)


def one_constant(family: Family, y: FloatArray, weights: FloatArray) -> float:
    """Linear predictor of the likeliest model that is one mean: of ordered categories by Newton's method."""
    eta = float(family.predictor(np.array(float(weights @ y) / float(weights.sum()))))
    if not isinstance(family, Ordered):
        return eta
    for _ in range(TRIES):
        at = family.working(y, np.full(y.size, eta))
        step = float(np.clip(float(weights @ at.residual) / max(float(weights @ at.weight), 1e-300), -1.0, 1.0))
        eta += step
        if abs(step) < 1e-12 * (1 + abs(eta)):
            break
    return eta


def check_categories(weights: FloatArray | IntArray, name: str) -> None:
    """Refuse weights of the categories from 1 where cut points have no finite estimate.

    Raises
    ------
    InputError
        Fewer than three categories, or one without responses.
    """
    if weights.size < 3:
        raise InputError(
            f"{name} must have three categories or more for family='ordered', got {np.count_nonzero(weights)}; "
            "family='binomial' is there for two"
        )
    if not weights.all():
        raise InputError(
            f"{name} must have responses in every category from 1 to {weights.size} for family='ordered', got none in "
            f"{int(np.argmin(weights > 0)) + 1}; number categories without gaps, or give cut points"
        )
