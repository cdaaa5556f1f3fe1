"""Features cut into public bins, and scores that add up over them: what the boosted learners share.

Weights of rows are built by multiplication of released numbers, row by row: an exponential of a private margin might
have other last bits at the end of a block (see :mod:`fdadp.privacy.rows._sealed_row_functions`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.learners.shared._estimator_base import Bounded, ScoringClassifier, TakesLabels
from fdadp.learners.shared.public_encoding import Numeric, codes_encoder, features_of
from fdadp.learners.shared.public_inputs import as_table
from fdadp.privacy import Cohort

CUTS = 19
"""Of each kind, for a number without edges: evenly spaced, and evenly spaced in log(1 + x - low)."""
_LARGEST = 1e150
_LONGEST = 345.0
"""Its logarithm, rounded down."""


class Bins:
    """Public bins of declared features.

    Parameters
    ----------
    features : mapping of name to Numeric or Categorical, sequence of them, or one of them
        One holds for all columns. A Numeric without edges gets 19 evenly spaced cuts, and 19 that are so in
        log(1 + x - low).
    d : int
        Number of columns.

    Attributes
    ----------
    encoder : PublicEncoder
        To codes; its ``columns`` are what the kernel reads.
    sizes : ndarray of shape (d,)
        Number of bins of each feature.
    starts : ndarray of shape (d + 1,)
        Where each feature's bins start among all of them.
    ordered : ndarray of shape (d,)
        1 where bins have an order.
    free : dict
        Of numbers that were declared without edges: the column, and the range.
    """

    def __init__(self, features: Any, d: int) -> None:
        declared = codes_encoder(features, d, lambda spec: spec).specs
        self.free = {
            j: (float(spec.low), float(spec.high))
            for j, spec in enumerate(declared)
            if isinstance(spec, Numeric) and spec.edges is None
        }
        self.encoder = codes_encoder(features, d, _with_cuts)
        self.names, self.specs = self.encoder._specs()
        self.sizes: IntArray = np.array([spec.n_bins for spec in self.specs], dtype=np.int64)
        self.starts: IntArray = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.ordered: IntArray = np.array([isinstance(spec, Numeric) for spec in self.specs], dtype=np.int64)

    @property
    def total(self) -> int:
        """Number of all bins."""
        return int(self.starts[-1])

    def codes(self, values: FloatArray) -> FloatArray:
        """Bins (m, d) of what the encoder's ``columns`` give; NaN for what has none. Row-local."""
        out = np.array(values, dtype=np.float64)
        for j, spec in enumerate(self.specs):
            if isinstance(spec, Numeric):
                out[:, j] = spec.bins(values[:, j])
        return out

    def within(self, low: FloatArray, high: FloatArray) -> Bins:
        """Bins of the same features, with other ranges of those that are free."""
        specs: list[Any] = list(self.specs)
        for j, a, b in zip(self.free, low.tolist(), high.tolist(), strict=True):
            specs[j] = dataclasses.replace(specs[j], low=a, high=b, edges=None)
        named = isinstance(self.encoder.features, Mapping)
        return Bins(dict(zip(self.names, specs, strict=True)) if named else specs, len(specs))

    def of(self, cohort: Cohort) -> Cohort:
        """Cohort of the rows' bins, and of what they have beside the features."""
        return cohort.derive(lambda rows: (self.codes(rows[0]), rows[1]), name="bins")

    def scores(self, codes: FloatArray, table: FloatArray) -> FloatArray:
        """Sum over features of the table's entry (total,) or (total, K) of each row's bin; a missing value adds 0."""
        padded = np.concatenate([table, np.zeros_like(table[:1])])
        at = np.where(np.isnan(codes), self.total, np.nan_to_num(codes) + self.starts[:-1]).astype(np.int64)
        return np.asarray(padded[at].sum(axis=1))


def _with_cuts(spec: Numeric) -> Numeric:
    low, high = float(spec.low), float(spec.high)
    even = np.linspace(low, high, CUTS + 2)[1:-1]
    log = low + np.expm1(np.linspace(0, np.log1p(high - low), CUTS + 2)[1:-1])
    cuts = np.unique(np.concatenate([even, log]))
    return dataclasses.replace(spec, edges=[float(c) for c in cuts if low < c < high])


