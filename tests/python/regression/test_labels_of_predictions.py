"""Predictions keep the labels of the rows that they are of, with and without privacy."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression, open_curves
from fdadp.private.release.mechanisms import DPAFF

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")
N = 40
WHO = pd.Index([f"p{i}" for i in range(N)], name="pid")
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 9)).cumsum(axis=1), index=WHO, columns=np.linspace(0, 1, 9))
AGE = pd.Series(RNG.normal(size=N), index=WHO)
Y = X / 2 + RNG.normal(size=(N, 9))


def settings(private: bool) -> dict[str, object]:
    if not private:
        return {"progress": False}
    bounds = {"X": (-5, 5), "Y": (-5, 5), "age": (-3, 3)}
    privacy = Privacy(8.0, 1e-6, n=N, random_state=0)
    return {"progress": False, "privacy": privacy, "bounds": bounds, "mechanism": DPAFF(allow_useless=True)}


@pytest.mark.parametrize("private", [False, True])
def test_predicted_curves_are_labelled_as_the_new_rows(private: bool) -> None:
    model = FunctionalRegression("Y ~ ff(X) + age", **settings(private)).fit({"X": X, "Y": Y, "age": AGE})
    new = {"X": X[:5], "age": AGE[:5]}
    found = [model.predict(new), model.predict_se(new), *model.predict_interval(new)]
    found += model.predict(new, type="terms").values()
    for frame in found:
        pd.testing.assert_index_equal(frame.index, WHO[:5])
    turned = model.predict({"age": AGE[:5][::-1], "X": X[:5]})
    pd.testing.assert_frame_equal(turned.loc[WHO[:5]], found[0])


@pytest.mark.parametrize("private", [False, True])
def test_predicted_numbers_are_a_series_where_rows_have_labels(private: bool) -> None:
    model = ScalarRegression("age ~ lf(X)", **settings(private)).fit({"X": X, "age": AGE})
    plain = model.predict({"X": X[:5].to_numpy()}, grids={"X": np.linspace(0, 1, 9)})
    assert isinstance(plain, np.ndarray)
    new = {"X": X[:5]}
    for found in (model.predict(new), model.predict_se(new), *model.predict_interval(new)):
        assert isinstance(found, pd.Series) and found.name == "age"
        pd.testing.assert_index_equal(found.index, WHO[:5])
    np.testing.assert_array_equal(model.predict(new), plain)
    assert isinstance(model.predict({"X": X[:5].reset_index(drop=True)}), np.ndarray)


@pytest.mark.parametrize("of", [AdditiveFunctionOnFunction, FunctionalRegression])
@pytest.mark.parametrize("method", ["fit", "predict", "predict_se", "predict_interval", "check", "plan"])
def test_grids_go_by_name_only(of: type, method: str) -> None:
    """fit took (X, Y, s, t) and predict (X, t, s): intervals and standard errors still had an order of their own."""
    parameters = inspect.signature(getattr(of, method, of.fit)).parameters  # type: ignore[attr-defined]
    grids = [parameters[name] for name in ("s", "t") if name in parameters]
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in grids)


@pytest.mark.parametrize("private", [False, True])
def test_a_file_that_was_opened_gives_its_ids_to_predictions(private: bool, tmp_path: Path) -> None:
    """They were an array: only frames and series in memory had labels."""
    table = X.set_axis([f"h{s}" for s in range(9)], axis=1).assign(age=AGE)
    table.to_csv(tmp_path / "table.csv")
    opened = open_curves(tmp_path / "table.csv", curves={"X": "h"}, rows="pid")
    model = ScalarRegression("age ~ lf(X)", **settings(private)).fit(opened)
    held = model.predict({"X": X}, grids={"X": np.arange(9.0)})
    for found in (model.predict(opened), *model.predict_interval(opened)):
        pd.testing.assert_index_equal(found.index, WHO)
    np.testing.assert_array_equal(model.predict(opened), held)
    curves = FunctionalRegression("X ~ age", **settings(private)).fit(opened)
    pd.testing.assert_index_equal(curves.predict(opened).index, WHO)
