"""``choose_privately``: candidates tried on some persons, chosen among by their errors on the others, fitted to all.

Everything draws on one budget: a trial of each candidate, the selection, and the fit of the chosen one. One public
split is used for trials and selection; which part a person is in depends on that person's id alone (or on its place in
the table, where n is declared), so that neighbouring data have neighbouring parts. Proof:
``docs/theory/accounting.md#choice``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp._common.calling_language import warn
from fdadp._common.typing import ArrayLike
from fdadp.choice.budget_plan import ChoicePlan, accounting_of, plan_choice
from fdadp.choice.candidates import ROUNDING, Data, configured, named, rehearse
from fdadp.choice.held_out_errors import Judges, clip_of
from fdadp.errors import PrivacyError, PublicInputWarning
from fdadp.privacy import Budget, Cohort, Ledger, Privacy
from fdadp.privacy.account.budget import apart
from fdadp.privacy.noise.distributed import current_noise
from fdadp.privacy.noise.sources import Noise, OpenDPNoise, SeededNoise
from fdadp.privacy.private_entries import check_ids, entries, person_of

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class PrivateChoice:
    """What :func:`choose_privately` found.

    Attributes
    ----------
    estimator : estimator
        The chosen candidate, fitted to all persons.
    index : int
        Its place among the candidates.
    ledger : Ledger
        Of the whole procedure: trials, selection and fit.
    plan : ChoicePlan
        How the budget was shared out; whether a choice was made at all.
    """

    estimator: Any
    index: int
    ledger: Ledger
    plan: ChoicePlan


def choose_privately(
    candidates: Sequence[Any],
    X: Any,
    Y: Any,
    privacy: Privacy,
    groups: Any = None,
    *,
    grids: Mapping[str, ArrayLike] | None = None,
    clip: float | None = None,
    holdout: float = 0.25,
    trial_share: float | None = None,
    select_share: float | None = None,
    allow_useless: bool = False,
) -> PrivateChoice:
    """Try candidates, choose one by its errors on persons that none was fitted to, and fit it, within one (ε, δ).

    Parameters
    ----------
    candidates : sequence of estimators
        Private learners that classify or predict numbers, or AdditiveFunctionOnFunction, or FunctionalRegression, or
        ScalarRegression, of one response. Unfitted and public; the first is the one to take where a choice does not
        pay. What they say of ε, δ, n, adjacency, unit, budget, study and seed is replaced.
    X, Y : array_like, data frame or mapping
        As ``fit`` takes them: tables of numbers with labels or numbers (n,), or curves (n, S) and (n, T). Or a table by
        columns, and None where the response is one of them.
    privacy : Privacy
        Of the whole procedure.
    groups : array_like of shape (n,), or name of a column, optional
        Person of each row. Without it every row is a person, and n must be declared: positions are then public.
    grids : mapping of str to array_like, optional
        Points of curves that are plain arrays, by column.
    clip : float, optional
        Error of a person at which it is cut off, in squared units of Y; public. Default: the square of a quarter of the
        declared range of Y. Classifiers are judged by wrong labels.
    holdout : float
        Share of the persons that judge.
    trial_share : float, optional
        Share of the budget for all trials together; the fit of the chosen one has what is left. Default: the smallest
        of .2 to .35 with which the selection, if it has as much, finds differences of a tenth, else .2.
    select_share : float, optional
        Share of the budget for the selection. Default: `trial_share`, for trials and selection read different persons
        and cost together what the dearer costs. Where persons are replaced they cost their sum; default there: the
        smallest of .05 to .15 with which differences of a tenth are found, else .05.
    allow_useless : bool
        Choose even where the plan says that noise will (``ChoicePlan.pays``). Default: the first candidate is then
        fitted with the whole budget.

    Returns
    -------
    PrivateChoice

    Raises
    ------
    InputError, PrivacyError
        Something public is wrong, of the choice or of a candidate, which is then named: nothing was read or spent. With
        private n also where a released number of persons is too small for a fit.

    Warns
    -----
    PublicInputWarning
        The choice does not pay, and was not made.

    Notes
    -----
    A person's utility for a candidate is one half plus the mean error of all candidates less its own error. The mean
    cancels what no candidate can explain. The utility is cut off to [0, 1] at a released size of differences. The
    kernel adds up utilities, and :meth:`~fdadp.privacy.Cohort.select` gives the index.

    Examples
    --------
    >>> from fdadp.learners import DPGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> make = lambda priors: DPGaussianNB(classes=[0, 1], bounds=(-1, 1), priors=priors)
    >>> found = choose_privately([make([0.999, 0.001]), make(None)], X, y, Privacy(4.0, n=2000, random_state=0))
    >>> found.index, found.ledger.epsilon
    (1, 4.0)
    """
    plan = plan_choice(
        candidates,
        privacy,
        holdout=holdout,
        trial_share=trial_share,
        select_share=select_share,
        allow_useless=allow_useless,
    )
    clip = clip_of(candidates, privacy, clip)
    data = Data(X, Y, dict(grids or {}))
    if isinstance(groups, str):
        groups = data.X[groups]
    privacy.check_unit(groups)
    if groups is None and privacy.n is None:
        raise PrivacyError(
            "groups must name persons where n is private, got None. The place of a row is not public there. Declare n, "
            "or give ids"
        )
    run = _Procedure.of(candidates, data, privacy, groups, plan, holdout)
    if len(plan.steps) == 1:
        return run.first()
    return run.choice(clip)


@dataclass(frozen=True)
class _Procedure:
    """The steps of a choice, on one budget."""

    candidates: tuple[Any, ...]
    data: Data
    privacy: Privacy
    ids: Any
    plan: ChoicePlan
    budget: Budget
    share: float
    dataset: str
    held: tuple[bool, ...]
    holdout: float

    @classmethod
    def of(
        cls, candidates: Sequence[Any], data: Data, privacy: Privacy, groups: Any, plan: ChoicePlan, holdout: float
    ) -> _Procedure:
        """Public checks of the budget, and the split."""
        n_rows = len(data)
        ids = None if groups is None else entries(check_ids(groups, n_rows, "groups"))
        budget, share = privacy.budget_share(accounting_of(candidates))
        if budget.left < share * budget.total * ROUNDING:
            raise PrivacyError(f"the budget must have what the choice takes, {share:g} of it, got {budget!r}")
        dataset = privacy.dataset or f"rows of private choice {next(_NUMBERS)}"
        held = _split(range(n_rows) if ids is None else ids, holdout)
        return cls(tuple(candidates), data, privacy, ids, plan, budget, share, dataset, held, holdout)

    def model(self, at: int, name: str, n: int | None, step: int) -> Any:
        """Candidate with what the plan gives a step."""
        part = self.share * self.plan.share(name)
        return configured(self.candidates[at], self.privacy, self.budget, part, self.dataset, n=n, step=step)

    def part(self, held: bool) -> tuple[Data, Any]:
        """Data and ids of those who judge, or of the others: rows of other persons are nobody's, or left out."""
        if self.ids is not None:
            return self.data, [one if out == held else None for one, out in zip(self.ids, self.held, strict=True)]
        return self.data.at(np.flatnonzero(np.array(self.held) == held)), None

    def first(self) -> PrivateChoice:
        """No choice: the first candidate, with the whole budget."""
        name = self.plan.steps[0].name
        models = [self.model(at, name, self.privacy.n, at) for at in range(len(self.candidates))]
        rehearse(models, self.data, self.ids)
        model = self.data.fit(models[0], self.ids)
        warn(
            f"a choice among {len(self.candidates)} candidates does not pay at this epsilon and n. The first one was "
            "fitted with the whole budget (docs/choice.md). allow_useless=True chooses all the same",
            PublicInputWarning,
        )
        return PrivateChoice(model, 0, model.ledger_, self.plan)

    def choice(self, clip: float | None) -> PrivateChoice:
        """Trials, selection, and the fit of the chosen one."""
        data, ids = self.part(held=False)
        n = self.privacy.n
        declared = None if n is None else max(1, round(n * (1 - self.holdout)))
        models = [self.model(at, f"trial of candidate {at + 1}", declared, at) for at in range(len(self.candidates))]
        rehearse(models, data, ids)
        trials = choice = self.budget
        if self.plan.parallel:
            trials, choice = apart(self.budget, self.share * self.plan.taken)
        for at, model in enumerate(models):
            getattr(model, "privacy", model).set_params(budget=trials)
            with named(at, model):
                data.fit(model, ids)
        index, judged = self._select(models, clip, choice)
        chosen = self.model(index, "fit of the chosen one", self.privacy.n, len(models))
        self.data.fit(chosen, self.ids)
        tried = [(f"candidate {at + 1}", model.ledger_) for at, model in enumerate(models)]
        split = f"{self.dataset}, {self.holdout:g} held out" if self.plan.parallel else ""
        ledger = _together([*tried, ("", judged), ("chosen", chosen.ledger_)], self.budget, split)
        return PrivateChoice(chosen, index, ledger, self.plan)

    def _select(self, models: Sequence[Any], clip: float | None, budget: Budget) -> tuple[int, Ledger]:
        """The index of the chosen one, and the ledger of its choice, on a budget."""
        data, ids = self.part(held=True)
        judges = Judges.of(models, data, ids, clip)
        of_size = 0.0 if judges.classes else self.plan.share("size of differences")
        whole = of_size + self.plan.share("choice")
        public: dict[str, Any] = {
            "candidates": "; ".join(self.plan.candidates),
            "judged by": f"{self.holdout:g} of the persons",
            "error cut off at": "wrong labels" if judges.classes else judges.clip,
        }
        if self.privacy.purpose is not None:
            public["purpose"] = self.privacy.purpose
        cohort = Cohort(
            judges.data,
            groups=ids,
            budget=budget,
            adjacency=self.privacy.stated_adjacency,
            n=self.privacy.n,
            noise=current_noise() or self._noise(len(models) + 1),
            share=self.share * whole * ROUNDING,
            dataset=self.dataset,
            mechanism=f"private choice among {len(models)} estimators",
            public=public,
        )
        of_errors = cohort.derive(judges.errors, name="errors of the candidates")
        scale = 1.0
        if of_size:
            counts = of_errors.histogram(judges.size, share=of_size / whole, name="choice: size of differences")
            scale = judges.scale(counts.value)
        index = of_errors.select(judges.utilities(scale), share=1 - of_size / whole, name="choice")
        return index, cohort.ledger

    def _noise(self, step: int) -> Noise:
        if self.privacy.random_state is None:
            return OpenDPNoise()
        return SeededNoise(np.random.default_rng([self.privacy.random_state, step]))


