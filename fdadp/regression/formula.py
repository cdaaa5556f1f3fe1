"""Formulas: ``"Y ~ ff(X, k=(5, 5)) + s(age) + C(region) * bmi - 1"``.

formulaic parses: the operators are those of R and of Wilkinson & Rogers (1973), doi:10.2307/2346786. The factors
between them are read by Python's parser, and nothing is evaluated: a factor is the name of a column, a term of
:data:`fdadp.terms.KINDS` with options that are literals, ``C(column)``, or a function of columns
(:mod:`fdadp.regression.reading.computed_columns`). ``offset(column or expression)`` is added as it is, with a
coefficient of 1.

Factors in interactions are coded as Patsy does (https://patsy.readthedocs.io/en/latest/formulas.html, Redundancy and
categorical factors): a column for every level but the first where the margin is in the model, else for every level.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
import typing
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from keyword import iskeyword
from typing import Any, NamedTuple

from fdadp import terms
from fdadp.errors import InputError
from fdadp.regression.reading.computed_columns import (
    OF_CURVES,
    OF_NUMBERS,
    RowFunction,
    column_named,
    row_function,
    tree_of,
)
from fdadp.regression.reading.table_columns import unknown_column
from fdadp.terms.spec import TermSpec

Subset = frozenset[str]

OF_REFUND = {
    **dict.fromkeys(("argvals", "xind"), "points are the labels of columns, or fit(grids={name: points})"),
    **dict.fromkeys(("splinepars", "bs"), "k= and m= choose the basis"),
    "integration": "rule= chooses how curves are integrated",
}
"""What is here instead of options of refund and mgcv."""


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


def parse(formula: str, kinds: Mapping[str, str], source: str = "data") -> ParsedFormula:
    """Read a formula.

    Parameters
    ----------
    formula : str
        A column of numbers is a linear effect, one of labels or ``C(column)`` a factor, one of curves a concurrent
        effect; ``a:b`` and ``a * b`` are interactions of numbers, of factors, and of either with one other term:
        ``C(region):ff(X)``. Names that are no identifiers stand between backticks.
    kinds : mapping of str to {"curves", "numbers", "labels"}
        Of each column, as :func:`fdadp.regression.reading.table_columns.ColumnTable.kinds` tells them.
    source : str
        The argument that has the columns, for messages.

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
    formula = _plain(formula)
    left, right = _sides(formula)
    reader = FactorReader(formula, kinds, source)
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


def person_columns(formula: str) -> list[str]:
    """Columns of ``re(column)`` in a formula, told before there are columns.

    Raises
    ------
    InputError
        The formula cannot be parsed.

    Examples
    --------
    >>> person_columns("Y ~ ff(X) + re(`patient id`, covariance='free') + re(site)"), person_columns("Y ~ `re(id)`")
    (['patient id', 'site'], [])
    """
    found: list[str] = []
    _, right = _sides(_plain(formula))
    for tree, names in filter(None, (tree_of(text) for factors in right for text in factors)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "re" and node.args:
                column = ast.unparse(node.args[0]).strip("'")
                found.append(names.get(column, column))
    return found


def words(formula: str) -> list[str]:
    """What stands in a formula where a column could, told before there are columns.

    Examples
    --------
    >>> words("log(Y) ~ s(age, k=8) + C(`blood group`)")
    ['Y', 'age', 'blood group']
    """
    found = re.findall(r"`([^`]+)`|(?<![\w.])([^\W\d][\w.]*)(?![\w.]|\s*\(|\s*=(?!=))", _plain(formula))
    return [quoted or bare for quoted, bare in found]


def _plain(formula: str) -> str:
    """On one line, letters and accents composed."""
    return unicodedata.normalize("NFC", " ".join(formula.split()))


def _sides(formula: str) -> tuple[str | None, list[list[str]]]:
    """What is left of ``~``, and the terms right of it as their factors."""
    from formulaic import Formula

    if re.search(r"(?<![\w.`'\"])\.(?![\w.])", formula):
        raise InputError(f"formula must name its columns; '.' stands for none{pointing_at(formula, '.')}")
    if of_r := re.search(r"(?<![\w.])as\.factor\(([^()]*)\)", formula):
        raise InputError(f"formula must say C({of_r[1]}) for labels, got {of_r[0]}{pointing_at(formula, of_r[0])}")
    if "|" in re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "", formula):
        like = "re(id) for (1 | id), and re(id, slopes='week') for (week | id)"
        raise InputError(f"formula must say {like}, got '|'{pointing_at(formula, '|')}")
    try:
        parsed = Formula(formula, _ordering="none")
        left = list(parsed.lhs) if hasattr(parsed, "lhs") else []
        right = list(parsed.rhs) if hasattr(parsed, "rhs") else list(parsed)
        if not all(hasattr(term, "factors") for term in (*left, *right)):
            raise InputError("several right sides")
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


