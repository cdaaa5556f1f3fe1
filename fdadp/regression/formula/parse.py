"""Formulas: ``"Y ~ ff(X, k=(5, 5)) + s(age) + C(region) * bmi - 1"``.

formulaic parses: the operators are those of R and of Wilkinson & Rogers (1973), doi:10.2307/2346786. The factors
between them are read by Python's parser, and nothing is evaluated: a factor is the name of a column, a term of
:data:`fdadp.terms.KINDS` with options that are literals, ``C(column)``, or a function of columns
(:mod:`fdadp.regression.reading.expressions`). ``offset(column or expression)`` is added as it is, with a coefficient of
1.

Factors in interactions are coded as Patsy does (https://patsy.readthedocs.io/en/latest/formulas.html, Redundancy and
categorical factors): a column for every level but the first where the margin is in the model, else for every level.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from keyword import iskeyword
from typing import Any, NamedTuple

from fdadp import terms
from fdadp.errors import InputError
from fdadp.regression.formula.factors import FactorReader, FormulaFactor, is_offset, pointing_at, position_shown
from fdadp.terms.spec import TermSpec

Subset = frozenset[str]


class ParsedFormula(NamedTuple):
    """What a formula says.

    Attributes
    ----------
    response : str or None
        Column, or function of one, left of ``~``; None: nothing is there.
    terms : tuple of TermSpec
        In the order in which they are written, interactions last, as in R.
    intercept : bool
        Whether there is a constant: not with ``- 1`` or ``0 +``.
    mean_curve : bool
        Whether it varies along the response: not with ``c(1)``.
    offset : str or None
        What is added as it is: an expression of columns, the sum of all ``offset()``.
    """

    response: str | None
    terms: tuple[TermSpec, ...]
    intercept: bool
    mean_curve: bool
    offset: str | None = None

    def one_offset(self, given: Any) -> Any:
        """The offset of the formula, or the one that a fit was given.

        Raises
        ------
        InputError
            Both.
        """
        if self.offset is not None and given is not None:
            raise InputError(f"offset must be left out where the formula has one, offset({self.offset}), got {given!r}")
        return given if self.offset is None else self.offset


def parse(formula: str, kinds: Mapping[str, str]) -> ParsedFormula:
    """Read a formula.

    Parameters
    ----------
    formula : str
        A column of numbers is a linear effect, one of labels or ``C(column)`` a factor, one of curves a concurrent
        effect; ``a:b`` and ``a * b`` are interactions of numbers, of factors, and of either with one other term:
        ``C(region):ff(X)``. Names that are no identifiers stand between backticks.
    kinds : mapping of str to {"curves", "numbers", "labels"}
        Of each column, as :func:`fdadp.regression.reading.columns.ColumnTable.kinds` tells them.

    Raises
    ------
    InputError
        What is not understood, with its place in the formula: syntax, an unknown column, term, function or option.

    Examples
    --------
    >>> parsed = parse("log(Y) ~ ff(X) + age - 1", {"X": "curves", "age": "numbers"})
    >>> parsed.response, [term.name for term in parsed.terms], parsed.intercept
    ('log(Y)', ['ff(X)', 'age'], False)
    """
    if not isinstance(formula, str) or not formula.strip():
        raise InputError(f"formula must be text such as 'Y ~ ff(X) + age', got {formula!r}")
    formula = unicodedata.normalize("NFC", " ".join(formula.split()))
    left, right = _sides(formula)
    reader = FactorReader(formula, kinds)
    response = reader.response(left) if left else None
    intercept = any(factors == ["1"] for factors in right)
    constant = ["c(1)"] in right
    added = [factors for factors in right if len(factors) == 1 and is_offset(factors[0])]
    rest = [factors for factors in right if factors not in (["1"], ["c(1)"], *added)]
    offsets = [reader.offset(text, response) for (text,) in added]
    written = [[reader.read(text) for text in factors] for factors in rest]
    found = _specs(written, intercept or constant, formula)
    names = [spec.name for spec in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"formula must have each term once, got {twice} twice{pointing_at(formula, twice)}")
    circular = next((s for s in found if response in s.columns and getattr(s, "limits", None) is None), None)
    if circular is not None:
        raise InputError(
            f"formula must not explain {response} by itself, got {circular.name}{pointing_at(formula, circular.name)}"
        )
    offset = " + ".join(offsets) or None
    return ParsedFormula(response, found, intercept or constant, intercept and not constant, offset)


def _sides(formula: str) -> tuple[str | None, list[list[str]]]:
    """What is left of ``~``, and the terms right of it as their factors."""
    from formulaic import Formula

    if re.search(r"(?<![\w.`'\"])\.(?![\w.])", formula):
        raise InputError(f"formula must name its columns; '.' stands for none{pointing_at(formula, '.')}")
    try:
        parsed = Formula(formula, _ordering="none")
        left = list(parsed.lhs) if hasattr(parsed, "lhs") else []
        right = list(parsed.rhs) if hasattr(parsed, "rhs") else list(parsed)
        if not all(hasattr(term, "factors") for term in (*left, *right)):
            raise InputError(f"one right side, and {formula.count('|') + 1} parts of it")
        sides = [[[_text(factor) for factor in term.factors] for term in side] for side in (left, right)]
    except Exception as exc:  # formulaic's own, and what it lets through: of Python's parser, of several right sides
        raise InputError(f"formula must be of the form 'Y ~ ff(X) + age', got {position_shown(formula, exc)}") from None
    if len(sides[0]) > 1 or (sides[0] and len(sides[0][0]) != 1) or ("~" in formula and sides[0] == [["1"]]):
        raise InputError(f"formula must have one response, got {formula.split('~')[0].strip()!r}")
    return (sides[0][0][0] if sides[0] else None), sides[1]


def _text(factor: Any) -> str:
    """A factor as Python can parse it, names that are no identifiers between backticks."""
    name = str(factor.expr)
    quoted = factor.eval_method.value == "lookup" and (not name.isidentifier() or iskeyword(name))
    return f"`{name}`" if quoted else name


def _specs(written: Sequence[Sequence[FormulaFactor]], intercept: bool, formula: str) -> tuple[TermSpec, ...]:
    """Terms of all products of factors: those of lower order come first, and decide on the coding of the others."""
    spanned: dict[tuple[str, ...], set[Subset]] = {(): {frozenset()}} if intercept else {}
    found: list[TermSpec] = []
    for factors in sorted(written, key=len):
        labels = {f.text: f for f in factors if f.is_factor}
        others = [f for f in factors if not f.is_factor]
        already = spanned.setdefault(tuple(sorted(f.text for f in others)), set())
        found += [_product(labels, others, coded, formula) for coded in _pieces(labels, already)]
        already.update(_subsets(labels))
    return tuple(found)


def _subsets(labels: Iterable[str]) -> list[Subset]:
    names = list(labels)
    return [frozenset(c) for size in range(len(names) + 1) for c in combinations(names, size)]


def _pieces(labels: Mapping[str, FormulaFactor], spanned: set[Subset]) -> list[dict[str, bool]]:
    """Products that span what a product of factors adds to what is spanned: of each factor, whether all levels."""
    pieces = [dict.fromkeys(sorted(s), False) for s in _subsets(labels) if s not in spanned]
    merged = True
    while merged:
        merged = False
        for short, long in ((a, b) for a in pieces for b in pieces if len(b) == len(a) + 1):
            if short.items() <= long.items():
                (factor,) = long.keys() - short.keys()
                pieces[pieces.index(long)] = {**short, factor: True}
                pieces.remove(short)
                merged = True
                break
    return pieces


def _product(
    labels: Mapping[str, FormulaFactor], others: Sequence[FormulaFactor], coded: Mapping[str, bool], formula: str
) -> TermSpec:
    """One term: the one that is neither number nor factor, or a number, or a factor; times all others."""
    by_columns = [f for f in others if f.is_number]
    whole = [f for f in others if not f.is_number]
    if len(whole) > 1:
        text = ":".join(f.text for f in whole)
        raise InputError(
            f"formula must have at most one term of curves or smooths in an interaction, got {text}"
            f"{pointing_at(formula, whole[0].text)}"
        )
    factors = [labels[text] for text in coded]
    if whole or by_columns:
        first, *rest = [*whole, *by_columns]
        spec = first.spec
    else:
        first, *factors = factors
        rest = []
        spec = first.coded("full" if coded[first.text] else "treatment")
    for number in rest:
        spec = terms.by(number.column, spec, coding="numbers")
    for factor in factors:
        spec = terms.by(factor.column, spec, coding="levels" if coded[factor.text] else "treatment")
    return spec
