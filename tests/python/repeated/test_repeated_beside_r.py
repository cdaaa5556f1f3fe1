"""Repeated curves beside live R: mgcv, nlme, lme4 and refund, at fixed variances and at each side's own optimum."""

from __future__ import annotations

import numpy as np
import pytest
from repeated_tools import curves_of_persons
from scipy.linalg import eigh

from fdadp import load_dti
from fdadp.repeated.fixed_effects import MeanTerm, TermParts, fixed_effects, normal_of_terms, spline_levels
from fdadp.repeated.multilevel_fpca import MultilevelFPCA
from fdadp.repeated.nested_sites import nested_covariances, nested_fit, site_sums
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import PersonPass
from fdadp.repeated.random_slopes import slope_covariances, slope_effects, slope_sums
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.two_level_components import smooth_levels
from fdadp.repeated.two_level_model import deviance, gls
from fdadp.solve.form.long_form_design import System


def relative(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


def in_r(function: str, *packages: str, **arguments):
    from r_bridge._rpy2 import call, require

    require(*packages)
    return call(function, *packages, **arguments)


def numbers_of_persons(seed: int, persons: int, k: int):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), rng.integers(1, 5, persons))
    x = rng.normal(size=who.size)
    C = np.column_stack((np.ones(who.size), x)) @ rng.normal(size=(2, k))
    mix = np.array([[1, 0.6], [0, 0.7]])[:k, :k]
    return C + rng.normal(size=(persons, k))[who] @ mix + rng.normal(size=C.shape), x, who


@pytest.mark.mgcv
def test_random_functions_of_persons_are_those_of_gam_at_fixed_smoothing_parameters():
    c = curves_of_persons(0, 10, T=31)
    from fdadp.functional.splines.bsplines import BSplines

    splines = BSplines.uniform(0, 1, 9)
    B, S, noise = splines.design(c.t), splines.difference_penalty(2), 0.16
    sp, sp_person = [0.3, 2.0, 7.0], [0.05, 1.5]
    X = np.column_stack((np.ones(len(c.who)), c.X))
    theirs = in_r(
        "repeated_gam", "mgcv", Y=c.Y, X=X, id=c.who.astype(float), B=B, S=S, sp=sp, sp_person=sp_person, scale=noise
    )
    s, U = eigh(S, B.T @ B)
    phi, back = B @ U, np.linalg.inv(U)
    sums = PersonPass(phi, 3, intercept=False).add(X, c.Y, c.who).sums()
    G = noise * back @ np.linalg.inv(sp_person[0] * np.eye(9) + sp_person[1] * S) @ back.T
    levels = LevelCovariances(G, noise * np.eye(9), noise, 0.0)
    penalty = np.where(s > 1e-9 * s.max(), s, 0.0)[None]
    terms = [MeanTerm(np.eye(3)[:, [a]], phi, penalty) for a in range(3)]
    fixed = fixed_effects(sums, levels, terms, smoothing_parameters=np.array(sp) / noise)
    model = RepeatedFit(sums, levels, fixed)
    of_rows = sums.ids.get_indexer(c.who)
    fitted = model.predict(X, sums.means[of_rows], sums.counts[of_rows])
    assert relative(fixed.on_phi() @ U.T, theirs["coefficients"][:3]) < 1e-8
    assert relative(model.effects() @ U.T, theirs["coefficients"][3:]) < 1e-8
    assert relative(fitted, theirs["fitted"]) < 1e-8
    turn = np.kron(np.eye(3), U)
    assert relative(turn @ fixed.covariance @ turn.T, theirs["covariance"]) < 1e-8


@pytest.mark.mgcv
def test_a_concurrent_effect_beside_persons_is_that_of_gam_at_fixed_smoothing_parameters():
    c = curves_of_persons(0, 10, T=31)
    from fdadp.functional.splines.bsplines import BSplines

    splines = BSplines.uniform(0, 1, 7)
    B, S, noise = splines.design(c.t), splines.difference_penalty(2), 0.16
    sp, sp_person, p, k = [0.3, 2.0, 4.0], [0.05, 1.5], 2, 7
    X = np.column_stack((np.ones(len(c.who)), c.X[:, 0]))
    Z = np.random.default_rng(1).normal(size=c.Y.shape).cumsum(axis=1) / 4
    given = {"id": c.who.astype(float), "B": B, "S": S, "sp": sp, "sp_person": sp_person, "scale": noise}
    theirs = in_r("repeated_gam", "mgcv", Y=c.Y, X=X, Z=Z, **given)
    s, U = eigh(S, B.T @ B)
    phi, back = B @ U, np.linalg.inv(U)
    D = Z[:, :, None] * phi
    loads = np.einsum("tk,ntp->nkp", phi, D).reshape(len(X), -1)
    sums = PersonPass(phi, p + k * k, intercept=False).add(np.hstack((X, loads)), c.Y, c.who).sums(loads=k)
    G = noise * back @ np.linalg.inv(sp_person[0] * np.eye(k) + sp_person[1] * S) @ back.T
    levels = LevelCovariances(G, noise * np.eye(k), noise, 0.0)
    columns = np.hstack((np.kron(X, phi), D.reshape(-1, k)))
    y = c.Y.ravel()
    whole = System(columns.T @ columns, columns.T @ y, float(y @ y), y.size)
    parts = TermParts.beside_loads(sums, np.eye(p * k + k), whole, 0.0)
    normal = normal_of_terms(sums, levels, [], parts=parts)
    penalty = np.kron(np.diag(sp) / noise, np.diag(np.where(s > 1e-9 * s.max(), s, 0.0)))
    covariance = np.linalg.inv(normal.gram + penalty)
    turn = np.kron(np.eye(3), U)
    assert relative(turn @ covariance @ normal.right, theirs["coefficients"][:3].ravel()) < 1e-8
    assert relative(turn @ covariance @ turn.T, theirs["covariance"]) < 1e-8


