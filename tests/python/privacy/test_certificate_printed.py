"""Certificates on paper: of stays in intensive care and of a learner in pure epsilon; every field, two sides."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import fdadp
from fdadp import FunctionalRegression, Privacy, PrivateMean, Study, load_icu
from fdadp.errors import MissingDataError
from fdadp.learners import DPGaussianNB

WORDS = {
    "use": "Mean curves for staffing",
    "region": "United States",
    "author": "A. Office",
    "custodian": "Data office of the hospital",
    "data": "Hourly heart rates of stays in intensive care",
}
CHROMIUM = next((p for p in ("chromium", "chromium-browser", "google-chrome") if shutil.which(p)), None)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
)


def of_stays(folder):
    """A forecast of the next day and the mean day of the stays of PhysioNet 2012, on one study."""
    try:
        stays = load_icu("heart_rate", as_frame=True)
    except MissingDataError:
        pytest.skip("the stays are not here: set FDADP_DATA")
    patient = np.asarray(stays.groups)
    ranges = {"rate": (30, 180), "next day": (30, 180)}
    study = Study.new(
        folder / "icu.fdadp",
        name="ICU heart rates",
        epsilon=2.0,
        delta=1e-6,
        unit="person",
        n=len(patient),
        bounds=ranges,
        sources="range of the monitor",
    )
    privacy = Privacy(study=study.path, epsilon=1.0, purpose="forecast of the next day")
    model = FunctionalRegression("`next day` ~ ff(rate)", privacy=privacy)
    model.fit({"rate": stays.X, "next day": stays.Y}, groups=patient)
    privacy = Privacy(study=study.path, epsilon=0.5, purpose="the mean day")
    mean = PrivateMean(privacy=privacy, bounds=(30, 180)).fit(stays.X, groups=patient)
    forecast = fdadp.plan("`next day` ~ ff(rate)", n=len(patient), epsilon=1.0, delta=1e-6, bounds=ranges)
    files = [model.save(folder / "forecast.npz"), mean.save(folder / "mean.npz")]
    return study.report(files, forecasts=[forecast], **WORDS)


def of_a_learner(folder):
    """Naive Bayes in pure epsilon."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    model = DPGaussianNB(epsilon=0.5, n=2000, classes=[0, 1], bounds=(-1, 1), purpose="triage")
    return model.fit(X, (X[:, 0] > 0).astype(int)).ledger_.certificate(**WORDS)


MADE = [pytest.param(of_stays, marks=pytest.mark.long, id="stays"), pytest.param(of_a_learner, id="learner")]


@pytest.fixture(scope="module", params=MADE)
def certificate(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("certificate"))


class Cells(HTMLParser):
    """Texts of the cells of all tables, and of what follows each heading."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.inside = [], 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside += 1

    def handle_endtag(self, tag):
        self.inside -= tag in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data.strip()


def test_every_field_is_filled(certificate):
    page = certificate.to_html()
    cells = Cells(page).cells
    assert len(cells) > 60
    assert [cell for cell in cells if not cell] == []
    for blank in ("not said", "no purpose was named", "no source was named", "None", "nan", "none drawn yet"):
        assert not any(blank == cell or f"({blank}" in cell for cell in cells), blank
    plain = json.loads(certificate.to_json())
    of_one_fit = not certificate.study
    absent = {"signature"} | ({"delta", "curve", "accuracy", "study"} if of_one_fit else set())
    absent |= {"recounted"} if certificate.recounted is None else set()  # without dp_accounting
    assert {name for name, value in plain.items() if value in (None, "", [], {})} == absent
    assert of_one_fit or any("forecast.npz: adjusted R-squared 0." in line for line in plain["accuracy"])
    assert all(plain["about"].values())
    assert all(fit["purpose"] and fit["releases"] and fit["mechanism"] for fit in plain["fits"])


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not here")
def test_it_prints_on_two_sides(certificate, tmp_path):
    page, _ = certificate.save(tmp_path / "certificate.html")
    pdf = tmp_path / "certificate.pdf"
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    run = [CHROMIUM, *FLAGS, profile, f"--print-to-pdf={pdf}", page.as_uri()]
    quiet = subprocess.DEVNULL  # nothing waits for a pipe that a child of the browser may hold
    done = subprocess.run(run, stdin=quiet, stdout=quiet, stderr=quiet, timeout=120)
    if done.returncode or not pdf.exists():
        pytest.skip(f"Chromium does not start here: it ended with {done.returncode}")
    pages = [int(number) for number in re.findall(rb"/Count (\d+)", pdf.read_bytes())]  # of the tree of pages
    assert max(pages) == 2
