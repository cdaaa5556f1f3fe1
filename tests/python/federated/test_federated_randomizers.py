"""The local randomisers: exact odds, unbiased estimates, outputs that do not depend on the record, audits."""

from __future__ import annotations

import decimal
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fdadp.audit import black_box_audit
from fdadp.errors import InputError
from fdadp.federated import LocalParameters, randomizer, shuffled_epsilon
from fdadp.federated.local_dp.gradient_randomizers import (
    FULL,
    MECHANISMS,
    Coins,
    PrivUnit,
    normals,
    threshold,
    uniforms,
)
from fdadp.federated.local_dp.user_gradients import LocalUsers
from fdadp.federated.local_dp.user_guarantee import shuffled_delta

every = pytest.mark.parametrize("name", list(MECHANISMS))
SIGMAS = 4.75  # two-sided probability 2e-6 a comparison


class Fixed:
    """Words that are given, in order."""

    secure = False

    def __init__(self, *blocks):
        self.blocks = [np.asarray(b, dtype=np.uint64) for b in blocks]

    def words(self, rows, columns):
        block = self.blocks.pop(0)
        assert block.shape == (rows, columns)
        return block


class Recorded(Coins):
    def __init__(self, seed):
        super().__init__(seed)
        self.blocks = []

    def words(self, rows, columns):
        self.blocks.append(super().words(rows, columns))
        return self.blocks[-1]


# ------------------------------------------------------------------ coins


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 3.0, 12.0, 40.0])
def test_odds_of_a_coin_are_the_largest_below_the_claim(epsilon):
    keep = threshold(epsilon)
    with decimal.localcontext() as context:
        context.prec = 80
        limit = Fraction(decimal.Decimal(epsilon).exp())
    assert Fraction(keep, FULL - keep) <= limit
    assert Fraction(keep + 1, FULL - keep - 1) > limit or keep == FULL - 1


def test_coins_are_the_systems_unless_seeded():
    assert Coins().secure and not Coins(0).secure
    a, b = (Coins().words(2, 3) for _ in range(2))
    assert a.dtype == np.uint64 and a.shape == (2, 3) and (a != b).all()
    np.testing.assert_array_equal(Coins(7).words(2, 3), Coins(7).words(2, 3))
    both = Coins(7)
    np.testing.assert_array_equal(np.vstack([both.words(1, 3), both.words(1, 3)]), Coins(7).words(2, 3))


