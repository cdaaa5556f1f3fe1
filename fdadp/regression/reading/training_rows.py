"""What a regression on terms is trained on: rows of a table, their responses, weights and offsets."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.calling_language import warn
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError, PersonRowsWarning
from fdadp.functional.containers.opened_tables import OpenedTable
from fdadp.functional.tables.curve_inputs import Labels, TableColumn, as_curves
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy.rows._person_row_caps import LAWS, Law, law_of
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.computed_columns import columns_read, expression, tree_of
from fdadp.regression.reading.label_joins import aligned
from fdadp.regression.reading.missing_entries import Completion, treatments
from fdadp.regression.reading.table_columns import (
    ColumnTable,
    Covariates,
    Grids,
    Response,
    labels_named,
    names_like,
    read_long_response,
    read_records,
    read_together,
    rows_beside,
    units_of,
)
from fdadp.responses import PointwiseResponse
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.ordered_categories import Ordered, check_categories
from fdadp.solve.form.response_families import Family
from fdadp.terms.records import Records, in_order

LARGEST = 1e100
"""Size of numbers whose sums of squares, and products of these, are finite."""

LARGEST_LOG = 500.0
"""Of exposures, whose exponential is a finite number and its square roots and squares are."""


@dataclass(frozen=True)
class TrainingSpec:
    """What `fit` was asked to train on.

    Attributes
    ----------
    data, y, grids, weights, offset, long, groups : object
        As `fit` takes them; `long` is a response as a long table.
    response : str
        Name of the response.
    columns : sequence of str
        Columns of the terms.
    missing : str or mapping of str to str
        What to do about entries that columns lack, see :func:`fdadp.regression.reading.missing_entries.treatments`.
    defaults : mapping of ndarray, optional
        Points of curves that come without any, where a fitted model knows them.
    table : ColumnTable or None
        The same data, where some of their columns were read already.
    """

    data: Any
    y: Any
    response: str
    columns: Sequence[str]
    grids: Grids | None = None
    weights: Any = None
    offset: Any = None
    long: Any = None
    missing: str | Mapping[str, str] = "raise"
    groups: Any = None
    defaults: Mapping[str, FloatArray] | None = None
    table: ColumnTable | None = None

    def opened(self) -> ColumnTable:
        """The columns of the data."""
        if self.table is not None:
            return self.table.again()
        data = read_together(self.data, [self.response, *self.columns])
        return ColumnTable(data, self.grids, defaults=self.defaults)

    def joined(self, by: str | None) -> tuple[TrainingSpec, str | None]:
        """The same with rows of several inputs joined by their labels, and what was joined, in words.

        Raises
        ------
        InputError
            As :func:`fdadp.regression.reading.label_joins.aligned`.
        """
        data, response = self.data, [] if self.y is not None else [self.response]
        beside = {"weights": self.weights, "offset": self.offset, "groups": self.groups, self.response: self.y}
        inputs = {name: given for name, given in beside.items() if given is not None and not isinstance(given, str)}
        if isinstance(data, OpenedTable) and inputs:
            data = {name: data[name] for name in data.names}
        own: dict[Any, Any] = {"data": data}
        if isinstance(data, Mapping):
            named = [given for given in beside.values() if isinstance(given, str)]
            own = {name: data[name] for name in columns_read(response + named + list(self.columns), list(data))}
        if self.long is not None or not own or not isinstance(data, Mapping | pd.DataFrame):
            return self, None
        every = {**own, **inputs}
        plain = (
            isinstance(given, np.ndarray | Curves) and getattr(given, "index", None) is None for given in every.values()
        )
        if by is None and all(plain):  # nothing has labels
            return self, None
        found, said = aligned(by, every, self.response if self.y is not None else next(iter(own)))
        if said is None and by != "position":
            return self, None
        table = {**data, **{name: found[name] for name in own}} if isinstance(data, Mapping) else found["data"]
        beside = {name: found.get(name, given) for name, given in beside.items()}
        return replace(self, data=table, table=None, y=beside.pop(self.response), **beside), said


@dataclass(frozen=True)
class Training:
    """Training rows as they were read.

    Attributes
    ----------
    observed : Observations
    grid : ndarray of shape (T,) or None
        Of responses that are curves; where each has points of its own, points for predictions.
    points : ndarray or None
        All points at which responses were observed.
    curves : Curves or None
        The response as the user gave it, without its values.
    classes : ndarray of shape (K,) or None
        Of binomial responses and of ordered categories, where these are labels.
    index : Index or None
        Labels of the rows.
    covariates : Covariates
        How covariates were read.
    loose : Records or None
        Covariates as they came, where something was filled in.
    """

    observed: Observations
    grid: FloatArray | None
    points: FloatArray | None
    curves: Curves | None
    classes: Labels | None
    index: pd.Index[Any] | None
    covariates: Covariates
    loose: Records | None = None


def read_rows(
    asked: TrainingSpec, settings: ModelSettings, *, by_person: bool = False
) -> tuple[Training, IntArray | None]:
    """Training rows with their responses, and the number of the group of each row.

    Rows of a person weigh as the settings say, or all alike where the model knows persons itself (`by_person`).
    """
    training = read_training(asked, settings.family, curves=settings.of_curves)
    groups = None
    if asked.groups is not None:
        groups = clusters_of(asked.groups, asked.data, training.observed.records.n)
    weights = None if by_person else _by_person(settings, groups)
    if weights is None:
        return training, groups
    observed = training.observed
    own = weights[:, None] if observed.points is None else weights[observed.points.record]
    given = np.ones_like(observed.y) if observed.weights is None else observed.weights
    return replace(training, observed=replace(observed, weights=own * given)), groups


def _by_person(settings: ModelSettings, groups: IntArray | None) -> FloatArray | None:
    """Weights of rows that let each person count once, (n,); None where each row is to, or all would be 1."""
    check_person_rows(settings.person_rows, grouped=groups is not None)
    check_max_rows(settings.person_rows, settings.max_rows, 1 if groups is None else int(np.bincount(groups).max()))
    by_person = person_weights(groups)
    if by_person is None:
        return None
    warn_of_rows(settings.person_rows, settings.family.name)
    if settings.person_rows == "sum":
        return None
    if settings.on_eigenfunctions:
        raise InputError(
            "person_rows must be 'sum' with response_basis='eigen', which takes no weights, where persons have "
            f"different numbers of rows, got {settings.person_rows!r}"
        )
    return by_person


def read_training(asked: TrainingSpec, family: Family, *, curves: bool) -> Training:
    """Read training rows; `curves` says whether the response must be curves, or else numbers.

    Raises
    ------
    InputError
        Columns that are not there, do not agree, or hold what the family cannot have.
    """
    table = asked.opened()
    records, covariates, loose = _covariates(asked, table)
    index = table.index
    name, n = asked.response, records.n
    for column, values in records.columns.items():
        _refuse_sizes(column, values.values if isinstance(values, Curves) else values)
    if isinstance(asked.offset, str) and asked.offset in records.columns and asked.offset in asked.columns:
        asked = replace(asked, offset=_of_rows(records.columns[asked.offset]))
    response: Response
    told: TableColumn | None = None
    if asked.long is not None:
        response = read_long_response(asked.long, n, index, name)
    else:
        if asked.y is None:
            own = table.again(gaps=True)
        else:
            own = ColumnTable({name: asked.y}, asked.grids, defaults=asked.defaults, gaps=True)
        response = own.response(name, n=n, index=index)
        told = own.read(name) if own.has(name) and not isinstance(response, PointwiseResponse) else None
    if curves:
        made = _with_curves(asked, family, records, response, index, covariates)
    else:
        made = _with_numbers(asked, family, records, response, index, covariates, told)
    return replace(made, loose=loose)


def _refuse_sizes(name: str, values: Any) -> None:
    """Refuse numbers whose sums of squares are none."""
    largest = float(np.nanmax(np.abs(values), initial=0.0)) if values.dtype.kind == "f" else 0.0
    if largest > LARGEST:
        raise InputError(f"{name} must be below {LARGEST:g} in size, got {largest:g}; choose other units")


def _covariates(asked: TrainingSpec, table: ColumnTable) -> tuple[Records, Covariates, Records | None]:
    """Training rows whose columns lack nothing; and as they came, where they lacked something."""
    how: Mapping[str, str] = {}
    new = asked.defaults is not None
    if asked.missing != "raise":
        loose = table.records(asked.columns, asked.columns, new=new)
        how = treatments(asked.missing, {name: loose.kind(name) for name in asked.columns})
    records = table.records(asked.columns, how, new=new)
    curves = {name: c for name, c in records.columns.items() if isinstance(c, Curves)}
    completion = Completion.learned(records, how) if how else Completion.none()
    covariates = Covariates({name: c.grid for name, c in curves.items()}, completion, units_of(curves))
    return (completion(records), covariates, records) if how else (records, covariates, None)


def _with_curves(
    asked: TrainingSpec, family: Family, records: Any, response: Response, index: Any, read: Covariates
) -> Training:
    name = asked.response
    if isinstance(response, PointwiseResponse):
        each: Any = response.record
        y, t = response.y, response.t
        grid = response.grid()
        template = Curves(np.empty((0, grid.size)), grid)
    elif isinstance(response, Curves):
        each, y, t, grid = None, response.values, response.grid, response.grid
        template = replace(response, values=np.empty((0, grid.size)))
    else:
        raise InputError(f"{name} must hold curves (an FDataGrid, or an array of shape (n, T)); use ScalarRegression")
    _refuse_sizes(name, y)
    if t.min() == t.max():
        raise InputError(f"{name} must be observed at two points or more, got {t.min():g} alone; use ScalarRegression")
    weights, offset = _beside(asked, family, y, (records.n, *y.shape[1:]), each)
    points = response if isinstance(response, PointwiseResponse) else None
    observed = Observations(records, y, weights, offset, points)
    return Training(observed, grid, t, template, None, index, read)


def _with_numbers(
    asked: TrainingSpec,
    family: Family,
    records: Any,
    response: Response,
    index: Any,
    read: Covariates,
    told: TableColumn | None,
) -> Training:
    name = asked.response
    if isinstance(response, Curves | PointwiseResponse):
        raise InputError(f"{name} must hold one number a row, got curves; use FunctionalRegression")
    classes: Labels | None = None
    if family.first_class is not None and response.dtype.kind != "f":
        classes = np.array(_levels(family, response, told, name), dtype=object)
        response = numbers_of_classes(response, classes, family, name)
    elif response.dtype.kind != "f":
        raise InputError(f"{name} must hold numbers for family={family.name!r}, got labels such as {response[0]!r}")
    y = np.asarray(response, dtype=np.float64)[:, None]
    _refuse_sizes(name, y)
    weights, offset = _beside(asked, family, y, y.shape)
    return Training(Observations(records, y, weights, offset), None, None, None, classes, index, read)


def _levels(family: Family, labels: Labels, told: TableColumn | None, name: str) -> Sequence[Any]:
    """Labels of the classes: those of a categorical, or else two that are sorted."""
    order = None if told is None else told.order
    if isinstance(family, Ordered):
        return _ordered_levels(family, labels, order if told is not None and told.ordered else None, name)
    found = set(labels.tolist())
    levels = [level for level in order or in_order(found) if level in found]
    if len(levels) != 2:
        got = ", ".join(map(repr, levels[:5]))
        raise InputError(f"{name} must have two classes for family='binomial', got {len(levels)}: {got}")
    return levels


def _ordered_levels(family: Ordered, labels: Labels, order: Sequence[Any] | None, name: str) -> Sequence[Any]:
    """The same levels, if they suit cut points that were given, or have rows each."""
    if order is None:
        raise InputError(
            f"{name} must hold numbers of categories, 1, 2 and so on, or be an ordered categorical, as "
            f"pandas.Categorical(values, categories=[...], ordered=True), for family='ordered', got labels such as "
            f"{labels[0]!r} without an order"
        )
    if family.cuts is not None and len(order) != len(family.cuts) + 1:
        raise InputError(f"{name} must have {len(family.cuts) + 1} categories for {family.shown}, got {len(order)}")
    unseen = [level for level in order if level not in set(labels.tolist())]
    if unseen and family.unknown:
        raise InputError(
            f"{name} must have rows in every category for family='ordered', got none in {unseen[0]!r}; "
            "cat.remove_unused_categories() leaves it out"
        )
    return order


def numbers_of_classes(labels: Labels, classes: Labels, family: Family, name: str = "y") -> FloatArray:
    """Numbers of classes, from that of the first one.

    Raises
    ------
    InputError
        A label that is none of them.
    """
    known = {label: float(i) for i, label in enumerate(classes.tolist(), family.first_class or 0)}
    unknown = next((i for i, label in enumerate(labels.tolist()) if label not in known), None)
    if unknown is not None:
        raise InputError(f"{name} must be one of {list(known)}, got {labels[unknown]!r} in row {unknown}")
    return np.array([known[label] for label in labels.tolist()])


def _beside(
    asked: TrainingSpec, family: Family, y: FloatArray, shape: tuple[int, ...], record: Any = None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Weights and offsets of responses that suit the family with them."""
    weights = weights_beside(asked.weights, asked.data, shape, record)
    if weights is not None and not weights.any():
        raise InputError("weights must not all be 0")
    offset = beside(asked.offset, "offset", asked.data, shape, record)
    check_responses(family, y, weights, offset, asked.response)
    seen = ~np.isnan(y) if weights is None else ~np.isnan(y) & (weights > 0)
    if isinstance(family, Ordered) and family.unknown:
        check_categories(np.bincount(y[seen].astype(np.int64), minlength=int(np.nanmax(y)) + 1)[1:], asked.response)
    family.check_mean(float(np.average(y[seen], weights=None if weights is None else weights[seen])), asked.response)
    return weights, offset


