"""
Several curves of one person: re(person)
========================================

Curves of one person are alike. ``re(person, k=5)`` gives each person a curve of their own, shrunk to the mean by what
the other persons show: a random functional intercept. Without ``k`` it is a number, the same at all t.
"""

# %%
# Forty persons with three noisy curves each.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression

rng = np.random.default_rng(0)
t = np.linspace(0, 1, 31)
person = np.repeat([f"p{i:02}" for i in range(40)], 3)
own = rng.normal(size=(40, 2)) @ np.stack([np.ones(31), np.cos(np.pi * t)]) * 0.6
Y = np.sin(2 * np.pi * t) + np.repeat(own, 3, axis=0) + rng.normal(scale=0.5, size=(120, 31))
model = FunctionalRegression("Y ~ re(person, k=5)").fit({"person": person, "Y": Y}, grids={"Y": t})
print(model.test_terms())

# %%
# Three persons, each in a colour: their curves (thin), the truth (dashed), the estimate. A person who was never seen
# gets the mean curve.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for i, colour in zip(np.argsort(own[:, 0])[[0, 20, -1]], ("#0072B2", "#009E73", "#D55E00"), strict=True):
    axis.plot(t, Y[3 * i : 3 * i + 3].T, color=colour, linewidth=0.4)
    axis.plot(t, np.sin(2 * np.pi * t) + own[i], "--", color="black", linewidth=1)
    axis.plot(t, model.predict({"person": person[3 * i : 3 * i + 1]})[0], color=colour, lw=2, label=person[3 * i])
axis.set(xlabel="t", ylabel="Y(t)")
axis.legend(title="person")
plt.show()
