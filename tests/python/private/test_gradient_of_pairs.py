"""Gradients of concurrent and historical effects, released pair by pair: the seven tests of that release."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fdadp import FunctionalRegression, Privacy, PublicPrior, terms
from fdadp.audit import black_box_audit
from fdadp.errors import PrivacyError
from fdadp.privacy import Budget
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import PrivateDesign, curves_column
from fdadp.private.public.column_ranges import NumberColumn
from fdadp.private.release.planned_releases import Releases
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.private.whitened.term_registry import white_term

N, S, CLIP = 40, np.linspace(0, 1, 9), 0.4
PRIOR = PublicPrior()
KINDS = ("zero-out", "add-remove", "replace")
COLUMNS = (curves_column(PRIOR, "X", 0, S, (-4.0, 4.0)), NumberColumn("z", 1, (0.0, 10.0)))
SPECS = (terms.concurrent("X"), terms.ff("X", limits="s<=t"), terms.linear("z"))
DESIGN = PrivateDesign.of(
    PRIOR, COLUMNS, [white_term(s, {c.name: c for c in COLUMNS}, PRIOR, curves=True, t=S) for s in SPECS], S
)


def people(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 1)) + rng.normal(size=(N, S.size))
    return x, rng.uniform(0, 10, N), x * (1 - S) + 0.3 * rng.normal(size=x.shape)


class Seen:
    """One release of a gradient, by a cohort of its own."""

    def __init__(self, table, epsilon=2.0, delta=1e-6, *, adjacency="zero-out", seed=0, **own):
        n = None if adjacency == "add-remove" else N
        privacy = Privacy(epsilon, delta, n=n, adjacency=adjacency, random_state=seed, **own)
        cohort = privacy.cohort(table, mechanism="test", estimator=self, public={})
        self.rows = RowFunctions(DESIGN, (-6.0, 6.0))
        made = make_plan(300.0, 4.0, DESIGN, pure=delta is None)
        self.rows.begin_regression(replace(made, n=float(N), budget_shares={**made.budget_shares, "gradient": 1.0}))
        self.rows.coefficients = np.full(made.weights.shape, 0.1)
        releases = Releases(cohort, self.rows.plan).derive(self.rows)
        pure = delta is None
        f, how = (self.rows.factors, {}) if pure else (self.rows.weighted, {"weights": self.rows.weights})
        value, self.sd = releases.sum_outer("gradient", f, clip=CLIP, number=" 1", **how)
        self.value, self.ledger = value[:, 0], cohort.ledger

    def vectors(self, table):
        """What each row gives, before the kernel's clip."""
        gradient, _ = self.rows.weighted(self.rows.derived(table))
        return gradient * self.rows.weights[:, 0]

    def exact(self, table):
        """The sum without noise, by hand."""
        v = self.vectors(table)
        v = v[np.isfinite(v).all(axis=1)]
        return (v * np.minimum(1, CLIP / np.linalg.norm(v, axis=1))[:, None]).sum(axis=0)


# a
@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("value", [0.0, 1e-12, 3.0])
def test_every_coordinate_has_noise(delta, value):
    """Of people who are all the same, where nothing but noise differs between coordinates."""
    table = (np.full((N, S.size), value), np.zeros(N), np.full((N, S.size), value))
    one, other = (Seen(table, delta=delta, seed=seed) for seed in (1, 2))
    assert one.sd > 0 and one.value.size == one.rows.pairs.size
    assert (one.value != other.value).all()


# b
@pytest.mark.parametrize("adjacency", KINDS)
@pytest.mark.parametrize("delta", [1e-6, None])
def test_nobody_moves_the_sum_by_more_than_was_declared(monkeypatch, adjacency, delta):
    """Odd people in turn, by the integers that the kernel adds up."""
    x, z, y = people()
    odd = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, 4.0]
    for i, value in enumerate(odd):
        x[i], z[i], y[i] = value, value, odd[-1 - i]
    x[7, ::2], y[8, 1:] = np.nan, np.nan
    seen = Seen((x, z, y), delta=delta, adjacency=adjacency)
    v = seen.vectors((x, z, y))
    v = np.where(np.isfinite(v).all(axis=1, keepdims=True), v, 0.0)
    v = v * np.minimum(1, CLIP / np.maximum(np.linalg.norm(v, axis=1), 1e-300))[:, None]
    others = v if adjacency == "replace" else np.zeros((1, v.shape[1]))
    moved = np.linalg.norm(v[:, None] - others[None], axis=2).max()
    assert 0.99 * CLIP < moved <= (2 if adjacency == "replace" else 1) * CLIP * (1 + 1e-9)
    assert seen.ledger.releases[0].clip == pytest.approx(CLIP)
    scale = CLIP * (2 if adjacency == "replace" else 1)
    if delta is None:  # the noise is that of a sensitivity in L2, of a matrix P x 1
        assert seen.sd >= scale * math.sqrt(v.shape[1] + 1) / 2.0 * 0.99


