"""Private classifiers beside diffprivlib and interpret on Adult: same split, same public bounds, one run, one table.

    python benchmarks/learners/run.py [--seeds 3] [--epsilon 0.1 1 5] [--venvs FOLDER]

The peers cannot share an environment with fdadp (diffprivlib needs an old scikit-learn), so each gets one, which is
made on the first run. What they claim is taken at its word here: diffprivlib's rows are pure epsilon as claimed, DP-EBM
reads the list of labels of a feature from the data. The table is written to results/latest.md and results/latest.json;
that of linear regression (diabetes), k-means and PCA (digits) beside diffprivlib's to results/small.md and small.json.

    python benchmarks/learners/run.py --unseen [--seeds 4] [--keep-peers] [--only "ICU death" rows ...]
    python benchmarks/learners/run.py --unseen --learners DPAdditiveRegressor ...

Data sets on which no constant was chosen (unseen_sets.py), one fit a split; results/unseen.md and unseen.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp._version import __version__
from fdadp.learners import Numeric, PublicEncoder

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies.learners import load, run
from studies.scores import split_rows

HERE = Path(__file__).resolve().parent
PEERS = {"diffprivlib": "peer_diffprivlib.py", "interpret": "peer_interpret.py"}


def environment(name: str, folder: Path) -> Path:
    """Python of a peer's environment, which is made if it is not there."""
    home = folder / f".venv-{name}"
    python = home / "bin" / "python"
    stamp = home / ".ready"
    wanted = (HERE / f"requirements-{name}.txt").read_text()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"Installing {name} into {home} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", HERE / f"requirements-{name}.txt"], check=True)
        stamp.write_text(wanted)
    return python


def write_inputs(task: Any, folder: Path) -> None:
    """The same rows for the peers: numbers and one-hot columns as arrays, the table as CSV, the bounds."""
    numbers = task.numbers
    specs = {
        name: Numeric(spec.low, spec.high, log1p=spec.low >= 0 and spec.high > 1000 * (spec.low + 1))
        if isinstance(spec, Numeric)
        else spec
        for name, spec in task.features.items()
    }
    one_hot = PublicEncoder(specs).transform
    y, y_test = (np.asarray(t == task.classes[1], dtype=int) for t in (task.y, task.y_test))
    np.savez(
        folder / "adult.npz",
        X=task.X[numbers].to_numpy(float),
        X_test=task.X_test[numbers].to_numpy(float),
        X_one_hot=one_hot(task.X),
        X_test_one_hot=one_hot(task.X_test),
        y=y,
        y_test=y_test,
        low=np.array([float(specs[name].low) for name in numbers]),
        high=np.array([float(specs[name].high) for name in numbers]),
        norm=math.sqrt(len(specs)),
    )
    task.X.assign(y=y).to_csv(folder / "train.csv", index=False)
    task.X_test.assign(y=y_test).to_csv(folder / "test.csv", index=False)
    bounds = {name: (float(specs[name].low), float(specs[name].high)) for name in numbers}
    (folder / "bounds.json").write_text(json.dumps(bounds))


def table(results: pd.DataFrame) -> str:
    """Accuracy, AUC and seconds by method and ε, as Markdown; and the ratio of fit times to DPAdditiveHistograms."""
    epsilons = sorted(results["epsilon"].unique())
    lines = []
    for column, title in (("accuracy", "Accuracy, mean (sd)"), ("auc", "AUC, mean (sd)")):
        lines += [
            f"| {title} | " + " | ".join(f"ε = {e:g}" for e in epsilons) + " |",
            "|---" * (len(epsilons) + 1) + "|",
        ]
        for method, part in results.groupby("method", sort=False):
            cells = []
            for e in epsilons:
                values = part.loc[part["epsilon"] == e, column]
                cells.append(f"{values.mean():.3f} ({values.std(ddof=1) if len(values) > 1 else 0:.3f})")
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    seconds = results.groupby("method", sort=False)["seconds"].median()
    lines += ["| Fit, median over all fits | seconds | times DPAdditiveHistograms |", "|---|---|---|"]
    base = seconds.get("fdadp DPAdditiveHistograms", float("nan"))
    lines += [f"| {method} | {value:.2f} | {value / base:.2f} |" for method, value in seconds.items()]
    return "\n".join(lines) + "\n"


SMALL = {"R2": "diabetes, R2, median", "ARI": "digits, ARI, median", "captured variance": "digits, captured, median"}


