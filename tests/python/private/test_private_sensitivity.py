"""Every mechanism of the regression: no person moves a sum by more than was declared, nor anything else at all."""

from __future__ import annotations

import numpy as np
import pytest
from output_perturbation import OutputPerturbation

from fdadp import PublicPrior, simulate_affr
from fdadp.audit.replay import difference, fingerprint
from fdadp.privacy import Budget, Cohort, TapeNoise
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.privacy.replayed_loss import losses
from fdadp.private.release.mechanisms import SHORT
from fdadp.private.rows.row_functions import RowFunctions

MECHANISMS = SHORT | {OutputPerturbation.name: OutputPerturbation}
N, GRID = 40, np.linspace(0, 1, 21)


@pytest.mark.each_once(("mechanism", "epsilon", "pure"))
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(("mechanism", "epsilon"), [*((name, 2.0) for name in MECHANISMS), ("dp-aff", 400.0)])
def test_brute_force_sensitivity_with_nasty_people(mechanism, epsilon, pure, adjacency):
    """Leave out, or exchange, each person in turn, with the tape forced; with a large budget every release there is."""
    epsilon *= 2 if adjacency == "replace" else 1
    simulated = simulate_affr(1, N, 0, n_points=GRID.size)
    X, Y = simulated.X.data_matrix[..., 0], simulated.Y.data_matrix[..., 0]
    X[0], X[1, 3], X[2], Y[3], Y[4, 2], Y[5], X[6], Y[6] = np.nan, np.inf, 1e30, -1e30, np.nan, 1e30, 4.4, 7.9
    X[7, 1:], Y[7, :-2], Y[8] = np.nan, np.nan, np.nan
    design = PublicPrior().design(GRID, GRID, bounds=(-4.5, 4.5))

    def run(keep, tape=None):
        noise = TapeNoise(tape=tape)
        budget = Budget(epsilon, None if pure else 1e-3)
        cohort = Cohort((X[keep], Y[keep]), budget=budget, n=N, noise=noise, adjacency=adjacency)
        plan = MECHANISMS[mechanism]().plan(N, noise_multiplier(cohort.amount, adjacency, pure=pure), design, pure=pure)
        assert epsilon < 100 or all(plan.budget_shares.values())
        rows = RowFunctions(design, (-8.0, 8.0))
        return fingerprint(MECHANISMS[mechanism]().spend(cohort, plan, rows)), noise.entries

    seen, first = run(np.arange(N))
    changes = []
    for person in range(12):
        others = np.delete(np.arange(N), person)
        if adjacency == "replace":
            others = np.insert(others, person, (person + 7) % 12)
        again, entries = run(others, first)
        assert difference(again, seen) == ""
        changes += [loss.change for loss in losses(first, entries)]
    # To exchange a person whose every release is at the bound for one that is opposite takes more than these twelve.
    assert (0.9 if adjacency == "zero-out" else 0.45) < max(changes) <= 1
