"""Options that several commands have, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CURVES = (
    "Curves by name, as --curves X=x.csv: .csv, .csv.gz, .parquet, .npz, .npy or .zarr. Of a table with other columns "
    "those of one prefix: --curves 'X=people.csv:h*'. May be repeated."
)
TABLE = "Numbers and labels, one column each (parquet, zarr: curves, too); a first column named id labels rows."
LONG = "Files of curves are long tables, one value a row: the columns of id, point and value, as --long id,s,value."
BOUNDS = (
    "What is public of a column: --bounds age=0:120 of numbers and curves, --bounds sex=f,m of labels. May be repeated."
)

Curves = Annotated[list[str] | None, typer.Option("--curves", metavar="NAME=FILE", help=CURVES)]
Table = Annotated[Path | None, typer.Option(help=TABLE)]
Header = Annotated[bool, typer.Option(help="Whether CSV files of curves start with a row of labels.")]
Long = Annotated[str | None, typer.Option(metavar="ID,POINT,VALUE", help=LONG)]
GRID = "Of long tables in a private fit: the public points, --grid X=0:23:24 (low, high, how many) or --grid X=0,1,5."
Grid = Annotated[list[str] | None, typer.Option(metavar="NAME=POINTS", help=GRID)]
ID = "Column of persons' ids that every file has, of curves the first one: rows are joined by it, in whatever order."
Id = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help=ID)]
Sep = Annotated[
    str, typer.Option("--sep", metavar="MARK", help="Between the fields of CSV files: a comma, ';' or 'tab'.")
]
Decimal = Annotated[str, typer.Option("--decimal", metavar="MARK", help="Before decimals in CSV files: '.' or ','.")]
PersonRows = Annotated[
    str | None,
    typer.Option(help="With --groups: 'mean', each person counts once (the default), or 'sum', each row counts once."),
]
MaxRows = Annotated[
    int | None,
    typer.Option(help="With --person-rows sum in a private fit: rows of a person that count at most, a public number."),
]
MISSING = (
    "Gaps of all columns: raise, linear, smooth, fpca or pace of curves, indicator of numbers; or of a column, as "
    "--missing X=linear --missing age=indicator. (default: raise, in a private fit linear)"
)
Missing = Annotated[list[str] | None, typer.Option("--missing", metavar="[NAME=]HOW", help=MISSING)]
Groups = Annotated[str | None, typer.Option(help="Column of --table that says whose each row is.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by fit, mean, fpca, table1 or save.")
]
Progress = Annotated[bool | None, typer.Option(help="Progress bars. (default: on work of more than two seconds)")]

PRIVATE = "Privacy"
"""Panel of the help."""

Epsilon = Annotated[
    float | None,
    typer.Option(help="Budget; makes the fit private. (default: no privacy)", rich_help_panel=PRIVATE),
]
Delta = Annotated[
    float | None,
    typer.Option(help="Of (ε, δ), as 1e-6. (default: 0, pure ε; on a study, the study's)", rich_help_panel=PRIVATE),
]
N = Annotated[
    int | None, typer.Option("--n", help="How many persons; left out, that is private, too.", rich_help_panel=PRIVATE)
]
Adjacency = Annotated[str | None, typer.Option(help="zero-out, replace or add-remove.", rich_help_panel=PRIVATE)]
Bounds = Annotated[
    list[str] | None, typer.Option("--bounds", metavar="NAME=PUBLIC", help=BOUNDS, rich_help_panel=PRIVATE)
]
StudyFile = Annotated[
    Path | None,
    typer.Option("--study", help="Draw on the budget in this file (fdadp study new).", rich_help_panel=PRIVATE),
]
Purpose = Annotated[
    str | None, typer.Option(help="What the fit is for, in public: the study keeps it.", rich_help_panel=PRIVATE)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and read no row.", rich_help_panel=PRIVATE)]
