"""Exact sums over tables that are joined by id move by what Lemma 9 says: 1, 2 or 4 clips, attained; and by 0."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.joined_tables import Joined, Key
from fdadp.privacy.private_entries import table

IDS = ["1", 1.0, 2, "p", " p ", None, "NA", 1.5]


def exact(tables: list[list[tuple[Any, ...]]], law: str = "mean") -> np.ndarray:
    """Integers of a sum of one vector a record, which its clip shortens: rows are (id, visit or 'none', number)."""
    keys = []
    for rows in tables:
        visits = None if any(row[1] == "none" for row in rows) else [row[1] for row in rows]
        keys.append(Key([row[0] for row in rows], visits))
    columns = tuple(table(np.array([row[2] for row in rows], dtype=float)) for rows in tables)
    tape = TapeNoise(SeededNoise(0))
    told: dict[str, Any] = {"person_rows": "sum", "max_rows": 100} if law == "sum" else {}
    cohort = Cohort(
        Joined(columns, tuple(range(len(tables))), tuple(keys), 0), budget=Budget(1.0), n=3, noise=tape, **told
    )

    def f(rows: Any) -> Any:
        values = np.stack([np.nan_to_num(column, nan=3.0) - 1.0 for column in rows], axis=1)
        return np.where(values[:, :1] > 1, -5.0, 5.0) * values

    cohort.sum(f, clip=1.0, share=1.0, name="sum")
    (entry,) = tape.entries
    return np.asarray(entry.exact, dtype=np.int64)


def moved(first: Any, second: Any) -> float:
    return float(np.abs(exact(first) - exact(second)).sum() / 2**24)


def random_tables(draw: random.Random) -> list[list[tuple[Any, ...]]]:
    def rows() -> list[tuple[Any, ...]]:
        visits = draw.choice([["none"], [1, "1.0", 2, None]])
        return [(draw.choice(IDS), draw.choice(visits), draw.randrange(4)) for _ in range(draw.randrange(1, 6))]

    return [rows() for _ in range(3)]


def of(person: Any) -> set[Any]:
    return {1: {"1", 1.0}, 2: {2}, "p": {"p", " p "}}[person]


@pytest.mark.parametrize("seed", range(6))
def test_no_change_of_a_persons_rows_moves_a_sum_by_more(seed: int) -> None:
    draw, largest = random.Random(seed), dict.fromkeys(("out", "other", "id", "order", "nobody"), 0.0)
    for _ in range(60):
        tables = random_tables(draw)
        keep = [[("q", rows[0][1], 1), *rows] for rows in tables]  # so that no table is empty
        person = draw.choice([1, 2, "p"])
        out = [[row for row in rows if row[0] not in of(person)] for rows in keep]
        k = draw.randrange(3)
        mine = [(draw.choice(sorted(of(person), key=str)), draw.choice(keep[k])[1], draw.randrange(4)) for _ in "ab"]
        other = [out[i] + draw.sample(mine, draw.randrange(3)) if i == k else rows for i, rows in enumerate(keep)]
        edited = [list(rows) for rows in keep]
        for i, row in enumerate(edited[k]):
            if row[0] in of(person) and draw.random() < 0.7:
                edited[k][i] = (draw.choice(IDS), *row[1:])
                break
        some = [(draw.choice([None, "NA", 1.5, float("nan"), 2.0**53]), rows[0][1], 3) for rows in keep]
        nobody = [[*rows, *[row] * 200] for rows, row in zip(keep, some, strict=True)]
        order = [draw.sample(rows, len(rows)) for rows in keep]
        for name, second in (("out", out), ("other", other), ("id", edited), ("order", order), ("nobody", nobody)):
            largest[name] = max(largest[name], moved(keep, second))
    assert largest["order"] == 0 == largest["nobody"]
    assert 0.9 < largest["out"] <= 1
    assert 0.9 < largest["other"] <= 2
    assert 0.9 < largest["id"] <= 4


def test_the_bounds_are_attained() -> None:
    """One row more in one table turns a person's contribution round; one wrong id does so to two persons."""
    first = [[("a", "none", 0), ("b", "none", 0)], [("a", "none", 1), ("b", "none", 1)]]
    assert moved(first, [rows[1:] for rows in first]) == pytest.approx(1, abs=1e-6)
    turned = [[("a", "none", 2), ("b", "none", 0)], first[1]]
    assert moved(first, turned) > 1.9
    both = [[("a", "none", 0), ("b", "none", 0)], [("a", "none", 1), ("b", "none", 1)]]
    assert moved(both, [both[0], [("b", "none", 1), ("b", "none", 3)]]) > 1.9


def test_a_person_with_very_many_rows_is_one_person() -> None:
    first = [[(i, "none", i % 3) for i in range(50)] for _ in range(2)]
    many = [rows + [(7, "none", 2)] * 5000 for rows in first]
    assert 0 < moved(first, many) <= 2


def test_types_that_readers_choose_change_no_bit() -> None:
    rows = [(i, "none", i % 3) for i in range(20)]
    for ids in (
        range(20),
        [f"{i}" for i in range(20)],
        [float(i) for i in range(20)],
        pd.Index(range(20)).astype("Int64"),
    ):
        others = [[(i, *row[1:]) for i, row in zip(ids, rows, strict=True)], rows]
        assert moved([rows, rows], others) == 0
    odd = [("?", "none", 1), *rows[1:]]  # one entry makes text of all ids
    texts = [(str(i), *row) for i, *row in odd]
    assert moved([odd, rows], [texts, rows]) == 0


def test_a_cohort_takes_joined_tables_and_its_person_is_the_id() -> None:
    column = table(np.arange(3.0))
    tables = Joined((column,), (0,), (Key([1, 1, 2]),), 0)
    cohort = Cohort(tables, budget=Budget(1.0), noise=SeededNoise(0))
    assert cohort.unit.startswith("person")
    assert cohort.count(share=0.5).value == pytest.approx(2, abs=40)
    assert repr(tables) == "<private rows>"
    with pytest.raises(PrivacyError, match="groups must be left out where rows are joined by an id"):
        Cohort(tables, groups=[1, 2, 3], budget=Budget(1.0))
    with pytest.raises(PrivacyError, match="ids must be one for each row of the table that they are of"):
        Joined((column,), (0,), (Key([1, 1]),), 0)


def test_an_error_while_ids_are_read_is_the_constant_one() -> None:
    class Ids:
        shape = (3,)

        def __len__(self) -> int:
            return 3

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise ValueError("secret")

    cohort = Cohort(Joined((table(np.arange(3.0)),), (0,), (Key(Ids()),), 0), budget=Budget(1.0), noise=SeededNoise(0))
    with pytest.raises(PrivacyError) as caught:
        cohort.sum(lambda rows: rows[0], clip=1.0, share=1.0, name="sum")
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None
