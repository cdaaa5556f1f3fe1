"""What a study has fixed of columns holds for every estimator: another is refused before the read, nothing is spent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid
from study_tools import nothing_was_spent, study_at

from fdadp import (
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    Study,
    simulate_affr,
)
from fdadp.errors import PrivacyError
from fdadp.learners import Categorical, DPGaussianNB, DPHistogramNB, DPKMeans, DPLinearRegression, Numeric

N = 300
BOUNDS = {
    "heart rate": (-8, 8),
    "X": (-4, 4),
    "Y": (-8, 8),
    "age": (0, 100),
    "weight": (0.0, 200.0),
    "sex": ["f", "m"],
    "dead": [0, 1],
}


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    path = tmp_path_factory.mktemp("wards") / "wards.fdadp"
    study_at(path, n=N, bounds=BOUNDS, sources="manual")
    return path


@pytest.fixture(scope="module")
def people():
    return simulate_affr(scenario=1, n=N, seed=0, n_points=11)


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(0, 100, N), "weight": rng.uniform(0, 200, N)})
    return X, pd.Series(np.arange(N) % 2, name="dead"), pd.Series(rng.uniform(0, 200, N), name="weight")


OTHER = {
    "mean": lambda p, c: PrivateMean(privacy=p, bounds=(-9, 8)).fit(c.Y),
    "mean of named curves": lambda p, c: PrivateMean(privacy=p, bounds=(-9, 8)).fit(
        FDataGrid(c.Y.data_matrix[..., 0], c.Y.grid_points[0], coordinate_names=("heart rate",))
    ),
    "mean of chunks": lambda p, c: PrivateMean(privacy=p, bounds=(-9, 8)).fit_chunks(
        [c.Y.data_matrix[..., 0]], t=c.Y.grid_points[0]
    ),
    "components": lambda p, c: PrivateFPCA(privacy=p, bounds=(-8, 9)).fit(c.Y),
    "curves on curves": lambda p, c: AdditiveFunctionOnFunction(privacy=p, bounds={"X": (-4, 4), "Y": (-1, 8)}).fit(
        c.X, c.Y
    ),
    "terms": lambda p, c: FunctionalRegression("Y ~ sff(X)", privacy=p, bounds={"X": (-4, 3)}).fit(
        {"X": c.X, "Y": c.Y}
    ),
    "a range for all columns": lambda p, c: DPKMeans(study=p.study, n_clusters=2, bounds=(0, 100)).fit(table()[0]),
    "ranges by column": lambda p, c: DPGaussianNB(study=p.study, classes=[0, 1], bounds=((0, 0), (100, 150))).fit(
        *table()[:2]
    ),
    "classes": lambda p, c: DPGaussianNB(study=p.study, classes=[0, 1, 2], bounds=((0, 0), (100, 200))).fit(
        *table()[:2]
    ),
    "columns without names": lambda p, c: DPKMeans(study=p.study, n_clusters=2, bounds=(0, 100)).fit(
        table()[0].to_numpy()
    ),
    "target": lambda p, c: DPLinearRegression(study=p.study, bounds=((0, 0), (100, 200)), bounds_y=(0, 100)).fit(
        table()[0], table()[2]
    ),
    "features by name": lambda p, c: DPHistogramNB(
        study=p.study, classes=[0, 1], features={"age": Numeric(0, 120), "weight": Numeric(0, 200)}
    ).fit(*table()[:2]),
    "features in order": lambda p, c: DPHistogramNB(
        study=p.study, classes=[0, 1], features=[Numeric(0, 100), Categorical(["f", "m"])]
    ).fit(*table()[:2]),
}


@pytest.mark.parametrize("how", OTHER)
def test_other_bounds_are_refused_and_nothing_is_spent(wards, people, how):
    with pytest.raises(PrivacyError, match=r"bounds of .* must be those of the study, .*, or left out, got"):
        OTHER[how](Privacy(study=wards, epsilon=0.5), people)
    assert nothing_was_spent(wards)


def test_the_same_bounds_are_taken(tmp_path, people):
    path = tmp_path / "wards.fdadp"
    study_at(path, n=N, epsilon=20.0, bounds=BOUNDS)
    X, dead, weight = table()
    same = {"study": str(path), "epsilon": 0.5}
    DPGaussianNB(classes=[1, 0], bounds=((0, 0), (100, 200)), **same).fit(X, dead)  # levels have no order
    DPLinearRegression(bounds=((0, 0), (100, 200)), bounds_y=(0, 200), **same).fit(X, weight)
    features = {"age": Numeric(0, 100), "weight": Numeric(0, 200)}
    DPHistogramNB(classes=[0, 1], features=features, **same).fit(X, dead)
    privacy = Privacy(study=path, epsilon=5.0)
    PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(people.Y)
    AdditiveFunctionOnFunction(privacy=privacy).plan(s=11, t=11)  # the study's, where they are left out
    of = Study(path)
    assert len(of.fits) == 4
    assert of.fits[0].public["bounds"] == [[0, 0], [100, 200]]
    assert of.verify() == ()
    study_at(tmp_path / "without", n=N)
    with pytest.raises(PrivacyError, match="bounds must give a public range for X"):
        AdditiveFunctionOnFunction(privacy=Privacy(study=tmp_path / "without", epsilon=1.0)).plan(s=11, t=11)


def test_its_budget_holds_fits_to_them_too(wards):
    """As private choices hand it on."""
    budget = Study(wards).budget
    model = DPGaussianNB(epsilon=0.5, delta=1e-6, n=N, budget=budget, classes=[0, 1], bounds=((0, 0), (100, 150)))
    with pytest.raises(PrivacyError, match="bounds of weight must be those of the study"):
        model.fit(*table()[:2])
    assert nothing_was_spent(wards)


def test_columns_that_it_does_not_name_are_written_down(tmp_path, people):
    path = tmp_path / "wards.fdadp"
    study_at(path, n=N, bounds={"heart rate": (30, 180)})
    PrivateMean(privacy=Privacy(study=path, epsilon=0.5), bounds=(-8, 8)).fit(people.Y)
    (fit,) = Study(path).fits
    assert fit.public["bounds of the curves"] == [-8.0, 8.0]
