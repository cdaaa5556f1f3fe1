"""From a private setting to a fitted additive model: validate, plan, spend, post-process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.functional.gaps import GAPS
from fdadp.privacy import Privacy
from fdadp.privacy.accounting import unit_noise
from fdadp.privacy.declared import check_delta
from fdadp.privacy.noise import Noise
from fdadp.private.advice import advise
from fdadp.private.as_fitted import as_fitted
from fdadp.private.counting import release_n
from fdadp.private.ranges import Range
from fdadp.private.rows import Rows

if TYPE_CHECKING:
    from fdadp.private.mechanisms import EndToEnd
    from fdadp.private.moments import NoisyMoments
    from fdadp.solve.fitted import Fitted
    from fdadp.terms.base import Unfixed

__all__ = ["Released", "fit_private"]


class Released(NamedTuple):
    """What a private fit gives back.

    Attributes
    ----------
    fitted : Fitted
    statistic : NoisyMoments or None
        The released moments, where the mechanism has them.
    warned : tuple of str
        What is surely wrong with the public ranges or n. To be warned of when the fit is kept: where warnings are
        errors, the ledger must be there.
    """

    fitted: Fitted
    statistic: NoisyMoments | None
    warned: tuple[str, ...]


def _describe(grid: FloatArray) -> str:
    return f"{grid.size} points on [{grid[0]:g}, {grid[-1]:g}]"


def fit_private(
    model: Any,
    data: Any,
    groups: Any,
    s: FloatArray,
    t: FloatArray,
    privacy: Privacy,
    mechanism: EndToEnd,
    bounds: Mapping[str, Range],
    *,
    term: Unfixed | None = None,
    missing: str = "linear",
    noise: Noise | None = None,
) -> Released:
    """Fit a model privately. The first read of the curves comes after all validation.

    Parameters
    ----------
    model : estimator
        That is fitted; only known to be counted (:mod:`fdadp.privacy._seen`).
    data : (X, Y), or PrivateChunks
        Curves as they are (:mod:`fdadp.private.inputs`), or chunks of them.
    groups : sequence of ids (n,), or True, optional
        Person of each row, as a :class:`~fdadp.privacy.Cohort` takes them.
    s, t : ndarray
        Grids of X and Y.
    privacy : Privacy
    mechanism : EndToEnd
    bounds : mapping
        Public ranges of X and Y.
    term : Unfixed, optional
        What X contributes; default the additive term.
    missing : {"linear", "smooth"}
        How gaps of X are filled, each within its row.
    noise : Noise, optional
        Instead of the source that `privacy` stands for. For audits: the ledger then says "not for release".
    """
    prior = mechanism.public_prior
    cohort = privacy.cohort(
        data,
        groups=groups,
        mechanism=mechanism.name,
        noise=noise,
        estimator=model,
        public={
            "bounds of X": bounds["X"],
            "bounds of Y": bounds["Y"],
            "grid of X": _describe(s),
            "grid of Y": _describe(t),
            "prior": prior.describe(),
            "gaps of X": GAPS[missing] + ", within each row",
            "gaps of Y": "a row counts where it was observed",
        },
    )
    with one_blas_thread():
        design = prior.design(s, t, term, bounds=bounds["X"], missing=missing)
    rows = Rows(design, bounds["Y"])
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    with cohort.refusing():
        check_delta(privacy.delta, n)
        mechanism.check_n(privacy, n)
    plan = mechanism.plan(n, unit_noise(cohort, left), design, pure=cohort.pure).scaled(left)
    with one_blas_thread():
        found, statistic = mechanism.spend(cohort, plan, design, rows)
        fitted = as_fitted(found, design, plan)
    warned, notes = advise(found, plan, rows, fitted.residual.r2)
    ledger = cohort.ledger
    guarantee = replace(privacy) if ledger.private else None
    return Released(replace(fitted, notes=warned + notes, ledger=ledger, privacy=guarantee), statistic, warned)
