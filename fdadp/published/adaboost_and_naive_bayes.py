"""Published noisy AdaBoost and naive Bayes as printed, for comparison: **none of it is differentially private**.

Where a source leaves a point undefined, it is an option here, and the reading is written down in the ledger. The
private counterparts are :class:`fdadp.learners.DPBoostedStumps` and :class:`fdadp.learners.DPGaussianNB`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numba import njit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.argument_checks import one_of, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.learners.naive_bayes import FromLikelihood, gaussian_log_likelihood
from fdadp.learners.shared.public_inputs import positive
from fdadp.privacy.account._reservations import Release
from fdadp.published._not_private_base import Published

VARIANTS = ("DPAda", "DPAda_Swing", "DPAda_Random", "DPAda_Improved")
SCHEMES = ("DP-AdaBoost", "CART-DPsAdaBoost")
TIES = ("shared", "independent", "single")
NEGATIVES = ("clip0", "raw")


def _rows_and_labels(model: Any, X: Any, y: Any) -> tuple[FloatArray, np.ndarray[Any, Any]]:
    """Rows and labels of a fit, whose classes the model keeps."""
    same_rows(X=X, y=y)
    X, y = validate_data(model, X, y, dtype=np.float64)
    check_classification_targets(y)
    positive(model.epsilon, "epsilon")
    model.classes_ = np.unique(y)
    return X, y


@dataclass(kw_only=True, eq=False, repr=False)
class _AdaBoost(ClassifierMixin, Published):  # type: ignore[misc]
    """AdaBoost with one-feature threshold tests as weak learners, of two classes."""

    n_rounds: int = 50
    classes_: np.ndarray[Any, Any] = field(init=False)
    stumps_: FloatArray = field(init=False)

    def _prepare(self, X: Any, y: Any) -> tuple[np.ndarray[Any, Any], IntArray, list[FloatArray], FloatArray]:
        """Indices (d, n) of the distinct values of each column, their number, the values; and y as ±1."""
        whole(self.n_rounds, "n_rounds")
        X, y = _rows_and_labels(self, X, y)
        if len(self.classes_) != 2:
            raise InputError(
                f"Only binary classification is supported. The type of the target is not binary: y must have two "
                f"labels, got {len(self.classes_)} class(es)"
            )
        found = [pd.factorize(column, sort=True) for column in X.T]
        sizes: IntArray = np.array([len(values) for _, values in found], dtype=np.int64)
        narrow = np.uint8 if sizes.max() <= 256 else np.int64
        codes = np.stack([code.astype(narrow) for code, _ in found])
        return codes, sizes, [values for _, values in found], np.where(y == self.classes_[1], 1.0, -1.0)

    def _keep(self, stumps: FloatArray, values: list[FloatArray]) -> None:
        """Feature, threshold, sign above it, sign below it, alpha of each round."""
        out = stumps.copy()
        for row in out:
            row[1] = values[int(row[0])][int(row[1])]
        self.stumps_ = out

    def decision_function(self, X: Any) -> FloatArray:
        """Weighted votes Σ α_k G_k, (m,)."""
        *_, total = self._staged(X)
        return total

    def _staged(self, X: Any) -> Iterator[FloatArray]:
        check_is_fitted(self, "stumps_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        total = np.zeros(len(X))
        yield total
        for feature, threshold, above, below, alpha in self.stumps_:
            total = total + alpha * np.where(X[:, int(feature)] >= threshold, above, below)
            yield total

    def staged_predict(self, X: Any) -> Iterator[np.ndarray[Any, Any]]:
        """Predictions after each round."""
        stages = self._staged(X)
        next(stages)
        for total in stages:
            yield self.classes_[(total > 0).astype(np.int64)]

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Class by the sign of the votes, (m,); the first where they sum to 0."""
        votes = self.decision_function(X)
        return np.asarray(self.classes_[(votes > 0).astype(np.int64)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedDPAda(_AdaBoost):
    """AdaBoost with Laplace noise on its largest and smallest weight: DPAda and its variants. **Not private.**

    Parameters
    ----------
    epsilon : float
        The claimed budget B of the whole.
    n_rounds : int
        m.
    variant : {"DPAda", "DPAda_Swing", "DPAda_Random", "DPAda_Improved"}
        Rounds k whose weights are noised. They are every k > 1, every even k, each k > 1 with probability ½, and of
        each run of such rounds the first only.
    tie : {"shared", "independent", "single"}
        Undefined in the source: whether all samples of the largest (smallest) weight get one draw, each its own, or
        one sample alone gets it.
    negative : {"clip0", "raw"}
        Undefined in the source: what becomes of a noisy weight below 0.
    clamp : float
        The weighted error is kept in [clamp, 1 - clamp]; undefined in the source where it is 0.
    stop_when_perfect : bool
        Stop at an error of at most 1e-6 instead.
    random_state : int, optional

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    stumps_ : ndarray of shape (rounds, 5)
        Feature, threshold, vote at and above it, vote below it, α.
    ledger_ : Ledger
    privacy_spent_ : None

    Notes
    -----
    Scale of the noise: ``|extreme weight - 1/N| m/(B · extreme weight)``. Why the claim fails: G_k and α_k are computed
    from the data and released, and the first round has no noise at all. The "sensitivity" and the budget of a weight
    are functions of the private weights. Other weights are exact. Budgets over samples do not add up to anything.

    *Reading.* Both extremes are found before either gets noise; the largest is raised to 1/N if below it, the smallest
    lowered to 1/N if above, then negative weights are treated, then all are normalised. An extreme weight of 0 or below
    has no budget, so the source's scale is undefined: it gets no noise. Stumps are one-feature thresholds on the
    columns given, either way up; of equally good ones the first is taken. With a few samples of all the weight, as the
    noise makes it, many are equally good. Results then depend on the columns, their order and the seed (Adult, m = 50,
    B = 1, 30 seeds, DPAda_Swing .39 with sd .15, on coarser cuts .41).

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]] * 25), np.array([0, 0, 1, 1] * 25)
    >>> PublishedDPAda(epsilon=10.0, random_state=0, n_rounds=3).fit(X, y).ledger_.private
    False
    """

    variant: str = "DPAda"
    tie: str = "shared"
    negative: str = "clip0"
    clamp: float = 1e-10
    stop_when_perfect: bool = False

    def fit(self, X: Any, y: Any) -> PublishedDPAda:
        """Fit to plain arrays; warns that the result is not private."""
        one_of(self.variant, "variant", VARIANTS)
        one_of(self.tie, "tie", TIES)
        one_of(self.negative, "negative", NEGATIVES)
        if not 0 < self.clamp < 0.5:
            raise InputError(f"clamp must lie between 0 and 0.5, got {self.clamp!r}")
        codes, sizes, values, sign = self._prepare(X, y)
        rng = np.random.default_rng(self.random_state)
        noised = noised_rounds(self.variant, int(self.n_rounds), rng)
        tie, clip0 = TIES.index(self.tie), self.negative == "clip0"
        budget, perfect = float(self.epsilon), 1e-6 if self.stop_when_perfect else -1.0
        stumps = boost(codes, sizes, sign, noised, budget, tie, clip0, float(self.clamp), perfect, 0, rng)
        self._keep(stumps, values)
        count = int(noised[: len(stumps)].sum())
        self._write(
            f"{self.variant} (published)",
            [Release("largest and smallest weight, per noised round", 2, "Laplace", math.nan, math.nan)],
            [
                "the weak learners, their errors and their votes' weights",
                "all other weights of samples",
                "the scale of the noise, which is computed from the private weights",
                "rounds that are not noised, the first always",
            ],
            {
                "rounds with noise": f"{count} of {len(stumps)}",
                "reading: tied weights": self.tie,
                "reading: negative weights": self.negative,
                "reading: an error of 0": "stop" if self.stop_when_perfect else f"clamped at {self.clamp:g}",
            },
        )
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedNoisyAdaBoost(_AdaBoost):
    """AdaBoost with noise on the leaves of its weak learners, and perhaps on their splits. **Not private.**

    Parameters
    ----------
    epsilon : float
        The claimed budget B of the whole.
    n_rounds : int
        m.
    scheme : {"DP-AdaBoost", "CART-DPsAdaBoost"}
        DP-AdaBoost: Laplace(m/B) on the weighted class counts of the leaves, N Σ w 1[y = c], whose larger one is the
        leaf's label. CART-DPsAdaBoost is not fully defined by its source. The reading here is trees of one split. Half
        of a round's budget is for the split, Laplace(2m/B) on the weighted count N Σ w 1[y = h] of each candidate. The
        other half is for the leaves as above.
    random_state : int, optional

    Attributes
    ----------
    classes_, stumps_, ledger_, privacy_spent_
        As :class:`PublishedDPAda`.

    Notes
    -----
    Why the claim fails: the splits (DP-AdaBoost), the errors, the α_k and the weights are exact functions of the data.
    The weighted counts have no sensitivity of 1 either: one record changes the normalisation of all weights.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X, y = np.array([[0.1], [0.2], [0.8], [0.9]] * 25), np.array([0, 0, 1, 1] * 25)
    >>> PublishedNoisyAdaBoost(epsilon=10.0, random_state=0, n_rounds=3).fit(X, y).ledger_.private
    False
    """

    scheme: str = "DP-AdaBoost"

    def fit(self, X: Any, y: Any) -> PublishedNoisyAdaBoost:
        """Fit to plain arrays; warns that the result is not private."""
        one_of(self.scheme, "scheme", SCHEMES)
        codes, sizes, values, sign = self._prepare(X, y)
        rng = np.random.default_rng(self.random_state)
        none = np.zeros(int(self.n_rounds), dtype=np.bool_)
        mode = 1 + SCHEMES.index(self.scheme)
        stumps = boost(codes, sizes, sign, none, float(self.epsilon), 0, True, 1e-10, -1.0, mode, rng)
        self._keep(stumps, values)
        scale = mode * self.n_rounds / self.epsilon
        self._write(
            f"{self.scheme} (published)",
            [
                Release("class counts of the leaves, per round", 4, "Laplace", scale, 1.0),
                *([Release("count of each split, per round", 1, "Laplace", scale, 1.0)] if mode == 2 else []),
            ],
            ["the splits"] * (mode == 1) + ["errors and votes' weights of the weak learners", "weights of the samples"],
            {} if mode == 1 else {"reading": "trees of one split; half of a round's budget for it"},
        )
        return self


def noised_rounds(variant: str, m: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of rounds 1 … m are noised."""
    k = np.arange(1, m + 1)
    if variant == "DPAda":
        return np.asarray(k > 1)
    if variant == "DPAda_Swing":
        return np.asarray(k % 2 == 0)
    raw = rng.random(m) >= 0.5
    if variant == "DPAda_Improved":
        raw[1:] &= ~raw[:-1]
    return np.asarray(raw & (k > 1))


@njit(cache=True, nogil=True)
def boost(codes, sizes, y, noised, budget, tie, clip0, clamp, perfect, mode, rng):  # type: ignore[no-untyped-def]
    """AdaBoost on stumps. mode 0: noise on weights in the rounds ``noised``; 1: on leaves; 2: on splits and leaves.

    ``codes`` is (d, n): indices of the values, a feature a row. Of equally good stumps the first is taken.
    """
    n, m = codes.shape[1], noised.size
    w = np.full(n, 1.0 / n)
    out = np.empty((m, 5))
    starts, rows = _by_value(codes, sizes)
    if sizes.max() < 2:  # nothing to test
        return out[:0]
    for k in range(m):
        edge = w * y
        feature, cut = _best_test(sizes, starts, rows, edge, mode, 2 * m / budget, rng)
        above, below = _votes(codes[feature], cut, y, w, mode, mode * m / budget, rng)
        wrong = np.where(codes[feature] >= cut, above, below) != y
        error = w[wrong].sum()
        if error > 0.5:
            return out[:k]
        e = min(max(error, clamp), 1 - clamp)
        alpha = 0.5 * math.log((1 - e) / e)
        out[k, 0], out[k, 1], out[k, 2], out[k, 3], out[k, 4] = feature, cut, above, below, alpha
        if error <= perfect:
            return out[: k + 1]
        w *= np.where(wrong, math.exp(alpha), math.exp(-alpha))
        w /= w.sum()
        if noised[k] and not _add_noise(w, m, budget, tie, clip0, rng):
            return out[: k + 1]
    return out


@njit(cache=True, nogil=True)
def _by_value(codes, sizes):  # type: ignore[no-untyped-def]
    """Rows by feature and value, without a feature's first value, which no test asks for; and where each begins."""
    d, n = codes.shape
    starts = np.zeros(sizes.sum() + 1, dtype=np.int64)
    rows = np.empty(np.count_nonzero(codes), dtype=np.int32)
    first = 0
    for j in range(d):
        for i in range(n):
            if codes[j, i] > 0:
                starts[first + codes[j, i] + 1] += 1
        for c in range(sizes[j]):
            starts[first + c + 1] += starts[first + c]
        free = starts[first : first + sizes[j]].copy()
        for i in range(n):
            c = codes[j, i]
            if c > 0:
                rows[free[c]] = i
                free[c] += 1
        first += sizes[j]
    return starts, rows


@njit(cache=True, nogil=True)
def _best_test(sizes, starts, rows, edge, mode, scale, rng):  # type: ignore[no-untyped-def]
    """Feature and value of the best stump; in mode 2 scores have noise of this scale."""
    n, total, best = edge.size, edge.sum(), -np.inf
    feature, cut, first = 0, 0, 0
    for j in range(sizes.size):
        above = 0.0
        for c in range(sizes[j] - 1, 0, -1):  # test x_j >= value c
            above += _sum_of(edge, rows[starts[first + c] : starts[first + c + 1]])
            score = abs(2 * above - total)  # |Σ w y h| of h = ±(2 [x_j >= c] - 1)
            if mode == 2:  # count N Σ w 1[y = h] of the better sign
                score = n * (1 + score) / 2 + rng.laplace(0.0, scale)
            if score > best + _EQUAL * max(1.0, best):
                best, feature, cut = score, j, c
        first += sizes[j]
    return feature, cut


@njit(cache=True, nogil=True)
def _votes(code, cut, y, w, mode, scale, rng):  # type: ignore[no-untyped-def]
    """Signs that the two leaves vote for; in modes 1 and 2 their weights have noise of this scale."""
    n = y.size
    high = np.zeros(2)
    low = np.zeros(2)
    for i in range(n):
        side = high if code[i] >= cut else low
        side[1 if y[i] > 0 else 0] += n * w[i]
    if mode > 0:
        for c in range(2):
            high[c] += rng.laplace(0.0, scale)
            low[c] += rng.laplace(0.0, scale)
        return 1.0 if high[1] > high[0] else -1.0, 1.0 if low[1] > low[0] else -1.0
    above = 1.0 if high[1] - high[0] > low[1] - low[0] else -1.0
    return above, -above  # the two leaves vote for different classes


@njit(cache=True, nogil=True)
def _add_noise(w, m, budget, tie, clip0, rng):  # type: ignore[no-untyped-def]
    """Add noise to the largest and the smallest weights, in place; False where no weight is left."""
    n = w.size
    top, bottom = w.max(), w.min()
    is_top = w == top
    is_bottom = w == bottom
    for which in range(2):
        value = top if which == 0 else bottom
        scale = abs(value - 1.0 / n) * m / (budget * value) if value > 0 else 0.0
        draw = rng.laplace(0.0, scale) if scale > 0 else 0.0
        done = False
        for i in range(n):
            if (is_top[i] if which == 0 else is_bottom[i]) and not (tie == 2 and done):
                if tie == 1 and done and scale > 0:
                    draw = rng.laplace(0.0, scale)
                new = value + draw
                w[i] = max(new, 1.0 / n) if which == 0 else min(new, 1.0 / n)
                done = True
    if clip0:
        w[w < 0] = 0.0
    norm = w.sum()
    if not abs(norm) > 0:
        return False
    w /= norm
    return True


_EQUAL = 1e-12
"""Relative difference of scores that counts as none: sums of weights over 10⁵ rows are that exact."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # so that additions need not wait for each other
def _sum_of(values, rows):  # type: ignore[no-untyped-def]
    """Sum of the values of some rows."""
    total = 0.0
    for i in range(rows.size):
        total += values[rows[i]]
    return total


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
        X, y = _rows_and_labels(self, X, y)
        rng = np.random.default_rng(self.random_state)
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
