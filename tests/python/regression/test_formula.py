"""Formulas: what they say, and where in one an error is."""

from __future__ import annotations

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skfda import FDataGrid

import fdadp
from fdadp import FunctionalRegression, Privacy, ScalarRegression, terms
from fdadp.errors import FdadpError, InputError
from fdadp.regression.formula import parse
from fdadp.regression.reading.table_columns import ColumnTable, read_records
from fdadp.terms.records import TrainingSummary

KINDS = {
    **dict.fromkeys(("X", "Z", "Y"), "curves"),
    **dict.fromkeys(("age", "bmi", "my col", "größe", "class", "blood.pressure"), "numbers"),
    **dict.fromkeys(("region", "sex", "person"), "labels"),
}


def specs(right):
    return list(parse(f"Y ~ {right}", KINDS).terms)


@pytest.mark.parametrize(
    ("formula", "response", "intercept", "mean_curve"),
    [
        ("Y ~ age", "Y", True, True),
        ("Y ~ age - 1", "Y", False, False),
        ("Y ~ 0 + age", "Y", False, False),
        ("Y ~ -1 + age", "Y", False, False),
        ("Y ~ c(1) + age", "Y", True, False),
        ("~ age", None, True, True),
        ("age", None, True, True),
        ("log(Y) ~ age", "log(Y)", True, True),
        ("sqrt(`my Y`) ~ age", "sqrt(`my Y`)", True, True),
        ("`my Y` ~ age", "my Y", True, True),
        ("Y\n  ~\tage", "Y", True, True),
    ],
)
def test_left_sides_and_intercepts(formula, response, intercept, mean_curve):
    parsed = parse(formula, KINDS)
    assert (parsed.response, parsed.intercept, parsed.mean_curve) == (response, intercept, mean_curve)
    assert parsed.terms == (terms.linear("age"),)


def test_a_formula_may_have_the_mean_curve_alone():
    assert parse("Y ~ 1", KINDS) == ("Y", (), True, True, None)


@pytest.mark.parametrize(
    ("right", "wanted"),
    [
        ("age", None),
        ("age + offset(bmi)", "bmi"),
        ("offset(log(`my col`)) + age", "log(`my col`)"),
        ("age + offset(X) + offset(0.5 * last(Z) + np.log(bmi))", "X + 0.5 * last(Z) + log(bmi)"),
    ],
)
def test_an_offset_is_no_term(right, wanted):
    parsed = parse(f"Y ~ {right}", KINDS)
    assert parsed.offset == wanted and parsed.terms == (terms.linear("age"),)


def offsets_of_rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 11)
    data = {"X": rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * t, "z": rng.uniform(1, 5, n)}
    data["Y"] = data["X"] * t + np.log(data["z"])[:, None] + 0.1 * rng.normal(size=(n, 11))
    return data, {"X": t, "Y": t}


def test_the_offset_of_a_formula_belongs_to_the_model(tmp_path):
    data, grids = offsets_of_rows()
    model = FunctionalRegression("Y ~ concurrent(X) + offset(log(z))").fit(data, grids=grids)
    given = FunctionalRegression("Y ~ concurrent(X)").fit(data, grids=grids, offset=np.log(data["z"]))
    found = model.predict(data)
    np.testing.assert_allclose(found, given.predict(data, offset=np.log(data["z"])), atol=1e-10)
    model.save(tmp_path / "model.npz")
    np.testing.assert_allclose(FunctionalRegression.load(tmp_path / "model.npz").predict(data), found, atol=1e-12)
    halves = [{name: values[rows] for name, values in data.items()} for rows in (slice(0, 140), slice(140, 300))]
    chunked = FunctionalRegression("Y ~ concurrent(X) + offset(log(z))").fit_chunks(halves, grids=grids)
    np.testing.assert_allclose(chunked.predict(data), found, atol=1e-8)
    assert set(model.check(data, grids=grids).index) == {"s(t)", "concurrent(X)"}
    with pytest.raises(InputError, match=r"offset must be left out where the formula has one, offset\(log\(z\)\)"):
        model.fit(data, grids=grids, offset="z")