def small_sets(seeds: int, epsilons: list[float], python: Path, out: Path) -> str:
    """Linear regression, k-means and PCA beside diffprivlib's, on the small data sets of scikit-learn."""
    (diabetes, digits), _ = load(["diabetes", "digits"])
    arrays = {"digits": digits.X, "labels": digits.y}
    for seed in range(seeds):
        names = [f"{name}_{seed}" for name in ("X", "y", "X_test", "y_test")]
        arrays |= dict(zip(names, split_rows(diabetes, seed, 0), strict=True))
    ours = pd.concat([run(task, epsilons=epsilons, repeats=seeds) for task in (diabetes, digits)])
    ours = ours[ours["scheme"] == "private"].rename(columns={"repeat": "seed"})
    ours["method"] = "fdadp " + ours["learner"]
    columns = ["method", "metric", "epsilon", "seed", "score", "seconds"]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "small.npz", **arrays)
        command = [str(python), str(HERE / "peer_diffprivlib_small.py"), folder, str(seeds), *map(str, epsilons)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = ours[columns].to_dict("records") + [json.loads(r) for r in done.stdout.splitlines() if r.startswith("{")]
    results = pd.DataFrame(rows).astype({"score": float, "seconds": float})
    lines = [
        f"{seeds} splits or draws, fdadp {__version__} with delta 1e-5, add/remove; diffprivlib 0.6.6, pure epsilon as "
        "it claims (its k-means spends 2.28 times that in 64 dimensions). Same splits, same public bounds, one run.",
        "",
        "| | " + " | ".join(f"ε = {e:g}" for e in epsilons) + " | fit, s |",
        "|---" * (len(epsilons) + 2) + "|",
    ]
    for metric, title in SMALL.items():
        for method, part in results[results["metric"] == metric].groupby("method", sort=False):
            medians = part.groupby("epsilon")["score"].median()
            cells = " | ".join("no end in 10 s" if np.isnan(medians[e]) else f"{medians[e]:.3g}" for e in epsilons)
            lines.append(f"| {title}: {method} | {cells} | {part['seconds'].median():.3f} |")
    (out / "small.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    text = "\n".join(lines) + "\n"
    (out / "small.md").write_text(text, encoding="utf-8")
    return text


def unseen_sets(args: argparse.Namespace) -> None:
    """Write the tables of unseen data sets, of all of them or only those that were asked for."""
    import unseen

    path, page = args.out / "unseen.json", args.out / "unseen.md"
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    if args.learners:
        rows = unseen.again(recorded, args.learners, args.seeds, args.epsilon)
        old = page.read_text(encoding="utf-8").split("\n\n")[1:]
        notes = [*itertools.takewhile(lambda part: not part.startswith("|"), old)]
        notes.append(f"Rows of {', '.join(f'`{name}`' for name in args.learners)} were run at commit {commit}.")
        store(rows, unseen.tables(rows, args.seeds, notes), path, page)
        return
    pythons = {} if args.keep_peers else {name: environment(name, args.venvs) for name in PEERS}
    rows = unseen.run(args.seeds, args.epsilon, pythons, recorded=recorded if args.keep_peers else None, only=args.only)
    text = unseen.tables(rows, args.seeds, [f"Run at commit {commit}."])
    if args.only is None:
        store(rows, text, path, page)
    else:
        print(text)


def store(rows: list[dict[str, Any]], text: str, path: Path, page: Path) -> None:
    """Write rows and their tables."""
    print(text)
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="draws, or splits; default 3, with --unseen 4")
    parser.add_argument("--epsilon", type=float, nargs="+", help="default .01, .1, .5, 1 and 5; with --unseen from .1")
    parser.add_argument("--venvs", type=Path, default=HERE, help="folder of the peers' environments")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--only-small", action="store_true", help="only linear regression, k-means and PCA")
    parser.add_argument("--unseen", action="store_true", help="data sets that chose no constant")
    parser.add_argument("--keep-peers", action="store_true", help="with --unseen: the peers' recorded rows")
    parser.add_argument("--only", nargs="+", help="with --unseen: names of data sets, or kinds of task")
    parser.add_argument("--learners", nargs="+", help="with --unseen: run these of ours anew, keep all other rows")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    args.seeds = args.seeds or (4 if args.unseen else 3)
    args.epsilon = args.epsilon or ([] if args.unseen else [0.01]) + [0.1, 0.5, 1.0, 5.0]
    if args.unseen:
        unseen_sets(args)
        return
    print(small_sets(max(args.seeds, 5), args.epsilon, environment("diffprivlib", args.venvs), args.out))
    if args.only_small:
        return
    tasks, absent = load(["adult"], download=True)
    if absent:
        sys.exit(absent["adult"])
    task = tasks[0]
    run(task, epsilons=[1.0], repeats=1)  # compiles, which is not timed
    ours = run(task, epsilons=args.epsilon, repeats=args.seeds, progress=sys.stderr.isatty())
    ours = ours[ours["scheme"] == "private"]
    rows = [
        {"method": f"fdadp {r.learner}", "epsilon": r.epsilon, "seed": r.repeat, "accuracy": r.score}
        | {"auc": r.auc, "seconds": r.seconds}
        for r in ours.itertuples()
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(task, Path(folder))
        for name, script in PEERS.items():
            python = environment(name, args.venvs)
            command = [str(python), str(HERE / script), folder, str(args.seeds), *map(str, args.epsilon)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    results = pd.DataFrame(rows)
    about = (
        f"Adult, the source's split, {args.seeds} seeds, delta 1e-6 (diffprivlib: pure epsilon, as claimed), "
        f"add/remove, public bounds. fdadp {__version__}, diffprivlib 0.6.6, interpret-core 0.7.8, Python "
        f"{platform.python_version()}; all in one run on one machine.\n\n"
    )
    (args.out / "latest.md").write_text(about + table(results), encoding="utf-8")
    (args.out / "latest.json").write_text(json.dumps({"about": about.strip(), "rows": rows}, indent=1) + "\n")
    print(about + table(results))


if __name__ == "__main__":
    main()
