"""Families and Laplace's approximation, against finite differences, statsmodels and the Gaussian fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_weighted import T, form_of, records

from fdadp import terms
from fdadp.errors import IdentificationWarning, InputError
from fdadp.solve.fit.additive_fit import fit_gaussian
from fdadp.solve.fit.family_fit import ROUGH, first_problem, fit_family
from fdadp.solve.form.families_by_name import FAMILIES as BY_NAME
from fdadp.solve.form.families_by_name import family_of
from fdadp.solve.form.families_with_theta import NegativeBinomial, ScaledT
from fdadp.solve.form.long_form_design import LongForm
from fdadp.solve.form.weighted_least_squares import Observed, rows_on_grid, weighted_system

FAMILIES = {**BY_NAME, "negative_binomial": NegativeBinomial(1.5), "scaled_t": ScaledT(4.0, 0.7)}
NAMES = [name for name in FAMILIES if name != "ordered"]  # regression/test_ordered.py
IN_STATSMODELS = [name for name in NAMES if name != "scaled_t"]


def responses(family, eta, rng):
    mean = FAMILIES[family].mean(eta)
    draws = {
        "gaussian": lambda: mean + rng.normal(size=mean.shape),
        "binomial": lambda: (rng.uniform(size=mean.shape) < mean).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(3.0, mean / 3.0),
        "negative_binomial": lambda: rng.poisson(mean * rng.gamma(1.5, 1 / 1.5, mean.shape)).astype(float),
        "scaled_t": lambda: mean + 0.7 * rng.standard_t(4, mean.shape),
    }
    return draws[family]()


def problem_of(family, n=40, seed=0, t=T):
    data = records(n, seed)
    specs = [terms.ff("X"), terms.linear("x")] if t is not None else [terms.linear("x")]
    form = form_of(specs, data, t)
    rng = np.random.default_rng(seed)
    eta = 0.5 * data.numbers("x")[:, None] * (np.sin(3 * form.t) + 1) + 0.3
    shape = (n, len(form.t))
    weights = rng.integers(0, 4, size=shape).astype(float)
    offset = 0.2 * rng.normal(size=shape)
    y = responses(family, eta + offset, rng)
    half = n // 2
    parts = [slice(0, half), slice(half, n)]
    blocks = [
        Observed(rows_on_grid(form, form.features(data[part])), y[part], weights[part], offset[part]) for part in parts
    ]
    return form, blocks, data


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_deviance(name):
    family, eta, h = FAMILIES[name], np.linspace(-3, 3, 25), 1e-5
    y = np.random.default_rng(0).uniform(0.1, 0.9, size=eta.size)
    found = family.working(y, eta)
    up, down = family.working(y, eta + h), family.working(y, eta - h)
    slope = (family.half_deviance(y, eta + h) - family.half_deviance(y, eta - h)) / (2 * h)
    assert_allclose(found.residual, -slope, atol=1e-8)
    assert_allclose(found.weight, -(up.residual - down.residual) / (2 * h), atol=1e-7)
    assert_allclose(found.slope, (up.weight - down.weight) / (2 * h), atol=1e-7)
    assert_allclose(family.predictor(family.mean(eta)), eta, atol=1e-12)
    at_mean = family.working(family.mean(eta), eta)
    if name != "scaled_t":  # the expected weight is linear in y
        assert_allclose(at_mean.weight, found.fisher, atol=1e-12)
    assert_allclose(at_mean.residual, 0, atol=1e-12)


def test_the_deviance_of_the_binomial_keeps_its_digits():
    y, eta = np.array([0.0, 1.0, 0.0, 1.0, 0.25, 0.25, 1.0]), np.array([-40.0, 40.0, 40.0, -40.0, 3.0, -3.0, 0.0])
    mean = np.array([0.25, 0.75])
    share = mean @ np.log(mean)  # of y = 1/4
    rest = np.log1p(np.exp(-3.0))
    expected = [np.exp(-40.0), np.exp(-40.0), 40.0, 40.0, share + 2.25 + rest, share + 0.75 + rest, np.log(2)]
    assert_allclose(BY_NAME["binomial"].half_deviance(y, eta), expected, rtol=1e-14)


def test_a_pass_is_not_repeated_and_canonical_links_need_one_of_a_kind():
    for name, more in (("poisson", 0), ("gamma", 1)):
        form, blocks, _ = problem_of(name)
        problem, beta = first_problem(form, blocks, FAMILIES[name], None)
        first = problem.look(beta)
        before = problem.passes
        assert problem.look(beta.copy()) is first and problem.passes == before
        expected = problem.look(beta, "fisher")
        assert problem.passes - before == more
        assert np.allclose(expected.gram, first.gram, rtol=1e-12) == (more == 0)
        at = problem.inside(problem.centre, beta)
        before = problem.passes
        derivatives = problem.derivatives(problem.centre, at)
        assert problem.derivatives(problem.centre, at)[0] is derivatives[0] and problem.passes == before + 1


def test_working_responses_start_from_rough_coefficients():
    form, blocks, _ = problem_of("poisson", n=80)
    problem, beta = first_problem(form, blocks, FAMILIES["poisson"], None)
    exact, rough = problem.inside(problem.centre, beta), problem.inside(problem.centre, beta, ROUGH)
    assert rough.penalized - exact.penalized < ROUGH * (1 + exact.penalized)
    assert np.abs(rough.beta - exact.beta).max() > 1e-10


@pytest.mark.parametrize("name", IN_STATSMODELS)
def test_likelihoods_are_those_of_statsmodels(name):
    import statsmodels.api as sm

    theirs = {
        "gaussian": sm.families.Gaussian(),
        "binomial": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
        "negative_binomial": sm.families.NegativeBinomial(alpha=1 / 1.5),
    }[name]
    family, rng = FAMILIES[name], np.random.default_rng(1)
    eta = rng.normal(size=30)
    y, ones = responses(name, eta, rng), np.ones(30)
    scale = 1.0 if family.known_scale else 0.7
    mean = family.mean(eta)
    assert_allclose(2 * family.half_deviance(y, eta).sum(), theirs.deviance(y, mean), rtol=1e-10)
    assert_allclose(family.log_likelihood(y, eta, ones, scale), theirs.loglike(y, mean, scale=scale), rtol=1e-10)
    assert_allclose(family.variance(mean), theirs.variance(mean))
    if not family.known_scale:
        expected = theirs.variance.deriv(mean) * (y - mean) / theirs.variance(mean)
        assert_allclose(family.skewness(y, eta), expected, rtol=1e-5, atol=1e-12)
    weights = rng.integers(1, 5, size=30).astype(float)
    h = 1e-4
    values = [family.saturated(y, weights, scale * np.exp(d)) for d in (-h, 0, h)]
    if family.known_scale:
        assert values[1][1:] == (0, 0)
    else:
        assert_allclose(values[1][1], (values[2][0] - values[0][0]) / (2 * h), rtol=1e-6)
        assert_allclose(values[1][2], (values[2][1] - values[0][1]) / (2 * h), rtol=1e-6, atol=1e-6)


def test_weights_of_the_binomial_are_trials():
    """Grouped and single responses have the same likelihood but for the number of orders."""
    from scipy.stats import binom

    eta, trials, hits = np.array([0.3, -1.0]), np.array([5.0, 7.0]), np.array([2.0, 0.0])
    found = FAMILIES["binomial"].log_likelihood(hits / trials, eta, trials, 1.0)
    assert_allclose(found, binom.logpmf(hits, trials, FAMILIES["binomial"].mean(eta)).sum())


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_criterion(name):
    form, blocks, _ = problem_of(name)
    problem, beta = first_problem(form, blocks, FAMILIES[name], None)
    log_sp = np.log([3.0, 0.5, 20.0, 1.0])
    found = problem.derivatives(log_sp, problem.inside(log_sp, beta))[0]
    h, slopes = 1e-4, []
    for j in range(4):
        ends = [log_sp + sign * h * (np.arange(4) == j) for sign in (1, -1)]
        up, down = (problem.criterion(end, problem.inside(end, beta)) for end in ends)
        slopes.append((up - down) / (2 * h))
    assert_allclose(found, slopes, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_curvature_is_that_of_the_gradient(name):
    """In one pass; of families with a scale that is not known it has that, too."""
    form, blocks, _ = problem_of(name)
    problem, beta = first_problem(form, blocks, FAMILIES[name], None)
    log_sp = np.log([3.0, 0.5, 20.0, 1.0])
    at = problem.inside(log_sp, beta)
    before = problem.passes
    joint = problem.chosen(log_sp, at).hessian
    assert problem.passes == before + 1
    found = joint[:4, :4]
    if len(joint) > 4:
        found = found - np.outer(joint[:4, 4], joint[4, :4]) / joint[4, 4]
    h, rows = 1e-4, []
    for step in h * np.eye(4):
        up, down = (problem.derivatives(end, problem.inside(end, at.beta))[0] for end in (log_sp + step, log_sp - step))
        rows.append((up - down) / (2 * h))
    assert_allclose(found, rows, atol=1e-4 * np.abs(rows).max())


@pytest.mark.parametrize("smoothing", ["reml", [3.0, 0.5, 20.0, 1.0]])
def test_the_gaussian_family_is_least_squares(smoothing):
    form, blocks, data = problem_of("gaussian")
    ours = fit_family(form, blocks, FAMILIES["gaussian"], smoothing, data.n)
    exact = fit_gaussian(form, weighted_system(blocks), smoothing, data.n)
    weights = np.concatenate([block.weights[block.weights > 0] for block in blocks])
    assert_allclose(ours.criterion, exact.criterion - np.log(weights).sum() / 2, rtol=1e-9)
    rtol = 1e-5 if smoothing == "reml" else 1e-9
    assert_allclose(ours.coefficients, exact.coefficients, atol=rtol * np.abs(exact.coefficients).max())
    assert_allclose([ours.edf_total, ours.sigma2, ours.scale], [exact.edf_total, exact.sigma2, exact.scale], rtol=rtol)
    assert_allclose(ours.bayesian_covariance, exact.bayesian_covariance, atol=rtol * exact.inverse.max())


@pytest.mark.parametrize("name", IN_STATSMODELS)
def test_models_without_penalties_are_those_of_statsmodels(name):
    import statsmodels.api as sm

    form, blocks, data = problem_of(name, t=None)
    ours = fit_family(form, blocks, FAMILIES[name], "reml", data.n)
    y, weights, offset = (
        np.concatenate([getattr(b, what) for b in blocks])[:, 0] for what in ("y", "weights", "offset")
    )
    rows = form.rows(data)[:, 0]
    theirs = {
        "gaussian": sm.families.Gaussian(),
        "binomial": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
        "negative_binomial": sm.families.NegativeBinomial(alpha=1 / 1.5),
    }[name]
    used = weights > 0
    kwargs = {"freq_weights" if name in ("poisson", "binomial", "negative_binomial") else "var_weights": weights[used]}
    model = sm.GLM(y[used], rows[used], family=theirs, offset=offset[used], **kwargs).fit(tol=1e-14)
    assert_allclose(ours.coefficients, model.params, rtol=1e-7)
    assert_allclose(ours.rss, model.deviance, rtol=1e-8)
    assert_allclose(np.sqrt(ours.inverse.diagonal()), model.bse / np.sqrt(model.scale), rtol=1e-6)
    if name != "gamma":  # whose scale is corrected for sparse data
        assert_allclose(ours.sigma2, model.scale, rtol=1e-6)


def test_separated_responses_are_named_and_held():
    form, blocks, data = problem_of("binomial", t=None)
    y = (data.numbers("x") > 0.1).astype(float)[:, None]
    ones = np.ones_like(y)
    observed = [Observed(rows_on_grid(form, form.features(data)), y, ones, 0 * ones)]
    with pytest.warns(IdentificationWarning, match=r"part of \(Intercept\), x separates"):
        fit = fit_family(form, observed, FAMILIES["binomial"], "reml", data.n)
    assert np.isfinite(fit.coefficients).all()
    assert ((observed[0].rows.predictor(fit.coefficients) > 0) == (y == 1)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_family(form, blocks, FAMILIES["binomial"], "reml", data.n)


def test_a_level_without_hits_leaves_the_others_alone():
    from fdadp import ScalarRegression

    rng = np.random.default_rng(0)
    z, x = rng.uniform(size=200), rng.normal(size=200)
    g, y = np.where(z > 0.8, "none", "some"), np.where(z > 0.8, 0.0, (rng.uniform(size=200) < 0.4) * 1.0)
    model = [terms.factor("g"), terms.linear("x")]
    for family in ("binomial", "poisson"):
        with pytest.warns(IdentificationWarning, match=r"part of \(Intercept\), g separates the responses"):
            fit = ScalarRegression(model, family=family).fit({"g": g, "x": x, "y": y})
        part = z <= 0.8
        alone = ScalarRegression([terms.linear("x")], family=family).fit({"x": x[part], "y": y[part]})
        assert_allclose(fit.fitted_values_[part], alone.fitted_values_, rtol=1e-4)
        assert (fit.fitted_values_[~part] < 1e-4).all()


@pytest.mark.parametrize("cut", [0.5, 2.0])
def test_smooths_that_tell_all_apart_are_named(cut):
    """By a line, where coefficients go to infinity, or by a bump, where REML smooths nothing any more."""
    from fdadp import ScalarRegression

    z = np.random.default_rng(0).uniform(size=200)
    y = (np.abs(z - cut) < 0.2 if cut < 1 else z > 0.4).astype(float)
    with pytest.warns(IdentificationWarning, match=r"(?:separates the|tell all) responses(?: apart)? without error"):
        fit = ScalarRegression([terms.s("z")], family="binomial").fit({"z": z, "y": y})
    assert ((fit.fitted_values_ > 0.5) == y).all()


@pytest.mark.parametrize(("name", "value"), [("binomial", 0.0), ("binomial", 1.0), ("poisson", 0.0)])
def test_responses_that_are_all_the_same_have_no_finite_estimate(name, value):
    form, blocks, data = problem_of(name, t=None)
    same = [Observed(b.rows, np.full_like(b.y, value), b.weights, 0 * b.offset) for b in blocks]
    with pytest.raises(InputError, match=f"got only {value:g}"):
        fit_family(form, same, FAMILIES[name], "reml", data.n)


@pytest.mark.parametrize(
    ("family", "y", "message"),
    [
        ("poisson", [0.0, 2.0, 1.0, -1.0], "counts of 0 or more for family='poisson', got -1 in row 3"),
        ("poisson", [0.0, 2.5], "got 2.5 in row 1"),
        ("gamma", [1.0, 0.0], "numbers above 0 for family='gamma', got 0 in row 1"),
        ("binomial", [1.0, 2.0], "got 2 in row 1"),
        ("binomial", [1.0, 0.5], "got 0.5 in row 1"),
        ("gaussian", [1.0, np.inf], "got inf in row 1"),
    ],
)
def test_impossible_responses_are_named(family, y, message):
    with pytest.raises(InputError, match=message):
        family_of(family).check(np.array(y))
    family_of(family).check(np.array([1.0, np.nan]))


def test_shares_need_numbers_of_trials():
    FAMILIES["binomial"].check(np.array([0.5]), np.array([4.0]))
    with pytest.raises(InputError, match=r"got 1\.5 in row 0, position 1"):
        FAMILIES["binomial"].check(np.array([[0.5, 1.5]]), np.ones((1, 2)))


def test_unknown_families_and_criteria_are_refused():
    with pytest.raises(
        InputError,
        match=r"one of 'gaussian', .*, 'negative_binomial', 'scaled_t', 'ordered', got 'tweedie'",
    ):
        family_of("tweedie")
    form, blocks, data = problem_of("poisson", t=None)
    with pytest.raises(InputError, match="'reml' or smoothing parameters, got 'gcv'"):
        fit_family(form, blocks, FAMILIES["poisson"], "gcv", data.n)
    form, blocks, data = problem_of("poisson")
    with pytest.raises(InputError, match="4 positive smoothing parameters"):
        fit_family(LongForm(form.designs, form.t), blocks, FAMILIES["poisson"], [1.0], data.n)
