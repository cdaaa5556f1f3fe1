"""Messages and masks of owners: known answers, another implementation, and what nobody may learn."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import struct
from collections.abc import Callable

import numpy as np
import pytest
from masked_tools import (
    Numbers,
    ask,
    assert_uniform,
    owner,
    p_of_uniform,
    refusal_of,
    signed,
    started,
    terms,
    three,
    unmasked,
    values_of,
    with_ready,
)
from mutants import mutate

from fdadp.federated.owners import data_owner, pairwise_masks, signed_messages
from fdadp.federated.owners.one_process import run_to_end
from fdadp.federated.owners.pairwise_masks import MaskedRelease, masked, new_key, pair_mask, public_half
from fdadp.federated.owners.signed_messages import MessageKind, Ready, Refusal, Share, SignedMessage
from fdadp.federated.run_contract import ProtocolError

PRIME = 2**255 - 19
SIZE = 2048

# ---------------------------------------------------------------- another implementation, from the RFCs alone


def x25519(secret: bytes, public: bytes) -> bytes:
    """The ladder of RFC 7748, section 5."""
    k = int.from_bytes(secret, "little") & ~7 & (2**255 - 1) | 2**254
    x1 = int.from_bytes(public, "little") % 2**255
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = pow(da + cb, 2, PRIME), x1 * pow(da - cb, 2, PRIME) % PRIME
        x2, z2 = aa * bb % PRIME, e * (aa + 121665 * e) % PRIME
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int = 32) -> bytes:
    """RFC 5869."""
    key, found, block = hmac.digest(salt, secret, "sha256"), b"", b""
    for i in range(1, 1 + -(-length // 32)):
        block = hmac.digest(key, block + info + bytes([i]), "sha256")
        found += block
    return found[:length]


def chacha20(key: bytes, nonce: bytes, counter: int, size: int) -> bytes:
    """The stream of RFC 8439, section 2.4."""
    found = b""
    while len(found) < size:
        start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter]
        start += struct.unpack("<3I", nonce)
        w = list(start)
        for _ in range(10):
            for a, b, c, d in QUARTERS:
                for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    w[x] = w[x] + w[y] & 0xFFFFFFFF
                    mixed = w[z] ^ w[x]
                    w[z] = (mixed << left | mixed >> 32 - left) & 0xFFFFFFFF
        found += struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(w, start, strict=True)))
        counter += 1
    return found[:size]


QUARTERS = [(i % 4, 4 + (i + r) % 4, 8 + (i + 2 * r) % 4, 12 + (i + 3 * r) % 4) for r in (0, 1) for i in range(4)]


def test_the_other_implementation_gives_the_answers_of_the_rfcs() -> None:
    # RFC 7748, 5.2 and 6.1
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    assert public_half(alice).hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    shared = x25519(bob, public_half(alice))
    assert shared.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    # RFC 5869, A.1
    found = hkdf(bytes(range(13)), b"\x0b" * 22, bytes(range(0xF0, 0xFA)), 42).hex()
    assert found == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    # RFC 8439, A.1, the first vector, and 2.4.2
    zeros = chacha20(bytes(32), bytes(12), 0, 32).hex()
    assert zeros == "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    stream = chacha20(bytes(range(32)), bytes.fromhex("000000000000004a00000000"), 1, 16)
    assert bytes(a ^ b for a, b in zip(b"Ladies and Gentl", stream, strict=True)).hex() == (
        "6e2e359a2568f98041ba0728dd0d6981"
    )


def test_signatures_are_those_of_rfc_8032() -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(
        bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    )
    assert key.public_key().public_bytes_raw().hex() == (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    )
    assert key.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe"
        "24655141438e7a100b"
    )


def other_mask(shared: bytes, release: MaskedRelease, low: int, high: int, size: int) -> list[int]:
    info = b"fdadp mask v1\0" + struct.pack(">IHH", release.k, low, high) + release.readies
    stream = chacha20(hkdf(release.digest, shared, info), bytes(12), 0, 8 * size)
    return list(struct.unpack(f"<{size}Q", stream))


def test_masks_are_those_of_the_other_implementation() -> None:
    a, b = new_key(), new_key()
    shared, release = x25519(a, public_half(b)), MaskedRelease(bytes(range(32)), 7, bytes(range(32, 64)))
    assert pair_mask(shared, release, 2, 300, 20).tolist() == other_mask(shared, release, 2, 300, 20)
    known = pair_mask(bytes(range(32)), release, 2, 300, 2).tolist()
    assert known == other_mask(bytes(range(32)), release, 2, 300, 2) == KNOWN


KNOWN = [10758254742879707041, 6180222816983022822]


def hashed(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()


def check_a_whole_run_by_the_other_implementation() -> None:
    """Every hash and every share of a run, from keys and draws alone."""
    owners = three()
    _, readies = started(owners)
    secrets = [party._state["key"] for party in owners]
    contract, consents = terms(), [party.consent() for party in owners]
    T = hashed(b"T", contract.digest, *consents)
    R = hashed(b"R", T, *readies)
    release = MaskedRelease(contract.digest, 0, R)
    go = ask(MessageKind.GO, 0, readies)
    shares = [party.answer(go) for party in owners]
    for i, party in enumerate(owners, start=1):
        v = [int(x) for x in party._program.draws[0]]
        for j in (1, 2, 3):
            if j != i:
                shared = x25519(secrets[i - 1], public_half(secrets[j - 1]))
                mask = other_mask(shared, release, min(i, j), max(i, j), len(v))
                v = [x + m if i < j else x - m for x, m in zip(v, mask, strict=True)]
        body = T + R + b"".join((x % 2**64).to_bytes(8, "big") for x in v)
        assert shares[i - 1] == signed(i, MessageKind.SHARE, 0, body)
        head = struct.pack(">4sBBHI32sI", b"FDAO", 1, 5, i, 0, contract.digest, len(body))
        assert shares[i - 1][:-64] == head + body
    following = owners[0].answer(ask(MessageKind.ASK, 1, shares))
    T1 = hashed(b"T", T, R, *(hashlib.sha256(share).digest() for share in shares))
    assert Ready.from_bytes(SignedMessage.from_bytes(following).body).transcript == T1


@pytest.mark.parametrize("count", [3, 10, pytest.param(100, marks=pytest.mark.statistics)])
def test_all_messages_are_written_again_from_totals_and_uniform_numbers(count: int) -> None:
    """What anybody sees of a run, byte for byte: of the draws only totals are in it. The rest is keys, shares of all
    owners but the last, which are uniform, and what follows."""
    owners = three(count, size=600 // count, releases=1)
    contract, found = terms(count), run_to_end(owners)
    (total,) = found.totals_
    first, go, last = (SignedMessage.from_bytes(asked) for asked in found.requests_)
    seen = [Share.from_bytes(SignedMessage.from_bytes(m).body) for m in signed_messages.split(last.body, count)]
    free = [share.values for share in seen[:-1]]
    assert_uniform(np.concatenate(free))
    closing = total.view(np.uint64) - sum(free, np.zeros(len(total), dtype=np.uint64))
    consents = [signed(i, MessageKind.CONSENT, 0, b"", contract) for i in range(1, count + 1)]
    T = hashed(b"T", contract.digest, *consents)
    keys = [Ready.from_bytes(SignedMessage.from_bytes(m).body).key for m in signed_messages.split(go.body, count)]
    said = [T + key + struct.pack(">IBd", len(total), 40, 100.0) + b"a" * 32 for key in keys]
    readies = [signed(i, MessageKind.READY, 0, body, contract) for i, body in enumerate(said, start=1)]
    bodies = [T + hashed(b"R", T, *readies) + v.astype(">u8").tobytes() for v in (*free, closing)]
    shares = [signed(i, MessageKind.SHARE, 0, body, contract) for i, body in enumerate(bodies, start=1)]
    written = (first.index, consents), (go.index, readies), (last.index, shares)
    for message, (index, parts) in zip((first, go, last), written, strict=True):
        kind = MessageKind.GO if parts is readies else MessageKind.ASK
        assert message.to_bytes() == ask(kind, index, parts, contract)


# ---------------------------------------------------------------- what an adversary may try, and what must come of it


def check_totals() -> None:
    """The sum of the shares, negative ones too, is that of the draws."""
    owners = three(size=64)
    totals = run_to_end(owners).totals_
    assert len(totals) == 2
    for k, total in enumerate(totals):
        np.testing.assert_array_equal(total, sum(party._program.draws[k] for party in owners))
        assert total.dtype == np.int64


def check_every_number_is_masked() -> None:
    owners = three(size=SIZE)
    _, readies = started(owners)
    for party in owners:
        values = values_of(party.answer(ask(MessageKind.GO, 0, readies)))
        assert_uniform(values)
        assert not np.any(values.view(np.int64) == party._program.draws[0])


def check_a_copied_key_opens_nothing() -> None:
    """Owner 3 has owner 1's key, or the other number with the same secrets: the masks of owner 2 do not cancel."""
    v, secrets = np.zeros(SIZE, dtype=np.int64), [new_key(), new_key()]
    first, second = map(public_half, secrets)
    twin = pow(int.from_bytes(first, "little"), -1, PRIME).to_bytes(32, "little")  # plus the point of order 2
    assert x25519(secrets[1], twin) == x25519(secrets[1], first)
    for copy in (first, twin):
        release = MaskedRelease(bytes(32), 0, bytes(32))
        assert_uniform(masked(v, secrets[1], 2, [first, second, copy], release))


