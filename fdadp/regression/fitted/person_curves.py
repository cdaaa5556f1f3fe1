"""Curves of persons in a fitted model: best linear predictions, what they leave open, and shares of the variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fdadp._common.loaded_later import pd
from fdadp._common.student_and_f import student_quantile
from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.regression.fitted.coefficient_functions import POINTS, Effect
from fdadp.repeated.icc_and_tests import SUCCESSIVE, VarianceNull, VarianceTest, icc, icc_curve, variance_table
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import WHITE, LevelCovariances
from fdadp.solve.fit.observations import Observations
from fdadp.solve.form.long_form_design import LongForm
from fdadp.terms.numbers.levels import Levels
from fdadp.terms.records import Records

AT_A_TIME = 256
"""Persons whose matrices are worked on together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownPersons:
    """Predicted functions of I persons of whom whole curves were seen: q each, P features of all other terms.

    Attributes
    ----------
    labels : Levels
        Of the persons, in order.
    designs : ndarray of shape (E, q, q)
        Distinct ``Z'Z`` of what the functions multiply; the number of rows, where that is the constant alone.
    design_of : ndarray of shape (I,)
    features : ndarray of shape (I, q, P)
        ``Z'F``.
    effects : ndarray of shape (I, q, k)
        Best linear predictions, in coefficients on Φ.
    added : ndarray of shape (E, q k, q k) or (0, 0, 0)
        What the covariance of these grows by as covariances are estimated, by design; empty: not known.
    """

    labels: Levels
    designs: FloatArray
    design_of: IntArray
    features: FloatArray
    effects: FloatArray
    added: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def open(self, levels: LevelCovariances, codes: IntArray, *, few: bool = False) -> FloatArray:
        """Covariance of the functions of some persons, mean curves known, shape (m, q k, q k).

        With `few`, covariances count as estimated.
        """
        which, at = np.unique(np.asarray(self.design_of, dtype=np.int64)[codes], return_inverse=True)
        found = levels.open(self.designs[which])
        return (found + self.added[which] if few and self.added.size else found)[at.reshape(-1)]

    def drift(self, levels: LevelCovariances, rows: FloatArray, codes: IntArray) -> FloatArray:
        """How the predictions of some persons follow the coefficients, shape (m, q k, p); `rows` (P, k, p) of Φ."""
        own = np.einsum("mqP,Pjp->mqjp", self.features[codes], rows, optimize=True)
        weighed = np.linalg.solve(levels.R, own)
        return np.asarray(self.open(levels, codes) @ weighed.reshape(len(codes), len(levels.G), rows.shape[2]))

    def empty(self) -> KnownPersons:
        """Nobody, for files that leave persons out."""
        none = replace(self, labels=Levels(self.labels.column, ()), designs=self.designs[:0], effects=self.effects[:0])
        return replace(none, design_of=np.zeros(0, dtype=np.int64), features=self.features[:0], added=self.added[:0])


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownOnes:
    """Predicted curves of I persons (or sites), each with matrices of its own.

    Attributes
    ----------
    labels : Levels
    effects : ndarray of shape (I, 1, k)
    opened : ndarray of shape (I, k, k)
        Covariance of each, mean curves known.
    drifts : ndarray of shape (I, k, p)
        How each follows the coefficients.
    added : ndarray of shape (I, k, k) or (0, 0, 0)
        What the covariance of these grows by as covariances are estimated; empty: not known.
    """

    labels: Levels
    effects: FloatArray
    opened: FloatArray
    drifts: FloatArray
    added: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))

    def open(self, levels: LevelCovariances, codes: IntArray, *, few: bool = False) -> FloatArray:
        """Covariance of some, mean curves known, shape (m, k, k). With `few`, covariances count as estimated."""
        return np.asarray(self.opened[codes] + self.added[codes] if few and self.added.size else self.opened[codes])

    def drift(self, levels: LevelCovariances, rows: FloatArray, codes: IntArray) -> FloatArray:
        """How some follow the coefficients, shape (m, k, p)."""
        return np.asarray(self.drifts[codes])

    def empty(self) -> KnownOnes:
        """Nobody, for files that leave persons out."""
        none = {name: getattr(self, name)[:0] for name in ("effects", "opened", "drifts", "added")}
        return replace(self, labels=Levels(self.labels.column, ()), **none)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sites:
    """Curves of the sites that persons belong to.

    Attributes
    ----------
    name : str
        Of the term.
    known : KnownOnes
        Predicted curves of sites.
    of_person : ndarray of shape (I,)
        Number of each person's site.
    S : ndarray of shape (k, k)
        Covariance of sites.
    added : ndarray of shape (I, 2, k, k) or (0, 0, 0, 0)
        What the covariance of a person's curve, and of its sum with that of the site, grows by as covariances are
        estimated; empty: not known.
    """

    name: str
    known: KnownOnes
    of_person: IntArray
    S: FloatArray
    added: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0, 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonCurves:
    """Random functions of persons on k smooth functions over T points, beside the terms of a fit.

    Attributes
    ----------
    name : str
        Of the term.
    kind : {"free", "spline", "given"}
        What the covariances are: any of persons and rows; or of penalised splines, or a given one, with white errors.
    random : tuple of str
        What each of the q functions multiplies: a column, or ``""`` for the constant.
    grid : ndarray of shape (T,)
    phi : ndarray of shape (T, k)
        Orthonormal functions on the grid.
    levels : LevelCovariances
        Covariances of persons (q k, q k) and of rows in coefficients on these functions.
    known : KnownPersons or KnownOnes
        Persons of the fit.
    sites : Sites or None
        What they belong to.
    moment : ndarray of shape (q, q)
        Mean of ``z z'`` over the rows, which the variance between persons is of.
    degrees : ndarray of shape (p_terms,)
        Student's degrees of freedom of the mean curves of each other term.
    edf : float
        Effective degrees of freedom of all curves of persons and sites.
    unsure : ndarray of shape (p, p)
        What not knowing the smoothing parameters adds to the covariance of the coefficients of all other terms.
    weights : ndarray of shape (p, p)
        What it adds to this covariance that those of persons and rows are estimated.
    chosen : bool
        Whether k was found by BIC.
    whiteness : float or None
        Variance of the first functions left out beside white noise.
    successive : float
        Correlation of the residuals of successive rows of a person.
    compared : tuple of (str, float, float)
        Of features that vary within and between persons: term, Wald statistic of the difference of both slopes, p.
    sums : PersonSums or None
        Sums of the fit; None in files.
    nulls : mapping of str to VarianceNull
        By name of a random function, the model without it; of the first, without any function of persons. Empty in
        files, and where covariances are not free.
    """

    name: str
    kind: str
    random: tuple[str, ...]
    grid: FloatArray
    phi: FloatArray
    levels: LevelCovariances
    known: KnownPersons | KnownOnes
    sites: Sites | None
    moment: FloatArray
    degrees: FloatArray
    edf: float
    unsure: FloatArray
    weights: FloatArray
    chosen: bool
    whiteness: float | None
    successive: float
    compared: tuple[tuple[str, float, float], ...]
    sums: PersonSums | None = None
    nulls: Mapping[str, VarianceNull] = field(default_factory=dict)

    @property
    def persons(self) -> Levels:
        """Labels of the persons, in order."""
        return self.known.labels

    @property
    def effects(self) -> FloatArray:
        """Best linear predictions of the functions of persons on Φ, shape (I, q, k)."""
        return self.known.effects

    @property
    def numbers(self) -> bool:
        """Whether the response is a number, and each person has one."""
        return self.grid.size == 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what persons and sites add: ``"re(id)"``, ``"re(id):week"``, ``"re(site)"``."""
        own = [f"{self.name}:{column}" if column else self.name for column in self.random]
        return (*own, *(() if self.sites is None else (self.sites.name,)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read: whose a row is, what slopes multiply, and the site."""
        slopes = tuple(column for column in self.random if column)
        return (self.persons.column, *slopes, *(() if self.sites is None else (self.sites.known.labels.column,)))

    @property
    def n_parameters(self) -> int:
        """Entries of the symmetric covariances of persons, rows and sites; or factors of penalties."""
        if self.kind != "free":
            return 2 if self.kind == "spline" else 1
        sizes = [len(self.levels.G), len(self.levels.R), *([] if self.sites is None else [len(self.sites.S)])]
        return sum(m * (m + 1) // 2 for m in sizes)

    # --- shares of the variance ---

    @property
    def between(self) -> FloatArray:
        """Covariance between persons at an average row, sites with it, in coefficients on Φ, shape (k, k)."""
        q, k = len(self.random), self.phi.shape[1]
        own = np.einsum("ab,aibj->ij", self.moment, self.levels.G.reshape(q, k, q, k))
        return np.asarray(own if self.sites is None else own + self.sites.S)

    @property
    def variances(self) -> pd.DataFrame:
        """Variance at an average t and row of persons, sites, rows and noise: ``variance``, ``share`` and ``sd``."""
        sites = {} if self.sites is None else {"site": self.sites.S}
        own = self.between - sum(sites.values(), np.zeros_like(self.between))
        found = variance_table(self.phi, self.levels, sites | {"person": own})
        return found.drop("row") if self.numbers else found  # one with its noise

    def icc(self, *, noise: bool = False) -> float:
        """Share of the variance that is between persons, over all t; with or without the noise below the line."""
        return icc(self.phi, replace(self.levels, G=self.between), noise=noise)

    def icc_curve(self, *, noise: bool = False) -> FloatArray:
        """The same at each point of the grid, shape (T,)."""
        return icc_curve(self.phi, replace(self.levels, G=self.between), noise=noise)

    def tested(self, name: str, draws: int = 199, seed: int = 0) -> VarianceTest:
        """Test that random functions are all 0, by the restricted likelihood ratio and its law in simulated rows.

        The first of :attr:`names` is tested together with all other functions of the persons. NaN for models from
        files, which keep no sums, where the covariance is not free, and beside terms that vary with t.
        """
        null = self.nulls.get(name)
        return VarianceTest(np.nan, np.nan, np.zeros(0)) if null is None else null.tested(draws, seed)

    # --- curves of known persons ---

    def functions(self, points: FloatArray) -> FloatArray:
        """The k functions at points, (T', k); between points of the grid by cubic splines."""
        from scipy.interpolate import make_interp_spline

        if np.array_equal(points, self.grid):
            return self.phi
        return np.asarray(make_interp_spline(self.grid, self.phi, k=3)(points))

    def multiplied(self, records: Records) -> FloatArray:
        """What the functions of persons multiply, shape (n, q)."""
        return np.column_stack([records.numbers(name) if name else np.ones(records.n) for name in self.random])

    def contributions(self, records: Records, points: FloatArray) -> list[FloatArray]:
        """What persons and sites add to rows, one (n, T') for each of :attr:`names`; 0 of those not known."""
        phi, (person, site), z = self.functions(points), self._codes(records), self.multiplied(records)
        own = z[:, :, None] * _taken(self.effects, person)
        parts = [own[:, a] @ phi.T for a in range(z.shape[1])]
        return parts if self.sites is None else [*parts, _taken(self.sites.known.effects[:, 0], site) @ phi.T]

    def curves(self, records: Records, points: FloatArray) -> FloatArray:
        """Predicted curves of the persons and sites of rows, (n, T'); 0 of those that the fit did not know."""
        return np.asarray(sum(self.contributions(records, points)))

    def beside(self, observed: Observations) -> FloatArray:
        """The same of training rows, in the shape of their response: on the grid, or at points of their own."""
        points = observed.points
        if points is None:
            return self.curves(observed.records, self.grid)
        own = _taken(self.effects[:, 0], self._codes(observed.records)[0])
        return np.asarray(np.einsum("mk,mk->m", self.functions(points.t), own[points.record]))

    def _codes(self, records: Records) -> tuple[IntArray, IntArray]:
        """Numbers of the persons and of the sites of rows; -1 of those that are not known."""
        person = _numbers(self.persons, records)
        if self.sites is None:
            return person, np.full(records.n, -1)
        site, known = _numbers(self.sites.known.labels, records), person >= 0
        own = np.asarray(self.sites.of_person, dtype=np.int64)[person[known]]
        moved = np.flatnonzero(own != site[known])
        if moved.size:
            row = int(np.flatnonzero(known)[moved[0]])
            place = self.sites.known.labels
            raise InputError(
                f"{self.persons.column} {self.persons.levels[person[row]]} must be at {place.column} "
                f"{place.levels[own[moved[0]]]}, as in training, got another in row {records.first + row}"
            )
        return person, site

    def effect(
        self,
        name: str,
        form: LongForm,
        axes: Mapping[str, Any],
        covariance: FloatArray | None = None,
        level: float = 0.95,
        *,
        few: bool = False,
    ) -> Effect:
        """Predicted curves of persons, with standard errors where the covariance of all coefficients is given.

        Parameters
        ----------
        name : str
            One of :attr:`names`.
        form : LongForm
            Of all other terms.
        axes : mapping of str
            Points of ``"t"``, and persons under the name of their column; default all.
        covariance : ndarray of shape (p, p), optional
        level : float
            Of intervals: by the normal law where errors count that covariances are estimated, else by Student's with
            the fewest degrees of freedom of any term.
        few : bool
            Whether covariances of persons and rows count as estimated.

        Raises
        ------
        InputError
            Another axis, or a person that the fit did not know.
        """
        at_site = self.sites is not None and name == self.sites.name
        known = self.sites.known if self.sites is not None and at_site else self.known
        column = known.labels.column
        given = {axis: points for axis, points in axes.items() if points is not None}
        unknown = next((axis for axis in given if axis not in (column, "t")), None)
        if unknown is not None:
            raise InputError(f"axes of {name} are {column}, t, got points of {unknown!r}")
        who = tuple(np.atleast_1d(np.asarray(given.get(column, known.labels.levels), dtype=object)).tolist())
        low, high = self.grid[[0, -1]]
        every = self.grid if self.numbers else np.linspace(low, high, POINTS[2])
        points = np.atleast_1d(np.asarray(given.get("t", every), dtype=np.float64))
        if points.min() < low or points.max() > high:
            raise InputError(f"t must lie within [{low:g}, {high:g}], got [{points.min():g}, {points.max():g}]")
        codes, phi, shown = known.labels.codes(who), self.functions(points), {column: who, "t": points}
        if self.numbers:
            del shown["t"]
        a = 0 if at_site else self.names.index(name)
        value = known.effects[codes, a] @ phi.T
        if covariance is None:
            return Effect(name, shown, value)
        variance, root, rows = np.empty_like(value), root_of(covariance), self.rows_on_phi(form)
        own = slice(a * phi.shape[1], (a + 1) * phi.shape[1])
        for start in range(0, len(codes), AT_A_TIME):
            part = slice(start, start + AT_A_TIME)
            nobody = np.full(len(codes[part]), -1)
            drift, open_ = self._uncertain(
                rows, *((nobody, codes[part]) if at_site else (codes[part], nobody)), few=few
            )
            variance[part] = ((phi @ drift[:, own] @ root) ** 2).sum(axis=2)
            variance[part] += np.einsum("ti,nij,tj->nt", phi, open_[:, own, own], phi, optimize=True)
        se = np.sqrt(variance)
        counted = few and known.added.size + (0 if self.sites is None else self.sites.known.added.size)
        half = student_quantile((1 + level) / 2, np.inf if counted else self.degrees.min()) * se
        return Effect(name, shown, value, se, value - half, value + half)

    def _uncertain(
        self, rows: FloatArray, person: IntArray, site: IntArray, *, few: bool
    ) -> tuple[FloatArray, FloatArray]:
        """How predictions follow the coefficients (m, q k, p), and their covariance at given ones (m, q k, q k).

        Of persons, of sites, or of the sum of both, where a number is -1 for what is left out.
        """
        levels, k, q = self.levels, self.phi.shape[1], len(self.random)
        m, who = len(person), person >= 0
        drift, open_ = np.zeros((m, q * k, rows.shape[2])), np.zeros((m, q * k, q * k))
        codes = person[who]
        drift[who], open_[who] = self.known.drift(levels, rows, codes), self.known.open(levels, codes, few=few)
        if self.sites is None:
            return drift, open_
        # Given its site, a person's prediction falls by the share W of what that of the site rises.
        assert isinstance(self.known, KnownPersons)
        weight = np.zeros((m, k, k))
        counts = self.known.designs[np.asarray(self.known.design_of, dtype=np.int64)[codes]]
        weight[who] = -counts * np.linalg.solve(levels.R, open_[who]).transpose(0, 2, 1)
        of_site = site.copy()
        of_site[who] = np.asarray(self.sites.of_person, dtype=np.int64)[codes]
        weight[site >= 0] += np.eye(k)
        here = of_site >= 0
        turn, own = weight[here], self.sites.known
        drift[here] += turn @ own.drift(levels, rows, of_site[here])
        open_[here] += turn @ own.open(levels, of_site[here]) @ turn.transpose(0, 2, 1)
        if few and own.added.size:
            alone = ~who
            open_[alone] += own.added[site[alone]]
            open_[who] += self.sites.added[codes, (site[who] >= 0).astype(np.int64)]
        return drift, open_

    def rows_on_phi(self, form: LongForm) -> FloatArray:
        """Rows that make a curve on the functions of coefficients, of each of P features: (P, k, p)."""
        return rows_on(form, self.phi, self.grid)

    # --- errors of predictions ---

    def standard_errors(
        self,
        form: LongForm,
        records: Records,
        covariance: FloatArray,
        t: FloatArray | None = None,
        *,
        few: bool = False,
    ) -> FloatArray:
        """Standard errors of predicted curves (n, T'): of persons for known ones, else of the population's mean."""
        points = self.grid if t is None else t
        phi, root, out, k = self.functions(points), root_of(covariance), [], self.phi.shape[1]
        inner = self.rows_on_phi(form)
        for block in form.blocks(records, points):
            rows, z, (person, site) = form.rows(block, points), self.multiplied(block), self._codes(block)
            known = (person >= 0) | (site >= 0)
            added = np.zeros(rows.shape[:2])
            if known.any():
                drift, open_ = self._uncertain(inner, person[known], site[known], few=few)
                q, m = z.shape[1], len(drift)
                own = z[known]
                rows[known] -= phi @ np.einsum("mq,mqjp->mjp", own, drift.reshape(m, q, k, -1))
                left = np.einsum("ma,maibj,mb->mij", own, open_.reshape(m, q, k, q, k), own, optimize=True)
                added[known] = np.einsum("ti,nij,tj->nt", phi, left, phi, optimize=True)
            out.append(np.sqrt(((rows @ root) ** 2).sum(axis=2) + added))
        return np.concatenate(out) if out else np.zeros((0, len(points)))

    def variance_of_rows(self, records: Records, points: FloatArray) -> FloatArray:
        """Variance of new rows about the curves of their persons, and of unknown persons about the mean; (n, T')."""
        phi, levels, (q, k) = self.functions(points), self.levels, self.effects.shape[1:]
        row = np.einsum("ti,ij,tj->t", phi, levels.R, phi)
        row = row + levels.noise_variance * np.maximum(1 - (phi**2).sum(axis=1), 0.0)
        person, site = self._codes(records)
        parts = np.einsum("ti,aibj,tj->abt", phi, levels.G.reshape(q, k, q, k), phi, optimize=True)
        z = self.multiplied(records) * (person < 0)[:, None]
        out = row + np.einsum("na,abt,nb->nt", z, parts, z, optimize=True)
        if self.sites is not None:
            out = out + (site < 0)[:, None] * np.einsum("ti,ij,tj->t", phi, self.sites.S, phi)
        return np.asarray(out)

    # --- words, and files ---

    def notes(self) -> list[str]:
        """What the summary says of persons."""
        k, column = self.phi.shape[1], self.persons.column
        how = "least BIC" if self.chosen else "given"
        what = {
            "free": f"covariances of persons and rows are free, on {k} smooth functions ({how})",
            "spline": f"curves of persons are {k} penalised splines, and errors white",
            "given": f"curves of persons have the given covariance on {k} functions, and errors are white",
        }
        names = " and ".join(dict.fromkeys((self.name, *self.names[len(self.random) :])))
        if self.numbers:
            return [f"{names}: a number each, of {len(self.persons):,}.", f"ICC {self.icc(noise=True):.3f}."]
        said = [
            f"{names}: {what[self.kind]}.",
            f"ICC {self.icc():.3f}, with noise {self.icc(noise=True):.3f}.",
        ]
        if self.kind != "free":
            said.append(
                "Errors of kind 'iid' are too small where rows have smooth errors; covariance='free' knows these."
            )
            return said
        said += [f"{self.name}: {text}" for text in self._of_slopes()]
        if self.levels.noise_variance < 2e-6 * float(np.trace(self.levels.R)) / len(self.phi):
            said.append("Curves have no noise, as smoothed ones; a millionth of the variance of rows is taken for it.")
        if self.whiteness is not None:
            rough = "; the ICC without noise is too large" if self.whiteness > WHITE else ""
            said.append(f"Functions left out vary {self.whiteness:.2f} times as much as white noise{rough}.")
        far = "; rows are taken as independent" if self.successive > SUCCESSIVE else ""
        said.append(f"Successive rows of one {column} have residuals of correlation {self.successive:.2f}{far}.")
        for name, statistic, p in self.compared:
            said.append(
                f"{name} varies within and between: both slopes differ by chi-squared {statistic:.3g} on {k} "
                f"(p {p:.3g}, Hausman); where they differ, the estimate is neither."
            )
        return said

    def _of_slopes(self) -> list[str]:
        """Standard deviation of each slope, and its correlation with the first function, over all t."""
        q, k = len(self.random), self.phi.shape[1]
        if q == 1 and not self.random[0]:
            return []
        traces = np.einsum("aibi->ab", self.levels.G.reshape(q, k, q, k)) / len(self.phi)
        sd = np.sqrt(np.diag(traces))
        out = []
        for a, name in enumerate(self.random):
            if name:
                beside = f", of correlation {traces[0, a] / max(sd[0] * sd[a], 1e-300):.2f} with the first" if a else ""
                out.append(f"slopes of {name} have a standard deviation of {sd[a]:.3g} between persons{beside}.")
        return out

    def stored(self, *, people: bool) -> PersonCurves:
        """What a file holds: no sums, and no persons if they are to stay out; sites stay."""
        if people:
            return replace(self, sums=None, nulls={})
        nobody, none = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0, 0))
        sites = None if self.sites is None else replace(self.sites, of_person=nobody, added=none)
        return replace(self, sums=None, nulls={}, known=self.known.empty(), sites=sites)


