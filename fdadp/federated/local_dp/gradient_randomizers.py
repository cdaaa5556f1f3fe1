"""Local randomisers of a gradient: what leaves a user's device, and the unbiased estimate that a server makes of it.

Each is ε-LDP for one report: whatever two records a user may have, whatever the model that was sent, no set of reports
is more than e^ε times as likely with the one as with the other. All estimates of one mechanism have the same length
(:attr:`Randomizer.length`), so the squared error of one report is ``length² - |g|²``.

*Floating point.* Which reports are possible never depends on the record. The condensed-local and the one-coordinate
mechanism send bits, which a coin of rational odds of at most e^ε flips; where the bit before the coin comes from, and
how it was rounded, does not matter. The two others draw their directions first, from randomness alone, and the record
decides only whether one is sent as it is, turned round, or passed over. The unit vectors that there are in floating
point are thus the same for every record (Mironov 2012 has the attack on noise that is added to a float).
"""

from __future__ import annotations

import decimal
import math
import secrets
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincinv, gammaln, ndtri

from fdadp._common.argument_checks import one_of, whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.learners.shared.public_inputs import positive

Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
FULL = 2**64


class Coins:
    """Independent uniform 64-bit words.

    Parameters
    ----------
    seed : int, optional
        For simulation only: whoever knows it can undo the randomisation. Default: the system's randomness.

    Attributes
    ----------
    secure : bool
        Whether the words may protect anybody.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        self._rng = None if seed is None else np.random.default_rng(seed)

    def words(self, rows: int, columns: int) -> Words:
        """Draw words, (rows, columns); row by row, so that many rows at once are those of one after the other."""
        if self._rng is not None:
            return self._rng.integers(0, FULL - 1, (rows, columns), dtype=np.uint64, endpoint=True)
        return np.frombuffer(secrets.token_bytes(8 * rows * columns), dtype=np.uint64).reshape(rows, columns)


def threshold(epsilon: float) -> int:
    """Numerator of the probability e^ε/(1 + e^ε) in units of 2⁻⁶⁴, rounded down and below 1.

    So the odds of a coin that shows "keep" where a word is below it are at most e^ε, exactly.

    Examples
    --------
    >>> threshold(0.0) == 2**63, threshold(1000.0) == 2**64 - 1
    (True, True)
    """
    with decimal.localcontext() as context:
        context.prec = 60
        return min(int(FULL / (1 + (-decimal.Decimal(epsilon)).exp())), FULL - 1)


def tossed(words: Words, below: int) -> Bools:
    """True with probability below/2⁶⁴, exactly."""
    return np.asarray(words < np.uint64(below))


def uniforms(words: Words) -> FloatArray:
    """Numbers in (0, 1), 53 bits each."""
    return np.asarray(np.minimum(((words >> np.uint64(11)) + 0.5) * 2.0**-53, 1 - 2.0**-53))


def normals(words: Words) -> FloatArray:
    """Standard normal numbers."""
    return np.asarray(ndtri(uniforms(words)))


Reports = npt.NDArray[np.uint8]
SMALLEST, LARGEST = 1e-6, 700.0
"""Of an ε: below, the bias of a coin in units of 2⁻⁶⁴ would show; above, e^ε is no float."""


class Randomizer:
    """An ε-LDP report of a vector g (D,), |g_j| <= 1.

    Parameters
    ----------
    dimensions : int
        D.
    epsilon : float
        Of one report.

    Attributes
    ----------
    epsilon : float
        What is claimed.
    exact_epsilon : float
        Largest log-ratio of two probabilities of the coins as they are tossed; at most `epsilon`. Of a cap of the
        sphere for the uniform law of directions.
    rho : float
        zCDP of one report.
    length : float
        Euclidean length of every estimate, in units of g.
    width : int
        Bytes of a report.
    noise, format : str
        In words: the law, for the ledger; the bytes, for whoever writes another client.
    proved : bool
        Whether ε is proved for reports as they are drawn (``docs/theory/noise.md#exactness``).
    """

    name: ClassVar[str]
    proved: ClassVar[bool] = True
    dimensions: int
    epsilon: float
    exact_epsilon: float
    rho: float
    length: float
    width: int
    noise: str
    format: str

    def __init__(self, dimensions: int, epsilon: float) -> None:
        whole(dimensions, "dimensions", least=2)
        if positive(epsilon, "epsilon", below=LARGEST) < SMALLEST:
            raise InputError(f"epsilon must be at least {SMALLEST:g}, got {epsilon!r}")
        self.dimensions = int(dimensions)
        self.epsilon = float(epsilon)
        self.rho = self.epsilon**2 / 2

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), each by itself."""
        raise NotImplementedError

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients; raises InputError for bytes that are no report."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dimensions={self.dimensions}, epsilon={self.epsilon:g})"


def inverse_bias(keep: int) -> float:
    """1/(2p - 1), by which a sign that was kept with probability p is scaled to be unbiased."""
    return FULL / (2 * keep - FULL)


def log_odds(keep: int) -> float:
    """Log-odds of a coin: the ε of what is sent through it."""
    return math.log1p((2 * keep - FULL) / (FULL - keep))


def as_bytes(values: npt.NDArray[Any]) -> Reports:
    """Each row as bytes (m, width)."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


class CondensedLocal(Randomizer):
    """Condensed local differential privacy: every entry rounded to a random sign, and each sign sent through a coin.

    Parameters
    ----------
    dimensions : int
    kappa : float
        Log-odds with which a sign is kept.

    Attributes
    ----------
    kappa : float

    Notes
    -----
    s_j = ±1 with mean g_j; the exponential mechanism over {-1, 1}^D with utility ``D - Hamming(s, t)`` and exponent κ
    is one coin a sign, because exp(κ u) is a product and its sum (1 + e^κ)^D the same for every s. So
    ``P(t | s)/P(t | s') <= exp(κ Hamming(s, s'))``: κ-condensed-local for the Hamming distance of the signs. Two
    records whose signs may all differ are told apart as by ε = κ D: that is the local guarantee, and it is tight.

    References
    ----------
    Gursoy, Tamersoy, Truex, Wei & Liu (2019), arXiv:1905.06361.
    """

    name = "cldp"

    def __init__(self, dimensions: int, kappa: float) -> None:
        super().__init__(dimensions, positive(kappa, "kappa", below=LARGEST) * dimensions)
        self.kappa = float(kappa)
        self.rho = self.dimensions * self.kappa**2 / 2
        self._keep = threshold(self.kappa)
        self.exact_epsilon = self.dimensions * log_odds(self._keep)
        self.length = math.sqrt(self.dimensions) * inverse_bias(self._keep)
        self.width = -(-self.dimensions // 8)
        self.noise = f"randomised response on {self.dimensions} signs"
        self.format = f"{self.dimensions} bits, 1 for +1, lowest first, in {self.width} byte(s)"

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 2 D words of random bits a row."""
        D = self.dimensions
        words = coins.words(len(gradients), 2 * D)
        signs = _signs(gradients, uniforms(words[:, :D]))
        return np.packbits(signs == tossed(words[:, D:], self._keep), axis=1, bitorder="little")

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        bits = np.unpackbits(reports, axis=1, count=self.dimensions, bitorder="little")
        return np.asarray((2.0 * bits - 1) * inverse_bias(self._keep), dtype=np.float64)


