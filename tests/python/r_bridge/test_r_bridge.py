"""The bridge without R: what it says when something is missing, replaying recorded cases, command line, plugin."""

from __future__ import annotations

import ast
import copy
import json
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from skfda import FDataBasis, FDataGrid
from skfda.representation.basis import BSplineBasis, ConstantBasis, FourierBasis, MonomialBasis, VectorValuedBasis

import r_bridge
from fdadp.errors import FileFormatError, InputError, MissingDataError
from r_bridge import Frame, RBridgeUnavailable, _rpy2, _status
from r_bridge._check_recorded import check, check_case, why_not
from r_bridge.cli import main
from r_bridge.convert import basis_to_fd, curves_from_r, curves_to_r, fd_to_basis, plain_data
from r_bridge.difference_report import Difference, Report, absolute, of_range, relative
from r_bridge.differences_table import COLUMNS, LEAST, markdown, rows_of
from r_bridge.reference import find_case, read_case
from r_bridge.terms_beside_refund import CASES as TERM_CASES

ROOT = Path(__file__).resolve().parents[3]
BUNDLED = ROOT / "tests" / "reference"
PACKAGE = Path(r_bridge.__file__).parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=env)


@pytest.fixture
def command(monkeypatch, capsys):
    """``command("check", "DIR")``: exit status, stdout and stderr of the command line."""

    def call(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["r_bridge", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *capsys.readouterr()

    return call


# --- what is missing, and what mends it ---


def fake_r(folder: Path, version: str, packages: dict[str, str]) -> Path:
    """An R that only says its folder, its version and those of its packages."""
    home = folder / "R-home"
    (home / "bin").mkdir(parents=True)
    lines = [f"@R {version}", *(f"@{name} {v}" for name, v in packages.items())]
    script = home / "bin" / "R"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = RHOME ]; then echo {home}; else printf "{chr(92)}n'.replace(chr(10), chr(10))
    )
    body = "\n".join(f"echo '{line}'" for line in lines)
    script.write_text(f'#!/bin/sh\nif [ "$1" = RHOME ]; then echo {home}; exit; fi\n{body}\n')
    script.chmod(0o755)
    return home / "bin"


RPY2 = {"rpy2": "3.6.4", "rpy2-rinterface": "3.6.4", "rpy2-robjects": "3.6.4"}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """``machine(r, rpy2, packages)``: a machine with these versions and nothing else."""

    def make(r=None, rpy2=RPY2, packages=None):
        monkeypatch.delenv("R_HOME", raising=False)
        path = str(fake_r(tmp_path, r, packages or {})) if r else str(tmp_path)
        monkeypatch.setenv("PATH", f"{path}:/bin" if r else path)
        monkeypatch.setattr(_status, "_installed", rpy2.get)
        monkeypatch.setattr(_rpy2._Engine, "_only", None)

    return make


def test_no_r(machine):
    machine(r=None)
    state = r_bridge.status()
    assert not state.usable and state.r is None
    with pytest.raises(
        RBridgeUnavailable, match=r"R is not installed: there is no R in PATH.*Mend with: apt-get install"
    ):
        _rpy2.require("mgcv")


def test_wrong_r_home(machine, monkeypatch):
    machine(r="4.2.2")
    monkeypatch.setenv("R_HOME", "/nowhere")
    with pytest.raises(RBridgeUnavailable, match=r"R_HOME must be the folder of an R, got '/nowhere'.*unset R_HOME"):
        _rpy2.require()


def test_no_rpy2(machine):
    machine(r="4.2.2", rpy2={}, packages={"mgcv": "1.8.41"})
    with pytest.raises(
        RBridgeUnavailable, match=r"rpy2 is not installed .*R 4.2.2.*pip install 'rpy2==3.6.4' 'rpy2-rint"
    ):
        _rpy2.require("mgcv")


