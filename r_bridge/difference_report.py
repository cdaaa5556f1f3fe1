"""Differences between R and fdadp, each with the tolerance that it must keep."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike


@dataclass(frozen=True)
class Difference:
    """One number compared.

    Attributes
    ----------
    case : str
        The recorded case, or the name of the crosscheck.
    quantity : str
        What was compared.
    value : float
        Size of the difference.
    tolerance : float
        What it may be.
    kind : {"relative", "absolute", "of range", "excess"}
        Of the largest absolute value of R's result; as it is; of the range of R's result; of our score over R's, by
        1 + |score|.
    """

    case: str
    quantity: str
    value: float
    tolerance: float
    kind: str = "relative"

    @property
    def ok(self) -> bool:
        """Within the tolerance; NaN never is."""
        return bool(self.value <= self.tolerance)


def relative(got: ArrayLike, want: ArrayLike) -> float:
    """Largest absolute difference over the largest absolute value of `want`; infinite where shapes differ."""
    return _largest(got, want, float(np.abs(np.asarray(want, dtype=np.float64)).max(initial=0.0)))


def absolute(got: ArrayLike, want: ArrayLike) -> float:
    """Largest absolute difference; infinite where shapes differ."""
    return _largest(got, want, 1.0)


def of_range(got: ArrayLike, want: ArrayLike) -> float:
    """Largest absolute difference over the range of `want`; infinite where shapes differ."""
    return _largest(got, want, float(np.ptp(np.asarray(want, dtype=np.float64))))


def _largest(got: ArrayLike, want: ArrayLike, unit: float) -> float:
    ours, theirs = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    if ours.size != theirs.size or (ours.ndim > 1 and ours.shape != theirs.shape):
        return math.inf
    difference = float(np.abs(ours.reshape(theirs.shape) - theirs).max(initial=0.0))
    return difference / unit if unit else (0.0 if difference == 0 else math.inf)


@dataclass
class Report:
    """Differences of one or more cases; ``print`` shows the largest of each case.

    Attributes
    ----------
    title : str
    differences : list of Difference
    skipped : dict
        What was not compared, and why.
    seconds : dict
        How long our fits took, search of the smoothing parameters included, where that was measured.
    """

    title: str
    differences: list[Difference] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Something was compared and nothing is past its tolerance."""
        return bool(self.differences) and not self.failures

    @property
    def failures(self) -> list[Difference]:
        """Differences past their tolerance."""
        return [d for d in self.differences if not d.ok]

    def add(self, differences: Iterable[Difference]) -> Report:
        """Append differences; return self."""
        self.differences.extend(differences)
        return self

    def worst(self, number: int = 8, case: str | None = None) -> list[Difference]:
        """Return those nearest to (or furthest past) their tolerance, worst first."""
        chosen = [d for d in self.differences if case in (None, d.case)]
        return sorted(chosen, key=lambda d: -_strain(d))[:number]

    def to_frame(self) -> Any:
        """All differences as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([{**asdict(d), "ok": d.ok} for d in self.differences])

    def to_json(self) -> str:
        """Everything, for machines."""
        rows = [{**asdict(d), "ok": d.ok} for d in self.differences]
        for row in rows:  # JSON has no infinity
            row["value"] = row["value"] if math.isfinite(row["value"]) else str(row["value"])
        return json.dumps({"title": self.title, "ok": self.ok, "differences": rows, "skipped": self.skipped}, indent=1)

    def __str__(self) -> str:
        return self.table()

    def table(self, number: int = 5) -> str:
        """Text with the `number` worst differences of each case."""
        cases = list(dict.fromkeys(d.case for d in self.differences))
        width = max((len(d.quantity) for d in self.differences), default=10)
        lines = [self.title]
        for case in cases:
            own = [d for d in self.differences if d.case == case]
            bad = sum(not d.ok for d in own)
            lines.append(f"\n{case}: {len(own)} comparisons, {bad or 'none'} past tolerance; the worst:")
            for d in self.worst(number, case):
                size = f"{d.value:9.2e}  (may be {d.tolerance:.0e}, {d.kind})"
                lines.append(f"  {'    ' if d.ok else 'PAST'} {d.quantity:<{width}}  {size}")
        if self.skipped:
            lines.append("\nnot compared:")
            lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        total, bad = len(self.differences), len(self.failures)
        verdict = "nothing was compared" if not total else f"{bad} past" if bad else "all within"
        lines.append(f"\n{total} comparisons, {verdict}{' tolerance' if total else ''}")
        return "\n".join(lines)


def _strain(difference: Difference) -> float:
    if math.isnan(difference.value):
        return math.inf
    if difference.tolerance == 0:
        return math.inf if difference.value > 0 else 0.0
    return difference.value / difference.tolerance
