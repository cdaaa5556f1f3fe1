"""Functions along the response: as many as local effects need, where a term leaves their number to the fit."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fdadp import DPAFF, FunctionalRegression, Privacy, terms
from fdadp.datasets import load_lip_emg
from fdadp.errors import InputError

T = np.linspace(0, 1, 41)
USELESS = DPAFF(allow_useless=True)

ALONG = {
    "x": terms.linear("x"),
    "C(g)": terms.factor("g"),
    "X": terms.concurrent("X"),
    "ffpc": terms.ffpc("X", n_components=2),
    "ff": terms.ff("X"),
    "s": terms.s("x"),
    "s, k": terms.s("x", k=6),
    "times": terms.by("x", terms.ff("X")),
}


def people(n=40, t=T, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, 4)) @ np.array([np.cos(k * np.pi * t) for k in range(4)])
    z, g = draw.normal(size=n), np.arange(n) % 2
    return {"X": x, "x": z, "g": np.where(g, "b", "a"), "Y": z[:, None] * t + x + 0.3 * draw.normal(size=x.shape)}


def fit(term, data, t=T, **settings):
    model = FunctionalRegression([term], progress=False, **settings)
    return model.fit(data, grids={"X": t, "Y": t})


@pytest.mark.parametrize("name", ALONG)
def test_fifteen_by_default_and_refunds_by_name(name):
    refund = 8 if name == "ffpc" else 5
    assert fit(ALONG[name], people()).fitted_.fit.form.designs[-1].along.size == 15
    assert fit(ALONG[name], people(), k="refund").fitted_.fit.form.designs[-1].along.size == refund


def test_a_number_that_is_given_stays():
    for term, size in (
        (terms.ff("X", k=(5, 5)), 5),
        (terms.linear("x", k=5), 5),
        (terms.s("x", k=(8, 5)), 5),
        (terms.s("x", k="refund"), 5),
        (terms.ff("X", k="refund"), 5),
        (terms.linear("x", k=20), 20),
    ):
        assert fit(term, people()).fitted_.fit.form.designs[-1].along.size == size
    with pytest.raises(InputError, match=r"k must be one of 'auto', 'refund', got 'mgcv'\. The size of one term"):
        fit(terms.linear("x"), people(), k="mgcv")
    with pytest.raises(InputError, match="k of x must be a whole number, got 'many'"):
        terms.linear("x", k="many")


@pytest.mark.parametrize("points", range(4, 13))
def test_few_points_are_enough(points):
    t = np.linspace(0, 1, points)
    data = people(t=t)
    for term in (terms.linear("x"), terms.ff("X"), terms.s("x"), terms.concurrent("X")):
        model = fit(term, data, t)
        assert model.fitted_.fit.form.designs[-1].along.size == max(points, 5)
        assert np.isfinite(np.asarray(model.predict_se(data))).all()


def test_a_difference_that_changes_sign_within_a_tenth_of_the_domain():
    """One group is above the other at .45 and as far below it at .55; refund's five functions miss it."""
    t = np.linspace(0, 1, 81)
    truth = (0.5 - t) / 0.05 * np.exp(0.5 - ((t - 0.5) / 0.05) ** 2 / 2)
    draw = np.random.default_rng(3)
    smooth = np.linalg.cholesky(np.exp(-(np.subtract.outer(t, t) ** 2) / 0.045) + 1e-8 * np.eye(t.size))
    g = np.arange(80) % 2
    labels = np.where(g, "b", "a")
    y = np.sin(2 * np.pi * t) + g[:, None] * truth + 0.3 * draw.normal(size=(80, t.size)) @ smooth.T
    found = {}
    for k in ("auto", "refund"):
        model = FunctionalRegression("Y ~ g", k=k).fit({"Y": y, "g": labels}, grids={"Y": t})
        found[k] = model.coef("g", se=True, g=["b"], t=[0.45, 0.55])
    ours = found["auto"]
    assert ours["value"].iloc[0] > 2 * ours["se"].iloc[0]
    assert ours["value"].iloc[1] < -2 * ours["se"].iloc[1]
    assert np.abs(ours["value"]).min() > 2 * np.abs(found["refund"]["value"]).min()


def test_private_fits_have_the_prior_functions_along_the_response():
    """Of which no term says how many there are: its default, and refund's number by name, change no private fit."""
    data, bounds = people(60), {"X": (-4, 4), "x": (-3, 3), "Y": (-6, 6)}

    def private(*model):
        privacy = Privacy(8.0, 1e-6, n=60, random_state=1)
        made = FunctionalRegression(list(model), response="Y", privacy=privacy, bounds=bounds, mechanism=USELESS)
        return made.fit({name: data[name] for name in ("X", "x", "Y")}, grids={"X": T, "Y": T}).fitted_.fit.coefficients

    plain = private(terms.ff("X"), terms.s("x"))
    np.testing.assert_array_equal(plain, private(terms.ff("X", k="refund"), terms.s("x", k="refund")))
    np.testing.assert_array_equal(plain, private(terms.ff("X", k=(5, 5)), terms.s("x")))
    with pytest.raises(InputError, match="along t in a private fit"):
        private(terms.ff("X", k=(5, 15)))


