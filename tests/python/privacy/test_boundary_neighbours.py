"""One person among many, in tables as users have them: what a reader makes of the others' entries changes no sum.

Through the public estimators. Each case moved the exact sums by far more than the sensitivity in version 0.1.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from neighbour_tools import change, chunks, frame, on_tape, texts

from fdadp import Privacy, PrivateMean
from fdadp.errors import InputError, PrivacyError
from fdadp.learners import Categorical, DPCategoricalNB, DPGaussianNB, DPHistogramNB, DPLinearRegression, Numeric
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise, rowwise_matmul

GRID = np.linspace(0, 1, 5)


def mean(n=None):
    return PrivateMean(privacy=Privacy(4.0, n=n, random_state=0), bounds=(-2, 2), allow_useless=True)


def people(n, rows, seed=0):
    """Curves of n persons with several rows each, as columns of texts, and the persons."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), rows)[rng.permutation(n * rows)]
    values = rng.normal(size=(len(ids), GRID.size))
    return {f"t{j}": texts(values[:, j]) for j in range(GRID.size)}, ids


def without(columns, gone):
    return {
        name: [entry for entry, out in zip(column, gone, strict=True) if not out] for name, column in columns.items()
    }


def curves_and_ids(piece):
    return piece.iloc[:, 1:], piece["id"]


# ------------------------------------------------------------------ A1: ids


@pytest.mark.parametrize("odd", ["H7", "", "7.5", "1e300", "NA"])
def test_one_odd_id_in_a_chunk_does_not_rename_the_others(odd):
    """pandas makes text, or floats, of all ids of the chunk in which somebody has an odd one."""
    values, ids = people(40, 10)
    named = [odd if i == 7 else f"{i}" for i in ids]
    columns = {"id": named, **values}

    def fit(data):
        mean().fit_chunks(chunks(data, 23, curves_and_ids), t=GRID, groups=True)

    assert 0 <= change(fit, columns, without(columns, ids == 7)) <= 1


def test_ids_of_several_parts_are_one_id_a_row():
    """Ravelled, ("H1", 7) became the ids of two rows: rows got somebody else's."""
    values, ids = people(40, 6)
    curves = np.array(list(values.values()), dtype=float).T
    pairs = [(f"H{i % 4}", int(i)) for i in ids]

    def fit(data):
        pieces = [(data[0][k : k + 30], data[1][k : k + 30]) for k in range(0, len(data[0]), 30)]
        mean().fit_chunks(pieces, t=GRID, groups=True)

    kept = ids != 11
    second = (curves[kept], [pair for pair, keep in zip(pairs, kept, strict=True) if keep])
    assert change(fit, (curves, pairs), second) <= 1
    single = on_tape(lambda data: mean().fit(data[0], t=GRID, groups=data[1]), (curves, pairs))
    plain = on_tape(lambda data: mean().fit(data[0], t=GRID, groups=data[1]), (curves, ids))
    assert [entry.exact for entry in single] == [entry.exact for entry in plain]
    with pytest.raises(InputError, match="one entry per curve"):
        mean().fit(curves, t=GRID, groups=np.array(pairs, dtype=object))


@pytest.mark.parametrize("start", [0, 2**53 - 20, 2**60, 2**64 - 200])
def test_a_missing_id_does_not_make_floats_of_large_ones(start):
    values, ids = people(40, 5)
    named = [f"{start + int(i)}" for i in ids]
    first = {"id": named, **values}
    second = {"id": ["" if i == 7 else name for i, name in zip(ids, named, strict=True)], **values}

    def fit(data):
        table = frame(data)
        mean(n=40).fit(table.iloc[:, 1:], t=GRID, groups=table["id"])

    # Ids from 2**53 on name nobody.
    assert change(fit, first, second, constant=start > 2**53) <= 1


# ------------------------------------------------------------------ A2: labels, categories, numbers

ODD = ["?", "", "unknown", "2.5", "True", "x y"]


