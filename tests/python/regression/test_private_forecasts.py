"""Private fits about what is known without them: offsets, functions of rows, anchors of forecasts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

from fdadp import DPAFF, AdditiveFunctionOnFunction, FunctionalRegression, Privacy, ScalarRegression
from fdadp.audit.replay import Neighbours, difference, drawing_from, fingerprint, replay_audit
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget, TapeNoise
from fdadp.privacy.replayed_loss import losses
from fdadp.private.denoise.empirical_bayes import CALIBRATION_EDGES, HEAVY_INVERSE_DOF, predictive
from fdadp.private.public.gaussian_process_prior import PublicPrior
from fdadp.private.public.tuned_constants import GAUSSIAN
from fdadp.private.release import dp_aff
from fdadp.private.release.plan_and_spend import preview
from fdadp.private.release.residual_sizes import _closer
from fdadp.private.rows.anchored_forecasts import MEAN_SQUARE
from fdadp.private.rows.errors_by_record import ONE_ERROR, SPREAD, Probe, factors
from fdadp.regression.reading.computed_columns import OF_CURVES, bounds_of, expression

S = np.linspace(0, 1, 24)
GRIDS = {"X": S, "Y": S, "o": S}
BOUNDS = {"X": (-5.0, 5.0), "Y": (-5.0, 5.0), "o": (-2.0, 2.0)}
ANCHOR = "0.5 * last(X) + 0.5 * mean(X)"


def days(n, seed=0):
    """A slowly moving quantity, its first and its second half, a curve and a number beside it."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.normal(size=(n, 2 * S.size)), axis=1) * 0.15
    both = rng.normal(size=(n, 1)) + steps + 0.2 * rng.normal(size=steps.shape)
    return {
        "X": both[:, : S.size],
        "Y": both[:, S.size :],
        "o": 0.5 * rng.normal(size=(n, 1)) * np.ones(S.size),
        "z": rng.uniform(20, 80, n),
        "y": both[:, -1],
    }


def anchor(x):
    weights = np.full(S.size, 1 / (S.size - 1))
    weights[[0, -1]] /= 2
    return 0.5 * x[:, -1] + 0.5 * x @ weights


def fitted(data, n=400, offset=None, formula="Y ~ ff(X)", bounds=BOUNDS, epsilon=1.0, **settings):
    privacy = Privacy(epsilon, 1e-6, n=n, random_state=settings.pop("seed", 1), **settings.pop("guarantee", {}))
    kind = settings.pop("kind", FunctionalRegression)
    model = kind(formula, privacy=privacy, bounds=bounds, **settings)
    return model.fit(data, grids={name: S for name in GRIDS if name in data}, offset=offset)


# --- offsets ---


def test_an_offset_of_nothing_changes_nothing():
    data = days(400)
    plain = fitted(data)
    for offset in ("0 * last(X)", "zero"):
        other = fitted(data | {"zero": 0 * data["Y"]}, offset=offset, bounds=BOUNDS | {"zero": (-1.0, 1.0)})
        new = days(20, 1) | {"zero": np.zeros((20, S.size))}
        np.testing.assert_array_equal(other.predict(new), plain.predict(new))
        np.testing.assert_array_equal(other.predict_interval(new)[0], plain.predict_interval(new)[0])


def test_it_is_the_fit_of_the_response_less_it_with_it_added():
    data, new = days(400), days(20, 1)
    with_curves = fitted(data, offset="o")
    with_numbers = fitted(data, offset=ANCHOR)
    for model, added, bounds in ((with_curves, "o", (-5.0, 5.0)), (with_numbers, None, (-5.0, 5.0))):
        less = data["o"] if added else anchor(data["X"])[:, None]
        plain = fitted(data | {"Y": data["Y"] - less}, bounds=BOUNDS | {"Y": bounds})
        of_new = new["o"] if added else anchor(new["X"])[:, None]
        np.testing.assert_allclose(model.predict(new), plain.predict(new) + of_new, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.predict_interval(new)[1], plain.predict_interval(new)[1] + of_new, atol=1e-9)
        assert model.score(new) == pytest.approx(
            1 - ((new["Y"] - model.predict(new)) ** 2 @ trapezoid()).sum() / spread(new["Y"]), abs=1e-9
        )
    assert "bounds of the response less it" in str(with_numbers.ledger_) and ANCHOR in str(with_numbers.ledger_)


