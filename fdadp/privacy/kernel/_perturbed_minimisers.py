"""Minimisers of regularised losses, with noise on them or in their objective; proofs in ``_loss_minimisers``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import PrivacyError
from fdadp.privacy.account.epsilon_mu_rho import gaussian_multiplier, mu_from, replaced_multiplier
from fdadp.privacy.kernel._kernel import Kernel, Noisy, check_name
from fdadp.privacy.kernel._loss_minimisers import (
    GRADIENT_ERROR,
    SMALLEST_RIDGE,
    SOLUTION_ERROR,
    least_squares,
    logistic,
    steps_from_real,
)
from fdadp.privacy.noise.distributed import DistributedNoise
from fdadp.privacy.noise.sources import Sampler
from fdadp.privacy.rows._sealed_row_functions import RowFunction
from fdadp.privacy.rows._vault import Vault


class MinimumReleases:
    """Output and objective perturbation."""

    __slots__ = ()

    _kernel: Kernel

    def perturbed_minimum(
        self,
        f: RowFunction,
        *,
        loss: str,
        perturb: str = "output",
        ridge: float,
        share: float,
        name: str,
        clip: float = 1.0,
        target_clip: float | None = None,
        radius: float | None = None,
    ) -> Noisy:
        """Release a minimiser of ``Σ over persons of loss + (ridge/2) ‖θ‖²`` with noise on it, or in its objective.

        Parameters
        ----------
        f : callable
            Row-local; gives the pair (features (m, D), targets (m, K)). Columns of the targets are K problems on the
            same features. All coordinates are regularised: a constant feature is a column like any other.
        loss : {"squared", "logistic"}
            ``½ ‖θ'f - r‖²`` with ‖f‖ <= clip, ‖r‖ <= target_clip, over ‖θ‖_F <= radius; or
            ``Σ_k log(1 + exp(-t_k z'w_k))`` with ‖z‖ <= 1 and the signs of the targets as labels (0: left out).
        perturb : {"output", "objective"}
            Noise on the minimiser (any loss), or a random linear term in the objective (logistic only). The latter is
            accounted for in (ε, δ) by itself, so with a δ it takes a whole budget, and every row must be a person.
        ridge : float
            Λ above 0: public, of the **sum** of losses.
        share, name
            As in :meth:`sum`.
        clip, target_clip, radius : float
            Public or released; ``target_clip`` and ``radius`` for the squared loss only.

        Returns
        -------
        Noisy
            ``value`` (D, K). ``sd``: of the noise on each entry; with "objective" of each entry of the linear term.

        Raises
        ------
        PrivacyError
            From public validation: nothing was read or spent.

        Notes
        -----
        *Output.* Sensitivity in L2: clip (radius · clip + target_clip)/Λ (squared), √K/Λ (logistic), twice that
        where a person is replaced; times √(DK) in L1. Rounding of the solution and of its lattice is added to it.

        *Objective.* ε, δ are 99 % for the linear term b (see ``accounting.gaussian_multiplier``; pure:
        ‖b‖ ~ Gamma(D, 1/ε'), ε' = ε/K - log(1 + 1/(4Λ))) and 1 % for noise on the minimiser, which covers that it was
        computed in floating point and that b lies on a lattice: given the exact minimiser, what was computed differs
        from it by at most a public bound (``_loss_minimisers.steps_from_real``). Replace: ‖b‖ about doubled
        (``epsilon_mu_rho.replaced_multiplier``).
        """
        if isinstance(self._kernel.noise, DistributedNoise):
            raise PrivacyError(
                f"{name}: a minimiser is no sum, so all rows must be in one place, not with several owners"
            )
        if self._kernel.law.name != "mean":
            raise PrivacyError(f"{name}: person_rows must be 'mean' for a minimiser, got {self._kernel.law.name!r}")
        check_name(name)
        shapes = self._kernel.probe(f, name, 2)
        D, K = (math.prod(shape) for shape in shapes)
        if loss not in ("squared", "logistic") or perturb not in ("output", "objective"):
            raise PrivacyError(
                f"{name}: loss must be 'squared' or 'logistic' and perturb 'output' or 'objective', got {loss!r}, "
                f"{perturb!r}"
            )
        squared = loss == "squared"
        if squared and perturb == "objective":
            raise PrivacyError(f"{name}: perturb must be 'output' with the squared loss, got 'objective'")
        wanted = {"ridge": ridge, "clip": clip} | ({"target_clip": target_clip, "radius": radius} if squared else {})
        for key, number in wanted.items():
            if not isinstance(number, (int, float, np.number)) or not 1e-100 < number < 1e100:
                raise PrivacyError(f"{name}: {key} must be a finite number above 0, got {number!r}")
        if not squared and (clip != 1 or target_clip is not None or radius is not None):
            raise PrivacyError(f"{name}: the logistic loss takes features in the unit ball (clip 1, no other bounds)")
        if not squared and not SMALLEST_RIDGE <= ridge <= 1e9:
            raise PrivacyError(
                f"{name}: ridge must be from {SMALLEST_RIDGE} to 1e9 with the logistic loss, got {ridge:g}"
            )
        if squared and ridge > 1e9 * clip**2:
            raise PrivacyError(f"{name}: ridge must be at most 1e9 clip^2, got {ridge:g}")
        if perturb == "objective":
            return self._objective(f, shapes, float(ridge), share, name)
        both = 2.0 if self._kernel.adjacency == "replace" else 1.0
        if squared:
            assert target_clip is not None and radius is not None
            bound = clip * (radius * clip + target_clip) / ridge

            def solve(step: float) -> IntArray:
                given = {"clip": float(clip), "target_clip": float(target_clip), "radius": float(radius)}
                return least_squares(self._kernel.vault, f, shapes, ridge=float(ridge), step=step, **given)
        else:
            rows = self._rows_in_one_place(name)
            bound = math.sqrt(K) / ridge

            def solve(step: float) -> IntArray:
                return logistic(rows, f, shapes, ridge=float(ridge), linear=np.zeros((D, K)), step=step)

        # Both ends may be off by what their solvers say; a little more for rounding in these numbers.
        slack = both * (1 + 1e-9) + 2 * (SOLUTION_ERROR if squared else GRADIENT_ERROR)
        value, sampler, step = self._noisy_point(solve, D * K, bound, slack, share, name, float(clip))
        return Noisy(value.reshape(D, K), sampler.sd * step)

    def _rows_in_one_place(self, name: str) -> Vault:
        """The rows, which a search for a minimum goes through again and again in floating point."""
        if not isinstance(self._kernel.vault, Vault):
            raise PrivacyError(
                f"{name}: the minimum of a logistic loss is no sum over partitions, so the rows must be in one place, "
                "not on a cluster's workers; nothing was read"
            )
        return self._kernel.vault

    def _noisy_point(
        self,
        solve: Callable[[float], IntArray],
        size: int,
        unit: float,
        slack: float,
        share: float,
        name: str,
        clip: float,
    ) -> tuple[FloatArray, Sampler, float]:
        """Noise on a point that neighbouring data move by at most unit · slack in L2; charges the share."""
        amount = self._kernel.account.check(share)
        step = unit * 2.0**-24
        sampler, cost = self._point_noise(size, math.ceil(slack * 2.0**24), amount, name)
        self._kernel.charge(sampler, step, share, name, cost=cost, clip=clip, where=" on the minimiser")
        noisy = np.asarray(sampler(solve(step).ravel()), dtype=np.float64)
        return noisy * step, sampler, step

    def _point_noise(
        self, size: int, moves: int, amount: float, name: str, accounting: str | None = None
    ) -> tuple[Sampler, float]:
        """Noise on the lattice point nearest to one that moves by at most so many steps in L2, and its cost."""
        sensitivity = moves + math.ceil(math.sqrt(size))  # each end is rounded by √size/2
        if self._kernel.pure:
            return self._kernel.prepare("laplace", size, math.ceil(sensitivity * math.sqrt(size)), amount, name)
        return self._kernel.prepare("gaussian", size, sensitivity, amount, name, accounting=accounting)

    def _objective(self, f: RowFunction, shapes: list[tuple[int, ...]], ridge: float, share: float, name: str) -> Noisy:
        """Objective perturbation of K logistic problems; see :meth:`perturbed_minimum`."""
        D, K = (math.prod(shape) for shape in shapes)
        if self._kernel.vault.grouped:
            raise PrivacyError(
                f"{name}: perturb must be 'output' where a person may have several rows, as the proof for 'objective' "
                "needs one row a person"
            )
        rows = self._rows_in_one_place(name)
        amount = self._kernel.account.check(share)
        delta = self._kernel.budget.delta
        if delta is None:
            epsilon = 0.99 * amount / K - math.log1p(1 / (4 * ridge))
            if epsilon <= 0:
                raise PrivacyError(
                    f"{name}: ridge must be above {1 / (4 * math.expm1(0.99 * amount / K)):.3g} at this share of "
                    f"epsilon, got {ridge:g}"
                )
            kind, cost, extra = "spherical", epsilon, 0.01 * amount
        else:
            self._kernel.whole_budget(share, name, "objective perturbation")
            whole = self._kernel.budget.epsilon
            most = replaced_multiplier if self._kernel.adjacency == "replace" else gaussian_multiplier
            multiplier = most(0.99 * whole, 0.99 * delta, ridge, K)
            kind, cost, extra = "gaussian", multiplier**2 / 2, mu_from(0.01 * whole, 0.01 * delta) ** 2 / 2
        pure = self._kernel.pure
        both = 2.0 if self._kernel.adjacency == "replace" and pure else 1.0
        own = "pure" if pure else "gdp"  # whatever the budget's measure: these costs are not added to anything
        lattice = 2.0**-40
        linear = [self._kernel.prepare(kind, D, both / lattice, cost, name, accounting=own)[0] for _ in range(K)]
        # The point computed is at most this far from the exact minimiser for the real b, in each problem.
        away = (GRADIENT_ERROR + steps_from_real(kind, D) * lattice) / ridge
        step = away * 2.0**-12
        moves = math.ceil(2 * math.sqrt(K) * 2.0**12)
        point, _ = self._point_noise(D * K, moves, extra, name, own)
        self._kernel.charge(
            linear[0],
            lattice,
            share,
            name,
            cost=amount if pure else self._kernel.account.amount,
            clip=1.0,
            where=" in the objective",
            whole=not pure,
            spent=amount if pure else None,
        )
        b = np.stack([sampler(np.zeros(D, dtype=np.int64)) for sampler in linear], axis=1)
        w = logistic(rows, f, shapes, ridge=ridge, linear=b, unit=lattice, step=step)
        noisy = point(w.ravel()) * step
        return Noisy(noisy.reshape(D, K), linear[0].sd * lattice)
