"""Rounds on residuals under public ranges that may be far too wide: places, tails, updates. Nothing about models."""
