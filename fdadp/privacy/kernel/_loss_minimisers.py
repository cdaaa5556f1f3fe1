"""Minimisers of regularised losses over persons: what :meth:`Cohort.perturbed_minimum` reads the private rows for.

*Least squares.* ``θ = argmin over |θ|_F <= B of ½ Σ |θ'f - r|² + (Λ/2)|θ|²`` with |f| <= C, |r| <= R. The objective is
Λ-strongly convex and the set convex, so the two variational inequalities give, for one person more or less,
``|θ - θ'| <= |∇ℓ(θ)|/Λ <= C (B C + R)/Λ``: no number of persons is in it. Proof, and what the ball
is for: ``docs/theory/learners.md#output-perturbation``.
The sums are exact integers, however many rows there are. A solution found in floating point is checked in exact
arithmetic (:meth:`Ridge.error`), and where the check fails the search goes on in decimals.
So what is computed is always within ``SOLUTION_ERROR`` of that bound from the exact solution, which 0.1 % more noise
covers.

Sources: Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12 (output perturbation); Iyengar et al. (2019),
doi:10.1109/SP.2019.00001 (noise on an approximate minimum).

*A ridge regression in a ball* from exact sums: solved in floating point, checked exactly, else solved in decimals.

``θ = argmin over |θ|_F <= B of ½ tr θ'Aθ - tr c'θ + (Λ/2)|θ|²``. *The check.* For any point θ and multiplier μ >= 0 let
r = (A + Λ + μ)θ - c, and let g be the part by which θ must be lengthened (or, where it lies outside, shortened) to lie
on the sphere; g = 0 inside the ball where μ = 0. Then θ is at most

    2 g B + ((1 + g) |r| + g |c|)/Λ

from the solution, if |θ| <= 2B. *Proof.* φ = (1 ± g)θ lies in the ball, on the sphere where μ > 0, and its residual is
at most (1 + g)|r| + g |c|. The gradient at φ is its residual less μφ, and ⟨-μφ, ψ - φ⟩ >= 0 for all ψ in the ball. Add
the variational inequality of the solution: strong convexity gives Λ|φ - solution| <= |residual|. And |φ - θ| <= g |θ|.
All of it is computed of integers and fractions.

*Logistic regression.* Minimisers of regularised logistic losses over persons: what objective perturbation reads the
private rows for.

``w = argmin F = Σ log(1 + exp(-t z'w)) + (λ/2)|w|² + b'w``, |z| <= 1, by a Newton method that
never fails. With d = -F''⁻¹ F' at w and β = |d|, the third derivative along d is at most β times the second, since
|z| <= 1 (generalised self-concordance: Bach 2010), so along d the second derivative grows at most like e^{βs}:

- a step of log(1+β)/β lowers F by at least (d'F''d/β²) ((1+β) log(1+β) - β) >= 0.108 λ where β > 1/2. So there are at
  most (F(0) - min F)/(0.108 λ) <= (n log 2 + |b|²/(2λ))/(0.108 λ) of them (a full step is taken instead where it
  lowers F by at least as much as a quarter of what the quadratic model says; in practice there are some ten);
- where β <= 1/2, a full step leaves a gradient of at most (e^β - 1 - β)/β < 0.3 times the old one in the norm of
  F''⁻¹, hence the next β has shrunk, and :data:`_FINAL` steps bring down any gradient by 10⁻²⁵.

There is nothing to raise, and nothing to stop early: an error or a far point would tell of the rows. (How long it took
does, as always.) What is left is rounding, of which nothing is taken for granted: *the gradient at the point that is
returned is checked* (:func:`_gradient_error`). Margins z'w are summed in twice the working precision (Ogita, Rump &
Oishi 2005) and gradients with compensation, so that the computed gradient is off by at most

    10 n u + 4 (n u)² + 4 u (n + λ|w| + |b|) + 2 n D² u² |w|

(slopes and their products 10 u a row; what compensation leaves; the last sums, with b as a float; the margins). Where
this and the computed gradient exceed ``GRADIENT_ERROR``, because there are very many rows or b is very long, the
search goes on in decimals (:func:`_in_decimals`), with as many digits as it takes. So whatever n, b and the rows are,
the point returned is within ``GRADIENT_ERROR``/λ of the exact minimiser.

Sources: Bach (2010), doi:10.1214/09-EJS521 (self-concordance of the logistic loss); Sun & Tran-Dinh (2019),
doi:10.1007/s10107-018-1282-4 (the damped step); Ogita, Rump & Oishi (2005), doi:10.1137/030601818 (sums and products in
twice the precision).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import FloatArray, IntArray
from fdadp.privacy.rows._clipped_sums import quantise_rows
from fdadp.privacy.rows._dask_partitions import AnyVault
from fdadp.privacy.rows._sealed_row_functions import BLOCK, RowFunction, Rows, evaluate, sealed, silence
from fdadp.privacy.rows._vault import Vault

_FINE = 100
"""Bits of a solution that are checked and released from."""
Points = Any
"""Matrix of Python's integers: numbers in units of a public step."""


