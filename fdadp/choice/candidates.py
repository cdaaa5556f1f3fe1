"""Candidates of a private choice: what they are told of the guarantee, and what they refuse before they read."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from fdadp.choice.data import Data, takes_columns
from fdadp.choice.plan import ROUNDING
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.learners.shared.encoding import Categorical
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.account.budget import FirstReadError, rehearsal_of
from fdadp.privacy.noise.distributed import noise_source
from fdadp.privacy.noise.sources import SeededNoise
from fdadp.private.release.mechanisms import NoiseAfterFit


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
            model.set_params(bounds=dict(privacy.bounds_with(_bounds(params))))
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


def _bounds(params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    bounds = params.get("bounds")
    return bounds if isinstance(bounds, Mapping) else None


def _seed(privacy: Privacy, step: int) -> int | None:
    """Another seed for each step, and for each seed of the procedure."""
    if privacy.random_state is None:
        return None
    return int(np.random.SeedSequence([privacy.random_state, step]).generate_state(1)[0])
