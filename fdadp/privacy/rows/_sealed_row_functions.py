"""Functions of rows that a user hands to the kernel: evaluated so that nothing but their values can get out.

*Row-local.* What a function gives for a row may depend on that row and on public or released values only, bit for bit.
The kernel cannot prove this of a Python function, so it does three things. It always calls it with blocks of the same
number of rows (short ones padded with zero rows), so that neither the cohort's nor a chunk's size shows; it hands over
copies, so that nothing written to them lasts; and before the first read it compares, bit for bit, what the function
gives for **public** rows at other places, among other neighbours and alone, and refuses it if they differ. These rows
lie about 0, far from it, and between the numbers that the function holds, such as public bounds; some have gaps. That
finds statistics of the block, row indices, cumulative sums, counters, and products by BLAS where they round
differently. It is a guard against mistakes and no proof (a function may keep a hidden state on purpose): functions
handed to the kernel are part of the trusted code.

*Silent.* A block whose evaluation raises is evaluated again row by row; a row that raises, or gives the wrong shape,
becomes NaN, and its contribution zero. No exception, warning or NumPy state depends on private values; the time does
(``docs/theory/kernel.md#silence``).
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import os
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import FailedReadError, PrivacyError

BLOCK = 512
"""Rows that a function sees at once, always."""
N_PROBES, N_CODES, GAPS = 37, 9, slice(None, None, 12)
"""Public rows about 0 that a function is tried on, how many of them are zeros and ones, and which have gaps."""
MOST_NUMBERS, MOST_LEVELS, FARTHEST = 4096, 110, 12
"""Numbers of a function that are looked at; at how many rows are put; the power of ten up to which rows go."""
ABOUT_ZERO = 10.0
"""Numbers of less size have rows about 0 around them."""

Rows = tuple[Any, ...]
Spec = tuple[tuple[int, ...], ...]
"""Shape of one row in each of the arrays: public. All are float64."""
RowFunction = Callable[[Rows], Any]

FAILED = "the source of chunks failed or changed the shape of its rows; the budget is spent"

P = ParamSpec("P")
T = TypeVar("T")


class FailingVault(Protocol):
    """Private rows, which remember that a read of them has failed."""

    def fail(self) -> None:
        """From here on nothing is given back."""


V = TypeVar("V", bound=FailingVault)


def sealed(function: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
    """Let no error out of a function that reads the rows of a vault, its first argument, but the constant one.

    Neither the message nor the cause of what went wrong leaves, nor the frames it came through with the rows in them.
    The rest of the data is missing then, so what was summed may not be released. The vault remembers it, whatever went
    wrong: nothing of the budget is given back then (``docs/theory/accounting.md#given-back``).

    Raises
    ------
    FailedReadError
        Always the same one, :data:`FAILED`.
    KeyboardInterrupt
        From the user; without the frames, too.
    """

    @functools.wraps(function)
    def read(vault: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
        interrupted = False
        try:
            return function(vault, *args, **kwargs)
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
        vault.fail()
        raise KeyboardInterrupt if interrupted else FailedReadError(FAILED)

    return read


_checked: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()


class Silence:
    """One stay in :func:`silence`; one that was interrupted is collected with its frame."""


_door = threading.Lock()
_inside: weakref.WeakSet[Silence] = weakref.WeakSet()
_aside: list[Any] = []
"""Filters of warnings as they were when the first thread went in; put back when nobody is inside."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_door.acquire, after_in_parent=_door.release, after_in_child=_door.release)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """No floating-point error or warning gets out of here, nor out of other threads that are in here."""
    own = Silence()
    try:
        with _door:
            _inside.add(own)
            if not _aside:
                _aside.append(warnings.filters)
                warnings.filters = list(warnings.filters)
                warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            yield
    finally:
        with _door:
            _inside.discard(own)
            if _aside and not _inside:
                warnings.filters = _aside.pop()


def call(f: RowFunction, rows: Rows, m: int, shapes: Sequence[tuple[int, ...]] | None) -> tuple[FloatArray, ...]:
    """Evaluate f on m rows; float64 arrays of shape (m, *shape). The shapes are checked unless None."""
    result = f(tuple(a + 0.0 for a in rows))  # own memory, and one zero: a reader makes 0.0 or -0.0 of "-0"
    parts = result if isinstance(result, tuple) else (result,)
    arrays = tuple(np.ascontiguousarray(p, dtype=np.float64) for p in parts)
    if any(a.ndim == 0 or len(a) != m for a in arrays):
        raise ValueError(f"one value for each of {m} rows wanted, got shapes {[a.shape for a in arrays]}")
    if shapes is not None and [a.shape[1:] for a in arrays] != list(shapes):
        raise ValueError("other shapes than for public rows")
    return arrays


def evaluate(f: RowFunction, block: Rows, m: int, shapes: Sequence[tuple[int, ...]]) -> tuple[FloatArray, ...]:
    """Evaluate f on a padded block of which the first m rows are real; rows that fail are NaN."""
    try:
        return call(f, block, BLOCK, shapes)
    except KeyboardInterrupt:
        raise
    except BaseException:  # panics of polars are no Exception
        pass
    out = tuple(np.full((BLOCK, *shape), np.nan) for shape in shapes)
    for i in range(m):
        try:
            one = call(f, tuple(a[i : i + 1] for a in block), 1, shapes)
        except KeyboardInterrupt:
            raise
        except BaseException:
            continue
        for a, value in zip(out, one, strict=True):
            a[i] = value[0]
    return out


DEPTH, MOST_PARTS = 10, 64
"""How far a row function is looked into for what its work may hang on (a term lies five objects below it), and at how
many parts of each object."""
WORDS = frozenset({bool, np.bool_, str, bytes, type(None), types.CodeType})
"""Types of which each value may stand for another way to compute."""
NUMBERS = (int, float, np.integer, np.floating)


def zero_rows(spec: Spec, m: int = BLOCK) -> Rows:
    """Public rows of the given kind."""
    return tuple(np.zeros((m, *shape)) for shape in spec)


def padded(rows: Rows, spec: Spec) -> Rows:
    """A block that begins with these rows; the others are zeros."""
    block = zero_rows(spec)
    for full, values in zip(block, rows, strict=True):
        full[: len(values)] = values
    return block


def probe(f: RowFunction, spec: Spec, name: str) -> list[tuple[int, ...]]:
    """Shapes of what f gives for one row; a check on public rows that it is row-local.

    Raises
    ------
    PrivacyError
        f fails on a block of zero rows, does not give one value a row, or is seen not to be row-local. Public
        rows only were read, so nothing was spent.
    """
    if not callable(f):
        raise PrivacyError(f"{name}: a function of a block of rows is wanted, got {type(f).__name__}")
    with silence():
        try:
            shapes = [a.shape[1:] for a in call(f, zero_rows(spec), BLOCK, None)]
        except Exception as exc:
            raise PrivacyError(
                f"{name}: the function must give an array (m, ...) for a block of m rows, "
                f"but failed on public zero rows ({exc}); nothing was read and nothing was spent"
            ) from exc
        function = f.__func__ if isinstance(f, types.MethodType) else f
        code = function.__code__ if isinstance(function, types.FunctionType) else None
        look = Look().into(f)
        kind = (spec, *look.kind)
        if code is None or kind not in _checked.get(code, ()):
            if not _same_everywhere(f, spec, shapes, look.levels()):
                raise PrivacyError(
                    f"{name}: the function must be row-local, bit for bit, but gives public rows other values at other "
                    "places or among other rows. Products by BLAS do so (use fdadp.privacy.rowwise_matmul), as do "
                    "statistics of a block and row indices; nothing was read and nothing was spent"
                )
            if code is not None:
                _checked.setdefault(code, set()).add(kind)
    return shapes


@dataclass
class Look:
    """What a function's work may hang on: code, words, types and shapes of all it holds; its numbers are apart.

    Of a number its ``kind`` has the type, and whether it is 0.
    """

    kind: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    """Numbers, and arrays and code that hold them."""
    seen: dict[int, int] = field(default_factory=dict)

    def into(self, value: Any, depth: int = DEPTH) -> Look:
        """Add a value and what it holds."""
        if isinstance(value, (np.ndarray, types.CodeType, *NUMBERS)) and not isinstance(value, bool):
            self.numbers.append(value)
        if type(value) in WORDS:
            self.kind.append(value)
        elif isinstance(value, NUMBERS):
            self.kind += type(value), value == 0
        elif isinstance(value, np.ndarray):
            self.kind += type(value), value.shape, value.dtype, value.strides
        elif not depth or id(value) in self.seen:
            self.kind.append((type(value), self.seen.get(id(value))))
        else:
            self.seen[id(value)] = len(self.seen)
            names, held = _held(value)
            self.kind += type(value), len(names), *names, len(held)
            if not held and callable(value):
                self.kind.append(repr(value))
            for part in held:
                self.into(part, depth - 1)
        return self

    def levels(self) -> FloatArray:
        """0, and the numbers that are not about 0, once each."""
        found = islice((number for part in self.numbers for number in _numbers(part)), MOST_NUMBERS)
        return np.unique([0.0, *(number for number in found if ABOUT_ZERO < abs(number) < np.inf)])


def _numbers(value: Any) -> Iterator[float]:
    """A number, those in code, or the ends of an array."""
    if isinstance(value, types.CodeType | tuple | frozenset):
        for part in value.co_consts if isinstance(value, types.CodeType) else value:
            yield from _numbers(part)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "iuf" and value.size:
            yield from (float(np.nanmin(value)), float(np.nanmax(value)))
    elif isinstance(value, NUMBERS) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # of an integer beyond all floats
            yield float(value)


def _is_empty(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # not yet filled
        return True
    return False


def _held(value: Any) -> tuple[list[str], list[Any]]:
    """Names in an object, and what it holds: of a function its code, variables from outside and defaults."""
    if isinstance(value, types.MethodType):
        return [], [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return list(value.keywords), [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell)]
        known = value.__globals__
        outside = [part for name in value.__code__.co_names if _is_own(part := known.get(name), known)]
        given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        return [], [value.__code__, *outside, *cells, *given]
    if isinstance(value, tuple | list | set | frozenset):
        return [], list(islice(value, MOST_PARTS))
    named = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    slots = [name for name in copyreg._slotnames(type(value)) if hasattr(value, name)]  # type: ignore[attr-defined]
    named = {**named, **{name: getattr(value, name) for name in slots}} if slots else named
    items = list(islice(named.items(), MOST_PARTS))
    return [str(name) for name, _ in items], [part for _, part in items]


def _is_own(part: Any, known: dict[str, Any]) -> bool:
    """Whether a variable from outside is looked into: data, and functions of the same module."""
    if isinstance(part, types.FunctionType):
        return part.__globals__ is known
    return isinstance(part, (*NUMBERS, np.ndarray, str, tuple, list, functools.partial))


def _far_rows(levels: FloatArray, spec: Spec) -> Rows:
    """Two rows at each number, and between it and the next; rows of all sizes on both sides of 0."""
    rng = np.random.default_rng(20240119)
    levels = levels[np.unique(np.linspace(0, levels.size - 1, MOST_LEVELS).astype(int))]
    sizes, none = 10.0 ** np.arange(FARTHEST + 1), np.zeros(FARTHEST + 1)
    low = np.concatenate([np.repeat(levels[:-1], 2), np.repeat(levels - 1, 2), -sizes, none])
    high = np.concatenate([np.repeat(levels[1:], 2), np.repeat(levels + 1, 2), none, sizes])
    order = rng.permutation(low.size)  # neighbours in a block are of other sizes
    rows = []
    for shape in spec:
        part = rng.uniform(size=(low.size, *shape))
        between = [v[order].reshape(-1, *(1,) * len(shape)) for v in (low, high)]
        rows.append(between[0] * (1 - part) + between[1] * part)
    return tuple(rows)


def _probe_rows(spec: Spec) -> Rows:
    rng = np.random.default_rng(20240117)
    rows = []
    for shape in spec:
        scale = 10.0 ** rng.uniform(-2, 2, size=(N_PROBES, *(1,) * len(shape)))
        rows.append(rng.normal(size=(N_PROBES, *shape)) * scale)
    for values in rows:  # codes of bins and classes are whole, and 0 and 1 are codes wherever there are two
        values[-N_CODES:] = rng.integers(0, 2, size=values[-N_CODES:].shape)
    for values in rows:  # what other rows have must not fill the gaps of a row
        values[GAPS] += rng.choice([0.0, np.nan, np.inf], size=values[GAPS].shape)
        values[0] = np.nan
    return tuple(rows)


def _same_everywhere(f: RowFunction, spec: Spec, shapes: Sequence[tuple[int, ...]], levels: FloatArray) -> bool:
    """Whether f gives public rows about 0, and far from it at these levels, the same bits everywhere."""
    return all(_same_bits(f, public, spec, shapes) for public in (_probe_rows(spec), _far_rows(levels, spec)))


def _same_bits(f: RowFunction, public: Rows, spec: Spec, shapes: Sequence[tuple[int, ...]]) -> bool:
    """Compare bits at two sets of places in full blocks, in a short block among zeros, and of rows alone."""
    rng = np.random.default_rng(20240118)
    n = len(public[0])
    orders = [np.arange(BLOCK) % n, rng.integers(0, n, BLOCK), np.arange(n)[::-1]]
    places: list[tuple[Any, tuple[FloatArray, ...]]] = []
    for order in orders:
        rows = tuple(a[order] for a in public)
        block = rows if len(order) == BLOCK else padded(rows, spec)
        try:
            places.append((order, call(f, block, BLOCK, shapes)))
        except Exception:
            taken = _taken(f, public)
            if not 0 < taken.size < n:
                return True  # public rows that f cannot take tell nothing
            return _same_bits(f, tuple(a[taken] for a in public), spec, shapes)
    for i in range(0, n, max(n // 6, 1)):
        try:
            places.append((np.array([i]), call(f, tuple(a[i : i + 1] for a in public), 1, shapes)))
        except Exception:
            continue
    first = [_bits(a[:n]) for a in places[0][1]]  # the first block begins with all rows
    return all(
        np.array_equal(bits[order], _bits(a[: len(order)]))
        for order, values in places
        for bits, a in zip(first, values, strict=True)
    )


def _taken(f: RowFunction, public: Rows) -> IntArray:
    """Which public rows f can take alone."""
    taken = []
    for i in range(len(public[0])):
        with contextlib.suppress(Exception):
            call(f, tuple(a[i : i + 1] for a in public), 1, None)
            taken.append(i)
    return np.array(taken, dtype=np.int64)


def _bits(a: FloatArray) -> npt.NDArray[np.int64]:
    # All NaN are one: their payload never gets out.
    return np.where(np.isnan(a), np.nan, a).reshape(len(a), -1).view(np.int64)
