"""Picture of a public prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.plot._canvas import PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.private.prior import PublicPrior

__all__ = ["picture"]


def picture(public: PublicPrior, ax: Any = None, n_curves: int = 12) -> Figure:
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
    figure, axes = panels(3, ax, size=(3.6, 3.0), columns=(3,))
    grid = np.linspace(0, 1, 101)
    rng = np.random.default_rng(public.seed)
    design = public.design(grid, grid)
    curves = public.x.curves(grid)
    chosen = curves[rng.choice(len(curves), min(n_curves, len(curves)), replace=False)]
    term: Any = design.whitened.term
    basis = term.x.basis.design(np.linspace(-4, 4, 101))
    at_half = term.s.basis.design(np.array([0.5]))[0]
    covariance = term.prior_covariance(public)
    root = np.linalg.cholesky(covariance + 1e-8 * np.eye(len(covariance)) * np.trace(covariance) / len(covariance))
    surfaces = (root @ rng.normal(size=(len(root), n_curves))).T.reshape(n_curves, public.n_basis_x, public.n_basis_s)
    slices = np.einsum("al,klm,m->ka", basis, surfaces, at_half)
    responses = (rng.normal(size=(n_curves, design.response_shares.size)) * np.sqrt(design.response_shares)) @ (
        design.response.T
    )
    slices = slices - slices.mean(axis=1, keepdims=True)
    for axis, x, lines, label_x, label_y in (
        (axes[0], grid, chosen, "s, share of the domain", "X, in standard deviations"),
        (axes[1], np.linspace(-4, 4, 101), slices, "x, in standard deviations", "F(x, s = 0.5), centred"),
        (axes[2], grid, responses, "t, share of the domain", "Y, relative"),
    ):
        for i, line in enumerate(lines):
            axis.plot(x, line, color=PALETTE[i % 6], linewidth=0.9, alpha=0.8)
        axis.set_xlabel(label_x)
        axis.set_ylabel(label_y)
    figure.suptitle(f"Public prior: {public.describe()}", fontsize="medium")
    return figure
