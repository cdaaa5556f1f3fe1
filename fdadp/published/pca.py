"""Published private PCA as printed, alone and of many owners, for comparison: **not differentially private**.

The private counterpart is :class:`fdadp.learners.DPPCA`.

*DPDPCA*, the distributed one, works on Paillier sums. What runs here is the protocol itself, ciphertext by ciphertext,
with all that each party sees kept, so that its leaks can be looked at. The corrected protocol is
:class:`fdadp.federated.Contract` with the model ``"pca"``.

The protocol. Owner l sends E(R_l), E(v_l), E(N_l), entry by entry: R_l = Σ xx', v_l = Σ x. The proxy multiplies them to
E(R), E(v), E(N), has the data user decrypt N, draws integers b̃ and a symmetric Gaussian matrix G', and sends the user
E(v') = E(v + N b̃) and E(R') = E(R + G + G'), G_ij = v_i b̃_j + v_j b̃_i + N b̃_i b̃_j. Then R' - v'v''/N = S + G', S being
the scatter about the mean.

Repaired, with what it is about unchanged (``masking="uniform"``): b is uniform modulo the key n, v' = v + b, and
R' = N R + v b' + b v' + b b' + H modulo n with integer noise H, of which the user makes R' - v'v'' = N S + H. v' tells
nothing then. That costs d (d + 1) powers with exponents as long as the key, N stays exact, and the proxy knows H.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.argument_checks import one_of
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.learners.pca import signed
from fdadp.learners.shared.public_inputs import as_table, box, positive
from fdadp.privacy import Privacy
from fdadp.privacy.account._reservations import Release
from fdadp.privacy.noise.sources import measurement
from fdadp.published._not_private_base import Published
from fdadp.published.paillier import PublicKey, SecretKey, gmpy2, keys


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedPCA(TransformerMixin, Published):  # type: ignore[misc]
    """PCA from the centred scatter with Gaussian noise for a sensitivity of 1, "Analyze Gauss". **Not private.**

    Parameters
    ----------
    n_components : int
    epsilon, delta : float
        Claimed.
    data_norm : float, optional
        Rows are divided by it so that their norm is at most 1; default: the largest norm of the data.
    random_state : int, optional

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
    explained_variance_ : ndarray of shape (k,)
    mean_ : ndarray of shape (d,)
        Without noise.
    ledger_, privacy_spent_

    Notes
    -----
    Every entry of the upper triangle gets N(0, τ²), τ = Δ √(2 log(1.25/δ))/ε with Δ = 1 (Dwork et al. 2014, of a second
    moment about 0). About the mean, a row changes the scatter by N/(N+1) (x - m)(x - m)', of norm up to 4: four times
    less noise than the claim needs. The mean has no noise at all.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) * [2.0, 0.3, 0.3]
    >>> PublishedPCA(n_components=1, data_norm=5.0, random_state=0).fit(X).ledger_.private
    False
    """

    n_components: int = 2
    delta: float = 1e-5
    data_norm: float | None = None

    def fit(self, X: Any, y: ArrayLike | None = None) -> PublishedPCA:
        """Fit to plain arrays; warns that the result is not private."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        positive(self.epsilon, "epsilon")
        positive(self.delta, "delta")
        n, d = X.shape
        if not 1 <= self.n_components <= d:
            raise InputError(f"n_components must lie between 1 and {d}, got {self.n_components!r}")
        norms = np.linalg.norm(X, axis=1)
        radius = float(norms.max() or 1.0) if self.data_norm is None else float(self.data_norm)
        scaled = X * np.minimum(1.0, radius / np.maximum(norms, 1e-300))[:, None] / radius
        mean = scaled.mean(axis=0)
        tau = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        noise = symmetric(np.random.default_rng(self.random_state).standard_normal((d, d)) * tau)
        values, vectors = np.linalg.eigh((scaled - mean).T @ (scaled - mean) + noise)
        top = vectors[:, ::-1][:, : self.n_components].T
        self.components_ = signed(top)
        self.explained_variance_ = np.maximum(values[::-1][: self.n_components], 0) * radius**2 / n
        self.mean_ = mean * radius
        self._write(
            "PCA of the centred scatter with sensitivity 1 (published)",
            [Release("centred scatter", d * (d + 1) // 2, "Gaussian", tau, 1.0, self.epsilon, delta=self.delta)],
            ["the mean", "the number of rows"] + ["the largest norm of a row"] * (self.data_norm is None),
            {"claimed delta": self.delta, "true sensitivity": 4.0},
        )
        return self

    def transform(self, X: Any) -> FloatArray:
        """Scores (X - mean) components', (m, k)."""
        check_is_fitted(self, "components_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray((X - self.mean_) @ self.components_.T)


@dataclass(frozen=True)
class UserView:
    """All that the data user decrypts.

    Attributes
    ----------
    n : int
        Number of rows.
    masked_sum : tuple of int
        v' = v + N b̃, or v + b modulo the key.
    masked_moment : tuple of tuples of int
        R' = R + G + G', or N R + v b' + b v' + b b' + H modulo the key.
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
        b̃, or b.
    noise : ndarray of int64
        G', or H, (d, d).
    """

    mask: tuple[int, ...]
    noise: IntArray


def symmetric(noise: Any) -> Any:
    """Copy the upper triangle to the lower one."""
    upper = np.triu(noise)
    return upper + np.triu(upper, 1).T


def gaussian(scales: Sequence[float], seed: int | None) -> list[int]:
    """Discrete Gaussian integers, or, seeded, rounded ones."""
    if seed is not None:
        drawn = np.rint(np.random.default_rng(seed).standard_normal(len(scales)) * scales)
        return [int(value) for value in drawn]
    return [int(measurement("gaussian", 1, scale)([0])[0]) for scale in scales]


def discretised(X: FloatArray, low: FloatArray, high: FloatArray, bits: int) -> IntArray:
    """Values as whole steps from 0 to 2^bits - 1 of their range."""
    steps = 2**bits - 1
    return np.asarray(np.floor(steps * (X - low) / np.where(high > low, high - low, 1.0)), dtype=np.int64)


def encrypted(x: IntArray, key: PublicKey) -> list[int]:
    """One owner's ciphertexts of N, v (d,) and R (d, d), row by row."""
    return key.encrypt([len(x), *x.sum(axis=0).tolist(), *(x.T @ x).ravel().tolist()])


def masked(
    key: PublicKey, totals: Sequence[int], rows: int, mask: Sequence[int], noise: IntArray, masking: str
) -> list[int]:
    """What the proxy sends on: ciphertexts of v' (d,) and R' (d, d), made from those of N, v and R."""
    g = gmpy2()
    square, n = key.square, key.n
    d = len(mask)
    number, sums, moment = totals[0], totals[1 : d + 1], totals[d + 1 :]

    def times(c: int, m: int) -> Any:
        return g.powmod(c, m % n, square)

    def plain(m: int) -> Any:
        return 1 + n * g.mpz(m % int(n))

    uniform = masking == "uniform"
    out = [int(sums[i] * (plain(mask[i]) if uniform else times(number, mask[i])) % square) for i in range(d)]
    for i, j in np.ndindex(d, d):
        both = times(sums[i], mask[j]) * times(sums[j], mask[i])
        square_of_mask = plain(mask[i] * mask[j]) if uniform else times(number, mask[i] * mask[j])
        entry = times(moment[i * d + j], rows) if uniform else moment[i * d + j]
        out.append(int(entry * both * square_of_mask * plain(int(noise[i, j])) % square))
    return out


def centred(plaintexts: Sequence[int], key: PublicKey) -> list[int]:
    """Integers about 0 of residues modulo the key."""
    n = int(key.n)
    return [m - n if m > n // 2 else m for m in plaintexts]


def scatter(view: UserView, key: PublicKey | None) -> FloatArray:
    """R' - v'v''/N, or (R' - v'v'' modulo the key)/N: exact integers up to the division."""
    d = len(view.masked_sum)
    S = np.empty((d, d))
    for i, j in np.ndindex(d, d):
        product, entry = view.masked_sum[i] * view.masked_sum[j], view.masked_moment[i][j]
        if key is None:
            S[i, j] = (view.n * entry - product) / view.n
        else:
            S[i, j] = centred([(entry - product) % int(key.n)], key)[0] / view.n
    return S


LEAKS = (
    "the number of rows, to proxy and user",
    "everything, once proxy and user put together what they have: the proxy knows all the noise",
)
RANGE = "the smallest and the largest value of each feature"
MODULO = (
    "the sums of the features modulo the number of rows: v' mod N, which the data user computes from what it decrypts"
)
SCALE = (
    "the largest norm of a row, which scales the noise",
    "the scatter about the mean with too little noise: a row changes it by up to twice what the noise is made for",
)
MASKINGS = ("published", "uniform")


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedDPDPCA(Published):
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
    masking : {"published", "uniform"}
        Of v. "uniform": the repaired protocol, with noise for the sensitivity of N S where a row is replaced and N is
        public.
    bounds : (low, high), optional
        Public, numbers or d of them each; default: smallest and largest values of the data, as printed.
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

    With ``masking="uniform"``, ``bounds`` and noise without a seed, what the data user gets is (ε, δ)-differentially
    private where a row is replaced, the number of rows is public, and proxy and user do not collude. The proxy alone
    makes the noise. It is not accounted for by the privacy kernel and reported as not private all the same: nobody
    decrypts under a :class:`fdadp.federated.Contract`, and here two parties must not collude.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> from fdadp.published.paillier import keys
    >>> warnings.simplefilter("ignore", NotPrivateWarning)
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) * [2.0, 0.3, 0.3]
    >>> pca = PublishedDPDPCA(n_components=1, delta=1e-5, bounds=(-6, 6), key=keys(512), random_state=0)
    >>> pca.fit(np.array_split(X, 2)).ledger_.private
    False
    """

    n_components: int = 2
    delta: float | None = None
    bits: int = 8
    mask_bits: int = 32
    masking: str = "published"
    bounds: Any = None
    key_bits: int = 2048
    key: SecretKey | None = None

    def fit(self, X: Sequence[Any], y: Any = None) -> PublishedDPDPCA:
        """Carry the protocol out between the owners of `X`, a proxy and a data user; warns that it is not private.

        Parameters
        ----------
        X : sequence of array_like of shape (n_l, d)
            Rows of each owner.
        y : None
            Ignored.
        """
        tables = [as_table(one).read() for one in X]
        positive(self.epsilon, "epsilon")
        positive(0.5 if self.delta is None else self.delta, "delta")
        d = tables[0].shape[1] if tables else 0
        if not tables or any(table.shape[1] != d or not np.isfinite(table).all() for table in tables):
            raise InputError("X must be one table of finite numbers for each owner, of equal width")
        if not 1 <= self.n_components <= d:
            raise InputError(f"n_components must lie between 1 and {d}, got {self.n_components!r}")
        one_of(self.masking, "masking", MASKINGS)
        if self.bounds is None:
            low = np.min([table.min(axis=0) for table in tables], axis=0)
            high = np.max([table.max(axis=0) for table in tables], axis=0)
        else:
            low, high = box(self.bounds, d)
        secret = keys(self.key_bits) if self.key is None else self.key
        key = secret.public
        integers = [discretised(np.clip(table, low, high), low, high, self.bits) for table in tables]
        sent = [encrypted(x, key) for x in integers]
        totals = key.add(sent)
        n = centred(secret.decrypt([totals[0]]), key)[0]
        delta = 1 / n if self.delta is None else self.delta
        draw = self._uniform if self.masking == "uniform" else self._published
        mask, noise, release = draw(key, integers, n, delta)
        self.proxy_view_ = ProxyView(tuple(mask), noise)
        values = secret.decrypt(masked(key, totals, n, mask, noise, self.masking))
        if self.masking == "published":
            values = centred(values, key)
        moment = tuple(tuple(values[d + i * d : d + (i + 1) * d]) for i in range(d))
        self.user_view_ = UserView(n, tuple(values[:d]), moment)
        variances, axes = np.linalg.eigh(scatter(self.user_view_, key if self.masking == "uniform" else None))
        self.components_ = signed(axes[:, ::-1][:, : self.n_components].T)
        self.explained_variance_ = np.maximum(variances[::-1][: self.n_components], 0) / n
        self.ciphertexts_ = len(sent[0])
        self._write(
            f"Distributed PCA on Paillier sums ({'published' if self.masking == 'published' else 'repaired'})",
            [release],
            [*LEAKS, *([RANGE] * (self.bounds is None)), *([MODULO, *SCALE] if self.masking == "published" else [])],
            {
                "claimed delta": delta,
                "reading: minima and maxima": "of all owners" if self.bounds is None else "public",
            },
        )
        return self

    def _published(
        self, key: PublicKey, integers: Sequence[IntArray], n: int, delta: float
    ) -> tuple[list[int], IntArray, Release]:
        """b̃, G' and what is claimed of it."""
        rng = np.random.default_rng(self.random_state)
        d = integers[0].shape[1]
        sensitivity = float(max((x**2).sum(axis=1).max() for x in integers))
        tau = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / self.epsilon
        noise = symmetric(np.rint(rng.standard_normal((d, d)) * tau).astype(np.int64))
        mask = [int(b) for b in rng.integers(0, 2**self.mask_bits, d)]
        size = d * (d + 1) // 2
        return mask, noise, Release("S", size, "Gaussian, rounded", tau, sensitivity, self.epsilon, delta=delta)

    def _uniform(
        self, key: PublicKey, integers: Sequence[IntArray], n: int, delta: float
    ) -> tuple[list[int], IntArray, Release]:
        """b, and H for a row that is replaced: N S moves by (N-1)(aa' - bb'), |a|² and |b|² at most d (2^bits - 1)²."""
        d = integers[0].shape[1]
        sensitivity = n * math.sqrt(2) * d * (2**self.bits - 1) ** 2
        settings = Privacy(epsilon=self.epsilon, delta=delta)
        sd = sensitivity / math.sqrt(2 * settings.budget_share()[0].total)
        scales = [sd / math.sqrt(1 if i == j else 2) for i in range(d) for j in range(i, d)]
        noise = np.zeros((d, d), dtype=np.int64)
        noise[np.triu_indices(d)] = gaussian(scales, self.random_state)
        mask = [secrets.randbelow(int(key.n)) for _ in range(d)]  # the result does not depend on it: no seed
        release = Release("N S", len(scales), "Gaussian", sd, sensitivity, self.epsilon, delta=delta)
        return mask, symmetric(noise), release
