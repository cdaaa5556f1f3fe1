"""What random functions of persons can be combined with: the numbers of dense laws, or a sentence before any work."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from repeated_tools import check_against_dense_law, curves_of_persons

import fdadp.regression.mixed_models.mixed_model_fit as fits
from fdadp import FunctionalRegression, terms
from fdadp.errors import IdentificationWarning, InputError

T = 14
KINDS = ("free", "spline", "given", "slopes", "sites")
ROWS = ("whole", "chunks", "gaps", "points of their own", "chunks with gaps")


def table() -> dict[str, Any]:
    c = curves_of_persons(3, 12, T=T, least=2)
    names = np.array([f"p{i:02d}" for i in range(12)])[c.who]
    week = np.random.default_rng(3).normal(size=len(c.who))
    Y = c.Y + np.outer(week, np.ones(T)) * np.random.default_rng(4).normal(size=12)[c.who][:, None]
    site = np.array(list("ABCD"))[c.who % 4]
    return {"Y": Y, "x": c.X[:, 0], "week": week, "Z": c.Y[:, ::-1] ** 2, "id": names, "site": site}


def model(kind: str, concurrent: bool) -> FunctionalRegression:
    functions = np.stack([np.ones(T), np.linspace(-1, 1, T)])
    persons = {
        "free": [terms.re("id", covariance="free", k=4)],
        "spline": [terms.re("id", covariance="spline", k=5)],
        "given": [terms.re("id", covariance="given", functions=functions, values=[1.0, 0.5])],
        "slopes": [terms.re("id", slopes="week", k=4)],
        "sites": [terms.re("site", covariance="free", k=4), terms.re("id", covariance="free")],
    }
    own = [terms.linear("x"), terms.linear("week"), *([terms.concurrent("Z")] if concurrent else [])]
    return FunctionalRegression([*own, *persons[kind]], response="Y")


def fitted(kind: str, rows: str, concurrent: bool, data: dict[str, Any]) -> tuple[FunctionalRegression, dict[str, Any]]:
    """The fit, and the table that it is of."""
    holes = data | {"Y": np.where(np.random.default_rng(5).uniform(size=data["Y"].shape) < 0.2, np.nan, data["Y"])}
    one = model(kind, concurrent)
    if rows == "points of their own":
        record, column = np.nonzero(np.isfinite(holes["Y"]))
        points = np.linspace(0, 1, T)[column]
        long = pd.DataFrame({"row": record, "t": points, "value": holes["Y"][record, column]})
        beside = {name: values for name, values in data.items() if name != "Y"}
        return one.fit(beside | {"row": np.arange(len(data["id"]))}, response=long), holes
    used = holes if "gaps" in rows else data
    if "chunks" not in rows:
        return one.fit(used), used
    parts = np.array_split(np.arange(len(data["id"])), 3)
    return one.fit_chunks([{name: column[part] for name, column in used.items()} for part in parts]), used


def sentence(kind: str, rows: str, concurrent: bool) -> str | None:
    """What is said of a combination that is refused; None of others."""
    if concurrent and (kind == "sites" or "gaps" in rows or rows == "points of their own"):
        beside = "persons within sites" if kind == "sites" else "curves with gaps"
        return f"the same at all t beside {beside}.*, got concurrent.Z.; take its mean over t, or"
    if ("gaps" in rows or rows == "points of their own") and (kind != "free" or "chunks" in rows):
        return "must be observed at all points of one grid with .*, got gaps; fill them before the fit, or take re"
    return None


@pytest.mark.parametrize(("kind", "rows", "concurrent"), list(itertools.product(KINDS, ROWS, (False, True))))
def test_a_combination_has_the_numbers_of_the_dense_law_or_a_sentence(kind, rows, concurrent, monkeypatch):
    said = sentence(kind, rows, concurrent)
    if said is None:
        check_against_dense_law(*fitted(kind, rows, concurrent, table()))
        return
    for work in ("PersonPass", "fit_gaussian", "filled"):
        monkeypatch.setattr(fits, work, None)  # nothing is worked on before
    with pytest.raises(InputError, match=said):
        fitted(kind, rows, concurrent, table())


# Section 4 of the design: messages of ordinary fits; those of private ones are in test_private_mixed.py.

FREE = "Y ~ x + re(id, covariance='free', k=6)"
ONE_A_PERSON = (
    "re(id): all 24 people have one row, so the two levels are not identified; use errors='curve'",
    lambda d: {name: column[np.unique(d["id"], return_index=True)[1]] for name, column in d.items()},
    FREE,
)
TOO_FEW = (
    "re(id): k=6 needs at least 7 rows beyond one a person (k and the 1 feature that varies within people), got 4",
    lambda d: {name: column[rows_of(d, 4)] for name, column in d.items()},
    "Y ~ week + re(id, covariance='free', k=6)",
)
NO_ID = (
    "id must have a label in every row, got none in row 0 and 13 more",
    lambda d: d | {"id": np.where(np.arange(len(d["id"])) < 14, None, d["id"])},
    FREE,
)
TWO_SITES = (
    "id p000 is at sites A and B: re(site) + re(id) must be nested, or re(site) a fixed factor",
    lambda d: d | {"site": np.where(np.arange(len(d["id"])) % 2, "B", "A")},
    "Y ~ x + re(site, covariance='free', k=4) + re(id, covariance='free')",
)


def rows_of(data: dict[str, Any], spare: int) -> np.ndarray:
    """The first row of each person, and some more."""
    first = np.unique(data["id"], return_index=True)[1]
    return np.sort(np.r_[first, np.setdiff1d(np.arange(len(data["id"])), first)[:spare]])


def visits() -> dict[str, Any]:
    c = curves_of_persons(6, 24, T=20, least=2)
    week = np.random.default_rng(0).normal(size=len(c.who))
    names = np.array([f"p{i:03d}" for i in range(24)])[c.who]
    return {"Y": c.Y, "x": c.X[:, 0], "week": week, "id": names, "site": np.where(c.who % 2, "B", "A")}


@pytest.mark.parametrize(("said", "change", "formula"), [ONE_A_PERSON, TOO_FEW, NO_ID, TWO_SITES])
def test_messages_of_rows_that_do_not_do(said, change, formula):
    with pytest.raises(InputError, match=re.escape(said)):
        FunctionalRegression(formula).fit(change(visits()))


def test_few_rows_that_do_are_warned_of():
    data = visits()
    few = {name: column[rows_of(data, 9)] for name, column in data.items()}
    with pytest.warns(
        IdentificationWarning, match=r"k=6 needs at least 7 rows .* got 9: below 13 the covariance of rows"
    ):
        FunctionalRegression("Y ~ week + re(id, covariance='free', k=6)").fit(few)
