"""CPU of one regression of three owners with masks between them, beside the model's program alone.

``python benchmarks/federated/masks.py`` writes ``results/masks.md``. CPU outside of the model's program (fits by owners
and user) is what the protocol costs. Paillier's, which it replaced: ``docs/decisions/0052-masks-between-owners.md``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from fdadp.federated import Contract, federated_models, fit_in_clear, fit_together
from fdadp.federated.owners import pairwise_masks
from fdadp.federated.owners.pairwise_masks import MaskedRelease
from fdadp.federated.owners.signed_messages import MessageKind, Share, SignedMessage, body_of
from fdadp.federated.run_contract import Signer

OWNERS, PEOPLE, POINTS, SIZE = 3, 3000, 41, 4000


def curves() -> tuple[np.ndarray, np.ndarray, list[float]]:
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, POINTS)
    X = (rng.normal(size=(PEOPLE, 3)) / [1, 2, 3]) @ np.array([np.sin(k * np.pi * s) for k in (1, 2, 3)])
    Y = np.cos(s[None, :, None] - X[:, None, :]).mean(axis=2) + 0.1 * rng.normal(size=(PEOPLE, POINTS))
    return X, Y, s.tolist()


def measured(task: Any) -> tuple[float, float, Any]:
    """CPU seconds of all, those inside the model's program, and what came of it."""
    fit, inside = federated_models.fit, [0.0]

    def timed(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return fit(*args, **options)
        finally:
            inside[0] += time.process_time() - start

    federated_models.fit = timed
    try:
        start = time.process_time()
        found = task()
        return time.process_time() - start, inside[0], found
    finally:
        federated_models.fit = fit


def one_owner(owners: int) -> float:
    """CPU milliseconds of one owner of so many in a release of 4,000 numbers: masks, and all signatures to check."""
    rng, signers = np.random.default_rng(0), [Signer.new() for _ in range(owners)]
    settings = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 1.0, "n_features": 2}
    terms = Contract("pca", settings, owners, n_max=1000, owner_keys=tuple(s.public for s in signers))
    digest, secrets = terms.digest, [pairwise_masks.new_key() for _ in signers]
    public = [pairwise_masks.public_half(secret) for secret in secrets]
    share = rng.integers(-(2**40), 2**40, SIZE)
    messages = []
    for i, signer in enumerate(signers, start=1):
        body = Share(bytes(32), bytes(32), share.view(np.uint64)).to_bytes()
        plain = SignedMessage(MessageKind.SHARE, i, 0, digest, body)
        messages.append(plain.to_bytes()[:-64] + signer.sign(plain.signed))
    times = []
    for _ in range(5):
        start = time.process_time()
        pairwise_masks.masked(share, secrets[0], 1, public, MaskedRelease(digest, 0, bytes(32)))
        for _ in range(2):  # shares, and as many readies, which are shorter
            for i, message in enumerate(messages, start=1):
                Share.from_bytes(body_of(message, terms, MessageKind.SHARE, i, 0), SIZE)
        times.append(1e3 * (time.process_time() - start))
    return min(times)


def main() -> None:
    X, Y, s = curves()
    settings = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"X": [-3, 3], "Y": [-3, 3]}, "n": PEOPLE, "s": s, "t": s}
    terms = Contract("regression", settings, OWNERS, n_max=PEOPLE)
    data = list(zip(np.array_split(X, OWNERS), np.array_split(Y, OWNERS), strict=True))
    fit_together(terms, data)  # compiles what is compiled once
    rows, models = [], []
    for how, task in (
        ("shares added in clear", lambda: fit_in_clear(terms, data, random_state=0)),
        ("masks", lambda: fit_together(terms, data, random_state=0)),
    ):
        whole, inside, model = measured(task)
        models.append(model.predict(X[:20]))
        rows.append((how, len(model.ledger_.releases), whole, inside, whole - inside))
    lines = [
        "# Masks between owners",
        "",
        f"CPU seconds of a regression of {OWNERS} owners, {PEOPLE:,} people, curves of {POINTS} points, all parties in "
        f"one process, with the same seeds. Other work on the same cores makes CPU times longer. Predictions are "
        f"the same to the last bit: {np.array_equal(*models)}.",
        "",
        "| | releases | all | the model's program | the protocol |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {how} | {count} | {a:.2f} | {b:.2f} | {c:.2f} |" for how, count, a, b, c in rows),
        "",
        f"One owner in one release of {SIZE:,} numbers, masks and two checked signatures of each owner:",
        "",
        "| owners | CPU ms |",
        "| --- | --- |",
        *(f"| {owners} | {one_owner(owners):.1f} |" for owners in (3, 10, 100)),
        "",
    ]
    table = "\n".join(lines)
    (Path(__file__).parent / "results" / "masks.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
