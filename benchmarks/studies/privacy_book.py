"""The worked examples of the privacy book's chapter on learners, beside ours: its tables, with the figures it prints.

    python benchmarks/studies/privacy_book.py --repeats 50    # five minutes of one core; the whole is 50, 10 take one

The book is J. M. Chang, D. Zhuang & G. D. Samaraweera, Privacy-Preserving Machine Learning (Manning, 2023), chapter 3;
what it prints is that of its notebooks (github.com/nogrady/PPML, Ch3), where the text does not differ. Written to
``benchmarks/results/privacy-book.md``.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import typer

from fdadp import learners
from fdadp._common.command_line_tools import plain_messages
from fdadp._common.typing import FloatArray
from studies.commands import command
from studies.learner_tasks import TASKS, Task
from studies.noisy_discriminants import DPDiscriminants
from studies.pages import made_with, mean_sd, table, write

# ------------------------------------------------------------------------------------------- naive Bayes --

MISSED = [line.split() for line in """\
Young Low Male Yes
Young High Female Yes
Medium High Male No
Old Medium Male No
Old High Male No
Old Low Female Yes
Medium Low Female No
Medium Medium Male Yes
Young Low Male No
Old High Female No""".splitlines()]  # fmt: skip
"""Ten people: age, income, gender, and whether a payment was missed. Not compared with the text, whose figures they
give."""
VALUES = (("Young", "Medium", "Old"), ("Low", "Medium", "High"), ("Male", "Female"))
NEW = ("Young", "Medium", "Female")
PRINTED_JOINT = {"Yes": 0.025, "No": 0.0056}
"""P(class) Π P(value | class) of the new person, as printed."""


def worked_table(epsilon: float, seed: int | None = 0) -> dict[str, float]:
    """P(class) Π P(value | class) of the new person, from the private tables of counts of the ten people."""
    X, y = np.array([row[:3] for row in MISSED]), [row[3] for row in MISSED]
    settings: dict[str, Any] = {"classes": ["No", "Yes"], "categories": VALUES, "alpha": 1e-9}
    settings |= {"correlation": 0.0, "evidence_share": 0.0}  # as in the text: each value counts whole
    model = learners.DPCategoricalNB(epsilon=epsilon, random_state=seed, **settings).fit(X, y)
    joint = np.exp(model.class_log_prior_)
    for j, values in enumerate(VALUES):
        joint = joint * np.exp(model.feature_log_prob_[j][:, values.index(NEW[j])])
    return dict(zip(map(str, model.classes_), map(float, joint), strict=True))


# ------------------------------------------------------------- accuracy of naive Bayes and logistic regression --


def adult(log: bool = False) -> tuple[Task, Callable[[Any], FloatArray]]:
    """Adult, and the five numbers of its rows as the book takes them; `log`: long tails as log(1 + x), in [0, 1]."""
    from fdadp.learners.shared.public_encoding import Numeric, PublicEncoder

    task = TASKS["adult"](False)
    if not log:
        return task, lambda X: X[task.numbers].to_numpy(dtype=np.float64)
    specs = {
        name: Numeric(spec.low, spec.high, log1p=spec.high > 1000 * (spec.low + 1))
        for name, spec in ((name, task.features[name]) for name in task.numbers)
    }
    encode = PublicEncoder(specs)
    return task, lambda X: np.asarray(encode.transform(X[task.numbers]))


def accuracies(repeats: int) -> list[list[Any]]:
    """Rows of the table: learner, printed and ours, without privacy and at ε = 1 and .01."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    rows: list[list[Any]] = [
        ["naive Bayes, printed (diffprivlib)", "0.796", "0.800 (text: 0.786)", "0.769"],
    ]

    def ours(name: str, plain: Any, model: Callable[..., Any], log: bool = False) -> None:
        task, encode = adult(log)
        X, X_test = encode(task.X), encode(task.X_test)
        y, y_test = np.asarray(task.y), np.asarray(task.y_test)
        cells = []
        for epsilon in (1.0, 0.01):
            fits = (model(task, epsilon, seed).fit(X, y) for seed in range(repeats))
            cells.append(mean_sd([float((fit.predict(X_test) == y_test).mean()) for fit in fits]))
        before = "" if plain is None else f"{(plain.fit(X, y).predict(X_test) == y_test).mean():.3f}"
        rows.append([name, before, *cells])

    def box(task: Task) -> tuple[FloatArray, FloatArray]:
        specs = [task.features[name] for name in task.numbers]
        return np.array([float(s.low) for s in specs]), np.array([float(s.high) for s in specs])

    def common(task: Task, epsilon: float, seed: int) -> dict[str, Any]:
        return {"classes": list(task.classes), "epsilon": epsilon, "random_state": seed}

    ours("DPGaussianNB", GaussianNB(), lambda t, e, s: learners.DPGaussianNB(bounds=box(t), **common(t, e, s)))
    ours("DPHistogramNB", None, lambda t, e, s: learners.DPHistogramNB(bounds=box(t), **common(t, e, s)))
    rows.append(["logistic regression, printed (diffprivlib)", "0.810", "0.806 (text: 0.809)", "0.713"])
    scaled = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=2000))
    ours(
        "DPLogisticRegression, long tails as log(1 + x)",
        scaled,
        lambda t, e, s: learners.DPLogisticRegression(bounds=(0, 1), **common(t, e, s)),
        log=True,
    )
    return rows


