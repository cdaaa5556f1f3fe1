"""Where users wait: CPU seconds and peak memory of fits, predictions, tables and files, beside another checkout.

    python benchmarks/terms/waits.py [CASE ...] [--beside PATH] [--rounds 3]

Each run is a process of its own with one BLAS thread that makes the data, does a small one of the same kind, so that
imports and compilation are done, and then the work that is counted. Checkouts take turns on the same data. Printed are
medians over rounds; memory is the kernel's peak (``ru_maxrss``) above what the process held before the work.

The first cases are processes as users start them, counted from their beginning to their end. Both checkouts are
compiled to bytecode first, as pip does.
"""

from __future__ import annotations

import argparse
import compileall
import inspect
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve()


def table1(n: int, rows_each: int = 1) -> Callable[[], Any]:
    """The private table of twelve columns by a group of forty classes, of n rows."""
    from fdadp import Privacy, PrivateTable1

    rng = np.random.default_rng(n)
    data = pd.DataFrame({f"x{k}": rng.normal(50, 10, n) for k in range(6)})
    columns: dict[str, Any] = dict.fromkeys(data, (0.0, 100.0))
    for k in range(5):
        data[f"c{k}"] = rng.integers(0, 4, n).astype(float)
        columns[f"c{k}"] = [0.0, 1.0, 2.0, 3.0]
    data["site"] = rng.integers(0, 40, n).astype(float)
    columns["site"] = [float(k) for k in range(40)]
    persons = n // rows_each
    groups = rng.integers(0, persons, n) if rows_each > 1 else None
    privacy = Privacy(1.0, n=persons, delta=1e-6, random_state=0)
    return lambda: PrivateTable1(privacy=privacy, columns=columns, by="site").fit(data, groups=groups)


def numbers(n: int, family: str, decimals: int | None) -> pd.DataFrame:
    """A response to smooth functions of three numbers."""
    rng = np.random.default_rng(n)
    x = rng.uniform(size=(3, n))
    x = x if decimals is None else x.round(decimals)
    mean = np.sin(2 * np.pi * x[0]) + x[1] ** 2 + np.cos(5 * x[2])
    y = mean + rng.normal(size=n)
    y = y if family == "gaussian" else (y > mean.mean()).astype(float)
    return pd.DataFrame({"y": y, "a": x[0], "b": x[1], "c": x[2]})


def smooth_numbers(n: int, family: str, decimals: int | None) -> Callable[[], Any]:
    """Three smooth functions of numbers."""
    from fdadp import ScalarRegression

    data = numbers(n, family, decimals)
    return lambda: ScalarRegression("y ~ s(a) + s(b) + s(c)", family=family).fit(data)


def bam(family: str, decimals: int | None) -> float:
    """CPU seconds of the same by mgcv's ``bam(discrete = TRUE)``, which rounds numbers; not a number without R."""
    if shutil.which("Rscript") is None:
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        numbers(100_000, family, decimals).to_csv(f"{folder}/data.csv", index=False)
        fit = f"bam(y ~ s(a) + s(b) + s(c), data = d, family = {family}(), discrete = TRUE)"
        script = f"""suppressMessages(library(mgcv)); d <- read.csv("{folder}/data.csv"); gc()
            seconds <- system.time({fit}); cat(seconds[["user.self"]] + seconds[["sys.self"]])"""
        done = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def many_terms(n: int, terms: int) -> Callable[[], Any]:
    """Smooth functions of so many numbers, and of t."""
    from fdadp import FunctionalRegression

    rng = np.random.default_rng(n)
    z, t = rng.normal(size=(terms, n)), np.linspace(0, 1, 51)
    y = np.sin(z[:, :, None] * (1 + t)).sum(axis=0) + rng.normal(size=(n, 51))
    data = {"Y": y} | {f"z{k}": z[k] for k in range(terms)}
    formula = "Y ~ " + " + ".join(f"s(z{k})" for k in range(terms))
    return lambda: FunctionalRegression(formula).fit(data, grids={"Y": t})


