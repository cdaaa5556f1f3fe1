"""
Not linear in the curve: sff beside ff
======================================

``ff(X)`` doubles its effect when X doubles. ``sff(X)``, the integral of a smooth ``F{X(s), s, t}``, does not have to.
Held-out curves tell which of them is needed.
"""

# %%
# Simulated curves with an effect that is far from linear; 500 to fit, 300 to judge.
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, simulate_affr

train, test = (simulate_affr(scenario=2, n=n, seed=n, n_points=31, x_noise=0) for n in (500, 300))
data, new = ({"X": sample.X, "Y": sample.Y} for sample in (train, test))
truth = test.mean_function  # E[Y | X], known because this is a simulation
formulas = ("Y ~ 1", "Y ~ ff(X)", "Y ~ sff(X, k=(10, 5, 5))")
shares = {}
for formula in formulas:
    predicted = FunctionalRegression(formula).fit(data).predict(new).data_matrix[..., 0]
    shares[formula] = 1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum()

# %%
# The mean curve alone explains nothing, the linear effect little.
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = axis.barh(list(shares), [max(share, 0) for share in shares.values()], color=("0.7", "#56B4E9", "#0072B2"))
axis.bar_label(bars, [f"{share:.2f}" for share in shares.values()], padding=3)
axis.set(xlabel="share of E[Y | X] explained, new curves", xlim=(0, 1.1))
axis.invert_yaxis()
plt.show()
