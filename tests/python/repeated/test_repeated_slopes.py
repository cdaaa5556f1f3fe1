"""Random slopes of persons: the dense normal law, gradients, the model without slopes; and in formulas."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from repeated_tools import RowsWithLoads, check_against_dense_law, draw, features_of

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError
from fdadp.regression.mixed_models.estimated_covariances import blocks_of_designs
from fdadp.regression.mixed_models.person_covariances import law_of_levels
from fdadp.regression.mixed_models.reml_of_blocks import block_deviance_and_gradient
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.random_slopes import (
    slope_covariances,
    slope_deviance_and_gradient,
    slope_effects,
    slope_sums,
)
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.two_level_model import deviance, deviance_and_gradient


def persons(seed: int, rank: int = 6, intercept: bool = True):
    """A law of q = 2, k = 3 with two features, and its covariance written out."""
    rng = np.random.default_rng(seed)
    law, C = draw(rng, rank=3)
    a = rng.normal(size=(6, rank))
    G = a @ a.T
    one = PersonPass(np.eye(3), 2 if intercept else 3, intercept=intercept, cross=True)
    sums = one.add(law.X[:, 1:] if intercept else law.X, C, law.who).sums()
    Z = law.X[:, [0, 2]]
    N = len(law.who)
    rows = np.kron(Z, np.eye(3)).reshape(N, 3, 6)
    V = np.einsum("nis,st,mjt->nimj", rows, G, rows) * np.equal.outer(law.who, law.who)[:, None, :, None]
    V = V.reshape(3 * N, 3 * N) + np.kron(np.eye(N), law.R)
    return law, C, G, slope_sums(sums, features_of(sums, (0, 2))), V, rows


@pytest.mark.parametrize("rank", [2, 6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
def test_value_and_gradients_are_those_of_the_dense_law(rank, intercept, restricted):
    law, C, G, s, V, rows = persons(rank, rank, intercept)
    value, d_g, d_r = slope_deviance_and_gradient(s, G, law.R, restricted=restricted)
    F = np.kron(law.X - s.sums.shift_x, np.eye(3))
    y, W = (C - s.sums.shift_y).ravel(), np.linalg.inv(V)
    gram = F.T @ W @ F
    beta = np.linalg.solve(gram, F.T @ W @ y)
    r = y - F @ beta
    want = np.linalg.slogdet(V)[1] + r @ W @ r + (np.linalg.slogdet(gram)[1] if restricted else 0)
    assert value == pytest.approx(want, rel=1e-11)
    left = W - np.outer(W @ r, W @ r)
    if restricted:
        left -= W @ F @ np.linalg.solve(gram, F.T @ W)
    N = len(law.who)
    blocks = left.reshape(N, 3, N, 3)
    want_r = np.einsum("ninj->ij", blocks)
    same = np.equal.outer(law.who, law.who)
    want_g = np.einsum("nis,nm,nimj,mjt->st", rows, same, blocks, rows, optimize=True)
    np.testing.assert_allclose(d_g, want_g, atol=1e-10 * np.abs(want_g).max())
    np.testing.assert_allclose(d_r, want_r, atol=1e-10 * np.abs(want_r).max())
    found = slope_effects(s, LevelCovariances(G, law.R, 0.0, 0.0))
    np.testing.assert_allclose(found.fixed.ravel(), beta, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-11)
    for i, person in enumerate(s.sums.ids):
        own = law.who == person
        stacked = rows[own].reshape(-1, 6)
        at = np.repeat(own, 3)
        b = G @ stacked.T @ np.linalg.solve(V[np.ix_(at, at)], r[at])
        np.testing.assert_allclose(found.effects[i].ravel(), b, atol=1e-9 * max(np.abs(b).max(), 1))


def test_only_the_constant_is_the_model_of_two_levels():
    law, C = draw(np.random.default_rng(8))
    sums = PersonPass(np.eye(3), 2, cross=True).add(law.X[:, 1:], C, law.who).sums()
    s = slope_sums(sums, features_of(sums, (0,)))
    assert slope_deviance_and_gradient(s, law.G, law.R)[0] == pytest.approx(deviance(sums, law.G, law.R), rel=1e-12)
    assert len(s.designs) == len(sums.sizes)


def test_reml_finds_slopes_and_repeated_designs_are_counted_once():
    rng, people, k = np.random.default_rng(1), 150, 2
    who = np.repeat(np.arange(people), 6)
    week = np.tile(np.arange(6) / 5, people)
    L = np.linalg.cholesky(np.array([[1, 0, 0.4, 0], [0, 0.5, 0, 0.2], [0.4, 0, 0.8, 0], [0, 0.2, 0, 0.4]]))
    b = rng.normal(size=(people, 4)) @ L.T
    C = np.outer(week, [1, -1]) + b[who, :2] + week[:, None] * b[who, 2:] + 0.5 * rng.normal(size=(who.size, k))
    sums = PersonPass(np.eye(k), 1, cross=True).add(week[:, None], C, who).sums()
    s = slope_sums(sums, features_of(sums, (0, 1)))
    assert len(s.designs) == 1
    found = slope_covariances(s)
    _, d_g, d_r = slope_deviance_and_gradient(s, found.G, found.R)
    assert np.abs(d_g @ found.G).max() < 1e-2 and np.abs(d_r @ found.R).max() < 1e-2
    np.testing.assert_allclose(found.G, L @ L.T, atol=0.35)
    np.testing.assert_allclose(found.R, 0.25 * np.eye(k), atol=0.05)
    assert found.deviance < level_covariances(sums).deviance - 50
    effects = slope_effects(s, found).effects[sums.ids.get_indexer(np.arange(people))]
    assert np.corrcoef(effects[:, 1, 0], b[:, 2])[0, 1] > 0.7


def test_what_slopes_need_is_said():
    law, C = draw(np.random.default_rng(2))
    with pytest.raises(InputError, match="cross=True"):
        slope_sums(PersonPass(np.eye(3), 2).add(law.X[:, 1:], C, law.who).sums(), np.eye(3)[:, :2])
    rng, who = np.random.default_rng(0), np.repeat(np.arange(9), 2)
    two = PersonPass(np.eye(3), 1, cross=True).add(rng.normal(size=(18, 1)), rng.normal(size=(18, 3)), who).sums()
    with pytest.raises(InputError, match=r"k=3 needs at least 3 rows beyond those that 2 random functions .* got 0"):
        slope_sums(two, features_of(two, (0, 1)))


def trials(seed: int = 0, persons: int = 10, T: int = 20, rows: int = 5):
    """Persons whose curves change with the week, by a constant and a wave; one covariate of the person."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, T)
    who = np.repeat(np.arange(persons), rng.integers(rows - 1, rows + 2, persons))
    week = rng.uniform(0, 4, who.size)
    shapes = np.stack([np.ones(T), np.sin(2 * np.pi * t)])
    b = rng.normal(size=(persons, 2)) @ shapes
    slope = (0.3 * rng.normal(size=(persons, 2)) + 0.2) @ shapes
    x = rng.normal(size=persons)[who]
    Y = np.cos(t) + np.outer(x, t) + b[who] + week[:, None] * slope[who] + 0.3 * rng.normal(size=(who.size, T))
    Y += 0.4 * rng.normal(size=(who.size, 1)) * np.cos(np.pi * t)
    names = np.array([f"p{i:03d}" for i in range(persons)])
    return {"Y": Y, "x": x, "week": week, "id": names[who]}


