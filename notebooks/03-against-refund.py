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
# # The same fits in R and in Python
#
# How do we know that fdadp's numbers are right? By asking the programs that statisticians have trusted for years.
# R's `mgcv` fits the additive function-on-function model one component of $Y$ at a time, as
# `gam(xi ~ te(X, S, by = L))`; `refund` gives the components. This notebook puts the two side by side, twice:
#
# 1. **recorded**: Canadian weather, as refund 0.1-38 and mgcv 1.9-3 fitted it. That needs no R.
# 2. **live**: simulated curves, fitted by the R of the machine where this notebook runs, through `r_bridge`.
#    Where there is no R the notebook says so and goes on.

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import r_bridge
from fdadp import AdditiveFunctionOnFunction, plot, simulate_affr
from fdadp.functional.quadrature import quadrature_weights
from r_bridge.additive_beside_mgcv import AffrFits, fits_of, recorded_fit
from r_bridge.reference import find_case, read_case

status = r_bridge.status()
LIVE = status.missing("mgcv") is None
print(status)
print("" if LIVE else f"\nThe live part below is left out: {status.missing('mgcv')}")

# %% [markdown]
# ## What R recorded for Canadian weather
#
# A recorded case is a file of plain numbers: what went into R, what came out, the call, and the versions. `meta` says
# which.

# %%
RECORDED = "../tests/reference"
case = read_case(find_case("affr_canadian", [RECORDED]))
meta, given, out = case["meta"], case["input"], case["output"]
print(meta["call"][0])
print(", ".join(f"{p} {v}" for p, v in zip(meta["packages"], meta["versions"], strict=True)), "on", meta["date"][0])

# %% [markdown]
# `r_bridge.check` refits the case with fdadp and compares everything that is identified: bases, penalties, fitted
# values, predictions for the seven stations that were held out, standard errors, degrees of freedom, scores, surfaces.
# Each comparison has a tolerance, stated in advance; the table shows those that come nearest to it.

# %%
report = r_bridge.check(RECORDED, ["affr_canadian"])
assert report.ok
print(report.table(8))

# %% [markdown]
# ### The surfaces
#
# The surfaces $F_k(x, s)$ of both components by mgcv and by fdadp, at mgcv's smoothing parameters. In this model a
# function of $s$ alone adds the same constant to every response, so it is not identified; mgcv and fdadp choose it
# differently. The surfaces are shown relative to the middle temperature, where that choice drops out. The third panel
# is the difference, on its own scale: rounding.

# %%
fits = AffrFits.of_case(case)
at_theirs = fits.fit(fits_of(case)["reml"])  # AdditiveFunctionOnFunction, with mgcv's smoothing parameters
fig, axes = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained", sharex=True, sharey=True)
for k, row in enumerate(axes):
    fit = recorded_fit(out["fits"][k], "reml")
    ours = at_theirs.surface(out["surface_x"], out["surface_s"], float(k))[:, :, 0]
    panels = {"mgcv": fit["surface_difference"], "fdadp": ours - ours[5]}
    panels["difference"] = panels["fdadp"] - panels["mgcv"]
    for ax, (name, values) in zip(row, panels.items(), strict=True):
        limit = np.abs(values if name == "difference" else panels["mgcv"]).max()
        mesh = ax.pcolormesh(
            out["surface_s"], out["surface_x"], values, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="gouraud"
        )
        fig.colorbar(mesh, ax=ax, label="F(x, s), relative to the middle x")
        ax.set_title(f"component {k + 1}, {name}")
    row[0].set_ylabel("temperature [°C]")
for ax in axes[-1]:
    ax.set_xlabel("s, time of year [years]")

# %% [markdown]
# ### Standard errors
#
# Scores of the seven stations that were held out, with 95 % bands of their means: R's and ours, at mgcv's smoothing
# parameters, which agree to nine digits.

# %%
held_out = given["X"][given["test"].astype(int) - 1]
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for k, ax in enumerate(axes):
    fit, at = recorded_fit(out["fits"][k], "reml"), np.arange(len(held_out))
    for name, (value, se), shift in (
        ("mgcv", (fit["predicted"], fit["predicted_se"]), -0.12),
        ("fdadp", fits.predict(at_theirs, held_out, k), 0.12),
    ):
        colour = plot.PALETTE[0] if name == "fdadp" else "black"
        ax.errorbar(at + shift, value, yerr=1.96 * se, fmt="o", color=colour, capsize=3, label=name)
    ax.set(title=f"component {k + 1}", xlabel="held-out station", ylabel="score, with 95 % band", xticks=at)
_ = axes[0].legend(frameon=False)

# %% [markdown]
# ### Numbers side by side
#
# At our *own* optimum: fdadp chooses its smoothing parameters by REML on its own. For the first component the score is
# so flat in one direction that all smoothing parameters above a thousand mean the same straight line.

# %%
columns = ["component", "by", "λ for x", "λ for s", "edf", "score", "fitted, difference of range"]


