"""
From muscle to lip: a historical effect
=======================================

The electrical activity of a muscle of the lower lip (EMG) and the lip's acceleration a moment later, while one
syllable is said 32 times (Malfait & Ramsay 2003). Only what the muscle did before can act.
"""

# data: load_lip_emg

# %%
import matplotlib.pyplot as plt

from fdadp import FunctionalRegression
from fdadp.datasets import load_lip_emg

lip = load_lip_emg()
model = FunctionalRegression("Y ~ ff(X, limits='s<=t')").fit({"X": lip.X, "Y": lip.Y})
print(f"explained {model.explained_deviance_:.2f} of the variance")

# %%
# Time runs from the beginning of the syllable, in seconds.
figure, axis = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
labels = {"s": "s, time of muscle activity [s]", "t": "t, time of acceleration [s]"}
model.plot(model.term_names_[-1], labels=labels, ax=axis)
axis.set_title("β(s, t), for s before t")
plt.show()
