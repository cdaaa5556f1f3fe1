"""Private choice among private models: candidates fitted on some persons, chosen by their errors on the others.

Everything draws on one budget: each candidate's fit, and the selection. One public split into two parts is used; which
part a person is in depends on that person's id alone (or on its place in the table, where n is declared), so that
neighbouring data have neighbouring parts. Proof: ``docs/theory/accounting.md#choice``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError, PrivacyError
from fdadp.learners.encoding import Categorical
from fdadp.learners.inputs import as_target
from fdadp.privacy import Budget, Cohort, Ledger, Privacy
from fdadp.privacy._statement import UNITS
from fdadp.privacy.boundary import check_ids, labels, person_of, table
from fdadp.privacy.boundary.tables import entries
from fdadp.privacy.distributed import current_noise
from fdadp.privacy.noise import OpenDPNoise, SeededNoise

__all__ = ["PrivateChoice", "choose_privately"]

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class PrivateChoice:
    """What :func:`choose_privately` found.

    Attributes
    ----------
    estimator : estimator
        The chosen candidate, fitted on its part of the persons.
    index : int
        Its place among the candidates.
    ledger : Ledger
        Of the whole procedure: all fits and the selection.
    """

    estimator: Any
    index: int
    ledger: Ledger


def choose_privately(
    candidates: Sequence[Any],
    X: Any,
    Y: Any,
    privacy: Privacy,
    groups: ArrayLike | None = None,
    *,
    clip: float | None = None,
    holdout: float = 0.25,
    select_share: float = 0.1,
) -> PrivateChoice:
    """Fit every candidate and choose one by its errors on persons that none was fitted to, within one (ε, δ).

    Parameters
    ----------
    candidates : sequence of estimators
        Private learners that classify or predict numbers, or AdditiveFunctionOnFunction; all of one kind, unfitted.
        Public. What they say of ε, δ, n, adjacency, unit, budget and seed is replaced.
    X, Y : array_like
        As ``fit`` takes them: tables of numbers with labels or numbers (n,), or curves (n, S) and (n, T) as arrays.
    privacy : Privacy
        Of the whole procedure.
    groups : array_like of shape (n,), optional
        Person of each row. Without it every row is a person, and n must be declared: positions are then public.
    clip : float, optional
        Error of a person at which it is cut off, in squared units of Y; public. Default: the square of a quarter of the
        declared range of Y. Classifiers are judged by wrong labels.
    holdout : float
        Share of the persons that judge.
    select_share : float
        Share of the budget for the selection; the fits have equal parts of the rest.

    Returns
    -------
    PrivateChoice

    Raises
    ------
    InputError, PrivacyError
        Something public is wrong: nothing was read or spent, unless a later candidate is the one that refuses its fit.

    Notes
    -----
    A person's utility for a candidate is 1 less its mean clipped error over its rows, in [0, 1]; the kernel adds them
    up, and :meth:`~fdadp.privacy.Cohort.select` gives the index. The winner is not fitted again on all persons.

    Examples
    --------
    >>> from fdadp.learners import DPGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> make = lambda priors: DPGaussianNB(classes=[0, 1], bounds=(-1, 1), priors=priors)
    >>> found = choose_privately([make([0.999, 0.001]), make(None)], X, y, Privacy(1.0, n=2000, random_state=0))
    >>> found.index, found.ledger.epsilon
    (1, 1.0)
    """
    models = [clone(candidate) for candidate in candidates]
    if len(models) < 2:
        raise InputError(f"candidates must be at least two estimators, got {len(models)}")
    for name, value in (("holdout", holdout), ("select_share", select_share)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1, got {value!r}")
    if not isinstance(privacy, Privacy):
        raise InputError(f"privacy must be a Privacy, got {type(privacy).__name__}")
    privacy.check_adjacency()
    privacy.check_unit(groups)
    if groups is None and privacy.study is not None:
        raise PrivacyError(
            "study must be of unit 'person' for a private choice, with groups, got one of rows: places in a table "
            "would stand for persons; nothing was read and nothing was spent"
        )
    if groups is None and privacy.n is None:
        raise PrivacyError(
            "groups must name persons where n is private, got None: places in a table that a person may be missing "
            "from are not public; declare n, or give ids"
        )
    if privacy.budget is not None and privacy.dataset is None:
        raise PrivacyError("dataset must name the data where a budget is shared, got None")
    selecting = all(getattr(model, "_accounting", "gdp") == "zcdp" for model in models)
    budget, share = privacy.budget_share("zcdp" if selecting else "gdp")
    rows = (table(X, "X"), _target(models, Y))
    ids = range(len(rows[0])) if groups is None else entries(check_ids(groups, len(rows[0]), "groups"))
    clip = None if is_classifier(models[0]) else _clip(models, clip)
    judge = _judge(models, clip)
    name = privacy.dataset or f"rows of private choice {next(_NUMBERS)}"
    part = share * (1 - select_share) / len(models) * (1 - 1e-9)
    n = None if privacy.n is None else max(1, round(privacy.n * (1 - holdout)))
    for at, model in enumerate(models):
        _set(model, privacy, budget, part, name, n, at)
    if budget.left < share * budget.total * (1 - 1e-9):
        raise PrivacyError(f"the budget must have what the choice takes, {share:g} of it, got {budget!r}")
    held = [_held(one, holdout) for one in ids]
    others = [None if out else one for one, out in zip(ids, held, strict=True)]
    for model in models:
        model.fit(X, Y, groups=others)
    noise = current_noise()
    if noise is None:
        noise = OpenDPNoise() if privacy.random_state is None else SeededNoise(privacy.random_state)
    cohort = Cohort(
        rows,
        groups=[one if out else None for one, out in zip(ids, held, strict=True)],
        budget=budget,
        adjacency=privacy.stated_adjacency,
        n=privacy.n,
        noise=noise,
        share=share * select_share,
        dataset=name,
        mechanism=f"private choice among {len(models)} estimators",
        public={
            "candidates": "; ".join(" ".join(str(candidate).split()) for candidate in candidates),
            "judged by": f"{holdout:g} of the persons",
            "error cut off at": "wrong labels" if is_classifier(models[0]) else clip,
        },
    )
    index = cohort.select(judge, share=1.0, name="choice")
    ledgers = [model.ledger_ for model in models] + [cohort.ledger]
    if groups is None:  # places were ids, so that a part could be left out
        ledgers = [_by_rows(ledger) for ledger in ledgers]
        models[index].ledger_ = ledgers[index]
        if hasattr(models[index], "privacy_spent_"):
            models[index].privacy_spent_["unit"] = UNITS[False]
    return PrivateChoice(models[index], index, _together(ledgers[:-1], ledgers[-1]))


def _held(one: Any, holdout: float) -> bool:
    """Whether a person is held out for the choice, decided by a public hash of the id."""
    text = repr(person_of(one)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(b"fdadp choice " + text).digest()[:8], "big") < holdout * 2**64


def _target(models: list[Any], Y: Any) -> Any:
    """Table of what is predicted: codes of labels, numbers or curves."""
    kinds = {is_classifier(model) for model in models}
    if len(kinds) > 1:
        raise InputError("candidates must be all classifiers or none")
    if not kinds.pop():
        return as_target(Y)
    classes = {tuple(model.classes or ()) for model in models}
    if len(classes) > 1 or not next(iter(classes)):
        raise InputError(f"candidates must have the same public classes, got {sorted(map(str, classes))}")
    return labels(Y, list(next(iter(classes))))


def _clip(models: list[Any], clip: float | None) -> float:
    """Public bound at which one person's error is clipped."""
    if clip is None:
        ranges = {_range(model) for model in models}
        if len(ranges) > 1 or None in ranges:
            raise InputError("clip must be given: candidates have no common public range of Y")
        low, high = ranges.pop() or (0.0, 0.0)
        clip = ((high - low) / 4) ** 2
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or not 0 < clip < 1e100:
        raise InputError(f"clip must be a finite number above 0, got {clip!r}")
    return float(clip)


