"""An owner of masked sums answers each question once, whatever dies, comes back, or is told to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from masked_tools import (
    PCA,
    Numbers,
    ask,
    assert_uniform,
    owner,
    refusal_of,
    signed,
    signers,
    started,
    terms,
    three,
    unmasked,
    with_ready,
)
from mutants import mutate

from fdadp.errors import InputError, PrivacyError
from fdadp.federated import Contract, ProtocolError, fit_in_clear
from fdadp.federated.owners import data_owner, owner_folder, pairwise_masks
from fdadp.federated.owners.coordinator import Coordinator, RunEnded
from fdadp.federated.owners.data_owner import ContractProgram, DataOwner
from fdadp.federated.owners.one_process import run_to_end
from fdadp.federated.owners.owner_folder import MemoryKeeper, OwnerFolder
from fdadp.federated.owners.pairwise_masks import new_key, public_half
from fdadp.federated.owners.signed_messages import MessageKind, Refusal, SignedMessage
from fdadp.federated.run_contract import Signer

SIZE = 1024

# ---------------------------------------------------------------- whole runs


@pytest.mark.parametrize("owners", [2, 3, 5])
def test_totals_and_model_are_those_of_shares_added_in_clear(owners: int) -> None:
    keys = tuple(signer.public for signer in signers(owners))
    contract = Contract("pca", PCA, owners, n_max=1000, owner_keys=keys, simulation=True)
    X = np.random.default_rng(0).normal(size=(300, 3)) * [1.5, 0.3, 0.3]
    data = [(part,) for part in np.array_split(X, owners)]
    parties = [
        owner(i + 1, ContractProgram(contract, rows, random_state=1000 * 5 + i), contract=contract)
        for i, rows in enumerate(data)
    ]
    run_to_end(parties)
    central = fit_in_clear(contract, data, random_state=5)
    for party in parties:
        np.testing.assert_array_equal(party.result_.components_, central.components_)
        np.testing.assert_array_equal(party.result_.explained_variance_, central.explained_variance_)


def test_a_contract_of_twenty_owners() -> None:
    parties = three(20, size=3, releases=1)
    (total,) = run_to_end(parties).totals_
    np.testing.assert_array_equal(total, sum(party._program.draws[0] for party in parties))
    assert len({party.result_ for party in parties}) == 1


@pytest.mark.parametrize("kept", ["all", "requests alone"])
def test_a_coordinator_goes_on_from_its_folder(kept: str) -> None:
    """After each answer; the bytes that it asks are those of one that did not die."""
    parties, folder = three(), MemoryKeeper()
    coordinator = Coordinator(terms(), folder)
    for _ in range(100):
        if coordinator.done_:
            break
        asked = coordinator.asked
        number = min(coordinator.missing)
        coordinator.take(number, parties[number - 1].answer(asked) if asked else parties[number - 1].consent())
        if kept != "all" and coordinator.missing == {1, 2, 3}:  # as if it had died just then
            for name in [name for name in folder if ".answer-" in name]:
                del folder[name]
        again = Coordinator(terms(), folder)
        assert again.requests_ == coordinator.requests_ and again.done_ == coordinator.done_
        assert again.missing == coordinator.missing
        coordinator = again
    assert coordinator.done_
    assert [len(total) for total in coordinator.totals_] == [8, 8]
    assert len({party.result_ for party in parties}) == 1


class Full(MemoryKeeper):
    """A disk that is full after so many writes."""

    left = 10**9

    def write(self, name: str, data: bytes) -> None:
        if self.left <= 0:
            raise OSError("disk full")
        self.left -= 1
        super().write(name, data)


def test_a_request_is_kept_before_anybody_can_send_it() -> None:
    for writes in range(1, 30):
        parties, folder = three(), Full()
        folder.left = writes
        coordinator = Coordinator(terms(), folder)
        with suppress(OSError):
            run_to_end(parties, coordinator)
        for asked in coordinator.requests_:
            assert asked in folder.values()
        folder.left = 10**9
        run_to_end(parties, Coordinator(terms(), folder))
        assert len({party.result_ for party in parties}) == 1


def test_the_coordinator_takes_nothing_but_what_it_asked_for() -> None:
    parties = three()
    coordinator = Coordinator(terms())
    for number, answer in ((2, parties[0].consent()), (1, signed(2, MessageKind.CONSENT, 0, b"")), (1, b"x")):
        with pytest.raises(ProtocolError):
            coordinator.take(number, answer)
    for number in (1, 2, 3):
        coordinator.take(number, parties[number - 1].consent())
    with pytest.raises(ProtocolError, match="not its turn"):
        coordinator.take(1, parties[0].consent())
    with pytest.raises(ProtocolError, match="owner 1 refuses release 0: it is not its turn"):
        coordinator.take(1, parties[0].answer(ask(MessageKind.GO, 0, [])))
    assert coordinator.missing == {1, 2, 3}
    coordinator.take(1, parties[0].answer(coordinator.requests_[-1]))
    coordinator.take(2, parties[1].answer(coordinator.requests_[-1]))
    with pytest.raises(RunEnded, match="same place in release 0"):
        coordinator.take(3, signed(3, MessageKind.DONE, 0, bytes(32)))


def test_owners_that_were_told_other_last_totals_do_not_end_a_run() -> None:
    parties, coordinator = three(), Coordinator(terms())
    while not coordinator.done_:
        asked = coordinator.asked
        for number in sorted(coordinator.missing):
            answer = parties[number - 1].answer(asked) if asked else parties[number - 1].consent()
            found = SignedMessage.from_bytes(answer)
            if number == 3 and found.kind == MessageKind.DONE:
                with pytest.raises(RunEnded, match="must have the same totals at the end"):
                    coordinator.take(3, signed(3, MessageKind.DONE, found.index, bytes(32)))
                return
            coordinator.take(number, answer)
    pytest.fail("the run has no end")


# ---------------------------------------------------------------- consent


def test_terms_of_masked_contracts(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="must name a key of each owner"):
        owner(1, contract=replace(terms(), owner_keys=()))
    with pytest.raises(InputError, match="expires must be a day as '2027-01-31', got '1 May'"):
        replace(terms(), expires="1 May")
    with pytest.raises(InputError, match="owner_keys must all differ"):
        replace(terms(), owner_keys=(*terms().owner_keys[:2], terms().owner_keys[0]))
    for number in (0, 2, 4):
        with pytest.raises(ProtocolError, match=f"under its number, and not under {number}"):
            DataOwner(
                terms(), number, Numbers(), signer=signers(3)[0], folder=MemoryKeeper(), verified=terms().owner_keys
            )


def test_an_owner_must_have_verified_the_others() -> None:
    """At least owners - corrupt - 1 of them; its own key does not count, nor does a stranger's."""
    keys = terms(4, corrupt=1).owner_keys

    def made(verified: Any) -> DataOwner:
        return DataOwner(
            terms(4), 1, Numbers(), signer=signers(4)[0], folder=MemoryKeeper(), verified=verified
        )  # fmt: skip

    made(keys[1:3])
    for few in ((), keys[:2], [keys[1], Signer.new().public]):
        with pytest.raises(ProtocolError, match="verified must hold at least 2 of the other owners' keys, got"):
            made(few)


