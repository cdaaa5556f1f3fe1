"""Experiments with many owners' principal components: captured variance and classification, against three base lines.

    python benchmarks/studies/federated_pca.py --owners 10

``benchmarks/federated`` uses it, too. The schemes:

* :data:`DPDPCA`: every owner's share of the noise, one sum (``Contract("pca", ...)``). Where it runs without masks,
  :func:`~fdadp.federated.federated_models.fit_in_clear` gives the same model bit for bit;
* :data:`LOCAL`: every owner's own noise, one owner after the other (PrivateLocalPCA);
* :data:`CENTRAL`: DPPCA of all rows in one trusted place;
* :data:`EXACT`, :data:`RANDOM`: without privacy, and without data.

The noise is seeded: these are simulations.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import typer
from rich import box
from rich.table import Table
from tqdm import tqdm

from fdadp._common.command_line_tools import console, no_window, plain_messages
from fdadp._common.typing import FloatArray
from fdadp.datasets._data_locations import load_present
from fdadp.demo.published_experiment import write_results
from fdadp.errors import InputError
from fdadp.federated import fit_together
from fdadp.federated.federated_models import fit_in_clear
from fdadp.federated.owner_chain_pca import PrivateLocalPCA
from fdadp.federated.run_contract import Contract
from fdadp.learners import DPPCA
from studies import scores
from studies.commands import command, run_each, say_absent, say_paths
from studies.federated_pca_plot import lines
from studies.federated_pca_tasks import TASKS, PCATask

DPDPCA, LOCAL, CENTRAL, EXACT, RANDOM = "DPDPCA", "PrivateLocalPCA", "central DPPCA", "no privacy", "random subspace"


def load(names: Sequence[str]) -> tuple[list[PCATask], dict[str, str]]:
    """Load those of :data:`TASKS` that are present, and say why others are missing; raises InputError."""
    return load_present(names, TASKS)


def split_rows(X: FloatArray, owners: int, rng: np.random.Generator) -> list[FloatArray]:
    """Rows in a random order, in as many parts of nearly equal size as there are owners."""
    return list(np.array_split(X[rng.permutation(len(X))], owners))


def contract(task: PCATask, epsilon: float, k: int, owners: int, **terms: Any) -> Contract:
    """DPDPCA of a data set; n_max is the next power of two above the number of rows, as a public guess would be."""
    settings = task.public | {"epsilon": float(epsilon), "n_components": k, "n_features": task.X.shape[1]}
    return Contract("pca", settings, owners, n_max=2 ** len(task.X).bit_length(), **terms)


def captured(
    task: PCATask,
    *,
    epsilons: Sequence[float] = (0.1, 0.5, 1.0, 5.0, 10.0),
    owners: Sequence[int] = (10,),
    n_components: int = 5,
    repeats: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Variance in private components, as a share of that in as many exact ones.

    Parameters
    ----------
    task : PCATask
    epsilons, owners : sequences
        All combinations; δ is the task's.
    n_components : int
    repeats : int
        Random splits of the rows over owners, each with its own noise.
    seed, progress
        As of :func:`studies.learners.run`.

    Returns
    -------
    DataFrame
        One row a fit: ``dataset``, ``scheme``, ``owners``, ``epsilon``, ``components``, ``repeat``, ``captured``.

    Raises
    ------
    InputError
        Settings out of range.
    """
    _check(epsilons, repeats, owners)
    k, covariance = n_components, np.cov(task.X.T)
    rows: list[dict[str, Any]] = []

    def add(scheme: str, components: FloatArray, **more: Any) -> None:
        ratio = scores.captured(covariance, components)
        rows.append({"dataset": task.name, "scheme": scheme, "components": k, **more, "captured": ratio})

    for repeat in tqdm(range(repeats), desc=task.name, disable=not progress):
        rng = np.random.default_rng([seed, repeat])
        noise = 1000 * seed + repeat
        add(RANDOM, _random_subspace(task.X.shape[1], k, rng), repeat=repeat)
        for epsilon in epsilons:
            common = {"epsilon": float(epsilon), "n_components": k, "random_state": noise, **task.public}
            add(CENTRAL, DPPCA(**common).fit(task.X).components_, epsilon=epsilon, repeat=repeat)
            for L in owners:
                parts = split_rows(task.X, L, rng)
                for scheme in (DPDPCA, LOCAL):
                    model = _fit(scheme, task, parts, epsilon, k, noise)
                    add(scheme, model.components_, owners=L, epsilon=epsilon, repeat=repeat)
    return pd.DataFrame(rows)