@pytest.mark.nlme
def test_two_responses_with_free_covariances_are_those_of_lme():
    C, x, who = numbers_of_persons(2, 60, 2)
    theirs = in_r("repeated_lme", "nlme", C=C, x=x, id=who.astype(float))
    X = np.column_stack((np.ones(who.size), x))
    s = PersonPass(np.eye(2), 2, intercept=False).add(X, C, who).sums()
    constant = (2 * s.n_rows - 4) * np.log(2 * np.pi)
    B, V = gls(s, theirs["G"], theirs["R"])
    assert relative(B, theirs["fixed"]) < 1e-8
    assert relative(np.sqrt(np.diag(V)).reshape(2, 2), theirs["se"]) < 1e-8
    at_theirs = deviance(s, theirs["G"], theirs["R"]) + constant
    assert at_theirs == pytest.approx(float(theirs["deviance"][0]), abs=1e-6)
    ours = level_covariances(s, tolerance=1e-12)
    assert ours.deviance + constant <= float(theirs["deviance"][0]) + 1e-6
    assert relative(ours.G, theirs["G"]) < 1e-3


@pytest.mark.lme4
def test_a_random_intercept_is_that_of_lmer():
    C, x, who = numbers_of_persons(3, 40, 1)
    theirs = in_r("repeated_lmer", "lme4", y=C[:, 0], x=x, id=who.astype(float), slope=False)
    X = np.column_stack((np.ones(who.size), x))
    s = PersonPass(np.eye(1), 2, intercept=False).add(X, C, who).sums()
    levels = LevelCovariances(np.atleast_2d(theirs["G"]), np.atleast_2d(theirs["R"]), 0.0, 0.0)
    fixed = fixed_effects(s, levels)
    assert relative(fixed.coefficients, theirs["fixed"]) < 1e-8
    assert relative(np.sqrt(np.diag(fixed.covariance)), theirs["se"]) < 1e-8
    assert relative(RepeatedFit(s, levels, fixed).effects(), theirs["effects"]) < 1e-8
    ours = level_covariances(s, tolerance=1e-12)
    assert ours.deviance + (s.n_rows - 2) * np.log(2 * np.pi) <= float(theirs["deviance"][0]) + 1e-6


LMER = pytest.param("repeated_lmer", "lme4", {"slope": True}, marks=pytest.mark.lme4)
LME = pytest.param("repeated_levels", "nlme", {}, marks=pytest.mark.nlme)


@pytest.mark.parametrize(("call", "package", "own"), [LMER, LME])
def test_a_random_slope_is_that_of_lmer_and_of_lme(call, package, own):
    rng, who = np.random.default_rng(5), np.repeat(np.arange(30), rng_rows(5, 30))
    x = rng.normal(size=who.size)
    y = 2 + x + rng.normal(size=30)[who] + 0.8 * rng.normal(size=30)[who] * x + rng.normal(size=who.size)
    theirs = in_r(call, package, y=y, x=x, id=who.astype(float), **own)
    X = np.column_stack((np.ones(who.size), x))
    sums = PersonPass(np.eye(1), 2, intercept=False, cross=True).add(X, y[:, None], who).sums()
    s = slope_sums(sums, np.eye(2))
    found = slope_effects(s, LevelCovariances(theirs["G"], np.atleast_2d(theirs["R"]), 0.0, 0.0))
    assert relative(found.fixed.ravel(), theirs["fixed"]) < 1e-8
    assert relative(np.sqrt(np.diag(found.covariance)), theirs["se"]) < 1e-8
    assert relative(found.effects[:, :, 0], theirs["effects"]) < 1e-8
    ours = slope_covariances(s, tolerance=1e-11)
    assert ours.deviance + (who.size - 2) * np.log(2 * np.pi) <= float(theirs["deviance"][0]) + 1e-6
    assert relative(ours.G, theirs["G"]) < 1e-3


