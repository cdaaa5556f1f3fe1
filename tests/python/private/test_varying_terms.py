"""Private effects whose features differ between points of the response: concurrent and historical ones."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy, PublicPrior, plan, terms
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy.rows._sealed_row_functions import BLOCK, probe
from fdadp.private.denoise.empirical_bayes import posterior_of_pairs, posteriors, secant_update
from fdadp.private.plan.budget_sharing import make_plan, water_fill
from fdadp.private.plan.private_design import PrivateDesign, curves_column
from fdadp.private.public.column_ranges import NumberColumn
from fdadp.private.release.plan_and_spend import refuse_unaffordable
from fdadp.private.rows.pointwise_gradients import MeasuredPairs, added, integrals, quadratic
from fdadp.private.rows.row_functions import ResidualRows, RowFunctions
from fdadp.private.whitened.term_registry import white_term
from fdadp.terms.curves.functional_linear import windowed

PRIOR = PublicPrior()
S = np.linspace(10, 12, 25)
W = quadrature_weights((S - 10) / 2)
BOUNDS = {"X": (-4.0, 4.0), "V": (-4.0, 4.0), "z": (0.0, 10.0), "g": ["a", "b"], "Y": (-8.0, 8.0)}


def design_of(*specs):
    curves = [curves_column(PRIOR, name, at, S, (-4.0, 4.0)) for name, at in (("X", 0), ("V", 2))]
    columns = (curves[0], NumberColumn("z", 1, (0.0, 10.0)), curves[1])
    by_name = {column.name: column for column in columns}
    return PrivateDesign.of(PRIOR, columns, [white_term(s, by_name, PRIOR, curves=True, t=S) for s in specs], S)


def rows_of(design, *, pure=False, noise=4.0):
    rows = RowFunctions(design, (-8.0, 8.0))
    made = make_plan(1000.0, noise, design, pure=pure)
    rows.begin_regression(replace(made, feature_clip=1e6))
    rows.coefficients = np.zeros(made.weights.shape)
    return rows


def block_of(n, seed=0, gaps=False):
    rng = np.random.default_rng(seed)
    x = PublicPrior(seed=seed + 7).x.curves((S - 10) / 2, n_per_length=-(-n // 40))[:n]
    v = rng.permutation(x)
    y = x * np.sin(S) + 0.3 * rng.normal(size=(n, S.size)) + 1
    if gaps:
        y[rng.random(y.shape) < 0.3] = np.nan
        y[3], x[4] = np.nan, np.nan
    return x, rng.uniform(0, 10, n), v, y


CONCURRENT = (terms.concurrent("X"), terms.linear("z"))
HISTORY = (terms.ff("X", limits="s<=t"), terms.linear("z"))
MIXED = (terms.ff("X"), terms.by("z", terms.concurrent("X")), terms.ff("V", limits="s<t"))
each_model = pytest.mark.parametrize("specs", [CONCURRENT, HISTORY, MIXED], ids=["concurrent", "history", "mixed"])


# ------------------------------------------------------------------ rows


@each_model
def test_what_is_released_is_the_gradient_of_the_squared_error(specs):
    rows = rows_of(design_of(*specs))
    pairs, block = rows.pairs, rows.derived(block_of(12))
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(pairs.size, 1))

    def loss(values):
        rows.coefficients = pairs.matrix(values)
        return (rows.away(block) ** 2 @ W) / 2

    step = 1e-5
    want = [(loss(theta - step * e) - loss(theta + step * e)) / (2 * step) for e in np.eye(pairs.size)[:, :, None]]
    rows.coefficients = pairs.matrix(theta)
    gradient, ones = rows.weighted(block)
    np.testing.assert_allclose(gradient, np.stack(want, axis=1), atol=1e-6)
    np.testing.assert_array_equal(ones, 1)
    np.testing.assert_allclose(rows.gradient_norm(block), np.sqrt((gradient**2 @ pairs.weights**2)[:, 0]), rtol=1e-12)


@each_model
@pytest.mark.parametrize("pure", [False, True])
def test_each_row_is_a_matter_of_its_own(specs, pure):
    design = design_of(*specs)
    rows = rows_of(design, pure=pure)
    rng = np.random.default_rng(2)
    rows.coefficients = rng.normal(size=rows.coefficients.shape)
    residuals = ResidualRows(rows)
    size = rows.pairs.size
    residuals.set_spread(np.ones(S.size), np.ones(8), np.eye(size)[None])
    shapes = ((S.size,), (), (S.size,), (S.size,))

    def all_of(block):
        made = rows.derived(block)
        weighted = np.hstack((*rows.weighted(made), *rows.factors(made)))
        of_residuals = (residuals.clipped(made), residuals.by_block(made), residuals.histogram(made))
        return np.hstack((weighted, rows.gradient_norm(made)[:, None], rows.residuals(made), *of_residuals))

    probe(all_of, shapes, "rows")
    block = block_of(300, gaps=True)
    want = all_of(block)
    order = rng.permutation(300)
    np.testing.assert_array_equal(all_of(tuple(a[order] for a in block)), want[order])
    padded = tuple(np.concatenate([a, np.zeros((BLOCK - 300, *a.shape[1:]))]) for a in block)
    np.testing.assert_array_equal(all_of(padded)[:300], want)
    for i in (0, 3, 4, 299):
        np.testing.assert_array_equal(all_of(tuple(a[i : i + 1] for a in block)), want[i : i + 1])
    assert np.isnan(want[3:5, :size]).all(axis=1).all()  # no Y, or no X: rows that count as zero
    assert np.isfinite(np.delete(want, (3, 4), axis=0)).all()


def test_where_y_was_not_observed_the_fit_stands():
    """A residual that is nothing but a gap adds nothing; half a curve adds about what the whole one would."""
    rows = rows_of(design_of(*CONCURRENT))
    x, z, v, _ = block_of(40)
    y = x * 0.5 + 1.0
    whole = rows.weighted(rows.derived((x, z, v, y)))[0]
    y[:, ::2] = np.nan
    half = rows.weighted(rows.derived((x, z, v, y)))[0]
    assert np.corrcoef(whole.ravel(), half.ravel())[0, 1] > 0.97
    assert 0.8 < np.abs(half).sum() / np.abs(whole).sum() < 1.1


@each_model
def test_the_spread_of_a_row_is_that_of_its_prediction(specs):
    design = design_of(*specs)
    rows = rows_of(design)
    rng = np.random.default_rng(3)
    root = rng.normal(size=(rows.pairs.size, rows.pairs.size)) / 10
    residuals = ResidualRows(rows)
    residuals.set_spread(np.full(S.size, 0.5), np.zeros(8), (root @ root.T)[None])
    block = rows.derived(block_of(10))
    away = []
    for draw in rng.normal(size=(3000, rows.pairs.size, 1)):
        rows.coefficients = rows.pairs.matrix(root @ draw)
        away.append(rows.away(block))
    np.testing.assert_allclose(residuals._spread_of(rows.row(block)) ** 2, 0.5 + np.var(away, axis=0), rtol=0.2)


def test_features_that_vary_do_what_sums_over_points_do():
    rng = np.random.default_rng(4)
    z, curves, weighted = rng.normal(size=(5, 2, 9)), rng.normal(size=(5, 9)), rng.normal(size=(9, 3))
    np.testing.assert_allclose(integrals(z, curves, weighted), np.einsum("mqt,mt,tk->mqk", z, curves, weighted))
    effects = rng.normal(size=(2, 9))
    np.testing.assert_allclose(added(curves, z, effects), curves + np.einsum("mqt,qt->mt", z, effects))
    inside = rng.random((9, 7)) < 0.5
    x, basis = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(windowed(x, basis, inside), np.einsum("ms,sq,ts->mtq", x, basis, inside), atol=1e-13)
    f, forms = rng.normal(size=(5, 4)), rng.normal(size=(4, 4, 9))
    forms = forms + np.swapaxes(forms, 0, 1)
    f[:, [1, 3]] = 0
    h = np.repeat(f[:, :, None], 9, axis=2)
    h[:, [1, 3]] = z
    want = np.einsum("mit,ijt,mjt->mt", h, forms, h)
    np.testing.assert_allclose(quadratic(f, z, np.array([1, 3]), forms), want, atol=1e-12)


# ------------------------------------------------------------------ pairs


@pytest.mark.parametrize("specs", [CONCURRENT, HISTORY], ids=["concurrent", "history"])
def test_the_second_moment_is_known_under_the_prior(specs):
    design = design_of(*specs)
    rows = rows_of(design, noise=1.0)
    x, z, v, y = block_of(4000, seed=PRIOR.seed - 7)
    y = np.broadcast_to(y[:1], y.shape)
    block, size = rows.derived((x, z, v, y)), rows.pairs.size
    parts = []
    for one in np.eye(size)[:, :, None]:
        rows.coefficients = rows.pairs.matrix(one)
        parts.append(rows.row(block).y - rows.away(block))
    rows.coefficients = rows.pairs.matrix(np.zeros((size, 1)))
    none = rows.row(block).y - rows.away(block)
    predicted = np.stack(parts) - none
    found = np.einsum("pnt,qnt,t->pq", predicted, predicted, W, optimize=True) / len(x)
    np.testing.assert_allclose(found, rows.pairs.moment, atol=0.15)
    assert np.abs(found - rows.pairs.moment).mean() < 0.02 < np.abs(found - np.eye(size)).max()
    assert np.linalg.eigvalsh(rows.pairs.moment).min() > 0


def test_models_whose_terms_factor_have_no_pairs():
    design = design_of(terms.ff("X"), terms.linear("z"))
    assert design.groups.separable and rows_of(design).pairs is None
    np.testing.assert_array_equal(
        design.gradient_shares, np.tile(design.response_shares, (design.feature_shares.size + 1, 1))
    )
    mixed = design_of(terms.linear("z"), terms.concurrent("X"))
    weights = np.ones((2, 3))
    assert mixed.groups.owner[0] == 1 and MeasuredPairs.of(mixed, weights) is not None
    last = design_of(terms.ff("X"), terms.by("z", terms.concurrent("X")))
    where = int(last.groups.varying(last.groups.owner.size).min())
    assert MeasuredPairs.of(last, np.ones((1 + where, 3))) is None  # none of those features was afforded


def test_pairs_go_where_they_stand():
    weights = np.array([[1.0, 0.5], [0.0, 0.3], [0.2, 0.0]])
    pairs = MeasuredPairs.of(design_of(*CONCURRENT), weights)
    values = np.arange(1.0, 1 + pairs.size)[:, None]
    matrix = pairs.matrix(values)
    np.testing.assert_array_equal(matrix > 0, weights > 0)
    np.testing.assert_array_equal(pairs.entries(matrix[None])[0], values[:, 0])
    square = pairs.square(values @ values.T)
    np.testing.assert_array_equal(square, np.einsum("ik,jl->ikjl", matrix, matrix))
    functions = np.random.default_rng(0).normal(size=(7, 2))
    want = np.einsum("ikjl,tk,tl->ijt", square, functions, functions)
    np.testing.assert_allclose(pairs.forms(values @ values.T, functions), want)


def test_budgets_of_pairs_are_those_of_outer_products_where_energies_are():
    scale, shares = np.array([1.0, 1.0, 0.3]), np.array([0.7, 0.2, 0.1])
    usual = water_fill(0.05, scale, shares)
    np.testing.assert_allclose(water_fill(0.05, scale, shares, np.tile(shares, (3, 1))), usual, atol=1e-12)
    energies = np.tile(shares, (3, 1))
    energies[1] = [0.4, 0.3, 0.3]  # a rough feature
    filled = water_fill(0.05, scale, shares, energies)
    assert filled.sum() == pytest.approx(1)

    def loss(p):
        return (shares * scale[:, None] / (1 + p * shares * scale[:, None] / (0.05 * energies))).sum()

    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.maximum(filled + rng.normal(0, 0.02, filled.shape), 0)
        assert loss(filled) <= loss(other / other.sum()) + 1e-12


def test_one_output_of_pairs_is_the_posterior_of_one_output():
    rng = np.random.default_rng(1)
    a = np.cov(rng.normal(size=(5, 40)))
    y, v, shares, owner = (
        rng.normal(size=(5, 1)),
        rng.uniform(0.1, 0.3, (5, 1)),
        np.array([0.5, 0.3, 0.1, 0.1]),
        np.array([0, 1, 0, 1]),
    )
    usual = posteriors(y, v, a, np.ones((5, 1), bool), shares, np.array([2.0]), 100.0, owner)
    pairs = SimpleNamespace(feature=np.arange(5), output=np.zeros(5, dtype=int), shares=np.ones(5))
    for one, other in zip(
        posterior_of_pairs(y, v, a, pairs, shares, np.array([2.0]), 100.0, owner), usual, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_entries_that_are_known_are_not_learned():
    rng = np.random.default_rng(2)
    steps = [rng.normal(size=(4, 1)) for _ in range(4)]
    truth = np.eye(4) + 0.3 * np.eye(4)[::-1]
    measured = [(truth @ (1 - theta), theta, np.full((4, 1), 1e-6)) for theta in steps]
    active = np.ones((4, 1), bool)
    every = secant_update(np.eye(4), 0.03, measured, active)
    np.testing.assert_allclose(secant_update(np.eye(4), np.full((4, 4), 0.03), measured, active), every, atol=1e-12)
    some = secant_update(np.eye(4), 0.03 * (truth > 0), measured, active)
    assert (some[truth == 0] == 0).all() or np.abs(some[truth == 0]).max() < 1e-12
    assert np.abs(some - truth).max() < np.abs(every - truth).max()


# ------------------------------------------------------------------ fits


def cohort(n, seed=0, t=S):
    rng = np.random.default_rng(seed)
    u = (t - 10) / 2
    kernel = np.linalg.cholesky(np.exp(-0.5 * ((u[:, None] - u) / 0.15) ** 2) + 1e-8 * np.eye(t.size))
    x, v = (0.5 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, t.size)) @ kernel.T for _ in range(2))
    z, g = rng.uniform(2, 8, n), rng.integers(0, 2, n)
    inside = (u[:, None] <= u) * np.sin(2 * u)[:, None] * 4
    parts = {
        "concurrent": x * np.cos(2 * u),
        "history": (v * quadrature_weights(u)) @ inside,
        "z": (z[:, None] - 5) / 3 * u,
        "g": np.array([0.4, -0.4])[g][:, None] * np.ones(t.size),
        "by": np.array([1.0, 0.2])[g][:, None] * x * u,
    }
    return {"X": x, "V": v, "z": z, "g": np.array(["a", "b"])[g]}, parts


def fitted(model, n=2000, seed=0, used=("concurrent", "z"), noise=0.3, **how):
    data, parts = cohort(n, seed)
    y = sum(parts[p] for p in used) + np.sin(S)
    y = y + noise * np.random.default_rng(seed + 1).normal(size=y.shape)
    privacy = Privacy(**({"epsilon": 2.0, "delta": 1e-6, "n": n, "random_state": 1} | how.pop("guarantee", {})))
    return FunctionalRegression(model, privacy=privacy, bounds=BOUNDS, **how).fit(
        data | {"Y": y}, grids={"X": S, "V": S, "Y": S}
    )


def share(model, used, seed=9):
    new, parts = cohort(500, seed)
    wanted = sum(parts[p] for p in used) + np.sin(S)
    return 1 - ((model.predict(new) - wanted) ** 2).mean() / ((wanted - wanted.mean(axis=0)) ** 2).mean()


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("model", "used", "least"),
    [
        ("Y ~ concurrent(X) + z", ("concurrent", "z"), 0.98),
        ("Y ~ ff(V, limits='s<=t') + C(g)", ("history", "g"), 0.97),
        ("Y ~ ff(V, limits='s<=t') + concurrent(X) + z", ("concurrent", "history", "z"), 0.97),
        ("Y ~ concurrent(X):C(g) + C(g)", ("by", "g"), 0.96),
        ("Y ~ ff(V) + concurrent(X)", ("concurrent",), 0.97),
    ],
)
def test_effects_at_the_same_point_and_up_to_it_are_found(model, used, least):
    found = fitted(model, used=used)
    assert share(found, used) > least
    assert sum(found.importances_.values()) == pytest.approx(1)


@pytest.mark.each_once
@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_every_guarantee(delta, adjacency):
    n = None if adjacency == "add-remove" else 2000
    how = {"epsilon": 4.0, "delta": delta, "adjacency": adjacency, "n": n}
    found = fitted("Y ~ concurrent(X) + z", guarantee=how)
    assert share(found, ("concurrent", "z")) > 0.93
    assert found.privacy_.adjacency == adjacency


def test_coefficients_and_their_bands():
    found = fitted("Y ~ concurrent(X) + ff(V, limits='s<=t') + z", used=("concurrent", "history", "z"), n=5000)
    u = (S - 10) / 2
    beta = found.coef("concurrent(X)", t=S, se=True)
    assert np.abs(beta["value"] - np.cos(2 * u)).max() < 0.15
    assert (np.abs(beta["value"] - np.cos(2 * u)) < 3 * beta["se"]).mean() > 0.9
    surface = found.coef("ff(V)", s=S, t=S)
    inside = surface["s"] <= surface["t"]
    assert surface["value"][inside].notna().all() and surface["value"][~inside].isna().all()
    truth = 2 * np.sin(2 * (surface["s"] - 10) / 2)  # per unit of s, of which there are two
    assert np.corrcoef(surface["value"][inside], truth[inside])[0, 1] > 0.8
    tests = found.test_terms()
    assert (tests.loc[["concurrent(X)", "z"], "p"] < 1e-3).all()


@pytest.mark.statistics
def test_intervals_hold_what_they_promise():
    held = []
    for seed in range(6):
        found = fitted("Y ~ concurrent(X) + z", n=1000, seed=seed, guarantee={"epsilon": 1.0, "random_state": seed})
        new, parts = cohort(500, 99)
        y = parts["concurrent"] + parts["z"] + np.sin(S)
        y = y + 0.3 * np.random.default_rng(5).normal(size=y.shape)
        low, high = found.predict_interval(new, 0.95)
        held.append(((low <= y) & (y <= high)).mean())
    assert 0.93 < np.mean(held) < 0.99


def test_between_points_of_the_training_grid(tmp_path):
    found = fitted("Y ~ concurrent(X) + ff(V, limits='s<=t')", used=("concurrent", "history"))
    new, _ = cohort(5, 3)
    middle = (S[1:] + S[:-1]) / 2
    finer = found.predict(new, t=middle)
    whole = found.predict(new)
    np.testing.assert_allclose(finer, (whole[:, 1:] + whole[:, :-1]) / 2, atol=0.25)
    np.testing.assert_allclose(found.predict(new, t=S), whole)
    with pytest.raises(InputError, match=r"t must lie within \[10, 12\]"):
        found.predict(new, t=S + 1)
    found.save(tmp_path / "model")
    np.testing.assert_array_equal(FunctionalRegression.load(tmp_path / "model").predict(new), whole)
    drawn = found.sample(20, random_state=0)
    assert set(drawn.columns) == {"X", "V", "Y"}


def test_offsets_and_persistence():
    data, parts = cohort(1500, 2)
    rng = np.random.default_rng(0)
    y = parts["concurrent"] + data["V"] + 0.3 * rng.normal(size=data["V"].shape)
    privacy = Privacy(2.0, 1e-6, n=1500, random_state=0)
    model = FunctionalRegression("Y ~ concurrent(X)", privacy=privacy, bounds=BOUNDS)
    model.fit(data | {"Y": y}, offset="V", grids={"X": S, "V": S, "Y": S})
    new, wanted = cohort(300, 8)
    truth = wanted["concurrent"] + new["V"]
    assert 1 - ((model.predict(new) - truth) ** 2).mean() / truth.var() > 0.97


def test_chunks_are_the_fit_in_memory():
    data, parts = cohort(600, 4)
    data["Y"] = parts["concurrent"] + parts["history"]
    grids = {"X": S, "V": S, "Y": S}
    privacy = Privacy(4.0, 1e-6, n=600, random_state=3)
    model = FunctionalRegression("Y ~ concurrent(X) + ff(V, limits='s<=t')", privacy=privacy, bounds=BOUNDS)
    whole = model.fit(data, grids=grids).predict(data)
    pieces = [{name: values[i : i + 170] for name, values in data.items()} for i in range(0, 600, 170)]
    np.testing.assert_array_equal(model.fit_chunks(pieces, grids=grids).predict(data), whole)


@pytest.mark.usefixtures("four_cohorts")
def test_what_cannot_be_afforded_is_said_before_the_read():
    forecast = plan("Y ~ concurrent(X) + z", n=500, epsilon=1.0, bounds=BOUNDS)
    assert forecast.left_out == () and 0.5 < forecast.share <= 1
    assert "concurrent(X)" in str(forecast)
    design = design_of(terms.concurrent("X"), terms.by("z", terms.ff("V", limits="s<t")))
    weights = np.ones((4, 3))
    assert design.groups.left_out(weights) == ()
    weights[1 + design.groups.places(1, 3)] = 0
    assert design.groups.left_out(weights) == ("ff(V):z",)
    chosen = replace(rows_of(design).plan, weights=weights)
    with pytest.raises(PrivacyError, match=r"got ff\(V\):z\. .*Nothing was read"):
        refuse_unaffordable(design, chosen)


def test_limits_may_be_a_function():
    def lagged(s, t):
        return (s <= t) & (s >= t - 1.0)

    found = fitted([terms.ff("V", limits=lagged)], n=1000, used=("history",))
    surface = found.coef("ff(V)", s=S, t=S)
    acts = lagged(surface["s"].to_numpy(), surface["t"].to_numpy())
    assert surface["value"].notna().to_numpy().tolist() == acts.tolist()
    with pytest.raises(InputError, match="function"):
        found.save("/nowhere/model")
