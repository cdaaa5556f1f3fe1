"""Which call predicts curves best from curves? Shares of held-out variance, by data set and model.

    FDADP_DATA=... python benchmarks/held_out.py [--sets weather lip] > benchmarks/results/held-out.md
    python benchmarks/held_out.py --choose --seed 3000     the call for predictions, on 24 other simulated cohorts

Real sets are judged by ten folds, repeated with other folds where curves are few: the share of the squared distance
from the training mean curve that a prediction explains, R2. Simulated cohorts are judged on 300 new curves. Beside
each R2 stands its difference from that of the default, with a paired standard error: over held-out curves of real
sets, over cohorts of simulated ones. Curves of one person never are in two folds: there is one curve a person.
"Worst?" says whether a call of ours explains less than components and than ridge, and by how much less than the worse
of both, with the paired standard error of that difference.

* `default`: ``FunctionalRegression("Y ~ ff(X)")``.
* `refund's k`: The same with ``k="refund"``.
* `errors="curve"`, `eigen`: The default with ``errors="curve"``, and with ``response_basis="eigen"``.
* `curve, k=20`: ``"Y ~ ff(X, k=(20, 15))"`` with ``errors="curve"``: 20 functions along s, not 5.
* `eigen, k=20`: ``"Y ~ ff(X, k=(20, 5))"`` with ``response_basis="eigen"``, as many.
* `mean of both`: The mean of what `curve, k=20` and `eigen, k=20` predict.
* `components`: Four component scores of X as numbers, ``"Y ~ z0 + z1 + z2 + z3"``.
* `k=20`, on request: ``"Y ~ ff(X, k=(20, 15))"``, whose errors count as independent.
* `ridge`: Ridge regression of the points of Y on the points of X, its parameter by leave-one-out (scikit-learn).

Every set with labels gives them to all models. Which call is for predictions was chosen by `--choose`: curves X that
are rough or smooth, effects `wave`, `bump` and `delay` (of what was a tenth before), smooth or white errors, 30 or 100
curves. These cohorts are not among those of the table, which has folds and cohorts of seeds that chose nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fdadp
from fdadp import FunctionalRegression, load_canadian_weather, load_dti, load_dti2, load_icu
from fdadp.datasets import load_lip_emg, load_nhanes_wear
from fdadp.errors import MissingDataError
from fdadp.functional.gap_filling import fill_linear

Columns = dict[str, Any]
Predict = Callable[[Columns, Columns, Columns], np.ndarray]
"""Of columns to train on, new columns and grids: predicted curves."""

# --- models ---


def rows_of(data: Columns, which: Any) -> Columns:
    """Some rows of all columns."""
    return {name: column[which] for name, column in data.items()}


def functional(formula: str = "Y ~ ff(X)", **settings: Any) -> Predict:
    """One call of the estimator."""

    def predict(train: Columns, new: Columns, grids: Columns) -> np.ndarray:
        whole = formula + (" + C(g)" if "g" in train else "")
        model = FunctionalRegression(whole, progress=False, **settings).fit(train, grids=grids)
        return np.asarray(model.predict(new))

    return predict


def mean_of(*models: Predict) -> Predict:
    """The mean of the predictions of several models."""
    return lambda *given: np.mean([predict(*given) for predict in models], axis=0)


def components(train: Columns, new: Columns, grids: Columns) -> np.ndarray:
    """Linear effects of four component scores, which are found on the training curves."""
    mean = train["X"].mean(axis=0)
    axes = np.linalg.svd(train["X"] - mean, full_matrices=False)[2][:4]
    names = [f"z{k}" for k in range(len(axes))]
    known, asked = ({n: v for n, v in one.items() if n != "X"} for one in (train, new))
    for one, columns in ((train, known), (new, asked)):
        columns |= dict(zip(names, ((one["X"] - mean) @ axes.T).T, strict=True))
    formula = "Y ~ " + " + ".join(names) + (" + C(g)" if "g" in train else "")
    model = FunctionalRegression(formula, progress=False).fit(known, grids={"Y": grids["Y"]})
    return np.asarray(model.predict(asked))


def ridge(train: Columns, new: Columns, grids: Columns) -> np.ndarray:
    """Ridge regression on all points, and on indicators of labels."""
    levels = np.unique(train["g"])[1:] if "g" in train else ()
    points = [np.column_stack([one["X"], *(one["g"] == level for level in levels)]) for one in (train, new)]
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 6, 33))).fit(points[0], train["Y"])
    return np.asarray(model.predict(points[1]))


WITH_CURVES = functional("Y ~ ff(X, k=(20, 15))", errors="curve")
WITH_EIGENFUNCTIONS = functional("Y ~ ff(X, k=(20, 5))", response_basis="eigen")

MODELS: dict[str, Predict] = {
    "default": functional(),
    "refund's k": functional(k="refund"),
    'errors="curve"': functional(errors="curve"),
    "curve, k=20": WITH_CURVES,
    "eigen": functional(response_basis="eigen"),
    "eigen, k=20": WITH_EIGENFUNCTIONS,
    "mean of both": mean_of(WITH_CURVES, WITH_EIGENFUNCTIONS),
    "components": components,
    "ridge": ridge,
    "k=20": functional("Y ~ ff(X, k=(20, 15))"),
}

RIVALS = ("components", "ridge")
JUDGED = ("default", "curve, k=20", "mean of both")
"""Of ours, beside both rivals: what is called without thought, and what the page has for predictions."""

# --- data ---


@dataclass(frozen=True)
class RealSet:
    """Curves of independent persons or places.

    Attributes
    ----------
    data : dict
        ``X`` (n, S) and ``Y`` (n, T) without gaps, and labels ``g`` (n,) where there are some.
    seen : ndarray of bool, shape (n, T), or None
        What was observed of Y; predictions are judged there alone.
    """

    data: Columns
    grids: Columns = field(default_factory=dict)
    seen: Any = None


def curves(sample: Any, every: int = 1) -> tuple[Any, Any]:
    """Values and grid of curves, thinned."""
    return sample.data_matrix[:, ::every, 0], sample.grid_points[0][::every]


def weather(response: str, *, region: bool = False) -> RealSet:
    """Every tenth day of the mean year of 35 stations."""
    bunch = load_canadian_weather()
    (x, s), (y, t) = curves(bunch.X, 10), curves(bunch.Y, 10)
    if response == "temperature":
        x, s, y, t = y, t, x, s
    labels = {"g": bunch.stations["region"].to_numpy(dtype=object)} if region else {}
    return RealSet({"X": x, "Y": y} | labels, {"X": s, "Y": t})


def lip() -> RealSet:
    """Acceleration of the lip from the muscle's activity, at every 20th point."""
    bunch = load_lip_emg(download=False)
    (x, s), (y, t) = curves(bunch.X, 20), curves(bunch.Y, 20)
    return RealSet({"X": x, "Y": y}, {"X": s, "Y": t})


