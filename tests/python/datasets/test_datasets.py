"""Bundled data, the loaders' search and the simulators' truth."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdadp import datasets
from fdadp.datasets import _data_locations, _dti_tracts, _lip_emg, _simulated_curves
from fdadp.datasets import _dti_tracts as _rfiles
from fdadp.datasets._data_locations import cache_dir
from fdadp.errors import FileFormatError, InputError, MissingDataError
from fdadp.functional.quadrature import quadrature_weights

ROOT = Path(__file__).resolve().parents[3]
TRACTS = {"dti": _dti_tracts.DTI, "dti2": _dti_tracts.DTI2}


def shared(name: str) -> Path:
    """A file of the data folder; the test is skipped, by name, where it is not there."""
    path = _data_locations.data_dir() / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {_data_locations.data_dir_label()}")
    return path


def values(curves: Any) -> np.ndarray:
    return curves.data_matrix[..., 0]


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty data folder, no R library, an empty cache and no site to ask; returns the data folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.setenv("FDADP_DATA", str(folder))
    monkeypatch.setenv("FDADP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LIP_DATA_DIR", raising=False)
    monkeypatch.setattr(_data_locations, "r_libraries", list)
    monkeypatch.setattr(_dti_tracts, "TARBALLS", ())
    monkeypatch.setattr(_lip_emg, "SITES", ())
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine: its address and the folder it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}/", folder
        httpd.shutdown()


# ------------------------------------------------------------------------------------------ Canadian weather --


def test_canadian_weather_is_what_r_fda_has() -> None:
    weather = datasets.load_canadian_weather()
    for curves, name in (
        (weather.X, "temperature"),
        (weather.precipitation, "precipitation"),
        (weather.Y, "log10_precipitation"),
    ):
        frame = pd.read_csv(shared(f"canadian_weather_{name}.csv.gz"), index_col="place")
        np.testing.assert_allclose(values(curves), frame.to_numpy(), rtol=1e-14, atol=1e-14)
        assert list(frame.index) == list(weather.stations["place"])
    stations = pd.read_csv(shared("canadian_weather_stations.csv.gz"))
    for column in ("place", "province", "region"):
        assert list(weather.stations[column]) == list(stations[column])


def test_canadian_weather_is_what_the_recorded_cases_used(reference: Any) -> None:
    case = reference("affr_canadian")["input"]
    weather = datasets.load_canadian_weather()
    np.testing.assert_allclose(
        values(weather.X), case["X"], rtol=1e-12, atol=1e-14
    )  # decimal readers differ in the last bit
    np.testing.assert_allclose(values(weather.Y), case["Y"], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(weather.X.grid_points[0], case["s"], rtol=1e-12, atol=1e-14)


def test_canadian_weather_zeros_and_units() -> None:
    weather = datasets.load_canadian_weather()
    zeros = values(weather.precipitation) == 0
    assert zeros.sum() == 27
    np.testing.assert_allclose(values(weather.Y)[zeros], np.log10(0.05))
    assert {"X", "Y", "precipitation", "latitude"} <= set(weather.units)
    assert "Ramsay" in weather.source
    assert weather.groups is None
    assert repr(weather) == "<WeatherDataset Canadian weather: 35 pairs of curves>"


def test_canadian_coordinates_are_decimal_degrees() -> None:
    stations = datasets.load_canadian_weather().stations.set_index("place")
    assert stations.loc["St. Johns", "latitude"] == pytest.approx(47 + 34 / 60)
    assert stations.loc["St. Johns", "longitude"] == pytest.approx(-52 - 43 / 60)
    assert stations.loc["Thunder Bay", "longitude"] == -89
    assert stations.loc["Pr. George", "latitude"] == 53.88381  # decimal in the source already
    raw = pd.read_csv(ROOT / "fdadp" / "datasets" / "data" / "canadian_weather_stations.csv")
    minutes = raw.loc[raw["station"] != "Pr. George", ["lat", "lon"]].abs().to_numpy() % 1 * 100
    assert (np.rint(minutes) < 60).all()
    np.testing.assert_allclose(minutes, np.rint(minutes), atol=1e-9)


def test_canadian_frames_have_the_place_as_index() -> None:
    weather = datasets.load_canadian_weather(as_frame=True)
    assert weather.X.shape == weather.Y.shape == weather.precipitation.shape == (35, 365)
    assert weather.X.loc["Vancouver"].iloc[0] == 2.3
    assert weather.X.columns[0] == pytest.approx(0.5 / 365)
    assert list(weather.stations.index) == list(weather.X.index)


def test_the_bundled_files_are_what_the_script_makes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("fdars", reason="fdars is not installed")
    script = ROOT / "tools" / "bundle_canadian_weather.py"
    spec = importlib.util.spec_from_file_location("bundle", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = module.TARGET
    monkeypatch.setattr(module, "TARGET", tmp_path)
    module.main()
    for made in tmp_path.iterdir():
        if made.suffix == ".gz":  # zlib versions may pack differently
            pd.testing.assert_frame_equal(pd.read_csv(made), pd.read_csv(kept / made.name))
        else:
            assert made.read_bytes() == (kept / made.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


# -------------------------------------------------------------------------------------------- DTI and DTI2 --


@pytest.mark.parametrize(
    ("complete", "scans", "people"), [("both", 229, 95), ("cca", 334, 100), ("rcst", 231, 95), ("none", 340, 100)]
)
def test_dti2_complete_scans(complete: Any, scans: int, people: int) -> None:
    shared("dti2.csv.gz")
    every = datasets.load_dti2(complete=complete)
    first = datasets.load_dti2(complete=complete, visit="first")
    assert values(every.X).shape == (scans, 93)
    assert values(every.Y).shape == (scans, 55)
    assert every.covariates.shape == (scans, 3)
    assert every.groups is not None and first.groups is not None
    assert len(np.unique(every.groups)) == len(first.groups) == people
    assert np.isnan(values(every.Y)).any() == (complete in ("cca", "none"))
    assert repr(every) == f"<FunctionalDataset DTI2: {scans} pairs of curves of {people} people>"


def test_dti2_first_visits_are_the_recorded_ones(reference: Any) -> None:
    shared("dti2.csv.gz")
    case = reference("affr_dti2")["input"]
    data = datasets.load_dti2(visit="first")
    np.testing.assert_allclose(
        values(data.X), case["X"], rtol=1e-12, atol=1e-14
    )  # decimal readers differ in the last bit
    np.testing.assert_allclose(values(data.Y), case["Y"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(data.X.grid_points[0], case["s"])
    np.testing.assert_allclose(data.Y.grid_points[0], case["t"])


@pytest.mark.parametrize(("complete", "scans"), [("both", 255), ("cca", 376), ("rcst", 257), ("none", 382)])
def test_dti_complete_scans(complete: Any, scans: int) -> None:
    shared("dti.csv.gz")
    data = datasets.load_dti(complete=complete)
    assert values(data.X).shape == (scans, 93)
    assert list(data.covariates.columns) == ["ID", "visit", "visit_time", "Nscans", "case", "sex", "pasat"]
    np.testing.assert_array_equal(data.groups, data.covariates["ID"])
    controls = data.covariates["case"] == 0
    assert data.covariates["pasat"].isna().equals(controls)


def test_dti_with_gaps_is_the_recorded_one(reference: Any) -> None:
    shared("dti.csv.gz")
    case = reference("fpca_dti_missing")["input"]
    np.testing.assert_allclose(values(datasets.load_dti(complete="none").X), case["Y"], rtol=1e-12, atol=1e-14)


def test_tracts_as_frames() -> None:
    shared("dti2.csv.gz")
    data = datasets.load_dti2(as_frame=True)
    assert data.X.shape == (229, 93)
    assert data.X.index.equals(data.covariates.index)


@pytest.mark.parametrize("argument", ["visit", "complete"])
def test_tracts_refuse_unknown_choices(argument: str) -> None:
    with pytest.raises(InputError, match=rf"{argument} must be one of .*, got 'last'"):
        datasets.load_dti2(**{argument: "last"})


@pytest.mark.parametrize("load", [datasets.load_dti, datasets.load_dti2, datasets.load_lip_emg])
def test_data_that_are_nowhere_name_the_places(nowhere: Path, load: Any) -> None:
    with pytest.raises(MissingDataError) as caught:
        load(download=False)
    message = str(caught.value)
    assert str(nowhere) in message
    assert "FDADP_DATA" in message
    assert ("LIP_DATA_DIR" if load is datasets.load_lip_emg else "R libraries") in message
    assert "download=True" in message
    assert isinstance(caught.value, FileNotFoundError)


def test_a_folder_that_does_not_exist_is_named(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FDADP_DATA", str(nowhere / "typo"))
    with pytest.raises(MissingDataError, match=r"typo \(FDADP_DATA; no such folder\)"):
        datasets.load_dti2(download=False)


def test_the_default_folder_of_an_installed_package_is_in_the_users_cache(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FDADP_DATA")
    library = tmp_path / "lib" / "python3.12" / "site-packages"
    monkeypatch.setattr(_data_locations, "__file__", str(library / "fdadp" / "datasets" / "_data_locations.py"))
    assert _data_locations.data_dir() == cache_dir() / "data"
    monkeypatch.delenv("FDADP_CACHE", raising=False)
    assert tmp_path not in _data_locations.data_dir().parents
    library.mkdir(parents=True)
    (library / "pyproject.toml").write_text("")  # now it is a copy of the repository
    assert _data_locations.data_dir() == library.parent / "shared" / "data"


def test_a_changed_file_is_refused(nowhere: Path) -> None:
    frame = pd.read_csv(shared_outside("dti2.csv.gz"))
    frame.to_csv(nowhere / "dti2.csv.gz", index=False)
    assert len(datasets.load_dti2(download=False).covariates) == 229
    frame.loc[3, "cca_5"] += 1e-6
    frame.to_csv(nowhere / "dti2.csv.gz", index=False)
    with pytest.raises(FileFormatError, match=r"dti2.csv.gz .*must have the published values"):
        datasets.load_dti2(download=False)


@pytest.mark.parametrize("content", [b"not gzip", b""])
def test_a_file_that_is_something_else_is_refused(nowhere: Path, content: bytes) -> None:
    (nowhere / "dti2.csv.gz").write_bytes(content)
    with pytest.raises(FileFormatError, match="must be a gzip-compressed CSV of DTI2"):
        datasets.load_dti2(download=False)


DEFAULT_DATA = _data_locations.data_dir()


def shared_outside(name: str) -> Path:
    """As `shared`, for tests that have pointed FDADP_DATA elsewhere."""
    if not (DEFAULT_DATA / name).is_file():
        pytest.skip(f"{name} is not in {DEFAULT_DATA}")
    return DEFAULT_DATA / name


def write_rda(path: Path, objects: dict[str, Any]) -> None:
    """Write R objects as R does; older versions of rdata can only read."""
    import rdata

    if not hasattr(rdata, "write_rda"):
        pytest.skip("this version of rdata cannot write the file that the test reads")
    rdata.write_rda(path, objects)


def build_tarball(path: Path, name: str, *, change: float = 0.0, ending: str = "RData") -> None:
    """A tarball laid out like refund's, with the data set as R list (R need not be there)."""
    study = TRACTS[name]
    columns = dict(_dti_tracts._from_csv(study, [DEFAULT_DATA / f"{study.name.lower()}.csv.gz"]))
    columns["cca"] = columns["cca"] + change
    r_object = {k.replace("_", "."): v if v.dtype.kind in "if" else [str(x) for x in v] for k, v in columns.items()}
    r_object = {k: np.asarray(v) for k, v in r_object.items()}
    rda = path.parent / f"{study.name}.rda"
    write_rda(rda, {study.name: r_object})
    with tarfile.open(path, "w:gz") as tar:
        tar.add(rda, arcname=f"refund/data/{study.name}.{ending}")
    rda.unlink()