@pytest.mark.nlme
def test_persons_within_sites_are_those_of_lme():
    rng, who = np.random.default_rng(6), np.repeat(np.arange(40), rng_rows(6, 40))
    site, x = np.arange(40) // 5, rng.normal(size=who.size)
    y = 2 + x + 1.5 * rng.normal(size=8)[site[who]] + rng.normal(size=40)[who] + rng.normal(size=who.size)
    theirs = in_r("repeated_levels", "nlme", y=y, x=x, id=who.astype(float), site=site[who].astype(float))
    X = np.column_stack((np.ones(who.size), x))
    s = site_sums(PersonPass(np.eye(1), 2, intercept=False).add(X, y[:, None], who).sums(), dict(enumerate(site)))
    found = nested_fit(s, *(np.atleast_2d(theirs[name]) for name in ("S", "G", "R")))
    assert relative(found.fixed.ravel(), theirs["fixed"]) < 1e-8
    assert relative(np.sqrt(np.diag(found.covariance)), theirs["se"]) < 1e-8
    assert relative(found.sites[:, 0], theirs["sites"]) < 1e-8
    order = s.sums.ids.get_indexer(theirs["persons"].astype(int))
    assert relative(found.effects(s)[order, 0], theirs["effects"]) < 1e-8
    ours = nested_covariances(s, tolerance=1e-11)
    assert ours.deviance + (who.size - 2) * np.log(2 * np.pi) <= float(theirs["deviance"][0]) + 1e-6


def rng_rows(seed: int, persons: int):
    return np.random.default_rng(seed).integers(2, 9, persons)


@pytest.mark.refund
def test_face_is_refunds_multilevel_face_on_dti():
    data = load_dti(complete="cca")
    Y, ids = np.asarray(data.X.data_matrix[..., 0]), np.asarray(data.groups)
    theirs = in_r("repeated_mfpca", "refund", Y=Y, id=ids.astype(float), knots=30)
    grid = np.linspace(0, 1, Y.shape[1])
    order, codes = np.unique(ids, return_inverse=True)
    T = grid.size
    found = smooth_levels(
        Y, codes, grid, np.full(T, 1 / T), n_components=(0.99, 0.99), n_knots=30, mean=np.asarray(theirs["mean"])
    )
    assert (found.person.n_components, found.row.n_components) == (14, 21)
    signs = []
    for basis, functions, values in zip((found.person, found.row), theirs["functions"], theirs["values"], strict=True):
        assert relative(basis.values, values) < 1e-10
        signs.append(np.sign((basis.functions @ functions).diagonal()))
        assert relative(basis.functions.T * signs[-1], functions) < 1e-9
    assert found.row.noise_variance == pytest.approx(float(theirs["noise"][0]), rel=1e-8)
    xi, zeta = found.scores(Y, np.zeros((len(Y), 0)), codes, len(order))
    assert relative(xi * signs[0], theirs["scores"][0]) < 1e-8
    assert relative(zeta * signs[1], theirs["scores"][1]) < 1e-8
    # With its own mean, which mgcv smooths to the last digit of its search.
    model = MultilevelFPCA(method="face", n_knots=30, quadrature="equal").fit(Y, groups=ids)
    assert relative(model.mean_, theirs["mean"]) < 1e-3
    assert relative(model.eigenvalues_["person"], theirs["values"][0]) < 1e-3


@pytest.mark.mgcv
def test_penalised_persons_and_white_errors_have_gams_own_optimum():
    from fdadp.functional.splines.bsplines import BSplines

    c = curves_of_persons(3, 14, T=31)
    Y = c.beta[0] + c.X @ c.beta[1:] + c.b[c.who] + 0.4 * np.random.default_rng(0).normal(size=c.Y.shape)
    splines = BSplines.uniform(0, 1, 9)
    B, S = splines.design(c.t), splines.difference_penalty(2)
    X = np.column_stack((np.ones(len(c.who)), c.X))
    theirs = in_r("repeated_gam", "mgcv", Y=Y, X=X, id=c.who.astype(float), B=B, S=S)
    s, U = eigh(S, B.T @ B)
    phi = B @ U
    sums = PersonPass(phi, 3, intercept=False).add(X, Y, c.who).sums()
    terms = [MeanTerm(np.eye(3)[:, [a]], phi, np.where(s > 1e-9 * s.max(), s, 0.0)[None]) for a in range(3)]
    levels, fixed = spline_levels(sums, terms, B, S)
    model = RepeatedFit(sums, levels, fixed)
    of_rows = sums.ids.get_indexer(c.who)
    fitted = model.predict(X, sums.means[of_rows], sums.counts[of_rows])
    assert levels.noise_variance == pytest.approx(float(theirs["noise"][0]), rel=1e-4)
    assert np.abs(fitted - theirs["fitted"]).max() < 1e-4 * np.ptp(theirs["fitted"])
