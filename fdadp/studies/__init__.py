"""Experiments, their tasks and reports, and the demonstration; only the command line imports them."""
