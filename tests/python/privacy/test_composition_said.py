"""What several fits cost together is said in one way, and a fit on a study says what it took and what of."""

from __future__ import annotations

import html
import math
import re
from pathlib import Path

import numpy as np
import pytest

from fdadp import Privacy, PrivateMean, Study
from fdadp._common.guarantee_in_words import COMPOSED
from fdadp.privacy.account.epsilon_mu_rho import epsilon_from_mu, mu_from

DOCS = Path(__file__).parents[3] / "docs"


def test_the_figures_of_the_sentence():
    together = math.sqrt(sum(mu_from(epsilon, 1e-6) ** 2 for epsilon in (1, 0.5, 1.5)))
    assert f"cost {epsilon_from_mu(together, 1e-6):.2f}, not 3" in COMPOSED


@pytest.mark.parametrize("delta", [1e-6, None])
def test_fits_on_a_study_say_both_numbers_and_how_they_add_up(tmp_path, delta):
    study = Study.new(tmp_path / "s.fdadp", name="A", epsilon=2.0, delta=delta, unit="row", n=600)
    Y = np.random.default_rng(0).normal(size=(600, 11))
    for epsilon in (1.0, 0.5) if delta is None else (1.0, 0.5, 1.5):
        fit = PrivateMean(privacy=Privacy(epsilon, study=study.path), bounds=(-5, 5)).fit(Y)
        own = re.search(r"epsilon = (\S+) of its study's epsilon = 2", fit.ledger_.headline)
        assert own and float(own.group(1)) == pytest.approx(epsilon, rel=0.01)
    alone = PrivateMean(privacy=Privacy(1.0, delta, n=600), bounds=(-5, 5)).fit(Y)
    assert "study" not in alone.ledger_.headline
    said = "Without a delta the epsilons add up." if delta is None else COMPOSED
    page = html.unescape(study.report().to_html())
    for text in (str(study), study._repr_html_(), page):
        assert f"{said} The column share adds up to 100 %." in text
        shares = [float(s) for s in re.findall(r"([\d.]+)%", text.split("share", 1)[1].split(said)[0])]
        assert sum(shares) == pytest.approx(100 * (1 - study.left), abs=0.05)
    assert COMPOSED in (DOCS / "choosing.md").read_text(encoding="utf-8")