def trapezoid():
    weights = np.full(S.size, 1.0)
    weights[[0, -1]] /= 2
    return weights


def spread(y):
    return ((y - y.mean(axis=0)) ** 2 @ trapezoid()).sum()


def test_an_offset_of_numbers_and_one_that_is_told_at_the_prediction():
    data, new = days(400), days(20, 1)
    model = fitted(
        data, offset="last(X)", formula="y ~ lf(X)", bounds=BOUNDS | {"y": (-5.0, 5.0)}, kind=ScalarRegression
    )
    without = model.predict(new, offset=np.zeros(20))
    np.testing.assert_allclose(model.predict(new), without + new["X"][:, -1], atol=1e-9)
    assert model.predict_interval(new)[0].mean() == pytest.approx(model.predict(new).mean(), abs=3.0)
    middle = np.mean(model.predict_interval(new), axis=0)
    np.testing.assert_allclose(middle, model.predict(new), atol=1e-9)


def test_a_file_keeps_the_offset(tmp_path):
    data, new = days(300), days(20, 1)
    new["X"][3, 5:9], new["X"][4, -2:] = np.nan, np.nan
    model = fitted(data, n=300, mechanism=DPAFF(prior="persistence"))
    again = FunctionalRegression.load(model.save(tmp_path / "m.fdadp"))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.predict_interval(new)[1], model.predict_interval(new)[1])
    assert again.mechanism.anchor == "persistence" and np.isfinite(again.predict(new)).all()


def test_without_privacy_the_same_text_belongs_to_the_model_too(tmp_path):
    data, new = days(200), days(20, 1)
    model = FunctionalRegression("Y ~ ff(X, k=(5, 5))").fit(data, grids={"X": S, "Y": S}, offset=ANCHOR)
    plain = FunctionalRegression("Y ~ ff(X, k=(5, 5))").fit(
        data | {"Y": data["Y"] - anchor(data["X"])[:, None]}, grids={"X": S, "Y": S}
    )
    np.testing.assert_allclose(model.predict(new), plain.predict(new) + anchor(new["X"])[:, None], atol=1e-6)
    ends, plain_ends = model.predict_interval(new), plain.predict_interval(new)
    np.testing.assert_allclose(np.mean(ends, axis=0), model.predict(new), atol=1e-9)
    assert ends[0].shape == plain_ends[0].shape
    again = FunctionalRegression.load(model.save(tmp_path / "m.fdadp"))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


@pytest.mark.parametrize(
    ("offset", "change", "message"),
    [
        (np.zeros(300), {}, "offset must be the name of a column, or an expression"),
        ("no_such", {}, "must have the column 'no_such'"),
        ("free", {}, "bounds must give a public range for free"),
        ("2 * free", {}, "public range for free, as in .*without it 2 \\* free is unbounded"),
        ("log(X)", {}, "log\\(X\\) is unbounded"),
        ("last(X) / mean(X)", {}, "unbounded"),
        ("last(Y)", {}, "must not read the response"),
        ("Y", {}, "must not be the response"),
        ("eval(X)", {}, "must consist of columns"),
        ("short", {"bounds": BOUNDS | {"short": (0.0, 1.0)}}, "grid of the response"),
        ("last(X)", {"mechanism": DPAFF(prior="persistence")}, "offset must be None with prior='persistence'"),
        (None, {"mechanism": DPAFF(prior="persistence"), "formula": "Y ~ ff(X) + ff(o)"}, "one column of curves"),
        (None, {"mechanism": DPAFF(prior="persistence"), "bounds": BOUNDS | {"Y": (6.0, 9.0)}}, "must overlap"),
    ],
)
def test_what_is_wrong_with_an_offset_is_said_before_the_first_read(offset, change, message):
    data = days(300)
    data |= {"free": data["z"], "short": data["X"][:, :10]}
    budget = Budget(1.0, 1e-6)
    with pytest.raises((InputError, PrivacyError), match=message):
        fitted(data, n=300, offset=offset, guarantee={"budget": budget}, **change)
    assert budget.spent == 0 and budget.reserved == 0


