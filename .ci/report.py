"""Small reports for .ci/run.

report.py versions            what is installed where this runs
report.py kernels             the kernels that NumPy's and SciPy's OpenBLAS use where they agree
report.py kernel NAME         fails unless both use those of processor NAME ("own": any); a crash if these do not work
report.py tests REPORT.xml    how many tests passed, failed, were skipped; fails when none passed
report.py slow REPORT.xml S K the tests of S seconds of CPU, but for the quickest of a file, and of a function below K
"""

from __future__ import annotations

import platform
import sys
import xml.etree.ElementTree as ET
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

SHOWN = (
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "scikit-learn",
    "scikit-fda",
    "multimethod",
    "matplotlib",
    "rdata",
    "rpy2",
    "pytest",
)


def versions() -> int:
    """Print the versions that matter."""
    found = [f"Python {platform.python_version()}"]
    for name in SHOWN:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    print(", ".join(found))
    return 0


def _openblas() -> list[dict[str, Any]]:
    import scipy.linalg  # noqa: F401  (loads SciPy's own OpenBLAS beside NumPy's)
    from threadpoolctl import threadpool_info

    return [library for library in threadpool_info() if library["internal_api"] == "openblas"]


def kernels() -> int:
    """Print the kernels in use, if they are the same everywhere."""
    names = {library["architecture"] for library in _openblas()}
    print(*names if len(names) == 1 else ())
    return 0


def kernel(name: str) -> int:
    """Compare the kernels in use with those asked for by OPENBLAS_CORETYPE, and compute with them.

    OpenBLAS 0.3.34's products for Haswell and Zen crash on processors of AMD with AVX-512 (OpenBLAS issue 6013): a
    process that ends by a signal says so.
    """
    import numpy as np
    import scipy.linalg

    used = _openblas()
    for library in used:
        library_name = Path(library["filepath"]).name
        print(f"{library_name}: {library['architecture']}, {library['num_threads']} threads", flush=True)
    if name != "own" and (not used or any(library["architecture"] != name for library in used)):
        print(f"FAILED: the kernels of {name} are not in use")
        return 1
    for k in (2, 16, 49, 81):
        a = np.ones((k, 365))
        for product in (np.ones((35, 365)) @ a.T, scipy.linalg.blas.dgemm(1.0, np.ones((35, 365)), a, trans_b=True)):
            if not np.array_equal(product, np.full((35, k), 365.0)):
                print(f"FAILED: the kernels of {name} compute wrong products")
                return 1
    return 0


def tests(report: Path) -> int:
    """Read pytest's JUnit file; a run in which no test passed is a failure."""
    if not report.exists():
        print(f"FAILED: {report} was not written: pytest did not run")
        return 1
    suites = list(ET.parse(report).iter("testsuite"))
    total, bad, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (["tests"], ["failures", "errors"], ["skipped"])
    )
    passed = total - bad - skipped
    print(f"{report.stem}: {passed} passed, {bad} failed, {skipped} skipped")
    if passed <= 0:
        print("FAILED: no test passed")
        return 1
    return 0


def slow(report: Path, seconds: float, quickest: float) -> int:
    """Print every test that took so long, but for the quickest of its file and, below `quickest`, of its function."""
    if not report.exists():
        return 0
    files: dict[str, list[tuple[float, str]]] = {}
    for case in ET.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        for i in range(len(parts), 0, -1):
            file = Path(*parts[:i]).with_suffix(".py")
            if file.exists():
                test = "::".join([file.as_posix(), *parts[i:], case.get("name", "")])
                parts_of = (own for own in case.iter("property") if own.get("name") == "cpu_seconds")
                took = sum(float(own.get("value", 0)) for own in parts_of)
                files.setdefault(file.as_posix(), []).append((took, test))
                break
    for tests_ in files.values():
        met: set[str] = set()
        for k, (took, test) in enumerate(sorted(tests_)):
            function = test.partition("[")[0]
            stays = k == 0 or (function not in met and took < quickest)
            met.add(function)
            if took >= seconds and not stays:
                print(test)
    return 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["versions"]:
            sys.exit(versions())
        case ["kernels"]:
            sys.exit(kernels())
        case ["kernel", name]:
            sys.exit(kernel(name))
        case ["tests", path]:
            sys.exit(tests(Path(path)))
        case ["slow", path, seconds, quickest]:
            sys.exit(slow(Path(path), float(seconds), float(quickest)))
        case _:
            sys.exit(__doc__)