@pytest.mark.skipif(not os.environ.get("FDADP_DATA"), reason="FDADP_DATA: where the lip data are")
def test_lip_on_four_scores():
    """Held-out R2 of ten folds, about the mean curve of the training rows: -.006 with five functions along t."""
    lip = load_lip_emg(n_points=101, download=False)
    x, y = (np.asarray(c.data_matrix[:, :, 0]) for c in (lip.X, lip.Y))
    t = np.linspace(0, 1, y.shape[1])
    fold = np.random.default_rng(0).permutation(len(x)) % 10
    left = about = 0.0
    for k in range(10):
        train, test = fold != k, fold == k
        mean = x[train].mean(axis=0)
        axes = np.linalg.svd(x[train] - mean, full_matrices=False)[2][:4]
        of = {f"z{i}": v for i, v in enumerate(((x - mean) @ axes.T).T)}
        model = FunctionalRegression([terms.linear(name) for name in of], progress=False)
        model.fit({name: v[train] for name, v in of.items()} | {"Y": y[train]}, grids={"Y": t})
        predicted = np.asarray(model.predict({name: v[test] for name, v in of.items()}))
        left += ((y[test] - predicted) ** 2).sum()
        about += ((y[test] - y[train].mean(axis=0)) ** 2).sum()
    assert 1 - left / about >= 0.2


