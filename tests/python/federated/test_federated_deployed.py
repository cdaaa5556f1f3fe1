"""The many-owner protocol deployed: processes of Flower on 127.0.0.1 that end, fail, or are killed and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: pip install '.[federated]' (Python 3.11 or newer)")

from fdadp.federated import Contract
from fdadp.federated.federated_models import totals_to_bytes
from fdadp.federated.flower import localhost_run
from fdadp.federated.flower.localhost_run import HOST, FlowerError, LocalFlower
from fdadp.federated.owners.coordinator import Coordinator
from fdadp.federated.owners.owner_folder import OwnerFolder

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")

D = 3
PARTS = [(part,) for part in np.array_split(np.random.default_rng(0).normal(size=(900, D)) * [1.5, 0.2, 0.2], 3)]
KMEANS = {"epsilon": 1.0, "delta": 1e-6, "bounds": [-3, 3], "n_clusters": 2, "n_iter": 1, "random_state": 0}
COORDINATOR = "superlink"
LONG = 1800.0


def left(folder: Path) -> list[int]:
    """Processes that run with this folder as Flower's; those that only wait to be reaped have no environment."""
    marker, found = f"FLWR_HOME={folder.resolve() / 'flwr'}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def until(condition: Callable[[], object], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def draft_of(n_iter: int = 1, owners: int = 3) -> Contract:
    """Terms of `n_iter` + 1 releases."""
    settings = {**KMEANS, "n_iter": n_iter, "n_features": D}
    return Contract("kmeans", settings, owners, n_max=1000, transport="flower", pause=0.0)


class Struck(LocalFlower):
    """After the first release something happens; a run without totals is started again, by the same command."""

    strikes: Callable[[Struck], None]

    def run(self, config: Any, *, timeout: float | None = None) -> None:
        thread = threading.Thread(target=self._strike, daemon=True)
        thread.start()
        with suppress(FlowerError):  # the SuperLink was killed
            super().run(config, timeout=LONG)
        thread.join(LONG)
        if not Path(config["out"]).exists():
            super().run(config, timeout=LONG)

    def _strike(self) -> None:
        until(lambda: (self.logs / "run.log").exists() and "release 0:" in self.log("run"), LONG)
        type(self).strikes(self)

    def kill(self, name: str) -> None:
        """SIGKILL of a SuperNode or of the SuperLink, and of what they have started."""
        address = f"{HOST}:{self._ports[name]}".encode()
        self.stop(name, signal.SIGKILL)
        for pid in left(self.folder):
            with suppress(OSError, ValueError, IndexError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[words.index(b"--runtime-api-address") + 1] == address:
                    os.kill(pid, signal.SIGKILL)


def run_struck(
    folder: Path, draft: Contract, strikes: Callable[[Struck], None], patience: float = 1200.0
) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(localhost_run, "LocalFlower", type("Now", (Struck,), {"strikes": staticmethod(strikes)}))
        totals = localhost_run.run_local(draft, PARTS[: draft.owners], folder, patience=patience)
    until(lambda: not left(folder), 120.0)  # a process that was told to stop may take its time
    return totals


def check_all_have(folder: Path, totals: list[np.ndarray]) -> None:
    """All owners have the same totals, of the shares that the coordinator took, and agreed once."""
    terms = Contract.from_json((folder / "contract.json").read_text())
    coordinator = Coordinator(terms, OwnerFolder(folder / "coordinator"))
    assert coordinator.done_
    assert [total.tolist() for total in coordinator.totals_] == [total.tolist() for total in totals]
    for name in terms.names:
        assert (folder / "parties" / name / "totals").read_bytes() == totals_to_bytes(totals)
        assert (folder / "parties" / name / "store" / "answered").read_bytes() == terms.digest


ALL = ["owner-1", COORDINATOR]


@pytest.mark.parametrize(
    ("parties", "owners", "pause"),
    [
        pytest.param(ALL, 2, 6, id="all-6", marks=pytest.mark.statistics),
        pytest.param(ALL, 3, 70, id="all-70", marks=pytest.mark.long),
        *(
            pytest.param([party], 3, pause, id=f"{party}-{pause}", marks=pytest.mark.long)
            for pause in (70, 6)
            for party in ALL
        ),
    ],
)
def test_who_is_killed_after_a_release_is_started_again(
    tmp_path: Path, parties: list[str], owners: int, pause: int
) -> None:
    """SIGKILL, and the same commands after a while: the totals of all owners."""
    killed: list[str] = []

    def strikes(flower: Struck) -> None:
        for name in parties:
            flower.kill(name)
        time.sleep(pause)
        for name in reversed(parties):  # the SuperLink first
            flower.start_link() if name == COORDINATOR else flower.start_node(name)
            killed.append(name)

    totals = run_struck(tmp_path, draft_of(owners=owners), strikes)
    assert sorted(killed) == sorted(parties)
    assert len(totals) == 2
    check_all_have(tmp_path, totals)


@pytest.mark.long
def test_a_coordinators_app_is_killed_and_the_run_started_again(tmp_path: Path) -> None:
    """SIGKILL of its process after the first release; ``flwr run`` again goes on where it was."""
    first: list[str] = []

    def strikes(flower: Struck) -> None:
        for pid in left(flower.folder):
            with suppress(OSError):
                if b"flwr-serverapp" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        first.append(flower.log("run"))

    totals = run_struck(tmp_path, draft_of(2), strikes)
    assert "release 1:" not in first[0]
    assert len(totals) == 3
    assert "release 0:" not in (tmp_path / "logs" / "run.log").read_text()
    check_all_have(tmp_path, totals)


@pytest.mark.long
def test_a_run_that_loses_an_owner_ends_without_a_model(tmp_path: Path) -> None:
    """It waits, and ends when nobody has answered for too long; no total is there that lacks the owner."""
    with pytest.raises(FlowerError, match="the coordinator must write the totals, and did not"):
        run_struck(tmp_path, draft_of(2), lambda flower: flower.stop("owner-3"), patience=120.0)
    assert "none did of owner-3" in (tmp_path / "logs" / "run.log").read_text()
    assert not (tmp_path / "totals").exists()


@pytest.mark.statistics
def test_what_fails_is_said_and_leaves_no_process(tmp_path: Path) -> None:
    """First a run that cannot be, then a parent that is killed."""
    with (
        pytest.raises(FlowerError, match=r"(?s)flwr run failed.*run.log ends with.*Failed to load Flower App"),
        LocalFlower(tmp_path / "a", {}, app=tmp_path) as flower,
    ):
        assert left(tmp_path / "a")
        flower.run({})
    assert not left(tmp_path / "a")

    code = f"""
import time
from fdadp.federated.flower.localhost_run import LocalFlower
with LocalFlower({str(tmp_path / "b")!r}, {{}}):
    print("ready", flush=True)
    time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
    assert left(tmp_path / "b")
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    until(lambda: not left(tmp_path / "b"))
