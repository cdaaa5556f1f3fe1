"""Hospitals that fit one private regression together, beside each alone and beside all curves in one place."""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import typer
from rich import box
from rich.table import Table
from tqdm.auto import tqdm

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp._common.command_line_tools import console, no_window, plain_messages
from fdadp.datasets import SimulatedCurves
from fdadp.demo.published_experiment import write_results
from fdadp.errors import ExtrapolationWarning, InputError, PrivacyError
from fdadp.federated import federated_models
from fdadp.federated.owners.one_process import owners_of, run_to_end
from fdadp.federated.owners.signed_messages import SignedMessage, split
from fdadp.federated.run_contract import Contract
from studies.commands import command, say_paths

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
"""Public ranges of the simulated curves."""
_NAMES = itertools.count(1)
_ALONE = 3
"""So many owners are fitted alone; the others would cost time and tell the same."""


def compare(
    owners: Sequence[int] = (2, 5, 10),
    *,
    n: int = 3000,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    mechanism: str = "dp-aff",
    scenario: int = 2,
    repeats: int = 1,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Explained share of the mean responses of 500 new people: a federation, its owners alone, all in one place.

    Parameters
    ----------
    owners : sequence of int
        Numbers of hospitals among which the same people are divided evenly.
    n : int
        People in all, declared.
    epsilon, delta : float
    mechanism : {"dp-aff", "moments"}
    scenario, seed : int
        See :func:`fdadp.simulate_affr`. Only the curves are seeded: the noise is the real one.
    repeats : int
        Simulated cohorts.

    Returns
    -------
    DataFrame
        ``how`` ("together", "alone", "one place", "no privacy"), ``owners`` (0: does not apply), ``repeat``,
        ``explained`` (missing where a fit is refused as hopeless), ``seconds`` (all parties one after the other, in
        this process), ``releases`` and ``kilobytes`` (sent by one owner).
    """
    rows: list[dict[str, Any]] = []
    with tqdm(total=repeats * (len(owners) + 1), disable=not progress, desc="federated regression") as bar:
        for repeat in range(repeats):
            people = simulate_affr(scenario, n, np.random.SeedSequence([seed, repeat, 0]))
            others = simulate_affr(scenario, 500, np.random.SeedSequence([seed, repeat, 1]))
            study = _Study(people, others, owners, epsilon=epsilon, delta=delta, mechanism=mechanism)
            rows += [{**row, "repeat": repeat} for row in study.in_one_place()]
            bar.update()
            for count in owners:
                rows += [{**row, "repeat": repeat} for row in (study.together(count), study.alone(count))]
                bar.update()
    return pd.DataFrame(rows)


class _Study:
    """One simulated cohort, and the fits to it."""

    def __init__(
        self,
        people: SimulatedCurves,
        others: SimulatedCurves,
        owners: Sequence[int],
        **terms: Any,
    ) -> None:
        self.X, self.Y = (curves.data_matrix[..., 0] for curves in (people.X, people.Y))
        self.s, self.t, self.others = people.s, people.t, others
        self.terms = terms
        grids = {"s": self.s.tolist(), "t": self.t.tolist()}
        settings, n = {**terms, "bounds": BOUNDS, **grids, "n": len(self.X)}, len(self.X)
        self.contracts = {  # made first: what is wrong with one is said before anything is fitted
            count: Contract("regression", settings, count, n_max=n) for count in owners
        }

    def explained(self, model: Any) -> float:
        """Share of the variance of the new people's noiseless responses that the predictions explain."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            predicted = np.asarray(model.predict(self.others.X.data_matrix[..., 0]))
        truth = self.others.mean_function
        return 1 - float(((truth - predicted) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum())

    def private(self, X: Any, Y: Any) -> Any:
        """Fit privately to curves that one trusted custodian holds."""
        name = f"simulated people, {next(_NAMES)}"  # whose budgets have nothing to do with one another
        privacy = Privacy(self.terms["epsilon"], self.terms["delta"], n=len(X), dataset=name)
        model = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=self.terms["mechanism"])
        return model.fit(X, Y, s=self.s, t=self.t)

    def in_one_place(self) -> list[dict[str, Any]]:
        """All curves with one trusted custodian, with and without privacy."""
        ordinary = AdditiveFunctionOnFunction(n_basis_x=12, n_components=8, progress=False)
        start = time.process_time()
        private = self.private(self.X, self.Y)
        seconds = time.process_time() - start
        return [
            {"how": "one place", "owners": 0, "explained": self.explained(private), "seconds": seconds},
            {
                "how": "no privacy",
                "owners": 0,
                "explained": self.explained(ordinary.fit(self.X, self.Y, s=self.s, t=self.t)),
            },
        ]

    def together(self, owners: int) -> dict[str, Any]:
        """Fit in a federation of so many owners."""
        parts = zip(np.array_split(self.X, owners), np.array_split(self.Y, owners), strict=True)
        start = time.process_time()
        run = run_to_end(owners_of(self.contracts[owners], list(parts)))
        model = federated_models.fit(run.contract, None, run.totals_)
        return {
            "how": "together",
            "owners": owners,
            "explained": self.explained(model),
            "seconds": time.process_time() - start,
            "releases": len(model.ledger_.releases),
            "kilobytes": sum(len(split(SignedMessage.from_bytes(r).body, owners)[0]) for r in run.requests_) / 1e3,
        }

    def alone(self, owners: int) -> dict[str, Any]:
        """Each of the first few owners with its own people only; the mean of their shares."""
        found = []
        for X, Y in list(zip(np.array_split(self.X, owners), np.array_split(self.Y, owners), strict=True))[:_ALONE]:
            try:
                found.append(self.explained(self.private(X, Y)))
            except PrivacyError:  # hopeless for so few people: public, before a read
                found.append(np.nan)
        return {"how": "alone", "owners": owners, "explained": float(np.mean(found))}


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats, one row for each way and number of owners."""
    groups = results.groupby(["how", "owners"], sort=False)
    table = groups[["explained", "seconds", "releases", "kilobytes"]].mean()
    table.insert(1, "sd", groups["explained"].std())
    return table.reset_index()


def plot_comparison(results: pd.DataFrame) -> Any:
    """Figure of :func:`compare`: explained share against the number of owners."""
    from fdadp.plot import PALETTE
    from fdadp.plot._matplotlib_figures import pyplot

    table = summarise(results)
    figure, axis = pyplot().subplots(figsize=(6, 3.6), layout="constrained")
    for colour, how in zip(PALETTE, ("together", "alone"), strict=False):
        part = table[table["how"] == how]
        axis.errorbar(part["owners"], part["explained"], part["sd"].fillna(0), marker="o", color=colour, label=how)
    for style, how in (("--", "one place"), (":", "no privacy")):
        level = float(table.loc[table["how"] == how, "explained"].iloc[0])
        axis.axhline(level, color="0.4", linestyle=style, label=how)
    axis.set(xlabel="owners", ylabel="explained share", ylim=(min(0.0, table["explained"].min()) - 0.02, 1.02))
    axis.legend(frameon=False)
    return figure


def main(
    owners: Annotated[list[int], typer.Option(help="Numbers of hospitals that share the people.")] = [2, 5, 10],  # noqa: B006
    n: Annotated[int, typer.Option(help="People in all.")] = 3000,
    epsilon: Annotated[float, typer.Option(help="Budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of (ε, δ); must be given, as 1e-6.")] = 0.0,
    mechanism: Annotated[str, typer.Option(help="dp-aff (32 rounds), or moments (18, less accurate).")] = "dp-aff",
    repeats: Annotated[int, typer.Option(help="Simulated cohorts.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-regression"),
    seed: Annotated[int, typer.Option(help="Seed of the simulated curves; the noise is the real one.")] = 0,
) -> None:
    """Hospitals fit one function-on-function regression: together, each alone, and with all curves in one place."""
    no_window()
    with plain_messages():
        if not delta:
            raise InputError("--delta must be given, as 1e-6: sums of many owners carry Gaussian noise, got 0")
        settings = {"n": n, "epsilon": epsilon, "delta": delta, "mechanism": mechanism, "seed": seed}
        common = {**settings, "repeats": repeats, "progress": sys.stderr.isatty()}
        results = compare(owners, **common)  # type: ignore[arg-type]
        table = summarise(results)
        console().print(_plain_table(table, f"{n} people, {mechanism}, epsilon {epsilon:g}, delta {delta:g}"))
        figure = partial(plot_comparison, results)
        say_paths(write_results(out, results, None, settings, figure, "explained.png"))


def _plain_table(frame: pd.DataFrame, title: str) -> Table:
    """Numbers with three digits, gaps where there is nothing to say."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in frame:
        table.add_column(str(column), justify="left" if frame[column].dtype == object else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*("" if v != v else v if isinstance(v, str) else f"{v:.3g}" for v in row))
    return table


app = command(main)

if __name__ == "__main__":
    app()
