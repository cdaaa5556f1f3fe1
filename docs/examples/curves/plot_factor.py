"""
A curve for each region: C(region), and c() for what does not change
====================================================================

A factor gives each of its levels a curve, as the difference from the first. ``c(latitude)`` is an effect that is the
same all year.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
region, latitude = weather.stations["region"].to_numpy(), weather.stations["latitude"].to_numpy()
data = {"temperature": weather.X, "region": region, "latitude": latitude}
model = FunctionalRegression("temperature ~ C(region) + c(latitude)").fit(data)
print(model.coef("c(latitude)", se=True).round(2))

# %%
# The year of a station at 52° north in each region, with 95 % bands of the mean.
regions, t = np.unique(region), weather.X.grid_points[0]
new = {"region": regions, "latitude": np.full(4, 52.0)}
mean, error = (curves.data_matrix[..., 0] for curves in (model.predict(new), model.predict_se(new)))
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, m, e, colour in zip(regions, mean, error, ("#0072B2", "#009E73", "#E69F00", "#CC79A7"), strict=True):
    axis.fill_between(t, m - 1.96 * e, m + 1.96 * e, color=colour, alpha=0.2, linewidth=0)
    axis.plot(t, m, color=colour, label=name)
axis.set(xlabel="time of year [years]", ylabel="temperature at 52° north [°C]")
axis.legend()
plt.show()
