"""Terms whose covariates vary with t beside curves of persons: dense laws, orders of rows, files, coverage."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from repeated_tools import RowsWithLoads, check_against_dense_law

from fdadp import FunctionalRegression
from fdadp.errors import InputError
from fdadp.repeated.fixed_effects import weighed
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.reml_search import LevelCovariances
from fdadp.repeated.two_level_model import deviance, deviance_and_gradient, gls

T, K = RowsWithLoads.T, RowsWithLoads.K


@pytest.mark.each_once(("seed", "restricted"))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize(("seed", "rank", "P"), [(0, 1, 3), (1, 3, 4), (2, 1, 6), (3, 3, 5)])
def test_value_gradients_and_effects_are_those_of_the_dense_law(seed, rank, P, restricted, intercept):
    rows = RowsWithLoads(seed, rank, P, intercept=intercept)
    s = rows.sums()
    noise = s.noise_variance()
    value, d_g, d_r = deviance_and_gradient(s, rows.G, rows.R, restricted=restricted)
    want, want_g, want_r, beta, spread = rows.dense(rows.G, rows.R, noise, restricted)
    np.testing.assert_allclose(d_g, want_g, atol=1e-11 * np.abs(want_g).max())
    np.testing.assert_allclose(d_r, want_r, atol=1e-11 * np.abs(want_r).max())
    theta, covariance = gls(s, rows.G, rows.R)
    np.testing.assert_allclose(theta[-P:], beta, atol=1e-12 * np.abs(beta).max())
    np.testing.assert_allclose(covariance[-P:, -P:], spread, atol=1e-12 * np.abs(spread).max())
    # Values differ by what is outside of Φ alone, whatever the covariances inside.
    other = rows.G + 0.1 * np.eye(K), 1.3 * rows.R
    moved = deviance(s, *other, restricted=restricted) - value
    assert moved == pytest.approx(rows.dense(*other, noise, restricted)[0] - want, rel=1e-11)


def test_noise_is_what_all_columns_leave_outside():
    rows = RowsWithLoads(5, 3, 4)
    F, y = rows.design(), rows.Y.ravel()
    outside = np.kron(np.eye(len(rows.who)), np.eye(T) - rows.phi @ rows.phi.T)
    left = outside @ y - outside @ F @ np.linalg.lstsq(outside @ F, outside @ y, rcond=1e-10)[0]
    free = (len(rows.who) - 2) * (T - K) - 4
    assert rows.sums().noise_variance() == pytest.approx(left @ left / free, rel=1e-11)


def test_order_of_rows_and_of_parts_changes_nothing():
    rows = RowsWithLoads(1, 3, 4)
    one, rng = rows.sums(), np.random.default_rng(0)
    for parts in (1, 5):
        other = rows.sums(rng.permutation(len(rows.who)), parts=parts)
        found, wanted = (deviance_and_gradient(s, rows.G, rows.R) for s in (other, one))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(np.asarray(b)).max())


def test_fewer_functions_have_the_sums_of_a_pass_over_them():
    rows = RowsWithLoads(2, 3, 4)
    phi = np.linalg.qr(np.random.default_rng(1).normal(size=(T, 5)))[0]
    of_five, of_three = rows.sums(phi=phi).first(3), rows.sums(phi=phi[:, :3])
    assert of_five.noise_variance() == pytest.approx(of_three.noise_variance(), rel=1e-11)
    assert of_five.spare_rows == of_three.spare_rows
    found, wanted = (deviance_and_gradient(s, rows.G, rows.R) for s in (of_five, of_three))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_a_covariate_that_is_the_same_at_all_t_is_a_feature():
    rng, rows = np.random.default_rng(4), RowsWithLoads(4, 3, 3)
    x = rng.normal(size=len(rows.who))
    plain = PersonPass(rows.phi, 2).add(np.column_stack((rows.X[:, 1], x)), rows.Y, rows.who).sums()
    rows.D, rows.P = x[:, None, None] * rows.phi, K
    s = rows.sums()
    assert s.spare_rows == plain.spare_rows and s.rank_within == plain.rank_within
    np.testing.assert_allclose(s.rows_scatter, plain.rows_scatter, rtol=1e-10, atol=1e-10)
    for restricted in (True, False):
        found = deviance_and_gradient(s, rows.G, rows.R, restricted=restricted)
        for a, b in zip(found, deviance_and_gradient(plain, rows.G, rows.R, restricted=restricted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    B, V = gls(plain, rows.G, rows.R)
    theta, spread = gls(s, rows.G, rows.R)
    np.testing.assert_allclose(theta, B.ravel(), rtol=1e-9)
    np.testing.assert_allclose(spread, V, atol=1e-11 * np.abs(V).max())
    levels = LevelCovariances(rows.G, rows.R, 1.0, 0.0)
    a, b = weighed(s, levels), weighed(plain, levels)
    np.testing.assert_allclose(a.gram, b.gram.reshape(a.gram.shape), atol=1e-10 * np.abs(a.gram).max())
    assert a.log_det == pytest.approx(b.log_det, rel=1e-12) and a.total == pytest.approx(b.total, rel=1e-12)


def test_columns_that_say_nothing_new_are_left_out():
    rows = RowsWithLoads(3, 1, 4)
    rows.D[:, :, 3] = rows.D[:, :, 0] - 2 * rows.D[:, :, 1]
    twice = deviance_and_gradient(rows.sums(), rows.G, rows.R)
    rows.D, rows.P = rows.D[:, :, :3], 3
    for a, b in zip(twice[1:], deviance_and_gradient(rows.sums(), rows.G, rows.R)[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)


# ---- formulas

FORMULA = "Y ~ x + concurrent(Z) + re(id, covariance='free', k=5)"
EFFECT = "concurrent(Z)"


def drawn(seed: int, persons: int, rows: tuple[int, int] = (2, 6), points: int = 40):
    """A table of persons whose covariate curve varies between and within them; its effect; curves of persons."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, points)
    who = np.repeat(np.arange(persons), rng.integers(rows[0], rows[1] + 1, persons))
    own = (rng.normal(size=(persons, 2)) * [1, 0.5]) @ np.stack([np.ones(points), np.sin(2 * np.pi * t)])
    waves = np.stack([np.ones(points), np.cos(np.pi * t), np.sin(3 * np.pi * t)])
    Z = 3 + rng.normal(size=(persons, 1))[who] + rng.normal(size=(who.size, 3)) @ waves
    smooth = (rng.normal(size=(who.size, 2)) * [0.8, 0.4]) @ np.stack([np.cos(np.pi * t), np.sin(2 * np.pi * t)])
    x, effect = rng.normal(size=persons)[who], 0.5 * np.sin(np.pi * t)
    noise = 0.5 * rng.normal(size=Z.shape)
    Y = 2 + 0.4 * x[:, None] * t + Z * effect + own[who] + smooth + noise
    return {"Y": Y, "Z": Z, "x": x, "id": who}, t, effect, own