def test_an_expired_contract_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProtocolError, match="must not have expired, and has on 2020-01-01"):
        owner(1, contract=replace(terms(), expires="2020-01-01")).consent()
    contract = replace(terms(), expires="2999-01-01")
    parties = [owner(i, contract=contract) for i in (1, 2, 3)]
    asked, _ = started(parties)
    monkeypatch.setattr(DataOwner, "_expired", True)
    assert refusal_of(parties[0].answer(asked)) == Refusal.EXPIRED


def test_a_contract_is_answered_from_one_folder_once(tmp_path: Path) -> None:
    """Where what was kept of it is gone, the list says that it was answered; other contracts may be."""
    folder = OwnerFolder(tmp_path)
    first = owner(1, folder=folder)
    with pytest.raises(ProtocolError):
        Coordinator(terms()).take(1, first.answer(ask(MessageKind.ASK, 0, [])))  # before it consented
    first.consent()
    (tmp_path / f"{terms().digest.hex()}.state").unlink()
    with pytest.raises(ProtocolError, match="must be a new one: this owner answered it before"):
        owner(1, folder=folder).consent()
    owner(1, folder=folder, contract=replace(terms(), run="another")).consent()
    folder.close()


def check_two_contracts_in_one_folder() -> None:
    """Both are made before either is consented to; then what the first one kept is lost."""
    folder = MemoryKeeper()
    both = [owner(1, folder=folder, contract=terms(run=run)) for run in ("first", "second")]
    for party in both:
        party.consent()
    del folder[f"{terms(run='first').digest.hex()}.state"]
    with pytest.raises(ProtocolError, match="must be a new one"):
        owner(1, folder=folder, contract=terms(run="first")).consent()


