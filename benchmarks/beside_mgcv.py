"""Generalised additive models of numbers beside mgcv, pyGAM and statsmodels on the same data.

    python benchmarks/beside_mgcv.py --out benchmarks/results/beside-mgcv.md

mgcv is run by Rscript. pyGAM 0.12 wants a SciPy below 1.17: install it beside fdadp in an environment of its own. What
is not installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from fdadp import ScalarRegression

Array = np.ndarray
FAMILIES = {"gaussian": "gaussian()", "binomial": "binomial()", "poisson": "poisson()", "gamma": 'Gamma(link = "log")'}


def mean_of(family: str, eta: Array) -> Array:
    inverse = {"gaussian": lambda e: e, "binomial": lambda e: 1 / (1 + np.exp(-e))}
    return inverse.get(family, np.exp)(eta)


@dataclass(frozen=True)
class Model:
    """A model in the words of each program, and data for it.

    Attributes
    ----------
    family, formula, in_r : str
    smooth, linear, labels : tuple of str
        Columns by their kind, for programs that take arrays.
    eta : callable
        The true linear predictor of a table.
    sd : float
        Of Gaussian errors.
    """

    family: str
    formula: str
    in_r: str
    smooth: tuple[str, ...]
    eta: Callable[[pd.DataFrame], Array]
    linear: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sd: float = 1.0

    def data(self, n: int, seed: int) -> tuple[pd.DataFrame, Array]:
        """A table, and the true means."""
        rng = np.random.default_rng([5, seed])
        table = pd.DataFrame({name: rng.uniform(size=n) for name in ("x0", "x1", "x2", "x3")})
        table["z"], table["g"] = rng.normal(size=n), rng.choice(list("abc"), n)
        table["id"] = rng.integers(40, size=n)
        mean = mean_of(self.family, self.eta(table))
        draw = {
            "gaussian": lambda: mean + self.sd * rng.normal(size=n),
            "binomial": lambda: 1.0 * (rng.uniform(size=n) < mean),
            "poisson": lambda: 1.0 * rng.poisson(mean),
            "gamma": lambda: rng.gamma(4, mean / 4),
        }
        return table.assign(y=draw[self.family]()), mean


def hump(x: pd.Series) -> Array:
    """Gu and Wahba's third function, on a scale of 0 to 2."""
    return (0.2 * x**11 * (10 * (1 - x)) ** 6 + 10 * (10 * x) ** 3 * (1 - x) ** 10).to_numpy() / 6


def four(d: pd.DataFrame) -> Array:
    return (2 * np.sin(np.pi * d["x0"]) + np.exp(2 * d["x1"])).to_numpy() + 6 * hump(d["x2"])


def surface(d: pd.DataFrame) -> Array:
    x, z = d["x0"], d["x1"]
    first = np.exp(-((x - 0.2) ** 2) / 0.09 - (z - 0.3) ** 2 / 0.16) * 0.4
    return (first + 0.25 * np.exp(-((x - 0.7) ** 2) / 0.09 - (z - 0.8) ** 2 / 0.16)).to_numpy() * 5


def persons(d: pd.DataFrame) -> Array:
    return hump(d["x2"]) + np.random.default_rng(1).normal(size=40)[d["id"]] / 2


MODELS = {
    "four smooths": Model(
        "gaussian",
        "y ~ s(x0) + s(x1) + s(x2) + s(x3)",
        "y ~ s(x0) + s(x1) + s(x2) + s(x3)",
        ("x0", "x1", "x2", "x3"),
        four,
        sd=2.0,
    ),
    "tensor": Model("gaussian", "y ~ te(x0, x1)", "y ~ te(x0, x1)", ("x0", "x1"), surface),
    "persons": Model(
        "gaussian", "y ~ s(x2) + re(id)", 'y ~ s(x2) + s(id, bs = "re")', ("x2",), persons, labels=("id",)
    ),
    "counts": Model(
        "poisson", "y ~ s(x0) + s(x2)", "y ~ s(x0) + s(x2)", ("x0", "x2"), lambda d: hump(d["x2"]) + np.sin(3 * d["x0"])
    ),
    "zeros and ones": Model(
        "binomial",
        "y ~ s(x2) + z + C(g)",
        "y ~ s(x2) + z + g",
        ("x2",),
        lambda d: hump(d["x2"]) - 1 + 0.5 * d["z"] + 0.7 * (d["g"] == "b"),
        linear=("z",),
        labels=("g",),
    ),
    "positive": Model(
        "gamma", "y ~ s(x0) + s(x2)", "y ~ s(x0) + s(x2)", ("x0", "x2"), lambda d: hump(d["x2"]) + d["x0"]
    ),
}


