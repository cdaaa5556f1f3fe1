"""``python benchmarks/studies/learners.py``, its experiments and the loaders of their data sets."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from studies import learner_tasks as _tasks
from studies import learners as experiment
from studies.learner_tasks import Task
from typer.testing import CliRunner

from fdadp.datasets import _adult_and_bank, _data_locations, load_adult, load_bank_marketing
from fdadp.errors import FileFormatError, InputError, MissingDataError
from fdadp.learners import Categorical, Numeric

try:
    RUNNER = CliRunner(mix_stderr=False)  # click before 8.2
except TypeError:
    RUNNER = CliRunner()


def run(*args: object) -> Any:
    return RUNNER.invoke(experiment.app, [str(a) for a in args])


def small(split: bool = True) -> Task:
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame({"age": rng.uniform(0, 100, n), "work": rng.choice(["a", "b"], n)})
    y = np.where((X["age"] > 60) ^ (rng.random(n) < 0.05), "yes", "no").astype(object)
    features = {"age": Numeric(0, 100), "work": Categorical(("a", "b"))}
    cut = 1000 if split else n
    held = (X[cut:], y[cut:]) if split else (None, None)
    return Task("small", "classification", X[:cut], y[:cut], *held, features, ("no", "yes"))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data in the place of Adult; Bank Marketing is nowhere."""

    def missing(download: bool) -> Task:
        raise MissingDataError("Bank Marketing was found nowhere")

    monkeypatch.setattr(experiment, "TASKS", {"adult": lambda download: small(), "bank": missing})


def test_private_learners_by_epsilon(fake: None, tmp_path: Path) -> None:
    result = run("--dataset", "adult", "bank", "--epsilon", "0.5", "5", "--repeats", "2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Skipped bank: Bank Marketing was found nowhere" in result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {
        *("results.csv", "table.csv", "table.txt", "settings.json", "learners.png")
    }
    assert "DPBoostedStumps" in (tmp_path / "table.txt").read_text(encoding="utf-8")
    table = pd.read_csv(tmp_path / "table.csv", keep_default_na=False, na_values=[""])
    assert {"DPGaussianNB", "DPBoostedStumps", "DPAdditiveHistograms"} <= set(table["learner"].dropna())
    best = table[(table["learner"] == "DPBoostedStumps") & (table["epsilon"] == 5)].iloc[0]
    assert best["score"] > 0.9 and best["auc"] > 0.9 and best["repeats"] == 2
    assert best["no_privacy"] > 0.9
    trivial = table[table["scheme"] == "trivial"].iloc[0]
    assert 0.5 < trivial["score"] < 0.7
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["epsilon"] == [0.5, 5.0] and settings["skipped"] == ["bank"]
    assert "no privacy" in result.output and "DPAdditiveHistograms" in result.output


def test_the_published_experiment_by_epsilon_and_rounds(fake: None, tmp_path: Path) -> None:
    result = run(
        *("--experiment", "published", "--dataset", "adult", "--epsilon", "1", "1000", "--rounds", "5", "9"),
        *("--repeats", "1", "--out", tmp_path),
    )
    assert result.exit_code == 0, result.output
    assert "NOT differentially private" in result.output
    table = pd.read_csv(tmp_path / "table.csv")
    noisy = table[table["scheme"] == "published"]
    assert len(noisy) == 6 * 2 * 2
    private = table[table["scheme"] == "private"].set_index(["learner", "epsilon"])["score"]
    assert private["DPBoostedStumps"].size == 2 * 2 and private["DPAdditiveHistograms"].size == 2
    assert private["DPBoostedStumps", 1000.0].min() > 0.9
    assert set(noisy["rounds"]) == {5, 9}
    plain = table[(table["scheme"] == "no privacy") & (table["rounds"] == 9)]["score"].iloc[0]
    free = noisy[(noisy["learner"] == "DP-AdaBoost") & (noisy["epsilon"] == 1000) & (noisy["rounds"] == 9)]
    assert free["score"].iloc[0] == pytest.approx(plain, abs=0.02)


def test_one_learner_and_random_splits() -> None:
    results = experiment.run(small(split=False), epsilons=[1.0], repeats=2, only=["DPGaussianNB"], seed=3)
    assert set(results["learner"]) == {"", "DPGaussianNB"}
    assert results[results["scheme"] == "no privacy"].groupby("repeat").size().tolist() == [1, 1]
    again = experiment.run(small(split=False), epsilons=[1.0], repeats=2, only=["DPGaussianNB"], seed=3)
    np.testing.assert_array_equal(results["score"], again["score"])


def test_components_and_clusters_of_digits() -> None:
    (task,), absent = experiment.load(["digits"])
    assert not absent
    results = experiment.run(task, epsilons=[20.0], repeats=1)
    table = experiment.summarise(results)
    scores = {(row.learner, row.scheme): row.score for row in table.itertuples()}
    assert scores["DPPCA", "private"] > 0.95
    assert scores["DPPCA", "no privacy"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["--dataset", "iris"], "dataset must be one of adult"),
        (["--experiment", "public"], "--experiment must be private or published"),
        (["--repeats", "0"], "repeats must be a whole number"),
        (["--epsilon", "-1"], "epsilon must be finite numbers above 0"),
        (["--learner", "DPTrees"], "learner must be among DPGaussianNB"),
        (["--dataset", "bank"], "dataset must be one that is present"),
    ],
)
def test_mistakes_are_one_line(fake: None, tmp_path: Path, args: list[str], what: str) -> None:
    result = run(*args, "--out", tmp_path / "out")
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and what in last
    assert not (tmp_path / "out").exists()


