"""Persons within sites: the dense normal law and its gradients, three levels that are found; and in formulas."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from repeated_tools import check_against_dense_law

from fdadp import FunctionalRegression
from fdadp.errors import InputError
from fdadp.repeated.nested_sites import nested_covariances, nested_fit, site_sums, sites_of_persons
from fdadp.repeated.person_sums import PersonPass, smooth_functions
from fdadp.repeated.two_level_model import deviance, gls


def sites(seed: int, count: int = 5, k: int = 3):
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(count), rng.integers(1, 5, count))
    who = np.repeat(np.arange(site.size), np.r_[2, 3, rng.integers(1, 4, site.size - 2)])
    X = np.column_stack((np.ones(who.size), rng.normal(size=site.size)[who], rng.normal(size=who.size)))
    a, b, c = rng.normal(size=(3, k, k))
    S, G, R = a[:, :2] @ a[:, :2].T, b[:, :1] @ b[:, :1].T, c @ c.T + 0.3 * np.eye(k)
    return X, rng.normal(size=(who.size, k)), who, site, S, G, R


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_value_gradients_and_effects_are_those_of_the_dense_law(seed, restricted):
    X, C, who, site, S, G, R = sites(seed)
    sums = PersonPass(np.eye(3), 3, intercept=False).add(X, C, who).sums()
    s = site_sums(sums, dict(enumerate(site)))
    found = nested_fit(s, S, G, R, restricted=restricted)
    N, k = len(who), 3
    at_site, same = np.equal.outer(site[who], site[who]), np.equal.outer(who, who)
    V = np.kron(at_site, S) + np.kron(same, G) + np.kron(np.eye(N), R)
    F, y, W = np.kron(X, np.eye(k)), C.ravel(), np.linalg.inv(V)
    gram = F.T @ W @ F
    beta = np.linalg.solve(gram, F.T @ W @ y)
    r = y - F @ beta
    want = np.linalg.slogdet(V)[1] + r @ W @ r + (np.linalg.slogdet(gram)[1] if restricted else 0)
    assert found.deviance == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(found.fixed.ravel(), beta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(gram), rtol=1e-8, atol=1e-12)
    left = W - np.outer(W @ r, W @ r)
    if restricted:
        left -= W @ F @ np.linalg.solve(gram, F.T @ W)
    blocks = left.reshape(N, k, N, k)
    for d, mask in ((found.d_s, at_site), (found.d_g, same), (found.d_r, np.eye(N))):
        want_d = np.einsum("nm,nimj->ij", mask, blocks)
        np.testing.assert_allclose(d, want_d, atol=1e-10 * np.abs(want_d).max())
    effects = found.effects(s)
    for i, person in enumerate(sums.ids):
        b = G @ np.kron(who == person, np.eye(k)) @ W @ r
        np.testing.assert_allclose(effects[i], b, atol=1e-10)
    for j, place in enumerate(s.sites):
        np.testing.assert_allclose(found.sites[j], S @ np.kron(site[who] == place, np.eye(k)) @ W @ r, atol=1e-10)


def test_no_effect_of_sites_is_the_model_of_two_levels():
    X, C, who, site, _, G, R = sites(7)
    sums = PersonPass(np.eye(3), 2).add(X[:, 1:], C, who).sums()
    found = nested_fit(site_sums(sums, dict(enumerate(site))), np.zeros((3, 3)), G, R)
    assert found.deviance == pytest.approx(deviance(sums, G, R), rel=1e-12)
    np.testing.assert_allclose(found.fixed, gls(sums, G, R)[0], atol=1e-11)
    assert np.abs(found.sites).max() == 0


def test_three_levels_are_found():
    rng, k = np.random.default_rng(0), 2
    site = np.repeat(np.arange(60), 5)
    who = np.repeat(np.arange(300), 3)
    C = rng.normal(size=(60, k))[site[who]] + 0.7 * rng.normal(size=(300, k))[who] + 0.5 * rng.normal(size=(900, k))
    sums = PersonPass(np.eye(k)).add(None, C, who).sums()
    found = nested_covariances(site_sums(sums, sites_of_persons(who, site[who])))
    for covariance, truth in ((found.S, 1.0), (found.G, 0.49), (found.R, 0.25)):
        np.testing.assert_allclose(covariance, truth * np.eye(k), atol=0.3 * truth)
    for d, covariance in ((found.d_s, found.S), (found.d_g, found.G), (found.d_r, found.R)):
        assert np.abs(d @ covariance).max() < 1e-2


def test_persons_must_be_within_sites():
    with pytest.raises(InputError, match=r"person p1 is at sites A and B: re\(site\) \+ re\(person\) must be nested"):
        sites_of_persons(["p0", "p1", "p1"], ["A", "A", "B"])
    with pytest.raises(InputError, match="missing in 1 rows"):
        sites_of_persons(["p0", "p1"], ["A", None])
    X, C, who, site, *_ = sites(1)
    sums = PersonPass(np.eye(3), 2).add(X[:, 1:], C, who).sums()
    with pytest.raises(InputError, match="got none for 0"):
        site_sums(sums, {})
    with pytest.raises(InputError, match="two sites"):
        nested_covariances(site_sums(sums, dict.fromkeys(range(site.size), "A")))


NESTED = "Y ~ x + day + re(site, covariance='free', k=4) + re(id, covariance='free')"


def clinics(seed: int = 0, count: int = 6, T: int = 16):
    """Patients of clinics with some visits each; a covariate of the clinic and one of the visit."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, T)
    site = np.repeat(np.arange(count), rng.integers(2, 5, count))
    who = np.repeat(np.arange(site.size), rng.integers(2, 5, site.size))
    waves = np.stack([np.ones(T), np.sin(2 * np.pi * t)])
    a, b = rng.normal(size=(count, 2)) @ waves, 0.7 * rng.normal(size=(site.size, 2)) @ waves
    x, day = rng.normal(size=count)[site[who]], rng.normal(size=who.size)
    Y = t + np.outer(x, t) + np.outer(day, 1 - t) + a[site[who]] + b[who] + 0.3 * rng.normal(size=(who.size, T))
    Y += 0.4 * rng.normal(size=(who.size, 1)) * np.cos(np.pi * t)
    return {"Y": Y, "x": x, "day": day, "id": who, "site": np.array(list("ABCDEFGH"))[site[who]]}


