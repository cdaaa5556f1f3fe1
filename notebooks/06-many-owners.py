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
# fdadp fits the model all the same. Every private estimator whose releases are sums with Gaussian noise can be fitted
# by many owners: each computes its own exact integer sums, adds *its share* of the noise, and encrypts. A **proxy**
# multiplies the ciphertexts, which adds what is inside them, without being able to read any. A **data user** decrypts
# the sum over all owners: that is the private release, with the noise that one trusted custodian would have added.
#
# The noise in this notebook is the real one (OpenDP), and so are the keys. **Each run gives slightly different
# numbers**, and the text does not quote them. Needs `pip install '.[federated]'`.

# %%
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fdadp.federated.wire_format import Kind, Message

from fdadp import AdditiveFunctionOnFunction, Privacy, plot, simulate_affr
from fdadp.errors import ExtrapolationWarning, FdadpWarning, NotAccountedWarning, NotPrivateWarning
from fdadp.federated import Contract, Federation, LDPLogisticRegression, ProtocolError
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
# `lost=1` allows one hospital to fail; `corrupt=1` says that one of them may tell what noise it added (each hospital
# knows its own noise, and sees the result, so this is never 0). The noise of the other three is then enough for the
# promise. The price is more noise when all five are there and honest: 5/3 of the variance.

# %%
bounds = {"X": [-4.5, 4.5], "Y": [-8, 8]}
terms = {"epsilon": 1.0, "delta": 1e-6, "n": 3000, "bounds": bounds, "mechanism": "moments"}
contract = Contract(
    "regression",
    {**terms, "s": people.s.tolist(), "t": people.t.tolist()},
    owners=5,
    n_max=3000,
    lost=1,
)
print(f"{contract.honest} honest shares carry the noise; below {contract.least} shares nothing is decrypted")

# %% [markdown]
# ## The run
#
# `mechanism="moments"` takes eighteen rounds of messages. The default, DP-AFF, takes thirty-two, explains more, and
# would take this notebook a minute longer.
#
# `Federation` keeps all parties in this process; they exchange bytes, and nothing else. (`python -m fdadp federated
# demo` runs the same objects as separate processes of a Flower deployment.)

# %%
federation = Federation(contract, hospitals)
together = federation.run()
print(together.ledger_)

# %% [markdown]
# The statement of the ledger now has conditions that it does not have with one custodian: how many shares must stay
# secret, and that proxy and data user do not collude. If these two did, they could decrypt one hospital's share; it
# still carries noise, and its people are protected at √3 times the μ of the first lines.
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
# Everything that a party learns is in the bytes that it received. Here is what was sent, by whom.

# %%
names = {value: name for name, value in vars(Kind).items() if isinstance(value, int)}
traffic = pd.DataFrame(
    [
        {"from": a, "to": b, "kind": names[Message.from_bytes(data).kind], "bytes": len(data)}
        for a, b, data in federation.traffic
        if a in ("proxy", "owner-1", "user") and b in ("proxy", "owner-1", "user")
    ]
)
traffic.groupby(["from", "to", "kind"])["bytes"].agg(["count", "sum"])

# %% [markdown]
# The proxy got five `SHARE`s a release: ciphertexts under a key that it has not got. The data user got one
# `ASK_TOTAL` a release: the ciphertext of the sum, with fresh randomness, so that it has no ciphertext in common with
# any hospital's. The hospitals got the totals, which are the private releases themselves.
#
# A share packs some forty numbers into each ciphertext. Two encryptions of the same share have nothing in common:

# %%
shares = [d for a, _, d in federation.traffic if a == "owner-1" and Message.from_bytes(d).kind == Kind.SHARE]
print(f"the last share of the first hospital: {len(shares[-1])} bytes, beginning {shares[-1][70:90].hex()} ...")

# %% [markdown]
# ## When things go wrong
#
# A transport that loses the third hospital's answers, sends the second's twice, and damages one of the fourth's:

# %%
pca = Contract(
    "pca",
    {"epsilon": 1.0, "delta": 1e-6, "data_norm": 4.0, "n_components": 2, "n_features": 51},
    owners=5,
    n_max=3000,
    lost=2,
)
rows = [(part / 4,) for part in np.array_split(X, 5)]


def accident(requests, timeout):
    """An unreliable network."""
    replies = unreliable.exchange(requests, timeout)
    if "owner-3" in replies:
        del replies["owner-3"]
        replies["owner-2"] *= 2
        replies["owner-4"] = [replies["owner-4"][0][:-1] + b"?"]
    return replies


unreliable = Federation(pca, rows)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", FdadpWarning)
    unreliable.proxy.run(accident)
print(*[w.message for w in caught], *unreliable.proxy.refused_[:2], sep="\n")
print("noise: sd", unreliable.user.result_.ledger_.releases[0].sd)

# %% [markdown]
# Three shares came through, which `lost=2` allows. With one less, nothing would have been decrypted. And a hospital
# whose director signed for ε = 1 does not answer to ε = 2:

# %%
greedy = Federation(replace(pca, settings={**pca.settings, "epsilon": 2.0}), rows)
greedy.owners = unreliable.owners
try:
    greedy.run()
except ProtocolError as error:
    print(error)

# %% [markdown]
# Nor does anyone get a second share of the same release, with fresh noise, to average with the first; or a second
# sum, of fewer hospitals, to subtract from the first: such requests are refused, or answered as the first one was.
# So a proxy that crashed is simply started again, and goes on where it was.

# %% [markdown]
# ## The published protocol, for comparison
#
# The scheme in the literature (for PCA) lets the proxy add the noise, masks the sums v by multiples of N, and sends N
# in clear. Encrypted it is; private it is not. Here is what its data user computes from what it is sent, and what the
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
# A proxy and a key holder who do not collude may be too much to ask. In the local model every *person* randomises
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
# `"cldp"` is the condensed-local scheme of a patent. Its α is a claim about records that are *near* each other in
# some metric; the ε of the table is what it means for any two records, which is the only number that can be compared.
# The ledger says both, and what a trusted shuffler would make of it.

# %%
print(local.ledger_)