def check_a_generator_that_repeats_itself_makes_no_second_ready() -> None:
    """A restored machine draws the same random bytes again, and another share: its key is another one."""
    kept = MemoryKeeper()
    parties = [owner(1, Numbers(1), folder=kept), *three()[1:]]
    asked = ask(MessageKind.ASK, 0, [party.consent() for party in parties])
    restored = MemoryKeeper(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda size: bytes(size))
        first = parties[0].answer(asked)
        second = owner(1, Numbers(2), folder=restored).answer(asked)
    assert first != second


def check_what_a_dead_process_left_is_synced_first(tmp_path: Path) -> None:
    """It may have died between giving a file its name and syncing the folder."""
    synced: list[int] = []

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return synced.append if name == "fsync" else getattr(os, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner_folder, "os", Spy())
        OwnerFolder(tmp_path / "a").close()
    assert len(synced) == 1


def check_a_fork_writes_nothing(tmp_path: Path) -> None:
    folder = OwnerFolder(tmp_path / "a")
    child = os.fork()
    if child == 0:
        with suppress(PrivacyError):
            folder.write("x", b"y")
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.read("x") is None
    folder.close()


def test_other_rows_are_refused_before_anything() -> None:
    keeper = MemoryKeeper()
    owner(1, folder=keeper).consent()
    with pytest.raises(PrivacyError, match="must be the rows with which this owner consented"):
        owner(1, Numbers(1, rows=b"s" * 32), folder=keeper)
    contract = replace(terms(), run="rows")
    a, b = np.zeros((4, 3)), np.zeros((4, 3))
    b[2, 1] = 1e-300
    assert ContractProgram(contract, (a,)).rows != ContractProgram(contract, (b,)).rows
    named = replace(terms(), groups=True)
    people = [np.array(list("aabb"), dtype=object), np.array(list("aabc"), dtype=object)]
    assert len({ContractProgram(named, (a, ids)).rows for ids in people}) == 2
    assert ContractProgram(named, (a, people[0])).rows == ContractProgram(named, (a, people[0].copy())).rows


# ---------------------------------------------------------------- what it refuses


def check_other_releases_are_refused() -> None:
    """Another size or width, other arrays, less noise: and nothing has changed."""
    parties = three()
    _, readies = started(parties)
    for changes in (
        {"size": 9},
        {"width": 41},
        {"arrays": b"b" * 32},
        {"sd": 100.0 * (1 - 2e-12)},
        {"sd": float("nan")},
        {"sd": float("inf")},
    ):
        before = dict(parties[0]._state)
        answer = parties[0].answer(ask(MessageKind.GO, 0, with_ready(readies, 2, **changes)))
        assert refusal_of(answer) == Refusal.RELEASE, changes
        assert parties[0]._state == before
    more = with_ready(readies, 2, sd=100.0 * (1 - 1e-13))
    assert refusal_of(parties[0].answer(ask(MessageKind.GO, 0, more))) is None


