"""An audit of what all see of a run: whole sums of shares, by their size and by each of their bits.

Messages are written again from totals and uniform numbers in ``test_federated_masks.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from fdadp.audit.black_box import _Shown, black_box_audit
from fdadp.federated.owners.signed_messages import Share, total_of
from fdadp.privacy import Budget
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound

OWNERS, DELTA = 100, 1e-5
AMOUNT = Budget(1.0, DELTA).total
STEP = 2**24  # what one person may move

View = Callable[[np.ndarray, int], list[int]]
"""From the shares (owners, runs) of releases of one number to the sum that all see in each run."""


def summed(shares: np.ndarray, width: int) -> list[int]:
    """By the package itself, of shares as they travel: modulo 2^64."""
    sent = [Share.from_bytes(Share(bytes(32), bytes(32), v.view(np.uint64)).to_bytes()) for v in shares]
    return [int(v) for v in total_of(sent)]


def with_carries(shares: np.ndarray, width: int) -> list[int]:
    """Version 0.1: each share modulo 2^width first, and a sum that is not."""
    mask = (1 << width) - 1
    return [int(v) << width for v in (shares & mask).sum(axis=0)]


def shares_of(runs: int, present: bool, rng: np.random.Generator | None) -> tuple[np.ndarray, int]:
    """Shares of 100 owners in so many runs, with the person or without, from the kernel's noise.

    The others have many persons; the first one's sum is where its sign tells most about one person more.
    """
    noise = DistributedNoise(owners=OWNERS, honest=OWNERS - 1, n_max=1000, random_state=rng)
    sampler = noise.prepare("gaussian", runs, STEP, AMOUNT)
    exact = np.full((OWNERS, runs), 100 * STEP)
    exact[0] = -int(4 * sampler.sd / np.sqrt(OWNERS)) + present * STEP
    out, width = np.empty_like(exact), 0
    for i in range(OWNERS):
        with pytest.raises(NextRound) as waits:
            sampler(exact[i])
        out[i], width = waits.value.share, waits.value.width
    return out, width


def audited(view: View, runs: int, rng: np.random.Generator | None = None) -> float:
    """Lower bound on ε, at 95 %, from whole sums: by their size, or by any of their bits.

    The first half of the runs chooses what to look at, the second half bounds.
    """
    views: list[np.ndarray] = []
    for present in (True, False):
        found: list[int] = []
        for start in range(0, runs, 20_000):  # so that all shares need not be there at once
            shares, width = shares_of(min(20_000, runs - start), present, rng)
            found += view(shares, width)
        low = np.array([v & (2**62 - 1) for v in found])
        high = np.array([(v >> 62) & (2**62 - 1) for v in found])
        size = np.array([v >> 10 for v in found], dtype=float)
        views.append(np.array([*((part >> b) & 1 for part in (low, high) for b in range(62)), size]))
    first, last = ([view[:, part] for view in views] for part in (slice(None, runs // 2), slice(runs // 2, None)))
    column = int(np.argmax([*bits_tell(*(view[:-1] for view in first)), size_tells(*first)]))
    return size_tells(*last) if column == 124 else float(bits_tell(*(view[column : column + 1] for view in last))[0])


def size_tells(present: np.ndarray, absent: np.ndarray) -> float:
    return black_box_audit(present[-1], absent[-1], epsilon=1.0, delta=DELTA).found


def bits_tell(present: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Lower bound on ε from each bit: from its being 1 and its being 0, with the person and without."""
    sides = [(view.sum(axis=1), view.shape[1]) for view in (present, absent)]
    bounds = []
    for (here, n), (there, m) in (sides, sides[::-1]):
        for hits, false in ((here, there), (n - here, m - there)):
            bounds.append(_Shown(DELTA, None)(hits, n, false, m, 0.05 / 4))
    return np.max(bounds, axis=0)


def test_the_sum_of_shares_keeps_the_promise_in_short() -> None:
    """200 runs of the real noise; :func:`test_the_sum_of_shares_keeps_the_promise` has 2,000."""
    assert audited(summed, 200) <= 1


@pytest.mark.long
def test_the_sum_of_shares_keeps_the_promise() -> None:
    found = audited(summed, 2000)
    print(f"claimed epsilon 1, 100 owners, 2000 runs with the person and 2000 without: at least {found:.2f}")
    assert found <= 1
    assert audited(with_carries, 2000) > 1  # so many runs are enough to find a leak


@pytest.mark.statistics
def test_the_same_audit_finds_what_carries_give_away() -> None:
    """In version 0.1 a carry told the sign of an owner's share. 200,000 and 40,000 runs with seeded noise."""
    assert audited(with_carries, 200_000, np.random.default_rng(0)) >= 6
    assert audited(summed, 40_000, np.random.default_rng(0)) <= 1
