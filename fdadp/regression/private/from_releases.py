"""Private predictions of the additive model far from the mean curve are pulled back towards it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.records import Records

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is pulled back."""
NOISE_FAR_OUT = 0.25
"""Of a prediction's variance there: the share that pulls it back. Standard errors count on rougher effects besides."""


class NearTheMean:
    """Part of every model with private fits: predictions far from the mean curve are kept near it."""

    def _limited(self: Any, records: Records, eta: FloatArray, t: FloatArray) -> FloatArray:
        """Predictions at points, of a private fit those far from the mean curve, where noise is largest, pulled back.

        Beyond `FARTHEST` standard deviations of the response, of which an excess e keeps ``e³ / (e² + v)``, v a
        quarter of the variance of the prediction. L2 norms over the grid of the fit, whatever points are asked for.
        """
        law = self._spread.get("released")
        if law is None:
            return eta
        form, coefficients, grid = self._fit.form, self._fit.coefficients, self._fit.form.t
        weights = quadrature_weights(grid) / (grid[-1] - grid[0]) if grid.size > 1 else np.ones(1)
        own = eta if np.array_equal(t, grid) else form.predictor(records, coefficients, grid)
        norms = np.sqrt((own - form.mean(coefficients)) ** 2 @ weights)
        excess = norms - FARTHEST * np.sqrt(law.total)
        far = excess > 0
        if far.any():
            variance = NOISE_FAR_OUT * self._of_mean(records[far], None, grid) ** 2 @ weights
            kept = norms[far] - excess[far] + excess[far] ** 3 / (excess[far] ** 2 + variance)
            mean = form.mean(coefficients, t)
            eta = np.array(eta)
            eta[far] = mean + (eta[far] - mean) * (kept / norms[far])[:, None]
        return eta