def check_keys_of_no_use_are_refused() -> None:
    """A key twice, in other bytes, or of low order."""
    owners = three()
    _, readies = started(owners)
    first = Ready.from_bytes(SignedMessage.from_bytes(readies[0]).body).key
    low = [0, 1, PRIME - 1, LOW_A, LOW_B]
    assert {x25519(new_key(), u.to_bytes(32, "little")) for u in low} == {bytes(32)}
    odd = [first, first[:31] + bytes([first[31] | 128]), *((PRIME + u).to_bytes(32, "little") for u in (2, 9))]
    for key in [*odd, *(u.to_bytes(32, "little") for u in low)]:
        before = dict(owners[1]._state)
        answer = owners[1].answer(ask(MessageKind.GO, 0, with_ready(readies, 3, key=key)))
        assert refusal_of(answer) == Refusal.KEY, key.hex()
        assert owners[1]._state == before
    values_of(owners[1].answer(ask(MessageKind.GO, 0, readies)))


LOW_A = 325606250916557431795983626356110631294008115727848805560023387167927233504
LOW_B = 39382357235489614581723060781553021112529911719440698176882885853963445705823


def check_no_view_opens_a_part(owners: int = 4) -> None:
    """The last owner says two things; the honest ones are told one of them each, in every way. Of all their shares and
    its own secrets nothing comes out but the sum of all of them, where all were told the same."""
    said = [new_key(), new_key()]
    honest = range(1, owners)
    for told in itertools.product((0, 1), repeat=owners - 1):
        parties = three(owners, size=512)
        _, readies = started(parties)
        views = [with_ready(readies, owners, key=public_half(secret)) for secret in said]
        shares = {}
        for i, view in zip(honest, told, strict=True):
            share = parties[i - 1].answer(ask(MessageKind.GO, 0, views[view], terms(owners)))
            shares[i] = unmasked(share, readies, {owners: said[view]})
        drawn = sum(parties[i - 1]._program.draws[0] for i in honest)
        for count in honest:
            for part in itertools.combinations(honest, count):
                found = sum((shares[i] for i in part), np.zeros(512, dtype=np.uint64))
                if count == owners - 1 and len(set(told)) == 1:
                    np.testing.assert_array_equal(found.view(np.int64), drawn)
                else:
                    assert_uniform(found)