def test_the_published_experiment_wants_classes() -> None:
    (task,), _ = experiment.load(["diabetes"])
    with pytest.raises(InputError, match="classification"):
        experiment.published(task)


# ------------------------------------------------------------------ data sets


def shared(name: str) -> Path:
    path = _data_locations.data_dir() / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {_data_locations.data_dir_label()}")
    return path


def test_adult_from_our_files_and_from_the_source_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = [shared(f"adult_{part}.csv.gz") for part in ("train", "test")]
    data = load_adult(download=False)
    assert data.X.shape == (32561, 14) and data.X_test.shape == (16281, 14)
    assert [(data.y == ">50K").sum(), (data.y_test == ">50K").sum()] == [7841, 3846]
    for path, name, dot in zip(ours, ("adult.data", "adult.test"), ("", "."), strict=True):
        rows = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
        lines = [row.replace(",", ", ") + dot for row in rows]
        (tmp_path / name).write_text("\n".join((["|1x3 Cross validator"] if dot else []) + lines) + "\n\n")
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    again = load_adult(download=False)  # whose values are checked
    assert again.X_test["native-country"].tolist() == data.X_test["native-country"].tolist()
    (tmp_path / "adult.test").write_text("nothing\n")
    with pytest.raises(FileFormatError):
        load_adult(download=False)


def test_bank_marketing_from_our_file_and_from_the_source_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = shared("bank_marketing.csv.gz")
    data = load_bank_marketing(download=False)
    assert data.X.shape == (41188, 20) and (data.y == "yes").sum() == 4640
    frame = pd.read_csv(ours, keep_default_na=False)
    with zipfile.ZipFile(tmp_path / "bank-additional.zip", "w") as archive:
        archive.writestr("bank-additional/bank-additional-full.csv", frame.to_csv(index=False, sep=";"))
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    assert (load_bank_marketing(download=False).y == data.y).all()


@pytest.mark.parametrize("load", [load_adult, load_bank_marketing])
def test_data_that_are_nowhere(load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="allow the download"):
        load(download=False)


def test_declared_labels_cover_the_data() -> None:
    """Which is no condition of privacy: a label that is not declared only loses its row."""
    shared("adult_train.csv.gz")
    shared("bank_marketing.csv.gz")
    for data, features in (
        (load_adult(download=False), _tasks.ADULT),
        (load_bank_marketing(download=False), _tasks.BANK),
    ):
        for name, spec in features.items():
            if isinstance(spec, Categorical):
                assert set(data.X[name]) <= set(spec.values)
            else:
                assert spec.low <= data.X[name].min() and data.X[name].max() <= spec.high
    assert _adult_and_bank.SITE.startswith("https://")
