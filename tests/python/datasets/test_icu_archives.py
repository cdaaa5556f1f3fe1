"""Stays in intensive care from archives of records: made ones, of four stays, served by this machine."""

from __future__ import annotations

import functools
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp import datasets
from fdadp.datasets import _data_locations, _icu
from fdadp.datasets._icu import prepare
from fdadp.errors import FileFormatError, MissingDataError

HEAD = "Time,Parameter,Value\n00:00,RecordID,{stay}\n00:00,Age,{age}\n00:00,Gender,{sex}\n00:00,Height,-1\n"
RECORDS = {
    "a": {
        2: HEAD.format(stay=2, age=54, sex=0)
        + "00:00,ICUType,4\n00:00,Weight,80.5\n00:07,HR,73\n00:37,HR,77\n01:00,HR,60\n01:30,Weight,99\n",
        1: HEAD.format(stay=1, age=90, sex=1)
        + "00:00,ICUType,1\n00:00,Weight,-1\n00:00,HR,19\n00:30,HR,221\n00:59,HR,80\n47:59,HR,70\n48:00,HR,90\n",
    },
    "b": {
        3: HEAD.format(stay=3, age=30, sex=-1)
        + "00:00,ICUType,3\n00:00,Weight,70\n02:10,MAP,90\n02:20,NIMAP,81.33\n02:30,NIMAP,0\n02:40,MAP,200.5\n",
        4: HEAD.format(stay=4, age=40, sex=1) + "00:00,ICUType,2\n00:00,Weight,70\n25:00,HR,100\n25:59,HR,101.01\n",
    },
}


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder as PhysioNet's, of stays made here."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, records in RECORDS.items():
        with tarfile.open(folder / f"set-{name}.tar.gz", "w:gz") as archive:
            for stay, text in records.items():
                member = tarfile.TarInfo(f"./set-{name}/{stay}.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        lines = [f"{stay},6,1,5,-1,{stay % 2}\n" for stay in records]
        head = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
        (folder / f"Outcomes-{name}.txt").write_text(head + "".join(lines))
    return folder


def made(folder: Path) -> dict[str, pd.DataFrame]:
    return prepare({name: (folder / f"set-{name}.tar.gz", folder / f"Outcomes-{name}.txt") for name in "ab"})


@pytest.fixture
def pinned(archives: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Checksum of the values of these stays, as fdadp's own."""
    with pytest.raises(FileFormatError) as refused:
        _icu._prepared({}, "another", [archives / name for name in _icu.ARCHIVES])
    found = str(refused.value).split("sha256='")[1][:64]
    monkeypatch.setattr(_icu, "PREPARED_SHA256", found)
    return found


@pytest.fixture
def site(archives: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """These archives at an address of this machine, and nowhere else."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(archives))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    monkeypatch.setenv("FDADP_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("FDADP_CACHE", str(tmp_path / "cache"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        monkeypatch.setattr(_icu, "SITE", f"http://127.0.0.1:{httpd.server_port}/")
        yield
        httpd.shutdown()


def test_tables_of_made_records(archives: Path) -> None:
    tables = made(archives)
    rates, stays = tables["heart_rate"], tables["stays"]
    assert rates.shape == (4, 48) and rates.index.tolist() == stays.index.tolist() == [1, 2, 3, 4]
    found = rates.stack().dropna().to_dict()
    assert found == {(1, 0.5): 80.0, (1, 47.5): 70.0, (2, 0.5): 75.0, (2, 1.5): 60.0, (4, 25.5): 100.5}
    assert tables["pressure"].stack().dropna().to_dict() == {(3, 2.5): 85.66}
    assert stays["icu_type"].tolist() == ["coronary", "surgical", "medical", "cardiac surgery"]
    assert stays.loc[2, ["set", "age", "male", "weight_kg", "died_in_hospital"]].tolist() == ["a", 54.0, 0.0, 80.5, 0]
    assert np.isnan(stays.loc[1, "weight_kg"]) and np.isnan(stays.loc[3, "male"]) and stays["height_cm"].isna().all()


def test_archives_in_the_own_folder(archives: Path, pinned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FDADP_DATA", str(archives))
    data = datasets.load_icu("pressure", as_frame=True, download=False)
    assert data.X.shape == data.Y.shape == (4, 24) and data.X.loc[3, 2.5] == 85.66
    assert data.covariates["died_in_hospital"].tolist() == [1, 0, 1, 0]
    with pytest.raises(FileFormatError, match=rf"content SHA-256 {'0' * 64}\), got others \({pinned}\)"):
        datasets.load_icu(sha256="0" * 64)


@pytest.mark.usefixtures("site")
def test_download_is_checked_and_kept(archives: Path, pinned: str) -> None:
    assert np.nansum(datasets.load_icu().X.data_matrix) == 80 + 75 + 60
    for file in archives.iterdir():
        file.unlink()
    assert len(datasets.load_icu().groups) == 4  # from the cache


@pytest.mark.usefixtures("site")
def test_download_of_other_values_needs_a_word(pinned: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_icu, "PREPARED_SHA256", "0" * 64)
    with pytest.raises(MissingDataError, match=rf"accept them by load_icu\(sha256='{pinned}'\)"):
        datasets.load_icu()
    assert not list((tmp_path / "cache").iterdir())
    assert len(datasets.load_icu(sha256=pinned).groups) == 4


@pytest.mark.parametrize("wrong", ["record", "outcomes", "tarball"])
def test_other_files_are_refused(archives: Path, wrong: str) -> None:
    if wrong == "record":
        with tarfile.open(archives / "set-a.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo("set-a/1.txt")
            member.size = 9
            archive.addfile(member, io.BytesIO(b"x\n1;2;3\n\n"))
    else:
        name = "Outcomes-a.txt" if wrong == "outcomes" else "set-a.tar.gz"
        (archives / name).write_text("RecordID,SOFA\n1,2\n")
    with pytest.raises(FileFormatError, match="must be a set of the challenge and its outcomes"):
        made(archives)


def test_tables_of_the_archives_hold_what_the_shared_ones_hold() -> None:
    """Where both are there: every value of a table is that of the archives, unless measurements were left out of it."""
    own = _data_locations.data_dir()
    if not all((own / name).is_file() for name in (*_icu.ARCHIVES, *_icu.FILES.values())):
        pytest.skip("the archives and the tables of ICU stays are not both in FDADP_DATA")
    tables: dict[str, Any] = made(own)
    for name in _icu.RECORDED:
        shared = _icu._read(own, name).to_numpy()
        assert not (np.isfinite(shared) & np.isnan(tables[name].to_numpy())).any()
    pd.testing.assert_frame_equal(tables["stays"], _icu._read(own, "stays"), check_dtype=False)
