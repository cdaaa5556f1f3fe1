"""Any term can be fitted privately: its features are whitened, measured with noise, and predict in units of X."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, Privacy, PublicPrior
from fdadp._common.typing import FloatArray
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import Budget, Cohort, SeededNoise, rowwise_matmul
from fdadp.privacy.account.epsilon_mu_rho import noise_multiplier
from fdadp.private.model_from_releases import as_surface
from fdadp.private.plan.budget_plan import Located
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.plan.private_design import FeatureGroups
from fdadp.private.public.column_ranges import unit_grid
from fdadp.private.public.gaussian_process_prior import CurvePrior
from fdadp.private.release.dp_aff import fit_dp_aff
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.private.whitened.of_additive_surfaces import WhiteSurface
from fdadp.private.whitened.term_registry import MAKERS
from fdadp.private.whitened.white_term import WhiteTerm, white_axes
from fdadp.terms.spec import TermSpec

UNIT = np.linspace(0, 1, 21)


def mean_and_end(x):
    mean = rowwise_matmul(x, np.full((x.shape[1], 1), 1 / x.shape[1]))
    return np.hstack((mean, x[:, -1:]))


@dataclass(frozen=True)
class MeanAndEnd(TermSpec):
    """Mean of X over the domain, and its last value."""

    name = "mean_and_end(X)"
    columns = ("X",)

    def fixed(self, seen, t):
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class WhiteMeanAndEnd(WhiteTerm):
    centre: FloatArray
    whitening: FloatArray

    @classmethod
    def on(cls, grid, prior):
        rows = mean_and_end(prior.x.standard(unit_grid(grid)))
        centre, whitening, variances = white_axes(rows, np.eye(2), 2)
        shares = variances / variances.sum()
        return cls(name=MeanAndEnd.name, columns=("X",), shares=shares, centre=centre, whitening=whitening)

    def features(self, seen, count):
        return rowwise_matmul(mean_and_end(seen["X"].values) - self.centre, self.whitening[:, :count].copy())

    def effect(self, columns, count, *points):
        raise NotImplementedError


def curves(n, seed):
    """Curves far from the unit scale, on [10, 12], and responses to their mean and last value."""
    rng = np.random.default_rng(seed)
    s, t = 10 + 2 * UNIT, np.linspace(0, 3, 15)
    x = 50 + 5 * (rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * UNIT + 0.3 * rng.normal(size=(n, UNIT.size)))
    f = np.outer((x.mean(axis=1) - 50) / 5, np.cos(t)) + np.outer((x[:, -1] - 50) / 5, np.sin(t))
    return s, t, x, f


def test_a_term_that_nobody_knows_is_fitted_privately_and_predicts(monkeypatch):
    monkeypatch.setitem(
        MAKERS, MeanAndEnd, lambda asked, spec: WhiteMeanAndEnd.on(asked.curves_of("X").grid, asked.prior)
    )
    s, t, x, f = curves(5000, 0)
    y = f + 0.3 * np.random.default_rng(1).normal(size=f.shape)
    privacy, bounds = Privacy(2.0, 1e-6, n=5000, random_state=0), {"X": (30.0, 70.0), "Y": (-8.0, 8.0)}
    model = FunctionalRegression([MeanAndEnd()], privacy=privacy, bounds=bounds)
    model.fit({"X": x, "Y": y}, grids={"X": s, "Y": t})
    _, _, new, wanted = curves(500, 2)
    predicted = model.predict({"X": new})
    assert 1 - ((predicted - wanted) ** 2).mean() / ((wanted - wanted.mean(axis=0)) ** 2).mean() > 0.9
    low, high = model.predict_interval({"X": new}, 0.95)
    seen = wanted + 0.3 * np.random.default_rng(3).normal(size=wanted.shape)
    assert 0.92 < ((low <= seen) & (seen <= high)).mean() < 0.99
    assert model.ledger_.private


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_the_additive_term_is_fitted_privately_and_predicts():
    s, t, x, f = curves(5000, 0)
    y = f + 0.3 * np.random.default_rng(1).normal(size=f.shape)
    design = PublicPrior().design(s, t, bounds=(30.0, 70.0))
    assert design.feature_shares.sum() == pytest.approx(1.0)
    cohort = Cohort((x, y), budget=Budget(2.0, 1e-6), n=5000, noise=SeededNoise(0))
    plan = make_plan(5000.0, noise_multiplier(cohort.amount, "zero-out", pure=False), design, pure=False)
    found = as_surface(fit_dp_aff(cohort, plan, RowFunctions(design, (-8.0, 8.0))), design, plan)
    fitted = AdditiveFunctionOnFunction.made_of(found, Curves(x, s), Curves(y, t))
    _, _, new, wanted = curves(500, 2)
    predicted = fitted.predict(new)
    np.testing.assert_array_equal(fitted.t_, t)
    assert 1 - ((predicted - wanted) ** 2).mean() / ((wanted - wanted.mean(axis=0)) ** 2).mean() > 0.9
    low, high = fitted.predict_interval(new, 0.95)
    seen = wanted + 0.3 * np.random.default_rng(3).normal(size=wanted.shape)
    assert 0.92 < ((low <= seen) & (seen <= high)).mean() < 0.99
    assert cohort.left == pytest.approx(0, abs=1e-6) and cohort.ledger.private


def test_terms_are_whitened_apart_and_merged_by_their_shares():
    prior = PublicPrior()
    sample = np.clip(prior.x.curves(UNIT), -4, 4)
    terms = [WhiteSurface.on("sff(X)", "X", UNIT, prior), WhiteMeanAndEnd.on(UNIT, prior)]
    both = FeatureGroups.merged(terms, 20)
    assert both.shares.sum() == pytest.approx(1.0) and (np.diff(both.shares) <= 0).all()
    assert both.shares.size == 20 and both.counts(20) == [18, 2] and both.counts(1) in ([1, 0], [0, 1])
    seen = {"X": Curves(sample, UNIT)}
    features = both.features(seen, 20)
    for i, term in enumerate(terms):
        np.testing.assert_array_equal(features[:, both.owner == i], term.features(seen, both.counts(20)[i]))
        one = FeatureGroups.merged([term], 20)
        np.testing.assert_array_equal(one.features(seen, 2), term.features(seen, 2))


def test_a_plan_needs_shares_and_no_more():
    shares = SimpleNamespace(
        feature_shares=np.array([0.6, 0.3, 0.1]),
        response_shares=np.array([1.0]),
        unit_t=UNIT,
        located=Located(),
        shares_of_pairs=None,
    )
    plan = make_plan(1000.0, 4.0, shares, pure=False)
    assert plan.n_outputs == 1 and 2 <= plan.n_features <= 4
    total = sum(share * plan.times(key) for key, share in plan.budget_shares.items())
    assert total == pytest.approx(1.0)


def test_the_parts_of_a_prior_are_those_of_the_whole():
    prior = PublicPrior(
        x_lengths=(0.1, 0.2), x_level=0.3, surface_x=0.2, linear=1.0, y_length=0.4, n_response=5, seed=3
    )
    assert prior.x == CurvePrior(lengths=(0.1, 0.2), level=0.3, seed=3)
    unit = np.linspace(0, 1, 9)
    assert prior.response_functions(unit, np.full(9, 1 / 9))[0].shape == (9, 5)
    covariance = prior.surface_covariance(6, 5)
    steeper = replace(prior, linear=2.0).surface_covariance(6, 5)
    at = (np.arange(6) - 1) / 3 - 0.5
    np.testing.assert_allclose(np.diag(steeper - covariance), np.repeat(at**2, 5) * (1 + prior.main), rtol=1e-12)
    np.testing.assert_allclose(covariance, covariance.T)
    assert covariance.shape == (30, 30) and np.linalg.eigvalsh(covariance).min() > -1e-9
