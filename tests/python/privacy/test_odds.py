"""Each sentence of a certificate about odds and probabilities, against exact laws of the worst mechanisms.

The worst pair of laws that is μ-GDP is found by a linear program over log-ratios; Gaussian and Laplace releases of one
person's value are computed in closed form; persons who are tied, by enumeration.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
import re

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from fdadp.privacy import Budget, Cohort
from fdadp.privacy.account.epsilon_mu_rho import delta_from_mu, mu_from
from fdadp.privacy.certificate.odds import odds_of

ADJACENCIES = ("zero-out", "add-remove", "replace")


def certificate(epsilon, delta, adjacency):
    n = None if adjacency == "add-remove" else 400
    persons = np.arange(400)
    cohort = Cohort(np.zeros((400, 1)), groups=persons, budget=Budget(epsilon, delta), n=n, adjacency=adjacency)
    cohort.sum(lambda r: r[0], clip=1.0, share=1.0, name="sum")
    return cohort.ledger.certificate()


def claims(of):
    """(what, factor, exception) of each sentence of the page about odds."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", of.to_html().partition("</style>")[2]))
    found = re.findall(
        r"odds([^.:]*?)change by at most a factor of ([\d.e+]+\d)(?:[^.]*?probability of at most ([\d.e-]+\d))?", text
    )
    return [(what, float(factor), float(but or 0)) for what, factor, but in found]


def beyond(mu, factor):
    """Probability, under N(μ, 1), that its density and that of N(0, 1) are further apart than the factor."""
    epsilon = math.log(factor)
    return norm.sf(epsilon / mu - mu / 2) + norm.sf(epsilon / mu + mu / 2)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (2.0, 1e-5)])
def test_sentences_about_odds_hold_of_gaussian_releases(epsilon, delta, adjacency):
    """A sum of values in [-1, 1]: absent is 0, so that two values are two steps apart."""
    mu = mu_from(epsilon, delta)
    made = certificate(epsilon, delta, adjacency)
    said = claims(made)
    apart = {True: mu, False: mu if adjacency == "replace" else 2 * mu}
    assert said
    for what, factor, exception in said:
        only_presence = "were used" in what and "data are" not in what
        true = beyond(apart[only_presence], factor)
        assert true <= exception <= 15 * true, (what, factor, exception, true)
    assert any("between two values" in what for what, _, _ in said)
    assert all(line.startswith("For somebody who knows all other persons' data, the odds") for line in made.meaning)
    assert any("were used" in what for what, _, _ in said) == (adjacency != "replace")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sentences_about_odds_hold_of_laplace_releases(adjacency):
    """Values -1, 0 (absent) and 1 and Laplace noise of scale 1/ε: odds at a result t, for every t."""
    t, epsilon = np.linspace(-4, 4, 801), 0.7
    log = {x: -epsilon * np.abs(t - x) for x in (-1, 0, 1)}
    presence = np.exp(np.abs(log[1] - log[0]).max())
    if adjacency == "replace":  # a step goes from any value to any other: half the rate
        log = {x: v / 2 for x, v in log.items()}
    values = np.exp(np.abs(log[1] - log[-1]).max())
    for what, factor, exception in claims(certificate(epsilon, None, adjacency)):
        true = presence if "were used" in what and "data are" not in what else values
        assert exception == 0 and true <= factor <= 1.01 * true, (what, factor, true)