def tracts(load: Callable[..., Any], *, swap: bool = False, case: bool = False) -> RealSet:
    """First complete scan of each person."""
    bunch = load(visit="first", download=False)
    (x, s), (y, t) = curves(bunch.X), curves(bunch.Y)
    if swap:
        x, s, y, t = y, t, x, s
    labels = {"g": np.where(np.asarray(bunch.covariates["case"]) == 1, "case", "control")} if case else {}
    return RealSet({"X": x, "Y": y} | labels, {"X": s, "Y": t})


def intensive_care(curve: str, n: int) -> RealSet:
    """Second day from the first, of stays that were observed in 19 hours of each or more; gaps are filled to fit."""
    bunch = load_icu(curve, as_frame=True, download=False)
    enough = (bunch.X.notna().sum(axis=1) > 18) & (bunch.Y.notna().sum(axis=1) > 18)
    x, y = (days[enough].to_numpy()[:n] for days in (bunch.X, bunch.Y))
    hours = np.arange(24.0)
    return RealSet({"X": fill_linear(x, hours), "Y": fill_linear(y, hours)}, {"X": hours, "Y": hours}, ~np.isnan(y))


def wear(n: int) -> RealSet:
    """Share of each hour in which a device was worn: the second recorded day of persons from their first."""
    bunch = load_nhanes_wear(minutes=60)
    values, person = bunch.Y.data_matrix[..., 0], np.asarray(bunch.groups)
    starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
    starts = starts[(starts + 1 < len(person))]
    starts = starts[person[starts + 1] == person[starts]][:n]
    hours = bunch.Y.grid_points[0]
    return RealSet({"X": values[starts], "Y": values[starts + 1]}, {"X": hours, "Y": hours})


