"""The bridge with R: each test is skipped, with reason and remedy, where R, rpy2 or its R package is missing."""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from skfda import FDataBasis, FDataGrid
from skfda.representation.basis import BSplineBasis, ConstantBasis, FourierBasis, MonomialBasis

import r_bridge
from fdadp import AdditiveFunctionOnFunction, simulate_affr
from fdadp.errors import InputError
from fdadp.functional.fpca import face_eigenbasis, sc_eigenbasis
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy.noise.sources import OpenDPNoise, SeededNoise
from r_bridge import Frame, RBridgeUnavailable, RError, RWarning, crosscheck
from r_bridge._rpy2 import call, require
from r_bridge.additive_beside_mgcv import AffrFits
from r_bridge.cli import main
from r_bridge.convert import basis_to_fd, fd_to_basis
from r_bridge.difference_report import relative
from r_bridge.mgcv import gam_linear_functional


def smooth_curves(rng: np.random.Generator, n: int, points: int) -> np.ndarray:
    """Random curves of a few waves, with a bend."""
    t = np.linspace(0, 1, points)
    waves = np.array([np.ones(points), np.sin(2 * np.pi * t), np.cos(2 * np.pi * t), np.sin(4 * np.pi * t)])
    return np.asarray(rng.normal(size=(n, 4)) * [1, 0.8, 0.6, 0.4] @ waves)


def random_pair(seed: int, n: int, points: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = np.sort(np.concatenate(([0.0, 1.0], rng.uniform(size=points - 2)))) if seed % 2 else np.linspace(0, 1, points)
    x = smooth_curves(rng, n, points)
    kernel = np.outer(np.sin(np.pi * s), np.cos(np.pi * np.linspace(0, 1, 15)))
    y = (np.sin(x) + 0.3 * x**2) * quadrature_weights(s) @ kernel
    return s, x, y + noise * rng.normal(size=y.shape)


# --- mgcv: the same fits on fresh random data ---


@pytest.mark.mgcv
@settings(max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6),
    k=st.tuples(st.integers(5, 7), st.integers(5, 7)),
    extra=st.integers(5, 60),
    points=st.integers(12, 30),
    noise=st.sampled_from([0.02, 0.1, 0.5]),
)
def test_crosscheck_on_random_data(seed, k, extra, points, noise):
    s, x, y = random_pair(seed, k[0] * k[1] + extra, points, noise)  # mgcv 1.8 wants more rows than coefficients
    report = crosscheck(AdditiveFunctionOnFunction(n_basis_x=k[0], n_basis_s=k[1], n_components=1), x, y, s=s)
    assert report.ok, report.table()
    found = {d.quantity: d for d in report.differences}
    assert found["fitted, at R's sp"].value <= 1e-6
    assert found["our score above R's as R states it"].value <= 1e-6


@pytest.mark.mgcv
@pytest.mark.parametrize("seed", range(4))
def test_crosscheck_by_gcv(seed):
    s, x, y = random_pair(seed, 50, 20, 0.3)
    model = AdditiveFunctionOnFunction(n_basis_x=6, n_basis_s=5, n_components=1, smoothing="gcv")
    report = crosscheck(model, x, y, s=s)
    assert report.ok, report.table()
    assert "GCV score, at R's sp" in {d.quantity for d in report.differences}


@pytest.mark.mgcv
@settings(max_examples=6, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), log_sp=st.tuples(st.floats(-5, 8), st.floats(-5, 8)))
def test_predictions_at_given_smoothing_parameters(seed, log_sp):
    s, x, y = random_pair(seed, 70, 20, 0.1)
    fit = gam_linear_functional(x[:50], y[:50, 7], s, k=(6, 5), smoothing_parameters=np.exp(log_sp))
    fits = AffrFits(x[:50], s, y[:50, 7], (6, 5), packed=fit.packed, dropped=fit.n_dropped)
    ours = fits.fit(np.exp(log_sp))
    for (got, got_se), (want, want_se) in [
        (fits.predict(ours, x[50:] * 1.3), fit.predict(x[50:] * 1.3)),  # some points beyond the training range
        (fits.predict(ours, x[:50]), fit.predict(FDataGrid(x[:50], s))),
    ]:
        np.testing.assert_allclose(got, want, atol=1e-7 * np.ptp(fit.fitted))
        np.testing.assert_allclose(got_se, want_se, rtol=1e-6)
    np.testing.assert_allclose(ours.edf_[0], fit.edf_total, rtol=1e-7)
    np.testing.assert_allclose(fits.smooth.penalty_scales, fit.penalty_scales, rtol=1e-10)


