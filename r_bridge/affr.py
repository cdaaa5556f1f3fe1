"""The additive function-on-function core beside mgcv's: fdadp's parts put together as ``gam(y ~ te(X, S, by = L))``.

What is identified, and so what may be compared: fitted values, predictions and their standard errors, edf, residual
variance, the surface up to a function of s alone, and the REML score (where mgcv's coordinates have full rank; else
up to a constant). Coefficients in mgcv's own coordinates are compared through the surface.

Tolerances
----------
===================================================== ============== ===============================================
at R's smoothing parameters                           tolerance      why not less
===================================================== ============== ===============================================
knots, reparametrisation, penalty scales, design      1e-12, 1e-10   rounding
fitted, predicted, standard errors, edf, variance     1e-9           rounding; 2e-11 seen
surface up to a function of s                         1e-9           5e-11 seen
score                                                 2e-7           mgcv at ratios of sp above 1e5
slope of the score                                    6e-5           where mgcv stops
===================================================== ============== ===============================================

At our own optimum: our score above R's by at most 1e-6 (1 + size of the score), fitted values to 1e-4 of their range;
smoothing parameters to 1e-3 where they are below 1e3 (the score is flat beyond).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.functional.margins import Margin, TensorProduct
from fdadp.solve.moments import Moments
from fdadp.solve.penalized import PenalizedLeastSquares, Solution
from fdadp.terms._rows import FeatureMap
from r_bridge.report import Difference, absolute, of_range, relative

__all__ = ["GCV_NOT_REPRODUCIBLE", "AffrCore", "compare_fit", "differences"]

GCV_NOT_REPRODUCIBLE = {("affr_canadian", 0), ("affr_dti2", 0), ("affr_dti2", 1), ("affr_lip", 1)}
"""mgcv's GCV code truncates where ratios of smoothing parameters are extreme: these fits do not follow from them."""

FIRM = 1e3
"""Smoothing parameters above this are not compared: the score is flat there."""


