"""Private fits of models of many terms: their plan, the fit, and what it becomes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp.errors import PublicInputWarning
from fdadp.functional.containers.open import opened_table
from fdadp.functional.containers.opened import OpenedTable
from fdadp.functional.curves import Curves
from fdadp.privacy import Privacy
from fdadp.privacy._seen import Kin
from fdadp.regression.from_releases import FromReleases
from fdadp.regression.person_rows import warn_of_rows
from fdadp.regression.private_columns import PrivateColumns
from fdadp.regression.private_prepared import PreparesPrivateFits
from fdadp.regression.private_response import PublicResponse
from fdadp.regression.private_table import PrivateTable

if TYPE_CHECKING:
    from fdadp._common.typing import ArrayLike
    from fdadp.privacy.noise import Noise
    from fdadp.private.plan import Plan
    from fdadp.regression.table import Grids

__all__ = ["PrivateTerms", "say_of_public_inputs"]


class PrivateTerms(Kin, PreparesPrivateFits, FromReleases):
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

    plan_: Plan | None = None
    privacy_: Privacy | None = None
    notes_: tuple[str, ...] = ()
    importances_: Mapping[str, float] | None = None

    def plan(
        self: Any,
        grids: Mapping[str, ArrayLike | int] | None = None,
        *,
        groups: str | bool | None = None,
        offset: str | None = None,
        n: float | None = None,
    ) -> Plan:
        """Plan a private fit from public values alone: which releases, with which shares, features and rounds.

        Nothing is read and nothing spent. ``print`` shows it; :func:`fdadp.plan` says what the fit may be worth.

        Parameters
        ----------
        grids : mapping of str to (array_like or int)
            Points of all columns of curves, or how many there are.
        groups : str or True, optional
            That rows belong to persons, where ``Privacy(unit="person")`` wants it said.
        offset : str, optional
            As of :meth:`fit`.
        n : float, optional
            Number of persons to plan for, where ``privacy`` does not declare one.

        Raises
        ------
        PrivacyError, InputError
            As :meth:`fit` would before it reads the data.
        """
        from fdadp.private.fit import refuse_unaffordable
        from fdadp.private.preview import planned
        from fdadp.regression.private_chunks import DeclaredTable

        own = copy(self)  # what is read of the model is not kept
        bounds = self._public_bounds()
        if isinstance(self.privacy, Privacy):
            self.privacy.check_unit(groups)
        points = {name: np.linspace(0, 1, g) if isinstance(g, int) else g for name, g in (grids or {}).items()}
        found = own._prepared(DeclaredTable([], points, bounds), groups, curves=self._of_curves, offset=offset)
        with one_blas_thread():
            design = found.design()
        plan, _ = planned(self.privacy, found.asked.spending(found.mechanism), lambda: design, n, found.law)
        if self.privacy.n is not None and found.law.name == "mean" and not found.mechanism.allow_useless:
            refuse_unaffordable(design, plan)
        return plan

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
        by: str | None = None,
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
        by : {"label", "position"}, optional
            How rows of several tables belong together.
        noise : Noise, optional
            For audits.

        Returns
        -------
        tuple of str
            What users must be warned of, once the fit is kept.
        """
        from fdadp.private.as_terms import as_terms, importances
        from fdadp.private.fit import spend
        from fdadp.regression.private_chunks import DeclaredTable

        bounds = self._public_bounds()
        data = opened_table(data)
        if isinstance(data, OpenedTable) and y is None:
            data = DeclaredTable(data, grids, bounds)
        table = data if isinstance(data, PrivateTable) else PrivateTable(data, grids, bounds, y)
        found = self._prepared(table, groups, given=y, curves=curves, offset=offset, **not_yet)
        if groups is not None:
            warn_of_rows(self.person_rows, self._family.name)
        asked, reading, response, offset = found.asked, found.reading, found.response, found.offset
        values, groups = table.handed(
            tuple(reading.given.values()), groups, self.response_name_, privacy=self.privacy, by=by
        )
        prior = found.mechanism.public_prior
        spent = spend(
            self,
            values,
            groups,
            found.design,
            found.y_bounds,
            self.privacy,
            asked.spending(found.mechanism),
            found.public,
            noise=noise,
            prepare=reading.prepared(found.less),
            law=found.law,
        )
        with one_blas_thread():
            fit = as_terms(spent.fit, spent.design, spent.plan)
        self._adopt_private(fit, response, PrivateColumns(reading.axes, reading.made, reading.numbers, reading.units))
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

    def _say_of(self: Any, spent: Any, asked: PublicResponse) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What releases say of the response and of the public inputs: warnings, and notes."""
        from fdadp.private.advice import advise, beyond_scale, describe_ranges
        from fdadp.private.as_terms import released_variance, unexplained_variance

        vars(self)["_classes"] = None if asked.classes is None else list(asked.classes)
        if asked.bounded is not None:  # what such responses vary about their means follows from the means
            vars(self)["_shares"] = (np.nan, np.nan)
            return beyond_scale(spent.fit.columns, pure=spent.plan.pure), describe_ranges(spent.fit.columns)
        spread = released_variance(spent.fit, spent.design)
        explained = 1 - unexplained_variance(spent.fit) / max(spread.total, 1e-300)
        vars(self)["_shares"] = (explained, explained)
        self._spread = {"released": spread}
        name = self.response_name_
        rest = (name,) if self._offset is None else (f"{name} - offset", "its offset and a mean curve")
        said: tuple[tuple[str, ...], tuple[str, ...]] = advise(spent.fit, spent.plan, spent.rows, explained, *rest)
        return said

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