@pytest.mark.mgcv
def test_child_processes_are_of_this_python():
    """rpy2 leaves R's LD_LIBRARY_PATH behind, by which a child may load the libpython of another Python."""
    require("mgcv")
    child = subprocess.run([sys.executable, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
    assert child.stdout.strip() == sys.version


@pytest.mark.mgcv
def test_crosscheck_notices_a_difference():
    data = simulate_affr(scenario=1, n=80, seed=3)
    strict = crosscheck(None, data.X, data.Y, factor=1e-12)
    assert not strict.ok
    assert json.loads(strict.to_json())["components"][0]["edf, mgcv"] > 1


@pytest.mark.mgcv
def test_crosscheck_on_the_command_line(monkeypatch, capsys, tmp_path):
    _, x, y = random_pair(10, 40, 15, 0.1)
    for name, values in (("X", x), ("Y", y)):
        pd.DataFrame(values).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in "XY"]
    options = ["--basis-x", "5", "--basis-s", "5", "--components", "1"]
    monkeypatch.setattr(sys, "argv", ["r_bridge", "crosscheck", *files, *options])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr().out
    assert end.value.code == 0, out
    assert "component   1" in out and "all within tolerance" in out


@pytest.mark.mgcv
def test_what_cannot_be_compared_is_refused():
    data = simulate_affr(scenario=1, n=60, seed=0)
    with pytest.raises(InputError, match="without privacy, with degree=3"):
        crosscheck(AdditiveFunctionOnFunction(degree=2), data.X, data.Y)
    with pytest.raises(InputError, match="smoothing must be 'reml' or 'gcv'"):
        crosscheck(AdditiveFunctionOnFunction(smoothing=(1.0, 1.0)), data.X, data.Y)
    with pytest.raises(InputError, match="y must be 60 finite numbers"):
        gam_linear_functional(data.X, np.zeros(59))
    with pytest.raises(InputError, match="method must be one of"):
        gam_linear_functional(data.X, np.zeros(60), method="OLS")


@pytest.mark.mgcv
def test_more_coefficients_than_curves():
    """mgcv 1.8 refuses, in its own words; 1.9 fits."""
    s, x, y = random_pair(0, 30, 20, 0.1)
    if tuple(map(int, r_bridge.status().packages["mgcv"].split("."))) < (1, 9):
        with pytest.raises(RError, match="R: Model has more coefficients than data"):
            gam_linear_functional(x, y[:, 5], s)
    else:
        assert gam_linear_functional(x, y[:, 5], s).fitted.shape == (30,)


@pytest.mark.mgcv
def test_record_and_check(tmp_path):
    (path,) = r_bridge.record(["affr_sim"], tmp_path)
    report = r_bridge.check(tmp_path)
    assert report.ok, report.table()
    assert len(report.differences) > 50 and path.exists()
    with pytest.raises(InputError, match=r"cases must be among .*, got affr_mars"):
        r_bridge.record(["affr_mars"], tmp_path)


# --- how R is called ---


@pytest.mark.mgcv
def test_threads_get_the_same_answers():
    s, x, y = random_pair(2, 60, 15, 0.1)
    alone = [gam_linear_functional(x, y[:, j], s, k=(5, 5)).fitted for j in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda j: gam_linear_functional(x, y[:, j], s, k=(5, 5)).fitted, range(4)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.mgcv
def test_conditions_come_with_rs_text(caplog):
    with pytest.warns(RWarning) as said, caplog.at_level(logging.INFO, logger="r_bridge"):
        assert call("signal", warnings=["first", "second", "first"], message="by the way").tolist() == [3]
    assert [str(w.message) for w in said] == ["R: first", "R: second"]
    assert "by the way" in caplog.text
    with pytest.raises(RError, match=r"^R: no such thing$"):
        call("signal", warnings=[], error="no such thing")
    with pytest.raises(RError, match=r"could not find function|not found"):
        call("no_such_function")
    with pytest.raises(RBridgeUnavailable, match=r"package nosuchpackage does not load; R says: there is no package"):
        require("nosuchpackage")


VALUES: list[Any] = [
    np.arange(6.0),
    np.arange(24.0).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(6.0).reshape(2, 3)[:, ::-1],
    np.array([[1, 2], [3, 4]]),
    np.array([np.nan, np.inf, -0.0]),
    np.array([True, False]),
    np.array([2**40, 1]),
    np.array(["a", "ä", ""], dtype=object),
    np.empty((0, 3)),
]


@pytest.mark.mgcv
@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{v.shape}")
def test_arrays_go_there_and_back(value):
    again = call("echo", x=value)
    assert again.shape == value.shape
    np.testing.assert_array_equal(again, value)
    seen = call("describe", x=value)
    assert seen["dim"] is None if value.ndim == 1 else seen["dim"].tolist() == list(value.shape)
    kind = {"f": "double", "i": "integer", "b": "logical", "O": "character"}[value.dtype.kind]
    assert seen["type"][0] == ("double" if value.size and value.dtype.kind == "i" and value.max() > 2**31 else kind)


@pytest.mark.mgcv
def test_other_values_go_there_and_back():
    assert call("echo", x=None) is None
    for scalar in (True, 3, 2.5, "text"):
        assert call("echo", x=scalar).tolist() == [scalar]
    nested = call("echo", x={"a": [np.zeros(2), {"b": "c"}], "d": None, "e": [1, 2]})
    assert nested["a"][1]["b"].tolist() == ["c"] and nested["d"] is None and nested["e"].tolist() == [1, 2]
    factor = pd.Categorical(["u", "v", None, "u"], categories=["v", "u", "w"])
    assert call("echo", x=factor).equals(factor)
    seen = call("describe", x=factor)
    assert (seen["class"][0], bool(seen["object"][0]), seen["levels"].tolist()) == ("factor", True, ["v", "u", "w"])
    frame = Frame({"y": np.arange(3.0), "X": np.ones((3, 4)), "g": pd.Categorical(["a", "b", "a"])})
    seen = call("describe", x=frame)
    assert (seen["class"][0], seen["dim"].tolist()) == ("data.frame", [3, 3])
    assert seen["columns"]["X"]["dim"].tolist() == [3, 4] and seen["columns"]["g"]["class"].tolist() == ["factor"]
    again = call("echo", x=frame)
    assert isinstance(again, Frame) and again.columns["X"].shape == (3, 4)
    assert call("describe", x=pd.DataFrame({"a": [1.0, 2.0]}))["class"].tolist() == ["data.frame"]
    curves = FDataGrid(np.ones((2, 5)))
    assert call("echo", x=curves)["values"].shape == (2, 5)
    with pytest.raises(InputError, match="numbers, text, a dict or a list, got dtype complex128"):
        call("echo", x=1j)


def leaves(value: Any) -> list[Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v)]
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.mgcv
def test_results_are_plain_and_fits_are_let_go():
    s, x, y = random_pair(4, 50, 12, 0.1)
    before = int(call("fits_kept")[0])
    fit = gam_linear_functional(x, y[:, 3], s, k=(5, 5))
    assert {type(leaf).__module__.split(".")[0] for leaf in leaves(fit)} <= {"builtins", "numpy", "r_bridge"}
    assert int(call("fits_kept")[0]) == before + 1
    with pytest.raises(TypeError, match="lives in R's memory and cannot be pickled"):
        pickle.dumps(fit)
    with pytest.raises(InputError, match=r"X must have 12 points.*got 11"):
        fit.predict(x[:, 1:])
    del fit
    gc.collect()
    assert int(call("fits_kept")[0]) == before


# --- fda ---


@pytest.mark.fda
@pytest.mark.parametrize(
    "basis",
    [
        BSplineBasis(domain_range=(0, 3), n_basis=8, order=4),
        BSplineBasis(domain_range=(0, 1), order=3, knots=[0, 0.2, 0.7, 1]),
        FourierBasis(domain_range=(0, 2), n_basis=5, period=3),
        MonomialBasis(domain_range=(0, 1), n_basis=3),
        ConstantBasis(domain_range=(0, 1)),
    ],
    ids=lambda b: type(b).__name__,
)
def test_fd_is_the_same_function_in_r(basis):
    data = FDataBasis(basis, np.random.default_rng(1).normal(size=(3, basis.n_basis)))
    at, parts = np.linspace(*basis.domain_range[0], 17), basis_to_fd(data)
    np.testing.assert_allclose(call("eval_fd", "fda", parts=parts, at=at), data(at)[..., 0], atol=1e-13)
    again = fd_to_basis(call("fd_round_trip", "fda", parts=parts))
    assert again.basis == basis
    np.testing.assert_array_equal(again.coefficients, data.coefficients)


@pytest.mark.fda
def test_fd_from_r():
    grid = np.linspace(0, 2, 41)
    values = np.sin(np.outer([1.0, 2.0], grid))
    smooth = fd_to_basis(call("smooth_fd", "fda", values=values, argvals=grid, n_basis=12, order=4))
    np.testing.assert_allclose(smooth(grid)[..., 0], values, atol=1e-3)


# --- VGAM ---


def same_distribution(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(ks_2samp(a, b).pvalue > 1e-6)


@pytest.mark.vgam
@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(0)], ids=lambda s: type(s).__name__)
def test_our_laplace_noise_is_vgams(source):
    from r_bridge.vgam import rlaplace

    n = 20_000
    sampler = source.prepare("laplace", size=n, sensitivity=2.0**24, amount=0.5)
    ours = sampler(np.zeros(n, dtype=np.int64)) / sampler.scale
    theirs = rlaplace(n, seed=1)
    assert sampler.scale == pytest.approx(2.0**25, rel=1e-6)
    assert same_distribution(ours, theirs)
    # The test would notice another scale, and normal noise of the same variance.
    assert not same_distribution(ours, rlaplace(n, scale=1.25, seed=2))
    assert not same_distribution(np.sqrt(2) * np.random.default_rng(0).normal(size=n), theirs)
    np.testing.assert_array_equal(rlaplace(5, seed=3), rlaplace(5, seed=3))
    with pytest.raises(InputError, match="scale must be above 0, got 0"):
        rlaplace(5, scale=0.0)


