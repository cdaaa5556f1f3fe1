"""Accuracy of logistic regression in the local model against ε_LDP, and the error of one round's gradient.

    python benchmarks/studies/local_logistic.py --dataset adult

The coins are seeded: these are simulations. Base lines: the same descent
on exact gradients, scikit-learn's logistic regression, and the larger class.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
import typer
from scipy.special import expit
from tqdm import tqdm

from fdadp._common.command_line_tools import console, no_window, plain_messages
from fdadp._common.typing import FloatArray, IntArray
from fdadp.datasets._data_locations import load_present
from fdadp.errors import InputError
from fdadp.federated.local_dp.gradient_randomizers import MECHANISMS, Coins
from fdadp.federated.local_dp.parameters_and_server import LocalParameters, LocalServer
from fdadp.federated.local_dp.user_gradients import LocalUsers
from fdadp.federated.local_dp_logistic import LDPLogisticRegression, default_lr, division
from fdadp.learners.shared.public_encoding import Numeric, PublicEncoder
from studies.commands import command, run_each, say_absent, say_paths
from studies.learner_tasks import TASKS, Task
from studies.learners import NO_PRIVACY, TRIVIAL, summarise
from studies.learners_report import print_learners, write_learners
from studies.scores import check_settings, noise_seed, split_rows

ERROR = "error of one round's gradient"
_DRAWS = 10
"""Rounds whose error makes one score."""


def load(names: Sequence[str], *, download: bool = False) -> tuple[list[Task], dict[str, str]]:
    """Load ``"adult"`` or ``"bank"``, where present, as :func:`studies.learners.load` does."""
    wanted = {name: TASKS[name] for name in ("adult", "bank")}
    return load_present(names, wanted, download=download)


def run(
    task: Task,
    *,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 6.0, 12.0),
    mechanisms: Sequence[str] = tuple(MECHANISMS),
    owners: int | None = None,
    n_rounds: int = 20,
    kappas: Sequence[float] = (0.05, 0.1, 0.5, 1.0),
    repeats: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> pd.DataFrame:
    """Fit on the numeric features of a task, with public ranges (long tails as log(1 + x)), and score on held-out rows.

    Parameters
    ----------
    task : Task
        Of two classes.
    epsilons : sequence of float
        ε_LDP of a user who answers once (users divided among the rounds).
    mechanisms : sequence of str
    owners : int, optional
        Users, drawn at random from the training rows; default: all.
    n_rounds : int
    kappas : sequence of float
        Of the condensed-local scheme with all users in all rounds, as published; the other mechanisms at the same
        total ε, ``n_rounds · κ · (d + 1)``. Empty: leave that part out.
    repeats, seed, progress
        As of :func:`studies.learners.run`.

    Returns
    -------
    DataFrame
        One row per repeat, mechanism, ε and metric (accuracy; :data:`ERROR`: Euclidean distance of the mean of one
        round's reports from the exact mean, root mean square), with columns as of
        :func:`studies.learners.run`; ``epsilon`` is the total of one user, pure.

    Raises
    ------
    InputError
        Settings out of range.
    """
    check_settings(epsilons, repeats)
    unknown = [name for name in mechanisms if name not in MECHANISMS]
    if unknown or not mechanisms:
        raise InputError(f"mechanism must be among {', '.join(MECHANISMS)}, got {unknown or None}")
    if not all(0 < k < np.inf for k in kappas):
        raise InputError(f"kappa must be finite numbers above 0, got {list(kappas)!r}")
    specs = {
        name: Numeric(spec.low, spec.high, log1p=spec.low >= 0 and spec.high > 1000 * (spec.low + 1))
        for name, spec in task.features.items()
        if isinstance(spec, Numeric)
    }
    encode = PublicEncoder(specs).transform
    D = len(specs) + 1
    settings: dict[str, Any] = {"classes": task.classes, "bounds": (0.0, 1.0), "n_rounds": n_rounds}
    rows: list[dict[str, Any]] = []
    total = repeats * len(mechanisms) * (len(epsilons) + len(kappas))
    with tqdm(total=total, desc=task.name, unit="fit", disable=not progress) as bar:
        for repeat in range(repeats):
            X, y, X_test, y_test = split_rows(task, repeat, seed)
            X, y, X_test = encode(X), np.asarray(y), encode(X_test)
            if owners is not None:
                chosen = _owners(owners, len(y), repeat, seed)
                X, y = X[chosen], y[chosen]
            right = np.asarray(y_test) == task.classes[1]
            random_state = noise_seed(seed, repeat)
            m = len(y) // n_rounds
            once = {"repeat": repeat, "dataset": f"{task.name}, {n_rounds} rounds of {m} users"}
            often = {"repeat": repeat, "dataset": f"{task.name}, {n_rounds} rounds of all {len(y)} users"}
            for common in (once, often) if kappas else (once,):
                every = common is often
                rows.append(common | _row("", TRIVIAL, max(right.mean(), 1 - right.mean())))
                if repeat == 0 or task.X_test is None:
                    rows.append(common | _row("scikit-learn", NO_PRIVACY, _scikit_learn(X, y, X_test, right, task)))
                exact = _exact(settings, X, y, X_test, right, every, random_state)
                rows += [common | _row(name, NO_PRIVACY, exact) for name in mechanisms]
            for name in mechanisms:
                for epsilon in epsilons:
                    settings |= {"mechanism": name, "epsilon": float(epsilon), "random_state": random_state}
                    model = LDPLogisticRegression(**settings).fit(X, y)
                    score = float(((model.decision_function(X_test) > 0) == right).mean())
                    rows.append(once | _row(name, "private", score, epsilon))
                    error = _round_error(model.parameters_, X[:m], y[:m], random_state)
                    rows.append(once | _row(name, "private", error, epsilon) | {"metric": ERROR})
                    bar.update()
                for kappa in kappas:
                    epsilon = kappa * D
                    settings |= {"mechanism": name, "epsilon": epsilon, "random_state": random_state}
                    model = LDPLogisticRegression(
                        **settings, participation="all", total_epsilon=n_rounds * epsilon * (1 + 1e-9)
                    ).fit(X, y)
                    score = float(((model.decision_function(X_test) > 0) == right).mean())
                    rows.append(often | _row(name, "private", score, n_rounds * epsilon))
                    bar.update()
    return pd.DataFrame(rows)


def _row(learner: str, scheme: str, score: float, epsilon: float = math.nan) -> dict[str, Any]:
    return {
        "learner": learner,
        "scheme": scheme,
        "epsilon": round(float(epsilon), 9),
        "metric": "accuracy",
        "score": float(score),
        "auc": math.nan,
        "seconds": math.nan,
    }


def _owners(owners: int, n: int, repeat: int, seed: int) -> IntArray:
    if isinstance(owners, bool) or not 1 <= owners <= n:
        raise InputError(f"owners must be from 1 to the number of training rows, {n}, got {owners!r}")
    return np.random.default_rng([seed, repeat, 1]).permutation(n)[:owners].astype(np.int64)


def _exact(
    settings: dict[str, Any], X: FloatArray, y: Any, X_test: FloatArray, right: Any, every: bool, seed: int
) -> float:
    """Accuracy of the same schedule on exact gradients: what no privacy at all would give."""
    d, n_rounds = X.shape[1], settings["n_rounds"]
    params = LocalParameters(settings["classes"], [0.0] * d, [1.0] * d, epsilon=1.0, n_rounds=n_rounds)
    params = replace(params, lr=default_lr(params.randomizer, 10**12, n_rounds, params.radius))  # as without noise
    server, z, target = LocalServer(params), params.scaled(X), y == params.classes[1]
    for who in division(len(y), n_rounds, "all" if every else "disjoint", Coins(seed)):
        server.descend(((expit(z[who] @ server.theta) - target[who])[:, None] * z[who]).mean(axis=0))
    return float(((params.scaled(X_test) @ server.model > 0) == right).mean())


def _round_error(params: LocalParameters, X: FloatArray, y: Any, seed: int) -> float:
    """Root mean square distance of the mean report from the mean gradient, at θ = 0."""
    theta = np.zeros(params.dimensions)
    exact = ((0.5 - (y == params.classes[1]))[:, None] * params.scaled(X)).mean(axis=0)
    coins = Coins(seed + 1)
    everybody = np.arange(len(y))
    squares = []
    for _ in range(_DRAWS):
        reports = LocalUsers(params, X, y, coins).reports(everybody, theta)
        squares.append(np.square(params.randomizer.estimate(reports).mean(axis=0) - exact).sum())
    return math.sqrt(float(np.mean(squares)))


def _scikit_learn(X: FloatArray, y: Any, X_test: FloatArray, right: Any, task: Task) -> float:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e6, max_iter=2000).fit(X, y == task.classes[1])
    return float((model.predict(X_test) == right).mean())


def main(
    dataset: Annotated[list[str], typer.Option(help="adult or bank.")] = ["adult"],  # noqa: B006
    owners: Annotated[int | None, typer.Option(help="Users with a record each. (default: all training rows)")] = None,
    epsilon: Annotated[list[float], typer.Option(help="epsilon_LDP of a user who answers once.")] = [  # noqa: B006
        0.5,
        1.0,
        2.0,
        4.0,
        6.0,
        12.0,
    ],
    mechanism: Annotated[
        list[str] | None, typer.Option(help="cldp, one_coordinate, l2_ball, privunit. (default: all)")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Steps of the server.")] = 20,
    kappa: Annotated[
        list[float], typer.Option(help="Of cldp with all users in all rounds; the others at the same total.")
    ] = [0.05, 0.1, 0.5, 1.0],  # noqa: B006
    repeats: Annotated[int, typer.Option(help="Draws of the users' coins.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for tables and figure.")] = Path("fdadp-federated-logistic"),
    seed: Annotated[int, typer.Option(help="Seed of coins and splits.")] = 0,
    download: Annotated[bool, typer.Option(help="Download data sets that are not here.")] = False,
) -> None:
    """Logistic regression in the local model: accuracy, and error of a round's gradient, against epsilon_LDP.

    Every owner is one user with one record, who sends nothing but a randomised gradient. The coins are seeded, for
    simulation.
    """
    no_window()
    with plain_messages():
        tasks, absent = load(dataset, download=download)
        say_absent(tasks, absent, dataset)
        names = mechanism or list(MECHANISMS)
        sizes = {"owners": owners, "n_rounds": rounds, "repeats": repeats}
        drawn = {"seed": seed, "progress": sys.stderr.isatty()}
        results = run_each(tasks, run, epsilons=epsilon, mechanisms=names, kappas=kappa, **sizes, **drawn)
        table = summarise(results)
        print_learners(console(), table)
        settings = {
            "datasets": [task.name for task in tasks],
            "skipped": list(absent),
            "owners": owners,
            "epsilon": epsilon,
            "mechanism": names,
            "rounds": rounds,
            "kappa": kappa,
            "repeats": repeats,
            "seed": seed,
            "note": "seeded coins, for simulation; epsilon is the total of one user, pure",
        }
        say_paths(write_learners(out, results, table, settings))


app = command(main)

if __name__ == "__main__":
    app()
