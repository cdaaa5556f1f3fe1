"""Certificates: every field, the odds against the definition, costs by another accountant, entries of the registry."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import fdadp
from fdadp import Privacy, PrivateMean, Study, simulate_affr
from fdadp.errors import PrivacyError
from fdadp.learners import DPGaussianNB
from fdadp.privacy import Budget, Cohort, mu_from
from fdadp.privacy.account._reservations import Release
from fdadp.privacy.account.epsilon_mu_rho import epsilon_from_mu
from fdadp.privacy.certificate import ABOUT
from fdadp.privacy.certificate.ledger_recount import recounted
from fdadp.privacy.certificate.odds import odds_of

WORDS = {
    "custodian": "St. Mary's <Hospital> & Co.",
    "data": "Hourly curves of 1,500 stays",
    "use": "Mean curves for staffing",
    "region": "Germany (GDPR)",
    "author": "A. Office",
}

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
"""Of Dibia et al. (2025), Table 1, in its order."""


@pytest.fixture(scope="module")
def wards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wards")
    study = Study.new(
        folder / "wards.fdadp",
        name="Wards 2024",
        epsilon=2.0,
        delta=1e-6,
        unit="person",
        n=1500,
        bounds={"heart rate": (30, 180), "sex": ["f", "m"]},
        sources={"heart rate": "manual p. 12"},
    )
    Y = simulate_affr(scenario=1, n=1500, seed=0).Y
    privacy = Privacy(study=study.path, epsilon=0.5, purpose="mean curve")
    model = PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(Y, groups=np.arange(1500))
    return study, model, model.save(folder / "mean.npz")


@pytest.fixture(scope="module")
def learner():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    return DPGaussianNB(epsilon=0.5, n=2000, classes=[0, 1], bounds=(-1, 1)).fit(X, (X[:, 0] > 0).astype(int))


class Page(HTMLParser):
    """Text of a page, its tags, and whether they nest."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not {"src", "href", "onload", "onclick"} & {k for k, _ in attrs}
        if tag not in ("meta", "br", "path", "polyline", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data + " "


def test_every_field_of_a_study_is_filled(wards):
    study, model, file = wards
    made = study.report([file], **WORDS)
    page = Page(made.to_html())
    assert "script" not in page.tags
    for said in (
        "Wards 2024",
        *WORDS.values(),
        "7.39",  # the factor e^2, rounded up
        "private mean",
        "mean curve",
        "30 to 180 (source: manual p. 12)",
        "f, m (no source was named)",
        "one person's data are blanked out",
        "timing and memory use",
        study.fits[0].models[0][:16],
        study.head[1],
    ):
        assert said in page.text, said
    assert re.search(r"mean\.npz: standard errors of the mean, averaged along the curve: [\d.]+ by noise", page.text)
    for heading in ("What is not protected", "What NIST SP 800-226 asks", "In each measure", "What was released"):
        assert heading in page.text
    plain = json.loads(made.to_json())
    assert plain["mu"] == pytest.approx(mu_from(2.0, 1e-6))
    assert plain["rho"] == pytest.approx(mu_from(2.0, 1e-6) ** 2 / 2)
    assert plain["spent"] == pytest.approx(0.5, rel=1e-6)
    assert plain["odds"]["factor"] == pytest.approx(math.exp(2))
    assert [r["name"] for r in plain["fits"][0]["releases"]] == [r.name for r in model.ledger_.releases]


def test_a_learner_in_pure_epsilon(learner, tmp_path):
    made = learner.ledger_.certificate(**WORDS)
    page, data = made.save(tmp_path / "nb.html")
    text = Page(page.read_text(encoding="utf-8")).text
    assert "ε = 0.5 (pure)" in text
    assert "1.65" in text
    assert "except for outcomes" not in text
    assert json.loads(data.read_text(encoding="utf-8"))["n"] == 2000


def test_nothing_of_a_simulation_or_of_a_broken_study_is_certified(wards, learner, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    seeded = DPGaussianNB(epsilon=0.5, n=200, classes=[0, 1], bounds=(-1, 1), random_state=0).fit(X, np.arange(200) % 2)
    with pytest.raises(PrivacyError, match="got a simulation's"):
        seeded.ledger_.certificate()
    with pytest.raises(PrivacyError, match="must promise what it spent"):
        dataclasses.replace(learner.ledger_, epsilon=0.1).certificate()
    with pytest.raises(PrivacyError, match="about must be of custodian, data, use, region, author, got 'who'"):
        learner.ledger_.certificate(who="me")
    study, _, file = wards
    broken = tmp_path / "broken.npz"
    broken.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(PrivacyError, match="must be as it was written to be certified"):
        study.report([broken])


# ------------------------------------------------------------------ odds


@given(st.floats(0.01, 6), st.floats(0.001, 0.999))
def test_probabilities_after_a_pure_release(epsilon, prior):
    """Randomised response attains both ends: Bayes' rule with likelihoods that are e^ε apart."""
    said = odds_of(epsilon, None, None)
    low, high = said.after(prior, said.factor)
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert high == pytest.approx(prior * p / (prior * p + (1 - prior) * (1 - p)))
    assert low == pytest.approx(prior * (1 - p) / (prior * (1 - p) + (1 - prior) * p))
    assert 0 < low < prior < high < 1


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 1e-5), (2, 1e-6), (4, 1e-4)])
def test_exceptions_are_at_least_as_probable_as_they_are(epsilon, delta):
    """A Gaussian that attains μ: the odds change by more than e^ε with a probability near to what is said."""
    mu = mu_from(epsilon, delta)
    said = odds_of(epsilon, delta, mu)
    true = norm.sf(epsilon / mu - mu / 2)  # of log-likelihood ratios above ε
    assert delta <= true <= said.exception <= 12 * true
    assert said.power == pytest.approx(norm.sf(norm.isf(0.05) - mu))
    loose = odds_of(epsilon, delta, None)
    assert loose.factor == pytest.approx(1.1 * math.exp(epsilon))
    assert norm.sf(math.log(loose.factor) / mu - mu / 2) <= loose.exception
    assert said.power <= loose.power


