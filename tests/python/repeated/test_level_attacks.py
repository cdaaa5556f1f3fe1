"""Hostile input to components of levels, and to curves of persons: refused by name, or the same result."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from repeated_tools import curves_of_persons
from sklearn.base import clone

from fdadp import FunctionalRegression, MultilevelFPCA, Privacy
from fdadp.errors import InputError
from fdadp.repeated.two_level_components import level_basis
from fdadp.summaries import PrivateMultilevelFPCA

C = curves_of_persons(0, 40)
Y, IDS, T = C.Y, C.who, C.Y.shape[1]
N = len(Y)
ROW, POINT = np.arange(N)[:, None], np.arange(T)
FIRST_OF_PERSON = np.searchsorted(np.sort(IDS), IDS)


def of_person(values):
    """The value of each row's person."""
    return values[pd.factorize(IDS)[0]]


def levels(curves, ids, **how):
    model = MultilevelFPCA(**how).fit(curves, groups=ids)
    return np.concatenate(([model.icc_, model.noise_variance_], *model.eigenvalues_.values()))


def in_formula(curves, ids):
    data = {"Y": curves, "x": np.random.default_rng(1).normal(size=len(curves)), "id": ids}
    model = FunctionalRegression("Y ~ x + re(id, covariance='free')", progress=False).fit(data)
    return np.array([model.persons_.icc(), model.r2_])


ALIKE = "the rows of each person are all alike, so the two levels are not identified; keep one row a person"
WITHOUT = {
    "one person": (Y[:6], np.zeros(6, int), "rows of at least 2 people are needed, got those of 1"),
    "one row a person": (Y, np.arange(N), f"all {N} people have one row, so the two levels are not identified"),
    "all rows equal": (np.tile(Y[0], (N, 1)), IDS, ALIKE),
    "zeros": (np.zeros((N, T)), IDS, ALIKE),
    "constant by person": (np.tile(of_person(np.random.default_rng(0).normal(size=(N, 1))), T), IDS, ALIKE),
    "rows of persons equal": (of_person(Y), IDS, ALIKE),
    "too small to be squared": (Y * 1e-200, IDS, ALIKE),
}


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("fit", [levels, in_formula])
def test_rows_that_tell_no_levels_apart_are_refused(fit, case):
    """They gave variances of rounding errors, and a share of -5e10 of explained variance."""
    curves, ids, says = WITHOUT[case]
    with pytest.raises(InputError, match=says):
        fit(curves, ids)


def test_rows_that_face_cannot_tell_apart_are_refused():
    for case in ("one person", "one row a person"):
        curves, ids, says = WITHOUT[case]
        with pytest.raises(InputError, match=f"MultilevelFPCA: {says}"):
            levels(curves, ids, method="face")


@pytest.mark.parametrize("method", ["reml", "face"])
@pytest.mark.parametrize(
    ("curves", "says"),
    [
        (np.where(ROW == 3, np.nan, Y), "Y must have values in each row, .* got others in row 3"),
        (np.full((N, T), np.nan), "Y must have values in each row, .* got others in row 0"),
        (np.where((ROW == 4) & (POINT == 2), np.inf, Y), "Y must have values in each row, .* got others in row 4"),
        (Y * 1e200, r"Y must be below 1e\+100 in size, got .*; choose other units"),
        (Y[:, :1], "Y must hold curves of more than 4 points, got 1"),
        (Y[:, :4], "Y must hold curves of more than 4 points, got 4"),
        (Y[:0], "Y must not be empty"),
    ],
)
def test_curves_that_cannot_be_fitted_are_named(curves, says, method):
    with pytest.raises(InputError, match=says):
        levels(curves, IDS[: len(curves)], method=method)


def test_chunks_are_read_as_fit_reads_curves():
    from skfda import FDataGrid

    t = np.linspace(0, 1, T)
    whole = MultilevelFPCA(k=6).fit(Y, groups=IDS)
    parts = [slice(0, 50), slice(50, 50), slice(50, N)]
    frames = [(pd.DataFrame(Y[part], columns=t), pd.Series(IDS[part])) for part in parts]
    grids = [(FDataGrid(Y[part], t), IDS[part].tolist()) for part in parts if part.start < part.stop]
    for chunks in (frames, grids, lambda: iter(frames), [(Y[part].astype(object), IDS[part]) for part in parts]):
        found = MultilevelFPCA(k=6).fit_chunks(chunks, t=t)
        np.testing.assert_allclose(found.eigenvalues_["person"], whole.eigenvalues_["person"], rtol=1e-5)
    missing = np.where(np.arange(N) == 7, None, IDS.astype(object))
    with pytest.raises(InputError, match="missing in 1 rows"):
        MultilevelFPCA(k=6).fit_chunks([(Y, missing)], t=t)
    with pytest.raises(InputError, match="Y must be finite, got nan in curve 4 at position 2"):
        MultilevelFPCA(k=6).fit_chunks([(np.where((ROW == 4) & (POINT == 2), np.nan, Y), IDS)], t=t)
    with pytest.raises(InputError, match="same row labels"):
        MultilevelFPCA(k=6).fit_chunks([(frames[0][0], frames[0][1][::-1])], t=t)


KINDS = {
    "list": lambda i: i.tolist(),
    "text": lambda i: [f"p{one}" for one in i],
    "bytes": lambda i: i.astype("S4"),
    "categories": lambda i: pd.Categorical(i),
    "unused categories": lambda i: pd.Categorical(i, categories=[*range(200)]),
    "float32": lambda i: i.astype(np.float32),
    "nullable": lambda i: pd.array(i, dtype="Int64"),
    "Arrow": lambda i: pd.array(i.astype(str), dtype=pd.ArrowDtype(pytest.importorskip("pyarrow").string())),
    "series": lambda i: pd.Series(i),
    "column": lambda i: i[:, None],
    "1 and its text": lambda i: np.array([one if one % 2 else str(one) for one in i], dtype=object),
    "huge": lambda i: i + 2**60,
}


