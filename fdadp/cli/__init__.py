"""The command line, ``python -m fdadp``."""

from fdadp.cli.main import main

__all__ = ["main"]