def curves(n: int, points: int, seed: int = 0) -> np.ndarray:
    """Smooth random curves with a little noise, shape (n, points)."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, points)
    out = rng.normal(size=(n, 8)) @ np.stack([np.cos(k * np.pi * t) / (1 + k) for k in range(8)])
    for row in out:
        row += 0.05 * rng.normal(size=points)
    return out


def errors_of_predictions(n: int) -> Callable[[], Any]:
    """Standard errors of the curves of n persons, of a fit to 1,000."""
    from fdadp import FunctionalRegression

    x, s = curves(n, 101), np.linspace(0, 1, 101)
    rng = np.random.default_rng(1)
    few, z = min(n, 1000), rng.normal(size=n)
    y = x[:few] * np.cos(s) + np.sin(z[:few, None]) + 0.3 * rng.normal(size=(few, 101))
    model = FunctionalRegression("Y ~ ff(X) + s(z)").fit({"Y": y, "X": x[:few], "z": z[:few]}, grids={"Y": s, "X": s})
    return lambda: model.predict_se({"X": x, "z": z})


def components(n: int, points: int, method: str) -> Callable[[], Any]:
    """Principal components of long curves."""
    from fdadp import FPCA

    y, t = curves(n, points), np.linspace(0, 1, points)
    return lambda: FPCA(n_components=5, method=method).fit(y, t=t)


def numbers_to_curves(n: int) -> Callable[[], Any]:
    """Curves on numbers: s(z) and x."""
    from fdadp import FunctionalRegression

    rng = np.random.default_rng(n)
    z, x, t = rng.normal(size=n), rng.normal(size=n), np.linspace(0, 1, 101)
    y = np.outer(np.sin(z), t)
    y += np.outer(x, t**2)
    y += curves(n, 101)
    return lambda: FunctionalRegression("Y ~ s(z) + x").fit({"Y": y, "z": z, "x": x}, grids={"Y": t})


def written(rows: int) -> Path:
    """A file of ids and curves of 100 points, numbers of all digits."""
    rng = np.random.default_rng(rows)
    table = pd.DataFrame(rng.normal(size=(rows, 100)), columns=[str(k / 99) for k in range(100)])
    table.insert(0, "id", [f"p{k}" for k in range(rows)])
    path = Path(tempfile.mkstemp(suffix=".csv")[1])
    table.to_csv(path, index=False)
    return path


def read_by_pandas() -> float:
    """CPU seconds of ``pandas.read_csv``."""
    path, start = written(20_500), time.process_time()
    pd.read_csv(path)
    seconds = time.process_time() - start
    path.unlink()
    return seconds


def csv_file(rows: int, private: bool) -> Callable[[], Any]:
    """Opening such a file."""
    from fdadp import open_curves

    path = written(rows)

    def work() -> Any:
        opened = open_curves(path)
        found = list(opened.source.passed(lenient=True)) if private else opened.read()
        path.unlink()
        return found

    return work


def default_sizes(n: int, **sizes: int) -> Callable[[], Any]:
    """Curves on curves with the bases' default sizes or given ones, ten cohorts."""
    import fdadp

    cohorts = [fdadp.simulate_affr(1 + k % 3, n, np.random.default_rng([7, k]), n_points=51) for k in range(10)]
    pairs = [[np.ascontiguousarray(c.data_matrix[..., 0]) for c in (one.X, one.Y)] for one in cohorts]
    return lambda: [fdadp.AdditiveFunctionOnFunction(progress=False, **sizes).fit(x, y) for x, y in pairs]


def long_responses(points: int) -> Callable[[], Any]:
    """An additive surface for 600 curves of so many points."""
    import fdadp

    x, y = curves(600, 101), curves(600, points, 1)
    return lambda: fdadp.AdditiveFunctionOnFunction(progress=False, n_basis_x=7, n_basis_s=7).fit(x, y)


def levels(count: int) -> Callable[[], Any]:
    """A random intercept of so many levels, five rows each."""
    from fdadp import ScalarRegression

    rng = np.random.default_rng(count)
    person = np.repeat(np.arange(count), 5)
    x = rng.normal(size=person.size)
    y = x + rng.normal(size=count)[person] + rng.normal(size=person.size)
    data = pd.DataFrame({"y": y, "x": x, "id": person.astype(str)})
    return lambda: ScalarRegression("y ~ x + re(id)").fit(data)


