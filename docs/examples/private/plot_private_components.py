"""
Private principal components
============================

``PrivateFPCA`` releases the leading eigenfunctions of curves: in which ways people differ from the mean.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FPCA, Privacy, PrivateFPCA, simulate_affr

people = simulate_affr(scenario=1, n=3000, seed=0)
privacy = Privacy(epsilon=1.0, delta=1e-6, n=3000)
private = PrivateFPCA(n_components=3, privacy=privacy, bounds=(-8, 8)).fit(people.Y)
exact = FPCA(n_components=3).fit(people.Y)
print("variance of each:", private.explained_variance_ratio_.round(3), exact.explained_variance_ratio_.round(3))

# %%
# Signs are free; they are turned so that the curves can be compared.
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for k, colour in enumerate(("#0072B2", "#009E73", "#D55E00")):
    ours, theirs = private.eigenfunctions_[k], exact.eigenfunctions_[k]
    axis.plot(people.t, ours * np.sign(ours @ theirs), color=colour, label=f"component {k + 1}")
    axis.plot(people.t, theirs, color=colour, linestyle="--", linewidth=1)
axis.set(xlabel="t", ylabel="eigenfunction of Y", title="private at ε = 1; dashed: without privacy")
axis.legend()
plt.show()
