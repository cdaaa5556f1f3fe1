"""Contracts say what is wrong; parties hold to them; the command that compares hospitals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fdadp.cli.main import app
from fdadp.errors import InputError, PrivacyError

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from federation_tools import CURVES, GRIDS, PCA, D, contract, parts, rows
from studies.federated_regression import app as hospitals

from fdadp.federated import Contract, fit_in_clear, fit_together
from fdadp.federated.federated_models import totals_from_bytes, totals_to_bytes
from fdadp.federated.owners.one_process import owners_of, run_to_end

# ---------------------------------------------------------------- the contract


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"owners": 1}, InputError, "owners must be a whole number of at least 2, got 1"),
        ({"owners": 2.0}, InputError, "owners must be a whole number"),
        ({"n_max": 0}, InputError, "n_max must be a whole number of at least 1"),
        ({"corrupt": 0}, InputError, "corrupt must be a whole number of at least 1"),
        ({"corrupt": 3}, PrivacyError, "owners must be more than corrupt, 3, or nobody's noise is left, got 3"),
        ({"transport": "post"}, InputError, "transport must be"),
        ({"run": ""}, InputError, "run must be a name"),
        ({"run": "\ud800"}, InputError, "run must be a name"),
        ({"simulation": 1}, InputError, "simulation must be True or False, got 1"),
        ({"groups": "no"}, InputError, "groups must be True or False, got 'no'"),
        ({"groups": 1}, InputError, "groups must be True or False, got 1"),
        ({"owner_keys": None}, InputError, "owner_keys must be a list of the owners' public keys, got None"),
        ({"settings": {**PCA, "n": 3001}}, InputError, "n must be at most owners times n_max, 3000, got 3001"),
        ({"model": "forest"}, InputError, "model must be one of pca, .*got 'forest'"),
        ({"model": ["pca"]}, InputError, r"model must be one of pca, .*got \['pca'\]"),
        ({"settings": {**PCA, "center": np.zeros(3)}}, InputError, "settings must be what JSON can hold"),
        ({"settings": {**PCA, "delta": None}}, InputError, "settings must give delta"),
        ({"settings": {k: v for k, v in PCA.items() if k != "epsilon"}}, InputError, "settings must give epsilon:"),
        ({"settings": {k: v for k, v in PCA.items() if k != "data_norm"}}, PrivacyError, "data_norm must be given"),
        ({"settings": {k: v for k, v in PCA.items() if k != "n_features"}}, InputError, "must give n_features"),
        ({"settings": {**PCA, "mechanism": "bingham"}}, PrivacyError, "cannot be added in shares"),
        ({"settings": {**PCA, "colour": 1}}, InputError, "settings must be parameters of DPPCA: .*colour"),
        ({"settings": {**PCA, "epsilon": -1.0}}, PrivacyError, "epsilon must be a number above 0"),
        ({"n_max": 2**45}, PrivacyError, "n_max must be smaller"),
        (
            {"model": "regression", "settings": CURVES},
            InputError,
            "settings must give s, the grid of the curves, got N",
        ),
        (
            {"model": "regression", "settings": {**CURVES, **GRIDS, "bounds": {"Y": [0, 1]}}},
            PrivacyError,
            "bounds must give a public",
        ),
    ],
)
def test_contracts_say_what_is_wrong(changes: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        contract(**changes)


def test_contracts_travel_as_text() -> None:
    terms = contract(5, corrupt=2, run="x")
    text = terms.to_json()
    assert Contract.from_json(text) == terms
    assert Contract.from_json(text).digest == terms.digest
    assert replace(terms, n_max=1001).digest != terms.digest
    with pytest.raises(InputError, match="must be a contract in JSON"):
        Contract.from_json("{}")
    old = {**json.loads(text), "fdadp": "0.0.1"}
    with pytest.raises(InputError, match="of this version of fdadp"):
        Contract.from_json(json.dumps(old))
    assert contract().run != contract().run
    assert Contract.from_json(replace(terms, groups=np.True_).to_json()).groups is True


@pytest.mark.parametrize(
    "data",
    [
        (np.zeros((5, 2)),),
        (np.zeros((5, D)), np.zeros(5)),
        np.zeros((5, D)),
        (np.zeros((5, D, 1)),),
        (np.zeros((5, D)).tolist(),),
        None,
    ],
)
@pytest.mark.parametrize("fit", [fit_together, fit_in_clear])
def test_owners_check_the_shape_of_their_data(fit: Any, data: Any) -> None:
    with pytest.raises(InputError, match="data must be a tuple of 1 arrays"):
        fit(contract(2), [data, data])
    with pytest.raises(InputError, match="data must be of 2 owners, got"):
        fit(contract(2), data if data is None else [data])


@pytest.mark.parametrize("fit", [fit_together, fit_in_clear])
@pytest.mark.parametrize("seed", [-1, 1.5, "x"])
def test_what_is_no_seed_is_refused_by_name(fit: Any, seed: Any) -> None:
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0, got"):
        fit(contract(), parts(rows(30), 3), random_state=seed)


@given(totals=st.lists(st.lists(st.integers(-(2**62), 2**62), max_size=5), max_size=4))
def test_totals_survive_and_damage_is_found(totals: list[list[int]]) -> None:
    data = totals_to_bytes([np.array(v, dtype=np.int64) for v in totals])
    assert [v.tolist() for v in totals_from_bytes(data)] == totals
    if data:
        with pytest.raises(InputError, match="as long as they say"):
            totals_from_bytes(data[:-1])


def test_rows_outside_the_bounds_and_no_rows_at_all() -> None:
    """Clipped, zeroed, or nobody: never an error, whatever the values are."""
    odd = np.array([[np.nan, 0, 0], [np.inf, 1, 1], [1e30, 0, 0], [0, 0, 0]])
    model = fit_together(contract(), [(odd,), (np.zeros((1, D)),), (rows(50),)])
    assert np.isfinite(model.components_).all()


# ---------------------------------------------------------------- the comparison and its command


@pytest.mark.statistics
def test_the_command_compares_hospitals(tmp_path: Path) -> None:
    options = [
        "--owners",
        "2",
        "--n",
        "400",
        "--epsilon",
        "4",
        "--delta",
        "1e-6",
        "--mechanism",
        "moments",
        "--out",
        str(tmp_path / "out"),
    ]
    found = CliRunner().invoke(hospitals, options)
    assert found.exit_code == 0, found.output
    table = pd.read_csv(tmp_path / "out" / "results.csv").set_index("how")
    assert table.loc["together", "releases"] == 19
    assert table.loc["no privacy", "explained"] > table.loc["together", "explained"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"results.csv", "settings.json", "explained.png"}


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    found = CliRunner().invoke(hospitals, ["--delta", "1e-6", "--owners", "1", *out])
    assert found.exit_code == 2
    assert "owners must be a whole number of at least 2, got 1" in found.output
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- the model of a run


def test_the_model_of_a_run_is_made_of_contract_and_totals_by_command(tmp_path: Path) -> None:
    owners, terms = owners_of(contract(), parts(rows(), 3)), tmp_path / "contract.json"
    run = run_to_end(owners)
    terms.write_text(run.contract.to_json())
    file = tmp_path / "totals"
    file.write_bytes(totals_to_bytes(run.totals_))
    done = CliRunner().invoke(app, ["federated", "model", str(terms), str(file)])
    assert done.exit_code == 0 and owners[0].result_.ledger_.headline in done.output.replace("\n", " ")
    saved = CliRunner().invoke(app, ["federated", "model", str(terms), str(file), "--out", str(tmp_path / "m.npz")])
    assert saved.exit_code == 2 and "--out is for regressions, got a model of 'pca'" in saved.output
    for wrong in (b"", totals_to_bytes([*run.totals_, run.totals_[0]])):
        file.write_bytes(wrong)
        none = CliRunner().invoke(app, ["federated", "model", str(terms), str(file)])
        assert none.exit_code == 2 and "must hold the totals of a run that was finished" in none.output


def test_rows_of_an_owner_are_joined_by_their_labels(tmp_path):
    """And nobody else may read them; the order of the files' rows is of no effect."""
    import pandas as pd
    from typer.testing import CliRunner

    from fdadp.cli.main import app

    rng = np.random.default_rng(0)
    index = pd.Index(["p1", "p2", "p3", "p4"], name="id")
    X, Y = (pd.DataFrame(rng.normal(size=(4, 3)), index, ["0", "1", "2"]) for _ in range(2))
    X.to_csv(tmp_path / "x.csv")
    Y.iloc[[2, 0, 3, 1]].to_csv(tmp_path / "y.csv")
    out = tmp_path / "rows.npz"
    out.touch(0o644)
    words = ["federated", "rows", str(tmp_path / "x.csv"), str(tmp_path / "y.csv"), "--out", str(out)]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert out.stat().st_mode & 0o777 == 0o600
    x, y = np.load(out).values()
    assert np.allclose(x, X) and np.allclose(y, Y)
    for wrong, said in (
        (Y.iloc[:3], "must have the labels of"),
        (Y.iloc[[0, 1, 2, 2]], "must have each label once: label 'p3'"),
        (Y.set_axis(["p1", "p2", "p3", None]), "must have an id in every row"),
        (None, "must have an id in its first column"),
    ):
        if wrong is None:
            Y.to_csv(tmp_path / "y.csv", index=False)
        else:
            wrong.to_csv(tmp_path / "y.csv", index_label="id")
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 2 and said in " ".join(found.output.split())
