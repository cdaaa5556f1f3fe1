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
# # Several curves a person, read aloud
#
# A wearable gives a curve for each day, a clinic one for each visit. Days of one person are alike, and an analysis that
# takes them for days of different people is too sure of itself. This notebook goes through one analysis, and says of
# each number what it means: in the printed sentences, so that they are right for your data, too.
#
# The people are simulated, so that the truth is known. At the end the same is done with scans of nerve tracts (DTI) and
# with days on which an accelerometer was worn (NHANES), where these files are on this machine (in the folder
# `FDADP_DATA`). All names are in [Several curves a person](../docs/repeated.md).

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import FunctionalRegression, MultilevelFPCA, Privacy
from fdadp.summaries import PrivateMultilevelFPCA

# %% [markdown]
# ## The table
#
# 1,500 people with one to seven days each. `activity` has 48 half hours. Each person has a habit of their own (a level,
# and how early the day begins), each day its own mood, and each half hour noise. On weekends everybody starts later;
# older people are less active in the evening.

# %%
HOURS = np.arange(48) / 2
MORNING, EVENING = (np.exp(-((HOURS - at) ** 2) / 18) for at in (8, 19))


def cohort(n, seed):
    """Days of n people, and the habit of each of them: the curve that the mean of very many days would be."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), rng.integers(1, 8, n))
    age = rng.uniform(20, 80, n)[person]
    weekend = (rng.uniform(size=person.size) < 2 / 7) * 1.0
    habit = rng.normal(size=(n, 2)) @ np.stack([0.5 + 0.5 * np.sin(np.pi * HOURS / 24), 0.7 * MORNING])
    mean = 3 + 2 * MORNING + EVENING - np.outer(weekend, MORNING) - np.outer((age - 50) / 30, EVENING)
    mood = rng.normal(size=(person.size, 1)) * EVENING * 0.8
    Y = mean + habit[person] + mood + 0.4 * rng.normal(size=mean.shape)
    return {"activity": Y, "weekend": weekend, "age": age, "person": person}, habit


days, habits = cohort(1500, seed=0)
counts = np.bincount(days["person"])
print(f"{len(days['person']):,} days of {counts.size:,} people: {counts.min()} to {counts.max()} days a person.")

# %% [markdown]
# ## What differs between people, and what from day to day
#
# Without terms age is among what differs between people, and weekends among what differs from day to day.

# %%
levels = MultilevelFPCA(n_components=(2, 1)).fit(days["activity"], groups=days["person"], t=HOURS)


def read_aloud(found, unit):
    """Each number of a fit in a sentence."""
    shares = found.explained_variance_ratio_
    print(
        f"Of what varies smoothly, {found.icc_:.2f} lies between people (the intraclass correlation): so much do two "
        f"{unit}s of one person have in common."
    )
    print(f"With the noise of single points counted too it is {found.icc_with_noise_:.2f}.")
    print(f"People differ in {found.n_components_['person']} ways; the first is {shares['person'][0]:.0%} of it.")
    print(
        f"{unit.capitalize()}s of a person differ in {found.n_components_['row']}; the first is {shares['row'][0]:.0%}."
    )
    print(f"The noise of a single point has a standard deviation of {np.sqrt(found.noise_variance_):.2f}.")


read_aloud(levels, "day")
print(
    f"The curves were put on {levels.k_} smooth functions, as many as BIC chose. What was left out varies "
    f"{levels.whiteness_:.2f} times as much as white noise would: near 1, nothing was missed."
)
print(
    f"Successive days of a person, less what is theirs, are correlated by {levels.successive_correlation_:.2f}: "
    "days are taken as independent given the person, and near 0 that is right."
)

# %% [markdown]
# Each picture shows the mean day, and the mean plus and minus the first component: what people differ in, and what days
# of a person differ in. The mood of the evening is no habit.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for axis, level, name in zip(axes, ("person", "row"), ("between people", "from day to day"), strict=True):
    axis.plot(HOURS, levels.mean_, color="black", label="mean day")
    swing = 2 * np.sqrt(levels.eigenvalues_[level][0]) * levels.eigenfunctions_[level][0]
    axis.fill_between(
        HOURS, levels.mean_ - swing, levels.mean_ + swing, alpha=0.3, label="± 2 sd of the first component"
    )
    axis.set(xlabel="hour", title=name)
axes[0].set(ylabel="activity")
axes[0].legend(fontsize="small")
plt.show()

# %% [markdown]
# Scores say where a person stands. They are predictions: of a person with one day they are drawn to the mean, for one
# day may be anything.

# %%
person, day = levels.transform(days["activity"], groups=days["person"], t=HOURS)
of_days = counts[person.index.to_numpy(int)]
few, many = (person["person0"][of_days == number].std() for number in (1, 7))
print(f"Scores of people with one day vary by {few:.2f}, of people with seven by {many:.2f}: one day says less.")

# %% [markdown]
# ## Effects: weekends and age
#
# `re(person, covariance='free')` beside the terms. The same model without it takes each day for a person of its own.

# %%
model = FunctionalRegression("activity ~ weekend + age + re(person, covariance='free')").fit(
    days, grids={"activity": HOURS}
)
alone = FunctionalRegression("activity ~ weekend + age").fit(days, grids={"activity": HOURS})
at_eight, at_seven = (model.coef(name, se=True, t=[hour]).iloc[0] for name, hour in (("weekend", 8.0), ("age", 19.0)))
print(
    f"At eight in the morning a day at the weekend has {at_eight['value']:.2f} more activity (95 % from "
    f"{at_eight['lower']:.2f} to {at_eight['upper']:.2f}; the truth is -1)."
)
print(
    f"At seven in the evening ten years of age are {10 * at_seven['value']:.2f} (from {10 * at_seven['lower']:.2f} to "
    f"{10 * at_seven['upper']:.2f}; the truth is {-10 / 30:.2f})."
)
wide, narrow = (fit.coef("age", se=True)["se"].mean() for fit in (model, alone))
print(
    f"Taking days for people, the standard error of age would be {narrow / wide:.2f} of what it is: age is a person's."
)
wide, narrow = (fit.coef("weekend", se=True)["se"].mean() for fit in (model, alone))
print(
    f"That of weekends would be {narrow / wide:.2f} of it: people are compared with themselves, which is more precise."
)
print(model.persons_.variances.round(3))

# %% [markdown]
# The last table splits the variance at an average hour into people, days and noise; `sd` is in units of activity.

# %% [markdown]
# ## People we know, and people we do not
#
# The habit of a known person is predicted from their days, that of a stranger is the mean. Intervals for a new day take
# the difference into account.

# %%
new = {"weekend": np.zeros(2), "age": np.array([50.0, 50.0]), "person": np.array([np.argmax(counts), -1])}
predicted = model.predict(new)
low, high = model.predict_interval(new)
own = model.coef("re(person)", se=True, person=[int(new["person"][0])], t=HOURS)
off = np.sqrt(np.mean((own["value"] - habits[new["person"][0]]) ** 2))
print(
    f"The habit of person {new['person'][0]}, with {counts.max()} days, is predicted to {off:.2f} (root mean square)."
)
print(
    f"A new day is foretold to ± {np.mean(high[0] - low[0]) / 2:.2f} for this person, and to "
    f"± {np.mean(high[1] - low[1]) / 2:.2f} for a stranger."
)
held = (own["lower"] <= habits[new["person"][0]]) & (habits[new["person"][0]] <= own["upper"])
print(f"The 95 % interval of the habit holds the truth at {held.mean():.0%} of the hours of this one person.")

# %%
figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for i, (name, colour) in enumerate((("a person with seven days", "#0072B2"), ("a stranger", "#D55E00"))):
    axis.plot(HOURS, predicted[i], color=colour, label=name)
    axis.fill_between(HOURS, low[i], high[i], color=colour, alpha=0.15)
axis.set(xlabel="hour", ylabel="activity of a new day")
axis.legend()
plt.show()

# %% [markdown]
# ## The same under a promise
#
# What is released about both levels hardly depends on whether any one person took part, however many days they gave.
# Public are the range of the values (0 to 8), and that at most seven days of a person count. The noise is real and
# differs from run to run.

# %%
privacy = Privacy(epsilon=1.0, delta=1e-6, n=1500)
private = PrivateMultilevelFPCA(n_components=(2, 1), privacy=privacy, bounds=(-1, 9), max_rows=7)
private.fit(days["activity"], groups=days["person"], t=HOURS)
read_aloud(private, "day")
bottom, top = private.icc_interval()
print(f"The noise added for privacy leaves the intraclass correlation open between {bottom:.2f} and {top:.2f}.")
same = [
    abs(np.sum(private.eigenfunctions_[level][0] * levels.eigenfunctions_[level][0] * levels.weights_))
    for level in ("person", "row")
]
print(
    f"The first components point where those without privacy do: cosines of {same[0]:.2f} (people) and {same[1]:.2f}."
)
print(f"What was promised: {private.ledger_.headline}")

# %% [markdown] tags=["load_dti"]
# ## Scans of nerve tracts
#
# 376 scans of 142 people, with multiple sclerosis or without, at one to eight visits: how intact the corpus callosum is
# along its length (fractional anisotropy).

# %% tags=["load_dti"]
from fdadp import load_dti

dti = load_dti(complete="cca", as_frame=True, download=False)
scans = MultilevelFPCA(n_components=0.9).fit(dti.X, groups=dti.groups)
read_aloud(scans, "scan")
table = {"cca": dti.X, "sclerosis": dti.covariates["case"], "id": dti.groups}
tracts = FunctionalRegression("cca ~ sclerosis + re(id, covariance='free')").fit(table)
effect = tracts.bands("sclerosis")
worst = effect.loc[effect["value"].idxmin()]
print(
    f"People with multiple sclerosis have {-worst['value']:.3f} less at {worst['t']:.2f} of the length (a band of the "
    f"whole curve: {-worst['upper']:.3f} to {-worst['lower']:.3f}), where the difference is largest."
)

# %% [markdown] tags=["load_nhanes_wear"]
# ## Days on which an accelerometer was worn
#
# 6,722 people of NHANES 2003-2004 wore a device for up to seven days. For each minute it is known whether they did;
# here are shares of half hours.

# %% tags=["load_nhanes_wear"]
from fdadp.datasets import load_nhanes_wear

worn = load_nhanes_wear(minutes=30, as_frame=True)
wear = MultilevelFPCA(n_components=4).fit(
    worn.Y, groups=worn.groups, covariates=worn.covariates[["weekend"]].astype(float)
)
read_aloud(wear, "day")
least = int(np.argmin(wear.coefficients_[0]))
print(
    f"On weekends {-wear.coefficients_[0][least]:.0%} fewer wear it at {wear.grid_[least]:.1f} h, where the difference "
    "is largest: they get up later."
)
privacy = Privacy(epsilon=1.0, delta=1e-6, n=worn.covariates.groupby(np.asarray(worn.groups)).ngroups)
released = PrivateMultilevelFPCA(n_components=4, privacy=privacy, bounds=(0, 1), max_rows=7)
released.fit(worn.Y, groups=worn.groups)
bottom, top = released.icc_interval()
print(f"Privately, at epsilon 1: the intraclass correlation lies between {bottom:.2f} and {top:.2f}.")
pd.DataFrame(
    {"not private": wear.eigenvalues_["person"][:4], "private": released.eigenvalues_["person"][:4]},
    index=[f"component {k} of people" for k in (1, 2, 3, 4)],
).round(3)
