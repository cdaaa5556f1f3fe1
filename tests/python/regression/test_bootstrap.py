"""Bootstrap over persons of models of many terms."""

from __future__ import annotations

import numpy as np
import pytest
from uneven_curves import GRIDS, T, cohort, model, rows

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError


@pytest.fixture(scope="module")
def fitted():
    return model().fit(cohort(60, 0)[0], grids=GRIDS)


def test_a_sample_is_a_fit_to_the_rows_drawn():
    """Rows drawn twice stand twice; curves are not centred, as a sample has another mean."""
    data, _ = cohort(60, 0)
    fitted = model(k="refund").fit(data, grids=GRIDS)
    drawn = np.random.default_rng(3).multinomial(60, np.full(60, 1 / 60), size=2)[1]
    again = model(smoothing=fitted.smoothing_parameters_, k="refund").fit(
        rows(data, np.repeat(np.arange(60), drawn)), grids=GRIDS
    )
    sample = fitted.bootstrap(2, seed=3).samples[1]
    assert np.allclose(sample, again.fitted_.fit.coefficients, rtol=1e-6, atol=1e-8)


def test_standard_errors_are_those_of_curves_left_out(fitted):
    """At given smoothing parameters; independent errors would be far off."""
    data, _ = cohort(60, 0)
    given = model(smoothing=fitted.smoothing_parameters_).fit(data, grids=GRIDS)
    drawn = given.bootstrap(400).coef("z", t=T)
    assert 0.8 < (drawn["se"] / given.coef("z", se=True, t=T)["se"]).mean() < 1.1
    assert (drawn["se"] / given.coef("z", se=True, kind="iid", t=T)["se"]).mean() > 2


def test_groups_are_drawn_as_a_whole():
    data, _ = cohort(120, 4, group=6)
    fitted = model().fit(data, grids=GRIDS, groups="who")
    alone = model().fit(data, grids=GRIDS)
    together = fitted.bootstrap().coef("w")["se"]
    assert (together / alone.bootstrap().coef("w")["se"]).mean() > 1.4
    assert np.allclose(alone.bootstrap(groups=data["who"]).coef("w")["se"], together)


def test_intervals(fitted):
    found = fitted.bootstrap(300)
    percentile, normal = (found.coef("z", interval=kind, t=T) for kind in ("percentile", "normal"))
    assert np.allclose(normal["value"], fitted.coef("z", t=T)["value"])
    assert np.allclose(normal["upper"] - normal["value"], 1.959964 * normal["se"])
    assert (percentile["lower"] < percentile["upper"]).all()
    assert np.abs(percentile["upper"] - normal["upper"]).max() < normal["se"].max()
    assert (found.coef("z", 0.5, t=T)["upper"] < percentile["upper"]).all()
    assert found.coef("ff(X)", s=[0.2, 0.4], t=[0.5]).shape == (2, 6)
    assert np.array_equal(fitted.bootstrap(300).samples, found.samples)
    assert not np.array_equal(fitted.bootstrap(300, seed=1).samples, found.samples)


def test_levels_that_a_sample_lacks():
    data, _ = cohort(20, 5)
    data["g"] = np.where(np.arange(20) == 3, "rare", "common").astype(object)
    fitted = FunctionalRegression([terms.factor("g")]).fit(data, grids=GRIDS)
    assert np.isfinite(fitted.bootstrap(50).samples).all()


def test_what_has_no_bootstrap(fitted, tmp_path):
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "model"))
    with pytest.raises(InputError, match="bootstrap needs the training rows"):
        loaded.bootstrap()
    with pytest.raises(InputError, match="n_samples must be"):
        fitted.bootstrap(1)
    with pytest.raises(InputError, match="interval must be one of 'percentile', 'normal', got 'bca'"):
        fitted.bootstrap(5).coef("z", interval="bca")
    with pytest.raises(InputError, match="groups must have one label a row"):
        fitted.bootstrap(5, groups=[1, 2])
