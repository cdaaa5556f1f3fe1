"""The published scheme: Laplace noise on fitted coefficients. For comparison; **not** differentially private.

The literature adds Laplace(Δ_k/ε) to each coefficient of component k and calls the sum of the ε its guarantee.
Three things break it end to end: Δ_k is computed from the data (so the noise itself tells about them), and
the mean curve, the eigenbasis and the smoothing parameters are used without noise.
"""

from __future__ import annotations

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp._version import __version__
from fdadp.privacy.account.ledger import Ledger
from fdadp.privacy.account.releases import Release
from fdadp.privacy.settings import Privacy

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
    readings = {
        "local": l1_changes,
        "coefficient": largest_changes,
        "scaled": largest_changes / n,
    }
    delta = readings[sensitivity]
    scales = delta / privacy.epsilon
    rng = np.random.default_rng(privacy.random_state)
    noisy = coefficients + rng.laplace(size=coefficients.shape) * scales[:, None]
    releases = [
        Release(
            f"coefficients of component {k + 1}",
            coefficients.shape[1],
            "Laplace",
            float(scales[k]),
            float(delta[k]),
            privacy.epsilon,
        )
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
            "noise": "NumPy, "
            + ("seeded" if privacy.random_state is not None else "fresh entropy")
            + ", floating point",
            "fdadp": __version__,
        },
    )
    return noisy, scales, ledger
