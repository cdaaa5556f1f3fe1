"""Draws of matrix Laplace noise as arrays, mutants of its law, and sums with a bounded nuclear norm."""

from __future__ import annotations

import numpy as np

from fdadp.privacy import Budget, Cohort, SeededNoise, TapeNoise
from fdadp.privacy.noise._matrix_noise import MatrixLaplace


def pair(rows):
    return rows[0], rows[1]


def cohort(f, r, epsilon=1.0, noise=None, **options):
    return Cohort((f, r), budget=Budget(epsilon), noise=noise or SeededNoise(0), **{"n": len(f), **options})


def exact(f, r, **options):
    """Integers that are summed."""
    tape = TapeNoise()
    c = cohort(f, r, noise=tape, **options)
    c.sum_outer(pair, clip=4.0, share=1.0, name="s", norm="nuclear")
    return np.array(tape.entries[0].exact).reshape(f.shape[1], r.shape[1]), tape.entries[0].sensitivity


def normals(law, draws, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([law.draw_floats(2.0**30, rng).integers for _ in range(draws)], dtype=float) / 2.0**30


def exact_draws(law, draws):
    return np.array([law.draw(2.0**30).integers for _ in range(draws)], dtype=float) / 2.0**30


def matrices(law, draws, seed=0, draw=normals):
    z = draw(law, draws, seed) if draw is normals else draw(law, draws)
    if not law.symmetric:
        return z.reshape(-1, law.rows, law.columns)
    out = np.zeros((draws, law.rows, law.rows))
    rows, columns = np.triu_indices(law.rows)
    out[:, rows, columns] = z
    return out + np.triu(out, 1).transpose(0, 2, 1)


def functionals(z):
    """Of each matrix: nuclear norm, largest singular value, tr (Z'Z)²."""
    sizes = np.linalg.svd(z, compute_uv=False)
    return np.stack([sizes.sum(axis=1), sizes[:, 0], (sizes**4).sum(axis=1) ** 0.25], axis=1)


SHAPES = [MatrixLaplace(5, 3), MatrixLaplace(2, 4), MatrixLaplace(3, 3), MatrixLaplace(4, 4, symmetric=True)]


def degrees_off_by(monkeypatch, more):
    right = MatrixLaplace.degrees.fget
    monkeypatch.setattr(MatrixLaplace, "degrees", property(lambda self: right(self) + more))


def nuclear(moves):
    return np.linalg.svd(np.asarray(moves, dtype=float), compute_uv=False).sum()
