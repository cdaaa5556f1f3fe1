"""The additive model beside mgcv's ``gam(y ~ te(X, S, by = L))``: the public estimator on scores given as they are.

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

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import ExtrapolationWarning
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.additive.ordinary_fit import settings_of
from fdadp.regression.fit_in_memory import estimate_whole
from fdadp.solve.eigen.fit_to_scores import ComponentsFit, problem_of
from fdadp.terms.additive_surface import Surface
from r_bridge.difference_report import Difference, absolute, of_range, relative
from r_bridge.mgcv_tensor_products import TensorProduct

GCV_NOT_REPRODUCIBLE = {("affr_canadian", 0), ("affr_dti2", 0), ("affr_dti2", 1), ("affr_lip", 1)}
"""mgcv's GCV code truncates where ratios of smoothing parameters are extreme: these fits do not follow from them."""

FIRM = 1e3
"""Smoothing parameters above this are not compared: the score is flat there."""


def on_basis(scores: ArrayLike) -> tuple[FloatArray, Eigenbasis]:
    """Curves whose scores on a basis are the given ones, and that basis: unit vectors on points 0, 1, ...

    Parameters
    ----------
    scores : array_like of shape (n, K)

    Returns
    -------
    curves : ndarray of shape (n, T)
        Of the K points, and one more where K is 1 (a grid has two).
    basis : Eigenbasis
    """
    values = np.asarray(scores, dtype=np.float64)
    k = values.shape[1]
    functions = np.eye(k, max(k, 2))
    size = functions.shape[1]
    ones = np.ones(size)
    basis = Eigenbasis(np.arange(float(size)), ones, 0 * ones, functions, values.var(axis=0), 0.0, np.ones(k) / k)
    return values @ functions, basis


class _CountsAsMgcv(AdditiveFunctionOnFunction):
    """The public model, with mgcv's count of unpenalised directions where its coordinates lack rank: one more."""

    _n_unpenalized = 4