def check_two_sets_of_readies() -> None:
    """One of them is answered."""
    owners = three()
    _, readies = started(owners)
    share = owners[0].answer(ask(MessageKind.GO, 0, readies))
    other = with_ready(readies, 3, key=public_half(new_key()))
    assert refusal_of(owners[0].answer(ask(MessageKind.GO, 0, other))) == Refusal.ANSWERED
    assert owners[0].answer(ask(MessageKind.GO, 0, readies)) == share


def check_other_totals_end_in_nothing() -> None:
    """An owner that is told other shares says another T, and nobody answers readies that differ in it."""
    owners = three()
    _, readies = started(owners)
    shares = [party.answer(ask(MessageKind.GO, 0, readies)) for party in owners]
    said = Share.from_bytes(SignedMessage.from_bytes(shares[2]).body)
    other = signed(3, MessageKind.SHARE, 0, said._replace(values=said.values + np.uint64(1)).to_bytes())
    split = [
        party.answer(ask(MessageKind.ASK, 1, told))
        for party, told in zip(owners, (shares, [*shares[:2], other], shares), strict=True)
    ]
    for party in owners:
        assert refusal_of(party.answer(ask(MessageKind.GO, 1, split))) == Refusal.TRANSCRIPT


def check_a_lost_folder_gives_no_second_view() -> None:
    """A second share of one release, by an owner that lost all: its difference to the first is uniform."""
    owners = three(size=SIZE)
    asked, readies = started(owners)
    go = ask(MessageKind.GO, 0, readies)
    first = owners[0].answer(go)
    owners[1].answer(go)
    again = owner(1, Numbers(1, size=SIZE))
    again.consent()
    fresh = [again.answer(asked), *readies[1:]]
    second = again.answer(ask(MessageKind.GO, 0, fresh))
    assert refusal_of(owners[1].answer(ask(MessageKind.GO, 0, fresh))) == Refusal.ANSWERED
    assert_uniform(values_of(first) - values_of(second))


