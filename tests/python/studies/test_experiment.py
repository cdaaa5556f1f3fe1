"""The published experiment: its tables, its base lines, its seed, and the limits that must hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.demo import published_experiment
from fdadp.errors import InputError, NotPrivateWarning, PrivacyError
from fdadp.functional.metrics import rmspe
from fdadp.published import PublishedNoise
from fdadp.published.laplace_on_regression import published_draws

COLUMNS = [
    "dataset", "repeat", "scheme", "sensitivity", "epsilon", "draw",
    "rmspe", "acp_85", "acp_95", "width_95", "acp_85_published", "acp_95_published", "width_95_published",
    "beats_mean_curve", "outside",
]  # fmt: skip


@pytest.fixture(scope="module")
def data() -> published_experiment.Paired:
    sim = simulate_affr(scenario=1, n=60, seed=5)
    x, y = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]
    return published_experiment.Paired("simulated", x, y, sim.X.grid_points[0], sim.Y.grid_points[0], "")


@pytest.fixture(scope="module")
def results(data: published_experiment.Paired) -> pd.DataFrame:
    return published_experiment.run(data, epsilons=(0.1, 0.2, 1e12), repeats=3, draws=2, seed=11)


def test_rows_and_columns(results: pd.DataFrame) -> None:
    assert set(results.columns) == set(COLUMNS)
    per_split = results.groupby("repeat").size()
    assert (per_split == 2 + 3 * 3 * 2).all() and len(per_split) == 3
    assert results["acp_95"].between(0, 1).all() and (results["acp_85"] <= results["acp_95"]).all()
    table = published_experiment.summarise(results)
    assert list(table["scheme"][:2]) == [published_experiment.MEAN_CURVE, published_experiment.NO_PRIVACY]
    assert len(table) == 2 + 9
    assert (table["splits"] == 3).all()
    local = table[(table.sensitivity == "local") & (table.epsilon == 0.1)].iloc[0]
    raw = results[(results.sensitivity == "local") & (results.epsilon == 0.1)]
    assert local["rmspe_median"] == raw["rmspe"].median() and local["rmspe_mean"] == pytest.approx(raw["rmspe"].mean())
    assert local["draws"] == 6


@pytest.mark.usefixtures("loky")
def test_the_seed_alone_decides(data: published_experiment.Paired) -> None:
    options = {"epsilons": (0.2,), "sensitivities": ("scaled",), "draws": 2}
    one = published_experiment.run(data, seed=7, repeats=1, **options)
    assert not np.allclose(one["rmspe"], published_experiment.run(data, seed=8, repeats=1, **options)["rmspe"])
    # More processes and more repeats do not change the first ones.
    more = published_experiment.run(data, seed=7, repeats=2, jobs=2, **options)
    pd.testing.assert_frame_equal(one, more[more.repeat < 1])


def test_without_noise_it_is_the_fit_without_privacy(results: pd.DataFrame) -> None:
    for _, split in results.groupby("repeat"):
        plain = split[split.scheme == published_experiment.NO_PRIVACY].iloc[0]
        free = split[split.epsilon == 1e12]
        for measure in ("rmspe", "acp_85", "acp_95", "width_95"):
            np.testing.assert_allclose(free[measure], plain[measure], rtol=1e-6)


def test_more_noise_is_worse_and_the_readings_are_ordered(results: pd.DataFrame) -> None:
    table = published_experiment.summarise(results)

    def value(reading: str, epsilon: float, column: str) -> float:
        return float(table[(table["sensitivity"] == reading) & (table["epsilon"] == epsilon)][column].item())

    for reading in ("local", "coefficient", "scaled"):
        assert value(reading, 0.1, "rmspe_median") > value(reading, 0.2, "rmspe_median")
        assert value(reading, 0.1, "width_95") > value(reading, 0.2, "width_95")
    medians = [value(reading, 0.1, "rmspe_median") for reading in ("local", "coefficient", "scaled")]
    assert medians == sorted(medians, reverse=True)


def test_published_intervals_do_not_know_of_the_noise(data: published_experiment.Paired, results: pd.DataFrame) -> None:
    """Their width is that of the fit without privacy, so that their coverage rises with ε, as in the literature."""
    for _, split in results.groupby("repeat"):
        plain = split[split.scheme == published_experiment.NO_PRIVACY].iloc[0]
        np.testing.assert_allclose(split[split.scheme == "published"]["width_95_published"], plain["width_95"])
        assert plain["acp_95_published"] == plain["acp_95"]
    steps = published_experiment.run(
        data, epsilons=(0.05, 0.5, 5.0), sensitivities=("coefficient",), repeats=3, draws=3, seed=2
    )
    table = published_experiment.summarise(steps[steps.scheme == "published"]).sort_values("epsilon")
    assert (np.diff(table["acp_95_published"]) > 0.05).all() and table["acp_95_published"].iloc[0] < 0.5
    assert (np.diff(table["width_95"]) < 0).all() and table["acp_95"].min() > 0.9


def test_intervals_of_a_draw_are_chosen(data: published_experiment.Paired) -> None:
    setting = Privacy(0.3, random_state=4), PublishedNoise()
    plain = AdditiveFunctionOnFunction(progress=False).fit(data.X, data.Y)
    widths = {}
    for kind in ("honest", "published"):
        with pytest.warns(NotPrivateWarning):
            [draw] = published_draws(plain, data.X, data.Y, [setting], intervals=kind)
        lower, upper = draw.predict_interval(data.X)
        widths[kind] = (upper - lower).mean()
        np.testing.assert_allclose((lower + upper) / 2, draw.predict(data.X), atol=1e-9)
    lower, upper = plain.predict_interval(data.X)
    assert widths["published"] == pytest.approx((upper - lower).mean()) and widths["honest"] > 1.5 * widths["published"]
    with pytest.raises(InputError, match="intervals must be one of 'honest', 'published', got 'paper'"):
        next(published_draws(plain, data.X, data.Y, [setting], intervals="paper"))


def test_base_lines_by_hand(data: published_experiment.Paired) -> None:
    results = published_experiment.run(data, epsilons=(1.0,), sensitivities=("scaled",), repeats=1, draws=1, seed=0)
    rng = np.random.default_rng(np.random.SeedSequence(0).spawn(1)[0])
    order = rng.permutation(60)
    test, train = np.sort(order[:12]), np.sort(order[12:])
    mean = np.tile(data.Y[train].mean(axis=0), (12, 1))
    model = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, progress=False).fit(
        data.X[train], data.Y[train], s=data.s, t=data.t
    )
    lower, upper = model.predict_interval(data.X[test])
    by_scheme = results.set_index("scheme")
    assert by_scheme.loc["mean curve", "rmspe"] == pytest.approx(rmspe(data.Y[test], mean))
    assert by_scheme.loc["no privacy", "rmspe"] == pytest.approx(rmspe(data.Y[test], model.predict(data.X[test])))
    assert by_scheme.loc["no privacy", "width_95"] == pytest.approx((upper - lower).mean())
    assert by_scheme.loc["mean curve", "acp_95"] == pytest.approx(0.95, abs=0.05)


@pytest.mark.parametrize("reading", ["local", "coefficient", "scaled"])
def test_a_draw_is_what_a_fit_with_the_same_setting_gives(data: published_experiment.Paired, reading: str) -> None:
    privacy, mechanism = Privacy(0.3, random_state=4), PublishedNoise(sensitivity=reading)
    plain = AdditiveFunctionOnFunction(progress=False).fit(data.X, data.Y)
    before = plain.coef_.copy()
    with pytest.warns(NotPrivateWarning):
        [draw] = published_draws(plain, data.X, data.Y, [(privacy, mechanism)])
    with pytest.warns(NotPrivateWarning):
        fit = AdditiveFunctionOnFunction(privacy=privacy, mechanism=mechanism, progress=False).fit(data.X, data.Y)
    np.testing.assert_allclose(draw.coef_, fit.coef_, rtol=1e-12)
    np.testing.assert_allclose(draw.predict_interval(data.X)[0], fit.predict_interval(data.X)[0], rtol=1e-10)
    assert str(draw.ledger_) == str(fit.ledger_) and "NOT differentially private" in str(draw.ledger_)
    assert draw.privacy_ is None
    np.testing.assert_array_equal(plain.coef_, before)
    assert plain.ledger_ is None
    with pytest.raises(InputError, match="fitted without privacy"):
        list(published_draws(fit, data.X, data.Y, [privacy]))


def test_data_sets_that_are_absent_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    monkeypatch.delenv("LIP_DATA_DIR", raising=False)
    data, absent = published_experiment.load(["canadian-weather", "lip-emg"])
    assert [d.name for d in data] == ["canadian-weather"]
    assert data[0].X.shape == (35, 73)
    assert list(absent) == ["lip-emg"] and "not found" in absent["lip-emg"]
    with pytest.raises(InputError, match="got 'berkeley'"):
        published_experiment.load(["berkeley"])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"repeats": 0}, InputError, "repeats must be a whole number of at least 1, got 0"),
        ({"draws": 1.5}, InputError, "draws must be"),
        ({"test_share": 0.001}, InputError, "test_share"),
        ({"epsilons": (0.0,)}, PrivacyError, "epsilon must be"),
        ({"sensitivities": ("guess",)}, PrivacyError, "sensitivity must be one of"),
    ],
)
def test_bad_settings(
    data: published_experiment.Paired, options: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        published_experiment.run(data, **options)  # type: ignore[arg-type]
