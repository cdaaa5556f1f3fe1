"""Messages that somebody changed on their way: an owner refuses each with a code, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from masked_tools import Numbers, ask, owner, refusal_of, three

from fdadp.federated.owners.data_owner import DataOwner
from fdadp.federated.owners.owner_folder import MemoryKeeper
from fdadp.federated.owners.signed_messages import MessageKind

Mutation = Callable[[bytes, np.random.Generator], bytes]
HEAD = 48


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    at, bit = int(rng.integers(len(data))), int(rng.integers(8))
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def flipped_head(data: bytes, rng: np.random.Generator) -> bytes:
    return flipped(data[:HEAD], rng) + data[HEAD:]


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def longer(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 200)))


def overwritten(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    return (data[:at] + rng.bytes(size) + data[at + size :])[: len(data)]


def moved(data: bytes, rng: np.random.Generator) -> bytes:
    """A piece of the message in another place of it."""
    a, b, size = (int(v) for v in rng.integers(1, len(data), 3))
    return data[:a] + data[b : b + size] + data[a + size :]


def noise(data: bytes, rng: np.random.Generator) -> bytes:
    return rng.bytes(int(rng.integers(2 * len(data))))


MUTATIONS: list[Mutation] = [flipped, flipped_head, cut, longer, overwritten, moved, noise]


def stages() -> list[tuple[DataOwner, bytes, list[bytes]]]:
    """An owner at each place of a run, what it is asked there, and what it was asked before."""
    found, before = [], list[bytes]()
    parties = three()
    asked = ask(MessageKind.ASK, 0, [party.consent() for party in parties])
    for kind, index in ((MessageKind.GO, 0), (MessageKind.ASK, 1), (MessageKind.GO, 1), (MessageKind.ASK, 2)):
        folder = MemoryKeeper(parties[0]._folder)
        found.append((owner(1, Numbers(1), folder), asked, list(before)))
        before.append(asked)
        asked = ask(kind, index, [party.answer(asked) for party in parties])
    return found


@pytest.mark.parametrize(
    "count", [pytest.param(2_000, id="some"), pytest.param(100_000, id="all", marks=pytest.mark.long)]
)
def test_mutated_messages_are_refused_and_change_nothing(count: int) -> None:
    rng, places = np.random.default_rng(0), stages()
    codes = set()
    for i in range(count):
        party, asked, before = places[i % len(places)]
        asked = [asked, *before][int(rng.integers(1 + len(before)))]
        changed = MUTATIONS[int(rng.integers(len(MUTATIONS)))](asked, rng)
        if changed in (asked, *before, places[i % len(places)][1]):
            continue
        state, kept = dict(party._state), dict(party._folder)
        answer = party.answer(changed)
        assert len(answer) == HEAD + 1 + 64  # a code and a signature: no word, no path
        codes.add(refusal_of(answer))
        assert party._state == state and party._folder == kept
    assert None not in codes and len(codes) >= 6
    for party, asked, _ in places:
        assert refusal_of(party.answer(asked)) is None  # what was asked is answered after all that
