"""
Through principal components: ffpc
==================================

``ffpc(temperature)`` sums up a curve by its scores on the leading principal components, and gives each score a curve
of its own.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
data = {"temperature": weather.X, "rain": weather.Y}
model = FunctionalRegression("rain ~ ffpc(temperature)").fit(data)
print(model.test_terms())

# %%
# Together the components make a weight β(s, t) again, of the shapes that temperature curves have.
figure, axis = plt.subplots(figsize=(5.8, 4.4), layout="constrained")
model.plot("ffpc(temperature)", labels={"s": "s, time of year [years]", "t": "t, time of year [years]"}, ax=axis)
axis.set_title("β(s, t) [log10 mm per °C and year]")
plt.show()
