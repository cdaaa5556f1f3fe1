"""Concurvity of the terms of a fitted model, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import IntArray
from fdadp.regression.fitted.term_summary import is_parametric
from fdadp.solve.errors.term_tests import MEASURES, concurvity
from fdadp.solve.fit.additive_fit import AdditiveFit

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = "numbers"
"""Name of the row for all coefficients that are numbers without a penalty."""


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
