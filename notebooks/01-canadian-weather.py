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
# # Canadian weather: from temperature curves to precipitation curves
#
# 35 weather stations. For each there is a year of temperature and a year of precipitation. How does the *whole*
# temperature curve go together with the *whole* precipitation curve?
#
# The additive function-on-function regression of Kim et al. (2018) says
#
# $$Y_i(t) = \mu(t) + \int F\{X_i(s), s, t\}\,ds + \varepsilon_i(t).$$
#
# Each moment $s$ of the temperature curve contributes to the precipitation at $t$ by some smooth function of the
# temperature. Were that function a straight line, $F(x, s, t) = \beta(s, t)\,x$, this would be the functional linear
# model. This notebook fits the model, draws it, and measures how well it predicts stations it has not seen. The end
# shows a published way to make it "private", and why that way does not keep its promise.
#
# All data are bundled: no network is needed. It runs in about a minute.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import AdditiveFunctionOnFunction, Privacy, coverage, load_canadian_weather, plot, rmspe
from fdadp.demo import published_experiment
from fdadp.demo.published_experiment import experiment_figure
from fdadp.errors import ExtrapolationWarning, NotPrivateWarning
from fdadp.published import PublishedNoise

# %% [markdown]
# ## The curves
#
# Daily values are noisy, so we take five-day means: 73 points per curve. Curves may be `FDataGrid`s of scikit-fda,
# arrays or, as here, data frames with one curve a row: then the station names stay with the curves.

# %%
weather = load_canadian_weather(as_frame=True)


def five_day_means(daily: pd.DataFrame) -> pd.DataFrame:
    """Average neighbouring columns; the new grid is the middle day of each five."""
    values = daily.to_numpy().reshape(len(daily), 73, 5).mean(axis=2)
    return pd.DataFrame(values, index=daily.index, columns=daily.columns[2::5])


X, Y = five_day_means(weather.X), five_day_means(weather.Y)
Y.iloc[:4, :6].round(2)

# %%
regions = weather.stations["region"]
colours = dict(zip(regions.unique(), plot.PALETTE, strict=False))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for place in X.index:
    left.plot(X.columns, X.loc[place], color=colours[regions[place]], linewidth=0.9)
    right.plot(Y.columns, Y.loc[place], color=colours[regions[place]], linewidth=0.9)
left.set(xlabel="time of year [years]", ylabel="temperature [°C]", title="predictor X")
right.set(xlabel="time of year [years]", ylabel="log10 of mm per day", title="response Y")
handles = [plt.Line2D([], [], color=colour) for colour in colours.values()]
_ = fig.legend(handles, colours, loc="outside lower center", ncols=4, frameon=False)
# %% [markdown]
# Cold winters go with little precipitation in winter; on the Pacific coast summers are dry.
#
# ## The fit
#
# The fit expands the response in its leading eigenfunctions, as many as explain 95 % of the smooth variance. The score
# of each eigenfunction gets a smooth surface of its own. REML chooses how smooth the surface is in $x$ and in $s$.
# There is nothing to tune by hand.

# %%
model = AdditiveFunctionOnFunction().fit(X, Y)
model.summary()

# %% [markdown]
# Two eigenfunctions carry the response. The first is the general level, most of all in winter; the second is the
# contrast between summer and winter. `edf` are the effective degrees of freedom of each surface.

# %%
Y_LABELS = {"t": "time of year [years]", "Y": "precipitation [log10 mm per day]"}
fig = plot.eigenfunctions(model, labels=Y_LABELS)

# %% [markdown]
# ## The surface $F$
#
# One panel for each of four times $t$ of the precipitation. Within a panel: the time $s$ of the temperature on the
# horizontal axis, the temperature on the vertical one. Red marks temperatures that go with *more* precipitation than
# average at $t$, and blue those that go with less. The surface is centred, so that over the stations its mean at each
# $s$ is zero.
#
# Where no station has such a temperature at that time of year, the surface is an extrapolation and is hatched: it
# should not be interpreted. Nor should a single spot be: the temperatures at two times of a year are strongly
# correlated across 35 stations, so that the model can move effect from one $s$ to another without fitting worse.

# %%
LABELS = {"x": "temperature [°C]", "s": "s, time of year [years]", "F": "F [log10 mm per day, per year of s]"}
fig = model.plot_surface(X=X, labels=LABELS)

# %%
fig = model.plot_surface(t=[0.1, 0.6], kind="3d", X=X, labels=LABELS)

# %% [markdown]
# ## How well does it predict stations it has not seen?
#
# Leave one station out, fit to the other 34, predict the one that was left out; 35 times. The yardstick is the **mean
# curve**: the mean of the other stations' precipitation, which does not use temperature at all. A regression that does
# no better than that has learned nothing of use.

# %%
predicted, mean_curve, lower, upper = {}, {}, {85: {}, 95: {}}, {85: {}, 95: {}}
with warnings.catch_warnings():
    # The coldest and the warmest station lie outside the range of the others; fdadp says so, once per fit.
    warnings.simplefilter("ignore", ExtrapolationWarning)
    for place in X.index:
        fit = AdditiveFunctionOnFunction(progress=False).fit(X.drop(place), Y.drop(place))
        predicted[place] = fit.predict(X.loc[[place]]).loc[place]
        mean_curve[place] = Y.drop(place).mean()
        for level in (85, 95):
            low, high = fit.predict_interval(X.loc[[place]], level=level / 100)
            lower[level][place], upper[level][place] = low.loc[place], high.loc[place]

