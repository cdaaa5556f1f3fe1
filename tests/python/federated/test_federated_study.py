"""A contract is charged to each owner's own study: before its consent, once, whatever dies, and for good."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from masked_tools import PCA, Numbers, ask, signers, terms, three
from mutants import mutate
from study_tools import study_at

from fdadp.errors import InputError, PrivacyError
from fdadp.federated import Contract
from fdadp.federated.owners import data_owner
from fdadp.federated.owners.data_owner import DataOwner
from fdadp.federated.owners.owner_folder import OwnerFolder
from fdadp.federated.owners.signed_messages import MessageKind
from fdadp.privacy import Budget, mu_from
from fdadp.privacy.study import Study, budget_accounts


def begun(folder: Any, study: Study | None, contract: Contract | None = None) -> DataOwner:
    contract = terms() if contract is None else contract
    said = {"signer": signers(contract.owners)[0], "verified": contract.owner_keys}
    return DataOwner(contract, 1, Numbers(1), folder=folder, study=study, **said)


def consent(home: Path, study: Study | None, contract: Contract | None = None) -> None:
    """What a process of an owner does first."""
    folder = OwnerFolder(home)
    try:
        begun(folder, study, contract).consent()
    finally:
        folder.close()


def new_study(tmp_path: Path, **changes: Any) -> Study:
    return study_at(tmp_path / "own.fdadp", **{"n": None, **changes})


def in_a_child(work: Callable[[], None]) -> int:
    """How a process ends that does this: 0, 1 where it was refused, or the signal."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            work()
            status = 0
        except PrivacyError:
            status = 1
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_whole_budget_of_a_contract_is_spent_before_consent(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    share = (mu_from(1.0, 1e-6) / mu_from(2.0, 1e-6)) ** 2
    consent(tmp_path / "a", study)
    assert study.left == pytest.approx(1 - share)
    assert study.budget.spent == pytest.approx(Budget(1.0, 1e-6).total)
    (fit,) = study.fits
    assert (fit.mechanism, fit.state, fit.releases) == ("federated pca", "spent", ())
    assert fit.public["contract"] == terms().digest.hex()
    assert study.verify() == ()
    assert "federated pca" in str(study) and "federated pca" in study.report().to_html()


def test_contracts_add_up_and_one_that_is_not_left_is_refused(tmp_path: Path) -> None:
    """Of one folder, and of several; a smaller one may still be answered."""
    study = new_study(tmp_path, epsilon=1.3)
    consent(tmp_path / "a", study)
    left, entries = study.left, study.entries
    second = replace(terms(), run="second")
    for folder in ("a", "b"):
        with pytest.raises(
            PrivacyError, match=r"epsilon must be at most what study 'Wards' has left, 0\.\d+ .* got 1 "
        ):
            consent(tmp_path / folder, study, second)
        assert not (tmp_path / "b" / "answered").exists()
    assert (tmp_path / "a" / "answered").read_bytes() == terms().digest
    assert (study.left, study.entries) == (left, entries)
    small = replace(second, settings={**PCA, "epsilon": 0.5})
    consent(tmp_path / "b", study, small)
    assert study.budget.spent == pytest.approx(sum(Budget(epsilon, 1e-6).total for epsilon in (1.0, 0.5)))


def test_nothing_is_given_back_for_a_run_that_ends_early(tmp_path: Path) -> None:
    study, folder, others = new_study(tmp_path), OwnerFolder(tmp_path / "a"), three(width=8)[1:]
    party = DataOwner(
        terms(), 1, Numbers(1, width=8), signer=signers(3)[0], folder=folder, verified=terms().owner_keys, study=study
    )
    parties = [party, *others]
    asked = ask(MessageKind.ASK, 0, [one.consent() for one in parties])
    left = study.left
    go = ask(MessageKind.GO, 0, [one.answer(asked) for one in parties])
    shares = [one.answer(go) for one in parties]
    party.answer(ask(MessageKind.ASK, 1, shares))
    assert "ended" in party._state  # the total did not fit
    folder.close()
    consent(tmp_path / "a", study)
    assert study.left == left < 1


def check_charged_once(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    for _ in range(3):
        consent(tmp_path / "a", study)
        assert [fit.state for fit in study.fits] == ["spent"]


def test_killed_at_every_write(tmp_path: Path) -> None:
    """SIGKILL before and after every fsync of folder and study, the next process goes on: one charge, never none."""
    for at in range(100):
        home = tmp_path / str(at)
        home.mkdir()
        study = new_study(home)

        def work(home: Path = home, study: Study = study, at: int = at) -> None:
            left, real = [at], os.fsync

            def dying(handle: int) -> None:
                for turn in range(2):
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                    if turn == 0:
                        real(handle)

            os.fsync = dying
            consent(home / "a", study)

        status = ended(in_a_child(work))
        answered = (home / "a" / "answered").exists()
        assert not answered or study.left < 1  # charged first
        for _ in range(2):
            consent(home / "a", study)
        assert [fit.state for fit in study.fits] == ["spent"]
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert at > 10 and study.verify() == ()


def check_a_lost_folder_cannot_answer_again(tmp_path: Path) -> None:
    """Nor one that is put back to what it was before the contract: the study knows its name."""
    study = new_study(tmp_path)
    OwnerFolder(tmp_path / "a").close()
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    consent(tmp_path / "a", study)
    entries = study.entries
    for folder in ("copy", "b"):
        with pytest.raises(PrivacyError, match=r"once, and entry 2 did it for somebody else"):
            consent(tmp_path / folder, study)
        assert not (tmp_path / folder / "answered").exists()
    assert study.entries == entries


def test_processes_charge_one_study_at_once(tmp_path: Path) -> None:
    """Four contracts of four folders, of which the study can pay two."""
    study = new_study(tmp_path, epsilon=1.5)
    contracts = [replace(terms(), run=str(i)) for i in range(4)]
    assert 2 < study.budget.total / Budget(1.0, 1e-6).total < 3
    children = [
        in_a_child(lambda i=i, contract=contract: consent(tmp_path / str(i), study, contract))
        for i, contract in enumerate(contracts)
    ]
    assert sorted(map(ended, children)) == [0, 0, 1, 1]
    assert [fit.state for fit in study.fits] == ["spent", "spent"]
    answered = [i for i in range(4) if (tmp_path / str(i) / "answered").exists()]
    assert {fit.public["contract"] for fit in study.fits} == {contracts[i].digest.hex() for i in answered}


def check_a_study_that_is_named_later_is_charged(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    consent(tmp_path / "a", None)
    assert study.left == 1
    for _ in range(2):
        folder = OwnerFolder(tmp_path / "a")
        begun(folder, study)
        folder.close()
    assert len(study.fits) == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit": "person"}, "unit and adjacency must be those of the study, person"),
        ({"n": 50}, "unit and adjacency must be those of the study, row and zero-out"),
        ({"accounting": "zcdp"}, "study must count in"),
        ({"delta": None}, "study must count in"),
    ],
)
def test_studies_of_something_else_are_refused(tmp_path: Path, changes: dict[str, Any], match: str) -> None:
    study = new_study(tmp_path, **changes)
    with pytest.raises(PrivacyError, match=match):
        consent(tmp_path / "a", study)
    assert study.left == 1 and not (tmp_path / "a" / "answered").exists()


def test_simulations_and_closed_studies_are_refused(tmp_path: Path) -> None:
    study = new_study(tmp_path)
    with pytest.raises(PrivacyError, match="noise must be secure where a study counts it"):
        consent(tmp_path / "a", study, replace(terms(), simulation=True))
    study.close("moved")
    with pytest.raises(PrivacyError, match="study was closed"):
        consent(tmp_path / "a", study)
    assert study.left == 1


@pytest.mark.parametrize("name", ["study", "budget"])
def test_a_contract_names_no_study(tmp_path: Path, name: str) -> None:
    """It comes from others: a file that it names would be charged by them."""
    study = new_study(tmp_path)
    with pytest.raises(InputError, match="each owner charges one of its own"):
        replace(terms(), settings={**PCA, name: str(study.path)})
    assert study.left == 1


CHARGE = "            self._charge()\n            self._keep(_ANSWERED"
MUTANTS: dict[str, tuple[Any, str, str, Callable[[Path], None]]] = {
    "not charged": (data_owner, CHARGE, CHARGE.partition("\n")[2], check_charged_once),
    "later not charged": (
        data_owner,
        "            self._charge()\n        if self",
        "        if self",
        check_a_study_that_is_named_later_is_charged,
    ),
    "charged again": (budget_accounts, "if found is None:", "if True:", check_charged_once),
    "left as it was reserved": (
        budget_accounts,
        'file.append("opened", at, {})\n\n    def _check',
        "pass\n\n    def _check",
        check_charged_once,
    ),
    "any folder": (
        budget_accounts,
        'elif found.content["charge"] == [name, by] and',
        "elif",
        check_a_lost_folder_cannot_answer_again,
    ),
}
"""Lines of the charge, and what goes wrong without them."""


@pytest.mark.parametrize(
    "check",
    [
        check_charged_once,
        check_a_lost_folder_cannot_answer_again,
        check_a_study_that_is_named_later_is_charged,
    ],
    ids=lambda check: check.__name__,
)
def test_what_is_charged(check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_line_of_the_charge_is_needed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, old, new, check = MUTANTS[name]
    mutate(monkeypatch, module, old, new)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(tmp_path)


def test_bounds_that_the_study_has_fixed_are_the_contracts_too(tmp_path: Path) -> None:
    grid = [0, 1, 2, 3, 4]

    def contract(high: float) -> Contract:
        settings = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"X": [-1.0, high], "Y": [0, 9]}, "s": grid, "t": grid}
        return replace(terms(), model="regression", settings=settings)

    study = new_study(tmp_path, bounds={"X": (-1, 1), "age": (0, 100)})
    with pytest.raises(PrivacyError, match=r"the contract's bounds of X must be the study's, \[-1.0, 1.0\]"):
        consent(tmp_path / "a", study, contract(2.0))
    assert study.left == 1
    consent(tmp_path / "b", study, contract(1.0))
    assert study.left < 1
