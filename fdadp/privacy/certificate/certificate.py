"""Certificates: what was promised, released, and spent, for whoever answers for the data; HTML for paper, and JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp._common.guarantee_in_words import shown_up
from fdadp._version import __version__
from fdadp.errors import PrivacyError
from fdadp.files.atomic_writes import write_text
from fdadp.privacy.account._reservations import plain
from fdadp.privacy.account.epsilon_mu_rho import epsilon_from_mu, mu_from_epsilon
from fdadp.privacy.certificate import external_forms
from fdadp.privacy.certificate import html_page as pages
from fdadp.privacy.certificate.forecasts_and_r2 import Expected, expected_lines, model_lines
from fdadp.privacy.certificate.ledger_recount import recounted, verify_ledger
from fdadp.privacy.certificate.odds import PERSON, PRIORS, ROW, Odds, Protected, odds_of
from fdadp.privacy.certificate.signature import sign
from fdadp.privacy.guarantee_checks import LEFT_OUT, NEIGHBOURS, NOT_COVERED
from fdadp.privacy.study._chained_entries import Entry, in_words, now
from fdadp.privacy.study.budget_accounts import LAST, STATES, STUDY, Fit, fits_of

if TYPE_CHECKING:
    from fdadp.privacy.account._reservations import Release
    from fdadp.privacy.account.ledger import Ledger
    from fdadp.privacy.study import Study

ABOUT = {
    "custodian": "Who answers for the data and publishes",
    "data": "What the data are",
    "use": "What the release is for",
    "region": "Where the persons are, and whose law applies",
    "author": "Who filled in this certificate",
}
"""What only people can say."""
DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


@dataclass(frozen=True)
class Certificate:
    """What a data protection officer signs.

    Attributes
    ----------
    name, date : str
        Of the data or of the fit, and when it was written (UTC).
    about : dict
        Texts of :data:`ABOUT`.
    epsilon : float
    delta, mu : float or None
        The promise, for everything that draws on the same budget.
    rho : float or None
        What it is in zCDP.
    spent : float
        ε at the same δ of what was released so far.
    recounted : float or None
        The same by dp_accounting (:mod:`~fdadp.privacy.certificate.ledger_recount`), where it is installed and knows
        the noise of every release.
    unit, neighbours : str
        Whom it protects, and what is compared.
    n : int or None
        Number of persons, where it is public.
    public : dict
        What was taken as public, with its source where the study names one.
    fits : tuple of Fit
    accuracy : tuple of str
        What forecasts expected, and what releases say of the models.
    study : str
        Name and id of the study, and its last entry; empty of a fit by itself.
    versions : dict
    signature : dict or None
        Of all of this, see :meth:`signed`.
    """

    name: str
    date: str
    about: dict[str, str]
    epsilon: float
    delta: float | None
    mu: float | None
    rho: float | None
    spent: float
    unit: str
    neighbours: str
    n: int | None
    public: dict[str, str]
    fits: tuple[Fit, ...]
    accuracy: tuple[str, ...] = ()
    study: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    not_covered: tuple[str, ...] = NOT_COVERED
    recounted: float | None = None
    signature: dict[str, str] | None = None

    @classmethod
    def of_ledger(cls, ledger: Ledger, forecasts: Sequence[Expected] = (), **about: str) -> Certificate:
        """Of one fit.

        Parameters
        ----------
        ledger : Ledger
        forecasts : sequence
            Of :func:`fdadp.plan`, for this fit's n, ε and δ.
        **about : str
            :data:`ABOUT`.

        Raises
        ------
        PrivacyError
            The ledger promises nothing, is of a simulation, or does not add up; nothing is certified then.
        """
        _refuse(ledger, verify_ledger(ledger))
        details = ledger.details
        assert ledger.epsilon is not None
        at, total = 0, float(details.get("total", 1.0))
        share = float(details.get("spent by its releases", total)) / total
        spent = float(details.get("spent by its releases, as epsilon", ledger.epsilon))
        asked = spent if STUDY in details else ledger.epsilon
        prefix = "public input: "
        public = {k.removeprefix(prefix): str(v) for k, v in details.items() if k.startswith(prefix)}
        purpose = public.pop("purpose", "")
        made_with = str(details.get("fdadp", ""))
        fit = Fit(
            at, now(), ledger.mechanism, purpose, {}, share, spent, "spent", tuple(ledger.releases), (), "", made_with
        )
        said_n = str(details.get("n", "")).partition(",")[0]
        n = int(said_n) if said_n.isdigit() else None
        return cls(
            name=str(details.get(STUDY, ledger.mechanism)),
            date=now(),
            about=_about(about, {"use": purpose}),
            epsilon=ledger.epsilon,
            delta=ledger.delta,
            **_measures(ledger.epsilon, ledger.delta, ledger.mu),
            spent=spent,
            unit=str(details.get("unit", "")),
            neighbours=NEIGHBOURS[str(details.get("adjacency", "zero-out"))],
            n=n,
            public=public,
            fits=(fit,),
            accuracy=tuple(expected_lines(forecasts, n, ledger.delta, [(fit.mechanism, asked)])),
            recounted=recounted(ledger.releases, ledger.delta, spent),
            study=f"{details[STUDY]}; last entry {details[LAST]}" if STUDY in details else "",
            versions=_versions(ledger.releases) | {k: str(details[k]) for k in ("numpy", "opendp") if k in details},
        )

    @classmethod
    def of_study(
        cls,
        study: Study,
        models: Sequence[str | os.PathLike[str]] = (),
        forecasts: Sequence[Expected] = (),
        **about: str,
    ) -> Certificate:
        """Of everything that drew on a study.

        Parameters
        ----------
        study : Study
        models : sequence of paths
            Files of models, whose own words on their accuracy are quoted.
        forecasts : sequence
            Of :func:`fdadp.plan`, for n, ε and δ of fits that drew on the study.
        **about : str
            What the study does not say: :data:`ABOUT`.

        Raises
        ------
        PrivacyError
            The study or a model is not as it was written; nothing is certified then.
        """
        wrong = study.verify(*models)
        if wrong:
            raise PrivacyError(f"study must be as it was written to be certified, and it is not: {'; '.join(wrong)}")
        said = tuple(line for m in models for line in model_lines(m))
        return cls.at_entries(study, study.entries, forecasts, said, **about)

    @classmethod
    def at_entries(
        cls,
        study: Study,
        lines: Sequence[Entry],
        forecasts: Sequence[Expected] = (),
        said: Sequence[str] = (),
        **about: str,
    ) -> Certificate:
        """Of a study as it stood after some of its entries.

        Parameters
        ----------
        study : Study
        lines : sequence of Entry
            From the first on.
        forecasts : sequence
        said : sequence of str
            What models say of their accuracy.
        **about : str
        """
        of, budget = study.facts, study.budget
        fits = tuple(fit for fit in fits_of(lines, lambda share: budget.epsilon_of(share * of["total"])) if fit.share)
        public = {f"bounds of {k}": _said(v) for k, v in of["bounds"].items()}
        public |= {f"{k} (fit {fit.number})": str(v) for fit in fits for k, v in fit.public.items()}
        use = "; ".join(dict.fromkeys(fit.purpose for fit in fits if fit.purpose))
        told = {"custodian": of.get("custodian") or "", "data": of.get("data") or "", "use": use}
        releases = [r for fit in fits for r in fit.releases]
        whole = any(r.delta is not None for r in releases)
        read = math.fsum(fit.share for fit in fits if fit.state != STATES["reserved"])
        spent = budget.epsilon_of(read * of["total"]) if read else 0.0
        costs = [(fit.mechanism, fit.epsilon) for fit in fits]
        expected = expected_lines(forecasts, of["n"], of["delta"], costs)
        return cls(
            name=of["name"],
            date=now(),
            about=_about(about, told),
            epsilon=of["epsilon"],
            delta=of["delta"],
            **_measures(of["epsilon"], of["delta"], None if whole else budget.mu),
            spent=spent,
            unit=of["unit"],
            neighbours=NEIGHBOURS[of["adjacency"]],
            n=of["n"],
            public=public,
            fits=fits,
            accuracy=(*expected, *said),
            recounted=recounted(releases, of["delta"], spent),
            study=f"{of['name']} ({of['id']}), made {of['created']}; last entry {lines[-1].position}, {lines[-1].hash}",
            versions=_versions(releases),
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        """Of all fits."""
        return tuple(release for fit in self.fits for release in fit.releases)

    @property
    def kinds_of_noise(self) -> str:
        """Names of the laws that noise was drawn from; empty before the first release."""
        return ", ".join(sorted({release.noise.partition(",")[0] for release in self.releases}))

    @property
    def adjacency(self) -> str:
        """How neighbours differ, by its name."""
        return next(name for name, text in NEIGHBOURS.items() if text == self.neighbours)

    @property
    def promise(self) -> str:
        """The guarantee in words: P(S) <= e^ε Q(S) + δ for everything that can be concluded."""
        besides = "" if self.delta is None else f" (and {self.delta:g} besides)"
        of = self.protected
        return (
            f"Take any conclusion about {of.about} that anybody draws from all that was and will be released under "
            f"this budget. They would have drawn it with nearly the same probability if {of.it} "
            f"{LEFT_OUT[self.adjacency]}. The probability changes by at most a factor of "
            f"{shown_up(math.exp(self.epsilon))}{besides}." + (self._of_rows if of is ROW else "")
        )

    @property
    def _of_rows(self) -> str:
        """What a guarantee of rows is for a person with several: a group of k has k μ, or k ε and more than k δ."""
        cost = "μ" if self.mu is not None else "ε" if self.delta is None else "ε, and more than k times this δ"
        return f" Protected is one row: a person with k rows has k times this {cost}."

    @property
    def protected(self) -> Protected:
        """What is protected: a person's data, or one row. A person may have several rows."""
        return ROW if self.unit.startswith("row") else PERSON

    @property
    def meaning(self) -> tuple[str, ...]:
        """What somebody who knows everybody else's data can learn, in sentences."""
        odds, replaced = self.odds, self.adjacency == "replace"

        def at_most(factor: float, exception: float) -> str:
            but = f", except for outcomes with a total probability of at most {shown_up(exception, 1)}"
            return f"change by at most a factor of {shown_up(factor)}{but if exception else ''}"

        of = self.protected
        who = f"For somebody who knows {of.others}, the odds"
        taking_part = f"{who} that {of.own} {of.was} used {at_most(odds.factor, odds.exception)}."
        values = f"{who} between two values of {of.own} {at_most(odds.values_factor, odds.values_exception)}."
        return (values,) if replaced else (taking_part, values)

    @property
    def odds(self) -> Odds:
        """What it means for one person."""
        return odds_of(self.epsilon, self.delta, self.mu, self.adjacency)

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """The guarantee at several δ, as (δ, ε); empty where there is one pair only."""
        mu = self.mu
        return () if mu is None or self.delta is None else tuple((d, epsilon_from_mu(mu, d)) for d in DELTAS)

    @property
    def label(self) -> dict[str, str]:
        """What experts want said of a release; see :mod:`fdadp.privacy.certificate.external_forms`."""
        return external_forms.label(self)

    def signed(self, key: str | os.PathLike[str], password: str | None = None) -> Certificate:
        """Sign it with a secret key of Ed25519; :meth:`fdadp.Study.verify` holds its JSON against the signature.

        Parameters
        ----------
        key : path
            PEM file, as :func:`~fdadp.privacy.certificate.signature.new_keys` makes it.
        password : str, optional
            Of the file.

        Raises
        ------
        PrivacyError
            It is no such key, or the password is wrong.
        """
        return replace(self, signature=sign(replace(self, signature=None).to_dict(), key, password))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, the odds among them."""
        odds = self.odds
        factors = {"after": odds.factor, "after, of values": odds.values_factor}
        numbers = asdict(odds) | {k: {str(p): odds.after(p, f) for p in PRIORS} for k, f in factors.items()}
        said = {"promise": self.promise, "meaning": self.meaning, "adjacency": self.adjacency}
        fits = [asdict(fit) | {"releases": [plain(release) for release in fit.releases]} for fit in self.fits]
        return asdict(self) | said | {"odds": numbers, "curve": self.curve, "label": self.label, "fits": fits}

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """One page of HTML without scripts, which prints on two sides."""
        return pages.page(self)

    def registry_entry(self, *, slug: str, sector: str | None = None, product: str = "Machine learning model") -> Any:
        """Return an entry for OpenDP's registry of deployments; see :mod:`fdadp.privacy.certificate.external_forms`."""
        return external_forms.entry(self, slug=slug, sector=sector, product=product)

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the page and, beside it, the JSON; returns both paths."""
        page, data = Path(path).with_suffix(".html"), Path(path).with_suffix(".json")
        for target, text in ((page, self.to_html()), (data, self.to_json())):
            write_text(target, text)
        return page, data

    def _repr_html_(self) -> str:
        return pages.fragment(self)


def _refuse(ledger: Ledger, wrong: tuple[str, ...]) -> None:
    if wrong or not ledger.private:
        raise PrivacyError(f"ledger must promise what it spent to be certified, got: {'; '.join(wrong)}")
    if not ledger.for_release:
        raise PrivacyError(
            "ledger must be for release to be certified, got a simulation's, whose noise can be repeated or undone, or "
            "one with draws that are not proved to be distributed as their noise"
        )


def _measures(epsilon: float, delta: float | None, mu: float | None) -> dict[str, Any]:
    """The promise in Gaussian DP and in zCDP: exact where it was counted so, implied by pure ε, else unknown."""
    if delta is None:
        return {"mu": mu_from_epsilon(epsilon), "rho": epsilon**2 / 2}
    return {"mu": mu, "rho": None if mu is None else mu**2 / 2}


def _about(given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    unknown = set(given) - set(ABOUT)
    if unknown:
        raise PrivacyError(f"about must be of {', '.join(ABOUT)}, got {sorted(unknown)[0]!r}")
    return {key: str(given.get(key) or known.get(key) or "") for key in ABOUT}


def _versions(releases: Sequence[Release]) -> dict[str, str]:
    noise = sorted({r.noise.partition(", ")[2] for r in releases if r.noise})
    return {"fdadp": __version__, "noise": "; ".join(noise) or "none drawn yet"}


def _said(what: Mapping[str, Any]) -> str:
    return in_words(what) + (f" (source: {what['source']})" if what.get("source") else " (no source was named)")
