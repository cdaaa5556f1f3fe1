"""Mean curves of repeated curves: terms with bases of their own along t, smoothed, with errors that know of persons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.special import fdtrc, stdtrit

from fdadp._common.typing import ArrayLike, BoolArray, FloatArray
from fdadp.errors import InputError
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances
from fdadp.repeated.two_level_model import covariance_gradient, precisions_of, rotate
from fdadp.solve.form.long_form_design import System
from fdadp.solve.smoothing.penalized_least_squares import PenalizedLeastSquares

LEAST_NOISE = 1e-6
"""Share of the variance of rows that a search starts from at least, where rows of a person leave no noise."""


@dataclass(frozen=True, eq=False)
class MeanTerm:
    """Features with one basis along t: ``Σ_a x_a along(t)'β_a``.

    Attributes
    ----------
    mix : ndarray of shape (p, m)
        Its m features as combinations of those of the sums, of which the constant is the first where there is one.
    along : ndarray of shape (T, r)
    penalties : ndarray of shape (M, m r)
        Non-negative diagonals, coefficients of one feature after those of another; M may be 0.
    """

    mix: FloatArray
    along: FloatArray
    penalties: FloatArray

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.mix.shape[1] * self.along.shape[1])


def terms_on(sums: PersonSums, roughness: FloatArray | None = None) -> list[MeanTerm]:
    """One term for each feature on Φ itself; penalised by `roughness` (k,) of its columns if that is given."""
    none = np.zeros((0, sums.k)) if roughness is None else roughness[None, : sums.k]
    return [MeanTerm(mix, sums.phi, none) for mix in np.eye(sums.p)[:, :, None]]


@dataclass(frozen=True, eq=False)
class NormalOfTerms:
    """Normal equations of all terms, errors weighed by their covariance: q coefficients.

    Attributes
    ----------
    gram : ndarray of shape (q, q)
    right : ndarray of shape (q,)
    total : float
        ``y'V⁻¹y``.
    inside : tuple of ndarray of shape (k, r_m)
        ``Φ'along`` of each term.
    """

    gram: FloatArray
    right: FloatArray
    total: float
    inside: tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class Weighed:
    """Normal equations of a curve on Φ for each feature, errors weighed by their covariance.

    Beside loads of P coefficients both are flat: (p k + P, p k + P) and (p k + P,).

    Attributes
    ----------
    gram : ndarray of shape (p, k, p, k)
    right : ndarray of shape (p, k)
    total : float
        ``c'V⁻¹c`` of all coefficients c on Φ, about the shift of the sums.
    log_det : float
        Of their covariance V.
    """

    gram: FloatArray
    right: FloatArray
    total: float
    log_det: float


def weighed(sums: PersonSums, levels: LevelCovariances) -> Weighed:
    """Weigh by the two levels of a curve for each person: k models of one number each, turned back."""
    if sums.loads is not None:
        precisions, log_det = precisions_of(sums, levels.G, levels.R)
        return Weighed(*sums.moments.normal(precisions), log_det)
    at = rotate(sums, levels.G, levels.R)
    gram = np.einsum("lab,il,jl->aibj", at.normal, at.turn, at.turn, optimize=True)
    log_det = sums.n_rows * np.linalg.slogdet(levels.R)[1] - float((sums.persons @ np.log(at.weights)).sum())
    return Weighed(gram, (at.turn @ at.right).T, float(at.quadratic.sum()), float(log_det))


def normal_of_terms(
    sums: PersonSums,
    levels: LevelCovariances,
    terms: Sequence[MeanTerm],
    inner: Weighed | None = None,
    *,
    level: float = 0.0,
    parts: TermParts | None = None,
) -> NormalOfTerms:
    """Normal equations from sums: outside Φ errors are white, inside they are weighed.

    Blocks are ``F'F ⊗ along'(I - ΦΦ')along / σ² + (Φ'along)' W (Φ'along)``, W the weighed moments. They are those of
    the curves themselves, whatever was subtracted from these in the pass.

    Parameters
    ----------
    sums : PersonSums
    levels : LevelCovariances
    terms : sequence of MeanTerm
    inner : Weighed, optional
        W; default by the two levels of a curve for each person.
    level : float
        Taken off all curves, which keeps digits where they are far from 0. The terms must hold a constant then.
    parts : TermParts, optional
        Of terms beside loads.

    Raises
    ------
    InputError
        A basis that is not within Φ, where there is no noise outside (σ² = 0).
    """
    inner, parts = inner or weighed(sums, levels), parts or TermParts.of(sums, terms, level)
    precision = 1 / levels.noise_variance if levels.noise_variance > 0 else 0.0
    if precision == 0 and parts.beyond > 1e-8:
        raise InputError("terms must lie within the k functions where curves have no noise outside these")
    gram, right, total = parts.inside(inner)
    return NormalOfTerms(
        gram + precision * parts.gram,
        right + precision * parts.right,
        total + precision * parts.total,
        tuple(sums.phi.T @ term.along for term in terms),
    )


@dataclass(frozen=True, eq=False)
class TermParts:
    """What does not depend on covariances: the map of q coefficients to curves on Φ, and all that is outside of Φ.

    Attributes
    ----------
    onto : ndarray of shape (p k, q)
        Curves on Φ of the p features, and the coefficients of loads after them, of the coefficients.
    gram, right : ndarray of shape (q, q) and (q,)
        Normal equations outside of Φ, for white noise of variance 1.
    total : float
        Squares of the responses there.
    beyond : float
        Share of the bases' size that is there.
    shift : ndarray of shape (k,) or None
        What the pass took off the curves beyond the level, on Φ.
    """

    onto: FloatArray
    gram: FloatArray
    right: FloatArray
    total: float
    beyond: float
    shift: FloatArray | None

    @classmethod
    def of(cls, sums: PersonSums, terms: Sequence[MeanTerm], level: float) -> TermParts:
        """Of terms whose covariates are the same at all t."""
        xx, products, shift = sums.split(sums.total)[0], sums.products, sums.shift_y - level
        inside = [sums.phi.T @ term.along for term in terms]
        outside = [term.along - sums.phi @ part for term, part in zip(terms, inside, strict=True)]
        total = cls._squares(sums, shift)
        if sums.intercept:  # of the curves themselves, not about the shift
            products = products + np.outer(xx[:, 0], shift)
        pairs = list(zip(terms, outside, strict=True))
        gram = np.block([[np.kron(a.mix.T @ xx @ b.mix, o.T @ w) for b, w in pairs] for a, o in pairs])
        return cls(
            np.hstack([np.kron(term.mix, part) for term, part in zip(terms, inside, strict=True)]),
            gram,
            np.concatenate([(a.mix.T @ products @ o).ravel() for a, o in pairs]),
            total,
            max(float(np.abs(o).max() / np.abs(a.along).max()) for a, o in pairs),
            sums.phi.T @ shift if sums.intercept else None,
        )

    @staticmethod
    def _squares(sums: PersonSums, shift: FloatArray) -> float:
        """Of the responses outside of Φ, themselves and not about the shift."""
        if not sums.intercept:
            return sums.energy
        beyond = shift - sums.phi @ (sums.phi.T @ shift)
        return sums.energy + float(2 * beyond @ sums.products[0] + sums.n_rows * beyond @ beyond)

    @classmethod
    def beside_loads(cls, sums: PersonSums, onto: FloatArray, whole: System, level: float) -> TermParts:
        """Of terms beside loads: what least squares over all points has, less what is inside of Φ.

        Parameters
        ----------
        sums : PersonSums
        onto : ndarray of shape (p k + P, q)
        whole : System
            Normal equations of least squares of the q coefficients, of curves less the level.
        level : float
        """
        alike = np.tile(np.eye(sums.k), (1 + len(sums.sizes), 1, 1))
        beside = sums.shift_y - level
        shift = sums.phi.T @ beside if sums.intercept else None
        gram, right, _ = _mapped(Weighed(*sums.moments.normal(alike), 0.0), onto, shift)
        gram, right = whole.gram - gram, whole.cross - right
        share = float(np.trace(gram)) / max(float(np.trace(whole.gram)), 1e-300)
        return cls(onto, gram, right, cls._squares(sums, beside), share**0.5 if share > 1e-14 else 0.0, shift)

    def inside(self, inner: Weighed) -> tuple[FloatArray, FloatArray, float]:
        """Normal equations inside of Φ, of the curves less the level, and ``y'V⁻¹y`` there."""
        return _mapped(inner, self.onto, self.shift)


