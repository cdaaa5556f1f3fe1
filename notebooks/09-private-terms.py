# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Several terms, privately
#
# A response explained by a curve, a number and a label of the same people, and a promise to each of them: what is
# published hardly depends on whether their row was in the table. This notebook goes once through all the steps of such
# a fit: plan, fit, ledger, bands and tests, a synthetic cohort; then a private logistic regression.
#
# The people are simulated, because then the truth is known and one can see where the private fit is worse. The noise is
# the real one and cannot be seeded. **So each run of this notebook gives slightly different numbers**, and the text
# quotes none. For what ε means, see [the second notebook](02-private-regression.ipynb); for the same models without
# privacy [the seventh](07-terms.ipynb).

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import DPAFF, FunctionalRegression, Privacy, ScalarRegression, load_icu, plan, simulate_affr
from fdadp.errors import ExtrapolationWarning, FdadpError
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.probability_scores import auc

warnings.simplefilter("ignore", ExtrapolationWarning)  # a few new curves lie a little outside the range of the fit

# %% [markdown]
# ## The table
#
# 3,000 people to fit to and 1,000 others to judge by. Each has a curve `X` (37 points), an `age`, a `ward`, and a
# `shoe` size that has nothing to do with anything. The response is a curve too:
#
# $$Y_i(t) = \mu(t) + \int \beta(s, t) X_i(s)\,ds + \gamma(t)\,(a_i - 50) + \delta_{w_i}(t) + \varepsilon_i(t)$$

# %%
N = 3000
GRID = np.linspace(0, 1, 37)
BETA = 3 * np.sin(np.pi * GRID)[:, None] * np.cos(np.pi * GRID)[None]  # late values of X lower the end of Y


def people(n, seed):
    """A table of n people, and E[Y | covariates] of each."""
    rng = np.random.default_rng(seed)
    X = simulate_affr(scenario=1, n=n, seed=seed).X(GRID)[..., 0]
    age, ward = rng.uniform(20, 90, n), rng.choice(["east", "north", "south"], n)
    mean = np.sin(2 * np.pi * GRID) + X @ BETA / len(GRID) + 0.015 * (age - 50)[:, None] * GRID
    mean = mean + np.where(ward == "north", 0.4, 0.0)[:, None] * (1 - GRID)
    wiggles = rng.normal(size=(n, 3)) @ np.stack([np.ones(37), np.sin(np.pi * GRID), np.cos(np.pi * GRID)]) * 0.35
    table = {"X": X, "age": age, "ward": ward, "shoe": rng.uniform(36, 46, n)}
    return table | {"Y": mean + wiggles + 0.1 * rng.normal(size=(n, 37))}, mean


table, _ = people(N, seed=1)
new, truth = people(1000, seed=2)


def explained(predicted):
    """Share of the variance of E[Y | covariates] over new people; 0 is what a mean curve explains."""
    return 1 - np.square(truth - predicted).sum() / np.square(truth - truth.mean(axis=0)).sum()


# %% [markdown]
# ## What is public
#
# Before anybody looks at the table, we write down what is known without it: between which values curves and numbers
# lie, and which wards there are. These bounds are public; they must not be read off the data. Bounds that are too wide
# cost a little accuracy, and a value outside counts as one at the bound. A ward that is not in the list counts as none.

# %%
FORMULA = "Y ~ ff(X) + age + C(ward) + shoe"
PUBLIC = {
    "X": (-4, 4),
    "Y": (-8, 8),
    "age": (18, 100),
    "ward": ["east", "north", "south"],
    "shoe": (30, 50),
}

# %% [markdown]
# ## Plan
#
# `plan` simulates, from these public facts alone, what a private fit will be worth. It costs nothing, as it reads
# nothing. Is ε = 1 enough for our 3,000 people?

# %%
forecast = plan(FORMULA, n=N, epsilon=1.0, delta=1e-6, bounds=PUBLIC)
print(forecast)

# %% [markdown]
# And with 40 people? The answer is a refusal, before any data were read: what comes out would be noise.

# %%
try:
    print(plan(FORMULA, n=40, epsilon=1.0, delta=1e-6, bounds=PUBLIC))
except FdadpError as error:
    print(error)

# %% [markdown]
# ## Fit
#
# The same formula as without privacy, and two things more: the guarantee and the bounds.

