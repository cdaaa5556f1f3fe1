"""Releases that are accounted for by themselves: exact likelihood ratios of what the kernel really draws.

The scale of the noise is taken from a tape of the public release, the densities are written down here once more.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from mutants import mutate
from scipy.integrate import trapezoid
from scipy.special import expit, ive
from scipy.stats import chi2, norm
from sklearn.base import clone

from fdadp.audit import Neighbours, replay_audit
from fdadp.errors import PrivacyError
from fdadp.learners import DPLinearRegression, DPLogisticRegression
from fdadp.privacy import Budget, Cohort, TapeNoise
from fdadp.privacy.kernel import _kernel, _perturbed_minimisers, _sum_releases
from fdadp.privacy.noise.distributed import noise_source

RNG = np.random.default_rng(0)


def tape_of(release, data, *, epsilon=1.0, delta=None, adjacency="zero-out"):
    """What was drawn: entries of the tape, and the result."""
    noise = TapeNoise()
    n = None if adjacency == "add-remove" else 30
    cohort = Cohort(data, budget=Budget(epsilon, delta), adjacency=adjacency, n=n, noise=noise)
    return noise.entries, release(cohort), cohort


def minimum(perturb, ridge):
    return lambda c: c.perturbed_minimum(
        lambda r: r, loss="logistic", perturb=perturb, ridge=ridge, share=1.0, name="w"
    )


def slopes(w, z, t):
    """Of the losses at w (D, K), summed over rows: (D, K)."""
    return -(z.T @ (t * expit(-t * (z @ w))))


def log_jacobian(w, z, ridge):
    p = expit(z @ w)
    bends = [(z * (p[:, [k]] * (1 - p[:, [k]]))).T @ z + ridge * np.eye(len(w)) for k in range(w.shape[1])]
    return sum(np.linalg.slogdet(bend)[1] for bend in bends)


def persons(n, D, K, rng):
    z = rng.standard_normal((n, D))
    z /= np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True)) * (1 + 1e-9)
    return z, rng.choice([-1.0, 1.0], (n, K))


# ------------------------------------------------------------------ noise in the objective


@pytest.mark.parametrize(("D", "K"), [(1, 1), (2, 1), (3, 3)])
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_pure_objective_perturbation_at_forced_outputs(D, K, adjacency):
    """log p(w | D) - log p(w | D') by the change of variables from w to the linear term, at 300 outputs a pair."""
    epsilon, ridge = 2.0, 3.0
    z, t = persons(20, D, K, np.random.default_rng(D))
    entries, _, _ = tape_of(minimum("objective", ridge), (z, t), epsilon=epsilon, adjacency=adjacency)
    linear, last = entries[:-1], entries[-1]
    assert [e.kind for e in entries] == ["spherical"] * K + ["laplace"]
    scale = linear[0].scale * 2.0**-40
    extra = last.sensitivity / last.scale  # what the noise on the minimiser costs

    def log_density(w, z, t):
        b = -slopes(w, z, t) - ridge * w
        return -np.linalg.norm(b, axis=0).sum() / scale + log_jacobian(w, z, ridge)

    worst = 0.0
    rng = np.random.default_rng(1)
    for i in range(100):
        new, labels = persons(1, D, K, rng)
        if i % 2:
            new, labels = np.full((1, D), 1 / math.sqrt(D)), np.ones((1, K))
        first, second = (z, t), (np.vstack([z, new]), np.vstack([t, labels]))
        towards = -new.T * labels
        if adjacency == "replace":  # two persons on opposite sides of an axis along which both are wrong
            one, other = new.copy(), -new
            if D > 1:
                one[:], other[:] = 0, 0
                one[0, :2], other[0, :2] = (0.95, -0.3), (-0.95, -0.3)
                labels, towards = np.ones((1, K)), np.eye(D)[:, [1] * K]
            first = (np.vstack([one, z[1:]]), np.vstack([labels, t[1:]]))
            second = (np.vstack([other, z[1:]]), np.vstack([labels, t[1:]]))
        for size in (0.01, 1.0, 30.0):
            w = towards * size + rng.standard_normal((D, K)) * 0.1 * size
            worst = max(worst, abs(log_density(w, *first) - log_density(w, *second)))
    least = 0.2 if adjacency == "replace" else 0.5  # where both are wrong, b is long and they move it sideways
    assert least * epsilon < worst <= epsilon - extra
    assert extra == pytest.approx(0.01 * epsilon, rel=1e-2)


@pytest.mark.parametrize("K", [1, 2])
def test_delta_of_objective_perturbation_by_integration(K):
    """One feature: δ(ε) is an integral over the K minimisers, which are independent given the rows."""
    epsilon, delta, ridge = 1.5, 1e-3, 3.0
    z, t = np.ones((15, 1)), -np.ones((15, K))
    entries, _, _ = tape_of(minimum("objective", ridge), (z, t), epsilon=epsilon, delta=delta)
    sd = entries[0].scale * 2.0**-40
    w = np.linspace(-60 * sd / ridge, 60 * sd / ridge, 6001)

    def density(z, t):
        slope = (-t[:, None] * z * expit(-t[:, None] * z * w)).sum(axis=0) + ridge * w
        bend = (z**2 * expit(z * w) * expit(-z * w)).sum(axis=0) + ridge
        return norm.pdf(slope, scale=sd) * bend * (w[1] - w[0])

    p, q = density(z, t[:, 0]), density(np.ones((16, 1)), np.append(t[:, 0], 1.0))
    assert p.sum() == pytest.approx(1, abs=1e-6)
    found = 0.0
    for a, b in ((p, q), (q, p)):
        if K == 2:
            keep = (a > 1e-12) | (b > 1e-12)
            a, b = np.outer(a[keep], a[keep]), np.outer(b[keep], b[keep])
        found = max(found, np.maximum(a - math.exp(0.99 * epsilon) * b, 0).sum())
    assert 0.05 * delta < found <= 0.99 * delta


def test_an_objective_cannot_be_replayed_without_a_word():
    def run(data, noise):
        cohort = Cohort(data, budget=Budget(2.0), n=20, noise=noise)
        return minimum("objective", 3.0)(cohort).value

    z, t = persons(20, 2, 1, RNG)
    audit = replay_audit([Neighbours("objective", run, (z, t), (z[1:], t[1:]), 2.0)])
    assert "cannot be forced" in str(audit)
    assert not audit.passed


# ------------------------------------------------------------------ noise on the minimiser, by replay


def aligned(K):
    """One person who moves the minimisers of K problems as far as anybody can where nobody else is."""
    z = np.zeros((2, 3))
    z[0] = 1 / math.sqrt(3) - 1e-9
    return (z, np.ones((2, K))), (np.zeros((2, 3)), np.ones((2, K)))


def output_pairs(K, delta):
    def run(data, noise):
        cohort = Cohort(data, budget=Budget(1.0, delta), n=2, noise=noise)
        return minimum("output", 1e4)(cohort), cohort.ledger

    yield Neighbours(f"{K} classes", run, *aligned(K), total=Budget(1.0, delta).total)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("K", [1, 2, 9])
def test_output_perturbation_by_replay(K, delta):
    audit = replay_audit(output_pairs(K, delta))
    assert audit.passed, str(audit)
    assert audit.changes.max() == pytest.approx(0.5, rel=0.01)  # the slope of a loss at 0 is a half


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_mutant_without_the_root_of_the_number_of_classes(monkeypatch, delta):
    mutate(monkeypatch, _perturbed_minimisers, "bound = math.sqrt(K) / ridge", "bound = 1.0 / ridge")
    audit = replay_audit(output_pairs(9, delta))
    assert not audit.passed
    assert audit.changes.max() > 1.4


# ------------------------------------------------------------------ Wishart noise


def wishart_pairs(adjacency, epsilon=1.0, delta=1e-5):
    rows = np.vstack([np.eye(2), RNG.uniform(-0.5, 0.5, (28, 2))])
    other = rows[1:] if adjacency == "add-remove" else rows.copy()
    if adjacency != "add-remove":
        other[0] = [0.0, 1.0] if adjacency == "replace" else np.nan

    def run(data, noise):
        n = None if adjacency == "add-remove" else 30
        cohort = Cohort(data, budget=Budget(epsilon, delta), adjacency=adjacency, n=n, noise=noise)
        return cohort.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="m"), cohort.ledger

    total = Budget(epsilon, delta).total
    for _ in range(4):
        yield Neighbours(f"Wishart, {adjacency}", run, rows, other, total, promise=(epsilon, delta))


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
def test_wishart_noise_by_replay(adjacency):
    audit = replay_audit(wishart_pairs(adjacency))
    assert audit.passed, str(audit)
    assert 0.9 < audit.ratios.max() <= 1
    assert audit.changes.max() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_delta_of_wishart_noise_by_integration(epsilon):
    """p = 1: the densities of χ² and χ² + 1, with the degrees that the release really had."""
    entries, _, _ = tape_of(
        lambda c: c.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="m"),
        np.ones((30, 1)),
        epsilon=epsilon,
        delta=1e-4,
    )
    nu = round(1 / (4 * entries[0].amount))
    far = nu + 12 * math.sqrt(2 * nu)
    x = np.linspace(0, far, 200_001)
    p, q = chi2.pdf(x, nu), chi2.pdf(x - 1, nu)
    found = [trapezoid(np.maximum(a - math.exp(epsilon) * b, 0.0), x) for a, b in ((p, q), (q, p))]
    assert 0.5e-4 < max(found) <= 1e-4 * (1 + 1e-4)
    assert not replay_audit(  # a promise that is not kept is found
        Neighbours(p.name, p.run, p.first, p.second, p.total, promise=(0.9, 1e-5)) for p in wishart_pairs("zero-out")
    ).passed


