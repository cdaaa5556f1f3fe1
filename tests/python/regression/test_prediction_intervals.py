"""Prediction intervals of curves: their variance over t, and by what a record's curves look like."""

from __future__ import annotations

import numpy as np
import pytest
from uneven_curves import GRIDS, T, cohort, model, rows

from fdadp import FunctionalRegression, terms
from fdadp.errors import InputError


def uneven(n, seed, rough=True):
    """Errors that grow over t; and, where `rough`, with the roughness of a record's X."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(size=n) / 2)
    x = rng.normal(size=(n, 1)) + size[:, None] * rng.normal(size=(n, T.size))
    scale = (0.3 + T) * (size[:, None] if rough else 1.0)
    y = x.mean(axis=1)[:, None] + scale * rng.standard_t(5, size=(n, T.size))
    return {"X": x, "Y": y}, size


def share_inside(fitted, new):
    lower, upper = fitted.predict_interval(new)
    return (lower < new["Y"]) & (new["Y"] < upper)


def test_intervals_follow_the_variance_over_t():
    data, _ = uneven(150, 19, rough=False)
    new, _ = uneven(400, 20, rough=False)
    ends = {}
    for variance in ("t", "constant"):
        fitted = FunctionalRegression([terms.ff("X")], variance=variance).fit(data, grids=GRIDS)
        inside = share_inside(fitted, new)
        ends[variance] = inside[:, :5].mean(), inside[:, -5:].mean()
    assert min(ends["t"]) > 0.92 and max(ends["t"]) < 0.98
    assert ends["constant"][0] > 0.98 and ends["constant"][1] < 0.92


def test_intervals_follow_the_roughness_of_a_record():
    data, _ = uneven(400, 21)
    new, size = uneven(800, 22)
    quarter = np.searchsorted(np.quantile(size, [0.25, 0.5, 0.75]), size)
    covered = {}
    for variance in ("auto", "t"):
        fitted = FunctionalRegression([terms.ff("X")], variance=variance).fit(data, grids=GRIDS)
        inside = share_inside(fitted, new)
        covered[variance] = [inside[quarter == q].mean() for q in range(4)]
    assert min(covered["auto"]) > 0.92 and max(covered["auto"]) < 0.98
    assert covered["t"][0] > 0.98 and covered["t"][3] < 0.9


def test_intervals_of_few_curves_know_that_the_mean_is_estimated():
    inside = []
    for seed in range(12):
        data, _ = cohort(14, 300 + seed)
        new, _ = cohort(100, 400 + seed)
        inside.append(share_inside(FunctionalRegression([terms.ff("X")]).fit(data, grids=GRIDS), new).mean())
    assert 0.91 < np.mean(inside) < 0.985


@pytest.mark.parametrize("variance", ["auto", "t", "model", "constant"])
def test_intervals_of_saved_models(tmp_path, variance):
    data, _ = uneven(60, 23)
    fitted = FunctionalRegression([terms.ff("X")], variance=variance).fit(data, grids=GRIDS)
    loaded = FunctionalRegression.load(fitted.save(tmp_path / "model"))
    one = {"X": data["X"][:1]}
    for ours, theirs in zip(fitted.predict_interval(one), loaded.predict_interval(one), strict=True):
        assert np.array_equal(ours, theirs)
    narrow, wide = (np.subtract(*fitted.predict_interval(one, level)[::-1]) for level in (0.5, 0.99))
    assert (narrow < wide).all()


def test_intervals_of_other_settings():
    with pytest.raises(InputError, match="variance must be one of 'auto', 't', 'model', 'constant', got 'robust'"):
        model(variance="robust").fit(cohort(20, 16)[0], grids=GRIDS)
    data, _ = cohort(40, 24)
    data["Y"] = np.where(np.random.default_rng(0).uniform(size=data["Y"].shape) < 0.2, np.nan, data["Y"])
    lower, upper = model().fit(data, grids=GRIDS).predict_interval(rows(data, slice(5)), t=[0.25, 0.5])
    assert lower.shape == (5, 2) and (lower < upper).all()
