"""How far out persons lie, and covariances of what is clipped there: released shares, and the laws they let expect."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import ClippingWarning
from fdadp.privacy import Cohort, Noisy
from fdadp.privacy.account.epsilon_mu_rho import unit_noise
from fdadp.privacy.clipped_shares import release_shares
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.rounds.posterior_means import shrunk

# How far out curves lie: released shares of persons beyond a few sizes, and what clipping at some size then costs.
#
# A clip that follows the typical size of curves is right for Gaussian ones and cuts a skewed sample on one side, by an
# amount that no number of persons makes smaller. So the shares of persons beyond a few multiples of the typical size
# are released, and from them alone follow the clip, what it may take off, and the variance of what lies beyond.


EDGES = 1.6 ** np.arange(1.0, 5.0)
"""Multiples of the typical size beyond which persons are counted: 1.6, 2.6, 4.1, 6.6."""
SIZES = np.geomspace(0.05, 2000.0, 400)
"""Where the laws are tabulated, in units of the typical size."""
SURE = 2.5
LIGHT = 0.7
"""Prior probability of a tail as light as that of Gaussian curves."""
SHARES, DECLINES, POWERS = np.geomspace(0.02, 0.6, 18), np.geomspace(0.5, 12.0, 16), np.linspace(0.1, 2.5, 13)
"""Shares beyond the first edge, declines there, and exponents of the laws that are tabulated."""
LIGHT_POWER, USUAL_SHARE, USUAL_DECLINE, LOG_SD, BELOW = 1.5, 0.2, 2.0, 0.7, 1.3
"""Exponent from which a tail is light; prior median of share and decline, sd of their logarithms; exponent below."""
ROUNDING = 1e-12
CLOSEST, FARTHEST, CANDIDATES = 1.2, 1.3, 60
"""Least clip and least largest clip over the typical size, and how many are tried."""


@functools.cache
def _laws() -> tuple[FloatArray, FloatArray]:
    """Shares beyond SIZES, (L, 400), of laws with a Weibull tail from the first edge on; and their log prior (L,).

    ``S(x) = p exp(-d ((x / e)^b - 1) / b)`` beyond e = 1.6: share p beyond it, decline d there, and b = 2 for Gaussian,
    1 for exponential, less for log-normal sizes, towards 0 for powers. Below, S falls as ``1 - (1 - p) (x/e)^1.3``, as
    it does for Gaussian curves of one component and of many.
    """
    p, d, b = (a.ravel() for a in np.meshgrid(SHARES, DECLINES, POWERS, indexing="ij"))
    ratio = SIZES / EDGES[0]
    with np.errstate(over="ignore"):
        above = p[:, None] * np.exp(-d[:, None] * (ratio ** b[:, None] - 1) / b[:, None])
    below = 1 - (1 - p[:, None]) * ratio**BELOW
    light = b > LIGHT_POWER
    log_prior = np.log(np.where(light, LIGHT / light.sum(), (1 - LIGHT) / (~light).sum()))
    log_prior = log_prior - 0.5 * ((np.log(p / USUAL_SHARE) / LOG_SD) ** 2 + (np.log(d / USUAL_DECLINE) / LOG_SD) ** 2)
    return np.where(ratio > 1, above, below), log_prior


@dataclass(frozen=True)
class Tail:
    """The law of the size of curves, as released shares and the prior's laws let expect it.

    Attributes
    ----------
    typical : float
        Geometric mean of the sizes, as released.
    largest : float
        Size that no curve exceeds, from public bounds.
    beyond : ndarray of shape (400,)
        Expected share of persons beyond ``typical * SIZES``.
    weight : ndarray of shape (L,)
        Posterior weights of the laws, which sum to one.
    surely : ndarray of shape (4,)
        Share of persons that surely are beyond each of EDGES: as released, less 2.5 sds of the noise.
    """

    typical: float
    largest: float
    beyond: FloatArray
    weight: FloatArray
    surely: FloatArray

    @classmethod
    def fit(
        cls, shares: FloatArray, sd: float, typical: float, largest: float, n: float, *, pure: bool = False
    ) -> Tail:
        """Weigh the laws by how well they agree with the release.

        Parameters
        ----------
        shares : ndarray of shape (4,)
            Released shares of persons beyond ``typical * EDGES``.
        sd : float
            Of the noise in each.
        typical, largest : float
        n : float
            Number of persons, for the sampling error of the shares.
        pure : bool
            Whether the noise is Laplace noise.
        """
        laws, log_prior = _laws()
        at = np.where(EDGES * typical < largest, laws[:, np.searchsorted(SIZES, EDGES)], 0.0)
        variance = sd**2 + at * (1 - at) / n
        off = (shares - at) ** 2 / variance
        log_weight = log_prior - (np.sqrt(2 * off) if pure else off / 2).sum(axis=1) - np.log(variance).sum(axis=1) / 2
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        surely = np.minimum.accumulate(np.clip(np.asarray(shares) - SURE * sd, 0.0, 1.0))  # shares cannot grow
        return cls(typical, largest, weight @ laws, weight, surely)

    @classmethod
    def released(
        cls, cohort: Cohort, beyond: RowFunction, typical: float, largest: float, n: float, *, share: float, name: str
    ) -> Tail:
        """Release shares of persons beyond the edges, and weigh the laws by them; parameters are those of :meth:`fit`.

        `beyond`: whether the size of each person is larger than ``typical * EDGES``, (m, 4).
        """
        seen = release_shares(cohort, beyond, n=n, share=share, name=name, size=EDGES.size)
        return cls.fit(seen.value, seen.sd, typical, largest, n, pure=cohort.pure)

    def excess(self, clip: float, power: int = 1) -> float:
        """Mean of ``size^p - clip^p`` over persons, 0 for those within the clip: what a clip takes off, at most.

        As expected, or :meth:`sure_excess` where that is more.
        """
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        expected = float((self.beyond[:-1] + self.beyond[1:]) / 2 @ np.diff(inside**power))
        return max(expected * self.typical**power, self.sure_excess(clip, power))

    def likely_excess(self, clip: float, level: float) -> float:
        """Size that the excess over a clip exceeds under laws of total weight 1 - `level` only."""
        inside = np.clip(SIZES, clip / self.typical, self.largest / self.typical)
        of_laws = _laws()[0][:, :-1] @ np.diff(inside) * self.typical
        order = np.argsort(of_laws)
        quantile = of_laws[order[np.searchsorted(np.cumsum(self.weight[order]), level * (1 - ROUNDING))]]
        return max(float(quantile), self.sure_excess(clip))

    def sure_excess(self, clip: float, power: int = 1) -> float:
        """What it is at least by the shares that surely are beyond the edges: nobody farther out than an edge says."""
        steps = np.clip(np.append(0.0, EDGES), clip / self.typical, self.largest / self.typical)
        return float(self.surely @ np.diff(steps**power)) * self.typical**power

    @property
    def mean_square(self) -> float:
        """Mean of the squared sizes."""
        return self.excess(float(SIZES[0]) * self.typical, 2)

    @property
    def candidates(self) -> FloatArray:
        """Clips to choose from, (60,), from a little above the typical size to the largest."""
        return np.asarray(np.geomspace(CLOSEST * self.typical, max(self.largest, FARTHEST * self.typical), CANDIDATES))

    def clip(self, cost: FloatArray, power: int = 1) -> float:
        """Candidate of the least cost (60,) and excess together."""
        candidates = self.candidates
        return float(candidates[np.argmin(cost + [self.excess(float(c), power) for c in candidates])])


# Covariances, clipped where noise and what the tail loses balance, and shrunk by the known noise.


TINY = 1e-300
PRIOR = 0.49
"""Variance of the logarithm of the size of curves about a guess."""
TRACE_SD, LEAST_TRACE = 0.4, 0.1
"""Prior sd of the total variance over the released size, and its least value."""


class ReleasedCovariance(NamedTuple):
    """Covariance (m, m), and what its noise is.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
    sd : float
        Of the noise in entries off the diagonal before shrinkage; sqrt(2) times that on the diagonal.
    reach : float
        Size beyond which persons were clipped.
    unsure : ndarray of shape (m, m)
        What the noise leaves unknown of each entry, as a standard deviation.
    beyond, surely_beyond : float
        Share of the variance that lies beyond the clip, as the released tail lets expect, and at least. It is in the
        matrix, in proportion.
    """

    matrix: FloatArray
    sd: float
    reach: float
    unsure: FloatArray
    beyond: float
    surely_beyond: float

    @property
    def trace_sd(self) -> float:
        """What the noise leaves unknown of the trace."""
        return float(np.sqrt((np.diag(self.unsure) ** 2).sum()))


BEYOND, GUESSED = 0.1, 0.5
"""A warning is given where more than the first share of the variance surely lies beyond the clip, or more than the
second as expected: of Gaussian curves at most .35 in 60 fits to 1,000 to 5,000 persons."""


def warn_of_tail(beyond: float, surely: float, of: str = "") -> None:
    """Warn of curves whose tails a released covariance hangs on, from released values.

    Parameters
    ----------
    beyond, surely : float
        As of a :class:`ReleasedCovariance`.
    of : str
        Whose variance it is, with a space before it.

    Warns
    -----
    ClippingWarning
    """
    if surely > BEYOND or beyond > GUESSED:
        warnings.warn(
            f"about {100 * beyond:.0f} % of the variance{of} lies beyond the clip, by released shares of large "
            "curves. The curves have heavy tails, and the eigenvalues depend on their form",
            ClippingWarning,
            stacklevel=4,
        )


def clip_of(
    cohort: Cohort, prior_shares: FloatArray, share: float, n: float, tail: Tail, size_clip: float
) -> tuple[int, float]:
    """Number of leading functions of which second moments are worth their noise, and the size beyond which to clip.

    In pure form the leading ones alone; else all.

    Parameters
    ----------
    cohort : Cohort
    prior_shares : ndarray of shape (m,)
    share : float
        Of the cohort's reservation, that the release is to spend.
    n : float
        Persons in the sum.
    tail : Tail
        Of the sizes of persons, whose squares are the norms of their moments.
    size_clip : float
        Clip over the typical size, where no tail was looked at.
    """
    noise_of_one = unit_noise(cohort, share)
    d = _leading(prior_shares, size_clip**2 * noise_of_one / 2 / n) if cohort.pure else prior_shares.size
    if cohort.pure:  # as Cohort.second_moment: matrix Laplace noise, √(d + 1) and not √2
        noise_of_one *= math.sqrt((d + 1) / 2)
    elif cohort.adjacency == "replace":  # not 2 clips, but √2
        noise_of_one /= math.sqrt(2)
    per_square = math.sqrt(d) * noise_of_one / n
    return d, tail.clip(per_square * tail.candidates**2, power=2)


def covariance_of(seen: Noisy, reach: float, prior_shares: FloatArray, n: float, tail: Tail) -> ReleasedCovariance:
    """Covariance, shrunk entry by entry towards the prior's and positive.

    Of functions beyond the released ones it is the prior's, of the size that is found.

    Parameters
    ----------
    seen : Noisy
        Released sum over persons of second moments (d, d), of persons clipped at `reach`.
    reach, prior_shares, n, tail
        As of :func:`clip_of`.
    """
    moment, sd = seen
    m, d, off = prior_shares.size, len(moment), math.sqrt(2)
    matrix, noise = np.zeros((m, m)), np.full((m, m), math.inf)
    matrix[:d, :d], noise[:d, :d] = moment / n, np.where(np.eye(d, dtype=bool), 1.0, 1 / off) * sd / n
    part = prior_shares[:d].sum()
    size = max(tail.mean_square - tail.excess(reach, power=2), tail.typical**2 / 2)
    trace = shrunk(float(np.trace(matrix)) / part, math.sqrt(d) * sd / n / part, size, TRACE_SD * size)
    trace = max(trace, LEAST_TRACE * size)
    towards = np.diag(prior_shares * trace)
    # An entry is a priori as uncertain as the two variances that it belongs to are large.
    prior_sd = trace * np.sqrt(np.outer(prior_shares, prior_shares))
    matrix = shrunk(matrix, noise, towards, prior_sd)
    left = 1 / np.sqrt(1 / prior_sd**2 + 1 / noise**2)  # posterior sds
    values, vectors = np.linalg.eigh(matrix)
    # What lies beyond the clip is taken to be shaped as what lies within.
    beyond = 1 + tail.excess(reach, power=2) / trace
    return ReleasedCovariance(
        (vectors * np.maximum(values, 0.0) * beyond) @ vectors.T,
        float(sd / n / off * beyond),
        reach,
        left * beyond,
        tail.excess(reach, 2) / max(tail.mean_square, TINY),
        tail.sure_excess(reach, 2) / max(tail.mean_square, TINY),
    )


def _leading(prior_shares: FloatArray, noise: float) -> int:
    """Number of functions of which the moments are released in pure form: the least expected squared error.

    The noise in all moments of d functions is √(d + 1) times `noise`, relative to the trace, off the diagonal.
    """
    products = np.outer(prior_shares, prior_shares)

    def error(d: int) -> float:
        return float(d * (d + 1) * noise**2 * (d + 1) - products[:d, :d].sum())

    return min(range(1, prior_shares.size + 1), key=error)
