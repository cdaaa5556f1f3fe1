"""Several curves a person, and private survival curves: ``fdadp mfpca | survival``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import input_files, private_files, private_summaries
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import FileFormat
from fdadp.cli.private_files import PrivateFiles
from fdadp.cli.shared_options import ONLY_PRIVATE, by_name, components_of, refuse_given
from fdadp.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# ``python -m fdadp mfpca``: components of persons and of their curves.


def mfpca(
    curves: private_summaries.Curves,
    out: Annotated[Path, typer.Option(help="Model file (.npz); functions go beside it, .csv.")] = Path("mfpca.npz"),
    components: Annotated[
        str | None, typer.Option(help="How many, or the share to explain; of persons and rows as 3,2. (default: 0.99)")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Scores of persons (.csv); those of rows go beside it. Never of a private fit.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="reml, or face as refund has it. (default: reml)")] = None,
    *,
    how: FileFormat,
    grid: option.Grid = None,
    whose: option.PersonOptions,
    max_rows: Annotated[
        int | None,
        typer.Option(help="Curves of a person that count at most, a public number.", rich_help_panel=option.PRIVATE),
    ] = None,
    private: option.PrivacyOptions,
    bounds: private_summaries.Range = None,
) -> None:
    """Components of persons and of their curves, where a person has several; with --epsilon privately.

    The person of each curve is in --id, the first column of CURVES, or in --groups, a column of --table.

    \b
    Examples:
      fdadp mfpca days.csv --id person --components 3,2 --scores persons.csv
      fdadp mfpca days.csv --id person --components 3 --max-rows 7 --bounds 0:300 --epsilon 1 --delta 1e-6 --n 3000
    """
    input_files.check_out(out)
    how, privacy = replace(how, grid=private_files.labels_of(grid)), private.privacy()
    wanted = {} if components is None else {"n_components": _components(components)}
    if privacy is None:
        refuse_given({"--bounds": bounds, "--grid": grid, "--max-rows": max_rows}, ONLY_PRIVATE)
        model = _ordinary(curves, out, scores, whose, how, {**wanted, "method": method or "reml"})
    else:
        refuse_given(
            {"--no-header": not how.header, "--method": method, "--scores": scores}, "cannot be in a private release"
        )
        wanted |= {"bounds": private_summaries.range_of(bounds), "max_rows": max_rows}
        model = fdadp.summaries.PrivateMultilevelFPCA(privacy=privacy, **wanted)
        private_summaries.release(model, curves, whose, out, how)
    private_files.save_model(model, out)
    private_summaries.write_curves(private_summaries.functions(model), out)


def _components(text: str) -> Any:
    parts = tuple(map(components_of, text.split(",")))
    if len(parts) > 2:
        raise InputError(f"--components must be one number, or two, of persons and of rows, got {text!r}")
    return parts if len(parts) == 2 else parts[0]


def _ordinary(
    curves: Path, out: Path, scores: Path | None, whose: option.PersonOptions, how: FileFormat, settings: dict[str, Any]
) -> Any:
    """The fit without privacy; scores are written where they are wanted."""
    written = [out, out.with_suffix(".csv")]
    if scores is not None:
        option.check_suffix(scores, "--scores", ".csv")
        written += [scores, _beside(scores)]
    private_files.check_not_read(written, [input_files.CurvesFile.of(curves).path, whose.table])
    frame, persons = _rows(curves, whose, how)
    model = fdadp.MultilevelFPCA(**settings).fit(frame, groups=persons)
    if scores is not None:
        of_persons, of_rows = model.transform(frame, groups=persons)
        of_persons = of_persons.set_axis([f"person {k}" for k in range(1, of_persons.shape[1] + 1)], axis=1)
        private_files.write_shown(
            scores, of_persons.rename_axis(whose.groups or whose.id).to_csv(), "scores of persons"
        )
        columns = [f"row {k}" for k in range(1, of_rows.shape[1] + 1)]  # as functions are named beside the model
        shown = frame.set_axis(frame.index, axis=0)[[]].assign(**dict(zip(columns, of_rows.T, strict=True)))
        private_files.write_shown(_beside(scores), shown.to_csv(), "scores of rows")
    return model


def _beside(scores: Path) -> Path:
    return scores.with_name(f"{scores.stem}-rows.csv")


def _rows(curves: Path, whose: option.PersonOptions, how: FileFormat) -> tuple[pd.DataFrame, Any]:
    """Curves, and whose each of them is; raises InputError where nothing says that."""
    from fdadp.regression.reading.label_joins import aligned
    from fdadp.regression.reading.table_columns import unknown_column

    whose.check()
    groups, id = whose.groups, whose.id
    if groups is None:
        frame = input_files.labelled_files({"Y": input_files.CurvesFile.of(curves)}, how, id=id)[0]["Y"]
        if id is None or not input_files.has_ids(frame):
            raise InputError("--id must name the column of persons' ids in CURVES, or --groups one of --table")
        return frame, frame.index.to_numpy()
    data, by = input_files.read_columns(option.DataOptions([f"Y={curves}"], whose.table, id), how)
    if groups not in data:
        raise unknown_column(groups, list(data), str(whose.table))
    found, said = aligned(by, {"Y": data["Y"], "groups": data[groups]}, "Y")
    if said is not None:
        typer.echo(said, err=True)
    return found["Y"], found["groups"].to_numpy()


# ``python -m fdadp survival``: a private survival curve, from a file of persons.


def survival(
    people: Annotated[Path, typer.Argument(metavar="PEOPLE", help=private_summaries.PEOPLE)],
    time: Annotated[str, typer.Option(help="Column: how long each person was seen.")],
    event: Annotated[
        str, typer.Option(help="Column that says whether that ended with the event (1), or not (0: censored).")
    ],
    edges: Annotated[str, typer.Option(help=option.EDGES.format("intervals"))],
    by: Annotated[
        str | None, typer.Option(metavar="NAME=CLASSES", help="A curve for each public class, as arm=drug,placebo.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The curves with their limits (.csv); the ledger goes beside it.")] = Path(
        "survival.csv"
    ),
    level: Annotated[float, typer.Option(help="Of the limits.")] = 0.95,
    groups: Annotated[str | None, typer.Option(help="Column of person ids.")] = None,
    *,
    sep: option.Sep = ",",
    decimal: option.Decimal = ".",
    private: option.PrivacyOptions,
) -> None:
    """Release a survival curve privately (Kaplan and Meier's), with limits; by group with the log-rank test of two.

    \b
    Example:
      fdadp survival people.csv --time months --event died --edges 0:12:13 --by arm=drug,placebo --epsilon 1 --n 3000
    """
    import pandas as pd

    privacy = private.required("survival")
    option.check_suffix(out, "--out", ".csv")
    private_files.check_not_read([out, out.with_suffix(".ledger.json")], [people, private.study])
    private_files.check_writable(out)
    classes = _classes(by)
    names = [time, event, *classes, *filter(None, (groups,))]
    files = PrivateFiles.of({}, people, FileFormat(sep, decimal))
    private_summaries.check_has(files.names, names, people)
    privacy.check_unit(groups)
    frame = pd.DataFrame(private_files.read_entries(files, names))
    persons = None if groups is None else frame[groups]
    asked: Any = {"edges": private_files.edges_of(edges, "--edges"), "by": classes or None, "level": level}
    found = fdadp.summaries.private_survival(
        frame[[time, event, *classes]], time, event, privacy=privacy, groups=persons, **asked
    )
    private_files.write_ledger(found.ledger, privacy, out)
    shown = found.frame.rename_axis(["group", "what", "time"][-found.frame.index.nlevels :]).drop(columns="interval")
    typer.echo(shown.to_string(float_format=lambda value: f"{value:.4g}"))
    private_files.write_shown(out, shown.reset_index().to_csv(index=False), "curves")


def _classes(text: str | None) -> dict[str, list[str]]:
    """Public classes of one column; raises InputError for another text."""

    def convert(value: str) -> list[str]:
        if "," not in value:
            raise ValueError
        return private_files.without_quotes(value.split(","))

    return by_name(None if text is None else [text], "--by", "NAME=CLASSES, as arm=drug,placebo", convert)