SLOPES = "Y ~ x + week + re(id, slopes=week, k=5)"


@pytest.fixture(scope="module")
def sloped():
    data = trials()
    return FunctionalRegression(SLOPES).fit(data), data


@pytest.mark.parametrize("intercept", [True, False])
def test_terms_and_slopes_of_a_formula_are_those_of_the_dense_law(sloped, intercept):
    model, data = sloped
    if not intercept:
        model = FunctionalRegression(SLOPES.replace("=week", "=week, intercept=False")).fit(data)
    _, V, parts, covariance = check_against_dense_law(model, data)
    own = model.persons_
    assert own.names == (("re(id)", "re(id):week") if intercept else ("re(id):week",))
    # a slope by itself, with its error: another row of the person, at a week less and more
    rows = np.flatnonzero(data["id"] == "p003")[[0]]
    found = model.coef("re(id):week", se=True, kind="iid", id=["p003"], t=own.grid)
    week, part = data["week"][rows[0]], parts[-1].reshape(len(data["id"]), 20, -1)[rows[0]]
    design = model.fitted_.fit.form.rows(model.fitted_.records(data, None)).reshape(len(V), -1)
    shrunk = part @ np.linalg.inv(V) / week
    np.testing.assert_allclose(found["value"], shrunk @ (data["Y"].ravel() - design @ model.fitted_.fit.coefficients))
    G = own.phi @ own.levels.G[-5:, -5:] @ own.phi.T
    on_beta = shrunk @ design
    variance = np.diag(on_beta @ covariance @ on_beta.T + G - shrunk @ part.T / week)
    np.testing.assert_allclose(found["se"] ** 2, variance, rtol=1e-7)


