"""The summary of a private regression of numbers has one line a term."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp import Privacy, ScalarRegression


@pytest.mark.filterwarnings("ignore")
def test_one_line_a_term():
    rng = np.random.default_rng(0)
    n = 1000
    X, g, age = rng.normal(size=(n, 21)).cumsum(1) / 5, rng.integers(0, 3, n).astype(float), rng.uniform(20, 80, n)
    y = X.mean(1) + 0.01 * age + rng.normal(size=n)
    bounds = {"X": (-4, 4), "g": [0.0, 1.0, 2.0], "age": (18, 100), "y": (-8, 8)}
    model = ScalarRegression("y ~ lf(X) + C(g) + age", privacy=Privacy(2, 1e-6, n=n, random_state=0), bounds=bounds)
    text = model.fit({"X": X, "g": g, "age": age, "y": y}).summary().as_text()
    lines = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert sum(line.startswith("lf(X)") for line in lines) == 1  # 40 rows of its grid before
    assert {"age", "g[0.0]", "g[2.0]", "(Intercept)"} <= set(lines)
    assert "Wald" in text
