"""
A smooth function of a number, at each t: s(latitude)
=====================================================

``s(z)`` adds ``f(z, t)``: what latitude does to temperature, which differs between winter and summer and need not be
a straight line.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression, load_canadian_weather

weather = load_canadian_weather()
data = {"temperature": weather.X, "latitude": weather.stations["latitude"].to_numpy()}
model = FunctionalRegression("temperature ~ s(latitude)").fit(data)
print(model.test_terms())

# %%
# Degrees above (red) and below (blue) the mean of all stations at that time of year.
figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
model.plot("s(latitude)", labels={"latitude": "latitude [° north]", "t": "time of year [years]"}, ax=axis)
axis.set_title("f(latitude, t) [°C]")
plt.show()
