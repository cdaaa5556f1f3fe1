"""``python -m fdadp fit``: a regression of the user's own curves or numbers, private or not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import input_files
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import FileFormat
from fdadp.cli.mfpca_and_survival import EventOptions, TimesToEvent
from fdadp.cli.private_files import PrivateFiles, bounds_of, check_writable, labels_of, save_model, write_ledger
from fdadp.cli.shared_options import ONLY_PRIVATE, components_of, refuse_given
from fdadp.errors import InputError

if TYPE_CHECKING:
    from fdadp.privacy import Privacy

WHAT = "A formula, as 'Y ~ ff(X) + s(age) + region', of --curves and --table; or two files of curves, X and Y."
Family = Annotated[str | None, typer.Option(help="gaussian, binomial, poisson or gamma. (default: gaussian)")]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model of two files, as texts."""

    components: Annotated[
        str | None, typer.Option(help="Of X and Y: eigenfunctions of Y, or the share to explain. (default: 0.95)")
    ] = None
    basis_x: Annotated[
        str | None, typer.Option(help="Of X and Y: B-splines over the values of X. (default: auto, grows with n)")
    ] = None
    basis_s: Annotated[str | None, typer.Option(help="Of X and Y: B-splines over the grid of X. (default: auto)")] = (
        None
    )

    @property
    def given(self) -> dict[str, str | None]:
        """Values by the names of options."""
        return {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items()}


# The additive model of two files of curves on the command line.


@dataclass(frozen=True)
class Additive:
    """The additive model of curves Y on curves X, as options ask for it, which are texts or None."""

    files: dict[str, Path]
    sizes: Sizes
    settings: dict[str, Any]
    how: FileFormat
    id: str | None

    def fit(self, table: Path | None, groups: str | None) -> Any:
        """Fit without privacy."""
        if table is not None or groups is not None:
            raise InputError("--table and --groups are there for formulas, and for private fits of two files")
        model = self._model()
        data, by = input_files.labelled_files(self.files, self.how, id=self.id)
        return model.fit(*data.values(), by=by)

    def fit_privately(
        self, table: Path | None, groups: str | None, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool
    ) -> Any:
        """Show the plan, then fit from files; None for a dry run."""
        refuse_given(self.sizes.given, "cannot be chosen in a private fit: the public plan sets sizes")
        if (table is None) is not (groups is None):
            raise InputError("--table and --groups must be given together with two files: whose each row is")
        files = PrivateFiles.of(self.files, table, self.id, self.how).by_names(groups, privacy)
        if self.id is not None or self.how.long is not None:
            refuse_given(
                {"--table": table, "--groups": groups}, "must be left out with --id, which says whose each row is"
            )
        if groups is not None:
            files.check_has([groups])
        model = self._model(privacy=privacy, bounds=bounds)
        grids = files.grids()
        if privacy.n is not None or dry_run:
            typer.echo(f"{model.plan(s=grids['X'], t=grids['Y'])}\n")
        if dry_run:
            return None

        def rows() -> Iterator[tuple[Any, ...]]:
            for block in files.tables():
                yield (block["X"], block["Y"]) if groups is None else (block["X"], block["Y"], block[groups])

        source = rows if files.id is None else files.joined()
        model.fit_chunks(source, s=grids["X"], t=grids["Y"], groups=None if groups is None else True)
        typer.echo("" if privacy.n is not None else f"{model.plan_}\n")
        return model

    def _model(self, **private: Any) -> Any:
        sizes: dict[str, Any] = {f"n_{name}": _basis(getattr(self.sizes, name)) for name in ("basis_x", "basis_s")}
        sizes["n_components"] = components_of(self.sizes.components)
        settings = self.settings | {"smoothing": _smoothing(self.settings["smoothing"])}
        return fdadp.AdditiveFunctionOnFunction(**settings, **sizes, **private)


def _basis(text: str | None) -> int | str:
    return "auto" if text is None else int(text) if text.isdecimal() else text


