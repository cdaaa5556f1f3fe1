"""Audits: exact replays of private fits through the estimator, lower bounds on epsilon, and mutants that must show."""

from __future__ import annotations

import dataclasses
import functools
import gc
import itertools
import logging
import math
import threading
import types
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import fdadp.privacy.kernel._exact_sums as kernel_sums
import fdadp.privacy.kernel._kernel as kernel_module
from fdadp import AdditiveFunctionOnFunction, PrivateMean
from fdadp.audit import Neighbours, audit, black_box_audit, one_run_audit, replay_audit
from fdadp.audit.mechanism_audits import published_scores
from fdadp.audit.private_regression_audits import (
    CANARIES,
    HANDED,
    MODES,
    X_BOUNDS,
    Y_BOUNDS,
    canary,
    handed,
    loss_scores,
    observe_fit,
    one_run,
    replay_pairs,
    simulated,
)
from fdadp.audit.replay import difference, fingerprint
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, Cohort, Privacy, SeededNoise
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.release import plan_and_spend
from fdadp.private.release import planned_releases as releases

# ------------------------------------------------------------------ replays of the private fit


@pytest.mark.statistics
def test_the_fit_costs_at_most_its_budget_and_shows_nothing_else():
    result = replay_audit(replay_pairs(24, seed=1), seed=1)
    assert result.passed, str(result)
    assert result.ratios.max() <= 1.0 and result.changes.max() <= 1.0
    assert result.finished >= 15 and result.releases > 100 and 0.99 < result.worst_map <= 1.0


@pytest.mark.statistics
def test_moments_cost_at_most_their_budget_and_show_nothing_else():
    result = replay_audit(replay_pairs(20, mechanism="moments", seed=4), seed=4)
    assert result.passed, str(result)
    assert result.finished >= 15 and 0.5 < result.ratios.max() <= 1.0


def test_a_few_tapes_of_moments():
    result = replay_audit(replay_pairs(3, mechanism="moments", seed=4), seed=4)
    assert result.passed, str(result)
    assert result.finished == 3 and 0.5 < result.ratios.max() <= 1.0


@pytest.mark.long
def test_a_thousand_tapes():
    result = replay_audit(replay_pairs(1080, seed=11), seed=11)
    print(result)
    assert result.passed, str(result)
    assert result.finished > 900 and 0.95 < result.ratios.max() <= 1.0 and 0.99 < result.worst_map <= 1.0


def test_replays_cover_all_that_they_should():
    names = [pair.name for pair in replay_pairs(len(CANARIES) * len(MODES), seed=3)]
    assert len(set(names)) == len(names)
    modes = ("deleted", "blanked out", "replaced by", "add-remove", "zero-out", "several rows", "None")
    for word in (*CANARIES, *HANDED, *modes):
        assert sum(word in name for name in names) >= 5, word


# ------------------------------------------------------------------ mutants


RAW: dict[str, np.ndarray] = {}
"""Where a mutant finds the rows that the kernel hides."""


def private(epsilon=8.0, delta=1e-6, **settings):
    """Model to fit, within the bounds of the simulated curves."""
    bounds = {"X": X_BOUNDS, "Y": Y_BOUNDS}
    return AdditiveFunctionOnFunction(privacy=Privacy(epsilon, delta, **settings), bounds=bounds, progress=False)


def pairs(adjacency="zero-out", grouped=False, blank=False, kinds=("high", "outside"), delta=1e-6):
    """A few neighbours at ε = 8."""
    for i, kind in enumerate(kinds):
        n = 60
        x, y, _ = simulated(1 + i, n, i)
        x[7], y[7] = canary(kind, np.linspace(0, 1, x.shape[1]))
        keep = np.arange(n) != 7
        ids = np.arange(n).astype(object) if grouped else None
        second = (x[keep], y[keep], None if ids is None else ids[keep])
        if blank:
            left_out = ids.copy()
            left_out[7] = None
            second = (x, y, left_out)
        model = private(delta=delta, n=None if adjacency == "add-remove" else n, adjacency=adjacency)

        def run(data, noise, model=model):
            RAW["x"], RAW["y"] = data[0], data[1]
            return observe_fit(data, model, noise)

        yield Neighbours(kind, run, (x, y, ids), second, Budget(8.0, delta).total)


