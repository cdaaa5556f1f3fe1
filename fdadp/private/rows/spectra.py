"""Looks at curves before a regression on them is planned: what share of their energy is rough.

A public prior fixes the functions that responses are described by. Where responses vary faster in t, more people do not
help: what is not described is not learned. So a small share of the budget is spent on seeing it first. A person's
contribution is shares of its own energy, of sum one, so that the sensitivity is 1 whatever the curves are
(docs/theory/dp-aff.md#spectra). The choice that follows is made of released values alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.private.plan.design import PrivateDesign
from fdadp.private.plan.plan import Plan
from fdadp.private.plan.sharing import replanned
from fdadp.private.public.prior import FURTHER, ROUGH_LENGTH

if TYPE_CHECKING:
    from fdadp.private.release.releases import Releases
    from fdadp.private.rows.rows import Block, RowFunctions

FEWEST = 8
"""Functions beyond those that are looked at, by which errors without any shape are told, at least."""
LEAST, SURE = 0.06, 2.75
"""Share of the energy, and sds of its noise, from which on responses count as rough."""
SHARES = (0.1, 0.6)
"""Of the prior's variance that go to rough functions, at least and at most."""
LEAST_SMOOTH, TINY = 0.1, 1e-300
EVEN = 1e-6
"""Of a step of a grid that counts as even."""


def shapeless(design: PrivateDesign) -> float | None:
    """Energy of errors without any shape in the functions looked at, over that in all further ones; None: no look.

    Such errors have the same energy in every function of an even grid.
    """
    points, left = design.unit_t.size, design.unit_t.size - design.response_shares.size - FURTHER
    uneven = points < 2 or np.abs(np.diff(design.unit_t) * (points - 1) - 1).max() > EVEN
    return None if left < FEWEST or uneven else FURTHER / left


def with_spectra(plan: Plan, design: PrivateDesign) -> Plan:
    """The plan with a look at responses where their grid carries one; its share is taken from all others alike."""
    if shapeless(design) is None:
        return plan
    share = plan.tuning.y_spectrum.share(plan.eta, pure=plan.pure)
    return replace(plan.scaled(1 - share), budget_shares=plan.scaled(1 - share).budget_shares | {"y spectrum": share})


class ResponseEnergies:
    """Row functions: where the energy of a response about the released mean is.

    Parameters
    ----------
    rows : RowFunctions
    """

    def __init__(self, rows: RowFunctions) -> None:
        design = rows.design
        self.rows, size = rows, design.response_shares.size
        self.mean = design.response @ rows.mean
        root = np.sqrt(rows.t_weights)[:, None]
        own = design.response * root
        waves = np.linalg.qr(np.cos(np.pi * np.outer(rows.unit_t, np.arange(size + FURTHER))) * root)[0]
        further = np.linalg.svd(waves - own @ (own.T @ waves))[0][:, :FURTHER]
        self._onto = np.ascontiguousarray(np.hstack((own, further)) * root)
        self._sums = np.repeat(np.eye(2), (size, FURTHER), axis=0)

    def shares(self, block: Block) -> FloatArray:
        """Shares in the response functions, in what these leave of as many waves and 16 more, and beyond; (m, 3).

        NaN of a response with gaps, and zeros of one that is the mean: they count as nothing.
        """
        y = self.rows.centred_y(block[-1]) - self.mean
        total = rowwise_matmul(y * y, self.rows.t_weights[:, None])
        within = rowwise_matmul(rowwise_matmul(y, self._onto) ** 2, self._sums)
        beyond = np.maximum(total - within[:, :1] - within[:, 1:], 0.0)
        energies = np.hstack((within, beyond))
        return np.asarray(energies / np.maximum(energies[:, :1] + energies[:, 1:2] + beyond, TINY))


def seen_response(
    releases: Releases, rows: RowFunctions, variance: FloatArray, energy: float
) -> tuple[Releases, FloatArray, float]:
    """Add rough response functions where the released energies say that responses need them.

    Parameters
    ----------
    releases : Releases
    rows : RowFunctions
        With the released mean; they get the new functions.
    variance : ndarray of shape (m,)
        Of the coefficients of the mean response.
    energy : float
        Squared scale of responses about it.

    Returns
    -------
    releases, variance, energy
        Of the functions that responses have then.
    """
    key, over = "y spectrum", shapeless(rows.design)
    if over is None and not rows.design.scalar:
        rows.notes.append(NO_LOOK)
    if over is None or not releases.affords(key):  # which plans say
        return releases, variance, energy
    masses, sd = releases.histogram(key, ResponseEnergies(rows).shares)
    smooth, further, beyond = masses / releases.plan.n
    noise, rough = sd / releases.plan.n, float(further - over * max(beyond, 0.0))
    if rough <= max(SURE * noise * math.hypot(1, over), LEAST):
        return releases, variance, energy
    old = rows.design
    design = _roughened(old, float(np.clip(rough, *SHARES)))
    onto = design.response.T @ (old.response * old.t_weights[:, None])
    rows.adopt(design, onto @ rows.mean)
    rows.notes.append(ROUGH.format(rough))
    plan = replanned(releases.plan, design, design.shares_of_pairs)
    return replace(releases, plan=plan), onto**2 @ variance, energy * (1 + rough / max(float(smooth), LEAST_SMOOTH))


def _roughened(design: PrivateDesign, rough: float) -> PrivateDesign:
    """The design with rough response functions, of this share of the prior's variance."""
    unit = design.unit_t
    functions, shares = design.prior.response_functions(unit, quadrature_weights(unit), rough=rough)
    return replace(design, response=functions, response_shares=shares)


NO_LOOK = (
    "no look at how rough responses are, which takes 32 evenly spaced points of t: what varies faster in t than the "
    "prior expects is learned in part"
)
ROUGH = (
    f"response functions of length {ROUGH_LENGTH} were added: of the released energy of responses {{:.0%}} is that "
    "rough, by effects or by errors that are alike over so short a stretch"
)
