"""Replay audit of models of many terms: every kind of private term, through the estimators that people use.

Neighbouring tables differ in one person, who is a canary: it stands out in all columns at once, in curves, numbers,
labels, the types of whole columns and, where persons have several rows, the ids.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from tqdm import tqdm

from fdadp._common.typing import IntArray
from fdadp.audit.private_regression_audits import CANARIES, HANDED, MODES, Mode, canary, handed, sides
from fdadp.audit.replay import Neighbours, drawing_from
from fdadp.privacy import Privacy
from fdadp.privacy.noise.sources import Noise
from fdadp.private.release.mechanisms import DPAFF
from fdadp.regression.functional import FunctionalRegression
from fdadp.regression.scalar import ScalarRegression

GRID = np.linspace(0, 1, 15)
PUBLIC: dict[str, Any] = {
    "X": (-4.5, 4.5),
    "V": (0.0, 90.0),
    "z": (0.0, 100.0),
    "w": (-2.0, 2.0),
    "g": ["a", "b", "c"],
    "h": ["yes", "no"],
    "Y": (-8.0, 8.0),
    "y": (-8.0, 8.0),
}
"""Bounds and levels, given of every column."""
FORMS = (*HANDED, "one frame")
"""How a table comes from its owner; in one frame numbers and labels have the types that pandas gives them."""

LABELS = {"outside": "elsewhere", "missing": None, "huge": 1e30, "infinite": float("inf"), "gaps": "NA", "nothing": ""}
ENDS = {"high": 0.98, "low": -0.98, "outside": 3.0, "missing": np.nan, "huge": 1e28, "infinite": np.inf, "nothing": 0.0}
"""Of a canary's numbers, in half-widths about the middle of the bounds; half of them for what is not listed."""