# %%
guarantee = Privacy(epsilon=1.0, delta=1e-6, n=N)
model = FunctionalRegression(FORMULA, privacy=guarantee, bounds=PUBLIC).fit(table, grids={"X": GRID, "Y": GRID})
print(model.summary())

# %% [markdown]
# ## Ledger
#
# Everything that was read from the table left it with noise, and is written down. The ledger says what it was and how
# large one person's part could be. It says how much noise there was, and which share of the budget it took. The first
# line is the promise.

# %%
print(model.ledger_)

# %% [markdown]
# ## How good is it?
#
# Beside the fit without privacy, and private fits to fewer people (others: each table is read once). What privacy takes
# is little here for 3,000 people; for 300 it is more, and how much differs from one draw of the noise to the next. And
# these people are kind: their curves are smooth and their bounds fit. [Elsewhere](../docs/private.md#how-accurate) more
# is lost.

# %%
grids = {"X": GRID, "Y": GRID}
plain = FunctionalRegression(FORMULA).fit(table, grids=grids)
shares = {"without privacy, 3,000 people": explained(plain.predict(new))}
shares["ε = 1, 3,000 people"] = explained(model.predict(new))
for n in (1000, 300):
    fewer = FunctionalRegression(FORMULA, privacy=Privacy(epsilon=1.0, delta=1e-6, n=n), bounds=PUBLIC)
    shares[f"ε = 1, {n:,} people"] = explained(fewer.fit(people(n, seed=n)[0], grids=grids).predict(new))
pd.Series(shares).round(3)

# %% [markdown]
# ## Effects and their bands
#
# Each term is drawn with what is known of it: 95 % bands of curves, and a surface hatched where not even the sign is
# known. The bands are made of both uncertainties: few people, and noise. They are posterior ones: they hold what
# they say on average over t, at the peaks of an effect less.

# %%
model.plot()
plt.show()

# %% [markdown]
# The effect of ten years of age, beside the truth and the fit without privacy. The coefficient is about the same and
# its band wider:

# %%
figure, axis = plt.subplots(figsize=(6, 3))
for fit, name, colour in ((plain, "without privacy", "C0"), (model, "ε = 1", "C1")):
    effect = fit.coef("age", se=True, t=GRID)
    value, error = 10 * effect["value"], 10 * effect["se"]
    axis.fill_between(effect["t"], value - 1.96 * error, value + 1.96 * error, color=colour, alpha=0.3)
    axis.plot(effect["t"], value, color=colour, label=name)
axis.plot(GRID, 0.15 * GRID, "k--", label="truth")
axis.set(xlabel="t", ylabel="effect of ten years on Y(t), with 95 % bands")
axis.legend()
plt.show()

# %% [markdown]
# Do the bands of E[Y | covariates] hold the truth, and the intervals the curves, as often as they say?

# %%
held = {}
for name, fit in {"without privacy": plain, "ε = 1": model}.items():
    mean, error = fit.predict(new), fit.predict_se(new)
    low, high = fit.predict_interval(new)
    held[name] = {
        "95 % bands of the mean hold": (np.abs(mean - truth) <= 1.96 * error).mean(),
        "their width": 2 * 1.96 * error.mean(),
        "95 % intervals of Y hold": ((low <= new["Y"]) & (new["Y"] <= high)).mean(),
        "width of intervals": (high - low).mean(),
    }
pd.DataFrame(held).T.round(3)

# %% [markdown]
# ## Tests and importances
#
# Tests of the terms account for the noise as well. Shoe size should not be found; a null hypothesis that is true is
# rejected in about one fit of twenty. Whatever one tests here costs nothing more: only released numbers are used.

# %%
model.test_terms()

# %% [markdown]
# Importances say which part of the explained variance comes from each term. The fit tries several weights for each
# term, and chooses among them by what was released. A term that explains nothing is switched off.

# %%
model.importances_

# %% [markdown]
# ## A synthetic cohort
#
# `sample` draws people from the releases. It costs nothing more, and may be handed to anyone. It keeps the mean, the
# effects of covariates, and the size of errors. Nothing was released about the shapes of `X` or about how covariates
# hang together. So the shapes are the prior's, at the released location and scale. `Y` inherits that from `X`. So use
# it to write and try an analysis, not to find out something new about the covariates.

