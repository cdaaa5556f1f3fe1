"""A term of a private fit: features of a row that are white under a public prior, and what they stand for.

A private fit adds noise of one size to all coordinates, so it works in features that are a priori uncorrelated, of
variance one, and ordered by what they explain. What they are is fixed before anything is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray
from fdadp.private.public.column_ranges import Column, CurvesColumn, LabelColumn, NumberColumn

if TYPE_CHECKING:
    from fdadp.private.public.gaussian_process_prior import PublicPrior

NEGLIGIBLE = 1e-12
"""Directions with less of the largest variance than this are left out."""
OF_NUMBERS = 0.5
"""Prior importance of a term of numbers or labels; a term of curves has 1."""

Kind = TypeVar("Kind", CurvesColumn, NumberColumn, LabelColumn)


@dataclass(frozen=True, kw_only=True)
class WhiteTerm(ABC):
    """White features of a term.

    Attributes
    ----------
    name : str
        As in a formula: ``"ff(X)"``.
    columns : tuple of str
        Columns that it reads.
    shares : ndarray of shape (d,)
        Prior share of each feature in what is explained, falling; of all of them the term's importance.
    """

    name: str
    columns: tuple[str, ...]
    shares: FloatArray

    @property
    def of_values(self) -> bool:
        """Whether it is a function of numbers: its effect is its values, without a constant, at any scale of theirs."""
        return False

    @property
    def separable(self) -> bool:
        """Whether features are the same at all points of the response."""
        return True

    def at(self, t: FloatArray) -> WhiteTerm:
        """The term at other points (T,) of the response, where its features differ between them."""
        return self

    def drawn(self, prior: PublicPrior, count: int) -> FloatArray:
        """First features under the prior at all points of the response, shape (N, count, T).

        Asked of terms that are not separable. Their second moment is about the identity, on average over the points.
        """
        raise NotImplementedError

    def acts(self, columns: Mapping[str, Column], axes: Mapping[str, Any]) -> BoolArray | None:
        """Where the coefficient function is part of the model; see :meth:`fdadp.terms.spec.TermDesign.acts`."""
        return None

    @abstractmethod
    def features(self, seen: Mapping[str, Any], count: int) -> FloatArray:
        """First white features of rows, each row by itself bit for bit; shape (m, count), or (m, count, T).

        Parameters
        ----------
        seen : mapping of str
            By column: standardised :class:`~fdadp.functional.tables.curve_inputs.Curves` on any grid on [0, 1],
            ``Scalars``, or codes of labels (m,), as the columns' own ``seen`` gives them
            (:mod:`fdadp.private.public.column_ranges`).
        count : int
        """

    def axes(self, columns: Mapping[str, Column]) -> dict[str, FloatArray | tuple[Any, ...]]:
        """Axes of the coefficient function beside t with default points, in units of the columns."""
        return {}

    @abstractmethod
    def effect(self, columns: Mapping[str, Column], count: int, *points: Any) -> FloatArray:
        """First features of the coefficient function at the product of points of each axis, first slowest: (m, count).

        In units of the columns: of ``∫ X(s) β(s) ds`` what stands for β at s, of a smooth function its values.
        """


def column_of(columns: Mapping[str, Column], name: str, kind: type[Kind]) -> Kind:
    """A column that is known to be of a kind."""
    column = columns[name]
    assert isinstance(column, kind)
    return column


def white_axes(rows: FloatArray, covariance: FloatArray, most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Directions in which features are white under (law of the rows) x (prior of their coefficients).

    Parameters
    ----------
    rows : ndarray of shape (n, q)
        Feature rows of covariates drawn from the prior.
    covariance : ndarray of shape (q, q)
        Prior covariance of their coefficients.
    most : int
        Directions kept at most.

    Returns
    -------
    centre : ndarray of shape (q,)
        Mean row.
    whitening : ndarray of shape (q, d)
        White features are ``(row - centre) @ whitening``, the most telling direction first.
    variances : ndarray of shape (d,)
        Prior variance that each explains; falling.
    """
    return rows.mean(axis=0), *white_directions(np.atleast_2d(np.cov(rows.T)), covariance, most)


def white_directions(of_rows: FloatArray, covariance: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """The same from the covariance of the rows: `whitening` and `variances` of :func:`white_axes`."""
    values, vectors = np.linalg.eigh(covariance)
    root = np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
    variances, axes = np.linalg.eigh(root @ of_rows @ root)
    order = np.argsort(-variances)[:most]
    order = order[variances[order] > NEGLIGIBLE * variances.max()]
    return np.ascontiguousarray(root @ axes[:, order] / np.sqrt(variances[order])), variances[order]
