"""
Months until an event: Surv(months, died)
=========================================

Some people had the event, others were censored before it. ``SurvivalRegression`` explains the hazard by a curve and a
number; with ``family="poisson"`` it is Cox's regression. ``private_survival`` releases survival curves of groups.
"""

# %%
# 3,000 people: the higher their curve X on average, the later the event.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import Privacy, SurvivalRegression, concordance
from fdadp.summaries import private_survival

rng, s = np.random.default_rng(0), np.linspace(0, 1, 25)
X = rng.normal(size=(3000, 3)) @ np.stack([np.ones(25), np.sin(2 * np.pi * s), np.cos(2 * np.pi * s)])
age = rng.uniform(-1, 1, 3000)
time, end = rng.exponential(6 * np.exp(0.6 * X.mean(axis=1) - 0.5 * age)), rng.uniform(2, 16, 3000)
people = {"X": X, "age": age, "months": np.minimum(time, end), "died": time <= end}
model = SurvivalRegression("Surv(months, died) ~ lf(X) + age", family="poisson").fit(people)
print(model.model_.coef("age", se=True))
print("concordance", round(concordance(people["months"], people["died"], model.predict(people)), 2))

# %%
# Left: three people, predicted and in truth (dashed). Right: the older and the younger half, privately at ε = 1, with
# 95 % limits that include the noise; nobody's own times can be read off.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
at, colours = np.linspace(0, 12, 100), ("#0072B2", "#009E73", "#D55E00")
for level, colour in zip((1, 0, -1), colours, strict=True):
    new = {"X": np.full((1, 25), float(level)), "age": np.zeros(1)}
    left.plot(at, np.ravel(model.predict_survival(new, at)), color=colour, label=f"X = {level}")
    left.plot(at, np.exp(-at / 6 * np.exp(-0.6 * level)), "--", color="black", linewidth=0.8)
left.set(xlabel="months", ylabel="survival", ylim=(0, 1))
left.legend()
table = pd.DataFrame(
    {name: people[name] for name in ("months", "died")} | {"half": np.where(age > 0, "older", "younger")}
)
groups, privacy = {"half": ["older", "younger"]}, Privacy(epsilon=1.0, n=3000)
released = private_survival(table, "months", "died", edges=range(13), by=groups, privacy=privacy).frame.sort_index()
for name, colour in zip(groups["half"], colours[::2], strict=True):
    curve = released.loc[(name, "survival")]
    right.step(curve.index, curve["value"], where="post", color=colour, label=name)
    right.fill_between(curve.index, curve["low"], curve["high"], step="post", color=colour, alpha=0.2)
right.set(xlabel="months", title=f"log-rank z = {released.loc['difference', 'log-rank z']['value'].iloc[0]:.1f}")
right.legend()
plt.show()
