"""Replay audit: the exact privacy loss of a procedure, from the same releases forced on two neighbouring data sets.

All that an observer sees must then be the same, and the distances of the exact sums, in units of the noise, may cost no
more than the budget (:class:`fdadp.privacy.TapeNoise`). Finds errors of sensitivity at once. Knows nothing of curves.

*Fingerprints* are what an observer can see, bit for bit, as nests of plain values. An observer looks into everything
that a result holds on to: attributes, what functions close over, the objects that methods are bound to, generators,
what an error hangs on, and the frames that its traceback keeps alive.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import logging
import math
import re
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import FailedReadError, FdadpError, InputError, PrivacyError
from fdadp.privacy.account.epsilon_mu_rho import cost_of
from fdadp.privacy.noise.sources import MATRICES, Noise, OpenDPNoise, SeededNoise
from fdadp.privacy.replayed_loss import Loss, TapeEntry, TapeNoise, losses, wishart_delta


def fingerprint(value: Any, given: Any = ()) -> Any:
    """Arrays by dtype, shape and bytes, floats by their bits, objects by everything that they hold.

    Parameters
    ----------
    value : object
    given : object
        The observed procedure's own input, in its parts: frames may hold it, for the caller has it anyway.
    """
    return _Observer(_parts(given)).see(value, ())


def _parts(given: Any) -> dict[int, Any]:
    """Objects by their place in memory: of a nest of tuples, lists and dicts also what is in it."""
    found = {id(given): given}
    if isinstance(given, tuple | list | dict):
        for part in given.values() if isinstance(given, dict) else given[:1000]:
            found |= _parts(part)
    return found


def _holds_rows_by_purpose(value: Any) -> bool:
    """Whether it is an object of the kernel that cannot be copied, a private table, or the tape of the audit itself.

    A result that holds one is looked into; a frame of the kernel is not, for there they belong.
    """
    kind = value if isinstance(value, types.FunctionType) else type(value)
    module = str(kind.__module__)
    return module == "fdadp.privacy.replayed_loss" or (
        module.startswith("fdadp.privacy.") and ("__reduce_ex__" in vars(kind) or kind.__name__ == "Table")
    )


class _Observer:
    def __init__(self, given: Mapping[int, Any], in_frame: bool = False) -> None:
        self._given = given
        self._in_frame = in_frame

    def see(self, value: Any, above: tuple[int, ...]) -> Any:
        if value is None or isinstance(value, bool | int | str | bytes):
            return value
        if isinstance(value, float):
            return value.hex()
        if self._in_frame and (id(value) in self._given or _holds_rows_by_purpose(value)):
            return "where it belongs"
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, above)
        if id(value) in above:
            return "itself"
        above = (*above, id(value))
        if isinstance(value, Mapping):
            return {str(key): self.see(v, above) for key, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.see(v, above) for v in value]
        if isinstance(value, set | frozenset):
            return sorted(str(self.see(v, above)) for v in value)
        if isinstance(value, BaseException):
            return self._error(value, above)
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
            return getattr(value, "__qualname__", value.__name__)
        if isinstance(value, types.MethodType | types.FunctionType | functools.partial):
            return self._function(value, above)
        if isinstance(value, types.GeneratorType):
            return ["generator", self.see(value.gi_frame.f_locals if value.gi_frame else None, above)]
        if hasattr(value, "to_numpy") and not hasattr(value, "data_matrix"):  # frames, series and indices; not curves
            labels = [getattr(value, name, None) for name in ("index", "columns", "dtypes", "dtype", "name", "names")]
            return [type(value).__name__, self._array(value.to_numpy(), above), [str(label) for label in labels]]
        return self._object(value, above)

    def _array(self, value: Any, above: tuple[int, ...]) -> Any:
        array = np.asarray(value)
        if array.dtype == object:
            return ["objects", array.shape, [self.see(v, above) for v in array.ravel()]]
        shown = str(array.ravel()[:3].tolist())
        seen = [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest(), shown]
        return [*seen, type(value).__name__] if type(value) not in (np.ndarray, array.dtype.type) else seen

    def _function(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, functools.partial):
            return ["partial", *(self.see(v, above) for v in (value.func, value.args, value.keywords))]
        if isinstance(value, types.MethodType):
            return ["method", self.see(value.__func__, above), self.see(value.__self__, above)]
        held = [value.__defaults__, value.__kwdefaults__, value.__dict__]
        for cell in value.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:
                held.append("empty")
        constants = [c for c in value.__code__.co_consts if not isinstance(c, types.CodeType)]
        name = f"{value.__module__}.{value.__qualname__}"
        return [name, self.see(constants, above), [self.see(v, above) for v in held]]

    def _error(self, error: BaseException, above: tuple[int, ...]) -> Any:
        """Type, text, what it hangs on, the way it came, and what the kernel's frames on this way hold."""
        inside = _Observer(self._given, in_frame=True)
        way, frames = [], []
        step = error.__traceback__
        while step is not None:
            module = step.tb_frame.f_globals.get("__name__", "")
            if module.split(".")[0] == "fdadp" and module != "fdadp.audit.replay":
                way.append(f"{module}.{step.tb_frame.f_code.co_name}")
                if module.startswith("fdadp.privacy"):
                    frames.append({name: inside.see(v, ()) for name, v in step.tb_frame.f_locals.items()})
            step = step.tb_next
        return {
            "type": type(error).__name__,
            "text": str(error),
            "args": self.see(error.args, above),
            "held": self.see(vars(error), above),
            "cause": self.see(error.__cause__, above),
            "context": self.see(error.__context__, above),
            "way": way,
            "frames": frames,
        }

    def _object(self, value: Any, above: tuple[int, ...]) -> Any:
        held = dict(getattr(value, "__dict__", {}))
        for cls in type(value).__mro__:
            names = getattr(cls, "__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                hidden = name.startswith("__") and not name.endswith("__")
                own = f"_{cls.__name__.lstrip('_')}{name}" if hidden else name
                if name not in ("__dict__", "__weakref__") and hasattr(value, own):
                    held[own] = getattr(value, own)
        if held:
            return {"type": type(value).__name__, **{name: self.see(v, above) for name, v in held.items()}}
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def difference(one: Any, other: Any, where: str = "") -> str:
    """Name the first place at which two fingerprints differ; empty where they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return f"{where or 'output'}: other names, {sorted(set(one) ^ set(other)) or 'in another order'}"
        parts = [difference(one[key], other[key], f"{where}.{key}" if where else key) for key in one]
        return next((text for text in parts if text), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True))]
        return next((text for text in parts if text), "")
    return "" if type(one) is type(other) and one == other else f"{where}: {_short(one)} against {_short(other)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "..."


@contextlib.contextmanager
def drawing_from(model: Any, noise: Noise | None) -> Iterator[None]:
    """Let fits of a regression draw from `noise`; all else is as people call it, and nothing of it stays."""
    model._noise = noise
    try:
        yield
    finally:
        del model._noise


@dataclass(frozen=True)
class Neighbours:
    """A procedure, two neighbouring data sets, and what the procedure may spend.

    Attributes
    ----------
    name : str
    run : callable
        From (data, noise) to everything that an observer gets, its ledger included.
    first, second : object
        The data sets: one person deleted, blanked out or replaced.
    total : float
        Of the budget, in its measure.
    promise : (float, float), optional
        (ε, δ), wanted where a release is accounted for by itself: of Wishart noise its own δ at this ε, of a pure one
        that takes a whole budget its ε, is the cost.
    accounting : {"gdp", "zcdp", "pure"}, optional
        The measure of the budget. Default: costs are added up as they are, ρ or ε.
    left : callable, optional
        What is left of the budget of the last run, however it ended. Where reading failed in one run alone, this is all
        that is compared: a failed source is reported, and paid for in full.
    """

    name: str
    run: Callable[[Any, Noise], Any]
    first: Any = field(repr=False)
    second: Any = field(repr=False)
    total: float
    promise: tuple[float, float] | None = None
    accounting: str | None = None
    left: Callable[[], Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ReplayAudit:
    """What the replays showed.

    Attributes
    ----------
    ratios : ndarray of shape (tapes,)
        Cost of the exact sums' distances over the budget.
    changes : ndarray of shape (tapes,)
        Largest distance of the exact sums over the declared sensitivity, over the releases of a tape.
    pure_losses : ndarray of shape (tapes,)
        Where ε is pure: the realised loss over ε; else NaN.
    releases : int
    finished : int
        Tapes whose run ended without an error.
    problems : tuple of str
        What differed between neighbours, or cost too much.
    worst_map : float
        Largest privacy map of a release, as OpenDP computes it for the scale on the tape, over the release's share.
    """

    ratios: FloatArray
    changes: FloatArray
    pure_losses: FloatArray
    releases: int
    finished: int
    problems: tuple[str, ...] = ()
    worst_map: float = math.nan

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def __str__(self) -> str:
        worst = f"worst loss/budget {self.ratios.max():.6f}, worst change/sensitivity {self.changes.max():.6f}"
        verdict = "same sequence, output, ledger, warnings and errors" if self.passed else "VIOLATION"
        lines = [
            f"replay audit: {verdict}; {len(self.ratios)} tapes ({self.finished} to the "
            f"end), {self.releases} releases, {worst}, worst OpenDP map/share {self.worst_map:.9f}; "
            "losses are exact: power against noise too small by sqrt(2): 1.00"
        ]
        lines += [f"  {text}" for text in self.problems[:5]]
        if len(self.problems) > 5:
            lines.append(f"  and {len(self.problems) - 5} more")
        return "\n".join(lines)


def replay_audit(pairs: Iterable[Neighbours], *, seed: int = 0) -> ReplayAudit:
    """Measure the exact privacy loss on one tape a pair, and require that nothing else differs.

    The tape comes from either data set in turn, with seeded noise. Compared are the sequence of releases (kind, size,
    sensitivity, scale, amount) and what :func:`fdadp.audit.replay.fingerprint` sees of the result, bit for bit. These
    are arrays, numbers, texts, and what functions close over; the ledger (names, clips, sd, shares) if it is part of
    the result. Warnings, log records and printed text are compared, too. So is the error if there was one, with all
    that it refers to.

    Parameters
    ----------
    pairs : iterable of Neighbours
    seed : int

    Returns
    -------
    ReplayAudit

    Raises
    ------
    InputError
        No pairs.

    Notes
    -----
    *Budget.* Along any fixed sequence of outputs the losses of adaptive releases add up. In Gaussian DP the sum of
    ``|q(D) - q(D')|²/(2 (σ² - 16))`` must not exceed μ²/2, in zCDP that of ``|q(D) - q(D')|²/(2 σ²)`` not ρ, for pure ε
    that of ``|q(D) - q(D')|₁/b`` not ε; all are exact here (integers), whatever was drawn. Besides, OpenDP's own map at
    the scale of each release must not exceed its share.

    Examples
    --------
    >>> from fdadp.privacy import Budget, Cohort
    >>> def total(rows, noise):
    ...     cohort = Cohort(rows, budget=Budget(1.0), n=3, noise=noise)
    ...     return cohort.sum(lambda r: r[0], clip=2.0, share=1.0, name="sum").value, cohort.ledger
    >>> rows = np.array([[0.5], [9.0], [-1.0]])
    >>> audit = replay_audit([Neighbours("delete", total, rows, rows[[0, 2]], total=1.0)])
    >>> audit.passed, bool(0.99 < audit.ratios.max() <= 1)
    (True, True)
    """
    ratios, changes, pure_losses, maps, problems = [], [], [], [], []
    releases = finished = 0
    for number, pair in enumerate(pairs):
        order = (pair.first, pair.second) if number % 2 else (pair.second, pair.first)
        tape = TapeNoise(SeededNoise(np.random.default_rng([seed, number])))
        seen = _observe(pair, order[0], tape)
        finished += seen["error"] is None
        if seen["unlike ours"] and not tape.entries:
            problems.append(f"{pair.name}: nothing was compared, {seen['unlike ours']} came before the first release")
        again = TapeNoise(tape=tape.entries)
        other = _observe(pair, order[1], again)
        excused = pair.left is not None and seen["read"] != other["read"]
        differs = difference(seen["left"], other["left"], "left") if excused else difference(seen, other)
        if differs:
            problems.append(f"{pair.name}: {differs}")
        shared = min(len(tape.entries), len(again.entries))
        try:
            each = losses(tape.entries[:shared], again.entries[:shared])
        except PrivacyError as exc:
            problems.append(f"{pair.name}: {exc}")
            each = []
        if len(tape.entries) != len(again.entries) and not excused:
            problems.append(f"{pair.name}: {len(tape.entries)} and {len(again.entries)} releases")
        releases += len(each)
        maps.append(max(map(_map_over_share, tape.entries), default=0.0))
        if maps[-1] > 1:
            problems.append(f"{pair.name}: OpenDP's map of a release is above its share")
        pure = all(e.kind in ("laplace", "exponential", *MATRICES) for e in tape.entries[:shared])
        ratio = _cost(pair, each, tape.entries[:shared], again.entries[:shared])
        promised = pair.promise[0] if pair.promise else pair.total
        realised = abs(math.fsum(x.loss for x in each)) / promised if pure else math.nan
        change = max((x.change for x in each), default=0.0)
        if ratio > 1 or realised > 1:
            problems.append(f"{pair.name}: loss/budget {max(ratio, realised if pure else 0):.6f}")
        if change > 1 or any(x.spent > x.amount for x in each):
            problems.append(f"{pair.name}: a change of {change:.6f} times the sensitivity, or a cost above its share")
        ratios.append(ratio)
        changes.append(change)
        pure_losses.append(realised)
    if not ratios:
        raise InputError("pairs must hold at least one pair of neighbours, got none")
    return ReplayAudit(
        np.array(ratios), np.array(changes), np.array(pure_losses), releases, finished, tuple(problems), max(maps)
    )


def _cost(pair: Neighbours, each: list[Loss], one: list[TapeEntry], other: list[TapeEntry]) -> float:
    """Cost of the distances over the budget, in its measure; of releases by themselves over the promised (ε, δ)."""
    by_itself = ("wishart", *(MATRICES if pair.promise else ()))
    own = [i for i in range(len(each)) if one[i].kind in by_itself]

    def cost(x: Loss, entry: TapeEntry) -> float:
        if pair.accounting is None:
            return x.spent
        moved = x.change * entry.sensitivity
        return cost_of(pair.accounting, entry.kind, sensitivity=moved, scale=entry.scale, spent=x.spent)

    ratio = math.fsum(cost(x, one[i]) for i, x in enumerate(each) if i not in own) / pair.total
    if own and pair.promise is None:
        raise InputError("promise must be (epsilon, delta) for releases that are accounted for by themselves")
    for i in own:
        assert pair.promise is not None
        if one[i].kind == "wishart":
            ratio += wishart_delta(one[i], other[i], pair.promise[0]) / pair.promise[1]
        else:  # pure, and all that a budget with a δ is spent on
            ratio += each[i].spent / pair.promise[0]
    return ratio


def _map_over_share(entry: TapeEntry) -> float:
    """OpenDP's privacy map over the amount, for the scale on the tape; infinite where OpenDP would add more noise."""
    secure = OpenDPNoise().prepare(entry.kind, entry.size, entry.sensitivity, entry.amount, entry.columns)
    return secure.spent / entry.amount if entry.scale >= secure.scale else math.inf


_HOW_SLOW = ("distributed.gc", "distributed.utils_perf")
"""Loggers of Dask that say what share of the time its collector takes."""


class _Records(logging.Handler):
    """What was logged, but for what Dask says of its own pace while any cluster of this process is alive."""

    def __init__(self) -> None:
        super().__init__(level=1)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        slow = record.name == "distributed.core" and text.startswith("Event loop was unresponsive")
        if not slow and record.name not in _HOW_SLOW:
            self.texts.append(f"{record.name} {record.levelname} {text}")


@contextlib.contextmanager
def own_garbage() -> Iterator[None]:
    """Meanwhile the collector leaves alone what was there before.

    It may run at any moment, and what others forgot to close warns then: that would be said in one of two runs alone.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _observe(pair: Neighbours, data: Any, noise: Noise) -> dict[str, Any]:
    """Everything that comes out of a run."""
    out, err, records = io.StringIO(), io.StringIO(), _Records()
    result, error, unlike, read = None, None, None, True
    logging.getLogger().addHandler(records)
    try:
        with (
            own_garbage(),
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            try:
                result = pair.run(data, noise)
            except Exception as exc:
                read = not isinstance(exc, FailedReadError)
                error = fingerprint(exc, given=data)
                unlike = None if isinstance(exc, FdadpError) else type(exc).__name__
    finally:
        logging.getLogger().removeHandler(records)
    return {
        "error": error,
        "unlike ours": unlike,
        "read": read,
        "left": fingerprint(pair.left()) if pair.left else None,
        "result": fingerprint(result),
        "warnings": [f"{w.category.__name__}: {w.message}" for w in caught],
        "log": records.texts,
        "printed": out.getvalue() + err.getvalue(),
    }