# Factors of a formula, what stands between its operators: columns, terms, and functions of columns.


# Where in a formula an error is.


_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def pointing_at(formula: str, part: str) -> str:
    """Two lines to end an error's text: the formula, and marks below the part; nothing where it is not found.

    Blanks in `part` need not be those of the formula, which parsers set anew.
    """
    pattern = r"\s*".join(re.escape(c) for c in re.sub(r"[\s`]", "", part).replace('"', "'"))
    edge = r"(?<!\w)" if part[:1].isidentifier() else ""
    found = re.search(edge + pattern, formula.replace("`", " ").replace('"', "'")) if pattern else None
    return _marked(formula, found.start(), found.end()) if found else f"\n  {formula}"


_PLAINLY = (
    (r"^Operator `(.+)` .*", r"'\1' without what it joins"),
    (r"^Formula ended before .*Expected: (.*)", r"no '\1' at its end"),
    (r"^Could not find matching .*", "a bracket that nothing opens"),
)
"""Sentences of formulaic, and the same for those who know nothing of its parser."""


def position_shown(formula: str, error: Exception) -> str:
    """An error of formulaic: its first sentence, and the place that it marks in the formula; or of Python's parser."""
    if isinstance(error, SyntaxError) and error.text:
        return f"{error.msg} in {error.text.strip()}{pointing_at(formula, error.text.strip())}"
    text = _COLOURS.sub("", str(error))
    what, _, place = text.partition("\n")
    for theirs, ours in _PLAINLY:
        what = re.sub(theirs, ours, what)
    if "⧛" not in place:
        return f"{what or type(error).__name__}\n  {formula}"
    shown = place.strip()
    start, end = shown.index("⧛"), shown.index("⧚") - 1
    if shown.replace("⧛", "").replace("⧚", "") != formula:
        return f"{what}\n  {formula}"
    return what + _marked(formula, start, end)


def _marked(formula: str, start: int, end: int) -> str:
    return f"\n  {formula}\n  {' ' * start}{'^' * max(1, end - start)}"


SMOOTHS = ("bs", "cr", "cc", "ns", "poly", "spline", "rcs")
"""What other programs call functions whose shape is to be found, here s()."""

WITHIN = {"by", "c"}
"""Kinds of terms around others: the one is written ``a:b``, the other read here."""

OF_COLUMNS = ("by", "slopes")
"""Options of terms that name columns."""

Names = dict[str, str]


@dataclass(frozen=True)
class FormulaFactor:
    """One factor of a product.

    Attributes
    ----------
    text : str
        As in the formula.
    spec : TermSpec
        The term that it is by itself.
    column : str
        What it multiplies others by, where it is a number or a factor.
    is_number, is_factor : bool
    """

    text: str
    spec: TermSpec
    column: str = ""
    is_number: bool = False
    is_factor: bool = False

    def coded(self, coding: str) -> TermSpec:
        """A factor with a coding, but where the formula says it itself."""
        return replace(self.spec, coding=coding) if getattr(self.spec, "coding", "") == "treatment" else self.spec  # type: ignore[type-var]


