"""The class that the package marginaleffects asks; it can be imported where marginaleffects is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from marginaleffects.classes import ModelAbstract, ModelVault

from fdadp._common.typing import ArrayLike, FloatArray
from fdadp.errors import InputError
from fdadp.inference.numbered_rows import NumberedRows, sources
from fdadp.regression.fitted.tests_and_bands import coefficient_names

DERIVATIVES: dict[str, dict[str, str | None]] = {
    "identity": {"model_type": "linear", "family": None, "link": None},
    "log": {"model_type": "glm", "family": "poisson", "link": "log"},
    "logit": {"model_type": "glm", "family": "binomial", "link": "logit"},
}
"""How marginaleffects is told a link, for exact derivatives: of a family it knows, as only the link counts."""


class MarginalEffectsModel(ModelAbstract):  # type: ignore[misc]
    """A fitted model of numbers, as :func:`fdadp.inference.for_marginaleffects` makes it."""

    def __init__(self, model: Any, rows: NumberedRows, kind: str | None, scale: str) -> None:
        fitted, self._rows, self._scale = rows.fitted, rows, scale
        self.df_resid = float(fitted.errors.degrees(kind))
        self.response_name = fitted.response.name
        levels = {name: pl.Enum(list(own)) for name, own in rows.levels.items()}
        columns = {name: pl.Series(own) for name, own in rows.numbers.items()}
        columns |= {name: pl.Series(own, dtype=levels[name]) for name, own in rows.labels.items()}
        columns |= {name: pl.Series([str(i) for i in range(len(own.values))]) for name, own in rows.curves.items()}
        binary = [name for name, own in rows.numbers.items() if np.isin(own, (0.0, 1.0)).all()]
        types = dict.fromkeys(columns, "numeric") | dict.fromkeys(binary, "binary") | dict.fromkeys(levels, "character")
        read = [name for name in sources(fitted) if name not in rows.curves]
        added = 0 if fitted.offset is None else 1  # the offset has the coefficient 1, which is known
        vault = ModelVault(
            coef=np.append(fitted.fit.coefficients, np.ones(added)),
            coefnames=np.array([*coefficient_names(fitted.fit), *["offset"] * added]),
            vcov=np.pad(fitted.errors.covariance(kind), (0, added)),
            formula=" + ".join(f"`{name}`" for name in read) or "1",  # of whose columns no entry may be missing
            modeldata=pl.DataFrame(columns),
            package="fdadp",
            variable_names=[fitted.response.name, *read],
            variables_type=types,
        )
        super().__init__(model, vault)

    def validation(self) -> None:
        """Nothing of the columns is guessed: the fitted model says what they are."""

    def get_vcov(self, vcov: Any = True) -> FloatArray | None:
        """The covariance of the coefficients; None where no standard errors are asked for.

        Raises
        ------
        InputError
            Text.
        """
        if isinstance(vcov, str):
            raise InputError(
                f"vcov must be True, False or a matrix; for_marginaleffects(..., kind={vcov!r}) says a kind"
            )
        return None if vcov is None or vcov is False else self.vault.vcov

    def get_exog(self, newdata: pl.DataFrame) -> FloatArray:
        """Rows of the design of new rows, as :meth:`NumberedRows.design` has them."""
        absent = dict.fromkeys(set(self._rows.curves) - set(newdata.columns), [None] * newdata.height)
        return self._rows.design({name: newdata[name].to_list() for name in newdata.columns} | absent)

    def get_predict(self, params: ArrayLike, newdata: FloatArray) -> pl.DataFrame:
        """Predictions from rows of the design."""
        values = newdata @ np.asarray(params)
        if self._scale == "response":
            values = self._rows.fitted.family.mean(values)
        return pl.DataFrame({"rowid": pl.Series(range(len(values)), dtype=pl.Int32), "estimate": values})

    def get_autodiff_args(self) -> dict[str, str | None] | None:
        """The link, whose derivatives marginaleffects knows. Of others it takes differences."""
        return DERIVATIVES.get("identity" if self._scale == "link" else self._rows.fitted.family.link)
