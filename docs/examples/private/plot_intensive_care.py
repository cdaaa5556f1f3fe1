"""
Tomorrow's heart rate from today's
==================================

5,500 stays in intensive care (PhysioNet 2012): the second day forecast from the first, at ε = 1. The prior
``"persistence"`` begins with what is known without any data: tomorrow is like today.
"""

# data: load_icu

# %%
# Stays that were observed for 18 hours of each day; gaps are filled within each stay.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import DPAFF, FunctionalRegression, Privacy, load_icu

icu = load_icu(as_frame=True)
enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
days = {"today": icu.X[enough].to_numpy(), "tomorrow": icu.Y[enough].to_numpy()}
hours = {"today": icu.X.columns.to_numpy(float), "tomorrow": icu.Y.columns.to_numpy(float)}
order = np.random.default_rng(0).permutation(int(enough.sum()))
stays, others = ({name: rows[part] for name, rows in days.items()} for part in (order[:5500], order[5500:]))
model = FunctionalRegression(
    "tomorrow ~ ff(today)",
    privacy=Privacy(epsilon=1.0, delta=1e-6, n=5500),
    bounds={"today": (30, 180), "tomorrow": (30, 180)},
    mechanism=DPAFF(prior="persistence"),
).fit(stays, grids=hours)
forecast, truth = np.asarray(model.predict(others)), others["tomorrow"]
left, spread = (np.nansum((truth - of) ** 2) for of in (forecast, np.nanmean(stays["tomorrow"], axis=0)))
print(f"explained on observed hours of stays that were not fitted: {1 - left / spread:.3f}")

# %%
# Means of 400 stays each, by how fast hearts were on the first day; nobody's own curve is drawn.
figure, axis = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
thirds = np.array_split(np.argsort(np.nanmean(others["today"], axis=1)), 3)
for third, name, colour in zip(thirds, ("slow", "middle", "fast"), ("#0072B2", "#009E73", "#D55E00"), strict=True):
    axis.plot(hours["today"], np.nanmean(others["today"][third], axis=0), ".", color="0.6")
    axis.plot(hours["tomorrow"], np.nanmean(truth[third], axis=0), ".", color="black")
    axis.plot(hours["tomorrow"], forecast[third].mean(axis=0), color=colour, label=f"forecast, {name} hearts")
axis.set(xlabel="hours since admission", ylabel="heart rate [beats/min]")
figure.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
