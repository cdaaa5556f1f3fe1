"""
Are the chances right?
======================

A predicted chance of 30 % should come true in 30 of 100 cases. A calibration table of people who were not fitted
shows it, and the area under the ROC curve says how well they are told apart.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import ScalarRegression, simulate_affr
from fdadp.functional.probability_scores import auc, calibration_table

X = simulate_affr(scenario=1, n=4000, seed=7, n_points=31, x_noise=0).X.data_matrix[..., 0]
s, rng = np.linspace(0, 1, 31), np.random.default_rng(0)
chance = 1 / (1 + np.exp(1 - 3 * X @ np.cos(np.pi * s) / 31))
people = {"X": X, "ill": (rng.uniform(size=4000) < chance).astype(float)}
train, test = ({name: rows[part] for name, rows in people.items()} for part in (slice(2000), slice(2000, None)))
model = ScalarRegression("ill ~ lf(X)", family="binomial").fit(train, grids={"X": s})
predicted = model.predict_proba(test)[:, 1]
print(f"AUC {auc(test['ill'], predicted):.3f}; of the true chances {auc(test['ill'], chance[2000:]):.3f}")

# %%
# Ten groups of 200 people, with two standard errors of what was observed.
table = calibration_table(test["ill"], predicted, bins=10)
error = 2 * np.sqrt(table["observed"] * (1 - table["observed"]) / 200)
figure, axis = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axis.plot([0, 1], [0, 1], color="0.6", linewidth=1)
axis.errorbar(table["predicted"], table["observed"], yerr=error, fmt="o", color="#0072B2")
axis.set(xlabel="predicted chance", ylabel="share that was ill", xlim=(0, 1), ylim=(0, 1), aspect="equal")
plt.show()
