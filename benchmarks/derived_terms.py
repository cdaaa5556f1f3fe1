"""Twin beside derived: what private terms explain, written by hand and made from the ordinary term's design.

Both fit the same cohorts with the same seeds of noise: ``python benchmarks/derived_terms.py --help``, with
OPENBLAS_NUM_THREADS=1. The difference of a cell is the mean of paired differences, with its standard error. The noise
is seeded NumPy noise of the same law as the secure one: for simulation only.

The twins of :data:`GONE` were deleted after this table; a checkout of commit a88c7f3 compares them again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from fdadp import FunctionalRegression, Privacy, ScalarRegression, terms
from fdadp.functional.quadrature import quadrature_weights
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.whitened import term_registry
from fdadp.private.whitened.of_any_term import derived_term

S = np.linspace(0, 1, 31)
DELTA, NEW = 1e-6, 2000
LOSS = 0.005
"""Share of the explainable variance that a derived term may lose at most."""
LEVELS = ["a", "b", "c", "d"]
BOUNDS: dict[str, Any] = {"X": (-3.0, 13.0), "z": (20.0, 80.0), "w": (0.0, 10.0), "g": LEVELS}
NOISE = 0.5
"""Standard deviation of the errors over that of the mean."""
Table = dict[str, Any]
Effect = Callable[[Table], Any]


def smooth(rng: np.random.Generator, length: float, at: Any = S) -> Any:
    """A function of chance from a Gaussian process."""
    kernel = np.exp(-(((at[:, None] - at) / length) ** 2) / 2)
    return np.linalg.cholesky(kernel + 1e-8 * np.eye(at.size)) @ rng.normal(size=at.size)


def people(n: int, rng: np.random.Generator) -> Table:
    """Curves about 5, numbers of a skewed and of a flat law, and four levels of which one is rare."""
    waves = np.stack([np.ones(S.size), *(np.sqrt(2) * f(np.pi * k * S) for k in (1, 2, 3) for f in (np.sin, np.cos))])
    x = rng.normal(size=(n, 7)) * [1, 0.8, 0.8, 0.5, 0.5, 0.3, 0.3] @ waves + 0.15 * rng.normal(size=(n, S.size))
    z = np.clip(20 + rng.gamma(4, 5, n), 20, 80)
    return {"X": 5 + x, "z": z, "w": rng.uniform(1, 7, n), "g": rng.choice(LEVELS, n, p=[0.4, 0.3, 0.25, 0.05])}


def surface(rng: np.random.Generator) -> Any:
    """``β(s, t)`` of chance: two products of smooth functions."""
    return sum(np.outer(smooth(rng, 0.25), smooth(rng, 0.3)) for _ in range(2))


def linear_in_x(rng: np.random.Generator) -> Effect:
    """``∫ X β``."""
    beta = surface(rng) * quadrature_weights(S)[:, None]
    return lambda table: (table["X"] - 5) @ beta


def up_to_t(rng: np.random.Generator) -> Effect:
    """``∫ X β`` of s up to t."""
    beta = surface(rng) * quadrature_weights(S)[:, None] * (S[:, None] <= S)
    return lambda table: (table["X"] - 5) @ beta


def at_t(rng: np.random.Generator) -> Effect:
    """``X(t) β(t)``."""
    beta = 1 + smooth(rng, 0.3)
    return lambda table: (table["X"] - 5) * beta


def additive(rng: np.random.Generator) -> Effect:
    """``∫ F{X(s), s, t} ds``, F of a bent function of x."""
    bend, beta = rng.uniform(0.5, 1.5), surface(rng) * quadrature_weights(S)[:, None]
    return lambda table: np.sin(bend * (table["X"] - 5)) @ beta


def of_numbers(rng: np.random.Generator) -> Effect:
    """Slopes of both numbers."""
    slopes = smooth(rng, 0.3), smooth(rng, 0.3)
    return lambda table: np.outer((table["z"] - 40) / 10, slopes[0]) + np.outer((table["w"] - 4) / 1.7, slopes[1])


def of_levels(rng: np.random.Generator) -> Effect:
    """A function of t for each level."""
    own = np.stack([smooth(rng, 0.3) for _ in LEVELS])
    return lambda table: own[np.searchsorted(LEVELS, table["g"])]


def bent(rng: np.random.Generator) -> Effect:
    """A smooth function of z."""
    at, beta = np.linspace(0, 1, 61), smooth(rng, 0.3)
    values = smooth(rng, 0.2, at)
    return lambda table: np.outer(np.interp((table["z"] - 20) / 60, at, values), beta)


def of_two(rng: np.random.Generator) -> Effect:
    """A smooth function of z and w."""
    first, second = bent(rng), rng.uniform(0.5, 1.5)
    return lambda table: first(table) * np.cos(second * (table["w"] - 4))[:, None]


def times(effect: Callable[[np.random.Generator], Effect], by: str) -> Callable[[np.random.Generator], Effect]:
    """An effect that grows with a number, or has another size for each level."""

    def make(rng: np.random.Generator) -> Effect:
        own, sizes = effect(rng), rng.normal(size=len(LEVELS))
        if by == "g":
            return lambda table: own(table) * sizes[np.searchsorted(LEVELS, table["g"])][:, None]
        return lambda table: own(table) * table["w"][:, None] / 4

    return make


@dataclass(frozen=True)
class Case:
    """A kind of term: the model, its truth, and the term whose design the derived one is made of."""

    spec: Any
    effect: Callable[[np.random.Generator], Effect]
    derived: Any
    curves: bool = True
    along: bool = True
    """Whether the design is fixed for a response that is a curve."""


CASES = {
    "ff": Case(terms.ff("X"), linear_in_x, terms.ff("X", k=(10, 5))),
    "lf": Case(terms.lf("X"), linear_in_x, terms.lf("X", k=10), curves=False),
    "concurrent": Case(terms.concurrent("X"), at_t, terms.concurrent("X")),
    "historical": Case(terms.ff("X", limits="s<=t"), up_to_t, terms.ff("X", k=(10, 5), limits="s<=t")),
    "sff": Case(terms.sff("X"), additive, terms.sff("X", k=(5, 7, 12))),
    "af": Case(terms.af("X"), additive, terms.af("X", k=(7, 12)), curves=False),
    "numbers": Case(terms.linear("z"), of_numbers, terms.linear("z")),
    "fosr": Case(terms.fosr(("z", "w")), of_numbers, terms.fosr(("z", "w"), intercept=False)),
    "factor": Case(terms.factor("g"), of_levels, terms.factor("g", coding="full")),
    "s": Case(terms.s("z"), bent, terms.s("z", k=14, bs="ps"), along=False),
    "te": Case(terms.te("z", "w"), of_two, terms.te("z", "w", k=8, bs="ps")),
    "ff by number": Case(terms.by("w", terms.ff("X")), times(linear_in_x, "w"), terms.by("w", terms.ff("X", (10, 5)))),
    "ff by levels": Case(terms.by("g", terms.ff("X")), times(linear_in_x, "g"), terms.by("g", terms.ff("X", (10, 5)))),
}
GONE = ("ff", "lf", "concurrent", "historical", "s", "te")
"""Kinds that have no twin any more."""


def fit(case: Case, name: str, n: int, epsilon: float, seed: int, *, derived: bool) -> tuple[float, float]:
    """Share of the explainable variance on new people, and seconds."""
    rng = np.random.default_rng([seed, n, zlib.crc32(name.encode())])
    truth = case.effect(rng)
    train, new = people(n, rng), people(NEW, rng)
    signal, wanted = truth(train), truth(new)
    if not case.curves:
        signal, wanted = signal @ quadrature_weights(S), wanted @ quadrature_weights(S)
    sd = signal.std(axis=0).mean()
    response = signal / sd + NOISE * rng.normal(size=signal.shape)
    wanted = wanted / sd
    bounds = {column: BOUNDS[column] for column in case.spec.columns}
    model = [case.spec]
    if name == "numbers":
        model, bounds = [*model, terms.linear("w")], {**bounds, "w": BOUNDS["w"]}
    kind = FunctionalRegression if case.curves else ScalarRegression
    of = "Y" if case.curves else "y"
    data = {column: train[column] for column in bounds} | {of: response}
    privacy = Privacy(epsilon, DELTA, n=n, random_state=seed)
    hand = term_registry.MAKERS[type(case.spec)]
    if derived:
        term_registry.MAKERS[type(case.spec)] = lambda asked, spec: derived_term(
            asked if case.along else replace(asked, curves=False),
            case.derived if spec.columns == case.spec.columns else spec,
        )
    mechanism = DPAFF(allow_useless=True)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = kind(model, privacy=privacy, bounds={**bounds, of: (-5.0, 5.0)}, mechanism=mechanism)
            fitted.fit(data, grids={c: S for c in data if data[c].ndim == 2})
            predicted = np.asarray(fitted.predict({column: new[column] for column in bounds}))
    finally:
        term_registry.MAKERS[type(case.spec)] = hand
    away = ((wanted - wanted.mean(axis=0)) ** 2).mean()
    return float(1 - ((predicted - wanted) ** 2).mean() / away), time.process_time() - begin


def cells_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row a kind, n and epsilon."""
    cells = []
    for name in options.kinds:
        for n in options.n:
            for epsilon in options.epsilon:
                seeds = range(options.shift, options.shift + options.seeds)
                pairs = [[fit(CASES[name], name, n, epsilon, s, derived=d) for d in (False, True)] for s in seeds]
                twin, made = ([pair[i][0] for pair in pairs] for i in (0, 1))
                apart = [b - a for a, b in zip(twin, made, strict=True)]
                cell = {"kind": name, "n": n, "epsilon": epsilon, "twin": mean(twin), "derived": mean(made)}
                cell |= {"difference": mean(apart), "error": stdev(apart) / len(apart) ** 0.5}
                cell["seconds"] = [sum(pair[i][1] for pair in pairs) / len(pairs) for i in (0, 1)]
                print(json.dumps(cell), flush=True)
                cells.append(cell)
    return cells


def markdown(cells: list[dict[str, Any]], seeds: int) -> str:
    """Cells as rows."""
    lines = [
        f"### Private terms, written by hand (twin) and derived: {seeds} cohorts a cell, δ = {DELTA:g}",
        "",
        "Mean share of the explainable variance on new people. The difference is the mean of paired differences with "
        f"its standard error. A derived term repeats its twin where it loses at most {LOSS:g}.",
        "",
        "| term | n | ε | twin | derived | difference | seconds, twin and derived |",
        "|---|---|---|---|---|---|---|",
    ]
    for c in cells:
        lines.append(
            f"| {c['kind']} | {c['n']:,} | {c['epsilon']:g} | {c['twin']:.4f} | {c['derived']:.4f} "
            f"| {c['difference']:+.4f} ± {c['error']:.4f} | {c['seconds'][0]:.2f}, {c['seconds'][1]:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(CASES), default=[k for k in CASES if k not in GONE])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 3000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=20, help="cohorts a cell")
    parser.add_argument("--shift", type=int, default=500, help="first seed")
    parser.add_argument("--out", type=Path, help="file of Markdown")
    options = parser.parse_args(arguments)
    text = markdown(cells_of(options), options.seeds)
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
