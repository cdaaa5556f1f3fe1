"""What private components of persons and of their curves would be worth, before there are data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdadp._common.argument_checks import fraction, is_number, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.planner.forecast_display import AnyForecast
from fdadp.planner.forecast_settings import Asked, Spread, quietly
from fdadp.privacy.rows._person_row_caps import check_most
from fdadp.private.public.gaussian_process_prior import PublicPrior

COHORTS, POINTS, MOST_CURVES = 16, 51, 100_000
"""Cohorts simulated, points of their grid, and their curves at most."""
FUNCTIONS, FALLING = 4, 0.5
"""Functions that persons differ in, and those that rows do; each has this share of the variance of the one before."""
ROUGHER = PublicPrior(n_response=30, y_length=0.2)
"""What curves are drawn from has more functions than the fit."""
HALF = 6.0
"""Half-width of the public range over the sd of the curves."""
ICC, WHITE = 0.5, 0.2
LEVELS = ("person", "row")


@dataclass(frozen=True)
class LevelsForecast(AnyForecast):
    """Predicted accuracy of :class:`~fdadp.summaries.PrivateMultilevelFPCA`; ``print`` shows it.

    Attributes
    ----------
    n, epsilon, delta, adjacency
        As asked for.
    max_rows, n_components : int
    row_shares : tuple of float
        Shares of persons with 1, 2, ... curves that were simulated.
    captured : dict of Spread
        By level, ``"person"`` and ``"row"``: the variance that the first private components hold, relative to what as
        many exact ones hold. Its mean over cohorts, what the worst tenth has at most, and the standard error.
    icc : float
        That was simulated.
    icc_width : Spread
        Width of 95 % intervals of the intraclass correlation.
    cohorts : int

    Examples
    --------
    >>> from fdadp.planner import plan_levels
    >>> plan_levels(2000, 4, epsilon=1.0, delta=1e-6).icc_width.mean < 0.2
    True
    """

    max_rows: int
    n_components: int
    row_shares: tuple[float, ...]
    captured: Mapping[str, Spread]
    icc: float
    icc_width: Spread
    cohorts: int

    mechanism = "private covariance"
    _closing = "From simulation of smooth curves under the public prior: no promise about your data."

    @property
    def _subject(self) -> str:
        return f" of two levels, at most {self.max_rows} curves a person,"

    def _facts(self) -> list[tuple[str, str]]:
        facts = []
        for name, share in self.captured.items():
            facts += share.facts(f"variance that {self.n_components} components hold, {name}", self.cohorts, digits=3)
        rows = float(np.dot(self.row_shares, np.arange(1, len(self.row_shares) + 1)))
        return [
            *facts,
            *self.icc_width.in_short("width of the 95 % interval of the ICC"),
            ("assumed: ICC", f"{self.icc:.2f}"),
            ("assumed: curves a person, on average", f"{rows:.1f}"),
        ]


class DrawnLevels:
    """Persons with several curves: both covariances drawn from a prior, white noise at single points.

    Parameters
    ----------
    rng : Generator
    grid : ndarray of shape (T,)
        On [0, 1].
    icc : float
        Share of the variance between persons of what is smooth.
    white : float
        Share of all variance that is white.
    power : float
        Of the prior shares of functions, that curves fall off with.

    Attributes
    ----------
    covariances : dict of ndarray of shape (T, T)
        By level; the variance of a curve is 1 on average over t, its white part included.
    mean : ndarray of shape (T,)
    """

    def __init__(
        self, rng: np.random.Generator, grid: FloatArray, icc: float, white: float, *, power: float = 1.0
    ) -> None:
        self.weights = quadrature_weights(grid)
        functions, shares = ROUGHER.response_functions(grid, self.weights)
        shares = np.maximum(shares, 0.0) ** power  # of few points there are more functions than have a share
        root = functions * np.sqrt(shares / shares.sum())
        self.mean, self.white = root @ rng.normal(size=shares.size), white
        self._roots: dict[str, FloatArray] = {}
        for name, share in zip(LEVELS, (icc, 1 - icc), strict=True):
            half = np.sqrt(self.weights)[:, None]
            own = np.linalg.qr(half * (root @ rng.normal(size=(shares.size, FUNCTIONS))))[0] / half
            values = FALLING ** np.arange(FUNCTIONS)
            self._roots[name] = own * np.sqrt((1 - white) * share * values / values.sum())
        self.covariances = {name: own @ own.T for name, own in self._roots.items()}

    def draw(self, ids: IntArray, rng: np.random.Generator) -> FloatArray:
        """Curves (rows, T) of persons 0 to ids[-1]; the last id is the largest."""
        persons = rng.normal(size=(int(ids[-1]) + 1, FUNCTIONS)) @ self._roots["person"].T
        own = rng.normal(size=(ids.size, FUNCTIONS)) @ self._roots["row"].T
        noise = math.sqrt(self.white) * rng.normal(size=own.shape)
        return np.asarray(self.mean + persons[ids] + own + noise)

    def captured(self, level: str, functions: FloatArray) -> float:
        """Variance that functions (d, T) hold, over what the d best functions hold."""
        half = np.sqrt(self.weights)
        K = half[:, None] * self.covariances[level] * half
        Q = np.linalg.qr((functions * half).T)[0]
        best = np.linalg.eigvalsh(K)[::-1][: len(functions)].sum()
        return float(np.trace(Q.T @ K @ Q) / best)


class OfLevels(NamedTuple):
    """Of one simulated fit: captured variances of persons and of rows, and the width of the ICC's interval."""

    person: float
    row: float
    width: float


