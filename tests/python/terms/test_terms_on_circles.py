"""Cyclic terms along s and t, and products with `by`: equal to mgcv's, ends that meet, points that wrap, errors."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import Budget, FunctionalRegression, Privacy, ScalarRegression, inference, terms
from fdadp.errors import InputError
from fdadp.functional.quadrature import quadrature_weights
from r_bridge.gam_by_formula import fit_gam

HOURS = np.arange(0.0, 24.0, 1.5)
"""Of s, 16 points of a day; the way from 22.5 back to 0 counts."""
T = np.array([0.5, 2, 3, 5, 7, 8.5, 11, 12, 14, 15, 17, 18, 20, 22])
"""Of the response, uneven."""
DAY, ROWS = 24.0, 100


def waves(at: np.ndarray) -> np.ndarray:
    angle = 2 * np.pi * at / DAY
    return np.array([angle**0, np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(3 * angle)])


@pytest.fixture(scope="module")
def cohort() -> dict[str, np.ndarray]:
    """Curves of a day, a curve on the response's points, numbers and labels, with responses of both kinds."""
    rng = np.random.default_rng(4)
    n = ROWS
    weights = rng.normal(size=(n, 5)) * [1, 1, 0.8, 0.5, 0.5]
    x, now, z = weights @ waves(HOURS), weights[:, ::-1] @ waves(T), rng.normal(size=n) + 1
    g = np.array(["a", "b", "c"])[np.arange(n) % 3]
    effect = np.cos(2 * np.pi * (HOURS[:, None] - T) / DAY)
    y = x @ effect / 16 + z[:, None] * waves(T)[1] + (g == "b")[:, None] * waves(T)[2]
    number = np.tanh(x) @ waves(HOURS)[2] / 5 + z * (x @ waves(HOURS)[1]) / 16
    noise = rng.normal(size=(n, T.size))
    return {"X": x, "now": now, "z": z, "g": g, "Y": y + 0.3 * noise, "y": number + 0.2 * noise[:, 0]}


GRIDS = {"X": HOURS, "now": T, "Y": T}


def knots(low: float, k: int) -> np.ndarray:
    """mgcv's, of which the last is the first again."""
    return np.linspace(low, low + DAY, k + 1)


def integral(data: dict[str, np.ndarray], period: float | None = DAY) -> np.ndarray:
    """Weights times X."""
    return quadrature_weights(HOURS, period=period) * data["X"]


@pytest.mark.mgcv
def test_terms_of_curves_are_mgcvs(cohort):
    """Mean curve, ff, numbers, factors and concurrent curves with "cc" margins, at fixed smoothing parameters."""
    sp = np.array([0.5, 0.3, 0.02, 0.7, 0.4, 1.5, 0.2])
    formula = "Y ~ ff(X, k=(6, 5), period=24) + linear(z, k=7) + C(g, k=6) + concurrent(now, k=8)"
    model = FunctionalRegression(formula, smoothing=sp, k="refund", t_period=DAY).fit(cohort, grids=GRIDS)
    n, along = len(cohort["z"]), {name: np.tile(T, len(cohort["z"])) for name in ("t", "tz", "tg", "tn")}
    long = {name: np.repeat(cohort[name], T.size) for name in ("z", "g")}
    both = {
        "S": np.tile(HOURS, (n * T.size, 1)),
        "R": np.repeat(along["t"][:, None], HOURS.size, axis=1),
        "LX": np.repeat(integral(cohort), T.size, axis=0),
    }
    table = {**along, **both, "z": long["z"], "now": cohort["now"].ravel(), "y": cohort["Y"].ravel()}
    table |= {level: (long["g"] == level).astype(float) for level in "bc"}
    theirs = fit_gam(
        "y ~ s(t, bs='cc', k=21) + te(S, R, by=LX, bs='cc', k=c(7, 6)) + s(tz, by=z, bs='cc', k=8) "
        "+ s(tg, by=b, bs='cc', k=7) + s(tg, by=c, bs='cc', k=7) + s(tn, by=now, bs='cc', k=9)",
        table,
        sp=sp,
        knots={"t": knots(0.5, 20), "S": knots(0, 6), "R": knots(0.5, 5), "tz": knots(0.5, 7)}
        | {"tg": knots(0.5, 6), "tn": knots(0.5, 8)},
    )
    np.testing.assert_allclose(model.fitted_values_.ravel(), theirs["fitted"], rtol=0, atol=1e-8)
    assert model.edf_ == pytest.approx(theirs["edf_total"].item(), rel=1e-8)


