"""What NIST SP 800-226 (2025, doi:10.6028/NIST.SP.800-226) asks of a claim of differential privacy, answered.

Its pyramid names what a claim rests on, from its parameters at the top to the collection of the data at the bottom.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fdadp.privacy.certificate.certificate import Certificate


def answers(of: Certificate) -> tuple[tuple[str, str], ...]:
    """Questions and answers, from the top of the pyramid to the bottom."""
    promise = f"ε = {of.epsilon:g}" + ("" if of.delta is None else f", δ = {of.delta:g}")
    n = "" if of.delta is None or of.n is None else f" n δ = {of.n * of.delta:.2g}."
    variant = "pure" if of.delta is None else "approximate, counted in Gaussian DP" if of.mu else "approximate"
    noise = [release.noise for release in of.releases]
    solved = any("minimiser" in text or "objective" in text for text in noise)
    several = "all rows with one id count as one" if of.unit.startswith("person") else "somebody with several has less"
    return (
        ("Which parameters?", f"{promise} ({variant}), of everything that draws on this budget together.{n}"),
        ("Which unit of privacy?", f"The {of.unit.partition(' (')[0]}: {several}. Compared: {of.neighbours}."),
        (
            "Who must be trusted?",
            "The custodian, who holds the rows (central model), and the machine that computes; nobody who gets the "
            "results.",
        ),
        (
            "Are the algorithms right?",
            (
                "Minima of penalised sums, with noise for how far one person moves them"
                if solved
                else "Contributions are bounded on integers, and sums are exact"
            )
            + "; proofs: docs/theory. Tests replay the mechanisms on "
            "neighbouring data, attack them statistically, and hold costs against noise.",
        ),
        (
            "Are the answers of use, and to whom?",
            ("See How accurate" if of.accuracy else "Said by the plan before the fit and by the model's notes after it")
            + "; small groups are described worst, and extremes are clipped.",
        ),
        (
            "Floating point?",
            "What is released lies on a lattice, and so does its noise"
            + (", which covers the rounding of the solution." if solved else "; no sum is rounded."),
        ),
        ("Timing and other side channels?", "Not covered: time and memory may depend on the rows. Keep them inside."),
        (
            "Who has access, and to what?",
            "For the custodian to say. The results hold no rows; the study's file is readable by its owner alone.",
        ),
        ("Were the data collected with care?", "For the custodian to say; no noise mends it."),
    )
