"""What clients and the server of a local logistic regression agree upon, all of it public; and the server.

The server makes a model of reports and never sees a record, which is tested.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fdadp._common.argument_checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.federated.local_dp.gradient_randomizers import Randomizer, Reports, randomizer
from fdadp.files.regular_files import reading
from fdadp.learners.shared.public_inputs import box, class_labels, positive


@dataclass(frozen=True)
class LocalParameters:
    """Public parameters of a local logistic regression; everything that crosses the wire follows from them.

    A model is θ (d + 1,), intercept first, in units of features mapped from their bounds to [-1, 1].

    Parameters
    ----------
    classes : (label, label)
        The second is the one whose logit is modelled.
    low, high : sequence of float
        Bounds of the d features.
    mechanism : {"cldp", "one_coordinate", "l2_ball", "privunit"}
    epsilon, alpha, half_exponent
        As of :func:`fdadp.federated.randomizer`; of one report.
    reports_per_user : int
        How often a client answers; then no more.
    n_rounds : int
        Steps of the server.
    lr : float
        Step size.
    momentum : float
        Share of the last step that is taken again, in [0, 1).
    radius : float
        Of the ball that θ is kept in.
    average : bool
        Whether the model is the mean of the points after the last half of the steps, or the last point.

    Raises
    ------
    PublicParameterMissing, InputError
        Something is missing, or not as said.

    Examples
    --------
    >>> params = LocalParameters(["no", "yes"], [0.0, 0.0], [1.0, 10.0], epsilon=1.0, n_rounds=2)
    >>> params.dimensions, params.randomizer.width
    (3, 4)
    >>> LocalParameters.from_json(params.to_json()) == params
    True
    """

    classes: Sequence[Hashable]
    low: Sequence[float]
    high: Sequence[float]
    mechanism: str = "one_coordinate"
    epsilon: float | None = None
    alpha: float | None = None
    half_exponent: bool = True
    reports_per_user: int = 1
    n_rounds: int = 20
    lr: float = 1.0
    momentum: float = 0.8
    radius: float = 5.0
    average: bool = True

    def __post_init__(self) -> None:
        labels = class_labels(self.classes)
        if len(labels) != 2 or labels[0] == labels[1]:
            raise InputError(f"classes must be two distinct labels, got {labels!r}")
        low, high = box((self.low, self.high), max(np.size(self.low), np.size(self.high)))
        with np.errstate(over="ignore"):
            wide = not np.isfinite(high - low).all()
        if not low.size or wide:
            raise InputError(f"bounds must be of one feature or more, of finite width, got {self.low!r}, {self.high!r}")
        for name, value in (("classes", labels), ("low", low.tolist()), ("high", high.tolist())):
            object.__setattr__(self, name, tuple(value))
        for name in ("n_rounds", "reports_per_user"):
            whole(getattr(self, name), name)
        for name in ("lr", "radius"):
            positive(getattr(self, name), name)
        if isinstance(self.momentum, bool) or not 0 <= self.momentum < 1:
            raise InputError(f"momentum must be at least 0 and below 1, got {self.momentum!r}")
        _ = self.randomizer

    @property
    def dimensions(self) -> int:
        """D = d + 1: intercept and features."""
        return len(self.low) + 1

    @cached_property
    def randomizer(self) -> Randomizer:
        """What a client does to its gradient."""
        return randomizer(
            self.mechanism, self.dimensions, epsilon=self.epsilon, alpha=self.alpha, half_exponent=self.half_exponent
        )

    def scaled(self, x: FloatArray) -> FloatArray:
        """Rows (m, d) as (1, features in [-1, 1]), (m, D); values beyond the bounds count as the bounds."""
        low, high = np.array(self.low), np.array(self.high)
        inside = np.clip((np.clip(x, low, high) - low) / (high - low) * 2 - 1, -1.0, 1.0)
        return np.concatenate((np.ones((len(x), 1)), inside), axis=1)

    def coefficients(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Slopes (d,) and intercept in units of the features, of θ."""
        low, high = np.array(self.low), np.array(self.high)
        slopes = theta[1:] * 2 / (high - low)
        return slopes, float(theta[0] - theta[1:].sum() - slopes @ low)

    def project(self, theta: FloatArray) -> FloatArray:
        """θ, shortened to the ball."""
        length = math.sqrt(float(np.square(theta).sum()))
        return theta * min(1.0, self.radius / length) if length else theta

    def to_json(self) -> str:
        """JSON text, to be sent to clients."""
        return json.dumps(asdict(self), default=lambda value: value.item())

    @classmethod
    def from_json(cls, text: str) -> LocalParameters:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InputError
            No parameters, or such as cannot be.
        """
        with reading("parameters of a local logistic regression", text):
            data: dict[str, Any] = json.loads(text)
            return cls(**data)


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
