"""Pictures of fits, predictions and curves. Needs matplotlib: ``pip install matplotlib``.

Every function returns the matplotlib ``Figure``, and raises ``MissingPlotsError`` where matplotlib is not installed.
They read the model or the curves they are given: a picture of a fit without privacy, or of a person's curve, is not
private.
"""

from __future__ import annotations

from fdadp.plot._fitted_surface import surface
from fdadp.plot._matplotlib_figures import PALETTE
from fdadp.plot._response_curves import eigenfunctions, mean, predictions, residuals
from fdadp.plot._term_effects import terms

__all__ = ["PALETTE", "eigenfunctions", "mean", "predictions", "residuals", "surface", "terms"]
