"""Sources of chunks, each with a column of ids, whose rows the kernel joins by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy.boundary import table
from fdadp.privacy.joined import Joined, JoinedChunks, Key
from fdadp.private.public.inputs import PrivateChunks

Chunks = Callable[[], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class JoinedTables:
    """Tables of several sources, such as files, that all have a column of ids.

    Attributes
    ----------
    sources : mapping of str to callable
        By name: gives a fresh iterator over mappings of columns by name, the ids among them.
    names : mapping of str to sequence of str
        Columns of each source: public.
    id : str
        Name of the column of ids.
    """

    sources: Mapping[str, Chunks]
    names: Mapping[str, Sequence[str]]
    id: str

    def joined(
        self,
        asked: Sequence[tuple[str, FloatArray | None]],
        read: Callable[[Chunks, Sequence[int]], Iterable[tuple[Any, ...]]],
    ) -> Joined:
        """What the kernel is handed.

        Parameters
        ----------
        asked : sequence of (str, ndarray or None)
            Columns, and the points of curves. The last one is the response.
        read : callable
            From a source, and the places of its columns among those asked for, to tuples of these and the ids.
        """
        where = [next(source for source, own in self.names.items() if name in own) for name, _ in asked]
        used = list(dict.fromkeys(where))
        of = tuple(map(used.index, where))
        heads = tuple(table(np.empty(0 if grid is None else (0, grid.size))) for _, grid in asked)
        chunks = tuple(read(self.sources[s], [j for j, own in enumerate(where) if own == s]) for s in used)
        return JoinedChunks(heads, of, tuple(Key(()) for _ in used), of[-1], self.id, chunks)

    def curves(self, grids: Mapping[str, FloatArray]) -> Joined:
        """The same of curves by name, the responses the last of them."""
        names = list(grids)

        def read(source: Chunks, places: Sequence[int]) -> PrivateChunks:
            own = [names[j] for j in places]
            return PrivateChunks(
                lambda: (tuple(table[name] for name in (*own, self.id)) for table in source()),
                {name: grids[name] for name in own},
                groups=True,
            )

        return self.joined(list(grids.items()), read)