def _mapped(inner: Weighed, onto: FloatArray, shift: FloatArray | None) -> tuple[FloatArray, FloatArray, float]:
    """Normal equations in coefficients that make curves on Φ by `onto`, of curves above the shift on Φ."""
    right, total, gram = inner.right.ravel(), inner.total, inner.gram.reshape(len(onto), len(onto))
    if shift is not None:
        k = shift.size
        total += float(2 * shift @ right[:k] + shift @ gram[:k, :k] @ shift)
        right = right + gram[:, :k] @ shift
    return onto.T @ gram @ onto, onto.T @ right, total


def normal_within(inner: Weighed, mixes: Sequence[FloatArray], inside: Sequence[FloatArray]) -> NormalOfTerms:
    """Normal equations of terms whose bases the k functions hold.

    Parameters
    ----------
    inner : Weighed
    mixes : sequence of ndarray of shape (p, m)
        Features of each term.
    inside : sequence of ndarray of shape (k, r)
        Its basis in coefficients on the functions.
    """
    onto = np.hstack([np.kron(mix, part) for mix, part in zip(mixes, inside, strict=True)])
    return NormalOfTerms(*_mapped(inner, onto, None), tuple(inside))


@dataclass(frozen=True, eq=False)
class FixedEffects:
    """Mean curves ``β_a(t)`` of the p features.

    Attributes
    ----------
    terms : tuple of MeanTerm
    coefficients : ndarray of shape (q,)
    covariance : ndarray of shape (q, q)
        Bayesian where terms are penalised; or the sandwich by person.
    smoothing_parameters : ndarray of shape (M,)
    edf : float
    dof : ndarray of shape (p,)
        Student's degrees of freedom of each feature (:func:`degrees_of_freedom`).
    inside : tuple of ndarray of shape (k, r_m)
    """

    terms: tuple[MeanTerm, ...]
    coefficients: FloatArray
    covariance: FloatArray
    smoothing_parameters: FloatArray
    edf: float
    dof: FloatArray
    inside: tuple[FloatArray, ...]

    def design(self, features: FloatArray, *, on_phi: bool = False) -> FloatArray:
        """Rows that make curves of coefficients: (n, T, q) of features (n, p), or (n, k, q) in coordinates on Φ."""
        bases = self.inside if on_phi else tuple(term.along for term in self.terms)
        parts = [
            np.einsum("na,ti->ntai", features @ term.mix, basis).reshape(len(features), len(basis), -1)
            for term, basis in zip(self.terms, bases, strict=True)
        ]
        return np.concatenate(parts, axis=2)

    def curves(self) -> FloatArray:
        """β_a(t), shape (p, T)."""
        return np.asarray(self.design(np.eye(self.dof.size)) @ self.coefficients)

    def on_phi(self) -> FloatArray:
        """Coefficients of mean curves on Φ, shape (p, k)."""
        return np.asarray(self.design(np.eye(self.dof.size), on_phi=True) @ self.coefficients)

    def standard_errors(self) -> FloatArray:
        """Of β_a(t), shape (p, T)."""
        rows = self.design(np.eye(self.dof.size))
        return np.asarray(np.sqrt(np.einsum("ati,ij,atj->at", rows, self.covariance, rows, optimize=True)))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Pointwise limits of β_a(t) by Student's law, two of shape (p, T)."""
        half = np.asarray(stdtrit(self.dof, (1 + level) / 2))[:, None] * self.standard_errors()
        return self.curves() - half, self.curves() + half


