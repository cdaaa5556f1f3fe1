"""The privacy book's examples: its worked table to the printed digits, and what its figures rest on."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from studies import pages, privacy_book
from studies.noisy_discriminants import DPDiscriminants


def test_the_worked_table_of_naive_bayes_is_the_printed_one() -> None:
    """.025 against .0056, from the private learner's own tables, noise being next to nothing."""
    joint = privacy_book.worked_table(1e6)
    assert {name: float(f"{value:.2g}") for name, value in joint.items()} == privacy_book.PRINTED_JOINT
    assert joint["Yes"] == pytest.approx(4 / 10 * 2 / 4 * 1 / 4 * 2 / 4, rel=1e-4)
    assert joint["No"] == pytest.approx(6 / 10 * 1 / 6 * 1 / 6 * 2 / 6, rel=1e-4)
    drawn = [privacy_book.worked_table(1.0, seed)["Yes"] for seed in range(5)]
    assert np.std(drawn) > 0.005  # at ε = 1 it is another table each time


def test_the_noise_of_the_library_does_not_know_of_the_target() -> None:
    """One draw in other units of y: with noise for the longest row (x, y) slopes would change by the unit alone."""
    X, y = load_diabetes(return_X_y=True)

    def slopes(scale: float) -> np.ndarray:
        predict = privacy_book.as_the_library_did(X, scale * y, 1.0, np.random.default_rng(0))
        return (predict(np.eye(10)) - predict(np.zeros((1, 10)))) / scale

    small, large, larger = (slopes(scale) for scale in (1e-3, 1e3, 1e6))
    size = np.linalg.norm(large)
    assert np.linalg.norm(small - large) > 0.2 * size
    # What is left for large numbers is the ridge that Wishart noise is in X'X; on X'y there is none.
    assert np.linalg.norm(large - larger) < 1e-3 * size
    assert size < 0.8 * np.linalg.norm(LinearRegression().fit(X, y).coef_)
    free = privacy_book.as_the_library_did(X, y, 1e9, np.random.default_rng(0))
    np.testing.assert_allclose(free(X), LinearRegression().fit(X, y).predict(X), rtol=1e-4)


def test_scores_of_clusters_are_in_the_order_that_is_printed() -> None:
    X, digits = load_digits(return_X_y=True)
    means = np.stack([X[digits == c].mean(axis=0) for c in range(10)])
    found = privacy_book.cluster_scores(X, digits, X, lambda: means, 0)
    assert len(found) == len(privacy_book.SCORES)
    named = dict(zip(privacy_book.SCORES, found, strict=True))
    assert 0.6 < named["ARI"] < named["AMI"] < named["V"] < 1
    assert named["V"] == pytest.approx(2 / (1 / named["homogeneity"] + 1 / named["completeness"]))
    assert named["inertia, own means"] < named["inertia"] < 1.1 * named["inertia, own means"]
    elsewhere = privacy_book.cluster_scores(X, digits, X / 16, lambda: means / 16, 0)
    assert math.isnan(elsewhere[1]) and elsewhere[2:] == pytest.approx(found[2:])


def test_discriminants_without_noise_are_scikit_learns() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:, 10:30] / 16, y % 3
    model = DPDiscriminants(epsilon=1e4, delta=1e-5, classes=[0, 1, 2], data_norm=10.0, random_state=0).fit(X, y)
    plain = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert (model.predict(X) == plain.predict(X)).mean() > 0.98
    np.testing.assert_allclose(model.means_, plain.means_, atol=1e-3)
    two = DPDiscriminants(epsilon=1e4, delta=1e-5, classes=[0, 1], data_norm=10.0, random_state=0).fit(X, y)
    assert two.predict_proba(X).shape == (len(X), 2)  # rows of class 2 count as none
    np.testing.assert_allclose(two.means_, plain.means_[:2], atol=1e-3)


def test_discriminants_release_one_moment_and_take_noise_for_it() -> None:
    X, y = load_digits(return_X_y=True)
    settings = {"classes": list(range(10)), "data_norm": 3.0, "center": 0.3, "delta": 1e-5}
    model = DPDiscriminants(epsilon=1.0, random_state=0, **settings).fit(X / 16, y)
    (release,) = model.ledger_.releases
    assert release.size == 74 * 75 // 2 and release.clip == pytest.approx(9 + 1.5**2)
    better = DPDiscriminants(epsilon=10.0, random_state=0, **settings).fit(X / 16, y)
    some, more = ((fit.predict(X / 16) == y).mean() for fit in (model, better))
    assert 0.5 < some < 0.9 < more


def test_a_page_says_its_command_and_commit() -> None:
    said = pages.made_with("python benchmarks/studies/privacy_book.py")
    assert said.startswith("`python benchmarks/studies/privacy_book.py`; fdadp ")
    assert "commit " in said
    assert (Path(privacy_book.__file__).parents[1] / "results") == pages.RESULTS
    assert pages.table(["a", "b"], [["x", 0.5]]) == "| a | b |\n| --- | --- |\n| x | 0.500 |\n"
    assert pages.mean_sd([1.0, 2.0]) == "1.500 (0.707)" and pages.mean_sd([1.0]) == "1.000"