def _smoothing(text: str) -> Any:
    if text in ("reml", "gcv"):
        return text
    try:
        pair = [float(part) for part in text.split(",")]
    except ValueError:
        pair = []
    if len(pair) != 2:
        raise InputError(f"--smoothing must be reml, gcv or two numbers with a comma between, got {text!r}")
    return pair


def fit(
    what: Annotated[list[str], typer.Argument(metavar="FORMULA | X Y", help=WHAT)],
    *,
    rows: option.DataOptions,
    out: Annotated[Path, typer.Option(help="The model file to write (.npz).")] = Path("model.npz"),
    family: Family = None,
    smoothing: Annotated[str, typer.Option(help="reml or gcv; of X and Y also two numbers with a comma.")] = "reml",
    missing: option.Missing = None,
    groups: option.Groups = None,
    of_persons: option.RowsOptions,
    offset: Annotated[str | None, typer.Option(help="Column, or expression of some, that is added as it is.")] = None,
    events: EventOptions,
    sizes: Sizes,
    how: FileFormat,
    grid: option.Grid = None,
    progress: option.Progress = None,
    private: option.PrivacyOptions,
    bounds: option.Bounds = None,
    dry_run: option.DryRun = False,
) -> None:
    """Fit a regression of curves or of numbers; with --epsilon privately, from end to end.

    By a formula the response is what stands left of ~: curves, or a column of the table. Of two files the additive
    model of the second's curves on the first's is fitted. Rows are joined by --id, in whatever order files have them;
    without it by the labels that all files have, or else they are those of the same number. Of curves, column labels
    that are numbers, dates or times are the grid; else, and where they are 0, 1, 2, ..., it is even on [0, 1].

    A private fit shows its plan before it reads a row, reads CSV files line by line, and writes its ledger beside the
    model. Without --study each run has a budget of its own: what several runs on the same people spend adds up.

    \b
    Examples:
      fdadp fit X.csv Y.csv --out model.npz
      fdadp fit "Y ~ ff(X) + s(age) + region" --curves X=x.csv --curves Y=y.csv --table people.csv --id pid
      fdadp fit "Surv(months, died) ~ lf(X) + age" --curves X=x.csv --table people.csv --id pid --times 0:12:13
      fdadp fit "Y ~ ff(X)" --curves X=x.csv --curves Y=y.csv --bounds X=30:180 --bounds Y=30:180 --epsilon 1 --n 3000
      fdadp fit X.csv Y.csv --bounds X=30:180 --bounds Y=30:180 --epsilon 0.5 --study wards.fdadp
    """
    input_files.check_out(out)
    how = replace(how, grid=labels_of(grid))
    has_persons = groups is not None or rows.id is not None or person_of(what[0]) is not None
    law = of_persons.law(has_persons=has_persons)
    privacy = private.privacy()
    beside = {"--curves": rows.curves, "--family": family, "--offset": offset, **events.given}
    settings = {"smoothing": smoothing, "missing": missing, "progress": "auto" if progress is None else progress}
    asked = _model_asked_for(what, how, rows.id, sizes, beside, settings, law)
    if privacy is None:
        refuse_given({"--bounds": bounds, "--grid": grid, "--dry-run": dry_run}, ONLY_PRIVATE)
        model = asked.fit(rows.table, groups)
    else:
        refuse_given({"--no-header": not how.header}, "cannot be in a private fit: a file's first line names columns")
        check_writable(out)
        model = asked.fit_privately(rows.table, groups, privacy, bounds_of(bounds), dry_run=dry_run)
        if model is None:
            return
        write_ledger(model, out)
    save_model(model, out)


