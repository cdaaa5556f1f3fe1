"""``PrivateMean``: the mean curve under differential privacy, with bands that include the noise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.files.container import complete
from fdadp.functional.tables.sample import Curves, wrap
from fdadp.privacy.clipped import warn_of_clipping
from fdadp.summaries import files
from fdadp.summaries._base import PrivateSummary, said_of_grid
from fdadp.summaries.curves.release import OUTSIDE, WIDEN, Declared, summarise
from fdadp.summaries.curves.tuning import MEAN

if TYPE_CHECKING:
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.public.inputs import PrivateChunks


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMean(PrivateSummary, BaseEstimator):  # type: ignore[misc]
    """Mean of curves, private end to end.

    Parameters
    ----------
    privacy : Privacy
        The guarantee; required.
    bounds : (float, float)
        Public range of the curves' values, in their units; required. Values beyond are clipped, gaps are
        filled by straight lines within the curve. A curve without an observed point adds nothing.
    prior : PublicPrior, optional
        What is believed in public: gives the functions that carry the mean. Default
        ``PublicPrior(n_response=12, y_length=0.2)``.
    allow_useless : bool
        Release even where the noise is more than half of the curves' spread.

    Attributes
    ----------
    mean_ : ndarray of shape (T,)
    mean_curve_ : FDataGrid, DataFrame or ndarray of shape (1, T)
        The same as the kind of object that was fitted.
    noise_sd_ : ndarray of shape (T,)
        What the privacy noise leaves uncertain, after shrinkage.
    sampling_sd_ : ndarray of shape (T,)
        Of the mean of n curves, from a private covariance; with `groups` that of single curves, hence too large.
    clipping_sd_ : ndarray of shape (T,)
        What the clip may have taken off: large for skewed curves, next to nothing for Gaussian ones.
    grid_ : ndarray of shape (T,)
    n_ : float
        Declared or released number of persons.
    ledger_ : Ledger
    privacy_ : Privacy

    Notes
    -----
    The bands are for the mean of the curves within the public bounds, on the functions of the prior: what a mean has
    outside of these functions they cannot know. What is clipped at the bounds is released as a share, and a
    :class:`~fdadp.errors.PublicInputWarning` is made of it. What the smaller, private clip takes off is bounded from
    the released shares of large curves, and is in the bands.

    References
    ----------
    Hall, Rinaldo & Wasserman (2013), JMLR 14, 703-727; Lin & Reimherr (2023), arXiv:2309.00125.

    Examples
    --------
    >>> from fdadp import Privacy, PrivateMean, simulate_affr
    >>> Y = simulate_affr(scenario=1, n=1000, seed=0).Y
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, n=1000, random_state=0)
    >>> model = PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(Y)
    >>> lower, upper = model.band(level=0.95)
    >>> model.mean_curve_
    FDataGrid(...)
    """

    def _release(
        self, declared: Declared, data: Any, groups: Any, curves: Curves | PrivateChunks, noise: Noise | None = None
    ) -> PrivateMean:
        found = summarise(data, curves.grid, groups, declared, MEAN, noise=noise)
        self.grid_, self.n_ = curves.grid, found.n
        self.mean_ = sum(declared.bounds) / 2 + found.functions @ found.mean
        # Factors R with R R' = covariance of the mean: noise, sampling of n curves, and clipping, whose bias is taken
        # for a random curve of that size and shaped as curves are.
        values, vectors = np.linalg.eigh(found.covariance)
        root = found.functions @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        self._noise_factor = found.functions * np.sqrt(found.mean_variance)
        self._sampling_factor = root / np.sqrt(found.observed)
        self._clipping_factor = root * (found.mean_bias / np.sqrt(max(float(np.trace(found.covariance)), 1e-300)))
        self._remember(declared, curves, found.ledger)
        warn_of_clipping(found.outside, "the values of the curves", WIDEN, limit=OUTSIDE)
        return self

    @property
    def noise_sd_(self) -> FloatArray:
        """Pointwise sd that the privacy noise leaves, shape (T,)."""
        return np.asarray(np.sqrt((self._noise_factor**2).sum(axis=1)))

    @property
    def sampling_sd_(self) -> FloatArray:
        """Pointwise sd of the mean of n curves, shape (T,)."""
        return np.asarray(np.sqrt((self._sampling_factor**2).sum(axis=1)))

    @property
    def clipping_sd_(self) -> FloatArray:
        """Pointwise size of what the clip may have taken off the mean, shape (T,), expected from the released tail."""
        return np.asarray(np.sqrt((self._clipping_factor**2).sum(axis=1)))

    @property
    def mean_curve_(self) -> Any:
        """The mean as one curve of the kind that was fitted."""
        return self._wrap(self.mean_)

    def band(self, level: float = 0.95, *, simultaneous: bool = True) -> tuple[Any, Any]:
        """Band for the mean curve of the population: noise, sampling error and what the clip may have taken off.

        Parameters
        ----------
        level : float
            In (0, 1).
        simultaneous : bool
            True: the whole curve lies within the band at once with this probability; False: each point does.

        Returns
        -------
        lower, upper : FDataGrid, DataFrame or ndarray of shape (1, T)

        Notes
        -----
        Gaussian. The simultaneous quantile is that of ``max_t |G(t)| / sd G(t)`` over 20,000 draws (fixed seed) of the
        Gaussian process G with the covariance of the estimate.
        """
        from scipy.stats import norm

        check_is_fitted(self, "mean_")
        if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
            raise InputError(f"level must lie between 0 and 1, got {level!r}")
        factor = np.hstack((self._noise_factor, self._sampling_factor, self._clipping_factor))
        sd = np.sqrt((factor**2).sum(axis=1))
        quantile = float(norm.ppf((1 + level) / 2))
        if simultaneous:
            draws = np.random.default_rng(0).normal(size=(20_000, factor.shape[1])) @ factor.T
            quantile = float(np.quantile(np.abs(draws / np.maximum(sd, 1e-300)).max(axis=1), level))
        return self._wrap(self.mean_ - quantile * sd), self._wrap(self.mean_ + quantile * sd)

    def _wrap(self, values: FloatArray) -> Any:
        return wrap(values[None], self.grid_, kind=self._kind, columns=self._columns, own_grid=self.grid_)

    def summary(self) -> Any:
        """Table of the fit, as statsmodels' ``Summary``."""
        check_is_fitted(self, "mean_")
        return files.summary(
            "Private mean",
            self,
            [
                ("Persons", f"{self.n_:.0f}", "Grid", said_of_grid(self.grid_, self._columns)),
                ("Noise sd", f"{self.noise_sd_.mean():.4g}", "Sampling sd", f"{self.sampling_sd_.mean():.4g}"),
                ("Clipping", f"{self.clipping_sd_.mean():.4g}", "", ""),
            ],
        )

    def plot(self, **kwargs: Any) -> Any:
        """Picture of the mean with its band, see :func:`fdadp.plot.mean`."""
        from fdadp.plot import mean

        return mean(self, **kwargs)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file, without budget and prior; return its path."""
        check_is_fitted(self, "mean_")
        arrays = {"mean": self.mean_, "noise": self._noise_factor, "sampling": self._sampling_factor}
        arrays["clipping"] = self._clipping_factor
        parts = {"noise": self.noise_sd_, "sampling": self.sampling_sd_, "clipping": self.clipping_sd_}
        note = "standard errors of the mean, averaged along the curve: "
        note += ", ".join(f"{sd.mean():.3g} by {name}" for name, sd in parts.items())
        return files.save(path, files.MEAN, self, {"n": self.n_}, arrays, note)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateMean:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        model = cls()
        content, arrays = files.load(path, files.MEAN, model)
        with complete(path, files.MEAN.kind):
            model.n_ = float(content["n"])
        model.mean_, model._noise_factor, model._sampling_factor = arrays["mean"], arrays["noise"], arrays["sampling"]
        model._clipping_factor = arrays["clipping"]
        return model
