"""Principal components passed on from owner to owner, each of whom adds noise of its own: a base line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from fdadp._common.argument_checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.learners.pca import PrivateComponents, centred, noisy_moment
from fdadp.learners.shared._estimator_base import PrivateEstimator
from fdadp.learners.shared.public_inputs import as_table
from fdadp.privacy import Ledger, Privacy

DISJOINT = (
    " Each person's rows are with one owner, and each owner has this budget for its own persons: all owners' results "
    "together cost a person what its own owner's release costs it. Owners need not trust each other, nor anyone else."
)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLocalPCA(PrivateComponents, PrivateEstimator):
    """Principal components of many owners' rows, passed on from owner to owner.

    Every owner puts noise on its own second moment, as much as one owner of all rows would need. It approximates the
    sum with what it was handed by the largest eigenvectors, and hands these on. Noise of L owners adds up to L times
    the variance, and L owners work one after the other: :class:`fdadp.federated.Contract` with the model ``"pca"`` has
    neither cost. No key is needed, and nobody has to keep from colluding with anybody.

    Parameters
    ----------
    epsilon, delta : float
        Of each owner's persons, of whom one is added or removed.
    random_state : int, optional
        Noise that can be repeated, for simulations: the ledger then says "not for release".
    n_components, data_norm, bounds, center, const
        As of :class:`fdadp.learners.DPPCA`.
    n_passed : int, optional
        Directions that an owner hands on; default n_components + 1, one more for the mean.

    Attributes
    ----------
    components_, explained_variance_, mean_, noisy_n_
        As of :class:`fdadp.learners.DPPCA`.
    ledgers_ : list of Ledger
        One for each owner.
    ledger_ : Ledger
        All of them together.
    privacy_spent_ : dict
        Of every person, with any of the owners.

    Notes
    -----
    The paper's noise is Wishart, which is not private, on second moments about 0, with rows that already have mean 0.
    Here each owner's noise is symmetric Gaussian, by :meth:`fdadp.privacy.Cohort.second_moment`, and a constant in each
    row carries the mean along.

    References
    ----------
    Imtiaz, H. and Sarwate, A. D. (2016). Symmetric matrix perturbation for differentially-private principal component
    analysis. *ICASSP*, 2339-2343. doi:10.1109/ICASSP.2016.7472095

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3] + 1
    >>> pca = PrivateLocalPCA(epsilon=1.0, delta=1e-6, n_components=1, data_norm=5.0, center=1.0, random_state=0)
    >>> bool(abs(pca.fit(np.array_split(X, 5)).components_[0, 0]) > 0.9)
    True
    """

    n_passed: int | None = None

    def fit(self, X: Sequence[Any], y: Any = None) -> PrivateLocalPCA:
        """Go through the owners in their order.

        Parameters
        ----------
        X : sequence of array_like of shape (n_l, d)
            The rows of each owner. Only the kernel looks at more than their shape. A person's rows must be with one
            owner.
        y : None
            Ignored.

        Raises
        ------
        PublicParameterMissing
            No data_norm. Nothing was read.
        InputError, PrivacyError
            Something public is wrong. Nothing was read.
        """
        tables = [as_table(one) for one in X]
        if not tables or len({table.shape[1] for table in tables}) != 1:
            raise InputError(
                f"X must be one table for each owner, of equal width, got widths {[t.shape[1] for t in tables]}"
            )
        d = int(tables[0].shape[1])
        B, center, const, k = self._public(d)
        passed = k + 1 if self.n_passed is None else whole(self.n_passed, "n_passed", most=d + 1)
        if self.delta is None:
            raise InputError("delta must be given: the noise is Gaussian, got None")
        public = {"data_norm": B, "center": self.center, "n_components": k, "n_passed": passed, "owners": len(tables)}
        self.n_features_in_ = d
        P = np.zeros((d + 1, 0))
        self.ledgers_ = []
        for i, table in enumerate(tables):
            cohort = self._settings_of(i).cohort((table,), mechanism="PrivateLocalPCA", public=public)
            moment, sd = noisy_moment(cohort, center, B, const, 1.0)
            P = merged(P, moment, passed)
            self.ledgers_.append(cohort.ledger)
        n, mean, scatter = centred(P @ P.T, sd * math.sqrt(len(tables)), B, const)
        values, axes = np.linalg.eigh(scatter)
        self._keep(n, center + mean, axes[:, ::-1][:, :k].T, values[::-1][:k])
        self._close(cohort)
        self.ledger_ = _together(self.ledgers_)
        return self

    def _settings_of(self, owner: int) -> Privacy:
        seed = None if self.random_state is None else 1000 * self.random_state + owner
        return Privacy(epsilon=self.epsilon, delta=self.delta, random_state=seed)


def merged(P: FloatArray, M: FloatArray, k: int) -> FloatArray:
    """Merge an owner's noisy moment into the factor P (d, k): PP' plus its positive part, truncated to rank k."""
    own = _root(M, k)
    left, values, _ = np.linalg.svd(np.concatenate((P, own), axis=1), full_matrices=False)
    return np.asarray(left[:, :k] * values[:k])


def _root(M: FloatArray, k: int) -> FloatArray:
    """U √λ of the k largest eigenvalues that are above 0."""
    d = len(M)
    values, axes = eigh(M, subset_by_index=(max(d - k, 0), d - 1))
    return np.asarray(axes * np.sqrt(np.maximum(values, 0.0)))


def _together(ledgers: Sequence[Ledger]) -> Ledger:
    releases = [replace(r, name=f"owner {i + 1}: {r.name}") for i, one in enumerate(ledgers) for r in one.releases]
    return replace(ledgers[0], releases=releases, statement=ledgers[0].statement + DISJOINT)