@dataclass(frozen=True)
class Ridge:
    """A problem, as exact sums.

    Attributes
    ----------
    gram, cross : ndarray of int, shapes (D, D), (D, K)
        Python's integers: A and c in units of the next two.
    square, product : Fraction
    ridge, radius : float
        Λ and B.
    """

    gram: Any
    cross: Any
    square: Fraction
    product: Fraction
    ridge: float
    radius: float

    def solved(self, most: float, step: float) -> IntArray:
        """Point within `most` of the solution, in steps, cut off at the reach of int64."""
        theta, multiplier = self._in_floats()
        digits = 50
        while not self.error(theta, multiplier) <= most:
            theta, multiplier = self._in_decimals(digits)
            digits *= 2
        unit = Fraction(self.radius) / (2**_FINE * Fraction(step))
        whole = [min(max(round(x * unit), -(2**61)), 2**61) for x in theta.ravel().tolist()]
        return np.array(whole, dtype=np.int64).reshape(theta.shape)

    def error(self, theta: Points, multiplier: float | Decimal) -> float:
        """Bound on the distance of θ, in units of 2^-100 B, from the solution: see the module."""
        points, cross = theta.ravel().tolist(), self.cross.ravel().tolist()
        square = Fraction(sum(x * x for x in points), 4**_FINE)  # |θ|²/B²
        if square > 4 or (multiplier and square == 0):
            return math.inf
        gap = abs(1 / square - 1) if multiplier else 1 - 1 / max(square, Fraction(1))  # at least g
        unit = Fraction(self.radius) / 2**_FINE
        one, two = self.square * unit, (Fraction(self.ridge) + Fraction(multiplier)) * unit
        product = (self.gram @ theta).ravel().tolist()
        r = _length([one * a + two * x - self.product * c for a, x, c in zip(product, points, cross, strict=True)])
        c = float(self.product) * _length(cross)
        g = float(gap)
        return 2 * g * self.radius + ((1 + g) * r + g * c) / self.ridge * (1 + 1e-9)

    def _in_floats(self) -> tuple[Points, float | Decimal]:
        """Solution by eigenvectors; a wrong one where that fails or overflows."""
        try:
            values, axes = np.linalg.eigh(_floats(self.gram, self.square))
        except (np.linalg.LinAlgError, OverflowError):
            return _each(lambda _: 0, self.cross), 0.0
        values = np.maximum(values, 0.0)
        rotated = axes.T @ _floats(self.cross, self.product)
        energy = (rotated**2).sum(axis=1)

        def length(multiplier: float) -> float:
            return math.sqrt(float((energy / (values + multiplier) ** 2).sum()))

        high = _multiplier(length, self.ridge, self.radius)
        theta = np.nan_to_num(axes @ (rotated / (values + high)[:, None]) / self.radius)
        return _each(lambda x: round(Fraction(x) * 2**_FINE), theta), high - self.ridge

    def _in_decimals(self, digits: int) -> tuple[Points, Decimal]:
        """Solution by elimination, in so many digits."""
        with decimal.localcontext(decimal.Context(prec=digits)):
            gram = _each(lambda x: Decimal(x * self.square.numerator) / self.square.denominator, self.gram)
            cross = _each(lambda x: Decimal(x * self.product.numerator) / self.product.denominator, self.cross)
            ridge, radius = Decimal(self.ridge), Decimal(self.radius)

            def point(multiplier: Decimal) -> Any:
                return _eliminated(gram + multiplier * np.diag([Decimal(1)] * len(gram)), cross)

            high = _multiplier(lambda m: (point(m) ** 2).sum().sqrt(), ridge, radius)
            theta = point(high) / radius * 2**_FINE
            return _each(lambda x: int(x.to_integral_value()), theta), high - ridge


