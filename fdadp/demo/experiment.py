"""The published experiment: held-out error and coverage of the published scheme against ε.

Random splits into training and test curves; on each the additive model is fitted once without privacy, then the
published noise is added to it many times. Intervals are scored twice: the published ones, which do not know of the
noise, so that their coverage rises with ε as in the literature; and honest ones, which widen with it. Two base lines go
with every table: the fit without privacy, and the mean of the training curves, which uses no predictor at all. Nothing
here is differentially private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from tqdm import tqdm

from fdadp._common.checks import whole
from fdadp._common.typing import FloatArray
from fdadp.datasets._places import load_present
from fdadp.errors import ExtrapolationWarning, InputError, NotPrivateWarning
from fdadp.functional.metrics import coverage, rmspe
from fdadp.functional.tables.curves import as_curves
from fdadp.privacy import Privacy
from fdadp.published.regression import SENSITIVITIES, PublishedNoise, published_draws, with_intervals_of
from fdadp.regression import AdditiveFunctionOnFunction

NO_PRIVACY, MEAN_CURVE, PUBLISHED = "no privacy", "mean curve", "published"
LEVELS = (0.85, 0.95)
OF_INTERVALS = ("acp_85", "acp_95", "width_95")


@dataclass(frozen=True)
class Paired:
    """Complete curves of one data set, as the experiment takes them.

    Attributes
    ----------
    name : str
    X, Y : ndarray of shape (n, S) and (n, T)
    s, t : ndarray of shape (S,) and (T,)
    unit : str
        Of Y, and so of the RMSPE.
    """

    name: str
    X: FloatArray
    Y: FloatArray
    s: FloatArray
    t: FloatArray
    unit: str


def _weather(download: bool) -> Paired:
    """Five-day means: 365 = 73 × 5."""
    from fdadp.datasets import load_canadian_weather

    x, y = (as_curves(c) for c in (load_canadian_weather().X, load_canadian_weather().Y))
    x_means, y_means, grid = (a.reshape(*a.shape[:-1], 73, 5).mean(axis=-1) for a in (x.values, y.values, x.grid))
    return Paired("canadian-weather", x_means, y_means, grid, grid, "log10 mm per day")


def _lip(download: bool) -> Paired:
    from fdadp.datasets import load_lip_emg

    data = load_lip_emg(n_points=101, download=download)
    x, y = as_curves(data.X), as_curves(data.Y)
    return Paired("lip-emg", x.values, y.values, x.grid, y.grid, "unit of the acceleration")


def _dti2(download: bool) -> Paired:
    """First complete scan of each of 95 people: rows are people."""
    from fdadp.datasets import load_dti2

    data = load_dti2(visit="first", download=download)
    x, y = as_curves(data.X), as_curves(data.Y)
    return Paired("dti2", x.values, y.values, x.grid, y.grid, "unit of the diffusivity")


DATASETS: Mapping[str, Callable[[bool], Paired]] = {"canadian-weather": _weather, "lip-emg": _lip, "dti2": _dti2}


def load(names: Sequence[str], *, download: bool = False) -> tuple[list[Paired], dict[str, str]]:
    """Load those of :data:`DATASETS` that are present, and say why others are missing; raises InputError."""
    return load_present(names, DATASETS, download=download)


def run(
    data: Paired,
    *,
    epsilons: Sequence[float] = (0.05, 0.1, 0.15, 0.2),
    sensitivities: Sequence[str] = SENSITIVITIES,
    repeats: int = 50,
    draws: int = 10,
    test_share: float = 0.2,
    model: AdditiveFunctionOnFunction | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Run the experiment on one data set.

    Parameters
    ----------
    data : Paired
    epsilons : sequence of float
        ε of each component's noise, as the literature states it.
    sensitivities : sequence of {"local", "coefficient", "scaled"}
        Readings of Δ_k, see :class:`fdadp.published.PublishedNoise`.
    repeats : int
        Random splits.
    draws : int
        Draws of the noise per split. The same standard Laplace draws serve every ε and every reading, so that lines
        of a figure differ by scale and not by luck.
    test_share : float
        Share of the curves that is held out.
    model : AdditiveFunctionOnFunction, optional
        Settings of the fit; default those of the class with 7 x 7 splines. Its ``privacy`` must be None.
    seed : int
        The answer depends on it alone, not on `jobs`.
    jobs : int
        Processes.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        One row per split, scheme, reading, ε and draw: ``dataset``, ``repeat``, ``scheme`` (:data:`NO_PRIVACY`,
        :data:`MEAN_CURVE` or :data:`PUBLISHED`), ``sensitivity``, ``epsilon``, ``draw``, ``rmspe`` (unit of Y),
        ``acp_85``, ``acp_95`` (shares), ``width_95`` (mean width of the 95 % intervals, unit of Y), all three of
        intervals that know of the noise, and ``acp_85_published``, ``acp_95_published``, ``width_95_published`` of
        the published ones, which do not (the same where there is no noise), ``beats_mean_curve`` and ``outside`` (share
        of held-out predictor values beyond the training range).

    Raises
    ------
    InputError, PrivacyError
        Settings out of range; raised before anything is fitted.
    """
    whole(repeats, "repeats")
    whole(draws, "draws")
    n_test = round(test_share * len(data.X))
    if not 1 <= n_test < len(data.X):
        raise InputError(f"test_share must leave curves on both sides, got {test_share!r} of {len(data.X)} curves")
    settings = [(reading, float(epsilon)) for reading in sensitivities for epsilon in epsilons]
    for reading, epsilon in settings:
        Privacy(epsilon)
        PublishedNoise(sensitivity=reading)
    estimator = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7) if model is None else clone(model)
    estimator.set_params(progress=False)
    seeds = np.random.SeedSequence(seed).spawn(repeats)
    tasks = [(data, estimator, settings, draws, n_test, repeat, seeds[repeat]) for repeat in range(repeats)]
    if jobs == 1:
        results: Iterator[list[dict[str, Any]]] = (_one_split(*task) for task in tasks)
    else:
        from joblib import Parallel, delayed

        results = Parallel(n_jobs=jobs, return_as="generator")(delayed(_one_split)(*task) for task in tasks)
    bar = tqdm(results, total=repeats, desc=data.name, unit="split", disable=not progress)
    return pd.DataFrame([row for rows in bar for row in rows])


