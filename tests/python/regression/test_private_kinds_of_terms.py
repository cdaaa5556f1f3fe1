"""Private fits with terms of all kinds: they explain what was simulated, and tell nothing but their releases."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import FunctionalRegression, Privacy, ScalarRegression
from fdadp.audit.replay import Neighbours, drawing_from, replay_audit
from fdadp.privacy import Budget

S = np.linspace(0, 1, 21)
LEVELS = np.array(["a", "b", "c"])
BOUNDS = {"X": (-4.0, 4.0), "age": (20.0, 80.0), "dose": (0.0, 5.0), "g": list(LEVELS)}


def people(n, seed=0):
    """Curves, numbers and labels; smooth effects, an effect of the curve by level, and an interaction of numbers."""
    rng = np.random.default_rng(seed)
    covariance = np.exp(-0.5 * ((S[:, None] - S) / 0.2) ** 2) + 1e-8 * np.eye(S.size)
    x = rng.normal(size=(n, S.size)) @ np.linalg.cholesky(covariance).T + rng.normal(0, 0.5, (n, 1))
    age, dose, g = rng.uniform(20, 80, n), rng.uniform(0, 5, n), rng.integers(0, 3, n)
    parts = {
        "s": np.outer(np.sin(age / 12), 1 - S),
        "levels": (x @ np.outer(np.sin(2 * np.pi * S), np.cos(np.pi * S)) / 5) * np.array([0.2, 1.0, 1.5])[g][:, None],
        "numbers": np.outer((age - 50) / 15 * (dose - 2.5), np.sin(2 * S)),
        "surface": (x**2).mean(axis=1)[:, None] * np.cos(S),
    }
    return {"X": x, "age": age, "dose": dose, "g": LEVELS[g]}, parts


def share(predicted, wanted):
    return 1 - ((predicted - wanted) ** 2).mean() / ((wanted - wanted.mean(axis=0)) ** 2).mean()


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("model", "parts", "least"),
    [
        ("Y ~ s(age) + C(g):ff(X)", ("s", "levels"), 0.96),
        ("Y ~ te(age, dose)", ("s", "numbers"), 0.97),
        ("Y ~ s(age) + s(age, by=dose)", ("s", "numbers"), 0.98),
        ("Y ~ s(age) + sff(X)", ("s", "surface"), 0.9),  # squares have rows far from the others, which weigh less
    ],
)
def test_terms_explain_a_curve(model, parts, least):
    (data, f), (new, wanted) = people(3000), people(400, seed=5)
    y, shares = sum(f[p] for p in parts), []
    for seed in (1, 2):  # of one cohort: single draws of noise give .89 to .99 of squares
        fitted = FunctionalRegression(
            model, privacy=Privacy(2.0, 1e-6, n=3000, random_state=seed), bounds=BOUNDS | {"Y": (-6.0, 6.0)}
        ).fit(data | {"Y": y + 0.3 * np.random.default_rng(1).normal(size=y.shape)}, grids={"X": S, "Y": S})
        shares.append(share(fitted.predict(new), sum(wanted[p] for p in parts)))
    assert np.mean(shares) > least
    assert fitted.ledger_.private
    for name in fitted.term_names_[2:]:
        assert np.isfinite(fitted.coef(name)["value"]).all()


def test_terms_explain_a_number():
    (data, f), (new, wanted) = people(3000), people(400, seed=5)
    y = sum(part.mean(axis=1) for part in f.values())
    model = ScalarRegression(
        "y ~ s(age) + te(age, dose) + af(X) + C(g):lf(X)",
        privacy=Privacy(4.0, 1e-6, n=3000, random_state=1),
        bounds=BOUNDS | {"y": (-6.0, 6.0)},
    ).fit(data | {"y": y + 0.2 * np.random.default_rng(1).normal(size=y.shape)}, grids={"X": S})
    assert share(model.predict(new), sum(part.mean(axis=1) for part in wanted.values())) > 0.9


def test_smooth_functions_follow_numbers_to_where_they_are():
    """Public ranges may be wide: splines lie where the numbers were located."""
    rng = np.random.default_rng(0)
    age = rng.normal(60, 8, 3000)
    y = np.sin((age - 60) / 6) + 0.3 * rng.normal(size=3000)
    model = ScalarRegression(
        "y ~ s(age)", privacy=Privacy(2.0, 1e-6, n=3000, random_state=1), bounds={"age": (0, 120), "y": (-4, 4)}
    ).fit({"age": age, "y": y})
    new = rng.normal(60, 8, 500)
    assert share(model.predict({"age": new}), np.sin((new - 60) / 6)) > 0.97


def test_the_mean_and_the_effects_of_levels_add_up():
    """Effects of levels are about the mean of all levels, which the mean curve has, and so are those of curves."""
    data, f = people(3000)
    model = FunctionalRegression(
        "Y ~ ff(X) * C(g)", privacy=Privacy(50.0, 1e-6, n=3000, random_state=1), bounds=BOUNDS | {"Y": (-6.0, 6.0)}
    ).fit(
        data | {"Y": f["levels"] + np.array([[0.0], [1.0], [3.0]])[np.searchsorted(LEVELS, data["g"])]},
        grids={"X": S, "Y": S},
    )
    flat = {"X": np.zeros((3, S.size)), "g": LEVELS}
    levels = model.coef("g", t=S).pivot(index="g", columns="t", values="value").to_numpy()
    np.testing.assert_allclose(levels.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(levels.mean(axis=1), [-4 / 3, -1 / 3, 5 / 3], atol=0.1)
    predicted = model.predict(flat)
    np.testing.assert_allclose(predicted - predicted.mean(axis=0), levels, atol=0.1)
    mean, by_level = (model.coef(name, s=S, t=S)["value"].to_numpy() for name in ("ff(X)", "ff(X):g"))
    truth = 4 * np.outer(np.sin(2 * np.pi * S), np.cos(np.pi * S))
    inner = np.ix_(range(2, 19), range(2, 19))
    for level, factor in zip(range(3), (0.2, 1.0, 1.5), strict=True):
        found = (mean + by_level.reshape(3, -1)[level]).reshape(S.size, S.size)
        assert np.abs(found - factor * truth)[inner].max() < 1.0


CANARIES = {
    "high": (4.0, 80.0, 5.0, "c"),
    "beyond": (1e30, 1e30, -np.inf, "no such level"),
    "nothing": (np.nan,) * 3 + (None,),
}


def pair(kind, seed, delta):
    n, model = 60, "Y ~ C(g):ff(X) + s(age, by=dose) + te(age, dose)"
    data, f = people(n, seed)
    data["g"] = data["g"].astype(object)
    data["Y"] = sum(f.values())
    for name, value in zip(("X", "age", "dose", "g"), CANARIES[kind], strict=True):
        data[name][7] = value
    data["Y"][7] = CANARIES[kind][0]
    privacy = Privacy(8.0, delta, n=n)

    def run(rows, noise):
        fitted = FunctionalRegression(model, privacy=privacy, bounds=BOUNDS | {"Y": (-6.0, 6.0)})
        with drawing_from(fitted, noise):
            fitted.fit(rows, grids={"X": S, "Y": S})
        return {"attributes": vars(fitted), "predictions": fitted.predict(people(2)[0])}

    without = {name: np.delete(v, 7, axis=0) for name, v in data.items()}
    return Neighbours(f"{kind} {delta}", run, data, without, Budget(8.0, delta).total)


@pytest.mark.parametrize(
    ("kind", "delta"),
    [
        ("high", 1e-6),
        ("beyond", None),
        *(pytest.param(kind, delta, marks=pytest.mark.long) for kind in CANARIES for delta in (1e-6, None)),
    ],
)
def test_terms_cost_at_most_the_budget_and_show_nothing_else(kind, delta):
    result = replay_audit([pair(kind, 0, delta)])
    assert result.passed, str(result)
    assert result.finished == 1 and 0 < result.changes.max() <= 1