def curves_on_curves(n: int) -> Callable[[], Any]:
    """A function-on-function term of curves of 101 points, as refund's time was recorded for."""
    from fdadp import FunctionalRegression

    x, s = curves(n, 101), np.linspace(0, 1, 101)
    y = x @ np.outer(np.sin(np.pi * s), np.cos(np.pi * s)) / 101 + 0.3 * np.random.default_rng(1).normal(size=x.shape)
    return lambda: FunctionalRegression("Y ~ ff(X)").fit({"Y": y, "X": x}, grids={"Y": s, "X": s})


def recorded_ff() -> float:
    """Seconds of refund's ``pffr`` for the same, recorded on another machine."""
    rows = json.loads((HERE.parents[1] / "recorded.json").read_text())
    return float(rows["refund::pffr, ff (recorded elsewhere)"]["1000"])


def repeated_curves(persons: int) -> Callable[[], Any]:
    """Five curves of each person, with functions of the persons and of the rows."""
    from fdadp import FunctionalRegression

    rng = np.random.default_rng(persons)
    person, t = np.repeat(np.arange(persons), 5), np.linspace(0, 1, 51)
    z = rng.normal(size=person.size)
    y = np.outer(z, t) + curves(persons, 51)[person] + 0.5 * curves(person.size, 51, 1)
    data = {"Y": y, "z": z, "id": person.astype(str)}
    return lambda: FunctionalRegression("Y ~ z + re(id)").fit(data, grids={"Y": t})