def _one_split(
    data: Paired,
    estimator: AdditiveFunctionOnFunction,
    settings: Sequence[tuple[str, float]],
    draws: int,
    n_test: int,
    repeat: int,
    seed: np.random.SeedSequence,
) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.X))
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    noise_seeds = [int(s) for s in rng.integers(2**32, size=draws)]
    X, Y, x_new, y_new = data.X[train], data.Y[train], data.X[test], data.Y[test]
    with warnings.catch_warnings():
        # Said once for the whole experiment: by the tables, and by the column `outside`.
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", NotPrivateWarning)
        fit = clone(estimator).fit(X, Y, s=data.s, t=data.t)
        mean = _score(y_new, *_mean_curve(Y, n_test))
        rows: list[dict[str, Any]] = [
            {"scheme": MEAN_CURVE, **mean},
            {"scheme": NO_PRIVACY, **_score_model(fit, x_new, y_new)},
        ]
        grid = [(reading, epsilon, draw) for reading, epsilon in settings for draw in range(draws)]
        noisy = published_draws(
            fit,
            X,
            Y,
            (
                (Privacy(epsilon, random_state=noise_seeds[draw]), PublishedNoise(sensitivity=reading))
                for reading, epsilon, draw in grid
            ),
        )
        for (reading, epsilon, draw), release in zip(grid, noisy, strict=True):
            where = {"scheme": PUBLISHED, "sensitivity": reading, "epsilon": epsilon, "draw": draw}
            blind = _score_model(with_intervals_of(release, fit), x_new, y_new)
            rows.append(
                where | _score_model(release, x_new, y_new) | {f"{k}_published": blind[k] for k in OF_INTERVALS}
            )
    low, high = fit.x_range_
    common = {"dataset": data.name, "repeat": repeat}
    outside = float(((x_new < low) | (x_new > high)).mean())
    empty = {"scheme": "", "sensitivity": "", "epsilon": np.nan, "draw": 0}
    rows = [{f"{k}_published": row[k] for k in OF_INTERVALS} | row for row in rows]
    return [
        common | empty | row | {"beats_mean_curve": row["rmspe"] < mean["rmspe"], "outside": outside} for row in rows
    ]


def _mean_curve(Y: FloatArray, n_new: int) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
    """Predict the training mean for everyone, with the usual intervals for one more normal observation."""
    from scipy.stats import t as student

    n = len(Y)
    mean, sd = Y.mean(axis=0), Y.std(axis=0, ddof=1) * np.sqrt(1 + 1 / n)
    curves = [mean + side * student.ppf((1 + level) / 2, n - 1) * sd for level in LEVELS for side in (-1, 1)]
    predicted, *limits = (np.repeat(curve[None], n_new, axis=0) for curve in (mean, *curves))
    return predicted, list(zip(limits[::2], limits[1::2], strict=True))


def _score_model(model: AdditiveFunctionOnFunction, x: FloatArray, y: FloatArray) -> dict[str, float]:
    return _score(y, model.predict(x), [model.predict_interval(x, level=level) for level in LEVELS])


def _score(y: FloatArray, predicted: FloatArray, limits: list[tuple[FloatArray, FloatArray]]) -> dict[str, float]:
    shares = {f"acp_{100 * lv:.0f}": coverage(y, *pair) for lv, pair in zip(LEVELS, limits, strict=True)}
    lower, upper = limits[-1]
    return {"rmspe": rmspe(y, predicted), **shares, "width_95": float(np.mean(upper - lower))}


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Average over splits and draws.

    Parameters
    ----------
    results : DataFrame
        One or several results of :func:`run`, concatenated.

    Returns
    -------
    DataFrame
        One row per data set, scheme, reading and ε, base lines first: ``rmspe_mean``, ``rmspe_median``, ``rmspe_p10``,
        ``rmspe_p90``, ``acp_85``, ``acp_95`` (means), ``width_95`` (median), these three also ``_published``,
        ``beats_mean_curve`` (share), ``splits`` and ``draws`` (rows averaged). Mean and median of the RMSPE are far
        apart where the noise is large.
    """
    keys = ["dataset", "scheme", "sensitivity", "epsilon"]
    table = results.groupby(keys, dropna=False, sort=False).agg(
        rmspe_mean=("rmspe", "mean"),
        rmspe_median=("rmspe", "median"),
        rmspe_p10=("rmspe", lambda v: v.quantile(0.1)),
        rmspe_p90=("rmspe", lambda v: v.quantile(0.9)),
        acp_85=("acp_85", "mean"),
        acp_95=("acp_95", "mean"),
        width_95=("width_95", "median"),
        acp_85_published=("acp_85_published", "mean"),
        acp_95_published=("acp_95_published", "mean"),
        width_95_published=("width_95_published", "median"),
        beats_mean_curve=("beats_mean_curve", "mean"),
        splits=("repeat", "nunique"),
        draws=("rmspe", "size"),
    )
    return table.reset_index()
