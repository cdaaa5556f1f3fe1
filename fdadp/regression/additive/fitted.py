"""A fitted additive model: its surface, how curves came, and what is known of the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.functional.tables.alignment import same_order
from fdadp.functional.tables.curves import as_curves, check_finite, refuse_other_domain
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.regression.fitted.errors import CoefficientErrors
from fdadp.regression.fitted.fitted import FittedResponse
from fdadp.regression.private.near_the_mean import near_the_mean
from fdadp.regression.reading.completion import MissingValues
from fdadp.regression.settings import ModelSettings
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.form.chunks import without_curves
from fdadp.solve.form.family import family_of

if TYPE_CHECKING:
    from fdadp.private.release.moments import NoisyMoments

SETTINGS = ModelSettings(
    of_curves=True,
    default_response="Y",
    formula=(),
    response=None,
    smoothing="reml",
    family=family_of("gaussian"),
    intercept=True,
    missing="auto",
    progress=False,
    person_rows=None,
    max_rows=None,
    variance="constant",
    response_basis="eigen",
)
"""What the errors of one surface on eigenfunctions follow."""


@dataclass(frozen=True, kw_only=True)
class FittedSurface:
    """A fitted additive model.

    Attributes
    ----------
    surface : SurfaceFit
    missing : MissingValues
        How gaps of new curves are filled.
    x, y : Curves
        How X and Y came, without any curve.
    fitted_with : mapping
        Settings that the fit was made with, whatever is set afterwards.
    joined : str or None
        How many rows were joined, and by what.
    moments : NoisyMoments or None
        The statistic of ``mechanism="moments"``.
    warned : tuple of str
        What users must be warned of, once the fit is kept.
    """

    surface: SurfaceFit
    missing: MissingValues
    x: Curves
    y: Curves
    fitted_with: Mapping[str, Any]
    joined: str | None = None
    moments: NoisyMoments | None = None
    warned: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        surface: SurfaceFit,
        missing: MissingValues,
        x: Curves,
        y: Curves,
        *,
        fitted_with: Mapping[str, Any],
        **more: Any,
    ) -> FittedSurface:
        """That of curves as they came; nothing of their values is kept."""
        names = None if x.gridded or x.columns is None else pd.Index([str(name) for name in x.columns])
        own = replace(without_curves(x), columns=names)
        return cls(surface=surface, missing=missing, x=own, y=without_curves(y), fitted_with=fitted_with, **more)

    @property
    def errors(self) -> CoefficientErrors:
        """Errors of the coefficients, and the law of new responses."""
        found = self.surface
        law = {"released" if found.limited else "pointwise": found.law}
        return CoefficientErrors(settings=SETTINGS, fit=found.fit, beyond=found.beyond, variances=dict(law))

    @property
    def response(self) -> FittedResponse:
        """The response, so that predictions come as it came."""
        return FittedResponse(name="Y", curves=self.y)

    def records(self, X: CurveData, s: ArrayLike | None) -> Records:
        """New curves, complete and checked."""
        own = self.x
        x = as_curves(X, s, name="X", default=own.grid)
        refuse_other_domain(x, own.grid, "X")
        if own.columns is not None and not x.gridded and x.columns is not None:
            same_order(list(own.columns), list(x.columns), "X", "the training curves")
        x = self.missing.complete_x(x)
        check_finite(x, "X")
        if self.surface.limited:  # features of private fits say nothing of it
            self.surface.term.warn_outside(x)
        return Records(len(x), {"X": x})

    def limited(self, x: Records, eta: FloatArray, points: FloatArray) -> FloatArray:
        """Predictions of a private fit, those far from the mean curve pulled back."""
        return near_the_mean(self.errors, x, eta, points) if self.surface.limited else eta

    def predicted(self, x: Records, points: FloatArray) -> FloatArray:
        """Mean curves at points, shape (n, T')."""
        fit = self.surface.fit
        return self.limited(x, fit.form.predictor(x, fit.coefficients, points), points)

    def shown(self, values: FloatArray, points: FloatArray, x: Records) -> Any:
        """Curves at points as Y came, with the labels of X."""
        return self.y.wrap(values, points, rows=x.curves("X"))
