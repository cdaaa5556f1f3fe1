"""Studies: budgets in files that outlive processes; crashes, races, tampering and files as users have them."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from study_tools import ROWS, cohort_of, release, study_at

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateMean, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Cohort, SeededNoise
from fdadp.privacy.study import Study, _file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


# ------------------------------------------------------------------ what it keeps


def test_a_fit_is_written_down_before_it_reads_and_for_good(path):
    study_at(path)
    cohort = cohort_of(path, 0.25)
    assert Study(path).fits[0].state.startswith("waiting")

    seen = []

    def f(rows):
        seen.append(Study(path).fits[0].releases)
        return rows[0]

    cohort.sum(f, clip=1.0, share=0.5, name="total")
    assert [r.name for r in seen[-1]] == ["total"]  # the entry was there when the rows were read
    of = Study(path)
    assert of.left == pytest.approx(0.75)
    (fit,) = of.fits
    assert fit.releases == cohort.releases
    assert (fit.mechanism, fit.state) == ("mean of rows", "spent")
    assert of.verify() == ()
    assert cohort.ledger.details["study"].startswith("Wards (")
    assert cohort.ledger.details["last entry of the study"] == "{}, {}".format(*of.head)


def test_what_was_not_read_is_given_back(path):
    study_at(path)
    cohort = cohort_of(path, 0.5)
    cohort.close()
    assert Study(path).left == 1
    forgotten = cohort_of(path, 0.5)
    del forgotten
    assert Study(path).left == 1
    part = cohort_of(path, 0.5)
    release(part, 0.1)
    part.stop()
    assert Study(path).left == pytest.approx(0.95)
    with pytest.raises(PrivacyError, match="was closed"):
        release(part, 0.1)
    assert Study(path).verify() == ()
    assert [f.state for f in Study(path).fits] == [
        "given back: nothing was read",
        "given back: nothing was read",
        "spent, the rest given back",
    ]


def test_refused_with_what_is_left(path):
    study_at(path)
    release(cohort_of(path, 0.9))
    with pytest.raises(PrivacyError, match=r"study 'Wards' has left, 0\.[0-9]+ \(10\.00% of all") as info:
        cohort_of(path, 0.2)
    assert "nothing was read and nothing was spent" in str(info.value)
    assert Study(path).left == pytest.approx(0.1)


def test_simulations_are_not_for_studies(path):
    study_at(path)
    with pytest.raises(PrivacyError, match="noise must be secure"):
        Cohort(ROWS, budget=Study(path).budget, n=50, noise=SeededNoise(0))
    with pytest.raises(PrivacyError, match="random_state must be left out"):
        Privacy(study=path, epsilon=1.0, random_state=0)
    assert len(Study(path).entries) == 1


# ------------------------------------------------------------------ estimators


def test_estimators_take_from_it_what_it_has_fixed(path):
    study_at(path, n=1500, unit="person", bounds={"heart rate": (30, 180), "sex": ["f", "m"]}, sources="manual")
    privacy = Privacy(study=path, epsilon=0.5, purpose="mean curve")
    assert (privacy.n, privacy.delta, privacy.unit, privacy.adjacency) == (1500, 1e-6, "person", "zero-out")
    with pytest.raises(PrivacyError, match=r"n must be that of the study, 1500, got 100"):
        Privacy(study=path, epsilon=0.5, n=100)
    with pytest.raises(PrivacyError, match="delta must be that of the study"):
        Privacy(study=path, epsilon=0.5, delta=1e-5)
    assert privacy.bounds_with({"Y": (0, 1)}) == {"heart rate": (30, 180), "sex": ["f", "m"], "Y": (0, 1)}
    with pytest.raises(PrivacyError, match="bounds of heart rate must be those of the study"):
        privacy.bounds_with({"heart rate": (0, 300)})
    Y = simulate_affr(scenario=1, n=1500, seed=0).Y
    model = PrivateMean(privacy=privacy, bounds=(-8, 8))
    with pytest.raises(PrivacyError, match="groups must say whose"):
        model.fit(Y)
    assert len(Study(path).entries) == 1  # nothing was even asked for
    fitted = clone(model).fit(Y, groups=np.arange(1500))
    (fit,) = Study(path).fits
    assert fit.purpose == "mean curve"
    assert fit.epsilon == pytest.approx(0.5)
    assert fitted.ledger_.others == 0
    with pytest.raises(PrivacyError, match="epsilon must be at most that of the study"):
        PrivateMean(privacy=Privacy(study=path, epsilon=3), bounds=(-8, 8)).fit(Y, groups=np.arange(1500))


def test_another_study_brings_its_own_settings(tmp_path):
    for name, n in (("a", 100), ("b", 200)):
        study_at(tmp_path / name, n=n)
    privacy = Privacy(study=tmp_path / "a", epsilon=0.5)
    assert privacy.set_params(study=tmp_path / "b").n == 200
    with pytest.raises(PrivacyError, match="n must be that"):
        privacy.set_params(study=tmp_path / "a", n=7)
    model = AdditiveFunctionOnFunction(privacy=privacy).set_params(privacy__epsilon=0.25)
    assert model.privacy.study == str(tmp_path / "b")


def test_a_search_is_refused_at_the_fit_that_would_exceed_it(path):
    from sklearn.model_selection import GridSearchCV

    study_at(path, delta=None, n=300)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    model = DPGaussianNB(epsilon=0.3, study=str(path), classes=[0, 1], bounds=(-1, 1))
    search = GridSearchCV(model, {"priors": [None, [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]}, cv=3, error_score="raise")
    with (
        pytest.warns(match="score is computed from the rows"),
        pytest.raises(PrivacyError, match=r"has left, 0\.2 \(10\.00% of all that may ever be spent, epsilon 2"),
    ):
        search.fit(X, y)
    of = Study(path)
    assert len(of.fits) == 6
    assert math.fsum(r.spent for f in of.fits for r in f.releases) == pytest.approx(1.8)
    assert of.verify() == ()


def test_a_private_choice_draws_on_it(tmp_path):
    from fdadp import choose_privately

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 2))
    y = (X[:, 0] > 0).astype(int)
    candidates = [DPGaussianNB(classes=[0, 1], bounds=(-1, 1), priors=p) for p in ([0.999, 0.001], None)]
    study_at(tmp_path / "persons", n=1000, unit="person")
    privacy = Privacy(study=tmp_path / "persons", epsilon=1.5)
    found = choose_privately(candidates, X, y, privacy, np.arange(1000))
    assert found.index == 1
    of = Study(tmp_path / "persons")
    assert len(of.fits) == 3
    assert of.verify() == ()
    assert of.budget.spent_epsilon == pytest.approx(1.5, rel=1e-6)
    study_at(tmp_path / "rows", n=1000)
    with pytest.raises(PrivacyError, match="study must be of unit 'person' for a private choice"):
        choose_privately(candidates, X, y, Privacy(study=tmp_path / "rows", epsilon=1.0))
    assert Study(tmp_path / "rows").left == 1


# ------------------------------------------------------------------ files as users have them


def test_the_file_is_its_owners(path):
    study_at(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_one_on_the_same_path(path):
    study_at(path)
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match="must name no file yet"):
        study_at(path)
    assert path.read_bytes() == before


def test_what_is_no_study(tmp_path):
    with pytest.raises(PrivacyError, match="which is not there"):
        Study(tmp_path / "none")
    text = tmp_path / "text.fdadp"
    text.write_text("epsilon = 2\n" * 1000)
    with pytest.raises(PrivacyError, match="which is none"):
        Study(text)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE entries (a)")
        db.commit()
    with pytest.raises(PrivacyError, match="which is none"):
        Privacy(study=tmp_path / "other.db", epsilon=1.0)
    (tmp_path / "empty").touch()
    with pytest.raises(PrivacyError, match="which is none"):
        Study(tmp_path / "empty")
    with pytest.raises(PrivacyError, match="study must be a path, got int"):
        Privacy(study=3, epsilon=1.0)


def test_another_version(path):
    study_at(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")
        db.commit()
    with pytest.raises(PrivacyError, match=r"must be of format 1, got .* of format 9"):
        Study(path)


def test_closed_and_expired(path, tmp_path):
    study_at(path).close("the data were deleted")
    with pytest.raises(PrivacyError, match=r"was closed on .*: the data were deleted"):
        cohort_of(path, 0.1)
    with pytest.raises(PrivacyError, match="was closed"):
        Study(path).close("again")
    study_at(tmp_path / "old", expires="2020-01-31")
    with pytest.raises(PrivacyError, match="has expired on 2020-01-31"):
        cohort_of(tmp_path / "old", 0.1)
    assert Study(path).left == Study(tmp_path / "old").left == 1


def test_of_another_unit_or_adjacency(path):
    study_at(path, unit="person")
    with pytest.raises(PrivacyError, match="unit and adjacency must be those of the study, person and zero-out"):
        cohort_of(path, 0.1)
    assert Study(path).left == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(unit="household"), "unit must be"),
        (dict(name=""), "name must be a text"),
        (dict(epsilon=-1.0), "epsilon must be"),
        (dict(delta=0.1), "below 1/n"),
        (dict(n=None, adjacency="replace"), "adjacency must be"),
        (dict(expires="soon"), "expires must be a day"),
        (dict(bounds={"x": (2, 1)}), "low below high"),
        (dict(bounds={"x": "abc"}), "must be a tuple"),
        (dict(bounds={"g": ["a", "a"]}), "distinct levels"),
        (dict(sources={"y": "manual"}), "sources must be of columns in bounds"),
    ],
)
def test_settings_that_are_wrong_leave_no_file(path, change, message):
    with pytest.raises(PrivacyError, match=message):
        study_at(path, **change)
    assert not path.exists()


def test_file_systems_over_a_network_are_refused(path, monkeypatch):
    monkeypatch.setattr(_file, "kind_of_file_system", lambda folder: "nfs4")
    with pytest.raises(PrivacyError, match="must lie on a disk of this machine, got a folder on 'nfs4'"):
        study_at(path)
    assert not path.exists()


def test_where_nothing_can_be_written_nothing_is_released(path, monkeypatch):
    """A full disk: the transaction of a release fails, and so does the release, before it reads."""
    study_at(path)
    cohort = cohort_of(path, 0.5)

    def full(db, *rest):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("fdadp.privacy.study.book.append", full)
    with pytest.raises(PrivacyError, match="could not be written: database or disk is full"):
        release(cohort)
    assert cohort.reads == 0
    assert cohort.releases == ()
    monkeypatch.undo()
    assert Study(path).fits[0].releases == ()
    assert Study(path).verify() == ()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_must_not_be_written(path):
    study_at(path)
    path.chmod(0o400)
    assert Study(path).left == 1
    with pytest.raises(PrivacyError, match="may be written to"):
        cohort_of(path, 0.5)


def test_names_of_files_as_users_have_them(tmp_path):
    for name in ("with space.fdadp", "ünï#?%.fdadp", "a&mode=memory"):
        path = tmp_path / name
        study_at(path)
        release(cohort_of(path, 0.5))
        assert Study(path).verify() == ()
        assert sorted(p.name for p in tmp_path.iterdir()) == [name]
        path.unlink()


def test_relative_paths_survive_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study_at("here.fdadp")
    privacy = Privacy(study="here.fdadp", epsilon=0.5)
    monkeypatch.chdir("/")
    assert privacy.budget_share()[1] > 0
    assert Path(privacy.study).is_absolute()
