"""Sources of noise for integer sums: OpenDP for releases, seeded NumPy for simulations.

Both have one interface: ``prepare(kind, size, sensitivity, amount)`` fixes the scale and checks OpenDP's privacy map
against the amount **before** any data are read; the sampler that it returns is called once with the exact integers.

========== ================ ======= ==========================================================================
kind       measure          norm    mechanism and its cost
========== ================ ======= ==========================================================================
gaussian   zCDP (ρ), GDP    L2      discrete Gaussian, ρ = Δ²/(2 scale²) (Canonne, Kamath & Steinke 2020); in Gaussian
                                    DP μ²/2 = Δ²/(2 (scale² - 16)), the amount (``docs/theory/gaussian-dp.md``)
laplace    pure (ε)         L1      discrete Laplace, ε = Δ/scale (Ghosh, Roughgarden & Sundararajan 2012)
gumbel     zCDP (ρ)         L∞      index of the largest + Gumbel: the exponential mechanism, ε = 2Δ/scale of bounded
                                    range, hence ρ = ε²/8 = ½ (Δ/scale)² (Dong, Durfee & Rogers 2020, Lemma 3.2)
exponential pure (ε)        L∞      index of the largest + exponential: permute-and-flip, ε = 2Δ/scale (McKenna &
                                    Sheldon 2020)
spherical  pure (ε)         L2      density ∝ exp(-|b|₂/scale), ε = Δ/scale, rounded (Chaudhuri & Monteleoni 2008):
                                    the product law of one column; for the linear term of objective perturbation
product,   pure (ε)         nuclear matrix Laplace noise on a matrix, and on the upper triangle of a symmetric one, of
symmetric                           which neighbours differ by a nuclear norm of Δ: ε = Δ/scale (``_matrix_noise``)
bingham    pure (ε)         range   direction u with density ∝ exp(u'Su/scale), S from the integers; a score of range Δ
                                    between neighbours costs ε = Δ/scale (Chaudhuri, Sarwate & Sinha 2013)
bingham-   zCDP (ρ)         range   the same, ρ = (Δ/scale)²/8
zcdp
wishart    ν degrees        L2²     Δ · Wishart(ν + p - 1, I_p), for (ε, δ) by itself (``_matrix_noise``); the amount
                                    stands for ν = 1/(4 amount), the ρ of Gaussian noise of the same scale √(2ν) Δ
========== ================ ======= ==========================================================================

L∞ is up to a constant that is added to all sums, which changes no selection (:meth:`fdadp.privacy.Cohort.select`).
OpenDP has none of those from spherical noise on: matrix Laplace noise is exact here
(:mod:`fdadp.privacy.noise._matrix_noise`), Wishart noise is within a distance of its law that is counted in δ, and
:mod:`fdadp.privacy.noise._matrix_noise` says what is not proved of its draws. One table for all, and the rule that
ledgers follow: ``docs/theory/noise.md#exactness``.
"""

from __future__ import annotations

import decimal
import functools
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.account.epsilon_mu_rho import LATTICE_VARIANCE, opendp
from fdadp.privacy.noise import _matrix_noise as matrices
from fdadp.privacy.noise._matrix_noise import Drawn, MatrixLaplace

SELECTIONS = ("gumbel", "exponential")
DIRECTIONS = ("bingham", "bingham-zcdp")
MATRICES = ("product", "symmetric")
KINDS = ("gaussian", "laplace", "spherical", "wishart", *MATRICES, *SELECTIONS, *DIRECTIONS)
NOT_PROVED = "not proved"
"""That a draw has the law of its noise: its ledger is not for release (``docs/theory/noise.md#exactness``)."""
DRAWS = dict.fromkeys(KINDS, "exact") | {
    "wishart": f"within {matrices.WISHART_DISTANCE:g}, counted in delta",
    **dict.fromkeys(DIRECTIONS, NOT_PROVED),
}
"""How near to its law each kind is drawn for a release."""
_SLACK = 1 + 1e-9
"""Factor on the scale, so that rounding in OpenDP's map cannot carry it above the amount."""
_LARGEST = 2.0**57
"""Scale above which noise on int64 sums would saturate."""


