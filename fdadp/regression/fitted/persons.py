"""Curves of persons in a fitted model: best linear predictions, what they leave open, and shares of the variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import make_interp_spline

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records
from fdadp.regression.fitted.coefficient_functions import POINTS, Effect
from fdadp.repeated.diagnostics import SUCCESSIVE, icc, icc_curve, no_person_effect, variance_table
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.search import WHITE, LevelCovariances
from fdadp.solve.errors.term_tests import TermTest
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.numbers.labels import Levels


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonCurves:
    """Curves of I persons on k smooth functions over T points, from a fit with P features of all other terms.

    Attributes
    ----------
    name : str
        Of the term.
    persons : Levels
        Labels of the persons, in order.
    grid : ndarray of shape (T,)
    phi : ndarray of shape (T, k)
        Orthonormal functions on the grid.
    levels : LevelCovariances
        Covariances of persons and of rows in coefficients on these functions.
    counts : ndarray of shape (I,)
        Rows of each person.
    features : ndarray of shape (I, P)
        Means of the features over the rows of each person.
    effects : ndarray of shape (I, k)
        Best linear predictions of the persons' curves.
    degrees : ndarray of shape (p_terms,)
        Student's degrees of freedom of the mean curves of each other term.
    edf : float
        Effective degrees of freedom of all curves of persons.
    unsure : ndarray of shape (p, p)
        What not knowing the smoothing parameters adds to the covariance of the coefficients of all other terms.
    chosen : bool
        Whether k was found by BIC.
    whiteness : float or None
        Variance of the first functions left out beside white noise.
    successive : float
        Correlation of the residuals of successive rows of a person.
    slopes : tuple of (str, float, float)
        Of features that vary within and between persons: term, Wald statistic of the difference of both slopes, p.
    sums : PersonSums or None
        Sums of the fit; None in files.
    """

    name: str
    persons: Levels
    grid: FloatArray
    phi: FloatArray
    levels: LevelCovariances
    counts: IntArray
    features: FloatArray
    effects: FloatArray
    degrees: FloatArray
    edf: float
    unsure: FloatArray
    chosen: bool
    whiteness: float | None
    successive: float
    slopes: tuple[tuple[str, float, float], ...]
    sums: PersonSums | None = None

    @property
    def column(self) -> str:
        """Column that says whose a row is."""
        return self.persons.column

    # --- shares of the variance ---

    @property
    def variances(self) -> pd.DataFrame:
        """Variance at an average t of persons, rows and noise: ``variance``, ``share`` and ``sd``."""
        return variance_table(self.phi, self.levels)

    def icc(self, *, noise: bool = False) -> float:
        """Share of the variance that is between persons, over all t; with or without the noise below the line."""
        return icc(self.phi, self.levels, noise=noise)

    def icc_curve(self, *, noise: bool = False) -> FloatArray:
        """The same at each point of the grid, shape (T,)."""
        return icc_curve(self.phi, self.levels, noise=noise)

    def tested(self, draws: int = 199, seed: int = 0) -> TermTest:
        """Test that curves of persons are all 0 by the restricted likelihood ratio and its simulated law.

        NaN for models from files, which keep no sums.
        """
        k = self.phi.shape[1]
        if self.sums is None:
            return TermTest(np.nan, k, np.nan)
        found = no_person_effect(self.sums, self.levels, draws=draws, seed=seed)
        return TermTest(found.statistic, k, found.p_value)

    # --- curves of known persons ---

    def functions(self, points: FloatArray) -> FloatArray:
        """The k functions at points, (T', k); between points of the grid by cubic splines."""
        if np.array_equal(points, self.grid):
            return self.phi
        return np.asarray(make_interp_spline(self.grid, self.phi, k=3)(points))

    def curves(self, records: Records, points: FloatArray) -> FloatArray:
        """Predicted curves of the persons of rows, (n, T'); 0 of persons that the fit did not know."""
        codes, out = self._codes(records), np.zeros((records.n, len(points)))
        out[codes >= 0] = self.effects[codes[codes >= 0]] @ self.functions(points).T
        return out

    def _codes(self, records: Records) -> IntArray:
        return np.asarray(self.persons.codes(records.labels(self.column).tolist(), unseen=True), dtype=np.int64)

    def effect(
        self, form: LongForm, axes: Mapping[str, Any], covariance: FloatArray | None = None, level: float = 0.95
    ) -> Effect:
        """Predicted curves of persons, with standard errors where the covariance of all coefficients is given.

        Parameters
        ----------
        form : LongForm
            Of all other terms.
        axes : mapping of str
            Points of ``"t"``, and persons under the name of their column; default all.
        covariance : ndarray of shape (p, p), optional
        level : float
            Of intervals, by the normal law.

        Raises
        ------
        InputError
            Another axis, or a person that the fit did not know.
        """
        given = {axis: points for axis, points in axes.items() if points is not None}
        unknown = next((axis for axis in given if axis not in (self.column, "t")), None)
        if unknown is not None:
            raise InputError(f"axes of {self.name} are {self.column}, t, got points of {unknown!r}")
        who = tuple(np.atleast_1d(np.asarray(given.get(self.column, self.persons.levels), dtype=object)).tolist())
        low, high = self.grid[[0, -1]]
        points = np.atleast_1d(np.asarray(given.get("t", np.linspace(low, high, POINTS[2])), dtype=np.float64))
        if points.min() < low or points.max() > high:
            raise InputError(f"t must lie within [{low:g}, {high:g}], got [{points.min():g}, {points.max():g}]")
        codes, phi, shown = self.persons.codes(who), self.functions(points), {self.column: who, "t": points}
        value = self.effects[codes] @ phi.T
        if covariance is None:
            return Effect(self.name, shown, value)
        from scipy.stats import norm

        variance = np.empty_like(value)
        root = _root(covariance)
        for i, (drift, posterior) in enumerate(zip(*self._uncertain(form, codes), strict=True)):
            variance[i] = ((phi @ drift @ root) ** 2).sum(axis=1) + np.einsum("ti,ij,tj->t", phi, posterior, phi)
        se = np.sqrt(variance)
        half = norm.ppf((1 + level) / 2) * se
        return Effect(self.name, shown, value, se, value - half, value + half)

    def _uncertain(self, form: LongForm, codes: IntArray) -> tuple[FloatArray, FloatArray]:
        """How effects of persons follow the coefficients, (m, k, p), and their covariance at given ones, (m, k, k)."""
        numbers, at = np.unique(self.counts[codes], return_inverse=True)
        shrunk = np.stack([self.levels.shrinkage(int(n)) for n in numbers])
        open_ = np.stack([self.levels.posterior(int(n)) for n in numbers])
        return shrunk[at] @ self.rows_of_means(form, self.features[codes]), open_[at]

    def rows_of_means(self, form: LongForm, features: FloatArray) -> FloatArray:
        """Rows that make mean curves on the functions of coefficients, (m, k, p), of features (m, P)."""
        out, start = np.empty((len(features), self.phi.shape[1], form.size)), 0
        for design, place, along in zip(
            form.designs, form.slices, LongForm(form.designs, self.grid).along, strict=True
        ):
            own = features[:, start : start + design.n_features]
            start += design.n_features
            whole = own[:, None, :, None] * (self.phi.T @ along)[None, :, None, :]
            out[:, :, place] = whole.reshape(len(own), self.phi.shape[1], -1)[:, :, design.kept]
        return out

    # --- errors of predictions ---

    def standard_errors(
        self, form: LongForm, records: Records, covariance: FloatArray, t: FloatArray | None = None
    ) -> FloatArray:
        """Standard errors of predicted curves (n, T'): of persons for known ones, else of the population's mean."""
        points = self.grid if t is None else t
        phi, root, out = self.functions(points), _root(covariance), []
        for block in form.blocks(records, points):
            rows, codes = form.rows(block, points), self._codes(block)
            known = codes >= 0
            added = np.zeros(rows.shape[:2])
            if known.any():
                drift, posterior = self._uncertain(form, codes[known])
                rows[known] -= phi @ drift
                added[known] = np.einsum("ti,nij,tj->nt", phi, posterior, phi, optimize=True)
            out.append(np.sqrt(((rows @ root) ** 2).sum(axis=2) + added))
        return np.concatenate(out) if out else np.zeros((0, len(points)))

    def variance_of_rows(self, records: Records, points: FloatArray) -> FloatArray:
        """Variance of new rows about the curves of their persons, and of unknown persons about the mean; (n, T')."""
        phi, levels = self.functions(points), self.levels
        row = np.einsum("ti,ij,tj->t", phi, levels.R, phi)
        row = row + levels.noise_variance * np.maximum(1 - (phi**2).sum(axis=1), 0.0)
        unknown = self._codes(records) < 0
        return np.asarray(row + unknown[:, None] * np.einsum("ti,ij,tj->t", phi, levels.G, phi))

    # --- words, and files ---

    def notes(self) -> list[str]:
        """What the summary says of persons."""
        k, column = self.phi.shape[1], self.column
        how = "least BIC" if self.chosen else "given"
        said = [
            f"{self.name}: covariances of persons and rows are free, on {k} smooth functions ({how}).",
            f"ICC {self.icc():.3f}, with noise {self.icc(noise=True):.3f}.",
        ]
        if self.whiteness is not None:
            rough = "; the ICC without noise is too large" if self.whiteness > WHITE else ""
            said.append(f"Functions left out vary {self.whiteness:.2f} times as much as white noise{rough}.")
        far = "; rows are taken as independent" if self.successive > SUCCESSIVE else ""
        said.append(f"Successive rows of one {column} have residuals of correlation {self.successive:.2f}{far}.")
        for name, statistic, p in self.slopes:
            said.append(
                f"{name} varies within and between: both slopes differ by chi-squared {statistic:.3g} on {k} "
                f"(p {p:.3g}, Hausman); where they differ, the estimate is neither."
            )
        return said

    def stored(self, *, people: bool) -> PersonCurves:
        """What a file holds: no sums, and no persons if they are to stay out."""
        if people:
            return replace(self, sums=None)
        k, features = self.phi.shape[1], self.features.shape[1]
        return replace(
            self,
            sums=None,
            persons=Levels(self.column, ()),
            counts=np.zeros(0, dtype=np.int64),
            features=np.zeros((0, features)),
            effects=np.zeros((0, k)),
        )


def _root(covariance: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
