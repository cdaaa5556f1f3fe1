"""The server of the local model: makes a model of reports and never sees a record, which is tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.local._base import Reports
from fdadp.federated.local.parameters import LocalParameters


class LocalServer:
    """Gradient descent with momentum (Polyak 1964) on the means of randomised gradients.

    Parameters
    ----------
    params : LocalParameters

    Attributes
    ----------
    theta : ndarray of shape (d + 1,)
        What to send to the clients of the next round; intercept first. Zero at the start.
    rounds : int
        Steps taken.

    Notes
    -----
    Reports are taken at their word: clients who lie can pull a mean of m reports by up to the length of an estimate
    times their share in m.

    Examples
    --------
    >>> params = LocalParameters(["no", "yes"], [0.0], [1.0], mechanism="cldp", epsilon=2.0, n_rounds=1, lr=1.0)
    >>> LocalServer(params).step([b"\\x03", b"\\x00", b"\\x00"]).round(2)  # signs (+, +), (-, -), (-, -)
    array([0.72, 0.72])
    """

    def __init__(self, params: LocalParameters) -> None:
        self.params = params
        self.theta: FloatArray = np.zeros(params.dimensions)
        self.rounds = 0
        self._step = np.zeros(params.dimensions)
        self._sum = np.zeros(params.dimensions)

    def step(self, reports: Sequence[bytes] | Reports) -> FloatArray:
        """Take one step.

        Parameters
        ----------
        reports : sequence of bytes, or ndarray of uint8, shape (m, width)
            Of **one** round, in any order.

        Returns
        -------
        ndarray of shape (d + 1,)
            The new θ.

        Raises
        ------
        InputError
            No reports, something else than reports, or a step too many.
        """
        params, width = self.params, self.params.randomizer.width
        if not isinstance(reports, np.ndarray):
            wrong = [r for r in reports if not isinstance(r, bytes) or len(r) != width]
            if wrong:
                raise InputError(f"reports must be {width} bytes each, got {wrong[0]!r}")
            reports = np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(-1, width)
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != width or not len(reports):
            raise InputError(
                f"reports must be one or more, {width} bytes each, got {reports.dtype} of shape {reports.shape}"
            )
        return self.descend(params.randomizer.estimate(reports).mean(axis=0))

    def descend(self, gradient: FloatArray) -> FloatArray:
        """Take one step for an estimated gradient (d + 1,); return the new θ."""
        params = self.params
        if self.rounds >= params.n_rounds:
            raise InputError(f"n_rounds must be more than {params.n_rounds} for another step")
        self._step = params.momentum * self._step - params.lr * gradient
        self.theta = params.project(self.theta + self._step)
        self.rounds += 1
        if self.rounds > params.n_rounds // 2:
            self._sum = self._sum + self.theta
        return self.theta

    @property
    def model(self) -> FloatArray:
        """θ of the finished model, (d + 1,).

        Raises
        ------
        InputError
            Steps are missing.
        """
        if self.rounds < self.params.n_rounds:
            raise InputError(f"rounds must be {self.params.n_rounds} before there is a model, got {self.rounds}")
        if not self.params.average:
            return self.theta
        return np.asarray(self._sum / (self.params.n_rounds - self.params.n_rounds // 2))
