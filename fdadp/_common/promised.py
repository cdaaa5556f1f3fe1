"""ε and δ in words, said in one way wherever a guarantee is stated."""

from __future__ import annotations

__all__ = ["promised"]


def promised(epsilon: float, delta: float | None) -> str:
    """Say what is promised; no δ is pure ε.

    Examples
    --------
    >>> promised(1.0, 1e-6), promised(0.5, None)
    ('epsilon = 1, delta = 1e-06', 'epsilon = 0.5')
    """
    return f"epsilon = {epsilon:g}" + ("" if delta is None else f", delta = {delta:g}")
