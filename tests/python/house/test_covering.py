"""What `make test` has of a product of settings: every value, and not the product."""

from __future__ import annotations

from covering import covering, each_once, few


def marks(parameters):
    return {one.values: [mark.name for mark in one.marks] for one in parameters}


def test_every_value_is_there_and_the_others_are_audits():
    found = marks(each_once(["a", "b", "c"], [1, 2]))
    assert list(found) == [(x, i) for x in "abc" for i in (1, 2)]
    quick = {case for case, names in found.items() if not names}
    assert {x for x, _ in quick} == {"a", "b", "c"} and {i for _, i in quick} == {1, 2} and len(quick) == 3
    assert [names for names in found.values() if names] == [["statistics"]] * 3


def test_values_are_those_that_are_asked_for():
    cases = [(n, pure) for n in range(4) for pure in (False, True)]
    assert few(cases, lambda n, pure: n % 2) == [0, 2]
    assert len(few(cases, lambda n, pure: (n, pure))) == 8
    found = marks(covering(cases, lambda n, pure: pure))
    assert sum(not names for names in found.values()) == 2 and len(found) == 8