# %%
sample = model.sample(1000)  # a data frame with columns of curves; as arrays:
synthetic = {name: np.asarray(sample[name]) for name in ("age", "ward", "shoe")}
synthetic |= {name: sample[name].array.data_matrix[..., 0] for name in ("X", "Y")}

figure, axes = plt.subplots(1, 4, figsize=(12, 3), sharex=True)
for k, name in enumerate(("X", "Y")):
    for axis, rows, title in ((axes[2 * k], table, "people"), (axes[2 * k + 1], synthetic, "synthetic")):
        axis.plot(GRID, rows[name][:30].T, lw=0.5)
        axis.set(title=f"{name}, {title}", ylim=(-6, 6))
plt.show()

# %% [markdown]
# A fit without privacy to the synthetic cohort finds the effects that the private fit had found: it holds no more than
# the releases did.

# %%
again = FunctionalRegression(FORMULA).fit(synthetic, grids=grids)
for name, fit in {"the private fit": model, "a fit to its sample": again}.items():
    print(f"{name} explains {explained(fit.predict(new)):.3f}")

# %% [markdown]
# ## A private logistic regression
#
# A response that is yes or no: `ScalarRegression(family="binomial")`, with the same guarantee and the same kind of
# bounds. Of the response they name the two classes.

# %%


def patients(n, seed):
    """A table, and the true chance of each."""
    rows, _ = people(n, seed)
    logit = 4 * rows["X"] @ np.cos(np.pi * GRID) / len(GRID) + 0.04 * (rows["age"] - 55) - 0.5
    chance = 1 / (1 + np.exp(-logit))
    return rows | {"ill": (np.random.default_rng(seed + 100).random(n) < chance).astype(float)}, chance


ward, _ = patients(N, seed=11)
others, chance = patients(2000, seed=12)
LOGISTIC = "ill ~ lf(X) + age"
exact = ScalarRegression(LOGISTIC, family="binomial").fit(ward, grids={"X": GRID})
declared = {"X": PUBLIC["X"], "age": PUBLIC["age"], "ill": [0, 1]}
private = ScalarRegression(LOGISTIC, family="binomial", privacy=guarantee, bounds=declared)
private.fit(ward, grids={"X": GRID})
rows = {}
for name, fit in {"without privacy": exact, "ε = 1": private}.items():
    found = fit.predict_proba(others)[:, 1]
    rows[name] = {"AUC": auc(others["ill"], found), "mean distance from the true chance": np.abs(found - chance).mean()}
rows["truth"] = {"AUC": auc(others["ill"], chance), "mean distance from the true chance": 0.0}
pd.DataFrame(rows).T.round(3)

# %% [markdown]
# The fit ranks people by risk about as well as without privacy. The chances themselves are further off.

# %%
private.test_terms()

# %% [markdown] tags=["load_icu"]
# ## A forecast: the next day from this one
#
# If the response is the same quantity a day later, much is known before any data: tomorrow will be like today.
# `DPAFF(prior="persistence")` fits what is left when half the last value and half the mean of a person's own curve are
# taken away, so that the budget is not spent on finding that out. If noise would make it worse than doing nothing, the
# fit keeps that anchor alone and `notes_` says so.
#
# Hourly heart rates of the second day in intensive care from those of the first (PhysioNet 2012), judged on observed
# hours of stays that the fit did not use.

# %% tags=["load_icu"]
icu = load_icu(as_frame=True, download=False)
enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
day1, day2 = icu.X[enough].to_numpy(), icu.Y[enough].to_numpy()
hours = {"day1": icu.X.columns.to_numpy(dtype=float), "day2": icu.Y.columns.to_numpy(dtype=float)}
order = np.random.default_rng(0).permutation(len(day1))
# Four groups of people, each fitted once, and those to judge by.
parts = [{"day1": day1[part], "day2": day2[part]} for part in np.split(order, [300, 600, 2600, 4600])]
later = parts.pop()
print(f"{len(later['day1'])} stays to judge by")

# %% tags=["load_icu"]
rates = {"day1": (30, 180), "day2": (30, 180)}


def forecasting(stays, prior):
    """A fit with epsilon = 1."""
    promise = Privacy(epsilon=1.0, delta=1e-6, n=len(stays["day1"]))
    model = FunctionalRegression("day2 ~ ff(day1)", privacy=promise, bounds=rates, mechanism=DPAFF(prior=prior))
    return model.fit(stays, grids=hours)


