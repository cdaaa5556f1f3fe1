"""Private models of many terms on tables as users have them: what one odd entry makes of a column changes nothing."""

from __future__ import annotations

import io
import multiprocessing
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid
from sklearn.base import clone
from sklearn.model_selection import KFold

from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget

S = np.linspace(0, 1, 15)
BOUNDS = {"X": (-4.0, 4.0), "z": (0.0, 100.0), "g": ["1", "2", "3"], "Y": (-6.0, 6.0), "y": (-6.0, 6.0)}
N = 200


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * np.cos(3 * S)
    z, g = rng.integers(10, 90, n).astype(float), rng.integers(1, 4, n)
    y = x.mean(axis=1) + (z - 50) / 40 + 0.4 * rng.normal(size=n)
    return {"X": x, "z": z, "g": g, "y": y, "Y": y[:, None] * (1 + S)}


def number(privacy=None, model="y ~ lf(X) + z + C(g)", **settings):
    privacy = Privacy(4.0, 1e-6, n=N, random_state=3) if privacy is None else privacy
    used = [name for name in BOUNDS if name in model]
    return ScalarRegression(model, privacy=privacy, bounds={k: BOUNDS[k] for k in used} | settings.pop("bounds", {}))


def fitted(data, model=None, **fit):
    grids = {"X": S} if isinstance(data, dict) and not isinstance(data["X"], FDataGrid) else None
    return (number() if model is None else model).fit(data, grids=grids, **fit)


def coefficients(data, **fit):
    return fitted(data, **fit).fitted_.fit.coefficients


@pytest.fixture(scope="module")
def plain():
    return coefficients(people())


# ------------------------------------------------------------------ types


def from_csv(data, **odd):
    """Columns of numbers as read_csv reads them; `odd`: entries of the last person."""
    text = pd.DataFrame({"z": data["z"], "g": data["g"], "y": data["y"]}).astype(object)
    for name, entry in odd.items():
        text.loc[len(text) - 1, name] = entry
    # Exact: older pandas rounds numbers of an all-numeric column by a last digit, which is its doing, before ours.
    table = pd.read_csv(io.StringIO(text.to_csv(index=False)), float_precision="round_trip")
    return {"X": data["X"], **{name: table[name] for name in table}}


@pytest.mark.parametrize("odd", [{"z": "unknown"}, {"g": "?"}, {"y": "n/a"}, {"z": "1e999"}, {"g": ""}])
def test_an_odd_entry_changes_the_type_of_a_column_and_no_value_of_anybody_else(odd):
    data, (name, entry) = people(), next(iter(odd.items()))
    blank = data | {name: data[name].astype(object)}
    blank[name][-1] = None if name == "g" else (np.inf if entry == "1e999" else np.nan)
    np.testing.assert_array_equal(coefficients(from_csv(data, **odd)), coefficients(blank))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d | {"g": pd.Categorical(d["g"].astype(str))},
        lambda d: d | {"g": pd.Categorical(d["g"], categories=[9, 3, 2, 1, 7], ordered=True)},
        lambda d: d | {"g": d["g"].astype(float)},
        lambda d: d | {"g": pd.Series(d["g"], dtype="Int64")},
        lambda d: d | {"g": pd.Series(d["g"].astype(str), dtype="string")},
        lambda d: d | {"z": pd.Series(d["z"], dtype="Int64")},
        lambda d: d | {"z": d["z"].astype(int)},
        lambda d: d | {"z": d["z"].astype(np.uint8)},
        lambda d: d | {"z": [str(v) for v in d["z"]]},
        lambda d: d | {"z": d["z"].astype(np.longdouble)},
        lambda d: d | {"z": pd.Series(d["z"], index=np.arange(N)[::-1])},
        lambda d: d | {"z": d["z"][:, None]},
        lambda d: d | {"X": FDataGrid(d["X"], S)},
        lambda d: d | {"X": pd.DataFrame(d["X"], columns=S)},
        lambda d: d | {"X": np.asfortranarray(d["X"])},
        lambda d: d | {"X": d["X"].astype(object)},
        lambda d: d | {"X": d["X"].tolist()},
        lambda d: frame(d),
    ],
)
def test_the_same_values_in_other_types_give_the_same_bits(plain, change):
    np.testing.assert_array_equal(coefficients(change(people())), plain)


def frame(data):
    """Curves in a data frame, whose index says nothing."""
    table = pd.DataFrame(
        {"z": data["z"], "g": data["g"], "y": data["y"]}, index=np.random.default_rng(0).permutation(N)
    )
    table["X"] = FDataGrid(data["X"], S)
    return table


