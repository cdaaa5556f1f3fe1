"""Recorded mixed models of repeated curves beside the project's: mgcv, nlme, lme4, refund and fastFMM.

Tolerances. At R's variances (fixed smoothing parameters, G, R and noise as R has them) estimates, standard errors and
effects of persons are equal to 1e-8. At its own optimum the criterion is never above R's by more than 1e-6, and curves
agree to 1e-4 of their range: the programs stop their searches at other places. ``mfpca.sc`` smooths otherwise, and
``fui`` fits each t by itself: these agree in what they estimate, by the bounds that stand with each.

``python -m r_bridge.repeated_beside_r`` prints the table of docs/from-lme4.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fdadp import MultilevelFPCA
from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.repeated.fixed_effects import MeanTerm, fixed_effects, spline_levels
from fdadp.repeated.person_effects import RepeatedFit
from fdadp.repeated.person_sums import PersonPass, PersonSums, smooth_functions
from fdadp.repeated.random_slopes import slope_covariances, slope_effects, slope_sums
from fdadp.repeated.reml_search import LevelCovariances, level_covariances
from fdadp.repeated.two_level_components import TwoLevels, smooth_levels
from fdadp.repeated.two_level_model import deviance, gls
from r_bridge.difference_report import Difference, absolute, of_range, relative
from r_bridge.reference import read_case

EXACT, OPTIMUM, SAME_CURVES = 1e-8, 1e-6, 1e-4


class Pair(NamedTuple):
    """One quantity of ours and of R's.

    Attributes
    ----------
    of, what : str
        Call of R, and the quantity.
    ours, theirs : array_like of one shape
    tolerance : float
    kind : {"relative", "absolute", "of range", "excess"}
        Of the difference, as :class:`r_bridge.difference_report.Difference` has it.
    scale : array_like
        That both are divided by before they are compared.
    place : int
        Of the number that the page shows.
    """

    of: str
    what: str
    ours: Any
    theirs: Any
    tolerance: float = EXACT
    kind: str = "relative"
    scale: ArrayLike = 1.0
    place: int = 0

    def difference(self, case: str) -> Difference:
        """How far both are apart."""
        ours, theirs = np.asarray(self.ours) / self.scale, np.asarray(self.theirs) / self.scale
        if self.kind == "excess":
            value = max(float(ours) - float(theirs), 0.0) / (1 + abs(float(theirs)))
        else:
            value = {"relative": relative, "absolute": absolute, "of range": of_range}[self.kind](ours, theirs)
        return Difference(case, f"{self.of}: {self.what}", value, self.tolerance, self.kind)

    @property
    def shown(self) -> tuple[float, float]:
        """One number of R's and of ours."""
        theirs, ours = (float(np.ravel(values)[self.place]) for values in (self.theirs, self.ours))
        return theirs, ours


Found = Iterator[Pair]


