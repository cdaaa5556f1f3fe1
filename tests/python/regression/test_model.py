"""Functional regressions on any terms: the additive model is one of them, and several terms are one least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.errors import FileFormatError, InputError
from fdadp.files.records import pack, unpack
from fdadp.regression.eigen import EigenRegression
from fdadp.terms.additive import Additive
from fdadp.terms.base import Term

GRID = np.linspace(0, 1, 31)
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}


@dataclass(frozen=True)
class AtPoints(Term):
    """The values of a curve at every tenth point."""

    column: str = "X"
    penalty: float = 1.0

    @property
    def n_features(self):
        return 4

    def rows(self, x):
        return x.values[:, ::10].copy()

    @property
    def penalties(self):
        return np.full((1, 4), self.penalty)


@pytest.fixture(scope="module")
def data():
    sim = simulate_affr(1, 150, np.random.default_rng(0), n_points=31)
    return np.array(sim.X.data_matrix[..., 0]), np.array(sim.Y.data_matrix[..., 0])


@pytest.mark.parametrize("privacy", [None, Privacy(4.0, 1e-6, n=150, random_state=1)], ids=["plain", "private"])
def test_the_additive_model_is_that_of_one_additive_term(data, privacy, tmp_path):
    x, y = data
    own = AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, progress=False).fit(x, y)
    other = EigenRegression(terms=[Additive()], privacy=privacy, bounds=BOUNDS, progress=False).fit(x, y)
    loaded = EigenRegression.load(other.save(tmp_path / "model"))
    for model in (other, loaded):
        np.testing.assert_array_equal(model.coef_[0], own.coef_)
        np.testing.assert_array_equal(model.predict({"X": x[:9]}), own.predict(x[:9]))
        np.testing.assert_array_equal(model.predict_se(x[:9]), own.predict_se(x[:9]))
        assert model.r2_ == own.r2_ and (model.ledger_ is None) == (privacy is None)


def test_several_terms_are_one_penalised_least_squares(data):
    x, y = data
    z = np.random.default_rng(1).normal(size=x.shape)
    y = y + z[:, [10]] * np.cos(GRID)
    sp = (2.0, 0.5)
    model = EigenRegression(terms=[AtPoints("X"), AtPoints("Z")], smoothing=sp, progress=False)
    model.fit({"X": x, "Z": z}, y)
    features = np.hstack((x[:, ::10], z[:, ::10]))
    features = features - features.mean(axis=0)
    scores = (y - y.mean(axis=0)) @ model._fitted.response.projection
    beta = np.linalg.solve(features.T @ features + np.diag(np.repeat(sp, 4)), features.T @ scores)
    np.testing.assert_allclose(np.hstack(model.coef_).T, beta, rtol=1e-9, atol=1e-12)
    wanted = model.mean_ + features @ beta @ model.eigenfunctions_
    np.testing.assert_allclose(model.predict({"Z": z, "X": x}), wanted, rtol=1e-9, atol=1e-9)
    assert model.smoothing_parameters_.tolist() == [list(sp)] * len(model.edf_)


def test_terms_of_other_kinds_stand_side_by_side(data):
    x, y = data
    z = np.random.default_rng(1).normal(size=x.shape)
    shift = 3 * z[:, [10]] * np.cos(GRID)
    terms = [Additive("X", 7, 7), AtPoints("Z")]
    model = EigenRegression(terms=terms, progress=False).fit({"X": x, "Z": z}, y + shift)
    alone = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, progress=False).fit(x, y)
    assert model.r2_ > alone.r2_
    assert model.coef_[0].shape[1:] == (7, 7) and model.coef_[1].shape[1:] == (4,)
    got = model.predict({"X": x, "Z": z}) - model.predict({"X": x, "Z": 0 * z})
    assert 1 - ((got - shift) ** 2).mean() / shift.var() > 0.98


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"terms": []}, "terms must be one term or more"),
        ({"terms": ["X"]}, "terms must be one term or more"),
        ({"terms": [AtPoints("Z")]}, "X must be a mapping with Z, got X"),
        ({"smoothing": (1.0, 2.0, 3.0)}, r"numbers of shape \(1,\)"),
        (
            {"terms": [AtPoints(), AtPoints()], "privacy": Privacy(1.0, n=150), "bounds": BOUNDS},
            "one term in a private",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(data, settings, text):
    x, y = data
    with pytest.raises(InputError, match=text):
        EigenRegression(**{"terms": [AtPoints()], "progress": False, **settings}).fit({"X": x}, y)


def test_new_covariates_must_be_those_of_the_fit(data):
    x, y = data
    model = EigenRegression(terms=[AtPoints("X"), AtPoints("Z")], progress=False).fit({"X": x, "Z": x**2}, y)
    with pytest.raises(InputError, match="X must hold X, Z, got no Z"):
        model.predict({"X": x})
    with pytest.raises(InputError, match="X must be a mapping of X, Z, got ndarray"):
        model.predict(x)


def test_parameters_are_those_of_scikit_learn():
    model = EigenRegression(terms=[AtPoints()], smoothing="gcv")
    assert clone(model).get_params()["terms"] == [AtPoints()]
    assert model.set_params(smoothing="reml").smoothing == "reml"
    with pytest.raises(TypeError):
        EigenRegression([AtPoints()])


CONSTRUCTION = (
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_cloneable,
)


@pytest.mark.parametrize("check", CONSTRUCTION, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [AdditiveFunctionOnFunction, EigenRegression])
def test_constructors_pass_scikit_learns_checks(kind, check):
    check(kind.__name__, kind())


def test_groups_are_one_a_curve(data):
    x, y = data
    with pytest.raises(InputError, match=r"groups must have shape \(150,\)"):
        EigenRegression(terms=[AtPoints()], progress=False).fit({"X": x}, y, groups=np.arange(9))


def test_files_make_no_class_that_is_not_a_term(data, tmp_path):
    x, y = data
    model = EigenRegression(terms=[AtPoints()], progress=False).fit(x, y)
    tree, numbers = pack(AtPoints(), "term")
    assert unpack(tree, numbers, lambda kind: kind is AtPoints) == AtPoints()
    for path in ("pathlib.Path", "nowhere.AtPoints", "subprocess.Popen"):
        with pytest.raises(ValueError, match="must be a class that can be found"):
            unpack(tree | {"class": path}, numbers, lambda kind: True)
    with pytest.raises(ValueError, match="must be a class"):
        unpack(tree, numbers, lambda kind: False)
    from fdadp.regression.eigen import LAYOUT

    content, arrays = LAYOUT.read(model.save(tmp_path / "model"))
    content["tree"] = "nothing"
    LAYOUT.write(tmp_path / "other", content, arrays)
    with pytest.raises(FileFormatError, match="model"):
        EigenRegression.load(tmp_path / "other")


def test_new_curves_must_lie_on_the_training_domain(data):
    x, y = data
    model = EigenRegression(terms=[AtPoints()], progress=False).fit({"X": x}, y)
    with pytest.raises(InputError, match=r"X must lie on the training domain \[0, 1\], got \[0, 2\]"):
        model.predict({"X": x}, s=2 * GRID)
