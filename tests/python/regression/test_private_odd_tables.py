"""Private models of many terms: bounds of odd kinds, empty and ragged tables, persons with many rows, a wrong n."""

from __future__ import annotations

import decimal
import re

import numpy as np
import pandas as pd
import pytest
from test_private_attacks import BOUNDS, N, S, coefficients, fitted, number, people

from fdadp import DPAFF, FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")


@pytest.mark.parametrize(
    ("wrong", "formula"),
    [
        (("0", "100"), "y ~ z"),
        ((decimal.Decimal(0), decimal.Decimal(100)), "y ~ z"),
        ((decimal.Decimal(0), 100), "y ~ z"),
        ((pd.Timestamp("2020"), pd.Timestamp("2021")), "y ~ z"),
        ((np.datetime64("2020"), np.datetime64("2021")), "y ~ z"),
        ((0, 100), "y ~ C(z)"),
    ],
    ids=str,
)
def test_a_range_is_never_taken_for_two_levels(wrong, formula):
    """All entries but two would be no level: the budget would be spent on nothing, without a word."""
    budget = Budget(4.0, 1e-6)
    bounds = {"z": wrong, "y": (-6, 6)}
    model = ScalarRegression(formula, privacy=Privacy(4.0, 1e-6, n=N, budget=budget), bounds=bounds)
    with pytest.raises(PrivacyError, match=r"bounds of z must be a list of its levels .* which looks like a range"):
        model.fit(people())
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("levels", [(0, 1), [0, 1], (False, True), ["0", "100"], [0, 100]], ids=str)
def test_two_levels_are_levels(levels):
    data = people()
    data["z"] = np.where(data["z"] > 50, levels[1], levels[0])
    model = ScalarRegression(
        "y ~ C(z)", privacy=Privacy(4.0, 1e-6, n=N, random_state=0), bounds={"z": levels, "y": (-6, 6)}
    )
    low, high = model.fit(data).predict({"z": np.array(levels)})
    assert high > low + 0.3


@pytest.mark.parametrize("model", ["y ~ z", "y ~ lf(X) + z", "Y ~ ff(X) + z"])
def test_no_person_at_all_is_refused_no_more_than_one(model):
    """With a private n a refusal would tell nobody from somebody."""
    said = []
    for rows in (0, 1):
        data = {name: v[:rows] for name, v in people().items()}
        kind = FunctionalRegression if model.startswith("Y") else ScalarRegression
        budget = Budget(4.0, 1e-6)
        privacy = Privacy(4.0, 1e-6, budget=budget, random_state=0)
        own = kind(model, privacy=privacy, bounds=BOUNDS, mechanism=DPAFF(allow_useless=True))
        try:
            own.fit(data, grids={"X": S, "Y": S})
            said.append("fitted")
        except PrivacyError as refused:
            said.append(str(refused).split("got")[0].split("n = ")[0])
        assert budget.left == pytest.approx(0, abs=1e-9) or budget.spent > 0
    assert said[0] == said[1]


def test_new_curves_of_several_lengths_are_refused_by_name():
    data = people()
    ragged = [list(row) for row in data["X"][:5]] + [[1.0, 2.0]]
    model = fitted(data)
    with pytest.raises(InputError, match="X must have rows of one length"):
        model.predict({"X": ragged, "z": data["z"][:6], "g": data["g"][:6]})
    own = fitted({"X": [*map(list, data["X"][:-1]), [1.0, 2.0]], **{k: data[k] for k in "zgy"}})
    lost = data | {"X": np.vstack([data["X"][:-1], np.full((1, S.size), np.nan)])}
    np.testing.assert_array_equal(
        own.fitted_.fit.coefficients, coefficients(lost)
    )  # in the fit the row is lost, no more


def test_a_person_with_nearly_all_rows_counts_once():
    """Of two people with 1 and 199 rows each adds at most one clip to any sum: fits stay finite, others' rows count."""
    data = people()
    data["y"][50:] = 1e9
    who = np.concatenate([np.arange(50), np.full(N - 50, 50)])
    privacy = Privacy(4.0, 1e-6, n=51, random_state=3)
    own = number(privacy, "y ~ z").set_params(mechanism=DPAFF(allow_useless=True))
    own.fit(data, groups=who)
    assert np.abs(own.predict(data)).max() < 20
    assert "person" in own.ledger_.details["unit"]


def test_ids_of_mixed_kinds_are_persons_by_what_they_mean():
    data = people()
    mixed = np.empty(N, dtype=object)
    mixed[:] = [(i // 4, str(i // 4), float(i // 4), f" {i // 4} ")[i % 4] for i in range(N)]
    mixed[7], plain = None, (np.arange(N) // 4).astype(object)
    plain[7] = np.nan
    privacy = Privacy(8.0, 1e-6, n=N // 4, random_state=3)
    settings = {"mechanism": DPAFF(allow_useless=True)}
    fits = [number(privacy, "y ~ z").set_params(**settings).fit(data, groups=g) for g in (mixed, plain)]
    np.testing.assert_array_equal(*(fit.fitted_.fit.coefficients for fit in fits))


@pytest.mark.parametrize("n", [50, 90_000])  # no public sd of noise is 200 there
def test_a_wrong_n_gives_a_fit_and_no_word_of_the_right_one(n):
    model = fitted(
        people(), number(Privacy(4.0, 1e-6, n=n, random_state=3)).set_params(mechanism=DPAFF(allow_useless=True))
    )
    assert np.isfinite(model.fitted_.fit.coefficients).all()
    assert not re.search(rf"\b{N}\b", f"{model.ledger_} {model.notes_}")


@pytest.mark.parametrize("offset", [lambda d: d["z"] - d["z"].mean(), np.zeros(N), pd.Series(np.zeros(N))], ids=type)
def test_an_offset_that_may_look_at_other_rows_is_refused(offset):
    budget = Budget(4.0, 1e-6)
    model = number(Privacy(4.0, 1e-6, n=N, budget=budget))
    with pytest.raises(InputError, match="offset must be the name of a column, or an expression"):
        fitted(people(), model, offset=offset)
    assert budget.spent == budget.reserved == 0


def test_columns_of_arrow_are_columns(plain_numbers):
    pa = pytest.importorskip("pyarrow")
    data = people()
    frame = pd.DataFrame({name: data[name] for name in "zgy"})
    for own in (frame.convert_dtypes(dtype_backend="pyarrow"), {c: pa.table(frame)[c] for c in frame}):
        np.testing.assert_array_equal(number(model="y ~ z + C(g)").fit(own).fitted_.fit.coefficients, plain_numbers)
    shuffled = frame.set_index(np.random.default_rng(0).permutation(N))  # labels of rows are private
    categories = frame.assign(g=pd.Categorical(frame["g"], [3, 9, 1, 2], ordered=True))
    for own in (shuffled, categories):
        np.testing.assert_array_equal(number(model="y ~ z + C(g)").fit(own).fitted_.fit.coefficients, plain_numbers)


@pytest.fixture(scope="module")
def plain_numbers():
    return number(model="y ~ z + C(g)").fit({name: people()[name] for name in "zgy"}).fitted_.fit.coefficients
