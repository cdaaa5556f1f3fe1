"""Components of persons and of rows: bases, scores with gaps or without, and refund's estimate of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.functional.fpca.eigenbasis import RIDGE, Eigenbasis, count_components, oriented
from fdadp.functional.fpca.face import FaceSmoother
from fdadp.functional.fpca.sparse import diagonal_noise_variance, smooth_mean
from fdadp.repeated.person_sums import CELLS

MOST = 60
"""Functions of the one pass from which fewer are chosen."""
ALPHA = 0.7
"""Of refund's GCV: an effective parameter counts for less, so that covariances are smoothed less."""
_LOG_LAMBDA = np.linspace(-20, 20, 100)


def level_basis(
    covariance: FloatArray, functions: FloatArray, grid: FloatArray, weights: FloatArray, mean: FloatArray, noise: float
) -> Eigenbasis:
    """All eigenfunctions of unit L2 norm of ``Φ K Φ'``.

    Parameters
    ----------
    covariance : ndarray of shape (c, c)
        K; what is negative is left out.
    functions : ndarray of shape (T, c)
        Φ.
    grid, weights, mean : ndarray of shape (T,)
    noise : float
    """
    gram, turn = np.linalg.eigh((functions * weights[:, None]).T @ functions)
    keep = gram > 1e-12 * gram[-1]
    half = turn[:, keep] * np.sqrt(gram[keep])
    values, vectors = np.linalg.eigh(half.T @ covariance @ half)
    values, vectors = values[::-1], vectors[:, ::-1]
    found = int((values > max(values[0], 0.0) * values.size * np.finfo(float).eps).sum())
    back = functions @ (turn[:, keep] / np.sqrt(gram[keep])) @ vectors[:, :found]
    share = values[:found] / values[:found].sum() if found else values[:0]
    return Eigenbasis(grid, weights, mean, oriented(back.T), values[:found].copy(), noise, share)


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """Two levels of components about mean curves: ``y_ij = μ(x_ij) + Σ ξ_i φ + Σ ζ_ij ψ + e``.

    Attributes
    ----------
    person, row : Eigenbasis
        All components that scores are predicted with, their mean that of the sample.
    coefficients : ndarray of shape (p, T)
        Effects of covariates.
    centre : ndarray of shape (p,)
        Covariates that the mean curve is of.
    kept : tuple of int
        Components of each level that are handed out.
    """

    person: Eigenbasis
    row: Eigenbasis
    coefficients: FloatArray
    centre: FloatArray
    kept: tuple[int, int]

    @property
    def noise(self) -> float:
        """Variance of white noise; a small ridge where there is none."""
        variance = float(self.person.values.sum() + self.row.values.sum()) / float(self.row.weights.sum())
        return max(self.row.noise_variance, RIDGE * variance)

    def means(self, covariates: FloatArray) -> FloatArray:
        """Mean curves (n, T) at covariates (n, p)."""
        return np.asarray(self.person.mean + (covariates - self.centre) @ self.coefficients)

    def scores(
        self, Y: FloatArray, covariates: FloatArray, persons: IntArray, count: int
    ) -> tuple[FloatArray, FloatArray]:
        """Best linear predictions ξ (count, K) and ζ (n, L) from curves (n, T), NaN where not observed.

        Mixed model equations: a row tells of its person what its own components do not explain.

        References
        ----------
        Cui, Li, Crainiceanu & Xiao (2023), JCGS 32, doi:10.1080/10618600.2022.2115500, section 2.3.
        """
        phi, psi, noise, n = self.person.functions, self.row.functions, self.noise, len(Y)
        on_phi, on_psi = np.empty((n, len(phi))), np.empty((n, len(psi)))
        packed = np.empty((n, -(-Y.shape[1] // 8)), dtype=np.uint8)
        step = max(CELLS // Y.shape[1], 1)
        for part in (slice(at, at + step) for at in range(0, n, step)):
            left = Y[part] - self.means(covariates[part])
            observed = np.isfinite(left)
            packed[part] = np.packbits(observed, axis=1)
            left[~observed] = 0.0
            on_phi[part], on_psi[part] = left @ phi.T / noise, left @ psi.T / noise
        found, which = np.unique(packed, axis=0, return_inverse=True)
        which = which.reshape(-1)
        patterns = np.unpackbits(found, axis=1, count=Y.shape[1]).astype(bool)
        A, C, inner = self._information(patterns)
        alike = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        zeta, right = np.empty_like(on_psi), np.empty_like(on_phi)
        for e, rows in enumerate(alike):
            zeta[rows] = on_psi[rows] @ inner[e]
            right[rows] = on_phi[rows] - zeta[rows] @ C[e].T
        total = np.zeros((count, len(phi)))
        np.add.at(total, persons, right)
        of_person = csr_array((np.ones(n), (persons, which)), shape=(count, len(A)))
        information = np.asarray(of_person @ A.reshape(len(A), -1)).reshape(count, *A.shape[1:])
        prior = np.diag(1 / self.person.values)
        xi = np.asarray(np.linalg.solve(information + prior, total[..., None])[..., 0])
        for e, rows in enumerate(alike):
            zeta[rows] -= xi[persons[rows]] @ C[e] @ inner[e]
        return xi, zeta

    def _information(self, patterns: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of a row with each pattern of points: on its person (K, K), crossed (K, L), and what its own scores leave."""
        phi, psi, noise = self.person.functions, self.row.functions, self.noise
        seen = patterns.astype(np.float64)
        pp, pr, rr = (
            (seen @ np.einsum("it,jt->tij", a, b).reshape(seen.shape[1], len(a) * len(b))).reshape(
                len(seen), len(a), len(b)
            )
            / noise
            for a, b in ((phi, phi), (phi, psi), (psi, psi))
        )
        inner = np.linalg.inv(rr + np.diag(1 / self.row.values))
        return pp - pr @ inner @ pr.transpose(0, 2, 1), pr, inner


@dataclass(frozen=True, eq=False)
class _Moment:
    """A covariance ``Q'CQ`` (c, c) on FACE's functions, and its trace on the grid."""

    projected: FloatArray
    trace: float

    def smoothed(self, smoother: FaceSmoother) -> FloatArray:
        power, points = np.diag(self.projected), smoother.grid.size
        scaled = np.exp(_LOG_LAMBDA) * smoother.penalty[:, None]
        left = power @ (scaled / (1 + scaled)) ** 2 + self.trace - power.sum()
        edf = (1 / (1 + scaled)).sum(axis=0)
        best = int((left / (1 - ALPHA * edf / points) ** 2).argmin())
        shrink = 1 / (1 + scaled[:, best])
        return np.asarray(self.projected * shrink * shrink[:, None])


def smooth_levels(
    Y: FloatArray,
    persons: IntArray,
    grid: FloatArray,
    weights: FloatArray,
    *,
    n_components: tuple[float, float],
    n_knots: int | None = None,
    mean: FloatArray | None = None,
    visits: IntArray | None = None,
    visit_means: FloatArray | None = None,
) -> TwoLevels:
    """Components of both levels, as ``mfpca.face(weight = "obs")`` finds them, with `visits` and ``twoway = TRUE``.

    Parameters
    ----------
    Y : ndarray of shape (n, T)
        Complete curves.
    persons : ndarray of shape (n,)
        Number of each row's person, from 0.
    grid, weights : ndarray of shape (T,)
    n_components : tuple
        Number or share of variance of each level; the share of rows is taken twice, as refund does (.99 of .99).
    n_knots : int, optional
    mean : ndarray of shape (T,), optional
        Default: refund's, the mean curve smoothed by a thin plate spline.
    visits : ndarray of shape (n,), optional
        Number of each row's visit, from 0 to V - 1: each visit has a mean curve of its own, whose distances from the
        mean are the coefficients of V indicators.
    visit_means : ndarray of shape (V, T), optional
        Default: as `mean`, of the rows of each visit.

    Notes
    -----
    The total covariance and that within persons are smoothed with a GCV each, and subtracted. A person's scatter counts
    as often as the person has rows.

    References
    ----------
    Cui, Li, Crainiceanu & Xiao (2023), Fast multilevel functional principal component analysis, JCGS 32,
    doi:10.1080/10618600.2022.2115500; ``refund::mfpca.face`` 0.1-40.
    """
    n, count = len(Y), np.bincount(persons)
    mu = smooth_mean(Y.mean(axis=0)[None], grid)[0] if mean is None else mean
    effects = np.zeros((0, Y.shape[1]))
    if visits is not None:
        if visit_means is None:
            raw = [Y[visits == v].mean(axis=0) for v in range(int(visits.max()) + 1)]
            visit_means = np.stack([smooth_mean(curve[None], grid)[0] for curve in raw])
        effects = visit_means - mu
    centred = Y - mu if visits is None else Y - mu - effects[visits]
    smoother = FaceSmoother.on(grid, n_knots)
    own = np.zeros((count.size, Y.shape[1]))
    np.add.at(own, persons, centred)
    inner = (centred - (own / count[:, None])[persons]) * np.sqrt(count[persons] / (float(count @ count) - n))[:, None]
    total, within = (
        _Moment((on := part @ smoother.basis).T @ on, float((part**2).sum())).smoothed(smoother)
        for part in (centred / np.sqrt(n), inner)
    )
    full = [level_basis(K, smoother.basis, grid, weights, mu, 0.0) for K in (total - within, within)]
    person = full[0].truncate(count_components(full[0].values, n_components[0]))
    first = full[1].truncate(count_components(full[1].values, n_components[1]))
    row = first.truncate(_again(first, n_components[1]))
    excess = (centred**2).mean(axis=0) - sum((b.functions**2).T @ b.values for b in (person, row))
    noise = diagonal_noise_variance(excess, grid)
    person, row = (replace(b, noise_variance=noise) for b in (person, row))
    return TwoLevels(person, row, effects, np.zeros(len(effects)), (person.n_components, row.n_components))


def _again(basis: Eigenbasis, n_components: float) -> int:
    return basis.n_components if not isinstance(n_components, float) else count_components(basis.values, n_components)
