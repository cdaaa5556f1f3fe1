"""Classifiers whose scores add up over features: a released number for each public bin."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners._base import PrivateClassifier
from fdadp.learners._bins import Bins
from fdadp.learners.encoding import features_of
from fdadp.learners.inputs import as_table, class_labels
from fdadp.privacy import Cohort

__all__ = ["BinnedClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class BinnedClassifier(PrivateClassifier):
    """A classifier whose scores are sums over features of a released number for each bin."""

    features: Any = None
    bounds: Any = None
    data_norm: float | None = None
    center: ArrayLike = 0.0
    scores_: FloatArray = field(init=False)
    _bins: Bins = field(init=False)

    def _start(self, X: Any, y: Any, groups: ArrayLike | None) -> tuple[Cohort, Cohort, Bins, list[Hashable]]:
        """Open the cohort; return it, the cohort of the rows' bins and classes, the bins, and the labels."""
        labels = class_labels(self.classes)
        d = int(as_table(X).shape[1])
        bins = Bins(features_of(self.features, self.bounds, self.data_norm, self.center, d), d)
        if (bins.sizes < 2).all():
            raise InputError("features must have at least one with two bins or labels")
        shown: dict[str, Any] = {"classes": labels, "features": dict(zip(bins.names, bins.specs, strict=True))}
        if self.bounds is not None:
            shown["bounds"] = self.bounds
        cohort = self._open(X, y, groups, classes=labels, public=shown, columns=bins.encoder.columns(X))
        binned = cohort.derive(lambda rows: (bins.codes(rows[0]), rows[1]), name="bins")
        return cohort, binned, bins, labels

    def _codes(self, X: Any) -> FloatArray:
        """Bins of rows to predict for, NaN for a missing value."""
        self._check_new_table(X)
        return self._bins.encoder.transform(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Scores in logits, (m,) of the second class where there are two, else (m, K)."""
        codes = self._codes(X)
        return self._bins.scores(codes, self.scores_)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Class with the largest score, (m,)."""
        return self._labels(self.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
