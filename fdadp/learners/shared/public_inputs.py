"""Public inputs of the learners: tables by their shape, labels, boxes and balls; errors that name the argument."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any

import numpy as np

from fdadp._common.argument_checks import is_number
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PublicParameterMissing
from fdadp.privacy import rowwise_norm
from fdadp.privacy.private_entries import RAGGED, Table, table
from fdadp.privacy.rows._rowwise_arithmetic import in_ball
from fdadp.privacy.rows._sealed_row_functions import RowFunction, Rows

HUGE = 1e100
"""Numbers from here on count as infinite: their squares may be."""


def public(name: str, value: Any, what: str) -> Any:
    """Return a public parameter, or say that it is missing."""
    if value is None:
        raise PublicParameterMissing(
            f"{name} must be given: {what}. It is public, and taking it from the data would not be private"
        )
    return value


def in_order(labels: Any, name: str) -> list[Hashable]:
    """Public labels as a list: a text has letters, and a set another order in another process."""
    if isinstance(labels, (str, bytes, Set)) or not isinstance(labels, Iterable):
        raise InputError(f"{name} must be a sequence of labels, in their order, got {labels!r}")
    return list(labels)


def class_labels(classes: Any) -> list[Hashable]:
    """Public labels of a classifier, at least two, sorted as scikit-learn's scorers take them to be.

    Labels that cannot be compared stay in the order that they were declared in.
    """
    labels = in_order(public("classes", classes, "all labels there are"), "classes")
    if len(labels) < 2:
        raise InputError(f"classes must be at least two, got {labels!r}")
    try:
        return sorted(labels)  # type: ignore[type-var]  # labels without an order raise a TypeError
    except TypeError:
        return labels


def class_array(labels: Sequence[Hashable]) -> np.ndarray[Any, Any]:
    """Labels as an array (K,) that gives them back as declared: beside a text NumPy makes text of a number."""
    texts = {isinstance(label, str) for label in labels}
    return np.array(labels, dtype=object if len(texts) > 1 else None)


def check_distinct(names: Sequence[Any]) -> None:
    """Refuse columns of which two have one name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"X must have distinct column names, got {twice[0]!r} more than once")


def as_table(X: Any) -> Table:
    """Return a table (n, d) without reading a value: only its shape is checked, and errors do not tell n."""
    found = table(X, "X")
    if isinstance(X, list | tuple):
        raise InputError(f"X must be two-dimensional (rows, features): an array or a data frame, {RAGGED}")
    if len(found.shape) != 2:
        raise InputError(
            f"X must be two-dimensional (rows, features), got {len(found.shape)} dimension(s). Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
        )
    if found.shape[0] == 0:
        raise InputError("X must not be empty: 0 sample(s) while a minimum of 1 is required.")
    if found.shape[1] == 0:
        raise InputError("X must not be empty: 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return found


def as_target(y: Any) -> Table:
    """Return targets (n,) or (n, q) without reading a value: only their shape is checked."""
    if y is None:
        raise InputError("the regression requires y to be passed, but the target y is None")
    found = table(y, "y")
    if len(found.shape) not in (1, 2):
        raise InputError(f"y must be of shape (n,) or (n, q), got {len(found.shape)} dimensions")
    return found


def one_target(y: Any) -> None:
    """Refuse targets that are not (n,) or (n, 1); only their shape is looked at."""
    shape = as_target(y).shape
    if len(shape) == 2 and shape[1] != 1:
        raise InputError(f"y must be of shape (n,), got {shape[1]} columns")


def box(bounds: Any, d: int, name: str = "bounds") -> tuple[FloatArray, FloatArray]:
    """Public bounds (low, high), each a number or d of them, as two vectors."""
    public(name, bounds, f"a pair (low, high), each a number or {d} numbers")
    try:
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (d,)).copy() for b in bounds)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be a pair (low, high), each a number or {d} numbers, got {bounds!r}") from exc
    with np.errstate(over="ignore", invalid="ignore"):
        right = np.isfinite(low) & np.isfinite(high) & np.isfinite(high - low) & (low < high)
    if not right.all():
        raise InputError(f"{name} must be finite, with low < high and of finite width, got {bounds!r}")
    return low, high


def ball(data_norm: Any, center: Any, d: int) -> tuple[float, FloatArray]:
    """Public radius and centre (d,) of the ball that rows are clipped to."""
    public("data_norm", data_norm, "the largest L2 norm of a row about `center`, to which rows are clipped")
    radius = positive(data_norm, "data_norm")
    try:
        middle = np.broadcast_to(np.asarray(center, dtype=np.float64), (d,)).copy()
    except (TypeError, ValueError) as exc:
        raise InputError(f"center must be a number or {d} numbers, got {center!r}") from exc
    if not np.isfinite(middle).all():
        raise InputError(f"center must be finite, got {center!r}")
    return radius, middle


def said_once(bounds: Any, data_norm: Any, center: Any, *, both: bool = False) -> None:
    """Refuse a public region of rows that is not said, or said twice: as a box and as a ball, unless `both` may be."""
    if bounds is None and data_norm is None:
        raise PublicParameterMissing(
            "bounds or data_norm must be given: the range of each feature, or the largest L2 norm of a row about "
            "`center`. It is public, and taking it from the data would not be private"
        )
    if bounds is None:
        return
    if data_norm is not None and not both:
        raise InputError(f"data_norm must be left out where bounds are given, got {data_norm!r}")
    try:
        middle = bool(np.any(np.asarray(center, dtype=np.float64) != 0))
    except (TypeError, ValueError):
        middle = True
    if middle:
        raise InputError(f"center must be left out where bounds are given, whose middle it is, got {center!r}")


