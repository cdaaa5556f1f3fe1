"""Sums of one pass: the same in any order, in chunks and partitions, about any shift."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fdadp.errors import InputError
from fdadp.repeated.person_sums import PersonPass, PersonSums, smooth_functions

T, K = 40, 6
PHI, PENALTY = smooth_functions(np.linspace(0, 1, T), K)


def cohort(seed: int = 0, persons: int = 12, level: float = 0.0):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), np.r_[1, 1, rng.integers(2, 6, persons - 2)])
    X = np.column_stack((rng.normal(size=persons)[who], rng.normal(size=who.size)))
    Y = (
        level
        + rng.normal(size=(persons, 1))[who]
        + X[:, :1] * np.sin(np.linspace(0, 6, T))
        + rng.normal(size=(who.size, T))
    )
    return X, Y, who


def one_pass(X, Y, who, **kwargs) -> PersonSums:
    return PersonPass(PHI, X.shape[1], **kwargs).add(X, Y, who).sums()


def same(a: PersonSums, b: PersonSums, tolerance: float = 1e-12) -> None:
    """Equal after both are told about no shift and with persons in one order."""
    for name in ("within", "between", "energy", "sizes", "persons"):
        x, y = np.asarray(getattr(a, name), float), np.asarray(getattr(b, name), float)
        size = np.abs(b.total).max() if name in ("within", "between", "energy") else np.abs(y).max()
        np.testing.assert_allclose(x, y, atol=tolerance * size, rtol=0, err_msg=name)
    np.testing.assert_allclose(a.products, b.products, atol=tolerance * np.abs(b.products).max())
    order = b.ids.get_indexer(a.ids)
    np.testing.assert_allclose(a.sums, b.sums[order], atol=tolerance * np.abs(b.sums).max() + 1e-12)
    np.testing.assert_array_equal(a.counts, b.counts[order])


def test_functions_are_orthonormal_and_grow_rougher():
    np.testing.assert_allclose(PHI.T @ PHI, np.eye(K), atol=1e-13)
    assert (np.diff(PENALTY) >= 0).all() and PENALTY[0] == PENALTY[1] == 0 < PENALTY[2]
    line = np.linspace(-3, 5, T)
    np.testing.assert_allclose(PHI[:, :2] @ (PHI[:, :2].T @ line), line, atol=1e-10)
    uneven, _ = smooth_functions(np.r_[np.linspace(0, 0.1, 20), np.linspace(0.9, 1, 20)], 12)
    np.testing.assert_allclose(uneven.T @ uneven, np.eye(12), atol=1e-12)


def test_sums_are_what_they_are_called():
    X, Y, who = cohort()
    s = one_pass(X, Y, who)
    F = np.column_stack((np.ones(len(X)), X)) - s.shift_x
    C = (Y - s.shift_y) @ PHI
    v = np.hstack((F, C))
    means = np.stack([v[who == i].mean(0) for i in s.ids])
    np.testing.assert_allclose(s.means, means, atol=1e-13)
    inner = v - means[who]
    np.testing.assert_allclose(s.within, inner.T @ inner, atol=1e-11)
    of_n = [sum(n * np.outer(m, m) for m, n in zip(means, s.counts, strict=True) if n == size) for size in s.sizes]
    np.testing.assert_allclose(s.between, of_n, atol=1e-11)
    assert s.energy == pytest.approx(((Y - s.shift_y - C @ PHI.T) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(s.products, F.T @ (Y - s.shift_y), atol=1e-11)
    F[:, 0] = 1
    left = Y - F @ np.linalg.lstsq(F, Y, rcond=None)[0]
    left -= left @ PHI @ PHI.T
    assert s.noise_variance() == pytest.approx((left**2).sum() / ((len(Y) - 3) * (T - K)), rel=1e-11)
    assert s.rank_within == 1 and s.spare_rows == len(Y) - 12 - 1


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cross", [True, False])
def test_order_chunks_and_partitions_do_not_matter(intercept, cross):
    X, Y, who = cohort(1, level=100.0)
    kept = {"intercept": intercept, "cross": cross}
    whole = one_pass(X, Y, who, **kept)
    order = np.random.default_rng(2).permutation(len(Y))
    in_chunks = PersonPass(PHI, 2, **kept)
    in_chunks._shift = (whole.shift_x, whole.shift_y) if intercept else None
    for at in np.array_split(order, 7):
        in_chunks.add(X[at], Y[at], who[at])
    same(in_chunks.sums(), whole, 1e-12)
    # Each partition finds a shift of its own; the first is empty, the second one constant row.
    merged = PersonPass(PHI, 2, **kept)
    parts = [order[:0], order[:1], *np.array_split(order[1:], 5)]
    for at in parts:
        merged.merge(PersonPass(PHI, 2, **kept).add(X[at], Y[at], who[at]))
    moved = merged._about(whole.shift_x, whole.shift_y).sums()
    same(moved, whole, 1e-11)
    if cross:
        order_of = whole.ids.get_indexer(moved.ids)
        np.testing.assert_allclose(moved.cross, whole.cross[order_of], atol=1e-9)


def test_a_common_shift_keeps_digits():
    X, Y, who = cohort(3)
    near, far = one_pass(X, Y, who), one_pass(X + 1e6, Y + 1e7, who)
    np.testing.assert_allclose(far.within, near.within, atol=1e-6)
    assert far.noise_variance() == pytest.approx(near.noise_variance(), rel=1e-7)


def test_ids_of_any_kind():
    X, Y, who = cohort(4)
    names = [("site", i % 3, f"p{i}") if i % 2 else float(i) for i in who]
    s = one_pass(X, Y, names)
    same(numbered(s), numbered(one_pass(X, Y, who)))
    with pytest.raises(InputError, match="missing in 2 rows"):
        one_pass(X[:4], Y[:4], ["a", None, float("nan"), "a"])


def numbered(s: PersonSums) -> PersonSums:
    return dataclasses.replace(s, ids=pd.RangeIndex(s.n_persons))


def test_fewer_functions_are_part_of_the_sums():
    X, Y, who = cohort(5)
    few = one_pass(X, Y, who).first(4)
    direct = PersonPass(PHI[:, :4], 2).add(X, Y, who).sums()
    same(few, direct, 1e-12)
    assert few.noise_variance() == pytest.approx(direct.noise_variance(), rel=1e-11)


def test_what_cannot_be_added_is_refused():
    X, Y, who = cohort(6)
    with pytest.raises(InputError, match="linear functions"):
        one_pass(np.column_stack((X, X[:, 0] + 2 * X[:, 1])), Y, who)
    with pytest.raises(InputError, match="linear functions"):
        one_pass(np.column_stack((X, np.full(len(X), 0.1))), Y, who)
    with pytest.raises(InputError, match="finite"):
        one_pass(X, np.where(Y > 2, np.nan, Y), who)
    with pytest.raises(InputError, match="shape"):
        one_pass(X, Y[:, 1:], who)
    with pytest.raises(InputError, match="orthonormal"):
        PersonPass(2 * PHI)
    with pytest.raises(InputError, match="at least one row"):
        PersonPass(PHI).sums()
    with pytest.raises(InputError, match="same functions"):
        PersonPass(PHI).merge(PersonPass(PHI[:, :4]))
