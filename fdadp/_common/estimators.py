"""What scikit-learn asks of an estimator, without loading scikit-learn: that takes longer than most fits.

scikit-learn's tools ask methods, not the class: ``get_params``, ``set_params``, ``__sklearn_tags__`` and
``__sklearn_clone__``. Whoever calls the last two has loaded it. What only its own base class knows (the text of an
estimator, requests for metadata) is asked of a twin, which has that class among its bases.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from fdadp.errors import InputError

Model = TypeVar("Model", bound="Estimator")
Self = TypeVar("Self", bound="Parameters")
Nested = TypeVar("Nested", bound="NestedParameters")


class Parameters:
    """Mixin of frozen dataclasses whose fields are parameters that a search may set, as ``privacy__epsilon``.

    Attributes cannot be assigned. :meth:`set_params` is the one way to change such an object; estimators change a copy
    (:class:`NestedParameters`), and a fit keeps a copy of its own.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is there for scikit-learn, and nothing is nested deeper."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def set_params(self: Self, **params: Any) -> Self:
        """Change parameters: all of them, or none where what results is refused.

        Raises
        ------
        InputError
            A name that is no parameter.
        PrivacyError
            As the constructor.
        """
        names = self.get_params()
        for name in params:
            if name not in names:
                raise InputError(f"{name} is no parameter of {type(self).__name__}, which has {', '.join(names)}")
        changed = replace(self, **params)  # type: ignore[type-var]
        for name in names:
            object.__setattr__(self, name, getattr(changed, name))
        return self

    def __sklearn_clone__(self: Self) -> Self:
        return replace(self)  # type: ignore[type-var]

    def __repr__(self) -> str:
        """What differs from the default, as it would be written."""
        given = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)  # type: ignore[arg-type]
            if f.default is MISSING or not _same(getattr(self, f.name), f.default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


class NestedParameters:
    """Mixin of estimators that hold :class:`Parameters`; stands before scikit-learn's classes.

    ``set_params(privacy__epsilon=1)`` changes a copy: another estimator that was given the same object keeps it as it
    was.
    """

    def set_params(self: Nested, **params: Any) -> Nested:
        """Set parameters, nested ones such as ``privacy__epsilon`` among them; returns the estimator."""
        super().set_params(**{**params, **_copied(self, params)})  # type: ignore[misc]
        return self


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

    def set_params(self: Model, **params: Any) -> Model:
        """Set settings, nested ones such as ``privacy__epsilon`` among them; returns the estimator.

        Raises
        ------
        InputError
            A name that is no setting.
        """
        names = _settings(self)
        nested: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in {**params, **_copied(self, params)}.items():
            name, _, inner = key.partition("__")
            if name not in names:
                own = ", ".join(names)
                raise InputError(f"Invalid parameter {name!r} for {type(self).__name__}, whose parameters are {own}")
            if inner:
                nested[name][inner] = value
            else:
                setattr(self, name, value)
        for name, inner_params in nested.items():
            getattr(self, name).set_params(**inner_params)
        return self

    def __getattr__(self, name: str) -> Any:
        """Return ``set_fit_request`` and its like, which are there where the method has arguments to hand on."""
        if name == "get_metadata_routing":
            return _twin(self).get_metadata_routing
        if name == "_repr_html_":
            return partial(settings_as_html, self)
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


class Regressor:
    """Mixin of regressions: as ``sklearn.base.RegressorMixin``, but each has a score of its own."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        return tags


def settings_as_html(estimator: Any) -> str:
    """What scikit-learn shows of an estimator in a notebook."""
    from sklearn.utils import estimator_html_repr

    return str(estimator_html_repr(_twin(estimator) if isinstance(estimator, Estimator) else estimator))


def fit_as_html(estimator: Any) -> str:
    """The table of a fit for a notebook; before the fit what scikit-learn shows."""
    return str(estimator.summary().as_html()) if hasattr(estimator, estimator._fitted) else settings_as_html(estimator)


def fit_as_mimebundle(estimator: Any, **kwargs: Any) -> dict[str, str]:
    """For notebooks, which ask scikit-learn's own first."""
    return {"text/plain": str(estimator), "text/html": estimator._repr_html_()}


class ShownByTable:
    """Mixin of estimators, which ``print`` and notebooks would else show by their settings for ever.

    It has the name of an attribute that is there after a fit.
    """

    _fitted: ClassVar[str] = "ledger_"
    _repr_html_, _repr_mimebundle_ = fit_as_html, fit_as_mimebundle

    def __str__(self) -> str:
        fitted: Any = self
        return str(fitted.summary()) if hasattr(self, self._fitted) else repr(self)


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


def _same(value: Any, default: Any) -> bool:
    """Whether they are one, or equal numbers or texts; arrays and other objects are not compared."""
    return value is default or (
        isinstance(value, str | int | float | np.generic) and type(value) is type(default) and bool(value == default)
    )


def _copied(estimator: Any, params: Mapping[str, Any]) -> dict[str, Parameters]:
    """Copies of the nested settings that are about to change."""
    names = {name.partition("__")[0] for name in params if "__" in name}
    nested = {name: params.get(name, getattr(estimator, name, None)) for name in names}
    return {name: replace(value) for name, value in nested.items() if isinstance(value, Parameters)}  # type: ignore[type-var]