def test_slopes_of_rows_in_any_order_of_new_persons_and_from_files(sloped, tmp_path):
    model, data = sloped
    order = np.random.default_rng(1).permutation(len(data["id"]))
    again = FunctionalRegression(SLOPES).fit({name: column[order] for name, column in data.items()})
    np.testing.assert_allclose(again.fitted_values_, model.fitted_values_[order], atol=1e-4)
    new = data | {"id": np.full(len(data["id"]), "nobody")}
    shown = model.predict(data, type="terms")
    np.testing.assert_allclose(model.predict(new), sum(v for name, v in shown.items() if "re(" not in name), atol=1e-12)
    assert np.isfinite(model.predict_se(new)).all()
    later = new | {"week": data["week"] + 10}  # persons differ more, the later it is
    width = [np.subtract(*model.predict_interval(rows)[::-1]) for rows in (new, later)]
    assert width[1].mean() > 2 * width[0].mean()
    written = model.save(tmp_path / "slopes")
    kept = FunctionalRegression.load(written)
    np.testing.assert_array_equal(kept.predict(data), model.predict(data))
    np.testing.assert_array_equal(kept.predict_interval(later)[0], model.predict_interval(later)[0])
    said = str(kept.summary())
    assert "slopes of week have a standard deviation" in said and "of correlation" in said
    out = FunctionalRegression.load(model.save(tmp_path / "out", people=False))
    np.testing.assert_array_equal(out.predict(data), model.predict(new))


def test_slopes_as_terms_and_several_of_them():
    data = trials(1, persons=14, rows=6)
    data["dose"] = np.random.default_rng(0).normal(size=len(data["id"]))
    by_name = FunctionalRegression("Y ~ x + week + dose + re(id, slopes=(week, dose), k=4)").fit(data)
    own = [terms.linear(name) for name in ("x", "week", "dose")]
    by_terms = FunctionalRegression([*own, terms.re("id", slopes=("week", "dose"), k=4)]).fit(data)
    np.testing.assert_array_equal(by_name.fitted_values_, by_terms.fitted_values_)
    assert by_name.persons_.names == ("re(id)", "re(id):week", "re(id):dose")
    assert by_name.persons_.variances.loc["person", "share"] > 0.3
    # without effects of the dose, persons' slopes of it vary little
    q_of_dose = np.trace(by_name.persons_.levels.G[8:, 8:])
    assert q_of_dose < 0.3 * np.trace(by_name.persons_.levels.G[4:8, 4:8])


def test_slopes_are_those_of_a_smooth_term_that_spans_them():
    data = trials(2, persons=12)
    model = FunctionalRegression("Y ~ s(week, k=5) + re(id, slopes=week, k=4)").fit(data)
    check_against_dense_law(model, data)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("Y ~ x + re(id, slopes=week, k=5)", r"re\(id\): slopes need week among the terms"),
        ("Y ~ 0 + week + re(id, slopes=week, k=5)", "slopes need the constant among the terms"),
        ("Y ~ x + re(id, intercept=False)", "needs slopes with intercept=False"),
        ("Y ~ x + re(id, slopes=weak)", "weak"),
        ("Y ~ week + re(id, slopes=week, k=5) + re(site)", "only random effect"),
        ("Y ~ week + re(id, slopes=week, k=5) + re(site, covariance='free')", "persons within sites without slopes"),
        ("Y ~ week + re(id, slopes=id, k=5)", "must hold numbers"),
    ],
)
def test_slopes_that_are_refused(formula, said):
    data = trials(3)
    data["site"] = np.where(data["x"] > 0, "A", "B")
    with pytest.raises(InputError, match=said):
        FunctionalRegression(formula).fit(data)