def _split(ids: Iterable[Any], holdout: float) -> tuple[bool, ...]:
    """Whether the person of each row judges."""
    return tuple(_held(one, holdout) for one in ids)


def _held(one: Any, holdout: float) -> bool:
    """Whether a person is held out for the choice, decided by a public hash of the id."""
    text = repr(person_of(one)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(b"fdadp choice " + text).digest()[:8], "big") < holdout * 2**64


def _together(steps: Sequence[tuple[str, Ledger]], budget: Budget, split: str) -> Ledger:
    """One ledger of all steps: the last two are the selection, and the fit, of which the public inputs are told.

    `split`: what tells those who are tried on from those who judge; empty where both are charged.
    """
    parts = [*["trials"] * (len(steps) - 2), "choice", ""] if split else [""] * len(steps)
    releases = [
        dataclasses.replace(
            release,
            name=f"{name}: {release.name}" if name else release.name,
            part=part,
            split=split if part else "",
        )
        for (name, ledger), part in zip(steps, parts, strict=True)
        for release in ledger.releases
    ]
    *trials, (_, selection), (_, chosen) = steps
    kept = all(ledger.private for _, ledger in steps)
    details = chosen.details | selection.details
    for name in ("spent by its releases", "reserved by this fit"):
        both = math.fsum(ledger.details[name] for _, ledger in trials), selection.details[name]
        details[name] = (max(both) if split else sum(both)) + chosen.details[name]
    details["spent by its releases, as epsilon"] = budget.epsilon_of(details["spent by its releases"])
    if split:
        details["trials and choice"] = "read different persons, so that together they cost the larger of the two"
    return dataclasses.replace(
        selection,
        releases=releases,
        private=kept,
        for_release=kept and all(ledger.for_release for _, ledger in steps),
        details=details,
    )