def _multiplier(length: Callable[[Any], Any], ridge: Any, radius: Any) -> Any:
    """Smallest number from the ridge on with which the solution is in the ball: by bisection, to the last digit."""
    low = high = ridge
    if length(ridge) > radius:
        while length(high) > radius:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if length(middle) > radius else (low, middle)
    return high


def _eliminated(matrix: Any, right: Any) -> Any:
    """Solution of a positive definite system in decimals."""
    a = np.hstack([matrix, right])
    for k in range(len(a)):
        a[k] = a[k] / a[k, k]
        for i in range(len(a)):
            if i != k:
                a[i] = a[i] - a[i, k] * a[k]
    return a[:, len(a) :]


def _each(f: Callable[[Any], Any], matrix: Any) -> Any:
    """Matrix of what f gives for each entry, as Python's numbers."""
    out = np.empty(matrix.size, dtype=object)
    out[:] = [f(x) for x in matrix.ravel().tolist()]
    return out.reshape(matrix.shape)


def _floats(integers: Any, unit: Fraction) -> FloatArray:
    return np.asarray(integers, dtype=np.float64) * float(unit)


def _length(values: list[Any]) -> float:
    """Euclidean length of integers or fractions, rounded up a little."""
    square = sum(Fraction(v) ** 2 for v in values)
    scale = math.isqrt(int(square * 4**64)) + 1  # in units of 2^-64
    return float(Fraction(scale, 2**64)) * (1 + 1e-12)


_BITS = 18
"""Products of two lattice values, and sums of them over a block, are exact in floats."""
_LIMB = 32
"""Bits of a sum that are kept in one int64; the rest in a second one."""
GRADIENT_ERROR = 1e-5
"""Bound on the gradient's norm at the returned point: half for the stopping rule, half for rounding."""
SOLUTION_ERROR = 5e-4
"""Bound on how far a returned ridge solution is from the exact one, in units of a person's influence."""
SMALLEST_RIDGE = 0.01
"""Of the logistic loss: with less, rounding would be felt."""


def steps_from_real(kind: str, size: int) -> float:
    """Lattice steps, at most, between a linear term as it is drawn and one of the law in real numbers.

    A spherical one is a real one rounded. A discrete Gaussian is one whose coordinates moved by discrete Gaussians of
    sd 4 about it (docs/theory/accounting.md#lattice): by more than 4 (√D + 30) with probability below 10⁻¹⁹⁰, which is
    a part of δ.
    """
    return math.sqrt(size) if kind == "spherical" else 4 * (math.sqrt(size) + 30)


def to_lattice(point: FloatArray, step: float) -> IntArray:
    """Nearest multiples of a step, as integers; what is out of reach of int64 is cut off, which moves nothing apart."""
    with silence():
        return np.rint(np.clip(np.nan_to_num(point / step), -(2.0**61), 2.0**61)).astype(np.int64)


def person_weights(vault: Vault, power: float) -> FloatArray | None:
    """(rows of a person)^-power, and 0 for nobody, whose code is -1; None where every row is a person."""
    if not vault.grouped:
        return None
    return np.array([*(1.0 / c**power if c else 0.0 for c in vault.row_counts.tolist()), 0.0])


def row_weights(persons: FloatArray | None, codes: IntArray, m: int) -> FloatArray:
    """Weights of the rows of a block."""
    weights = np.zeros(BLOCK)
    weights[:m] = 1.0 if persons is None else persons[codes[:m]]
    return weights


