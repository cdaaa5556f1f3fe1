"""Training curves as pairs (X, Y) that can be gone through more than once, and fits from chunks of them.

One pass finds the range of X, which fixes its basis; a second one adds up (:mod:`fdadp.solve.form.sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.functional.tables.kinds import Kind
from fdadp.regression.additive.base import FunctionalModel
from fdadp.regression.reading.chunked_records import CurvePairs
from fdadp.regression.reading.completion import MissingValues
from fdadp.solve.form.chunks import Partitions

Chunked = TypeVar("Chunked", bound="FromChunks")


class FromChunks(FunctionalModel):
    """Part of the additive model: :meth:`fit_chunks`."""

    missing: str
    x_transform: str | None

    def fit_chunks(
        self: Chunked,
        chunks: Sequence[tuple[Any, ...]] | Callable[[], Iterable[tuple[Any, ...]]] | Partitions,
        *,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | bool | None = None,
        x_range: tuple[float, float] | None = None,
        kind: Kind | None = None,
    ) -> Chunked:
        """Fit from chunks of curves that need not fit into memory together; the answer is that of :meth:`fit`.

        Parameters
        ----------
        chunks : sequence of (X, Y), or function returning an iterator over (X, Y)
            A mapping with X and Y, as a piece of a table that was opened, will do.
            Read twice; once, after a look at the first chunk, if `x_range` is given (fewer than 1,100 curves again a
            second time where the sizes of the bases are ``"auto"``). Pairs that are ``dask.delayed``, or of Dask's
            arrays, are added up where Dask's active scheduler computes them (docs/cluster.md), and only sums come here.
            A private fit keeps up to 256 MiB of curves (as float64), and as many of features: it reads once what fits,
            else some 30 times, with the same result bit for bit as :meth:`fit` for the same noise, whatever the chunks.
            :class:`fdadp.regression.reading.chunked_records.CurvePairs` says what is accepted.
        s, t : array_like, optional
            Grids of plain arrays; default even on [0, 1]. A private fit wants them declared.
        groups : array_like of shape (n,) or True, optional
            Private fit: True where the chunks are (X, Y, groups); for a list of chunks also the person of each row of
            all of them one after the other. The rows of a person may be spread over chunks.
        x_range : (float, float), optional
            Range of X, if it is known; values beyond it enter by linear continuation. Not for private fits, whose
            range is in `bounds`.
        kind : {"array", "frame", "fdatagrid"}, optional
            What predictions come as; default that of Y. A private fit does not look at the chunks: its default is
            "array", and the labels of a frame are `t` where that is a :class:`pandas.Index`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As :meth:`fit`; also, without privacy, ``missing`` other than ``"raise"``, and one-way iterators.
        PrivacyError
            As :meth:`fit`; also, in a private fit, a source that fails while it is read: the budget is then spent.
        """
        self._check_settings()
        if self._is_private:
            if x_range is not None:
                raise InputError(f"x_range must be None in a private fit, got {x_range!r}: see bounds")
            return self._fit_private_chunks(chunks, s, t, groups, kind)
        if groups is not None:
            raise InputError("groups must be None when fitting from chunks without end-to-end privacy")
        if self._gaps != "raise":
            raise InputError(f"missing must be 'raise' when fitting from chunks, got {self.missing!r}")
        if x_range is not None:
            bounds = numbers(x_range, "x_range")
            if bounds.shape != (2,) or not np.isfinite(bounds).all() or not bounds[0] < bounds[1]:
                raise InputError(f"x_range must be a pair (low, high) of numbers, got {x_range!r}")
            x_range = (float(bounds[0]), float(bounds[1]))
        if self.x_transform is not None:
            raise InputError("x_transform must be None when fitting from chunks: quantiles need all curves at once")
        source = CurvePairs(chunks, s, t, self.progress)
        found = self._estimated(source, x_range)
        self._adopt(self._publish(found, source))
        self._missing = MissingValues("raise")
        x, y = source.head["X"], source.head["Y"]
        self._remember(x, replace(y, kind=kind or y.kind))
        return self
