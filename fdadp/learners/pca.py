"""Private principal components: one noisy second moment, the power method with noise, or the exponential mechanism.

Textbooks put noise on the centred scatter as if a person moved it by ‖x‖² (its mean moves as well: up to 4 times that),
or Wishart noise, which is not private for any ε. Here mean, scatter and number of rows come from one second moment of
rows with a constant added, whose sensitivity is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from fdadp._common.argument_checks import is_number, one_of, whole
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared._declared_vs_released import Doubts
from fdadp.learners.shared._estimator_base import PrivateEstimator, PrivateLearner
from fdadp.learners.shared.public_inputs import as_table, ball_of, positive, with_constant
from fdadp.privacy import Cohort, rowwise_matmul
from fdadp.privacy.rows._rowwise_arithmetic import in_ball
from fdadp.privacy.rows._sealed_row_functions import Rows
from fdadp.rounds.posterior_means import empirical_bayes

MECHANISMS = ("moments", "power", "bingham")
CONST = 1 / 6
"""Constant that is added to a row, as a share of the radius.

Chosen on simulated rows: ``docs/decisions/0013-constants-of-the-learners.md``.
"""
_DIRECTIONS = 1.3
"""Variance of matrix Laplace over Gaussian noise whose largest eigenvalues are the same, about (6 to 30 columns)."""
_FOR_VARIANCES = 0.05
"""Share of the budget that "power" and "bingham" spend on the variances along their directions."""


def noisy_scatter(
    cohort: Cohort, center: FloatArray, radius: float, const: float, share: float
) -> tuple[float, FloatArray, FloatArray]:
    """Number of rows, their mean about the centre (d,), and their scatter about that mean (d, d): one release.

    a = (x - center, const) has ‖a‖² <= radius² + const², hence so have the Frobenius and the nuclear norm of aa'.
    """
    return centred(*noisy_moment(cohort, center, radius, const, share), radius, const)


def noisy_moment(
    cohort: Cohort, center: FloatArray, radius: float, const: float, share: float, norm: str | None = None
) -> tuple[FloatArray, float]:
    """Second moment (d + 1, d + 1) of clipped rows with a constant, and its noise's sd; as :func:`noisy_scatter`."""
    row, clip = with_constant(center, radius, const), radius**2 + const**2
    M, sd = cohort.second_moment(row, clip=clip, share=share, name="second moment of rows and a constant", norm=norm)
    return np.asarray(M), float(sd)


def centred(M: FloatArray, sd: float, radius: float, const: float) -> tuple[float, FloatArray, FloatArray]:
    """Number, mean and scatter of rows, from a noisy second moment (d + 1, d + 1) of rows and a constant.

    The mean is what is believed given the noise, of this sd on the diagonal and 1/√2 of it elsewhere.
    """
    d = len(M) - 1
    n = max(float(M[d, d]) / const**2, sd / const**2, 1.0)
    found, noise = M[:d, d] / (const * n), 0.5 * (sd / (const * n)) ** 2
    wide = radius**2 / d
    mean = in_ball(empirical_bayes(found, noise, 0.0, wide)[0][None], radius)[0]
    return n, mean, M[:d, :d] - n * np.outer(mean, mean)


