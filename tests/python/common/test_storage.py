"""Files of fitted models: what is written, what is found at load, what is refused, and before what."""

from __future__ import annotations

import fractions
import functools
import io
import json
import shutil
import tracemalloc
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
from moments_file import LAYOUT, StoredMoments

from fdadp import DPAFF, AdditiveFunctionOnFunction, Privacy, PrivateFPCA, PrivateMean, simulate_affr
from fdadp.errors import FileFormatError, InputError
from fdadp.files.dataclass_json import labels_from_json, labels_to_json
from fdadp.files.npz_files import FILE_VERSION, Layout
from fdadp.privacy import Budget
from fdadp.regression.additive.fitted_surface import LAYOUT as REGRESSION

GAP = np.s_[3, 2:5]


@functools.cache
def curves():
    sim = simulate_affr(scenario=1, n=60, seed=0, n_points=21)
    return sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]


BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}


def settings(**kwargs):
    return Privacy(**{"epsilon": 8.0, "delta": 1e-6, "n": 60, "random_state": 7} | kwargs)


def useless(**kwargs):
    """A model that is fitted however little it can say."""
    return AdditiveFunctionOnFunction(bounds=BOUNDS, mechanism=DPAFF(allow_useless=True), **kwargs)


def regression(**kwargs):
    x, y = curves()
    if kwargs.get("missing"):
        x = x.copy()
        x[GAP] = np.nan
    return AdditiveFunctionOnFunction(n_basis_x=5, n_basis_s=5, progress=False, **kwargs).fit(x, y)


def private_mean():
    return PrivateMean(privacy=settings(), bounds=(-8, 8))


def private_regression(y=None, privacy=None, **kwargs):
    return useless(privacy=privacy or settings(), **kwargs).fit(curves()[0], curves()[1] if y is None else y)


