"""Rows of a table as data frames of numbers and levels hold them, such as those of the package marginaleffects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_sample import Curves
from fdadp.inference.estimates import levels_of
from fdadp.regression.fitted.fitted_model import Fitted
from fdadp.regression.reading.computed_columns import row_function
from fdadp.regression.reading.table_columns import ColumnTable
from fdadp.terms.records import Records


@dataclass(frozen=True)
class NumberedRows:
    """Rows of a table as numbers and levels, where curves are told by the numbers of their rows.

    Attributes
    ----------
    fitted : Fitted
    numbers : mapping of str to ndarray of shape (n,)
    labels : mapping of str to list
        Of columns of labels, the entries as text; None where one is missing.
    levels : mapping of str to mapping
        Of the same columns, from the text to the level.
    curves : mapping of str to Curves
    """

    fitted: Fitted
    numbers: Mapping[str, FloatArray]
    labels: Mapping[str, list[str | None]]
    levels: Mapping[str, Mapping[str, Any]]
    curves: Mapping[str, Curves]

    @classmethod
    def of(
        cls, fitted: Fitted, data: Any, grids: Mapping[str, ArrayLike] | None, beside: Sequence[str] = ()
    ) -> NumberedRows:
        """Read the columns of the model, the response where it is there, and others.

        Raises
        ------
        InputError
            A model of curves, a column that is not there, curves that no term reads.
        """
        if fitted.response.curves is not None:
            raise InputError("model must be a ScalarRegression; for curves fdadp.inference has slopes and bands")
        table, known = ColumnTable(data, grids, defaults=fitted.covariates.grids), levels_of(fitted)
        numbers, labels, levels, curves = {}, {}, {}, {}
        response = [fitted.response.name] if table.has(fitted.response.name) else []
        for name in dict.fromkeys([*sources(fitted), *response, *beside]):
            column = table.read(name)
            if isinstance(column.values, Curves):
                curves[name] = column.values
            elif name not in known and column.kind == "numbers":
                numbers[name] = column.values
            else:
                own = Records(column.n, {name: column.values}).labels(name)
                found = known.get(name) or column.order or sorted({v for v in own if v is not None}, key=str)
                levels[name] = {str(level): level for level in found}
                labels[name] = [None if value is None else str(value) for value in own]
        odd = next((name for name in beside if name in curves), None)
        if odd is not None:
            raise InputError(f"beside must name columns of numbers or labels, got {odd}, which holds curves")
        return cls(fitted, numbers, labels, levels, curves)

    def design(self, new: Mapping[str, Sequence[Any] | FloatArray]) -> FloatArray:
        """Rows of the design for new rows of this kind, shape (n, p); with a last column for an offset if there is one.

        Raises
        ------
        InputError
            The number of a row that is not there.
        """
        fitted, columns = self.fitted, dict[str, Any]()
        for name in sources(fitted):
            if name in self.curves:
                columns[name] = self._curves_of_rows(name, new[name])
            elif name in self.levels:
                columns[name] = np.array([self.levels[name].get(v) for v in new[name]], dtype=object)
            else:
                columns[name] = np.asarray(new[name], dtype=np.float64)
        records = fitted.records(columns, {name: own.grid for name, own in self.curves.items() if name in columns})
        rows = fitted.fit.form.rows(records, fitted.fit.form.t)[:, 0]
        return rows if fitted.offset is None else np.column_stack([rows, records.numbers(fitted.offset)])

    def _curves_of_rows(self, name: str, rows: Sequence[Any] | FloatArray) -> FloatArray:
        """Curves of rows of the data; their mean curve where there is no number."""
        own = self.curves[name].values
        places = {str(row): row for row in range(len(own))}
        odd = next((row for row in rows if row is not None and str(row) not in places), None)
        if odd is not None:
            raise InputError(
                f"{name} must hold the numbers, 0 to {len(own) - 1}, of rows of data whose curves are meant, got {odd}"
            )
        mean = np.nanmean(own, axis=0)
        return np.stack([mean if row is None else own[places[str(row)]] for row in rows])


def sources(fitted: Fitted) -> list[str]:
    """Columns that a model reads from a table: those of which others are computed in place of these."""
    made = fitted.covariates.completion.indicators.values()
    found: dict[str, None] = {}
    for text in (*fitted.columns, *(() if fitted.offset is None else (fitted.offset,))):
        how = row_function(text)
        if text not in made:
            found |= dict.fromkeys((text,) if how is None else how.sources)
    return list(found)
