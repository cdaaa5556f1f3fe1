"""
Ranges that are too wide
========================

Bounds are public: known from the instrument, or from physiology, and never read off the data. They are hints. Here
the range of X is from half as wide as it should be to fifty times, for many people and for few.
"""

# %%
# Seeded noise, so that only the ranges differ: a simulation, not for release.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr

others = simulate_affr(scenario=1, n=1000, seed=99)
truth, factors = others.mean_function, (0.5, 1, 2, 5, 10, 50)
warnings.simplefilter("ignore")  # where values surely lie outside a fit warns


def explained(n, factor, seed):
    """Share of the variance of E[Y | X] of other people that a private fit explains."""
    people, privacy = simulate_affr(scenario=1, n=n, seed=seed), Privacy(1.0, delta=1e-6, n=n, random_state=seed)
    bounds = {"X": (-4.5 * factor, 4.5 * factor), "Y": (-8, 8)}
    model = AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, progress=False).fit(people.X, people.Y)
    left = np.square(truth - model.predict(others.X).data_matrix[..., 0]).sum()
    return 1 - left / np.square(truth - truth.mean(axis=0)).sum()


# %%
# Means of three cohorts. A thousand people bear any range, for location and scale are released first; with 300 there
# is no budget to look for X twice.
figure, axis = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
for n, colour in ((1000, "#0072B2"), (300, "#D55E00")):
    shares = [np.mean([explained(n, factor, seed) for seed in range(3)]) for factor in factors]
    axis.plot(factors, shares, "o-", color=colour, label=f"{n:,} people")
axis.set(xscale="log", xlabel="width of the range of X, as a multiple of what it should be", ylabel="share explained")
axis.set(ylim=(0, 1), xticks=factors, xticklabels=[f"× {factor:g}" for factor in factors])
axis.legend(title="ε = 1, δ = 1e-6")
plt.show()
