"""A transformer from curves to their scores on an eigenbasis, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.functional.fpca.eigenbasis import Eigenbasis
from fdadp.functional.tables.curve_inputs import as_curves, check_finite
from fdadp.functional.tables.curve_sample import Curves, wrap


class Components(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer to the scores of curves; a subclass says how it finds the eigenbasis, in ``fit``."""

    _kind: Any
    _columns: Any

    def transform(self, Y: CurveData, *, t: ArrayLike | None = None) -> FloatArray:
        """Scores of curves.

        Parameters
        ----------
        Y : as in :meth:`fit`
            May be on another grid within the domain; the eigenfunctions are then interpolated.
        t : array_like of shape (T',), optional
            Grid; default: that of `Y`, else the one of the fit.

        Returns
        -------
        ndarray of shape (n, K)

        Raises
        ------
        InputError
            Points outside the domain; missing values (with ``method="sc"``, curves without any value).
        """
        check_is_fitted(self, "basis_")
        curves = self._read(Y, t)
        return self._scores(self._on(curves.grid), curves)

    def inverse_transform(self, scores: ArrayLike) -> Any:
        """Curves ``μ + Σ_k ξ_k φ_k`` on the grid of the fit, of the kind that was fitted.

        Raises
        ------
        InputError
            Not K columns.
        """
        check_is_fitted(self, "basis_")
        index = scores.index if isinstance(scores, pd.DataFrame) else None
        return self._wrap(self.basis_.reconstruct(scores), index)

    def _wrap(self, values: FloatArray, index: Any) -> Any:
        """Curves on the grid of the fit, as the kind that was fitted."""
        return wrap(values, self.grid_, kind=self._kind, columns=self._columns, index=index, own_grid=self.grid_)

    def _scores(self, basis: Eigenbasis, curves: Curves) -> FloatArray:
        """Projections on the eigenfunctions."""
        check_finite(curves, "Y")
        return basis.scores(curves.values)

    def _on(self, grid: FloatArray) -> Eigenbasis:
        return self.basis_ if np.array_equal(grid, self.basis_.grid) else self.basis_.on_grid(grid)

    def _set(self, basis: Eigenbasis) -> None:
        self.basis_ = basis
        self.grid_, self.weights_, self.mean_ = basis.grid, basis.weights, basis.mean
        self.eigenfunctions_, self.eigenvalues_ = basis.functions, basis.values
        self.explained_variance_ratio_ = basis.explained_ratio
        self.noise_variance_ = basis.noise_variance
        self.n_components_ = self._n_features_out = basis.n_components

    def _read(self, data: CurveData, t: ArrayLike | None) -> Curves:
        if t is None and hasattr(data, "coefficients"):  # in a basis, without points of its own
            t = self.grid_
        return as_curves(data, t, name="Y", default=self.grid_)
