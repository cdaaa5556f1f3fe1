"""Private mean and components: what they promise, what they release, how good they are. Seeded noise throughout."""

from __future__ import annotations

import functools
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from private_settings import summary_settings
from skfda import FDataGrid
from sklearn.base import clone

import fdadp.summaries.curves.released_summary as release
from fdadp import PrivateFPCA, PrivateMean, PublicPrior, simulate_affr
from fdadp.audit import Neighbours, replay_audit
from fdadp.audit.replay import difference, fingerprint
from fdadp.errors import ClippingWarning, FileFormatError, InputError, PrivacyError, PublicInputWarning
from fdadp.functional.fpca import dense_eigenbasis
from fdadp.privacy import Budget, OpenDPNoise, SeededNoise, TapeNoise, epsilon_from_mu
from fdadp.privacy.kernel._kernel import Kernel
from fdadp.privacy.noise.distributed import DistributedNoise, noise_source
from fdadp.private.levels.tail_law_and_clip import EDGES, Tail

N, GRID = 1000, np.linspace(0, 2, 31)
BOUNDS = (-8, 8)
BOTH = pytest.mark.parametrize("estimator", [PrivateMean, PrivateFPCA])


@functools.cache
def population():
    sim = simulate_affr(scenario=1, n=20_000, seed=5, n_points=31)
    return sim.Y.data_matrix[..., 0] + 2.0  # off the middle of the bounds


def sample(seed=0, n=N):
    return population()[np.random.default_rng(seed).integers(0, len(population()), n)]


def private(**kwargs):
    return summary_settings(**{"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "n": N, "random_state": 7} | kwargs)


VARIANTS = {
    "zero-out": {},
    "replace": {"adjacency": "replace"},
    "add-remove": {"n": None},
    "pure": {"delta": None, "epsilon": 2.0},
    "pure, add-remove": {"delta": None, "n": None, "epsilon": 2.0},
    "pure, replace": {"delta": None, "adjacency": "replace", "epsilon": 4.0},
}


# --- what is promised ---


@BOTH
@pytest.mark.parametrize("variant", VARIANTS)
def test_releases_add_up_to_the_budget_and_no_more(estimator, variant):
    model = estimator(**private(**VARIANTS[variant]))
    ledger, settings = model.fit(sample(), t=GRID).ledger_, model.privacy
    assert sum(r.share for r in ledger.releases) == pytest.approx(1.0, abs=1e-8)
    assert all(r.sd > 0 and r.clip > 0 and r.adjacency == settings.stated_adjacency for r in ledger.releases)
    if settings.delta is None:
        assert sum(r.epsilon for r in ledger.releases) <= settings.epsilon
        assert all(r.norm == ("nuclear" if r.name == "covariance" else "L1") for r in ledger.releases)
    else:
        assert 0.99 < epsilon_from_mu(math.hypot(*(r.mu for r in ledger.releases)), 1e-6) <= settings.epsilon
    assert ledger.private and not ledger.for_release and "not for release" in ledger.headline
    of = {r.name: r.sensitivity / r.clip for r in ledger.releases}  # one clip, or two; of positive matrices √2 in L2
    one = 2.0 if settings.stated_adjacency == "replace" else 1.0
    assert of["mean"] == one and of["covariance"] == pytest.approx(
        min(one, np.sqrt(2)) if settings.delta else one, rel=1e-5
    )


@BOTH
@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (None, "Privacy"),
        ({"bounds": None}, "bounds"),
        ({"bounds": {"Y": (0, 1)}}, "bounds"),
        ({"n": N, "adjacency": "add-remove"}, "left out"),
        ({"n": None, "adjacency": "replace"}, "declared"),
        ({"delta": 1e-3, "n": 1000}, "delta"),
        ({"prior": 3}, "prior"),
        ({"n": 10}, "noise"),
    ],
)
def test_bad_settings_are_refused_and_nothing_is_spent(estimator, settings, text):
    budget = Budget(1.0, (settings or {}).get("delta", 1e-6))
    model = estimator() if settings is None else estimator(**private(**settings, budget=budget))
    with pytest.raises((InputError, PrivacyError), match=text):
        model.fit(sample())
    assert budget.spent == budget.reserved == 0