class AffrCore:
    """Training curves taken down to moments, in fdadp's coordinates and in mgcv's.

    Parameters
    ----------
    x : array_like of shape (n, S)
        Training predictors.
    s, weights : array_like of shape (S,)
        Grid and quadrature weights.
    scores : array_like of shape (n, K)
        Scalar responses.
    k : (int, int)
        Basis sizes over x and s.
    packed : bool, optional
        Whether mgcv set its basis up on unique (x, s) pairs; default: its rule, fewer than 0.9 of all.
    dropped : int, optional
        Coefficients that mgcv dropped for lack of rank; default 0 if packed, else 1.
    """

    def __init__(
        self,
        x: ArrayLike,
        s: ArrayLike,
        weights: ArrayLike,
        scores: ArrayLike,
        k: tuple[int, int] = (7, 7),
        *,
        packed: bool | None = None,
        dropped: int | None = None,
    ) -> None:
        curves, grid = np.asarray(x, dtype=np.float64), np.asarray(s, dtype=np.float64)
        responses = np.asarray(scores, dtype=np.float64).reshape(len(curves), -1)
        self.n, self.k = len(curves), (int(k[0]), int(k[1]))
        self.x_margin = Margin.pspline(curves.min(), curves.max(), self.k[0])
        self.s_margin = Margin.pspline(grid.min(), grid.max(), self.k[1])
        self.features = FeatureMap(self.x_margin.basis, self.s_margin.basis, grid, np.asarray(weights))
        row_norm = self.features.row_norm(self.x_margin.to_raw, self.s_margin.to_raw)(curves)
        self.smooth = TensorProduct(self.x_margin, self.s_margin, row_norm)
        self.rotation = self.smooth.raw_rotation
        z = self.features.rows(curves)
        self.n_features = z.shape[1]
        self.moments = Moments.of(np.hstack((z, responses)))
        pairs = np.column_stack((curves.ravel(), np.tile(grid, self.n)))
        unique = np.unique(pairs, axis=0)
        self.packed = len(unique) < 0.9 * len(pairs) if packed is None else bool(packed)
        pairs = unique if self.packed else pairs
        self.constraint = self.smooth.design(pairs[:, 0], pairs[:, 1]).sum(axis=0)
        self.dropped = (0 if self.packed else 1) if dropped is None else int(dropped)
        self.coordinates = self.smooth.mgcv_coordinates(self.constraint, dropped=self.dropped)

    @classmethod
    def of_case(cls, record: dict[str, Any]) -> AffrCore:
        """Core of a recorded case ``affr_*``, from its training rows."""
        i = record["input"]
        train = i["train"].astype(int) - 1
        k1, k2 = i["k"].astype(int)
        dropped = np.size(record["output"]["smooth"].get("del_index", ()))
        return cls(i["X"][train], i["s"], i["weights"], i["scores"][train], (int(k1), int(k2)), dropped=dropped)

    @property
    def full_rank(self) -> bool:
        """Whether mgcv's coordinates are identified; if not it counts one more unpenalised direction."""
        return self.dropped == 1

    def problem(self, response: int = 0) -> PenalizedLeastSquares:
        """Penalised least squares of one response, counting unpenalised directions as mgcv does."""
        scatter, r, p = self.moments.scatter, self.rotation, self.n_features
        return PenalizedLeastSquares(
            r.T @ scatter[:p, :p] @ r,
            r.T @ scatter[:p, p + response],
            scatter[p + response, p + response],
            self.n,
            self.smooth.penalties,
            n_unpenalized=None if self.full_rank else 4,
        )

    def score_offset(self) -> float:
        """What mgcv's REML score adds to ours; NaN where only its existence is known."""
        return self.smooth.mgcv_score_offset(self.coordinates, self.n) if self.full_rank else float("nan")

    def centred(self, x: ArrayLike) -> FloatArray:
        """Identified features of curves, about the training mean; shape (n, p)."""
        rows = self.features.rows(np.asarray(x, dtype=np.float64))
        return np.asarray((rows - self.moments.mean[: self.n_features]) @ self.rotation)

    def predict(self, solution: Solution, x: ArrayLike, response: int = 0) -> tuple[FloatArray, FloatArray]:
        """Predicted scores of curves and their standard errors."""
        z = self.centred(x)
        mean = self.moments.mean[self.n_features + response]
        quadratic = np.einsum("ij,jk,ik->i", z, solution.inverse, z)
        return mean + z @ solution.coefficients, np.sqrt(solution.noise_variance * (1 / self.n + quadratic))

    def values(self, solution: Solution) -> FloatArray:
        """F at the points of the margins, shape (k_x, k_s)."""
        return np.asarray((self.smooth.rotation @ solution.coefficients).reshape(self.k))

    def surface(self, solution: Solution, x: ArrayLike, s: ArrayLike) -> FloatArray:
        """F on a product grid, up to a function of s alone."""
        bx = self.x_margin.basis.design(np.asarray(x, dtype=np.float64)) @ self.x_margin.to_raw
        bs = self.s_margin.basis.design(np.asarray(s, dtype=np.float64)) @ self.s_margin.to_raw
        return np.asarray(bx @ self.values(solution) @ bs.T)


def smoothing_parameters(fit: dict[str, Any]) -> FloatArray:
    """Those of a recorded fit; where they were fixed ``sp`` is empty."""
    return np.asarray(fit["sp"] if np.size(fit["sp"]) else fit["full_sp"], dtype=np.float64)


