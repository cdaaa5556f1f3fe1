"""Forms of others, filled in from a certificate: questions of NIST, a privacy label, an entry of a registry.

What NIST SP 800-226 (2025, doi:10.6028/NIST.SP.800-226) asks of a claim of differential privacy, answered.

Its pyramid names what a claim rests on, from its parameters at the top to the collection of the data at the bottom.

A privacy label: what experts want said of every release with differential privacy, in one format.

The nine categories are those of Dibia, Lu, Bhattacharjee, Near & Feng (2025, arXiv:2507.15997, Table 1), as two
summaries of the paper name them; what is written under each is ours.

An entry for the registry of differential privacy deployments (https://registry.opendp.org), tier 3.

Fields and their meaning: ``schemas/deployments-schema.yaml`` of https://github.com/opendp/deployments-registry-data (as
of July 2026; MIT licence), after Nanayakkara, Ghazi & Vadhan (2025, arXiv:2509.13509). What is asked for is written
down in ``docs/study.md#registry``. JSON is YAML: the entry can be handed in as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fdadp._common.guarantee_in_words import composed, promised, shown_up
from fdadp._version import __version__
from fdadp.errors import PrivacyError

if TYPE_CHECKING:
    from fdadp.privacy.certificate.certificate import Certificate


def answers(of: Certificate) -> tuple[tuple[str, str], ...]:
    """Questions and answers, from the top of the pyramid to the bottom."""
    promise = f"ε = {of.epsilon:g}" + ("" if of.delta is None else f", δ = {of.delta:g}")
    n = "" if of.delta is None or of.n is None else f" n δ = {of.n * of.delta:.2g}."
    variant = "pure" if of.delta is None else "approximate, counted in Gaussian DP" if of.mu else "approximate"
    noise = [release.noise for release in of.releases]
    solved = any("minimiser" in text or "objective" in text for text in noise)
    several = (
        "all rows with one id count as one"
        if of.unit.startswith("person")
        else "a person with several is protected less"
    )
    return (
        ("Which parameters?", f"{promise} ({variant}), of everything that draws on this budget together.{n}"),
        ("Which unit of privacy?", f"The {of.unit.partition(' (')[0]}: {several}. Compared: {of.neighbours}."),
        (
            "Who must be trusted?",
            "The custodian, who holds the rows (central model), and the machine that computes. Nobody who gets the "
            "results needs to be trusted.",
        ),
        (
            "Are the algorithms right?",
            (
                "Minima of penalised sums, with noise for how far one person moves them"
                if solved
                else "Contributions are bounded on integers, and sums are exact"
            )
            + ". Proofs are in docs/theory. Tests replay the mechanisms on neighbouring data, attack them "
            "statistically, and compare costs with noise. Nobody outside the project has reviewed them, and fdadp "
            f"{__version__} is an alpha version.",
        ),
        (
            "Are the answers of use, and to whom?",
            ("See How accurate" if of.accuracy else "See the plan before the fit, and the model's notes after it")
            + ". Small groups are described worst, and extremes are clipped.",
        ),
        (
            "Floating point?",
            "Releases lie on a lattice, and so does their noise"
            + (", which covers the rounding of the solution." if solved else ". No sum is rounded."),
        ),
        (
            "Timing and other side channels?",
            "Not covered, because time and memory may depend on the rows. Keep them inside.",
        ),
        (
            "Who has access, and to what?",
            "The custodian answers this. The results hold no rows. A study's file is made for its owner alone to read.",
        ),
        ("Were the data collected with care?", "The custodian answers this. Noise does not correct careless data."),
    )


def label(of: Certificate) -> dict[str, str]:
    """What a certificate says under each category."""
    told = dict(answers(of))
    mu = "" if of.mu is None else f", μ = {shown_up(of.mu)} in Gaussian DP"
    return {
        "Privacy parameters": f"{promised(of.epsilon, of.delta)}{mu}, for all that draws on this budget; spent so far: "
        f"ε = {shown_up(of.spent)}",
        "Unit of privacy": f"{of.unit}. Compared: {of.neighbours}",
        "Utility": _first(of.accuracy) or "see the plan and the notes of the model",
        "Mechanism": f"{'; '.join(dict.fromkeys(fit.mechanism for fit in of.fits)) or 'nothing was released yet'}; "
        f"noise: {of.kinds_of_noise or 'none drawn yet'}",
        "Hyperparameters": f"{len(of.public)} public inputs, each named above. The rest follows from public values and "
        "from releases",
        "Deployment model": told["Who must be trusted?"],
        "Empirical privacy metrics": "audits of the software, not of this release, by replay and by attack. They "
        "can find too little noise and cannot prove that there is enough (docs/theory)",
        "Interpretation": " ".join((of.promise, *of.meaning)),
        "Other": f"{composed(of.delta)} Timing, settings chosen by looking at the data, and groups of persons are not "
        "covered",
    }


def _first(lines: tuple[str, ...]) -> str:
    more = f" ({len(lines) - 1} more lines under How accurate)" if lines[1:] else ""
    return (lines[0] if lines else "") + more


PRODUCTS = ("Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


def entry(of: Certificate, *, slug: str, sector: str | None, product: str) -> dict[str, Any]:
    """Make an entry without a blank field.

    Parameters
    ----------
    of : Certificate
    slug : str
        Of its address: letters, digits and hyphens.
    sector : str, optional
        One of :data:`SECTORS`.
    product : str
        One of :data:`PRODUCTS`.

    Raises
    ------
    PrivacyError
        Something that only people can say is missing; it is named.
    """
    _check(of, slug, sector, product)
    told = dict(answers(of))
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(of, sector, product),
            "dp_variant": _variant(of),
            "privacy_loss": _loss(of),
            "deployment_model": _model(of, told),
            "accounting": {
                "post_processing": "Estimates, intervals, tests and pictures are computed from the releases alone.",
                "composition": "Sequential, adaptive: "
                + ("epsilons add up." if of.delta is None else "squares of mu (Gaussian DP) or rho (zCDP) add up."),
            },
            "implementation": _implementation(of, told),
            "administrative": {
                "sources": of.study or of.name,
                "notes": "Written by fdadp from its ledger.",
                "registry_authors": [of.about["author"]],
            },
        },
    }


def _check(of: Certificate, slug: str, sector: str | None, product: str) -> None:
    """Refuse blank fields and words that the registry does not know."""
    missing = [key for key, text in of.about.items() if not text.strip()]
    if missing:
        raise PrivacyError(f"about must say {', '.join(missing)} for the registry, which takes no blank field")
    if product not in PRODUCTS or (sector is not None and sector not in SECTORS):
        raise PrivacyError(
            f"product must be one of {', '.join(PRODUCTS)}, and sector of {', '.join(SECTORS)}, got "
            f"{product!r}, {sector!r}"
        )
    if not slug or not set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        raise PrivacyError(f"slug must be of small letters, digits and hyphens, got {slug!r}")


def _basic(of: Certificate, sector: str | None, product: str) -> dict[str, Any]:
    basic = {
        "name": of.name,
        "data_curators": [of.about["custodian"]],
        "intended_use": of.about["use"],
        "data_product_type": product,
        "data_product_region": of.about["region"],
        "description": of.about["data"],
        "publication_date": of.date[:10],
    }
    return basic | ({} if sector is None else {"data_product_sector": sector})


def _variant(of: Certificate) -> dict[str, Any]:
    public = "; ".join(f"{k}: {v}" for k, v in of.public.items()) or "none beside the settings"
    return {
        "variant_name": "Pure DP" if of.delta is None else "Approximate DP",
        "data_domain": f"Tables of rows of {of.unit}s; public of them: {public}.",
        "unprotected_quantities": "None is computed from the data"
        + ("; the number of persons is declared and public." if of.n is not None else "."),
    }


def _loss(of: Certificate) -> dict[str, Any]:
    parameters = {"epsilon": of.epsilon} | ({} if of.delta is None else {"delta": of.delta})
    parameters |= {} if of.rho is None else {"rho": of.rho}
    return {
        "privacy_unit": of.unit,
        "privacy_unit_details": f"Neighbouring data: {of.neighbours}.",
        "privacy_parameters": parameters,
        "privacy_parameters_details": f"Spent so far: epsilon {of.spent:.6g}"
        + ("" if of.mu is None else f"; mu {of.mu:.6g} in Gaussian DP for all of it")
        + ".",
    }


def _model(of: Certificate, told: dict[str, str]) -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_details": told["Who must be trusted?"],
        "actors": f"{of.about['custodian']} (custodian and curator); analysts, who see results only.",
        "release_type": "Many releases" if of.study else "One release",
        "release_type_details": f"{len(of.fits)} fits so far; the total is fixed and is never reset.",
        "data_source_type": "Static",
        "data_source_type_details": "Every fit reads the same data; new data need a study of their own.",
        "access_type": "Non-interactive",
        "access_type_details": "Fits are run by the custodian; what is published are their results.",
    }


def _implementation(of: Certificate, told: dict[str, str]) -> dict[str, Any]:
    return {
        "preprocessing_and_hyperparameter_tuning": "Settings follow from public values and from the releases; "
        "what was chosen by looking at the data is not covered.",
        "mechanisms": f"{of.kinds_of_noise} noise; fdadp {of.versions['fdadp']} with {of.versions['noise']}. "
        f"{told['Floating point?']} {told['Timing and other side channels?']}",
        "justification": told["Are the algorithms right?"],
    }