@pytest.mark.usefixtures("four_cohorts")
def test_the_offset_of_a_private_formula_is_that_of_the_fit():
    data, grids = offsets_of_rows()
    own = {"privacy": Privacy(1.0, 1e-6, n=300, random_state=0), "bounds": {"X": (-5, 5), "z": (1, 5), "Y": (-6, 8)}}
    model = FunctionalRegression("Y ~ ff(X) + offset(log(z))", **own).fit(data, grids=grids)
    given = FunctionalRegression("Y ~ ff(X)", **own).fit(data, grids=grids, offset="log(z)")
    np.testing.assert_array_equal(model.predict(data), given.predict(data))
    np.testing.assert_array_equal(model.plan({"X": 11, "Y": 11}).weights, model.plan_.weights)
    assert "offset" in str(model.ledger_)
    forecast = fdadp.plan("Y ~ ff(X) + offset(log(z))", 300, 1.0, 1e-6, bounds=own["bounds"], grids={"X": 11, "Y": 11})
    assert forecast.offset == "log(z)"


@pytest.mark.parametrize(
    ("right", "wanted"),
    [
        ("X + age + region", [terms.concurrent("X"), terms.linear("age"), terms.factor("region")]),
        ("ff(X, k=(5, 7), limits='s<t')", [terms.ff("X", k=(5, 7), limits="s<t")]),
        ("ff(X, m=[[2, 1], [2, 2]])", [terms.ff("X", m=((2, 1), (2, 2)))]),
        ("ff('X') + s(age, bs='ps', by=bmi)", [terms.ff("X"), terms.s("age", bs="ps", by="bmi")]),
        ("te(age, bmi, k=4) + re(person)", [terms.te("age", "bmi", k=4), terms.re("person")]),
        ("C(age) + factor(region, coding='levels')", [terms.factor("age"), terms.factor("region", coding="levels")]),
        ("c(age) + c(region)", [terms.linear("age", constant=True), terms.factor("region", constant=True)]),
        ("c(s(age, k=6)) + c(log(bmi))", [terms.s("age", k=6, constant=True), terms.c("log(bmi)")]),
        ("mean(X) + log(Z)", [terms.linear("mean(X)"), terms.concurrent("log(Z)")]),
        ("I(age**2)+np.log(age)", [terms.linear("I(age ** 2)"), terms.linear("log(age)")]),
        ("ff(I(X + Z)) + s(last(X))", [terms.ff("I(X + Z)"), terms.s("last(X)")]),
        ("`my col` + größe + class + blood.pressure", list(map(terms.linear, list(KINDS)[5:9]))),
        ("s(`my col`) + s(log(`my col`))", [terms.s("my col"), terms.s("log(`my col`)")]),
        ("age:bmi", [terms.by("bmi", terms.linear("age"), coding="numbers")]),
        ("age:X", [terms.by("age", terms.concurrent("X"), coding="numbers")]),
        ("age:ff(X)", [terms.by("age", terms.ff("X"), coding="numbers")]),
        ("age - age + bmi", [terms.linear("bmi")]),
    ],
)
def test_right_sides(right, wanted):
    assert specs(right) == wanted


@pytest.mark.parametrize(
    ("right", "names"),
    [
        ("age*bmi", ["age", "bmi", "age:bmi"]),
        ("(age + bmi)**2", ["age", "bmi", "age:bmi"]),
        ("region:age + bmi", ["bmi", "age:region"]),
        ("age/region", ["age", "age:region"]),
    ],
)
def test_interactions_come_last(right, names):
    assert [spec.name for spec in specs(right)] == names


def test_copies_of_a_term_by_levels_are_differences_beside_the_term():
    ff = terms.ff("X")
    assert specs("region:ff(X)") == [terms.by("region", ff, coding="levels")]
    assert specs("C(region):ff(X) + ff(X)") == [ff, terms.by("region", ff, coding="treatment")]


# --- factors are coded without redundancy ---


def design(formula, table):
    parsed = parse(formula, ColumnTable(table).kinds())
    names = tuple(dict.fromkeys(c for spec in parsed.terms for c in spec.columns))
    records, _ = read_records(table, names)
    seen = TrainingSummary.of([records])
    columns = [spec.fixed(seen, None).features(records) for spec in parsed.terms]
    ones = [np.ones((records.n, 1))] if parsed.intercept else []
    return np.hstack([*ones, *columns])