@cache
def held_in_sample(seed: int, persons: int) -> list[float]:
    """Of one sample, which two tests count."""
    t = np.linspace(0, 1, 24)
    phi = smooth_functions(t, 4)[0]
    shapes = np.stack([np.ones(24), np.sqrt(2) * np.sin(np.pi * t), np.sqrt(2) * np.cos(2 * np.pi * t)])
    effects = np.stack([0.4 * t, 0.3 * np.cos(np.pi * t)]) @ phi @ phi.T
    rng = np.random.default_rng([persons, seed])
    who = np.repeat(np.arange(persons), rng.integers(4, 9, persons))
    x, week = rng.normal(size=persons)[who], rng.uniform(0, 2, who.size)
    b = rng.normal(size=(2, persons, 3)) * np.sqrt([[[1, 0.5, 0.25]], [[0.5, 0.25, 0.1]]]) @ shapes @ phi @ phi.T
    u = rng.normal(size=(who.size, 3)) * np.sqrt([0.8, 0.4, 0.2]) @ shapes @ phi @ phi.T
    Y = np.sin(np.pi * t) + np.column_stack((x, week)) @ effects + b[0, who] + week[:, None] * b[1, who] + u
    data = {"Y": Y + 0.4 * rng.normal(size=Y.shape), "x": x, "week": week, "id": who}
    model = FunctionalRegression("Y ~ x + week + re(id, slopes=week, k=4)").fit(data)
    shares = []
    for name, truth in zip(("x", "week", "re(id)", "re(id):week"), (*effects, *b), strict=True):
        own = model.coef(name, se=True, t=t)
        shares.append(float(((own["lower"] <= truth.ravel()) & (truth.ravel() <= own["upper"])).mean()))
    return shares


def held_beside_slopes(persons: int, runs: int) -> np.ndarray:
    """Shares of points at which nominal 95 % intervals hold an effect of the person, that of the week about which
    persons vary, curves of persons and their slopes; all lie on the functions that carry them."""
    return np.mean([held_in_sample(seed, persons) for seed in range(runs)], axis=0)


def test_intervals_of_few_persons_with_slopes_count_that_covariances_are_estimated():
    """Where covariances counted as known, 95 % held .86 of curves and .90 of x in 200 samples."""
    held = held_beside_slopes(12, 15)
    assert (held > 0.9).all() and (held[2:] > 0.95).all()


@pytest.mark.statistics
@pytest.mark.parametrize("persons", [12, 20])
def test_coverage_beside_slopes_with_few_persons(persons):
    """Of 100 samples, between which shares of curves differ by .05: .86, as where covariances count as known, is more
    than ten standard errors away."""
    held = held_beside_slopes(persons, 100)
    print(f"{persons} persons: x, week, curves, slopes of persons {np.round(held, 3)}")
    assert (held >= 0.93).all() and (held[:2] <= 0.995).all() and (held[2:] <= 0.98).all()


# ---- beside terms that vary with t


