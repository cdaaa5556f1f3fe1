"""Differences of means, contrasts of levels, average slopes, derivatives along t, and tests of any rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from fdadp._common.argument_checks import numbers, one_of, whole
from fdadp._common.loaded_later import pd
from fdadp._common.student_and_f import f_beyond
from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.functional.containers.open_curves import is_foreign, opened_table
from fdadp.inference.estimates import AskedModel, EffectEstimates, Inference, Means, fitted_of, levels_of
from fdadp.regression.fitted.fitted_model import Fitted
from fdadp.regression.reading.computed_columns import row_function
from fdadp.terms.records import Records

STEP = 1e-4
"""Of central differences, in standard deviations of a column, or of the length of the domain of t."""


def difference(
    model: Any,
    new1: Any,
    new2: Any,
    *,
    t: ArrayLike | None = None,
    average: bool = False,
    scale: str = "response",
    level: float = 0.95,
    kind: str | None = None,
    seed: int = 0,
    grids: Mapping[str, ArrayLike] | None = None,
) -> EffectEstimates:
    """Estimate E[Y | new1] - E[Y | new2], row by row, or on average over the rows.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
        Ordinary or private. Of a private fit all comes from what was released, and nothing more is spent. Random
        curves of persons are left out: means are those of the population.
    new1, new2 : DataFrame or mapping
        Rows as of ``predict``.
    t : array_like of shape (T,), optional
        Points of the response; default its grid.
    average : bool
        The difference of the averages over all rows of each.
    scale : {"response", "link"}
        Of families other than the Gaussian: of means, by the delta method, or of the linear predictor.
    level : float
        Of intervals and bands.
    kind : str, optional
        Assumption about the errors, as of ``vcov``.
    seed : int
        Of the draws behind simultaneous bands.
    grids : mapping of str to array_like, optional
        Grids of plain arrays.

    Returns
    -------
    EffectEstimates

    Raises
    ------
    InputError
        As of ``predict``; other numbers of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> model = ScalarRegression("y ~ x").fit({"x": x, "y": 1 + 2 * x})
    >>> inference.difference(model, {"x": [1.0]}, {"x": [0.0]}).value.round(6).tolist()
    [2.0]
    """
    asked, how = AskedModel.of(model, t, scale), Inference(level, kind, seed)
    ask = asked.by(average)
    found = ask(new1, grids).minus(ask(new2, grids))
    index = asked.index(found, averaged=average)
    return asked.estimates("difference of means", index, found.value, found.rows, how)


def contrasts(
    model: Any,
    column: str,
    how: str = "pairwise",
    *,
    at: Mapping[str, Any] | None = None,
    new: Any = None,
    t: ArrayLike | None = None,
    scale: str = "response",
    level: float = 0.95,
    kind: str | None = None,
    seed: int = 0,
    grids: Mapping[str, ArrayLike] | None = None,
) -> EffectEstimates:
    """Compare the levels of a factor, all else being equal.

    For each level the mean is averaged over the same rows, in which the factor is set to it.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
    column : str
        Of the factor.
    how : {"pairwise", "reference", "mean", "sequential"}
        Each pair (the later level less the earlier one), each level less the first, each less the mean of all, or each
        less the one before.
    at : mapping, optional
        One value for each other column that the model reads, instead of rows.
    new : DataFrame or mapping, optional
        Rows to average over; default the training rows, which files, fits from chunks and private fits do not hold.
    t, scale, level, kind, seed, grids
        As of :func:`difference`.

    Returns
    -------
    EffectEstimates
        With a column ``contrast``, such as ``"b - a"``.

    Raises
    ------
    InputError
        No such factor; rows and values that are both given, or both missing where there are no training rows.
    PrivacyError
        A private fit without `at` and `new`: its rows are private.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> arm = np.repeat(["drug", "placebo"], 20)
    >>> model = ScalarRegression("y ~ C(arm)").fit({"arm": arm, "y": (arm == "drug") * 2.0})
    >>> found = inference.contrasts(model, "arm")
    >>> found.index["contrast"].tolist(), found.value.round(6).tolist()
    (['placebo - drug'], [-2.0])
    """
    asked = AskedModel.of(model, t, scale)
    levels = _levels(asked.fitted, column)
    one_of(how, "how", ("pairwise", "reference", "mean", "sequential"))
    if at is not None and new is not None:
        raise InputError("at and new must not both be given: rows say all values")
    if at is not None:
        if not isinstance(at, Mapping):
            raise InputError(f"at must be a mapping of columns to single values, got {type(at).__name__}")
        known = {*at, column}
        absent = next((text for text, sources in _sources(asked.fitted).items() if not known.issuperset(sources)), None)
        if absent is not None:
            raise InputError(f"at must have a value for each other column that the model reads, got none for {absent}")
        new = {name: _one_row(value) for name, value in at.items() if name != column}
    rows, n = _rows(asked.fitted, new, column)
    means = {own: asked.average(_with(rows, column, [own] * n), grids) for own in levels}
    found = dict(_compared(means, how))
    index = pd.concat([asked.index(own).assign(contrast=name) for name, own in found.items()], ignore_index=True)
    index = index[["contrast", *(name for name in index.columns if name != "contrast")]]
    value, gradient = (np.concatenate([getattr(own, part) for own in found.values()]) for part in ("value", "rows"))
    return asked.estimates(f"contrasts of {column}", index, value, gradient, Inference(level, kind, seed))


def slopes(
    model: Any,
    column: str,
    *,
    new: Any = None,
    average: bool = True,
    t: ArrayLike | None = None,
    scale: str = "response",
    level: float = 0.95,
    kind: str | None = None,
    seed: int = 0,
    twicing: int = 0,
    grids: Mapping[str, ArrayLike] | None = None,
) -> EffectEstimates:
    """Slope of the mean in a column of numbers: the average marginal effect, along t where responses are curves.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
    column : str
        Of numbers.
    new : DataFrame or mapping, optional
        Rows at which the slope is taken; default the training rows, as of :func:`contrasts`.
    average : bool
        Over the rows; else a slope for each.
    t, scale, level, kind, seed, grids
        As of :func:`difference`.
    twicing : int
        How often residuals are smoothed again, and what is found is added. The penalty biases averages over a smooth
        effect; each time takes away more of the bias, and makes intervals wider.

    Returns
    -------
    EffectEstimates

    Notes
    -----
    By central differences of the rows of the design, with a step of 1e-4 standard deviations of the column. With
    ``twicing=m`` rows l become ``l Σ (A⁻¹S)^k`` of k from 0 to m, where A is the penalised information and S the
    penalty. For m = 1 see Newey, Hsieh and Robins (2004), doi:10.1111/j.1468-0262.2004.00518.x. For more see Bühlmann
    and Yu (2003), Boosting with the L2 loss, doi:10.1198/016214503000000125.

    Raises
    ------
    InputError, PrivacyError
        As of :func:`contrasts`. A column that the model does not read, or of labels. ``twicing`` of a private fit, of
        one with covariances of persons, or on eigenfunctions.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> model = ScalarRegression("y ~ x + I(x**2)").fit({"x": x, "y": x**2})
    >>> inference.slopes(model, "x", new={"x": [0.5, 1.0]}, average=False).value.round(4).tolist()
    [1.0, 2.0]
    """
    asked, how = AskedModel.of(model, t, scale), Inference(level, kind, seed)
    rows, _ = _rows(asked.fitted, new, column)
    held = rows.columns[column] if isinstance(rows, Records) else rows[column]
    try:
        values = np.asarray(held, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"column must hold numbers, got labels in {column!r}: contrasts compare them") from None
    if values.ndim != 1:
        raise InputError(f"column must hold one number a row, got {column} of shape {values.shape}")
    step = STEP * (float(np.std(values)) or max(abs(float(values[0])), 1.0))
    ask = asked.by(average)
    found = ask(_with(rows, column, values + step), grids).minus(
        ask(_with(rows, column, values - step), grids), 1 / (2 * step)
    )
    if whole(twicing, "twicing", least=0):
        found = asked.twiced(found, twicing)
    index = asked.index(found, averaged=average)
    return asked.estimates(f"slope in {column}", index, found.value, found.rows, how)


def derivative(
    model: Any,
    new1: Any,
    new2: Any = None,
    *,
    t: ArrayLike | None = None,
    average: bool = False,
    scale: str = "response",
    level: float = 0.95,
    kind: str | None = None,
    seed: int = 0,
    grids: Mapping[str, ArrayLike] | None = None,
) -> EffectEstimates:
    """Derivative along t of mean curves, or of the difference of two of them.

    Parameters
    ----------
    model : FunctionalRegression
    new1, new2 : DataFrame or mapping
        Rows; without `new2` the derivative of E[Y | new1], else of E[Y | new1] - E[Y | new2].
    t, average, scale, level, kind, seed, grids
        As of :func:`difference`.

    Returns
    -------
    EffectEstimates
        In units of the response a unit of t.

    Notes
    -----
    By central differences, at the ends of the domain one-sided. Smoothing pulls curves towards smooth ones, and
    standard errors count this for curves, not for derivatives: in simulations bands held .99 of them.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import FunctionalRegression, inference
    >>> x, t = np.linspace(0, 1, 30), np.linspace(0, 1, 11)
    >>> model = FunctionalRegression("Y ~ x", progress=False).fit({"x": x, "Y": np.outer(x, 3 * t)}, grids={"Y": t})
    >>> inference.derivative(model, {"x": [1.0]}, t=[0.5]).value.round(1).tolist()
    [3.0]
    """
    asked, how = AskedModel.of(model, t, scale), Inference(level, kind, seed)
    if not asked.of_curves:
        raise InputError("model must have curves as responses for a derivative along t, got a model of numbers")
    own = asked.fitted.response.curves
    assert own is not None
    low, high = float(own.grid[0]), float(own.grid[-1])
    beyond = (asked.t < low) | (asked.t > high)  # on a circle, whose functions go on
    ends = np.where(beyond, -np.inf, low), np.where(beyond, np.inf, high)
    up, down = (np.clip(asked.t + sign * STEP * (high - low), *ends) for sign in (1, -1))
    ask = asked.by(average)

    def between(new: Any) -> Means:
        return ask(new, grids, t=up).minus(ask(new, grids, t=down))

    found = between(new1) if new2 is None else between(new1).minus(between(new2))
    found = Means(found.value / (up - down), found.rows / (up - down)[:, None], found.records, asked.t)
    index = asked.index(found, averaged=average)
    return asked.estimates("derivative along t", index, found.value, found.rows, how)


def hypothesis(
    model: Any, rows: ArrayLike | pd.DataFrame, value: ArrayLike = 0.0, *, kind: str | None = None
) -> pd.DataFrame:
    """Wald test that linear combinations of the coefficients are equal to given values.

    Parameters
    ----------
    model : FunctionalRegression or ScalarRegression
    rows : array_like of shape (r, p)
        A combination a row, such as differences of :func:`design_rows`. Few: combinations that are estimated from the
        same smooth curve are nearly alike, and :meth:`EffectEstimates.test` is the test of all of a curve.
    value : float or array_like of shape (r,)
    kind : str, optional
        Assumption about the errors, as of ``vcov``.

    Returns
    -------
    DataFrame of one row
        ``statistic``, ``df``, ``df_error`` and ``p``: by F, of Hotelling's statistic where the covariance is that of
        clusters.

    Raises
    ------
    InputError
        Other numbers of columns; combinations that depend on each other, or more than clusters allow.

    References
    ----------
    Hotelling (1931), doi:10.1214/aoms/1177732979.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> model = ScalarRegression("y ~ x").fit({"x": x, "y": 1 + 2 * x + 0.1 * np.cos(20 * x)})
    >>> rows = inference.difference(model, {"x": [1.0]}, {"x": [0.0]}).rows
    >>> bool(inference.hypothesis(model, rows, 2.0)["p"].iloc[0] > 0.05)
    True
    """
    fitted = fitted_of(model)
    given = np.atleast_2d(numbers(rows, "rows"))
    p = fitted.fit.form.size
    if given.ndim != 2 or given.shape[1] != p:
        raise InputError(f"rows must have {p} columns, one a coefficient, got shape {given.shape}")
    target = np.broadcast_to(numbers(value, "value"), len(given))
    spread = given @ fitted.errors.covariance(kind) @ given.T
    size, turn = np.linalg.eigh(spread)
    r, left = len(given), fitted.errors.degrees(kind)
    if size[0] <= 1e-10 * max(float(size[-1]), 0.0):
        raise InputError("rows must be linearly independent combinations, each with an error above 0")
    if r > left:
        raise InputError(f"rows must be at most {left:g}, the degrees of freedom of the errors, got {r}")
    z = turn.T @ (given @ fitted.fit.coefficients - target) / np.sqrt(size)
    clusters = fitted.errors.kind_of(kind) in ("curve", "cluster")
    after = left - r + 1 if clusters else left
    statistic = float(z @ z) / r * (after / left)
    found = {"statistic": [statistic], "df": [r], "df_error": [after], "p": [f_beyond(statistic, r, after)]}
    return pd.DataFrame(found)


# Rows at which a question is asked.


def _rows(fitted: Fitted, new: Any, changed: str) -> tuple[Any, int]:
    """Rows of which a column is to be changed: a mapping, or the training rows as records; and their number."""
    if new is None:
        if fitted.private:
            raise PrivacyError("new or at must be given: the training rows of a private fit are private")
        own = fitted.errors.residuals
        if own is None:
            raise InputError("new must be given: models from files and chunks hold no training rows")
        computed = next((text for text in _read_of(fitted, changed) if text != changed), None)
        if computed is not None:
            raise InputError(
                f"new must be given: the model holds {computed} of its training rows, not {changed} itself"
            )
        return own.records, own.n
    _read_of(fitted, changed)
    table = opened_table(new) if is_foreign(type(new)) else new
    if not isinstance(table, Mapping | pd.DataFrame):
        raise InputError(f"new must be a data frame or a mapping of columns, got {type(new).__name__}")
    table = table if isinstance(table, pd.DataFrame) else dict(table)
    first = next((table[name] for name in table if name != changed), None)
    return table, 1 if first is None else len(first)


def _sources(fitted: Fitted) -> dict[str, Sequence[str]]:
    """Columns of the model, and of which columns of a table each is computed: itself, where it is none."""
    computed = {text: row_function(text) for text in fitted.columns}
    return {text: (text,) if how is None else how.sources for text, how in computed.items()}


def _read_of(fitted: Fitted, column: str) -> list[str]:
    """Columns of the model that are this one, or are computed of it.

    Raises
    ------
    InputError
        None is.
    """
    found = [text for text, sources in _sources(fitted).items() if column in (text, *sources)]
    if not found:
        raise InputError(f"column must be one that the model reads ({', '.join(fitted.columns)}), got {column!r}")
    return found


def _one_row(value: Any) -> Any:
    """One row of a column: a number or a label, or a curve as one."""
    if isinstance(value, str) or np.ndim(value) == 0 or not hasattr(value, "__len__"):
        return [value]
    return value if hasattr(value, "data_matrix") else np.atleast_2d(np.asarray(value))


def _with(rows: Any, column: str, values: Sequence[Any] | FloatArray) -> Any:
    """The same rows with other values in a column."""
    if isinstance(rows, Records):
        dtype = np.float64 if isinstance(values, np.ndarray) else object
        return rows.with_columns(**{column: np.asarray(values, dtype=dtype)})
    if isinstance(rows, pd.DataFrame):
        return rows.assign(**{column: values})
    return {**rows, column: values}


def _levels(fitted: Fitted, column: str) -> tuple[Any, ...]:
    """Levels of a factor of the model."""
    own = levels_of(fitted)
    if column not in own:
        raise InputError(f"column must be a factor of the model ({', '.join(own) or 'none'}), got {column!r}")
    return own[column]


def _compared(means: Mapping[Any, Means], how: str) -> Iterator[tuple[str, Means]]:
    """Contrasts of the means of levels, and what they are called."""
    levels = list(means)
    if how == "mean":
        of_all = Means(
            np.mean([own.value for own in means.values()], axis=0),
            np.mean([own.rows for own in means.values()], axis=0),
            means[levels[0]].records,
            means[levels[0]].t,
        )
        for own in levels:
            yield f"{own} - mean", means[own].minus(of_all)
        return
    pairs = {
        "pairwise": combinations(levels, 2),
        "reference": ((levels[0], other) for other in levels[1:]),
        "sequential": pairwise(levels),
    }[how]
    for first, second in pairs:
        yield f"{second} - {first}", means[second].minus(means[first])
