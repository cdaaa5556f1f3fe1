"""Smoothing parameters by curves, or persons, left out: exact values, derivatives, choices, bands, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError
from fdadp.solve.errors.leave_one_curve_out import CurvesLeftOut

T = np.linspace(0, 1, 21)
GRIDS = {"X": T, "Y": T}
SMOOTH = np.linalg.cholesky(np.exp(-(np.subtract.outer(T, T) ** 2) / 0.045) + 1e-8 * np.eye(T.size))
FORMULAS = ("Y ~ ff(X)", "Y ~ C(g)", "Y ~ s(z)", "Y ~ ff(X) + x + s(z) + C(g)")


def curves(seed=0, n=24, noise=0.5):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3)) @ np.array([np.cos(k * np.pi * T) for k in range(3)])
    x, z = draw.normal(size=(2, n))
    errors = draw.normal(size=(n, T.size)) @ SMOOTH.T + 0.4 * draw.normal(size=(n, T.size))
    Y = np.sin(6 * T) + x[:, None] * T + X + np.sin(2 * z)[:, None] * (1 - T) + noise * errors
    person = np.repeat(np.arange(n), draw.integers(1, 6, n))[:n]
    return {"x": x, "z": z, "g": np.array(list("abc"))[np.arange(n) % 3], "X": X, "Y": Y, "id": person}


def fitted(data, formula="Y ~ ff(X)", weights=None, groups=None, **settings):
    model = FunctionalRegression(formula, progress=False, **{"k": "refund"} | settings)
    return model.fit(data, grids=GRIDS, weights=weights, groups=groups)


def left_out(model):
    errors = model.fitted_.errors
    return CurvesLeftOut.of(errors.fit, errors.residuals, errors.groups)


def case(formula, kind):
    """Data of a kind, their weights, and a fit to them."""
    data, draw = curves(), np.random.default_rng(1)
    if kind == "gaps":
        data["Y"][draw.uniform(size=data["Y"].shape) < 0.3] = np.nan
    weights = draw.uniform(0.5, 2, data["Y"].shape) if kind == "weights" else None
    groups = "id" if kind == "groups" else None
    model = fitted(data, formula, weights, groups)
    return data, weights, model


@pytest.mark.parametrize("kind", ["whole", "gaps", "weights", "groups"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_the_error_is_that_of_refits(formula, kind):
    """In the same form: its rows without those of what is left out."""
    data, _, model = case(formula, kind)
    errors = model.fitted_.errors
    own, value = errors.residuals, 0.0
    units = np.arange(len(data["Y"])) if errors.groups is None else errors.groups
    used = np.ones_like(data["Y"]) if own.weights is None else own.weights
    observed = np.where(used > 0, own.values + errors.fit.form.predictor(own.records, errors.fit.coefficients), 0.0)
    penalty = np.diag(errors.fit.smoothing_parameters @ errors.fit.form.stacked_penalties)
    rows, keep = errors.fit.form.rows(own.records), errors.fit.identified
    for unit in np.unique(units):
        out = units == unit
        d, w = rows[~out].reshape(-1, errors.fit.form.size)[:, keep], used[~out].ravel()
        a, c = (d * w[:, None]).T @ d + penalty[np.ix_(keep, keep)], (d * w[:, None]).T @ observed[~out].ravel()
        size = np.sqrt(a.diagonal())
        beta = np.linalg.solve(a / np.outer(size, size), c / size) / size
        value += float((used[out] * (observed[out] - rows[out][:, :, keep] @ beta) ** 2).sum())
    assert left_out(model).error(np.log(model.smoothing_parameters_))[0] == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("kind", ["whole", "gaps", "weights", "groups"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_derivatives_are_differences(formula, kind):
    _, _, model = case(formula, kind)
    left = left_out(model)
    at = np.log(model.smoothing_parameters_) + 1.0
    _, gradient, bent = left.error(at)
    step = 1e-4 * np.eye(len(at))
    differences = [(left.error(at + h)[0] - left.error(at - h)[0]) / 2e-4 for h in step]
    np.testing.assert_allclose(gradient, differences, atol=1e-5 * np.abs(gradient).max())

    def residuals(rho):
        heavy = np.exp(rho)[:, None] * left.penalties
        return np.concatenate([one.left.ravel() for one in left._without(heavy)])

    slopes = np.stack([(residuals(at + h) - residuals(at - h)) / 2e-4 for h in step], axis=1)
    np.testing.assert_allclose(bent, slopes.T @ slopes, atol=1e-5 * np.abs(bent).max())


def test_points_of_their_own_say_what_gaps_say():
    data = curves()
    off = np.random.default_rng(1).uniform(size=data["Y"].shape) < 0.3
    data["Y"][off] = np.nan
    model = fitted(data, smoothing="curves")
    row, at = np.nonzero(~off)
    long = pd.DataFrame({"row": row, "t": T[at], "value": data["Y"][~off]})
    other = FunctionalRegression("Y ~ ff(X)", smoothing="curves", k="refund", progress=False)
    other.fit({"X": data["X"]}, grids={"X": T}, response=long)
    np.testing.assert_allclose(other.smoothing_parameters_, model.smoothing_parameters_, rtol=1e-4)


@pytest.mark.parametrize(("smoothing", "groups"), [("curves", None), ("groups", "id")])
def test_it_finds_the_least_error(smoothing, groups):
    """Of REML's optimum, and of many points about what was found."""
    data = curves(3, 30)
    model, reml = fitted(data, groups=groups, smoothing=smoothing), fitted(data, groups=groups)
    left, draw = left_out(model), np.random.default_rng(0)
    least, gradient, _ = left.error(np.log(model.smoothing_parameters_))
    assert model.criterion_ == pytest.approx(least / data["Y"].size, rel=1e-6)
    assert np.abs(left.n / 2 * gradient / least).max() < 0.01
    assert least < left.error(np.log(reml.smoothing_parameters_))[0]
    others = [np.log(model.smoothing_parameters_) + draw.normal(size=3) for _ in range(20)]
    assert all(left.error(at)[0] > least * (1 - 1e-4) for at in others)
    said = {"curves": "Curves left out", "groups": "Persons left out"}[smoothing]
    assert said in model.summary().as_text()
    if groups is None:
        assert model.loo_ < reml.loo_
    else:
        with pytest.raises(InputError, match="kind must be 'cluster' or 'iid' with smoothing='groups'"):
            model.vcov("curve")


