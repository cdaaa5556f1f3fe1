"""
A private surface beside the truth
==================================

3,000 people; what is published hardly depends on any one of them (ε = 1). Beside it the surface without privacy, and
the truth, which is known because the people are simulated.
"""

# %%
# What is public is said beforehand: the ranges of the curves and the number of people.
import matplotlib.pyplot as plt

from fdadp import AdditiveFunctionOnFunction, Privacy, plot, simulate_affr

people = simulate_affr(scenario=2, n=3000, seed=0)
private = AdditiveFunctionOnFunction(
    privacy=Privacy(epsilon=1.0, delta=1e-6, n=3000), bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}, progress=False
).fit(people.X, people.Y)
ordinary = AdditiveFunctionOnFunction(progress=False).fit(people.X, people.Y)
print(private.ledger_.headline)

# %%
# One scale of colours for all. Hatched is what 500 other people do not reach: a picture of where the 3,000 are would
# tell on them.
others = simulate_affr(scenario=2, n=500, seed=1)
surfaces = {"truth": people, "no privacy": ordinary, "ε = 1": private}
plot.surface(surfaces, t=0.25, X=others.X, labels={"x": "x = X(s)"})
plt.show()
