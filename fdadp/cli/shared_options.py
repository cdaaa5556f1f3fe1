"""Options that several commands have, with their help, and what they stand for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

import fdadp
from fdadp.errors import FileFormatError, InputError

T = TypeVar("T")

CURVES = (
    "Curves by name, as --curves X=x.csv: .csv, .csv.gz, .parquet, .npz, .npy or .zarr. Of a table with other columns "
    "those of one prefix: --curves 'X=people.csv:h*'. May be repeated."
)
TABLE = "Numbers and labels, one column each (parquet, zarr: curves, too); a first column named id labels rows."
LONG = "Files of curves are long tables, one value a row: the columns of id, point and value, as --long id,s,value."
BOUNDS = (
    "What is public of a column: --bounds age=0:120 of numbers and curves, --bounds sex=f,m of labels. May be repeated."
)

Table = Annotated[Path | None, typer.Option(help=TABLE)]
GRID = "Of long tables in a private fit: the public points, --grid X=0:23:24 (low, high, how many) or --grid X=0,1,5."
Grid = Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help=GRID)]
ID = "Column of persons' ids that every file has, of curves the first one: rows are joined by it, in whatever order."
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help=ID)]
EDGES = "Where time begins and the ends of {}, as 0:8:9 (low, high, how many) or 0,1,2,4,8."
Sep = Annotated[
    str, typer.Option("--sep", metavar="MARK", help="Between the fields of CSV files: a comma, ';' or 'tab'.")
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="MARK", help="Before decimals in CSV files: '.' or ','.")]
PersonRows = Annotated[
    str | None,
    typer.Option(
        help="Of persons with several rows: 'mean', each person counts once (the default), 'sum', each row counts "
        "once, or with re(id, covariance='free') 'exchangeable'."
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        help="In a private fit with --person-rows sum, or re(id, covariance='free'): rows of a person that count at "
        "most, a public number."
    ),
]
MISSING = (
    "Gaps of all columns: raise, linear, smooth, fpca or pace of curves, indicator of numbers; or of a column, as "
    "--missing X=linear --missing age=indicator. (default: raise, in a private fit linear)"
)
Missing = Annotated[list[str] | None, typer.Option("--missing", metavar="[NAME=]HOW", help=MISSING)]
Groups = Annotated[str | None, typer.Option(help="Column of --table with person ids.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by fit, mean, fpca, table1 or save.")
]
Progress = Annotated[bool | None, typer.Option(help="Progress bars. (default: on work of more than two seconds)")]

PRIVATE = "Privacy"
"""Panel of the help."""

Bounds = Annotated[
    list[str] | None, typer.Option("--bounds", metavar="NAME=PUBLIC", help=BOUNDS, rich_help_panel=PRIVATE)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and read no row.", rich_help_panel=PRIVATE)]


@dataclass(frozen=True)
class DataOptions:
    """Columns of files: curves by name, a table, and the column of ids that joins their rows."""

    curves: Annotated[list[str] | None, typer.Option("--curves", metavar="NAME=FILE", help=CURVES)] = None
    table: Table = None
    id: Id = None


@dataclass(frozen=True)
class PersonOptions:
    """Whose each row of a file of curves is: by its own ids, or by a column of a table with the same rows."""

    table: Table = None
    groups: Groups = None
    id: Id = None

    def check(self) -> None:
        """Refuse a table without its column, or a column without its table; raises InputError."""
        if (self.table is None) is not (self.groups is None):
            raise InputError("--table and --groups must be given together: --groups names the column of person ids")


@dataclass(frozen=True)
class RowsOptions:
    """How the rows of a person count."""

    person_rows: PersonRows = None
    max_rows: MaxRows = None
    within: Annotated[
        list[str] | None,
        typer.Option(
            help="Of re(id, covariance='free') in a private fit: a column that varies within persons. Once for each."
        ),
    ] = None

    def law(self, *, has_persons: bool) -> dict[str, Any]:
        """Settings that were given; raises InputError where nobody says whose rows are."""
        law = {name: value for name, value in asdict(self).items() if value is not None}
        if law and not has_persons:
            raise InputError("--person-rows and --max-rows need --groups, or re(id) in the formula, for the person ids")
        return law | ({"within": tuple(self.within)} if self.within is not None else {})


ONLY_PRIVATE = "is there for private fits: give --epsilon as well"


@dataclass(frozen=True)
class PrivacyOptions:
    """The guarantee that options ask for."""

    epsilon: Annotated[
        float | None, typer.Option(help="Budget; makes the fit private. (default: no privacy)", rich_help_panel=PRIVATE)
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(help="Of (ε, δ), as 1e-6. (default: 0, pure ε; on a study, the study's)", rich_help_panel=PRIVATE),
    ] = None
    n: Annotated[
        int | None,
        typer.Option("--n", help="How many persons; left out, that is private, too.", rich_help_panel=PRIVATE),
    ] = None
    adjacency: Annotated[str | None, typer.Option(help="zero-out, replace or add-remove.", rich_help_panel=PRIVATE)] = (
        None
    )
    study: Annotated[
        Path | None,
        typer.Option("--study", help="Draw on the budget in this file (fdadp study new).", rich_help_panel=PRIVATE),
    ] = None
    purpose: Annotated[
        str | None, typer.Option(help="What the fit is for, in public: the study keeps it.", rich_help_panel=PRIVATE)
    ] = None

    def privacy(self) -> fdadp.Privacy | None:
        """The guarantee, or None where none is asked for.

        Raises
        ------
        InputError
            A study or a purpose without a budget.
        PrivacyError
            Settings that are out of range, or not those of the study.
        """
        if self.epsilon is None:
            refuse_given(given(self), ONLY_PRIVATE)
            return None
        return fdadp.Privacy(**asdict(self) | {"study": None if self.study is None else str(self.study)})

    def required(self, what: str) -> fdadp.Privacy:
        """The guarantee; raises InputError where none is asked for, naming the command."""
        privacy = self.privacy()
        if privacy is None:
            raise InputError(f"--epsilon must be given: {what} is a private release")
        return privacy


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options that are fields of its parameters, where these are dataclasses, in their place."""
    hints = _hints_of(command)
    kinds: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        parameter = own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        parameters += _options_of(kinds[name]) if name in kinds else [parameter]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: kind(**{o.name: given.pop(o.name) for o in _options_of(kind)}) for name, kind in kinds.items()}
        command(**given, **made)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _hints_of(of: Any) -> dict[str, Any]:
    """Annotations with what typer is told there. Python 3.10 hides that in an Optional where the default is None."""
    hints = get_type_hints(of, include_extras=True)
    told = {name: [part for part in get_args(kind) if hasattr(part, "__metadata__")] for name, kind in hints.items()}
    return {name: told[name][0] if told[name] else kind for name, kind in hints.items()}


