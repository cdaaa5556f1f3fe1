"""The published distributed PCA on Paillier sums (DPDPCA) as printed, for comparison: **not differentially private**.

What runs here is the protocol itself, ciphertext by ciphertext, with all that each party sees kept, so that its leaks
can be looked at. The corrected protocol is :class:`fdadp.federated.Contract` with the model ``"pca"``.

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

from fdadp._common.checks import one_of
from fdadp._common.typing import IntArray
from fdadp.errors import InputError
from fdadp.federated.paillier import PublicKey, SecretKey, add, keys
from fdadp.learners.decomposition import signed
from fdadp.learners.shared.inputs import as_table, box, positive
from fdadp.privacy import Privacy
from fdadp.privacy.account.releases import Release
from fdadp.published._base import Published
from fdadp.published._encrypted_sums import (
    ProxyView,
    UserView,
    centred,
    discretised,
    encrypted,
    gaussian,
    masked,
    scatter,
    symmetric,
)

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
    private where a row is replaced, the number of rows is public, and proxy and user do not collude: the proxy alone
    makes the noise. It is not accounted for by the privacy kernel and reported as not private all the same; that user
    and proxy must not collude is a weaker footing than that of :class:`fdadp.federated.Contract`, where their collusion
    still leaves each owner its own share of the noise.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from fdadp.errors import NotPrivateWarning
    >>> from fdadp.federated.paillier import keys
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
        totals = add(key, sent)
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
        return (
            mask,
            symmetric(noise),
            Release("N S", len(scales), "Gaussian", sd, sensitivity, self.epsilon, delta=delta),
        )
