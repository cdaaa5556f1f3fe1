"""Errors and warnings of fdadp.

Every error names the argument, what it must be and the value it got.  The classes also derive from
the built-in exception a caller would expect (``ValueError``, ``TypeError``, ...).
"""

from __future__ import annotations

__all__ = [
    "ClippingWarning",
    "CompletedCurvesWarning",
    "ExtrapolationWarning",
    "FailedReadError",
    "FdadpError",
    "FdadpWarning",
    "FileFormatError",
    "IdentificationWarning",
    "InputError",
    "MissingDataError",
    "NoiseVarianceWarning",
    "NotAccountedWarning",
    "NotPrivateWarning",
    "PersonRowsWarning",
    "PrivacyError",
    "PublicInputWarning",
    "PublicParameterMissing",
]


class FdadpError(Exception):
    """Base class of all errors raised on purpose by fdadp."""


class InputError(FdadpError, ValueError):
    """An argument has a wrong value, shape or type."""


class MissingDataError(FdadpError, FileNotFoundError):
    """A data set is not bundled and was found in none of the places searched."""


class FileFormatError(FdadpError, ValueError):
    """A file is not what it should be: text in numbers, ragged rows, a model of another version."""


class PrivacyError(FdadpError, ValueError):
    """A privacy setting is missing, inconsistent or not available: told by public and released values alone."""


class FailedReadError(PrivacyError):
    """Reading private rows failed. It says nothing about them, and the budget stays spent."""


class PublicParameterMissing(PrivacyError):
    """A private learner was not told something that must be public: classes, bounds, a norm, bins."""


class FdadpWarning(UserWarning):
    """Base class of all warnings of fdadp."""


class ExtrapolationWarning(FdadpWarning):
    """Predictors lie outside the range of the training data; the surface is continued linearly."""


class IdentificationWarning(FdadpWarning):
    """The training curves do not determine a part of the model; says which, and what was put in its place."""


class NotAccountedWarning(FdadpWarning):
    """Private fits to the same data that no budget adds up, or a score without noise of a private fit."""


class NotPrivateWarning(FdadpWarning):
    """Something called private in the literature is released without an end-to-end guarantee."""


class PersonRowsWarning(FdadpWarning):
    """A fit with groups whose question depends on how the rows of a person count, which nobody chose."""


class ClippingWarning(FdadpWarning):
    """Released values say that much of what is estimated lies beyond a private clip, as with heavy tails."""


class CompletedCurvesWarning(FdadpWarning):
    """Standard errors take sparse curves that were completed as known, and are too small for that."""


class NoiseVarianceWarning(FdadpWarning):
    """The noise variance of sparse curves was not distinguishable from 0. A small floor was taken instead."""


class PublicInputWarning(FdadpWarning):
    """Released values contradict what was declared in public: a range, or the number of persons."""
