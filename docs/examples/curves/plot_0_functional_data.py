"""
What functional data are, in one picture
========================================

A row of a file holds one person's heart rate at each hour. Together the 24 numbers are one curve. A functional
regression estimates what the whole curve does, instead of 24 separate effects.
"""

# %%
# The left picture shows the first rows of the file as numbers. The middle one shows the same rows as curves: this is
# all that "functional data" means. The right one shows what a regression found in 2,000 rows: how many days longer a
# patient stays for one beat per minute more during one hour, with a band for the whole line. The file was simulated,
# so the truth (dashed) is known: only the hours from 2 to 6 count. The regression takes effects to be smooth. It finds
# that nights count and days do not, but not the exact hours.
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import pandas as pd

from fdadp import ScalarRegression
from fdadp.datasets import write_people

people = pd.read_csv(write_people(Path(mkdtemp()) / "people.csv"), sep=";", decimal=",", index_col="id")
rate = people.filter(regex="^h").interpolate(axis=1, limit_direction="both").set_axis(range(24), axis=1)
model = ScalarRegression("days ~ lf(rate)", progress=False)
model.fit({"rate": rate, "days": people["days"]}, grids={"rate": range(24)})
effect = model.bands("lf(rate)")

figure, (numbers, curves, effects) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
names = ["h00", "h01", "h02", "...", "h22", "h23"]
texts = [
    [*(f"{value:.0f}" for value in row[:3]), "...", *(f"{value:.0f}" for value in row[-2:])] for row in rate[:4].values
]
numbers.table(texts, rowLabels=list(rate.index[:4]), colLabels=names, loc="center", cellLoc="center").scale(1, 1.6)
numbers.set_title("a file: one row a person")
numbers.axis("off")
curves.plot(rate.columns, rate[4:60].T, color="grey", lw=0.3)
curves.plot(rate.columns, rate[:4].T, lw=2)
curves.set(title="the same rows as curves", xlabel="hour", ylabel="beats per minute")
effects.fill_between(effect["s"], effect["lower"], effect["upper"], alpha=0.3)
effects.plot(effect["s"], effect["value"])
effects.stairs([0, 0.02, 0], [0, 2, 6, 23], baseline=None, color="black", ls="--", lw=0.8)
effects.set(title="what the regression found", xlabel="hour", ylabel="days for 1 beat per minute and hour")
plt.show()
