"""``suggest_bounds``: ranges for ``bounds=`` from private quantiles, where subject knowledge gives none.

Proof: ``docs/theory/summaries.md#cumulative``; the rule by which quantiles become bounds: ``#suggested``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.checks import flag, fraction
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.privacy.boundary import RAGGED, Table, column_names, table
from fdadp.private.public.columns import Range, public_range
from fdadp.private.public.inputs import private_curves
from fdadp.summaries.opening import check, codes_table, numbers_of, open_cohort
from fdadp.summaries.questions.distribution import AskDistribution, Distribution, cell_edges
from fdadp.summaries.questions.questions import ask

if TYPE_CHECKING:
    from pandas import DataFrame

    from fdadp.privacy import Ledger, Privacy

SURE = 2.0
"""A tail is looked at where it has so many sds of the noise in a cumulative count."""
LARGEST_TAIL = 0.25
"""Where noise wants more than this of the persons in each tail, nothing can be said."""
DECADES = range(-6, 10)
STEPS = (1.0, 2.0, 5.0)
"""Edges of cells where no range is given: these numbers times powers of 10, of both signs, and 0."""
LEVEL = 0.95
FINENESS = 25
"""Suggested bounds are rounded outward to 1, 2 or 5 times a power of 10 that is at most the width over this."""


@dataclass(frozen=True)
class SuggestedBounds:
    """Ranges that private quantiles suggest.

    Attributes
    ----------
    by_column : dict of name to (low, high)
    beyond : dict of name to float
        Released share of the numbers beyond the range, with noise.
    coverage : float
        That was asked for.
    ledger : Ledger
    """

    by_column: dict[str, Range]
    beyond: dict[str, float]
    coverage: float
    ledger: Ledger

    @property
    def bounds(self) -> Range | dict[str, Range]:
        """The one range, or ranges by column: for ``bounds=`` of summaries and regressions."""
        found = list(self.by_column.values())
        return found[0] if len(found) == 1 else dict(self.by_column)

    @property
    def box(self) -> tuple[list[float], list[float]]:
        """Lower and upper bounds, in the order of the columns: for ``bounds=`` of learners."""
        return [low for low, _ in self.by_column.values()], [high for _, high in self.by_column.values()]

    @property
    def frame(self) -> DataFrame:
        """``low``, ``high`` and the released share ``beyond``, a row each column."""
        import pandas as pd

        rows = [(*pair, self.beyond[name]) for name, pair in self.by_column.items()]
        return pd.DataFrame(rows, columns=["low", "high", "beyond"], index=list(self.by_column))

    def __str__(self) -> str:
        return f"{self.frame.to_string(float_format='{:.4g}'.format)}\n{self.ledger.headline}"


def suggest_bounds(
    X: Any,
    *,
    within: Range | Mapping[str, Range] | None = None,
    coverage: float = 0.99,
    together: bool = False,
    privacy: Privacy,
    groups: Any = None,
) -> SuggestedBounds:
    """Suggest public ranges from private quantiles, charged to a budget or a study.

    Bounds from subject knowledge cost nothing and are better: heart rates of living persons are within 20 and 300. Take
    this where nobody knows the units or the scale, or where what is known is a range ten times too wide; spend a tenth
    of the budget on it, and the rest on the fit.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, d), Series, data frame, or FDataGrid
        A range for each column; one range for all where `together`, and for curves.
    within : (low, high), or mapping of name to (low, high), optional
        Public range that is surely too wide: bounds are sought in 1,024 cells of it (512 for pure ε). With a mapping
        only these columns of a data frame are looked at. Default: bounds are 0 or ±1, ±2, ±5 times powers of 10 from
        1e-6 to 5e9.
    coverage : float
        Share of the numbers that should be within.
    together : bool
        One range for all columns: for curves, or numbers in the same units.
    privacy : Privacy
        The guarantee; it may draw on a ``budget`` or a ``study`` that the fit draws on as well.
    groups : array_like of shape (n,), optional
        Person of each row.

    Returns
    -------
    SuggestedBounds

    Raises
    ------
    InputError, PrivacyError
        A setting is wrong, or n ε is too small to say anything. Nothing was read or spent.

    Warns
    -----
    PublicInputWarning
        With a private n: the noise was too large, and a range is the one that was given.

    Notes
    -----
    Where a tail of (1 - coverage)/2 is lost in the noise, the larger tail that is not is looked at, and the bounds are
    as far out as they would be for normal numbers. The columns share the budget evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp import Privacy
    >>> from fdadp.privacy import Budget
    >>> heart_rates = np.random.default_rng(0).normal(80, 12, 5000)
    >>> budget = Budget(1.0)  # for all that is done with these rows
    >>> first = Privacy(0.1, n=5000, budget=budget, dataset="ward", random_state=0)
    >>> suggest_bounds(heart_rates, within=(0, 1000), privacy=first).bounds
    (48.0, 108.0)
    >>> round(budget.left / budget.total, 2)
    0.9
    """
    coverage, together = fraction(coverage, "coverage"), flag(together, "together")
    check(privacy, LEVEL)
    given = X
    if hasattr(X, "data_matrix"):
        X, together = private_curves(X, None, "X").values, True
    private, names, ranges = _columns(X, within, together)
    pure = privacy.delta is None
    edges = [_grid() if pair is None else cell_edges(pair, None, pure=pure) for pair in ranges]
    shown = {"columns": names, "within": [list(map(float, e[[0, -1]])) for e in edges], "coverage": coverage}
    tail = (1 - coverage) / 2
    if privacy.n is not None:
        budget, part = privacy.budget_share()
        amount = part * budget.total / len(names)
        for name, cells in zip(names, edges, strict=True):
            question = AskDistribution(cells, float(privacy.n), pure=budget.pure)
            sd = question.planned_sd(amount, privacy.stated_adjacency, pure=budget.pure)
            wanted = SURE * sd * question.typical / privacy.n
            if wanted > LARGEST_TAIL:
                needed = math.ceil(privacy.n * wanted / LARGEST_TAIL)
                raise PrivacyError(
                    f"n and epsilon must let a quarter of the persons stand out from the noise, got {privacy.n} and "
                    f"{privacy.epsilon:g} for {len(names)} column(s), {name!r} among them: it takes {needed} persons, "
                    "or bounds from subject knowledge, which cost nothing"
                )
    cohort = open_cohort(privacy, {"X": given}, private, groups, "suggested bounds", shown)
    found, beyond = {}, {}
    for j, (name, cells) in enumerate(zip(names, edges, strict=True)):
        question = AskDistribution(cells, None, pure=cohort.pure)

        def column(block: tuple[Any, ...], j: int = j) -> FloatArray:
            values = np.asarray(block[0])
            return values if together or values.ndim == 1 else values[:, j]

        noisy, sd = ask(cohort, question, column, share=1 / len(names), name=f"cumulative counts of {name}")
        answer = question.answer(noisy[0], sd, 1)
        found[name] = _bounds(answer, tail, name)
        below, inside = answer.shares_below(np.array(found[name]))
        beyond[name] = float(1 - (inside - below))
    return SuggestedBounds(found, beyond, coverage, cohort.ledger)


def _columns(X: Any, within: Any, together: bool) -> tuple[Table, list[str], list[Range | None]]:
    """The private columns, their names, and the public range of each."""
    if isinstance(within, Mapping):
        if together or not column_names(X):
            raise InputError(
                "within must be one pair (low, high) unless X is a data frame with a range for each column"
            )
        pairs: dict[str, Range | None] = {
            name: public_range(pair, f"within of {name}", of=str(name)) for name, pair in within.items()
        }
        if not pairs:
            raise InputError("within must name at least one column, got none")
        return codes_table(X, pairs), [str(name) for name in pairs], list(pairs.values())
    pair = None if within is None else public_range(within, "within", of="X")
    if together and isinstance(X, list | tuple):
        raise InputError(f"X must be an array or a data frame, {RAGGED}")
    whole = table(X, "X")
    if len(whole.shape) == 1 or together:
        if len(whole.shape) > 2:
            raise InputError(f"X must have one or two dimensions, got {len(whole.shape)}")
        name = getattr(X, "name", None)
        return whole if together else numbers_of(X), [name if isinstance(name, str) and name else "x"], [pair]
    if len(whole.shape) != 2 or whole.shape[1] == 0:
        raise InputError(f"X must have one or two dimensions and at least one column, got shape (n, {whole.shape[1:]})")
    own = [str(name) for name in column_names(X)] or [f"x{j}" for j in range(whole.shape[1])]
    twice = [name for name in own if own.count(name) > 1]
    if twice:
        raise InputError(f"X must have columns of different names, got {twice[0]!r} {len(twice)} times")
    return whole, own, [pair] * whole.shape[1]


def _grid() -> FloatArray:
    sizes = [step * 10.0**power for power in DECADES for step in STEPS]
    return np.array([-size for size in reversed(sizes)] + [0.0, *sizes])


def _bounds(answer: Distribution, tail: float, name: str) -> Range:
    """A range from the tails that stand out from the noise, as far out as normal tails of the wanted size would be."""
    from scipy.special import ndtri

    edges = answer.asked.edges
    whole = float(edges[0]), float(edges[-1])
    at = max(tail, SURE * answer.sd * answer.asked.typical / answer.persons)
    if at > LARGEST_TAIL:
        warnings.warn(
            f"the noise is too large to suggest bounds of {name}: they are the range that was given, {whole}",
            PublicInputWarning,
            stacklevel=3,
        )
        return whole
    low, middle, high = (answer.quantile(q, LEVEL).value for q in (at, 0.5, 1 - at))
    further = float(ndtri(tail) / ndtri(at))
    low, high = middle - further * (middle - low), middle + further * (high - middle)
    if not high > low:
        k = min(int(np.searchsorted(edges, middle, side="right")), edges.size - 1)
        low, high = float(edges[k - 1]), float(edges[k])
    unit = (high - low) / FINENESS
    power = 10.0 ** math.floor(math.log10(unit))
    unit = max(step for step in STEPS if step * power <= unit * (1 + 1e-12)) * power
    low, high = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    digits = max(0, -math.floor(math.log10(unit)))
    return max(round(low, digits), whole[0]), min(round(high, digits), whole[1])