def unnoised_mean(monkeypatch):
    right = releases.mean_response

    def mutant(releases, rows):
        result = right(releases, rows)
        rows.mean = rows.mean + 1e-9 * RAW["y"].mean()
        return result

    monkeypatch.setattr(releases, "mean_response", mutant)


def unreleased_location(monkeypatch):
    right = releases.locate

    def mutant(releases, rows):
        right(releases, rows)
        own = rows.columns["X"]
        rows.columns["X"] = own.placed(float(np.mean(np.clip(RAW["x"], -5, 5))), own.scale)

    monkeypatch.setattr(releases, "locate", mutant)


def raw_maximum_as_clip(monkeypatch):
    right = Cohort.sum

    def mutant(self, f, *, clip, name, **kwargs):
        clip = float(np.abs(RAW["y"]).max()) if name == "mean of Y" else clip
        return right(self, f, clip=clip, name=name, **kwargs)

    monkeypatch.setattr(Cohort, "sum", mutant)


def halved_sensitivity(monkeypatch):
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 2)


def less_noise(monkeypatch):
    right = SeededNoise.prepare

    def mutant(self, *args):
        sampler = right(self, *args)
        return dataclasses.replace(sampler, scale=sampler.scale / 1.01)

    monkeypatch.setattr(SeededNoise, "prepare", mutant)


def doubled_clip(monkeypatch):
    right = kernel_sums.add_rows
    monkeypatch.setattr(
        kernel_sums, "add_rows", lambda v, m, clip, limit, norm, out: right(v, m, clip, 2 * limit, norm, out)
    )


def missing_clip(monkeypatch):
    def mutant(values, m, clip, limit, norm, total):
        total += np.trunc(np.nan_to_num(values[:m]) * limit / clip).astype(np.int64).sum(axis=0)

    monkeypatch.setattr(kernel_sums, "add_rows", mutant)


def missing_mask(monkeypatch):
    """NaN reaches the cast to int64, where it wraps."""

    def cast(values, m, clip, limit, norm, total):
        lengths = np.sqrt((values[:m] ** 2).sum(axis=1, keepdims=True))
        total += np.trunc(values[:m] * limit / np.maximum(lengths, clip)).astype(np.int64).sum(axis=0)

    monkeypatch.setattr(kernel_sums, "add_rows", cast)


def exact_n(monkeypatch):
    right = plan_and_spend.release_n

    def mutant(cohort):
        _, left = right(cohort)
        return float(len(RAW["x"])), left

    monkeypatch.setattr(plan_and_spend, "release_n", mutant)


def chatty(monkeypatch):
    """A progress line that tells how many usable people there are."""
    right = releases.locate

    def mutant(*args):
        print(len(RAW["x"]), "curves")
        right(*args)

    monkeypatch.setattr(releases, "locate", mutant)


def keeps_data(monkeypatch):
    right = AdditiveFunctionOnFunction._keep

    def mutant(model, fitted):
        model._training_mean = RAW["x"].mean(axis=0)
        return right(model, fitted)

    monkeypatch.setattr(AdditiveFunctionOnFunction, "_keep", mutant)


def test_the_unmutated_pairs_pass():
    for kwargs in ({}, {"adjacency": "add-remove"}, {"grouped": True, "blank": True}):
        result = replay_audit(pairs(**kwargs))
        assert result.passed, str(result)
        assert result.finished == 2


def test_runs_that_fail_before_their_first_release_have_shown_nothing():
    """A stale mutant whose runs raised alike on both sides once counted as a pass."""

    def run(data, noise):
        raise TypeError("a signature of yesterday")

    result = replay_audit([Neighbours("p", run, 0, 1, 1.0)])
    assert not result.passed
    assert "TypeError came before the first release" in str(result)


