"""
How many people does it take?
=============================

``fdadp.plan`` says before any data are touched what a private fit is expected to explain: by simulation from the
public prior, so that asking costs nothing.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import plan

forecast = plan(n=1000, epsilon=1.0, delta=1e-6, accuracy=0.9)
print(f"1,000 people, ε = 1: {forecast.share:.2f}; for .9 it takes {forecast.smallest_n} people")

# %%
# One curve for each budget. Far left no budget helps: there are too few people.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for epsilon, colour in zip((0.1, 0.3, 1.0, 3.0), ("#CC79A7", "#E69F00", "#0072B2", "#009E73"), strict=True):
    curve = [(n, outcome.share) for n, outcome in plan(n=1000, epsilon=epsilon, delta=1e-6).by_n]
    axis.plot(*zip(*curve, strict=True), "o-", color=colour, markersize=4, label=f"ε = {epsilon:g}")
axis.axhline(0.9, color="0.5", linestyle=":")
axis.set(xscale="log", xlabel="people", ylabel="expected share explained", ylim=(0, 1.02))
axis.legend(title="δ = 1e-6")
plt.show()
