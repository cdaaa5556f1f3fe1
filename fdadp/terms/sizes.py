"""How many B-splines the surface gets where the user names no number: by a public rule, from n and the grid alone.

The penalties keep a basis that is larger than need be from costing accuracy; one that is too small leaves a bias that
no standard error knows of and that does not shrink with n. So the number of intervals between knots grows with n.

References
----------
Ruppert (2002), Selecting the number of knots for penalized splines, doi:10.1198/106186002853; Claeskens, Krivobokova
& Opsomer (2009), doi:10.1093/biomet/asp035: the number must grow with n, and from there on it hardly matters.
"""

from __future__ import annotations

from fdadp.errors import InputError
from fdadp.functional.splines.bsplines import BSplines

AUTO = "auto"
FEWEST = 4
"""Intervals between knots: with cubic splines 7 functions, refund's default."""
MOST_X, MOST_S = 17, 7


def basis_sizes(sizes: tuple[int | str, int | str], n: int | None, points: int, degree: int) -> tuple[int, int]:
    """Numbers of B-splines over the values of X and over its grid.

    Parameters
    ----------
    sizes : pair of (int or "auto")
        As the user set them.
    n : int or None
        Number of curves; None takes the most.
    points : int
        Of the grid of X.
    degree : int

    Returns
    -------
    over_x, over_s : int
        For ``"auto"`` ``3 n^(1/4)`` intervals over x, from 4 to 17, and half as many over s, from 4 to 7 and no more
        than one for three points. Cubic splines: 7 x 7 for 10 curves, 12 x 7 for 100, 14 x 8 for 200, 20 x 10 from
        1,100 on.
    """
    growth = float("inf") if n is None else n**0.25
    intervals = min(3 * growth, MOST_X), min(1.5 * growth, MOST_S, points / 3)
    over_x, over_s = (
        max(int(m), FEWEST) + degree if size == AUTO else int(size) for size, m in zip(sizes, intervals, strict=True)
    )
    return over_x, over_s


def check_size(size: int | str, name: str, degree: int) -> int:
    """Return a number of B-splines, or the least that ``"auto"`` takes.

    Raises
    ------
    InputError
        Another text, no whole number, or one too small for the degree.
    """
    if isinstance(size, str):
        if size != AUTO:
            raise InputError(f"{name} must be 'auto' or a number of B-splines, got {size!r}")
        size = FEWEST + int(degree)
    return BSplines.uniform(0.0, 1.0, size, degree=degree, name=name).n_basis