class OneCoordinate(Randomizer):
    """One coordinate, drawn at random, as a sign through a coin with all of ε.

    References
    ----------
    Nguyên, Xiao, Yang, Hui, Shin & Shin (2016), arXiv:1606.05053.
    """

    name = "one_coordinate"
    width = 4

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self._keep = threshold(self.epsilon)
        self.exact_epsilon = log_odds(self._keep)
        self.length = self.dimensions * inverse_bias(self._keep)
        self.noise = f"randomised response on the sign of one of {self.dimensions} coordinates"
        self.format = "unsigned 32-bit integer, little-endian: twice the index, plus 1 for +1"

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 3 words of random bits a row."""
        words = coins.words(len(gradients), 3)
        at = (words[:, 0] % np.uint64(self.dimensions)).astype(np.int64)  # off uniform by 2^-64 times D
        sign = _signs(gradients[np.arange(len(at)), at], uniforms(words[:, 1]))
        return as_bytes((2 * at + (sign == tossed(words[:, 2], self._keep))).astype("<u4"))

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        codes = np.ascontiguousarray(reports).view("<u4")[:, 0].astype(np.int64)
        if codes.size and codes.max() >= 2 * self.dimensions:
            raise InputError(f"reports must name a coordinate below {self.dimensions}, got {int(codes.max()) // 2}")
        out = np.zeros((len(codes), self.dimensions))
        out[np.arange(len(codes)), codes // 2] = np.where(codes % 2 == 1, self.length, -self.length)
        return out


def _signs(values: FloatArray, uniform: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether +1, with mean `values` of ±1."""
    return np.asarray(uniform < (1 + values) / 2)


