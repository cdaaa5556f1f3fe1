"""Multilevel FPCA by smoothed covariances: ``refund::mfpca.face`` from coefficients on FACE's functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.fpca._covariance_smoother import smooth_mean
from fdadp.functional.fpca._noise import diagonal_noise_variance
from fdadp.functional.fpca.basis import Eigenbasis, count_components
from fdadp.functional.fpca.face import FaceSmoother
from fdadp.repeated.two_level_scores import TwoLevels, level_basis

ALPHA = 0.7
"""Of refund's GCV: an effective parameter counts for less, so that covariances are smoothed less."""
_LOG_LAMBDA = np.linspace(-20, 20, 100)


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
) -> TwoLevels:
    """Components of both levels, as ``mfpca.face(twoway = FALSE, weight = "obs")`` finds them.

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
    centred = Y - mu
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
    empty = np.zeros((0, Y.shape[1]))
    return TwoLevels(person, row, empty, np.zeros(0), (person.n_components, row.n_components))


def _again(basis: Eigenbasis, n_components: float) -> int:
    return basis.n_components if not isinstance(n_components, float) else count_components(basis.values, n_components)
