"""What the private summaries share: how curves come to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from fdadp._common.parameters import NestedParameters
from fdadp._common.typing import ArrayLike, CurveData
from fdadp.functional.tables.axis import ONLY_NUMBERED, axis_of, is_only_numbered, text_of_grid
from fdadp.functional.tables.kinds import Kind, names_of
from fdadp.functional.tables.sample import Curves, as_grid
from fdadp.private.public.inputs import PrivateChunks, chunks_of
from fdadp.summaries.curves.release import Declared, check, public_chunks, public_input
from fdadp.summaries.files import check_saveable

if TYPE_CHECKING:
    from fdadp.privacy import Ledger, Privacy
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.public.columns import Range
    from fdadp.private.public.prior import PublicPrior

Self = TypeVar("Self", bound="PrivateSummary")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSummary(NestedParameters, ABC):
    """Ways to hand curves to a private summary, which says in ``_release`` what it makes of them."""

    privacy: Privacy | None = None
    bounds: Range | None = None
    prior: PublicPrior | None = None
    allow_useless: bool = False

    def fit(self: Self, Y: CurveData, y: Any = None, *, t: ArrayLike | None = None, groups: Any = None) -> Self:
        """Release the summary.

        Parameters
        ----------
        Y : FDataGrid, DataFrame, or array_like of shape (n, T), also on disk or lazy
        y : ignored
            Here for pipelines.
        t : array_like of shape (T,), optional
            Grid of a plain array; default even on [0, 1].
        groups : array_like of shape (n,), optional
            Person of each row. A person counts once: its coefficients, and their products, are averaged over its rows.

        Raises
        ------
        InputError, PrivacyError
            From public validation: nothing was read or spent.
        """
        return self._fit(Y, t, groups)

    def fit_chunks(self: Self, chunks: Any, *, t: ArrayLike, groups: Any = None, kind: Kind = "array") -> Self:
        """Release it from chunks of curves: bit for bit what :meth:`fit` gives, with bounded memory.

        Parameters
        ----------
        chunks : sequence of Y, or function returning a fresh iterator over them
            Each as :meth:`fit` takes curves, on the grid `t`. Up to 256 MiB of curves (as float64), and as many of
            their coefficients, are kept; a source of more curves is read once for each release.
        t : array_like of shape (T,)
            The grid: chunks are not looked at to find it. Labels of a frame where it is a :class:`pandas.Index`.
        groups : array_like of shape (n,) or True, optional
            True where the chunks are (Y, groups); for a list of chunks also the person of each row of all of them one
            after the other. The rows of a person may be spread over chunks.
        kind : {"array", "frame", "fdatagrid"}
            What curves are given back as; chunks are not looked at to find it.

        Raises
        ------
        InputError, PrivacyError
            As :meth:`fit`; also a source that fails while it is read: the budget is then spent.
        """
        declared = self._declared()
        source = public_chunks(chunks, t, groups, kind)
        declared.privacy.hold([("Y", declared.bounds)])
        check_saveable(self, source.columns)
        return self._release(declared, source, source.groups, source)

    def _fit(self: Self, Y: CurveData, t: ArrayLike | None, groups: Any, noise: Noise | None = None) -> Self:
        declared = self._declared()
        chunks = chunks_of({"Y": Y}, groups)
        curves = public_input(declared.privacy, Y, t, groups if chunks is None else None)
        data: Any = curves.values
        if chunks is not None:
            data = PrivateChunks(chunks[0], {"Y": curves.grid}, groups=chunks[1])
            groups = data.groups
        declared.privacy.hold((name, declared.bounds) for name in names_of(Y, "Y"))
        check_saveable(self, curves.columns)
        return self._release(declared, data, groups, curves, noise)

    def _declared(self) -> Declared:
        return check(self.privacy, self.bounds, self.prior, self.allow_useless)

    def _remember(self, declared: Declared, curves: Curves | PrivateChunks, ledger: Ledger) -> None:
        """Keep what was declared, whatever is set later, and what curves are given back as."""
        self.ledger_, self.privacy_ = ledger, replace(declared.privacy)
        self._fitted_with = {"privacy": self.privacy_, "bounds": declared.bounds}
        self._kind, self._columns = curves.kind, curves.columns

    @abstractmethod
    def _release(
        self: Self,
        declared: Declared,
        data: Any,
        groups: Any,
        curves: Curves | PrivateChunks,
        noise: Noise | None = None,
    ) -> Self:
        """Release what is wanted of curves, of which only what is public was checked, and keep it."""


def said_of_grid(grid: Any, labels: Any) -> str:
    """A grid, in the unit that column labels of dates or times give, or that columns are only numbered."""
    known = isinstance(labels, pd.Index) and len(labels) == grid.size
    if known and is_only_numbered(labels) and np.array_equal(grid, as_grid(None, grid.size)):
        return text_of_grid(grid, ONLY_NUMBERED, "t")
    axis = axis_of(labels, "Y") if known else None
    if axis is None or not np.array_equal(axis.points, grid):
        return text_of_grid(grid)
    return text_of_grid(grid, axis.unit)
