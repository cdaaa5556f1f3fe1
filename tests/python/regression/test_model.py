"""Estimators: constructors, and several terms of one's own as one penalised least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

from fdadp import AdditiveFunctionOnFunction, FunctionalRegression, simulate_affr, terms
from fdadp.errors import FileFormatError, InputError
from fdadp.files.dataclass_json import pack, unpack
from fdadp.files.npz_files import Layout
from fdadp.terms.spec import TermDesign, TermSpec

GRID = np.linspace(0, 1, 31)
GRIDS = {"X": GRID, "Y": GRID}


@dataclass(frozen=True)
class AtPoints(TermSpec):
    """The values of a curve at every tenth point."""

    column: str = "X"
    penalty: float = 1.0

    @property
    def name(self):
        return f"at_points({self.column})"

    @property
    def columns(self):
        return (self.column,)

    def fixed(self, seen, t):
        grid = seen.curves_of(self.column).grid
        return AtPointsDesign(
            name=self.name, columns=self.columns, grid=grid, own_penalties=np.full((1, 4), self.penalty)
        )


@dataclass(frozen=True, kw_only=True)
class AtPointsDesign(TermDesign):
    grid: np.ndarray

    def features(self, records, t=None):
        x = records.curves(self.columns[0], self.grid)
        return x.values[:, ::10].copy()

    @property
    def axes(self):
        return {"at": (0, 10, 20, 30)}

    def effect(self, *points):
        return np.eye(4)[[(0, 10, 20, 30).index(at) for at in points[0]]]


def eigen(*model, **settings):
    return FunctionalRegression(list(model), response_basis="eigen", **settings)


@pytest.fixture(scope="module")
def data():
    sim = simulate_affr(1, 150, np.random.default_rng(0), n_points=31)
    return np.array(sim.X.data_matrix[..., 0]), np.array(sim.Y.data_matrix[..., 0])


def test_several_terms_are_one_penalised_least_squares(data):
    x, y = data
    z = np.random.default_rng(1).normal(size=x.shape)
    y = y + z[:, [10]] * np.cos(GRID)
    sp = (2.0, 0.5)
    model = eigen(AtPoints("X"), AtPoints("Z"), smoothing=sp)
    model.fit({"X": x, "Z": z, "Y": y}, grids=GRIDS | {"Z": GRID})
    features = np.hstack((x[:, ::10], z[:, ::10]))
    features = features - features.mean(axis=0)
    basis = model.eigenbasis_
    scores = basis.scores(y)
    beta = np.linalg.solve(features.T @ features + np.diag(np.repeat(sp, 4)), features.T @ scores)
    found = [model.coef(f"at_points({name})", t=GRID)["value"].to_numpy().reshape(4, -1) for name in "XZ"]
    np.testing.assert_allclose(np.vstack(found), beta @ basis.functions, rtol=1e-9, atol=1e-11)
    wanted = y.mean(axis=0) + features @ beta @ basis.functions
    np.testing.assert_allclose(model.predict({"Z": z, "X": x}), wanted, rtol=1e-9, atol=1e-9)
    assert model.smoothing_parameters_.tolist() == [list(sp)] * basis.n_components


def test_terms_of_other_kinds_stand_side_by_side(data):
    x, y = data
    z = np.random.default_rng(1).normal(size=x.shape)
    shift = 3 * z[:, [10]] * np.cos(GRID)
    model = eigen(terms.sff("X", k=(5, 7, 7)), AtPoints("Z"))
    model.fit({"X": x, "Z": z, "Y": y + shift}, grids=GRIDS | {"Z": GRID})
    alone = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, progress=False).fit(x, y)
    assert model.score({"X": x, "Z": z, "Y": y + shift}) > alone.r2_
    got = model.predict({"X": x, "Z": z}) - model.predict({"X": x, "Z": 0 * z})
    assert 1 - ((got - shift) ** 2).mean() / shift.var() > 0.98


@pytest.mark.parametrize(
    ("model", "settings", "text"),
    [
        ([], {}, "formula must have at least one term"),
        (["X"], {}, "formula must be a formula, or a sequence of terms"),
        ([AtPoints("Z")], {}, "data must have the column 'Z', got the columns X, Y"),
        ([AtPoints()], {"smoothing": (1.0, 2.0, 3.0)}, "smoothing must hold 1 smoothing parameters"),
        ([AtPoints(), AtPoints()], {}, r"terms must be different, got at_points\(X\) twice"),
    ],
)
def test_what_cannot_be_fitted_is_refused(data, model, settings, text):
    x, y = data
    with pytest.raises(InputError, match=text):
        eigen(*model, **settings).fit({"X": x, "Y": y}, grids=GRIDS)


def test_new_covariates_must_be_those_of_the_fit(data):
    x, y = data
    model = eigen(AtPoints("X"), AtPoints("Z")).fit({"X": x, "Z": x**2, "Y": y}, grids=GRIDS | {"Z": GRID})
    with pytest.raises(InputError, match="data must have the column 'Z', got the columns X"):
        model.predict({"X": x})
    with pytest.raises(InputError, match="data must be"):
        model.predict(x)


def test_parameters_are_those_of_scikit_learn():
    model = eigen(AtPoints(), smoothing="gcv")
    assert clone(model).get_params()["formula"] == [AtPoints()]
    assert model.set_params(smoothing="reml").smoothing == "reml"


CONSTRUCTION = (
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_cloneable,
)


CHECKS = [(AdditiveFunctionOnFunction(), check) for check in CONSTRUCTION] + [
    (eigen(AtPoints()), check) for check in CONSTRUCTION if check.__name__ != "check_parameters_default_constructible"
]


@pytest.mark.parametrize(("model", "check"), CHECKS, ids=lambda v: getattr(v, "__name__", type(v).__name__))
def test_constructors_pass_scikit_learns_checks(model, check):
    check(type(model).__name__, model)


def test_groups_are_one_a_curve(data):
    x, y = data
    with pytest.raises(InputError, match=r"groups must have one label a row, 150 in all"):
        eigen(AtPoints()).fit({"X": x, "Y": y}, grids=GRIDS, groups=np.arange(9))


def test_files_make_no_class_that_is_not_a_term(data, tmp_path):
    x, y = data
    model = eigen(AtPoints()).fit({"X": x, "Y": y}, grids=GRIDS)
    tree, numbers = pack(AtPoints(), "term")
    assert unpack(tree, numbers, lambda kind: kind is AtPoints) == AtPoints()
    for path in ("pathlib.Path", "nowhere.AtPoints", "subprocess.Popen"):
        with pytest.raises(ValueError, match="must be a class that can be found"):
            unpack(tree | {"class": path}, numbers, lambda kind: True)
    with pytest.raises(ValueError, match="must be a class"):
        unpack(tree, numbers, lambda kind: False)
    layout = Layout("FunctionalRegression", {"numbers": "v"})
    content, arrays = layout.read(model.save(tmp_path / "model"))
    content["tree"] = "nothing"
    layout.write(tmp_path / "other", content, arrays)
    with pytest.raises(FileFormatError, match="model"):
        FunctionalRegression.load(tmp_path / "other")


def test_new_curves_must_lie_on_the_training_domain(data):
    x, y = data
    model = eigen(AtPoints()).fit({"X": x, "Y": y}, grids=GRIDS)
    with pytest.raises(InputError, match=r"X must lie on the training domain \[0, 1\], got \[0, 2\]"):
        model.predict({"X": x}, grids={"X": 2 * GRID})
