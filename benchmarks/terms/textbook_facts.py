"""Facts that textbooks state and defaults must not get wrong, of this checkout or, by PYTHONPATH, of another.

    python benchmarks/terms/textbook_facts.py sign lip re re-curves intervals aic score unobserved level memory
    PYTHONPATH=../before python benchmarks/terms/textbook_facts.py sign
    python benchmarks/terms/textbook_facts.py re --cohorts 200 --mgcv       # with mgcv's test on the same data sets

* `sign`: A difference of two groups that changes sign within a tenth of the domain, where it is largest.
* `lip`: Ten-fold R2 on held-out curves, about the training mean curve, of the lip data on four scores.
* `re`, `re-curves`: Share of data sets in which the 5 % test of a random effect rejects: of numbers in 20 groups of 5,
  residual sd .6; of curves of 30 persons with 3 each and smooth errors.
* `intervals`: What 95 % prediction intervals hold where errors have sd .3 + .5|x|.
* `aic`: Beside mgcv's on the same data.
* `score`: Cohorts (n = 50, smooth errors) in which a number without effect is preferred.
* `unobserved`: The private mean of curves about 80 of which 30 % were not observed, bounds (0, 200).
* `level`: R2 of X and of X + 1e6.
* `memory`: What is said of re(id, k=8) with 5,000 persons. A checkout that says nothing would take all memory, and is
  not asked.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, Privacy, PrivateMean, ScalarRegression, load_canadian_weather, terms
from fdadp.datasets import load_lip_emg

T = np.linspace(0, 1, 21)
SDS = (0.0, 0.15, 0.3)


def smooth(t: Any) -> Any:
    """Root of the covariance of smooth errors."""
    return np.linalg.cholesky(np.exp(-(np.subtract.outer(t, t) ** 2) / 0.045) + 1e-8 * np.eye(t.size))


def sign(cohorts: int) -> None:
    """Share of cohorts in which a group's difference has the right sign, and is beyond two standard errors."""
    t = np.linspace(0, 1, 81)
    truth = (0.5 - t) / 0.05 * np.exp(0.5 - ((t - 0.5) / 0.05) ** 2 / 2)
    found = []
    for seed in range(cohorts):
        draw, g = np.random.default_rng(seed), np.arange(80) % 2
        y = np.sin(2 * np.pi * t) + g[:, None] * truth + 0.3 * draw.normal(size=(80, t.size)) @ smooth(t).T
        model = FunctionalRegression("Y ~ g").fit({"Y": y, "g": np.where(g, "b", "a")}, grids={"Y": t})
        at = model.coef("g", se=True, g=["b"], t=[0.45, 0.55])
        value, se = at["value"].to_numpy() * (1, -1), at["se"].to_numpy()
        found.append([*value, *(value > 0), *(value > 2 * se)])
    m = np.mean(found, axis=0)
    print(f"sign: truth 1 and -1 at .45 and .55; mean estimates {m[0]:.2f} and {-m[1]:.2f}; ", end="")
    print(f"right sign {m[2]:.2f}, {m[3]:.2f}; beyond two standard errors {m[4]:.2f}, {m[5]:.2f}")