SMALLEST_CAP = 1 / 256
_BLOCK = 2**20
"""Numbers that are drawn at once."""


class _Sphere(Randomizer):
    """A unit vector for a gradient in the ball of radius R = √D; a report is that vector.

    The gradient is first rounded, unbiasedly, to ±R in its own direction.
    """

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self.radius = math.sqrt(self.dimensions)
        self.width = 8 * self.dimensions
        self.format = f"{self.dimensions} 64-bit floats, little-endian: a unit vector"

    def estimate(self, reports: Reports) -> FloatArray:
        """Unbiased estimates (m, D) of the gradients."""
        vectors = np.ascontiguousarray(reports).view("<f8").astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = ~(np.abs(np.square(vectors).sum(axis=1) - 1) < 1e-9)
        if wrong.any():
            raise InputError(f"reports must be unit vectors, got {vectors[wrong][0].tolist()}")
        return vectors * self.length

    def _ends(self, gradients: FloatArray, uniform: FloatArray) -> FloatArray:
        """±g/|g|, (m, D), with mean g/R; where g is zero ± the first axis."""
        peak = np.abs(gradients).max(axis=1, keepdims=True)
        zero = peak[:, 0] == 0
        direction = gradients / np.where(peak > 0, peak, 1.0)  # so that squares cannot underflow
        direction[zero, 0] = 1.0
        norm = np.sqrt(np.square(direction).sum(axis=1, keepdims=True))
        plus = uniform < 0.5 + (peak * norm)[:, 0] / (2 * self.radius)
        return np.asarray(np.where(plus[:, None], direction, -direction) / norm)