@pytest.mark.parametrize(
    "formula",
    [
        FORMULA,
        "Y ~ concurrent(Z, k=5) + concurrent(W, k=4) + x + re(id, covariance='free', k=4)",
        "Y ~ x + ff(Z, k=(4, 4), limits='s<=t') + re(id, covariance='free', k=4)",
        "Y ~ 0 + concurrent(Z, k=6) + re(id, covariance='free', k=4)",
        "Y ~ x + concurrent(Z, k=5) + re(id, covariance='spline', k=5)",
    ],
)
def test_a_formula_has_the_numbers_of_the_dense_law(formula):
    data, *_ = drawn(1, 9, points=16)
    data["W"] = np.random.default_rng(0).normal(size=data["Z"].shape).cumsum(axis=1)
    check_against_dense_law(FunctionalRegression(formula).fit(data), data)


def test_rows_and_chunks_may_come_in_any_order():
    data, *_ = drawn(2, 20)
    model = FunctionalRegression(FORMULA, se="cluster").fit(data, groups="id")
    order = np.random.default_rng(0).permutation(len(data["id"]))
    chunks = [{name: column[rows] for name, column in data.items()} for rows in np.array_split(order, 6)]
    other = FunctionalRegression(FORMULA, se="cluster").fit_chunks(chunks, groups="id")
    np.testing.assert_allclose(other.persons_.levels.G, model.persons_.levels.G, atol=1e-5)
    np.testing.assert_allclose(other.predict(data), model.predict(data), atol=1e-5)
    wanted = np.asarray(model.vcov())
    np.testing.assert_allclose(np.asarray(other.vcov()), wanted, atol=1e-5 * np.abs(wanted).max())