MODELS = {
    "regression": regression,
    "gaps": lambda: regression(missing="fpca"),
    "private regression": private_regression,
    "private mean": lambda: private_mean().fit(curves()[1]),
    "private components": lambda: PrivateFPCA(n_components=2, privacy=settings(), bounds=(-8, 8)).fit(curves()[1]),
    "moments": lambda: StoredMoments.of(curves()[0]),
}
model = functools.cache(lambda name: MODELS[name]())
EVERY = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def entries(path):
    with zipfile.ZipFile(path) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def pack(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, raw in members.items():
            file.writestr(name, raw)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def with_header(members, change):
    """The entries of a file with its header's text changed, and a sound zip directory."""
    text = np.load(io.BytesIO(members["header.npy"])).tobytes()
    return members | {"header.npy": npy(np.frombuffer(change(text), dtype=np.uint8))}


# --- what is written ---


@EVERY
def test_arrays_of_models_have_one_layout(name, monkeypatch, path):
    """A file keeps no strides, and BLAS kernels for AVX-512 round strided operands in another order."""
    written = {}
    monkeypatch.setattr(Layout, "write", lambda self, path, content, arrays, **_: written.update(arrays))
    model(name).save(path)
    assert written and [key for key, value in written.items() if not np.asarray(value).flags.c_contiguous] == []


@EVERY
def test_a_model_is_a_file_and_the_file_the_model(name, path, tmp_path):
    """Written twice, and written after loading: the same bytes."""
    model(name).save(path)
    other = model(name).save(tmp_path / "twice")
    again = type(model(name)).load(path).save(tmp_path / "again.npz")
    assert path.read_bytes() == other.read_bytes() == again.read_bytes()
    with np.load(path, allow_pickle=False) as plain_numpy:
        assert "header" in plain_numpy.files


def test_the_privacy_that_was_spent_is_written_not_the_one_set_since(path):
    fitted = private_regression()
    fitted.set_params(privacy=settings(epsilon=0.01))
    again = AdditiveFunctionOnFunction.load(fitted.save(path))
    assert again.privacy_.epsilon == again.privacy.epsilon == again.ledger_.epsilon == 8.0


def test_a_model_fitted_without_privacy_does_not_say_that_it_has_it(path):
    fitted = regression().set_params(privacy=settings())
    again = AdditiveFunctionOnFunction.load(fitted.save(path))
    assert again.ledger_ is None and again.privacy_ is None and again.privacy is None


def test_a_private_model_is_loaded_with_the_splines_it_was_fitted_with(path):
    fitted = private_regression(degree=2)
    x = curves()[0][:5] * 0.5
    np.testing.assert_array_equal(AdditiveFunctionOnFunction.load(fitted.save(path)).predict(x), fitted.predict(x))


def test_a_failed_write_leaves_what_was_there(path, tmp_path):
    path.write_bytes(b"before")
    with pytest.raises(InputError, match=r"content\.bad must be made of numbers"):
        LAYOUT.write(path, {"bad": object()}, {"mean": np.zeros(2), "scatter": np.eye(2)})
    for arrays, text in (
        ({"mean": np.zeros(2)}, "lacks 'scatter'"),
        ({"mean": np.zeros(2), "scatter": np.eye(3)}, r"'scatter' of shape \(3, 3\), not \(q, q\) with {'q': 2}"),
        ({"mean": np.zeros(2), "scatter": np.zeros((2, 3))}, "'scatter' of shape"),
        ({"mean": np.zeros(2), "scatter": np.zeros(2)}, "'scatter' of shape"),
        ({"mean": np.zeros(2), "scatter": np.eye(2), "more": np.eye(2)}, "has the unknown member 'more'"),
    ):
        with pytest.raises(InputError, match=text):
            LAYOUT.write(path, {"n": 3}, arrays)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


# --- what is found at load ---


def flips(path, name, trials, rng):
    """Change single bytes of a saved model; returns the positions of those that changed nothing."""
    raw = bytearray(model(name).save(path).read_bytes())
    harmless = []
    for position in rng.permutation(len(raw))[:trials]:
        changed = raw.copy()
        changed[position] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            again = type(model(name)).load(path)
        except FileFormatError as error:
            assert str(path) in str(error)
            continue
        assert again.save(path).read_bytes() == raw, position
        harmless.append(int(position))
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        starts = [(info.header_offset + 30 + len(info.filename), info.file_size) for info in file.infolist()]
    content = {position for start, size in starts for position in range(start, start + size)}
    assert content.isdisjoint(harmless)
    assert 0.5 * len(raw) < len(content) < len(raw)
    return harmless


@pytest.mark.parametrize("name", ["private mean", "private regression"])
def test_a_changed_byte_is_found_or_changes_nothing(name, path):
    flips(path, name, 80, np.random.default_rng(5))


@pytest.mark.long
@EVERY
def test_every_changed_byte_is_found_or_changes_nothing(name, path):
    harmless = flips(path, name, 2000, np.random.default_rng(6))
    assert len(harmless) < 400


@pytest.mark.parametrize("name", ["private mean", "private components", "private regression"])
def test_what_is_pasted_from_another_model_is_found(name, path, tmp_path):
    """Ledger, ε, δ and arrays; zip directory and checksums are sound each time."""
    fitted = model(name)
    members = entries(fitted.save(path))
    other = dict(entries(type(fitted).load(path).save(tmp_path / "other.npz")))
    for change in (
        lambda text: text.replace(b'"epsilon": 8.0', b'"epsilon": 1.0'),
        lambda text: text.replace(b"epsilon = 8", b"epsilon = 1"),
        lambda text: text.replace(b'"delta": 1e-06', b'"delta": 1e-09'),
        lambda text: text.replace(b"not for release", b"for release    "),
        lambda text: text.replace(b'"sha256": "', b'"sha256": "0', 1).replace(b'", "format', b'"format', 1),
        lambda text: text + b" ",
    ):
        pack(path, with_header(members, change))
        assert entries(path) != members
        with pytest.raises(FileFormatError, match=r"written by fdadp|SHA-256"):
            type(fitted).load(path)
    array = "mean.npy" if "mean.npy" in members else "numbers.npy"
    for changed in (np.nextafter, lambda value, _: -value, lambda value, _: value[::-1]):
        value = changed(np.load(io.BytesIO(members[array])), np.inf)
        pack(path, members | {array: npy(np.ascontiguousarray(value))})
        with pytest.raises(FileFormatError, match="SHA-256"):
            type(fitted).load(path)
    pack(path, other)
    assert type(fitted).load(path).ledger_ == fitted.ledger_


def test_arrays_that_change_places_are_found(path):
    fitted = model("private mean")
    members = entries(fitted.save(path))
    pack(path, members | {"mean.npy": members["grid.npy"], "grid.npy": members["mean.npy"]})
    with pytest.raises(FileFormatError, match="SHA-256"):
        type(fitted).load(path)


DEEP = b'{"sha256": "' + b"0" * 64 + b'", "a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
HEADERS = {
    "nested too deep": lambda text: DEEP,
    "no JSON": lambda text: b"{" + text,
    "no object": lambda text: b"[1]",
    "not UTF-8": lambda text: b"\xff" + text,
    "empty": lambda text: b"",
    "a number too long": lambda text: b'{"n": ' + b"9" * 5000 + b"}",
    "another version": lambda text: text.replace(b'"version": 3', b'"version": 7'),
    "no content": lambda text: text.replace(b'"content": {', b'"else": {'),
    "another kind": lambda text: text.replace(b'"kind": "moments"', b'"kind": "moment"'),
    "another format": lambda text: text.replace(b'"format": "fdadp"', b'"format": "other"'),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_bad_header_is_a_file_error_that_names_the_file(change, path):
    members = entries(model("moments").save(path))
    pack(path, with_header(members, change))
    with pytest.raises(FileFormatError, match=str(path)):
        StoredMoments.load(path)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros(20), "'scatter' of shape"),
        (np.zeros(21, dtype=np.float32), "must be of float64 in C order"),
        (np.zeros(21, dtype=">f8"), "must be of float64 in C order"),
        (np.asfortranarray(np.zeros((21, 3))), "must be of float64 in C order"),
        (np.zeros((21, 1)), "'mean' of shape"),
        (np.float64(1.0), "'mean' of shape"),
        (np.array(["a"] * 21), "must be of float64 in C order"),
    ],
)
def test_shapes_and_types_are_those_of_the_kind(array, text, path):
    members = entries(model("moments").save(path))
    pack(path, members | {"mean.npy": npy(array)})
    with pytest.raises(FileFormatError, match=text):
        StoredMoments.load(path)