@dataclass(frozen=True)
class Fit:
    """Effective degrees of freedom, fitted means, and CPU seconds of a fit with its search."""

    edf: float
    means: Array
    seconds: float


def timed(run: Callable[[Model, pd.DataFrame], tuple[float, Array]], model: Model, table: pd.DataFrame) -> Fit:
    start = time.process_time()
    edf, means = run(model, table)
    return Fit(float(edf), np.asarray(means), time.process_time() - start)


def by_fdadp(model: Model, table: pd.DataFrame) -> tuple[float, Array]:
    fit = ScalarRegression(model.formula, family=model.family).fit(table)
    return fit.edf_, np.asarray(fit.fitted_values_)


def by_pygam(model: Model, table: pd.DataFrame) -> tuple[float, Array]:
    """P-splines of 20 functions; one smoothing parameter for all terms by the grid search of pyGAM."""
    import pygam

    columns = [*model.smooth, *model.linear, *model.labels]
    coded = {name: pd.factorize(table[name], sort=True)[0] for name in model.labels}
    X = table[columns].assign(**coded).to_numpy(dtype=float)
    smooth = [pygam.te(0, 1)] if "te(" in model.formula else [pygam.s(columns.index(name)) for name in model.smooth]
    rest = [pygam.l(columns.index(name)) for name in model.linear] + [pygam.f(columns.index(n)) for n in model.labels]
    terms = sum(rest, sum(smooth[1:], smooth[0]))
    kinds = {"gaussian": "LinearGAM", "binomial": "LogisticGAM", "poisson": "PoissonGAM", "gamma": "GammaGAM"}
    fit = getattr(pygam, kinds[model.family])(terms).gridsearch(X, table["y"].to_numpy(), progress=False)
    return fit.statistics_["edof"], fit.predict_mu(X)


def by_statsmodels(model: Model, table: pd.DataFrame) -> tuple[float, Array]:
    """Cubic B-splines of 10 functions; a smoothing parameter a term by AIC and Nelder and Mead's search.

    Its searches by GCV ended at straight lines, or at constants.
    """
    import statsmodels.api as sm
    from statsmodels.gam.api import BSplines, GLMGam

    families = {
        "gaussian": sm.families.Gaussian,
        "binomial": sm.families.Binomial,
        "poisson": sm.families.Poisson,
        "gamma": lambda: sm.families.Gamma(sm.families.links.Log()),
    }
    beside = [table[list(model.linear)], *(pd.get_dummies(table[name], drop_first=True) for name in model.labels)]
    exog = sm.add_constant(pd.concat(beside, axis=1).astype(float), has_constant="add")
    many = len(model.smooth)
    spline = BSplines(table[list(model.smooth)], df=[10] * many, degree=[3] * many)
    start = {"exog": exog, "smoother": spline, "family": families[model.family]()}
    search = GLMGam(table["y"], alpha=[1.0] * many, **start)
    search.fit()  # its scale is asked for
    with redirect_stdout(None):
        alpha = search.select_penweight(method="nm")[0]
    fit = GLMGam(table["y"], alpha=alpha, **start).fit()
    return float(np.sum(fit.edf)), np.asarray(fit.fittedvalues)


def by_mgcv(tables: dict[str, tuple[Model, pd.DataFrame]]) -> tuple[dict[str, dict[str, Array]], str]:
    """Numbers (edf, score, seconds), smoothing parameters and means of each table's model; and the version."""
    if shutil.which("Rscript") is None:
        return {}, "not run"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        listed = [(name, FAMILIES[model.family], model.in_r) for name, (model, _) in tables.items()]
        pd.DataFrame(listed, columns=["name", "family", "formula"]).to_csv(place / "models.csv", index=False)
        for name, (_, table) in tables.items():
            table.to_csv(place / f"{name}.csv", index=False, float_format="%.17g")
        subprocess.run(["Rscript", str(Path(__file__).with_suffix(".R")), folder], check=True)
        kinds = ("numbers", "sp", "fitted")
        found = {name: {kind: np.loadtxt(place / f"{name}_{kind}", ndmin=1) for kind in kinds} for name in tables}
        return found, (place / "version").read_text(encoding="utf-8")


def fits_of(model: Model, table: pd.DataFrame, theirs: dict[str, Array] | None) -> dict[str, Fit]:
    """What each program makes of one table, where it is installed and has the terms."""
    fits = {"fdadp": timed(by_fdadp, model, table)}
    if theirs is not None:
        fits["mgcv"] = Fit(float(theirs["numbers"][0]), theirs["fitted"], float(theirs["numbers"][2]))
    if find_spec("pygam"):
        fits["pyGAM"] = timed(by_pygam, model, table)
    if "te(" not in model.formula and "re(" not in model.formula:
        fits["statsmodels"] = timed(by_statsmodels, model, table)
    return fits


