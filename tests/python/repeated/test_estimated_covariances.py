"""What estimated covariances add to errors: Kenward and Roger's sum with every matrix written out, for all levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from repeated_tools import RowsWithLoads, dense_kenward_roger, draw, entries_of, features_of, sums_of
from scipy.linalg import block_diag

from fdadp.regression.mixed_models.estimated_covariances import (
    EstimatedCovariances,
    VarianceLevel,
    blocks_of_designs,
    blocks_of_gaps,
    blocks_of_sites,
    free_levels,
)
from fdadp.regression.mixed_models.person_covariances import law_of_levels, law_of_white
from fdadp.repeated.nested_sites import site_sums
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.random_slopes import slope_sums
from fdadp.repeated.reml_search import LevelCovariances
from fdadp.repeated.reml_with_gaps import gap_rows


@dataclass
class Level:
    """A covariance, loads (rows, k) of all its units, its derivatives in what is estimated, and where it is not 0."""

    covariance: np.ndarray
    units: list[np.ndarray]
    basis: list[np.ndarray]
    held: np.ndarray | None = None

    def spread(self, covariance: np.ndarray) -> np.ndarray:
        return sum(Z @ covariance @ Z.T for Z in self.units)


def free(covariance: np.ndarray, units: list[np.ndarray], rows: np.ndarray | None = None) -> Level:
    """All entries that can vary about a covariance which may be singular: none between two of its null directions.

    `rows` is the covariance of rows: predictions are projected onto where there is some along what is white beside it.
    """
    values, vectors = np.linalg.eigh(covariance)
    some = values > 1e-9
    entries = [E for E in entries_of(len(some)) if not E[np.ix_(~some, ~some)].any()]
    if rows is None:
        return Level(covariance, units, [vectors @ E @ vectors.T for E in entries])
    A, W = vectors[:, some], np.kron(np.eye(len(some) // len(rows)), np.linalg.inv(rows))
    return Level(
        covariance, units, [vectors @ E @ vectors.T for E in entries], A @ np.linalg.solve(A.T @ W @ A, A.T @ W)
    )


def check(found: EstimatedCovariances, X: np.ndarray, levels: list[Level], inner: np.ndarray | None = None) -> None:
    """Errors of mean curves, and Satterthwaite's degrees of freedom; of some columns, or of all."""
    inner = np.arange(X.shape[1]) if inner is None else inner
    V = sum(level.spread(level.covariance) for level in levels)
    derivatives = [level.spread(E) for level in levels for E in level.basis]
    C, added, errors, moved = dense_kenward_roger(V, X, derivatives)
    np.testing.assert_allclose(found.covariance, C[np.ix_(inner, inner)], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.inner, added[np.ix_(inner, inner)], atol=1e-8 * np.abs(added).max())
    z = np.eye(len(C))[inner][[0, 2]]
    changes = [np.array([row @ C @ B @ C @ row for B in moved]) for row in z]
    wanted = 2 * sum((row @ C @ row) ** 2 for row in z) / sum(g @ errors @ g for g in changes)
    assert found.degrees(np.eye(len(found.covariance))[[0, 2]]) == pytest.approx(wanted, rel=1e-7)


def grown(X: np.ndarray, levels: list[Level], own: list[tuple[int, int]]) -> np.ndarray:
    """The variance of ``Γ Z'V⁻¹ r`` of some units, by differences in what is estimated, twice where Γ is not 0."""
    base = [level.covariance for level in levels]

    def predictor(covariances: list[np.ndarray]) -> np.ndarray:
        V = sum(level.spread(c) for level, c in zip(levels, covariances, strict=True))
        return np.vstack([covariances[g] @ levels[g].units[u].T @ np.linalg.inv(V) for g, u in own])

    step, changes = 1e-5, []
    for g, level in enumerate(levels):
        for E in level.basis:
            up, down = ([*base[:g], base[g] + s * E, *base[g + 1 :]] for s in (step, -step))
            changes.append((predictor(up) - predictor(down)) / (2 * step))
    V = sum(level.spread(level.covariance) for level in levels)
    errors = dense_kenward_roger(V, X, [level.spread(E) for level in levels for E in level.basis])[2]
    varies = sum(errors[r, s] * a @ V @ b.T for r, a in enumerate(changes) for s, b in enumerate(changes))
    held = [np.eye(len(base[g])) if levels[g].held is None else levels[g].held for g, _ in own]
    return varies + block_diag(*held) @ varies @ block_diag(*held).T


def close(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a, b, atol=2e-5 * np.abs(b).max())


def members(who: np.ndarray, loads: np.ndarray) -> list[np.ndarray]:
    """Loads (N, b, k) of rows, by unit: (N b, k) each."""
    return [((who == i)[:, None, None] * loads).reshape(-1, loads.shape[2]) for i in np.unique(who)]


