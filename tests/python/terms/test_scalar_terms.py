"""Terms of numbers and labels: what they are, on which rows, what they refuse. Their numbers: beside refund, mgcv."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, ScalarRegression, terms
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.terms.records import Records, TrainingSummary

T, S = np.linspace(0, 1, 25), np.linspace(0, 2, 15)


def cohort(n=60, seed=0):
    rng = np.random.default_rng(seed)
    data = {"z": rng.uniform(-1, 2, n), "w": rng.uniform(size=n), "x": rng.normal(size=n)}
    data["g"] = rng.choice(list("abc"), n)
    data["X"] = rng.normal(size=(n, 3)) @ np.array([np.ones(15), np.sin(S), np.cos(S)])
    signal = np.sin(2 * data["z"])[:, None] * (1 + T) + data["x"][:, None] * T + (data["g"] == "b")[:, None] * np.cos(T)
    return {**data, "Y": signal + 0.1 * rng.normal(size=(n, T.size)), "y": signal[:, 9] + 0.1 * rng.normal(size=n)}


def fixed(term, t=T, data=None):
    columns = dict(data or cohort())
    rows = {k: v.astype(object if v.dtype.kind == "U" else float) for k, v in columns.items() if k not in "XYy"}
    rows["X"] = as_curves(columns["X"], S, name="X")
    records = Records(len(columns["z"]), rows)
    return term.fixed(TrainingSummary.of([records]), t), records


EVERY = [
    terms.s("z"),
    terms.s("z", k=(6, 7), bs="ps", m=((2, 1), (2, 2))),
    terms.s("w", bs="cc", period=(0, 1)),
    terms.s("z", by="g"),
    terms.s("z", by="x"),
    terms.te("z", "w", k=(4, 5)),
    terms.te("z", "w", k=(4, 5, 6), m=(2, 2, (2, 2)), by="g"),
    terms.factor("g"),
    terms.factor("g", coding="levels"),
    terms.re("g"),
    terms.re("g", k=6),
    terms.ff("X", by="x"),
    terms.ff("X", by="g"),
    terms.by("g", terms.ff("X", limits="s<t")),
    terms.by("g", terms.linear("x"), coding="treatment"),
    terms.by("g", terms.s("z")),
    terms.by("x", terms.s("z")),
    terms.by("x", terms.te("z", "w", k=4)),
    terms.c(terms.s("z")),
    terms.c(terms.factor("g")),
    terms.c(terms.te("z", "w", k=4)),
    terms.c(terms.by("g", terms.linear("x"))),
    terms.c("x"),
]


@pytest.mark.parametrize("term", EVERY, ids=lambda term: term.name)
def test_rows_are_of_their_own_record_and_penalties_fit(term):
    design, records = fixed(term)
    features = design.features(records, T)
    assert features.shape == ((60, design.n_features) if design.separable else (60, T.size, design.n_features))
    np.testing.assert_allclose(design.features(records[7:12], T), features[7:12], atol=1e-13)
    assert design.penalties.shape == (len(design.penalty_names), design.size)
    assert len(set(design.penalty_names)) == len(design.penalty_names)
    assert (design.penalties >= 0).all() and (design.penalties.sum(axis=1) > 0).all()
    grids = [axis[:3] for axis in design.axes.values()]
    assert design.effect(*grids).shape == (int(np.prod([len(g) for g in grids])), design.n_features)


@pytest.mark.parametrize("term", EVERY, ids=lambda term: term.name)
def test_fits_and_predicts_any_rows(term):
    data = cohort()
    model = FunctionalRegression([term]).fit(data, grids={"X": S, "Y": T})
    new = {name: column[5:9] for name, column in data.items() if name in term.columns}
    np.testing.assert_allclose(model.predict(new), model.fitted_values_[5:9], atol=1e-9)
    np.testing.assert_allclose(model.predict(new, t=T[3:8]), model.fitted_values_[5:9, 3:8], atol=1e-9)


@pytest.mark.parametrize("term", [terms.s("z"), terms.s("z", bs="cr"), terms.te("z", "w", k=4)], ids=lambda t: t.bs)
def test_smooths_sum_to_zero_at_each_t(term):
    data = cohort()
    model = FunctionalRegression([term]).fit(data, grids={"Y": T})
    effect = model.predict(data, type="terms")[term.name]
    assert np.abs(effect.mean(axis=0)).max() < 1e-9 < np.abs(effect).max()


def test_of_a_scalar_response_the_constant_has_ten_functions():
    for t, size in ((None, 9), (T, 7 * min(15, T.size))):
        design, _ = fixed(terms.s("z"), t)
        assert design.size == size
    assert fixed(terms.c(terms.s("z")))[0].size == 9
    assert fixed(terms.s("z", k=12, constant=True))[0].size == 11
    assert fixed(terms.s("z", by="x"), None)[0].size == 10  # no constraint


def test_a_random_effect_of_an_unseen_level_is_zero():
    data = cohort()
    model = FunctionalRegression([terms.re("g", k=5), terms.linear("x")]).fit(data, grids={"Y": T})
    new = {"g": np.array(["a", "mars"]), "x": np.zeros(2)}
    effect = model.predict(new, type="terms")["re(g)"]
    assert np.abs(effect[1]).max() == 0 < np.abs(effect[0]).max()


def test_levels_of_random_effects_shrink():
    """Towards zero, all the more the fewer rows they have."""
    rng = np.random.default_rng(0)
    g = np.repeat([f"{i:02d}" for i in range(40)], 3)
    truth = np.repeat(rng.normal(size=40), 3)
    y = truth + rng.normal(size=120)
    model = ScalarRegression([terms.re("g")]).fit({"g": g, "y": y})
    raw = np.array([y[g == level].mean() for level in np.unique(g)])
    slope = np.polyfit(raw - raw.mean(), model.predict({"g": np.unique(g)}) - y.mean(), 1)[0]
    assert abs(slope - 3 / 4) < 0.15  # variance between 1, within 1 / 3


def test_levels_have_surfaces_of_their_own():
    """As fits to the rows of each level alone, at the same smoothing parameters and up to the common variance."""
    data = cohort(90)
    every = FunctionalRegression([terms.by("g", terms.ff("X"))], intercept=False, smoothing=np.ones(6))
    every.fit(data, grids={"X": S, "Y": T})
    for level in "abc":
        rows = {name: column[data["g"] == level] for name, column in data.items()}
        one = FunctionalRegression([terms.ff("X")], intercept=False, smoothing=np.ones(2))
        one.fit(rows, grids={"X": S, "Y": T})
        np.testing.assert_allclose(every.fitted_values_[data["g"] == level], one.fitted_values_, atol=1e-9)


def test_a_column_of_ones_changes_nothing():
    data = {**cohort(), "one": np.ones(60)}
    sp = [1.0, 2.0, 3.0]
    plain = FunctionalRegression([terms.ff("X", limits="s<t")], smoothing=sp, k="refund").fit(
        data, grids={"X": S, "Y": T}
    )
    times = FunctionalRegression([terms.ff("X", limits="s<t", by="one")], smoothing=sp, k="refund")
    times.fit(data, grids={"X": S, "Y": T})
    np.testing.assert_allclose(times.fitted_values_, plain.fitted_values_, atol=1e-12)


def test_interaction_by_treatment_is_the_same_model_as_by_levels():
    """The linear spaces are the same: so are fits without penalties, of numbers as they are."""
    data = cohort()
    tiny = 1e-9
    by_level = [terms.by("g", terms.linear("x"))]
    by_contrast = [terms.linear("x"), terms.by("g", terms.linear("x"), coding="treatment")]
    fits = [
        FunctionalRegression(m, smoothing=[1.0, tiny, tiny, tiny], k="refund").fit(data, grids={"Y": T}).fitted_values_
        for m in (by_level, by_contrast)
    ]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)


@pytest.mark.parametrize(
    ("term", "t", "message"),
    [
        (terms.factor("g", coding="sum"), T, "coding of g must be 'treatment', 'full' or 'levels', got 'sum'"),
        (terms.factor("g", coding="levels"), None, "coding of g must be 'treatment' where effects do not vary"),
        (terms.c(terms.factor("g", coding="levels")), T, "coding of c(g) must be 'treatment' where effects do not"),
        (terms.factor("X"), T, "data must have the column 'X' (labels)"),
        (terms.s("g"), T, "g must hold numbers, got"),
        (terms.s("nothing"), T, "data must have the column 'nothing' (numbers)"),
        (terms.s("z", k=(8, 5, 3)), T, "k of s(z) must be a number or a pair, for z and for t, got (8, 5, 3)"),
        (terms.s("z", k=(8, 5)), None, "k of s(z) must be one number where the effect is the same at all t"),
        (terms.s("z", k=(8, 2)), T, "k of s(z) must be an integer of at least degree + 1 = 3, got 2"),
        (terms.s("z", by="X"), T, "data must have the column 'X' (numbers)"),
        (terms.te("z"), T, "te(z) must have two or more different columns; for one use s()"),
        (terms.te("z", "z"), T, "te(z, z) must have two or more different columns"),
        (terms.te("z", "w", k=(5,)), T, "k of te(z, w) must have one entry for each of z, w, and may have one for t"),
        (terms.by("g", terms.s("z"), coding="numbers"), T, "g must hold numbers, got"),
        (terms.by("g", terms.re("g")), T, "re(g):g must have a term of other columns than g"),
        (terms.by("g", terms.s("z"), coding="sum"), T, "coding of s(z):g must be one of"),
    ],
)
def test_settings_are_checked(term, t, message):
    with pytest.raises(InputError) as caught:
        fixed(term, t)
    assert message in str(caught.value)


def test_one_level_is_no_factor():
    data = {**cohort(), "g": np.array(["a"] * 60)}
    for term in (terms.factor("g"), terms.by("g", terms.linear("x"), coding="treatment")):
        with pytest.raises(InputError, match="g must have at least two levels, got 'a' in all rows"):
            fixed(term, T, data)


def test_what_cannot_be_constant():
    with pytest.raises(InputError, match=r"c\(\) must have a term that can be the same at all t: .* got ff\(X\)"):
        terms.c(terms.ff("X"))
    assert terms.c("x") == terms.linear("x", constant=True)
    assert terms.c(terms.re("g", k=5)) == terms.re("g")


def test_a_hundred_thousand_rows_need_no_more_than_their_features():
    import tracemalloc

    n = 100_000
    rng = np.random.default_rng(0)
    data = {"z": rng.normal(size=n), "w": rng.normal(size=n), "x": rng.normal(size=n)}
    rows = Records(n, {**data, "g": rng.choice(list("abc"), n).astype(object)})
    for term in (terms.s("z"), terms.te("z", "w"), terms.s("z", by="g", bs="ps")):
        tracemalloc.start()
        term.fixed(TrainingSummary.of([rows]), T).features(rows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 300e6, (term.name, peak)
