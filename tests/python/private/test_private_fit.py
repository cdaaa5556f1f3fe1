"""Private fits through the estimator: what they promise, what they hold, how good they are. Seeded noise throughout."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from private_settings import regression_settings

from fdadp import AdditiveFunctionOnFunction, PublicPrior, coverage, simulate_affr
from fdadp.errors import FdadpError, InputError, PrivacyError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import Budget, Ledger, OpenDPNoise, epsilon_from_mu, mu_from
from fdadp.regression.additive.fitted_surface import LAYOUT

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")

BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
N = 1000


@functools.cache
def cohort(scenario=1, seed=0, n=N):
    sim = simulate_affr(scenario=scenario, n=n, seed=seed)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


def settings(**kwargs):
    return regression_settings(**{"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "n": N, "random_state": 7} | kwargs)


def fit(x=None, y=None, *, groups=None, s=None, t=None, **kwargs):
    if x is None:
        x, y = cohort()
    return AdditiveFunctionOnFunction(**settings(**kwargs)).fit(x, y, s=s, t=t, groups=groups)


@pytest.fixture(scope="module")
def model():
    return fit()


VARIANTS = {
    "zero-out": {},
    "replace": {"adjacency": "replace"},
    "add-remove": {"n": None},
    "pure": {"delta": None},
    "pure, add-remove": {"delta": None, "n": None},
    "pure, replace": {"delta": None, "adjacency": "replace"},
}


def arrays_of(model):
    """Every array among the attributes, those of parts included."""
    found, seen = {}, set()

    def visit(name, value):
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, dict):
            for key, item in value.items():
                visit(f"{name}.{key}", item)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                visit(f"{name}.{i}", item)
        elif type(value).__module__.startswith("fdadp") and hasattr(value, "__dict__"):
            for key, item in vars(value).items():
                visit(f"{name}.{key}", item)

    visit("model", model)
    return found


# --- the same, and not the same, noise ---


def test_same_seed_same_fit_and_another_seed_another(model):
    again, other = fit(), fit(random_state=8)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.ledger_ == again.ledger_
    assert np.abs(model.coef_ - other.coef_).max() > 1e-4


@pytest.mark.filterwarnings("ignore::fdadp.errors.NotAccountedWarning")
@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # by chance, in 6 of 10,000 runs
def test_secure_noise_differs_each_time_and_may_be_released():
    one, two = fit(random_state=None, dataset="one cohort"), fit(random_state=None, dataset="another")
    assert np.abs(one.predict(cohort()[0][:5]) - two.predict(cohort()[0][:5])).max() > 1e-6
    assert one.ledger_.for_release and all(r.secure for r in one.ledger_.releases)
    assert OpenDPNoise().description in str(one.ledger_)


def test_seeded_noise_is_not_for_release(model):
    assert not model.ledger_.for_release
    assert "not for release" in model.ledger_.headline and "NOT FOR RELEASE" in str(model.ledger_)


# --- what was spent ---


@pytest.mark.parametrize("variant", VARIANTS)
def test_releases_add_up_to_the_budget_and_no_more(variant):
    fitted = fit(**VARIANTS[variant])
    ledger, pure = fitted.ledger_, "pure" in variant
    assert ledger.private and fitted.privacy_ == fitted.privacy
    assert {r.adjacency for r in ledger.releases} == {fitted.privacy.stated_adjacency}
    shares = [r.share for r in ledger.releases]
    assert sum(shares) == pytest.approx(1.0, abs=1e-8)
    if pure:
        spent = sum(r.epsilon for r in ledger.releases)
        assert 0.99 <= spent <= 1.0
        nuclear = {r.name for r in ledger.releases if r.name.startswith(("gradient ", "covariance of residuals"))}
        assert len(nuclear) == fitted.plan_.rounds + 1
        assert all(r.norm == ("nuclear" if r.name in nuclear else "L1") for r in ledger.releases)
        assert all("aplace" in r.noise for r in ledger.releases)
    else:
        mu = math.hypot(*(r.mu for r in ledger.releases))
        assert mu <= mu_from(1.0, 1e-6)
        spent = epsilon_from_mu(mu, 1e-6)
        assert 0.99 <= spent <= 1.0
    assert ledger.details["spent by its releases, as epsilon"] == pytest.approx(spent)
    assert (ledger.epsilon, ledger.delta) == (1.0, None if pure else 1e-6)
    assert all(r.sd > 0 and r.scale > 0 and r.clip > 0 for r in ledger.releases)
    factor = 2.0 if "replace" in variant else 1.0
    for r in ledger.releases:
        if r.name == "covariance of residuals" or r.name.startswith("energy of "):  # nothing negative: sqrt(2) in L2
            assert r.sensitivity == pytest.approx((factor if pure else min(factor, np.sqrt(2))) * r.clip, rel=1e-5)
        elif not r.name.startswith("calibration"):  # a histogram's two masses: sqrt(2) in L2
            assert r.sensitivity == pytest.approx(factor * r.clip)


def test_a_private_n_is_released_and_used():
    fitted = fit(n=None)
    assert fitted.ledger_.releases[0].name == "number of persons"
    assert fitted.ledger_.details["n"] == "private"
    assert fitted.n_curves_ == round(fitted.plan_.n)
    assert 0 < abs(fitted.plan_.n - N) < 300
    assert str(N) not in str(fitted.ledger_)


def test_a_shared_budget_is_charged_what_each_fit_costs():
    x, y = cohort()
    budget = Budget(1.5, 1e-6)
    for k in (1, 2):
        fitted = fit(x, y, budget=budget)
        assert budget.spent == pytest.approx(k * mu_from(1.0, 1e-6) ** 2 / 2)
        assert fitted.ledger_.details["spent by its releases, as epsilon"] == pytest.approx(1.0, rel=1e-3)
        assert fitted.ledger_.epsilon == 1.5
    with pytest.raises(PrivacyError, match="nothing was spent"):
        fit(x, y, budget=budget)
    assert budget.spent == pytest.approx(2 * mu_from(1.0, 1e-6) ** 2 / 2)
    with pytest.raises(PrivacyError, match="another data set"):
        fit(x.copy(), y, epsilon=0.1, budget=budget)
    named = Budget(2.0, 1e-6)
    fit(x, y, budget=named, dataset="cohort")
    fit(x.copy(), y, budget=named, dataset="cohort")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bounds": None}, "bounds must give a public range for X"),
        ({"bounds": {"X": (0, 1)}}, "public range for Y"),
        ({"epsilon": 0.01}, "n >= 5000"),
        ({"epsilon": 0.09, "adjacency": "replace"}, "at least 100"),
        ({"delta": 1e-2}, "delta must be below 1/n"),
        ({"prior": "smooth"}, "prior must be a PublicPrior"),
        ({"epsilon": 2.0, "budget": Budget(1.0, 1e-6)}, "epsilon must be at most"),
        ({"delta": 1e-7, "budget": Budget(1.0, 1e-6)}, "delta must be that of the shared budget"),
        ({"delta": None, "budget": Budget(1.0, 1e-6)}, "delta must be that of the shared budget"),
        ({"budget": 1.0}, "budget must be a Budget"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_spent(changes, text):
    budget = changes.get("budget", Budget(changes.get("epsilon", 1.0), changes.get("delta", 1e-6)))
    with pytest.raises(FdadpError, match=text):
        fit(**{"budget": budget} | changes)
    if isinstance(budget, Budget):
        assert budget.spent == budget.reserved == 0


def test_groups_and_shapes_are_checked_first():
    x, y = cohort()
    with pytest.raises(InputError, match="groups must have one entry"):
        fit(x, y, groups=np.arange(7))
    with pytest.raises(InputError, match="same number of rows"):
        fit(x, y[:-1])


def test_odd_private_values_raise_and_warn_nothing():
    x, y = (a.copy() for a in cohort())
    x[0], x[1, 3], y[2], y[3, :5] = np.nan, np.inf, 1e30, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd = fit(x, y)
    assert np.isfinite(odd.coef_).all()
    assert odd.ledger_.releases[0] == fit().ledger_.releases[0]


# --- what is in the model ---


def test_designs_of_one_prior_are_computed_once_and_share_no_grid():
    grid = np.linspace(0, 1, 21)
    one, two = (PublicPrior(n_basis_x=6, x_lengths=[0.1, 0.4]).design(grid, grid) for _ in range(2))
    assert one.only is two.only
    one.t[:] = 0
    again = PublicPrior(n_basis_x=6, x_lengths=(0.1, 0.4)).design(grid, grid)
    assert two.t.tolist() == again.t.tolist() == grid.tolist() != one.t.tolist()
    assert PublicPrior(n_basis_x=7).design(grid, grid).only.centre.size > one.only.centre.size


@pytest.mark.parametrize("variant", VARIANTS)
def test_contract_attributes(variant):
    fitted = fit(**VARIANTS[variant])
    prior = PublicPrior()
    k = len(fitted.edf_)
    assert fitted.coef_.shape == (k, prior.n_basis_x, prior.n_basis_s)
    assert fitted.smoothing_parameters_.shape == (k, 2) and np.isnan(fitted.smoothing_parameters_).all()
    assert fitted.eigenfunctions_.shape == (k, 51) and fitted.mean_.shape == (51,)
    assert fitted.eigenvalues_.shape == fitted.explained_variance_ratio_.shape == (k,)
    assert fitted.residual_variance_.shape == (51,) and (fitted.residual_variance_ > 0).all()
    assert fitted.noise_variance_ >= 0
    products = fitted.eigenfunctions_ * quadrature_weights(fitted.t_) @ fitted.eigenfunctions_.T
    np.testing.assert_allclose(products, np.eye(k), atol=1e-8)
    assert fitted.surface([-1.0, 0.0], [0.2, 0.5, 0.9], [0.5]).shape == (2, 3, 1)


def test_nothing_of_the_length_of_the_data_and_no_row_is_kept(tmp_path):
    n = 997  # no other length
    x, y = cohort(n=n)
    fitted = fit(x, y, n=n)
    stored = arrays_of(fitted)
    assert len(stored) > 15
    assert not [name for name, a in stored.items() if n in a.shape]
    content, saved = LAYOUT.read(fitted.save(tmp_path / "model.npz"))
    assert not [name for name, a in saved.items() if n in np.shape(a)]
    private = np.unique(np.concatenate([x.ravel(), y.ravel()]))
    for name, a in (stored | saved).items():
        if np.asarray(a).dtype.kind == "f":
            assert not np.isin(a, private).any(), name
    assert str(x[0, 0]) not in str(content)


def test_saving_and_loading(tmp_path, model):
    again = AdditiveFunctionOnFunction.load(model.save(tmp_path / "model.npz"))
    x = cohort(seed=5)[0][:50]
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    for a, b in zip(again.predict_interval(x, level=0.85), model.predict_interval(x, level=0.85), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.ledger_ == model.ledger_ and again.privacy_ == model.privacy_
    assert str(again.summary()) == str(model.summary())
    pooled = fit(budget=Budget(3.0, 1e-6), prior=PublicPrior(n_basis_x=10))
    loaded = AdditiveFunctionOnFunction.load(pooled.save(tmp_path / "pooled.npz"))
    assert loaded.privacy_.budget is None and loaded.ledger_ == pooled.ledger_


def test_ledger_in_all_its_forms(model):
    ledger = model.ledger_
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert repr(ledger) == str(ledger)
    text, page = str(ledger), ledger._repr_html_()
    for form in (text, page):
        assert "differentially private end to end, epsilon = 1, delta = 1e-06" in form
        for word in ("Not covered: timing", "zero-out", "person", "bounds of X", "grid of Y", "opendp", "gradient 1"):
            assert word in form
    assert max(map(len, text.splitlines())) <= 130
    assert page.count("<tr>") == page.count("</tr>") and page.count("<table>") == page.count("</table>")


def test_summary(model):
    text = str(model.summary())
    assert "empirical Bayes" in text and "epsilon = 1, delta = 1e-06, adjacency zero-out" in text
    assert "not for release" in text and "nan" not in text.lower()
    assert "lambda" not in text


# --- units and grids ---


def test_units_do_not_matter(model):
    """Powers of two change no bit of the lattice; then the same seed gives the same fit."""
    x, y = cohort()
    a, b = 4.0, 0.5
    other = fit(a * x, b * y, bounds={"X": (a * -4.5, a * 4.5), "Y": (b * -8, b * 8)})
    np.testing.assert_allclose(other.predict(a * x[:20]) / b, model.predict(x[:20]), rtol=1e-7, atol=1e-7)
    shifted = fit(x + 16, y - 32, bounds={"X": (11.5, 20.5), "Y": (-40, -24)})
    np.testing.assert_allclose(shifted.predict(x[:20] + 16) + 32, model.predict(x[:20]), rtol=1e-5, atol=1e-5)
    low, high = other.predict_interval(a * x[:5])
    reference = model.predict_interval(x[:5])
    np.testing.assert_allclose((high - low) / b, reference[1] - reference[0], rtol=1e-6)


def test_the_domain_does_not_matter(model):
    x, y = cohort()
    other = fit(x, y, s=np.linspace(100, 200, 51), t=np.linspace(0, 24, 51))
    np.testing.assert_allclose(other.predict(x[:20]), model.predict(x[:20]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        other.surface([0.5], [150.0], [12.0]) * 100, model.surface([0.5], [0.5], [0.5]), rtol=1e-6
    )
    assert other.mean_ == pytest.approx(model.mean_)


def test_predicting_on_other_grids(model):
    x = cohort(seed=5)[0][:20]
    fine = np.linspace(0, 1, 101)
    at_fine = model.predict(x, t=fine)
    np.testing.assert_allclose(at_fine[:, ::2], model.predict(x), atol=1e-8)
    low, high = model.predict_interval(x, t=fine)
    np.testing.assert_allclose((low + high) / 2, at_fine, atol=1e-10)
    finer = np.stack([np.interp(fine, np.linspace(0, 1, 51), row) for row in x])
    np.testing.assert_allclose(model.predict(finer, s=fine), model.predict(x), atol=0.05)


def test_curves_come_back_as_they_went_in():
    sim = simulate_affr(scenario=1, n=N, seed=0)
    fitted = fit(sim.X, sim.Y)
    assert type(fitted.predict(sim.X[:3])).__name__ == "FDataGrid"


# --- people with several rows ---


def test_duplicated_rows_change_nothing(model):
    """A person's contribution is the mean over its rows."""
    x, y = cohort()
    repeats = np.random.default_rng(0).integers(1, 4, N)
    person = np.repeat(np.arange(N), repeats)
    order = np.random.default_rng(1).permutation(len(person))
    many = fit(x[person][order], y[person][order], groups=person[order])
    assert many.ledger_.details["unit"] == "person (all rows with one id in persons)"
    assert model.ledger_.details["unit"] == "row (a whole person only where nobody has several)"
    # One step of the lattice may differ, where a mean of equal numbers rounds.
    np.testing.assert_allclose(many.predict(x[:20]), model.predict(x[:20]), atol=1e-4)


