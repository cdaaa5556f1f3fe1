"""Covariates that lack entries: what is learned from the training rows, and what becomes of new ones."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp.errors import InputError
from fdadp.functional.fpca import sc_eigenbasis
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.reading.missing_entries import Completion, treatments
from fdadp.terms.records import Records

S = np.linspace(0, 1, 41)
NAN = float("nan")


def curves(n=80, seed=0, grid=S, left=1.0, noise=0.0):
    """Curves of three components, and the share `left` of their values, with noise."""
    rng = np.random.default_rng(seed)
    shapes = np.stack([np.ones(grid.size), np.sin(2 * np.pi * grid), np.cos(2 * np.pi * grid)])
    whole = 1 + (rng.normal(size=(n, 3)) * [1, 0.8, 0.5]) @ shapes
    seen = np.where(rng.random(whole.shape) < left, whole + noise * rng.normal(size=whole.shape), NAN)
    seen[:, 0] = whole[:, 0]
    return whole, Records(n, {"X": Curves(seen, grid)})


def completed(records, how):
    return Completion.learned(records, {"X": how})(records).curves("X")


def test_gaps_are_filled_and_what_was_observed_is_kept():
    whole, records = curves(left=0.6)
    observed = ~np.isnan(records.curves("X").values)
    for how, most in (("linear", 0.2), ("smooth", 0.2), ("fpca", 0.05)):
        values = completed(records, how).values
        np.testing.assert_array_equal(values[observed], whole[observed])
        assert np.sqrt(((values - whole)[~observed] ** 2).mean()) < most
    seen = records.curves("X").values
    basis = sc_eigenbasis(seen, S, n_components=0.99)
    expected = np.where(observed, seen, basis.reconstruct(basis.conditional_scores(seen)))
    np.testing.assert_allclose(completed(records, "fpca").values, expected, atol=1e-12)


def test_noise_is_taken_off_by_conditional_expectations():
    whole, records = curves(400, left=0.2, noise=0.3)
    values = completed(records, "pace").values
    observed = ~np.isnan(records.curves("X").values)
    observed[:, 0] = False  # without noise here
    assert np.sqrt(((values - whole)[observed] ** 2).mean()) < 0.2


@pytest.mark.parametrize("how", ["fpca", "pace"])
def test_new_rows_are_completed_by_the_training_rows_alone(how):
    _, records = curves(200, left=0.4)
    learned = Completion.learned(records, {"X": how})
    _, new = curves(7, seed=1, left=0.3)
    together = learned(new).curves("X").values
    for i in range(7):
        np.testing.assert_allclose(learned(new[i : i + 1]).curves("X").values[0], together[i], atol=1e-12)


def test_points_of_their_own():
    """Eight points a curve, at random: 1,600 in all, no two curves at the same."""
    rng = np.random.default_rng(0)
    n = 200
    at = np.sort(rng.random((n, 8)), axis=1)
    at[0, 0], at[0, -1] = 0.0, 1.0
    grid = np.unique(at)
    whole, _ = curves(n, grid=grid)
    seen = np.full(whole.shape, NAN)
    place = np.searchsorted(grid, at)
    np.put_along_axis(seen, place, np.take_along_axis(whole, place, axis=1), axis=1)
    records = Records(n, {"X": Curves(seen, grid)})
    learned = Completion.learned(records, {"X": "pace"})
    values = learned(records).curves("X")
    assert values.grid.size == 101
    truth = np.array([np.interp(values.grid, grid, curve) for curve in whole])
    assert np.sqrt(((values.values - truth) ** 2).mean()) < 0.25
    part = Records(1, {"X": Curves(seen[3:4, place[3]], grid[place[3]])})  # on its own points alone
    np.testing.assert_allclose(learned(part).curves("X").values[0], values.values[3], atol=1e-10)


def test_numbers_get_their_mean_and_an_indicator():
    records = Records(4, {"age": np.array([1.0, NAN, 3.0, 5.0]), "size": np.arange(4.0)})
    learned = Completion.learned(records, {"age": "indicator", "size": "indicator"})
    done = learned(records)
    assert learned.indicators == {"age": "missing(age)"}
    np.testing.assert_array_equal(done.numbers("age"), [1, 3, 3, 5])
    np.testing.assert_array_equal(done.numbers("missing(age)"), [0, 1, 0, 0])
    new = learned(Records(2, {"age": np.array([9.0, NAN]), "size": np.zeros(2)}))
    np.testing.assert_array_equal(new.numbers("age"), [9, 3])
    with pytest.raises(InputError, match=r"size must have a number in every row, as the training rows had, .* row 1"):
        learned(Records(2, {"age": np.zeros(2), "size": np.array([0.0, NAN])}))


KINDS = {"X": "curves", "Z": "curves", "age": "numbers", "region": "labels"}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("raise", {}),
        ("fpca", {"X": "fpca", "Z": "fpca"}),
        ("indicator", {"age": "indicator"}),
        ({"X": "pace", "Z": "raise", "age": "indicator"}, {"X": "pace", "age": "indicator"}),
    ],
)
def test_what_is_done_about_each_column(missing, expected):
    assert treatments(missing, KINDS) == expected


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("drop", "missing must be one of 'raise', .* got 'drop'"),
        (True, "missing must be one of 'raise', .* or a mapping, got True"),
        ({"W": "fpca"}, "missing must name columns of the terms .X, Z, age, region., got 'W'"),
        ({"age": "fpca"}, r"missing\['age'\] \(numbers\) must be one of 'raise', 'indicator', got 'fpca'"),
        ({"X": "indicator"}, r"missing\['X'\] \(curves\) must be one of"),
        ({"region": "indicator"}, r"missing\['region'\] \(labels\) must be one of 'raise'"),
    ],
)
def test_unknown_treatments(missing, message):
    with pytest.raises(InputError, match=message):
        treatments(missing, KINDS)


def test_what_cannot_be_completed():
    _, records = curves(20, left=0.5)
    values = records.curves("X").values.copy()
    values[3] = NAN
    with pytest.raises(InputError, match="X must have a value in every row, got a curve of none in row 3"):
        completed(Records(20, {"X": Curves(values, S)}), "fpca")
    values[3] = np.inf
    with pytest.raises(InputError, match="got an infinite value in row 3"):
        completed(Records(20, {"X": Curves(values, S)}), "linear")
    values[3], values[3, 3:] = 1.0, NAN
    with pytest.raises(InputError, match=r"X must be observed at 4 points in every row .* got 3 in row 3"):
        completed(Records(20, {"X": Curves(values, S)}), "smooth")
    values[3], values[:, 40] = 1.0, NAN
    with pytest.raises(
        InputError, match=r"observed by at least one curve at each grid point .* got none at 1 .1 of 41 points"
    ):
        completed(Records(20, {"X": Curves(values, S)}), "pace")
    learned = Completion.learned(records, {"X": "pace"})
    with pytest.raises(InputError, match=r"X must lie within the training domain \[0, 1\], got \[0, 2\]"):
        learned(Records(1, {"X": Curves(np.ones((1, 5)), np.linspace(0, 2, 5))}))
    with pytest.raises(InputError, match="age must have at least one number"):
        Completion.learned(Records(2, {"age": np.full(2, NAN)}), {"age": "indicator"})
    with pytest.raises(InputError, match="age must be finite where it is there, got inf in row 1"):
        Completion.learned(Records(2, {"age": np.array([1, np.inf])}), {"age": "indicator"})
