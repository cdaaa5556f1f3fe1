"""Looks at curves before a regression on them is planned: what share of their energy is rough.

A public prior fixes the functions that responses and effects are described by. Where they vary faster, more people do
not help: what is not described is not learned. So small shares of the budget are spent on seeing it first. A person's
contribution is shares of its own energy, of sum one, so that the sensitivity is 1 whatever the curves are
(docs/theory/dp-aff.md#spectra). The choices that follow are made of released values alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.functional.quadrature import quadrature_weights
from fdadp.privacy import rowwise_matmul
from fdadp.private.plan.budget_plan import Plan
from fdadp.private.plan.budget_sharing import replanned
from fdadp.private.plan.private_design import PrivateDesign, curves_column
from fdadp.private.public.column_ranges import CurvesColumn, unit_grid
from fdadp.private.public.gaussian_process_prior import FURTHER, ROUGH_LENGTH
from fdadp.private.whitened.of_additive_surfaces import WhiteSurface
from fdadp.rounds.posterior_means import gain

if TYPE_CHECKING:
    from fdadp.private.release.planned_releases import Releases
    from fdadp.private.rows.row_functions import Block, RowFunctions

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
    left = design.unit_t.size - design.response_shares.size - FURTHER
    return FURTHER / left if left >= FEWEST and even(design.unit_t) else None


def with_spectra(plan: Plan, design: PrivateDesign) -> Plan:
    """The plan with looks at what grids carry; their shares are taken from all others alike."""
    tuning, shares = plan.tuning, {}
    if spectral(design):
        shares["x spectrum"] = tuning.x_spectrum.share(plan.eta, pure=plan.pure)
    if shapeless(design) is not None:
        shares["y spectrum"] = tuning.y_spectrum.share(plan.eta, pure=plan.pure)
    return plan.beside(shares)


def even(unit: FloatArray) -> bool:
    """Whether steps of a grid on [0, 1] are equal."""
    return unit.size > 1 and float(np.abs(np.diff(unit) * (unit.size - 1) - 1).max()) <= EVEN


# X: what share of its energy is at which frequency. Only rough curves can tell effects of short stretches apart.


BANDS = (0, 1, 2, 3, 5, 9, 17)
"""Cosines at which bands of frequencies begin."""
COSINES, ROUGH_BANDS, ROUGH_FROM = 32, 3, 0.25
"""Cosines that are looked at; bands, of the highest frequencies, that count as rough; the share of these from which on
the prior follows what was released."""
PRIOR_SD, LEAST_SD = 0.15, 0.02
"""Sd of a share about the prior's, at most and at least."""
STEPS, POWER = 30, 0.7
"""Of the search for how much curves of the prior are to have in each band."""
FINE, FINE_BASIS = 0.3, 16
"""Share of fine surfaces, and splines over s, where curves are rough."""


def spectral(design: PrivateDesign) -> bool:
    """Whether curves can be looked at: one surface, of one column on an even grid, without curves known in public."""
    term, column = design.groups.terms[0], design.columns[0]
    several = len(design.groups.terms) + len(design.columns) > 2
    if several or design.prior.pilot is not None or not isinstance(term, WhiteSurface):
        return False
    return isinstance(column, CurvesColumn) and column.grid.size >= COSINES and even(unit_grid(column.grid))


class CurveEnergies:
    """Energies of standardised curves in bands of frequencies.

    Parameters
    ----------
    column : CurvesColumn
        As it was located.
    """

    def __init__(self, column: CurvesColumn) -> None:
        self.column, self.unit = column, unit_grid(column.grid)
        unit = self.unit
        root = np.sqrt(quadrature_weights(unit))[:, None]
        waves = np.linalg.qr(np.cos(np.pi * np.outer(unit, np.arange(COSINES))) * root)[0]
        self.waves, self._onto = waves / root, np.ascontiguousarray(waves * root)
        self.of = np.searchsorted(BANDS, np.arange(COSINES), side="right") - 1
        self._sums = np.ascontiguousarray((self.of[:, None] == np.arange(len(BANDS))) * 1.0)

    def shares(self, block: Block) -> FloatArray:
        """Row function: what :meth:`of_curves` says of a row; NaN, which counts as nothing, of one never observed."""
        curves, never = self.column.seen(block[self.column.at])
        found = self.of_curves(curves.values)
        found[never] = np.nan
        return found

    def of_curves(self, curves: FloatArray) -> FloatArray:
        """Share of each band in the energy of each curve, shape (m, B); zeros of one that is zero."""
        energies = rowwise_matmul(rowwise_matmul(np.ascontiguousarray(curves), self._onto) ** 2, self._sums)
        total = rowwise_matmul(energies, np.ones((len(BANDS), 1)))
        return np.asarray(energies / np.maximum(total, TINY))

    def tilted(self, curves: FloatArray, wanted: FloatArray) -> FloatArray:
        """Curves (n, S) with these mean shares in the bands, by factors of the bands; of standard deviation one."""
        found, factor = curves @ self._onto, np.ones(len(BANDS))
        for _ in range(STEPS):
            made = (found * np.sqrt(factor)[self.of]) @ self.waves.T
            factor *= (wanted / self.of_curves(made).mean(axis=0)) ** POWER
        made = (found * np.sqrt(factor)[self.of]) @ self.waves.T
        return np.asarray(made / made.std())