def test_extreme_words_are_numbers():
    ends = np.array([[0, FULL - 1, FULL // 2]], dtype=np.uint64)
    assert ((uniforms(ends) > 0) & (uniforms(ends) < 1)).all()
    assert np.isfinite(normals(ends)).all()


@pytest.mark.parametrize("seed", [None, 0])
def test_all_64_bits_are_used(seed):
    words = Coins(seed).words(20_000, 1)[:, 0]
    shares = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(axis=0)
    sigmas = norm.isf(1e-6 / 64 / 2)  # the largest of 64, two-sided: one run in a million
    assert np.abs(shares - 0.5).max() < sigmas * 0.5 / math.sqrt(20_000)


# ------------------------------------------------------------------ kappa, both readings


@pytest.mark.parametrize(("half", "kappa"), [(True, 0.4), (False, 0.8)])
def test_keep_rate_of_both_readings(half, kappa):
    mechanism = randomizer("cldp", 5, alpha=0.8, half_exponent=half)
    assert mechanism.kappa == kappa and mechanism.epsilon == pytest.approx(5 * kappa)
    assert mechanism.rho == pytest.approx(5 * kappa**2 / 2)
    n = 40_000
    for sign in (1.0, -1.0):  # entries of ±1 are rounded to themselves
        reports = mechanism(np.full((n, 5), sign), Coins(1))
        bits = np.unpackbits(reports, axis=1, count=5, bitorder="little")
        kept = (bits == (sign > 0)).mean(axis=0)
        p = math.exp(kappa) / (1 + math.exp(kappa))
        assert np.abs(kept - p).max() < SIGMAS * math.sqrt(p * (1 - p) / n)


def test_epsilon_and_alpha_are_one_thing():
    assert randomizer("cldp", 6, epsilon=3.0).kappa == randomizer("cldp", 6, alpha=1.0).kappa == 0.5


# ------------------------------------------------------------------ exact laws by enumeration


def law(mechanism, gradient):
    """Exact probabilities of the reports of a gradient of signs: the mechanism run on every toss of its coins.

    A word decides by being below the threshold or not, so two of them stand for all, weighted by how many they are.
    """
    D, keep = mechanism.dimensions, mechanism._keep
    weights = {keep - 1: keep, keep: FULL - keep}
    out = Counter()
    if mechanism.name == "cldp":
        for tosses in itertools.product(weights, repeat=D):
            words = [[FULL // 2] * D + list(tosses)]
            report = mechanism(np.array([gradient]), Fixed(words)).tobytes()
            out[report] += Fraction(math.prod(weights[t] for t in tosses), FULL**D)
    else:
        for at, toss in itertools.product(range(D), weights):
            report = mechanism(np.array([gradient]), Fixed([[at, FULL // 2, toss]])).tobytes()
            out[report] += Fraction(weights[toss], D * FULL)
    return out


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("name", ["cldp", "one_coordinate"])
def test_exact_ratio_of_probabilities(name, dimensions):
    mechanism = randomizer(name, dimensions, epsilon=1.7)
    signs = list(itertools.product([-1.0, 1.0], repeat=dimensions))
    laws = {s: law(mechanism, s) for s in signs}
    outputs = set().union(*laws.values())
    assert len(outputs) == (2**dimensions if name == "cldp" else 2 * dimensions)
    assert all(sum(p.values()) == 1 and set(p) == outputs for p in laws.values())
    worst = 0.0
    for a, b in itertools.permutations(signs, 2):
        ratio = max(math.log(laws[a][t]) - math.log(laws[b][t]) for t in outputs)
        worst = max(worst, ratio)
        if name == "cldp":  # the condensed-local claim itself
            hamming = sum(x != y for x, y in zip(a, b, strict=True))
            assert ratio <= mechanism.kappa * hamming * (1 + 1e-12)
    assert worst <= mechanism.epsilon * (1 + 1e-12)
    assert worst == pytest.approx(mechanism.epsilon) == pytest.approx(mechanism.exact_epsilon)


def test_rounding_to_signs_has_the_right_mean():
    """g = 0.5 is +1 for three quarters of the words."""
    mechanism = randomizer("cldp", 2, epsilon=700 - 1e-9)  # signs kept
    for word, bits in ((0, 3), (3 * FULL // 4 - 2**12, 3), (3 * FULL // 4 + 2**12, 0), (FULL - 1, 0)):
        report = mechanism(np.array([[0.5, 0.5]]), Fixed([[word, word, 0, 0]]))
        assert report.tolist() == [[bits]]


@every
def test_reports_are_documented_bytes(name):
    mechanism = randomizer(name, 9, epsilon=2.0)
    g = np.random.default_rng(0).uniform(-1, 1, (50, 9))
    reports = mechanism(g, Coins(0))
    assert reports.dtype == np.uint8 and reports.shape == (50, mechanism.width)
    estimates = mechanism.estimate(reports)
    np.testing.assert_allclose(np.linalg.norm(estimates, axis=1), mechanism.length, rtol=1e-9)
    one = reports[3].tobytes()  # read as the text of `format` says
    if name == "cldp":
        word = int.from_bytes(one, "little")
        by_hand = np.array([1.0 if word >> j & 1 else -1.0 for j in range(9)]) * mechanism.length / 3
    elif name == "one_coordinate":
        at, plus = divmod(int.from_bytes(one, "little"), 2)
        by_hand = np.zeros(9)
        by_hand[at] = mechanism.length if plus else -mechanism.length
    else:
        by_hand = np.array(np.frombuffer(one, "<f8")) * mechanism.length
    np.testing.assert_allclose(estimates[3], by_hand)


# ------------------------------------------------------------------ outputs that do not depend on the record


GRADIENTS = np.array([[1, 1, 1], [-1, 1, 0.3], [0, 0, 0], [1e-200, 0, -1e-200], [-1, -1, -1], [0.1, 0.2, -1 / 3]])


def test_a_direction_is_sent_as_drawn_or_turned_round():
    mechanism = randomizer("l2_ball", 3, epsilon=1.0)
    coins = Recorded(3)
    words = np.repeat(coins.words(1, 5), len(GRADIENTS), axis=0)
    direction = normals(words[0, :3])
    direction /= np.sqrt((direction**2).sum())
    allowed = {direction.tobytes(), (-direction).tobytes()}
    seen = Counter()
    for toss in (mechanism._keep - 1, mechanism._keep):
        words[:, 4] = toss
        sent = [row.tobytes() for row in mechanism(GRADIENTS, Fixed(words))]
        assert set(sent) <= allowed
        for i, report in enumerate(sent):
            seen[i, report] += 1
    assert len(seen) == 2 * len(GRADIENTS)  # each record can send both, with odds of the coin's


def test_directions_of_caps_are_chosen_among_those_drawn():
    mechanism = PrivUnit(3, 3.0)
    coins = Recorded(5)
    for g in GRADIENTS:
        coins.blocks.clear()
        report = mechanism(g[None], coins)
        drawn = normals(np.vstack(coins.blocks[1:]))
        drawn /= np.sqrt(np.square(drawn).sum(axis=1, keepdims=True))
        assert report[0].tobytes() in {row.tobytes() for row in drawn}


def test_the_time_of_a_cap_does_not_tell_the_coin():
    """The same number of words is drawn, whichever side of the cap is sent."""
    mechanism = PrivUnit(3, 3.0)
    for seed in range(20):
        drawn = []
        for toss in (0, FULL - 1):
            coins = Recorded(seed)
            original = coins.words

            def words(rows, columns, original=original, toss=toss):
                block = original(rows, columns)
                if columns == 2:
                    block[:, 1] = toss
                return block

            coins.words = words
            mechanism(np.ones((1, 3)), coins)
            drawn.append(sum(b.size for b in coins.blocks))
        assert drawn[0] == drawn[1]


# ------------------------------------------------------------------ unbiased, with the error that is said


@every
@pytest.mark.parametrize("epsilon", [0.7, 5.0])
@pytest.mark.parametrize("gradient", [(1, 1, 1, 1), (0.8, -0.5, 0.01, -1), (0, 0, 0, 0), (1e-200, 0, 0, 0)])
def test_estimates_are_unbiased(name, epsilon, gradient):
    mechanism = randomizer(name, 4, epsilon=epsilon)
    n = 40_000
    g = np.array(gradient, dtype=float)
    estimates = mechanism.estimate(mechanism(np.tile(g, (n, 1)), Coins(11)))
    error = estimates.mean(axis=0) - g
    assert np.abs(error / (estimates.std(axis=0) / math.sqrt(n))).max() < SIGMAS
    squares = np.square(estimates - g).sum(axis=1)
    spread = max(squares.std() / math.sqrt(n), 1e-9)
    expected = mechanism.length**2 - np.square(g).sum()
    assert abs(squares.mean() - expected) < SIGMAS * spread + 1e-9 * mechanism.length**2


def area(D):
    return math.gamma(D / 2) / math.gamma((D - 1) / 2) / math.sqrt(math.pi)


@pytest.mark.parametrize("D", [3, 6, 20])
def test_length_of_the_half_space_by_integration(D):
    mean = 2 * quad(lambda t: t * area(D) * (1 - t * t) ** ((D - 3) / 2), 0, 1)[0]
    expected = math.sqrt(D) / mean / math.tanh(0.9 / 2)
    assert randomizer("l2_ball", D, epsilon=0.9).length == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("D", [2, 3, 6, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
def test_caps_by_integration(D, epsilon):
    """q, E v'u and the exact ε of PrivUnit, from the density of one coordinate."""
    mechanism = PrivUnit(D, epsilon)

    def over(f, low, high):  # t = sin(x), so that D = 2 has no pole
        ends = math.asin(low), math.asin(high)
        return quad(lambda x: f(math.sin(x)) * area(D) * math.cos(x) ** (D - 2), *ends, epsabs=1e-14)[0]

    q = over(lambda t: 1.0, mechanism.gamma, 1.0)
    assert mechanism.q == pytest.approx(q, rel=1e-8)
    p = mechanism.p
    inside, outside = p / q, (1 - p) / (1 - q)
    mean = over(lambda t: t, mechanism.gamma, 1.0) * inside + over(lambda t: t, -1.0, mechanism.gamma) * outside
    assert mechanism.length == pytest.approx(math.sqrt(D) / mean, rel=1e-7)
    exact = math.log(inside) - math.log(outside)
    assert exact == pytest.approx(math.log(p / (1 - p)) + math.log((1 - q) / q))
    assert epsilon - 1e-7 < exact < epsilon + 1e-8 and mechanism.exact_epsilon < epsilon
    assert mechanism.length <= randomizer("l2_ball", D, epsilon=epsilon).length * (1 + 1e-6)


@every
def test_the_exact_epsilon_is_within_the_claim(name):
    for epsilon in (0.01, 0.5, 3.0, 20.0, 100.0):
        mechanism = randomizer(name, 6, epsilon=epsilon)
        assert mechanism.exact_epsilon <= epsilon * (1 + 1e-13)
        assert mechanism.rho <= epsilon**2 / 2 * (1 + 1e-13)


def test_where_condensed_local_is_better_and_where_worse():
    """The specification's crossover: between ε = 4 and 6 for D = 6."""
    lengths = {e: [randomizer(n, 6, epsilon=e).length for n in ("cldp", "one_coordinate")] for e in (4.0, 6.0)}
    assert lengths[4.0][0] > lengths[4.0][1] and lengths[6.0][0] < lengths[6.0][1]


# ------------------------------------------------------------------ audits, by a hostile server


def scores(name, settings, record, label, mutate=None, n=60_000, seed=0):
    """One score a report of the same record, at a θ for which the gradients of two near records point apart."""
    d = 2
    params = LocalParameters([0, 1], [-1.0] * d, [1.0] * d, mechanism=name, **settings)
    mechanism = params.randomizer
    if mutate:
        mutate(mechanism)
    users = LocalUsers(params, np.tile(record, (n, 1)), np.full(n, label), Coins(seed))
    slope = 1e9
    theta = np.array([-slope * d * (1 - 5e-7), *[slope] * d])  # +1000 at (1, 1), -1000 at 1 - 1e-6
    estimates = mechanism.estimate(users.reports(np.arange(n), theta))
    along = estimates.sum(axis=1) / mechanism.length / math.sqrt(d + 1)
    return (
        np.where(np.abs(along) >= mechanism.gamma, np.sign(along), 0.0)
        if name == "privunit"
        else np.sign(along) * (2.0 if name != "cldp" else np.abs(along).round(9))
    )


def audit(name, settings, claim, mutate=None):
    present = scores(name, settings, [1.0, 1.0], 0, mutate, seed=1)
    absent = scores(name, settings, [1 - 1e-6, 1 - 1e-6], 1, mutate, seed=2)
    return black_box_audit(present, absent, epsilon=claim)


CLAIMS = [
    ("cldp", {"epsilon": 1.5}, 1.5),
    ("cldp", {"alpha": 1.0}, 1.5),
    ("cldp", {"alpha": 1.0, "half_exponent": False}, 3.0),
    ("one_coordinate", {"epsilon": 1.5}, 1.5),
    ("l2_ball", {"epsilon": 1.5}, 1.5),
    ("privunit", {"epsilon": 1.5}, 1.5),
]


@pytest.mark.parametrize(("name", "settings", "claim"), CLAIMS)
def test_lower_bounds_stay_below_the_claim_and_come_near(name, settings, claim):
    found = audit(name, settings, claim)
    assert found.passed, str(found)
    assert found.found > 0.85 * claim  # the claim is no idle bound


def wrong_exponent(mechanism):
    """Kept with twice the log-odds: κ = α where κ = α/2 is claimed."""
    name = "_inside" if mechanism.name == "privunit" else "_keep"
    keep = getattr(mechanism, name)
    setattr(mechanism, name, threshold(math.log(keep / (FULL - keep)) + mechanism.epsilon / 3))


@pytest.mark.parametrize(("name", "settings", "claim"), CLAIMS)
def test_a_wrong_exponent_is_caught(name, settings, claim):
    assert not audit(name, settings, claim, wrong_exponent).passed


def test_the_readings_are_not_taken_for_each_other():
    """κ = α run under the claim of κ = α/2."""
    assert not audit("cldp", {"alpha": 1.0, "half_exponent": False}, 1.5).passed


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"mechanism": "laplace"},
            "mechanism must be one of 'cldp', 'one_coordinate', 'l2_ball', 'privunit', got 'laplace'",
        ),
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number above 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number above 0"),
        ({"epsilon": 1e-9}, "epsilon must be at least 1e-06"),
        ({"epsilon": True}, "epsilon must be a finite number above 0"),
        ({"epsilon": None}, "epsilon or alpha must be given"),
        ({"alpha": 1.0}, "epsilon or alpha must be given, not both"),
        ({"alpha": 1.0, "epsilon": None, "mechanism": "l2_ball"}, 'alpha must be left out unless mechanism is "cldp"'),
        ({"alpha": 0.0, "epsilon": None}, "alpha must be a finite number above 0"),
        ({"dimensions": 1}, "dimensions must be a whole number of at least 2"),
    ],
)
def test_wrong_settings_are_named(settings, text):
    mechanism, dimensions = settings.pop("mechanism", "cldp"), settings.pop("dimensions", 4)
    with pytest.raises(InputError, match=text):
        randomizer(mechanism, dimensions, **{"epsilon": 1.0} | settings)


# ------------------------------------------------------------------ shuffling


def closed_form(e0, n, delta):
    """Theorem 3.1 of Feldman, McMillan & Talwar (2021), for e0 <= ln(n/(16 ln(2/delta)))."""
    assert e0 <= math.log(n / (16 * math.log(2 / delta)))
    return math.log1p(
        math.tanh(e0 / 2) * (8 * math.sqrt(math.exp(e0) * math.log(4 / delta) / n) + 8 * math.exp(e0) / n)
    )


@pytest.mark.parametrize(
    ("e0", "n", "delta"), [(1.0, 10_000, 1e-6), (0.5, 1000, 1e-5), (2.0, 10_000, 1e-6), (4.0, 10**5, 1e-6)]
)
def test_the_numeric_bound_is_a_quarter_to_a_fifth_of_the_closed_one(e0, n, delta):
    assert 4 < closed_form(e0, n, delta) / shuffled_epsilon(e0, n, delta) < 5


@pytest.mark.parametrize(
    ("e0", "n", "delta", "now", "once"),
    [(0.5, 1000, 1e-5, 0.0516, 0.0583), (1.0, 10_000, 1e-6, 0.0432, 0.0530), (2.0, 10_000, 1e-6, 0.1144, 0.1550)],
)
def test_more_reports_are_clones_than_were_counted_in_2021(e0, n, delta, now, once):
    """`once` has C ~ Bin(n - 1, e^-ε0), `now` C ~ Bin(n - 1, 2/(e^ε0 + 1))."""
    assert shuffled_epsilon(e0, n, delta) == pytest.approx(now, rel=1e-3) and now < once / 1.12


def test_it_falls_with_the_users_and_never_exceeds_that_of_one_report():
    values = [shuffled_epsilon(1.0, n, 1e-6) for n in (1, 2, 10, 1_000, 10_000, 1_000_000, 10**9)]
    assert values == sorted(values, reverse=True) and values[0] <= 1.0 and values[-1] < 1e-3
    assert shuffled_epsilon(30.0, 10, 1e-9) == pytest.approx(30.0, rel=1e-2)
    for bad in ({"epsilon0": 0.0}, {"n": 0}, {"n": 10.5}, {"delta": 0.0}, {"delta": 1.0}):
        with pytest.raises(InputError):
            shuffled_epsilon(**{"epsilon0": 1.0, "n": 10_000, "delta": 1e-6} | bad)


def exact_pair(ratio, n, order):
    """Divergence of order e^ε of the theorem's pair, by enumeration in fractions; e^ε0 and e^ε are rational here."""
    clone, truth = 2 / (ratio + 1), ratio / (ratio + 1)
    one, other = {}, {}
    for c in range(n):
        for a in range(c + 1):
            p = math.comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c) * math.comb(c, a) * Fraction(1, 2**c)
            for shift, q in ((1, truth), (0, 1 - truth)):
                for law, first in ((one, a + shift), (other, a + 1 - shift)):
                    law[c, first] = law.get((c, first), 0) + p * q
    return max(
        sum(max(a.get(k, 0) - order * b.get(k, 0), 0) for k in one | other) for a, b in ((one, other), (other, one))
    )


@pytest.mark.parametrize("ratio", [Fraction(3), Fraction(11, 10), Fraction(40)])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_the_numbers_are_those_of_the_theorem(ratio, n):
    """Never below, and above by rounding alone."""
    for order in (Fraction(1), (1 + ratio) / 2, ratio * Fraction(9, 10)):
        if order >= 1:
            exact = float(exact_pair(ratio, n, order))
            found = shuffled_delta(math.log(ratio), n, math.log(order))
            assert exact <= found <= exact * (1 + 1e-8) + 1e-8


def multisets_of(ratio, values, data):
    """Law of the multiset of reports of randomised response on so many values, by enumeration in fractions."""
    law = {(): Fraction(1)}
    for x in data:
        new = {}
        for reports, p in law.items():
            for y in range(values):
                key = tuple(sorted((*reports, y)))
                new[key] = new.get(key, 0) + p * (ratio if x == y else 1) / (ratio + values - 1)
        law = new
    return law


@pytest.mark.parametrize(("values", "n"), [(2, 2), (2, 6), (3, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(8)])
def test_the_truth_is_never_above(values, n, ratio):
    """All data of n users up to their order, one of whom changes, and randomised response on 2, 3 or 4 values."""
    for others in itertools.combinations_with_replacement(range(values), n - 1):
        one, other = (multisets_of(ratio, values, (x, *others)) for x in (0, 1))
        for order in (Fraction(1), Fraction(5, 4), (1 + ratio) / 2):
            exact = sum(max(p - order * other[k], 0) for k, p in one.items())
            assert float(exact) <= shuffled_delta(math.log(ratio), n, math.log(order))


def corners(ratio):
    """All corners of randomisers of three inputs: columns weight * (1 or e^ε0 for each input), of at most 3 symbols."""
    patterns = list(itertools.product((1.0, float(ratio)), repeat=3))
    for chosen in itertools.combinations(patterns, 3):
        columns = np.array(chosen).T
        if abs(np.linalg.det(columns)) > 1e-9:
            weights = np.linalg.solve(columns, np.ones(3))
            if weights.min() > -1e-12:
                yield columns * np.maximum(weights, 0.0)


def divergence_of_counts(rows, others, order):
    """Exact δ of the counts of three symbols where one person is input 0 or 1, and the others are as many of each."""
    law = np.ones((1, 1))
    for row, times in zip(rows, others, strict=True):
        for _ in range(times):
            law = one_more(law, row)
    one, other = one_more(law, rows[0]), one_more(law, rows[1])
    return max(np.maximum(one - order * other, 0).sum(), np.maximum(other - order * one, 0).sum())


def one_more(law, row):
    """Law of the counts of symbols 0 and 1 with one report more."""
    new = np.zeros(np.add(law.shape, 1))
    new[1:, :-1] += row[0] * law
    new[:-1, 1:] += row[1] * law
    new[:-1, :-1] += row[2] * law
    return new


@pytest.mark.parametrize("ratio", [1.5, 4.0, 12.0])
@pytest.mark.parametrize("n", [2, 6, 20, 60])
def test_no_corner_of_three_symbols_is_above(ratio, n):
    found, closest = 0, 0.0
    bounds = {ratio**part: shuffled_delta(math.log(ratio), n, part * math.log(ratio)) for part in (0.1, 0.5, 0.9)}
    less, more = (n - 1) // 2, n // 2
    for rows in corners(ratio):
        for others in ((0, 0, n - 1), (n - 1, 0, 0), (0, n - 1, 0), (less, more, 0), (more, 0, less)):
            for order, bound in bounds.items():
                exact = divergence_of_counts(rows, others, order)
                assert exact <= bound * (1 + 1e-9) + 1e-15
                found, closest = found + 1, max(closest, exact / bound)
    assert found >= 15 * 8 and closest > 0.4  # and the bound is not idle


def test_groups_of_clones_round_up(monkeypatch):
    from fdadp.federated.local_dp import user_guarantee

    fine = shuffled_epsilon(1.0, 10_000, 1e-6)
    monkeypatch.setattr(user_guarantee, "_BLOCKS", 50)
    assert fine <= shuffled_epsilon(1.0, 10_000, 1e-6) < 1.05 * fine


@pytest.mark.parametrize("e0", [0.3, 1.0, 2.0])
def test_it_covers_shuffled_randomised_response(e0):
    """Of one coin each, a shuffler shows the number of ones: its exact δ at the theorem's ε is within the δ."""
    from scipy.stats import binom

    n, delta = 3_000, 1e-5
    epsilon = shuffled_epsilon(e0, n, delta)
    p = math.exp(e0) / (1 + math.exp(e0))
    k = np.arange(n + 1)
    others = binom.pmf(k, n - 1, 1 - p)
    shifted = np.concatenate(([0.0], others[:-1]))
    mine = {bit: (p * shifted + (1 - p) * others if bit else (1 - p) * shifted + p * others) for bit in (0, 1)}
    for a, b in ((0, 1), (1, 0)):
        exact = np.maximum(mine[a] - math.exp(epsilon) * mine[b], 0).sum()
        assert exact <= delta
    assert np.maximum(mine[1] - math.exp(epsilon / 2) * mine[0], 0).sum() > delta  # and not by far too much
