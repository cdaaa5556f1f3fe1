"""Perturbed minimisers: solved exactly, moved by a person as little as is claimed, noisy enough for their ε and δ."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.special import expit
from scipy.stats import gamma, kstest, norm
from sklearn.linear_model import LogisticRegression

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, OpenDPNoise, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import _hockey_stick, gaussian_multiplier, replaced_multiplier
from fdadp.privacy.kernel import _loss_minimisers
from fdadp.privacy.kernel._loss_minimisers import (
    GRADIENT_ERROR,
    SMALLEST_RIDGE,
    SOLUTION_ERROR,
    Ridge,
    _dot,
    least_squares,
    logistic,
)
from fdadp.privacy.rows._vault import Vault


def pair(rows):
    return rows


def shapes(z, t):
    return [z.shape[1:], t.shape[1:]]


STEP = 2.0**-40


def ridge_solution(z, t, persons=None, **kwargs):
    return least_squares(Vault((z, t), persons), pair, shapes(z, t), step=STEP, **kwargs) * STEP


def some_rows(rng, n=30, D=3, K=2):
    z, t = rng.standard_normal((n, D)), rng.standard_normal((n, K))
    z[0], z[1, 0], t[2], t[3, 0], z[4] = 1e30, np.nan, -1e30, np.inf, 0.0
    return z, t


# ------------------------------------------------------------------ least squares


def test_ridge_solution_is_that_of_the_normal_equations():
    rng = np.random.default_rng(0)
    z, t = rng.uniform(-1, 1, (2000, 4)) / 2, rng.uniform(-1, 1, (2000, 3)) / 2
    got = ridge_solution(z, t, clip=1.0, target_clip=1.0, ridge=5.0, radius=100.0)
    np.testing.assert_allclose(got, np.linalg.solve(z.T @ z + 5 * np.eye(4), z.T @ t), atol=1e-5)


def test_in_the_ball_it_satisfies_the_optimality_conditions():
    rng = np.random.default_rng(1)
    z, t = rng.uniform(-0.5, 0.5, (500, 4)), rng.uniform(-0.5, 0.5, (500, 3))
    free = ridge_solution(z, t, clip=1.0, target_clip=1.0, ridge=5.0, radius=100.0)
    radius = 0.5 * np.linalg.norm(free)
    got = ridge_solution(z, t, clip=1.0, target_clip=1.0, ridge=5.0, radius=radius)
    assert np.linalg.norm(got) == pytest.approx(radius, rel=1e-9)
    gradient = z.T @ (z @ got - t) + 5 * got
    multiplier = -(gradient * got).sum() / radius**2
    assert multiplier > 0
    np.testing.assert_allclose(gradient, -multiplier * got, atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.01, 0.3, 5.0]),
    st.sampled_from([0.05, 1.0, 50.0]),
    st.sampled_from([1, 4]),
)
def test_a_person_moves_the_ridge_solution_by_less_than_claimed(seed, ridge, radius, rows_each):
    rng = np.random.default_rng(seed)
    z, t = some_rows(rng)
    z[5:] *= rng.uniform(0.1, 10)
    clip, target_clip = 1.3, 0.7
    persons = np.arange(30) // rows_each if rows_each > 1 else None
    options = {"clip": clip, "target_clip": target_clip, "ridge": ridge, "radius": radius}
    full = ridge_solution(z, t, persons, **options)
    bound = clip * (radius * clip + target_clip) / ridge
    for person in range(0, 30 // rows_each, 3):
        keep = np.arange(30) // rows_each != person
        without = ridge_solution(z[keep], t[keep], None if persons is None else persons[keep], **options)
        assert np.linalg.norm(full - without) <= bound * 1.0005
        assert np.linalg.norm(without) <= radius * (1 + 1e-9)


def test_the_bound_is_not_much_too_large():
    """One person alone against none: a good part of the claimed influence is really had."""
    z, t = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])
    moved = abs(ridge_solution(z, t, clip=1.0, target_clip=1.0, ridge=100.0, radius=0.1).item())
    assert moved > 0.8 * (0.1 + 1) / 100


def test_order_and_chunks_change_nothing():
    rng = np.random.default_rng(2)
    z, t = some_rows(rng, n=1500)
    order = rng.permutation(1500)
    options = {"clip": 1.0, "target_clip": 1.0, "ridge": 1.0, "radius": 1.0}
    one = ridge_solution(z, t, **options)
    np.testing.assert_array_equal(one, ridge_solution(z[order], t[order], **options))
    chunks = [(z[a : a + 170], t[a : a + 170]) for a in range(0, 1500, 170)]
    np.testing.assert_array_equal(one, least_squares(Vault(chunks), pair, shapes(z, t), step=STEP, **options) * STEP)


# ------------------------------------------------------------------ logistic


def labels(rng, z):
    return np.where(rng.random((len(z), 1)) < expit(3 * z[:, :1]), 1.0, -1.0)


def minimiser(z, t, ridge, linear=None, persons=None):
    linear = np.zeros((z.shape[1], t.shape[1])) if linear is None else linear
    step = max(STEP, 2.0**-55 * np.abs(linear).max() / ridge)  # within the reach of int64
    return logistic(Vault((z, t), persons), pair, shapes(z, t), ridge=ridge, linear=linear, step=step) * step


def test_logistic_minimiser_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    z = rng.uniform(-0.5, 0.5, (1200, 3))
    t = labels(rng, z)
    reference = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(z, t[:, 0])
    np.testing.assert_allclose(minimiser(z, t, 0.7)[:, 0], reference.coef_[0], atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 10.0]), st.sampled_from([0.0, 1.0, 1e4]))
def test_logistic_gets_to_a_zero_gradient_and_a_person_moves_it_little(seed, ridge, size):
    rng = np.random.default_rng(seed)
    z, _ = some_rows(rng, D=4)
    t = rng.choice([-1.0, 0.0, 1.0], (30, 2))
    linear = size * rng.standard_normal((4, 2))
    w = minimiser(z, t, ridge, linear)
    with np.errstate(all="ignore"):
        usable = np.isfinite((z**2).sum(axis=1))
    unit = (
        np.where(usable[:, None], z, 0)
        / np.maximum(1, np.linalg.norm(np.where(usable[:, None], z, 0), axis=1))[:, None]
    )
    gradient = unit.T @ (-t * expit(-t * (unit @ w))) + ridge * w + linear
    assert np.linalg.norm(gradient, axis=0).max() <= GRADIENT_ERROR + 1e-11 * (size + 30)
    for i in range(0, 30, 5):
        without = minimiser(np.delete(z, i, axis=0), np.delete(t, i, axis=0), ridge, linear)
        assert (np.linalg.norm(w - without, axis=0) <= (1 + 2 * GRADIENT_ERROR) / ridge).all()


def test_rows_of_one_person_share_its_weight():
    rng = np.random.default_rng(4)
    z = rng.uniform(-0.5, 0.5, (40, 2))
    t = labels(rng, z)
    np.testing.assert_allclose(
        minimiser(np.repeat(z, 3, axis=0), np.repeat(t, 3, axis=0), 0.5, persons=np.repeat(np.arange(40), 3)),
        minimiser(z, t, 0.5),
        atol=1e-6,
    )


# ------------------------------------------------------------------ objective perturbation


def exact_delta(epsilon, mu, ridge, z, t, new):
    """δ(ε), both directions, of one more person: in one dimension the density follows by a change of variables."""

    def density(w, z, t):
        margins = z[:, None] * w
        slope = (-t[:, None] * z[:, None] * expit(-t[:, None] * margins)).sum(axis=0) + ridge * w
        curvature = (z[:, None] ** 2 * expit(margins) * expit(-margins)).sum(axis=0) + ridge
        return norm.pdf(slope, scale=1 / mu) * curvature

    reach = (12 / mu + len(z) + 1) / ridge
    w = np.linspace(-reach, reach, 40_001)
    one, two = density(w, z, t), density(w, np.append(z, new), np.append(t, 1.0))
    assert trapezoid(one, w) == pytest.approx(1, rel=1e-6)
    return max(trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), w) for p, q in ((one, two), (two, one)))


@pytest.mark.parametrize("ridge", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("others", [0, 3, 40])
@pytest.mark.parametrize("new", [1.0, -1.0, 0.5])
def test_exact_delta_of_objective_perturbation_in_one_dimension(ridge, others, new):
    mu = gaussian_multiplier(1.2, 1e-3, ridge)
    rng = np.random.default_rng(others)
    z, t = rng.uniform(-1, 1, others), rng.choice([-1.0, 1.0], others)
    assert exact_delta(1.2, mu, ridge, z, t, new) <= 1e-3 * 1.001


def test_that_delta_is_nearly_reached_by_a_person_who_contradicts_all_others():
    mu = gaussian_multiplier(0.5, 1e-3, 2.0)
    found = exact_delta(0.5, mu, 2.0, np.ones(200), -np.ones(200), 1.0)
    assert 1e-4 < found <= 1e-3
    # And with a tenth less noise it would be too much: so the test above can fail.
    assert exact_delta(0.5, 2 * mu, 2.0, np.ones(200), -np.ones(200), 1.0) > 1e-3


def exact_replaced_delta(epsilon, mu, ridge, rows):
    """δ(ε) of one of two rows in place of the other, labels in their signs: in two dimensions, by the same change."""
    w = np.linspace(-1.0, 1.0, 701) * 9 / (mu * ridge)
    w1, w2 = np.meshgrid(w, w, indexing="ij")

    def density(y):
        margin = y[0] * w1 + y[1] * w2
        wrong, bend = expit(-margin), expit(margin) * expit(-margin)
        b = ridge * w1 - wrong * y[0], ridge * w2 - wrong * y[1]
        return norm.pdf(b[0], scale=1 / mu) * norm.pdf(b[1], scale=1 / mu) * ridge * (ridge + bend * (y @ y))

    one, two = (density(np.array(y)) for y in rows)
    cell = (w[1] - w[0]) ** 2
    assert one.sum() * cell == pytest.approx(1, abs=1e-4)
    return max(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell for p, q in ((one, two), (two, one)))


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.0, math.pi / 2, 2.5, math.pi])
@pytest.mark.parametrize(("epsilon", "ridge"), [(1.2, 0.5), (1.2, 5.0), (4.0, 0.1)])
def test_exact_delta_where_a_person_is_replaced(epsilon, ridge, turn):
    mu = replaced_multiplier(epsilon, 1e-3, ridge)
    rows = [(1.0, 0.0), (math.cos(turn), math.sin(turn))]
    assert exact_replaced_delta(epsilon, mu, ridge, rows) <= 1e-3 * 1.001
    assert turn < 1.5 or exact_replaced_delta(epsilon, 4 * mu, ridge, rows) > 1e-2  # so the test can fail


@pytest.mark.each_once
@pytest.mark.parametrize("problems", [1, 3, 10])
@pytest.mark.parametrize("ridge", [0.3, 1.0, 100.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_one_term_for_both_rows_is_never_louder_than_two_steps(epsilon, delta, ridge, problems):
    """And never quieter than half of what adding or removing a row takes."""
    try:
        most = gaussian_multiplier(epsilon, delta, ridge, problems) / 2
    except PrivacyError:
        with pytest.raises(PrivacyError, match="ridge must be"):
            replaced_multiplier(epsilon, delta, ridge, problems)
        return
    found = replaced_multiplier(epsilon, delta, ridge, problems)
    assert found <= most * 1.01
    try:
        steps = gaussian_multiplier(epsilon / 2, delta / (1 + math.exp(epsilon / 2)), ridge, problems)
    except PrivacyError:
        steps = 0.0
    assert found >= steps


def test_two_steps_pay_the_jacobian_twice():
    two_steps = gaussian_multiplier(0.5, 1e-6 / (1 + math.exp(0.5)), 1.0)
    assert replaced_multiplier(1.0, 1e-6, 1.0) > 1.3 * two_steps


@pytest.mark.parametrize("ridge", [0.5, 4.0])
def test_exact_epsilon_of_pure_objective_perturbation_in_one_dimension(ridge):
    epsilon = 1.0
    rate = epsilon - math.log1p(1 / (4 * ridge))
    w = np.linspace(-30, 30, 20_001)

    def log_density(z):
        slope = sum(-x * expit(-x * w) for x in z) + ridge * w
        return -rate * abs(slope) + np.log(sum(x * x * expit(x * w) * expit(-x * w) for x in z) + ridge)

    for z in ([], [0.3, -0.9], [1.0] * 10):
        ratio = log_density(z) - log_density([*z, 1.0])
        assert np.abs(ratio).max() <= epsilon * (1 + 1e-9)


def test_several_problems_cost_what_their_joint_loss_says():
    mu, ridge, problems = 0.4, 2.0, 4
    jacobian = math.log1p(1 / (4 * ridge))
    rng = np.random.default_rng(5)
    loss = problems * (mu**2 / 2 + jacobian) + mu * np.maximum(rng.standard_normal((2_000_000, problems)), 0).sum(
        axis=1
    )
    for epsilon in (1.0, 2.0):
        sampled = np.maximum(-np.expm1(epsilon - loss), 0)
        exact = _hockey_stick(epsilon, mu, jacobian, problems)
        assert abs(exact - sampled.mean()) < 5 * sampled.std() / math.sqrt(len(loss)) + 2e-3 * exact
    one = [_hockey_stick(epsilon, mu, jacobian, 1) for epsilon in (0.1, 0.25, 1.0)]
    loss = mu**2 / 2 + jacobian + mu * np.maximum(rng.standard_normal(4_000_000), 0)
    for epsilon, exact in zip((0.1, 0.25, 1.0), one, strict=True):
        sampled = np.maximum(-np.expm1(epsilon - loss), 0)
        assert abs(exact - sampled.mean()) < 5 * sampled.std() / 2000


def test_spherical_noise_has_a_gamma_length_and_no_direction():
    sampler = OpenDPNoise().prepare("spherical", 3, 2.0**40, 0.5)
    draws = np.array([sampler(np.zeros(3, dtype=np.int64)) for _ in range(1500)], dtype=float) / sampler.scale
    length = np.linalg.norm(draws, axis=1)
    # The draws cannot be seeded: each of these fails by chance once in a million runs.
    assert kstest(length, gamma(3).cdf).pvalue > 1e-6
    assert kstest(draws[:, 0] / length, lambda x: (x + 1) / 2).pvalue > 1e-6  # uniform in three dimensions
    assert draws.std() == pytest.approx(sampler.sd / sampler.scale, rel=0.1)


# ------------------------------------------------------------------ in the cohort


def cohort(budget, n=400, persons=None, noise=None, adjacency=None):
    rng = np.random.default_rng(6)
    z = rng.uniform(-0.5, 0.5, (n, 3))
    declared = None if adjacency == "add-remove" else n
    noise = SeededNoise(0) if noise is None else noise
    return Cohort((z, labels(rng, z)), groups=persons, budget=budget, n=declared, noise=noise, adjacency=adjacency)


@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("perturb", ["output", "objective"])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_the_whole_budget_and_no_more_is_in_the_ledger(delta, perturb, adjacency):
    budget = Budget(2.0, delta)
    c = cohort(budget, noise=OpenDPNoise(), adjacency=adjacency)
    value, sd = c.perturbed_minimum(pair, loss="logistic", perturb=perturb, ridge=10.0, share=1.0, name="w")
    assert value.shape == (3, 1) and sd > 0
    (release,) = c.releases
    assert release.secure and c.ledger.for_release
    if perturb == "objective":
        assert (release.epsilon, release.delta) == (pytest.approx(2.0), delta)
    else:
        assert 0.999 * budget.total < release.spent <= budget.total
    assert budget.left == pytest.approx(0, abs=1e-9)
    with pytest.raises(PrivacyError, match="share"):
        c.sum(lambda rows: rows[0], clip=1.0, share=0.01, name="more")


GOOD = {"loss": "squared", "ridge": 1.0, "target_clip": 1.0, "radius": 1.0, "share": 1.0, "name": "w"}
LOGISTIC = {"loss": "logistic", "ridge": 1.0, "share": 1.0, "name": "w"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (GOOD | {"loss": "hinge"}, "loss must be"),
        (GOOD | {"perturb": "objective"}, "perturb must be 'output' with the squared loss"),
        (GOOD | {"ridge": 0.0}, "ridge must be a finite number above 0"),
        (GOOD | {"radius": None}, "radius must be"),
        (GOOD | {"target_clip": math.nan}, "target_clip must be"),
        (GOOD | {"ridge": 1e10}, "at most 1e9"),
        (GOOD | {"share": 0.0}, "share must be"),
        (LOGISTIC | {"clip": 2.0}, "unit ball"),
        (LOGISTIC | {"ridge": 1e-3}, "ridge must be from"),
        (LOGISTIC | {"perturb": "objective", "share": 0.5}, "share must be 1"),
        (LOGISTIC | {"perturb": "objective", "ridge": 0.1}, "ridge must be at least"),
    ],
)
def test_bad_arguments_spend_nothing(arguments, text):
    budget = Budget(1.0, 1e-6)
    c = cohort(budget)
    with pytest.raises(PrivacyError, match=text):
        c.perturbed_minimum(pair, **arguments)
    assert (budget.spent, c.reads) == (0, 0)


def test_objective_perturbation_wants_one_row_a_person_and_a_ridge_for_its_epsilon():
    budget = Budget(1.0)
    with pytest.raises(PrivacyError, match="one row a person"):
        cohort(budget, persons=np.arange(400) // 2).perturbed_minimum(
            pair, loss="logistic", perturb="objective", ridge=1.0, share=1.0, name="w"
        )
    with pytest.raises(PrivacyError, match="ridge must be above"):
        cohort(budget).perturbed_minimum(pair, loss="logistic", perturb="objective", ridge=0.1, share=1.0, name="w")
    assert budget.spent == 0


# ------------------------------------------------------------------ the Newton method never fails


def test_a_long_linear_term_is_of_any_size():
    """Its integers are Python's: modulo 2^64 a vector outside would come in again on the other side."""
    sampler = OpenDPNoise().prepare("spherical", 2, 2.0**55, 0.9)
    draws = np.concatenate([sampler(np.zeros(2, dtype=np.int64)) for _ in range(2000)])
    assert {type(x) for x in draws} == {int} and max(map(abs, draws)) > 2**57


