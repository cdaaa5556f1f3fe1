"""A term: what one covariate contributes to the mean of a response, linear in coefficients.

What a new kind of term has to say is in :class:`Term`; docs/extend/term.md goes through an example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.curves import Curves

__all__ = ["HALF_WIDTH", "Covariate", "Prior", "Standardised", "Term", "Unfixed"]

HALF_WIDTH = 4.0
"""Standardised curves are clipped to ±4 of their standard deviations."""


@dataclass(frozen=True)
class Covariate:
    """What is known of a covariate before the training curves are added up.

    Attributes
    ----------
    grid : ndarray of shape (S,)
    range : (float, float)
        Of its values.
    n : int or None
        Number of training curves, where it is known.
    """

    grid: FloatArray
    range: tuple[float, float]
    n: int | None = None


class OfSurfaces(Protocol):
    """A Gaussian law of surfaces."""

    def covariance(self, n_x: int, n_s: int) -> FloatArray:
        """Covariance of the coefficients on `n_x` times `n_s` B-splines, shape (n_x n_s, n_x n_s)."""


class Prior(Protocol):
    """What a term may ask of the public prior of a private fit; :class:`fdadp.PublicPrior` is one."""

    @property
    def n_basis_x(self) -> int:
        """Number of B-splines over the values of a covariate."""

    @property
    def n_basis_s(self) -> int:
        """Number of B-splines over its grid."""

    @property
    def surface(self) -> OfSurfaces:
        """What is believed of a surface F(x, s)."""


class Unfixed(Protocol):
    """A term as a user asks for it, before the range and the grid of its covariate are known; hashable.

    A :class:`Term` that needs to know neither is one itself.
    """

    @property
    def column(self) -> str:
        """Name of the covariate."""

    def __hash__(self) -> int: ...

    def fixed(self, covariate: Covariate) -> Term:
        """The term on bases that suit the range and the grid of its covariate."""

    def standard(self, covariate: Covariate, prior: Prior) -> Term:
        """The term on standardised curves, for a private fit: its bases from public values alone."""


class Term(ABC):
    """What one covariate contributes: a row of q features for each curve, times coefficients for each of K outputs.

    A term is used in this order: :meth:`fixed` once the covariate's range is known, :meth:`add_to` for each block of
    training curves, :meth:`learned` when all were seen; then `rotation` and `penalties` say what is estimated and how
    it is smoothed, :meth:`published` turns the estimates into coefficients for users, and :meth:`rows` with
    :meth:`to_features` predict. Only `n_features` and :meth:`rows` have no default: coefficients are then those of the
    features, with a ridge penalty.

    Attributes
    ----------
    column : str
        Name of the covariate.
    separable : bool
        Whether the features are the same for every t, so that a contribution is ``rows @ coefficients @ functions``.
        Others are not fitted yet.
    """

    column: str
    separable: ClassVar[bool] = True

    # --- bases ---

    def fixed(self, covariate: Covariate) -> Term:
        """The term on bases that suit the range and the grid of its covariate."""
        return self

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Length of a feature row, q."""

    # --- features ---

    @abstractmethod
    def rows(self, x: Curves) -> FloatArray:
        """Feature rows of complete curves, shape (n, q), on any grid over the domain.

        Each row must be a function of its own curve alone, bit for bit, and bounded where values are: private fits
        rely on it. So sum in a fixed order (:func:`fdadp.privacy.rowwise_matmul`), without BLAS.
        """

    def add_to(self, x: Curves, rows: FloatArray) -> Any:
        """Add the feature rows of training curves to the first q columns of `rows` (n, >= q).

        Returns
        -------
        object or None
            What :meth:`learned` wants to know of these curves; with a method ``merge(other)`` that returns it of both.
        """
        rows[:, : self.n_features] += self.rows(x)
        return None

    def learned(self, seen: Any, n: int) -> Term:
        """The term with what :meth:`add_to` saw of all `n` training curves."""
        return self

    # --- what is estimated ---

    @property
    def rotation(self) -> FloatArray:
        """From identified coordinates to coefficients of the features, shape (q, p)."""
        return np.eye(self.n_features)

    @property
    def penalties(self) -> FloatArray:
        """Diagonals of M penalties in identified coordinates, shape (M, p), one smoothing parameter each."""
        return np.ones((1, self.n_features))

    def names(self, directions: Sequence[int]) -> list[str]:
        """What identified coordinates stand for, for the warning that curves do not tell them apart."""
        return [f"direction {i + 1} of {self.column}" for i in directions]

    def notes(self) -> tuple[str, ...]:
        """What a user should know of the training curves, after :meth:`learned`."""
        return ()

    # --- coefficients ---

    def published(self, identified: FloatArray) -> FloatArray:
        """Coefficients as users see them, shape (K, ...), from identified coordinates (K, p)."""
        return np.ascontiguousarray(identified @ self.rotation.T)

    def to_features(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the features (q, K), from those that users see (K, ...)."""
        return coefficients.reshape(len(coefficients), -1).T

    def from_features(self, features: FloatArray) -> FloatArray:
        """Coefficients as users see them (K, ...), from those of the features (q, K)."""
        return np.ascontiguousarray(features.T)

    # --- private fits: of curves standardised by released values, clipped, on [0, 1] ---

    def standard(self, covariate: Covariate, prior: Prior) -> Term:
        """The term on standardised curves: its bases from public values alone."""
        return self.fixed(covariate)

    def prior_covariance(self, prior: Prior) -> FloatArray:
        """Public prior covariance of the coefficients of the features, shape (q, q), for standardised curves."""
        return np.eye(self.n_features)

    def in_units(self, location: float, scale: float, grid: FloatArray) -> tuple[Term, float]:
        """The term on curves as they are, from the one on standardised curves ``(X - location) / scale``.

        Returns
        -------
        term : Term
        factor : float
            By which its features are larger than those of the standardised curves.
        """
        return Standardised(self, location, scale, grid), 1.0


@dataclass(frozen=True)
class Standardised(Term):
    """A term on curves that are standardised first: ``(X - location) / scale``, clipped, their domain [0, 1].

    Attributes
    ----------
    term : Term
        On standardised curves.
    location, scale : float
        Released values.
    grid : ndarray of shape (S,)
        That of the training curves.
    """

    term: Term
    location: float
    scale: float
    grid: FloatArray

    @property
    def column(self) -> str:  # type: ignore[override]
        """Name of the covariate."""
        return self.term.column

    @property
    def n_features(self) -> int:
        """Length of a feature row."""
        return self.term.n_features

    def rows(self, x: Curves) -> FloatArray:
        """Feature rows of the standardised curves."""
        start, end = self.grid[0], self.grid[-1]
        values = np.clip((x.values - self.location) / self.scale, -HALF_WIDTH, HALF_WIDTH)
        return self.term.rows(Curves(values, (x.grid - start) / (end - start)))

    def to_features(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients of the features, from those that users see."""
        return self.term.to_features(coefficients)

    def from_features(self, features: FloatArray) -> FloatArray:
        """Coefficients as users see them, from those of the features."""
        return self.term.from_features(features)
