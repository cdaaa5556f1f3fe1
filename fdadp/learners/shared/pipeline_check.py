"""Which steps of a Pipeline learn from rows without privacy: by what the steps are, before anything is read.

A step that was fitted on the rows makes each row that it hands on depend on all persons; the guarantee of a private
step behind it is one for rows that are a person's own. scikit-learn tells a step nothing of the steps before it, so
that a learner cannot see this: :func:`check_pipeline` looks at the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from fdadp.errors import InputError, PrivacyError
from fdadp.learners.shared._estimator_base import PrivateEstimator

_COLUMNS_ALONE = frozenset({"HashingVectorizer", "PolynomialFeatures"})
"""scikit-learn's transformers that learn the number of columns or nothing, though tags (of some versions) say more.

Those that multiply matrices are not among them: last bits of a product may depend on the other rows.
"""

Step = tuple[str, Any]


def check_pipeline(pipeline: Any) -> Any:
    """Return a Pipeline as it is, or refuse it with the names of the steps that learn from rows without privacy.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer, FeatureUnion or TransformedTargetRegressor of scikit-learn, or an estimator
        Fitted or not; what is inside of it is looked at, too. No data are.

    Returns
    -------
    object
        `pipeline`, so that it can be fitted at once.

    Raises
    ------
    PrivacyError
        A step is fitted without privacy, or none is private. Columns are chosen by a function of the table. Several
        private steps neither share a ``budget`` nor a ``study``, so that no ledger adds them up.
    InputError
        It is no estimator.

    Notes
    -----
    Steps that pass are private estimators of this package, and transformers that learn nothing: their tag
    ``requires_fit`` is False (``FunctionTransformer``, ``Normalizer``, ``Binarizer``, ``HashingVectorizer``,
    :class:`~fdadp.learners.PublicEncoder`), or they learn the number of columns alone (``PolynomialFeatures``). All
    others are taken to learn from the rows. What the function of a ``FunctionTransformer`` does, nobody sees: it has to
    treat each row by itself, with public numbers.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from fdadp.learners import DPLogisticRegression, check_pipeline
    >>> private = DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    >>> model = check_pipeline(make_pipeline(Normalizer(), private))
    >>> check_pipeline(make_pipeline(StandardScaler(), private))
    Traceback (most recent call last):
    ...
    fdadp.errors.PrivacyError: steps must not learn from rows without privacy, as standardscaler (...) does: ...
    """
    if isinstance(pipeline, type) or not hasattr(pipeline, "get_params"):
        raise InputError(f"pipeline must be a Pipeline or an estimator, got {type(pipeline).__name__}")
    steps = list(_steps("", pipeline))
    wrong = [f"{name} ({type(step).__name__})" for name, step in steps if not (_learns_nothing(step) or _private(step))]
    if wrong:
        verb = "do" if len(wrong) > 1 else "does"
        raise PrivacyError(
            f"steps must not learn from rows without privacy, as {', '.join(wrong)} {verb}: "
            "what comes after depends on all persons through them. Public bounds of the learner do a scaler's work, a "
            "FunctionTransformer with public numbers is no fit, and DPPCA is a private step"
        )
    private = [step for _, step in steps if _private(step)]
    if not private:
        raise PrivacyError("steps must be private, one at least, got none that is")
    if len(private) > 1:
        _check_shared(private)
    return pipeline


def _steps(name: str, of: Any) -> Iterator[Step]:
    """Innermost steps with their names, as ``get_params`` has them."""
    inside = f"{name}__" if name else ""
    if isinstance(of, Pipeline):
        for key, step in of.steps:
            yield from _steps(inside + key, step)
    elif isinstance(of, FeatureUnion):
        for key, step in of.transformer_list:
            yield from _steps(inside + key, step)
    elif isinstance(of, ColumnTransformer):
        for key, step, columns in of.transformers:
            if callable(columns):
                raise PrivacyError(
                    f"columns of {inside + key} must be named, got {columns!r}: types of columns depend on what is in "
                    "them"
                )
            yield from _steps(inside + key, step)
        yield from _steps(inside + "remainder", of.remainder)
    elif isinstance(of, TransformedTargetRegressor):
        yield from _steps(inside + "transformer", of.transformer)
        yield from _steps(inside + "regressor", of.regressor)
    elif of is not None and not isinstance(of, str):  # passthrough and drop
        yield name or type(of).__name__, of


def _learns_nothing(step: Any) -> bool:
    """Whether a step is a transformer of each row by itself."""
    if not hasattr(step, "transform"):
        return False
    known = type(step).__module__.startswith("sklearn.") and type(step).__name__ in _COLUMNS_ALONE
    return known or not get_tags(step).requires_fit


def _private(step: Any) -> bool:
    """Whether a step is an estimator of this package that is private end to end."""
    if isinstance(step, PrivateEstimator):
        return True
    if not type(step).__module__.startswith("fdadp."):
        return False
    params = step.get_params(deep=False)
    mechanism = params.get("mechanism", "")
    known = isinstance(mechanism, str) or type(mechanism).__module__.startswith("fdadp.private.")
    return known and params.get("privacy") is not None


def _check_shared(private: list[Any]) -> None:
    """Refuse several private steps that no ledger adds up."""
    of = [getattr(step, "privacy", None) or step for step in private]
    budgets, studies = ([getattr(settings, name, None) for settings in of] for name in ("budget", "study"))
    together = all(b is not None and b is budgets[0] for b in budgets)
    if not together and not all(s is not None and s == studies[0] for s in studies):
        found = ", ".join(type(step).__name__ for step in private)
        raise PrivacyError(
            f"private steps must share one budget= or one study=, or nothing adds up what they spend: {found} do not"
        )
    names = {getattr(settings, "dataset", None) for settings in of}
    if together and (len(names) > 1 or None in names):
        raise PrivacyError("private steps on one budget must all have the same dataset=: their rows are one table's")
