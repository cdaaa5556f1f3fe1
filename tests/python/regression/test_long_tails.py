"""Errors with long tails, family scaled_t; that fits are those of mgcv's scat(), r_bridge asks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.solve.form.families_with_theta import ScaledT, ThetaSlopes
from fdadp.solve.smoothing.normal_equations import IndefiniteEquations

FORMULA = "y ~ s(z, bs='ps') + x"


def trial(n=200, nu=4.0, seed=1):
    rng = np.random.default_rng(seed)
    z, x = rng.uniform(-2, 2, n), rng.normal(size=n)
    truth = np.sin(2 * z) + 0.4 * x
    errors = rng.normal(size=n) if np.isinf(nu) else rng.standard_t(nu, n)
    return {"z": z, "x": x, "truth": truth, "g": np.arange(n) % 30, "y": truth + 0.5 * errors}


def fitted(data, family="scaled_t", formula=FORMULA, **settings):
    return ScalarRegression(formula, family=family, **settings).fit(data)


def rms(model, data):
    return float(np.sqrt(np.mean((model.predict(data) - data["truth"]) ** 2)))


@pytest.mark.parametrize(("nu", "sigma"), [(3.001, 0.4), (4.0, 1.0), (60.0, 2.0), (300.0, 0.01), (1e7, 1.0)])
def test_derivatives_and_the_law(nu, sigma):
    """In η, ``log(ν - 3)`` and log σ, by differences; the log-likelihood is SciPy's."""
    y, eta, h = sigma * np.array([-30.0, -2.0, -0.1, 0.0, 1.0, 3.0, 50.0]), sigma * np.full(7, 0.3), 1e-5
    family, ones = ScaledT(nu, sigma), np.ones(7)
    assert_allclose(family.log_likelihood(y, eta, ones, 1.0), student(nu, eta, sigma).logpdf(y).sum(), rtol=1e-7)
    at, up, down = (family.working(y, eta + step * sigma) for step in (0.0, h, -h))
    rise = family.half_deviance(y, eta + h * sigma) - family.half_deviance(y, eta - h * sigma)
    assert_allclose(at.residual, -rise / (2 * h * sigma), rtol=1e-6, atol=1e-6 / sigma)
    assert_allclose(at.weight, -(up.residual - down.residual) / (2 * h * sigma), rtol=1e-6, atol=1e-6 / sigma**2)
    assert_allclose(at.slope, (up.weight - down.weight) / (2 * h * sigma), rtol=1e-6, atol=1e-6 / sigma**3)
    assert (at.weight <= at.bound).all()
    point = np.log([nu - 3, sigma])
    slopes = family.slopes(y, eta)
    for axis, own in enumerate(zip(*slopes, strict=True)):
        found = ThetaSlopes(*own)
        more, less = (family.at(point + sign * h * np.eye(2)[axis]) for sign in (1, -1))
        loss = [f.half_deviance(y, eta) - np.array([f.saturated(y[:1], ones[:1], 1.0)[0]] * 7) for f in (more, less)]
        assert_allclose(found.loss, (loss[0] - loss[1]) / (2 * h), rtol=1e-5, atol=1e-6)
        moved = [f.working(y, eta) for f in (more, less)]
        difference = (moved[0].residual - moved[1].residual) / (2 * h)
        assert_allclose(found.residual, difference, rtol=1e-5, atol=1e-6 / sigma)
        assert_allclose(found.weight, (moved[0].weight - moved[1].weight) / (2 * h), rtol=1e-5, atol=1e-6 / sigma**2)


def test_expected_weights_are_means_of_observed_ones():
    from scipy.integrate import quad

    family = ScaledT(4.0, 0.7)
    weight = quad(lambda y: student(4.0, 0, 0.7).pdf(y) * family.working(np.array([y]), np.zeros(1)).weight[0], -80, 80)
    assert_allclose(weight[0], family.working(np.zeros(1), np.zeros(1)).fisher[0], rtol=1e-6)
    assert_allclose(family.variance(np.zeros(1)), student(4.0, 0, 0.7).var())


def test_parameters_are_where_reml_is_lowest():
    """No neighbour of ν and σ has a lower criterion; the fit is that with them given."""
    data = trial()
    model = fitted(data)
    nu, sigma = model.fitted_.family.known
    given = fitted(data, f"scaled_t({nu!r}, {sigma!r})")
    assert_allclose(model.criterion_, given.criterion_, rtol=1e-10)
    assert_allclose(model.fitted_values_, given.fitted_values_, atol=1e-6)
    assert_allclose(model.predict_se(data), given.predict_se(data), rtol=1e-5)
    for more, wider in ((1.02, 1.0), (0.98, 1.0), (1.0, 1.01), (1.0, 0.99), (1.02, 1.01), (0.98, 0.99)):
        near = fitted(data, ScaledT(3 + (nu - 3) * more, sigma * wider))
        assert near.criterion_ > model.criterion_
    text = " ".join(str(model.summary()).split())
    assert f"REML chose nu = {nu:.6g} and sigma = {sigma:.6g}" in text
    assert "scaled_t(" in model.summary()._repr_html_()
    assert "REML chose" not in str(given.summary())


