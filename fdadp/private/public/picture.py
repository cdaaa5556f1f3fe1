"""Picture of a public prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.plot._canvas import PALETTE, panels
from fdadp.private.public.columns import HALF_WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.private.public.prior import PublicPrior

SHARE = np.linspace(0.0, 1.0, 101)
"""Of the domain, on which curves are drawn."""
X = np.linspace(-HALF_WIDTH, HALF_WIDTH, 101)
"""Standardised values, on which slices of surfaces are drawn."""
CURVES, PANELS, PANEL_SIZE = 12, 3, (3.6, 3.0)
COLOURS, WIDTH, ALPHA = PALETTE[:6], 0.9, 0.8
JITTER = 1e-8
"""Of the covariance's trace, so that it has a Cholesky factor."""


def picture(public: PublicPrior, ax: Any = None, n_curves: int = CURVES) -> Figure:
    """Curves X from a public prior, slices of surfaces F and mean responses that it holds for likely.

    Parameters
    ----------
    public : PublicPrior
    ax : array_like of three Axes, optional
    n_curves : int
        Curves drawn in each panel.

    Returns
    -------
    Figure
    """
    figure, axes = panels(PANELS, ax, size=PANEL_SIZE, columns=(PANELS,))
    rng = np.random.default_rng(public.seed)
    design = public.design(SHARE, SHARE)
    curves = public.x.curves(SHARE)
    chosen = curves[rng.choice(len(curves), min(n_curves, len(curves)), replace=False)]
    term: Any = design.only.term
    basis = term.over_x.basis.design(X)
    at_half = term.over_s.basis.design(np.array([0.5]))[0]
    covariance = public.surface.covariance(*term.shape)
    root = np.linalg.cholesky(covariance + JITTER * np.eye(len(covariance)) * np.trace(covariance) / len(covariance))
    surfaces = (root @ rng.normal(size=(len(root), n_curves))).T.reshape(n_curves, public.n_basis_x, public.n_basis_s)
    slices = np.einsum("al,klm,m->ka", basis, surfaces, at_half)
    responses = (rng.normal(size=(n_curves, design.response_shares.size)) * np.sqrt(design.response_shares)) @ (
        design.response.T
    )
    slices = slices - slices.mean(axis=1, keepdims=True)
    for axis, x, lines, label_x, label_y in (
        (axes[0], SHARE, chosen, "s, share of the domain", "X, in standard deviations"),
        (axes[1], X, slices, "x, in standard deviations", "F(x, s = 0.5), centred"),
        (axes[2], SHARE, responses, "t, share of the domain", "Y, relative"),
    ):
        for i, line in enumerate(lines):
            axis.plot(x, line, color=COLOURS[i % len(COLOURS)], linewidth=WIDTH, alpha=ALPHA)
        axis.set_xlabel(label_x)
        axis.set_ylabel(label_y)
    figure.suptitle(f"Public prior: {public.describe()}", fontsize="medium")
    return figure
