"""
Only the past counts: ff with limits
====================================

Where X and Y run on the same clock, the future of X cannot act on Y. ``ff(X, limits='s<=t')`` takes the integral of
X over its past alone: a historical functional linear model.
"""

# %%
# Two hundred simulated pairs: what happened a short time ago acts, and fades.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression, simulate_affr

X = simulate_affr(scenario=1, n=200, seed=0, n_points=41).X
t = X.grid_points[0]
past = t[:, None] <= t  # s before t
truth = np.where(past, 6 * np.exp(-(t - t[:, None]) / 0.2), np.nan)
rng = np.random.default_rng(1)
Y = X.data_matrix[..., 0] @ np.nan_to_num(truth) / t.size + rng.normal(scale=0.2, size=(200, 41))
model = FunctionalRegression("Y ~ ff(X, limits='s<=t')").fit({"X": X, "Y": Y}, grids={"Y": t})
frame = model.coef(model.term_names_[-1], s=t, t=t)
found = frame.pivot(index="s", columns="t", values="value").to_numpy()

# %%
# Truth and estimate in one scale. Above the diagonal there is nothing: that is the future.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for axis, surface, title in zip(axes, (truth, found), ("truth", "estimate"), strict=True):
    image = axis.pcolormesh(t, t, surface, cmap="RdBu_r", vmin=-7, vmax=7, shading="nearest")
    axis.set(title=title, xlabel="t", aspect="equal")
axes[0].set_ylabel("s")
figure.colorbar(image, ax=axes, label="β(s, t)")
plt.show()
