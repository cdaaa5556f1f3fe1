"""Studies for tests: small ones, what draws on them, and changes of their files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from fdadp.errors import PrivacyError
from fdadp.privacy import Cohort
from fdadp.privacy.study import Study
from fdadp.privacy.study._chained_entries import HEADER, START, Entry

ROWS = np.linspace(0, 1, 50)


def study_at(path, **changes):
    settings = {"name": "Wards", "epsilon": 2.0, "delta": 1e-6, "unit": "row", "n": 50}
    return Study.new(path, **{**settings, **changes})


def cohort_of(path, share):
    return Cohort(ROWS, budget=Study(path).budget, n=50, share=share, mechanism="mean of rows")


def release(cohort, share=1.0, name="total"):
    return cohort.sum(lambda rows: rows[0], clip=1.0, share=share, name=name)


def rewritten(path, change, *, hashes=False):
    """Let `change` do what it likes with the list of entries of a study; `hashes` makes all hashes right again."""
    lines = change([json.loads(line) for line in path.read_bytes().splitlines()[1:]])
    made, previous = [], START
    for line in lines:
        entry = Entry(**line)
        if hashes:
            entry = replace(entry, previous=previous)
            entry = replace(entry, hash=entry.digest)
        made.append(entry.line)
        previous = entry.hash
    path.write_bytes(HEADER + b"".join(made))


def wrong_with(path, *models):
    """What `verify` says, or why the study does not even open."""
    try:
        return Study(path).verify(*models)
    except PrivacyError as exc:
        return (str(exc),)


def nothing_was_spent(path):
    """Whether a study is as it was made: one entry, all of it left."""
    of = Study(path)
    return len(of.entries) == 1 and of.left == 1 and of.verify() == ()


def try_to_spend(path, share, out=None, n=50):
    """Release what takes a share of a study; say why not, or nothing, also to the queue `out`."""
    try:
        cohort = Cohort(np.linspace(0, 1, n), budget=Study(path).budget, n=n, share=share, mechanism="mean of rows")
        release(cohort)
        said = ""
    except PrivacyError as exc:
        said = str(exc)
    if out is not None:
        out.put(said)
    return said