def test_an_offset_whose_rows_know_of_each_other_is_refused(monkeypatch):
    """A mean by BLAS, and one of all rows: the kernel's probe on public rows sees both before it reads."""
    for leaky in (lambda x: x.values[:, -1] - x.values.mean(), lambda x: np.sort(x.values.mean(axis=1))):
        monkeypatch.setitem(OF_CURVES, "mean", leaky)
        monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", {})
        budget = Budget(1.0, 1e-6)
        with pytest.raises(PrivacyError, match="row-local, bit for bit"):
            fitted(days(300), n=300, offset=ANCHOR, guarantee={"budget": budget})
        assert budget.spent == 0


# --- neighbours ---

BY_RECORD = DPAFF(errors_by_record=True)
NASTY = {0: np.nan, 1: np.inf, 2: 1e30, 3: -1e30}


def forecasts(seed, epsilon, delta=1e-3, anchored=False, by_record=False):
    """Forty rows of which some are nasty, and a fit of any of them with an offset on a tape."""
    n = 40
    data = {name: values.copy() for name, values in days(n, seed).items()}
    for row, value in NASTY.items():
        data["o"][row] = value
        data["X"][row + 4, row] = value
        data["Y"][row + 8, : row + 3] = value
        data["z"][row + 12] = value
    data["X"][13], data["Y"][14] = np.nan, np.nan

    def run(keep, noise):
        part = {name: values[keep] for name, values in data.items()}
        model = FunctionalRegression(
            "Y ~ ff(X) + z" if anchored or by_record else "Y ~ mean(X) + z",
            privacy=Privacy(epsilon, delta, n=n),
            bounds=BOUNDS | {"z": (0.0, 100.0), "mean(X)": (-4.0, 4.0)},
            missing={"z": "indicator"},
            mechanism=DPAFF(allow_useless=True, prior="persistence" if anchored else None, errors_by_record=by_record),
        )
        grids = {"X": S, "Y": S, "o": S}
        with drawing_from(model, noise):
            model.fit(part, grids=grids, offset=None if anchored else f"o + {ANCHOR}")
        return model

    return n, run


@pytest.mark.parametrize(
    ("epsilon", "delta", "anchored", "by_record"),
    [
        (400.0, 1e-3, False, False),
        (4.0, None, False, False),
        (400.0, 1e-3, True, False),
        (400.0, 1e-3, False, True),
        (400.0, None, False, True),
    ],
)
def test_brute_force_sensitivity_with_offsets_of_nasty_people(epsilon, delta, anchored, by_record):
    n, run = forecasts(0, epsilon, delta, anchored, by_record)
    first = TapeNoise()
    seen = fingerprint(vars(run(np.arange(n), first)))
    changes = []
    for person in (4, 6, 10) if anchored or by_record else (0, 1, 2, 3, 6, 10, 12, 13):
        again = TapeNoise(tape=first.entries)
        found = fingerprint(vars(run(np.delete(np.arange(n), person), again)))
        assert difference(found, seen) == ""
        changes += [loss.change for loss in losses(first.entries, again.entries)]
    assert 0.9 < max(changes) <= 1


