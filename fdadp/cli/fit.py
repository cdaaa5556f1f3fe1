"""``python -m fdadp fit``: a regression of the user's own curves or numbers, private or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fdadp
from fdadp.cli import input_files, private_files
from fdadp.cli import shared_options as option
from fdadp.cli.input_files import CurvesFile, FileFormat
from fdadp.cli.private_files import PrivateFiles
from fdadp.cli.shared_options import ONLY_PRIVATE, components_of, given, refuse_given
from fdadp.errors import InputError

if TYPE_CHECKING:
    from fdadp.privacy import Privacy

WHAT = "A formula, as 'Y ~ ff(X) + s(age) + region', of --curves and --table; or two files of curves, X and Y."
FAMILIES = (
    "gaussian, binomial, poisson, gamma, negative_binomial, scaled_t, ordered, or with what REML else chooses "
    "negative_binomial(2.5), 'scaled_t(4, 0.5)' and 'ordered(-1, 0.5, 2)'"
)
Family = Annotated[str | None, typer.Option(help=f"{FAMILIES}. (default: gaussian)")]

ROUND = "Makes curves and effects of a formula periodic along the response, t = 0 and 24 the same: --t-period 24."
TPeriod = Annotated[float | None, typer.Option("--t-period", metavar="PERIOD", help=ROUND)]


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


@dataclass(frozen=True)
class EventOptions:
    """Periods of a regression of times to an event."""

    times: Annotated[
        str | None,
        typer.Option(help="Of Surv(time, event): " + option.EDGES.format("periods") + " (default: times of events)"),
    ] = None
    baseline: Annotated[
        str | None, typer.Option(help="Of Surv(time, event): factor, smooth or linear in the period. (default: auto)")
    ] = None


@dataclass(frozen=True)
class RegressionRequest(ABC):
    """A regression as options ask for it: its rows, whose they are, how files are read, and its settings."""

    rows: option.DataOptions
    groups: str | None
    how: FileFormat
    settings: dict[str, Any]

    @abstractmethod
    def fit(self) -> Any:
        """Fit without privacy."""

    @abstractmethod
    def fit_privately(self, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool) -> Any:
        """Show the plan where the number of persons is declared, then fit from files; None for a dry run."""


@dataclass(frozen=True)
class Additive(RegressionRequest):
    """The additive model of curves Y on curves X, of two files."""

    files: dict[str, CurvesFile]
    sizes: Sizes

    def fit(self) -> Any:
        """Fit without privacy."""
        if self.rows.table is not None or self.groups is not None:
            raise InputError("--table and --groups are there for formulas, and for private fits of two files")
        model = self._model()
        data, by = input_files.labelled_files(self.files, self.how, id=self.rows.id)
        return model.fit(*data.values(), by=by)

    def fit_privately(self, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool) -> Any:
        """Show the plan where the number of persons is declared, then fit from files; None for a dry run."""
        groups, table, id = self.groups, self.rows.table, self.rows.id
        refuse_given(given(self.sizes), "cannot be chosen in a private fit: the public plan sets sizes")
        if (table is None) is not (groups is None):
            raise InputError(
                "--table and --groups must be given together with two files: --groups names the column of person ids"
            )
        files = PrivateFiles.of(self.files, table, self.how, id).by_names(groups, privacy)
        files.refuse_several(self.settings.get("max_rows"))
        if id is not None or self.how.long is not None:
            refuse_given({"--table": table, "--groups": groups}, "must be left out with --id, the column of person ids")
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
        return model.fit_chunks(source, s=grids["X"], t=grids["Y"], groups=None if groups is None else True)

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
    t_period: TPeriod = None,
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
    model of the second's curves on the first's is fitted. Rows are joined by --id, in whatever order files have them.
    Without it they are joined by the labels that all files have, else by their numbers. Of curves, column labels that
    are numbers, dates or times are the grid; else, and where they are 0, 1, 2, ..., it is even on [0, 1].

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
    how = replace(how, grid=private_files.labels_of(grid))
    has_persons = groups is not None or rows.id is not None or person_of(what[0]) is not None
    law = of_persons.law(has_persons=has_persons)
    privacy = private.privacy()
    beside = {"--curves": rows.curves, "--family": family, "--offset": offset, "--t-period": t_period, **given(events)}
    settings = {"smoothing": smoothing, "missing": missing, "progress": "auto" if progress is None else progress}
    request = _requested(what, sizes, beside, (rows, groups, how), settings | law)
    if privacy is None:
        refuse_given({"--bounds": bounds, "--grid": grid, "--dry-run": dry_run}, ONLY_PRIVATE)
        model = request.fit()
    else:
        refuse_given({"--no-header": not how.header}, "cannot be in a private fit: a file's first line names columns")
        private_files.check_writable(out)
        model = request.fit_privately(privacy, private_files.bounds_of(bounds), dry_run=dry_run)
        if model is None:
            return
        typer.echo("" if privacy.n is not None else f"{getattr(model, 'model_', model).plan_}\n")
        private_files.write_ledger(model.ledger_, privacy, out)
    private_files.save_model(model, out)


def _requested(
    what: list[str],
    sizes: Sizes,
    beside: dict[str, Any],
    files: tuple[option.DataOptions, str | None, FileFormat],
    settings: dict[str, Any],
) -> RegressionRequest:
    """The model of two files, or that of a formula.

    Parameters
    ----------
    what : list of str
        The command's arguments.
    sizes : Sizes
        Of the model of two files.
    beside : dict of str
        Options that are there for formulas only, with their values.
    files
        Which files, the person of every row, and how files are read.
    settings : dict of str
        Of both: ``smoothing``, ``missing``, ``progress``; and how the rows of a person count, where that was given.

    Raises
    ------
    InputError
        Neither two files nor one formula, or options of the other kind.
    """
    missing, within = settings["missing"], {"--within": settings.get("within")}
    if len(what) == 2 and not any("~" in one for one in what):
        refuse_given(beside | within, "is there for formulas, as 'Y ~ ff(X) + s(age)', and not for two files")
        named = {name: CurvesFile(Path(file)) for name, file in zip("XY", what, strict=True)}
        return Additive(*files, settings | {"missing": input_files.treatment_of(missing)}, named, sizes)
    if len(what) != 1 or "~" not in what[0]:
        raise InputError(
            "fit must have a formula, as 'Y ~ ff(X)', or two files, of predictor and of response curves, got "
            f"{' '.join(map(repr, what))}"
        )
    refuse_given(given(sizes), "is there for two files, X and Y: in a formula sizes stand within terms, as ff(X, k=8)")
    settings = settings | {"missing": input_files.treatments_of(missing)}
    if what[0].lstrip().startswith("Surv("):
        refuse_given(
            {name: beside[name] for name in ("--offset", "--t-period")}
            | {"--max-rows": settings.get("max_rows"), **within},
            "must be left out of Surv()",
        )
        settings["times"] = private_files.edges_of(beside["--times"], "--times")
        settings["baseline"] = beside["--baseline"] or "auto"
        return TimesToEvent(*files, settings | {"family": beside["--family"] or "binomial"}, what[0])
    refuse_given(
        {name: beside[name] for name in ("--times", "--baseline")}, "is there for formulas of Surv(time, event)"
    )
    settings |= {"family": beside["--family"] or "gaussian"}
    return Formula(*files, settings, what[0], beside["--offset"], beside["--t-period"])


@dataclass(frozen=True)
class Formula(RegressionRequest):
    """A regression by a formula, of files of curves by name and of a table."""

    formula: str
    offset: str | None
    t_period: float | None

    def fit(self) -> Any:
        """Fit without privacy."""
        data, by = input_files.read_columns(self.rows, self.how, self.groups)
        refuse_given({"--within": self.settings.get("within")}, ONLY_PRIVATE)
        kind = model_of(self.formula, [name for name, c in data.items() if getattr(c, "ndim", 1) == 2], data)
        model = kind(self.formula, **self._settings_of(kind))
        beside = {"groups": self.groups, "offset": self.offset, "by": by}
        return model.fit(data, **{name: value for name, value in beside.items() if value is not None})

    def fit_privately(self, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool) -> Any:
        """Show the plan where the number of persons is declared, then fit from files; None for a dry run."""
        curves, table, groups = input_files.named_files(self.rows.curves), self.rows.table, self.groups
        files = PrivateFiles.of(curves, table, self.how, self.rows.id)
        files = files.by_names(groups or person_of(self.formula), privacy)
        if files.id is not None and input_files.of_one_file(curves, table):
            groups = groups or (None if privacy.unit == "row" else files.id)
            files = replace(files, id=None)
        files.refuse_several(self.settings.get("max_rows"))
        kind = model_of(self.formula, files.grids(), files.names)
        if kind is not fdadp.FunctionalRegression:
            refuse_given(
                {"--within": self.settings.get("within")}, "is there for curves, with re(id, covariance='free')"
            )
        model = kind(self.formula, privacy=privacy, bounds=bounds, **self._settings_of(kind))
        named = input_files.named_in(self.formula)
        files.check_has([*(name for name in bounds if name in named), *filter(None, (groups, self.offset))])
        beside: dict[str, Any] = {"groups": groups, "offset": self.offset}
        if privacy.n is not None or dry_run:
            typer.echo(f"{model.plan(files.grids(), groups=groups or files.id, offset=self.offset)}\n")
        if dry_run:
            return None
        return model.fit_chunks(files.tables if files.id is None else files.joined(), grids=files.grids(), **beside)

    def _settings_of(self, kind: Any) -> dict[str, Any]:
        """Settings of the kind of model; raises InputError for a circle where the response is a number."""
        if kind is fdadp.FunctionalRegression:
            return self.settings | {"t_period": self.t_period}
        refuse_given({"--t-period": self.t_period}, "must be left out where the response is a number")
        return self.settings


@dataclass(frozen=True)
class TimesToEvent(RegressionRequest):
    """A regression of times to an event by a formula, of files of curves by name and of a table."""

    formula: str

    def fit(self) -> Any:
        """Fit without privacy."""
        from fdadp.regression.reading.label_joins import aligned
        from fdadp.regression.survival import SurvivalFormula

        model = fdadp.SurvivalRegression(self.formula, **self.settings)
        data, by = input_files.read_columns(self.rows, self.how, self.groups)
        data, said = aligned(by, data, SurvivalFormula.read(self.formula).time)
        if said is not None:
            typer.echo(said, err=True)
        return model.fit(data, groups=self.groups)

    def fit_privately(self, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool) -> Any:
        """Show the plan where the number of persons is declared, then fit from files; None for a dry run."""
        model = fdadp.SurvivalRegression(self.formula, privacy=privacy, bounds=bounds, **self.settings)
        curves, table, id = input_files.named_files(self.rows.curves), self.rows.table, self.rows.id
        apart = not input_files.of_one_file(curves, table)
        files, person = PrivateFiles.of(curves, table, self.how, id if apart else None), self.groups or id
        if apart:
            files = files.by_names(self.groups, privacy)
            if files.id is None:
                raise InputError(
                    "--id must name the column of the persons, which all files have, in a private fit of times to an "
                    "event: rows of several files are joined by it"
                )
            person = self.groups or files.id
        named = input_files.named_in(self.formula)
        files.check_has([*(name for name in bounds if name in named), *filter(None, (person,))])
        if privacy.n is not None or dry_run:
            typer.echo(f"{model.plan(files.grids())}\n")
        if dry_run:
            return None
        wanted = [name for name in files.names if name in named or name == person]
        data = files.joined() if apart else private_files.read_entries(files, wanted)
        return model.fit(data, grids=files.grids(), groups=person)


def person_of(formula: str) -> str | None:
    """Column of the first re(person) of a formula, where there is one; None of a file."""
    from fdadp.regression.formula import person_columns

    return next(iter(person_columns(formula)), None) if "~" in formula else None


def model_of(formula: str, curves: Collection[str], names: Collection[str]) -> Any:
    """The kind of model by what the response is."""
    from fdadp.regression.reading.computed_columns import row_function

    response = formula.partition("~")[0].strip().strip("`")
    function = row_function(response) if response not in names else None
    sources = (response,) if function is None else function.sources
    return fdadp.FunctionalRegression if any(name in curves for name in sources) else fdadp.ScalarRegression
