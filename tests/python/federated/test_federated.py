"""Sums of many owners: everybody gets the same model, and nobody sees what it must not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fdadp import AdditiveFunctionOnFunction, Privacy
from fdadp.learners import DPPCA, DPLinearRegression
from fdadp.privacy import Budget, epsilon_from_mu
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[federated]'")

from federation_tools import PCA, D, contract, parts, rows

from fdadp.errors import InputError
from fdadp.federated import Contract, federated_models, fit_in_clear, fit_together
from fdadp.federated.owners.data_owner import ContractProgram
from fdadp.federated.owners.one_process import owners_of, run_to_end

# ---------------------------------------------------------------- a run


def test_totals_are_the_exact_sums_plus_the_owners_noise() -> None:
    """What the shares add up to is the exact integer sum of all persons plus what each owner added, to the last bit."""
    X, terms = rows(), contract()
    run = run_to_end(owners_of(terms, parts(X, 3), random_state=1))
    (total,) = run.totals_
    shares = [federated_models.fit(run.contract, data, [], 1000 + i).share for i, data in enumerate(parts(X, 3))]
    assert total.tolist() == sum(shares).tolist()
    sums = [_exact(terms, data) for data in parts(X, 3)]
    noise = [share - exact for share, exact in zip(shares, sums, strict=True)]
    assert sum(sums).tolist() == _exact(terms, (X,)).tolist()
    assert (total - _exact(terms, (X,))).tolist() == sum(noise).tolist()


def _exact(terms: Contract, data: tuple[Any, ...]) -> np.ndarray:
    class Silent(DistributedNoise):
        def _share(self, sd: float, size: int) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

    estimator = federated_models.MODELS[terms.model].estimator(dict(terms.settings))
    from fdadp.privacy.noise.distributed import noise_source

    with pytest.raises(NextRound) as waits, noise_source(Silent(owners=3, honest=2, n_max=1000)):
        estimator.fit(*data)
    assert waits.value.share is not None
    return waits.value.share


@pytest.mark.filterwarnings("ignore:what was released speaks")  # of few rows, by secure noise
@pytest.mark.parametrize("values", [0.0, 3.0, -3.0, 1e30, np.inf, np.nan])
def test_one_person_moves_a_share_by_no_more_than_the_noise_is_made_for(values: float) -> None:
    """Norm of the difference on the lattice itself; the message looks the same."""
    X, terms = rows(60), contract()
    with_person = np.vstack([np.full(D, values), X])
    moved = (_exact(terms, (with_person,)) - _exact(terms, (X,))).tolist()
    assert sum(v * v for v in moved) <= 4**24  # exact, in Python's integers
    shares = [ContractProgram(terms, (data,))([]).share for data in (X, with_person)]
    assert shares[0].shape == shares[1].shape


def test_everybody_has_the_same_model() -> None:
    owners = owners_of(contract(), parts(rows(), 3))
    run = run_to_end(owners)
    model = federated_models.fit(run.contract, None, run.totals_)
    assert isinstance(model, DPPCA)
    assert abs(model.components_[0, 0]) > 0.95
    for owner in owners:
        assert owner.result_.components_.tolist() == model.components_.tolist()
        assert owner.result_.ledger_.to_dict() == model.ledger_.to_dict()
    assert model.ledger_.for_release
    assert "collude" in model.ledger_.statement
    assert "All owners were in one process" in model.ledger_.statement
    assert model.ledger_.details["noise"].startswith("in shares of 3 owners")
    assert model.privacy_spent_["spent"] <= 1.0


def test_the_split_of_the_rows_does_not_matter() -> None:
    """The same shares of noise give the same totals, however the persons are spread."""
    X, terms = rows(), contract(run="one")
    cuts = ([200, 400], [1, 2], [598, 599])
    totals = []
    for at in cuts:
        run = run_to_end(owners_of(terms, [(p,) for p in np.split(X, at)], random_state=3))
        totals.append(run.totals_[0].tolist())
    assert totals[0] == totals[1] == totals[2]


def test_noise_counts_the_owners_that_may_collude() -> None:
    model = fit_together(contract(5, corrupt=3), parts(rows(), 5))
    release = model.ledger_.releases[0]
    mu = math.sqrt(2 * Budget(PCA["epsilon"], PCA["delta"]).total * release.share)
    assert release.sd / (release.sensitivity / mu) == pytest.approx(math.sqrt(5 / 2), rel=1e-6)  # over one place's
    assert release.rho == pytest.approx(mu**2 / 2, rel=1e-6)


BALL = {"epsilon": 9.0, "delta": 1e-6, "n_features": D, "bounds": [-3, 3]}


@pytest.mark.parametrize("how", [fit_together, fit_in_clear])
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("pca", PCA | {"mechanism": "power", "n_iter": 2, "mean_share": 0.0}),
        ("kmeans", {**BALL, "n_clusters": 2, "init": "sphere_packing"}),
    ],
)
def test_public_random_choices_are_those_of_the_run(model: str, settings: dict[str, Any], how: Any) -> None:
    """Without random_state each owner drew its own start, and sums of other functions were added up."""
    terms, other = (Contract(model, settings, 2, n_max=1000, run=run) for run in ("one", "another"))
    same = [how(terms, parts(rows(), 2), random_state=3) for _ in range(2)]
    name = "components_" if model == "pca" else "cluster_centers_"
    first, again = (getattr(fitted, name).tolist() for fitted in same)
    assert first == again
    assert getattr(how(other, parts(rows(), 2), random_state=3), name).tolist() != first


@pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")
def test_regression_of_several_hospitals() -> None:
    """The moments mechanism, eleven releases: as good as with all curves in one place."""
    rng = np.random.default_rng(0)
    s = np.linspace(0, 1, 21)
    scores = rng.normal(size=(1500, 3)) / [1, 2, 3]
    X = scores @ np.array([np.sqrt(2) * np.sin(k * np.pi * s) for k in (1, 2, 3)])
    Y = np.sin(s[None, :, None] - X[:, None, :] - 0.5).mean(axis=2) * 2 + 0.1 * rng.normal(size=(1500, 21))
    settings = {
        "epsilon": 8.0,
        "delta": 1e-6,
        "bounds": {"X": [-4, 4], "Y": [-3, 3]},
        "n": 1500,
        "mechanism": "moments",
    }
    terms = Contract("regression", {**settings, "s": s.tolist(), "t": s.tolist()}, 3, n_max=1500)
    model = fit_together(terms, list(zip(np.array_split(X, 3), np.array_split(Y, 3), strict=True)))
    assert isinstance(model, AdditiveFunctionOnFunction)
    central = AdditiveFunctionOnFunction(
        privacy=Privacy(8.0, 1e-6, n=1500), bounds={"X": (-4, 4), "Y": (-3, 3)}, mechanism="moments"
    ).fit(X, Y, s=s, t=s)

    def explained(fitted: Any) -> float:
        predicted = np.asarray(fitted.predict(X))
        return 1 - float(((Y - predicted) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())

    assert explained(model) > explained(central) - 0.1
    assert explained(model) > 0.5
    assert [r.name for r in model.ledger_.releases] == [r.name for r in central.ledger_.releases]
    assert epsilon_from_mu(math.hypot(*(r.mu for r in model.ledger_.releases)), 1e-6) <= 8.0


def test_persons_with_several_rows() -> None:
    X = rows()
    terms = contract(groups=True)
    data = [(p, np.repeat(np.arange(100), 2)) for (p,) in parts(X, 3)]
    model = fit_together(terms, data)
    assert "all rows with one id" in model.ledger_.releases[0].unit
    assert model.noisy_n_ == pytest.approx(300, abs=6 * model.ledger_.releases[0].sd / (3 / 4) ** 2)


@pytest.mark.parametrize(
    ("model", "settings", "X", "y"),
    [
        ("linear", {"bounds": [-3, 3], "bounds_y": [-3, 3]}, rows(), rows()[:, 0]),
        ("gaussian-naive-bayes", {"bounds": [-3, 3], "classes": [0, 1]}, rows(), (rows()[:, 0] > 0).astype(float)),
        ("kmeans", {"bounds": [-3, 3], "n_clusters": 2, "random_state": 1, "n_iter": 2}, rows(), None),
    ],
)
def test_the_other_models(model: str, settings: dict[str, Any], X: Any, y: Any) -> None:
    arrays = (X,) if y is None else (X, y)
    terms = Contract(model, {"epsilon": 50.0, "delta": 1e-6, "n_features": D, **settings}, 2, n_max=1000)
    fitted = fit_together(terms, list(zip(*(np.array_split(a, 2) for a in arrays), strict=True)))
    assert fitted.ledger_.for_release
    if y is not None:
        assert np.corrcoef(fitted.predict(X), y)[0, 1] > 0.8


def test_linear_regression_is_that_of_the_pooled_rows() -> None:
    """At an epsilon where noise is small."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, D))
    y = X @ [1.0, -2.0, 0.5]
    settings = {"epsilon": 500.0, "delta": 1e-6, "bounds": [-1, 1], "bounds_y": [-4, 4]}
    terms = Contract("linear", {**settings, "n_features": D}, 3, n_max=3000)
    data = list(zip(np.array_split(X, 3), np.array_split(y, 3), strict=True))
    central = DPLinearRegression(**settings).fit(X, y)
    np.testing.assert_allclose(fit_together(terms, data).coef_, central.coef_, atol=0.05)


