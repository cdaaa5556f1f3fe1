"""What scikit-learn asks of an estimator, without loading scikit-learn: that takes longer than most fits.

scikit-learn's tools ask methods, not the class: ``get_params``, ``set_params``, ``__sklearn_tags__`` and
``__sklearn_clone__``. Whoever calls the last two has loaded it. What only its own base class knows (the text of an
estimator, requests for metadata) is asked of a twin, which has that class among its bases.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from functools import cache
from typing import Any, TypeVar

from fdadp.errors import InputError

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """Base of estimators: as ``sklearn.base.BaseEstimator``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; with `deep` also those of settings that have some, as ``privacy__epsilon``."""
        found: dict[str, Any] = {}
        for name in _settings(self):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
            found[name] = value
        return found

    def set_params(self: Self, **params: Any) -> Self:
        """Set settings, nested ones such as ``privacy__epsilon`` among them; returns the estimator.

        Raises
        ------
        InputError
            A name that is no setting.
        """
        names = _settings(self)
        nested: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in names:
                raise InputError(f"{name} is no setting of {type(self).__name__}, which has {', '.join(names)}")
            if inner:
                nested[name][inner] = value
            else:
                setattr(self, name, value)
        for name, inner_params in nested.items():
            getattr(self, name).set_params(**inner_params)
        return self

    def get_metadata_routing(self) -> Any:
        """Return what this estimator asks scikit-learn's tools to hand on."""
        return _twin(self).get_metadata_routing()

    def __getattr__(self, name: str) -> Any:
        """Return ``set_fit_request`` and its like, which are there where the method has arguments to hand on."""
        if name.startswith("set_") and name.endswith("_request"):
            twin = _twin(self)
            if any(name in vars(kind) for kind in type(twin).__mro__):
                ask = getattr(twin, name)

                def asked(**requests: Any) -> Any:
                    ask(**requests)
                    return self

                return asked
        return object.__getattribute__(self, name)  # which raises as if this were not here

    def __sklearn_clone__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_clone__(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def __repr__(self) -> str:
        from sklearn.base import BaseEstimator

        return str(BaseEstimator.__repr__(_twin(self)))

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(_twin(self)))


class Regressor:
    """Mixin of regressions: as ``sklearn.base.RegressorMixin``, but each has a score of its own."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        return tags


def clone(estimator: Any) -> Any:
    """An estimator with the same settings, not fitted: scikit-learn's function."""
    from sklearn.base import clone

    return clone(estimator)


def check_is_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's ``NotFittedError`` where a fitted attribute is not there."""
    if not hasattr(estimator, attribute):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, attribute)


def _settings(estimator: Estimator) -> list[str]:
    """Names of the settings, in alphabetical order."""
    kind: Any = type(estimator)
    return _settings_of(kind)


@cache
def _settings_of(kind: Any) -> list[str]:
    return sorted(inspect.signature(kind).parameters)


@cache
def _twin_of(kind: Any) -> Any:
    from sklearn.base import BaseEstimator

    own = {name: getattr(BaseEstimator, name) for name in ("__repr__", "get_metadata_routing")}
    return type(kind.__name__, (kind, BaseEstimator), {"__module__": kind.__module__, **own})


def _twin(estimator: Estimator) -> Any:
    """An object with the same attributes, whose class is also scikit-learn's: what is set there is set here."""
    kind: Any = type(estimator)
    twin = object.__new__(_twin_of(kind))
    twin.__dict__ = estimator.__dict__
    return twin
