"""What all private learners share: public parameters, the cohort, the ledger, checks of the data they predict for."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.learners.shared.public_encoding import stated_columns
from fdadp.learners.shared.public_inputs import as_table, as_target, check_distinct
from fdadp.privacy import Budget, Cohort, Ledger, Privacy
from fdadp.privacy._unaccounted_fits import Kin, score_is_not_private
from fdadp.privacy.noise.sources import Noise
from fdadp.privacy.private_entries import Table, check_ids, column_names, labels

Learner = TypeVar("Learner", bound="PrivateLearner")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(Kin, BaseEstimator):  # type: ignore[misc]
    """Base of all private estimators on tables: ε, δ, a seed, and the ledger of what was released.

    Parameters
    ----------
    epsilon, delta, random_state
        As of :class:`fdadp.Privacy`.
    """

    epsilon: float = 1.0
    delta: float | None = None
    random_state: int | None = None
    ledger_: Ledger = field(init=False)
    privacy_spent_: dict[str, Any] = field(init=False)
    n_features_in_: int = field(init=False)

    def _close(self, cohort: Cohort) -> None:
        """Keep the ledger, and what was spent."""
        self.ledger_ = cohort.ledger
        whole = any(r.delta is not None for r in cohort.releases)
        self.privacy_spent_ = {
            "epsilon": float(self.epsilon) if self.ledger_.private else None,
            "delta": cohort.budget.delta,
            "adjacency": cohort.adjacency,
            "unit": cohort.unit,
            "spent": float(self.epsilon) if whole else self.ledger_.details["spent by its releases, as epsilon"],
        }

    def _check_new_table(self, X: Any) -> None:
        """Check that a table to predict for has the columns that were fitted; it may hold text and missing values."""
        check_is_fitted(self, "ledger_")
        as_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)

    def _new_rows(self, X: Any) -> FloatArray:
        """Return rows to predict for, as numbers; errors may name values, as the rows are the caller's own."""
        check_is_fitted(self, "ledger_")
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64), dtype=np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLearner(PrivateEstimator):
    """Base of the learners: the guarantee as their own parameters, and the way of a table into the kernel.

    Parameters
    ----------
    epsilon, delta, n, adjacency, unit, labels, budget, dataset, random_state, study, purpose
        The guarantee: the parameters of :class:`fdadp.Privacy`.

    Attributes
    ----------
    ledger_ : Ledger
        What was released, with which noise, under which assumptions.
    privacy_spent_ : dict
        ``epsilon``, ``delta``, ``adjacency`` and ``unit`` of the guarantee; ``spent``: what the releases used, as ε.
    doubts_ : tuple of str
        What released values say against what was declared, as that no rows were used or a class has none; mostly
        nothing. Post-processing (``docs/theory/learners.md#doubts``).
    n_features_in_ : int

    Notes
    -----
    Nothing else about the training rows is kept: no labels, scores, counts or numbers of rows without noise. Each fit
    spends again.
    """

    n: int | None = None
    adjacency: str | None = None
    unit: str | None = None
    labels: str | None = None
    budget: Budget | None = None
    dataset: str | None = None
    study: str | None = None
    purpose: str | None = None
    doubts_: tuple[str, ...] = field(init=False)

    def fit(self: Learner, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Learner:
        """Release what the model needs, and fit; spends ε.

        Parameters
        ----------
        X : array_like or data frame of shape (n, d)
            A row with a value that is not finite counts as no row, where the learner does not take missing values.
        y : array_like of shape (n,) or (n, q), optional
            Labels or targets, for classifiers and regressions; all else ignores it. A row without a usable one counts
            as no row.
        groups : array_like of shape (n,), optional
            Person of each row: then what a person's rows contribute is averaged before it is clipped.

        Returns
        -------
        self

        Raises
        ------
        PublicParameterMissing
            A public parameter without a default is missing. Nothing was read, and nothing spent.
        InputError, PrivacyError
            Something public is wrong. Nothing was read, and nothing spent.

        Warns
        -----
        PublicInputWarning
            Released values say that hardly any row was used, a class has none, or features do not vary.
        """
        self._close(self._learn(X, y, groups))
        if self.doubts_:
            text = "what was released speaks against what was declared: " + "; ".join(self.doubts_)
            warnings.warn(text, PublicInputWarning, stacklevel=2)
        return self

    def _learn(self, X: Any, y: Any, groups: ArrayLike | None) -> Cohort:
        """Check what is public, open the cohort, release, keep what was released, and return the cohort."""
        raise NotImplementedError

    @property
    def _accounting(self) -> str:
        """How a budget of its own adds up: in "zcdp" where selections take most of it."""
        return "gdp"

    def _settings(self) -> Privacy:
        return Privacy(**{f.name: getattr(self, f.name) for f in fields(PrivateLearner) if f.init})

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
        settings: Privacy | None = None,
    ) -> Cohort:
        """Put the data behind a cohort that has reserved this fit's budget; only their shapes are looked at.

        Rows are (X,) or (X, y), y as codes of `classes` where they are given; all float64, what is no number NaN. With
        `columns` these take the place of X: its labels as codes. `settings`: a guarantee that implies the estimator's.
        """
        if classes is None and isinstance(self, PrivateClassifier):
            raise InputError(
                f"classes must be given where {type(self).__name__} opens its rows, as class_labels() of y"
            )
        settings = settings or self._settings()
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
        names = column_names(X)
        check_distinct(names)
        settings.hold(stated_columns(public or {}, X, y))
        cohort = settings.cohort(
            arrays,
            groups=groups,
            mechanism=type(self).__name__,
            public=public or {},
            noise=noise,
            estimator=self,
            accounting=self._accounting,
        )
        self.n_features_in_, self.doubts_ = int(whole.shape[1]), ()  # from here on the fit before is gone
        for name in ("walls_", "walls_y_"):  # not of every fit
            self.__dict__.pop(name, None)
        if names and all(isinstance(name, str) for name in names):  # as scikit-learn has it
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return cohort

    def _check_saveable(self) -> None:
        """Refuse public parameters that cannot be pickled, before budget is spent on a fit that could not be saved."""
        for name, value in self.get_params(deep=False).items():
            try:
                pickle.dumps(value)
            except Exception as exc:
                raise InputError(
                    f"{name} must be something that can be pickled, or the fit could not be saved, got "
                    f"{type(value).__name__}; nothing was read and nothing was spent"
                ) from exc

    def _wants_whole_budget(self, groups: Any, instead: str, name: str | None = None) -> None:
        """Refuse groups and, with a δ, a shared budget, for a mechanism that takes neither; name those that do."""
        name = name or getattr(self, "mechanism", "")
        if groups is not None:
            raise InputError(f'mechanism must be {instead} with groups: "{name}" wants one row a person')
        settings = self._settings()
        budget, share = settings.budget_share(self._accounting)
        if settings.delta is not None and (share < 1 - 1e-9 or budget.left < budget.total * (1 - 1e-9)):
            raise InputError(
                f'mechanism must be {instead} where a budget with a delta is shared: "{name}" is accounted for in '
                f"(epsilon, delta) by itself and takes a whole budget, not {share:.3g} of {budget!r}"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class Bounded(PrivateLearner):
    """A learner on rows in a public box, or in a public ball."""

    bounds: Any = None
    data_norm: float | None = None
    center: ArrayLike = 0.0


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateLearner):  # type: ignore[misc]
    """A private learner that classifies.

    Parameters
    ----------
    classes : sequence
        Public labels, in any order. A row with another label counts as no row.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted: the order of the columns of ``predict_proba``.
    """

    classes: Sequence[Hashable] | None = None
    classes_: np.ndarray[Any, Any] = field(init=False)

    def _labels(self, score: FloatArray) -> np.ndarray[Any, Any]:
        """Class of the largest score, (m,), from scores (m, K), or (m,) of the second class of two."""
        best = (score > 0).astype(np.int64) if score.ndim == 1 else score.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on some rows, computed without noise: not private if the rows are not public.

        Labels are matched by what they mean, as in the fit; a row without a declared one counts as wrong.
        """
        score_is_not_private(self)
        same_rows(X=X, y=y)
        found, true = (labels(of, self.classes_.tolist()).read() for of in (self.predict(X), y))
        return float(accuracy_score(np.nan_to_num(true, nan=-1.0), found, sample_weight=sample_weight))


@dataclass(kw_only=True, eq=False, repr=False)
class ScoringClassifier(PrivateClassifier):
    """A private learner that classifies by scores in logits."""

    def decision_function(self, X: Any) -> FloatArray:
        """Scores in logits, (m,) of the second class where there are two, else (m, K)."""
        raise NotImplementedError

    def _shares(self, score: FloatArray) -> FloatArray:
        """Probabilities of more than two classes, from their scores (m, K)."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, (m, K)."""
        score = self.decision_function(X)
        return np.stack([expit(-score), expit(score)], axis=1) if score.ndim == 1 else self._shares(score)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Class with the largest score, (m,)."""
        return self._labels(self.decision_function(X))


class TakesLabels:
    """Mixin: tables may hold labels, and missing values."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


class PrivateRegressor(RegressorMixin, PrivateLearner):  # type: ignore[misc]
    """A private learner that predicts numbers."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on some rows, computed without noise: not private if the rows are not public."""
        score_is_not_private(self)
        same_rows(X=X, y=y)
        return float(super().score(X, y, sample_weight))
