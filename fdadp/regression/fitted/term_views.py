"""Looking at a fitted model of many terms: coefficient functions, summary, shares explained."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.regression.fitted.coefficient_functions import Effect, effect_of, effect_rows
from fdadp.regression.fitted.term_diagnostics import TermDiagnostics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from statsmodels.iolib.summary import Summary

    from fdadp.solve.form.family import Family

Model = TypeVar("Model", bound="TermViews")


class TermViews(TermDiagnostics):
    """Part of every model of many terms: what is looked at."""

    smoothing_parameters_: FloatArray
    smoothing_names_: tuple[str, ...]
    null_deviance_: float
    _shares: tuple[float, float] | None = None
    """Adjusted R² and the explained share of the deviance, where the training rows were at hand."""
    _stored: ClassVar[tuple[str, ...]] = (
        "_again",
        "_covariates",
        "response_name_",
        "null_deviance_",
        "loglik_",
        "_clusters",
        "_variances",
        "_random_tests",
        "_score",
        "_shares",
        "_offset",
        "notes_",
        "importances_",
        "_curve_prior",
        "_drawn",
    )
    """Attributes that a file holds, besides the constructor's arguments and the fit."""

    @property
    def _family(self) -> Family:
        raise NotImplementedError

    def _covariance_of(self, kind: str | None) -> FloatArray:
        raise NotImplementedError

    # --- coefficient functions ---

    def coef(
        self,
        name: str,
        se: bool = False,
        level: float | None = None,
        *,
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        kind: str | None = None,
        with_mean: bool = False,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Coefficient function of a term on a grid: ``β(s, t)`` of ``ff(X)``, ``f(age, t)`` of ``s(age)``.

        Parameters
        ----------
        name : str
            Of the term, one of ``term_names_``; ``"s(t)"`` is the mean curve, centred, ``"(Intercept)"`` its mean.
        se : bool
            Also standard errors, and pointwise intervals.
        level : float, optional
            Of these intervals, in (0, 1); default 0.95. Given, it says `se` too.
        t, **points : array_like, optional
            Points of the axes, such as ``coef("ff(X)", s=[0, 0.5], t=[0.2])``: ``s`` of a curve's domain, ``x`` of its
            values, a column's name for its numbers or levels. Default: even points over what was seen, and all levels.
        at : mapping, optional
            The same by name, for columns whose names are those of other arguments.
        kind : str, optional
            What is believed of the errors, as in :meth:`predict_se`.
        with_mean : bool
            Of terms that are centred (the mean curve, ``s(age)``): standard errors of their sum with the mean of all
            other terms, as refund's ``coef`` gives them.

        Returns
        -------
        DataFrame
            A row for each point of the product of the axes: its coordinates, ``value``, and where wanted ``se``,
            ``lower`` and ``upper``. ``value`` is missing where the model has no coefficient (beyond ``limits``).
            ``frame.pivot(index="s", columns="t", values="value")`` is a surface as a table.

        Raises
        ------
        InputError
            No such term, axis or level, or points outside a curve's domain.

        Examples
        --------
        >>> from fdadp import FunctionalRegression, load_canadian_weather, terms
        >>> weather = load_canadian_weather()
        >>> model = FunctionalRegression([terms.ff("X")]).fit({"X": weather.X, "Y": weather.Y})
        >>> model.coef("ff(X)", se=True, s=[0.25, 0.5], t=[0.5]).columns.tolist()
        ['s', 't', 'value', 'se', 'lower', 'upper']
        """
        flag(se, "se")
        wanted = {"t": t, **(at or {}), **points}
        return self._effect(
            name, wanted, se=se or level is not None, level=level, kind=kind, with_mean=with_mean
        ).to_frame()

    def _effect(
        self,
        name: str,
        points: Mapping[str, Any] | None = None,
        *,
        se: bool = True,
        level: float | None = None,
        kind: str | None = None,
        with_mean: bool = False,
    ) -> Effect:
        check_is_fitted(self, "_fit")
        rows = effect_rows(self._fit.form, name, points)
        covariance = self._covariance_of(kind) if se else None
        return effect_of(self._fit, rows, covariance, 0.95 if level is None else level, with_mean=with_mean)

    # --- numbers ---

    @property
    def coefficients_(self) -> pd.Series[float]:
        """All coefficients, numbered within each term, in coordinates where penalties are diagonal; of :meth:`vcov`."""
        import pandas as pd

        check_is_fitted(self, "_fit")
        names = [f"{design.name}.{i + 1}" for design in self._fit.form.designs for i in range(design.size)]
        return pd.Series(self._fit.coefficients, index=names)

    @property
    def term_edf_(self) -> dict[str, float]:
        """Effective degrees of freedom of each term, by its name."""
        check_is_fitted(self, "_fit")
        form = self._fit.form
        return {
            design.name: float(self._fit.edf[place].sum())
            for design, place in zip(form.designs, form.slices, strict=True)
        }

    @property
    def r2_(self) -> float:
        """Adjusted R²: one minus the ratio of the residual variance to that about one mean, mgcv's ``r.sq``.

        NaN where it is not defined: responses are all equal, no degrees of freedom are left, or a family other than the
        Gaussian was fitted from chunks.
        """
        check_is_fitted(self, "_fit")
        if self._shares is not None:
            return self._shares[0]
        left, gaussian = self._fit.n_rows - self._fit.edf_total, self._family.name == "gaussian"
        if not gaussian or self.null_deviance_ <= 0 or left <= 0:
            return float("nan")
        return 1 - self._fit.rss / left / (self.null_deviance_ / (self._fit.n_rows - 1))

    @property
    def explained_deviance_(self) -> float:
        """Share of the deviance about one mean that is explained; of gaussian responses of the sum of squares."""
        check_is_fitted(self, "_fit")
        if self._shares is not None:
            return self._shares[1]
        return 1 - self._fit.rss / self.null_deviance_ if self.null_deviance_ > 0 else float("nan")

    def summary(self) -> Summary:
        """Tables of the fit, as text (``print``) and HTML (in a notebook)."""
        from fdadp.regression.fitted.term_summary import summarise

        check_is_fitted(self, "_fit")
        model: Any = self
        return summarise(model)

    def __str__(self) -> str:
        return str(self.summary()) if hasattr(self, "_fit") else repr(self)

    def _repr_html_(self) -> str:
        inherited: Any = super()
        return str(self.summary().as_html()) if hasattr(self, "_fit") else str(inherited._repr_html_())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    # --- pictures ---

    def plot(self, name: str | None = None, **kwargs: Any) -> Figure:
        """Picture of every term, or of one: curves with bands, surfaces, levels; see :func:`fdadp.plot.terms`."""
        from fdadp.plot import terms

        check_is_fitted(self, "_fit")
        return terms(self, name, **kwargs)

    def plot_residuals(self, **kwargs: Any) -> Figure:
        """Pictures of the residuals, see :func:`fdadp.plot.residuals`."""
        from fdadp.plot import residuals

        check_is_fitted(self, "_fit")
        return residuals(self, **kwargs)

    # --- keeping the fit ---

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        What is stored is in :mod:`fdadp.regression.fitted.term_files`: not the training rows, so that a loaded model
        has no ``fitted_values_`` and ``residuals_``.

        Raises
        ------
        InputError
            Settings that no file can hold, such as a function as ``limits``.
        """
        from fdadp.regression.fitted.term_files import save

        check_is_fitted(self, "_fit")
        return save(self, path)

    @classmethod
    def load(cls: type[Model], path: str | os.PathLike[str]) -> Model:
        """Read a model that :meth:`save` wrote; modules of terms of your own must be imported before.

        Raises
        ------
        FileFormatError
            Not such a file, or one of another class or version.
        """
        from fdadp.regression.fitted.term_files import load

        model: Model = load(path, cls)
        return model