@pytest.mark.mgcv
@pytest.mark.parametrize(
    ("term", "smooth", "sp"),
    [
        (terms.lf("X", k=7, period=DAY), "s(S, by=LX, bs='cc', k=8)", [0.3]),
        (
            terms.af("X", k=(6, 7), period=DAY),
            "te(S, X, by=L, bs=c('cc', 'ps'), k=c(7, 7), m=list(NA, c(2, 2)))",
            [0.3, 0.02],
        ),
        (terms.lf("X", k=12, by="z"), "s(S, by=LXz, bs='ps', k=12, m=c(2, 2))", [0.3]),
        (terms.lf("X", k=7, by="z", period=DAY), "s(S, by=LXz, bs='cc', k=8)", [0.3]),
        (
            terms.lf("X", k=12, by="g"),
            " + ".join(f"s(S, by=LX{level}, bs='ps', k=12, m=c(2, 2))" for level in "abc"),
            [0.3, 0.2, 0.1],
        ),
        (terms.af("X", k=(6, 7), by="z"), "te(S, X, by=Lz, bs='ps', k=c(6, 7), m=c(2, 2))", [0.3, 0.02]),
        (
            terms.af("X", k=(5, 5), by="g"),
            "0 + " + " + ".join(f"te(S, X, by=L{level}, bs='ps', k=5, m=c(2, 2))" for level in "abc"),
            [0.3, 0.02, 0.2, 0.1, 0.5, 0.04],
        ),
        (
            terms.af("X", k=(6, 7), x_transform="quantile"),
            "te(S, Q, by=L, bs='ps', k=c(6, 7), m=c(2, 2))",
            [0.3, 0.02],
        ),
        (
            terms.af("X", k=(6, 7), x_transform="quantile", period=DAY, by="z"),
            "te(S, Q, by=Lz, bs=c('cc', 'ps'), k=c(7, 7), m=list(NA, c(2, 2)))",
            [0.3, 0.02],
        ),
    ],
    ids=[
        "lf",
        "af",
        "lf by z",
        "lf by z on a circle",
        "lf by g",
        "af by z",
        "af by g",
        "ranks",
        "ranks all round by z",
    ],
)
def test_terms_of_numbers_are_mgcvs(cohort, term, smooth, sp):
    beside = [terms.factor("g")] if term.function == "af" and term.by == "g" else []
    model = ScalarRegression([*beside, term], smoothing=np.array(sp)).fit(cohort, grids={"X": HOURS})
    period, k = (DAY, term.k if term.function == "lf" else term.k[0]) if term.period else (None, 0)
    weights, lx = np.tile(quadrature_weights(HOURS, period=period), (ROWS, 1)), integral(cohort, period)
    table = {"S": np.tile(HOURS, (ROWS, 1)), "X": cohort["X"], "L": weights, "LX": lx, "y": cohort["y"]}
    table["Q"] = cohort["X"].argsort(axis=0).argsort(axis=0) / (ROWS - 1)  # refund's Qtransform: ranks at each s
    times = {"z": cohort["z"]} | {level: (cohort["g"] == level).astype(float) for level in "abc"}
    for name, own in times.items():
        table |= {f"L{name}": weights * own[:, None], f"LX{name}": lx * own[:, None]}
    theirs = fit_gam(f"y ~ {smooth}", table, sp=sp, knots={"S": knots(0, k)} if term.period else None)
    np.testing.assert_allclose(model.fitted_values_, theirs["fitted"], rtol=0, atol=1e-8)
    assert model.edf_ == pytest.approx(theirs["edf_total"].item(), rel=1e-7)


