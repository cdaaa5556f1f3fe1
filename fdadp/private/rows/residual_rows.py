"""What prediction intervals need of a person's rows: residuals of a regression that is done, where Y was observed.

As in :mod:`~fdadp.private.rows.rows`, of whose derived blocks all this is made.
"""

from __future__ import annotations

import math

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import rowwise_matmul
from fdadp.privacy.rows._rowwise import log_positions
from fdadp.private.denoise.calibration import CALIBRATION_EDGES
from fdadp.private.plan.sharing import SPREADS, time_blocks
from fdadp.private.rows.errors_by_record import Probe, error_logs, factors
from fdadp.private.rows.projection import observed_mean
from fdadp.private.rows.rows import Block, Derived, RowFunctions, row_sums
from fdadp.private.rows.varying import quadratic

TINY = 1e-300
LEAST_VARIANCE = 1e-9
"""Of a response about its prediction, over the largest without the noise of the fit."""


class ResidualRows:
    """Row functions of the residuals; a block is what :meth:`RowFunctions.derived` makes.

    Parameters
    ----------
    rows : RowFunctions
        With the coefficients of the regression.
    """

    def __init__(self, rows: RowFunctions) -> None:
        self.rows = rows
        self.clip = math.inf
        self.looks: tuple[Probe, ...] = ()
        self.size = 1.0  # of an error over its spread, as a geometric mean
        self._spread: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._residual: FloatArray = np.zeros(0)

    def _expected(self, block: Block) -> FloatArray:
        """What errors are over others' by their looks, as far as these are known yet; shape (m, 1)."""
        if not self.looks:
            return np.ones((1, 1))
        return np.sqrt(factors(self.looks, self.rows.row(block).looks))[:, None]

    def rms(self, block: Block) -> FloatArray:
        """Root mean square of the residual where Y was observed, of numbers as large as curves'; shape (m,)."""
        away = self.rows.away(block) / self._expected(block)
        return np.sqrt(observed_mean(away * away, self.rows.t_weights)) / self.rows.geometric

    def clipped(self, block: Block) -> FloatArray:
        """Coefficients of the residual, shrunk to a norm of at most :attr:`clip`; shape (m, K)."""
        r = self.rows.residuals(block) / self._expected(block)
        return np.asarray(r * np.minimum(1.0, self.clip / np.maximum(np.sqrt(row_sums(r * r)), TINY))[:, None])

    def outside_variance(self, block: Block) -> FloatArray:
        """Mean square of Y outside the regression's response functions, shape (m, 1)."""
        r = self.rows.residuals(block)
        functions = np.ascontiguousarray(self.rows.design.response[:, : r.shape[1]].T)
        outside = (self.rows.away(block) - rowwise_matmul(r, functions)) / self._expected(block)
        return observed_mean(outside * outside, self.rows.t_weights)[:, None]

    def set_spread(self, residual: FloatArray, mean_variance: FloatArray, covariance: FloatArray) -> None:
        """Fix what :meth:`by_block` and :meth:`histogram` need, from released values.

        Parameters
        ----------
        residual : ndarray of shape (T,)
            Residual variance.
        mean_variance : ndarray of shape (M,)
        covariance : ndarray of shape (K, D, D), or (1, P, P) of pairs
        """
        phi = self.rows.design.response
        self._residual = residual
        if self.rows.pairs is not None:
            forms = self.rows.pairs.forms(covariance[0], phi)
            self._spread = (residual + phi**2 @ mean_variance, forms, np.zeros(0))
            return
        values, vectors = np.linalg.eigh(covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        squares = np.ascontiguousarray((phi[:, : len(covariance)] ** 2).T)
        self._spread = (residual + phi**2 @ mean_variance, squares, np.hstack(list(roots)))

    def _spread_of(self, row: Derived, looks: tuple[Probe, ...] = ()) -> FloatArray:
        """Standard deviation of a response about its prediction, DP noise included; shape (m, T)."""
        assert self._spread is not None
        features = row.features
        base, squares, roots = self._spread
        if self.rows.pairs is not None:
            assert row.varying is not None
            variance = base + quadratic(features, row.varying, self.rows.pairs.varying, squares)
        else:
            white = rowwise_matmul(features, roots).reshape(-1, features.shape[1])  # f'Cf = |f'R|² for each output
            variance = base + rowwise_matmul(row_sums(white * white).reshape(len(features), -1), squares)
        if looks:
            variance = variance + (factors(looks, row.looks)[:, None] - 1) * self._residual
        return np.asarray(np.sqrt(np.maximum(variance, LEAST_VARIANCE * base.max())))

    # --- forecasts ---

    def places(self, block: Block) -> FloatArray:
        """Places of the roughness of curves, shape (m, q)."""
        return np.ascontiguousarray(np.asarray(self.rows.row(block).looks)[:, 1::2])

    def errors_by_looks(self, block: Block) -> FloatArray:
        """Constant and standardised looks times the logarithm of the error over what is expected; (m, 1 + 3 q)."""
        row = self.rows.row(block)
        expected = self.size * self._spread_of(row, self.looks)
        errors = error_logs(self.rows.away(block) / expected, self.rows.t_weights)
        seen = np.asarray(row.looks)
        u = [look.standard(seen[:, 2 * i : 2 * i + 2]) for i, look in enumerate(self.looks)]
        return np.hstack((np.ones((len(seen), 1)), *u)) * errors[:, None]

    def against_anchor(self, block: Block) -> FloatArray:
        """Mean square error of the fit less that of the anchor alone, over the expected one; shape (m, 1)."""
        weights = self.rows.t_weights
        anchor, fit = self.rows.row(block).y + self.rows.y_location, self.rows.away(block)
        return (observed_mean(fit * fit - anchor * anchor, weights) / (weights @ self._residual))[:, None]

    def by_block(self, block: Block) -> FloatArray:
        """Place of the residual over its spread in each block of time, on a log scale from -1 to 1; shape (m, B).

        A block in which a curve was not observed gets the mean of those in which it was.
        """
        ratio = self.rows.away(block) / self._spread_of(self.rows.row(block), self.looks)
        weights, of = self.rows.t_weights, time_blocks(self.rows.unit_t)
        low, high = SPREADS
        places = np.empty((len(ratio), int(of[-1]) + 1))
        for b in range(places.shape[1]):
            here = ratio[:, of == b]
            sizes = np.sqrt(observed_mean(here * here, weights[of == b]))
            place = np.empty(len(sizes))
            log_positions(sizes, low, high, math.sqrt(low * high), math.log(high / low) / 2, place)
            places[:, b] = place
        known = observed_mean(places, np.ones(places.shape[1]))
        return np.where(np.isnan(places), known[:, None], places)

    def histogram(self, block: Block) -> FloatArray:
        """Share of observed time that |residual| / sd spends in each calibration bin, shape (m, 5); sums to one."""
        ratio = np.abs(self.rows.away(block)) / self._spread_of(self.rows.row(block), self.looks)
        bins = np.searchsorted(CALIBRATION_EDGES, ratio, side="right") - 1
        weights, gaps = self.rows.t_weights, np.isnan(ratio)
        inside = [np.where(gaps, np.nan, bins == b) for b in range(len(CALIBRATION_EDGES))]
        return np.stack([observed_mean(each, weights) for each in inside], axis=1)
