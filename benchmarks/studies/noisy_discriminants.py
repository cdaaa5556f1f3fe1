"""Linear discriminant analysis from one noisy second moment: the example of a learner that a user adds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.learners.shared._estimator_base import ScoringClassifier
from fdadp.learners.shared.public_inputs import as_table, ball, class_array, class_labels
from fdadp.privacy import Cohort
from fdadp.privacy.rows._rowwise_arithmetic import in_ball


@dataclass(kw_only=True, eq=False, repr=False)
class DPDiscriminants(ScoringClassifier):
    """Linear discriminant analysis: class means and the scatter within classes, from one release.

    A row is a = (x - center in the ball of ``data_norm``, c e_k), k its class, c half of ``data_norm``. Released is
    Σ aa', of Frobenius and nuclear norm ‖a‖² <= data_norm² + c². Its blocks are the scatter about the centre, the sums
    of the classes times c, and their counts times c². All else is computed from it: eigenvalues of the scatter within
    classes that the noise may have made are raised to twice the noise's.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, classes
        As of other private classifiers.
    data_norm, center : float
        Public: rows are clipped to this ball.
    """

    data_norm: float | None = None
    center: float = 0.0
    means_: FloatArray = field(init=False)
    within_: FloatArray = field(init=False)

    def _learn(self, X: Any, y: Any, groups: Any) -> Cohort:
        labels = class_labels(self.classes)
        K, d = len(labels), int(as_table(X).shape[1])
        radius, center = ball(self.data_norm, self.center, d)
        c = radius / 2
        shown = {"classes": labels, "data_norm": radius, "center": self.center}
        cohort = self._open(X, y, groups, classes=labels, public=shown)

        def row(rows: Any) -> FloatArray:
            x, code = rows
            inside = in_ball(x - center, radius) + 0.0 * code[:, None]  # of an unknown label all is NaN: left out
            return np.concatenate((inside, c * (code[:, None] == np.arange(K))), axis=1)

        M, sd = cohort.second_moment(row, clip=radius**2 + c**2, share=1.0, name="second moment of rows and classes")
        count = np.maximum(np.diag(M)[d:] / c**2, 1.0)
        means = M[d:, :d] / c / count[:, None]
        scatter = M[:d, :d] - (means.T * count) @ means
        values, vectors = np.linalg.eigh((scatter + scatter.T) / 2)
        floor = 2 * sd * np.sqrt(d)
        within = (vectors * np.maximum(values, max(float(floor), 1e-9 * float(values[-1])))) @ vectors.T
        self.classes_ = class_array(labels)
        self.means_, self.within_ = center + means, within / count.sum()
        self._weights = np.linalg.solve(self.within_, means.T)
        self._offsets = np.log(count / count.sum()) - 0.5 * np.einsum("kd,dk->k", means, self._weights)
        self._ball = center, radius
        return cohort

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of the classes, (m, K), or (m,) of the second less the first of two."""
        center, radius = self._ball
        scores = in_ball(self._new_rows(X) - center, radius) @ self._weights + self._offsets
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    def _shares(self, score: FloatArray) -> FloatArray:
        from scipy.special import softmax

        return np.asarray(softmax(score, axis=1))
