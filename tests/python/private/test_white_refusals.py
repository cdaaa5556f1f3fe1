"""What a private fit of many terms cannot do is refused before anything is read, with the reason and what to do."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fdadp import PublicPrior, terms
from fdadp.errors import InputError
from fdadp.private.plan.private_design import curves_column
from fdadp.private.public.column_ranges import LabelColumn, NumberColumn
from fdadp.private.whitened.term_registry import white_term

PRIOR = PublicPrior()
S = np.linspace(10, 12, 21)
COLUMNS = {
    "X": curves_column(PRIOR, "X", 0, S, (30.0, 70.0)),
    "age": NumberColumn("age", 1, (20.0, 80.0)),
    "dose": NumberColumn("dose", 2, (0.0, 5.0)),
    "region": LabelColumn("region", 3, ("north", "south", "east", "west")),
}

REFUSALS = [
    (terms.re("person"), True, r"got re\(person\): its levels are private, as people are"),
    (terms.concurrent("X"), False, r"concurrent\(X\) must have a response that is a curve"),
    (terms.concurrent("X", k=9), True, r"k of concurrent\(X\) must be 5, its default, along t"),
    (terms.concurrent("X", m=(2, 2)), True, r"m of concurrent\(X\) must be \(2, 1\)"),
    (terms.concurrent("age"), True, r"age must hold curves for concurrent\(age\)"),
    (terms.ff("X", limits="t<s"), True, r"limits must be 's<t', 's<=t' or a function of \(s, t\), got 't<s'"),
    (
        terms.ff("X", limits=lambda s, t: s < t - 99),
        True,
        r"limits of ff\(X\) must leave points of X for some t, got 0",
    ),
    (terms.ffpc("X"), True, r"got ffpc\(X\): its components are those of the private curves; use ff\(X\)"),
    (terms.fpcr("X"), False, r"got fpcr\(X\): its components are those of the private curves; use lf\(X\)"),
    (terms.ff("X"), False, r"ff\(X\) must have a response that is a curve"),
    (terms.sff("X"), False, r"sff\(X\) must have a response that is a curve"),
    (terms.lf("X"), True, r"lf\(X\) must have a response that is a number"),
    (terms.af("X"), True, r"af\(X\) must have a response that is a number"),
    (terms.ff("X", k=(10, 8)), True, r"k of ff\(X\) must be 5, its default, along t .* got 8"),
    (terms.ff("X", k=(41, 5)), True, r"k of ff\(X\) must be from 5 to 40 .* got 41"),
    (terms.ff("X", m=((2, 2), (2, 1))), True, r"m of ff\(X\) must be .* got .*: how smooth"),
    (terms.sff("X", period=2.0), True, r"period of sff\(X\) must be None in a private fit, got 2.0: the public prior"),
    (terms.sff("X", x_transform="quantile"), True, r"x_transform of sff\(X\) must be None in a private fit"),
    (terms.sff("X", k=(5, "auto", 5)), True, r"k of sff\(X\) must be a whole number"),
    (terms.lf("X", rule="simpson_legacy"), False, r"rule of lf\(X\) must be 'trapezoid' in a private fit"),
    (terms.sff("X", k=(6, 5, 5)), True, r"k of sff\(X\) must be 5, its default, along t"),
    (terms.af("X", k=(4, 8)), False, r"k of af\(X\) must be from 5 to 40 .* got 4"),
    (terms.af("X", m=(2, 1)), False, r"m of af\(X\) must be \(2, 2\)"),
    (terms.linear("age", constant=True), True, r"c\(age\) cannot be the same at all t in a private fit"),
    (terms.linear("age", k=7), True, r"k of age must be 5, its default, along t"),
    (
        terms.linear("height"),
        True,
        r"bounds of height must be public for height: give a range, as in bounds=\{\"height",
    ),
    (terms.linear("region"), True, r"bounds of region must be a range, as in .* got the levels \('north'"),
    (terms.linear("X"), True, r"X must hold numbers for X, got a column of curves"),
    (terms.ff("age"), True, r"age must hold curves for ff\(age\), got a column of numbers"),
    (terms.ff("Z"), True, r"bounds of Z must be public for ff\(Z\): give a range"),
    (terms.factor("city"), True, r"bounds of city must be public for city: give all its levels, as in bounds=\{\"city"),
    (terms.factor("age"), True, r"bounds of age must be all its levels, as in .* got the range \(20.0, 80.0\)"),
    (terms.factor("X"), True, r"X must hold labels for X, got a column of curves"),
    (terms.factor("region", coding="levels"), True, r"coding of region must be 'treatment' in a private fit"),
    (terms.factor("region", m=(2, 2)), True, r"m of region must be \(2, 1\)"),
    (terms.factor("region", constant=True), True, r"c\(region\) cannot be the same at all t"),
    (terms.fosr(("age",)), False, r"fosr\(age\) must have a response that is a curve"),
    (terms.fosr(("age",), k=20), True, r"k of fosr\(age\) must be 15, its default, along t"),
    (
        terms.s("age", bs="cc"),
        True,
        r"bs of s\(age\) must be 'tp' in a private fit, got 'cc': functions are cubic B-sp",
    ),
    (terms.s("age", m=2), True, r"m of s\(age\) must be None"),
    (terms.s("age", period=(0, 1)), True, r"period of s\(age\) must be None .* cyclic functions are not there yet"),
    (terms.s("age", k=(8, 9)), True, r"k of s\(age\) must be 5, its default, along t"),
    (terms.s("age", k=(8, 5)), False, r"k of s\(age\) must be a whole number, got \(8, 5\)"),
    (terms.s("age", k=60), True, r"k of s\(age\) must be from 5 to 40"),
    (terms.s("age", constant=True), True, r"c\(s\(age\)\) cannot be the same at all t"),
    (terms.s("region"), True, r"bounds of region must be a range, .* for s\(region\)"),
    (terms.te("age", "dose", bs="ps"), True, r"bs of te\(age, dose\) must be 'cr'"),
    (terms.te("age", "dose", k=(6, 6, 6)), True, r"k of te\(age, dose\) must be 5, its default, along t"),
    (terms.te("age", "dose", k=(6, 6, 6)), False, r"k of te\(age, dose\) must have 2 entries"),
    (terms.te("age", "age"), True, r"te\(age, age\) must have two or three different columns"),
    (terms.te("age", "height"), True, r"bounds of height must be public for te\(age, height\)"),
    (terms.by("age", terms.re("person")), True, r"got re\(person\)"),
    (terms.by("region", terms.factor("region")), True, r"region:region must have a term of other columns than region"),
    (terms.by("region", terms.ff("X"), "numbers"), True, r"bounds of region must be a range"),
    (terms.by("age", terms.ff("X"), "levels"), True, r"bounds of age must be all its levels"),
    (terms.by("age", terms.ff("X"), "sum"), True, r"coding of ff\(X\):age must be one of"),
    (terms.by("X", terms.linear("age")), True, r"X must hold numbers for age:X, got a column of curves"),
    (
        terms.ff("X", by="height"),
        True,
        r"bounds of height must be public for ff\(X\):height: .* its range, or all its lev",
    ),
    (terms.c(terms.by("region", terms.s("age"))), True, r"c\(s\(age\)\) cannot be the same at all t"),
    (terms.fosr(()), True, r"numbers of fosr\(\) must be a tuple of columns"),
]


@pytest.mark.parametrize(("spec", "curves", "message"), REFUSALS, ids=lambda v: getattr(v, "name", ""))
def test_what_a_private_fit_cannot_do_is_refused(spec, curves, message):
    with pytest.raises(InputError, match=message):
        white_term(spec, COLUMNS, PRIOR, curves=curves, t=S if curves else None)


def test_terms_of_others_are_refused_by_their_class():
    with pytest.raises(InputError, match=r"must be of AdditiveFunctional, .* got SimpleNamespace"):
        white_term(SimpleNamespace(name="peak(X)", columns=("X",)), COLUMNS, PRIOR, curves=True)
