"""fdadp's eigenbases beside refund's ``fpca.face``, ``fpca.sc``, ``fpca.ssvd`` and ``fpca2s``.

Signs of components are arbitrary and are turned to R's. refund's normalisations differ: unit Euclidean length for
``fpca.face``, unit norm under equal weights for ``fpca.ssvd`` and ``fpca2s``, trapezoidal weights for ``fpca.sc``.

Tolerances: 1e-11 (rounding) given R's mean where R smooths it (``fpca.ssvd``, the responses of ``affr_*``) and R's
smoothing parameter (``fpca.sc``). With our own searches ``fpca.sc`` agrees to 1e-3, because GCV is flat and mgcv stops
a little before its minimum: functions, scores and curves to 1e-3, variances to 3e-3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.fpca import (
    FPCA,
    Eigenbasis,
    face_eigenbasis,
    gavish_donoho,
    sc_eigenbasis,
    ssvd_eigenbasis,
)
from fdadp.functional.fpca.ssvd import sequential_scores
from fdadp.repeated.two_level_components import smooth_levels
from r_bridge.difference_report import Difference, relative


def basis_differences(
    basis: Eigenbasis, scores: FloatArray, recorded: dict[str, Any], weight: float, n_scores: int | None = None
) -> dict[str, float]:
    """Compare in the recorded normalisation: unit norm under `weight` at each point."""
    if basis.n_components != int(recorded["npc"][0]):
        return {"number of components": float("inf")}
    scale = np.sqrt(basis.weights[0] / weight)
    sign = np.sign((basis.functions @ recorded["efunctions"]).diagonal())
    found = {
        "mean": relative(basis.mean, recorded["mu"]),
        "functions": relative(basis.functions.T * sign * scale, recorded["efunctions"]),
        "scores": relative((scores * sign / scale)[:, :n_scores], recorded["scores"]),
    }
    if "evalues" in recorded:
        want = np.asarray(recorded["evalues"])
        found["eigenvalues"] = float(np.abs(basis.values / scale**2 / want - 1).max())
    if "Yhat" in recorded:
        found["curves"] = relative(basis.reconstruct(scores), recorded["Yhat"])
    return found


def sc_differences(basis: Eigenbasis, Y: FloatArray, recorded: dict[str, Any]) -> dict[str, float]:
    """Compare with ``fpca.sc``, whose normalisation is ours; its curves may have gaps."""
    if basis.n_components != int(recorded["npc"][0]):
        return {"number of components": float("inf")}
    sign = np.sign((basis.functions * basis.weights @ recorded["efunctions"]).diagonal())
    scores = basis.conditional_scores(Y)
    fitted = basis.reconstruct(scores)
    whole = "Yhat" in recorded
    rows = slice(None) if whole else np.isnan(Y).any(axis=1)
    return {
        "functions": relative(basis.functions.T * sign, recorded["efunctions"]),
        "eigenvalues": relative(basis.values, recorded["evalues"]),
        "scores": relative(scores * sign, recorded["scores"]),
        "curves": relative(fitted[rows], recorded["Yhat" if whole else "Yhat_incomplete"]),
        "explained share": abs(float(basis.explained_ratio.sum() - recorded["pve"][0])),
        "noise variance": abs(float(basis.noise_variance / recorded["sigma2"][0] - 1)),
        "variance of curves": relative(basis.conditional_variance(Y)[:5], recorded["diag_var"]),
    }


OWN_SEARCH = {"eigenvalues": 1e-5, "explained share": 2e-5, "noise variance": 3e-3, "variance of curves": 3e-3}
"""Tolerances of ``fpca.sc`` with our own smoothing; 1e-3 for the rest."""


def differences(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``fpca_*`` by each method."""
    case, given, out = str(record["meta"]["case"][0]), record["input"], record["output"]
    Y, t = given["Y"], given["argvals"]
    if not np.isnan(Y).any():
        for label, found in _complete(Y, t, out):
            for what, value in found.items():
                tolerance = 1e-13 if what == "mean" and label.startswith("face") else 1e-11
                yield Difference(case, f"{label}: {what}", value, tolerance)
    names = ("sc_Y", "sc_argvals") if "sc_Y" in given else ("Y", "argvals")
    yield from _sc(case, given[names[0]], given[names[1]], out)


