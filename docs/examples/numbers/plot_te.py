"""
A map: te(longitude, latitude)
==============================

``te(z1, z2)`` is a smooth function of two numbers: the mean temperature of the year, anywhere between the stations.
"""

# %%
import matplotlib.pyplot as plt

from fdadp import ScalarRegression, load_canadian_weather

weather = load_canadian_weather()
data = {
    "temperature": weather.X.data_matrix[..., 0].mean(axis=1),
    "longitude": weather.stations["longitude"].to_numpy(),
    "latitude": weather.stations["latitude"].to_numpy(),
}
model = ScalarRegression("temperature ~ te(latitude, longitude, k=5)").fit(data)

# %%
# Degrees above and below the mean of the stations (dots). Hatched: far from every station.
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
labels = {"longitude": "longitude [° east]", "latitude": "latitude [° north]"}
model.plot("te(latitude, longitude)", data=data, labels=labels, ax=axis)
axis.plot(data["longitude"], data["latitude"], "o", color="black", markersize=3)
axis.set_title("mean temperature of the year, difference from the stations' mean [°C]")
plt.show()