def chunks(n: int) -> Callable[[], Any]:
    """An additive surface from chunks of 10,000 curves, the same ones again and again."""
    import fdadp

    x = curves(min(n, 10_000), 51)
    y = np.cumsum(x, axis=1) / 10 + 0.1 * curves(len(x), 51, 1)
    return lambda: fdadp.AdditiveFunctionOnFunction(progress=False).fit_chunks(lambda: [(x, y)] * (n // len(x)))


def private_curves(n: int) -> Callable[[], Any]:
    """A private fit of curves of 21 points to a smooth function of a number."""
    from fdadp import FunctionalRegression, Privacy

    rng, t = np.random.default_rng(n), np.linspace(0, 1, 21)
    z, y = rng.uniform(-1, 1, n), rng.normal(scale=0.3, size=(n, 21))
    y += np.sin(3 * z)[:, None] * t
    privacy, bounds = Privacy(epsilon=1.0, delta=1e-8, n=n), {"Y": (-3, 3), "z": (-1, 1)}
    return lambda: FunctionalRegression("Y ~ s(z)", privacy=privacy, bounds=bounds).fit({"Y": y, "z": z})


def private_surface() -> Callable[[], Any]:
    """A private fit of 1,000 curves; the first of a process is counted without imports of fdadp and of this file."""
    from fdadp import AdditiveFunctionOnFunction, Privacy

    x = np.random.default_rng(0).normal(size=(1000, 3)) @ np.cos(np.outer(np.arange(3), np.linspace(0, 3, 51)))
    privacy, bounds = Privacy(epsilon=1.0, delta=1e-6, n=1000), {"X": (-4.5, 4.5), "Y": (-8, 8)}
    model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, progress=False)
    return lambda: model.fit(x, np.cumsum(x, axis=1) / 10)


def process(*arguments: str, cache: str | None = None) -> Callable[[], Any]:
    """A process of Python from its beginning to its end, with numba's cache in a folder; default: an empty one."""

    def work() -> None:
        folder = cache or tempfile.mkdtemp()
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        subprocess.run([sys.executable, "-P", *arguments], env=env, check=True, capture_output=True)

    return work


CACHE = tempfile.mkdtemp()
IMPORT = "from fdadp import FunctionalRegression"
PRIVATE_FIT = f"""
from __future__ import annotations
import numpy as np
{inspect.getsource(private_surface)}
private_surface()()
"""


def shell(command: str) -> Callable[[], Any]:
    """A command about a saved surface of 1,000 curves."""
    import fdadp

    folder = Path(tempfile.mkdtemp())
    people = fdadp.simulate_affr(scenario=1, n=1000, seed=0)
    x = pd.DataFrame(people.X.data_matrix[..., 0], columns=people.X.grid_points[0])
    x.to_csv(folder / "x.csv", index=False)
    y = pd.DataFrame(people.Y.data_matrix[..., 0], columns=people.Y.grid_points[0])
    model = fdadp.AdditiveFunctionOnFunction(progress=False).fit(x, y).save(folder / "model.npz")
    rest = [str(folder / "x.csv"), "--out", str(folder / "predicted.csv")] if command == "predict" else []
    work = process("-m", "fdadp", command, str(model), *rest, cache=CACHE)
    work()
    return work


CASES: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    "import": (f"`{IMPORT}`", lambda: process("-c", IMPORT), lambda: process("-c", IMPORT)),
    "first-private": (
        "a private fit of 1,000 curves, numba's cache empty",
        lambda: lambda: None,
        lambda: process("-c", PRIVATE_FIT),
    ),
    "next-private": (
        "the same in later processes",
        lambda: process("-c", PRIVATE_FIT, cache=CACHE),
        lambda: process("-c", PRIVATE_FIT, cache=CACHE),
    ),
    "next-private-alone": ("the same without imports of fdadp", lambda: lambda: None, private_surface),
    "predict": ("`fdadp predict` of 1,000 curves", lambda: lambda: None, lambda: shell("predict")),
    "summary": ("`fdadp summary`", lambda: lambda: None, lambda: shell("summary")),
    "table1": ("PrivateTable1, 100,000 persons, 40 groups", lambda: table1(2000), lambda: table1(100_000)),
    "table1-persons": (
        "the same, 20,000 rows of 10,000 persons",
        lambda: table1(500, 2),
        lambda: table1(20_000, 2),
    ),
    "gam": (
        "3 x s() of numbers, n = 100,000",
        lambda: smooth_numbers(2000, "gaussian", None),
        lambda: smooth_numbers(100_000, "gaussian", None),
    ),
    "gam-rounded": (
        "the same, numbers of three decimals",
        lambda: smooth_numbers(2000, "gaussian", 3),
        lambda: smooth_numbers(100_000, "gaussian", 3),
    ),
    "gam-binomial": (
        "3 x s(), binomial, n = 100,000",
        lambda: smooth_numbers(2000, "binomial", None),
        lambda: smooth_numbers(100_000, "binomial", None),
    ),
    "gam-binomial-rounded": (
        "the same, numbers of three decimals",
        lambda: smooth_numbers(2000, "binomial", 3),
        lambda: smooth_numbers(100_000, "binomial", 3),
    ),
    "terms16": ("16 terms s(z) of curves, n = 1,000", lambda: many_terms(200, 2), lambda: many_terms(1000, 16)),
    "predict_se": (
        "`predict_se` of 100,000 curves, ff(X) + s(z)",
        lambda: errors_of_predictions(1000),
        lambda: errors_of_predictions(100_000),
    ),
    "fpca": ("FPCA, n = T = 5,000", lambda: components(200, 200, "dense"), lambda: components(5000, 5000, "dense")),
    "fpca-face": (
        "FPCA by FACE, the same",
        lambda: components(200, 200, "face"),
        lambda: components(5000, 5000, "face"),
    ),
    "fosr": (
        "s(z) + x of 100,000 curves, 101 points",
        lambda: numbers_to_curves(500),
        lambda: numbers_to_curves(100_000),
    ),
    "csv": ("opening 40 MB of CSV", lambda: csv_file(100, False), lambda: csv_file(20_500, False)),
    "csv-private": ("the same in a private fit", lambda: csv_file(100, True), lambda: csv_file(20_500, True)),
    "default-100": ("default sizes, n = 100, ten fits", lambda: default_sizes(50), lambda: default_sizes(100)),
    "default": ("default sizes, n = 1,000, ten fits", lambda: default_sizes(50), lambda: default_sizes(1000)),
    "default-10000": ("default sizes, n = 10,000, ten fits", lambda: default_sizes(50), lambda: default_sizes(10_000)),
    "default-7": (
        "7 x 7 functions, n = 1,000, ten fits",
        lambda: default_sizes(50, n_basis_x=7, n_basis_s=7),
        lambda: default_sizes(1000, n_basis_x=7, n_basis_s=7),
    ),
    "affr5000": ("additive surface, T = 5,000, n = 600", lambda: long_responses(50), lambda: long_responses(5000)),
    "ff": ("ff(X), n = 1,000, 101 x 101 points", lambda: curves_on_curves(100), lambda: curves_on_curves(1000)),
    "repeated": ("z + re(id), 1,000 persons of 5 curves", lambda: repeated_curves(50), lambda: repeated_curves(1000)),
    "chunks": ("additive surface, 10⁶ curves from chunks", lambda: chunks(1000), lambda: chunks(1_000_000)),
    "private": (
        "private s(z) of 10⁶ curves, 21 points",
        lambda: private_curves(1000),
        lambda: private_curves(1_000_000),
    ),
    "re20000": ("re(id) of a number, 20,000 levels, 100,000 rows", lambda: levels(100), lambda: levels(20_000)),
}


