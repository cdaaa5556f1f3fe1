"""The published distributed PCA on Paillier sums (DPDPCA) as printed, for comparison: **not differentially private**.

What runs here is the protocol itself, ciphertext by ciphertext, with all that each party sees kept, so that its leaks
can be looked at. The corrected protocol is :class:`fdadp.federated.Contract` with the model ``"pca"``.

The protocol. Owner l sends E(R_l), E(v_l), E(N_l), entry by entry: R_l = Σ xx', v_l = Σ x. The proxy multiplies them to
E(R), E(v), E(N), has the data user decrypt N, draws integers b̃ and a symmetric Gaussian matrix G', and sends the user
E(v') = E(v + N b̃) and E(R') = E(R + G + G'), G_ij = v_i b̃_j + v_j b̃_i + N b̃_i b̃_j. Then R' - v'v''/N = S + G', S being
the scatter about the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.federated.paillier import PublicKey, Randomness, SecretKey, _gmpy2, add, keys
from fdadp.learners._base import as_table
from fdadp.learners.decomposition import signed
from fdadp.learners.published import _Published
from fdadp.privacy.ledger import Release

__all__ = ["ProxyView", "PublishedDPDPCA", "UserView"]

LEAKS = (
    "the sums of the features modulo the number of rows: v' mod N, which the data user computes from what it decrypts",
    "the number of rows, to proxy and user",
    "the smallest and the largest value of each feature, and the largest norm of a row, which scales the noise",
    "everything, once proxy and user put together what they have: the proxy knows all the noise",
    "the scatter about the mean with too little noise: a row changes it by up to twice what the noise is made for",
)


@dataclass(frozen=True)
class UserView:
    """All that the data user decrypts.

    Attributes
    ----------
    n : int
        Number of rows.
    masked_sum : tuple of int
        v' = v + N b̃.
    masked_moment : tuple of tuples of int
        R' = R + G + G'.
    """

    n: int
    masked_sum: tuple[int, ...]
    masked_moment: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ProxyView:
    """What the proxy drew itself, besides the ciphertexts and N.

    Attributes
    ----------
    mask : tuple of int
        b̃.
    noise : ndarray of int64
        G', (d, d).
    """

    mask: tuple[int, ...]
    noise: IntArray


class PublishedDPDPCA(_Published):
    """PCA of many owners' rows by the published protocol. **Not private**, whatever ε it claims.

    Parameters
    ----------
    n_components : int
    epsilon, delta : float
        Claimed. delta: default 1/N, as printed.
    bits : int
        Features become integers from 0 to 2^bits - 1 between their smallest and largest values.
    mask_bits : int
        b̃ is uniform below 2^mask_bits; undefined in the source.
    key_bits : int
        Of the Paillier key.
    key : SecretKey, optional
        The data user's; by default a new one.
    random_state : int, optional
        Seeds b̃ and G'.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal rows, of the discretised features.
    explained_variance_ : ndarray of shape (k,)
        In squared steps of the discretisation.
    user_view_ : UserView
    proxy_view_ : ProxyView
    ciphertexts_ : int
        That one owner sent.
    ledger_, privacy_spent_
        The latter is None.

    Notes
    -----
    G' has the scale τ = Δ √(2 log(1.25/δ))/ε on every entry of the upper triangle, rounded to integers. Δ = 1 for rows
    whose norm is at most 1, as printed, is B² here, B being the largest norm of a row of integers. It is right for R.
    The scatter about the mean changes with a row by N/(N+1) (x - m)(x - m)', of norm up to 4 B², or 2 B² where x >= 0.

    The printed code differs from the text: it adds neither b nor G', takes the product of a one-dimensional v with
    itself for vv', and has keys of 128 bits. This is the text. Each owner's own minima and maxima would put owners on
    different scales: here owners exchange them, and norms, in clear.
    """

    def __init__(
        self,
        n_components: int = 2,
        epsilon: float = 1.0,
        delta: float | None = None,
        bits: int = 8,
        mask_bits: int = 32,
        key_bits: int = 2048,
        key: SecretKey | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bits = bits
        self.mask_bits = mask_bits
        self.key_bits = key_bits
        self.key = key
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: Any = None) -> PublishedDPDPCA:
        """Carry the protocol out between the owners of `X`, a proxy and a data user; warns that it is not private.

        Parameters
        ----------
        X : sequence of array_like of shape (n_l, d)
            Rows of each owner.
        y : None
            Ignored.
        """
        tables = [np.asarray(as_table(one), dtype=np.float64) for one in X]
        self._positive(epsilon=self.epsilon, delta=0.5 if self.delta is None else self.delta)
        d = tables[0].shape[1] if tables else 0
        if not tables or any(table.shape[1] != d or not np.isfinite(table).all() for table in tables):
            raise InputError("X must be one table of finite numbers for each owner, of equal width")
        if not 1 <= self.n_components <= d:
            raise InputError(f"n_components must lie between 1 and {d}, got {self.n_components!r}")
        rng = np.random.default_rng(self.random_state)
        low = np.min([table.min(axis=0) for table in tables], axis=0)
        high = np.max([table.max(axis=0) for table in tables], axis=0)
        secret = keys(self.key_bits) if self.key is None else self.key
        public = secret.public
        integers = [_discretised(table, low, high, self.bits) for table in tables]
        sent = [_encrypted(x, public) for x in integers]
        totals = add(public, sent)
        n = _centred(secret.decrypt([totals[0]]), public)[0]

        delta = 1 / n if self.delta is None else self.delta
        sensitivity = float(max((x**2).sum(axis=1).max() for x in integers))
        tau = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / self.epsilon
        upper = np.triu(np.rint(rng.standard_normal((d, d)) * tau)).astype(np.int64)
        noise: IntArray = upper + np.triu(upper, 1).T
        mask = [int(b) for b in rng.integers(0, 2**self.mask_bits, d)]
        self.proxy_view_ = ProxyView(tuple(mask), noise)
        masked = _masked(public, totals, mask, noise)

        values = _centred(secret.decrypt(masked), public)
        moment = tuple(tuple(values[d + i * d : d + (i + 1) * d]) for i in range(d))
        self.user_view_ = UserView(n, tuple(values[:d]), moment)
        axes, variances = _eigen(self.user_view_)
        self.components_ = signed(axes[: self.n_components])
        self.explained_variance_ = np.maximum(variances[: self.n_components], 0) / n
        self.ciphertexts_ = len(sent[0])
        self._write(
            "Distributed PCA on Paillier sums (published)",
            [
                Release(
                    "scatter about the mean", d * (d + 1) // 2, "Gaussian", tau, sensitivity, self.epsilon, delta=delta
                )
            ],
            LEAKS,
            {
                "claimed delta": delta,
                "true sensitivity": 2 * sensitivity,
                "reading: minima and maxima": "of all owners",
            },
        )
        return self


def _discretised(X: FloatArray, low: FloatArray, high: FloatArray, bits: int) -> IntArray:
    steps = 2**bits - 1
    return np.asarray(np.floor(steps * (X - low) / np.where(high > low, high - low, 1.0)), dtype=np.int64)


def _encrypted(x: IntArray, key: PublicKey) -> list[int]:
    """One owner's ciphertexts of N, v (d,) and R (d, d), row by row."""
    return key.encrypt([len(x), *x.sum(axis=0).tolist(), *(x.T @ x).ravel().tolist()], Randomness(key))


