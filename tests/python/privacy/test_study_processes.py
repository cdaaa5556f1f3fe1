"""Studies under threads, forks, fresh processes, joblib, R beside Python, and kills.

Children are daemons, and everything that waits for one has an end: a child that hangs fails its test, and no more.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from study_tools import ROWS, cohort_of, release, study_at, try_to_spend

from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Cohort
from fdadp.privacy.study import Study, _append_only_file

WAIT = 120
"""Seconds after which a child is said to hang."""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wards.fdadp"


def answers_of(how, count, path, share):
    """What `count` workers say who spend `share` each, all at once."""
    if how == "threads":
        out, make = queue.Queue(), threading.Thread
    else:
        context = multiprocessing.get_context(how)
        out, make = context.Queue(), context.Process
    workers = [make(target=try_to_spend, args=(path, share, out), daemon=True) for _ in range(count)]
    for w in workers:
        w.start()
    answers = [out.get(timeout=WAIT) for _ in workers]
    for w in workers:
        w.join(WAIT)
    assert not any(w.is_alive() for w in workers)
    return answers


def check_all_is_spent(path, answers):
    """All but one worker have spent the study, to the last bit, and one was refused."""
    assert sum(not a for a in answers) == len(answers) - 1
    assert sum("has left" in a for a in answers) == 1
    of = Study(path)
    assert of.left == pytest.approx(0, abs=1e-9)
    assert len([fit for fit in of.fits if fit.share]) == len(answers) - 1
    check_sums(path)


def check_sums(path):
    """What is counted as spent is what the releases cost, and no more than there is."""
    of = Study(path)
    by_fit = [reduce(add, (r.spent for r in fit.releases), 0.0) for fit in of.fits]
    assert of.budget.cost == math.fsum(by_fit)  # to the last bit
    assert of.budget.cost <= of.facts["total"]
    assert of.verify() == ()


@pytest.mark.parametrize("how", ["threads", "fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_eight_at_once_and_the_ninth_is_refused(path, how):
    study_at(path)
    count = 3 if how == "spawn" else 9  # each of them imports everything
    answers = answers_of(how, count, path, 1 / (count - 1))
    check_all_is_spent(path, answers)
    assert Study(path).budget.cost == pytest.approx(Study(path).facts["total"], rel=1e-6)


@pytest.mark.long
@pytest.mark.usefixtures("loky")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib(path, backend):
    from joblib import Parallel, delayed

    study_at(path)
    with Parallel(n_jobs=3, backend=backend, timeout=WAIT) as parallel:
        answers = parallel(delayed(try_to_spend)(path, 1 / 8) for _ in range(9))
    check_all_is_spent(path, answers)


@pytest.mark.long
def test_a_search_in_several_processes(path):
    """Folds that are fitted at once in workers of joblib draw on one file."""
    from sklearn.model_selection import GridSearchCV

    study_at(path, delta=None, n=300)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    model = DPGaussianNB(epsilon=0.3, study=str(path), classes=[0, 1], bounds=(-1, 1))
    priors = [None, [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]]
    with pytest.warns(match="Scoring failed|fits failed"):
        search = GridSearchCV(model, {"priors": priors}, cv=3, n_jobs=2, refit=False)
        search.fit(X, (X[:, 0] > 0).astype(int))
    of = Study(path)
    assert len(of.fits) == 6
    assert of.budget.cost == pytest.approx(1.8)
    assert np.isnan(search.cv_results_["mean_test_score"]).sum() >= 2
    check_sums(path)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not here")
def test_two_sessions_of_r_at_once_beside_python(path, tmp_path):
    """Two processes of R and one of Python fit at once; who comes last is refused."""
    study_at(path, n=200, delta=None)
    library = tmp_path / "library"
    library.mkdir()
    made = subprocess.run(
        ["R", "CMD", "INSTALL", f"--library={library}", str(ROOT)], capture_output=True, text=True, timeout=300
    )
    if made.returncode:
        pytest.skip(f"the R package cannot be installed here: {made.stderr[-200:]}")
    script = tmp_path / "fit.R"
    script.write_text(
        "library(fdadp)\n"
        "at <- commandArgs(TRUE)[1]\n"
        "people <- simulate_affr(n = 200, n_points = 11)\n"
        "for (i in 1:2) {\n"
        "  said <- tryCatch({\n"
        "    dp_affr(people$Y, people$X, epsilon = 0.4, study = at, bounds = list(X = c(-4, 4), Y = c(-8, 8)))\n"
        '    "spent"\n'
        "  }, fdadp_privacy_error = conditionMessage)\n"
        '  cat("said:", said, "\\n")\n'
        "}\n"
    )
    made = ROOT / ".venv-r" / "bin" / "python"  # as .ci/r-package.sh has it, where reticulate takes no NumPy 2
    python = os.environ.get("R_PYTHON") or str(made if made.exists() else sys.executable)
    env = os.environ | {"R_LIBS": str(library), "RETICULATE_PYTHON": python, "PYTHONPATH": str(ROOT)}
    run = ["Rscript", str(script), str(path)]
    sessions = [
        subprocess.Popen(run, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        ours = [try_to_spend(path, 0.2, n=200) for _ in range(2)]
        told = [session.communicate(timeout=WAIT * 4) for session in sessions]
    finally:
        for session in sessions:
            session.kill()
    said = [line[6:].strip() for out, _ in told for line in out.splitlines() if line.startswith("said: ")]
    if not said and "numpy" in str(told).lower():
        pytest.skip(f"reticulate cannot use this Python: {told[0][1][-200:]}")
    assert len(said) == 4, told
    answers = ["" if line == "spent" else line for line in said] + ours
    check_all_is_spent(path, answers)


def test_a_budget_of_a_study_can_be_pickled_and_forked(path):
    study_at(path)
    budget = Study(path).budget
    again = pickle.loads(pickle.dumps(budget))
    release(Cohort(ROWS, budget=again, n=50, share=0.5))
    assert budget.spent == again.spent == pytest.approx(0.5 * budget.total)
    cohort = cohort_of(path, 0.25)
    child = multiprocessing.get_context("fork").Process(target=lambda: None, daemon=True)
    child.start()  # its copy of the cohort is forgotten there
    child.join(WAIT)
    assert child.exitcode == 0
    release(cohort)
    assert Study(path).left == pytest.approx(0.25)


def test_a_child_that_is_forked_inside_a_step_does_not_keep_the_lock(path):
    """The child has a copy of the handle, which nobody closes there; it can fit, and so can others."""
    study_at(path)
    go, forked = threading.Event(), threading.Event()

    def hold():
        with _append_only_file.transaction(path):
            go.set()
            forked.wait(WAIT)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert go.wait(WAIT)
    context = multiprocessing.get_context("fork")
    end = context.Event()
    child = context.Process(target=lambda: (release(cohort_of(path, 0.1)), end.wait(WAIT)), daemon=True)
    child.start()
    forked.set()
    thread.join(WAIT)
    release(cohort_of(path, 0.1))
    end.set()
    child.join(WAIT)
    assert child.exitcode == 0
    assert len(Study(path).fits) == 2


def test_who_waits_too_long_is_told_so(path, monkeypatch):
    study_at(path)
    monkeypatch.setattr(_append_only_file, "PATIENCE", 0.1)
    with _append_only_file.transaction(path), pytest.raises(PrivacyError, match="was held by another program"):
        cohort_of(path, 0.1)


def _work(path, out):
    """Fit for ever, and print what was released."""
    stream = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        cohort = cohort_of(path, 1e-4)
        at = cohort.ledger.details["reservation of the study"]
        for name in ("one", "two", "three"):
            value = release(cohort, 0.3, name)
            os.write(stream, f"{at} {name} {value.value[0]!r}\n".encode())


def killed(path, tmp_path, runs):
    rng = np.random.default_rng()
    context = multiprocessing.get_context("fork")
    out = tmp_path / "printed"
    out.touch()
    span = WAIT
    for run in range(runs):
        worker = context.Process(target=_work, args=(path, out), daemon=True)
        start = time.monotonic()
        worker.start()
        if run == 0:  # how long two fits take on this machine now: the others are killed somewhere in that time
            while out.read_text().count("\n") < 6 and time.monotonic() - start < WAIT:
                time.sleep(0.002)
            span = time.monotonic() - start
        else:
            time.sleep(rng.uniform(0.0, span))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join(WAIT)
        assert worker.exitcode == -signal.SIGKILL
        of = Study(path)
        assert of.verify() == ()
    written = {fit.number: {r.name for r in fit.releases} for fit in of.fits}
    lines = out.read_text().splitlines()
    for line in lines:
        at, name, _ = line.split(maxsplit=2)
        assert name in written[int(at)]
    held = [fit for fit in of.fits if fit.state.startswith("waiting")]
    assert of.left <= 1 - 1e-4 * (len(of.fits) - 0.1)  # what was interrupted is spent, too
    return len(lines), len(of.fits), len(held)


def test_killed_at_any_point_nothing_is_out_that_is_not_written_down(path, tmp_path):
    study_at(path)
    release(cohort_of(path, 1e-4))  # compiled, before the children are forked
    printed, fits, _ = killed(path, tmp_path, 20)
    assert fits > 1
    assert printed > 0


@pytest.mark.long
def test_killed_five_hundred_times(path, tmp_path):
    study_at(path)
    release(cohort_of(path, 1e-4))
    printed, fits, waiting = killed(path, tmp_path, 500)
    print(f"500 kills: {printed} released values, {fits} fits, {waiting} killed before they read; all written down")
    assert printed > 500