@pytest.mark.mgcv
def test_slopes_of_groups_are_mgcvs(cohort):
    """Intercepts and slopes of groups at fixed smoothing parameters: numbers, and slopes that vary along t."""
    group = np.array(list("abcdefghij"))[np.arange(ROWS) % 10]
    data, sp = {**cohort, "h": group}, [2.0, 0.5]
    model = ScalarRegression("y ~ z + re(h) + re(h, by=z)", smoothing=sp).fit(data)
    theirs = fit_gam("y ~ z + s(h, bs='re') + s(h, by=z, bs='re')", {name: data[name] for name in "yzh"}, sp=sp)
    np.testing.assert_allclose(model.fitted_values_, theirs["fitted"], rtol=0, atol=1e-8)
    assert model.edf_ == pytest.approx(theirs["edf_total"].item(), rel=1e-8)
    slopes = model.coef("re(h, by=z)")
    assert slopes.columns.tolist() == ["h", "value"] and slopes.h.tolist() == list("abcdefghij")
    new = {"z": [1.0, 2.0, 1.0, 2.0], "h": ["a", "a", "new", "new"]}
    steps = np.diff(model.predict(new))[[0, 2]]  # a new level has the slope of all
    assert steps[0] - steps[1] == pytest.approx(slopes.value[0], abs=1e-10)
    pairs = ScalarRegression("y ~ re(h, by=g)", smoothing=[1.0, 2.0, 3.0]).fit(data)
    table = {"y": data["y"], "h": group} | {level: (data["g"] == level).astype(float) for level in "abc"}
    each = " + ".join(f"s(h, by={level}, bs='re')" for level in "abc")
    theirs = fit_gam(f"y ~ {each}", table, sp=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(pairs.fitted_values_, theirs["fitted"], rtol=0, atol=1e-8)


def test_slopes_of_groups_along_t(cohort):
    """A curve of slopes for each group; the same at all t in c(), not with slopes= or covariance=."""
    data = {**cohort, "h": np.array(list("abcdefghij"))[np.arange(ROWS) % 10]}
    curves = FunctionalRegression("Y ~ z + re(h, by=z, k=5)", smoothing=[0.1, 0.1, 1.0, 1.0]).fit(data, grids=GRIDS)
    assert {"h", "t", "value"} == set(curves.coef("re(h):z").columns)
    one = FunctionalRegression("Y ~ z + c(re(h, by=z, k=5))", smoothing=[0.1, 0.1, 1.0]).fit(data, grids=GRIDS)
    assert one.term_names_[-1] == "re(h):z"
    assert {"h", "value"} == set(one.coef("re(h):z").columns)
    with pytest.raises(InputError, match=r"by of re\(h\):z must be None with covariance='free', got 'z'"):
        FunctionalRegression("Y ~ z + re(h, by=z, covariance='free')").fit(data, grids=GRIDS)


def test_terms_by_their_spelling_in_the_formula(cohort):
    """coef(), bands() and pictures know terms as the formula writes them."""
    model = ScalarRegression("y ~ C(g) + lf(X, k=8, by='g', period=24)").fit(cohort, grids={"X": HOURS})
    for written, name in {"C(g)": "g", "lf(X, k=8, by='g', period=24)": "lf(X):g", "C(g):lf(X)": "lf(X):g"}.items():
        assert model.coef(written).equals(model.coef(name))


def test_ranks_do_not_depend_on_the_unit(cohort):
    """With x_transform="quantile" X may be stretched by any increasing function."""
    fits = [
        ScalarRegression([terms.af("X", k=(5, 5), x_transform="quantile", period=DAY)], smoothing=[0.1, 0.1])
        .fit({**cohort, "X": x}, grids={"X": HOURS})
        .fitted_values_
        for x in (cohort["X"], np.exp(cohort["X"]))
    ]
    np.testing.assert_allclose(*fits, rtol=0, atol=1e-9)
    assert np.var(fits[0]) > 0.1 * np.var(cohort["y"])


# --- ends that meet, points that wrap ---


EVERY = (
    "Y ~ ff(X, period=24) + z + C(g) + concurrent(now) + sff(X, k=(5, 5, 5), period=24) + s(z) + te(z, w, k=3)"
    " + ffpc(X, n_components=2)"
)


@pytest.fixture(scope="module")
def everything(cohort) -> FunctionalRegression:
    """Terms of all kinds, along a circle."""
    data = {**cohort, "w": np.random.default_rng(1).normal(size=ROWS)}
    return FunctionalRegression(EVERY, smoothing=np.full(16, 0.1), t_period=DAY).fit(data, grids=GRIDS)


@pytest.mark.filterwarnings("ignore::fdadp.errors.IdentificationWarning")
def test_effects_and_their_slopes_meet_after_a_period(everything):
    model = everything
    form = model.fitted_.fit.form
    assert len(form.designs) == 10
    for design in form.designs[1:]:
        for circle, margin in {"t": design.along, "s": getattr(design, "over_s", None)}.items():
            if circle not in design.periods:
                assert circle == "s"
                continue
            assert design.periods[circle] == pytest.approx(DAY)
            low = T[0] if circle == "t" else HOURS[0]
            for order in (0, 1):
                left, right = margin.basis.design([low, low + DAY], order) @ margin.to_raw
                assert np.abs(left - right).max() <= 1e-10
    for name in ("s(t)", "ff(X)", "z", "g", "concurrent(now)", "sff(X)", "s(z)", "te(z, w)", "ffpc(X)"):
        whole, beyond = (model.coef(name, t=[0.5 + k * DAY, 4 + k * DAY]).value for k in (0, -2))
        assert np.abs(whole).max() > 1e-6
        np.testing.assert_allclose(whole, beyond, rtol=0, atol=1e-10)
    once, twice = (model.coef("ff(X)", s=[0.0 + k, 3.0 + k], t=T).value for k in (0, DAY))
    np.testing.assert_allclose(once, twice, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::fdadp.errors.IdentificationWarning")
def test_predictions_wrap(cohort):
    """At other turns of t, and of curves that begin at another hour or have another step."""
    formula = "Y ~ ff(X, period=24) + z + C(g) + sff(X, k=(5, 5, 5), period=24)"
    model = FunctionalRegression(formula, smoothing=np.full(9, 0.1), t_period=DAY).fit(cohort, grids=GRIDS)
    new = {name: column[:5] for name, column in cohort.items()}
    here = model.predict(new)
    np.testing.assert_allclose(model.predict(new, t=T + 3 * DAY), here, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.predict_se(new, t=T - DAY), model.predict_se(new), rtol=0, atol=1e-10)
    for own, far in zip(model.predict_interval(new), model.predict_interval(new, t=T + DAY), strict=True):
        np.testing.assert_allclose(own, far, rtol=0, atol=1e-10)
    slopes = [inference.derivative(model, new, t=T[1:4] + k * DAY).value for k in (0, 1)]
    np.testing.assert_allclose(*slopes, rtol=0, atol=1e-6 * np.abs(slopes[0]).max())
    turned = {**new, "X": np.roll(new["X"], -4, axis=1)}
    np.testing.assert_allclose(model.predict(turned, grids={"X": HOURS + 6}), here, rtol=0, atol=1e-10)
    fine = np.arange(0, DAY, 0.5)
    finer = {**new, "X": np.array([np.interp(fine, HOURS, row, period=DAY) for row in new["X"]])}
    np.testing.assert_allclose(model.predict(finer, grids={"X": fine}), here, rtol=0, atol=0.05 * np.ptp(here))
    for grid in (HOURS[:12], np.linspace(0, 30, 16)):  # half a day, more than a day
        with pytest.raises(InputError, match=r"X must go once round its period, 24, as the training curves do on"):
            model.predict({**new, "X": new["X"][:, : grid.size]}, grids={"X": grid})
    open_ends = FunctionalRegression("Y ~ z").fit(cohort, grids=GRIDS)
    with pytest.raises(InputError, match=r"t must lie within \[0.5, 22\]"):
        open_ends.predict(new, t=T + 1)


def test_a_circle_has_no_beginning(cohort):
    """Turned by whole knots, curves on an even grid give the same fit."""
    here = ScalarRegression([terms.lf("X", k=8, period=DAY)], smoothing=[0.1]).fit(cohort, grids={"X": HOURS})
    turned = {"X": np.roll(cohort["X"], -6, axis=1), "y": cohort["y"]}
    there = ScalarRegression([terms.lf("X", k=8, period=DAY)], smoothing=[0.1]).fit(turned, grids={"X": HOURS})
    np.testing.assert_allclose(here.fitted_values_, there.fitted_values_, rtol=0, atol=1e-10)
    beta, moved = here.coef("lf(X)", s=HOURS).value, there.coef("lf(X)", s=HOURS).value
    np.testing.assert_allclose(np.roll(beta, -6), moved, rtol=0, atol=1e-10)


def test_a_term_may_have_a_circle_of_its_own(cohort):
    formula = "Y ~ linear(z, period=24) + C(g, period=12) + concurrent(now)"
    with pytest.raises(
        InputError, match=r"period of g must be at least the length of the domain of the resp.*21.5.*12"
    ):
        FunctionalRegression(formula).fit(cohort, grids=GRIDS)
    model = FunctionalRegression(formula.replace("=12", "=30"), t_period=DAY).fit(cohort, grids=GRIDS)
    periods = {design.name: design.periods.get("t") for design in model.fitted_.fit.form.designs}
    assert {name: found and round(found, 9) for name, found in periods.items()} == {
        "(Intercept)": None,
        "s(t)": 24,
        "z": 24,
        "g": 30,
        "concurrent(now)": 24,
    }


def test_responses_at_points_of_their_own(cohort):
    """Curves with gaps and points of all rows: the same functions as on the grid."""
    import pandas as pd

    seen = np.random.default_rng(2).uniform(size=cohort["Y"].shape) < 0.6
    rows, at = np.nonzero(seen)
    long = pd.DataFrame({"row": rows, "t": T[at], "value": cohort["Y"][seen]})
    sp = np.full(4, 0.1)
    table = {name: cohort[name] for name in "Xz"}
    scattered = FunctionalRegression("Y ~ ff(X, period=24) + z", smoothing=sp, t_period=DAY)
    scattered.fit(table, response=long, grids={"X": HOURS})
    gaps = FunctionalRegression("Y ~ ff(X, period=24) + z", smoothing=sp, t_period=DAY)
    gaps.fit({**table, "Y": np.where(seen, cohort["Y"], np.nan)}, grids={"X": HOURS, "Y": T})
    np.testing.assert_allclose(scattered.predict(table, t=T + DAY), gaps.predict(table, t=T), rtol=0, atol=1e-8)


def test_chunks_and_files_keep_circles(cohort, tmp_path):
    formula = "Y ~ ff(X, period=24) + z + C(g)"
    model = FunctionalRegression(formula, smoothing=np.full(6, 0.1), t_period=DAY).fit(cohort, grids=GRIDS)
    parts = [{name: column[rows] for name, column in cohort.items()} for rows in (slice(0, 45), slice(45, ROWS))]
    chunked = FunctionalRegression(formula, smoothing=np.full(6, 0.1), t_period=DAY).fit_chunks(parts, grids=GRIDS)
    again = FunctionalRegression.load(model.save(tmp_path / "model.npz"))
    assert again.t_period == DAY
    assert "0.5 to 22, period 24" in str(again.summary()) and "period" not in str(
        FunctionalRegression("Y ~ z").fit(cohort, grids=GRIDS).summary()
    )
    new = {name: column[:5] for name, column in cohort.items()}
    want = model.predict(new, t=T + DAY)
    np.testing.assert_array_equal(again.predict(new, t=T + DAY), want)
    np.testing.assert_allclose(chunked.predict(new, t=T + DAY), want, rtol=0, atol=1e-9)
    number = ScalarRegression("y ~ af(X, by=z, period=24)").fit(cohort, grids={"X": HOURS})
    loaded = ScalarRegression.load(number.save(tmp_path / "number.npz"))
    np.testing.assert_array_equal(loaded.predict(new), number.predict(new))


@pytest.mark.parametrize(
    ("formula", "settings", "message"),
    [
        ("Y ~ ff(X, period=20)", {}, r"period of ff\(X\) must be at least the length of the grid of X, 22.5, got 20"),
        ("Y ~ ff(X, period=0)", {}, r"period of ff\(X\) must be a number above 0 or None, got 0"),
        ("Y ~ ff(X, k=(2, 5), period=24)", {}, r"k of ff\(X\) must be an integer of at least 3 with a period, got 2"),
        ("Y ~ z", {"t_period": 20}, "t_period must be at least the length of the domain of the response, 21.5, got 20"),
        ("Y ~ z", {"t_period": "day"}, "t_period must be a number above 0 or None, got 'day'"),
        ("Y ~ z", {"t_period": DAY, "response_basis": "eigen"}, "t_period must be None with response_basis='eigen'"),
        ("Y ~ c(linear(z, period=24))", {}, "period of .*z.* must be None where the effect does not vary along"),
        ("Y ~ fosr(z) - 1", {"t_period": DAY}, "t_period must be None with fosr"),
        ("Y ~ z + re(g, covariance='spline', k=5)", {"t_period": DAY}, "t_period must be None with re"),
    ],
)
def test_circles_are_checked(cohort, formula, settings, message):
    with pytest.raises(InputError, match=message):
        FunctionalRegression(formula, **settings).fit(cohort, grids=GRIDS)


def test_circles_of_numbers_are_checked(cohort):
    with pytest.raises(InputError, match=r"period of lf\(X\) must be at least the length of the grid of X, 22.5, got"):
        ScalarRegression("y ~ lf(X, period=12)").fit(cohort, grids={"X": HOURS})
    with pytest.raises(InputError, match="period of z must be None where the effect does not vary"):
        ScalarRegression("y ~ linear(z, period=24)").fit(cohort, grids={"X": HOURS})


# --- private fits ---


KNOWN = {"X": (-6, 6), "now": (-6, 6), "z": (-3, 5), "g": list("abc"), "Y": (-6, 6), "y": (-4, 4)}


def test_private_effects_of_curves_may_be_on_circles(cohort):
    privacy = Privacy(4.0, 1e-6, n=ROWS, budget=Budget(8.0, 1e-6), dataset="days", random_state=0)
    number = ScalarRegression("y ~ lf(X, period=24)", privacy=privacy, bounds=KNOWN).fit(cohort, grids={"X": HOURS})
    beta = number.coef("lf(X)", s=[0.0, 6.0, 12.0, 24.0]).value.to_numpy()
    assert np.ptp(beta) > 0
    assert beta[3] == pytest.approx(beta[0], abs=1e-10 * np.abs(beta).max())
    curves = FunctionalRegression("Y ~ ff(X, period=24)", privacy=privacy, bounds=KNOWN).fit(cohort, grids=GRIDS)
    surface = curves.coef("ff(X)", s=[0.0, 12.0, 24.0]).pivot(index="s", columns="t", values="value").to_numpy()
    np.testing.assert_allclose(surface[0], surface[2], rtol=0, atol=1e-10 * np.abs(surface).max())


@pytest.mark.parametrize(
    ("formula", "settings", "message"),
    [
        ("Y ~ z", {"t_period": DAY}, "t_period must be None in a private fit"),
        ("Y ~ linear(z, period=24)", {}, "period of z must be None in a private fit, got 24"),
        ("Y ~ C(g, period=24)", {}, "period of g must be None in a private fit, got 24"),
        ("Y ~ concurrent(now, period=24)", {}, r"period of concurrent\(now\) must be None in a private fit, got 24"),
        ("Y ~ ff(X, period=20)", {}, r"period of ff\(X\) must be at least the length of the grid of X, 22.5, got 20"),
        ("Y ~ sff(X, period=24)", {}, r"period of sff\(X\) must be None in a private fit"),
    ],
)
def test_private_fits_refuse_circles_along_t(cohort, formula, settings, message):
    budget = Budget(4.0, 1e-6)
    privacy = Privacy(4.0, 1e-6, n=ROWS, budget=budget)
    with pytest.raises(InputError, match=message):
        FunctionalRegression(formula, privacy=privacy, bounds=KNOWN, **settings).fit(cohort, grids=GRIDS)
    assert budget.spent == 0
