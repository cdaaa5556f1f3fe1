"""Private fits of zeros and ones and of counts: no person moves a sum by more than was declared, or anything else."""

from __future__ import annotations

import warnings
import weakref
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from fdadp import Privacy, ScalarRegression
from fdadp.audit.replay import Neighbours, drawing_from, replay_audit
from fdadp.privacy import Budget, rowwise_exp
from fdadp.private.release.dp_aff_of_families import DPAFFOfFamily, in_entries
from fdadp.private.release.mechanisms import DPAFF
from fdadp.private.rows.count_and_binary_rows import BoundedResponse, BoundedRows
from fdadp.solve.form.families_by_name import FAMILIES

GRID = np.linspace(0, 1, 21)
N = 60
BOUNDS = {"X": (-3.0, 3.0), "z": (0.0, 1.0)}
BIG = {"binomial": {"y": ["dead", "alive"]}, "poisson": {"y": (0, 20)}}
NASTY = {
    "binomial": ["dead", "alive", "unknown", None, "dead", "alive", "", 7],
    "poisson": [1e30, 0.0, np.inf, np.nan, 20.0, -1.0, 2.5, 19.0],
}


def people(family, n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, 1)) * GRID
    data = {"X": x, "z": rng.uniform(size=n)}
    up = rng.uniform(size=n) < 1 / (1 + np.exp(-2 * x.mean(axis=1)))
    data["y"] = np.where(up, "dead", "alive").astype(object) if family == "binomial" else 3.0 * up
    x[0], x[1], x[2, 3], x[3], x[4], x[5] = 3.0, -1e30, np.inf, np.nan, 1e30, -3.0
    data["z"][[0, 4, 6]] = 1.0, 1e30, np.nan
    data["y"][:8] = NASTY[family]
    return data


