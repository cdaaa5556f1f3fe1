"""Kernels: compiled when fdadp is installed, or by numba when they are first called; the same numbers either way."""

from __future__ import annotations

import importlib
import pickle
import shutil
import sys
import sysconfig
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fdadp
from fdadp import AdditiveFunctionOnFunction, Privacy
from fdadp._common.loaded_later import CompiledKernel, _type_of, kernel
from fdadp.privacy import rowwise_matmul
from fdadp.privacy.rows import _rowwise_arithmetic

PACKAGE = Path(fdadp.__file__).parent
COMPILER = shutil.which("g++") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()


def every_kernel() -> list[CompiledKernel]:
    files = [path for path in PACKAGE.rglob("*.py") if "\n@kernel(" in path.read_text(encoding="utf-8")]
    names = [".".join(("fdadp", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return list({id(value): value for value in values if isinstance(value, CompiledKernel)}.values())


@pytest.mark.skipif(not COMPILER, reason="no compiler of C++ with Python's headers")
def test_kernels_that_name_their_types_were_compiled_of_the_code_that_is_here() -> None:
    named = [one for one in every_kernel() if one.types]
    assert len(named) > 30
    late = [one.symbol for one in named if one.ahead is None]
    assert not late, f"after a change of a kernel call `make setup`, which compiles: {late}"


def fitted(rows: int = 300) -> AdditiveFunctionOnFunction:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3)) @ np.cos(np.outer(np.arange(3), np.linspace(0, 3, 20)))
    privacy = Privacy(epsilon=3.0, delta=1e-6, n=rows, random_state=1)
    bounds = {"X": (-4.5, 4.5), "Y": (-8, 8)}
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, progress=False).fit(x, np.cumsum(x, axis=1) / 10)


def test_a_private_fit_has_the_same_bits_where_numba_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = fitted()
    called: set[str] = set()

    def later(self: CompiledKernel, *args: object) -> object:
        called.add(self.py_func.__name__)
        return self.compiled(*args)

    monkeypatch.setattr(CompiledKernel, "__call__", later)
    by_numba = fitted()
    assert len(called) > 8
    assert np.array_equal(ahead.coef_, by_numba.coef_)
    new = np.linspace(-1, 1, 20)[None]
    for one, other in zip(ahead.predict_interval(new), by_numba.predict_interval(new), strict=True):
        assert np.array_equal(one, other)


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The same 12 x 5 numbers as a kernel does not take them."""
    values = rng.normal(size=(12, 5))
    fixed = values.copy()
    fixed.flags.writeable = False
    wide = np.zeros((12, 10))
    wide[:, ::2] = values
    return {"columns": np.asfortranarray(values), "read only": fixed, "strided": wide[:, ::2], "usual": values}


@pytest.mark.parametrize("form", ["columns", "read only", "strided", "usual"])
def test_arrays_of_any_form_give_the_same(form: str) -> None:
    values = arrays(np.random.default_rng(0))[form]
    out = np.empty(12)
    _rowwise_arithmetic._norms(values, np.ones(5), 2, out)
    np.testing.assert_allclose(out, np.linalg.norm(values, axis=1), rtol=1e-15)
    np.testing.assert_allclose(rowwise_matmul(values, np.eye(5) * 2), values * 2, rtol=0)


def test_other_types_do_not_reach_what_was_compiled_for_some() -> None:
    numbers = np.arange(6.0).reshape(2, 3)
    assert _type_of(numbers) == "f8[:,::1]"
    assert _type_of(numbers[:, 0]) == _type_of(numbers.T) == _type_of(numbers.astype(">f8")) == "?"
    assert _type_of(numbers.astype(np.float32)) == _type_of(np.ma.masked_array(numbers)) == _type_of("f8") == "?"
    assert _type_of((np.zeros(2, dtype=np.int64), 1.0)) == "(i8[::1],f8)"
    for alike, types in (((True, np.True_), "b1"), ((1, np.int64(1)), "i8"), ((1.0, np.float64(1)), "f8")):
        assert {_type_of(one) for one in alike} == {types}


def test_a_kernel_goes_to_another_process_by_its_name() -> None:
    one = _rowwise_arithmetic._norms
    assert one(np.ones((1, 1)), np.ones(1), 2, np.empty(1)) is None  # it knows now what it was compiled to
    assert pickle.loads(pickle.dumps(one)) is one


def test_other_code_has_another_symbol() -> None:
    def of(code: str) -> str:
        known: dict[str, object] = {"kernel": kernel}
        exec(code, known)
        return known["outer"].symbol  # type: ignore[attr-defined,no-any-return]

    code = "NUMBER = 2\n@kernel()\ndef f(x):\n    return x + 1\n@kernel()\ndef outer(x):\n    return f(x) * NUMBER\n"
    assert of(code) == of("\n" + code)
    for old, new in (("= 2", "= 3"), ("x + 1", "x + 2"), ("x + 1", "x - 1"), (") * NUMBER", ") / NUMBER")):
        assert of(code.replace(old, new)) != of(code)


def test_other_threads_go_on_while_a_kernel_computes() -> None:
    values, by, out = np.ones((20_000, 120)), np.ones((120, 120)), np.empty((20_000, 120))
    _rowwise_arithmetic._matmul(values[:1], by, out[:1])
    done = threading.Event()

    def compute() -> None:
        _rowwise_arithmetic._matmul(values, by, out)
        done.set()

    switch = sys.getswitchinterval()
    thread, steps = threading.Thread(target=compute), 0
    thread.start()
    while not done.is_set():
        time.sleep(switch / 10)
        steps += 1
    thread.join()
    assert steps > 15  # some five where the call holds Python's lock until its end
