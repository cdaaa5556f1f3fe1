"""Kinds of objects that curves come as, what such an object says of them, and the names that it gives them.

To add a kind: its name in :data:`Kind`, and a function in :data:`fdadp.functional.tables.sample.MAKERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

Kind = Literal["array", "frame", "fdatagrid", "dataarray", "polars", "arrow"]

KINDS = get_args(Kind)

GRID = "grid"
"""Key of a list column's points in the metadata of an Arrow field."""


@dataclass(frozen=True)
class Given:
    """What an object said of curves besides values, grid and labels.

    Attributes
    ----------
    name : str or None
    attributes : mapping
        Plain ones of an xarray object. In a private fit there are none: they may tell of the values.
    rows : mapping of str to ndarray
        Coordinates of rows beside their labels.
    row_name : str or None
        What the axis of rows is called where they have no labels.
    """

    name: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    row_name: str | None = None

    def without_rows(self) -> Given:
        """What holds of other rows as well."""
        return replace(self, rows={})


def plain_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes that are text, truth values or finite numbers."""
    found = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in attributes.items()}
    return {
        k: v for k, v in found.items() if isinstance(v, str | int) or (isinstance(v, float) and bool(np.isfinite(v)))
    }


# Names that curves carry: those by which they are known in public, and those of their axes.


def names_of(data: Any, argument: str) -> tuple[str, ...]:
    """Name of the argument, and that of scikit-fda's curves (``coordinate_names``) or of a labelled array (``name``).

    Parameters
    ----------
    data : curves
        Of which no value is looked at.
    argument : str

    Examples
    --------
    >>> from skfda import FDataGrid
    >>> names_of(FDataGrid([[60.0, 70.0]], coordinate_names=("heart rate",)), "Y")
    ('Y', 'heart rate')
    >>> names_of([[60.0, 70.0]], "Y")
    ('Y',)
    """
    found = getattr(data, "coordinate_names", None)
    own = found if isinstance(found, tuple) else (getattr(data, "name", None),)
    return tuple(dict.fromkeys((argument, *(name for name in own if isinstance(name, str) and name))))


def axis_names(data: Any) -> tuple[str | None, str | None]:
    """Names of a curve's argument and of its values, where the object has them.

    Of scikit-fda's curves ``argument_names`` and ``coordinate_names``, of a data frame the name of its columns, of a
    labelled array its last dimension and its name.

    Examples
    --------
    >>> from skfda import FDataGrid
    >>> axis_names(FDataGrid([[60.0, 70.0]], argument_names=("hour",), coordinate_names=("heart rate",)))
    ('hour', 'heart rate')
    >>> axis_names([[60.0, 70.0]])
    (None, None)
    """
    own = names_of(data, "")[1:]
    found: Any = getattr(data, "argument_names", None) or getattr(data, "dims", None)
    argument = found[-1] if found else getattr(getattr(data, "columns", None), "name", None)
    return argument if isinstance(argument, str) else None, own[0] if own else None
