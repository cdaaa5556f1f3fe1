"""Settings of a model of many terms, as the user chose them at the time of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from fdadp._common.argument_checks import flag, is_one_of, one_of
from fdadp._common.typing import ArrayLike
from fdadp.errors import InputError
from fdadp.solve.form.families_by_name import FAMILIES, family_of
from fdadp.solve.form.response_families import Family
from fdadp.terms.cycles import Cycle
from fdadp.terms.spec import TermSpec

if TYPE_CHECKING:
    from fdadp.functional.fpca import Eigenbasis
    from fdadp.solve.fit.additive_fit import AdditiveFit

BY_CURVES = ("curves", "groups")
"""Values of `smoothing` by which curves, or all curves of a person, are left out."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of :class:`fdadp.FunctionalRegression` or :class:`fdadp.ScalarRegression`, which document each of them.

    Attributes
    ----------
    of_curves : bool
        Whether the response is a curve, or else a number.
    default_response : str
        Name of the response where neither the formula nor `response` gives one.
    se : str or None
        None if the response is a number.
    variance : str or None
        How the variance of curves is taken; of numbers its terms, or None.
    fpca : {"face", "dense"}
        Eigenfunctions of the response with or without smoothing of the covariance.
    n_unpenalized : int or None
        Dimension of the unpenalised space in REML, to repeat programs that count otherwise.
    private : bool
        Whether a guarantee of privacy was asked for.
    """

    of_curves: bool = True
    default_response: str = "Y"
    formula: str | Sequence[TermSpec] = ()
    response: str | None = None
    smoothing: str | ArrayLike = "reml"
    family: Family = FAMILIES["gaussian"]
    intercept: bool = True
    missing: str | Mapping[str, str] = "auto"
    progress: bool | str = "auto"
    person_rows: str | None = None
    max_rows: int | None = None
    within: Sequence[str] = ()
    errors: str = "iid"
    se: str | None = None
    variance: str | None = None
    response_basis: str = "splines"
    n_components: float | Eigenbasis = 0.99
    fpca: str = "face"
    k: str = "auto"
    t_period: float | None = None
    n_unpenalized: int | None = None
    private: bool = False

    @classmethod
    def of(cls, model: Any) -> ModelSettings:
        """Read the settings of an estimator.

        Raises
        ------
        InputError
            An unknown setting, or settings that contradict each other.
        """
        given = model.get_params(deep=False)
        known = {field.name for field in fields(cls)}
        own = {name: value for name, value in given.items() if name in known}
        own |= {"family": family_of(model.family), "k": model.k, "n_unpenalized": model._n_unpenalized}
        private = given.get("privacy") is not None
        made = cls(of_curves=model._of_curves, default_response=model._default_response, private=private, **own)
        made._check()
        return made

    def _check(self) -> None:
        flag(self.intercept, "intercept")
        if self.response is not None and not isinstance(self.response, str):
            raise InputError(f"response must be the name of a column, got {self.response!r}")
        if isinstance(self.smoothing, str) and self.smoothing not in ("reml", "gcv", *BY_CURVES):
            known = "'reml', 'gcv', 'curves', 'groups'" if self.of_curves else "'reml', 'gcv'"
            raise InputError(f"smoothing must be {known} or smoothing parameters, got {self.smoothing!r}")
        if self.smooths_by_curves:
            self._check_by_curves()
        if not is_one_of(self.k, ("auto", "refund")):
            raise InputError(
                f"k must be one of 'auto', 'refund', got {self.k!r}. The size of one term stands in it, as ff(X, k=8)"
            )
        if not self.of_curves:
            self._check_variance()
            return
        one_of(self.variance, "variance", ("auto", "t", "model", "constant"))
        one_of(self.errors, "errors", ("iid", "curve"))
        one_of(self.se, "se", ("curve", "cluster", "iid"))
        one_of(self.response_basis, "response_basis", ("splines", "eigen"))
        if self.t_cycle is not None and (self.private or self.on_eigenfunctions):
            where = "in a private fit" if self.private else "with response_basis='eigen'"
            raise InputError(
                f"t_period must be None {where}, where effects are combinations of given functions of t, got "
                f"{self.t_period:g}"
            )
        if self.private:
            return
        if self.family.name == "ordered":
            raise InputError("family='ordered' is there for responses that are no curves, one category a row")
        if self.errors == "curve" and self.family.name != "gaussian":
            raise InputError(f"errors='curve' is there for family='gaussian', got {self.family.name!r}")
        if self.on_eigenfunctions and self.family.name != "gaussian":
            raise InputError(f"response_basis='eigen' is there for family='gaussian', got {self.family.name!r}")
        if self.on_eigenfunctions and self.errors != "iid":
            raise InputError(
                "errors must be 'iid' with response_basis='eigen', whose scores have residual variances of their own, "
                f"got {self.errors!r}"
            )

    def _check_variance(self) -> None:
        """Refuse terms of the variance that are no one-sided formula, or where they are not there."""
        if self.variance is None:
            return
        if not isinstance(self.variance, str) or not self.variance.strip().startswith("~"):
            raise InputError(f"variance must be a formula such as '~ s(x)', or None, got {self.variance!r}")
        if self.private or self.family.name != "gaussian":
            raise InputError(
                f"variance={self.variance!r} is there for family='gaussian' without privacy, got "
                + ("privacy" if self.private else f"{self.family.name!r}")
            )

    @property
    def models_variance(self) -> bool:
        """Whether the variance of a number has terms."""
        return not self.of_curves and self.variance is not None

    def refuse_variance_terms(self, what: str) -> None:
        """Raise an error where the variance has terms: no one criterion is minimised."""
        if self.models_variance:
            raise InputError(
                f"{what} is not there with variance={self.variance!r}: mean and variance are fitted in turn, and no "
                "one criterion is minimised; hold rows out instead"
            )

    def _check_by_curves(self) -> None:
        """Refuse, by name, what smoothing by curves left out is not there for."""
        others = {
            "responses that are curves": not self.of_curves,
            "fits without privacy": self.private,
            "family='gaussian'": self.family.name != "gaussian",
            "errors='iid'": self.errors != "iid",
            "response_basis='splines'": self.on_eigenfunctions,
        }
        lacking = next((name for name, other in others.items() if other), None)
        if lacking is not None:
            raise InputError(f"smoothing={self.smoothing!r} is there for {lacking}; say smoothing='reml'")

    @property
    def smooths_by_curves(self) -> bool:
        """Whether smoothing parameters are those that predict curves, or persons, left out best."""
        return isinstance(self.smoothing, str) and self.smoothing in BY_CURVES

    def check_smoothing_by(self, groups: object) -> None:
        """Refuse ``smoothing="groups"`` without groups, and ``"curves"`` with them."""
        if self.smoothing == "groups" and groups is None:
            raise InputError("smoothing='groups' needs groups: fit(data, groups=...)")
        if self.smoothing == "curves" and groups is not None:
            raise InputError(
                "smoothing must be 'groups' where groups are given, whose curves are left out together, got 'curves'"
            )

    def with_family_of(self, fit: AdditiveFit) -> ModelSettings:
        """The same with the family of a fit that chose a parameter of it."""
        return self if fit.family is None else replace(self, family=fit.family)

    def check_groups(self, groups: object, call: str) -> None:
        """Refuse ``se="cluster"`` without groups; `call` shows where they are given."""
        if self.se == "cluster" and groups is None:
            raise InputError(f"se='cluster' needs groups: {call}")

    @property
    def t_cycle(self) -> Cycle | None:
        """The circle that points of the response lie on."""
        return Cycle.of(self.t_period, "t_period")

    @property
    def on_eigenfunctions(self) -> bool:
        """Whether each score of the response on its eigenfunctions has a regression of its own."""
        return self.response_basis == "eigen"

    @property
    def as_refund(self) -> bool:
        """Whether terms without a size of their own take refund's."""
        return self.k == "refund"

    @property
    def gaps(self) -> str | Mapping[str, str]:
        """Treatment of missing entries of covariates."""
        return "raise" if self.missing == "auto" else self.missing

    @property
    def least_squares(self) -> bool:
        """Whether the fit is by least squares, with splines along the response."""
        return self.family.name == "gaussian" and self.errors == "iid" and not self.on_eigenfunctions

    def refuse_other_families(self, what: str) -> None:
        """Raise an error for families other than the Gaussian."""
        if self.family.name != "gaussian":
            raise InputError(
                f"{what} is there for family='gaussian', got {self.family.name!r}; predict_se has standard errors of "
                "the means"
            )
