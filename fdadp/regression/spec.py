"""The specification of a model: its terms, the names of its columns, and the terms on their bases."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.records import Records, TrainingSummary
from fdadp.functional.tables.sample import Curves
from fdadp.regression.formula import ParsedFormula, parse
from fdadp.regression.reading.columns import ColumnTable, Grids, check_grids
from fdadp.regression.reading.training import TrainingSpec, aligned_columns, is_expression, positioned
from fdadp.regression.settings import ModelSettings
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.intercept import Intercept, MeanCurve
from fdadp.terms.numbers.labels import Factor, levels_of
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.on_functions import in_scalar_form
from fdadp.terms.spec import TermDesign, TermSpec
from fdadp.terms.times_column import multiplier_of


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Specification of a model. It is public and made before any row is read.

    Attributes
    ----------
    settings : ModelSettings
    parsed : ParsedFormula
        Terms, and whether the model has a constant and a mean curve.
    response : str
        Name of the response.
    offset : str or None
        A column, or an expression of columns, that the model adds to its predictions.
    grids : tuple of str
        Columns whose grids the user gave. New rows need such a column only if a term reads it.
    joined : str or None
        Number of rows that were joined, and the key. None if rows belong together by position.
    """

    settings: ModelSettings
    parsed: ParsedFormula
    response: str
    offset: str | None = None
    grids: tuple[str, ...] = ()
    joined: str | None = None


def read_terms(settings: ModelSettings, kinds: Callable[[], Mapping[str, str]]) -> ParsedFormula:
    """Read the terms, and whether the model has a constant and a mean curve.

    Parameters
    ----------
    settings : ModelSettings
    kinds : callable
        Returns the kind of each column, for formulas.
    """
    if isinstance(settings.formula, str):
        return parse(settings.formula, kinds())
    wanted = "a formula, or a sequence of terms such as [terms.ff('X')]"
    specs: tuple[Any, ...] = tuple(settings.formula) if isinstance(settings.formula, Sequence) else (None,)
    if not all(isinstance(spec, TermSpec) for spec in specs):
        raise InputError(f"formula must be {wanted}, got {settings.formula!r}")
    odd = next((name for name in columns_of(specs) if not isinstance(name, str)), None)
    if odd is not None:
        raise InputError(f"columns of terms must be named by text, got {odd!r}")
    return ParsedFormula(None, specs, settings.intercept, settings.intercept)


def read_spec(
    settings: ModelSettings, data: Any, y: Any, grids: Grids | None, *, by: str | None = None, **beside: Any
) -> tuple[ModelSpec, TrainingSpec]:
    """Read the specification of a model, and the rows to train on.

    Raises
    ------
    InputError
        Terms or settings that are unknown, or columns that are not there.
    """
    if by == "position":
        data = positioned(data)
    table = ColumnTable(data, grids) if isinstance(settings.formula, str) else None
    parsed = read_terms(settings, lambda: {} if table is None else table.kinds())
    if settings.as_refund:
        parsed = parsed._replace(terms=tuple(term.with_refund_sizes() for term in parsed.terms))
    if settings.response is not None and parsed.response not in (None, settings.response):
        raise InputError(f"response must be left out where a formula has one, got {settings.response!r}")
    response = parsed.response or settings.response or settings.default_response
    columns = columns_of(parsed.terms)
    now = [term for term in parsed.terms if getattr(term, "limits", None) is None]
    if y is None and not isinstance(settings.formula, str) and response in columns_of(now):  # not its past
        raise InputError(
            f"formula must not explain {response} by itself; if that is meant, copy the column under another name"
        )
    if grids is not None:
        check_grids(grids, data, response)
    given = parsed.one_offset(beside.get("offset"))
    computed = parsed.offset is not None or (isinstance(given, str) and is_expression(given, data))
    offset = f"I({given})" if computed else None
    if offset is not None:
        beside["offset"], columns = offset, (*columns, offset)
    asked, joined = aligned_columns(
        by, TrainingSpec(data, y, response, columns, grids, missing=settings.gaps, table=table, **beside)
    )
    named = tuple(grids or ())
    spec = ModelSpec(settings=settings, parsed=parsed, response=response, offset=offset, grids=named, joined=joined)
    return spec, asked


