"""Mutants of private learners and summaries: mistakes put in by hand, and which tests go red.

    python tools/mutants.py [--only forest]

Each mistake is put into a copy of the repository's last commit, by itself, and the tests of its module run, those of
``make test``: no audits, no recorded seeded fits, which would see every change of a number, and of the tests that all
learners share only what concerns releases. Prints a row each: the mistake, and the first test that fails, or "green".
Half an hour.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LEARNERS, SUMMARIES = "tests/python/learners", "tests/python/summaries"
COMMON = f"{LEARNERS}/test_learners_common.py"
NUMBERS, TABLE1 = f"{SUMMARIES}/test_numbers_and_classes.py", f"{SUMMARIES}/test_table1.py"
RATIOS = "tests/python/privacy/test_privacy_ratios.py"


class Mutant(NamedTuple):
    """A mistake: in which module, what it is, and the text before and after."""

    module: str
    mistake: str
    old: str
    new: str


TESTS = {
    "learners/forest": [f"{LEARNERS}/test_learners_forest.py", COMMON],
    "learners/shared/public_inputs": [f"{LEARNERS}/test_learners_forest.py", COMMON],
    "learners/naive_bayes": [f"{LEARNERS}/test_learners_naive_bayes.py", COMMON],
    "learners/shared/_posterior_means": [
        f"{LEARNERS}/test_learners_naive_bayes.py",
        f"{LEARNERS}/test_learners_cluster.py",
    ],
    "learners/kmeans": [f"{LEARNERS}/test_learners_cluster.py", COMMON],
    "learners/logistic_regression": [f"{LEARNERS}/test_coefficient_intervals.py", COMMON, RATIOS],
    "learners/additive_regressor": [f"{LEARNERS}/test_additive_regressor.py", COMMON],
    "learners/shared/_public_bins": [f"{LEARNERS}/test_additive_regressor.py", COMMON],
    "learners/boosted_stumps": [f"{LEARNERS}/test_learners_boosting.py", COMMON],
    "summaries": [NUMBERS, TABLE1, "tests/python/privacy/test_privacy_cohort.py"],
}
"""Of a module, or of a folder."""
PICK = {
    "forest": "Forest",
    "additive_regressor": "AdditiveRegressor",
    "_bins": "Additive",
    "inputs": "ForestRegressor",
    "naive_bayes": "NB",
    "cluster": "KMeans",
    "logistic": "Logistic",
}
PICK["boosting"] = "Stumps"
"""Which learners of the common tests."""
THESE = "replay or no_numbers or adds_up or shared"
"""Which of the common tests: those of what is released."""

MUTANTS = [
    Mutant(
        "learners/additive_regressor",
        "first release: clip without the target",
        "d * weight**2 + 2 + _SQUARES**2",
        "d * weight**2",
    ),
    Mutant(
        "learners/additive_regressor",
        "first release, pure: clip without the target",
        "d * weight + math.sqrt(2) + _SQUARES",
        "d * weight",
    ),
    Mutant(
        "learners/additive_regressor",
        "residuals priced as counts",
        'name=f"pass {turn + 1}: residuals by {bins.names[j]}",',
        'name=f"pass {turn + 1}: residuals by {bins.names[j]}", nonnegative=True,',
    ),
    Mutant(
        "learners/additive_regressor", "residuals not clipped", "min(clips * math.sqrt(target.variance), 2.0)", "2.0"
    ),
    Mutant("learners/additive_regressor", "counts charged on top", "share=(1 - self.count_share) *", "share=1.0 *"),
    Mutant(
        "learners/additive_regressor",
        "a part of the budget never spent",
        "weights.sum()) / d,",
        "weights.sum()) / d / 2,",
    ),
    Mutant(
        "learners/additive_regressor",
        "rows with a missing value counted",
        "in_bins(weight + 0 * t, rows[0], starts)",
        "np.nan_to_num(in_bins(weight + 0 * t, rows[0], starts))",
    ),
    Mutant(
        "learners/additive_regressor",
        "earlier turns without what they explained",
        "(total + self.counts * self.scores) / noise",
        "total / noise",
    ),
    Mutant(
        "learners/additive_regressor",
        "noise of all turns that of the last",
        "self._precision += 1 / noise",
        "self._precision = 1 / noise",
    ),
    Mutant("learners/additive_regressor", "errors of rows forgotten", "errors * self.counts)", "0.0 * self.counts)"),
    Mutant("learners/additive_regressor", "functions not about 0", "function - self._shares @ function", "function"),
    Mutant("learners/additive_regressor", "noise of all bins that of one", "len(total) * sd**2", "sd**2"),
    Mutant(
        "learners/additive_regressor",
        "what the intercept took is left in the sums",
        "total - moved * own.counts",
        "total",
    ),
    Mutant(
        "learners/additive_regressor",
        "counts at their word",
        "empirical_bayes(counts, sd**2, even, even * rows",
        "empirical_bayes(counts, 0.0, even, even * rows",
    ),
    Mutant(
        "learners/additive_regressor",
        "the mean at its word",
        "empirical_bayes(found, noise, 0.0, _MEAN",
        "empirical_bayes(found, 0.0, 0.0, _MEAN",
    ),
    Mutant(
        "learners/shared/_public_bins",
        "a row with a missing bin counted",
        "values[i, k] if at >= 0 else np.nan",
        "values[i, k]",
    ),
    Mutant("learners/forest", "classes: clip of one tree", "else math.sqrt(T)\n", "else 1.0\n"),
    Mutant("learners/forest", "numbers: clip without the sums", "else math.sqrt(2 * T)", "else math.sqrt(T)"),
    Mutant(
        "learners/forest",
        "numbers: sums that may be negative priced as counts",
        'name="counts and sums of the target in leaves")',
        'name="counts and sums of the target in leaves", nonnegative=True)',
    ),
    Mutant(
        "learners/shared/public_inputs", "targets not moved into their range", "np.clip(y, self.low, self.high)", "y"
    ),
    Mutant(
        "learners/forest",
        "rows with a missing value counted",
        "np.where(np.isfinite(x).all(axis=1), 0.0, np.nan)",
        "np.zeros(len(x))",
    ),
    Mutant("learners/forest", "rows of an unknown class counted", "0.0 * (code + _usable(x))", "0.0 * _usable(x)"),
    Mutant(
        "learners/forest", "noise of leaves taken for signal", "noise * (1 + _CERTAIN * math.sqrt(2 / (T * L)))", "0.0"
    ),
    Mutant("learners/forest", "leaves not shrunk by the noise", "weight = _ROWS + sd", "weight = 1e-9"),
    Mutant("learners/naive_bayes", "clip without the squares", "weight + 1.5 * d if", "weight + d if"),
    Mutant(
        "learners/naive_bayes",
        "features not moved into their range",
        "np.clip(2 * (x - low) / (high - low) - 1, -1, 1)",
        "(2 * (x - low) / (high - low) - 1)",
    ),
    Mutant("learners/naive_bayes", "infinity is the end of the range", " + 0.0 * x  #", "  #"),
    Mutant(
        "learners/naive_bayes", "noise of all classes that of one", "noise = K * (sd / n) ** 2", "noise = (sd / n) ** 2"
    ),
    Mutant(
        "learners/naive_bayes",
        "variances without the uncertainty of means",
        "within**2)) + unsure",
        "within**2)) + 0 * unsure",
    ),
    Mutant("learners/naive_bayes", "means at their word", "noise_k = (sd / count) ** 2", "noise_k = 0 * (sd / count)"),
    Mutant("learners/shared/_posterior_means", "kept: the noise's share", "kept = variance /", "kept = noise /"),
    Mutant(
        "learners/shared/_posterior_means",
        "shares of classes at their word",
        "counts / n, (sd / n) ** 2,",
        "counts / n, 0.0,",
    ),
    Mutant("learners/kmeans", "rows with a missing value counted", " + 0.0 * z.sum(axis=1)[:, None]", " + 0.0"),
    Mutant(
        "learners/kmeans",
        "cells of noise are clusters",
        "found > sd * math.sqrt(2 * math.log(found.size))",
        "found > 0",
    ),
    Mutant("learners/kmeans", "noise of joined cells that of one", "sd = sd * math.sqrt(2**p)", "sd = sd * 1.0"),
    Mutant(
        "learners/kmeans",
        "a row in its own and the next cell",
        "place[:, None] == np.arange(many**p)",
        "abs(place[:, None] - np.arange(many**p)) <= 1",
    ),
    Mutant("learners/kmeans", "grid charged on top", "share * (1 - _GRID_SHARE)", "share * 1.0"),
    Mutant(
        "learners/kmeans",
        "a part of the budget never spent",
        "self._iterate(cohort, row, centers, radius, half, share / steps",
        "self._iterate(cohort, row, centers, radius, half, share / steps / 2",
    ),
    Mutant(
        "learners/kmeans", "a count of noise moves a centre", "seen = sizes > 2 * sd / count", "seen = sizes > -np.inf"
    ),
    Mutant(
        "learners/logistic_regression",
        "curvature: half of the clip",
        "_LARGEST_CURVATURE = 0.25",
        "_LARGEST_CURVATURE = 0.125",
    ),
    Mutant("learners/logistic_regression", "curvature charged on top", "share -= _CURVATURE if", "share -= 0.0 if"),
    Mutant(
        "learners/logistic_regression",
        "noise on the curvature half as large",
        "found.sd / math.sqrt(2)",
        "found.sd / math.sqrt(8)",
    ),
    Mutant(
        "learners/logistic_regression",
        "noise in the objective left out of intervals",
        "math.sqrt(2), sd)",
        "math.sqrt(2), 0.0)",
    ),
    Mutant(
        "learners/logistic_regression",
        "ridge not taken off",
        "Equations(found.value, ridge * w,",
        "Equations(found.value, 0 * w,",
    ),
    Mutant(
        "learners/logistic_regression",
        "rows of an unknown class in the curvature",
        "np.sqrt(p * (1 - p)) + 0.0 * t)",
        "np.sqrt(p * (1 - p)))",
    ),
    Mutant(
        "learners/logistic_regression",
        "a delta promised and not spent",
        "replace(found, delta=None) if self.inference else found",
        "found",
    ),
    Mutant("learners/boosted_stumps", "weights above 1", "1 / (1 + each), 1 / (1 + 1 / each)", "1 / each, each"),
    Mutant("learners/boosted_stumps", "steps charged on top", "share=share * (1 - self.select_share),", "share=share,"),
    Mutant("learners/boosted_stumps", "a step at its word", "noise = 2 * sd**2", "noise = 0 * sd"),
    Mutant(
        "learners/boosted_stumps",
        "rows of an unknown class select",
        "_weights(starts, scores, codes, positive) + 0 * label\n\n    return cells",
        "_weights(starts, scores, codes, positive)\n\n    return cells",
    ),
    Mutant(
        "learners/boosted_stumps",
        "rows of an unknown class vote",
        "w = _weights(starts, scores, codes, positive) + 0 * label",
        "w = _weights(starts, scores, codes, positive)",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "clip of the smaller kind of row",
        "self.clip = max(",
        "self.clip = min(",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "sums that may be negative priced as counts",
        "size, nonnegative = 5, False",
        "size, nonnegative = 5, True",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "numbers not moved into their range",
        "(np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2), 0.0)\n        u = np.clip(u, -1.0, 1.0)",
        "(values - (low + high) / 2) / ((high - low) / 2), 0.0)",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "who is there counted for who is missing",
        "there if self.n is None else ~there",
        "there",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "missing numbers are the middle of the range",
        "np.where(there, part, 0.0) for part",
        "part for part",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "mean: interval without the noise of the number",
        "[self.sds[1], abs(at) * self.sds[0]]",
        "[0.0, abs(at) * self.sds[0]]",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "variance: what the mean's noise takes off stays off",
        "raw = square - mean * mean + (noise[1] / n) ** 2",
        "raw = square - mean * mean + 0 * noise[1]",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "noise of groups added up that of one",
        "self.sds * math.sqrt(self.copies)",
        "self.sds * 1.0",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "who is in no cell not counted",
        "np.hstack((inside, ~inside.any(axis=1, keepdims=True)))",
        "np.hstack((inside, inside[:, :1] & False))",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "share: interval without the noise of its own count",
        "own = (square, 0.0, square) if self.n is not None else (square,",
        "own = (0.0, 0.0, square) if self.n is not None else (0.0,",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "count: noise of groups added up that of one",
        "[self.sd], pure=self.pure, copies=self.copies)\n        value, most",
        "[self.sd], pure=self.pure)\n        value, most",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "one tail for two",
        "total * ndtri((1 + level) / 2)",
        "total * ndtri(level)",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "Laplace noise taken for normal",
        "if not pure or not parts.any():",
        "if True:",
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "the number itself, with an interval",
        "partial(_count, float(value)",
        "partial(_count, float(len(private))",
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "numbers beyond the edges in the last bins",
        'np.where(inside, np.searchsorted(cuts[1:-1], values, side="right"), np.nan)',
        'np.searchsorted(cuts[1:-1], values, side="right") + 0.0',
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "missing numbers are 0",
        "return np.where(there, cell, 0).astype(np.int64)",
        "return cell.astype(np.int64)",
    ),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "quantile: interval without the noise",
        "np.sqrt(sd**2 + inside *",
        "np.sqrt(0 * sd + inside *",
    ),
    Mutant("summaries/questions/moments_and_quantiles", "one tail for two", "ndtri((1 + level) / 2)", "ndtri(level)"),
    Mutant(
        "summaries/questions/moments_and_quantiles",
        "clip of the smallest column",
        "float(norms.max())",
        "float(norms.min())",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "who is in no group left out",
        "np.where(np.isfinite(code), code, float(groups))",
        "code",
    ),
    Mutant(
        "summaries/questions/column_questions",
        "planned noise of counts as of other sums",
        "return sd / math.sqrt(2) if",
        "return sd if",
    ),
    Mutant(
        "summaries/cohort_of_columns",
        "persons not passed on: each row is one",
        "privacy.cohort((private,), groups=groups,",
        "privacy.cohort((private,), groups=None,",
    ),
    Mutant(
        "summaries/questions/table1_plan",
        "half of the budget never spent",
        "question, 1 / len(asked), grouped)",
        "question, 0.5 / len(asked), grouped)",
    ),
    Mutant("summaries/table1", "each release charged for all of the budget", "share=part.share,\n", "share=1.0,\n"),
    Mutant(
        "summaries/table1",
        "all: noise of one group",
        "noisy.sum(axis=0), sd, groups + 1)",
        "noisy.sum(axis=0), sd, 1)",
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "each column charged for all of the budget",
        'share=1 / len(names), name=f"cum',
        'share=1.0, name=f"cum',
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "promise of noise for one column",
        "part * budget.total / len(names)",
        "part * budget.total",
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "tails lost in the noise are looked at",
        "at = max(tail, SURE * answer.sd * answer.asked.typical / answer.persons)",
        "at = tail",
    ),
    Mutant(
        "summaries/means_quantiles_counts",
        "one tail of the wanted size",
        "tail = (1 - coverage) / 2",
        "tail = 1 - coverage",
    ),
]


def copied(folder: Path) -> Path:
    """The repository's last commit in a folder."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def first_failure(where: Path, module: str) -> str:
    """The first of the tests of a module that fails, or "green"."""
    name, tests = module.rpartition("/")[2], TESTS.get(module) or TESTS[module.split("/")[0]]
    pick = ["-k", f"not (learners_common or privacy_ratios) or ({PICK[name]} and ({THESE}))"] if name in PICK else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests, *pick]
    environment = {**os.environ, "PYTHONPATH": str(where)}
    result = subprocess.run(command, cwd=where, capture_output=True, text=True, env=environment)
    found = re.findall(r"^FAILED \S*?::(\w+)", result.stdout, flags=re.MULTILINE)
    return "green" if result.returncode == 0 else found[0] if found else f"exit status {result.returncode}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="modules whose name has this")
    given = parser.parse_args()
    print("| module | mistake | first test that fails |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        where = copied(Path(folder))
        for mutant in MUTANTS:
            if given.only not in mutant.module:
                continue
            file = where / "fdadp" / f"{mutant.module}.py"
            source = file.read_text(encoding="utf-8")
            if source.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.old!r} stands {source.count(mutant.old)} times in {mutant.module}")
            file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
            print(f"| `{mutant.module}` | {mutant.mistake} | {first_failure(where, mutant.module)} |", flush=True)
            file.write_text(source, encoding="utf-8")


if __name__ == "__main__":
    main()
