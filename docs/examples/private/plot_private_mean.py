"""
A private mean curve with its band
==================================

``PrivateMean`` releases the mean of bounded curves, and a band for the whole curve that holds the noise, the sampling
error, and what clipping may have taken off.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import Privacy, PrivateMean, simulate_affr

people = simulate_affr(scenario=1, n=1000, seed=0)
truth = simulate_affr(scenario=1, n=20_000, seed=1).mean_function.mean(axis=0)

# %%
# The same thousand people at two budgets, which add up: a shared ``Budget`` would count them.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for epsilon, colour in ((0.2, "#E69F00"), (1.0, "#0072B2")):
    privacy = Privacy(epsilon=epsilon, delta=1e-6, n=1000, dataset=f"mean at {epsilon}")
    mean = PrivateMean(privacy=privacy, bounds=(-8, 8)).fit(people.Y)
    low, high = (side.data_matrix[0, :, 0] for side in mean.band(level=0.95))
    axis.fill_between(people.t, low, high, color=colour, alpha=0.25, linewidth=0)
    axis.plot(people.t, mean.mean_, color=colour, label=f"ε = {epsilon:g}")
axis.plot(people.t, truth, "--", color="black", label="mean of the population")
axis.set(xlabel="t", ylabel="mean of Y(t), with 95 % bands of the whole curve")
axis.legend()
plt.show()