def _model_asked_for(
    what: list[str],
    how: FileFormat,
    id: str | None,
    sizes: Sizes,
    beside: dict[str, Any],
    settings: dict[str, Any],
    law: dict[str, Any],
) -> Additive | Formula | TimesToEvent:
    """The model of two files, or that of a formula.

    Parameters
    ----------
    what : list of str
        The command's arguments.
    how, id
        How files are read, and the column that names the persons.
    sizes : Sizes
        Of the model of two files.
    beside : dict of str
        Options that are there for formulas only, with their values.
    settings : dict of str
        Of both: ``smoothing``, ``missing``, ``progress``.
    law : dict of str
        How the rows of a person count, where that was given.

    Raises
    ------
    InputError
        Neither two files nor one formula, or options of the other kind.
    """
    if len(what) == 2 and not any("~" in one for one in what):
        beside = {**beside, "--within": law.get("within")}
        refuse_given(beside, "is there for formulas, as 'Y ~ ff(X) + s(age)', and not for two files")
        settings = {**settings, **law, "missing": input_files.treatment_of(settings["missing"])}
        return Additive(dict(zip("XY", map(Path, what), strict=True)), sizes, settings, how, id)
    if len(what) == 1 and "~" in what[0]:
        refuse_given(
            sizes.given, "is there for two files, X and Y: in a formula sizes stand within terms, as ff(X, k=8)"
        )
        settings = {**settings, **law, "missing": input_files.treatments_of(settings["missing"])}
        if what[0].lstrip().startswith("Surv("):
            return TimesToEvent.of(what[0], beside, settings, how, id)
        refuse_given(
            {name: beside[name] for name in ("--times", "--baseline")}, "is there for formulas of Surv(time, event)"
        )
        settings["family"] = beside["--family"] or "gaussian"
        return Formula(what[0], beside["--curves"], settings, beside["--offset"], how, id)
    raise InputError(
        "fit must have a formula, as 'Y ~ ff(X)', or two files, of predictor and of response curves, got "
        f"{' '.join(map(repr, what))}"
    )


@dataclass(frozen=True)
class Formula:
    """A regression by a formula, of files of curves by name and of a table."""

    formula: str
    curves: list[str] | None
    settings: dict[str, Any]
    offset: str | None
    how: FileFormat
    id: str | None

    def fit(self, table: Path | None, groups: str | None) -> Any:
        """Fit without privacy."""
        data, by = input_files.read_columns(self.curves, table, self.how, id=self.id)
        refuse_given({"--within": self.settings.get("within")}, ONLY_PRIVATE)
        kind = model_of(self.formula, [name for name, c in data.items() if getattr(c, "ndim", 1) == 2], data)
        model = kind(self.formula, **self.settings)
        beside = {"groups": groups, "offset": self.offset, "by": by}
        return model.fit(data, **{name: value for name, value in beside.items() if value is not None})

    def fit_privately(
        self, table: Path | None, groups: str | None, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool
    ) -> Any:
        """Show the plan, then fit from files; None for a dry run."""
        files = PrivateFiles.of(input_files.named_files(self.curves), table, self.id, self.how)
        files = files.by_names(groups or person_of(self.formula), privacy)
        kind = model_of(self.formula, files.grids(), files.names)
        if kind is not fdadp.FunctionalRegression:
            refuse_given(
                {"--within": self.settings.get("within")}, "is there for curves, with re(id, covariance='free')"
            )
        model = kind(self.formula, privacy=privacy, bounds=bounds, **self.settings)
        named = input_files.named_in(self.formula)
        files.check_has([*(name for name in bounds if name in named), *filter(None, (groups, self.offset))])
        asked: dict[str, Any] = {"groups": groups, "offset": self.offset}
        grids, declared = files.grids(), privacy.n is not None
        if declared or dry_run:
            typer.echo(f"{model.plan(grids, **asked)}\n")
        if dry_run:
            return None
        model.fit_chunks(files.tables if files.id is None else files.joined(), grids=grids, **asked)
        typer.echo("" if declared else f"{model.plan_}\n")
        return model


def person_of(formula: str) -> str | None:
    """Column of the persons of a formula with re(person), where there is one."""
    found = re.search(r"\bre\(\s*(`[^`]+`|\w+)", formula)
    return None if found is None else found[1].strip("`")


def model_of(formula: str, curves: Collection[str], names: Collection[str]) -> Any:
    """The kind of model by what the response is."""
    from fdadp.regression.reading.computed_columns import row_function

    response = formula.partition("~")[0].strip().strip("`")
    function = row_function(response) if response not in names else None
    sources = (response,) if function is None else function.sources
    return fdadp.FunctionalRegression if any(name in curves for name in sources) else fdadp.ScalarRegression
