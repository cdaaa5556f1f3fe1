"""Logistic regression in the local model: users send randomised gradients, a server descends on their means.

Sources: the condensed-local scheme is that of a patent on logistic regression under condensed local privacy, after
Gursoy et al. (2019), arXiv:1905.06361; its exponent is lost in print, so both readings are here. One coordinate: Nguyên
et al. (2016), arXiv:1606.05053; ball: Duchi, Jordan & Wainwright (2018), arXiv:1604.02390; caps: Bhowmick et al.
(2018), arXiv:1812.00984; shuffling: Feldman, McMillan & Talwar (2023), arXiv:2208.04591.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError
from fdadp.federated.local_dp.gradient_randomizers import Coins, Randomizer
from fdadp.federated.local_dp.parameters_and_server import LocalParameters, LocalServer
from fdadp.federated.local_dp.user_gradients import LocalUsers
from fdadp.federated.local_dp.user_guarantee import ledger, user_guarantee
from fdadp.learners.shared.public_inputs import as_table, box, class_array, class_labels, positive


def default_lr(mechanism: Randomizer, n: int, n_rounds: int, radius: float, momentum: float = 0.8) -> float:
    """Step size, from public numbers: 10 (1 - β) of noiseless descent, less where a round's mean is noisy.

    ``(1 - β) min(10, radius/(s √T))``: s the length of the noise on the mean of one round's reports, T the rounds, β
    the momentum. The second is the step for noise alone (Nemirovski et al. 2009), radius the distance to go.

    Parameters
    ----------
    mechanism : Randomizer
    n : int
        Reports in a round.
    n_rounds : int
    radius, momentum : float
    """
    return (1 - momentum) * min(10.0, radius * math.sqrt(n / n_rounds) / mechanism.length)


@dataclass(kw_only=True, eq=False, repr=False)
class LDPLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression for two classes in the local model: no record leaves a user unrandomised.

    Each round some users get the model, and each answers with a randomised gradient of the loss on the user's own
    record (:class:`fdadp.federated.LocalClient`); the server (:class:`fdadp.federated.LocalServer`) takes a step on
    their mean. ``fit`` plays all parts in one process, for planning and comparison; in use, the two classes run where
    the records are and where they are not.

    Parameters
    ----------
    epsilon : float
        ε_LDP of **one report**; above 0.
    alpha : float, optional
        Instead of it (epsilon=None), of ``mechanism="cldp"``: α of the condensed-local claim.
    half_exponent : bool
        With α: κ = α/2 as published, or κ = α.
    mechanism : {"one_coordinate", "cldp", "l2_ball", "privunit"}
        See :func:`fdadp.federated.randomizer`. ``"privunit"`` is the most accurate for ε above 2 or so, then takes
        some milliseconds a report; ``"one_coordinate"`` is below it. ``"cldp"`` only beats it for ε above D = d + 1.
    n_rounds : int
    participation : {"disjoint", "all"}
        ``"disjoint"``: users are divided among the rounds by public randomness, and each answers once. The guarantee
        for a user is that of one report. ``"all"``: every user answers in every round, and the reports add up; wants
        `total_epsilon`.
    total_epsilon : float, optional
        With ``participation="all"``: what all reports of one user may cost together; refused if they cost more.
    delta : float, optional
        With ``participation="all"``: count the total in (ε, δ) by zCDP where that is less.
    classes : (label, label)
        Public. A record with another label counts as one whose gradient is zero.
    bounds : (low, high)
        Public range of each feature, numbers or d of them: mapped to [-1, 1], values outside to its ends. A record with
        a value that is not finite counts as one whose gradient is zero.
    lr : float, optional
        Step size; default: :func:`~fdadp.federated.local_dp_logistic.default_lr`.
    momentum : float
        Share of the last step that is taken again, in [0, 1).
    radius : float
        Of the ball that θ, for features in [-1, 1], is kept in.
    average : bool
        Whether the model is the mean over the last half of the rounds.
    shuffle_delta : float
        δ of the central guarantee that the ledger names for the case of a trusted shuffler.
    random_state : int, optional
        Seeded coins, for simulation: the ledger then says "not for release". Default: the system's randomness.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, d)
        Logits per unit of a feature, within the bounds.
    intercept_ : ndarray of shape (1,)
    theta_ : ndarray of shape (d + 1,)
        The same for features in [-1, 1], intercept first.
    parameters_ : LocalParameters
        What clients and server would have to agree upon.
    ledger_ : Ledger
        Text, HTML and JSON: ε_LDP of one user, κ, the metric of the condensed-local claim and what it leaves out, the
        figure for a trusted shuffler with its assumptions.
    privacy_spent_ : dict
        ``epsilon``, ``delta``, ``adjacency`` and ``unit`` of the guarantee; ``epsilon_report``, ``reports``, ``rho``
        (zCDP of one user), ``kappa``, ``shuffled`` in words.
    n_features_in_ : int

    Raises
    ------
    PublicParameterMissing
        No classes or bounds. Nothing was read.
    PrivacyError
        ``participation="all"`` without a total, or with one that is too small. Nothing was read.
    InputError
        Something else public is wrong. Nothing was read.

    Notes
    -----
    The gradient of one record (1, x) is (σ(θ'x) - y)(1, x), with entries in [-1, 1] for features in [-1, 1]: nothing
    has to be normalised, and nothing is. The estimate of a mechanism has a known length ℓ, whatever the gradient g, so
    the mean of m reports is off by √((ℓ² - ‖g‖²)/m). Let D = d + 1 and c = (e^ε + 1)/(e^ε - 1). Then ℓ is D c for one
    coordinate, √D (e^(ε/D) + 1)/(e^(ε/D) - 1) for the condensed-local scheme (D times the square at small ε), and √D c
    √π Γ((D+1)/2)/Γ(D/2) for the ball.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = np.where(X @ [2.0, -1.0, 0.0] + 0.3 * rng.normal(size=20_000) > 0, "yes", "no")
    >>> model = LDPLogisticRegression(epsilon=2.0, classes=["no", "yes"], bounds=(-1, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.privacy_spent_["epsilon"]
    (True, 2.0)
    """

    epsilon: float | None = 1.0
    alpha: float | None = None
    half_exponent: bool = True
    mechanism: str = "one_coordinate"
    n_rounds: int = 20
    participation: str = "disjoint"
    total_epsilon: float | None = None
    delta: float | None = None
    classes: Sequence[Hashable] | None = None
    bounds: Any = None
    lr: float | None = None
    momentum: float = 0.8
    radius: float = 5.0
    average: bool = True
    shuffle_delta: float = 1e-6
    random_state: int | None = None

    def fit(self, X: Any, y: Any) -> LDPLogisticRegression:
        """Play users and server, round by round; every user spends again.

        Parameters
        ----------
        X : array_like of shape (n, d)
            One record a user. Only its shape is looked at here.
        y : array_like of shape (n,)
        """
        table = as_table(X)
        validate_data(self, X, y, skip_check_array=True)
        n, d = (int(k) for k in table.shape)
        params = self._parameters(n, d)
        coins = Coins(self.random_state)
        users, server = LocalUsers(params, X, y, coins), LocalServer(params)
        rounds = division(n, params.n_rounds, self.participation, coins)
        for who in rounds:
            server.step(users.reports(who, server.theta))
        self.parameters_ = params
        self.classes_ = class_array(params.classes)
        self.theta_ = server.model
        slopes, intercept = params.coefficients(self.theta_)
        self.coef_, self.intercept_ = slopes[None, :], np.array([intercept])
        smallest = min(len(who) for who in rounds)
        self.ledger_ = ledger(params, smallest, self.delta, shuffle_delta=self.shuffle_delta, secure=coins.secure)
        details = self.ledger_.details
        self.privacy_spent_ = {
            "epsilon": self.ledger_.epsilon,
            "delta": self.ledger_.delta,
            "adjacency": "local: any two records of one user",
            "unit": "record of one user",
            "epsilon_report": params.randomizer.epsilon,
            "reports": params.reports_per_user,
            "rho": params.reports_per_user * params.randomizer.rho,
            "kappa": details.get("kappa"),
            "shuffled": details["if a trusted shuffler takes the senders off"],
        }
        return self

    def _parameters(self, n: int, d: int) -> LocalParameters:
        """Check all that is public."""
        labels = class_labels(self.classes)
        low, high = box(self.bounds, d)
        if self.participation not in ("disjoint", "all"):
            raise InputError(f'participation must be "disjoint" or "all", got {self.participation!r}')
        positive(self.shuffle_delta, "shuffle_delta", below=1.0)
        if self.delta is not None:
            positive(self.delta, "delta", below=1.0)
        every = self.participation == "all"
        params = LocalParameters(
            labels,
            low.tolist(),
            high.tolist(),
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            alpha=self.alpha,
            half_exponent=self.half_exponent,
            reports_per_user=self.n_rounds if every else 1,
            n_rounds=self.n_rounds,
            momentum=self.momentum,
            radius=self.radius,
            average=self.average,
        )
        if not every and n < params.n_rounds:
            raise InputError(f"n_rounds must be at most the number of users, n_samples = {n}, got {params.n_rounds}")
        if every:
            cost = user_guarantee(params, self.delta)
            if self.total_epsilon is None or positive(self.total_epsilon, "total_epsilon") < cost * (1 - 1e-9):
                raise PrivacyError(
                    f'total_epsilon must be given with participation="all", and be at least {cost:.6g}, which '
                    f"{params.n_rounds} reports with epsilon = {params.randomizer.epsilon:g} each cost a user, got "
                    f"{self.total_epsilon!r}"
                )
        m = n if every else n // params.n_rounds
        lr = self.lr
        if lr is None:
            lr = default_lr(params.randomizer, m, params.n_rounds, params.radius, params.momentum)
        return replace(params, lr=lr)

    def decision_function(self, X: Any) -> FloatArray:
        """Logits of the second class, shape (m,); values beyond the bounds count as the bounds."""
        check_is_fitted(self, "ledger_")
        x = np.asarray(validate_data(self, X, reset=False, dtype=np.float64), dtype=np.float64)
        return np.asarray(self.parameters_.scaled(x) @ self.theta_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes, shape (m, 2)."""
        logits = self.decision_function(X)
        return np.stack((expit(-logits), expit(logits)), axis=1)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities of the two classes, shape (m, 2)."""
        logits = self.decision_function(X)
        return np.stack((-np.logaddexp(0, logits), -np.logaddexp(0, -logits)), axis=1)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """More probable class, shape (m,)."""
        second = self.decision_function(X) > 0
        return np.asarray(self.classes_[second.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def division(n: int, n_rounds: int, participation: str, coins: Coins) -> list[IntArray]:
    """Who answers in which round: everybody, or a part of a random division that looks at nothing."""
    if participation == "all":
        return [np.arange(n)] * n_rounds
    order = np.argsort(coins.words(n, 1)[:, 0], kind="stable")
    return [part.astype(np.int64) for part in np.array_split(order, n_rounds)]
