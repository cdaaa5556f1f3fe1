"""The published experiment: held-out error and coverage of the published scheme against ε.

Random splits into training and test curves; on each the additive model is fitted once without privacy, then the
published noise is added to it many times. Intervals are scored twice: the published ones, which do not know of the
noise, so that their coverage rises with ε as in the literature; and honest ones, which widen with it. Two base lines go
with every table: the fit without privacy, and the mean of the training curves, which uses no predictor at all. Nothing
here is differentially private.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from tqdm import tqdm

from fdadp._common.argument_checks import whole
from fdadp._common.typing import FloatArray
from fdadp._version import __version__
from fdadp.datasets import FunctionalDataset, load_canadian_weather, load_dti2, load_lip_emg
from fdadp.datasets._data_locations import load_present
from fdadp.errors import ExtrapolationWarning, InputError, NotPrivateWarning
from fdadp.functional.metrics import coverage, rmspe
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.plot._matplotlib_figures import GREY, PALETTE, pyplot, saved
from fdadp.privacy import Privacy
from fdadp.published.laplace_on_regression import SENSITIVITIES, PublishedNoise, published_draws, with_intervals_of
from fdadp.regression import AdditiveFunctionOnFunction

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


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
    x, y = (as_curves(c) for c in (load_canadian_weather().X, load_canadian_weather().Y))
    x_means, y_means, grid = (a.reshape(*a.shape[:-1], 73, 5).mean(axis=-1) for a in (x.values, y.values, x.grid))
    return Paired("canadian-weather", x_means, y_means, grid, grid, "log10 mm per day")


def _pairs(data: FunctionalDataset, name: str, unit: str) -> Paired:
    x, y = as_curves(data.X), as_curves(data.Y)
    return Paired(name, x.values, y.values, x.grid, y.grid, unit)


DATASETS: Mapping[str, Callable[[bool], Paired]] = {
    "canadian-weather": _weather,
    "lip-emg": lambda download: _pairs(
        load_lip_emg(n_points=101, download=download), "lip-emg", "unit of the acceleration"
    ),
    "dti2": lambda download: _pairs(load_dti2(visit="first", download=download), "dti2", "unit of the diffusivity"),
}
"""By name, from whether the internet may be asked. Of dti2 the first complete scan of each of 95 people."""


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
        asked = (
            (Privacy(epsilon, random_state=noise_seeds[draw]), PublishedNoise(sensitivity=reading))
            for reading, epsilon, draw in grid
        )
        noisy = published_draws(fit, X, Y, asked)
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
    both = ("", "_published")
    table = results.groupby(keys, dropna=False, sort=False).agg(
        rmspe_mean=("rmspe", "mean"),
        rmspe_median=("rmspe", "median"),
        rmspe_p10=("rmspe", lambda v: v.quantile(0.1)),
        rmspe_p90=("rmspe", lambda v: v.quantile(0.9)),
        **{f"{k}{of}": (f"{k}{of}", "median" if k == "width_95" else "mean") for of in both for k in OF_INTERVALS},
        beats_mean_curve=("beats_mean_curve", "mean"),
        splits=("repeat", "nunique"),
        draws=("rmspe", "size"),
    )
    return table.reset_index()


# What the command line prints of an experiment, the files it writes, and RMSPE and coverage against ε.


ABOUT_INTERVALS = (
    "ACP: average coverage probability of pointwise prediction intervals; honest ones know of the noise and widen with "
    "it,\nthe published ones do not."
)
NOT_PRIVATE = (
    "The published scheme is NOT differentially private end to end: its noise scales, the mean curve, the "
    "eigenfunctions and the smoothing parameters are computed from the data and released without noise."
)


def rich_table(part: pd.DataFrame, unit: str = "") -> Table:
    """Table of one data set, from :func:`fdadp.demo.published_experiment.summarise`."""
    from rich import box
    from rich.table import Table

    splits = int(part["splits"].max())
    title = f"{part['dataset'].iloc[0]}: held-out curves, {splits} random splits" + (
        f", RMSPE in {unit}" if unit else ""
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("scheme", no_wrap=True, min_width=len("published, coefficient"))
    columns = ("ε", "RMSPE median", "RMSPE mean", "ACP 85 %", "ACP 95 %", "width 95 %", "published ACP 95 %")
    for name in (*columns, "beats mean curve"):
        table.add_column(name, justify="right")
    previous = ""
    for _, row in part.iterrows():
        base = row["scheme"] in (NO_PRIVACY, MEAN_CURVE)
        name = row["scheme"] if base else f"published, {row['sensitivity']}"
        if name != previous:
            table.add_section()
        previous = name
        table.add_row(
            name,
            "" if base else f"{row['epsilon']:g}",
            *(f"{row[column]:.3g}" for column in ("rmspe_median", "rmspe_mean")),
            *(f"{100 * row[column]:.1f} %" for column in ("acp_85", "acp_95")),
            f"{row['width_95']:.3g}",
            "" if base else f"{100 * row['acp_95_published']:.1f} %",
            "" if row["scheme"] == MEAN_CURVE else f"{100 * row['beats_mean_curve']:.0f} %",
        )
    return table


def write_experiment(
    out: Path, results: pd.DataFrame, data: Sequence[Paired], settings: Mapping[str, Any]
) -> dict[str, Path]:
    """Write ``results.csv`` (every split and draw), ``table.csv``, ``settings.json`` and ``experiment.png``.

    Returns
    -------
    dict
        Path of each by what it is; without matplotlib the picture is missing.
    """
    table = summarise(results)

    def figure() -> Any:
        return experiment_figure(table, units={d.name: d.unit for d in data})

    about = {"note": NOT_PRIVATE, **settings}
    names = {"results": "every split and draw", "figure": "experiment figure"}
    return write_results(out, results, table, about, figure, "experiment.png", names)


def write_results(
    out: Path,
    results: pd.DataFrame,
    table: pd.DataFrame | None,
    settings: Mapping[str, Any],
    figure: Callable[[], Any],
    picture: str,
    names: Mapping[str, str] | None = None,
) -> dict[str, Path]:
    """Write ``results.csv``, ``table.csv`` where there is one, ``settings.json`` and a picture.

    Parameters
    ----------
    out : Path
        Folder, made if it is not there.
    results, table : DataFrame
    settings : mapping
        The version is added.
    figure : callable
        Draws it; called last.
    picture : str
        File name of the figure.
    names : mapping, optional
        What to call ``"results"`` and ``"figure"``; by default "every fit" and "figure".

    Returns
    -------
    dict
        Path of each by what it is; without matplotlib the picture is missing.
    """
    called = {"results": "every fit", "figure": "figure", **(names or {})}
    out.mkdir(parents=True, exist_ok=True)
    paths = {called["results"]: out / "results.csv"}
    results.to_csv(out / "results.csv", index=False)
    if table is not None:
        paths["table"] = out / "table.csv"
        table.to_csv(paths["table"], index=False)
    paths["settings"] = out / "settings.json"
    paths["settings"].write_text(json.dumps({"fdadp": __version__, **settings}, indent=2) + "\n", encoding="utf-8")
    drawn = saved(figure, out / picture)
    return paths if drawn is None else paths | {called["figure"]: drawn}


# RMSPE and coverage against ε, from the table of :func:`fdadp.demo.published_experiment.summarise`.


READINGS = {
    "local": ("published, Δ: leave-one-out, L1", PALETTE[1], "o"),
    "coefficient": ("published, Δ: largest coefficient change", PALETTE[4], "s"),
    "scaled": ("published, Δ: that divided by n", PALETTE[2], "^"),
}
NEEDED = (
    *("dataset", "scheme", "sensitivity", "epsilon", "rmspe_median", "rmspe_p10", "rmspe_p90"),
    *(f"{name}{of}" for of in ("", "_published") for name in OF_INTERVALS),
)
MEASURES = (("rmspe", None), ("acp_85", 0.85), ("acp_95", 0.95), ("width_95", None))
"""Rows of the figure, and the nominal value of each."""


def experiment_figure(table: pd.DataFrame, *, units: dict[str, str] | None = None) -> Figure:
    """RMSPE, average coverage probability (ACP) and width of intervals against ε, one column a data set.

    Solid lines are of honest intervals, dashed ones of the published intervals, which do not know of the noise.
    Coverage alone would mislead: intervals that know of the noise keep it by growing, so their width is shown too.
    Lines of the RMSPE are medians over splits and draws, the band runs from the 10 % to the 90 % quantile. Two
    horizontal lines belong to every panel: the fit without privacy, and the mean curve, which uses no predictor.

    Parameters
    ----------
    table : DataFrame
        From :func:`fdadp.demo.published_experiment.summarise`.
    units : dict, optional
        Unit of Y by data set.

    Raises
    ------
    InputError
        Not such a table.
    """
    plt = pyplot()
    lacking = [name for name in NEEDED if name not in table]
    if lacking or table.empty:
        what = lacking or "rows"
        raise InputError(f"table must be one from fdadp.demo.published_experiment.summarise, got one without {what}")
    datasets = list(dict.fromkeys(table["dataset"]))
    figure: Figure
    figure, grid = plt.subplots(
        4,
        len(datasets),
        figsize=(3.9 * len(datasets) + 0.4, 10.6),
        squeeze=False,
        sharex=True,
        layout="constrained",
        height_ratios=(1.7, 1, 1, 1.3),
    )
    for column, name in enumerate(datasets):
        part = table[table["dataset"] == name]
        for axis, (measure, nominal) in zip(grid[:, column], MEASURES, strict=True):
            _panel(axis, part, measure, nominal)
        unit = (units or {}).get(name)
        grid[0, column].set_title(name)
        for row in (0, 3):
            grid[row, column].set_yscale("log")
        grid[0, column].set_ylabel("held-out RMSPE (median)" + (f"\n[{unit}]" if unit else ""))
        grid[3, column].set_ylabel("width of 95 % intervals" + (f"\n[{unit}]" if unit else ""))
        grid[3, column].set_xlabel("ε of each component")
        for row, level in ((1, 85), (2, 95)):
            grid[row, column].set_ylabel(f"coverage (ACP)\nof {level} % intervals" if column == 0 else "")
    handles, names = grid[0, 0].get_legend_handles_labels()
    for style, text in (("-", "intervals: honest"), ("--", "intervals: published")):
        handles.append(plt.Line2D([], [], color=GREY, linestyle=style))
        names.append(text)
    rows = 3 if len(datasets) > 1 else 7
    figure.legend(handles, names, loc="outside lower center", ncols=-(-len(names) // rows), frameon=False)
    return figure


def _panel(axis: Any, part: pd.DataFrame, measure: str, nominal: float | None) -> None:
    value = "rmspe_median" if measure == "rmspe" else measure
    for scheme, colour, style in (("no privacy", PALETTE[0], "-"), ("mean curve", "black", "--")):
        for level in part.loc[part["scheme"] == scheme, value]:
            axis.axhline(level, color=colour, linestyle=style, linewidth=1.6, label=scheme)
    noisy = part[part["scheme"] == "published"]
    for reading, (text, colour, marker) in READINGS.items():
        line = noisy[noisy["sensitivity"] == reading].sort_values("epsilon")
        if line.empty:
            continue
        axis.plot(line["epsilon"], line[value], color=colour, marker=marker, markersize=4.5, label=text)
        if measure != "rmspe":
            blind = line[f"{measure}_published"]
            axis.plot(line["epsilon"], blind, color=colour, marker=marker, markersize=3.5, linestyle="--", mfc="white")
        else:
            axis.fill_between(line["epsilon"], line["rmspe_p10"], line["rmspe_p90"], color=colour, alpha=0.15, lw=0)
    axis.set_xticks(sorted(noisy["epsilon"].unique()))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    if nominal is not None:
        axis.axhline(nominal, color=GREY, linestyle=":", linewidth=1.2)
        low = min(float(part[[measure, f"{measure}_published"]].min().min()), nominal)
        axis.set_ylim(min(nominal - 0.1, low - 0.02), 1.0)
