"""Functional regression estimators, in the style of scikit-learn."""

from __future__ import annotations

from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction

__all__ = ["AdditiveFunctionOnFunction"]