@BOTH
@pytest.mark.parametrize(
    ("Y", "kwargs", "text"),
    [
        (np.zeros(5), {}, "two-dimensional"),
        (np.zeros((5, 2)), {}, "two-dimensional|points"),
        (np.zeros((5, 31)), {"t": np.zeros(31)}, "increasing"),
        (np.zeros((5, 31)), {"groups": [1, 2]}, "one entry per curve"),
    ],
)
def test_bad_curves_are_refused_and_nothing_is_spent(estimator, Y, kwargs, text):
    budget = Budget(1.0, 1e-6)
    with pytest.raises(InputError, match=text):
        estimator(**private(budget=budget)).fit(Y, **kwargs)
    assert budget.spent == budget.reserved == 0


@pytest.mark.parametrize("n_components", [0, 13, 1.5, "all", None])
def test_bad_numbers_of_components(n_components):
    budget = Budget(1.0, 1e-6)
    with pytest.raises(InputError, match="n_components"):
        PrivateFPCA(n_components=n_components, **private(budget=budget)).fit(sample())
    assert budget.spent == budget.reserved == 0


@BOTH
def test_a_shared_budget_refuses_the_second_fit(estimator):
    budget, Y = Budget(1.0, 1e-6), sample()
    estimator(**private(budget=budget)).fit(Y)
    assert budget.left == 0
    with pytest.raises(PrivacyError, match="share"):
        estimator(**private(budget=budget)).fit(Y)


@BOTH
def test_secure_noise_is_for_release_and_differs(estimator):
    one, two = (estimator(**private(random_state=None)).fit(sample()) for _ in range(2))
    assert one.ledger_.for_release and OpenDPNoise().description in str(one.ledger_)
    assert np.abs(one.mean_ - two.mean_).max() > 1e-6
    again, same = (estimator(**private()).fit(sample()) for _ in range(2))
    np.testing.assert_array_equal(again.mean_, same.mean_)


# --- chunks ---


def cut(arrays, sizes):
    edges = np.append(np.cumsum(sizes, dtype=int), len(arrays[0]))
    return [tuple(a[i:j] for a in arrays) for i, j in zip(np.append(0, edges[:-1]), edges, strict=True)]


@pytest.mark.each_once
@BOTH
@pytest.mark.parametrize("kept", [2**28, 2**10])
@pytest.mark.parametrize("variant", ["zero-out", "pure, add-remove"])
def test_chunks_give_the_fit_in_memory_bit_for_bit(estimator, variant, kept, monkeypatch):
    monkeypatch.setattr("fdadp.privacy.rows._vault.KEPT", kept)
    Y, ids = sample(), np.arange(N) % 431
    Y[3, 4], Y[900] = np.nan, 1e30
    for grouped in (False, True):
        n = None if "add-remove" in variant else 431 if grouped else N
        model = functools.partial(estimator, **private(**VARIANTS[variant] | {"n": n}))
        wanted = model().fit(Y, t=GRID, groups=ids if grouped else None)
        for sizes in ((), (1, 511, 0, 300)):
            pieces = cut((Y, ids), sizes)
            single = [y for y, _ in pieces]
            found = [model().fit_chunks(single, t=GRID, groups=ids if grouped else None)]
            if grouped:
                found.append(model().fit_chunks(lambda: iter(pieces), t=GRID, groups=True))  # noqa: B023
            else:
                found.append(model().fit_chunks(lambda: iter(single), t=GRID))  # noqa: B023
                found.append(model().fit_chunks([pd.DataFrame(y) for y in single], t=GRID))
            for one in found:
                assert difference(released(one), released(wanted)) == ""


def released(model):
    """All that a fit left, but the settings and the kind of object, which differ."""
    return fingerprint({k: v for k, v in vars(model).items() if k not in ("privacy", "privacy_", "_kind", "_columns")})


