"""
A study: one budget for all that is ever fitted
===============================================

A study is a file in which the data's custodian fixes how much may be learned about one person. Every fit draws on it
before it reads a row, and what would be too much is refused.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateMean, Study, simulate_affr
from fdadp.errors import PrivacyError

people = simulate_affr(scenario=1, n=2000, seed=0)
file = Path(tempfile.mkdtemp()) / "weights.fdadp"
ranges = {"X": (-4.5, 4.5), "Y": (-8, 8)}
study = Study.new(file, name="Weights", epsilon=2.0, delta=1e-6, unit="row", n=2000, bounds=ranges)
left = [("new", 1.0)]
PrivateMean(privacy=Privacy(study=file, epsilon=0.5), bounds=ranges["Y"]).fit(people.Y)
left.append(("mean curve, ε = 0.5", study.left))
AdditiveFunctionOnFunction(privacy=Privacy(study=file, epsilon=1.0), progress=False).fit(people.X, people.Y)
left.append(("regression, ε = 1", study.left))
try:
    PrivateMean(privacy=Privacy(study=file, epsilon=1.9), bounds=ranges["Y"]).fit(people.Y)
except PrivacyError as refusal:
    print(f"refused: {refusal}")

# %%
# What is left is counted in Gaussian differential privacy, where squares add up: small fits cost little.
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = axis.barh([name for name, _ in left], [share for _, share in left], color="#0072B2")
axis.bar_label(bars, [f"{share:.0%}" for _, share in left], padding=3)
axis.set(xlabel="share of the budget that is left", xlim=(0, 1.12))
axis.invert_yaxis()
plt.show()
