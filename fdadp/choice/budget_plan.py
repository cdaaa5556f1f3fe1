"""How a private choice shares out its budget, and what it can tell apart: from public values alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.base import is_classifier

from fdadp._common.argument_checks import flag, fraction
from fdadp.choice.candidates import described, names_labels
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.account.epsilon_mu_rho import amount_for
from fdadp.privacy.guarantee_checks import check_delta

OF_THE_SIZE = 0.2
"""Share of the choice's budget that goes to the size of differences."""
NINE_TO_ONE = 9
"""Odds at which a difference counts as found."""
USEFUL = 0.1
"""A choice that finds only larger differences than this, of utilities between 0 and 1, is not worth its budget."""
TRIAL_SHARES = tuple(share / 100 for share in range(20, 36))
"""Shares of the budget that trials, and in parallel the selection, may take by themselves: the first that is useful."""
SELECT_SHARES = tuple(share / 100 for share in range(5, 16))
"""The same of the selection alone, where its share is added to that of trials."""


class Step(NamedTuple):
    """One step of a private choice.

    Attributes
    ----------
    name : str
    persons : int or None
        Whose data it reads; None where n is private.
    share : float
        Of the budget that the choice has.
    epsilon : float
        The same as ε, at the budget's δ: ε of steps do not add up, shares do.
    """

    name: str
    persons: int | None
    share: float
    epsilon: float


@dataclass(frozen=True)
class ChoicePlan:
    """Plan of a private choice; ``print`` shows it.

    Attributes
    ----------
    steps : tuple of Step
        A trial of each candidate, what the choice takes, the fit of the chosen one. Of a choice that does not pay, and
        is not made all the same, the fit of the first candidate alone.
    candidates : tuple of str
    epsilon, delta
        Of the whole procedure.
    difference : float or None
        How much better than any other, in mean utility of a person (from 0 to 1), a candidate must be to be chosen nine
        times out of ten; None where n is private.
    pays : bool
        Whether the difference is at most a tenth. Then, or where nobody knows, candidates are tried and chosen among.
    accounting : {"gdp", "zcdp", "pure"}
        Measure of the budget that the shares are of.
    parallel : bool
        Whether trials and choice, which read different persons, together cost the larger of the two, not their sum. Not
        where persons are replaced: by one with another id, who may be in the other part. Nor in a study, which writes
        down every release.
    """

    steps: tuple[Step, ...]
    candidates: tuple[str, ...]
    epsilon: float
    delta: float | None
    difference: float | None
    pays: bool
    accounting: str
    parallel: bool

    def share(self, name: str) -> float:
        """Share of the step of this name."""
        return next(step.share for step in self.steps if step.name == name)

    @property
    def taken(self) -> float:
        """Share of the budget that trials and choice take together: all but the last fit's."""
        return 1 - self.steps[-1].share

    def __str__(self) -> str:
        delta = "" if self.delta is None else f", delta {self.delta:g}"
        lines = [
            f"Plan of a private choice among {len(self.candidates)} candidates, epsilon {self.epsilon:g}{delta}",
            "",
        ]
        lines += [f"  {at + 1}: {name}" for at, name in enumerate(self.candidates)]
        lines += ["", f"{'step':<30}{'persons':>9}{'share':>9}{'epsilon':>9}"]
        for step in self.steps:
            persons = "private" if step.persons is None else f"{step.persons:,}"
            lines.append(f"{step.name:<30}{persons:>9}{step.share:>9.2%}{step.epsilon:>9.3g}")
        if len(self.steps) > 1 and self.parallel:
            lines.append("Trials and choice read different persons: together they cost the larger of the two.")
        if self.difference is not None:
            lines += ["", f"Found nine times out of ten: a mean utility that is {self.difference:.2g} larger (of 1)."]
        if not self.pays:
            lines.append("That does not pay: the first candidate gets the whole budget, unless allow_useless=True.")
        return "\n".join(lines)