@sealed
def least_squares(
    vault: AnyVault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    *,
    clip: float,
    target_clip: float,
    ridge: float,
    radius: float,
    step: float,
) -> IntArray:
    """Ridge solution in a ball of the Frobenius norm, (D, K), in steps; a person with m rows counts 1/m for each."""
    D = math.prod(shapes[0])
    task = partial(_lattice_products, f=f, shapes=shapes, clip=clip, target_clip=target_clip)
    low, high = vault.total(task).reshape(2, D, -1).astype(object)
    total = low + high * 2**_LIMB
    unit = Fraction(clip) / 2**_BITS
    problem = Ridge(total[:, :D], total[:, D:], unit**2, unit * Fraction(target_clip) / 2**_BITS, ridge, radius)
    with silence():
        return problem.solved(SOLUTION_ERROR * clip * (radius * clip + target_clip) / ridge, step)


@sealed
def _lattice_products(
    vault: Vault, f: RowFunction, shapes: list[tuple[int, ...]], *, clip: float, target_clip: float
) -> IntArray:
    """Σ over rows of features times features and targets, (2 D (D + K),), in steps of both lattices; exact integers.

    First the low bits of each sum, then the high ones: exact for fewer than 2^59 rows.
    """
    D, K = math.prod(shapes[0]), math.prod(shapes[1])
    low, high = np.zeros((2, D, D + K), dtype=np.int64)
    features, targets = np.empty((BLOCK, D)), np.empty((BLOCK, K))
    with silence():
        persons = person_weights(vault, 0.5)
        for rows, m, codes in vault.blocks():
            a, b = evaluate(f, rows, m, shapes)
            weights = row_weights(persons, codes, m)
            quantise_rows(
                a.reshape(-1, D), b.reshape(-1, K), m, weights, clip, target_clip, 2.0**_BITS, features, targets
            )
            both = np.hstack([features[:m], targets[:m]])
            low += (features[:m].T @ both).astype(np.int64)  # exact, whatever the order
            high += low >> _LIMB
            low &= 2**_LIMB - 1
    return np.stack([low, high]).ravel()


_FINAL = 64
"""Full Newton steps after the first one shorter than 1/2: many more than are ever needed."""


@sealed
def logistic(
    vault: Vault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    *,
    ridge: float,
    linear: Any,
    unit: float = 1.0,
    step: float,
) -> IntArray:
    """Minimisers of the regularised logistic losses of K problems, each with its own linear term; (D, K), in steps.

    Never raises and never gives up: see the module for why it arrives. `linear` (D, K) is in units of `unit`: floats,
    or Python's integers of any size.
    """
    D, K = linear.shape
    terms: list[list[Any]] = linear.T.tolist()
    b = np.array([[_float(x) * unit for x in column] for column in terms]).T
    w = np.zeros((D, K))
    near = np.zeros(K, dtype=np.int64)  # full steps taken since a step was short
    with silence():
        vault, f = vault.derive(f, shapes), _same
        persons = person_weights(vault, 1.0)
        while True:
            value, gradient, hessian, n = _logistic_sums(vault, f, shapes, persons, w, ridge, b, curvature=True)
            todo = (np.linalg.norm(gradient, axis=0) > GRADIENT_ERROR / 2) & (near < _FINAL)
            try:
                step_of = {k: -np.linalg.solve(hessian[k], gradient[:, k]) for k in np.flatnonzero(todo)}
            except np.linalg.LinAlgError:  # of numbers that overflow
                break
            if not todo.any():
                break
            move = np.zeros_like(w)
            for k, direction in step_of.items():
                move[:, k] = direction
            length = np.linalg.norm(move, axis=0)
            near += todo & (length <= 0.5)
            long = todo & (length > 0.5) & (near == 0)
            if long.any():  # a full step only where it helps; else the one that is proved to
                reached = _logistic_sums(vault, f, shapes, persons, w + move, ridge, b, curvature=False)[0]
                short = long & ~(reached <= value + (gradient * move).sum(axis=0) / 4)
                move[:, short] *= np.log1p(length[short]) / length[short]
            w = w + move
        found = to_lattice(w, step)
        sure = np.linalg.norm(gradient, axis=0) + _gradient_error(w, b, ridge, n) <= GRADIENT_ERROR
        for k in np.flatnonzero(~sure):
            problem = (vault, shapes, persons, int(k), ridge, terms[k], unit, step)
            found[:, k] = _in_decimals(*problem, np.where(np.isfinite(w[:, k]), w[:, k], 0.0).tolist())
    return found


