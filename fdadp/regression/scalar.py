"""Regression of a number on any terms: ``E[y_i] = β₀ + Σ_j f_j(X_ij)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin

from fdadp._common.checks import fraction, one_of
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.regression.additive_model import AdditiveModel
from fdadp.terms.spec import TermSpec

__all__ = ["ScalarRegression"]


@dataclass(kw_only=False, eq=False, repr=False)
class ScalarRegression(RegressorMixin, AdditiveModel):  # type: ignore[misc]
    """Regression of a number on curves, numbers and labels, by terms.

    Parameters
    ----------
    model : str or sequence of TermSpec
        A formula, ``"y ~ lf(X) + age"``, or terms, ``[terms.lf("X"), terms.linear("age")]``. A constant is added.
    response : str, optional
        Column of the response where `model` is not a formula; default ``"y"``.
    smoothing : {"reml", "gcv"} or array_like of shape (M,)
        How smoothing parameters are chosen, or their values on mgcv's scale in the order of the terms.
    intercept : bool
        Add the constant; a formula says so itself.
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.

    Attributes
    ----------
    fitted_values_, residuals_ : ndarray of shape (n,)
    smoothing_parameters_ : ndarray of shape (M,)
    smoothing_names_ : tuple of str
    edf_ : float
        Effective degrees of freedom of the whole model.
    criterion_ : float
        REML (the negative restricted log-likelihood) or GCV.
    sigma2_ : float
        Residual variance.
    """

    model: str | Sequence[TermSpec]
    response: str | None = None
    smoothing: str | ArrayLike = "reml"
    intercept: bool = True
    progress: bool | str = "auto"

    _default_response = "y"

    def fit(
        self, data: Mapping[str, Any] | pd.DataFrame, y: Any = None, *, grids: Mapping[str, ArrayLike] | None = None
    ) -> ScalarRegression:
        """Fit the model.

        Parameters
        ----------
        data : DataFrame or mapping of str
            Columns: FDataGrid or arrays (n, S) for curves, arrays (n,) for numbers and labels.
        y : array_like of shape (n,), optional
            The response, where it is no column of `data`.
        grids : mapping of str to array_like, optional
            Grids of plain arrays, by column.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A column that is not there or of another kind, of another number of rows, or not finite; settings that are
            unknown.

        Warns
        -----
        IdentificationWarning
            Naming terms that the data do not identify.
        """
        records, name = self._training_records(data, y, grids, response_is_curve=False)
        values = records.numbers(name)[:, None]
        form = self._designs(self._specs(), records, None)
        self._adopt(self._fit_gaussian(form, records, values), float(((values - values.mean()) ** 2).sum()))
        self.fitted_values_ = form.predictor(records, self._fit.coefficients)[:, 0]
        self.residuals_ = values[:, 0] - self.fitted_values_
        return self

    def predict(self, data: Any, *, type: str = "response", grids: Mapping[str, ArrayLike] | None = None) -> Any:
        """Predict the means of new rows, shape (n,).

        Parameters
        ----------
        data : DataFrame or mapping
            As in :meth:`fit`, without the response.
        type : {"response", "terms"}
            The mean, or a dict of what each term adds to it, by the names of the terms.
        grids : mapping of str to array_like, optional
            Grids of plain arrays; default those of the training curves.

        Raises
        ------
        InputError
            As :meth:`fit`.
        """
        one_of(type, "type", ("response", "terms"))
        records = self._new(data, grids)
        parts = self._fit.form.contributions(records, self._fit.coefficients)
        if type == "terms":
            return {name: part[:, 0] for name, part in zip(self.term_names_, parts, strict=True)}
        return sum((part[:, 0] for part in parts), np.zeros(records.n))

    def predict_se(
        self, data: Any, *, kind: str | None = None, grids: Mapping[str, ArrayLike] | None = None
    ) -> FloatArray:
        """Standard errors of the predicted means, shape (n,)."""
        return self._fit.form.standard_errors(self._new(data, grids), self._covariance_of(kind))[:, 0]

    def predict_interval(
        self, data: Any, level: float = 0.95, *, grids: Mapping[str, ArrayLike] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Prediction intervals of new responses: lower and upper ends, shapes (n,).

        Parameters
        ----------
        data, grids
            As in :meth:`predict`.
        level : float
            Nominal coverage, in (0, 1).
        """
        from scipy.stats import t as student

        fraction(level, "level")
        mean: FloatArray = self.predict(data, grids=grids)
        se = self.predict_se(data, grids=grids)
        left = max(self._fit.n_rows - self.edf_, 1.0)
        half = student.ppf((1 + level) / 2, left) * np.sqrt(se**2 + self.sigma2_)
        return mean - half, mean + half
