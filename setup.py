"""Compile kernels into fdadp/_kernels when fdadp is installed; all else about the package stands in pyproject.toml.

A kernel is a function with ``@kernel(types)`` (fdadp/_common/loaded_later.py). Where there is no compiler of C++, numba
compiles each one when it is first called.
"""

import ast
import importlib.util
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FDADP = Path(__file__).resolve().parent / "fdadp"


def kernels_of(path, later):
    """Names and kernels of a file, of which no other line is run but those of numbers, math and NumPy."""
    kept = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import(names=names) if {name.name for name in names} <= {"math", "numpy"}:
                kept.append(node)
            case ast.Assign(value=value) if not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(value)):
                kept.append(node)
            case ast.FunctionDef(decorator_list=[ast.Call(func=ast.Name(id="kernel"))]):
                kept.append(node)
    known = {"kernel": later.kernel}
    exec(compile(ast.Module(kept, []), str(path), "exec"), known)
    return {name: value for name, value in known.items() if isinstance(value, later.CompiledKernel)}


def numba_types(types):
    """Of ``"f8[:,::1],(i8[::1],f8)"``, as numba has them."""
    import numba

    names = {name: getattr(numba.types, name) for name in ("f8", "i8", "i4", "u8", "b1")}
    as_numba = lambda one: numba.types.Tuple([as_numba(x) for x in one]) if isinstance(one, tuple) else one  # noqa: E731
    return tuple(as_numba(one) for one in eval(f"({types},)", names))


class CompileKernels(build_ext):
    """Ahead of time, by numba, for any processor of this kind."""

    def build_extension(self, ext):
        """Write the file of compiled kernels, or say why there is none."""
        try:
            self._compile(Path(self.get_ext_fullpath(ext.name)))
        except Exception as problem:  # of numba, of the compiler: fdadp works without
            print(f"fdadp: kernels are compiled when they are first called, not now: {problem}", file=sys.stderr)

    def _compile(self, path):
        import numba
        from numba.pycc import CC, compiler

        class Flags(compiler.Flags):
            """With which a compiled kernel holds no lock of Python's."""

            def __init__(self, *values):
                super().__init__(*values)
                self.release_gil = True

        compiler.Flags = Flags
        spec = importlib.util.spec_from_file_location("loaded_later", FDADP / "_common" / "loaded_later.py")
        later = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(later)
        compiled = CC("_kernels", source_module=later)
        for source in sorted(FDADP.rglob("*.py")):
            if "@kernel(" not in source.read_text(encoding="utf-8"):
                continue
            kernels = kernels_of(source, later)
            for one in kernels.values():
                one.py_func.__globals__[one.py_func.__name__] = numba.njit(nogil=True, **one.options)(one.py_func)
            for one in kernels.values():
                if one.types:
                    compiled.export(one.symbol, numba_types(one.types))(one.py_func)
        path.parent.mkdir(parents=True, exist_ok=True)
        compiled.output_dir, compiled.output_file = str(path.parent), path.name
        compiled.compile()


setup(ext_modules=[Extension("fdadp._kernels", [], optional=True)], cmdclass={"build_ext": CompileKernels})
