"""Replay audit of models of many terms: every kind of private term, through the estimators that people use.

Neighbouring tables differ in one person, who is a canary in all columns at once: curves, numbers, labels, the types of
whole columns and, where persons have several rows, the ids.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from fdadp.audit.canaries import CANARIES, named
from fdadp.audit.dp_aff import MODES, SIZES
from fdadp.audit.replay import Neighbours, drawing_from
from fdadp.audit.term_tables import FORMS, GRID, PUBLIC, handed_table, neighbours_of, people, put
from fdadp.privacy import Privacy
from fdadp.privacy.noise.sources import Noise
from fdadp.private.release.mechanisms import DPAFF
from fdadp.regression.functional import FunctionalRegression
from fdadp.regression.scalar import ScalarRegression

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
        yield _pair(number, formula, kind, mode, np.random.default_rng([seed, 5, number]))


def _pair(
    number: int, formula: str, kind: str, mode: tuple[float | None, str, bool], rng: np.random.Generator
) -> Neighbours:
    delta, adjacency, grouped = mode
    n, epsilon = SIZES[number % len(SIZES)]
    counts = rng.integers(1, 4, n) if grouped else np.ones(n, dtype=int)
    persons = np.repeat(np.arange(n), counts)
    if grouped:
        persons = rng.permutation(persons)
    table = people(len(persons), rng)
    who = int(rng.integers(n))
    rows, nobody = np.flatnonzero(persons == who), np.empty(0, dtype=np.int64)
    put(table, rows, kind)
    if len(rows) > 1 and rng.random() < 0.5:  # of one person: rows of several kinds
        put(table, rows[:1], CANARIES[int(rng.integers(len(CANARIES)))])
    form, naming = FORMS[number % len(FORMS)], int(rng.integers(3))
    ids: Any = named(persons, rows, naming) if grouped else None
    first: Data = (handed_table(table, rows, form), ids)
    if adjacency == "replace":
        other = CANARIES[(CANARIES.index(kind) + int(rng.integers(1, len(CANARIES)))) % len(CANARIES)]
        changed = {name: values.copy() for name, values in table.items()}
        put(changed, rows, other)
        second, how = (handed_table(changed, nobody, form), ids), f"replaced by {other}"
    elif grouped and number % 2:
        blank = ids.astype(object)
        blank[rows] = None
        second, how = (first[0], blank), "blanked out"
    else:
        keep = persons != who
        left = named(persons[keep], nobody, naming) if grouped else None
        second, how = (handed_table(neighbours_of(table, keep), nobody, form), left), "deleted"
    privacy = Privacy(epsilon, delta, n=None if adjacency == "add-remove" else n, adjacency=adjacency)
    useless = adjacency != "add-remove" or number % 3 > 0
    model = term_model(formula, privacy, allow_useless=useless, widen=(1.0, 2.0, 0.6)[int(rng.integers(3))])
    name = (
        f"tape {number + 1}: {formula}, {kind} as {form} {how}, {adjacency}, delta {delta}, n {n}, epsilon {epsilon:g}"
    )
    return Neighbours(
        name + (", several rows" if grouped else ""),
        lambda data, noise: observe_terms(data, model, noise),
        first,
        second,
        promised(epsilon, delta),
    )
