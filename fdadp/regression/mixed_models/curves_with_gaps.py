"""Curves of persons beside terms where curves have gaps, or points of their own: matrices of each row, in memory.

Mean curves of all terms and Φ lie in the span of orthonormal functions Ψ. Beyond Φ there are neither curves of persons
nor smooth errors, so that the engine of rows with gaps takes covariances on Ψ that are 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.gap_filling import fill_linear
from fdadp.regression.fitted.person_curves import KnownOnes, rows_on
from fdadp.regression.mixed_models.estimated_covariances import (
    EstimatedCovariances,
    VarianceLevel,
    blocks_of_gaps,
    free_levels,
)
from fdadp.regression.mixed_models.person_covariances import PersonLaw
from fdadp.repeated.fixed_effects import NormalOfTerms, Weighed, normal_within
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.reml_with_gaps import GapEffects, GapRows, gap_effects, gap_fit, gap_rows, gap_rows_at, gap_search
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm, feature_slices
from fdadp.terms.numbers.levels import Levels

PAIRS = 2048
"""Rows whose matrices are worked on together."""


def filled(observed: Observations, grid: FloatArray) -> FloatArray:
    """Curves (n, T) on the grid: gaps filled by straight lines, from points of their own too; a start, no more.

    Raises
    ------
    InputError
        A row without a value.
    """
    own, points = observed.without_offset(), observed.points
    if points is None:
        Y = own.y
    else:
        Y, ends = np.full((observed.n, grid.size), np.nan), np.searchsorted(points.record, np.arange(observed.n + 1))
        for i, (start, stop) in enumerate(pairwise(ends)):
            if stop > start:
                Y[i] = np.interp(grid, points.t[start:stop], own.y[start:stop])
    empty = np.flatnonzero(~np.isfinite(Y).any(axis=1))
    if empty.size:
        raise InputError(f"curves must have values in each row with re(), got none in row {int(empty[0])}")
    return fill_linear(Y, grid)


@dataclass(frozen=True, eq=False)
class GapLaw:
    """Covariances from rows with gaps, and these rows on Ψ.

    Attributes
    ----------
    levels : LevelCovariances
        On Φ, the first k functions of Ψ.
    rows : GapRows
        On Ψ (K functions).
    at : ndarray of shape (M, K)
        Ψ at each observation.
    record : ndarray of shape (M,)
    y : ndarray of shape (M,)
    psi : ndarray of shape (T, K)
    inner : GapRows
        The same rows on Φ.
    """

    levels: LevelCovariances
    rows: GapRows
    at: FloatArray
    record: IntArray
    y: FloatArray
    psi: FloatArray
    inner: GapRows

    @classmethod
    def of(
        cls,
        form: LongForm,
        sums: PersonSums,
        X: FloatArray,
        means: FloatArray,
        observed: Observations,
        codes: IntArray,
        name: str,
    ) -> GapLaw:
        """REML from a start with gaps filled.

        Parameters
        ----------
        form : LongForm
            On the grid.
        sums : PersonSums
            Of filled curves.
        X : ndarray of shape (n, p)
            Their features.
        means : ndarray of shape (n, T)
            First guess of mean curves; what it has outside of Φ is no noise.
        observed : Observations
        codes : ndarray of shape (n,)
            Number of each row's person.
        name : str
        """
        own, points, k = observed.without_offset(), observed.points, sums.k
        both = np.hstack((sums.phi, *form.along))
        rest = both[:, k:] - sums.phi @ (sums.phi.T @ both[:, k:])
        U, size, Vt = np.linalg.svd(rest, full_matrices=False)
        U, size, Vt = (part[: int((size > 1e-9 * max(size[0], 1.0)).sum())] for part in (U.T, size, Vt))
        psi = np.hstack((sums.phi, U.T))
        # Ψ as combinations of Φ and of the bases, which are known at all points.
        turn = np.block(
            [[np.eye(k), -(sums.phi.T @ both[:, k:]) @ Vt.T / size], [np.zeros((both.shape[1] - k, k)), Vt.T / size]]
        )
        if points is None:
            record, column = np.nonzero(np.isfinite(own.y))
            y, at = own.y[record, column], psi[column]
        else:
            record, y = points.record, own.y
            from scipy.interpolate import make_interp_spline

            phi = make_interp_spline(form.t, sums.phi, k=3)(points.t)
            at = np.hstack((phi, *(design.along.design(points.t) for design in form.designs))) @ turn
        beyond = np.einsum("mk,mk->m", at[:, k:], (means @ psi[:, k:])[record])

        def rows(values: FloatArray, functions: FloatArray, phi: FloatArray) -> GapRows:
            if points is not None:
                return gap_rows_at(functions, record, values, X, codes)
            Y = np.full(own.y.shape, np.nan)
            Y[record, column] = values
            return gap_rows(phi, X, Y, codes)

        inner = rows(y - beyond, at[:, :k], sums.phi)
        levels, _ = gap_search(inner, level_covariances(sums, name=name))
        return cls(levels, rows(y, at, psi), at, record, y, psi, inner)

    def by_record(self, values: FloatArray) -> FloatArray:
        """Sums over the observations of each record of Ψ times values (M,), shape (n, K)."""
        out = np.zeros((len(self.rows.X), self.psi.shape[1]))
        np.add.at(out, self.record, self.at * values[:, None])
        return out

    @property
    def wide(self) -> tuple[FloatArray, FloatArray, float]:
        """Covariances of persons and of smooth errors on Ψ, and the noise variance."""
        k, extra = len(self.levels.G), self.psi.shape[1] - len(self.levels.G)
        K = self.levels.R - self.levels.noise_variance * np.eye(k)
        G, K = (np.pad(part, (0, extra)) for part in (self.levels.G, K))
        return G, K, self.levels.noise_variance

    @property
    def white(self) -> FloatArray:
        """Covariance (p, p) of the features' curves in each direction along t in which errors are white."""
        points = np.bincount(self.record, minlength=len(self.rows.X)) / len(self.psi)
        return np.asarray(self.levels.noise_variance * np.linalg.inv((self.rows.X.T * points) @ self.rows.X))

    def normal(self, form: LongForm, mix: FloatArray) -> tuple[NormalOfTerms, Weighed]:
        """Normal equations of the terms, and of a curve on Ψ for each feature."""
        inner = gap_fit(self.rows, *self.wide).weighed
        mixes = [mix[:, own] for own in feature_slices(form.designs)]
        inside = [self.psi.T @ along for along in form.along]
        return normal_within(inner, mixes, inside), inner

    def predicted(self, form: LongForm, coefficients: FloatArray, F: FloatArray) -> tuple[GapEffects, FloatArray]:
        """Predictions of persons beside fitted terms; and residuals (M,) of the observations beside both."""
        mean = F @ (rows_on(form, self.psi, form.t) @ coefficients)
        found = gap_effects(self.rows, *self.wide, mean)
        person = self.rows.person[self.rows.pair_of]
        return found, self.y - np.einsum("mk,mk->m", self.at, (mean + found.effects[person])[self.record])

    def counted(self, law: PersonLaw) -> PersonLaw:
        """A law with what it adds that these covariances are estimated."""
        if not law.few_persons:
            return law
        (G, R), (K, noise) = free_levels(self.levels.G, self.levels.R), self.wide[1:]
        k = len(self.levels.G)
        levels = G, VarianceLevel(K[:k, :k], R.basis), VarianceLevel(np.full((1, 1), noise), np.ones((1, 1, 1)))
        return law.counted(blocks_of_gaps(self.rows, k), levels, 1, carrier=self.psi)

    def known(
        self, persons: Levels, form: LongForm, found: GapEffects, F: FloatArray, few: EstimatedCovariances | None
    ) -> KnownOnes:
        """Predictions, how they follow the coefficients, and what it adds that covariances are estimated."""
        k, own, rows = len(self.levels.G), self.rows, rows_on(form, self.psi, form.t)
        drifts = np.zeros((len(persons), k, form.size))
        for start in range(0, len(own.pattern), PAIRS):
            part = slice(start, start + PAIRS)
            x = np.zeros((len(own.pattern[part]), F.shape[1]))
            here = (own.pair_of >= start) & (own.pair_of < start + PAIRS)
            np.add.at(x, own.pair_of[here] - start, F[here])
            moved = np.einsum("lij,ljp->lip", found.weights[part, :k], np.einsum("lP,Pjp->ljp", x, rows, optimize=True))
            np.add.at(drifts, own.person[part], moved)
        return KnownOnes(
            labels=persons,
            effects=found.effects[:, None, :k],
            opened=found.opened[:, :k, :k],
            drifts=drifts,
            added=np.zeros((0, k, k)) if few is None else np.stack(few.added[: len(persons)]),
        )

    def scores(self, form: LongForm, found: GapEffects, left: FloatArray, F: FloatArray) -> FloatArray:
        """``F'V⁻¹`` times the residuals of each record: what is left beside the smooth errors that are predicted."""
        rest = (left - np.einsum("mk,mk->m", self.at, found.smooth[self.record])) / self.levels.noise_variance
        rows = rows_on(form, self.psi, form.t)
        return np.asarray(np.einsum("nP,nk,Pkp->np", F, self.by_record(rest), rows, optimize=True))
