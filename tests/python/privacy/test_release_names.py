"""Each release of a private fit has a line that says what it is, on the certificate and on the page with an example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from learner_registry import LEARNERS, Learner, toy

from fdadp import FunctionalRegression, Privacy, PrivateFPCA, ScalarRegression, simulate_affr
from fdadp.privacy.certificate.release_names import WHAT, meaning
from fdadp.private.plan.budget_plan import NAMES

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "setup.cfg").exists())


@pytest.mark.parametrize("name", [name.format(x="rate", z="age") for name in NAMES.values()])
def test_what_a_regression_releases_has_a_meaning(name: str) -> None:
    assert meaning(name)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_what_a_learner_releases_has_a_meaning(learner: Learner) -> None:
    releases = learner.make().fit(*toy(learner.kind)).ledger_.releases
    assert releases
    assert [release.name for release in releases if not meaning(release.name)] == []


@pytest.mark.filterwarnings("ignore::fdadp.errors.FdadpWarning")
def test_what_models_of_curves_release_has_a_meaning() -> None:
    people = simulate_affr(scenario=1, n=200, n_points=11, seed=0)
    data = {"X": people.X, "Y": people.Y, "y": people.Y.data_matrix[:, 3, 0]}
    privacy = Privacy(8.0, 1e-6, n=200, random_state=0)
    bounds = {"X": (-4.5, 4.5), "Y": (-8, 8), "y": (-8, 8)}
    fits = [
        FunctionalRegression("Y ~ ff(X)", privacy=privacy, bounds=bounds).fit(data),
        ScalarRegression("y ~ lf(X)", privacy=privacy, bounds=bounds).fit(data),
        PrivateFPCA(privacy=privacy, bounds=(-8, 8)).fit(people.Y),
    ]
    names = {release.name for model in fits for release in model.ledger_.releases}
    assert len(names) > 20 and [name for name in names if not meaning(name)] == []


def test_the_most_specific_line_counts_and_an_unknown_name_has_none() -> None:
    assert meaning("scale of residuals") != meaning("scale of X")
    assert meaning("counts of sex") != meaning("counts of age in cells")
    assert meaning("a release of one's own") == ""


def test_the_page_has_every_line() -> None:
    page = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    for about in WHAT.values():
        for names, text in about.items():
            assert (names.replace("|", "; ").replace("*", "…"), text) in rows