def _masked(key: PublicKey, totals: Sequence[int], mask: Sequence[int], noise: IntArray) -> list[int]:
    """What the proxy sends on: ciphertexts of v' (d,) and R' (d, d), made from those of N, v and R."""
    gmpy2 = _gmpy2()
    square, n = key.square, key.n
    d = len(mask)
    number, sums, moment = totals[0], totals[1 : d + 1], totals[d + 1 :]

    def times(c: int, m: int) -> Any:
        return gmpy2.powmod(c, m % n, square)

    out = [int(sums[i] * times(number, mask[i]) % square) for i in range(d)]
    for i in range(d):
        for j in range(d):
            g = times(sums[i], mask[j]) * times(sums[j], mask[i]) * times(number, mask[i] * mask[j])
            plain = 1 + n * gmpy2.mpz(int(noise[i, j]) % int(n))
            out.append(int(moment[i * d + j] * g * plain % square))
    return out


def _centred(plaintexts: Sequence[int], key: PublicKey) -> list[int]:
    """Integers about 0 of residues modulo the key."""
    n = int(key.n)
    return [m - n if m > n // 2 else m for m in plaintexts]


def _eigen(view: UserView) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors, as rows, and eigenvalues of R' - v'v''/N: exact integers up to the division."""
    d = len(view.masked_sum)
    S = np.empty((d, d))
    for i, j in np.ndindex(d, d):
        S[i, j] = (view.n * view.masked_moment[i][j] - view.masked_sum[i] * view.masked_sum[j]) / view.n
    values, vectors = np.linalg.eigh(S)
    return vectors[:, ::-1].T, values[::-1]
