"""A fitted model of many terms: coefficients of the long form, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fdadp._common.argument_checks import numbers
from fdadp._common.typing import ArrayLike, BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.solve.form.long_form_design import LongForm, System
from fdadp.solve.form.response_families import Family
from fdadp.solve.smoothing.normal_equations import from_roots
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares, Solution
from fdadp.terms.records import Records

CONSTANT = 1e-10
"""Share of squares about the mean below which a column is taken for constant."""


@dataclass(frozen=True)
class ChosenSmoothing:
    """How REML of a family is curved at the smoothing parameters that it chose, and how coefficients follow these.

    Attributes
    ----------
    hessian : ndarray of shape (M, M) or (M + d, M + d)
        Of REML in all log λ and, where these are estimated, in the log scale or in parameters θ of the family.
    moves : ndarray of shape (M, p) or (M + d, p)
        Derivatives of the coefficients in all log λ and in θ, with observed weights.
    """

    hessian: FloatArray
    moves: FloatArray


@dataclass(frozen=True)
class AdditiveFit:
    """Penalised estimates of all terms.

    Attributes
    ----------
    form : LongForm
    coefficients : ndarray of shape (p,)
    spread : ndarray of shape (p, p), or ByFunction
        Inverse of the penalised information, without the scale (:attr:`inverse`).
    information : ndarray of shape (p, p), or ByFunction
        Without penalties: products of the columns of the (weighted) long form (:attr:`gram`).
    edf : ndarray of shape (p,)
        Effective degrees of freedom of each coefficient.
    identified : ndarray of shape (p,), bool
        Coefficients that the data or a penalty identify; the others are 0.
    smoothing_parameters : ndarray of shape (M,)
    sigma2 : float
        Residual variance (mgcv's ``sig2``); the scale of families that have one, or 1.
    scale : float
        REML's own estimate of it.
    criterion : float
        REML or GCV at these smoothing parameters.
    rss : float
        Residual sum of squares; of other families the deviance.
    n, n_rows : int
        Numbers of records and of observations.
    column_means : ndarray of shape (p,)
        Means of the columns of the long form.
    hessian : ndarray of shape (M, M) or None
        Of REML in the logarithms of smoothing parameters that it chose; of families but for how weights depend on them.
    on_eigenfunctions : bool
        Whether the information weights eigenfunctions, each by its own residual variance.
    family : Family or None
        With a parameter that the data chose. None: that of the settings.
    chosen : ChosenSmoothing or None
        Of a family whose smoothing parameters REML chose.
    """

    form: LongForm
    coefficients: FloatArray
    spread: FloatArray | ByFunction
    information: FloatArray | ByFunction
    edf: FloatArray
    identified: BoolArray
    smoothing_parameters: FloatArray
    sigma2: float
    scale: float
    criterion: float
    rss: float
    n: int
    n_rows: int
    column_means: FloatArray
    hessian: FloatArray | None = None
    on_eigenfunctions: bool = False
    family: Family | None = None
    chosen: ChosenSmoothing | None = None

    @property
    def inverse(self) -> FloatArray:
        """Inverse of the penalised information, without the scale, shape (p, p)."""
        return self.spread.matrix if isinstance(self.spread, ByFunction) else self.spread

    @property
    def gram(self) -> FloatArray:
        """The information without penalties, shape (p, p)."""
        return self.information.matrix if isinstance(self.information, ByFunction) else self.information

    @property
    def bayesian_covariance(self) -> FloatArray:
        """mgcv's ``Vp``, with errors taken as independent, shape (p, p)."""
        return self.sigma2 * self.inverse

    def standard_errors(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Of the linear predictor, with this covariance; shape (n, T)."""
        if not isinstance(self.spread, ByFunction):
            return self.form.standard_errors(records, self.bayesian_covariance, t)
        variances = self.sigma2 * self.spread.variances(*self.form.mean_and_features(records, len(self.spread.turn), t))
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def mean_variance(self, covariance: FloatArray) -> float:
        """Variance of the linear predictor, mean over all observations, where coefficients have this covariance."""
        products = self._mean_products if self.on_eigenfunctions else self.gram / self.n_rows
        return float((covariance * products).sum())

    @cached_property
    def _mean_products(self) -> FloatArray:
        """Means of products of the columns over all observations, of a fit on eigenfunctions; shape (p, p)."""
        held = self.information
        assert isinstance(held, ByFunction)
        (products,) = held.blocks  # of features, 1 among them, mean over the records
        columns = np.hstack(self.form.along[:2] + self.form.along[-1:])
        along, c = columns.T @ columns / len(columns), len(held.rest)
        cross = np.einsum("ak,p->apk", along[:c, c:], products[0, 1:]).reshape(c, -1)
        return np.block([[along[:c, :c], cross], [cross.T, np.kron(products[1:, 1:], along[c:, c:])]])

    @property
    def edf_total(self) -> float:
        """Effective degrees of freedom of all coefficients, the intercept's among them."""
        return float(self.edf.sum())

    def unidentified(self) -> dict[str, str]:
        """Names of terms that have coefficients which neither data nor penalties identify, and why."""
        parts = zip(self.form.designs, self.form.slices, strict=True)
        lost = {design.name: np.flatnonzero(~self.identified[place]) + place.start for design, place in parts}
        return {name: self._why(columns) for name, columns in lost.items() if columns.size}

    def _why(self, columns: IntArray) -> str:
        own = self.gram.diagonal()
        if not own[columns].any():
            return "is 0 in all rows"
        with_constant = self.gram[0, columns] ** 2 / np.maximum(own[0] * own[columns], 1e-300)
        if self.form.has_intercept and (1 - with_constant < CONSTANT).all():
            return "is constant, or varies by less than 1e-5 of its size; subtract its mean"
        return "repeats other terms"


def fit_gaussian(
    form: LongForm,
    system: System,
    smoothing: str | ArrayLike,
    n: int,
    n_unpenalized: int | None = None,
    triangle: Callable[[], Triangle] | None = None,
    believed: System | None = None,
    scale: float | None = None,
) -> AdditiveFit:
    """Penalised least squares of the long form.

    Parameters
    ----------
    form : LongForm
    system : System
    smoothing : {"reml", "gcv"} or array_like of shape (M,)
        A criterion, or smoothing parameters on mgcv's scale in the order of the terms.
    n : int
        Number of records.
    n_unpenalized : int, optional
        Dimension that REML counts as unpenalised, where another program counts more than what is identified.
    triangle : callable, optional
        The triangle of the rows, from another pass over them: where the system has lost digits, coefficients and
        their covariance come from it.
    believed : System, optional
        Normal equations under a working covariance of the errors: its REML decides between several minima of REML.
    scale : float, optional
        Variance of the errors where it is known. Default: estimated.

    Raises
    ------
    InputError
        Wrong number of smoothing parameters, or too few observations.
    """
    problem = _problem(form, system, n_unpenalized, scale)
    if isinstance(smoothing, str):
        judge = None if believed is None else _problem(form, believed, n_unpenalized)
        (solution,) = problem.optimize(smoothing, judge)
    else:
        given = numbers(smoothing, "smoothing")
        if given.shape != (form.n_penalties,):
            raise InputError(
                f"smoothing must hold {form.n_penalties} smoothing parameters ({', '.join(form.penalty_names)}), "
                f"got shape {given.shape}"
            )
        solution = problem.solve(given)
    if triangle is not None and not problem.firm(solution.smoothing_parameters):
        solution = refined(problem, solution, triangle(), form)
    return AdditiveFit(
        form,
        solution.coefficients,
        solution.inverse,
        system.gram,
        solution.edf,
        problem.identified,
        solution.smoothing_parameters,
        solution.noise_variance,
        solution.scale,
        solution.gcv if isinstance(smoothing, str) and smoothing == "gcv" else solution.reml,
        solution.rss,
        n,
        system.n_rows,
        system.gram[0] / system.n_rows,
        solution.hessian if isinstance(smoothing, str) and smoothing == "reml" else None,
    )


def _problem(
    form: LongForm, system: System, n_unpenalized: int | None, scale: float | None = None
) -> PenalizedLeastSquares:
    return PenalizedLeastSquares(
        system.gram,
        system.cross,
        system.total,
        system.n_rows,
        form.penalties,
        intercept=False,
        n_unpenalized=n_unpenalized,
        scale=scale,
    )


# Matrices of coefficients on K functions along the response that know nothing of each other: K blocks, not one square.


@dataclass(frozen=True)
class ByFunction:
    """A symmetric matrix of the coefficients of a mean curve (c of them) and of slopes (pK, the function fast).

    Attributes
    ----------
    blocks : ndarray of shape (K, 1 + p, 1 + p) or (1, 1 + p, 1 + p)
        Of the constant and the slopes on each function; one where all are alike.
    sizes : ndarray of shape (K,)
        By which the blocks are multiplied.
    centre : ndarray of shape (p,)
        Values of the features at which the constants are taken.
    turn : ndarray of shape (c, K)
        A constant on each function as coefficients of the mean curve.
    rest : ndarray of shape (c, c)
        Of the mean curve's coefficients, besides what is in the blocks.
    """

    blocks: FloatArray
    sizes: FloatArray
    centre: FloatArray
    turn: FloatArray
    rest: FloatArray

    @cached_property
    def matrix(self) -> FloatArray:
        """All of it, shape (c + pK, c + pK)."""
        c, k = self.turn.shape
        shift = np.eye(1 + self.centre.size)
        shift[0, 1:] = -self.centre  # to constants where features are 0
        blocks = (shift @ self.blocks @ shift.T) * self.sizes[:, None, None]
        out = np.zeros((c + self.centre.size * k,) * 2)
        out[:c, :c] = self.rest + (self.turn * blocks[:, 0, 0]) @ self.turn.T
        out[:c, c:] = np.einsum("ak,kp->apk", self.turn, blocks[:, 0, 1:]).reshape(c, -1)
        out[c:, :c] = out[:c, c:].T
        for i, block in enumerate(blocks):
            out[c + i :: k, c + i :: k] = block[1:, 1:]
        return out

    def variances(self, mean: FloatArray, features: FloatArray) -> FloatArray:
        """Variances of predicted curves, where this is a covariance; shape (n, T).

        Parameters
        ----------
        mean : ndarray of shape (T, c)
            Functions of the mean curve's coefficients.
        features : ndarray of shape (n, p)
        """
        z = np.ones((len(features), 1 + self.centre.size))
        np.subtract(features, self.centre, out=z[:, 1:])
        own = np.stack([((z @ block) * z).sum(axis=1) for block in self.blocks], axis=1) * self.sizes
        along = mean @ self.turn
        return np.asarray(np.maximum(own, 0.0) @ (along**2).T + ((mean @ self.rest) * mean).sum(axis=1))

    def of_slopes(self, rows: FloatArray) -> FloatArray:
        """Variances of what rows (m, p) make of the slopes on each function, where this is a covariance; (m, K)."""
        own = np.stack([((rows @ block[1:, 1:]) * rows).sum(axis=1) for block in self.blocks], axis=1)
        return np.asarray(np.maximum(own * self.sizes, 0.0))


# Least squares from the triangle of the QR of the records' rows: twice the digits of sums of products.
#
# A row holds the features of all terms and what of the response lies in the few directions that functions along it
# span. The triangle R of the QR of the rows has R'R = Σ rows' rows, merges by the QR of two stacked triangles and does
# not grow with the number of records, but a direction that is 10⁻⁸ of the largest still has half its digits there, and
# none in the products.


@dataclass(frozen=True)
class Triangle:
    """Of the rows of a model whose terms all have the same features at all t.

    Attributes
    ----------
    factor : ndarray of shape (r, q + m)
        Upper triangle: q features of all terms, m coordinates of the response (:attr:`LongForm.directions`).
    beyond : float
        Sum of squares of what of the responses lies in no such direction.
    """

    factor: FloatArray
    beyond: float

    @classmethod
    def of(cls, form: LongForm, features: Sequence[FloatArray], y: FloatArray) -> Triangle:
        """Of records, from their features and responses (n, T)."""
        of_y = y @ form.directions
        rows = np.hstack([*features, of_y])
        return cls(np.asarray(np.linalg.qr(rows, mode="r")), float(((y - of_y @ form.directions.T) ** 2).sum()))

    def merge(self, other: Triangle) -> Triangle:
        """Of the rows of both."""
        both = np.vstack((self.factor, other.factor))
        return Triangle(np.asarray(np.linalg.qr(both, mode="r")), self.beyond + other.beyond)


def refined(problem: PenalizedLeastSquares, solution: Solution, triangle: Triangle, form: LongForm) -> Solution:
    """Solve once more at the smoothing parameters of a solution, from a triangle.

    Parameters
    ----------
    problem : PenalizedLeastSquares
        Of the long form, without an intercept of its own.
    solution : Solution
    triangle : Triangle
    form : LongForm

    Returns
    -------
    Solution
        With other coefficients, inverse, edf, residual sum of squares and variances; criteria and their derivatives
        remain.
    """
    keep = problem.identified
    q, m = sum(design.n_features for design in form.designs), form.directions.shape[1]
    of_y = triangle.factor[:, q:]
    unit = problem.units[keep]
    rows = _along_directions(triangle.factor[:q, :q], form)[:, keep] * unit
    penalty = solution.smoothing_parameters @ problem.penalties[:, keep] * unit**2
    root, half, _ = from_roots(rows, of_y[:q].reshape(-1, 1), penalty)
    beta, own_inverse = half[:, 0] @ root, root.T @ root
    left = np.vstack((of_y[:q] - (rows @ beta).reshape(-1, m), of_y[q:]))
    rss = float((left**2).sum()) + triangle.beyond
    edf = 1 - penalty * own_inverse.diagonal()
    dof = problem.n - problem.n_unpenalized
    known = problem.scale
    coefficients, all_edf, inverse = np.zeros(keep.size), np.zeros(keep.size), np.zeros((keep.size, keep.size))
    coefficients[keep], all_edf[keep] = beta * unit, edf
    inverse[np.ix_(keep, keep)] = own_inverse * unit * unit[:, None]
    return replace(
        solution,
        coefficients=coefficients,
        inverse=inverse,
        edf=all_edf,
        rss=rss,
        noise_variance=rss / (problem.n - float(edf.sum())) if known is None else known,
        scale=(rss + float(penalty @ beta**2)) / dof if known is None else known,
    )


def _along_directions(features: FloatArray, form: LongForm) -> FloatArray:
    """Rows of the long form of features of all terms (r, q) along the directions: shape (r m, p)."""
    out, at = [], 0
    for design, along in zip(form.designs, form.along, strict=True):
        own, turned = features[:, at : at + design.n_features], form.directions.T @ along
        whole = own[:, None, :, None] * turned[None, :, None, :]
        out.append(whole.reshape(len(own) * len(turned), -1)[:, design.kept])
        at += design.n_features
    return np.hstack(out)
