"""A SuperLink, SuperNodes and one run on 127.0.0.1: separate processes, no encryption of the transport, no internet.

All processes are one process group, led by a guard that kills the group when this process is gone, however it went.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fdadp.errors import FdadpError
from fdadp.federated.federated_models import totals_from_bytes
from fdadp.federated.flower import APP, require_flower
from fdadp.federated.run_contract import Contract, public_key_of
from fdadp.privacy.certificate.signature import new_keys

HOST = "127.0.0.1"
_HERE = Path(__file__).parents[3]
"""Where the fdadp that runs here comes from: the processes take the same one."""
_GRACE = 5.0
"""Seconds that processes have to end by themselves."""
_GUARD = f"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.read()
os.killpg(0, signal.SIGTERM)
time.sleep({_GRACE})
os.killpg(0, signal.SIGKILL)
"""
_TAIL = 15
_SETTLE = 300.0


class FlowerError(FdadpError, RuntimeError):
    """A process of the engine failed, or the run did; the text ends with its log."""


class LocalFlower:
    """A federation of Flower nodes on this machine; a context manager, at whose end no process is left.

    Parameters
    ----------
    folder : path
        For logs, Flower's own files and configurations; made if it is not there.
    nodes : mapping of str to mapping
        Configuration of each SuperNode, by a name for its log.
    app : path
        Folder of the Flower app.

    Raises
    ------
    InputError
        There is no flwr.
    FlowerError
        The SuperLink does not start.
    """

    def __init__(self, folder: str | Path, nodes: Mapping[str, Mapping[str, Any]], *, app: str | Path = APP) -> None:
        self.folder, self.nodes, self.app = Path(folder).resolve(), nodes, Path(app).resolve()
        self.logs = self.folder / "logs"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._files = ExitStack()

    def __enter__(self) -> LocalFlower:
        require_flower()
        self.logs.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        port, *others = _free_ports(1 + len(self.nodes))
        link = f"{HOST}:{port}"
        home = self.folder / "flwr"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(f'[superlink.local]\naddress = "{link}"\ninsecure = true\n')
        scripts = sysconfig.get_path("scripts")
        self._environment = {
            **os.environ,
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
            "NO_PROXY": HOST,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_HERE), os.environ.get("PYTHONPATH")])),
            # Many small processes on few cores: threads of BLAS would only be in each other's way.
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._guard = subprocess.Popen([sys.executable, "-c", _GUARD], stdin=subprocess.PIPE, process_group=0)
        self._link, self._ports = link, {"superlink": port, **dict(zip(self.nodes, others, strict=True))}
        self.start_link()
        for name in self.nodes:
            self.start_node(name)

    def start_link(self) -> None:
        """Start the SuperLink and what it starts runs with, or start them again after they have ended.

        Nodes and runs are in its database.
        """
        port = self._ports["superlink"]
        address = ["--insecure", "--host", HOST, "--port", str(port)]
        # Its own SuperExec would leave the process group.
        self._launch("superlink", "flower-superlink", *address, "--isolation", "process", "--database", "superlink.db")
        self._launch("superexec", "flower-superexec", "--insecure", "--runtime-api-address", self._link)
        self._wait_for_link(port)

    def start_node(self, name: str) -> None:
        """Start a SuperNode, or start it again after it has ended."""
        address = ["--insecure", "--superlink", self._link, "--host", HOST, "--port", str(self._ports[name])]
        self._launch(name, "flower-supernode", *address, "--node-config", _pairs(self.nodes[name]))

    def _launch(self, name: str, command: str, *options: str) -> subprocess.Popen[bytes]:
        log = self._files.enter_context((self.logs / f"{name}.log").open("wb"))  # of the last start
        process = subprocess.Popen(
            [command, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=self.folder,
            process_group=self._guard.pid,
        )
        self._processes[name] = process
        return process

    def _wait_for_link(self, port: int) -> None:
        plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        end = time.monotonic() + _SETTLE
        while time.monotonic() < end:
            self._check_alive("superlink")
            try:
                with plain.open(f"http://{HOST}:{port}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise FlowerError(f"the SuperLink must answer within {_SETTLE:.0f} s, and does not{self._tail('superlink')}")

    def run(self, config: Mapping[str, Any], *, timeout: float | None = None) -> None:
        """Run the app to its end.

        Parameters
        ----------
        config : mapping
            The run configuration: overrides of what the app's ``pyproject.toml`` has.
        timeout : float, optional
            Seconds for the whole run.

        Raises
        ------
        FlowerError
            The run could not be started, took too long, or the SuperLink died. Whether the app itself did what it
            should, its output must show.
        """
        process = self._launch("run", "flwr", "run", str(self.app), "local", "--stream", "--run-config", _pairs(config))
        end = None if timeout is None else time.monotonic() + timeout
        while process.poll() is None:
            self._check_alive("superlink")
            self._check_alive("superexec")
            if end is not None and time.monotonic() > end:
                raise FlowerError(f"the run must end within {timeout} s, and did not{self._tail('run')}")
            time.sleep(0.2)
        if process.returncode:
            raise FlowerError(f"flwr run failed with status {process.returncode}{self._tail('run')}")

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal to one process: a SuperNode, or one that :meth:`log` names."""
        self._processes[name].send_signal(number)

    def log(self, name: str) -> str:
        """What a process has written: ``"run"``, ``"superlink"``, ``"superexec"`` or a node."""
        return (self.logs / f"{name}.log").read_text(errors="replace")

    def _tail(self, name: str) -> str:
        return f"; {self.logs / name}.log ends with:\n" + "\n".join(self.log(name).splitlines()[-_TAIL:])

    def _check_alive(self, name: str) -> None:
        status = self._processes[name].poll()
        if status is not None:
            raise FlowerError(f"the {name} ended with status {status}{self._tail(name)}")

    def close(self) -> None:
        """End all processes, nodes first; kill those that do not end."""
        for names in (self._processes.keys() - {"superlink"}, {"superlink"} & self._processes.keys()):
            for name in names:
                self._processes[name].terminate()
            _wait([self._processes[name] for name in names], _GRACE)
        guard = getattr(self, "_guard", None)
        if guard is not None:
            os.killpg(guard.pid, signal.SIGKILL)
            _wait([guard, *self._processes.values()], None)
            guard.stdin.close()
        self._files.close()
        self._processes.clear()


def run_local(
    contract: Contract,
    data: Sequence[tuple[Any, ...]],
    folder: str | Path,
    *,
    timeout: float | None = None,
    patience: float = 600.0,
) -> list[Any]:
    """Carry a run through in processes on this machine: owners and coordinator.

    Parameters
    ----------
    contract : Contract
        With ``transport="flower"`` and without keys: those of the owners are made here.
    data : sequence of tuples of arrays
        One for each owner.
    folder : path
        For everything that the processes write. What a party alone should read is in ``parties/<name>``.
    timeout : float, optional
        Seconds to wait for the owners in each round.
    patience : float
        Seconds in which one owner at least must answer.

    Returns
    -------
    list of ndarray of int64
        Totals, from which anyone gets the model:
        ``fdadp.federated.federated_models.fit(contract, None, totals)``.

    Raises
    ------
    FlowerError
        The run failed.
    ProtocolError
        The contract is for another transport.
    """
    contract.check_transport("flower")
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    terms, out, known = folder / "contract.json", folder / "totals", folder / "verified"
    known.mkdir()
    nodes: dict[str, dict[str, Any]] = {}
    for name, arrays in zip(contract.names, data, strict=True):
        own = folder / "parties" / name
        own.mkdir(mode=0o700, parents=True)
        _, public = new_keys(own / "owner.pem")
        (known / f"{name}.pub").write_bytes(public.read_bytes())
        np.savez(own / "rows.npz", *arrays)
        files = {"data": "rows.npz", "key": "owner.pem", "store": "store", "out": "totals"}
        nodes[name] = {"contract": str(terms), "verified": str(known), **{k: str(own / v) for k, v in files.items()}}
    keys = tuple(public_key_of(known / f"{name}.pub") for name in contract.names)
    terms.write_text(replace(contract, owner_keys=keys).to_json())
    with LocalFlower(folder, nodes) as flower:
        config = {"timeout": timeout or 0.0, "patience": float(patience), "at_once": os.cpu_count() or 1}
        flower.run({"contract": str(terms), "store": str(folder / "coordinator"), "out": str(out), **config})
        if not out.exists():
            raise FlowerError(f"the coordinator must write the totals, and did not{flower._tail('run')}")
    return totals_from_bytes(out.read_bytes())


def _pairs(config: Mapping[str, Any]) -> str:
    """Format a configuration for Flower's command line."""
    return " ".join(f"{name}={json.dumps(value)}" for name, value in config.items())


def _free_ports(count: int) -> list[int]:
    """Find different free ports."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind((HOST, 0))
        return [int(s.getsockname()[1]) for s in sockets]


def _wait(processes: Sequence[subprocess.Popen[bytes]], seconds: float | None) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(None if end is None else max(0.0, end - time.monotonic()))
