"""Errors and warnings of the bridge; the texts of R come through unchanged."""

from __future__ import annotations

from fdadp.errors import FdadpError, FdadpWarning


class RBridgeUnavailable(FdadpError, ImportError):
    """R, rpy2 or an R package is missing or does not fit; the text ends with the command that mends it."""


class RError(FdadpError, RuntimeError):
    """R stopped with an error; the text is R's."""


class RWarning(FdadpWarning):
    """R gave a warning; the text is R's."""
