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
# # Five hospitals, one regression, nobody in the middle
#
# Each of five hospitals has the curves of 600 people. Alone, none of them has enough for a private regression that is
# worth having. Together they would; but none may hand its curves to another, and there is no custodian whom all of
# them trust.
#
# fdadp fits the model all the same. Many owners can fit every private estimator whose releases are sums with Gaussian
# noise. Each owner computes its own exact integer sums and adds *its share* of the noise. It hides the result by masks
# that it has agreed on with each other hospital. A **coordinator** forwards what they say. In the sum over all owners
# the masks cancel: that is the private release, with the noise that one trusted custodian would have added.
#
# The noise in this notebook is the real one (OpenDP), and so are the keys. **Each run gives slightly different
# numbers**, and the text does not quote them. Needs `pip install '.[federated,published]'`.

# %%
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fdadp import AdditiveFunctionOnFunction, Privacy, plot, simulate_affr
from fdadp.errors import ExtrapolationWarning, NotAccountedWarning, NotPrivateWarning
from fdadp.federated import Contract, LDPLogisticRegression, federated_models
from fdadp.federated.owners.coordinator import Coordinator
from fdadp.federated.owners.one_process import owners_of, run_to_end
from fdadp.federated.owners.owner_folder import MemoryKeeper
from fdadp.federated.owners.signed_messages import MessageKind, Share, SignedMessage, meaning_of, split
from fdadp.learners import DPLogisticRegression
from fdadp.published.pca import PublishedDPDPCA

warnings.simplefilter("ignore", ExtrapolationWarning)
warnings.simplefilter("ignore", NotAccountedWarning)  # of several fits and exact scores: these people are simulated

people = simulate_affr(scenario=2, n=3000, seed=1)
others = simulate_affr(scenario=2, n=500, seed=2)
X, Y = people.X.data_matrix[..., 0], people.Y.data_matrix[..., 0]
hospitals = list(zip(np.array_split(X, 5), np.array_split(Y, 5), strict=True))


def explained(model) -> float:
    """Share of the variance of the noiseless mean responses of 500 other people."""
    predicted = np.asarray(model.predict(others.X.data_matrix[..., 0]))
    truth = others.mean_function
    return 1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum()


# %% [markdown]
# ## The contract
#
# All that is public is agreed beforehand, and its hash is in every message: a party with other terms is refused.
# `corrupt=2` says that two of them may tell what noise they added (each hospital knows its own noise, and sees the
# result, so this is never 0). The noise of the other three is then enough for the promise. The price is more noise
# when all five are honest: 5/3 of the variance.

# %%
bounds = {"X": [-4.5, 4.5], "Y": [-8, 8]}
terms = {"epsilon": 1.0, "delta": 1e-6, "n": 3000, "bounds": bounds, "mechanism": "moments"}
contract = Contract(
    "regression",
    {**terms, "s": people.s.tolist(), "t": people.t.tolist()},
    owners=5,
    n_max=3000,
    corrupt=2,
)
print(f"{contract.honest} honest shares carry the noise")

# %% [markdown]
# ## The run
#
# `mechanism="moments"` takes eighteen rounds of messages. The default, DP-AFF, takes thirty-two, explains more, and
# would take this notebook a minute longer.
#
# Here all owners are in this process; they exchange bytes, and nothing else. (`fit_together` is these three lines.
# `python -m fdadp federated demo` runs the same objects as separate processes of a Flower deployment.)

# %%
parties = owners_of(contract, hospitals)
run = run_to_end(parties)
together = federated_models.fit(run.contract, None, run.totals_)
print(together.ledger_)

# %% [markdown]
# The statement of the ledger now has conditions that it does not have with one custodian. It says how many shares must
# stay secret and what hospitals that collude could see. It says that the masks rest on bounded computing power.
#
# ## Was it worth it?

# %%


def one_custodian(X, Y):
    """The same mechanism with all these curves in one place."""
    privacy = Privacy(epsilon=1.0, delta=1e-6, n=len(X))
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=bounds, mechanism="moments").fit(X, Y)


ordinary = AdditiveFunctionOnFunction(n_basis_x=12, n_components=8, progress=False).fit(X, Y)
pd.Series(
    {
        "first hospital alone, ε = 1": explained(one_custodian(*hospitals[0])),
        "second hospital alone, ε = 1": explained(one_custodian(*hospitals[1])),
        "five hospitals together, ε = 1": explained(together),
        "all curves with one custodian, ε = 1": explained(one_custodian(X, Y)),
        "all curves, no privacy": explained(ordinary),
    },
    name="explained share",
).to_frame().round(2)

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
for axis, i in zip(axes, (3, 8, 21), strict=True):
    curve = others.X.data_matrix[i : i + 1, :, 0]
    axis.plot(others.t, others.mean_function[i], color="black", label="truth")
    axis.plot(others.t, np.asarray(together.predict(curve))[0], color=plot.PALETTE[0], label="five hospitals, ε = 1")
    axis.plot(others.t, np.asarray(ordinary.predict(curve))[0], color="0.6", label="all curves, no privacy")
    axis.set(xlabel="t", title=f"person {i}, who was not in the data")
axes[0].legend(frameon=False)
axes[0].set_ylabel("E[Y | X]")
# %% [markdown]
# ## What did each of them see?
#
# Everything that a party learns is in the bytes that it received. The coordinator asked, and each request holds the
# signed answers of all five hospitals to the one before. Here is what the first hospital said in it.