def fixed_effects(
    sums: PersonSums,
    levels: LevelCovariances,
    terms: Sequence[MeanTerm] | None = None,
    *,
    smoothing_parameters: ArrayLike | None = None,
    se: str = "model",
) -> FixedEffects:
    """Mean curves by generalised least squares, penalties by REML with the errors' covariance known.

    Parameters
    ----------
    sums : PersonSums
    levels : LevelCovariances
    terms : sequence of MeanTerm, optional
        Default: each feature on Φ, without a penalty.
    smoothing_parameters : array_like of shape (M,), optional
    se : {"model", "person"}
        ``"person"``: sandwich of each person's score, times ``I / (I - p_b)`` with p_b features that are constant
        within persons. It needs sums with ``cross=True`` where features vary within persons.

    Raises
    ------
    InputError
        Terms that do not fit, or a sandwich that the sums do not hold.

    Notes
    -----
    Outside Φ the rows of a person count as independent and white: let Φ hold the bases of the terms.
    """
    terms = tuple(terms_on(sums) if terms is None else terms)
    normal = normal_of_terms(sums, levels, terms)
    penalised = PenalizedLeastSquares(
        normal.gram,
        normal.right,
        normal.total,
        sums.n_rows * max(len(sums.phi), 2),
        [term.penalties for term in terms],
        intercept=False,
        scale=1.0,
    )
    found = penalised.optimize()[0] if smoothing_parameters is None else penalised.solve(smoothing_parameters)
    out = FixedEffects(
        terms,
        found.coefficients,
        found.inverse,
        found.smoothing_parameters,
        found.edf_total,
        degrees_of_freedom(sums),
        normal.inside,
    )
    if se == "model":
        return out
    covariance = out.covariance @ _scatter_of_scores(sums, levels, out) @ out.covariance
    constant = int((~varying(sums)[0]).sum())
    factor = sums.n_persons / max(sums.n_persons - constant, 1)
    return FixedEffects(
        terms, out.coefficients, factor * covariance, out.smoothing_parameters, out.edf, out.dof, out.inside
    )


