"""
Does a claim of privacy hold? An audit
======================================

Run a mechanism many times with and without one person. If its outputs can be told apart better than ε allows, the
claim is false, and the data of the runs prove it.
"""

# %%
# A mean of 100 numbers in [0, 1], with Laplace noise of the right size and of a tenth of it.
import matplotlib.pyplot as plt
import numpy as np

from fdadp.audit import black_box_audit

rng = np.random.default_rng(0)
claimed, sensitivity, draws = 1.0, 1 / 100, 20_000
audits = {}
for name, factor in (("noise as it must be", 1.0), ("a tenth of it", 0.1)):
    scale = factor * sensitivity / claimed
    present, absent = (mean + rng.laplace(scale=scale, size=draws) for mean in (0.51, 0.50))
    audits[name] = black_box_audit(present, absent, epsilon=claimed)
    print(f"{name}: {audits[name]}")

# %%
# The bars are lower bounds, at 95 % confidence, of what the outputs really give away.
figure, axis = plt.subplots(figsize=(6.2, 2.4), layout="constrained")
bounds = [result.found for result in audits.values()]
axis.bar_label(axis.barh(list(audits), bounds, color=("#0072B2", "#D55E00")), fmt="ε ≥ %.2f", padding=3)
axis.axvline(claimed, color="black", linestyle="--")
axis.set(xlabel="ε that was found (dashed: claimed)", xlim=(0, 1.25 * max(bounds)))
axis.invert_yaxis()
plt.show()
