"""The certificate as a page of HTML: no scripts, nothing from elsewhere, two sides of A4 when printed."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from fdadp._common.guarantee_in_words import composed, shown_up
from fdadp.privacy.certificate.external_forms import answers
from fdadp.privacy.certificate.odds import PRIORS
from fdadp.privacy.certificate.release_names import meaning
from fdadp.privacy.guarantee_checks import LEFT_OUT

if TYPE_CHECKING:
    from fdadp.privacy.certificate.certificate import Certificate

STYLE = (files("fdadp.privacy.certificate") / "page.css").read_text(encoding="utf-8")


def page(of: Certificate) -> str:
    """The whole page."""
    title = html.escape(f"Certificate of differential privacy: {of.name}")
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f'<!DOCTYPE html><html lang="en">{head}<body>{fragment(of)}</body></html>\n'


def fragment(of: Certificate) -> str:
    """What stands on the page, for pages of others."""
    return (
        f'<style>\n{STYLE}</style><div class="certificate">'
        f"<h1>Certificate of differential privacy</h1><p><b>{html.escape(of.name)}</b>; {html.escape(of.date)}</p>"
        f'<div class="promise">{_promise(of)}</div>'
        + "".join(f"<section>{part}</section>" for part in _parts(of))
        + "</div>"
    )


def _parts(of: Certificate) -> Iterable[str]:
    yield '<div class="two"><div>' + _odds(of) + "</div><div>" + _measures(of) + "</div></div>"
    yield "<h2>Whom, and against what</h2>" + _whom(of)
    yield "<h2>What was released</h2>" + _releases(of)
    yield '<h2>What is not protected</h2><div class="halves">' + _lines(of.not_covered) + "</div>"
    yield "<h2>What was taken as public</h2>" + _pairs(of.public.items(), "Nothing beside the settings.", "small tight")
    yield "<h2>How accurate</h2>" + _lines(of.accuracy)
    above = {"Interpretation": "As above, in odds and probabilities."}
    above |= {"Utility": "As above, under How accurate."} if of.accuracy else {}
    yield "<h2>Privacy label</h2>" + _pairs((of.label | above).items(), "", "q small tight")
    yield "<h2>What NIST SP 800-226 asks</h2>" + _pairs(answers(of), "", "q small tight")
    yield "<h2>Software</h2>" + _pairs(of.versions.items(), "", "q small") + _study(of)
    yield _signatures(of)


def _promise(of: Certificate) -> str:
    n = "a private number of" if of.n is None else f"{of.n:,}"
    return (
        f"<p><b>{html.escape(of.promise)}</b></p><p>{_symbols(of)}; protected: each "
        f"{html.escape(of.unit.partition(' (')[0])} among {n} {of.protected.units}.</p>"
    )


def _symbols(of: Certificate) -> str:
    return f"ε = {of.epsilon:g}" + (" (pure)" if of.delta is None else f", δ = {of.delta:g}")


def _odds(of: Certificate) -> str:
    odds, replaced, one = of.odds, of.adjacency == "replace", of.protected
    kinds = [(f"between two values of {one.own}", odds.values_factor)]
    kinds = kinds if replaced else [(f"that {one.own} {one.was} used", odds.factor), *kinds]
    head = "".join(f'<th class="n">{name}</th>' for name, _ in kinds)
    rows = "".join(
        f'<tr><td class="n">{prior:.0%}</td>'
        + "".join(f'<td class="n">{_between(*odds.after(prior, factor))}</td>' for _, factor in kinds)
        + "</tr>"
        for prior in PRIORS
    )
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in of.meaning)
    whom = f"{one.units} that were {'exchanged' if replaced else 'not used'}"
    but = "The table leaves out the exceptions named above. " if odds.exception or odds.values_exception else ""
    return (
        f'<h2>In odds and probabilities</h2><ul>{lines}</ul><table><tr><th class="n">before</th>{head}</tr>{rows}'
        f"</table><p>An attacker who knows {one.others}, and falsely accuses 5 % of {whom}, can identify "
        f"at most {math.ceil(odds.power * 1000) / 10:g} % of the {one.units} that were used (5 % by guessing). {but}"
        "Others may know that persons are alike, and learn about you from them. They would also do so if your data "
        f"{LEFT_OUT[of.adjacency]}.</p>"
    )


def _between(low: float, high: float) -> str:
    return f"{math.floor(low * 1e3) / 10:g} to {math.ceil(high * 1e3) / 10:g} %"


def _measures(of: Certificate) -> str:
    rows = [("(ε, δ)", _symbols(of))]
    rows += [] if of.mu is None else [("μ (Gaussian DP)", f"{shown_up(of.mu)}")]
    rows += [] if of.rho is None else [("ρ (zCDP)", f"{shown_up(of.rho)}")]
    rows += [("spent so far, as ε", f"{shown_up(of.spent)}" if of.spent else "0")]
    rows += [] if of.recounted is None else [("recounted by dp_accounting", f"{of.recounted:.6f}")]
    return "<h2>In each measure</h2>" + _pairs(rows, "", "q") + _picture(of)


def _picture(of: Certificate) -> str:
    """ε against δ where the guarantee is a curve; else the probabilities after against those before."""
    if of.curve:
        points = [(-math.log10(d), eps) for d, eps in of.curve]
        x, y = "δ: 10⁻⁴ to 10⁻⁸", "ε"
        (x0, x1), y1 = (4.0, 8.0), max(eps for _, eps in points) * 1.1
        lines, marks = [points], [(p, f"{shown_up(p[1], 3)}") for p in points[::2]]
    else:
        grid = [i / 40 for i in range(41)]
        lines = [[(p, of.odds.after(p, of.odds.factor)[side]) for p in grid] for side in (0, 1)]
        x, y, (x0, x1), y1, marks = "probability before", "after", (0.0, 1.0), 1.0, []

    def place(p: tuple[float, float]) -> tuple[float, float]:
        return 26 + 200 * (p[0] - x0) / (x1 - x0), 72 - 64 * p[1] / y1

    paths = "".join(
        '<polyline fill="none" stroke="#14507a" stroke-width="1.6" points="'
        + " ".join("{:.1f},{:.1f}".format(*place(p)) for p in line)
        + '"/>'
        for line in lines
    )
    texts = "".join(
        '<circle cx="{:.1f}" cy="{:.1f}" r="2" fill="#14507a"/>'.format(*place(p))
        + f'<text x="{place(p)[0]:.1f}" y="{place(p)[1] - 5:.1f}" font-size="8" text-anchor="middle">{text}</text>'
        for p, text in marks
    )
    return (
        f'<svg viewBox="0 0 240 88" role="img" aria-label="{html.escape(y)} against {html.escape(x)}">'
        '<path d="M26 4V72H230" fill="none" stroke="#8792a2"/>'
        f'{paths}{texts}<text x="128" y="84" font-size="8" text-anchor="middle">{x}</text>'
        f'<text x="6" y="40" font-size="8">{y}</text></svg>'
    )


def _whom(of: Certificate) -> str:
    about = of.about
    rows = [
        ("Unit", of.unit),
        ("Compared", of.neighbours),
        ("Data", about["data"] or "not said"),
        ("Use", about["use"] or "not said"),
        ("Custodian", ", ".join(filter(None, (about["custodian"], about["region"]))) or "not said"),
        ("Written by", about["author"] or "not said"),
    ]
    return _pairs(rows, "", "q small")


def _releases(of: Certificate) -> str:
    if not of.fits:
        return "<p>Nothing yet.</p>"
    names = ("fit", "mechanism", "what, and how many values", "ε alone", "share", "models")
    head = "<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"
    body = ""
    for fit in of.fits:
        counts: dict[str, int] = {}
        for r in fit.releases:
            name = r.name.rstrip("0123456789 ")
            counts[name] = counts.get(name, 0) + r.size
        what = ", ".join(f"{_named(name)} ({size})" for name, size in counts.items()) or "nothing"
        number = str(fit.number) if fit.number else ""
        body += (
            f"<tr><td>{number}<br>{fit.time[:10]}</td>"
            f"<td>{html.escape(fit.mechanism)}<br>{html.escape(fit.purpose or 'no purpose was named')}</td>"
            f"<td>{what}</td><td class='n'>{shown_up(fit.epsilon)}</td>"
            f"<td class='n'>{fit.share:.2%}</td>"
            f"<td><code>{'<br>'.join(m[:16] for m in fit.models) or 'none saved'}</code></td></tr>"
        )
    return f'<table class="small">{head}{body}</table><p>{composed(of.delta)}</p>'


def _named(release: str) -> str:
    """The name of a release, which says what it means where a mouse rests on it."""
    name, what = html.escape(release), html.escape(meaning(release))
    return f'<abbr title="{what}">{name}</abbr>' if what else name


def _pairs(rows: Iterable[tuple[str, str]], empty: str, kind: str) -> str:
    made = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in rows)
    return f'<table class="{kind}">{made}</table>' if made else f"<p>{empty}</p>"


def _lines(lines: Iterable[str]) -> str:
    made = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{made}</ul>" if made else "<p>The plan and the notes of each model say it; none was given here.</p>"


def _study(of: Certificate) -> str:
    return f"<p>Study: <code>{html.escape(of.study)}</code></p>" if of.study else ""


def _signatures(of: Certificate) -> str:
    who = html.escape(of.about["custodian"] or "Custodian")
    signed = ""
    if of.signature is not None:
        key = f"{of.signature['algorithm']} {of.signature['public key']}"
        signed = f"<p>The JSON of this page is signed with the key <code>{html.escape(key)}</code></p>"
    return f'{signed}<table class="sign"><tr><td>{who}, date</td><td>Data protection officer, date</td></tr></table>'
