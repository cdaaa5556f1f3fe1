"""What a private fit computes from a person's rows: each function sees rows and released values, nothing else.

Each row's numbers depend on that row alone, bit for bit: loops in a fixed order (:mod:`fdadp.terms._feature_rows`,
:func:`fdadp.privacy.rowwise_matmul`) instead of BLAS, whose rounding depends on the neighbours of a row. What is not
finite is a gap. Gaps of X are filled within the row (:mod:`fdadp.functional.gap_filling`); Y counts where it was
observed (:mod:`~fdadp.private.rows.projected_responses`). A row without any observation of X, or of Y, is NaN in all
that needs it, which the kernel counts as zero.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.privacy import rowwise_matmul, rowwise_norm
from fdadp.privacy.rows._rowwise_arithmetic import in_ball, rowwise_sum
from fdadp.private.denoise.empirical_bayes import CALIBRATION_EDGES
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import SPREADS, time_blocks
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import REACH, UNIFORM_VARIANCE, Column, CurvesColumn
from fdadp.private.rows.errors_by_record import Probe, error_logs, factors, log_places, looks_of
from fdadp.private.rows.location_and_scale import CELLS, WHOLE, Part
from fdadp.private.rows.pointwise_gradients import MeasuredPairs, added, integrals, quadratic
from fdadp.private.rows.projected_responses import Projection, observed_mean
from fdadp.rounds.location_scale_histograms import in_cells

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
    varying : ndarray of shape (m, q, T)
        Features that differ between points of the response; in `features` they are 0.
    """

    features: FloatArray
    y: FloatArray
    coefficients: FloatArray
    weight: FloatArray
    looks: FloatArray | None = None
    varying: FloatArray | None = None