def gradient_at(w, z, t, ridge, linear):
    """In sixty digits, of rows in the unit ball."""
    with decimal.localcontext() as context:
        context.prec = 60
        found = [Decimal(ridge) * x + b for x, b in zip(w, linear, strict=True)]
        for row, label in zip(z.tolist(), t.ravel().tolist(), strict=True):
            row, sign = [Decimal(x) for x in row], Decimal(label)
            margin = sign * sum(x * y for x, y in zip(row, w, strict=True))
            wrong = 1 / (1 + margin.exp()) if margin < 10**5 else Decimal(0)
            found = [g - sign * wrong * x for g, x in zip(found, row, strict=True)]
        return float(sum(g * g for g in found).sqrt())


@pytest.mark.parametrize("case", ["forced", "long", "very long"])
def test_where_rounding_is_not_covered_the_search_goes_on_in_decimals(case, monkeypatch):
    """Neither n nor |b| is taken to be small: a guarantee in pure epsilon has no exceptions."""
    rng = np.random.default_rng(9)
    z = rng.uniform(-0.4, 0.4, (60, 2))
    z[:30, 1] = -z[:30, 0] * 0.5  # margins that stay moderate however long b is
    t = rng.choice([-1.0, 1.0], (60, 1))
    ridge, linear = 0.5, np.array([[3], [6]], dtype=object)
    linear *= {"forced": 1, "long": 10**10, "very long": 10**16}[case]
    step = 2.0**-23
    vault = Vault((z, t))
    if case == "forced":
        plain = logistic(vault, pair, shapes(z, t), ridge=ridge, linear=linear, step=step)
        monkeypatch.setattr("fdadp.privacy.kernel._loss_minimisers._gradient_error", lambda w, *_: np.full(1, np.inf))
    seen = []
    right = _loss_minimisers._in_decimals
    monkeypatch.setattr(_loss_minimisers, "_in_decimals", lambda *a: seen.append(1) or right(*a))
    w = logistic(vault, pair, shapes(z, t), ridge=ridge, linear=linear, step=step)
    assert seen
    if case == "very long":  # cut off at the reach of int64, as an exact minimiser would be
        assert abs(w).max() == 2**61
        return
    if case == "forced":
        assert abs(w - plain).max() * step * ridge <= 1e-3 * GRADIENT_ERROR
    z = z / (1 + 1e-12)  # as the kernel has them
    point = [Decimal(int(x)) * Decimal(step) for x in w.ravel()]
    slack = step * (ridge + 60)  # a step moves the gradient by so much
    assert gradient_at(point, z, t, ridge, [Decimal(x) for x in linear.ravel().tolist()]) <= GRADIENT_ERROR + slack