def varying(sums: PersonSums) -> tuple[BoolArray, BoolArray]:
    """Which features vary within persons, and which have other means for other persons; two of shape (p,)."""
    scale = np.diag(sums.total)[: sums.p]
    means = sums.means[:, : sums.p]
    own = np.sqrt(scale / sums.n_rows)
    return np.diag(sums.within)[: sums.p] > 1e-10 * scale, np.asarray(np.ptp(means, axis=0) > 1e-8 * own)


def degrees_of_freedom(sums: PersonSums) -> FloatArray:
    """Student's degrees of freedom of each feature, shape (p,).

    ``N - I - rank`` for features whose means are equal for all persons; else ``I - p_b``, with p_b features that are
    constant within persons: weights between rows and persons are estimated from as many persons.
    """
    within, between = varying(sums)
    persons = max(sums.n_persons - int((~within).sum()), 1)
    return np.where(within & ~between, float(max(sums.spare_rows, 1)), float(persons))


def _scatter_of_scores(sums: PersonSums, levels: LevelCovariances, effects: FixedEffects) -> FloatArray:
    """``Σ_i s_i s_i'`` of persons' scores, shape (q, q)."""
    for term, inside in zip(effects.terms, effects.inside, strict=True):
        if np.abs(term.along - sums.phi @ inside).max() > 1e-6 * np.abs(term.along).max():
            raise InputError("se='person' needs terms whose bases lie within the k functions, got one that does not")
    p, n, mean = sums.p, sums.counts, sums.means
    B = centred_on_phi(sums, effects)
    left = mean[:, p:] - mean[:, :p] @ B
    score = np.empty((sums.n_persons, p, sums.k))
    for size in sums.sizes:
        own = n == size
        weighed = np.linalg.solve(levels.R + size * levels.G, left[own].T).T
        score[own] = size * mean[own, :p, None] * weighed[:, None, :]
    if varying(sums)[0].any():
        if sums.cross is None:
            raise InputError("se='person' needs sums with cross=True: features vary within persons")
        inner = sums.cross - n[:, None, None] * mean[:, :p, None] * mean[:, None, :]
        score += (inner[:, :, p:] - inner[:, :, :p] @ B) @ np.linalg.inv(levels.R)
    both = zip(effects.terms, effects.inside, strict=True)
    own_scores = np.hstack([(term.mix.T @ score @ inside).reshape(len(score), -1) for term, inside in both])
    return np.asarray(own_scores.T @ own_scores)


def centred_on_phi(sums: PersonSums, effects: FixedEffects) -> FloatArray:
    """Coefficients (p, k) on Φ for curves about the shift of the sums."""
    B = effects.on_phi().copy()
    if sums.intercept:
        B[0] -= sums.shift_y @ sums.phi
    return B