@pytest.mark.parametrize("rank", [1, 3])
def test_curves_of_persons(rank):
    law, C = draw(np.random.default_rng(rank), rank=rank)
    s = sums_of(law, C)
    designs = s.sizes[:, None, None].astype(float)
    blocks = blocks_of_designs(s, designs, np.searchsorted(s.sizes, s.counts), s.sums[:, None])
    found = EstimatedCovariances.of(blocks, free_levels(law.G, law.R), heads=1)
    N, eye = len(law.who), np.eye(3)
    each = np.tile(eye, (N, 1, 1))
    levels = [free(law.G, members(law.who, each), law.R), free(law.R, members(np.arange(N), each))]
    check(found, law.design, levels)
    for place, n in enumerate(s.sizes):
        person = int(np.flatnonzero(np.bincount(law.who) == n)[0])
        close(found.added[place], grown(law.design, levels, [(0, person)]))


@pytest.mark.parametrize("rank", [2, 6])
def test_slopes_of_persons(rank):
    law, C = draw(np.random.default_rng(rank + 10), rank=3)
    a, N = np.random.default_rng(rank).normal(size=(6, rank)), len(law.who)
    sums = PersonPass(np.eye(3), 2, cross=True).add(law.X[:, 1:], C, law.who).sums()
    s = slope_sums(sums, features_of(sums, (0, 2)))
    found = EstimatedCovariances.of(
        blocks_of_designs(sums, s.designs, s.design_of, s.vectors), free_levels(a @ a.T, law.R), heads=1
    )
    rows = np.kron(law.X[:, [0, 2]], np.eye(3)).reshape(N, 3, 6)
    levels = [
        free(a @ a.T, members(law.who, rows), law.R),
        free(law.R, members(np.arange(N), np.tile(np.eye(3), (N, 1, 1)))),
    ]
    design = np.kron(law.X - sums.shift_x, np.eye(3))
    check(found, design, levels)
    for person in (0, 1):  # of one row, which is fewer than functions, and of four
        place = s.design_of[sums.ids.get_loc(person)]
        close(found.added[place], grown(design, levels, [(0, person)]))


def test_persons_within_sites():
    rng, k = np.random.default_rng(4), 2
    site = np.repeat(np.arange(4), [2, 3, 1, 3])
    who = np.repeat(np.arange(9), [2, 3, 1, 2, 4, 1, 2, 3, 2])
    X = np.column_stack((np.ones(who.size), rng.normal(size=4)[site[who]], rng.normal(size=who.size)))
    a, b, c = rng.normal(size=(3, k, k))
    S, G, R = a @ a.T, b[:, :1] @ b[:, :1].T, c @ c.T + 0.3 * np.eye(k)
    sums = PersonPass(np.eye(k), 3, intercept=False).add(X, rng.normal(size=(who.size, k)), who).sums()
    own = site_sums(sums, dict(enumerate(site)))
    found = EstimatedCovariances.of(blocks_of_sites(own), free_levels(S, G, R), heads=2)
    each = np.tile(np.eye(k), (who.size, 1, 1))
    levels = [
        free(S, members(site[who], each), R),
        free(G, members(who, each), R),
        free(R, members(np.arange(len(who)), each)),
    ]
    design = np.kron(X, np.eye(k))
    check(found, design, levels)
    for place in range(4):  # a site and all of its persons, jointly
        persons = [(1, int(i)) for i in np.flatnonzero(site == place)]
        close(found.added[place], grown(design, levels, [(0, place), *persons]))


def test_rows_with_gaps():
    """Mean curves lie on one function more than curves of persons do."""
    rng, T, noise = np.random.default_rng(3), 9, 0.6
    law, _ = draw(rng, rank=2)
    psi = np.linalg.qr(rng.normal(size=(T, 4)))[0]
    Y = rng.normal(size=(len(law.who), T))
    Y[rng.uniform(size=Y.shape) < 0.5] = np.nan
    Y[:, 0], Y[3, 1:] = 1.0, np.nan  # a row of one value, which is fewer than functions
    Y[:4:2] = np.nan_to_num(Y[:4:2])
    rows, K = gap_rows(psi, law.X, Y, law.who), law.R
    G, R = free_levels(law.G, K + noise * np.eye(3))
    white = VarianceLevel(np.full((1, 1), noise), np.ones((1, 1, 1)))
    found = EstimatedCovariances.of(blocks_of_gaps(rows, 3), [G, VarianceLevel(K, R.basis), white], heads=1)
    seen, N = np.isfinite(Y).ravel(), len(Y)
    loads = np.tile(psi[:, :3], (N, 1, 1))
    levels = [free(law.G, members(law.who, loads), K + noise * np.eye(3)), free(K, members(np.arange(N), loads))]
    levels = [Level(x.covariance, [Z[seen] for Z in x.units], x.basis, x.held) for x in levels]
    levels.append(free(np.full((1, 1), noise), list(np.eye(seen.sum())[:, :, None])))
    design = np.kron(law.X, psi)[seen]
    check(found, design, levels)
    for person in (0, 1):
        close(found.added[person], grown(design, levels, [(0, person)]))