def designs(spec: ModelSpec, terms: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None) -> LongForm:
    """Terms on bases that suit the training records.

    With ``response_basis="eigen"`` they are the terms of a number. The fit finds the functions along the response.
    """
    if spec.settings.on_eigenfunctions:
        return _in_scalar_form(spec, terms, seen, t)
    parsed = spec.parsed
    mean: list[TermSpec] = [Intercept()] if parsed.intercept else []
    if t is not None and parsed.mean_curve and not any(isinstance(term, MeanCurve) for term in terms):
        mean.append(MeanCurve())
    made = _about_means(spec, [term.fixed(seen, t) for term in [*mean, *terms]], terms, seen, t)
    if not made:
        raise InputError("formula must have at least one term, or an intercept, got none")
    refuse_same_names(made)
    form = LongForm(made, np.zeros(1) if t is None else t)
    refuse_too_large(form)
    return form


def _in_scalar_form(
    spec: ModelSpec, terms: Sequence[TermSpec], seen: TrainingSummary, t: FloatArray | None
) -> LongForm:
    assert t is not None
    if not (spec.parsed.intercept and spec.parsed.mean_curve):
        raise InputError("formula must have an intercept and a mean curve with response_basis='eigen'")
    if not terms:
        raise InputError("formula must have at least one term with response_basis='eigen', got none")
    made = _about_means(spec, [in_scalar_form(term, seen, t) for term in terms], terms, seen, None)
    refuse_same_names(made)
    return LongForm(made, t)


def _about_means(
    spec: ModelSpec,
    made: Sequence[TermDesign],
    terms: Sequence[TermSpec],
    seen: TrainingSummary,
    t: FloatArray | None,
) -> tuple[TermDesign, ...]:
    """Subtract means from curves and numbers, where the model has a mean curve or a constant to absorb them.

    A product with a column is centred only if that column is a term by itself. The fit then does not depend on the
    zero of the units. A penalised mean curve could not absorb a change of it.
    """
    if spec.settings.as_refund or not spec.parsed.intercept or (t is not None and not spec.parsed.mean_curve):
        return tuple(made)
    alone = {s.column for s in terms if isinstance(s, Linear | Factor) and (t is None or not s.constant)}
    return tuple(d.about(seen) if multiplier_of(d) in (None, *alone) else d for d in made)


def refuse_same_names(made: Sequence[TermDesign]) -> None:
    """Raise an error if two terms have one name."""
    names = [design.name for design in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"terms must be different, got {twice} twice")


def columns_of(terms: Sequence[TermSpec] | Sequence[TermDesign]) -> tuple[str, ...]:
    """Columns that terms read, each once."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def check_axes(form: LongForm, records: Records, unit: str | None, response: str) -> None:
    """Refuse curves that act at the response's t, and are dated from another day or in another unit."""
    for design in form.designs:
        columns = () if design.separable else design.columns
        for name, column in ((name, records.columns[name]) for name in columns):
            if isinstance(column, Curves) and None not in (unit, column.unit) and unit != column.unit:
                raise InputError(
                    f"{name} must be on the axis of {response} in {design.name}, got {column.unit} and {unit}; label "
                    "their points with numbers on one axis"
                )


# What a fit of many terms takes of the machine's memory, said before it is taken.


SQUARES = 11
"""Matrices with a row and a column for each coefficient that a fit holds at its peak."""

FEW = 2000
"""Coefficients that fit everywhere."""


def refuse_too_large(form: LongForm) -> None:
    """Refuse a model whose matrices of coefficients are larger than the memory that is free.

    Raises
    ------
    InputError
        Naming the largest term, what the fit would take, and what to do instead.
    """
    free = None if form.size <= FEW else free_memory()
    need = SQUARES * 8 * form.size**2
    if free is None or need <= free:
        return
    design = max(form.designs, key=lambda d: d.size)
    cure = "give its bases fewer functions, k"
    if levels_of(design) is not None:
        fewer = "leave out its k, which gives each level a number, or " if design.along.size > 1 else ""
        cure = f"{fewer}leave out the term and say fit(groups={design.columns[0]!r}): standard errors then allow for it"
    raise InputError(
        f"{design.name} must have fewer coefficients, got {design.size:,} of {form.size:,}: the fit would take about "
        f"{need / 1e9:,.0f} GB of memory, of which {free / 1e9:,.1f} GB are free; {cure}"
    )


def free_memory() -> int | None:
    """Bytes that this process can take, within the limit of its container; None where the system does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        names = getattr(os, "sysconf_names", {})
        if "SC_PHYS_PAGES" in names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=None)
