"""``MultilevelFPCA``: components of persons and of their rows as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import numbers, one_of, several, whole
from fdadp._common.estimators import ShownByTable
from fdadp._common.loaded_later import pd
from fdadp._common.typing import ArrayLike, CurveData, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.files.dataclass_json import labels_from_json, labels_to_json, pack, unpack
from fdadp.files.npz_files import Layout, complete
from fdadp.functional.fpca.eigenbasis import Eigenbasis, count_components, grid_weights
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.quadrature import RULES
from fdadp.functional.tables.curve_inputs import as_curves, check_finite, read_column
from fdadp.functional.tables.curve_sample import Curves, as_grid, wrap
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.repeated.icc_and_tests import SUCCESSIVE, icc, icc_curve, successive_correlation
from fdadp.repeated.person_sums import LEAST_K, PersonPass, PersonSums, smooth_functions
from fdadp.repeated.reml_search import (
    LevelCovariances,
    check_two_levels,
    choose_functions,
    level_covariances,
    warn_of_rough_rows,
)
from fdadp.repeated.reml_with_gaps import gap_covariances
from fdadp.repeated.two_level_components import MOST, TwoLevels, level_basis, smooth_levels
from fdadp.repeated.two_level_model import gls

METHODS = ("reml", "face")
OF_GAPS = "method 'reml' takes curves with gaps"
LARGEST = 1e100
"""Curves' squares, and products of these, are finite below it."""
NAME = "MultilevelFPCA"
LAYOUT = Layout("multilevel-fpca", {"numbers": "V"})


class MultilevelComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer to scores of persons and of rows; a subclass says how it finds both levels, in ``fit``."""

    n_components: float | tuple[float, float]
    levels: tuple[str, str]
    visits_: pd.Index[Any] | None = None
    _kind: Any
    _columns: Any

    def _set(self, found: TwoLevels) -> None:
        self.basis_ = found
        both = zip((found.person, found.row), found.kept, strict=True)
        bases = [basis.truncate(kept) if basis.n_components else basis for basis, kept in both]
        self.grid_, self.weights_, self.mean_ = found.row.grid, found.row.weights, found.row.mean
        self.coefficients_, self.noise_variance_ = found.coefficients, found.row.noise_variance
        self._level_names = tuple(self.levels)
        named = dict(zip(self.levels, bases, strict=True))
        self.eigenfunctions_ = {name: basis.functions for name, basis in named.items()}
        self.eigenvalues_ = {name: basis.values for name, basis in named.items()}
        self.explained_variance_ratio_ = {name: basis.explained_ratio for name, basis in named.items()}
        self.n_components_ = {name: basis.n_components for name, basis in named.items()}

    def transform(
        self,
        Y: CurveData,
        *,
        groups: Any = None,
        covariates: Any = None,
        visits: Any = None,
        t: ArrayLike | None = None,
    ) -> tuple[pd.DataFrame, FloatArray]:
        """Scores of persons and of rows: best linear predictions given all rows of each person.

        Parameters
        ----------
        Y, groups, covariates, visits, t
            As in :meth:`fit`; values that are NaN were not observed. Visits that the fit did not know have the mean.

        Returns
        -------
        person : DataFrame of shape (I, K)
            One row a person, labelled by their id.
        row : ndarray of shape (n, L)

        Raises
        ------
        InputError
            Curves on another grid, missing groups or covariates, a row without any value.
        """
        _, persons, xi, zeta, *_ = self._predicted(Y, groups, covariates, visits, t)
        K, L = self.basis_.kept
        columns = [f"{self._level_names[0]}{i}" for i in range(K)]
        return pd.DataFrame(xi[:, :K], index=persons, columns=columns), zeta[:, :L]

    def fit_transform(self, Y: CurveData, y: None = None, **given: Any) -> tuple[pd.DataFrame, FloatArray]:
        """Fit, then the scores of the same curves; arguments are those of :meth:`fit`, results of :meth:`transform`."""
        known = {name: given[name] for name in ("groups", "covariates", "visits", "t") if name in given}
        self.fit(Y, **given)
        return self.transform(Y, **known)

    def complete(
        self,
        Y: CurveData,
        *,
        groups: Any = None,
        covariates: Any = None,
        visits: Any = None,
        t: ArrayLike | None = None,
    ) -> Any:
        """Curves with their gaps (NaN) filled by what the row, and the other rows of the person, tell of them.

        Parameters and errors are those of :meth:`transform`. Values that were observed stay; the kind is that of `Y`.
        """
        curves, _, xi, zeta, codes, values = self._predicted(Y, groups, covariates, visits, t)
        found = self.basis_.means(values) + xi[codes] @ self.basis_.person.functions + zeta @ self.basis_.row.functions
        return curves.wrap(np.where(np.isnan(curves.values), found, curves.values), curves.grid, rows=curves)

    def _predicted(
        self, Y: CurveData, groups: Any, covariates: Any, visits: Any, t: ArrayLike | None
    ) -> tuple[Any, ...]:
        check_is_fitted(self, "basis_")
        if t is None and hasattr(Y, "coefficients"):
            t = self.grid_
        curves = as_curves(Y, t, name="Y", default=self.grid_, any_layout=True)
        if not np.array_equal(curves.grid, self.grid_):
            raise InputError(
                f"Y must be on the grid of the fit, {self.grid_.size} points, got {curves.grid.size} others"
            )
        _check_curves(curves)
        ids, values = _ids(groups, len(curves)), _covariates(covariates, len(curves))
        same_rows(Y=curves, groups=groups, covariates=covariates)
        if (visits is None) != (self.visits_ is None):
            raise InputError(f"visits must be {'given' if visits is None else 'left out'}, as in fit")
        if visits is not None:
            found = pd.Index(_ids(visits, len(curves), "visits"))
            values = (found.to_numpy()[:, None] == np.asarray(self.visits_)).astype(np.float64)
        if values.shape[1] != len(self.coefficients_):
            raise InputError(
                f"covariates must have {len(self.coefficients_)} columns, as in fit, got {values.shape[1]}"
            )
        codes, persons = pd.factorize(ids)
        xi, zeta = self.basis_.scores(curves.values, values, codes, len(persons))
        return curves, persons, xi, zeta, codes, values

    def inverse_transform(self, person: ArrayLike, row: ArrayLike | None = None) -> Any:
        """Curves (m, T) of scores (m, K) of persons and, if given, (m, L) of rows, at the means of covariates."""
        check_is_fitted(self, "basis_")
        both = (self.basis_.person.truncate(self.basis_.kept[0]), self.basis_.row.truncate(self.basis_.kept[1]))
        values = both[0].reconstruct(person)
        if row is not None:
            values = values + both[1].reconstruct(row) - self.mean_
        return wrap(values, self.grid_, kind=self._kind, columns=self._columns, index=None, own_grid=self.grid_)

    def plot(self, level: str | None = None, **kwargs: Any) -> Any:
        """Picture of the components of a level, by default of persons; see :func:`fdadp.plot.eigenfunctions`."""
        from fdadp.plot import eigenfunctions

        check_is_fitted(self, "basis_")
        name = self._level_names[0] if level is None else one_of(level, "level", self._level_names)
        shown = SimpleNamespace(
            grid_=self.grid_,
            mean_=self.mean_,
            eigenfunctions_=self.eigenfunctions_[name],
            eigenvalues_=self.eigenvalues_[name],
            explained_variance_ratio_=self.explained_variance_ratio_[name],
        )
        return eigenfunctions(shown, **kwargs)

    def _check_levels(self) -> None:
        if len(set(several(self.levels, 2, "levels"))) < 2:
            raise InputError(f"levels must be two names, got {self.levels!r}")
        for n in wanted_of_levels(self.n_components):
            count_components(np.ones(1), min(n, 1) if isinstance(n, int | np.integer) else n)


def wanted_of_levels(given: float | tuple[float, float]) -> tuple[float, float]:
    """What `n_components` asks of persons and of rows; raises InputError for tuples that are no pair."""
    return several(given, 2, "n_components") if isinstance(given, tuple | list) else (given, given)


@dataclass(kw_only=True, eq=False, repr=False)
class MultilevelFPCA(ShownByTable, MultilevelComponents):
    """Functional principal components of curves that come several a person: of persons, and of rows within persons.

    ``Y_ij(t) = μ(t) + Σ_k ξ_ik φ_k(t) + Σ_l ζ_ijl ψ_l(t) + e_ij(t)``, with white noise e. Persons need not have equal
    numbers of rows, and some may have one.

    Parameters
    ----------
    n_components : int, float or pair of these
        Of persons and of rows: a number, or in (0, 1] the share of the level's variance (the first number that exceeds
        it).
    method : {"reml", "face"}
        * ``"reml"``: both covariances by restricted maximum likelihood from one pass over the rows;
        * ``"face"``: smoothed moments, subtracted, as ``refund::mfpca.face`` finds them.
    k : int, optional
        Of ``"reml"``: smooth functions along t. Default: the number of least BIC.
    n_knots : int, optional
        Of ``"face"``; default ``min(35, T // 3)`` (refund: 35).
    levels : pair of str
        Names of the two levels, in what is handed out.
    quadrature : {"trapezoid", "equal", "simpson", "riemann"}
        Rule of the inner products; ``"equal"`` is refund's.

    Attributes
    ----------
    grid_, weights_, mean_ : ndarray of shape (T,)
        The mean curve is that at the means of covariates; ``"face"`` smooths it, as refund does.
    coefficients_ : ndarray of shape (p, T)
        Effects of covariates; or of visits, by how much the mean curve of each is above the mean.
    visits_ : Index of length p, or None
        Labels of visits with mean curves of their own.
    eigenfunctions_ : dict of ndarray of shape (K, T)
        By level. Of unit L2 norm; the entry of largest absolute value is positive.
    eigenvalues_ : dict of ndarray of shape (K,)
        In L2 units.
    explained_variance_ratio_ : dict of ndarray of shape (K,)
        Of the level's own variance.
    noise_variance_ : float
    icc_, icc_with_noise_ : float
        Share of the variance that is between persons, without and with the noise. The second depends less on k.
    icc_curve_ : ndarray of shape (T,)
        The first at each t.
    basis_ : TwoLevels
        All of the above but the shares.
    k_ : int or None
        Smooth functions that were taken.
    bic_ : dict of int to float
        Criterion of each number that was tried.
    whiteness_ : float or None
        Variance of the first functions left out beside white noise; above 1.15 a warning says so.
    successive_correlation_ : float or None
        Of the residuals of a person's successive rows: rows are taken as independent given the person.

    Notes
    -----
    ``transform`` gives a person the scores that all rows handed over tell of them; rows of other persons do not matter.

    References
    ----------
    Di, Crainiceanu, Caffo & Punjabi (2009), doi:10.1214/08-AOAS206; Cui, Li, Crainiceanu & Xiao (2023),
    doi:10.1080/10618600.2022.2115500.

    Examples
    --------
    >>> import numpy as np
    >>> rng, t = np.random.default_rng(0), np.linspace(0, 1, 50)
    >>> ids = np.repeat(np.arange(40), 4)
    >>> Y = rng.normal(size=(40, 1))[ids] * np.sin(np.pi * t) + rng.normal(size=(160, 1)) * np.cos(np.pi * t)
    >>> model = MultilevelFPCA(k=8, n_components=1).fit(Y + 0.1 * rng.normal(size=Y.shape), groups=ids)
    >>> {level: functions.shape for level, functions in model.eigenfunctions_.items()}, round(model.icc_, 1)
    ({'person': (1, 50), 'row': (1, 50)}, 0.4)
    >>> person, row = model.transform(Y, groups=ids)
    >>> person.shape, row.shape
    ((40, 1), (160, 1))
    """

    _fitted: ClassVar[str] = "basis_"
    n_components: float | tuple[float, float] = 0.99
    method: str = "reml"
    k: int | None = None
    n_knots: int | None = None
    levels: tuple[str, str] = ("person", "row")
    quadrature: str = "trapezoid"

    def fit(
        self,
        Y: CurveData,
        y: Any = None,
        *,
        groups: Any = None,
        covariates: Any = None,
        visits: Any = None,
        t: ArrayLike | None = None,
    ) -> MultilevelFPCA:
        """Find the components of both levels.

        Parameters
        ----------
        Y : FDataGrid, FDataBasis, FDataIrregular, DataFrame or array_like of shape (n, T)
            NaN where a curve was not observed, with ``"reml"``.
        y : ignored
            Here for pipelines.
        groups : array_like of shape (n,)
            The person of every row, as numbers or labels. Rows may be in any order.
        covariates : DataFrame or array_like of shape (n, p), optional
            Numbers that mean curves depend on (``"reml"`` only).
        visits : array_like of shape (n,), optional
            Label of each row's visit. Each visit has a mean curve of its own, smoothed (``"face"`` only: refund's
            ``twoway = TRUE``). Default: one mean curve.
        t : array_like of shape (T,), optional
            Grid; default: that of `Y`, else even on [0, 1].

        Raises
        ------
        InputError
            Bad parameters, curves or groups; or too few rows beyond one a person for k functions.

        Warns
        -----
        IdentificationWarning
            Fewer than two rows beyond one a person for each function, or rows too rough for the functions.
        """
        self._check_parameters(covariates is not None, visits is not None)
        curves = as_curves(Y, t, name="Y")
        ids, values = _ids(groups, len(curves)), _covariates(covariates, len(curves))
        same_rows(Y=curves, groups=groups, covariates=covariates)
        _check_curves(curves)
        gaps = self.method == "reml" and bool(np.isnan(curves.values).any())
        if not gaps:
            check_finite(curves, "Y", cure=OF_GAPS if self.method == "face" else "")
        self.visits_ = None
        if self.method == "face":
            which = None
            if visits is not None:
                which, self.visits_ = pd.factorize(pd.Index(_ids(visits, len(curves), "visits")), sort=True)
            codes = pd.factorize(ids)[0]
            check_two_levels(np.bincount(codes), NAME)
            found = smooth_levels(
                curves.values,
                codes,
                curves.grid,
                grid_weights(curves.grid, self.quadrature),
                n_components=wanted_of_levels(self.n_components),
                n_knots=self.n_knots,
                visits=which,
            )
            self._of_face(found)
        elif gaps:
            self._of_gaps(values, curves, pd.factorize(ids)[0])
        else:
            started = self._pass(curves.grid, values.shape[1])
            sums = self._of_pass(started.add(values, curves.values, ids), curves.grid)
            effects = (values - self.basis_.centre) @ (self.coefficients_ @ sums.phi)
            left = curves.values @ sums.phi - self.mean_ @ sums.phi - effects
            self.successive_correlation_: float | None = successive_correlation(left, pd.factorize(ids)[0])
        self._kind, self._columns = curves.kind, curves.columns
        return self

    def fit_chunks(self, chunks: Iterable[Any] | Callable[[], Iterable[Any]], *, t: ArrayLike) -> MultilevelFPCA:
        """Find the components in one pass over chunks of rows (``method="reml"``).

        Parameters
        ----------
        chunks : iterable of tuple, or callable that returns one
            ``(curves, groups)`` or ``(curves, groups, covariates)``, of shapes (m, T), (m,) and (m, p), in the kinds
            that :meth:`fit` takes. A person's rows may lie in several chunks.
        t : array_like of shape (T,)

        Raises
        ------
        InputError
            As :meth:`fit`; no chunk, or ``method="face"``.
        """
        if self.method != "reml":
            raise InputError(f"method must be 'reml' for chunks, got {self.method!r}: it needs one pass")
        self._check_parameters(False, False)
        grid, started, self.visits_ = as_grid(t, np.size(t), "t"), None, None
        for given, groups, *covariates in chunks() if callable(chunks) else chunks:
            if not (given.shape[0] if hasattr(given, "shape") else len(given)):
                continue
            curves = as_curves(given, grid, name="Y", any_layout=True)
            _check_curves(curves)
            check_finite(curves, "Y", cure="fit() takes curves with gaps")
            ids, values = _ids(groups, len(curves)), _covariates(covariates[0] if covariates else None, len(curves))
            same_rows(Y=curves, groups=groups, covariates=covariates[0] if covariates else None)
            started = self._pass(grid, values.shape[1]) if started is None else started
            started.add(values, curves.values, ids)
        if started is None:
            raise InputError("chunks must hold at least one row, got none")
        self._of_pass(started, grid)
        self._kind, self._columns = "array", None
        return self

    def _pass(self, grid: FloatArray, p: int) -> PersonPass:
        most = max(min(grid.size // 3, MOST), 4) if self.k is None else self.k
        return PersonPass(smooth_functions(grid, most)[0], p)

    def _of_pass(self, found: PersonPass, grid: FloatArray) -> PersonSums:
        sums = self._chosen(found)
        levels = level_covariances(sums, name=NAME)
        self._of_levels(levels, sums, _mean_curves(sums, levels), grid)
        return sums

    def _of_gaps(self, covariates: FloatArray, curves: Curves, persons: IntArray) -> None:
        """The number of functions from curves filled by straight lines; all else from what was observed."""
        if np.isinf(curves.values).any():
            raise InputError("Y must have finite values, and NaN where a curve was not observed, got an infinite one")
        X = np.column_stack((np.ones(len(curves)), covariates - covariates.mean(axis=0)))
        started = self._pass(curves.grid, covariates.shape[1])
        sums = self._chosen(started.add(covariates, fill_linear(curves.values, curves.grid), persons))
        levels, fit = gap_covariances(sums.phi, X, curves.values, persons, curves.grid)
        self._of_levels(levels, sums, fit.fixed @ sums.phi.T, curves.grid, covariates.mean(axis=0))

    def _chosen(self, found: PersonPass) -> PersonSums:
        sums = found.sums()
        self.bic_: dict[int, float] = {}
        self.whiteness_: float | None = None
        if self.k is None:
            chosen = choose_functions(sums, name=NAME)
            sums, self.bic_, self.whiteness_ = chosen.sums, chosen.bic, chosen.whiteness
            warn_of_rough_rows(chosen.whiteness, sums.k)
        return sums

    def _of_levels(
        self,
        levels: LevelCovariances,
        sums: PersonSums,
        curves: FloatArray,
        grid: FloatArray,
        centre: FloatArray | None = None,
    ) -> None:
        """Take up covariances and mean curves (p, T), at features about the shift of the sums or about `centre`."""
        weights, mean = grid_weights(grid, self.quadrature), curves[0]
        if centre is None:
            at = sums.total[0, : sums.p] / sums.n_rows
            mean, centre = at @ curves, (at + sums.shift_x)[1:]
        bases = [
            level_basis(K, sums.phi, grid, weights, mean, levels.noise_variance) for K in (levels.G, levels.smooth_rows)
        ]
        asked = zip(bases, wanted_of_levels(self.n_components), strict=True)
        kept = [count_components(b.values, n) if b.n_components else 0 for b, n in asked]
        self._set(TwoLevels(bases[0], bases[1], curves[1:], centre, (kept[0], kept[1])))
        self.k_: int | None = sums.k
        self.icc_, self.icc_with_noise_ = icc(sums.phi, levels), icc(sums.phi, levels, noise=True)
        self.icc_curve_ = icc_curve(sums.phi, levels)
        self.successive_correlation_ = None

    def _of_face(self, found: TwoLevels) -> None:
        self._set(found)
        person, row = ((b.functions**2).T @ b.values for b in (found.person, found.row))
        self.icc_curve_ = person / (person + row)
        self.icc_ = float(person.sum() / (person + row).sum())
        self.icc_with_noise_ = float(person.sum() / (person + row + found.row.noise_variance).sum())
        self.k_, self.bic_, self.whiteness_, self.successive_correlation_ = None, {}, None, None

    def summary(self) -> PrintedSummary:
        """Table of the fit."""
        check_is_fitted(self, "basis_")
        facts = [("Method", self.method, "Points", f"{self.grid_.size}")]
        for name in self._level_names:
            shares = ", ".join(f"{100 * share:.1f} %" for share in self.explained_variance_ratio_[name][:5])
            facts.append((f"Components, {name}", f"{self.n_components_[name]}", "Shares", shares))
        facts.append(("ICC", f"{self.icc_:.3f}", "ICC with noise", f"{self.icc_with_noise_:.3f}"))
        smooth = "-" if self.k_ is None else f"{self.k_}" + (" (least BIC)" if self.bic_ else "")
        facts.append(("Noise variance", f"{self.noise_variance_:.4g}", "Smooth functions", smooth))
        notes = []
        if self.whiteness_ is not None:
            notes.append(f"Functions left out vary {self.whiteness_:.2f} times as much as white noise.")
        if self.k_ is not None and self.noise_variance_ == 0:
            notes.append("Curves have no noise outside the functions: they look smoothed.")
        if self.successive_correlation_ is not None:
            said = f"Successive rows of a person have residuals of correlation {self.successive_correlation_:.2f}"
            far = self.successive_correlation_ > SUCCESSIVE
            notes.append(said + ("; rows are taken as independent." if far else "."))
        return PrintedSummary([PrintedTable(facts, title="Multilevel functional principal components")], notes)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file; return its path. It holds no person, only mean curves and components."""
        check_is_fitted(self, "basis_")
        facts = {name: getattr(self, name) for name in _FACTS}
        tree, values = pack((self.basis_, self.icc_curve_), NAME)
        content = {
            "params": {name: list(v) if isinstance(v, tuple) else v for name, v in self.get_params().items()},
            "fit": tree,
            "facts": facts,
            "bic": [[k, v] for k, v in self.bic_.items()],
            "kind": self._kind,
            "columns": labels_to_json(self._columns, "Y"),
            "visits": labels_to_json(self.visits_, "visits"),
        }
        return LAYOUT.write(path, content, {"numbers": values})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MultilevelFPCA:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        content, arrays = LAYOUT.read(path)
        with complete(path, LAYOUT.kind):
            params = {name: tuple(v) if isinstance(v, list) else v for name, v in content["params"].items()}
            model = cls()
            model.set_params(**params)
            basis, curve = unpack(content["fit"], arrays["numbers"], lambda kind: kind in (TwoLevels, Eigenbasis))
            model._set(basis)
            model.icc_curve_ = curve
            for name in _FACTS:
                setattr(model, name, content["facts"][name])
            model.bic_ = {int(k): float(v) for k, v in content["bic"]}
            model._kind, model._columns = content["kind"], labels_from_json(content["columns"])
            model.visits_ = labels_from_json(content.get("visits"))
            return model

    def _check_parameters(self, covariates: bool, visits: bool) -> None:
        one_of(self.method, "method", METHODS)
        one_of(self.quadrature, "quadrature", (*RULES, "equal"))
        self._check_levels()
        if self.k is not None:
            whole(self.k, "k", least=4)
        if covariates and self.method == "face":
            raise InputError("covariates must be left out with method='face': refund's has none; use method='reml'")
        if visits and self.method != "face":
            raise InputError("visits must be left out with method='reml': give indicators as covariates")


