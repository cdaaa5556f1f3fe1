"""Missing values in private fits: filled within the row or left out, never from other people, and said."""

from __future__ import annotations

import numpy as np
import pytest
from private_settings import regression_settings

from fdadp import AdditiveFunctionOnFunction, PublicPrior, simulate_affr
from fdadp.errors import InputError
from fdadp.privacy import Budget
from fdadp.private.plan.budget_sharing import make_plan
from fdadp.private.rows.row_functions import ResidualRows, RowFunctions

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
N, POINTS = 600, 24
GRID = np.linspace(0, 1, POINTS)


def cohort(n=N, seed=0):
    """Curves whose Y is far from the middle of its range, and hardly ever observed towards the end."""
    sim = simulate_affr(1, n=n, seed=seed, n_points=POINTS)
    x, y = sim.X.data_matrix[..., 0].copy(), sim.Y.data_matrix[..., 0].copy()
    rng = np.random.default_rng(seed + 1)
    x[rng.random(x.shape) < 0.15] = np.nan
    y[rng.random(y.shape) < np.where(GRID > 0.93, 0.92, 0.1)] = np.nan
    return x, y, sim.mean_function


def fit(x, y, *, missing="auto", groups=None, **settings):
    settings = {"epsilon": 2.0, "delta": 1e-6, "bounds": {"X": (-4.5, 4.5), "Y": (-20, 10)}, "n": N} | settings
    model = AdditiveFunctionOnFunction(**regression_settings(**{"random_state": 3} | settings), missing=missing)
    return model.fit(x, y, groups=groups)


def test_what_is_never_observed_is_not_predicted_from_the_middle_of_the_range():
    """0.1 filled with the middle, -5, and predicted 5 too low where 92 % were missing."""
    x, y, _ = cohort()
    model = fit(x, y)
    new_x, new_y, new_f = cohort(seed=50)
    predicted = model.predict(new_x)
    assert abs((predicted - new_f)[:, -1].mean()) < 0.35
    assert abs((predicted - new_f)[:, :-2].mean(axis=0)).max() < 0.35
    low, high = model.predict_interval(new_x)
    seen = ~np.isnan(new_y)
    inside = ((new_y >= low) & (new_y <= high))[seen].mean()
    assert 0.9 <= inside <= 0.985
    assert 1 - np.sum((predicted - new_f) ** 2) / np.sum((new_f - new_f.mean(axis=0)) ** 2) > 0.8


@pytest.mark.parametrize("missing", ["raise", "fpca"])
def test_what_a_private_fit_cannot_do_is_refused_before_it_reads(missing):
    x, y, _ = cohort()
    budget = Budget(2.0, 1e-6)
    with pytest.raises(InputError, match="missing must be 'linear' or 'smooth' in a private fit"):
        fit(x, y, missing=missing, budget=budget)
    assert budget.spent == budget.reserved == 0


def test_the_rule_is_used_and_said():
    x, y, _ = cohort()
    linear, smooth, default = (fit(x, y, missing=m) for m in ("linear", "smooth", "auto"))
    assert linear.coef_.tobytes() == default.coef_.tobytes() != smooth.coef_.tobytes()
    for model, words in ((linear, "filled linearly"), (smooth, "penalised smoother with public settings")):
        assert words in model.ledger_.details["public input: gaps of X"] and words in str(model.summary())
        assert "observed" in model.ledger_.details["public input: gaps of Y"]


def test_new_curves_are_filled_as_the_training_curves_were(tmp_path):
    from fdadp.functional.gap_filling import fill_linear, fill_smooth

    x, y, _ = cohort()
    for missing, fill in (("linear", fill_linear), ("smooth", fill_smooth)):
        model = fit(x, y, missing=missing)
        wanted = model.predict(fill(x[:9], GRID))
        np.testing.assert_array_equal(model.predict(x[:9]), wanted)
        again = AdditiveFunctionOnFunction.load(model.save(tmp_path / f"{missing}.npz"))
        np.testing.assert_array_equal(again.predict(x[:9]), wanted)


def test_without_privacy_gaps_are_still_refused_by_default_and_can_be_filled_linearly():
    x, y, _ = cohort(n=60)
    y = np.nan_to_num(y, nan=1.0)
    with pytest.raises(InputError, match="missing"):
        AdditiveFunctionOnFunction().fit(x, y)
    assert np.isfinite(AdditiveFunctionOnFunction(missing="linear").fit(x, y).predict(x)).all()


