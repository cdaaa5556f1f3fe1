"""Whoever collects the answers of all owners and sends them to all owners: it keeps them, and holds no key."""

from __future__ import annotations

from contextlib import suppress

from fdadp._common.typing import IntArray
from fdadp.federated.owners import signed_messages
from fdadp.federated.owners.owner_folder import Keeper, MemoryKeeper
from fdadp.federated.owners.signed_messages import MessageKind, Ready, RefusedMessage, Share, SignedMessage, body_of
from fdadp.federated.run_contract import Contract, ProtocolError

_ANSWERS = {
    None: (MessageKind.CONSENT,),
    MessageKind.ASK: (MessageKind.READY, MessageKind.DONE),
    MessageKind.GO: (MessageKind.SHARE,),
}
"""What owners answer to a request; first of all, to none."""
_FOLLOWING = {
    MessageKind.CONSENT: MessageKind.ASK,
    MessageKind.READY: MessageKind.GO,
    MessageKind.SHARE: MessageKind.ASK,
}
"""In what request answers are forwarded."""


class RunEnded(ProtocolError):
    """The run cannot go on, whatever is sent."""


class Coordinator:
    """Whoever collects the answers of all owners and sends them to all owners.

    Parameters
    ----------
    contract : Contract
    folder : Keeper, optional
        Answers, and each request before it can be sent: a later object with it repeats the same bytes. By default they
        live as long as this object.

    Attributes
    ----------
    requests_ : list of bytes
        All requests so far.
    missing : set of int
        Numbers of the owners that have not answered the last one.
    done_ : bool
        Whether all owners have the model.
    """

    def __init__(self, contract: Contract, folder: Keeper | None = None) -> None:
        contract.check_final()
        self.contract, self.done_ = contract, False
        self._folder = MemoryKeeper() if folder is None else folder
        self.requests_: list[bytes] = []
        while (kept := self._folder.read(self._request_name)) is not None:
            self.requests_.append(kept)
        self._answers: dict[int, bytes] = {}
        for number in range(1, contract.owners + 1):
            answer = self._folder.read(self._answer_name(number))
            if answer is not None:
                with suppress(RefusedMessage):  # an answer to the request before
                    self.take(number, answer)

    @property
    def asked(self) -> bytes:
        """What owners are asked now: the last request. Empty at first, when they are asked for their consent."""
        return self.requests_[-1] if self.requests_ else b""

    @property
    def missing(self) -> set[int]:
        """Numbers of the owners that have not answered yet."""
        return set() if self.done_ else set(range(1, self.contract.owners + 1)) - self._answers.keys()

    def has_done(self, number: int) -> bool:
        """Whether an owner has said that the model needs no more totals."""
        found = self._answers.get(number)
        return found is not None and SignedMessage.from_bytes(found).kind == MessageKind.DONE

    def take(self, number: int, answer: bytes) -> None:
        """Take one owner's answer; the last one makes the next request. Both are kept when this returns.

        Raises
        ------
        RefusedMessage
            It is no answer of this owner to what is asked now. Nothing has changed.
        RunEnded
            A refusal after which this owner answers nothing more, or owners are at different places.
        ProtocolError
            Another refusal. Nothing has changed.
        OSError
            The folder's. Whoever takes answers must end: nobody knows what is on the disk.
        """
        asked, index = self._asked
        found = SignedMessage.from_bytes(answer)
        if found.kind == MessageKind.REFUSAL:
            code = body_of(answer, self.contract, MessageKind.REFUSAL, number, found.index)
            final = code in {bytes([one]) for one in signed_messages.FINAL}
            words = f"owner {number} refuses release {found.index}: {signed_messages.meaning_of(code)}"
            raise RunEnded(words) if final else ProtocolError(words)
        kind = next((kind for kind in _ANSWERS[asked] if kind == found.kind), _ANSWERS[asked][0])
        body_of(answer, self.contract, kind, number, index)
        self._answers[number] = answer
        self._folder.write(self._answer_name(number), answer)
        if self.missing:
            return
        answers = [self._answers[i] for i in sorted(self._answers)]
        if len({SignedMessage.from_bytes(one).kind for one in answers}) > 1:
            raise RunEnded(f"owners must be at the same place in release {index}, and are not")
        if kind == MessageKind.DONE:
            if len({SignedMessage.from_bytes(one).body for one in answers}) > 1:
                raise RunEnded("owners must have the same totals at the end, and have different ones")
            self.done_ = True
            return
        ask, following = _FOLLOWING[kind], index + (kind == MessageKind.SHARE)
        made = signed_messages.request(self.contract, ask, following, answers)
        self._folder.write(self._request_name, made)
        self.requests_.append(made)
        self._answers = {}

    @property
    def _request_name(self) -> str:
        """Of the next request."""
        return f"{self.contract.digest.hex()}.request-{len(self.requests_)}"

    def _answer_name(self, number: int) -> str:
        return f"{self.contract.digest.hex()}.answer-{number}"

    @property
    def _asked(self) -> tuple[MessageKind | None, int]:
        """Kind and index of the last request."""
        if not self.requests_:
            return None, 0
        last = SignedMessage.from_bytes(self.requests_[-1])
        return MessageKind(last.kind), last.index

    @property
    def longest_answer(self) -> int:
        """Bytes of the longest message that can answer the last request: nobody needs to read more."""
        asked, index = self._asked
        if asked != MessageKind.GO:
            return signed_messages.longest_answer(0)
        parts = signed_messages.split(SignedMessage.from_bytes(self.requests_[-1]).body, self.contract.owners)
        bodies = [body_of(part, self.contract, MessageKind.READY, i, index) for i, part in enumerate(parts, start=1)]
        # Owners that name different sizes refuse the release.
        return signed_messages.longest_answer(min(Ready.from_bytes(body).size for body in bodies))

    @property
    def totals_(self) -> list[IntArray]:
        """The totals that can be added up so far, (d,) each; whoever has the requests has them."""
        found = []
        for asked in map(SignedMessage.from_bytes, self.requests_):
            if asked.kind == MessageKind.ASK and asked.index > 0:
                parts = enumerate(signed_messages.split(asked.body, self.contract.owners), start=1)
                bodies = [body_of(part, self.contract, MessageKind.SHARE, i, asked.index - 1) for i, part in parts]
                found.append(signed_messages.total_of([Share.from_bytes(body) for body in bodies]))
        return found
