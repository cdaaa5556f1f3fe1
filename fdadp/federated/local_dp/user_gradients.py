"""The user's side: the one place outside the privacy kernel that looks at a record, because it is the user's own.

Nothing here sends, prints, logs or stores anything; what leaves are the bytes of
:mod:`fdadp.federated.local_dp.gradient_randomizers`, and no error depends on a record.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy.special import expit

from fdadp._common.typing import ArrayLike, FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError
from fdadp.federated.local_dp.gradient_randomizers import Coins, Reports
from fdadp.federated.local_dp.parameters_and_server import LocalParameters
from fdadp.learners.shared.public_inputs import as_table
from fdadp.privacy import rowwise_matmul
from fdadp.privacy.private_entries import codes_of, index_of, labels, numbers


class LocalClient:
    """One user's device: answers a model with a randomised gradient of the user's record, as often as was agreed.

    Parameters
    ----------
    params : LocalParameters
    coins : Coins, optional
        Default: the system's randomness.

    Examples
    --------
    >>> params = LocalParameters(["no", "yes"], [0.0, 0.0], [1.0, 10.0], mechanism="cldp", epsilon=3.0, n_rounds=1)
    >>> client = LocalClient(params)
    >>> len(client.report([0.5, 3.0], "yes", np.zeros(3)))
    1
    """

    def __init__(self, params: LocalParameters, coins: Coins | None = None) -> None:
        self.params = params
        self._coins = coins or Coins()
        self._left = params.reports_per_user

    def __reduce__(self) -> NoReturn:
        """Refuse copies and pickles: each of them would answer as often as was agreed."""
        raise PrivacyError("a LocalClient must not be copied: the copy would answer again for the same record")

    def report(self, x: ArrayLike, y: Any, theta: FloatArray) -> bytes:
        """Randomise the gradient of the log-loss at θ.

        Parameters
        ----------
        x : array_like of shape (d,)
            The record. One with a value that is no finite number, or a label that is none of the classes, counts as
            one whose gradient is zero: the report is noise alone, and says nothing of it.
        y : label
        theta : ndarray of shape (d + 1,)
            Model from the server, who need not be trusted: the report is as private for any θ.

        Returns
        -------
        bytes
            Of ``params.randomizer.width``, in the format that ``params.randomizer.format`` says.

        Raises
        ------
        InputError
            Shapes; the record is not looked at.
        PrivacyError
            This client has answered as often as was agreed.
        """
        model = _model(self.params, theta)
        row = _one_row(x)
        if row.shape[1] != len(self.params.low):
            raise InputError(f"x must be one record of {len(self.params.low)} features, got {row.shape[1]}")
        if self._left < 1:
            raise PrivacyError(f"reports_per_user must be more than {self.params.reports_per_user} for another report")
        self._left -= 1
        label = np.empty(1, dtype=object)
        label[0] = y
        codes = codes_of(label, index_of(self.params.classes))
        return self.params.randomizer(_gradients(self.params, row, codes, model), self._coins).tobytes()


class LocalUsers:
    """Many users in one process, for simulation: what :class:`LocalClient` does, for the rows of a table at once.

    Parameters
    ----------
    params : LocalParameters
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    coins : Coins, optional
        With the same coins the reports are those of one client after the other, bit for bit (not of ``"privunit"``).

    Raises
    ------
    InputError, PrivacyError
        Shapes; nothing was read.
    """

    def __init__(self, params: LocalParameters, X: Any, y: Any, coins: Coins | None = None) -> None:
        self.params = params
        self._coins = coins or Coins()
        self._x, self._labels = as_table(X), labels(y, params.classes)
        n, d = (int(k) for k in self._x.shape)
        if d != len(params.low):
            raise InputError(f"X must have {len(params.low)} features, as bounds has, got {d}")
        if self._labels.shape[0] != n:
            raise InputError(f"y must have one entry for each of {n} rows of X, got {len(self._labels)}")
        self._left: IntArray = np.full(n, params.reports_per_user, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._left)

    def reports(self, users: IntArray, theta: FloatArray) -> Reports:
        """Reports (m, width) of some users, one each.

        Raises
        ------
        PrivacyError
            One of them has answered as often as was agreed, or is asked twice at once.
        """
        model = _model(self.params, theta)
        left: IntArray = self._left[users]
        if len(np.unique(users)) < len(users) or bool(np.any(left < 1)):
            raise PrivacyError(f"reports_per_user must be more than {self.params.reports_per_user} for another report")
        self._left[users] -= 1
        codes = self._labels.convert(self._labels.rows[users])
        return self.params.randomizer(_gradients(self.params, self._x.rows[users], codes, model), self._coins)

    def __repr__(self) -> str:
        return f"<{len(self)} users with a record each>"


def _one_row(x: Any) -> Any:
    """Return a record as a table (1, d) without looking at its values."""
    if hasattr(x, "dtype"):
        return np.asanyarray(x).reshape(1, -1)
    values = list(x)
    return np.fromiter(values, dtype=object, count=len(values))[None]  # never a common type, or shape, for all of them


def _model(params: LocalParameters, theta: FloatArray) -> FloatArray:
    model = np.asarray(theta, dtype=np.float64)
    if model.shape != (params.dimensions,) or not np.isfinite(model).all():
        raise InputError(f"theta must be {params.dimensions} finite numbers, got {theta!r}")
    return model


def _gradients(params: LocalParameters, rows: Any, codes: FloatArray, theta: FloatArray) -> FloatArray:
    """Gradients (m, D) of the log-losses, entries in [-1, 1]; zero for a record that cannot be used."""
    with np.errstate(all="ignore"):
        values = numbers(rows)
        z = params.scaled(values)
        gradients = (expit(rowwise_matmul(z, theta[:, None])) - codes[:, None]) * z
    usable = np.isfinite(values).all(axis=1, keepdims=True) & np.isfinite(gradients).all(axis=1, keepdims=True)
    return np.asarray(np.where(usable, np.clip(gradients, -1.0, 1.0), 0.0))
