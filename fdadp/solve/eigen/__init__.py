"""Fits to the scores of the responses on their eigenfunctions."""
