"""Many owners' principal components: the protocol adds the same integers, however rows are split; its base lines."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from studies import federated_pca as study
from studies.federated_pca_tables import COMPONENT_TABLES, load_component_table
from typer.testing import CliRunner

from fdadp.errors import (
    FileFormatError,
    InputError,
    MissingDataError,
    NotPrivateWarning,
    PublicParameterMissing,
)
from fdadp.federated import Contract, federated_models, fit_together
from fdadp.federated.federated_models import fit_in_clear, total_of_shares
from fdadp.federated.owner_chain_pca import PrivateLocalPCA
from fdadp.federated.owners.one_process import owners_of, run_to_end
from fdadp.learners import DPPCA
from fdadp.learners.pca import CONST, centred, signed
from fdadp.plot._matplotlib_figures import MissingPlotsError, pyplot
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound
from fdadp.published import paillier
from fdadp.published.pca import PublishedDPDPCA

PUBLIC = {"epsilon": 5.0, "delta": 1e-5, "data_norm": 3.0, "center": 0.3, "n_components": 5}


@pytest.fixture(scope="module")
def key():
    pytest.importorskip("phe")
    pytest.importorskip("gmpy2")
    return paillier.keys(2048)


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))]


def terms(owners, d=64, n_max=2000, **more):
    return Contract("pca", PUBLIC | {"n_features": d} | more, owners, n_max=n_max)


def one_each(parts):
    return [(part,) for part in parts]


def shares(contract, parts, seed=7):
    found = [federated_models.fit(contract, (x,), [], 1000 * seed + i) for i, x in enumerate(parts)]
    assert all(isinstance(one, NextRound) for one in found)
    return found


def captured(model, X):
    covariance = np.cov(X.T)
    most = np.linalg.eigvalsh(covariance)[::-1][: len(model.components_)].sum()
    return np.trace(model.components_ @ covariance @ model.components_.T) / most


# ------------------------------------------------------------------------------------- the corrected protocol --


def test_totals_are_the_pooled_sum_plus_all_shares_of_noise(digits, monkeypatch):
    X = digits[:300, :12]
    contract = terms(4, d=12)
    parts = np.array_split(X, 4)
    noisy = [one.share for one in shares(contract, parts)]
    (total,) = run_to_end(owners_of(contract, one_each(parts), random_state=7)).totals_
    monkeypatch.setattr(DistributedNoise, "_share", lambda self, sd, size: np.zeros(size, dtype=np.int64))
    exact = [one.share for one in shares(contract, parts)]
    pooled = federated_models.fit(contract, (X,), []).share
    noise = sum(a - b for a, b in zip(noisy, exact, strict=True))
    assert np.array_equal(total, pooled + noise)
    assert np.abs(noise).min() > 0  # nothing is left as it was: the number of rows neither


def test_model_is_made_of_the_totals_only(digits):
    contract = terms(5)
    parts = np.array_split(digits, 5)
    waits = shares(contract, parts)
    total = total_of_shares([one.share for one in waits])
    model = fit_in_clear(contract, one_each(parts), random_state=7)
    d, radius, const = 64, 3.0, 3.0 * CONST
    weights = np.triu(np.full((d + 1, d + 1), math.sqrt(2)), 1) + np.eye(d + 1)
    M = np.zeros((d + 1, d + 1))
    M[np.triu_indices(d + 1)] = total * (radius**2 + const**2) * 2.0**-24
    M /= np.where(weights > 0, weights, 1)
    M += np.triu(M, 1).T
    n, mean, scatter = centred(M, model.ledger_.releases[0].sd, radius, const)
    values, axes = np.linalg.eigh(scatter)
    assert model.noisy_n_ == pytest.approx(n)
    np.testing.assert_allclose(model.mean_, 0.3 + mean, atol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, values[::-1][:5] / n, rtol=1e-9)
    np.testing.assert_allclose(model.components_, signed(axes[:, ::-1][:, :5].T), atol=1e-9)


@pytest.mark.parametrize("owners", [2, 10])
def test_noise_has_the_law_of_one_trusted_place_but_for_the_shares_held_back(digits, owners, monkeypatch):
    contract = terms(owners)
    parts = np.array_split(digits, owners)
    noisy = sum(one.share for one in shares(contract, parts))
    monkeypatch.setattr(DistributedNoise, "_share", lambda self, sd, size: np.zeros(size, dtype=np.int64))
    noise = noisy - sum(one.share for one in shares(contract, parts))
    central = DPPCA(**PUBLIC, random_state=0).fit(digits).ledger_.releases[0]
    sd = central.sd / central.clip * 2**24 * math.sqrt(owners / (owners - 1))
    z = noise / sd
    assert len(z) == 65 * 66 // 2
    assert abs(z.mean()) < 4 / math.sqrt(len(z))
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / len(z))
    together = fit_in_clear(contract, one_each(parts), random_state=0).ledger_.releases[0]
    assert together.rho == pytest.approx(central.rho, rel=1e-6)
    assert together.sd == pytest.approx(central.sd * math.sqrt(owners / (owners - 1)), rel=1e-6)


def test_masks_change_no_bit_of_the_model(digits):
    contract = terms(3, d=20)
    parts = one_each(np.array_split(digits[:, :20], 3))
    masked = fit_together(contract, parts, random_state=1)
    in_clear = fit_in_clear(contract, parts, random_state=1)
    for name in ("components_", "explained_variance_", "mean_", "noisy_n_"):
        assert np.array_equal(getattr(masked, name), getattr(in_clear, name)), name


def test_split_of_the_rows_makes_no_difference(digits):
    contract = terms(4)
    even = fit_in_clear(contract, one_each(np.array_split(digits, 4)), random_state=3)
    uneven = fit_in_clear(contract, one_each(np.split(digits, [1, 5, 900])), random_state=3)
    sorted_rows = digits[np.argsort(digits.sum(axis=1))]
    by_ink = fit_in_clear(contract, one_each(np.array_split(sorted_rows, 4)), random_state=3)
    for other in (uneven, by_ink):
        assert np.array_equal(even.components_, other.components_)
        assert np.array_equal(even.explained_variance_, other.explained_variance_)


def test_accuracy_does_not_fall_with_the_number_of_owners_and_that_of_the_base_line_does(digits):
    few, many = np.array_split(digits, 4), np.array_split(digits, 60)
    together = [captured(fit_in_clear(terms(len(p)), one_each(p), random_state=0), digits) for p in (few, many)]
    chain = [captured(PrivateLocalPCA(**PUBLIC, random_state=0).fit(p), digits) for p in (few, many)]
    assert min(together) > 0.98
    assert chain[0] > 0.9
    assert chain[1] < chain[0] - 0.2


def test_seeded_shares_of_two_releases_are_independent(digits):
    settings = {"epsilon": 1.0, "delta": 1e-5, "n_clusters": 3, "data_norm": 3.0, "center": 0.3, "n_features": 64}
    settings["init"] = "sphere_packing"  # steps of one size
    contract = Contract("kmeans", settings, 2, n_max=2000)
    nobody = (np.full((1, 64), np.nan),)
    first = federated_models.fit(contract, nobody, [], 5)
    total = np.zeros(first.size, dtype=np.int64)
    totals = [total]
    while (second := federated_models.fit(contract, nobody, totals, 5)).size != first.size:
        totals.append(np.zeros(second.size, dtype=np.int64))
    assert np.abs(first.share).min() > 0
    assert abs(np.corrcoef(first.share, second.share)[0, 1]) < 4 / math.sqrt(first.size)


def test_in_clear_wants_the_data_of_all_owners(digits):
    with pytest.raises(InputError, match="data must be of 4 owners, got 3"):
        fit_in_clear(terms(4), one_each(np.array_split(digits, 3)))


# -------------------------------------------------------------------------------------------- PrivateLocalPCA --


def test_chain_without_much_noise_is_pca(digits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6)) * [3.0, 2.0, 1.0, 0.3, 0.3, 0.3] + rng.normal(size=6)
    model = PrivateLocalPCA(
        epsilon=1e3, delta=1e-6, n_components=3, n_passed=7, data_norm=20.0, random_state=0, const=5.0
    )
    model.fit(np.array_split(X, 8))
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3]
    assert (np.abs(np.sum(model.components_ * exact, axis=1)) > 0.9999).all()
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(model.explained_variance_, np.cov(X.T, bias=True).diagonal()[:3], rtol=0.05)
    assert model.noisy_n_ == pytest.approx(4000, rel=0.01)
    assert model.transform(X[:5]).shape == (5, 3)


def test_each_owner_of_the_chain_pays_for_its_own_persons(digits):
    parts = np.array_split(digits, 6)
    model = clone(PrivateLocalPCA(**PUBLIC)).fit(parts)
    assert len(model.ledgers_) == len(model.ledger_.releases) == 6
    central = DPPCA(**PUBLIC, random_state=0).fit(digits).ledger_.releases[0]
    for ledger in model.ledgers_:
        (release,) = ledger.releases
        assert ledger.private and ledger.for_release
        assert (ledger.epsilon, ledger.delta) == (5.0, 1e-5)
        assert release.sd == pytest.approx(central.sd, rel=1e-6)  # each as much noise as all rows in one place
    assert model.privacy_spent_["epsilon"] == 5.0
    assert "owner 6: second moment" in str(model.ledger_)
    assert not PrivateLocalPCA(**PUBLIC, random_state=0).fit(parts).ledger_.for_release


def test_owners_of_the_chain_have_noise_of_their_own():
    model = PrivateLocalPCA(**PUBLIC, random_state=0)
    cohorts = [model._settings_of(i).cohort((np.zeros((50, 4)),), mechanism="x", public={}) for i in (0, 1, 0)]
    first, second, again = (one.count(share=1.0).value for one in cohorts)
    assert first == again != second


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"data_norm": None}, PublicParameterMissing, "data_norm must be given"),
        ({"delta": None}, InputError, "delta must be given"),
        ({"n_components": 65}, InputError, "n_components must be a whole number from 1 to 64, got 65"),
        ({"n_passed": 0}, InputError, "n_passed must be a whole number from 1 to 65, got 0"),
        ({"const": 0}, InputError, "const must be a finite number above 0, got 0"),
    ],
)
def test_public_mistakes_of_the_chain_are_named(digits, settings, error, text):
    with pytest.raises(error, match=text):
        PrivateLocalPCA(**PUBLIC | settings).fit(np.array_split(digits, 2))


def test_owners_of_the_chain_have_tables_of_one_width(digits):
    with pytest.raises(InputError, match=r"of equal width, got widths \[64, 3\]"):
        PrivateLocalPCA(**PUBLIC).fit([digits, digits[:, :3]])


# ---------------------------------------------------------------------------------------- the published protocol --


@pytest.fixture(scope="module")
def published(key):
    X = np.random.default_rng(0).normal(size=(500, 3)) * [3.0, 1.0, 0.5]
    with pytest.warns(NotPrivateWarning, match="NOT differentially private"):
        model = PublishedDPDPCA(n_components=2, key=key, random_state=0).fit(np.array_split(X, 4))
    low, high = X.min(axis=0), X.max(axis=0)
    return model, np.floor(255 * (X - low) / (high - low)).astype(np.int64)


def test_published_says_that_it_is_not_private(published):
    model, _ = published
    assert model.privacy_spent_ is None
    assert not model.ledger_.private and not model.ledger_.for_release
    assert "modulo the number of rows" in str(model.ledger_)
    assert model.ledger_.details["claimed delta"] == 1 / 500


def test_published_leak_user_learns_sums_modulo_the_number_of_rows(published):
    model, x = published
    view = model.user_view_
    assert view.n == len(x)  # exactly
    assert [m % view.n for m in view.masked_sum] == (x.sum(axis=0) % len(x)).tolist()
    assert [m // view.n for m in view.masked_sum] != (x.sum(axis=0) // len(x)).tolist()  # only this part is masked


def test_published_leak_proxy_and_user_together_have_the_exact_scatter(published):
    model, x = published
    view, own = model.user_view_, model.proxy_view_
    v = [m - view.n * b for m, b in zip(view.masked_sum, own.mask, strict=True)]
    assert v == x.sum(axis=0).tolist()
    R = [
        [
            view.masked_moment[i][j]
            - (v[i] * own.mask[j] + v[j] * own.mask[i] + view.n * own.mask[i] * own.mask[j])
            - int(own.noise[i, j])
            for j in range(3)
        ]
        for i in range(3)
    ]
    assert np.array_equal(R, x.T @ x)


def test_published_components_are_those_of_scatter_plus_noise(published):
    model, x = published
    scatter = x.T @ x - np.outer(x.sum(axis=0), x.sum(axis=0)) / len(x) + model.proxy_view_.noise
    values, axes = np.linalg.eigh(scatter)
    np.testing.assert_allclose(np.abs(model.components_ @ axes[:, ::-1][:, :2]), np.eye(2), atol=1e-6)
    np.testing.assert_allclose(model.explained_variance_, np.maximum(values[::-1][:2], 0) / len(x), rtol=1e-6)


@pytest.mark.parametrize("seed", [0, None])
def test_repaired_masking_gives_the_scatter_with_noise_and_nothing_of_the_sums(key, seed):
    X = np.random.default_rng(1).uniform(size=(200, 3))
    with pytest.warns(NotPrivateWarning):
        model = PublishedDPDPCA(
            n_components=3, epsilon=2.0, delta=1e-6, masking="uniform", bounds=(0, 1), key=key, random_state=seed
        ).fit(np.array_split(X, 3))
    x = np.floor(255 * X).astype(np.int64)
    v, view, n = x.sum(axis=0), model.user_view_, int(key.public.n)
    scatter = 200 * x.T @ x - np.outer(v, v)
    found = [[view.masked_moment[i][j] - view.masked_sum[i] * view.masked_sum[j] for j in range(3)] for i in range(3)]
    assert [[m % n for m in row] for row in found] == (
        [[int(m) % n for m in row] for row in scatter + model.proxy_view_.noise]
    )
    assert [m % 200 for m in view.masked_sum] != (v % 200).tolist()
    assert all(m.bit_length() > 2000 for m in view.masked_sum)  # v is lost in them
    assert (model.proxy_view_.noise != 0).all()
    values = np.linalg.eigvalsh((scatter + model.proxy_view_.noise) / 200)[::-1]
    np.testing.assert_allclose(model.explained_variance_, np.maximum(values, 0) / 200, rtol=1e-6)
    assert "modulo the number of rows" not in str(model.ledger_)
    assert model.privacy_spent_ is None


def test_repaired_noise_is_made_for_a_row_that_is_replaced():
    """N S moves by no more than the sensitivity, and by nearly so much for rows in opposite corners."""

    def moments(x):
        return len(x) * x.T @ x - np.outer(x.sum(axis=0), x.sum(axis=0))

    rng = np.random.default_rng(0)
    corners = [rng.choice([0, 255], size=(50, 4)) for _ in range(200)]
    corners.append(np.vstack(([[255] * 4], np.tile([0, 0, 255, 255], (49, 1)))))
    bound = 50 * math.sqrt(2) * 4 * 255**2
    largest = 0.0
    for x in corners:
        for row in (np.zeros(4), np.full(4, 255), [0, 0, 255, 255], [255, 255, 0, 0]):
            largest = max(largest, np.linalg.norm(moments(x) - moments(np.vstack(([row], x[1:])))))
    assert 0.6 * bound < largest <= bound


def test_published_sensitivity_is_not_that_of_the_centred_scatter():
    """One row more moves the scatter about the mean by nearly twice the squared norm that the noise is made for."""

    def scatter(x):
        return (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))

    rows = np.tile([0.0, 255.0], (1000, 1))
    moved = np.linalg.norm(scatter(np.vstack((rows, [255.0, 0.0]))) - scatter(rows))
    assert moved > 1.99 * 255**2


# ----------------------------------------------------------------------------------- data sets and experiments --


def test_tables_are_found_and_have_the_published_values():
    found = 0
    for name in COMPONENT_TABLES:
        try:
            data = load_component_table(name)
        except MissingDataError:
            continue
        found += 1
        task = study.TASKS[name](False)
        assert len(data.X) == len(data.y) == len(task.X)
        assert np.abs(task.X).max() <= 1  # the public ranges hold
    if not found:
        pytest.skip("no data")


def test_tables_of_other_values_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FDADP_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"german.csv.gz"):
        load_component_table("german")
    pd.DataFrame({"label": [1, 2], "x1": [0.0, 1.0]}).to_csv(tmp_path / "german.csv.gz", index=False)
    with pytest.raises(FileFormatError, match="must have the published values"):
        load_component_table("german")
    pd.DataFrame({"x1": ["a"]}).to_csv(tmp_path / "german.csv.gz", index=False)
    with pytest.raises(FileFormatError, match="must be a table of numbers"):
        load_component_table("german")
    with pytest.raises(InputError, match="name must be one of"):
        load_component_table("iris")
    tasks, absent = study.load(["digits", "cnae9"])
    assert [task.name for task in tasks] == ["digits"] and list(absent) == ["cnae9"]


def test_captured_variance_has_its_base_lines_and_grows_with_epsilon():
    (task,), _ = study.load(["digits"])
    table = study.summarise(study.captured(task, epsilons=(0.5, 10.0), owners=(20,), repeats=2))
    at = table.set_index(["scheme", "epsilon"])["captured"]
    for scheme in (study.CENTRAL, study.DPDPCA, study.LOCAL):
        assert at[scheme, 0.5] < at[scheme, 10.0] <= 1
    assert at[study.DPDPCA, 10.0] > 0.99
    assert table.loc[table["scheme"] == study.RANDOM, "captured"].item() < 0.3
    assert (table["repeats"] == 2).all()
    with pytest.raises(InputError, match="owners must be at least 2"):
        study.captured(task, owners=(1,))


def test_classification_scores_every_scheme_at_every_point():
    (task,), _ = study.load(["digits"])
    grid = [(50, 5), (200, 5), (200, 8)]
    table = study.summarise(study.classify(task, grid=grid, repeats=1, epsilon=5.0, n_rows=1000, machine_rows=300))
    for scheme in (study.DPDPCA, study.LOCAL):
        part = table[table["scheme"] == scheme]
        assert sorted(zip(part["rows_per_owner"], part["components"], strict=True)) == grid
    f1 = table.groupby(["scheme", "components"])["f1"].mean()
    assert f1[study.EXACT, 8] > 0.85
    assert f1[study.RANDOM, 5] < f1[study.EXACT, 5]


def test_command_writes_tables_and_says_what_masks_took(tmp_path):
    arguments = [
        "--owners",
        "3",
        "--epsilon",
        "1",
        "5",
        "--repeats",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(study.app, arguments)
    assert done.exit_code == 0, done.output
    assert "digits, with masks: 3 owners" in done.output
    assert "DPDPCA" in done.output and "PrivateLocalPCA" in done.output
    table = pd.read_csv(tmp_path / "table.csv")
    assert set(table["scheme"]) == {study.DPDPCA, study.LOCAL, study.CENTRAL, study.RANDOM}
    try:
        pyplot()
    except MissingPlotsError:
        return
    assert (tmp_path / "pca.png").stat().st_size > 5000
    wrong = CliRunner().invoke(study.app, ["--dataset", "iris", "--out", str(tmp_path)])
    assert wrong.exit_code == 2
    assert "dataset must be one of" in wrong.output
