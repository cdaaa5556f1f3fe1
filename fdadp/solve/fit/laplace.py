"""Penalised fits of families by REML in Laplace's approximation: Newton's method inside, and outside in all log λ.

For given λ the penalised likelihood is maximised by penalised iteratively reweighted least squares; with
``A = X'WX + S`` at its maximum, W the second derivatives of half the deviance D,

    ``V(λ, φ) = (D + β'Sβ) / 2φ - l_s(φ) + (log|A| - log|S|₊ - M log 2πφ) / 2``

is minimised over log λ, with l_s the saturated log-likelihood and M the number of unpenalised coefficients. An unknown
scale φ is profiled out.

References
----------
Wood (2011), Fast stable REML and marginal likelihood estimation of semiparametric generalized linear models,
JRSS-B 73(1), doi:10.1111/j.1467-9868.2010.00749.x, sections 2 and 3.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.solve.form.family import Family
from fdadp.solve.form.weighted import Blocks, Observed, over_blocks
from fdadp.solve.linear.normal_equations import OWN_SCALE, NormalEquations
from fdadp.solve.smoothing.penalized import PenalizedLeastSquares

CONVERGED = 1e-22
"""Of the penalised deviance: a step that would lower it by less is not taken; coefficients are right to its root."""

LEAST = 1e-14
"""Deviance of an observation that is rounding."""

ROUNDING = 1e-13
"""Of the penalised deviance: differences below this are rounding."""

STEPS = 100
"""Of Newton's method for the coefficients."""

SEPARATED = 1e-10
"""Share of the null model's information about some unpenalised coefficients: less says that they go to infinity."""

_FIRST = np.zeros(1, dtype=np.int64)


class PenalizedStep(NamedTuple):
    """What one pass over the data finds at some coefficients.

    `gram` is ``X'WX``, `cross` minus half the gradient of the deviance, `pearson` the sum of squares of Pearson's
    residuals.
    """

    deviance: float
    gram: FloatArray
    cross: FloatArray
    pearson: float


class Inside(NamedTuple):
    """The maximum of the penalised likelihood for given λ.

    `penalized` is ``D + β'Sβ``; `root` is such that ``root'root = A⁻¹``.
    """

    beta: FloatArray
    penalized: float
    root: FloatArray
    log_det: float
    look: PenalizedStep


