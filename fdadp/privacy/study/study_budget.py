"""``Study``: a budget in a file, which outlives sessions and is shared by every program that fits to its data."""

from __future__ import annotations

import html
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp._common.argument_checks import is_one_of
from fdadp._common.guarantee_in_words import composed, promised
from fdadp.errors import PrivacyError
from fdadp.privacy.account._reservations import Binding, left_of
from fdadp.privacy.account.budget import Budget
from fdadp.privacy.guarantee_checks import ADJACENCIES, check_delta, whole
from fdadp.privacy.study._append_only_file import FORMAT, create, forget, reading, transaction
from fdadp.privacy.study._chained_entries import Entry, finite, in_words, now
from fdadp.privacy.study.budget_accounts import (
    Fit,
    StudyBook,
    as_html,
    as_text,
    budget_of,
    check_running,
    facts_of,
    fits_of,
)
from fdadp.privacy.study.verification import looked_at, wrong_with

if TYPE_CHECKING:
    from fdadp.privacy.certificate import Certificate
    from fdadp.privacy.certificate.forecasts_and_r2 import Expected

Bounds = Mapping[str, Sequence[Any]]


class Study:
    """A budget that its custodian makes once, in a file, and that everything released from the data draws on.

    Parameters
    ----------
    path : path
        Of a file that :meth:`new` has made.

    Attributes
    ----------
    path : Path
        Absolute.
    facts : dict
        What was fixed when it was made: name, id, epsilon, delta, accounting, total, unit, adjacency, n, bounds, ...

    Raises
    ------
    PrivacyError
        The file is not there, is no study, or of another version.

    Notes
    -----
    Estimators are given the path (``Privacy(study="icu.fdadp", epsilon=0.5)``), so that clones, workers, other
    processes and other languages draw on the same file. What a fit takes is written there before its first row is
    read: a process that is killed has spent at least what it has released.

    A file cannot know whether it is an older copy. So fdadp remembers the last entry that this user has seen of each
    study, and refuses a file that does not have it (:meth:`restored` says that it was on purpose). Other users have
    the hash of the last entry in every model and report. The file knows data by the name that the custodian gave them.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> study = Study.new(f"{folder}/wards.fdadp", name="Wards 2024", epsilon=2.0, delta=1e-6, unit="person", n=8000)
    >>> study.left
    1.0
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self.facts = facts_of(self.path)

    @classmethod
    def new(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str,
        epsilon: float,
        delta: float | None = None,
        unit: str,
        n: int | None = None,
        adjacency: str | None = None,
        accounting: str = "gdp",
        bounds: Bounds | None = None,
        sources: Mapping[str, str] | str | None = None,
        custodian: str | None = None,
        data: str | None = None,
        expires: str | None = None,
    ) -> Study:
        """Make a study.

        Parameters
        ----------
        path : path
            Of a file that is not there yet, on a disk of this machine; readable by its owner alone.
        name : str
            Of the data, as its custodian calls them.
        epsilon, delta : float
            All that may ever be spent; `delta` left out or 0 is pure ε.
        unit : {"person", "row"}
            Whom it protects. With "person" every fit must be given ``groups=``.
        n : int, optional
            Number of persons, where that is public.
        adjacency : {"zero-out", "add-remove", "replace"}, optional
            Default: "zero-out" where n is declared, else "add-remove".
        accounting : {"gdp", "zcdp"}
            As of :class:`~fdadp.privacy.Budget`.
        bounds : mapping, optional
            What is public of columns: (low, high) of numbers and curves, lists of levels of labels. Fits of a column
            that is named here use these, and no others.
        sources : mapping or str, optional
            Where each of them is from.
        custodian, data : str, optional
            Who answers for the data, and what they are; for certificates.
        expires : str, optional
            Last day on which a fit may begin, YYYY-MM-DD.

        Raises
        ------
        PrivacyError
            A setting is wrong, something is at `path` already, or there are no locks that hold.
        """
        budget = Budget(epsilon, delta, accounting=accounting)
        n = None if n is None else whole(n, "n", "the declared number of persons")
        if not is_one_of(unit, ("person", "row")):
            raise PrivacyError(f"unit must be 'person' or 'row', got {unit!r}")
        adjacency = adjacency or ("add-remove" if n is None else "zero-out")
        if not is_one_of(adjacency, ADJACENCIES) or (n is None) != (adjacency == "add-remove"):
            raise PrivacyError(
                f"adjacency must be 'add-remove' where n is private, and no other, got {adjacency!r}, n {n}"
            )
        check_delta(budget.delta, n)
        for key, value in {"name": name, "custodian": custodian, "data": data}.items():
            if value is not None or key == "name":
                _check_text(value, key)
        facts = {
            "name": name,
            "id": str(uuid.uuid4()),
            "created": now(),
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "accounting": budget.accounting,
            "measure": budget.measure,
            "total": budget.total,
            "unit": unit,
            "adjacency": adjacency,
            "n": n,
            "bounds": _bounds(bounds or {}, sources),
            "custodian": custodian,
            "data": data,
            "expires": _day(expires),
            "format": FORMAT,
        }
        return cls(create(path, facts))

    # ------------------------------------------------------------------ what is left

    @property
    def budget(self) -> Budget:
        """The budget that fits draw on."""
        return budget_of(str(self.path), self.facts)

    @property
    def left(self) -> float:
        """Share of the total that nobody has taken."""
        spent, reserved, _ = self.budget._book.taken()
        return max(1 - spent - reserved, 0.0)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order."""
        with reading(self.path) as file:
            return file.entries

    @property
    def head(self) -> tuple[int, str]:
        """Number and hash of the last entry, which stand for all of them."""
        with reading(self.path) as file:
            return file.told.last.position, file.told.last.hash

    def charge(self, budget: Budget, binding: Binding, about: Mapping[str, Any], *, name: str, by: str) -> None:
        """Take all that a budget promises, for good: for what runs by a budget of its own, such as a contract.

        It is on the disk when this returns. The same `name` and `by` again take nothing.

        Parameters
        ----------
        budget : Budget
        binding : Binding
            What the budget protects.
        about : mapping
            For what, in public, as :meth:`~fdadp.privacy.account.budget.Budget.reserve` takes it.
        name : str
            Of what is charged.
        by : str
            Who asks. Somebody else who asks for the same name is refused.

        Raises
        ------
        PrivacyError
            So much is not left, or the study counts or protects something else, or `name` was charged by another.
        """
        if budget.accounting != self.facts["accounting"]:
            raise PrivacyError(
                f"study must count in {budget.measure}, as what is charged to it does, and counts in "
                f"{self.facts['measure']}; nothing was spent"
            )
        total = float(self.facts["total"])
        StudyBook(str(self.path), total, self.facts).charge_once(budget.total / total, binding, about, name, by)

    def bounds_of(self, column: str) -> Any:
        """What is public of a column: (low, high), a tuple of levels, or None where the study does not say."""
        return self.budget.columns.get(column)

    def close(self, reason: str) -> None:
        """Let nobody reserve any more, for good; raises PrivacyError without a reason, or if it is closed."""
        _check_text(reason, "reason")
        with transaction(self.path) as file:
            check_running(file, {})
            file.append("closed", None, {"reason": reason})

    def restored(self, reason: str) -> None:
        """Say that an older copy of the file was put back on purpose: the newer one is lost for good.

        Fits on an older copy are refused, since it knows nothing of what was released later. This goes into the file as
        an entry. What was left of the budget in the last entry that this user has seen is left now, and no more.

        Parameters
        ----------
        reason : str

        Raises
        ------
        PrivacyError
            There is no reason, or no entry is missing.
        """
        _check_text(reason, "reason")
        with transaction(self.path, restoring=True) as file:
            of = file.put_back()
            if of is None:
                raise PrivacyError("no entry is missing that was seen before: there is nothing to say")
            held = file.told.held
            share = max(left_of(held.values(), 0.0)[0] - of.left, 0.0)
            content = {"reason": reason, "share": share, "missing": [of.position, of.hash]}
            file.append("restored", max(held, default=0) + 1, content)
            forget(self.facts["id"], self.path, file.told)

    @classmethod
    def migrate(cls, path: str | os.PathLike[str]) -> Study:
        """Convert the file of a study that fdadp 0.2 made, in its place: the same entries, with the same hashes.

        Parameters
        ----------
        path : path

        Raises
        ------
        PrivacyError
            The file is no such study, is damaged, is in use, or has another name beside this one.
        """
        from fdadp.privacy.study._append_only_file import migrate

        return cls(migrate(path))

    # ------------------------------------------------------------------ is it right

    def verify(self, *files: str | os.PathLike[str], key: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """What is wrong with the study, and with files of its models and certificates (``.json``), in words.

        Nothing where all of it holds. Of the study it checks every byte (the chain of hashes), that times rise up to
        now, and that nothing was reserved after its last day. It checks the costs against what was reserved and the
        total, and the total against ε and δ. The study must have the last entry that this user has seen.

        Parameters
        ----------
        *files : path
        key : path, optional
            Public key that certificates must be signed with.
        """
        about = [f"{os.fspath(file)}: {problem}" for file in files for problem in self.wrong_with(file, key)]
        return (*wrong_with(self), *about)

    def wrong_with(self, file: str | os.PathLike[str], key: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """What is wrong with the file of one model, or with one certificate (``.json``), against the study.

        A certificate is made again from the entries up to its last one, and everything that follows from these is
        compared. What people said in it (texts about the data, date, accuracy, version) is covered by a signature only.

        Parameters
        ----------
        file : path
        key : path, optional
            Public key that a certificate must be signed with.
        """
        from fdadp.privacy.study.verification import verify_model, verify_report

        if Path(file).suffix == ".html":
            return (f"this page is for people: verify {Path(file).with_suffix('.json').name}, saved beside it",)
        return verify_report(self, file, key) if Path(file).suffix == ".json" else verify_model(self, file)

    def report(
        self, models: Sequence[str | os.PathLike[str]] = (), forecasts: Sequence[Expected] = (), **about: str
    ) -> Certificate:
        """Certificate of everything that drew on it.

        Parameters as of :meth:`fdadp.privacy.certificate.Certificate.of_study`.
        """
        from fdadp.privacy.certificate import Certificate

        return Certificate.of_study(self, models, forecasts, **about)

    # ------------------------------------------------------------------ to look at

    @property
    def fits(self) -> tuple[Fit, ...]:
        """What drew on it, in order."""
        return self._fits(self.entries)

    def _fits(self, lines: Sequence[Entry]) -> tuple[Fit, ...]:
        budget, total = self.budget, float(self.facts["total"])
        return fits_of(lines, lambda share: budget.epsilon_of(share * total))

    def _seen(self) -> tuple[str, tuple[Fit, ...], Entry, tuple[str, ...]]:
        """Headline, fits, last entry and what is wrong, all of one state of the file."""
        StudyBook(str(self.path), 0.0, self.facts).sweep()
        lines, wrong = looked_at(self)
        fits = self._fits(lines)
        return self._headline(1 - math.fsum(fit.share for fit in fits)), fits, lines[-1], wrong

    @property
    def headline(self) -> str:
        """What it promises, and what is left, in one line."""
        return self._headline(self.left)

    def _headline(self, left: float) -> str:
        of = self.facts
        promise = promised(of["epsilon"], of["delta"])
        return f"{of['name']}: {promise} for everything ever released, by {of['unit']}; {max(left, 0):.2%} is left"

    def __str__(self) -> str:
        return self.shown()[0]

    def shown(self) -> tuple[str, tuple[str, ...]]:
        """What ``str`` says of it, and what is wrong with it as :meth:`verify` says, of one state of the file."""
        of, (headline, fits, last, wrong) = self.facts, self._seen()
        n = "private" if of["n"] is None else f"{of['n']:,}, public"
        lines = [
            headline,
            f"made {of['created']}, id {of['id']}; adjacency {of['adjacency']}, number of persons {n}",
            *(f"bounds of {column}: {_said(what)}" for column, what in of["bounds"].items()),
            "",
            as_text(fits),
            composed(of["delta"]),
            "",
            f"last entry: {last.position}, {last.hash}",
            *(f"WRONG: {problem}" for problem in wrong),
        ]
        return "\n".join(lines), wrong

    def _repr_html_(self) -> str:
        headline, fits, last, problems = self._seen()
        wrong = "".join(f"<p><strong>WRONG: {html.escape(problem)}</strong></p>" for problem in problems)
        return (
            f"<div><p><strong>{html.escape(headline)}</strong></p>{as_html(fits)}"
            f"<p>{composed(self.facts['delta'])}</p>"
            f"<p>last entry: {last.position}, <code>{last.hash}</code></p>{wrong}</div>"
        )

    def __repr__(self) -> str:
        of = self.facts
        delta = "pure" if of["delta"] is None else f"delta={of['delta']:g}"
        return f"Study({str(self.path)!r}: {of['name']}; epsilon={of['epsilon']:g}, {delta}; {self.left:.2%} left)"


def _said(what: Mapping[str, Any]) -> str:
    """Public facts of a column and their source, in words."""
    return in_words(what) + (f" ({what['source']})" if what.get("source") else "")


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise PrivacyError(f"{name} must be a text, got {value!r}")


def _bounds(bounds: Bounds, sources: Mapping[str, str] | str | None) -> dict[str, Any]:
    """Public facts of columns with their sources, ready for JSON."""
    if isinstance(sources, Mapping) and not set(sources) <= set(bounds):
        raise PrivacyError(f"sources must be of columns in bounds, got {sorted(set(sources) - set(bounds))}")
    made: dict[str, Any] = {}
    for column, what in bounds.items():
        source = sources.get(column) if isinstance(sources, Mapping) else sources
        if isinstance(what, tuple):
            low, high = what if len(what) == 2 else (math.nan, math.nan)
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise PrivacyError(f"bounds of {column!r} must be (low, high), low below high, got {what!r}")
            made[str(column)] = {"range": [float(low), float(high)], "source": source}
        elif isinstance(what, list) and len(set(map(str, what))) == len(what) and what:
            made[str(column)] = {"levels": [finite(level) for level in what], "source": source}
        else:
            raise PrivacyError(
                f"bounds of {column!r} must be a tuple (low, high), or a list of distinct levels, got {what!r}"
            )
    return made


def _day(expires: str | None) -> str | None:
    if expires is None:
        return None
    try:
        return date.fromisoformat(expires).isoformat()
    except (TypeError, ValueError):
        raise PrivacyError(f"expires must be a day, YYYY-MM-DD, got {expires!r}") from None
