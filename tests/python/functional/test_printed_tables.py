"""What is printed of fits is what statsmodels prints of the same tables, which loads packages that take long."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.iolib.summary import Summary

from fdadp import FunctionalRegression
from fdadp.functional.tables.printed_tables import PrintedSummary, PrintedTable


def random_text(rng: np.random.Generator, longest: int) -> str:
    return "".join(rng.choice(list("ab é&%_ "), rng.integers(0, longest + 1)))


def random_table(rng: np.random.Generator) -> PrintedTable:
    """Cells of text and whole numbers, with or without headers, stubs and a title."""
    n, m = rng.integers(1, 5), rng.integers(1, 6)
    rows = [
        [random_text(rng, 7) if rng.random() < 0.8 else int(rng.integers(1000)) for _ in range(m)] for _ in range(n)
    ]
    headers, stubs = ([random_text(rng, 9) for _ in range(k)] if rng.random() < 0.5 else () for k in (m, n))
    return PrintedTable(rows, headers, stubs, random_text(rng, 40) if rng.random() < 0.5 else "")


@pytest.fixture(scope="module")
def summaries() -> list[PrintedSummary]:
    rng = np.random.default_rng(0)
    return [
        PrintedSummary([random_table(rng) for _ in range(1 + k % 3)], [random_text(rng, 50) for _ in range(k % 4)])
        for k in range(300)
    ]


def of_statsmodels(printed: PrintedSummary) -> Summary:
    found = Summary()
    found.tables += [table.of_statsmodels() for table in printed.tables]
    found.add_extra_txt(list(printed.notes))
    return found


def test_text_is_that_of_statsmodels(summaries: list[PrintedSummary]) -> None:
    for printed in summaries:
        assert [str(table) for table in printed.tables] == [t.as_text() for t in of_statsmodels(printed).tables]
        assert printed.as_text() == str(printed) == of_statsmodels(printed).as_text()


def test_html_and_csv_are_those_of_statsmodels(summaries: list[PrintedSummary]) -> None:
    for printed in summaries:
        assert printed.as_html() == of_statsmodels(printed).as_html()
        assert printed.as_csv() == of_statsmodels(printed).as_csv()


def test_latex_of_one_table_is_that_of_statsmodels(summaries: list[PrintedSummary]) -> None:
    for printed in summaries:
        if len(printed.tables) == 1:
            assert printed.as_latex() == of_statsmodels(printed).as_latex()


def test_latex_has_tables_of_several_widths() -> None:
    """Where a later table is narrower, statsmodels' summary ends with an error."""
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=60), np.linspace(0, 1, 11)
    data = {"Y": np.outer(np.sin(z), t) + rng.normal(size=(60, 11)), "z": z}
    said = FunctionalRegression("Y ~ s(z)").fit(data, grids={"Y": t}).summary()
    assert len({len(table.rows[0]) for table in said.tables}) == 4
    assert said.as_latex().count(r"\begin{tabular}") == 4 and "do not release" in said.as_latex()
    assert said.as_html().count("<table") == 4