def _options_of(kind: Any) -> list[inspect.Parameter]:
    hints = _hints_of(kind)
    own = [p for p in inspect.signature(kind).parameters.values() if hasattr(hints[p.name], "__metadata__")]
    return [p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in own]


def given(options: Any) -> dict[str, Any]:
    """Values of a group of options by their names; None for those that are as they are by default."""
    own = {f"--{f.name.replace('_', '-')}": (getattr(options, f.name), f.default) for f in fields(options)}
    return {name: None if value == default else value for name, (value, default) in own.items()}


def refuse_given(options: Mapping[str, Any], why: str) -> None:
    """Refuse the first option that was given; raises InputError."""
    odd = next((name for name, value in options.items() if value not in (None, False, [])), None)
    if odd is not None:
        raise InputError(f"{odd} {why}")


def check_suffix(path: Path, option: str, *suffixes: str) -> None:
    """Refuse the name of a file that ends in something else; raises FileFormatError."""
    if not path.name.endswith(suffixes):
        *others, last = suffixes
        named = f"{', '.join(others)} or {last}" if others else last
        raise FileFormatError(f"{option} must end in {named}, got {path.name!r}")


def by_name(texts: Sequence[str] | None, option: str, form: str, convert: Callable[[str], T]) -> dict[str, T]:
    """What texts NAME=VALUE say, by name.

    Parameters
    ----------
    texts : sequence of str or None
    option, form : str
        Name of the option, and what its texts must be, for messages.
    convert : callable
        Makes something of the value; ValueError where it cannot.

    Raises
    ------
    InputError
        Another text, or a name twice.
    """
    found: dict[str, T] = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        try:
            if not name or not value:
                raise ValueError
            own = convert(value)
        except ValueError:
            raise InputError(f"{option} must be {form}, got {text!r}") from None
        if name in found:
            raise InputError(f"{option} must be given once of each column, got {name} twice")
        found[name] = own
    return found


def components_of(text: str | None) -> float:
    """Number of components, or the share to explain; raises InputError for other texts."""
    if text is None:
        return 0.95
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--components must be a whole number or a share such as 0.95, got {text!r}") from None