@pytest.mark.parametrize("times", [1, 10**9, 10**16])
@pytest.mark.parametrize("radius", [0.02, 5.0])
def test_ridge_solutions_are_checked_exactly_and_found_for_any_number_of_persons(times, radius):
    rng = np.random.default_rng(10)
    rows, targets = rng.integers(-(2**18), 2**18, (40, 3)), rng.integers(-(2**18), 2**18, (40, 2))
    rows[:, 2] = rows[:, 1] + rng.integers(-1, 2, 40)
    gram, cross = ((rows.T @ other).astype(object) * times for other in (rows, targets))
    unit = Fraction(1, 2**36)
    problem = Ridge(gram, cross, unit, unit, 0.3, radius)
    most = SOLUTION_ERROR * (radius + 1) / 0.3
    theta = problem.solved(most, STEP) * STEP
    in_floats = problem.error(*problem._in_floats())
    exact, multiplier = problem._in_decimals(80)
    assert problem.error(exact, multiplier) < 1e-15 * max(times, 1)
    np.testing.assert_allclose(theta, exact.astype(float) * radius / 2.0**100, atol=most)
    assert in_floats >= np.linalg.norm(_floating(problem._in_floats()[0] - exact, radius)) * (1 - 1e-9)
    assert in_floats <= most if times == 1 else True
    worse = problem._in_floats()[0] + 2**90
    assert problem.error(worse, multiplier) >= np.linalg.norm(_floating(worse - exact, radius))


