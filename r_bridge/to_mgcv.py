"""A model of several terms in mgcv's words: the formula of ``gam`` and its data in long form, a row for each point.

Where mgcv sums over a matrix, the row holds the points and their weights times the curve: refund's ``pffr`` writes the
same formulas. The mean curve is ``s(t, bs = "ps", k = 20, m = c(2, 1))``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.terms.curves.functional_additive import AdditiveFunctional, FunctionalAdditive
from fdadp.terms.curves.functional_concurrent import Concurrent
from fdadp.terms.curves.functional_linear import FunctionalLinear, LinearFunctional
from fdadp.terms.numbers.factors_and_random_effects import Factor, RandomEffect
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.numbers.smooth import Smooth
from fdadp.terms.spec import TermSpec, with_refund_k

MEAN = 's(t, bs = "ps", k = 20, m = c(2, 1))'


@dataclass
class InMgcv:
    """Terms on rows of data, in mgcv's words.

    Attributes
    ----------
    data : mapping
        Columns: curves (n, S), numbers (n,), labels (n,).
    grids : mapping of ndarray
        Of the curves.
    t : ndarray of shape (T,) or None
        Grid of the response; None where it is a number.
    trained : mapping
        Training rows, whose levels factors have.
    columns : dict
        What the terms added so far need, in long form.
    parts : list of str
        Their parts of the formula.
    """

    data: Mapping[str, Any]
    grids: Mapping[str, FloatArray]
    t: FloatArray | None
    trained: Mapping[str, Any]
    columns: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        specs: Sequence[TermSpec],
        data: Mapping[str, Any],
        grids: Mapping[str, Any],
        t: FloatArray | None,
        trained: Mapping[str, Any] | None = None,
    ) -> InMgcv:
        """All terms; `trained` are the training rows, where `data` are new ones.

        Raises
        ------
        InputError
            A term that has no counterpart in mgcv here.
        """
        found = cls(data, {name: np.ravel(grid) for name, grid in grids.items()}, t, trained or data)
        if t is not None:
            found.columns["t"] = np.tile(t, found.n)
            found.parts.append(MEAN)
        for number, spec in enumerate(specs):
            found.add(with_refund_k(spec), str(number))
        return found

    @property
    def n(self) -> int:
        """Number of rows of the data."""
        return len(next(iter(self.data.values())))

    @property
    def formula(self) -> str:
        """Of the response ``y``."""
        return f"y ~ {' + '.join(self.parts) or '1'}"

    def long(self, values: Any) -> Any:
        """One value, or row of a matrix, for each row of the long form."""
        return values if self.t is None else np.repeat(values, self.t.size, axis=0)

    @singledispatchmethod
    def add(self, spec: TermSpec, number: str) -> None:
        """Add a term; `number` tells its columns from others'."""
        raise InputError(f"{spec.name} has no counterpart in mgcv here")

    def _along(self, spec: Any) -> str:
        return f'bs = "ps", k = {spec.k}, m = c({spec.m[0]}, {spec.m[1]})'

    def _sums(self, spec: Any, number: str) -> tuple[FloatArray, FloatArray]:
        """Curves and weights; columns ``S`` and, for curves, ``U`` of the points s and t."""
        curves, s = np.asarray(self.data[spec.column]), self.grids[spec.column]
        rows = len(curves) * (1 if self.t is None else self.t.size)
        self.columns[f"S{number}"] = np.tile(s, (rows, 1))
        if self.t is not None:
            self.columns[f"U{number}"] = np.repeat(self.columns["t"][:, None], s.size, axis=1)
        return curves, quadrature_weights(s, spec.rule)

    @add.register
    def _(self, spec: FunctionalLinear, number: str) -> None:
        if spec.limits is not None:
            raise InputError(f"{spec.name} with limits has no counterpart in mgcv here")
        curves, weights = self._sums(spec, number)
        self.columns[f"L{number}"] = self.long(curves * weights)
        (a, b), (c, d) = spec.m
        m = f"list(c({a}, {b}), c({c}, {d}))"
        self.parts.append(f'te(S{number}, U{number}, by = L{number}, bs = "ps", k = c{_sizes(spec)}, m = {m})')

    @add.register
    def _(self, spec: FunctionalAdditive, number: str) -> None:
        if "auto" in _sizes(spec) or spec.period is not None or spec.x_transform is not None:
            raise InputError(f"{spec.name} with k='auto', period or x_transform has no counterpart in mgcv here")
        curves, weights = self._sums(spec, number)
        self.columns[f"X{number}"] = self.long(curves)
        self.columns[f"L{number}"] = self.long(np.broadcast_to(weights, curves.shape))
        order = f"U{number}, S{number}, X{number}"
        m = f"list({', '.join([f'c{tuple(spec.m)}'] * 3)})"
        self.parts.append(f'te({order}, by = L{number}, bs = "ps", k = c{_sizes(spec)}, m = {m})')

    @add.register
    def _(self, spec: AdditiveFunctional, number: str) -> None:
        if spec.by is not None or spec.period is not None or spec.x_transform is not None:
            raise InputError(f"{spec.name} with by, period or x_transform has no counterpart in mgcv here")
        curves, weights = self._sums(spec, number)
        self.columns[f"X{number}"], self.columns[f"L{number}"] = curves, np.broadcast_to(weights, curves.shape)
        m = f"list({', '.join([f'c{tuple(spec.m)}'] * 2)})"
        self.parts.append(f'te(S{number}, X{number}, by = L{number}, bs = "ps", k = c{_sizes(spec)}, m = {m})')

    @add.register
    def _(self, spec: LinearFunctional, number: str) -> None:
        if spec.by is not None:
            raise InputError(f"{spec.name} has no counterpart in mgcv here")
        curves, weights = self._sums(spec, number)
        self.columns[f"L{number}"] = curves * weights
        self.parts.append(f"s(S{number}, by = L{number}, {self._along(spec)})")

    @add.register
    def _(self, spec: Concurrent, number: str) -> None:
        self.columns[f"X{number}"] = np.ravel(self.data[spec.column])
        self.parts.append(f"s(t, by = X{number}, {self._along(spec)})")

    @add.register
    def _(self, spec: Linear, number: str) -> None:
        self.columns[f"x{number}"] = self.long(np.asarray(self.data[spec.column], dtype=float))
        whole = self.t is None or spec.constant
        self.parts.append(f"x{number}" if whole else f"s(t, by = x{number}, {self._along(spec)})")

    @add.register
    def _(self, spec: Factor, number: str) -> None:
        labels = np.asarray(self.data[spec.column])
        self.columns[f"g{number}"] = self.long(labels)
        if self.t is None or spec.constant:
            self.parts.append(f"g{number}")
        elif spec.coding == "levels":
            self.parts.append(f"s(t, by = g{number}, {self._along(spec)})")
        else:
            for i, level in enumerate(sorted(set(np.asarray(self.trained[spec.column]).tolist()))[1:]):
                self.columns[f"g{number}.{i}"] = self.long((labels == level).astype(float))
                self.parts.append(f"s(t, by = g{number}.{i}, {self._along(spec)})")

    @add.register
    def _(self, spec: Smooth, number: str) -> None:
        if spec.by is not None or spec.k is not None or spec.m is not None or spec.bs not in ("tp", "cr"):
            raise InputError(f"{spec.name} with options has no counterpart in mgcv here")
        self.columns[f"z{number}"] = self.long(np.asarray(self.data[spec.column], dtype=float))
        if self.t is None or spec.constant:
            self.parts.append(f's(z{number}, bs = "{spec.bs}")')
        else:
            more = f'bs = c("{spec.bs}", "ps"), mc = c(TRUE, FALSE), k = c(8, 5), m = c(2, 1)'
            self.parts.append(f"ti(z{number}, t, {more})")

    @add.register
    def _(self, spec: RandomEffect, number: str) -> None:
        if spec.k is not None:
            raise InputError(f"{spec.name} with k has no counterpart in mgcv here")
        self.columns[f"g{number}"] = self.long(np.asarray(self.data[spec.column]))
        self.parts.append(f's(g{number}, bs = "re")')


def _sizes(spec: Any) -> tuple[Any, ...]:
    return tuple(spec.k)
