# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A hospital's study, from its creation to its certificate
#
# A hospital holds a day's heart rates of patients in intensive care, and wants to publish what can be learned from
# them without giving any patient away. The data office decides *once* how much may ever be learned about one patient
# (ε and δ), and writes that into a file: the study. Every analysis then draws on this file, whoever makes it, in
# whatever program, until nothing is left.
#
# The stays are PhysioNet's of 2012, which are open to all; where they are not on this machine, simulated curves stand
# in for them.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import display

from fdadp import DPAFF, FunctionalRegression, Privacy, PrivateMean, Study, load_icu, plan, simulate_affr
from fdadp.errors import MissingDataError, PrivacyError

try:
    stays = load_icu("heart_rate", as_frame=True, download=False)
    table = {"rate": stays.X, "next day": stays.Y, "age": stays.covariates["age"].to_numpy()}
    patient, ranges, about = (
        stays.groups,
        (30, 180),
        "Hourly heart rates of 8,000 stays in intensive care, PhysioNet 2012",
    )
except MissingDataError:
    people = simulate_affr(scenario=1, n=8000, n_points=24, seed=0)
    day, later = (pd.DataFrame(90 + 15 * curves.data_matrix[..., 0]) for curves in (people.X, people.Y))
    table = {"rate": day, "next day": later}
    table["age"] = np.random.default_rng(0).uniform(16, 95, 8000)
    patient, ranges, about = np.arange(8000), (30, 180), "Simulated curves of 8,000 people, in place of patients"
patient = np.asarray(patient)
n = len(patient)
print(about)

# %% [markdown]
# ## The data office makes the study
#
# What is fixed here holds for every analysis: the unit (a patient, with all rows of that patient), the number of
# patients (which the hospital publishes anyway), and the ranges of the columns. These must be known *without looking at
# the data*: what a monitor can show, who is admitted. Each range carries its source.

# %%
os.chdir(tempfile.mkdtemp())  # a folder of its own, whose name is nobody's business
folder = Path()
study_bounds = {"rate": ranges, "next day": ranges, "age": (16, 100)}
study = Study.new(
    folder / "icu.fdadp",
    name="ICU heart rates",
    epsilon=2.0,
    delta=1e-6,
    unit="person",
    n=n,
    bounds=study_bounds,
    sources={"rate": "range of the monitor", "next day": "range of the monitor", "age": "rule of admission"},
    custodian="Data office of the hospital",
    data=about,
)
print(study)

# %% [markdown]
# ## Two analyses
#
# The first asks for the mean day; it takes ε = 0.5. `purpose` is written down with it.

# %%
mean = PrivateMean(privacy=Privacy(study=study.path, epsilon=0.5, purpose="the mean day, for staffing"), bounds=ranges)
mean.fit(table["rate"], groups=patient)
low, high = mean.band(level=0.95)
print(mean.summary())

# %% [markdown]
# The second forecasts the next day from the first, the age and what is usual (half the last value and half the mean of
# a patient's own day). Ranges are left out, for the study holds them.

# %%
forecast = FunctionalRegression(
    "`next day` ~ ff(rate) + age",
    privacy=Privacy(study=study.path, epsilon=1.0, purpose="forecast of the next day"),
    mechanism=DPAFF(prior="persistence"),
)
forecast.fit(table, groups=patient)
print(forecast.summary())

# %% [markdown]
# What a fit takes is in the file *before* its first row is read. So a session that ends, a kernel that dies, or a
# second notebook at the same time change nothing: each has spent at least what it has released.

# %%
print(study)

# %% [markdown]
# ## What is refused
#
# A fit is refused without the person of every row, for tools drop `groups=` easily. It is refused with other ranges
# than those of the study, and where it asks for more than is left. Nothing is read, and nothing spent.

# %%
again = PrivateMean(privacy=Privacy(study=study.path, epsilon=0.5), bounds=ranges)
for attempt in (
    lambda: again.fit(table["rate"]),
    lambda: FunctionalRegression("`next day` ~ ff(rate)", privacy=forecast.privacy, bounds={"rate": (0, 300)}).fit(
        table, groups=patient
    ),
    lambda: PrivateMean(privacy=Privacy(study=study.path, epsilon=1.9), bounds=ranges).fit(
        table["rate"], groups=patient
    ),
):
    try:
        attempt()
    except PrivacyError as refusal:
        print("refused:", refusal, "\n")
print(f"{study.left:.1%} is left")

# %% [markdown]
# ## Models are published, and can be checked
#
# A saved model holds no row of anybody. Its digest is written into the study; `verify` recomputes hashes and sums, and
# holds the model's ledger against what the study has written down.

# %%
files = [mean.save(folder / "mean.npz"), forecast.save(folder / "forecast.npz")]
print(study.verify(*files) or "verified: nothing is wrong")

# %% [markdown]
# Somebody changes one number in a file:

# %%
content = bytearray(files[0].read_bytes())
content[len(content) // 2] ^= 1
changed = folder / "changed.npz"
changed.write_bytes(content)
print(study.verify(changed)[0].partition(", whose")[0])

# %% [markdown]
# ## The certificate
#
# The certificate is one page for the data protection officer. It says what was promised, in odds and in numbers, what
# was released, and what is *not* protected. It names the source of each range. It says what accuracy was to be expected
# from public values alone, and what the releases say of it. It prints on two sides, and the same as JSON lies beside
# it.

# %%
expected = plan("`next day` ~ ff(rate) + age", n=n, epsilon=1.0, delta=1e-6, bounds=study_bounds, prior="persistence")
certificate = study.report(
    files, forecasts=[expected], use="Staffing, forecasts", region="United States", author="Data office"
)
page, data = certificate.save(folder / "certificate")
display(certificate)

# %% [markdown]
# It names the last entry of the file, which stands for all before it. Held against the study later, it shows an older
# copy that somebody put back; signed (`certificate.signed(key)`), also one that somebody rewrote with everything in it.

# %%
print(study.verify(data) or "verified: the study still says what the certificate says")

# %% [markdown]
# An entry for the public registry of deployments (https://registry.opendp.org):

# %%
entry = certificate.registry_entry(slug="icu-heart-rates", sector="Healthcare")
print(entry["deployment"]["privacy_loss"])

# %% [markdown]
# ## The end
#
# When the data are deleted, or their use has ended, the study is closed for good.

# %%
study.close("the analysis has ended")
try:
    again.fit(table["rate"], groups=patient)
except PrivacyError as refusal:
    print("refused:", refusal)
