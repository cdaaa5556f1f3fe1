"""The same models as dense multivariate normal laws: small persons, every matrix written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fdadp.repeated.person_sums import PersonPass, PersonSums, smooth_functions


@dataclass
class Dense:
    """Rows c = B'x + b_i + e on k functions, plus white noise outside; C (N, k) unless curves Y (N, T) are given."""

    X: np.ndarray
    who: np.ndarray
    G: np.ndarray
    R: np.ndarray

    @property
    def V(self) -> np.ndarray:
        same = np.equal.outer(self.who, self.who)
        return np.kron(same, self.G) + np.kron(np.eye(len(self.who)), self.R)

    @property
    def design(self) -> np.ndarray:
        return np.kron(self.X, np.eye(len(self.G)))

    def deviance(self, C: np.ndarray, restricted: bool = True) -> float:
        V, F, y = self.V, self.design, C.ravel()
        gram = F.T @ np.linalg.solve(V, F)
        beta = np.linalg.solve(gram, F.T @ np.linalg.solve(V, y))
        r = y - F @ beta
        value = np.linalg.slogdet(V)[1] + r @ np.linalg.solve(V, r)
        return value + np.linalg.slogdet(gram)[1] if restricted else value

    def fixed(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        V, F = self.V, self.design
        cov = np.linalg.inv(F.T @ np.linalg.solve(V, F))
        return (cov @ F.T @ np.linalg.solve(V, C.ravel())).reshape(self.X.shape[1], -1), cov

    def effects(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """BLUPs of all persons (I, k), and the covariance of (beta_hat - beta, b_hat - b), jointly."""
        V, F, k = self.V, self.design, len(self.G)
        persons = np.unique(self.who)
        Z = np.kron(np.equal.outer(self.who, persons), np.eye(k)).astype(float)
        D = np.kron(np.eye(len(persons)), self.G)
        _, cov = self.fixed(C)
        to_beta = cov @ F.T @ np.linalg.inv(V)
        to_b = D @ Z.T @ np.linalg.inv(V) @ (np.eye(len(V)) - F @ to_beta)
        b = (to_b @ C.ravel()).reshape(len(persons), k)
        # errors as linear maps of (b, e): y = F beta + Z b + e
        E = np.kron(np.eye(len(self.who)), self.R)
        both = np.vstack((to_beta, to_b))
        on_b = both @ Z
        on_b[len(cov) :] -= np.eye(len(D))
        return b, on_b @ D @ on_b.T + both @ E @ both.T


class RowsWithLoads:
    """Rows ``x ⊗ (free curves) + D(t) β`` of persons, their law and everything written out."""

    T, K = 14, 3

    def __init__(self, seed: int, rank: int, P: int, *, intercept: bool = True) -> None:
        rng = np.random.default_rng(seed)
        persons = int(rng.integers(6, 11))
        self.who = np.repeat(np.arange(persons), np.r_[1, 4, rng.integers(1, 5, persons - 2)])
        N = self.who.size
        self.phi = np.linalg.qr(rng.normal(size=(self.T, self.K)))[0]
        self.X = np.column_stack((np.ones(N), rng.normal(size=persons)[self.who]))
        self.D = 2 + rng.normal(size=(N, self.T, P)) + rng.normal(size=(persons, self.T, P))[self.who]
        a, c = rng.normal(size=(self.K, rank)), rng.normal(size=(self.K, self.K))
        self.G, self.R = a @ a.T, c @ c.T + 0.3 * np.eye(self.K)
        self.Y, self.P, self.intercept = 5 + rng.normal(size=(N, self.T)), P, intercept
        self.same = np.equal.outer(self.who, self.who)

    def sums(self, order: np.ndarray | None = None, phi: np.ndarray | None = None, parts: int = 1) -> PersonSums:
        phi = self.phi if phi is None else phi
        order = np.arange(len(self.who)) if order is None else order
        F = self.X[:, int(self.intercept) :]
        Z = np.einsum("tk,ntp->nkp", phi, self.D).reshape(len(F), -1)
        rows, k = np.hstack((F, Z)), phi.shape[1]
        one, *others = (
            PersonPass(phi, F.shape[1] + k * self.P, intercept=self.intercept).add(rows[o], self.Y[o], self.who[o])
            for o in np.array_split(order, parts)
        )
        for other in others:
            one.merge(other)
        left = self.D - np.einsum("nm,mtp->ntp", self.X @ np.linalg.pinv(self.X), self.D)
        gram, right = np.einsum("ntp,ntq->pq", left, self.D), np.einsum("ntp,nt->p", left, self.Y)
        return one.sums(loads=self.P).with_loads_on_all(gram, right)

    def design(self) -> np.ndarray:
        """All columns over all T points: curves of features on Φ, beyond it, and the loads."""
        beyond = np.linalg.svd(self.phi)[0][:, self.K :]
        loads = self.D.reshape(-1, self.P)
        return np.hstack((np.kron(self.X, self.phi), np.kron(self.X, beyond), loads))

    def V(self, G: np.ndarray, R: np.ndarray, noise: float) -> np.ndarray:
        row = self.phi @ R @ self.phi.T + noise * (np.eye(self.T) - self.phi @ self.phi.T)
        return np.kron(self.same, self.phi @ G @ self.phi.T) + np.kron(np.eye(len(self.who)), row)

    def dense(self, G: np.ndarray, R: np.ndarray, noise: float, restricted: bool = True):
        """-2 log (restricted) likelihood, its derivatives in G and R, β of the loads and its covariance."""
        F, y, W = self.design(), self.Y.ravel(), np.linalg.inv(self.V(G, R, noise))
        C = np.linalg.inv(F.T @ W @ F)
        b = C @ F.T @ W @ y
        r = y - F @ b
        value = -np.linalg.slogdet(W)[1] + r @ W @ r + (np.linalg.slogdet(F.T @ W @ F)[1] if restricted else 0)
        left = W - np.outer(W @ r, W @ r) - (W @ F @ C @ F.T @ W if restricted else 0)
        N = len(self.who)
        blocks = np.einsum("ti,ntms,sj->nimj", self.phi, left.reshape(N, self.T, N, self.T), self.phi)
        gradients = np.einsum("nm,nimj->ij", self.same, blocks), np.einsum("ninj->ij", blocks)
        return value, *gradients, b[-self.P :], C[-self.P :, -self.P :]


def entries_of(k: int) -> list[np.ndarray]:
    """Derivatives of a symmetric matrix (k, k) in each entry."""
    entries = [np.outer(np.eye(k)[a], np.eye(k)[b]) for a, b in zip(*np.triu_indices(k), strict=True)]
    return [np.maximum(E, E.T) for E in entries]


def dense_kenward_roger(V, X, derivatives):
    """Kenward & Roger's sum over derivatives of V, every matrix written out.

    Returns the covariance of the coefficients, the sum between two of them, the covariance of the estimated entries,
    and what each does to the information.
    """
    W = np.linalg.inv(V)
    C = np.linalg.inv(X.T @ W @ X)
    P = W - W @ X @ C @ X.T @ W
    left = [P @ a for a in derivatives]
    errors = np.linalg.inv([[(a * b.T).sum() / 2 for b in left] for a in left])
    taken = [a @ W @ X for a in derivatives]
    moved = [X.T @ W @ a for a in taken]
    added = sum(
        errors[r, s] * (a.T @ W @ b - moved[r] @ C @ moved[s]) for r, a in enumerate(taken) for s, b in enumerate(taken)
    )
    return C, added, errors, moved


def draw(rng: np.random.Generator, p: int = 3, k: int = 3, rank: int = 3) -> tuple[Dense, np.ndarray]:
    persons = int(rng.integers(6, 11))
    n = np.r_[1, 4, rng.integers(1, 5, persons - 2)]
    who = np.repeat(np.arange(persons), n)
    X = np.column_stack((np.ones(who.size), rng.normal(size=persons)[who], rng.normal(size=(who.size, p - 2))))
    a, c = rng.normal(size=(k, rank)), rng.normal(size=(k, k))
    law = Dense(X, who, a @ a.T, c @ c.T + 0.3 * np.eye(k))
    return law, rng.normal(size=(who.size, k)) + X @ rng.normal(size=(p, k))


def sums_of(law: Dense, C: np.ndarray) -> PersonSums:
    """Sums of coefficients themselves: curves of k points, and no function left out."""
    return PersonPass(np.eye(C.shape[1]), law.X.shape[1], intercept=False).add(law.X, C, law.who).sums()


def features_of(sums: PersonSums, columns: tuple[int, ...]) -> np.ndarray:
    """Features as the user has them, as combinations of those of the sums: (p, q)."""
    mix = np.eye(sums.p)[:, columns]
    if sums.intercept:
        mix[0] += sums.shift_x[list(columns)]
    return mix


@dataclass
class Curves:
    """Curves of persons with two smooth levels, white noise of variance .25, and what they were made of."""

    X: np.ndarray
    Y: np.ndarray
    who: np.ndarray
    t: np.ndarray
    b: np.ndarray
    beta: np.ndarray

    def sums(self, k: int, **kwargs) -> PersonSums:
        phi = smooth_functions(self.t, k)[0]
        return PersonPass(phi, self.X.shape[1], **kwargs).add(self.X, self.Y, self.who).sums()


def curves_of_persons(seed: int, persons: int, most: int = 6, T: int = 60, least: int = 1) -> Curves:
    """ICC 1.75 / 3.15; features: one of the person, one of the row."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, T)
    root = np.sqrt(2)
    between = np.stack([np.ones(T), root * np.sin(2 * np.pi * t), root * np.cos(2 * np.pi * t)])
    rows = np.stack([root * np.cos(np.pi * t), root * np.sin(2 * np.pi * t), root * np.cos(3 * np.pi * t)])
    n = rng.integers(least, most + 1, persons)
    who = np.repeat(np.arange(persons), n)
    day = np.concatenate([np.arange(m) for m in n])
    X = np.column_stack((rng.normal(size=persons)[who], (day % 7 >= 5) if most > 6 else day % 2)).astype(float)
    beta = np.stack([np.sin(np.pi * t), 0.4 * t, 0.3 * np.cos(np.pi * t)])
    b = (rng.normal(size=(persons, 3)) * np.sqrt([1, 0.5, 0.25])) @ between
    u = (rng.normal(size=(who.size, 3)) * np.sqrt([0.8, 0.4, 0.2])) @ rows
    Y = beta[0] + X @ beta[1:] + b[who] + u + 0.5 * rng.normal(size=(who.size, T))
    return Curves(X, Y, who, t, b, beta)


def dense_fit(model, data):
    """A fit with random functions of persons written out: rows of the long form, covariance of all responses, parts.

    The parts are covariances with all responses of what each of the model's random functions adds to them.
    """
    own, form = model.persons_, model.fitted_.fit.form
    records = model.fitted_.records(data, None)
    rows = form.rows(records).reshape(-1, form.size)
    (q, k), phi, levels = own.effects.shape[1:], own.phi, own.levels
    z, person = own.multiplied(records), np.asarray(data[own.persons.column])
    same = np.equal.outer(person, person)
    blocks = np.einsum("ti,aibj,sj->atbs", phi, levels.G.reshape(q, k, q, k), phi)
    parts = [np.einsum("n,nm,mb,tbs->ntms", z[:, a], same, z, blocks[a]) for a in range(q)]
    if own.sites is not None:
        site = np.asarray(data[own.sites.known.labels.column])
        parts.append(np.einsum("nm,ts->ntms", np.equal.outer(site, site), phi @ own.sites.S @ phi.T))
    row = phi @ levels.R @ phi.T + levels.noise_variance * (np.eye(len(phi)) - phi @ phi.T)
    size = len(rows)
    parts = [part.reshape(size, size) for part in parts]
    return rows, sum(parts) + np.kron(np.eye(len(z)), row), parts


def weights_alike_along(model, data, every, V, seen):
    """Weights of coefficients as if unpenalised curves of features had their mean covariance at each point.

    Of features in any basis: a curve for each, on functions that hold all bases; beyond these errors are white.
    """
    form, own, T = model.fitted_.fit.form, model.persons_, np.shape(data["Y"])[1]
    F = np.hstack(form.features(model.fitted_.records(data, None)))
    left, size, _ = np.linalg.svd(F, full_matrices=False)
    U = left[:, size > 1e-9 * size[0]]
    both = np.hstack((own.phi, *form.along))
    left, size, _ = np.linalg.svd(both, full_matrices=False)
    psi = left[:, size > 1e-9 * size[0]]
    X = np.kron(U, psi)[seen]
    four = np.linalg.inv(X.T @ np.linalg.solve(V, X)).reshape(U.shape[1], psi.shape[1], U.shape[1], psi.shape[1])
    points = seen.reshape(-1, T).sum(axis=1) / T
    white = own.levels.noise_variance * np.linalg.inv((U.T * points) @ U)
    mean = (np.einsum("ajbj->ab", four) + (T - psi.shape[1]) * white) / T
    curves = np.einsum("na,ntp->atp", U, every.reshape(len(U), T, -1))
    return np.einsum("atp,ab,btq->pq", curves, np.linalg.inv(mean), curves)


def weights_beside_loads(model, data, every):
    """Weights as if errors were alike along t, of persons and rows; outside Φ, with the shares that these have inside.

    Of complete curves; `every` are the rows of the long form.
    """
    own = model.persons_
    phi, levels, (T, k), q = own.phi, own.levels, own.phi.shape, every.shape[1]
    N, who = len(every) // T, np.asarray(data[own.persons.column])
    row = (np.trace(levels.R) + levels.noise_variance * (T - k)) / T
    z = own.multiplied(model.fitted_.records(data, None))
    four = levels.G.reshape(z.shape[1], k, z.shape[1], k)
    person = np.einsum("na,nb,aibi->", z, z, four) / N / T  # at an average row
    W = np.linalg.inv(row * np.eye(N) + person * np.equal.outer(who, who))
    D = every.reshape(N, T, q)
    inner = np.einsum("tk,ntq->nkq", phi, D)
    inside, whole = np.einsum("nkp,nm,mkq->pq", inner, W, inner), np.einsum("nkp,nkq->pq", inner, inner)
    share = np.sqrt(np.diag(inside) / np.diag(whole))
    return inside + share[:, None] * (np.einsum("ntp,ntq->pq", D, D) - whole) * share


def check_against_dense_law(model, data):
    """Coefficients, their covariance, predictions, their errors and the likelihood; responses may have gaps (NaN)."""
    fit, shape = model.fitted_.fit, np.shape(data["Y"])
    seen = np.isfinite(np.ravel(data["Y"]))
    y = np.ravel(data["Y"])[seen]
    every, V, parts = dense_fit(model, data)
    rows, V = every[seen], V[np.ix_(seen, seen)]
    penalty = np.diag(fit.smoothing_parameters @ fit.form.stacked_penalties) / fit.sigma2
    weighed = np.linalg.solve(V, rows)
    spread = np.linalg.pinv(rows.T @ weighed, rcond=1e-13)
    if model.persons_.kind != "free":
        weights = rows.T @ weighed
    elif fit.form.separable:
        weights = weights_alike_along(model, data, every, V, seen)
    else:
        weights = weights_beside_loads(model, data, every)
    smoother = np.linalg.inv(weights + penalty)
    covariance = smoother @ (weights @ spread @ weights + penalty) @ smoother
    np.testing.assert_allclose(fit.bayesian_covariance, covariance, atol=1e-8 * np.abs(covariance).max())
    beta = smoother @ weights @ spread @ weighed.T @ y
    np.testing.assert_allclose(fit.coefficients, beta, atol=1e-8 * np.abs(beta).max())
    left = y - rows @ beta
    shown = model.predict(data, type="terms")
    for name, part in zip(model.persons_.names, parts, strict=True):
        np.testing.assert_allclose(shown[name], (part[:, seen] @ np.linalg.solve(V, left)).reshape(shape), atol=1e-8)
    loglik = -(np.linalg.slogdet(V)[1] + left @ np.linalg.solve(V, left) + left.size * np.log(2 * np.pi)) / 2
    assert abs(model.loglik_ - loglik) < 1e-8 * abs(loglik)
    random = sum(parts)
    shrunk = random[:, seen] @ np.linalg.inv(V)
    on_beta = every - shrunk @ rows
    variance = np.diag(on_beta @ covariance @ on_beta.T + random - shrunk @ random[seen]).reshape(shape)
    np.testing.assert_allclose(model.predict_se(data, kind="iid") ** 2, variance, rtol=1e-6, atol=1e-10)
    return rows, V, parts, covariance