def box_of(bounds: Any, data_norm: Any, center: Any, d: int) -> tuple[FloatArray, FloatArray]:
    """Public bounds, or those of the smallest box around a public ball, as two vectors (d,)."""
    said_once(bounds, data_norm, center)
    if data_norm is None:
        return box(bounds, d)
    radius, middle = ball(data_norm, center, d)
    return middle - radius, middle + radius


def ball_of(bounds: Any, data_norm: Any, center: Any, d: int) -> tuple[float, FloatArray]:
    """Public radius and centre (d,) of a ball, or those of the smallest ball around a public box."""
    said_once(bounds, data_norm, center)
    if bounds is None:
        return ball(data_norm, center, d)
    low, high = box(bounds, d)
    return float(np.linalg.norm((high - low) / 2)), (low + high) / 2


def positive(value: Any, name: str, *, below: float = HUGE) -> float:
    """Return a public number above 0, or say what it was."""
    public(name, value, "a number above 0")
    if not is_number(value) or not 0 < value < below:
        limit = "" if below == HUGE else f" and below {below:g}"
        raise InputError(f"{name} must be a finite number above 0{limit}, got {value!r}")
    return float(value)


# Row functions that learners hand to the kernel: rows with a constant, targets and rows of length 1 at most.
#
# All are row-local: what a row becomes depends on that row and on public values alone, bit for bit.


def with_constant(center: FloatArray, radius: float, const: float) -> RowFunction:
    """Row function: rows (m, d) about a centre, moved into the ball of a radius, and a constant; (m, d + 1)."""

    def row(rows: Rows) -> FloatArray:
        x = in_ball(rows[0] - center, radius)
        return np.concatenate((x, np.full((len(x), 1), const)), axis=1)

    return row


class UnitTarget:
    """The map y -> t = (clip(y) - middle)/half, in [-1, 1], of one target; public, and row-local.

    Parameters
    ----------
    bounds_y : (low, high)
        Public range.

    Attributes
    ----------
    low, high, middle, half : float
    """

    def __init__(self, bounds_y: Any) -> None:
        self.low, self.high = (float(end[0]) for end in box(bounds_y, 1, "bounds_y"))
        self.middle, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2

    def __call__(self, y: FloatArray) -> FloatArray:
        """Targets (m,) or (m, 1), as (m,); what is not finite stays so."""
        y = y.reshape(len(y))
        return np.asarray((self.inside(y) - self.middle) / self.half + 0.0 * y)

    def inside(self, y: FloatArray) -> FloatArray:
        """Targets or predictions moved into the range."""
        return np.clip(y, self.low, self.high)


class UnitRows:
    """The map x -> z = (s, b0)/√(1 + b0²) with s = clip((x - center)/scale)/R of norm at most 1; public, and row-local.

    ``|z| <= 1`` for every x, and a row outside the ball counts as the row at its edge in the same direction.

    Parameters
    ----------
    d : int
        Number of features.
    data_norm, center : float, array_like of shape (d,)
        Radius R and centre of a ball, in units of the features.
    bounds : (low, high), optional
        Instead of them: ranges of the features, mapped to [-1, 1] each; then R = √d.
    intercept : float
        b0 above 0, the value of the constant feature; 1: as large as the largest row.

    Attributes
    ----------
    dimensions : int
        d + 1.
    """

    def __init__(
        self, d: int, *, data_norm: Any = None, center: ArrayLike = 0.0, bounds: Any = None, intercept: float = 1.0
    ) -> None:
        said_once(bounds, data_norm, center)
        self.low = self.high = None
        if bounds is None:
            radius, self.center = ball(data_norm, center, d)
            self.scale = np.full(d, radius)
        else:
            self.low, self.high = box(bounds, d)
            self.center = (self.low + self.high) / 2
            self.scale = (self.high - self.low) / 2 * math.sqrt(d)
        self.intercept = positive(intercept, "intercept_scaling")
        self.dimensions = d + 1
        self.length = math.hypot(1.0, self.intercept)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Map rows (m, d) to vectors (m, d + 1) of norm at most 1; a row that is not finite stays so."""
        if self.low is not None:
            x = np.clip(x, self.low, self.high) + 0.0 * x  # infinity is no number, rather than the end of a range
        s = (x - self.center) / self.scale
        s = s / np.maximum(1.0, np.abs(s).max(axis=1, keepdims=True))  # so that squares cannot overflow
        s = s / np.maximum(1.0, rowwise_norm(s))[:, None]
        return np.concatenate((s, np.full((len(s), 1), self.intercept)), axis=1) / self.length

    def inside(self, x: FloatArray) -> FloatArray:
        """Return rows (m, d) clipped as in the fit, in units of the features."""
        return np.ascontiguousarray(self(x)[:, :-1] * (self.length * self.scale) + self.center)

    def coefficients(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes (K, d) and intercepts (K,), in units of the features, of w (d + 1, K)."""
        slopes = w[:-1].T / (self.length * self.scale)
        return slopes, w[-1] * self.intercept / self.length - slopes @ self.center
