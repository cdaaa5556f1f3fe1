"""Logistic regression in the local model on Adult, beside the figures that it was specified by.

    python benchmarks/federated/logistic.py [--repeats 10]

Writes results/logistic.md and results/logistic.json. What ``python benchmarks/studies/local_logistic.py`` prints, with
the specification's prototype beside it (NumPy floats, no momentum, mean of the last half, 20 rounds of 1,628 users) and
with what the theory says of the error of one round.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
from pathlib import Path

from fdadp._version import __version__
from fdadp.federated import randomizer, shuffled_epsilon
from fdadp.privacy.account.epsilon_mu_rho import epsilon_from

sys.path.append(str(Path(__file__).resolve().parents[1]))

from studies import local_logistic as study

HERE = Path(__file__).resolve().parent
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 12.0)
NAMES = ("cldp", "one_coordinate", "l2_ball", "privunit")
KAPPAS = (0.05, 0.1, 0.5, 1.0)
ROUNDS, D, DELTA = 20, 6, 1e-6
SPECIFIED = {
    "cldp": ".664 .133 1.403  .744 .029 .676  .777 .018 .328  .789 .006 .177  .796 .004 .126  .799 .005 .076",
    "one_coordinate": ".765 .022 .613  .783 .014 .333  .793 .008 .179  .793 .007 .144  .794 .007 .147  .794 .006 .148",
    "l2_ball": ".776 .020 .671  .778 .015 .386  .780 .015 .243  .782 .016 .199  .785 .016 .196  .785 .017 .195",
}
"""Accuracy, its sd, error of one round, by ε."""
SPECIFIED_ALL = (0.765, 0.780, 0.801, 0.802)
"""Accuracy of the condensed-local scheme with all users in all rounds, by κ."""


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    (task,), absent = study.load(["adult"])
    assert not absent, absent
    specified = {name: [float(v) for v in text.split()] for name, text in SPECIFIED.items()}
    results = study.run(task, epsilons=EPSILONS, mechanisms=NAMES, kappas=KAPPAS, repeats=repeats, progress=True)
    table = study.summarise(results)
    once, often = list(dict.fromkeys(table["dataset"]))
    m = len(task.y) // ROUNDS

    def cell(dataset: str, metric: str, name: str, epsilon: float) -> tuple[float, float]:
        at = table[(table["dataset"] == dataset) & (table["metric"] == metric) & (table["learner"] == name)]
        row = at[(at["epsilon"] - epsilon).abs() < 1e-6].iloc[0]
        return float(row["score"]), float(row["score_sd"])

    def base(dataset: str, learner: str, scheme: str) -> float:
        at = table[(table["dataset"] == dataset) & (table["learner"] == learner) & (table["scheme"] == scheme)]
        return float(at["score"].iloc[0])

    lines = [
        f"Adult, 5 numbers (capital gain and loss as log1p, public ranges) and intercept (D = {D}), {repeats} repeats "
        f"of seeded coins, {once.split(', ', 1)[1]}, each user once. Accuracy on the test rows, mean (sd); in brackets "
        f"the specification's. fdadp {__version__}, Python {platform.python_version()}.",
        "",
        f"Without privacy: the same descent on exact gradients {base(once, 'cldp', study.NO_PRIVACY):.3f} "
        f"(specification .803), scikit-learn {base(once, 'scikit-learn', study.NO_PRIVACY):.3f}, larger class "
        f"{base(once, '', study.TRIVIAL):.3f}.",
        "",
        line("ε_LDP of a user", *NAMES, f"shuffled, δ = {DELTA:g}, {m} users"),
        "|" + "---|" * (len(NAMES) + 2),
    ]
    for i, epsilon in enumerate(EPSILONS):
        cells = []
        for name in NAMES:
            score, sd = cell(once, "accuracy", name, epsilon)
            wanted = specified.get(name)
            beside = f" [{wanted[3 * i]:.3f} ({wanted[3 * i + 1]:.3f})]" if wanted else ""
            cells.append(f"{score:.3f} ({sd:.3f}){beside}")
        try:
            central = f"{shuffled_epsilon(epsilon, m, DELTA):.2f}"
        except ValueError:
            central = "too few users"
        lines.append(line(f"{epsilon:g}", *cells, central))
    lines += [
        "",
        "Error of one round's gradient, Euclidean, root mean square; by the theory (the estimate's known length), and "
        "in brackets the specification's.",
        "",
        line("ε_LDP", *NAMES),
        "|" + "---|" * (len(NAMES) + 1),
    ]
    for i, epsilon in enumerate(EPSILONS):
        cells = []
        for name in NAMES:
            error, _ = cell(once, study.ERROR, name, epsilon)
            theory = randomizer(name, D, epsilon=epsilon).length / math.sqrt(m)
            wanted = specified.get(name)
            beside = f" [{wanted[3 * i + 2]:.3f}]" if wanted else ""
            cells.append(f"{error:.3f}, theory <= {theory:.3f}{beside}")
        lines.append(line(f"{epsilon:g}", *cells))
    lines += [
        "",
        f"All users in all {ROUNDS} rounds: accuracy at the same total of a user.",
        "",
        line("κ of cldp", "total ε, pure", f"total ε of cldp at δ = {DELTA:g} (zCDP)", *NAMES),
        "|" + "---|" * (len(NAMES) + 3),
    ]
    for kappa, wanted_all in zip(KAPPAS, SPECIFIED_ALL, strict=True):
        total = ROUNDS * D * kappa
        by_zcdp = min(total, epsilon_from(ROUNDS * D * kappa**2 / 2, DELTA))
        cells = ["{:.3f} ({:.3f})".format(*cell(often, "accuracy", name, total)) for name in NAMES]
        cells[0] += f" [{wanted_all:.3f}]"
        lines.append(line(f"{kappa:g}", f"{total:g}", f"{by_zcdp:.3g}", *cells))
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "logistic.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    keep = ["dataset", "metric", "scheme", "learner", "epsilon", "score", "score_sd", "score_median", "repeats"]
    rows = json.loads(table[keep].round(5).to_json(orient="records"))
    about = {"fdadp": __version__, "python": platform.python_version(), "repeats": repeats, "rows": rows}
    (HERE / "results" / "logistic.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
