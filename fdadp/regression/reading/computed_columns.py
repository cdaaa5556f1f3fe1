"""Columns computed row by row from others: ``log(age)``, ``mean(X)``, ``I(x**2 + z)``.

Such a column is its own name: whatever reads ``"mean(X)"`` from a table that has no such column gets the mean of each
curve of X, at the fit and of new rows alike. Python's parser reads the text and nothing is evaluated but what stands
in :data:`OF_NUMBERS` and :data:`OF_CURVES`, and arithmetic.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy import rowwise_matmul
from fdadp.private.public.column_ranges import Range

Value = Curves | FloatArray | float

OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sqrt": np.sqrt,
}
"""Functions of numbers, and of curves point by point."""


def _each(function: Callable[..., float]) -> Callable[..., FloatArray]:
    """Number by number, NaN where there is no value: vectorised loops may round by the place of a number."""

    def of_one(*values: float) -> float:
        try:
            return float(function(*values))
        except (ArithmeticError, TypeError, ValueError):
            return math.nan

    def of_all(*arrays: Any) -> FloatArray:
        return np.asarray(np.frompyfunc(of_one, len(arrays), 1)(*arrays), dtype=np.float64)

    return of_all


EACH = {name: _each(getattr(math, name)) for name in OF_NUMBERS if name not in ("abs", "sqrt")}
"""The same, bit for bit the same wherever a number stands; absolute values and roots always are."""


def _averaged(values: FloatArray, grid: FloatArray) -> FloatArray:
    weights = quadrature_weights(grid, "trapezoid") if grid.size > 1 else np.ones(1)
    return rowwise_matmul(np.ascontiguousarray(values), (weights / weights.sum())[:, None])[:, 0]


def _mean(x: Curves) -> FloatArray:
    return _averaged(x.values, x.grid)


def _sd(x: Curves) -> FloatArray:
    return np.asarray(np.sqrt(_averaged((x.values - _mean(x)[:, None]) ** 2, x.grid)))


def _roughness(x: Curves) -> FloatArray:
    steps = np.ascontiguousarray(np.abs(np.diff(x.values, axis=1)))
    return rowwise_matmul(steps, np.full((steps.shape[1], 1), 1 / max(steps.shape[1], 1)))[:, 0]


OF_CURVES: dict[str, Callable[[Curves], FloatArray]] = {
    "first": lambda x: x.values[:, 0],
    "last": lambda x: x.values[:, -1],
    "max": lambda x: x.values.max(axis=1) + 0.0,  # of zeros of either sign one
    "mean": _mean,
    "min": lambda x: x.values.min(axis=1) + 0.0,
    "roughness": _roughness,
    "sd": _sd,
}
"""Functions that make a number of each curve: values at its ends, extremes; mean and standard deviation over its
domain, by the trapezoidal rule; the mean absolute difference of neighbouring values. Of each row by itself, bit for
bit."""

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}

_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class RowFunction:
    """An expression of columns.

    Attributes
    ----------
    text : str
    sources : tuple of str
        The columns that it reads.
    tree : ast.expr
    names : dict
        What names in the tree stand for, where they are quoted by backticks.
    """

    text: str
    sources: tuple[str, ...]
    tree: ast.expr
    names: dict[str, str]

    def of(self, columns: dict[str, Value]) -> Curves | FloatArray:
        """The column, of its sources by name.

        Raises
        ------
        InputError
            A function of curves where there are numbers, or the other way round; a logarithm or root of values for
            which there is none, naming the row.
        """
        with np.errstate(all="ignore"):
            value = self._value(self.tree, columns, OF_NUMBERS, np.power)
        if isinstance(value, float) or np.ndim(_numbers(value)) == 0:
            raise InputError(f"{self.text} must read a column, got a constant")
        result = _numbers(value)
        known = np.ones(result.shape, dtype=bool)
        for source in map(_numbers, columns.values()):
            finite = np.isfinite(source)
            if finite.ndim < result.ndim:
                known &= finite[:, None]
            else:
                known &= finite if finite.ndim == result.ndim else finite.all(axis=1)
        bad = np.argwhere(known & ~np.isfinite(result))
        if len(bad):
            row = int(bad[0, 0])
            inputs = [f"{n} = {_numbers(c)[row]:g}" for n, c in columns.items() if _numbers(c).ndim == 1]
            raise InputError(
                f"{self.text} must be finite in every row, got {result[tuple(bad[0])]:g} in row {row}"
                + (f", where {', '.join(inputs)}" if inputs else "")
            )
        return value if isinstance(value, Curves) else np.asarray(value, dtype=np.float64)

    def by_rows(self, columns: dict[str, Value]) -> Curves | FloatArray:
        """The column, each row of it from that row alone, bit for bit; NaN where there is no value, without a word."""
        with np.errstate(all="ignore"):
            value = self._value(self.tree, columns, OF_NUMBERS | EACH, _each(math.pow))
        return value if isinstance(value, Curves) else np.asarray(value, dtype=np.float64)

    def is_curves(self, kinds: Mapping[str, str]) -> bool:
        """Whether curves come out of columns of such kinds."""

        def within(node: ast.AST) -> bool:
            if isinstance(node, ast.Name):
                return kinds.get(column_named(self.names.get(node.id, node.id), kinds), "") == "curves"
            if isinstance(node, ast.Call):
                return getattr(node.func, "id", "") not in OF_CURVES and any(map(within, node.args))
            return any(map(within, ast.iter_child_nodes(node)))

        return within(self.tree)

    def _value(
        self,
        node: ast.expr,
        columns: dict[str, Value],
        of_numbers: Mapping[str, Callable[[Any], Any]],
        power: Callable[[Any, Any], Any],
    ) -> Value:
        def of(inner: ast.expr) -> Value:
            return self._value(inner, columns, of_numbers, power)

        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Name(id=name):
                return columns[self.names.get(name, name)]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return _pointwise(np.negative, of(inner))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _pointwise(power, of(left), of(right))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _pointwise(_ARITHMETIC[type(op)], of(left), of(right))
            case ast.Call(func=ast.Name(id="I"), args=[inner], keywords=[]):
                return of(inner)
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in OF_NUMBERS:
                return _pointwise(of_numbers[name], of(inner))
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in OF_CURVES:
                value = of(inner)
                if not isinstance(value, Curves):
                    raise InputError(f"{self.text} must be {name}() of curves, got numbers")
                return OF_CURVES[name](value)
        raise AssertionError(ast.dump(node))  # row_function refuses all else


def expression(text: str) -> RowFunction:
    """An expression, which need not be a call: ``"0.5 * last(X) + 0.5 * mean(X)"``.

    Raises
    ------
    InputError
        Something in it that is not understood, or no column.
    """
    found = row_function(f"I({text})")
    if found is None or not found.sources:
        raise InputError(f"{text} must be an expression of columns, such as '0.5 * last(X) + 0.5 * mean(X)'")
    return found


def row_function(text: str) -> RowFunction | None:
    """An expression that is a call, such as ``"log(x)"``; None for all else, names of columns among it.

    Raises
    ------
    InputError
        A call with something in it that is not understood.
    """
    tree, names = tree_of(text) or (None, {})
    if not isinstance(tree, ast.Call):
        return None
    if not isinstance(tree.func, ast.Name) or tree.func.id not in {"I", *OF_NUMBERS, *OF_CURVES}:
        return None
    _refuse_others(tree, text)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    found = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    sources = tuple(dict.fromkeys(names.get(name, name) for name in found))
    return RowFunction(text, sources, tree, names)


def _refuse_others(node: ast.expr, text: str) -> None:
    """Refuse what is neither arithmetic nor a known function of one argument."""
    match node:
        case ast.Name():
            return
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _refuse_others(inner, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            _refuse_others(left, text)
            return _refuse_others(right, text)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in {"I", *OF_NUMBERS, *OF_CURVES}:
            return _refuse_others(inner, text)
    raise InputError(
        f"{text} must consist of columns, numbers, + - * / **, I() and the functions "
        f"{', '.join(sorted({*OF_NUMBERS, *OF_CURVES}))}, got {ast.unparse(node)}"
        + ("; write ** for ^" if "^" in text else "")
    )


def tree_of(text: str) -> tuple[ast.expr, dict[str, str]] | None:
    """Syntax tree of an expression, and the names quoted by backticks that its names stand for; None if it is none."""
    names: dict[str, str] = {}

    def plain(quoted: re.Match[str]) -> str:
        name = f"quoted_{len(names)}_"
        names[name] = quoted[1]
        return name

    try:
        return ast.parse(_QUOTED.sub(plain, text), mode="eval").body, names
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def column_named(name: str, columns: Collection[Any]) -> Any:
    """The column that a formula means: Python's parser composes letters and accents, tables may hold them apart.

    Names that are numbers, as tables without a header have them, are meant by their text.
    """
    if name in columns:
        return name
    wanted = unicodedata.normalize("NFKC", name)
    return next((c for c in columns if unicodedata.normalize("NFKC", str(c)) == wanted), None)


def columns_read(texts: Sequence[str], columns: Sequence[Any]) -> list[Any]:
    """Columns that are read for columns, or expressions of them, those of the first one first."""
    out: list[Any] = []
    for text in texts:
        function = None if column_named(text, columns) is not None else row_function(text)
        names = (text,) if function is None else function.sources
        out += [own for own in (column_named(name, columns) for name in names) if own is not None]
    return list(dict.fromkeys(out))


def _numbers(value: Value) -> Any:
    return value.values if isinstance(value, Curves) else np.asarray(value)


def _pointwise(function: Callable[..., Any], *values: Value) -> Value:
    """A function of numbers, of which some may be one a row and others curves on one grid."""
    curves = [v for v in values if isinstance(v, Curves)]
    if not curves:
        return np.asarray(function(*values)) if any(np.ndim(_numbers(v)) for v in values) else float(function(*values))
    if any(c.grid.size != curves[0].grid.size or (c.grid != curves[0].grid).any() for c in curves):
        raise InputError("curves that are computed with each other must be on one grid")
    arrays = [
        _numbers(v) if isinstance(v, Curves) or np.ndim(_numbers(v)) == 0 else _numbers(v)[:, None] for v in values
    ]
    return replace(curves[0], values=np.asarray(function(*arrays)))


# Public bounds of what is computed from a row's columns, from those of the columns: interval arithmetic.
#
# Source: Moore, Kearfott & Cloud (2009), Introduction to Interval Analysis, chapter 2.


SPREADS: dict[str, Callable[[float, float], Range]] = {
    "roughness": lambda low, high: (0.0, high - low),
    "sd": lambda low, high: (0.0, (high - low) / 2),
}
"""Of functions of curves whose values are not among those of the curve."""


def bounds_of(function: RowFunction, known: Mapping[str, Range]) -> Range | None:
    """Range of an expression where its columns lie within theirs; None where it has none.

    Parameters
    ----------
    function : RowFunction
    known : mapping of str to (float, float)
        Of its columns; one that is not there has no bounds.
    """
    with np.errstate(all="ignore"):
        low, high = _range(function.tree, {name: known.get(of) for name, of in _names(function).items()})
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _names(function: RowFunction) -> dict[str, str]:
    named = {n.id for n in ast.walk(function.tree) if isinstance(n, ast.Name)}
    return {name: function.names.get(name, name) for name in named}


def _range(node: ast.expr, known: Mapping[str, Range | None]) -> Range:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number), float(number)
        case ast.Name(id=name):
            return known[name] or (-math.inf, math.inf)
        case ast.UnaryOp(operand=inner):
            low, high = _range(inner, known)
            return -high, -low
        case ast.BinOp(left=left, op=op, right=right):
            return _of_two(op, _range(left, known), _range(right, known))
        case ast.Call(func=ast.Name(id="I"), args=[inner]):
            return _range(inner, known)
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            low, high = _range(inner, known)
            if name in OF_CURVES:
                return SPREADS[name](low, high) if name in SPREADS else (low, high)
            ends = [float(OF_NUMBERS[name](end)) for end in (low, high)]  # all but abs() are monotone
            if name == "abs" and low <= 0 <= high:
                ends.append(0.0)
            return _hull(ends)
    raise AssertionError(ast.dump(node))  # row_function refuses all else


def _of_two(op: ast.operator, a: Range, b: Range) -> Range:
    match op:
        case ast.Add():
            return a[0] + b[0], a[1] + b[1]
        case ast.Sub():
            return a[0] - b[1], a[1] - b[0]
        case ast.Mult():
            return _hull([x * y for x, y in product(a, b)])
        case ast.Div():
            return _hull([math.nan] if b[0] <= 0 <= b[1] else [x / y for x, y in product(a, b)])
    ends = [float(np.power(x, y)) for x, y in product(a, b)]
    if a[0] < 0 and (b[0] != b[1] or b[0] != round(b[0])):  # roots of negative numbers
        ends.append(math.nan)
    if a[0] <= 0 <= a[1]:
        ends.append(math.nan if b[0] < 0 else 0.0)
    return _hull(ends)


def _hull(ends: list[float]) -> Range:
    """Smallest interval around all; infinite where one is no number."""
    return (-math.inf, math.inf) if any(map(math.isnan, ends)) else (min(ends), max(ends))
