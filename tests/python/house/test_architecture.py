"""The house stays as CONTRIBUTING.md draws it: imports point downwards, `import fdadp` is light, metadata agree."""

from __future__ import annotations

import ast
import configparser
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from house_sources import PACKAGE, ROOT, SOURCES, nodes, parsed, statements

import fdadp

FLOORS = (
    {"errors", "_version"},
    {"_common"},
    {"files"},
    {"functional", "privacy"},
    {"terms", "responses", "datasets", "plot"},
    {"solve"},
    {"repeated", "rounds"},
    {"private"},
    {"regression", "learners", "summaries"},
    {"inference", "planner", "federated", "choice"},
    {"published"},
    {"audit"},
    {"demo"},
    {"cli"},
    {"__main__"},
)
"""Rooms (modules or packages directly below fdadp), from the ground up: each imports only rooms of lower floors."""

FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

APART = {"learners": {"terms", "responses", "solve", "private", "plot"}, "privacy": {"datasets"}}
"""Room: rooms of lower floors that it must not know all the same, not even inside a function."""

HEAVY = {
    "numba",
    "skfda",
    "pandas",
    "matplotlib",
    "opendp",
    "scipy",
    "sklearn",
    "statsmodels",
    "dask",
    "distributed",
    "rpy2",
    "formulaic",
    "r_bridge",
}


def exports_of(stub: Path) -> dict[str, str]:
    """Names in the stub of a package, and the module below it that each is loaded from."""
    nodes = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {a.name: n.module for n in nodes for a in n.names if n.module and a.name != "__version__"}


EXPORTS = exports_of(PACKAGE / "__init__.pyi")


def imports(tree: ast.AST, module: str, is_package: bool = False, types: bool = False) -> Iterator[tuple[str, bool]]:
    """Names imported by a module, absolute, and whether at its top level; those for type checkers only if wanted."""
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    while stack:
        node, top = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += [(child, top) for child in node.orelse]
            stack += [(child, False) for child in node.body if types]
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".") if is_package else module.split(".")[:-1]
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            origin = base if node.level else node.module or ""
            for alias in node.names:
                lazy = EXPORTS.get(alias.name) if origin == "fdadp" else None
                yield f"fdadp.{lazy}" if lazy else f"{origin}.{alias.name}", top
        inner = top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        stack += [(child, inner) for child in statements(node)]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(path: Path, *, types: bool = False) -> list[tuple[str, bool]]:
    return list(imports(parsed(path), module_name(path), path.name == "__init__.py", types))


def unit(name: str) -> str | None:
    """``fdadp.privacy.account.ledger`` belongs to the unit ``privacy``; names outside fdadp to none."""
    head, *rest = name.split(".")
    return rest[0] if head == "fdadp" and rest else None


def violations(module: str, imported: list[tuple[str, bool]]) -> list[str]:
    """What a module imports against the rules."""
    own = unit(module)
    bad = []
    for name, top in imported:
        room = unit(name)
        if room is None or own is None or room == own:
            if name.split(".")[0] == "r_bridge" and (top or own != "cli"):
                bad.append(name)
        elif FLOOR[room] >= FLOOR[own] or room in APART.get(own, ()):
            bad.append(name)
    return [f"{module} imports {name}" for name in bad]


def test_imports_follow_the_rules() -> None:
    assert len(SOURCES) > 5
    assert [line for path in SOURCES for line in violations(module_name(path), imports_of(path, types=True))] == []


