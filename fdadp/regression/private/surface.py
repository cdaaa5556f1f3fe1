"""Private fits of one surface: what is public of them, the release, the plan."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, CurveData, FloatArray
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.gaps import GAPS
from fdadp.functional.tables.kinds import Kind, names_of
from fdadp.functional.tables.sample import Curves, as_grid
from fdadp.privacy import Privacy
from fdadp.privacy._seen import Kin
from fdadp.privacy.boundary import table
from fdadp.private.public.columns import Range, public_ranges
from fdadp.private.release.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.regression.reading.completion import MissingValues
from fdadp.regression.reading.joined import joined_labels, opened_columns, private_rows
from fdadp.regression.reading.joined_chunks import JoinedTables
from fdadp.regression.reading.person_rows import private_law

if TYPE_CHECKING:
    from fdadp.privacy.noise.sources import Noise
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.private.plan.plan import Plan
    from fdadp.private.release.moments import NoisyMoments
    from fdadp.solve.eigen.surface_fit import SurfaceFit

NAMES = ("X", "Y")
"""Of the covariate and the response."""

Model = TypeVar("Model", bound="PrivateSurface")


class PrivateSurface(Kin):
    """Part of the additive model: fits with a privacy guarantee."""

    privacy: Privacy | None
    bounds: Mapping[str, tuple[float, float]] | None
    mechanism: str | Mechanism
    person_rows: str | None
    max_rows: int | None
    privacy_: Privacy | None
    _fitted_with: dict[str, Any]
    """Parameters that the fit was made with, whatever is set afterwards."""
    _missing: MissingValues
    joined_: str | None = None
    """How many rows were joined, and by what; None where rows belong together by position, and in private fits."""

    def _check_settings(self) -> None:
        raise NotImplementedError

    def _adopt(self, found: SurfaceFit) -> None:
        raise NotImplementedError

    def _remember(self, x: Curves, y: Curves) -> None:
        raise NotImplementedError

    @property
    def _gaps(self) -> str:
        """What is done with gaps."""
        return "linear" if self._is_private else "raise"

    def _public_ranges(self) -> dict[str, Range]:
        """Ranges of X and Y: given, or those of the study."""
        assert self.privacy is not None
        known = self.privacy.bounds_with(self.bounds)
        return public_ranges({name: known[name] for name in NAMES if name in known}, NAMES)

    @property
    def _is_private(self) -> bool:
        """Whether the fit is to be private end to end."""
        return self.privacy is not None and isinstance(mechanism_of(self.mechanism), EndToEnd)

    def _fit_private(
        self: Model,
        X: CurveData,
        Y: CurveData,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        by: str | None = None,
        noise: Noise | None = None,
    ) -> Model:
        """Fit from noisy releases; only shapes and grids of the curves are looked at here. `noise` is for audits."""
        from fdadp.private.public.chunks import PrivateChunks
        from fdadp.private.public.inputs import check_groups, chunks_of, private_curves

        assert self.privacy is not None
        X, Y = opened_columns({"X": X, "Y": Y}).values()
        inputs = {"X": X, "Y": Y} | ({} if groups is None or isinstance(groups, str) else {"groups": groups})
        labels = joined_labels(by, inputs)
        empty = labels is not None  # then the number of rows is nobody's business
        x, y = (
            private_curves(curves, grid, name, empty=empty, streamed=True)
            for curves, grid, name in ((X, s, "X"), (Y, t, "Y"))
        )
        chunks = None if labels is not None else chunks_of({"X": X, "Y": Y}, groups)
        data: Any
        if chunks is not None:
            data = PrivateChunks(chunks[0], {"X": x.grid, "Y": y.grid}, groups=chunks[1])
            groups = data.groups
        else:
            if labels is None and len(x) != len(y):
                raise InputError("X and Y must hold the same number of curves")
            if labels is None and groups is not None:
                check_groups(groups, len(x))
            tables = [(name, table(own.values)) for name, own in (("X", x), ("Y", y))]
            data, groups = private_rows(labels, tables, groups, self.privacy, inputs)
        self._check_saveable(y.columns)
        ranges = self._public_ranges()
        self.privacy.hold((name, ranges[of]) for of, data in (("X", X), ("Y", Y)) for name in names_of(data, of))
        self._missing = MissingValues(self._gaps, within_rows=True)  # of new curves, as of the training curves
        self._spend(data, groups, x.grid, y.grid, noise=noise)
        self._remember(x, y)
        return self

    def _fit_private_chunks(
        self: Model,
        chunks: Any,
        s: ArrayLike | None,
        t: ArrayLike | None,
        groups: ArrayLike | bool | None,
        kind: Kind | None,
    ) -> Model:
        """Fit from noisy releases about chunks, which nothing but the kernel reads."""
        from fdadp.private.public.chunks import PrivateChunks

        assert self.privacy is not None
        if s is None or t is None:
            raise InputError(
                "s and t must be the grids of X and Y when fitting privately from chunks, "
                f"got {'s' if s is None else 't'}=None: chunks are not looked at to find them"
            )
        x_grid, y_grid = as_grid(s, np.size(s), "s"), as_grid(t, np.size(t), "t")
        labels: Any = t if hasattr(t, "to_numpy") else None
        grids, columns = {"X": x_grid, "Y": y_grid}, None
        data: Any
        if isinstance(chunks, JoinedTables):
            data, groups, kind = chunks.curves(grids), None, "array"
        else:
            data = PrivateChunks(chunks, grids, groups=groups, kind=kind or "array", columns=labels)
            groups, kind, columns = data.groups, data.kind, data.columns
        self._check_saveable(columns)
        self._missing = MissingValues(self._gaps, within_rows=True)
        self._spend(data, groups, x_grid, y_grid)
        x, y = (Curves(np.empty((0, grid.size)), grid) for grid in (x_grid, y_grid))
        self._remember(x, replace(y, kind=kind, columns=columns))
        return self

    def _spend(self, data: Any, groups: Any, s: FloatArray, t: FloatArray, *, noise: Noise | None = None) -> None:
        """Release the model of curves, of which only what is public was checked."""
        from fdadp.private.advice import advise
        from fdadp.private.private_fitted import as_surface
        from fdadp.private.release.fit import describe_grid, spend

        mechanism, bounds = mechanism_of(self.mechanism), self._public_ranges()
        assert self.privacy is not None and isinstance(mechanism, EndToEnd)
        law = private_law(self.person_rows, self.max_rows)
        for name in ("anchor", "errors_by_record"):
            if getattr(mechanism, name, None):
                what = "prior='persistence'" if name == "anchor" else name
                raise InputError(f"{what} is there for FunctionalRegression and ScalarRegression")
        prior = mechanism.public_prior
        public = {
            "bounds of X": bounds["X"],
            "bounds of Y": bounds["Y"],
            "grid of X": describe_grid(s),
            "grid of Y": describe_grid(t),
            "prior": prior.describe(),
            "gaps of X": GAPS[self._gaps] + ", within each row",
            "gaps of Y": "a row counts where it was observed",
        }

        def design() -> PrivateDesign:
            return prior.design(s, t, bounds=bounds["X"], missing=self._gaps)

        spent = spend(self, data, groups, design, bounds["Y"], self.privacy, mechanism, public, noise=noise, law=law)
        with one_blas_thread():
            found = as_surface(spent.fit, spent.design, spent.plan)
        warned, notes = advise(spent.fit, spent.plan, spent.rows, found.r2)
        ledger = spent.cohort.ledger
        guarantee = replace(self.privacy) if ledger.private else None
        self._adopt(replace(found, notes=warned + notes, ledger=ledger, privacy=guarantee))
        self.moments_: NoisyMoments | None = spent.statistic
        self._fitted_with = {"privacy": guarantee, "bounds": bounds, "mechanism": self.mechanism}
        for text in warned:  # at the end: where warnings are errors the ledger is there
            warnings.warn(text, PublicInputWarning, stacklevel=4)

    def _check_saveable(self, columns: Any) -> None:
        """Refuse before a private fit what a file of it could not hold."""

    def plan(self, *, s: ArrayLike | int = 51, t: ArrayLike | int = 51, n: float | None = None) -> Plan:
        """Plan a private fit from public values alone: which releases, with which shares, features and rounds.

        Nothing is read and nothing spent. ``print`` shows it; :func:`fdadp.plan` says what the fit may be worth.

        Parameters
        ----------
        s, t : array_like or int
            Grids of X and Y, or their numbers of points.
        n : float, optional
            Number of persons to plan for, where ``privacy`` does not declare one.

        Raises
        ------
        PrivacyError, InputError
            As :meth:`fit` would before it reads the data; or the model has no end-to-end privacy.
        """
        from fdadp.private.preview import preview

        self._check_settings()
        if self.privacy is None or not self._is_private:
            raise InputError(
                "privacy and mechanism must be private end to end to have a plan, as Privacy(epsilon=, delta=)"
            )
        mechanism = mechanism_of(self.mechanism)
        assert isinstance(mechanism, EndToEnd)
        return preview(self.privacy, mechanism, s, t, n=n, law=private_law(self.person_rows, self.max_rows))[0]
