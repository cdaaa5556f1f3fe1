"""Names that curves carry: those by which they are known in public, and those of their axes."""

from __future__ import annotations

from typing import Any


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
