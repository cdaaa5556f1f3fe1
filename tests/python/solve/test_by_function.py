"""Matrices by function: the whole they stand for, and variances without it."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy, simulate_affr, terms
from fdadp.solve.fit.additive_fit import ByFunction

GRID = np.linspace(0, 1, 21)


def symmetric(rng, *shape):
    root = rng.normal(size=shape)
    return root @ np.swapaxes(root, -1, -2)


def test_the_whole_is_that_of_independent_functions():
    """Coefficients on functions, drawn and then put into the order of the long form."""
    rng = np.random.default_rng(0)
    k, p, c = 3, 4, 5
    held = ByFunction(
        symmetric(rng, k, 1 + p, 1 + p), rng.uniform(1, 2, k), rng.normal(size=p), rng.normal(size=(c, k)), np.eye(c)
    )
    independent = np.zeros((c + k * (1 + p),) * 2)
    to_form = np.zeros((c + p * k, len(independent)))
    independent[:c, :c], to_form[:c, :c] = held.rest, np.eye(c)
    for i in range(k):
        at = slice(c + i * (1 + p), c + (i + 1) * (1 + p))
        independent[at, at] = held.sizes[i] * held.blocks[i]
        to_form[:c, at] = np.outer(held.turn[:, i], np.append(1.0, -held.centre))
        to_form[c + i :: k, at] = np.eye(p, 1 + p, 1)
    whole = to_form @ independent @ to_form.T
    np.testing.assert_allclose(held.matrix, whole, rtol=1e-12, atol=1e-12)
    mean, features = rng.normal(size=(7, c)), rng.normal(size=(6, p))
    for row, found in zip(features, held.variances(mean, features), strict=True):
        rows = np.hstack((mean, np.einsum("p,tk->tpk", row, mean @ held.turn).reshape(7, -1)))
        np.testing.assert_allclose(found, ((rows @ whole) * rows).sum(axis=1))


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_standard_errors_are_those_of_the_whole(private):
    sim = simulate_affr(1, 200, 3, n_points=21)
    x, y = (curves.data_matrix[..., 0] for curves in (sim.X, sim.Y))
    settings = {"response_basis": "eigen", "n_components": 2, "se": "iid", "smoothing": [1.0, 2.0]}
    if private:
        guarantee = Privacy(20.0, 1e-5, n=200, random_state=0)
        settings = {"privacy": guarantee, "bounds": {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}}
    model = FunctionalRegression([terms.sff("X", k=(5, 5, 5))], **settings)
    model.fit({"X": x, "Y": y}, grids={"X": GRID, "Y": GRID})
    fit, records = model.fitted_.fit, model.fitted_.records({"X": x[:9]}, None)
    assert isinstance(fit.spread, ByFunction) and isinstance(fit.information, ByFunction)
    for t in (None, np.array([0.33, 0.71])):
        wanted = fit.form.standard_errors(records, fit.bayesian_covariance, t)
        np.testing.assert_allclose(fit.standard_errors(records, t), wanted, rtol=1e-7)
    if not private:  # the inverse is that of the information with its penalties
        penalty = np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties)
        np.testing.assert_allclose(fit.inverse @ (fit.gram + penalty), np.eye(len(fit.gram)), atol=1e-6)
        rows = np.concatenate(list(fit.form.rows(model.fitted_.records({"X": x}, None))))
        np.testing.assert_allclose(fit.mean_variance(fit.inverse), ((rows @ fit.inverse) * rows).sum(1).mean())
