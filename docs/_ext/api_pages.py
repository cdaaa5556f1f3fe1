"""The pages of the API: which modules are public, and the one page that each public name has.

The home of a name is the path by which people import it. What ``fdadp`` itself exports lives there; a package that
exports it too lists it with a link.
"""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType
from typing import Any

MODULES = {
    "fdadp": "Models, budgets, data: what most programs import",
    "fdadp.terms": "Terms of models",
    "fdadp.learners": "Private learners of scikit-learn's kind",
    "fdadp.summaries": "Private summaries: mean curves and components, means, quantiles, counts",
    "fdadp.functional.fpca": "Principal components of curves",
    "fdadp.functional.metrics": "Errors, coverage, shares explained",
    "fdadp.functional.quadrature": "Integrals over grids",
    "fdadp.inference": "Contrasts, slopes and peaks of fitted models",
    "fdadp.planner": "Forecasts before the data",
    "fdadp.privacy": "The kernel: budgets, cohorts, noise, ledgers",
    "fdadp.privacy.study": "Budgets in files",
    "fdadp.privacy.certificate": "Certificates of what was released",
    "fdadp.audit": "Attempts to break a claim",
    "fdadp.federated": "Many owners; the local model",
    "fdadp.federated.flower": "Many owners on many machines",
    "fdadp.published": "Schemes of the literature: not private",
    "fdadp.datasets": "Data and simulations",
    "fdadp.plot": "Pictures",
    "fdadp.regression": "Regressions",
    "fdadp.errors": "Errors and warnings",
    "r_bridge": "R from Python, and comparisons with it",
    "r_bridge.refund": "Calls of refund",
    "r_bridge.mgcv": "Calls of mgcv",
    "r_bridge.vgam": "Calls of VGAM",
    "r_bridge.convert": "Curves to R and back",
    "r_bridge.reference": "Recorded results of R",
}
"""Public modules and what is in them, in the order of the site."""

EXAMPLES_OF = {
    "fdadp.audit.BlackBoxAudit": "fdadp.audit.black_box_audit",
    "fdadp.audit.MECHANISMS": "fdadp.audit.audit",
    "fdadp.audit.MechanismAudit": "fdadp.audit.audit",
    "fdadp.audit.Neighbours": "fdadp.audit.replay_audit",
    "fdadp.audit.OneRunAudit": "fdadp.audit.one_run_audit",
    "fdadp.audit.ReplayAudit": "fdadp.audit.replay_audit",
    "fdadp.datasets.FunctionalDataset": "fdadp.load_canadian_weather",
    "fdadp.datasets.SimulatedCurves": "fdadp.simulate_affr",
    "fdadp.datasets.TableDataset": "fdadp.datasets.load_adult",
    "fdadp.datasets.WeatherDataset": "fdadp.load_canadian_weather",
    "fdadp.federated.ProtocolError": "fdadp.federated.fit_together",
    "fdadp.federated.flower.APP": "fdadp.federated.flower.require_flower",
    "fdadp.functional.quadrature.RULES": "fdadp.functional.quadrature.quadrature_weights",
    "fdadp.inference.Draws": "fdadp.inference.draws",
    "fdadp.inference.EffectEstimates": "fdadp.inference.difference",
    "fdadp.planner.Forecast": "fdadp.plan",
    "fdadp.plot.PALETTE": "fdadp.plot.surface",
    "fdadp.privacy.Ledger": "fdadp.privacy.Cohort",
    "fdadp.privacy.Noisy": "fdadp.privacy.Cohort",
    "fdadp.privacy.Release": "fdadp.privacy.Cohort",
    "fdadp.privacy.certificate.ABOUT": "fdadp.Study",
    "fdadp.privacy.certificate.Certificate": "fdadp.Study",
    "fdadp.summaries.SuggestedBounds": "fdadp.summaries.suggest_bounds",
    "r_bridge.RBridgeUnavailable": "r_bridge.status",
    "r_bridge.RError": "r_bridge.status",
    "r_bridge.RWarning": "r_bridge.status",
    "r_bridge.mgcv.GamFit": "r_bridge.mgcv.gam_linear_functional",
    "r_bridge.reference.read_case": "r_bridge.reference.find_case",
    "r_bridge.refund.FosrFit": "r_bridge.refund.fosr",
    "r_bridge.refund.FpcaFit": "r_bridge.refund.fpca_face",
    "r_bridge.refund.PffrFit": "r_bridge.refund.pffr",
    "r_bridge.refund.PfrFit": "r_bridge.refund.pfr",
    "r_bridge.refund.Surface": "r_bridge.refund.pffr",
}
"""What a function gives back, or is given, is shown by the example of that function."""

FIRST_DAY = (
    "FunctionalRegression",
    "ScalarRegression",
    "AdditiveFunctionOnFunction",
    "SurvivalRegression",
    "open_curves",
    "plan",
    "Privacy",
    "Study",
    "PrivateMean",
    "PrivateTable1",
)
"""Names of `fdadp` that a newcomer meets, in the order in which they are met."""

GROUPS = {
    "Fit and save": r"fit|fit_chunks|fit_transform|plan|made_of|ledger_|save|load",
    "Predict": r"predict.*|sample|score|transform|inverse_transform|complete",
    "Effects and their errors": r"coef|coefficients_|vcov|bands?|bootstrap|surface|surface_se|local_blups|table_"
    r"|baseline_hazard|mean_curve_|.*_sd_|icc_interval",
    "Tests and choice of models": r"test_terms|anova|compare|check|concurvity|loo_|loo_se_|aic_|r2_|explained_deviance_"
    r"|term_edf_",
    "Summaries and pictures": r"summary|plot.*|residuals|to_frame|to_html",
}
"""Members of a fitted model by what they are for: patterns of names."""
MANY = 10
"""Members of a class that are grouped, at least."""

