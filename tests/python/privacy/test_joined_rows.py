"""Rule J: which rows of several tables belong together, beside the rule written out row by row."""

import random
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from mutants import mutate

import fdadp.privacy.joined_tables as of_tables
from fdadp.privacy.joined_tables import NO_ROW, Key, joined_rows
from fdadp.privacy.private_entries import meaning, person_of

IDS = [1, 1.0, "1", " 01 ", 2, "2.0", "p7", "P7", "", "NA", None, float("nan"), 1.5, float("inf"), 2**53]
VISITS = [1, "1", 2.0, "spring", None, "NA", float("nan")]


def by_hand(tables, primary=0):
    """Records as multisets of (person, values of each table or None), the rule read aloud."""
    records = []
    for pid, visit, value in tables[primary]:
        person = person_of(pid)
        if person is None:
            continue
        record = [person]
        for k, table in enumerate(tables):
            if k == primary:
                record.append(value)
                continue
            mine = [row for row in table if person_of(row[0]) == person]
            if "visit" not in (visit, *(row[1] for row in table)):  # both have visits
                wanted = meaning(visit)
                mine = [row for row in mine if wanted is not None and meaning(row[1]) == wanted]
            values = {row[2] for row in mine}
            record.append(values.pop() if len(values) == 1 else None)
        records.append(tuple(record))
    return sorted(records, key=repr)


def joined(tables, primary=0):
    """The same by the library; a table without visits says "visit" in their place."""
    keys = []
    for table in tables:
        visits = None if table and table[0][1] == "visit" else [row[1] for row in table]
        keys.append(Key([row[0] for row in table], visits))
    values = [np.array([row[2] for row in table], dtype=float) for table in tables]
    found = joined_rows(keys, lambda k, rows: values[k][rows], primary)
    out = []
    for i in range(found.persons.size):
        row = found.rows[primary][i]
        at = [None if rows[i] == NO_ROW else tables[k][rows[i]][2] for k, rows in enumerate(found.rows)]
        out.append((person_of(tables[primary][row][0]), *at))
    return out, found


def random_tables(draw):
    tables = []
    for _ in range(3):
        with_visits = draw.random() < 0.6
        rows = [
            (draw.choice(IDS), draw.choice(VISITS) if with_visits else "visit", draw.randrange(3))
            for _ in range(draw.randrange(1, 8))
        ]
        tables.append(rows)
    return tables


def check_rule(seed, times=100):
    """Records are those of the rule, also where a person's rows are left out, in an order that no row decides."""
    draw = random.Random(seed)
    for _ in range(times):
        tables, primary = random_tables(draw), draw.randrange(3)
        records, found = joined(tables, primary)
        assert sorted(records, key=repr) == by_hand(tables, primary)
        assert all(0 <= b - a <= 1 for a, b in pairwise([0, *found.persons]))
        for table, without in zip(tables, found.without_id, strict=True):
            assert without.tolist() == [i for i, row in enumerate(table) if person_of(row[0]) is None]
        shuffled = [draw.sample(table, len(table)) for table in tables]
        assert joined(shuffled, primary)[0] == records
        person = draw.choice([1, 2, "p7"])
        left = [[row for row in table if person_of(row[0]) != person] for table in tables]
        if all(left):
            assert joined(left, primary)[0] == [record for record in records if record[0] != person]


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_joined_as_the_rule_says(seed):
    check_rule(seed)


def check_order():
    ids = [*"hbgdface", 3, 10, ("a", 1), 2]
    tables = [[(pid, "visit", i) for i, pid in enumerate(ids)]]
    assert [record[0] for record in joined(tables)[0]] == [2, 3, 10, *"abcdefgh", ("a", 1)]


def test_persons_are_in_an_order_that_no_row_decides():
    check_order()


MATCH = "rows[k], differing[k] = _partners(wanted, known, partial(content, k))"
MUTANTS = {
    "first row wins": ("partner[unlike] = NO_ROW", "pass"),
    "differing rows are an error": ("partner[unlike] = NO_ROW", "raise ValueError"),
    "missing ids are one person": ("whole == NO_NUMBER, NOBODY,", "whole == NO_NUMBER, numbers.size,"),
    "missing visits are one visit": ("places[None] = _NO_VISIT", "places[None] = len(places)"),
    "visits are not looked at": ("if theirs is None or ours is None:", "if True:"),
    "a row without a visit is nobody's": (
        "rows = np.flatnonzero(persons != NOBODY)\n",
        "rows = np.flatnonzero((persons != NOBODY) & (True if visits is None else visits != _NO_VISIT))\n",
    ),
    "by position where lengths agree": (MATCH, f"{MATCH} if len(known) != len(persons[primary]) else (own, _NONE)"),
    "all pairs": (
        "rows, differing = [own]",
        "own = np.repeat(own, [max(1, (persons[-1] == p).sum()) for p in persons[primary][own]]); "
        "rows, differing = [own]",
    ),
    "letters of either case": (
        "codes[row] = texts[key]",
        "codes[row] = min(code for k, code in texts.items() if str(k).lower() == str(key).lower())",
    ),
    "ids as they are written": (
        "read = [persons_of(own) for own in ids]",
        "read = [(np.full(len(o), NO_NUMBER), dict(enumerate(map(repr, o)))) for o in ids]",
    ),
    "order of rows within a person": ("if tied.size:", "if False:"),
    "Python's hash": ('return (0, key, "") if type(key) is float', "return (hash(key),) if True"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rule_that_is_slightly_wrong_turns_these_tests_red(monkeypatch, name):
    mutate(monkeypatch, of_tables, *MUTANTS[name])
    with pytest.raises((AssertionError, ValueError)):
        [check() for check in (lambda: check_rule(1), check_order)]


def test_an_empty_table_and_no_id_in_common_give_missing_partners():
    key = Key(np.arange(3))
    found = joined_rows([key, Key(np.arange(0)), Key(np.arange(10, 20))], lambda k, rows: rows)
    assert found.persons.tolist() == [0, 1, 2]
    assert [rows.tolist() for rows in found.rows] == [[0, 1, 2], [NO_ROW] * 3, [NO_ROW] * 3]


def test_all_pairs_are_never_made():
    first = Key(pd.Index([1, 1, 1]))
    found = joined_rows([first, Key(pd.Index([1, 1]))], lambda k, rows: np.zeros(len(rows)))
    assert found.persons.size == 3
    assert found.rows[1].tolist() == [0, 0, 0]  # equal rows are one
