"""The plan of a private fit: what each release gets of the budget, and how that is shown."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from fdadp._common.typing import FloatArray
from fdadp.private.public.tuned_constants import Tuning

PLANNED = {
    "x rms": "root mean square of {x}",
    "x location": "location of {x}",
    "x scale": "scale of {x}",
    "x centre": "location of {x}, again",
    "x size": "scale of {x}, again",
    "x spectrum": "energy of {x} by frequency",
    "scalars": "means and variances of {z}",
    "places": "counts of {z} in cells",
    "places again": "counts of {z} in smaller cells",
    "y rms": "root mean square of Y",
    "y location": "location of Y",
    "y scale": "scale of Y",
    "y mean": "mean of Y",
    "y spread": "spread of Y",
    "y spectrum": "energy of Y by roughness",
    "outside": "shares outside the bounds",
    "base rate": "base rate",
    "counts": "histogram of counts",
    "directions": "directions of features",
    "gradient scale": "scale of gradient",
    "gradient": "gradient",
    "moments": "second moment",
    "looks": "roughness of {x}",
    "residual scale": "scale of residuals",
    "residual scale again": "scale of residuals, again",
    "level": "mean of residuals",
    "residual": "covariance of residuals",
    "errors by looks": "residuals by level and roughness",
    "errors again": "residuals by level and roughness, again",
    "residual profile": "residuals in blocks of time",
    "calibration": "calibration of intervals",
    "anchor": "residuals against the anchor's",
    "balance": "sum of residuals",
}
"""Keys of :attr:`Plan.budget_shares`, in the order of the releases, and what people read."""
NAMES = PLANNED | {"moments scale": "scale of moments", "residual energy": "energy outside the response functions"}
"""The same, and of releases that take part of another one's share."""
OF_NUMBERS = ("scalars", "places", "places again")
"""Releases that locate numbers."""
ROUNDING = 1e-9
COUNTED_TWICE = 0.985
"""Where less of the budget is left, two counts of the persons came before."""


class Located(NamedTuple):
    """Covariates that releases locate: each column of curves by itself, all columns of numbers together."""

    curves: tuple[str, ...] = ("X",)
    numbers: tuple[str, ...] = ()


ONE_CURVE = Located()