def test_rpy2_that_needs_a_newer_r(machine):
    newest = dict.fromkeys(RPY2, "3.6.9")
    machine(r="4.2.2", rpy2=newest)
    with pytest.raises(
        RBridgeUnavailable, match=r"do not match: rpy2-rinterface 3.6.9 needs R 4.5 or newer, got R 4.2.2"
    ):
        _rpy2.require()
    assert _status._mismatch("4.5.0", newest) == (None, None)
    assert _status._mismatch("4.2.2", RPY2) == (None, None)


def test_r_too_old(machine):
    machine(r="3.6.3")
    with pytest.raises(RBridgeUnavailable, match=r"R is too old: R 4.2 or newer is needed, got R 3.6.3.*apt-get"):
        _rpy2.require()


def test_r_that_does_not_start(machine, tmp_path):
    machine(r="4.2.2")
    (tmp_path / "R-home" / "bin" / "R").write_text(f'#!/bin/sh\n[ "$1" = RHOME ] && echo {tmp_path}/R-home || exit 1\n')
    assert "does not start" in str(r_bridge.status().problem)


def test_r_package_absent(machine):
    machine(r="4.2.2", packages={"mgcv": "1.8.41"})
    state = r_bridge.status()
    assert state.usable
    state.require("mgcv")
    with pytest.raises(RBridgeUnavailable, match=r"R package refund is not installed.*install.packages\(\"refund\""):
        state.require("mgcv", "refund")
    assert "refund     not installed" in str(state)


def test_rpy2_that_does_not_load(machine, monkeypatch):
    machine(r="4.2.2")
    monkeypatch.setitem(sys.modules, "rpy2.rinterface", None)
    with pytest.raises(RBridgeUnavailable, match=r"rpy2 3.6.4 cannot start R 4.2.2: .*--force-reinstall") as caught:
        _rpy2.require()
    assert isinstance(caught.value, ImportError)


def test_requirements_follow_the_r_that_is_there():
    assert _status.rpy2_requirements("4.2.2") == [f"{part}==3.6.4" for part in RPY2]
    assert _status.rpy2_requirements("4.4.3") == _status.rpy2_requirements("4.2.2")
    assert _status.rpy2_requirements("4.5.0") == _status.rpy2_requirements("4.10.1") == ["rpy2>=3.6.4"]


def test_a_call_without_r_says_so_in_a_fresh_process(tmp_path):
    code = "import numpy as np, r_bridge.mgcv as m; m.gam_linear_functional(np.eye(9), np.arange(9.0))"
    done = run("-c", code, PATH=str(tmp_path), R_HOME="")
    assert "RBridgeUnavailable: R is not installed" in done.stderr


def test_the_command_line_without_r(machine, command):
    machine(r=None)
    status, out, _ = command("status")
    assert status == 1 and "usable     no" in out and "mend with" in out
    assert command("requirements")[:2] == (0, "")
    for arguments in (("crosscheck", "--n", "60"), ("record", "affr_sim"), ("record",)):
        status, _, said = command(*arguments)
        assert status == 2 and said.startswith("Error: R is not installed") and said.count("\n") == 1


def test_the_command_line_with_r(machine, command):
    machine(r="4.2.2", packages={"mgcv": "1.8.41"})
    status, out, _ = command("status")
    assert status == 0 and "usable     yes" in out
    assert command("requirements")[1].split() == [f"{part}==3.6.4" for part in RPY2]
    assert "X and Y must both be given" in command("crosscheck", "X.csv")[2]


# --- the house ---


def test_rpy2_is_imported_in_one_module_and_late():
    importing = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "rpy2" for name in names):
                importing.add(path.name)
    assert importing == {"_rpy2.py"}
    code = "import sys, r_bridge.mgcv, r_bridge.refund, r_bridge.vgam, r_bridge.cli; print('rpy2' in sys.modules)"
    assert run("-c", code).stdout.strip() == "False"
    assert "numpy2ri" not in (PACKAGE / "_rpy2.py").read_text(encoding="utf-8")


