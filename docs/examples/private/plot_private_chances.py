"""
Private chances
===============

A private logistic regression of illness on a curve. Who is at more risk than whom is told about as well as without
privacy; the chances themselves are a little further from the truth.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import Privacy, ScalarRegression, simulate_affr
from fdadp.functional.probability_scores import auc

X = simulate_affr(scenario=1, n=5000, seed=7, n_points=31).X.data_matrix[..., 0]
s, rng = np.linspace(0, 1, 31), np.random.default_rng(0)
chance = 1 / (1 + np.exp(1 - 3 * X @ np.cos(np.pi * s) / 31))
ill = (rng.uniform(size=5000) < chance).astype(float)
train, new = {"X": X[:3000], "ill": ill[:3000]}, {"X": X[3000:], "ill": ill[3000:]}
privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000)
private = ScalarRegression("ill ~ lf(X)", family="binomial", privacy=privacy, bounds={"X": (-4, 4), "ill": [0, 1]})
private.fit(train, grids={"X": s})
ordinary = ScalarRegression("ill ~ lf(X)", family="binomial").fit(train, grids={"X": s})

# %%
# 2,000 people who were not fitted, against their true chances.
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.8), sharey=True, layout="constrained")
for axis, model, name in zip(axes, (ordinary, private), ("without privacy", "ε = 1"), strict=True):
    found = model.predict_proba(new)[:, 1]
    axis.plot(chance[3000:], found, ".", color="#0072B2", markersize=2, alpha=0.4)
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    axis.set(title=f"{name}: AUC {auc(new['ill'], found):.3f}", xlabel="true chance", aspect="equal")
axes[0].set_ylabel("predicted chance")
plt.show()
