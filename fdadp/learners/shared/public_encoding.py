"""Tables of numbers and labels as bounded numbers, by public rules alone: nothing is learnt from the data.

scikit-learn's encoders and scalers take categories, ranges and quantiles from the rows that they are fitted on; before
a private fit that is a release without noise. Here all of it is declared, and a row is encoded by itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared.public_inputs import box_of, check_distinct, in_order, public
from fdadp.privacy.private_entries import Table, column_names, columns, index_of, table


@dataclass(frozen=True)
class Numeric:
    """A feature of numbers with a public range, in public bins if wanted.

    Parameters
    ----------
    low, high : float
        Range; values outside are moved to its ends.
    edges : sequence of float or int, optional
        Increasing cut points strictly between low and high, in the feature's units: K of them make K + 1 bins, a cut
        belonging to the bin above it. An integer b: b bins of equal width (of log1p where that is set).
    log1p : bool
        Work with log(1 + x), for long right tails; low must be at least 0.

    Raises
    ------
    InputError
        The range or the edges are not as said.

    Examples
    --------
    >>> Numeric(0, 100, edges=[18, 65]).bins([17.9, 18, 1000, float("nan")])
    array([ 0.,  1.,  2., nan])
    >>> Numeric(0, 100).scaled([-5, 25, 200])
    array([0.  , 0.25, 1.  ])
    """

    low: float
    high: float
    edges: Sequence[float] | int | None = None
    log1p: bool = False

    def __post_init__(self) -> None:
        try:
            low, high = float(self.low), float(self.high)
        except (TypeError, ValueError) as exc:
            raise InputError(f"low and high must be numbers, got {self.low!r} and {self.high!r}") from exc
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise InputError(f"low and high must be finite with low < high, got {self.low!r} and {self.high!r}")
        if self.log1p and low < 0:
            raise InputError(f"low must be at least 0 with log1p, got {low:g}")
        if isinstance(self.edges, (int, np.integer)) and not isinstance(self.edges, bool):
            if self.edges < 2:
                raise InputError(f"edges must be at least 2 where it is a number of bins, got {self.edges}")
        elif self.edges is not None:
            cuts = np.asarray(self.edges, dtype=np.float64)
            inside = cuts.ndim == 1 and cuts.size > 0 and (cuts > low).all() and (cuts < high).all()
            if not inside or not (np.diff(cuts) > 0).all():
                raise InputError(
                    f"edges must be increasing cut points strictly between {low:g} and {high:g}, or a number of bins, "
                    f"got {self.edges!r}"
                )

    @property
    def cuts(self) -> FloatArray:
        """Cut points between the bins, in the feature's units; empty without edges."""
        if self.edges is None:
            return np.empty(0)
        if not isinstance(self.edges, (int, np.integer)):
            return np.array(self.edges, dtype=np.float64)
        low, high = float(self.low), float(self.high)
        if self.log1p:
            return np.asarray(np.expm1(np.linspace(np.log1p(low), np.log1p(high), int(self.edges) + 1)[1:-1]))
        return np.linspace(low, high, int(self.edges) + 1)[1:-1]

    @property
    def n_bins(self) -> int:
        """Number of bins; 1 without edges."""
        return len(self.cuts) + 1

    def bins(self, values: ArrayLike) -> FloatArray:
        """Index of the bin of each value, (m,); NaN for NaN."""
        x = np.asarray(values, dtype=np.float64)
        return np.where(np.isnan(x), np.nan, np.searchsorted(self.cuts, x, side="right").astype(np.float64))

    def scaled(self, values: ArrayLike) -> FloatArray:
        """Each value's place between low and high, in [0, 1]; NaN for NaN."""
        x = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        low, high = float(self.low), float(self.high)
        if self.log1p:
            # The scalar logarithm, one by one: a vectorised one may give other bits at the end of an array.
            x = np.array([math.log1p(v) for v in x.ravel().tolist()]).reshape(x.shape)
            low, high = math.log1p(low), math.log1p(high)
        return np.asarray(np.clip((x - low) / (high - low), 0.0, 1.0))


