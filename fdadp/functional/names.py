"""Names by which curves are known in public: the argument's, and those that they carry themselves."""

from __future__ import annotations

from typing import Any

__all__ = ["names_of"]


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