def model_of(family, epsilon, delta, adjacency, grouped):
    n = None if adjacency == "add-remove" else (N // 2 if grouped else N)
    return ScalarRegression(
        "y ~ lf(X) + z",
        family=family,
        privacy=Privacy(epsilon, delta, n=n, adjacency=adjacency),
        bounds=BOUNDS | BIG[family],
        mechanism=DPAFF(allow_useless=True),
    )


def pair(family, epsilon, delta, adjacency, grouped, who):
    data = people(family)
    persons = np.arange(N) // 2 if grouped else np.arange(N)
    mine, model = persons == who, model_of(family, epsilon, delta, adjacency, grouped)

    def run(given, noise):
        rows, ids = given
        fitted = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with drawing_from(fitted, noise):
                fitted.fit(rows, grids={"X": GRID}, groups=ids)
        new = {"X": np.outer([-1.0, 0.5, 2.0], 1 + 0 * GRID), "z": np.array([0.1, 0.5, 0.9])}
        return {"attributes": vars(fitted), "predictions": [fitted.predict(new), fitted.predict_se(new)]}

    if adjacency == "replace":
        other = {name: v.copy() for name, v in data.items()}
        for name, v in people(family, seed=1).items():
            other[name][mine] = v[mine][::-1] if grouped else v[(who + 1) % 8]
        second = (other, persons if grouped else None)
    else:
        second = ({name: v[~mine] for name, v in data.items()}, persons[~mine] if grouped else None)
    first = (data, persons if grouped else None)
    total = Budget(epsilon, delta).total
    return Neighbours(f"{family} {delta} {adjacency} {grouped} {who}", run, first, second, total)


SETTINGS = list(product(("binomial", "poisson"), (1e-6, None), ("zero-out", "add-remove", "replace"), (False, True)))


@pytest.mark.each_once(("family", "delta"), ("family", "grouped"), ("delta", "grouped"))
@pytest.mark.parametrize(("family", "delta", "adjacency", "grouped"), SETTINGS)
def test_nasty_people_cost_at_most_the_budget_and_show_nothing_else(family, delta, adjacency, grouped):
    whose = (0, 2 + ("zero-out", "add-remove", "replace").index(adjacency) * (2 - grouped) % (6 - 4 * grouped))
    # To exchange somebody whose every release is at the bound for one who is opposite takes more than these.
    least = 0.05 if adjacency == "replace" else 0.4
    check((pair(family, 40.0, delta, adjacency, grouped, who) for who in whose), least)


@pytest.mark.long
@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("epsilon", [1.0, 40.0])
def test_everybody_nasty_in_every_setting(family, epsilon):
    settings = product((1e-6, None), ("zero-out", "add-remove", "replace"), (False, True))
    check(pair(family, epsilon, *how, who) for how in settings for who in range(4 if how[-1] else 8))


def check(pairs, least=0.4):
    result = replay_audit(pairs)
    assert result.passed, str(result)
    assert result.finished == len(result.ratios) and least < result.changes.max() <= 1


def test_a_residual_beyond_its_bound_is_clipped_by_the_kernel_all_the_same(monkeypatch):
    right = BoundedRows.residual
    monkeypatch.setattr(BoundedRows, "residual", lambda self, block: 7 * right(self, block))
    result = replay_audit([pair("binomial", 40.0, delta, "zero-out", False, 0) for delta in (1e-6, None)])
    assert result.passed, str(result)


def test_a_fit_that_starts_at_the_rows_instead_of_the_release_is_found_out(monkeypatch):
    """The level of the unreleased rows in place of the released base rate."""
    right = BoundedRows.about_the_middle

    def looking(self, block):
        found = right(self, block)
        self.secret = getattr(self, "secret", 0.0) + float(np.nansum(found))
        return found

    def started(self, plan):
        self.location = self.secret / N
        self._plan = plan

    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._same_everywhere", lambda *_: True)
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", weakref.WeakKeyDictionary())
    monkeypatch.setattr(BoundedRows, "about_the_middle", looking)
    monkeypatch.setattr(BoundedRows, "begin_regression", started)
    assert not replay_audit([pair("binomial", 40.0, 1e-6, "zero-out", False, 0)]).passed


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_residuals_and_clipped_features_are_bounded_whatever_a_row_holds(family):
    """Product at most the clip by itself, before the kernel looks at it; lost rows are not finite."""
    data = people(family)
    model = model_of(family, 40.0, 1e-6, "zero-out", False)
    found = []
    for norm, pure in ((2, False), (1, True)):
        clipped, residual, largest = row_values(model, data, pure, norm)
        lost = ~np.isfinite(clipped).all(axis=1) | ~np.isfinite(residual)
        length = np.abs(clipped).sum(axis=1) if norm == 1 else np.sqrt((clipped**2).sum(axis=1))
        assert (length[~lost] * np.abs(residual[~lost]) <= largest * (1 + 1e-12)).all()
        assert (length[~lost] <= 2 * largest * (1 + 1e-12)).all()
        assert (np.abs(residual[~lost]) <= 1).all()
        assert lost[3] and lost[2:8].sum() >= 4 and not lost[8:].any()
        found.append(np.abs(residual[~lost]).max())
    assert max(found) > 0.5


def row_values(model, data, pure, norm):
    """Clipped features, residuals and the bound of the former, at coefficients far from 0."""
    from fdadp.privacy.private_entries import labels, table
    from fdadp.private.plan.private_design import PrivateDesign
    from fdadp.private.whitened.term_registry import white_term
    from fdadp.regression.fit_in_memory import read_terms
    from fdadp.regression.model_settings import ModelSettings
    from fdadp.regression.private.columns_read_privately import ColumnReader
    from fdadp.regression.private.fit import PrivateSettings
    from fdadp.regression.private.private_table import PrivateTable

    own = PrivateTable(data, {"X": GRID}, model.bounds)
    prior = DPAFF().public_prior
    parsed = read_terms(ModelSettings.of(model), lambda: own.kinds)
    private = PrivateSettings.of(model)
    reading = ColumnReader(own, prior, private.gaps_of)
    specs = reading.terms(parsed.terms, private.model.missing)
    columns, values = reading.public.columns, map(own.entries, reading.public.given.values())
    made = [white_term(spec, {c.name: c for c in columns}, prior, curves=False) for spec in specs]
    design = PrivateDesign.of(prior, columns, made, None)
    binomial = model.family == "binomial"
    y = labels(data["y"], ["alive", "dead"]) if binomial else table(data["y"])
    rows = BoundedRows(design, BoundedResponse(FAMILIES[model.family], (0.0, 1.0 if binomial else 20.0)))
    plan = DPAFFOfFamily(response=rows.bounded).plan(N, 0.02, design, pure=pure)
    rows.feature_norm, rows.largest = norm, 2.0
    rows.begin_regression(plan)
    rows.coefficients = np.full((plan.n_features, 1), 3.0)
    block = tuple(part.read() for part in (*values, y))
    derived = rows.derived(block)
    return rows.clipped(derived), rows.residual(derived)[:, 0], rows.largest


def test_exponentials_are_right_and_the_same_at_every_place():
    x = np.concatenate([np.linspace(-700, 700, 4001), [0.0, -0.0, 1e-300, 0.5, -0.34657359027997264]])
    found = rowwise_exp(x)
    np.testing.assert_allclose(found, np.exp(x), rtol=3e-16)
    for shift in (1, 2, 3, 5):
        np.testing.assert_array_equal(rowwise_exp(x[shift:]), found[shift:])
        np.testing.assert_array_equal(rowwise_exp(x[:-shift, None])[:, 0], found[:-shift])
    np.testing.assert_allclose(
        rowwise_exp(np.array([np.nan, np.inf, -1e30]), 40.0)[1:], np.exp([40.0, -40.0]), rtol=3e-16
    )
    assert np.isnan(rowwise_exp(np.array([np.nan]))[0])


def test_the_quieter_of_two_laws_in_pure_form():
    """Weights that are alike: noise alike in all directions. One that is far larger than the others: in each entry."""
    assert not in_entries(np.ones(20)) and in_entries(np.arange(1.0, 21.0) ** -8)
