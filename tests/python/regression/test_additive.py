"""The additive function-on-function estimator: the public contract, its statistics, its files, its errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from private_settings import summary_settings
from scipy.integrate import trapezoid
from skfda import FDataGrid
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fdadp import AdditiveFunctionOnFunction, Privacy, coverage, rmspe, simulate_affr
from fdadp.errors import ExtrapolationWarning, FileFormatError, InputError, NotPrivateWarning, PrivacyError
from fdadp.files.npz_files import FILE_VERSION
from fdadp.functional.tables.curve_sample import Curves
from fdadp.published import PublishedNoise
from fdadp.published.laplace_on_regression import leave_one_out
from fdadp.solve.eigen import fit_to_scores
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares
from fdadp.terms.records import Records


@pytest.fixture(scope="module")
def sim():
    return simulate_affr(scenario=2, n=200, seed=3)


@pytest.fixture(scope="module")
def arrays(sim):
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


@pytest.fixture(scope="module")
def model(sim):
    return AdditiveFunctionOnFunction(n_components=3).fit(sim.X, sim.Y)


def close(a, b, rtol=1e-9):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


# --- the contract ---


def test_attributes_have_the_shapes_of_the_contract(model):
    assert model.coef_.shape == (3, 14, 8)  # of 200 curves
    assert model.smoothing_parameters_.shape == (3, 2)
    assert model.edf_.shape == model.eigenvalues_.shape == model.criterion_.shape == (3,)
    assert model.eigenfunctions_.shape == (3, 51)
    assert model.mean_.shape == model.residual_variance_.shape == (51,)
    assert isinstance(model.noise_variance_, float)
    assert model.privacy_ is None
    assert model.ledger_ is None
    products = trapezoid(model.eigenfunctions_[:, None] * model.eigenfunctions_[None], model.t_, axis=2)
    np.testing.assert_allclose(products, np.eye(3), atol=1e-10)


def test_standard_errors_are_those_of_the_mean(sim, model):
    """Over cohorts that differ in their errors only, predictions spread as much as their standard errors say."""
    new = sim.X[:20]
    predictions, errors = [], []
    for seed in range(25):
        other = simulate_affr(scenario=2, n=200, seed=3)
        noise = np.random.default_rng(seed).normal(scale=0.5, size=other.mean_function.shape)
        fit = AdditiveFunctionOnFunction(n_components=3, fpca="dense").fit(sim.X, other.mean_function + noise)
        predictions.append(fit.predict(new))
        errors.append(fit.predict_se(new))
    spread = np.std(predictions, axis=0, ddof=1)
    ratio = np.sqrt((np.asarray(errors) ** 2).mean() / (spread**2).mean())
    assert 0.8 < ratio < 1.6  # Bayesian: it counts the bias of smoothing too


def test_intervals_are_standard_errors_and_residuals_together(model, sim):
    at = np.linspace(0.1, 0.9, 7)
    for t in (None, at):
        se = model.predict_se(sim.X[:9], t=t).data_matrix[..., 0]
        lower, upper = model.predict_interval(sim.X[:9], level=0.5, t=t)
        wide, narrow = (model.predict_interval(sim.X[:9], level=v, t=t) for v in (0.9, 0.5))
        residual = model.residual_variance_ if t is None else np.interp(at, model.t_, model.residual_variance_)
        half = (upper - lower).data_matrix[..., 0] / 2
        quantile = half / np.sqrt(se**2 + residual)
        close(quantile, np.full_like(quantile, quantile[0, 0]))
        assert (se > 0).all()
        assert ((wide[1] - wide[0]).data_matrix > (narrow[1] - narrow[0]).data_matrix).all()


def test_the_kind_of_curves_given_comes_back(sim, arrays, model):
    x, y = arrays
    assert isinstance(model.predict(sim.X[:4]), FDataGrid)
    from_arrays = AdditiveFunctionOnFunction(n_components=3).fit(x, y)
    predicted = from_arrays.predict(x[:4])
    assert isinstance(predicted, np.ndarray)
    close(predicted, model.predict(sim.X[:4]).data_matrix[..., 0])
    names = [f"p{i}" for i in range(len(x))]
    frame_x, frame_y = pd.DataFrame(x, index=names), pd.DataFrame(y, index=names, columns=[f"t{j}" for j in range(51)])
    from_frames = AdditiveFunctionOnFunction(n_components=3).fit(frame_x, frame_y)
    predicted = from_frames.predict(frame_x.iloc[2:4])
    assert list(predicted.index) == ["p2", "p3"]
    assert list(predicted.columns) == list(frame_y.columns)
    close(predicted.to_numpy(), from_arrays.predict(x[2:4]))
    lower, upper = from_frames.predict_interval(frame_x.iloc[2:4], level=0.9)
    assert (lower.to_numpy() < predicted.to_numpy()).all()
    assert (upper.to_numpy() > predicted.to_numpy()).all()


def test_surface_times_data_gives_the_prediction(model, sim):
    """Ŷ(t) - mean(t) is the integral of the surface along the curve, up to a function of t alone."""
    x = sim.X.data_matrix[:6, :, 0]
    weights = np.full(51, 0.02)
    weights[[0, -1]] /= 2
    integral = np.stack(
        [
            sum(w * model.surface(curve[j : j + 1], model.s_[j : j + 1], model.t_)[0, 0] for j, w in enumerate(weights))
            for curve in x
        ]
    )
    predicted = model.predict(sim.X[:6]).data_matrix[..., 0] - model.mean_
    close(integral - integral[0], predicted - predicted[0], 1e-8)
    # Centred: at each (s, t) the surface has about mean zero over the training curves.
    for j in (0, 20, 50):
        values = model.surface(sim.X.data_matrix[:, j, 0], model.s_[j : j + 1], model.t_)[:, 0]
        assert np.abs(values.mean(axis=0)).max() < 0.05 * np.abs(values).max()


def test_new_grids(model, sim):
    t = np.linspace(0.1, 0.9, 17)
    coarse, fine = model.predict(sim.X[:5], t=t), model.predict(sim.X[:5])
    np.testing.assert_allclose(coarse.grid_points[0], t)
    close(coarse.data_matrix[:, ::2, 0], fine(t[::2])[..., 0], 2e-3)
    close(model.predict(sim.X[:5], t=model.t_).data_matrix, fine.data_matrix, 1e-10)
    # Predictor curves on a finer grid over the same domain: the same integrals, better approximated.
    smooth = FDataGrid(np.sin(np.outer([1.0, 2.0], model.s_)), model.s_)
    finer_grid = np.linspace(0, 1, 201)
    finer = FDataGrid(np.sin(np.outer([1.0, 2.0], finer_grid)), finer_grid)
    close(model.predict(finer).data_matrix, model.predict(smooth).data_matrix, 2e-3)
    with pytest.raises(InputError, match="training domain"):
        model.predict(FDataGrid(np.zeros((1, 20)), np.linspace(0, 0.5, 20)))
    with pytest.raises(InputError, match="within"):
        model.predict(sim.X[:5], t=[0.5, 1.5])
    with pytest.raises(InputError, match="s must lie within"):
        model.surface([0.0], [-0.1], [0.5])


@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_finds_the_truth_and_covers(scenario):
    train, new = simulate_affr(scenario=scenario, n=1000, seed=1), simulate_affr(scenario=scenario, n=400, seed=2)
    model = AdditiveFunctionOnFunction(n_basis_x=9).fit(train.X, train.Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        predicted = model.predict(new.X)
        bands = {level: model.predict_interval(new.X, level) for level in (0.85, 0.95)}
    truth = new.mean_function
    error = ((predicted.data_matrix[..., 0] - truth) ** 2).sum()
    assert 1 - error / ((truth - truth.mean(axis=0)) ** 2).sum() > 0.95
    for level, (lower, upper) in bands.items():
        assert coverage(new.Y, lower, upper) == pytest.approx(level, abs=0.02)
    assert model.noise_variance_ == pytest.approx(0.0625, rel=0.1)
    x, s = np.linspace(-1.5, 1.5, 9), np.linspace(0.1, 0.9, 9)
    ours, true = (m.surface(x, s, s) for m in (model, train))
    centre = [a - a.mean(axis=0) for a in (ours, true)]
    assert np.corrcoef(centre[0].ravel(), centre[1].ravel())[0, 1] > 0.95


def test_linear_truth_gives_a_linear_surface():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 41)
    x = rng.normal(size=(400, 4)) @ np.array([np.cos(k * np.pi * grid) for k in range(4)])
    beta = np.outer(np.sin(np.pi * grid), 1 + grid)
    y = x @ beta / 40 + 0.05 * rng.normal(size=(400, 41))
    model = AdditiveFunctionOnFunction().fit(x, y)
    surface = model.surface([-1.0, 0.0, 1.0], grid[5:-5], grid[[10, 30]])
    bend = surface[0] - 2 * surface[1] + surface[2]
    assert np.abs(bend).max() < 0.05 * np.abs(surface[2] - surface[0]).max()


# --- one way down: the same answer from parts, files and refits ---


def test_chunks_give_the_same_fit(sim, arrays, model):
    x, y = arrays
    parts = [(x[:70], y[:70]), (x[70:71], y[70:71]), (x[71:], y[71:])]
    for chunks in (parts, lambda: iter(parts)):
        chunked = AdditiveFunctionOnFunction(n_components=3).fit_chunks(chunks)
        close(chunked.coef_, model.coef_, 1e-6)
        close(chunked.predict(x[:5]), model.predict(sim.X[:5]).data_matrix[..., 0], 1e-6)
    known = AdditiveFunctionOnFunction(n_components=3).fit_chunks(parts, x_range=(x.min(), x.max()))
    close(known.coef_, model.coef_, 1e-6)


def test_dask_arrays_are_chunks(arrays, model):
    da = pytest.importorskip("dask.array")
    x, y = arrays
    X, Y = da.from_array(x, chunks=(64, 20)), da.from_array(y, chunks=(50, 51))
    blocks = AdditiveFunctionOnFunction(n_components=3).fit(X, Y)
    close(blocks.coef_, model.coef_, 1e-6)
    beside = AdditiveFunctionOnFunction(n_components=3).fit(X, y)
    close(beside.coef_, model.coef_, 1e-6)
    with pytest.raises(InputError, match="same number of rows"):
        AdditiveFunctionOnFunction().fit(X, Y[:10])


def test_bad_chunks_are_refused(arrays):
    x, y = arrays
    fit = AdditiveFunctionOnFunction().fit_chunks
    with pytest.raises(InputError, match="one-way generator"):
        fit(pair for pair in [(x, y)])
    with pytest.raises(InputError, match="at least one row"):
        fit([])
    with pytest.raises(InputError, match="must be a pair"):
        fit([3])
    with pytest.raises(InputError, match="got 200 and 10"):
        fit([(x, y[:10])])
    with pytest.raises(InputError, match="grid of the first one"):
        fit([(x, y), (x[:, :20], y)])
    broken = x.copy()
    broken[3, 7] = np.nan
    with pytest.raises(InputError, match="curve 203 at position 7"):
        fit([(x, y), (broken, y)])
    with pytest.raises(InputError, match="missing must be 'raise'"):
        AdditiveFunctionOnFunction(missing="smooth").fit_chunks([(x, y)])


def test_save_and_load_keep_everything(tmp_path, sim, model):
    path = model.save(tmp_path / "model")
    again = AdditiveFunctionOnFunction.load(path)
    assert np.array_equal(again.coef_, model.coef_)
    for a, b in zip(again.predict_interval(sim.X[:9]), model.predict_interval(sim.X[:9]), strict=True):
        assert isinstance(a, FDataGrid)
        close(a.data_matrix, b.data_matrix, 1e-12)
    assert str(again.summary()) == str(model.summary())
    assert again.get_params() == model.get_params()
    # No training curve is in the file.
    with np.load(path) as stored:
        assert all(len(stored[name]) != 200 for name in stored.files if stored[name].ndim)


def test_save_and_load_frames_settings_and_ledger(tmp_path, arrays):
    x, y = arrays
    frame_y = pd.DataFrame(y, columns=[f"t{j}" for j in range(51)])
    privacy = Privacy(epsilon=5.0, random_state=1)
    model = AdditiveFunctionOnFunction(
        n_components=2,
        smoothing=(1.0, 0.5),
        privacy=privacy,
        bounds={"X": (-4, 4)},
        mechanism=PublishedNoise(sensitivity="scaled"),
    )
    with pytest.warns(NotPrivateWarning):
        model.fit(x, frame_y)
    again = AdditiveFunctionOnFunction.load(model.save(tmp_path / "model.npz"))
    assert again.ledger_ == model.ledger_
    assert again.privacy == privacy and again.mechanism == model.mechanism
    assert list(again.predict(x[:2]).columns) == list(frame_y.columns)


def test_other_files_are_refused(tmp_path, model):
    path = model.save(tmp_path / "model.npz")
    with np.load(path) as stored:
        entries = {name: stored[name] for name in stored.files}
    header = entries["header"].tobytes().decode()
    other = header.replace(f'"version": {FILE_VERSION}', '"version": 77')
    np.savez(path, **entries | {"header": np.frombuffer(other.encode(), dtype=np.uint8)})
    with pytest.raises(FileFormatError, match=f"layout version {FILE_VERSION}, got version 77"):
        AdditiveFunctionOnFunction.load(path)
    del entries["numbers"]
    np.savez(path, **entries)
    with pytest.raises(FileFormatError, match="lacks 'numbers'"):
        AdditiveFunctionOnFunction.load(path)


def test_scikit_learn(sim, arrays):
    x, y = arrays
    model = AdditiveFunctionOnFunction(n_components=2, smoothing="gcv")
    assert clone(model).get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        scores = cross_val_score(model, x, y, cv=KFold(4))
        pipeline = make_pipeline(FunctionTransformer(lambda v: v / 2), AdditiveFunctionOnFunction(n_components=2))
        score = pipeline.fit(x, y).score(x, y)
    assert scores.shape == (4,)
    assert (scores > 0.3).all()
    assert score > 0.5
    fitted = clone(model).fit(x, y)
    assert fitted.score(x, y) == pytest.approx(fitted.r2_, abs=1e-3)


def test_summary_says_what_was_fitted(model):
    text = str(model.summary())
    for part in ("200", "14 x 8", "REML", f"{model.r2_:.4f}", f"{model.edf_[1]:.2f}", "without privacy"):
        assert part in text
    assert "<table" in model._repr_html_()
    assert "<table" in model._repr_mimebundle_()["text/html"]
    assert text == str(model) == model._repr_mimebundle_()["text/plain"]
    assert AdditiveFunctionOnFunction()._repr_html_()


# --- smoothing ---


def test_given_smoothing_parameters_are_used(arrays, model):
    x, y = arrays
    again = AdditiveFunctionOnFunction(n_components=3, smoothing=model.smoothing_parameters_).fit(x, y)
    close(again.coef_, model.coef_, 1e-8)
    one = AdditiveFunctionOnFunction(n_components=3, smoothing=(2.0, 3.0)).fit(x, y)
    assert np.array_equal(one.smoothing_parameters_, np.tile([2.0, 3.0], (3, 1)))


def test_reml_and_gcv_reach_a_stationary_point(arrays):
    for smoothing in ("reml", "gcv"):
        model = AdditiveFunctionOnFunction(n_components=2, smoothing=smoothing).fit(*arrays)
        for k, sp in enumerate(model.smoothing_parameters_):
            for factor in ([1.3, 1], [1 / 1.3, 1], [1, 1.3], [1, 1 / 1.3]):
                given_sp = model.smoothing_parameters_.copy()
                given_sp[k] = sp * factor
                problem = _problem(AdditiveFunctionOnFunction(n_components=2, smoothing=given_sp), arrays)
                value = getattr(problem, smoothing)(np.log(given_sp[k]), k)[0]
                assert value >= model.criterion_[k] - 1e-7 * (1 + abs(value))


def _problem(model, arrays) -> PenalizedLeastSquares:
    caught = {}
    original = PenalizedLeastSquares.solve

    def spy(self, *args, **kwargs):
        caught["problem"] = self
        return original(self, *args, **kwargs)

    PenalizedLeastSquares.solve = spy
    try:
        model.fit(*arrays)
    finally:
        PenalizedLeastSquares.solve = original
    return caught["problem"]


# --- missing values ---


@pytest.mark.parametrize("missing", ["smooth", "fpca"])
def test_missing_values_are_filled_in(sim, arrays, model, missing):
    rng = np.random.default_rng(0)
    x, y = (a.copy() for a in arrays)
    x[rng.uniform(size=x.shape) < 0.1] = np.nan
    y[rng.uniform(size=y.shape) < 0.1] = np.nan
    with pytest.raises(InputError, match=r"missing='linear'.*'smooth'"):
        AdditiveFunctionOnFunction().fit(x, y)
    with_gaps = AdditiveFunctionOnFunction(n_components=3, missing=missing).fit(x, y)
    truth = sim.mean_function
    predicted, complete = with_gaps.predict(x), model.predict(sim.X).data_matrix[..., 0]
    assert rmspe(truth, predicted) < 1.5 * rmspe(truth, complete) + 0.05
    lower, upper = with_gaps.predict_interval(x[:3])
    assert np.isfinite(lower).all()
    assert (upper > lower).all()


def test_missing_fpca_survives_a_file(tmp_path, arrays):
    x, y = (a.copy() for a in arrays)
    x[::3, 5:15] = np.nan
    model = AdditiveFunctionOnFunction(n_components=2, missing="fpca").fit(x, y)
    again = AdditiveFunctionOnFunction.load(model.save(tmp_path / "m.npz"))
    close(again.predict(x[:4]), model.predict(x[:4]), 1e-12)


# --- the published scheme ---


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), grouped=st.booleans())
def test_leave_one_out_is_that_of_refits(seed, grouped):
    sim = simulate_affr(scenario=1, n=24, seed=seed)
    x, y = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]
    persons = np.arange(24) // 2 if grouped else None
    caught = {}
    original_sums = fit_to_scores.add_up

    class Spy(PublishedNoise):
        def perturb(self, found, chunks, privacy, persons=None):
            caught.update(changes=leave_one_out(found, chunks, persons))
            return found

    def spy_sums(*arguments):
        caught.update(sums=original_sums(*arguments))
        return caught["sums"]

    fit_to_scores.add_up = spy_sums
    try:
        model = AdditiveFunctionOnFunction(
            n_components=2, smoothing=(0.1, 0.2), privacy=Privacy(epsilon=1.0), mechanism=Spy()
        ).fit(x, y, groups=persons)
    finally:
        fit_to_scores.add_up = original_sums
    l1, largest = caught["changes"].l1, caught["changes"].largest
    assert caught["changes"].n == (12 if grouped else 24)
    (term,) = caught["sums"].designs
    z = term.features(Records(24, {"X": Curves(x, term.grid)}))[:, term.kept]
    scores = (y - model.mean_) @ (model.eigenfunctions_ * model.eigenbasis_.weights).T
    rotation = np.kron(term.over_x.rotation[:, 1:], term.over_s.rotation)
    penalty = np.diag(np.array([0.1, 0.2]) @ term.penalties)

    def fit(keep):
        a, b = z[keep] - z[keep].mean(axis=0), scores[keep] - scores[keep].mean(axis=0)
        return rotation @ np.linalg.solve(a.T @ a + penalty, a.T @ b)

    whole = fit(np.ones(24, bool))
    units = np.arange(24) if persons is None else persons
    changes = np.stack([whole - fit(units != u) for u in np.unique(units)])
    close(l1, np.abs(changes).sum(axis=1).max(axis=0), 1e-7)
    close(largest, np.abs(changes).max(axis=(0, 1)), 1e-7)


def test_published_scheme_adds_the_noise_that_its_ledger_states(arrays, model):
    x, y = arrays

    def fit(sensitivity="local", **kwargs):
        mechanism = PublishedNoise(sensitivity=sensitivity)
        with pytest.warns(NotPrivateWarning):
            return AdditiveFunctionOnFunction(n_components=3, privacy=Privacy(**kwargs), mechanism=mechanism).fit(x, y)

    draws = np.stack([fit(epsilon=2.0, random_state=seed).coef_ - model.coef_ for seed in range(60)])
    ledger = fit(epsilon=2.0, random_state=0).ledger_
    for k, release in enumerate(ledger.releases):
        assert release.scale == pytest.approx(release.sensitivity / 2)
        # Mean absolute value of a Laplace variable is its scale; 60 * 49 draws.
        assert np.abs(draws[:, k]).mean() == pytest.approx(release.scale, rel=0.08)
    assert not ledger.private
    assert "NOT differentially private" in str(ledger).splitlines()[0]
    assert "eigenfunctions" in ledger._repr_html_()
    close(fit(epsilon=1e12, random_state=0).coef_, model.coef_, 1e-6)
    scales = {s: fit(epsilon=1.0, sensitivity=s).ledger_.releases[0].scale for s in ("local", "coefficient", "scaled")}
    assert scales["local"] > scales["coefficient"] == pytest.approx(200 * scales["scaled"])
    assert fit(epsilon=1.0).privacy_ is None


def test_published_noise_widens_the_intervals(arrays, model):
    x, y = arrays
    with pytest.warns(NotPrivateWarning):
        noisy = AdditiveFunctionOnFunction(
            n_components=3, privacy=Privacy(epsilon=0.5, random_state=0), mechanism=PublishedNoise()
        ).fit(x, y)
    widths = [np.subtract(*m.predict_interval(x[:20])[::-1]).mean() for m in (noisy,)]
    plain = AdditiveFunctionOnFunction(n_components=3).fit(x, y)
    widths.append(np.subtract(*plain.predict_interval(x[:20])[::-1]).mean())
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.parametrize(
    ("settings_", "text"),
    [
        ({"epsilon": 0}, "epsilon must be a number above 0, got 0"),
        ({"epsilon": -1.0}, "got -1.0"),
        ({"epsilon": float("nan")}, "above 0"),
        ({"epsilon": float("inf")}, "at most 1e.15, got inf"),
        ({"epsilon": True}, "got True"),
        ({"epsilon": 1.0, "delta": 1.5}, "delta must lie between 0 and 1"),
        ({"epsilon": 1.0, "mechanism": "magic"}, "mechanism must be one of"),
        ({"epsilon": 1.0, "adjacency": "swap"}, "adjacency must be one of"),
        ({"epsilon": 1.0, "n": 0}, "n must be a positive integer"),
        ({"epsilon": 1.0, "bounds": (0, 1)}, r"bounds must be a range for each of X, Y, .*got \(0, 1\)"),
        ({"epsilon": 1.0, "bounds": {"x": (0, 1)}}, "bounds must be those of X, Y, .*got one of 'x'"),
    ],
)
def test_bad_privacy_settings_are_refused(settings_, text):
    with pytest.raises(PrivacyError, match=text):
        AdditiveFunctionOnFunction(**summary_settings(**settings_)).fit(None, None)


@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (0, float("inf")), (0,), "ab"])
def test_bad_bounds_are_refused(pair):
    for privacy in (None, Privacy(1.0)):
        with pytest.raises(PrivacyError, match="bounds of X"):
            AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": pair}).fit(None, None)
    with pytest.raises(PrivacyError, match="sensitivity must be one of"):
        PublishedNoise(sensitivity="global")


# --- bad input ---


def spoil(a, value):
    a = a.copy()
    a[11, 4] = value
    return a


@pytest.mark.parametrize(
    ("settings_", "change", "text"),
    [
        ({}, lambda x, y: (x, y[:50]), "same number of curves, got 200 and 50"),
        (
            {},
            lambda x, y: (spoil(x, np.nan), y),
            r"X must be finite, got nan in curve 11 at position 4 \(grid point 0.08\)",
        ),
        ({}, lambda x, y: (x, spoil(y, np.inf)), "Y must be finite, got inf in curve 11 at position 4"),
        (
            {"missing": "smooth"},
            lambda x, y: (spoil(x, np.inf), y),
            "X must be finite where it was observed, got an infinite value in row 11",
        ),
        ({}, lambda x, y: (x[:1], y[:1]), "at least 5 curves, got 1"),
        ({}, lambda x, y: (x[0], y[0]), r"two-dimensional \(curves, points\), got shape \(51,\)"),
        ({}, lambda x, y: (x[:0], y[:0]), "must not be empty"),
        ({}, lambda x, y: (np.full_like(x, 3.0), y), "X must vary, got the constant 3 everywhere"),
        ({}, lambda x, y: (x, np.tile(y[0], (200, 1))), "Y must vary between rows"),
        ({"n_components": 60}, lambda x, y: (x, y), "n_components must be at most"),
        ({"n_components": 7}, lambda x, y: (x[:6], y[:6]), "n_components must be at most 5 for 6 curves, got 7"),
        ({"n_components": 0}, lambda x, y: (x, y), "n_components"),
        ({"n_components": 1.5}, lambda x, y: (x, y), "n_components"),
        ({"n_basis_x": 3}, lambda x, y: (x, y), r"n_basis_x must be an integer of at least degree \+ 1 = 4, got 3"),
        ({"n_basis_s": 5, "degree": 5}, lambda x, y: (x, y), "n_basis_s must be an integer of at least degree"),
        ({"penalty_order": 0}, lambda x, y: (x, y), "penalty_order"),
        ({"smoothing": "aic"}, lambda x, y: (x, y), "smoothing must be 'reml', 'gcv'"),
        ({"smoothing": (1.0, -1.0)}, lambda x, y: (x, y), "positive"),
        ({"smoothing": (1.0, 1.0, 1.0)}, lambda x, y: (x, y), "shape"),
        ({"quadrature": "gauss"}, lambda x, y: (x, y), "got 'gauss'"),
        ({"fpca": "pca"}, lambda x, y: (x, y), "fpca must be one of"),
        ({"missing": "drop"}, lambda x, y: (x, y), "missing must be one of"),
        ({"privacy": 1.0}, lambda x, y: (x, y), "privacy must be a Privacy or None, got float"),
        ({}, lambda x, y: ([["a", "b"]], y), "X must be numeric"),
    ],
)
def test_bad_input_is_refused(arrays, settings_, change, text):
    with pytest.raises(InputError, match=text):
        AdditiveFunctionOnFunction(**settings_).fit(*change(*arrays))


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        (np.linspace(0, 1, 50), "51 points"),
        (np.linspace(1, 0, 51), "strictly increasing, got 1 followed by 0.98 at position 0"),
        (np.append(np.linspace(0, 1, 50), 1.0), "strictly increasing"),
        (np.append(np.linspace(0, 1, 50), np.nan), "finite"),
        ("text", "sequence of numbers"),
    ],
)
def test_bad_grids_are_refused(arrays, grid, text):
    with pytest.raises(InputError, match=text):
        AdditiveFunctionOnFunction().fit(*arrays, s=grid)
    with pytest.raises(InputError, match=text):
        AdditiveFunctionOnFunction().fit(*arrays, t=grid)


def test_groups_of_wrong_length_are_refused(arrays):
    with pytest.raises(InputError, match=r"groups must have one label a row, 200 in all"):
        AdditiveFunctionOnFunction().fit(*arrays, groups=np.arange(7))


def test_prediction_outside_the_range_warns_with_the_count(model, sim):
    x = sim.X.data_matrix[:3, :, 0].copy()
    x[0, :4] = 50.0
    with pytest.warns(ExtrapolationWarning, match="4 of 153 points of X lie outside the training range"):
        far = model.predict(x)
    assert np.isfinite(far.data_matrix).all()


def test_bad_prediction_requests_are_refused(model, sim):
    for level in (0, 1, 95, "a"):
        with pytest.raises(InputError, match="level must lie between 0 and 1"):
            model.predict_interval(sim.X[:2], level=level)
    with pytest.raises(InputError, match="X must have a curve in every row, got none in row 0"):
        model.predict(np.full((1, 51), np.nan))
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        AdditiveFunctionOnFunction().predict(sim.X)
    with pytest.raises(NotFittedError):
        AdditiveFunctionOnFunction().save("nowhere.npz")


def test_grids_go_by_name(sim):
    """`fit` had s before t and `predict` t before s."""
    with pytest.raises(TypeError, match="positional"):
        AdditiveFunctionOnFunction().fit(sim.X, sim.Y, None, None)
    with pytest.raises(TypeError, match="positional"):
        AdditiveFunctionOnFunction().predict(sim.X, None)
