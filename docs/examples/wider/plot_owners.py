"""
Many owners, no trusted party
=============================

Five hospitals fit one private model. Each adds its share of the noise to its own sums and hides them by masks, which
cancel in the total. Together they learn what none could alone.
"""

# %%
# For the page the shares are added in clear, which gives the same numbers; ``fit_together`` has the masks.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.federated import Contract, fit_in_clear

people, others = (simulate_affr(scenario=2, n=n, seed=n, n_points=31) for n in (3000, 500))
X, Y = people.X.data_matrix[..., 0], people.Y.data_matrix[..., 0]
hospitals = list(zip(np.array_split(X, 5), np.array_split(Y, 5), strict=True))
bounds, truth = {"X": [-4.5, 4.5], "Y": [-8, 8]}, others.mean_function
settings = {"epsilon": 1.0, "delta": 1e-6, "n": 3000, "bounds": bounds, "mechanism": "moments"}
grids = {"s": people.s.tolist(), "t": people.t.tolist()}
contract = Contract("regression", {**settings, **grids}, owners=5, n_max=3000, corrupt=2)
warnings.simplefilter("ignore")  # of several fits to the same people, and a few values beyond their range


def explained(model):
    """Share of the variance of E[Y | X] of other people."""
    left = np.square(truth - np.asarray(model.predict(others.X.data_matrix[..., 0]))).sum()
    return 1 - left / np.square(truth - truth.mean(axis=0)).sum()


def alone(x, y):
    """A private fit to curves that lie in one place."""
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=len(x))
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, mechanism="moments", progress=False).fit(x, y)


# %%
# Means of three runs. One custodian of all would need less noise: five owners add enough for two of them to tell
# the noise that they added.
fits = {
    "one hospital (600 people)": lambda: alone(*hospitals[0]),
    "five hospitals": lambda: fit_in_clear(contract, hospitals),
    "one custodian of all": lambda: alone(X, Y),
}
shares = [np.mean([explained(fit()) for _ in range(3)]) for fit in fits.values()]
figure, axis = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
axis.bar_label(axis.barh(list(fits), shares, color="#0072B2"), fmt="%.2f", padding=3)
axis.set(xlabel="share explained at ε = 1, new people", xlim=(min(0, *shares), 1.1))
axis.invert_yaxis()
plt.show()
