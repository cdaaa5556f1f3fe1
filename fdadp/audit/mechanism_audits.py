"""Audits of the mechanisms of the additive regression: what they claim, and what a determined observer finds.

``audit("published")`` breaks the published scheme; ``audit("dp-aff")`` tries the same, and more, on the private fit.

*The published scheme* is audited in its best case: only the noisy coefficients are seen. The eigenfunctions, the range
of X and the smoothing parameters, which the scheme takes from the data and releases without noise, are handed over as
public constants here, and the mean is not shown. With them the question would not arise: an output that differs without
noise identifies the person with certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.typing import FloatArray
from fdadp.audit.black_box import BlackBoxAudit, OneRunAudit, black_box_audit, one_run_audit
from fdadp.audit.private_regression_audits import X_BOUNDS, loss_scores, one_run, replay_pairs, simulated
from fdadp.audit.replay import ReplayAudit, replay_audit
from fdadp.errors import InputError
from fdadp.plot._matplotlib_figures import GREY, PALETTE, panels
from fdadp.privacy import Privacy
from fdadp.privacy.account.epsilon_mu_rho import mu_from
from fdadp.published.laplace_on_regression import leave_one_out, perturb_coefficients
from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction
from fdadp.regression.additive.ordinary_fit import curve_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MECHANISMS = ("published", "dp-aff")


@dataclass(frozen=True)
class MechanismAudit:
    """What the audits of one mechanism found.

    Attributes
    ----------
    mechanism : str
    black_box : dict of int to BlackBoxAudit
        By number of persons.
    replay : ReplayAudit or None
    one_run : OneRunAudit or None
    """

    mechanism: str
    black_box: dict[int, BlackBoxAudit]
    replay: ReplayAudit | None = None
    one_run: OneRunAudit | None = None

    @property
    def passed(self) -> bool:
        """Whether every claim stands."""
        others = [a.passed for a in (self.replay, self.one_run) if a is not None]
        return all([a.passed for a in self.black_box.values()] + others)

    def plot(self, *, axes: Any = None) -> Figure:
        """Histograms of the scores on both sides, and of the exact losses where tapes were replayed.

        Parameters
        ----------
        axes : array_like of Axes, optional
            One for each number of persons, and one for the replays.

        Raises
        ------
        InputError
            Nothing to draw, or too few axes.
        """
        n_panels = len(self.black_box) + (self.replay is not None)
        if not n_panels:
            raise InputError("result must hold a black-box or a replay audit, got none")
        figure, places = panels(n_panels, axes, columns=(2, 3), size=(5.2, 4.0))
        for axis, (n, found) in zip(places, self.black_box.items(), strict=False):
            _scores(axis, n, found)
        if self.replay is not None:
            _losses(places[len(self.black_box)], self.replay)
        if axes is None:
            figure.suptitle(f"Audit of {self.mechanism}: {self._verdict}", color="black" if self.passed else RED)
        return figure

    @property
    def _verdict(self) -> str:
        return "no violation found" if self.passed else "VIOLATION: the claim is false"

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {self._verdict}"]
        lines += [str(a) for a in (self.replay, self.one_run) if a is not None]
        lines += [f"n = {n}, {a}" for n, a in self.black_box.items()]
        return "\n  ".join("\n".join(lines).split("\n"))


def audit(
    mechanism: str,
    n: int | tuple[int, ...] | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    draws: int | None = None,
    tapes: int = 60,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> MechanismAudit:
    """Audit a mechanism on simulated curves with one extreme, but legal, person among them.

    Parameters
    ----------
    mechanism : {"published", "dp-aff"}
    n : int or tuple of int, optional
        Numbers of persons; default 35 and 100, or 100 for ``"dp-aff"``.
    epsilon : float, optional
        Claimed in total. Default 0.6 (three components of 0.2), or 1 for ``"dp-aff"``.
    delta : float
        Claimed; 0: pure ε.
    draws : int, optional
        Outputs on each side of the black-box audit; default 20,000, or 40 for ``"dp-aff"``, where each takes two fits.
    tapes : int
        Of the replay audit of ``"dp-aff"``.
    level : float
        Confidence of lower bounds.
    seed : int
    progress : bool
        Show progress bars.

    Returns
    -------
    MechanismAudit

    Raises
    ------
    InputError
        Unknown mechanism or nonsensical numbers.

    Examples
    --------
    >>> found = audit("published", n=35, draws=50)
    >>> found.black_box[35].found > found.black_box[35].epsilon  # it costs more than it claims
    True
    """
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    published = mechanism == "published"
    if n is None:
        n = (35, 100) if published else (100,)
    sizes = (n,) if isinstance(n, int) else tuple(n)
    claim = (0.6 if published else 1.0) if epsilon is None else epsilon
    draws = (20_000 if published else 40) if draws is None else draws
    if min(sizes, default=0) < 20 or not claim > 0 or not 0 <= delta < 1 or draws < 20 or tapes < 1:
        raise InputError(
            f"n must be at least 20, epsilon above 0, delta in [0, 1), draws at least 20 and tapes at least 1, got "
            f"n={n}, epsilon={claim}, delta={delta}, draws={draws}, tapes={tapes}"
        )
    mu = None if published or not delta else mu_from(claim, delta)  # what the fit spends in Gaussian DP
    results = {}
    for size in sizes:
        if published:
            present, absent = published_scores(size, epsilon=claim / COMPONENTS, draws=draws, seed=seed)
        else:
            present, absent = loss_scores(
                size, epsilon=claim, delta=delta or None, draws=draws, seed=seed, progress=progress
            )
        results[size] = black_box_audit(present, absent, epsilon=claim, delta=delta, mu=mu, level=level)
    if published:
        return MechanismAudit(mechanism, results)
    included, scores = one_run(max(sizes), epsilon=claim, delta=delta or None, seed=seed)
    return MechanismAudit(
        mechanism,
        results,
        replay_audit(replay_pairs(tapes, seed=seed, progress=progress), seed=seed),
        one_run_audit(included, scores, epsilon=claim, delta=delta, level=level),
    )


COMPONENTS = 3
DATA_SETS = 8
Law = tuple[FloatArray, FloatArray]
Laws = tuple[Law, Law]
"""Centre (K, p) and scale (K,) of the Laplace noise, with the canary and without."""


def published_laws(n: int, *, epsilon: float, seed: int = 0) -> Laws:
    """Centre (K, p) and scale (K,) of the Laplace noise for the local sensitivity, with the canary and without.

    The canary is X = 4.3 everywhere, Y = its mean + 4: extreme, and within the bounds.

    Parameters
    ----------
    n : int
        Persons, the canary among them.
    epsilon : float
        Of each component.
    seed : int
        Of the simulated curves.
    """
    x, y, mean = simulated(2, n, seed, n_points=51)
    settings: dict[str, Any] = {"n_basis_x": 7, "n_basis_s": 7, "n_components": COMPONENTS, "progress": False}
    public = AdditiveFunctionOnFunction(**settings).fit(x, y)
    x[-1], y[-1] = 4.3, mean.mean(axis=0) + 4.0
    laws = []
    for size in (n, n - 1):
        given = settings | {"n_components": public.eigenbasis_, "smoothing": public.smoothing_parameters_}
        model = AdditiveFunctionOnFunction(**given)
        chunks = [(x[:size], y[:size])]
        model.fit_chunks(chunks, x_range=X_BOUNDS)
        held = curve_pairs(chunks, progress=False)
        changes = leave_one_out(model.fitted_.surface, held.read)
        flat = model.coef_.reshape(COMPONENTS, -1)
        _, scales, _ = perturb_coefficients(flat, changes.l1, changes.largest, changes.n, Privacy(epsilon), "local")
        laws.append((flat, scales))
    return laws[0], laws[1]


def published_scores(n: int, *, epsilon: float, draws: int = 20_000, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood ratio of outputs with the canary and of outputs without; `draws` of each.

    A privacy claim is one about all data sets, so the auditor may choose: of several simulated ones the most telling
    is taken, by the mean ratio of 200 draws that are used for nothing else.

    Parameters
    ----------
    n, epsilon, seed
        See :func:`published_laws`.
    draws : int

    Returns
    -------
    present, absent : ndarray of shape (draws,)
    """
    rng = np.random.default_rng([seed, n])
    choice = [published_laws(n, epsilon=epsilon, seed=seed + i) for i in range(DATA_SETS)]
    worth = []
    for laws in choice:
        present, absent = (_ratios(laws, side, 200, rng).mean() for side in (0, 1))
        worth.append(min(present, -absent))
    laws = choice[int(np.argmax(worth))]
    return _ratios(laws, 0, draws, rng), _ratios(laws, 1, draws, rng)