# ------------------------------------------------------------------ the label


def test_the_label_says_nine_things_of_a_study_and_of_a_fit(wards):
    study, model, _ = wards
    of_study, of_fit = study.report(**WORDS), model.ledger_.certificate(**WORDS)
    for made in (of_study, of_fit):
        assert tuple(made.label) == CATEGORIES
        assert all(made.label.values())
        assert json.loads(made.to_json())["label"] == made.label
        for name, text in made.label.items():
            above = name == "Interpretation" or (name == "Utility" and made.accuracy)  # is not said again
            assert f"<th>{name}</th><td>{'As above' if above else html.escape(text) + '</td>'}" in made.to_html()
        assert all(html.escape(text) in made.to_html() for text in (made.promise, *made.meaning, *made.accuracy))
        assert "epsilon = 2, delta = 1e-06" in made.label["Privacy parameters"]
        assert "factor of 7.39 (and 1e-06 besides)" in made.label["Interpretation"]
        assert made.unit in made.label["Unit of privacy"]
        assert "noise: Gaussian" in made.label["Mechanism"]
    assert f"{len(of_study.public)} public inputs" in of_study.label["Hyperparameters"]


# ------------------------------------------------------------------ costs


def test_costs_by_another_accountant(wards):
    """dp_accounting's privacy loss distributions of the noise: ε said is within 1e-6 above theirs, and never below."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    made = wards[0].report(**WORDS)
    sums = [r for fit in made.fits for r in fit.releases]
    assert all(r.noise.startswith("Gaussian") for r in sums)
    together = math.sqrt(math.fsum((r.sensitivity / r.scale) ** 2 for r in sums))  # Gaussians compose to a Gaussian
    exact = pld.from_gaussian_mechanism(1 / together, value_discretization_interval=1e-4)
    assert 0 <= made.spent - exact.get_epsilon_for_delta(1e-6) <= 1e-6
    assert exact.get_delta_for_epsilon(made.spent) <= 1e-6
    # and one by one, convolved, as the certificate says it: an upper bound that is no further from it
    assert made.recounted == pytest.approx(made.spent, abs=1e-6)
    assert "recounted by dp_accounting" in Page(made.to_html()).text


def test_a_pure_certificate_is_recounted(learner):
    pytest.importorskip("dp_accounting")
    made = learner.ledger_.certificate()
    assert 0 <= made.spent - made.recounted <= 1e-6


@pytest.mark.parametrize(("delta", "kind"), [(1e-6, "Gaussian"), (None, "Laplace")])
def test_releases_that_cost_more_than_is_said_are_not_certified(delta, kind):
    pytest.importorskip("dp_accounting")
    made = [Release(f"{i}", 1, f"{kind}, x", scale=20.0, sensitivity=1.0) for i in range(4)]
    right = epsilon_from_mu(0.1, delta) if delta else 0.2
    assert abs(recounted(made, delta, right) - right) < 1e-6
    with pytest.raises(PrivacyError, match="must cost what is said"):
        recounted(made, delta, right - 2e-6)
    assert recounted([*made, Release("chosen", 1, "exponential mechanism", 1.0, 1.0)], delta, right) is None


# ------------------------------------------------------------------ accuracy that was expected


def test_what_was_expected_stands_on_it(wards):
    study, model, _ = wards
    settings = {"n": 1500, "epsilon": 0.5, "delta": 1e-6}
    forecast = fdadp.plan(**settings)
    ledger = dataclasses.replace(model.ledger_, mechanism="dp-aff")  # as of a regression
    made = ledger.certificate([forecast], **WORDS)
    share = f"explained share of the explainable variance {forecast.share:.2f}"
    assert made.accuracy[0].startswith("Expected before the fit: Forecast for n = 1,500, epsilon = 0.5")
    assert share in made.accuracy[0]
    assert "no promise about your data" in Page(made.to_html()).text
    for other in (dict(n=1000), dict(epsilon=1.0), dict(delta=None)):
        with pytest.raises(PrivacyError, match="forecasts must be of fits that are certified"):
            ledger.certificate([fdadp.plan(**{**settings, **other})])
    with pytest.raises(PrivacyError, match=r"forecasts must be of fits that are certified \(dp-aff\)"):
        study.report(forecasts=[forecast])  # of a mean


# ------------------------------------------------------------------ the registry


FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
    "data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
"""As docs/study.md writes them down."""
CHOICES = {
    "data_product_type": {
        "Summary statistics",
        "Machine learning model",
        "Dataset",
        "Synthetic data",
        "Interactive API",
    },
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
}


@pytest.mark.parametrize("of", ["study", "learner"])
def test_entries_of_the_registry_have_no_blank_field(wards, learner, of):
    made = wards[0].report(**WORDS) if of == "study" else learner.ledger_.certificate(**WORDS)
    entry = made.registry_entry(slug="wards-2024", sector="Healthcare")
    assert json.loads(json.dumps(entry)) == entry
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    deployment = entry["deployment"]
    assert set(deployment) == set(FIELDS)
    for part, fields in FIELDS.items():
        assert set(deployment[part]) - {"data_product_sector"} == set(fields.split())
        for field, value in deployment[part].items():
            assert value, field
            if field in CHOICES:
                assert value in CHOICES[field]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", deployment["basic"]["publication_date"])
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == made.epsilon


def test_what_only_people_know_is_asked_for(wards):
    study, _, _ = wards
    with pytest.raises(PrivacyError, match="about must say custodian, data, region, author for the registry"):
        study.report().registry_entry(slug="wards")
    for wrong, message in (({"slug": "No Good"}, "slug must be"), ({"slug": "a", "sector": "Magic"}, "sector of")):
        with pytest.raises(PrivacyError, match=message):
            study.report(**WORDS).registry_entry(**wrong)
    assert set(WORDS) == set(ABOUT)


def test_mechanisms_that_are_accounted_for_by_themselves():
    rows = np.linspace(0, 1, 400)[:, None]
    cohort = Cohort(rows, budget=Budget(1.0, 1e-6), n=400)
    cohort.wishart_moment(lambda r: r[0], clip=1.0, share=1.0, name="moment")
    made = cohort.ledger.certificate()
    assert made.mu is None
    assert made.curve == ()
    assert made.odds.factor == pytest.approx(1.1 * math.e)
    Page(made.to_html())


def test_what_is_not_exact_is_said():
    from fdadp.learners import DPLogisticRegression

    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (500, 3))
    y = (X[:, 0] > 0).astype(int)
    X = rng.uniform(-0.5, 0.5, (500, 3))
    solved = DPLogisticRegression(epsilon=1.0, n=500, mechanism="output", classes=[0, 1], data_norm=1.0).fit(X, y)
    page = Page(solved.ledger_.certificate().to_html())
    assert "Minima of penalised sums" in page.text
    assert "covers the rounding of the solution" in page.text


def test_a_certificate_of_rows_promises_persons_nothing_that_only_rows_have():
    """It said "about you", "that you took part" and "each row among 2,000 persons", where a person had four rows."""
    people = simulate_affr(scenario=1, n=60, n_points=11, seed=0)
    privacy = Privacy(2.0, 1e-6, n=60, unit="row")
    model = PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(people.Y)
    of = model.ledger_.certificate()
    text = Page(of.to_html()).text
    assert "Take any conclusion about one row of the data" in text and "each row among 60 rows" in text
    assert "Protected is one row: a person with k rows has k times this μ." in text
    assert "conclusion about you" not in text and "that your data" not in text and "that one row was used" in text
    pair = dataclasses.replace(of, mu=None)  # only (ε, δ) is known: a group's δ grows faster than its size
    assert "k times this ε, and more than k times this δ." in pair.promise
    assert dataclasses.replace(pair, delta=None).promise.endswith("a person with k rows has k times this ε.")
