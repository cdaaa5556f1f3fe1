"""Persons within sites: ``c_ij = B'x_ij + a_s + b_i + e_ij``, three covariances from sums by site and number of rows.

Given its site, the mean of a person's n rows has information ``J_n = (G + R/n)⁻¹``; a site has ``H_s = Σ_n N_sn J_n``.
Kept are, beside the person sums, how many persons of a site have n rows and the sum of their means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.repeated.fixed_effects import Weighed
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import check_identified, moment_covariances, over_factors


def sites_of_persons(
    persons: Sequence[Any], sites: Sequence[Any], inner: str = "person", outer: str = "site"
) -> dict[Any, Any]:
    """The site of each person, from rows; `inner` and `outer` are the columns' names, for messages.

    Raises
    ------
    InputError
        A person at two sites, or a row without a site.
    """
    who, person = pd.factorize(pd.Series(list(persons), dtype=object))
    where, site = pd.factorize(pd.Series(list(sites), dtype=object))
    if (where < 0).any():
        raise InputError(f"sites must say of each row where it is: missing in {int((where < 0).sum())} rows")
    pairs = np.unique(np.column_stack((who, where)), axis=0)
    twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if twice.size:
        first, second = pairs[twice[0]], pairs[twice[0] + 1]
        raise InputError(
            f"{inner} {person[first[0]]} is at {outer}s {site[first[1]]} and {site[second[1]]}: re({outer}) + "
            f"re({inner}) must be nested, or re({outer}) a fixed factor"
        )
    return {person[i]: site[j] for i, j in pairs if i >= 0}


@dataclass(frozen=True, eq=False)
class SiteSums:
    """Person sums with those of sites: L sites, D distinct numbers of rows.

    Attributes
    ----------
    sums : PersonSums
    sites : pandas.Index of length L
    site_of : ndarray of shape (I,)
    persons : ndarray of shape (L, D)
        Persons of a site with n rows.
    means : ndarray of shape (L, D, p + k)
        Sums of their means.
    """

    sums: PersonSums
    sites: pd.Index[Any]
    site_of: IntArray
    persons: FloatArray
    means: FloatArray

    def of(self, sums: PersonSums) -> SiteSums:
        """The same sites of persons with other rows."""
        means = np.zeros((*self.persons.shape, sums.p + sums.k))
        np.add.at(means, (self.site_of, np.searchsorted(sums.sizes, sums.counts)), sums.means)
        return replace(self, sums=sums, means=means)

    def by_site(self) -> PersonSums:
        """Sums of two levels, as if the rows of a site were of one person."""
        sums, count = self.sums, len(self.sites)
        rows, counts = np.zeros((count, sums.sums.shape[1])), np.zeros(count, dtype=np.int64)
        np.add.at(rows, self.site_of, sums.sums)
        np.add.at(counts, self.site_of, sums.counts)
        sizes, persons = np.unique(counts, return_counts=True)
        between = np.stack([(own := rows[counts == n]).T @ own / n for n in sizes])
        within = sums.total - between.sum(axis=0)
        levels = {"within": within, "sizes": sizes, "between": between, "persons": persons}
        return replace(sums, ids=self.sites, sums=rows, counts=counts, cross=None, **levels)


def site_sums(sums: PersonSums, sites: dict[Any, Any]) -> SiteSums:
    """Take up the site of each person, by id.

    Raises
    ------
    InputError
        A person without a site.
    """
    lost = [person for person in sums.ids.tolist() if person not in sites]
    if lost:
        raise InputError(f"sites must have every person, got none for {lost[0]!r}")
    site_of, found = pd.factorize(pd.Series([sites[person] for person in sums.ids.tolist()], dtype=object))
    persons = np.zeros((len(found), sums.sizes.size))
    np.add.at(persons, (site_of, np.searchsorted(sums.sizes, sums.counts)), 1.0)
    own = SiteSums(sums, pd.Index(found), np.asarray(site_of, dtype=np.int64), persons, np.zeros((0, 0, 0)))
    return own.of(sums)


@dataclass(frozen=True, eq=False)
class NestedFit:
    """What three levels say at given covariances S of sites, G of persons and R of rows, all (k, k).

    Attributes
    ----------
    S, G, R : ndarray of shape (k, k)
    deviance : float
        -2 log (restricted) likelihood of the coefficients, without the constant in π.
    fixed : ndarray of shape (p, k)
        On Φ, curves and features about the shift of the sums.
    covariance : ndarray of shape (p k, p k)
    weighed : Weighed
    open_sites : ndarray of shape (L, k, k)
        Covariance of the effects of sites given all rows, mean curves known.
    sites : ndarray of shape (L, k)
        Best linear predictions of the effects of sites.
    d_s, d_g, d_r : ndarray of shape (k, k)
        Derivatives.
    """

    S: FloatArray
    G: FloatArray
    R: FloatArray
    deviance: float
    fixed: FloatArray
    covariance: FloatArray
    weighed: Weighed
    open_sites: FloatArray
    sites: FloatArray
    d_s: FloatArray
    d_g: FloatArray
    d_r: FloatArray

    def effects(self, s: SiteSums) -> FloatArray:
        """Best linear predictions of the effects of persons within their sites, shape (I, k)."""
        p = s.sums.p
        left = s.sums.means[:, p:] - s.sums.means[:, :p] @ self.fixed - self.sites[s.site_of]
        out = np.empty_like(left)
        for n in s.sums.sizes:
            own = s.sums.counts == n
            out[own] = left[own] @ np.linalg.solve(self.G + self.R / n, self.G)
        return out


def nested_fit(s: SiteSums, S: FloatArray, G: FloatArray, R: FloatArray, *, restricted: bool = True) -> NestedFit:
    """Restricted likelihood with its gradient, mean curves and effects of sites: L (D k² + k³) + (p k)³ operations."""
    sums, p, k = s.sums, s.sums.p, s.sums.k
    eye, n = np.eye(k), sums.sizes[:, None, None].astype(np.float64)
    w_xx, w_xc, w_cc = sums.split(sums.within)
    m_xx, m_xc, m_cc = sums.split(sums.between / n)  # sums of products of means
    omega = G + R / n
    J, Ri = np.linalg.inv(omega), np.linalg.inv(R)
    H = np.einsum("sd,dij->sij", s.persons, J)
    inner = eye + S @ H
    M = np.linalg.solve(inner, np.broadcast_to(S, H.shape))
    X, C = s.means[..., :p], s.means[..., p:]
    F = np.einsum("sda,dij->siaj", X, J, optimize=True).reshape(len(H), k, p * k)
    h = np.einsum("dij,sdj->si", J, C)
    T = M @ F  # what sites take off the features
    gram = np.einsum("ab,ij->aibj", w_xx, Ri) + np.einsum("dab,dij->aibj", m_xx, J)
    gram = gram.reshape(p * k, p * k) - (F.transpose(0, 2, 1) @ T).sum(axis=0)
    right = w_xc @ Ri + np.einsum("daj,dij->ai", m_xc, J) - np.einsum("sic,si->c", T, h).reshape(p, k)
    V = np.linalg.inv(gram)
    B = (V @ right.ravel()).reshape(p, k)
    log_det = (sums.n_rows - sums.n_persons) * np.linalg.slogdet(R)[1] + np.linalg.slogdet(inner)[1].sum()
    log_det += float(sums.persons @ (np.linalg.slogdet(omega)[1] + k * np.log(sums.sizes)))
    total = np.trace(Ri @ w_cc) + np.einsum("dij,dji->", J, m_cc) - np.einsum("si,sij,sj->", h, M, h, optimize=True)
    value = log_det + total - float((right * B).sum())
    own = Weighed(gram.reshape(p, k, p, k), right, float(total), float(log_det))
    spread = np.zeros_like(V)
    if restricted:
        value, spread = value + np.linalg.slogdet(gram)[1], V
    left = C - X @ B  # (L, D, k): sums of persons' residuals
    of_site = np.einsum("dij,sdj->si", J, left)
    a = np.einsum("sij,sj->si", M, of_site)
    score, U = of_site - np.einsum("sij,sj->si", H, a), F - H @ T
    d_s = (H - H @ M @ H).sum(axis=0) - (U @ spread @ U.transpose(0, 2, 1)).sum(axis=0) - score.T @ score
    four = spread.reshape(p, k, p, k)
    once = np.einsum("sda,aij,slj->dil", X, spread.reshape(p, k, p * k), T, optimize=True)
    seen = np.einsum("dab,aibj->dij", m_xx, four) - once - once.transpose(0, 2, 1)
    seen += np.einsum("sd,sij->dij", s.persons, M + T @ spread @ T.transpose(0, 2, 1))
    crossed = m_xc.transpose(0, 2, 1) @ B
    taken = np.einsum("sdi,sj->dij", left, a)
    seen += m_cc - crossed - crossed.transpose(0, 2, 1) + B.T @ m_xx @ B - taken - taken.transpose(0, 2, 1)
    seen += np.einsum("sd,si,sj->dij", s.persons, a, a, optimize=True)
    of_means = sums.persons[:, None, None] * J - J @ seen @ J
    rows = w_cc - w_xc.T @ B - B.T @ w_xc + B.T @ w_xx @ B + np.einsum("ab,aibj->ij", w_xx, four)
    d_r = (sums.n_rows - sums.n_persons) * Ri - Ri @ rows @ Ri + (of_means / n).sum(axis=0)
    return NestedFit(S, G, R, float(value), B, V, own, M, a, d_s, of_means.sum(axis=0), d_r)


def nested_covariances(s: SiteSums, *, restricted: bool = True, tolerance: float = 1e-9) -> NestedFit:
    """REML of all three covariances by L-BFGS over their factors; the start shares that of persons with sites.

    Raises
    ------
    InputError
        Too few rows beyond one a person, or fewer than two sites.
    """
    check_identified(s.sums)
    if len(s.sites) < 2:
        raise InputError("re(site) needs at least two sites, got one")
    G, R = moment_covariances(s.sums)
    root = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, G).T))
    start = np.asarray(vectors * np.sqrt(np.maximum(values, 1e-4) / 2))

    def criterion(between: Sequence[FloatArray], of_rows: FloatArray) -> tuple[float, list[FloatArray], FloatArray]:
        at = nested_fit(s, between[0], between[1], of_rows, restricted=restricted)
        return at.deviance, [at.d_s, at.d_g], at.d_r

    (S, G), R, _, _ = over_factors(criterion, root, [start, start], s.sums.n_rows, tolerance)
    return nested_fit(s, S, G, R, restricted=restricted)
