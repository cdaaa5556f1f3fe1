"""Recorded mixed models of repeated curves beside the project's: mgcv, nlme, lme4, refund and fastFMM.

Tolerances. At R's variances (fixed smoothing parameters, G, R and noise as R has them) estimates, standard errors and
effects of persons are equal to 1e-8. At its own optimum the criterion is never above R's by more than 1e-6, and curves
agree to 1e-4 of their range: the programs stop their searches at other places. ``mfpca.sc`` smooths otherwise, and
``fui`` fits each t by itself: these agree in what they estimate, by the bounds that stand with each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fdadp import MultilevelFPCA
from fdadp._common.typing import FloatArray, IntArray
from fdadp.repeated.fixed_effects import MeanTerm, fixed_effects, spline_levels
from fdadp.repeated.level_components import smooth_levels
from fdadp.repeated.levels import deviance, gls
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import PersonPass, PersonSums, smooth_functions
from fdadp.repeated.search import LevelCovariances, level_covariances
from fdadp.repeated.slopes import slope_covariances, slope_effects, slope_sums
from r_bridge.report import Difference, of_range, relative

EXACT, OPTIMUM, SAME_CURVES = 1e-8, 1e-6, 1e-4


def differences(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``repeated_*``."""
    case = str(record["meta"]["case"][0])
    for quantity, value, tolerance, kind in COMPARED[case](record["input"], record["output"]):
        yield Difference(case, quantity, value, tolerance, kind)


Found = Iterator[tuple[str, float, float, str]]


def _exact(of: str, pairs: dict[str, tuple[Any, Any]]) -> Found:
    for what, (ours, theirs) in pairs.items():
        yield f"{of}: {what}", relative(ours, theirs), EXACT, "relative"


def _mixed(given: dict[str, Any], out: dict[str, Any]) -> Found:
    yield from _intercept(given["sleep"], out["intercept"])
    yield from _slope(given["sleep"], out["slope"])
    yield from _two_responses(given["two"], out["two"])
    yield from _functions_of_persons(given["curves"], out["fixed"], out["optimum"])


def _with_constant(x: FloatArray) -> FloatArray:
    return np.column_stack((np.ones(x.size), x))


def _persons(s: PersonSums) -> IntArray:
    """Places of the persons in the order of their ids."""
    return np.argsort(s.ids.to_numpy())


def _intercept(given: dict[str, Any], out: dict[str, Any]) -> Found:
    X, y, who = _with_constant(given["x"]), given["y"][:, None], given["id"]
    s = PersonPass(np.eye(1), 2, intercept=False).add(X, y, who).sums()
    levels = LevelCovariances(np.atleast_2d(out["G"]), np.atleast_2d(out["R"]), 0.0, 0.0)
    fixed = fixed_effects(s, levels)
    own = {
        "estimates": (fixed.coefficients, out["fixed"]),
        "standard errors": (np.sqrt(np.diag(fixed.covariance)), out["se"]),
        "effects of persons": (RepeatedFit(s, levels, fixed).effects()[_persons(s)], out["effects"]),
    }
    yield from _exact("lmer (1 | id) at its variances", own)
    constant = (s.n_rows - 2) * np.log(2 * np.pi)
    yield _below("lmer (1 | id)", level_covariances(s, tolerance=1e-12).deviance + constant, out)


def _slope(given: dict[str, Any], out: dict[str, Any]) -> Found:
    X, y, who = _with_constant(given["x"]), given["y"][:, None], given["id"]
    s = slope_sums(PersonPass(np.eye(1), 2, intercept=False, cross=True).add(X, y, who).sums(), np.eye(2))
    found = slope_effects(s, LevelCovariances(out["G"], np.atleast_2d(out["R"]), 0.0, 0.0))
    own = {
        "estimates": (found.fixed.ravel(), out["fixed"]),
        "standard errors": (np.sqrt(np.diag(found.covariance)), out["se"]),
        "effects of persons": (found.effects[:, :, 0], out["effects"]),
    }
    yield from _exact("lmer (x | id) at its variances", own)
    constant = (who.size - 2) * np.log(2 * np.pi)
    yield _below("lmer (x | id)", slope_covariances(s, tolerance=1e-11).deviance + constant, out)


