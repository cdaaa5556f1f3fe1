"""Moments centred inside a person: their values, and that a person moves them by its clip, wherever its rows lie."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from privacy_tools import NASTY, distance

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, Exchangeable, SeededNoise, TapeNoise, person_moments
from fdadp.privacy.rows import _person_row_caps, _rowwise_arithmetic

MOST = 3
LAWS = ["mean", "sum", "between", "within", Exchangeable(1.0), Exchangeable(math.inf)]
EPS = 1e-3
FAR = [
    np.full((3, 2), 1e9),
    1e9 + np.array([[0.0, 0.0], [EPS, 0.0], [0.0, EPS]]),
    np.full((3, 2), np.float32(5e3)) + np.float32(1e-3) * np.arange(6, dtype=np.float32).reshape(3, 2),
    np.full((2, 2), -1e200),
    np.array([[1e9, -1e9], [-1e9, 1e9]]),
]
PEOPLE = [NASTY[[i, (3 * i + 1) % 10, (i + 4) % 10, i][: 1 + i % 4]] for i in range(10)] + [f * 1.0 for f in FAR]


def moment(law, both=False, clip=1.0):
    def release(cohort):
        rows = cohort.by_person(lambda r: r[0], max_rows=MOST)
        g = (lambda r: r[0][:, :, :1] - 1.0) if both else None
        rows.person_moment(lambda r: r[0], g, law=law, clip=clip, share=0.1, name="m")

    return release


def run(release, people, adjacency="zero-out", n=15, order=None, size=None, pure=False):
    """The tape's entry of a release of these people, perhaps with rows in another order, or in chunks."""
    rows = np.concatenate([*people, np.empty((0, 2))])
    ids = np.repeat(np.arange(len(people)), [len(p) for p in people])
    if order is not None:
        rows, ids = rows[order], ids[order]
    data, groups = rows, ids
    if size is not None:
        data = [(rows[i : i + size], ids[i : i + size]) for i in range(0, len(rows), size)]
        data, groups = [(np.empty((0, 2)), np.empty(0, dtype=int)), *data], True
    noise = TapeNoise()
    budget = Budget(1.0, None if pure else 1e-6)
    declared = None if adjacency == "add-remove" else n
    release(Cohort(data, groups=groups, budget=budget, adjacency=adjacency, n=declared, noise=noise))
    return noise.entries[-1]


def reference(rows, law, g=None):
    """One person's moment, term by term."""
    rows = rows[np.isfinite(rows).all(axis=1)]
    g = rows if g is None else g
    alpha, gamma = _person_row_caps.moment_weights(law, MOST)
    n = len(rows)
    left, right = rows.mean(axis=0), g.mean(axis=0)
    return alpha[n] * (rows - left).T @ (g - right) + gamma[n] * np.outer(left, right)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_values_are_those_of_the_definition(law):
    rng = np.random.default_rng(1)
    people = [rng.normal(size=(1 + i % MOST, 2)) for i in range(15)]
    sums = run(moment(law, clip=50.0), people)
    expected = sum(reference(p, law) for p in people) * 2.0**24 / 50.0
    found = np.array(sums.exact, dtype=float) / [1, math.sqrt(2), 1]
    assert np.abs(found - expected[np.triu_indices(2)]).max() < 2 * len(people)
    pure = np.array(run(moment(law, clip=50.0), people, pure=True).exact, dtype=float)
    assert np.abs(pure * 50.0 / 4.0**18 - expected[np.triu_indices(2)] * 50.0 / 2.0**24).max() < 1e-2
    crossed = np.array(run(moment(law, both=True, clip=50.0), people).exact, dtype=float).reshape(2, 1)
    expected = sum(reference(p, law, p[:, :1] - 1.0) for p in people) * 2.0**24 / 50.0
    assert np.abs(crossed - expected).max() < 2 * len(people)


def test_the_laws_are_those_of_the_page():
    alpha, gamma = _person_row_caps.moment_weights(Exchangeable(0.5), 4)
    n = np.arange(1, 5)
    assert np.allclose(alpha[1:], 1) and np.allclose(gamma[1:], n / (1 + n / 2))
    assert (_person_row_caps.moment_weights("within", 4)[0] == [0, 0, 1, 1 / 2, 1 / 3]).all()
    # With all weight on rows these are the plain sums of products.
    rows = np.random.default_rng(2).normal(size=(1, 3, 2))
    products = np.einsum("ij,ik->jk", rows[0], rows[0])[np.triu_indices(2)]
    assert np.allclose(person_moments(rows, "sum")[0], products * [1, math.sqrt(2), 1])


def worst(release, adjacency, pure):
    """Largest move between neighbours, over the declared sensitivity; one person of any kind in place of another."""
    if adjacency == "replace":
        sums = [run(release, [person, *PEOPLE[:3]], adjacency, pure=pure) for person in PEOPLE]
        pairs = list(itertools.combinations(sums, 2))
    else:
        whole = run(release, PEOPLE, adjacency, pure=pure)
        without = [[*PEOPLE[:i], PEOPLE[i][:0], *PEOPLE[i + 1 :]] for i in range(15)]
        pairs = [(whole, run(release, people, adjacency, pure=pure)) for people in without]
    assert any(one.exact != other.exact for one, other in pairs)
    return max(distance(one, other) / one.sensitivity for one, other in pairs)


