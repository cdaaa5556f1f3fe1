"""docs/deploy.md as written: three hospitals and a coordinator type its commands, on this machine, in folders each."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[service]'")

from fdadp import simulate_affr
from fdadp.federated import Contract
from fdadp.privacy.study import Study

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
HOST, HOSPITALS, OTHER_SHELL = "127.0.0.1", (1, 2, 3), "in another shell"
TITLES = {"service": "## Without Flower", "flower": "## On Flower"}


def blocks(transport: str) -> list[tuple[str, str]]:
    """Who types, and what, in the page's order."""
    section = PAGE[PAGE.index(TITLES[transport]) :]
    section = section[: section.index("\n## ", 1)]
    return re.findall(r"^```bash\n# ([^\n]*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    return text.replace("\\\n", "").strip().splitlines()


@pytest.mark.parametrize("transport", TITLES)
def test_each_party_types_at_most_twelve_commands(transport: str) -> None:
    found = blocks(transport)
    assert len(found) >= 3
    for party in ("each hospital", "the coordinator"):
        count = sum(len(commands(text)) for who, text in found if who.startswith(party))
        assert 3 < count <= (12 if party == "each hospital" or transport == "service" else 11)  # and config.toml
    assert {who.split(",")[0] for who, _ in found} == {"each hospital", "the coordinator"}


def free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        return int(found.getsockname()[1])


class Parties:
    """Shells of a coordinator (0) and hospitals, with the page's names changed as it says."""

    def __init__(self, home: Path, transport: str) -> None:
        self.home, self.transport, self.port = home, transport, free_port()
        self.ports = {party: free_port() for party in HOSPITALS}
        self.shells: list[subprocess.Popen[str]] = []
        for party in (0, *HOSPITALS):
            self.of(party).mkdir()
            (self.of(party) / "log").touch()

    def of(self, party: int) -> Path:
        return self.home / str(party)

    def names(self, party: int, text: str) -> str:
        if party > 1:  # hospital and first one in each other's place
            text = re.sub(
                r"owner-(\d)", lambda found: f"owner-{ {1: party, party: 1}.get(int(found[1]), found[1]) }", text
            )
        text = text.replace("/safe", str(self.of(party) / "safe"))
        text = re.sub(r"coordinator:\d+", f"{HOST}:{self.port}", text).replace(
            "json coordinator tls", f"json {HOST} tls"
        )
        text = text.replace("--tls tls", f"--tls tls --host {HOST} --port {self.port}")
        text = text.replace("--host 0.0.0.0", f"--host {HOST} --port {self.port}")
        text = text.replace("flower-supernode", f"flower-supernode --host {HOST} --port {self.ports.get(party)}")
        return "\n".join(line for line in commands(text) if not line.startswith("pip install"))

    def begin(self, party: int, text: str) -> subprocess.Popen[str]:
        """A shell that ends at the first command that fails."""
        environment = {
            **os.environ,
            "HOME": str(self.of(party)),
            "FLWR_HOME": str(self.of(party) / ".flwr"),
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
            "OPENBLAS_NUM_THREADS": "1",
            "NO_PROXY": HOST,
            "XDG_STATE_HOME": str(self.of(party) / "state"),
            "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]),
        }
        with (self.of(party) / "log").open("a") as log:
            shell = subprocess.Popen(
                ["bash", "-e", "-c", self.names(party, text)],
                stdout=log,
                stderr=log,
                cwd=self.of(party),
                env=environment,
                start_new_session=True,
            )
        self.shells.append(shell)
        return shell

    def until(self, condition: Any, seconds: float = 7200.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            failed = [shell for shell in self.shells if shell.poll()]
            assert not failed and time.monotonic() < end, [f.read_text()[-1500:] for f in self.home.glob("*/log")]
            time.sleep(0.1)

    def type(self, parties: tuple[int, ...], text: str) -> None:
        begun = [self.begin(party, text) for party in parties]
        self.until(lambda: all(shell.poll() == 0 for shell in begun))

    def send(self, name: str, to: tuple[int, ...], sender: int = 0) -> None:
        for party in to:
            shutil.copy(self.of(sender) / name, self.of(party) / Path(name).name)

    def end(self) -> None:
        for shell in self.shells:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


def draft_of(transport: str, quick: bool) -> Contract:
    """That of the page; a quick one has fewer releases, and hardly a pause."""
    found: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0], found)
    draft = replace(found["draft"], transport=transport)
    return replace(draft, settings={**draft.settings, "mechanism": "moments"}, pause=0.05) if quick else draft


