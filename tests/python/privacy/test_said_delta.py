"""A delta is said or is 0: the same arguments give the same guarantee in Python and in the shell."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fdadp
from fdadp import Privacy, Study
from fdadp.cli.main import app
from fdadp.cli.shared_options import PrivacyOptions
from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Budget
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.guarantee_checks import check_delta

N = 400


def test_left_out_and_0_are_pure_epsilon_in_python(tmp_path: Path) -> None:
    for said in ({}, {"delta": None}, {"delta": 0}, {"delta": 0.0}, {"delta": np.float64(0)}):
        assert Privacy(1.0, **said) == Privacy(1.0) and Privacy(1.0, **said).delta is None
        assert Budget(1.0, **said).accounting == "pure"
        study = Study.new(
            tmp_path / f"{len(list(tmp_path.iterdir()))}.fdadp", name="A", epsilon=1.0, unit="row", **said
        )
        assert study.facts["delta"] is None
    assert fdadp.plan(n=1000, epsilon=1.0, delta=0).delta is None
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    nb = DPGaussianNB(epsilon=1.0, delta=0, n=N, classes=[0, 1], bounds=(-1, 1), random_state=0)
    assert nb.fit(X, np.arange(N) % 2).ledger_.delta is None
    for wrong in (-1e-6, 1.0, True, "1e-6", np.nan):
        for make in (Privacy, Budget):
            with pytest.raises(PrivacyError, match="delta must lie between 0 and 1, or be 0 or left out for pure eps"):
                make(1.0, wrong)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, Fraction])
def test_epsilon_and_delta_may_be_numbers_of_any_type(kind) -> None:
    for make in (Privacy, Budget):
        assert (type(make(kind(1)).epsilon), make(kind(1)).epsilon) == (float, 1.0)
    assert repr(Privacy(kind(1), Fraction(1, 2**20))) == "Privacy(epsilon=1.0, delta=9.5367431640625e-07)"


@pytest.mark.parametrize("make", [Privacy, Budget])
def test_what_no_float_holds_is_refused_by_name(make) -> None:
    for wrong in (10**400, -(10**400), Fraction(1, 10**400), math.nan, True, "1", None):
        with pytest.raises(PrivacyError, match="epsilon must be"):
            make(wrong)
    for wrong in (10**400, Fraction(1, 10**400), 1 - Fraction(1, 10**40)):
        with pytest.raises(PrivacyError, match="delta must lie between 0 and 1"):
            make(1.0, wrong)
    with pytest.raises(PrivacyError, match="delta must be below 1/n"):
        check_delta(1e-6, 10**400)


def test_a_study_has_its_delta_and_no_other(tmp_path: Path) -> None:
    file = Study.new(tmp_path / "s.fdadp", name="A", epsilon=1.0, delta=1e-6, unit="row", n=N).path
    assert Privacy(0.5, study=file).delta == 1e-6
    with pytest.raises(PrivacyError, match=r"delta must be that of the study, 1e-06, got 0; nothing was read"):
        Privacy(0.5, 0, study=file)
    pure = Study.new(tmp_path / "p.fdadp", name="A", epsilon=1.0, unit="row", n=N).path
    assert Privacy(0.5, 0, study=pure).delta is None


@pytest.mark.parametrize("delta", [None, 0.0, 1e-6])
def test_the_shell_gives_the_guarantee_of_python(tmp_path: Path, delta: float | None) -> None:
    assert PrivacyOptions(1.0, delta, N).privacy() == Privacy(1.0, delta, n=N)
    said = [] if delta is None else ["--delta", str(delta)]
    people = tmp_path / "people.csv"
    pd.DataFrame({"age": np.linspace(20, 80, N)}).to_csv(people, index=False)
    asked = [str(people), "--bounds", "age=18:100", "--epsilon", "2", "--n", str(N), "--out", str(tmp_path / "t.npz")]
    done = CliRunner().invoke(app, ["table1", *asked, *said])
    assert done.exit_code == 0, done.output
    assert Ledger.from_json((tmp_path / "t.ledger.json").read_text()).delta == (delta or None)
    shown = CliRunner().invoke(app, ["plan", "--n", "1000", *said]).output
    assert shown == f"{fdadp.plan(n=1000, epsilon=1.0, delta=delta)}\n"
