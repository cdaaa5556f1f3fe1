"""Published private PCA as printed, for comparison only: **not differentially private**.

The private counterpart is :class:`fdadp.learners.DPPCA`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.decomposition import signed
from fdadp.learners.shared.inputs import positive
from fdadp.privacy.account.releases import Release
from fdadp.published._base import Published


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedPCA(TransformerMixin, Published):  # type: ignore[misc]
    """PCA from the centred scatter with Gaussian noise for a sensitivity of 1, "Analyze Gauss". **Not private.**

    Parameters
    ----------
    n_components : int
    epsilon, delta : float
        Claimed.
    data_norm : float, optional
        Rows are divided by it so that their norm is at most 1; default: the largest norm of the data.
    random_state : int, optional

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
    explained_variance_ : ndarray of shape (k,)
    mean_ : ndarray of shape (d,)
        Without noise.
    ledger_, privacy_spent_

    Notes
    -----
    Every entry of the upper triangle gets N(0, τ²), τ = Δ √(2 log(1.25/δ))/ε with Δ = 1 (Dwork et al. 2014, of a second
    moment about 0). About the mean, a row changes the scatter by N/(N+1) (x - m)(x - m)', of norm up to 4: four times
    less noise than the claim needs. The mean has no noise at all.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) * [2.0, 0.3, 0.3]
    >>> PublishedPCA(n_components=1, data_norm=5.0, random_state=0).fit(X).ledger_.private
    False
    """

    n_components: int = 2
    delta: float = 1e-5
    data_norm: float | None = None

    def fit(self, X: Any, y: ArrayLike | None = None) -> PublishedPCA:
        """Fit to plain arrays; warns that the result is not private."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        positive(self.epsilon, "epsilon")
        positive(self.delta, "delta")
        n, d = X.shape
        if not 1 <= self.n_components <= d:
            raise InputError(f"n_components must lie between 1 and {d}, got {self.n_components!r}")
        norms = np.linalg.norm(X, axis=1)
        radius = float(norms.max() or 1.0) if self.data_norm is None else float(self.data_norm)
        scaled = X * np.minimum(1.0, radius / np.maximum(norms, 1e-300))[:, None] / radius
        mean = scaled.mean(axis=0)
        tau = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        noise = np.triu(np.random.default_rng(self.random_state).standard_normal((d, d)) * tau)
        noise = noise + np.triu(noise, 1).T
        values, vectors = np.linalg.eigh((scaled - mean).T @ (scaled - mean) + noise)
        top = vectors[:, ::-1][:, : self.n_components].T
        self.components_ = signed(top)
        self.explained_variance_ = np.maximum(values[::-1][: self.n_components], 0) * radius**2 / n
        self.mean_ = mean * radius
        self._write(
            "PCA of the centred scatter with sensitivity 1 (published)",
            [Release("centred scatter", d * (d + 1) // 2, "Gaussian", tau, 1.0, self.epsilon, delta=self.delta)],
            ["the mean", "the number of rows"] + ["the largest norm of a row"] * (self.data_norm is None),
            {"claimed delta": self.delta, "true sensitivity": 4.0},
        )
        return self

    def transform(self, X: Any) -> FloatArray:
        """Scores (X - mean) components', (m, k)."""
        check_is_fitted(self, "components_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray((X - self.mean_) @ self.components_.T)
