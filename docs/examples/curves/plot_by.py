"""
A surface for each group: ff(X, by=g)
=====================================

With ``by=`` a term acts through another column: here the weight ``β(s, t)`` is another one for each of two groups.
"""

# %%
# In one group early values of X raise Y, in the other late ones lower it.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression, simulate_affr

X = simulate_affr(scenario=1, n=240, seed=3, n_points=31).X
t = X.grid_points[0]
rng = np.random.default_rng(0)
group = rng.choice(["early", "late"], 240)
weights = {"early": np.cos(np.pi * t / 2)[:, None] * np.sin(np.pi * t), "late": -2 * t[:, None] ** 2 * t}
Y = np.stack([x @ weights[g] / t.size for x, g in zip(X.data_matrix[..., 0], group, strict=True)])
Y += rng.normal(scale=0.15, size=Y.shape)
data = {"X": X, "Y": Y, "group": group}
model = FunctionalRegression("Y ~ C(group) + ff(X, by='group')").fit(data, grids={"Y": t})

# %%
# Both surfaces in one scale.
name = next(term for term in model.term_names_ if term.startswith("ff"))
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
model.plot(name, ax=axes)
for axis, title in zip(axes, ("group early", "group late"), strict=True):
    axis.set_title(title)
plt.show()
