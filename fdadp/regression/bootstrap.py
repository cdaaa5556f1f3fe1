"""What a bootstrap over persons says of the coefficient functions of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.checks import fraction, one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.regression.effects import effect_of, effect_rows
from fdadp.solve.additive_fit import AdditiveFit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bootstrap:
    """Coefficients of samples drawn with replacement.

    Attributes
    ----------
    fit : AdditiveFit
        To all rows.
    samples : ndarray of shape (B, p)
        Coefficients of each sample.
    """

    fit: AdditiveFit
    samples: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Of all coefficients, shape (p, p); what penalties take away is not in it."""
        return np.asarray(np.cov(self.samples, rowvar=False))

    def coef(
        self,
        name: str,
        level: float = 0.95,
        *,
        interval: str = "percentile",
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Coefficient function of a term with pointwise bootstrap intervals.

        Parameters
        ----------
        name : str
            Of the term.
        level : float
            Of the intervals, in (0, 1).
        interval : {"percentile", "normal"}
            Quantiles of the samples; or the estimate and so many standard deviations of the samples.
        t, at, **points
            Grid, as in the model's ``coef``.

        Returns
        -------
        DataFrame
            As of the model's ``coef``, with ``se``, ``lower`` and ``upper``.
        """
        fraction(level, "level")
        one_of(interval, "interval", ("percentile", "normal"))
        rows = effect_rows(self.fit.form, name, {"t": t, **(at or {}), **points})
        frame = effect_of(self.fit, rows, self.covariance, level).to_frame()
        if interval == "percentile":
            values = self.samples[:, rows.place] @ rows.rows.T
            ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
            frame["lower"], frame["upper"] = np.where(rows.absent, np.nan, ends)
        return frame