def test_the_units_of_a_response_are_of_no_effect():
    data = curves(3, 30)
    first = fitted(data, smoothing="curves")
    second = fitted(data | {"Y": 1e3 * data["Y"] + 1e7}, smoothing="curves")
    np.testing.assert_allclose(second.smoothing_parameters_, first.smoothing_parameters_, rtol=1e-3)


def test_a_curve_moves_the_choice_by_the_errors_of_all_others_too(monkeypatch):
    """Beside exact gradients without each curve; its own error alone says the half of it."""
    monkeypatch.setattr("fdadp.solve.errors.leave_one_curve_out.ENOUGH", 1e-7)
    model = fitted(curves(1, 60, 0.3), smoothing="curves")
    left, at = left_out(model), np.log(model.smoothing_parameters_)
    fixed, pushes = left.pushes(at)
    value, _, bent = left.error(at)
    u, z = (np.concatenate(each) for each in zip(*left.parts, strict=True))
    exact, own, before = [], [], np.linalg.solve(left.gram + np.diag(np.exp(at) @ left.penalties), left.cross)
    for i in range(60):
        others = np.arange(60) != i
        gram, cross = left.gram - u[i].T @ u[i], left.cross - u[i].T @ z[i]
        few = CurvesLeftOut(gram, cross, left.penalties, [(u[others], z[others])], [np.arange(59)], left.beyond)
        exact.append(30 / value * few.error(at)[1])
        alone = CurvesLeftOut(left.gram, left.cross, left.penalties, [(u[[i]], z[[i]])], [np.zeros(1, int)], 0.0)
        own.append(-30 / value * alone.error(at)[1])
        if i < 3:
            without = np.linalg.solve(gram + np.diag(np.exp(at) @ left.penalties), cross)
            np.testing.assert_allclose(fixed[i], before - without, atol=1e-6 * np.abs(fixed[i]).max())

    def alike(found):
        return np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(np.transpose(exact), found, strict=True)])

    assert alike(pushes.T) > 0.75
    assert alike(np.transpose(own)) < 0.5
    changes, inverse = left.changes(at), np.linalg.inv(left.gram + np.diag(np.exp(at) @ left.penalties))
    sizes, axes = np.linalg.eigh(60 / value * bent)
    moves = -(pushes @ axes / (sizes + 0.1)) @ axes.T  # of log λ
    expected = fixed + moves @ (np.exp(at)[:, None] * left.penalties * before) @ inverse
    np.testing.assert_allclose(changes, expected, atol=1e-6 * np.abs(changes).max())


@pytest.mark.statistics
def test_bands_count_that_smoothing_was_chosen():
    """Of 30 curves, nominal 95 %: at the same smoothing .91 at each s and t, and .90 of whole functions."""
    inside, whole = [], []
    for seed in range(25):
        data = curves(seed, 30)
        model = FunctionalRegression("Y ~ ff(X) + x", smoothing="curves", progress=False).fit(data, grids=GRIDS)
        band, each = model.bands("x", t=T), model.bands("x", t=T, simultaneous=False)
        inside.append(((each["lower"] <= T) & (each["upper"] >= T)).mean())
        whole.append(((band["lower"] <= T) & (band["upper"] >= T)).all())
    assert np.mean(inside) >= 0.9
    assert np.mean(whole) >= 0.84


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"family": "poisson"}, "is there for family='gaussian'"),
        ({"errors": "curve"}, "is there for errors='iid'"),
        ({"response_basis": "eigen"}, "is there for response_basis='splines'"),
        ({"privacy": Privacy(epsilon=1.0, delta=1e-6, n=24)}, "is there for fits without privacy"),
    ],
)
def test_what_has_no_such_choice_is_refused_by_name(settings, text):
    with pytest.raises(InputError, match=text):
        FunctionalRegression("Y ~ ff(X)", smoothing="curves", **settings).fit(curves(), grids=GRIDS)


def test_groups_chunks_persons_and_numbers_are_refused_by_name():
    data = curves()
    with pytest.raises(InputError, match="smoothing='groups' needs groups"):
        fitted(data, smoothing="groups")
    with pytest.raises(InputError, match="smoothing must be 'groups' where groups are given"):
        fitted(data, smoothing="curves", groups="id")
    with pytest.raises(InputError, match="needs all rows in memory, got chunks"):
        FunctionalRegression("Y ~ ff(X)", smoothing="curves").fit_chunks([data], grids=GRIDS)
    with pytest.raises(InputError, match="smoothing must be 'reml' or numbers"):
        FunctionalRegression("Y ~ re(id, covariance='free')", smoothing="curves").fit(data, grids=GRIDS)
    with pytest.raises(InputError, match="is there for responses that are curves"):
        ScalarRegression("y ~ s(z)", smoothing="curves").fit({"y": data["x"], "z": data["z"]})
