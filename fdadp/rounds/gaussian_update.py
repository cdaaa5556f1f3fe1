"""What noisy linear measurements say of coefficients."""

from __future__ import annotations

import numpy as np

from fdadp._common.typing import FloatArray


def gaussian_update(
    theta: FloatArray, covariance: FloatArray, gradient: FloatArray, moment: FloatArray, sd: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior of coefficients θ* ~ N(theta, covariance) by gradient = moment (θ* - theta) + noise.

    Parameters
    ----------
    theta, gradient : ndarray of shape (p,)
    covariance, moment : ndarray of shape (p, p)
        The moment is symmetric.
    sd : float
        Of the noise on each entry of the gradient.

    Returns
    -------
    theta, covariance

    Examples
    --------
    >>> import numpy as np
    >>> theta, covariance = gaussian_update(np.zeros(1), np.eye(1), np.array([3.0]), np.eye(1), 1.0)
    >>> float(theta[0]), float(covariance[0, 0])
    (1.5, 0.5)
    """
    through = moment @ covariance
    gain = np.linalg.solve(through @ moment + sd**2 * np.eye(len(theta)), through).T
    return theta + gain @ gradient, covariance - gain @ through