@pytest.fixture(scope="module")
def placed():
    data = clinics()
    return FunctionalRegression(NESTED).fit(data), data


def test_terms_persons_and_sites_of_a_formula_are_those_of_the_dense_law(placed):
    model, data = placed
    _, V, (of_persons, of_sites), covariance = check_against_dense_law(model, data)
    own, form = model.persons_, model.fitted_.fit.form
    assert own.names == ("re(id)", "re(site)") and model.term_names_[-2:] == own.names
    design = form.rows(model.fitted_.records(data, None)).reshape(len(V), -1)
    # errors of a person's own curve, and of a site's, by themselves
    for name, column, part, prior in (
        ("re(id)", "id", of_persons, own.levels.G),
        ("re(site)", "site", of_sites, own.sites.S),
    ):
        row = 4
        found = model.coef(name, se=True, kind="iid", t=own.grid, **{column: [data[column][row]]})
        shrunk = part.reshape(len(data["id"]), 16, -1)[row] @ np.linalg.inv(V)
        on_beta = shrunk @ design
        own_variance = own.phi @ prior @ own.phi.T - shrunk @ part.reshape(len(data["id"]), 16, -1)[row].T
        variance = np.diag(on_beta @ covariance @ on_beta.T + own_variance)
        np.testing.assert_allclose(found["se"] ** 2, variance, rtol=1e-6)
    # degrees of freedom: of x from sites, of the day from rows
    place = model.fitted_.names.index
    assert own.degrees[place("x")] == 6 - 2 < own.degrees[place("day")]
    # what predictions take of the rows
    inverse = np.linalg.inv(V)
    assert own.edf == pytest.approx(np.trace((of_persons + of_sites) @ inverse), rel=1e-8)


def test_a_new_person_of_a_known_site_has_the_curve_of_the_site(placed, tmp_path):
    model, data = placed
    shown = model.predict(data, type="terms")
    new = data | {"id": data["id"] + 1000}
    np.testing.assert_allclose(model.predict(new), model.predict(data) - shown["re(id)"], atol=1e-12)
    nowhere = new | {"site": np.full(len(data["id"]), "Z")}
    np.testing.assert_allclose(model.predict(nowhere), model.predict(new) - shown["re(site)"], atol=1e-12)
    width = [np.subtract(*model.predict_interval(rows)[::-1]).mean() for rows in (data, new, nowhere)]
    assert width[0] < width[1] < width[2]
    with pytest.raises(InputError, match="id 0 must be at site A, as in training, got another in row 0"):
        model.predict(data | {"site": np.full(len(data["id"]), "B")})
    kept = FunctionalRegression.load(model.save(tmp_path / "kept"))
    np.testing.assert_array_equal(kept.predict_interval(data)[0], model.predict_interval(data)[0])
    np.testing.assert_array_equal(kept.predict_se(new), model.predict_se(new))
    out = FunctionalRegression.load(model.save(tmp_path / "out", people=False))
    np.testing.assert_array_equal(out.predict(data), model.predict(new))
    said = str(kept.summary())
    assert "re(id) and re(site): covariances" in said and "site" in kept.persons_.variances.index


