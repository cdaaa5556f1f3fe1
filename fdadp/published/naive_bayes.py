"""Published Gaussian naive Bayes as printed, for comparison only: **not differentially private**.

The private counterpart is :class:`fdadp.learners.DPGaussianNB`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.alignment import same_rows
from fdadp.learners.naive_bayes import FromLikelihood, gaussian_log_likelihood
from fdadp.learners.shared.inputs import positive
from fdadp.privacy.account._book import Release
from fdadp.published._base import Published


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedGaussianNB(FromLikelihood, ClassifierMixin, Published):  # type: ignore[misc]
    """Gaussian naive Bayes with local sensitivities, after Vaidya et al. (2013). **Not private.**

    Parameters
    ----------
    epsilon : float
        Claimed, per released value: mean and variance of each class and feature, and count of each class.
    bounds : (low, high), optional
        Of each feature, numbers or d numbers; default: those of the data, as in published demonstrations.
    random_state : int, optional

    Attributes
    ----------
    classes_, class_prior_, theta_, var_, ledger_, privacy_spent_

    Notes
    -----
    Laplace noise of scale S/ε with S_mean = (u - l)/(n_j + 1) and S_var = n_j (u - l)/(n_j + 1) as printed. The class
    sizes n_j are private and in the scale; the variance's sensitivity is n_j (u - l)²/(n_j + 1)², of another dimension:
    the noise is too small where u - l > n_j + 1. And ε is claimed for each of 2 d K + K values.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]] * 25), np.array([0, 0, 1, 1] * 25)
    >>> PublishedGaussianNB(epsilon=10.0, random_state=0, bounds=(0, 1)).fit(X, y).predict([[0.1], [0.9]])
    array([0, 1])
    """

    bounds: Any = None

    def fit(self, X: Any, y: Any) -> PublishedGaussianNB:
        """Fit to plain arrays; warns that the result is not private."""
        same_rows(X=X, y=y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        positive(self.epsilon, "epsilon")
        rng = np.random.default_rng(self.random_state)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise InputError(f"y must have at least two labels, got {len(self.classes_)} class")
        low, high = (
            (X.min(axis=0), X.max(axis=0)) if self.bounds is None else (np.asarray(b, float) for b in self.bounds)
        )
        size = np.array([(y == c).sum() for c in self.classes_], dtype=np.float64)[:, None]
        x = np.clip(X, low, high)
        mean = np.stack([x[y == c].mean(axis=0) for c in self.classes_])
        var = np.stack([x[y == c].var(axis=0) for c in self.classes_])
        s_mean, s_var = (high - low) / (size + 1), size * (high - low) / (size + 1)
        self.theta_ = mean + rng.laplace(size=mean.shape) * s_mean / self.epsilon
        # A variance below 0 is undefined in the source.
        self.var_ = np.maximum(
            var + rng.laplace(size=var.shape) * s_var / self.epsilon, 1e-9 * np.maximum(high - low, 1) ** 2
        )
        counts = np.maximum(size[:, 0] + rng.laplace(size=len(size)) / self.epsilon, 1.0)
        self.class_prior_ = counts / counts.sum()
        self._write(
            "Gaussian naive Bayes with local sensitivities (published)",
            [
                Release(name, many, "Laplace", sensitivity / self.epsilon, sensitivity, self.epsilon)
                for name, many, sensitivity in (
                    ("counts of the classes", len(size), 1.0),
                    ("means", mean.size, float(s_mean.max())),
                    ("variances", var.size, float(s_var.max())),
                )
            ],
            ["the labels that occur", "the scale of the noise, which is computed from the private class sizes"]
            + ["the range of the features"] * (self.bounds is None),
            {"reading: a variance below 0": "1e-9 of the squared range"},
        )
        return self

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        check_is_fitted(self, "theta_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return gaussian_log_likelihood(X, self.class_prior_, self.theta_, self.var_)
