"""Audit of the private fit: replays through the estimator, exact losses as scores, and many canaries in one run.

Canaries are people with extreme curves, curves outside the bounds, or values that are no numbers. They also stand out
by the types of their entries: one of them makes text, objects or long doubles of a whole table.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from tqdm import tqdm

from fdadp._common.typing import FloatArray, IntArray
from fdadp.audit.replay import Neighbours, drawing_from
from fdadp.errors import ExtrapolationWarning, PublicInputWarning
from fdadp.privacy import Budget, Privacy, SeededNoise, TapeNoise
from fdadp.privacy.noise.sources import Noise
from fdadp.privacy.replayed_loss import losses
from fdadp.private.release.mechanisms import DPAFF, SHORT
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.additive.fitted_surface import LAYOUT

X_BOUNDS, Y_BOUNDS = (-4.5, 4.5), (-8.0, 8.0)
CANARIES = ("high", "low", "waves", "outside", "missing", "huge", "infinite", "gaps", "nothing", "ordinary")

HANDED = ("arrays", "text", "masked", "objects", "long doubles", "frame")
"""How a table comes from its owner: what one person's entry makes of it."""


def handed(values: FloatArray, rows: IntArray, how: str) -> Any:
    """A table (n, S) as its owner has it, the first entry of the canary's rows being no number.

    Without such rows it has the type that it has without the canary.
    """
    if how == "arrays" or (not len(rows) and how != "frame"):
        return values
    if how == "masked":
        mask = np.zeros(values.shape, dtype=bool)
        mask[rows, 0] = True
        return np.ma.MaskedArray(values, mask=mask)
    if how == "long doubles":
        wide = values.astype(np.longdouble)
        wide[rows, 0] = np.ldexp(np.longdouble(1), 5000)
        return wide
    cells = values.astype(object)
    cells[rows, 0] = "n/a" if how in ("text", "frame") else None
    if how == "frame":
        return pd.DataFrame(cells).infer_objects()
    return np.array(cells.tolist()) if how == "text" else cells


def named(persons: IntArray, rows: IntArray, how: int) -> Any:
    """Ids of persons as their owner has them: objects, numbers, or all text because the canary has a name."""
    if how == 0:
        return persons.astype(object)
    ids = persons.tolist()
    for row in rows if how == 2 else ():
        ids[row] = "H7"
    return np.array(ids)


