"""``Privacy``: the guarantee that a fit is to have, declared before any data are read. Knows nothing of curves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fdadp._common.argument_checks import is_one_of
from fdadp._common.calling_language import advice
from fdadp._common.estimators import Parameters
from fdadp.errors import PrivacyError
from fdadp.privacy.guarantee_checks import ADJACENCIES, as_float, check_delta, said_delta, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fdadp.privacy.account.budget import Budget
    from fdadp.privacy.cohort import Cohort
    from fdadp.privacy.noise.sources import Noise

UNIT_NAMES = ("row", "person")
OF_A_STUDY = ("delta", "n", "adjacency", "unit")
"""What a study fixes for every fit."""
MATCHING = {
    None: "position; labels were not looked at",
    "public": "position, and labels declared public that were found equal",
}
JOINED = (
    "a person without a row in a table, or with several that differ, has nothing there. The id is the person: one "
    "person under several ids is several, and a wrong id is charged to both"
)


LARGEST = 1e15
"""Of ε and of n: sums and scales of noise stay within floats."""


@dataclass(frozen=True, repr=False)
class Privacy(Parameters):
    """The guarantee of a private fit: how much may be spent, and what it protects from whom.

    Parameters
    ----------
    epsilon : float
        Budget, > 0. (With the published scheme, which has no end-to-end guarantee: the ε of each component's noise
        Laplace(Δ_k/ε), as that literature states it.)
    delta : float, optional
        For (ε, δ) mechanisms, in (0, 1), below 1/n, and at most 0.001 where n is private. Left out or 0
        means pure ε, here as in R and in the shell.
    n : int, optional
        Declared public number of persons; makes the adjacency ``"zero-out"``.
    adjacency : {"zero-out", "add-remove", "replace"}, optional
        Default: ``"zero-out"`` where n is declared, else ``"add-remove"``.
    unit : {"row", "person"}, optional
        Whom the guarantee protects. ``"person"``: all rows with one id in ``groups=``, which must then be given, or
        the fit is refused before it reads a row (tools that fit for you may drop them). ``"row"``: one row, and groups
        are refused. Default: person where groups are given, else row; the ledger says which.
    labels : {"public"}, optional
        ``"public"``: labels of rows (the index of data frames and series), and which table has them, are public. Fits
        then refuse tables of other labels before they read; n must be declared. Default: labels are private. Where all
        tables have some, the kernel joins rows by them, and refuses none (``docs/theory/kernel.md#join``); else rows
        belong together by their position, as the ledger says.
    budget : Budget, optional
        A budget shared with other fits of the same arrays and persons, with the same δ. This fit takes as much of it
        as `epsilon` says, in the measure of the budget; it refuses the fit that would overspend. Default: a budget of
        its own.
    dataset : str, optional
        Public name of the data, by which a shared budget knows them again; default: their place in memory.
    random_state : int, optional
        Seeded noise, for simulations only: the ledger then says "not for release".
    study : path, optional
        File of a :class:`~fdadp.Study`, whose δ, n, adjacency and unit hold, and which this fit draws on. Clones,
        copies in other processes, and fits from R or the command line that name the file do so, too. Not beside
        `budget`, `dataset` or `random_state`.
    purpose : str, optional
        What the fit is for, in public: a study writes it down.

    Raises
    ------
    PrivacyError
        A setting is missing, out of range or unknown. Always raised before any data are read.

    Notes
    -----
    Frozen: attributes cannot be assigned. :meth:`set_params` checks all of what results and then changes it, or changes
    nothing; an estimator's ``set_params(privacy__epsilon=1)`` changes a copy. A fit keeps a copy (``privacy_``), so
    that what it says it spent stays. Copies and clones share the budget.

    Bounds of the data, the mechanism and the prior are the estimator's: ``bounds=``, ``mechanism=``, ``prior=``.

    Examples
    --------
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000)
    >>> privacy
    Privacy(epsilon=1.0, delta=1e-06, n=3000)
    >>> privacy.set_params(epsilon=0.5).epsilon
    0.5
    """

    epsilon: float
    delta: float | None = None
    n: int | None = None
    adjacency: str | None = None
    unit: str | None = None
    labels: str | None = None
    budget: Budget | None = None
    dataset: str | None = None
    random_state: int | None = None
    study: str | None = None
    purpose: str | None = None

    __hash__ = None  # type: ignore[assignment]  # set_params may change it

    def __post_init__(self) -> None:
        if self.study is not None:
            self._take_from_study()
        if not (self.purpose is None or isinstance(self.purpose, str)):
            raise PrivacyError(f"purpose must be a text, got {self.purpose!r}")
        epsilon = as_float(self.epsilon)
        if not epsilon > 0:
            raise PrivacyError(f"epsilon must be a number above 0, got {self.epsilon!r}")
        if epsilon > LARGEST:
            raise PrivacyError(f"epsilon must be at most {LARGEST:g}, got {epsilon:g}")
        if type(self.epsilon) is not int:  # NumPy's numbers as Python's, which can be saved
            object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", said_delta(self.delta))
        if not is_one_of(self.adjacency, (*ADJACENCIES, None)):
            raise PrivacyError(f"adjacency must be one of {', '.join(ADJACENCIES)} or None, got {self.adjacency!r}")
        if not is_one_of(self.unit, (*UNIT_NAMES, None)):
            raise PrivacyError(f"unit must be one of {', '.join(UNIT_NAMES)} or None, got {self.unit!r}")
        if not is_one_of(self.labels, (None, "public")):
            raise PrivacyError(f"labels must be 'public' or None, got {self.labels!r}")
        if self.labels == "public" and self.stated_adjacency == "add-remove":
            raise PrivacyError(
                "labels must be None where the number of persons is private, for they tell it; or declare n"
            )
        if self.n is not None:
            object.__setattr__(self, "n", whole(self.n, "n", "the declared number of persons"))
            if self.n > LARGEST:
                raise PrivacyError(f"n must be at most {LARGEST:g} persons, got {as_float(self.n):g}")
        if self.random_state is not None:
            object.__setattr__(self, "random_state", whole(self.random_state, "random_state", "a seed", least=0))

    def _take_from_study(self) -> None:
        """Take what the study has fixed; refuse what is not the same."""
        from fdadp.privacy.study import Study

        for name in ("budget", "dataset", "random_state"):
            if getattr(self, name) is not None:
                raise PrivacyError(f"{name} must be left out where study is given, got {getattr(self, name)!r}")
        if not isinstance(self.study, (str, os.PathLike)):
            raise PrivacyError(f"study must be a path, got {type(self.study).__name__}")
        of = Study(self.study)
        object.__setattr__(self, "study", str(of.path))
        for name in OF_A_STUDY:
            given, fixed = getattr(self, name), of.facts[name]
            if given is not None and given != (fixed or 0):  # δ of 0: pure ε
                raise PrivacyError(f"{name} must be that of the study, {fixed!r}, got {given!r}; nothing was read")
            object.__setattr__(self, name, fixed)

    def set_params(self, **params: Any) -> Privacy:
        """Change parameters: all of them, or none where what results is refused.

        Where another study is set, what the one before had fixed goes with it.
        """
        if self.study is not None and "study" in params:
            params = dict.fromkeys(OF_A_STUDY) | params
        return super().set_params(**params)

    def bounds_with(self, bounds: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Public facts of columns: those that are given, and those that a study has fixed.

        Parameters
        ----------
        bounds : mapping, optional
            (low, high) or levels by column.

        Raises
        ------
        PrivacyError
            Of a column of the study others are given.
        """
        fixed = self.hold((bounds or {}).items())
        return fixed | dict(bounds or {})

    def hold(self, stated: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Refuse other public facts of columns than those that a study has fixed; return these.

        Parameters
        ----------
        stated : iterable of (column, facts)
            (low, high), or a list of levels, whose order means nothing.

        Raises
        ------
        PrivacyError
        """
        from fdadp.privacy.account.budget import Budget

        budget = self._given_budget
        fixed = budget.columns if isinstance(budget, Budget) else {}
        for name, given in stated:
            if name in fixed and not _same(given, fixed[name]):
                raise PrivacyError(
                    f"bounds of {name} must be those of the study, {fixed[name]!r}, or left out, got {given!r}; "
                    "nothing was read and nothing was spent"
                )
        return fixed

    def check(self) -> None:
        """Refuse what cannot be had, from public values alone, before any data are read.

        Raises
        ------
        PrivacyError
            An adjacency that does not fit a declared n, δ of 1/n or more, or a budget that does not suit.
        """
        self.check_adjacency()
        if self.n is not None:
            check_delta(self.delta, self.n)
        self.budget_share()

    def check_adjacency(self) -> None:
        """Refuse an adjacency that does not suit n; raises PrivacyError."""
        if (self.n is None) != (self.stated_adjacency == "add-remove"):
            raise PrivacyError(
                f"n must be {'declared' if self.n is None else 'left out'} with adjacency {self.adjacency!r}, "
                f"got {self.n}"
            )

    def check_unit(self, groups: Any) -> None:
        """Refuse persons where rows were asked for, and the other way round.

        Parameters
        ----------
        groups : object or None
            What says which rows are one person's; it is not looked at.

        Raises
        ------
        PrivacyError
        """
        if self.unit == "person" and groups is None:
            raise PrivacyError(
                "groups must be the person id of every row where unit is 'person', got None; nothing was read and "
                "nothing was spent. docs/your-csv.md has an example. "
                + advice(
                    "scikit-learn's tools drop groups unless sklearn.set_config(enable_metadata_routing=True) and "
                    "the estimator's set_fit_request(groups=True)",
                    r="Say groups =, the id of each row",
                    shell="Say --groups COLUMN, or join files by --id COLUMN",
                )
            )
        if self.unit == "row" and groups is not None:
            raise PrivacyError("groups must be left out where unit is 'row'; nothing was read and nothing was spent")

    @property
    def _said(self) -> dict[str, str]:
        return {} if self.purpose is None else {"purpose": self.purpose}

    @property
    def stated_adjacency(self) -> str:
        """The adjacency, by default ``"zero-out"`` where n is declared and ``"add-remove"`` where it is not."""
        return self.adjacency or ("add-remove" if self.n is None else "zero-out")

    @property
    def _given_budget(self) -> Any:
        """The study's budget, or the shared one; None where this fit has its own."""
        if self.study is None:
            return self.budget
        from fdadp.privacy.study import Study

        return Study(self.study).budget

    def budget_share(self, accounting: str = "gdp") -> tuple[Budget, float]:
        """Return the budget to spend from, a new one unless shared, and the share of it that ε and δ amount to.

        Parameters
        ----------
        accounting : {"gdp", "zcdp"}
            Of a new budget with a δ; a shared one has its own.

        Raises
        ------
        PrivacyError
            `budget` is no Budget, has another δ, or is smaller than this fit's ε.
        """
        from fdadp.privacy.account.budget import Budget

        budget = self._given_budget
        if budget is None:
            return Budget(self.epsilon, self.delta, accounting=accounting), 1.0
        if not isinstance(budget, Budget):
            raise PrivacyError(f"budget must be a Budget, got {type(budget).__name__}")
        what = "shared budget" if self.study is None else "study"
        if budget.delta != self.delta:
            raise PrivacyError(
                f"delta must be that of the {what}, {budget.delta}, got {self.delta}: what is counted in different "
                "measures cannot be added up"
            )
        own = Budget(self.epsilon, self.delta, accounting="gdp" if budget.pure else budget.accounting)
        share = own.total / budget.total
        if share > 1 + 1e-9:
            raise PrivacyError(f"epsilon must be at most that of the {what}, {budget.epsilon:g}, got {self.epsilon:g}")
        return budget, min(share, 1.0)

    def cohort(
        self,
        data: Any,
        *,
        groups: Any = None,
        mechanism: str,
        public: Mapping[str, Any],
        noise: Noise | None = None,
        estimator: Any = None,
        accounting: str = "gdp",
        person_rows: str = "mean",
        max_rows: int | None = None,
    ) -> Cohort:
        """Put data behind a cohort that has reserved what these settings amount to; no row is read.

        Parameters
        ----------
        data, groups
            As :class:`fdadp.privacy.Cohort` takes them.
        mechanism, public
            Name and public inputs, for the ledger.
        noise : Noise, optional
            Instead of OpenDP's, or of that seeded by `random_state`. For audits. By default that of
            :func:`fdadp.privacy.noise.distributed.noise_source`, where a fit runs inside one.

        estimator : object, optional
            That is fitted: where it is not the first time, and on no common budget, a NotAccountedWarning says so.
        accounting : {"gdp", "zcdp"}
            Of a budget of its own; "zcdp" suits mechanisms that spend most of it on selections.
        person_rows, max_rows
            How rows of a person are combined, as of :class:`fdadp.privacy.Cohort`.

        Raises
        ------
        PrivacyError
            As the Cohort does; the budget is not there.
        """
        from fdadp.privacy._unaccounted_fits import earlier_fits
        from fdadp.privacy.cohort import Cohort
        from fdadp.privacy.joined_tables import Joined
        from fdadp.privacy.noise.distributed import current_noise
        from fdadp.privacy.noise.sources import OpenDPNoise, SeededNoise

        joined = isinstance(data, Joined)
        if joined and self.unit == "row":
            raise PrivacyError(
                "by must be 'position' where unit is 'row', for rows of one label are one person; nothing was read and "
                "nothing was spent"
            )
        self.check_unit(data if joined else groups)
        budget, share = self.budget_share(accounting)
        noise = noise or current_noise()
        alone = noise is None and self.budget is None and self.study is None and self.random_state is None
        if noise is None:
            noise = OpenDPNoise() if self.random_state is None else SeededNoise(self.random_state)
        matching = f"joined by {data.name}; {JOINED}" if joined else MATCHING[self.labels]
        cohort = Cohort(
            data,
            groups=groups,
            budget=budget,
            adjacency=self.stated_adjacency,
            n=self.n,
            noise=noise,
            person_rows=person_rows,
            max_rows=max_rows,
            share=share,
            dataset=self.dataset,
            mechanism=mechanism,
            public={**public, "rows belong together by": matching, **self._said},
        )
        if alone:
            cohort.others = earlier_fits(data, dataset=self.dataset, estimator=estimator)
        return cohort


def _same(given: Any, fixed: Any) -> bool:
    """Whether a range is the same, or levels are, in any order."""
    try:
        given = list(given)
    except TypeError:
        return False
    if isinstance(fixed, tuple):
        return bool(given == list(fixed))
    return len(given) == len(fixed) and all(level in given for level in fixed)


# Private settings in files: what a fit was declared with, without live objects.


def privacy_to_json(privacy: Privacy | None) -> dict[str, Any] | None:
    """Settings without the budget, a live object of one session, and without the place of a study."""
    if privacy is None:
        return None
    return privacy.get_params() | {"budget": None, "study": None}


def privacy_from_json(stored: dict[str, Any] | None) -> Privacy | None:
    """Read what :func:`privacy_to_json` made."""
    return None if stored is None else Privacy(**stored)
