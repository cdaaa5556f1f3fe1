"""The long form: standard errors by record and by point are those of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import terms
from fdadp.functional.tables.curve_sample import Curves
from fdadp.solve.form import long_form_design
from fdadp.solve.form.long_form_design import LongForm, LongSums
from fdadp.terms.numbers.scalar_linear import Intercept, MeanCurve
from fdadp.terms.records import Records, TrainingSummary

S, T = np.linspace(0, 1, 21), np.linspace(0, 2, 13)


def records(n=30):
    rng = np.random.default_rng(0)
    x = Curves(rng.normal(size=(n, 3)) @ np.array([np.ones(21), S, np.sin(4 * S)]), S)
    return Records(n, {"X": x, "z": rng.normal(size=n), "g": np.array((list("abc") * n)[:n], dtype=object)})


@pytest.mark.parametrize("numbers_at_a_time", [2**22, 1])
@pytest.mark.parametrize("t", [None, np.array([0.3, 1.7])])
@pytest.mark.parametrize(
    "specs", [[terms.sff("X"), terms.s("z"), terms.factor("g")], [terms.ff("X"), terms.linear("z")]]
)
def test_standard_errors_are_those_of_the_rows(specs, t, numbers_at_a_time, monkeypatch):
    data = records()
    seen = TrainingSummary.of([data])
    form = LongForm(tuple(spec.fixed(seen, T) for spec in (Intercept(), MeanCurve(), *specs)), T)
    root = np.random.default_rng(1).normal(size=(form.size, form.size))
    covariance, rows = root @ root.T, form.rows(data, t)
    wanted = np.sqrt(np.einsum("ntp,pq,ntq->nt", rows, covariance, rows, optimize=True))
    monkeypatch.setattr(long_form_design, "ROWS_AT_A_TIME", numbers_at_a_time)
    assert form.separable
    np.testing.assert_allclose(form.standard_errors(data, covariance, t), wanted, rtol=1e-9)


def test_even_and_odd_functions_of_an_even_grid_share_exactly_nothing():
    data, rng = records(), np.random.default_rng(2)
    seen, specs = TrainingSummary.of([data]), [terms.s("z"), terms.ff("X")]
    for t, shared in ((T, False), (T**2 / 2, True)):
        form = LongForm(tuple(spec.fixed(seen, t) for spec in (Intercept(), MeanCurve(), *specs)), t)
        gram = LongSums.of(form, form.features(data), rng.normal(size=(30, 13))).system(form).gram
        rows = form.rows(data).reshape(-1, form.size)
        wanted = rows.T @ rows
        scale = np.sqrt(wanted.diagonal())
        np.testing.assert_allclose(gram / scale / scale[:, None], wanted / scale / scale[:, None], atol=1e-13)
        own = gram[form.slices[2], form.slices[2]]  # of s(z): the function of t is fast
        odd = np.arange(len(own)) % form.along[2].shape[1] % 2 == 1
        assert (np.abs(own[odd][:, ~odd]) > 1e-9 * own.diagonal().max()).any() == shared
        assert own[odd][:, ~odd].any() == shared