def differences(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``affr_*``: construction, every fit at R's smoothing parameters, our own optimum."""
    name = str(record["meta"]["case"][0])
    core, out = AffrCore.of_case(record), record["output"]
    yield from _construction(name, core, record)
    offsets = []
    for k, fits in enumerate(out["fits"]):
        kinds = [("reml", fits["reml"]), ("gcv", fits["gcv"])]
        kinds += [(f"fixed{i + 1}", fit) for i, fit in enumerate(fits["fixed"])]
        for kind, fit in kinds:
            if kind == "gcv" and (name, k) in GCV_NOT_REPRODUCIBLE:
                continue
            label = f"component {k + 1}, {kind}"
            yield from compare_fit(name, label, core, fit, record["input"], out, k, kind)
            if kind != "gcv":
                ours = core.problem(k).solve(smoothing_parameters(fit))
                offsets.append(ours.reml - float(fit["score"][0]))
    if not core.full_rank:
        spread = float(np.ptp(offsets))
        yield Difference(name, "REML score up to one constant", spread, 2e-7, "absolute")


def _construction(name: str, core: AffrCore, record: dict[str, Any]) -> Iterator[Difference]:
    out, smooth = record["output"], record["output"]["smooth"]
    yield Difference(name, "penalty scales", relative(core.smooth.penalty_scales, smooth["S_scale"]), 1e-12)
    margins = (core.x_margin, core.s_margin)
    for label, margin, knots, to_raw in zip("xs", margins, smooth["knots"], smooth["XP"], strict=True):
        yield Difference(name, f"knots of {label}", relative(margin.basis.knots, knots), 1e-12)
        yield Difference(name, f"reparametrisation of {label}", absolute(margin.to_raw, to_raw), 1e-12, "absolute")
    turned = np.kron(core.x_margin.to_raw, core.s_margin.to_raw) @ core.coordinates
    i = record["input"]
    for label in ("train", "test"):
        rows = core.features.rows(i["X"][i[label].astype(int) - 1]) @ turned
        want = out[f"design_{label}"][:, 1:]
        yield Difference(name, f"design, {label} rows", absolute(rows, want), 1e-12, "absolute")
    full = core.smooth.mgcv_coordinates(core.constraint)
    yield Difference(name, "centring constraint", absolute(full, smooth["Z"]), 1e-12, "absolute")
    kx, ks = core.k
    blocks = (np.kron(core.x_margin.penalty, np.eye(ks)), np.kron(np.eye(kx), core.s_margin.penalty))
    for j, block in enumerate(blocks):
        scaled = core.coordinates.T @ block @ core.coordinates / core.smooth.penalty_scales[j]
        yield Difference(name, f"penalty of {'xs'[j]}", relative(scaled, smooth["S"][j]), 1e-10)


def compare_fit(
    case: str,
    label: str,
    core: AffrCore,
    fit: dict[str, Any],
    given: dict[str, Any],
    out: dict[str, Any],
    k: int,
    kind: str,
) -> Iterator[Difference]:
    """Compare one recorded fit: at R's smoothing parameters and, where R searched, at our own optimum."""
    sp = smoothing_parameters(fit)
    train, test = given["train"].astype(int) - 1, given["test"].astype(int) - 1
    problem = core.problem(k)
    ours = problem.solve(sp)
    size = float(np.abs(fit["fitted"]).max())

    def row(what: str, value: float, tolerance: float, how: str = "relative") -> Difference:
        return Difference(case, f"{label}: {what}", value, tolerance, how)

    fitted, _ = core.predict(ours, given["X"][train], k)
    predicted, se = core.predict(ours, given["X"][test], k)
    yield row("fitted", absolute(fitted, fit["fitted"]) / size, 1e-9)
    yield row("predicted", absolute(predicted, fit["predicted"]) / size, 1e-9)
    yield row("standard errors", relative(se, fit["predicted_se"]), 1e-9)
    yield row("edf", relative(ours.edf_total, fit["edf_total"][0]), 1e-9)
    yield row("residual variance", relative(ours.noise_variance, fit["sig2"][0]), 1e-9)
    if kind != "gcv":
        surface = core.surface(ours, out["surface_x"], out["surface_s"])
        yield row("surface up to a function of s", relative(surface - surface[5], fit["surface_difference"]), 1e-9)
    if kind == "gcv":
        yield row("GCV score", relative(ours.gcv, fit["score"][0]), 1e-9)
    elif core.full_rank:
        yield row("REML score", absolute(ours.reml + core.score_offset(), fit["score"][0]), 2e-7, "absolute")
    if kind == "reml":
        yield row("REML scale", relative(ours.scale, fit["reml_scale"][0]), 2e-5)
        slope = problem.reml(np.log(sp))[1]
        yield row("slope of the score", absolute(slope, np.ravel(fit["score_grad"])[:2]), 6e-5, "absolute")
    if kind in ("reml", "gcv"):
        yield from _own_optimum(row, core, problem, ours, fit, given["X"][train], k, kind)


def _own_optimum(
    row: Any,
    core: AffrCore,
    problem: PenalizedLeastSquares,
    at_theirs: Solution,
    fit: dict[str, Any],
    x: FloatArray,
    k: int,
    kind: str,
) -> Iterator[Difference]:
    (own,) = problem.optimize(kind)
    score, theirs = getattr(own, kind), getattr(at_theirs, kind)
    yield row("our optimum: score above R's", max(score - theirs, 0.0) / (1 + abs(theirs)), 1e-6, "excess")
    yield row("our optimum: fitted", of_range(core.predict(own, x, k)[0], fit["fitted"]), 1e-4, "of range")
    sp = smoothing_parameters(fit)
    firm = sp < FIRM
    if firm.any():
        change = np.abs(own.smoothing_parameters[firm] / sp[firm] - 1).max()
        yield row("our optimum: smoothing parameters", float(change), 1e-3)
