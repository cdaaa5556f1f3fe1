"""
A few points of each curve
==========================

Each person was measured at a few times of their own. The long table says who, when and what; the model needs no
grid, and fills none.
"""

# %%
# Three to eight measurements of each of 150 persons, and their age.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import FunctionalRegression

rng = np.random.default_rng(0)
age, visits = rng.uniform(20, 80, 150), rng.integers(3, 9, 150)
who = np.repeat(np.arange(150), visits)
t = rng.uniform(0, 1, who.size)
level = rng.normal(scale=0.4, size=150)
mean = np.sin(2 * np.pi * t) + 0.03 * (age[who] - 50) * t
long = pd.DataFrame({"row": who, "t": t, "y": mean + level[who] + rng.normal(scale=0.2, size=who.size)})
model = FunctionalRegression("y ~ age").fit({"age": age}, response=long)

# %%
# What was measured (grey; five persons are joined), and the mean at two ages with 95 % bands.
grid = np.linspace(0.02, 0.98, 60)
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axis.plot(long["t"], long["y"], ".", color="0.8", markersize=4)
for i in range(5):
    one = long[long["row"] == i].sort_values("t")
    axis.plot(one["t"], one["y"], color="0.5", linewidth=0.8)
for years, colour in ((30.0, "#0072B2"), (70.0, "#D55E00")):
    curve, error = (np.ravel(f({"age": [years]}, t=grid)) for f in (model.predict, model.predict_se))
    axis.fill_between(grid, curve - 1.96 * error, curve + 1.96 * error, color=colour, alpha=0.25, linewidth=0)
    axis.plot(grid, curve, color=colour, label=f"age {years:.0f}")
    axis.plot(grid, np.sin(2 * np.pi * grid) + 0.03 * (years - 50) * grid, "--", color=colour, linewidth=0.9)
axis.set(xlabel="t", ylabel="y", title="dashed: truth")
axis.legend()
plt.show()
