"""Public bounds of what is computed from a row's columns, from those of the columns: interval arithmetic.

Source: Moore, Kearfott & Cloud (2009), Introduction to Interval Analysis, chapter 2.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from fdadp.private.ranges import Range
from fdadp.regression.row_functions import OF_CURVES, OF_NUMBERS, RowFunction

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
