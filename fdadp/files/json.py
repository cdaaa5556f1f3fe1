"""Texts in JSON from elsewhere: whatever is wrong with one is an InputError that says what it should be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fdadp.errors import FdadpError, InputError


@contextmanager
def reading(what: str, text: object) -> Iterator[None]:
    """Turn errors of decoding `text`, and of making `what` of it, into one.

    Raises
    ------
    InputError
        No JSON, nested beyond what can be read, or with fields other than those of `what`.

    Examples
    --------
    >>> import json
    >>> with reading("a ledger", "{"):
    ...     json.loads("{")
    Traceback (most recent call last):
    fdadp.errors.InputError: text must be a ledger in JSON, got '{'
    """
    try:
        yield
    except FdadpError:  # a field has a wrong value, and the text says which
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise InputError(f"text must be {what} in JSON, got {str(text)[:60]!r}") from exc