held_out, means = pd.DataFrame(predicted).T, pd.DataFrame(mean_curve).T
pd.DataFrame(
    {
        "RMSPE [log10 mm]": {"model": rmspe(Y, held_out), "mean curve": rmspe(Y, means)},
        **{
            f"coverage of {level} % intervals": {
                "model": coverage(Y, pd.DataFrame(lower[level]).T, pd.DataFrame(upper[level]).T)
            }
            for level in (85, 95)
        },
    }
).round(3)

# %% [markdown]
# The model clearly beats the mean curve. Its intervals are meant for a new station from the same population; with so
# few and such different stations (the Arctic, the Rocky Mountains, two oceans) they cover a little less than they
# promise. A look at six stations left out together, from the best predicted to the worst. Resolute, the coldest, lies
# outside the range of all others; there the band is wide, as it should be.

# %%
test = ["St. Johns", "Arvida", "Winnipeg", "Calgary", "Vancouver", "Resolute"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ExtrapolationWarning)
    fit = AdditiveFunctionOnFunction(progress=False).fit(X.drop(test), Y.drop(test))
    fig = fit.plot_predictions(X.loc[test], Y.loc[test], labels=Y_LABELS)

# %% [markdown]
# ## Keeping the model
#
# A saved model is one documented file without pickles. It holds the surfaces, the mean curve and the eigenfunctions,
# none of the training curves. (That does **not** make it private: all of these are computed from the curves.)

# %%
path = model.save("canadian-weather-model.npz")
again = AdditiveFunctionOnFunction.load(path)
np.abs(again.predict(X) - model.predict(X)).to_numpy().max(), f"{path.stat().st_size / 1024:.0f} kB"

# %%
path.unlink()  # tidy up after ourselves

# %% [markdown]
# ## The published private scheme, and why it is not private
#
# Suppose the rows were people. The literature proposes to release the coefficients of each component with noise
# Laplace($\Delta_k/\varepsilon$), where $\Delta_k$ says how much they change when one person is left out. What exactly
# $\Delta_k$ is, is not defined there; fdadp offers three readings: the L1 norm of the whole change (`"local"`), the
# largest change of a single coefficient (`"coefficient"`), and that divided by $n$ (`"scaled"`).

# %%
privacy, mechanism = Privacy(epsilon=0.2, random_state=1), PublishedNoise(sensitivity="scaled")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always", NotPrivateWarning)
    noisy = AdditiveFunctionOnFunction(privacy=privacy, mechanism=mechanism).fit(X, Y)
print(said[0].message)
noisy.ledger_

# %% [markdown]
# The ledger is what a data custodian should read: what was released with which noise, and what was released *without*.
# Its first line says the verdict. To see it with our own eyes, leave out one station and fit again. Somebody who knows
# the other 34 wants to know: *was Resolute in the data?*

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NotPrivateWarning)
    without = AdditiveFunctionOnFunction(privacy=privacy, mechanism=mechanism).fit(
        X.drop("Resolute"), Y.drop("Resolute")
    )
pd.DataFrame(
    {
        "with Resolute": [*(r.scale for r in noisy.ledger_.releases), noisy.mean_[0], noisy.x_range_[0]],
        "without": [*(r.scale for r in without.ledger_.releases), without.mean_[0], without.x_range_[0]],
    },
    index=["noise scale 1", "noise scale 2", "mean curve at t = 0.01", "lowest temperature"],
).round(4)

# %% [markdown]
# No statistics are needed to tell the two columns apart. The mean curve, the range of the temperatures and the
# eigenfunctions come without noise, so that they answer the question with certainty, whatever ε says. And the noise
# scales depend on the data too: even somebody who sees only the noisy coefficients learns from how much they scatter.
#
# What does the noise cost? Random splits, 28 stations to fit and 7 to predict. Mind the logarithmic axis, and the black
# dashed line: above it, the released model predicts worse than the mean curve.

# %%
[data], _ = published_experiment.load(["canadian-weather"])
results = published_experiment.run(data, repeats=20, draws=5, seed=1)
table = published_experiment.summarise(results)
fig = experiment_figure(table, units={data.name: data.unit})

# %%
table.drop(columns=["dataset", "splits", "draws"]).round(3)

# %% [markdown]
# Read literally (`local`), the scheme destroys the model. Only the reading with Δ divided by $n$, for which there is no
# justification, comes down to the error of the mean curve as ε grows to 0.2. The coverage of our intervals (solid)
# stays where it should be, because they include the noise that was added and become as wide as it takes. So coverage
# alone says little. The published intervals (dashed) leave the noise out and keep the width of the fit without privacy.
# So their coverage rises with ε, as in the literature, from a third of what they promise.
#
# With 35 stations no method can do much better at such ε: the information is not there. The rest of fdadp is about a
# guarantee that is true end to end, and about how many people it takes to be useful.
