"""The published scheme applied to a fitted additive model: leave-one-out sensitivities, then Laplace noise.

This reads the training curves once more, and un-noised, which is one of the reasons why the result is not private.

The literature adds Laplace(Δ_k/ε) to each coefficient of component k and calls the sum of the ε its guarantee.
Three things break it end to end: Δ_k is computed from the data (so the noise itself tells about them), and
the mean curve, the eigenbasis and the smoothing parameters are used without noise.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fdadp._common.argument_checks import is_one_of, one_of
from fdadp._common.typing import CurveData, FloatArray, IntArray
from fdadp._version import __version__
from fdadp.errors import InputError, NotPrivateWarning, PrivacyError
from fdadp.functional.tables.curve_inputs import as_curves
from fdadp.functional.tables.row_and_grid_labels import same_rows
from fdadp.privacy.account._reservations import Release
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.settings import Privacy
from fdadp.private.release.mechanisms import NoiseAfterFit, Pass
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.additive.ordinary_fit import curve_pairs
from fdadp.solve.eigen.surface_fit import SurfaceFit

WARNING = "mechanism 'published' is not differentially private end to end; see ledger_"


@dataclass(frozen=True)
class Sensitivities:
    """Largest change of each component's coefficients when one person is left out.

    Attributes
    ----------
    l1, largest : ndarray of shape (K,)
        In L1 norm, and of a single coefficient.
    n : int
        Number of persons.
    """

    l1: FloatArray
    largest: FloatArray
    n: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedNoise(NoiseAfterFit):
    """Laplace noise on the fitted coefficients, as published; **not** differentially private, as the ledger says.

    Eigenbasis, mean and smoothing parameters are taken from the data without noise, and so is the size of the noise.
    Of the guarantee `epsilon` (of each component) and `random_state` are used.

    Parameters
    ----------
    sensitivity : {"local", "coefficient", "scaled"}
        Reading of Δ_k. ``"local"`` is the largest L1 change of Θ_k when one person is left out, ``"coefficient"`` the
        largest change of a single coefficient. ``"scaled"`` is the latter divided by n, the reading that reproduces the
        published pattern of results.

    Raises
    ------
    PrivacyError
        Another reading.

    Examples
    --------
    >>> from fdadp import AdditiveFunctionOnFunction, Privacy
    >>> model = AdditiveFunctionOnFunction(privacy=Privacy(1.0), mechanism=PublishedNoise(sensitivity="scaled"))
    """

    sensitivity: str = "local"

    name: ClassVar[str] = "published"

    def __post_init__(self) -> None:
        if self.sensitivity is None or not is_one_of(self.sensitivity, SENSITIVITIES):
            raise PrivacyError(f"sensitivity must be one of {', '.join(SENSITIVITIES)}, got {self.sensitivity!r}")

    def perturb(self, found: SurfaceFit, read: Pass, privacy: Privacy, persons: IntArray | None = None) -> SurfaceFit:
        """Add the noise to the coefficients of a fit, and the ledger that says what it is worth."""
        noisy = _with_noise(found, leave_one_out(found, read, persons), privacy, self.sensitivity)
        warnings.warn(WARNING, NotPrivateWarning, stacklevel=4)
        return noisy


INTERVALS = ("honest", "published")


def published_draws(
    model: AdditiveFunctionOnFunction,
    X: CurveData,
    Y: CurveData,
    settings: Iterable[tuple[Privacy, PublishedNoise]],
    *,
    intervals: str = "honest",
) -> Iterator[AdditiveFunctionOnFunction]:
    """Draw the published scheme many times around one fit, which is what simulations of it need.

    Each draw is what ``AdditiveFunctionOnFunction(privacy=, mechanism=).fit(X, Y)`` gives, without fitting again.

    Parameters
    ----------
    model : AdditiveFunctionOnFunction
        Fitted to `X` and `Y` without privacy. It is left as it is.
    X, Y : FDataGrid, DataFrame or array_like of shape (n, S) and (n, T)
        The training curves, complete; each is taken for a person.
    settings : iterable of (Privacy, PublishedNoise)
        One draw each.
    intervals : {"honest", "published"}
        What prediction intervals know: ``"honest"``, also of the noise, so that they widen with it and keep their
        coverage; ``"published"``, only what they knew before it, as in the literature, where coverage therefore rises
        with ε.

    Yields
    ------
    AdditiveFunctionOnFunction
        **Not** differentially private, as its ``ledger_`` says.

    Raises
    ------
    InputError
        A model that holds noise already, another mechanism, or other intervals.
    """
    one_of(intervals, "intervals", INTERVALS)
    if model.privacy is not None:
        raise InputError(f"model must be fitted without privacy, got privacy={model.privacy!r}")
    x, y = as_curves(X, name="X", default=model.s_), as_curves(Y, name="Y", default=model.t_)
    same_rows(X=x, Y=y)
    found = model.fitted_.surface
    sensitivities = leave_one_out(found, curve_pairs([(x, y)], progress=False).read)
    warnings.warn(WARNING, NotPrivateWarning, stacklevel=2)
    for privacy, mechanism in settings:
        if not isinstance(mechanism, PublishedNoise):
            raise InputError(f"settings must have a PublishedNoise as mechanism, got {mechanism!r}")
        noisy = _with_noise(found, sensitivities, privacy, mechanism.sensitivity)
        draw = copy.copy(model)
        draw.privacy, draw.mechanism = privacy, mechanism
        draw._keep(model.fitted_.with_surface(noisy, fitted_with={"privacy": privacy, "mechanism": mechanism}))
        yield draw if intervals == "honest" else with_intervals_of(draw, model)


def with_intervals_of(
    draw: AdditiveFunctionOnFunction, model: AdditiveFunctionOnFunction
) -> AdditiveFunctionOnFunction:
    """Return the draw with the intervals that the model had before the noise: too narrow by what the noise does."""
    blind = copy.copy(draw)
    own, before = draw.fitted_.surface, model.fitted_.surface.fit
    fit = replace(own.fit, spread=before.spread, sigma2=before.sigma2)
    return blind._keep(draw.fitted_.with_surface(replace(own, fit=fit)))


def _with_noise(found: SurfaceFit, sensitivities: Sensitivities, privacy: Privacy, sensitivity: str) -> SurfaceFit:
    flat = found.values.reshape(len(found.values), -1)
    noisy, scales, ledger = perturb_coefficients(
        flat, sensitivities.l1, sensitivities.largest, sensitivities.n, privacy, sensitivity
    )
    return replace(found.with_values(noisy.reshape(found.values.shape), 2 * scales**2), ledger=ledger)


def leave_one_out(found: SurfaceFit, read: Pass, persons: IntArray | None = None) -> Sensitivities:
    """Largest change of each component's coefficients when one person is left out.

    Basis, mean curve and smoothing parameters stay as they are. With Z the centred features of a person and r the
    residuals, the change is ``A⁻¹ Z' (I - H)⁻¹ r``, ``H = 1/n + Z A⁻¹ Z'``: exact, no refitting.
    """
    term, basis, held = found.term, found.basis, found.by_function
    rotation = np.kron(term.over_x.rotation, term.over_s.rotation)[:, term.kept]
    inverses = held.blocks[:, 1:, 1:] if found.inverses is None else found.inverses
    parts = [
        (term.trained(x)[0][:, term.kept] - held.centre, (y.values - basis.mean) @ basis.projection)
        for x, y in read("leave-one-out")
    ]
    z, scores = np.vstack([a for a, _ in parts]), np.vstack([b for _, b in parts])
    residuals, n = scores - z @ found.slopes, len(z)
    l1, largest = np.zeros(len(inverses)), np.zeros(len(inverses))
    order = np.arange(n) if persons is None else np.argsort(persons, kind="stable")
    cuts = np.arange(1, n) if persons is None else np.flatnonzero(np.diff(persons[order])) + 1
    for k, inverse in enumerate(inverses):
        pull = z @ inverse  # (n, p)
        if persons is None:
            leverage = 1 / n + np.einsum("ij,ij->i", pull, z)
            if (leverage >= 1 - 1e-9).any():
                raise InputError(
                    "the model interpolates a curve, so leaving it out has no limit: use fewer basis functions"
                )
            changes = pull * (residuals[:, k] / (1 - leverage))[:, None]
        else:
            changes = np.stack(
                [
                    pull[rows].T
                    @ np.linalg.solve(np.eye(len(rows)) - 1 / n - pull[rows] @ z[rows].T, residuals[rows, k])
                    for rows in np.split(order, cuts)
                ]
            )
        values = np.abs(changes @ rotation.T)
        l1[k], largest[k] = values.sum(axis=1).max(), values.max()
    return Sensitivities(l1, largest, len(cuts) + 1)


SENSITIVITIES = ("local", "coefficient", "scaled")
"""Readings of Δ_k."""

STATEMENT = (
    "This is the published scheme, offered for comparison. Its noise protects the coefficients only against an "
    "observer who knows neither the noise scales nor the un-noised parts listed below; both depend on the data. "
    "A person's presence can be inferred from the output with more confidence than the claimed epsilon allows. "
    "Do not release this model as differentially private."
)


def perturb_coefficients(
    coefficients: FloatArray,
    l1_changes: FloatArray,
    largest_changes: FloatArray,
    n: int,
    privacy: Privacy,
    sensitivity: str,
) -> tuple[FloatArray, FloatArray, Ledger]:
    """Add the published scheme's noise to the coefficients of each component.

    Parameters
    ----------
    coefficients : ndarray of shape (K, p)
    l1_changes, largest_changes : ndarray of shape (K,)
        Largest change, over persons left out, of the coefficients of a component in L1 norm and of a single one.
    n : int
        Number of persons.
    privacy : Privacy
        Its ``epsilon`` and ``random_state`` are used.
    sensitivity : {"local", "coefficient", "scaled"}
        Reading of Δ_k, see :class:`fdadp.published.PublishedNoise`.

    Returns
    -------
    noisy : ndarray of shape (K, p)
    scales : ndarray of shape (K,)
        Scale Δ_k/ε of the Laplace noise; each coefficient has variance ``2 scale²`` more.
    ledger : Ledger
        Says in its first line that the result is not private.
    """
    delta = {"local": l1_changes, "coefficient": largest_changes, "scaled": largest_changes / n}[sensitivity]
    scales = delta / privacy.epsilon
    rng = np.random.default_rng(privacy.random_state)
    noisy = coefficients + rng.laplace(size=coefficients.shape) * scales[:, None]
    size, epsilon = coefficients.shape[1], privacy.epsilon
    releases = [
        Release(f"coefficients of component {k + 1}", size, "Laplace", float(scales[k]), float(delta[k]), epsilon)
        for k in range(len(coefficients))
    ]
    ledger = Ledger(
        mechanism="published",
        private=False,
        statement=STATEMENT,
        releases=releases,
        unnoised=[
            "mean curve of the responses",
            "eigenfunctions and their number",
            "smoothing parameters",
            "range of the predictors (knots) and mean features",
            "residual and coefficient variances (intervals)",
            "the noise scales themselves (leave-one-out sensitivities of these data)",
        ],
        for_release=False,
        details={
            "reading of the sensitivity": sensitivity,
            "claimed epsilon": f"{privacy.epsilon:g} per component, {privacy.epsilon * len(coefficients):g} in total",
            "noise": f"NumPy, {'fresh entropy' if privacy.random_state is None else 'seeded'}, floating point",
            "fdadp": __version__,
        },
    )
    return noisy, scales, ledger
