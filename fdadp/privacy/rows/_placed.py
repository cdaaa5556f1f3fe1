"""Where private rows are kept: on a cluster's workers where they are Dask's and a client is active, else here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fdadp._common.tasks import active_client, is_dask
from fdadp.errors import FailedReadError, PrivacyError
from fdadp.privacy.boundary import FAILED, check_ids
from fdadp.privacy.rows._local import Spec, silence
from fdadp.privacy.rows._partitioned_vault import PartitionedVault
from fdadp.privacy.rows._sources import as_tables, parts_of, spec_of, spec_of_chunk
from fdadp.privacy.rows._vault import Vault
from fdadp.privacy.rows.partitions import PrivatePartitions, blocks_of

AnyVault = Vault | PartitionedVault


def vault_of(data: Any, groups: Any, max_rows: int | None = None) -> AnyVault:
    """Put private rows behind a wall where they are.

    Parameters
    ----------
    data, groups
        As :class:`fdadp.privacy.Cohort` takes them. Chunks may say themselves which partitions they come from, by a
        method ``on_workers()`` that returns a :class:`~fdadp.privacy.rows.partitions.PrivatePartitions` or None.
    max_rows : int, optional
        Rows of a person that count at most.

    Raises
    ------
    PrivacyError
        Shapes that do not fit, as of data in memory. Nothing was read.
    """
    if active_client() is not None:
        found = _partitions_of(data, groups)
        if found is not None:
            return PartitionedVault(found, max_rows)
    return Vault(data, groups, max_rows)


def _partitions_of(data: Any, groups: Any) -> PrivatePartitions | None:
    if hasattr(data, "on_workers"):
        own: PrivatePartitions | None = data.on_workers()
        return own
    if isinstance(data, list) and data and all(map(is_dask, data)):
        return _of_chunks(data, groups)
    frames = data if isinstance(data, tuple) else (data,)
    if frames and all(map(_is_frame, frames)):
        return _of_frames(frames, groups)
    tables = as_tables(data)
    if tables is None:
        return None
    lazy = [getattr(t.rows, "data", t.rows) if hasattr(t.rows, "dims") else t.rows for t in tables]
    if not all(is_dask(rows) and hasattr(rows, "to_delayed") for rows in lazy):
        return None
    if groups is True:
        raise PrivacyError("groups must be ids, one a row: True is for chunks that bring them along")
    if any(t.shape[:1] != tables[0].shape[:1] for t in tables):
        raise PrivacyError("data must be arrays of equal length, rows along the first axis")
    columns = [*lazy, *([] if groups is None else [check_ids(groups, len(tables[0]))])]
    read = partial(_converted, tuple(t.convert for t in tables))
    sources = tuple(t.source for t in tables)
    return PrivatePartitions(blocks_of(columns), read, spec_of(tables), groups is not None, sources)


def _is_frame(data: Any) -> bool:
    """Whether these are Dask's frames or series, whose rows nobody has counted."""
    return (
        is_dask(data) and hasattr(data, "to_delayed") and hasattr(data, "npartitions") and not hasattr(data, "chunks")
    )


def _of_frames(frames: tuple[Any, ...], groups: Any) -> PrivatePartitions:
    columns = [*frames, *([] if groups is None else [groups])]
    if not all(map(_is_frame, columns)) or len({c.npartitions for c in columns}) > 1:
        raise PrivacyError(
            "data and groups must be Dask's frames or series of the same partitions where one of them is: take all as "
            "columns of one frame"
        )
    pieces = [list(piece) for piece in zip(*(c.to_delayed() for c in columns), strict=True)]
    spec = tuple((len(f.columns),) if hasattr(f, "columns") else () for f in frames)
    return PrivatePartitions(pieces, parts_of, spec, groups is not None, frames)


def _converted(convert: Sequence[Callable[[Any], Any]], piece: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers of the tables of a piece, and its ids as they are."""
    numbers = tuple(c(part) for c, part in zip(convert, piece, strict=False))
    return numbers + tuple(piece[len(convert) :])


def _of_chunks(chunks: list[Any], groups: Any) -> PrivatePartitions:
    """Chunks that workers make: the shape of a row, which is public, is asked of the first one."""
    if groups is not None and groups is not True:
        raise PrivacyError("groups must be True, and each chunk end with the ids of its rows, with chunks on workers")
    from dask import delayed

    spec, failed = None, False
    try:
        with silence():  # Dask may warn of the size of what is sent
            spec = delayed(_spec_of_chunk, pure=False)(chunks[0], groups is True).compute()
    except Exception:
        failed = True
    if failed:
        raise FailedReadError(FAILED)
    if spec is None:
        raise PrivacyError(
            "a chunk must be a tuple of arrays of equal length, rows along the first axis; the first one is not"
        )
    return PrivatePartitions(chunks, parts_of, spec, groups is True, chunks)


def _spec_of_chunk(chunk: Any, grouped: bool) -> Spec | None:
    try:
        return spec_of_chunk(chunk, grouped)
    except PrivacyError:
        return None
