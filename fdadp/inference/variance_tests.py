"""Test that a random effect on numbers has no variance, by the restricted likelihood ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp._common.argument_checks import generator, whole
from fdadp._common.threads import one_blas_thread
from fdadp.errors import InputError
from fdadp.inference.estimates import fitted_of
from fdadp.regression.fitted.coefficient_functions import place_of
from fdadp.repeated.icc_and_tests import VarianceTest
from fdadp.solve.errors.term_tests import EffectSpectrum, ratio_test


def variance_test(model: Any, name: str, *, draws: int = 9999, seed: int = 0) -> VarianceTest:
    """Test that a random effect on numbers has no variance, by the exact restricted likelihood ratio.

    :meth:`~fdadp.ScalarRegression.test_terms` has the score test of the same hypothesis. Both have exact levels for
    independent Gaussian errors. The ratio finds more where groups differ in size; the score test needs no draws.

    Parameters
    ----------
    model : ScalarRegression
        Without privacy and groups.
    name : str
        Of a term whose one penalty holds all of its coefficients, such as ``re(g)``.
    draws : int
        From the distribution of the ratio without the effect, at least 19.
    seed : int

    Returns
    -------
    VarianceTest

    Raises
    ------
    InputError
        Another model or term.

    Notes
    -----
    Smoothing parameters of the other terms are those that REML chooses without the effect, and count as known. Of
    families it is the test of the working responses.

    References
    ----------
    Crainiceanu & Ruppert (2004), doi:10.1111/j.1467-9868.2004.00438.x; R's package RLRsim.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> draw, g = np.random.default_rng(0), np.arange(60) // 5
    >>> y = draw.normal(size=12)[g] + draw.normal(size=60)
    >>> model = ScalarRegression("y ~ re(g)").fit({"y": y, "g": g.astype(str)})
    >>> inference.variance_test(model, "re(g)").p_value < 0.01
    True
    """
    fitted = fitted_of(model)
    form, errors = fitted.fit.form, fitted.errors
    if errors.settings.of_curves:
        raise InputError(
            "model must be one of numbers, got one of curves, for which test_terms() flips signs of curves"
        )
    if fitted.private or errors.grouped:
        raise InputError(f"model must be without {'privacy' if fitted.private else 'groups'}, got one with")
    whole(draws, "draws", least=19)
    if errors.persons is not None and name in errors.persons.names:
        return errors.persons.tested(name, draws, seed)
    place = place_of(form, name)
    penalties = form.designs[place].penalties
    if len(penalties) != 1 or not (penalties > 0).all():
        raise InputError(f"name must be of a random effect, such as re(g), got {name!r}")
    which, known = np.arange(form.slices[place].start, form.slices[place].stop), fitted.family.known_scale
    with one_blas_thread():
        spectrum = EffectSpectrum.of(fitted.fit, which, known)
        statistic, simulated = ratio_test(spectrum, known, draws, generator(seed))
    p = (1 + int((simulated >= statistic * (1 - 1e-12)).sum())) / (draws + 1)
    return VarianceTest(statistic, p, simulated)