REAL: dict[str, Callable[[], RealSet]] = {
    "weather: log rain from temperature": lambda: weather("rain"),
    "weather: log rain from temperature and region": lambda: weather("rain", region=True),
    "weather: temperature from log rain": lambda: weather("temperature"),
    "lip: acceleration from muscle": lip,
    "dti2: rcst from cca": lambda: tracts(load_dti2),
    "dti2: cca from rcst": lambda: tracts(load_dti2, swap=True),
    "dti: rcst from cca and case": lambda: tracts(load_dti, case=True),
    "icu: heart rate of day 2 from day 1, 60": lambda: intensive_care("heart_rate", 60),
    "icu: heart rate of day 2 from day 1, 300": lambda: intensive_care("heart_rate", 300),
    "icu: pressure of day 2 from day 1, 100": lambda: intensive_care("pressure", 100),
    "icu: pressure of day 2 from day 1, 300": lambda: intensive_care("pressure", 300),
    "nhanes: hours worn, day 2 from day 1, 200": lambda: wear(200),
}

GRID = np.linspace(0, 1, 31)
WEIGHTS = np.gradient(GRID)
NEW = 300


def smooth(length: float) -> Any:
    """Root of a covariance of smooth curves."""
    return np.linalg.cholesky(
        np.exp(-(np.subtract.outer(GRID, GRID) ** 2) / (2 * length**2)) + 1e-8 * np.eye(GRID.size)
    )


EFFECTS = {
    "wave": 3 * np.sin(np.pi * np.add.outer(GRID, GRID)),
    "bump": 8 * np.exp(-((np.subtract.outer(GRID, GRID) / 0.15) ** 2)) * np.sin(4 * GRID),
    "delay": 12 * np.exp(-(((np.subtract.outer(GRID, GRID) + 0.1) / 0.06) ** 2)),
}
"""Surfaces β(s, t): one that is smooth everywhere, a ridge of width .15, and one of .06 beside the diagonal."""


def errors(kind: str, n: int, draw: np.random.Generator) -> Any:
    """Errors of curves: smooth and a little white; autoregressive with .6 from point to point; white."""
    if kind == "smooth":
        return 0.55 * draw.normal(size=(n, GRID.size)) @ smooth(0.15).T + 0.2 * draw.normal(size=(n, GRID.size))
    steps = draw.normal(size=(n, GRID.size))
    if kind == "rough":
        for j in range(1, GRID.size):
            steps[:, j] = 0.6 * steps[:, j - 1] + 0.8 * steps[:, j]
    return 0.6 * steps


def cohort(effect: str, kind: str, n: int, seed: int, *, rough: bool = False) -> tuple[Columns, Columns]:
    """Curves to train on, and new ones."""
    draw = np.random.default_rng([seed, n, list(EFFECTS).index(effect)])
    size = n + NEW, GRID.size
    if rough:
        x = 0.8 * draw.normal(size=size) @ smooth(0.04).T + 0.5 * draw.normal(size=size)
    else:
        x = draw.normal(size=size) @ smooth(0.15).T + 0.5 * draw.normal(size=(n + NEW, 1))
    y = 1 + np.sin(2 * np.pi * GRID) + (x * WEIGHTS) @ EFFECTS[effect] + errors(kind, n + NEW, draw)
    both = {"X": x, "Y": y}
    return rows_of(both, slice(n)), rows_of(both, slice(n, None))


