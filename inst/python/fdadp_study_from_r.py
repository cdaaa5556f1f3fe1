"""Studies, for the R package: plain values in, plain values out (:mod:`fdadp_from_r`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fdadp import Study


def study_new(path: str, bounds: Any = None, sources: Any = None, **settings: Any) -> dict[str, Any]:
    """Make a study, and describe it."""
    public = {
        name: tuple(map(float, own)) if isinstance(own, np.ndarray) else [str(level) for level in own]
        for name, own in dict(bounds or {}).items()
    }
    return described(Study.new(path, bounds=public, sources=sources or None, **settings))


def study_show(path: str) -> dict[str, Any]:
    """Describe a study."""
    return described(Study(path))


def study_verify(path: str, files: Sequence[str] | None = None) -> list[str]:
    """What is wrong, in words."""
    return list(Study(path).verify(*(files or ())))


def study_report(
    path: str, out: str, files: Sequence[str] | None = None, about: Mapping[str, str] | None = None
) -> list[str]:
    """Write a certificate; returns the paths."""
    return [str(file) for file in Study(path).report(list(files or ()), **dict(about or {})).save(out)]


def study_close(path: str, reason: str) -> dict[str, Any]:
    """Close a study, and describe it."""
    of = Study(path)
    of.close(reason)
    return described(of)


def described(of: Study) -> dict[str, Any]:
    """A study in plain values."""
    facts, fits = of.facts, of.fits
    columns = {
        "number": [fit.number for fit in fits],
        "time": [fit.time for fit in fits],
        "mechanism": [fit.mechanism for fit in fits],
        "purpose": [fit.purpose for fit in fits],
        "epsilon": [fit.epsilon for fit in fits],
        "share": [fit.share for fit in fits],
        "releases": [len(fit.releases) for fit in fits],
        "state": [fit.state for fit in fits],
    }
    known = {key: facts[key] for key in ("name", "epsilon", "delta", "unit", "adjacency", "n")}
    return known | {"left": of.left, "fits": columns, "head": of.head[1], "text": str(of)}