few, persistence = forecasting(parts[0], "persistence"), forecasting(parts[2], "persistence")
few_usual, usual = forecasting(parts[1], None), forecasting(parts[3], None)

# %% [markdown] tags=["load_icu"]
# Beside the anchor alone, and a fit without privacy:

# %% tags=["load_icu"]
first = fill_linear(later["day1"], hours["day1"])
filled = {name: fill_linear(parts[2][name], hours[name]) for name in ("day1", "day2")}
exact = FunctionalRegression("day2 ~ ff(day1, k=(12, 8))").fit(filled, grids=hours)
weights = np.r_[0.5, np.ones(first.shape[1] - 2), 0.5] / (first.shape[1] - 1)
predictions = {
    "the anchor alone": np.repeat((0.5 * first[:, -1] + 0.5 * first @ weights)[:, None], first.shape[1], axis=1),
    "ε = 1, 300 stays, usual prior": few_usual.predict(later),
    "ε = 1, 300 stays, persistence": few.predict(later),
    "ε = 1, 2,000 stays, usual prior": usual.predict(later),
    "ε = 1, 2,000 stays, persistence": persistence.predict(later),
    "without privacy, 2,000 stays": exact.predict({"day1": first}),
}
spread = np.nansum((later["day2"] - np.nanmean(later["day2"], axis=0)) ** 2)
shares = {name: 1 - np.nansum((later["day2"] - found) ** 2) / spread for name, found in predictions.items()}
pd.Series(shares, name="explained on observed hours").round(3)

# %% [markdown] tags=["load_icu"]
# The anchor is worth most where the budget is small: with few people the usual prior has to find out first what
# persistence takes for granted. With thousands both come close to the fit without privacy, and either may be ahead.

# %% tags=["load_icu"]
low, high = persistence.predict_interval(later)
seen = ~np.isnan(later["day2"])
inside = ((low <= later["day2"]) & (later["day2"] <= high))[seen].mean()
print(f"95 % intervals hold {inside:.1%} of the observed hours")
print(*persistence.notes_, sep="\n")

# %% [markdown] tags=["load_icu"]
# Notes are about what is left once the anchor is taken away: that little of it can be explained is no surprise. The
# intervals are made for people's rates as they come, rough and smooth. They come close to their 95 %, but not in each
# hour nor for each kind of curve. [The page on forecasts](../docs/forecasts.md) has the table, and says which settings
# were chosen by looking at such data. Means of the stays with slow, middle and fast hearts on the first day (nobody's
# curve is shown), with the mean of their anchors, and of the intervals, which are made for one person each:

# %% tags=["load_icu"]
figure, axes = plt.subplots(1, 3, figsize=(12, 3), sharey=True)
thirds = np.array_split(np.argsort(first.mean(axis=1)), 3)
for axis, third, name in zip(axes, thirds, ("slow", "middle", "fast"), strict=True):
    axis.plot(hours["day1"], np.nanmean(later["day1"][third], axis=0), ".", color="grey")
    axis.plot(hours["day2"], np.nanmean(later["day2"][third], axis=0), ".", color="black", label="observed")
    axis.plot(hours["day2"], predictions["the anchor alone"][third].mean(axis=0), ":", color="C0", label="anchor")
    means = [values[third].mean(axis=0) for values in (predictions["ε = 1, 2,000 stays, persistence"], low, high)]
    axis.plot(hours["day2"], means[0], color="C1", label="ε = 1")
    axis.fill_between(hours["day2"], *means[1:], color="C1", alpha=0.25, label="95 % interval of one person")
    axis.set_title(f"{name}: {len(third):,} stays")
    axis.set(xlabel="hours since admission")
axes[0].set(ylabel="heart rate [beats/min]")
axes[0].legend()
plt.show()

# %% [markdown]
# ## What is worse than without privacy
#
# * *Fewer features*: the plan affords a few dozen. Narrow peaks, rough curves and heavy tails are lost first.
# * *Fewer people*: with a few hundred and ε = 1 the loss is large, and with too few the fit is refused.
# * *Bounds and levels must be known*, not looked up in the data; `plan` helps to see what wide ones cost.
# * *No residuals, no bootstrap, no checks of the basis*: they need the rows, and no row is kept.
# * *One fit*: a second on the same people costs another ε, unless both share a `Budget`.