@pytest.mark.parametrize(
    "right",
    [
        "a",
        "0 + a",
        "a:b",
        "0 + a:b",
        "a*b",
        "a + a:b",
        "b + a:b",
        "a + x:a",
        "x:a",
        "x + x:a",
        "a*b*x",
        "x*z",
        "x:z + a",
    ],
)
@pytest.mark.parametrize("more", ["", " + x:b", " + z - a", " - b - a + x:b"])
def test_interactions_span_what_they_say_without_redundancy(right, more):
    right += more
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    table["a"], table["b"] = rng.choice(list("pqr"), n), rng.choice(list("uv"), n)
    from formulaic import model_matrix

    theirs = np.asarray(model_matrix(right, table, output="numpy"))
    ours = design(f"y ~ {right}", table)
    rank = np.linalg.matrix_rank
    assert ours.shape == theirs.shape
    assert rank(ours) == rank(theirs) == rank(np.hstack((ours, theirs))) == ours.shape[1]


# --- errors ---


@pytest.mark.parametrize(
    ("formula", "text", "marked"),
    [
        ("Y ~ ff(X", "got no ')' at its end", "ff(X"),
        ("Y ~ ff(X))", "got a bracket that nothing opens", ")"),
        ("Y ~ age + ", "got '+' without what it joins", "+"),
        ("Y ~ age + 3", "Numeric literals", "3"),
        ("Y ~ age | bmi", "must say re(id) for (1 | id), and re(id, slopes='week') for (week | id), got '|'", "|"),
        ("Y ~ age + (1 | sex)", "must say re(id) for (1 | id)", "|"),
        ("Y ~ as.factor(sex)", "must say C(sex) for labels, got as.factor(sex)", "as.factor(sex)"),
        ("Y ~ I(age^2)", "got age ^ 2; write ** for ^", "I(age^2)"),
        ("Y ~ s(age, 5)", "must be given by name, as in s(x, k=5), got 5", "s(age, 5)"),
        ("Y ~ .", "'.' stands for none", "."),
        ("Y ~ age + .", "'.' stands for none", "."),
        ("Y ~ age $ bmi", "Unknown operator '$'", "$"),
        ("Y ~ ff(X, k=)", " in ff(X, k=)", "ff(X, k=)"),
        ("Y1 + Y2 ~ age", "must have one response, got 'Y1 + Y2'", None),
        ("1 ~ age", "must have one response, got '1'", None),
        ("sin(Y) ~ age", "got sin()", "sin(Y)"),
        ("exp(sin(Y)) ~ age", "got sin(Y)", "exp(sin(Y))"),
        ("Y ~ ff(Xx)", "must have the column 'Xx', got the columns X, Z, Y, age, bmi", "Xx"),
        ("Y ~ Age", "did you mean 'age'?", "Age"),
        ("Y ~ log(ages)", "must have the column 'ages'", "ages"),
        ("Y ~ `my cool`", "must have the column 'my cool'", "my cool"),
        ("Y ~ s(age, by=regio)", "must have the column 'regio'", "regio"),
        ("Y ~ ff(X,kk=3)", ", got kk; did you mean k?", "ff(X,kk=3)"),
        ("Y ~ ff(X, xind=s)", ", got xind; points are the labels of columns, or fit(grids=", "ff(X, xind=s)"),
        ("Y ~ ff(X, splinepars=1)", ", got splinepars; k= and m= choose the basis", "ff(X, splinepars=1)"),
        ("Y ~ fff(X)", "got fff(); did you mean ff()?", "fff(X)"),
        ("Y ~ ff(X) + foo(age)", "got foo()", "foo(age)"),
        ("Y ~ by(age, X)", "got by()", "by(age, X)"),
        ("Y ~ ff(X)(3)", "", "ff(X)"),
        ("Y ~ ff(X, 3)", "got 3", "ff(X, 3)"),
        ("Y ~ ff(X, Z)", "ff() must have one column first, then options by name", "ff(X, Z)"),
        ("Y ~ s()", "s() must have one column first", "s()"),
        ("Y ~ s(age, k=bmi)", "k must be a number, a text between quotes or a tuple of them, got bmi", "s(age, k=bmi)"),
        ("Y ~ ff(X, limits=lambda s, t: s < t)", "limits must be a number", "ff(X, limits=lambda s, t: s < t)"),
        ("Y ~ s(age, k=__import__('os').getpid())", "k must be a number", "s(age, k=__import__('os').getpid())"),
        ("Y ~ I(__import__('os').getpid())", "must consist of columns", "I(__import__('os').getpid())"),
        ("Y ~ {age.mean()}", "", "age.mean()"),
        ("Y ~ ff(age + bmi)", "here must be a column, or a function of some", "ff(age + bmi)"),
        ("Y ~ ff(X) + ff(X, k=(7, 7))", "must have each term once, got ff(X) twice", "ff(X)"),
        ("Y ~ ff(X):ff(Z)", "at most one term of curves", "ff(X)"),
        ("Y ~ c(ff(X))", "c() must have a term that can be the same at all t", "c(ff(X))"),
        ("Y ~ 2:age", "got 2", "2"),
        ('Y ~ "age"', "String literals", '"age"'),
        ("Y ~ age + offset(Y)", "numbers or curves other than the response, got offset(Y)", "offset(Y)"),
        ("Y ~ age + offset(sex)", "got sex", "offset(sex)"),
        ("Y ~ age + offset(2)", "must be of columns", "offset(2)"),
        ("Y ~ age + offset(bmi, age)", "must have one column, or an expression", "offset(bmi, age)"),
        ("Y ~ age:offset(bmi)", "must stand by itself", "offset(bmi)"),
        ("Y ~ age + offset(agee)", "did you mean 'age'?", "agee"),
    ],
)
def test_errors_say_what_and_where(formula, text, marked):
    with pytest.raises(InputError) as caught:
        parse(formula, KINDS)
    message = str(caught.value)
    assert text in message and "⧛" not in message and "\x1b" not in message
    if marked is not None:
        shown, marks = message.split("\n")[-2:]
        start = marks.index("^")
        assert shown[start : start + marks.count("^")].startswith(marked) and shown.strip() == " ".join(formula.split())


