"""Private fits where the curves lie on a cluster's workers: the fit of one process bit for bit, and its account."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from learner_registry import LEARNERS, toy
from output_perturbation import OutputPerturbation

from fdadp import (
    DPAFF,
    AdditiveFunctionOnFunction,
    FunctionalRegression,
    Privacy,
    PrivateFPCA,
    PrivateMean,
    simulate_affr,
)
from fdadp.errors import PrivacyError
from fdadp.privacy.rows import _dask_partitions
from fdadp.privacy.study import Study

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning"),
    pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning"),
]

N, PERSONS, GRID = 3000, 1700, np.linspace(0, 1, 15)
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
ALWAYS = ("DPGaussianNB", "DPPCA-power", "DPKMeans-box", "DPLinearRegression, AdaSSP", "DPLogisticRegression, output")
"""Learners of each kind; the others are fitted with the audits."""
PARTITIONS = [(N,), (1500, 1500), (1, 2998, 1), (700, 0, 900, 700, 700), (600,) * 5]


@pytest.fixture(scope="module")
def people():
    sim = simulate_affr(scenario=1, n=N, seed=0, n_points=GRID.size)
    x, y = (c.data_matrix[..., 0].copy() for c in (sim.X, sim.Y))
    x[3, 5], y[700, 0], x[2999] = np.nan, np.inf, 1e30
    rng = np.random.default_rng(1)
    ids = rng.integers(0, PERSONS, N).astype(object)
    ids[::3] = [f"p{i}" for i in ids[::3]]
    ids[17] = None
    return x, y, ids


def model(**settings):
    given = {"epsilon": 2.0, "delta": 1e-6, "n": PERSONS, "random_state": 7} | settings
    mechanism = given.pop("mechanism", "dp-aff")
    return AdditiveFunctionOnFunction(privacy=Privacy(**given), bounds=BOUNDS, mechanism=mechanism, progress=False)


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.ledger_.releases == other.ledger_.releases
    details = [{k: v for k, v in m.ledger_.details.items()} for m in (one, other)]
    assert details[0] == details[1]


@pytest.fixture
def workers(monkeypatch):
    """A cluster's work done in this process."""
    monkeypatch.setattr(_dask_partitions, "active_client", object)
    with dask.config.set(scheduler="synchronous"):
        yield


def delayed_chunks(arrays, sizes):
    ends = np.cumsum((0, *sizes))
    return [dask.delayed(tuple)([dask.delayed(a[i:j], traverse=False) for a in arrays]) for i, j in pairwise(ends)]


def fitted(people, sizes, *, chunks, **settings):
    """A fit to rows in partitions of these sizes: to chunks, or to arrays of which Y has other ones."""
    x, y, ids = people
    if chunks:
        return model(**settings).fit_chunks(delayed_chunks(people, sizes), s=GRID, t=GRID, groups=True)
    lazy = da.from_array(x, chunks=(sizes, 4)), da.from_array(y, chunks=(PARTITIONS[-1], GRID.size))
    return model(**settings).fit(*lazy, s=GRID, t=GRID, groups=da.from_array(ids, chunks=1000) if sizes[1:] else ids)


def test_five_partitionings_give_the_fit_of_one_process(people, workers):
    x, y, ids = people
    of = {name: model(mechanism=name).fit(x, y, s=GRID, t=GRID, groups=ids) for name in ("moments", "dp-aff")}
    for k, sizes in enumerate(PARTITIONS):
        same(fitted(people, sizes, chunks=k % 2, mechanism="moments"), of["moments"])
    for k in (1, 3):
        same(fitted(people, PARTITIONS[k], chunks=k == 1), of["dp-aff"])


def test_two_processes_give_the_fit_of_one(people, two_workers):
    x, y, ids = people
    with two_workers.as_current():
        in_memory = model().fit(x, y, s=GRID, t=GRID, groups=ids)
        same(fitted(people, PARTITIONS[3], chunks=False), in_memory)