def check_senders_and_places() -> None:
    """Signature, sender, index, contract, order, this owner's own words."""
    parties = three()
    asked, readies = started(parties)
    party, contract = parties[0], terms()
    other = replace(contract, run="other")
    own, second, third = readies
    body = SignedMessage.from_bytes(second).body
    forged = second[:-64] + signers(3)[0].sign(SignedMessage.from_bytes(second).signed)
    again = with_ready(readies, 1, key=public_half(new_key()))[0]
    for wrong, code in (
        (ask(MessageKind.GO, 0, [own, forged, third]), Refusal.SIGNATURE),
        (ask(MessageKind.GO, 0, [own, second[:-1] + bytes([second[-1] ^ 1]), third]), Refusal.SIGNATURE),
        (ask(MessageKind.GO, 0, [own, third, second]), Refusal.SENDER),
        (ask(MessageKind.GO, 0, [own, second, second]), Refusal.SENDER),
        (ask(MessageKind.GO, 0, [own, signed(2, MessageKind.READY, 1, body), third]), Refusal.ORDER),
        (ask(MessageKind.GO, 0, [own, signed(2, MessageKind.SHARE, 0, body), third]), Refusal.ORDER),
        (ask(MessageKind.GO, 0, [own, signed(2, MessageKind.READY, 0, body, other), third]), Refusal.CONTRACT),
        (ask(MessageKind.GO, 0, [again, second, third]), Refusal.TRANSCRIPT),
        (ask(MessageKind.GO, 0, [own, second]), Refusal.FORM),
        (ask(MessageKind.GO, 0, [own, second, third, third]), Refusal.FORM),
        (ask(MessageKind.GO, 1, readies), Refusal.ORDER),
        (ask(MessageKind.GO, 0, readies, other), Refusal.CONTRACT),
        (ask(MessageKind.READY, 0, readies), Refusal.FORM),
        (signed(2, MessageKind.GO, 0, b"".join(readies)), Refusal.SENDER),
        (ask(MessageKind.ASK, 1, readies), Refusal.ORDER),
        (ask(MessageKind.ASK, 0, readies), Refusal.ANSWERED),
        (ask(MessageKind.GO, 0, with_ready(readies, 3, transcript=bytes(32))), Refusal.TRANSCRIPT),
    ):
        before = dict(party._state)
        assert refusal_of(party.answer(wrong)) == code, code
        assert party._state == before
    assert party.answer(asked) == own
    shares = [p.answer(ask(MessageKind.GO, 0, readies)) for p in parties]
    share = SignedMessage.from_bytes(shares[1]).body
    for wrong, code in (
        (ask(MessageKind.ASK, 1, [signed(1, MessageKind.SHARE, 0, share), *shares[1:]]), Refusal.TRANSCRIPT),
        (
            ask(MessageKind.ASK, 1, [shares[0], signed(2, MessageKind.SHARE, 0, bytes(32) + share[32:]), shares[2]]),
            Refusal.TRANSCRIPT,
        ),
        (ask(MessageKind.ASK, 1, [shares[0], signed(2, MessageKind.SHARE, 0, share[:-8]), shares[2]]), Refusal.FORM),
        (ask(MessageKind.ASK, 1, [shares[0], signed(2, MessageKind.SHARE, 0, share[:63]), shares[2]]), Refusal.FORM),
        (ask(MessageKind.ASK, 2, shares), Refusal.ORDER),
    ):
        before = dict(party._state)
        assert refusal_of(party.answer(wrong)) == code, code
        assert party._state == before
    assert SignedMessage.from_bytes(party.answer(ask(MessageKind.ASK, 1, shares))).kind == MessageKind.READY
    assert refusal_of(party.answer(asked)) == Refusal.ORDER  # of the release before


def check_totals_outside_of_their_width_end_the_run() -> None:
    parties = three(width=40)
    _, readies = started(parties)
    shares = [party.answer(ask(MessageKind.GO, 0, readies)) for party in parties]
    body = bytearray(SignedMessage.from_bytes(shares[2]).body)
    body[64:72] = ((int.from_bytes(body[64:72], "big") + 2**40) % 2**64).to_bytes(8, "big")
    asked = ask(MessageKind.ASK, 1, [*shares[:2], signed(3, MessageKind.SHARE, 0, bytes(body))])
    assert refusal_of(parties[0].answer(asked)) == Refusal.TOTAL
    assert refusal_of(parties[0].answer(ask(MessageKind.ASK, 1, shares))) == Refusal.TOTAL  # for ever


def check_key_and_draw_are_gone_after_the_share(tmp_path: Path) -> None:
    parties = [owner(1, folder=OwnerFolder(tmp_path / "a")), *three()[1:]]
    _, readies = started(parties)
    secrets = [parties[0]._state["key"], parties[0]._program.draws[0].astype("<i8").tobytes()]

    def there() -> list[bool]:
        content = b"".join(file.read_bytes() for file in (tmp_path / "a").iterdir())
        return [secret in content or secret.hex().encode() in content for secret in secrets]

    assert there() == [True, True]
    parties[0].answer(ask(MessageKind.GO, 0, readies))
    assert there() == [False, False]


