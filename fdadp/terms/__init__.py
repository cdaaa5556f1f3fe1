"""Terms of functional regressions: rows of features, penalties, and what of them is identified.

``terms.ff("X")`` in code is ``ff(X)`` in a formula; each kind is one class.
"""

from __future__ import annotations

import importlib
from typing import Any

KINDS = {
    "af": "fdadp.terms.curves.functional_additive.AdditiveFunctional",
    "by": "fdadp.terms.times_column.By",
    "c": "fdadp.terms.times_column.constant",
    "concurrent": "fdadp.terms.curves.functional_concurrent.Concurrent",
    "factor": "fdadp.terms.numbers.factors_and_random_effects.Factor",
    "ff": "fdadp.terms.curves.functional_linear.FunctionalLinear",
    "ffpc": "fdadp.terms.curves.principal_components.ComponentScores",
    "fosr": "fdadp.terms.numbers.scalar_linear.ScalarsTogether",
    "fpcr": "fdadp.terms.curves.principal_components.ComponentRegression",
    "lf": "fdadp.terms.curves.functional_linear.LinearFunctional",
    "linear": "fdadp.terms.numbers.scalar_linear.Linear",
    "re": "fdadp.terms.numbers.factors_and_random_effects.RandomEffect",
    "s": "fdadp.terms.numbers.smooth.Smooth",
    "sff": "fdadp.terms.curves.functional_additive.FunctionalAdditive",
    "te": "fdadp.terms.numbers.smooth.te",
}
"""Names in formulas and in code, and the class of terms (or function) that each makes; no module may have its name."""


def __getattr__(name: str) -> Any:
    if name not in KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, kind = KINDS[name].rpartition(".")
    return getattr(importlib.import_module(module), kind)


def __dir__() -> list[str]:
    return sorted({*globals(), *KINDS})
