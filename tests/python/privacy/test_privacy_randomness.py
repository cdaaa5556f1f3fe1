"""Noise for release comes from the system's randomness: no seed of anybody's repeats it."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import numpy as np
import pytest
from mutants import mutate

import fdadp.privacy
from fdadp.privacy import OpenDPNoise
from fdadp.privacy.noise import _matrix_noise
from fdadp.privacy.noise import sources as noise
from fdadp.privacy.noise.sources import KINDS

FOLDER = Path(fdadp.privacy.__file__).parent
OF_OURS = ("spherical", "wishart", "product", "symmetric", "bingham", "bingham-zcdp")
"""What is not drawn by OpenDP."""


def repeated(kind):
    """Whether draws repeat when all seeds that a program can set are set again."""
    draws = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        sampler = OpenDPNoise().prepare(kind, 6, 2.0**24, 0.01, *((3,) if kind in ("product", "symmetric") else ()))
        draws.append([tuple(sampler(np.arange(6) * 2**20).tolist()) for _ in range(8)])
    return draws[0] == draws[1]


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_no_seed(kind):
    assert not repeated(kind)


@pytest.mark.parametrize("kind", OF_OURS)
def test_mutants_with_seeded_randomness_are_found(monkeypatch, kind):
    if kind == "wishart":
        mutate(
            monkeypatch,
            noise,
            "secrets.randbits(matrices.UNIFORM_BITS)",
            "random.getrandbits(matrices.UNIFORM_BITS)",
        )
    elif kind in ("spherical", "product", "symmetric"):
        monkeypatch.setattr(_matrix_noise.MatrixLaplace.draw, "__defaults__", (random.getrandbits,))
    else:
        mutate(monkeypatch, noise, "secrets.token_bytes(8 * size)", "random.randbytes(8 * size)")
    monkeypatch.setattr(noise, "random", random, raising=False)
    assert repeated(kind)


def test_the_kernel_imports_no_other_randomness():
    """NumPy's generators are made in sources for simulations, public probes and the published scheme only."""
    makes = set()
    for path in sorted(FOLDER.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert "random" not in imported, path.name
        for top in tree.body:
            called = {ast.unparse(n.func) for n in ast.walk(top) if isinstance(n, ast.Call)}
            if path.parent.name != "study":  # studies are named by uuid4, of the system's randomness
                assert not any(name.startswith("uuid.uuid") for name in called), path.name
            if any(name.startswith("np.random") for name in called):
                makes.add((path.stem, getattr(top, "name", "")))
    simulations = {("sources", "SeededNoise"), ("distributed", "DistributedNoise"), ("audit", "replay_audit")}
    assert {one for one in makes if one[0] != "published"} <= simulations | {
        ("_sealed_row_functions", "_probe_rows"),
        ("_sealed_row_functions", "_far_rows"),
        ("_sealed_row_functions", "_same_bits"),
    }