def classify(
    task: PCATask,
    *,
    grid: Sequence[tuple[int, int]] = ((20, 20), (50, 20), (200, 20)),
    epsilon: float = 5.0,
    repeats: int = 10,
    n_rows: int | None = None,
    machine_rows: int = 1000,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Score an RBF support vector machine on scores along private components.

    Only the components are private, as in the published experiment: the machine is fitted on exact rows in these axes.

    Parameters
    ----------
    task : PCATask
        Of several classes.
    grid : sequence of (int, int)
        Rows an owner, and components. All numbers of components come from the fit with the most.
    epsilon : float
    repeats : int
        Random choices of the rows, each with its own noise.
    n_rows : int, optional
        Rows of all owners together; default: all there are (80 % where the data have no test rows of their own).
    machine_rows : int
        At most so many of them train the machine, and so many test rows score it: it is what takes the time.
    seed, progress
        As in :func:`captured`.

    Returns
    -------
    DataFrame
        One row a machine: ``dataset``, ``scheme``, ``rows_per_owner``, ``owners``, ``components``, ``epsilon``,
        ``repeat``, ``precision``, ``recall``, ``f1`` (macro averages on the test rows).

    Raises
    ------
    InputError
        Settings out of range.
    """
    _check([epsilon], repeats, [2])
    most = max(k for _, k in grid)
    rows: list[dict[str, Any]] = []
    for repeat in tqdm(range(repeats), desc=task.name, disable=not progress):
        rng = np.random.default_rng([seed, repeat])
        X, y, X_test, y_test = _split(task, n_rows, rng)
        machine = X[:machine_rows], y[:machine_rows], X_test[:machine_rows], y_test[:machine_rows]
        common = {"dataset": task.name, "epsilon": epsilon, "repeat": repeat}
        exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:most]
        bases = {EXACT: exact, RANDOM: _random_subspace(X.shape[1], most, rng)}
        for k in sorted({k for _, k in grid}):
            for scheme, components in bases.items():
                scored = _svm(components[:k], *machine)
                rows.append(common | {"scheme": scheme, "components": k} | scored)
        for size in sorted({size for size, _ in grid}):
            parts = list(np.array_split(X, max(len(X) // size, 2)))
            for scheme in (DPDPCA, LOCAL):
                model = _fit(scheme, task, parts, epsilon, most, 1000 * seed + repeat)
                for k in sorted(k for s, k in grid if s == size):
                    scored = _svm(model.components_[:k], *machine)
                    where = {"rows_per_owner": size, "owners": len(parts), "components": k}
                    rows.append(common | {"scheme": scheme} | where | scored)
    return pd.DataFrame(rows)


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats of :func:`captured` or :func:`classify`.

    Returns
    -------
    DataFrame
        One row per data set, scheme and setting; measures as ``captured``, ``captured_sd``, ...; ``repeats``.
    """
    measures = [name for name in ("captured", "precision", "recall", "f1") if name in results]
    keys = [name for name in results if name not in (*measures, "repeat")]
    named = {m: (m, "mean") for m in measures} | {f"{m}_sd": (m, "std") for m in measures}
    grouped = results.groupby(keys, dropna=False, sort=False)
    return grouped.agg(repeats=("repeat", "nunique"), **named).reset_index()


def _fit(scheme: str, task: PCATask, parts: Sequence[FloatArray], epsilon: float, k: int, seed: int) -> Any:
    if scheme == DPDPCA:
        return fit_in_clear(contract(task, epsilon, k, len(parts)), [(x,) for x in parts], random_state=seed)
    model = PrivateLocalPCA(epsilon=float(epsilon), n_components=k, random_state=seed, **task.public)
    return model.fit(parts)


def _random_subspace(d: int, k: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(np.linalg.qr(rng.standard_normal((d, k)))[0].T)


def _split(task: PCATask, n_rows: int | None, rng: np.random.Generator) -> Iterator[Any]:
    """Training rows and labels, test rows and labels."""
    order = rng.permutation(len(task.X))
    if task.X_test is None:
        cut = int(0.8 * len(order))
        order, test = order[:cut], order[cut:]
        X_test, y_test = task.X[test], task.y[test]
    else:
        test = rng.permutation(len(task.X_test))
        X_test, y_test = task.X_test[test], task.y_test[test]
    order = order[:n_rows]
    yield from (task.X[order], task.y[order], X_test, y_test)


def _svm(components: FloatArray, X: FloatArray, y: Any, X_test: FloatArray, y_test: Any) -> dict[str, float]:
    from sklearn.metrics import precision_recall_fscore_support
    from sklearn.svm import SVC

    found = SVC(kernel="rbf").fit(X @ components.T, y).predict(X_test @ components.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is never predicted counts 0
        scores = precision_recall_fscore_support(y_test, found, average="macro")[:3]
    return dict(zip(("precision", "recall", "f1"), map(float, scores), strict=True))


def _check(epsilons: Sequence[float], repeats: int, owners: Sequence[int]) -> None:
    scores.check_settings(epsilons, repeats)
    if not owners or any(L < 2 for L in owners):
        raise InputError(f"owners must be at least 2, got {owners!r}")


def main(
    dataset: Annotated[
        list[str], typer.Option(help="digits, australian, diabetes, german, ionosphere, isolet, cnae9.")
    ] = ["digits"],  # noqa: B006
    owners: Annotated[list[int], typer.Option(help="How many there are, one or several.")] = [10],  # noqa: B006
    epsilon: Annotated[list[float], typer.Option(help="One or several.")] = [0.1, 0.5, 1.0, 5.0, 10.0],  # noqa: B006
    components: Annotated[int, typer.Option(help="Number of components.")] = 5,
    repeats: Annotated[int, typer.Option(help="Random splits over owners, and draws of the noise.")] = 5,
    masks: Annotated[bool, typer.Option(help="Carry one run out with masks too.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-pca"),
    seed: Annotated[int, typer.Option(help="Seed of splits and noise.")] = 0,
) -> None:
    """Principal components of many owners: variance captured by DPDPCA, PrivateLocalPCA and one trusted place.

    First one run of DPDPCA with masks between owners; then many without them, of the same integers. The noise of the
    latter is seeded, for simulation.
    """
    no_window()
    with plain_messages():
        tasks, absent = load(dataset)
        say_absent(tasks, absent, dataset)
        screen = console()
        if masks:
            for task in tasks:
                typer.echo(_one_run(contract(task, epsilon[-1], components, owners[0]), task))
        sizes = {"owners": owners, "n_components": components, "repeats": repeats}
        drawn = {"seed": seed, "progress": sys.stderr.isatty()}
        results = run_each(tasks, captured, epsilons=epsilon, **sizes, **drawn)
        table = summarise(results)
        for task in tasks:
            screen.print(_table(table[table["dataset"] == task.name], task.about))
        settings = {
            "datasets": {task.name: {"public": task.public, "rows": task.about} for task in tasks},
            "epsilon": epsilon,
            "owners": owners,
            "repeats": repeats,
            "seed": seed,
            "note": "totals added up in clear, the same integers as with masks; seeded noise, for simulation",
        }
        named = table.assign(scheme=table["scheme"] + table["owners"].map(_of_owners))

        def figure() -> Any:
            return lines(named, "epsilon", "captured", labels=("ε", "captured variance"))

        say_paths(write_results(out, results, table, settings, figure, "pca.png"))


def _one_run(terms: Any, task: Any) -> str:
    """Carry out one run with masks and randomness of the system, and say what it took."""
    parts = split_rows(task.X, terms.owners, np.random.default_rng())
    start = time.perf_counter()
    model = fit_together(terms, [(part,) for part in parts])
    seconds = time.perf_counter() - start
    share = scores.captured(np.cov(task.X.T), model.components_)
    return (
        f"{task.name}, with masks: {terms.owners} owners, {seconds:.1f} s for all together, captured {share:.3f} at "
        f"epsilon = {model.epsilon:g}\n"
        f"{model.ledger_.headline}"
    )


def _table(part: pd.DataFrame, about: str) -> Table:
    """ε across, schemes and owners down."""
    first = part.iloc[0]
    title = (
        f"{first['dataset']}: variance in {first['components']} components, as a share of that in exact ones; "
        f"{int(first['repeats'])} repeats, mean (sd); {about}"
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("scheme")
    table.add_column("owners", justify="right")
    epsilons = sorted(part["epsilon"].dropna().unique())
    for e in epsilons:
        table.add_column(f"ε = {e:g}", justify="right")
    for (scheme, owners), line in part.groupby(["scheme", "owners"], sort=False, dropna=False):
        cells = [line[line["epsilon"].isna() | (line["epsilon"] == e)] for e in epsilons]
        texts = (f"{c['captured'].iloc[0]:.3f} ({c['captured_sd'].fillna(0).iloc[0]:.3f})" for c in cells)
        table.add_row(str(scheme), "" if owners != owners else f"{owners:.0f}", *texts)
    return table


def _of_owners(owners: float) -> str:
    return "" if owners != owners else f", {owners:.0f} owners"


app = command(main)

if __name__ == "__main__":
    app()
