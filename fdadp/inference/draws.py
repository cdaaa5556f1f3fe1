"""Draws of the coefficients, and where a mean curve has its peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.argument_checks import fraction, one_of, whole
from fdadp._common.loaded_later import pd
from fdadp._common.symmetric_matrices import symmetric_root
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.inference.estimates import AskedModel, EffectEstimates, fitted_of
from fdadp.regression.fitted.coefficient_functions import effect_rows
from fdadp.regression.fitted.fitted_model import Fitted

POINTS = 401
"""On which peaks are looked for."""
APART = 0.05
"""Share of the domain by which peaks of two lumps of draws are apart."""
RARE = 0.01
"""Share of draws below which a lump is not told."""


@dataclass(frozen=True)
class Draws:
    """Coefficients drawn about their estimates, as a posterior has them.

    Attributes
    ----------
    fitted : Fitted
    coefficients : ndarray of shape (n, p)
    """

    fitted: Fitted
    coefficients: FloatArray

    def of(self, what: EffectEstimates | ArrayLike) -> FloatArray:
        """Draws of linear combinations.

        Parameters
        ----------
        what : EffectEstimates, or array_like of shape (m, p)
            Rows times coefficients. Estimates that are not linear in the coefficients are taken as linear about them.

        Returns
        -------
        ndarray of shape (n, m)
        """
        if isinstance(what, EffectEstimates):
            return np.asarray(what.value + (self.coefficients - self.fitted.fit.coefficients) @ what.rows.T)
        rows = np.atleast_2d(np.asarray(what, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != self.coefficients.shape[1]:
            raise InputError(f"what must have {self.coefficients.shape[1]} columns, got shape {rows.shape}")
        return np.asarray(self.coefficients @ rows.T)

    def of_term(self, name: str, **points: ArrayLike) -> FloatArray:
        """Draws of a term's coefficient function, shape ``(n, *axes)``; `points` as of ``coef``."""
        rows = effect_rows(self.fitted.fit.form, name, points)
        values = np.where(rows.absent, np.nan, self.coefficients[:, rows.place] @ rows.rows.T)
        return values.reshape(len(values), *rows.shape)


def draws(model: Any, n: int = 1000, *, kind: str | None = None, seed: int = 0) -> Draws:
    """Draw coefficients from Student's law with their covariance.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        Of a private fit draws come from what was released, and nothing more is spent.
    n : int
    kind : str, optional
        Assumption about the errors, as of ``vcov``.
    seed : int

    Returns
    -------
    Draws

    Notes
    -----
    ``β + V^½ z sqrt(d / χ²_d)``, d the degrees of freedom of the covariance. The covariance counts what penalties take
    away: quantiles of draws are intervals as :func:`fdadp.inference.difference` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> model = ScalarRegression("y ~ x").fit({"x": x, "y": 1 + 2 * x + 0.1 * np.cos(20 * x)})
    >>> drawn = inference.draws(model, 500)
    >>> drawn.of(inference.design_rows(model, {"x": [0.0, 1.0]})).shape
    (500, 2)
    """
    fitted = fitted_of(model)
    whole(n, "n", least=1)
    whole(seed, "seed", least=0)
    covariance, left = fitted.errors.covariance(kind), fitted.errors.degrees(kind)
    root, rng = symmetric_root((covariance + covariance.T) / 2), np.random.default_rng(seed)
    z = rng.standard_normal((n, len(root)))
    if np.isfinite(left):
        z *= np.sqrt(left / rng.chisquare(left, n))[:, None]
    return Draws(fitted, fitted.fit.coefficients + z @ root.T)


