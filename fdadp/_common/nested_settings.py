"""Frozen settings with the parameters of a scikit-learn estimator: ``get_params``, ``set_params``, ``clone``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar

import numpy as np

from fdadp.errors import InputError

Self = TypeVar("Self", bound="Parameters")
Estimator = TypeVar("Estimator", bound="NestedParameters")


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

    def set_params(self: Estimator, **params: Any) -> Estimator:
        """Set parameters, nested ones such as ``privacy__epsilon`` among them; returns the estimator."""
        super().set_params(**{**params, **self._copied(params)})  # type: ignore[misc]
        return self

    def _copied(self, params: Mapping[str, Any]) -> dict[str, Parameters]:
        names = {name.partition("__")[0] for name in params if "__" in name}
        nested = {name: params.get(name, getattr(self, name, None)) for name in names}
        return {name: replace(value) for name, value in nested.items() if isinstance(value, Parameters)}  # type: ignore[type-var]


def _same(value: Any, default: Any) -> bool:
    """Whether they are one, or equal numbers or texts; arrays and other objects are not compared."""
    return value is default or (
        isinstance(value, str | int | float | np.generic) and type(value) is type(default) and bool(value == default)
    )
