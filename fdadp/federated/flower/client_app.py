"""An owner or the data user on a SuperNode: Flower starts this for every message, and it ends with the answer.

The node's configuration: ``party`` (``'owner-3'`` or ``'user'``), ``contract`` (file with the terms this party agrees
to), ``store`` (folder for what it must remember), and for owners ``data`` and ``key`` (file of its secret key).
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fdadp.errors import InputError
from fdadp.federated.contract import USER, Contract, Signer
from fdadp.federated.flower.transport import ASK, HELLO, hello_of, payload, record
from fdadp.federated.wire import Kind
from fdadp.federated.wire import Message as Wire
from fdadp.files.regular import text_of

# Parties are imported where a request is answered: a greeting should not wait for seconds of imports.
if TYPE_CHECKING:
    from fdadp.federated.parties import Party

log = logging.getLogger(__name__)


def hello(message: Message, context: Context) -> Message:
    """Say which party this node is, signed where it has a key."""
    name, signer = _setting(context, "party"), _signer(context)
    if signer is None:
        return Message(record(name.encode()), reply_to=message)
    contract = Contract.from_json(text_of(_setting(context, "contract")))
    return Message(record(hello_of(name, payload(message) or b"", contract, signer)), reply_to=message)


def ask(message: Message, context: Context) -> Message:
    """Answer one message of the protocol.

    What goes wrong here may have to do with private rows. It is logged at this node; the proxy only hears that there is
    no answer.
    """
    name = _setting(context, "party")
    contract = Contract.from_json(text_of(_setting(context, "contract")))
    try:
        answer = _answer(payload(message) or b"", context, contract, name)
    except Exception:
        log.exception("%s could not answer", name)
        words = f"{name} failed; why is in the log of its node"
        answer = Wire(Kind.REFUSAL, contract.key_bits, 0, name, contract.digest, words.encode()).to_bytes()
    return Message(record(answer), reply_to=message)


def _answer(request: bytes, context: Context, contract: Contract, name: str) -> bytes:
    from fdadp.federated.flower.store import Store
    from fdadp.federated.parties import DataUser, Owner

    with Store(_setting(context, "store"), contract, name).opened() as store:
        before = store.state()
        party: Party
        if name == USER:
            party = DataUser(contract, key=store.key(), state=before)
        else:
            party = Owner(contract, name, rows(_setting(context, "data")), state=before, signer=_signer(context))
        answer = party.answer(request)
        if party.state != before:
            store.save(party.state)
        if isinstance(party, DataUser) and party.done:
            store.forget_key()
        return answer


def rows(source: str) -> tuple[Any, ...]:
    """An owner's data.

    Parameters
    ----------
    source : str
        An ``.npz`` file whose arrays are those that the model takes, in their order; or ``module:function``.

    Raises
    ------
    InputError
        It is neither.
    FileFormatError
        A file that holds no plain arrays.
    """
    if source.endswith(".npz"):
        from fdadp.functional.files.curve_files import read_npz

        return tuple(read_npz(source).values())
    module, colon, function = source.partition(":")
    if not colon:
        raise InputError(f"data must be an .npz file or module:function, got {source!r}")
    return tuple(getattr(importlib.import_module(module), function)())


def _signer(context: Context) -> Signer | None:
    """An owner's key, where the node has one."""
    return Signer(_setting(context, "key")) if "key" in context.node_config else None


def _setting(context: Context, name: str) -> str:
    value = context.node_config.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"--node-config must give {name}, a text, got {value!r}")
    return value


app = ClientApp()
app.query(HELLO)(hello)
app.query(ASK)(ask)