@pytest.mark.parametrize(
    ("mutant", "kwargs", "finding"),
    [
        (unnoised_mean, {}, "result"),
        (unreleased_location, {}, "result"),
        (raw_maximum_as_clip, {}, "result"),
        (halved_sensitivity, {}, "times the sensitivity"),
        (halved_sensitivity, {"delta": None}, "times the sensitivity"),
        (less_noise, {"delta": None}, "OpenDP's map"),  # with a δ the kernel itself refuses such noise
        (doubled_clip, {}, "times the sensitivity"),
        (missing_clip, {}, "times the sensitivity"),
        (missing_mask, {"kinds": ("missing",)}, "times the sensitivity"),
        (exact_n, {"adjacency": "add-remove"}, "result"),
        (chatty, {}, "printed"),
        (keeps_data, {}, "_training_mean"),
    ],
)
def test_mutants_go_red(monkeypatch, mutant, kwargs, finding):
    mutant(monkeypatch)
    for pair in pairs(**kwargs):  # until one shows it
        result = replay_audit([pair])
        if any(finding in text or "error" in text for text in result.problems):
            break
    assert not result.passed
    assert any(finding in text or "error" in text for text in result.problems), result.problems
    assert "VIOLATION" in str(result)


# ------------------------------------------------------------------ the generic audits


def cohort_sum(rows, noise, peek=None):
    c = Cohort(rows, budget=Budget(1.0), n=4, noise=noise)
    value = c.sum(lambda r: r[0], clip=1.0, share=1.0, name="s").value
    return {"value": value, "ledger": c.ledger, "peek": None if peek is None else peek(rows)}


ROWS = np.array([[3.0], [0.2], [np.nan], [-0.5]])


def test_replay_compares_arrays_errors_warnings_and_log():
    import warnings

    def fails(rows):
        raise ValueError(f"{len(rows)} rows")

    ways = {
        "result": np.nansum,
        "error": fails,
        "warnings": lambda rows: warnings.warn(f"{len(rows)}", stacklevel=1),
        "log": lambda rows: logging.getLogger("x").warning("%d rows", len(rows)),
        "printed": lambda rows: print(len(rows)),
    }
    for where, peek in ways.items():
        pair = Neighbours("p", lambda rows, noise, peek=peek: cohort_sum(rows, noise, peek), ROWS, ROWS[1:], 1.0)
        result = replay_audit([pair])
        assert not result.passed and where in result.problems[0]
    good = replay_audit([Neighbours("p", cohort_sum, ROWS, ROWS[1:], 1.0)])
    assert good.passed and 0.999 < good.ratios[0] <= 1 and good.pure_losses[0] <= 1
    small = replay_audit([Neighbours("p", cohort_sum, ROWS, ROWS[1:], 0.5)])  # claims half of what it spends
    assert "loss/budget 2.0000" in str(small)
    with pytest.raises(InputError, match="at least one pair"):
        replay_audit([])


def forgotten(path):
    """Leave an open file to the collector, which will warn of it."""
    file = path.open("w")
    cycle = [file]
    cycle.append(cycle)


@pytest.mark.parametrize("whose", ["others", "the run's"])
def test_what_a_run_itself_forgot_is_compared_and_what_others_forgot_is_not(tmp_path, whose):
    def run(rows, noise):
        if whose != "others":
            forgotten(tmp_path / f"{len(rows)}.txt")
        gc.collect()  # as it may happen at any moment
        return cohort_sum(rows, noise)

    forgotten(tmp_path / "others.txt")
    result = replay_audit([Neighbours("p", run, ROWS, ROWS[1:], 1.0)])
    assert result.passed == (whose == "others"), str(result)
    assert result.passed or "3.txt" in result.problems[0]


def test_what_dask_says_of_its_own_pace_is_no_finding_and_what_it_says_of_rows_is(caplog):
    slow = "Event loop was unresponsive in %s for %.2fs.  This is often caused by"  # as distributed.core has it
    saying = {
        ("distributed.core", logging.INFO, slow, "Nanny", 3.14): True,
        ("distributed.gc", logging.WARNING, "full garbage collections took %d%% CPU time recently", 11): True,
        ("distributed.core", logging.ERROR, "Exception while handling op %s", 5.25): False,
        ("distributed.worker", logging.WARNING, "Compute Failed: ValueError('%s')", 5.25): False,
    }
    for (name, level, *text), passes in saying.items():
        say, told = logging.getLogger(name).log, []

        def run(rows, noise, say=say, of=(level, *text), told=told):
            if not told:  # in the first of two runs, from another thread
                told.append(threading.Thread(target=say, args=of))
                told[0].start()
                told[0].join()
            return cohort_sum(rows, noise)

        with caplog.at_level(logging.INFO, name):
            result = replay_audit([Neighbours("p", run, ROWS, ROWS[1:], 1.0)])
        assert result.passed == passes, (name, str(result))


