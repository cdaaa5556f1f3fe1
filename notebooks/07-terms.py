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
# # Terms: curves explained by curves, numbers and labels
#
# A regression of curves is a sum of *terms*. Each term says how one covariate acts. It may act through an integral over
# its whole past (`ff`) or at the same moment (`concurrent`). It may act by a smooth function of a number (`s`), or by a
# curve for each level of a factor (`C`). `FunctionalRegression` takes any mixture of them, as a formula, and fits all
# of them at once by penalised least squares. REML chooses how smooth each is. The models are those of R's `refund`, to
# the last digits.
#
# The models here are **not private**: their coefficients depend on every
# training curve. For private fits see [the second notebook](02-private-regression.ipynb).

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import elnino

from fdadp import FunctionalRegression, load_canadian_weather, load_dti2, load_icu
from fdadp.functional.gap_filling import fill_linear

# %% [markdown]
# ## Weather by region
#
# 35 Canadian stations, their mean temperature over the year, and the region they lie in. How does the year's course
# differ between regions? A factor gives each region a curve of its own, as the difference from the first one. Daily
# values are averaged over five days.

# %%
weather = load_canadian_weather(as_frame=True)
days = weather.X.columns.to_numpy(dtype=float)[2::5]


def five_days(frame):
    return frame.to_numpy().reshape(len(frame), 73, 5).mean(axis=2)


stations = {
    "temperature": five_days(weather.X),
    "rain": five_days(weather.Y),  # log10 mm
    "region": weather.stations["region"].to_numpy(),
}
grids = {"temperature": days, "rain": days}
by_region = FunctionalRegression("temperature ~ C(region)").fit(stations, grids=grids)
print(by_region.summary())

# %%
by_region.plot(labels={"t": "time of year [years]"})
plt.show()

# %% [markdown]
# Standard errors, bands and tests take the errors *along a curve* as they are, smooth: a warm station is warm for
# weeks. Taking them as independent, as `refund` does, makes them too small by a factor:

# %%
new = {"region": np.unique(stations["region"])}
pd.DataFrame(
    {kind: by_region.predict_se(new, kind=kind).mean(axis=1) for kind in ("curve", "iid")}, index=new["region"]
).round(2)

# %% [markdown]
# Rain on temperature, all year round, and the region beside it. What is left for the region once the temperature
# is known?

# %%
rain = FunctionalRegression("rain ~ ff(temperature) + C(region)").fit(stations, grids=grids)
rain.test_terms()

# %%
rain.plot("ff(temperature)", labels={"s": "s, time of year [years]", "t": "t, time of year [years]"})
plt.show()

# %% [markdown]
# ## El Niño: this year from the last
#
# Sea surface temperatures off Peru, monthly, 1950 to 2010 (from statsmodels). The response is a year, the covariate the
# year before. The surface says which months of last year matter for which months of this one.

# %%
table = elnino.load_pandas().data.set_index("YEAR")
months = np.arange(12) + 0.5
years = table.to_numpy(dtype=float)
pairs = {"last": years[:-1], "this": years[1:]}
nino = FunctionalRegression("this ~ ff(last, k=(8, 8))").fit(pairs, grids={"last": months, "this": months})
print(f"{nino.edf_:.1f} degrees of freedom; explained {nino.score(pairs):.2f} of the variance")
nino.plot("ff(last)", labels={"s": "s, month of last year", "t": "t, month of this year"})
plt.show()

# %% [markdown]
# It is little: what matters is how warm the sea was at the end of last year, and a cold spring before it. Intervals for
# the year to come are nearly as wide as the spread of all years.

# %%
newest = {"last": years[-1:]}
mean = nino.predict(newest)[0]
lower, upper = nino.predict_interval(newest)
figure, axis = plt.subplots(figsize=(6, 3))
axis.fill_between(months, lower[0], upper[0], alpha=0.3, label="95 % prediction interval")
axis.plot(months, mean, label="mean given 2010")
axis.plot(months, years.mean(axis=0), "--", label="mean of all years")
axis.set(xlabel="month of 2011", ylabel="sea surface temperature [°C]")
axis.legend()
plt.show()

