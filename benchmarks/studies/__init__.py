"""Experiments with the package: each file with a command line runs as ``python benchmarks/studies/FILE.py --help``."""