# c
@pytest.mark.parametrize("delta", [1e-6, None])
def test_it_is_exact_only_without_a_budget_worth_the_name(delta):
    table = people()
    near, usual = Seen(table, 1e9 if delta is None else 1e4, delta), Seen(table, 2.0, delta)
    np.testing.assert_allclose(
        near.value, near.exact(table), atol=6 * near.sd + 1e-3
    )  # and what numbers on a lattice lose
    assert near.sd < 0.02 * CLIP
    assert np.abs(usual.value - usual.exact(table)).min() > 1e-6


# d, e
@pytest.mark.parametrize("delta", [1e-6, None])
def test_what_was_spent_is_what_was_promised(delta):
    budget = Budget(2.0, delta)
    seen = Seen(people(), delta=delta, budget=budget)
    assert budget.spent == pytest.approx(budget.total)
    assert [r.name for r in seen.ledger.releases] == ["gradient 1"]


def test_without_bounds_nothing_is_spent():
    budget, (x, _, y) = Budget(2.0, 1e-6), people()
    model = FunctionalRegression(
        "Y ~ concurrent(X)", privacy=Privacy(2.0, 1e-6, n=N, budget=budget), bounds={"Y": (-6, 6)}
    )
    with pytest.raises(PrivacyError, match="bounds must give a public range for X"):
        model.fit({"X": x, "Y": y})
    assert budget.spent == budget.reserved == 0


# f
def test_the_noise_has_the_declared_law():
    """Each coordinate of 40 releases over its declared sd; in pure ε the length has the law of a ball's norm."""
    table = people()
    z = np.array([(s.value - s.exact(table)) / s.sd for s in (Seen(table, seed=seed) for seed in range(40))])
    assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(z.T)[~np.eye(z.shape[1], dtype=bool)]).mean() < 0.16
    pure = [Seen(table, delta=None, seed=seed) for seed in range(40)]
    lengths = [np.linalg.norm(s.value - s.exact(table)) * 2.0 / CLIP for s in pure]
    assert stats.kstest(lengths, stats.gamma(pure[0].value.size).cdf).pvalue > 1e-3


# g
LONG = [pytest.param(*claim, 600, marks=pytest.mark.long) for claim in itertools.product((1.0, 4.0), (1e-6, None))]


@pytest.mark.statistics
@pytest.mark.parametrize(("epsilon", "delta", "draws"), [(1.0, 1e-6, 60), (1.0, None, 60), *LONG])
def test_an_audit_stays_below_the_claim_and_catches_too_little_noise(monkeypatch, epsilon, delta, draws):
    """Scores are projections of the released sum on what the last person adds to it."""
    worst = tuple(values.copy() for values in people())
    worst[0][-1], worst[2][-1] = 4.0, -6.0
    without = tuple(values.copy() for values in worst)
    without[0][-1] = np.nan

    def scores(table, seed):
        found = []
        for draw in range(draws):
            seen = Seen(table, epsilon, delta, seed=seed + draw)
            away = [np.linalg.norm(seen.value - seen.exact(t)) for t in (without, worst)]
            found.append((away[0] ** 2 - away[1] ** 2 if delta else away[0] - away[1]) / seen.sd**2)
        return np.array(found)

    result = black_box_audit(scores(worst, 0), scores(without, 5000), epsilon=epsilon, delta=delta or 0)
    assert result.passed, str(result)
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 30)
    broken = black_box_audit(scores(worst, 0), scores(without, 5000), epsilon=epsilon, delta=delta or 0)
    assert not broken.passed