def test_order_of_terms_rows_and_chunks_does_not_matter(placed):
    model, data = placed
    turned = "Y ~ re(id, covariance='free', k=4) + x + re(site, covariance='free') + day"
    np.testing.assert_allclose(FunctionalRegression(turned).fit(data).fitted_values_, model.fitted_values_, atol=1e-6)
    order = np.random.default_rng(1).permutation(len(data["id"]))
    moved = {name: column[order] for name, column in data.items()}
    again = FunctionalRegression(NESTED).fit(moved)
    np.testing.assert_allclose(again.fitted_values_, model.fitted_values_[order], atol=1e-4)
    chunks = [{name: column[rows] for name, column in moved.items()} for rows in np.array_split(order, 4)]
    found = FunctionalRegression(NESTED, se="cluster").fit_chunks(chunks, groups="site")
    np.testing.assert_allclose(found.predict(data), model.predict(data), atol=1e-4)
    assert "within a person" in str(found.summary())


def test_persons_of_two_sites_are_refused_in_formulas():
    data = clinics(1)
    data["site"] = np.where(np.arange(len(data["id"])) == 0, "F", data["site"])
    with pytest.raises(InputError, match=r"id 0 is at sites A and F: re\(site\) \+ re\(id\) must be nested"):
        FunctionalRegression(NESTED).fit(data)
    with pytest.raises(InputError, match="covariance='free' of both"):
        FunctionalRegression("Y ~ re(site) + re(id, covariance='free')").fit(data)


@cache
def held_in_sample(seed: int, sites: int) -> list[float]:
    """Of one sample, which two tests count."""
    t = np.linspace(0, 1, 24)
    phi = smooth_functions(t, 4)[0]
    shapes = np.stack([np.ones(24), np.sqrt(2) * np.sin(np.pi * t), np.sqrt(2) * np.cos(2 * np.pi * t)]) @ phi @ phi.T
    effects = np.stack([0.4 * t, 0.3 * np.cos(np.pi * t), 0.3 * t]) @ phi @ phi.T
    rng = np.random.default_rng([sites, seed])
    site = np.repeat(np.arange(sites), rng.integers(2, 6, sites))
    who = np.repeat(np.arange(site.size), rng.integers(2, 5, site.size))
    x, age = rng.normal(size=sites)[site], rng.normal(size=sites)[site] + rng.normal(size=site.size)
    day = rng.normal(size=who.size) + rng.normal(size=site.size)[who]
    a, b = (0.8 * rng.normal(size=(n, 3)) * np.sqrt([1, 0.5, 0.25]) @ shapes for n in (sites, site.size))
    u = rng.normal(size=(who.size, 3)) * np.sqrt([0.8, 0.4, 0.2]) @ shapes
    Y = np.sin(np.pi * t) + np.column_stack((x[who], age[who], day)) @ effects + a[site[who]] + b[who] + u
    data = {"x": x[who], "age": age[who], "day": day, "id": who, "site": site[who]}
    formula = "Y ~ x + age + day + re(site, covariance='free', k=4) + re(id, covariance='free')"
    model = FunctionalRegression(formula).fit(data | {"Y": Y + 0.4 * rng.normal(size=Y.shape)})
    shares = []
    for name, truth in zip(("x", "age", "day", "re(id)", "re(site)"), (*effects, b, a), strict=True):
        own = model.coef(name, se=True, t=t)
        shares.append(float(((own["lower"] <= truth.ravel()) & (truth.ravel() <= own["upper"])).mean()))
    return shares


def held_at_few_sites(sites: int, runs: int) -> np.ndarray:
    """Shares of points at which nominal 95 % intervals hold effects of the site, of the person and of the row, curves
    of persons and of sites; all lie on the functions that carry them."""
    return np.mean([held_in_sample(seed, sites) for seed in range(runs)], axis=0)


@pytest.mark.statistics
def test_intervals_at_few_sites_count_that_covariances_are_estimated():
    """Where covariances counted as known, 95 % held .88 of curves of 6 sites; where entries at their bound counted as
    free, .99."""
    of_persons, of_sites = held_at_few_sites(6, 40)[3:]
    assert 0.95 < of_persons < 0.985 and 0.94 < of_sites < 0.985


@pytest.mark.statistics
@pytest.mark.parametrize("sites", [6, 12])
def test_coverage_at_few_sites(sites):
    """Of 100 samples, between which shares of curves of sites differ by .09: .88, as where covariances count as known,
    is five standard errors away."""
    held = held_at_few_sites(sites, 100)
    print(f"{sites} sites: effects of site, person and row, curves of persons and sites {np.round(held, 3)}")
    assert (held >= 0.93).all() and (held[:3] <= 0.995).all() and (held[3:] <= 0.975).all()