@pytest.mark.statistics
def test_it_is_nearer_to_the_truth_than_least_squares():
    """Errors of t with 3 degrees of freedom, 20 samples; 93 to 97 % of the truth in 95 % intervals."""
    ratios, inside = [], []
    for seed in range(20):
        data = trial(nu=3.0, seed=seed)
        model = fitted(data)
        ratios.append(rms(model, data) / rms(fitted(data, "gaussian"), data))
        inside.append(np.mean(np.abs(model.fitted_values_ - data["truth"]) < 1.96 * model.predict_se(data)))
    assert np.mean(ratios) < 0.9
    assert 0.9 < np.mean(inside) < 0.99


@pytest.mark.parametrize("size", [20.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("family", ["scaled_t", "scaled_t(4, 0.5)"])
def test_a_few_wild_responses_hardly_pull(size, family):
    data = trial()
    without = rms(fitted(data, family), data)
    data["y"][:5] += size
    assert rms(fitted(data, family), data) < 1.1 * without


def test_a_level_whose_responses_are_all_wild():
    """Weights of its column are negative there, and Newton's matrix alone would have no factor."""
    data = trial()
    data["y"][data["g"] == 3] += np.array([60.0, -60.0, 80.0, -80.0, 100.0, -90.0, 70.0])
    model = fitted(data, formula="y ~ s(z, bs='ps') + x + re(g)")
    assert rms(model, data) < 0.15
    assert np.isfinite(model.predict_se(data)).all()


def test_units_and_levels_do_not_matter():
    data = trial()
    model = fitted(data)
    for scale, level in ((1e6, 0.0), (1e-6, 0.0), (1.0, 1e6)):
        other = fitted({**data, "y": scale * data["y"] + level})
        assert_allclose((other.fitted_values_ - level) / scale, model.fitted_values_, atol=1e-5)
        assert_allclose(other.fitted_.family.nu, model.fitted_.family.nu, rtol=1e-4)
        assert_allclose(other.fitted_.family.sigma / scale, model.fitted_.family.sigma, rtol=1e-5)
        assert_allclose(other.edf_, model.edf_, rtol=1e-4)


def test_normal_errors_are_least_squares():
    data = trial(n=300, nu=np.inf, seed=6)
    model, least = fitted(data), fitted(data, "gaussian")
    assert model.fitted_.family.nu > 1e5
    assert_allclose(model.fitted_values_, least.fitted_values_, atol=0.01)
    assert_allclose(model.fitted_.family.sigma**2, least.sigma2_, rtol=0.05)
    assert "no longer tails than normal ones" in " ".join(str(model.summary()).split())


@pytest.mark.statistics
def test_intervals_hold_new_responses():
    held = {"scaled_t": [], "gaussian": []}
    for seed in range(20):
        data, new = trial(nu=3.0, seed=seed), trial(n=400, nu=3.0, seed=100 + seed)
        for family, shares in held.items():
            low, high = fitted(data, family).predict_interval(new, level=0.9)
            shares.append(np.mean((new["y"] >= low) & (new["y"] <= high)))
    assert 0.88 < np.mean(held["scaled_t"]) < 0.92
    assert np.mean(held["gaussian"]) > np.mean(held["scaled_t"]) + 0.01  # its intervals are too wide


@pytest.mark.parametrize("family", ["scaled_t", "negative_binomial"])
@pytest.mark.parametrize("nu", [4.0, np.inf])
def test_without_smooth_terms(family, nu):
    """θ within its search and, where errors are normal and counts are Poisson's, at its end."""
    data = trial(nu=nu)
    if family == "negative_binomial":
        rng = np.random.default_rng(0)
        data["y"] = rng.poisson(5, 200) if np.isinf(nu) else rng.poisson(5 * rng.gamma(2.0, 0.5, 200))
        data["y"] = data["y"].astype(float)
    model = fitted(data, family, "y ~ x")
    assert_allclose(model.aic_, -2 * model.loglik_ + 2 * (2 + model.fitted_.family.n_estimated))


def test_weights_are_repetitions_and_files_keep_all(tmp_path):
    data = trial(n=120)
    twice = {name: np.concatenate((column, column[:30])) for name, column in data.items()}
    again = fitted(twice, smoothing=[3.0])
    weighted = ScalarRegression(FORMULA, family="scaled_t", smoothing=[3.0])
    weighted.fit(data, weights=np.where(np.arange(120) < 30, 2.0, 1.0))
    assert_allclose(weighted.fitted_.family.known, again.fitted_.family.known, rtol=1e-6)
    assert_allclose(weighted.deviance_, again.deviance_, rtol=1e-6)
    model = fitted(data)
    loaded = ScalarRegression.load(model.save(tmp_path / "model"))
    assert loaded.fitted_.family == model.fitted_.family
    assert_allclose(loaded.predict_interval(data), model.predict_interval(data))
    assert_allclose(loaded.vcov("unconditional"), model.vcov("unconditional"))
    assert_allclose(loaded.aic_, model.aic_)
    assert str(loaded.summary()) == str(model.summary())
    assert 0 < model.explained_deviance_ < 1
    assert_allclose(np.sum(model.residuals("deviance") ** 2), model.deviance_)


def test_the_null_deviance_is_that_of_the_likeliest_mean():
    data = trial()
    data["y"][:20] += 100
    model = fitted(data, "scaled_t(4, 0.5)")
    family, means = model.fitted_.family, np.linspace(-1, 1, 2001)
    least = min(2 * family.half_deviance(data["y"], np.full(200, mean)).sum() for mean in means)
    assert_allclose(model.null_deviance_, least, rtol=1e-5)


def test_curves_in_memory_and_in_chunks():
    rng = np.random.default_rng(0)
    s, t = np.linspace(0, 1, 15), np.linspace(0, 1, 12)
    x = rng.normal(size=(60, 3)) @ np.array([np.ones(15), np.sin(3 * s), np.cos(3 * s)])
    truth = np.outer(x.mean(axis=1), np.sin(3 * t))
    data = {"X": x, "Y": truth + 0.3 * rng.standard_t(3, truth.shape)}
    data["Y"][3, :4], data["Y"][5, 5] = np.nan, 1e4
    model = FunctionalRegression([terms.ff("X")], family="scaled_t").fit(data, grids={"X": s, "Y": t})
    least = FunctionalRegression([terms.ff("X")]).fit(data, grids={"X": s, "Y": t})
    away, worse = (np.mean((m.fitted_values_ - truth) ** 2) for m in (model, least))
    assert away < 0.2 * worse
    parts = [{name: data[name][rows] for name in "XY"} for rows in (slice(0, 25), slice(25, 60))]
    chunked = FunctionalRegression([terms.ff("X")], family="scaled_t")
    chunked.fit_chunks(parts, grids={"X": s, "Y": t})
    assert_allclose(chunked.fitted_.family.known, model.fitted_.family.known, rtol=1e-4)
    assert_allclose([chunked.criterion_, chunked.null_deviance_], [model.criterion_, model.null_deviance_], rtol=1e-5)
    assert_allclose(chunked.predict({"X": x[:3]}), model.predict({"X": x[:3]}), atol=1e-4)


def test_indefinite_equations():
    """A with negative directions of G: its inverse and determinant; and an error where A has negative ones itself."""
    rng = np.random.default_rng(0)
    root, axis = rng.normal(size=(20, 6)), rng.normal(size=6)
    gram, penalty, cross = root.T @ root - 2 * np.outer(axis, axis), np.full(6, 10.0), rng.normal(size=(6, 1))
    gram[0, 0] = -1.0
    whole = gram + np.diag(penalty)
    assert np.linalg.eigvalsh(gram)[0] < -0.5 < 0 < np.linalg.eigvalsh(whole)[0]
    equations = IndefiniteEquations(gram, cross)
    firm = equations.roots(penalty[None], np.zeros(1, dtype=int))
    weak = equations._from_roots(penalty)
    for found, half, log_det in ((firm[0][0], firm[1][0], firm[2][0]), (weak[0], weak[1][:, 0], weak[2])):
        assert_allclose(found.T @ found, np.linalg.inv(whole), atol=1e-10)
        assert_allclose(found.T @ half, np.linalg.solve(whole, cross)[:, 0], atol=1e-10)
        assert_allclose(log_det, np.linalg.slogdet(whole)[1])
    for little in (1e-3, 1.5):
        with pytest.raises(np.linalg.LinAlgError):
            equations.roots(np.full((1, 6), little), np.zeros(1, dtype=int))


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("scaled_t(4)", {}, r"nu, sigma of family scaled_t must be numbers, got 'scaled_t\(4\)'"),
        ("scaled_t(4, few)", {}, "nu, sigma of family scaled_t must be numbers"),
        ("scaled_t(2, 1)", {}, "nu of scaled t must be a finite number above 2, got 2.0"),
        ("scaled_t(5, -1)", {}, "sigma of scaled t must be a finite number above 0, got -1.0"),
        ("scaled_t", {"y": np.zeros(50)}, "must have different values for family='scaled_t', got only 0"),
        ("scaled_t", {"y": np.r_[np.zeros(45), 1:6]}, "must not be fitted without error .* sigma that goes to 0"),
        ("scaled_t", {"y": np.r_[np.inf, np.zeros(49)]}, "finite"),
    ],
)
def test_what_cannot_be(family, change, message):
    with pytest.raises(InputError, match=message):
        fitted({**trial(n=50), **change}, family)


def test_one_parameter_needs_the_other():
    with pytest.raises(InputError, match="nu and sigma must both be given or both None, got 4 and None"):
        ScaledT(nu=4)
    with pytest.raises(InputError, match="nu and sigma must be given, or chosen by a fit"):
        ScaledT().variance(np.zeros(1))