@pytest.mark.parametrize(("name", "ending"), [("dti", "RData"), ("dti2", "RData"), ("dti2", "rda")])
def test_tarball_in_the_data_folder(nowhere: Path, name: str, ending: str) -> None:
    shared_outside(f"{name}.csv.gz")
    build_tarball(nowhere / "refund_0.1-38.tar.gz", name, ending=ending)
    data = getattr(datasets, f"load_{name}")(download=False, complete="none")
    assert len(data.covariates) == {"dti": 382, "dti2": 340}[name]
    shutil.copy(shared_outside(f"{name}.csv.gz"), nowhere)
    from_csv = getattr(datasets, f"load_{name}")(download=False, complete="none")
    pd.testing.assert_frame_equal(data.covariates, from_csv.covariates)
    assert data.groups.dtype == from_csv.groups.dtype == np.int64


def test_download_falls_back_to_the_archive_and_is_kept(
    nowhere: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_outside("dti2.csv.gz")
    address, folder = server
    (folder / "Archive").mkdir()
    build_tarball(folder / "Archive" / "refund_0.1-38.tar.gz", "dti2")
    urls = (address + "refund_0.1-38.tar.gz", address + "Archive/refund_0.1-38.tar.gz")
    monkeypatch.setattr(_dti_tracts, "TARBALLS", urls)
    assert len(datasets.load_dti2().covariates) == 229
    shutil.rmtree(folder / "Archive")
    assert len(datasets.load_dti2().covariates) == 229  # from the cache


def test_download_of_other_values_is_refused_and_not_kept(
    nowhere: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared_outside("dti2.csv.gz")
    address, folder = server
    build_tarball(folder / "refund.tar.gz", "dti2", change=1e-6)
    monkeypatch.setattr(_dti_tracts, "TARBALLS", (address + "refund.tar.gz",))
    with pytest.raises(MissingDataError, match="must hold the published values"):
        datasets.load_dti2()
    assert not list((tmp_path / "cache").iterdir())


def test_a_server_that_does_not_answer_is_reported(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dti_tracts, "TARBALLS", ("http://127.0.0.1:9/refund.tar.gz",))
    with pytest.raises(MissingDataError, match=r"127.0.0.1:9/refund.tar.gz: \w*Connect"):
        datasets.load_dti2()


@pytest.mark.parametrize("kind", ["RData", "1", "2", "3"])
def test_installed_refund(nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    """A data frame as R itself writes it: a data file, or a lazy-load data base by each of R's methods."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("Rscript is not installed")
    data = tmp_path / "library" / "refund" / "data"
    data.mkdir(parents=True)
    code = f"""
        d <- read.csv("{shared_outside("dti2.csv.gz")}")
        DTI2 <- d[c("id", "visit", "pasat")]
        DTI2$cca <- as.matrix(d[grep("^cca_", names(d))])
        DTI2$rcst <- as.matrix(d[grep("^rcst_", names(d))])
        if ("{kind}" == "RData") save(DTI2, file = "{data}/DTI2.RData", compress = "xz") else
          tools:::makeLazyLoadDB(list2env(list(DTI2 = DTI2)), "{data}/Rdata", compress = as.integer("{kind}"))
    """
    subprocess.run([rscript, "-e", code], check=True, capture_output=True, timeout=60)
    monkeypatch.setattr(_data_locations, "r_libraries", lambda: [tmp_path / "library"])
    assert len(datasets.load_dti2(download=False).covariates) == 229


def test_lazy_data_base_of_r_itself() -> None:
    folder = next((lib / "datasets" for lib in _data_locations.r_libraries() if (lib / "datasets").is_dir()), None)
    if folder is None:
        pytest.skip("no R library with the package datasets")
    women = _rfiles.from_library(folder, "women")
    assert women is not None
    assert list(women["height"][:3]) == [58, 59, 60]
    assert _rfiles.from_library(folder, "no_such_thing") is None


def test_files_that_are_not_rs(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="R's file of x must be a file written by R"):
        _rfiles.from_rda_bytes(b"nonsense", "x")
    (tmp_path / "a.tar.gz").write_bytes(b"nonsense")
    with pytest.raises(FileFormatError, match=r"a\.tar\.gz must be a tarball with refund/data/DTI\.RData"):
        _rfiles.from_tarball(tmp_path / "a.tar.gz", "refund", "DTI")


def test_a_tarball_without_the_file_and_an_rda_without_the_object(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(FileFormatError, match="got one without it"):
        _rfiles.from_tarball(tmp_path / "a.tar.gz", "refund", "DTI")
    write_rda(tmp_path / "DTI.rda", {"other": np.ones(2)})
    with pytest.raises(FileFormatError, match="must hold an object of that name, got other"):
        _rfiles.from_rda_bytes((tmp_path / "DTI.rda").read_bytes(), "DTI")


def test_content_checksum_sees_values_shape_and_gaps_but_not_the_last_bit() -> None:
    base = {"x": np.array([[1.0, np.nan], [0.1, 2.0]])}
    digest = _data_locations.content_sha256(base)
    assert digest == _data_locations.content_sha256({"x": np.nextafter(base["x"], np.inf)})
    for other in (base["x"] + 1e-8, base["x"].T, base["x"].reshape(1, 4), np.nan_to_num(base["x"])):
        assert digest != _data_locations.content_sha256({"x": other})
    assert _data_locations.content_sha256({"x": np.array([1, 2])}) == _data_locations.content_sha256(
        {"x": np.array([1.0, 2.0])}
    )


# ------------------------------------------------------------------------------------------------- Lip EMG --


def test_lip_emg_is_the_recorded_one(reference: Any) -> None:
    shared("lip_emg_emg.csv.gz")
    case = reference("affr_lip")["input"]
    data = datasets.load_lip_emg(n_points=101)
    np.testing.assert_allclose(values(data.X), case["X"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(values(data.Y), case["Y"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(data.X.grid_points[0], case["s"], rtol=1e-12, atol=1e-14)
    full = datasets.load_lip_emg()
    assert values(full.X).shape == values(full.Y).shape == (32, 501)
    assert full.X.grid_points[0][-1] == 0.69


def write_raw(folder: Path) -> None:
    for block, file in _lip_emg.RAW.items():
        frame = pd.read_csv(shared_outside(f"lip_emg_{block}.csv.gz"), index_col="record")
        np.savetxt(folder / file, frame.to_numpy().T, fmt="%.17e")


def test_lip_emg_raw_files(nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_raw(tmp_path)
    monkeypatch.setenv("LIP_DATA_DIR", str(tmp_path))
    assert values(datasets.load_lip_emg(download=False).X).shape == (32, 501)
    (tmp_path / "EMG.dat").write_text("1 2 3\n")
    with pytest.raises(FileFormatError, match=r"EMG.dat must be 501 rows of 32 numbers, got 1 x 3"):
        datasets.load_lip_emg(download=False)


def test_lip_emg_download(nowhere: Path, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    address, folder = server
    write_raw(folder)
    monkeypatch.setattr(_lip_emg, "SITES", (address + "gone/", address))
    assert datasets.load_lip_emg(as_frame=True).Y.shape == (32, 501)


@pytest.mark.parametrize("n_points", [1, 100, 502, 5.0, True])
def test_lip_emg_refuses_uneven_thinning(n_points: Any) -> None:
    with pytest.raises(InputError, match="n_points must"):
        datasets.load_lip_emg(n_points=n_points)


# ---------------------------------------------------------------------------------------------- Simulators --

SIMULATORS = {
    **{f"affr {k}": functools.partial(datasets.simulate_affr, k) for k in (1, 2, 3)},
    "cosine": datasets.simulate_cosine,
}


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(sorted(SIMULATORS)),
    n=st.integers(1, 5),
    n_points=st.integers(3, 30),
    seed=st.integers(0, 2**32),
)
def test_mean_function_is_mean_plus_integral_of_the_surface(name: str, n: int, n_points: int, seed: int) -> None:
    sim = SIMULATORS[name](n=n, seed=seed, n_points=n_points)
    weights = quadrature_weights(sim.s)
    j = np.arange(n_points)
    for x, mean_function in zip(sim.X_true, sim.mean_function, strict=True):
        along = sim.surface(x, sim.s, sim.t)[j, j]  # F{X(s_j), s_j, t}
        np.testing.assert_allclose(sim.mean(sim.t) + weights @ along, mean_function, atol=1e-12)


@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_normalising_constants(scenario: int) -> None:
    s = np.linspace(0, 1, 51)
    weights = quadrature_weights(s)
    truth = _simulated_curves.SCENARIOS[scenario]
    x = _simulated_curves.draw_predictors(scenario, 20_000, s, np.random.default_rng(99))
    integrals = [part.predictor(x, s) @ weights for part in truth.parts]
    np.testing.assert_allclose([i.mean() for i in integrals], [p.offset for p in truth.parts], rtol=1e-10)
    signal = sum(i[:, None] * p.response(s) for i, p in zip(integrals, truth.parts, strict=True))
    scale = np.sqrt(((signal - signal.mean(axis=0)) ** 2 @ weights).mean())
    assert scale == pytest.approx(truth.scale, rel=1e-10)


@pytest.mark.parametrize(
    ("scenario", "mean_function", "x", "y"),
    [
        (1, [-0.54136946, -0.59899055, 1.40950893], [-3.10287942, -2.51476859], [-0.85863695, 1.14195005]),
        (2, [1.13218107, 0.93597082, 1.97963361], [-3.10287942, -2.51476859], [0.81491358, 1.71207474]),
        (3, [1.1151557, 0.91850099, 0.79427227], [-0.17836827, -2.29401776], [1.5480413, 1.01563535]),
    ],
)
def test_scenarios_are_those_of_the_prototype(
    scenario: int, mean_function: list[float], x: list[float], y: list[float]
) -> None:
    """Values of ``sim(50, scenario, np.random.default_rng(7))`` of the design prototype, curve 3."""
    sim = datasets.simulate_affr(scenario, 50, 7)
    np.testing.assert_allclose(sim.mean_function[3, [0, 25, 50]], mean_function, atol=1e-8)
    np.testing.assert_allclose(values(sim.X)[3, [0, 50]], x, atol=1e-8)
    np.testing.assert_allclose(values(sim.Y)[3, [0, 50]], y, atol=1e-8)


@pytest.mark.parametrize("name", sorted(SIMULATORS))
def test_simulations_are_reproducible_and_noise_can_be_left_out(name: str) -> None:
    simulator = SIMULATORS[name]
    one, two, other = simulator(n=4, seed=5), simulator(n=4, seed=5), simulator(n=4, seed=6)
    np.testing.assert_array_equal(values(one.Y), values(two.Y))
    assert not np.array_equal(values(one.Y), values(other.Y))
    clean = simulator(n=4, seed=5, x_noise=0, white_noise=0, smooth_noise=0)
    np.testing.assert_array_equal(values(clean.X), one.X_true)
    np.testing.assert_array_equal(values(clean.Y), one.mean_function)
    assert "4 pairs on 51 points, seed=5" in repr(one)


def test_noise_has_the_stated_size() -> None:
    sim = datasets.simulate_affr(1, n=2000, seed=1, x_noise=0.3, smooth_noise=0, white_noise=0.2)
    assert np.std(values(sim.X) - sim.X_true) == pytest.approx(0.3, rel=0.02)
    assert np.std(values(sim.Y) - sim.mean_function) == pytest.approx(0.2, rel=0.02)


def test_cosine_surface() -> None:
    sim = datasets.simulate_cosine(n=2)
    x, s, t = np.linspace(-2, 2, 5), np.linspace(0, 1, 3), np.linspace(0, 1, 4)
    expected = np.broadcast_to(np.cos(t - x[:, None, None] - 5), (5, 3, 4))
    np.testing.assert_allclose(sim.surface(x, s, t), expected, atol=1e-14)
    np.testing.assert_array_equal(sim.mean(t), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": 4}, "scenario must be 1, 2 or 3, got 4"),
        ({"scenario": [1]}, "scenario must be 1, 2 or 3"),
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"n": 2.5}, "n must be a whole number of at least 1, got 2.5"),
        ({"n_points": 2}, "n_points must be a whole number of at least 3, got 2"),
        ({"x_noise": -1.0}, "x_noise must be a number >= 0, got -1.0"),
        ({"white_noise": float("nan")}, "white_noise must be a number >= 0, got nan"),
        ({"smooth_noise": "much"}, "smooth_noise must be a number >= 0, got 'much'"),
    ],
)
def test_simulators_refuse_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        datasets.simulate_affr(**arguments)


def test_surface_refuses_wrong_axes() -> None:
    sim = datasets.simulate_affr(n=1)
    with pytest.raises(InputError, match=r"x must be one-dimensional, got shape \(1, 1\)"):
        sim.surface([[0.0]], [0.0], [0.0])
    with pytest.raises(InputError, match="t must be numbers, got 'a'"):
        sim.mean("a")


def test_import_is_light() -> None:
    code = "import sys, fdadp.datasets, fdadp.functional.metrics; print({'skfda', 'pooch', 'rdata'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(("curves", "missing"), [("heart_rate", 0.126), ("pressure", 0.146)])
def test_icu_stays(curves: str, missing: float) -> None:
    shared("icu_stays.csv.gz")
    data = datasets.load_icu(curves, as_frame=True)
    assert data.X.shape == data.Y.shape == (8000, 24)
    assert data.X.columns[0] == 0.5 and data.Y.columns[-1] == 47.5
    both = np.hstack((data.X.to_numpy(), data.Y.to_numpy()))
    assert np.isnan(both).mean() == pytest.approx(missing, abs=5e-4)
    assert data.covariates["died_in_hospital"].mean() == pytest.approx(0.14, abs=0.005)
    assert len(set(data.groups)) == 8000


def test_icu_stays_elsewhere(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"icu_heart_rate\.csv\.gz and icu_stays\.csv\.gz in .*: not there"):
        datasets.load_icu(download=False)
    (tmp_path / "icu_heart_rate.csv.gz").write_bytes(gzip.compress(b"stay,0.5\n1,80\n"))
    with pytest.raises(FileFormatError, match="published values"):
        datasets.load_icu()
    with pytest.raises(InputError, match="curves must be"):
        datasets.load_icu("temperature")


def test_nhanes_wear_flags_are_the_published_ones() -> None:
    """Counts and the table's figures of the data's own page; the days of one person are together with its age."""
    shared("nhanes_wear_c.npz")
    days = datasets.load_nhanes_wear(minutes=60, as_frame=True)
    assert days.Y.shape == (34584, 24) and days.X is None
    assert days.groups is not None and len(np.unique(days.groups)) == 6722
    assert days.Y.to_numpy().min() == 0 and days.Y.to_numpy().max() == 1
    assert (days.Y.to_numpy().sum(axis=1) >= 10 - 1e-9).all()
    people = pd.read_csv(shared_outside("nhanes_people_c.csv.gz"), index_col="SEQN")
    assert (days.covariates["age"].to_numpy() == people.loc[days.groups, "RIDAGEYR"].to_numpy()).all()
    assert set(days.covariates.loc[days.covariates["weekend"], "weekday"]) == {1, 7}
    assert "34584 curves of 6722 people" in repr(days)


def test_nhanes_wear_flags_say_what_is_wrong(nowhere: Path) -> None:
    with pytest.raises(InputError, match="minutes must divide 1440, got 7"):
        datasets.load_nhanes_wear(minutes=7)
    with pytest.raises(MissingDataError, match=r"nhanes_wear_c\.npz and nhanes_people_c\.csv\.gz in"):
        datasets.load_nhanes_wear()
    for file in ("nhanes_wear_c.npz", "nhanes_people_c.csv.gz"):
        (nowhere / file).write_bytes(b"no data")
    with pytest.raises(FileFormatError, match="must be packed days and a table of their people"):
        datasets.load_nhanes_wear()