def check_releases_differ() -> None:
    """Masks of two releases have nothing in common."""
    owners = three(size=SIZE)
    coordinator = run_to_end(owners)
    shares = [SignedMessage.from_bytes(asked) for asked in coordinator.requests_ if asked[5] == MessageKind.ASK][1:]
    one, two = (signed_messages.split(asked.body, 3) for asked in shares)
    for a, b in zip(one, two, strict=True):
        assert_uniform(values_of(a) - values_of(b))


CHECKS: list[Callable[[], None]] = [
    check_a_whole_run_by_the_other_implementation,
    check_totals,
    check_every_number_is_masked,
    check_a_copied_key_opens_nothing,
    check_keys_of_no_use_are_refused,
    check_no_view_opens_a_part,
    check_two_sets_of_readies,
    check_other_totals_end_in_nothing,
    check_a_lost_folder_gives_no_second_view,
    check_releases_differ,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_an_adversary_gets(check: Callable[[], None]) -> None:
    check()


def test_three_owners_in_every_view() -> None:
    check_no_view_opens_a_part(3)


INFO = 'struct.pack(">IHH", release.k, low, high) + release.readies'
MUTANTS = {
    "owners left out of info": (
        pairwise_masks,
        INFO,
        'struct.pack(">I", release.k) + release.readies',
        check_a_copied_key_opens_nothing,
    ),
    "R left out of info": (
        pairwise_masks,
        INFO,
        'struct.pack(">IHH", release.k, low, high)',
        check_no_view_opens_a_part,
    ),
    "release left out of info": (
        pairwise_masks,
        INFO,
        'struct.pack(">HH", low, high) + release.readies',
        check_a_whole_run_by_the_other_implementation,
    ),
    "digest left out": (
        pairwise_masks,
        "salt=release.digest",
        "salt=bytes(32)",
        check_a_whole_run_by_the_other_implementation,
    ),
    "T left out of R": (
        signed_messages,
        'hashed(b"R", transcript, *readies)',
        'hashed(b"R", *readies)',
        check_a_whole_run_by_the_other_implementation,
    ),
    "T need not be the same": (
        data_owner,
        "accept(all(other.transcript == transcript for other in said), Refusal.TRANSCRIPT)",
        "pass",
        check_other_totals_end_in_nothing,
    ),
    "shares left out of T": (
        signed_messages,
        ", *(hashlib.sha256(share).digest() for share in shares))",
        ")",
        check_other_totals_end_in_nothing,
    ),
    "no sign": (pairwise_masks, "if number < other else total - mask", "if number else total", check_totals),
    "signs swapped": (
        pairwise_masks,
        "if number < other",
        "if number > other",
        check_a_whole_run_by_the_other_implementation,
    ),
    "signed numbers": (pairwise_masks, '"<u8"', '"<i8"', check_totals),
    "short stream": (
        pairwise_masks,
        "update(bytes(8 * size))",
        "update(bytes(8 * size - 8)) + bytes(8)",
        check_every_number_is_masked,
    ),
    "one mask for all releases": (
        pairwise_masks,
        "derive(shared)",
        "derive(bytes(32))",
        check_a_whole_run_by_the_other_implementation,
    ),
    "no masks": (pairwise_masks, "total = total + mask if", "total = total if", check_every_number_is_masked),
    "keys twice": (
        pairwise_masks,
        "accept(len(set(keys)) == len(keys), Refusal.KEY)",
        "pass",
        check_keys_of_no_use_are_refused,
    ),
    "other bytes of a key": (
        pairwise_masks,
        'accept(all(int.from_bytes(key, "little") < _PRIME for key in keys), Refusal.KEY)',
        "pass",
        check_keys_of_no_use_are_refused,
    ),
    "keys of low order": (
        pairwise_masks,
        "raise RefusedMessage(Refusal.KEY) from exc",
        "continue",
        check_keys_of_no_use_are_refused,
    ),
    "old keys": (
        pairwise_masks,
        'hashed(b"key", os.urandom(32), *bound)',
        "bytes(range(32))",
        check_a_lost_folder_gives_no_second_view,
    ),
    "a second R is answered": (
        data_owner,
        'accept(readies == state["readies"], Refusal.ANSWERED)',
        "pass",
        check_two_sets_of_readies,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_line_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, check = MUTANTS[name]
    mutate(monkeypatch, module, old, new)
    with pytest.raises((AssertionError, ProtocolError)):
        check()


def test_chi_square_tells_shares_from_random_numbers() -> None:
    shares = np.random.default_rng(0).integers(-(2**20), 2**20, SIZE).view(np.uint64)
    assert p_of_uniform(shares) < 1e-100
    assert p_of_uniform(np.random.default_rng(0).integers(0, 2**64, SIZE, dtype=np.uint64)) > 1e-3