def test_every_room_has_its_floor() -> None:
    assert {unit(module_name(path)) for path in SOURCES} - {None} <= FLOOR.keys()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fdadp.functional.tables.curve_inputs", "from fdadp.regression import AdditiveFunctionOnFunction"),
        ("fdadp.functional.tables.curve_inputs", "from fdadp import AdditiveFunctionOnFunction"),
        ("fdadp.functional.tables.curve_inputs", "from ... import plot"),
        ("fdadp.functional.tables.curve_inputs", "if TYPE_CHECKING:\n    from fdadp.regression import R"),
        ("fdadp.solve.form.training_sums", "def f():\n    from ...regression.results import R"),
        ("fdadp.privacy.kernel", "import fdadp.functional.tables.curve_inputs as c"),
        ("fdadp.privacy.kernel", "from ..terms._rows import feature_rows"),
        ("fdadp.privacy.kernel", "from fdadp import FPCA"),
        ("fdadp.learners.linear", "from fdadp import regression"),
        ("fdadp.regression.affr", "def f():\n    import r_bridge"),
        ("fdadp.cli.main", "import r_bridge.mgcv"),
    ],
)
def test_the_rules_notice(module: str, source: str) -> None:
    assert violations(module, list(imports(ast.parse(source), module, types=True))) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fdadp.functional.tables.curve_inputs", "from fdadp.errors import InputError"),
        ("fdadp.privacy.kernel", "from ..errors import PrivacyError\nfrom .ledger import Ledger"),
        ("fdadp.cli.main", "def crosscheck():\n    import r_bridge"),
    ],
)
def test_the_rules_allow(module: str, source: str) -> None:
    assert violations(module, list(imports(ast.parse(source), module, types=True))) == []


def test_only_the_command_line_imports_the_demonstration() -> None:
    importers = {unit(module_name(p)) for p in SOURCES for name, _ in imports_of(p) if unit(name) == "demo"}
    assert importers <= {"demo", "cli"}


LOCAL_CLIENT = "fdadp.federated.local_dp.user_gradients"
"""The one module besides the kernel that reads private rows: a client of the local model holds its user's own record.

That the estimator, the server and the ledger around it read none is tested while it runs (test_federated_logistic)."""

CLIENT_MAY_IMPORT = {"numpy", "scipy", "typing", "fdadp"}
"""Nothing that sends, writes, logs or keeps."""


def test_only_the_local_client_reads_a_record_beside_the_kernel() -> None:
    """The vault of private rows is the kernel's; whoever turns records into gradients is named here."""
    users = {
        module_name(p) for p in SOURCES for name, _ in imports_of(p) if name.startswith("fdadp.privacy.rows._vault")
    }
    assert {unit(name) for name in users} == {"privacy"}
    local = {p: [name for name, _ in imports_of(p)] for p in SOURCES if ".federated.local_dp." in module_name(p)}
    raw = (
        "fdadp.privacy.private_entries",
        "fdadp.learners.shared.public_inputs.as_table",
        "fdadp.privacy.rows._rowwise_arithmetic",
    )
    readers = {module_name(p) for p, names in local.items() if any(name.startswith(raw) for name in names)}
    assert readers == {LOCAL_CLIENT}
    importers = {module_name(p) for p in SOURCES for name, _ in imports_of(p) if name.startswith(LOCAL_CLIENT)}
    # The estimator and its experiment play the users in one process; the server and the rest never meet them.
    assert importers == {"fdadp.federated.local_dp_logistic"}


def test_the_local_client_can_do_nothing_but_answer() -> None:
    path = PACKAGE / "federated" / "local_dp" / "user_gradients.py"
    assert {name.split(".")[0] for name, _ in imports_of(path)} <= CLIENT_MAY_IMPORT | {"__future__"}
    called = {node.func.id for node in nodes(parsed(path)) if is_plain_call(node)}
    assert not called & {"print", "open", "exec", "eval", "__import__", "input"}