WHOLE = ("fdadp.errors",)
"""Modules whose names share one page."""


def names_of(module: ModuleType) -> list[str]:
    """Its public names: ``__all__``; the terms have a table instead."""
    if module.__name__ == "fdadp.terms":
        return sorted(module.KINDS)
    rooms = {"__version__", *getattr(module, "ROOMS", ())}  # rooms have pages of their own
    return sorted((name for name in module.__all__ if name not in rooms), key=str.lower)


def _homes() -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """Name: home, any public path: home, and of every module the names that live there."""
    by_name: dict[str, str] = {}
    by_path: dict[str, str] = {}
    by_object: dict[int, str] = {}
    own: dict[str, list[str]] = {}
    for path in MODULES:
        module = importlib.import_module(path)
        own[path] = []
        for name in names_of(module):
            value: Any = getattr(module, name)
            known = by_object.get(id(value)) if inspect.isclass(value) or inspect.isfunction(value) else None
            if known is None:
                home = f"{path}.{name}"
                if inspect.isclass(value) or inspect.isfunction(value):
                    by_object[id(value)] = home
                own[path].append(name)
                by_name.setdefault(name, home)
            else:
                home = known
            by_path[f"{path}.{name}"] = home
            defined = getattr(value, "__module__", None)
            if isinstance(defined, str) and inspect.isclass(value) | inspect.isfunction(value):
                by_path.setdefault(f"{defined}.{value.__qualname__}", home)
    return by_name, by_path, own


HOMES, PATHS, OWN = _homes()


def _grouped(of: Any) -> list[tuple[str, list[str]]]:
    """Members of an estimator under the headings of `GROUPS`, the rest last; nothing of smaller or other classes."""
    if not inspect.isclass(of):
        return []
    members: dict[str, None] = {}
    for base in of.__mro__:
        if not base.__module__.startswith(("sklearn.", "builtins")):
            described = (n for n, own in vars(base).items() if n[0] != "_" and callable(own) | hasattr(own, "__get__"))
            members |= dict.fromkeys(n for n in described if inspect.getdoc(inspect.getattr_static(of, n)))
    if len(members) < MANY or "fit" not in members:
        return []
    found = {title: [n for n in members if re.fullmatch(pattern, n)] for title, pattern in GROUPS.items()}
    rest = [n for n in members if not any(n in own for own in found.values())]
    return [(title, own) for title, own in [*found.items(), ("More", rest)] if own]


GROUPED = {
    f"{path}.{name}": groups
    for path, names in OWN.items()
    for name in names
    if (groups := _grouped(getattr(importlib.import_module(path), name)))
}
"""Headings and members by class."""


def page(path: str) -> str:
    """The page of one module, as reStructuredText."""
    title = path
    lines = [
        title,
        "=" * len(title),
        "",
        f".. automodule:: {path}",
        "   :no-members:",
        "",
        f".. currentmodule:: {path}",
        "",
    ]
    if path in WHOLE:
        return "\n".join([*lines[:3], f".. automodule:: {path}", "   :members:", "   :show-inheritance:", ""])
    module = importlib.import_module(path)
    kinds = {"Classes": inspect.isclass, "Functions": callable, "Data": lambda value: True}
    left = list(OWN[path])
    for heading, of_kind in kinds.items():
        chosen = [name for name in left if of_kind(getattr(module, name))]
        left = [name for name in left if name not in chosen]
        if chosen:
            lines += [
                heading,
                "-" * len(heading),
                "",
                ".. autosummary::",
                "   :toctree: generated",
                "   :nosignatures:",
                "",
            ]
            lines += [f"   {name}" for name in chosen] + [""]
    elsewhere = [PATHS[f"{path}.{name}"] for name in names_of(module) if PATHS[f"{path}.{name}"] != f"{path}.{name}"]
    if elsewhere:
        lines += ["Also here: " + ", ".join(f":obj:`{home}`" for home in elsewhere) + ".", ""]
    return "\n".join(lines)


def index() -> str:
    """The front page of the API."""
    lines = [
        "API",
        "===",
        "",
        "Every public name, with its arguments, what it returns and raises, and an example that the tests run.",
        "",
        "The first day",
        "-------------",
        "",
        ".. currentmodule:: fdadp",
        "",
        ".. autosummary::",
        "   :nosignatures:",
        "",
    ]
    lines += [f"   {name}" for name in FIRST_DAY]
    lines += ["", "By room", "-------", ""]
    lines += [".. list-table::", "   :widths: 35 65", ""]
    for path, what in MODULES.items():
        lines += [f"   * - :doc:`{path}`", f"     - {what}"]
    lines += ["", ".. toctree::", "   :hidden:", ""] + [f"   {path}" for path in MODULES] + [""]
    return "\n".join(lines)


def made() -> dict[str, bytes]:
    """All pages of the API by their place in the site, but for those of single names, which autosummary writes."""
    pages = {"api/index.rst": index()} | {f"api/{path}.rst": page(path) for path in MODULES}
    return {place: text.encode() for place, text in pages.items()}