@dataclass(frozen=True)
class Sampler:
    """Noise of a fixed scale, for one release.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    size : int
        Number of integers that it takes; a selection returns one, a direction in d dimensions d from a triangle of
        d (d + 1)/2, the others as many.
    sensitivity : float
        In units of the integers, in the norm of the kind.
    amount : float
        ρ or ε that may be spent.
    spent : float
        The privacy map at the sensitivity, at most ``amount``.
    scale, sd : float
        Scale parameter and standard deviation, in units of the integers; "symmetric": of the diagonal, and 1/√2 of it
        elsewhere.
    columns : int
        Of the matrix that the integers are, row by row ("symmetric": of which they are the upper triangle).
    matrix : callable, optional
        Matrix Laplace noise alone, with what it was made of: for audits, which release its sum themselves.
    guaranteed : float, optional
        Scale that the guarantee rests on, where more owners deliver their shares than it takes; default ``scale``.
    known : ndarray of int64, optional
        The release itself, where it is public already (see :mod:`fdadp.privacy.noise.distributed`): no row is read for
        it.
    """

    kind: str
    size: int
    sensitivity: float
    amount: float
    spent: float
    scale: float
    draw: Callable[[IntArray], IntArray] = field(repr=False)
    known: IntArray | None = field(default=None, repr=False)
    columns: int = 1
    matrix: Callable[[], Drawn] | None = field(default=None, repr=False)
    guaranteed: float | None = None

    @property
    def sd(self) -> float:
        """Standard deviation of the noise on each value."""
        if self.kind in MATRICES:
            return self.scale * matrix_law(self.kind, self.size, self.columns).sd
        unit = {"laplace": math.sqrt(2), "gumbel": math.pi / math.sqrt(6), "spherical": math.sqrt(self.size + 1)}
        return self.scale * unit.get(self.kind, 1.0)  # of directions, which are no additive noise: that of the score

    def __call__(self, exact: IntArray) -> IntArray:
        """Release: exact integers in, noisy integers (or the index of the selected one) out."""
        return self.draw(exact)


class Noise(Protocol):
    """What the kernel asks of a source of noise."""

    @property
    def description(self) -> str:
        """For the ledger."""

    def prepare(self, kind: str, size: int, sensitivity: float, amount: float, columns: int = 1) -> Sampler:
        """Fix the scale for one release and check its cost; reads no data."""


