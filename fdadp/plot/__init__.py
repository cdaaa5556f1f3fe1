"""Pictures of fits, predictions and curves. Needs matplotlib: ``pip install matplotlib``.

Every function returns the matplotlib ``Figure``, and raises ``MissingPlotsError`` where matplotlib is not installed.
They read the model or the curves they are given: a picture of a fit without privacy, or of a person's curve, is not
private.
"""

from __future__ import annotations

from fdadp.plot._canvas import PALETTE
from fdadp.plot._curves import eigenfunctions, mean, predictions, residuals
from fdadp.plot._surface import surface
from fdadp.plot._terms import terms

__all__ = ["PALETTE", "eigenfunctions", "mean", "predictions", "residuals", "surface", "terms"]