_FACTS = ("icc_", "icc_with_noise_", "k_", "whiteness_", "successive_correlation_")


def _ids(groups: Any, n: int, name: str = "groups") -> Any:
    what = "whose it is" if name == "groups" else "which visit it is"
    if groups is None:
        raise InputError(f"{name} must say of each row {what}, got None")
    column = read_column(groups, name)
    if column.kind == "curves" or column.n != n:
        raise InputError(f"{name} must have {n} entries, one a row of Y, got {column.n}")
    ids = column.values
    assert not isinstance(ids, Curves)
    missing = int(np.asarray(pd.isna(ids)).sum())
    if missing:
        raise InputError(f"{name} must say of each row {what}: missing in {missing} rows")
    held = np.asarray(groups) if isinstance(groups, list) else groups
    if getattr(getattr(held, "dtype", None), "kind", "") in ("i", "u"):
        return np.asarray(held).reshape(-1)  # as doubles long numbers of different persons would be one
    return ids


def _check_curves(curves: Curves) -> None:
    """Refuse curves of few points, without values, and of values that are infinite or too large to be squared."""
    if curves.grid.size <= LEAST_K:
        raise InputError(f"Y must hold curves of more than {LEAST_K} points, got {curves.grid.size}")
    wrong = np.flatnonzero(np.isnan(curves.values).all(axis=1) | np.isinf(curves.values).any(axis=1))
    if wrong.size:
        raise InputError(f"Y must have values in each row, and finite ones or NaN, got others in row {wrong[0]}")
    largest = float(np.nanmax(np.abs(curves.values)))
    if largest > LARGEST:
        raise InputError(f"Y must be below {LARGEST:g} in size, got {largest:g}; choose other units")


def _covariates(data: Any, n: int) -> FloatArray:
    if data is None:
        return np.zeros((n, 0))
    values = numbers(data, "covariates")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != n or not np.isfinite(values).all():
        raise InputError(f"covariates must be finite numbers of shape ({n}, p), got shape {values.shape}")
    return values


def _mean_curves(sums: PersonSums, levels: LevelCovariances) -> FloatArray:
    """Mean curves (p, T) without a penalty: weighted by both covariances on Φ, least squares outside."""
    B, _ = gls(sums, levels.G, levels.R)
    outside = sums.products - sums.products @ sums.phi @ sums.phi.T
    curves = B @ sums.phi.T + np.linalg.solve(sums.split(sums.total)[0], outside)
    curves[0] += sums.shift_y
    return np.asarray(curves)