@dataclass(frozen=True, eq=False)
class SlopesOfPersons:
    """Slope of one feature within persons less that between persons (Hausman; Mundlak).

    Attributes
    ----------
    column : int
    within, between : ndarray of shape (T,)
        The two slopes along t; mixed-model estimates are a weighted mean of both.
    statistic, p_value : float
        Wald statistic of their difference on the k functions, and its p value by Hotelling's law; NaN with too few
        persons.
    """

    column: int
    within: FloatArray
    between: FloatArray
    statistic: float
    p_value: float


def slopes_within_and_between(sums: PersonSums, levels: LevelCovariances) -> list[SlopesOfPersons]:
    """Compare both slopes of each feature that varies within and between persons: they differ under confounding.

    References
    ----------
    Hausman (1978), doi:10.2307/1913827; Mundlak (1978), doi:10.2307/1913646.
    """
    inner, outer = varying(sums)
    both = np.flatnonzero(inner & outer)
    if not both.size:
        return []
    at = rotate(sums, levels.G, levels.R)
    back = np.linalg.inv(at.turn)
    w_xx, w_xc, _ = sums.split(sums.within)
    within_inverse = np.linalg.pinv(w_xx, rcond=1e-10)
    inside = within_inverse @ w_xc
    keep = np.flatnonzero(outer | ~inner)  # columns that the means of persons identify
    normal = at.normal[:, keep[:, None], keep] - w_xx[np.ix_(keep, keep)]
    right = at.right[:, keep] - at.within[1][keep].T
    inverse = np.linalg.inv(normal)
    outside = np.einsum("lab,lb->la", inverse, right).T @ back
    free = sums.n_persons - keep.size - sums.k + 1
    found = []
    for column in both:
        place = int(np.searchsorted(keep, column))
        difference = inside[column] - outside[place]
        spread = within_inverse[column, column] * levels.R + (back.T * inverse[:, place, place]) @ back
        wald = float(difference @ np.linalg.solve(spread, difference))
        p_value = float("nan")
        if free > 0:
            p_value = float(fdtrc(sums.k, free, wald * free / (sums.k * (free + sums.k - 1))))
        found.append(SlopesOfPersons(int(column), sums.phi @ inside[column], sums.phi @ outside[place], wald, p_value))
    return found


def spline_levels(
    sums: PersonSums, terms: Sequence[MeanTerm], basis: FloatArray, penalty: FloatArray
) -> tuple[LevelCovariances, FixedEffects]:
    """``pffr``'s ``s(id, bs = "re")``: random splines with a ridge and a smoothness penalty, and white errors.

    ``G = (a I + b S)⁻¹`` in spline coefficients and ``R = σ² I``. Both penalties, σ² and those of the terms are found
    together by REML, as mgcv finds them. Errors are white: with smooth residuals standard errors are too small, and
    those of :func:`fixed_effects` at free covariances are to be preferred.

    Parameters
    ----------
    sums : PersonSums
        On functions that span the splines.
    terms : sequence of MeanTerm
    basis : ndarray of shape (T, k)
        Splines of persons.
    penalty : ndarray of shape (k, k)
        S.

    Raises
    ------
    InputError
        Splines that the functions of the sums do not span.

    References
    ----------
    Scheipl, Staicu & Greven (2015), doi:10.1080/10618600.2014.901914; Wood (2011).
    """
    turn = np.linalg.lstsq(basis, sums.phi, rcond=None)[0]
    if np.abs(basis @ turn - sums.phi).max() > 1e-8:
        raise InputError("basis must span the functions of the sums, got other splines")
    levels, found = white_levels(sums, terms, (turn.T @ turn, turn.T @ penalty @ turn))
    return levels, fixed_effects(sums, levels, terms, smoothing_parameters=found)