@BOTH
@pytest.mark.parametrize(
    ("chunks", "kwargs", "text"),
    [
        (lambda: iter([]), {"t": None}, "t=None|got None"),
        (np.zeros((5, 31)), {}, "got one ndarray"),
        (FDataGrid(np.zeros((5, 31)), GRID), {}, "got one FDataGrid"),
        ((y for y in [1]), {}, "one-way generator"),
        ([], {}, "at least one chunk"),
        ([np.zeros((5, 30))], {}, "must have 31 points"),
        ([FDataGrid(np.zeros((5, 31)), 2 * GRID)], {}, "declared grid"),
        ([np.zeros((5, 31))], {"groups": True}, r"\(Y, groups\)"),
        ([(np.zeros((5, 31)), np.arange(4))], {"groups": True}, "same length"),
        ([np.zeros((5, 2))], {"t": [0.0, 1.0]}, "3 points"),
    ],
)
def test_bad_chunks_are_refused_and_nothing_is_spent(estimator, chunks, kwargs, text):
    budget = Budget(1.0, 1e-6)
    with pytest.raises(InputError, match=text):
        estimator(**private(budget=budget)).fit_chunks(chunks, **{"t": GRID} | kwargs)
    assert budget.spent == budget.reserved == 0


@BOTH
def test_a_failing_source_spends_the_budget_and_says_nothing(estimator):
    def source():
        yield sample()
        raise RuntimeError("1234.5")

    budget = Budget(1.0, 1e-6)
    with pytest.raises(PrivacyError, match="the source of chunks failed") as refused:
        estimator(**private(budget=budget)).fit_chunks(source, t=GRID)
    assert refused.value.__context__ is None and budget.left == 0


# --- exact losses: people really deleted, blanked out or replaced ---


NASTY = {
    "high": np.full(31, 7.9),
    "low": np.full(31, -7.9),
    "waves": 7.9 * np.sign(np.sin(np.arange(31) * 1.3)),
    "outside": np.full(31, 1e30),
    "missing": np.full(31, np.nan),
    "infinite": np.full(31, -np.inf),
    "text": np.array(["?"] * 31, dtype=object),
}