def test_groups_of_text_and_private_n():
    x, y = cohort()
    names = np.array([f"person {i // 2}" for i in range(N)])
    fitted = fit(x, y, groups=names, n=None)
    assert abs(fitted.plan_.n - N / 2) < 250


# --- how good ---


def quality(scenario, seeds, **kwargs):
    results = []
    for seed in seeds:
        new = simulate_affr(scenario=scenario, n=1000, seed=1000 + seed)
        x, y = new.X.data_matrix[..., 0], new.Y.data_matrix[..., 0]
        fitted = fit(*cohort(scenario, seed), random_state=seed, **kwargs)
        error = ((fitted.predict(x) - new.mean_function) ** 2).sum()
        share = 1 - error / ((new.mean_function - new.mean_function.mean(axis=0)) ** 2).sum()
        results.append((share, *(coverage(y, *fitted.predict_interval(x, level=p)) for p in (0.85, 0.95))))
    return np.mean(results, axis=0)


@pytest.mark.statistics
@pytest.mark.parametrize(("scenario", "least"), [(1, 0.90), (2, 0.85), (3, 0.92)])
def test_share_and_coverage_at_a_thousand_people_and_epsilon_one(scenario, least):
    share, at_85, at_95 = quality(scenario, range(10, 13))
    assert share >= least
    assert at_85 == pytest.approx(0.85, abs=0.04)
    assert at_95 == pytest.approx(0.95, abs=0.03)


@pytest.mark.statistics
@pytest.mark.parametrize(("variant", "least"), [("add-remove", 0.88), ("replace", 0.80), ("pure", 0.75)])
def test_other_promises_are_useful_too(variant, least):
    assert quality(1, range(10, 12), **VARIANTS[variant])[0] >= least
