"""
At the same moment: concurrent
==============================

``concurrent(temperature)``, or just the column's name, adds ``temperature(t) β(t)``: today's temperature on today's
rain, with an effect that changes over the year.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
data = {"temperature": weather.X, "rain": weather.Y}
model = FunctionalRegression("rain ~ concurrent(temperature)").fit(data)
effect = model.coef("concurrent(temperature)", se=True)

# %%
# Warm stations have more rain and snow, in winter most of all: those at the sea are both. The band is pointwise and
# knows that errors of one station are alike for weeks.
figure, axis = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axis.fill_between(effect["t"], effect["lower"], effect["upper"], color="#0072B2", alpha=0.2, lw=0, label="95 % band")
axis.plot(effect["t"], effect["value"], color="#0072B2", label="β(t)")
axis.axhline(0, color="0.4", linewidth=0.8)
axis.set(xlabel="time of year [years]", ylabel="log10 mm of rain per °C")
axis.legend()
plt.show()