def _two_responses(given: dict[str, Any], out: dict[str, Any]) -> Found:
    s = PersonPass(np.eye(2), 2, intercept=False).add(_with_constant(given["x"]), given["C"], given["id"]).sums()
    B, V = gls(s, out["G"], out["R"])
    own = {"estimates": (B, out["fixed"]), "standard errors": (np.sqrt(np.diag(V)).reshape(2, 2), out["se"])}
    yield from _exact("lme, two responses, at its variances", own)
    constant = (2 * s.n_rows - 4) * np.log(2 * np.pi)
    at_theirs = deviance(s, out["G"], out["R"]) + constant
    yield "lme: -2 REML at its variances", relative(at_theirs, out["deviance"][0]), EXACT, "relative"
    yield _below("lme", level_covariances(s, tolerance=1e-12).deviance + constant, out)


def _below(of: str, ours: float, out: dict[str, Any]) -> tuple[str, float, float, str]:
    theirs = float(out["deviance"][0])
    return f"{of}: -2 REML at our optimum", max(ours - theirs, 0.0) / (1 + abs(theirs)), OPTIMUM, "excess"


def _functions_of_persons(given: dict[str, Any], fixed_out: dict[str, Any], optimum: dict[str, Any]) -> Found:
    B, S, X, Y, who = (given[name] for name in ("B", "S", "X", "Y", "id"))
    noise, own = float(given["scale"][0]), given["sp_person"]
    s, U = _demmler_reinsch(B, S)
    phi, back, k = B @ U, np.linalg.inv(U), len(S)
    sums = PersonPass(phi, 2, intercept=False).add(X, Y, who).sums()
    penalty = np.where(s > 1e-9 * s.max(), s, 0.0)[None]
    terms = [MeanTerm(np.eye(2)[:, [a]], phi, penalty) for a in range(2)]
    G = noise * back @ np.linalg.inv(own[0] * np.eye(k) + own[1] * S) @ back.T
    levels = LevelCovariances(G, noise * np.eye(k), noise, 0.0)
    fixed = fixed_effects(sums, levels, terms, smoothing_parameters=given["sp"] / noise)
    model, at = RepeatedFit(sums, levels, fixed), sums.ids.get_indexer(who)
    turn = np.kron(np.eye(2), U)
    pairs = {
        "fitted curves": (model.predict(X, sums.means[at], sums.counts[at]), fixed_out["fitted"]),
        "mean curves": (fixed.on_phi() @ U.T, fixed_out["coefficients"][:2]),
        "effects of persons": (model.effects()[_persons(sums)] @ U.T, fixed_out["coefficients"][2:]),
        "covariance of mean curves": (turn @ fixed.covariance @ turn.T, fixed_out["covariance"]),
    }
    yield from _exact("gam, functions of persons, at its smoothing parameters", pairs)
    found, fixed = spline_levels(sums, terms, B, S)
    fitted = RepeatedFit(sums, found, fixed).predict(X, sums.means[at], sums.counts[at])
    of = "gam, functions of persons, at its own REML"
    yield f"{of}: fitted curves", of_range(fitted, optimum["fitted"]), SAME_CURVES, "of range"
    yield f"{of}: noise", relative(found.noise_variance, optimum["noise"][0]), SAME_CURVES, "relative"