def test_fingerprints_see_single_bits():
    class Holder:
        def __init__(self, a):
            self.a = a
            self.me = self

    a = np.array([0.1, 0.2])
    b = a.copy()
    assert difference(fingerprint(Holder(a)), fingerprint(Holder(b))) == ""
    b[1] = np.nextafter(0.2, 1)
    assert ".a" in "." + difference(fingerprint(Holder(a)), fingerprint(Holder(b)))
    for one, other in ((0.0, -0.0), (1, 1.0), (a, a.astype(np.float32)), ([1], [1, 2]), ({"a": 1}, {"b": 1})):
        assert difference(fingerprint(one), fingerprint(other)) != ""
    assert difference(fingerprint(math.nan), fingerprint(math.nan)) == ""


def test_fingerprints_see_what_is_held_on_to():
    class Reader:
        def __init__(self, rows):
            self.rows = rows

        def read(self):
            return 0

    def closing(rows):
        return lambda: rows

    def partly(rows):
        return functools.partial(print, rows)

    def waiting(rows):
        def generate():
            held = rows
            yield held

        running = generate()
        next(running)
        return running

    def after(rows):
        try:
            try:
                raise ValueError(rows.shape)
            except ValueError:
                raise InputError("constant")  # noqa: B904
        except InputError as error:
            return error

    def because(rows):
        error = InputError("constant")
        error.__cause__ = ValueError(rows.tobytes())
        return error

    def holding(rows):
        def default(kept=rows):
            return kept

        return default

    ways = [closing, partly, waiting, after, because, holding, lambda rows: Reader(rows).read]
    ways += [pd.DataFrame, np.ma.MaskedArray, lambda rows: {rows.shape}]
    for way in ways:
        assert difference(fingerprint(way(ROWS)), fingerprint(way(ROWS.copy()))) == ""
        assert difference(fingerprint(way(ROWS)), fingerprint(way(ROWS[1:]))) != "", way


class Failing:
    """A source that fails in its second chunk, with a text of its own."""

    def __init__(self, rows, text):
        self.rows, self.text = rows, text

    def __iter__(self):
        yield (self.rows,)
        yield (self.rows * 2,)
        raise ValueError(self.text)


def failing_sum(data, noise):
    cohort = Cohort(data, budget=Budget(1.0), n=4, noise=noise)
    return cohort.sum(lambda r: r[0], clip=1.0, share=1.0, name="s").value


def test_replay_sees_what_an_error_keeps_alive(monkeypatch):
    """The frames that an error came through hold rows and sums, unless the kernel lets go of them."""
    pair = Neighbours("p", failing_sum, Failing(ROWS, "the first"), Failing(ROWS[1:], "the second"), 1.0)
    assert replay_audit([pair]).passed

    def open_sum(*args, **kwargs):
        try:
            return kernel_sums.exact_sum.__wrapped__(*args, **kwargs)
        except ValueError:
            failed = True
        if failed:
            raise PrivacyError("the source failed")

    monkeypatch.setattr(kernel_module, "exact_sum", open_sum)
    assert replay_audit([pair]).passed  # let go of, by hand

    def leaky_sum(vault, *args, **kwargs):
        sums = [np.nansum(rows[0]) for rows, _, _ in itertools.islice(vault.blocks(), 2)]
        raise PrivacyError("the source failed") if sums is not None else None

    monkeypatch.setattr(kernel_module, "exact_sum", kernel_function(leaky_sum))
    result = replay_audit([pair])
    assert not result.passed and "frames" in result.problems[0], result.problems

    def chained_sum(*args, **kwargs):
        try:
            return kernel_sums.exact_sum.__wrapped__(*args, **kwargs)
        except ValueError:
            raise PrivacyError("the source failed")  # noqa: B904

    monkeypatch.setattr(kernel_module, "exact_sum", chained_sum)
    result = replay_audit([pair])
    assert not result.passed and "context" in result.problems[0], result.problems


def kernel_function(function):
    """The same function, as if it stood in the kernel: the audit looks into the frames of nobody else."""
    names = {**globals(), "__name__": "fdadp.privacy._mutant"}
    return types.FunctionType(function.__code__, names, closure=function.__closure__)


