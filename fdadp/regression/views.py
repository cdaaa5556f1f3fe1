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
from fdadp.private.white.published import WhiteDesign
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
        at, shape = self._points(x, s, t)
        term = self._surface_fit.term
        functions = self.eigenbasis_.evaluate(at["t"])[1]
        values = term.effect(at["s"], at["x"]) @ term.coefficients(self.coef_) @ functions
        return np.ascontiguousarray(values.reshape(shape).transpose(1, 0, 2))

    def surface_se(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return standard errors of F on a product grid; of a private fit they count the noise of privacy.

        Parameters
        ----------
        x, s, t : array_like
            As for :meth:`surface`.

        Returns
        -------
        ndarray of shape (len(x), len(s), len(t))
            ``surface ± 1.96 surface_se`` holds F at some 95 % of the points where curves run (measured: 96 % with
            1,000 curves, 81 to 93 % with 100, for smoothing parameters count as known; 94 to 99 % of private fits,
            about the mean over their prior's curves).

        Raises
        ------
        InputError
            `s` or `t` outside the training domain.

        References
        ----------
        Marra & Wood (2012), Coverage properties of confidence intervals for generalized additive model components,
        doi:10.1111/j.1467-9469.2011.00760.x

        Examples
        --------
        >>> from fdadp import AdditiveFunctionOnFunction, simulate_affr
        >>> data = simulate_affr(scenario=2, n=200, seed=1)
        >>> model = AdditiveFunctionOnFunction().fit(data.X, data.Y)
        >>> model.surface_se(x=[-1, 0, 1], s=[0.5], t=[0.25, 0.75]).shape
        (3, 1, 2)
        """
        at, shape = self._points(x, s, t)
        found, design = self._surface_fit, self._fit.form.designs[-1]
        white = isinstance(design, WhiteDesign)  # these are centred
        rows = (design if white else found.term).effect(at["s"], at["x"])
        slopes = found.by_function.of_slopes(rows if white else found.term.of_centred(rows))
        variance = self._fit.sigma2 * slopes @ design.along.design(at["t"]).T ** 2
        unseen = design.unseen(at)
        total = variance if unseen is None else variance + unseen.reshape(variance.shape)
        return np.ascontiguousarray(np.sqrt(total).reshape(shape).transpose(1, 0, 2))

    def _points(self, x: ArrayLike, s: ArrayLike, t: ArrayLike) -> tuple[dict[str, FloatArray], tuple[int, int, int]]:
        """Points of s, x and t, and how many of each."""
        check_is_fitted(self, "coef_")
        at = {name: np.atleast_1d(numbers(v, name)) for name, v in (("s", s), ("x", x), ("t", t))}
        for name, domain in (("s", self.s_), ("t", self.t_)):
            low, high = domain[0], domain[-1]
            if ((at[name] < low) | (at[name] > high)).any():
                got = f"{at[name].min():g} to {at[name].max():g}"
                raise InputError(f"{name} must lie within [{low:g}, {high:g}], got {got}")
        return at, (at["s"].size, at["x"].size, at["t"].size)

    def summary(self) -> Summary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        from fdadp.regression.summary import summarise

        check_is_fitted(self, "coef_")
        model: Any = self
        return summarise(model)

    def check(
        self, X: CurveData, Y: CurveData, *, s: ArrayLike | None = None, t: ArrayLike | None = None
    ) -> BasisCheck:
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