def test_chunks_and_random_curves_have_the_same_sizes_and_files_keep_theirs(tmp_path):
    t = np.linspace(0, 1, 21)
    data, grids = people(t=t), {"X": t, "Y": t}
    rows = [{name: column[part] for name, column in data.items()} for part in (slice(0, 25), slice(25, None))]
    chunked = FunctionalRegression("Y ~ ff(X) + x", progress=False).fit_chunks(rows, grids=grids)
    person = {"id": np.array([f"p{i}" for i in np.arange(40) // 2]), "Y": data["Y"] - data["X"]}
    mixed = FunctionalRegression('Y ~ x + re(id, covariance="free")', progress=False).fit(data | person, grids=grids)
    for model, terms_known in ((chunked, ("ff(X)", "x")), (mixed, ("x",))):
        sizes = {design.name: design.along.size for design in model.fitted_.fit.form.designs}
        assert all(sizes[name] == 15 for name in terms_known)
    seven = FunctionalRegression("Y ~ ff(X, k=(6, 7)) + x", progress=False).fit(data, grids=grids)
    said = "Functions along t: 7 of ff(X); 15 of x."
    assert said in str(seven.summary())
    again = FunctionalRegression.load(seven.save(tmp_path / "model.npz"))
    assert said in str(again.summary())
    np.testing.assert_allclose(again.predict(data), seven.predict(data), rtol=1e-12)


ADVICE = "Errors depend along t: errors='curve' estimates effects with less error."


def noisy(kind, n, seed=0, points=31):
    """A number's effect, and errors that are smooth along t, white, or white with a heavy-tailed scale a curve."""
    draw, t = np.random.default_rng(seed), np.linspace(0, 1, points)
    errors, x = draw.normal(size=(n, points)), draw.normal(size=n)
    if kind == "smooth":
        errors = errors @ np.linalg.cholesky(np.exp(-(np.subtract.outer(t, t) ** 2) / 0.045) + 0.1 * np.eye(points)).T
    elif kind == "heavy":
        errors *= draw.standard_t(3, size=(n, 1))
    return {"x": x, "Y": np.sin(6 * t) + x[:, None] * t + 0.5 * errors}


def advised(data, **settings):
    points = np.linspace(0, 1, data["Y"].shape[1])
    return FunctionalRegression("Y ~ x", progress=False, **settings).fit(data, grids={"Y": points})


def test_smooth_errors_are_said_with_what_helps(tmp_path):
    model = advised(noisy("smooth", 40))
    assert str(model.summary()).count(ADVICE) == 1
    assert ADVICE in str(FunctionalRegression.load(model.save(tmp_path / "model.npz")).summary())
    with_gaps = noisy("smooth", 60)
    with_gaps["Y"] = np.where(np.random.default_rng(1).random((60, 31)) < 0.3, np.nan, with_gaps["Y"])
    assert ADVICE in str(advised(with_gaps).summary())


@pytest.mark.parametrize("kind", ["white", "heavy"])
@pytest.mark.parametrize("n", [30, 120])
def test_errors_without_dependence_are_not_said_to_have_one(kind, n):
    for seed in range(3):
        data = noisy(kind, n, seed)
        assert ADVICE not in str(advised(data).summary())
        data["Y"] = np.where(np.random.default_rng(seed).random(data["Y"].shape) < 0.3, np.nan, data["Y"])
        assert ADVICE not in str(advised(data).summary())


def test_where_a_working_covariance_is_no_help_it_is_not_advised():
    for n in (29, 300):  # it is not known, or hardly needed
        assert ADVICE not in str(advised(noisy("smooth", n)).summary())
    data = noisy("smooth", 40)
    for settings in ({"errors": "curve"}, {"response_basis": "eigen"}):
        assert ADVICE not in str(advised(data, **settings).summary())
    assert ADVICE not in str(advised(noisy("smooth", 40, points=9)).summary())  # which errors="curve" refuses
    counts = data | {"Y": np.round(np.exp(data["Y"]))}
    assert ADVICE not in str(advised(counts, family="poisson").summary())


def test_what_is_advised_estimates_effects_with_less_error():
    """Root mean squared errors of a surface over six cohorts with smooth errors, beside the effect of a number."""
    t = np.linspace(0, 1, 31)
    root = np.linalg.cholesky(np.exp(-(np.subtract.outer(t, t) ** 2) / 0.045) + 0.1 * np.eye(31)).T
    surface, off = 3 * np.sin(np.pi * np.add.outer(t, t)), []
    for seed in range(6):
        draw = np.random.default_rng([seed, 7])
        x, z = draw.normal(size=(60, 31)) @ root + 0.5 * draw.normal(size=(60, 1)), draw.normal(size=60)
        y = (x * np.gradient(t)) @ surface + z[:, None] * t + 0.55 * draw.normal(size=(60, 31)) @ root
        data = {"X": x, "z": z, "Y": y}
        found = []
        for errors in ("iid", "curve"):
            model = FunctionalRegression("Y ~ ff(X) + z", errors=errors, progress=False)
            model.fit(data, grids={"X": t, "Y": t})
            assert (ADVICE in str(model.summary())) == (errors == "iid")
            values = model.coef("ff(X)", s=t, t=t).pivot(index="s", columns="t", values="value").to_numpy()
            found.append(float(((values - surface) ** 2).mean()))
        off.append(found)
    iid, curve = np.sqrt(np.mean(off, axis=0))
    assert curve < 0.8 * iid


def delayed(width, n, seed=0):
    """Curves whose shapes are as wide as `width`, and what they were a tenth before, at 31 points."""
    draw, t = np.random.default_rng(seed), np.linspace(0, 1, 31)
    root = np.linalg.cholesky(np.exp(-(np.subtract.outer(t, t) ** 2) / width**2) + 1e-6 * np.eye(31)).T
    x = draw.normal(size=(n, 31)) @ root
    y = np.column_stack([np.zeros((n, 3)), x[:, :-3]]) + 0.5 * draw.normal(size=(n, 31))
    return {"X": x, "Y": y}, {"X": t, "Y": t}


def test_too_few_functions_of_s_are_said_and_what_is_advised_predicts_better():
    said = "functions of s, which follow"
    data, grids = delayed(0.06, 400)
    train, new = ({name: column[part] for name, column in data.items()} for part in (slice(100), slice(100, None)))
    model = FunctionalRegression("Y ~ ff(X)", progress=False).fit(train, grids=grids)
    assert f"ff(X) has 5 {said}" in str(model.summary())
    advised = FunctionalRegression("Y ~ ff(X, k=(20, 15))", errors="curve", progress=False).fit(train, grids=grids)
    assert said not in str(advised.summary())
    left = [np.square(new["Y"] - fit.predict(new)).sum() for fit in (model, advised)]
    assert left[1] < 0.8 * left[0]
    smooth, grids = delayed(0.5, 100)
    assert said not in str(FunctionalRegression("Y ~ ff(X)", progress=False).fit(smooth, grids=grids).summary())


@pytest.mark.skipif(not os.environ.get("FDADP_DATA"), reason="FDADP_DATA: where the lip data are")
def test_an_effect_that_the_smoothest_functions_cannot_see_is_found():
    """The search begins on few coordinates. There the muscle has no effect: from too far out it stayed without one."""
    lip = load_lip_emg(download=False)
    data = {name: getattr(lip, name).data_matrix[:, ::20, 0] for name in ("X", "Y")}
    found, given = (
        FunctionalRegression("Y ~ ff(X, k=(20, 15))", smoothing=how, progress=False).fit(data)
        for how in ("reml", np.exp([-0.8, -7.7, -10.5]))
    )
    assert found.criterion_ < given.criterion_ + 1e-6  # it was 90 above its minimum