@pytest.mark.each_once
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("named", [("0", "1"), ("False", "True"), ("1.0", "2.0"), ("no", "yes"), ("2020-01-01", "3")])
def test_one_odd_label_does_not_unmatch_the_others(odd, named):
    rng = np.random.default_rng(1)
    values, side = texts(np.clip(rng.normal(size=200), -1, 1)), rng.integers(0, 2, 200)
    labels = [named[i] for i in side]
    first = {"x": values, "y": labels}
    second = {"x": [*values[:-1], ""], "y": [*labels[:-1], odd]}
    classes = [frame({"y": [name]})["y"][0] for name in named]

    def fit(data):
        table = frame(data)
        DPGaussianNB(epsilon=4.0, classes=classes, bounds=(-1, 1), n=200, random_state=0).fit(table[["x"]], table["y"])

    assert 0 < change(fit, first, second) <= 1


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_category_or_number_does_not_change_the_others(odd):
    rng = np.random.default_rng(2)
    n = 150
    columns = {
        "flag": [("False", "True")[i] for i in rng.integers(0, 2, n)],
        "code": [f"{i}" for i in rng.integers(0, 4, n)],
        "work": [("a", "b", "NA")[i] for i in rng.integers(0, 3, n)],
        "x": texts(rng.uniform(0, 1, n)),
        "y": [f"{i}" for i in rng.integers(0, 2, n)],
    }
    gone = np.arange(n) == 3
    features = [[True, False], [0, 1, 2, 3], ["a", "b"]]
    binned = [Numeric(0, 1, edges=4), Categorical(["True", "False"])]
    ends = {"bounds": (0, 1), "bounds_y": (0, 1)}
    for name in columns:
        second = {
            key: [odd if key == name and out else entry for entry, out in zip(column, gone, strict=True)]
            for key, column in columns.items()
        }
        for adjacency, other in (("replace", second), ("add-remove", without(second, gone))):
            first = columns if adjacency == "replace" else second

            def fit(data, adjacency=adjacency):
                table = frame(data)
                settings = {"adjacency": adjacency, "n": n if adjacency == "replace" else None, "random_state": 0}
                naive = DPCategoricalNB(epsilon=4.0, classes=["0", 1], categories=features, **settings)
                naive.fit(table[["flag", "code", "work"]], table["y"])
                bins = DPHistogramNB(epsilon=4.0, classes=[0, 1], features=binned, **settings)
                bins.fit(table[["x", "flag"]], table["y"])
                DPLinearRegression(epsilon=4.0, **ends, **settings).fit(table[["x"]], table["y"])

            # Three fits in one tape: each moves by its own sensitivity.
            assert change(fit, first, other) <= 1, (name, adjacency)


# ------------------------------------------------------------------ A4: sources that give their rows otherwise


def restless(curves, ids, seed, more=0):
    """A source that gives its rows in another order on each pass, and from the second pass on `more` of person 7."""
    passes = []

    def source():
        passes.append(0)
        rng = np.random.default_rng([seed, len(passes)])
        order = rng.permutation(len(ids))
        extra = np.flatnonzero(ids == 7)[:1].repeat(more if len(passes) > 1 else 0)
        order = np.concatenate([order, extra])
        for at in np.array_split(order, 7):
            yield curves[at], ids[at]

    return source


@pytest.mark.parametrize("more", [0, 30])
@pytest.mark.parametrize("kept", [2**28, 0])
def test_a_source_that_shuffles_on_each_pass_keeps_the_bound(monkeypatch, more, kept):
    """Ids read in one pass belonged to other rows in the next: a person with 10 rows reached 10 persons' sums."""
    monkeypatch.setattr("fdadp.privacy.rows._vault.KEPT", kept)
    ids = np.array([*range(40), *[7] * 10])
    curves = np.where(ids[:, None] == 7, 1.9, 0.01 * ids[:, None]) * np.ones(GRID.size)
    kept_rows = ids != 7

    def fit(data):
        mean().fit_chunks(restless(*data, seed=5, more=more), t=GRID, groups=True)

    assert change(fit, (curves, ids), (curves[kept_rows], ids[kept_rows])) <= 1


def test_ids_apart_from_their_rows_are_taken_of_lists_only():
    values, ids = people(10, 4)
    curves = np.array(list(values.values()), dtype=float).T
    with pytest.raises(InputError, match="another order on another pass"):
        mean().fit_chunks(lambda: iter([curves]), t=GRID, groups=ids)
    with pytest.raises(PrivacyError, match="another order on another pass"):
        Cohort(lambda_source(curves), groups=ids, budget=Budget(1.0), n=10)
    mean().fit_chunks([curves[:15], curves[15:]], t=GRID, groups=pd.Series(ids, index=ids[::-1]))


def lambda_source(curves):
    class Source:
        def __iter__(self):
            yield (curves,)

    return Source()


# ------------------------------------------------------------------ B1: what leaves besides


def locals_of(error):
    """Everything that the frames within fdadp's kernel hold, of an error and of what it hangs on."""
    held, seen = [], [error]
    while seen:
        error = seen.pop()
        seen += [e for e in (error.__cause__, error.__context__) if e is not None]
        tb = error.__traceback__
        while tb is not None:
            if "privacy" in tb.tb_frame.f_code.co_filename:
                held += [value for value in tb.tb_frame.f_locals.values() if isinstance(value, np.ndarray)]
            tb = tb.tb_next
    return held


def private(*rows):
    out = np.empty(len(rows), dtype=object)
    out[:] = rows
    return out


def test_masked_text_raises_nothing():
    rows = np.array([[0.5, 1.0], [2.0, 0.1], [0.3, 0.2]], dtype=object)
    rows[0, 0] = "HIV-positive"
    masked = np.ma.MaskedArray(rows, mask=[[False, False], [False, True], [False, False]])
    entry = on_tape(lambda data: plain_sum(data), masked)[0]
    clean = on_tape(lambda data: plain_sum(data), np.array([[np.nan, 1.0], [2.0, np.nan], [0.3, 0.2]]))[0]
    assert entry.exact == clean.exact