def white_levels(
    sums: PersonSums,
    terms: Sequence[MeanTerm],
    precisions: Sequence[FloatArray],
    *,
    keep: BoolArray | None = None,
    smoothing: FloatArray | None = None,
    level: float = 0.0,
    parts: TermParts | None = None,
) -> tuple[LevelCovariances, FloatArray]:
    """REML of curves of persons with ``G⁻¹ = Σ_j a_j Q_j`` and white errors, beside penalised terms.

    Parameters
    ----------
    sums : PersonSums
    terms : sequence of MeanTerm
    precisions : sequence of ndarray of shape (k, k)
        Q, in coefficients on Φ; their sum is positive definite.
    keep : ndarray of bool of shape (q,), optional
        Coefficients that the terms have; default all.
    smoothing : ndarray of shape (M,), optional
        Smoothing parameters of the terms over the noise variance. Default: found with the others.
    level, parts
        As in :func:`normal_of_terms`.

    Returns
    -------
    levels : LevelCovariances
        With ``R = σ² I``.
    smoothing : ndarray of shape (M,)
        Smoothing parameters of the terms, as precisions.
    """
    from scipy.optimize import minimize

    used = slice(None) if keep is None else keep
    diagonals = block_diag(*[term.penalties for term in terms])[:, used]
    points, free, J = sums.n_rows * len(sums.phi), len(diagonals) if smoothing is None else 0, len(precisions)
    parts = parts or TermParts.of(sums, terms, level)
    onto, shift = parts.onto[:, used], np.zeros(len(parts.onto))
    shift[: sums.k] = 0.0 if parts.shift is None else parts.shift

    def at(z: FloatArray) -> tuple[LevelCovariances, FloatArray]:
        own, noise = np.exp(z[free:-1]), float(np.exp(z[-1]))
        inverse = sum((a * Q for a, Q in zip(own, precisions, strict=True)), np.zeros((sums.k, sums.k)))
        found = np.exp(z[:free]) if smoothing is None else smoothing / noise
        return LevelCovariances(np.linalg.inv(inverse), noise * np.eye(sums.k), noise, 0.0), found

    def criterion(z: Any) -> Any:
        levels, factors = at(z)
        noise, inner = levels.noise_variance, weighed(sums, levels)
        gram, right, total = parts.inside(inner)
        gram, right = (gram + parts.gram / noise)[used][:, used], (right + parts.right / noise)[used]
        weights = factors @ diagonals
        V = np.linalg.inv(gram + np.diag(weights))
        beta = V @ right
        own = factors[:, None] * diagonals
        shares = np.divide(own, weights, out=np.zeros_like(own), where=weights > 0)
        in_terms = own @ (np.diag(V) + beta**2) - shares.sum(axis=1)
        d_g, d_r = covariance_gradient(sums, levels.G, levels.R, onto @ beta - shift, onto @ V @ onto.T)
        outside = parts.total - 2 * parts.right[used] @ beta
        outside += ((V + np.outer(beta, beta)) * parts.gram[used][:, used]).sum()
        in_noise = noise * np.trace(d_r) + points - sums.n_rows * sums.k - outside / noise
        in_noise -= 0.0 if smoothing is None else in_terms.sum()
        G = levels.G
        in_g = [-np.exp(a) * np.einsum("ij,ij->", G @ d_g @ G, Q) for a, Q in zip(z[free:-1], precisions, strict=True)]
        value = inner.log_det + (points - sums.n_rows * sums.k) * z[-1] - np.linalg.slogdet(V)[1]
        value += total + parts.total / noise - right @ beta - np.log(weights[weights > 0]).sum()
        return float(value) / points, np.concatenate((in_terms[:free], in_g, [in_noise])) / points

    noise = sums.noise_variance() or float(np.trace(sums.rows_scatter)) / sums.k / max(sums.spare_rows, 1)
    # A person's curve has about the variance that rows have on the functions.
    size = max(float(np.trace(sums.total[sums.p :, sums.p :])) / sums.n_rows / sums.k, 1e-100)
    noise = max(noise, LEAST_NOISE * size)  # no row beyond one a person, or rows that are alike
    scale = [sums.k / max(float(np.trace(Q)), 1e-300) / size / J for Q in precisions]
    start = np.concatenate((np.full(free, -np.log(noise)), np.log(scale), [np.log(noise)]))
    options: Any = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000, "maxfun": 4000}
    bounds = [(c - 20, c + 20) for c in start]
    found = minimize(criterion, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    levels, factors = at(found.x)
    return replace(levels, deviance=float(found.fun) * points, steps=int(found.nit)), factors
