"""The boosting article's experiments: its rows, splits and cells, and the reading that its figures are near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from studies import many_owners_pca, published_boosting
from studies.learner_tasks import Task

from fdadp.errors import InputError
from fdadp.learners.shared.public_encoding import Categorical, Numeric


def made(name: str, n: int = 1500) -> Task:
    """Two numbers and a country; the label follows the numbers, and its opposite for those from elsewhere."""
    rng = np.random.default_rng(0)
    x, away = rng.uniform(0, 1, (2 * n, 2)), rng.random(2 * n) < 0.3
    X = pd.DataFrame(x, columns=["a", "b"]).assign(**{"native-country": np.where(away, "Cuba", "United-States")})
    y = np.where((x @ [2.0, 1.0] + 0.2 * rng.normal(size=2 * n) > 1.5) ^ away, "yes", "no")
    features = {"a": Numeric(0, 1), "b": Numeric(0, 1), "native-country": Categorical(("Cuba", "United-States"))}
    test: tuple[Any, Any] = (X.iloc[n:], y[n:]) if name == "adult" else (None, None)
    return Task(name, "classification", X.iloc[:n], y[:n], *test, features, ("no", "yes"))


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_boosting, "TASKS", {k: lambda download, k=k: made(k) for k in ("adult", "bank")})


def test_rows_are_those_of_the_article(tasks: None) -> None:
    X, y, X_test, y_test = next(published_boosting.samples("adult"))
    task = made("adult")
    assert len(X) == (task.X["native-country"] == "United-States").sum() < len(task.X)
    assert len(X_test) == (task.X_test["native-country"] == "United-States").sum()
    assert len(y) == len(X) and len(y_test) == len(X_test)
    runs = published_boosting.samples("bank")
    (first, *_, rest, _), (second, *_) = next(runs), next(runs)
    assert (len(first), len(rest)) == (1050, 450)
    assert not np.array_equal(first, second)
    with pytest.raises(InputError, match="adult or bank"):
        next(published_boosting.samples("iris"))


def test_cells_are_the_two_figures_or_all() -> None:
    figures, whole = published_boosting.cells(False), published_boosting.cells(True)
    assert len(figures) == 15 and len(whole) == 64 and set(figures) < set(whole)
    assert {B for B, m in figures if m == 50} == {0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 3.0, 5.0}
    assert {m for B, m in figures if B == 1.0} == {30, 40, 50, 60, 70, 80, 90, 100}


def test_one_sample_and_a_bounded_vote_keep_the_accuracy_that_all_tied_samples_lose(tasks: None) -> None:
    readings = ("one sample, bounded vote", "all tied samples")
    results = published_boosting.study("adult", [(1.0, 50)], 3, readings)
    mean = results.groupby("reading")["accuracy"].mean()
    assert mean[""] > 0.85  # AdaBoost
    assert mean[readings[0]] > mean[readings[1]] + 0.05
    pages = list(published_boosting.tables(results))
    assert len(pages) == 1 + 2 * 2 and "DPAda_Improved" in pages[1]
    assert published_boosting.summary(results).count("\n") == 4


def test_stand_ins_have_the_size_and_the_spectrum_that_is_said() -> None:
    task = many_owners_pca.stand_in("facebook", rows=20_000)
    assert task.X.shape == (20_000, many_owners_pca.SIZES["facebook"][1])
    values = np.linalg.eigvalsh(np.cov(task.X.T))[::-1]
    np.testing.assert_allclose(values / values[0], 1 / np.arange(1, 54), rtol=0.1)
    assert np.linalg.norm(task.X, axis=1).mean() == pytest.approx(1, abs=0.1)
    assert many_owners_pca.with_delta_of_one_row(task).delta == 1 / 20_000
    few = many_owners_pca.stand_in("facebook", rows=500)
    assert many_owners_pca.with_delta_of_one_row(few).delta == many_owners_pca.LARGEST_DELTA
