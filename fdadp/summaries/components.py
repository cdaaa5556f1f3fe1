"""``PrivateFPCA``: eigenfunctions and eigenvalues of curves under differential privacy."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp.errors import ClippingWarning, InputError
from fdadp.files.container import complete
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.fpca.basis import count_components, oriented, significant
from fdadp.functional.fpca.components import Components
from fdadp.functional.tables.sample import Curves
from fdadp.privacy.clipped import warn_of_clipping
from fdadp.summaries import files
from fdadp.summaries._base import PrivateSummary, said_of_grid
from fdadp.summaries.curves.release import BEYOND, OUTSIDE, WIDEN, Declared, Summary, summarise
from fdadp.summaries.curves.tuning import COVARIANCE

if TYPE_CHECKING:
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.public.inputs import PrivateChunks

BASIS = ("grid", "weights", "mean", "functions", "values", "explained_ratio")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateFPCA(PrivateSummary, Components):
    """Functional principal components, private end to end.

    Mean and covariance are released on functions of the public prior; the covariance is shrunk entry by entry by the
    known noise before its eigenfunctions are taken, so pure noise gives the prior's components and not large
    eigenvalues.

    Parameters
    ----------
    n_components : int or float
        Number of components (fewer where the released covariance has not as many), or in (0, 1] the share to explain of
        the released variance on the functions. Not chosen by the data: the release is what is looked at.
    privacy : Privacy
        The guarantee; required.
    bounds : (float, float)
        Public range of the curves' values, in their units; required. Values beyond are clipped, gaps are
        filled by straight lines within the curve. A curve without an observed point adds nothing.
    prior : PublicPrior, optional
        What is believed in public: gives the functions that carry mean and covariance. Default
        ``PublicPrior(n_response=12, y_length=0.2)``.
    allow_useless : bool
        Release even where the noise is more than half of the curves' variance.

    Attributes
    ----------
    grid_, weights_, mean_ : ndarray of shape (T,)
    eigenfunctions_ : ndarray of shape (K, T)
        Of unit L2 norm.
    eigenvalues_ : ndarray of shape (K,)
        In L2 units, shrunk.
    explained_variance_ratio_ : ndarray of shape (K,)
        Of the released total variance, that outside the functions among it.
    noise_variance_ : float
        Mean square of curves outside the functions.
    covariance_noise_sd_ : float
        Sd of the privacy noise in an entry of the covariance of the coefficients, in units of ``eigenvalues_``.
    variance_beyond_clip_ : float
        Share of the variance that lies beyond the private clip, as the released shares of large curves let expect. It
        is in the eigenvalues, in proportion; a :class:`~fdadp.errors.ClippingWarning` says where it surely is above a
        tenth.
    n_ : float
        Declared or released number of persons.
    ledger_ : Ledger
    privacy_ : Privacy

    Notes
    -----
    ``transform`` gives scores of the curves it is handed: those of training curves are private data again.

    References
    ----------
    Hall, Rinaldo & Wasserman (2013), JMLR 14, 703-727; Lin & Reimherr (2023), arXiv:2309.00125; Dwork, Talwar, Thakurta
    & Zhang (2014), Analyze Gauss, doi:10.1145/2591796.2591883 (noise on the covariance).

    Examples
    --------
    >>> from fdadp import Privacy, PrivateFPCA, simulate_affr
    >>> Y = simulate_affr(scenario=1, n=3000, seed=0).Y
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000, random_state=0)
    >>> PrivateFPCA(n_components=2, privacy=privacy, bounds=(-8, 8)).fit(Y).eigenfunctions_.shape
    (2, 51)
    """

    n_components: float = 0.95

    def _release(
        self, declared: Declared, data: Any, groups: Any, curves: Curves | PrivateChunks, noise: Noise | None = None
    ) -> PrivateFPCA:
        if self.n_components is None:
            raise InputError("n_components must be a number, got None")
        count_components(np.ones(min(declared.prior.n_response, curves.grid.size)), self.n_components)
        found = summarise(data, curves.grid, groups, declared, COVARIANCE, noise=noise)
        self._set(self._basis(found, curves.grid, sum(declared.bounds) / 2))
        self.n_, self.covariance_noise_sd_ = found.n, found.covariance_sd * float(self.weights_.sum())
        self.variance_beyond_clip_ = found.beyond
        self._remember(declared, curves, found.ledger)
        warn_of_clipping(found.outside, "the values of the curves", WIDEN, limit=OUTSIDE)
        if found.surely_beyond > BEYOND:
            warnings.warn(
                f"about {100 * found.beyond:.0f} % of the variance lies beyond the clip, by released shares of large "
                "curves: these have heavy tails, and the eigenvalues depend on how the tails go on",
                ClippingWarning,
                stacklevel=3,
            )
        return self

    def _basis(self, found: Summary, grid: Any, middle: float) -> Eigenbasis:
        values, axes = np.linalg.eigh(found.covariance)
        values, axes = values[::-1], axes[:, ::-1]
        kept = max(significant(values), 1)
        values, axes = np.maximum(values[:kept], 1e-300), axes[:, :kept]
        wanted = self.n_components
        assert wanted is not None
        k = min(wanted, kept) if isinstance(wanted, (int, np.integer)) else count_components(values, wanted)
        length = float(grid[-1] - grid[0])
        return Eigenbasis(
            grid=grid,
            weights=found.weights * length,
            mean=middle + found.functions @ found.mean,
            functions=oriented((found.functions @ axes[:, :k]).T) / np.sqrt(length),
            values=values[:k] * length,
            noise_variance=found.rest,
            explained_ratio=values[:k] / (values.sum() + found.rest),
        )

    def summary(self) -> Any:
        """Table of the fit, as statsmodels' ``Summary``."""
        check_is_fitted(self, "basis_")
        shares = ", ".join(f"{100 * share:.1f} %" for share in self.explained_variance_ratio_)
        return files.summary(
            "Private functional principal components",
            self,
            [
                ("Persons", f"{self.n_:.0f}", "Grid", said_of_grid(self.grid_, self._columns)),
                ("Components", f"{self.n_components_}", "Share of variance", shares),
                ("First eigenvalue", f"{self.eigenvalues_[0]:.4g}", "Noise sd", f"{self.covariance_noise_sd_:.4g}"),
                ("Beyond the clip", f"{100 * self.variance_beyond_clip_:.1f} % of variance", "", ""),
            ],
        )

    def plot(self, **kwargs: Any) -> Any:
        """Picture of the components, see :func:`fdadp.plot.eigenfunctions`."""
        from fdadp.plot import eigenfunctions

        return eigenfunctions(self, **kwargs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file, without budget and prior; return its path."""
        check_is_fitted(self, "basis_")
        content = {"n": self.n_, "noise": self.basis_.noise_variance, "sd": self.covariance_noise_sd_}
        content["beyond"] = self.variance_beyond_clip_
        arrays = {name: getattr(self.basis_, name) for name in BASIS}
        shares = ", ".join(f"{share:.1%}" for share in self.explained_variance_ratio_)
        note = f"components explain {shares} of the variance, as released"
        return files.save(path, files.COMPONENTS, self, content, arrays, note)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateFPCA:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        model = cls()
        content, arrays = files.load(path, files.COMPONENTS, model)
        with complete(path, files.COMPONENTS.kind):
            model._set(Eigenbasis(noise_variance=content["noise"], **{name: arrays[name] for name in BASIS}))
            model.n_, model.covariance_noise_sd_ = content["n"], content["sd"]
            model.variance_beyond_clip_ = content["beyond"]
            return model
