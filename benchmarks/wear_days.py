"""Days on which people wore an accelerometer, read aloud: ``python benchmarks/wear_days.py`` (wants NHANES, see below).

6,722 people of NHANES 2003-2004 with up to seven days each (:func:`fdadp.datasets.load_nhanes_wear`): components of
persons and of days, the effect of weekends, and the same components under differential privacy.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from fdadp import MultilevelFPCA, Privacy
from fdadp.datasets import load_nhanes_wear
from fdadp.summaries import PrivateMultilevelFPCA

OUT = Path(__file__).parent / "results" / "wear-days.md"


def cosines(one: MultilevelFPCA, other: PrivateMultilevelFPCA, level: str) -> str:
    """Cosines of the angles between the spaces of four components."""
    half = np.sqrt(one.weights_)
    bases = [np.linalg.qr((model.eigenfunctions_[level] * half).T)[0] for model in (one, other)]
    return ", ".join(f"{value:.3f}" for value in np.linalg.svd(bases[0].T @ bases[1])[1])


def main() -> None:
    days = load_nhanes_wear()
    weekend = days.covariates[["weekend"]].to_numpy(float)
    started = time.process_time()
    exact = MultilevelFPCA(n_components=4).fit(days.Y, groups=days.groups, covariates=weekend)
    spent = time.process_time() - started
    least = int(np.argmin(exact.coefficients_[0]))
    lines = [
        "# Days on which an accelerometer was worn",
        "",
        f"`python benchmarks/wear_days.py`: {days!r}, {exact.grid_.size} points a day.",
        "",
        f"* Not private, {exact.k_} smooth functions: ICC {exact.icc_:.3f} ({exact.icc_with_noise_:.3f} with noise); "
        f"weekend effect {exact.coefficients_[0][least]:.2f} at {exact.grid_[least]:.1f} h; {spent:.1f} s of CPU.",
    ]
    shared = {"n_components": 4, "bounds": (0, 1), "max_rows": 7}
    for epsilon in (1.0, 4.0):
        privacy = Privacy(epsilon, 1e-6, n=6722, random_state=0)
        found = PrivateMultilevelFPCA(privacy=privacy, **shared).fit(days.Y, groups=days.groups)
        low, high = found.icc_interval()
        angles = f"persons {cosines(exact, found, 'person')}; days {cosines(exact, found, 'row')}"
        lines.append(
            f"* Private, epsilon {epsilon:g}, 12 functions: ICC {found.icc_:.3f} [{low:.3f}, {high:.3f}], with noise "
            f"{found.icc_with_noise_:.3f}; cosines to the components above: {angles}."
        )
    smooth = MultilevelFPCA(n_components=4, k=12).fit(days.Y, groups=days.groups)
    lines += [
        f"* Not private, 12 smooth functions: ICC {smooth.icc_:.3f} ({smooth.icc_with_noise_:.3f} with noise).",
        "",
        "The ICC without noise hangs on how rough a day may be: what is rougher than the functions counts as noise. "
        "With noise in it, it does not.",
    ]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
