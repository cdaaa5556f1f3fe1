"""Pictures: what is drawn is what the model says; the figures' furniture; what is refused."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from fdadp import FPCA, AdditiveFunctionOnFunction, plot, simulate_affr  # noqa: E402
from fdadp.demo.published_experiment import experiment_figure  # noqa: E402
from fdadp.errors import FdadpError, InputError  # noqa: E402

K = 2


@pytest.fixture(scope="module")
def fitted() -> tuple[AdditiveFunctionOnFunction, pd.DataFrame, pd.DataFrame]:
    sim = simulate_affr(scenario=1, n=40, seed=3)
    names = [f"person {i}" for i in range(40)]
    X = pd.DataFrame(sim.X.data_matrix[..., 0], index=names, columns=sim.X.grid_points[0])
    Y = pd.DataFrame(sim.Y.data_matrix[..., 0], index=names, columns=sim.Y.grid_points[0])
    return AdditiveFunctionOnFunction(n_components=K, progress=False).fit(X, Y), X, Y


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(figure: Any) -> list[Any]:
    """Axes of the figure that are seen, colour bars left out."""
    figure.canvas.draw()
    return [a for a in figure.axes if a.get_visible() and a.get_label() != "<colorbar>"]


def test_heat_maps_show_the_surface(fitted: Any) -> None:
    model, _, _ = fitted
    figure = model.plot_surface(labels={"x": "dose [mg]", "s": "time [h]", "F": "effect"})
    panels = drawn(figure)
    assert len(panels) == 4
    low, high = model.x_range_
    x, s = np.linspace(low, high, 101), np.linspace(model.s_[0], model.s_[-1], 101)
    t = [0.125, 0.375, 0.625, 0.875]
    limits = set()
    for panel, at in zip(panels, t, strict=True):
        mesh = panel.collections[0]
        np.testing.assert_allclose(mesh.get_array().reshape(101, 101), model.surface(x, s, [at])[..., 0], atol=1e-12)
        assert mesh.norm.vmin == -mesh.norm.vmax  # zero is white
        limits.add(mesh.norm.vmax)
        assert panel.get_title() == f"t = {at:.3g}"
        assert panel.get_xlabel() == "time [h]"
    assert len(limits) == 1
    assert [p.get_ylabel() for p in panels] == ["dose [mg]", "", "", ""]
    [bar] = [a for a in figure.axes if a.get_label() == "<colorbar>"]
    assert bar.get_ylabel() == "effect"


def test_the_region_without_curves_is_left_out(fitted: Any) -> None:
    model, X, _ = fitted
    panel = drawn(plot.surface(model, t=0.5, X=X))[0]
    shown = panel.collections[0].get_array().reshape(101, 101)
    mask = np.ma.getmaskarray(shown)
    assert mask.any() and not mask.all()
    x = np.linspace(*model.x_range_, 101)
    step = x[1] - x[0]
    for j, s in ((0, 0), (100, -1)):  # the ends of the grid, where no interpolation is needed
        seen = x[~mask[:, j]]
        assert X.iloc[:, s].min() - step <= seen.min() and seen.max() <= X.iloc[:, s].max() + step


def test_surfaces_side_by_side_have_one_centre_and_one_scale(fitted: Any) -> None:
    model, _, _ = fitted
    sim = simulate_affr(scenario=1, n=40, seed=3)
    panels = drawn(plot.surface({"truth": sim, "fit": model}, t=[0.3, 0.7], X=sim.X))
    assert [p.get_title() for p in panels] == ["truth, t = 0.3", "fit, t = 0.3", "truth, t = 0.7", "fit, t = 0.7"]
    assert (panels[0].get_xlabel(), panels[0].get_ylabel()) == ("s", "X")  # names that the curves carry
    assert len({p.collections[0].norm.vmax for p in panels}) == 1
    curves = sim.X.data_matrix[:, 0, 0]
    shown = panels[2].collections[0].get_array().reshape(101, 101)[:, 0]
    x = np.linspace(curves.min(), curves.max(), 5)
    true = sim.surface(x, [0.0], [0.7])[:, 0, 0] - sim.surface(curves, [0.0], [0.7]).mean()
    low, high = sim.X.data_matrix.min(), sim.X.data_matrix.max()
    seen = ~np.ma.getmaskarray(shown)
    found = np.interp(x, np.linspace(low, high, 101)[seen], shown[seen])
    np.testing.assert_allclose(found, true, atol=0.02)
    own = drawn(plot.surface(model, t=0.5, vmax=2.5))[0]
    assert own.collections[0].norm.vmax == 2.5


def test_what_may_be_zero_is_pale(fitted: Any) -> None:
    """Over the colours lies a veil: where the interval holds zero, and nowhere else."""
    model, _, _ = fitted
    figure = plot.surface(model, t=[0.3], level=0.9)
    veil = figure.axes[0].collections[-1]
    x, s = np.linspace(*model.x_range_, 101), np.linspace(model.s_[0], model.s_[-1], 101)
    half = 1.6448536 * model.surface_se(x, s, [0.3])[:, :, 0]
    zero = np.abs(model.surface(x, s, [0.3])[:, :, 0]) < half
    assert 0 < zero.mean() < 1
    np.testing.assert_array_equal(~np.ma.getmaskarray(veil.get_array()).reshape(zero.shape), zero)
    assert "90 % interval" in figure.get_supxlabel()
    with pytest.raises(InputError, match="level"):
        plot.surface(model, kind="3d", level=0.9)
    with pytest.raises(InputError, match="level"):
        plot.surface(model, level=90)


def test_surface_in_3d_and_on_given_axes(fitted: Any) -> None:
    model, X, _ = fitted
    panels = drawn(plot.surface(model, t=[0.8, 0.2], kind="3d", X=X))
    assert [p.name for p in panels] == ["3d", "3d"]
    assert panels[0].get_zlim() == panels[1].get_zlim()
    figure, axis = plt.subplots()
    assert plot.surface(model, t=0.3, ax=axis) is figure
    assert axis.get_ylabel() == "x"
    with pytest.raises(InputError, match="projection='3d'"):
        plot.surface(model, t=0.3, kind="3d", ax=axis)
    with pytest.raises(InputError, match="2 axes"):
        plot.surface(model, t=[0.2, 0.3], ax=axis)


def test_predictions_show_predictions_bands_and_observations(fitted: Any) -> None:
    model, X, Y = fitted
    figure = model.plot_predictions(X, Y, level=0.9, curves=[4, 0], labels={"t": "hours", "Y": "response"})
    panels = drawn(figure)
    assert len(panels) == 2
    lower, upper = model.predict_interval(X, level=0.9)
    for panel, i in zip(panels, (4, 0), strict=True):
        predicted, observed = panel.lines
        np.testing.assert_allclose(predicted.get_ydata(), model.predict(X).iloc[i])
        np.testing.assert_allclose(observed.get_ydata(), Y.iloc[i])
        band = panel.collections[0].get_paths()[0].vertices[:, 1]
        assert band.min() == pytest.approx(lower.iloc[i].min()) and band.max() == pytest.approx(upper.iloc[i].max())
        error = np.sqrt(np.mean((Y.iloc[i] - model.predict(X).iloc[i]) ** 2))
        assert panel.get_title() == f"person {i}  (RMSE {error:.3g})"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["observed", "predicted", "90 % prediction band"]
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("hours", "response")


def test_predictions_choose_curves_from_best_to_worst(fitted: Any) -> None:
    model, X, Y = fitted
    errors = np.sqrt(((Y - model.predict(X)) ** 2).mean(axis=1)).sort_values()
    titles = [p.get_title() for p in drawn(plot.predictions(model, X, Y))]
    assert len(titles) == 6
    assert titles[0].startswith(f"{errors.index[0]} ") and titles[-1].startswith(f"{errors.index[-1]} ")
    named = plot.predictions(model, X[:3], Y[:3].rename_axis(columns="hour"))
    assert (named.get_supxlabel(), named.get_supylabel()) == ("hour", "Y")
    alone = drawn(plot.predictions(model, X.to_numpy()[:3]))
    assert [p.get_title() for p in alone] == ["curve 0", "curve 1", "curve 2"]
    assert all(len(p.lines) == 1 for p in alone)


def test_eigenfunctions_of_a_model_and_of_an_fpca(fitted: Any) -> None:
    model, _, Y = fitted
    panels = drawn(plot.eigenfunctions(model))
    assert len(panels) == K
    mean, above, below = (line.get_ydata() for line in panels[0].lines)
    np.testing.assert_allclose(mean, model.mean_)
    np.testing.assert_allclose(above - mean, 2 * np.sqrt(model.eigenvalues_[0]) * model.eigenfunctions_[0], atol=1e-12)
    np.testing.assert_allclose(above + below, 2 * mean, atol=1e-12)
    fpca = FPCA(n_components=3).fit(Y)
    panels = drawn(plot.eigenfunctions(fpca, kind="functions"))
    assert len(panels) == 3
    np.testing.assert_allclose(panels[2].lines[1].get_ydata(), fpca.eigenfunctions_[2])
    assert f"{100 * fpca.explained_variance_ratio_[2]:.1f} %" in panels[2].get_title()


def table() -> pd.DataFrame:
    rows = []
    for name in ("a", "b"):
        rows += [(name, "no privacy", "", np.nan, 0.2), (name, "mean curve", "", np.nan, 0.3)]
        rows += [(name, "published", r, e, 1 / e) for r in ("local", "scaled") for e in (0.2, 0.1)]
    frame = pd.DataFrame(rows, columns=["dataset", "scheme", "sensitivity", "epsilon", "rmspe_median"])
    blind = {"acp_85_published": 0.5, "acp_95_published": 0.6, "width_95_published": 0.8}
    return frame.assign(
        rmspe_p10=frame.rmspe_median / 2,
        rmspe_p90=frame.rmspe_median * 2,
        acp_85=0.86,
        acp_95=0.9,
        width_95=1.0,
        **blind,
    )


def test_experiment_has_both_base_lines_and_a_log_axis() -> None:
    figure = experiment_figure(table(), units={"a": "mm"})
    panels = drawn(figure)
    assert len(panels) == 8
    names = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"no privacy", "mean curve", "intervals: honest", "intervals: published"} < names and len(names) == 6
    coverage = [line for line in panels[4].lines if line.get_linestyle() == "--" and line.get_marker() != "None"]
    assert [list(line.get_ydata()) for line in coverage] == [[0.6, 0.6], [0.6, 0.6]]
    first = panels[0]
    assert first.get_yscale() == "log" and "mm" in first.get_ylabel() and first.get_title() == "a"
    lines = {line.get_label(): line for line in first.lines}
    assert lines["no privacy"].get_ydata()[0] == 0.2 and lines["mean curve"].get_ydata()[0] == 0.3
    [local] = [line for name, line in lines.items() if "L1" in str(name)]
    np.testing.assert_allclose(local.get_xydata(), [[0.1, 10], [0.2, 5]])  # in order of ε


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m, X, Y: plot.surface(m, kind="pie"), "kind must be"),
        (lambda m, X, Y: plot.surface(m, labels={"z": "?"}), "labels must have keys among x, s, t, F, got 'z'"),
        (lambda m, X, Y: plot.surface(m, t=7.0), "got 7"),
        (lambda m, X, Y: plot.surface(m, vmax=0.0), "vmax must be a number above 0, got 0"),
        (lambda m, X, Y: plot.surface({"a": m, "b": m}), "X be given with several, got 2"),
        (lambda m, X, Y: plot.predictions(m, X, Y[:3]), "same number of curves, got 40 and 3"),
        (lambda m, X, Y: plot.predictions(m, X, curves=[40]), "rows from 0 to 39, got 40"),
        (lambda m, X, Y: plot.predictions(m, X, names=["a"]), "names must have 40 entries"),
        (lambda m, X, Y: plot.eigenfunctions(m, kind="x"), "kind must be"),
        (lambda m, X, Y: experiment_figure(pd.DataFrame({"dataset": ["a"]})), "summarise"),
    ],
)
def test_what_is_refused(fitted: Any, call: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        call(*fitted)


def test_without_matplotlib_the_error_names_the_extra(fitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(FdadpError, match="pip install matplotlib") as caught:
        fitted[0].plot_surface()
    assert isinstance(caught.value, ImportError)


def test_audit_shows_scores_claim_and_losses() -> None:
    from fdadp.audit import MechanismAudit, ReplayAudit, black_box_audit

    rng = np.random.default_rng(0)
    broken = black_box_audit(rng.normal(9, 1, 500), rng.normal(0, 1, 500), epsilon=1.0)
    replay = ReplayAudit(np.array([0.2, 0.99]), np.ones(2), np.full(2, np.nan), 40, 2)
    figure = MechanismAudit("published", {35: broken}, replay).plot()
    scores, losses = figure.axes
    assert "found ε ≥" in scores.get_title() and "at most 0.9900" in losses.get_title()
    assert "VIOLATION" in figure.get_suptitle()
    with pytest.raises(InputError, match="audit"):
        MechanismAudit("dp-aff", {}).plot()
    plt.close("all")
