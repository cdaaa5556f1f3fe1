"""Replays of private models of many terms through their estimators, and mutants that they must find."""

from __future__ import annotations

import dataclasses
import math
import weakref

import numpy as np
import pytest
from term_audit_tools import (
    FORMS,
    MODELS,
    handed_table,
    observe_terms,
    people,
    promised,
    put,
    term_model,
    term_pairs,
)

import fdadp.privacy.kernel._exact_sums as kernel_sums
from fdadp.audit.private_regression_audits import CANARIES, MODES, neighbours_of
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.privacy import Budget, Privacy
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.plan.budget_sharing import norm_of_numbers
from fdadp.private.public.column_ranges import NumberColumn
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.private.whitened.of_any_term import DerivedTerm
from fdadp.private.whitened.of_labels_and_numbers import WhiteLevels
from fdadp.private.whitened.term_registry import MAKERS
from fdadp.regression.formula import parse
from fdadp.regression.private import private_table as private_table
from fdadp.terms.curves.functional_linear import Integral

NOBODY = np.empty(0, dtype=np.int64)


@pytest.mark.statistics
@pytest.mark.parametrize("seed", [1])
def test_models_of_many_terms_cost_at_most_their_budget_and_show_nothing_else(seed):
    result = replay_audit(term_pairs(28, seed=seed), seed=seed)
    assert result.passed, str(result)
    assert result.ratios.max() <= 1.0 and 0.99 < result.changes.max() <= 1.0
    assert result.finished >= 12 and result.releases > 300 and 0.99 < result.worst_map <= 1.0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(11, 16))
def test_two_thousand_tapes(seed):
    """Every model, canary and mode once."""
    every = len(MODELS) * len(CANARIES) * len(MODES)
    result = replay_audit(term_pairs(math.ceil(every / 5), seed=11, skip=math.ceil(every / 5) * (seed - 11)), seed=seed)
    print(result)
    assert result.passed, str(result)
    assert every >= 2000 and result.finished > 200 and 0.99 < result.ratios.max() <= 1.0


def test_replays_cover_all_that_they_should():
    names = [pair.name for pair in term_pairs(600, seed=3)]
    modes = ("deleted", "blanked out", "replaced by", "add-remove", "zero-out", "several rows", "None")
    for word in (*(f"{model}," for model in MODELS), *CANARIES, *(f"as {form} " for form in FORMS), *modes):
        assert sum(word in name for name in names) >= 5, word
    kinds = {"X": "curves", "V": "curves", "z": "numbers", "w": "numbers", "g": "labels", "h": "labels"}
    used = {type(spec) for model in MODELS for spec in parse(model, kinds).terms}
    own = {kind for kind in MAKERS if kind.__module__.startswith("fdadp.")}  # pages add theirs when their code runs
    assert {kind.__name__ for kind in own - used} <= {"ScalarsTogether"}  # linear(), several at once


def test_what_losses_may_add_up_to_is_what_budgets_draw_on():
    for epsilon, delta in ((0.3, 1e-6), (1.0, 1e-6), (8.0, 1e-5), (2.0, None)):
        assert promised(epsilon, delta) == pytest.approx(Budget(epsilon, delta).total, rel=1e-9)


# ------------------------------------------------------------------ mutants


def pairs(formula="Y ~ ff(X) + z + C(g)", kinds=("high", "outside"), delta=1e-6, adjacency="zero-out"):
    """A few neighbours at ε = 8, one of them without the canary."""
    for i, kind in enumerate(kinds):
        n = 60
        table, rows, keep = people(n, np.random.default_rng(i)), np.array([7]), np.arange(n) != 7
        put(table, rows, kind)
        table["z"][20:25] = np.nan
        privacy = Privacy(8.0, delta, n=None if adjacency == "add-remove" else n, adjacency=adjacency)
        model = term_model(formula, privacy)
        first = (handed_table(table, rows, "arrays"), None)
        second = (handed_table(neighbours_of(table, keep), NOBODY, "arrays"), None)
        yield Neighbours(
            kind,
            lambda data, noise, model=model: observe_terms(data, model, noise),
            first,
            second,
            promised(8.0, delta),
        )


def no_check_of_rows(monkeypatch):
    """The kernel's own check on public rows would refuse a function that is not row-local before the first read."""
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._same_everywhere", lambda *_: True)
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", weakref.WeakKeyDictionary())


