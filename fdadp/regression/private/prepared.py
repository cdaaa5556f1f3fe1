"""What a private fit of many terms is before its first read: settings, terms and columns, by public things only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fdadp._common.checks import one_of
from fdadp.errors import InputError
from fdadp.functional.gaps import GAPS
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import Privacy
from fdadp.privacy.rows._laws import Law
from fdadp.private.public.columns import CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.release.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.regression.formula.parse import parse
from fdadp.regression.private.read import OF_ANCHOR, ColumnReader, about, persistence
from fdadp.regression.private.response import PublicResponse, check_family, public_response
from fdadp.regression.private.table import PrivateTable
from fdadp.regression.reading.person_rows import private_law
from fdadp.terms.numbers.scalar_factor import Factor
from fdadp.terms.numbers.scalar_linear import Linear
from fdadp.terms.spec import TermSpec
from fdadp.terms.times_column import By

if TYPE_CHECKING:
    from fdadp._common.typing import FloatArray
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.private.public.columns import Range
    from fdadp.regression.private.rows import Made


class Prepared(NamedTuple):
    """What is public of a private fit, before the first read.

    Attributes
    ----------
    mechanism : EndToEnd
    reading : Reading
    asked : PublicResponse
    response : Curves or None
        Where it is a curve: its grid, and values that are a private table.
    y_bounds : (float, float)
        Of the response, less the offset.
    offset : str or None
    less : str, Made or None
        The same, as it is read.
    law : Law
        How the rows of a person are combined.
    public : dict
        For the ledger.
    design : callable
        Returns the public coordinates.
    """

    mechanism: EndToEnd
    reading: ColumnReader
    asked: PublicResponse
    response: Curves | None
    y_bounds: Range
    offset: str | None
    less: str | Made | None
    law: Law
    public: dict[str, Any]
    design: Callable[[], PrivateDesign]


class PreparesPrivateFits:
    """Part of every model of many terms: what is checked, and laid out, before anything is read."""

    privacy: Privacy | None
    bounds: Mapping[str, Any] | None
    mechanism: str | Mechanism
    missing: str | Mapping[str, str]

    # --- settings ---

    def _private_mechanism(self) -> EndToEnd:
        mechanism = mechanism_of(self.mechanism)
        if not isinstance(mechanism, EndToEnd) or mechanism.name != "dp-aff":
            raise InputError(f"mechanism must be 'dp-aff' or a DPAFF, got {self.mechanism!r}")
        return mechanism

    def _public_bounds(self: Any) -> Mapping[str, Any]:
        """What is public of columns: what was given, and what a study has fixed; wrong kinds are refused elsewhere."""
        given = self.bounds if isinstance(self.bounds, Mapping) else {}
        return self.privacy.bounds_with(given) if isinstance(self.privacy, Privacy) else given

    def _check_private(self: Any, groups: Any, *, curves: bool, **not_yet: Any) -> EndToEnd:
        """Public validation of settings, before any column is looked at."""
        if not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InputError(f"bounds must be a mapping of columns to ranges or levels, got {self.bounds!r}")
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

    # --- terms and columns ---

    def _prepared(
        self: Any, table: PrivateTable, groups: Any, *, given: Any = None, curves: bool, offset: Any, **not_yet: Any
    ) -> Prepared:
        """All that is public of a fit, checked; nothing is read."""
        from fdadp.private.plan.design import PrivateDesign
        from fdadp.private.whitened.registry import white_term

        self._check_settings()
        law = private_law(self.person_rows, self.max_rows)
        mechanism = self._check_private(groups, curves=curves, **not_yet)
        prior = mechanism.public_prior
        self._parsed = self._read_terms(table)
        if not self._parsed.intercept or (curves and not self._parsed.mean_curve):
            raise InputError("formula must have an intercept (and a mean curve) in a private fit: the mean is released")
        offset = self._parsed.one_offset(offset)
        self.response_name_ = self._parsed.response or self.response or self._default_response
        if not self._parsed.terms:
            raise InputError("formula must have at least one term in a private fit, got none")
        reading = self._read_columns(table, prior)
        columns = reading.columns
        asked = public_response(table, self.response_name_, self._family, curves=curves)
        response = reading.response(self.response_name_, given, curves=curves, classes=asked.classes)
        t = None if response is None else response.grid
        y_bounds = asked.bounds
        asked.check_offset(mechanism.anchor if offset is None else offset)
        if mechanism.anchor is not None:
            offset = self._anchor(reading, offset, y_bounds)
        less = None
        public: dict[str, Any] = {}
        if offset is not None:
            less, of_offset = reading.offset(offset, self.response_name_, t)
            y_bounds = about(y_bounds, of_offset, 1.0 if mechanism.anchor is None else OF_ANCHOR)
            public = {"offset": f"{offset}, bounds {of_offset}", "bounds of the response less it": y_bounds}
        by_name = {column.name: column for column in columns}
        names = [spec.name for spec in self._parsed.terms]
        made = [white_term(spec, by_name, prior, curves=curves, t=t, beside=names) for spec in self._parsed.terms]

        def design() -> PrivateDesign:
            return PrivateDesign.of(prior, columns, made, t)

        public = self._public(reading, asked, t, prior.describe()) | public
        return Prepared(mechanism, reading, asked, response, y_bounds, offset, less, law, public, design)

    def _read_terms(self: Any, table: PrivateTable) -> Any:
        """Terms of the model, by what is public of the columns."""
        if isinstance(self.formula, str):
            return parse(self.formula, table.kinds)
        return self._read_model(None, None)

    def _read_columns(self: Any, table: PrivateTable, prior: Any) -> ColumnReader:
        """Covariates of all terms, each once, and indicators of missing numbers as terms of their own."""
        reading = ColumnReader(table, prior, self._gaps_of)
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

    def _anchor(self: Any, reading: ColumnReader, offset: Any, y_bounds: Any) -> str:
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

    def _public(
        self: Any, reading: ColumnReader, asked: PublicResponse, t: FloatArray | None, prior: str
    ) -> dict[str, Any]:
        """Public inputs, for the ledger."""
        from fdadp.private.release.fit import describe_grid

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


def factor_columns(spec: TermSpec) -> tuple[str, ...]:
    """Columns that a term takes for labels."""
    if isinstance(spec, Factor):
        return spec.columns
    if isinstance(spec, By) and spec.coding in ("levels", "treatment"):
        return (spec.column,)
    return ()
