"""What follows from a private fit of many terms and costs no privacy: predictions near the mean, synthetic cohorts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import whole
from fdadp._common.promised import promised
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.functional.curves import Curves
from fdadp.functional.records import Records
from fdadp.private.columns import CurvesColumn, NumberColumn
from fdadp.regression.training import along
from fdadp.solve.fitted import FARTHEST

if TYPE_CHECKING:
    from fdadp.privacy.ledger import Ledger
    from fdadp.private.columns import Column
    from fdadp.private.prior import CurvePrior

__all__ = ["FromReleases"]


class FromReleases:
    """Part of every model of many terms: what its releases say beyond coefficients."""

    ledger_: Ledger | None = None
    _curve_prior: CurvePrior | None = None
    """Law of the shapes of curves, for :meth:`sample`."""
    _drawn: tuple[Column, ...] = ()
    """Columns with released locations and scales."""

    def _limited(self: Any, records: Records, eta: FloatArray, t: FloatArray) -> FloatArray:
        """Predictions of a private fit that are far from the mean curve, where noise is largest, kept near it.

        As :meth:`fdadp.solve.fitted.Fitted.scores`: beyond `FARTHEST` standard deviations of the response, of which an
        excess e keeps ``e³ / (e² + v)``, v the variance of the prediction. L2 norms, means over the points.
        """
        law = self._spread.get("released") if self.ledger_ is not None else None
        if law is None:
            return eta
        nobody = Records(1, {c.name: _central(c) for c in self._drawn})
        centre = self._fit.form.predictor(nobody, self._fit.coefficients, t)
        away = eta - centre
        norms, limit = np.sqrt((away**2).mean(axis=1)), FARTHEST * np.sqrt(law.total)
        far = norms > limit
        if far.any():
            se = self._of_mean(records[far], None, t)
            excess = norms[far] - limit
            away[far] *= ((limit + excess**3 / (excess**2 + (se**2).mean(axis=1))) / norms[far])[:, None]
        return np.asarray(centre + away)

    def sample(self: Any, n: int, random_state: int | None = None) -> pd.DataFrame:
        """Draw a synthetic cohort from a private fit, at no further cost of privacy.

        Parameters
        ----------
        n : int
            Number of rows.
        random_state : int, optional
            Seed; the noise of the fit was drawn before, so this is no privacy noise.

        Returns
        -------
        DataFrame of n rows
            Columns of the model and the response; curves as FDataGrid. ``attrs["synthetic"]`` says where it is from.

        Raises
        ------
        InputError
            A fit without privacy, whose rows might be told from what is drawn; a column that an offset or expression is
            of, and no term, so that nothing of it was released.

        Notes
        -----
        Columns are drawn independently of each other, curves with the shapes of the public prior: of shapes and of
        how covariates hang together a private fit releases nothing (:mod:`fdadp.private.synthetic`). The same model
        fitted to a large cohort gives this fit back.
        """
        from skfda import FDataGrid

        from fdadp.private.synthetic import draw_column

        check_is_fitted(self, "_fit")
        if self.ledger_ is None:
            raise InputError("privacy must have been given to draw a cohort: a fit without it is not safe to sample")
        self._refuse_other_families("sample")
        rng = np.random.default_rng(random_state)
        count = whole(n, "n")
        made = self._covariates.made
        columns = {c.name: draw_column(c, self._curve_prior, count, rng) for c in self._drawn if c.name not in made}
        law = self._spread["released"]
        records = self._covariates.completed(Records(count, columns), self._offset)
        y = self._fit.form.predictor(records, self._fit.coefficients) + law.draw(count, rng)
        y = y if self._offset is None else y + along(records.columns[self._offset], law.grid)
        out = pd.DataFrame(index=range(count))
        for name, values in columns.items():
            out[name] = FDataGrid(values.values, values.grid) if isinstance(values, Curves) else values
        out[self.response_name_] = FDataGrid(y, law.grid) if law.grid.size > 1 else y[:, 0]
        known = promised(self.ledger_.epsilon, self.ledger_.delta)
        out.attrs["synthetic"] = f"drawn from a private fit ({known}); no row is a person's"
        return out


def _central(column: Any) -> Any:
    """The entry of a column at which white features are nearly zero: its location, or no level."""
    if isinstance(column, CurvesColumn):
        return Curves(np.full((1, column.grid.size), column.location), column.grid)
    return np.array([np.nan]) if isinstance(column, NumberColumn) else np.array([None], dtype=object)
