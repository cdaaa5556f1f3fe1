"""Mean and covariance of curves from the kernel: the releases behind :mod:`fdadp.summaries`.

A curve is described by its coefficients c on orthonormal functions that a public prior gives. In this order are
released: the size of c (log scale), a rough mean, the spread about it (log scale), the mean of c about the rough one,
clipped at a multiple of the spread, and the second moment about the mean, of which all that is used are sums of
clipped, noised contributions. Everything that follows from them is post-processing.

Sensitivities: those of :meth:`Cohort.sum` and :meth:`Cohort.log_scale` (a clip bounds a person's contribution). The
triangle of r r', off-diagonals times sqrt(2), has the L2 norm |r|², in pure form the L1 norm (|r|₁² + |r|²)/2
(``docs/theory/kernel.md#truncation``).

References
----------
Hall, Rinaldo & Wasserman (2013), Differential Privacy for Functions and Functional Data, JMLR 14, 703-727: noise on a
function is noise on its coefficients. Lin & Reimherr (2023), Pure Differential Privacy for Functional Summaries via a
Laplace-like Process, arXiv:2309.00125: noise in proportion to the prior size of each coefficient, in pure ε. Here the
noise is that of one clipped vector, and what the prior knows enters as shrinkage by the known noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fdadp._typing import ArrayLike, CurveData, FloatArray
from fdadp.curves import Curves, Kind, as_grid, same_rows
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Cohort, Ledger, Privacy, rowwise_matmul, rowwise_norm
from fdadp.privacy.noise import Noise
from fdadp.privacy.settings import check_delta
from fdadp.quadrature import quadrature_weights
from fdadp.regression.private.chunks import PrivateChunks
from fdadp.regression.private.curves import LEAST_POINTS, check_groups, private_curves
from fdadp.regression.private.fit import noise_multiplier, release_n
from fdadp.regression.private.prior import PublicPrior

__all__ = ["MEAN", "MOMENTS", "Summary", "check", "prior_of", "public_chunks", "public_input", "summarise"]

MEAN = {"size": 0.04, "rough mean": 0.10, "spread": 0.05, "mean": 0.66, "covariance": 0.15}
MOMENTS = {"size": 0.04, "rough mean": 0.06, "spread": 0.05, "mean": 0.10, "covariance": 0.65, "rest": 0.10}
"""Shares of the budget where the mean is wanted, and where the covariance is."""
MOST_NOISE = 0.5
"""A request is refused where the noise would be more than this share of the curves' spread."""

Block = tuple[FloatArray, ...]


@dataclass(frozen=True)
class Summary:
    """What was released, on `functions` (T, m) and about the middle of the public range.

    Attributes
    ----------
    n : float
    functions : ndarray of shape (T, m)
        Orthonormal under `weights`, which sum to one.
    weights : ndarray of shape (T,)
    mean, mean_variance : ndarray of shape (m,)
        Coefficients and the variances that the noise leaves them.
    covariance : ndarray of shape (m, m)
        Of a curve's coefficients, shrunk by the known noise, positive semi-definite.
    covariance_sd : float
        Sd of the noise in its entries off the diagonal before shrinkage; sqrt(2) times that on the diagonal.
    rest : float
        Mean square of curves outside the functions; NaN where it was not asked for.
    ledger : Ledger
    """

    n: float
    functions: FloatArray
    weights: FloatArray
    mean: FloatArray
    mean_variance: FloatArray
    covariance: FloatArray
    covariance_sd: float
    rest: float
    ledger: Ledger


def check(privacy: Any) -> Privacy:
    """Refuse what cannot be had, from public values alone.

    Raises
    ------
    InputError
        Not a Privacy.
    PrivacyError
        No public range of Y, an adjacency that does not suit n, a mechanism of the regression, δ of 1/n or more, a
        budget that is spent, or more noise than signal.
    """
    if not isinstance(privacy, Privacy):
        raise InputError(f"privacy must be a Privacy, got {type(privacy).__name__}")
    if privacy.mechanism != "dp-aff":
        raise PrivacyError(f"mechanism is one of the regression and must be left out, got {privacy.mechanism!r}")
    if privacy.bounds is None or privacy.bounds.y is None:
        raise PrivacyError(
            f"bounds must give the public range of the curves, as in Bounds(y=(low, high)), got {privacy.bounds!r}"
        )
    if privacy.prior is not None and not isinstance(privacy.prior, PublicPrior):
        raise InputError(f"prior must be a PublicPrior, got {type(privacy.prior).__name__}")
    privacy.check_adjacency()
    privacy.budget_share()
    return privacy


def public_input(privacy: Any, Y: CurveData, t: ArrayLike | None, groups: Any) -> tuple[Privacy, Curves]:
    """Check what is public of a fit: settings, grid and shapes; the curves' values are not looked at."""
    checked = check(privacy)
    if checked.labels == "public":
        same_rows(Y=Y, groups=groups)
    curves = private_curves(Y, t, "Y")
    if groups is not None:
        check_groups(groups, len(curves))
    return checked, curves


