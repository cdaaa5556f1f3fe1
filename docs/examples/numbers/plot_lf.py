"""
A number from a curve: lf
=========================

``lf(temperature)`` is ``∫ temperature(s) β(s) ds``: when in the year does a station's temperature tell how much rain
it has in all?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import ScalarRegression, load_canadian_weather

weather = load_canadian_weather()
total = np.log10(weather.precipitation.data_matrix[..., 0].sum(axis=1))
data = {"temperature": weather.X, "rain": total}
model = ScalarRegression("rain ~ lf(temperature, k=12)").fit(data)
print(model.summary())

# %%
# A mild end of the year, for the spring that went before it, goes with much rain: such is the weather at the sea. The
# band is pointwise, 95 %.
figure, axis = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
model.plot("lf(temperature)", labels={"s": "s, time of year [years]"}, ax=axis)
axis.set(title="", ylabel="β(s) [log10 mm per °C and year]")
plt.show()