def lip(cohorts: int) -> None:
    """Ten-fold R2 of linear effects of four scores of X, and of `ffpc`."""
    both = load_lip_emg(n_points=101, download=False)
    x, y = (np.asarray(c.data_matrix[:, :, 0]) for c in (both.X, both.Y))
    t = np.linspace(0, 1, y.shape[1])
    for name in ("four scores", "ffpc"):
        found = []
        for seed in range(max(cohorts // 10, 1)):
            fold = np.random.default_rng(seed).permutation(len(x)) % 10
            left = about = 0.0
            for k in range(10):
                train, mean = fold != k, x[fold != k].mean(axis=0)
                scores = (x - mean) @ np.linalg.svd(x[train] - mean, full_matrices=False)[2][:4].T
                data = {f"z{i}": own for i, own in enumerate(scores.T)} if name != "ffpc" else {"X": x}
                own = [terms.ffpc("X", n_components=4)] if name == "ffpc" else [terms.linear(z) for z in data]
                rows: Callable[[Any], dict[str, Any]] = lambda which, data=data: {k: v[which] for k, v in data.items()}  # noqa: E731
                model = FunctionalRegression(own, progress=False)
                model.fit(rows(train) | {"Y": y[train]}, grids={"X": t, "Y": t} if name == "ffpc" else {"Y": t})
                left += ((y[~train] - np.asarray(model.predict(rows(~train)))) ** 2).sum()
                about += ((y[~train] - y[train].mean(axis=0)) ** 2).sum()
            found.append(1 - left / about)
        print(f"lip, {name}: held-out R2 {np.mean(found):.3f} ({len(found)} times ten folds)")


def groups_of_five(sd: float, cohorts: int) -> Iterator[dict[str, Any]]:
    for seed in range(cohorts):
        draw, g = np.random.default_rng([seed, 5]), np.repeat(np.arange(20), 5)
        x = draw.normal(size=100)
        y = x + draw.normal(size=20)[g] * sd + draw.normal(size=100) * 0.6
        yield {"x": x, "g": np.array([f"p{i}" for i in g]), "y": y}


MGCV = """library(mgcv); a <- commandArgs(TRUE); d <- read.csv(a[1], stringsAsFactors = TRUE)
p <- sapply(split(d, d$set), function(e) {
  e$g <- factor(e$g); summary(gam(y ~ x + s(g, bs = "re"), data = e, method = "REML"))$s.table[1, "p-value"] })
cat(mean(p < .05))"""


def re(cohorts: int, *, mgcv: bool = False) -> None:
    """Level and power of the test of a random effect on numbers."""
    for sd in SDS:
        found, csv = [], ["set,x,g,y"]
        for i, data in enumerate(groups_of_five(sd, cohorts)):
            model = ScalarRegression("y ~ x + re(g)", progress=False).fit(data)
            found.append(float(model.test_terms().loc["re(g)", "p"]) < 0.05)
            csv += [f"{i},{x!r},{g},{y!r}" for x, g, y in zip(*(data[k].tolist() for k in "xgy"), strict=True)]
        beside = ""
        if mgcv:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "sets.csv")
                path.write_text("\n".join(csv), encoding="utf-8")
                told = ["Rscript", "-e", MGCV, str(path)]
                out = subprocess.run(told, check=True, capture_output=True, text=True).stdout
                beside = f", mgcv {float(out):.3f}"
        print(f"re, sd {sd}: {np.mean(found):.3f}{beside} of {cohorts}", flush=True)


def re_curves(cohorts: int) -> None:
    """The same on curves with smooth errors, of effects that are constant along t."""
    for sd in SDS:
        found = []
        for seed in range(cohorts):
            draw, person = np.random.default_rng([seed, 6]), np.repeat(np.arange(30), 3)
            x = draw.normal(size=30)[person]
            y = 0.5 * x[:, None] * T + (draw.normal(size=30) * sd)[person][:, None]
            data = {"x": x, "id": np.array([f"p{i}" for i in person])}
            data["Y"] = y + 0.5 * draw.normal(size=(90, T.size)) @ smooth(T).T
            model = FunctionalRegression("Y ~ x + re(id)", progress=False).fit(data, grids={"Y": T})
            found.append(float(model.test_terms().loc["re(id)", "p"]) < 0.05)
        print(f"re of curves, sd {sd}: {np.mean(found):.3f} of {cohorts}", flush=True)


def intervals(cohorts: int) -> None:
    """Coverage of 95 % prediction intervals, all and where |x| is small and large."""
    for n, several in ((100, cohorts), (1000, max(cohorts // 10, 2))):
        found = []
        for seed in range(several):
            cohort = []
            for m in (n, 400):
                draw = np.random.default_rng([seed, m])
                x = draw.normal(size=m)
                errors = 0.8 * draw.normal(size=(m, T.size)) @ smooth(T).T + 0.6 * draw.normal(size=(m, T.size))
                cohort.append(
                    {"x": x, "Y": 0.3 * x[:, None] * np.cos(3 * T) + (0.3 + 0.5 * np.abs(x))[:, None] * errors}
                )
            model = FunctionalRegression("Y ~ x").fit(cohort[0], grids={"Y": T})
            low, high = model.predict_interval({"x": cohort[1]["x"]})
            inside, far = (low < cohort[1]["Y"]) & (cohort[1]["Y"] < high), np.abs(cohort[1]["x"])
            found.append([inside.mean(), inside[far < 0.3].mean(), inside[far > 1.5].mean()])
        print("intervals, n = {}: all {:.3f}, |x| < .3 {:.3f}, |x| > 1.5 {:.3f}".format(n, *np.mean(found, axis=0)))


AIC = {
    "y ~ s(x, bs='ps', k=10)": "y ~ s(x, bs='ps', k=10)",
    "y ~ x + s(z, bs='ps', k=10)": "y ~ x + s(z, bs='ps', k=10)",
    "y ~ s(x, bs='ps', k=10) + s(z, bs='ps', k=10)": "y ~ s(x, bs='ps', k=10) + s(z, bs='ps', k=10)",
    "y ~ s(x, bs='ps', k=10) + re(g)": "y ~ s(x, bs='ps', k=10) + s(g, bs='re')",
    "y ~ te(x, z, bs='ps', k=(5, 5))": "y ~ te(x, z, bs='ps', k=5)",
    "y ~ s(x, by='z', bs='ps', k=10)": "y ~ s(x, by=z, bs='ps', k=10)",
}


R_AIC = """library(mgcv); d <- read.csv(commandArgs(TRUE)[1], stringsAsFactors = TRUE)
tight <- gam.control(epsilon = 1e-12, newton = list(conv.tol = 1e-11, maxHalf = 50))
m <- gam({}, data = d, method = "REML", control = tight); cat(format(c(AIC(m), sum(m$edf)), digits = 15))"""


def aic(cohorts: int) -> None:
    """AIC less mgcv's where both estimate the same model, on one data set; mgcv with a tight tolerance."""
    draw = np.random.default_rng(0)
    n, g = 150, np.repeat(np.arange(15), 10)
    x, z = draw.uniform(size=(2, n))
    y = np.sin(6 * x) + z**2 + 0.3 * draw.normal(size=15)[g] + 0.5 * draw.normal(size=n)
    data = {"x": x, "z": z, "y": y, "g": np.array([f"p{i:02d}" for i in g])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "aic.csv")
        rows = [
            "x,z,y,g",
            *(f"{a!r},{b!r},{c!r},{e}" for a, b, c, e in zip(*(data[k].tolist() for k in "xzyg"), strict=True)),
        ]
        path.write_text("\n".join(rows), encoding="utf-8")
        for ours, theirs in AIC.items():
            call = R_AIC.format(theirs)
            told = ["Rscript", "-e", call, str(path)]
            out = subprocess.run(told, check=True, capture_output=True, text=True).stdout.split()
            model = ScalarRegression(ours, progress=False).fit(data)
            less = [own - float(their) for own, their in zip((model.aic_, model.edf_), out, strict=True)]
            print(f"aic, {ours}: {model.aic_:.6f}, less mgcv's {less[0]:+.6f}; edf {less[1]:+.1e}", flush=True)


def score(cohorts: int) -> None:
    """How often a number without effect is preferred."""
    found = []
    for seed in range(cohorts):
        draw = np.random.default_rng([seed, 7])
        x, z = draw.normal(size=(2, 50))
        data = {"x": x, "z": z, "Y": x[:, None] * T + draw.normal(size=(50, T.size)) @ smooth(T).T}
        small, large = (
            FunctionalRegression(f, progress=False).fit(data, grids={"Y": T}) for f in ("Y ~ x", "Y ~ x + z")
        )
        own = [large.aic_ < small.aic_]
        if hasattr(large, "compare"):
            table = large.compare(small)
            own += [table.loc["larger", "gain"] > 0, bool(table.loc["larger", "preferred"])]
        found.append(own)
    print(
        "score: a null number is taken by",
        dict(zip(("AIC", "loo", "loo beyond one se"), np.mean(found, axis=0).round(2).tolist(), strict=False)),
    )


def unobserved(cohorts: int) -> None:
    """Mean of private means over t, truth 80."""
    found = []
    for seed in range(min(cohorts, 10)):
        draw = np.random.default_rng(seed)
        y = 80 + draw.normal(size=(3000, T.size)) @ smooth(T).T * 5
        y[draw.uniform(size=3000) < 0.3] = np.nan
        privacy = Privacy(1.0, 1e-6, n=3000, random_state=seed)
        found.append(float(np.mean(PrivateMean(privacy=privacy, bounds=(0, 200)).fit(y, t=T).mean_)))
    print(f"unobserved: mean {np.mean(found):.2f} for 80")


def level(cohorts: int) -> None:
    """R2 of a functional model of the Canadian weather, by the level of the sensor."""
    weather = load_canadian_weather()
    x, y = (np.asarray(c.data_matrix[:, ::15, 0][:, :24]) for c in (weather.X, weather.Y))
    s = np.linspace(0, 1, 24)
    for formula in ("Y ~ ff(X)", "Y ~ X", "Y ~ sff(X)"):
        both = [
            FunctionalRegression(formula, progress=False).fit({"X": x + a, "Y": y}, grids={"X": s, "Y": s}).r2_
            for a in (0, 1e6)
        ]
        print(f"level, {formula}: R2 {both[0]:.4f}, of X + 1e6 {both[1]:.4f}")
    number = {"X": x, "y": y.mean(axis=1)}
    for formula in ("y ~ lf(X)", "y ~ af(X)"):
        both = [
            ScalarRegression(formula, progress=False).fit(number | {"X": x + a}, grids={"X": s}).r2_ for a in (0, 1e6)
        ]
        print(f"level, {formula}: R2 {both[0]:.4f}, of X + 1e6 {both[1]:.4f}")


def memory(cohorts: int) -> None:
    """What a fit says of the memory that it would take."""
    from fdadp.regression.fit_in_memory import refuse_too_large  # noqa: F401  (a checkout without it takes all memory)

    data = {"id": [f"p{i}" for i in range(5000)], "Y": np.zeros((5000, T.size)) + np.arange(5000)[:, None]}
    try:
        FunctionalRegression("Y ~ re(id, k=8)").fit(data, grids={"Y": T})
    except Exception as error:
        print(f"memory: {type(error).__name__}: {error}")


FACTS: dict[str, Callable[..., None]] = {
    "sign": sign, "lip": lip, "re": re, "re-curves": re_curves, "intervals": intervals,
    "aic": aic, "score": score, "unobserved": unobserved, "level": level, "memory": memory,
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("fact", nargs="+", choices=FACTS)
    asked.add_argument("--cohorts", type=int, default=50)
    asked.add_argument("--mgcv", action="store_true")
    o = asked.parse_args()
    for fact in o.fact:
        FACTS[fact](o.cohorts, **({"mgcv": o.mgcv} if fact == "re" else {}))