def neighbours(estimator, kinds=tuple(NASTY), variants=tuple(VARIANTS)):
    for number, (kind, variant, grouped) in enumerate(itertools.product(kinds, variants, (False, True))):
        rng = np.random.default_rng(number)
        n = 60
        Y = sample(number, n).astype(object)
        ids = rng.integers(0, n // 2, n).astype(object) if grouped else None
        rows = ids == ids[7] if grouped else np.arange(n) == 7
        Y[rows] = NASTY[kind]
        if "replace" in variant:
            other = Y.copy()
            other[rows] = NASTY[kinds[(kinds.index(kind) + 1) % len(kinds)]] if len(kinds) > 1 else 0.0
            second = other, ids
        elif grouped and number % 4 == 1:
            left_out = ids.copy()
            left_out[rows] = None
            second = Y, left_out
        else:
            second = Y[~rows], None if ids is None else ids[~rows]
        settings = private(**{"n": n, "epsilon": 8.0} | {k: v for k, v in VARIANTS[variant].items() if k != "epsilon"})

        def run(data, noise, settings=settings):
            model = estimator(**settings)._fit(data[0], None, data[1], noise)
            out = {"attributes": vars(model), "texts": [str(model.ledger_), model.summary().as_text()]}
            return out | ({"band": model.band()} if estimator is PrivateMean else {})

        total = Budget(8.0, settings["privacy"].delta).total
        yield Neighbours(f"{kind}, {variant}, {'persons' if grouped else 'rows'}", run, (Y, ids), second, total)


@pytest.mark.statistics
@BOTH
def test_fits_cost_at_most_their_budget_and_show_nothing_else(estimator):
    result = replay_audit(neighbours(estimator), seed=3)
    assert result.passed, str(result)
    assert result.ratios.max() <= 1 and 0.9 < result.changes.max() <= 1
    assert result.finished >= 70 and result.releases > 350


@BOTH
def test_a_few_fits_cost_at_most_their_budget(estimator):
    result = replay_audit(neighbours(estimator, ("high", "text")), seed=3)
    assert result.passed, str(result)
    assert 0.9 < result.changes.max() <= 1 and result.finished == len(result.ratios)


def _doubled_reach(monkeypatch):
    right = release.CurveRowFunctions.within_reach
    kernel = Kernel.sensitivity
    monkeypatch.setattr(release.CurveRowFunctions, "within_reach", lambda self, block: np.sqrt(2) * right(self, block))
    monkeypatch.setattr(Kernel, "sensitivity", lambda self, *a: kernel(self, *a) / 2)


def _data_in_the_mean(monkeypatch):
    right = release.release_mean

    def mutant(cohort, rows, *args):
        mean, *others = right(cohort, rows, *args)
        return mean + 1e-12 * cohort._kernel.vault.passes * len(cohort._kernel.vault._Vault__tables[0]), *others

    monkeypatch.setattr(release, "release_mean", mutant)


@pytest.mark.parametrize("mutate", [_doubled_reach, _data_in_the_mean])
def test_the_audit_notices_mutants(monkeypatch, mutate):
    mutate(monkeypatch)
    assert not replay_audit(neighbours(PrivateFPCA, ("high",), ("zero-out",)), seed=1).passed


# --- how good they are ---


@pytest.mark.statistics
@pytest.mark.parametrize("settings", [{}, {"delta": None}, {"n": None}], ids=str)
def test_bands_cover_the_true_mean(settings):
    """95 % bands, 60 samples: simultaneous ones hold the whole curve, pointwise ones the nominal share of points."""
    true = population().mean(axis=0)
    whole, points, width, wide = [], [], [], []
    for seed in range(60):
        model = PrivateMean(**private(random_state=seed, **settings)).fit(sample(seed), t=GRID)
        low, high = (band[0] for band in model.band(0.95))
        whole.append(((low <= true) & (true <= high)).all())
        wide.append((high - low).mean())
        low, high = (band[0] for band in model.band(0.95, simultaneous=False))
        points.append(((low <= true) & (true <= high)).mean())
        width.append((high - low).mean())
    assert np.mean(whole) >= 0.88  # 0.95 less 2.5 standard errors
    # Pure bands allow for skewed tails that they cannot see, and these curves have none.
    assert 0.91 <= np.mean(points) <= (0.997 if settings == {"delta": None} else 0.99)
    assert np.mean(wide) > np.mean(width)
    sd = population().std(axis=0).mean() / np.sqrt(N)
    assert 2 * 1.96 * sd < np.mean(width) < 6 * 1.96 * sd  # the noise is in it, and it is of use


def test_the_mean_of_many_people_is_about_the_sample_mean():
    Y = sample(3, 20_000)
    model = PrivateMean(**private(n=20_000)).fit(Y, t=GRID)
    assert np.abs(model.mean_ - Y.mean(axis=0)).max() < 0.02 * Y.std(axis=0).mean()
    assert model.noise_sd_.max() < 0.01 * Y.std(axis=0).mean()
    np.testing.assert_allclose(model.sampling_sd_, Y.std(axis=0) / np.sqrt(20_000), rtol=0.15)


@pytest.mark.parametrize("delta", [1e-6, None])
def test_components_are_those_of_the_population(delta):
    n = 10_000
    settings = private(n=n, delta=delta, epsilon=1.0 if delta else 3.0)
    model = PrivateFPCA(n_components=3, **settings).fit(sample(1, n), t=GRID)
    Y = population()
    true = dense_eigenbasis(Y.mean(axis=0), np.cov(Y.T), GRID, n_components=3)
    cosines = np.abs(((model.eigenfunctions_ * true.weights) @ true.functions.T).diagonal())
    assert cosines[0] > 0.995 and cosines[1] > 0.98 and cosines[2] > 0.9
    assert (np.abs(model.eigenvalues_ - true.values) < 0.1 * true.values + 3 * model.covariance_noise_sd_).all()
    assert model.covariance_noise_sd_ < 0.03 * true.values[0]
    np.testing.assert_allclose(
        model.explained_variance_ratio_, true.values / np.trace(np.cov(Y.T) * true.weights), atol=0.08
    )
    np.testing.assert_allclose((model.eigenfunctions_ * model.weights_) @ model.eigenfunctions_.T, np.eye(3), atol=1e-9)
    scores = model.transform(Y[:50])
    assert scores.shape == (50, 3)
    assert np.mean((model.inverse_transform(scores) - Y[:50]) ** 2) < 0.3 * Y.var()


@pytest.mark.filterwarnings("ignore::fdadp.errors.ClippingWarning")  # so much noise that sizes are off by much
def test_noise_does_not_make_large_eigenvalues():
    """With next to no budget, the eigenvalues are those of the prior at the size of the curves, not of the noise."""
    Y = sample(2, 60)
    ratio = []
    for seed in range(10):
        settings = private(n=60, epsilon=0.46, allow_useless=True, random_state=seed)
        model = PrivateFPCA(n_components=1.0, **settings).fit(Y, t=GRID)
        true = (Y.var(axis=0) * model.weights_).sum()
        ratio.append(model.eigenvalues_.sum() / true)
        assert 2 * np.sqrt(12) * model.covariance_noise_sd_ > true  # the largest eigenvalue of the noise alone
    assert 0.2 < np.median(ratio) < 8


def test_what_many_owners_add_to_the_noise_makes_a_request_useless():
    """Ten times the noise, where one of a hundred owners keeps its share to itself; it was not thought of."""
    settings, Y = private(n=100, epsilon=0.3), sample(0, 100)
    noise = DistributedNoise(owners=100, honest=1, n_max=100, random_state=0)
    with noise_source(noise), pytest.raises(PrivacyError, match="must leave noise of at most"):
        PrivateMean(**settings).fit(Y, t=GRID)
    assert np.isfinite(PrivateMean(**settings).fit(Y, t=GRID).mean_).all()


def test_people_with_several_rows_count_once():
    Y = np.vstack([np.repeat(sample(0, 500), 1, axis=0), np.repeat(np.full((1, 31), 7.5), 1500, axis=0)])
    ids = np.concatenate([np.arange(500), np.full(1500, 500)])  # one person with three quarters of the rows
    model = PrivateMean(**private(n=501, epsilon=4.0)).fit(Y, t=GRID, groups=ids)
    assert np.abs(model.mean_ - Y[:500].mean(axis=0)).max() < 0.25
    assert "person" in model.ledger_.details["unit"]


def test_values_beyond_the_bounds_are_clipped_there():
    Y = np.full((N, 31), 1e6)
    with pytest.warns(PublicInputWarning, match="at least 9[5-9] % of the values of the curves were clipped|100 %"):
        model = PrivateMean(**private(epsilon=20.0, bounds=(-1, 1))).fit(Y)
    assert np.abs(model.mean_ - 1.0).max() < 0.05
    missing = PrivateMean(**private(epsilon=20.0, bounds=(1, 3))).fit(np.full((N, 31), np.nan))
    assert np.abs(missing.mean_ - 2.0).max() < 0.05


# --- as other estimators ---


@BOTH
def test_kinds_files_and_texts(estimator, tmp_path):
    Y = sample()
    frame = pd.DataFrame(Y, columns=GRID)
    array, grid, table = (
        estimator(**private()).fit(data, t=t) for data, t in ((Y, GRID), (FDataGrid(Y, GRID), None), (frame, None))
    )
    np.testing.assert_array_equal(array.mean_, grid.mean_)
    np.testing.assert_array_equal(array.mean_, table.mean_)
    for model, kind in ((array, np.ndarray), (grid, FDataGrid), (table, pd.DataFrame)):
        out = model.mean_curve_ if estimator is PrivateMean else model.inverse_transform(model.transform(Y[:2]))
        assert isinstance(out, kind)
        path = model.save(tmp_path / "model.npz")
        again = estimator.load(path)
        np.testing.assert_array_equal(again.mean_, model.mean_)
        assert again.ledger_ == model.ledger_ and again.summary().as_text() == model.summary().as_text()
        assert again.bounds == BOUNDS and again.get_params().keys() == model.get_params().keys()
        if estimator is PrivateMean:
            for a, b in zip(again.band(0.9), model.band(0.9), strict=True):
                np.testing.assert_array_equal(
                    np.asarray(getattr(a, "data_matrix", a)), np.asarray(getattr(b, "data_matrix", b))
                )
        else:
            np.testing.assert_array_equal(again.transform(Y[:3]), model.transform(Y[:3]))
    other = PrivateMean if estimator is PrivateFPCA else PrivateFPCA
    with pytest.raises(FileFormatError):
        other.load(path)
    assert clone(array).get_params()["privacy"] == array.privacy
    assert "epsilon = 1" in array.summary().as_text() == str(array)
    shown = [own._repr_mimebundle_()["text/html"] for own in (array, estimator())]  # what a notebook takes
    assert "epsilon = 1" in shown[0] and "sklearn" not in shown[0] and "sklearn" in shown[1]
    pytest.importorskip("matplotlib").use("agg")
    assert array.plot().axes
    with pytest.raises(Exception, match="not fitted"):
        estimator().summary()


def test_a_prior_says_which_functions_carry_the_mean():
    prior = PublicPrior(n_response=5, y_length=0.4)
    model = PrivateFPCA(n_components=1.0, **private(prior=prior)).fit(sample())
    assert model.n_components_ <= 5 and "5, of correlation length 0.4" in str(model.ledger_)
    with pytest.raises(InputError, match="level"):
        PrivateMean(**private()).fit(sample()).band(1.0)


def test_tapes_record_the_releases():
    tape = TapeNoise(SeededNoise(0))
    PrivateMean(**private())._fit(sample(), None, None, tape)
    assert [e.size for e in tape.entries] == [1, 1, 16, 1, 12, 1, 4, 12, 78]


# --- tails: skewed curves, heavy tails, bounds that are too narrow ---


def log_normal(n, seed, size=1.0):
    """Curves exp(size · g), g a smooth Gaussian process of variance 1 on 31 points; mean exp(size²/2)."""
    t = np.linspace(0, 1, 31)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((t[:, None] - t) / 0.5) ** 2))
    root = vectors * np.sqrt(np.maximum(values, 0))
    return np.exp(size * np.random.default_rng(seed).normal(size=(n, 31)) @ root.T)


