"""
Scans of one person at several visits
=====================================

``re(id, covariance='free')`` gives each person a curve, and each visit a smooth error, both of any covariance. Standard
errors then know that scans of one person are alike, and each person's own curve can be predicted.
"""

# data: load_dti

# %%
# 376 scans of 142 people, one to eight each: how intact the corpus callosum is along its length (DTI of R's refund).
import matplotlib.pyplot as plt
import numpy as np

from fdadp import FunctionalRegression, load_dti

dti = load_dti(complete="cca", as_frame=True, download=False)
years = dti.covariates["visit_time"].fillna(0) / 365.25
scans = {"cca": dti.X, "sclerosis": dti.covariates["case"], "years": years, "id": dti.groups}
model = FunctionalRegression("cca ~ sclerosis + years + re(id, covariance='free')").fit(scans)
alone = FunctionalRegression("cca ~ sclerosis + years").fit(scans)  # each scan as a person of its own
print(model.persons_.variances)

# %%
# Left: people with multiple sclerosis less others; where each scan is taken for a person, who was scanned often counts
# more. Right: all scans of two people (thin), and their predicted curves.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for fit, colour, name in ((alone, "#D55E00", "scans as people"), (model, "#0072B2", "people")):
    effect = fit.coef("sclerosis", se=True)
    left.plot(effect["t"], effect["value"], color=colour, label=name)
    left.fill_between(effect["t"], effect["lower"], effect["upper"], color=colour, alpha=0.2)
left.axhline(0, color="black", linewidth=0.8)
left.set(xlabel="along the tract", ylabel="effect of multiple sclerosis")
left.legend()
known, counts = np.unique(dti.groups, return_counts=True)
for person, colour in zip(known[np.argsort(-counts)[:2]], ("#009E73", "#CC79A7"), strict=True):
    own = np.flatnonzero(np.asarray(dti.groups) == person)
    right.plot(model.t_, dti.X.iloc[own].to_numpy().T, color=colour, linewidth=0.5)
    predicted = model.predict(
        {name: column.iloc[own[:1]] for name, column in scans.items() if name != "id"} | {"id": [person]}
    )
    right.plot(model.t_, np.ravel(predicted), color=colour, linewidth=2.5)
right.set(xlabel="along the tract", ylabel="fractional anisotropy")
plt.show()