def check_mutated_messages_change_nothing(count: int = 1500) -> None:
    """Bytes flipped, cut off, added, doubled: refused with one byte, and the state stays what it was."""
    rng = np.random.default_rng(0)
    parties = three(size=2)
    asked, readies = started(parties)
    go = ask(MessageKind.GO, 0, readies)
    fresh = owner(1, Numbers(1, size=2))
    consents = [fresh.consent()]
    party = parties[0]
    for target, message in ((party, go), (fresh, asked)):
        before, kept = dict(target._state), dict(target._folder)
        for _ in range(count):
            data = bytearray(message)
            at, how = int(rng.integers(len(data))), int(rng.integers(4))
            if how == 0:
                data[at] ^= 1 << int(rng.integers(8))
            elif how == 1:
                del data[at:]
            elif how == 2:
                data[at:at] = rng.bytes(1 + int(rng.integers(70)))
            else:
                data[at : at + 8] = rng.bytes(8)
            if bytes(data) == message:
                continue
            answer = SignedMessage.from_bytes(target.answer(bytes(data)))
            assert answer.kind == MessageKind.REFUSAL and len(answer.body) == 1
            assert target._state == before and target._folder == kept
    assert consents == [fresh.consent()]
    assert refusal_of(party.answer(go)) is None


# ---------------------------------------------------------------- the folder


def check_one_process_at_a_time(tmp_path: Path) -> None:
    folder = OwnerFolder(tmp_path / "a")
    with pytest.raises(PrivacyError, match="used by one process at a time"):
        OwnerFolder(tmp_path / "a").close()
    folder.close()
    OwnerFolder(tmp_path / "a").close()


def check_folders_of_others_and_links_are_refused(tmp_path: Path) -> None:
    home = tmp_path / "a"
    folder = OwnerFolder(home)
    folder.write("one", b"1")
    assert (home / "one").stat().st_mode & 0o777 == 0o600 and home.stat().st_mode & 0o777 == 0o700
    os.link(home / "one", tmp_path / "second-name")
    folder.write("two", b"2")
    os.symlink(home / "two", home / "link")
    (home / "open").write_bytes(b"")
    (home / "open").chmod(0o640)
    (home / "folder").mkdir()
    os.mkfifo(home / "pipe", 0o600)
    for name in ("one", "link", "open", "folder"):
        with pytest.raises(PrivacyError):
            folder.read(name)
    assert folder.read("nothing") is None
    folder.close()
    os.symlink(home, tmp_path / "b")
    with pytest.raises(PrivacyError):
        OwnerFolder(tmp_path / "b").close()
    home.chmod(0o750)
    with pytest.raises(PrivacyError):
        OwnerFolder(home).close()


def check_folders_above_are_nobody_elses_to_change(tmp_path: Path) -> None:
    """Where others can write, they can put an old copy in its place; but not where the folder keeps names as /tmp."""
    above = tmp_path / "above"
    home = above / "between" / "home"
    OwnerFolder(home).close()
    os.symlink(above / "between", tmp_path / "link")
    for mode in (0o777, 0o770, 0o775, 0o702):
        above.chmod(mode)
        for path in (home, tmp_path / "link" / "home", above / "between" / "new"):
            with pytest.raises(PrivacyError, match="no other user can put another one in its place"):
                OwnerFolder(path).close()
    assert not (above / "between" / "new").exists()
    for mode in (0o1777, 0o755):
        above.chmod(mode)
        OwnerFolder(home).close()


def check_changed_totals_are_found() -> None:
    """A file of a total from elsewhere: the model would be another one, and so the next share."""
    folder = MemoryKeeper()
    parties = [owner(1, folder=folder), *three()[1:]]
    coordinator = run_to_end(parties)
    name = next(name for name in folder if name.endswith("total-0"))
    folder[name] = coordinator.totals_[1].astype("<i8").tobytes()
    with pytest.raises(PrivacyError, match="must hold the totals that this owner kept"):
        owner(1, folder=folder)
    del folder[name]
    with pytest.raises(PrivacyError, match="lacks total 0"):
        owner(1, folder=folder)
    folder[name] = bytes(7)  # cut off
    with pytest.raises(PrivacyError, match="lacks total 0"):
        owner(1, folder=folder)


