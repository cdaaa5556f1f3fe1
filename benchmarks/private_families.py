"""Private fits of zeros and ones, and of counts: simulated, and deaths in intensive care.

    python benchmarks/private_families.py simulated [--n 300 1000 --seeds 10 --epsilon 1 --family binomial --pure]
    python benchmarks/private_families.py coverage [--n 1000 --seeds 40 --epsilon 1 --family binomial --level 0.3]
    python benchmarks/private_families.py rare [--n 3000 --seeds 20]
    python benchmarks/private_families.py icu [--first-split 0 --splits 5 --noises 10 --epsilon 0.5 1]

Simulated: a curve and a number; share of the variance of the true means that is explained on 2,000 fresh rows, beside
the fit without privacy. Coverage: what 95 % intervals by ``predict_se`` hold of the true linear predictors and means,
by regions of the linear predictor, with curves that are measured without error. Rare: a base rate of 2 %, and by how
much the predicted log-odds are off as a whole. ICU: area under the ROC curve and calibration in the large on the stays
that were not fitted, with what the chance of their few deaths makes of it (``standard error``), by how much it differs
from that of the fit without privacy of the same split (``beside no privacy``: the same deaths, so that chance has no
part in it), and on the stays that were fitted (needs them in FDADP_DATA).
``--out FILE`` also writes the table as text.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit
from tqdm import tqdm

from fdadp import Privacy, ScalarRegression, load_icu
from fdadp.functional.probability_scores import auc, brier_score
from fdadp.functional.quadrature import quadrature_weights

S = np.linspace(0, 1, 60)
TEST_ROWS, FIRST_SEED = 2000, 900
"""Seeds that no setting was chosen on."""
BOUNDS = {"X": (-4.0, 4.0), "z": (0.0, 100.0)}
LARGEST_COUNT = 20
TRAINED, ENOUGH_HOURS = 5500, 18
LARGEST_OFF = 0.15
OF_COVERAGE, REGIONS = 6000, (0.05, 0.25, 0.5, 0.75, 0.95)
"""First seed of cohorts whose coverage is reported; quantiles between regions."""
OF_STAYS = {"HR": (30.0, 180.0), "MAP": (30.0, 150.0), "age": (16.0, 90.0), "died": [0, 1]}
TYPES = ["cardiac surgery", "coronary", "medical", "surgical"]
FORMULA = "died ~ lf(HR) + lf(MAP) + age + C(type)"


def smooth_curves(n: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of a level and two Gaussian processes, with sizes that differ between persons, shape (n, 60)."""
    total = rng.normal(0, 0.6, (n, 1)) * np.ones(S.size)
    for length, size in ((0.3, 0.7), (0.08, 0.4)):
        covariance = np.exp(-0.5 * ((S[:, None] - S) / length) ** 2) + 1e-8 * np.eye(S.size)
        total = total + size * rng.normal(size=total.shape) @ np.linalg.cholesky(covariance).T
    return total * np.exp(rng.normal(0, 0.2, (n, 1)))


