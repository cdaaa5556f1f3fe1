"""Figures and axes: matplotlib loaded on first use, panels in rows, one palette."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fdadp.errors import FdadpError, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, which people with any kind of colour vision can tell apart.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#666666"


class MissingPlotsError(FdadpError, ImportError):
    """matplotlib, the extra ``plots``, is not installed."""


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    MissingPlotsError
        matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as exc:
        raise MissingPlotsError(f"pictures need matplotlib: pip install matplotlib ({exc})") from exc
    return plt


def panels(
    n: int,
    axes: Any = None,
    *,
    columns: tuple[int, ...] = (4, 3),
    size: tuple[float, float] = (3.2, 2.8),
    projection: str | None = None,
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` axes in rows, or the axes the caller gave and their figure.

    Parameters
    ----------
    n : int
    axes : Axes or array_like of Axes, optional
        Where to draw instead of on a new figure; at least `n` of them.
    columns : tuple of int
        Panels in a row; of several the one that leaves the fewest places empty, the first among equals.
    size : (float, float)
        Width and height of a panel, inches.
    projection : str, optional
        ``"3d"``.
    share : bool
        Whether panels share both axes.

    Raises
    ------
    InputError
        Too few axes, or flat axes for a 3-D picture.
    """
    plt = pyplot()
    if axes is not None:
        given = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(given) < n:
            raise InputError(f"ax must be {n} axes, one per panel, got {len(given)}")
        if projection == "3d" and getattr(given[0], "name", "") != "3d":
            raise InputError("ax must be made with projection='3d' for this picture, got flat axes")
        return given[0].figure, given[:n]
    width = min((min(n, c) for c in columns), key=lambda c: -n % c)
    rows = -(-n // width)
    figure, grid = plt.subplots(
        rows,
        width,
        figsize=(size[0] * width + 0.8, size[1] * rows + 0.4),
        squeeze=False,
        sharex=share,
        sharey=share,
        layout="constrained",
        subplot_kw={"projection": projection} if projection else None,
    )
    flat: npt.NDArray[Any] = grid.ravel()
    for spare in flat[n:]:
        spare.set_visible(False)
    if share:  # the last panel of each column needs its tick labels, even above a spare place
        for above in flat[max(n - width, 0) : n]:
            above.tick_params(labelbottom=True)
    return figure, list(flat[:n])


def texts_of(labels: Mapping[str, str] | None, **defaults: str) -> dict[str, str]:
    """The caller's texts for axes, or those by default.

    Raises
    ------
    InputError
        `labels` has a key that is none of the defaults.
    """
    unknown = sorted(set(labels or {}) - set(defaults))
    if unknown:
        raise InputError(f"labels must have keys among {', '.join(defaults)}, got {unknown[0]!r}")
    return defaults | dict(labels or {})


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure and forget it."""
    figure.savefig(path, dpi=120)
    pyplot().close(figure)
    return path


def saved(draw: Callable[[], Any], path: Path) -> Path | None:
    """Draw a figure and write it; None where matplotlib is not installed."""
    try:
        return save_figure(draw(), path)
    except MissingPlotsError:
        return None