@pytest.mark.parametrize("rank", [2, 6])
def test_blocks_have_the_value_and_gradients_of_slopes(rank):
    law, C = draw(np.random.default_rng(rank), rank=3)
    a = np.random.default_rng(rank).normal(size=(6, rank))
    sums = PersonPass(np.eye(3), 2, cross=True).add(law.X[:, 1:], C, law.who).sums()
    s = slope_sums(sums, features_of(sums, (0, 2)))
    blocks = blocks_of_designs(sums, s.designs, s.design_of, s.vectors, responses=True)
    size = sums.p * sums.k + 1
    value, gradients = block_deviance_and_gradient(blocks, (a @ a.T, law.R), np.zeros((size, size)))
    wanted, *of_both = slope_deviance_and_gradient(s, a @ a.T, law.R)
    assert value == pytest.approx(wanted, rel=1e-10)
    for found, own in zip(gradients, of_both, strict=True):
        np.testing.assert_allclose(found, own, atol=1e-8 * np.abs(own).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_blocks_have_the_value_and_gradients_beside_loads(intercept):
    rows = RowsWithLoads(3, 2, 4, intercept=intercept)
    sums, noise = rows.sums(), 0.7
    law = law_of_levels(sums, LevelCovariances(rows.G, rows.R, noise, 0.0))
    blocks = blocks_of_designs(sums, law.designs, law.design_of, law.vectors, responses=True)
    size = sums.p * sums.k
    beyond, own = np.zeros((size + rows.P + 1,) * 2), sums.loads
    noise = sums.noise_variance()
    beyond[size:-1, size:-1], beyond[size:-1, -1], beyond[-1, size:-1] = own.gram, own.right, own.right
    value, gradients = block_deviance_and_gradient(blocks, (rows.G, rows.R), beyond / noise)
    wanted, *of_both = deviance_and_gradient(sums, rows.G, rows.R)
    explained = own.outside()[0] / noise  # squares of responses outside, which do not depend on covariances
    assert value == pytest.approx(wanted - explained, rel=1e-10)
    for found, expected in zip(gradients, of_both, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def with_slopes_beside_a_curve(seed: int, persons: int, points: int = 30):
    """A table whose persons differ in a curve and in a slope of `week`, beside a covariate that varies with t."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, points)
    who = np.repeat(np.arange(persons), rng.integers(3, 7, persons))
    shapes = np.stack([np.ones(points), np.sqrt(2) * np.sin(np.pi * t)])
    own, slopes = (rng.normal(size=(persons, 2)) * [size, 0.5 * size] @ shapes for size in (1.0, 0.7))
    week, waves = rng.uniform(0, 2, who.size), np.cos(np.pi * np.outer(np.arange(6), t))
    Z = rng.normal(size=(persons, 1))[who] + rng.normal(size=(who.size, 6)) @ waves / np.sqrt(2)
    Y = 0.5 * Z * np.sin(np.pi * t) + own[who] + week[:, None] * (slopes[who] + 0.4 * t)
    Y += (rng.normal(size=(who.size, 2)) * [0.6, 0.3]) @ np.cos(np.pi * np.outer([1, 3], t))
    return {"Y": Y + 0.4 * rng.normal(size=Y.shape), "Z": Z, "week": week, "id": who}, own, slopes, t


@pytest.mark.parametrize(
    "formula",
    [
        "Y ~ week + concurrent(Z, k=5) + re(id, slopes=week, k=4)",
        "Y ~ week + ff(Z, k=(4, 4), limits='s<=t') + re(id, slopes=week, intercept=False, k=4)",
    ],
)
def test_slopes_beside_terms_that_vary_with_t_are_the_dense_law(formula):
    data, *_ = with_slopes_beside_a_curve(0, 9, points=14)
    check_against_dense_law(FunctionalRegression(formula).fit(data), data)


def test_slopes_beside_terms_that_vary_with_t_in_chunks_and_files(tmp_path):
    data, own, slopes, t = with_slopes_beside_a_curve(1, 40)
    formula = "Y ~ week + concurrent(Z) + re(id, slopes=week, k=5)"
    model = FunctionalRegression(formula).fit(data)
    order = np.random.default_rng(0).permutation(len(data["id"]))
    chunks = [{name: column[rows] for name, column in data.items()} for rows in np.array_split(order, 4)]
    other = FunctionalRegression(formula).fit_chunks(chunks)
    np.testing.assert_allclose(other.predict(data), model.predict(data), atol=1e-4)
    for name, truth in (("re(id)", own), ("re(id):week", slopes)):
        found = model.coef(name, se=True, t=t)
        assert np.corrcoef(found["value"], truth.ravel())[0, 1] > 0.75
        assert ((found["lower"] <= truth.ravel()) & (truth.ravel() <= found["upper"])).mean() > 0.88
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(FunctionalRegression.load(tmp_path / "model").predict(data), model.predict(data))