SIMULATED = {
    f"{effect}, {kind} errors, {n}": (effect, kind, n, False)
    for effect in ("wave", "bump")
    for kind in ("smooth", "rough", "white")
    for n in (30, 100)
}
OTHERS = {
    f"{'rough' if rough else 'smooth'} X, {effect}, {kind} errors, {n}": (effect, kind, n, rough)
    for rough in (True, False)
    for effect in EFFECTS
    for kind in ("smooth", "white")
    for n in (30, 100)
}
"""On which the call for predictions was chosen."""

# --- shares of held-out variance ---


@dataclass(frozen=True)
class Found:
    """Shares explained by each model.

    Attributes
    ----------
    differences : dict
        From the default, with standard errors.
    worst : dict
        By how much calls of ours are below the worse of both rivals, with standard errors; negative where above.
    """

    n: int
    shares: dict[str, float]
    differences: dict[str, tuple[float, float]]
    worst: dict[str, tuple[float, float]]
    seconds: dict[str, float]

    @classmethod
    def of(cls, n: int, lost: dict[str, np.ndarray], about: np.ndarray, seconds: dict[str, float]) -> Found:
        """Of squares of each unit about predictions, and about the training mean."""
        shares = {name: 1 - float(own.sum() / about.sum()) for name, own in lost.items()}

        def below(name: str, other: str) -> tuple[float, float]:
            more = lost[name] - lost[other]
            return float(more.sum() / about.sum()), float(np.sqrt(len(more)) * more.std(ddof=1) / about.sum())

        rivals = [name for name in RIVALS if name in lost]
        worst = {name: below(name, min(rivals, key=shares.__getitem__)) for name in JUDGED if rivals and name in lost}
        return cls(n, shares, {name: below("default", name) for name in lost}, worst, seconds)


def of_real(case: RealSet, seeds: range, models: dict[str, Predict]) -> Found:
    """Ten folds, repeated."""
    n = len(case.data["Y"])
    seen = np.ones_like(case.data["Y"], dtype=bool) if case.seen is None else case.seen
    lost, about, seconds = {name: np.zeros(n) for name in models}, np.zeros(n), dict.fromkeys(models, 0.0)
    for seed in seeds:
        for fit, left in KFold(10, shuffle=True, random_state=seed).split(case.data["Y"]):
            train, new = rows_of(case.data, fit), rows_of(case.data, left)
            truth, kept = new["Y"], seen[left]
            about[left] += (kept * (truth - train["Y"].mean(axis=0)) ** 2).sum(axis=1)
            given = {name: column for name, column in new.items() if name != "Y"}
            for name, predict in models.items():
                start = time.process_time()
                lost[name][left] += (kept * (truth - predict(train, given, case.grids)) ** 2).sum(axis=1)
                seconds[name] += (time.process_time() - start) / (10 * len(seeds))
    return Found.of(n, lost, about, seconds)


def of_cohorts(law: tuple[str, str, int, bool], seeds: range, models: dict[str, Predict]) -> Found:
    """New curves of several cohorts."""
    grids, n, size = {"X": GRID, "Y": GRID}, law[2], len(seeds)
    lost, about, seconds = {name: np.zeros(size) for name in models}, np.zeros(size), dict.fromkeys(models, 0.0)
    for i, seed in enumerate(seeds):
        train, new = cohort(*law[:3], seed, rough=law[3])
        about[i] = ((new["Y"] - train["Y"].mean(axis=0)) ** 2).sum()
        for name, predict in models.items():
            start = time.process_time()
            lost[name][i] = ((new["Y"] - predict(train, {"X": new["X"]}, grids)) ** 2).sum()
            seconds[name] += (time.process_time() - start) / size
    return Found.of(n, lost, about, seconds)