@pytest.mark.each_once
@pytest.mark.statistics
@pytest.mark.parametrize("delta", [1e-6, None])
@pytest.mark.parametrize("n", [1000, 5000])
def test_bands_hold_the_mean_of_skewed_curves(n, delta):
    """0.1 clipped at a multiple of the typical size, always on the same side: .80 and .00 of these bands held."""
    true, held = np.exp(0.5), []
    for seed in range(25):
        settings = private(n=n, delta=delta, bounds=(0, 60), random_state=seed)
        low, high = (band[0] for band in PrivateMean(**settings).fit(log_normal(n, seed)).band())
        held.append(((low <= true) & (true <= high)).all())
    assert np.mean(held) >= 0.84  # at a level of .95 or .90, less than 2.5 or 1 standard errors


@pytest.mark.statistics
def test_pure_bands_hold_the_mean_of_a_log_normal_level():
    """With as much of the tail allowed for as under Gaussian noise, .64 of these bands held."""
    true, held = np.exp(0.5), []
    for seed in range(25):
        rng = np.random.default_rng([seed, 1000])
        curves = np.exp(rng.normal(size=(1000, 1))) + 0.1 * rng.normal(size=(1000, 31))
        settings = private(n=1000, delta=None, bounds=(0, 20), random_state=seed)
        low, high = (band[0] for band in PrivateMean(**settings).fit(curves).band())
        held.append(((low <= true) & (true <= high)).all())
    assert np.mean(held) >= 0.88


