"""Penalised least squares, and the search for smoothing parameters."""