@dataclass(frozen=True)
class FactorReader:
    """Reads the factors of one formula.

    Attributes
    ----------
    formula : str
        For messages.
    kinds : mapping of str to {"curves", "numbers", "labels"}
        Of each column.
    source : str
        The argument that has the columns, for messages.
    """

    formula: str
    kinds: Mapping[str, str]
    source: str = "data"

    def response(self, text: str) -> str:
        """What is left of ``~``: the name of a column, or a function of one."""
        node, names = self._tree(text)
        if isinstance(node, ast.Name):
            return names.get(node.id, node.id)
        self._function(text, text)
        return text

    def read(self, text: str) -> FormulaFactor:
        """A factor.

        Raises
        ------
        InputError
            Something that is neither a column nor a term nor a function, with its place in the formula.
        """
        text = _without_numpy(text)
        node, names = self._tree(text)
        if isinstance(node, ast.Name) or self._is_function(node):
            return self._column_alone(text, self._column(node, names, text))
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self._error(f"formula must consist of columns, terms such as ff(X) and functions, got {text}", text)
        kind = node.func.id
        if kind == "c" and len(node.args) == 1 and not node.keywords:
            inner = self.read(_written(node.args[0], names))
            try:
                return replace(inner, text=text, spec=terms.c(inner.spec))
            except InputError as exc:
                raise self._error(str(exc), text) from None
        if kind == "offset":
            raise self._error(
                f"offset() must stand by itself, not in an interaction or in another term, got {text}", text
            )
        if kind == "C":
            kind = "factor"
        if kind not in terms.KINDS or kind in WITHIN:
            raise self._unknown_call(node.func.id, text)
        spec = self._term(kind, node, names, text)
        plain = kind == "factor" and getattr(spec, "coding", "") == "treatment"
        return FormulaFactor(text, spec, spec.columns[0], is_number=kind == "linear", is_factor=plain)

    def offset(self, text: str, response: str | None) -> str:
        """What ``offset(...)`` adds: a column or an expression of columns of numbers or curves, not the response."""
        node, names = self._tree(_without_numpy(text))
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            raise self._error(f"offset() must have one column, or an expression of columns, got {text}", text)
        written = _written(node.args[0], names)
        sources = self._function(f"I({written})", text).sources
        known = [self._known(source) for source in sources]
        labels = next((name for name in known if self.kinds[name] == "labels"), None)
        if labels is not None or not known or response in known:
            wanted = "numbers or curves other than the response"
            raise self._error(f"offset() must be of columns of {wanted}, got {labels or text}", text)
        return written

    def _tree(self, text: str) -> tuple[ast.expr, Names]:
        parsed = tree_of(text)
        if parsed is None:
            raise self._error(f"terms must be written as in ff(X, k=(5, 5)), got {text}", text)
        return parsed

    def _is_function(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) else None
        return isinstance(called, ast.Name) and called.id in {"I", *OF_NUMBERS, *OF_CURVES}

    def _column_alone(self, text: str, column: str) -> FormulaFactor:
        kind = self._kind(column)
        if kind == "curves":
            return FormulaFactor(text, terms.concurrent(column), column)
        if kind == "numbers":
            return FormulaFactor(text, terms.linear(column), column, is_number=True)
        return FormulaFactor(text, terms.factor(column), column, is_factor=True)

    def _kind(self, column: str) -> str:
        if column in self.kinds:
            return self.kinds[column]
        function = row_function(column)
        assert function is not None
        return "curves" if function.is_curves(self.kinds) else "numbers"

    def _column(self, node: ast.expr, names: Names, text: str) -> str:
        """A column that is named, quoted, or computed; all that it is made of must be there."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._known(node.value)
        if isinstance(node, ast.Constant):
            raise self._error(f"settings of terms must be given by name, as in s(x, k=5), got {node.value!r}", text)
        if isinstance(node, ast.Name):
            return self._known(names.get(node.id, node.id))
        written = _written(node, names)
        function = self._function(written, text)
        for source in function.sources:
            self._known(source)
        return written

    def _function(self, written: str, text: str) -> RowFunction:
        try:
            function = row_function(written)
        except InputError as exc:
            raise self._error(str(exc), text) from None
        if function is None:
            called = tree_of(written)
            if called and isinstance(called[0], ast.Call) and isinstance(called[0].func, ast.Name):
                raise self._unknown_call(called[0].func.id, text)
            raise self._error(f"here must be a column, or a function of some such as log(x), got {written}", text)
        return function

    def _known(self, name: str) -> str:
        own = column_named(name, self.kinds)
        if own is None:
            error = unknown_column(name, list(self.kinds), self.source)
            raise InputError(f"{error}{pointing_at(self.formula, name)}")
        return str(own)

    def _term(self, kind: str, node: ast.Call, names: Names, text: str) -> TermSpec:
        make, made = _maker(kind)
        first, *options = fields(made)
        several = str(first.type).startswith("tuple")
        columns = [self._column(argument, names, text) for argument in node.args]
        if not columns or (len(columns) > 1 and not several):
            wanted = "columns" if several else "one column"
            raise self._error(f"{kind}() must have {wanted} first, then options by name, got {text}", text)
        known = [option.name for option in options]
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg not in known:
                close = difflib.get_close_matches(str(keyword.arg), known, n=1)
                instead = OF_REFUND.get(str(keyword.arg)) or (f"did you mean {close[0]}?" if close else "")
                raise self._error(
                    f"options of {kind}() must be among {', '.join(known)}, got {keyword.arg}"
                    + (f"; {instead}" if instead else ""),
                    text,
                )
            given[keyword.arg] = self._option(keyword, names, text)
        try:
            return make(tuple(columns), **given) if several and make is made else make(*columns, **given)
        except (InputError, TypeError) as exc:
            raise self._error(str(exc), text) from None

    def _option(self, keyword: ast.keyword, names: Names, text: str) -> Any:
        entries = keyword.value.elts if isinstance(keyword.value, ast.Tuple) else [keyword.value]
        if keyword.arg in OF_COLUMNS and any(isinstance(entry, ast.Name) for entry in entries):
            columns = tuple(self._column(entry, names, text) for entry in entries)
            return columns if isinstance(keyword.value, ast.Tuple) else columns[0]
        try:
            value = _tuples(ast.literal_eval(keyword.value))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise self._error(
                f"{keyword.arg} must be a number, a text between quotes or a tuple of them, "
                f"got {ast.unparse(keyword.value)}",
                text,
            ) from None
        return self._known(value) if keyword.arg in OF_COLUMNS and isinstance(value, str) else value

    def _unknown_call(self, name: str, text: str) -> InputError:
        kinds = sorted({*terms.KINDS, "C"} - {"by"})
        functions = sorted({*OF_NUMBERS, *OF_CURVES, "I"})
        close = ["s"] if name in SMOOTHS else difflib.get_close_matches(name, [*kinds, *functions], n=1)
        return self._error(
            f"formula must consist of the terms {', '.join(kinds)} and the functions {', '.join(functions)}, "
            f"got {name}()" + (f"; did you mean {close[0]}()?" if close else ""),
            text,
        )

    def _error(self, message: str, text: str) -> InputError:
        return InputError(f"{message}{pointing_at(self.formula, text)}")


def _without_numpy(text: str) -> str:
    return re.sub(r"\b(np|numpy)\.(?=\w+\()", "", text)


def is_offset(text: str) -> bool:
    """Whether a factor is ``offset(...)``."""
    parsed = tree_of(text)
    called = parsed[0].func if parsed and isinstance(parsed[0], ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "offset"


def _written(node: ast.expr, names: Names) -> str:
    """An expression as text, with what was quoted between backticks again."""
    return re.sub(r"\w+", lambda word: f"`{names[word[0]]}`" if word[0] in names else word[0], ast.unparse(node))


def _maker(kind: str) -> tuple[Callable[..., TermSpec], type]:
    """What makes a term of a kind, and its class."""
    make = getattr(terms, kind)
    if isinstance(make, type):
        return make, make
    module = importlib.import_module(make.__module__)
    return make, typing.get_type_hints(make, vars(module))["return"]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