@pytest.mark.parametrize(
    ("delta", "anchored", "by_record"),
    [(1e-6, False, False), (None, False, False), (1e-6, True, False), (None, False, True)],
)
def test_an_offset_costs_at_most_the_budget_and_shows_nothing_else(delta, anchored, by_record):
    pairs, epsilon = [], 60.0 if anchored or by_record else 8.0
    for row in (6,) if anchored or by_record else (2, 10):
        n, run = forecasts(row, epsilon, delta, anchored, by_record)
        keep = np.delete(np.arange(n), row)
        new = days(5, 9)
        pairs.append(
            Neighbours(
                f"{row} {delta}",
                lambda rows, noise, run=run, new=new: {
                    "attributes": vars(found := run(rows, noise)),
                    "predictions": found.predict_interval(new),
                },
                np.arange(n),
                keep,
                Budget(epsilon, delta).total,
            )
        )
    result = replay_audit(pairs)
    assert result.passed, str(result)
    assert result.finished == len(pairs) and 0 < result.changes.max() <= 1


# --- functions of rows ---


def test_functions_of_rows_are_columns_of_a_private_fit():
    """A response that depends on the mean of a curve, and a model that says so."""
    data, new = days(3000), days(300, 1)
    for d in (data, new):
        d["Y"] = d["X"].mean(axis=1)[:, None] * (1 + S) + 0.1 * d["o"]
    bounds = BOUNDS | {"mean(X)": (-4.0, 4.0)}
    model = fitted(data, n=3000, formula="Y ~ mean(X) + roughness(X)", bounds=bounds, epsilon=2.0)
    assert model.score(new) > 0.97 and model.importances_["mean(X)"] > 0.95
    assert "computed within each row" in str(model.ledger_)
    assert model.coef("mean(X)", t=[0.0, 1.0])["value"].to_numpy() == pytest.approx([1.0, 2.0], abs=0.25)


def test_a_response_may_be_computed_too():
    data, new = days(2000), days(200, 1)
    data["Y"], new["Y"] = np.exp(data["Y"]), np.exp(new["Y"])
    data["Y"][:5] = -1.0  # which has no logarithm: not observed
    model = fitted(data, n=2000, formula="log(Y) ~ ff(X)", bounds={"X": (-5.0, 5.0), "log(Y)": (-5.0, 5.0)})
    error = np.log(new["Y"]) - model.predict(new)
    assert (error**2).mean() < 0.5 * np.log(new["Y"]).var()


def test_a_missing_number_has_an_effect_of_its_own():
    data, new = days(3000), days(300, 1)
    rng = np.random.default_rng(2)
    for d in (data, new):
        gone = rng.random(len(d["z"])) < 0.3
        d["Y"] = d["Y"] + gone[:, None] * 2.0
        d["z"][gone] = np.nan
    model = fitted(data, n=3000, formula="Y ~ ff(X) + z", bounds=BOUNDS | {"z": (0.0, 100.0)}, missing="indicator")
    assert "missing(z)" in model.term_names_
    terms = model.predict(new, type="terms")["missing(z)"]
    difference = terms[np.isnan(new["z"])].mean() - terms[~np.isnan(new["z"])].mean()
    assert difference == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (ANCHOR, (-5, 5)),
        ("sd(X) - roughness(X)", (-10, 5)),
        ("I(x ** 2) + abs(x)", (0, 6)),
        ("exp(-x) / 2", (np.exp(-2) / 2, np.exp(1) / 2)),
        ("1 / x", None),
        ("log(x)", None),
        ("sqrt(x + 1)", (0, 3**0.5)),
        ("x ** 0.5", None),
        ("unknown - 1", None),
    ],
)
def test_bounds_follow_from_those_of_the_columns(text, wanted):
    found = bounds_of(expression(text), {"X": (-5.0, 5.0), "x": (-1.0, 2.0)})
    assert found == (None if wanted is None else pytest.approx(wanted))
    if wanted is not None and "x" in expression(text).sources:
        values = expression(text).by_rows({"x": np.linspace(-1, 2, 301)})
        assert wanted[0] - 1e-12 <= values.min() and values.max() <= wanted[1] + 1e-12


