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


@pytest.mark.parametrize(("n", "cohorts"), [(100, 10), (1000, 2)])
@pytest.mark.parametrize("by", ["number", "factor", "nothing"])
def test_intervals_follow_numbers_and_factors(n, cohorts, by):
    """Errors of sd .3 + .5|x|: with one variance 95 % intervals hold 1.00 where |x| < .3 and .80 where |x| > 1.5."""
    smooth = np.linalg.cholesky(np.exp(-(np.subtract.outer(T, T) ** 2) / 0.045) + 1e-8 * np.eye(T.size))

    def drawn(n, seed):
        rng = np.random.default_rng(seed)
        x, g = rng.normal(size=n), np.where(rng.uniform(size=n) < 0.3, "b", "a")
        size = {"number": 0.3 + 0.5 * np.abs(x), "factor": np.where(g == "b", 1.0, 0.3), "nothing": np.full(n, 0.6)}[by]
        errors = rng.normal(size=(n, T.size)) @ smooth.T * 0.8 + 0.4 * rng.normal(size=(n, T.size))
        return {"x": x, "g": g, "Y": 0.3 * x[:, None] * np.cos(3 * T) + size[:, None] * errors}

    found, wide = [], []
    for seed in range(cohorts):
        new = drawn(400, 1000 + seed)
        fits = [
            FunctionalRegression("Y ~ x + g", variance=v).fit(drawn(n, seed), grids={"Y": T}) for v in ("auto", "t")
        ]
        inside = share_inside(fits[0], new)
        small = np.abs(new["x"]) < 0.3 if by == "number" else new["g"] == "a"
        large = np.abs(new["x"]) > 1.5 if by == "number" else new["g"] == "b"
        found.append([inside[small].mean(), inside[large].mean()])
        wide.append(np.divide(*[np.mean(np.subtract(*fit.predict_interval(new))) for fit in fits]))
    assert (np.mean(found, axis=0) > 0.92).all() and (np.mean(found, axis=0) < 0.98).all()
    assert np.mean(wide) < (1.05 if by == "nothing" else 0.95)


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


def test_the_order_of_rows_changes_no_interval():
    """Parts in which scales are fitted without a record were those of every tenth row: limits moved by .1 sd."""
    data, _ = uneven(60, 5)
    data["x"] = np.random.default_rng(6).normal(size=60)
    new = {name: values[:4] for name, values in data.items() if name != "Y"}
    found = []
    for seed in range(3):
        order = np.arange(60) if seed == 0 else np.random.default_rng(seed).permutation(60)
        permuted = {name: values[order] for name, values in data.items()}
        fitted = FunctionalRegression("Y ~ x + ff(X)", progress=False).fit(permuted, grids=GRIDS)
        found.append(np.asarray(fitted.predict_interval(new)))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)
