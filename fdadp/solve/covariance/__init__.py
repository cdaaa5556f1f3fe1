"""Covariances and precisions of the errors along a response curve."""