def test_booleans_are_levels_and_numbers():
    data = people()
    flag = data["g"] > 1
    model = number(model="y ~ lf(X) + C(flag)", bounds={"flag": [False, True]})
    as_texts = number(model="y ~ lf(X) + C(flag)", bounds={"flag": ["False", "True"]})
    one = fitted(data | {"flag": flag}, model).fitted_.fit.coefficients
    np.testing.assert_array_equal(
        fitted(data | {"flag": flag.astype(object)}, clone(model)).fitted_.fit.coefficients, one
    )
    assert np.isfinite(fitted(data | {"flag": flag.astype(str)}, as_texts).fitted_.fit.coefficients).all()


def test_dates_in_a_column_of_numbers_are_missing_in_all_rows():
    """What is no number is missing, whatever the type of the column: one date changes nothing for others."""
    data = people()
    some = data["z"].astype(object)
    some[5] = pd.Timestamp("2020-01-01")
    blank = data["z"].copy()
    blank[5] = np.nan
    np.testing.assert_array_equal(coefficients(data | {"z": some}), coefficients(data | {"z": blank}))


@pytest.mark.each_once(("column", "what"))
@pytest.mark.parametrize("model", ["y ~ lf(X) + z", "y ~ s(z) + C(g)"])
@pytest.mark.parametrize("column", ["z", "X", "g", "y"])
@pytest.mark.parametrize("what", ["missing", "constant"])
def test_columns_without_anything_in_them_give_a_fit(model, column, what):
    data = people()
    if what == "constant":
        data[column] = np.repeat(data[column][:1], N, axis=0)
    else:
        data[column] = np.full(N, None) if column == "g" else np.full(data[column].shape, np.nan)
    found = quietly(data, number(model=model))
    assert np.isfinite(found.fitted_.fit.coefficients).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where noise makes what is explained negative, too
        assert np.isfinite(found.predict(people(3, seed=1))).all()
    assert found.ledger_.private


