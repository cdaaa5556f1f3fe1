"""
Rain from temperature: a surface F(x, s, t)
===========================================

How do a year's temperatures at a weather station go together with its rain? The additive function-on-function model
estimates what temperature x on day s adds to the (log) rain of day t.
"""

# %%
# Thirty-five Canadian stations; every fifth is held out.
import matplotlib.pyplot as plt
import numpy as np

from fdadp import AdditiveFunctionOnFunction, load_canadian_weather
from fdadp.functional.metrics import coverage, rmspe

weather = load_canadian_weather()
test = np.arange(35) % 5 == 2
model = AdditiveFunctionOnFunction().fit(weather.X[~test], weather.Y[~test])
lower, upper = model.predict_interval(weather.X[test], level=0.95)
print(f"held-out error {rmspe(weather.Y[test], model.predict(weather.X[test])):.3f}")
print(f"coverage of 95 % intervals {coverage(weather.Y[test], lower, upper):.3f}")

# %%
# Predictions with their bands beside what was measured.
model.plot_predictions(weather.X[test][:3], weather.Y[test][:3])
plt.show()
