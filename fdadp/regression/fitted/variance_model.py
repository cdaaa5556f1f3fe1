"""Variance of new responses about their means by terms of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.regression.reading.table_columns import Covariates, columns_of
from fdadp.solve.fit.additive_fit import AdditiveFit

CONVERGED = 1e-6
"""Largest change of a log variance in the last round."""


@dataclass(frozen=True)
class VarianceModel:
    """A fitted model of the log variance of a number.

    Attributes
    ----------
    formula : str
    fit : AdditiveFit
        Of squared residuals, with the link log.
    covariates : Covariates
        How new rows are read.
    rounds : int
        Of fits of the mean and of the variance in turn.
    moved : float
        Largest change of a log variance in the last one.
    """

    formula: str
    fit: AdditiveFit
    covariates: Covariates
    rounds: int
    moved: float

    def of(self, data: Any, grids: Mapping[str, ArrayLike] | None) -> FloatArray:
        """Variances of new rows, shape (n,), up to the factor that the fit of the mean estimates."""
        form = self.fit.form
        records = self.covariates.read(data, columns_of(form.designs), grids)
        return np.exp(form.predictor(records, self.fit.coefficients, form.t)[:, 0])

    @property
    def note(self) -> str:
        """What summaries say."""
        steady = "" if self.moved <= CONVERGED else f", and still moved by {self.moved:.1g} of its logarithm"
        return (
            f"The variance has the terms {self.formula} ({self.fit.edf_total:.2f} edf), fitted in turn with the mean: "
            f"{self.rounds} rounds{steady}. Standard errors take it as known."
        )
