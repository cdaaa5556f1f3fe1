"""Terms whose covariates vary with t beside curves of persons: what their coefficients do to each row, in sums.

The P coefficients of ``X(t) β(t)``, of a historical effect and the like load on a row as ``D = Φ'·diag(x(t))·B``, a
matrix (k, P) of its own. Sums by person of these numbers take the place of features; outside Φ it takes the normal
equations of least squares, less what they have inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.typing import BoolArray, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.regression.mixed_models.estimated_covariances import EstimatedCovariances
from fdadp.repeated.fixed_effects import TermParts, varying
from fdadp.repeated.person_sums import PersonSums
from fdadp.repeated.reml_search import LevelCovariances
from fdadp.solve.form.long_form_design import LongForm, LongSums, System, feature_slices, kept_of
from fdadp.terms.spec import TermDesign

MOST_LOADS = 2000
"""Numbers a person that loads may take: moments of them take the square of that."""


def loads_of(form: LongForm, phi: FloatArray, features: Sequence[FloatArray]) -> FloatArray:
    """Loads of the coefficients of terms that vary with t on Φ (T, k), row by row, of n records: (n, k P)."""
    own = []
    for design, along, x in zip(form.designs, form.along, features, strict=True):
        if design.separable:
            continue
        n, T, q = x.shape
        both = (phi[:, :, None] * along[:, None, :]).reshape(T, -1)
        whole = (x.transpose(0, 2, 1).reshape(n * q, T) @ both).reshape(n, q, phi.shape[1], along.shape[1])
        own.append(whole.transpose(0, 2, 1, 3).reshape(n, phi.shape[1], -1)[..., design.kept])
    return np.concatenate(own, axis=2).reshape(len(own[0]), -1)


@dataclass(frozen=True)
class VaryingTerms:
    """Terms of a form whose covariates vary with t, in order; P coefficients together.

    Attributes
    ----------
    form : LongForm
        Of all terms.
    designs : tuple of TermDesign
    """

    form: LongForm
    designs: tuple[TermDesign, ...]

    @classmethod
    def of(cls, form: LongForm) -> VaryingTerms | None:
        """None where there are none."""
        own = tuple(design for design in form.designs if not design.separable)
        return cls(form, own) if own else None

    @property
    def count(self) -> int:
        """P."""
        return sum(design.size for design in self.designs)

    def most_functions(self, called: str, column: str, least: int) -> int:
        """How many functions of persons these terms leave room for.

        Raises
        ------
        InputError
            Fewer than `least`.
        """
        if least * self.count > MOST_LOADS:
            names = " and ".join(design.name for design in self.designs)
            raise InputError(
                f"{called}: k={least} functions of persons times {self.count:,} coefficients of {names} must be at "
                f"most {MOST_LOADS:,}, got {least * self.count:,}. Give {names} a smaller k, or re({column})"
            )
        return MOST_LOADS // self.count

    def sums(self, sums: PersonSums, kept: IntArray, long: LongSums, level: float) -> PersonSums:
        """Sums with what these terms do outside of Φ.

        Parameters
        ----------
        sums : PersonSums
            With their loads.
        kept : ndarray of int
            Features of all other terms that the sums have after their constant.
        long : LongSums
            Of all terms with a constant after the other features, of curves less the level.
        level : float
        """
        xx, beside, xy = sums.split(sums.total)[0], long.own_same[:, :, kept], sums.products
        if sums.intercept:  # of features about their shift
            constant = long.own_same[:, :, -1:]
            beside = np.concatenate((constant, beside - constant * sums.shift_x[1:]), axis=2)
            xy = xy + np.outer(xx[:, 0], sums.shift_y - level)
        turned = np.linalg.solve(xx, beside.swapaxes(1, 2)).swapaxes(1, 2)
        left = replace(
            long,
            own=long.own - turned @ beside.swapaxes(1, 2),
            own_y=long.own_y - np.einsum("tqa,at->tq", turned, xy),
        )
        found = left.system(LongForm(self.designs, self.form.t))
        return sums.with_loads_on_all(found.gram, found.cross)

    def features(self, sums: PersonSums, mix: FloatArray, vectors: FloatArray) -> FloatArray:
        """Features of all terms as :func:`rows_on` counts them, (..., P'), from those of the sums (..., d)."""
        assert sums.loads is not None
        plain, k = vectors[..., : sums.p] @ mix, sums.k
        loads = vectors[..., sums.p + k :].reshape(*vectors.shape[:-1], k, self.count)
        if sums.intercept:
            loads = loads + vectors[..., :1, None] * sums.loads.shift
        out, at, column = [], 0, 0
        for design in self.form.designs:
            if design.separable:
                out.append(plain[..., at : at + design.n_features])
                at += design.n_features
            else:
                own = loads[..., column : column + design.size]
                out.append(own.reshape(*vectors.shape[:-1], k * design.size))
                column += design.size
        return np.concatenate(out, axis=-1)

    def parts(self, sums: PersonSums, mix: FloatArray, whole: System, level: float) -> TermParts:
        """What does not depend on covariances, of all products of features and functions of t."""
        keep = kept_of(self.form.designs)
        gram, cross = np.zeros((keep.size, keep.size)), np.zeros(keep.size)
        gram[np.ix_(keep, keep)], cross[keep] = whole.gram, whole.cross
        return TermParts.beside_loads(sums, self.onto(sums, mix), replace(whole, gram=gram, cross=cross), level)

    def onto(self, sums: PersonSums, mix: FloatArray) -> FloatArray:
        """Curves on Φ of the p features, and coefficients of loads after them, of all products; (p k + P, q)."""
        assert sums.loads is not None
        p, k, keep, varies = sums.p, sums.k, kept_of(self.form.designs), self.columns
        onto = np.zeros((p * k + self.count, keep.size))
        rest = LongForm(tuple(design for design in self.form.designs if design.separable), self.form.t)
        parts = zip(feature_slices(rest.designs), rest.along, strict=True)
        curves = [np.kron(mix[:, own], sums.phi.T @ along) for own, along in parts]
        onto[: p * k, ~varies] = np.hstack([np.zeros((p * k, 0)), *curves])
        onto[p * k :, varies & keep] = np.eye(self.count)
        if sums.intercept:
            onto[:k, varies & keep] = sums.loads.shift
        return onto

    @property
    def columns(self) -> BoolArray:
        """Which products of a feature and a function of t are of these terms."""
        return np.concatenate([np.full(design.kept.size, not design.separable) for design in self.form.designs])

    def column_means(self, long: LongSums) -> list[FloatArray]:
        """Means of the columns of these terms over all rows and points; of all their products."""
        means, at, out = long.own_same[:, :, -1] / long.n, 0, []
        for design in self.designs:
            along = LongForm((design,), self.form.t).along[0]
            out.append((means[:, at : at + design.n_features].T @ along / len(along)).ravel())
            at += design.n_features
        return out

    def degrees(self, sums: PersonSums, few: EstimatedCovariances | None) -> list[float]:
        """Student's degrees of freedom of each term, by the rule of :func:`degrees_of_freedom`.

        ``N - I - rank`` where all persons have the same mean covariates, else persons less the features that are
        constant within each; between both, Satterthwaite's of its effects where covariances count as estimated.
        """
        P, own, column = self.count, (~varying(sums)[0]).sum(), 0
        z = slice(sums.p + sums.k, None)
        total, within = (np.diag(moment)[z].reshape(sums.k, P) for moment in (sums.total, sums.within))
        spread = np.ptp(sums.means[:, z], axis=0).reshape(sums.k, P)
        spare, found = float(max(sums.spare_rows, 1)), []
        for design, along in zip(self.designs, LongForm(self.designs, self.form.t).along, strict=True):
            part = slice(column, column + design.size)
            column += design.size
            size = max(float(total[:, part].max()), 1e-300)
            inner = float(within[:, part].max()) > 1e-10 * size
            outer = float(spread[:, part].max()) > 1e-8 * (size / sums.n_rows) ** 0.5
            own += 0 if inner else design.n_features
            of_effects = 0.0 if outer else spare
            if few is not None and inner and outer:
                rows = np.kron(np.eye(design.n_features), along)[:, design.kept]
                of_effects = few.degrees(np.pad(rows, ((0, 0), (sums.p * sums.k + part.start, P - part.stop))))
            found.append(of_effects if inner else 0.0)
        persons = float(max(sums.n_persons - int(own), 1))
        return [max(min(degrees, spare), persons) for degrees in found]


def alike_beside_loads(sums: PersonSums, levels: LevelCovariances, moment: FloatArray, parts: TermParts) -> FloatArray:
    """Weights of coefficients as if errors were alike along t: of persons and of rows, of their mean variances.

    Outside Φ a column has the share that errors of persons leave of its information inside; shape (q, q). `moment` is
    that of what functions of persons multiply, whose variance is that of an average row.
    """
    T, k = len(sums.phi), sums.k
    row = (float(np.trace(levels.R)) + levels.noise_variance * (T - k)) / T
    four = levels.G.reshape(len(moment), k, len(moment), k)
    person = float(np.einsum("ab,aibi->", moment, four)) / T
    precisions = 1 / np.concatenate(([row], row + sums.sizes * person))
    alike = np.tile(np.eye(k), (len(precisions), 1, 1))
    inside, whole = (
        parts.onto.T @ sums.moments.normal(weights)[0] @ parts.onto
        for weights in (precisions[:, None, None] * alike, alike)
    )
    own, every = np.diag(inside), np.diag(whole)
    share = np.sqrt(np.divide(own, every, out=np.full(len(own), 1 / row), where=every > 0))
    return np.asarray(inside + share[:, None] * parts.gram * share)
