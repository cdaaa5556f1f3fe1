"""Private mixed models attacked: neighbours replayed, moves against clips, bounds that no person exceeds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from neighbour_tools import change
from private_settings import regression_settings

from fdadp import FunctionalRegression
from fdadp.audit.black_box import black_box_audit
from fdadp.audit.replay import Neighbours, replay_audit
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import Budget, Cohort, SeededNoise, person_moments
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.private.levels import mixed_model_releases
from fdadp.private.levels.between_within_covariances import PersonRows
from fdadp.private.levels.mixed_model_rows import CENTRED, MixedCoordinates, MixedRows
from fdadp.private.public.column_ranges import LabelColumn, NumberColumn
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.whitened.of_labels_and_numbers import WhiteLevels, WhiteNumbers

T = 24
t = np.linspace(0, 1, T)
FORMULA = "Y ~ age + weekend + C(arm) + re(id, covariance='free')"
BOUNDS = {"Y": (-8, 8), "age": (-1, 1), "weekend": (0, 1), "arm": ["a", "b", "c"]}
pytestmark = pytest.mark.filterwarnings("ignore:n \\* epsilon is")
VARIANTS = {"zero-out": {}, "replace": {"adjacency": "replace"}, "add-remove": {"n": None}, "pure": {"delta": None}}
CANARIES = {"high": 1e9, "infinite": np.inf, "missing": np.nan, "text": "?"}


def sample(persons, seed, most=7):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    Y = rng.normal(size=(persons, 1))[ids] + rng.normal(size=(ids.size, 1)) * np.cos(np.pi * t)
    return {
        "Y": (Y + 0.3 * rng.normal(size=(ids.size, T))).astype(object),
        "age": rng.uniform(-1, 1, persons)[ids].astype(object),
        "weekend": (rng.random(ids.size) < 0.3).astype(object),
        "arm": np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, persons)][ids],
        "id": ids.astype(object),
    }


def model(**given):
    own = {"epsilon": 8.0, "delta": 1e-6, "n": 40, "random_state": 0, "bounds": BOUNDS, "max_rows": 4}
    return FunctionalRegression(
        FORMULA, **regression_settings(**(own | {"within": ("weekend",), "allow_useless": True} | given))
    )


def canary_of_seven_rows(data, kind, rng):
    """Row numbers of a person who stands out in all columns and has more rows than count."""
    person = data["id"][len(data["id"]) // 2]
    keep = data["id"] != person
    seven = {name: np.repeat(column[~keep][:1], 7, axis=0) for name, column in data.items()}
    out = {name: np.concatenate([column[keep], seven[name]]) for name, column in data.items()}
    rows = np.arange(keep.sum(), keep.sum() + 7)
    sign = np.where(rng.random(7) < 0.5, 1, -1)
    value = CANARIES[kind]
    out["Y"][rows] = value if isinstance(value, str) else value * sign[:, None]
    out["age"][rows] = value
    out["weekend"][rows] = sign > 0
    out["arm"][rows] = "elsewhere" if isinstance(value, str) else "c"
    return out, rows


def neighbours(kinds=tuple(CANARIES), variants=tuple(VARIANTS), laws=("mean", "exchangeable"), half=None):
    """Neighbours of all settings, or of half of them, 0 or 1: each kind with each variant, laws in turn."""
    for number, (kind, variant, law) in enumerate(itertools.product(kinds, variants, laws)):
        if half not in (None, (kinds.index(kind) + variants.index(variant) + laws.index(law)) % 2):
            continue
        first, rows = canary_of_seven_rows(sample(40, number), kind, np.random.default_rng(number))
        second = {name: column.copy() for name, column in first.items()}
        for name, column in second.items():
            if variant == "replace":
                column[rows] = {"Y": 0.0, "age": 0.0, "weekend": 0.0, "arm": "a"}.get(name, column[rows])
            elif variant != "add-remove":
                column[rows] = None if name in ("arm", "id") else np.nan
        if variant == "add-remove":
            second = {name: np.delete(column, rows, axis=0) for name, column in first.items()}
        how = VARIANTS[variant] | {"person_rows": law}

        def run(data, noise, how=how):
            fitted = model(**how)
            fitted._noise = noise
            fitted.fit(data, grids={"Y": t})
            del fitted._noise
            new = {"age": np.zeros(2), "weekend": np.ones(2), "arm": np.array(["a", "b"])}
            return {
                "numbers": [fitted.predict(new), fitted.predict_se(new), *fitted.predict_interval(new)],
                "attributes": {name: value for name, value in vars(fitted).items() if name != "privacy"},
                "texts": [str(fitted.ledger_), str(fitted.summary()), str(fitted.plan_), *fitted.notes_],
            }

        budget = Budget(8.0, how.get("delta", 1e-6))
        yield Neighbours(f"{kind}, {variant}, {law}", run, first, second, budget.total)


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.statistics)])
def test_fits_cost_at_most_their_budget_and_show_nothing_else(half):
    result = replay_audit(neighbours(half=half), seed=3)
    assert result.passed, str(result)
    assert 0.9 < result.changes.max() <= 1 and result.finished == 16


def test_the_audit_notices_a_kernel_that_clips_rows_and_not_persons(monkeypatch):
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *args: right(self, *args) / 4)  # of four rows in one
    assert not replay_audit(neighbours(("high",), ("zero-out",)), seed=1).passed


def test_the_audit_notices_a_fit_that_looks_at_a_row(monkeypatch):
    """The largest curve that some row function saw goes into the effects."""
    right, seen = MixedRows.left, []

    def looked(self, block):
        out = right(self, block)
        seen.append(np.nanmax(np.abs(out), initial=0.0))
        return out

    rough = mixed_model_releases._rough_mean

    def leaks(own):
        size = rough(own)
        own.rows.effects[0, 0] += 1e-9 * max(seen)
        return size

    monkeypatch.setattr(MixedRows, "left", looked)
    monkeypatch.setattr(mixed_model_releases, "_rough_mean", leaks)
    assert not replay_audit(neighbours(("high",), ("zero-out",)), seed=1).passed


def test_a_person_of_seven_rows_moves_no_sum_by_more_than_its_sensitivity():
    first, rows = canary_of_seven_rows(sample(40, 0), "high", np.random.default_rng(0))
    second = {name: column.copy() for name, column in first.items()}
    second["Y"][rows] = np.where(np.arange(7)[:, None] % 2, 7.0, -7.0)

    def fit(data):
        model(adjacency="replace").fit(data, grids={"Y": t})

    assert 0 < change(fit, first, second) <= 1


# Products of features: a person never exceeds their bounds, and reaches them.


def coordinates(pooled, most=6):
    columns = (NumberColumn("x", 0, (0.0, 1.0), 0.0, 1.0), LabelColumn("g", 1, ("a", "b", "c")))
    weights = quadrature_weights(t)
    functions, shares = PublicPrior(n_response=5).response_functions(t, weights)
    terms = (WhiteNumbers.of("x", "x"), WhiteLevels.of("g", columns[1]))
    return MixedCoordinates(columns, terms, (True, True), functions, shares, weights, (-8.0, 8.0), pooled, most)


@pytest.mark.parametrize("pooled", [False, True])
def test_products_of_features_are_never_clipped_inside_the_bounds(pooled):
    public = coordinates(pooled)
    rows = MixedRows(public)
    rng, largest = np.random.default_rng(0), [0.0, 0.0]
    for n in range(1, public.max_rows + 1):
        for draw in range(200):
            x, g = rng.choice([-1e300, 0.0, 1.0, 1e300, np.nan], n), rng.choice([0.0, 1.0, 2.0, np.nan], n)
            if draw < 2:  # rows at opposite ends, and all at one
                x, g = (np.arange(n) % 2 * 2.0 - 0.5, np.arange(n) % 2 * 2.0) if draw else (np.ones(n), np.zeros(n))
            block = [np.full((1, public.max_rows, a), np.nan) for a in (5, 1, 1, 4)]
            made = rows.coordinates((x, g, rng.normal(size=(n, T))))
            for own, values in zip(block, made, strict=True):
                own[0, :n] = values
            mean = rows.of_means(rows.means(tuple(block)))
            within = person_moments(rows.varying(tuple(block)), CENTRED)
            largest[0] = max(largest[0], float((mean**2).sum()))
            at = np.cumsum([0, 3, 2])  # the diagonal: the trace, and so the Frobenius norm
            largest[1] = max(largest[1], float(within[0, at].sum()))
    assert largest[0] <= public.most_of_means * (1 + 1e-12) and largest[1] <= public.most_within * (1 + 1e-12)
    assert largest[0] > 0.99 * public.most_of_means and largest[1] > 0.65 * public.most_within


@pytest.mark.parametrize("formula", ["Y ~ s(age)", "Y ~ te(age, weekend)", "Y ~ age:C(arm)", "Y ~ s(age, by=arm)"])
def test_functions_of_numbers_and_labels_stay_within_their_bounds(formula):
    fitted = FunctionalRegression(
        f"{formula} + re(id, covariance='free')",
        **regression_settings(
            epsilon=8.0, delta=1e-6, n=40, random_state=0, bounds=BOUNDS, max_rows=4, allow_useless=True
        ),
    ).fit(sample(40, 0), grids={"Y": t})
    (design,) = [own for own in fitted.fitted_.fit.form.designs if own.name not in ("(Intercept)", "s(t)")]
    rng = np.random.default_rng(0)
    values = {"age": rng.uniform(-1, 1, 5000), "weekend": rng.random(5000), "arm": rng.integers(0, 3, 5000) * 1.0}
    seen = {column.name: column.seen(values[column.name])[0] for column in design.located}
    norms = (design.term.features(seen, design.count) ** 2).sum(axis=1)
    assert 0.5 * design.term.most < norms.max() <= design.term.most
    assert design.count <= 6


def test_two_opposite_rows_reach_the_bound_within_persons():
    columns = (NumberColumn("x", 0, (-1.0, 1.0), 0.0, 1.0),)
    public = coordinates(False)
    one = MixedCoordinates(
        columns,
        (WhiteNumbers.of("x", "x"),),
        (True,),
        *(getattr(public, name) for name in ("response", "shares", "weights", "y_bounds", "pooled", "max_rows")),
    )
    x = np.where(np.arange(6) % 2, 1.0, -1.0)[None, :, None]
    assert person_moments(x, CENTRED)[0, 0] == one.most_within == 6.0


def test_slopes_of_the_sign_of_the_truth_where_features_are_at_their_bounds():
    """A clip of the products below their bound gave effects of the wrong sign with intervals that hold .04."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(5000), 6)
    x = rng.choice([-1.0, 1.0], ids.size)
    Y = np.outer(x, 0.3 + 0 * t) + rng.normal(size=(5000, 1))[ids] + 0.5 * rng.normal(size=(ids.size, T))
    for law in ("mean", "exchangeable"):
        fitted = FunctionalRegression(
            "Y ~ x + re(id, covariance='free')",
            **regression_settings(
                epsilon=1.0, delta=1e-6, n=5000, random_state=0, bounds={"Y": (-6, 6), "x": (-1, 1)}, max_rows=6
            ),
            within=("x",),
            person_rows=law,
        ).fit({"Y": Y, "x": x, "id": ids}, grids={"Y": t})
        frame = fitted.coef("x", se=True, t=t)
        assert abs(frame["value"].mean() - 0.3) < 0.02
        assert ((frame["lower"] < 0.3) & (frame["upper"] > 0.3)).mean() > 0.8


