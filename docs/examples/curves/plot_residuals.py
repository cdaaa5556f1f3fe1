"""
What is left: residuals
=======================

Four pictures say whether a fit can be believed: residual curves, their quantiles, residuals against fitted values,
and how residuals at two times hang together.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
data = {"temperature": weather.X, "rain": weather.Y, "region": weather.stations["region"].to_numpy()}
model = FunctionalRegression("rain ~ ff(temperature) + C(region)").fit(data)

# %%
# Far from the diagonal of the last panel correlations are not zero: the errors are smooth along the curve, and
# standard errors have to know it.
figure, axes = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
model.plot_residuals(labels={"t": "time of year [years]", "Y": "rain [log10 mm]"}, ax=axes)
plt.show()