class AffrFits:
    """Fits of :class:`fdadp.AdditiveFunctionOnFunction` to given scores, and what mgcv's coordinates are beside it.

    Parameters
    ----------
    x : array_like of shape (n, S)
        Training predictors.
    s : array_like of shape (S,)
        Grid.
    scores : array_like of shape (n, K) or (n,)
        Scalar responses.
    k : (int, int)
        Basis sizes over x and s.
    quadrature : str
    packed : bool, optional
        Whether mgcv set its basis up on unique (x, s) pairs; default: its rule, fewer than 0.9 of all.
    dropped : int, optional
        Coefficients that mgcv dropped for lack of rank; default 0 if packed, else 1.

    Attributes
    ----------
    problem : PenalizedLeastSquares
        What the model solves: scores and slopes of the criteria, which its fits do not keep.
    term : Surface
        Its one term, as the training curves leave it.
    """

    def __init__(
        self,
        x: ArrayLike,
        s: ArrayLike,
        scores: ArrayLike,
        k: tuple[int, int] = (7, 7),
        *,
        quadrature: str = "trapezoid",
        packed: bool | None = None,
        dropped: int | None = None,
    ) -> None:
        self.x, self.s = np.asarray(x, dtype=np.float64), np.asarray(s, dtype=np.float64)
        self.n, self.k = len(self.x), (int(k[0]), int(k[1]))
        self.y, basis = on_basis(np.asarray(scores, dtype=np.float64).reshape(self.n, -1))
        self.n_responses = basis.n_components
        pairs = np.column_stack((self.x.ravel(), np.tile(self.s, self.n)))
        unique = np.unique(pairs, axis=0)
        self.packed = len(unique) < 0.9 * len(pairs) if packed is None else bool(packed)
        self.dropped = (0 if self.packed else 1) if dropped is None else int(dropped)
        self.model = (AdditiveFunctionOnFunction if self.full_rank else _CountsAsMgcv)(
            n_basis_x=self.k[0], n_basis_s=self.k[1], n_components=basis, quadrature=quadrature, progress=False
        )
        observed = {"X": Curves(self.x, self.s)}, Curves(self.y, basis.grid)
        found = estimate_whole(settings_of(self.model), *observed, None)[-1].components
        assert isinstance(found, ComponentsFit)
        sums = found.scores.sums
        (term,) = sums.designs
        assert isinstance(term, Surface)
        self.term = term
        self.smooth = TensorProduct(term.over_x, term.over_s, term.own_norm)
        self.problem = problem_of(sums, found.basis, self.model._n_unpenalized)
        pairs = unique if self.packed else pairs
        self.constraint = self.smooth.design(pairs[:, 0], pairs[:, 1]).sum(axis=0)
        self.coordinates = self.smooth.mgcv_coordinates(self.constraint, dropped=self.dropped)

    @classmethod
    def of_case(cls, record: dict[str, Any]) -> AffrFits:
        """Fits of a recorded case ``affr_*``, from its training rows.

        Raises
        ------
        ValueError
            Other weights than those of the trapezoidal rule.
        """
        i = record["input"]
        train = i["train"].astype(int) - 1
        if not np.allclose(i["weights"], quadrature_weights(i["s"]), rtol=1e-14, atol=0):
            raise ValueError("the recorded weights must be those of the trapezoidal rule")
        k1, k2 = i["k"].astype(int)
        dropped = np.size(record["output"]["smooth"].get("del_index", ()))
        return cls(i["X"][train], i["s"], i["scores"][train], (int(k1), int(k2)), dropped=dropped)

    @property
    def full_rank(self) -> bool:
        """Whether mgcv's coordinates are identified; if not it counts one more unpenalised direction."""
        return self.dropped == 1

    def fit(self, smoothing: str | ArrayLike) -> AdditiveFunctionOnFunction:
        """The public model fitted, by a criterion or at smoothing parameters of shape (2,) or (K, 2)."""
        model: AdditiveFunctionOnFunction = clone(self.model).set_params(smoothing=smoothing)
        return model.fit(self.x, self.y, s=self.s, t=np.arange(self.y.shape[1]))

    def score_offset(self) -> float:
        """What mgcv's REML score adds to ours; NaN where only its existence is known."""
        return self.smooth.mgcv_score_offset(self.coordinates, self.n) if self.full_rank else float("nan")

    def predict(
        self, model: AdditiveFunctionOnFunction, x: ArrayLike, response: int = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Predicted scores of curves, and their standard errors."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return model.predict(x, s=self.s)[:, response], model.predict_se(x, s=self.s)[:, response]


def smoothing_parameters(fit: dict[str, Any]) -> FloatArray:
    """Those of a recorded fit; where they were fixed ``sp`` is empty."""
    return np.asarray(fit["sp"] if np.size(fit["sp"]) else fit["full_sp"], dtype=np.float64)


def differences(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``affr_*``: construction, every fit at R's smoothing parameters, our own optimum."""
    name = str(record["meta"]["case"][0])
    ours, out = AffrFits.of_case(record), record["output"]
    yield from _construction(name, ours, record)
    offsets = []
    for kind, at in fits_of(record).items():
        model = ours.fit(at)
        own = ours.fit(kind) if kind in ("reml", "gcv") else None
        for k in range(ours.n_responses):
            if kind == "gcv" and (name, k) in GCV_NOT_REPRODUCIBLE:
                continue
            fit = recorded_fit(out["fits"][k], kind)
            label = f"component {k + 1}, {kind}"
            yield from compare_fit(name, label, ours, model, fit, record["input"], out, k, kind)
            if own is not None:
                yield from _own_optimum(name, label, ours, own, fit, record["input"], k, kind)
            if kind != "gcv":
                offsets.append(float(model.criterion_[k]) - float(fit["score"][0]))
    if not ours.full_rank:
        spread = float(np.ptp(offsets))
        yield Difference(name, "REML score up to one constant", spread, 2e-7, "absolute")


def recorded_fit(fits: dict[str, Any], kind: str) -> dict[str, Any]:
    """One recorded fit of a component: ``"reml"``, ``"gcv"`` or ``"fixed1"``, ``"fixed2"``, ..."""
    fit: dict[str, Any] = fits["fixed"][int(kind[5:]) - 1] if kind.startswith("fixed") else fits[kind]
    return fit


def fits_of(record: dict[str, Any]) -> dict[str, FloatArray]:
    """Smoothing parameters (K, 2) of every recorded kind of fit."""
    fits = record["output"]["fits"]
    kinds = ["reml", "gcv", *(f"fixed{i + 1}" for i in range(len(fits[0]["fixed"])))]
    return {kind: np.stack([smoothing_parameters(recorded_fit(fit, kind)) for fit in fits]) for kind in kinds}


def _construction(name: str, ours: AffrFits, record: dict[str, Any]) -> Iterator[Difference]:
    out, smooth, term = record["output"], record["output"]["smooth"], ours.term
    yield Difference(name, "penalty scales", relative(ours.smooth.penalty_scales, smooth["S_scale"]), 1e-12)
    margins = zip("xs", (term.over_x, term.over_s), term.splines, smooth["knots"], smooth["XP"], strict=True)
    for label, margin, splines, knots, to_raw in margins:
        yield Difference(name, f"knots of {label}", relative(splines.knots, knots), 1e-12)
        yield Difference(name, f"reparametrisation of {label}", absolute(margin.to_basis, to_raw), 1e-12, "absolute")
    turned = np.kron(term.over_x.to_basis, term.over_s.to_basis) @ ours.coordinates
    i = record["input"]
    for label in ("train", "test"):
        rows = term.feature_map(term.grid).rows(i["X"][i[label].astype(int) - 1]) @ turned
        want = out[f"design_{label}"][:, 1:]
        yield Difference(name, f"design, {label} rows", absolute(rows, want), 1e-12, "absolute")
    full = ours.smooth.mgcv_coordinates(ours.constraint)
    yield Difference(name, "centring constraint", absolute(full, smooth["Z"]), 1e-12, "absolute")
    kx, ks = ours.k
    blocks = (np.kron(term.over_x.penalty, np.eye(ks)), np.kron(np.eye(kx), term.over_s.penalty))
    for j, block in enumerate(blocks):
        scaled = ours.coordinates.T @ block @ ours.coordinates / ours.smooth.penalty_scales[j]
        yield Difference(name, f"penalty of {'xs'[j]}", relative(scaled, smooth["S"][j]), 1e-10)


def compare_fit(
    case: str,
    label: str,
    ours: AffrFits,
    model: AdditiveFunctionOnFunction,
    fit: dict[str, Any],
    given: dict[str, Any],
    out: dict[str, Any],
    k: int,
    kind: str,
) -> Iterator[Difference]:
    """Compare one recorded fit with the public model at R's smoothing parameters."""
    sp = smoothing_parameters(fit)
    train, test = given["train"].astype(int) - 1, given["test"].astype(int) - 1
    size = float(np.abs(fit["fitted"]).max())

    def row(what: str, value: float, tolerance: float, how: str = "relative") -> Difference:
        return Difference(case, f"{label}: {what}", value, tolerance, how)

    fitted, _ = ours.predict(model, given["X"][train], k)
    predicted, se = ours.predict(model, given["X"][test], k)
    yield row("fitted", absolute(fitted, fit["fitted"]) / size, 1e-9)
    yield row("predicted", absolute(predicted, fit["predicted"]) / size, 1e-9)
    yield row("standard errors", relative(se, fit["predicted_se"]), 1e-9)
    yield row("edf", relative(model.edf_[k], fit["edf_total"][0]), 1e-9)
    yield row("residual variance", relative(model.residual_variance_[k], fit["sig2"][0]), 1e-9)
    if kind != "gcv":
        surface = model.surface(out["surface_x"], out["surface_s"], float(k))[:, :, 0]
        yield row("surface up to a function of s", relative(surface - surface[5], fit["surface_difference"]), 1e-9)
    solution = ours.problem.solve(sp, k)
    if kind == "gcv":
        yield row("GCV score", relative(solution.gcv, fit["score"][0]), 1e-9)
    elif ours.full_rank:
        score = float(model.criterion_[k]) + ours.score_offset()
        yield row("REML score", absolute(score, fit["score"][0]), 2e-7, "absolute")
    if kind == "reml":
        yield row("REML scale", relative(solution.scale, fit["reml_scale"][0]), 2e-5)
        slope = ours.problem.reml(np.log(sp), k)[1]
        yield row("slope of the score", absolute(slope, np.ravel(fit["score_grad"])[:2]), 6e-5, "absolute")


def _own_optimum(
    case: str,
    label: str,
    ours: AffrFits,
    model: AdditiveFunctionOnFunction,
    fit: dict[str, Any],
    given: dict[str, Any],
    k: int,
    kind: str,
) -> Iterator[Difference]:
    """Compare the public model at its own optimum with a fit of R's at R's."""
    sp, x = smoothing_parameters(fit), given["X"][given["train"].astype(int) - 1]
    score, theirs = float(model.criterion_[k]), float(getattr(ours.problem.solve(sp, k), kind))

    def row(what: str, value: float, tolerance: float, how: str = "relative") -> Difference:
        return Difference(case, f"{label}: our optimum: {what}", value, tolerance, how)

    yield row("score above R's", max(score - theirs, 0.0) / (1 + abs(theirs)), 1e-6, "excess")
    yield row("fitted", of_range(ours.predict(model, x, k)[0], fit["fitted"]), 1e-4, "of range")
    firm = sp < FIRM
    if firm.any():
        change = np.abs(model.smoothing_parameters_[k][firm] / sp[firm] - 1).max()
        yield row("smoothing parameters", float(change), 1e-3)
