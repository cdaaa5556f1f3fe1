"""
Errors along a curve, and bands that know them
==============================================

A warm station is warm for weeks: what a model leaves over at t and a week later is nearly the same. Standard errors
that take the points of a curve as independent are far too small; those of fdadp do not, unless told to.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
data = {"temperature": weather.X, "region": weather.stations["region"].to_numpy()}
model = FunctionalRegression("temperature ~ C(region)").fit(data)
t, new = weather.X.grid_points[0], {"region": ["Pacific"]}
mean = model.predict(new).data_matrix[0, :, 0]

# %%
# The mean temperature on the Pacific coast, from five stations, by either belief.
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for kind, text, colour in (("curve", "errors along the curve", "#0072B2"), ("iid", "as if independent", "#D55E00")):
    error = model.predict_se(new, kind=kind).data_matrix[0, :, 0]
    axis.fill_between(
        t, mean - 1.96 * error, mean + 1.96 * error, color=colour, alpha=0.35, lw=0, label=f"95 %, {text}"
    )
axis.plot(t, mean, color="black", linewidth=1)
for curve in weather.X.data_matrix[data["region"] == "Pacific", ::7, 0]:
    axis.plot(t[::7], curve, color="0.5", linewidth=0.6)
axis.set(xlabel="time of year [years]", ylabel="temperature [°C]", title="Pacific: five stations and their mean")
axis.legend()
plt.show()