# ------------------------------------------------------------------ exchanging one person is two steps


def two_steps(epsilon, delta):
    """δ at ε of three laws on two points, each of which is (ε₁, δ₁) from the next, as far apart as that allows."""
    kernel = tape_of(lambda c: None, np.ones((3, 1)), adjacency="replace")[2]._kernel
    one, small = kernel.for_one(epsilon, delta)
    third = 1e-3
    second = math.exp(one) * third + small
    first = math.exp(one) * second + small
    return first - math.exp(epsilon) * third


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_exchanging_a_person_costs_no_more_than_two_steps_may(epsilon):
    assert two_steps(epsilon, 1e-6) == pytest.approx(1e-6, rel=1e-6)


def test_mutant_with_half_of_delta_for_each_step(monkeypatch):
    mutate(monkeypatch, _kernel, "delta / (1 + math.exp(epsilon / 2))", "delta / 2")
    assert two_steps(1.0, 1e-6) > 1.3e-6
    audit = replay_audit(wishart_pairs("replace"))
    assert not audit.passed
    assert audit.ratios.max() > 1.2


# ------------------------------------------------------------------ directions


def direction_pairs(k, delta, D=6, accounting="gdp"):
    budget = Budget(0.1, delta, accounting=accounting)
    rows = np.zeros((3, D))
    rows[:2] = np.eye(D)[:2]
    rows[2] = np.eye(D)[2]

    def run(data, noise):
        fresh = Budget(0.1, delta, accounting=accounting)
        cohort = Cohort(data, budget=fresh, n=3, noise=noise)
        found = cohort.principal_directions(lambda r: r[0], k, clip=1.0, share=1.0, name="directions")
        return found, cohort.ledger

    other = rows.copy()
    other[2] = np.nan
    for _ in range(6):
        yield Neighbours(f"{k} directions", run, rows, other, budget.total, accounting=budget.accounting)