def matrix_law(kind: str, size: int, columns: int) -> MatrixLaplace:
    """Law of matrix Laplace noise on so many integers."""
    rows = columns if kind == "symmetric" else size // columns
    if columns < 1 or size != (rows * (rows + 1) // 2 if kind == "symmetric" else rows * columns):
        raise PrivacyError(f"size must be that of a matrix of {columns} columns, got {size}")
    return MatrixLaplace(rows, columns, kind == "symmetric")


def analytic_scale(kind: str, sensitivity: float, amount: float) -> float:
    """Smallest scale that spends at most the amount, a hair above to absorb rounding."""
    if kind == "bingham-zcdp":
        return sensitivity / math.sqrt(8 * amount) * _SLACK
    if kind == "gaussian":
        return math.hypot(sensitivity / math.sqrt(2 * amount), math.sqrt(LATTICE_VARIANCE)) * _SLACK
    rate = sensitivity / (math.sqrt(2 * amount) if kind in ("gumbel", "wishart") else amount)
    return rate * _SLACK * (2 if kind == "exponential" else 1)


def analytic_cost(kind: str, sensitivity: float, scale: float) -> float:
    """ρ or ε of one release."""
    rate = sensitivity / scale
    zcdp = dict.fromkeys(("gaussian", "gumbel", "wishart"), rate**2 / 2)
    return {**zcdp, "exponential": 2 * rate, "bingham-zcdp": rate**2 / 8}.get(kind, rate)


def _validate(kind: str, size: int, sensitivity: float, amount: float) -> float:
    if kind not in KINDS:
        raise PrivacyError(f"kind of noise must be one of {', '.join(KINDS)}, got {kind!r}")
    if size < 1:
        raise PrivacyError(f"size of a release must be at least 1, got {size}")
    if not (0 < sensitivity < math.inf and 0 < amount < math.inf):
        raise PrivacyError(
            f"sensitivity and amount must be finite and above 0, got {sensitivity:g} and {amount:g}; nothing was read"
        )
    if kind in SELECTIONS and sensitivity != int(sensitivity):
        raise PrivacyError(f"sensitivity of a selection must be an integer, got {sensitivity!r}")
    scale = analytic_scale(kind, sensitivity, amount)
    if not 0 < scale < _LARGEST:
        raise PrivacyError(f"the amount {amount:g} is too small for a release: noise of scale {scale:g} does not fit")
    return scale


class OpenDPNoise:
    """Noise for releases: OpenDP's discrete samplers with its privacy map checked against the share.

    One call takes the whole vector: some 10⁴ to 10⁵ values a second.

    Examples
    --------
    >>> sampler = OpenDPNoise().prepare("gaussian", size=3, sensitivity=2.0**24, amount=0.02)
    >>> sampler.spent <= 0.02
    True
    """

    __slots__ = ()

    @property
    def description(self) -> str:
        """For the ledger."""
        return "OpenDP, discrete, cryptographic randomness"

    def prepare(self, kind: str, size: int, sensitivity: float, amount: float, columns: int = 1) -> Sampler:
        """Make OpenDP's measurement and check its map; see the module for the kinds.

        Raises
        ------
        PrivacyError
            Unknown kind, nonsensical numbers, or a map above the amount.
        """
        scale = _validate(kind, size, sensitivity, amount)
        if kind in MATRICES:
            law = matrix_law(kind, size, columns)
            return _matrix_sampler(kind, size, sensitivity, amount, scale, columns, lambda: law.draw(scale))
        own = _law_of_ours(kind, size, sensitivity, amount, scale)
        if own is not None:
            spent = analytic_cost(kind, sensitivity, scale)
            return Sampler(kind, size, float(sensitivity), amount, spent, scale, own)
        for _ in range(4):
            mechanism = measurement(kind, size, scale)
            spent = float(mechanism.map(int(sensitivity) if kind in SELECTIONS else float(sensitivity)))
            if spent <= amount:
                break
            scale *= _SLACK
        else:
            raise PrivacyError(f"OpenDP's privacy map, {spent:g}, is above the amount {amount:g}; nothing was read")

        def draw(exact: IntArray) -> IntArray:
            return np.atleast_1d(np.array(mechanism(np.array(exact, dtype=np.int64)), dtype=np.int64))

        return Sampler(kind, size, float(sensitivity), amount, spent, scale, draw)


def _matrix_sampler(
    kind: str, size: int, sensitivity: float, amount: float, scale: float, columns: int, draw: Callable[[], Drawn]
) -> Sampler:
    def noisy(exact: IntArray) -> IntArray:
        return matrices.add_wrapped(exact, draw().integers)

    spent = analytic_cost(kind, sensitivity, scale)
    return Sampler(kind, size, float(sensitivity), amount, spent, scale, noisy, columns=columns, matrix=draw)


def _law_of_ours(
    kind: str, size: int, sensitivity: float, amount: float, scale: float
) -> Callable[[IntArray], IntArray] | None:
    """Draw from a law that OpenDP has not (or not right), from the system's randomness; None for those that it has."""
    if kind == "spherical":  # no sum, so not modulo 2^64: Python's integers of any size
        return lambda exact: exact.astype(object) + np.array(MatrixLaplace(size, 1).draw(scale).integers, dtype=object)
    if kind == "wishart":
        p, nu = _wishart_shape(size, amount)
        return lambda exact: matrices.add_wrapped(exact, matrices.wishart(p, nu, sensitivity, _uniform))
    return (lambda exact: matrices.bingham(exact, scale, _floats)) if kind in DIRECTIONS else None


@functools.lru_cache(256)
def measurement(kind: str, size: int, scale: float) -> Any:
    """OpenDP's mechanism for `size` integers: it holds none, and each call draws anew."""
    dp = opendp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"), size=size)
    if kind == "gaussian":
        return dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=scale)
    if kind == "laplace":
        return dp.m.make_laplace(integers, dp.l1_distance(T=float), scale=scale)
    measure = dp.zero_concentrated_divergence() if kind == "gumbel" else dp.max_divergence()
    return dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64"), measure, scale=scale
    )