def splines_of(content):
    """Fields of the B-splines over the values of X, which the term holds."""
    return content["tree"][0]["fields"]["term"]["fields"]["over_x"]["fields"]["basis"]["fields"]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["params"].update(nonsense=1),
        lambda c: c["params"].pop("degree"),
        lambda c: c["params"]["privacy"].update(epsilon=-1.0),
        lambda c: c["params"]["privacy"].update(bounds={"x": [1.0], "y": None}),
        lambda c: splines_of(c).update(degree=4),
        lambda c: splines_of(c).update(degree="3"),
        lambda c: c["tree"].pop(),
        lambda c: c.update(ledger="{"),
        lambda c: c.update(ledger=3),
        lambda c: c["tree"][3]["fields"].update(
            columns={"index": {"kind": "no such type", "name": None, "values": [1]}}
        ),
        lambda c: c["tree"][3]["fields"].pop("grid"),
    ],
)
def test_content_that_makes_no_model_is_a_file_error(change, path):
    """With the right digest: a program that writes files of its own."""
    content, arrays = REGRESSION.read(model("private regression").save(path))
    change(content)
    if "degree" not in content["params"]:
        del content["params"]  # one missing argument has a default, all of them do not
    REGRESSION.write(path, content, arrays)
    with pytest.raises(FileFormatError, match=str(path)):
        AdditiveFunctionOnFunction.load(path)


# --- what is refused before it is unpacked ---