def is_plain_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def module_of(name: str, modules: set[str]) -> str | None:
    """The module that an imported name is in: that of ``fdadp.errors.InputError`` is ``fdadp.errors``."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def test_no_import_circles_between_modules() -> None:
    """Not even of imports inside functions."""
    paths = [(module_name(path), path) for path in SOURCES]
    modules = {own for own, _ in paths}
    graph = {
        module_name(path): {module_of(name, modules) for name, _ in imports_of(path)}
        - {None, module_name(path), "fdadp"}
        for path in SOURCES
    }
    reach = {module: closure(module, graph) for module in graph}
    circles = {frozenset(m for m in reach[own] if own in reach[m]) for own in graph if own in reach[own]}
    assert [sorted(circle) for circle in circles] == []


def closure(start: str, graph: dict[str, set[str | None]]) -> set[str]:
    """Every module that can be reached from one along imports."""
    seen: set[str] = set()
    open_ = [start]
    while open_:
        for name in graph[open_.pop()]:
            if name is not None and name not in seen:
                seen.add(name)
                open_.append(name)
    return seen


def only_stores(constructor: ast.FunctionDef) -> bool:
    """Whether every statement of a constructor is ``self.x = x``, which a dataclass writes by itself."""
    body = [
        node for node in constructor.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    stored = [
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name)
        and [ast.unparse(target) for target in node.targets] == [f"self.{node.value.id}"]
        for node in body
    ]
    return bool(stored) and all(stored)


def test_constructors_that_only_store_are_those_of_dataclasses() -> None:
    plain = [
        f"{module_name(path)}.{node.name}"
        for path in SOURCES
        for node in nodes(parsed(path))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__" and only_stores(method)
    ]
    assert plain == []
    (known,) = ast.parse("def __init__(self, x, y=1):\n    self.x = x\n    self.y = y").body
    assert isinstance(known, ast.FunctionDef) and only_stores(known)


def test_import_is_light() -> None:
    """Under a second, by never loading what takes long; time itself is not measured here."""
    code = f"import sys, fdadp; print(*sorted(set({sorted(HEAVY)!r}) & sys.modules.keys()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.split() == []


@pytest.mark.parametrize("name", [name for name in fdadp.__all__ if not name.startswith("__")])
def test_public_names_have_docstrings(name: str) -> None:
    public = getattr(fdadp, name)
    assert inspect.getdoc(public), f"fdadp.{name} has no docstring"
    if inspect.isclass(public):
        methods = {key: getattr(public, key) for key in vars(public) if not key.startswith("_")}
        bare = [key for key, value in methods.items() if callable(value) and not inspect.getdoc(value)]
        assert bare == [], f"methods of fdadp.{name} without docstring: {bare}"


LAZY = [fdadp, fdadp.audit, fdadp.federated, fdadp.learners, fdadp.privacy, fdadp.published]
"""Packages whose names are loaded on first use."""


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_editors_see_the_names_that_are_loaded_on_first_use(package: types.ModuleType) -> None:
    """The stub, from which they are loaded, names each where it is defined."""
    assert package.__file__ is not None
    names = exports_of(Path(package.__file__).with_suffix(".pyi"))
    assert set(names) == {name for name in package.__all__ if name not in ("terms", "__version__")}
    for name, module in names.items():
        assert getattr(importlib.import_module(f"{package.__name__}.{module}"), name) is getattr(package, name)


def test_dir_shows_the_public_packages_and_no_helpers() -> None:
    shown = {name for name in dir(fdadp) if not name.startswith("__")}
    assert shown == {name for name in fdadp.__all__ if not name.startswith("__")} | set(fdadp.ROOMS)
    assert {"plot", "learners", "federated", "privacy", "published"} <= shown
    assert {room for room in FLOOR if (PACKAGE / room).is_dir()} >= set(fdadp.ROOMS) - {"errors"}
    code = "import fdadp; print(fdadp.plot.__name__, fdadp.learners.DPPCA.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.split() == ["fdadp.plot", "DPPCA"]


def test_the_names_of_the_first_day_come_first() -> None:
    first = (
        "terms FunctionalRegression ScalarRegression AdditiveFunctionOnFunction Privacy plan read_curves PrivateMean"
    )
    assert fdadp.__all__[:10] == [*first.split(), "PrivateTable1", "simulate_affr"]
    assert {"private_mean", "suggest_bounds", "Budget"} < set(fdadp.__all__)
    assert "Moments" not in fdadp.__all__


def test_every_export_names_an_own_module() -> None:
    assert set(EXPORTS) < set(fdadp.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        importlib.import_module("fdadp").nothing  # noqa: B018


def test_citation_states_the_version() -> None:
    stated = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert stated
    assert stated[1].strip("\"'") == fdadp.__version__


def test_the_r_package_states_the_version() -> None:
    stated = re.search(r"^Version: (.+)$", (ROOT / "DESCRIPTION").read_text(encoding="utf-8"), re.MULTILINE)
    assert stated
    assert stated[1] == fdadp.__version__
    news = (ROOT / "NEWS.md").read_text(encoding="utf-8")
    assert f"# fdadp {fdadp.__version__}\n" in news


def test_the_r_package_leaves_everything_else_out() -> None:
    """Every tracked name at the root is R's or is in .Rbuildignore."""
    ignored = [re.compile(line) for line in (ROOT / ".Rbuildignore").read_text(encoding="utf-8").split()]
    ours = {"DESCRIPTION", "NAMESPACE", "R", "man", "tests", "inst", "vignettes", "NEWS.md", "LICENCE", "README.md"}
    ours |= {"build"}  # where R CMD build writes the index of vignettes; what setuptools leaves there is left out
    names = {path.name for path in ROOT.iterdir()} - ours - {".Rbuildignore"}
    assert [name for name in sorted(names) if not any(rule.search(name) for rule in ignored)] == []


