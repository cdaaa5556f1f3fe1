"""Work on Dask's partitions by whichever of its schedulers is active: mapped there, merged in a tree, computed.

Dask's own convention says where: an active ``distributed.Client``, what ``dask.config.set(scheduler=...)`` names, or
else threads. Dask is imported by the first call.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fdadp._common.threads import one_blas_thread, one_thread
from fdadp.errors import FdadpError, InputError

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from tqdm import tqdm


A = TypeVar("A")

AT_ONCE = 8
"""Partial results that one task merges."""


def active_client() -> Any:
    """The client of dask.distributed to whose cluster work goes; None where it is done in this process."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    client = getattr(get_scheduler(), "__self__", None)
    return client if isinstance(client, Client) else None


def is_dask(data: Any) -> bool:
    """Whether `data` is one of Dask's collections (without importing dask)."""
    if "dask" not in sys.modules:  # nobody can have made one
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def mapped(function: Callable[[Any], Any], pieces: Sequence[Any]) -> list[Delayed]:
    """Apply a function to every piece where that is; each call has one thread.

    Parameters
    ----------
    function : callable
        Sent to each worker once: by cloudpickle, so that it may be local, with all that it holds.
    pieces : sequence of Delayed
        Or of collections of them, such as mappings of names to Delayed; the function gets what they are of.
    """
    from dask import delayed

    sent = delayed(function, pure=False, traverse=False)
    apply = delayed(_alone, pure=False)
    return [apply(sent, piece) for piece in pieces]


def merged(parts: Sequence[Delayed], merge: Callable[[A, A], A]) -> Delayed:
    """Merge partial results in a tree, in an order that does not depend on which of them is there first.

    Parameters
    ----------
    parts : sequence of Delayed
        At least one.
    merge : callable
        Merges the second of two results into the first, which it may change, and returns that.
    """
    from dask import delayed

    together = delayed(_together, pure=False)
    level = list(parts)
    while len(level) > 1:
        level = [together(merge, level[start : start + AT_ONCE]) for start in range(0, len(level), AT_ONCE)]
    return level[0]


def computed(task: Delayed, what: str, progress: bool | str = "auto", parts: Sequence[Delayed] = ()) -> Any:
    """Compute a task, and leave nothing waiting on the workers where it fails or is interrupted.

    Parameters
    ----------
    task : Delayed
    what : str
        Label of the progress bar, and name of the work in messages.
    progress : bool or "auto"
        Show a bar: always, never, or (``"auto"``) after two seconds.
    parts : sequence of Delayed
        The tasks among its own that progress counts and that errors name by their number, the partitions.

    Returns
    -------
    object
        What the task is of; nothing else comes from the workers.

    Raises
    ------
    FdadpError
        Raised by a task: the same type and text.
    InputError
        Any other error of a task, or of what it works on; names the partition.

    Notes
    -----
    On an error or an interruption tasks that wait are cancelled; those that run end, and what they give is dropped.
    """
    client = active_client()
    counted = list(parts) or [task]
    bar = progress_bar(what, progress, total=len(counted))
    with bar:
        return _on_threads(task, counted, what, bar) if client is None else _on(client, task, counted, what, bar)


def _alone(function: Callable[[Any], A], piece: Any) -> A:
    with one_thread():
        return function(piece)


def _together(merge: Callable[[A, A], A], parts: list[A]) -> A:
    # A task that is run again, on another worker, must find its arguments as they were.
    return functools.reduce(merge, parts[1:], copy.deepcopy(parts[0]))


def _on(client: Any, task: Delayed, counted: list[Delayed], what: str, bar: Any) -> Any:
    """On the workers of a client."""
    from distributed import as_completed

    *futures, whole = client.compute([*counted, task])
    number = {future.key: i for i, future in enumerate(futures)}
    waiting = {future.key: future for future in futures}
    del futures
    try:
        for future in as_completed(list(waiting.values())):
            if future.status == "error":
                _raise(future.exception(), what, [number[future.key]], len(number))
            bar.update()
            del waiting[future.key]  # its result is not kept for us
        try:
            return whole.result()
        except Exception as exc:
            _raise(exc, what, [], len(number))
    finally:  # what nobody wants any more is not begun; cancelling it would hit tasks beside it
        for future in (whole, *waiting.values()):
            future.release()


def _on_threads(task: Delayed, counted: list[Delayed], what: str, bar: Any) -> Any:
    """In this process, or by what else Dask is told to use."""
    import dask
    from dask.callbacks import Callback

    number = {part.key: i for i, part in enumerate(counted)}
    under_way: list[int] = []

    def one_more(key: Any, *_: Any) -> None:
        bar.update(key in number)

    def finish(_: Any, state: Any, failed: bool) -> None:
        reached = list(state["running"]) if failed else []
        for key in reached:  # and what waits for it
            reached += [later for later in state["dependents"].get(key, ()) if later not in reached]
        under_way.extend(sorted(number[key] for key in reached if key in number))

    try:
        with one_blas_thread(), Callback(posttask=one_more, finish=finish):  # for all threads, and as before after
            (found,) = dask.compute(task)
    except Exception as exc:
        _raise(exc, what, under_way, len(number))
    return found


def _raise(exc: Exception, what: str, which: Sequence[int], n: int) -> None:
    """Our own errors as they are; others with the partitions that were under way."""
    if isinstance(exc, FdadpError):
        raise exc
    where = f"partition {' or '.join(map(str, which))} of {n}" if which and n > 1 else "a partition"
    raise InputError(f"{where} must give its rows for {what}, got {type(exc).__name__}: {exc}") from exc


# The progress bar of long work.


DELAY = 2.0
"""Seconds before a bar is shown that is shown only when work takes longer."""


def progress_bar(
    what: str, progress: bool | str, source: Iterable[Any] | None = None, total: int | None = None
) -> tqdm[Any]:
    """Bar of chunks labelled `what`: at once, never, or (``"auto"``) after two seconds.

    Parameters
    ----------
    what : str
    progress : bool or "auto"
        True: at once; "auto": after two seconds. Both only where somebody sees it, in a terminal or a notebook.
    source : iterable, optional
        What is gone through under the bar.
    total : int, optional
        Number of chunks, where there is no `source`.
    """
    from tqdm import tqdm

    return tqdm(
        iterable=source,
        total=total,
        desc=what,
        unit="chunk",
        disable=not progress or not _is_watched(),
        delay=DELAY if progress == "auto" else 0.0,
        leave=False,
    )


def _is_watched() -> bool:
    """Whether stderr is shown as it comes, in a terminal or a notebook; a log file is not."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
