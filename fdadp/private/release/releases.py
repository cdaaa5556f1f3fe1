"""The releases of a private fit, made as planned: budget, name and clipping in one call."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.privacy import Cohort
from fdadp.privacy.clipped import ReleasedShares, release_shares
from fdadp.privacy.rows._local import RowFunction
from fdadp.private.plan.plan import Plan
from fdadp.private.rows.rows import RowFunctions

TOGETHER = 2.0
"""Clip of the sum of a person's gradients over that of one row, per square root of the rows."""


def rows_together(max_rows: int) -> float:
    """Clip of a sum of a person's gradients over that of one row: rows have signs, and seldom all the same."""
    return 1.0 if max_rows == 1 else min(float(max_rows), TOGETHER * math.sqrt(max_rows))


@dataclass(frozen=True)
class Releases:
    """A cohort with a plan of what to ask it: each release has its share of the budget and its name from there.

    Where the rows of persons are added up, sums are per person of the released mean number of rows: over `plan.n` they
    are means over rows. A row adds at most what a clip says, and a person `plan.max_rows` times that.

    Where a method takes a `share`, it is that of the plan unless it is given; `of` is the column that is looked at.

    Parameters
    ----------
    cohort : Cohort
    plan : Plan
    """

    cohort: Cohort
    plan: Plan

    def affords(self, key: str) -> bool:
        """Whether the plan has a share for a release."""
        return bool(self.plan.budget_shares.get(key))

    def derive(self, rows: RowFunctions) -> Releases:
        """Ask further about features and residuals, which are computed now and kept inside the cohort."""
        return Releases(self.cohort.derive(rows.derived, name="features and response coefficients"), self.plan)

    def size(
        self,
        key: str,
        f: RowFunction,
        between: tuple[float, float],
        *,
        share: float | None = None,
        number: str = "",
        of: str | None = None,
    ) -> tuple[float, float]:
        """Geometric mean of a size that is looked for in a range, and the sd of the noise in its logarithm."""
        share = self.plan.budget_shares[key] if share is None else share
        return self.cohort.geometric_mean(
            f, *between, share=share, name=self.plan.name(key, of) + number, n=self.plan.n * self.plan.rows
        )

    def sum(
        self,
        key: str,
        f: RowFunction,
        *,
        clip: float,
        size: int = 1,
        share: float | None = None,
        of: str | None = None,
    ) -> tuple[FloatArray, float]:
        """Sum over persons of a clipped vector, and the sd of the noise in each entry."""
        share = self.plan.budget_shares[key] if share is None else share
        most = clip * self.plan.max_rows
        total, sd = self.cohort.sum(f, clip=most, size=size, share=share, name=self.plan.name(key, of))
        return np.asarray(total) / self.plan.rows, float(sd) / self.plan.rows

    def mean(
        self,
        key: str,
        f: RowFunction,
        *,
        clip: float,
        size: int = 1,
        share: float | None = None,
        of: str | None = None,
    ) -> tuple[FloatArray, float]:
        """Mean over persons of a clipped vector, and the sd of the noise in each entry."""
        total, sd = self.sum(key, f, clip=clip, size=size, share=share, of=of)
        return total / self.plan.n, sd / self.plan.n

    def sum_outer(
        self, key: str, f: RowFunction, *, weights: FloatArray | None = None, clip: float, number: str
    ) -> tuple[FloatArray, float]:
        """Sum over persons of clipped ``weights * outer(f)``, and the sd of the noise in each entry.

        In pure ε clipped in the nuclear norm, without weights.
        """
        share, name = self.plan.budget_shares[key], self.plan.name(key) + number
        norm = "nuclear" if self.plan.pure else None  # of which each row is clipped, else the sum of a person's rows
        most = clip if self.plan.pure else clip * rows_together(self.plan.max_rows)
        total, sd = self.cohort.sum_outer(f, weights=weights, norm=norm, clip=most, share=share, name=name)
        return np.asarray(total) / self.plan.rows, float(sd) / self.plan.rows

    def second_moment(
        self, key: str, f: RowFunction, *, clip: float, share: float | None = None
    ) -> tuple[FloatArray, float]:
        """Mean over persons of f f', clipped, and the sd of the noise on its diagonal."""
        share = self.plan.budget_shares[key] if share is None else share
        most = clip if self.plan.pure else clip * self.plan.max_rows
        total, sd = self.cohort.second_moment(f, clip=most, share=share, name=self.plan.name(key))
        n = self.plan.n * self.plan.rows
        return np.asarray(total / n), float(sd / n)

    def shares(self, key: str, f: RowFunction, *, size: int) -> ReleasedShares:
        """Means over persons of `size` quantities in [0, 1]."""
        n = self.plan.n * self.plan.rows
        return release_shares(
            self.cohort, f, n=n, share=self.plan.budget_shares[key], name=self.plan.name(key), size=size
        )

    def histogram(self, key: str, f: RowFunction) -> tuple[FloatArray, float]:
        """Number of persons in each bin, and the sd of the noise in it."""
        masses, sd = self.cohort.histogram(f, share=self.plan.budget_shares[key], name=self.plan.name(key))
        return np.asarray(masses) / self.plan.rows, float(sd) / self.plan.rows
