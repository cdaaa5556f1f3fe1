"""What the held-out persons say of fitted candidates: errors row by row, how far they differ, and utilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from fdadp._common.typing import FloatArray
from fdadp.choice.candidates import Data, names_labels, takes_columns
from fdadp.errors import InputError
from fdadp.learners.shared.public_inputs import as_target
from fdadp.privacy import Privacy
from fdadp.privacy.private_entries import Table, labels, table
from fdadp.private.public.curve_shapes import private_curves
from fdadp.regression import AdditiveFunctionOnFunction
from fdadp.regression.private.fit import PrivateSettings, prepared
from fdadp.regression.private.private_table import Entries, PrivateTable

OCTAVES = 20
"""Sizes of differences that are told apart, each half of the one before, from the clip downwards."""
WIDE = 1.0
"""Difference of a person's errors from their mean at which its utility ends, over the middle size of differences."""

Block = tuple[FloatArray, ...]


@dataclass(frozen=True)
class Reader:
    """What is read of a row to predict for it with one candidate.

    Attributes
    ----------
    tables : tuple of Table
    at : tuple of int
        Their places in what the judges read.
    predict : callable
        From those parts of one row to its prediction.
    """

    tables: tuple[Table, ...]
    at: tuple[int, ...]
    predict: Callable[[Block], Any]


