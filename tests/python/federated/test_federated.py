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

pytest.importorskip("phe", reason="phe and gmpy2 are not installed: pip install '.[federated]'")
pytest.importorskip("gmpy2", reason="phe and gmpy2 are not installed: pip install '.[federated]'")

from federation_tools import PCA, D, contract, parts, rows

from fdadp.errors import InputError
from fdadp.federated import Contract, Federation, Owner, ProtocolError, federated_models, fit_in_clear, fit_together
from fdadp.federated.paillier import SecretKey, unpack
from fdadp.federated.wire_format import Kind, Message, ciphertexts_from_bytes

# ---------------------------------------------------------------- a run


def test_totals_are_the_plaintext_sums_plus_the_owners_noise(key: SecretKey) -> None:
    """What is decrypted equals the exact integer sum of all persons plus what each owner added, to the last bit."""
    X, terms = rows(), contract()
    federation = Federation(terms, parts(X, 3), key=key, random_state=1)
    totals = federation.proxy.run(federation.exchange)
    shares = [federated_models.fit(federation.contract, data, [], 1000 + i).share for i, data in enumerate(parts(X, 3))]
    assert totals[0][0].tolist() == sum(shares).tolist()
    sums = [_exact(terms, data) for data in parts(X, 3)]
    noise = [share - exact for share, exact in zip(shares, sums, strict=True)]
    assert sum(sums).tolist() == _exact(terms, (X,)).tolist()
    assert (totals[0][0] - _exact(terms, (X,))).tolist() == sum(noise).tolist()


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
def test_one_person_moves_a_share_by_no_more_than_the_noise_is_made_for(key: SecretKey, values: float) -> None:
    """Norm of the difference on the lattice itself; the message looks the same."""
    X, terms = rows(60), contract()
    with_person = np.vstack([np.full(D, values), X])
    moved = (_exact(terms, (with_person,)) - _exact(terms, (X,))).tolist()
    assert sum(v * v for v in moved) <= 4**24  # exact, in Python's integers
    asked = next(d for _, to, d in _asked(terms, key) if to == "owner-1")
    answers = [Message.from_bytes(Owner(terms, "owner-1", (data,)).answer(asked)) for data in (X, with_person)]
    assert [a.kind for a in answers] == [Kind.SHARE] * 2
    assert len(answers[0].body) == len(answers[1].body)


def _asked(terms: Contract, key: SecretKey) -> list[tuple[str, str, bytes]]:
    federation = Federation(terms, parts(rows(60), 3), key=key)
    federation.run()
    return federation.traffic


def test_everybody_has_the_same_model(key: SecretKey) -> None:
    federation = Federation(contract(), parts(rows(), 3), key=key)
    model = federation.run()
    assert isinstance(model, DPPCA)
    assert abs(model.components_[0, 0]) > 0.95
    for owner in federation.owners:
        assert owner.result_.components_.tolist() == model.components_.tolist()
        assert owner.result_.ledger_.to_dict() == model.ledger_.to_dict()
    assert model.ledger_.for_release
    assert "collude" in model.ledger_.statement
    assert model.ledger_.details["noise"].startswith("in shares of 3 owners")
    assert model.privacy_spent_["spent"] <= 1.0


def test_the_split_of_the_rows_does_not_matter(key: SecretKey) -> None:
    """The same shares of noise give the same totals, however the persons are spread."""
    X, terms = rows(), contract(run="one")
    cuts = ([200, 400], [1, 2], [598, 599])
    totals = []
    for at in cuts:
        federation = Federation(terms, [(p,) for p in np.split(X, at)], key=key, random_state=3)
        totals.append(federation.proxy.run(federation.exchange)[0][0].tolist())
    assert totals[0] == totals[1] == totals[2]


def test_noise_counts_the_owners_that_may_fail(key: SecretKey) -> None:
    model = Federation(contract(5, lost=1, corrupt=2), parts(rows(), 5), key=key).run()
    release = model.ledger_.releases[0]
    mu = math.sqrt(2 * Budget(PCA["epsilon"], PCA["delta"]).total * release.share)
    assert release.sd / (release.sensitivity / mu) == pytest.approx(math.sqrt(5 / 2), rel=1e-6)  # over one place's
    assert release.rho == pytest.approx(mu**2 / 2, rel=1e-6)


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
    terms = contract(groups=True, key=None)
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


def test_what_proxy_and_user_could_learn_together_is_what_the_statement_says(key: SecretKey) -> None:
    """A single share, decrypted, carries noise of 1/h of the variance: √h times the μ."""
    federation = Federation(contract(4, lost=1), parts(rows(), 4), key=key)
    model = federation.run()
    share = next(
        Message.from_bytes(data)
        for name, _, data in federation.traffic
        if name == "owner-2" and Message.from_bytes(data).kind == Kind.SHARE
    )
    terms = federation.owners[0].contract
    waits = federated_models.fit(terms, None, [])
    plain = key.decrypt(ciphertexts_from_bytes(share.body, key.public.size))
    _, alone = unpack(plain, waits.size, waits.width, int(key.public.n))
    away = (alone - _exact(terms, parts(rows(), 4)[1])) * 2.0**-24 * model.ledger_.releases[0].clip
    share_sd = model.ledger_.releases[0].sd / math.sqrt(4)
    assert 0.2 * share_sd < away.std() < 2.5 * share_sd
    (release,) = model.ledger_.releases
    assert f"alone has its persons at mu = {math.sqrt(2) * release.mu:.4g} (Gaussian DP)" in model.ledger_.statement


@pytest.mark.parametrize(("owners", "corrupt"), [(2, 1), (3, 1), (6, 2)])
def test_the_statement_of_masked_sums_says_what_colluding_owners_have(owners: int, corrupt: int) -> None:
    """The sum of the other owners' shares: μ by the noise in it."""
    terms = contract(owners, corrupt=corrupt, key=None)
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
    for words in ("under this contract alone", "nobody keeps that account", "k times the mu"):
        assert words in ledger.statement
    assert "does not collude" not in ledger.statement
    simulated = fit_together(terms, parts(rows(), owners), random_state=0).ledger_
    assert not simulated.for_release


@pytest.mark.parametrize(
    ("changes", "data", "error", "match"),
    [
        ({}, 3, InputError, "data must be of 2 owners, got 3"),
        ({"key": "0" * 64}, 2, InputError, "contract must name no keys"),
        ({"owners": 3, "lost": 1}, 3, ProtocolError, "no owner that may be lost"),
    ],
)
def test_what_a_run_in_one_process_refuses(changes: dict[str, Any], data: int, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        fit_together(contract(**{"owners": 2, "key": None, **changes}), parts(rows(), data))