def worst_pair(mu, epsilon):
    """Largest P(|log P/Q| > ε) of all pairs that are no easier to tell apart than N(0, 1) and N(μ, 1)."""
    reach = 3 * epsilon
    ratios = np.linspace(-reach, reach, 601) + reach / 600 * 1e-3  # none of them ε itself
    p_over_q = np.exp(ratios)
    rows, limits = [], []
    for e in np.linspace(0, reach, 151):
        rows.append(np.maximum(p_over_q - math.exp(e), 0))  # P(S) - e^ε Q(S) at the best S
        rows.append(np.maximum(1 - math.exp(e) * p_over_q, 0))  # and the other way round
        limits += [delta_from_mu(mu, e)] * 2
    both = np.stack([np.ones_like(ratios), p_over_q])
    found = linprog(
        -p_over_q * (np.abs(ratios) > epsilon) * 1e4, np.stack(rows) * 1e4, np.array(limits) * 1e4, both, [1, 1]
    )
    assert found.success
    return -found.fun / 1e4


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (2.0, 1e-4)])
def test_the_exception_covers_both_sides_and_is_attained(epsilon, delta):
    mu = mu_from(epsilon, delta)
    said = odds_of(epsilon, delta, mu)
    true = worst_pair(mu, epsilon)
    assert 0.9 * said.exception <= true <= said.exception
    assert true > 1.05 * said.exception / (1 + math.exp(-epsilon))  # one side is not enough
    far = odds_of(epsilon, delta, mu, "add-remove")
    assert worst_pair(2 * mu, 2 * epsilon) <= far.values_exception
    assert far.values_factor == pytest.approx(math.exp(2 * epsilon))
    one = odds_of(epsilon, delta, mu, "replace")
    assert (one.values_factor, one.values_exception) == (one.factor, one.exception)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_pair_alone(adjacency):
    """Where only (ε, δ) is known: the worst pair has atoms of δ, and e^ε elsewhere."""
    epsilon, delta = 1.0, 1e-4
    said = odds_of(epsilon, delta, None, adjacency)
    mu = mu_from(epsilon, delta)
    assert beyond(mu, said.factor) <= said.exception
    assert beyond(mu if adjacency == "replace" else 2 * mu, said.values_factor) <= said.values_exception
    assert 11 * delta < said.exception < 22 * delta


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_persons_who_are_tied(epsilon):
    """Two persons of one household have the same bit, and both send it with odds of e^ε.

    The odds of your bit change by e^2ε, also by what the other one sends: no sentence about everybody's odds is true.
    That any conclusion is nearly as probable with your data left out is true of it, as the first sentence says.
    """
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def law(yours, theirs):
        chance = {None: 0.5, 0: 1 - keep, 1: keep}
        return {
            (a, b): abs(1 - a - chance[yours]) * abs(1 - b - chance[theirs])
            for a, b in itertools.product((0, 1), repeat=2)
        }

    made = certificate(epsilon, None, "zero-out")
    odds = law(1, 1)[1, 1] / law(0, 0)[1, 1]
    assert odds == pytest.approx(math.exp(2 * epsilon)) and odds > made.odds.factor * 1.3
    said = float(re.search(r"changes by at most a factor of ([\d.]+\d)", made.promise).group(1))
    for bit in (0, 1):
        with_you, without = law(bit, bit), law(None, bit)
        for k in range(1, 5):
            for event in itertools.combinations(with_you, k):  # of concluding anything at all
                inside, outside = sum(with_you[o] for o in event), sum(without[o] for o in event)
                assert max(inside / outside, outside / inside) <= said
    text = made.to_html()
    assert "if your data had been left out" in text and "believed before" not in text


def test_a_conclusion_with_a_delta():
    """P(S) <= e^ε Q(S) + δ of the half-lines of a Gaussian release, which are its worst conclusions."""
    made = certificate(1.0, 1e-6, "replace")
    numbers = re.search(
        r"exchanged for any others. The probability changes by at most a factor of ([\d.]+) \(and (\S+) besides\)",
        made.promise,
    )
    factor, besides = map(float, numbers.groups())
    x = np.linspace(-6, 8, 2001)
    for shift in (made.mu, -made.mu):
        assert (norm.sf(x, shift) <= factor * norm.sf(x) + besides).all()
        assert (norm.cdf(x, shift) <= factor * norm.cdf(x) + besides).all()
    assert made.promise in made.label["Interpretation"]
    assert dataclasses.replace(made, delta=None).promise.endswith("2.72.")
