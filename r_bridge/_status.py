"""What of the bridge is there, what is missing, and the one command that mends it.

Nothing is loaded for that: R is asked from outside, so that a wrong combination cannot bring this process down.

============ ============================================== ===========================================
R            rpy2, rpy2-rinterface, rpy2-robjects           why
============ ============================================== ===========================================
4.2 to 4.4   all three 3.6.4                                rpy2-rinterface 3.6.7 and newer need R 4.5
4.5, newer   the newest, at least 3.6.4
============ ============================================== ===========================================
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from r_bridge.errors import RBridgeUnavailable

PACKAGES = ("mgcv", "refund", "fda", "VGAM", "lme4", "nlme")
"""R packages that the bridge has wrappers for."""

PINNED = "3.6.4"
"""The rpy2 for R below 4.5."""

_PARTS = ("rpy2", "rpy2-rinterface", "rpy2-robjects")
_OLDEST_R = (4, 2)
_INSTALL_R = "apt-get install r-base-dev r-cran-mgcv r-cran-vgam"


@dataclass(frozen=True)
class Status:
    """State of the bridge; ``print`` shows it.

    Attributes
    ----------
    r, r_home : str or None
        Version and folder of R.
    rpy2 : dict
        Installed version of rpy2 and its parts, None where not installed.
    packages : dict
        Version of each of :data:`PACKAGES`, None where not installed.
    problem, remedy : str or None
        Why the bridge cannot be used at all, and the command that mends that; None if it can.
    """

    r: str | None = None
    r_home: str | None = None
    rpy2: dict[str, str | None] = field(default_factory=dict)
    packages: dict[str, str | None] = field(default_factory=dict)
    problem: str | None = None
    remedy: str | None = None

    @property
    def usable(self) -> bool:
        """Whether R can be called from Python."""
        return self.problem is None

    def missing(self, *packages: str) -> str | None:
        """Why these R packages cannot be called, with the remedy; None if they can."""
        if self.problem is not None:
            return f"{self.problem}. Mend with: {self.remedy}"
        for package in packages:
            if not self.packages.get(package):
                return f"the R package {package} is not installed. Mend with: {package_remedy(package)}"
        return None

    def require(self, *packages: str) -> None:
        """Do nothing if R and these packages can be called.

        Raises
        ------
        RBridgeUnavailable
            What is missing, and the command that mends it.
        """
        missing = self.missing(*packages)
        if missing is not None:
            raise RBridgeUnavailable(missing)

    def __str__(self) -> str:
        lines = [f"R          {self.r or 'not found'}{f' ({self.r_home})' if self.r_home else ''}"]
        lines += [f"{name:<10} {found or 'not installed'}" for name, found in (self.rpy2 | self.packages).items()]
        lines.append(f"usable     {'yes' if self.usable else f'no: {self.problem}'}")
        if not self.usable:
            lines.append(f"mend with  {self.remedy}")
        return "\n".join(lines)


def status() -> Status:
    """Look at R, rpy2 and the R packages, without loading them.

    Returns
    -------
    Status
        Its ``problem`` is one of: no R, a wrong ``R_HOME``, R too old, no rpy2, an rpy2 that does not fit this R.

    Examples
    --------
    >>> found = status()
    >>> found.problem is None or isinstance(found.problem, str)
    True
    """
    rpy2 = {part: _installed(part) for part in _PARTS}
    home, problem, remedy = _find_r()
    if home is None:
        return Status(rpy2=rpy2, problem=problem, remedy=remedy)
    found = _ask_r(home)
    r = found.pop("R", None)
    if r is None:
        return Status(
            r_home=str(home), rpy2=rpy2, problem=f"R in {home} does not start", remedy=f"{home}/bin/R --version"
        )
    problem, remedy = _mismatch(r, rpy2)
    return Status(r, str(home), rpy2, {p: found.get(p) for p in PACKAGES}, problem, remedy)


def rpy2_requirements(r: str) -> list[str]:
    """Return what pip must install for an R of version `r`."""
    if _numbers(r) < (4, 5):
        return [f"{part}=={PINNED}" for part in _PARTS]
    return [f"rpy2>={PINNED}"]


def package_remedy(package: str) -> str:
    """Return the command that installs an R package."""
    if shutil.which("apt-get") and package in ("mgcv", "VGAM"):
        return f"apt-get install r-cran-{package.lower()}"
    return f'Rscript -e \'install.packages("{package}", repos = "https://cloud.r-project.org")\''


def _mismatch(r: str, rpy2: dict[str, str | None]) -> tuple[str | None, str | None]:
    """Whether this rpy2 goes with this R."""
    pip = f"{sys.executable} -m pip install {' '.join(repr(p) for p in rpy2_requirements(r))}"
    if _numbers(r) < _OLDEST_R:
        return f"R is too old: R {'.'.join(map(str, _OLDEST_R))} or newer is needed, got R {r}", _INSTALL_R
    if rpy2["rpy2"] is None or rpy2["rpy2-rinterface"] is None:
        return f"rpy2 is not installed in this Python (R {r} is there)", pip
    if _numbers(rpy2["rpy2-rinterface"]) >= (3, 6, 7) and _numbers(r) < (4, 5):
        found = rpy2["rpy2-rinterface"]
        return f"rpy2 and R do not match: rpy2-rinterface {found} needs R 4.5 or newer, got R {r}", pip
    return None, None


def _find_r() -> tuple[Path | None, str | None, str | None]:
    """Folder of R as rpy2 would find it, else a problem and its remedy."""
    named = os.environ.get("R_HOME")
    if named:
        if not (Path(named) / "bin" / "R").exists():
            return None, f"R_HOME must be the folder of an R, got {named!r}, where there is no bin/R", "unset R_HOME"
        return Path(named), None, None
    command = shutil.which("R")
    told = _output([command, "RHOME"]).split() if command else []
    if not told:
        return None, "R is not installed: there is no R in PATH, and R_HOME is not set", _INSTALL_R
    return Path(told[-1]), None, None


def _ask_r(home: Path) -> dict[str, str]:
    """Versions of R and of the packages that are installed, as R says them."""
    names = ", ".join(f'"{p}"' for p in PACKAGES)
    code = (
        'cat("\\n@R", as.character(getRversion()), "\\n");'
        f'for (p in c({names})) cat("\\n@", p, " ", '
        'tryCatch(as.character(packageVersion(p)), error = function(e) ""), "\\n", sep = "")'
    )
    told = _output([str(home / "bin" / "R"), "--no-echo", "--no-save", "-e", code])
    return dict(re.findall(r"^@(\w+) (\S+)", told, re.MULTILINE))


def _output(command: list[str | None]) -> str:
    try:
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