def seen_curves(releases: Releases, rows: RowFunctions) -> Releases:
    """Whiten anew, for effects of short stretches of s too, where the released energies say that curves are rough."""
    if not spectral(rows.design):
        if rows.design.prior.pilot is None and isinstance(rows.design.groups.terms[0], WhiteSurface):
            rows.notes.append(NO_LOOK_AT_X.format(COSINES))
        return releases
    if not releases.affords("x spectrum"):  # which plans say
        return releases
    (column,) = (own for own in rows.columns.values() if isinstance(own, CurvesColumn))
    energies, n = CurveEnergies(column), releases.plan.n
    masses, sd = releases.histogram("x spectrum", energies.shares, of=column.name)
    curves = rows.design.prior.x.curves(energies.unit)
    before = energies.of_curves(curves).mean(axis=0)
    spread = np.clip(before, LEAST_SD, PRIOR_SD) ** 2
    wanted = before + gain(spread, (sd / n) ** 2) * (masses / n - before)
    wanted = np.maximum(wanted, LEAST_SMOOTH * before)
    wanted /= wanted.sum()
    rough = float(wanted[-ROUGH_BANDS:].sum())
    if rough <= ROUGH_FROM:
        return releases
    old = rows.design
    basis = max(old.prior.n_basis_s, FINE_BASIS)
    prior = replace(old.prior, pilot=energies.tilted(curves, wanted), n_basis_s=basis, fine=FINE)
    guessed = curves_column(prior, column.name, column.at, column.grid, column.bounds, column.missing)
    term = WhiteSurface.on(old.groups.terms[0].name, column.name, column.grid, prior)
    design = PrivateDesign.of(prior, [guessed], [term], None if old.scalar else old.t)
    size = column.scale * column.geometric_scale
    rows.columns[column.name] = guessed.placed(column.location, size / guessed.geometric_scale)
    rows.adopt(design, rows.mean)
    rows.notes.append(ROUGH_CURVES.format(column.name, rough))
    return replace(releases, plan=replanned(releases.plan, design))


# Y: what its functions leave.


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
        rows.notes.append(NO_LOOK.format(rows.design.response_shares.size + FURTHER + FEWEST))
    if over is None or not releases.affords(key):  # which plans say
        return releases, variance, energy
    masses, sd = releases.histogram(key, ResponseEnergies(rows).shares)
    smooth, further, beyond = masses / releases.plan.n
    noise, rough = sd / releases.plan.n, float(further - over * max(beyond, 0.0))
    if rough <= max(SURE * noise * math.hypot(1, over), LEAST):
        return releases, variance, energy
    old, weights = rows.design, quadrature_weights(rows.design.unit_t)
    functions, shares = old.prior.response_functions(old.unit_t, weights, rough=float(np.clip(rough, *SHARES)))
    design = replace(old, response=functions, response_shares=shares)
    onto = design.response.T @ (old.response * old.t_weights[:, None])
    rows.adopt(design, onto @ rows.mean)
    rows.notes.append(ROUGH.format(rough))
    plan = replanned(releases.plan, design)
    return replace(releases, plan=plan), onto**2 @ variance, energy * (1 + rough / max(float(smooth), LEAST_SMOOTH))


NO_LOOK = (
    "no look at how rough responses are, which takes {} evenly spaced points of t: what varies faster in t than the "
    "prior expects is learned in part"
)
NO_LOOK_AT_X = (
    "no look at how rough curves are, which takes one surface alone, of curves on {} evenly spaced points or more: "
    "effects of a short stretch of s are learned in part"
)
ROUGH_CURVES = (
    "{} is rough: {:.0%} of its released energy is at the fifth frequency or above; effects of a short stretch were "
    "given a share of what is expected"
)
ROUGH = (
    f"response functions of length {ROUGH_LENGTH} were added: of the released energy of responses {{:.0%}} is that "
    "rough, by effects or by errors that are alike over so short a stretch"
)
