"""Spline bases and their penalties."""
