"""Simulated outcomes on a grid of n and noise, kept on disk, and what lies between its points.

For the default prior they come with the package (``table.json``, written by ``tools/planner_table.py``). For another
one they are simulated when they are asked for, a second or so a cell, and kept in the cache folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fdadp._version import __version__
from fdadp.files.atomic_writes import replacing
from fdadp.planner.simulated_fit_of_one_curve import LEAST_MULTIPLIER, Outcome, outcomes
from fdadp.private.public.gaussian_process_prior import PublicPrior

SIZES = (100, 316, 1000, 3162, 10_000)
"""Simulated n. Beyond the last the sampling error is taken to be that of the last: a cautious prediction."""
ETAS = tuple(10.0 ** np.arange(-4, -0.9, 0.5))
"""Simulated noise per person. Beyond the ends the outcome is that of the end."""
TABLE = Path(__file__).with_name("table.json")
SEEDS = (1, 2)
"""Populations for a prior of the user's; the shipped table has more."""


class SimulatedOutcomes:
    """Outcomes by n and noise, of one prior and kind of noise.

    Parameters
    ----------
    prior : PublicPrior
    pure : bool
    """

    def __init__(self, prior: PublicPrior, *, pure: bool) -> None:
        self.prior, self.pure = prior, pure
        self._path: Path | None = None
        kind = "pure" if pure else "gaussian"
        if prior == PublicPrior() and prior.pilot is None:
            self._known: dict[str, list[float]] = dict(_shipped().get(kind, {}))
        else:
            from fdadp.datasets._data_locations import cache_dir

            self._path = cache_dir() / "planner" / f"{_digest(prior)}-{kind}-{__version__}.json"
            self._known = _cached(self._path)

    def at(self, n: float, eta: float) -> Outcome:
        """Outcome at n persons with noise `eta` per person.

        Bilinear in the logarithms of n, eta, of what is not explained, and of the ratios: straight lines nearly.
        """
        i, u = _position(math.log(n), np.log(SIZES))
        j, v = _position(math.log(max(eta, 1e-12)), np.log(ETAS))
        corners = [(i + a, j + b, (u if a else 1 - u) * (v if b else 1 - v)) for a in (0, 1) for b in (0, 1)]
        corners = [corner for corner in corners if corner[2] > 1e-9]
        self._ensure({(a, b) for a, b, _ in corners})
        values = np.array([self._known[_key(a, b)] for a, b, _ in corners])
        weights = np.array([weight for *_, weight in corners])
        left, error, width = np.exp(weights @ np.log(np.column_stack((1 - values[:, 0], values[:, 1:3]))))
        return Outcome(float(1 - left), float(error), float(width), float(weights @ values[:, 3]))

    def _ensure(self, wanted: Iterable[tuple[int, int]]) -> None:
        missing = [pair for pair in wanted if _key(*pair) not in self._known]
        for i in sorted({i for i, _ in missing}):
            columns = sorted({j for a, j in missing if a == i})
            etas = [ETAS[j] for j in columns]
            for j, outcome in zip(columns, outcomes(self.prior, SIZES[i], etas, SEEDS, pure=self.pure), strict=True):
                self._known[_key(i, j)] = list(outcome)
        if missing and self._path is not None:
            with replacing(self._path) as stream:
                stream.write(json.dumps(self._known).encode())


def _key(i: int, j: int) -> str:
    """Name of a cell; where its noise is below what is simulated, that of the cell with the least noise."""
    while j + 1 < len(ETAS) and ETAS[j + 1] * SIZES[i] <= LEAST_MULTIPLIER:
        j += 1
    return f"{SIZES[i]} {ETAS[j]:.3g}"


def _position(at: float, knots: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, float]:
    at = float(np.clip(at, knots[0], knots[-1]))
    i = int(np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2))
    return i, (at - knots[i]) / (knots[i + 1] - knots[i])


def _cached(path: Path) -> dict[str, list[float]]:
    """Cells computed before; none where there is no file, or one that is damaged: they are computed again."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(key): [float(number) for number in cell]
            for key, cell in cells.items()
            if len(cell) == len(Outcome._fields)
        }
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


@functools.cache
def _shipped() -> dict[str, dict[str, list[float]]]:
    if not TABLE.exists():
        return {}
    return dict(json.loads(TABLE.read_text(encoding="utf-8"))["cells"])


def _digest(prior: PublicPrior) -> str:
    fields = {name: value for name, value in vars(prior).items() if name != "pilot"}
    pilot = b"" if prior.pilot is None else np.ascontiguousarray(prior.pilot).tobytes()
    return hashlib.sha256(repr(sorted(fields.items())).encode() + pilot).hexdigest()[:16]