def test_white_errors():
    """``G⁻¹ = Σ a Q`` and one variance of errors, of which what is outside of the functions tells most."""
    rng, T, k = np.random.default_rng(5), 5, 3
    law, _ = draw(rng)
    basis = np.linalg.qr(rng.normal(size=(T, T)))[0]
    phi, half = basis[:, :k], rng.normal(size=(k, 2))
    precisions = [np.eye(k), half @ half.T]
    G, noise = np.linalg.inv(0.7 * precisions[0] + 2.0 * precisions[1]), 0.4
    one = PersonPass(phi, law.X.shape[1], intercept=False)
    sums = one.add(law.X, rng.normal(size=(len(law.who), T)), law.who).sums()
    law_ = law_of_white(sums, LevelCovariances(G, noise * np.eye(k), noise, 0.0), precisions)
    N = len(law.who)
    levels = [
        Level(G, members(law.who, np.tile(phi, (N, 1, 1))), [G @ Q @ G for Q in precisions]),
        free(np.full((1, 1), noise), list(np.eye(N * T)[:, :, None])),
    ]
    wide = np.einsum("na,tj->ntaj", law.X, basis).reshape(N * T, -1)
    inside = (np.arange(law.X.shape[1])[:, None] * T + np.arange(k)).ravel()
    order = np.r_[inside, np.setdiff1d(np.arange(wide.shape[1]), inside)]
    check(law_.few, wide[:, order], levels, np.arange(len(inside)))
    for place, n in enumerate(sums.sizes):
        person = int(np.flatnonzero(np.bincount(law.who) == n)[0])
        close(law_.few.added[place], grown(wide, levels, [(0, person)]))


@pytest.mark.parametrize("rank", [1, 3])
def test_terms_that_vary_with_t(rank):
    """Coefficients load on rows, and outside of the functions on white noise of a known variance."""
    rows = RowsWithLoads(rank, rank, 4, intercept=False)
    s, (T, k), N = rows.sums(), rows.phi.shape, len(rows.who)
    law = law_of_levels(s, LevelCovariances(rows.G, rows.R, s.noise_variance(), 0.0))
    found = EstimatedCovariances.of(law.blocks(), free_levels(rows.G, rows.R), heads=1, beyond=law.beyond)
    loads = np.tile(rows.phi, (N, 1, 1))
    beyond = np.kron(np.eye(N), np.linalg.svd(rows.phi)[0][:, k:])
    levels = [
        free(rows.G, members(rows.who, loads), rows.R),
        free(rows.R, members(np.arange(N), loads)),
        Level(s.noise_variance() * np.eye(N * (T - k)), [beyond], []),
    ]
    design, p = rows.design(), s.p
    check(found, design, levels, np.r_[: p * k, p * T : p * T + rows.P])
    for place, n in enumerate(s.sizes):
        person = int(np.flatnonzero(np.bincount(rows.who) == n)[0])
        close(found.added[place], grown(design, levels, [(0, person)]))


def test_terms_that_vary_with_t_beside_white_errors():
    rows = RowsWithLoads(7, 3, 4, intercept=False)
    s, (T, k), N = rows.sums(), rows.phi.shape, len(rows.who)
    noise, Q = 0.4, np.linalg.inv(rows.G)
    law = law_of_white(s, LevelCovariances(rows.G, noise * np.eye(k), noise, 0.0), [Q])
    levels = [
        Level(rows.G, members(rows.who, np.tile(rows.phi, (N, 1, 1))), [rows.G @ Q @ rows.G]),
        free(np.full((1, 1), noise), list(np.eye(N * T)[:, :, None])),
    ]
    check(law.few, rows.design(), levels, np.r_[: s.p * k, s.p * T : s.p * T + rows.P])
    close(law.few.added[0], grown(rows.design(), levels, [(0, int(np.argmin(np.bincount(rows.who))))]))


def test_it_is_left_out_where_it_is_too_much_work_or_rows_say_nothing(monkeypatch):
    law, C = draw(np.random.default_rng(1))
    s = sums_of(law, C)
    designs, at = s.sizes[:, None, None].astype(float), np.searchsorted(s.sizes, s.counts)
    blocks = blocks_of_designs(s, designs, at, s.sums[:, None])
    levels = free_levels(law.G, law.R)
    assert EstimatedCovariances.of(blocks, levels, heads=1) is not None
    with monkeypatch.context() as patch:
        patch.setattr("fdadp.regression.mixed_models.estimated_covariances.MOST_WORK", 10.0)
        assert EstimatedCovariances.of(blocks, levels, heads=1) is None
    twice = VarianceLevel(levels[1].covariance, np.concatenate((levels[1].basis, levels[1].basis[:1])))
    assert EstimatedCovariances.of(blocks, [levels[0], twice], heads=1) is None
