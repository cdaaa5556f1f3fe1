"""
Rain from temperature: a surface F(x, s, t)
===========================================

How do a year's temperatures at a weather station go together with its rain? The additive function-on-function model
estimates what a temperature of x at the time s of the year adds to the (log) rain at t.
"""

# %%
# Thirty-five Canadian stations; every fifth is held out.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import AdditiveFunctionOnFunction, load_canadian_weather
from fdadp.functional.metrics import coverage, rmspe

weather = load_canadian_weather()
test = np.arange(35) % 5 == 2
model = AdditiveFunctionOnFunction(progress=False).fit(weather.X[~test], weather.Y[~test])
lower, upper = model.predict_interval(weather.X[test], level=0.95)
print(f"held-out error {rmspe(weather.Y[test], model.predict(weather.X[test])):.3f} log10 mm")
print(f"coverage of 95 % intervals {coverage(weather.Y[test], lower, upper):.3f}")

# %%
# What goes with more rain at the end of January (red), and with less (blue). Where no station has such a temperature
# at that time of year the surface is hatched: it should not be interpreted there.
units = {"x": "temperature [°C]", "s": "s, time of year [years]", "F": "F [log10 mm per day, per year of s]"}
figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
model.plot_surface(t=0.08, X=weather.X, labels=units, ax=axis)
plt.show()