def _floating(points, radius):
    return points.astype(float) * radius / 2.0**100


def test_sums_of_products_are_exact_beyond_64_bits(monkeypatch):
    """Low and high bits apart: with two bits in the low part, a few rows overflow it many times."""
    rng = np.random.default_rng(11)
    z, t = rng.uniform(-0.5, 0.5, (1500, 2)), rng.uniform(-0.5, 0.5, (1500, 1))
    options = {"clip": 1.0, "target_clip": 1.0, "ridge": 1.0, "radius": 1.0}
    whole = ridge_solution(z, t, **options)
    monkeypatch.setattr("fdadp.privacy.kernel._loss_minimisers._LIMB", 2)
    np.testing.assert_array_equal(whole, ridge_solution(z, t, **options))


def hard_cases():
    rng = np.random.default_rng(7)
    line = np.linspace(-1, 1, 3000)[:, None] * [1.0, 1e-3]
    yield "separable", line, np.sign(line[:, :1]), SMALLEST_RIDGE, np.zeros((2, 1))
    yield "one far from the others", np.vstack([line * 1e-4, [[1.0, 0.0]]]), -np.ones((3001, 1)), 0.05, np.zeros((2, 1))
    z = rng.uniform(-0.6, 0.6, (3000, 2))
    yield "a long linear term", z, np.sign(z[:, 1:]), 0.3, np.array([[300.0], [-200.0]])
    yield "nobody", np.full((5, 2), np.nan), np.ones((5, 1)), 1.0, np.array([[50.0], [0.0]])
    yield "a large ridge", z, np.sign(z[:, 1:]), 1e8, np.array([[1e9], [1e10]])


