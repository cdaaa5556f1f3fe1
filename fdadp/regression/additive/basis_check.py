"""Are the bases large enough? Cross-validation beside the same model with each of them enlarged, as a table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fdadp._common.estimators import clone
from fdadp._common.typing import FloatArray
from fdadp.errors import FdadpWarning, InputError
from fdadp.functional.quadrature import quadrature_weights
from fdadp.functional.tables.curve_sample import Curves
from fdadp.functional.tables.printed_tables import PrintedTable

if TYPE_CHECKING:
    from fdadp.regression.additive.estimator import AdditiveFunctionOnFunction

FOLDS = 5
SIGNIFICANT = 2.0
"""Standard errors of the mean gain from which a size may be too small: 2 % of adequate ones reach it."""
NEARLY_ALL = 0.9999
RELEVANT = 0.002
"""Share of what can be explained that must be lost, too."""


@dataclass(frozen=True)
class CheckedSize:
    """One size of a model, beside a larger one.

    Attributes
    ----------
    name : {"n_basis_x", "n_basis_s", "n_components"}
    size, larger : int
        As fitted, and as tried.
    lost : float
        Share of what the larger model explains on held-out curves that the smaller one does not.
    z : float
        The mean gain over curves in units of its standard error.
    """

    name: str
    size: int
    larger: int
    lost: float
    z: float

    @property
    def adequate(self) -> bool:
        """Whether the larger size explains held-out curves no better, beyond chance and two in a thousand."""
        return self.z < SIGNIFICANT or self.lost < RELEVANT


@dataclass(frozen=True)
class BasisCheck:
    """What :meth:`fdadp.AdditiveFunctionOnFunction.check` found; ``print`` shows a table.

    Attributes
    ----------
    sizes : tuple of CheckedSize
    n_curves : int
    """

    sizes: tuple[CheckedSize, ...]
    n_curves: int

    @property
    def adequate(self) -> bool:
        """Whether all sizes are."""
        return all(size.adequate for size in self.sizes)

    def _table(self) -> PrintedTable:
        rows = [
            (s.name, s.size, s.larger, f"{100 * s.lost:.2f} %", f"{s.z:.1f}", "adequate" if s.adequate else "TOO SMALL")
            for s in self.sizes
        ]
        title = f"Sizes against larger ones, {FOLDS}-fold cross-validation over {self.n_curves} curves"
        return PrintedTable(rows, ["", "size", "tried", "explained lost", "z", "verdict"], title=title)

    def __str__(self) -> str:
        small = [f"{s.name}={s.larger}" for s in self.sizes if not s.adequate]
        end = f"\nTry {', '.join(small)} and check again; standard errors do not show what a basis cannot follow."
        return str(self._table()) + (end if small else "")

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def check_sizes(model: AdditiveFunctionOnFunction, x: Curves, y: Curves) -> BasisCheck:
    """Compare a fitted model, refitted on folds of complete curves, with larger ones.

    Each basis gets twice the intervals between knots; components are taken up to nearly all of the variance.

    Raises
    ------
    InputError
        Fewer than 25 curves, or X and Y of different n.
    """
    n = len(x)
    if n != len(y) or n < 25:
        raise InputError(f"X and Y must hold the same number of curves, at least 25, got {n} and {len(y)}")
    plain = clone(model).set_params(missing="raise", progress=False)
    if not isinstance(model.smoothing, str):
        plain.set_params(smoothing="reml")
    components, over_x, over_s = model.coef_.shape
    now = {"n_basis_x": over_x, "n_basis_s": over_s, "n_components": components}
    plain.set_params(n_basis_x=over_x, n_basis_s=over_s)
    larger: dict[str, float] = {name: 2 * now[name] - model.degree for name in ("n_basis_x", "n_basis_s")}
    larger["n_components"] = NEARLY_ALL
    about_mean = ((y.values - y.values.mean(axis=0)) ** 2) @ quadrature_weights(y.grid)
    loss = _held_out(plain, x, y)
    sizes = []
    for name, value in larger.items():
        other = clone(plain).set_params(**{name: value})
        size, tried = now[name], value
        if name == "n_components":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FdadpWarning)
                tried = len(clone(other).fit(x.values, y.values, s=x.grid, t=y.grid).edf_)
        if tried <= size:
            continue
        gain = loss - _held_out(other, x, y)
        explained = float((about_mean - loss + gain).sum())
        spread = float(gain.std(ddof=1)) / np.sqrt(n)
        lost = float(np.clip(gain.sum() / explained, -1, 1)) if explained > 0 else 0.0
        sizes.append(CheckedSize(name, int(size), int(tried), lost, float(gain.mean()) / spread if spread else 0.0))
    return BasisCheck(tuple(sizes), n)


def _held_out(model: AdditiveFunctionOnFunction, x: Curves, y: Curves) -> FloatArray:
    """Squared error of each curve (n,), integrated over t, by the model fitted on the other folds."""
    fold = np.random.default_rng(0).permutation(len(x)) % FOLDS
    weights = quadrature_weights(y.grid)
    loss = np.empty(len(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FdadpWarning)
        for k in range(FOLDS):
            rest, out = fold != k, fold == k
            fitted = clone(model).fit(x.values[rest], y.values[rest], s=x.grid, t=y.grid)
            loss[out] = ((y.values[out] - fitted.predict(x.values[out], s=x.grid)) ** 2) @ weights
    return loss