@pytest.mark.parametrize("formula", [None, 3, "", "   ", ["Y ~ x"]])
def test_what_is_no_text_is_refused(formula):
    with pytest.raises(InputError, match="formula must be text"):
        parse(formula, KINDS)


def test_accents_composed_or_apart_are_the_same_name():
    apart = unicodedata.normalize("NFD", "größe")
    assert apart != "größe"
    for column, written in ((apart, "größe"), ("größe", apart)):
        table = {column: [1.0, 2.0], "X": np.ones((2, 3))}
        for right, value in ((written, [1, 2]), (f"log({written})", np.log([1, 2])), (f"c({written})", [1, 2])):
            (spec,) = parse(f"Y ~ {right}", ColumnTable(table).kinds()).terms
            records, _ = read_records(table, spec.columns)
            np.testing.assert_allclose(records.numbers(spec.columns[0]), value)


def test_kinds_come_from_the_table():
    table = pd.DataFrame({"x": [1, 2], "a": ["u", "v"]})
    table["X"] = FDataGrid(np.eye(2))
    table["X"] = table["X"]
    names = [type(spec).__name__ for spec in parse("Y ~ x + a + X", ColumnTable(table).kinds()).terms]
    assert names == ["Linear", "Factor", "Concurrent"]


PIECES = list("Y~X+-:*(),`10'é/|[{}.^=\\#@\n")
PIECES += ["age", "region", "ff(", "s(", "k=3", "log(", "C(", "c(", "I(", "**", "%in%", "my col"]


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join), st.text(max_size=12).map("Y ~ {}".format))
)
def test_whatever_is_written_is_understood_or_refused_clearly(formula):
    try:
        parsed = parse(formula, KINDS)
    except FdadpError as exc:
        assert str(exc)
    else:
        assert all(column in KINDS or "(" in column for spec in parsed.terms for column in spec.columns)


# --- formulas in models ---


def tabular(n=40):
    rng = np.random.default_rng(0)
    return {"X": np.cumsum(rng.normal(size=(n, 9)), axis=1), "Y": rng.normal(size=(n, 7)), "y": rng.normal(size=n)}


UNEVEN = np.linspace(0, 1, 9) ** 2


