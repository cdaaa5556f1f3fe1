"""
A diagnosis from a profile of the brain
=======================================

Fractional anisotropy along the corpus callosum of 121 people (DTI of R's refund), with and without multiple
sclerosis: where along the tract do they differ? Several scans of a person are one person's.
"""

# data: load_dti

# %%
import matplotlib.pyplot as plt

from fdadp import ScalarRegression, load_dti

dti = load_dti()
data = {"cca": dti.X, "ill": dti.covariates["case"].to_numpy(dtype=float)}
model = ScalarRegression("ill ~ lf(cca, k=12)", family="binomial").fit(data, groups=dti.groups)

# %%
# Below zero: low anisotropy there goes with the disease. The band (95 %, pointwise) counts persons, not scans.
figure, axis = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
model.plot("lf(cca)", labels={"s": "position along the tract"}, ax=axis)
axis.set(title="", ylabel="β(s), log-odds")
plt.show()