# --- refund ---


@pytest.fixture
def refund() -> Any:
    import r_bridge.refund as module

    return module


@pytest.mark.refund
@pytest.mark.parametrize("n", [40, 90])
def test_refund_fpca_face_is_ours(refund, n):
    Y = smooth_curves(np.random.default_rng(n), n, 50) + 0.1 * np.random.default_rng(1).normal(size=(n, 50))
    fit = refund.fpca_face(Y, pve=0.95, knots=16, var=True)
    centred = Y - fit.mean  # R smooths the mean
    ours = face_eigenbasis(
        fit.mean, centred.T @ centred / n, np.linspace(0, 1, 50), n_components=0.95, n_knots=16, quadrature="equal"
    )
    assert fit.n_components == ours.n_components
    unit = ours.functions * np.sqrt(ours.weights)
    np.testing.assert_allclose(np.abs(unit), np.abs(fit.functions), atol=1e-8)
    scores = ours.conditional_scores(Y)
    np.testing.assert_allclose(ours.reconstruct(scores), fit.fitted, atol=1e-8)
    again, fitted = fit.predict(Y[:5])
    np.testing.assert_allclose(again, fit.scores[:5], atol=1e-10)
    np.testing.assert_allclose(fitted, fit.fitted[:5], atol=1e-10)