def equality(model: Model, samples: list[tuple[pd.DataFrame, Array]], found: list[dict[str, Array]]) -> str:
    """The first sample's numbers; the largest differences over the samples, in standard deviations of the means."""
    far, optima, above, numbers = [], [], [], []
    for (table, truth), theirs in zip(samples, found, strict=True):
        same = ScalarRegression(model.formula, family=model.family, smoothing=theirs["sp"]).fit(table)
        free = ScalarRegression(model.formula, family=model.family).fit(table)
        far.append(np.abs(np.asarray(same.fitted_values_) - theirs["fitted"]).max() / truth.std())
        optima.append(np.abs(np.asarray(free.fitted_values_) - theirs["fitted"]).max() / truth.std())
        above.append(free.criterion_ - same.criterion_)
        numbers.append((theirs["numbers"][0], same.edf_, theirs["numbers"][1]))
    edf, own, score = numbers[0]
    return (
        f"| `gam({model.in_r})`, {model.family} | {edf:.6f} | {own:.6f} | {max(far):.0e} | {score:.4f} "
        f"| {max(above, key=abs):+.0e} | {max(optima):.0e} |"
    )


def program_rows(name: str, truths: list[Array], fits: list[dict[str, Fit]]) -> list[str]:
    """A row for each program: averages over the samples, and the median of the ratios of times."""
    rows = []
    for program in fits[0]:
        own = [fit[program] for fit in fits]
        errors = [np.sqrt(np.mean((fit.means - mean) ** 2)) / mean.std() for fit, mean in zip(own, truths, strict=True)]
        first = "mgcv" if "mgcv" in fits[0] else "fdadp"
        apart = [np.abs(o.means - f[first].means).max() / m.std() for o, f, m in zip(own, fits, truths, strict=True)]
        ratio = np.median([fit[program].seconds / fit["fdadp"].seconds for fit in fits])
        rows.append(
            f"| {name} | {program} | {np.mean([fit.edf for fit in own]):.2f} | {np.mean(errors):.4f} "
            f"| {max(apart):.0e} | {ratio:.1f} |"
        )
    return rows


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    samples = {name: [MODELS[name].data(asked.n, seed) for seed in range(asked.samples)] for name in asked.models}
    tables = {
        f"{name}{seed}": (MODELS[name], table) for name, own in samples.items() for seed, (table, _) in enumerate(own)
    }
    found, mgcv = by_mgcv(tables)
    equals, rows = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, own in samples.items():
            model, theirs = MODELS[name], [found.get(f"{name}{seed}") for seed in range(asked.samples)]
            fits_of(model, own[0][0], theirs[0])  # imports and compilation
            fits = [fits_of(model, table, one) for (table, _), one in zip(own, theirs, strict=True)]
            rows += program_rows(name, [truth for _, truth in own], fits)
            equals += [equality(model, own, [one for one in theirs if one is not None])] if found else []
    text = report(asked.n, asked.samples, mgcv, equals, rows)
    print(text)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return text


def report(n: int, samples: int, mgcv: str, equals: list[str], rows: list[str]) -> str:
    installed = [f"{package} {version(package)}" for package in ("fdadp", "pygam", "statsmodels") if find_spec(package)]
    return "\n".join(
        [
            "# Additive models of numbers beside mgcv, pyGAM and statsmodels",
            "",
            f"`python benchmarks/beside_mgcv.py`: {samples} samples of n = {n:,}; mgcv {mgcv}, {', '.join(installed)}.",
            "Differences and errors are in standard deviations of the true means.",
            "",
            "Beside mgcv: the first sample's effective degrees of freedom and REML score; the largest differences of",
            "all samples.",
            "",
            "| in R | edf, mgcv | edf, ours at its smoothing parameters | fitted values differ | REML of mgcv "
            "| ours at our optimum less at mgcv's | fitted values differ, each at its optimum |",
            "|---|---|---|---|---|---|---|",
            *equals,
            "",
            "Each program with its own search: averages over the samples, the largest difference, and the median ratio",
            "of CPU times of a fit with its search. pyGAM has one smoothing parameter for all terms by its grid",
            "search, statsmodels one a term by AIC; it has no tensor products and no random effects.",
            "",
            "| model | program | edf | error of the means | largest difference from mgcv | time, fdadp = 1 |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    main()
