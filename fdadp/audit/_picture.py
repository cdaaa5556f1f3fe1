"""What an audit found: scores with and without a person, the ε claimed and found, losses against the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp.errors import InputError
from fdadp.plot._canvas import GREY, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fdadp.audit.black_box import BlackBoxAudit
    from fdadp.audit.mechanisms import MechanismAudit
    from fdadp.audit.replay import ReplayAudit

RED = "#B42318"


def picture(result: MechanismAudit, axes: Any = None) -> Figure:
    """Draw what :meth:`fdadp.audit.MechanismAudit.plot` promises."""
    n_panels = len(result.black_box) + (result.replay is not None)
    if not n_panels:
        raise InputError("result must hold a black-box or a replay audit, got none")
    figure, places = panels(n_panels, axes, columns=(2, 3), size=(5.2, 4.0))
    for axis, (n, found) in zip(places, result.black_box.items(), strict=False):
        _scores(axis, n, found)
    if result.replay is not None:
        _losses(places[len(result.black_box)], result.replay)
    if axes is None:
        verdict = "no violation found" if result.passed else "VIOLATION: the claim is false"
        figure.suptitle(f"Audit of {result.mechanism}: {verdict}", color="black" if result.passed else RED)
    return figure


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