def _floats(size: int) -> FloatArray:
    """Values in (0, 1) from the system's randomness, 53 bits each."""
    bits = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64) >> np.uint64(11)
    return np.minimum((bits.astype(np.float64) + 0.5) * 2.0**-53, 1 - 2.0**-53)


def _uniform() -> decimal.Decimal:
    known = decimal.Decimal(secrets.randbits(matrices.UNIFORM_BITS))
    return (known + decimal.Decimal("0.5")) / decimal.Decimal(2) ** matrices.UNIFORM_BITS


def _wishart_shape(size: int, amount: float) -> tuple[int, int]:
    """p and ν, from the number of entries of a triangle and the amount."""
    return (math.isqrt(8 * size + 1) - 1) // 2, round(1 / (4 * amount))


class SeededNoise:
    """Reproducible noise for simulations only: NumPy's floats, rounded. The ledger then says "not for release".

    Parameters
    ----------
    random_state : int or numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import Budget, Cohort
    >>> cohort = Cohort(np.array([[0.2], [0.4]]), budget=Budget(1.0), n=2, noise=SeededNoise(0))
    >>> value, sd = cohort.sum(lambda row: row, clip=1.0, share=1.0, name="sum")
    >>> cohort.ledger.for_release
    False
    """

    __slots__ = ("_rng",)

    def __init__(self, random_state: int | np.random.Generator) -> None:
        self._rng = np.random.default_rng(random_state)

    @property
    def description(self) -> str:
        """For the ledger."""
        return "NumPy, seeded, floating point: for simulation only"

    def prepare(self, kind: str, size: int, sensitivity: float, amount: float, columns: int = 1) -> Sampler:
        """Fix the scale as OpenDP would; same scales, same cost."""
        scale = _validate(kind, size, sensitivity, amount)
        rng = self._rng
        if kind in MATRICES:
            law = matrix_law(kind, size, columns)
            return _matrix_sampler(kind, size, sensitivity, amount, scale, columns, lambda: law.draw_floats(scale, rng))

        def draw(exact: IntArray) -> IntArray:
            if kind == "gaussian":
                return exact + np.rint(scale * rng.standard_normal(size)).astype(np.int64)
            if kind == "laplace":
                return exact + np.rint(scale * rng.laplace(size=size)).astype(np.int64)
            if kind == "wishart":
                p, nu = _wishart_shape(size, amount)
                return exact + np.rint(matrices.float_wishart(p, nu, sensitivity, rng)).astype(np.int64)
            if kind == "spherical":
                direction = rng.standard_normal(size)
                length = scale * rng.gamma(size)
                return exact + np.rint(length * direction / np.linalg.norm(direction)).astype(np.int64)
            if kind in DIRECTIONS:
                return matrices.bingham(exact, scale, rng.random)
            extra = rng.gumbel(size=size) if kind == "gumbel" else rng.exponential(size=size)
            return np.atleast_1d(np.argmax(exact + scale * extra)).astype(np.int64)

        spent = analytic_cost(kind, sensitivity, scale)
        return Sampler(kind, size, float(sensitivity), amount, spent, scale, draw)