# ----------------------------------------------------------------------------------------- linear regression --


def as_the_library_did(X: FloatArray, y: FloatArray, epsilon: float, rng: np.random.Generator) -> Any:
    """Prediction of diffprivlib 0.3's linear regression, the version of the book's notebooks. **Not private.**

    Bounds are read from the data; the centred second moment of (x, y) gets Wishart noise GG', the entries of the
    (p + 1, p + 2) matrix G being N(0, (R/2ε')²), where R is the largest norm of x alone, without y.
    """
    d = X.shape[1]
    each = epsilon / (d + 1)
    low, high, n = X.min(axis=0), X.max(axis=0), len(X)
    middle = X.mean(axis=0) + rng.laplace(size=d) * (high - low) / n / (each / d)
    level = y.mean() + rng.laplace() * (y.max() - y.min()) / n / each
    A = np.column_stack((X - middle, y - level))
    G = rng.standard_normal((d + 1, d + 2)) * np.linalg.norm(A[:, :d], axis=1).max() / (2 * (epsilon - each))
    M = A.T @ A + G @ G.T
    slopes = np.linalg.lstsq(M[:d, :d], M[:d, d], rcond=None)[0]
    return lambda new: level + (new - middle) @ slopes


def linear(repeats: int) -> tuple[list[list[Any]], str]:
    """Rows of the table of R² on held-out rows of diabetes at ε = 1, and what the noise of the library is against."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score

    X, y = load_diabetes(return_X_y=True)
    found: dict[str, list[float]] = {}

    def add(name: str, true: FloatArray, predicted: FloatArray) -> None:
        found.setdefault(name, []).append(float(r2_score(true, predicted)))

    public: dict[str, Any] = {"data_norm": 0.25, "bounds_y": (0, 400)}
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, 11])
        order = rng.permutation(len(y))
        test, train = order[:89], order[89:]
        new, true = X[test], y[test]
        add("least squares", true, LinearRegression().fit(X[train], y[train]).predict(new))
        add("as diffprivlib 0.3", true, as_the_library_did(X[train], y[train], 1.0, rng)(new))
        for name, delta in (("DPLinearRegression, pure", None), ("DPLinearRegression, δ = 1e-5", 1e-5)):
            settings: dict[str, Any] = {"epsilon": 1.0, "delta": delta, "n": len(train), "random_state": repeat}
            add(name, true, learners.DPLinearRegression(**settings, **public).fit(X[train], y[train]).predict(new))
    rows: list[list[Any]] = [["printed: least squares", "0.54 (notebook: 0.41)", ""]]
    rows.append(["printed: diffprivlib, ε = 1", "0.48 (notebook: 0.43)", ""])
    for name, scores in found.items():
        low, high = np.quantile(scores, [0.05, 0.95])
        rows.append([name, mean_sd(scores), f"{np.median(scores):.3f}; {low:.3f} to {high:.3f}"])
    longest = np.linalg.norm(np.column_stack((X - X.mean(axis=0), y - y.mean())), axis=1).max()
    own = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    return rows, f"The longest centred row is {own:.2f} long without the target and {longest:.0f} with it."


# -------------------------------------------------------------------------------------------------- k-means --

SCORES = ("time, s", "inertia", "homogeneity", "completeness", "V", "ARI", "AMI", "silhouette", "inertia, own means")
PRINTED_K_MEANS = {
    "printed: k-means++": "3.76 69408 0.603 0.651 0.626 0.467 0.622 0.144",
    "printed: random": "2.24 69408 0.599 0.648 0.623 0.463 0.619 0.145",
    "printed: private (diffprivlib, ε = 1)": "0.09 96041 0.314 0.435 0.365 0.226 0.360 0.088",
}


def cluster_scores(Z: FloatArray, digits: Any, X: FloatArray, fit: Callable[[], FloatArray], seed: int) -> list[float]:
    """The book's scores of the clusters about centres (k, d) that `fit` finds in the units of X; first CPU seconds.

    The scores of shape are in the book's units, Z. Inertia about the centres is missing where X has other units; the
    last one is about the clusters' own means.
    """
    from sklearn import metrics

    start = time.process_time()
    centers = fit()
    seconds = time.process_time() - start
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    found = distances.argmin(axis=1)
    inertia = float(distances.min(axis=1).sum()) if X is Z else math.nan
    own = sum(float(((Z[found == c] - Z[found == c].mean(axis=0)) ** 2).sum()) for c in np.unique(found))
    silhouette = 0.0
    if len(np.unique(found)) > 1:
        silhouette = metrics.silhouette_score(Z, found, sample_size=1000, random_state=seed)
    measures = (
        metrics.homogeneity_score,
        metrics.completeness_score,
        metrics.v_measure_score,
        metrics.adjusted_rand_score,
        metrics.adjusted_mutual_info_score,
    )
    return [seconds, inertia, *(float(of(digits, found)) for of in measures), float(silhouette), own]


def k_means(repeats: int) -> list[list[Any]]:
    """Rows of the table: what is fitted, then means of the scores over draws of the noise."""
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import scale

    X, digits = load_digits(return_X_y=True)
    pixels, Z = X / 16, scale(X)

    def plain(init: str, seed: int) -> FloatArray:
        return np.asarray(KMeans(10, init=init, n_init=100, random_state=seed).fit(Z).cluster_centers_)

    def private(rows: FloatArray, seed: int, **settings: Any) -> FloatArray:
        model = learners.DPKMeans(n_clusters=10, epsilon=1.0, random_state=seed, **settings)
        return np.asarray(model.fit(rows).cluster_centers_)

    public, about = {"data_norm": 3.0, "center": 0.3}, {"data_norm": 8.0}
    ways: dict[str, tuple[int, FloatArray, Callable[[int], FloatArray]]] = {
        "k-means++, 100 starts": (1, Z, lambda s: plain("k-means++", s)),
        "random, 100 starts": (1, Z, lambda s: plain("random", s)),
        "DPKMeans, ε = 1, δ = 1e-5, pixels": (repeats, pixels, lambda s: private(pixels, s, delta=1e-5, **public)),
        "DPKMeans, ε = 1, pure, pixels": (repeats, pixels, lambda s: private(pixels, s, **public)),
        "DPKMeans, ε = 1, δ = 1e-5, the book's units": (repeats, Z, lambda s: private(Z, s, delta=1e-5, **about)),
        "DPKMeans, ε = 1, pure, the book's units": (repeats, Z, lambda s: private(Z, s, **about)),
    }
    rows: list[list[Any]] = [[name, *text.split(), ""] for name, text in PRINTED_K_MEANS.items()]
    for name, (many, units, way) in ways.items():
        each = [cluster_scores(Z, digits, units, lambda s=s, way=way: way(s), s) for s in range(many)]
        seconds, inertia, *others, own = np.mean(each, axis=0)
        about_centres = "" if math.isnan(inertia) else f"{inertia:.0f}"
        rows.append([name, f"{seconds:.2f}", about_centres, *(f"{value:.3f}" for value in others), f"{own:.0f}"])
    return rows


# ------------------------------------------------------------------------------------- discriminant analysis --


def discriminants(repeats: int, epsilons: Sequence[float] = (0.1, 0.5, 1.0, 5.0)) -> list[list[Any]]:
    """Rows of the table of accuracy on held-out rows: digits, a third held out, and Adult's five numbers."""
    from sklearn.datasets import load_digits
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(y))
    test, train = order[: len(y) // 3], order[len(y) // 3 :]
    digits = (X[train] / 16, y[train], X[test] / 16, y[test])
    task, encode = adult(log=True)
    numbers = (encode(task.X), np.asarray(task.y), encode(task.X_test), np.asarray(task.y_test))
    rows = []
    sets: Mapping[str, tuple[Any, list[Any], float, float, float]] = {
        "digits, 64 pixels, 10 classes": (digits, list(range(10)), 3.0, 0.3, 1e-5),
        "Adult, 5 numbers": (numbers, list(task.classes), math.sqrt(5) / 2, 0.5, 1e-6),
    }
    for name, (rows_of, classes, norm, center, delta) in sets.items():
        X, y, X_test, y_test = rows_of
        plain = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).score(X_test, y_test)
        cells = []
        for epsilon in epsilons:
            public: dict[str, Any] = {"classes": classes, "data_norm": norm, "center": center, "delta": delta}
            fits = (DPDiscriminants(epsilon=epsilon, random_state=s, **public).fit(X, y) for s in range(repeats))
            cells.append(mean_sd([float((fit.predict(X_test) == y_test).mean()) for fit in fits]))
        larger = max(float((y_test == c).mean()) for c in classes)
        rows.append([name, f"{larger:.3f}", *cells, f"{plain:.3f}"])
    return rows