@pytest.mark.parametrize(("delta", "accounting"), [(None, "gdp"), (1e-6, "gdp"), (1e-6, "zcdp")])
@pytest.mark.parametrize("k", [1, 4])
def test_directions_by_replay(k, delta, accounting):
    audit = replay_audit(direction_pairs(k, delta, accounting=accounting))
    assert audit.passed, str(audit)
    assert audit.ratios.max() <= 1 and audit.changes.max() <= 1


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_mutant_with_several_directions_at_the_price_of_one(monkeypatch, delta):
    """The account finds that the releases cost more than the share; without it the audit and the ledger do."""
    with monkeypatch.context() as patch:
        mutate(patch, _sum_releases, "self._kernel.account.check(share) / k", "self._kernel.account.check(share)")
        (pair, *_) = direction_pairs(4, delta)
        with pytest.raises(PrivacyError, match="that were reserved"):
            pair.run(pair.first, TapeNoise())
    mutate(monkeypatch, _sum_releases, "self._kernel.account.check(share) / k", "self._kernel.account.check(share)")
    monkeypatch.setattr("fdadp.privacy.account._reservations.MemoryBook.spend", lambda *a, **k: None)
    audit = replay_audit(direction_pairs(4, delta))
    assert not audit.passed
    assert audit.ratios.max() > 1.5
    _, ledger = pair.run(pair.first, TapeNoise())
    assert not ledger.private
    assert "GUARANTEE BROKEN" in ledger.statement


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_law_of_a_direction_in_two_dimensions(delta):
    """exp(u'Su/scale) on the circle: its normaliser is a Bessel function, so the ratio of two densities is exact."""
    epsilon = 1.0
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 0.5]])
    release = lambda c: c.principal_directions(lambda r: r[0], 1, clip=1.0, share=1.0, name="d")  # noqa: E731
    both = [tape_of(release, data, epsilon=epsilon, delta=delta)[0][0] for data in (rows, rows[1:])]
    theta = np.linspace(0, math.pi, 20_001)[:-1]

    def log_density(entry):
        a, b, c = (v / entry.scale for v in entry.exact)
        size = math.hypot((a - c) / 2, b / math.sqrt(2))  # u'Su = (a + c)/2 + size cos(2θ - φ)
        angle = math.atan2(b / math.sqrt(2), (a - c) / 2)
        return size * (np.cos(2 * theta - angle) - 1) - math.log(math.pi * ive(0, size))

    one, other = (log_density(e) for e in both)
    step = theta[1]
    assert np.exp(one).sum() * step == pytest.approx(1, rel=1e-9)
    if delta is None:
        worst = np.abs(one - other).max()
        assert 0.3 * epsilon < worst <= epsilon
    else:  # Rényi divergences of all orders below ρ α
        for alpha in (1.5, 2.0, 8.0, 64.0):
            for p, q in ((one, other), (other, one)):
                log_sum = np.log(np.sum(np.exp(alpha * p + (1 - alpha) * q)) * step)
                assert log_sum / (alpha - 1) <= Budget(epsilon, delta).total * alpha


