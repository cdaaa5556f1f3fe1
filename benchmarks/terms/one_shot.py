"""Sufficient statistics in one shot, on the same private white features as the product's fits of several terms.

One noisy second moment of features and responses, its size chosen by the expected loss. From it either a ridge as
AdaSSP takes it (Wang 2018), or the product's empirical Bayes with evidence over importances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdadp import PublicPrior
from fdadp.privacy import Budget, Cohort, SeededNoise
from fdadp.privacy.account.epsilon_mu_rho import unit_noise
from fdadp.privacy.private_entries import codes_of, index_of
from fdadp.private.denoise.empirical_bayes import posteriors, steady
from fdadp.private.plan.private_design import PrivateDesign, curves_column
from fdadp.private.public.column_ranges import LabelColumn, NumberColumn
from fdadp.private.release.noisy_moments import fit_moments, plan_moments
from fdadp.private.rows.row_functions import RowFunctions
from fdadp.private.whitened.term_registry import white_term
from fdadp.regression.formula import parse

METHODS = ("one shot + empirical Bayes", "one shot, AdaSSP")


def fit(
    model: str, data: dict[str, Any], grid: Any, bounds: dict[str, Any], epsilon: float, delta: float, seed: int
) -> dict[str, Any]:
    """Functions that predict from columns of new people, by method."""
    prior, response = PublicPrior(), model.split("~")[0].strip()
    kinds = {name: _kind(data[name]) for name in data}
    parsed = parse(model, kinds)
    names = list(dict.fromkeys(c for spec in parsed.terms for c in spec.columns))
    columns = [_column(name, i, kinds[name], grid, bounds[name], prior) for i, name in enumerate(names)]
    along = data[response].ndim == 2
    by_name = {c.name: c for c in columns}
    made = [white_term(spec, by_name, prior, curves=along) for spec in parsed.terms]
    design = PrivateDesign.of(prior, columns, made, grid if along else None)
    rows, n = RowFunctions(design, bounds[response]), len(data[response])

    def block(of: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(
            codes_of(of[c.name].astype(object), index_of(c.levels)) if isinstance(c, LabelColumn) else of[c.name]
            for c in columns
        )

    private = (*block(data), data[response])
    cohort = Cohort(private, budget=Budget(epsilon, delta), n=n, noise=SeededNoise(seed), mechanism="baseline")
    plan = plan_moments(float(n), unit_noise(cohort, 1.0), design, pure=False)
    found, statistic = fit_moments(cohort, plan, rows)
    d, k = statistic.cross.shape
    energy = design.response_shares[:k] / design.response_shares[:k].sum() * found.regression.energy
    variance = np.tile(statistic.cross_sd**2 + statistic.features_sd**2 * energy, (d, 1))
    bayes, _, _ = posteriors(
        statistic.cross,
        variance,
        found.regression.second_moment,
        np.ones((d, k), dtype=bool),
        design.feature_shares[: d - 1],
        energy,
        n,
        design.groups.owner[: d - 1],
    )
    solved = dict(zip(METHODS, (bayes, _adassp(statistic)), strict=True))
    centre = rows.y_location + design.response @ rows.mean

    def predictor(theta: Any) -> Any:
        functions = design.response[:, :k].T
        return lambda new: centre + rows.features_of(block(new), d) @ theta @ functions

    return {name: predictor(theta) for name, theta in solved.items()}


def _adassp(statistic: Any) -> Any:
    """Ridge that outweighs the noise where the smallest eigenvalue does not (Wang 2018)."""
    d = len(statistic.features)
    spread = statistic.features_sd * np.sqrt(d * np.log(2 * d * d / 0.05))
    least = float(np.linalg.eigvalsh(statistic.features)[0])
    ridge = max(0.0, spread - max(least - spread, 0.0))
    features = steady(statistic.features) if least + ridge <= 0 else statistic.features
    return np.linalg.solve(features + ridge * np.eye(d), statistic.cross)


def _kind(values: Any) -> str:
    if values.ndim == 2:
        return "curves"
    return "numbers" if values.dtype.kind == "f" else "labels"


def _column(name: str, at: int, kind: str, grid: Any, bounds: Any, prior: PublicPrior) -> Any:
    if kind == "curves":
        return curves_column(prior, name, at, grid, bounds)
    return NumberColumn(name, at, bounds) if kind == "numbers" else LabelColumn(name, at, tuple(bounds))
