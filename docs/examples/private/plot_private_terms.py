"""
Several covariates, privately
=============================

A curve, a number and a label of the same people under one guarantee. Standard errors include the noise, so that the
bands of a private fit are wider than those without privacy.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression, Privacy, simulate_affr

n, t, rng = 2000, np.linspace(0, 1, 31), np.random.default_rng(0)
X = simulate_affr(scenario=1, n=n, seed=7, n_points=31).X.data_matrix[..., 0]
age, ward = rng.uniform(20, 90, n), rng.choice(["east", "north", "south"], n)
Y = X @ np.sin(np.pi * np.add.outer(t, t)) / 31 + 0.015 * (age - 50)[:, None] * t + (ward == "north")[:, None] * 0.4
Y += rng.normal(scale=0.4, size=(n, 1)) + rng.normal(scale=0.2, size=(n, 31))
table, grids = {"X": X, "Y": Y, "age": age, "ward": ward}, {"X": t, "Y": t}
public = {"X": (-4, 4), "Y": (-8, 8), "age": (18, 100), "ward": ["east", "north", "south"]}
formula, privacy = "Y ~ ff(X) + age + C(ward)", Privacy(epsilon=1.0, delta=1e-6, n=n)
private = FunctionalRegression(formula, privacy=privacy, bounds=public).fit(table, grids=grids)
ordinary = FunctionalRegression(formula).fit(table, grids=grids)
print(private.importances_)

# %%
# Ten years of age, with 95 % pointwise bands.
figure, axis = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
for model, name, colour in ((private, "ε = 1", "#0072B2"), (ordinary, "without privacy", "#D55E00")):
    effect = model.coef("age", se=True, t=t)
    axis.fill_between(t, 10 * effect["lower"], 10 * effect["upper"], color=colour, alpha=0.25, linewidth=0)
    axis.plot(t, 10 * effect["value"], color=colour, label=name)
axis.plot(t, 0.15 * t, "--", color="black", label="truth")
axis.set(xlabel="t", ylabel="effect of ten years of age on Y(t)")
axis.legend()
plt.show()