# %% [markdown] tags=["load_dti2"]
# ## Several scans of one person
#
# Two profiles of the brain's white matter of people with multiple sclerosis, several visits a person (DTI2 of
# `refund`). Visits of a person are not independent; `groups=` says so, and standard errors and tests follow.

# %% tags=["load_dti2"]
tracts = load_dti2(complete="both", download=False)
scans = {"cca": tracts.X, "rcst": tracts.Y}
linear = FunctionalRegression("rcst ~ ff(cca)").fit(scans, groups=tracts.groups)
additive = FunctionalRegression("rcst ~ sff(cca)").fit(scans, groups=tracts.groups)
for model in (linear, additive):
    print(f"{model.edf_:5.1f} degrees of freedom, explained {model.score(scans):.3f} of the variance")
print(linear.test_terms().to_string())

# %% [markdown] tags=["load_dti2"]
# The additive surface at four places of the other tract, hatched where no scan has such values:

# %% tags=["load_dti2"]
additive.plot("sff(cca)", data=scans, labels={"s": "s, along the callosum", "x": "mean diffusivity"})
plt.show()

# %% [markdown] tags=["load_icu"]
# ## Intensive care: the second day from the first
#
# Hourly heart rates of 8,000 stays (PhysioNet 2012). We take stays with at least 18 hours seen on both days, fill gaps
# linearly within a stay, and judge on observed hours only. Complete cases are the sicker patients: what follows is
# about them.

# %% tags=["load_icu"]
icu = load_icu(as_frame=True, download=False)
enough = (icu.X.notna().sum(axis=1) >= 18) & (icu.Y.notna().sum(axis=1) >= 18)
hours = icu.X.columns.to_numpy(dtype=float), icu.Y.columns.to_numpy(dtype=float)
who, observed = icu.covariates[enough], icu.Y[enough].to_numpy()
stays = {
    "day1": fill_linear(icu.X[enough].to_numpy(), hours[0]),
    "day2": fill_linear(observed, hours[1]),
    "age": who["age"].fillna(who["age"].median()).to_numpy(),
    "type": who["icu_type"].to_numpy(),
}
order = np.random.default_rng(0).permutation(enough.sum())
train, test = ({name: value[rows] for name, value in stays.items()} for rows in (order[:5500], order[5500:]))
grids = {"day1": hours[0], "day2": hours[1]}
models = {
    text: FunctionalRegression(text).fit(train, grids=grids)
    for text in ("day2 ~ ff(day1, k=(12, 8))", "day2 ~ ff(day1, k=(12, 8)) + s(age) + C(type)")
}
truth = observed[order[5500:]]
spread = np.nansum((truth - np.nanmean(observed[order[:5500]], axis=0)) ** 2)
for text, model in models.items():
    left = np.nansum((truth - model.predict(test)) ** 2)
    print(f"{text:48s} explains {1 - left / spread:.3f} on observed hours of stays it has not seen")

# %% [markdown] tags=["load_icu"]
# Age and the kind of unit add next to nothing once the first day is known. The weight is nearly all on the last hours:

# %% tags=["load_icu"]
models["day2 ~ ff(day1, k=(12, 8))"].plot("ff(day1)", labels={"s": "s, hour of day 1", "t": "t, hour of day 2"})
plt.show()

# %% [markdown] tags=["load_icu"]
# A curve need not act at all: which kind of unit a stay is in does say something about the course of blood pressure.

# %% tags=["load_icu"]
pressure = load_icu("pressure", as_frame=True, download=False)
seen = pressure.X.notna().sum(axis=1) >= 18
course = {
    "pressure": fill_linear(pressure.X[seen].to_numpy(), hours[0]),
    "type": pressure.covariates["icu_type"][seen].to_numpy(),
}
by_type = FunctionalRegression("pressure ~ C(type)").fit(course, grids={"pressure": hours[0]})
kinds = np.unique(course["type"])
figure, axis = plt.subplots(figsize=(6, 3))
for kind, curve in zip(kinds, by_type.predict({"type": kinds}), strict=True):
    axis.plot(hours[0], curve, label=f"{kind} ({(course['type'] == kind).sum()} stays)")
axis.set(xlabel="hour of day 1", ylabel="mean arterial pressure [mmHg]", ylim=(72, 90))
axis.legend(ncols=2)
plt.show()
