"""How much of the variance is between persons, whether any is, and whether rows are independent of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fdadp._common.argument_checks import generator, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.two_level_model import deviance

SUCCESSIVE = 0.1
"""Correlation of successive rows above which standard errors by person should be taken."""


def icc(phi: FloatArray, levels: LevelCovariances, *, noise: bool = False) -> float:
    """Share of the variance that is between persons, over all t; with or without the white noise below the line.

    With it the share depends less on k, as white noise and very rough errors cannot be told apart.
    """
    between, rows = float(np.trace(levels.G)), float(np.trace(levels.smooth_rows))
    below = between + rows + (levels.noise_variance * len(phi) if noise else 0.0)
    return between / below if below > 0 else 0.0


def icc_curve(phi: FloatArray, levels: LevelCovariances, *, noise: bool = False) -> FloatArray:
    """The same at each t, shape (T,)."""
    between, rows = (np.einsum("ti,ij,tj->t", phi, K, phi) for K in (levels.G, levels.smooth_rows))
    below = between + rows + (levels.noise_variance if noise else 0.0)
    return np.asarray(np.divide(between, below, out=np.zeros_like(below), where=below > 0))


def variance_table(phi: FloatArray, levels: LevelCovariances, between: Mapping[str, FloatArray]) -> pd.DataFrame:
    """Variance at an average t, its share and its standard deviation, of each level between, of rows and of noise."""
    T = len(phi)
    variances = {level: float(np.trace(K)) / T for level, K in between.items()}
    variances |= {"row": float(np.trace(levels.smooth_rows)) / T, "noise": levels.noise_variance}
    table = pd.DataFrame({"variance": pd.Series(variances)}).rename_axis("level")
    table["share"] = table["variance"] / table["variance"].sum()
    table["sd"] = np.sqrt(table["variance"])
    return table


@dataclass(frozen=True, eq=False)
class PersonTest:
    """Test of no effect of persons.

    Attributes
    ----------
    statistic : float
        -2 log restricted likelihood ratio of G = 0, at least 0.
    p_value : float
        Share of the simulated statistics, and of this one, that are at least as large.
    simulated : ndarray of shape (draws,)
    """

    statistic: float
    p_value: float
    simulated: FloatArray


def no_person_effect(
    sums: PersonSums, levels: LevelCovariances | None = None, *, draws: int = 199, seed: int | None = 0
) -> PersonTest:
    """Test G = 0 by the law of the statistic itself under it, with the same features and numbers of rows.

    Under G = 0 the statistic does not depend on R or on the mean curves, so that rows are drawn as N(0, I). Their sums
    are drawn at once: given the features, blocks of regression coefficients are normal and scatters are Wishart.

    Raises
    ------
    InputError
        Fewer than 19 draws.
    """
    whole(draws, "draws", least=19)
    rng = generator(seed)
    levels = level_covariances(sums) if levels is None else levels
    found = np.array([_ratio(_null_sums(sums, rng)) for _ in range(draws)])
    statistic = max(_without_persons(sums) - levels.deviance, 0.0)
    return PersonTest(statistic, float((1 + (found >= statistic).sum()) / (draws + 1)), found)


def _without_persons(sums: PersonSums) -> float:
    """-2 log restricted likelihood at G = 0 and the best R."""
    xx, xc, cc = sums.split(sums.total)
    R = (cc - xc.T @ np.linalg.solve(xx, xc)) / (sums.n_rows - sums.p)
    return deviance(sums, np.zeros_like(R), R)


def _ratio(sums: PersonSums) -> float:
    return max(_without_persons(sums) - level_covariances(sums, tolerance=1e-6).deviance, 0.0)


def _null_sums(sums: PersonSums, rng: np.random.Generator) -> PersonSums:
    rows = [int(sums.n_rows - sums.n_persons), *sums.persons.tolist()]
    moments = [
        _null_moment(sums.split(moment)[0], m, sums.k, rng)
        for moment, m in zip((sums.within, *sums.between), rows, strict=True)
    ]
    return replace(sums, within=moments[0], between=np.stack(moments[1:]))


def _null_moment(xx: FloatArray, rows: int, k: int, rng: np.random.Generator) -> FloatArray:
    """Moment of `rows` rows with features of scatter xx (p, p), and coefficients of N(0, I) independent of these."""
    values, vectors = np.linalg.eigh(xx)
    own = values > 1e-10 * max(values[-1], 1e-300) if len(values) else np.zeros(0, dtype=bool)
    root = vectors[:, own] * np.sqrt(values[own])
    regressed = rng.standard_normal((int(own.sum()), k))
    rest = max(rows - int(own.sum()), 0)
    if rest <= k:
        left = rng.standard_normal((rest, k))
    else:  # Bartlett's factor of a Wishart matrix
        left = np.triu(rng.standard_normal((k, k)), 1) + np.diag(np.sqrt(rng.chisquare(rest - np.arange(k))))
    xc = root @ regressed
    return np.block([[xx, xc], [xc.T, regressed.T @ regressed + left.T @ left]])


@dataclass
class SuccessiveRows:
    """Sums over the residuals of successive rows of persons, by which rows in chunks are merged in their order.

    Attributes
    ----------
    counts : ndarray of shape (I,)
    sums, first, last : ndarray of shape (I, k)
        Of a person's residuals: their sum, those of the first row and of the last.
    squares, lagged : float
        Sums of squares, and of products of one row with the next.
    """

    counts: IntArray
    sums: FloatArray
    first: FloatArray
    last: FloatArray
    squares: float
    lagged: float

    @classmethod
    def of(cls, left: FloatArray, persons: IntArray, count: int) -> SuccessiveRows:
        """Of residuals (n, k) of rows of persons, numbered below `count`, in the order in which they stand."""
        order = np.argsort(persons, kind="stable")
        who, values = persons[order], left[order]
        shape = count, left.shape[1]
        found = cls(np.bincount(persons, minlength=count), np.zeros(shape), np.zeros(shape), np.zeros(shape), 0.0, 0.0)
        np.add.at(found.sums, who, values)
        next_ = who[1:] == who[:-1]
        found.first[who[::-1]], found.last[who] = values[::-1], values
        found.squares, found.lagged = float((values**2).sum()), float((values[1:] * values[:-1])[next_].sum())
        return found

    def merge(self, other: SuccessiveRows) -> SuccessiveRows:
        """With those of the rows after these."""
        mine, theirs = self.counts > 0, other.counts > 0
        self.lagged += other.lagged + float((self.last * other.first)[mine & theirs].sum())
        self.squares += other.squares
        self.first = np.where(mine[:, None], self.first, other.first)
        self.last = np.where(theirs[:, None], other.last, self.last)
        self.counts, self.sums = self.counts + other.counts, self.sums + other.sums
        return self

    def correlation(self) -> float:
        """Correlation of successive rows about the person's mean; 0 if independent.

        Means of few rows make residuals look negatively correlated; that is taken off.

        Raises
        ------
        InputError
            No person has two rows.
        """
        seen = self.counts > 0
        n = self.counts[seen].astype(np.float64)
        if n.max(initial=0) < 2:
            raise InputError("correlation of successive rows needs persons with two rows, got none")
        means = self.sums[seen] / n[:, None]
        spare = float((n - 1).sum())
        mean_square = max(self.squares - float(n @ (means**2).sum(axis=1)), 0.0) / spare
        ends = 2 * self.sums[seen] - self.first[seen] - self.last[seen]
        lagged = self.lagged - float((means * ends).sum()) + float((n - 1) @ (means**2).sum(axis=1))
        lagged += mean_square * float(((n - 1) / n).sum())
        return lagged / (spare * mean_square) if mean_square > 0 else 0.0


def successive_correlation(left: FloatArray, persons: IntArray) -> float:
    """Correlation of the residuals (n, k) of successive rows of persons (n,), in the order in which they stand."""
    return SuccessiveRows.of(left, persons, int(persons.max(initial=-1)) + 1).correlation()
