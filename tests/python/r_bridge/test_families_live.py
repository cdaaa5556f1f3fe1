"""Families, weights and offsets beside mgcv itself on fresh data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refund_cases import far, one
from sklearn.base import clone

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.functional.quadrature import quadrature_weights
from fdadp.solve.form.ordered_categories import Ordered
from r_bridge.gam_by_formula import fit_gam

pytestmark = pytest.mark.mgcv

FAMILIES = {
    "poisson": "poisson()",
    "binomial": "binomial()",
    "gamma": "Gamma(link = 'log')",
    "gaussian": "gaussian()",
    "negative_binomial": "negbin(1.7)",
    "scaled_t": "scat(theta = c(4, 0.5))",
}


def named(family: str) -> str:
    """As this package names it, with the parameters that are given to mgcv."""
    return {"negative_binomial": "negative_binomial(1.7)", "scaled_t": "scaled_t(4, 0.5)"}.get(family, family)


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n = 200
    z, x, o = rng.uniform(-2, 2, n), rng.normal(size=n), rng.uniform(0, 1, n)
    mean = np.exp(np.sin(2 * z) + 0.4 * x)
    return {
        "z": z,
        "x": x,
        "o": o,
        "trials": rng.integers(1, 5, n).astype(float),
        "poisson": rng.poisson(mean * np.exp(o)).astype(float),
        "negative_binomial": rng.poisson(mean * np.exp(o) * rng.gamma(1.7, 1 / 1.7, n)).astype(float),
        "binomial": (rng.uniform(size=n) < mean / (1 + mean)).astype(float),
        "gamma": rng.gamma(3.0, mean / 3.0),
        "gaussian": np.log(mean) + 0.5 * rng.normal(size=n),
        "scaled_t": np.log(mean) + 0.5 * rng.standard_t(4, n),
    }


TERMS = [terms.s("z", bs="ps", k=9, m=(2, 2)), terms.linear("x")]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_numbers(numbers, family, weighted):
    """Parametric terms come after the smooth here and before it in mgcv: smoothing parameters are in one order."""
    data = dict(numbers)
    if family == "binomial" and weighted:  # shares of trials
        rng = np.random.default_rng(4)
        p = 1 / (1 + np.exp(-np.sin(2 * data["z"])))
        data["binomial"] = rng.binomial(data["trials"].astype(int), p) / data["trials"]
    weights = data["trials"] if weighted else None
    formula = f'{family} ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x + offset(o)'
    sp = fit_gam(formula, data, family=FAMILIES[family], weights=weights)["sp"]
    theirs = fit_gam(formula, data, data, family=FAMILIES[family], weights=weights, sp=sp)

    def fit(smoothing):
        model = ScalarRegression(TERMS, response=family, family=named(family), smoothing=smoothing)
        return model.fit(data, weights=weights, offset="o")

    same = fit(sp)
    assert far(same.fitted_values_, theirs["fitted"]) < 1e-9
    if family != "scaled_t" or not weighted:  # mgcv 1.8-41 leaves weights out of the expected information of scat()
        assert far(same.predict_se(data, kind="iid", offset="o"), theirs["predicted_se"]) < 1e-7
        assert far(same.edf_, theirs["edf_total"]) < 1e-8
    assert far(same.sigma2_, theirs["sig2"]) < 1e-8
    assert far(same.deviance_, theirs["deviance"]) < 1e-8
    own = fit("reml")
    assert own.criterion_ <= same.criterion_ + 1e-6 * (1 + abs(same.criterion_))
    assert far(own.fitted_values_, theirs["fitted"]) < 1e-3
    # mgcv's coordinates change the score by a constant; so differences of it are compared.
    other = fit_gam(formula, data, family=FAMILIES[family], weights=weights, sp=10 * sp)
    rise = fit(10 * sp).criterion_ - same.criterion_
    assert abs(rise - (one(other["score"]) - one(theirs["score"]))) < 1e-6 * (1 + abs(one(other["score"])))


@pytest.mark.filterwarnings("ignore:R. Fitting terminated with step failure")  # at the limit of rounding
@pytest.mark.parametrize("family", FAMILIES)
def test_what_smoothing_adds(numbers, family):
    """predict(unconditional = TRUE) and AIC, at optima that are the same to 1e-11 of the score."""
    formula = f'{family} ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x'
    theirs = fit_gam(formula, numbers, numbers, family=FAMILIES[family], tolerance=1e-11)
    own = ScalarRegression(TERMS, response=family, family=named(family)).fit(numbers)
    assert far(own.predict_se(numbers, kind="unconditional"), theirs["unconditional_se"]) < 1e-5
    assert far(own.predict_se(numbers, kind="iid"), theirs["unconditional_se"]) > 0.005
    # mgcv's gamma log-likelihood has another estimate of the scale.
    assert abs(own.aic_ - one(theirs["aic"])) < (0.5 if family == "gamma" else 1e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_terms_of_the_variance_are_near_mgcvs(seed):
    """gaulss() minimises another criterion, and its standard deviations are .01 or more: near, not equal."""
    rng = np.random.default_rng(seed)
    z, x = rng.uniform(size=300), rng.normal(size=300)
    data = {"z": z, "x": x, "y": np.sin(6 * z) + 0.5 * x + np.exp(-1 + 1.2 * z) * rng.normal(size=300)}
    smooth = 's(z, bs = "ps", k = 10, m = c(2, 2))'
    theirs = fit_gam([f"y ~ {smooth} + x", f"~ {smooth}"], data, data, family="gaulss()")
    mean, rate = theirs["predicted"].reshape(2, -1)
    own = ScalarRegression("y ~ s(z, bs='ps', m=(2, 2)) + x", variance="~ s(z, bs='ps', m=(2, 2))").fit(data)
    sd = own.predict(data, type="sd")
    assert np.abs(own.fitted_values_ - mean).max() < 0.05 * np.std(mean)
    assert np.abs(np.log(sd * rate)).max() < 0.15
    assert np.abs(own.predict_se(data) / theirs["predicted_se"].reshape(2, -1)[0] - 1).max() < 0.1


@pytest.mark.filterwarnings("ignore:R. Fitting terminated with step failure")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_aic_counts_theta(seed):
    """nb(): mgcv also counts that smoothing follows θ."""
    data = counts_of(200, 2.0, seed)
    theirs = fit_gam('y ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x', data, data, family="nb()", tolerance=1e-11)
    own = ScalarRegression(TERMS, family="negative_binomial").fit(data)
    assert abs(own.aic_ - one(theirs["aic"])) < 1e-3
    assert far(own.predict_se(data, kind="unconditional"), theirs["unconditional_se"]) < 1e-4


def fitted_curves(family: str) -> tuple[Any, Any, str, dict[str, Any]]:
    """Our fit at its optimum, what was observed, and the long form for mgcv."""
    rng = np.random.default_rng(5)
    s, t, n = np.linspace(0, 1, 12), np.linspace(0, 1, 20), 25
    x = rng.normal(size=(n, 4)) @ np.array([np.ones(12), np.sin(3 * s), np.cos(3 * s), s])
    z = rng.normal(size=n)
    eta = np.outer(x.mean(axis=1), np.sin(3 * t)) + np.outer(z, 0.3 * t) + 0.3
    draws = {
        "binomial": lambda: (rng.uniform(size=eta.shape) < 1 / (1 + np.exp(-eta))).astype(float),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(1.7, 1 / 1.7, eta.shape)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gaussian": lambda: eta + rng.normal(size=eta.shape),
        "scaled_t": lambda: eta + 0.5 * rng.standard_t(4, eta.shape),
    }
    y = draws[family]()
    y[rng.uniform(size=y.shape) < 0.1] = np.nan
    y[0, 0] = y[0, -1] = 1.0
    data = {"X": x, "z": z, "Y": y}
    make = [terms.ff("X"), terms.linear("z")]
    ours = FunctionalRegression(make, family=named(family), k="refund").fit(data, grids={"X": s, "Y": t})
    ours.data = data
    seen = ~np.isnan(y).ravel()
    long = {"t": np.tile(t, n), "y": y.ravel(), "z": np.repeat(z, t.size), "S": np.tile(s, (n * t.size, 1))}
    long |= {"U": np.repeat(long["t"][:, None], s.size, axis=1)}
    long |= {"L": np.repeat(quadrature_weights(s) * x, t.size, axis=0)}
    long = {name: column[seen] for name, column in long.items()}
    mean = 's(t, bs = "ps", k = 20, m = c(2, 1))'
    surface = 'te(S, U, by = L, bs = "ps", k = c(5, 5), m = list(c(2, 1), c(2, 1)))'
    formula = f'y ~ {mean} + {surface} + s(t, by = z, bs = "ps", k = 5, m = c(2, 1))'

    return ours, seen, formula, long


@pytest.mark.filterwarnings("ignore:R. gam.fit3 algorithm did not converge")  # of gamma: to 1e-11, but to 1e-9 it did
@pytest.mark.parametrize("family", FAMILIES)
def test_curves_with_gaps(family):
    ours, seen, formula, long = fitted_curves(family)
    found = fit_gam(formula, long, long, family=FAMILIES[family], sp=ours.smoothing_parameters_)
    assert far(np.asarray(ours.fitted_values_).ravel()[seen], found["fitted"]) < 1e-9
    se = ours.predict_se({name: ours.data[name] for name in "Xz"}, kind="iid")
    assert far(np.asarray(se).ravel()[seen], found["predicted_se"]) < 1e-8
    assert far(ours.edf_, found["edf_total"]) < 1e-9
    assert far(ours.sigma2_, found["sig2"]) < 1e-9
    assert abs(ours.criterion_ - one(found["score"])) < 1e-6 * (1 + abs(ours.criterion_))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:R")
@pytest.mark.parametrize("family", FAMILIES)
def test_our_optimum_is_not_above_theirs(family):
    ours, _, formula, long = fitted_curves(family)
    found = fit_gam(formula, long, family=FAMILIES[family])
    assert ours.criterion_ <= one(found["score"]) + 1e-6 * (1 + abs(ours.criterion_))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:R")
def test_long_tails_of_curves_are_mgcvs():
    """scat(): ν and σ by REML beside smoothing; our score is not above that at mgcv's smoothing, ν and σ."""
    given, seen, formula, long = fitted_curves("scaled_t")
    theirs = fit_gam(formula, long, long, family="scat()", tolerance=1e-11)
    nu, sigma = theirs["theta"].tolist()
    grids = {"X": np.linspace(0, 1, 12), "Y": np.linspace(0, 1, 20)}
    make = FunctionalRegression([terms.ff("X"), terms.linear("z")], family="scaled_t", k="refund")
    own = clone(make).fit(given.data, grids=grids)
    make.set_params(family=f"scaled_t({nu!r}, {sigma!r})", smoothing=theirs["sp"])
    same = make.fit(given.data, grids=grids)
    assert own.criterion_ <= same.criterion_ + 1e-7 * (1 + abs(same.criterion_))
    assert abs(same.criterion_ - one(theirs["score"])) < 1e-6 * (1 + abs(same.criterion_))
    for model, fitted, errors in ((same, 1e-9, 1e-8), (own, 1e-6, 1e-5)):
        assert far(np.asarray(model.fitted_values_).ravel()[seen], theirs["fitted"]) < fitted
        se = model.predict_se({name: given.data[name] for name in "Xz"}, kind="iid")
        assert far(np.asarray(se).ravel()[seen], theirs["predicted_se"]) < errors
        assert far(model.edf_, theirs["edf_total"]) < errors
    assert far(own.fitted_.family.known, [nu, sigma]) < 1e-6
    assert abs(own.aic_ - one(theirs["aic"])) < 1e-3


