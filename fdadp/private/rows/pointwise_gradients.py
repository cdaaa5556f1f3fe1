"""Gradients of models with features that differ between points of t: pairs (feature, response function) one by one.

Where the features f of a row are the same at all t, what a person adds to a gradient is an outer product f r', and
features are all that must be known of the second moment. Features ``z_j(t)`` of concurrent and historical effects add
``∫ z_j(t) φ_k(t) r(t) dt``, a matrix of any rank. Its entries, the pairs that the plan measures, are then P features of
one output, and the second moment A is P x P: all else is as it was.

As all features are multiplied by the same response functions, white features make pairs nearly white, and what A is
under the public prior is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp._common.loaded_later import kernel
from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.private.denoise.empirical_bayes import MOMENT_VARIANCE
from fdadp.private.plan.private_design import PrivateDesign

# Features of rows that differ between points of the response: what they do with coefficients, residuals and noise.
#
# ``z`` has shape (m, q, T). Each row's numbers depend on that row alone, bit for bit
# (:mod:`fdadp.private.rows.row_functions`).


@kernel("f8[:,::1], f8[:,:,::1], f8[:,::1]")
def added(values, z, effects):  # type: ignore[no-untyped-def]
    """``values(t) + Σ_j z_j(t) effects_j(t)``, shape (m, T); `effects` (q, T)."""
    out = values.copy()
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            for t in range(z.shape[2]):
                out[i, t] += z[i, j, t] * effects[j, t]
    return out


@kernel("f8[:,:,::1], f8[:,::1], f8[:,::1]")
def integrals(z, curves, weighted):  # type: ignore[no-untyped-def]
    """``∫ z_j(t) φ_k(t) r(t) dt`` of curves r (m, T), shape (m, q, K); `weighted` (T, K): φ times quadrature."""
    out = np.zeros((z.shape[0], z.shape[1], weighted.shape[1]))
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            for t in range(z.shape[2]):
                product = z[i, j, t] * curves[i, t]
                for k in range(weighted.shape[1]):
                    out[i, j, k] += product * weighted[t, k]
    return out


@kernel("f8[:,::1], f8[:,:,::1], i8[::1], f8[:,:,::1]")
def quadratic(features, z, places, forms):  # type: ignore[no-untyped-def]
    """``h(t)' Q(t) h(t)``, h the features of a row at t; shape (m, T).

    Parameters
    ----------
    features : ndarray of shape (m, D)
        0 at `places`.
    z : ndarray of shape (m, q, T)
    places : ndarray of shape (q,)
        Of these among the features.
    forms : ndarray of shape (D, D, T)
        Q at each point, symmetric.
    """
    d, points = features.shape[1], forms.shape[2]
    at, out = np.full(d, -1), np.zeros((len(features), points))
    for j in range(places.size):
        at[places[j]] = j
    for i in range(len(features)):
        for j in range(d):
            for k in range(j + 1):
                twice = 1.0 if j == k else 2.0
                if at[j] < 0 and at[k] < 0:
                    product = twice * features[i, j] * features[i, k]
                    for t in range(points):
                        out[i, t] += product * forms[j, k, t]
                elif at[j] >= 0 and at[k] >= 0:
                    for t in range(points):
                        out[i, t] += twice * z[i, at[j], t] * z[i, at[k], t] * forms[j, k, t]
                else:
                    first, steady = (j, k) if at[j] >= 0 else (k, j)
                    product = twice * features[i, steady]
                    for t in range(points):
                        out[i, t] += product * z[i, at[first], t] * forms[j, k, t]
    return out


UNLIKE = 0.3
"""Prior variance of an entry of A over that of one a step nearer to the diagonal, by the order of functions."""


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs of a feature and a response function that are measured, in the order of the entries of a matrix.

    Attributes
    ----------
    shape : (int, int)
        Numbers D of features, the constant among them, and K of response functions.
    feature, output : ndarray of shape (P,)
        Of each pair.
    varying : ndarray of shape (q,)
        Places among the D features of those that differ between points.
    weights : ndarray of shape (P, 1)
        Public weights in the gradient.
    shares : ndarray of shape (P,)
        Of the energy of responses, what their products with a feature have in a response function.
    moment : ndarray of shape (P, P)
        Second moment of what multiplies the coefficients, under the public prior.
    uncertain : ndarray of shape (P, P)
        Prior variances of its entries: between two response functions 0 of features that are the same at all t, of
        others the smaller the less alike the functions are, as second moments are smooth in t.
    """

    shape: tuple[int, int]
    feature: IntArray
    output: IntArray
    varying: IntArray
    weights: FloatArray
    shares: FloatArray
    moment: FloatArray
    uncertain: FloatArray

    @classmethod
    def of(cls, design: PrivateDesign, weights: FloatArray) -> MeasuredPairs | None:
        """Pairs of a design that have weights (D, K); None where all features are the same at all t."""
        d, k = weights.shape
        varying = 1 + design.groups.varying(d - 1)
        if not varying.size:
            return None
        feature, output = (at.astype(np.int64) for at in np.nonzero(weights))
        functions = design.response[:, :k]
        products = np.einsum("t,tk,tl->klt", design.t_weights, functions, functions)
        square = np.tile(np.eye(d)[:, :, None], (1, 1, design.t.size))
        square[np.ix_(varying, varying)] = design.second_moment[: varying.size, : varying.size]
        moment = np.einsum("klt,ijt->ikjl", products, square, optimize=True).reshape(d * k, d * k)
        at = feature * k + output
        differs: BoolArray = np.isin(feature, varying)
        uncertain = np.where(differs[:, None] | differs, UNLIKE ** np.abs(output[:, None] - output), 0.0)
        uncertain[output[:, None] == output] = 1.0
        return cls(
            shape=(d, k),
            feature=feature,
            output=output,
            varying=varying,
            weights=np.ascontiguousarray(weights[feature, output][:, None]),
            shares=design.gradient_shares[feature, output],
            moment=moment[np.ix_(at, at)],
            uncertain=MOMENT_VARIANCE * uncertain,
        )

    @property
    def size(self) -> int:
        """Number P of pairs."""
        return self.feature.size

    def forms(self, values: FloatArray, functions: FloatArray) -> FloatArray:
        """Forms ``Σ_kl C_(ik)(jl) φ_k(t) φ_l(t)`` between features at each point, from C (P, P); shape (D, D, T).

        Parameters
        ----------
        values : ndarray of shape (P, P)
        functions : ndarray of shape (T, K)
        """
        own = functions[:, : self.shape[1]].T
        return np.ascontiguousarray(np.einsum("ikjl,kt,lt->ijt", self.square(values), own, own, optimize=True))

    def matrix(self, values: FloatArray) -> FloatArray:
        """Values (P, 1) of pairs as a matrix (D, K), zero elsewhere."""
        out = np.zeros(self.shape)
        out[self.feature, self.output] = values[:, 0]
        return out

    def square(self, values: FloatArray) -> FloatArray:
        """Values (P, P) between pairs as an array (D, K, D, K), zero elsewhere."""
        out = np.zeros((self.shape[0] * self.shape[1],) * 2)
        at = self.feature * self.shape[1] + self.output
        out[np.ix_(at, at)] = values
        return out.reshape(*self.shape, *self.shape)

    def entries(self, matrices: FloatArray) -> FloatArray:
        """Entries of matrices (m, D, K) that are pairs, shape (m, P)."""
        return np.ascontiguousarray(matrices[:, self.feature, self.output])