def _judge(models: list[Any], clip: float | None) -> Any:
    """Row-local function: utilities (m, J) of the candidates' predictions, which are made for one row at a time."""

    def predictions(x: FloatArray) -> list[Any]:
        found = []
        for model in models:
            try:
                found.append(model.predict(x.copy())[0])
            except Exception:  # nothing may be told of a row that cannot be predicted for
                found.append(None)
        return found

    def utilities(block: Any) -> FloatArray:
        x, y = block
        out = np.full((len(x), len(models)), np.nan)
        known: dict[bytes, list[Any]] = {}  # equal rows have equal predictions
        for i in range(len(x)):
            if np.isfinite(x[i]).all() and np.isfinite(y[i]).all():
                key = x[i].tobytes()
                if key not in known:
                    known[key] = predictions(x[i : i + 1])
                out[i] = [_utility(found, y[i], clip, classes) for found in known[key]]
        return out

    classes = list(models[0].classes) if clip is None else []
    return utilities


def _utility(found: Any, y: Any, clip: float | None, classes: list[Any]) -> float:
    """1 less the error of one prediction, in [0, 1]; 0 where there is none."""
    if found is None:
        return 0.0
    if clip is None:
        return float(classes.index(found) == int(np.ravel(y)[0]))
    error = float(np.mean((np.ravel(np.asarray(found, dtype=np.float64)) - np.ravel(y)) ** 2))
    return 1 - min(error / clip, 1.0) if np.isfinite(error) else 0.0


