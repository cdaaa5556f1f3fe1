"""Importing, fitting and predicting load no package that takes longer than they do: asked of a fresh process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fdadp.cli.main import app

SLOW = {"pandas", "sklearn", "scipy.stats", "scipy.signal", "matplotlib", "statsmodels", "joblib", "skfda", "tqdm"}
if importlib.util.find_spec("fdadp._kernels"):  # else there was no compiler: tests/python/common/test_kernels.py
    SLOW |= {"numba"}

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


ASKED = f"\nprint('loaded:', *[name for name in {sorted(SLOW)!r} if name in sys.modules])\n"


def slow_packages_after(program: str) -> list[set[str]]:
    """Slow packages that are loaded wherever a program asks."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [set(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("loaded:")]


def slow_packages_of(program: str) -> set[str]:
    return slow_packages_after(program + ASKED)[-1]


NEITHER = "assert not {'numba', 'scipy.optimize', 'scipy.interpolate'} & set(sys.modules)\n"


def test_the_names_of_the_first_day_load_no_slow_package() -> None:
    assert slow_packages_of(IMPORT + NEITHER) == set()


def test_a_slow_package_is_seen() -> None:
    assert "scipy.stats" in slow_packages_of(IMPORT + "import scipy.stats")


FITS = [(kind, private) for private in (False, True) for kind in MODELS]


@pytest.fixture(scope="module")
def loaded_by_fits() -> dict[tuple[str, bool], set[str]]:
    """Slow packages after each fit with its predictions, one after the other in one process."""
    program = IMPORT + DATA
    for kind, private in FITS:
        own = PRIVACY % NAMES[kind] if private else ""
        program += MODELS[kind].format(own, f", {own}" if own else "") + ASKED
    return dict(zip(FITS, slow_packages_after(program), strict=True))


@pytest.mark.parametrize(("kind", "private"), FITS)
def test_a_fit_and_its_predictions_load_no_slow_package(
    loaded_by_fits: dict[tuple[str, bool], set[str]], kind: str, private: bool
) -> None:
    assert loaded_by_fits[kind, private] == set()


def test_a_saved_model_at_the_command_line_loads_no_slow_package(tmp_path: Path) -> None:
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
    app(["fit", str(x), str(y), "--out", model], standalone_mode=False)
    assert slow_packages_of(program.format([["predict", model, str(x), "--out", out]])) <= {"pandas"}
    assert slow_packages_of(program.format([["summary", model]]) + NEITHER) == set()
