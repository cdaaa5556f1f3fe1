"""Cox's regression by any terms, with a step of the baseline at each of any number of times of events.

The fit is that of the partial likelihood (:func:`fdadp.solve.fit.partial_likelihood.fit_cox`). It is kept as a Poisson
regression of the events of persons, whose exposure is the share of the cumulated hazard that each was seen in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.regression.fit_in_memory import designs, fit_whole, read_spec
from fdadp.regression.fitted.fitted_model import Fitted
from fdadp.regression.model_settings import ModelSettings
from fdadp.regression.reading.person_periods import PERIOD, Followed
from fdadp.regression.reading.table_columns import columns_of
from fdadp.regression.reading.training_rows import read_rows
from fdadp.regression.scalar import ScalarRegression
from fdadp.solve.fit.partial_likelihood import CoxFit, RiskSets, fit_cox
from fdadp.terms.numbers.scalar_linear import Linear

NO_EXPOSURE = 1e-150
"""Of persons who were seen until no time of events: they tell nothing."""


def fit_at_all_times(model: ScalarRegression, rows: Callable[[FloatArray], Any], followed: Followed) -> Fitted | None:
    """Fit a Poisson regression of persons' events by the partial likelihood.

    Parameters
    ----------
    model : ScalarRegression
        Its formula has the exposure as an offset.
    rows : callable
        The table of persons with exposures (n,).
    followed : Followed

    Returns
    -------
    Fitted or None
        None where the formula has no constant, or explains by the number of the period.
    """
    n = followed.time.size
    settings, risk = ModelSettings.of(model), RiskSets.of(followed.time, followed.event, followed.entry)
    beside = {"by": "position", "weights": None, "offset": None, "groups": None}
    spec, asked = read_spec(settings, rows(np.ones(n)), None, None, **beside)
    if not spec.parsed.intercept or PERIOD in columns_of(spec.parsed.terms):
        return None
    training, _ = read_rows(asked, settings)
    observed, added = training.observed, training.covariates.completion.indicators.values()
    terms = (*spec.parsed.terms, *map(Linear, added))
    form = designs(spec, terms, observed.summary(training.points), training.points)
    with one_blas_thread():
        cox = fit_cox(form, observed.in_blocks(form, settings.family.placeholder), risk, settings.smoothing, n)
    return _as_poisson(settings, rows, risk, cox, beside)


def _as_poisson(
    settings: ModelSettings, rows: Callable[[FloatArray], Any], risk: RiskSets, cox: CoxFit, beside: dict[str, Any]
) -> Fitted:
    """The same fit with exposures: events less expected ones are martingale residuals."""
    exposure = np.empty(risk.order.size)
    exposure[risk.order] = np.maximum(risk.until_end(cox.shares), NO_EXPOSURE)
    same = replace(settings, smoothing=cox.fit.smoothing_parameters)
    fitted = fit_whole(same, rows(exposure), None, None, **beside)
    errors = replace(fitted.errors, settings=settings, fit=cox.fit, loglik=cox.loglik, residuals=None)
    null_deviance = cox.fit.rss + 2 * (cox.loglik - cox.null_loglik)
    share = 1 - cox.fit.rss / null_deviance
    steps = np.stack((risk.times, cox.shares))
    return replace(fitted, errors=errors, null_deviance=null_deviance, shares=(np.nan, share), steps=steps)
