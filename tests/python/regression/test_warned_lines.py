"""Warnings name the line of the user's code, not one inside the package, however deep they arise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import ExtrapolationWarning, IdentificationWarning, PublicInputWarning

N, S = 60, np.linspace(0, 1, 21)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)) @ np.array([np.sin((k + 1) * 3 * S) for k in range(4)])
DATA = {"X": X, "Y": X[:, ::-1] + 0.1 * RNG.normal(size=X.shape), "z": RNG.normal(size=N), "y": RNG.normal(size=N)}
TWICE = DATA | {"w": DATA["z"]}
GRIDS = {"X": S, "Y": S}
NARROW = {name: (-0.1, 0.1) for name in ("X", "Y", "z", "y")}


def private():
    return {"privacy": Privacy(50.0, 1e-6, n=N, random_state=0), "bounds": NARROW}


CALLS = {
    "terms twice": (IdentificationWarning, lambda: FunctionalRegression("Y ~ z + w").fit(TWICE, grids={"Y": S})),
    "terms twice, numbers": (IdentificationWarning, lambda: ScalarRegression("y ~ z + w").fit(TWICE)),
    "terms twice, chunks": (IdentificationWarning, lambda: ScalarRegression("y ~ z + w").fit_chunks([TWICE])),
    "classes apart": (
        IdentificationWarning,
        lambda: ScalarRegression("y ~ z", family="binomial").fit({"z": DATA["z"], "y": (DATA["z"] > 0) * 1.0}),
    ),
    "bounds": (
        PublicInputWarning,
        lambda: FunctionalRegression("Y ~ ff(X) + z", **private()).fit(DATA, grids=GRIDS),
    ),
    "bounds, numbers": (PublicInputWarning, lambda: ScalarRegression("y ~ z", **private()).fit(DATA)),
    "bounds, surface": (
        PublicInputWarning,
        lambda: AdditiveFunctionOnFunction(**private() | {"bounds": {n: NARROW[n] for n in "XY"}}).fit(X, DATA["Y"]),
    ),
    "outside": (
        ExtrapolationWarning,
        lambda: AdditiveFunctionOnFunction(n_components=2).fit(X, DATA["Y"]).predict(10 * X),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_names_the_users_line(name):
    kind, call = CALLS[name]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    files = {w.filename for w in found if issubclass(w.category, kind)}
    assert files == {__file__}
