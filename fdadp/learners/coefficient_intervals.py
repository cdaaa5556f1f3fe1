"""Standard errors and intervals of private coefficients, from what was released and the known law of its noise.

What a regression releases are noisy estimating equations: b = A θ + error at the coefficients θ that the rows would
give, with A (the curvature), b and the errors' covariance known but for noise of known size. The intervals are those of
Fieller (1954): all values of a coefficient that a test does not reject, where the test's variance has the sampling
variance, the noise on b and that on A times the coefficients. Where the noise on A leaves a coefficient undetermined
that set is the whole line, and no standard error would be honest. Derivation: ``docs/theory/learners.md#coefficients``.

Sources: Fieller (1954), JRSS B 16; Fuller (1987), Measurement Error Models, doi:10.1002/9780470316665 (noise of known
covariance on the moments); Anderson & Rubin (1949), doi:10.1214/aoms/1177730090 (why inverting a test holds where
coefficients are weakly identified).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import fraction
from fdadp._common.guarantee_in_words import promised
from fdadp._common.symmetric_matrices import positive_part
from fdadp._common.typing import FloatArray
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.learners.shared._estimator_base import Bounded
from fdadp.learners.shared.public_encoding import feature_names
from fdadp.learners.shared.public_inputs import UnitRows

if TYPE_CHECKING:
    import pandas as pd

_TINY = 1e-300
FORMS = (".4g", ".4g", ".2f", ".4f", ".4g", ".4g")
"""Of the columns of a summary."""


def solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """The solution of A x = b, the shortest where there are many: no error tells of a matrix, noisy as it is."""
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])


class Equations(NamedTuple):
    """b - A (w - at), in the p coordinates of encoded rows: 0 at the coefficients, but for errors.

    Attributes
    ----------
    curvature, score : ndarray of shape (p, p), (p,)
        A and b, released.
    at : ndarray of shape (p,)
        Where they were taken.
    dispersion : float
        φ: the sampling covariance of b is φ A.
    sd_curvature, sd_score : float
        Standard deviations of the noise on entries of A off the diagonal (√2 times that on it) and on those of b.
    """

    curvature: FloatArray
    score: FloatArray
    at: FloatArray
    dispersion: float
    sd_curvature: float
    sd_score: float

    def noise(self, step: FloatArray) -> FloatArray:
        """Covariance of the noise on b - A step, (p, p)."""
        own, rotated = self.sd_score**2, self.sd_curvature**2
        return (own + rotated * step @ step) * np.eye(len(step)) + rotated * np.outer(step, step)

    @property
    def step(self) -> FloatArray:
        """Where the equations are 0, less `at`; (p,)."""
        return solved(self.curvature, self.score)


class CoefficientEstimate(NamedTuple):
    """A coefficient: its estimate, standard error (infinite where the noise hides it), z and p of the hypothesis 0,
    and the ends of its interval."""

    estimate: float
    std_error: float
    z: float
    p: float
    lower: float
    upper: float


def estimate(equations: Equations, weights: FloatArray, offset: float, alpha: float) -> CoefficientEstimate:
    """Estimate of offset + weights'w and its interval, of all values that the test does not reject.

    Parameters
    ----------
    equations : Equations
    weights : ndarray of shape (p,)
    offset : float
        Public.
    alpha : float
        1 - level, two-sided.

    Examples
    --------
    >>> import numpy as np
    >>> known = Equations(np.diag([100.0, 400.0]), np.array([50.0, 40.0]), np.zeros(2), 1.0, 3.0, 3.0)
    >>> estimate(known, np.array([1.0, 0.0]), 0.0, 0.05).estimate
    0.5
    >>> estimate(known._replace(sd_curvature=60.0), np.array([1.0, 0.0]), 0.0, 0.05).upper
    inf
    """
    A, step = equations.curvature, equations.step
    sampling = equations.dispersion * positive_part(A)
    u = solved(A, weights)
    value = offset + float(weights @ (equations.at + step))
    if not np.allclose(A @ u, weights, atol=1e-8 * np.abs(weights).max()):  # singular: some direction says nothing
        return CoefficientEstimate(value, math.inf, 0.0, 1.0, -math.inf, math.inf)
    law = sampling + equations.noise(step)
    least = max(float(u @ law @ u), _TINY)
    along = solved(A, law @ u) / least  # how the others follow where this one is moved by 1
    # The variance of the test at a value x further is least + linear x + square x².
    rotated, length = equations.sd_curvature**2, float(u @ u)
    linear = 2 * rotated * float((step @ along) * length + (u @ step) * (u @ along))
    square = rotated * float((along @ along) * length + (u @ along) ** 2)
    quantile = float(norm.isf(alpha / 2))
    z = value / math.sqrt(max(least - linear * value + square * value**2, _TINY))
    p = 2 * float(norm.sf(abs(z)))
    left = 1 - quantile**2 * square
    if left <= 0:
        return CoefficientEstimate(value, math.inf, z, p, -math.inf, math.inf)
    middle = quantile**2 * linear / (2 * left)
    half = math.sqrt(middle**2 + quantile**2 * least / left)
    return CoefficientEstimate(value, math.sqrt(least), z, p, value + middle - half, value + middle + half)


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientIntervals(Bounded):
    """A regression on rows in a ball, which says how certain its coefficients are, from what was released."""

    intercept_scaling: float = 0.5
    _encode: UnitRows = field(init=False)
    """How features were encoded in the fit."""

    def _encoding(self, d: int) -> UnitRows:
        how = {"data_norm": self.data_norm, "center": self.center, "bounds": self.bounds}
        return UnitRows(d, **how, intercept=self.intercept_scaling)

    def _estimating(self) -> tuple[Equations, ...]:
        """Equations of each response; raises InputError where the fit released none."""
        raise NotImplementedError

    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Matrices (responses, d + 1, p) and offsets (responses, d + 1) that turn encoded coefficients into intercept
        and slopes in the user's units."""
        encode = self._encode
        slopes, intercepts = encode.coefficients(np.eye(encode.dimensions))
        return np.vstack([intercepts, slopes.T])[None], np.zeros((1, encode.dimensions))

    def _facts(self) -> tuple[str, list[tuple[str, str, str, str]], list[str]]:
        """Title, table of facts and notes of the summary."""
        raise NotImplementedError

    def coef_table(self, alpha: float = 0.05) -> pd.DataFrame:
        """Estimates of the coefficients with standard errors, tests and intervals; the noise for privacy is in them.

        Parameters
        ----------
        alpha : float
            1 - level of the two-sided intervals.

        Returns
        -------
        DataFrame
            Rows: the intercept and each feature (of several targets, each with a number in front); columns
            ``estimate``, ``std_error``, ``z``, ``p``, ``lower``, ``upper``. In units of the columns that were fitted.

        Notes
        -----
        ``coef_`` is shrunk, to predict well; the estimates here are not, so that intervals about them mean what they
        say. Where noise leaves a coefficient undetermined its interval is the whole line and its standard error
        infinite.

        Raises
        ------
        InputError
            alpha is not between 0 and 1, or nothing was released that intervals could be made of.
        """
        import pandas as pd

        check_is_fitted(self, "ledger_")
        level = fraction(alpha, "alpha")
        equations = self._estimating()
        weights, offsets = self._units()
        names = ["intercept", *feature_names(self)]
        rows = [
            estimate(own, w, float(o), level)
            for own, matrix, offset in zip(equations, weights, offsets, strict=True)
            for w, o in zip(matrix, offset, strict=True)
        ]
        index: pd.Index[Any] = pd.Index(names, name="coefficient")
        if len(equations) > 1:
            index = pd.MultiIndex.from_product([range(len(equations)), names], names=["target", "coefficient"])
        return pd.DataFrame(rows, index=index, columns=list(CoefficientEstimate._fields))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals of the coefficients, as statsmodels' ``conf_int``: the last columns of :meth:`coef_table`."""
        return self.coef_table(alpha)[["lower", "upper"]]

    def summary(self, alpha: float = 0.05) -> PrintedSummary:
        """Tables of the fit and of its coefficients (text, HTML, LaTeX)."""
        table = self.coef_table(alpha)
        title, facts, notes = self._facts()
        model: Any = self
        ledger = model.ledger_
        cells = [
            (
                label if isinstance(label, str) else " ".join(map(str, label)),
                *(format(value, form) for value, form in zip(row, FORMS, strict=True)),
            )
            for label, row in zip(table.index, table.to_numpy(dtype=np.float64).tolist(), strict=True)
        ]
        headers = ["", "estimate", "std. error", "z", "p", f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.3g}]"]
        shown = [*facts, ("Guarantee", promised(ledger.epsilon, ledger.delta), "Unit", model.privacy_spent_["unit"])]
        unknown = table.index[~np.isfinite(table["std_error"])]
        if len(unknown):
            notes = [*notes, f"The noise leaves {len(unknown)} of {len(table)} coefficients undetermined"]
        always = [
            "Standard errors, tests and intervals have the noise for privacy in them",
            "The estimates are not shrunk, as coef_ is",
        ]
        tables = [PrintedTable(shown, title=title), PrintedTable(cells, headers)]
        return PrintedSummary(tables, [ledger.headline, *(f"Note: {note}." for note in [*always, *notes])])