class RowFunctions:
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
        # Released values, filled in as they come.
        self.columns: dict[str, Column] = {column.name: column for column in design.columns}
        self.parts: tuple[Part, ...] = (WHOLE,) * len(design.numbers)
        self.geometric = NUMBERS_SIZE if design.scalar else 1.0
        self.y_location = self.y_mid
        self.adopt(design, np.zeros(design.response_shares.size))
        self.notes: list[str] = []
        self.coefficients: FloatArray = np.zeros((1, 1))
        self._plan: Plan | None = None
        self.pairs: MeasuredPairs | None = None
        """Of a design with features that differ between points of the response: pairs that are measured."""

    def adopt(self, design: PrivateDesign, mean: FloatArray) -> None:
        """Describe responses by the functions of a design, in which the mean response has these coefficients."""
        self.design, self.mean = design, mean
        self.projection = Projection(design.response, self.t_weights, design.response_shares)

    def begin_regression(self, plan: Plan) -> None:
        """Fix what the gradient rounds need."""
        self._plan = plan
        self.pairs = MeasuredPairs.of(self.design, plan.weights)

    @property
    def weights(self) -> FloatArray:
        """Public weights in the gradient: of features and outputs (D, K), or of pairs (P, 1)."""
        return self.plan.weights if self.pairs is None else self.pairs.weights

    @property
    def plan(self) -> Plan:
        """The plan of the regression."""
        assert self._plan is not None
        return self._plan

    # --- covariates ---

    def units(self, block: Block) -> FloatArray:
        """Numbers on [-1, 1], and their squares less those of a uniform law; 0 where one is missing; shape (m, 2q)."""
        unit = self._unit(block)
        return np.nan_to_num(np.hstack((unit, unit * unit - UNIFORM_VARIANCE)))

    def cells(self, block: Block) -> FloatArray:
        """Which cell of its part of the range each number is in, shape (m, q CELLS); none where it is missing."""
        low, high = np.transpose(self.parts)
        return in_cells(self._unit(block), low, high, CELLS).reshape(len(block[0]), -1)

    def _unit(self, block: Block) -> FloatArray:
        return np.stack([column.unit(block[column.at]) for column in self.design.numbers], axis=1)

    def features_of(self, block: Block, n_features: int) -> FloatArray:
        """White features of rows, the constant first, shape (m, n_features); NaN of curves never observed."""
        seen, lost = self._seen(block)
        white = self.design.groups.features(seen, n_features - 1)
        features = np.hstack((np.ones((len(white), 1)), white))
        features[lost] = np.nan
        return features

    def varying_of(self, block: Block, n_features: int) -> FloatArray:
        """Those that differ between points of the response, shape (m, q, T)."""
        return self.design.groups.along(self._seen(block)[0], n_features - 1)

    def _seen(self, block: Block) -> tuple[dict[str, Any], BoolArray]:
        """Standardised values of all columns, and which rows have a curve that was never observed."""
        seen: dict[str, Any] = {}
        lost = np.zeros(len(block[0]), dtype=bool)
        for name, column in self.columns.items():
            seen[name], never = column.seen(block[column.at])
            lost |= never
        return seen, lost

    def derived(self, block: Block) -> Block:
        """Return what :class:`Derived` names: computed once, kept inside the cohort.

        A row weighs 1, less where its features are larger than planned; on features and residuals alike.
        """
        f = self.features_of(block, self.plan.n_features)
        y = self.centred_y(block[-1])
        limit, squares = np.sqrt(1 + self.plan.feature_clip**2), rowwise_sum(f * f)
        varying: tuple[FloatArray, ...] = ()
        if self.pairs is not None:
            varying = (self.varying_of(block, self.plan.n_features),)
            squares = squares + rowwise_sum((varying[0] ** 2 * self.t_weights).reshape(len(f), -1))
        weight = np.minimum(1.0, limit / np.sqrt(squares))
        made = (f, y, self.projection(y), weight[:, None])
        if "looks" not in self.plan.budget_shares:
            return *made, *varying
        curves = [self.columns[column.name] for column in self.design.curves]
        looks = np.hstack([looks_of(c, block[c.at]) for c in curves if isinstance(c, CurvesColumn)])
        return *made, looks, *varying

    def row(self, block: Block) -> Derived:
        """What :meth:`derived` made, by name."""
        if self.pairs is None:
            return Derived(*block)
        return Derived(*block[:-1])._replace(varying=block[-1])

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
        """L2 norm of the coefficients less those of the released mean, shape (m,)."""
        c = self.response(block) - self.mean
        return rowwise_norm(c)

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
        row = self.row(block)
        if self.pairs is not None:
            away = self.projection(self.away(block))
        else:
            predicted = self._predicted(row.features)
            away = self.projection.about(row.y, predicted, row.coefficients - predicted)
        return np.ascontiguousarray(away[:, : self.coefficients.shape[1]])

    def weighted(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Features (m, D) and residuals (m, K), both times the row's weight; or the gradient's pairs (m, P) and ones.

        Their outer product is the gradient.
        """
        row = self.row(block)
        if self.pairs is not None:
            return self.pairs.entries(self._gradient(block)) * row.weight**2, np.ones((len(row.y), 1))
        return row.features * row.weight, self.residuals(block) * row.weight

    def _gradient(self, block: Block) -> FloatArray:
        """Integrals ``∫ z_j(t) φ_k(t) r(t) dt`` of each row, shape (m, D, K).

        Where Y was not observed the residual is what its coefficients say, nothing where there are none.
        """
        row, away, k = self.row(block), self.away(block), self.coefficients.shape[1]
        assert self.pairs is not None
        assert row.varying is not None
        found = self.projection(away)
        functions = np.ascontiguousarray(self.design.response.T)
        filled = np.where(np.isnan(away), rowwise_matmul(found, functions), away)
        out = row.features[:, :, None] * found[:, None, :k]
        weighted = self.design.response[:, :k] * self.t_weights[:, None]
        out[:, self.pairs.varying] = integrals(row.varying, filled, weighted)
        return out

    def factors(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """u∘f (m, D) and v∘r (m, K), both times the row's weight, for weights u v'; or weighted pairs and ones."""
        f, r = self.weighted(block)
        u, v = self.plan.factors if self.pairs is None else (self.pairs.weights[:, 0], np.ones(1))
        return f * u, r * v

    def gradient_norm(self, block: Block) -> FloatArray:
        """Frobenius norm of W∘(f r'), shape (m,); also its nuclear norm, where W is of rank one."""
        (f, r), w = self.weighted(block), self.weights
        return np.sqrt(rowwise_sum(rowwise_matmul(f * f, w * w) * (r * r)))

    def _prediction(self, features: FloatArray) -> FloatArray:
        """Predicted responses about the released location, each row by itself (unlike a long form); shape (m, T)."""
        functions = np.ascontiguousarray(self.design.response[:, : self.coefficients.shape[1]].T)
        return self.design.response @ self.mean + rowwise_matmul(rowwise_matmul(features, self.coefficients), functions)

    def away(self, block: Block) -> FloatArray:
        """Y less its prediction, shape (m, T); NaN where Y was not observed."""
        row = self.row(block)
        predicted = self._prediction(row.features)
        if self.pairs is not None:
            assert row.varying is not None
            functions = self.design.response[:, : self.coefficients.shape[1]]
            predicted = added(predicted, row.varying, self.coefficients[self.pairs.varying] @ functions.T)
        return np.asarray(row.y - predicted)


# What prediction intervals need of a person's rows: residuals of a regression that is done, where Y was observed.
#
# As in :mod:`~fdadp.private.rows.row_functions`, of whose derived blocks all this is made.


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
        return in_ball(r, self.clip)

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

    def _spread_of(self, row: Derived) -> FloatArray:
        """Standard deviation of a response about its prediction, DP noise included; shape (m, T)."""
        assert self._spread is not None
        features = row.features
        base, squares, roots = self._spread
        if self.rows.pairs is not None:
            assert row.varying is not None
            variance = base + quadratic(features, row.varying, self.rows.pairs.varying, squares)
        else:
            white = rowwise_matmul(features, roots).reshape(-1, features.shape[1])  # f'Cf = |f'R|² for each output
            variance = base + rowwise_matmul(rowwise_sum(white * white).reshape(len(features), -1), squares)
        if self.looks:
            variance = variance + (factors(self.looks, row.looks)[:, None] - 1) * self._residual
        return np.asarray(np.sqrt(np.maximum(variance, LEAST_VARIANCE * base.max())))

    # --- forecasts ---

    def places(self, block: Block) -> FloatArray:
        """Places of the roughness of curves, shape (m, q)."""
        return np.ascontiguousarray(np.asarray(self.rows.row(block).looks)[:, 1::2])

    def errors_by_looks(self, block: Block) -> FloatArray:
        """Constant and standardised looks times the logarithm of the error over what is expected; (m, 1 + 3 q)."""
        row = self.rows.row(block)
        expected = self.size * self._spread_of(row)
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
        ratio = self.rows.away(block) / self._spread_of(self.rows.row(block))
        squares, weights, of = ratio * ratio, self.rows.t_weights, time_blocks(self.rows.unit_t)
        ends = np.searchsorted(of, np.arange(of[-1] + 2))
        sizes = [observed_mean(squares[:, i:j], weights[i:j]) for i, j in pairwise(ends)]
        places = log_places(np.sqrt(np.stack(sizes, axis=1)).ravel(), *SPREADS).reshape(len(ratio), -1)
        known = observed_mean(places, np.ones(places.shape[1]))
        return np.where(np.isnan(places), known[:, None], places)

    def histogram(self, block: Block) -> FloatArray:
        """Share of observed time that |residual| / sd spends in each calibration bin, shape (m, 5); sums to one."""
        ratio = np.abs(self.rows.away(block)) / self._spread_of(self.rows.row(block))
        weights, gaps = self.rows.t_weights, np.where(np.isnan(ratio), np.nan, 0.0)
        beyond = [ratio >= edge for edge in (*CALIBRATION_EDGES.tolist(), np.inf)]
        beyond[-1][:] = False  # the last bin is open
        inside = [(near > far) + gaps for near, far in pairwise(beyond)]
        return np.stack([observed_mean(each, weights) for each in inside], axis=1)