def sets(asked: argparse.Namespace, models: dict[str, Predict]) -> Iterator[tuple[str, Found]]:
    """Each set with what was found; real ones that are not there are named on stderr."""

    def wanted(name: str) -> bool:
        return not asked.sets or any(name.startswith(start) for start in asked.sets)

    def seeds(count: int) -> range:
        return range(asked.seed, asked.seed + count)

    for name, make in () if asked.choose else REAL.items():
        if wanted(name):
            try:
                case = make()
            except MissingDataError as missing:
                print(f"{name}: not there. {missing}", file=sys.stderr)
                continue
            yield name, of_real(case, seeds(asked.repeats if len(case.data["Y"]) <= 150 else 1), models)
    for name, law in (OTHERS if asked.choose else SIMULATED).items():
        if wanted(name):
            yield name, of_cohorts(law, seeds(asked.cohorts if law[2] < 100 else max(asked.cohorts // 2, 2)), models)


def said(worst: tuple[float, float]) -> str:
    """Whether a call is the worst, as a cell of the table; in bold beyond two standard errors."""
    by, se = worst
    if by <= 0:
        return "no"
    return f"**by {by:.3f} ± {se:.3f}**" if by > 2 * se else f"by {by:.3f} ± {se:.3f}"


def line(name: str, found: Found) -> str:
    """A row of the table: the best share in bold."""
    best = max(round(share, 3) for share in found.shares.values())
    cells = []
    for model, share in found.shares.items():
        value = f"**{share:.3f}**" if round(share, 3) == best else f"{share:.3f}"
        less, se = found.differences[model]
        cells.append(value if model == "default" else f"{value} ({less:+.3f} ± {se:.3f})")
    return f"| {name} | {found.n} | " + " | ".join([*cells, *map(said, found.worst.values())]) + " |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=[], help="beginnings of their names")
    parser.add_argument("--repeats", type=int, default=5, help="of ten folds, of sets of up to 150 curves")
    parser.add_argument("--cohorts", type=int, default=40, help="of 30 curves, half as many of 100")
    parser.add_argument("--seed", type=int, default=5000, help="the first, of folds and of cohorts")
    parser.add_argument("--models", nargs="*", default=[name for name in MODELS if name != "k=20"])
    parser.add_argument("--choose", action="store_true", help="on other simulated cohorts")
    asked = parser.parse_args(arguments)
    models = {name: MODELS[name] for name in dict.fromkeys(("default", *asked.models))}
    judged = [f"{name}: worst?" for name in JUDGED if name in models and set(RIVALS) & set(models)]
    typed = " ".join(sys.argv[1:] if arguments is None else arguments)
    print(f"`{f'python benchmarks/held_out.py {typed}'.strip()}`, fdadp {fdadp.__version__}.\n")
    print(f"| set | curves | {' | '.join([*models, *judged])} |\n" + "|---" * (2 + len(models) + len(judged)) + "|")
    found: dict[bool, list[Found]] = {True: [], False: []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, own in sets(asked, models):
            print(line(name, own), flush=True)
            found[name in REAL].append(own)
    blank = " |" * len(judged)
    for real, title in ((True, "real sets"), (False, "simulated sets")):
        if found[real]:
            means = (f"{np.mean([own.shares[name] for own in found[real]]):.3f}" for name in models)
            print(f"| mean of {len(found[real])} {title} | | {' | '.join(means)} |{blank}")
    both = [*found[True], *found[False]]
    mean_seconds = (f"{np.mean([own.seconds[name] for own in both]):.2f}" for name in models)
    print(f"| CPU seconds of a fit and its predictions | | {' | '.join(mean_seconds)} |{blank}")


if __name__ == "__main__":
    main()
