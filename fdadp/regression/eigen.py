"""Regression of a curve on any terms: ``Y_i(t) = μ(t) + Σ_j f_j(X_ij)(t) + ε_i(t)``, f_j linear in coefficients."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from fdadp._common.typing import ArrayLike, CurveData
from fdadp.errors import InputError
from fdadp.files.container import Layout, complete
from fdadp.files.labels import labels_from_json, labels_to_json
from fdadp.files.records import pack, unpack
from fdadp.functional.curves import as_curves, same_rows
from fdadp.privacy import Ledger, Privacy
from fdadp.private.mechanisms import Mechanism
from fdadp.private.stored import params_from_json, params_to_json
from fdadp.regression.base import FunctionalModel, codes_of
from fdadp.regression.missing import MissingValues
from fdadp.solve.chunks import Chunks
from fdadp.solve.fitted import Fitted
from fdadp.terms.base import Unfixed

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis

__all__ = ["LAYOUT", "EigenRegression"]

LAYOUT = Layout("functional-regression", {"numbers": "v"})
"""Files: everything as :mod:`fdadp.files.records` puts it, and the constructor's arguments."""


@dataclass(kw_only=True, eq=False, repr=False)
class EigenRegression(FunctionalModel):
    """Regression of a curve on any terms.

    Each term makes a row of features of its covariate; coefficients of the features, for each of K eigenfunctions of
    Y, are fitted by penalised least squares, with smoothing parameters by REML.

    Parameters
    ----------
    terms : sequence of Term
        What the covariates contribute, such as :class:`fdadp.terms.additive.Additive`; docs/extend/term.md adds one.
    n_components : int, float or Eigenbasis
        Number K of eigenfunctions of Y, or the share of variance they must explain, in (0, 1]; or orthonormal functions
        given on the grid of Y.
    smoothing : {"reml", "gcv"} or array_like of shape (M,) or (K, M)
        How the smoothing parameters of the M penalties of all terms are chosen, or their values.
    privacy : Privacy, optional
        The guarantee of a private fit; of one term, for now.
    bounds : dict of (float, float), optional
        Public ranges of the values of the covariate, by its name, and of ``"Y"``; a private fit requires them.
    mechanism : {"dp-aff", "moments", "output"} or Mechanism
        How a private fit is made, see :class:`fdadp.AdditiveFunctionOnFunction`.
    fpca : {"face", "dense"}
        Eigenfunctions of Y with or without smoothing of the covariance.
    progress : bool or "auto"
        Progress bars: always, never, or on work of more than two seconds.

    Attributes
    ----------
    coef_ : tuple of ndarray
        Of each term, as it publishes them: K eigenfunctions first.
    mean_, eigenfunctions_, eigenvalues_, edf_, smoothing_parameters_, r2_, residual_variance_, ledger_, ... :
        As of :class:`fdadp.AdditiveFunctionOnFunction`.

    Examples
    --------
    >>> from fdadp import simulate_affr
    >>> from fdadp.regression.eigen import EigenRegression
    >>> from fdadp.terms.additive import Additive
    >>> data = simulate_affr(scenario=1, n=100, seed=0)
    >>> model = EigenRegression(terms=[Additive("X")]).fit({"X": data.X}, data.Y)
    >>> model.predict({"X": data.X[:3]})
    FDataGrid(...)
    """

    terms: Sequence[Unfixed] = ()
    n_components: float | Eigenbasis = 0.95
    smoothing: str | ArrayLike = "reml"
    privacy: Privacy | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    mechanism: str | Mechanism = "dp-aff"
    fpca: str = "face"
    progress: bool | str = "auto"

    def _terms(self) -> Sequence[Unfixed]:
        terms = tuple(self.terms)
        if not terms or not all(hasattr(term, "fixed") and isinstance(term.column, str) for term in terms):
            raise InputError(f"terms must be one term or more, got {self.terms!r}")
        return terms

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.privacy is not None and not self._is_private:
            raise InputError(f"mechanism must be private end to end, got {self.mechanism!r}")

    def fit(
        self,
        X: CurveData | Mapping[str, CurveData],
        Y: CurveData,
        s: ArrayLike | None = None,
        t: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> EigenRegression:
        """Fit the model.

        Parameters
        ----------
        X : mapping of str to curves
            Each covariate, one curve a row: FDataGrid, DataFrame or array_like of shape (n, S). Curves without a name
            where the model has one covariate.
        Y : FDataGrid, DataFrame or array_like of shape (n, T)
        s, t : array_like, optional
            Grids of plain arrays; default even on [0, 1].
        groups : array_like of shape (n,), optional
            Person of each row: the privacy unit. Not used without privacy.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A covariate that is not there, of another number of curves or not finite; unknown options.
        PrivacyError
            What a private fit lacks; raised before the data are read.
        """
        self._check_settings()
        names = list(dict.fromkeys(term.column for term in self._terms()))
        given = X if isinstance(X, Mapping) else {names[0]: X}
        lost = [name for name in names if name not in given]
        if lost or (len(names) > 1 and given is not X):
            raise InputError(f"X must be a mapping with {', '.join(names)}, got {', '.join(map(str, given))}")
        if self.privacy is not None:
            self.privacy.check_unit(groups)
            return self._fit_private(given[names[0]], Y, s, t, groups)
        self._missing = MissingValues("raise")
        columns = {name: self._missing.fit_x(as_curves(given[name], s, name=name)) for name in names}
        y = self._missing.complete_y(as_curves(Y, t, name="Y"))[0]
        for name, x in columns.items():
            if len(x) != len(y):
                raise InputError(f"{name} and Y must hold the same number of curves, got {len(x)} and {len(y)}")
        same_rows(**columns, Y=y, groups=groups)
        codes_of(groups, len(y))
        chunks = Chunks.of(columns, y, self.progress)
        self._adopt(self._publish(self._fit(chunks), chunks))
        self._remember(columns, y)
        return self

    def _adopt(self, fitted: Fitted) -> None:
        super()._adopt(fitted)
        self.coef_ = fitted.coefficients

    def _check_saveable(self, columns: Any) -> None:
        params_to_json(self, {"terms": None})
        pack(self._terms(), "terms")
        labels_to_json(columns, "Y")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a pickle-free file; return its path.

        Raises
        ------
        InputError
            Terms that are not dataclasses of arrays, numbers and texts.
        """
        check_is_fitted(self, "coef_")
        ledger = self._fitted.ledger
        plain = replace(self._fitted, ledger=None, privacy=None, plan=None)
        tree, numbers = pack((self._terms(), plain, tuple(self._inputs.items())), "model")
        content = {
            "params": params_to_json(self, self._fitted_with | {"terms": None}),
            "tree": tree,
            "kind": self._y_kind,
            "unit": self._y_unit,
            "columns": labels_to_json(self._y_columns, "Y"),
            "missing": self._missing.how,
            "ledger": None if ledger is None else ledger.to_json(),
        }
        released = ledger is not None and ledger.private and ledger.for_release
        return LAYOUT.write(path, content, {"numbers": numbers}, released=released)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EigenRegression:
        """Read a model that :meth:`save` wrote; modules of terms of your own must be imported before.

        Raises
        ------
        FileFormatError
            Not such a file, one of another version, or a term whose class is not there.
        """
        content, arrays = LAYOUT.read(path)
        with complete(path, "model"):
            terms, fitted, inputs = unpack(content["tree"], arrays["numbers"], _may_be_made)
            model = cls(**params_from_json(content["params"]) | {"terms": terms})
            ledger = None if content["ledger"] is None else Ledger.from_json(content["ledger"])
            private = ledger is not None and ledger.private
            model._adopt(replace(fitted, ledger=ledger, privacy=model.privacy if private else None))
            model._fitted_with = {name: getattr(model, name) for name in ("privacy", "bounds", "mechanism")}
            model._inputs = dict(inputs)
            model._y_kind, model._y_unit = content["kind"], content["unit"]
            model._y_columns = labels_from_json(content["columns"])
            model._missing = MissingValues(content["missing"], within_rows=model._is_private)
        return model


def _may_be_made(kind: type) -> bool:
    """Whether a file may name a class: a term, or what terms and fits consist of."""
    own = (
        "fdadp.terms.",
        "fdadp.functional.",
        "fdadp.responses.",
        "fdadp.solve.fitted",
        "fdadp.regression.predictions",
    )
    return hasattr(kind, "fixed") or kind.__module__.startswith(own)