def public_chunks(
    privacy: Any, chunks: Any, t: ArrayLike, groups: Any, kind: Kind = "array"
) -> tuple[Privacy, PrivateChunks]:
    """Check what is public of a fit from chunks: settings, the grid, and the source."""
    checked = check(privacy)
    if t is None:
        raise InputError(
            "t must be the grid of the curves when fitting from chunks, got None: chunks are not looked at"
        )
    grid = as_grid(t, np.size(t), "t")
    if grid.size < LEAST_POINTS:
        raise InputError(f"t must have at least {LEAST_POINTS} points, got {grid.size}")
    columns = t if isinstance(t, pd.Index) else None
    return checked, PrivateChunks(chunks, {"Y": grid}, groups=groups, kind=kind, columns=columns)


def prior_of(privacy: Privacy) -> PublicPrior:
    """The public prior, whose functions carry the summaries."""
    return PublicPrior(n_response=12, y_length=0.2) if privacy.prior is None else privacy.prior


def _check_noise(privacy: Privacy, n: float, relative: float) -> None:
    check_delta(privacy.delta, n)
    if relative > MOST_NOISE and not privacy.allow_useless:
        raise PrivacyError(
            f"n and epsilon must leave noise of at most {MOST_NOISE:g} of the curves' spread, got {relative:.2g} with "
            f"{n:.0f} persons and epsilon {privacy.epsilon:g}; it takes some {relative / MOST_NOISE:.2g} times the "
            "persons, or allow_useless=True"
        )


def summarise(
    data: Any, grid: FloatArray, persons: Any, privacy: Privacy, shares: dict[str, float], *, noise: Noise | None
) -> Summary:
    """Spend the budget on mean and covariance. `privacy` was checked; the first read comes after all validation.

    Parameters
    ----------
    data : curves (n, T) as they are, or PrivateChunks
    grid : ndarray of shape (T,)
    persons : sequence of ids (n,), True or None
        As a :class:`~fdadp.privacy.Cohort` takes them.
    privacy : Privacy
    shares : dict
        MEAN or MOMENTS.
    noise : Noise, optional
        For audits.
    """
    prior = prior_of(privacy)
    assert privacy.bounds is not None and privacy.bounds.y is not None
    unit = (grid - grid[0]) / (grid[-1] - grid[0])
    weights = quadrature_weights(unit)
    functions, prior_shares = prior.response(unit, weights)
    rows = _Rows(functions, weights, privacy.bounds.y)
    budget, share = privacy.budget_share()
    goal = "mean" if shares is MEAN else "covariance"
    if privacy.n is not None:  # before anything is reserved
        whole = noise_multiplier(share * budget.total, privacy.stated_adjacency, pure=budget.pure)
        _check_noise(privacy, privacy.n, _relative_noise(whole / privacy.n, shares[goal], goal, pure=budget.pure))
    cohort = privacy.cohort(
        data,
        persons=persons,
        mechanism=f"private {goal}",
        noise=noise,
        public={
            "bounds of the curves": privacy.bounds.y,
            "grid": f"{grid.size} points on [{grid[0]:g}, {grid[-1]:g}]",
            "functions": f"{functions.shape[1]}, of correlation length {prior.y_length:g}",
        },
    )
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    eta = noise_multiplier(cohort.amount * left, privacy.stated_adjacency, pure=cohort.pure) / n
    with cohort.refusing():
        _check_noise(privacy, n, _relative_noise(eta, shares[goal], goal, pure=cohort.pure))
    shares = {key: value * left for key, value in shares.items()}
    coefficients = cohort.derive(rows.coefficients, name="coefficients of curves")
    spread, mean, variance = _mean(coefficients, rows, prior_shares, shares, n, eta)
    covariance, sd = _covariance(coefficients, rows, prior_shares, shares, n, eta, spread)
    rest = math.nan
    if "rest" in shares:
        total, noise_sd = coefficients.sum(
            rows.rest, clip=spread**2, size=1, share=shares["rest"], name="energy outside the functions"
        )
        rest = max(_shrunk(float(total[0]) / n, noise_sd / n, 0.0, 0.1 * spread**2), 0.0)
    return Summary(n, functions, weights, mean, variance, covariance, sd, rest, cohort.ledger)


def _relative_noise(eta: float, share: float, goal: str, *, pure: bool) -> float:
    """Sd of the noise of a coefficient, or of a variance, relative to the spread of curves (its square)."""
    clip = 1.5 if goal == "mean" else 2.25
    return clip * (eta / share if pure else eta / math.sqrt(share))


def _reach(eta: float) -> float:
    """Clip over spread: the less noise, the less is cut off."""
    return float(np.clip(1.5 + math.log10(0.2 / eta), 1.5, 5.0))