# %%
requests = [SignedMessage.from_bytes(data) for data in run.requests_]
said = [split(request.body, contract.owners) for request in requests]
traffic = pd.DataFrame(
    [{"kind": MessageKind(SignedMessage.from_bytes(one[0]).kind).name, "bytes": len(one[0])} for one in said]
)
traffic.groupby("kind", sort=False)["bytes"].agg(["count", "sum"])

# %% [markdown]
# A `READY` has a fresh public key, a `SHARE` the masked numbers. One share is uniform to all who have not made it; the
# five of a release add up to the total, modulo 2^64, and to nothing else:

# %%
shares = [Share.from_bytes(SignedMessage.from_bytes(one).body).values for one in said[2]]
print("the first hospital's share:", shares[0][:3])
print("the sum of all five:       ", np.sum(shares, axis=0, dtype=np.uint64)[:3].view(np.int64))
print("the first total:           ", run.totals_[0][:3])

# %% [markdown]
# ## When things go wrong
#
# A coordinator dies at every message. The next one goes on from its folder; what a hospital has answered it answers
# again, byte for byte, and never with fresh noise:

# %%
settings = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 4.0, "n_components": 2, "n_features": 51}
pca = Contract("pca", settings, owners=5, n_max=3000)
rows = [(part / 4,) for part in np.array_split(X, 5)]
owners, folder = owners_of(pca, rows), MemoryKeeper()
died = 0
while not (coordinator := Coordinator(owners[0].contract, folder)).done_:
    number = min(coordinator.missing)
    asked = coordinator.requests_[-1] if coordinator.requests_ else None
    coordinator.take(number, owners[number - 1].consent() if asked is None else owners[number - 1].answer(asked))
    died += 1
print(f"{died} coordinators; the model is there: {owners[0].result_}")

# %% [markdown]
# A release waits for all hospitals: without one of them there is no total. And a hospital whose director signed for
# ε = 1 does not answer to ε = 2, nor to a share that somebody changed on its way:

# %%
greedy = owners_of(replace(pca, settings={**pca.settings, "epsilon": 2.0}), rows)
asked = run_to_end(greedy).requests_[0]
print(meaning_of(SignedMessage.from_bytes(owners[0].answer(asked)).body))
fresh = owners_of(pca, rows)
first = Coordinator(fresh[0].contract)
for owner in fresh:
    first.take(owner.number, owner.consent())
changed = first.requests_[-1][:-65] + b"?" + first.requests_[-1][-64:]
print(meaning_of(SignedMessage.from_bytes(fresh[0].answer(changed)).body))

# %% [markdown]
# ## The published protocol, for comparison
#
# The scheme in the literature (for PCA) encrypts the sums, and a proxy adds them up. It lets the proxy add the noise,
# masks the sums v by multiples of N, and sends N in clear. It is encrypted, and not private. Here is what its data user
# computes from what it is sent, and what the
# user and the proxy know together:

# %%
patients = np.random.default_rng(3).normal(size=(90, 3)) * [2.0, 1.0, 0.5] + [10.0, 5.0, 1.0]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NotPrivateWarning)
    published = PublishedDPDPCA(n_components=1, epsilon=1.0).fit(np.array_split(patients, 3))
low, high = patients.min(axis=0), patients.max(axis=0)
steps = np.floor((patients - low) / (high - low) * 255).astype(int)  # what was encrypted
view = published.user_view_
print("the user computes, of the sums modulo N:", [v % view.n for v in view.masked_sum])
print("the truth:                              ", [int(v) % len(steps) for v in steps.sum(axis=0)])
print(published.ledger_.statement)

# %% [markdown]
# ## When not even a sum is sent: local privacy
#
# Owners who keep their noise to themselves may be too much to ask. In the local model every *person* randomises
# before anything leaves the device, and trusts nobody. The price is high: it takes far more people. Logistic
# regression, 30,000 people, each of whom answers once:

# %%
rng = np.random.default_rng(4)
Z = rng.uniform(-1, 1, size=(30_000, 5))
label = np.where(Z @ [2.0, -1.5, 1.0, 0.0, 0.0] + rng.logistic(scale=0.3, size=len(Z)) > 0, "yes", "no")
train, test = slice(0, 25_000), slice(25_000, None)
rows = []
for epsilon in (0.5, 1.0, 2.0, 4.0):
    row = {"ε": epsilon}
    for mechanism in ("cldp", "one_coordinate", "l2_ball", "privunit"):
        local = LDPLogisticRegression(epsilon=epsilon, mechanism=mechanism, classes=["no", "yes"], bounds=(-1, 1))
        row[mechanism] = local.fit(Z[train], label[train]).score(Z[test], label[test])
    central = DPLogisticRegression(epsilon=epsilon, delta=1e-6, classes=["no", "yes"], data_norm=np.sqrt(5))
    row["one trusted custodian"] = central.fit(Z[train], label[train]).score(Z[test], label[test])
    rows.append(row)
pd.DataFrame(rows).set_index("ε").round(3)

# %% [markdown]
# `"cldp"` is the condensed-local scheme of a patent. Its α is a claim about records that are *near* each other in some
# metric. The ε of the table holds for any two records, and is the only number that can be compared. The ledger says
# both, and what a trusted shuffler would make of it.

# %%
print(local.ledger_)