def is_expression(text: str, data: Any) -> bool:
    """Whether an offset is computed from columns, not one of them."""
    tree = tree_of(text)
    if ColumnTable(data).has(text) or tree is None or isinstance(tree[0], ast.Name):
        return False
    return bool(expression(text).sources)


def along(column: Curves | FloatArray | Labels, t: FloatArray) -> FloatArray:
    """An offset of rows at points, shape (n, 1) or (n, T')."""
    if not isinstance(column, Curves):
        return np.asarray(column, dtype=np.float64)[:, None]
    if np.array_equal(column.grid, t):
        return column.values
    return np.stack([np.interp(t, column.grid, row) for row in column.values])


def _of_rows(column: Curves | FloatArray | Labels) -> FloatArray:
    return column.values if isinstance(column, Curves) else np.asarray(column, dtype=np.float64)


def check_responses(
    family: Family, y: FloatArray, weights: FloatArray | None, offset: FloatArray | None, name: str, first: int = 0
) -> None:
    """Refuse responses, and offsets, that the family cannot have.

    Parameters
    ----------
    family : Family
    y : ndarray
    weights, offset : ndarray of the same shape, or None
    name : str
        Of the response.
    first : int
        Number of the first row.

    Raises
    ------
    InputError
        Naming the row.
    """
    family.check(y, weights, name, first)
    if offset is not None and family.link == "log" and np.abs(offset).max() > LARGEST_LOG:
        row = int(np.argmax(np.abs(offset).reshape(len(offset), -1).max(axis=1)))
        raise InputError(
            f"offset must be the logarithm of an exposure, within {LARGEST_LOG:g} of 0, for family={family.name!r}, "
            f"got {offset[row].max():g} in row {first + row}"
        )