def people(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Columns of n rows, in units far from each other."""
    x, v = (rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * np.cos(3 * GRID) for _ in range(2))
    z, w = rng.uniform(10, 90, n), rng.normal(0, 0.6, n)
    g, h = rng.integers(0, 3, n), rng.integers(0, 2, n)
    signal = x.mean(axis=1) + (z - 50) / 40 + 0.5 * w + np.array([0.4, 0.0, -0.4])[g]
    return {
        "X": x,
        "V": 45 + 12 * v,
        "z": z,
        "w": w,
        "g": np.array(["a", "b", "c"], dtype=object)[g],
        "h": np.array(["yes", "no"], dtype=object)[h],
        "Y": signal[:, None] * (1 + GRID) + 0.3 * v + 0.4 * rng.normal(size=x.shape),
        "y": signal + 0.4 * rng.normal(size=n),
    }


def put(table: dict[str, Any], rows: IntArray, kind: str) -> None:
    """Make a canary of rows, in every column."""
    x, y = canary(kind, GRID)
    table["X"][rows], table["Y"][rows] = x, y
    table["V"][rows] = 45 + 10 * x[::-1]
    for name in ("z", "w", "y"):
        low, high = PUBLIC[name]
        table[name][rows] = (low + high) / 2 + (high - low) / 2 * ENDS.get(kind, 0.5)
    for name in ("g", "h"):
        table[name][rows] = LABELS.get(kind, PUBLIC[name][-1])


def handed_table(table: dict[str, Any], rows: IntArray, form: str) -> Any:
    """The table as its owner has it; `rows` are the canary's, whose entries may change the types of whole columns."""
    if form == "one frame":
        return _frame(table, rows)
    out: dict[str, Any] = {}
    for name, values in table.items():
        if values.dtype != object:
            out[name] = handed(values.reshape(len(values), -1), rows, form)
        elif form in ("text", "long doubles"):  # as NumPy reads them from a file: None has become a text
            out[name] = values.astype(str)
        else:
            out[name] = values
    return out


def _frame(table: dict[str, Any], rows: IntArray) -> pd.DataFrame:
    """Curves as FDataGrids; numbers with a text among them, of a nullable type or as they are; labels categorical."""
    from skfda import FDataGrid

    index = np.arange(len(table["z"]))[::-1]
    z, w = table["z"], pd.Series(table["w"], index=index)
    if len(rows):
        z = z.astype(object)
        z[rows] = "unknown"
    columns: dict[str, Any] = {
        "z": pd.Series(z, index=index),
        "w": w.astype("Float64") if len(rows) else w,
        "g": pd.Categorical(table["g"]),
        "h": pd.Series(table["h"], index=index),
        "y": pd.Series(table["y"], index=index),
    }
    frame = pd.DataFrame(columns, index=index)
    for name in ("X", "V", "Y"):
        frame[name] = FDataGrid(table[name], GRID)
    return frame


MODELS = (
    "Y ~ ff(X)",
    "Y ~ sff(X)",
    "Y ~ z",
    "Y ~ C(g)",
    "Y ~ s(z) + h",
    "Y ~ te(z, w)",
    "Y ~ ff(X):C(g) + z",
    "Y ~ z:C(h) + ff(V)",
    "Y ~ ff(X) + z + C(g)",
    "Y ~ sff(X) + w + h",
    "Y ~ ff(X) + ff(V) + z + w",
    "Y ~ concurrent(X)",
    "Y ~ ff(X, limits='s<=t') + z",
    "Y ~ concurrent(X):C(g) + ff(V)",
    "Y ~ concurrent(X) + ff(V, limits='s<t') + C(h)",
    "y ~ lf(X)",
    "y ~ af(X)",
    "y ~ z + w",
    "y ~ C(g) + h",
    "y ~ s(z) + lf(V)",
    "y ~ te(z, w)",
    "y ~ lf(X):w",
    "y ~ lf(X) + z + C(g)",
    "y ~ lf(X) + lf(V) + z + w",
)
"""Formulas; responses in capitals are curves."""

Data = tuple[Any, Any]
"""A table, and the person of each row or None."""
Model = FunctionalRegression | ScalarRegression


def term_model(formula: str, privacy: Privacy, *, allow_useless: bool = True, widen: float = 1.0) -> Model:
    """Estimator for a formula, with the public bounds of its columns, wider by a factor than the right ones."""
    used = {name for name in PUBLIC if name in _names(formula)}
    bounds = {name: _wider(PUBLIC[name], widen) for name in used}
    kind = FunctionalRegression if _along(formula) else ScalarRegression
    return kind(formula, privacy=privacy, bounds=bounds, mechanism=DPAFF(allow_useless=allow_useless))


def _names(formula: str) -> set[str]:
    return set("".join(c if c.isalnum() else " " for c in formula).split())


def _along(formula: str) -> bool:
    return formula.startswith("Y")


def _wider(public: Any, widen: float) -> Any:
    if isinstance(public, list):
        return public
    middle, half = sum(public) / 2, (public[1] - public[0]) / 2
    return (middle - widen * half, middle + widen * half)


def promised(epsilon: float, delta: float | None) -> float:
    """What losses may add up to, μ²/2 or ε: of (ε, δ) from its definition, and not by what budgets are made with."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr

    if delta is None:
        return epsilon

    def excess(mu: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))) - delta

    return float(brentq(excess, 1e-3, 20.0 + 2 * epsilon, xtol=1e-14)) ** 2 / 2


def observe_terms(data: Data, model: Model, noise: Noise) -> dict[str, Any]:
    """Everything that comes out of a private fit: the object, its file, texts, effects, predictions with intervals."""
    table, groups = data
    fitted: Any = clone(model)
    along = _along(str(model.formula))
    own = isinstance(table, dict)
    grids = {name: GRID for name in ("X", "V", "Y") if name in table} if own else None
    with drawing_from(fitted, noise):
        fitted.fit(table, grids=grids, groups=groups)
    with tempfile.TemporaryDirectory() as folder:
        saved = fitted.save(Path(folder) / "model").read_bytes()
    new = people(4, np.random.default_rng(0))
    return {
        "attributes": vars(fitted),
        "saved": saved,
        "ledger": fitted.ledger_.to_json(),
        "texts": [str(fitted.ledger_), str(fitted.plan_), str(fitted.summary()), repr(fitted), *fitted.notes_],
        "effects": [fitted.coef(name).to_numpy() for name in fitted.term_names_[along + 1 :]],
        "predictions": [fitted.predict(new), *fitted.predict_interval(new)],
    }


def term_pairs(tapes: int, *, seed: int = 0, skip: int = 0, progress: bool = False) -> Iterator[Neighbours]:
    """Neighbouring tables: models x canaries x adjacencies x persons with several rows, in an order by chance.

    Sizes, bounds, the types that the canary makes of its columns, and how it leaves the data, take turns. All cases
    come once before the first repeats; `skip` leaves out so many of the first.
    """
    cases = list(itertools.product(MODELS, CANARIES, MODES))
    order = np.random.default_rng(seed).permutation(len(cases))
    for number in tqdm(range(skip, skip + tapes), desc="replays", disable=not progress):
        formula, kind, mode = cases[order[number % len(cases)]]
        yield _term_pair(number, formula, kind, mode, np.random.default_rng([seed, 5, number]))


def _term_pair(number: int, formula: str, kind: str, mode: Mode, rng: np.random.Generator) -> Neighbours:
    def make(persons: IntArray) -> tuple[IntArray, dict[str, Any]]:
        persons = rng.permutation(persons) if mode[2] else persons
        return persons, people(len(persons), rng)

    found = sides(number, kind, mode, rng, make=make, put=put, hand=handed_table, forms=FORMS)
    widen = (1.0, 2.0, 0.6)[int(rng.integers(3))]
    model = term_model(formula, found.privacy, allow_useless=found.allow_useless, widen=widen)
    return Neighbours(
        f"tape {number + 1}: {formula}, {found.text}",
        lambda data, noise: observe_terms(data, model, noise),
        found.first,
        found.second,
        promised(found.privacy.epsilon, found.privacy.delta),
    )