def added_mu(monkeypatch):
    """A total of μ instead of μ²/2: as if losses of releases added up in μ."""
    right = Budget.__init__

    def mutant(self, epsilon, delta=None, **settings):
        right(self, epsilon, delta, **settings)
        if delta is not None:
            total = math.sqrt(2 * self.total)
            self._fix(total=total, _book=type(self._book)(total))

    monkeypatch.setattr(Budget, "__init__", mutant)


def halved_sensitivity(monkeypatch):
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 2)


def levels_of_the_data(monkeypatch):
    """Codes are the places of labels among those that occur."""
    right = private_table.labels

    def mutant(data, categories, name="y"):
        return right(data, sorted({str(label) for label in data}, reverse=True), name)

    monkeypatch.setattr(private_table, "labels", mutant)


def raw_codes(monkeypatch):
    """Codes about their mean as features, instead of bounded contrasts of public levels."""
    no_check_of_rows(monkeypatch)

    def mutant(self, seen, count):
        codes = seen[self.columns[0]]
        codes = np.where(np.isnan(codes), -50.0, codes)
        return np.repeat((codes - codes.mean())[:, None], count, axis=1)

    monkeypatch.setattr(WhiteLevels, "features", mutant)


def private_location(monkeypatch):
    """Numbers about their own mean instead of the released one."""
    right = NumberColumn.seen
    no_check_of_rows(monkeypatch)

    def mutant(self, values):
        return right(self.placed(float(np.nanmean(self.unit(values))), self.scale), values)

    monkeypatch.setattr(NumberColumn, "seen", mutant)


def filled_with_the_mean(monkeypatch):
    """What is missing is the mean of the numbers that are there."""
    no_check_of_rows(monkeypatch)
    right = NumberColumn.seen

    def mutant(self, values):
        held = np.asarray(values, dtype=np.float64)
        return right(self, np.where(np.isfinite(held), held, held[np.isfinite(held)].mean()))

    monkeypatch.setattr(NumberColumn, "seen", mutant)


def of_the_block(monkeypatch, kind, change):
    """Features of a kind of term that know of the other rows of their block."""
    no_check_of_rows(monkeypatch)
    right = kind.features
    monkeypatch.setattr(kind, "features", lambda self, seen, count: change(right(self, seen, count)))


def centred_features(monkeypatch):
    """Features about their mean over a block of rows."""
    of_the_block(monkeypatch, DerivedTerm, lambda features: features - features.mean(axis=0))


def centred_values(monkeypatch):
    """Values at points about their mean over a block of rows."""
    of_the_block(monkeypatch, DerivedTerm, lambda features: features - features.mean(axis=0))


def integrals_by_the_data(monkeypatch):
    """Integrals as large as those of a block of rows are on average."""
    of_the_block(monkeypatch, DerivedTerm, lambda features: features * (1 + np.tanh(10 * features.mean())))


def residuals_about_their_mean(monkeypatch):
    """Residuals about the mean curve of those of a block of rows."""
    no_check_of_rows(monkeypatch)
    right = RowFunctions.away

    def mutant(self, block):
        away = right(self, block)
        return away - np.nanmean(away, axis=0)

    monkeypatch.setattr(RowFunctions, "away", mutant)


def less_noise(monkeypatch):
    from fdadp.privacy import SeededNoise

    right = SeededNoise.prepare

    def mutant(self, *args):
        sampler = right(self, *args)
        return dataclasses.replace(sampler, scale=sampler.scale / 1.01)

    monkeypatch.setattr(SeededNoise, "prepare", mutant)


VARYING = "Y ~ concurrent(X) + ff(V, limits='s<=t') + z"


@pytest.mark.parametrize("formula", ["Y ~ ff(X) + z + C(g)", "y ~ lf(X) + s(z) + C(g)", VARYING])
def test_the_unmutated_pairs_pass(formula):
    result = replay_audit(pairs(formula))
    assert result.passed, str(result)
    assert result.finished == 2 and 0.9 < result.changes.max() <= 1


