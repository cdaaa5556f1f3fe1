"""Several data sets at once, of which some may not be here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fdadp.errors import InputError, MissingDataError

T = TypeVar("T")


def load_present(
    names: Sequence[str], loaders: Mapping[str, Callable[[bool], T]], *, download: bool = False
) -> tuple[list[T], dict[str, str]]:
    """Load the data sets that are present.

    Parameters
    ----------
    names : sequence of str
        Keys of `loaders`.
    loaders : mapping of name to function
        Each is told whether the internet may be asked.
    download : bool
        Whether it may, for those that are not here.

    Returns
    -------
    data : list
    absent : dict
        Name of each data set that was not found, and why.

    Raises
    ------
    InputError
        An unknown name.
    """
    data, absent = [], {}
    for name in names:
        if name not in loaders:
            raise InputError(f"dataset must be one of {', '.join(loaders)}, got {name!r}")
        try:
            data.append(loaders[name](download))
        except MissingDataError as exc:
            absent[name] = str(exc)
    return data, absent
