"""
Synthetic people, at no further cost
====================================

A private fit can draw a cohort from what it released. It may be handed to anyone; use it to write and try an analysis.
What was not released it does not know: shapes of X are those of the public prior.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, Privacy, simulate_affr

people = simulate_affr(scenario=1, n=2000, seed=0)
privacy, public = Privacy(epsilon=1.0, delta=1e-6, n=2000), {"X": (-4, 4), "Y": (-8, 8)}
model = FunctionalRegression("Y ~ ff(X)", privacy=privacy, bounds=public).fit({"X": people.X, "Y": people.Y})
synthetic = model.sample(200)

# %%
# Forty simulated people, who stand for the real ones here, and forty synthetic ones.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
drawn = synthetic["Y"].array.data_matrix[:40, :, 0]
grid = synthetic["Y"].array.grid_points[0]
axes[0].plot(people.t, people.Y.data_matrix[:40, :, 0].T, color="#0072B2", linewidth=0.5)
axes[1].plot(grid, drawn.T, color="#D55E00", linewidth=0.5)
for axis, title in zip(axes, ("Y of the people", "Y of the synthetic ones"), strict=True):
    axis.set(title=title, xlabel="t")
axes[0].set_ylabel("Y(t)")
plt.show()
