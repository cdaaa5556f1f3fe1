"""Threads: blocks of rows go to all cores, small matrices stay on one.

Handing p×p problems to several BLAS threads costs more than it saves, most of all on a busy machine.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def said_threads(said: str) -> int:
    """At least one thread, of a text from the environment; all cores where it is no number."""
    try:
        return max(int(said), 1)
    except ValueError:
        return _CORES


N_THREADS = said_threads(os.environ.get("NUMBA_NUM_THREADS", ""))
"""Threads: as many as numba's, ``NUMBA_NUM_THREADS``, by default all cores of this process."""
ROWS_PER_BLOCK = 1024
"""A block of rows with its features stays in a core's cache."""
ALONE = 4
"""Items of a stream that no other thread is woken for."""

S = TypeVar("S")
T = TypeVar("T")

_within = threading.local()
"""Whether this thread is one of many that work at once, as those of a scheduler."""


@functools.cache
def _controller() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds, so it is done once.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


@contextmanager
def one_thread() -> Iterator[None]:
    """Context in which blocks of rows are gone through in this thread, and BLAS has one: others have work of theirs."""
    before, _within.alone = getattr(_within, "alone", False), True
    try:
        with one_blas_thread():
            yield
    finally:
        _within.alone = before


def _n_threads() -> int:
    return 1 if getattr(_within, "alone", False) else N_THREADS


def map_blocks(function: Callable[[slice], T], n_rows: int) -> Iterator[T]:
    """Apply a function that releases Python's lock to blocks of rows, on all threads; results in order.

    The blocks do not depend on the number of threads, :data:`N_THREADS`.
    """
    blocks = [slice(start, start + ROWS_PER_BLOCK) for start in range(0, n_rows, ROWS_PER_BLOCK)]
    n_threads = min(_n_threads(), len(blocks))
    if n_threads < 2:
        yield from map(function, blocks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(function, blocks)


def map_stream(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """Apply a function to items as they come, on all threads; results in order, and only a few items at a time held.

    The first :data:`ALONE` items are this thread's: to wake others takes longer than most items do.
    """
    stream, n_threads = iter(items), _n_threads()
    yield from map(function, islice(stream, ALONE) if n_threads > 1 else stream)
    with ThreadPoolExecutor(n_threads) as pool:  # starts a thread when it is given work
        under_way: deque[Future[T]] = deque()
        for item in stream:
            under_way.append(pool.submit(function, item))
            if len(under_way) > 2 * n_threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
