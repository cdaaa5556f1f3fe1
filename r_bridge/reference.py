"""Recorded results of R: where they are, and reading them. No R is needed."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fdadp.errors import FileFormatError, MissingDataError

__all__ = ["case_names", "find_case", "read_case", "reference_dirs"]


def reference_dirs(more: Sequence[str | os.PathLike[str]] = ()) -> list[Path]:
    """Folders that are searched, those that exist: ``FDADP_REFERENCE``, then `more`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> reference_dirs([folder])[-1].name == folder.rpartition("/")[2]
    True
    """
    named = os.environ.get("FDADP_REFERENCE")
    return [path for path in map(Path, [*([named] if named else []), *more]) if path.is_dir()]


def case_names(folder: str | os.PathLike[str]) -> list[str]:
    """Names of the cases in a folder, sorted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "weather.rds").touch()
    >>> case_names(folder)
    ['weather']
    """
    return sorted(path.stem for path in Path(folder).glob("*.rds"))


def find_case(name: str, folders: Sequence[str | os.PathLike[str]] | None = None) -> Path:
    """Return the file of a case.

    Raises
    ------
    MissingDataError
        In none of the folders; the text names them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "weather.rds").touch()
    >>> find_case("weather", [folder]).name
    'weather.rds'
    """
    searched = [Path(f) for f in folders] if folders is not None else reference_dirs()
    for folder in searched:
        if (folder / f"{name}.rds").is_file():
            return folder / f"{name}.rds"
    where = ", ".join(map(str, searched)) or "no folder (FDADP_REFERENCE is not set)"
    raise MissingDataError(f"recorded case {name} is not here: searched {where} for {name}.rds")


@functools.lru_cache(maxsize=64)
def read_case(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a recorded case: ``meta``, ``input`` and ``output``, nested dicts and lists of arrays.

    Raises
    ------
    FileFormatError
        Not a file of R, or not a recorded case.
    """
    import rdata

    try:
        record = rdata.read_rds(path)
    except FileNotFoundError:
        raise
    except Exception as exc:  # rdata raises many kinds on files that are not R's
        raise FileFormatError(f"{path} must be an .rds file written by R, got {type(exc).__name__}: {exc}") from exc
    if isinstance(record, dict) and "input" in record and "meta" not in record:  # fits of one session, by name
        outputs = {name: part for name, part in record.items() if name != "input"}
        record = {"meta": {"case": [Path(path).stem]}, "input": record["input"], "output": outputs}
    if not isinstance(record, dict) or not {"meta", "input", "output"} <= record.keys():
        raise FileFormatError(f"{path} must hold a recorded case (meta, input, output), got {type(record).__name__}")
    return dict(record)
