"""Candidates of a private choice, and data that they are fitted to: what is told, and refused, before a read."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from fdadp._common.typing import ArrayLike, IntArray
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.learners.shared.public_encoding import Categorical
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.account.budget import FirstReadError, rehearsal_of
from fdadp.privacy.noise.distributed import noise_source
from fdadp.privacy.noise.sources import SeededNoise
from fdadp.privacy.private_entries import table
from fdadp.private.release.mechanisms import NoiseAfterFit
from fdadp.regression import AdditiveFunctionOnFunction

ROUNDING = 1 - 1e-9
"""ε of a step is converted to the measure of the budget and back."""


@dataclass(frozen=True)
class Data:
    """What ``fit`` of every candidate takes.

    Attributes
    ----------
    X : object
        A table by columns, a table of numbers, or curves.
    Y : object
        What is predicted, or None where it is a column of X.
    grids : mapping of str to array_like
        Points of curves that are plain arrays.
    """

    X: Any
    Y: Any
    grids: Mapping[str, ArrayLike]

    def __len__(self) -> int:
        return _length(next(iter(self.X.values()), ()) if isinstance(self.X, Mapping) else self.X)

    def at(self, places: IntArray) -> Data:
        """Rows at public places.

        Raises
        ------
        InputError
            Columns, or X and Y, of different lengths; the text tells none.
        """
        columns = list(self.X.values()) if isinstance(self.X, Mapping) else [self.X]
        if any(_length(column) != len(self) for column in [*columns, self.Y] if column is not None):
            raise InputError("X and Y, or the columns of X, must have the same number of rows")
        return replace(self, X=_at(self.X, places), Y=_at(self.Y, places))

    def fit(self, model: Any, groups: Any) -> Any:
        """Fit a candidate to them, rows by their position, as they are split and judged; and return it."""
        if takes_columns(model):
            return model.fit(self.X, self.Y, grids=self.grids or None, groups=groups, by="position")
        if isinstance(model, AdditiveFunctionOnFunction):
            return model.fit(self.X, self.Y, s=self.grids.get("X"), t=self.grids.get("Y"), groups=groups, by="position")
        if self.grids:
            raise InputError(f"grids must be left out for {type(model).__name__}, which takes no curves")
        return model.fit(self.X, self.Y, groups=groups)


def takes_columns(model: Any) -> bool:
    """Whether a model is fitted to a table by the names of its columns."""
    return hasattr(model, "formula") and hasattr(model, "response")


def names_labels(model: Any) -> bool:
    """Whether a model predicts labels; those of columns predict probabilities, which are numbers."""
    return bool(is_classifier(model)) and not takes_columns(model)


def described(model: Any) -> str:
    """A candidate in one line, without the guarantee and what is public of columns, which ledgers say elsewhere."""
    twin = clone(model)
    if hasattr(twin, "set_params"):
        held = twin.get_params(deep=False)
        twin.set_params(**{name: None for name in ("privacy", "bounds") if "privacy" in held and name in held})
    return " ".join(str(twin).split())


def _length(column: Any) -> int:
    """Number of rows, by the shape where there is one."""
    shape = getattr(column, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape else len(column)


def _at(values: Any, places: IntArray) -> Any:
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: _at(column, places) for name, column in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[places]
    if isinstance(values, Sequence):
        return [values[i] for i in places]
    if not hasattr(values, "__getitem__"):
        values = table(values).source
    return values[np.asarray(places)]


def configured(
    candidate: Any, privacy: Privacy, budget: Budget, share: float, dataset: str, *, n: int | None, step: int
) -> Any:
    """Copy of a candidate that draws on the common budget.

    Parameters
    ----------
    candidate : estimator
    privacy : Privacy
        Of the whole procedure.
    budget : Budget
    share : float
        Of the budget, for this fit.
    dataset : str
        Name by which the budget knows the data.
    n : int, optional
        Declared number of persons that it is fitted to.
    step : int
        Which fit of the procedure it is: seeded noise is another in each.

    Raises
    ------
    InputError, PrivacyError
        It is no private estimator, or one that is not judged here, or its bounds are not those of a study.
    """
    model = clone(candidate)
    settings: dict[str, Any] = {
        "epsilon": budget.epsilon_of(share * ROUNDING * budget.total),
        "delta": budget.delta,
        "n": n,
        "adjacency": privacy.stated_adjacency,
        "unit": privacy.unit,
        "labels": privacy.labels,
        "budget": budget,
        "dataset": dataset,
        "random_state": _seed(privacy, step),
        "study": None,
        "purpose": privacy.purpose,
    }
    params = model.get_params(deep=False)
    specs = params.get("features")
    specs = specs if isinstance(specs, list) else [specs]
    if "categories" in params or any(isinstance(spec, Categorical) for spec in specs):
        raise InputError("candidates must take tables of numbers: features that are labels are not judged here")
    if "privacy" in params:
        if isinstance(params.get("mechanism"), NoiseAfterFit):
            raise PrivacyError(f"candidates must be private end to end, got {params['mechanism']!r}, which is not")
        model.set_params(privacy=dataclasses.replace(params["privacy"] or privacy, **settings))
        if privacy.study is not None:
            own = params.get("bounds")
            model.set_params(bounds=dict(privacy.bounds_with(own if isinstance(own, Mapping) else None)))
    elif set(settings) <= set(params):
        model.set_params(**settings)
    else:
        raise InputError(
            f"candidates must be private estimators of fdadp, got {type(model).__name__}; what a step before them does "
            "to each row by itself, do to the table"
        )
    return model


def rehearse(models: Sequence[Any], data: Data, groups: Any) -> None:
    """Let each model check all that is public of its fit, up to its first read; nothing is read or spent.

    Raises
    ------
    InputError, PrivacyError
        What it refuses, and which candidate it is.
    """
    if len({takes_columns(model) for model in models}) > 1:
        raise InputError("candidates must all be fitted to one kind of data: tables by columns, or X and Y")
    for at, model in enumerate(models):
        twin = clone(model)
        held = getattr(twin, "privacy", twin)
        held.set_params(budget=rehearsal_of(held.budget))
        with named(at, model), noise_source(SeededNoise(0)):  # of which nothing is drawn
            try:
                data.fit(twin, groups)
            except FirstReadError:
                continue
            raise PrivacyError("a private fit must read its rows in the kernel, got one that does not")


@contextlib.contextmanager
def named(at: int, model: Any) -> Iterator[None]:
    """Errors inside say which candidate they are of."""
    try:
        yield
    except FdadpError as exc:
        raise type(exc)(f"candidate {at + 1}, {type(model).__name__}: {exc}") from exc


def _seed(privacy: Privacy, step: int) -> int | None:
    """Another seed for each step, and for each seed of the procedure."""
    if privacy.random_state is None:
        return None
    return int(np.random.SeedSequence([privacy.random_state, step]).generate_state(1)[0])
