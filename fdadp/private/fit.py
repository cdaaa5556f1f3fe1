"""From a private setting to a fitted additive model: validate, plan, spend, post-process."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.threads import one_blas_thread
from fdadp._common.typing import FloatArray
from fdadp.errors import PublicInputWarning
from fdadp.functional.fpca import Eigenbasis
from fdadp.functional.gaps import GAPS
from fdadp.functional.margins import Margin
from fdadp.privacy import Privacy
from fdadp.privacy.accounting import noise_multiplier
from fdadp.privacy.declared import check_delta
from fdadp.privacy.noise import Noise
from fdadp.private.advice import advise
from fdadp.private.counting import release_n
from fdadp.private.intervals import PrivateFit
from fdadp.private.plan import Plan
from fdadp.private.prior import HALF_WIDTH, WhiteDesign
from fdadp.private.ranges import Range
from fdadp.private.rows import Rows
from fdadp.responses.functional import FunctionalResponse
from fdadp.solve.fitted import Fitted, Residual
from fdadp.terms.additive import AdditiveTerm

if TYPE_CHECKING:
    from fdadp.private.mechanisms import EndToEnd
    from fdadp.regression.additive import AdditiveFunctionOnFunction

__all__ = ["fit_private"]


def _describe(grid: FloatArray) -> str:
    return f"{grid.size} points on [{grid[0]:g}, {grid[-1]:g}]"


def fit_private(
    model: AdditiveFunctionOnFunction,
    data: Any,
    groups: Any,
    s: FloatArray,
    t: FloatArray,
    privacy: Privacy,
    mechanism: EndToEnd,
    bounds: Mapping[str, Range],
    *,
    missing: str = "linear",
    noise: Noise | None = None,
) -> None:
    """Fit a model privately, in place. The first read of the curves comes after all validation.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction
    data : (X, Y), or PrivateChunks
        Curves as they are (:mod:`fdadp.private.curves`), or chunks of them.
    groups : sequence of ids (n,), or True, optional
        Person of each row, as a :class:`~fdadp.privacy.Cohort` takes them.
    s, t : ndarray
        Grids of X and Y.
    privacy : Privacy
    mechanism : EndToEnd
    bounds : mapping
        Public ranges of X and Y.
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
        design = prior.design(s, t)
    rows = Rows(design, bounds["X"], bounds["Y"], missing)
    n, left = (float(privacy.n), 1.0) if privacy.n is not None else release_n(cohort)
    with cohort.refusing():
        check_delta(privacy.delta, n)
        mechanism.check_n(privacy, n)
    multiplier = noise_multiplier(cohort.amount * left, privacy.stated_adjacency, pure=cohort.pure) * cohort.inflation
    plan = mechanism.plan(n, multiplier, design, pure=cohort.pure).scaled(left)
    with one_blas_thread():
        fitted, statistic = mechanism.spend(cohort, plan, design, rows)
        _keep(model, fitted, design, plan)
    warned, notes = advise(fitted, plan, rows, design, model.r2_)
    ledger = cohort.ledger
    guarantee = replace(privacy) if ledger.private else None
    model._adopt(replace(model._fitted, notes=warned + notes, ledger=ledger, privacy=guarantee, plan=plan))
    model.moments_ = statistic
    for text in warned:  # at the end: where warnings are errors the ledger is there
        warnings.warn(text, PublicInputWarning, stacklevel=4)


def _keep(model: AdditiveFunctionOnFunction, fit: PrivateFit, design: WhiteDesign, plan: Plan) -> None:
    """Hand the model a private fit as a non-private one is: splines in units of X, eigenfunctions of Y."""
    prior, s = design.prior, design.s
    length = s[-1] - s[0]  # the private quadrature weights sum to one
    low, high = fit.location - HALF_WIDTH * fit.scale, fit.location + HALF_WIDTH * fit.scale
    term = AdditiveTerm(
        Margin.pspline(low, high, prior.n_basis_x, margin=0.0),
        Margin.pspline(s[0], s[-1], prior.n_basis_s, margin=0.0),
        s,
        (low, high),
        model.quadrature,
        continuation="constant",
        mean_x_basis=design.mean_x_basis,
    )
    k, d = plan.n_outputs, plan.n_features
    whitening = design.whitening[:, : d - 1]
    # Eigenfunctions of Y after the fact: of the explained covariance and the residual one.
    explained = fit.regression.coefficients.T @ fit.regression.second_moment @ fit.regression.coefficients
    explained -= np.outer(fit.regression.coefficients[0], fit.regression.coefficients[0])
    values, axes = np.linalg.eigh(explained + fit.residual_covariance)
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    functions = (design.response[:, :k] @ axes).T
    signs = np.where(functions[np.arange(k), np.abs(functions).argmax(axis=1)] < 0, -1.0, 1.0)
    functions, axes = functions * signs[:, None], axes * signs
    t_length = design.t[-1] - design.t[0]
    total = values.sum() + fit.left_over
    mean = fit.y_location + design.response @ fit.mean + design.response[:, :k] @ fit.regression.coefficients[0]
    basis = Eigenbasis(
        grid=design.t,
        weights=design.t_weights * t_length,
        mean=mean,
        functions=functions / math.sqrt(t_length),
        values=values * t_length,
        noise_variance=fit.left_over,
        explained_ratio=values / total,
    )
    raw = (whitening / length @ fit.regression.coefficients[1:]) @ axes * math.sqrt(t_length)  # (p, K)
    to_values = np.kron(np.linalg.inv(term.x.to_raw), np.linalg.inv(term.s.to_raw))
    values_of_surface = (to_values @ raw).T.reshape((k, prior.n_basis_x, prior.n_basis_s))
    unexplained = float(np.trace(fit.residual_covariance)) + fit.left_over
    model._adopt(
        Fitted(
            terms=(term,),
            coefficients=(term.centred(values_of_surface, design.s_weights),),
            feature_mean=design.centre * length,
            rotation=whitening / length,
            covariance=fit.regression.covariance,
            unit_variance=np.ones(k),
            # Intervals: on the response functions, in which the posterior covariances are.
            response=FunctionalResponse(basis, design.response[:, :k].T.copy()),
            residual=Residual(
                fit.residual_variance,
                fit.left_over,
                design.response**2 @ fit.regression.mean_variance,
                1 - unexplained / max(float(np.trace(explained)) + unexplained, 1e-300),
                *fit.calibration,
            ),
            edf=(axes**2).T @ fit.regression.edf,
            smoothing_parameters=np.full((k, 2), np.nan),
            criterion=np.full(k, np.nan),
            n=round(plan.n),
            limited=True,
        )
    )
