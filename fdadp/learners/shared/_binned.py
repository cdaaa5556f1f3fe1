"""Learners whose scores add up over features: a released number for each public bin."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared._base import PrivateClassifier, PrivateLearner
from fdadp.learners.shared._bins import Bins
from fdadp.learners.shared.encoding import features_of
from fdadp.learners.shared.inputs import as_table
from fdadp.privacy import Cohort


@dataclass(kw_only=True, eq=False, repr=False)
class Binned(PrivateLearner):
    """A learner whose scores are sums over features of a released number for each bin."""

    features: Any = None
    bounds: Any = None
    data_norm: float | None = None
    center: ArrayLike = 0.0
    scores_: FloatArray = field(init=False)
    _bins: Bins = field(init=False)

    def _start(
        self, X: Any, y: Any, groups: ArrayLike | None, classes: list[Hashable] | None = None, **public: Any
    ) -> tuple[Cohort, Cohort, Bins]:
        """Open the cohort; return it, the cohort of the rows' bins and labels or targets, and the bins.

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
        cohort = self._open(X, y, groups, classes=classes, public=shown, columns=bins.encoder.columns(X))
        binned = cohort.derive(lambda rows: (bins.codes(rows[0]), rows[1]), name="bins")
        return cohort, binned, bins

    def _codes(self, X: Any) -> FloatArray:
        """Bins of rows to predict for, NaN for a missing value."""
        self._check_new_table(X)
        return self._bins.encoder.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class BinnedClassifier(PrivateClassifier, Binned):
    """A classifier of this kind."""

    def decision_function(self, X: Any) -> FloatArray:
        """Scores in logits, (m,) of the second class where there are two, else (m, K)."""
        codes = self._codes(X)
        return self._bins.scores(codes, self.scores_)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Class with the largest score, (m,)."""
        return self._labels(self.decision_function(X))
