# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Private learners, and what they must be told
#
# `fdadp.learners` has naive Bayes, logistic, linear and additive regression, boosted stumps, forests, k-means and
# principal components; some of them are shown here. They have scikit-learn's interface and use the same kernel as the
# functional regressions. Only the kernel sees private rows. Everything else is computed from its noisy answers, and
# each fit has a ledger.
#
# The other settings of an estimator (classes, bounds, bins, iterations) are **public and must be given**. A fit that
# looked them up in the data would give the data away.
#
# The noise here is seeded, so that the notebook can be checked: the ledgers say "not for release". Without
# `random_state` it comes from OpenDP. Digits and diabetes come with scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from fdadp.errors import PublicParameterMissing
from fdadp.learners import (
    DPPCA,
    DPGaussianNB,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
)

EPSILONS = [0.1, 0.5, 1.0, 2.0, 5.0]
DELTA = 1e-5

# %% [markdown]
# ## Nothing is guessed from the data
#
# Without classes or bounds a fit stops before it has read a row, and nothing is spent.

# %%
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:, :10], y, test_size=0.25, random_state=0)
try:
    DPGaussianNB(epsilon=1.0).fit(X_train, y_train)
except PublicParameterMissing as error:
    print(error)

# %% [markdown]
# With public ranges, as a physician could write them down without these data:

# %%
LOW = [5, 5, 30, 100, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
HIGH = [30, 45, 200, 2500, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1]
bayes = DPGaussianNB(epsilon=1.0, classes=[0, 1], bounds=(LOW, HIGH), random_state=0).fit(X_train, y_train)
print(
    f"accuracy {bayes.score(X_test, y_test):.2f}, always the larger class {max(y_test.mean(), 1 - y_test.mean()):.2f}"
)
bayes.ledger_

# %% [markdown]
# ## Logistic regression
#
# Objective perturbation: a random linear term goes into the objective, and the exact minimiser of that is private. All
# coefficients are regularised, the intercept too, and rows are clipped to a public ball: the proof needs both.

# %%
middle, half = (np.array(LOW) + HIGH) / 2, (np.array(HIGH) - LOW) / 2
Z_train, Z_test = (X_train - middle) / half, (X_test - middle) / half  # public numbers, row by row
for epsilon in EPSILONS:
    scores = [
        DPLogisticRegression(epsilon=epsilon, delta=DELTA, classes=[0, 1], data_norm=2.0, random_state=seed)
        .fit(Z_train, y_train)
        .score(Z_test, y_test)
        for seed in range(5)
    ]
    print(f"epsilon {epsilon:4}: accuracy {np.mean(scores):.2f} (sd {np.std(scores):.2f} over the noise)")

# %% [markdown]
# ## Linear regression
#
# 353 people are few. Small ε leaves little, and the score says so.

# %%
D, target = load_diabetes(return_X_y=True)
D_train, D_test, t_train, t_test = train_test_split(D, target, test_size=0.2, random_state=0)
print(f"without privacy: R2 {LinearRegression().fit(D_train, t_train).score(D_test, t_test):.2f}")
for epsilon in EPSILONS:
    scores = [
        DPLinearRegression(epsilon=epsilon, delta=DELTA, data_norm=0.25, bounds_y=(0, 400), random_state=seed)
        .fit(D_train, t_train)
        .score(D_test, t_test)
        for seed in range(5)
    ]
    print(f"epsilon {epsilon:4}: R2 {np.mean(scores):5.2f} (sd {np.std(scores):.2f})")

# %% [markdown]
# ## Principal components
#
# One noisy second moment of the rows, centre and number of rows included, gives mean, components and variances. With
# 1,797 digits of 64 pixels, ε decides how many components are more than noise.

# %%
digits, labels = load_digits(return_X_y=True)
digits = digits / 16
exact = PCA(10).fit(digits)
centred = digits - digits.mean(axis=0)
best = exact.explained_variance_.sum() * (len(digits) - 1)


def captured(components):
    """Share of the variance that the best ten components hold."""
    return float(((centred @ components.T) ** 2).sum() / best)


random_subspace = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 10)))[0].T
shares = [
    np.mean(
        [
            captured(
                DPPCA(n_components=10, epsilon=e, delta=DELTA, data_norm=4.0, center=0.5, random_state=seed)
                .fit(digits)
                .components_
            )
            for seed in range(3)
        ]
    )
    for e in EPSILONS
]
fig, ax = plt.subplots(figsize=(6, 3.2))
ax.plot(EPSILONS, shares, marker="o", label="DPPCA")
ax.axhline(captured(random_subspace), color="grey", linestyle="--", label="a random subspace")
ax.set(xscale="log", xlabel="ε (δ = 1e-5)", ylabel="variance captured, share of the best", ylim=(0, 1.02))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## k-means
#
# On these few digits noise in 64 dimensions takes much. A private projection on six components first (half of the
# budget) pays at the smallest ε only: from ε = 1 on the default, which starts from three noisy components, does better.

# %%
print(f"without privacy: {adjusted_rand_score(labels, KMeans(10, n_init=3, random_state=0).fit_predict(digits)):.2f}")
for projection in (None, 6):
    for epsilon in (0.5, 1.0, 5.0):
        model = DPKMeans(
            n_clusters=10, epsilon=epsilon, delta=DELTA, bounds=(0, 1), projection=projection, random_state=0
        ).fit(digits)
        index = adjusted_rand_score(labels, model.predict(digits))
        print(f"projection {projection!s:>4}, epsilon {epsilon:3}: adjusted Rand index {index:.2f}")

# %% [markdown]
# `predict` on the training rows is for this table only: labels of the rows that were fitted are not private, and a
# model does not keep them.

# %% [markdown] tags=["load_adult"]
# ## Adult, and a published scheme
#
# Boosted stumps choose each stump by a noisy vote and give it a noisy weight. The published "DPAda" family adds noise
# to two weights and claims ε; its first stump has no noise at all. It is here for comparison, warns, and reports no
# privacy: `python benchmarks/studies/learners.py --experiment published` draws its curves.

# %% tags=["load_adult"]
import sys

sys.path.append("../benchmarks")  # of the repository: the experiments are no part of the package
from studies.learners import load, run, summarise

[adult], _ = load(["adult"])
chosen = ["DPGaussianNB", "DPHistogramNB", "DPBoostedStumps"]
table = summarise(run(adult, epsilons=[0.1, 1.0], repeats=2, only=chosen))
table[["learner", "scheme", "epsilon", "score", "score_sd"]].round(3)

# %% [markdown]
# ## What the ledgers have in common
#
# The first line says what is guaranteed; each release has its clip, sensitivity and noise. `privacy_spent_` has the
# same as numbers.

# %%
bayes.privacy_spent_
