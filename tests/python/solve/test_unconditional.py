"""Covariance with that of the smoothing parameters: mgcv's recorded Vc, and what it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from fdadp import ScalarRegression, terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.errors import sandwich as unconditional
from fdadp.solve.errors.sandwich import unconditional_covariance
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms.records import Records

RULES = {"simpson": "simpson_legacy", "trapezoidal": "trapezoid"}


def mgcvs_coordinates(design, smooth, features):
    """C where our coefficients, the intercept first, are ``C b`` of mgcv's b."""
    if not hasattr(design, "over_x"):
        return block_diag(1.0, design.over_s.rotation.T)
    z = np.delete(smooth["Z"], np.ravel(smooth["del_index"]).astype(int) - 1, axis=1)
    turn = np.kron(design.over_s.rotation, design.over_x.rotation)
    ours = turn.reshape(len(turn), design.over_s.size, -1).swapaxes(1, 2).reshape(len(turn), -1).T @ z
    to_intercept = features[~design.kept] @ ours[~design.kept]  # what is left out is the intercept's
    return np.vstack((np.r_[1.0, to_intercept], np.hstack((np.zeros((design.size, 1)), ours[design.kept]))))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["lf", "af"])
def test_covariance_is_mgcvs(reference, kind, rule, monkeypatch):
    """At mgcv's smoothing parameters, turned into mgcv's coordinates."""
    record = reference(f"pfr_{kind}_dti")
    i, o = record["input"], record["output"][rule]
    s, k, y = np.ravel(i["argvals"]), tuple(int(v) for v in np.ravel(i["k"])), np.ravel(i["y"]).astype(float)
    term = terms.lf("X", k=k[0], rule=RULES[rule]) if kind == "lf" else terms.af("X", k=k, rule=RULES[rule])
    model = ScalarRegression([term], smoothing=np.ravel(o["sp"]))
    model.k = "refund"  # whose curves are not centred
    model.fit({"X": i["X"], "y": y}, grids={"X": s})
    form = model.fitted_.fit.form
    records = Records(len(y), {"X": Curves(i["X"], s)})
    long = form.rows(records).reshape(len(y), -1)
    problem = PenalizedLeastSquares(long.T @ long, long.T @ y, y @ y, len(y), form.penalties, intercept=False)
    solution = problem.solve(np.ravel(o["sp"]))
    turn = mgcvs_coordinates(form.designs[-1], o["smooths"][0], form.designs[-1].features(records)[0])
    np.testing.assert_allclose(long @ turn, o["design"], atol=1e-9 * np.abs(o["design"]).max())
    found, theirs = unconditional_covariance(problem, solution, turn), turn @ o["curve"]["Vc"] @ turn.T
    size = np.abs(theirs).max()
    np.testing.assert_allclose(found, theirs, atol=1e-6 * size)
    # mgcv's Hessian is that of a scale that its search left 1e-5 from the optimum; with it all digits are the same.
    monkeypatch.setattr(unconditional, "_hessian", lambda *_: np.asarray(o["score_hess"]))
    exact = unconditional_covariance(problem, solution, turn)
    np.testing.assert_allclose(exact, theirs, atol=1e-9 * size)
    if kind == "lf":  # standard errors of the coefficient function
        rows = form.designs[-1].effect(np.ravel(o["curve"]["grid"]))
        for covariance, rtol in ((found, 1e-5), (exact, 1e-9)):
            se = np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance[1:, 1:], rows))
            np.testing.assert_allclose(se, np.ravel(o["curve"]["se"]), rtol=rtol)
    monkeypatch.undo()
    # In other coordinates the last part is another, and without it all is less.
    rest = [v - solution.covariance for v in (found, unconditional_covariance(problem, solution))]
    assert all(np.linalg.eigvalsh(v).min() > -1e-9 * np.abs(v).max() for v in rest)
    assert np.abs(rest[0]).max() > 1e-3 * size


def random_problem(scale):
    rng = np.random.default_rng(0)
    z = np.hstack((np.ones((80, 1)), rng.normal(size=(80, 9))))
    y = z @ rng.normal(size=10) + rng.normal(size=80)
    penalties = np.zeros((2, 10))
    penalties[0, 2:6], penalties[1, 6:] = np.exp(rng.normal(size=(2, 4)))
    return PenalizedLeastSquares(z.T @ z, z.T @ y, y @ y, 80, penalties, intercept=False, scale=scale)


@pytest.mark.parametrize("scale", [None, 1.3])
def test_parts_are_derivatives(scale):
    """How coefficients and roots follow the smoothing parameters, by differences."""
    problem = random_problem(scale)
    (best,) = problem.optimize()
    rho, h = np.log(best.smoothing_parameters), 1e-4
    sides = [[problem.solve(np.exp(rho + sign * h * e)) for sign in (1, -1)] for e in np.eye(2)]
    slopes = np.stack([(up.coefficients - down.coefficients) / (2 * h) for up, down in sides], axis=1)

    def root(solution):  # R⁻¹ of A = R'R
        return np.linalg.inv(np.linalg.cholesky(np.linalg.inv(solution.inverse)).T)

    roots = np.stack([(root(up) - root(down)) / (2 * h) for up, down in sides])
    hessian = joint_hessian(problem, best, rho)
    inner = np.linalg.inv(hessian)[:2, :2]
    spread = np.linalg.inv(hessian + np.eye(len(hessian)) / 10)[:2, :2]
    expected = best.covariance + slopes @ inner @ slopes.T
    expected += best.noise_variance * np.einsum("kl,kpr,lqr->pq", spread, roots, roots)
    found = unconditional_covariance(problem, best)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def joint_hessian(problem, best, rho):
    """Of REML in log λ and, if it is estimated, log φ, from its definition by differences."""
    if problem.scale is not None:
        return problem.reml(rho)[2]
    dof, h = problem.n - problem.n_unpenalized, 1e-3

    def reml(point):
        s = np.exp(point[:2]) @ problem.penalties
        a = problem.gram + np.diag(s)
        c, phi = problem.cross[:, 0], best.scale * np.exp(point[2])
        deviance = problem.total[0] - c @ np.linalg.solve(a, c)
        dets = np.linalg.slogdet(a)[1] - np.log(s[s > 0]).sum()
        return (deviance / phi + dof * np.log(2 * np.pi * phi) + dets) / 2

    at, steps = np.array([*rho, 0.0]), h * np.eye(3)
    value = [[reml(at + a + b) - reml(at + a - b) - reml(at - a + b) + reml(at - a - b) for b in steps] for a in steps]
    return np.array(value) / (4 * h**2)


def test_coordinates_that_nothing_identifies_have_none():
    problem = random_problem(None)
    twice = np.r_[np.arange(10), 1]
    problem = PenalizedLeastSquares(
        problem.gram[np.ix_(twice, twice)],
        problem.cross[twice],
        problem.total,
        problem.n,
        problem.penalties[:, twice],
        intercept=False,
    )
    found = unconditional_covariance(problem, problem.optimize()[0])
    assert (found[10] == 0).all()
    plain = random_problem(None)
    np.testing.assert_allclose(
        found[:10, :10], unconditional_covariance(plain, plain.optimize()[0]), rtol=1e-6, atol=1e-9
    )
