"""Published noisy AdaBoost as printed, for comparison only: **none of it is differentially private**.

Where a source leaves a point undefined, it is an option here, and the reading is written down in the ledger. The
private counterpart is :class:`fdadp.learners.DPBoostedStumps`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.checks import one_of, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.tables.alignment import same_rows
from fdadp.learners.shared.inputs import positive
from fdadp.privacy.account.releases import Release
from fdadp.published._adaboost import boost
from fdadp.published._base import Published

VARIANTS = ("DPAda", "DPAda_Swing", "DPAda_Random", "DPAda_Improved")
SCHEMES = ("DP-AdaBoost", "CART-DPsAdaBoost")
TIES = ("shared", "independent", "single")
NEGATIVES = ("clip0", "raw")


@dataclass(kw_only=True, eq=False, repr=False)
class _AdaBoost(ClassifierMixin, Published):  # type: ignore[misc]
    """AdaBoost with one-feature threshold tests as weak learners, of two classes."""

    n_rounds: int = 50
    classes_: np.ndarray[Any, Any] = field(init=False)
    stumps_: FloatArray = field(init=False)

    def _prepare(self, X: Any, y: Any) -> tuple[np.ndarray[Any, Any], IntArray, list[FloatArray], FloatArray]:
        """Indices (d, n) of the distinct values of each column, their number, the values; and y as ±1."""
        same_rows(X=X, y=y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        positive(self.epsilon, "epsilon")
        whole(self.n_rounds, "n_rounds")
        self.classes_ = np.unique(y)
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
        total = np.zeros(0)
        for stage in self._staged(X):
            total = stage
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
        Rounds k whose weights are noised: every k > 1; every even k; each k > 1 with probability ½; of each run of such
        rounds the first only.
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
    from the data and released, the first round has no noise at all; the "sensitivity" and the budget of a weight are
    functions of the private weights; other weights are exact; and budgets over samples do not add up to anything.

    *Reading.* Both extremes are found before either gets noise; the largest is raised to 1/N if below it, the smallest
    lowered to 1/N if above, then negative weights are treated, then all are normalised. An extreme weight of 0 or below
    has no budget, so the source's scale is undefined: it gets no noise. Stumps are one-feature thresholds on the
    columns given, either way up; of equally good ones the first is taken. With a few samples of all the weight, as
    the noise makes it, many are equally good: results hang on the columns, their order and the seed (Adult, m = 50,
    B = 1, 30 seeds: DPAda_Swing .39 with sd .15; on coarser cuts .41).

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
        stumps = boost(
            codes,
            sizes,
            sign,
            noised,
            float(self.epsilon),
            TIES.index(self.tie),
            self.negative == "clip0",
            float(self.clamp),
            1e-6 if self.stop_when_perfect else -1.0,
            0,
            rng,
        )
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
        leaf's label. CART-DPsAdaBoost is not fully defined by its source; the reading here: trees of one split, half of
        a round's budget for the split, Laplace(2m/B) on the weighted count N Σ w 1[y = h] of each candidate, and half
        for the leaves as above.
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
