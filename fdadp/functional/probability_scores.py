"""How good predicted probabilities are, and whether one model is better than another over random splits.

Responses are 0 or 1. On private records the numbers that these functions return are not private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.argument_checks import fraction, whole
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError

__all__ = ["Comparison", "auc", "brier_score", "calibration_line", "calibration_table", "compare_over_splits"]


def auc(y: ArrayLike, probability: ArrayLike) -> float:
    """Area under the ROC curve: how often a response of 1 was given more than one of 0, ties counting half.

    Parameters
    ----------
    y : array_like of shape (n,)
        0 or 1.
    probability : array_like of shape (n,)
        Predicted; any numbers in the same order give the same area.

    Raises
    ------
    InputError
        Responses of another kind or all the same, predictions that are not finite, or of another number.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    from sklearn.metrics import roc_auc_score

    observed, predicted = _pairs(y, probability, any_number=True)
    if observed.min() == observed.max():
        raise InputError(f"y must hold both 0 and 1 for an area under the curve, got only {observed[0]:g}")
    return float(roc_auc_score(observed, predicted))


def brier_score(y: ArrayLike, probability: ArrayLike) -> float:
    """Mean squared difference of responses and probabilities (Brier 1950); 0 is perfect.

    Raises
    ------
    InputError
        Responses other than 0 and 1, or probabilities outside [0, 1].

    Examples
    --------
    >>> brier_score([0, 1], [0.5, 0.5])
    0.25
    """
    from sklearn.metrics import brier_score_loss

    observed, predicted = _pairs(y, probability)
    return float(brier_score_loss(observed, predicted, pos_label=1))


def calibration_table(y: ArrayLike, probability: ArrayLike, bins: int = 10, level: float = 0.95) -> pd.DataFrame:
    """Predicted and observed shares in groups of equal size, by predicted probability.

    Parameters
    ----------
    y, probability : array_like of shape (n,)
    bins : int
        Number of groups at most; equal probabilities stay together.
    level : float
        Of Wilson's (1927) intervals of the observed shares.

    Returns
    -------
    DataFrame
        A row a group: ``n``, mean ``predicted`` probability, ``observed`` share, its interval ``lower``, ``upper``.

    Raises
    ------
    InputError
        As :func:`brier_score`; fewer than one group.
    """
    from statsmodels.stats.proportion import proportion_confint

    observed, predicted = _pairs(y, probability)
    fraction(level, "level")
    whole(bins, "bins")
    cuts = np.unique(np.quantile(predicted, np.arange(1, bins) / bins))
    group = np.searchsorted(cuts, predicted, side="left")
    frame = pd.DataFrame({"group": group, "predicted": predicted, "observed": observed}).groupby("group")
    n, hits = frame.size(), frame["observed"].sum()
    lower, upper = proportion_confint(hits.to_numpy(), n.to_numpy(), alpha=1 - level, method="wilson")
    columns = {"n": n, "predicted": frame["predicted"].mean(), "observed": hits / n, "lower": lower, "upper": upper}
    return pd.DataFrame(columns).reset_index(drop=True)


def calibration_line(y: ArrayLike, probability: ArrayLike) -> tuple[float, float]:
    """Intercept and slope of the log-odds of responses on predicted log-odds (Cox 1958): 0 and 1 where calibrated.

    A slope below 1 says that predictions are too extreme.

    Raises
    ------
    InputError
        As :func:`brier_score`; probabilities of exactly 0 or 1, or all the same; responses that are all the same.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression, doi:10.1093/biomet/45.3-4.562.
    """
    import statsmodels.api as sm

    observed, predicted = _pairs(y, probability)
    if predicted.min() <= 0 or predicted.max() >= 1 or predicted.min() == predicted.max():
        raise InputError(
            "probability must vary within (0, 1) for a calibration line, got values in "
            f"[{predicted.min():g}, {predicted.max():g}]"
        )
    if observed.min() == observed.max():
        raise InputError(f"y must hold both 0 and 1 for a calibration line, got only {observed[0]:g}")
    odds = np.log(predicted) - np.log1p(-predicted)
    intercept, slope = sm.GLM(observed, sm.add_constant(odds), family=sm.families.Binomial()).fit().params
    return float(intercept), float(slope)


@dataclass(frozen=True)
class Comparison:
    """By how much one model is better than another.

    Attributes
    ----------
    difference : float
        Mean over the splits.
    se : float
        Its standard error, corrected for training rows that splits have in common.
    lower, upper : float
        Ends of its interval.
    p_value : float
        Of the hypothesis that models are equally good.
    n_splits : int
    """

    difference: float
    se: float
    lower: float
    upper: float
    p_value: float
    n_splits: int


def compare_over_splits(
    first: ArrayLike, second: ArrayLike, n_train: int, n_test: int, level: float = 0.95
) -> Comparison:
    """Compare two models by their scores on the same random splits.

    Splits have rows in common, so that differences of scores are correlated, and their variance divided by the number
    of splits is too small. Nadeau & Bengio's corrected one is ``(1/J + n_test/n_train) s²``, for a t distribution with
    J - 1 degrees of freedom.

    Parameters
    ----------
    first, second : array_like of shape (J,)
        Scores of the two models on the test rows of each split.
    n_train, n_test : int
        Rows of a split.
    level : float
        Of the interval.

    Returns
    -------
    Comparison
        Of first less second.

    Raises
    ------
    InputError
        Fewer than two splits, other numbers of them, or scores that are not finite.

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> found = compare_over_splits([0.71, 0.74, 0.72], [0.70, 0.71, 0.70], n_train=800, n_test=200)
    >>> round(found.difference, 3), round(found.se, 4)
    (0.02, 0.0076)
    """
    from scipy.stats import t

    a, b = (np.asarray(scores, dtype=np.float64) for scores in (first, second))
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        raise InputError(f"first and second must have a score of each split, two or more, got {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("first and second must be finite, got other scores")
    if n_train < 1 or n_test < 1:
        raise InputError(f"n_train and n_test must be at least 1, got {n_train} and {n_test}")
    fraction(level, "level")
    apart = a - b
    mean = float(apart.mean())
    se = float(np.sqrt((1 / a.size + n_test / n_train) * apart.var(ddof=1)))
    half = float(t.ppf((1 + level) / 2, a.size - 1)) * se
    p_value = 2 * float(t.sf(abs(mean) / se, a.size - 1)) if se > 0 else float(mean == 0)
    return Comparison(mean, se, mean - half, mean + half, p_value, a.size)


def _pairs(y: ArrayLike, probability: ArrayLike, *, any_number: bool = False) -> tuple[FloatArray, FloatArray]:
    """Responses and predictions, checked."""
    try:
        observed, predicted = np.asarray(y, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"y and probability must be numbers, got {type(y).__name__} of other things") from exc
    if observed.ndim != 1 or observed.shape != predicted.shape or not observed.size:
        raise InputError(f"y and probability must be of one shape (n,), got {observed.shape} and {predicted.shape}")
    bad = np.flatnonzero((observed != 0) & (observed != 1))
    if bad.size:
        raise InputError(f"y must be 0 or 1, got {observed[bad[0]]:g} in row {bad[0]}")
    inside = np.isfinite(predicted) if any_number else (predicted >= 0) & (predicted <= 1)
    bad = np.flatnonzero(~inside)
    if bad.size:
        must = "be finite" if any_number else "lie in [0, 1]"
        raise InputError(f"probability must {must}, got {predicted[bad[0]]:g} in row {bad[0]}")
    return observed, predicted
