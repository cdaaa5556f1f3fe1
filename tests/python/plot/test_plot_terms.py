"""Pictures of terms and residuals: what is drawn is what the model says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from fdadp import FunctionalRegression, ScalarRegression, plot, terms  # noqa: E402
from fdadp.errors import InputError  # noqa: E402

S, T = np.linspace(0, 2, 15), np.linspace(0, 1, 12)
N = 40
GRIDS = {"X": S, "Y": T}


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(N, 4)) @ np.array([np.cos(k * S) for k in range(4)])
    age, region = draw.uniform(20, 60, N), draw.choice(["east", "north", "west"], N)
    y = x[:, :1] * np.sin(3 * T) + np.sin(age / 9)[:, None] * T + (region == "west")[:, None] * T
    y += 0.1 * draw.normal(size=y.shape)
    return {"X": x, "age": age, "region": region, "Y": y, "y": y.mean(axis=1)}


@pytest.fixture(scope="module")
def model(data):
    several = (terms.ff("X", limits="s<=t"), terms.s("age"), terms.factor("region"))
    return FunctionalRegression(several).fit(data, grids=GRIDS)


@pytest.fixture(scope="module")
def additive(data):
    return FunctionalRegression([terms.sff("X")]).fit(data, grids=GRIDS)


@pytest.fixture(scope="module")
def scalar(data):
    return ScalarRegression((terms.lf("X"), terms.factor("region"))).fit(data, grids=GRIDS)


def drawn(figure):
    """Axes that are seen, colour bars left out."""
    figure.canvas.draw()
    return [a for a in figure.axes if a.get_visible() and a.get_label() != "<colorbar>"]


def test_every_term_has_its_panel(model):
    panels = drawn(model.plot(labels={"age": "age [years]", "t": "time [h]"}))
    assert [panel.get_title() for panel in panels] == ["s(t)", "ff(X)", "s(age)", "region"]
    mean, surface, smooth, levels = panels
    np.testing.assert_allclose(mean.lines[1].get_ydata(), model.coef("s(t)")["value"])
    shown = surface.collections[0].get_array()
    expected = model.coef("ff(X)")["value"].to_numpy().reshape(40, 40)
    np.testing.assert_array_equal(np.ma.getmaskarray(shown).reshape(40, 40), np.isnan(expected))
    np.testing.assert_allclose(shown.compressed(), expected[~np.isnan(expected)])
    assert surface.collections[0].norm.vmin == -surface.collections[0].norm.vmax  # zero is white
    assert (smooth.get_xlabel(), smooth.get_ylabel()) == ("time [h]", "age [years]")
    curves = model.coef("region").pivot(index="region", columns="t", values="value")
    for line, level in zip(levels.lines[1:], ("east", "north", "west"), strict=True):
        assert line.get_label() == level
        np.testing.assert_allclose(line.get_ydata(), curves.loc[level])


def test_a_band_is_the_interval_of_coef(model):
    (panel,) = drawn(model.plot("s(t)", level=0.8, t=T))
    band = panel.collections[0].get_paths()[0].vertices[:, 1]
    frame = model.coef("s(t)", level=0.8, t=T)
    np.testing.assert_allclose((band.min(), band.max()), (frame["lower"].min(), frame["upper"].max()))


def test_three_axes_are_slices_of_one_scale(additive):
    panels = drawn(additive.plot("sff(X)"))
    assert len(panels) == 4
    assert len({panel.collections[0].norm.vmax for panel in panels}) == 1
    t = np.linspace(0, 1, 20)[[4, 8, 11, 15]]
    for panel, at in zip(panels, t, strict=True):
        assert panel.get_title() == f"sff(X), t = {at:.3g}"
        values = panel.collections[0].get_array().ravel()
        np.testing.assert_allclose(values, additive.coef("sff(X)", t=[at])["value"], atol=1e-12)


def test_heat_maps_are_hatched_where_the_table_has_no_row(additive, data):
    figure = additive.plot("sff(X)", data=data, t=[0.2, 0.8])
    panel = drawn(figure)[0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("s", "x")
    frame = additive.coef("sff(X)", t=[0.2, 0.8])
    s, x = frame["s"].unique(), frame["x"].unique()
    shown = ~np.ma.getmaskarray(panel.collections[0].get_array()).reshape(s.size, x.size)
    low, high = (np.interp(s, S, extreme(data["X"], axis=0)) for extreme in (np.min, np.max))
    step = x[1] - x[0]
    assert np.array_equal(shown, (x >= low[:, None] - step / 2) & (x <= high[:, None] + step / 2))
    assert 0 < shown.mean() < 1
    assert figure.get_supxlabel() == "white and hatched: no row of the data there"


def test_two_numbers_are_hatched_far_from_every_row(data):
    z, noise = np.arange(N) / N, np.random.default_rng(1).normal(scale=0.03, size=N)
    pair = {"y": data["y"], "z1": z, "z2": z + noise}
    panel = drawn(ScalarRegression("y ~ te(z1, z2, k=4)").fit(pair).plot("te(z1, z2)", data=pair))[0]
    shown = ~np.ma.getmaskarray(panel.collections[0].get_array())
    assert shown.diagonal().all() and not shown[0, -1] and not shown[-1, 0]


def test_a_figure_says_what_its_bands_are(model, scalar):
    assert model.plot("s(t)", level=0.8).get_supxlabel() == "80 % pointwise band"
    assert model.plot("s(t)", ax=plt.subplots()[1]).get_supxlabel() == ""


def test_levels_of_a_number_are_points_with_intervals(scalar):
    curve, levels = drawn(scalar.plot())
    np.testing.assert_allclose(curve.lines[1].get_ydata(), scalar.coef("lf(X)")["value"])
    np.testing.assert_allclose(levels.lines[1].get_xdata(), scalar.coef("region")["value"])
    assert [text.get_text() for text in levels.get_yticklabels()] == ["east", "north", "west"]
    (intercept,) = drawn(scalar.plot("(Intercept)"))
    assert intercept.get_title() == "(Intercept)"


def test_residuals_of_curves(model, data):
    lines, quantiles, against, correlation = drawn(model.plot_residuals(labels={"Y": "flow [l/min]"}))
    residuals = data["Y"] - model.fitted_values_
    np.testing.assert_allclose([line.get_ydata() for line in lines.lines[:N]], residuals)
    np.testing.assert_allclose(lines.lines[-1].get_ydata(), 2 * np.sqrt((residuals**2).mean(axis=0)))
    assert quantiles.lines[0].get_xdata().size == N * T.size
    np.testing.assert_allclose(np.sort(against.lines[1].get_ydata()), np.sort(residuals.ravel()))
    scaled = residuals / np.sqrt((residuals**2).sum(axis=0))
    np.testing.assert_allclose(correlation.collections[0].get_array().reshape(T.size, -1), scaled.T @ scaled)
    assert lines.get_ylabel() == "residual of flow [l/min]"


def test_residuals_of_numbers(scalar, data):
    against, _, _, observed = drawn(plot.residuals(scalar))
    np.testing.assert_allclose(against.lines[1].get_ydata(), scalar.residuals_)
    np.testing.assert_allclose(observed.lines[0].get_ydata(), data["y"])


def test_residuals_at_points_of_their_own(data):
    draw = np.random.default_rng(0)
    record = np.repeat(np.arange(N), 9)
    long = pd.DataFrame({"row": record, "t": draw.uniform(0, 1, record.size), "y": draw.normal(size=record.size)})
    model = FunctionalRegression([terms.linear("age")]).fit({"age": data["age"]}, response=long)
    lines, *_ = drawn(model.plot_residuals())
    sd = lines.lines[-1].get_ydata() / 2
    assert sd.size == 25
    assert abs(sd.mean() - 1) < 0.15


def test_on_axes_of_ones_own(model):
    figure, axes = plt.subplots(2, 2)
    assert model.plot_residuals(ax=axes) is figure
    assert model.plot("s(t)", ax=axes[0, 0]) is figure
    with pytest.raises(InputError, match="ax must be 4 axes, one per panel, got 1"):
        model.plot(ax=axes[0, 0])


def test_what_is_refused(model, tmp_path):
    with pytest.raises(InputError, match="name must be a term of the model"):
        model.plot("ff(Z)")
    with pytest.raises(InputError, match="name must be a term where points are given"):
        model.plot(t=T)
    with pytest.raises(InputError, match=r"labels must have keys among t, got 'speed'"):
        model.plot("s(t)", labels={"speed": "v"})
    with pytest.raises(InputError, match="labels must have keys among t, Y, got 'X'"):
        model.plot_residuals(labels={"X": "v"})
    loaded = FunctionalRegression.load(model.save(tmp_path / "model"))
    with pytest.raises(InputError, match="a file holds none"):
        loaded.plot_residuals()
    loaded.plot()
