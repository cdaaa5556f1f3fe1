"""Rows with gaps: the dense normal law, sums without gaps, curves that were partly seen; and in formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from repeated_tools import check_against_dense_law, curves_of_persons, dense_fit, draw, weights_alike_along

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.reml_search import level_covariances
from fdadp.repeated.reml_with_gaps import gap_covariances, gap_fit, gap_rows
from fdadp.repeated.two_level_model import deviance, gls

T, NOISE = 9, 0.6


def partly_seen(seed: int, rank: int, share: float):
    rng = np.random.default_rng(seed)
    law, _ = draw(rng, rank=rank)
    phi = np.linalg.qr(rng.normal(size=(T, 3)))[0]
    Y = rng.normal(size=(len(law.who), T))
    Y[rng.uniform(size=Y.shape) < share] = np.nan
    Y[np.isnan(Y).all(axis=1), 0] = 1.0
    Y[: len(Y) // 3] = np.nan_to_num(Y[: len(Y) // 3], nan=0.3)  # complete rows among them
    return law, phi, Y


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_value_gradients_and_effects_are_those_of_the_dense_law(rank, share):
    law, phi, Y = partly_seen(rank, rank, share)
    K = law.R
    found = gap_fit(gap_rows(phi, law.X, Y, law.who), law.G, K, NOISE)
    seen = np.isfinite(Y).ravel()
    same, N = np.equal.outer(law.who, law.who), len(law.who)
    P = np.kron(np.eye(N), phi)[seen]
    V = P @ (np.kron(same, law.G) + np.kron(np.eye(N), K)) @ P.T + NOISE * np.eye(seen.sum())
    F, y, W = P @ np.kron(law.X, np.eye(3)), Y.ravel()[seen], np.linalg.inv(V)
    gram = F.T @ W @ F
    beta = np.linalg.solve(gram, F.T @ W @ y)
    r = y - F @ beta
    want = np.linalg.slogdet(V)[1] + r @ W @ r + np.linalg.slogdet(gram)[1]
    assert found.deviance == pytest.approx(want, rel=1e-11)
    np.testing.assert_allclose(found.fixed.ravel(), beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-11)
    left = W - W @ F @ np.linalg.solve(gram, F.T @ W) - np.outer(W @ r, W @ r)
    blocks = (P.T @ left @ P).reshape(N, 3, N, 3)
    want_g, want_k = np.einsum("nm,nimj->ij", same, blocks), np.einsum("ninj->ij", blocks)
    np.testing.assert_allclose(found.d_g, want_g, atol=1e-10 * np.abs(want_g).max())
    np.testing.assert_allclose(found.d_k, want_k, atol=1e-10 * np.abs(want_k).max())
    assert found.d_noise == pytest.approx(np.trace(left), rel=1e-9)
    Z = P @ np.kron(np.equal.outer(law.who, np.unique(law.who)), np.eye(3))
    b = np.kron(np.eye(len(np.unique(law.who))), law.G) @ Z.T @ W @ r
    np.testing.assert_allclose(found.effects.ravel(), b, atol=1e-10 * np.abs(b).max())


def test_without_gaps_it_is_the_fit_from_sums():
    c = curves_of_persons(0, 40, T=40)
    phi = smooth_functions(c.t, 5)[0]
    X = np.column_stack((np.ones(len(c.X)), c.X))
    sums = PersonPass(phi, 3, intercept=False).add(X, c.Y, c.who).sums()
    at = level_covariances(sums)
    found = gap_fit(gap_rows(phi, X, c.Y, c.who), at.G, at.R - at.noise_variance * np.eye(5), at.noise_variance)
    outside = sums.n_rows * 35 * np.log(at.noise_variance) + sums.energy / at.noise_variance
    assert found.deviance == pytest.approx(deviance(sums, at.G, at.R) + outside, rel=1e-9)
    np.testing.assert_allclose(found.fixed, gls(sums, at.G, at.R)[0], rtol=1e-6, atol=1e-8)
    again, _ = gap_covariances(phi, X, c.Y, c.who, c.t)
    assert again.noise_variance == pytest.approx(at.noise_variance, rel=0.02)
    np.testing.assert_allclose(again.G, at.G, atol=0.03 * np.abs(at.G).max())


@pytest.mark.parametrize("kind", ["blocks", "random"])
def test_gaps_leave_both_levels_to_be_found(kind):
    c = curves_of_persons(1, 80, T=40)
    rng = np.random.default_rng(0)
    if kind == "blocks":
        off = (np.arange(40) - rng.integers(0, 40, len(c.Y))[:, None]) % 40 < 12
        off[::2] = False
    else:
        off = rng.uniform(size=c.Y.shape) < 0.6
    phi = smooth_functions(c.t, 6)[0]
    X = np.column_stack((np.ones(len(c.X)), c.X))
    levels, fit = gap_covariances(phi, X, np.where(off, np.nan, c.Y), c.who, c.t)
    whole = level_covariances(PersonPass(phi, 3, intercept=False).add(X, c.Y, c.who).sums())
    assert levels.noise_variance == pytest.approx(0.25, rel=0.12)
    assert np.trace(levels.G) == pytest.approx(np.trace(whole.G), rel=0.15)
    assert np.abs(fit.d_g @ levels.G).max() < 0.05 * len(c.Y)
    b = fit.effects @ phi.T
    assert np.corrcoef(b.ravel(), c.b.ravel())[0, 1] > 0.85


def test_a_row_without_a_value_is_refused():
    with pytest.raises(InputError, match="got none in row 1"):
        gap_rows(np.eye(3), np.ones((2, 1)), np.array([[1, 2, 3], [np.nan] * 3]), np.array([0, 0]))


GAPS = "Y ~ x + day + re(id, covariance='free', k=4)"


def holes(seed: int, persons: int = 12, share: float = 0.3, T: int = 16) -> dict:
    c = curves_of_persons(seed, persons, T=T, most=5, least=2)
    Y, rng = c.Y + 5.0, np.random.default_rng(seed)
    off = rng.uniform(size=Y.shape) < share
    off[::3] = False  # whole rows among them
    names = np.array([f"p{i:03d}" for i in range(persons)])
    return {"Y": np.where(off, np.nan, Y), "x": c.X[:, 0], "day": c.X[:, 1], "id": names[c.who]}


def long_table(data: dict) -> tuple[dict, pd.DataFrame]:
    """The same as single observations at points of their own."""
    row, column = np.nonzero(np.isfinite(data["Y"]))
    t = np.linspace(0, 1, data["Y"].shape[1])[column]
    table = pd.DataFrame({"row": row, "t": t, "value": data["Y"][row, column]})
    return {name: column for name, column in data.items() if name != "Y"}, table


def test_terms_and_persons_of_curves_with_gaps_are_those_of_the_dense_law(tmp_path):
    data = holes(0)
    model = FunctionalRegression(GAPS).fit(data)
    check_against_dense_law(model, data)
    own = model.persons_
    assert own.edf < 12 * 4 and np.isfinite(own.successive) and "ICC" in str(model.summary())
    assert np.isnan(model.residuals_[np.isnan(data["Y"])]).all() and np.isfinite(model.fitted_values_).all()
    kept = FunctionalRegression.load(model.save(tmp_path / "gaps"))
    np.testing.assert_array_equal(kept.predict_se(data), model.predict_se(data))
    new = data | {"id": np.full(len(data["id"]), "nobody")}
    out = FunctionalRegression.load(model.save(tmp_path / "out", people=False))
    np.testing.assert_array_equal(out.predict(data), model.predict(new))


def test_errors_by_person_of_curves_with_gaps_are_those_of_dense_scores():
    data = holes(5, T=20)
    model = FunctionalRegression(GAPS, se="cluster", smoothing=[0.1, 1.0, 9.0]).fit(data, groups="id")
    seen, fit = np.isfinite(data["Y"]).ravel(), model.fitted_.fit
    every, V, _ = dense_fit(model, data)
    rows, V = every[seen], V[np.ix_(seen, seen)]
    left = np.linalg.solve(V, data["Y"].ravel()[seen] - rows @ fit.coefficients)
    who = np.repeat(np.unique(data["id"], return_inverse=True)[1], 20)[seen]
    weights = weights_alike_along(model, data, every, V, seen)
    penalty = np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties) / fit.sigma2
    smoother = np.linalg.inv(weights + penalty)
    turn = smoother @ weights @ np.linalg.inv(rows.T @ np.linalg.solve(V, rows))
    scores = np.stack([rows[who == i].T @ left[who == i] for i in range(12)]) @ turn.T
    wanted = 12 / (12 - 2) * scores.T @ scores + smoother @ penalty @ smoother
    np.testing.assert_allclose(model.vcov(), wanted, atol=1e-5 * np.abs(wanted).max())


def test_points_of_their_own_on_one_grid_are_gaps_of_that_grid():
    data = holes(1)
    gaps = FunctionalRegression(GAPS).fit(data)
    rows, table = long_table(data)
    points = FunctionalRegression([terms.linear("x"), terms.linear("day"), terms.re("id", covariance="free", k=4)])
    points.fit(rows, response=table)
    np.testing.assert_allclose(points.persons_.levels.G, gaps.persons_.levels.G, atol=1e-5)
    np.testing.assert_allclose(points.predict(rows), gaps.predict(data), atol=1e-4)
    np.testing.assert_allclose(points.predict_se(rows), gaps.predict_se(data), rtol=1e-4)
    assert points.loglik_ == pytest.approx(gaps.loglik_, rel=1e-6)
    at = gaps.fitted_values_[table["row"], np.searchsorted(np.linspace(0, 1, 16) + 1e-9, table["t"])]
    np.testing.assert_allclose(points.fitted_values_, at, atol=1e-4)


def test_points_that_no_two_rows_share():
    c, rng = curves_of_persons(2, 40, T=200, most=6, least=2), np.random.default_rng(2)
    at = np.stack([np.sort(rng.choice(200, 25, replace=False)) for _ in c.Y])
    row = np.repeat(np.arange(len(c.Y)), 25)
    t = c.t[at].ravel() + rng.uniform(-0.002, 0.002, row.size).clip(-c.t[at].ravel(), 1 - c.t[at].ravel())
    table = pd.DataFrame({"row": row, "t": t, "value": np.take_along_axis(c.Y, at, 1).ravel()})
    data = {"x": c.X[:, 0], "day": c.X[:, 1], "id": c.who}
    model = FunctionalRegression([terms.linear("x"), terms.linear("day"), terms.re("id", covariance="free", k=6)])
    model.fit(data, response=table)
    assert model.persons_.levels.noise_variance == pytest.approx(0.25, rel=0.1)
    found = model.coef("re(id)", se=True, kind="iid", t=c.t, id=list(range(40)))
    value, se = (found[name].to_numpy().reshape(40, 200) for name in ("value", "se"))
    assert 0.88 < (np.abs(value - c.b) < 1.96 * se).mean() < 0.99
    moved = data | {"id": c.who + 100}
    low, high = model.predict_interval(moved, t=c.t)
    assert 0.9 < ((low < c.Y) & (high > c.Y)).mean() < 0.985


def test_the_order_of_rows_with_gaps_does_not_matter():
    data = holes(3, 20)
    model = FunctionalRegression(GAPS).fit(data)
    order = np.random.default_rng(0).permutation(len(data["id"]))
    again = FunctionalRegression(GAPS).fit({name: column[order] for name, column in data.items()})
    np.testing.assert_allclose(again.fitted_values_, model.fitted_values_[order], atol=1e-4)
    without = FunctionalRegression(GAPS.replace(", k=4", "")).fit(data)
    assert 4 <= without.persons_.phi.shape[1] <= 8 and without.persons_.chosen


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("Y ~ day + re(id, slopes=day)", "at all points of one grid with re.id. with slopes=day, got gaps"),
        ("Y ~ re(site, covariance='free') + re(id, covariance='free')", "with persons within sites, got gaps"),
        ("Y ~ re(id, covariance='spline', k=5)", "covariance='spline', got gaps"),
    ],
)
def test_gaps_that_are_refused(formula, said):
    data = holes(4, 8)
    data["site"] = np.array([name[-1] for name in data["id"]])
    with pytest.raises(InputError, match=said):
        FunctionalRegression(formula).fit(data)
    empty = data | {"Y": np.where(np.arange(len(data["id"]))[:, None] == 2, np.nan, data["Y"])}
    with pytest.raises(InputError, match="none in row 2"):
        FunctionalRegression(GAPS).fit(empty)
    with pytest.raises(InputError, match="with rows in chunks, got gaps"):
        FunctionalRegression(GAPS).fit_chunks([data])
