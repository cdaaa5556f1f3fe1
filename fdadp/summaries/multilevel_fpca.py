"""``PrivateMultilevelFPCA``: components of persons and of their curves under differential privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import fraction
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.files.dataclass_json import pack, unpack
from fdadp.files.npz_files import Layout
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.fpca.eigenbasis import count_components
from fdadp.privacy.rows._person_row_caps import check_most
from fdadp.private.levels.between_within_covariances import icc_interval
from fdadp.private.levels.tail_law_and_clip import TINY, warn_of_tail
from fdadp.repeated.multilevel_fpca import MultilevelComponents, wanted_of_levels
from fdadp.repeated.two_level_components import TwoLevels, level_basis
from fdadp.summaries.curves.mean_and_covariance import LEVELS
from fdadp.summaries.curves.released_summary import HandedCurves, summarise_levels
from fdadp.summaries.mean_and_fpca import Facts, PrivateSummary, said_of_grid


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMultilevelFPCA(PrivateSummary, MultilevelComponents):
    """Components of persons and of their curves, private by person end to end.

    Each release takes one clipped contribution of a person, whatever number of curves it has: the mean of its curves,
    that mean's product with itself, and the products of its curves about the mean.

    Parameters
    ----------
    n_components : int, float or pair of these
        Of persons and of rows, as of :class:`fdadp.MultilevelFPCA`; fewer where a released covariance has not as many.
    privacy : Privacy
        The guarantee; required.
    bounds : (float, float)
        Public range of the curves' values, in their units; required.
    max_rows : int
        Public number of curves of a person that count at most; required. Of more those with the smallest public hash
        count.
    prior : PublicPrior, optional
        As of :class:`PrivateFPCA`.
    allow_useless : bool
        Release even where the noise is more than half of the curves' variance.
    levels : pair of str
        Names of the two levels.

    Attributes
    ----------
    grid_, weights_, mean_ : ndarray of shape (T,)
        Each person counts once in the mean curve.
    eigenfunctions_, eigenvalues_, explained_variance_ratio_ : dict of ndarray
        By level, as of :class:`fdadp.MultilevelFPCA`.
    noise_variance_ : float
        Of single points, from what lies outside the functions.
    icc_, icc_with_noise_ : float
        Share of the variance on the functions that is between persons, without white noise; and of all variance. What
        is rougher than the functions counts as noise, so that the second depends less on the prior.
    row_shares_ : ndarray of shape (max_rows,)
        Shares of persons with 1, 2, ... curves.
    n_ : float
        Declared or released number of persons.
    covariance_noise_sd_ : dict of float
        By level: sd of the privacy noise in an entry of the covariance, in units of ``eigenvalues_``. Of persons that
        of the covariance of their means.
    variance_beyond_clip_ : dict of float
        By level: share of the variance that lies beyond the private clip, as the released shares of large curves let
        expect. It is in the eigenvalues, in proportion; a :class:`~fdadp.errors.ClippingWarning` says where it is
        surely above a tenth, or expected to be above a half.
    ledger_ : Ledger
    privacy_ : Privacy

    Notes
    -----
    Scores of persons are never released: ``transform`` gives those of curves that are handed to it, which are as
    private as these curves. It takes some 1,000 persons at epsilon 1 for four components.

    References
    ----------
    Di, Crainiceanu, Caffo & Punjabi (2009), doi:10.1214/08-AOAS206. What is released, and its proof:
    ``docs/theory/summaries.md#levels``.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> from fdadp.summaries import PrivateMultilevelFPCA
    >>> rng, t = np.random.default_rng(0), np.linspace(0, 1, 50)
    >>> ids = np.repeat(np.arange(3000), 4)
    >>> Y = rng.normal(size=(3000, 1))[ids] + rng.normal(size=(12000, 1)) * np.cos(np.pi * t)
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000, random_state=0)
    >>> model = PrivateMultilevelFPCA(n_components=1, privacy=privacy, bounds=(-6, 6), max_rows=4).fit(Y, groups=ids)
    >>> model.eigenfunctions_["person"].shape, bool(abs(model.icc_ - 2 / 3) < 0.1)
    ((1, 50), True)
    """

    _layout: ClassVar[Layout] = Layout("private-multilevel-fpca", {"grid": "T", "numbers": "V"})
    n_components: float | tuple[float, float] = 0.95
    max_rows: int | None = None
    levels: tuple[str, str] = ("person", "row")

    def _check_groups(self, groups: Any) -> None:
        if groups is None:
            raise InputError("groups must say of each row whose it is, got None")
        if check_most(self.max_rows, "for several curves a person") < 2:
            raise PrivacyError("max_rows must be at least 2: both levels are learned from two curves a person or more")
        self._check_levels()

    def _release(self, handed: HandedCurves) -> PrivateMultilevelFPCA:
        assert self.max_rows is not None
        found = summarise_levels(handed, LEVELS, max_rows=int(self.max_rows))
        start, grid = found.curves, handed.form.grid
        length = float(grid[-1] - grid[0])
        levels = found.levels
        T, m = start.functions.shape
        variance = found.rest * T / max(T - m, 1)
        weighted = start.functions * start.weights[:, None]
        points = variance * weighted.T @ weighted  # what white noise adds to coefficients
        mean = sum(handed.declared.bounds) / 2 + start.functions @ found.mean
        bases = [
            level_basis(K, start.functions, grid, start.weights * length, mean, variance)
            for K in (levels.between, levels.within - points)
        ]
        kept = [
            count_components(b.values, n) if isinstance(n, float) and b.n_components else min(int(n), b.n_components)
            for b, n in zip(bases, wanted_of_levels(self.n_components), strict=True)
        ]
        self._set(TwoLevels(bases[0], bases[1], np.zeros((0, T)), np.zeros(0), (kept[0], kept[1])))
        white = float(np.trace(points))
        total = float(np.trace(levels.between) + np.trace(levels.within)) + found.rest
        self.icc_with_noise_ = float(np.trace(levels.between)) / max(total, TINY)
        self.icc_, self._icc = levels.icc(white), (*levels.trace_means, *levels.trace_sds, levels.once, white)
        self.row_shares_, self.n_ = levels.row_shares, start.n
        sds = (levels.of_means.sd * length, levels.of_rows.sd * length)
        self.covariance_noise_sd_ = dict(zip(self.levels, sds, strict=True))
        both = dict(zip(self.levels, (levels.of_means, levels.of_rows), strict=True))
        self.variance_beyond_clip_ = {name: own.beyond for name, own in both.items()}
        self._remember(handed, found.ledger, found.outside)
        for name, own in both.items():
            warn_of_tail(own.beyond, own.surely_beyond, f" of the level {name!r}")
        return self

    def icc_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval of ``icc_``: of the privacy noise, and of who happened to be in the sample.

        Quantiles over draws of both released traces. Curves are taken as Gaussian.
        """
        check_is_fitted(self, "basis_")
        return icc_interval(*self._icc, fraction(level, "level"))

    def _facts(self) -> tuple[str, list[Facts]]:
        facts = [("Persons", f"{self.n_:.0f}", "Grid", said_of_grid(self.grid_, self._columns))]
        for name in self._level_names:
            shares = ", ".join(f"{100 * share:.1f} %" for share in self.explained_variance_ratio_[name][:5])
            facts.append((f"Components, {name}", f"{self.n_components_[name]}", "Shares", shares))
            sd = f"{self.covariance_noise_sd_[name]:.4g}"
            facts.append((f"First eigenvalue, {name}", f"{self.eigenvalues_[name][:1].sum():.4g}", "Noise sd", sd))
        low, high = self.icc_interval()
        facts.append(("ICC", f"{self.icc_:.3f}", "95 % interval", f"{low:.3f} to {high:.3f}"))
        facts.append(("ICC with noise", f"{self.icc_with_noise_:.3f}", "Noise variance", f"{self.noise_variance_:.4g}"))
        return "Private multilevel functional principal components", facts

    def _stored(self) -> tuple[dict[str, Any], dict[str, FloatArray], str]:
        tree, values = pack((self.basis_, self.row_shares_), "PrivateMultilevelFPCA")
        content = {
            "n": self.n_,
            "icc": [self.icc_, self.icc_with_noise_],
            "of_icc": list(self._icc),
            "sd": self.covariance_noise_sd_,
            "beyond": self.variance_beyond_clip_,
        }
        note = f"{100 * self.icc_:.0f} % of the smooth variance is between persons, as released"
        return {**content, "fit": tree}, {"numbers": values}, note

    def _restore(self, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        kinds = (TwoLevels, Eigenbasis)
        basis, self.row_shares_ = unpack(content["fit"], arrays["numbers"], lambda kind: kind in kinds)
        self._set(basis)
        self.n_, self._icc = content["n"], tuple(content["of_icc"])
        self.icc_, self.icc_with_noise_ = content["icc"]
        self.covariance_noise_sd_, self.variance_beyond_clip_ = content["sd"], content["beyond"]