class L2Ball(_Sphere):
    """A random direction, in the half-space of the gradient with probability e^ε/(1 + e^ε).

    References
    ----------
    Duchi, Jordan & Wainwright (2018), JASA 113, 182-201, arXiv:1604.02390, mechanism for the L2 ball.
    """

    name = "l2_ball"

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        self._keep = threshold(self.epsilon)
        self.exact_epsilon = log_odds(self._keep)
        D = self.dimensions
        mean = math.exp(gammaln(D / 2) - gammaln((D + 1) / 2)) / math.sqrt(math.pi)  # of |v_1|
        self.length = self.radius * inverse_bias(self._keep) / mean
        self.noise = "a direction of the half-space, or of the other"

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from D + 2 words of random bits a row."""
        D = self.dimensions
        words = coins.words(len(gradients), D + 2)
        v = _unit(normals(words[:, :D]))  # before the record is looked at; then only whether it is turned round
        same = (v * self._ends(gradients, uniforms(words[:, D]))).sum(axis=1) >= 0
        keep = tossed(words[:, D + 1], self._keep)
        return as_bytes(np.where((same == keep)[:, None], v, -v).astype("<f8"))


class PrivUnit(_Sphere):
    """A random direction, in a cap about the gradient with probability p, else outside it.

    Parameters
    ----------
    dimensions : int
    epsilon : float
        p and the cap {v: v'u >= γ} are chosen for the shortest estimates, with ε = ln[p/(1-p)] + ln[(1-q)/q],
        q = P(v'u >= γ) for a uniform direction, at least :data:`SMALLEST_CAP` (a report takes some 1/q draws).

    Attributes
    ----------
    p, q, gamma : float

    Notes
    -----
    A direction in the cap has density p/q, one outside (1-p)/(1-q), relative to the uniform law: their ratio is e^ε.
    With c (1-t²)^((D-3)/2) the density of v_1, E v'u = c (1-γ²)^((D-1)/2)/(D-1) · [p/q - (1-p)/(1-q)], by which the
    estimate is scaled.

    *What is not exact.* Directions are drawn until there is one in the cap and one outside, whichever is wanted, so the
    time does not tell. That q is the same for every cap holds for the uniform law; in floats up to relative errors of
    about 10⁻¹³, for which 10⁻⁹ of ε are set aside, without a proof.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor & Rogers (2018), arXiv:1812.00984, PrivUnit2.
    """

    name = "privunit"
    proved = False

    def __init__(self, dimensions: int, epsilon: float) -> None:
        super().__init__(dimensions, epsilon)
        budget = self.epsilon * (1 - 1e-3) if self.epsilon < 1e-5 else self.epsilon - 1e-9

        def cap(log_q: float) -> tuple[float, float, int, float]:
            """γ, q, numerator of p, and E v'u."""
            D = self.dimensions
            gamma = math.sqrt(max(1 - float(betaincinv((D - 1) / 2, 0.5, min(2 * math.exp(log_q), 1.0))), 0.0))
            q = float(betainc((D - 1) / 2, 0.5, 1 - gamma**2)) / 2
            inside = threshold(budget + math.log(q) - math.log1p(-q))
            p = inside / FULL
            area = math.exp(gammaln(D / 2) - gammaln((D - 1) / 2)) / math.sqrt(math.pi)
            mass = area * (1 - gamma**2) ** ((D - 1) / 2) / (D - 1)
            return gamma, q, inside, mass * (p / q - (1 - p) / (1 - q))

        best = minimize_scalar(
            lambda log_q: -cap(log_q)[3], bounds=(math.log(SMALLEST_CAP), math.log(0.5)), method="bounded"
        )
        self.gamma, self.q, self._inside, mean = cap(float(best.x))
        self.p = self._inside / FULL
        self.exact_epsilon = log_odds(self._inside) + math.log1p(-self.q) - math.log(self.q)
        self.length = self.radius / mean
        self.noise = f"a direction of a cap of {100 * self.q:.3g} % of the sphere, or of the rest"

    def __call__(self, gradients: FloatArray, coins: Coins) -> Reports:
        """Reports (m, width) of gradients (m, D), from 2 words of random bits a row, and some D/q for directions."""
        words = coins.words(len(gradients), 2)
        u = self._ends(gradients, uniforms(words[:, 0]))
        inside, outside = (np.full(u.shape, np.nan) for _ in range(2))
        draws = math.ceil(1 / self.q)
        rows = max(1, _BLOCK // (draws * self.dimensions))
        left = np.arange(len(u))
        while left.size:
            block = left[:rows]
            v = _unit(normals(coins.words(len(block) * draws, self.dimensions))).reshape(len(block), draws, -1)
            member = np.einsum("mkd,md->mk", v, u[block]) >= self.gamma
            for found, fits in ((inside, member), (outside, ~member)):
                new = np.isnan(found[block, 0]) & fits.any(axis=1)
                found[block[new]] = v[new, fits[new].argmax(axis=1)]
            left = left[np.isnan(inside[left, 0]) | np.isnan(outside[left, 0])]
        chosen = np.where(tossed(words[:, 1], self._inside)[:, None], inside, outside)
        return as_bytes(chosen.astype("<f8"))


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.sqrt(np.square(vectors).sum(axis=1, keepdims=True)))


MECHANISMS: dict[str, Any] = {cls.name: cls for cls in (CondensedLocal, OneCoordinate, L2Ball, PrivUnit)}


def randomizer(
    mechanism: str,
    dimensions: int,
    *,
    epsilon: float | None = None,
    alpha: float | None = None,
    half_exponent: bool = True,
) -> Randomizer:
    """Make a randomiser for an ε of one report, or for an α of the condensed-local claim.

    Parameters
    ----------
    mechanism : {"cldp", "one_coordinate", "l2_ball", "privunit"}
    dimensions : int
        D, at least 2.
    epsilon : float, optional
        ε_LDP of one report; for ``"cldp"`` κ = ε/D.
    alpha : float, optional
        Instead of it, for ``"cldp"``: κ = α/2 as published (``half_exponent``), or κ = α, which satisfies α-CLDP as
        well, because the sum in the exponential mechanism is the same for every input. ε_LDP is κ D in both.
    half_exponent : bool

    Raises
    ------
    InputError
        Unknown mechanism, or not one of ε and α, or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated.local_dp.gradient_randomizers import Coins
    >>> published = randomizer("cldp", 6, alpha=1.0)
    >>> published.kappa, published.epsilon
    (0.5, 3.0)
    >>> reports = published(np.zeros((1000, 6)), Coins(seed=0))
    >>> reports.shape, published.estimate(reports).shape
    ((1000, 1), (1000, 6))
    """
    one_of(mechanism, "mechanism", MECHANISMS)
    if (epsilon is None) == (alpha is None):
        raise InputError(f"epsilon or alpha must be given, not both, got epsilon={epsilon!r} and alpha={alpha!r}")
    if alpha is not None:
        if mechanism != "cldp":
            raise InputError(f'alpha must be left out unless mechanism is "cldp", got {alpha!r} with {mechanism!r}')
        return CondensedLocal(dimensions, positive(alpha, "alpha") / (2 if half_exponent else 1))
    if mechanism == "cldp":
        return CondensedLocal(dimensions, positive(epsilon, "epsilon") / dimensions)
    made: Randomizer = MECHANISMS[mechanism](dimensions, epsilon)
    return made