def _mean(
    cohort: Cohort, rows: _Rows, prior_shares: FloatArray, shares: dict[str, float], n: float, eta: float
) -> tuple[float, FloatArray, FloatArray]:
    """Spread of curves, coefficients of the mean and their variances, shrunk by the known noise."""
    m, wide = prior_shares.size, 1.8 if cohort.pure else 1.0
    half = rows.half
    size, error = cohort.log_scale(rows.distance, half / 64, half, share=shares["size"], name="size of curves", n=n)
    size = _likely(size, error, half / 4)
    total, sd = cohort.sum(rows.away, clip=1.5 * wide * size, size=m, share=shares["rough mean"], name="rough mean")
    rows.centre = _gain(total / n, sd / n, prior_shares)[0]
    spread, error = cohort.log_scale(
        rows.distance, size / 32, 1.5 * size, share=shares["spread"], name="spread of curves", n=n
    )
    spread = _likely(spread, error, size / 1.5)
    total, sd = cohort.sum(rows.away, clip=_reach(eta) * wide * spread, size=m, share=shares["mean"], name="mean")
    mean, variance = _gain(rows.centre + total / n, sd / n, prior_shares)
    rows.centre = mean
    return spread, mean, variance


def _covariance(
    cohort: Cohort,
    rows: _Rows,
    prior_shares: FloatArray,
    shares: dict[str, float],
    n: float,
    eta: float,
    spread: float,
) -> tuple[FloatArray, float]:
    """Second moment about the mean, shrunk entry by entry towards the prior's, positive semi-definite."""
    m = prior_shares.size
    rows.reach, rows.pure = _reach(eta) * spread, cohort.pure
    clip = rows.reach**2 * (2.1 if cohort.pure else 1.0)
    total, sd = cohort.sum(
        rows.products, clip=clip, size=m * (m + 1) // 2, share=shares["covariance"], name="covariance"
    )
    upper = np.triu_indices(m)
    off = 1.0 if cohort.pure else math.sqrt(2)
    matrix = np.zeros((m, m))
    matrix[upper] = total / np.where(upper[0] == upper[1], 1.0, off) / n
    matrix = matrix + matrix.T - np.diag(np.diag(matrix))
    noise = np.where(np.eye(m, dtype=bool), 1.0, 1 / off) * sd / n
    size = 1.3 * spread**2  # a mean square exceeds the geometric one
    trace = max(_shrunk(float(np.trace(matrix)), math.sqrt(m) * sd / n, size, 0.4 * size), 0.1 * size)
    towards = np.diag(prior_shares * trace)
    # An entry is a priori as uncertain as the two variances that it belongs to are large.
    matrix = _shrunk(matrix, noise, towards, trace * np.sqrt(np.outer(prior_shares, prior_shares)))
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T, float(sd / n / off)


def _gain(mean: FloatArray, sd: float, prior_shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variances of coefficients of prior variances in proportion to the shares."""
    signal = prior_shares * max(float(mean @ mean) - mean.size * sd**2, 0.0)
    gain = signal / (signal + sd**2 + 1e-300)
    return mean * gain, sd**2 * gain


def _likely(value: float, error: float, guess: float) -> float:
    """A released scale with a log-normal prior of sd 0.7 about a guess."""
    return float(guess * (value / guess) ** (0.49 / (0.49 + error**2)))


def _shrunk(value: Any, sd: Any, towards: Any, prior_sd: Any) -> Any:
    """Posterior mean of a Gaussian with known noise."""
    return towards + (value - towards) * (prior_sd**2 / (prior_sd**2 + sd**2))


class _Rows:
    """Row functions; a block is (Y,), later what :meth:`coefficients` makes of it. Values beyond the range are clipped,
    what is not finite becomes its middle."""

    def __init__(self, functions: FloatArray, weights: FloatArray, bounds: tuple[float, float]) -> None:
        self.weights = weights
        self.weighted = np.ascontiguousarray(functions * weights[:, None])
        self.middle, self.half = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2
        # Released values, filled in as they come.
        self.centre = np.zeros(functions.shape[1])
        self.reach, self.pure = math.inf, False

    def coefficients(self, block: Block) -> Block:
        """Coefficients about the middle of the range (m, K), and the mean square outside the functions (m, 1)."""
        finite = np.where(np.isfinite(block[0]), block[0], self.middle)
        y = np.clip(finite, self.middle - self.half, self.middle + self.half) - self.middle
        c = rowwise_matmul(y, self.weighted)
        rest = rowwise_matmul(y * y, self.weights[:, None])[:, 0] - rowwise_norm(c) ** 2
        return c, np.maximum(rest, 0.0)[:, None]

    def away(self, block: Block) -> FloatArray:
        """Coefficients about the released centre."""
        return block[0] - self.centre

    def distance(self, block: Block) -> FloatArray:
        """Their norm, shape (m,)."""
        return rowwise_norm(self.away(block))

    def products(self, block: Block) -> FloatArray:
        """Upper triangle of r r', r clipped at the reach; off-diagonals times sqrt(2) unless pure."""
        r = self.away(block)
        r = r * np.minimum(1.0, self.reach / np.maximum(rowwise_norm(r), 1e-300))[:, None]
        upper = np.triu_indices(r.shape[1])
        scale = np.where(upper[0] == upper[1], 1.0, 1.0 if self.pure else math.sqrt(2))
        return r[:, upper[0]] * r[:, upper[1]] * scale

    def rest(self, block: Block) -> FloatArray:
        """Mean square outside the functions, shape (m, 1)."""
        return block[1]
