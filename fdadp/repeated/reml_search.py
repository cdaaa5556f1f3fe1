"""Covariances of persons and of rows by REML: moments as a start, L-BFGS over factors; how many functions to take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from fdadp._common.symmetric_matrices import positive_part
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import IdentificationWarning, InputError
from fdadp.repeated.person_sums import LEAST_K, PersonSums
from fdadp.repeated.two_level_model import deviance_and_gradient

SMOOTHED = 1e-8
"""Directions along t that have less than this share of the largest variance within persons are not there."""
WHITE = 1.15
"""Of dropped functions beside what lies outside all: above it what is called white noise is not white."""
ALIKE, ROUNDING = 1e-12, 1e-14
"""Rows of persons that differ by less than this share of all variance, or of the curves' size, are alike."""
STEP = 1.25
"""Ratio of neighbouring numbers of functions that are tried."""


@dataclass(frozen=True, eq=False)
class LevelCovariances:
    """Covariances of persons and rows in coefficients on Φ.

    Attributes
    ----------
    G : ndarray of shape (k, k)
        Of persons; positive semi-definite.
    R : ndarray of shape (k, k)
        Of rows, the white noise among it: ``R = Φ'K_wΦ + σ² I``; positive definite.
    noise_variance : float
        σ², from what curves have outside Φ; 0 if nothing.
    deviance : float
        -2 log restricted likelihood (of the coefficients, without constants) at these.
    restricted : bool
    steps : int
        Iterations of the search.
    """

    G: FloatArray
    R: FloatArray
    noise_variance: float
    deviance: float
    restricted: bool = True
    steps: int = 0

    @property
    def smooth_rows(self) -> FloatArray:
        """``R - σ² I``, cut at 0: covariance of the smooth part of rows."""
        return positive_part(self.R - self.noise_variance * np.eye(len(self.R)))

    def ratios(self) -> tuple[FloatArray, FloatArray]:
        """Variances of persons over those of rows λ (k,), and coordinates P (k, k): ``G P = R P Λ``, ``P'RP = I``."""
        ratios, turn = eigh(self.G, self.R)
        return np.maximum(ratios, 0.0), turn

    def shrinkage(self, n: int) -> FloatArray:
        """``G (G + R/n)⁻¹``: what a mean residual of n rows counts for; shape (k, k)."""
        ratios, turn = self.ratios()
        return np.asarray((np.linalg.inv(turn).T * (n * ratios / (1 + n * ratios))) @ turn.T)

    def posterior(self, n: int) -> FloatArray:
        """Covariance of a person's effect given n rows, mean curves known; shape (k, k). G for n = 0."""
        ratios, turn = self.ratios()
        back = np.linalg.inv(turn)
        return np.asarray((back.T * (ratios / (1 + n * ratios))) @ back)

    def open(self, designs: FloatArray) -> FloatArray:
        """Covariance of q functions of a person given rows of ``Z'Z`` (E, q, q), mean curves known; (E, q k, q k)."""
        size, inverse = len(self.G), np.linalg.inv(self.R)
        J = np.einsum("eab,ij->eaibj", designs, inverse).reshape(len(designs), size, size)
        return np.asarray(np.linalg.solve(np.eye(size) + self.G @ J, np.broadcast_to(self.G, J.shape)))


def check_varied(sums: PersonSums, name: str = "re(id)") -> None:
    """Refuse rows that tell no two levels apart: of one person, one a person, or all alike within each.

    Raises
    ------
    InputError
        With `name`. What differs by rounding alone is alike.
    """
    check_two_levels(sums.counts, name)
    alike = ALIKE * float(np.trace(sums.split(sums.total)[2]))
    rounded = ROUNDING**2 * sums.n_rows * float(((sums.shift_y @ sums.phi) ** 2).sum())
    if float(np.trace(sums.rows_scatter)) <= alike + rounded:
        raise InputError(
            f"{name}: the rows of each person are all alike, so the two levels are not identified; keep one row "
            "a person"
        )


def check_two_levels(rows: IntArray, name: str = "re(id)") -> None:
    """Refuse one person, and one row a person, by the numbers of rows (I,); raises InputError with `name`."""
    if rows.size < 2:
        raise InputError(f"{name}: rows of at least 2 people are needed, got those of {rows.size}")
    if rows.max() == 1:
        raise InputError(
            f"{name}: all {rows.size:,} people have one row, so the two levels are not identified; use errors='curve'"
        )


