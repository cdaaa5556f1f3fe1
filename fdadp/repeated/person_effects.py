"""Curves of persons: best linear predictions, what they leave open, and rows of known and of new persons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from fdadp._common.typing import FloatArray, IntArray
from fdadp.repeated.fixed_effects import FixedEffects, centred_on_phi
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances


@dataclass(frozen=True, eq=False)
class RepeatedFit:
    """A fitted model of repeated curves: sums, covariances of both levels, mean curves.

    Persons are told by their number of rows and their mean of ``v = (x, c)`` about the shift of the sums
    (:meth:`means_of`); a person of whom nothing is known has no rows.
    """

    sums: PersonSums
    levels: LevelCovariances
    fixed: FixedEffects

    def features(self, X: FloatArray) -> FloatArray:
        """Features (n, p) as the sums have them, of columns X without the constant."""
        return np.column_stack((np.ones(len(X)), X)) - self.sums.shift_x if self.sums.intercept else np.asarray(X)

    def means_of(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Rows ``v = (x, c)`` of new curves, shape (n, p + k); a person's mean is the mean of their rows."""
        return np.hstack((self.features(X), (Y - self.sums.shift_y) @ self.sums.phi))

    def effects(self, means: FloatArray | None = None, counts: IntArray | None = None) -> FloatArray:
        """Best linear predictions b̂ on Φ, shape (m, k), of persons by their means (m, p + k) and numbers of rows (m,).

        Default: the persons of the fit.
        """
        if means is None or counts is None:
            means, counts = self.sums.means, self.sums.counts
        ratios, turn = self.levels.ratios()
        p = self.sums.p
        left = (means[:, p:] - means[:, :p] @ centred_on_phi(self.sums, self.fixed)) @ turn
        weight = counts[:, None] * ratios
        return np.asarray((left * weight / (1 + weight)) @ np.linalg.inv(turn))

    def effect_covariance(self, mean_x: FloatArray, n: int) -> FloatArray:
        """Covariance of ``b̂ - b`` on Φ (k, k) of a person with n rows of mean features (p,), mean curves estimated.

        The posterior and ``D V D'`` with ``D = G (G + R/n)⁻¹ (x̄' ⊗ I)``: without it intervals hold too little.
        """
        D = self.levels.shrinkage(n) @ self.fixed.design(mean_x[None], on_phi=True)[0]
        return np.asarray(self.levels.posterior(n) + D @ self.fixed.covariance @ D.T)

    def predict(
        self, features: FloatArray, means: FloatArray | None = None, counts: IntArray | None = None
    ) -> FloatArray:
        """Curves (m, T) at features (m, p), of persons by their means (m, p + k) and numbers of rows (m,).

        Without persons: mean curves of the population.
        """
        curves = np.asarray(features @ self.fixed.curves())
        if means is not None and counts is not None:
            curves = curves + self.effects(means, counts) @ self.sums.phi.T
        return curves

    def variances(
        self,
        features: FloatArray,
        means: FloatArray | None = None,
        counts: IntArray | None = None,
        *,
        row: bool = True,
    ) -> FloatArray:
        """Variances (m, T) of what :meth:`predict` is about: a new row of the person, or the person's own curve.

        Parameters
        ----------
        features, means, counts
            As in :meth:`predict`; without persons, of new ones.
        row : bool
            Whether the smooth error and the noise of one row are counted.
        """
        phi, levels, k = self.sums.phi, self.levels, self.sums.k
        own = np.zeros(phi.shape[0])
        if row:
            own = np.einsum("ti,ij,tj->t", phi, levels.R, phi)
            own = own + levels.noise_variance * np.maximum(1 - (phi**2).sum(axis=1), 0.0)
        root = _root(self.fixed.covariance)
        counts = np.zeros(len(features), dtype=np.int64) if counts is None or means is None else counts
        shrunk = {int(n): self.levels.shrinkage(int(n)) for n in np.unique(counts)}
        open_ = {n: np.einsum("ti,ij,tj->t", phi, self.levels.posterior(n), phi) for n in shrunk}
        out = np.empty((len(features), len(phi)))
        for i, n in enumerate(counts.tolist()):
            rows = self.fixed.design(features[i : i + 1])[0]
            if n and means is not None:
                inner = self.fixed.design(means[i : i + 1, : self.sums.p], on_phi=True)[0]
                rows = rows - phi @ (shrunk[n].reshape(k, k) @ inner)
            out[i] = ((rows @ root) ** 2).sum(axis=1) + open_[n] + own
        return out

    def interval(
        self,
        features: FloatArray,
        means: FloatArray | None = None,
        counts: IntArray | None = None,
        *,
        level: float = 0.95,
        row: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Pointwise limits (m, T) by the normal law; see :meth:`variances`."""
        middle = self.predict(features, means, counts)
        half = ndtri((1 + level) / 2) * np.sqrt(self.variances(features, means, counts, row=row))
        return middle - half, middle + half

    def row_effects(self, rows: FloatArray, effects: FloatArray) -> FloatArray:
        """Smooth errors of rows on Φ (n, k), predicted from ``v`` (n, p + k) and the effects of their persons."""
        p = self.sums.p
        left = rows[:, p:] - rows[:, :p] @ centred_on_phi(self.sums, self.fixed) - effects
        return np.asarray(np.linalg.solve(self.levels.R, left.T).T @ self.levels.smooth_rows)


def _root(covariance: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