def table(rows: list[tuple]) -> pd.DataFrame:
    """Numbers to five digits."""
    frame = pd.DataFrame(rows, columns=columns[: len(rows[0])]).set_index(columns[:2])
    return frame.map(lambda v: v if isinstance(v, str) else f"{v:.5g}")


own = fits.fit("reml")
fitted = own.predict(fits.x, s=fits.s)
rows = []
for k in range(2):
    fit = recorded_fit(out["fits"][k], "reml")
    difference = np.abs(fitted[:, k] - fit["fitted"]).max() / np.ptp(fit["fitted"])
    theirs = fits_of(case)["reml"][k]
    rows.append((k + 1, "mgcv", *theirs, fit["edf_total"][0], at_theirs.criterion_[k], ""))
    rows.append((k + 1, "fdadp", *own.smoothing_parameters_[k], own.edf_[k], own.criterion_[k], f"{difference:.0e}"))
table(rows)

# %% [markdown]
# ## Live: the same curves through R
#
# 150 simulated pairs of curves. `crosscheck` fits them with fdadp, hands each component to `mgcv::gam`, and compares.
# The table below shows what each side chose on its own. (mgcv 1.8, that of Debian 12, counts one direction more as
# unpenalised than mgcv 1.9 does; `crosscheck` counts as the mgcv that is there.)

# %%
data = simulate_affr(scenario=1, n=150, seed=0)
model = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7)
if LIVE:
    live = r_bridge.crosscheck(model, data.X, data.Y)
    assert live.ok
    print(live.table(4))
else:
    print("not run:", status.missing("mgcv"))

# %%
if LIVE:
    sides = [(row, side) for row in live.components for side in ("mgcv", "fdadp")]
    display(  # noqa: F821
        table([(r["component"], by, *r[f"sp, {by}"], r[f"edf, {by}"], r[f"score, {by}"]) for r, by in sides])
    )

# %% [markdown]
# ### Fitted scores, one against the other
#
# Each point is a person; on the diagonal both programs say the same. `gam_linear_functional` is the wrapper that
# `crosscheck` uses; its result is plain arrays, with `predict` for new curves.

# %%
if LIVE:
    from r_bridge.mgcv import gam_linear_functional

    fitted = model.fit(data.X, data.Y)
    project = (model.eigenfunctions_ * quadrature_weights(model.t_)).T
    scores = (data.Y.data_matrix[..., 0] - model.mean_) @ project
    ours = (model.predict(data.X).data_matrix[..., 0] - model.mean_) @ project
    new = simulate_affr(scenario=1, n=50, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few new curves lie beyond the training range
        predicted = (model.predict(new.X).data_matrix[..., 0] - model.mean_) @ project
    fig, axes = plt.subplots(1, scores.shape[1], figsize=(4.2 * scores.shape[1], 3.8), layout="constrained")
    for k, ax in enumerate(np.atleast_1d(axes)):
        gam = gam_linear_functional(data.X, scores[:, k])
        ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
        ax.plot(gam.fitted, ours[:, k], ".", color=plot.PALETTE[0], label="fitted")
        ax.plot(gam.predict(new.X)[0], predicted[:, k], ".", color=plot.PALETTE[1], label="new people")
        ax.set(title=f"component {k + 1}", xlabel="mgcv", ylabel="fdadp")
    _ = np.atleast_1d(axes)[0].legend(frameon=False)
else:
    print("not run:", status.missing("mgcv"))

# %% [markdown]
# ### How long it takes
#
# Times on a shared machine mean little; ratios within one run mean more. Of the two, fdadp fits all components, with
# the FPCA of $Y$ and what its intervals need. In the same process mgcv fits the components, one after the other.
# Medians of three turns.

# %%
if LIVE:
    ratios = []
    for n in (100, 200):
        sample = simulate_affr(scenario=1, n=n, seed=2)
        targets = (sample.Y.data_matrix[..., 0] - model.mean_) @ project
        seconds = {"fdadp": [], "mgcv": []}
        for _ in range(3):
            start = time.perf_counter()
            AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, n_components=targets.shape[1]).fit(sample.X, sample.Y)
            seconds["fdadp"].append(time.perf_counter() - start)
            start = time.perf_counter()
            for column in targets.T:
                gam_linear_functional(sample.X, column)
            seconds["mgcv"].append(time.perf_counter() - start)
        ratios.append((n, np.median(seconds["mgcv"]) / np.median(seconds["fdadp"])))
    display(pd.DataFrame(ratios, columns=["people", "mgcv takes × fdadp's time"]).round(0).set_index("people"))  # noqa: F821
else:
    print("not run:", status.missing("mgcv"))

# %% [markdown]
# ## In your own project
#
#     python -m r_bridge status                         # what is there, and which command mends what is not
#     python -m r_bridge record affr_sim --out DIR      # run R, store what it gives
#     python -m r_bridge check DIR                      # refit with fdadp, no R needed; exit status 1 past a tolerance
#     python -m r_bridge crosscheck X.csv Y.csv         # your curves, live
#
# In tests, the fixture `refund_reference` of the pytest plugin reads recorded cases, and the markers `mgcv`, `refund`,
# `fda` and `vgam` skip a test, with the reason, where that package is missing.