def counts_of(n: int, theta: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z, x = rng.uniform(-2, 2, n), rng.normal(size=n)
    mean = np.exp(1 + np.sin(2 * z) + 0.3 * x)
    rate = mean * rng.gamma(theta, 1 / theta, n) if np.isfinite(theta) else mean
    return {"z": z, "x": x, "y": rng.poisson(rate).astype(float)}


@pytest.mark.filterwarnings("ignore:R")  # mgcv's search for θ at infinity, and of smoothing at 1e-11
@pytest.mark.parametrize(("n", "theta"), [(300, 2.0), (300, 0.3), (300, 20.0), (60, 2.0), (2000, 1.0), (300, np.inf)])
def test_theta_is_mgcvs(n, theta):
    """nb(): the same θ, coefficients and standard errors; our score is not above that at mgcv's smoothing and its θ."""
    data = counts_of(n, theta, n)
    formula = 'y ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x'
    theirs = fit_gam(formula, data, data, family="nb()", tolerance=1e-11)
    own = ScalarRegression(TERMS, family="negative_binomial").fit(data)
    same = ScalarRegression(TERMS, family="negative_binomial", smoothing=theirs["sp"]).fit(data)
    assert own.criterion_ <= same.criterion_ + 1e-7 * (1 + abs(same.criterion_))
    loose = 1e-3 if np.isinf(theta) else 1e-6  # mgcv stops where θ is some thousands
    assert far(own.fitted_values_, theirs["fitted"]) < loose
    assert far(own.predict_se(data, kind="iid"), theirs["predicted_se"]) < loose
    assert far(own.edf_, theirs["edf_total"]) < loose
    if np.isfinite(theta):
        assert far(own.fitted_.family.theta, one(theirs["theta"])) < 1e-6
    else:
        assert min(own.fitted_.family.theta, one(theirs["theta"])) > 1e4


@pytest.mark.filterwarnings("ignore:R")  # mgcv's search at its ends, and of smoothing at 1e-11
@pytest.mark.parametrize(("n", "nu"), [(60, 4.0), (100, 3.2), (300, 6.0), (1000, 5.0), (300, 2.5), (300, np.inf)])
def test_long_tails_are_mgcvs(n, nu):
    """scat(): ν and σ, means, standard errors, AIC; our score is not above that at mgcv's smoothing, ν and σ."""
    rng = np.random.default_rng(n)
    z, x = rng.uniform(-2, 2, n), rng.normal(size=n)
    errors = rng.normal(size=n) if np.isinf(nu) else rng.standard_t(nu, n)
    data = {"z": z, "x": x, "y": np.sin(2 * z) + 0.4 * x + 0.5 * errors}
    formula = 'y ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x'
    theirs = fit_gam(formula, data, data, family="scat()", tolerance=1e-11)
    own = ScalarRegression(TERMS, family="scaled_t").fit(data)
    their_nu, their_sigma = theirs["theta"].tolist()
    family = f"scaled_t({their_nu!r}, {their_sigma!r})"
    same = ScalarRegression(TERMS, family=family, smoothing=theirs["sp"]).fit(data)
    assert far(same.fitted_values_, theirs["fitted"]) < 1e-6
    assert own.criterion_ <= same.criterion_ + 1e-7 * (1 + abs(same.criterion_))
    assert far(own.fitted_values_, theirs["fitted"]) < 1e-6
    assert far(own.predict_se(data, kind="iid"), theirs["predicted_se"]) < 1e-6
    assert far(own.predict_se(data, kind="unconditional"), theirs["unconditional_se"]) < 1e-4
    assert far(own.edf_, theirs["edf_total"]) < 1e-6
    assert far(own.fitted_.family.sigma, their_sigma) < 1e-6
    if their_nu < 1e5:
        assert far(own.fitted_.family.nu, their_nu) < 1e-6
        assert abs(own.aic_ - one(theirs["aic"])) < 1e-3
    else:  # mgcv's log Γ has no digits left
        assert own.fitted_.family.nu > 1e5
        assert abs(own.aic_ - one(theirs["aic"])) < 0.1


def categories_of(n: int, R: int, seed: int, scale: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z, x = rng.uniform(-2, 2, n), rng.normal(size=n)
    latent = scale * (1.5 * np.sin(2 * z) + 0.4 * x) + rng.logistic(size=n)
    cuts = np.linspace(-2, 2, R - 1) * max(scale, 1)
    return {"z": z, "x": x, "o": rng.uniform(0, 1, n), "y": 1.0 + np.digitize(latent, cuts)}


def chances(found: dict[str, Any], R: int) -> Any:
    return found["predicted"].reshape(R, -1).T


def errors_of_chances(found: dict[str, Any], R: int) -> Any:
    return found["predicted_se"].reshape(R, -1).T


@pytest.mark.parametrize("weighted", [False, True])
def test_ordered_categories_with_given_cut_points(weighted):
    """ocat(theta =): coefficients, probabilities, their errors, edf and deviances at the same smoothing parameters."""
    data, sp = categories_of(300, 5, 2), [1.3]
    cuts = np.array([-1.0, 0.1, 0.8, 2.5])
    weights = np.random.default_rng(1).integers(1, 4, 300).astype(float) if weighted else None
    formula = 'y ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x + offset(o)'
    family = f"ocat(theta = c({', '.join(map(repr, np.diff(cuts).tolist()))}))"
    theirs = fit_gam(formula, data, data, family=family, weights=weights, sp=sp)
    make = ScalarRegression(TERMS, family=Ordered(tuple(cuts)), smoothing=sp)
    own = make.fit(data, weights=weights, offset="o")
    assert far(own.predict(data, type="link", offset="o"), theirs["fitted"]) < 1e-9
    chance = own.predict_proba(data, offset="o")
    assert far(chance, chances(theirs, 5)) < 1e-9
    assert far(own.edf_, theirs["edf_total"]) < 1e-9
    assert far(own.deviance_, theirs["deviance"]) < 1e-9
    assert far(own.predict_se(data, type="probs", offset="o"), errors_of_chances(theirs, 5)) < 1e-8


@pytest.mark.filterwarnings("ignore:R")  # mgcv's search at 1e-11
@pytest.mark.parametrize(
    ("n", "R", "scale"),
    [(60, 3, 1.0), (300, 3, 1.0), (300, 5, 2.0), (300, 10, 1.0), (2000, 4, 1.0), (300, 4, 0.0), (150, 4, 6.0)],
)
def test_cut_points_are_mgcvs(n, R, scale):
    """ocat(R =): cut points, probabilities, edf; our score is not above that at mgcv's smoothing and cut points."""
    data = categories_of(n, R, n + R, scale)
    formula = 'y ~ s(z, bs = "ps", k = 9, m = c(2, 2)) + x'
    theirs = fit_gam(formula, data, data, family=f"ocat(R = {R})", tolerance=1e-11)
    own = ScalarRegression(TERMS, family="ordered").fit(data)
    same = ScalarRegression(TERMS, family=Ordered(tuple(theirs["theta"].tolist())), smoothing=theirs["sp"]).fit(data)
    assert far(same.predict_proba(data), chances(theirs, R)) < 1e-9
    assert far(same.predict_se(data, type="probs", kind="iid"), errors_of_chances(theirs, R)) < 1e-6
    assert own.criterion_ <= same.criterion_ + 1e-9 * (1 + abs(same.criterion_))
    assert far(own.fitted_.family.cuts, theirs["theta"]) < 1e-5
    assert far(own.predict_proba(data), chances(theirs, R)) < 1e-6
    assert far(own.edf_, theirs["edf_total"]) < 1e-6
    assert far([own.deviance_, own.null_deviance_], [one(theirs["deviance"]), one(theirs["null_deviance"])]) < 1e-6
    assert abs(own.aic_ - one(theirs["aic"])) < 1e-3


@pytest.mark.filterwarnings("ignore:R")
def test_ordered_categories_by_curves():
    """A functional linear term, as mgcv sums it over matrices."""
    rng, s, n = np.random.default_rng(5), np.linspace(0, 1, 20), 250
    X = rng.normal(size=(n, 4)) @ np.array([np.ones(20), np.sin(3 * s), np.cos(3 * s), s])
    z, weights = rng.normal(size=n), quadrature_weights(s)
    latent = 3 * (X * np.sin(3 * s)) @ weights + 0.5 * z + rng.logistic(size=n)
    data = {"z": z, "y": 1.0 + np.digitize(latent, [-1.5, 0.0, 1.5])}
    wide = data | {"S": np.tile(s, (n, 1)), "LX": weights * X}
    theirs = fit_gam(
        'y ~ s(S, by = LX, bs = "ps", k = 9, m = c(2, 2)) + z', wide, wide, family="ocat(R = 4)", tolerance=1e-11
    )
    make = [terms.lf("X", k=9, m=(2, 2)), terms.linear("z")]
    data["X"] = X
    cuts = Ordered(tuple(theirs["theta"].tolist()))
    same = ScalarRegression(make, family=cuts, smoothing=theirs["sp"]).fit(data, grids={"X": s})
    assert far(same.predict(data, type="link"), theirs["fitted"]) < 1e-8
    assert far(same.predict_proba(data), chances(theirs, 4)) < 1e-8
    assert far(same.predict_se(data, type="probs", kind="iid"), errors_of_chances(theirs, 4)) < 1e-6
    own = ScalarRegression(make, family="ordered").fit(data, grids={"X": s})
    assert own.criterion_ <= same.criterion_ + 1e-9 * (1 + abs(same.criterion_))
    assert far(own.predict_proba(data), chances(theirs, 4)) < 1e-5