def canary(kind: str, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """X and Y of one person on a grid on [0, 1]."""
    one, number = np.ones_like(grid), np.arange(grid.size)
    x, y = 0.98 * X_BOUNDS[1] * one, 0.98 * Y_BOUNDS[1] * one
    seen = number % 7 == 3
    pairs = {
        "high": (x, y),
        "low": (-x, -y * np.sign(np.cos(3 * np.pi * grid))),
        "waves": (x * np.sign(np.sin(12 * np.pi * grid + 0.1)), y),
        "outside": (3 * X_BOUNDS[1] * one, -2 * Y_BOUNDS[1] * one),
        "missing": (np.nan * one, np.nan * one),
        "huge": (1e30 * one, -1e30 * one),
        "infinite": (np.where(number % 2 == 1, np.inf, 0.0), np.inf * one),
        "gaps": (np.where(seen, x, np.nan), np.where(seen[::-1], -y, np.nan)),
        "nothing": (1e-9 * one, 1e-12 * one),
        "ordinary": (np.sin(2 * np.pi * grid), 1 + grid),
    }
    return pairs[kind]


def simulated(scenario: int, n: int, seed: object, n_points: int = 31) -> tuple[FloatArray, FloatArray, FloatArray]:
    """X, Y and the true mean of Y, each (n, n_points); the bounds above hold for nearly all of them."""
    from fdadp.datasets import simulate_affr

    curves = simulate_affr(scenario, n=n, seed=seed, n_points=n_points)  # type: ignore[arg-type]
    X, Y = (np.ascontiguousarray(own.data_matrix[..., 0]) for own in (curves.X, curves.Y))
    return X, Y, curves.mean_function


Data = tuple[Any, Any, Any]
"""X, Y and the person of each row, or None."""

Mode = tuple[float | None, str, bool]
MODES = tuple(itertools.product((1e-6, None), ("zero-out", "add-remove", "replace"), (False, True)))
"""δ, adjacency, whether persons have several rows."""
SIZES = ((60, 1.0), (120, 400.0), (60, 8.0), (150, 20.0), (300, 1.0), (300, 8.0), (100, 0.3))
"""Persons and ε; among them requests that are hopeless, and refused where the released n says so, and one that affords
every release there is."""
BOUNDS = ((1.0, 1.0), (2.0, 1.0), (0.5, 0.6))
"""Public ranges, relative to the right ones."""


def fit_with(data: Data, model: AdditiveFunctionOnFunction, noise: Noise | None) -> AdditiveFunctionOnFunction:
    """Fit a clone of an estimator, with a source of noise of our own."""
    x, y, groups = data
    model = clone(model)
    with drawing_from(model, noise):
        return model.fit(x, y, groups=groups)


def _useless(privacy: Privacy) -> AdditiveFunctionOnFunction:
    """Model with a mechanism that does not refuse useless settings."""
    return AdditiveFunctionOnFunction(
        privacy=privacy, bounds={"X": X_BOUNDS, "Y": Y_BOUNDS}, mechanism=DPAFF(allow_useless=True), progress=False
    )


def observe_fit(data: Data, model: AdditiveFunctionOnFunction, noise: Noise) -> dict[str, Any]:
    """Everything that comes out of a private fit: the object, the saved file, texts, predictions with intervals."""
    model = fit_with(data, model, noise)
    with tempfile.TemporaryDirectory() as folder:
        saved = LAYOUT.read(model.save(Path(folder) / "model.npz"))
    new = np.linspace(-3.0, 3.0, 4)[:, None] * np.ones(model.s_.size)
    return {
        "attributes": vars(model),
        "saved": saved,
        "ledger": model.ledger_.to_json() if model.ledger_ is not None else None,
        "texts": [str(model.ledger_), model.summary().as_text(), repr(model)],
        "predictions": [model.predict(new), *model.predict_interval(new)],
        "surface": model.surface([-1.0, 0.0, 1.0], model.s_[::10], model.t_[::10]),
    }


def replay_pairs(
    tapes: int, *, mechanism: str = "dp-aff", seed: int = 0, progress: bool = False
) -> Iterator[Neighbours]:
    """Neighbouring data sets: canaries x adjacencies x modes x persons with several rows; sizes, bounds and the types
    that the canary's entries and id make of the tables in turn.

    The person is really deleted (its rows are gone), blanked out (its rows have no person; every other time where
    persons have several rows), or replaced.
    """
    cases = list(itertools.product(CANARIES, MODES))  # 10 x 12 = 120 before the first repeats
    order = np.random.default_rng(seed).permutation(len(cases))
    for number in tqdm(range(tapes), desc="replays", disable=not progress):
        kind, mode = cases[order[number % len(cases)]]
        yield _curve_pair(number, mechanism, kind, mode, np.random.default_rng([seed, 1, number]))


def _curve_pair(number: int, mechanism: str, kind: str, mode: Mode, rng: np.random.Generator) -> Neighbours:
    wide_x, wide_y = BOUNDS[int(rng.integers(len(BOUNDS)))]

    def make(persons: IntArray) -> tuple[IntArray, dict[str, Any]]:
        x, y, _ = simulated(1 + number % 3, len(persons), rng, n_points=33)  # which carry looks at roughness
        return persons[rng.permutation(len(persons))] if mode[2] else persons, {"X": x, "Y": y}

    def put(table: dict[str, Any], rows: IntArray, kind: str) -> None:
        table["X"][rows], table["Y"][rows] = canary(kind, np.linspace(0, 1, table["X"].shape[1]))

    def hand(table: dict[str, Any], rows: IntArray, form: str) -> Any:
        return handed(table["X"], rows, form), handed(table["Y"], rows, form)

    found = sides(number, kind, mode, rng, make=make, put=put, hand=hand, forms=HANDED)
    model = AdditiveFunctionOnFunction(
        privacy=found.privacy,
        bounds={"X": (wide_x * X_BOUNDS[0], wide_x * X_BOUNDS[1]), "Y": (wide_y * Y_BOUNDS[0], wide_y * Y_BOUNDS[1])},
        mechanism=SHORT[mechanism](allow_useless=found.allow_useless),
        progress=False,
    )
    budget = Budget(found.privacy.epsilon, found.privacy.delta)
    return Neighbours(
        f"tape {number + 1}: {found.text}",
        lambda data, noise: observe_fit(data, model, noise),
        (*found.first[0], found.first[1]),
        (*found.second[0], found.second[1]),
        budget.total,
        accounting=budget.accounting,
    )


class Sides(NamedTuple):
    """Two neighbouring tables with the ids of their rows, how they differ, and what is asked of them."""

    first: tuple[Any, Any]
    second: tuple[Any, Any]
    text: str
    privacy: Privacy
    allow_useless: bool


def sides(
    number: int,
    kind: str,
    mode: Mode,
    rng: np.random.Generator,
    *,
    make: Callable[[IntArray], tuple[IntArray, dict[str, Any]]],
    put: Callable[[dict[str, Any], IntArray, str], None],
    hand: Callable[[dict[str, Any], IntArray, str], Any],
    forms: Sequence[str],
) -> Sides:
    """Tables with one person, a canary, and without it; or with another in its place.

    Parameters
    ----------
    number : int
        Of the pair: sizes, forms and ways to leave the data take turns.
    kind : str
        Of the canary.
    mode : tuple
        One of :data:`MODES`.
    rng : Generator
    make : callable
        From the persons of rows (m,) to these, perhaps in another order, and a table of their rows.
    put : callable
        Puts a canary of a kind into rows of a table.
    hand : callable
        Hands a table over in a form, of which the canary's rows make its types.
    forms : sequence of str
    """
    delta, adjacency, grouped = mode
    n, epsilon = SIZES[number % len(SIZES)]
    counts = rng.integers(1, 4, n) if grouped else np.ones(n, dtype=int)
    persons, table = make(np.repeat(np.arange(n), counts))
    who = int(rng.integers(n))
    rows, nobody = np.flatnonzero(persons == who), np.empty(0, dtype=np.int64)
    put(table, rows, kind)
    if len(rows) > 1 and rng.random() < 0.5:  # of one person: rows of several kinds
        put(table, rows[:1], CANARIES[int(rng.integers(len(CANARIES)))])
    form, naming = forms[number % len(forms)], int(rng.integers(3))
    ids: Any = named(persons, rows, naming) if grouped else None
    first = hand(table, rows, form), ids
    if adjacency == "replace":
        other = CANARIES[(CANARIES.index(kind) + int(rng.integers(1, len(CANARIES)))) % len(CANARIES)]
        changed = {name: values.copy() for name, values in table.items()}
        put(changed, rows, other)
        second, how = (hand(changed, nobody, form), ids), f"replaced by {other}"
    elif grouped and number % 2:
        blank = ids.astype(object)
        blank[rows] = None
        second, how = (first[0], blank), "blanked out"
    else:
        keep = persons != who
        left = named(persons[keep], nobody, naming) if grouped else None
        second, how = (hand(neighbours_of(table, keep), nobody, form), left), "deleted"
    text = f"{kind} as {form} {how}, {adjacency}, delta {delta}, n {n}, epsilon {epsilon:g}"
    privacy = Privacy(epsilon, delta, n=None if adjacency == "add-remove" else n, adjacency=adjacency)
    useless = adjacency != "add-remove" or number % 3 > 0
    return Sides(first, second, text + (", several rows" if grouped else ""), privacy, useless)


def neighbours_of(table: dict[str, Any], keep: Any) -> dict[str, FloatArray]:
    """The table without the rows of one person."""
    return {name: values[keep] for name, values in table.items()}


def loss_scores(
    n: int, *, epsilon: float, delta: float | None, draws: int, seed: int = 0, progress: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Privacy loss of outputs with the canary and of outputs without it: the score of an observer who sees all.

    Parameters
    ----------
    n : int
        Declared number of persons; the canary is one of them, and deleted on the other side.
    epsilon, delta : float
    draws : int
        On each side; each takes two fits.
    seed : int
    progress : bool
    """
    x, y, _ = simulated(2, n, seed)
    x[-1], y[-1] = 4.3, 7.5
    data: tuple[Data, Data] = ((x, y, None), (x[:-1], y[:-1], None))
    model = _useless(Privacy(epsilon, delta, n=n))
    scores = np.empty((2, draws))
    for draw in tqdm(range(2 * draws), desc="fits", disable=not progress):
        side = draw % 2
        tape = TapeNoise(SeededNoise(np.random.default_rng([seed, 2, draw])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicInputWarning)  # by chance, at so small n
            fit_with(data[side], model, tape)
            again = TapeNoise(tape=tape.entries)
            fit_with(data[1 - side], model, again)
        loss = sum(each.loss for each in losses(tape.entries, again.entries))
        scores[side, draw // 2] = loss if side == 0 else -loss
    return scores[0], scores[1]


def one_run(
    n: int, *, epsilon: float | None, delta: float | None, canaries: int = 200, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Who of many canaries was included, and how much the one model fitted looks like it.

    Each canary has a rough curve of its own and a response far off in a direction of its own. Its score is the inner
    product of what the model predicts for it and of its response, both about their means over canaries.

    Parameters
    ----------
    n : int
        Other persons.
    epsilon : float or None
        None fits without privacy, for comparison.
    delta : float or None
    canaries : int
    seed : int

    Returns
    -------
    included : ndarray of shape (canaries,), 0 or 1
    scores : ndarray of shape (canaries,)
    """
    rng = np.random.default_rng([seed, 3])
    x, y, _ = simulated(2, n, rng)
    grid = np.linspace(0, 1, x.shape[1])
    waves = np.stack([np.cos(np.pi * k * grid) for k in range(5)])
    own_x = np.clip(rng.normal(size=(canaries, 5)) @ waves, -4.4, 4.4)
    own_y = 1 + grid + np.clip(3.0 * rng.normal(size=(canaries, 3)) @ waves[:3], -6.0, 6.0)
    included = rng.random(canaries) < 0.5
    data = (np.concatenate([x, own_x[included]]), np.concatenate([y, own_y[included]]), None)
    if epsilon is None:
        model = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, n_components=3, progress=False).fit(*data[:2])
    else:
        private = _useless(Privacy(epsilon, delta, n=n + canaries, random_state=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicInputWarning)  # of the declared n half of the canaries are left out
            model = fit_with(data, private, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        predicted = model.predict(own_x)
    away = (predicted - predicted.mean(axis=0)) * (own_y - own_y.mean(axis=0))
    return included.astype(np.float64), away.mean(axis=1)