@pytest.mark.parametrize("case", list(hard_cases()), ids=lambda c: c[0])
def test_the_gradient_at_the_returned_point_is_as_small_as_claimed(case):
    """Evaluated in extended precision, at the points that the kernel hands to the noise."""
    _, z, t, ridge, linear = case
    vault = Vault((z, t))
    step = max(2.0**-12 * GRADIENT_ERROR, 2.0**-55 * np.abs(linear).max()) / ridge
    w = logistic(vault, pair, shapes(z, t), ridge=ridge, linear=linear, step=step) * step
    usable = np.isfinite(z).all(axis=1)
    exact, z, t = w.astype(np.longdouble), z[usable].astype(np.longdouble), t[usable].astype(np.longdouble)
    z = z / np.maximum(1 + 1e-12, np.sqrt((z**2).sum(axis=1)) * (1 + 1e-12))[:, None]
    slope = -t / (1 + np.exp(t * (z @ exact)))
    gradient = z.T @ slope + ridge * exact + linear
    assert np.sqrt((gradient**2).sum()) <= GRADIENT_ERROR
    assert vault.passes < 60


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_damped_step_lowers_the_objective_by_what_is_proved(seed, ridge):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((50, 3))
    z /= np.linalg.norm(z, axis=1)[:, None]
    t = rng.choice([-1.0, 1.0], 50)
    b = rng.standard_normal(3) * 10

    def objective(w):
        return np.logaddexp(0, -t * (z @ w)).sum() + ridge / 2 * w @ w + b @ w

    for _ in range(50):
        w = rng.standard_normal(3) * 10.0 ** rng.uniform(-1, 2)
        p = expit(-t * (z @ w))
        gradient = -z.T @ (t * p) + ridge * w + b
        hessian = (z * (p * (1 - p))[:, None]).T @ z + ridge * np.eye(3)
        d = -np.linalg.solve(hessian, gradient)
        beta = np.linalg.norm(d)
        fall = objective(w) - objective(w + np.log1p(beta) / beta * d)
        least = (d @ hessian @ d) / beta**2 * ((1 + beta) * np.log1p(beta) - beta)
        assert fall >= least * (1 - 1e-6) - 1e-9
        if beta > 0.5:
            assert least >= 0.108 * ridge


def test_margins_are_summed_in_twice_the_precision():
    rng = np.random.default_rng(8)
    a = rng.standard_normal(50)
    b = np.concatenate([rng.standard_normal(25) * 1e12, np.zeros(25)])
    b[25:] = -b[:25] * a[:25] / a[25:]  # nearly all of it cancels
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert float(_dot(a, b)) == pytest.approx(float(exact), rel=1e-12)
    assert abs(float(a @ b) - float(exact)) > 1e3 * abs(float(_dot(a, b)) - float(exact))
