"""
Too low is bad and too high is bad: af
======================================

``af(X)`` is the integral of a smooth function ``F{X(s), s}``: the effect of a curve's values, U-shaped if need be.
A linear ``lf(X)`` would find nothing here.
"""

# %%
# Simulated curves; in their second half both high and low values raise y.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import ScalarRegression, simulate_affr

X = simulate_affr(scenario=1, n=400, seed=0, n_points=41, x_noise=0).X
s = X.grid_points[0]
y = (X.data_matrix[..., 0] ** 2 * (s > 0.5)).mean(axis=1) + np.random.default_rng(1).normal(scale=0.3, size=400)
data = {"X": X, "y": y}
for term in ("lf(X)", "af(X)"):
    print(f"{term} explains {ScalarRegression(f'y ~ {term}').fit(data).explained_deviance_:.2f}")

# %%
# Hatched: no curve has such values there.
model = ScalarRegression("y ~ af(X)").fit(data)
figure, axis = plt.subplots(figsize=(5.8, 4.2), layout="constrained")
model.plot("af(X)", data=data, labels={"x": "x = X(s)"}, ax=axis)
axis.set_title("F(x, s)")
plt.show()
