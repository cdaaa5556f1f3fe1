"""What all private learners share: public parameters, the cohort, the ledger, checks of the data they predict for."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PublicParameterMissing
from fdadp.functional.alignment import same_rows
from fdadp.privacy import Cohort, Ledger, Privacy
from fdadp.privacy._seen import Family, score_is_not_private
from fdadp.privacy.boundary import Table, check_ids, labels, table
from fdadp.privacy.noise import Noise

__all__ = [
    "PrivateClassifier",
    "PrivateLearner",
    "PrivateRegressor",
    "Rows",
    "as_table",
    "ball",
    "box",
    "class_labels",
    "public",
]

Rows = tuple[Any, ...]
"""A block of private rows, as a function handed to the kernel gets it: (X,) or (X, y)."""


class PrivateLearner(Family, BaseEstimator):  # type: ignore[misc]
    """Base of the learners: keyword parameters, of which the first nine are those of every one.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, optional
        In (0, 1), below 1/n, and at most 0.001 where n is private. None: pure ε.
    n : int, optional
        Declared public number of persons; makes the adjacency ``"zero-out"``.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default: ``"zero-out"`` where n is declared, else ``"add-remove"``.
    unit : {"row", "person"}, optional
        Whom the guarantee protects. ``"person"``: all rows with one id in ``groups=``, which must then be given;
        ``"row"``: one row, and groups are refused. Default: person where groups are given, else row.
    labels : {"public"}, optional
        ``"public"``: labels of the rows of X, y and groups (frames, series) are public, and are compared before the
        first read; tables in another order are refused. Default: they are not looked at, and rows belong together by
        position.
    budget : Budget, optional
        Shared with other fits of the same data; this fit takes as much of it as ε says.
    dataset : str, optional
        Public name of the data, by which a shared budget knows them again.
    random_state : int, optional
        Noise that can be repeated, for simulations: the ledger then says "not for release".

    Attributes
    ----------
    ledger_ : Ledger
        What was released, with which noise, under which assumptions.
    privacy_spent_ : dict
        ``epsilon``, ``delta``, ``adjacency`` and ``unit`` of the guarantee; ``spent``: what the releases used, as ε.
    n_features_in_ : int

    Notes
    -----
    Nothing else about the training rows is kept: no labels, scores, counts or numbers of rows without noise. Each fit
    spends again.
    """

    epsilon: float
    delta: float | None
    n: int | None
    adjacency: str | None
    unit: str | None
    labels: str | None
    budget: Any
    dataset: str | None
    random_state: int | None
    ledger_: Ledger
    privacy_spent_: dict[str, Any]
    n_features_in_: int

    def _settings(self) -> Privacy:
        return Privacy(
            epsilon=self.epsilon,
            delta=self.delta,
            n=self.n,
            adjacency=self.adjacency,
            unit=self.unit,
            labels=self.labels,
            random_state=self.random_state,
            budget=self.budget,
            dataset=self.dataset,
        )

    def _open(
        self,
        X: Any,
        y: Any = None,
        groups: ArrayLike | None = None,
        *,
        classes: Sequence[Hashable] | None = None,
        public: Mapping[str, Any] | None = None,
        noise: Noise | None = None,
        columns: Table | None = None,
    ) -> Cohort:
        """Put the data behind a cohort that has reserved this fit's budget; only their shapes are looked at.

        Rows are (X,) or (X, y), y as codes of `classes` where they are given; all float64, what is no number NaN. With
        `columns` these take the place of X: its labels as codes.
        """
        settings = self._settings()
        self._check_saveable()
        if settings.labels == "public":
            same_rows(X=X, y=y, groups=groups)
        whole = as_table(X)
        if y is None and get_tags(self).target_tags.required:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        private = whole if columns is None else columns
        arrays: tuple[Table, ...] = (private,)
        if y is not None:
            target = labels(y, classes) if classes is not None else as_target(y)
            if len(target) != len(whole):
                raise InputError("y must have one entry for each row of X, got another number")  # which may be private
            arrays = (private, target)
        if groups is not None:
            check_ids(groups, len(whole), "groups")
        names = list(X.columns) if hasattr(X, "columns") else []
        self.n_features_in_ = int(whole.shape[1])
        if names and all(isinstance(name, str) for name in names):  # as scikit-learn has it
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return settings.cohort(
            arrays,
            groups=groups,
            mechanism=type(self).__name__,
            public=public or {},
            noise=noise,
            estimator=self,
        )

    def _check_saveable(self) -> None:
        """Refuse public parameters with which the fit could not be pickled: the budget would be spent for nothing."""
        for name, value in self.get_params(deep=False).items():
            try:
                pickle.dumps(value)
            except Exception as exc:
                raise InputError(
                    f"{name} must be something that can be pickled, or the fit could not be saved, got "
                    f"{type(value).__name__}; nothing was read and nothing was spent"
                ) from exc

    def _wants_whole_budget(self, groups: Any, instead: str) -> None:
        """Refuse groups and, with a δ, a shared budget, before anything is reserved; name the mechanisms that can."""
        name = getattr(self, "mechanism", "")
        if groups is not None:
            raise InputError(f'mechanism must be {instead} with groups: "{name}" wants one row a person')
        budget, share = self._settings().budget_share()
        if self.delta is not None and (share < 1 - 1e-9 or budget.left < budget.total * (1 - 1e-9)):
            raise InputError(
                f'mechanism must be {instead} where a budget with a delta is shared: "{name}" is accounted for in '
                f"(epsilon, delta) by itself and takes a whole budget, not {share:.3g} of {budget!r}"
            )

    def _close(self, cohort: Cohort) -> None:
        """Write down what was spent."""
        self.ledger_ = cohort.ledger
        whole = any(r.delta is not None for r in cohort.releases)
        self.privacy_spent_ = {
            "epsilon": float(self.epsilon) if self.ledger_.private else None,
            "delta": self.delta,
            "adjacency": cohort.adjacency,
            "unit": cohort.unit,
            "spent": float(self.epsilon) if whole else self.ledger_.details["spent by its releases, as epsilon"],
        }

    def _check_new_table(self, X: Any) -> None:
        """Of a table to predict for, with text and gaps perhaps: as wide, and with the names, that was fitted."""
        check_is_fitted(self, "ledger_")
        as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)

    def _new_rows(self, X: Any) -> FloatArray:
        """Rows to predict for: these are the caller's, and errors may name what is wrong with them."""
        check_is_fitted(self, "ledger_")
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64), dtype=np.float64)


