"""How much of the variance is between persons, whether any is, and whether rows are independent of each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fdadp._common.checks import generator, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.repeated.levels import deviance
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.search import LevelCovariances, level_covariances

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


def variance_table(phi: FloatArray, levels: LevelCovariances) -> pd.DataFrame:
    """Variance at an average t, its share and its standard deviation, of persons, rows and noise."""
    T = len(phi)
    variances = [np.trace(levels.G) / T, np.trace(levels.smooth_rows) / T, levels.noise_variance]
    table = pd.DataFrame({"variance": variances}, index=pd.Index(["person", "row", "noise"], name="level"))
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


def successive_correlation(left: FloatArray, persons: IntArray) -> float:
    """Correlation of the residuals (n, k) of successive rows of a person, about the person's mean; 0 if independent.

    Rows of a person count in the order in which they stand. Means of few rows make residuals look negatively
    correlated; that is taken off.

    Raises
    ------
    InputError
        No person has two rows.
    """
    order = np.argsort(persons, kind="stable")
    who, values = persons[order], left[order]
    _, at, n = np.unique(who, return_inverse=True, return_counts=True)
    if n.max(initial=0) < 2:
        raise InputError("correlation of successive rows needs persons with two rows, got none")
    means = np.zeros((n.size, values.shape[1]))
    np.add.at(means, at, values / n[at][:, None])
    values = values - means[at]
    spare = float((n - 1).sum())
    mean_square = float((values**2).sum()) / spare
    next_ = at[1:] == at[:-1]
    lagged = float((values[1:] * values[:-1])[next_].sum()) + mean_square * float(((n - 1) / n).sum())
    return lagged / (spare * mean_square) if mean_square > 0 else 0.0
