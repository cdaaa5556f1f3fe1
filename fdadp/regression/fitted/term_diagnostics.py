"""Checks of a fitted model of many terms: residuals, sizes of bases, concurvity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdadp._common.checks import flag, whole
from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import ArrayLike, IntArray
from fdadp.regression.fitted.term_summary import is_parametric
from fdadp.solve.errors.term_tests import MEASURES, concurvity
from fdadp.solve.fit.additive_fit import AdditiveFit

if TYPE_CHECKING:
    import pandas as pd

# Concurvity of the terms of a fitted model, as a table.


NUMBERS = "numbers"
"""Name of the row of all coefficients that are numbers without a penalty."""


def concurvity_table(fit: AdditiveFit, pairwise: bool) -> pd.DataFrame:
    """A row for each term, or with `pairwise` for each pair of them."""
    import pandas as pd

    groups: dict[str, list[IntArray]] = {}
    for design, place in zip(fit.form.designs, fit.form.slices, strict=True):
        name = NUMBERS if is_parametric(design) else design.name
        groups.setdefault(name, []).append(np.arange(place.start, place.stop))
    columns = {name: np.concatenate(parts) for name, parts in groups.items()}
    rows, labels = [], []
    with one_blas_thread():
        for name, term in columns.items():
            rest = {other: c for other, c in columns.items() if other != name}
            sets = rest if pairwise else {"": np.concatenate([np.zeros(0, dtype=np.int64), *rest.values()])}
            rows += concurvity(fit.gram, fit.coefficients, term, list(sets.values()))
            labels += [(name, other) for other in sets]
    if pairwise:
        index: pd.Index = pd.MultiIndex.from_tuples(labels, names=["term", "by"])
    else:
        index = pd.Index([name for name, _ in labels], name="term")
    return pd.DataFrame(rows, columns=list(MEASURES), index=index)


class TermDiagnostics:
    """Part of every model of many terms: what is to be doubted."""

    _fit: AdditiveFit

    def residuals(self, type: str = "deviance") -> Any:
        """Residuals of the training rows, in the form of ``fitted_values_``.

        Parameters
        ----------
        type : {"deviance", "pearson", "response"}
            Signed square roots of what each observation adds to the deviance; differences from the mean over their
            standard deviation but for the scale; or the differences themselves, which are ``residuals_``. Of gaussian
            responses without weights all are the same.

        Raises
        ------
        InputError
            Another type, or a model that was loaded from a file, which holds no training rows.
        """
        from fdadp.regression.fitted.term_residuals import residuals_of

        check_is_fitted(self, "_fit")
        return residuals_of(self, type)

    def check(
        self,
        data: Any,
        y: Any = None,
        *,
        grids: Mapping[str, ArrayLike] | None = None,
        weights: ArrayLike | str | None = None,
        offset: ArrayLike | str | None = None,
        response: pd.DataFrame | None = None,
        n_draws: int = 400,
        random_state: int = 0,
    ) -> pd.DataFrame:
        """Say whether the bases of the terms are large enough, as mgcv's ``k.check`` does, by records and along t.

        Parameters
        ----------
        data, y, grids, weights, offset, response
            The training rows, as :meth:`fit` takes them; at most 2,000 of them, drawn at random, are looked at.
        n_draws : int
            Random arrangements of the records that the real one is compared with.
        random_state : int
            Their seed.

        Returns
        -------
        DataFrame
            A row for each term that is no number. ``k``: the most degrees of freedom that its basis has, and ``edf``,
            those it takes. ``k_index``: half the mean squared difference of deviance residuals of records whose
            covariates are neighbours, over their variance; below 1, with a small ``p_value`` (the share of random
            arrangements that have less), the residuals still depend on the covariates. ``p_value_t``, of curves: how
            often chance leaves as much along t as there is, in splines of twice the size. Residual curves are kept
            whole, so that errors may depend along the curve; rows of one person in several rows are not.

        References
        ----------
        mgcv's ``k.check``; Wood (2017), Generalized Additive Models, section 5.9, doi:10.1201/9781315370279.
        """
        from fdadp.regression.fitted.term_check import check_model

        check_is_fitted(self, "_fit")
        whole(n_draws, "n_draws")
        return check_model(self, (data, y, grids, weights, offset, response), n_draws, random_state)

    def concurvity(self, pairwise: bool = False) -> pd.DataFrame:
        """How far each term can be written by the others: the collinearity of smooth terms.

        Parameters
        ----------
        pairwise : bool
            By each other term, not by all of them together.

        Returns
        -------
        DataFrame
            A row for each term (all coefficients that are numbers without a penalty are one), three measures between
            0, nothing in common, and 1, not identified: ``worst`` of all functions in the span of its basis;
            ``observed``, of the estimated one; ``estimate``, of its basis functions on average.

        References
        ----------
        mgcv's ``concurvity``.
        """

        check_is_fitted(self, "_fit")
        return concurvity_table(self._fit, flag(pairwise, "pairwise"))
