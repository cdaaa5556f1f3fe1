"""Fits of many terms to observed responses."""
