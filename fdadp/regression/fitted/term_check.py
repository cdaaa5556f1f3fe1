"""Check of basis sizes: dependence of residuals on covariates and on t, as mgcv's ``k.check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.functional.splines.bsplines import BSplines
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.regression.fitted.coefficient_functions import varies
from fdadp.regression.fitted.term_residuals import deviance_residuals
from fdadp.regression.fitted.term_summary import is_parametric
from fdadp.regression.reading.training import TrainingSpec, read_training
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.terms.on_functions import OnFunctions
from fdadp.terms.spec import TermDesign

if TYPE_CHECKING:
    import pandas as pd

    from fdadp.regression.fitted.fitted import Fitted

RECORDS = 2000
"""Number of records in the check, sampled at random if there are more."""

NEAREST = 3
"""Number of neighbours of a record, if its covariates are more than one number."""


def check_model(fitted: Fitted, asked: tuple[Any, ...], n_draws: int, seed: int) -> pd.DataFrame:
    """Check a fitted model with its training rows; `asked` are the arguments of its `fit`."""
    data, y, grids, weights, offset, long = asked
    fit, settings, response = fitted.fit, fitted.settings, fitted.response
    made = fitted.covariates.completion.indicators.values()
    names = dict.fromkeys(name for design in fit.form.designs for name in design.columns if name not in made)
    if fitted.offset is not None and (offset is None or f"I({offset})" == fitted.offset):
        offset = fitted.offset
        names[offset] = None
    known = dict(fitted.covariates.grids)
    if response.curves is not None:
        known.setdefault(response.name, response.curves.grid)
    columns = (response.name, tuple(names))
    rows = TrainingSpec(data, y, *columns, grids, weights, offset, long, settings.gaps, defaults=known)
    observed = read_training(rows, settings.family, curves=settings.of_curves).observed
    mean = settings.family.mean(observed.predictor(fit.form, fit.coefficients))
    left = deviance_residuals(settings.family, observed.y, mean, observed.weights)
    left = np.where(np.isnan(left), 0.0, left)
    if observed.points is not None:
        record, n = observed.points.record, observed.records.n
        left = (np.bincount(record, left, n) / np.sqrt(np.maximum(np.bincount(record, minlength=n), 1)))[:, None]
    return check_terms(fit, observed.records, left, n_draws, seed)


def check_terms(fit: AdditiveFit, records: Records, residuals: FloatArray, n_draws: int, seed: int) -> pd.DataFrame:
    """A row for each term that is no number.

    Parameters
    ----------
    fit : AdditiveFit
    records : Records
        The training rows.
    residuals : ndarray of shape (n, T)
        Zero where nothing was observed.
    n_draws : int
        Random arrangements of the records that the real one is compared with.
    seed : int

    Returns
    -------
    DataFrame
        ``k`` (most degrees of freedom), ``edf``, ``k_index``, ``p_value``, and of curves ``p_value_t``.
    """
    import pandas as pd

    draw = np.random.default_rng(seed)
    if records.n > RECORDS:
        some = np.sort(draw.choice(records.n, RECORDS, replace=False))
        records, residuals = records[some], residuals[some]
    products = residuals @ residuals.T
    orders = np.array([draw.permutation(records.n) for _ in range(n_draws)])
    signs = draw.choice([-1.0, 1.0], size=(n_draws, records.n))
    rows: dict[str, Any] = {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        if is_parametric(design):
            continue
        row: dict[str, Any] = {"k": design.size, "edf": float(fit.edf[place].sum())}
        row["k_index"], row["p_value"] = _by_neighbours(products, _covariates(design, records), orders)
        if residuals.shape[1] > 1:
            row["p_value_t"] = _along(design, records, residuals, fit.form.t, signs)
        rows[design.name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("term")


def _covariates(design: TermDesign, records: Records) -> FloatArray:
    """Numbers and curves that a term reads, each scaled to variance 1, shape (n, d); labels are left out."""
    parts: list[FloatArray] = []
    design = design.of if isinstance(design, OnFunctions) else design
    for name in design.columns:
        column = records.columns[name]
        if isinstance(column, Curves):
            parts.append(column.values / (np.sqrt(column.values.var(axis=0).sum()) or 1.0))
        elif column.dtype.kind == "f" and not hasattr(design, "levels"):
            parts.append(column[:, None] / (column.std() or 1.0))
    return np.concatenate(parts, axis=1) if parts else np.zeros((records.n, 0))


def _by_neighbours(products: FloatArray, covariates: FloatArray, orders: IntArray) -> tuple[float, float]:
    """Half the mean squared difference of residuals of neighbours, over their variance; how rarely chance has less."""
    n, d = covariates.shape
    if d == 0 or n < NEAREST + 2:
        return np.nan, np.nan
    if d == 1:
        order = np.argsort(covariates[:, 0], kind="stable")
        first, second = order[:-1], order[1:]
    else:
        first, second = np.repeat(np.arange(n), NEAREST), _nearest(covariates).ravel()
    squares = products.diagonal()
    variance = float(squares.mean())
    if variance == 0:
        return np.nan, np.nan

    def index(order: IntArray) -> float:
        a, b = order[first], order[second]
        return float((squares[a] + squares[b] - 2 * products[a, b]).mean() / 2)

    found = index(np.arange(n))
    return found / variance, float(np.mean([index(order) < found for order in orders]))


def _nearest(covariates: FloatArray) -> IntArray:
    squares = np.einsum("ij,ij->i", covariates, covariates)
    distances = squares[:, None] + squares - 2 * covariates @ covariates.T
    np.fill_diagonal(distances, np.inf)
    return np.argpartition(distances, NEAREST, axis=1)[:, :NEAREST]


def _along(design: TermDesign, records: Records, residuals: FloatArray, t: FloatArray, signs: FloatArray) -> float:
    """p-value of structure along t beyond the basis of the term, from random signs of the records.

    The statistic is the sum over records of features times residuals. It is projected on splines with twice the
    intervals, without the span of the term's own. A sign applies to a whole residual curve, so errors may depend along
    the curve in any way.
    """
    if not varies(design) or not len(design.penalties):
        return np.nan
    along = np.column_stack((np.ones(t.size), design.along.design(t)))
    fine = BSplines.uniform(float(t.min()), float(t.max()), max(2 * design.along.size, 8)).design(t)
    basis = np.linalg.qr(along)[0]
    rest = fine - basis @ (basis.T @ fine)
    vectors, values, _ = np.linalg.svd(rest, full_matrices=False)
    more = vectors[:, values > 1e-6 * np.abs(fine).max()]
    if not more.shape[1]:
        return np.nan
    features = design.features(records, t)
    if features.ndim == 2:
        whitened = _orthonormal(features)
        at = residuals @ more
        both = (whitened @ whitened.T) * (at @ at.T)
    else:
        sums = np.einsum("ntq,nt,tm->nqm", features, residuals, more, optimize=True).reshape(len(features), -1)
        both = sums @ sums.T
    found = float(both.sum())
    by_chance = np.einsum("bi,bi->b", signs @ both, signs)
    return float((1 + np.sum(by_chance >= found)) / (1 + len(signs)))


def _orthonormal(features: FloatArray) -> FloatArray:
    vectors, values, _ = np.linalg.svd(features, full_matrices=False)
    return np.asarray(vectors[:, values > 1e-8 * values.max(initial=0.0)])
