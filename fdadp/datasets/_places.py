"""Where data sets that are not bundled are looked for, in which order, and what is said when they are nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fdadp.datasets._download import Columns, content_sha256
from fdadp.errors import FileFormatError, InputError, MissingDataError

DATA_VARIABLE = "FDADP_DATA"


@dataclass(frozen=True)
class Place:
    """One place to look.

    Attributes
    ----------
    label : str
        What the user is told was searched.
    read : callable
        Returns the decoded data set, or ``None`` where it is not there.  Raises OSError where it could not
        be reached, ``FileFormatError`` where it is there but is something else.
    own : bool
        The user put the file there: then a wrong file is an error. Elsewhere (an R library of another version,
        a changed download) the search goes on and the reason is reported at its end.
    """

    label: str
    read: Callable[[], Columns | None]
    own: bool = False


def find_data(name: str, places: Iterable[Place], sha256: str, advice: str) -> Columns:
    """Return the first copy of a data set whose values are those published.

    Parameters
    ----------
    name : str
        The data set, for messages.
    places : iterable of Place
        In the order to look.
    sha256 : str
        :func:`content_sha256` of the published values.
    advice : str
        What to do where no place has it.

    Raises
    ------
    MissingDataError
        Found nowhere; names the places searched.
    FileFormatError
        A file in the user's own data folder does not hold the published values.
    """
    reasons = []
    for place in places:
        try:
            columns = place.read()
            if columns is None:
                reasons.append(f"{place.label}: not there")
                continue
            found = content_sha256(columns)
            if found == sha256:
                return columns
            raise FileFormatError(
                f"{name} from {place.label} must have the published values (content SHA-256 {sha256[:12]}...), "
                f"got other values ({found[:12]}...)"
            )
        except FileFormatError as exc:
            if place.own:
                raise
            reasons.append(f"{place.label}: {exc}")
        except OSError as exc:
            reasons.append(f"{place.label}: {type(exc).__name__}: {exc}")
    searched = "\n".join(f"  - {reason}" for reason in reasons) or "  (nowhere)"
    raise MissingDataError(f"{name} is not bundled with fdadp and was not found. Searched:\n{searched}\n{advice}")


def data_dir() -> Path:
    """Return the user's data folder.

    ``FDADP_DATA``; else, in a copy of the repository, ``../shared/data`` beside it; else ``data`` in the user's cache
    folder of fdadp (:func:`~fdadp.datasets._download.cache_dir`).
    """
    from fdadp.datasets._download import cache_dir

    given = os.environ.get(DATA_VARIABLE)
    if given:
        return Path(given)
    repository = Path(__file__).resolve().parents[2]
    if (repository / "pyproject.toml").is_file():  # of an installed package this is lib/python3.x/site-packages
        return repository.parent / "shared" / "data"
    return cache_dir() / "data"


def data_dir_label() -> str:
    """Return the data folder as it is named in messages."""
    given = "" if os.environ.get(DATA_VARIABLE) else f", the default as {DATA_VARIABLE} is not set"
    absent = "" if data_dir().is_dir() else "; no such folder"
    return f"{data_dir()} ({DATA_VARIABLE}{given}{absent})"


def r_libraries() -> list[Path]:
    """Return the folders where R keeps packages, without starting R itself (only its ``RHOME`` script)."""
    folders = []
    for variable in ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE"):
        folders += [Path(p).expanduser() for p in os.environ.get(variable, "").split(os.pathsep) if p]
    if os.environ.get("R_HOME"):
        folders.append(Path(os.environ["R_HOME"]) / "library")
    if r := shutil.which("R"):
        try:
            home = subprocess.run([r, "RHOME"], capture_output=True, text=True, timeout=10, check=True).stdout.strip()
            folders.append(Path(home) / "library")
        except (OSError, subprocess.SubprocessError):
            pass  # a broken R is no reason to stop looking
    folders += [Path(p) for p in ("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library")]
    folders += sorted((Path.home() / "R").glob("*-library/*"), reverse=True)
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


# Several data sets at once, of which some may not be here.


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
