"""How sure a model of many terms is: covariances, tests of terms, bands, likelihood, bootstrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag, fraction, one_of
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError
from fdadp.functional.records import Records
from fdadp.regression.effects import effect_of, effect_rows
from fdadp.solve.additive_fit import AdditiveFit
from fdadp.solve.curve_errors import clustered_covariance
from fdadp.solve.term_tests import largest_ratio, wald

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "Inference", "Training", "clusters_of"]

KINDS = ("curve", "cluster", "iid")


@dataclass(frozen=True)
class Training:
    """What is kept of the training rows, for covariances and bootstrap.

    Attributes
    ----------
    records : Records
    y, residuals : ndarray of shape (n, T)
    groups : ndarray of shape (n,) of int or None
        Numbers of groups from 0.
    precision : ndarray of shape (T, T) or None
        Working precision of the fit along a curve.
    weights : ndarray of shape (n, T) or None
        Weights of the fit, 0 where nothing was observed.
    """

    records: Records
    y: FloatArray
    residuals: FloatArray
    groups: IntArray | None = None
    precision: FloatArray | None = None
    weights: FloatArray | None = None
    found: dict[str, FloatArray] = field(default_factory=dict)

    def covariance(self, fit: AdditiveFit, kind: str) -> FloatArray:
        """By curves or groups; computed once."""
        if kind not in self.found:
            with one_blas_thread():
                self.found[kind] = clustered_covariance(
                    fit,
                    self.records,
                    self.residuals,
                    self.groups if kind == "cluster" else None,
                    precision=self.precision,
                    weights=self.weights,
                )
        return self.found[kind]


class Inference:
    """Part of every model of many terms: how sure it is."""

    _fit: AdditiveFit
    _training: Training | None = None

    @property
    def _default_kind(self) -> str:
        """What standard errors, bands and tests take when not told."""
        wanted = str(getattr(self, "se", "iid"))
        if self._training is None:
            return "iid"
        return "cluster" if wanted == "curve" and self._training.groups is not None else wanted

    def _kind_of(self, kind: str | None) -> str:
        check_is_fitted(self, "_fit")
        wanted = self._default_kind if kind is None else one_of(kind, "kind", KINDS)
        if wanted != "iid" and self._training is None:
            raise InputError(f"kind={wanted!r} needs the training rows, of which this model keeps none; use 'iid'")
        if wanted == "cluster" and (self._training is None or self._training.groups is None):
            raise InputError("kind='cluster' needs groups, got a model that was fitted without; fit(data, groups=...)")
        return wanted

    def _covariance_of(self, kind: str | None) -> FloatArray:
        """Covariance of all coefficients, by what is believed of the errors."""
        wanted = self._kind_of(kind)
        if wanted == "iid" or self._training is None:
            return self._fit.bayesian_covariance
        return self._training.covariance(self._fit, wanted)

    def _degrees_of(self, kind: str | None) -> float:
        """Degrees of freedom of that covariance: clusters less one; of independent errors what is left over."""
        wanted = self._kind_of(kind)
        if wanted == "cluster" and self._training is not None and self._training.groups is not None:
            return float(self._training.groups.max())
        if wanted == "curve":
            return float(self._fit.n - 1)
        return max(self._fit.n_rows - self._fit.edf_total, 1.0)

    # --- numbers ---

    def vcov(self, kind: str | None = None) -> pd.DataFrame:
        """Covariance of all coefficients.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid"}, optional
            Errors of any law within a curve; within a group of curves (``fit(data, groups=)``); or independent, as
            refund takes them. Default: :attr:`se`.

        Returns
        -------
        DataFrame of shape (p, p)
            Rows and columns are numbered within each term; coefficients are in coordinates where penalties are
            diagonal.
        """
        import pandas as pd

        covariance, form = self._covariance_of(kind), self._fit.form
        names = [f"{d.name}.{i + 1}" for d in form.designs for i in range(d.size)]
        return pd.DataFrame(covariance, index=names, columns=names)

    @property
    def loglik_(self) -> float:
        """Gaussian log-likelihood at the estimates, with the maximum-likelihood variance, observations independent."""
        check_is_fitted(self, "_fit")
        n = self._fit.n_rows
        return -n / 2 * (1 + float(np.log(2 * np.pi * max(self._fit.rss, 1e-300) / n)))

    @property
    def aic_(self) -> float:
        """``-2 loglik + 2 (edf + 1)``, the variance counted as a parameter, as R's AIC of a gam does.

        Where smoothing parameters were chosen by REML the degrees of freedom count that, to first order (Wood, Pya &
        Säfken 2016, doi:10.1080/01621459.2016.1180986).
        """
        return -2 * self.loglik_ + 2 * (self._fit.edf_total + 1)

    # --- tests ---

    def test_terms(self, kind: str | None = None) -> pd.DataFrame:
        """Test for each term that its values at the training rows are all 0.

        Parameters
        ----------
        kind : {"curve", "cluster", "iid"}, optional
            As in :meth:`vcov`.

        Returns
        -------
        DataFrame
            A row for each term but the constant: ``edf``, ``statistic`` (Wald's, on the ``df`` directions in which the
            term varies most), ``df`` and ``p``.

        References
        ----------
        Wood (2013), doi:10.1093/biomet/ass048; Hotelling's distribution for covariances from few clusters.
        """
        import pandas as pd

        wanted, covariance = self._kind_of(kind), self._covariance_of(kind)
        left, fit, rows = self._degrees_of(kind), self._fit, {}
        for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
            if not design.columns and design.size == 1:
                continue
            edf = float(fit.edf[place].sum())
            own = (fit.gram[place, place], fit.coefficients[place], covariance[place, place])
            found = wald(*own, edf, left, clustered=wanted != "iid")
            rows[design.name] = (edf, found.statistic, found.df, found.p)
        columns = ["edf", "statistic", "df", "p"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("term")

    def anova(self, other: Any, kind: str | None = None) -> pd.DataFrame:
        """Compare with a model nested in this one, or of which this one is a part.

        A Wald test in the larger model that the terms which the smaller one lacks are all 0, with the covariance of
        `kind`; no likelihood ratio, whose law is unknown where errors depend along a curve.

        Parameters
        ----------
        other : model of the same class
            Fitted to the same rows.
        kind : {"curve", "cluster", "iid"}, optional
            As in :meth:`vcov`.

        Returns
        -------
        DataFrame
            A row for each model, the smaller one first: ``edf``, ``rss``, ``aic``; in the second ``statistic``, ``df``
            and ``p`` of the terms by which they differ.

        Raises
        ------
        InputError
            Neither model has all terms of the other, or they were fitted to different numbers of observations.
        """
        import pandas as pd

        if not isinstance(other, Inference):
            raise InputError(f"other must be a model of many terms, got {type(other).__name__}")
        check_is_fitted(self, "_fit")
        check_is_fitted(other, "_fit")
        mine, theirs = ({d.name for d in model._fit.form.designs} for model in (self, other))
        if not (mine < theirs or theirs < mine):
            raise InputError(
                f"other must have some of the terms of this model, or all and more, got {', '.join(sorted(theirs))} "
                f"beside {', '.join(sorted(mine))}"
            )
        if self._fit.n_rows != other._fit.n_rows:
            raise InputError(
                f"other must be fitted to the same rows, got {other._fit.n_rows} observations, not {self._fit.n_rows}"
            )
        small, large = (self, other) if mine < theirs else (other, self)
        form, fit = large._fit.form, large._fit
        more = [p for d, p in zip(form.designs, form.slices, strict=True) if d.name in mine ^ theirs]
        which = np.concatenate([np.arange(p.start, p.stop) for p in more])
        both = np.ix_(which, which)
        wanted = large._kind_of(kind)
        found = wald(
            fit.gram[both],
            fit.coefficients[which],
            large._covariance_of(kind)[both],
            float(fit.edf[which].sum()),
            large._degrees_of(kind),
            clustered=wanted != "iid",
        )
        rows = [(m._fit.edf_total, m._fit.rss, m.aic_) for m in (small, large)]
        table = pd.DataFrame(rows, columns=["edf", "rss", "aic"], index=["smaller", "larger"])
        table["statistic"], table["df"], table["p"] = [np.nan, found.statistic], [np.nan, found.df], [np.nan, found.p]
        return table

    # --- bands ---

    def bands(
        self,
        name: str,
        level: float = 0.95,
        simultaneous: bool = True,
        *,
        t: ArrayLike | None = None,
        at: Mapping[str, ArrayLike] | None = None,
        kind: str | None = None,
        random_state: int = 0,
        **points: ArrayLike,
    ) -> pd.DataFrame:
        """Bands of a term's coefficient function, such as ``β(s, t)`` of ``ff(X)``.

        Parameters
        ----------
        name : str
            Of the term.
        level : float
            Probability that the band holds the function: all of it, or at each point.
        simultaneous : bool
            All of it, on the grid of the band.
        t, at, **points
            Grid, as in :meth:`coef`.
        kind : {"curve", "cluster", "iid"}, optional
            As in :meth:`vcov`.
        random_state : int
            Seed of the draws of which the largest deviation is taken.

        Returns
        -------
        DataFrame
            As of :meth:`coef`, with ``se``, ``lower`` and ``upper``.
        """
        from scipy.stats import t as student

        flag(simultaneous, "simultaneous")
        fraction(level, "level")
        covariance, left = self._covariance_of(kind), self._degrees_of(kind)
        rows = effect_rows(self._fit.form, name, {"t": t, **(at or {}), **points})
        frame = effect_of(self._fit, rows, covariance, level).to_frame()
        wide = student.ppf((1 + level) / 2, left)
        if simultaneous:
            here = rows.rows[~rows.absent]
            wide = largest_ratio(here, covariance[rows.place, rows.place], level, left, random_state)
        frame["lower"], frame["upper"] = frame["value"] - wide * frame["se"], frame["value"] + wide * frame["se"]
        return frame


def clusters_of(groups: Any, n: int) -> IntArray:
    """Numbers of groups from 0, shape (n,).

    Raises
    ------
    InputError
        Not one group a row, missing ones, or a single group.
    """
    import pandas as pd

    labels = np.asarray(groups, dtype=object)
    if labels.shape != (n,):
        raise InputError(f"groups must be a column, or one label a row, shape ({n},), got shape {labels.shape}")
    numbers, levels = pd.factorize(labels, use_na_sentinel=True)
    if (numbers < 0).any():
        raise InputError(f"groups must not be missing, got a missing one in row {int(np.argmax(numbers < 0))}")
    if len(levels) < 2:
        raise InputError(f"groups must be two or more, got only {levels[0]!r}")
    return numbers.astype(np.int64)