def test_a_damaged_file_of_a_folder_is_refused_by_name() -> None:
    folder = MemoryKeeper()
    party = owner(1, folder=folder)
    party.consent()
    party.poll()
    state, starts = f"{party._name}.state", f"{party._name}.starts"
    for name, content, said in ((starts, b"x", "how often this owner was started"), (state, b"{}", "its state is")):
        with pytest.raises(PrivacyError, match=f"folder must hold .*{said}"):
            owner(1, folder=MemoryKeeper({**folder, name: content})).poll()


def check_a_failed_fsync_is_the_end(tmp_path: Path) -> None:
    """Of a file's content and of its name in the folder, each: no answer, then or later."""
    for which in (0, 1):
        calls, real = [], os.fsync

        def failing(handle: int, which: int = which, calls: list[int] = calls) -> None:
            calls.append(handle)
            if len(calls) == 1 + which:
                raise OSError(5, "Input/output error")

        parties = [owner(1, folder=OwnerFolder(tmp_path / str(which))), *three()[1:]]
        asked = ask(MessageKind.ASK, 0, [party.consent() for party in parties])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            with pytest.raises(OSError, match="Input/output"):
                parties[0].answer(asked)
        assert os.fsync is real
        with pytest.raises(ProtocolError, match="has ended"):
            parties[0].answer(asked)
        with pytest.raises(ProtocolError, match="has ended"):
            parties[0].consent()


# ---------------------------------------------------------------- deaths and copies


class Killed(BaseException):
    """In place of a SIGKILL."""


CALLS = ("open", "fsync", "replace", "unlink")


def check_an_owner_that_dies_at_any_call_of_the_disk(tmp_path: Path) -> None:
    """Before or after it: a new process of the owner goes on, and gives one share of each release."""
    at = 0
    while True:
        home = tmp_path / str(at)
        answers, died = _run_with_a_death(home, at)
        for told in answers.values():
            assert len(set(told)) == 1
        if not died:
            break
        at += 1
    assert at > 30
    assert len({tuple(told) for told in answers.values()}) > 1


def _run_with_a_death(home: Path, at: int) -> tuple[dict[tuple[int, int], list[bytes]], bool]:
    """Answers by kind and index of the requests, each given twice; whether the death came."""
    left = [at]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if left[0] == 0:
                left[0] = -1
                raise Killed
            found = real(*args, **options)
            left[0] -= 1
            if left[0] == 0:
                left[0] = -1
                raise Killed
            return found

        return call

    class Dying:
        """The module os of the folder, whose calls may be the last."""

        def __getattr__(self, name: str) -> Any:
            return dying(getattr(os, name)) if name in CALLS else getattr(os, name)

    others, answers, died = three()[1:], {}, False
    folders: list[OwnerFolder] = []

    def begun() -> DataOwner:
        folders.append(OwnerFolder(home))
        return owner(1, Numbers(100 + len(folders)), folder=folders[-1])

    party = begun()
    coordinator = Coordinator(terms())
    while not coordinator.done_:
        asked = coordinator.asked
        for number in sorted(coordinator.missing):
            if number > 1:
                one = others[number - 2]
                coordinator.take(number, one.answer(asked) if asked else one.consent())
                continue
            told = []
            while len(told) < 2:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(owner_folder, "os", Dying())
                    with suppress(Killed):
                        told.append(party.answer(asked) if asked else party.consent())
                        continue
                died = True
                folders[-1].close()
                party = begun()
            answers[(asked[5], int.from_bytes(asked[8:12], "big")) if asked else (0, 0)] = told
            coordinator.take(1, told[0])
    folders[-1].close()
    assert len(coordinator.totals_) == 2 and len({p.result_ for p in (party, *others)}) == 1
    return answers, died


