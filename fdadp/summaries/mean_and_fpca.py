"""What the private summaries of curves share: how curves come to them, files and tables of what was released."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import fraction
from fdadp._common.estimators import NestedParameters, ShownByTable
from fdadp._common.loaded_later import pd
from fdadp._common.student_and_f import ndtri
from fdadp._common.symmetric_matrices import root_of
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError
from fdadp.files.dataclass_json import labels_from_json, labels_to_json
from fdadp.files.npz_files import Layout, complete
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.fpca.components import Components
from fdadp.functional.fpca.eigenbasis import count_components, oriented, significant
from fdadp.functional.tables.curve_sample import Kind, as_grid, names_of, wrap
from fdadp.functional.tables.grid_from_labels import ONLY_NUMBERED, axis_of, is_only_numbered, text_of_grid
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.privacy import Ledger, Privacy
from fdadp.privacy.clipped_shares import warn_of_clipping
from fdadp.privacy.noise.sources import Noise
from fdadp.privacy.study.verification import record_model
from fdadp.private.levels.tail_law_and_clip import warn_of_tail
from fdadp.private.public.column_ranges import Range
from fdadp.private.public.curve_shapes import PrivateChunks, chunks_of
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.release.mechanisms import params_from_json, params_to_json
from fdadp.summaries.curves import released_summary
from fdadp.summaries.curves.mean_and_covariance import COVARIANCE, MEAN
from fdadp.summaries.curves.released_summary import Declared, HandedCurves, Summary

Self = TypeVar("Self", bound="PrivateSummary")
Facts = tuple[str, str, str, str]
"""Two names and values, side by side in a table."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSummary(ShownByTable, NestedParameters, ABC):
    """Ways to hand curves to a private summary, which says in ``_release`` what it makes of them; and its file."""

    _layout: ClassVar[Layout]
    privacy: Privacy | None = None
    bounds: Range | None = None
    prior: PublicPrior | None = None
    allow_useless: bool = False
    grid_: FloatArray = field(init=False)

    def fit(self: Self, Y: CurveData, y: Any = None, *, t: ArrayLike | None = None, groups: Any = None) -> Self:
        """Release the summary.

        Parameters
        ----------
        Y : FDataGrid, DataFrame, or array_like of shape (n, T), also on disk or lazy
        y : ignored
            Here for pipelines.
        t : array_like of shape (T,), optional
            Grid of a plain array; default even on [0, 1].
        groups : array_like of shape (n,), optional
            Person of each row. A person counts once: its coefficients, and their products, are averaged over its rows.

        Raises
        ------
        InputError, PrivacyError
            From public validation: nothing was read or spent.
        """
        self._check_groups(groups)
        return self._fit(Y, t, groups)

    def fit_chunks(self: Self, chunks: Any, *, t: ArrayLike, groups: Any = None, kind: Kind = "array") -> Self:
        """Release it from chunks of curves: bit for bit what :meth:`fit` gives, with bounded memory.

        Parameters
        ----------
        chunks : sequence of Y, or function returning a fresh iterator over them
            Each as :meth:`fit` takes curves, on the grid `t`. Up to 256 MiB of curves (as float64), and as many of
            their coefficients, are kept; a source of more curves is read once for each release.
        t : array_like of shape (T,)
            The grid: chunks are not looked at to find it. Labels of a frame where it is a :class:`pandas.Index`.
        groups : array_like of shape (n,) or True, optional
            True where the chunks are (Y, groups); for a list of chunks also the person of each row of all of them one
            after the other. The rows of a person may be spread over chunks.
        kind : {"array", "frame", "fdatagrid"}
            What curves are given back as; chunks are not looked at to find it.

        Raises
        ------
        InputError, PrivacyError
            As :meth:`fit`; also a source that fails while it is read: the budget is then spent.
        """
        self._check_groups(groups)
        declared = self._declared()
        source = released_summary.public_chunks(chunks, t, groups, kind)
        declared.privacy.hold([("Y", declared.bounds)])
        self._check_saveable(source.columns)
        return self._release(HandedCurves(declared, source, source.groups, source))

    def _fit(self: Self, Y: CurveData, t: ArrayLike | None, groups: Any, noise: Noise | None = None) -> Self:
        declared = self._declared()
        chunks = chunks_of({"Y": Y}, groups)
        curves = released_summary.public_input(declared.privacy, Y, t, groups if chunks is None else None)
        data: Any = curves.values
        if chunks is not None:
            data = PrivateChunks(chunks[0], {"Y": curves.grid}, groups=chunks[1])
            groups = data.groups
        declared.privacy.hold((name, declared.bounds) for name in names_of(Y, "Y"))
        self._check_saveable(curves.columns)
        return self._release(HandedCurves(declared, data, groups, curves, noise))

    def _check_groups(self, groups: Any) -> None:
        """Refuse what a summary cannot be made of; nothing is read."""

    def _declared(self) -> Declared:
        return released_summary.check(self.privacy, self.bounds, self.prior, self.allow_useless)

    def _remember(self, handed: HandedCurves, ledger: Ledger, outside: float) -> None:
        """Keep what was declared, whatever is set later, and what curves are given back as; warn of values outside."""
        self.ledger_, self.privacy_ = ledger, replace(handed.declared.privacy)
        self._fitted_with = {"privacy": self.privacy_, "bounds": handed.declared.bounds}
        self._kind, self._columns = handed.form.kind, handed.form.columns
        warn_of_clipping(outside, "the values of the curves", released_summary.WIDEN, limit=released_summary.OUTSIDE)

    @abstractmethod
    def _release(self: Self, handed: HandedCurves) -> Self:
        """Release what is wanted of curves, and keep it."""

    @abstractmethod
    def _facts(self) -> tuple[str, list[Facts]]:
        """Title and facts of the summary table."""

    @abstractmethod
    def _stored(self) -> tuple[dict[str, Any], dict[str, FloatArray], str]:
        """Content and arrays of a file, beside what all summaries have, and a note on how accurate the summary is."""

    @abstractmethod
    def _restore(self, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        """Take over what :meth:`_stored` gave."""

    def summary(self) -> PrintedSummary:
        """Table of the fit."""
        check_is_fitted(self, "ledger_")
        title, facts = self._facts()
        notes = [self.ledger_.headline, f"adjacency {self.privacy_.stated_adjacency}; details: ledger_"]
        return PrintedSummary([PrintedTable(facts, title=title)], notes)

    def _check_saveable(self, columns: pd.Index[Any] | None) -> None:
        """Refuse before a fit what a file of it could not hold: settings and labels of columns; raises InputError."""
        params_to_json(self)
        labels_to_json(columns, "Y")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file, without budget and prior; return its path."""
        check_is_fitted(self, "ledger_")
        own, arrays, note = self._stored()
        content = {
            "params": params_to_json(self, self._fitted_with),
            "kind": self._kind,
            "columns": labels_to_json(self._columns, "Y"),
            "ledger": self.ledger_.to_json(),
            "notes": [note],
            "own": own,
        }
        released = self.ledger_.for_release
        written = self._layout.write(path, content, {**arrays, "grid": self.grid_}, released=released)
        record_model(written, self.ledger_, self.privacy_)
        return written

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        content, arrays = cls._layout.read(path)
        model = cls()
        with complete(path, cls._layout.kind):
            model.set_params(**params_from_json(content["params"]))
            assert model.privacy is not None
            model.privacy_, model.ledger_ = replace(model.privacy), Ledger.from_json(content["ledger"])
            model._fitted_with = {"privacy": model.privacy_, "bounds": model.bounds}
            model._kind, model.grid_ = content["kind"], arrays["grid"]
            model._columns = labels_from_json(content["columns"])
            model._restore(content["own"], arrays)
        return model


def said_of_grid(grid: Any, labels: Any) -> str:
    """A grid, in the unit that column labels of dates or times give, or that columns are only numbered."""
    known = isinstance(labels, pd.Index) and len(labels) == grid.size
    if known and is_only_numbered(labels) and np.array_equal(grid, as_grid(None, grid.size)):
        return text_of_grid(grid, ONLY_NUMBERED, "t")
    axis = axis_of(labels, "Y") if known else None
    if axis is None or not np.array_equal(axis.points, grid):
        return text_of_grid(grid)
    return text_of_grid(grid, axis.unit)


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

    _layout: ClassVar[Layout] = Layout(
        "private-mean", {"grid": "T", "mean": "T", "noise": "T m", "sampling": "T m", "clipping": "T m"}
    )

    def _release(self, handed: HandedCurves) -> PrivateMean:
        found = released_summary.summarise(handed, MEAN)
        functions, covariance = found.curves.functions, found.covariance.matrix
        self.grid_, self.n_ = handed.form.grid, found.curves.n
        self.mean_ = sum(handed.declared.bounds) / 2 + functions @ found.mean
        # Factors R with R R' = covariance of the mean: noise, sampling of n curves, and clipping, whose bias is taken
        # for a random curve of that size and shaped as curves are.
        root = functions @ root_of(covariance)
        self._noise_factor = functions * np.sqrt(found.mean_variance)
        self._sampling_factor = root / np.sqrt(found.observed)
        self._clipping_factor = root * (found.mean_bias / np.sqrt(max(float(np.trace(covariance)), 1e-300)))
        self._remember(handed, found.curves.cohort.ledger, found.outside)
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
            Whether the whole curve lies within the band at once with this probability. Else each point does.

        Returns
        -------
        lower, upper : FDataGrid, DataFrame or ndarray of shape (1, T)

        Notes
        -----
        Gaussian. The simultaneous quantile is that of ``max_t |G(t)| / sd G(t)`` over 20,000 draws (fixed seed) of the
        Gaussian process G with the covariance of the estimate.
        """
        check_is_fitted(self, "mean_")
        level = fraction(level, "level")
        factor = np.hstack((self._noise_factor, self._sampling_factor, self._clipping_factor))
        sd = np.sqrt((factor**2).sum(axis=1))
        quantile = float(ndtri((1 + level) / 2))
        if simultaneous:
            draws = np.random.default_rng(0).normal(size=(20_000, factor.shape[1])) @ factor.T
            quantile = float(np.quantile(np.abs(draws / np.maximum(sd, 1e-300)).max(axis=1), level))
        return self._wrap(self.mean_ - quantile * sd), self._wrap(self.mean_ + quantile * sd)

    def _wrap(self, values: FloatArray) -> Any:
        return wrap(values[None], self.grid_, kind=self._kind, columns=self._columns, own_grid=self.grid_)

    def _facts(self) -> tuple[str, list[Facts]]:
        return "Private mean", [
            ("Persons", f"{self.n_:.0f}", "Grid", said_of_grid(self.grid_, self._columns)),
            ("Noise sd", f"{self.noise_sd_.mean():.4g}", "Sampling sd", f"{self.sampling_sd_.mean():.4g}"),
            ("Clipping", f"{self.clipping_sd_.mean():.4g}", "", ""),
        ]

    def plot(self, **kwargs: Any) -> Any:
        """Picture of the mean with its band, see :func:`fdadp.plot.mean`."""
        from fdadp.plot import mean

        return mean(self, **kwargs)

    def _stored(self) -> tuple[dict[str, Any], dict[str, FloatArray], str]:
        arrays = {"mean": self.mean_, "noise": self._noise_factor, "sampling": self._sampling_factor}
        arrays["clipping"] = self._clipping_factor
        parts = {"noise": self.noise_sd_, "sampling": self.sampling_sd_, "clipping": self.clipping_sd_}
        note = ", ".join(f"{sd.mean():.3g} by {name}" for name, sd in parts.items())
        return {"n": self.n_}, arrays, f"standard errors of the mean, averaged along the curve: {note}"

    def _restore(self, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        self.n_, self.mean_ = float(content["n"]), arrays["mean"]
        self._noise_factor, self._sampling_factor = arrays["noise"], arrays["sampling"]
        self._clipping_factor = arrays["clipping"]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateFPCA(PrivateSummary, Components):
    """Functional principal components, private end to end.

    Mean and covariance are released on functions of the public prior. The covariance is shrunk entry by entry by the
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
        is in the eigenvalues, in proportion; a :class:`~fdadp.errors.ClippingWarning` says where it is surely above a
        tenth, or expected to be above a half.
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

    _layout: ClassVar[Layout] = Layout(
        "private-fpca",
        {"grid": "T", "weights": "T", "mean": "T", "functions": "K T", "values": "K", "explained_ratio": "K"},
    )
    n_components: float = 0.95

    def _release(self, handed: HandedCurves) -> PrivateFPCA:
        if self.n_components is None:
            raise InputError("n_components must be a number, got None")
        declared, grid = handed.declared, handed.form.grid
        count_components(np.ones(min(declared.prior.n_response, grid.size)), self.n_components)
        found = released_summary.summarise(handed, COVARIANCE)
        self._set(self._basis(found, grid, sum(declared.bounds) / 2))
        self.n_, covariance = found.curves.n, found.covariance
        self.covariance_noise_sd_ = covariance.sd * float(self.weights_.sum())
        self.variance_beyond_clip_ = covariance.beyond
        self._remember(handed, found.curves.cohort.ledger, found.outside)
        warn_of_tail(covariance.beyond, covariance.surely_beyond)
        return self

    def _basis(self, found: Summary, grid: Any, middle: float) -> Eigenbasis:
        values, axes = np.linalg.eigh(found.covariance.matrix)
        values, axes = values[::-1], axes[:, ::-1]
        kept = max(significant(values), 1)
        values, axes = np.maximum(values[:kept], 1e-300), axes[:, :kept]
        wanted = self.n_components
        assert wanted is not None
        k = min(wanted, kept) if isinstance(wanted, (int, np.integer)) else count_components(values, wanted)
        length = float(grid[-1] - grid[0])
        return Eigenbasis(
            grid=grid,
            weights=found.curves.weights * length,
            mean=middle + found.curves.functions @ found.mean,
            functions=oriented((found.curves.functions @ axes[:, :k]).T) / np.sqrt(length),
            values=values[:k] * length,
            noise_variance=found.rest,
            explained_ratio=values[:k] / (values.sum() + found.rest),
        )

    def _facts(self) -> tuple[str, list[Facts]]:
        shares = ", ".join(f"{100 * share:.1f} %" for share in self.explained_variance_ratio_)
        return "Private functional principal components", [
            ("Persons", f"{self.n_:.0f}", "Grid", said_of_grid(self.grid_, self._columns)),
            ("Components", f"{self.n_components_}", "Share of variance", shares),
            ("First eigenvalue", f"{self.eigenvalues_[0]:.4g}", "Noise sd", f"{self.covariance_noise_sd_:.4g}"),
            ("Beyond the clip", f"{100 * self.variance_beyond_clip_:.1f} % of variance", "", ""),
        ]

    def plot(self, **kwargs: Any) -> Any:
        """Picture of the components, see :func:`fdadp.plot.eigenfunctions`."""
        from fdadp.plot import eigenfunctions

        return eigenfunctions(self, **kwargs)

    def _stored(self) -> tuple[dict[str, Any], dict[str, FloatArray], str]:
        content = {"n": self.n_, "noise": self.basis_.noise_variance, "sd": self.covariance_noise_sd_}
        content["beyond"] = self.variance_beyond_clip_
        shares = ", ".join(f"{share:.1%}" for share in self.explained_variance_ratio_)
        arrays = {name: getattr(self.basis_, name) for name in self._layout.members}
        return content, arrays, f"components explain {shares} of the variance, as released"

    def _restore(self, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> None:
        self._set(Eigenbasis(noise_variance=content["noise"], **arrays))
        self.n_, self.covariance_noise_sd_ = content["n"], content["sd"]
        self.variance_beyond_clip_ = content["beyond"]