@dataclass(frozen=True)
class Judges:
    """Fitted candidates, and what is read of a row to judge them.

    Attributes
    ----------
    target : Table
        What is predicted: numbers, curves or codes of labels.
    readers : tuple of Reader
    classes : list
        Public labels, of classifiers; else none.
    clip : float
        Squared error at which it is cut off.
    """

    target: Table
    readers: tuple[Reader, ...]
    classes: list[Any]
    clip: float
    _tables: tuple[Table, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, models: Sequence[Any], data: Data, ids: Any, clip: float | None) -> Judges:
        """Judges of fitted candidates; only shapes and labels are looked at.

        Raises
        ------
        InputError
            The candidates predict different things.
        """
        readers: list[Reader] = []
        targets: list[Table] = []
        tables: list[Table] = []
        if takes_columns(models[0]):
            for model in models:
                target, entries, columns = _of_columns(clone(model), data, ids)
                readers.append(_reader(model, entries, columns, len(tables) + 1))
                targets.append(target)
                tables += columns
            what = {(model.response_name_, target.shape[1:]) for model, target in zip(models, targets, strict=True)}
            if len(what) > 1:
                raise InputError(f"candidates must have one response, got {', '.join(sorted(str(w[0]) for w in what))}")
        else:
            x, y = _x_and_y(models, data)
            readers = [Reader((x,), (1,), _by_rows(model)) for model in models]
            targets, tables = [y], [x]
        classes = list(models[0].classes) if names_labels(models[0]) else []
        return cls(targets[0], tuple(readers), classes, math.inf if clip is None else clip, tuple(tables))

    @property
    def data(self) -> tuple[Table, ...]:
        """What the kernel reads: the target, and covariates."""
        return (self.target, *self._tables)

    def errors(self, block: Block) -> FloatArray:
        """Errors of all candidates, shape (m, J): squared and cut off, or 0 and 1 of labels; NaN of no row.

        Predictions are made for one row at a time, so that they do not hang on the rows beside it. A candidate that
        can say nothing of a row errs as much as can be; where none can, or Y is unknown, the row counts as no row.
        """
        out = np.full((len(block[0]), len(self.readers)), np.nan)
        known: dict[bytes, list[Any]] = {}  # equal rows have equal predictions
        for i in range(len(out)):
            y = np.ravel(block[0][i])
            if not np.isfinite(y).any():
                continue
            row = tuple(part[i : i + 1] for part in block[1:])
            key = b"".join(part.tobytes() for part in row)
            if key not in known:
                known[key] = [_prediction(reader, row) for reader in self.readers]
            if any(found is not None for found in known[key]):
                out[i] = [self._error(found, y) for found in known[key]]
        return out

    def _error(self, found: Any, y: FloatArray) -> float:
        if self.classes:
            return float(found is None or found not in self.classes or self.classes.index(found) != int(y[0]))
        if found is None:
            return self.clip
        square = float(np.nanmean((np.ravel(np.asarray(found, dtype=np.float64)) - y) ** 2))
        return min(square, self.clip) if np.isfinite(square) else self.clip

    def size(self, block: Block) -> FloatArray:
        """How far the errors (m, J) of a row differ: which halving of the clip, as 0 and 1; shape (m, OCTAVES)."""
        (errors,) = block
        spread = errors.max(axis=1) - errors.min(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            octave = np.floor(np.log2(self.clip / spread))
        out: FloatArray = (np.clip(octave, 0, OCTAVES - 1)[:, None] == np.arange(OCTAVES)).astype(np.float64)
        out[~np.isfinite(spread)] = np.nan
        return out

    def scale(self, counts: FloatArray) -> float:
        """Scale of utilities, from noisy numbers of persons by the size of their differences."""
        seen = np.cumsum(counts[::-1])  # from the smallest on
        middle = int(np.argmax(seen >= seen[-1] / 2)) if seen[-1] > 0 else OCTAVES - 1
        return float(WIDE * self.clip * 2.0 ** (middle + 1 - OCTAVES))

    def utilities(self, scale: float) -> Callable[[Block], FloatArray]:
        """Row function of utilities in [0, 1], of errors (m, J): one half for a candidate of average error."""

        def of(block: Block) -> FloatArray:
            (errors,) = block
            if self.classes:
                return 1 - errors
            total = errors[:, :1].copy()
            for j in range(1, errors.shape[1]):
                total += errors[:, j : j + 1]
            return np.asarray(np.clip(0.5 + (total / errors.shape[1] - errors) / (2 * scale), 0.0, 1.0))

        return of


def clip_of(models: Sequence[Any], privacy: Privacy, clip: float | None) -> float | None:
    """Public bound at which a person's squared error is cut off; None of classifiers.

    Raises
    ------
    InputError
        It is no number above 0, or none is given and the candidates have no common range of Y.
    """
    if names_labels(models[0]):
        return None
    if clip is None and is_classifier(models[0]):  # of probabilities
        clip = 1.0
    if clip is None:
        ranges = {_range(model, privacy) for model in models}
        if len(ranges) > 1 or None in ranges:
            raise InputError("clip must be given: candidates have no common public range of Y")
        low, high = ranges.pop() or (0.0, 0.0)
        clip = ((high - low) / 4) ** 2
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or not 0 < clip < 1e100:
        raise InputError(f"clip must be a finite number above 0, got {clip!r}")
    return float(clip)


def _range(model: Any, privacy: Privacy) -> tuple[float, float] | None:
    """Public range of what a model predicts, its own or a study's."""
    pair = getattr(model, "bounds_y", None)
    given = getattr(model, "bounds", None)
    if pair is None and (given is None or isinstance(given, Mapping)):
        pair = privacy.bounds_with(given).get(response_of(model))
    if pair is None or isinstance(pair, str) or len(pair) != 2:
        return None
    try:
        return float(min(pair)), float(max(pair))
    except (TypeError, ValueError):
        return None


def response_of(model: Any) -> str:
    """Name of the response of a model, by its settings alone."""
    if not takes_columns(model):
        return "Y"
    if isinstance(model.formula, str):
        return model.formula.split("~")[0].strip()
    return str(model.response or model._default_response)


def _prediction(reader: Reader, row: Block) -> Any:
    """What a candidate predicts for a row, None where that fails or is not finite."""
    try:
        found = reader.predict(tuple(row[at - 1].copy() for at in reader.at))
    except Exception:  # nothing may be told of a row that cannot be predicted for
        return None
    return None if isinstance(found, np.ndarray) and not np.isfinite(found).all() else found


def _x_and_y(models: Sequence[Any], data: Data) -> tuple[Table, Table]:
    """Tables of X and of what is predicted."""
    if names_labels(models[0]):
        classes = {tuple(model.classes or ()) for model in models}
        if len(classes) > 1 or not next(iter(classes)):
            raise InputError(f"candidates must have the same public classes, got {sorted(map(str, classes))}")
        return table(data.X, "X"), labels(data.Y, list(next(iter(classes))))
    if isinstance(models[0], AdditiveFunctionOnFunction):
        x, y = (private_curves(own, data.grids.get(name), name) for own, name in ((data.X, "X"), (data.Y, "Y")))
        return _table(x.values), _table(y.values)
    return table(data.X, "X"), as_target(data.Y)


def _by_rows(model: Any) -> Callable[[Block], Any]:
    if names_labels(model):
        return lambda row: model.predict(row[0])[0]
    return lambda row: _values(model.predict(row[0]))


def _of_columns(twin: Any, data: Data, ids: Any) -> tuple[Table, list[Entries], list[Table]]:
    """The response of a model of columns, and what is read for its terms."""
    private = PrivateSettings.of(twin)
    own = PrivateTable(data.X, data.grids or None, private.public_bounds(), data.Y)
    found = prepared(private, own, given=data.Y)
    entries = list(found.reading.given.values())
    *columns, target = (_table(own.entries(asked)) for asked in entries)
    return target, entries[:-1], columns


def _reader(model: Any, entries: Sequence[Entries], columns: Sequence[Table], first: int) -> Reader:
    def predict(row: Block) -> Any:
        return _values(
            model.predict({asked.column: _shown(asked, part) for asked, part in zip(entries, row, strict=True)})
        )

    return Reader(tuple(columns), tuple(range(first, first + len(columns))), predict)


def _shown(asked: Entries, part: FloatArray) -> Any:
    """One row of a column as a user would give it."""
    if asked.kind != "labels":
        return part
    code = float(part.ravel()[0])
    return np.array([asked.levels[int(code)] if math.isfinite(code) else None], dtype=object)


def _values(found: Any) -> FloatArray:
    """Numbers of a prediction, whatever it came as."""
    values = found.data_matrix if hasattr(found, "data_matrix") else found
    return np.asarray(values, dtype=np.float64)


def _table(values: Any) -> Table:
    return values if isinstance(values, Table) else table(values)
