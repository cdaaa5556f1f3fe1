"""Owners and coordinator as processes on 127.0.0.1, by the shell's commands, killed by SIGKILL and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install '.[service]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[service]'")
pytest.importorskip("httpx", reason="httpx is not installed: pip install '.[service]'")

from masked_tools import PCA

from fdadp.federated import Contract
from fdadp.federated.federated_models import totals_from_bytes
from fdadp.federated.owners import signed_messages
from fdadp.federated.owners.coordinator import Coordinator
from fdadp.federated.owners.owner_folder import OwnerFolder
from fdadp.federated.owners.signed_messages import MessageKind
from fdadp.federated.run_contract import Signer
from fdadp.federated.service.coordinator_service import listening
from fdadp.federated.service.run_certificates import new_certificates
from fdadp.privacy.certificate.signature import new_keys
from fdadp.privacy.study import Study

OWNERS, HOST = 3, "127.0.0.1"

CHILD = """
import json, os, pathlib, signal, sys
from fdadp.cli.main import main
from fdadp.federated.owners.signed_messages import MessageKind
from fdadp.federated.service import coordinator_service, owner_client

home, deaths = pathlib.Path(sys.argv.pop(1)), json.loads(sys.argv.pop(1))

def mortal(kind, name):
    real = getattr(kind, name)
    def call(self, other, message):
        event = f"{MessageKind(message[5]).name} {message[11]} {message[7]}" if len(message) > 11 else ""
        def die(when):
            mark = home / f"{event} {when}"
            if f"{event} {when}" in deaths and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        die("before")
        found = real(self, other, message)
        die("after")
        return found
    setattr(kind, name, call)

mortal(owner_client.OwnerClient, "_posted")
mortal(coordinator_service.CoordinatorService, "_answer")
main()
"""
"""The program of the shell, which dies before or after the messages that it is told: once at each."""


@dataclass
class Party:
    """One process, and how it is started again."""

    home: Path
    command: list[str]
    deaths: list[str]
    killed: int = 0
    process: subprocess.Popen[bytes] | None = None
    due: float = 0.0

    def start(self) -> None:
        self.home.mkdir(exist_ok=True)
        with (self.home / "log").open("ab") as log:
            words = [sys.executable, "-c", CHILD, str(self.home), json.dumps(self.deaths), "federated", *self.command]
            self.process = subprocess.Popen(words, stdout=log, stderr=log)

    def look(self, pause: float) -> bool:
        """Whether it has ended well; one that was killed is started again after a pause."""
        if self.process is None:
            if time.monotonic() >= self.due:
                self.start()
            return False
        status = self.process.poll()
        if status == -signal.SIGKILL:
            self.killed, self.process, self.due = self.killed + 1, None, time.monotonic() + pause
            return False
        assert status in (None, 0), (self.home / "log").read_text()[-2000:]
        return status == 0


def events(sender: int) -> list[str]:
    said = (("CONSENT", 0), ("READY", 0), ("SHARE", 0), ("DONE", 1))
    return [f"{kind} {index} {sender} {when}" for kind, index in said for when in ("before", "after")]


def run_killed(home: Path, deaths: dict[int, list[str]], pause: float) -> None:
    """A run of the shell's commands whose processes die; then what all have on their disks is compared."""
    signers = [Signer(new_keys(home / f"owner-{i}.pem")[0]) for i in range(1, OWNERS + 1)]
    contract = Contract("pca", PCA, OWNERS, n_max=1000, owner_keys=tuple(one.public for one in signers), pause=0.05)
    (home / "contract.json").write_text(contract.to_json())
    new_certificates(contract, HOST, home / "tls")
    X = np.random.default_rng(0).normal(size=(300, 3)) * [1.5, 0.3, 0.3]
    with listening(HOST, 0) as free:
        port = free.getsockname()[1]  # the coordinator must come back under the address that owners know
    at = {name: str(home / name) for name in ("contract.json", "tls", "totals-0", "store-0")}
    parties = {0: Party(home / "0", ["coordinator", at["contract.json"], "--tls", at["tls"], "--store", at["store-0"],
                                     "--out", at["totals-0"], "--host", HOST, "--port", str(port),
                                     "--linger", str(5 + 3 * pause + 3 * min(pause, 15.0))],  # starts take seconds, too
                        deaths.get(0, []))}  # fmt: skip
    for i, part in enumerate(np.array_split(X, OWNERS), start=1):
        np.savez(home / f"rows-{i}.npz", part)
        known = [
            word for j in range(1, OWNERS + 1) if j != i for word in ("--verified", str(home / f"owner-{j}.pem.pub"))
        ]
        parties[i] = Party(home / str(i), ["owner", f"https://{HOST}:{port}", at["contract.json"],
                                           str(home / f"rows-{i}.npz"), "--key", str(home / f"owner-{i}.pem"),
                                           "--ca", str(home / "tls" / "ca.crt"), "--certificate",
                                           str(home / "tls" / f"owner-{i}.crt"), *known, "--poll", "0.2",
                                           "--store", str(home / f"store-{i}"), "--out", str(home / f"totals-{i}")],
                           deaths.get(i, []))  # fmt: skip
        study = Study.new(home / f"study-{i}", name="Rows", epsilon=1.0, delta=1e-6, unit="row")
        parties[i].command += ["--study", str(study.path)]
    try:
        end = time.monotonic() + 300 + 60 * (pause + 10)
        while not all([party.look(pause) for party in parties.values()]):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        for party in parties.values():
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()
    assert {i: party.killed for i, party in parties.items()} == {i: len(deaths.get(i, [])) for i in parties}
    check_agree(home, contract)


def check_agree(home: Path, contract: Contract) -> None:
    """The same totals everywhere, those of the one share of each owner that the coordinator took."""
    (total,) = totals_from_bytes((home / "totals-0").read_bytes())
    assert len({(home / f"totals-{i}").read_bytes() for i in range(OWNERS + 1)}) == 1
    coordinator = Coordinator(contract, OwnerFolder(home / "store-0"))
    assert coordinator.done_
    np.testing.assert_array_equal(coordinator.totals_, [total])
    last = signed_messages.SignedMessage.from_bytes(coordinator.requests_[-1])
    assert (last.kind, last.index, len(coordinator.requests_)) == (MessageKind.ASK, 1, 3)
    for i in range(1, OWNERS + 1):
        assert (home / f"store-{i}" / "answered").read_bytes() == contract.digest
        assert [fit.state for fit in Study(home / f"study-{i}").fits] == ["spent"]  # one charge


@pytest.mark.statistics
def test_processes_are_killed_and_started_again(tmp_path: Path) -> None:
    """One owner once it has sent its share, the coordinator once it has it: before anybody hears of it."""
    run_killed(tmp_path, {1: ["SHARE 0 1 after"], 0: ["SHARE 0 2 after"]}, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("pause", [6.0, 70.0])
def test_each_party_is_killed_at_every_message(tmp_path: Path, pause: float) -> None:
    """Before and after each message, in one run; each comes back after the pause by the same command."""
    everything = [event for i in range(1, OWNERS + 1) for event in events(i)]
    run_killed(tmp_path, {0: everything, **{i: events(i) for i in range(1, OWNERS + 1)}}, pause)