def check_identified(sums: PersonSums, name: str = "re(id)") -> None:
    """Refuse rows that do not identify the covariance of rows: -2 REML has no minimum below ``N - I - rank >= k``.

    Raises
    ------
    InputError
        With `name`, the number of functions and how many rows they need.

    Warns
    -----
    IdentificationWarning
        Fewer than two contrasts a function.
    """
    check_varied(sums, name)
    spare, rank, k = sums.spare_rows, sums.rank_within, sums.k
    varying = f"k and the {rank} feature{'s that vary' if rank != 1 else ' that varies'} within people"
    message = f"{name}: k={k} needs at least {k + rank} rows beyond one a person ({varying}), got {spare + rank}"
    if spare < k:
        raise InputError(message)
    if spare < 2 * k:
        warnings.warn(
            f"{message}: below {2 * k + rank} the covariance of rows is little more than a guess; take fewer functions",
            IdentificationWarning,
            stacklevel=3,
        )


def moment_covariances(sums: PersonSums) -> tuple[FloatArray, FloatArray]:
    """Unbiased moments G and R (k, k); negative eigenvalues of G beside R are raised to 1e-3.

    They are REML where all persons have n rows, features do not vary within persons, and no eigenvalue was negative.

    References
    ----------
    Amemiya (1985), What should be done when an estimated between-group covariance matrix is not nonnegative definite?,
    The American Statistician 39, doi:10.1080/00031305.1985.10479409.
    """
    R = sums.rows_scatter / max(sums.spare_rows, 1)
    Q = sums.about_features(sums.between.sum(axis=0))
    rows, persons = sums.n_rows, sums.n_persons
    mean_rows = (rows - float(sums.persons @ sums.sizes**2) / rows) / max(persons - 1, 1)
    values, P = eigh((Q / max(persons - sums.p, 1) - R) / max(mean_rows, 1e-12), R)
    back = np.linalg.inv(P)
    return (back.T * np.maximum(values, 1e-3)) @ back, R


def level_covariances(
    sums: PersonSums,
    *,
    restricted: bool = True,
    rank: int | None = None,
    tolerance: float = 1e-9,
    name: str = "re(id)",
) -> LevelCovariances:
    """REML of both covariances, G of any rank, by L-BFGS over their factors.

    Parameters
    ----------
    sums : PersonSums
    restricted : bool
        False: maximum likelihood.
    rank : int, optional
        Largest rank of G, default k.
    tolerance : float
        Of the gradient a row.
    name : str
        The term's, for messages.

    Raises
    ------
    InputError
        Too few rows beyond one a person (:func:`check_identified`), or curves without variation within persons.
    """
    check_identified(sums, name)
    k, q = sums.k, rank or sums.k
    try:
        start_g, start_r = moment_covariances(sums)
        root = np.asarray(np.linalg.cholesky(start_r), dtype=np.float64)
        values, P = eigh(start_g, start_r)
    except np.linalg.LinAlgError as exc:
        raise InputError(
            f"{name}: the curves vary within people along fewer than k={k} functions, as smoothed curves do; take "
            "fewer, or leave k out"
        ) from exc
    largest = (np.linalg.inv(P).T * np.sqrt(np.maximum(values, 1e-4)))[:, ::-1][:, :q]

    def criterion(between: Sequence[FloatArray], of_rows: FloatArray) -> tuple[float, list[FloatArray], FloatArray]:
        value, d_g, d_r = deviance_and_gradient(sums, between[0], of_rows, restricted=restricted)
        return value, [d_g], d_r

    (G,), R, value, steps = over_factors(criterion, root, [np.linalg.solve(root, largest)], sums.n_rows, tolerance)
    return LevelCovariances(G, R, sums.noise_variance(), value, restricted, steps)


