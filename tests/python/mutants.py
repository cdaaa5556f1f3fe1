"""Mutants: a module of the product with a few of its characters changed, for tests that must then go red."""

from __future__ import annotations

import inspect
import sys


def mutate(monkeypatch, module, old, new):
    """Run `module` as if its source had `new` instead of `old` (which stands there once), until the test ends.

    Classes and functions of the module get the code of the changed ones, so that everybody who imported them before
    runs the mutant too.
    """
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {module.__name__}"
    changed = {"__name__": module.__name__, "__file__": module.__file__, "__package__": module.__package__}
    exec(compile(source.replace(old, new), module.__file__, "exec"), changed)
    for name, right in vars(module).items():
        wrong = changed.get(name)
        if getattr(right, "__module__", None) != module.__name__ or wrong is None:
            continue
        while inspect.isfunction(right):
            monkeypatch.setattr(right, "__code__", wrong.__code__)
            right, wrong = getattr(right, "__wrapped__", None), getattr(wrong, "__wrapped__", None)  # of a decorator
        if inspect.isclass(right):
            for key, method in vars(right).items():
                if inspect.isfunction(method) and method.__qualname__.startswith(right.__qualname__):
                    monkeypatch.setattr(method, "__code__", vars(wrong)[key].__code__)
    assert sys.modules[module.__name__] is module


MINIMUM = "fdadp.privacy.kernel._perturbed_minimisers"
SCALE_MUTANTS = {
    "Wishart noise with half its unit": (
        "fdadp.privacy.noise.sources",
        "float_wishart(p, nu, sensitivity, rng)",
        "float_wishart(p, nu, sensitivity / 2, rng)",
        ("Wishart", "gdp", "zero-out", False),
    ),
    "Wishart noise with half its unit, secure": (
        "fdadp.privacy.noise.sources",
        "wishart(p, nu, sensitivity, _uniform)",
        "wishart(p, nu, sensitivity / 2, _uniform)",
        ("Wishart", "gdp", "zero-out", False),
    ),
    "pure objective perturbation that is not doubled where a person is replaced": (
        MINIMUM,
        'both = 2.0 if self._kernel.adjacency == "replace" and pure else 1.0',
        "both = 1.0",
        ("logistic, objective", "pure", "replace", False),
    ),
    "no noise on the minimiser of a perturbed objective": (
        MINIMUM,
        "noisy = point(w.ravel()) * step",
        "noisy = (point(w.ravel()) * 0 + w.ravel()) * step",
        ("logistic, objective", "pure", "zero-out", False),
    ),
    "output perturbation that is not doubled where a person is replaced": (
        MINIMUM,
        'both = 2.0 if self._kernel.adjacency == "replace" else 1.0',
        "both = 1.0",
        ("logistic, output", "gdp", "replace", False),
    ),
    "a person's rows at weight c^-1/4 in least squares": (
        "fdadp.privacy.kernel._loss_minimisers",
        "person_weights(vault, 0.5)",
        "person_weights(vault, 0.25)",
        ("least squares", "gdp", "zero-out", True),
    ),
    "a bound of least squares that is up to half too small": (
        MINIMUM,
        "clip * (radius * clip + target_clip) / ridge",
        "clip * max(radius * clip, target_clip) / ridge",
        ("least squares", "gdp", "zero-out", False),
    ),
}
"""Too little noise for what a person moves: (module, old text, new text, release, measure, adjacency, persons)."""