def rows_on(form: LongForm, phi: FloatArray, grid: FloatArray) -> FloatArray:
    """Rows that make a curve on Φ (T, k) of coefficients, of each of P features: (P, k, p).

    Terms whose covariates vary with t have a feature for each function and coefficient: how this loads on that.
    """
    k, out = phi.shape[1], []
    for design, place, along in zip(form.designs, form.slices, LongForm(form.designs, grid).along, strict=True):
        if design.separable:
            q = design.n_features
            own = np.einsum("ab,jr->ajbr", np.eye(q), phi.T @ along).reshape(q, k, -1)[:, :, design.kept]
        else:
            own = np.einsum("ij,pr->ipjr", np.eye(k), np.eye(design.size)).reshape(k * design.size, k, design.size)
        out.append(np.zeros((len(own), k, form.size)))
        out[-1][:, :, place] = own
    return np.concatenate(out)


def _numbers(labels: Levels, records: Records) -> IntArray:
    return np.asarray(labels.codes(records.labels(labels.column).tolist(), unseen=True), dtype=np.int64)


def _taken(values: FloatArray, codes: IntArray) -> FloatArray:
    """Rows by their numbers, zeros for -1."""
    out = np.zeros((len(codes), *values.shape[1:]))
    out[codes >= 0] = values[codes[codes >= 0]]
    return out
