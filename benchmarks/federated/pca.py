"""Principal components of many owners: running time, classification, captured variance.

    python benchmarks/federated/pca.py [time] [f1] [variance] [--repeats 10]

Each study writes results/pca-<study>.json, .md and .png; without a name all three run, one after the
other: some ten minutes of one core. Times are CPU seconds of one thread (time.process_time), so that other work on the
machine does not count. Noise is that of releases (OpenDP) wherever time is measured, seeded where accuracy is.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from fdadp._version import __version__
from fdadp.federated import Contract, fit_together
from fdadp.federated.owner_chain_pca import PrivateLocalPCA
from fdadp.federated.owners.coordinator import Coordinator
from fdadp.federated.owners.one_process import owners_of
from fdadp.federated.owners.signed_messages import SignedMessage, split
from fdadp.plot._matplotlib_figures import save_figure

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies import federated_pca as study
from studies.federated_pca_plot import lines

RESULTS = Path(__file__).resolve().parent / "results"


# --------------------------------------------------------------------------------------------------- time --


def running_time(owners: tuple[int, ...] = (10, 30, 100), per_owner: int = 50) -> dict[str, Any]:
    """Every owner really computes; owners work at the same time, so the slowest one counts, once."""
    (task,), _ = study.load(["australian"])
    fit_together(study.contract(task, 1.0, 5, 2), [(x,) for x in np.array_split(task.X, 2)])  # imports what it needs
    out = []
    for count in owners:
        rng = np.random.default_rng(count)
        parts = [task.X[rng.integers(0, len(task.X), per_owner)] for _ in range(count)]
        settings = task.public | {"epsilon": 1.0, "n_components": 5, "n_features": task.X.shape[1]}
        terms = Contract("pca", settings, count, n_max=2 ** (count * per_owner).bit_length())
        spent = [0.0] * count
        parties = owners_of(terms, [(x,) for x in parts])
        begun = time.process_time()
        coordinator = Coordinator(parties[0].contract)
        while not coordinator.done_:
            asked = coordinator.asked
            for number in sorted(coordinator.missing):
                party, start = parties[number - 1], time.process_time()
                answer = party.answer(asked) if asked else party.consent()
                spent[number - 1] += time.process_time() - start
                coordinator.take(number, answer)
        rest = time.process_time() - begun - sum(spent)
        start = time.process_time()
        PrivateLocalPCA(epsilon=1.0, n_components=5, **task.public).fit(parts)
        chain = time.process_time() - start
        sent = sum(len(split(SignedMessage.from_bytes(r).body, count)[0]) for r in coordinator.requests_)
        out.append(
            {
                "owners": count,
                "slowest owner s": max(spent),
                "median owner s": float(np.median(spent)),
                "coordinator s": rest,
                "DPDPCA s": max(spent) + rest,
                "PrivateLocalPCA s": chain,
                "upload of an owner kB": sent / 1e3,
                "download of an owner kB": sum(map(len, coordinator.requests_)) / 1e3,
            }
        )
        print(out[-1], file=sys.stderr, flush=True)
    return {"rows an owner": per_owner, "features": task.X.shape[1], "runs": out}


# ------------------------------------------------------------------------------------------------ accuracy --

F1 = {
    "cnae9": {"grid": [(29, 10), (58, 10), (86, 10), *((86, k) for k in (2, 5, 20, 40))], "epsilon": 10.0},
    "isolet": {
        "grid": [(50, 10), (100, 10), (200, 10), *((200, k) for k in (2, 5, 20, 40))],
        "epsilon": 5.0,
        "n_rows": 2000,
    },
}
VARIANCE = ("australian", "diabetes", "german", "ionosphere", "digits")


def f1(repeats: int) -> pd.DataFrame:
    """Macro F1 of an RBF support vector machine on private components."""
    tasks, absent = study.load(list(F1))
    print(*(f"skipped {name}: {why}" for name, why in absent.items()), sep="\n", file=sys.stderr)
    parts = [study.classify(task, repeats=repeats, progress=True, **F1[task.name]) for task in tasks]
    return pd.concat(parts, ignore_index=True)


def variance(repeats: int) -> pd.DataFrame:
    """Captured variance of five components against ε, 10 owners."""
    tasks, absent = study.load(VARIANCE)
    print(*(f"skipped {name}: {why}" for name, why in absent.items()), sep="\n", file=sys.stderr)
    return pd.concat([study.captured(task, repeats=repeats, progress=True) for task in tasks], ignore_index=True)


# ------------------------------------------------------------------------------------------------- reports --


def markdown(table: pd.DataFrame, digits: str = ".3g") -> str:
    """Table of numbers and words."""

    def cell(value: Any) -> str:
        return format(value, digits) if isinstance(value, float) else str(value)

    head = [str(name) for name in table.columns]
    rows = [[cell(v) for v in row] for row in table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]) + "\n"


def pivot(table: pd.DataFrame, measure: str, across: str, down: list[str]) -> str:
    """Mean (sd), one column a value of `across`, base lines without one in each column."""
    values = sorted(table[across].dropna().unique())
    rows = []
    for names, line in table.groupby(down, sort=False, dropna=False):
        row: dict[str, Any] = {k: "" if v != v else v for k, v in zip(down, names, strict=True)}
        for value in values:
            at = line[line[across].isna() | (line[across] == value)]
            sd = 0.0 if at.empty else at[f"{measure}_sd"].fillna(0).iloc[0]
            row[f"{across} {value:g}"] = "" if at.empty else f"{at[measure].iloc[0]:.3f} ({sd:.3f})"
        rows.append(row)
    return markdown(pd.DataFrame(rows))


def about() -> dict[str, Any]:
    """Where and with what."""
    import sklearn

    return {
        "fdadp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": platform.processor() or platform.machine(),
    }


def write(name: str, data: dict[str, Any], text: str) -> None:
    """JSON and Markdown."""
    RESULTS.mkdir(exist_ok=True)
    versions = about()
    (RESULTS / f"pca-{name}.json").write_text(json.dumps({"about": versions, **data}, indent=1) + "\n")
    foot = ", ".join(f"{k} {v}" for k, v in versions.items())
    (RESULTS / f"pca-{name}.md").write_text(f"{text}\n{foot}. Made by `python benchmarks/federated/pca.py {name}`.\n")
    print(text)


def report_time() -> None:
    """Running time against the number of owners."""
    found = running_time()
    runs = pd.DataFrame(found["runs"])
    text = (
        "# Running time against the number of owners\n\n"
        f"CPU seconds of one thread; {found['rows an owner']} rows an owner, {found['features']} features (Australian "
        "credit, rows drawn with replacement), noise of OpenDP. All owners ran, one after the other in one process, "
        "each on its own clock. DPDPCA: its owners work at the same time, so the time of a run is that of the slowest "
        "owner and of the coordinator, who checks signatures, together. PrivateLocalPCA is a chain: all its owners' "
        "times add up. Other work on the same cores, as in the recorded run, makes CPU times somewhat longer. "
        "Transport is left out: DPDPCA waits for eight messages one after the other (consent, ready, share, model: "
        "four questions and answers), whatever the number of owners, PrivateLocalPCA for one from each owner but the "
        "last.\n\n" + markdown(runs)
    )
    write("time", found, text)
    long = runs.melt("owners", ["DPDPCA s", "PrivateLocalPCA s"], "scheme", "seconds")
    long = long.assign(scheme=long["scheme"].str[:-2], dataset="14 features, 50 rows an owner")
    save_figure(lines(long, "owners", "seconds", labels=("owners", "CPU seconds"), log="xy"), RESULTS / "pca-time.png")


IN_CLEAR = (
    "DPDPCA here is the protocol's integers added up in clear, without masks: the model is the same bit for bit "
    "(tested). Noise is seeded, for simulation."
)


def report_f1(repeats: int) -> None:
    """Classification against rows of an owner and number of components."""
    table = study.summarise(f1(repeats))
    text = f"# Classification on private components\n\nMacro averages of an RBF support vector machine, {repeats} runs "
    text += (
        "(random choices of rows and draws of the noise), mean (sd). Only the components are private; the machine is "
        f"trained on at most 1000 exact rows in these axes and scored on at most 1000 others. {IN_CLEAR}\n"
    )
    for name, part in table.groupby("dataset", sort=False):
        most = {"cnae9": 86, "isolet": 200}[str(name)]
        text += f"\n## {name}, ε = {F1[str(name)]['epsilon']:g}, δ = 1e-5\n"
        for measure in ("f1", "precision", "recall"):
            fixed = part[(part["components"] == 10)]
            text += f"\n{measure}, 10 components, against rows an owner:\n\n"
            text += pivot(fixed, measure, "rows_per_owner", ["dataset", "scheme"])
        by_k = part[part["rows_per_owner"].isna() | (part["rows_per_owner"] == most)]
        text += f"\nf1, {most} rows an owner, against number of components:\n\n"
        text += pivot(by_k, "f1", "components", ["dataset", "scheme"])
    write("f1", {"settings": {k: str(v) for k, v in F1.items()}, "table": _records(table)}, text)
    fixed = table[table["components"] == 10].assign(panel=lambda t: t["dataset"] + ", 10 components")
    labels = ("rows an owner", "macro F1")
    save_figure(lines(fixed, "rows_per_owner", "f1", labels=labels, panel="panel"), RESULTS / "pca-f1-rows.png")
    many = table["rows_per_owner"].isna() | table["rows_per_owner"].isin([86, 200])
    figure = lines(table[many], "components", "f1", labels=("components", "macro F1"))
    save_figure(figure, RESULTS / "pca-f1-components.png")


def report_variance(repeats: int) -> None:
    """Captured variance against ε."""
    table = study.summarise(variance(repeats))
    text = (
        "# Captured variance against ε\n\nVariance in five private components as a share of that in five exact ones, "
        f"10 owners, δ = 1e-5, {repeats} random splits over owners and draws of the noise, mean (sd). Public bounds as "
        f"in `benchmarks/studies/federated_pca_tasks.py`. {IN_CLEAR}\n\n"
        + pivot(table, "captured", "epsilon", ["dataset", "scheme"])
    )
    write("variance", {"table": _records(table)}, text)
    save_figure(lines(table, "epsilon", "captured", labels=("ε", "captured variance")), RESULTS / "pca-variance.png")


def _records(table: pd.DataFrame) -> Any:
    return json.loads(table.to_json(orient="records", double_precision=6))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="*", default=["time", "f1", "variance"])
    parser.add_argument("--repeats", type=int, default=10, help="of f1 and variance")
    given = parser.parse_args()
    reports = {
        "time": report_time,
        "f1": lambda: report_f1(given.repeats),
        "variance": lambda: report_variance(given.repeats),
    }
    for name in given.study:
        if name not in reports:
            parser.error(f"study must be one of {', '.join(reports)}, got {name}")
        reports[name]()


if __name__ == "__main__":
    main()