PEERS: dict[str, tuple[str, Callable[[], float]]] = {
    "gam": ("`mgcv::bam`", lambda: bam("gaussian", None)),
    "gam-rounded": ("`mgcv::bam`", lambda: bam("gaussian", 3)),
    "gam-binomial": ("`mgcv::bam`", lambda: bam("binomial", None)),
    "gam-binomial-rounded": ("`mgcv::bam`", lambda: bam("binomial", 3)),
    "csv": ("`pandas.read_csv`", read_by_pandas),
    "ff": ("`refund::pffr`, recorded elsewhere", recorded_ff),
}
"""Name and CPU seconds of what others take for a case."""


def run(name: str) -> dict[str, float]:
    """CPU seconds and MB of one case in this process."""
    import numba  # noqa: F401 - with which other checkouts compile, and which a small work of theirs does without

    _, small, full = CASES[name]
    small()()
    work = full()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, start = peak(), sum(os.times()[:4])
    result = work()
    seconds = sum(os.times()[:4]) - start
    found = {"seconds": seconds, "memory": float("nan") if os.times()[2] else peak() - before}
    del result
    return found


def peak() -> float:
    """Largest resident memory since the last time that it was set back, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def ask(name: str, folder: Path, limit: float) -> dict[str, float] | None:
    """One run of a case with the package in a folder; None where it does not end in so many CPU seconds.

    Not a number where the package refuses the work, such as for want of memory.
    """
    env = {**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))

    command = [sys.executable, "-P", str(HERE), "--run", name]
    done = subprocess.run(command, env=env, capture_output=True, text=True, preexec_fn=bound)
    if done.returncode < 0:
        return None
    if done.returncode and "fdadp.errors.InputError" in done.stderr:
        return {"seconds": float("nan"), "memory": float("nan")}
    if done.returncode:
        raise RuntimeError(f"{name} in {folder}: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str] | None = None) -> list[str]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--beside", type=Path, help="folder of another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds after which a run is ended")
    parser.add_argument("--run", choices=CASES, help="this one, in this process")
    options = parser.parse_args(arguments)
    if options.run:
        print(json.dumps(run(options.run)))
        return []
    folders = [HERE.parents[2]] if options.beside is None else [options.beside.resolve(), HERE.parents[2]]
    heads = ["CPU s", "MB"] if len(folders) == 1 else ["before, CPU s", "after", "before, MB", "after"]
    heads.append("a peer, CPU s")
    for folder in folders:
        compileall.compile_dir(folder / "fdadp", quiet=1)
    lines = [f"| work | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    print("\n".join(lines), flush=True)
    for name in options.cases or CASES:
        found: list[list[dict[str, float] | None]] = [[] for _ in folders]
        peer, theirs = PEERS.get(name), []
        for _ in range(options.rounds):
            if peer is not None:
                theirs.append(peer[1]())
            for of, folder in zip(found, folders, strict=True):
                if None not in of:
                    of.append(ask(name, folder, options.limit))
        cells = [middle(of, kind) for kind in ("seconds", "memory") for of in found]
        cells.append("" if peer is None or np.isnan(theirs).any() else f"{median(theirs):.2f}, {peer[0]}")
        lines.append(f"| {CASES[name][0]} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def middle(found: list[dict[str, float] | None], kind: str) -> str:
    if None in found:
        return "no end"
    value = median(one[kind] for one in found if one is not None)
    if np.isnan(value):
        return "refused" if kind == "seconds" else "–"
    return f"{value:.2f}" if kind == "seconds" else f"{value:.0f}"


if __name__ == "__main__":
    main()
