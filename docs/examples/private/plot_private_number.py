"""
A private weight for a number: lf
=================================

``ScalarRegression`` with ``privacy=``: which part of the curve matters for y, said about 2,000 people without saying
anything about one of them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import Privacy, ScalarRegression, simulate_affr

X = simulate_affr(scenario=3, n=2000, seed=7, n_points=41).X
s = X.grid_points[0]
truth = 2 * np.sin(2 * np.pi * s)
y = X.data_matrix[..., 0] @ truth / 41 + np.random.default_rng(0).normal(scale=0.5, size=2000)
data, public = {"X": X, "y": y}, {"X": (-4, 4), "y": (-6, 6)}

# %%
# Bands are pointwise, 95 %, and hold the noise.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for epsilon, colour in ((0.3, "#E69F00"), (1.0, "#0072B2"), (None, "#009E73")):
    privacy = None if epsilon is None else Privacy(epsilon, delta=1e-6, n=2000, dataset=f"lf at {epsilon}")
    known = {} if epsilon is None else {"privacy": privacy, "bounds": public}
    weight = ScalarRegression("y ~ lf(X)", **known).fit(data).coef("lf(X)", se=True)
    axis.fill_between(weight["s"], weight["lower"], weight["upper"], color=colour, alpha=0.25, linewidth=0)
    axis.plot(
        weight["s"], weight["value"], color=colour, label="without privacy" if epsilon is None else f"ε = {epsilon:g}"
    )
axis.plot(s, truth, "--", color="black", label="truth")
axis.set(xlabel="s", ylabel="β(s)")
axis.legend()
plt.show()