def test_known_persons_have_their_curves_and_new_ones_the_populations(tmp_path):
    data, _, _, own = drawn(3, 30)
    model = FunctionalRegression(FORMULA).fit(data)
    new = data | {"id": np.full(len(data["id"]), -1)}
    known, mean = model.predict(data), model.predict(new)
    curves = model.persons_.curves(model.fitted_.records(data, None), model.persons_.grid)
    np.testing.assert_allclose(known - mean, curves, atol=1e-10)
    assert np.corrcoef(curves.ravel(), own[data["id"]].ravel())[0, 1] > 0.9
    narrow, wide = (np.subtract(*model.predict_interval(table)[::-1]).mean() for table in (data, new))
    assert narrow < 0.9 * wide
    model.save(tmp_path / "whole")
    again = FunctionalRegression.load(tmp_path / "whole")
    np.testing.assert_array_equal(again.predict(data), known)
    np.testing.assert_allclose(again.predict_se(data), model.predict_se(data), rtol=1e-12)
    for a, b in zip(again.predict_interval(new), model.predict_interval(new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    model.save(tmp_path / "nobody", people=False)
    np.testing.assert_allclose(FunctionalRegression.load(tmp_path / "nobody").predict(data), mean, atol=1e-10)


def test_how_many_functions_is_found_by_bic_and_no_test_of_persons_is_made_up():
    data, *_ = drawn(4, 40)
    model = FunctionalRegression("Y ~ x + concurrent(Z) + re(id, covariance='free')").fit(data)
    assert 4 <= model.persons_.phi.shape[1] <= 8 and model.persons_.whiteness < 1.3
    assert model.persons_.levels.noise_variance == pytest.approx(0.25, rel=0.05)
    assert np.isnan(model.persons_.tested("re(id)").statistic)
    assert "count that smoothing is estimated; covariances are estimated, too." in str(model.summary())


def test_a_constant_covariate_is_near_the_separable_term():
    data, t, *_ = drawn(5, 60)
    x = np.random.default_rng(1).normal(size=len(data["id"]))
    data = data | {"w": x, "Z": np.tile(x[:, None], (1, t.size))}
    curves, numbers = (
        FunctionalRegression(f"Y ~ x + {term} + re(id, covariance='free', k=5)").fit(data)
        for term in ("concurrent(Z)", "w")
    )
    a, b = curves.coef(EFFECT, se=True, t=t), numbers.coef("w", se=True, t=t)
    assert np.abs(a["value"] - b["value"]).max() < 0.2 * b["se"].mean()
    np.testing.assert_allclose(a["se"], b["se"], rtol=0.1)
    np.testing.assert_allclose(curves.persons_.levels.G, numbers.persons_.levels.G, atol=0.02 * 40)


def test_too_many_loads_are_refused_with_what_to_do():
    data, *_ = drawn(6, 20, points=60)
    long = "Y ~ ff(Z, k=(10, 10), limits='s<=t') + re(id, covariance='free', k=25)"
    said = r"k=25 functions of persons times \d+ coefficients of ff\(Z\) must be at most 2,000, got .*a smaller k"
    with pytest.raises(InputError, match=said):
        FunctionalRegression(long).fit(data)


def test_time_grows_no_faster_than_persons():
    spent = []
    for persons in (150, 1200):
        data, *_ = drawn(7, persons)
        start = process_time()
        FunctionalRegression(FORMULA).fit(data)
        spent.append(process_time() - start)
    assert spent[1] < 3 * 8 * spent[0]