def _range(model: Any) -> tuple[float, float] | None:
    pair = getattr(model, "bounds_y", None)
    if pair is None and isinstance(getattr(model, "bounds", None), Mapping):
        pair = model.bounds.get("Y")
    return None if pair is None or np.ndim(pair) != 1 else (float(pair[0]), float(pair[1]))


def _set(model: Any, privacy: Privacy, budget: Budget, part: float, name: str, n: int | None, at: int) -> None:
    """Set a candidate's part of the budget; check its public settings."""
    amount = part * budget.total
    seed = None if privacy.random_state is None else privacy.random_state + 1 + at
    settings: dict[str, Any] = {
        "epsilon": budget.epsilon_of(amount),
        "delta": budget.delta,
        "n": n,
        "adjacency": privacy.stated_adjacency,
        "unit": "person",
        "budget": budget,
        "dataset": name,
        "random_state": seed,
        "study": None,
    }
    params = model.get_params(deep=False)
    specs = params.get("features")
    if "categories" in params or any(
        isinstance(s, Categorical) for s in (specs if isinstance(specs, list) else [specs])
    ):
        raise InputError("candidates must take tables of numbers: features that are labels are not judged here")
    if "privacy" in params and hasattr(model, "_check_settings"):
        base = params["privacy"] or privacy
        model.set_params(privacy=dataclasses.replace(base, **settings))
        model._check_settings()
    elif set(settings) <= set(params):
        model.set_params(**settings)
    else:
        raise InputError(f"candidates must be private estimators of fdadp, got {type(model).__name__}")


def _by_rows(ledger: Ledger) -> Ledger:
    """Change the ledger's unit from persons to rows, where each row was one person."""
    return dataclasses.replace(
        ledger,
        statement=ledger.statement.replace(UNITS[True], UNITS[False]),
        releases=[dataclasses.replace(release, unit=UNITS[False]) for release in ledger.releases],
        details=ledger.details | {"unit": UNITS[False]},
    )


def _together(fits: list[Ledger], selection: Ledger) -> Ledger:
    """Merge the ledgers of all fits and of the selection into one."""
    releases = [
        dataclasses.replace(release, name=f"candidate {at + 1}: {release.name}")
        for at, fit in enumerate(fits)
        for release in fit.releases
    ]
    kept = selection.private and all(fit.private for fit in fits)
    return dataclasses.replace(
        selection,
        releases=[*releases, *selection.releases],
        private=kept,
        for_release=kept and selection.for_release and all(fit.for_release for fit in fits),
    )