@pytest.mark.parametrize("more", [{"n": 3000}, {"mechanism": "rounds"}], ids=["declared", "private n"])
def test_linear_regression_of_many_owners_finds_places_where_bounds_are_far_too_wide(more: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, D))
    y = X @ [1.0, -2.0, 0.5] + 0.5 * rng.standard_normal(3000)
    settings = {"epsilon": 1.0, "delta": 1e-6, "bounds": [-50, 50], "bounds_y": [-900, 900], "n_features": D}
    data = list(zip(np.array_split(X, 3), np.array_split(y, 3), strict=True))
    found, plain = (
        fit_in_clear(Contract("linear", settings | given, 3, n_max=3000), data, random_state=0)
        for given in (more, {"mechanism": "moments"})
    )
    assert found.mechanism_ == "rounds" and found.score(X, y) > 0.8 > 0.5 > plain.score(X, y)


# ---------------------------------------------------------------- what each party sees


def test_one_share_has_the_noise_that_the_statement_says() -> None:
    """1/h of the variance: √h times the μ."""
    terms, data = contract(4, corrupt=2), parts(rows(), 4)
    model = fit_together(terms, data)
    share = ContractProgram(terms, data[1])([]).share
    away = (share - _exact(terms, data[1])) * 2.0**-24 * model.ledger_.releases[0].clip
    share_sd = model.ledger_.releases[0].sd / math.sqrt(4)
    assert 0.2 * share_sd < away.std() < 2.5 * share_sd
    (release,) = model.ledger_.releases
    words = f"all but one owner have that one's persons at mu = {math.sqrt(2) * release.mu:.4g} (Gaussian DP)"
    assert words in model.ledger_.statement