@dataclass
class Laplace:
    """The problem in those coordinates that data or penalties identify.

    Attributes
    ----------
    blocks : Blocks
        They are gone through once for each step.
    family : Family
    penalties : ndarray of shape (M, p)
        Of the identified coordinates.
    keep : ndarray, bool
        Which coordinates of the rows these are.
    n_unpenalized : int
        Number M of unpenalised coefficients.
    information : ndarray of shape (p, p)
        ``X'WX`` of a model that is one mean.
    held : ndarray of shape (p,)
        Further weights of squares of coefficients, beside those of the penalties.
    passes : int
        How often the data were gone through.
    """

    blocks: Blocks
    family: Family
    penalties: FloatArray
    keep: BoolArray
    n_unpenalized: int
    information: FloatArray
    held: FloatArray
    passes: int = field(default=0, init=False)

    @cached_property
    def saturated(self) -> Saturated:
        """What scales need to know of all responses."""
        return over_blocks(self.blocks, partial(Saturated.of, self.family), Saturated.merge)

    def look(self, beta: FloatArray, expected: bool = False) -> PenalizedStep:
        """Go through the data once; with expected instead of observed weights W if wanted."""
        self.passes += 1
        found = over_blocks(self.blocks, partial(_look, self.family, self.keep, self.whole(beta), expected), _both)
        return found if np.isfinite(found.deviance) else found._replace(deviance=np.inf)

    def inside(self, log_sp: FloatArray, beta: FloatArray) -> Inside:
        """Maximise the penalised likelihood from a start by Newton's method, halving steps that do not raise it."""
        own = np.exp(log_sp) @ self.penalties + self.held
        found = self.look(beta)
        penalized = found.deviance + float(beta @ (own * beta))
        last = np.inf
        for _ in range(STEPS):
            normal = NormalEquations(found.gram, (found.gram @ beta + found.cross)[:, None], OWN_SCALE)
            (root,), (half,), (log_det,) = normal.roots(own[None], _FIRST)
            step = half @ root - beta
            size, gain = 1 + abs(penalized), float(step @ (found.cross - own * beta))
            done = gain <= CONVERGED * size or (gain <= ROUNDING * size and gain > last / 2)
            if done or self.separated(found.gram) is not None:
                break
            last = gain
            trial, value, then = beta, np.inf, found
            for halvings in range(40):
                trial = beta + step / 2**halvings
                then = self.look(trial)
                value = then.deviance + float(trial @ (own * trial))
                if value <= penalized + ROUNDING * size:
                    break
            else:
                break
            beta, penalized, found = trial, value, then
        return Inside(beta, penalized, root, float(log_det), found)

    def separated(self, gram: FloatArray) -> FloatArray | None:
        """Unpenalised coefficients (p,) that tell responses apart without error, where there are any, in their shares.

        Along these the weights W vanish, for probabilities of 0 and 1 or means of 0 have no errors.
        """
        free = (self.penalties == 0).all(axis=0) & (self.held == 0)
        if not self.family.extremes or not free.any():
            return None
        which = np.ix_(free, free)
        root = np.linalg.inv(np.linalg.cholesky(self.information[which]))
        values, vectors = np.linalg.eigh(root @ gram[which] @ root.T)
        if values[0] > SEPARATED:
            return None
        out = np.zeros(len(gram))
        along = root.T @ vectors[:, values <= SEPARATED]
        out[free] = np.abs(along).max(axis=1) * np.sqrt(self.information[which].diagonal())
        return np.asarray(out / out.max())

    def scale(self, penalized: float) -> tuple[float, float, float]:
        """The scale φ that minimises V, what of V depends on it, and the curvature in log φ (0: φ is known)."""
        n = self.saturated.n
        m, penalized = self.n_unpenalized, max(penalized, LEAST * n)
        if self.family.known_scale:
            value = self.saturated.at(self.family, 1.0)[0]
            return 1.0, penalized / 2 - value - m / 2 * float(np.log(2 * np.pi)), 0.0
        log_scale = float(np.log(penalized / max(n - m, 1)))
        step = 1.0
        for _ in range(100):
            scale = float(np.exp(log_scale))
            value, first, second = self.saturated.at(self.family, scale)
            half = penalized / (2 * scale)
            if abs(step) < 1e-10:
                break
            step = float(np.clip((half + first + m / 2) / (half - second), -1.0, 1.0))
            log_scale += step
        return scale, half - value - m / 2 * float(np.log(2 * np.pi * scale)), half - second

    def dispersion(self, beta: FloatArray, pearson: float, edf: float) -> float:
        """Estimate of an unknown scale from Pearson's residuals, with the correction for sparse data of mgcv.

        References
        ----------
        Fletcher (2012), Estimating overdispersion when fitting a generalized linear model to sparse data,
        doi:10.1093/biomet/asr083.
        """
        if self.family.known_scale:
            return 1.0
        total = over_blocks(self.blocks, partial(_skewness, self.family, self.whole(beta)), operator.add)
        n = self.saturated.n
        return float(pearson / (n - edf) / (1 + max(total / n, -0.9)))

    def criterion(self, log_sp: FloatArray, at: Inside) -> float:
        """V, the scale profiled out."""
        diagonal = np.exp(log_sp) @ self.penalties
        log_s = float(np.log(diagonal[diagonal > 0]).sum())
        return self.scale(at.penalized)[1] + (at.log_det - log_s) / 2

    def derivatives(self, log_sp: FloatArray, at: Inside) -> tuple[FloatArray, FloatArray]:
        """Gradient of V in log λ, exact, and its Hessian but for how the weights W depend on λ."""
        weighted = np.exp(log_sp)[:, None] * self.penalties
        diagonal = weighted.sum(axis=0)
        inverse = at.root.T @ at.root
        scale, _, curvature = self.scale(at.penalized)
        share = weighted / np.where(diagonal > 0, diagonal, 1.0)
        pushed = weighted * at.beta
        d1 = pushed @ at.beta / scale
        trace = weighted @ inverse.diagonal() - share.sum(axis=1)
        gradient = (d1 + trace - pushed @ inverse @ self._pull_of_weights(at.beta, inverse)) / 2
        hessian = share @ share.T - weighted @ (inverse * inverse) @ weighted.T
        hessian += np.diag(d1 + trace) - 2 / scale * (pushed @ inverse @ pushed.T)
        if curvature:
            hessian -= np.outer(d1, d1) / (2 * curvature)
        return gradient, hessian / 2

    def working_optimum(self, beta: FloatArray) -> FloatArray:
        """Log smoothing parameters of the working response with its weights fixed, which is a Gaussian problem."""
        found = self.look(beta, expected=True)
        fitted = found.gram @ beta
        problem = PenalizedLeastSquares(
            found.gram,
            fitted + found.cross,
            float(beta @ (fitted + 2 * found.cross)) + found.pearson,
            self.saturated.n,
            self.penalties,
            n_unpenalized=self.n_unpenalized,
            intercept=False,
            scale=1.0 if self.family.known_scale else None,
        )
        return np.log(problem.optimize("reml")[0].smoothing_parameters)

    def _pull_of_weights(self, beta: FloatArray, inverse: FloatArray) -> FloatArray:
        """Gradient of log|A| in the coefficients, through the weights: ``Σ h w' x`` with leverages h."""
        self.passes += 1
        full = np.zeros((self.keep.size, self.keep.size))
        full[np.ix_(self.keep, self.keep)] = inverse
        pull = partial(_pull, self.family, self.whole(beta), full)
        return np.asarray(over_blocks(self.blocks, pull, operator.add)[self.keep])

    def whole(self, beta: FloatArray) -> FloatArray:
        """Coefficients of all coordinates: 0 for those that are not identified."""
        out = np.zeros(self.keep.size)
        out[self.keep] = beta
        return out