@pytest.mark.parametrize(
    ("mutant", "kwargs", "finding"),
    [
        (added_mu, {}, "loss/budget"),
        (halved_sensitivity, {}, "times the sensitivity"),
        (halved_sensitivity, {"delta": None, "formula": "y ~ lf(X) + z"}, "times the sensitivity"),
        (levels_of_the_data, {"kinds": ("outside",)}, "times the sensitivity"),
        (raw_codes, {}, "times the sensitivity"),
        (raw_codes, {"formula": "y ~ lf(X) + C(g)"}, "times the sensitivity"),
        (private_location, {}, "times the sensitivity"),
        (filled_with_the_mean, {"formula": "y ~ z + w"}, "times the sensitivity"),
        (centred_features, {}, "times the sensitivity"),
        (centred_features, {"formula": "y ~ lf(X)"}, "times the sensitivity"),
        (halved_sensitivity, {"formula": VARYING}, "times the sensitivity"),
        (halved_sensitivity, {"formula": VARYING, "delta": None}, "times the sensitivity"),
        (centred_values, {"formula": "Y ~ concurrent(X) + z"}, "times the sensitivity"),
        (integrals_by_the_data, {"formula": "Y ~ ff(X, limits='s<=t')"}, "times the sensitivity"),
        (residuals_about_their_mean, {"formula": VARYING}, "times the sensitivity"),
    ],
)
def test_mutants_go_red(monkeypatch, mutant, kwargs, finding):
    mutant(monkeypatch)
    for pair in pairs(**kwargs):  # until one shows it
        result = replay_audit([pair])
        if any(finding in text for text in result.problems):
            break
    assert not result.passed
    assert any(finding in text for text in result.problems), result.problems


def test_a_feature_by_blas_is_refused_before_the_first_read(monkeypatch):
    """Its last bits depend on the neighbours of a row."""

    def mutant(self, records, t=None):
        values, _, weighted = self._weighted(records, self.rule)
        return values @ weighted

    monkeypatch.setattr(Integral, "features", mutant)
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", {})  # it was checked before it was changed
    result = replay_audit(pairs("y ~ lf(X)", kinds=("high",)))
    assert result.finished == 0


def test_less_noise_than_its_cost_allows_is_refused_before_the_first_read(monkeypatch):
    less_noise(monkeypatch)
    result = replay_audit(pairs(kinds=("high",)))
    assert result.finished == 0 and result.releases == 0


# ------------------------------------------------------------------ bounds that the kernel need not enforce


def trusted_numbers(monkeypatch):
    """A kernel that takes the means and variances of numbers as they come, and clips all else."""
    right, add = Kernel.sum, kernel_sums.add_rows
    trusted = []

    def release(self, contributions, d, clip, share, name, *args, **kwargs):
        trusted.append(name.startswith("means and variances"))
        return right(self, contributions, d, clip, share, name, *args, **kwargs)

    def rows(values, m, clip, limit, norm, total):
        if not trusted or not trusted[-1]:
            return add(values, m, clip, limit, norm, total)
        total += np.trunc(np.nan_to_num(values[:m]) * limit / clip).astype(np.int64).sum(axis=0)

    monkeypatch.setattr(Kernel, "sum", release)
    monkeypatch.setattr(kernel_sums, "add_rows", rows)


@pytest.mark.parametrize("delta", [1e-6, None])
def test_numbers_keep_to_their_bounds_without_the_clip_of_the_kernel(monkeypatch, delta):
    """The declared norm of (u, u² - 1/3) holds for what the rows give: only numbers that are not clipped exceed it."""
    trusted_numbers(monkeypatch)
    formula = "Y ~ z + w"
    assert replay_audit(pairs(formula, kinds=("outside", "high"), delta=delta)).passed

    def unclipped(self, values):
        low, high = self.bounds
        return (np.asarray(values, dtype=np.float64).reshape(len(values)) - (low + high) / 2) / ((high - low) / 2)

    monkeypatch.setattr(NumberColumn, "unit", unclipped)
    result = replay_audit(pairs(formula, kinds=("outside",), delta=delta))
    assert not result.passed and "times the sensitivity" in str(result)


@pytest.mark.parametrize("pure", [False, True])
def test_the_norm_of_numbers_is_reached_and_never_exceeded(pure):
    """Brute force over a grid of numbers on [-1, 1], two of them at once."""
    u = np.linspace(-1, 1, 201)
    a, b = np.meshgrid(u, u)
    rows = np.stack([a.ravel(), b.ravel()], axis=1)
    values = np.hstack((rows, rows**2 - 1 / 3))
    norms = np.abs(values).sum(axis=1) if pure else np.sqrt((values**2).sum(axis=1))
    assert norms.max() == pytest.approx(norm_of_numbers(2, pure=pure))
