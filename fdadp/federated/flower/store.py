"""What a party must not forget between two messages: the answers that it gave, and the user's secret key.

Flower starts a new process for every message. Its own ``context.state`` is handed over after the answer has left and
lives in the memory of the SuperNode; an owner that forgot its share would draw a second one, with other noise, and two
shares tell more than the budget was charged for. So a party keeps its state in a folder of its own, written and synced
before the answer leaves, and answers one message at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fdadp.errors import FileFormatError
from fdadp.federated.contract import Contract
from fdadp.federated.paillier import SecretKey, keys

__all__ = ["Store"]


class Store:
    """The folder of one party in one run, which nobody else may read.

    Parameters
    ----------
    folder : path
        Of all runs of this party; made if it is not there.
    contract : Contract
    name : str
        Of the party.
    """

    def __init__(self, folder: str | Path, contract: Contract, name: str) -> None:
        self._contract = contract
        self._folder = Path(folder) / f"{contract.digest.hex()[:16]}-{name}"

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Hold the folder: others wait."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self

    def state(self) -> dict[str, bytes]:
        """What :attr:`~fdadp.federated.parties.Party.state` was; at first nothing.

        Raises
        ------
        FileFormatError
            The file is not what was written: rather no answer than a second share.
        """
        return {name: bytes.fromhex(value) for name, value in self._read("state.json").items()}

    def save(self, state: Mapping[str, bytes]) -> None:
        """Write the state, all or nothing, and have it on the disk."""
        self._write("state.json", {name: value.hex() for name, value in state.items()})

    def key(self) -> SecretKey:
        """The data user's key of this run, made when it is first asked for."""
        found = self._read("key.json")
        if found:
            return SecretKey.from_primes(int(found["p"], 16), int(found["q"], 16))
        key = keys(self._contract.key_bits)
        p, q = key.primes
        self._write("key.json", {"p": f"{p:x}", "q": f"{q:x}"})
        return key

    def _read(self, name: str) -> dict[str, str]:
        path = self._folder / name
        if not path.exists():
            return {}
        try:
            return dict(json.loads(path.read_text()))
        except (TypeError, ValueError) as exc:
            raise FileFormatError(f"{path} must be as this party wrote it, and is not") from exc

    def _write(self, name: str, content: Mapping[str, str]) -> None:
        new = self._folder / f"{name}.new"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(dict(content), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