@pytest.mark.each_once
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["reml", "face"])
def test_ids_of_every_kind_give_one_fit(kind, method):
    np.testing.assert_array_equal(levels(Y, KINDS[kind](IDS), method=method), levels(Y, IDS, method=method))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_missing_ids_are_refused(gap):
    ids = IDS.astype(object)
    ids[[3, 5]] = gap
    with pytest.raises(InputError, match="groups must say of each row whose it is: missing in 2 rows"):
        levels(Y, ids)


def test_numbers_and_their_text_are_two_persons_without_privacy():
    twice = np.concatenate((IDS.astype(object), [str(one) for one in IDS]))
    persons, _ = MultilevelFPCA(k=6).fit(np.vstack((Y, Y)), groups=twice).transform(np.vstack((Y, Y)), groups=twice)
    assert len(persons) == 80


@pytest.mark.parametrize("method", ["reml", "face"])
def test_order_units_and_kinds_of_numbers_change_no_more_than_rounding(method):
    wanted = levels(Y, IDS, method=method)
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_allclose(levels(Y[order], IDS[order], method=method), wanted, rtol=1e-5)
    np.testing.assert_allclose(levels(Y + 1e6, IDS, method=method), wanted, rtol=1e-4)
    np.testing.assert_allclose(levels(Y.astype(np.float32), IDS, method=method), wanted, rtol=1e-4)
    scaled = levels(1e40 * Y, IDS, method=method)
    np.testing.assert_allclose(scaled / np.r_[1, np.full(scaled.size - 1, 1e80)], wanted, rtol=1e-4)


def test_estimators_are_copied_pickled_and_fitted_in_threads():
    model = MultilevelFPCA(k=6, n_components=(2, 1)).fit(Y, groups=IDS)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.transform(Y, groups=IDS)[1], model.transform(Y, groups=IDS)[1])
    assert clone(model).set_params(k=5).get_params()["k"] == 5 and not hasattr(clone(model), "basis_")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: levels(Y, IDS, k=6), range(4)))
    assert all((one == found[0]).all() for one in found)


def test_a_level_without_variance_has_no_components():
    """A private level of noise alone was an error after the budget was spent, which said that curves do not vary."""
    model = MultilevelFPCA(k=6).fit(Y, groups=IDS)
    basis = model.basis_
    own = basis.row
    none = level_basis(-np.eye(3), own.functions[:3].T, own.grid, own.weights, own.mean, 1.0)
    model._set(replace(basis, row=none, kept=(basis.kept[0], 0)))
    assert model.n_components_["row"] == 0 and model.eigenfunctions_["row"].shape == (0, T)
    person, row = model.transform(Y, groups=IDS)
    assert row.shape == (N, 0) and len(person) == 40
    assert np.isfinite(model.complete(np.where(ROW == POINT, np.nan, Y), groups=IDS)).all()


@pytest.mark.parametrize("term", ["re(id)", "re(id, k=5)", "re(id, covariance='free')", "factor(id)"])
def test_numbers_too_long_for_doubles_are_no_labels(term):
    """As doubles, the ids 2^60, 2^60 + 1, ... are one number: persons would be merged without a word."""
    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(20), 3) + 2**60
    Y = rng.normal(size=(60, 21))
    with pytest.raises(InputError, match=r"^id must hold text, or whole numbers below 2\^53, .* make them text"):
        FunctionalRegression(f"Y ~ {term}", progress=False).fit({"Y": Y, "id": ids})
    FunctionalRegression(f"Y ~ {term}", progress=False).fit({"Y": Y, "id": ids.astype(str)})


@pytest.mark.parametrize("private", [False, True])
def test_fit_transform_is_fit_then_transform(private):
    """The mixin of scikit-learn handed no persons to `transform`: a private fit failed after its budget was spent."""
    rng, ids = np.random.default_rng(4), np.repeat(np.arange(60), 3)
    t = np.linspace(0, 1, 21)
    Y = rng.normal(size=(60, 1))[ids] * np.sin(3 * t) + rng.normal(size=(180, 1)) * np.cos(3 * t)
    Y += 0.2 * rng.normal(size=Y.shape)
    own = {"bounds": (-6, 6), "max_rows": 3, "privacy": Privacy(20.0, 1e-6, n=60)} if private else {}
    model = (PrivateMultilevelFPCA if private else MultilevelFPCA)(**own)
    person, row = model.fit_transform(Y, groups=ids)
    again_person, again_row = model.transform(Y, groups=ids)
    pd.testing.assert_frame_equal(person, again_person)
    np.testing.assert_array_equal(row, again_row)


def test_curves_of_levels_take_smoothing_parameters_as_an_array():
    """An array was compared with the name of a criterion."""
    rng, ids = np.random.default_rng(5), np.repeat(np.arange(20), 3)
    data = {"Y": rng.normal(size=(20, 1))[ids] + rng.normal(size=(60, 21)), "id": ids}
    chosen = FunctionalRegression("Y ~ re(id, k=5)", progress=False).fit(data)
    given = FunctionalRegression("Y ~ re(id, k=5)", smoothing=chosen.smoothing_parameters_, progress=False).fit(data)
    np.testing.assert_allclose(given.predict(data), chosen.predict(data), rtol=1e-8, atol=1e-8)
