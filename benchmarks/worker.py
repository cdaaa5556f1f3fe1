"""One method in a process of its own: ``worker.py METHOD FOLDER N``.

Reads its data, runs once on few curves (imports, compilation), prints ``{"ready": version}``. Then each line on
stdin is answered by a line of JSON: ``fit`` fits and gives seconds; ``save FILE`` writes the fitted scores (n, 3) to
FILE.fitted, ``at FILE`` refits with the smoothing parameters of FILE.sp first. mgcv.R speaks the same protocol; its
``save`` writes FILE.sp.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import curves  # noqa: E402
import numpy as np  # noqa: E402


class Fdadp:
    """Additive model, all of it: FPCA of Y, three components, REML, intervals."""

    package = "fdadp"

    def fit(self, x, y):
        from fdadp import AdditiveFunctionOnFunction

        self.data = x, y
        self.model = AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, n_components=3, progress=False).fit(x, y)

    def save(self, path, model=None):
        model = model or self.model
        curves.scores_of(model, model.predict(self.data[0])).tofile(path + ".fitted")

    def at(self, path):
        from sklearn.base import clone

        smoothing = np.fromfile(path + ".sp").reshape(3, 2)
        self.save(path, clone(self.model).set_params(smoothing=smoothing).fit(*self.data))


class Private:
    """The same curves fitted privately (DP-AFF, ε = 1, declared n, noise fit for release), intervals included."""

    package = "fdadp"

    def fit(self, x, y):
        from fdadp import AdditiveFunctionOnFunction, Privacy

        privacy = Privacy(epsilon=1.0, delta=1e-6, n=len(x))
        AdditiveFunctionOnFunction(privacy=privacy, bounds={"X": (-4.5, 4.5), "Y": (-8, 8)}).fit(x, y)


class Fdars:
    """Linear model on principal components of X and of Y, unpenalised."""

    package = "fdars"

    def fit(self, x, y):
        from fdars.regression import fof_regression

        grid = np.linspace(0, 1, x.shape[1])
        fof_regression(x, y, grid, grid, 3, 3)


class Fdatools:
    """Linear model with β(s, t) on 7 x 7 B-splines, unpenalised."""

    package = "fdatools"

    def fit(self, x, y):
        from fdatools import BSpline, smooth
        from fdatools.regression import linmod

        grid, basis = np.linspace(0, 1, x.shape[1]), BSpline(domain=(0.0, 1.0), n_basis=7)
        linmod(smooth(y.T, grid, basis=basis, lam=0.0), smooth(x.T, grid, basis=basis, lam=0.0))


class ScikitFda:
    """Concurrent linear model Y(t) = a(t) + b(t) X(t): the only one with curves on both sides there."""

    package = "scikit-fda"

    def fit(self, x, y):
        import pandas as pd
        from skfda import FDataGrid
        from skfda.ml.regression import LinearRegression
        from skfda.representation.basis import BSplineBasis

        grid, basis = np.linspace(0, 1, x.shape[1]), BSplineBasis(domain_range=(0, 1), n_basis=7)
        covariates = pd.DataFrame({"x": FDataGrid(x, grid).to_basis(basis)})
        LinearRegression().fit(covariates, FDataGrid(y, grid).to_basis(basis))


class FdadpChunks:
    """The additive model from chunks that are read from disk, twice; reading is timed apart."""

    package = "fdadp"

    def __init__(self, folder, n):
        self.folder, self.n, self.reading = folder, n, 0.0

    def _chunks(self):
        source = curves.chunks(self.folder, self.n)
        while True:
            start = time.perf_counter()
            chunk = next(source, None)
            self.reading += time.perf_counter() - start
            if chunk is None:
                return
            yield chunk

    def fit(self, x, y):
        from fdadp import AdditiveFunctionOnFunction

        self.reading = 0.0
        source = self._chunks if x is None else [(x, y)]
        AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, n_components=3, progress=False).fit_chunks(source)


METHODS = {"fdadp": Fdadp, "private": Private, "fdars": Fdars, "fdatools": Fdatools, "scikit-fda": ScikitFda}


def main(name: str, folder: Path, n: int) -> None:
    warnings.simplefilter("ignore")
    few = curves.read(folder, min(n, 100))
    if name == "chunks":
        method, data = FdadpChunks(folder, n), (None, None)
    else:
        method, data = METHODS[name](), curves.read(folder, n)
    method.fit(*few)
    print(json.dumps({"ready": f"{method.package} {version(method.package)}"}), flush=True)
    for line in sys.stdin:
        command, *arguments = line.split(maxsplit=1)
        if command != "fit":
            getattr(method, command)(arguments[0].strip())
            print("{}", flush=True)
            continue
        start, cpu = time.perf_counter(), time.process_time()
        method.fit(*data)
        answer = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        if name == "chunks":
            answer["reading"] = method.reading
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
