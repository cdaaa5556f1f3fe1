"""Recorded mixed models of R beside ours, and mean curves of visits as mfpca.face has them with twoway = TRUE."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from repeated_tools import curves_of_persons
from scipy.stats import chi2

from fdadp import MultilevelFPCA
from fdadp.errors import InputError
from fdadp.repeated.icc_and_tests import NoSlopes
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.random_slopes import slope_covariances, slope_sums
from r_bridge.repeated_beside_r import COMPARED, differences, numbers


@pytest.mark.parametrize("case", COMPARED)
def test_recorded_models_are_ours(case, refund_reference):
    found = list(differences(refund_reference(case)))
    assert len(found) >= 2
    assert not [d for d in found if not d.ok], [(d.quantity, d.value, d.tolerance) for d in found if not d.ok]


def test_a_person_split_in_two_is_seen(refund_reference):
    """The comparison can fail: one row of the third person is another's."""
    record = refund_reference("repeated_pcre")
    ids = record["input"]["id"].copy()
    ids[np.flatnonzero(ids == 3)[0]] = 4
    other = {**record, "input": {**record["input"], "id": ids}}
    assert not all(d.ok for d in differences(other))


def test_the_test_of_slopes_has_the_likelihood_ratio_of_lmer_and_nearly_its_known_law(refund_reference):
    record = refund_reference("repeated_mixed")
    sleep, theirs = record["input"]["sleep"], record["output"]
    X = np.column_stack((np.ones(len(sleep["x"])), sleep["x"]))
    one = PersonPass(np.eye(1), 2, intercept=False, cross=True)
    s = slope_sums(one.add(X, sleep["y"][:, None], sleep["id"]).sums(), np.eye(2))
    found = NoSlopes(s, slope_covariances(s), (0,)).tested(199)
    ratio = float(theirs["intercept"]["deviance"][0] - theirs["slope"]["deviance"][0])
    assert found.statistic == pytest.approx(ratio, abs=1e-4) and found.p_value == 0.005
    # Stram & Lee (1994): chi-squared on 1 and on 2, one half each
    for size in (1.0, 3.0):
        wanted = (chi2.sf(size, 1) + chi2.sf(size, 2)) / 2
        assert abs((found.simulated > size).mean() - wanted) < 0.1


def test_the_page_shows_the_numbers_of_both(refund_reference):
    page = (Path(__file__).resolve().parents[3] / "docs" / "from-lme4.md").read_text(encoding="utf-8")
    rows = page.split("<!-- numbers -->")[1].strip().splitlines()[2:]
    found = numbers(refund_reference)
    assert len(rows) == len(found) > 30
    for row, (of, what, theirs, ours, digits) in zip(rows, found, strict=True):
        *shown, own_theirs, own_ours = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        assert shown == [of, what]
        assert float(own_theirs) == pytest.approx(theirs, rel=10.0 ** (1 - digits))
        assert float(own_ours) == pytest.approx(ours, rel=10.0 ** (1 - digits) if digits == 8 else 1e-2)


def visited(seed: int = 0):
    c = curves_of_persons(seed, 60, most=4, T=40)
    visit = np.concatenate([np.arange(n) for n in np.bincount(c.who)])
    shift = np.stack([np.zeros(40), np.sin(2 * np.pi * c.t), np.cos(np.pi * c.t), c.t])
    return c.Y + 3 * shift[visit], c.who, np.array(["a", "b", "c", "d"])[visit]


def test_each_visit_has_a_mean_curve_of_its_own(tmp_path):
    Y, who, visit = visited()
    model = MultilevelFPCA(method="face", n_components=3).fit(Y, groups=who, visits=visit)
    assert model.visits_.tolist() == ["a", "b", "c", "d"] and model.coefficients_.shape == (4, 40)
    for label, curve in zip("abcd", model.mean_ + model.coefficients_, strict=True):
        assert np.abs(curve - Y[visit == label].mean(axis=0)).mean() < 0.3
    plain = MultilevelFPCA(method="face", n_components=3).fit(Y, groups=who)
    assert model.eigenvalues_["row"].sum() < 0.7 * plain.eigenvalues_["row"].sum()  # what visits have in common
    person, row = model.transform(Y, groups=who, visits=visit)
    assert person.shape == (60, 3) and np.abs(row.mean(axis=0)).max() < 0.4
    stranger, _ = model.transform(Y[:3], groups=who[:3], visits=["z"] * 3)
    assert np.isfinite(stranger.to_numpy()).all()
    again = MultilevelFPCA.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.transform(Y, groups=who, visits=visit)[1], row)
    gaps = Y.copy()
    gaps[0, :20] = np.nan
    filled = model.complete(gaps, groups=who, visits=visit)
    assert np.abs(filled[0, :20] - Y[0, :20]).mean() < Y.std()


def test_the_order_of_rows_and_labels_of_visits_say_nothing():
    Y, who, visit = visited(1)
    order = np.random.default_rng(0).permutation(len(Y))
    numbers = np.searchsorted(np.array(["a", "b", "c", "d"]), visit) * 10.0
    one = MultilevelFPCA(method="face", n_components=2).fit(Y, groups=who, visits=visit)
    two = MultilevelFPCA(method="face", n_components=2).fit(Y[order], groups=who[order], visits=numbers[order])
    np.testing.assert_allclose(two.coefficients_, one.coefficients_, atol=1e-5)  # by a search
    np.testing.assert_allclose(two.eigenvalues_["person"], one.eigenvalues_["person"], rtol=1e-5)


def test_visits_are_refused_where_they_have_no_meaning():
    Y, who, visit = visited()
    with pytest.raises(InputError, match="visits must be left out with method='reml'"):
        MultilevelFPCA(k=6).fit(Y, groups=who, visits=visit)
    with pytest.raises(InputError, match=r"visits must have .* entries, one a row of Y"):
        MultilevelFPCA(method="face").fit(Y, groups=who, visits=visit[:5])
    model = MultilevelFPCA(method="face", n_components=2).fit(Y, groups=who, visits=visit)
    with pytest.raises(InputError, match="visits must be given, as in fit"):
        model.transform(Y, groups=who)
    model.fit(Y, groups=who)
    with pytest.raises(InputError, match="visits must be left out, as in fit"):
        model.transform(Y, groups=who, visits=visit)