@pytest.mark.parametrize(
    "settings", [{"n": None, "mechanism": "moments"}, {"delta": None}, {"mechanism": OutputPerturbation()}]
)
def test_other_guarantees_and_mechanisms(people, workers, settings):
    x, y, ids = people
    in_memory = model(**settings).fit(x, y, s=GRID, t=GRID, groups=ids)
    lazy = da.from_array(x, chunks=(700, 15)), da.from_array(y, chunks=(700, 15))
    same(model(**settings).fit(*lazy, s=GRID, t=GRID, groups=ids), in_memory)


def test_models_of_many_terms_from_arrays_and_delayed_tables(people, workers):
    x, y, ids = people
    age = np.abs(x[:, 4]) * 20
    table = {"X": x, "age": age, "Y": y, "who": ids}

    def fitted(data, *, chunks=False):
        model = FunctionalRegression(
            "Y ~ ff(X) + s(age)",
            privacy=Privacy(2.0, 1e-6, n=PERSONS, random_state=7),
            bounds=BOUNDS | {"age": (0, 100)},
            mechanism=DPAFF(allow_useless=True),
        )
        return (model.fit_chunks if chunks else model.fit)(data, groups="who", grids={"X": GRID, "Y": GRID})

    in_memory = fitted(table)
    lazy = {name: da.from_array(v, chunks=(700, *v.shape[1:])) for name, v in table.items()}
    pieces = [{k: v[i : i + 700] for k, v in table.items()} for i in range(0, N, 700)]
    for found in (fitted(lazy), fitted([dask.delayed(p) for p in pieces], chunks=True)):
        np.testing.assert_array_equal(found.fitted_.fit.coefficients, in_memory.fitted_.fit.coefficients)
        assert found.ledger_.releases == in_memory.ledger_.releases


@pytest.mark.parametrize("kind", [PrivateMean, PrivateFPCA])
def test_means_and_components(people, workers, kind):
    _, y, _ = people

    def fitted(fit, *args, **kwargs):
        summary = kind(privacy=Privacy(2.0, 1e-6, n=N, random_state=3), bounds=BOUNDS["Y"])
        return getattr(summary, fit)(*args, **kwargs).mean_

    expected = np.ravel(fitted("fit", y, t=GRID))
    np.testing.assert_array_equal(np.ravel(fitted("fit", da.from_array(y, chunks=700), t=GRID)), expected)
    chunks = [dask.delayed(y[i : i + 700]) for i in range(0, N, 700)]
    np.testing.assert_array_equal(np.ravel(fitted("fit_chunks", chunks, t=GRID)), expected)


@pytest.mark.parametrize(
    "entry", [pytest.param(e, marks=() if str(e) in ALWAYS else pytest.mark.statistics, id=str(e)) for e in LEARNERS]
)
def test_learners_that_are_sums(workers, entry):
    rows, target = toy(entry.kind)
    arrays = (rows,) if target is None else (rows, target)
    lazy = tuple(da.from_array(np.asarray(a), chunks=(150, *np.shape(a)[1:])) for a in arrays)
    one = entry.make(random_state=4).fit(*arrays)
    if "Logistic" in str(entry) and not any(sums in str(entry) for sums in ("gradient", "rounds")):
        with pytest.raises(PrivacyError, match="the minimum of a logistic loss is no sum over partitions"):
            entry.make(random_state=4).fit(*lazy)
        return
    other = entry.make(random_state=4).fit(*lazy)
    assert one.ledger_.releases == other.ledger_.releases
    for name, value in vars(one).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(other, name), value)


def test_a_study_counts_a_fit_on_workers_as_any_other(people, workers, tmp_path):
    x, y, ids = people
    lazy = da.from_array(x, chunks=(700, 15)), da.from_array(y, chunks=(700, 15))
    left = []
    for name, data in (("here", (x, y)), ("workers", lazy)):
        study = Study.new(tmp_path / name, name="toy", epsilon=4.0, delta=1e-6, unit="person", n=PERSONS, bounds=BOUNDS)
        model = AdditiveFunctionOnFunction(privacy=Privacy(epsilon=1.0, study=str(study.path)), mechanism="moments")
        fitted = model.fit(*data, s=GRID, t=GRID, groups=ids)
        left.append((study.left, [r.name for r in fitted.ledger_.releases]))
    assert left[0] == left[1] and 0 < left[0][0] < 1