def _gradient_error(w: FloatArray, b: FloatArray, ridge: float, n: int) -> FloatArray:
    """Bound on the error of computed gradients at w, and of the lattice point next to it, (K,); see the module."""
    length, linear = np.linalg.norm(w, axis=0), np.linalg.norm(b, axis=0)
    u = 2.0**-53
    return np.asarray(
        10 * n * u
        + 4 * (n * u) ** 2
        + 4 * u * (n + ridge * length + linear)
        + 2 * n * len(w) ** 2 * u**2 * length
        + 2 * u * ridge * length  # of w over the step, as a float
        + 1e-9 * GRADIENT_ERROR  # of norms
    )


def _float(x: Any) -> float:
    """A number as a float, cut off where it is too large for one: then the check fails."""
    return float(min(max(x, -(10**300)), 10**300))


def _in_decimals(
    vault: Vault,
    shapes: list[tuple[int, ...]],
    persons: FloatArray | None,
    k: int,
    ridge: float,
    linear: list[Any],
    unit: float,
    step: float,
    start: list[float],
) -> list[int]:
    """One problem's minimiser, in steps: Newton's method in floats, of a gradient in as many digits as it takes.

    Each step is the one that is proved to lower the objective, or a full one where it is short. With p digits the
    gradient is off by at most 10^(1-p) (n + 1) D ((D + 2)|w| + 6 + n + λ|w| + |b|): each margin by (D + 2)|w|/2 units,
    each slope by a quarter of that and three, each of n additions by the largest partial sum.
    """
    w, digits = [Decimal(x) for x in start], 50
    while True:
        with decimal.localcontext(decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)):
            b = [Decimal(x) * Decimal(unit) for x in linear]
            gradient, hessian, n = _decimal_sums(vault, shapes, persons, k, w, b, ridge)
            size, D, away = _norm(gradient), len(w), _norm(w)
            off = (n + 1) * D * ((D + 2) * away + 6 + n + Decimal(ridge) * away + _norm(b)).scaleb(1 - digits)
            if size + off <= Decimal(GRADIENT_ERROR) / 2:
                return [max(min(int((x / Decimal(step)).to_integral_value()), 2**61), -(2**61)) for x in w]
            if off > Decimal(GRADIENT_ERROR) / 8:
                digits *= 2
                continue
            move = [Decimal(x) * size for x in np.linalg.solve(hessian, [-float(x / size) for x in gradient]).tolist()]
            beta = _norm(move)
            factor = (1 + beta).ln() / beta if beta > Decimal("0.5") else Decimal(1)
            w = [x + factor * y for x, y in zip(w, move, strict=True)]


def _norm(values: list[Decimal]) -> Decimal:
    return sum((x * x for x in values), Decimal(0)).sqrt()


def _decimal_sums(
    vault: Vault,
    shapes: list[tuple[int, ...]],
    persons: FloatArray | None,
    k: int,
    w: list[Decimal],
    b: list[Decimal],
    ridge: float,
) -> tuple[list[Decimal], FloatArray, int]:
    """Gradient of one problem in the decimals of the context, Hessian in floats, number of rows."""
    D, K = len(w), shapes[1][0] if shapes[1] else 1
    gradient = [Decimal(ridge) * x + y for x, y in zip(w, b, strict=True)]
    hessian, rows_seen = ridge * np.eye(D), 0
    far = 3 * decimal.getcontext().prec
    for rows, m, codes in vault.blocks():
        z, t, weights = _usable(rows, m, row_weights(persons, codes, m), D, K)
        rows_seen += m
        for i in np.flatnonzero(weights[:m, k]):
            x, weight = [Decimal(v) for v in z[i].tolist()], Decimal(float(weights[i, k]))
            sign = 1 if t[i, k] > 0 else -1
            margin = sign * sum((p * q for p, q in zip(x, w, strict=True)), Decimal(0))
            wrong = Decimal(int(margin < 0)) if abs(margin) > far else 1 / (1 + margin.exp())
            gradient = [g - sign * weight * wrong * p for g, p in zip(gradient, x, strict=True)]
            hessian += float(weight * wrong * (1 - wrong)) * np.outer(z[i], z[i])
    return gradient, hessian, rows_seen