@dataclass(frozen=True)
class Categorical:
    """A feature of labels whose values are all public.

    Parameters
    ----------
    values : sequence
        Distinct labels in an order (no set). Any other label is a missing value. Labels are matched by what they mean,
        whatever type a reader made of them: ``1``, ``1.0``, ``"1"`` and ``True`` are one value
        (``docs/theory/kernel.md#boundary``).

    Raises
    ------
    InputError
        The values are a text or a set, or none.
    PrivacyError
        The values are not distinct, or one spells a missing value.

    Examples
    --------
    >>> Categorical(["no", "yes"])
    Categorical(values=['no', 'yes'])
    """

    values: Sequence[Hashable]

    def __post_init__(self) -> None:
        index_of(in_order(self.values, "values"))
        if len(self.values) == 0:
            raise InputError("values must be at least one label, got none")

    @property
    def n_bins(self) -> int:
        """Number of labels."""
        return len(self.values)


Feature = Numeric | Categorical


def features_of(features: Any, bounds: Any, data_norm: Any, center: ArrayLike, d: int) -> Any:
    """Features as they were declared, or d numbers in a public box, or in that around a public ball.

    Raises
    ------
    PublicParameterMissing, InputError
        Nothing is said of them, or it is said twice.
    """
    if bounds is None and data_norm is None:
        return public("features", features, "Numeric or Categorical for each column of X; or bounds, or data_norm")
    if features is not None:
        raise InputError("features must be left out where bounds or data_norm are given, or the other way round")
    low, high = box_of(bounds, data_norm, center, d)
    return [Numeric(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def codes_encoder(features: Any, d: int, with_bins: Callable[[Any], Any]) -> PublicEncoder:
    """Encoder to codes of d columns, with bins in every feature.

    Parameters
    ----------
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them, which holds for all columns
    d : int
    with_bins : callable
        From a Numeric without edges to one with some.

    Raises
    ------
    InputError
        Something else than Numeric and Categorical.
    """
    if isinstance(features, (Numeric, Categorical)):
        features = [features] * d

    def binned(spec: Any) -> Any:
        return with_bins(spec) if isinstance(spec, Numeric) and spec.edges is None else spec

    if isinstance(features, Mapping):
        features = {name: binned(spec) for name, spec in features.items()}
    elif isinstance(features, Sequence) and not isinstance(features, (str, bytes)):
        features = [binned(spec) for spec in features]
    return PublicEncoder(features, output="codes").fit()


@dataclass(eq=False, repr=False)
class PublicEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode tables of numbers and labels, row by row, by what is declared; there is nothing to fit.

    Parameters
    ----------
    features : mapping of name to Numeric or Categorical, or sequence of them
        With names: the columns of a data frame that are used, found by name; of an array the columns in this order.
    output : {"one-hot", "codes"}
        ``"one-hot"``: a column for each label and each bin, 1 where it applies; without edges a number gives one column
        in [0, 1]. ``"codes"``: one column a feature, the index of its label or bin; without edges the number in [0, 1].

    Raises
    ------
    InputError
        A feature is neither, or the table has other columns.

    Notes
    -----
    *Missing values.* What is no number, or no declared label, is NaN in codes and in scaled numbers, and gives zeros
    in one-hot columns. The private learners count a row with NaN as no row.

    *Norm.* Each feature adds at most 1 to the squared norm of a row: :attr:`norm_bound`, for a learner's ``data_norm``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 90], "work": ["Private", "?"], "id": [1, 2]})
    >>> encoder = PublicEncoder({"age": Numeric(0, 120, edges=[50]), "work": Categorical(["Private", "State-gov"])})
    >>> encoder.transform(people)
    array([[1., 0., 1., 0.],
           [0., 1., 0., 0.]])
    >>> list(encoder.get_feature_names_out())
    ['age_[0, 50)', 'age_[50, 120]', 'work_Private', 'work_State-gov']
    """

    features: Any
    output: str = "one-hot"

    def fit(self, X: Any = None, y: Any = None) -> PublicEncoder:
        """Read nothing and return self."""
        self._specs()
        return self

    def _specs(self) -> tuple[list[Any], list[Feature]]:
        named = isinstance(self.features, Mapping)
        if not named and (isinstance(self.features, (str, bytes)) or not isinstance(self.features, Sequence)):
            raise InputError(f"features must be a mapping or a sequence, got {type(self.features).__name__}")
        specs = list(self.features.values()) if named else list(self.features)
        wrong = [spec for spec in specs if not isinstance(spec, (Numeric, Categorical))]
        if wrong or not specs:
            raise InputError(
                f"features must be Numeric or Categorical, at least one, got {wrong[0] if wrong else None!r}"
            )
        if self.output not in ("one-hot", "codes"):
            raise InputError(f"output must be 'one-hot' or 'codes', got {self.output!r}")
        return (list(self.features) if named else [f"x{i}" for i in range(len(specs))]), specs

    @property
    def specs(self) -> list[Feature]:
        """Numeric or Categorical, in order."""
        return self._specs()[1]

    @property
    def norm_bound(self) -> float:
        """Largest L2 norm that an encoded row can have: public."""
        _, specs = self._specs()
        if self.output == "one-hot":
            return math.sqrt(len(specs))
        return math.sqrt(sum(max(spec.n_bins - 1, float(isinstance(spec, Numeric))) ** 2 for spec in specs))

    def columns(self, X: Any) -> Table:
        """Features of a table, in order: numbers as they are, labels as indices; read when a slice is taken."""
        names, specs = self._specs()
        at = None
        there = column_names(X)
        if there and isinstance(self.features, Mapping):
            check_distinct(there)
            missing = [name for name in names if name not in there]
            if missing:
                raise InputError(f"X must have the columns {names!r}, but has no {missing!r}")
            at = [there.index(name) for name in names]
        else:
            shape = table(X, "X", len(specs)).shape
            if len(shape) != 2 or shape[1] != len(specs):
                width = f"{shape[1]} columns" if len(shape) == 2 else f"{len(shape)} dimension(s)"
                raise InputError(f"X must have two dimensions and {len(specs)} columns, one a feature, got {width}")
        return columns(X, [spec.values if isinstance(spec, Categorical) else None for spec in specs], at)

    def transform(self, X: Any) -> FloatArray:
        """Encode; shape (n, number of columns)."""
        _, specs = self._specs()
        raw = self.columns(X).read()
        parts = []
        for spec, column in zip(specs, raw.T, strict=True):
            if isinstance(spec, Numeric) and spec.edges is None:
                parts.append(spec.scaled(column)[:, None])
                continue
            code = spec.bins(column) if isinstance(spec, Numeric) else column
            one_hot = self.output == "one-hot"
            parts.append((code[:, None] == np.arange(spec.n_bins)).astype(np.float64) if one_hot else code[:, None])
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Names of the columns; `input_features` is ignored, the names are those declared."""
        out: list[str] = []
        for name, spec in zip(*self._specs(), strict=True):
            if self.output == "codes" or (isinstance(spec, Numeric) and spec.edges is None):
                out.append(str(name))
            elif isinstance(spec, Categorical):
                out += [f"{name}_{value}" for value in spec.values]
            else:
                ends = [f"{e:g}" for e in (spec.low, *spec.cuts, spec.high)]
                pairs = list(itertools.pairwise(ends))
                out += [f"{name}_[{a}, {b})" for a, b in pairs[:-1]] + [f"{name}_[{pairs[-1][0]}, {pairs[-1][1]}]"]
        return np.array(out, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


# What a learner takes as public of each column, by the column's name, as studies fix it.


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