@pytest.mark.refund
def test_refund_fpca_sc_is_ours(refund):
    rng = np.random.default_rng(5)
    Y = smooth_curves(rng, 80, 30) + 0.2 * rng.normal(size=(80, 30))
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    fit = refund.fpca_sc(Y, npc=2, var=True)
    ours = sc_eigenbasis(Y, np.linspace(0, 1, 30), n_components=2, noise="diagonal")
    sign = np.sign((ours.functions * fit.functions).sum(axis=1))
    assert relative(ours.functions * sign[:, None], fit.functions) < 2e-3
    np.testing.assert_allclose(fit.predict(Y[:4])[0], fit.scores[:4], atol=1e-10)


@pytest.mark.refund
def test_refund_pffr(refund):
    s, x, y = random_pair(6, 50, 20, 0.1)
    t = np.linspace(0, 1, 15)
    z = np.random.default_rng(0).normal(size=50)
    data = {"Y": y + z[:, None], "X": FDataGrid(x, s), "z": z}
    formula = "Y ~ ff(X, xind = s, integration = 'trapezoidal') + z"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RWarning)  # pffr warns that z is not centred, and about k
        fit = refund.pffr(formula, data, t, grids={"s": s})
        predicted, se = fit.predict({"X": x[:4], "z": z[:4]})
    np.testing.assert_allclose(predicted, fit.fitted[:4], atol=1e-8)
    assert se.shape == (4, 15) and (se > 0).all()
    surfaces = fit.surfaces(n1=30, n2=10)
    assert [surface.values.shape for surface in surfaces] == [(30,), (10, 10), (30,)]
    np.testing.assert_allclose(surfaces[2].values, 1, atol=0.2)  # z enters with coefficient 1
    with pytest.raises(InputError, match=r"formula must be text with a ~"):
        refund.pffr("Y", data, t)
    with pytest.raises(RError, match=r"R: .*nothing"):
        refund.pffr("Y ~ ff(nothing, xind = s)", data, t, grids={"s": s})