# Black box: many fits of two neighbours, and what an attacker can tell from what they give.


def row_shares(present, seed):
    """Persons with four rows, as released, where perhaps one of nine has them; nearly all of the budget for that.

    Of all releases together an attacker learns too little in so few fits.
    """
    public = coordinates(False, most=4)
    ids = np.repeat(np.arange(9), [*[2] * 8, 4])
    Y = np.zeros((ids.size, T))
    Y[ids == 8] = 0.0 if present else np.nan
    cohort = Cohort(
        (np.zeros(ids.size), np.zeros(ids.size), Y), groups=ids, budget=Budget(1.0, 0.1), n=9, noise=SeededNoise(seed)
    )
    own = cohort.by_person(MixedRows(public).coordinates, max_rows=4)
    return own.histogram(PersonRows().counts, share=0.95, name="rows").value[3]


@pytest.mark.statistics
def test_an_attacker_finds_no_more_than_was_promised_and_a_third_of_the_noise_is_found(monkeypatch):
    """Of noise too small by √2 so few draws find less than one in a hundred: replays find what attacks do not."""

    def attacked(draws):
        scores = [np.array([row_shares(side, seed + side * draws) for seed in range(draws)]) for side in (1, 0)]
        return black_box_audit(*scores, epsilon=1.0, delta=0.1, level=0.999)

    assert attacked(600).passed
    right = Kernel.sensitivity
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: right(self, *a) / 3)
    assert not attacked(600).passed


def test_sums_of_a_plan_are_one():
    for pooled, pure in itertools.product((False, True), repeat=2):
        for eta in (1e-5, 1e-3, 0.1):
            shares = mixed_model_releases.shares_of(coordinates(pooled), eta, pure=pure)
            assert math.fsum(shares.values()) == pytest.approx(1.0) and min(shares.values()) > 0