@kernel()
def _place(codes, starts, i, j):  # type: ignore[no-untyped-def]
    """Bin of row i in feature j among all bins, or -1 for none."""
    code = codes[i, j]
    if code >= 0 and code < starts[j + 1] - starts[j] and code == np.floor(code):
        return starts[j] + np.int64(code)
    return -1


# Per row of private codes (m, d), by the starts (d + 1,) of each feature's bins among all of them.


@kernel("f8[:,::1], f8[:,::1], i8[::1]")
def in_bins(values, codes, starts):  # type: ignore[no-untyped-def]
    """Each row's values (m, K) in its bin of each feature, (m, total K); NaN in rows with a missing bin."""
    K = values.shape[1]
    out = np.zeros((len(codes), starts[-1] * K))
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            at = _place(codes, starts, i, j)
            for k in range(K):
                out[i, max(at, 0) * K + k] = values[i, k] if at >= 0 else np.nan
    return out


@kernel("f8[:,::1], i8[::1], f8[::1]")
def totals(codes, starts, scores):  # type: ignore[no-untyped-def]
    """Sum over features, in order, of the score (total,) of each row's bin, (m,); NaN for a missing bin."""
    out = np.zeros(len(codes))
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            at = _place(codes, starts, i, j)
            out[i] += scores[at] if at >= 0 else np.nan
    return out


def odds(codes: FloatArray, starts: IntArray, scores: FloatArray) -> FloatArray:
    """``exp`` of the sum of the scores (total, K) of each row's bins, (m, K), as a product; NaN for a missing bin."""
    return np.asarray(_product(codes, starts, np.exp(np.clip(scores, -_LONGEST, _LONGEST))))


@kernel("f8[:,::1], i8[::1], f8[:,::1]")
def _product(codes, starts, factors):  # type: ignore[no-untyped-def]
    out = np.empty((len(codes), factors.shape[1]))
    for i in range(codes.shape[0]):
        for k in range(out.shape[1]):
            value = 1.0
            for j in range(codes.shape[1]):
                at = _place(codes, starts, i, j)
                if at >= 0:
                    value *= factors[at, k]
                    value = min(max(value, 1 / _LARGEST), _LARGEST)  # the product stays finite
                else:
                    value = np.nan
                    break
            out[i, k] = value
    return out


# Learners whose scores add up over features: a released number for each public bin.


@dataclass(kw_only=True, eq=False, repr=False)
class Binned(TakesLabels, Bounded):
    """A learner whose scores are sums over features of a released number for each bin."""

    features: Any = None
    scores_: FloatArray = field(init=False)
    _bins: Bins = field(init=False)

    def _start(
        self, X: Any, y: Any, groups: ArrayLike | None, classes: list[Hashable] | None = None, **public: Any
    ) -> tuple[Cohort, Bins]:
        """Open the cohort; return it, and the bins as declared.

        `public` is what else of the fit is public and shown in the ledger.
        """
        d = int(as_table(X).shape[1])
        bins = Bins(features_of(self.features, self.bounds, self.data_norm, self.center, d), d)
        if (bins.sizes < 2).all():
            raise InputError("features must have at least one with two bins or labels")
        shown = public | {"features": dict(zip(bins.names, bins.specs, strict=True))}
        if classes is not None:
            shown["classes"] = classes
        if self.bounds is not None:
            shown["bounds"] = self.bounds
        return self._open(X, y, groups, classes=classes, public=shown, columns=bins.encoder.columns(X)), bins

    def _codes(self, X: Any) -> FloatArray:
        """Bins of rows to predict for, NaN for a missing value."""
        self._check_new_table(X)
        return self._bins.encoder.transform(X)


@dataclass(kw_only=True, eq=False, repr=False)
class BinnedClassifier(ScoringClassifier, Binned):
    """A classifier of this kind."""

    def decision_function(self, X: Any) -> FloatArray:
        """Scores in logits, (m,) of the second class where there are two, else (m, K)."""
        codes = self._codes(X)
        return self._bins.scores(codes, self.scores_)