@pytest.mark.each_once(("law", "adjacency"), ("law", "pure"), ("law", "both"))
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_person_moves_a_moment_by_its_clip(law, both, adjacency, pure):
    assert worst(moment(law, both, clip=1.3), adjacency, pure) <= 1


def test_the_bound_for_replacing_is_attained():
    release = moment("between")
    ends = [run(release, [p], "replace") for p in (np.array([[3.0, 0.0]]), np.array([[0.0, 3.0]]))]
    assert 0.99 < distance(*ends) / ends[0].sensitivity <= 1


def test_a_law_computed_by_subtraction_breaks_the_bound(monkeypatch):
    """Sums of products less the product of sums are no longer positive semidefinite far from 0: the mutant is seen."""

    def subtracted(f, law, g=None):
        alpha, gamma = _person_row_caps.moment_weights(law, f.shape[1])
        out = np.zeros((len(f), 3))
        for i, rows in enumerate(f):
            own = rows[np.isfinite(rows).all(axis=1)]
            n = len(own)
            if n:
                s = own.sum(axis=0)
                M = alpha[n] * own.T @ own + (gamma[n] / n - alpha[n]) / n * np.outer(s, s)
                out[i] = M[np.triu_indices(2)] * [1, math.sqrt(2), 1]
        return out

    rng = np.random.default_rng(3)
    far = [1e9 * (1 + 1e-9 * rng.normal(size=(1, 2))) + np.zeros((3, 1)) for _ in range(40)]
    monkeypatch.setattr("fdadp.privacy.kernel._sum_releases.person_moments", subtracted)
    ends = [run(moment("within"), [p], "replace") for p in far]
    assert max(distance(a, b) / a.sensitivity for a, b in itertools.combinations(ends, 2)) > 1.05
    monkeypatch.undo()
    ends = [run(moment("within"), [p], "replace") for p in far]
    assert max(distance(a, b) / a.sensitivity for a, b in itertools.combinations(ends, 2)) <= 1


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("size", [None, 4])
def test_neither_order_nor_chunks_of_a_persons_rows_change_a_bit(law, size, pure):
    people = [np.vstack([p, p[:1] * 0.3, p[::-1]]) for p in PEOPLE]  # more rows than count
    total = sum(map(len, people))
    whole = run(moment(law), people, pure=pure).exact
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(total)
        assert run(moment(law), people, order=order, size=size, pure=pure).exact == whole


def test_rows_that_are_not_usable_are_left_out_before_the_centre():
    clean = [np.array([[1.0, 2.0], [2.0, 0.0]])]
    spoiled = [np.array([[np.inf, 0.0], [1.0, 2.0], [np.nan, 1.0], [2.0, 0.0]])]
    assert run(moment("within", clip=9.0), clean).exact == run(moment("within", clip=9.0), spoiled).exact


def test_a_person_split_in_two_is_another_answer():
    rows = np.array([[1.0, 2.0], [2.0, 0.0]])
    assert run(moment("within"), [rows]).exact != run(moment("within"), [rows[:1], rows[1:]]).exact


@pytest.mark.parametrize("wrong", ["median", 3, None, Exchangeable])
def test_wrong_arguments_are_refused_before_anything_is_read(wrong):
    ids = np.arange(20) % 5
    cohort = Cohort(np.ones((20, 2)), groups=ids, budget=Budget(1.0, 1e-6), n=5, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="by_person"):
        cohort.person_moment(lambda r: r[0], law="mean", clip=1.0, share=0.1, name="m")
    with pytest.raises(PrivacyError, match="max_rows"):
        cohort.by_person(lambda r: r[0], max_rows=0)
    assert cohort.reads == 0
    rows = cohort.by_person(lambda r: r[0], max_rows=4)
    with pytest.raises(PrivacyError, match="law"):
        rows.person_moment(lambda r: r[0], law=wrong, clip=1.0, share=0.1, name="m")
    with pytest.raises(PrivacyError, match="arrays"):
        rows.person_moment(lambda r: r[0][:, 0], law="mean", clip=1.0, share=0.1, name="m")
    assert not rows.releases


def test_a_ratio_is_a_number_of_at_least_zero():
    for wrong in (-1.0, math.nan, "1", True, None):
        with pytest.raises(PrivacyError, match="ratio"):
            Exchangeable(wrong)


def test_what_rows_of_persons_want():
    alone = Cohort(np.ones((20, 2)), budget=Budget(1.0, 1e-6), n=20, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="groups"):
        alone.by_person(lambda r: r[0], max_rows=2)
    assert alone.reads == 0
    assert "all of its rows together, at most 4" in str(
        Cohort(np.ones((20, 2)), groups=np.arange(20) % 5, budget=Budget(1.0, 1e-6), n=5, noise=SeededNoise(0))
        .by_person(lambda r: r[0], max_rows=4)
        .ledger
    )


def test_moments_of_persons_are_row_local():
    """The same person among others, in another place, gives the same bits."""
    f = np.random.default_rng(4).normal(size=(50, 7, 5))
    f[::3, 4:] = np.nan
    whole = person_moments(f, "mean")
    for i in range(0, 50, 7):
        assert (person_moments(f[i : i + 1], "mean")[0] == whole[i]).all()
    assert _rowwise_arithmetic.person_moments is person_moments
