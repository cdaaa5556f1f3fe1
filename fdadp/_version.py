"""The version of fdadp: stated here once, read by setup.cfg and saved in every file that fdadp writes."""

__version__ = "0.2.0"