def peak(
    model: Any,
    new: Any,
    *,
    of: str = "max",
    value: float = 0.0,
    n: int = 2000,
    level: float = 0.95,
    kind: str | None = None,
    seed: int = 0,
    grids: Mapping[str, ArrayLike] | None = None,
) -> pd.DataFrame:
    """Where along t the mean curve of each row is largest, smallest, or first crosses a value.

    With ``t_period`` the whole circle is searched, also between the last point of the response and the first. Crossings
    are looked for from the first point on. Curves of `new` that act at the same t alone must then reach round as well.

    Parameters
    ----------
    model : FunctionalRegression
    new : DataFrame or mapping
        Rows as of ``predict``.
    of : {"max", "min", "crossing"}
    value : float
        That is crossed, on the scale of the response.
    n, kind, seed
        As of :func:`draws`.
    level : float
        Of intervals, in (0, 1).
    grids : mapping of str to array_like, optional
        Grids of plain arrays.

    Returns
    -------
    DataFrame
        For each row of `new` one row. There are several where draws have their peaks in lumps that are more than a
        twentieth of the domain apart. Columns are ``row``, ``t`` (of the estimate; of another lump its median),
        ``lower``, ``upper``, and the ``share`` of the draws in the lump. Of crossings shares add up to that of draws
        which cross; NaN where the estimate does not. With ``t_period`` an interval that goes round has ends beyond the
        circle: of a peak at 23.5 hours 22.8 and 24.6, which is .6.

    Raises
    ------
    InputError
        As of ``predict``; a model of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import FunctionalRegression, inference
    >>> x, t = np.linspace(0, 1, 30), np.linspace(0, 1, 21)
    >>> Y = 0.1 * x[:, None] - (t - 0.4) ** 2
    >>> model = FunctionalRegression("Y ~ x", progress=False).fit({"x": x, "Y": Y}, grids={"Y": t})
    >>> inference.peak(model, {"x": [1.0]})["t"].round(1).tolist()
    [0.4]
    """
    one_of(of, "of", ("max", "min", "crossing"))
    fraction(level, "level")
    asked = AskedModel.of(model, None, "link")
    if not asked.of_curves:
        raise InputError("model must have curves as responses for a peak along t, got a model of numbers")
    period, start = asked.fitted.settings.t_period, float(asked.t[0])
    grid = np.linspace(start, asked.t[-1] if period is None else start + period, POINTS)
    drawn = draws(model, n, kind=kind, seed=seed).coefficients
    link = float(asked.fitted.family.predictor(np.array(value))) if of == "crossing" else 0.0
    means = asked.means(new, grids, t=grid)
    labels = np.arange(len(means.value)) if means.records.index is None else np.asarray(means.records.index)
    found: list[dict[str, Any]] = []
    for label, mean, rows in zip(labels, means.value, means.rows, strict=True):
        curves = mean + (drawn - asked.fitted.fit.coefficients) @ rows.T
        here = float(_place(mean[None], grid, of, link)[0])
        lumps = _lumps(_place(curves, grid, of, link), here, level, grid, period)
        found += [{"row": label, **lump} for lump in lumps]
    return pd.DataFrame(found, columns=["row", "t", "lower", "upper", "share"])


def _place(curves: FloatArray, grid: FloatArray, of: str, value: float) -> FloatArray:
    """Where each of the curves (m, T) has what is looked for; NaN where it does not cross the value."""
    if of != "crossing":
        return np.asarray(grid[curves.argmax(axis=1) if of == "max" else curves.argmin(axis=1)])
    above = curves > value
    change = above[:, 1:] != above[:, :-1]
    first = change.argmax(axis=1)
    each = np.arange(len(curves))
    left, right = curves[each, first] - value, curves[each, first + 1] - value
    with np.errstate(divide="ignore", invalid="ignore"):
        at = grid[first] + (grid[1] - grid[0]) * left / (left - right)
    return np.where(change.any(axis=1), at, np.nan)


def _lumps(
    places: FloatArray, here: float, level: float, grid: FloatArray, period: float | None
) -> list[dict[str, float]]:
    """Lumps of places of draws, that of the estimate first, then by their shares."""
    apart = APART * np.ptp(grid)
    parts = _parts(places[np.isfinite(places)], here, apart, period)
    parts = [part for part in parts if part.size >= RARE * places.size]
    holds = [bool(part[0] - apart <= here <= part[-1] + apart) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: (not holds[i], -parts[i].size))
    out = []
    for i in order:
        low, high = np.quantile(parts[i], [(1 - level) / 2, (1 + level) / 2])
        at = here if holds[i] else float(np.median(parts[i]))
        turns = 0.0 if period is None else period * float((at - grid[0]) // period)
        share = parts[i].size / places.size
        out.append({"t": at - turns, "lower": float(low) - turns, "upper": float(high) - turns, "share": share})
    if not any(holds):
        out.insert(0, {"t": here, "lower": np.nan, "upper": np.nan, "share": 0.0})
    return out


def _parts(known: FloatArray, here: float, apart: float, period: float | None) -> list[FloatArray]:
    """Places in lumps that are apart, each in order; on a circle those nearest to the estimate, going round."""
    if not known.size:
        return []
    if period is not None:  # half a circle to each side of the estimate
        low = (here if np.isfinite(here) else known[0]) - period / 2
        known = low + (known - low) % period
    known = np.sort(known)
    parts = np.split(known, np.flatnonzero(np.diff(known) > apart) + 1)
    if period is not None and len(parts) > 1 and known[0] + period - known[-1] <= apart:
        parts = [*parts[1:-1], np.concatenate([parts[-1], parts[0] + period])]
    return parts
