"""How far predictions depend on the components that complete sparse curves: a jackknife over training curves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.functional.records import Records
from fdadp.regression.completion import Completion
from fdadp.solve.additive_fit import AdditiveFit, fit_gaussian
from fdadp.solve.long_form import LongForm
from fdadp.solve.observations import Observations

PARTS = 10
"""Of the training curves, each of which is left out once."""


@dataclass(frozen=True)
class CompletedAgain:
    """Completions with components that do not know a part of the curves, and what the fit is with them.

    Attributes
    ----------
    completions : tuple of Completion
    coefficients : ndarray of shape (G, p)
        Of all training rows, completed anew, at the same smoothing parameters.
    """

    completions: tuple[Completion, ...]
    coefficients: FloatArray

    @classmethod
    def of(cls, loose: Records, completion: Completion, observed: Observations, fit: AdditiveFit) -> CompletedAgain:
        """Complete training rows without each part of them, and fit again.

        Parameters
        ----------
        loose : Records
            Training rows as they came.
        completion : Completion
            That of the fit.
        observed : Observations
            The responses.
        fit : AdditiveFit
            By least squares.

        Raises
        ------
        InputError
            A part of a domain where no other curve was observed.
        """
        form, part = fit.form, np.arange(loose.n) % PARTS
        level = observed.level if form.has_intercept else 0.0
        sparse = {name: how for name, how in completion.how.items() if how == "pace"}
        completions, coefficients = [], []
        with one_blas_thread():
            for left in range(min(PARTS, loose.n)):
                found = Completion.learned(loose[np.flatnonzero(part != left)], sparse)
                completions.append(replace(completion, bases={**completion.bases, **found.bases}))
                again = replace(observed, records=completions[-1](loose)).below(level)
                own = fit_gaussian(form, again.system(form), fit.smoothing_parameters, loose.n).coefficients
                own[0] += level
                coefficients.append(own)
        return cls(tuple(completions), np.array(coefficients))

    def variance(self, loose: Records, form: LongForm, t: FloatArray) -> FloatArray:
        """Of linear predictors of rows as they came, by not knowing the components: shape (n, T')."""
        every = [form.predictor(c(loose), b, t) for c, b in zip(self.completions, self.coefficients, strict=True)]
        apart = np.array(every) - np.mean(every, axis=0)
        return np.asarray((len(every) - 1) / len(every) * (apart**2).sum(axis=0))
