"""What random functions of persons are in sums over rows: covariances by REML, and predictions beside fitted terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.regression.fitted.person_curves import KnownOnes, KnownPersons, Sites, rows_on
from fdadp.regression.mixed_models.estimated_covariances import (
    Block,
    EstimatedCovariances,
    VarianceLevel,
    blocks_of_designs,
    blocks_of_sites,
    free_levels,
)
from fdadp.regression.mixed_models.reml_of_blocks import slopes_beside_loads, weighed_blocks
from fdadp.regression.mixed_models.terms_that_vary import VaryingTerms
from fdadp.repeated.fixed_effects import Weighed, degrees_of_freedom, varying, weighed
from fdadp.repeated.icc_and_tests import NoPersons, NoSites, NoSlopes, VarianceNull
from fdadp.repeated.nested_sites import NestedFit, SiteSums, nested_covariances, site_sums
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.random_slopes import slope_covariances, slope_sums, weighed_with_slopes
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.solve.fit.additive_fit import AdditiveFit
from fdadp.solve.form.long_form_design import LongForm, kept_of
from fdadp.terms.numbers.levels import Levels

FEW = 500
"""Persons up to which it is counted that covariances are estimated; beyond, this adds some thousandths."""


@dataclass(frozen=True, eq=False)
class PersonLaw:
    """Covariances of q functions a person on k, and what the rows of each person say of them.

    Attributes
    ----------
    sums : PersonSums
    levels : LevelCovariances
    inner : Weighed
    designs : ndarray of shape (E, q, q)
        Distinct ``Z'Z``.
    design_of : ndarray of shape (I,)
    vectors : ndarray of shape (I, q, p + k)
        ``Z'(X, C)``.
    mix : ndarray of shape (p, q)
        What the functions multiply, as combinations of the features.
    nested : (SiteSums, NestedFit) or None
        Of persons within sites.
    few : EstimatedCovariances or None
        What it adds that covariances are estimated; of up to 500 persons. None where these say nothing of some
        coefficients of terms that vary with t.
    carrier : ndarray of shape (T, K)
        Functions that carry the mean curves that it knows of.
    varying : VaryingTerms or None
    """

    sums: PersonSums
    levels: LevelCovariances
    inner: Weighed
    designs: FloatArray
    design_of: IntArray
    vectors: FloatArray
    mix: FloatArray
    nested: tuple[SiteSums, NestedFit] | None = None
    few: EstimatedCovariances | None = None
    carrier: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    varying: VaryingTerms | None = None

    @property
    def few_persons(self) -> bool:
        """Whether it is counted that covariances are estimated."""
        if self.sums.n_persons > FEW:
            return False
        return self.sums.loads is None or self.sums.seen.shape[0] == self.sums.seen.shape[1]

    def nulls(self, names: Sequence[str], random: Sequence[str]) -> dict[str, VarianceNull]:
        """By name, the model without functions of persons, without each of several, and without sites.

        None beside terms that vary with t: what their loads do depends on the covariance of rows.
        """
        if self.varying is not None:
            return {}
        if self.nested is not None:
            return {name: NoSites(*self.nested, persons=name == names[0]) for name in names}
        if tuple(random) == ("",):
            return {names[0]: NoPersons(self.sums, self.levels)}
        s, every = slope_sums(self.sums, self.mix), range(len(random))
        others = {names[a]: tuple(b for b in every if b != a) for a in every if random[a]}
        return {name: NoSlopes(s, self.levels, kept) for name, kept in ({names[0]: ()} | others).items()}

    def blocks(self) -> list[Block]:
        """Independent rows, where persons are at no site."""
        return blocks_of_designs(self.sums, self.designs, self.design_of, self.vectors)

    @property
    def moment(self) -> FloatArray:
        """Mean of ``z z'`` over rows, shape (q, q)."""
        return np.asarray(np.bincount(self.design_of) @ self.designs.reshape(len(self.designs), -1)).reshape(
            self.designs.shape[1:]
        ) / float(self.sums.n_rows)

    @property
    def edf(self) -> float:
        """Degrees of freedom of curves of persons and sites: what their predictions take of the rows."""
        J = np.einsum("eab,ij->eaibj", self.designs, np.linalg.inv(self.levels.R))
        taken = np.einsum("eij,eji->e", self.levels.open(self.designs), J.reshape(len(J), *self.levels.G.shape))
        own = float(np.bincount(self.design_of) @ taken)
        if self.nested is None:
            return own
        sites, at = self.nested
        J = np.linalg.inv(at.G + at.R / sites.sums.sizes[:, None, None])
        rest = np.eye(len(at.G)) - at.G @ J  # what predictions of persons leave to sites
        return own + float(np.einsum("sd,dij,sjl,dli->", sites.persons, rest, at.open_sites, J, optimize=True))

    def degrees(self) -> FloatArray:
        """Student's degrees of freedom of each feature, shape (p,)."""
        sums = self.sums
        own, constant = degrees_of_freedom(sums), ~varying(sums)[0]
        if self.nested is not None:
            sites = self.nested[0]
            means = sums.means[:, : sums.p]
            first = means[np.unique(sites.site_of, return_index=True)[1]]
            scale = np.sqrt(np.diag(sums.total)[: sums.p] / sums.n_rows)
            of_site = constant & (np.abs(means - first[sites.site_of]).max(axis=0) <= 1e-8 * scale)
            own = np.where(of_site, max(len(sites.sites) - int(of_site.sum()), 1), own)
        if self.few is not None:
            within, apart = varying(sums)
            for column in np.flatnonzero(within & apart):
                rows = np.kron(np.eye(sums.p)[column], self.carrier)
                beside = np.zeros((len(rows), len(self.few.covariance) - rows.shape[1]))  # coefficients of loads
                found = self.few.degrees(np.hstack((rows, beside)))
                own[column] = min(max(found, own[column]), max(sums.spare_rows, own[column]))
        random = np.abs(self.mix[int(sums.intercept) :]).max(axis=1, initial=0.0) > 0
        between = float(max(sums.n_persons - int(constant.sum()), 1))
        own[int(sums.intercept) :][random] = np.minimum(own[int(sums.intercept) :][random], between)
        return np.asarray(own)

    def counted(
        self,
        blocks: Sequence[Block],
        levels: Sequence[VarianceLevel],
        heads: int,
        *,
        carrier: FloatArray | None = None,
        beyond: FloatArray | None = None,
    ) -> PersonLaw:
        """With what it adds that covariances are estimated; as in :meth:`EstimatedCovariances.of`."""
        few = EstimatedCovariances.of(blocks, levels, heads=heads, beyond=beyond)
        return replace(self, few=few, carrier=self.sums.phi if carrier is None else carrier)

    @property
    def beyond(self) -> FloatArray | None:
        """Information of coefficients of loads outside of Φ, where the noise is as good as known; over p k + P."""
        sums, noise = self.sums, self.levels.noise_variance
        if sums.loads is None or noise == 0:
            return None
        return np.pad(sums.loads.gram / noise, ((sums.p * sums.k, 0),) * 2)

    def weights(self, form: LongForm, mix: FloatArray, changes: FloatArray) -> FloatArray:
        """What estimating covariances adds to that of the coefficients (Kenward & Roger 1997), shape (p, p).

        `changes` (p, p) makes changes of the coefficients of scores.
        """
        if self.few is None:
            return np.zeros_like(changes)
        if self.varying is not None:
            rows = self.varying.onto(self.sums, mix)[:, kept_of(form.designs)]
        else:
            rows = np.einsum("aP,Pkp->akp", mix, rows_on(form, self.carrier, form.t), optimize=True)
            rows = rows.reshape(-1, form.size)
        return np.asarray(2 * changes @ rows.T @ self.few.inner @ rows @ changes.T)

    def known(
        self, persons: Levels, places: Levels | None, fit: AdditiveFit, mix: FloatArray
    ) -> tuple[KnownPersons, Sites | None]:
        """Best linear predictions beside fitted terms, whose P features are combinations `mix` (p, P) of the sums'.

        Of terms that vary with t, loads are features.
        """
        sums, p = self.sums, self.sums.p
        order = np.argsort(persons.codes(sums.ids.tolist()))
        rows = rows_on(fit.form, sums.phi, fit.form.t)
        curves, shift = rows @ fit.coefficients, sums.shift_y @ sums.phi
        vectors, design_of = self.vectors[order], self.design_of[order]
        features = vectors[:, :, :p] @ mix if self.varying is None else self.varying.features(sums, mix, vectors)
        left = vectors[:, :, p : p + sums.k] + vectors[:, :, :1] * shift * sums.intercept - features @ curves
        sites = None
        if places is not None:
            sites = self._sites(places, order, mix, rows, fit.coefficients)
            counts = self.designs[design_of, 0]
            left = left - (counts * sites.known.effects[sites.of_person, 0])[:, None, :]
        open_, effects = self.levels.open(self.designs), np.empty_like(left)
        weighed_left = np.linalg.solve(self.levels.R, left.reshape(-1, sums.k).T).T.reshape(len(left), -1)
        for e in range(len(self.designs)):
            own = design_of == e
            effects[own] = (weighed_left[own] @ open_[e]).reshape(-1, *left.shape[1:])
        found = KnownPersons(
            labels=persons, designs=self.designs, design_of=design_of, features=features, effects=effects
        )
        if self.few is not None and sites is None:
            found = replace(found, added=np.stack(self.few.added[: len(self.designs)]))
        return found, sites

    def _sites(
        self, places: Levels, order: IntArray, mix: FloatArray, rows: FloatArray, coefficients: FloatArray
    ) -> Sites:
        assert self.nested is not None
        (own, at), sums, p = self.nested, self.sums, self.sums.p
        J = np.linalg.inv(at.G + at.R / sums.sizes[:, None, None])
        features = own.means[..., :p] @ mix
        left = own.means[..., p:] - features @ (rows @ coefficients)
        if sums.intercept:
            left = left + own.persons[..., None] * (sums.shift_y @ sums.phi)
        effects = np.einsum("sij,djl,sdl->si", at.open_sites, J, left, optimize=True)
        drifts = np.einsum("sij,djl,sdP,Plp->sip", at.open_sites, J, features, rows, optimize=True)
        codes = places.codes(own.sites.tolist())
        turn = np.argsort(codes)
        known = KnownOnes(labels=places, effects=effects[turn, None], opened=at.open_sites[turn], drifts=drifts[turn])
        found = Sites(name=f"re({places.column})", known=known, of_person=codes[own.site_of][order], S=at.S)
        if self.few is None:
            return found
        added, k = np.empty((sums.n_persons, 2, sums.k, sums.k)), sums.k
        for site, wide in enumerate(self.few.added[: len(own.sites)]):
            of_site, *of_persons = np.split(np.eye(len(wide)), len(wide) // k)
            for i, person in zip(np.flatnonzero(own.site_of == site), of_persons, strict=True):
                added[i] = person @ wide @ person.T, (person + of_site) @ wide @ (person + of_site).T
        alone = np.stack([wide[:k, :k] for wide in self.few.added[: len(own.sites)]])
        return replace(found, known=replace(known, added=alone[turn]), added=added[order])


def law_of(sums: PersonSums, mix: FloatArray, name: str, sites: Mapping[Any, Any] | None = None) -> PersonLaw:
    """Find covariances by REML: of a curve a person, of several functions, or of persons within sites.

    Parameters
    ----------
    sums : PersonSums
        With ``cross=True`` where the functions are not the constant alone.
    mix : ndarray of shape (p, q)
        What they multiply; (p, 0): the constant alone, which need not be a feature.
    name : str
    sites : mapping, optional
        The site of each person.

    Raises
    ------
    InputError
        Too few rows, or fewer than two sites.
    """
    if sites is not None:
        own = site_sums(sums, dict(sites))
        at = nested_covariances(own)
        levels = LevelCovariances(at.G, at.R, sums.noise_variance(), at.deviance)
        law = replace(law_of_levels(sums, levels), inner=at.weighed, nested=(own, at))
        return law.counted(blocks_of_sites(own), free_levels(at.S, at.G, at.R), 2) if law.few_persons else law
    if mix.shape[1]:
        s = slope_sums(sums, mix, name)
        if sums.loads is None:
            levels = slope_covariances(s)
            inner = weighed_with_slopes(s, levels)
        else:
            blocks = blocks_of_designs(sums, s.designs, s.design_of, s.vectors, responses=True)
            levels = slopes_beside_loads(s, blocks)
            inner = weighed_blocks(blocks, (levels.G, levels.R))
        law = PersonLaw(sums, levels, inner, s.designs, s.design_of, s.vectors, mix)
    else:
        law = law_of_levels(sums, level_covariances(sums, name=name))
    if not law.few_persons:
        return law
    return law.counted(law.blocks(), free_levels(law.levels.G, law.levels.R), 1, beyond=law.beyond)


def law_of_white(sums: PersonSums, levels: LevelCovariances, precisions: Sequence[FloatArray]) -> PersonLaw:
    """A curve for each person of covariance ``(Σ_j a_j Q_j)⁻¹``, and white errors, of which outside of Φ tells, too."""
    law, (T, k) = law_of_levels(sums, levels), sums.phi.shape
    if not law.few_persons:
        return law
    outside = np.zeros((0, 1, k)), np.eye(k)[None, :1]
    features = np.zeros((0, sums.p * k))
    if sums.loads is not None:
        features = np.pad(root_of(sums.loads.gram).T, ((0, 0), (sums.p * k, 0)))
    beyond = Block(outside, features[:, None], float((sums.n_rows - sums.p) * (T - k)))
    of_persons = VarianceLevel(levels.G, np.stack([levels.G @ Q @ levels.G for Q in precisions]))
    return law.counted([*law.blocks(), beyond], (of_persons, VarianceLevel(levels.R, np.eye(k)[None])), 1)


def law_of_levels(sums: PersonSums, levels: LevelCovariances) -> PersonLaw:
    """A curve for each person, at known covariances."""
    designs, design_of = sums.sizes[:, None, None].astype(np.float64), np.searchsorted(sums.sizes, sums.counts)
    inner, none = weighed(sums, levels), np.zeros((sums.p, 0))
    return PersonLaw(sums, levels, inner, designs, design_of, sums.sums[:, None, :], none)
