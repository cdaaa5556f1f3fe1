"""
Zeros and ones, counts, positive numbers
========================================

``family=`` takes binomial, Poisson and gamma responses; the curve acts on the scale of the link. Here each has the
same true weight ``β(s)``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import ScalarRegression, simulate_affr

X = simulate_affr(scenario=1, n=600, seed=5, n_points=41, x_noise=0).X
s = X.grid_points[0]
truth = 2 * np.sin(2 * np.pi * s)
eta = X.data_matrix[..., 0] @ truth / s.size
rng = np.random.default_rng(0)
responses = {
    "binomial": (rng.uniform(size=600) < 1 / (1 + np.exp(-eta))).astype(float),
    "poisson": rng.poisson(np.exp(eta)).astype(float),
    "gamma": np.exp(eta) * rng.gamma(4, 0.25, size=600),
}

# %%
# Zeros and ones tell least of each person, and have the widest band (95 %, pointwise).
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (family, y), colour in zip(responses.items(), ("#E69F00", "#0072B2", "#009E73"), strict=True):
    weight = ScalarRegression("y ~ lf(X)", family=family).fit({"X": X, "y": y}).coef("lf(X)", se=True)
    axis.fill_between(weight["s"], weight["lower"], weight["upper"], color=colour, alpha=0.25, linewidth=0)
    axis.plot(weight["s"], weight["value"], color=colour, label=family)
axis.plot(s, truth, "--", color="black", label="truth")
axis.set(xlabel="s", ylabel="β(s)")
axis.legend()
plt.show()
