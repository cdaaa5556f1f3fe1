"""Persons within sites: the dense normal law and its gradients, no sites, three levels that are found."""

from __future__ import annotations

import numpy as np
import pytest

from fdadp.errors import InputError
from fdadp.repeated.levels import deviance, gls
from fdadp.repeated.nested import nested_covariances, nested_fit, site_sums, sites_of_persons
from fdadp.repeated.person_sums import PersonPass


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
