"""State of a party between two messages, on disk: the answers that it gave, and the user's secret key.

Flower starts a new process for every message. Its own ``context.state`` is handed over after the answer has left and
lives in the memory of the SuperNode; an owner that forgot its share would draw a second one, with other noise, and two
shares tell more than the budget was charged for. So a party keeps its state in a folder of its own and answers one
message at a time: an answer is made, written and synced, and leaves then. A party that dies before it is written has
told nobody, and makes another one.

The data user makes its key before there is a contract that names it (:func:`new_key`), and forgets it when the run is
done.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fdadp.errors import FileFormatError
from fdadp.federated.paillier import PublicKey, SecretKey, keys
from fdadp.federated.run_contract import Contract
from fdadp.files.atomic_writes import SECRET, sync_folder, write_text


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
        self._folder = Path(folder) / f"{contract.digest.hex()[:16]}-{name}"
        self._key = _key_path(folder, contract.key or "")

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Lock the folder; other processes wait."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self

    def state(self) -> dict[str, bytes]:
        """Read the saved :attr:`~fdadp.federated.parties.Party.state`; empty at first.

        Raises
        ------
        FileFormatError
            The file is not what was written: rather no answer than a second share.
        """
        return {name: bytes.fromhex(value) for name, value in _read(self._folder / "state.json").items()}

    def save(self, state: Mapping[str, bytes]) -> None:
        """Write the state to disk atomically."""
        _write(self._folder / "state.json", {name: value.hex() for name, value in state.items()})

    def key(self) -> SecretKey | None:
        """The data user's key of this run; None: it is not here, or not any more."""
        found = _read(self._key)
        return SecretKey.from_primes(int(found["p"], 16), int(found["q"], 16)) if found else None

    def forget_key(self) -> None:
        """Delete the key: nothing of this run is decrypted any more."""
        if self._key.exists():
            self._key.unlink()
            sync_folder(self._key.parent)


def new_key(folder: str | Path, bits: int) -> PublicKey:
    """Make a data user's key, write it where that user's :class:`Store` looks for it, and return the public half."""
    key = keys(bits)
    p, q = key.primes
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(_key_path(folder, key.public.digest), {"p": f"{p:x}", "q": f"{q:x}"})
    return key.public


def _key_path(folder: str | Path, digest: str) -> Path:
    return Path(folder) / f"key-{digest[:16]}.json"


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except (TypeError, ValueError, RecursionError) as exc:
        raise FileFormatError(f"{path} must be as this party wrote it, and is not") from exc


def _write(path: Path, content: Mapping[str, str]) -> None:
    write_text(path, json.dumps(dict(content)), SECRET)