def signed(components: FloatArray) -> FloatArray:
    """Turn each row so that its largest entry is positive."""
    at = np.abs(components).argmax(axis=1)
    return np.asarray(components * np.where(components[np.arange(len(at)), at] < 0, -1.0, 1.0)[:, None])


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateComponents(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """What private principal components share: settings, attributes, transformations; documented at :class:`DPPCA`."""

    n_components: int | None = None
    data_norm: float | None = None
    bounds: Any = None
    center: ArrayLike = 0.0
    const: float | None = None
    components_: FloatArray = field(init=False)
    explained_variance_: FloatArray = field(init=False)
    mean_: FloatArray = field(init=False)
    noisy_n_: float = field(init=False)

    def _public(self, d: int) -> tuple[float, FloatArray, float, int]:
        """Radius, centre (d,), constant and number of components for d features, checked."""
        B, center = ball_of(self.bounds, self.data_norm, self.center, d)
        k = d if self.n_components is None else whole(self.n_components, "n_components", most=d)
        const = positive(B * CONST if self.const is None else self.const, "const")
        return B, center, const, k

    def _keep(self, n: float, mean: FloatArray, components: FloatArray, variances: FloatArray) -> None:
        """Keep the result: `variances` are sums over the n rows."""
        self.components_ = signed(components)
        self.explained_variance_ = np.maximum(variances, 0.0) / n
        self.mean_ = mean
        self.noisy_n_ = n

    def transform(self, X: Any) -> FloatArray:
        """Scores (m, k) of rows on the components, about the mean."""
        return np.asarray((self._new_rows(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Rows (m, d) that have the scores (m, k)."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


@dataclass(kw_only=True, eq=False, repr=False)
class DPPCA(PrivateComponents, PrivateLearner):
    """Principal components with differential privacy.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.
    n_components : int, optional
        Default: all d.
    data_norm : float, optional
        Public radius B: rows are clipped to the ball of this radius about `center`.
    bounds : (low, high), optional
        Instead of `data_norm` and `center`: public range of each feature, a number or d numbers each; the ball is then
        the smallest one around this box, much larger than most data want.
    center : float or array_like of shape (d,)
        Public guess of the middle of the data, in units of the features; with `data_norm`.
    mechanism : {"moments", "power", "bingham"}
        ``"moments"``: noise on one second moment of all rows; for ten components of 64 features ahead at every ε.
        ``"power"``: noise on each step of the power method; only where d² numbers are too many to release.
        ``"bingham"``: directions drawn by the exponential mechanism, with a public mean; for comparison.
        Measured: ``docs/learners.md#other-mechanisms``.
    const : float, optional
        Constant that is added to each row to learn mean and number of rows with ``"moments"``; default B/6. A larger
        one costs noise everywhere, a smaller one accuracy of the mean and of the number of rows.
    n_iter : int
        Steps of ``"power"``: public.
    mean_share : float
        Share of the budget with which ``"power"`` and ``"bingham"`` learn the mean; 0: `center` is taken for it.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal rows.
    explained_variance_ : ndarray of shape (k,)
        In squared units of the features, about the mean.
    mean_ : ndarray of shape (d,)
    noisy_n_ : float
        Number of usable rows, or persons, with noise.
    ledger_, privacy_spent_

    Notes
    -----
    *Sensitivity*: ``docs/theory/learners.md#pca``.

    *Moments.* With a = (x - center, const) clipped, the release is Σ aa' with the Frobenius and nuclear norm ‖a‖² <= B²
    + const²; where a person is replaced √2 (pure ε: 2) times that. See :meth:`fdadp.privacy.Cohort.second_moment`, also
    for the noise.

    *Power method.* With an orthonormal Q the step is Σ x x'Q, of rank one with ‖x‖ ‖Q'x‖ <= B² (Hardt & Price 2014,
    arXiv:1311.2495). It gets Gaussian noise for its Frobenius norm, with pure ε matrix Laplace noise for its nuclear
    norm.

    *Bingham.* See :meth:`fdadp.privacy.Cohort.principal_directions`, whose draws are exact up to floating point, and
    take a time that depends on the data.

    ``transform`` of the rows that were fitted on gives exact rows in private axes: it is not private, and neither is
    ``fit_transform``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3] + 1
    >>> pca = DPPCA(epsilon=1.0, delta=1e-6, n_components=1, data_norm=5.0, center=1.0, random_state=0).fit(X)
    >>> bool(abs(pca.components_[0, 0]) > 0.99)
    True
    """

    mechanism: str = "moments"
    n_iter: int = 3
    mean_share: float = 0.1

    @property
    def _accounting(self) -> str:
        return "zcdp" if self.mechanism == "bingham" else "gdp"

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Release what the mechanism needs."""
        d = int(as_table(X).shape[1])
        B, center, const, k = self._public(d)
        one_of(self.mechanism, "mechanism", MECHANISMS)
        whole(self.n_iter, "n_iter")
        if not is_number(self.mean_share) or not 0 <= self.mean_share < 0.9:
            raise InputError(f"mean_share must lie between 0 and 0.9, got {self.mean_share!r}")
        shown = {"data_norm": B, "center": center, "mechanism": self.mechanism, "n_components": k}
        cohort = self._open(X, groups=groups, public=shown)
        quiet = False
        if self.mechanism == "moments":
            quiet = cohort.pure_is_quieter(_DIRECTIONS * (d + 2), symmetric=True)
            moment, sd = noisy_moment(cohort, center, B, const, 1.0, "nuclear" if quiet else None)
            n, mean, scatter = centred(moment, sd, B, const)
            noisy_n, noise_n, noise = float(moment[d, d]) / const**2, sd / const**2, math.sqrt(d) * sd
            along, released = float(np.trace(scatter)), np.diag(moment) / sd
            off = float(np.linalg.norm(mean))
            noise = math.hypot(noise, 2 * off * sd / const, off**2 * noise_n)
            values, axes = np.linalg.eigh(scatter)
            components, variances = axes[:, ::-1][:, :k].T, values[::-1][:k]
        else:
            mean = np.zeros(d)
            if self.mean_share:
                mean = _mean(cohort, center, B, float(self.mean_share))

            def row(rows: Rows) -> FloatArray:
                return in_ball(rows[0] - (center + mean), B)

            rest = 1 - self.mean_share - _FOR_VARIANCES
            if self.mechanism == "bingham":
                components = cohort.principal_directions(row, k, clip=B**2, share=rest, name="principal directions")
            else:
                components = self._power(cohort, row, d, k, B, rest)
            (noisy_n, *found), noise = _variances(cohort, row, components, B)
            n, variances = max(noisy_n, 1.0), np.array(found)
            noise_n, noise, along = noise / B**2, math.sqrt(k) * noise, float(variances.sum())
            released = np.append(variances * math.sqrt(k) / noise, noisy_n / noise_n)
            order = np.argsort(-variances, kind="stable")
            components, variances = components[order], variances[order]
        doubts = Doubts(cohort, 2, pure=cohort.pure or quiet)
        if doubts.rows(noisy_n, noise_n, released):
            doubts.still(["X"], along / (n * B**2), noise / (n * B**2))
        self.doubts_ = doubts.said
        self._keep(n, center + mean, components, variances)
        return cohort

    def _power(self, cohort: Cohort, row: Any, d: int, k: int, B: float, share: float) -> FloatArray:
        rng = np.random.default_rng(None if self.random_state is None else [self.random_state, 1])
        Q = np.linalg.qr(rng.standard_normal((d, k)))[0]  # public
        left = np.empty(0)
        for step in range(self.n_iter):

            def pair(rows: Rows, Q: FloatArray = Q) -> tuple[FloatArray, FloatArray]:
                x = row(rows)
                return x, rowwise_matmul(x, Q)

            Y, _ = cohort.sum_outer(
                pair,
                clip=B**2,
                share=share / self.n_iter,
                name=f"power method, step {step + 1}",
                norm="nuclear" if cohort.pure else None,
            )
            left = np.linalg.svd(Y, full_matrices=False)[0]
            Q = np.ascontiguousarray(left)
        return np.asarray(left.T)


def _mean(cohort: Cohort, center: FloatArray, B: float, share: float) -> FloatArray:
    """Mean about the centre, from one sum of (const, x), const = B; shrunk where it is mostly noise."""
    d = len(center)

    def row(rows: Rows) -> FloatArray:
        x = in_ball(rows[0] - center, B)
        return np.concatenate((np.full((len(x), 1), B), x), axis=1)

    clip = B + math.sqrt(d) * B if cohort.pure else math.sqrt(2) * B
    total, sd = cohort.sum(row, clip=clip, share=share, name="sum of rows and their number")
    n = max(float(total[0]) / B, 1.0)
    mean = total[1:] / n
    # Positive-part James-Stein: noise of this size in d coordinates is rather nothing than a mean.
    kept = max(0.0, 1 - max(d - 2, 1) * (sd / n) ** 2 / max(float(mean @ mean), 1e-300))
    return np.asarray(in_ball((kept * mean)[None], B)[0])


def _variances(cohort: Cohort, row: Any, components: FloatArray, B: float) -> tuple[FloatArray, float]:
    """Number of rows and Σ (u'x)² for each direction, (1 + k,), and the sd of the noise on the latter.

    Entries of (B², (u'x)²) add up to at most 2 B².
    """

    def squares(rows: Rows) -> FloatArray:
        x = row(rows)
        scores = rowwise_matmul(x, np.ascontiguousarray(components.T))
        return np.concatenate((B**2 + 0.0 * x[:, :1], scores**2), axis=1)

    clip = 2 * B**2 if cohort.pure else math.sqrt(2) * B**2
    total, sd = cohort.sum(
        squares, clip=clip, share=_FOR_VARIANCES, name="variances along the directions", nonnegative=True
    )
    return np.concatenate((total[:1] / B**2, total[1:])), sd