def with_files(parties: Parties, draft: Contract) -> None:
    (parties.of(0) / "draft.json").write_text(draft.to_json())
    people = simulate_affr(scenario=1, n=900, n_points=13, seed=0)
    for name, curves in (("x", people.X), ("y", people.Y)):
        frame = pd.DataFrame(curves.data_matrix[..., 0], index=pd.Index([f"p{i}" for i in range(900)], name="id"))
        for party, part in zip(HOSPITALS, np.array_split(np.arange(900), 3), strict=True):
            frame.iloc[part].to_csv(parties.of(party) / f"{name}.csv")


def by_service(parties: Parties) -> None:
    (_, first), (_, coordinator), (_, second) = blocks("service")
    parties.type(HOSPITALS, first)
    for party in HOSPITALS:
        parties.send(f"safe/owner-{party}.pem.pub", tuple({0, *HOSPITALS}), party)
    parties.begin(0, coordinator)
    parties.until(lambda: f"port {parties.port}" in (parties.of(0) / "log").read_text())
    for party in HOSPITALS:
        for name in ("contract.json", "tls/ca.crt", f"tls/owner-{party}.crt"):
            parties.send(name, (party,))
    parties.type(HOSPITALS, second)
    parties.until(lambda: (parties.of(0) / "totals").exists())


def by_flower(parties: Parties) -> None:
    (_, first), (_, link), (_, admits), (_, joins), (_, runs) = blocks("flower")
    parties.type(HOSPITALS, first)
    for party in HOSPITALS:
        parties.send(f"safe/owner-{party}.pem.pub", tuple({0, *HOSPITALS}), party)
        parties.send(f"owner-{party}.key.pub", (0,), party)
    parties.begin(0, link)
    log = parties.of(0) / "log"
    parties.until(lambda: (parties.of(0) / "server.pem").exists() and _listens(parties.port), 300.0)
    (parties.of(0) / "safe").mkdir()
    for name in ("ca.pem", "contract.json"):
        parties.send(name, HOSPITALS)
    shutil.copy(parties.of(0) / "ca.pem", parties.of(0) / "safe")
    (parties.of(0) / ".flwr").mkdir(exist_ok=True)
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (parties.of(0) / ".flwr" / "config.toml").write_text(parties.names(0, toml))
    parties.type((0,), admits)
    for party in HOSPITALS:
        parties.begin(party, joins)
    parties.type((0,), runs)
    assert "release 0: total of 3 owners" in log.read_text()
    parties.until(lambda: all((parties.of(party) / "safe" / "totals").exists() for party in HOSPITALS))


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1.0):
        return True
    return False


@pytest.mark.parametrize(
    ("transport", "quick"),
    [
        pytest.param("service", True, marks=pytest.mark.statistics),
        pytest.param("service", False, marks=pytest.mark.long),
        pytest.param("flower", False, marks=pytest.mark.long),
    ],
)
def test_the_page_from_zero_to_a_model(tmp_path: Path, transport: str, quick: bool) -> None:
    if transport == "flower":
        pytest.importorskip("flwr")
    parties = Parties(tmp_path, transport)
    with ExitStack() as stack:
        stack.callback(parties.end)
        with_files(parties, draft_of(transport, quick))
        begun = time.monotonic()
        (by_service if transport == "service" else by_flower)(parties)
        print(f"{transport}: {time.monotonic() - begun:.0f} s")
    held = {Path(parties.of(party) / place / "totals").read_bytes()
            for party in HOSPITALS for place in (["safe"] if transport == "flower" else ["."])}  # fmt: skip
    assert held == {(parties.of(0) / "totals").read_bytes()}
    models = [parties.of(party) / "model.npz" for party in ((0,) if transport == "flower" else HOSPITALS)]
    assert all(model.exists() for model in models)
    for party in HOSPITALS:
        study = Study(parties.of(party) / "safe" / "study.fdadp")
        assert [fit.state for fit in study.fits] == ["spent"]
