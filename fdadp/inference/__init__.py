"""Questions to a fitted model: contrasts, differences, slopes along curves, peaks, draws. Ordinary and private fits."""

from __future__ import annotations

from fdadp.inference.contrasts import contrasts, derivative, difference, hypothesis, slopes
from fdadp.inference.draws import Draws, draws, peak
from fdadp.inference.estimates import EffectEstimates, design_rows
from fdadp.inference.marginal_effects import for_marginaleffects
from fdadp.inference.variance_tests import variance_test

__all__ = [
    "Draws",
    "EffectEstimates",
    "contrasts",
    "derivative",
    "design_rows",
    "difference",
    "draws",
    "for_marginaleffects",
    "hypothesis",
    "peak",
    "slopes",
    "variance_test",
]