def requirements(lines: str) -> dict[str, str]:
    """Lower bounds (or pins) of a requirement list: ``{"numpy": "1.26"}``."""
    found = re.findall(r"^\s*([A-Za-z0-9_-]+)(?:\[\w+\])?\s*(?:[>=]=\s*([\d.]+))?", lines, re.MULTILINE)
    return {name.lower(): bound for name, bound in found}


def setup_requirements(*, extras: bool = True) -> dict[str, str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lists = [settings["project"]["dependencies"]]
    if extras:
        lists += [*settings["project"]["optional-dependencies"].values(), *settings["dependency-groups"].values()]
    return {name: bound for lines in lists for name, bound in requirements("\n".join(lines)).items()}


def test_setup_cfg_repeats_nothing_of_pyproject() -> None:
    """setup.cfg says where the version stands, and which packages and files are in the wheel."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert {section: set(config[section]) for section in ("metadata", "options")} == {
        "metadata": {"version"},
        "options": {"packages"},
    }
    own = set(config.sections()) - {"egg_info"}  # which a source distribution has of setuptools
    assert own == {"metadata", "options", "options.packages.find", "options.package_data"}


def test_oldest_versions_are_those_of_pyproject() -> None:
    pins = requirements((ROOT / "constraints-oldest.txt").read_text(encoding="utf-8"))
    assert setup_requirements(extras=False).keys() - pins.keys() == set(), "not pinned in constraints-oldest.txt"
    bounds = {name: bound for name, bound in setup_requirements().items() if bound and name in pins}
    assert {name: pins[name] for name, bound in bounds.items() if not f"{pins[name]}.".startswith(f"{bound}.")} == {}


def test_every_dependency_has_a_reason() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in setup_requirements() if f"`{name}`" not in text] == []


def test_the_source_distribution_is_the_repository() -> None:
    """Every file that git knows is named in MANIFEST.in; .ci/sdist.py builds the archive and looks into it."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no copy of the repository with git")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines() if not line.startswith("#")]
    patterns = [pattern for command, *rest in lines if command == "include" for pattern in rest]
    folders = {folder for command, *rest in lines if command == "graft" for folder in rest}
    built_in = {"LICENSE", "MANIFEST.in", "pyproject.toml", "setup.cfg"}
    for name in filter(None, names.split("\0")):
        top = name.split("/")[0]
        assert top in folders | built_in or ("/" not in name and any(fnmatch(name, p) for p in patterns)), name


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by their names: two of one name cannot be collected together."""
    names = sorted(path.name for path in (ROOT / "tests" / "python").rglob("test_*.py"))
    assert sorted(set(names)) == names
