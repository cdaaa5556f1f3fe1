"""What a private fit computes from a person's rows: each function sees rows and released values, nothing else.

Each row's numbers depend on that row alone, bit for bit: loops in a fixed order (:mod:`fdadp.terms._rows`,
:func:`fdadp.privacy.rowwise_matmul`) instead of BLAS, whose rounding depends on the neighbours of a row. What is not
finite is a gap. Gaps of X are filled within the row (:mod:`fdadp.functional.gaps`); Y counts where it was observed
(:mod:`~fdadp.private.projection`). A row without any observation of X, or of Y, is NaN in all that needs
it, which the kernel counts as zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import rowwise_matmul
from fdadp.private.columns import REACH, UNIFORM_VARIANCE, Column, CurvesColumn
from fdadp.private.design import PrivateDesign
from fdadp.private.looks import looks_of
from fdadp.private.plan import Plan
from fdadp.private.projection import Projection, observed_mean

__all__ = ["Rows", "row_sums"]

Block = tuple[FloatArray, ...]
NUMBERS_SIZE = 0.6
"""Geometric mean of a normal number's size over that of a curve of the same variance: numbers are often near zero."""


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
    looks : ndarray of shape (m, 2 q)
        Of forecasts: level and roughness of each column of curves.
    """

    features: FloatArray
    y: FloatArray
    coefficients: FloatArray
    weight: FloatArray
    looks: FloatArray | None = None


class Rows:
    """Row functions of the private fit; a block is the columns and Y, later what :meth:`derived` makes of it.

    Parameters
    ----------
    design : PrivateDesign
    y_bounds : (float, float)
        Public range of the response.
    """

    def __init__(self, design: PrivateDesign, y_bounds: tuple[float, float]) -> None:
        self.design = design
        self.y_mid, self.y_half = sum(y_bounds) / 2, (y_bounds[1] - y_bounds[0]) / 2
        self.unit_t, self.t_weights = design.unit_t, design.t_weights
        self.projection = Projection(design.response, self.t_weights, design.response_shares)
        # Released values, filled in as they come.
        self.columns: dict[str, Column] = {column.name: column for column in design.columns}
        self.geometric = NUMBERS_SIZE if design.scalar else 1.0
        self.y_location = self.y_mid
        self.mean = np.zeros(design.response_shares.size)
        self.coefficients: FloatArray = np.zeros((1, 1))
        self._plan: Plan | None = None

    def begin_regression(self, plan: Plan) -> None:
        """Fix what the gradient rounds need."""
        self._plan = plan

    @property
    def plan(self) -> Plan:
        """The plan of the regression."""
        assert self._plan is not None
        return self._plan

    # --- covariates ---

    def units(self, block: Block) -> FloatArray:
        """Numbers on [-1, 1], and their squares less those of a uniform law; shape (m, 2q)."""
        unit = np.stack([column.seen(block[column.at])[0].unit for column in self.design.numbers], axis=1)
        return np.hstack((unit, unit * unit - UNIFORM_VARIANCE))

    def features_of(self, block: Block, n_features: int) -> FloatArray:
        """White features of rows, the constant first, shape (m, n_features); NaN of curves never observed."""
        seen: dict[str, Any] = {}
        lost = np.zeros(len(block[0]), dtype=bool)
        for name, column in self.columns.items():
            seen[name], never = column.seen(block[column.at])
            lost |= never
        white = self.design.groups.features(seen, n_features - 1)
        features = np.hstack((np.ones((len(white), 1)), white))
        features[lost] = np.nan
        return features

    def derived(self, block: Block) -> Block:
        """Return what :class:`Derived` names: computed once, kept inside the cohort.

        A row weighs 1, less where its features are larger than planned; on features and residuals alike.
        """
        f = self.features_of(block, self.plan.n_features)
        y = self.centred_y(block[-1])
        limit = np.sqrt(1 + self.plan.feature_clip**2)
        weight = np.minimum(1.0, limit / np.sqrt(row_sums(f * f)))
        made = (f, y, self.projection(y), weight[:, None])
        if "looks" not in self.plan.budget_shares:
            return made
        curves = [self.columns[column.name] for column in self.design.curves]
        return *made, np.hstack([looks_of(c, block[c.at]) for c in curves if isinstance(c, CurvesColumn)])

    # --- Y ---

    def centred_y(self, y: FloatArray) -> FloatArray:
        """Y about its released location, within reach of the public range; NaN where it was not observed."""
        low, high = self.y_mid - REACH * self.y_half, self.y_mid + REACH * self.y_half
        y = y.reshape(len(y), -1)
        return np.asarray(np.clip(np.where(np.isfinite(y), y, np.nan), low, high) - self.y_location)

    def response(self, block: Block) -> FloatArray:
        """Coefficients of Y, about its released location, on the response functions; shape (m, M)."""
        return self.projection(self.centred_y(block[-1]))

    def y_level(self, block: Block) -> FloatArray:
        """Mean of Y over its observed points, about the released location; shape (m, 1)."""
        return observed_mean(self.centred_y(block[-1]), self.t_weights)[:, None]

    def response_norm(self, block: Block) -> FloatArray:
        """L2 norm of the coefficients less those of the released mean, of numbers as large as curves'; shape (m,)."""
        c = self.response(block) - self.mean
        return np.sqrt(row_sums(c * c)) / self.geometric

    def outside(self, block: Block) -> FloatArray:
        """Shares of the observed points of each column of curves, and of Y, outside the public ranges; (m, M + 1)."""
        ranges = [(block[column.at], column.mid, column.half) for column in self.design.curves]
        shares = []
        for values, mid, half in (*ranges, (block[-1], self.y_mid, self.y_half)):
            rows = values.reshape(len(values), -1)
            beyond = np.where(np.isfinite(rows), np.abs(rows - mid) > half, np.nan)
            shares.append(observed_mean(beyond, np.ones(rows.shape[1])))
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

    def factors(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """u∘f (m, D) and v∘r (m, K), both times the row's weight, where the plan's weights are u v'."""
        (f, r), (u, v) = self.weighted(block), self.plan.factors
        return f * u, r * v

    def gradient_norm(self, block: Block) -> FloatArray:
        """Frobenius norm of W∘(f r'), shape (m,); also its nuclear norm, where W is of rank one."""
        (f, r), w = self.weighted(block), self.plan.weights
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
