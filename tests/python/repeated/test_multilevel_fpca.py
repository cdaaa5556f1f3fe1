"""``MultilevelFPCA``: both methods, scores with gaps, containers, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from repeated_tools import curves_of_persons
from skfda import FDataGrid
from sklearn.base import clone

from fdadp.errors import FileFormatError, IdentificationWarning, InputError
from fdadp.functional.gap_filling import fill_linear
from fdadp.repeated.fixed_effects import fixed_effects
from fdadp.repeated.multilevel_fpca import MultilevelFPCA
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.reml_search import level_covariances
from r_bridge._check_recorded import check_case

C = curves_of_persons(0, 120)
PLAIN = C.Y - C.X @ C.beta[1:]
T = C.t


def captured(found, truth) -> float:
    """Share of the span of true functions (3, T) that the first three found hold."""
    q = np.linalg.qr(truth.T)[0]
    return float(((q.T @ np.linalg.qr(found[:3].T)[0]) ** 2).sum() / 3)


BETWEEN = np.stack([np.ones(60), np.sin(2 * np.pi * T), np.cos(2 * np.pi * T)])
ROWS = np.stack([np.cos(np.pi * T), np.sin(2 * np.pi * T), np.cos(3 * np.pi * T)])


@pytest.mark.parametrize("method", ["reml", "face"])
def test_both_methods_find_both_levels(method):
    model = MultilevelFPCA(method=method, n_components=(0.95, 0.95)).fit(PLAIN, groups=C.who)
    assert captured(model.eigenfunctions_["person"], BETWEEN) > 0.95
    assert captured(model.eigenfunctions_["row"], ROWS) > 0.9 or model.n_components_["row"] < 3
    np.testing.assert_allclose(model.eigenfunctions_["person"] ** 2 @ model.weights_, 1, atol=1e-10)
    assert model.icc_ == pytest.approx(1.75 / 3.15, abs=0.07)
    assert model.icc_with_noise_ == pytest.approx(1.75 / 3.4, abs=0.07)
    assert model.noise_variance_ == pytest.approx(0.25, abs=0.05)
    np.testing.assert_allclose(model.eigenvalues_["person"][:3], [1, 0.5, 0.25], rtol=0.5)
    assert model.icc_curve_.shape == (60,) and (model.explained_variance_ratio_["row"] > 0).all()
    assert abs(model.mean_ - C.beta[0]).mean() < 0.25
    text = str(model.summary())
    assert "Components, person" in text and f"{model.icc_:.3f}" in text and "<table" in model.summary().as_html()
    assert text == str(model) and "Components, person" in model._repr_mimebundle_()["text/html"]


def test_face_is_refunds_multilevel_face_on_dti_as_recorded(reference):
    found = {d.quantity: d for d in check_case(reference("mfpca_dti"))}
    assert len(found) == 7
    assert [d for d in found.values() if not d.value < d.tolerance] == []


def test_names_of_levels_and_numbers_of_components():
    model = MultilevelFPCA(levels=("mouse", "trial"), n_components=(2, 1), k=6).fit(PLAIN, groups=C.who)
    assert model.eigenfunctions_["mouse"].shape == (2, 60) and model.eigenfunctions_["trial"].shape == (1, 60)
    person, row = model.transform(PLAIN, groups=C.who)
    assert list(person.columns) == ["mouse0", "mouse1"] and row.shape == (len(C.who), 1)
    curves = model.inverse_transform(person)
    np.testing.assert_allclose(curves[0], model.mean_ + person.to_numpy()[0] @ model.eigenfunctions_["mouse"])
    assert clone(model).get_params() == model.get_params()


def test_scores_are_the_best_linear_predictions_of_the_mixed_model():
    model = MultilevelFPCA(k=8, n_components=1.0).fit(PLAIN, groups=C.who)
    person, row = model.transform(PLAIN, groups=C.who)
    s = curves_without_features().sums(8)
    levels = level_covariances(s)
    fit = RepeatedFit(s, levels, fixed_effects(s, levels))
    effects = fit.effects()[s.ids.get_indexer(person.index)]
    mine = person.to_numpy() @ model.eigenfunctions_["person"]
    # Scores take R - σ² I without its negative eigenvalues, effects R as it is.
    np.testing.assert_allclose(mine, effects @ s.phi.T, atol=0.02 * np.abs(mine).max())
    v = fit.means_of(np.zeros((len(PLAIN), 0)), PLAIN)
    of_rows = fit.row_effects(v, fit.effects()[s.ids.get_indexer(C.who)])
    np.testing.assert_allclose(row @ model.eigenfunctions_["row"], of_rows @ s.phi.T, atol=0.05)


def curves_without_features():
    from dataclasses import replace

    return replace(C, X=np.zeros((len(PLAIN), 0)), Y=PLAIN)


def test_a_person_is_scored_by_their_rows_alone():
    model = MultilevelFPCA(k=8).fit(PLAIN, groups=C.who)
    person, row = model.transform(PLAIN, groups=C.who)
    some = np.flatnonzero(C.who == 7)
    alone, rows = model.transform(PLAIN[some], groups=["x"] * some.size)
    np.testing.assert_allclose(alone.to_numpy()[0], person.loc[7], atol=1e-9)
    np.testing.assert_allclose(rows, row[some], atol=1e-9)


def test_gaps_are_filled_by_the_row_and_the_other_rows_of_the_person():
    model = MultilevelFPCA(k=8).fit(PLAIN, groups=C.who)
    gapped = PLAIN.copy()
    gapped[::4, 20:45] = np.nan
    filled = model.complete(gapped, groups=C.who)
    hole = np.isnan(gapped)
    np.testing.assert_array_equal(filled[~hole], gapped[~hole])
    error = np.sqrt(np.mean((filled - PLAIN)[hole] ** 2))
    strangers = model.complete(gapped, groups=np.arange(len(gapped)))
    assert error < 0.7 < PLAIN.std()
    assert error < np.sqrt(np.mean((strangers - PLAIN)[hole] ** 2))
    mean = np.sqrt(np.mean((model.mean_ - PLAIN)[:, 20:45][::4] ** 2))
    assert error < 0.5 * mean


def test_curves_with_gaps_are_fitted_from_what_was_observed():
    rng, some = np.random.default_rng(0), slice(0, 200)
    off = (np.arange(60) - rng.integers(0, 60, 200)[:, None]) % 60 < 15
    Y, X = C.Y[some].copy(), C.X[some]
    Y[off] = np.nan
    model = MultilevelFPCA(k=6).fit(Y, groups=C.who[some], covariates=X)
    whole = MultilevelFPCA(k=6).fit(C.Y[some], groups=C.who[some], covariates=X)
    assert model.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.05)
    assert model.icc_ == pytest.approx(whole.icc_, abs=0.05)
    np.testing.assert_allclose(model.mean_, whole.mean_, atol=0.35)
    np.testing.assert_allclose(model.coefficients_, whole.coefficients_, atol=0.35)
    lines = MultilevelFPCA(k=6).fit(fill_linear(Y, T), groups=C.who[some], covariates=X)
    error = [np.abs(m.noise_variance_ - 0.25) for m in (model, lines)]
    assert error[0] < error[1]  # what is filled in has no noise
    with pytest.raises(InputError, match="'reml' takes curves with gaps"):
        MultilevelFPCA(method="face").fit(Y, groups=C.who[some])


def test_covariates_move_the_mean_curve():
    with_them = MultilevelFPCA(k=8).fit(C.Y, groups=C.who, covariates=C.X)
    assert with_them.coefficients_.shape == (2, 60)
    assert abs(with_them.coefficients_[0] - C.beta[1]).mean() < 0.2
    without = MultilevelFPCA(k=8).fit(C.Y, groups=C.who)
    assert with_them.eigenvalues_["row"].sum() < without.eigenvalues_["row"].sum()
    with pytest.raises(InputError, match="2 columns"):
        with_them.transform(C.Y, groups=C.who)
    frame = pd.DataFrame(C.X, columns=["age", "weekend"])
    np.testing.assert_allclose(
        with_them.transform(C.Y, groups=C.who, covariates=frame)[1],
        with_them.transform(C.Y, groups=C.who, covariates=C.X)[1],
    )


def test_chunks_in_any_order_give_the_same_fit():
    whole = MultilevelFPCA(n_components=2).fit(C.Y, groups=C.who, covariates=C.X)
    order = np.random.default_rng(0).permutation(len(C.Y))
    parts = [(C.Y[i], C.who[i], C.X[i]) for i in np.array_split(order, 5)]
    chunked = MultilevelFPCA(n_components=2).fit_chunks(parts, t=T)
    assert chunked.k_ == whole.k_
    np.testing.assert_allclose(chunked.eigenvalues_["person"], whole.eigenvalues_["person"], rtol=1e-5)
    np.testing.assert_allclose(chunked.mean_, whole.mean_, atol=1e-5)
    with pytest.raises(InputError, match="must be 'reml' for chunks"):
        MultilevelFPCA(method="face").fit_chunks(parts, t=T)


def test_containers_come_back_as_they_were_given():
    t = np.linspace(0, 24, 60)
    frame = pd.DataFrame(PLAIN, columns=t, index=[f"r{i}" for i in range(len(PLAIN))])
    groups = pd.Series(C.who, index=frame.index).map(lambda i: f"p{i}")
    model = MultilevelFPCA(k=6).fit(frame, groups=groups)
    person, _ = model.transform(frame, groups=groups)
    assert model.grid_[-1] == 24 and person.index[0] == "p0"
    assert isinstance(model.complete(frame, groups=groups), pd.DataFrame)
    assert isinstance(model.inverse_transform(person), pd.DataFrame)
    grid = MultilevelFPCA(k=6).fit(FDataGrid(PLAIN, t), groups=C.who)
    assert isinstance(grid.inverse_transform(person), FDataGrid)
    np.testing.assert_allclose(grid.eigenvalues_["row"], model.eigenvalues_["row"])
    with pytest.raises(InputError, match="same row labels"):
        MultilevelFPCA(k=6).fit(frame, groups=groups[::-1])


@pytest.mark.parametrize("method", ["reml", "face"])
def test_a_saved_model_scores_as_before_and_holds_no_person(method, tmp_path):
    ids = np.array([f"canary-{i}" for i in C.who])
    model = MultilevelFPCA(method=method, n_components=(0.9, 2)).fit(PLAIN, groups=ids)
    path = model.save(tmp_path / "levels")
    assert b"canary" not in path.read_bytes()
    again = MultilevelFPCA.load(path)
    assert again.get_params() == model.get_params() and again.icc_ == model.icc_ and again.k_ == model.k_
    for a, b in zip(again.transform(PLAIN, groups=ids), model.transform(PLAIN, groups=ids), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert str(again.summary()) == str(model.summary())
    np.savez(tmp_path / "other.npz", x=1)
    with pytest.raises(FileFormatError):
        MultilevelFPCA.load(tmp_path / "other.npz")


def test_a_picture_of_each_level():
    pytest.importorskip("matplotlib").use("Agg")
    model = MultilevelFPCA(k=6, n_components=2).fit(PLAIN, groups=C.who)
    assert len(model.plot().axes) == len(model.plot("row", kind="functions").axes) == 2
    with pytest.raises(InputError, match="level must be one of 'person', 'row'"):
        model.plot("day")


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, {"groups": None}, "groups must say of each row whose it is, got None"),
        ({}, {"groups": [None, *C.who[1:]]}, "missing in 1 rows"),
        ({}, {"groups": C.who[:5]}, f"groups must have {len(C.who)} entries"),
        ({"method": "sc"}, {}, "method must be one of"),
        ({"method": "face"}, {"covariates": C.X}, "refund's has none"),
        ({"k": 2}, {}, "k must be a whole number of at least 4"),
        ({"levels": ("a", "a")}, {}, "levels must be two names"),
        ({"n_components": (0.9,)}, {}, "n_components must have 2 entries"),
        ({"n_components": "a"}, {}, r"n_components must be an integer of at least 1 or a share .* got 'a'"),
        ({"n_components": (1, None)}, {}, r"n_components must be an integer of at least 1 or a share .* got None"),
        ({}, {"covariates": C.X[:3]}, "covariates must be finite numbers"),
        ({}, {"groups": np.arange(len(C.who))}, "all .* people have one row"),
    ],
)
def test_what_cannot_be_fitted_is_refused(settings, arguments, message):
    with pytest.raises(InputError, match=message):
        MultilevelFPCA(**settings).fit(PLAIN, **{"groups": C.who, **arguments})


def test_rough_rows_are_said():
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.exp(-np.abs(T[:, None] - T) / 0.05) + 1e-10 * np.eye(60))
    Y = rng.normal(size=(80, 1))[np.repeat(np.arange(80), 3)] + rng.normal(size=(240, 60)) @ root.T
    Y += 0.5 * rng.normal(size=Y.shape)
    with pytest.warns(IdentificationWarning, match="times as much as white noise"):
        model = MultilevelFPCA(k=None).fit(Y, groups=np.repeat(np.arange(80), 3))
    assert model.whiteness_ > 1.15


def test_smoothed_curves_are_fitted_and_that_is_said():
    from fdadp.repeated.person_sums import smooth_functions

    phi = smooth_functions(T, 20)[0][:, :6]
    model = MultilevelFPCA().fit(PLAIN @ phi @ phi.T, groups=C.who)
    assert model.noise_variance_ == 0 and model.k_ <= 6 and "look smoothed" in str(model.summary())
    person, _ = model.transform(PLAIN @ phi @ phi.T, groups=C.who)
    assert np.isfinite(person.to_numpy()).all()
    others = np.cos(np.pi * np.outer(np.arange(6), T))  # smooth functions of another basis
    rough = MultilevelFPCA().fit(PLAIN @ np.linalg.pinv(others) @ others, groups=C.who)
    assert rough.noise_variance_ < 1e-4 and rough.icc_ == pytest.approx(model.icc_, abs=0.02)