def test_exports():
    assert set(r_bridge.__all__) <= set(dir(r_bridge))
    for name in r_bridge.__all__:
        assert getattr(r_bridge, name).__doc__
    with pytest.raises(AttributeError, match="No r_bridge attribute nothing"):
        r_bridge.nothing  # noqa: B018


# --- plain values ---


def test_frames():
    frame = Frame({"y": np.arange(3.0), "X": np.ones((3, 2)), "g": pd.Categorical(["a", "b", "a"])})
    assert frame.n_rows == 3
    assert list(frame.to_pandas()) == ["y", "X.0", "X.1", "g"]
    again = Frame.from_pandas(pd.DataFrame({"z": [1, 2], "w": ["u", "v"]}))
    assert again.columns["w"] == ["u", "v"]
    with pytest.raises(InputError, match=r"same number of rows, got \{'a': 2, 'b': 3\}"):
        Frame({"a": np.zeros(2), "b": np.zeros(3)})


def test_curves_and_data():
    curves = FDataGrid(np.arange(12.0).reshape(3, 4), [0.0, 0.5, 1.0, 3.0])
    parts = curves_to_r(curves)
    assert curves_from_r(parts).equals(curves)
    data = plain_data({"X": curves, "g": pd.Series(["a", "b", "c"], dtype="category"), "z": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(data["X"], curves.data_matrix[..., 0])
    assert isinstance(data["g"], pd.Categorical)
    assert plain_data(pd.DataFrame({"a": [1.0]}))["a"].tolist() == [1.0]


@pytest.mark.parametrize(
    "basis",
    [
        BSplineBasis(domain_range=(0, 3), n_basis=8, order=4),
        BSplineBasis(domain_range=(0, 1), order=3, knots=[0, 0.2, 0.7, 1]),
        FourierBasis(domain_range=(0, 2), n_basis=5, period=3),
        MonomialBasis(domain_range=(-1, 1), n_basis=3),
        ConstantBasis(domain_range=(0, 1)),
    ],
    ids=lambda b: type(b).__name__,
)
def test_fd_and_back(basis):
    data = FDataBasis(basis, np.random.default_rng(0).normal(size=(3, basis.n_basis)))
    again = fd_to_basis(basis_to_fd(data))
    assert again.basis == basis
    np.testing.assert_array_equal(again.coefficients, data.coefficients)


def test_bad_fd():
    vector = VectorValuedBasis([ConstantBasis((0, 1)), ConstantBasis((0, 1))])
    with pytest.raises(InputError, match="must be B-spline, Fourier, monomial or constant, got VectorValuedBasis"):
        basis_to_fd(FDataBasis(vector, np.ones((1, 2))))
    with pytest.raises(InputError, match="must be an FDataBasis, got ndarray"):
        basis_to_fd(np.zeros(3))
    with pytest.raises(InputError, match="got 'wavelet'"):
        fd_to_basis({"type": ["wavelet"], "domain": [0, 1], "n_basis": [3]})


# --- differences ---


def test_differences_notice():
    assert relative([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert absolute([1.0], [[1.0]]) == 0
    assert of_range([0.0, 1.0], [0.0, 2.0]) == pytest.approx(0.5)
    assert relative([1.0, 2.0, 3.0], [1.0, 2.0]) == np.inf
    assert relative(np.zeros((2, 3)), np.zeros((3, 2))) == np.inf
    assert relative([0.1], [0.0]) == np.inf and relative([0.0], [0.0]) == 0
    assert not Difference("c", "q", float("nan"), 1.0).ok
    report = Report("t").add([Difference("c", "small", 0.5, 1.0), Difference("c", "large", 2.0, 1.0)])
    assert not report.ok and [d.quantity for d in report.worst(1)] == ["large"]
    assert "PAST large" in str(report) and "1 past tolerance" in str(report)
    assert not Report("nothing").ok
    assert json.loads(Report("t", [Difference("c", "q", np.inf, 1.0)]).to_json())["differences"][0]["value"] == "inf"
    assert list(report.to_frame()["ok"]) == [True, False]


# --- replaying recorded cases ---

CASES = ["affr_canadian", "affr_dti2", "affr_lip", "fpca_canadian", "fpca_dti", "fpca_dti_missing", "quadrature"]
CASES += ["basis_ps_k7_m22", "basis_ps_k10_m21", "basis_bs_cubic", "basis_fda_bspline", "tensor_te_k76"]
CASES += sorted({case.record for case in TERM_CASES})


@pytest.mark.parametrize("case", CASES)
def test_recorded_cases_are_within_tolerance(refund_reference, case):
    differences = check_case(refund_reference(case))
    assert len(differences) >= 5
    assert [d for d in differences if not d.ok] == []
    for fit, values in rows_of(Report("", differences)).items():
        page = bounds_of_the_page(fit)
        assert page.keys() == values.keys()
        past = {column for column, v in values.items() if v > 100 * max(page[column], LEAST)}
        assert past <= {"own score above", "fitted, own optimum"}, "where a search ends is the machine's"


def bounds_of_the_page(fit):
    """Numbers of one row of the table in docs/refund.md, by column; other machines round otherwise."""
    page = (ROOT / "docs" / "refund.md").read_text(encoding="utf-8")
    head, _, *rows = page.partition("<!-- table -->\n")[2].splitlines()
    names = [name.strip() for name in head.strip("|").split("|")]
    (row,) = [row for row in rows if row.startswith(f"| {fit} |")]
    cells = dict(zip(names, (cell.strip() for cell in row.strip("|").split("|")), strict=True))
    return {column: float(cells[column]) for column in COLUMNS if cells[column]}


CHANGES = {
    "fitted": lambda fit: fit["fitted"].__setitem__(3, fit["fitted"][3] * (1 + 1e-7)),
    "predicted": lambda fit: fit["predicted"].__setitem__(0, fit["predicted"][0] + 1e-6),
    "standard errors": lambda fit: fit["predicted_se"].__imul__(1 + 1e-8),
    "edf": lambda fit: fit["edf_total"].__iadd__(1e-6),
    "residual variance": lambda fit: fit["sig2"].__imul__(1 + 1e-8),
    "surface": lambda fit: fit["surface_difference"].__setitem__((0, 0), fit["surface_difference"][0, 0] + 1e-4),
    "smoothing parameters": lambda fit: fit["sp"].__imul__(1.01),
    "slope": lambda fit: fit["score_grad"].__iadd__(1e-3),
    "one constant": lambda fit: fit["score"].__iadd__(1e-5),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_record_is_noticed(refund_reference, what):
    record = copy.deepcopy(refund_reference("affr_canadian"))
    CHANGES[what](record["output"]["fits"][1]["reml"])
    past = [d.quantity for d in check_case(record) if not d.ok]
    assert any(what in quantity for quantity in past), past


TERM_CHANGES = {
    "fitted": lambda fit: fit["fitted"].__imul__(1 + 1e-10),
    "predicted": lambda fit: fit["predicted"].__setitem__((0, 0), fit["predicted"][0, 0] + 1e-9),
    "standard errors": lambda fit: fit["predicted_se"].__imul__(1 + 1e-10),
    "edf": lambda fit: fit["edf_total"].__imul__(1 + 1e-10),
    "residual variance": lambda fit: fit["sig2"].__imul__(1 + 1e-10),
    "score": lambda fit: fit["score"].__iadd__(1e-6),
}


@pytest.mark.parametrize("what", TERM_CHANGES)
def test_a_changed_record_of_terms_is_noticed(refund_reference, what):
    record = copy.deepcopy(refund_reference("pffr_ff_sim"))
    TERM_CHANGES[what](record["output"]["trapezoidal"])
    past = [(d.case, d.quantity) for d in check_case(record) if not d.ok]
    assert past == [("pffr_ff_sim, trapezoidal", what)]


def test_cases_without_a_counterpart_are_named(tmp_path):
    assert why_not("affr_dti2") is None and why_not("quadrature") is None
    assert why_not("pffr_ff_sim") is None and "name" in str(why_not("whatever"))
    (tmp_path / "whatever.rds").write_bytes(b"")
    report = check(tmp_path)
    assert report.skipped == {"whatever": "there is no comparison for cases of this name"}
    assert not report.ok, "nothing compared is not a success"


def test_files_that_are_not_cases(tmp_path):
    path = tmp_path / "affr_x.rds"
    path.write_bytes(b"no")
    with pytest.raises(FileFormatError, match=r"affr_x.rds must be an .rds file written by R, got"):
        read_case(path)
    with pytest.raises(MissingDataError, match=r"recorded case nothing is not here: searched .*nothing.rds"):
        find_case("nothing", [tmp_path])


@pytest.mark.parametrize("part", [None, {"evalues": None}])
def test_a_case_that_lacks_a_part_is_named(monkeypatch, command, part):
    """It ended in a raw TypeError."""
    record = copy.deepcopy(read_case(BUNDLED / "affr_canadian.rds"))
    record["output"]["fpca"] = part
    monkeypatch.setattr("r_bridge._check_recorded.read_case", lambda path: record)
    status, _, said = command("check", str(BUNDLED), "affr_canadian")
    assert status == 2 and "affr_canadian.rds must hold all that the comparison of 'affr_canadian' reads" in said


def test_check_on_the_command_line(tmp_path, command):
    path = tmp_path / "report.json"
    status, out, _ = command("check", str(BUNDLED), "quadrature", "--json", str(path))
    assert status == 0 and "15 comparisons, all within tolerance" in out
    assert json.loads(path.read_text(encoding="utf-8"))["ok"] is True
    status, out, _ = command("check", str(BUNDLED), "affr_canadian", "--factor", "1e-9", "--json", "-")
    assert status == 1 and json.loads(out)["ok"] is False
    status, _, said = command("check", str(tmp_path / "nowhere"))
    assert status == 2 and said.startswith("Error: DIR must be a folder")
    status, _, said = command("check", str(BUNDLED), "affr_mars")
    assert status == 2 and "recorded case affr_mars is not here" in said


def test_the_table_of_a_report():
    (case,) = [case for case in TERM_CASES if case.name == "pffr_live, hist"]
    found = [Difference(case.name, "edf", 3e-9, 1.0), Difference(case.name, "residual variance", 0.0, 1.0)]
    report = Report("", found, seconds={case.name: 0.0123, f"{case.name}, R": 7.0})
    last = markdown(report).splitlines()[-1]
    assert last == f"| pffr_live, hist | `{case.call}` |  |  |  | 1e-8 |  |  |  |  |  | 12 | 7 |"


def test_module_runs():
    done = run("-m", "r_bridge", "--help")
    assert done.returncode == 0 and "crosscheck" in done.stdout


# --- the pytest plugin, in a project of somebody else ---


def test_other_projects_get_the_plugin_only_by_its_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "entry-points" not in project and project["scripts"].keys() == {"fdadp"}


def test_plugin_in_another_project(tmp_path):
    (tmp_path / "test_theirs.py").write_text(
        textwrap.dedent(
            """
            import pytest

            def test_case(refund_reference):
                assert refund_reference("quadrature")["meta"]["case"][0] == "quadrature"

            def test_absent(refund_reference):
                refund_reference("affr_mars")

            @pytest.mark.refund
            def test_live():
                raise AssertionError("called without R")
            """
        )
    )
    done = run(
        "-m", "pytest", "-p", "r_bridge.pytest_plugin", "-p", "no:cacheprovider", "-rs", "--strict-markers",
        "--rootdir", str(tmp_path), "--refund-reference", str(BUNDLED), str(tmp_path),
        PATH=str(tmp_path), R_HOME="", FDADP_REFERENCE="", PYTEST_ADDOPTS="",
    )  # fmt: skip
    assert "1 passed, 2 skipped" in done.stdout, done.stdout + done.stderr
    assert "recorded case affr_mars is not here" in done.stdout
    assert "needs refund through R: R is not installed" in done.stdout