def check_no_copy_of_a_folder_gives_a_second_view(tmp_path: Path) -> None:
    """From every earlier copy, told all that there was and other readies of an adversary (owner 3): of two shares of
    one release by owner 1 that differ, the difference is uniform, also without the masks that the adversary knows."""
    home = tmp_path / "a"
    folder = OwnerFolder(home)
    parties = [owner(1, Numbers(1, size=SIZE), folder=folder), *three(size=SIZE)[1:]]
    copies: list[Path] = []
    shares: dict[int, dict[bytes, np.ndarray]] = {0: {}, 1: {}}

    def copied() -> None:
        copies.append(tmp_path / f"copy-{len(copies)}")
        shutil.copytree(home, copies[-1])

    requests: list[bytes] = []
    views: dict[int, list[bytes]] = {}
    secrets: dict[int, bytes] = {}
    asked = ask(MessageKind.ASK, 0, [party.consent() for party in parties])
    copied()
    for k in (0, 1):
        readies = [party.answer(asked) for party in parties]
        secrets[k], views[k] = parties[2]._state["key"], readies
        copied()
        go = ask(MessageKind.GO, k, readies)
        answers = [party.answer(go) for party in parties]
        shares[k][answers[0]] = unmasked(answers[0], readies, {3: secrets[k]})
        copied()
        requests += [asked, go]
        asked = ask(MessageKind.ASK, k + 1, answers)
    requests.append(asked)
    folder.close()
    for i, copy in enumerate(copies):
        for twice in (0, 1):
            shutil.copytree(copy, tmp_path / f"again-{i}-{twice}")
            back = OwnerFolder(tmp_path / f"again-{i}-{twice}")
            party = owner(1, Numbers(50 + i, size=SIZE), folder=back)
            for request in requests:
                answer = party.answer(request)
                found = SignedMessage.from_bytes(answer)
                if found.kind == MessageKind.READY:
                    _go_with_other_readies(party, answer, views[found.index], shares, twice)
                if found.kind == MessageKind.SHARE:
                    shares[found.index][answer] = unmasked(answer, views[found.index], {3: secrets[found.index]})
            back.close()
    assert len(shares[0]) > 2 and len(shares[1]) > 2
    for found in shares.values():
        values = list(found.values())
        for i, one in enumerate(values):
            for other in values[:i]:
                assert_uniform(one - other)


def _go_with_other_readies(
    party: DataOwner, ready: bytes, readies: list[bytes], shares: dict[int, dict[bytes, np.ndarray]], twice: int
) -> None:
    """Send an owner its ready with an honest one's, and one that the adversary makes: a new key, or the old words."""
    secret = new_key()
    index = SignedMessage.from_bytes(ready).index
    said = [ready, *(with_ready(readies, 3, key=public_half(secret)) if twice else readies)[1:]]
    answer = party.answer(ask(MessageKind.GO, index, said))
    if SignedMessage.from_bytes(answer).kind == MessageKind.SHARE and twice:
        shares[index][answer] = unmasked(answer, said, {3: secret})


CHECKS: list[Callable[..., None]] = [
    check_other_releases_are_refused,
    check_senders_and_places,
    check_totals_outside_of_their_width_end_the_run,
    check_mutated_messages_change_nothing,
    check_two_contracts_in_one_folder,
    check_a_generator_that_repeats_itself_makes_no_second_ready,
    check_changed_totals_are_found,
]
ON_DISK: list[Callable[..., None]] = [
    check_key_and_draw_are_gone_after_the_share,
    check_one_process_at_a_time,
    check_folders_of_others_and_links_are_refused,
    check_a_failed_fsync_is_the_end,
    check_an_owner_that_dies_at_any_call_of_the_disk,
    check_no_copy_of_a_folder_gives_a_second_view,
    check_what_a_dead_process_left_is_synced_first,
    check_a_fork_writes_nothing,
    check_folders_above_are_nobody_elses_to_change,
]


@pytest.mark.parametrize("check", [*CHECKS, *ON_DISK], ids=lambda check: check.__name__)
def test_what_an_owner_does(check: Callable[..., None], tmp_path: Path) -> None:
    check(tmp_path) if check in ON_DISK else check()


