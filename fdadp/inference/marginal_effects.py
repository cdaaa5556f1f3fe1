"""Fitted models of numbers as the package marginaleffects takes them: its slopes, comparisons and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fdadp._common.argument_checks import one_of
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.inference.estimates import fitted_of
from fdadp.inference.numbered_rows import NumberedRows


def for_marginaleffects(
    model: Any,
    data: Any,
    *,
    kind: str | None = None,
    scale: str = "response",
    grids: Mapping[str, ArrayLike] | None = None,
    beside: Sequence[str] = (),
) -> Any:
    """Wrap a fitted model of numbers for the functions of the package marginaleffects.

    It needs ``pip install 'fdadp[marginaleffects]'``.

    Parameters
    ----------
    model : ScalarRegression
        Fitted.
    data : DataFrame or mapping
        Rows as of ``predict``, over which averages are taken: those of the fit, or others. The people of a private fit
        are private: give rows that are public.
    kind : str, optional
        Assumption about the errors, as of ``vcov``.
    scale : {"response", "link"}
        Of predictions: as the responses, or of the linear predictor.
    grids : mapping of str to array_like, optional
        Grids of plain arrays.
    beside : sequence of str
        More columns of `data`, of numbers or labels, for the arguments ``by=`` and ``wts=``.

    Returns
    -------
    marginaleffects.classes.ModelAbstract
        The first argument of ``avg_slopes``, ``avg_comparisons``, ``predictions``, ``datagrid`` and the like.

    Raises
    ------
    InputError
        A model of curves: the other functions of :mod:`fdadp.inference` have bands for these. A column of `beside` that
        holds curves. No marginaleffects, or polars 2, with which marginaleffects 0.6 fails. Later, a row number that is
        none of `data`.
    NotFittedError
        Before the fit.

    Notes
    -----
    A column of curves holds, in data frames of marginaleffects, the number of the row of `data` whose curve is meant:
    from 0, as text. A missing entry is the mean curve of `data`, and so is a missing column. ``datagrid`` takes this
    curve unless it is given a row, as in ``datagrid(own, X=[3])``. Labels are text.

    Standard errors are those of the covariance, by the delta method; they take the rows as given. Intervals are
    Student's, as those of :func:`fdadp.inference.slopes`. For slopes marginaleffects moves coefficients by 1.5e-8 of
    their size: these standard errors are right to 1e-3, and with ``avg_slopes(own, eps_vcov=1e-6)`` to 1e-5.

    References
    ----------
    Arel-Bundock, Greifer & Heiss (2024), doi:10.18637/jss.v111.i09.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import ScalarRegression, inference
    >>> x = np.linspace(0, 1, 30)
    >>> data = {"x": x, "y": 1 + 2 * x + 0.1 * np.cos(20 * x)}
    >>> model = ScalarRegression("y ~ x").fit(data)
    >>> from marginaleffects import avg_slopes  # doctest: +SKIP
    >>> avg_slopes(inference.for_marginaleffects(model, data))["estimate"].round(1).to_list()  # doctest: +SKIP
    [2.0]
    """
    own = NumberedRows.of(fitted_of(model), data, grids, beside)
    one_of(scale, "scale", ("response", "link"))
    try:
        import polars

        from fdadp.inference.marginaleffects_model import MarginalEffectsModel
    except ModuleNotFoundError as error:
        raise InputError(f"marginaleffects must be installed (pip install 'fdadp[marginaleffects]'): {error}") from None
    if int(polars.__version__.split(".")[0]) > 1:
        raise InputError(f"polars must be below 2 for marginaleffects, got {polars.__version__}")
    return MarginalEffectsModel(model, own, kind, scale)
