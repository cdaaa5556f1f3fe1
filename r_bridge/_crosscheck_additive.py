"""The same data through R, live: fdadp's model beside ``mgcv::gam`` component by component.

The components of Y are fdadp's own; each of their scores is fitted by ``gam(xi ~ te(X, S, by = L))``. Compared are

* at R's smoothing parameters: fitted scores and curves, the surface up to a function of s alone, edf, residual
  variance, the score (tolerance 1e-6; 1e-5 for the REML score);
* at our own optimum: our REML score above R's by at most 1e-6 (1 + |score|); fitted scores to 1e-3 of their range,
  where both came to the same optimum. Where R's score is above ours by more than 1e-4 (1 + |score|), R stopped in a
  local minimum; that is noted, and fitted scores are not compared.

GCV often has several minima, and both sides take one nearby, not always the same: then (scores differ by more than
1e-5 of R's) that is noted, with both scores, and not compared. Where mgcv's two smoothing parameters differ by a
factor above 1e6, its GCV code truncates, and its fit does not follow from them: noted, too.

mgcv 1.8, and mgcv 1.9 on data with many equal (x, s) pairs, counts a direction as unpenalised that is not identified.
It is then counted here too, and the REML scores are compared up to a constant, which a fit at fixed smoothing
parameters gives. fdadp's model does not count it, so that its own smoothing parameters differ a little from mgcv's.

Smoothing parameters themselves are shown in :attr:`Crosscheck.components`, without a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from fdadp import AdditiveFunctionOnFunction
from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError
from fdadp.functional.tables.curve_inputs import as_curves
from r_bridge._rpy2 import require
from r_bridge.additive_beside_mgcv import AffrFits
from r_bridge.difference_report import Difference, Report, absolute, of_range, relative
from r_bridge.mgcv import GamFit, gam_linear_functional


@dataclass
class Crosscheck(Report):
    """A report that also shows both sides.

    Attributes
    ----------
    components : list of dict
        Smoothing parameters, edf and score by fdadp and by mgcv, each at its own optimum, for each component. On mgcv's
        scale, unpenalised directions counted as mgcv does.
    versions : dict
    """

    components: list[dict[str, Any]] | None = None
    versions: dict[str, str] | None = None

    def to_json(self) -> str:
        """Everything, for machines."""
        import json

        return json.dumps(
            {**json.loads(super().to_json()), "components": self.components, "versions": self.versions}, indent=1
        )


def crosscheck(
    model: AdditiveFunctionOnFunction | None,
    X: CurveData,
    Y: CurveData,
    s: ArrayLike | None = None,
    t: ArrayLike | None = None,
    *,
    factor: float = 1.0,
) -> Crosscheck:
    """Fit the same data with fdadp and, through R, with mgcv; compare.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction, optional
        Its settings are used; if None, the default ones with 7 x 7 splines (mgcv 1.8 refuses more than curves).
        Without privacy, cubic splines with second differences.
    X, Y, s, t
        As :meth:`fdadp.AdditiveFunctionOnFunction.fit`; no missing values.
    factor : float
        Multiplies every tolerance.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or mgcv.
    RError
        R's own: mgcv before 1.9 refuses more coefficients than curves.
    InputError
        A private model, or other settings that mgcv is not compared for.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> data = simulate_affr(scenario=1, n=60, seed=0)
    >>> print(crosscheck(None, data.X, data.Y))  # doctest: +SKIP
    """
    settings = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7) if model is None else model
    if settings.privacy is not None or settings.degree != 3 or settings.penalty_order != 2:
        raise InputError("model must be without privacy, with degree=3 and penalty_order=2, to be compared with mgcv")
    if settings.x_transform is not None or settings.period_s is not None:
        raise InputError("model must have x_transform=None and period_s=None to be compared with mgcv")
    if not isinstance(settings.smoothing, str):
        raise InputError("smoothing must be 'reml' or 'gcv' to be compared with mgcv")
    x, y = as_curves(X, s, name="X"), as_curves(Y, t, name="Y")
    require("mgcv")  # before any work
    ours = clone(settings).fit(x.values, y.values, s=x.grid, t=y.grid)
    project = (ours.eigenfunctions_ * ours.eigenbasis_.weights).T
    scores = (y.values - ours.mean_) @ project
    k = ours.coef_.shape[1:]
    criterion = str(settings.smoothing)
    theirs = [
        gam_linear_functional(
            x.values,
            column,
            x.grid,
            k=k,
            method="REML" if criterion == "reml" else "GCV.Cp",
            quadrature=settings.quadrature,
        )
        for column in scores.T
    ]
    core = AffrFits(
        x.values,
        x.grid,
        scores,
        k,
        quadrature=settings.quadrature,
        packed=theirs[0].packed,
        dropped=theirs[0].n_dropped,
    )
    own = core.fit(criterion)
    at = core.fit(np.stack([fit.smoothing_parameters for fit in theirs]))
    report = Crosscheck(f"fdadp against mgcv {theirs[0].version}, live, {len(x)} curves, {k[0]} x {k[1]} splines")
    report.components, report.versions = [], {"mgcv": theirs[0].version}
    at_theirs = clone(settings).set_params(smoothing=np.stack([fit.smoothing_parameters for fit in theirs]))
    at_theirs.fit(x.values, y.values, s=x.grid, t=y.grid)
    for i, fit in enumerate(theirs):
        offset = core.score_offset()
        if criterion == "reml" and not core.full_rank:
            fixed = gam_linear_functional(
                x.values, scores[:, i], x.grid, k=k, smoothing_parameters=(1.0, 1.0), quadrature=settings.quadrature
            )
            offset = fixed.score - core.problem.solve((1.0, 1.0), i).reml
        report.add(_component(core, fit, (own, at), i, criterion, x.values, offset, report.skipped))
        report.components.append(
            {
                "component": i + 1,
                "sp, fdadp": own.smoothing_parameters_[i].tolist(),
                "sp, mgcv": fit.smoothing_parameters.tolist(),
                "edf, fdadp": float(own.edf_[i]),
                "edf, mgcv": fit.edf_total,
                "score, fdadp": float(own.criterion_[i]) + (offset if criterion == "reml" else 0.0),
                "score, mgcv": fit.score,
            }
        )
    if not any(f"component {i + 1}" in report.skipped for i in range(len(theirs))):
        curves = ours.mean_ + np.column_stack([fit.fitted for fit in theirs]) @ ours.eigenfunctions_
        fitted = of_range(at_theirs.predict(x.values), curves)
        report.add([Difference("curves", "fitted, at R's sp", fitted, 1e-6, "of range")])
    if factor != 1:
        report.differences = [replace(d, tolerance=d.tolerance * factor) for d in report.differences]
    return report


def _component(
    core: AffrFits,
    fit: GamFit,
    ours: tuple[AdditiveFunctionOnFunction, AdditiveFunctionOnFunction],
    i: int,
    criterion: str,
    x: Any,
    offset: float,
    skipped: dict[str, str],
) -> list[Difference]:
    """Compare one component of `ours`, at our optimum and at R's; `offset` is what mgcv's REML score adds to ours."""
    case = f"component {i + 1}"
    own, at = ours
    values, theirs = at.coef_[i], fit.values
    solution = core.problem.solve(fit.smoothing_parameters, i)
    score, score_at = float(own.criterion_[i]), float(getattr(solution, criterion))
    if criterion == "gcv" and np.ptp(np.log(fit.smoothing_parameters)) > np.log(1e6):
        skipped[case] = f"mgcv's GCV code truncates at sp {fit.smoothing_parameters}; its fit does not follow from them"
        return []
    rows = [
        Difference(case, "fitted, at R's sp", of_range(core.predict(at, x, i)[0], fit.fitted), 1e-6, "of range"),
        Difference(
            case,
            "surface up to a function of s, at R's sp",
            relative(values - values.mean(axis=0), theirs - theirs.mean(axis=0)),
            1e-5,
        ),
        Difference(case, "edf, at R's sp", relative(at.edf_[i], fit.edf_total), 1e-6),
        Difference(case, "residual variance, at R's sp", relative(at.residual_variance_[i], fit.noise_variance), 1e-6),
    ]
    if criterion == "gcv":
        rows.append(Difference(case, "GCV score, at R's sp", relative(solution.gcv, fit.score), 1e-6))
        same = abs(score - score_at) <= 1e-5 * score_at
        note = f"GCV has several minima: ours is {score:.6g}, R's {score_at:.6g}"
    else:
        rows.append(
            Difference(case, "REML score, at R's sp", absolute(at.criterion_[i] + offset, fit.score), 1e-5, "absolute")
        )
        for what, reached in (("as we evaluate it", score_at), ("as R states it", fit.score - offset)):
            excess = max(score - reached, 0.0) / (1 + abs(reached))
            rows.append(Difference(case, f"our score above R's {what}", excess, 1e-6, "excess"))
        same = score_at - score <= 1e-4 * (1 + abs(score))
        note = f"R stopped in a local minimum: its score, {score_at:.6g}, is above ours, {score:.6g}"
    if same:
        fitted = core.predict(own, x, i)[0]
        rows.append(Difference(case, "fitted, our optimum", of_range(fitted, fit.fitted), 1e-3, "of range"))
    else:
        skipped[f"{case}: fitted at our optimum"] = note
    return rows
