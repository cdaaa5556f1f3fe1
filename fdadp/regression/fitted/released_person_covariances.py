"""Persons in a private mixed model: released covariances of both levels, shares of variance with intervals.

No person is among them. Who holds rows of persons can combine them with the model: :func:`local_blups`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fdadp._common.argument_checks import fraction, one_of
from fdadp._common.loaded_later import pd
from fdadp._common.symmetric_matrices import positive_part, root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.fpca.eigenbasis import Eigenbasis
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.tables.curve_sample import Curves
from fdadp.private.levels.between_within_covariances import icc_interval
from fdadp.regression.reading.table_columns import read_records, read_response
from fdadp.repeated.reml_search import LevelCovariances
from fdadp.repeated.two_level_components import level_basis

if TYPE_CHECKING:
    from fdadp.regression.fitted.fitted_model import Fitted

LEVELS = ("person", "row")
LEAST_EIGENVALUE = 1e-6
DRAWS = 400
"""Of both covariances, for intervals at each t."""
TINY = 1e-300
NOT_RELEASED = "private data: not released"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedPersons:
    """Covariances between and within persons on K functions over T points, as released.

    Attributes
    ----------
    name, column : str
        Of the term, and of the column that says whose a row is.
    grid : ndarray of shape (T,)
    functions : ndarray of shape (T, K)
        Orthonormal under `weights`.
    weights : ndarray of shape (T,)
        Quadrature weights, which sum to one.
    G, R : ndarray of shape (K, K)
        Between persons, and of rows about their persons; the noise of single points is in R, in all directions.
    noise_variance : float
        Of single points, from what lies outside the functions.
    row_shares : ndarray of shape (max_rows,)
        Shares of persons with 1, 2, ... rows.
    n : float
        Persons with a row.
    unsure : (ndarray, ndarray)
        Sds (K, K) of what the privacy noise leaves unknown of the covariance of persons' means, and of R.
    per_degree : float
        One over the degrees of freedom of R.
    trace_sds : (float, float)
        Standard errors of the traces of both.
    beyond : (float, float)
        Share of the variance of each level that lies beyond the clip, as expected; it is in G and R in proportion.
    """

    name: str
    column: str
    grid: FloatArray
    functions: FloatArray
    weights: FloatArray
    G: FloatArray
    R: FloatArray
    noise_variance: float
    row_shares: FloatArray
    n: float
    unsure: tuple[FloatArray, FloatArray]
    per_degree: float
    trace_sds: tuple[float, float]
    beyond: tuple[float, float]

    # --- covariances and components ---

    @property
    def once(self) -> float:
        """Mean of 1/n over persons with n rows."""
        return float(self.row_shares @ (1 / np.arange(1, self.row_shares.size + 1)))

    @property
    def points(self) -> FloatArray:
        """What white noise of single points adds to R, (K, K)."""
        weighted = self.functions * self.weights[:, None]
        return np.asarray(self.noise_variance * weighted.T @ weighted)

    @property
    def smooth_rows(self) -> FloatArray:
        """Covariance of rows without noise, (K, K)."""
        return positive_part(self.R - self.points)

    def covariance(self, level: str) -> FloatArray:
        """Covariance function of a level, ``"person"`` or ``"row"``, at all pairs of points; shape (T, T)."""
        one_of(level, "level", LEVELS)
        K = self.G if level == "person" else self.smooth_rows
        return np.asarray(self.functions @ K @ self.functions.T)

    def eigenbasis(self, level: str) -> Eigenbasis:
        """Eigenfunctions of unit L2 norm, and eigenvalues, of a level, ``"person"`` or ``"row"``."""
        one_of(level, "level", LEVELS)
        K = self.G if level == "person" else self.smooth_rows
        length = float(self.grid[-1] - self.grid[0])
        mean = np.zeros(self.grid.size)
        return level_basis(K, self.functions, self.grid, self.weights * length, mean, self.noise_variance)

    # --- shares of the variance ---

    @property
    def variances(self) -> pd.DataFrame:
        """Variance at an average t of persons, rows and noise: ``variance``, ``share`` and ``sd``."""
        values = [float(np.trace(self.G)), float(np.trace(self.smooth_rows)), self.noise_variance]
        table = pd.DataFrame({"variance": values}, index=pd.Index([*LEVELS, "noise"], name="level"))
        table["share"] = table["variance"] / max(table["variance"].sum(), TINY)
        table["sd"] = np.sqrt(table["variance"])
        return table

    def icc(self, *, noise: bool = False) -> float:
        """Share of the variance that is between persons, over all t; with or without the noise below the line."""
        person, row, white = self.variances["variance"]
        return float(person / max(person + row + (white if noise else 0.0), TINY))

    def icc_curve(self, *, noise: bool = False) -> FloatArray:
        """The same at each point of the grid, shape (T,)."""
        return self._icc_curve(self.G, self.smooth_rows, noise=noise)

    def icc_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval of :meth:`icc`: of the privacy noise, and of who happened to be in the sample, taken as Gaussian.

        What lies beyond the clips is known by the prior of tails alone, and taken to be off by half of itself.
        """
        fraction(level, "level")
        within, white = float(np.trace(self.R)), float(np.trace(self.points))
        means = float(np.trace(self.G)) + self.once * within
        means_sd, rows_sd = np.hypot(self.trace_sds, np.array(self.beyond) / 2 * [means, within])
        return icc_interval(means, within, float(means_sd), float(rows_sd), self.once, white, level)

    def icc_band(self, level: float = 0.95, *, noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Intervals of :meth:`icc_curve`, point by point, of draws of both covariances; shapes (T,).

        Entries are drawn with the noise that is left in them, with that of a sample of Gaussian curves, and with what
        lies beyond the clips, as of :meth:`icc_interval`.
        """
        fraction(level, "level")
        rng = np.random.default_rng(0)  # of public and released numbers: always the same draws
        means = self.G + self.once * self.R
        sizes = 1 + np.array(self.beyond)[:, None, None, None] / 2 * rng.standard_normal((2, DRAWS, 1, 1))
        B = np.maximum(sizes[0], 0.0) * (means + _drawn(means, 1 / self.n, self.unsure[0], rng))
        R = np.maximum(sizes[1], 0.0) * (self.R + _drawn(self.R, self.per_degree, self.unsure[1], rng))
        drawn = self._icc_curve(positive_part(B - self.once * R), positive_part(R - self.points), noise=noise)
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def _icc_curve(self, G: FloatArray, rows: FloatArray, *, noise: bool) -> FloatArray:
        """Of covariances (..., K, K), shape (..., T)."""
        person, row = (((self.functions @ K) * self.functions).sum(axis=-1) for K in (G, rows))
        return np.asarray(person / np.maximum(person + row + (self.noise_variance if noise else 0.0), TINY))

    # --- words ---

    def notes(self) -> list[str]:
        """What the summary says of persons."""
        low, high = self.icc_interval()
        shares = ", ".join(f"{share:.0%}" for share in self.row_shares)
        return [
            f"{self.name} in a private fit: the effects of persons are never released; the model will hold their "
            "covariance.",
            f"ICC {self.icc():.3f} (95 %: {low:.3f} to {high:.3f}), with noise {self.icc(noise=True):.3f}.",
            f"Persons with 1, 2, ... rows: {shares}.",
        ]


def _drawn(matrix: FloatArray, per_degree: float, unsure: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Errors of a covariance of Gaussian vectors, 1/`per_degree` of them, and of the noise left in its entries.

    Shape (DRAWS, K, K).
    """
    root = root_of(matrix)
    normal, noise = rng.standard_normal((2, DRAWS, *matrix.shape))
    sampled = (normal + np.swapaxes(normal, 1, 2)) * np.sqrt(per_degree / 2)  # entries of variance 1, of the diagonal 2
    noise = np.triu(noise * unsure)
    return np.asarray(root @ sampled @ root.T + noise + np.swapaxes(np.triu(noise, 1), 1, 2))


# Curves of persons for who holds their rows: a released model and these rows, nothing that may be released.


@dataclass(frozen=True, eq=False)
class LocalBlups:
    """Best linear predictions of the curves of persons, made by who holds their rows. Private data: not released.

    Attributes
    ----------
    persons : tuple
        Labels, in order.
    counts : ndarray of shape (I,)
        Rows of each.
    curves, se : kind of the response, I rows
        Deviations from the population's curves, and their standard errors given the released covariances.
    note : str
        ``"private data: not released"``.
    """

    persons: tuple[Any, ...]
    counts: IntArray
    curves: Any
    se: Any
    note: str = field(default=NOT_RELEASED, init=False)

    def save(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to write a file: these are the persons' own data.

        Raises
        ------
        InputError
        """
        raise InputError(f"local_blups cannot be saved, got {NOT_RELEASED}: they are of the rows that were handed in")

    def __repr__(self) -> str:
        return f"<curves of {len(self.persons)} persons; {self.note}>"


def local_blups(fitted: Fitted, persons: ReleasedPersons, data: Any, grids: Any) -> LocalBlups:
    """Curves of the persons of some rows.

    Parameters
    ----------
    fitted : Fitted
    persons : ReleasedPersons
    data : DataFrame or mapping
        Rows with the response, the covariates and the column of the persons.
    grids : mapping of array_like, optional

    Raises
    ------
    InputError
        Columns that are not there, curves on another grid, a missing label.
    """
    records = fitted.records(data, grids)
    name = fitted.response.name
    observed = read_response(data, name, grids, defaults={name: persons.grid})
    same = isinstance(observed, Curves) and observed.grid.shape == persons.grid.shape
    if not isinstance(observed, Curves) or not same or not np.allclose(observed.grid, persons.grid):
        raise InputError(f"{name} must hold curves on the grid of the fit to find those of persons")
    left = fill_linear(observed.values - fitted.predictor(records, data, None, persons.grid), persons.grid)
    used = np.isfinite(left).all(axis=1)
    c = left[used] @ (persons.functions * persons.weights[:, None])
    labels = pd.Series(read_records(data, [persons.column])[0].ids(persons.column).tolist(), dtype=object)
    if labels.isna().any():
        raise InputError(f"{persons.column} must have a label in every row")
    codes, found = pd.factorize(labels[np.flatnonzero(used)], sort=True)
    counts = np.bincount(codes, minlength=len(found))
    means = np.stack([np.bincount(codes, column, len(found)) for column in c.T], axis=1) / counts[:, None]
    least = LEAST_EIGENVALUE * np.trace(persons.R) * np.eye(len(persons.R))  # where curves have no noise
    levels = LevelCovariances(persons.G, persons.R + least, persons.noise_variance, np.nan)
    effects, se = np.empty_like(means), np.empty((len(found), persons.grid.size))
    for n in np.unique(counts):
        own = counts == n
        effects[own] = means[own] @ levels.shrinkage(int(n)).T
        posterior = levels.posterior(int(n))
        se[own] = np.sqrt(np.einsum("tk,kl,tl->t", persons.functions, posterior, persons.functions))
    assert fitted.response.curves is not None
    shown = [fitted.response.curves.wrap(v, persons.grid, None) for v in (effects @ persons.functions.T, se)]
    return LocalBlups(tuple(found), counts, *shown)