# ------------------------------------------------------------------ the learners that use them


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace"])
@pytest.mark.parametrize(
    ("learner", "delta"),
    [
        (DPLinearRegression(mechanism="wishart", bounds=(-1, 1), bounds_y=(-1, 1)), 1e-5),
        (DPLogisticRegression(mechanism="output", classes=[0, 1, 2], data_norm=1.5), 1e-5),
        (DPLogisticRegression(mechanism="output", classes=[0, 1, 2], data_norm=1.5), None),
    ],
    ids=["Wishart", "output", "output, pure"],
)
def test_learners_by_replay(learner, delta, adjacency):
    """Through ``fit``: all that a user gets is the same on neighbours, at a cost (or a δ) within the promise."""
    epsilon = 1.0
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (40, 2))
    X[4] = [np.nan, 1e30]
    wishart = delta is not None and learner.mechanism == "wishart"
    y = X[:, 0] / 2 if wishart else rng.integers(0, 3, 40)
    X_new = rng.uniform(-1, 1, (5, 2))
    n = None if adjacency == "add-remove" else 40

    def run(data, noise):
        model = clone(learner).set_params(epsilon=epsilon, delta=delta, adjacency=adjacency, n=n)
        with noise_source(noise):
            model.fit(*data)
        return vars(model), model.predict(X_new)

    def pairs():
        for i in (0, 4, 17, 39):
            keep = np.arange(40) != i
            other, labels = X.copy(), y.copy()
            other[i] = np.nan if adjacency == "zero-out" else [9.0, -9.0]
            labels[i] = -0.5 if wishart else (labels[i] + 1) % 3
            second = (X[keep], y[keep]) if adjacency == "add-remove" else (other, labels)
            promise = None if delta is None else (epsilon, delta)
            yield Neighbours(f"person {i}", run, (X, y), second, Budget(epsilon, delta).total, promise=promise)

    audit = replay_audit(pairs())
    assert audit.passed, str(audit)
    assert audit.finished == 4
    assert 0.05 < audit.changes.max() <= 1
