"""Terms on given functions along the response: for each function coefficients of its own, smoothed on their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.functional.splines.diagonal_margins import SmoothMargin
from fdadp.terms.additive_surface import AUTO
from fdadp.terms.curves.functional_additive import FunctionalAdditive
from fdadp.terms.curves.functional_concurrent import Concurrent
from fdadp.terms.curves.functional_linear import FunctionalLinear
from fdadp.terms.curves.principal_components import ComponentScores
from fdadp.terms.numbers.scalar_linear import MeanCurve, ScalarsTogether
from fdadp.terms.numbers.smooth import Smooth
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import By, multiplied

NOT_THERE = {
    Concurrent: "its features differ between points of the response",
    ScalarsTogether: "its curves are splines along the response under one smoothing parameter; use linear()",
    MeanCurve: "the mean curve is that of the responses",
}
"""Terms that have no form for a response that is a number, and why."""


def in_scalar_form(spec: TermSpec, seen: TrainingSummary, t: FloatArray) -> TermDesign:
    """A term of a curve as the term of a number that it is for each score of the curve.

    ``ff(X)`` becomes ``∫ X(s) β(s) ds`` and ``sff(X)`` becomes ``∫ F{X(s), s} ds``, on their own bases over s and x;
    ``ffpc(X)`` becomes ``Σ ξ_k β_k``. All others are what they are in a regression of numbers; ``re(g)`` is then a
    curve for each level. How a term is to vary along the response is not used.

    Parameters
    ----------
    spec : TermSpec
    seen : TrainingSummary
    t : ndarray of shape (T,)
        Points of the response.

    Raises
    ------
    InputError
        Terms that do not factor into features and functions along the response, or whose effect is the same at all t.
    """
    why = next((why for kind, why in NOT_THERE.items() if isinstance(spec, kind)), None)
    if getattr(spec, "limits", None) is not None:
        why = "its limits depend on the point of the response"
    elif getattr(spec, "constant", False):
        why = "it is the same at all points of the response, which ties all eigenfunctions together; leave out c()"
    if why is not None:
        raise InputError(f"{spec.name} must go with response_basis='splines', not 'eigen': {why}")
    if isinstance(spec, By):
        return spec.made(seen, lambda term: in_scalar_form(term, seen, t))
    if isinstance(spec, FunctionalLinear):
        return multiplied(_alone(replace(spec, by=None).fixed(seen, t)), seen, spec.by, name=spec.name)
    if isinstance(spec, FunctionalAdditive) and spec.k is None:  # its bases grow with the number of curves
        spec = replace(spec, k=(spec.refund_k[0], AUTO, AUTO))
    if isinstance(spec, FunctionalAdditive | ComponentScores):
        return _alone(spec.fixed(seen, t))
    if isinstance(spec, Smooth) and isinstance(spec.k, tuple | list):
        raise InputError(
            f"k of {spec.name} must be one number where the response is on eigenfunctions (response_basis='eigen'), "
            f"got {spec.k!r}"
        )
    design = spec.fixed(seen, None)
    if not design.separable:
        raise InputError(f"{spec.name} must go with response_basis='splines', not 'eigen': {NOT_THERE[Concurrent]}")
    return design


def _alone(design: TermDesign) -> TermDesign:
    """Without functions along the response."""
    return replace(design, along=SmoothMargin.constant(), along_norm=1.0, along_first=False)


@dataclass(frozen=True, kw_only=True)
class OnFunctions(TermDesign):
    """A term in the form that it has for a number, with coefficients for each of K functions along the response.

    Each function has smoothing parameters of its own.

    Attributes
    ----------
    of : TermDesign
        The term of a number.
    weights : ndarray of shape (K,)
        Of each function in the least squares of the long form, by which its penalties are multiplied: smoothing
        parameters then are those of the score on it.
    """

    of: TermDesign
    weights: FloatArray

    @classmethod
    def made(
        cls, of: TermDesign, along: SmoothMargin, weights: FloatArray | None = None, name: str = ""
    ) -> OnFunctions:
        """The term on the functions of a margin without a penalty."""
        weights = np.ones(along.size) if weights is None else weights
        own = of.penalties
        return cls(name=name or of.name, columns=of.columns, along=along, own_penalties=own, of=of, weights=weights)

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Those of the term of a number that have coefficients, shape (n, q)."""
        found = self.of.features(records, t)
        return found if self.of.kept.all() else found[:, self.of.kept]

    @cached_property
    def penalties(self) -> FloatArray:
        """Of the first function all of the term's, then of the second, ...: shape (K M, q K)."""
        each = np.einsum("mq,kl->kmql", self.own_penalties, np.diag(self.weights))
        return np.ascontiguousarray(each.reshape(-1, self.size))

    @property
    def penalty_names(self) -> tuple[str, ...]:
        """Those of the term of a number, with the number of the function."""
        return tuple(f"{name}[{k + 1}]" for k in range(self.along.size) for name in self.of.penalty_names)

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Those of the term of a number."""
        return self.of.axes

    @property
    def periods(self) -> dict[str, float]:
        """Those of the term of a number."""
        return self.of.periods

    def effect(self, *points: Any) -> FloatArray:
        """Features of its coefficient function that have coefficients, shape (m, q)."""
        return self.of.effect(*points)[:, self.of.kept]

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model."""
        return self.of.acts(axes)


def by_function(designs: Sequence[TermDesign], values: FloatArray) -> FloatArray:
    """Smoothing parameters of terms on K functions, as they follow each other in penalties, as an array (K, M)."""
    parts, start = [], 0
    for design in designs:
        count = len(design.penalties)
        if count:
            parts.append(values[start : start + count].reshape(design.along.size, -1))
        start += count
    k = max((design.along.size for design in designs if len(design.columns)), default=0)
    return np.hstack(parts) if parts else np.zeros((k, 0))