def test_computed_columns_of_new_rows_know_the_training_grid():
    data = tabular()
    model = ScalarRegression("y ~ mean(X) + last(X)", progress=False).fit(data, grids={"X": UNEVEN})
    want = model.fitted_values_[:4]
    for new in ({"X": data["X"][:4]}, {"X": FDataGrid(data["X"][:4], UNEVEN)}):
        np.testing.assert_allclose(model.predict(new), want)
    with pytest.raises(InputError, match=r"X must lie on the training domain \[0, 1\], got \[0, 2\]"):
        model.predict({"X": FDataGrid(data["X"][:4], 2 * UNEVEN)})
    halves = [{name: c[rows] for name, c in data.items()} for rows in (slice(20), slice(20, None))]
    chunked = ScalarRegression("y ~ mean(X) + last(X)", progress=False).fit_chunks(halves, grids={"X": UNEVEN})
    np.testing.assert_allclose(chunked.predict({"X": data["X"][:4]}), want)


def test_scores_of_a_transformed_response():
    data = tabular()
    logged = FunctionalRegression("Y ~ ff(X)", progress=False).fit(data)
    data["expY"] = np.exp(data["Y"])
    model = FunctionalRegression("log(expY) ~ ff(X)", progress=False).fit(data)
    np.testing.assert_allclose(model.score(data), logged.score(data), rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("Y ~ 0", "formula must have at least one term, or an intercept, got none"),
        ("Y ~ Y", "formula must not explain Y by itself, got concurrent"),
        ("Y ~ ff(Y)", "formula must not explain Y by itself, got ff"),
        ("Y ~ ff(X, k=5)", r"k of ff\(X\) must have 2 entries, got 5"),
        ("Y ~ ff(X, m=(2, 1))", r"m of ff\(X\) must have 2 entries, got"),
        ("Y ~ X + concurrent(y, m=3)", "data must have the column 'y'"),
        ("Y ~ concurrent(X, m=3)", "m must have 2 entries, got 3"),
        ("Y ~ sff(X, k=(5, 5))", r"k of sff\(X\) must have 3 entries, got \(5, 5\)"),
        ("Y ~ ff(y)", "data must have the column 'y' .curves., got y .numbers."),
        ("Y ~ s(X)", "data must have the column 'X' .numbers., got X .curves."),
        ("y ~ ff(X)", "y must hold curves .* use ScalarRegression"),
    ],
)
def test_models_refuse_what_cannot_be(formula, text):
    with pytest.raises(InputError, match=text):
        FunctionalRegression(formula, progress=False).fit(tabular())


def test_text_among_numbers_is_no_factor_unless_said():
    data = tabular() | {"x": ["1.5", "2", "n.a.?", *["3"] * 37]}
    for formula in ("Y ~ x", "Y ~ log(x)", "Y ~ x:ff(X)"):
        with pytest.raises(
            InputError, match=r"x must hold numbers, or labels, got 'n.a.\?' in row 2 among numbers.*C\(x\)"
        ):
            FunctionalRegression(formula, progress=False).fit(data)
    with pytest.raises(InputError, match=r"x must hold numbers, got 'n.a.\?' in row 2"):
        FunctionalRegression("Y ~ s(x)", progress=False).fit(data)
    assert FunctionalRegression("Y ~ C(x)", progress=False).fit(data).term_names_[-1] == "x"
    codes = tabular() | {"x": ["01", "02"] * 20, "z": pd.Categorical(["1", "2", "other", "3", "3"] * 8)}
    assert FunctionalRegression("Y ~ x + z", progress=False).fit(codes).term_names_[-2:] == ("x", "z")


def test_grids_are_of_columns():
    data = tabular()
    with pytest.raises(InputError, match=r"grids must be of columns: .*'x', got the columns X, Y, y.*did you mean"):
        FunctionalRegression("Y ~ ff(X)", progress=False).fit(data, grids={"x": UNEVEN})
    y = data.pop("Y")
    FunctionalRegression("Y ~ ff(X)", progress=False).fit(data, y, grids={"Y": np.linspace(0, 1, 7)})


def test_a_curve_may_be_explained_by_its_own_past():
    data = tabular()
    data["Y"] = data["X"] + 0
    model = FunctionalRegression("Y ~ ff(Y, limits='s<t')", progress=False).fit(data)
    assert model.term_names_[-1].startswith("ff(Y")