def test_other_files_are_file_errors_that_name_them(path, tmp_path):
    whole = model("moments").save(path).read_bytes()
    members = entries(path)
    encrypted = bytearray(whole)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(magic) + offset] |= 1
    damaged = io.BytesIO()
    pack(damaged, members, zipfile.ZIP_DEFLATED)
    one = io.BytesIO()
    np.savez_compressed(one, **{name.removesuffix(".npy"): np.load(io.BytesIO(raw)) for name, raw in members.items()})
    broken = bytearray(one.getvalue())
    broken[400:440] = bytes(40)
    nested = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + (b"(" * 8999 + b"\n")
    files = {
        "empty": b"",
        "text": b"s,0,1\n1,2,3\n",
        "a renamed .npy": npy(np.zeros(3)),
        "a pickle": b"\x80\x04\x95",
        "a bare zip": b"PK\x05\x06" + bytes(18),
        "zip with compression": damaged.getvalue(),
        "numpy's compressed file": one.getvalue(),
        "damaged deflate stream": bytes(broken),
        "encrypted": bytes(encrypted),
        "gzip": zlib.compress(whole),
        **{f"truncated {k}": whole[: len(whole) * k // 10] for k in range(1, 10)},
        "truncated by one": whole[:-1],
        "nothing in front": whole[100:],
    }
    packed = {
        "member missing": {k: v for k, v in members.items() if k != "mean.npy"},
        "member too many": members | {"more.npy": npy(np.zeros(3))},
        "no header": {k: v for k, v in members.items() if k != "header.npy"},
        "not .npy": members | {"readme.txt": b"hello"},
        "other name": {k.removesuffix(".npy"): v for k, v in members.items()},
        "folder": members | {"folder/": b""},
        "no npy inside": members | {"mean.npy": b"hello"},
        "cut npy": members | {"mean.npy": members["mean.npy"][:-8]},
        "long npy": members | {"mean.npy": members["mean.npy"] + bytes(8)},
        "nested npy header": members | {"mean.npy": nested},
        "negative": members | {"mean.npy": members["mean.npy"].replace(b"(21,)", b"(-1,)")},
        "huge": members | {"mean.npy": members["mean.npy"].replace(b"(21,), }    ", b"(9999999,), ")},
        "header of text": members | {"header.npy": npy(np.array(["a"]))},
        "square header": members | {"header.npy": npy(np.zeros((2, 2), dtype=np.uint8))},
    }
    for name, change in packed.items():
        stream = io.BytesIO()
        pack(stream, change)
        files[name] = stream.getvalue()
    for name, raw in files.items():
        path.write_bytes(raw)
        with pytest.raises(FileFormatError) as error:
            StoredMoments.load(path)
        assert str(path) in str(error.value), name
        assert "pickle" not in str(error.value), name
    for folder in (tmp_path, ""):
        with pytest.raises(FileFormatError, match="must be a regular file, got a folder"):
            StoredMoments.load(folder)
    with pytest.raises(InputError, match="must name a file"):
        model("moments").save("")


def peak(load, path):
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError) as error:
            load(path)
        return str(error.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nothing_is_unpacked_that_is_larger_than_its_file(path):
    """A file of 50 kB that takes 50 MB: known and unknown members, and entries that share their bytes."""
    members = entries(model("moments").save(path))
    zeros = npy(np.zeros(6_000_000))
    for name in ("mean.npy", "header.npy", "unknown.npy"):
        pack(path, members | {name: zeros}, zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 100_000
        text, taken = peak(StoredMoments.load, path)
        assert "compressed entries" in text and taken < 1_000_000
    pack(path, members | {"unknown.npy": zeros[:3_000_000]})
    text, taken = peak(StoredMoments.load, path)
    assert "has the unknown member 'unknown'" in text and taken < 1_000_000

    block = npy(np.zeros(100_000))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("header.npy", block)
        first = file.infolist()[0]
        for k in range(60):  # the directory says that each of these lies where the header does
            info = zipfile.ZipInfo(f"a{k}.npy")
            for field in ("header_offset", "CRC", "file_size", "compress_size"):
                setattr(info, field, getattr(first, field))
            file.filelist.append(info)
            file.NameToInfo[info.filename] = info
    path.write_bytes(stream.getvalue())
    text, taken = peak(StoredMoments.load, path)
    assert "claims to hold more" in text and taken < 1_000_000


def test_only_the_header_is_read_of_a_file_of_another_kind(path, monkeypatch):
    model("private regression").save(path)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("an array was read"))
    with pytest.raises(FileFormatError, match="must hold a 'moments', got 'additive-function-on-function'"):
        StoredMoments.load(path)


def test_files_of_other_versions_say_so(path):
    members = entries(model("moments").save(path))
    pack(path, with_header(members, lambda text: text.replace(b'"version": 3', b'"version": 99')))
    with pytest.raises(FileFormatError, match=rf"layout version {FILE_VERSION}, got version 99 \(written by fdadp"):
        StoredMoments.load(path)
    old = {"format": "fdadp", "kind": "moments", "version": 1, "fdadp": "0.1.0", "content": {"n": 3}}
    np.savez_compressed(
        path, header=np.frombuffer(json.dumps(old).encode(), dtype=np.uint8), mean=[1.0], scatter=[[1.0]]
    )
    with pytest.raises(FileFormatError, match=r"fdadp 0\.1 wrote them: fit again"):
        StoredMoments.load(path)


# --- what saving needs is looked at before a private fit reads ---

LABELS = {
    "days": pd.date_range("2024-02-27", periods=21, name="day"),
    "hours with a zone": pd.date_range("2024-03-30", periods=21, freq="h", tz="Europe/Madrid"),
    "seconds": pd.date_range("2024-02-27", periods=21).as_unit("s"),
    "lags": pd.to_timedelta(np.arange(21), unit="h"),
    "months": pd.period_range("2023-01", periods=21, freq="M"),
    "plain dates": pd.Index(pd.date_range("2024-02-27", periods=21).date),
    "texts": pd.Index([f"t{j}" for j in range(21)]),
    "floats": pd.Index(np.linspace(0, 2, 21), name="s"),
    "small integers": pd.Index(np.arange(21, dtype=np.int16)),
    "mixed": pd.Index(["a", 1, 2.5, True, *range(17)], dtype=object),
    "two levels": pd.MultiIndex.from_product([["a", "b", "c"], range(7)], names=["x", None]),
    "tuples": pd.Index([(1, j) for j in range(21)], tupleize_cols=False),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_from_json(labels):
    stored = json.loads(json.dumps(labels_to_json(labels, "Y")))
    again = labels_from_json(stored)
    assert type(again) is type(labels) and again.equals(labels)
    assert again.dtype == labels.dtype and again.names == labels.names


@pytest.mark.parametrize("kind", ["days", "hours with a zone", "months", "texts"])
@pytest.mark.parametrize(
    "fit", [lambda y: private_regression(y), lambda y: PrivateMean(privacy=settings(), bounds=(-8, 8)).fit(y)]
)
def test_dates_as_columns_are_saved_with_a_private_model(fit, kind, path):
    frame = pd.DataFrame(curves()[1], columns=LABELS[kind])
    fitted = fit(frame)
    again = type(fitted).load(fitted.save(path))
    out = [m.mean_curve_ if isinstance(m, PrivateMean) else m.predict(curves()[0][:2]) for m in (fitted, again)]
    pd.testing.assert_frame_equal(*out, check_freq=False)


def test_a_private_fit_that_could_not_be_saved_is_refused_before_it_reads():
    x, y = curves()
    intervals = pd.DataFrame(y, columns=pd.interval_range(0, 21))
    half = fractions.Fraction(1, 2)
    budget = Budget(8.0, 1e-6)
    privacy = settings(budget=budget)
    fits = {
        "columns of Y must have numbers, texts or dates as labels": [
            lambda: useless(privacy=privacy).fit(x, intervals),
            lambda: PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(intervals),
            lambda: PrivateFPCA(privacy=privacy, bounds=(-8, 8)).fit(intervals),
        ],
        "n_components must be made of numbers": [
            lambda: useless(n_components=half, privacy=privacy).fit(x, y),
            lambda: useless(n_components=half, privacy=privacy).fit_chunks(
                [(x, y)], s=np.linspace(0, 1, 21), t=np.linspace(0, 1, 21)
            ),
        ],
        "smoothing must be made of numbers": [lambda: useless(smoothing=(1.0, half), privacy=privacy).fit(x, y)],
    }
    for text, tries in fits.items():
        for attempt in tries:
            with pytest.raises(InputError, match=text):
                attempt()
    assert budget.spent == budget.reserved == 0.0


def test_settings_of_numpy_are_saved_as_numbers(path):
    fitted = private_regression(n_components=np.int64(3), smoothing=np.array([1.0, 2.0]), progress=np.bool_(False))
    again = AdditiveFunctionOnFunction.load(fitted.save(path))
    assert (again.n_components, again.smoothing, again.progress) == (3, [1.0, 2.0], False)


def test_a_file_can_be_moved_and_read_elsewhere(path, tmp_path):
    moved = shutil.copy(model("moments").save(path), tmp_path / "other name")
    assert StoredMoments.load(moved).n == 60