def quietly(data, model):
    """Fit; that n is far from the persons with usable rows is said as a warning, or not, by chance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(data, model)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(plain, unit):
    data = people()
    scaled = data | {name: data[name] * unit for name in ("X", "z", "y")}
    model = number(bounds={name: tuple(unit * v for v in BOUNDS[name]) for name in ("X", "z", "y")})
    new = people(20, seed=1)
    again = new | {name: new[name] * unit for name in ("X", "z")}
    wanted = fitted(data).predict(new)
    np.testing.assert_allclose(fitted(scaled, model).predict(again) / unit, wanted, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize(
    "wrong", [(0, np.inf), (-np.inf, 100), (0, None), (np.nan, 1), (0, 0), (100, 0), 5, "ab", (0,)]
)
def test_ranges_that_are_none_are_refused_with_nothing_spent(wrong):
    budget = Budget(8.0, 1e-6)
    model = number(Privacy(4.0, 1e-6, n=N, budget=budget), bounds={"z": wrong})
    with pytest.raises((InputError, PrivacyError), match="z"):
        fitted(people(), model)
    assert budget.spent == budget.reserved == 0


def test_bounds_of_columns_that_the_model_has_not_change_nothing(plain):
    """One mapping serves several models; a wrong name leaves a column without bounds, which is refused."""
    model = number(bounds={"age": (0, 1), "h": ["a", "b"]})
    found = fitted(people(), model)
    np.testing.assert_array_equal(found.fitted_.fit.coefficients, plain)
    assert "bounds of age" not in str(found.ledger_)
    wrong = ScalarRegression(
        "y ~ lf(X) + z", privacy=Privacy(4.0, 1e-6, n=N), bounds={"X": (-4, 4), "Z": (0, 1), "y": (-6, 6)}
    )
    with pytest.raises(PrivacyError, match="range for z"):
        fitted(people(), wrong)


# ------------------------------------------------------------------ rows and persons


def test_labels_of_rows_count_only_where_they_are_public(plain):
    data = people()
    shuffled = data | {"z": pd.Series(data["z"], index=np.arange(N)[::-1]), "y": pd.Series(data["y"])}
    np.testing.assert_array_equal(coefficients(shuffled), plain)
    with pytest.raises(InputError):
        fitted(shuffled, number(Privacy(4.0, 1e-6, n=N, labels="public", random_state=3)))


def test_groups_are_taken_beside_labels_that_are_public():
    data, ids = people(), np.repeat(np.arange(N // 2), 2)
    own, public = (Privacy(8.0, 1e-6, n=N // 2, labels=labels, random_state=3) for labels in (None, "public"))
    plain = fitted(data, number(own), groups=ids).fitted_.fit.coefficients
    np.testing.assert_array_equal(fitted(data, number(public), groups=ids).fitted_.fit.coefficients, plain)
    labelled = data | {"y": pd.Series(data["y"], index=[f"p{i}" for i in range(N)])}
    with pytest.raises(InputError, match="y and groups must have the same row labels"):
        others = pd.Series(ids, index=[f"p{i}" for i in range(N)][::-1])
        fitted(labelled, number(public), groups=others, by="position")


def test_a_column_of_the_table_names_persons():
    data = people()
    ids = np.repeat(np.arange(N // 2), 2)
    privacy = Privacy(8.0, 1e-6, n=N // 2, random_state=3)
    one = fitted(data | {"who": ids}, number(privacy), groups="who").fitted_.fit.coefficients
    np.testing.assert_array_equal(fitted(data, number(privacy), groups=ids).fitted_.fit.coefficients, one)
    named = np.array([f"p{v}" for v in ids], dtype=object)
    np.testing.assert_array_equal(
        fitted(data | {"who": named}, number(privacy), groups="who").fitted_.fit.coefficients, one
    )


def test_a_private_number_of_people_is_nowhere():
    data = people()
    found = fitted(data, number(Privacy(4.0, 1e-6, adjacency="add-remove", random_state=3)))
    assert found.ledger_.private and found.privacy_.n is None
    assert found.plan_.n != N and found.fitted_.fit.n == round(found.plan_.n)


def test_sources_that_are_not_in_memory_give_the_same_bits(plain, tmp_path):
    data = people()
    for name in ("X", "z"):
        np.save(tmp_path / f"{name}.npy", data[name])
    mapped = data | {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "z")}
    np.testing.assert_array_equal(coefficients(mapped), plain)
    dask = pytest.importorskip("dask.array")
    lazy = data | {name: dask.from_array(data[name], chunks=64) for name in ("X", "z", "y")}
    np.testing.assert_array_equal(coefficients(lazy), plain)


# ------------------------------------------------------------------ budgets


def test_two_fits_at_once_never_spend_more_than_there_is():
    budget, data, ended = Budget(4.0, 1e-6), people(), []

    def run(seed):
        try:
            fitted(data, number(Privacy(4.0, 1e-6, n=N, budget=budget, random_state=seed)))
            ended.append("fitted")
        except PrivacyError:
            ended.append("refused")

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(ended) == ["fitted", "refused", "refused"]
    assert budget.spent <= budget.total * (1 + 1e-12)


def in_child(queue, model, data):
    try:
        fitted(data, model)
        queue.put("fitted")
    except PrivacyError:
        queue.put("refused")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_spends_no_budget_of_its_parent():
    model = number(Privacy(4.0, 1e-6, n=N, budget=Budget(4.0, 1e-6), random_state=3))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue, model, people()))
    child.start()
    assert queue.get(timeout=60) == "refused"
    child.join(60)


def test_settings_reach_the_guarantee_and_fits_keep_theirs():
    data = people()
    model = number()
    fitted(data, model)
    model.set_params(privacy__epsilon=8.0)
    assert model.privacy_.epsilon == 4.0 and clone(model).privacy.epsilon == 8.0
    assert fitted(data, model).ledger_.epsilon == pytest.approx(8.0)


def test_folds_share_a_budget():
    data, budget = people(), Budget(4.0, 1e-6)
    privacy = Privacy(2.0, 1e-6, n=N // 2, budget=budget, dataset="folds of one study", random_state=3)
    for train, _ in KFold(2).split(data["z"]):
        fitted({name: values[train] for name, values in data.items()}, clone(number(privacy)))
        last = budget.spent
    assert 0 < last <= budget.total
    with pytest.raises(PrivacyError):
        for _ in range(8):
            fitted(data, clone(number(privacy)))
    assert budget.spent <= budget.total * (1 + 1e-12)


def test_curves_in_arrays_and_frames_are_the_same_bits_with_a_response_of_curves():
    data = people()
    bounds = {name: BOUNDS[name] for name in ("X", "z", "Y")}
    model = FunctionalRegression("Y ~ ff(X) + z", privacy=Privacy(4.0, 1e-6, n=N, random_state=3), bounds=bounds)
    one = clone(model).fit(data, grids={"X": S, "Y": S}).fitted_.fit.coefficients
    table = frame(data)
    table["Y"] = FDataGrid(data["Y"], S)
    np.testing.assert_array_equal(clone(model).fit(table).fitted_.fit.coefficients, one)
