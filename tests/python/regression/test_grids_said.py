"""Summaries say on which points each curve is, in the unit that its labels give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, Privacy, PrivateFPCA, PrivateMean, ScalarRegression
from fdadp.private.mechanisms import DPAFF

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
N = 40
WHO = pd.Index([f"p{i}" for i in range(N)], name="pid")
RNG = np.random.default_rng(0)
HOURS = pd.date_range("2024-03-01", periods=9, freq="h")
X = pd.DataFrame(RNG.normal(size=(N, 9)).cumsum(axis=1), index=WHO, columns=HOURS)
Y = pd.DataFrame(X.to_numpy() / 2, index=WHO, columns=[f"h{j:02d}" for j in range(9)])
DATA = {"X": X, "Y": Y, "y": X.mean(axis=1), "age": pd.Series(RNG.normal(size=N), index=WHO)}
OF_X = "Grid of X: 9 points on [0, 8] hours since 2024-03-01."
OF_Y = "Grid of Y: 9 points on [0, 8]."


def settings(private: bool) -> dict[str, object]:
    if not private:
        return {"progress": False}
    bounds = {"X": (-9, 9), "Y": (-9, 9), "y": (-9, 9)}
    privacy = Privacy(8.0, 1e-6, n=N, random_state=0)
    return {"progress": False, "privacy": privacy, "bounds": bounds, "mechanism": DPAFF(allow_useless=True)}


@pytest.mark.parametrize("private", [False, True])
def test_of_models_of_many_terms_also_from_a_file(private: bool, tmp_path: Path) -> None:
    """Of a model of numbers no grid was shown, of curves the domain of the response alone, and never a unit."""
    of_numbers = ScalarRegression("y ~ lf(X)", **settings(private)).fit(DATA)  # type: ignore[arg-type]
    of_curves = FunctionalRegression("Y ~ ff(X)", **settings(private)).fit(DATA)  # type: ignore[arg-type]
    assert OF_X in str(of_numbers.summary())
    assert OF_X in str(of_curves.summary()) and OF_Y in str(of_curves.summary())
    for model in (of_numbers, of_curves):
        assert OF_X in str(type(model).load(model.save(tmp_path / "model.npz")).summary())


def test_of_chunks_whose_rows_are_joined_chunk_by_chunk() -> None:
    """The summary said of two chunks of 20 that 20 of 20 rows were joined."""
    chunks = [{name: column[rows] for name, column in DATA.items()} for rows in (slice(20), slice(20, N))]
    chunks[1]["age"] = chunks[1]["age"][::-1]
    model = FunctionalRegression("Y ~ ff(X)", progress=False).fit_chunks(chunks)
    assert model.joined_ == "joined by pid, chunk by chunk"
    assert OF_X in str(model.summary()) and OF_Y in str(model.summary())
    turned = ScalarRegression("y ~ lf(X) + age", progress=False).fit_chunks(chunks)
    whole = ScalarRegression("y ~ lf(X) + age", progress=False).fit(DATA)
    np.testing.assert_allclose(turned.coef("age")["value"], whole.coef("age")["value"], atol=1e-8)


@pytest.mark.parametrize("kind", [PrivateMean, PrivateFPCA])
def test_of_private_summaries_also_from_a_file(kind: type, tmp_path: Path) -> None:
    """They gave a number of points."""
    privacy = Privacy(8.0, 1e-6, n=N, random_state=0)
    model = kind(privacy=privacy, bounds=(-9, 9), allow_useless=True)
    said = "9 points on [0, 8] hours since 2024-03-01"
    assert said in str(model.fit(X).summary())
    assert said in str(kind.load(model.save(tmp_path / "model.npz")).summary())  # type: ignore[attr-defined]
    assert "9 points on [0, 1]" in str(model.fit(X.to_numpy()).summary())
