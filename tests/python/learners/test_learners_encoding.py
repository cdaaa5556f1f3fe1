"""Encoding by public rules: the same bits for a row wherever it stands, nothing learnt, missing values as promised."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fdadp.errors import InputError, PrivacyError
from fdadp.learners import Categorical, Numeric, PublicEncoder

FEATURES = {
    "age": Numeric(0, 120, edges=[18, 65]),
    "gain": Numeric(0, 1e5, log1p=True),
    "work": Categorical(["Private", "State-gov", 3]),
}
TABLE = pd.DataFrame(
    {
        "work": ["Private", "?", 3.0, None],
        "id": [7, 8, 9, 10],
        "gain": [0, 99999, "many", -5],
        "age": [18, 17.5, np.nan, 1e9],
    }
)


def test_one_hot_columns_and_missing_values():
    encoder = PublicEncoder(FEATURES)
    got = encoder.transform(TABLE)
    ages = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    gain = [[0.0], [np.log1p(99999) / np.log1p(1e5)], [np.nan], [0.0]]
    work = [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(got, np.hstack([ages, gain, work]))
    assert list(encoder.get_feature_names_out()) == [
        "age_[0, 18)",
        "age_[18, 65)",
        "age_[65, 120]",
        "gain",
        "work_Private",
        "work_State-gov",
        "work_3",
    ]
    assert np.nanmax(np.linalg.norm(got, axis=1)) <= encoder.norm_bound == np.sqrt(3)


@pytest.mark.parametrize("values", ["yes", b"yes", {"no", "yes"}, frozenset((0, 1)), 3])
def test_labels_have_an_order(values):
    """That of a set is another one in another process: a model that was loaded there took each label for others."""
    with pytest.raises(InputError, match="values must be a sequence of labels, in their order, got"):
        Categorical(values)


def test_columns_of_arrow_are_found_by_name():
    pa = pytest.importorskip("pyarrow")
    frame = TABLE.assign(gain=[0.0, 99999.0, np.nan, -5.0], work=["Private", "?", "3", None])
    found = PublicEncoder(FEATURES).transform(pa.Table.from_pandas(frame))
    np.testing.assert_array_equal(found, PublicEncoder(FEATURES).transform(frame))
    with pytest.raises(InputError, match=r"has no \['age'\]"):
        PublicEncoder(FEATURES).transform(pa.Table.from_pandas(frame.drop(columns="age")))


def test_a_column_that_is_there_twice_is_not_found():
    with pytest.raises(InputError, match="X must have distinct column names, got 'age' more than once"):
        PublicEncoder(FEATURES).transform(pd.concat([TABLE, TABLE[["age"]]], axis=1))


def test_codes_and_missing_values():
    encoder = PublicEncoder(FEATURES, output="codes")
    got = encoder.transform(TABLE)
    np.testing.assert_array_equal(got[:, 0], [1, 0, np.nan, 2])
    np.testing.assert_array_equal(got[:, 2], [0, np.nan, 2, np.nan])
    assert list(encoder.get_feature_names_out()) == ["age", "gain", "work"]
    assert encoder.norm_bound == 3  # of (2, 1, 2)


def test_arrays_lists_and_frames_agree():
    frame = TABLE[["age", "gain", "work"]]
    expected = PublicEncoder(FEATURES).transform(TABLE)
    for table in (frame.to_numpy(), frame.to_numpy().tolist()):
        np.testing.assert_array_equal(PublicEncoder(FEATURES).transform(table), expected)
        np.testing.assert_array_equal(PublicEncoder(list(FEATURES.values())).transform(table), expected)


def test_a_row_is_encoded_by_itself():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(-10, 130, 700),
            "gain": rng.lognormal(5, 3, 700),
            "work": rng.choice(np.array(["Private", "State-gov", "?"], dtype=object), 700),
        }
    )
    encoder = PublicEncoder(FEATURES)
    whole = encoder.transform(table)
    order = rng.permutation(700)
    assert whole[order].tobytes() == encoder.transform(table.iloc[order]).tobytes()
    assert whole[5:6].tobytes() == encoder.transform(table.iloc[5:6]).tobytes()


def test_fit_reads_nothing():
    class Unreadable:
        def __getattr__(self, name):
            raise AssertionError(f"fit looked at {name}")

    encoder = PublicEncoder(FEATURES)
    before = set(vars(encoder))
    assert encoder.fit(Unreadable(), Unreadable()) is encoder
    assert set(vars(encoder)) == before


def test_in_a_pipeline_and_cloned():
    encoder = clone(PublicEncoder(FEATURES, output="codes"))
    assert encoder.get_params() == {"features": FEATURES, "output": "codes"}
    pipeline = make_pipeline(encoder, FunctionTransformer(np.nan_to_num))
    np.testing.assert_array_equal(pipeline.fit_transform(TABLE), np.nan_to_num(encoder.transform(TABLE)))


def test_equal_bins_in_units_and_in_logarithms():
    np.testing.assert_allclose(Numeric(0, 8, edges=4).cuts, [2, 4, 6])
    np.testing.assert_allclose(np.log1p(Numeric(0, 1e5, edges=4, log1p=True).cuts), np.log1p(1e5) * np.arange(1, 4) / 4)
    # The codes are the number of cuts at or below a value: a step "x >= cut" is "code >= index".
    x = np.array([-1.0, 1.99, 2.0, 6.0, 99.0])
    np.testing.assert_array_equal(Numeric(0, 8, edges=4).bins(x), (x[:, None] >= [2, 4, 6]).sum(axis=1))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Numeric(1, 1), InputError, "low < high"),
        (lambda: Numeric(0, np.inf), InputError, "finite"),
        (lambda: Numeric("a", 2), InputError, "must be numbers"),
        (lambda: Numeric(-1, 1, log1p=True), InputError, "at least 0 with log1p"),
        (lambda: Numeric(0, 1, edges=[0, 0.5]), InputError, "strictly between"),
        (lambda: Numeric(0, 1, edges=[0.5, 0.2]), InputError, "increasing"),
        (lambda: Numeric(0, 1, edges=1), InputError, "at least 2"),
        (lambda: Categorical(["a", "a"]), PrivacyError, "distinct"),
        (lambda: Categorical([]), InputError, "at least one label"),
        (lambda: PublicEncoder([]).fit(), InputError, "at least one"),
        (lambda: PublicEncoder(["a"]).fit(), InputError, "got 'a'"),
        (lambda: PublicEncoder("age").fit(), InputError, "got str"),
        (lambda: PublicEncoder(FEATURES, output="dummies").fit(), InputError, "dummies"),
        (lambda: PublicEncoder(FEATURES).transform(TABLE[["age"]]), InputError, "has no"),
        (lambda: PublicEncoder(FEATURES).transform(np.zeros((3, 2))), InputError, "3 columns"),
        (lambda: PublicEncoder(FEATURES).transform(np.array([1.0, 2.0, 3.0])), InputError, "two dimensions"),
    ],
)
def test_what_is_wrong_is_named(make, error, text):
    with pytest.raises(error, match=text):
        make()
