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
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.records import Records
from fdadp.functional.tables.sample import Curves
from fdadp.regression.reading.training import along

if TYPE_CHECKING:
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.private.public.columns import Column
    from fdadp.private.public.prior import CurvePrior

FARTHEST = 2.5
"""Standard deviations of Y from its mean curve beyond which a private prediction is pulled back."""
NOISE_FAR_OUT = 0.25
"""Of a prediction's variance there: the share that pulls it back. Standard errors count on rougher effects besides."""


class NearTheMean:
    """Part of every model with private fits: predictions far from the mean curve are kept near it."""

    def _limited(self: Any, records: Records, eta: FloatArray, t: FloatArray) -> FloatArray:
        """Predictions at points, of a private fit those far from the mean curve, where noise is largest, pulled back.

        Beyond `FARTHEST` standard deviations of the response, of which an excess e keeps ``e³ / (e² + v)``, v a
        quarter of the variance of the prediction. L2 norms over the grid of the fit, whatever points are asked for.
        """
        law = self._spread.get("released")
        if law is None:
            return eta
        form, coefficients, grid = self._fit.form, self._fit.coefficients, self._fit.form.t
        weights = quadrature_weights(grid) / (grid[-1] - grid[0]) if grid.size > 1 else np.ones(1)
        own = eta if np.array_equal(t, grid) else form.predictor(records, coefficients, grid)
        norms = np.sqrt((own - form.mean(coefficients)) ** 2 @ weights)
        excess = norms - FARTHEST * np.sqrt(law.total)
        far = excess > 0
        if far.any():
            variance = NOISE_FAR_OUT * self._of_mean(records[far], None, grid) ** 2 @ weights
            kept = norms[far] - excess[far] + excess[far] ** 3 / (excess[far] ** 2 + variance)
            mean = form.mean(coefficients, t)
            eta = np.array(eta)
            eta[far] = mean + (eta[far] - mean) * (kept / norms[far])[:, None]
        return eta


class FromReleases(NearTheMean):
    """Part of every model of many terms: what its releases say beyond coefficients."""

    ledger_: Ledger | None = None
    _curve_prior: CurvePrior | None = None
    """Law of the shapes of curves, for :meth:`sample`."""
    _drawn: tuple[Column, ...] = ()
    """Columns with released locations and scales."""

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
        fitted to a large cohort gives this fit back. Its standard errors do not hold: they know nothing of the noise in
        this fit, nor how many persons it was of. Take them from this fit.
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
