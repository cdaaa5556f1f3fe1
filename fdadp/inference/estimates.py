"""Estimates that are linear in the coefficients, with pointwise and simultaneous bands; and rows of the design.

Each estimate is a number ``g(β)`` whose gradient in the coefficients is a row ``l``. Its standard error is
``sqrt(l V l')``, V the covariance of the coefficients: exact where g is linear, else the delta method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import flag, fraction, one_of, whole
from fdadp._common.loaded_later import pd
from fdadp._common.student_and_f import student_quantile
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.regression.estimator_base import TermModel
from fdadp.regression.fitted.fitted_model import Fitted
from fdadp.regression.fitted.tests_and_bands import coefficient_names
from fdadp.regression.reading.training_rows import along
from fdadp.solve.errors.term_tests import LargestRatio
from fdadp.terms.records import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Inference:
    """How intervals are made, the same for all questions.

    Attributes
    ----------
    level : float
        Of intervals and bands, in (0, 1).
    kind : str or None
        Assumption about the errors, as of :meth:`fdadp.FunctionalRegression.vcov`.
    seed : int
        Of the draws behind simultaneous bands.
    """

    level: float = 0.95
    kind: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        fraction(self.level, "level")
        whole(self.seed, "seed", least=0)


@dataclass(frozen=True, repr=False)
class EffectEstimates:
    """Estimates of a fitted model, a row each. ``print`` and notebooks show them.

    Attributes
    ----------
    what : str
        What is estimated, as a title.
    index : DataFrame
        What each of the m rows is of: a contrast, a row, a point t.
    value : ndarray of shape (m,)
    rows : ndarray of shape (m, p)
        Gradients in the coefficients.
    covariance : ndarray of shape (p, p)
        Of the coefficients.
    degrees : (float, float)
        Student's degrees of freedom: of pointwise intervals, and of bands.
    how : Inference
    private : bool
        Whether all of it is computed from releases of a private fit. Then nothing of the budget is spent.
    """

    what: str
    index: pd.DataFrame
    value: FloatArray
    rows: FloatArray
    covariance: FloatArray
    degrees: tuple[float, float]
    how: Inference
    private: bool = False

    @property
    def title(self) -> str:
        """What is estimated, at which level, and whether it is private."""
        told = "from releases of a private fit; nothing more is spent" if self.private else "not private"
        return f"{self.what} ({100 * self.how.level:g} % intervals; {told})"

    @cached_property
    def se(self) -> FloatArray:
        """Standard errors, shape (m,)."""
        variance = np.einsum("ij,ij->i", self.rows @ self.covariance, self.rows)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def to_frame(self) -> pd.DataFrame:
        """A row for each estimate.

        Returns
        -------
        DataFrame
            What it is of, ``value``, ``se``, the pointwise interval ``lower``, ``upper``, and the ends ``lower_all``,
            ``upper_all`` of a band that holds everywhere at once: all of a curve along t, or all numbers.
        """
        se = self.se
        half = student_quantile((1 + self.how.level) / 2, self.degrees[0]) * se
        wide = np.empty(len(se))
        for own, law in self._families:
            wide[own] = law.quantile(self.how.level, self.degrees[1]) * se[own]
        ends = {"lower": self.value - half, "upper": self.value + half}
        ends |= {"lower_all": self.value - wide, "upper_all": self.value + wide}
        return self.index.assign(value=self.value, se=se, **ends)

    def test(self, value: float = 0.0) -> pd.DataFrame:
        """Test for each curve, or number, that it is `value` everywhere, by the largest ratio to its standard error.

        Where p is below 1 - level, the band of :meth:`to_frame` excludes `value` somewhere. So p of several numbers
        counts that there are several.

        Returns
        -------
        DataFrame
            A row for each: the largest ratio ``statistic``, and ``p``.

        References
        ----------
        Westfall & Young (1993), Resampling-Based Multiple Testing; Hothorn, Bretz & Westfall (2008),
        doi:10.1002/bimj.200810425.
        """
        se = self.se
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(se > 0, np.abs(self.value - value) / se, 0.0)
        found = []
        for own, law in self._families:
            largest = [float(ratios[own].max(initial=0.0))] if "t" in self.index else ratios[own].tolist()
            found += [(ratio, law.p(ratio, self.degrees[1])) for ratio in largest]
        return pd.DataFrame(found, index=pd.Index(self._labels()), columns=["statistic", "p"])

    def plot(self, axes: Any = None) -> Figure:
        """Picture: a panel for each curve, with its pointwise interval and its band; numbers one below the other."""
        from fdadp.plot._contrasts_and_slopes import plot_estimates

        return plot_estimates(self.to_frame(), self._labels(), self.what, axes)

    def _curves(self) -> int:
        """Number of curves along t, which follow each other in the rows."""
        return len(self.index) // max(self.index["t"].nunique(), 1) if "t" in self.index else 1

    def _labels(self) -> list[str]:
        """What each curve, or each number, is of."""
        own = [name for name in self.index.columns if name != "t"]
        if not own:  # one curve, or one number
            return [self.what]
        step = len(self.index) // self._curves() if "t" in self.index else 1
        return [", ".join(map(str, row)) for row in self.index[own].iloc[::step].itertuples(index=False)]

    @cached_property
    def _families(self) -> list[tuple[slice, LargestRatio]]:
        """Rows whose bands hold together, and the law of their largest ratio."""
        step = len(self.index) // self._curves()
        together = [slice(start, start + step) for start in range(0, len(self.index), step)]
        return [(own, LargestRatio.of(self.rows[own], self.covariance, self.how.seed)) for own in together]

    def __str__(self) -> str:
        return f"{self.title}\n{self.to_frame().to_string(max_rows=12, index=False)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self.title)}</p>{self.to_frame().to_html(max_rows=12, index=False)}"


@dataclass(frozen=True)
class Means:
    """Means of new rows, and their gradients.

    Attributes
    ----------
    value : ndarray of shape (n, T)
    rows : ndarray of shape (n, T, p)
    records : Records
    t : ndarray of shape (T,)
    """

    value: FloatArray
    rows: FloatArray
    records: Records
    t: FloatArray

    def mean(self) -> Means:
        """The average over the rows, as one row."""
        return Means(self.value.mean(axis=0)[None], self.rows.mean(axis=0)[None], self.records[:1], self.t)

    def minus(self, other: Means, scale: float = 1.0) -> Means:
        """Differences of the same rows, times a number."""
        if self.value.shape != other.value.shape:
            raise InputError(
                "new1 and new2 must have as many rows, or average must be True, "
                f"got {len(self.value)} and {len(other.value)} rows"
            )
        return Means(scale * (self.value - other.value), scale * (self.rows - other.rows), self.records, self.t)


@dataclass(frozen=True)
class AskedModel:
    """A fitted model, and how it is asked.

    Attributes
    ----------
    fitted : Fitted
    scale : {"response", "link"}
        Of means: as the responses, or of the linear predictor.
    t : ndarray of shape (T,)
        Points of the response; one where it is a number.
    """

    fitted: Fitted
    scale: str
    t: FloatArray

    @classmethod
    def of(cls, model: Any, t: ArrayLike | None = None, scale: str = "response") -> AskedModel:
        """Check the model and the settings.

        Raises
        ------
        InputError
            A model of another kind, points outside the domain, points of a model of numbers.
        NotFittedError
            Before the fit.
        """
        fitted = fitted_of(model)
        one_of(scale, "scale", ("response", "link"))
        if fitted.response.curves is not None:
            return cls(fitted, scale, fitted.response.points(t))
        if t is not None:
            raise InputError("t must be left out where the response is a number")
        return cls(fitted, scale, fitted.fit.form.t)

    @property
    def of_curves(self) -> bool:
        """Whether responses are curves."""
        return self.fitted.response.curves is not None

    def means(self, data: Any, grids: Mapping[str, ArrayLike] | None, *, t: FloatArray | None = None) -> Means:
        """Means of new rows and their gradients; `data` may be records that are read."""
        fitted, points = self.fitted, self.t if t is None else t
        records = data if isinstance(data, Records) else fitted.records(data, grids)
        form, coefficients = fitted.fit.form, fitted.fit.coefficients
        eta = form.predictor(records, coefficients, points)
        if fitted.offset is not None:
            eta = eta + along(records.columns[fitted.offset], points)
        rows = form.rows(records, points)
        if self.scale == "link" or fitted.family.name == "gaussian":
            return Means(eta, rows, records, points)
        return Means(fitted.family.mean(eta), fitted.family.mean_slope(eta)[:, :, None] * rows, records, points)

    def by(self, average: bool) -> Callable[..., Means]:
        """:meth:`average`, or :meth:`means` of each row."""
        return self.average if flag(average, "average") else self.means

    def average(self, data: Any, grids: Mapping[str, ArrayLike] | None, *, t: FloatArray | None = None) -> Means:
        """Average of the means of new rows, whose gradients are held for some rows at a time."""
        records = data if isinstance(data, Records) else self.fitted.records(data, grids)
        parts = [(block.n, self.means(block, None, t=t).mean()) for block in self.fitted.fit.form.blocks(records, t)]
        share = np.array([n for n, _ in parts]) / records.n
        value = sum(w * own.value for w, (_, own) in zip(share, parts, strict=True))
        rows = sum(w * own.rows for w, (_, own) in zip(share, parts, strict=True))
        return Means(np.asarray(value), np.asarray(rows), records[:1], self.t if t is None else t)

    def twiced(self, means: Means, times: int) -> Means:
        """Means with what the same smoothing finds in the residuals, so often.

        Where the model is no linear one, this is so to first order.

        Raises
        ------
        InputError
            A private fit, functions of persons with a covariance, or eigenfunctions of the response.
        """
        fit = self.fitted.fit
        unfit = {
            "a private fit": self.fitted.private,
            "a fit with covariances of persons": self.fitted.errors.persons is not None,
            "response_basis='eigen'": fit.on_eigenfunctions,
        }
        for name in (name for name, holds in unfit.items() if holds):
            raise InputError(f"twicing must be 0 for {name}, got {times}")
        penalty = np.asarray(fit.smoothing_parameters) @ fit.form.stacked_penalties
        pulled, added = means.rows, np.zeros_like(means.rows)
        for _ in range(times):
            pulled = pulled @ fit.inverse * penalty
            added = added + pulled
        return Means(means.value + added @ fit.coefficients, means.rows + added, means.records, means.t)

    def estimates(
        self, what: str, index: pd.DataFrame, value: FloatArray, rows: FloatArray, how: Inference
    ) -> EffectEstimates:
        """Estimates with the covariance of the model, and the degrees of freedom of the terms that are in them."""
        errors, form = self.fitted.errors, self.fitted.fit.form
        rows = rows.reshape(-1, form.size)
        size = np.abs(rows).max(initial=0.0)
        inside = [
            design.name
            for design, place in zip(form.designs, form.slices, strict=True)
            if np.abs(rows[:, place]).max(initial=0.0) > 1e-12 * size
        ]
        wide = min((errors.degrees(how.kind, name) for name in inside), default=errors.degrees(how.kind))
        narrow = wide if errors.persons is not None else errors.degrees(how.kind)
        covariance = errors.covariance(how.kind)
        return EffectEstimates(what, index, value.ravel(), rows, covariance, (narrow, wide), how, self.fitted.private)

    def index(self, means: Means, *, averaged: bool = False) -> pd.DataFrame:
        """What each mean is of: the row, by its label, and the point t."""
        n, points = means.value.shape
        columns: dict[str, Any] = {}
        if not averaged and n > 1:
            labels = means.records.index
            columns["row"] = np.repeat(np.arange(n) if labels is None else np.asarray(labels), points)
        if self.of_curves:
            columns["t"] = np.tile(means.t, n)
        return pd.DataFrame(columns, index=pd.RangeIndex(n * points))


def fitted_of(model: Any) -> Fitted:
    """The fitted model of an estimator.

    Raises
    ------
    InputError
        Another kind of model.
    NotFittedError
        Before the fit.
    """
    if isinstance(model, TermModel):
        return model._asked()
    hint = "; model_ of it is the regression of person-periods" if hasattr(model, "baseline_hazard") else ""
    raise InputError(f"model must be a FunctionalRegression or ScalarRegression, got {type(model).__name__}{hint}")


def levels_of(fitted: Fitted) -> dict[str, tuple[Any, ...]]:
    """Levels of each column of labels that the terms read."""
    axes = [axis for design in fitted.fit.form.designs for axis in design.axes.items()]
    return {name: points for name, points in axes if isinstance(points, tuple)}


def design_rows(
    model: Any, data: Any, *, t: ArrayLike | None = None, grids: Mapping[str, ArrayLike] | None = None
) -> pd.DataFrame:
    """Rows of the design: times the coefficients they are the linear predictor, without offset (mgcv's ``lpmatrix``).

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
    data : DataFrame or mapping
        New rows, as of ``predict``.
    t : array_like of shape (T,), optional
        Points of the response; default its grid.
    grids : mapping of str to array_like, optional
        Grids of plain arrays.

    Returns
    -------
    DataFrame of shape (n T, p)
        Columns as of ``coefficients_`` and ``vcov``; the index is the row, and t of curves.

    Raises
    ------
    InputError
        As of ``predict``.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> model = ScalarRegression("y ~ x").fit({"x": x, "y": 1 + 2 * x})
    >>> rows = inference.design_rows(model, {"x": [0.0, 1.0]})
    >>> (rows @ model.coefficients_).round(6).tolist()
    [1.0, 3.0]
    """
    asked = AskedModel.of(model, t, "link")
    means = asked.means(data, grids)
    n, points, p = means.rows.shape
    labels = np.arange(n) if means.records.index is None else np.asarray(means.records.index)
    index = pd.Index(labels, name="row")
    if asked.of_curves:
        index = pd.MultiIndex.from_arrays([np.repeat(labels, points), np.tile(means.t, n)], names=["row", "t"])
    return pd.DataFrame(means.rows.reshape(n * points, p), index, coefficient_names(asked.fitted.fit))
