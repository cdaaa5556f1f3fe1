"""Numbers whose variance has terms: fits in turn, intervals, and what is refused; mgcv's gaulss is near, not equal."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from fdadp import Privacy, ScalarRegression
from fdadp.errors import InputError


def uneven(n=300, seed=0):
    """Log standard deviation -1 + 1.2 x."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(size=n), rng.normal(size=n)
    sd = np.exp(-1 + 1.2 * x)
    return {"x": x, "z": z, "y": np.sin(6 * x) + 0.5 * z + sd * rng.normal(size=n), "sd": sd}


def model(variance="~ s(x, bs='ps')", **settings):
    return ScalarRegression("y ~ s(x, bs='ps') + z", variance=variance, **settings)


def test_both_are_near_the_truth_and_the_variance_is_steady():
    off = []
    for seed in range(10):
        data = uneven(seed=seed)
        fitted = model().fit(data)
        off.append(np.mean(np.log(fitted.predict(data, type="sd") / data["sd"]) ** 2))
        own = fitted.fitted_.variance
        assert own.moved < 1e-6 or own.rounds == 50
        assert_allclose(fitted.sigma2_, 1, atol=0.03)  # squared residuals are of the size that they should have
    assert np.sqrt(np.mean(off)) < 0.12


def test_the_mean_is_that_of_known_weights():
    data = uneven()
    fitted = model().fit(data)
    sd = fitted.predict(data, type="sd") / np.sqrt(fitted.sigma2_)
    given = model(None).fit(data, weights=1 / sd**2)
    assert_allclose(fitted.fitted_values_, given.fitted_values_, rtol=1e-4, atol=1e-4)
    assert_allclose(fitted.predict_se(data), given.predict_se(data), rtol=1e-3)


@pytest.mark.statistics
def test_intervals_hold_where_errors_are_small_and_where_they_are_large():
    """95 % intervals in each third of x; without terms of the variance they hold too much and too little."""
    held = {"~ s(x, bs='ps')": [], None: []}
    for seed in range(20):
        data, new = uneven(seed=seed), uneven(1000, 100 + seed)
        third = np.minimum((new["x"] * 3).astype(int), 2)
        for variance, shares in held.items():
            low, high = model(variance).fit(data).predict_interval(new)
            inside = (new["y"] >= low) & (new["y"] <= high)
            shares.append([inside[third == i].mean() for i in range(3)])
    modelled, constant = (np.mean(shares, axis=0) for shares in held.values())
    assert ((modelled > 0.935) & (modelled < 0.965)).all()
    assert constant[0] > 0.98
    assert constant[2] < 0.91


def test_a_variance_that_does_not_change_costs_little():
    rng = np.random.default_rng(3)
    data = uneven()
    data["y"] = np.sin(6 * data["x"]) + 0.5 * data["z"] + 0.4 * rng.normal(size=300)
    fitted, plain = model().fit(data), model(None).fit(data)
    assert_allclose(fitted.predict(data, type="sd"), 0.4, atol=0.08)
    assert np.abs(fitted.fitted_values_ - plain.fitted_values_).max() < 0.06
    assert_allclose(plain.predict(data, type="sd"), np.sqrt(plain.sigma2_))


def test_weights_levels_frames_and_files(tmp_path):
    data = uneven()
    data["g"] = np.where(data["z"] > 0, "a", "b")
    frame = pd.DataFrame(data)
    fitted = model("~ C(g) + x").fit(frame)
    again = ScalarRegression.load(fitted.save(tmp_path / "model"))
    new = frame.iloc[:7]
    assert_allclose(again.predict(new, type="sd"), fitted.predict(new, type="sd"))
    assert_allclose(again.predict_interval(new), fitted.predict_interval(new))
    assert str(again.summary()) == str(fitted.summary())
    assert "The variance has the terms ~ C(g) + x" in str(fitted.summary()).replace("\n", " ")
    halved = model("~ C(g) + x").fit(frame, weights=np.full(300, 2.0))
    assert_allclose(halved.fitted_values_, fitted.fitted_values_, atol=1e-3)
    ratio = halved.predict(new, type="sd") / fitted.predict(new, type="sd")
    assert_allclose(ratio, np.sqrt(2), rtol=1e-3)  # of weight 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variance": "s(x)"}, "variance must be a formula such as '~ s.x.', or None, got 's.x.'"),
        ({"variance": 2.0}, "variance must be a formula .* got 2.0"),
        ({"family": "poisson"}, "variance=.~ s.x.* is there for family='gaussian' without privacy, got 'poisson'"),
        ({"privacy": Privacy(epsilon=1, delta=1e-6, n=300)}, "variance=.~ s.x.* is there .* got privacy"),
        ({"variance": "~ s(w)"}, "'w'"),
    ],
)
def test_odd_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        model(**settings).fit(uneven())


def test_what_needs_one_criterion_is_refused():
    data = uneven(60)
    fitted, plain = model().fit(data), ScalarRegression("y ~ z").fit(data)
    with pytest.raises(InputError, match="aic_ is not there with variance="):
        _ = fitted.aic_
    assert "not known" in str(fitted.summary())
    for one, other in ((fitted, plain), (plain, fitted)):
        with pytest.raises(InputError, match="anova is not there with variance="):
            one.anova(other)
    with pytest.raises(InputError, match="groups must be None with variance="):
        model().fit(data, groups=np.arange(60) // 2)
    with pytest.raises(InputError, match="fit_chunks is not there with variance="):
        model().fit_chunks([data])
    with pytest.raises(InputError, match="type='sd' is there for family='gaussian', got 'poisson'"):
        ScalarRegression("n ~ z", family="poisson").fit({"z": data["z"], "n": np.arange(60) % 4}).predict(
            data, type="sd"
        )