@dataclass(frozen=True)
class Plan:
    """Shares of the budget and the sizes that they can afford.

    Attributes
    ----------
    n : float
        Declared or released number of persons.
    pure : bool
        Pure ε (Laplace noise, L1 norms) instead of (ε, δ).
    eta : float
        Noise per person: sd of a sum of sensitivity 1 at the whole budget, divided by n.
    budget_shares : dict
        Share of the budget of each kind of release; 0 means that it is left out.
    rounds : int
        T, number of gradient rounds.
    weights : ndarray of shape (D, K)
        Weights of the pairs (feature, output) in the gradients; 0: not measured.
    clip_factor : float
        Clip of a gradient relative to its released geometric-mean norm.
    feature_clip : float
        Norm beyond which a person's features are down-weighted, the constant left out.
    signal_to_noise : float
        On a logarithmic scale, from 0 (all noise) to 1 (little).
    y_range : float
        Factor within which the size of Y is looked for.
    tuning : Tuning
    located : Located
    places : int
        How often Y is located: more than once where its range was far off.
    rows : float
        Rows of a person that count, as a released mean; 1 where a person counts by the mean of its rows.
    max_rows : int
        The same at most.
    """

    n: float
    pure: bool
    eta: float
    budget_shares: dict[str, float]
    rounds: int
    weights: FloatArray
    clip_factor: float
    feature_clip: float
    signal_to_noise: float
    y_range: float
    tuning: Tuning
    located: Located = ONE_CURVE
    places: int = 1
    rows: float = 1.0
    max_rows: int = 1

    def scaled(self, left: float) -> Plan:
        """Return the plan with shares of the whole budget, of which `left` was left to plan with."""
        return replace(self, budget_shares={name: share * left for name, share in self.budget_shares.items()})

    def beside(self, shares: dict[str, float]) -> Plan:
        """The plan with more releases, whose shares are taken from all others alike."""
        return replace(self, budget_shares=self.scaled(1 - sum(shares.values())).budget_shares | shares)

    def placed_again(self) -> Plan:
        """The plan with location and scale of Y once more, at the cost of the releases that have most."""
        shares = self.budget_shares
        largest = max(shares, key=lambda key: shares[key] * self.times(key))
        cost = (shares["y location"] + shares["y scale"]) / self.times(largest)
        return replace(self, places=self.places + 1, budget_shares=shares | {largest: shares[largest] - cost})

    def __str__(self) -> str:
        lines = [self._heading, "", f"{'release':<28}{'times':>6}{'share':>9}{'noise/clip':>14}"]
        for row in plan_rows(self):
            noise = f"{row.noise:>14.3g}" if row.times else f"{'not afforded':>14}"
            lines.append(f"{row.release:<28}{row.times:>6}{row.share:>9.2%}{noise}")
        lines.append(f"{'together':<28}{'':>6}{sum(row.share for row in plan_rows(self)):>9.2%}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(row.release)}</td><td>{row.times}</td><td>{row.share:.2%}</td>"
            f"<td>{f'{row.noise:.3g}' if row.times else 'not afforded'}</td></tr>"
            for row in plan_rows(self)
        )
        head = "".join(f"<th>{name}</th>" for name in ("release", "times", "share of the budget", "noise / clip"))
        return f"<p>{html.escape(self._heading)}</p><table><tr>{head}</tr>{cells}</table>"

    @property
    def _heading(self) -> str:
        added = f"; {self.rows:.3g} rows a person count, {self.max_rows} at most" if self.max_rows > 1 else ""
        sizes = f"{self.n_features} features x {self.n_outputs} outputs, {self.n_pairs} pairs measured"
        kind = "pure ε, Laplace noise" if self.pure else "(ε, δ), Gaussian noise"
        how = f"{kind} of {self.eta:.3g} per person; {sizes} in {self.rounds} rounds{added}"
        return f"Plan for {self.n:,.0f} persons: {how}"

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """u (D,) and v (K,) of weights u v' of rank one, as in pure ε."""
        w = self.weights
        return w[:, 0], w[0] / w[0, 0]

    def times(self, key: str) -> int:
        """How often a release is made, where it has a share."""
        if key.startswith("x "):
            return len(self.located.curves)
        if key in ("y location", "y scale"):
            return self.places
        return self.rounds if key.startswith("gradient") else 1

    def name(self, key: str, of: str | None = None) -> str:
        """What people read of a release, by default its key; `of`: which column of curves, where it is of one."""
        return NAMES.get(key, key).format(x=of or ", ".join(self.located.curves), z=", ".join(self.located.numbers))

    @property
    def n_features(self) -> int:
        """D, features used, the constant among them."""
        return int(self.weights.shape[0])

    @property
    def n_outputs(self) -> int:
        """K, basis functions of Y used by the regression."""
        return int(self.weights.shape[1])

    @property
    def n_pairs(self) -> int:
        """N, pairs that are measured."""
        return int((self.weights > 0).sum())


class Row(NamedTuple):
    """One kind of release: how often, the share of the budget of all of them, noise relative to the clip."""

    release: str
    times: int
    share: float
    noise: float


def plan_rows(plan: Plan) -> list[Row]:
    """Releases of a plan, in their order; what the budget cannot afford has 0 times."""
    rows = []
    keys = [*PLANNED, *(key for key in plan.budget_shares if key not in PLANNED)]  # and those of other mechanisms
    left = min(sum(plan.budget_shares.get(key, 0.0) * plan.times(key) for key in keys), 1.0)
    whole = plan.eta * (left if plan.pure else math.sqrt(left))  # the plan's eta is that of what was left
    if left < 1 - ROUNDING:
        count = whole / (1 - left if plan.pure else math.sqrt(1 - left))
        what = "number of persons" if plan.max_rows == 1 else "number of rows"
        rows.append(Row(what, 1 if left > COUNTED_TWICE else 2, 1 - left, count))
    for key in keys:
        if key not in plan.budget_shares:  # of another kind of fit
            continue
        if (key in OF_NUMBERS and not plan.located.numbers) or (key.startswith("x ") and not plan.located.curves):
            continue
        one = plan.budget_shares.get(key, 0.0)
        times = plan.times(key) if one else 0
        noise = math.inf if not one else whole * _of_matrix(plan, key) / (one if plan.pure else math.sqrt(one))
        rows.append(Row(plan.name(key), times, one * times, noise))
    return rows


def _of_matrix(plan: Plan, key: str) -> float:
    """Noise of an entry over that of a number: matrix Laplace noise in pure ε, of sd √(D + K) or √(d + 1) times C/ε."""
    d, k = plan.weights.shape
    sizes = {"gradient": d + k, "moments": d + k + 1, "residual": k + 1, "directions": d} if plan.pure else {}
    return math.sqrt(sizes[key] / 2) if key in sizes else 1.0
