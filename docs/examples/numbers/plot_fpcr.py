"""
Principal component regression: fpcr beside lf
==============================================

``fpcr(X)`` takes the weight from the leading components of the curves, ``lf(X)`` from penalised splines. Where curves
vary little, neither can know the weight, and each says what its assumptions make of it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import ScalarRegression, load_canadian_weather

weather = load_canadian_weather()
total = np.log10(weather.precipitation.data_matrix[..., 0].sum(axis=1))
data = {"temperature": weather.X, "rain": total}

# %%
# The two weights, with their 95 % pointwise bands.
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for term, colour in (("lf(temperature, k=12)", "#0072B2"), ("fpcr(temperature)", "#D55E00")):
    model = ScalarRegression(f"rain ~ {term}").fit(data)
    weight = model.coef(model.term_names_[-1], se=True)
    axis.fill_between(weight["s"], weight["lower"], weight["upper"], color=colour, alpha=0.2, linewidth=0)
    axis.plot(weight["s"], weight["value"], color=colour, label=f"{term}: {model.explained_deviance_:.2f} explained")
axis.axhline(0, color="0.4", linewidth=0.8)
axis.set(xlabel="s, time of year [years]", ylabel="β(s) [log10 mm per °C and year]")
axis.legend()
plt.show()
