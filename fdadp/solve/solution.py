"""What a penalised fit of one response found."""

from __future__ import annotations

from dataclasses import dataclass

from fdadp._common.typing import FloatArray


@dataclass(frozen=True)
class Solution:
    """A penalised fit of one response.

    Attributes
    ----------
    smoothing_parameters : ndarray of shape (M,)
    coefficients : ndarray of shape (p,)
    edf : ndarray of shape (p,)
        Effective degrees of freedom of each coefficient, ``diag(A⁻¹ G)``; the 1 of an intercept that features are
        centred for is not among them.
    rss : float
        Residual sum of squares.
    noise_variance : float
        ``rss / (n - edf_total)``, mgcv's ``sig2``; the scale where that is known.
    scale : float
        The scale that was given, or REML's own estimate ``(rss + β'Sβ) / (n - n_unpenalized)``, mgcv's ``reml.scale``.
    reml, gcv : float
        The two criteria at these smoothing parameters.
    gradient : ndarray of shape (M,)
    hessian : ndarray of shape (M, M)
        First and second derivatives of REML in the logarithms of the smoothing parameters.
    inverse : ndarray of shape (p, p)
        ``A⁻¹``; the Bayesian covariance of the coefficients (mgcv's ``Vp``) is ``noise_variance * inverse``.
    intercept : bool
        Whether features were centred, which stands for an intercept.
    """

    smoothing_parameters: FloatArray
    coefficients: FloatArray
    edf: FloatArray
    rss: float
    noise_variance: float
    scale: float
    reml: float
    gcv: float
    gradient: FloatArray
    hessian: FloatArray
    inverse: FloatArray
    intercept: bool

    @property
    def edf_total(self) -> float:
        """Effective degrees of freedom, the intercept among them."""
        return float(self.edf.sum() + self.intercept)

    @property
    def covariance(self) -> FloatArray:
        """Bayesian covariance of the coefficients, shape (p, p)."""
        return self.noise_variance * self.inverse