def test_rows_are_computed_by_themselves_bit_for_bit():
    rng = np.random.default_rng(0)
    from fdadp.functional.tables.curve_sample import Curves

    x, z = rng.normal(size=(37, 24)) ** 3, rng.normal(size=37)
    for text in (ANCHOR, "sd(X) + roughness(X)", "log(abs(z)) + z ** 3", "exp(X) * z", "max(-X) + min(X)"):
        whole = expression(text).by_rows({"X": Curves(x, S), "z": z})
        for i in (0, 5, 36):
            one = expression(text).by_rows({"X": Curves(x[i : i + 1].copy(), S), "z": z[i : i + 1].copy()})
            part, of_one = (v.values if isinstance(v, Curves) else v for v in (whole, one))
            assert part[i].tobytes() == of_one[0].tobytes(), text


# --- anchors ---


def test_persistence_starts_from_what_is_known_without_a_fit():
    data, new = days(300), days(2000, 1)
    alone = 1 - ((new["Y"] - anchor(new["X"])[:, None]) ** 2).sum() / ((new["Y"] - new["Y"].mean(axis=0)) ** 2).sum()
    plain, anchored = (
        np.array([fitted(data, n=300, epsilon=0.5, seed=seed, **how).score(new) for seed in range(1, 6)])
        for how in ({}, {"mechanism": DPAFF(prior="persistence")})
    )
    assert anchored.mean() > plain.mean() + 0.02 and (anchored > plain).all()
    assert anchored.min() > alone - 0.005 and anchored.mean() > alone


def test_persistence_is_there_for_models_of_terms():
    with pytest.raises(InputError, match="prior='persistence' is there for FunctionalRegression"):
        AdditiveFunctionOnFunction(
            privacy=Privacy(1.0, 1e-6, n=300), bounds={"X": (-5, 5), "Y": (-5, 5)}, mechanism=DPAFF(prior="persistence")
        ).fit(days(300)["X"], days(300)["Y"])
    with pytest.raises(InputError, match="'persistence', got 'other'"):
        DPAFF(prior="other")


def test_cohorts_drawn_from_a_fit_have_its_offset():
    data = days(400)
    model = fitted(data, mechanism=DPAFF(prior="persistence"))
    drawn = model.sample(300, random_state=0)
    x, y = (drawn[name].array.data_matrix[..., 0] for name in "XY")
    assert np.corrcoef(anchor(x), y.mean(axis=1))[0, 1] > 0.7
    with pytest.raises(InputError, match="o must be a column of a term"):
        fitted(data, offset="o").sample(10)


def test_a_fit_that_is_worse_than_its_anchor_is_dropped(monkeypatch):
    data, new = days(2000), days(20, 1)
    kept = fitted(data, n=2000, mechanism=DPAFF(prior="persistence"))
    assert not any("over its anchor" in note for note in kept.notes_)
    own = dp_aff._regress

    def worse(*given):
        coefficients, *rest = own(*given)
        return (coefficients + 1.0, *rest)

    monkeypatch.setattr(dp_aff, "_regress", worse)
    model = fitted(data, n=2000, mechanism=DPAFF(prior="persistence"))
    assert any("expect no gain of the fit over its anchor" in note for note in model.notes_)
    np.testing.assert_allclose(model.predict(new), np.tile(anchor(new["X"])[:, None], S.size), atol=1e-9)
    low, high = model.predict_interval(new)
    assert (low < model.predict(new)).all() and np.isfinite(high).all()


def uneven_days(n, seed, by):
    """As days, but some people's curves, and what comes after them, are rougher than others', by `by` in logarithms."""
    data, rng = days(n, seed), np.random.default_rng(seed + 100)
    wild = np.exp(by * rng.normal(size=(n, 1)))
    level = data["X"].mean(axis=1, keepdims=True)
    return {"X": level + wild * (data["X"] - level), "Y": level + wild * (data["Y"] - level)}