def _usable(rows: Rows, m: int, weights: FloatArray, D: int, K: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows in the unit ball, targets, and the weight of each row in each problem."""
    z, t = np.array(rows[0].reshape(-1, D)), rows[1].reshape(-1, K)
    bend, zero = np.zeros((BLOCK, K)), np.zeros((K, D))
    _logistic_rows(z, t, m, weights, zero, np.zeros((2, K)), np.zeros((2, K, D)), bend)
    return z, t, 4 * bend  # at w = 0 the curvature is a quarter of the weight


def _same(rows: Rows) -> Rows:
    return rows


def _logistic_sums(
    vault: Vault,
    f: RowFunction,
    shapes: list[tuple[int, ...]],
    persons: FloatArray | None,
    w: FloatArray,
    ridge: float,
    linear: FloatArray,
    *,
    curvature: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Values (K,), gradients (D, K), Hessians (K, D, D), rows; a person with m rows counts 1/m for each."""
    (D, K), n = w.shape, 0
    value, gradient = np.zeros((2, K)), np.zeros((2, K, D))  # sums, and what their rounding has lost
    hessian = np.zeros((K, D, D))
    columns = np.ascontiguousarray(w.T)
    bend = np.empty((BLOCK, K))
    for rows, m, codes in vault.blocks():
        z, t = evaluate(f, rows, m, shapes)
        z = np.array(z.reshape(-1, D))
        n += m
        _logistic_rows(z, t.reshape(-1, K), m, row_weights(persons, codes, m), columns, value, gradient, bend)
        for k in range(K if curvature else 0):
            hessian[k] += (z[:m] * bend[:m, k : k + 1]).T @ z[:m]
    values = value.sum(axis=0) + (ridge / 2 * w**2 + linear * w).sum(axis=0)
    return values, gradient.sum(axis=0).T + ridge * w + linear, hessian + ridge * np.eye(D), n


@kernel()
def _add(total, at, x):  # type: ignore[no-untyped-def]
    """Add x to total[0][at] and the rounding error of that, exactly, to total[1][at] (Knuth's two-sum)."""
    old = total[0][at]
    new = old + x
    part = new - old
    total[0][at] = new
    total[1][at] += (old - (new - part)) + (x - part)


@kernel()
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product in twice the working precision (Ogita, Rump & Oishi 2005, Dot2, with Dekker's product)."""
    high, low = 0.0, 0.0
    for j in range(a.size):
        x, y = a[j], b[j]
        product = x * y
        cx, cy = 134217729.0 * x, 134217729.0 * y  # 2^27 + 1 halves the digits
        x1, y1 = cx - (cx - x), cy - (cy - y)
        x2, y2 = x - x1, y - y1
        low += x2 * y2 - (((product - x1 * y1) - x2 * y1) - x1 * y2)
        new = high + product
        part = new - high
        low += (high - (new - part)) + (product - part)
        high = new
    return high + low


@kernel("f8[:,::1], f8[:,::1], i8, f8[::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1]")
def _logistic_rows(z, t, m, weights, columns, value, gradient, bend):  # type: ignore[no-untyped-def]
    """Put m rows into the unit ball, in place, and add their losses, gradients; curvatures to ``bend``.

    Labels are the signs of the targets. A row that is not finite counts as no row.
    """
    K, D = columns.shape
    for i in range(m):
        norm = math.sqrt(_dot(z[i], z[i]))
        usable = math.isfinite(norm)
        for k in range(K):
            usable = usable and math.isfinite(t[i, k])
        factor = max(1 + 1e-12, norm * (1 + 1e-12))
        for j in range(D):
            z[i, j] = z[i, j] / factor if usable else 0.0
        for k in range(K):
            weight = weights[i] if usable and t[i, k] != 0 else 0.0
            bend[i, k] = 0.0
            if weight == 0.0:
                continue
            sign = 1.0 if t[i, k] > 0 else -1.0
            margin = sign * _dot(z[i], columns[k])
            tail = math.exp(-abs(margin))
            wrong = tail / (1 + tail) if margin > 0 else 1 / (1 + tail)  # probability of the other label
            _add(value, k, weight * (math.log1p(tail) + max(-margin, 0.0)))
            slope = -sign * weight * wrong
            for j in range(D):
                _add(gradient[:, k], j, slope * z[i, j])
            bend[i, k] = weight * tail / (1 + tail) ** 2