def _complete(Y: FloatArray, t: FloatArray, out: dict[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Methods for curves without gaps."""
    mean, covariance = Y.mean(axis=0), np.cov(Y.T, ddof=0)
    face, spacing = out["face"], float(np.diff(t).mean())
    wanted: list[tuple[str, dict[str, Any], float, int]] = [
        ("face 0.95", face["unit"][0], 0.95, 35),
        ("face 0.99", face["unit"][1], 0.99, 35),
        ("face default", face["default"], 0.99, 35),
        ("face npc = 2, knots = 20", face["npc2_knots20"], 2, 20),
    ]
    for label, recorded, n_components, knots in wanted:
        basis = face_eigenbasis(mean, covariance, t, n_components=n_components, n_knots=knots, quadrature="equal")
        found = basis_differences(basis, basis.conditional_scores(Y), recorded, 1.0)
        found["explained share"] = abs(float(basis.explained_ratio.sum() / recorded["pve"][0] - 1))
        if "sigma2" in recorded:
            found["noise variance"] = abs(float(basis.noise_variance / recorded["sigma2"][0] - 1))
        yield label, found
    for which, n in (("ssvd", None), ("ssvd3", 3)):
        basis = ssvd_eigenbasis(Y, t, quadrature="equal", n_components=n, mean=out[which]["mu"])
        yield f"{which} given R's mean", basis_differences(basis, sequential_scores(basis, Y), out[which], spacing)
    for which, n in (("twostep", gavish_donoho(Y)), ("twostep3", 3)):
        fpca = FPCA(method="dense", quadrature="equal", n_components=n).fit(Y, t=t)
        yield f"fpca2s ({which})", basis_differences(fpca.basis_, fpca.transform(Y), out[which], spacing)


def _sc(case: str, Y: FloatArray, t: FloatArray, out: dict[str, Any]) -> Iterator[Difference]:
    sp = float(out["sc_internals"]["cov"]["sp"][0])
    for recorded in out["sc"]:
        share = float(recorded["pve_asked"][0])
        basis = sc_eigenbasis(Y, t, n_components=share, mean=recorded["mu"], smoothing=sp, noise="diagonal")
        for what, value in sc_differences(basis, Y, recorded).items():
            yield Difference(case, f"sc {share:g} at R's smoothing: {what}", value, 1e-11)
        own = sc_eigenbasis(Y, t, n_components=share, noise="diagonal")
        for what, value in sc_differences(own, Y, recorded).items():
            yield Difference(case, f"sc {share:g}, our own smoothing: {what}", value, OWN_SEARCH.get(what, 1e-3))


def differences_of_levels(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare a recorded case ``mfpca_*`` of ``mfpca.face``, given R's mean."""
    case, given, out = str(record["meta"]["case"][0]), record["input"], record["output"]
    Y, ids = given["Y"], given["id"]
    persons, codes = np.unique(ids, return_inverse=True)
    grid, weights = np.linspace(0, 1, Y.shape[1]), np.full(Y.shape[1], 1 / Y.shape[1])
    found = smooth_levels(Y, codes, grid, weights, n_components=(0.99, 0.99), n_knots=30, mean=out["mu"])
    scores = found.scores(Y, np.zeros((len(Y), 0)), codes, len(persons))
    for level, basis in enumerate((found.person, found.row)):
        functions, values, want = out["efunctions"][level], out["evalues"][level], out[f"scores{level + 1}"]
        name = ("persons", "rows")[level]
        if basis.n_components != values.size:
            yield Difference(case, f"{name}: number of components", float("inf"), 0.0)
            continue
        sign = np.sign((basis.functions @ functions).diagonal())
        yield Difference(case, f"{name}: functions", relative(basis.functions.T * sign, functions), 1e-9)
        yield Difference(case, f"{name}: eigenvalues", relative(basis.values, values), 1e-10)
        yield Difference(case, f"{name}: scores", relative((scores[level] * sign)[: len(want)], want), 1e-9)
    noise = abs(found.row.noise_variance / float(out["sigma2"][0]) - 1)
    yield Difference(case, "noise variance", noise, 1e-9)


def differences_of_scores(record: dict[str, Any]) -> Iterator[Difference]:
    """Compare the components of Y of a recorded case ``affr_*``, given R's mean (R smooths it)."""
    case, given, recorded = str(record["meta"]["case"][0]), record["input"], record["output"]["fpca"]
    if "evalues" not in recorded:  # components not by fpca.face
        return
    Y, centred = given["Y"], given["Y"] - recorded["mu"]
    basis = face_eigenbasis(
        recorded["mu"], centred.T @ centred / len(Y), given["t"], n_components=0.95, quadrature="equal"
    )
    want = {**recorded, "scores": given["scores"]}
    found = basis_differences(basis, basis.conditional_scores(Y), want, 1.0, n_scores=given["scores"].shape[1])
    for what, value in found.items():
        yield Difference(case, f"components of Y: {what}", value, 1e-11)