def plan_choice(
    candidates: Sequence[Any],
    privacy: Privacy,
    *,
    holdout: float = 0.25,
    trial_share: float | None = None,
    select_share: float | None = None,
    allow_useless: bool = False,
    n: int | None = None,
) -> ChoicePlan:
    """Plan :func:`fdadp.choose_privately`: what each candidate and the choice cost, before any data are read.

    Parameters
    ----------
    candidates, privacy, holdout, trial_share, select_share, allow_useless
        As of :func:`fdadp.choose_privately`.
    n : int, optional
        Number of persons to plan for, where none is declared.

    Raises
    ------
    InputError, PrivacyError
        A setting is out of range.

    Examples
    --------
    >>> from fdadp import Privacy
    >>> from fdadp.choice.budget_plan import plan_choice
    >>> from fdadp.learners import DPLinearRegression
    >>> lines = [DPLinearRegression(bounds=(-1, 1), bounds_y=(-1, 1), mechanism=m) for m in ("moments", "adassp")]
    >>> plan = plan_choice(lines, Privacy(1.0, 1e-6, n=3000))
    >>> [(step.name, step.persons, round(step.share, 2)) for step in plan.steps][2:]
    [('size of differences', 750, 0.04), ('choice', 750, 0.16), ('fit of the chosen one', 3000, 0.8)]
    """
    _check(candidates, privacy, holdout, trial_share, select_share, allow_useless)
    if n is not None and privacy.n is not None:
        raise InputError(f"n must be left out where {privacy.n} is declared, got {n!r}")
    people = privacy.n if n is None else n
    if people is not None:
        check_delta(privacy.delta, people)
    budget, share = privacy.budget_share(accounting_of(candidates))
    labelled = names_labels(candidates[0])
    judges = None if people is None else max(1, round(people * holdout))
    tried = None if people is None else max(1, round(people * (1 - holdout)))

    def difference_at(selection: float) -> float:
        of_choice = selection * (1.0 if labelled else 1 - OF_THE_SIZE)
        scale = _scale(budget, share * budget.total * of_choice, privacy.stated_adjacency)
        return scale * math.log(NINE_TO_ONE * (len(candidates) - 1)) / (judges or 1)

    parallel = privacy.stated_adjacency != "replace" and budget.in_memory

    def first_useful(shares: tuple[float, ...]) -> float:
        return next((one for one in shares if judges is not None and difference_at(one) <= USEFUL), shares[0])

    if trial_share is None:
        trial_share = first_useful(TRIAL_SHARES) if parallel and select_share is None else TRIAL_SHARES[0]
    if select_share is None:
        select_share = trial_share if parallel else first_useful(SELECT_SHARES)
    difference = None if judges is None else difference_at(select_share)
    of_size = 0.0 if labelled else OF_THE_SIZE * select_share
    rest = 1 - (max(trial_share, select_share) if parallel else trial_share + select_share)
    steps = [(f"trial of candidate {at + 1}", tried, trial_share / len(candidates)) for at in range(len(candidates))]
    steps += [("size of differences", judges, of_size)] * (not labelled)
    steps += [("choice", judges, select_share - of_size), ("fit of the chosen one", people, rest)]
    pays = difference is None or difference <= USEFUL
    if not pays and not allow_useless:
        steps = [("fit of the first candidate", people, 1.0)]
    return ChoicePlan(
        steps=tuple(
            Step(name, persons, part, budget.epsilon_of(share * budget.total * part)) for name, persons, part in steps
        ),
        candidates=tuple(map(described, candidates)),
        epsilon=float(privacy.epsilon),
        delta=privacy.delta,
        difference=difference,
        pays=pays,
        accounting=budget.accounting,
        parallel=parallel,
    )


def accounting_of(candidates: Sequence[Any]) -> str:
    """Measure of a new budget: zCDP where all candidates select most of the time."""
    return "zcdp" if all(getattr(one, "_accounting", "gdp") == "zcdp" for one in candidates) else "gdp"


def _scale(budget: Budget, amount: float, adjacency: str) -> float:
    """Scale of the noise of the selection, in persons: the odds of two candidates are e^(difference/scale)."""
    sensitivity = 1.0 if adjacency == "replace" else 0.5
    if budget.pure:
        return 2 * sensitivity / amount
    return sensitivity / math.sqrt(2 * amount_for(budget.accounting, "gumbel", amount))


def _check(
    candidates: Sequence[Any],
    privacy: Any,
    holdout: float,
    trial_share: float | None,
    select_share: float | None,
    allow_useless: bool,
) -> None:
    """Public validation of the settings of a choice."""
    if len(candidates) < 2:
        raise InputError(f"candidates must be at least two estimators, got {len(candidates)}")
    most = SELECT_SHARES[0] if select_share is None else select_share
    tried = TRIAL_SHARES[0] if trial_share is None else trial_share
    for name, value in (("holdout", holdout), ("trial_share", tried), ("select_share", most)):
        fraction(value, name)
    if tried + most >= 1:
        raise InputError(
            f"trial_share and select_share must leave something for the fit of the chosen candidate, got "
            f"{tried:g} + {most:g}"
        )
    flag(allow_useless, "allow_useless")
    for one in candidates:
        if not hasattr(one, "get_params"):
            raise InputError(f"candidates must be private estimators of fdadp, got {type(one).__name__}")
    if len({bool(is_classifier(one)) for one in candidates}) > 1:
        raise InputError("candidates must be all classifiers or none")
    if not isinstance(privacy, Privacy):
        raise InputError(f"privacy must be a Privacy, got {type(privacy).__name__}")
    privacy.check_adjacency()
    if privacy.budget is not None and privacy.dataset is None:
        raise PrivacyError("dataset must name the data where a budget is shared, got None")
