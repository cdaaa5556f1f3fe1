"""What a term asks of a private fit: public columns of the right kind, and no option without a private meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from fdadp._common.checks import whole
from fdadp._common.typing import FloatArray
from fdadp.errors import InputError
from fdadp.private.columns import Column, CurvesColumn, LabelColumn, NumberColumn
from fdadp.terms.spec import TermSpec

if TYPE_CHECKING:
    from fdadp.private.prior import PublicPrior

SMALLEST, LARGEST = 5, 40
"""Numbers of cubic B-splines that may be asked for."""
RANGE = 'a range, as in bounds={{"{}": (low, high)}}'
LEVELS = 'all its levels, as in bounds={{"{}": ["a", "b"]}}'
_KINDS: dict[type, str] = {CurvesColumn: "curves", NumberColumn: "numbers", LabelColumn: "labels"}
C = TypeVar("C", CurvesColumn, NumberColumn, LabelColumn)


@dataclass(frozen=True)
class Asked:
    """A term and what is public of the model that it is in.

    Attributes
    ----------
    spec : TermSpec
    columns : mapping of str to Column
    prior : PublicPrior
    curves : bool
        Whether the response is a curve.
    beside : collection of str
        Names of the model's terms.
    t : ndarray of shape (T,), optional
        Grid of the response.
    """

    spec: TermSpec
    columns: Mapping[str, Column]
    prior: PublicPrior
    curves: bool
    beside: Collection[str] = ()
    t: FloatArray | None = None

    @property
    def name(self) -> str:
        """Of the term."""
        return self.spec.name

    # --- columns ---

    def curves_of(self, name: str) -> CurvesColumn:
        """A column of curves."""
        return self._of_kind(name, CurvesColumn, RANGE)

    def numbers_of(self, name: str) -> NumberColumn:
        """A column of numbers with a public range."""
        return self._of_kind(name, NumberColumn, RANGE)

    def labels_of(self, name: str) -> LabelColumn:
        """A column of labels with public levels."""
        column = self._of_kind(name, LabelColumn, LEVELS)
        if len(column.levels) < 2:
            raise InputError(f"{name} must have at least two levels, got {column.levels!r}")
        return column

    def _of_kind(self, name: str, kind: type[C], wanted: str) -> C:
        wanted = wanted.format(name)
        column = self._column(name, wanted)
        if isinstance(column, kind):
            return column
        if CurvesColumn not in (kind, type(column)):  # numbers or labels is what bounds say
            raise InputError(f"bounds of {name} must be {wanted}, for {self.name}; got {_declared(column)}")
        raise InputError(f"{name} must hold {_KINDS[kind]} for {self.name}, got a column of {_KINDS[type(column)]}")

    def coding_of(self, name: str) -> str:
        """How a column multiplies: as numbers or as levels, as what is public of it says."""
        column = self._column(name, "its range, or all its levels if it holds labels")
        return "levels" if isinstance(column, LabelColumn) else "numbers"

    def _column(self, name: str, wanted: str) -> Column:
        if name not in self.columns:
            raise InputError(f"bounds of {name} must be public for {self.name}: give {wanted}; got none")
        return self.columns[name]

    @property
    def points(self) -> FloatArray:
        """Points of the response."""
        if self.t is None:
            raise InputError(f"t must be the grid of the response for {self.name}, got None")
        return self.t

    # --- options ---

    def of_curves(self, instead: str) -> None:
        """Refuse a response that is a number."""
        if not self.curves:
            raise InputError(f"{self.name} must have a response that is a curve; for a scalar response use {instead}()")

    def of_numbers(self, instead: str) -> None:
        """Refuse a response that is a curve."""
        if self.curves:
            raise InputError(f"{self.name} must have a response that is a number; for curves use {instead}()")

    def only(self, **why: str) -> None:
        """Refuse options that differ from their defaults; of each, what a private fit has instead."""
        for option, reason in why.items():
            self.refuse(option, getattr(self.spec, option), default_of(self.spec, option), reason)

    def refuse(self, option: str, value: Any, default: Any, reason: str) -> None:
        """Refuse a value of an option other than one."""
        if value != default:
            raise InputError(f"{option} of {self.name} must be {default!r} in a private fit, got {value!r}: {reason}")

    def along_t(self, k: Any, default: int) -> None:
        """Refuse another number of functions along the response than the default one."""
        if k != default:
            raise InputError(
                f"k of {self.name} must be {default}, its default, along t in a private fit, got {k!r}: effects vary "
                "along t as the prior's response functions do, PublicPrior(n_response=)"
            )

    def varies(self) -> None:
        """Refuse an effect that is the same at all t, where the response is a curve."""
        if self.curves and getattr(self.spec, "constant", False):
            raise InputError(
                f"{self.name} cannot be the same at all t in a private fit: each effect is measured along the response "
                "functions of the prior, which have none that is constant; write it without c()"
            )

    def size(self, k: Any, default: Any, own: int) -> int:
        """Number of B-splines: the private fit's own where the default was left, else as many as asked for."""
        if k == default:
            return own
        if not SMALLEST <= whole(k, f"k of {self.name}", least=None) <= LARGEST:
            raise InputError(
                f"k of {self.name} must be from {SMALLEST} to {LARGEST} in a private fit, or {default}, its default, "
                f"for {own}; got {k!r}"
            )
        return int(k)


def default_of(spec: TermSpec, option: str) -> Any:
    """Default of an option; of `k` refund's, where ordinary fits choose."""
    if option == "k" and spec.refund_k is not None:
        return spec.refund_k
    (found,) = (f.default for f in fields(spec) if f.name == option)  # type: ignore[arg-type]
    assert found is not MISSING
    return found


def _declared(column: Column) -> str:
    return f"the levels {column.levels!r}" if isinstance(column, LabelColumn) else f"the range {column.bounds!r}"
