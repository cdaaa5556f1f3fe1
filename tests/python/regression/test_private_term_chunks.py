"""Private models of many terms from chunks: the fit in memory bit for bit, and nothing told about the source."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from skfda import FDataGrid

from fdadp import DPAFF, FunctionalRegression, Privacy, ScalarRegression
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget
from fdadp.privacy.rows import _vault

N, S, T = 1300, np.linspace(0, 1, 21), np.linspace(0, 2, 15)
GRIDS = {"X": S, "Y": T}
BOUNDS = {"X": (-4, 4), "age": (0, 100), "g": ["a", "b", "c"], "Y": (-6, 6), "y": (-6, 6), "dead": [0, 1], "k": (0, 20)}

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(N, S.size)), axis=1) / 3
    age, g = rng.uniform(20, 80, N), rng.integers(0, 3, N)
    mean = x @ np.sin(np.outer(S, T)) / S.size + np.outer((age - 50) / 30, T) + g[:, None] / 2
    data = {"X": x, "age": age, "g": np.array(["a", "b", "c"], dtype=object)[g]}
    data["Y"] = mean + rng.normal(size=mean.shape) / 3
    data["y"], data["dead"] = data["Y"][:, 7], (data["Y"][:, 7] > 0).astype(float)
    data["k"] = rng.poisson(np.exp(data["Y"][:, 7].clip(-3, 2))).astype(float)
    data["who"] = np.array([f"p{i % 431}" for i in range(N)], dtype=object)
    data["X"][3, 5], data["Y"][700, 0], data["X"][1299], data["age"][11] = np.nan, np.inf, 1e30, np.nan
    data["g"][9], data["who"][17] = "?", None
    return data


def cut(data, sizes):
    """Tables of these sizes, and then of what is left."""
    ends = [0, *np.cumsum(sizes, dtype=int).tolist(), len(data["age"])]
    return [{k: v[i:j] for k, v in data.items()} for i, j in pairwise(ends)]


def model(formula="Y ~ ff(X) + s(age) + C(g)", kind=FunctionalRegression, family="gaussian", **settings):
    privacy = {"epsilon": 2.0, "delta": 1e-6, "n": N, "random_state": 7} | settings
    mechanism = privacy.pop("mechanism", DPAFF(allow_useless=True))
    more = {key: privacy.pop(key) for key in ("missing",) if key in privacy}
    bounds = privacy.pop("bounds", BOUNDS)
    return kind(formula, family=family, privacy=Privacy(**privacy), bounds=bounds, mechanism=mechanism, **more)


def same(one, other):
    np.testing.assert_array_equal(one.fitted_.fit.coefficients, other.fitted_.fit.coefficients)
    np.testing.assert_array_equal(one.fitted_.fit.inverse, other.fitted_.fit.inverse)
    assert [r.sd for r in one.ledger_.releases] == [r.sd for r in other.ledger_.releases]
    assert one.ledger_.details["unit"] == other.ledger_.details["unit"]
    assert one.notes_ == other.notes_ and one.importances_ == other.importances_


FITS = {
    "curves": ("Y ~ ff(X) + s(age) + C(g)", FunctionalRegression, "gaussian", {}),
    "n private": ("Y ~ ff(X) + age", FunctionalRegression, "gaussian", {"n": None}),
    "pure": ("Y ~ ff(X) + age", FunctionalRegression, "gaussian", {"delta": None, "epsilon": 8.0}),
    "computed": ("Y ~ ff(X) + log(age) + mean(X):g", FunctionalRegression, "gaussian", {"missing": "indicator"}),
    "numbers": ("y ~ lf(X) + age + g", ScalarRegression, "gaussian", {}),
    "classes": ("dead ~ lf(X) + age", ScalarRegression, "binomial", {}),
    "counts": ("k ~ lf(X) + age", ScalarRegression, "poisson", {}),
}


@pytest.mark.parametrize("name", FITS)
def test_chunks_give_the_fit_in_memory_bit_for_bit(people, name):
    formula, kind, family, settings = FITS[name]
    settings = settings | ({"bounds": BOUNDS | {"age": (1, 100)}} if "log" in formula else {})
    in_memory = model(formula, kind, family, **settings).fit(people, grids=GRIDS)
    for sizes in ((1, 511, 512), (0, 100, 0, 7, 600))[name != "curves" :]:
        pieces = cut(people, sizes)
        same(model(formula, kind, family, **settings).fit_chunks(pieces, grids=GRIDS), in_memory)
    chunked = model(formula, kind, family, **settings).fit_chunks(lambda: iter(pieces), grids=GRIDS)
    same(chunked, in_memory)
    new = {key: people[key][20:30] for key in ("X", "age", "g")}
    np.testing.assert_array_equal(chunked.predict(new, grids={"X": S}), in_memory.predict(new, grids={"X": S}))


@pytest.mark.parametrize("settings", [{"n": 431}, {"n": None, "epsilon": 4.0}], ids=str)
def test_persons_spread_over_chunks(people, settings):
    in_memory = model(**settings).fit(people, grids=GRIDS, groups="who")
    assert in_memory.ledger_.details["unit"] != model().fit(people, grids=GRIDS).ledger_.details["unit"]
    pieces = cut(people, (0, 100, 0, 7, 600))
    same(model(**settings).fit_chunks(lambda: iter(pieces), grids=GRIDS, groups="who"), in_memory)


def test_an_offset_and_a_forecast_read_chunks_too(people):
    data = people | {"Y": np.column_stack([people["Y"], np.full((N, 6), 0.5)])}
    grids, pieces = {"X": S, "Y": S}, cut(data, (600,))
    for settings, offset in (({"mechanism": DPAFF(prior="persistence")}, None), ({}, "0.5 * last(X)"), ({}, "age")):
        in_memory = model("Y ~ ff(X) + age", **settings).fit(data, grids=grids, offset=offset)
        same(model("Y ~ ff(X) + age", **settings).fit_chunks(pieces, grids=grids, offset=offset), in_memory)


def test_kinds_of_chunks(people):
    """Each chunk as its own reader made it: frames with curves of scikit-fda, text, categories, objects."""
    in_memory = model().fit(people, grids=GRIDS)
    pieces = cut(people, (600,))
    frames = [pd.DataFrame({"age": p["age"], "g": p["g"]}).assign(X=0, Y=0) for p in pieces]
    for frame, piece in zip(frames, pieces, strict=True):
        frame["X"], frame["Y"] = FDataGrid(piece["X"], S), FDataGrid(piece["Y"], T)
    odd = [pieces[0] | {"age": pieces[0]["age"].astype(str), "g": pd.Series(pieces[0]["g"], dtype="category")}]
    odd += [pieces[1] | {"X": pieces[1]["X"].tolist(), "Y": pd.DataFrame(pieces[1]["Y"])}]
    for chunks in (frames, odd):
        fitted = model().fit_chunks(chunks, grids=GRIDS)
        same(fitted, in_memory)
        assert isinstance(fitted.predict(pieces[0]), np.ndarray)


def test_dask(people):
    da = pytest.importorskip("dask.array")
    in_memory = model().fit(people, grids=GRIDS, groups="who")
    lazy = {k: da.from_array(v, chunks=(400, *v.shape[1:])) if v.ndim == 2 else v for k, v in people.items()}
    same(model().fit_chunks(lazy, grids=GRIDS, groups="who"), in_memory)
    same(model().fit(lazy, grids=GRIDS, groups="who"), in_memory)
    numbers = "y ~ age + g"
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({k: people[k] for k in ("y", "age", "g")})
    own = model(numbers, ScalarRegression).fit(frame)
    same(model(numbers, ScalarRegression).fit_chunks(dd.from_pandas(frame, npartitions=3)), own)
    with pytest.raises(InputError, match="same number of rows") as refused:
        model().fit_chunks(lazy | {"age": people["age"][:-1]}, grids=GRIDS)
    assert "1" not in str(refused.value)


@pytest.mark.parametrize("groups", [None, "who"])
def test_what_fits_is_read_once_and_what_does_not_gives_the_same(people, monkeypatch, groups):
    pieces, reads, passes = cut(people, (600, 0, 3)), [], set()

    def source():
        reads.append(0)
        yield from pieces

    in_memory = model("Y ~ ff(X) + log(age)", bounds=BOUNDS | {"age": (1, 100)}).fit(people, grids=GRIDS, groups=groups)
    for kept in (2**28, 2**16):  # all is kept; nothing
        monkeypatch.setattr(_vault, "KEPT", kept)
        reads.clear()
        chunked = model("Y ~ ff(X) + log(age)", bounds=BOUNDS | {"age": (1, 100)})
        same(chunked.fit_chunks(source, grids=GRIDS, groups=groups), in_memory)
        passes.add(len(reads) - bool(groups))  # the persons are read once, apart
    assert min(passes) == 1 and max(passes) > 5


def test_a_source_may_use_its_memory_again(people):
    def source():
        held = {k: np.empty_like(v[:100]) for k, v in people.items()}
        for start in range(0, N, 100):
            for name, values in held.items():
                values[:] = people[name][start : start + 100]
            yield held

    same(model().fit_chunks(source, grids=GRIDS), model().fit(people, grids=GRIDS))


# --- what is refused, and what is told ---


class Unread:
    """A source that must not be read."""

    def __iter__(self):
        raise AssertionError("read")


@pytest.mark.parametrize(
    ("chunks", "change", "text"),
    [
        (lambda: Unread(), {"grids": None}, "grids must have the points of Y"),
        (lambda: Unread(), {"grids": {"Y": T}}, "X must hold curves for"),
        (lambda: Unread(), {"grids": {"X": S, "Y": [0.0, 0.0, 1.0]}}, "grid of Y must"),
        (lambda: Unread(), {"grids": [S]}, "grids must be points by column"),
        (lambda: Unread(), {"groups": np.arange(N)}, "groups must be the name of a column.*got ndarray$"),
        (lambda: Unread(), {"offset": np.arange(N)}, "offset must be the name of a column.*got ndarray$"),
        (lambda: Unread(), {"weights": "age"}, "weights must be None in a private fit"),
        ((one for one in [1]), {}, "one-way generator"),
        ((lambda one: lambda: one)(iter([])), {}, "same iterator"),
        ("people.csv", {}, "got str"),
        (pd.DataFrame({"age": [1.0]}), {}, "got DataFrame"),
        ([], {}, "at least one table"),
        ([3], {}, "got int"),
        ([{"X": np.zeros((5, 21)), "Y": np.zeros((5, 15)), "age": np.zeros(5)}], {}, "data must have the column 'g'"),
        ([{"X": np.zeros((5, 20))}], {"short": True}, "X of each chunk must have 21 points"),
        ([{"age": np.zeros(4)}], {"short": True}, "same number of rows$"),
        ([{"X": FDataGrid(np.zeros((5, 21)), 2 * S)}], {"short": True}, "declared grid"),
        ([{}], {"short": True, "groups": "who"}, "data must have the column 'who'"),
    ],
)
def test_public_mistakes_are_refused_before_anything_is_read(chunks, change, text):
    budget = Budget(2.0, 1e-6)
    if change.pop("short", False):
        whole = {"X": np.zeros((5, 21)), "Y": np.zeros((5, 15)), "age": np.zeros(5), "g": list("abcab")}
        chunks = [whole, whole | chunks[0]]
    with pytest.raises(InputError, match=text):
        model(budget=budget).fit_chunks(chunks, **{"grids": GRIDS} | change)
    assert budget.spent == budget.reserved == 0


def test_without_bounds_or_budget_nothing_is_read():
    with pytest.raises(PrivacyError, match="bounds must give a public range for age"):
        model(bounds={"X": (-4, 4), "Y": (-6, 6)}).fit_chunks(Unread, grids=GRIDS)
    spent = Budget(2.0, 1e-6)
    spent.reserve(1.0, None)
    with pytest.raises(PrivacyError):
        model(budget=spent).fit_chunks(Unread, grids=GRIDS)


SECRET = "1234.5"


@pytest.mark.parametrize("wrong", ["raise", "width", "column", "rows", "ids", "no table"])
def test_a_failing_source_spends_the_budget_and_says_nothing(people, wrong):
    budget = Budget(2.0, 1e-6)
    first, last = cut(people, (600,))

    def source():
        yield first
        if wrong == "raise":
            raise RuntimeError(SECRET)
        changed = {
            "width": {"X": last["X"][:, :20]},
            "rows": {"age": last["age"][:-1]},
            "ids": {"who": last["who"][1:]},
        }
        yield (
            SECRET
            if wrong == "no table"
            else {k: v for k, v in last.items() if (wrong, k) != ("column", "g")} | (changed.get(wrong, {}))
        )

    with pytest.raises(PrivacyError) as refused:
        model(budget=budget).fit_chunks(source, grids=GRIDS, groups="who")
    assert str(refused.value) == "the source of chunks failed or changed the shape of its rows; the budget is spent"
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert budget.left == 0


def test_other_rows_on_another_pass_count_once(people, monkeypatch):
    """A person's rows beyond those of the first pass, and persons who were not there then, are nobody's."""
    monkeypatch.setattr(_vault, "KEPT", 0)
    pieces, times = cut(people, (600,)), []

    def source():
        times.append(0)
        yield from pieces if len(times) % 2 else pieces[::-1]
        if len(times) > 1:
            yield {k: v[:50] for k, v in people.items()} | {"who": np.full(50, "p1")}

    monkeypatch.setattr(_vault, "KEPT", 0)
    fitted = model(n=431).fit_chunks(source, grids=GRIDS, groups="who")
    assert len(times) > 5 and fitted.ledger_.private
    assert np.isfinite(fitted.fitted_.fit.coefficients).all()
