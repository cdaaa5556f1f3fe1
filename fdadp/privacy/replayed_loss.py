"""Exact privacy loss by replay: run the same fit on two neighbouring cohorts, with the same released values forced.

Everything after the releases is then identical, so the difference of the log-probabilities of the forced values
*is* the privacy loss of an adversary who sees everything. A tape holds exact private sums: it is for audits of
simulated or canary data, and never leaves the custodian.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.noise._matrix_noise import add_wrapped, matrix_of, symmetric
from fdadp.privacy.noise.sources import MATRICES, SELECTIONS, Noise, Sampler, SeededNoise, matrix_law


@dataclass(frozen=True)
class TapeEntry:
    """One release: how its noise was made (matrix Laplace: of what), the exact integers and the released ones."""

    kind: str
    size: int
    sensitivity: float
    amount: float
    scale: float
    exact: tuple[int, ...]
    released: tuple[int, ...]
    columns: int = 1
    factors: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)

    @property
    def public(self) -> tuple[object, ...]:
        """What must be the same for neighbouring data: everything but the exact values."""
        return (self.kind, self.size, self.sensitivity, self.amount, self.scale, self.columns, self.released)


class TapeNoise:
    """Noise that records every release, or forces recorded ones.

    Parameters
    ----------
    inner : Noise, optional
        Where scales, and fresh noise, come from; default ``SeededNoise(0)``.
    tape : sequence of TapeEntry, optional
        Releases to force, in order. A release that differs from the tape in kind, size, scale or amount, or goes beyond
        its end, raises: with the same releases, neighbouring cohorts must ask the same questions.

    Attributes
    ----------
    entries : list of TapeEntry
        What was recorded in this run.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.privacy import Budget, Cohort
    >>> def total(rows, noise):
    ...     cohort = Cohort(rows, budget=Budget(1.0), n=2, noise=noise)
    ...     return cohort.sum(lambda row: row, clip=1.0, share=1.0, name="sum").value
    >>> recorded = TapeNoise()
    >>> first = total(np.array([[0.2], [0.4]]), recorded)
    >>> second = total(np.array([[0.9], [0.4]]), TapeNoise(tape=recorded.entries))  # other rows, the same output
    >>> bool(first == second)
    True
    """

    __slots__ = ("_inner", "_prepared", "_tape", "entries")

    def __init__(self, inner: Noise | None = None, tape: Sequence[TapeEntry] | None = None) -> None:
        self._inner: Noise = SeededNoise(0) if inner is None else inner
        self._tape = None if tape is None else list(tape)
        self._prepared = 0
        self.entries: list[TapeEntry] = []

    @property
    def description(self) -> str:
        """For the ledger."""
        return "on a tape: for audits only"

    def prepare(self, kind: str, size: int, sensitivity: float, amount: float, columns: int = 1) -> Sampler:
        """Scale and cost from the inner noise; the values are recorded, or come from the tape.

        Raises
        ------
        PrivacyError
            The release is not the one on the tape.
        """
        sampler = self._inner.prepare(kind, size, sensitivity, amount, columns)
        at = self._prepared
        self._prepared += 1
        forced: TapeEntry | None = None
        beyond = self._tape is not None and at >= len(self._tape)
        if self._tape is not None and not beyond:
            forced = self._tape[at]
            asked = (kind, size, float(sensitivity), amount, sampler.scale, columns)
            if forced.public[:-1] != asked:
                raise PrivacyError(f"replay: release {at + 1} differs, {asked} instead of {forced.public[:-1]}")

        def draw(exact: IntArray) -> IntArray:
            if beyond:  # said here and not before the rows are read, for the run on the tape may have failed to read
                raise PrivacyError(f"replay: release {at + 1} is beyond the tape of {len(self._tape or [])}")
            factors = None if forced is None else forced.factors
            if forced is not None:
                out = np.array(forced.released, dtype=np.int64)
            elif sampler.matrix is not None:
                drawn = sampler.matrix()
                out, factors = add_wrapped(exact, drawn.integers), drawn.factors
            else:
                out = sampler(exact)
            before, after = (tuple(int(v) for v in integers) for integers in (exact, out))
            self.entries.append(
                TapeEntry(kind, size, float(sensitivity), amount, sampler.scale, before, after, columns, factors)
            )
            return out

        return dataclasses.replace(sampler, draw=draw)


@dataclass(frozen=True)
class Loss:
    """Privacy loss of one release on two neighbouring cohorts.

    Attributes
    ----------
    loss : float
        log p(released | first) - log p(released | second); NaN for a direction, where only its bound is known. Matrix
        Laplace noise: as :meth:`fdadp.privacy.noise._matrix_noise.MatrixLaplace.loss` says, given more than is
        released.
    spent : float
        What this pair of sums can cost: ρ (divergence) or the largest |loss| over all outcomes.
    amount : float
        What was set aside for it: ``spent <= amount`` must hold.
    change : float
        Distance of the exact sums over the sensitivity: at most 1.
    """

    loss: float
    spent: float
    amount: float
    change: float


def loss(first: TapeEntry, second: TapeEntry) -> Loss:
    """Exact loss of one release; integers are subtracted as integers, so nothing cancels.

    The discrete Gaussian and Laplace laws have the same normaliser at every integer centre, so their log-probabilities
    differ by the exponents alone.

    Raises
    ------
    PrivacyError
        The two are not the same release with the same values.
    """
    if first.public != second.public:
        raise PrivacyError("replay: the two runs released different things")
    scale = first.scale
    moves = [b - a for a, b in zip(first.exact, second.exact, strict=True)]
    if first.kind == "gaussian":
        cross = sum(
            m * (a + b - 2 * out) for m, a, b, out in zip(moves, first.exact, second.exact, first.released, strict=True)
        )
        square = sum(m * m for m in moves)
        value, spent = cross / scale / (2 * scale), square / scale / (2 * scale)
        change = math.sqrt(square) / first.sensitivity
    elif first.kind == "laplace":
        value = (
            sum(
                abs(out - b) - abs(out - a) for a, b, out in zip(first.exact, second.exact, first.released, strict=True)
            )
            / scale
        )
        spent = sum(abs(m) for m in moves) / scale
        change = spent * scale / first.sensitivity
    elif first.kind in MATRICES:
        value, spent = _matrix_loss(first, moves)
        change = spent * scale / first.sensitivity * (1 - 1e-12)  # singular values are rounded
    elif first.kind in ("bingham", "bingham-zcdp"):
        eigenvalues = np.linalg.eigvalsh(matrix_of(np.array(moves, dtype=np.int64)))
        ranged = float(eigenvalues[-1] - eigenvalues[0]) / scale
        value = math.nan  # its normaliser has no closed form; it is at most the range
        spent = ranged if first.kind == "bingham" else ranged**2 / 8
        change = ranged * scale / first.sensitivity
    elif first.kind == "wishart":
        value = _wishart_loss(first, second)
        change = max(wishart_moves(first, second))
        spent = first.amount * change  # of degrees of freedom; what it means in (ε, δ) says wishart_delta
    elif first.kind not in SELECTIONS:
        raise PrivacyError(f"replay: noise of kind {first.kind!r} is in an objective, and cannot be forced on another")
    else:
        p, q = (_log_selection(e) for e in (first, second))
        chosen = first.released[0]
        value = float(p[chosen] - q[chosen])
        ranged = (max(moves) - min(moves)) / scale  # bounded range (Dong, Durfee & Rogers 2020)
        spent = ranged**2 / 8 if first.kind == "gumbel" else float(np.abs(p - q).max())
        change = (max(moves) - min(moves)) / 2 / first.sensitivity  # up to a constant, which changes no probability
    return Loss(float(value), float(spent), first.amount, float(change))


def _matrix_loss(first: TapeEntry, moves: list[int]) -> tuple[float, float]:
    """Loss, and the nuclear norm of the moves over the scale; the noise must be what its factors make."""
    law = matrix_law(first.kind, first.size, first.columns)
    if first.factors is None:
        raise PrivacyError("replay: matrix Laplace noise must be on the tape with what it was made of")
    noise = first.scale * law.noise(first.factors)
    entries = noise[np.triu_indices(first.columns)] if law.symmetric else noise.ravel()
    drawn = [out - exact for out, exact in zip(first.released, first.exact, strict=True)]
    if np.abs(np.array(drawn, dtype=np.float64) - entries).max() > 1 + 1e-9 * np.abs(noise).max():
        raise PrivacyError("replay: the noise on the tape is not what its factors make")
    M = np.array(moves, dtype=np.float64)
    return law.loss((symmetric(M) if law.symmetric else M.reshape(-1, first.columns)) / first.scale, first.factors)


def wishart_moves(first: TapeEntry, second: TapeEntry) -> tuple[float, float]:
    """What a person adds to and takes from a second moment: traces of the two parts, in units of the sensitivity."""
    moves = np.array([b - a for a, b in zip(first.exact, second.exact, strict=True)], dtype=np.float64)
    values = np.linalg.eigvalsh(symmetric(moves)) / first.sensitivity
    return float(values[values > 0].sum()), float(-values[values < 0].sum())


def wishart_delta(first: TapeEntry, second: TapeEntry, epsilon: float) -> float:
    """δ at ε of a release with Wishart noise, for these two exact moments that a row or two tell apart.

    One row of squared length r: of χ² with ν degrees against χ² + r, exactly. One row out and one in: two such steps
    at ε/2, which cost δ₁ + e^(ε/2) δ₂ at most, the larger of the two orders.
    """
    nu = round(1 / (4 * first.amount))
    added, taken = wishart_moves(first, second)
    if min(added, taken) < 1e-9 * max(added, taken, 1e-300):
        return _shifted_chi_square(epsilon, nu, max(added, taken))
    one, two = (_shifted_chi_square(epsilon / 2, nu, r) for r in (added, taken))
    return max(one + math.exp(epsilon / 2) * two, two + math.exp(epsilon / 2) * one)


def _shifted_chi_square(epsilon: float, nu: int, r: float) -> float:
    """Hockey stick, the larger of both directions; the log-ratio k log(x/(x - r)) - r/2, k = ν/2 - 1, falls with x."""
    from scipy.stats import chi2

    if r == 0:
        return 0.0
    k = nu / 2 - 1
    low = r / -math.expm1(-(epsilon + r / 2) / k)
    found = float(chi2.cdf(low, nu) - math.exp(epsilon) * chi2.cdf(low - r, nu))
    if epsilon < r / 2:
        high = r / -math.expm1((epsilon - r / 2) / k)
        found = max(found, float(chi2.sf(high - r, nu) - math.exp(epsilon) * chi2.sf(high, nu)))
    return found


def _wishart_loss(first: TapeEntry, second: TapeEntry) -> float:
    """Log-ratio of the densities at the released matrix; infinite where only the first could give it."""
    nu = round(1 / (4 * first.amount))
    logs = []
    for entry in (first, second):
        noise = [out - exact for out, exact in zip(entry.released, entry.exact, strict=True)]
        values = np.linalg.eigvalsh(symmetric(np.array(noise, dtype=np.float64)) / first.sensitivity)
        inside = values[0] > 0
        logs.append((nu - 2) / 2 * float(np.log(values).sum()) - float(values.sum()) / 2 if inside else -math.inf)
    return logs[0] - logs[1]


def losses(first: Sequence[TapeEntry], second: Sequence[TapeEntry]) -> list[Loss]:
    """Loss of each release of two runs; they must have made the same number.

    Raises
    ------
    PrivacyError
        The runs differ in what they released.
    """
    if len(first) != len(second):
        raise PrivacyError(f"replay: one run made {len(first)} releases, the other {len(second)}")
    return [loss(a, b) for a, b in zip(first, second, strict=True)]


def _log_selection(entry: TapeEntry) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Log-probability of each candidate."""
    top = max(entry.exact)
    u = np.array([(v - top) / entry.scale for v in entry.exact])
    if entry.kind == "gumbel":
        return np.asarray(u - np.log(np.exp(u).sum()))
    # Permute-and-flip: p_r ∫_0^1 Π_{i≠r} (1 - p_i t) dt with p = exp(u) (McKenna & Sheldon 2020); Gauss-Legendre with
    # k nodes is exact for these polynomials.
    p = np.exp(u)
    nodes, weights = np.polynomial.legendre.leggauss(len(p))
    factors = 1 - p[None] * (nodes[:, None] + 1) / 2
    out = np.empty(len(p))
    for r in range(len(p)):
        out[r] = u[r] + math.log(float(np.prod(np.delete(factors, r, axis=1), axis=1) @ weights) / 2)
    return out