def test_what_the_clip_takes_off_is_said_for_skewed_curves_and_next_to_nothing_for_others():
    skewed = PrivateMean(**private(n=5000, bounds=(0, 60))).fit(log_normal(5000, 1))
    gaussian = PrivateMean(**private(n=5000)).fit(sample(1, 5000), t=GRID)
    assert skewed.clipping_sd_.mean() > 0.3 * skewed.sampling_sd_.mean()
    assert gaussian.clipping_sd_.mean() < 0.35 * gaussian.sampling_sd_.mean()  # 6 % of the width of a band
    [clip] = [r.clip for r in skewed.ledger_.releases if r.name == "mean"]
    [typical] = [r.clip for r in gaussian.ledger_.releases if r.name == "mean"]
    assert clip / log_normal(5000, 1).std() > 1.3 * typical / sample(1, 5000).std()
    assert "Clipping" in skewed.summary().as_text()


@pytest.mark.parametrize("delta", [1e-6, None])
def test_eigenvalues_of_heavy_tails_are_about_those_of_the_population(delta):
    """Of 0.1 .5 to .6 of the truth."""
    n, ratios = 20_000, []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sizes = np.exp(0.8 * rng.normal(size=(n, 1)))
        Y = (population()[rng.integers(0, 20_000, n)] - population().mean(axis=0)) * sizes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClippingWarning)
            model = PrivateFPCA(n_components=1, **private(n=n, delta=delta, bounds=(-80, 80))).fit(Y, t=GRID)
        true = dense_eigenbasis(np.zeros(31), np.cov(population().T) * np.exp(2 * 0.64), GRID, n_components=1)
        ratios.append(model.eigenvalues_[0] / true.values[0])
        assert model.variance_beyond_clip_ > 0.01
    assert min(ratios) > 0.8 and max(ratios) < 1.4, ratios


