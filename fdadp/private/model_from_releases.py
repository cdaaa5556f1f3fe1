"""A private fit of many terms as any other: coefficients of a long form, and their posterior covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.splines.diagonal_margins import SmoothMargin, margin_of
from fdadp.functional.tables.curve_sample import Curves
from fdadp.privacy.private_entries import codes_of, index_of
from fdadp.private.denoise.empirical_bayes import MOMENT_VARIANCE
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.private_design import PrivateDesign
from fdadp.private.public.column_ranges import (
    UNIFORM_VARIANCE,
    Column,
    CurvesColumn,
    LabelColumn,
    NumberColumn,
    unit_grid,
)
from fdadp.private.public.gaussian_process_prior import CurvePrior
from fdadp.private.release.dp_aff_of_families import FamilyFit
from fdadp.private.release.residual_sizes import PrivateFit, Regression
from fdadp.private.rows.errors_by_record import Probe, factors, looks_of
from fdadp.private.whitened.white_term import WhiteTerm
from fdadp.solve.eigen.fit_to_scores import PointwiseVariance
from fdadp.solve.eigen.surface_fit import SurfaceFit
from fdadp.solve.fit.additive_fit import AdditiveFit, ByFunction
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.numbers.scalar_linear import Intercept
from fdadp.terms.records import Records, TrainingSummary
from fdadp.terms.spec import TermDesign, no_penalties

# Cohorts drawn from what a private fit released: no person's data, and no further cost.
#
# Columns are drawn independently: curves from the public prior at their released location and scale, numbers from a
# normal law of released mean and spread within their public bounds, labels evenly from their public levels. Of how
# columns hang together, and of the shapes of curves, the fit released nothing. Responses have the fitted means and
# errors of the released covariance, profile and tails.


TINY, SEEDS = 1e-300, 2**31
"""Keeps 0/0 from arising; number of seeds."""
PER_LENGTH = 10
"""Curves of each correlation length."""


def draw_column(column: Column, prior: CurvePrior, n: int, rng: np.random.Generator) -> Any:
    """Entries of one column: Curves, numbers (n,), or labels (n,)."""
    if isinstance(column, CurvesColumn):
        # Lengths are drawn anew for each batch of curves: as many laws as in the prior.
        own = replace(prior, seed=int(rng.integers(SEEDS)))
        lengths = max(math.ceil(n / PER_LENGTH), 1)
        drawn = own.curves(unit_grid(column.grid), PER_LENGTH, lengths)
        chosen = rng.permutation(len(drawn))[:n] if len(drawn) >= n else rng.integers(len(drawn), size=n)
        return Curves(column.location + column.scale * drawn[chosen], column.grid, gridded=True)
    if isinstance(column, NumberColumn):
        unit = rng.normal(column.location, column.scale, n)
        return column.mid + column.half * np.clip(unit, -1.0, 1.0)
    assert isinstance(column, LabelColumn)
    return np.array(column.levels, dtype=object)[rng.integers(len(column.levels), size=n)]


# Terms of a private fit as those of any other: features of records in the units of their columns.


@dataclass(frozen=True, kw_only=True)
class WhiteDesign(TermDesign):
    """The first white features of a term, for the records of any table.

    Attributes
    ----------
    term : WhiteTerm
    located : tuple of Column
        Its columns with released locations and scales.
    count : int
        Number of features that the plan afforded.
    unmeasured : ndarray of shape (d, m), or None
        Prior variance of the coefficients of all features on all response functions that no gradient measured.
    everywhere : SmoothMargin, or None
        All response functions.
    """

    term: WhiteTerm
    located: tuple[Column, ...]
    count: int
    unmeasured: FloatArray | None = None
    everywhere: SmoothMargin | None = None

    @property
    def _columns(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.located}

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """White features (n, count); NaN of a row whose curve has no observation."""
        return self._features(records, self.term)

    def _features(self, records: Records, term: WhiteTerm) -> FloatArray:
        seen: dict[str, Any] = {}
        lost = np.zeros(records.n, dtype=bool)
        for column in self.located:
            if isinstance(column, CurvesColumn):
                x = records.curves(column.name, column.grid)
                grid = None if np.array_equal(x.grid, column.grid) else x.grid
                seen[column.name], never = column.seen(x.values, grid)
                lost |= never
            elif isinstance(column, NumberColumn):
                seen[column.name] = column.seen(records.numbers(column.name))[0]
            else:
                seen[column.name] = codes_of(records.labels(column.name), index_of(column.levels))
        out = term.features(seen, self.count)
        out[lost] = np.nan
        return out

    @property
    def axes(self) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Axes of the coefficient function, in units of the columns."""
        return self.term.axes(self._columns)

    def effect(self, *points: Any) -> FloatArray:
        """Features of the coefficient function."""
        return self.term.effect(self._columns, self.count, *points)

    def acts(self, axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model."""
        return self.term.acts(self._columns, axes)

    def unseen(self, axes: Mapping[str, Any]) -> FloatArray | None:
        """Prior variance of the coefficient function outside of what was measured."""
        if self.unmeasured is None or self.everywhere is None:
            return None
        points = [at for name, at in axes.items() if name != "t"]
        effect = self.term.effect(self._columns, len(self.unmeasured), *points)
        along = self.everywhere.design(axes["t"]) if "t" in axes else np.ones((1, 1))
        return np.asarray(effect**2 @ self.unmeasured @ (along**2).T).ravel()


@dataclass(frozen=True, kw_only=True)
class VaryingDesign(WhiteDesign):
    """The same of a term whose features differ between points of the response."""

    separable: ClassVar[bool] = False

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """White features at points, shape (n, T, count)."""
        term = self.term if t is None else self.term.at(t)
        return np.moveaxis(self._features(records, term), 1, 2)


UNSEEN_POWER = 0.55
"""Power of the prior shares of features at which coefficients fall off, between those that fits decide between."""
LEAST_PART = 0.1
"""Of its range, that a number is taken to fill by one sd where nothing was released of it."""
CURVES_DRAWN = 4000
"""Of the law of residuals, for what holds of whole curves."""


@dataclass(frozen=True, kw_only=True)
class ReleasedMean(TermDesign):
    """The mean curve about its mean over t, on the public response functions."""

    def features(self, records: Records, t: FloatArray | None = None) -> FloatArray:
        """Ones, shape (n, 1)."""
        return np.ones((records.n, 1))


@dataclass(frozen=True, kw_only=True)
class ReleasedVariance(PointwiseVariance):
    """Variance of new responses about their means, as released, with the law of what is left when divided by it.

    Attributes
    ----------
    functions : ndarray of shape (T, K)
        Response functions.
    covariance : ndarray of shape (K, K)
        Of the coefficients of errors on them.
    total : float
        Mean square of responses about their mean curve, explained and not.
    looks : tuple of Probe
        Of forecasts, and where it was asked for: how errors hang on what records look like.
    columns : tuple of CurvesColumn
        Whose looks they are.
    """

    functions: FloatArray
    covariance: FloatArray
    total: float
    looks: tuple[Probe, ...] = ()
    columns: tuple[CurvesColumn, ...] = ()

    def of_records(self, records: Records, t: FloatArray) -> FloatArray:
        """Of records at points, shape (1, T') or (n, T')."""
        along = super().of_records(records, t)
        if not self.looks:
            return along
        curves = [records.curves(column.name) for column in self.columns]
        seen = np.hstack([looks_of(c, x.values, x.grid) for c, x in zip(self.columns, curves, strict=True)])
        return np.asarray(factors(self.looks, seen)[:, None] * along)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Errors of n responses, shape (n, T): smooth and white parts, with the released variance at each point."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        smooth = self.functions @ root
        within = np.einsum("tk,tk->t", smooth, smooth)
        share = np.minimum(1.0, self.values / np.maximum(within, TINY))
        errors = rng.normal(size=(n, root.shape[1])) @ smooth.T * np.sqrt(share)
        white = np.sqrt(np.maximum(self.values - within * share, 0.0))
        errors = errors + rng.normal(size=errors.shape) * white
        if self.inverse_dof > 0:  # one factor a curve: its values at all points are extreme together
            dof = 1 / self.inverse_dof
            errors = errors / np.sqrt(rng.chisquare(dof, (n, 1)) / dof)
        return np.asarray(errors * self.scale)

    def whole_curve_quantile(self, level: float) -> float:
        """Of the largest absolute value of a curve of standardised residuals, by curves drawn from their law."""
        errors = self.draw(CURVES_DRAWN, np.random.default_rng(0))
        largest = np.abs(errors / np.sqrt(np.maximum(self.values, TINY))).max(axis=1)
        return max(float(np.quantile(largest, level)), self.quantile(level))


def released_variance(fit: PrivateFit, design: PrivateDesign) -> ReleasedVariance:
    """What prediction intervals need, and cohorts drawn from the fit."""
    k = len(fit.residual_covariance)
    return ReleasedVariance(
        functions=np.ascontiguousarray(design.response[:, :k]),
        covariance=fit.residual_covariance,
        values=fit.residual_variance,
        scale=fit.calibration[0],
        inverse_dof=fit.calibration[1],
        grid=design.t,
        total=max(explained_variance(fit), 0.0) + unexplained_variance(fit),
        looks=fit.looks,
        columns=tuple(column for column in fit.columns if isinstance(column, CurvesColumn)) if fit.looks else (),
    )


def explained_variance(fit: PrivateFit) -> float:
    """Mean square of predictions about the mean curve, by what was released."""
    theta = fit.regression.coefficients
    return float(np.einsum("ik,ikjl,jl->", theta, fit.regression.moments, theta) - (theta[0] ** 2).sum())


def unexplained_variance(fit: PrivateFit) -> float:
    """Mean square of residuals, by what was released."""
    return float(np.trace(fit.residual_covariance) + fit.outside_variance)


def as_terms(fit: PrivateFit | FamilyFit, design: PrivateDesign, plan: Plan) -> AdditiveFit:
    """Make the fitted model of a private fit; post-processing, which costs no privacy.

    Terms of which the plan afforded no feature are left out.

    Parameters
    ----------
    fit : Found
    design : PrivateDesign
        The coordinates that it was made in.
    plan : Plan
    """
    regression, k = fit.regression, plan.weights.shape[1]
    d = len(regression.coefficients)
    mean = fit.mean.copy()
    mean[:k] += regression.coefficients[0]
    along, everywhere = _margin(design, k), _margin(design, design.response.shape[1])
    designs: list[TermDesign] = [Intercept().fixed(TrainingSummary(0, {}, {}, {}, lambda *_: None), None)]
    coefficients: list[FloatArray] = [np.array([fit.y_location])]
    places: list[IntArray] = []
    if design.scalar:
        coefficients[0] = coefficients[0] + mean
    else:
        levels = _levels(design)
        coefficients[0] = coefficients[0] + levels @ mean
        own = margin_of(design.t, design.response - levels, smooth=True)
        designs.append(ReleasedMean(name="s(t)", columns=(), along=own, own_penalties=no_penalties(1)))
        coefficients.append(mean)
    columns, left_out = {column.name: column for column in fit.columns}, design.groups.left_out(plan.weights)
    for i, term in enumerate(design.groups.terms):
        if term.name in left_out:
            continue
        at = design.groups.places(i, d - 1)
        designs.append(
            (WhiteDesign if term.separable else VaryingDesign)(
                name=term.name,
                columns=term.columns,
                along=along,
                own_penalties=no_penalties(at.size),
                term=term,
                located=tuple(columns[name] for name in term.columns),
                count=int(at.size),
                unmeasured=_unmeasured(regression, design, i) + _unlocated(regression, design, i, columns),
                everywhere=everywhere,
            )
        )
        coefficients.append(regression.coefficients[1 + at].ravel())
        places.append(1 + at)
    sigma2 = float(fit.residual_variance @ design.t_weights)
    form = LongForm(tuple(designs), design.t)
    means = np.zeros(form.size)
    means[0] = 1.0
    return AdditiveFit(
        form=form,
        coefficients=np.concatenate(coefficients),
        spread=_spread(regression, places, None if design.scalar else _levels(design), sigma2),
        information=_information(form, regression, design, places, plan.n),
        edf=_edf(form, regression, places),
        identified=np.ones(form.size, dtype=bool),
        smoothing_parameters=np.zeros(0),
        sigma2=sigma2,
        scale=sigma2,
        criterion=np.nan,
        rss=sigma2 * round(plan.n) * design.t.size,
        n=round(plan.n),
        n_rows=round(plan.n) * design.t.size,
        column_means=means,
    )


def _unmeasured(regression: Regression, design: PrivateDesign, term: int) -> FloatArray:
    """Prior variances (d, m) of a term's coefficients on all response functions; 0 of those that were measured.

    Their shares are those of the prior; the size of all is that of the coefficients that were measured.
    """
    variance = np.stack([np.diag(one) for one in regression.covariance], axis=1)
    if regression.pairs is not None:
        variance = regression.pairs.matrix(variance)
    found = regression.coefficients[1:] ** 2 + variance[1:]
    d, k = found.shape
    shares = np.outer(design.feature_shares**UNSEEN_POWER, design.response_shares)
    measured = np.zeros(shares.shape, dtype=bool)
    measured[:d, :k] = variance[1:] > 0
    own = design.groups.owner == term
    here = measured & own[:, None]
    size = found[here[:d, :k]].sum() / max(float(shares[here].sum()), TINY)
    return np.asarray(size * np.where(measured, 0.0, shares)[own])


def _unlocated(
    regression: Regression, design: PrivateDesign, term: int, columns: Mapping[str, Column]
) -> FloatArray | float:
    """Variances of a term's coefficients, as above, that come of numbers whose scale is not known.

    Where nothing was released of a number it may fill :data:`LEAST_PART` of its range only, and explain all of Y there.
    A scale that is off by the factor e^x makes the second moment of a feature, and so its coefficient, e^(2x).
    """
    own, kept = design.groups.terms[term], int((design.groups.owner == term).sum())
    errors = [c.error for c in (columns[name] for name in own.columns) if isinstance(c, NumberColumn)]
    if own.of_values or not errors:  # functions are found by splines, whatever the scale is
        return 0.0
    if math.isinf(max(errors)):
        all_of_y = regression.energy * UNIFORM_VARIANCE / LEAST_PART**2
        return np.asarray(np.outer(np.ones(kept), all_of_y * design.response_shares))
    k, at = regression.coefficients.shape[1], 1 + design.groups.places(term, len(regression.coefficients) - 1)
    out = np.zeros((kept, design.response_shares.size))
    beyond = max((2 * max(errors)) ** 2 - MOMENT_VARIANCE, 0.0)  # so much of it the posterior has already
    out[: at.size, :k] = math.expm1(beyond) * regression.coefficients[at] ** 2
    return out


def _margin(design: PrivateDesign, count: int) -> SmoothMargin:
    return (
        SmoothMargin.constant()
        if design.scalar
        else margin_of(design.t, np.ascontiguousarray(design.response[:, :count]), smooth=True)
    )


def _levels(design: PrivateDesign) -> FloatArray:
    """Means over t of the response functions, shape (m,)."""
    return design.t_weights @ design.response


def _spread(
    regression: Regression, places: list[IntArray], levels: FloatArray | None, scale: float
) -> FloatArray | ByFunction:
    """Posterior covariance of all coefficients over a scale: first those of the mean, constants among them.

    The intercept comes before them: `levels` times the mean's coefficients; None where the response is a number, whose
    constant is in one coefficient with the mean.
    """
    k, m = regression.coefficients.shape[1], regression.mean_variance.size
    order = np.concatenate([[0], *places]).astype(np.int64)
    turn = np.eye(m) if levels is None else np.vstack((levels, np.eye(m)))
    rest = (turn * (regression.mean_variance / scale)) @ turn.T
    if regression.pairs is None:
        blocks = np.ascontiguousarray(regression.covariance[:, order[:, None], order])
        return ByFunction(blocks, np.full(k, 1 / scale), np.zeros(order.size - 1), turn[:, :k], rest)
    every = regression.covariances[order][:, :, order] / scale
    head = rest + turn[:, :k] @ every[0, :, 0] @ turn[:, :k].T
    cross = turn[:, :k] @ every[0][:, 1:].reshape(k, -1)
    return np.block([[head, cross], [cross.T, every[1:][:, :, 1:].reshape(cross.shape[1], -1)]])


def _information(
    form: LongForm, regression: Regression, design: PrivateDesign, places: list[IntArray], n: float
) -> FloatArray | ByFunction:
    """Estimated products of the columns of the long form; white features are centred but for what was measured."""
    order = np.concatenate([[0], *places]).astype(np.int64)
    k, rows = regression.coefficients.shape[1], n * design.t.size
    first = form.size - (order.size - 1) * k
    head = np.eye(first) * rows
    if not design.scalar:  # the mean curve about its mean
        head[1:, 1:] -= np.outer(_levels(design), _levels(design)) * rows
    if regression.pairs is None:
        products = regression.second_moment[order[:, None], order]
        products[0] = products[:, 0] = 0.0
        return ByFunction(products[None], np.full(k, rows), np.zeros(order.size - 1), np.zeros((first, k)), head)
    slopes = regression.moments[order[1:]][:, :, order[1:]].reshape(form.size - first, -1) * rows
    return np.asarray(block_diag(head, slopes))


def _edf(form: LongForm, regression: Regression, places: list[IntArray]) -> FloatArray:
    """Degrees of freedom of each output, of pairs the mean of all, spread over the coefficients of its features."""
    slopes, k = sum(at.size for at in places), regression.coefficients.shape[1]
    out = np.ones(form.size)
    if slopes:
        of_outputs = np.tile(regression.edf, k // regression.edf.size) * regression.edf.size / k
        per = np.maximum(of_outputs - 1, 0.0) / slopes
        out[form.size - slopes * k :] = np.tile(per, slopes)
    return out


def importances(fit: PrivateFit | FamilyFit, design: PrivateDesign) -> dict[str, float]:
    """Share of the explained variance that each term has by itself, from released values; 0 where not afforded."""
    theta, moments = fit.regression.coefficients, fit.regression.moments
    own = []
    for i in range(len(design.groups.terms)):
        at = 1 + design.groups.places(i, len(theta) - 1)
        own.append(float(np.einsum("ik,ikjl,jl->", theta[at], moments[at][:, :, at], theta[at])))
    total = max(sum(own), TINY)
    return {term.name: max(v, 0.0) / total for term, v in zip(design.groups.terms, own, strict=True)}


# A private fit of one surface as any other: splines in the units of X, eigenfunctions of Y, from what was released.


def as_surface(fit: PrivateFit, design: PrivateDesign, plan: Plan) -> SurfaceFit:
    """Make the fitted surface of a private fit; post-processing, which costs no privacy.

    Parameters
    ----------
    fit : PrivateFit
    design : PrivateDesign
        The coordinates that it was made in.
    plan : Plan
    """
    white = design.only
    (column,) = fit.columns
    assert isinstance(column, CurvesColumn)
    term, length = white.in_units(column, design.s), design.s[-1] - design.s[0]  # weights on [0, 1] sum to one
    k = plan.n_outputs
    whitening = term.unturned(white.whitening[:, : plan.n_features - 1] / length)
    basis, axes, explained = _eigenbasis(fit, design, k)
    raw = (whitening @ fit.regression.coefficients[1:]) @ axes * math.sqrt(design.t[-1] - design.t[0])  # (p, K)
    return SurfaceFit(
        fit=as_terms(fit, design, plan),
        term=term,
        values=term.about_mean(term.values(raw), quadrature_weights(design.unit_s)),
        basis=basis,
        law=released_variance(fit, design),
        edf=(axes**2).T @ fit.regression.edf,
        smoothing_parameters=np.full((k, len(term.penalties)), np.nan),
        criterion=np.full(k, np.nan),
        noise_variance=fit.outside_variance,
        r2=1 - unexplained_variance(fit) / max(explained + unexplained_variance(fit), TINY),
        limited=True,
        plan=plan,
    )


def _eigenbasis(fit: PrivateFit, design: PrivateDesign, k: int) -> tuple[Eigenbasis, FloatArray, float]:
    """Eigenfunctions of Y after the fact: of its explained and its residual covariance together.

    Returns
    -------
    basis : Eigenbasis
    axes : ndarray of shape (K, K)
        Its functions on the first K response functions.
    explained : float
        Explained variance.
    """
    regression = fit.regression
    explained = regression.coefficients.T @ regression.second_moment @ regression.coefficients
    explained -= np.outer(regression.coefficients[0], regression.coefficients[0])
    values, axes = np.linalg.eigh(explained + fit.residual_covariance)
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    functions = (design.response[:, :k] @ axes).T
    signs = np.where(functions[np.arange(k), np.abs(functions).argmax(axis=1)] < 0, -1.0, 1.0)
    functions, axes = functions * signs[:, None], axes * signs
    t_length = design.t[-1] - design.t[0]
    total = values.sum() + fit.outside_variance
    mean = fit.y_location + design.response @ fit.mean + design.response[:, :k] @ regression.coefficients[0]
    basis = Eigenbasis(
        grid=design.t,
        weights=design.t_weights * t_length,
        mean=mean,
        functions=functions / math.sqrt(t_length),
        values=values * t_length,
        noise_variance=fit.outside_variance,
        explained_ratio=values / total,
    )
    return basis, axes, float(np.trace(explained))
