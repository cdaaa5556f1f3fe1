"""Smoothing parameters by the exact squared error of curves, or of persons, that the fit does not know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.solve.errors.leave_one_out_residuals import Residuals
from fdadp.solve.errors.sandwich import PRIOR_PRECISION
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.observations import Observations, fit_terms
from fdadp.solve.form.families_by_name import FAMILIES
from fdadp.solve.form.long_form_design import LongForm, System
from fdadp.solve.smoothing.penalized_least_squares import LOG_RANGE
from fdadp.solve.smoothing.smoothing_search import Values, newton

AT_A_TIME = 2**20
"""Numbers of what curves say of coefficients that are worked on at once."""

ALONE = 1e-10
"""What a curve alone determines, it determines without residual: 1 less its leverage is not below this."""

SMOOTHER = 4.0
"""By how much more, in every log λ, the second start smooths than REML does."""

ENOUGH = 5e-3
"""Gradient of ``n/2 log V`` at which the search ends: what is left to gain is of no consequence."""

MOST = 2**27
"""Numbers of what curves say of coefficients that fit in memory."""


def fit_by_curves(
    form: LongForm,
    observed: Observations,
    groups: IntArray | None = None,
    n_unpenalized: int | None = None,
    believed: System | None = None,
) -> AdditiveFit:
    """Least squares with the smoothing parameters that predict curves, or whole persons, left out best.

    The search starts at REML's choice, and once more at smoother fits. The criterion of the fit is the squared error,
    per observation.

    Parameters
    ----------
    form : LongForm
    observed : Observations
        Of the Gaussian family.
    groups : ndarray of shape (n,) of int, optional
        Number of the person of each curve, of whom all curves are left out together.
    n_unpenalized, believed
        As of :func:`fdadp.solve.fit.observations.fit_terms`, for REML.

    Raises
    ------
    InputError
        Fewer than two curves, or persons.
    """
    family = FAMILIES["gaussian"]
    first = fit_terms(form, observed, family, "reml", n_unpenalized, believed)
    with one_blas_thread():
        residuals = Residuals.of(observed, observed.predictor(form, first.coefficients), family)
        left = CurvesLeftOut.of(first, residuals, groups)
        chosen = left.chosen(np.log(first.smoothing_parameters))
    fit = fit_terms(form, observed, family, np.exp(chosen), n_unpenalized) if form.n_penalties else first
    return replace(fit, criterion=left.error(chosen)[0] / fit.n_rows, hessian=None)


def changes_with_smoothing(fit: AdditiveFit, residuals: Residuals, groups: IntArray | None = None) -> FloatArray:
    """By how much coefficients of such a fit change without each curve, or person, smoothing chosen again, (G, p)."""
    left = CurvesLeftOut.of(fit, residuals, groups)
    out = np.zeros((left.n, fit.form.size))
    out[:, fit.identified] = left.changes(np.log(fit.smoothing_parameters))
    return out


@dataclass(frozen=True)
class CurvesLeftOut:
    """Squared error of curves without themselves in the fit, as a function of ``ρ = log λ``.

    Of a cluster g, a curve or all of a person's, U_g are its long-form rows in an orthonormal basis of what they span,
    and z_g its responses there. With ``A = G + Σ_j λ_j S_j`` and ``e_g = z_g - U_g β``, without any refit

        E_g = (I - U_g A⁻¹ U_g')⁻¹,   x_g = E_g e_g,   β_g = β - A⁻¹ U_g' x_g

    are the residuals and the coefficients without g, exactly, in the form of the whole fit: its knots, ranges and
    centring. The error is ``V = Σ_g |x_g|²`` and what lies outside of the basis. From ``dA⁻¹ = -λ_j A⁻¹ S_j A⁻¹``

        dx_g/dρ_j = λ_j E_g U_g A⁻¹ S_j β_g,   dV/dρ_j = 2 λ_j Σ_g (A⁻¹ U_g' E_g x_g)' S_j β_g,

    so one pass gives the value and all derivatives, whatever the number of smoothing parameters.

    Attributes
    ----------
    gram : ndarray of shape (p, p)
        G, of identified coefficients.
    cross : ndarray of shape (p,)
    penalties : ndarray of shape (M, p)
        Diagonals of the S_j.
    parts : list of (ndarray, ndarray)
        U of shape (k, r, p) and z of shape (k, r), of k clusters each.
    members : list of ndarray of int
        Numbers of these clusters.
    beyond : float
        What of the squares lies outside of the basis.
    """

    gram: FloatArray
    cross: FloatArray
    penalties: FloatArray
    parts: list[tuple[FloatArray, FloatArray]]
    members: list[IntArray]
    beyond: float

    @classmethod
    def of(cls, fit: AdditiveFit, residuals: Residuals, groups: IntArray | None = None) -> CurvesLeftOut:
        """Of a fit, what it left of the curves, and whose each curve is.

        Raises
        ------
        InputError
            Fewer than two curves, or persons.
        """
        clusters = np.arange(residuals.n) if groups is None else groups
        counts = np.bincount(clusters)
        if counts.size < 2:
            what = "curves" if groups is None else "persons"
            raise InputError(f"smoothing by {what} left out needs two {what} or more, got {counts.size}")
        if residuals.n * residuals.rank(fit.form) * fit.form.size > MOST:
            raise InputError(
                f"smoothing by curves left out needs fewer curves, or smaller bases, got {residuals.n:,} curves and "
                f"{fit.form.size} coefficients; say smoothing='reml'"
            )
        keep, beta = fit.identified, fit.coefficients.copy()
        if fit.form.has_intercept:
            beta[0] = 0.0  # of responses less the constant, of which fewer digits are lost
        squares = 0.0
        parts, members = [], []
        for own, numbers in _together(clusters, counts, residuals.rank(fit.form) * fit.form.size):
            u, e = residuals.loads(fit.form)(own.ravel())
            u, e = u.reshape(len(own), -1, fit.form.size)[:, :, keep], e.reshape(len(own), -1)
            if u.shape[1] > u.shape[2]:
                basis, u = np.linalg.qr(u)
                e = (e[:, None] @ basis)[:, 0]
            squares += float((e**2).sum())
            parts.append((u, e + u @ beta[keep]))
            members.append(numbers)
        weights = 1.0 if residuals.weights is None else residuals.weights
        total = float((weights * np.where(weights > 0, residuals.values, 0.0) ** 2).sum())
        cross = np.sum([np.einsum("krp,kr->p", *part) for part in parts], axis=0)
        penalties = fit.form.stacked_penalties[:, keep]
        return cls(fit.gram[np.ix_(keep, keep)], cross, penalties, parts, members, max(total - squares, 1e-300))

    @property
    def n(self) -> int:
        """Number of clusters."""
        return sum(len(numbers) for numbers in self.members)

    def error(self, log_sp: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """V, its gradient (M,), and ``J'J`` (M, M), ``J = dx/dρ``: half of its Hessian as Gauss and Newton take it."""
        heavy = np.exp(log_sp)[:, None] * self.penalties
        value, push, bent = self.beyond, np.zeros(len(self.cross)), np.zeros((len(heavy),) * 2)
        for one in self._without(heavy):
            value += float((one.left**2).sum())
            push += (one.pulled * one.coefficients).sum(axis=0)
            slopes = one.slopes(heavy).reshape(-1, len(heavy))
            bent += slopes.T @ slopes
        return value, 2 * heavy @ push, bent

    def chosen(self, log_sp: FloatArray) -> FloatArray:
        """Where V is least, of what Newton's method finds from REML's choice and from smoother fits."""
        if not log_sp.size:
            return log_sp
        own = self.gram.diagonal()
        least = 1e-16 * float(own.max(initial=0.0)) or 1.0
        sizes = [max(float(own[d > 0].sum()), least) / (float(d.sum()) or 1.0) for d in self.penalties]
        centre = np.log(np.array(sizes))
        bounds = centre - LOG_RANGE, centre + LOG_RANGE
        starts = np.clip(np.stack((log_sp, log_sp + SMOOTHER)), *bounds)
        values, ends = newton(self._scores, starts, np.zeros(2, dtype=np.int64), bounds, ENOUGH)
        return np.asarray(ends[values.argmin()])

    def _scores(self, log_sp: FloatArray, _: IntArray) -> Values:
        """``n/2 log V``, curved as a log-likelihood is."""
        values, gradients, bent = (np.array(each) for each in zip(*map(self.error, log_sp), strict=True))
        own = self.n / values[:, None]
        return self.n / 2 * np.log(values), own / 2 * gradients, own[:, None] * bent

    def changes(self, log_sp: FloatArray) -> FloatArray:
        """By how much coefficients (of those identified) change without each cluster, smoothing chosen again, (n, p).

        To first order. With the Hessian ``H = n J'J / V`` of ``n/2 log V``, log λ moves by ``-(H + P)⁻¹`` times what
        :meth:`pushes` says, P as for REML (:data:`fdadp.solve.errors.sandwich.PRIOR_PRECISION`).
        """
        heavy = np.exp(log_sp)[:, None] * self.penalties
        value, _, bent = self.error(log_sp)
        fixed, pushes = self.pushes(log_sp)
        size, axes = np.linalg.eigh(self.n / value * bent)
        curvature = (axes / (np.maximum(size, 0.0) + PRIOR_PRECISION)) @ axes.T
        inverse = self._inverse(heavy)
        along = (heavy * (inverse @ self.cross)) @ inverse  # -dβ/dρ
        return np.asarray(fixed - pushes @ curvature @ along)

    def pushes(self, log_sp: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Without each cluster: changes ``u_g = β - β_g`` at the same smoothing, and the gradient of ``n/2 log V``.

        The gradient (n, M) at a minimum of V lacks the cluster's own part, and has what the cluster does to the errors
        of all others: ``n/V ∂(q'u_g - x_g'E_g U_g u_g - |x_g|²/2)/∂ρ``, ``q = Σ_h U_h'E_h x_h``. That the leverages of
        others grow is left out; so pushes are rather too large.
        """
        heavy = np.exp(log_sp)[:, None] * self.penalties
        inverse, every = self._inverse(heavy), list(self._without(heavy))
        q = np.sum([one.score.sum(axis=0) for one in every], axis=0)
        q_slopes = np.sum([one.score_slopes(heavy, sums=True) for one in every], axis=0)  # (M, p)
        value = self.beyond + float(sum((one.left**2).sum() for one in every))
        pushes, fixed = np.empty((self.n, len(heavy))), np.empty((self.n, len(self.cross)))
        for numbers, one in zip(self.members, every, strict=True):
            slopes, u = one.slopes(heavy), one.change
            du = slopes.swapaxes(1, 2) @ one.moved - (heavy[None] * u[:, None]) @ inverse  # du/dρ, (k, M, p)
            others = ((q_slopes - one.score_slopes(heavy)) @ u[:, :, None])[:, :, 0]
            others += (du @ (q - one.score)[:, :, None])[:, :, 0]
            own = (one.left[:, None] @ slopes)[:, 0]
            pushes[numbers], fixed[numbers] = self.n / value * (others - own), u
        return fixed, pushes

    def _inverse(self, heavy: FloatArray) -> FloatArray:
        a = self.gram + np.diag(heavy.sum(axis=0))
        size = np.sqrt(np.maximum(a.diagonal(), 1e-300))
        return np.asarray(np.linalg.inv(a / size / size[:, None]) / size / size[:, None])

    def _without(self, heavy: FloatArray) -> Iterator[Without]:
        inverse = self._inverse(heavy)
        beta = inverse @ self.cross
        for u, z in self.parts:
            moved = (u.reshape(-1, u.shape[2]) @ inverse).reshape(u.shape)
            unlike = (1 + ALONE) * np.eye(u.shape[1]) - moved @ u.swapaxes(1, 2)
            spread = np.asarray(np.linalg.inv(unlike), dtype=np.float64)
            left = (spread @ (z - u @ beta)[:, :, None])[:, :, 0]
            change = (left[:, None] @ moved)[:, 0]
            turned = (spread @ left[:, :, None])[:, :, 0]
            yield Without(u, moved, spread, left, turned, change, beta - change)


@dataclass(frozen=True)
class Without:
    """Of k clusters, the fits without them.

    Attributes
    ----------
    u, moved : ndarray of shape (k, r, p)
        U and ``U A⁻¹``.
    spread : ndarray of shape (k, r, r)
        E.
    left, turned : ndarray of shape (k, r)
        x and ``E x``.
    change, coefficients : ndarray of shape (k, p)
        ``β - β_g`` and β_g.
    """

    u: FloatArray
    moved: FloatArray
    spread: FloatArray
    left: FloatArray
    turned: FloatArray
    change: FloatArray
    coefficients: FloatArray

    @property
    def score(self) -> FloatArray:
        """``U' E x``, shape (k, p)."""
        return np.asarray((self.turned[:, None] @ self.u)[:, 0])

    @property
    def pulled(self) -> FloatArray:
        """``A⁻¹ U' E x``, shape (k, p)."""
        return np.asarray((self.turned[:, None] @ self.moved)[:, 0])

    def slopes(self, heavy: FloatArray) -> FloatArray:
        """``dx/dρ``, shape (k, r, M)."""
        return np.asarray(self.spread @ (self.moved @ (heavy.T[None] * self.coefficients[:, :, None])))

    def score_slopes(self, heavy: FloatArray, *, sums: bool = False) -> FloatArray:
        """``d(U'E x)/dρ``, shape (k, M, p); or its sum over the clusters, (M, p)."""
        pulled = self.moved @ (heavy.T[None] * self.pulled[:, :, None])  # U A⁻¹ λS A⁻¹ U'E x, (k, r, M)
        both = self.spread @ (self.slopes(heavy) - pulled)
        if sums:
            return np.asarray(np.einsum("krj,krp->jp", both, self.u, optimize=True))
        return np.asarray(both.swapaxes(1, 2) @ self.u)


def _together(clusters: IntArray, counts: IntArray, size: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows (k, c) of k clusters of c curves each, and the numbers of these clusters; a few at a time."""
    order = np.argsort(clusters, kind="stable")
    starts = np.cumsum(counts) - counts
    for count in np.unique(counts[counts > 0]):
        numbers = np.flatnonzero(counts == count)
        step = max(AT_A_TIME // (size * int(count)), 1)
        for first in range(0, len(numbers), step):
            few = numbers[first : first + step]
            yield order[starts[few][:, None] + np.arange(count)], few