@BOTH
def test_bounds_that_are_too_narrow_are_said(estimator):
    narrow = private(n=5000, bounds=(1.5, 2.5))
    with pytest.warns(PublicInputWarning, match=r"at least \d\d % of the values of the curves were clipped: widen"):
        model = estimator(**narrow).fit(sample(1, 5000), t=GRID)
    assert "share of values beyond the bounds" in str(model.ledger_) and model.mean_.shape == (31,)


def test_a_tail_is_what_the_shares_and_the_prior_let_expect():
    sizes = np.random.default_rng(0).weibull(2.0, 100_000)  # as of Gaussian curves of two components
    typical = np.exp(np.log(sizes).mean())
    shares = (sizes[:, None] > typical * EDGES).mean(axis=0)
    tail = Tail.fit(shares, 1e-4, typical, 50.0, len(sizes))
    assert tail.mean_square == pytest.approx((sizes**2).mean(), rel=0.1)
    for clip in (1.2, 1.8, 2.5):
        want = np.maximum(sizes - clip, 0).mean()
        assert 0.8 * want < tail.excess(clip) < 1.4 * want + 2e-3  # the laws are a grid
        assert tail.excess(clip) * 0.8 < tail.likely_excess(clip, 0.9) < 3 * want + 2e-3
    far = Tail.fit(np.array([0.3, 0.3, 0.3, 0.3]), 1e-4, 1.0, 100.0, 1e6)  # no law of the prior: what is sure counts
    assert far.excess(2.0) > 0.29 * (EDGES[-1] - 2.0)
    vague = Tail.fit(np.zeros(4), 1e3, 1.0, 20.0, 100.0)
    assert 1.0 < vague.mean_square < 10 and not vague.surely.any()
    one, two = (Tail.fit(shares, 0.01, typical * c, 50.0 * c, 1000.0) for c in (1.0, 1e-9))  # units
    assert two.excess(1.5e-9, 2) == pytest.approx(one.excess(1.5, 2) * 1e-18)


def test_curves_off_the_middle_of_the_bounds_cost_little():
    middle, off = (
        PrivateMean(**private(bounds=b, random_state=3)).fit(sample(3), t=GRID) for b in ((-6, 10), (-1, 60))
    )
    assert np.abs(off.mean_ - sample(3).mean(axis=0)).max() < 0.25
    low, high = (np.subtract(*m.band()[::-1]).mean() for m in (middle, off))
    assert high < 1.6 * low
