"""What a private fit of many terms is before its first read: settings, terms and columns, by public things only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fdadp._common.checks import one_of
from fdadp.errors import InputError
from fdadp.functional.gaps import GAPS
from fdadp.functional.tables.sample import Curves
from fdadp.privacy import Privacy
from fdadp.privacy.rows._laws import Law
from fdadp.private.public.columns import CurvesColumn, LabelColumn, NumberColumn
from fdadp.private.release.mechanisms import EndToEnd, Mechanism, mechanism_of
from fdadp.regression.private.read import (
    OF_ANCHOR,
    ColumnReader,
    PublicColumns,
    PublicResponse,
    about,
    check_family,
    persistence,
    public_response,
)
from fdadp.regression.private.table import PrivateTable
from fdadp.regression.reading.training import private_law
from fdadp.regression.settings import ModelSettings
from fdadp.regression.spec import read_terms

if TYPE_CHECKING:
    from fdadp._common.typing import FloatArray
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.private.public.columns import Column, Range
    from fdadp.regression.private.read import Made


class Prepared(NamedTuple):
    """What is public of a private fit, before the first read.

    Attributes
    ----------
    mechanism : EndToEnd
    name : str
        Of the response.
    reading : PublicColumns
    asked : PublicResponse
    response : Curves or None
        Where it is a curve: its grid and kind, without its rows.
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

    mechanism: EndToEnd[Any]
    name: str
    reading: PublicColumns
    asked: PublicResponse
    response: Curves | None
    y_bounds: Range
    offset: str | None
    less: str | Made | None
    law: Law
    public: dict[str, Any]
    design: Callable[[], PrivateDesign]


@dataclass(frozen=True, kw_only=True)
class PrivateSettings:
    """Settings of a private fit: those of the model, the guarantee, and what is public.

    Attributes
    ----------
    model : ModelSettings
    privacy : Privacy
    bounds : mapping or None
        As the user gave it.
    mechanism : str or Mechanism
    """

    model: ModelSettings
    privacy: Privacy
    bounds: Any
    mechanism: str | Mechanism

    @classmethod
    def of(cls, model: Any) -> PrivateSettings:
        """Read the settings of an estimator."""
        settings = ModelSettings.of(model)
        return cls(model=settings, privacy=model.privacy, bounds=model.bounds, mechanism=model.mechanism)

    def public_bounds(self) -> Mapping[str, Any]:
        """What is public of columns: what was given, and what a study has fixed; wrong kinds are refused elsewhere."""
        given = self.bounds if isinstance(self.bounds, Mapping) else {}
        return self.privacy.bounds_with(given) if isinstance(self.privacy, Privacy) else given

    def check(self, **not_yet: Any) -> EndToEnd[Any]:
        """Public validation of settings, before any column is looked at; returns the mechanism."""
        if not isinstance(self.privacy, Privacy):
            raise InputError(f"privacy must be a Privacy or None, got {type(self.privacy).__name__}")
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InputError(f"bounds must be a mapping of columns to ranges or levels, got {self.bounds!r}")
        self.privacy.check()
        mechanism = mechanism_of(self.mechanism)
        if not isinstance(mechanism, EndToEnd) or mechanism.name != "dp-aff":
            raise InputError(f"mechanism must be 'dp-aff' or a DPAFF, got {self.mechanism!r}")
        if self.privacy.n is not None:
            mechanism.check_n(self.privacy, self.privacy.n)
        given = [name for name, value in not_yet.items() if value is not None]
        if given:
            raise InputError(f"{given[0]} must be None in a private fit, got {type(not_yet[given[0]]).__name__}")
        check_family(self.model.family, curves=self.model.of_curves)
        return mechanism

    def gaps_of(self, name: str) -> str:
        """How gaps of a column of curves are filled, each within its row."""
        missing = self.model.missing
        how = missing if isinstance(missing, str) else missing.get(name, "auto")
        how = "linear" if how == "auto" or (how == "indicator" and missing == how) else how
        one_of(how, f"missing in a private fit ({name}; 'auto' is 'linear')", tuple(GAPS))
        return how


