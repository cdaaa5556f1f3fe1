"""``PrivateTable1``: the table that begins a paper, who was in the study, under differential privacy."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fdadp._common.argument_checks import fraction, is_number
from fdadp._common.estimators import NestedParameters, ShownByTable
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.files.npz_files import Layout, complete, plain
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable
from fdadp.privacy import Ledger, Privacy
from fdadp.privacy.settings import privacy_from_json, privacy_to_json
from fdadp.privacy.study.verification import record_model
from fdadp.summaries.cohort_of_columns import MISSING_COUNTS, Estimates, Row, check, codes_table, open_cohort
from fdadp.summaries.means_quantiles_counts import quantile_list
from fdadp.summaries.questions.column_questions import NoisyEstimate, ask
from fdadp.summaries.questions.table1_plan import (
    MOMENTS,
    QUANTILES,
    SIZES,
    PlannedRelease,
    checked_facts,
    parts_of,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# From the releases of a table 1 to its rows: post-processing.


ALL = "all"
"""The column of the table that is of all persons."""
DIGITS, MOST_DECIMALS = 2, 6


def _answers(part: PlannedRelease, noisy: FloatArray, sd: float, groups: int) -> list[Any]:
    """Of all persons, then of each group."""
    if not part.grouped:
        return [part.question.answer(noisy[0], sd, 1)]
    every = part.question.answer(noisy.sum(axis=0), sd, groups + 1)
    return [every, *(part.question.answer(block, sd, 1) for block in noisy[:-1])]


def rows_of(
    parts: Sequence[PlannedRelease],
    released: Sequence[tuple[FloatArray, float]],
    groups: Sequence[Any],
    facts: Mapping[str, Any],
    quantiles: Sequence[float],
    level: float,
    sampling: bool,
) -> list[Row]:
    """All rows of the table; names are (column, class, statistic, group)."""
    out: list[Row] = []
    for part, (noisy, sd) in zip(parts, released, strict=True):
        answers = _answers(part, noisy, sd, len(groups) - 1)
        if part.kind == SIZES:
            [sizes] = answers
            if sizes.n is None:
                out.append((("", "", "n", ALL), sizes.everybody(level), False))
            out += [(("", "", "n", group), sizes.count(k, level), False) for k, group in enumerate(groups[1:])]
            continue
        of_groups = [_statistics(part.kind, own, facts[part.column], quantiles, level, sampling) for own in answers]
        for rows in zip(*of_groups, strict=True):  # one statistic of all groups
            for group, (of, name, estimate, drawn) in zip(groups, rows, strict=True):
                out.append(((part.column, of, name, group), estimate, drawn))
    return out


def _statistics(
    kind: str, found: Any, fact: Any, quantiles: Sequence[float], level: float, sampling: bool
) -> Iterator[tuple[Any, str, NoisyEstimate, bool]]:
    """Class, name and estimate of each statistic of a column in one group, and whether its interval holds sampling."""
    if kind == MOMENTS:
        yield "", "n", found.count(level), False
        for name in ("mean", "sd"):
            yield "", name, getattr(found, name)(level, sampling=sampling), sampling
    elif kind == QUANTILES:
        for q in quantiles:
            yield "", f"quantile {q:g}", found.quantile(q, level, sampling=sampling), sampling
    else:
        for k, of in enumerate(fact):
            yield of, "n", found.count(k, level), False
            yield of, "%", found.share(k, level, sampling=sampling), sampling
        yield "", "missing", found.count(-1, level), False


def decimals_for(width: float) -> int:
    """So many decimals that an interval has two digits."""
    if not (width > 0 and math.isfinite(width)):
        return 0
    return min(max(DIGITS - 1 - math.floor(math.log10(width)), 0), MOST_DECIMALS)


LAYOUT = Layout("private-table1", {"released": "R", "sds": "Q"})
LEVEL = 0.95
COUNTS = ("n", "missing")


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTable1(ShownByTable, NestedParameters, BaseEstimator):  # type: ignore[misc]
    """A study's table 1: counts, means, quantiles and shares of its columns, by group, each with an interval.

    Parameters
    ----------
    privacy : Privacy
        The guarantee for the whole table; required.
    columns : mapping of name to (low, high) or list of classes, or list of names
        Public facts of the columns that the table is of: a tuple is the range of a column of numbers, a list the
        classes of another. Names alone, or nothing, where a study has fixed their facts.
    by : str, optional
        Name of one of `columns`, of classes: the groups that are shown side by side.
    quantiles : sequence of float
        Of numbers; default quartiles. Without any (``()``) means and standard deviations have all of the budget.
    steps : mapping of name to float, optional
        Of numbers that are multiples of something: years, counts, scores.

    Attributes
    ----------
    estimates_ : Estimates
        All of it, at other levels too: ``estimates_.at(0.9)``.
    table_ : DataFrame
        ``value``, ``low``, ``high``, ``noise_sd`` and what the ``interval`` holds; a row for each column, class,
        statistic and group.
    ledger_ : Ledger
    privacy_ : Privacy

    Notes
    -----
    *Releases.* The sizes of the groups, or the number of persons where it is private. Of a column of numbers the sums
    of a flag and of powers, and cumulative counts. Of a column of classes the counts. Each is one sum for all groups at
    once, and all have equal shares of the budget: :meth:`plan` says so before. Proofs:
    ``docs/theory/summaries.md#groups`` and the sections before it.

    *Intervals.* Of counts: the persons in the data, noise alone. Of all else: the population that the persons are a
    random sample of, noise and sampling. Each holds with its level by itself, not all at once.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fdadp import Privacy
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.normal(60, 12, 4000), "sex": rng.choice(["f", "m"], 4000)})
    >>> people["arm"] = rng.choice(["drug", "placebo"], 4000)
    >>> columns = {"arm": ["drug", "placebo"], "age": (18, 100), "sex": ["f", "m"]}
    >>> table = PrivateTable1(privacy=Privacy(1.0, n=4000, random_state=0), columns=columns, by="arm").fit(people)
    >>> bool(abs(table.table_.loc[("age", "", "mean", "drug"), "value"] - 60) < 3)
    True
    """

    privacy: Privacy | None = None
    columns: Mapping[str, Any] | Sequence[str] | None = None
    by: str | None = None
    quantiles: Sequence[float] = (0.25, 0.5, 0.75)
    steps: Mapping[str, float] | None = None
    ledger_: Ledger = field(init=False)

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> PrivateTable1:
        """Release the table.

        Parameters
        ----------
        X : data frame, whose columns are found by name, or array_like of as many columns as there are facts
            What is no finite number, or no declared class, is missing.
        y : ignored
        groups : array_like of shape (n,), optional
            Person of each row: each counts once, by the mean over its rows.

        Raises
        ------
        InputError, PrivacyError
            Something public is wrong. Nothing was read or spent.
        """
        privacy, facts, parts = self._declared()
        names = list(facts)
        private = codes_table(X, facts)
        shown = {"columns": facts} | ({} if self.by is None else {"by": self.by})
        cohort = open_cohort(privacy, {"X": X}, private, groups, "private table 1", shown | MISSING_COUNTS)
        released = []
        for part in parts:
            at = names.index(part.column or self.by or names[0])
            by: dict[str, Any] = {}
            if part.grouped and self.by is not None:
                by = {"group": partial(_column, names.index(self.by)), "groups": len(facts[self.by])}
            column = partial(_column, at)
            released.append(ask(cohort, part.question, column, share=part.share, name=part.name, **by))
        self.ledger_, self.privacy_ = cohort.ledger, replace(privacy)
        self._keep(facts, released)
        return self

    @property
    def facts(self) -> dict[str, Any]:
        """Public facts of the columns that the table is of, checked: those of the study where none are given."""
        return self._declared()[1]

    def plan(self, n: float | None = None) -> DataFrame:
        """How the budget is shared, and how much noise follows: before any data are read.

        Parameters
        ----------
        n : float, optional
            Persons in a group, for the noise of means; default: the declared number over the number of groups.

        Returns
        -------
        DataFrame
            A row each release: ``share``, and the sd of its noise for one group. The sd is in a count of persons, a
            mean (in the units of the column), or a cumulative count.
        """
        import pandas as pd

        privacy, facts, parts = self._declared()
        budget, part_of_budget = privacy.budget_share()
        if n is not None and not (is_number(n) and n > 0):
            raise InputError(f"n must be a number of persons above 0, got {n!r}")
        count = n if n is not None else privacy.n
        if count is not None and n is None and self.by is not None:
            count = count / len(facts[self.by])
        rows = []
        for part in parts:
            amount = part.share * part_of_budget * budget.total
            blocks = len(facts[self.by]) + 1 if part.grouped and self.by is not None else 1
            sd = part.question.planned_sd(amount, privacy.stated_adjacency, pure=budget.pure, blocks=blocks)
            if part.kind == MOMENTS:
                low, high = facts[part.column]
                rows.append((part.share, "a mean", sd * (high - low) / 2 / count if count else math.nan))
            elif part.kind == QUANTILES:
                rows.append((part.share, "a cumulative count", sd * part.question.typical))  # type: ignore[attr-defined]
            else:
                rows.append((part.share, "a count", sd))
        return pd.DataFrame(rows, columns=["share", "noise of", "sd"], index=[part.name for part in parts])

    @property
    def table_(self) -> DataFrame:
        """All estimates with their intervals, a row each."""
        check_is_fitted(self, "ledger_")
        return self.estimates_.frame.rename_axis(["column", "class", "statistic", "group"])

    def to_frame(self, level: float = LEVEL) -> DataFrame:
        """The table as it is printed: a column each group, cells as "value [low, high]"."""
        import pandas as pd

        check_is_fitted(self, "ledger_")
        fraction(level, "level")
        cells: dict[str, dict[str, str]] = {}
        groups = self._groups
        for (column, of, statistic, group), estimate, _ in self.estimates_.rows(level, True):
            label = f"{column}: {of}, {statistic}" if of != "" else f"{column}, {statistic}" if column else statistic
            percent = 100.0 if statistic == "%" else 1.0
            value, low, high = (percent * v for v in (estimate.value, estimate.low, estimate.high))
            decimals = 0 if statistic in COUNTS else decimals_for(high - low)
            text = f"{value:,.{decimals}f} [{low:,.{decimals}f}, {high:,.{decimals}f}]"
            cells.setdefault(label, {})[str(group)] = text
        return pd.DataFrame.from_dict(cells, orient="index").reindex(columns=[str(g) for g in groups]).fillna("")

    def summary(self, level: float = LEVEL) -> PrintedSummary:
        """The table: ``print`` it, ``as_html()``, ``as_latex()``."""
        frame = self.to_frame(level)
        rows = frame.to_numpy().tolist()
        title = f"Private table 1, intervals at {100 * level:g} %"
        table = PrintedTable(rows, list(frame.columns), list(frame.index), title)
        n = self.privacy_.n
        return PrintedSummary(
            [table],
            [
                f"Persons: {'private' if n is None else f'{n}, declared'}. Intervals of n and missing hold the noise,",
                "all others noise and sampling.",
                self.ledger_.headline,
                f"adjacency {self.privacy_.stated_adjacency}; details: ledger_",
            ],
        )

    def to_html(self, level: float = LEVEL) -> str:
        """The table as HTML, with the ledger's headline below."""
        return str(self.to_frame(level).to_html()) + f"<p>{self.ledger_.headline}</p>"

    def _repr_html_(self) -> str:
        return self.to_html() if hasattr(self, "estimates_") else str(super()._repr_html_())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a pickle-free file, without the budget; return its path."""
        check_is_fitted(self, "ledger_")
        noisy = [values for values, _ in self._released]
        content = {
            "privacy": privacy_to_json(self.privacy_),
            **_settings(self._facts, self._by, self._quantiles, self._steps),
            "ledger": self.ledger_.to_json(),
        }
        arrays = {"released": np.concatenate([values.ravel() for values in noisy])}
        arrays["sds"] = np.array([sd for _, sd in self._released])
        written = LAYOUT.write(path, content, arrays, released=self.ledger_.for_release)
        record_model(written, self.ledger_, self.privacy_)
        return written

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateTable1:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            Not such a file.
        """
        content, arrays = LAYOUT.read(path)
        with complete(path, LAYOUT.kind):
            facts = {
                name: tuple(fact["range"]) if "range" in fact else [_of_file(of) for of in fact["classes"]]
                for name, fact in content["columns"]
            }
            model = cls(
                privacy=privacy_from_json(content["privacy"]),
                columns=facts,
                by=content["by"],
                quantiles=tuple(content["quantiles"]),
                steps=dict(content["steps"]),
            )
            model.ledger_ = Ledger.from_json(content["ledger"])
            model.privacy_ = privacy = Privacy(**content["privacy"])
            parts = model._parts(facts, privacy)
            blocks = [1 + len(facts[content["by"]]) if part.grouped else 1 for part in parts]
            sizes = [block * part.question.size for block, part in zip(blocks, parts, strict=True)]
            if len(arrays["released"]) != sum(sizes):
                raise ValueError("released numbers are not those of the settings")
            flat = np.split(arrays["released"], np.cumsum(sizes)[:-1])
            noisy = [values.reshape(block, -1) for values, block in zip(flat, blocks, strict=True)]
            model._keep(facts, list(zip(noisy, map(float, arrays["sds"]), strict=True)))
        return model

    # ------------------------------------------------------------------ what is behind it

    def _declared(self) -> tuple[Privacy, dict[str, Any], list[PlannedRelease]]:
        check(self.privacy, LEVEL)
        privacy = self.privacy
        assert privacy is not None
        if self.columns is None or not isinstance(self.columns, Mapping):
            fixed = privacy.bounds_with(None)
            names = list(fixed) if self.columns is None else self.columns
            if isinstance(names, (str, bytes)) or not isinstance(names, Sequence) or not names:
                raise InputError(f"columns must be facts by column, or names of columns of a study, got {names!r}")
            unknown = [name for name in names if name not in fixed]
            if unknown:
                raise InputError(f"columns must be facts by column where no study has fixed them, as of {unknown[0]!r}")
            facts = checked_facts({name: fixed[name] for name in names})
        else:
            facts = checked_facts(self.columns)
            privacy.hold(facts.items())
        if self.by is not None and not (isinstance(self.by, str) and isinstance(facts.get(self.by), list)):
            known = ", ".join(str(name) for name, fact in facts.items() if isinstance(fact, list)) or "there is none"
            raise InputError(
                f"by must be one of the columns with classes ({known}), got {self.by!r}: its classes are public, and "
                "must be given as those of other columns"
            )
        if self.by is not None and ALL in map(str, facts[self.by]):
            raise InputError(
                f"columns[{self.by!r}] must have no class {ALL!r}, the name of all persons, to show groups by"
            )
        if len(facts) == 1 and self.by is not None:
            raise InputError(f"columns must name another column than {self.by!r}, by which groups are shown")
        return privacy, facts, self._parts(facts, privacy)

    def _parts(self, facts: dict[str, Any], privacy: Privacy) -> list[PlannedRelease]:
        quantiles, steps = self._asked()
        for name in steps:
            if not isinstance(facts.get(name), tuple):
                raise InputError(f"steps must be of columns of numbers, got one of {name!r}")
        plain(_settings(facts, self.by, quantiles, steps), "columns")  # or the table could not be saved
        n = None if privacy.n is None else float(privacy.n)
        return parts_of(facts, self.by, quantiles, steps, n, pure=privacy.delta is None)

    def _asked(self) -> tuple[tuple[float, ...], dict[str, float]]:
        """Quantiles and steps, checked."""
        if not isinstance(self.steps, Mapping | None):
            raise InputError(f"steps must be numbers by column, got {self.steps!r}")
        quantiles = () if np.size(self.quantiles) == 0 else quantile_list(self.quantiles, "quantiles")
        return quantiles, dict(self.steps or {})

    def _keep(self, facts: dict[str, Any], released: list[tuple[FloatArray, float]]) -> None:
        self._facts, self._released = facts, released
        self._by, (self._quantiles, self._steps) = self.by, self._asked()
        parts = self._parts(facts, self.privacy_)
        rows = partial(rows_of, tuple(parts), tuple(released), tuple(self._groups), facts, self._quantiles)
        self.estimates_ = Estimates("table 1", self.ledger_, rows, LEVEL)

    @property
    def _groups(self) -> list[Any]:
        return [ALL] if self._by is None else [ALL, *self._facts[self._by]]


def _settings(
    facts: Mapping[str, Any], by: str | None, quantiles: Sequence[float], steps: Mapping[str, float]
) -> dict[str, Any]:
    columns = [[name, {"classes": f} if isinstance(f, list) else {"range": list(f)}] for name, f in facts.items()]
    return {"columns": columns, "by": by, "quantiles": list(quantiles), "steps": dict(steps)}


def _of_file(of: Any) -> Any:
    """A class as it was before JSON, which has lists for tuples."""
    return tuple(map(_of_file, of)) if isinstance(of, list) else of


def _column(at: int, block: tuple[Any, ...]) -> FloatArray:
    return np.asarray(block[0][:, at])