@pytest.mark.refund
def test_refund_pffr_takes_factors(refund):
    rng = np.random.default_rng(7)
    group = pd.Categorical(rng.choice(["a", "b", "c"], 40))
    t = np.linspace(0, 1, 25)
    y = np.sin(2 * np.pi * t) * (np.asarray(group.codes)[:, None] - 1) + 0.1 * rng.normal(size=(40, 25))
    fit = refund.pffr("Y ~ g", {"Y": y, "g": group}, t)
    assert len(fit.smoothing_parameters) == 4, "an intercept curve and one curve for each level"
    predicted, _ = fit.predict({"g": pd.Categorical(["a", "c"], categories=group.categories)})
    np.testing.assert_allclose(predicted, np.outer([-1, 1], np.sin(2 * np.pi * t)), atol=0.3)


@pytest.mark.refund
def test_refund_pfr(refund):
    s, x, _ = random_pair(8, 60, 20, 0.1)
    y = x * quadrature_weights(s) @ np.sin(np.pi * s) + 0.01 * np.random.default_rng(0).normal(size=60)
    fit = refund.pfr("y ~ lf(X, argvals = s, k = 10, integration = 'trapezoidal')", {"y": y, "X": x}, grids={"s": s})
    predicted, se = fit.predict({"X": x[:5]})
    np.testing.assert_allclose(predicted, fit.fitted[:5], atol=1e-8)
    assert (se > 0).all()
    grid, value, _ = fit.curve()
    assert np.abs(value - np.sin(np.pi * grid[:, 0])).max() < 0.6


@pytest.mark.refund
@pytest.mark.fda
def test_refund_fosr(refund):
    rng = np.random.default_rng(9)
    t, design = np.linspace(0, 1, 30), np.column_stack((np.ones(40), rng.normal(size=40)))
    truth = np.array([np.cos(np.pi * t), t])
    fit = refund.fosr(design @ truth + 0.1 * rng.normal(size=(40, 30)), design, t, smoothing_parameter=1e-4)
    np.testing.assert_allclose(fit.coefficients, truth, atol=0.15)
    np.testing.assert_allclose(fit.predict(design), fit.fitted, atol=1e-8)
    with pytest.raises(InputError, match=r"2 columns as in the fit, got shape \(1, 3\)"):
        fit.predict(np.ones((1, 3)))


@pytest.mark.refund
@pytest.mark.parametrize("case", ["pffr_ff_sim", "pfr_lf_dti", "fpca_dti"])
def test_refund_gives_what_was_recorded(refund, refund_reference, case):
    record = refund_reference(case)
    i, out = record["input"], record["output"]
    if record["meta"]["versions"][0].replace("-", ".") != r_bridge.status().packages["refund"]:
        pytest.skip(f"recorded with refund {record['meta']['versions'][0]}")
    if case == "pffr_ff_sim":
        train, test = (i[name].astype(int) - 1 for name in ("train", "test"))
        data = {"Y": i["Y"][train], "X": i["X"][train]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RWarning)
            fit = refund.pffr("Y ~ ff(X, xind = s)", data, i["t"], grids={"s": i["s"]})
            predicted, se = fit.predict({"X": i["X"][test]})
        pairs = [(fit.fitted, "fitted"), (predicted, "predicted"), (se, "predicted_se"), (fit.edf_total, "edf_total")]
        out = out["default"]
    elif case == "pfr_lf_dti":
        data = {"y": i["y"], "X": i["X"]}
        fit = refund.pfr("y ~ lf(X, argvals = a, k = 20, bs = 'ps')", data, grids={"a": i["argvals"]})
        out = out["simpson"]
        pairs = [(fit.fitted, "fitted"), (fit.edf_total, "edf_total")]
    else:
        fit = refund.fpca_face(i["Y"], i["argvals"], pve=0.95, var=True)
        out = out["face"]["unit"][0]
        pairs = [(fit.fitted, "Yhat"), (fit.values, "evalues"), (np.abs(fit.functions.T), "efunctions")]
        out = {**out, "efunctions": np.abs(out["efunctions"])}
    for got, name in pairs:
        assert relative(got, out[name]) < 1e-6, name
