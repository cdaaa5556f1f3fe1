"""Small work on one thread: handing it to several costs more than it saves, above all on a busy machine."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["numba_threads_for", "one_blas_thread"]

SMALL = 50_000
"""Curve values that one thread turns into feature rows in about the time it takes to wake the others."""


@functools.cache
def _controller() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds, so it is done once.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


@contextmanager
def numba_threads_for(size: int) -> Iterator[None]:
    """Context in which numba uses one thread if there are few values to work on."""
    from numba import get_num_threads, set_num_threads

    before = get_num_threads()
    set_num_threads(1 if size < SMALL else before)
    try:
        yield
    finally:
        set_num_threads(before)
