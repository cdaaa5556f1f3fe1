"""What a private fit computes from a person's rows: each function sees rows and released values, nothing else.

Each row's numbers depend on that row alone, bit for bit: loops in a fixed order (:mod:`fdadp.design`,
:func:`fdadp.privacy.rowwise_matmul`) instead of BLAS, whose rounding depends on
the neighbours of a row. Values that are not finite are replaced by public constants.
"""

from __future__ import annotations

import numpy as np

from fdadp._typing import FloatArray
from fdadp.privacy import rowwise_matmul
from fdadp.regression.private.bayes import CALIBRATION_EDGES
from fdadp.regression.private.plan import Plan
from fdadp.regression.private.prior import HALF_WIDTH, WhiteDesign

__all__ = ["Rows"]

Block = tuple[FloatArray, ...]
REACH = 3.0
"""Curves may go beyond the public range of X by this many half-widths: the range is a hint of size and location."""


class Rows:
    """Row functions of the private fit; a block is (X, Y), later what :meth:`derived` makes of it.

    Parameters
    ----------
    design : WhiteDesign
    x_bounds, y_bounds : (float, float)
        Public ranges.
    """

    def __init__(self, design: WhiteDesign, x_bounds: tuple[float, float], y_bounds: tuple[float, float]) -> None:
        self.design = design
        self.x_mid, self.x_half = sum(x_bounds) / 2, (x_bounds[1] - x_bounds[0]) / 2
        self.y_mid, self.y_half = sum(y_bounds) / 2, (y_bounds[1] - y_bounds[0]) / 2
        # A public guess of the standard deviation of X.
        self.x_scale_guess = design.prior.x_scale or self.x_half / HALF_WIDTH
        # Released values, filled in as they come.
        self.location, self.scale = self.x_mid, self.x_scale_guess
        self.mean = np.zeros(design.response_shares.size)
        self.coefficients: FloatArray = np.zeros((1, 1))
        self.residual_clip = np.inf
        self._plan: Plan | None = None
        self._spread: tuple[FloatArray, FloatArray, FloatArray] | None = None

    def begin_regression(self, plan: Plan) -> None:
        """Fix what the gradient rounds need."""
        self._plan = plan

    # --- X ---

    def _clean_x(self, x: FloatArray) -> FloatArray:
        low, high = self.x_mid - REACH * self.x_half, self.x_mid + REACH * self.x_half
        return np.clip(np.where(np.isfinite(x), x, self.x_mid), low, high)

    def x_rms(self, block: Block) -> FloatArray:
        """Root mean square of X about the released location, shape (m,)."""
        away = self._clean_x(block[0]) - self.location
        return np.sqrt(rowwise_matmul(away * away, self.design.s_weights[:, None])[:, 0])

    def x_level(self, block: Block) -> FloatArray:
        """Mean of X about the released location, shape (m, 1)."""
        return rowwise_matmul(self._clean_x(block[0]) - self.location, self.design.s_weights[:, None])

    def features_of(self, x: FloatArray, n_features: int) -> FloatArray:
        """White features of curves, the constant first, shape (m, n_features)."""
        standard = np.clip((self._clean_x(x) - self.location) / self.scale, -HALF_WIDTH, HALF_WIDTH)
        raw = self.design.features.rows(standard) - self.design.centre
        white = rowwise_matmul(raw, np.ascontiguousarray(self.design.whitening[:, : n_features - 1]))
        return np.hstack((np.ones((len(white), 1)), white))

    def derived(self, block: Block) -> Block:
        """Return (features, Y, response coefficients, row weight): computed once, kept inside the cohort.

        A row weighs 1, less where its features are larger than planned; on features and residuals alike.
        """
        assert self._plan is not None
        f = self.features_of(block[0], self._plan.n_features)
        limit = np.sqrt(1 + self._plan.feature_clip**2)
        weight = np.minimum(1.0, limit / np.sqrt(_row_sums(f * f)))
        return f, block[1], self.response(block), weight[:, None]

    # --- Y ---

    def _clean_y(self, y: FloatArray) -> FloatArray:
        inside = np.clip(np.where(np.isfinite(y), y, self.y_mid), self.y_mid - self.y_half, self.y_mid + self.y_half)
        return np.asarray(inside - self.y_mid)

    def response(self, block: Block) -> FloatArray:
        """Coefficients of Y, about the middle of its range, on the response functions; shape (m, M)."""
        weighted = np.ascontiguousarray(self.design.response * self.design.t_weights[:, None])
        return rowwise_matmul(self._clean_y(block[1]), weighted)

    def response_norm(self, block: Block) -> FloatArray:
        """L2 norm of the coefficients, shape (m,)."""
        c = self.response(block)
        return np.sqrt(_row_sums(c * c))

    # --- regression; block = (features, Y, response coefficients, row weight) ---

    def residuals(self, block: Block) -> FloatArray:
        """Response coefficients less mean and fit, shape (m, K)."""
        k = self.coefficients.shape[1]
        return (block[2] - self.mean)[:, :k] - rowwise_matmul(block[0], self.coefficients)

    def weighted(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Features (m, D) and residuals (m, K), both times the row's weight."""
        return block[0] * block[3], self.residuals(block) * block[3]

    def gradient_norm(self, block: Block) -> FloatArray:
        """Norm of W∘(f r'), shape (m,): L2, or L1 in pure form."""
        assert self._plan is not None
        (f, r), w = self.weighted(block), self._plan.weights
        if self._plan.pure:
            return _row_sums(rowwise_matmul(np.abs(f), w) * np.abs(r))
        return np.sqrt(_row_sums(rowwise_matmul(f * f, w * w) * (r * r)))

    # --- residuals ---

    def residual_rms(self, block: Block) -> FloatArray:
        """Root mean square of the residual curve, shape (m,)."""
        away = self._clean_y(block[1]) - self.prediction(block[0])
        return np.sqrt(rowwise_matmul(away * away, self.design.t_weights[:, None])[:, 0])

    def residual_products(self, block: Block) -> FloatArray:
        """Upper triangle of r r' with r clipped, off-diagonals times sqrt(2) unless pure; shape (m, K(K+1)/2)."""
        assert self._plan is not None
        r = self.residuals(block)
        r = r * np.minimum(1.0, self.residual_clip / np.maximum(np.sqrt(_row_sums(r * r)), 1e-300))[:, None]
        upper = np.triu_indices(r.shape[1])
        scale = np.where(upper[0] == upper[1], 1.0, 1.0 if self._plan.pure else np.sqrt(2))
        return r[:, upper[0]] * r[:, upper[1]] * scale

    def left_over(self, block: Block) -> FloatArray:
        """Mean square of Y outside the regression's response functions, shape (m, 1)."""
        y, c = self._clean_y(block[1]), block[2]
        centred = c - self.mean
        inside = centred[:, : self.coefficients.shape[1]]
        energy = rowwise_matmul(y * y, self.design.t_weights[:, None])[:, 0]
        rest = energy - _row_sums(c * c) + _row_sums(centred * centred) - _row_sums(inside * inside)
        return np.maximum(rest, 0.0)[:, None]

    def set_spread(
        self, residual: FloatArray, left_over: float, mean_variance: FloatArray, covariance: FloatArray
    ) -> None:
        """Fix what :meth:`spread` needs, from released values."""
        phi = self.design.response
        b = phi[:, : len(residual)]
        base = np.einsum("tk,kl,tl->t", b, residual, b) + left_over + phi**2 @ mean_variance
        values, vectors = np.linalg.eigh(covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        self._spread = (base, np.ascontiguousarray((b**2).T), np.hstack(list(roots)))

    def spread(self, features: FloatArray) -> FloatArray:
        """Standard deviation of a response about its prediction, DP noise included; shape (m, T)."""
        assert self._spread is not None
        base, squares, roots = self._spread
        white = rowwise_matmul(features, roots).reshape(-1, features.shape[1])  # f'Cf = |f'R|² for each output
        quadratic = _row_sums(white * white).reshape(len(features), -1)
        return np.sqrt(np.maximum(base + rowwise_matmul(quadratic, squares), 1e-9))

    def prediction(self, features: FloatArray) -> FloatArray:
        """Predicted responses about the middle of the public range, shape (m, T)."""
        functions = np.ascontiguousarray(self.design.response[:, : self.coefficients.shape[1]].T)
        return self.design.response @ self.mean + rowwise_matmul(rowwise_matmul(features, self.coefficients), functions)

    def residual_histogram(self, block: Block) -> FloatArray:
        """Share of time that |residual| / sd spends in each calibration bin, shape (m, 5); sums to one."""
        ratio = np.abs(self._clean_y(block[1]) - self.prediction(block[0])) / self.spread(block[0])
        bins = np.searchsorted(CALIBRATION_EDGES, ratio, side="right") - 1
        weights = self.design.t_weights[:, None]
        return np.hstack(
            [rowwise_matmul((bins == b).astype(np.float64), weights) for b in range(len(CALIBRATION_EDGES))]
        )


def _row_sums(values: FloatArray) -> FloatArray:
    """Sum of each row in a fixed order, shape (m,)."""
    return rowwise_matmul(values, np.ones((values.shape[1], 1)))[:, 0]