def quarters(model, new):
    low, high = model.predict_interval(new)
    inside = ((low <= new["Y"]) & (new["Y"] <= high)).mean(axis=1)
    rough = np.abs(np.diff(new["X"], axis=1)).mean(axis=1)
    at = np.searchsorted(np.quantile(rough, [0.25, 0.5, 0.75]), rough)
    return np.array([inside[at == q].mean() for q in range(4)])


@pytest.mark.parametrize("by", [0.5, 0.8])
def test_intervals_of_forecasts_cover_calm_people_and_wild_ones(by):
    data, new = uneven_days(4000, 0, by), uneven_days(1500, 1, by)
    wide = BOUNDS | {"X": (-8.0, 8.0), "Y": (-8.0, 8.0)}
    anchored = fitted(data, n=4000, epsilon=2.0, bounds=wide, mechanism=DPAFF(prior="persistence"))
    plain = fitted(data, n=4000, epsilon=2.0, bounds=wide, offset=ANCHOR)
    of_anchored, of_plain = quarters(anchored, new), quarters(plain, new)
    assert np.ptp(of_plain) > 0.08  # one variance for all: too wide for half of them, too narrow for the others
    assert np.ptp(of_anchored) < 0.4 * np.ptp(of_plain) and of_anchored.min() > 0.9
    names = [release.name for release in anchored.ledger_.releases]
    for wanted in ("roughness of X", "residuals by level and roughness, again", "residuals against the anchor's"):
        assert wanted in names and wanted not in [release.name for release in plain.ledger_.releases]


def test_intervals_of_any_fit_of_curves_may_vary_by_record(tmp_path):
    data, new = uneven_days(4000, 0, 0.5), uneven_days(1500, 1, 0.5)
    wide = BOUNDS | {"X": (-8.0, 8.0), "Y": (-8.0, 8.0)}
    alike, by_record = (
        fitted(data, n=4000, bounds=wide, mechanism=DPAFF(errors_by_record=flag)) for flag in (False, True)
    )
    assert np.ptp(quarters(by_record, new)) < 0.5 * np.ptp(quarters(alike, new))
    assert quarters(by_record, new).min() > 0.9
    assert by_record.score(new) > alike.score(new) - 0.003
    again = FunctionalRegression.load(by_record.save(tmp_path / "m.fdadp"))
    np.testing.assert_array_equal(again.predict_interval(new)[1], by_record.predict_interval(new)[1])
    even, new = days(4000, 0), days(1500, 1)  # where errors do not vary little is lost
    assert np.ptp(quarters(fitted(even, n=4000, mechanism=DPAFF(errors_by_record=True)), new)) < 0.04


@pytest.mark.parametrize("prior", [None, "persistence"])
def test_bands_of_whole_curves_hold_them(prior, tmp_path):
    data, new = days(1500, 3), days(1500, 1)
    model = fitted(data, n=1500, mechanism=DPAFF(prior=prior))
    ends, pointwise = model.predict_interval(new, simultaneous=True), model.predict_interval(new)
    whole, of_pointwise = (
        ((low <= new["Y"]) & (new["Y"] <= high)).all(axis=1).mean() for low, high in (ends, pointwise)
    )
    assert whole > 0.93 and of_pointwise < 0.88
    assert (ends[1] - ends[0]).mean() < 2 * (pointwise[1] - pointwise[0]).mean()
    again = FunctionalRegression.load(model.save(tmp_path / "m.fdadp"))
    np.testing.assert_allclose(again.predict_interval(new, simultaneous=True)[1], ends[1], rtol=1e-12)


def test_intervals_by_record_need_curves_and_the_regressions_of_many_terms():
    with pytest.raises(InputError, match="column of curves"):
        fitted(days(300), n=300, formula="Y ~ z", bounds=BOUNDS | {"z": (0.0, 100.0)}, mechanism=BY_RECORD)
    with pytest.raises(InputError, match="errors_by_record is there for FunctionalRegression"):
        AdditiveFunctionOnFunction(
            privacy=Privacy(1.0, 1e-6, n=300), bounds={"X": (-5, 5), "Y": (-5, 5)}, mechanism=BY_RECORD
        ).fit(days(300)["X"], days(300)["Y"])
    with pytest.raises(InputError, match="errors_by_record must be True or False"):
        DPAFF(errors_by_record="yes")


