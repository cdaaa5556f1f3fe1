"""Brute force: no person moves any release of a model of several terms by more than was declared."""

from __future__ import annotations

import numpy as np
import pytest
from term_audit_tools import observe_terms, people, promised, put, term_model

from fdadp import Privacy
from fdadp.audit.private_regression_audits import CANARIES, neighbours_of
from fdadp.audit.replay import Neighbours, replay_audit

N = 40


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("formula", "delta"),
    [
        ("Y ~ ff(X) + z + C(g)", 1e-3),
        ("y ~ lf(X) + z + w", None),
        ("Y ~ concurrent(X) + ff(V, limits='s<=t') + z", 1e-3),
        ("Y ~ concurrent(X) + ff(V, limits='s<=t') + z", None),
    ],
)
def test_each_person_in_turn(formula, delta):
    """Ten odd people, of whom every third is left out; with a large budget every release there is."""
    table, epsilon = people(N, np.random.default_rng(0)), 400.0
    for who, kind in enumerate(CANARIES):
        put(table, np.array([who]), kind)
    model = term_model(formula, Privacy(epsilon, delta, n=N))
    pairs = []
    for who in range(0, len(CANARIES), 3):  # the rest are beside them
        second = (neighbours_of(table, np.arange(N) != who), None)
        run = lambda data, noise: observe_terms(data, model, noise)  # noqa: E731
        pairs.append(Neighbours(CANARIES[who], run, (table, None), second, promised(epsilon, delta)))
    result = replay_audit(pairs)
    assert result.passed, str(result)
    assert result.finished == len(pairs) and 0.9 < result.changes.max() <= 1
