"""A privacy label: what experts want said of every release with differential privacy, in one format.

The nine categories are those of Dibia, Lu, Bhattacharjee, Near & Feng (2025, arXiv:2507.15997, Table 1), as two
summaries of the paper name them; what is written under each is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.promised import composed, promised, shown_up
from fdadp.privacy.certificate.nist import answers

if TYPE_CHECKING:
    from fdadp.privacy.certificate.certificate import Certificate

CATEGORIES = (
    "Privacy parameters",
    "Unit of privacy",
    "Utility",
    "Mechanism",
    "Hyperparameters",
    "Deployment model",
    "Empirical privacy metrics",
    "Interpretation",
    "Other",
)
"""In the order of the table."""


def label(of: Certificate) -> dict[str, str]:
    """What a certificate says under each category."""
    told = dict(answers(of))
    mu = "" if of.mu is None else f", μ = {shown_up(of.mu)} in Gaussian DP"
    texts = (
        f"{promised(of.epsilon, of.delta)}{mu}, for all that draws on this budget; spent so far: "
        f"ε = {shown_up(of.spent)}",
        f"{of.unit}; compared: {of.neighbours}",
        _first(of.accuracy) or "the plan and the notes of the model say it",
        f"{'; '.join(dict.fromkeys(fit.mechanism for fit in of.fits)) or 'nothing was released yet'}; noise: "
        f"{of.kinds_of_noise or 'none drawn yet'}",
        f"{len(of.public)} public inputs, each named above; the rest follows from public values and from releases",
        told["Who must be trusted?"],
        "of the software, not of this release: audits by replay and by attack, which can find too little noise and "
        "cannot prove that there is enough (docs/theory)",
        " ".join((of.promise, *of.meaning)),
        f"{composed(of.delta)} Timing, settings chosen by looking at the data, and groups of persons are not covered",
    )
    return dict(zip(CATEGORIES, texts, strict=True))


def _first(lines: tuple[str, ...]) -> str:
    more = f" ({len(lines) - 1} more lines under How accurate)" if lines[1:] else ""
    return (lines[0] if lines else "") + more