@pytest.mark.parametrize("part", ["X", "Y"])
def test_a_row_never_observed_contributes_nothing(part):
    """The same bits as where all rows of that person say nothing, and Y alone still counts for the mean of Y."""
    x, y, _ = cohort()
    x[7], y[7] = np.nan, np.nan
    groups = np.arange(N).astype(object)
    blank = groups.copy()
    blank[7] = None
    assert fit(x, y, groups=groups).coef_.tobytes() == fit(x, y, groups=blank).coef_.tobytes()
    rows = rows_of()
    block = (np.full((2, POINTS), np.nan), y[:2]) if part == "X" else (x[:2], np.full((2, POINTS), np.nan))
    derived = rows.derived(block)
    assert np.isnan(rows.gradient_norm(derived)).all()
    assert np.isnan(rows.response(block)).all() == (part == "Y")


def rows_of(missing="linear"):
    design = PublicPrior().design(GRID, GRID, bounds=(-4.5, 4.5), missing=missing)
    plan = make_plan(1000.0, 4.5, design, pure=False)
    rows = RowFunctions(design, (-8.0, 8.0))
    rows.begin_regression(plan)
    rows.y_location, rows.columns["X"] = 0.3, rows.columns["X"].placed(0.1, rows.columns["X"].scale)
    rng = np.random.default_rng(4)
    rows.mean = 0.1 * rng.normal(size=rows.mean.size)
    rows.coefficients = 0.3 * rng.normal(size=(plan.n_features, plan.n_outputs))
    return rows


@pytest.mark.parametrize("missing", ["linear", "smooth"])
def test_every_row_function_is_row_local_where_there_are_gaps(missing):
    """The kernel's own check uses complete rows; here each row alone, among others, and in another order."""
    x, y, _ = cohort(n=23)
    x[3], y[5], x[8, 1:], y[9, 2:] = np.nan, np.nan, np.nan, np.nan
    rows = rows_of(missing)
    residuals = ResidualRows(rows)
    residuals.clip = 1.0
    k, d = rows.coefficients.shape[1], rows.coefficients.shape[0]
    residuals.set_spread(np.full(POINTS, 0.2), np.full(rows.mean.size, 0.01), np.tile(0.001 * np.eye(d), (k, 1, 1)))
    column = rows.columns["X"]
    first = [column.rms, column.level, rows.y_level, rows.response, rows.response_norm, rows.outside, rows.derived]
    block = (x, y)
    later = [rows.residuals, rows.weighted, rows.gradient_norm]
    later += [residuals.rms, residuals.clipped, residuals.outside_variance, residuals.by_block, residuals.histogram]
    for functions, data in ((first, block), (later, rows.derived(block))):
        for f in functions:
            together = _flat(f(data))
            order = np.random.default_rng(0).permutation(23)
            assert _flat(f(tuple(a[order] for a in data))).tobytes() == together[order].tobytes(), f
            for i in range(23):
                assert _flat(f(tuple(a[i : i + 1] for a in data))).tobytes() == together[i : i + 1].tobytes(), f


def _flat(values):
    parts = values if isinstance(values, tuple) else (values,)
    flat = np.hstack([np.reshape(p, (len(p), -1)) for p in parts])
    return np.where(np.isnan(flat), np.nan, flat)


def test_the_projection_of_a_curve_with_gaps():
    """Exact for complete curves; what it says of the points it saw; nothing of a whole half that it did not."""
    rows = rows_of()
    functions, weights = rows.design.response, rows.design.t_weights
    true = np.array([0.5, -1.0, 0.3, 0, 0, 0, 0, 0])
    curve = (functions @ true)[None]
    np.testing.assert_allclose(rows.projection(curve)[0], (functions * weights[:, None]).T @ curve[0], atol=1e-12)
    gaps = curve.copy()
    gaps[0, [2, 3, 11, 19]] = np.nan
    np.testing.assert_allclose(rows.projection(gaps)[0][:3], true[:3], atol=0.06)
    late = curve.copy()
    late[0, : POINTS // 2] = np.nan
    back = functions @ rows.projection(late)[0]
    np.testing.assert_allclose(back[POINTS // 2 :], curve[0][POINTS // 2 :], atol=0.25)


def test_the_histogram_of_residuals_is_of_observed_time():
    x, y, _ = cohort(n=40)
    rows = rows_of()
    residuals = ResidualRows(rows)
    k, d = rows.coefficients.shape[1], rows.coefficients.shape[0]
    residuals.set_spread(np.full(POINTS, 0.2), np.full(rows.mean.size, 0.01), np.tile(0.001 * np.eye(d), (k, 1, 1)))
    masses = residuals.histogram(rows.derived((x, y)))
    np.testing.assert_allclose(masses.sum(axis=1), 1.0)
    places = residuals.by_block(rows.derived((x, y)))
    assert np.isfinite(places).all() and (np.abs(places) <= 1).all()
