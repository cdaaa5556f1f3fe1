"""What a learner takes as public of each column, by the column's name, as studies fix it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fdadp.learners.shared.encoding import Categorical, Numeric
from fdadp.privacy.boundary import column_names


def feature_names(model: Any) -> list[str]:
    """Names of the columns of X of a fit; x0, x1, ... where they had none."""
    return list(getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]))


def stated_columns(shown: Mapping[str, Any], X: Any, y: Any) -> Iterator[tuple[str, Any]]:
    """Column names with their ranges (tuples) or levels (lists).

    Parameters
    ----------
    shown : mapping
        The public inputs of a fit, checked: ``bounds``, ``bounds_y``, ``features`` and ``classes`` among them.
    X, y : table and target
        Of which only names are looked at; without names they are X and y.
    """
    columns, target, features = _names(X, "X"), _names(y, "y"), shown.get("features")
    if shown.get("bounds") is not None:
        yield from _ranges(shown["bounds"], columns)
    if isinstance(features, Mapping):
        yield from ((str(name), _of(spec)) for name, spec in features.items())
    elif isinstance(features, Sequence):
        yield from ((columns[i % len(columns)], _of(spec)) for i, spec in enumerate(features))
    if shown.get("bounds_y") is not None:
        yield from _ranges(shown["bounds_y"], target)
    if shown.get("classes") is not None:
        yield from ((name, list(shown["classes"])) for name in target)


def _names(data: Any, argument: str) -> list[str]:
    """Names of columns, or the argument's for all of them."""
    own = column_names(data) or [getattr(data, "name", None)]
    names = [name for name in own if isinstance(name, str)]
    return names if names and len(names) == len(own) else [argument]


def _ranges(bounds: Any, names: Sequence[str]) -> Iterator[tuple[str, tuple[float, float]]]:
    low, high = (np.ravel(np.asarray(b, dtype=np.float64)) for b in bounds)
    for i in range(max(low.size, high.size, len(names))):
        yield names[i % len(names)], (float(low[i % low.size]), float(high[i % high.size]))


def _of(spec: Any) -> Any:
    if isinstance(spec, Numeric):
        return spec.low, spec.high
    return list(spec.values) if isinstance(spec, Categorical) else spec
