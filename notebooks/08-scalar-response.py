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
# # Numbers explained by curves
#
# `ScalarRegression` has a number as its response: a measurement, a count, or whether something happened. Curves act
# through `lf(X)`, the integral of the curve with a weight function, or `af(X)`, the integral of a smooth function of
# its values.
#
# The models here are **not private**.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import ScalarRegression, load_canadian_weather, load_icu
from fdadp.errors import ExtrapolationWarning
from fdadp.functional.gap_filling import fill_linear
from fdadp.functional.probability_scores import auc, brier_score, calibration_table

# %% [markdown]
# ## A year's rain from the temperature curve
#
# Canadian weather: the logarithm of a station's yearly precipitation, from the course of its temperature.

# %%
weather = load_canadian_weather(as_frame=True)
stations = pd.DataFrame({"latitude": weather.stations["latitude"], "rain": weather.Y.mean(axis=1)})
data = {"temperature": weather.X, **stations}
rain = ScalarRegression("rain ~ lf(temperature, k=12)").fit(data)
print(rain.summary())

# %%
fig = rain.plot("lf(temperature)", labels={"s": "s, time of year [years]"})
_ = fig.axes[0].set_ylabel("β(s) [log10 mm per °C and year]")
plt.show()

# %% [markdown] tags=["load_icu"]
# ## Death in hospital from the first day's curves
#
# 8,000 stays in intensive care (PhysioNet 2012): hourly heart rate and blood pressure of the first day, age, the kind
# of unit, and two scores that clinicians compute (SAPS-I, SOFA). 14 % died in hospital. Stays with fewer than 12 hours
# of either curve are left out, gaps are filled linearly within a stay.

# %% tags=["load_icu"]
rate, pressure = (load_icu(what, as_frame=True, download=False) for what in ("heart_rate", "pressure"))
who = rate.covariates
enough = (rate.X.notna().sum(axis=1) >= 12) & (pressure.X.notna().sum(axis=1) >= 12)
enough &= (who["saps1"] >= 0) & (who["sofa"] >= 0) & who["age"].notna()
hours = rate.X.columns.to_numpy(dtype=float)
who = who[enough]
stays = {
    "rate": fill_linear(rate.X[enough].to_numpy(), hours),
    "pressure": fill_linear(pressure.X[enough].to_numpy(), hours),
    **{name: who[name].to_numpy(dtype=float) for name in ("age", "saps1", "sofa")},
    "type": who["icu_type"].to_numpy(),
    "died": who["died_in_hospital"].to_numpy(dtype=float),
}
rng = np.random.default_rng(0)
order = rng.permutation(len(who))
half = len(who) * 2 // 3
train, test = ({name: value[rows] for name, value in stays.items()} for rows in (order[:half], order[half:]))
print(f"{half} stays to fit, {len(who) - half} to judge; {stays['died'].mean():.1%} died")

# %% [markdown] tags=["load_icu"]
# The first model uses who the patient is. Two models add the curves, which act by their level (`lf`) or by a smooth
# function of their values (`af`). The latter is there because both a slow and a racing heart are bad signs. The last
# model adds the clinicians' scores.

# %% tags=["load_icu"]
formulas = {
    "age and unit": "died ~ s(age) + C(type)",
    "and curves, lf": "died ~ s(age) + C(type) + lf(rate, k=12) + lf(pressure, k=12)",
    "and curves, af": "died ~ s(age) + C(type) + af(rate, k=(5, 7)) + af(pressure, k=(5, 7))",
    "and scores": "died ~ s(age) + C(type) + af(rate, k=(5, 7)) + af(pressure, k=(5, 7)) + s(saps1) + s(sofa)",
}
grids = {"rate": hours, "pressure": hours}
models = {name: ScalarRegression(text, family="binomial").fit(train, grids=grids) for name, text in formulas.items()}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ExtrapolationWarning)  # of 60,000 new pressures one is lower than all before
    chances = {name: model.predict_proba(test)[:, 1] for name, model in models.items()}

# %% tags=["load_icu"]
scores = {
    name: {"AUC": auc(test["died"], p), "Brier score": brier_score(test["died"], p)} for name, p in chances.items()
}
base = np.full(len(test["died"]), train["died"].mean())
scores["the share that died"] = {"AUC": 0.5, "Brier score": brier_score(test["died"], base)}
print(pd.DataFrame(scores).T.round(3))

# %% [markdown] tags=["load_icu"]
# Is a predicted chance of 30 % a chance of 30 %? Stays in ten groups by their predicted chance:

# %% tags=["load_icu"]
figure, axis = plt.subplots(figsize=(4, 4))
axis.plot([0, 0.6], [0, 0.6], color="grey", lw=1)
for name in ("age and unit", "and scores"):
    groups = calibration_table(test["died"], chances[name], bins=10)
    axis.plot(groups["predicted"], groups["observed"], "o-", label=name)
axis.set(xlabel="predicted chance of death", ylabel="share that died")
axis.legend()
plt.show()

# %% [markdown] tags=["load_icu"]
# What the curves say: low pressure late in the day is a bad sign. The band is pointwise, 95 %:

# %% tags=["load_icu"]
fig = models["and curves, lf"].plot("lf(pressure)", labels={"s": "s, hour of day 1"})
_ = fig.axes[0].set_ylabel("β(s) [log-odds per mmHg and hour]")
plt.show()
