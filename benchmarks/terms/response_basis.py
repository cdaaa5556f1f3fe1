"""Splines along t, generalised least squares, or eigenfunctions of the responses: which of them is more accurate?

For each simulator (:mod:`simulators`), number of curves and share of smooth errors: rmse of mean curves and of the
coefficient function, coverage of both by pointwise 95 % intervals, and how often the 5 % test of a scalar without
effect rejects.

    python benchmarks/terms/response_basis.py --repeats 40     # eight CPU minutes
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from simulators import SIMULATORS, Simulated, T

from fdadp import FunctionalRegression
from fdadp.terms.numbers.smooth import Smooth

SHARES = {"independent": 0.0, "mixed": 0.4, "smooth": 0.8}
WAYS = {"splines": {}, "splines, GLS": {"errors": "curve"}, "eigen": {"response_basis": "eigen"}}


def one(made: Simulated, way: str) -> list[float]:
    """Both rmse, both coverages, and whether the test rejects."""
    terms = made.model
    if way == "eigen":  # of a number, whose k is one number
        terms = [replace(term, k=term.k[0]) if isinstance(term, Smooth) else term for term in terms]
    model = FunctionalRegression(terms, **WAYS[way])
    model.fit(made.data, grids={name: T for name in ("X", "Y") if name in made.data})
    frame = model.coef(made.term, se=True)
    off = frame["value"] - made.effect(frame.iloc[:, 0].to_numpy(), frame["t"].to_numpy())
    some = slice(0, 50)
    away = model.predict(made.data) - made.mean
    se = model.predict_se({name: column[some] for name, column in made.data.items()})
    return [
        float((away**2).mean()),
        float((off**2).mean()),
        float((np.abs(away[some]) < 1.96 * se).mean()),
        float((off.abs() < 1.96 * frame["se"]).mean()),
        float(model.test_terms().loc[made.null, "p"] < 0.05),
    ]


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--n", type=int, nargs="+", default=[60, 300])
    asked = parser.parse_args(arguments)
    rows = []
    for name, simulate in SIMULATORS.items():
        for n in asked.n:
            for errors, share in SHARES.items():
                row = {"simulator": name, "n": n, "errors": errors}
                for way in WAYS:
                    made = [simulate(n, np.random.default_rng([seed, n]), share) for seed in range(asked.repeats)]
                    means = np.mean([one(each, way) for each in made], axis=0)
                    means[:2] = np.sqrt(means[:2])
                    found = dict(zip(("of means", "of β", "means held", "β held", "level"), means, strict=True))
                    row |= {f"{what}, {way}": value for what, value in found.items()}
                rows.append(row)
    return pd.DataFrame(rows)


def report(table: pd.DataFrame) -> str:
    """The table as markdown, one part for each figure."""
    parts = []
    for what in ("of means", "of β", "means held", "β held", "level"):
        columns = ["simulator", "n", "errors", *(f"{what}, {way}" for way in WAYS)]
        rows = [
            [f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in table[columns].to_numpy().tolist()
        ]
        lines = [columns, ["---"] * len(columns), *rows]
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(report(main()))