@pytest.mark.parametrize(("owners", "corrupt"), [(2, 1), (3, 1), (6, 2)])
def test_the_statement_of_masked_sums_says_what_colluding_owners_have(owners: int, corrupt: int) -> None:
    """The sum of the other owners' shares: μ by the noise in it."""
    terms = contract(owners, corrupt=corrupt)
    ledger = fit_together(terms, parts(rows(), owners)).ledger_
    (release,) = ledger.releases
    assert ledger.for_release
    step = release.clip * 2.0**-24
    share_sd, sensitivity = release.sd / math.sqrt(owners) / step, release.sensitivity / step

    def mu(shares: int) -> str:
        return f"mu = {sensitivity / math.sqrt(shares * share_sd**2 - 16):.4g}"

    assert f"all but one owner have that one's persons at {mu(1)}" in ledger.statement
    assert f"breaks X25519 later has each owner's persons at {mu(1)}" in ledger.statement
    assert (f"any {owners - 2} owners {mu(2)}" in ledger.statement) == (owners - corrupt > 2)
    for words in ("under this contract alone", "Only an owner's own study keeps that account", "k times the mu"):
        assert words in ledger.statement
    assert "does not collude" not in ledger.statement
    simulated = fit_together(terms, parts(rows(), owners), random_state=0).ledger_
    assert not simulated.for_release


def test_what_a_run_in_one_process_refuses() -> None:
    with pytest.raises(InputError, match="data must be of 2 owners, got 3"):
        fit_together(contract(2), parts(rows(), 3))
    final = owners_of(contract(2), parts(rows(), 2))[0].contract
    with pytest.raises(InputError, match="contract must name no keys"):
        fit_together(final, parts(rows(), 2))