def weights_beside(
    given: ArrayLike | str | None, data: Any, shape: tuple[int, ...], record: Any = None, first: int = 0
) -> FloatArray | None:
    """Weights in the shape of the response, as :func:`beside`; `first` is the number of the first row.

    Raises
    ------
    InputError
        As :func:`beside`, or negative ones.
    """
    weights = beside(given, "weights", data, shape, record, first)
    if weights is not None and (weights < 0).any():
        bad = np.argwhere(weights < 0)
        raise InputError(f"weights must not be negative, got {weights[tuple(bad[0])]:g} in row {first + bad[0][0]}")
    return weights


def beside(
    given: ArrayLike | str | None,
    name: str,
    data: Any,
    shape: tuple[int, ...],
    record: Any = None,
    first: int = 0,
) -> FloatArray | None:
    """Weights or offsets in the shape of the response.

    Parameters
    ----------
    given : array_like of shape (n,) or (n, T), str or None
        Numbers, the name of a column of `data`, or nothing.
    name : str
        For messages.
    data : object
        Table of the records.
    shape : tuple
        (n, T), or (n,) where observations have points of their own.
    record : ndarray of shape (N,), optional
        The record of each observation.
    first : int
        Number of the first row.

    Raises
    ------
    InputError
        Another shape, other row labels than the table has, or numbers that are not finite.
    """
    if given is None:
        return None
    rows_beside(data, name, given)
    if isinstance(given, str):
        column = read_records(data, [given])[0].columns[given]
        given = column.values if isinstance(column, Curves) else column
    elif hasattr(given, "data_matrix") or isinstance(given, pd.DataFrame):
        given = as_curves(given, name=name).values
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(f"{name} must be numbers or the name of a column of numbers, got labels") from exc
    wide = values[:, None] if values.ndim == 1 and len(shape) == 2 else values
    if wide.ndim != len(shape) or wide.shape[0] != shape[0] or (wide.shape != shape and wide.shape[1:] != (1,)):
        wanted = " or ".join(dict.fromkeys(str(s) for s in (shape[:1], shape)))
        raise InputError(f"{name} must be of shape {wanted}, got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if bad.size:
        raise InputError(f"{name} must be finite, got another number in row {first + bad[0]}")
    return np.array(np.broadcast_to(wide, shape)) if record is None else np.asarray(wide)[record]


# What a fit with several rows a person is about: a typical row of each person, or all rows.


def check_person_rows(person_rows: Any, *, grouped: bool) -> None:
    """Refuse what is no law, and a law where nobody has several rows; raises InputError."""
    if isinstance(person_rows, str) and person_rows == "exchangeable":
        raise InputError(
            "person_rows='exchangeable' is there for re(id, covariance='free') in a private fit alone: rows that end "
            "with an event, for one, are not exchangeable"
        )
    if person_rows is not None and not (isinstance(person_rows, str) and person_rows in LAWS):
        raise InputError(f"person_rows must be 'mean', 'sum' or None, got {person_rows!r}")
    if person_rows is not None and not grouped:
        raise InputError(
            f"groups must be the person id of every row where person_rows is given, got person_rows={person_rows!r}"
        )


def check_max_rows(person_rows: Any, max_rows: Any, most: int) -> None:
    """Refuse an ordinary fit that would count rows which `max_rows` leaves out; `most`: rows of a person, at most.

    Raises
    ------
    InputError
    """
    if max_rows is None:
        return
    if (person_rows or "mean") == "mean":
        raise InputError(f"max_rows must be left out with person_rows='mean', got {max_rows!r}")
    if whole(max_rows, "max_rows", least=1) < most:
        raise InputError(
            f"max_rows must be at least {most}, the rows of a person, in an ordinary fit, which counts all rows, got "
            f"{max_rows}"
        )


def private_law(person_rows: Any, max_rows: Any) -> Law:
    """The law of a private fit, by default "mean".

    Raises
    ------
    InputError, PrivacyError
        Settings that do not go together. Nothing was read.
    """
    check_person_rows(person_rows, grouped=True)  # the kernel asks whether there are persons
    return law_of(person_rows or "mean", max_rows)


def person_weights(codes: IntArray | None) -> FloatArray | None:
    """Weights of rows, 1 over the rows of their person and 1 on average; None where all would be 1."""
    if codes is None:
        return None
    counts = np.bincount(codes)[codes]
    if (counts == counts[0]).all():
        return None
    weights = 1 / counts
    return np.asarray(weights / weights.mean())


@dataclass(frozen=True)
class ByPerson:
    """Weights of rows that come in chunks, so that each person counts once.

    Attributes
    ----------
    groups : str
        Column of the persons.
    counts : mapping
        Rows of each.
    """

    groups: str
    counts: Mapping[Any, int]

    def weights(self, labels: list[Any]) -> FloatArray:
        """As :func:`person_weights`, of some rows by their labels, shape (n, 1)."""
        usual = sum(self.counts.values()) / len(self.counts)
        return np.array([[usual / self.counts[label]] for label in labels])


def said_of_rows(person_rows: str | None, max_rows: int | None = None) -> str:
    """One sentence for summaries."""
    if (person_rows or "mean") == "mean":
        return "each person counts once, by the mean of its rows"
    return "each row counts once" + ("" if max_rows is None else f", at most {max_rows} rows a person")


def warn_of_rows(person_rows: str | None, family: str) -> None:
    """Of a fit with groups: say that two laws answer two questions, where that matters most and nobody has chosen.

    Warns
    -----
    PersonRowsWarning
    """
    if person_rows is not None or family not in ("binomial", "poisson", "negative_binomial", "ordered"):
        return
    warn(
        "groups are given and person_rows is not: each person counts once, by the mean of its rows. "
        "With person_rows='mean' the fit is about a typical row of each person. With person_rows='sum' it is "
        "about all rows, as hazards of rows until an event and rates of events are. They differ where the number of "
        "rows depends on the response. Say which",
        PersonRowsWarning,
    )


def clusters_of(groups: Any, data: Any, n: int) -> IntArray | None:
    """Numbers of groups from 0, shape (n,); None where there are none.

    Parameters
    ----------
    groups : array_like of shape (n,), str or None
        Labels, or the name of a column of `data` or of its row labels.
    data : object
        The table.
    n : int
        Number of rows.

    Raises
    ------
    InputError
        No such column, not one label a row, other row labels than the table has, missing groups, or a single one.
    """
    import pandas as pd

    if groups is None:
        return None
    rows_beside(data, "groups", groups)
    if isinstance(groups, str):
        named = data[groups] if groups in data else labels_named(data, groups)
        if named is None:
            like = names_like(groups, ColumnTable(data).names)
            raise InputError(f"groups must be labels or a column of data, got {groups!r}, which is none{like}")
        groups = named
    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n,):
        got = labels.size if labels.ndim == 1 else f"shape {labels.shape}"
        raise InputError(f"groups must have one label a row, {n} in all, got {got}")
    numbers, levels = pd.factorize(labels, use_na_sentinel=True)
    if (numbers < 0).any():
        raise InputError(
            f"groups must not be missing, got a missing one in row {int(np.argmax(numbers < 0))}: "
            "leave the row out, or give it an id of its own"
        )
    if len(levels) < 2:
        raise InputError(f"groups must be two or more, got only {levels[0]!r}")
    return np.asarray(numbers, dtype=np.int64)