OWN = "accept(parts[self.number - 1] == state["
MUTANTS: dict[str, tuple[Any, str, str, Callable[..., None]]] = {
    "another size": (
        data_owner,
        "(other.size, other.width, other.arrays) == (own.size, own.width, own.arrays)",
        "(other.width, other.arrays) == (own.width, own.arrays)",
        check_other_releases_are_refused,
    ),
    "another width": (
        data_owner,
        "(other.size, other.width, other.arrays) == (own.size, own.width, own.arrays)",
        "(other.size, other.arrays) == (own.size, own.arrays)",
        check_other_releases_are_refused,
    ),
    "other arrays": (
        data_owner,
        "(other.size, other.width, other.arrays) == (own.size, own.width, own.arrays)",
        "(other.size, other.width) == (own.size, own.width)",
        check_other_releases_are_refused,
    ),
    "less noise": (data_owner, " and other.sd >= own.sd * _SAME_NOISE", "", check_other_releases_are_refused),
    "no number for noise": (data_owner, "bool(np.isfinite(other.sd))", "True", check_other_releases_are_refused),
    "own ready": (data_owner, OWN + '"ready"], Refusal.TRANSCRIPT)', "pass", check_senders_and_places),
    "own share": (data_owner, OWN + '"share"], Refusal.TRANSCRIPT)', "pass", check_senders_and_places),
    "transcripts of shares": (data_owner, "accept(same, Refusal.TRANSCRIPT)", "pass", check_senders_and_places),
    "order of questions": (
        data_owner,
        "accept(message.index == follows, Refusal.ORDER)",
        "pass",
        check_senders_and_places,
    ),
    "asked before": (
        data_owner,
        'accept(asked == state["asked"], Refusal.ANSWERED)',
        "pass",
        check_senders_and_places,
    ),
    "totals too wide": (
        data_owner,
        "if not np.all((-half <= total) & (total < half)):",
        "if False:",
        check_totals_outside_of_their_width_end_the_run,
    ),
    "key kept": (
        data_owner,
        'not in ("key", "drawn")',
        'not in ("drawn",)',
        check_key_and_draw_are_gone_after_the_share,
    ),
    "draw kept": (
        data_owner,
        'not in ("key", "drawn")',
        'not in ("key",)',
        check_key_and_draw_are_gone_after_the_share,
    ),
    "shared lock": (owner_folder, "fcntl.LOCK_EX", "fcntl.LOCK_SH", check_one_process_at_a_time),
    "second names": (owner_folder, " and found.st_nlink == 1", "", check_folders_of_others_and_links_are_refused),
    "links": (
        owner_folder,
        "os.open(name, flags | os.O_NOFOLLOW",
        "os.open(name, flags",
        check_folders_of_others_and_links_are_refused,
    ),
    "open to others": (owner_folder, "found.st_mode & 0o077", "0", check_folders_of_others_and_links_are_refused),
    "content not synced": (
        owner_folder,
        "os.fsync(stream.fileno())",
        "pass",
        check_a_failed_fsync_is_the_end,
    ),
    "name not synced": (
        owner_folder,
        "dst_dir_fd=self._folder)\n        os.fsync(self._folder)",
        "dst_dir_fd=self._folder)",
        check_a_failed_fsync_is_the_end,
    ),
    "names of the dead not synced": (
        owner_folder,
        "os.fsync(self._folder)  # names",
        "pass  # names",
        check_what_a_dead_process_left_is_synced_first,
    ),
    "forks": (owner_folder, "if os.getpid() != self._process:", "if False:", check_a_fork_writes_nothing),
    "key without its draw": (
        pairwise_masks,
        "os.urandom(32), *bound)",
        "os.urandom(32))",
        check_a_generator_that_repeats_itself_makes_no_second_ready,
    ),
    "other contracts forgotten": (
        data_owner,
        '(self._folder.read(_ANSWERED) or b"") + self.contract.digest',
        "self.contract.digest",
        check_two_contracts_in_one_folder,
    ),
    "goes on after a failure": (
        data_owner,
        "self._failed = True  # nobody knows what is on the disk",
        "pass",
        check_a_failed_fsync_is_the_end,
    ),
    "folders above": (
        owner_folder,
        "_check_above(Path(self._path).parent)",
        "pass",
        check_folders_above_are_nobody_elses_to_change,
    ),
    "changed totals": (data_owner, "!= _hash_of(self._totals)", "is None", check_changed_totals_are_found),
    "ready not kept": (
        data_owner,
        "        self._save(state)\n        self._totals = totals",
        "        self._state = state\n        self._totals = totals",
        check_an_owner_that_dies_at_any_call_of_the_disk,
    ),
}
"""Lines of an owner, and what goes wrong without them."""


@pytest.mark.parametrize("name", MUTANTS)
def test_each_line_of_an_owner_is_needed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, old, new, check = MUTANTS[name]
    mutate(monkeypatch, module, old, new)
    with pytest.raises((AssertionError, ProtocolError, KeyError, pytest.fail.Exception)):
        check(tmp_path) if check in ON_DISK else check()
