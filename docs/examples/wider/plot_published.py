"""
A published scheme that is not private
======================================

The literature proposes Laplace noise on the coefficients, of a size that is computed from the data. Leave out one
station: the size changes, and the mean curve, which has no noise at all, changes too. Both tell who was there.
"""

# %%
import warnings

import matplotlib.pyplot as plt

from fdadp import AdditiveFunctionOnFunction, Privacy, load_canadian_weather
from fdadp.errors import NotPrivateWarning
from fdadp.published import PublishedNoise

weather = load_canadian_weather(as_frame=True)
X, Y = weather.X.iloc[:, 2::5], weather.Y.iloc[:, 2::5]
scheme = AdditiveFunctionOnFunction(
    privacy=Privacy(epsilon=0.2, random_state=1), mechanism=PublishedNoise(sensitivity="scaled"), progress=False
)
warnings.simplefilter("ignore", NotPrivateWarning)
sizes = {"nobody": scheme.fit(X, Y).ledger_.releases[0].scale}
for place in X.index[::3]:
    sizes[place] = scheme.fit(X.drop(place), Y.drop(place)).ledger_.releases[0].scale
print(scheme.ledger_.headline)

# %%
# Whoever sees how large the noise is can tell these tables apart: nothing hides a station.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
colours = ["black" if name == "nobody" else "#D55E00" for name in sizes]
axis.barh(list(sizes), list(sizes.values()), color=colours)
axis.axvline(sizes["nobody"], color="black", linewidth=0.8)
axis.set(xlabel="size of the noise on the first component's coefficients", ylabel="left out")
axis.invert_yaxis()
plt.show()