def over_factors(
    criterion: Callable[[Sequence[FloatArray], FloatArray], tuple[float, list[FloatArray], FloatArray]],
    root: FloatArray,
    starts: Sequence[FloatArray],
    rows: int,
    tolerance: float,
) -> tuple[list[FloatArray], FloatArray, float, int]:
    """Minimise a criterion over covariances ``L a a'L'`` between, which may be singular, and ``R = L C C'L'`` of rows.

    Parameters
    ----------
    criterion : callable
        Value and derivatives in the covariances between (q k, q k), and in R (k, k).
    root : ndarray of shape (k, k)
        L, a Cholesky factor of R's start; between, one such block for each of q functions.
    starts : sequence of ndarray of shape (q k, m)
        a of each covariance between.
    rows : int
        The criterion is divided by their number.
    tolerance : float

    Returns
    -------
    between : list of ndarray
    R : ndarray of shape (k, k)
    value : float
    steps : int
    """
    from scipy.optimize import minimize

    k = len(root)
    triangle, ends = np.tril_indices(k), np.cumsum([start.size for start in starts])
    wide = [np.kron(np.eye(len(start) // k), root) for start in starts]

    def factors(z: FloatArray) -> tuple[list[FloatArray], FloatArray]:
        lower = np.zeros((k, k))
        lower[triangle] = z[ends[-1] :]
        parts = np.split(z[: ends[-1]], ends[:-1])
        return [w @ part.reshape(a.shape) for w, part, a in zip(wide, parts, starts, strict=True)], root @ lower

    def objective(z: Any) -> Any:
        own, of_r = factors(z)
        try:
            value, d_own, d_r = criterion([a @ a.T for a in own], of_r @ of_r.T)
        except np.linalg.LinAlgError:  # a step to a singular R
            return 1e300, np.zeros_like(z)
        gradients = [(2 * w.T @ d @ a).ravel() for w, d, a in zip(wide, d_own, own, strict=True)]
        return value / rows, np.concatenate((*gradients, (2 * root.T @ d_r @ of_r)[triangle])) / rows

    options: Any = {"maxiter": 3000, "maxfun": 6000, "maxcor": 40, "ftol": 1e-15, "gtol": tolerance}
    first = np.concatenate((*(start.ravel() for start in starts), np.eye(k)[triangle]))
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options=options)
    own, of_r = factors(found.x)
    return [a @ a.T for a in own], of_r @ of_r.T, float(found.fun) * rows, int(found.nit)


@dataclass(frozen=True, eq=False)
class ChosenFunctions:
    """How many functions were taken, and why.

    Attributes
    ----------
    sums : PersonSums
        On the functions that were taken.
    bic : dict of int to float
        Criterion of each number tried; empty for curves without noise.
    whiteness : float or None
        Mean variance within persons of the first four functions left out, over that outside all; 1 if that is white.
    smoothed : bool
        Whether curves have no noise outside the functions, so that only the directions that vary were kept.
    """

    sums: PersonSums
    bic: dict[int, float]
    whiteness: float | None
    smoothed: bool


def without_empty_directions(sums: PersonSums) -> tuple[PersonSums, bool]:
    """Turn to the directions that vary within persons; whether that was needed (smoothed curves)."""
    values, vectors = np.linalg.eigh(sums.rows_scatter)
    keep = values > SMOOTHED * values[-1]
    if keep.all() or values[-1] <= 0:
        return sums, False
    return sums.turned(vectors[:, keep][:, ::-1]), True


def choose_functions(sums: PersonSums, *, name: str = "re(id)") -> ChosenFunctions:
    """Take the number k of functions of least BIC, from sums on the first K.

    ``-2 log L + log N · {k (k + 1) + k p}``, with the likelihood of all T points: outside the first k functions rows
    are white. Numbers grow by a quarter each until three in a row do no better.

    Parameters
    ----------
    sums : PersonSums
        On K functions from smooth to rough.

    Raises
    ------
    InputError
        Too few rows for the smallest number of functions.

    Warns
    -----
    IdentificationWarning
        The functions left out vary more than what lies outside all: noise is not white, and takes from the rows.
    """
    check_varied(sums, name)
    sums, turned = without_empty_directions(sums)
    if turned or sums.noise_variance() == 0:
        return ChosenFunctions(sums, {}, None, True)
    check_identified(sums.first(min(LEAST_K, sums.k)), name)
    bic: dict[int, float] = {}
    most = min(sums.k, sums.spare_rows)
    tried = sorted({min(round(LEAST_K * STEP**i), most) for i in range(40)})
    for k in tried:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentificationWarning)
            bic[k] = _bic(sums.first(k), name)
        if len(bic) > 3 and min(list(bic.values())[-3:]) > min(bic.values()):
            break
    best = min(bic, key=lambda k: bic[k])
    return ChosenFunctions(sums.first(best), bic, whiteness_of(sums, best), False)


def _bic(sums: PersonSums, name: str) -> float:
    found = level_covariances(sums, restricted=False, tolerance=1e-6, name=name)
    outside = sums.n_rows * (len(sums.phi) - sums.k) * (np.log(found.noise_variance) + 1)
    return float(found.deviance + outside + np.log(sums.n_rows) * sums.k * (sums.k + 1 + sums.p))


def whiteness_of(sums: PersonSums, k: int) -> float | None:
    """Variance within persons of four functions after the first k, over that outside all; None if there are none."""
    noise = sums.noise_variance()
    if k >= sums.k or noise <= 0:
        return None
    left = np.diag(sums.rows_scatter) / max(sums.spare_rows, 1)
    return float(left[k : k + 4].mean() / noise)


def warn_of_rough_rows(whiteness: float | None, k: int) -> None:
    """Say that what lies outside the functions is not white noise; an IdentificationWarning."""
    if whiteness is not None and whiteness > WHITE:
        warnings.warn(
            f"beyond the k={k} functions curves vary {whiteness:.2f} times as much as white noise would: part of the "
            "smooth variation of rows is called noise, and the ICC without noise is too large",
            IdentificationWarning,
            stacklevel=3,
        )
