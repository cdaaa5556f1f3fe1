"""Observations that come in chunks: the fit of many terms to them goes through the chunks, and keeps sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.records import Records, Seen
from fdadp.solve.families import Family
from fdadp.solve.long_form import LongForm
from fdadp.solve.long_sums import LongSums, System
from fdadp.solve.observations import Observations
from fdadp.solve.weighted import Observed, weighted_system

__all__ = ["ChunkedObservations"]

Chunks = Callable[[], Iterator[tuple[Records, FloatArray]]]


@dataclass(frozen=True)
class ChunkedObservations:
    """What :class:`fdadp.solve.observations.Observations` is, for responses on a grid that are read in chunks.

    Attributes
    ----------
    read : callable
        Returns a fresh iterator over the chunks: records, and their responses (n_chunk, T), NaN where nothing was
        observed.
    n : int
        Number of records.
    level : float
        Mean of the responses.
    squares : float
        Sum of their squares about it.
    whole : bool
        Whether all of them were observed.
    subtracted : float
        What is taken away from responses.
    """

    read: Chunks
    n: int
    level: float
    squares: float
    whole: bool
    subtracted: float = 0.0
    weights: FloatArray | None = None

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
        """
        found = _Found()
        seen = Seen.of(lambda: (found.looked_at(records, y) for records, y in read()))
        whole, observed = found.count == found.size, None
        if not whole and t is not None:
            n, made = 0, []
            for records, y in read():
                record, at = np.nonzero(~np.isnan(y))
                made.append((record + n, t[at]))
                n += records.n
            observed = np.concatenate([r for r, _ in made]), np.concatenate([at for _, at in made])
        seen = replace(seen, read=lambda: (records for records, _ in read()), observed=observed)
        return cls(read, seen.n, found.mean, found.squares, whole), seen

    def chunks(self) -> Iterator[Observations]:
        """Go through the chunks once."""
        for records, y in self.read():
            yield Observations(records, y - self.subtracted)

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
        parts = (part for chunk in self.chunks() for part in chunk.parts())
        return LongSums.over(form, ((part.records, part.y) for part in parts)).system(form)

    def null_deviance(self, family: Family) -> float:
        """Deviance of a model that is one mean."""
        if family.name == "gaussian":
            return self.squares
        about, total = family.predictor(np.array(self.level)), 0.0
        for chunk in self.chunks():
            y = chunk.y[~np.isnan(chunk.y)]
            total += float(family.half_deviance(y, np.full(y.size, about)).sum())
        return 2 * total


@dataclass
class _Found:
    """Number, mean, and sum of squares about it, of the responses of the chunks so far."""

    size: int = 0
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def looked_at(self, records: Records, y: FloatArray) -> Records:
        """Add a chunk; by parts as in Chan, Golub & LeVeque (1983), doi:10.1080/00031305.1983.10483115."""
        here = y[~np.isnan(y)]
        self.size += y.size
        if here.size:
            away, total = float(here.mean()) - self.mean, self.count + here.size
            own = float(((here - here.mean()) ** 2).sum())
            self.squares += own + away**2 * self.count * here.size / total
            self.mean += away * here.size / total
            self.count = total
        return records
