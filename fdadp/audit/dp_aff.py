"""Audit of the private fit: replays through the estimator, exact losses as scores, and many canaries in one run."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from fdadp._common.typing import FloatArray
from fdadp.audit.canaries import (
    CANARIES,
    HANDED,
    X_BOUNDS,
    Y_BOUNDS,
    canary,
    handed,
    named,
    simulated,
)
from fdadp.audit.replay import Neighbours, drawing_from
from fdadp.errors import ExtrapolationWarning, PublicInputWarning
from fdadp.privacy import Budget, Privacy, SeededNoise, TapeNoise
from fdadp.privacy.noise.sources import Noise
from fdadp.privacy.replay import losses
from fdadp.private.release.mechanisms import DPAFF, SHORT
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.additive.fitted import LAYOUT

Data = tuple[Any, Any, Any]
"""X, Y and the person of each row, or None."""

MODES = tuple(itertools.product((1e-6, None), ("zero-out", "add-remove", "replace"), (False, True)))
"""δ, adjacency, whether persons have several rows."""
SIZES = ((60, 1.0), (150, 1.0), (60, 8.0), (150, 20.0), (300, 1.0), (300, 8.0), (100, 0.3))
"""Persons and ε; among them requests that are hopeless, and refused where the released n says so."""
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
        privacy=privacy,
        bounds={"X": X_BOUNDS, "Y": Y_BOUNDS},
        mechanism=DPAFF(allow_useless=True),
        progress=False,
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
    kinds = range(len(CANARIES))
    cases = itertools.cycle(itertools.product(kinds, MODES))  # 10 x 12 = 120 before the first repeats
    order = np.random.default_rng(seed).permutation(len(CANARIES) * len(MODES))
    table = list(itertools.islice(cases, len(order)))
    for number in tqdm(range(tapes), desc="replays", disable=not progress):
        kind, mode = table[order[number % len(order)]]
        yield _pair(number, mechanism, CANARIES[kind], mode, np.random.default_rng([seed, 1, number]))


def _pair(
    number: int, mechanism: str, kind: str, mode: tuple[float | None, str, bool], rng: np.random.Generator
) -> Neighbours:
    delta, adjacency, grouped = mode
    n, epsilon = SIZES[number % len(SIZES)]
    wide_x, wide_y = BOUNDS[int(rng.integers(len(BOUNDS)))]
    counts = rng.integers(1, 4, n) if grouped else np.ones(n, dtype=int)
    persons = np.repeat(np.arange(n), counts)
    x, y, _ = simulated(1 + number % 3, len(persons), rng)
    if grouped:
        shuffle = rng.permutation(len(persons))
        persons = persons[shuffle]
    who = int(rng.integers(n))
    rows = np.flatnonzero(persons == who)
    grid = np.linspace(0, 1, x.shape[1])
    x[rows], y[rows] = canary(kind, grid)
    if len(rows) > 1 and rng.random() < 0.5:  # of one person: rows of several kinds
        x[rows[0]], y[rows[0]] = canary(CANARIES[int(rng.integers(len(CANARIES)))], grid)
    form, naming = HANDED[number % len(HANDED)], int(rng.integers(3))
    ids: Any = named(persons, rows, naming) if grouped else None
    first: Data = (handed(x, rows, form), handed(y, rows, form), ids)
    nobody = np.empty(0, dtype=np.int64)
    how = "replaced"
    if adjacency == "replace":
        other_x, other_y = x.copy(), y.copy()
        other = CANARIES[(CANARIES.index(kind) + int(rng.integers(1, len(CANARIES)))) % len(CANARIES)]
        other_x[rows], other_y[rows] = canary(other, grid)
        second: Data = (handed(other_x, nobody, form), handed(other_y, nobody, form), ids)
        how = f"replaced by {other}"
    elif grouped and number % 2:
        blank = ids.astype(object)
        blank[rows] = None
        second, how = (*first[:2], blank), "blanked out"
    else:
        keep = persons != who
        left = named(persons[keep], nobody, naming) if grouped else None
        second, how = (handed(x[keep], nobody, form), handed(y[keep], nobody, form), left), "deleted"
    model = AdditiveFunctionOnFunction(
        privacy=Privacy(epsilon, delta, n=None if adjacency == "add-remove" else n, adjacency=adjacency),
        bounds={
            "X": (wide_x * X_BOUNDS[0], wide_x * X_BOUNDS[1]),
            "Y": (wide_y * Y_BOUNDS[0], wide_y * Y_BOUNDS[1]),
        },
        mechanism=SHORT[mechanism](allow_useless=adjacency != "add-remove" or number % 3 > 0),
        progress=False,
    )
    name = f"tape {number + 1}: {kind} as {form} {how}, {adjacency}, delta {delta}, n {n}, epsilon {epsilon:g}" + (
        ", several rows" if grouped else ""
    )
    budget = Budget(epsilon, delta)
    return Neighbours(
        name,
        lambda data, noise: observe_fit(data, model, noise),
        first,
        second,
        budget.total,
        accounting=budget.accounting,
    )


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
    sides: tuple[Data, Data] = ((x, y, None), (x[:-1], y[:-1], None))
    model = _useless(Privacy(epsilon, delta, n=n))
    scores = np.empty((2, draws))
    for draw in tqdm(range(2 * draws), desc="fits", disable=not progress):
        side = draw % 2
        tape = TapeNoise(SeededNoise(np.random.default_rng([seed, 2, draw])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PublicInputWarning)  # by chance, at so small n
            fit_with(sides[side], model, tape)
            again = TapeNoise(tape=tape.entries)
            fit_with(sides[1 - side], model, again)
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
