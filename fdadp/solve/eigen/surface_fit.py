"""A fitted surface F of ``∫ F{X(s), s, t} ds``: a fit of one term on eigenfunctions, and what is published of it.

Least squares, private mechanisms, files and the published scheme all give one; what it predicts is said by its fit of
the long form, as of any model of many terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import Eigenbasis
from fdadp.solve.eigen.components import ComponentsFit
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.fit.residuals import PointwiseVariance, r2_of, white_part
from fdadp.solve.linear.block_diagonal import ByFunction
from fdadp.terms.surface import Surface

if TYPE_CHECKING:
    from fdadp.privacy import Ledger, Privacy


@dataclass(frozen=True, kw_only=True)
class SurfaceFit:
    """A fit of one surface.

    Attributes
    ----------
    fit : AdditiveFit
        Of the long form: the mean curve and the surface.
    term : Surface
        The surface, in the units of X.
    values : ndarray of shape (K, kx, ks)
        F at the points of its bases for each eigenfunction, about its mean over the training curves.
    basis : Eigenbasis
        Mean and eigenfunctions of Y.
    law : PointwiseVariance
        Of new responses about their means.
    beyond : mapping of str to ndarray of shape (T,), or None
        Variance of mean curves that no coefficient knows of (:class:`fdadp.solve.eigen.components.ComponentsFit`).
    edf : ndarray of shape (K,)
        Effective degrees of freedom, the intercept's among them.
    smoothing_parameters : ndarray of shape (K, M)
    criterion : ndarray of shape (K,)
        Value of the criterion that chose them.
    noise_variance : float
        White part of the residual variance.
    r2 : float
        Share of the variance of Y that is explained.
    inverses : ndarray of shape (K, p, p) or None
        Inverse of the penalised information of each score, where the covariance is not made of it: of curves with gaps.
    limited : bool
        Whether predictions far from the mean curve are pulled back, as in private fits.
    notes : tuple of str
    ledger : Ledger or None
        What was released.
    privacy : Privacy or None
        The guarantee; None where there is none.
    plan : Plan or None
        How a private fit shared out its budget.
    """

    fit: AdditiveFit
    term: Surface
    values: FloatArray
    basis: Eigenbasis
    law: PointwiseVariance
    beyond: Mapping[str, FloatArray] | None = None
    edf: FloatArray
    smoothing_parameters: FloatArray
    criterion: FloatArray
    noise_variance: float
    r2: float
    inverses: FloatArray | None = None
    limited: bool = False
    notes: tuple[str, ...] = ()
    ledger: Ledger | None = None
    privacy: Privacy | None = None
    plan: object = None

    @classmethod
    def of(cls, found: ComponentsFit) -> SurfaceFit:
        """That of one term fitted to scores."""
        scores = found.scores
        sums, left = scores.sums, scores.left
        (term,) = sums.designs
        assert isinstance(term, Surface)
        slopes = np.zeros((term.kept.size, len(scores.solutions)))
        slopes[term.kept] = scores.coefficients
        return cls(
            fit=found.fit,
            term=term,
            values=term.about_mean(term.values(slopes)),
            basis=found.basis,
            law=PointwiseVariance(sums.t, left.variance - left.omitted, inverse_dof=1 / left.degrees),
            beyond=found.beyond,
            edf=np.array([one.edf_total for one in scores.solutions]),
            smoothing_parameters=np.stack([one.smoothing_parameters for one in scores.solutions]),
            criterion=scores.criteria,
            noise_variance=white_part(left, sums.t),
            r2=r2_of(sums, left, found.basis),
            notes=term.notes(),
        )

    @property
    def by_function(self) -> ByFunction:
        """Covariance of coefficients without the scale."""
        assert isinstance(self.fit.spread, ByFunction)
        return self.fit.spread

    @property
    def slopes(self) -> FloatArray:
        """Coefficients of the features, shape (p, K)."""
        return self.fit.coefficients[len(self.by_function.rest) :].reshape(-1, len(self.values))

    def with_values(self, values: FloatArray, variances: FloatArray) -> SurfaceFit:
        """The fit with other values of F, each farther from the truth by a variance of its function's (K,)."""
        held, c = self.by_function, len(self.by_function.rest)
        change = self.term.coefficients(values)[self.term.kept] - self.slopes
        coefficients = self.fit.coefficients.copy()
        coefficients[:c] -= held.turn @ (held.centre @ change)
        coefficients[c:] += change.ravel()
        scale = self.fit.sigma2
        blocks = held.blocks * (held.sizes * scale)[:, None, None]
        blocks[:, 1:, 1:] += variances[:, None, None] * np.eye(held.centre.size)  # the coordinates are orthonormal
        spread = replace(held, blocks=blocks, sizes=np.ones(len(blocks)), rest=held.rest * scale)
        fit = replace(self.fit, coefficients=coefficients, spread=spread, sigma2=1.0)
        return replace(self, fit=fit, values=values)