@pytest.mark.parametrize("how", HANDED[1:])
def test_a_fit_that_keeps_the_type_of_the_table_goes_red(monkeypatch, how):
    """What pandas or NumPy made of a table tells whether somebody's entry is text, masked, or a long double."""
    x, y, _ = simulated(1, 60, 0)
    keep, rows, nobody = np.arange(60) != 7, np.array([7]), np.empty(0, dtype=int)
    x[7, 0] = y[7, 0] = np.nan
    sides = [(handed(a, r, how), handed(b, r, how), None) for a, b, r in ((x, y, rows), (x[keep], y[keep], nobody))]
    setting = private(n=60)
    pair = Neighbours(how, lambda data, noise: observe_fit(data, setting, noise), *sides, Budget(8.0, 1e-6).total)
    result = replay_audit([pair])
    assert result.passed and 0 < result.changes[0] <= 1, str(result)

    right = AdditiveFunctionOnFunction._keep

    def mutant(model, fitted):
        model._kind = str(np.asarray(RAW["x"]).dtype) + str(type(RAW["x"]))
        return right(model, fitted)

    monkeypatch.setattr(AdditiveFunctionOnFunction, "_keep", mutant)

    def run(data, noise):
        RAW["x"] = data[0]
        return observe_fit(data, setting, noise)

    result = replay_audit([Neighbours(how, run, *sides, Budget(8.0, 1e-6).total)])
    assert not result.passed and "_kind" in str(result), str(result)


@pytest.mark.parametrize("failing", [False, True])
def test_shuffled_and_failing_sources_show_nothing(failing):
    """A source that gives its rows in another order on each pass, and one that fails in a later one."""
    rng = np.random.default_rng(0)
    ids = np.array([*range(60), *[7] * 9])
    curves = np.where(ids[:, None] == 7, 7.5, rng.normal(size=(69, 1))) * np.ones(6)

    def source(keep):
        passes = []

        def read():
            passes.append(0)
            order = np.random.default_rng(len(passes)).permutation(np.flatnonzero(keep))
            for at in np.array_split(order, 5):
                yield curves[at], ids[at]
            if failing and len(passes) > 4:
                raise ValueError(f"{int(keep.sum())} rows")

        return read

    def run(data, noise):
        privacy = Privacy(epsilon=8.0, delta=1e-6, n=60, random_state=0)
        with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
            return vars(
                PrivateMean(privacy=privacy, bounds=Y_BOUNDS).fit_chunks(data, t=np.linspace(0, 1, 6), groups=True)
            )

    with mock.patch("fdadp.privacy.rows._vault.KEPT", 0):
        everybody, others = source(np.full(69, True)), source(ids != 7)
        result = replay_audit([Neighbours("p", run, everybody, others, Budget(8.0, 1e-6).total)])
    assert result.passed, str(result)
    assert result.finished == (not failing) and 0 < result.changes[0] <= 1


def test_the_lower_bound_is_seldom_above_the_truth():
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(100):
        present, absent = rng.laplace(size=(2, 400)) + np.array([[1.0], [0.0]])
        above += not black_box_audit(present, absent, epsilon=1.0).passed
    assert above <= 10  # level 0.95
    with pytest.raises(InputError, match="20 scores"):
        black_box_audit(np.zeros(3), np.zeros(30), epsilon=1.0)
    with pytest.raises(InputError, match="level"):
        black_box_audit(np.zeros(30), np.zeros(30), epsilon=1.0, level=1)


def test_the_lower_bound_honours_delta():
    """A mechanism that tells the truth with probability δ, else nothing."""
    rng = np.random.default_rng(1)
    present = np.where(rng.random(20_000) < 0.1, 1.0, 0.0)
    absent = np.zeros(20_000)
    assert black_box_audit(present, absent, epsilon=0.1, delta=0.12).found == 0
    assert black_box_audit(present, absent, epsilon=0.1, delta=0.01).found > 3


