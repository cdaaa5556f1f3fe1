"""Private fits of models of many terms: what is checked before the first read, and what the fit becomes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import one_of
from fdadp._common.threads import one_blas_thread
from fdadp.errors import InputError, PublicInputWarning
from fdadp.functional.curves import Curves
from fdadp.functional.gaps import GAPS
from fdadp.privacy import Privacy
from fdadp.private.columns import CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.regression.formula import parse
from fdadp.regression.from_releases import FromReleases
from fdadp.regression.private_read import OF_ANCHOR, Reading, about, persistence
from fdadp.regression.private_response import PublicResponse, check_family, public_response
from fdadp.regression.private_table import PrivateColumns, PrivateTable
from fdadp.terms.scalar_factor import Factor
from fdadp.terms.scalar_linear import Linear
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By

if TYPE_CHECKING:
    from fdadp._common.typing import FloatArray
    from fdadp.privacy.noise import Noise
    from fdadp.private.plan import Plan
    from fdadp.regression.table import Grids

__all__ = ["PrivateTerms", "factor_columns", "say_of_public_inputs"]


class PrivateTerms(FromReleases):
    """Part of every model of many terms: fits with a privacy guarantee.

    Attributes
    ----------
    ledger_ : Ledger or None
        What was released, under which assumptions; None without privacy.
    plan_ : Plan or None
        How a private fit shared out its budget.
    privacy_ : Privacy or None
        The guarantee of the fit, whatever was set since.
    notes_ : tuple of str
        What the releases of a private fit say of its bounds, of n and of what it explains.
    importances_ : dict of str to float, or None
        Of a private fit, the share of the explained variance that each term has by itself, from released values.
    """

    privacy: Privacy | None
    bounds: Mapping[str, Any] | None
    mechanism: str | Mechanism
    missing: str | Mapping[str, str]

    plan_: Plan | None = None
    privacy_: Privacy | None = None
    notes_: tuple[str, ...] = ()
    importances_: Mapping[str, float] | None = None

    # --- settings ---

    def _private_mechanism(self) -> EndToEnd:
        mechanism = mechanism_of(self.mechanism)
        if not isinstance(mechanism, EndToEnd) or mechanism.name != "dp-aff":
            raise InputError(f"mechanism must be 'dp-aff' or a DPAFF, got {self.mechanism!r}")
        return mechanism

    def _check_private(self: Any, groups: Any, *, curves: bool, **not_yet: Any) -> EndToEnd:
        """Public validation of settings, before any column is looked at."""
        if not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InputError(f"bounds must be a mapping of columns to ranges or levels, got {self.bounds!r}")
        self.privacy.check_unit(groups)
        self.privacy.check()
        mechanism: EndToEnd = self._private_mechanism()
        if self.privacy.n is not None:
            mechanism.check_n(self.privacy, self.privacy.n)
        given = [name for name, value in not_yet.items() if value is not None]
        if given:
            raise InputError(f"{given[0]} must be None in a private fit, got {type(not_yet[given[0]]).__name__}")
        check_family(self._family, curves=curves)
        return mechanism

    def _gaps_of(self, name: str) -> str:
        """How gaps of a column of curves are filled, each within its row."""
        how = self.missing if isinstance(self.missing, str) else self.missing.get(name, "auto")
        how = "linear" if how == "auto" or (how == "indicator" and self.missing == how) else how
        one_of(how, f"missing in a private fit ({name}; 'auto' is 'linear')", tuple(GAPS))
        return how

    # --- the fit ---

    def _fit_private(
        self: Any,
        data: Any,
        y: Any,
        grids: Grids | None,
        groups: Any,
        *,
        curves: bool,
        offset: Any = None,
        noise: Noise | None = None,
        **not_yet: Any,
    ) -> tuple[str, ...]:
        """Fit from noisy releases; only names, shapes and grids of the columns are looked at here.

        Parameters
        ----------
        curves : bool
            Whether the response is a curve, or else a number.
        offset : str, optional
            A column, or an expression of columns, that the response is less of.
        noise : Noise, optional
            For audits.

        Returns
        -------
        tuple of str
            What users must be warned of, once the fit is kept.
        """
        from fdadp.private.as_terms import as_terms, importances
        from fdadp.private.design import PrivateDesign
        from fdadp.private.fit import spend
        from fdadp.private.white.made import white_term

        self._check_settings()
        mechanism = self._check_private(groups, curves=curves, **not_yet)
        prior = mechanism.public_prior
        table = data if isinstance(data, PrivateTable) else PrivateTable(data, grids, self.bounds or {}, y)
        self._parsed = self._read_terms(table)
        if not self._parsed.intercept or (curves and not self._parsed.mean_curve):
            raise InputError("model must have an intercept (and a mean curve) in a private fit: the mean is released")
        self.response_name_ = self._parsed.response or self.response or self._default_response
        if not self._parsed.terms:
            raise InputError("model must have at least one term in a private fit, got none")
        reading = self._read_columns(table, prior)
        columns = reading.columns
        asked = public_response(table, self.response_name_, self._family, curves=curves)
        response = reading.response(self.response_name_, y, curves=curves, classes=asked.classes)
        t = None if response is None else response.grid
        y_bounds = asked.bounds
        asked.check_offset(mechanism.anchor if offset is None else offset)
        if mechanism.anchor is not None:
            offset = self._anchor(reading, offset, y_bounds)
        less = None
        if offset is not None:
            less, of_offset = reading.offset(offset, self.response_name_, t)
            y_bounds = about(y_bounds, of_offset, 1.0 if mechanism.anchor is None else OF_ANCHOR)
        values, groups = table.handed(
            tuple(reading.given.values()), groups, self.response_name_, labelled=self.privacy.labels == "public"
        )
        by_name = {column.name: column for column in columns}
        names = [spec.name for spec in self._parsed.terms]
        made = [white_term(spec, by_name, prior, curves=curves, beside=names) for spec in self._parsed.terms]
        public = self._public(reading, asked, t, prior.describe())
        if less is not None:
            public |= {"offset": f"{offset}, bounds {of_offset}", "bounds of the response less it": y_bounds}
        spent = spend(
            self,
            values,
            groups,
            lambda: PrivateDesign.of(prior, columns, made, t),
            y_bounds,
            self.privacy,
            asked.spending(mechanism),
            public,
            noise=noise,
            prepare=reading.prepared(less),
        )
        with one_blas_thread():
            fit = as_terms(spent.fit, spent.design, spent.plan)
        self._adopt_private(fit, response, PrivateColumns(reading.axes, reading.made))
        self._offset = offset
        warned, notes = self._say_of(spent, asked)
        self.importances_ = importances(spent.fit, spent.design)
        left_out = [name for name in self.importances_ if name not in self.term_names_]
        self.notes_ = warned + notes + tuple(f"{name} was not afforded by the plan and left out" for name in left_out)
        if getattr(spent.fit, "dropped", False):
            self.notes_ += ("the releases let expect no gain of the fit over its anchor, which alone is left of it",)
        self._curve_prior, self._drawn = prior.x, spent.fit.columns
        self.ledger_, self.plan_ = spent.cohort.ledger, spent.plan
        self.privacy_ = replace(self.privacy) if self.ledger_.private else None
        return tuple(warned)

    def _read_terms(self: Any, table: PrivateTable) -> Any:
        """Terms of the model, by what is public of the columns."""
        if isinstance(self.model, str):
            return parse(self.model, table.kinds)
        return self._read_model(None, None)

    def _read_columns(self: Any, table: PrivateTable, prior: Any) -> Reading:
        """Covariates of all terms, each once, and indicators of missing numbers as terms of their own."""
        reading = Reading(table, prior, self._gaps_of)
        factors = {name for spec in self._parsed.terms for name in factor_columns(spec)}
        for name in dict.fromkeys(c for spec in self._parsed.terms for c in spec.columns):
            reading.column(name, factor=name in factors)
        for column in list(reading.columns):
            wanted = self.missing if isinstance(self.missing, str) else self.missing.get(column.name)
            if isinstance(column, NumberColumn) and wanted == "indicator":
                own = Linear(reading.indicator(column.name))
                self._parsed = self._parsed._replace(terms=(*self._parsed.terms, own))
        curves = [column for column in reading.columns if isinstance(column, CurvesColumn)]
        if len(curves) > 1 and prior.x_scale is not None:
            raise InputError(f"x_scale of the prior must be None with several columns of curves, got {prior.x_scale:g}")
        return reading

    def _anchor(self: Any, reading: Reading, offset: Any, y_bounds: Any) -> str:
        """The offset that stands for ``prior="persistence"``."""
        if offset is not None:
            raise InputError(f"offset must be None with prior='persistence', which is one, got {offset!r}")
        curves = [column for column in reading.columns if isinstance(column, CurvesColumn)]
        if len(curves) != 1 or curves[0].name in reading.made:
            raise InputError(
                "prior='persistence' needs one column of curves among the terms, of the quantity that is forecast, got "
                f"{', '.join(column.name for column in curves) or 'none'}; say which by offset="
            )
        low, high = curves[0].bounds
        if low >= y_bounds[1] or high <= y_bounds[0]:
            raise InputError(
                f"bounds of {curves[0].name} and {self.response_name_} must overlap with prior='persistence', as they "
                f"are of one quantity, got {curves[0].bounds} and {y_bounds}"
            )
        return persistence(curves[0].name)

    def _say_of(self: Any, spent: Any, asked: PublicResponse) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What releases say of the response and of the public inputs: warnings, and notes."""
        from fdadp.private.advice import advise, describe_ranges
        from fdadp.private.as_terms import released_variance, unexplained_variance

        vars(self)["_classes"] = None if asked.classes is None else list(asked.classes)
        if asked.bounded is not None:  # what such responses vary about their means follows from the means
            vars(self)["_shares"] = (np.nan, np.nan)
            return (), describe_ranges(spent.fit.columns)
        spread = released_variance(spent.fit, spent.design)
        explained = 1 - unexplained_variance(spent.fit) / max(spread.total, 1e-300)
        vars(self)["_shares"] = (explained, explained)
        self._spread = {"released": spread}
        name = self.response_name_
        rest = (name,) if self._offset is None else (f"{name} - offset", "its offset and a mean curve")
        said: tuple[tuple[str, ...], tuple[str, ...]] = advise(spent.fit, spent.plan, spent.rows, explained, *rest)
        return said

    def _public(self: Any, reading: Reading, asked: PublicResponse, t: FloatArray | None, prior: str) -> dict[str, Any]:
        """Public inputs, for the ledger."""
        from fdadp.private.fit import describe_grid

        public: dict[str, Any] = {"model": " + ".join(spec.name for spec in self._parsed.terms)}
        for column in reading.columns:
            if column.name in reading.made:
                public[column.name] = "computed within each row"
            if isinstance(column, LabelColumn):
                public[f"levels of {column.name}"] = ", ".join(map(str, column.levels))
            else:
                public[f"bounds of {column.name}"] = column.bounds
            if isinstance(column, CurvesColumn):
                public[f"grid of {column.name}"] = describe_grid(column.grid)
                public[f"gaps of {column.name}"] = GAPS[column.missing] + ", within each row"
            if isinstance(column, NumberColumn):
                public[f"missing {column.name}"] = "taken to be its released mean"
        public |= asked.public
        if t is not None:
            public[f"grid of {self.response_name_}"] = describe_grid(t)
            public[f"gaps of {self.response_name_}"] = "a row counts where it was observed"
        return public | {"prior": prior}

    def _adopt_private(self: Any, fit: Any, response: Curves | None, read: PrivateColumns) -> None:
        """Publish a fit as attributes; nothing of the training rows is kept."""
        self._adopt(fit, np.nan)
        none: dict[str, Any] = {
            "_prior_weights": None,
            "_residuals": None,
            "_groups": None,
            "_found": {},
            "_changes": None,
        }
        vars(self).update(none, _covariates=read, loglik_=np.nan)
        if response is not None:
            y = replace(response, values=np.zeros((0, response.grid.size)), index=None)
            vars(self).update(_y=y, t_=response.grid, observed_at_=None)


def say_of_public_inputs(warned: tuple[str, ...]) -> None:
    """Warn of what releases say of bounds and n, at the end of ``fit``: where warnings are errors the ledger is there.

    Warns
    -----
    PublicInputWarning
    """
    for text in warned:
        warnings.warn(text, PublicInputWarning, stacklevel=3)


def factor_columns(spec: TermSpec) -> tuple[str, ...]:
    """Columns that a term takes for labels."""
    if isinstance(spec, Factor):
        return spec.columns
    if isinstance(spec, By) and spec.coding in ("levels", "treatment"):
        return (spec.column,)
    return ()
