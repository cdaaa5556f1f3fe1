"""The same call in R and here, with the numbers that both give: the table of docs/refund.md.

Recorded fits of refund need no R; models of numbers go through a live ``mgcv::gam``. Ours are fitted at R's smoothing
parameters, so that what is compared is the model and not where two searches stopped. Two numbers of each fit are
shown: the effective degrees of freedom, and the first record's fitted value (of a curve: in the middle of its grid).
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdadp import ScalarRegression
from r_bridge.reference import find_case, read_case
from r_bridge.refund_case import fit_case
from r_bridge.terms_beside_refund import CASES

DIGITS = 8
"""Significant digits that are shown; what is compared to the last ones is in ``r_bridge.terms_beside_refund``."""

LEGACY = "rule='simpson_legacy'"
CALLS = {
    "pffr_ff_canadian, default": f"Y ~ ff(X, {LEGACY})",
    "pffr_ff_canadian, trapezoidal": "Y ~ ff(X, k=(7, 7), m=((2, 2), (2, 2)))",
    "pffr_sff_canadian": "Y ~ sff(X, k=(5, 5, 5))",
    "pffr_concurrent_canadian": "Y ~ X",
    "pffr_fos_canadian, factor": "Y ~ factor(region, coding='levels')",
    "pffr_fos_canadian, dummies": "Y ~ C(region)",
    "pfr_lf_dti, simpson": f"y ~ lf(X, k=20, {LEGACY})",
    "pfr_lf_dti, trapezoidal": "y ~ lf(X, k=20)",
    "pfr_af_dti, simpson": f"y ~ af(X, k=(8, 8), {LEGACY})",
    "pfr_af_dti, trapezoidal": "y ~ af(X, k=(8, 8))",
    "fpcr_dti, ncomp8": "y ~ fpcr(X, n_components=8, n_basis=30, rule='sum')",
    "fpcr_dti, default": "y ~ fpcr(X, rule='sum')",
    "fosr_dti, ols_fixed": "Y ~ fosr(case, female) - 1",
    "pffr_live, hist": f"Y ~ ff(X, limits='s<=t', {LEGACY})",
    "pffr_live, hist_lt": f"Y ~ ff(X, limits='s<t', {LEGACY})",
    "pffr_live, const": f"Y ~ c(x) + ff(X, {LEGACY})",
    "pffr_live, smooth_ps": "Y ~ s(z, bs='ps', k=8, m=2)",
    "pffr_live, smooth_default": "Y ~ s(z)",
    "pffr_live, re": "Y ~ re(g) + x",
    "pffr_live, poisson": f"Y ~ ff(X, {LEGACY}) + x, family='poisson'",
    "pffr_live, sparse": f"Y ~ ff(X, {LEGACY}) + x, fit(data, response=long)",
    "pffr_live, ffpc": "Y ~ ffpc(X), refund's scores",
}
"""Recorded fits that are shown, one a call, and ours in words; ``r_bridge.terms_beside_refund`` has the fits."""

GAM = {
    "y ~ s(z)": "y ~ s(z)",
    "y ~ s(z, k = 6, m = 1)": "y ~ s(z, k=6, m=1)",
    'y ~ s(z, bs = "ps")': "y ~ s(z, bs='ps')",
    'y ~ s(z, bs = "cr", k = 9)': "y ~ s(z, bs='cr', k=9)",
    'y ~ s(w, bs = "cc", k = 9)': "y ~ s(w, bs='cc', k=9)",
    "y ~ te(z, w)": "y ~ te(z, w)",
    'y ~ te(z, w, bs = c("tp", "ps"), k = c(5, 6))': "y ~ te(z, w, bs=('tp', 'ps'), k=(5, 6))",
    "y ~ te(z, w, x, k = 3)": "y ~ te(z, w, x, k=3)",
    "y ~ s(z, by = x)": "y ~ s(z, by='x')",
    "y ~ te(z, w, by = x)": "y ~ te(z, w, by='x')",
    "y ~ g + s(z, by = g)": "y ~ C(g) + s(z, by='g')",
    'y ~ s(g, bs = "re") + s(w)': "y ~ re(g) + s(w)",
    "counts ~ s(z) + x, family = nb()": "counts ~ s(z) + x, family='negative_binomial'",
    "tails ~ s(z) + x, family = scat()": "tails ~ s(z) + x, family='scaled_t'",
    "category ~ s(z) + x, family = ocat(R = 4)": "category ~ s(z) + x, family='ordered'",
}
"""Calls of ``mgcv::gam`` for a number, and ours; the fitted value of ordered categories is a linear predictor."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One call.

    Attributes
    ----------
    theirs, ours : str
        The call in R, and here.
    data : str
    edf, value : tuple of float
        By R and by us.
    """

    theirs: str
    ours: str
    data: str
    edf: tuple[float, float]
    value: tuple[float, float]

    def __str__(self) -> str:
        shown = [f"{number:.{DIGITS}g}" for pair in (self.edf, self.value) for number in pair]
        return f"| `{self.theirs}` | `{self.ours}` | {self.data} | {' | '.join(shown)} |"


def recorded(folder: str | os.PathLike[str], names: Container[str] = CALLS) -> Iterator[Row]:
    """Recorded fits of refund, refitted: those of these `names`."""
    for case in CASES:
        if case.name in CALLS and case.name in names:
            record = read_case(find_case(case.record, [folder]))
            output = case.output(record)
            model = fit_case(case, record, np.ravel(output["sp"]))
            data = case.record.rpartition("_")[2].replace("live", "simulated")
            edf = (float(np.sum(output["edf_total"])), float(model.edf_))
            theirs, ours = np.asarray(output["fitted"], dtype=float), np.asarray(model.fitted_values_)
            value = (_of_the_first(theirs), _of_the_first(ours))
            rule = f', integration = "{case.part}"))' if case.record.startswith("pfr_") else "))"
            call = case.call.removesuffix("))") + rule if case.call.endswith("))") else case.call
            yield Row(theirs=call, ours=CALLS[case.name], data=data, edf=edf, value=value)


def numbers() -> dict[str, Any]:
    """Simulated rows with responses of several kinds, for :data:`GAM`."""
    rng = np.random.default_rng(0)
    z, w, x, g = rng.normal(size=150), rng.uniform(0, 3, 150), rng.normal(size=150), rng.choice(list("abc"), 150)
    y = np.sin(z) + 0.3 * w * z + 0.5 * x * np.cos(w) + (g == "b") * np.cos(z) + 0.3 * rng.normal(size=150)
    mean = np.sin(2 * z) + 0.5 * x
    return {
        **{"z": z, "w": w, "x": x, "g": g, "y": y},
        "counts": rng.poisson(np.exp(mean) * rng.gamma(2, 0.5, 150)).astype(float),
        "tails": mean + 0.3 * rng.standard_t(3, 150),
        "category": 1.0 + np.digitize(3 * mean + rng.logistic(size=150), [-1, 0, 1.5]),
    }


def live(calls: Mapping[str, str] = GAM) -> Iterator[Row]:
    """Models of numbers through mgcv, now.

    Raises
    ------
    RBridgeUnavailable
        No R, rpy2 or mgcv.
    """
    from r_bridge.gam_by_formula import fit_gam

    data = numbers()
    for theirs, ours in calls.items():
        (call, _, of), (formula, _, name) = theirs.partition(", family = "), ours.partition(", family=")
        found = fit_gam(call, data, family=of or "gaussian()", tolerance=1e-11 if of else 1e-6)
        family = name.strip("'") or "gaussian"
        if "theta" in found:  # what R estimated of the family
            family += f"({', '.join(map(repr, np.ravel(found['theta']).tolist()))})"
        model = ScalarRegression(formula, smoothing=np.ravel(found["sp"]), family=family).fit(data)
        fitted = model.predict(data, type="link") if name == "'ordered'" else model.fitted_values_
        edf = (float(np.sum(found["edf_total"])), float(model.edf_))
        value = (float(np.ravel(found["fitted"])[0]), float(fitted[0]))
        yield Row(theirs=f"gam({theirs})", ours=ours, data="simulated", edf=edf, value=value)


def markdown(rows: Iterable[Row]) -> str:
    """All as a table."""
    head = "| in R | here | data | edf, R | edf, fdadp | fitted, R | fitted, fdadp |\n|---|---|---|---|---|---|---|"
    return "\n".join([head, *map(str, rows)])


def _of_the_first(fitted: Any) -> float:
    return float(fitted.ravel()[fitted.shape[-1] // 2 if fitted.ndim == 2 and min(fitted.shape) > 1 else 0])
