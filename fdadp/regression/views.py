"""Looking at a fitted additive model, and keeping it: surface, tables, pictures, the check of its bases, files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import numbers
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import as_curves
from fdadp.regression.base import FunctionalModel
from fdadp.regression.missing import MissingValues

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from fdadp.regression.additive import AdditiveFunctionOnFunction
    from fdadp.regression.check import BasisCheck

__all__ = ["Views"]


class Views(FunctionalModel):
    """Part of the additive model: what is looked at, and kept."""

    missing: str
    s_: FloatArray

    def surface(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return F on a product grid.

        Parameters
        ----------
        x, s, t : array_like
            Values of the predictor and points of the domains of X and Y.

        Returns
        -------
        ndarray of shape (len(x), len(s), len(t))
            Centred: for each (s, t), F{X_i(s), s, t} has mean zero over the training curves.

        Raises
        ------
        InputError
            `s` or `t` outside the training domain.
        """
        check_is_fitted(self, "coef_")
        at_x, at_s, at_t = (np.atleast_1d(numbers(v, name)) for name, v in (("x", x), ("s", s), ("t", t)))
        low, high = self.s_[0], self.s_[-1]
        if ((at_s < low) | (at_s > high)).any():
            raise InputError(f"s must lie within [{low:g}, {high:g}], got {at_s.min():g} to {at_s.max():g}")
        functions, term = self.eigenbasis_.evaluate(at_t)[1], self._surface_fit.term
        values = term.effect(at_s, at_x) @ term.coefficients(self.coef_) @ functions
        return np.ascontiguousarray(values.reshape(at_s.size, at_x.size, at_t.size).transpose(1, 0, 2))

    def summary(self) -> Summary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        from fdadp.regression.summary import summarise

        check_is_fitted(self, "coef_")
        model: Any = self
        return summarise(model)

    def check(self, X: CurveData, Y: CurveData, s: ArrayLike | None = None, t: ArrayLike | None = None) -> BasisCheck:
        """Say whether the bases and the number of components are large enough, as mgcv's ``k.check`` does.

        The model is cross-validated beside ones with a larger basis over x, over s, and more components. A size is
        too small where the larger one explains held-out curves better by more than chance; enlarge it and check again.
        Some twenty fits.

        Parameters
        ----------
        X, Y, s, t
            The training curves, as :meth:`fit` takes them.

        Returns
        -------
        BasisCheck
            ``print`` shows a table; ``adequate`` is the verdict.

        Raises
        ------
        InputError
            A model with a privacy setting (the check reads the curves without privacy), or fewer than 25 curves.

        Examples
        --------
        >>> from fdadp import AdditiveFunctionOnFunction, simulate_affr
        >>> data = simulate_affr(scenario=2, n=300, seed=1)
        >>> print(AdditiveFunctionOnFunction().fit(data.X, data.Y).check(data.X, data.Y))  # doctest: +SKIP
        """
        from fdadp.regression.check import check_sizes

        check_is_fitted(self, "coef_")
        if self.privacy is not None:
            raise InputError("privacy must be None to check sizes: the check reads the curves without privacy")
        treat = MissingValues(self.missing)
        x, y = as_curves(X, s, name="X", default=self.s_), as_curves(Y, t, name="Y", default=self.t_)
        model: Any = self
        return check_sizes(model, treat.fit_x(x), treat.complete_y(y))

    def _repr_html_(self) -> str:
        if hasattr(self, "coef_"):
            return str(self.summary().as_html())
        return str(super()._repr_html_())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def plot_surface(self, t: float | None = None, **kwargs: Any) -> Any:
        """Picture of F(·, ·, t), see :func:`fdadp.plot.surface`."""
        from fdadp.plot import surface

        return surface(self, t=t, **kwargs)

    def plot_predictions(self, X: CurveData, Y: CurveData | None = None, **kwargs: Any) -> Any:
        """Picture of predicted curves with bands beside observed ones, see :func:`fdadp.plot.predictions`."""
        from fdadp.plot import predictions

        return predictions(self, X, Y, **kwargs)

    # --- keeping the fit ---

    def _check_saveable(self, columns: Any) -> None:
        from fdadp.regression.files import check_saveable

        model: Any = self
        check_saveable(model, columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        The layout is that of :mod:`fdadp.files.container`, documented in :mod:`fdadp.regression.files`.
        """
        from fdadp.regression.files import save

        check_is_fitted(self, "coef_")
        model: Any = self
        return save(model, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AdditiveFunctionOnFunction:
        """Read a model that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another version.
        """
        from fdadp.regression.files import load

        kind: Any = cls
        return load(path, kind)