def test_looks_that_know_of_other_rows_are_refused(monkeypatch):
    monkeypatch.setattr("fdadp.private.rows.errors_by_record.roughness_of", lambda c: c.values[:, 0] - c.values.mean())
    monkeypatch.setattr("fdadp.privacy.rows._sealed_row_functions._checked", {})
    with pytest.raises(PrivacyError, match="row-local, bit for bit"):
        fitted(days(300), n=300, mechanism=DPAFF(prior="persistence"))


# --- the law of errors ---


@pytest.mark.parametrize("error", [0.0, 0.25])
def test_intervals_cover_on_average_over_sizes_that_are_uncertain(error):
    """Residuals of a t law over a released size that is off: what covers is the mixture, not its middle."""
    rng = np.random.default_rng(0)
    scale, inverse_dof = predictive(np.zeros(5), np.inf, error)
    z = rng.standard_t(1 / 0.15, 200_000) * np.sqrt(1 - 2 * 0.15)  # of variance one
    seen = np.abs(z) * np.exp(np.hypot(error, 0.12) * rng.normal(size=z.size))
    for level in (0.8, 0.9, 0.95):
        half = scale * student.ppf((1 + level) / 2, 1 / inverse_dof)
        assert (seen < half).mean() == pytest.approx(level, abs=0.012)


@pytest.mark.parametrize("v", [0.0, 0.01, 0.04, 0.16, 0.25])
def test_what_is_unknown_of_slopes_makes_the_tails_that_it_should(v):
    dof = 1 / HEAVY_INVERSE_DOF
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    q = student.ppf(0.975, dof)
    look = Probe("X", 0.0, unknown=(0.0, v, 0.0))
    seen = np.array([[0.3, SPREAD], [0.3, 0.0]])  # one sd from the middle, and there
    wider, same = np.sqrt(factors((look,), seen))
    scale = wider * np.exp(-np.sqrt(v) * nodes)
    assert weights @ (2 * student.cdf(q * scale, dof) - 1) / weights.sum() == pytest.approx(0.95, abs=5e-4)
    assert same == pytest.approx(1.0)


def test_much_data_decide_the_law():
    masses = 2 * np.diff(student.cdf(np.append(CALIBRATION_EDGES, np.inf) / 0.7, 1 / 0.26))
    scale, inverse_dof = predictive(masses, 1e-4, 0.3)
    half = scale * student.ppf(0.975, 1 / inverse_dof)
    assert half == pytest.approx(0.7 * student.ppf(0.975, 1 / 0.26), rel=0.03)
    assert scale == pytest.approx(0.7, abs=0.05) and inverse_dof == pytest.approx(0.26, abs=0.08)


def test_the_mean_square_of_errors_is_that_of_the_law_that_is_believed():
    """Gaussian curves with the shares of the prior and a tenth outside, of sizes whose squares are inverse gamma."""
    rng, lam = np.random.default_rng(0), PublicPrior().design(S, S).response_shares
    shares = np.append(0.9 * lam / lam.sum(), np.full(S.size - lam.size, 0.1 / (S.size - lam.size)))
    squares = rng.normal(size=(40_000, S.size)) ** 2 @ shares
    dof = 1 / HEAVY_INVERSE_DOF
    squares /= rng.chisquare(dof, squares.size) / dof
    assert squares.mean() / np.exp(np.log(squares).mean()) == pytest.approx(MEAN_SQUARE, rel=0.03)