class PrivateClassifier(ClassifierMixin, PrivateLearner):  # type: ignore[misc]
    """A private learner that classifies."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on some rows, which it tells without noise."""
        score_is_not_private(self)
        same_rows(X=X, y=y)
        return float(super().score(X, y, sample_weight))


class PrivateRegressor(RegressorMixin, PrivateLearner):  # type: ignore[misc]
    """A private learner that predicts numbers."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on some rows, which it tells without noise."""
        score_is_not_private(self)
        same_rows(X=X, y=y)
        return float(super().score(X, y, sample_weight))


def public(name: str, value: Any, what: str) -> Any:
    """Return a public parameter, or say that it is missing."""
    if value is None:
        raise PublicParameterMissing(
            f"{name} must be given: {what}. It is public, and taking it from the data would not be private"
        )
    return value


def class_labels(classes: Any) -> list[Hashable]:
    """Public labels of a classifier, at least two."""
    try:
        labels = list(public("classes", classes, "all labels there are"))
    except TypeError as exc:
        raise InputError(f"classes must be a sequence of labels, got {classes!r}") from exc
    if len(labels) < 2:
        raise InputError(f"classes must be at least two, got {labels!r}")
    return labels


def as_table(X: Any) -> Table:
    """(n, d) table as it is; only its shape is looked at, and how many rows it has is not told."""
    found = table(X, "X")
    if len(found.shape) != 2:
        raise InputError(
            f"X must be two-dimensional (rows, features), got {len(found.shape)} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
        )
    if found.shape[0] == 0:
        raise InputError("X must not be empty: 0 sample(s) while a minimum of 1 is required.")
    if found.shape[1] == 0:
        raise InputError("X must not be empty: 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return found


def as_target(y: Any) -> Table:
    """(n,) or (n, q) numbers as they are."""
    if y is None:
        raise InputError("the regression requires y to be passed, but the target y is None")
    found = table(y, "y")
    if len(found.shape) not in (1, 2):
        raise InputError(f"y must be of shape (n,) or (n, q), got {len(found.shape)} dimensions")
    return found


def box(bounds: Any, d: int, name: str = "bounds") -> tuple[FloatArray, FloatArray]:
    """Public bounds (low, high), each a number or d of them, as two vectors."""
    public(name, bounds, f"a pair (low, high), each a number or {d} numbers")
    try:
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (d,)).copy() for b in bounds)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be a pair (low, high), each a number or {d} numbers, got {bounds!r}") from exc
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError(f"{name} must be finite with low < high, got {bounds!r}")
    return low, high


def ball(data_norm: Any, center: Any, d: int) -> tuple[float, FloatArray]:
    """Public radius and centre (d,) of the ball that rows are clipped to."""
    public("data_norm", data_norm, "the largest L2 norm of a row about `center`, to which rows are clipped")
    if isinstance(data_norm, bool) or not isinstance(data_norm, (int, float, np.number)) or not 0 < data_norm < 1e100:
        raise InputError(f"data_norm must be a finite number above 0, got {data_norm!r}")
    try:
        middle = np.broadcast_to(np.asarray(center, dtype=np.float64), (d,)).copy()
    except (TypeError, ValueError) as exc:
        raise InputError(f"center must be a number or {d} numbers, got {center!r}") from exc
    if not np.isfinite(middle).all():
        raise InputError(f"center must be finite, got {center!r}")
    return float(data_norm), middle