def differences(record: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``repeated_*``."""
    case = str(record["meta"]["case"][0])
    return (pair.difference(case) for pair in COMPARED[case](record["input"], record["output"]))


def numbers(case_of: Callable[[str], Mapping[str, Any]]) -> list[tuple[str, str, float, float, int]]:
    """Rows of the page: call, quantity, R's number, ours, and digits that both are shown with.

    `case_of` gives the recorded case of a name.
    """
    rows = []
    for case in ("repeated_mixed", "repeated_levels", "mfpca_dti", "repeated_pcre", "repeated_fastfmm"):
        record = case_of(case)
        for pair in SHOWN[case](record["input"], record["output"]):
            rows.append((pair.of, pair.what, *pair.shown, 8 if pair.tolerance <= EXACT else 4))
    return rows


def markdown() -> str:
    """The table of the page, from the cases of a checkout, where it is run."""
    lines = ["| in R | quantity | R | fdadp |", "|---|---|---|---|"]
    folder = Path("tests") / "reference"
    for of, what, theirs, ours, digits in numbers(lambda case: read_case(folder / f"{case}.rds")):
        lines.append(f"| {of} | {what} | {theirs:.{digits}g} | {ours:.{digits}g} |")
    return "\n".join(lines)


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


def _below(of: str, ours: float, out: dict[str, Any]) -> Pair:
    return Pair(of, "-2 REML, each at its optimum", ours, float(out["deviance"][0]), OPTIMUM, "excess")


def _intercept(given: dict[str, Any], out: dict[str, Any]) -> Found:
    of, X, y, who = "`lmer(y ~ x + (1 \\| id))`", _with_constant(given["x"]), given["y"][:, None], given["id"]
    s = PersonPass(np.eye(1), 2, intercept=False).add(X, y, who).sums()
    levels = LevelCovariances(np.atleast_2d(out["G"]), np.atleast_2d(out["R"]), 0.0, 0.0)
    fixed = fixed_effects(s, levels)
    yield Pair(of, "slope", fixed.coefficients, out["fixed"], place=1)
    yield Pair(of, "its standard error", np.sqrt(np.diag(fixed.covariance)), out["se"], place=1)
    yield Pair(of, "effect of a person", RepeatedFit(s, levels, fixed).effects()[_persons(s)], out["effects"])
    constant = (s.n_rows - 2) * np.log(2 * np.pi)
    yield _below(of, level_covariances(s, tolerance=1e-12).deviance + constant, out)


def _slope(given: dict[str, Any], out: dict[str, Any]) -> Found:
    of, X, y, who = "`lmer(y ~ x + (x \\| id))`", _with_constant(given["x"]), given["y"][:, None], given["id"]
    sums = PersonPass(np.eye(1), 2, intercept=False, cross=True).add(X, y, who).sums()
    s = slope_sums(sums, np.eye(2))
    found = slope_effects(s, LevelCovariances(out["G"], np.atleast_2d(out["R"]), 0.0, 0.0))
    yield Pair(of, "slope", found.fixed.ravel(), out["fixed"], place=1)
    yield Pair(of, "its standard error", np.sqrt(np.diag(found.covariance)), out["se"], place=1)
    yield Pair(of, "slope of a person", found.effects[:, :, 0], out["effects"], place=1)
    constant = (who.size - 2) * np.log(2 * np.pi)
    yield _below(of, slope_covariances(s, tolerance=1e-11).deviance + constant, out)


def _two_responses(given: dict[str, Any], out: dict[str, Any]) -> Found:
    of = "`lme`, two responses, free covariances of persons and rows"
    s = PersonPass(np.eye(2), 2, intercept=False).add(_with_constant(given["x"]), given["C"], given["id"]).sums()
    B, V = gls(s, out["G"], out["R"])
    yield Pair(of, "slope", B, out["fixed"], place=2)
    yield Pair(of, "its standard error", np.sqrt(np.diag(V)).reshape(2, 2), out["se"], place=2)
    constant = (2 * s.n_rows - 4) * np.log(2 * np.pi)
    yield Pair(of, "-2 REML, at its variances", deviance(s, out["G"], out["R"]) + constant, out["deviance"][0])
    yield _below(of, level_covariances(s, tolerance=1e-12).deviance + constant, out)


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
    turn, middle = np.kron(np.eye(2), U), Y.shape[1] // 2
    of = "`gam`, `paraPen`: functions of persons, at its smoothing parameters"
    fitted = model.predict(X, sums.means[at], sums.counts[at])
    yield Pair(of, "fitted curve, middle", fitted, fixed_out["fitted"], place=middle)
    yield Pair(of, "coefficient of a mean curve", fixed.on_phi() @ U.T, fixed_out["coefficients"][:2])
    yield Pair(of, "of a person", model.effects()[_persons(sums)] @ U.T, fixed_out["coefficients"][2:])
    yield Pair(of, "variance of the first", turn @ fixed.covariance @ turn.T, fixed_out["covariance"])
    found, fixed = spline_levels(sums, terms, B, S)
    fitted = RepeatedFit(sums, found, fixed).predict(X, sums.means[at], sums.counts[at])
    of = "the same, each at its own REML"
    yield Pair(of, "fitted curve, middle", fitted, optimum["fitted"], SAME_CURVES, "of range", place=middle)
    yield Pair(of, "noise variance", found.noise_variance, optimum["noise"][0], SAME_CURVES)


def _demmler_reinsch(B: FloatArray, S: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    values, vectors = eigh(S, B.T @ B)
    return np.asarray(values), np.asarray(vectors)


def _levels(given: dict[str, Any], out: dict[str, Any]) -> Found:
    of, Y, persons, visits, face = "`mfpca.face(twoway = TRUE)`", given["Y"], given["id"], given["visit"], out["face"]
    of_visits, which = np.unique(visits, return_inverse=True)
    means = face["mu"] + face["eta"].T
    found = _as_face(Y, persons, 12, face["mu"], visits=which, visit_means=means)
    order, codes = np.unique(persons, return_inverse=True)
    scores = found.scores(Y, np.eye(len(of_visits))[which], codes, len(order))
    for level, basis in enumerate((found.person, found.row)):
        functions, name = face["efunctions"][level], ("persons", "rows")[level]
        sign, want = np.sign((basis.functions @ functions).diagonal()), face["scores"][level]
        yield Pair(of, f"first eigenvalue, {name}", basis.values, face["evalues"][level])
        yield Pair(of, f"eigenfunction, {name}", basis.functions.T * sign, functions)
        yield Pair(of, f"score, {name}", (scores[level] * sign)[: len(want)], want)
    yield Pair(of, "noise variance", found.row.noise_variance, face["sigma2"][0])
    model = MultilevelFPCA(method="face", quadrature="equal", n_knots=12).fit(Y, groups=persons, visits=visits)
    yield Pair(of, "mean curve of a visit, ours smoothed by itself", model.mean_ + model.coefficients_, means, 1e-3)
    yield from _beside_sc(given["even"], out["sc"])


def _as_face(Y: FloatArray, persons: FloatArray, knots: int, mean: FloatArray, **visits: Any) -> TwoLevels:
    T = Y.shape[1]
    own: dict[str, Any] = {"n_components": (0.99, 0.99), "n_knots": knots, "mean": mean}
    codes = np.unique(persons, return_inverse=True)[1]
    return smooth_levels(Y, codes, np.linspace(0, 1, T), np.full(T, 1 / T), **own, **visits)


def _beside_sc(given: dict[str, Any], out: dict[str, Any]) -> Found:
    """mfpca.sc smooths covariances by tensor products: first functions as directions, their values by a fifth."""
    model = MultilevelFPCA(method="reml", quadrature="trapezoid", n_components=2).fit(given["Y"], groups=given["id"])
    for level, name in enumerate(("person", "row")):
        functions, values, own = out["efunctions"][level], out["evalues"][level], model.eigenfunctions_[name][0]
        first = functions[:, 0] / np.sqrt(model.weights_ @ functions[:, 0] ** 2)
        cosine = abs(float(own @ (model.weights_ * first)))
        yield Pair("`mfpca.sc`", f"cosine of both first functions, {name}", cosine, 1.0, 0.02)
        yield Pair("`mfpca.sc`", f"first eigenvalue, {name}", model.eigenvalues_[name][0], values[0], 0.2)


def _dti(given: dict[str, Any], out: dict[str, Any]) -> Found:
    """The figures of ``mfpca_dti`` that the page shows; :mod:`r_bridge.fpca_beside_refund` compares them all."""
    of, found = "`mfpca.face(twoway = FALSE)`, DTI", _as_face(given["Y"], given["id"], 30, out["mu"])
    for level, basis in enumerate((found.person, found.row)):
        name = ("persons", "rows")[level]
        yield Pair(of, f"components, {name}", basis.n_components, out["evalues"][level].size)
        yield Pair(of, f"first eigenvalue, {name}", basis.values, out["evalues"][level])
    yield Pair(of, "noise variance", found.row.noise_variance, out["sigma2"][0])


def _pcre(given: dict[str, Any], out: dict[str, Any]) -> Found:
    of, Y, who, ef = "`pffr(Y ~ x + pcre(id, ef, ev, t))`", given["Y"], given["id"], given["ef"]
    noise, phi = float(given["scale"][0]), np.linalg.qr(given["basis"])[0]
    on_phi = phi.T @ ef
    G = (on_phi * given["ev"]) @ on_phi.T * noise / float(given["ridge"][0])
    sums = PersonPass(phi, 2, intercept=False).add(_with_constant(given["x"]), Y, who).sums()
    levels = LevelCovariances(G, noise * np.eye(phi.shape[1]), noise, 0.0)
    model = RepeatedFit(sums, levels, fixed_effects(sums, levels))
    at, middle = sums.ids.get_indexer(who), Y.shape[1] // 2
    fitted = model.predict(_with_constant(given["x"]), sums.means[at], sums.counts[at])
    effects = model.effects()[_persons(sums)] @ phi.T
    centred = effects - effects.mean(axis=0)
    yield Pair(of, "fitted curve, middle", fitted, out["fitted"], EXACT, "of range", place=middle)
    yield Pair(of, "of a person, less the mean", centred, out["effects"], EXACT, "of range", place=middle)


def _fastfmm(given: dict[str, Any], out: dict[str, Any]) -> Found:
    """Within its joint bands, and errors like its own."""
    of, X, Y = "`fui(Y ~ x + (1 \\| id))`", _with_constant(given["x"]), given["Y"]
    phi, T = smooth_functions(np.linspace(0, 1, Y.shape[1]), 10)[0], Y.shape[1]
    sums = PersonPass(phi, 2, intercept=False).add(X, Y, given["id"]).sums()
    fixed = fixed_effects(sums, level_covariances(sums))
    bands = out["joint"][:, None] * out["se"]
    yield Pair(of, "effect of x, middle", fixed.curves(), out["beta"], 0.5, "absolute", bands, T + T // 2)
    logs = np.log(fixed.standard_errors()), np.log(out["se"])
    yield Pair(of, "logarithm of its standard error", *logs, 0.7, "absolute", place=T + T // 2)


COMPARED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Found]] = {
    "repeated_mixed": _mixed,
    "repeated_levels": _levels,
    "repeated_pcre": _pcre,
    "repeated_fastfmm": _fastfmm,
}
SHOWN = {**COMPARED, "mfpca_dti": _dti}


if __name__ == "__main__":
    print(markdown())
