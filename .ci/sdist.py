"""Build the source distribution, compare it with the repository, and run tests from it where it was unpacked.

python .ci/sdist.py        into dist/; needs the package build
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("house/test_architecture.py", "functional/test_metrics.py", "common/test_storage.py")


def build(folder: Path) -> Path:
    """Build in `folder`; the archive."""
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return max(folder.glob("fdadp-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def differences(archive: Path) -> list[str]:
    """What is in the repository and not in the archive, and the other way round but for what setuptools adds."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    wanted = {name for name in tracked.split("\0") if name and (ROOT / name).exists()}
    with tarfile.open(archive) as file:
        found = {member.name.split("/", 1)[1] for member in file.getmembers() if member.isfile()}
    extra = {name for name in found - wanted if not name.startswith("fdadp.egg-info/") and name != "PKG-INFO"}
    return [f"not in it: {name}" for name in sorted(wanted - found)] + [f"too much: {name}" for name in sorted(extra)]


def main() -> int:
    """Command line; the exit status is that of the tests, or 1 if the archive is not the repository."""
    (ROOT / "dist").mkdir(exist_ok=True)
    archive = build(ROOT / "dist")
    print(f"{archive.relative_to(ROOT)}: {archive.stat().st_size / 1e6:.1f} MB")
    wrong = differences(archive)
    print("\n".join(wrong) or "it holds what the repository holds")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as file:
        file.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else file.extractall(folder)
        (unpacked,) = Path(folder).iterdir()
        tests = [f"tests/python/{name}" for name in TESTS]
        environment = os.environ | {"PYTHONPATH": str(unpacked)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=unpacked, env=environment, check=False).returncode or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
