"""Principal components of many owners: costs of Paillier, running time, classification, captured variance.

    python benchmarks/federated/pca.py [costs] [time] [f1] [variance] [--repeats 10]

Each study writes results/pca-<study>.json, .md and, but for costs, .png; without a name all four run, one after the
other: some ten minutes of one core. Times are CPU seconds of one thread (time.process_time), so that other work on the
machine does not count. Noise is that of releases (OpenDP) wherever time is measured, seeded where accuracy is.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from paillier_costs import SPECIFIED, WIDTH, costs

from fdadp._version import __version__
from fdadp.federated import Contract, Federation
from fdadp.federated.owner_chain_pca import PrivateLocalPCA
from fdadp.federated.paillier import ciphertexts, keys
from fdadp.plot._matplotlib_figures import save_figure
from fdadp.privacy.noise.distributed import NextRound

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies import federated_pca as study
from studies.federated_pca_plot import lines

RESULTS = Path(__file__).resolve().parent / "results"


# --------------------------------------------------------------------------------------------------- time --


class Timed(Federation):
    """A run whose parties' CPU time is kept apart."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spent: dict[str, float] = {}

    def exchange(self, requests: Mapping[str, bytes], timeout: float | None = None) -> dict[str, list[bytes]]:
        replies = {}
        for name, request in requests.items():
            start = time.process_time()
            replies |= super().exchange({name: request}, timeout)
            self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - start
        return replies


def running_time(owners: tuple[int, ...] = (10, 30, 100, 300, 1000), per_owner: int = 50) -> dict[str, Any]:
    """Every owner really computes; owners work at the same time, so the slowest one counts, once."""
    (task,), _ = study.load(["australian"])
    secret = keys(2048)
    out = []
    for count in owners:
        rng = np.random.default_rng(count)
        parts = [task.X[rng.integers(0, len(task.X), per_owner)] for _ in range(count)]
        settings = task.public | {"epsilon": 1.0, "n_components": 5, "n_features": task.X.shape[1]}
        terms = Contract("pca", settings, count, n_max=2 ** (count * per_owner).bit_length(), key_bits=2048)
        federation = Timed(terms, [(x,) for x in parts], key=secret)
        waits = _first_release(terms)
        amount = ciphertexts(waits.size, waits.width, 2048)
        before = []
        for owner in federation.owners:
            start = time.process_time()
            owner.prepare(secret.public, amount)
            before.append(time.process_time() - start)
        start = time.process_time()
        federation.run()
        everything = time.process_time() - start
        answering = federation.spent
        ready = np.array([answering[name] for name in terms.names])
        start = time.process_time()
        PrivateLocalPCA(epsilon=1.0, n_components=5, **task.public).fit(parts)
        chain = time.process_time() - start
        sent = next(len(data) for name, _, data in federation.traffic if name == "owner-1")
        proxy, user = everything - sum(answering.values()), answering["user"]
        out.append(
            {
                "owners": count,
                "ciphertexts": amount,
                "slowest owner s": float((ready + before).max()),
                "median owner s": float(np.median(ready + before)),
                "slowest owner, r^n there s": float(ready.max()),
                "median owner, r^n there s": float(np.median(ready)),
                "proxy s": proxy,
                "user s": user,
                "DPDPCA s": float((ready + before).max()) + proxy + user,
                "DPDPCA, r^n there s": float(ready.max()) + proxy + user,
                "PrivateLocalPCA s": chain,
                "upload of an owner kB": sent / 1e3,
                "download of the proxy MB": sent * count / 1e6,
            }
        )
        print(out[-1], file=sys.stderr, flush=True)
    return {"rows an owner": per_owner, "features": task.X.shape[1], "key bits": 2048, "runs": out}


def _first_release(terms: Contract) -> NextRound:
    from fdadp.federated.federated_models import fit

    waits = fit(terms, None, [])
    assert isinstance(waits, NextRound)
    return waits


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
    import gmpy2
    import phe
    import sklearn

    return {
        "fdadp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "phe": phe.__version__,
        "gmpy2": gmpy2.version(),
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


def report_costs() -> None:
    """Table of Paillier's costs."""
    found = costs()
    operations = pd.DataFrame(found["operations"])
    names = ("encrypt ms", "encrypt, r^n there ms", "decrypt ms", "add ms", "64-bit scalar ms")
    for name, column in zip(names, zip(*SPECIFIED.values(), strict=True), strict=True):
        operations[f"{name[:-3]}: specification ms"] = column
    matrices = pd.DataFrame(found["matrices"])
    packed, single = matrices.iloc[0], matrices[matrices["packing"] == "none"].iloc[0]
    faster = single["owner s"] / packed["owner s"]
    large = ciphertexts(618 * 619 // 2, WIDTH, 2048)
    seconds = large * found["operations"][0]["encrypt ms"] / 1e3
    text = (
        "# Paillier\n\nCPU time of one operation, and what the specification of the protocol had measured. Other work "
        "on the same cores, as in the recorded run, makes CPU times somewhat longer.\n\n"
        + markdown(operations.set_index("bits").T.reset_index().rename(columns={"index": "key bits"}))
        + "\nThe upper triangle of rows with a constant added, end to end: packed and encrypted by an owner, added up "
        "by the proxy for 2 owners (1 without packing; slots are wide enough for the sum), decrypted and unpacked; "
        f"{WIDTH} bits a value. `owner s`: the faster of the owners. `exact`: equal to the sum of the plain "
        "integers.\n\n"
        + markdown(matrices)
        + f"\nPacking makes an owner's encryption of the 54 x 54 matrix {faster:.0f} times faster. A 617 x 617 matrix "
        f"(ISOLET) of this width takes {large} ciphertexts at 2048 bits: {seconds:.0f} s of an owner by "
        "the time of one encryption (not run).\n"
    )
    write("costs", {**found, "packing is faster by": faster}, text)


def report_time() -> None:
    """Running time against the number of owners."""
    found = running_time()
    runs = pd.DataFrame(found["runs"])
    text = (
        "# Running time against the number of owners\n\n"
        f"CPU seconds of one thread; {found['rows an owner']} rows an owner, {found['features']} features (Australian "
        "credit, rows drawn with replacement), 2048 bits, noise of OpenDP. All owners ran, one after the other in one "
        "process, each on its own clock. DPDPCA: its owners work at the same time, so the time of a run is that of the "
        "slowest owner, the proxy and the user together. `r^n there`: the random factors, which need the key and no "
        "data, were computed before. PrivateLocalPCA is a chain: all its owners' times add up. Other work on the same "
        "cores, as in the recorded run, makes CPU times somewhat longer. Transport is left out: "
        "DPDPCA waits for eight messages one after the other (key, shares, total, model: four questions and answers), "
        "whatever the number of owners, PrivateLocalPCA for one from each owner but the last.\n\n" + markdown(runs)
    )
    write("time", found, text)
    long = runs.melt("owners", ["DPDPCA s", "DPDPCA, r^n there s", "PrivateLocalPCA s"], "scheme", "seconds")
    long = long.assign(scheme=long["scheme"].str[:-2], dataset="14 features, 50 rows an owner")
    save_figure(lines(long, "owners", "seconds", labels=("owners", "CPU seconds"), log="xy"), RESULTS / "pca-time.png")


IN_CLEAR = (
    "DPDPCA here is the protocol's integers added up in clear, without encryption: the model is the same bit for bit "
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
    parser.add_argument("study", nargs="*", default=["costs", "time", "f1", "variance"])
    parser.add_argument("--repeats", type=int, default=10, help="of f1 and variance")
    given = parser.parse_args()
    reports = {
        "costs": report_costs,
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
