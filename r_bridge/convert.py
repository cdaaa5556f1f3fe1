"""Plain Python values that stand for R's: data frames with matrix columns, ``fd`` objects, curves with their grid.

:mod:`r_bridge._rpy2` turns these into R objects and back; nothing here knows rpy2.

===================================================== ==========================================
Python                                                R
===================================================== ==========================================
None, bool, int, float, str                           NULL, vectors of length 1
ndarray of any dimension; list of numbers or strings  vector, matrix or array
dict; any other list                                  named list; list
``pandas.Categorical``                                factor
:class:`Frame`, ``pandas.DataFrame``                  data frame, columns may be matrices
``FDataGrid``                                         list(values = matrix, argvals = vector)
===================================================== ==========================================

R's vectors come back as arrays (length 1 too), a missing value as NaN (None among strings).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves

__all__ = ["Frame", "basis_to_fd", "curves_from_r", "curves_to_r", "fd_to_basis", "plain_data"]


@dataclass(frozen=True)
class Frame:
    """A data frame whose columns may be matrices, as refund's functions take them.

    Attributes
    ----------
    columns : dict
        Name to an array of shape (n,) or (n, m), a list of strings or a ``pandas.Categorical``.

    Examples
    --------
    >>> import numpy as np
    >>> Frame({"y": np.zeros(3), "X": np.ones((3, 5))}).n_rows
    3
    """

    columns: dict[str, Any]

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns must have the same number of rows, got {lengths}")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Frame:
        """Columns of a pandas data frame; those of dtype object or string become text."""
        return cls({str(name): _column(frame[name]) for name in frame.columns})

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame; a matrix column X of m columns becomes ``X.0 ... X.(m-1)``."""
        flat: dict[str, Any] = {}
        for name, column in self.columns.items():
            if np.ndim(column) == 2:
                flat |= {f"{name}.{j}": column[:, j] for j in range(column.shape[1])}
            else:
                flat[name] = column
        return pd.DataFrame(flat)


def _column(column: pd.Series[Any]) -> Any:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Categorical(column)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy()
    return [str(v) for v in column]


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data of a model: curves (``FDataGrid``) become matrices, pandas objects arrays; the rest stays.

    Parameters
    ----------
    data : mapping or DataFrame
        Variable name to values.

    Examples
    --------
    >>> import pandas as pd
    >>> plain_data({"x": pd.Series([1.0, 2.0]), "g": pd.Series(["a", "b"])})
    {'x': array([1., 2.]), 'g': ['a', 'b']}
    """
    if isinstance(data, pd.DataFrame):
        return Frame.from_pandas(data).columns
    plain: dict[str, Any] = {}
    for name, value in data.items():
        if type(value).__module__.split(".")[0] == "skfda":
            plain[name] = as_curves(value, name=name).values
        elif isinstance(value, pd.Series):
            plain[name] = _column(value)
        elif isinstance(value, pd.DataFrame):
            plain[name] = value.to_numpy(dtype=np.float64)
        else:
            plain[name] = value
    return plain


def curves_to_r(data: CurveData, grid: ArrayLike | None = None) -> dict[str, FloatArray]:
    """Curves as ``{"values": (n, S), "argvals": (S,)}``, which R reads as a matrix and its grid.

    Examples
    --------
    >>> parts = curves_to_r([[0.0, 1.0, 2.0]], grid=[0.0, 0.5, 1.0])
    >>> parts["values"].shape, parts["argvals"]
    ((1, 3), array([0. , 0.5, 1. ]))
    """
    curves = as_curves(data, grid)
    return {"values": curves.values, "argvals": curves.grid}


def curves_from_r(parts: Mapping[str, Any]) -> Any:
    """Return the ``FDataGrid`` of a matrix and its grid.

    Examples
    --------
    >>> curves = curves_from_r({"values": [[0.0, 1.0, 2.0]], "argvals": [0.0, 0.5, 1.0]})
    >>> curves.n_samples, curves.domain_range
    (1, ((0.0, 1.0),))
    """
    from skfda import FDataGrid

    return FDataGrid(np.atleast_2d(parts["values"]), grid_points=np.ravel(parts["argvals"]))


def basis_to_fd(data: Any) -> dict[str, Any]:
    """Parts of the ``fd`` object that an ``FDataBasis`` is: coefficients (n, n_basis) and its basis.

    Raises
    ------
    InputError
        A basis other than B-spline, Fourier, monomial or constant, or not an ``FDataBasis``.

    Examples
    --------
    >>> from skfda import FDataBasis
    >>> from skfda.representation.basis import FourierBasis
    >>> parts = basis_to_fd(FDataBasis(FourierBasis((0, 1), n_basis=3), [[1.0, 0.0, 2.0]]))
    >>> parts["type"], parts["n_basis"]
    ('fourier', 3)
    """
    from skfda import FDataBasis
    from skfda.representation.basis import BSplineBasis, ConstantBasis, FourierBasis, MonomialBasis

    if not isinstance(data, FDataBasis):
        raise InputError(f"data must be an FDataBasis, got {type(data).__name__}")
    basis = data.basis
    parts: dict[str, Any] = {
        "coefficients": np.asarray(data.coefficients, dtype=np.float64),
        "domain": np.asarray(basis.domain_range[0], dtype=np.float64),
        "n_basis": int(basis.n_basis),
    }
    if isinstance(basis, BSplineBasis):
        breaks = np.unique(np.asarray(basis.knots, dtype=np.float64))
        return parts | {"type": "bspline", "order": int(basis.order), "breaks": breaks}
    if isinstance(basis, FourierBasis):
        return parts | {"type": "fourier", "period": float(basis.period)}
    for kind, name in ((MonomialBasis, "monomial"), (ConstantBasis, "constant")):
        if isinstance(basis, kind):
            return parts | {"type": name}
    raise InputError(f"basis must be B-spline, Fourier, monomial or constant, got {type(basis).__name__}")


def fd_to_basis(parts: Mapping[str, Any]) -> Any:
    """Return the ``FDataBasis`` of the parts of an ``fd`` object.

    Raises
    ------
    InputError
        A type of basis that scikit-fda does not have.

    Examples
    --------
    >>> parts = {"type": "fourier", "domain": [0, 1], "n_basis": 3, "period": 1, "coefficients": [[1.0, 0.0, 2.0]]}
    >>> fd_to_basis(parts).basis.n_basis
    3
    """
    from skfda import FDataBasis
    from skfda.representation.basis import BSplineBasis, ConstantBasis, FourierBasis, MonomialBasis

    kind = str(np.ravel(parts["type"])[0])
    low, high = (float(v) for v in np.ravel(parts["domain"]))
    n_basis = int(np.ravel(parts["n_basis"])[0])
    if kind == "bspline":
        order = int(np.ravel(parts["order"])[0])
        basis = BSplineBasis(domain_range=(low, high), order=order, knots=np.ravel(parts["breaks"]).tolist())
    elif kind == "fourier":
        basis = FourierBasis(domain_range=(low, high), n_basis=n_basis, period=float(np.ravel(parts["period"])[0]))
    elif kind == "monomial":
        basis = MonomialBasis(domain_range=(low, high), n_basis=n_basis)
    elif kind == "constant":
        basis = ConstantBasis(domain_range=(low, high))
    else:
        raise InputError(f"type must be bspline, fourier, monomial or constant, got {kind!r}")
    return FDataBasis(basis, np.atleast_2d(parts["coefficients"]))
