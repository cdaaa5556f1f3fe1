"""Run the recording scripts in ``r_bridge/R`` with Rscript. Needs R and the packages of a case, but no rpy2."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fdadp.errors import InputError
from r_bridge._status import Status, package_remedy, status
from r_bridge.errors import RBridgeUnavailable, RError

SCRIPT = Path(__file__).parent / "R" / "record.R"


def _rscript(*arguments: str, state: Status | None = None) -> str:
    state = state or status()
    if state.r is None or state.r_home is None:
        raise RBridgeUnavailable(f"{state.problem}. Mend with: {state.remedy}")
    command = [str(Path(state.r_home) / "bin" / "Rscript"), str(SCRIPT), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RError(f"R: {(run.stdout + run.stderr).strip()}")
    return run.stdout


def recordable() -> dict[str, list[str]]:
    """Names of the cases that can be recorded, and the R packages that each needs."""
    lines = [line.split() for line in _rscript("--list").splitlines()]
    return {name: packages for name, *packages in lines}


def record(cases: Sequence[str], out: str | os.PathLike[str]) -> list[Path]:
    """Record cases; overwrites files of the same name.

    Parameters
    ----------
    cases : sequence of str
        See ``recordable``.
    out : path
        Folder, made if need be.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        Unknown cases, or none.
    RBridgeUnavailable
        No R, or a package that a case needs is missing; nothing is recorded then.
    RError
        R's own.

    Examples
    --------
    >>> record(["quadrature"], "recorded")  # doctest: +SKIP
    """
    state, known = status(), recordable()
    unknown = [name for name in cases if name not in known]
    if unknown or not cases:
        raise InputError(f"cases must be among {', '.join(known)}, got {', '.join(unknown) or 'none'}")
    for name in cases:
        for package in known[name]:
            if not state.packages.get(package):
                raise RBridgeUnavailable(
                    f"case {name} needs the R package {package}, which is not installed. "
                    f"Mend with: {package_remedy(package)}"
                )
    folder = Path(out)
    _rscript(str(folder), *cases, state=state)
    return [folder / f"{name}.rds" for name in cases]