def plan_levels(
    n: int,
    max_rows: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    rows: int | Sequence[float] | None = None,
    n_components: int = 4,
    icc: float = ICC,
    white: float = WHITE,
    adjacency: str | None = None,
    prior: PublicPrior | None = None,
) -> LevelsForecast:
    """Predict what private components of persons and of their curves will hold, before any data are touched.

    Cohorts are drawn from a public prior, each with its own mean and two covariances of four functions, and fitted by
    :class:`~fdadp.summaries.PrivateMultilevelFPCA`. It takes up to half a minute.

    Parameters
    ----------
    n : int
        Number of persons.
    max_rows : int
        Curves of a person that count at most, as of the fit.
    epsilon : float
    delta : float, optional
        None means pure ε.
    rows : int or sequence of float, optional
        How many curves each person has; or shares of persons with 1, 2, ... curves. Default: 1 to `max_rows`, equally
        often.
    n_components : int
        Of each level, whose captured variance the plan gives.
    icc : float
        Share of the smooth variance that is between persons.
    white : float
        Share of the variance of single points that is noise, in [0, 1).
    adjacency : {"zero-out", "add-remove", "replace"}, optional
    prior : PublicPrior, optional
        Of the fit.

    Returns
    -------
    LevelsForecast

    Raises
    ------
    InputError, PrivacyError
        A setting out of range, or too few persons or too small a budget for any fit; the text says what it takes.

    Notes
    -----
    Where persons have more than 100,000 curves, fewer persons with the same noise a person are simulated. Then the
    sampling error is overstated, which is cautious.

    Examples
    --------
    >>> from fdadp.planner import plan_levels
    >>> forecast = plan_levels(2000, 4, epsilon=1.0, delta=1e-6)
    >>> forecast.captured["person"].mean > 0.9
    True
    """
    asked = Asked.of(n, epsilon, delta, adjacency)
    if check_most(max_rows, "for several curves a person") < 2:
        raise PrivacyError("max_rows must be at least 2: both levels are learned from two curves a person or more")
    shares = _row_shares(rows, max_rows)
    few = fewer(asked, shares)
    icc = fraction(icc, "icc")
    white = white_share(white)
    kept = whole(n_components, "n_components")
    how = {"n_components": kept, "bounds": (-HALF, HALF), "max_rows": max_rows, "prior": prior}
    found = np.array([_one_cohort(asked, few, shares, icc, white, how, seed) for seed in range(COHORTS)])
    return LevelsForecast(
        **vars(asked),
        max_rows=max_rows,
        n_components=kept,
        row_shares=tuple(shares.tolist()),
        captured={name: Spread.of(found[:, i]) for i, name in enumerate(LEVELS)},
        icc=icc,
        icc_width=Spread.of(found[:, 2], least_is_best=True),
        cohorts=COHORTS,
    )


def fewer(asked: Asked, shares: FloatArray) -> int:
    """Persons to simulate, whose curves are :data:`MOST_CURVES` at most."""
    return min(asked.n, int(MOST_CURVES / (shares @ np.arange(1, shares.size + 1))))


def white_share(white: Any) -> float:
    """Share of the variance of single points that is noise, checked."""
    if not is_number(white) or not 0 <= white < 1:
        raise InputError(f"white must be a share of at least 0 and below 1, got {white!r}")
    return float(white)


def _row_shares(rows: int | Sequence[float] | None, max_rows: int) -> FloatArray:
    """Shares of persons with 1, 2, ... curves."""
    if rows is None:
        return np.full(max_rows, 1 / max_rows)
    if np.ndim(rows) == 0:
        return np.append(np.zeros(whole(rows, "rows") - 1), 1.0)
    shares = np.asarray(rows, dtype=np.float64)
    if shares.ndim != 1 or not (shares >= 0).all() or not math.isclose(float(shares.sum()), 1.0, rel_tol=1e-6):
        raise InputError(f"rows must be a number, or shares of persons with 1, 2, ... curves, got {rows!r}")
    return np.asarray(shares / shares.sum())


def _one_cohort(
    asked: Asked, few: int, shares: FloatArray, icc: float, white: float, how: Mapping[str, object], seed: int
) -> OfLevels:
    from fdadp.summaries.multilevel_fpca import PrivateMultilevelFPCA

    rng = np.random.default_rng([seed, few])
    grid = np.linspace(0, 1, POINTS)
    law = DrawnLevels(rng, grid, icc, white)
    ids = np.repeat(np.arange(few), rng.choice(np.arange(1, shares.size + 1), few, p=shares))
    with quietly():
        model = PrivateMultilevelFPCA(privacy=asked.privacy(few, seed), **how)  # type: ignore[arg-type]
        model.fit(law.draw(ids, rng), groups=ids)
    person, row = (law.captured(name, model.eigenfunctions_[name]) for name in LEVELS)
    low, high = model.icc_interval()
    return OfLevels(person, row, high - low)
