"""What a private fit computes from a person's rows: each function sees rows and released values, nothing else.

Each row's numbers depend on that row alone, bit for bit: loops in a fixed order (:mod:`fdadp.terms._rows`,
:func:`fdadp.privacy.rowwise_matmul`) instead of BLAS, whose rounding depends on the neighbours of a row. What is not
finite is a gap. Gaps of X are filled within the row (:mod:`fdadp.functional.gaps`); Y counts where it was observed
(:mod:`~fdadp.private.projection`). A row without any observation of X, or of Y, is NaN in all that needs
it, which the kernel counts as zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.gaps import fill_linear, fill_smooth
from fdadp.privacy import rowwise_matmul
from fdadp.private.design import WhitenedDesign
from fdadp.private.plan import Plan
from fdadp.private.projection import Projection, observed_mean
from fdadp.terms.base import HALF_WIDTH

__all__ = ["FILLERS", "Rows", "row_sums"]

Block = tuple[FloatArray, ...]
REACH = 3.0
"""Curves may go beyond their public range by this many half-widths: a range is a hint of size and location."""
FILLERS = {"linear": fill_linear, "smooth": fill_smooth}
"""How gaps of X are filled, each within its row."""


class Derived(NamedTuple):
    """A block of rows once X and Y are located and scaled.

    Attributes
    ----------
    features : ndarray of shape (m, D)
        Whitened, the constant first.
    y : ndarray of shape (m, T)
        About its released location; NaN where it was not observed.
    coefficients : ndarray of shape (m, M)
        Of y on the response functions.
    weight : ndarray of shape (m, 1)
        At most 1.
    """

    features: FloatArray
    y: FloatArray
    coefficients: FloatArray
    weight: FloatArray


class Rows:
    """Row functions of the private fit; a block is (X, Y), later what :meth:`derived` makes of it.

    Parameters
    ----------
    design : WhitenedDesign
    x_bounds, y_bounds : (float, float)
        Public ranges.
    missing : {"linear", "smooth"}
        How gaps of X are filled.
    """

    def __init__(
        self,
        design: WhitenedDesign,
        x_bounds: tuple[float, float],
        y_bounds: tuple[float, float],
        missing: str = "linear",
    ) -> None:
        self.design = design
        self.fill = FILLERS[missing]
        self.x_mid, self.x_half = sum(x_bounds) / 2, (x_bounds[1] - x_bounds[0]) / 2
        self.y_mid, self.y_half = sum(y_bounds) / 2, (y_bounds[1] - y_bounds[0]) / 2
        # A public guess of the standard deviation of X.
        self.x_scale_guess = design.prior.x_scale or self.x_half / HALF_WIDTH
        self.projection = Projection(design.response, design.t_weights, design.response_shares)
        # Released values, filled in as they come.
        self.location, self.scale = self.x_mid, self.x_scale_guess
        self.y_location = self.y_mid
        self.mean = np.zeros(design.response_shares.size)
        self.coefficients: FloatArray = np.zeros((1, 1))
        self.residual_clip = np.inf
        self._plan: Plan | None = None

    def begin_regression(self, plan: Plan) -> None:
        """Fix what the gradient rounds need."""
        self._plan = plan

    @property
    def plan(self) -> Plan:
        """The plan of the regression."""
        assert self._plan is not None
        return self._plan

    # --- X ---

    def _clean_x(self, x: FloatArray) -> FloatArray:
        """Without gaps, and within reach of the public range; NaN where a row has no observation."""
        low, high = self.x_mid - REACH * self.x_half, self.x_mid + REACH * self.x_half
        return np.asarray(np.clip(self.fill(x, self.design.s), low, high))

    def x_rms(self, block: Block) -> FloatArray:
        """Root mean square of X about the released location, shape (m,)."""
        away = self._clean_x(block[0]) - self.location
        return np.sqrt(rowwise_matmul(away * away, self.design.s_weights[:, None])[:, 0])

    def x_level(self, block: Block) -> FloatArray:
        """Mean of X about the released location, shape (m, 1)."""
        return rowwise_matmul(self._clean_x(block[0]) - self.location, self.design.s_weights[:, None])

    def features_of(self, x: FloatArray, n_features: int) -> FloatArray:
        """White features of curves, the constant first, shape (m, n_features); NaN of curves never observed."""
        clean = self._clean_x(x)
        never = np.isnan(clean).any(axis=1)
        clean[never] = self.location
        standard = np.clip((clean - self.location) / self.scale, -HALF_WIDTH, HALF_WIDTH)
        white = self.design.groups.features([standard], n_features - 1)
        features = np.hstack((np.ones((len(white), 1)), white))
        features[never] = np.nan
        return features

    def derived(self, block: Block) -> Block:
        """Return what :class:`Derived` names: computed once, kept inside the cohort.

        A row weighs 1, less where its features are larger than planned; on features and residuals alike.
        """
        f = self.features_of(block[0], self.plan.n_features)
        y = self.centred_y(block[1])
        limit = np.sqrt(1 + self.plan.feature_clip**2)
        weight = np.minimum(1.0, limit / np.sqrt(row_sums(f * f)))
        return f, y, self.projection(y), weight[:, None]

    # --- Y ---

    def centred_y(self, y: FloatArray) -> FloatArray:
        """Y about its released location, within reach of the public range; NaN where it was not observed."""
        low, high = self.y_mid - REACH * self.y_half, self.y_mid + REACH * self.y_half
        return np.asarray(np.clip(np.where(np.isfinite(y), y, np.nan), low, high) - self.y_location)

    def response(self, block: Block) -> FloatArray:
        """Coefficients of Y, about its released location, on the response functions; shape (m, M)."""
        return self.projection(self.centred_y(block[1]))

    def y_level(self, block: Block) -> FloatArray:
        """Mean of Y over its observed points, about the released location; shape (m, 1)."""
        return observed_mean(self.centred_y(block[1]), self.design.t_weights)[:, None]

    def response_norm(self, block: Block) -> FloatArray:
        """L2 norm of the coefficients less those of the released mean, shape (m,)."""
        c = self.response(block) - self.mean
        return np.sqrt(row_sums(c * c))

    def outside(self, block: Block) -> FloatArray:
        """Shares of the observed points of X and of Y that lie outside the public ranges; shape (m, 2)."""
        shares = []
        for values, mid, half in ((block[0], self.x_mid, self.x_half), (block[1], self.y_mid, self.y_half)):
            beyond = np.where(np.isfinite(values), np.abs(values - mid) > half, np.nan)
            shares.append(observed_mean(beyond, np.ones(values.shape[1])))
        return np.stack(shares, axis=1)

    # --- regression; a block is a Derived ---

    def _predicted(self, features: FloatArray) -> FloatArray:
        """Coefficients of the predicted responses on all response functions, shape (m, M)."""
        fitted = rowwise_matmul(features, self.coefficients)
        rest = np.zeros((len(fitted), self.mean.size - fitted.shape[1]))
        return np.asarray(self.mean + np.hstack((fitted, rest)))

    def residuals(self, block: Block) -> FloatArray:
        """Response coefficients less mean and fit, of curves with gaps from their observed points; shape (m, K)."""
        row = Derived(*block)
        predicted = self._predicted(row.features)
        away = self.projection.about(row.y, predicted, row.coefficients - predicted)
        return np.ascontiguousarray(away[:, : self.coefficients.shape[1]])

    def weighted(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Features (m, D) and residuals (m, K), both times the row's weight."""
        row = Derived(*block)
        return row.features * row.weight, self.residuals(block) * row.weight

    def gradient_norm(self, block: Block) -> FloatArray:
        """Norm of W∘(f r'), shape (m,): L2, or L1 in pure form."""
        (f, r), w = self.weighted(block), self.plan.weights
        if self.plan.pure:
            return row_sums(rowwise_matmul(np.abs(f), w) * np.abs(r))
        return np.sqrt(row_sums(rowwise_matmul(f * f, w * w) * (r * r)))

    def _prediction(self, features: FloatArray) -> FloatArray:
        """Predicted responses about the released location, each row by itself (unlike Fitted's); shape (m, T)."""
        functions = np.ascontiguousarray(self.design.response[:, : self.coefficients.shape[1]].T)
        return self.design.response @ self.mean + rowwise_matmul(rowwise_matmul(features, self.coefficients), functions)

    def away(self, block: Block) -> FloatArray:
        """Y less its prediction, shape (m, T); NaN where Y was not observed."""
        row = Derived(*block)
        return np.asarray(row.y - self._prediction(row.features))


def row_sums(values: FloatArray) -> FloatArray:
    """Sum of each row in a fixed order, shape (m,)."""
    return rowwise_matmul(values, np.ones((values.shape[1], 1)))[:, 0]