def report(repeats: int) -> None:
    """All tables, to the page of results."""
    warnings.simplefilter("ignore")  # doubts about few rows: said by the tables
    joint = [worked_table(1e6)] + [worked_table(1.0, seed) for seed in range(1000)]
    right = np.mean([one["Yes"] > one["No"] for one in joint[1:]])
    bayes = [["printed", *(f"{PRINTED_JOINT[c]:g}" for c in ("Yes", "No"))]]
    bayes.append(["DPCategoricalNB, ε = 1e6", *(f"{joint[0][c]:.4f}" for c in ("Yes", "No"))])
    lines, lengths = linear(repeats)
    many = f"mean (sd) over {repeats}"
    write(
        "privacy-book",
        [
            "# The privacy book's examples",
            made_with(f"python benchmarks/studies/privacy_book.py --repeats {repeats}"),
            "Seeded noise, for simulation. δ is 0 where none is named. The book's own figures are of single runs.",
            "## Naive Bayes: the worked table",
            "P(class) Π P(value | class) of a young woman of medium income, from ten people.\n\n"
            + table(["", "missed a payment", "did not"], bayes)
            + f"\nAt ε = 1 ten people are too few: the larger one is the printed one in {right:.0%} of 1,000 draws.",
            "## Naive Bayes and logistic regression: accuracy on Adult, five numbers",
            f"Ours: public ranges, {many} draws of the noise.\n\n"
            + table(["learner", "no privacy", "ε = 1", "ε = 0.01"], accuracies(repeats)),
            "## Linear regression: R² on diabetes",
            f"353 rows to fit, 89 held out; ours {many} splits, ε = 1; median; 5 and 95 % of the splits.\n\n"
            + table(["", "R²", "median; range"], lines)
            + f"\n{lengths} The library's noise is made for the former.",
            "## k-means: the digits",
            f"Scores in the book's units (each pixel with mean 0 and sd 1). Ours: means over {repeats} draws of the "
            "noise, CPU seconds; `pixels`: rows by their public range, from 0 to 16, so inertia about the centres "
            "would be in other units; `the book's units`: mean and sd are read from the data, as in the book, which no "
            "ledger counts. The last column is the inertia about the means of the clusters that were found.\n\n"
            + table(["", *SCORES], k_means(repeats)),
            "## Linear discriminants from a noisy scatter",
            f"Accuracy on held-out rows, {many} draws of the noise; (ε, δ) with δ = 1e-5 and 1e-6. The book names the "
            "method and prints no figure.\n\n"
            + table(
                ["data", "larger class", "ε = 0.1", "ε = 0.5", "ε = 1", "ε = 5", "no privacy"], discriminants(repeats)
            ),
        ],
    )


def main(
    repeats: Annotated[int, typer.Option(help="Splits or draws of the noise.")] = 50,
) -> None:
    """The worked examples of the privacy book, beside ours."""
    with plain_messages():
        report(repeats)


app = command(main)

if __name__ == "__main__":
    app()
