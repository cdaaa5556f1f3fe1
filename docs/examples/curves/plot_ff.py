"""
This year from the last: ff
===========================

``ff(last)`` is the whole of last year's curve, weighted: ``∫ last(s) β(s, t) ds``. Which months of last year's sea
surface temperature off Peru matter for which months of this year's?
"""

# %%
# Monthly means from 1950 to 2010, one curve a year; they come with statsmodels.
import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import elnino

from fdadp import FunctionalRegression

years = elnino.load_pandas().data.set_index("YEAR").to_numpy(dtype=float)
months = np.arange(12) + 0.5
pairs = {"last": years[:-1], "this": years[1:]}
grids = {"last": months, "this": months}
model = FunctionalRegression("this ~ ff(last, k=(8, 8))").fit(pairs, grids=grids)
print(f"{model.edf_:.1f} effective degrees of freedom, explained {model.explained_deviance_:.2f}")

# %%
# Red: a warm month s goes with a warm month t a year later. What counts is how the year ended.
figure, axis = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
model.plot("ff(last)", labels={"s": "s, month of last year", "t": "t, month of this year"}, ax=axis)
plt.show()
