"""Processes that fit on demand, their time and their peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).parent


class Worker:
    """A method in a process of its own that answers ``fit``, ``save`` and ``at``; see worker.py."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None, timeout: float = 3600) -> None:
        self.rounds: list[float] = []
        self.cpu: list[float] = []
        self.answers: list[dict[str, Any]] = []
        self.peak: float | None = None
        self.error: str | None = None
        self.timeout = timeout
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.version = self._answer().get("ready", "")

    @classmethod
    def python(cls, method: str, folder: Path, n: int) -> Worker:
        return cls([sys.executable, str(HERE / "worker.py"), method, str(folder), str(n)])

    @classmethod
    def mgcv(cls, folder: Path, n: int, points: int, preload: str = "") -> Worker:
        env = {"LD_PRELOAD": preload} if preload else None
        return cls(["Rscript", "--vanilla", str(HERE / "mgcv.R"), str(folder), str(n), str(points)], env)

    def round(self, least: float = 0.5, most: int = 5) -> None:
        """Fit until `least` seconds have gone by, at most `most` times; keep the median and the largest memory."""
        times: list[float] = []
        cpu: list[float] = []
        while self.error is None and len(times) < most and sum(times) < least:
            before = self._memory("VmRSS", reset=True)
            answer = self._ask("fit")
            after = self._memory("VmHWM")
            if self.error is None:
                times.append(answer["seconds"])
                cpu.append(answer["cpu"])
                self.answers.append(answer)
                if before is not None and after is not None:
                    self.peak = max(self.peak or 0.0, after - before)
        if times:
            self.rounds.append(median(times))
            self.cpu.append(median(cpu))

    def save(self, path: Path, command: str = "save") -> np.ndarray:
        """Fitted scores (n, 3); mgcv writes its smoothing parameters too, and ``"at"`` refits at them."""
        self._ask(f"{command} {path}")
        if self.error is not None:
            raise RuntimeError(self.error)
        return np.fromfile(path.with_name(path.name + ".fitted")).reshape(-1, 3)

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        timer = threading.Timer(self.timeout, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            self.error = (self._process.stderr.read().strip().splitlines() or ["ended without a word"])[-1]
            return {}
        return dict(json.loads(line))

    def _memory(self, field: str, reset: bool = False) -> float | None:
        """MB from /proc (Linux); `reset` forgets the peak so far."""
        process = Path(f"/proc/{self._process.pid}")
        try:
            if reset:
                (process / "clear_refs").write_text("5")
            lines = (process / "status").read_text().splitlines()
        except OSError:
            return None
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))