def plain_sum(data, **settings):
    from fdadp.privacy.noise import sources as noise

    cohort = Cohort(data, budget=Budget(1.0), noise=noise.SeededNoise(0), **({"n": 9} | settings))
    return cohort.sum(lambda rows: rows[0], clip=1.0, share=0.5, name="s")


class Failing:
    """A lazy array that fails while it is read, with a text that tells of somebody."""

    shape, dtype = (9, 2), np.dtype(float)

    def __getitem__(self, rows):
        raise ValueError("could not convert string to float: 'HIV-positive'")


def failing_chunks():
    yield (np.ones((4, 2)),)
    yield (np.full((5, 2), 0.25),)
    raise ValueError("could not convert string to float: 'HIV-positive'")


class FailingSource:
    def __init__(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        return failing_chunks()


@pytest.mark.parametrize("data", [Failing, FailingSource])
def test_a_failure_tells_one_sentence_and_holds_no_rows(data):
    with pytest.raises(PrivacyError) as caught:
        plain_sum(data())
    assert "HIV" not in str(caught.value) and "source" in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert locals_of(caught.value) == []


@pytest.mark.parametrize("kind", ["masked objects", "long doubles", "text"])
def test_counting_persons_warns_of_nothing(kind):
    rows = {
        "masked objects": np.ma.masked_equal(private("a", 1, 2.5, None), 1),
        "long doubles": np.array(["1e4000", "1", "2", "nan"], dtype=np.longdouble),
        "text": np.array(["1e4000", "x", "2", "nan"]),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cohort = Cohort(rows, budget=Budget(1.0), noise=SeededNoise(0))
        cohort.count(share=0.5)
        cohort.sum(lambda block: block[0], clip=1.0, share=0.5, name="s")


def test_no_error_tells_the_private_number_of_rows():
    X = np.zeros((47, 2))
    for wrong in (X[:, 0], np.zeros((47, 2, 2)), np.zeros((47, 0))):
        with pytest.raises(InputError) as caught:
            DPLinearRegression(epsilon=1.0, bounds=(0, 1), bounds_y=(0, 1)).fit(wrong, np.zeros(47))
        assert "47" not in str(caught.value)
    with pytest.raises(InputError, match="one entry for each row") as caught:
        DPLinearRegression(epsilon=1.0, bounds=(0, 1), bounds_y=(0, 1)).fit(X, np.zeros(46))
    assert not {"46", "47"} & set(str(caught.value).split())


def test_a_ragged_row_is_nobodys():
    rng = np.random.default_rng(0)
    rows = [list(row) for row in rng.uniform(size=(60, 3))]
    curves = [row * 2 for row in rows]
    cut = [*curves[:20], [0.5], *curves[21:]]

    def summaries(data):
        mean(n=60).fit_chunks([data[:30], data[30:]], t=np.linspace(0, 1, 6))
        mean(n=60).fit(data, t=np.linspace(0, 1, 6))

    nothing = [*curves[:20], [np.nan] * 6, *curves[21:]]
    assert [e.exact for e in on_tape(summaries, cut)] == [e.exact for e in on_tape(summaries, nothing)]


@pytest.mark.parametrize("more", [0, 1])
def test_no_row_decides_the_width_of_lists(more):
    """In one table the plurality of rows decided, in chunks the first row: for everybody else's rows."""
    rows = [[0.5, 0.5, 0.5][: 2 + (i < 20 + more)] for i in range(40)]
    with pytest.raises(InputError, match="got a list: its rows may be of any length"):
        DPLinearRegression(epsilon=1.0, bounds=(0, 1), bounds_y=(0, 1)).fit(rows, np.zeros(40))

    def sums(first):
        noise = TapeNoise(SeededNoise(0))
        chunks = [([first],), ([[1.0, 1.0]] * 40,)]
        Cohort(chunks, budget=Budget(1.0), n=41, noise=noise).sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
        return noise.entries[0].exact

    assert sums([1.0, 1.0]) == sums([1.0] * (2 + more)) == (0,)


# ------------------------------------------------------------------ B4: row-local, for another shape too


def test_a_wider_matrix_in_the_same_function_is_checked_again():
    """A product by BLAS may be row-local for a narrow matrix and not for a wide one."""

    def sum_of(width):
        wide = np.ones((width, 3))

        def f(rows):
            x = rows[0][:, : len(wide)]
            return rowwise_matmul(x if len(wide) < 4 else x - x.mean(axis=0), wide)

        cohort = Cohort(np.zeros((5, 8)), budget=Budget(1.0), n=5, noise=SeededNoise(0))
        return cohort.sum(f, clip=1.0, share=0.5, name="s")

    sum_of(3)
    with pytest.raises(PrivacyError, match="row-local"):
        sum_of(5)


def test_the_tape_is_of_the_estimators_own_noise():
    """The tool of this file sees what it should: a sum of one row more is a whole sensitivity away."""
    rows = np.ones((6, 2))

    def fit(data):
        plain_sum(data)

    assert change(fit, rows, rows[1:]) == pytest.approx(1, abs=1e-6)
    noise = TapeNoise(SeededNoise(0))
    assert noise.entries == []
