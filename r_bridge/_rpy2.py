"""R in this process: the one module that imports rpy2, and the one converter.

Only rpy2's low-level interface is used. It has no conversion rules in a context variable, so that calls work from
any thread; one lock serialises them, because R has one thread. Every call goes through ``bridge_call`` in
``R/bridge.R``, which turns R's conditions into text: an error becomes :class:`RError`, warnings :class:`RWarning`,
messages and printed output go to the logger ``r_bridge``. Nothing of rpy2 leaves this module.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp.errors import InputError
from r_bridge._status import package_remedy, rpy2_requirements, status
from r_bridge.convert import Frame, curves_to_r
from r_bridge.errors import RBridgeUnavailable, RError, RWarning

SCRIPTS = Path(__file__).parent / "R"
_log = logging.getLogger("r_bridge")
_lock = threading.RLock()
_dropped: deque[str] = deque()


class Handle:
    """A fit that R keeps in its memory until this handle is collected; predictions need it."""

    def __init__(self, key: str) -> None:
        self.key = key
        # Only noted here: the garbage collector may run in the middle of a call to R.
        weakref.finalize(self, _dropped.append, key)

    def __reduce__(self) -> Any:
        raise TypeError("a fit lives in R's memory and cannot be pickled or copied; fit again where it is needed")


def require(*packages: str) -> None:
    """Start R, if it has not been started, and load packages.

    Raises
    ------
    RBridgeUnavailable
        R, rpy2 or a package is missing or does not fit.
    """
    with _lock:
        engine = _Engine.started()
        for package in packages:
            engine.load(package)


def call(function: str, /, *packages: str, **arguments: Any) -> Any:
    """Call a function of the R scripts with plain values; the answer is plain too (dicts, lists, arrays).

    Parameters
    ----------
    function : str
        Its name in ``R/*.R``.
    *packages : str
        R packages that it needs.
    **arguments
        As the table in :mod:`r_bridge.convert`.

    Raises
    ------
    RBridgeUnavailable
        As :func:`require`.
    RError
        R stopped; with R's text.

    Warns
    -----
    RWarning
        For each different warning of R, with R's text.
    """
    with _lock:
        engine = _Engine.started()
        for package in packages:
            engine.load(package)
        engine.forget()
        answer = engine.ask(function, arguments)
    for line in _texts(answer["messages"]):
        _log.info("%s", line)
    for line in _texts(answer["warnings"]):
        warnings.warn(f"R: {line}", RWarning, stacklevel=3)
    if answer["error"] is not None:
        raise RError(f"R: {_texts(answer['error'])[0]}")
    return answer["value"]


def _texts(value: Any) -> list[str]:
    return [] if value is None else [str(v) for v in np.ravel(value)]


@contextlib.contextmanager
def _same_library_path() -> Iterator[None]:
    """Keep LD_LIBRARY_PATH, which rpy2 sets to R's as R starts.

    Too late for this process, but child processes would load what they link to from R's folders: a worker of joblib
    came up with the libpython of another Python.
    """
    name = "LD_LIBRARY_PATH"
    before = os.environ.get(name)
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


class _Engine:
    """R, started once in a process."""

    _only: _Engine | None = None

    def __init__(self) -> None:
        state = status()
        state.require()
        assert state.r is not None
        try:
            with _same_library_path():
                import rpy2.rinterface as ri

                ri.initr()
        except Exception as exc:  # no libR: ValueError; wrong R_HOME: OSError; R too old: ffi.error
            pip = " ".join(repr(part) for part in rpy2_requirements(state.r))
            raise RBridgeUnavailable(
                f"rpy2 {state.rpy2['rpy2']} cannot start R {state.r}: {type(exc).__name__}: {exc}. "
                f"Mend with: {sys.executable} -m pip install --force-reinstall --no-deps {pip}"
            ) from exc
        self._ri = ri
        self._loaded: set[str] = set()
        space = ri.baseenv["new.env"](parent=ri.globalenv)
        for script in ("plain.R", "bridge.R", "mgcv.R", "gam.R", "refund.R", "repeated.R"):
            ri.baseenv["sys.source"](self._to_r(str(SCRIPTS / script)), envir=space)
        self._call = space["bridge_call"]

    @classmethod
    def started(cls) -> _Engine:
        if cls._only is None:
            cls._only = cls()
        return cls._only

    def load(self, package: str) -> None:
        if package in self._loaded:
            return
        error = self.ask("load_package", {"package": package})["error"]
        if error is not None:
            raise RBridgeUnavailable(
                f"the R package {package} does not load; R says: {_texts(error)[0]}. "
                f"Mend with: {package_remedy(package)}"
            )
        self._loaded.add(package)

    def forget(self) -> None:
        """Drop the fits whose handles are gone."""
        keys = [_dropped.popleft() for _ in range(len(_dropped))]
        if keys:
            self.ask("drop_kept", {"keys": keys})

    def ask(self, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from rpy2.rinterface_lib.openrlib import rlock  # others in this process may use R too

        with rlock:
            answer = self._call(self._to_r(function), self._to_r(arguments))
            return dict(self._from_r(answer))

    # --- the converter ---

    def _to_r(self, value: Any) -> Any:
        ri = self._ri
        if value is None:
            return ri.NULL
        if isinstance(value, dict):
            return self._list(list(value.values()), [str(k) for k in value])
        if isinstance(value, Frame):
            return self._frame(value)
        if isinstance(value, pd.DataFrame):
            return self._frame(Frame.from_pandas(value))
        if isinstance(value, pd.Categorical):
            return self._factor(value)
        if type(value).__module__.split(".")[0] == "skfda":
            return self._to_r(curves_to_r(value))
        if isinstance(value, (list, tuple)) and not all(np.ndim(v) == 0 and v is not None for v in value):
            return self._list(list(value), None)
        return self._array(np.asarray(value))

    def _array(self, array: Any) -> Any:
        ri, flat = self._ri, np.ravel(array, order="F")
        kind = array.dtype.kind
        if kind == "b":
            vector = ri.BoolSexpVector([bool(v) for v in flat])
        elif kind in "iu" and (not flat.size or np.abs(flat.astype(np.float64)).max() < 2**31 - 1):
            vector = ri.IntSexpVector.from_memoryview(np.ascontiguousarray(flat, dtype=np.int32).data)
        elif kind in "iuf":
            vector = ri.FloatSexpVector.from_memoryview(np.ascontiguousarray(flat, dtype=np.float64).data)
        elif kind in "UO" and all(isinstance(v, str) for v in flat):
            vector = ri.StrSexpVector([str(v) for v in flat])
        else:
            raise InputError(f"a value for R must be numbers, text, a dict or a list, got dtype {array.dtype}")
        if array.ndim > 1:
            vector.do_slot_assign("dim", ri.IntSexpVector([int(d) for d in array.shape]))
        return vector

    def _list(self, values: list[Any], names: list[str] | None) -> Any:
        vector = self._ri.ListSexpVector([self._to_r(v) for v in values])
        if names is not None:
            vector.do_slot_assign("names", self._ri.StrSexpVector(names))
        return vector

    def _factor(self, value: Any) -> Any:
        codes = [self._ri.NA_Integer if c < 0 else int(c) + 1 for c in value.codes]
        vector = self._ri.IntSexpVector(codes)
        vector.do_slot_assign("levels", self._ri.StrSexpVector([str(c) for c in value.categories]))
        return self._classed(vector, "factor")

    def _classed(self, vector: Any, name: str) -> Any:
        """Set a class by R's own function: as a bare slot R would not see that the value is an object."""
        return self._ri.baseenv["class<-"](vector, self._ri.StrSexpVector([name]))

    def _frame(self, frame: Frame) -> Any:
        vector = self._list(list(frame.columns.values()), list(frame.columns))
        vector.do_slot_assign("row.names", self._ri.IntSexpVector(list(range(1, frame.n_rows + 1))))
        return self._classed(vector, "data.frame")

    def _from_r(self, sexp: Any) -> Any:
        ri = self._ri
        if sexp is ri.NULL or isinstance(sexp, type(ri.NULL)):
            return None
        slots = set(sexp.list_attrs())
        classes = {str(c) for c in sexp.do_slot("class")} if "class" in slots else set()
        if isinstance(sexp, ri.ListSexpVector):
            values = [self._from_r(v) for v in sexp]
            if "names" not in slots:
                return values
            named = dict(zip((str(n) for n in sexp.do_slot("names")), values, strict=True))
            return Frame(named) if "data.frame" in classes else named
        if isinstance(sexp, ri.StrSexpVector):
            array = np.array([None if v is ri.NA_Character else str(v) for v in sexp], dtype=object)
        elif isinstance(sexp, ri.BoolSexpVector):
            missing = [v is ri.NA_Logical for v in sexp]
            array = (
                np.array([np.nan if m else float(v) for v, m in zip(sexp, missing, strict=True)])
                if any(missing)
                else np.array([bool(v) for v in sexp], dtype=bool)
            )
        elif isinstance(sexp, ri.IntSexpVector):
            codes = np.array(_view(sexp), dtype=np.int64)
            absent = codes == -(2**31)
            if "factor" in classes:
                levels = [str(v) for v in sexp.do_slot("levels")]
                labels = [None if gap else levels[c - 1] for c, gap in zip(codes, absent, strict=True)]
                return pd.Categorical(labels, categories=levels)
            array = np.where(absent, np.nan, codes) if absent.any() else codes
        elif isinstance(sexp, ri.FloatSexpVector):
            array = np.array(_view(sexp), dtype=np.float64)
        else:
            raise RError(f"the bridge cannot read an R object of type {type(sexp).__name__}")
        return array.reshape([int(d) for d in sexp.do_slot("dim")], order="F") if "dim" in slots else array


def _view(vector: Any) -> Any:
    return vector.memoryview() if len(vector) else []  # rpy2 refuses to view an empty vector