def _demmler_reinsch(B: FloatArray, S: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    values, vectors = eigh(S, B.T @ B)
    return np.asarray(values), np.asarray(vectors)


def _levels(given: dict[str, Any], out: dict[str, Any]) -> Found:
    Y, persons, visits, face = given["Y"], given["id"], given["visit"], out["face"]
    order, codes = np.unique(persons, return_inverse=True)
    of_visits, which = np.unique(visits, return_inverse=True)
    T = Y.shape[1]
    found = smooth_levels(
        Y,
        codes,
        np.linspace(0, 1, T),
        np.full(T, 1 / T),
        n_components=(0.99, 0.99),
        n_knots=12,
        mean=face["mu"],
        visits=which,
        visit_means=face["mu"] + face["eta"].T,
    )
    scores = found.scores(Y, np.eye(len(of_visits))[which], codes, len(order))
    for level, basis in enumerate((found.person, found.row)):
        functions, values = face["efunctions"][level], face["evalues"][level]
        sign, want = np.sign((basis.functions @ functions).diagonal()), face["scores"][level]
        pairs = {
            "eigenvalues": (basis.values, values),
            "functions": (basis.functions.T * sign, functions),
            "scores": ((scores[level] * sign)[: len(want)], want),
        }
        yield from _exact(f"mfpca.face twoway, {('persons', 'rows')[level]}", pairs)
    yield "mfpca.face twoway: noise", relative(found.row.noise_variance, face["sigma2"][0]), EXACT, "relative"
    model = MultilevelFPCA(method="face", quadrature="equal", n_knots=12).fit(Y, groups=persons, visits=visits)
    own = model.mean_ + model.coefficients_
    yield "mfpca.face twoway: our means of visits", of_range(own, face["mu"] + face["eta"].T), 1e-3, "of range"
    yield from _beside_sc(given["even"], out["sc"])


def _beside_sc(given: dict[str, Any], out: dict[str, Any]) -> Found:
    """mfpca.sc smooths covariances by tensor products: first functions as directions, their values by a fifth."""
    model = MultilevelFPCA(method="reml", quadrature="trapezoid", n_components=2).fit(given["Y"], groups=given["id"])
    for level, name in enumerate(("person", "row")):
        functions, values = out["efunctions"][level], out["evalues"][level]
        first = functions[:, 0] / np.sqrt(model.weights_ @ functions[:, 0] ** 2)
        angle = 1 - abs(float(model.eigenfunctions_[name][0] @ (model.weights_ * first)))
        yield f"mfpca.sc: 1 - cosine of the first function, {name}", angle, 0.02, "absolute"
        value = abs(float(model.eigenvalues_[name][0] / values[0] - 1))
        yield f"mfpca.sc: first eigenvalue, {name}", value, 0.2, "relative"


def _pcre(given: dict[str, Any], out: dict[str, Any]) -> Found:
    Y, who, ef, noise = given["Y"], given["id"], given["ef"], float(given["scale"][0])
    phi = np.linalg.qr(given["basis"])[0]
    on_phi = phi.T @ ef
    G = (on_phi * given["ev"]) @ on_phi.T * noise / float(given["ridge"][0])
    sums = PersonPass(phi, 2, intercept=False).add(_with_constant(given["x"]), Y, who).sums()
    levels = LevelCovariances(G, noise * np.eye(phi.shape[1]), noise, 0.0)
    model = RepeatedFit(sums, levels, fixed_effects(sums, levels))
    at = sums.ids.get_indexer(who)
    fitted = model.predict(_with_constant(given["x"]), sums.means[at], sums.counts[at])
    effects = model.effects()[_persons(sums)] @ phi.T
    centred = effects - effects.mean(axis=0)
    yield "pcre: fitted curves", of_range(fitted, out["fitted"]), EXACT, "of range"
    yield "pcre: effects of persons less their mean", of_range(centred, out["effects"]), EXACT, "of range"


def _fastfmm(given: dict[str, Any], out: dict[str, Any]) -> Found:
    """Within its joint bands; as far from it as its errors are, and errors like its own."""
    X, Y = _with_constant(given["x"]), given["Y"]
    phi = smooth_functions(np.linspace(0, 1, Y.shape[1]), 10)[0]
    sums = PersonPass(phi, 2, intercept=False).add(X, Y, given["id"]).sums()
    fixed = fixed_effects(sums, level_covariances(sums))
    apart = np.abs(fixed.curves() - out["beta"]) / out["se"]
    yield "fui: ours over the half-width of its joint bands", float((apart.max(axis=1) / out["joint"]).max()), 1.0, ""
    yield "fui: mean distance in standard errors", float(apart.mean()), 0.5, "absolute"
    ratio = float(np.abs(np.log(fixed.standard_errors() / out["se"])).mean())
    yield "fui: mean logarithm of the ratio of standard errors", ratio, 0.25, "absolute"


COMPARED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Found]] = {
    "repeated_mixed": _mixed,
    "repeated_levels": _levels,
    "repeated_pcre": _pcre,
    "repeated_fastfmm": _fastfmm,
}