@pytest.mark.statistics
def test_one_run_bound_holds_for_randomised_response():
    """The worst case of the theorem: each canary's bit is told right with probability e^ε/(1 + e^ε)."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(60):
        included = rng.random(1000) < 0.5
        told = np.where(rng.random(1000) < 1 / (1 + math.exp(-1.0)), included, ~included)
        found.append(one_run_audit(included, told + 0.0, epsilon=1.0, guesses=1000))
    assert sum(not f.passed for f in found) <= 8
    assert 0.7 < np.mean([f.found for f in found]) < 1
    assert one_run_audit(included, told + 0.0, epsilon=1.0, delta=0.01).found < found[-1].found
    # The bound is that of the binomial law: 60 of 60 right, P(W >= 60) = rate^60 = 0.05.
    sure = one_run_audit(np.arange(120) % 2 == 0, (np.arange(120) % 2 == 0) + 0.0, epsilon=1.0, guesses=60)
    rate = 0.05 ** (1 / 60)
    assert sure.found == pytest.approx(math.log(rate / (1 - rate)), abs=1e-6)
    for scores, guesses in ((np.zeros(3), 2), (np.zeros(120), 1), (np.full(120, np.nan), 20)):
        with pytest.raises(InputError):
            one_run_audit(np.zeros(120, dtype=bool), scores, epsilon=1.0, guesses=guesses)


# ------------------------------------------------------------------ the mechanisms


@pytest.mark.statistics
@pytest.mark.parametrize("n", [35, 100])
def test_the_published_scheme_is_broken(n):
    present, absent = published_scores(n, epsilon=0.2, draws=14_000)
    result = black_box_audit(present, absent, epsilon=0.6)
    assert not result.passed and result.found >= 7


def test_audit_of_the_published_scheme_says_so():
    result = audit("published", 35, draws=2000, seed=1)
    assert not result.passed and result.black_box[35].found > 3
    assert str(result).startswith("published: VIOLATION: the claim is false")


@pytest.mark.statistics
@pytest.mark.parametrize(("epsilon", "delta"), [(4.0, 1e-6), (1.0, None)])
def test_no_violation_of_dp_aff(epsilon, delta):
    present, absent = loss_scores(60, epsilon=epsilon, delta=delta, draws=20)
    result = black_box_audit(present, absent, epsilon=epsilon, delta=delta or 0)
    assert result.passed, str(result)
    if delta is None:
        assert np.abs([present, absent]).max() <= epsilon
    else:  # the mean loss is a divergence: at most ρ, here with room for chance
        rho = Budget(epsilon, delta).total
        assert present.mean() < rho + 4 * math.sqrt(2 * rho / 20)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_violation_of_dp_aff_with_many_draws(epsilon):
    present, absent = loss_scores(100, epsilon=epsilon, delta=1e-6, draws=400)
    result = black_box_audit(present, absent, epsilon=epsilon, delta=1e-6)
    rho = Budget(epsilon, 1e-6).total
    print(f"{result}; mean loss {present.mean():.4f}, sd {present.std():.4f}, rho {rho:.4f}")
    assert result.passed
    assert present.mean() < rho + 4 * math.sqrt(2 * rho / 400)
    assert present.std() < 1.2 * math.sqrt(2 * rho)


def test_one_run_of_dp_aff():
    included, scores = one_run(300, epsilon=1.0, delta=1e-6)
    result = one_run_audit(included, scores, epsilon=1.0, delta=1e-6)
    assert result.passed, str(result)
    included, scores = one_run(1, epsilon=None, delta=None, canaries=60)  # without privacy the same attack works
    assert not one_run_audit(included, scores, epsilon=0.2).passed


@pytest.mark.statistics
def test_audit_of_dp_aff_in_small():
    result = audit("dp-aff", 60, draws=20, tapes=6)
    assert result.passed and result.replay is not None and result.one_run is not None
    text = str(result)
    assert text.startswith("dp-aff: no violation found") and "6 tapes" in text and "one-run audit" in text
    for kwargs in ({"draws": 3}, {"epsilon": -1.0}, {"n": 5}, {"tapes": 0}, {"delta": 1.5}):
        with pytest.raises(InputError):
            audit("dp-aff", **kwargs)
    with pytest.raises(InputError, match="mechanism"):
        audit("magic")


def test_noise_of_an_audit_is_not_for_release():
    x, y, _ = simulated(1, 60, 0)
    setting = private(epsilon=2.0, n=60)
    seen = observe_fit((x, y, None), setting, SeededNoise(0))
    assert "not for release" in seen["texts"][0].splitlines()[0]
