"""Importing, fitting and predicting load no package that takes longer than they do: asked of a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SLOW = {"pandas", "sklearn", "scipy.stats", "scipy.signal", "matplotlib", "statsmodels", "joblib", "skfda", "tqdm"}

IMPORT = """
import sys
from fdadp import (
    AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression, SurvivalRegression, plan,
    read_curves, simulate_affr, terms,
)
"""

DATA = """
import numpy as np
rng = np.random.default_rng(0)
X, Y = rng.uniform(-1, 1, (60, 12)), rng.uniform(-1, 1, (60, 9))
age, z = rng.uniform(20, 80, 60), rng.uniform(-1, 1, 60)
table = {"X": X, "Y": Y, "age": age, "z": z}
bounds = {"X": (-1, 1), "Y": (-1, 1), "age": (20, 80), "z": (-1, 1)}
"""

MODELS = {
    "additive": """
model = AdditiveFunctionOnFunction({0}).fit(X, Y)
model.predict(X)
model.predict_interval(X)
""",
    "curves": """
model = FunctionalRegression([terms.ff("X", k=(5, 5)), terms.linear("age")], response="Y"{1}).fit(table)
model.predict(table)
model.predict_interval(table)
""",
    "numbers": """
model = ScalarRegression([terms.lf("X", k=6), terms.linear("age")], response="z"{1}).fit(table)
model.predict(table)
model.predict_interval(table)
""",
}

PRIVACY = "privacy=Privacy(epsilon=5, delta=1e-6, n=60), bounds={name: bounds[name] for name in (%s)}"
NAMES = {"additive": '"X", "Y"', "curves": '"X", "Y", "age"', "numbers": '"X", "z", "age"'}


def slow_packages_of(program: str) -> set[str]:
    asked = f"\nprint('loaded:', *[name for name in {sorted(SLOW)!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program + asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_names_of_the_first_day_load_no_slow_package() -> None:
    assert slow_packages_of(IMPORT + "assert 'numba' not in sys.modules") == set()


def test_a_slow_package_is_seen() -> None:
    assert "scipy.stats" in slow_packages_of(IMPORT + "import scipy.stats")


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("kind", list(MODELS))
def test_a_fit_and_its_predictions_load_no_slow_package(kind: str, private: bool) -> None:
    own = PRIVACY % NAMES[kind] if private else ""
    assert slow_packages_of(IMPORT + DATA + MODELS[kind].format(own, f", {own}" if own else "")) == set()


def test_predictions_of_a_saved_model_at_the_command_line_load_no_slow_package(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = tmp_path / "x.csv", tmp_path / "y.csv"
    for path, points in ((x, 12), (y, 9)):
        head = ",".join(str(j / (points - 1)) for j in range(points))
        np.savetxt(path, rng.uniform(-1, 1, (60, points)), delimiter=",", header=head, comments="")
    program = """
import sys
from fdadp.cli.main import app
for command in {!r}:
    app(command, standalone_mode=False)
"""
    model, out = str(tmp_path / "model.npz"), str(tmp_path / "predicted.csv")
    fit = [["fit", str(x), str(y), "--out", model]]
    subprocess.run([sys.executable, "-c", program.format(fit)], check=True, capture_output=True)
    assert slow_packages_of(program.format([["predict", model, str(x), "--out", out]])) <= {"pandas"}
