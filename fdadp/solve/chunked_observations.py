"""Observations that come in chunks: the fit of many terms to them goes through the chunks, and keeps sums."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.records import Records, Seen
from fdadp.solve.families import Family
from fdadp.solve.long_form import LongForm
from fdadp.solve.long_sums import LongSums, System
from fdadp.solve.observations import Observations
from fdadp.solve.weighted import Observed, weighted_system

__all__ = ["ChunkedObservations"]

Chunks = Callable[[], Iterator[Observations]]


@dataclass(frozen=True)
class ChunkedObservations:
    """What :class:`fdadp.solve.observations.Observations` is, for responses on a grid that are read in chunks.

    Attributes
    ----------
    read : callable
        Returns a fresh iterator over the chunks: responses on the grid, NaN where nothing was observed.
    n : int
        Number of records.
    level : float
        Mean of the responses less their offsets.
    mean : float
        Mean of the responses themselves.
    squares : float
        Sum of their squares about it.
    whole : bool
        Whether all of them were observed, with the same weight.
    weighted : bool
        Whether they have weights.
    subtracted : float
        What is taken away from responses.
    """

    read: Chunks
    n: int
    level: float
    mean: float
    squares: float
    whole: bool
    weighted: bool
    subtracted: float = 0.0

    @classmethod
    def seen(cls, read: Chunks, t: FloatArray | None) -> tuple[ChunkedObservations, Seen]:
        """Look at all chunks once: at the responses, and at what fixes the bases of terms.

        Parameters
        ----------
        read : callable
        t : ndarray of shape (T,) or None
            Points of the responses; None: numbers.

        Notes
        -----
        Where responses have gaps, the chunks are read once more, and the record and the point of each observation are
        kept: 16 bytes for each.

        Raises
        ------
        InputError
            No response that was observed with a positive weight.
        """
        found = _Found()
        seen = Seen.of(lambda: (found.looked_at(chunk) for chunk in read()))
        if found.weight <= 0:
            raise InputError("weights must not all be 0" if found.weighted else "responses must not all be missing")
        observed = None
        if found.gaps and t is not None:
            n, made = 0, []
            for chunk in read():
                record, at = np.nonzero(~np.isnan(chunk.y))
                made.append((record + n, t[at]))
                n += chunk.n
            observed = np.concatenate([r for r, _ in made]), np.concatenate([at for _, at in made])
        seen = replace(seen, read=lambda: (chunk.records for chunk in read()), observed=observed)
        whole = not (found.gaps or found.weighted)
        return cls(read, seen.n, found.level, found.mean, found.squares, whole, found.weighted), seen

    def chunks(self) -> Iterator[Observations]:
        """Go through the chunks once."""
        return (chunk.below(self.subtracted) for chunk in self.read())

    def over(self, function: Any, merge: Any, finish: Any = None) -> Any:
        """What a function makes of each chunk, merged."""
        value = functools.reduce(merge, map(function, self.chunks()))
        return value if finish is None else finish(value)

    def blocks(self, form: LongForm, placeholder: float) -> Iterator[Observed]:
        """Rows of the long form with their responses; `placeholder` stands where none was observed."""
        for chunk in self.chunks():
            yield from chunk.blocks(form, placeholder)

    def below(self, level: float) -> ChunkedObservations:
        """The same with lower responses."""
        return replace(self, level=self.level - level, subtracted=self.subtracted + level)

    def system(self, form: LongForm) -> System:
        """Normal equations of least squares."""
        if not self.whole:
            return weighted_system(self.blocks(form, 0.0))
        parts = (part for chunk in self.chunks() for part in chunk.without_offset().parts())
        return LongSums.over(form, ((part.records, part.y) for part in parts)).system(form)

    def some(self, rows: IntArray) -> Observations:
        """Those of some records, in order."""
        parts, first = [], 0
        for chunk in self.chunks():
            own = rows[(rows >= first) & (rows < first + chunk.n)] - first
            if own.size:
                parts.append(chunk.some(own))
            first += chunk.n
        return Observations.together(parts)

    def null_deviance(self, family: Family) -> float:
        """Deviance of a model that is one mean."""
        if family.name == "gaussian":
            return self.squares
        about, total = family.predictor(np.array(self.mean)), 0.0
        for chunk in self.chunks():
            here = chunk.used > 0
            y = chunk.y[here]
            total += float(chunk.used[here] @ family.half_deviance(y, np.full(y.size, about)))
        return 2 * total


@dataclass
class _Found:
    """Of the responses of the chunks so far: weight, mean, sum of squares about it, and mean less offsets."""

    gaps: bool = False
    weighted: bool = False
    weight: float = 0.0
    mean: float = 0.0
    level: float = 0.0
    squares: float = 0.0

    def looked_at(self, chunk: Observations) -> Records:
        """Add a chunk; by parts as in Chan, Golub & LeVeque (1983), doi:10.1080/00031305.1983.10483115."""
        weights = chunk.used
        here = weights > 0
        self.gaps |= bool(np.isnan(chunk.y).any())
        self.weighted |= chunk.weighted
        if here.any():
            y, w = chunk.y[here], weights[here]
            own, total = float(w.sum()), self.weight + float(w.sum())
            mean = float(w @ y) / own
            self.squares += float(w @ (y - mean) ** 2) + (mean - self.mean) ** 2 * self.weight * own / total
            self.mean += (mean - self.mean) * own / total
            self.level += (chunk.level - self.level) * own / total
            self.weight = total
        return chunk.records