@pytest.mark.parametrize(("first", "noise"), [(0.3, 0.13), (0.18, 0.05), (0.11, 0.03)])
def test_a_second_release_of_a_size_near_the_first_is_as_exact_as_it_says(first, noise):
    rng, n, off, said = np.random.default_rng(0), 1000, [], []
    for _ in range(400):
        logs = ONE_ERROR * rng.normal(size=n)
        start = first * rng.normal()

        def size(key, rows, between, logs=logs):
            assert key == "residual scale again"
            low, high = np.log(between)
            seen = np.clip(logs, low, high).mean() + noise * rng.normal()
            return np.exp(seen), noise

        releases = SimpleNamespace(plan=SimpleNamespace(tuning=GAUSSIAN), size=size)
        norm, error = _closer(releases, SimpleNamespace(rms=None), np.exp(start), first)
        off.append(np.log(norm))
        said.append(error)
    assert np.mean(off) == pytest.approx(0, abs=0.02)
    assert np.std(off) == pytest.approx(np.hypot(np.mean(said), ONE_ERROR / np.sqrt(n)), rel=0.2)
    assert np.mean(said) < 0.75 * first  # and it helps


@pytest.mark.long
@pytest.mark.parametrize(("n", "epsilon"), [(300, 0.4), (1500, 0.1)])
def test_intervals_of_forecasts_cover_where_the_budget_is_small(n, epsilon):
    """On average over noise and cohorts, and not all or nothing: every fit for itself nearly so."""
    found = []
    for seed in range(25):
        data, new = uneven_days(n, seed, 0.5), uneven_days(500, 500 + seed, 0.5)
        model = fitted(data, n=n, epsilon=epsilon, seed=seed, mechanism=DPAFF(prior="persistence"))
        found.append(quarters(model, new))
    found = np.array(found)
    print(found.mean(axis=0), found.mean(axis=1).std())
    assert 0.93 < found.mean() < 0.97 and found.mean(axis=1).std() < 0.035
    assert found.mean(axis=0).min() > 0.88  # wild people differ from calm ones by more than is believed


def test_a_plan_of_forecasts_looks_for_less_and_gives_what_hides_nothing_to_what_is_of_use():
    little, much = (preview(Privacy(1.0, 1e-6, n=n), DPAFF(prior="persistence"), 24, 24)[0] for n in (300, 30_000))
    plain = preview(Privacy(1.0, 1e-6, n=300), DPAFF(), 24, 24)[0]
    assert little.n_pairs < plain.n_pairs and sum(little.budget_shares.values()) <= 1 + 1e-9
    dear = preview(Privacy(0.2, 1e-6, n=300), DPAFF(prior="persistence"), 24, 24)[0]
    assert not dear.budget_shares["calibration"] and much.budget_shares["calibration"] > 0
    assert dear.budget_shares["residual scale"] > 0.04
    again = [plan.budget_shares["residual scale again"] for plan in (dear, little, much)]
    assert again[0] > 0.05 and again[2] < 0.01 and "residual scale again" not in plain.budget_shares
    assert not dear.budget_shares["y mean"] and little.budget_shares["y mean"] > 0


def test_bands_of_coefficients_know_what_no_gradient_measured():
    """Where the budget measures few coefficients the rest may be anything that the prior lets it be."""
    data = days(300)
    found = fitted(data, n=300, epsilon=0.5)
    own = found.coef("ff(X)", se=True)
    design = next(design for design in found.fitted_.fit.form.designs if design.name == "ff(X)")
    unseen = design.unseen({"s": S, "t": S})
    assert unseen.shape == (S.size**2,) and (unseen > 0).all()
    own = found.coef("ff(X)", se=True, s=S, t=S)
    covariance = found.vcov()
    assert (own["se"].to_numpy() ** 2 > unseen).all() and np.isfinite(np.asarray(covariance)).all()
    assert not np.any(design.unmeasured[:1, :1])  # of the first pair, which is always measured
    much = fitted(days(4000), n=4000, epsilon=8.0)
    less = next(design for design in much.fitted_.fit.form.designs if design.name == "ff(X)").unseen({"s": S, "t": S})
    assert less.mean() < unseen.mean()
