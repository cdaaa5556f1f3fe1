"""How much of the variance is between persons, whether any is, and whether rows are independent of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fdadp._common.argument_checks import generator, whole
from fdadp._common.loaded_later import pd
from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.repeated.nested_sites import NestedFit, SiteSums, nested_covariances
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.random_slopes import SlopeSums, slope_covariances
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.reml_with_gaps import GapRows, gap_search
from fdadp.repeated.two_level_model import deviance

SUCCESSIVE = 0.1
"""Correlation of successive rows above which standard errors by person should be taken."""
ENOUGH = 20
"""Draws as large as a statistic after which no more are drawn."""
LOOSE = 1e-4
"""Tolerance of searches in drawn rows."""


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
class VarianceTest:
    """Test that some random functions are all 0.

    Attributes
    ----------
    statistic : float
        -2 log restricted likelihood ratio, at least 0.
    p_value : float
        Share of the simulated statistics, and of this one, that are at least as large.
    simulated : ndarray of shape (draws,)
    """

    statistic: float
    p_value: float
    simulated: FloatArray

    @property
    def error(self) -> float:
        """Standard error of the p-value, as the law is simulated."""
        return float(np.sqrt(self.p_value * (1 - self.p_value) / max(self.simulated.size, 1)))


class VarianceNull:
    """A model without some random functions, beside one with them; each kind says how it is fitted and simulated."""

    def statistic(self) -> float:
        """-2 log restricted likelihood ratio of both fits to the rows."""
        raise NotImplementedError

    def drawn(self, rng: np.random.Generator) -> float:
        """The same of rows drawn from the smaller fit, to which both are fitted again."""
        raise NotImplementedError

    def tested(self, draws: int = 199, seed: int | None = 0) -> VarianceTest:
        """Test by the law of the statistic itself under the smaller fit: a parametric bootstrap.

        It ends early when 20 draws are at least as large as the statistic, as the p-value is then known to a fifth.

        Raises
        ------
        InputError
            Fewer than 19 draws.

        References
        ----------
        Besag & Clifford (1991), Sequential Monte Carlo p-values, doi:10.1093/biomet/78.2.301.
        """
        whole(draws, "draws", least=19)
        rng, above = generator(seed), 0
        statistic, found = max(self.statistic(), 0.0), list[float]()
        while len(found) < draws and above < ENOUGH:
            found.append(max(self.drawn(rng), 0.0))
            above += found[-1] >= statistic
        p = above / len(found) if above == ENOUGH else (1 + above) / (len(found) + 1)
        return VarianceTest(statistic, p, np.array(found))


@dataclass(frozen=True, eq=False)
class NoPersons(VarianceNull):
    """Curves of persons are 0, G = 0. The statistic does not depend on R or on the mean curves then."""

    sums: PersonSums
    levels: LevelCovariances

    def statistic(self) -> float:
        """As :meth:`VarianceNull.statistic`."""
        return _without_persons(self.sums) - self.levels.deviance

    def drawn(self, rng: np.random.Generator) -> float:
        """As :meth:`VarianceNull.drawn`."""
        sums = drawn_sums(self.sums, np.zeros((self.sums.n_persons, self.sums.k)), np.eye(self.sums.k), rng)
        return _without_persons(sums) - level_covariances(sums, tolerance=LOOSE).deviance


@dataclass(frozen=True, eq=False)
class NoSlopes(VarianceNull):
    """Only the `kept` ones of the q functions of a person are random.

    Attributes
    ----------
    s : SlopeSums
    levels : LevelCovariances
        With all functions.
    kept : tuple of int
    """

    s: SlopeSums
    levels: LevelCovariances
    kept: tuple[int, ...]

    @cached_property
    def smaller(self) -> LevelCovariances:
        """The fit without the others."""
        return self._fit(self.s)

    def _fit(self, s: SlopeSums, **how: Any) -> LevelCovariances:
        if not self.kept:
            R = _plain_covariance(s.sums)
            return LevelCovariances(np.zeros((0, 0)), R, 0.0, deviance(s.sums, np.zeros_like(R), R))
        return slope_covariances(s.only(self.kept), **how)

    def statistic(self) -> float:
        """As :meth:`VarianceNull.statistic`."""
        return self.smaller.deviance - self.levels.deviance

    def drawn(self, rng: np.random.Generator) -> float:
        """As :meth:`VarianceNull.drawn`."""
        q, k, at = self.s.q, self.s.sums.k, self.smaller
        own = [a * k + i for a in self.kept for i in range(k)]
        G = np.zeros((q * k, q * k))
        G[np.ix_(own, own)] = at.G
        s = drawn_slopes(self.s, root_of(G), np.linalg.cholesky(at.R), rng)
        start = G + 1e-2 * np.kron(np.diag(1 / np.einsum("eaa->a", self.s.designs)), at.R) * len(self.s.designs)
        small = self._fit(s, tolerance=LOOSE, start=(at.G, at.R)) if self.kept else self._fit(s)
        return small.deviance - slope_covariances(s, tolerance=LOOSE, start=(start, at.R)).deviance


@dataclass(frozen=True, eq=False)
class NoSites(VarianceNull):
    """Of persons within sites, curves of sites are 0; with `persons`, those of persons, and those of sites are not.

    Without sites, rows are drawn at ratios of persons' variances that are drawn together: see :func:`drawn_together`.
    """

    own: SiteSums
    at: NestedFit
    persons: bool

    @cached_property
    def smaller(self) -> LevelCovariances:
        """The fit of two levels."""
        return level_covariances(self.own.by_site() if self.persons else self.own.sums)

    @cached_property
    def root(self) -> FloatArray:
        """Of the covariance between, of which rows are drawn."""
        return root_of(self.smaller.G if self.persons else drawn_together(self.smaller, self.own.sums))

    def statistic(self) -> float:
        """As :meth:`VarianceNull.statistic`."""
        return self.smaller.deviance - self.at.deviance

    def drawn(self, rng: np.random.Generator) -> float:
        """As :meth:`VarianceNull.drawn`."""
        own, k = self.own, self.own.sums.k
        shape = (len(own.sites) if self.persons else own.sums.n_persons), k
        effects = rng.standard_normal(shape) @ self.root.T
        effects = effects[own.site_of] if self.persons else effects
        s = own.of(drawn_sums(own.sums, effects, np.linalg.cholesky(self.smaller.R), rng))
        small = level_covariances(s.by_site() if self.persons else s.sums, tolerance=LOOSE)
        return small.deviance - nested_covariances(s, tolerance=LOOSE).deviance


@dataclass(frozen=True, eq=False)
class NoPersonsWithGaps(VarianceNull):
    """Curves of persons are 0, where rows have gaps."""

    rows: GapRows
    levels: LevelCovariances

    @cached_property
    def smaller(self) -> LevelCovariances:
        """The fit without persons."""
        return gap_search(self.rows, self.levels, persons=False)[0]

    def statistic(self) -> float:
        """As :meth:`VarianceNull.statistic`."""
        return self.smaller.deviance - self.levels.deviance

    def drawn(self, rng: np.random.Generator) -> float:
        """As :meth:`VarianceNull.drawn`."""
        at = self.smaller
        rows = drawn_gaps(self.rows, at.R - at.noise_variance * np.eye(len(at.R)), at.noise_variance, rng)
        small = gap_search(rows, at, tolerance=LOOSE, persons=False)[0].deviance
        return small - gap_search(rows, replace(at, G=0.05 * at.R), tolerance=LOOSE)[0].deviance


def drawn_together(levels: LevelCovariances, sums: PersonSums) -> FloatArray:
    """G (k, k) whose variances over those of rows are shrunk to their mean, as far as chance has spread them.

    Of few persons the largest ratio comes out too large, the least too small. Where a level is tested beside them,
    its statistic is smaller then than it is at the true ratios, and too many are called large.

    References
    ----------
    Chen, Wiesel, Eldar & Hero (2010), Shrinkage algorithms for MMSE covariance estimation,
    doi:10.1109/TSP.2010.2053029: by the theorem of Rao and Blackwell.
    """
    ratios, turn = levels.ratios()
    n = max(sums.n_persons - sums.p, 1)
    of_means = ratios + float((sums.persons / sums.sizes).sum()) / sums.n_persons
    squares, square = float((of_means**2).sum()), float(of_means.sum()) ** 2
    apart = (n + 2) * (squares - square / ratios.size)
    chance = (n - 2) / n * squares + square
    share = chance / apart if apart > chance else 1.0
    back = np.linalg.inv(turn)
    return np.asarray((back.T * (ratios + share * (ratios.mean() - ratios))) @ back)


def _plain_covariance(sums: PersonSums) -> FloatArray:
    """Of rows about their regression, where persons are 0."""
    xx, xc, cc = sums.split(sums.total)
    return np.asarray((cc - xc.T @ np.linalg.solve(xx, xc)) / (sums.n_rows - sums.p))


def _without_persons(sums: PersonSums) -> float:
    """-2 log restricted likelihood at G = 0 and the best R."""
    R = _plain_covariance(sums)
    return deviance(sums, np.zeros_like(R), R)


def drawn_sums(sums: PersonSums, effects: FloatArray, root: Any, rng: np.random.Generator) -> PersonSums:
    """Sums of drawn rows with the same features: errors ``root @ N(0, I)`` about effects (I, k) of persons.

    Scatters within persons are drawn at once: given the features, regressions are normal and the rest is Wishart.
    """
    p, n = sums.p, sums.counts[:, None].astype(np.float64)
    within = drawn_moment(sums.split(sums.within)[0], int(sums.n_rows - sums.n_persons), root, rng)
    means = effects + rng.standard_normal(effects.shape) / np.sqrt(n) @ root.T
    rows = np.hstack((sums.sums[:, :p], n * means))
    own = [rows[sums.counts == size] for size in sums.sizes]
    between = np.stack([part.T @ part / size for part, size in zip(own, sums.sizes, strict=True)])
    return replace(sums, within=within, between=between, sums=rows)


def drawn_slopes(s: SlopeSums, effects: FloatArray, root: Any, rng: np.random.Generator) -> SlopeSums:
    """The same of q functions a person: `effects` is a factor (q k, m) of their covariance."""
    sums, p, (I, q) = s.sums, s.sums.p, s.vectors.shape[:2]  # noqa: E741
    roots = np.stack([root_of(design) for design in s.designs])
    X = np.linalg.pinv(roots, rcond=1e-7)[s.design_of] @ s.vectors[:, :, :p]
    b = (rng.standard_normal((I, effects.shape[1])) @ effects.T).reshape(I, q, sums.k)
    turn = roots[s.design_of]
    C = turn.transpose(0, 2, 1) @ b + rng.standard_normal((I, q, sums.k)) @ root.T
    left = sums.split(sums.total)[0] - np.einsum("iqa,iqb->ab", X, X)
    v = np.concatenate((X, C), axis=2).reshape(I * q, -1)
    total = v.T @ v + drawn_moment(left, int(sums.n_rows) - I * q, root, rng)
    vectors = np.concatenate((s.vectors[:, :, :p], turn @ C), axis=2)
    return s.of(replace(sums, within=total - sums.between.sum(axis=0)), vectors)


def drawn_gaps(rows: GapRows, K: FloatArray, noise: float, rng: np.random.Generator) -> GapRows:
    """Rows with the same gaps: smooth errors of covariance K and noise."""
    pattern, a, energy = rows.pattern[rows.pair_of], np.empty_like(rows.a), 0.0
    for e, A in enumerate(rows.A):
        here = pattern == e
        values, vectors = np.linalg.eigh(A)
        some = values > 1e-10 * values[-1]
        root = vectors[:, some] * np.sqrt(values[some])
        n, size = int(here.sum()), root.shape[1]
        z = rng.standard_normal((n, len(K))) @ root_of(K).T @ root + np.sqrt(noise) * rng.standard_normal((n, size))
        a[here], energy = z @ root.T, energy + float((z**2).sum())
        beyond = n * (rows.points[e] - size)
        energy += noise * rng.chisquare(beyond) if beyond > 0.5 else 0.0
    return replace(rows, a=a, energy=energy)


def drawn_moment(xx: FloatArray, rows: int, root: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Moment of `rows` rows with features of scatter xx (p, p), and errors ``root @ N(0, I)`` independent of these."""
    values, vectors = np.linalg.eigh(xx)
    own, k = values > 1e-10 * max(values[-1], 1e-300) if len(values) else np.zeros(0, dtype=bool), len(root)
    regressed = rng.standard_normal((int(own.sum()), k)) @ root.T
    rest = max(rows - int(own.sum()), 0)
    if rest <= k:
        left = rng.standard_normal((rest, k))
    else:  # Bartlett's factor of a Wishart matrix
        left = np.triu(rng.standard_normal((k, k)), 1) + np.diag(np.sqrt(rng.chisquare(rest - np.arange(k))))
    xc, left = vectors[:, own] * np.sqrt(values[own]) @ regressed, left @ root.T
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