@dataclass
class Saturated:
    """What saturated log-likelihoods at any scale are made of: numbers, not responses.

    What of a saturated log-likelihood depends on the response does not depend on the scale: it is added up once, and
    the rest depends on the weights.

    Attributes
    ----------
    n : int
        Number of observations.
    weights, counts : ndarray
        Different weights, and how often there are.
    beyond : float
        By how much the log-likelihood is above that of responses that are all :attr:`Family.placeholder`.
    """

    n: int
    weights: FloatArray
    counts: IntArray
    beyond: float

    @classmethod
    def of(cls, family: Family, block: Observed) -> Saturated:
        """Of a block of observations."""
        here = block.weights > 0
        y, weights = block.y[here], block.weights[here]
        own = family.saturated(y, weights, 1.0)[0] if y.size else 0.0
        found = cls(y.size, *_counted(weights, np.ones(weights.size, dtype=np.int64)), 0.0)
        found.beyond = own - found.at(family, 1.0)[0]
        return found

    def merge(self, other: Saturated) -> Saturated:
        """With those of other observations."""
        weights = np.concatenate((self.weights, other.weights))
        self.weights, self.counts = _counted(weights, np.concatenate((self.counts, other.counts)))
        self.n, self.beyond = self.n + other.n, self.beyond + other.beyond
        return self

    def at(self, family: Family, scale: float) -> tuple[float, float, float]:
        """Log-likelihood at a scale, and its two derivatives in the logarithm of that."""
        found = np.array([self.beyond, 0.0, 0.0])
        for count in np.unique(self.counts):
            own = self.weights[self.counts == count]
            found += count * np.array(family.saturated(np.full(own.size, family.placeholder), own, scale))
        value, first, second = found.tolist()
        return value, first, second


def _counted(weights: FloatArray, counts: IntArray) -> tuple[FloatArray, IntArray]:
    different, which = np.unique(weights, return_inverse=True)
    total = np.zeros(different.size, dtype=np.int64)
    np.add.at(total, which, counts)
    return different, total


def _look(family: Family, keep: BoolArray, coefficients: FloatArray, expected: bool, block: Observed) -> PenalizedStep:
    with np.errstate(over="ignore", invalid="ignore"):
        eta = block.rows.predictor(coefficients) + block.offset
        deviance = 2 * float((block.weights * family.half_deviance(block.y, eta)).sum())
        at = family.working(block.y, eta)
        gram = block.rows.gram(block.weights * (at.fisher if expected else at.weight))
        cross = block.rows.cross(block.weights * at.residual)[keep]
        squares = at.residual**2 / np.maximum(at.fisher, 1e-100)
        pearson = float((block.weights * squares).sum())
    return PenalizedStep(deviance, gram if keep.all() else gram[np.ix_(keep, keep)], cross, pearson)


def _both(a: PenalizedStep, b: PenalizedStep) -> PenalizedStep:
    with np.errstate(over="ignore", invalid="ignore"):
        return PenalizedStep(a.deviance + b.deviance, a.gram + b.gram, a.cross + b.cross, a.pearson + b.pearson)


def _skewness(family: Family, coefficients: FloatArray, block: Observed) -> float:
    parts = family.skewness(block.y, block.rows.predictor(coefficients) + block.offset)
    return float(parts[block.weights > 0].sum())


def _pull(family: Family, coefficients: FloatArray, inverse: FloatArray, block: Observed) -> FloatArray:
    eta = block.rows.predictor(coefficients) + block.offset
    slope = block.weights * family.working(block.y, eta).slope
    return block.rows.cross(block.rows.leverages(inverse) * slope)