def _ratios(laws: Laws, side: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Log-likelihood ratios of outputs from one side."""
    centre, scale = laws[side]
    parts = []
    for start in range(0, draws, 2000):
        output = centre + rng.laplace(size=(min(2000, draws - start), *centre.shape)) * scale[:, None]
        parts.append(_log_density(output, *laws[0]) - _log_density(output, *laws[1]))
    return np.concatenate(parts)


def _log_density(output: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
    away = np.abs(output - centre).sum(axis=2) / scale
    return np.asarray(-(away + centre.shape[1] * np.log(2 * scale)).sum(axis=1))


RED = "#B42318"


def _scores(axis: Any, n: int, found: BlackBoxAudit) -> None:
    """Histogram of the scores on both sides, with the claimed ε: scores are log-likelihood ratios."""
    low, high = np.quantile(np.concatenate([found.present, found.absent]), [0.002, 0.998])
    pad = 0.05 * (high - low)
    bins = np.linspace(low - pad, high + pad, int(np.clip(len(found.present) / 4, 12, 60)))
    for scores, colour, text in (
        (found.present, PALETTE[1], "person in the data"),
        (found.absent, PALETTE[0], "person not in the data"),
    ):
        axis.hist(np.clip(scores, bins[0], bins[-1]), bins=bins, color=colour, alpha=0.6, label=text)
    if np.isfinite(found.threshold):
        axis.axvline(found.threshold, 0, 0.68, color="black", linewidth=1.2, label="threshold that tells them apart")
    reach = max(abs(bins[0]), abs(bins[-1]))
    edges = 1.15 * found.epsilon if reach < found.epsilon < 5 * reach else 0.0  # both ends of the claim are shown
    left, right = min(bins[0], -edges), max(bins[-1], edges)
    claim = min(found.epsilon, max(reach, edges))
    axis.axvspan(-claim, claim, 0, 0.68, color=GREY, alpha=0.18, lw=0, zorder=0, label="within ± the claimed ε")
    axis.set_xlim(left, right)
    axis.set_xlabel("log-likelihood ratio of the output (privacy loss)")
    axis.set_ylabel("outputs")
    axis.set_title(
        f"n = {n}: claimed ε = {found.epsilon:g}"
        + (f", δ = {found.delta:g}" if found.delta else "")
        + f"; found ε ≥ {found.found:.2f}",
        color="black" if found.passed else RED,
        fontsize="medium",
    )
    top = axis.get_ylim()[1]
    axis.set_ylim(0, 1.45 * top)
    axis.legend(fontsize="small", frameon=False, loc="upper center", ncols=2)


def _losses(axis: Any, replay: ReplayAudit) -> None:
    beyond = max(1.08, 1.03 * float(replay.ratios.max()))
    axis.hist(replay.ratios, bins=np.arange(round(beyond * 40) + 2) / 40, color=PALETTE[2], alpha=0.8)
    axis.axvline(1, color=RED, linewidth=1.4, label="budget")
    axis.set_xlim(0, beyond)
    axis.set_xlabel("exact cost of one person / budget")
    axis.set_ylabel("tapes")
    axis.set_title(
        f"{len(replay.ratios)} replays: at most {replay.ratios.max():.4f} of the budget",
        color="black" if replay.passed else RED,
        fontsize="medium",
    )
    axis.legend(fontsize="small", frameon=False, loc="upper left")