def people(
    n: int, rng: np.random.Generator, *, family: str = "binomial", level: float = 0.3, error: float = 0.1
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns X, z and y, and the true means; X as it is measured, with noise."""
    x, z = smooth_curves(n, rng), 20 + 60 * rng.beta(2, 3, n)
    effect = 2 * np.sin(2 * np.pi * S) + 1.2 * np.exp(-((S - 0.7) ** 2) / 0.02)
    eta = (x * quadrature_weights(S)) @ effect + 0.25 * (z - 44) / 12
    if family == "binomial":
        mean = expit(level + 3 * eta)
        y = rng.binomial(1, mean)
    else:
        mean = np.exp(level + eta)
        y = rng.poisson(mean)
    return {"X": x + rng.normal(0, error, x.shape), "z": z, "y": y}, mean


def fitted(
    data: dict[str, np.ndarray], family: str, epsilon: float | None, seed: int, *, pure: bool = False
) -> ScalarRegression:
    """The fit, private if an ε is given."""
    if epsilon is None:
        return ScalarRegression("y ~ lf(X) + z", family=family).fit(data, grids={"X": S})
    privacy = Privacy(epsilon=epsilon, delta=None if pure else 1e-6, n=len(data["z"]), random_state=seed)
    bounds = BOUNDS | {"y": [0, 1] if family == "binomial" else (0, LARGEST_COUNT)}
    return ScalarRegression("y ~ lf(X) + z", family=family, privacy=privacy, bounds=bounds).fit(data, grids={"X": S})


def off_in_the_large(y: np.ndarray, eta: np.ndarray) -> float:
    """What must be added to the predicted log-odds for the mean probability to be the observed share."""
    return float(brentq(lambda a: expit(eta + a).mean() - y.mean(), -20, 20))


def error_in_the_large(eta: np.ndarray, off: float) -> float:
    """Standard error of that by the chance of the responses: 1/√(Σ p (1 - p)), p the probabilities set right."""
    p = expit(eta + off)
    return float(1 / np.sqrt((p * (1 - p)).sum()))


def simulated(asked: argparse.Namespace) -> pd.DataFrame:
    rows = []
    for n in asked.n:
        for seed in tqdm(range(FIRST_SEED, FIRST_SEED + asked.seeds), desc=f"n = {n}", disable=None):
            rng = np.random.default_rng(seed)
            data, _ = people(n, rng, family=asked.family)
            new, mean = people(TEST_ROWS, rng, family=asked.family)
            found = {"n": n}
            for name, epsilon in (("private", asked.epsilon[0]), ("without privacy", None)):
                model = fitted(data, asked.family, epsilon, seed, pure=asked.pure)
                away = model.predict(new) - mean
                found[name] = 1 - float((away**2).mean() / mean.var())
                found[f"{name}: se covers"] = float((np.abs(away) <= 1.96 * model.predict_se(new)).mean())
            rows.append(found)
    return pd.DataFrame(rows).groupby("n").agg(["mean", "min"])


def coverage(asked: argparse.Namespace) -> pd.DataFrame:
    rows = []
    for n in asked.n:
        for seed in tqdm(range(OF_COVERAGE, OF_COVERAGE + asked.seeds), desc=f"n = {n}", disable=None):
            rng, how = np.random.default_rng(seed), {"family": asked.family, "level": asked.level, "error": 0.0}
            data, _ = people(n, rng, **how)
            new, mean = people(TEST_ROWS, rng, **how)
            eta = logit(mean) if asked.family == "binomial" else np.log(mean)
            model = fitted(data, asked.family, asked.epsilon[0], seed, pure=asked.pure)
            region = np.searchsorted(np.quantile(eta, REGIONS), eta)
            for kind, truth in (("link", eta), ("response", mean)):
                held = np.abs(model.predict(new, type=kind) - truth) <= 1.96 * model.predict_se(new, type=kind)
                found = {f"region {i + 1}": held[region == i].mean() for i in range(len(REGIONS) + 1)}
                rows.append({"n": n, "of": kind, "all": held.mean(), **found})
    return pd.DataFrame(rows).groupby(["n", "of"]).mean()


def rare(asked: argparse.Namespace) -> pd.DataFrame:
    rows = []
    for n in asked.n:
        for seed in tqdm(range(FIRST_SEED, FIRST_SEED + asked.seeds), desc=f"n = {n}", disable=None):
            rng = np.random.default_rng(seed)
            data, truth = people(n, rng, level=-5.2)
            new, mean = people(20 * TEST_ROWS, rng, level=-5.2)
            for name, epsilon in (("private", asked.epsilon[0]), ("without privacy", None)):
                if name != "private" and data["y"].sum() < 2:
                    continue
                eta = fitted(data, "binomial", epsilon, seed, pure=asked.pure).predict(new, type="link")
                found = {
                    "n": n,
                    "fit": name,
                    "base rate": truth.mean(),
                    "off in the large": off_in_the_large(mean, eta),
                }
                rows.append(found | {"AUC": auc(new["y"], eta)})
    return pd.DataFrame(rows).groupby(["n", "fit"]).agg(["mean", "std"])


def stays() -> dict[str, np.ndarray]:
    """Stays of which most hours of the first day were observed."""
    icu, pressure = load_icu(as_frame=True), load_icu("pressure", as_frame=True).X
    enough = (icu.X.notna().sum(axis=1) >= ENOUGH_HOURS) & (pressure.notna().sum(axis=1) >= ENOUGH_HOURS)
    who = icu.covariates[enough]
    return {
        "HR": icu.X[enough].to_numpy(),
        "MAP": pressure[enough].to_numpy(),
        "age": who["age"].to_numpy(),
        "type": who["icu_type"].to_numpy(),
        "died": who["died_in_hospital"].to_numpy(),
    }


def icu(asked: argparse.Namespace) -> pd.DataFrame:
    columns, hours = stays(), np.arange(24) + 0.5
    grids, rows = {"HR": hours, "MAP": hours}, []
    for split in range(asked.first_split, asked.first_split + asked.splits):
        order = np.random.default_rng(split).permutation(len(columns["age"]))
        train, test = ({name: v[part] for name, v in columns.items()} for part in np.split(order, [TRAINED]))
        fits = [("without privacy", None)] + [
            (f"epsilon = {epsilon:g}", Privacy(epsilon=epsilon, delta=1e-6, n=TRAINED, random_state=1000 * split + k))
            for epsilon in asked.epsilon
            for k in range(asked.noises)
        ]
        without = np.nan  # of the first fit, the one without privacy
        for name, privacy in tqdm(fits, desc=f"split {split}", disable=None):
            bounds = None if privacy is None else OF_STAYS | {"type": TYPES}
            missing = "auto" if privacy else "linear"
            model = ScalarRegression(FORMULA, family="binomial", privacy=privacy, bounds=bounds, missing=missing)
            eta = model.fit(train, grids=grids).predict(test, type="link", grids=grids)
            p, died = expit(eta), test["died"]
            off = off_in_the_large(died, eta)
            without = off if privacy is None else without
            scaled = 1 - brier_score(died, p) / (died.mean() * (1 - died.mean()))
            rows.append(
                {
                    "fit": name,
                    "AUC": auc(died, p),
                    "off in the large": off,
                    "standard error": error_in_the_large(eta, off),
                    "beside no privacy": off - without,
                    "off where fitted": off_in_the_large(train["died"], model.predict(train, type="link", grids=grids)),
                    "Brier": scaled,
                }
            )
    runs = pd.DataFrame(rows)
    table = runs.groupby("fit", sort=False).agg(["mean", "std", "min", "max"])
    for column in ("off in the large", "beside no privacy", "off where fitted"):
        inside = (runs[column].abs() <= LARGEST_OFF).groupby(runs["fit"], sort=False).mean()
        table[column, f"within {LARGEST_OFF:g}"] = inside
    chance = (runs["off in the large"].abs() <= 1.96 * runs["standard error"]).groupby(runs["fit"], sort=False).mean()
    table["off in the large", "within 1.96 standard errors"] = chance
    return table.sort_index(axis=1, level=0, sort_remaining=False)


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("simulated", "coverage", "rare", "icu"))
    parser.add_argument("--n", nargs="+", type=int, default=[300, 1000, 3000, 10000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--family", choices=("binomial", "poisson"), default="binomial")
    parser.add_argument("--level", type=float, default=0.3, help="linear predictor of the average person")
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--noises", type=int, default=10)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    asked.epsilon = asked.epsilon or ([0.5, 1.0] if asked.what == "icu" else [1.0])
    warnings.simplefilter("ignore")
    table = {"simulated": simulated, "coverage": coverage, "rare": rare, "icu": icu}[asked.what](asked)
    if asked.out:
        flat = table.copy()
        flat.columns = [column if isinstance(column, str) else " ".join(column) for column in table.columns]
        asked.out.write_text(flat.reset_index().to_string(index=False, float_format="{:.3f}".format) + "\n")
    return table


if __name__ == "__main__":
    pd.set_option("display.width", 200, "display.max_columns", 30)
    print(main().to_string(float_format="{:.3f}".format))
