"""Private fits that no common account adds up: noticed where that can be, to warn. No guarantee rests on this.

Three things tell that the same data are fitted again, and all are public: the name that the caller gave to the data,
their place in memory, and the estimator (its clones included: cross-validation fits clones to copies of parts of the
rows, which lie elsewhere). Fits with seeded noise do not count, for they are for simulations and say so.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from fdadp._common.calling_language import warn
from fdadp.errors import NotAccountedWarning
from fdadp.privacy.private_entries import Table

_LOCK = threading.Lock()
_NUMBERS = itertools.count(1)
_FITS: dict[object, int] = {}
_SAID: set[object] = set()
_ALIVE: dict[object, weakref.ref[Any]] = {}


class Kin:
    """Mixin of private estimators: clones know whose clones they are. Stands before scikit-learn's classes."""

    _kin: int

    def __sklearn_clone__(self) -> Any:
        kin = kin_of(self)
        new = super().__sklearn_clone__()  # type: ignore[misc]
        new._kin = kin
        return new


def kin_of(estimator: Any) -> int:
    """Number that an estimator and its clones share."""
    if not hasattr(estimator, "_kin"):
        estimator._kin = next(_NUMBERS)
    kin: int = estimator._kin
    return kin


def earlier_fits(data: Any, *, dataset: str | None, estimator: Any) -> int:
    """Count a fit on a budget of its own, and return how many there were before; the second one warns.

    Parameters
    ----------
    data : array or tuple of arrays, or anything else
        Not looked at but for where it is.
    dataset : str, optional
        Public name of the data; then their place and the estimator say nothing.
    estimator : object, optional
        That is fitted.
    """
    keys: list[object] = [] if estimator is None else [("estimator", kin_of(estimator), dataset)]
    with _LOCK:
        if dataset is None:
            keys += _place(data)
        else:
            keys.append(("data set", dataset))
        before = max((_FITS.get(key, 0) for key in keys), default=0)
        for key in keys:
            _FITS[key] = _FITS.get(key, 0) + 1
        said = before == 0 or any(key in _SAID for key in keys)
        _SAID.update(keys if before else ())
    if not said:
        warn(
            "a private fit on data, or with an estimator, that was fitted before. Each such fit spends an epsilon of "
            "its own, and together they spend the sum. A choice among them by scores without noise is not private at "
            "all. Share one Budget (budget=, dataset=) or use fdadp.choose_privately. If these are the data of other "
            "people, name them with dataset=",
            NotAccountedWarning,
        )
    return before


def score_is_not_private(estimator: Any) -> None:
    """Warn, once for an estimator and its clones, that a score is an exact figure of the rows it is given."""
    ledger = getattr(estimator, "ledger_", None)
    if ledger is None or not ledger.private or not any(r.secure for r in ledger.releases):
        return
    key = ("score", kin_of(estimator))
    with _LOCK:
        said = key in _SAID
        _SAID.add(key)
    if not said:
        warn(
            "score is computed from the rows that it is given, without noise. The model is private, this number is "
            "not. It may be shown where the rows are public or nobody's. It may not choose a model that is released "
            "(fdadp.choose_privately does that)",
            NotAccountedWarning,
        )


def _place(data: Any) -> list[object]:
    """Where the (first) array lies in memory, as long as it is there."""
    array = data[0] if isinstance(data, tuple) and data else data
    array = getattr(array, "source", array)
    owner = _owner(array)  # of which parts may be other people's rows
    key = ("memory", id(owner), getattr(array, "__array_interface__", {"data": (0,)})["data"][0])
    if key not in _ALIVE or _ALIVE[key]() is not owner:  # others lay here before
        _FITS.pop(key, None)
        _SAID.discard(key)
    try:
        _ALIVE[key] = weakref.ref(owner)
    except TypeError:
        return []
    return [key]


def _owner(array: Any) -> Any:
    if isinstance(array, Table):
        array = array.source
    while getattr(array, "base", None) is not None and hasattr(array.base, "dtype"):
        array = array.base
    return array