def prepared(
    private: PrivateSettings, table: PrivateTable, *, given: Any = None, offset: Any = None, **not_yet: Any
) -> Prepared:
    """All that is public of a fit, checked; nothing is read.

    Parameters
    ----------
    private : PrivateSettings
    table : PrivateTable
    given : object, optional
        The response, where it is no column of the table.
    offset : str, optional
        A column, or an expression of columns, that the response is less of.
    **not_yet
        Arguments that a private fit does not take.

    Raises
    ------
    PrivacyError, InputError
        Settings, terms or columns that a private fit cannot have.
    """
    from fdadp.private.plan.design import PrivateDesign
    from fdadp.private.whitened.registry import white_term

    settings = private.model
    law = private_law(settings.person_rows, settings.max_rows)
    mechanism = private.check(**not_yet)
    prior = mechanism.public_prior
    parsed = read_terms(settings, lambda: table.kinds)
    if not parsed.intercept or (settings.of_curves and not parsed.mean_curve):
        raise InputError("formula must have an intercept (and a mean curve) in a private fit: the mean is released")
    offset = parsed.one_offset(offset)
    name = parsed.response or settings.response or settings.default_response
    if not parsed.terms:
        raise InputError("formula must have at least one term in a private fit, got none")
    reading = ColumnReader(table, prior, private.gaps_of)
    terms = reading.terms(parsed.terms, settings.missing)
    found = reading.public
    columns = found.columns
    asked = public_response(table.bounds, name, settings.family, curves=settings.of_curves)
    response = reading.response(name, given, curves=settings.of_curves, classes=asked.classes)
    if response is not None:
        response = replace(response, values=np.empty((0, response.grid.size)), index=None)
    t = None if response is None else response.grid
    y_bounds = asked.bounds
    asked.check_offset(mechanism.anchor if offset is None else offset)
    if mechanism.anchor is not None:
        offset = _anchor(columns, found.made, offset, name, y_bounds)
    less = None
    of_offset: dict[str, Any] = {}
    if offset is not None:
        less, bounds = reading.offset(offset, name, t)
        y_bounds = about(y_bounds, bounds, 1.0 if mechanism.anchor is None else OF_ANCHOR)
        of_offset = {"offset": f"{offset}, bounds {bounds}", "bounds of the response less it": y_bounds}
    by_name = {column.name: column for column in columns}
    names = [term.name for term in terms]
    of_curves = settings.of_curves
    whitened = [white_term(term, by_name, prior, curves=of_curves, t=t, beside=names) for term in terms]

    def design() -> PrivateDesign:
        return PrivateDesign.of(prior, columns, whitened, t)

    public = {"model": " + ".join(names)} | _public(columns, found.made, asked, name, t, prior.describe()) | of_offset
    return Prepared(mechanism, name, found, asked, response, y_bounds, offset, less, law, public, design)


def _anchor(columns: Sequence[Column], made: Mapping[str, Made], offset: Any, response: str, y_bounds: Any) -> str:
    """The offset that stands for ``prior="persistence"``."""
    if offset is not None:
        raise InputError(f"offset must be None with prior='persistence', which is one, got {offset!r}")
    curves = [column for column in columns if isinstance(column, CurvesColumn)]
    if len(curves) != 1 or curves[0].name in made:
        raise InputError(
            "prior='persistence' needs one column of curves among the terms, of the quantity that is forecast, got "
            f"{', '.join(column.name for column in curves) or 'none'}; say which by offset="
        )
    low, high = curves[0].bounds
    if low >= y_bounds[1] or high <= y_bounds[0]:
        raise InputError(
            f"bounds of {curves[0].name} and {response} must overlap with prior='persistence', as they are of one "
            f"quantity, got {curves[0].bounds} and {y_bounds}"
        )
    return persistence(curves[0].name)


def _public(
    columns: Sequence[Column],
    made: Mapping[str, Made],
    asked: PublicResponse,
    response: str,
    t: FloatArray | None,
    prior: str,
) -> dict[str, Any]:
    """Public inputs, for the ledger."""
    from fdadp.private.release.fit import describe_grid

    public: dict[str, Any] = {}
    for column in columns:
        if column.name in made:
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
        public[f"grid of {response}"] = describe_grid(t)
        public[f"gaps of {response}"] = "a row counts where it was observed"
    return public | {"prior": prior}
