"""The additive model of two files of curves on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fdadp.cli.inputs import Reading, labelled_files
from fdadp.cli.private_files import PrivateFiles, refuse_given
from fdadp.errors import InputError

if TYPE_CHECKING:
    from fdadp.privacy import Privacy

__all__ = ["Additive", "components_of"]


@dataclass(frozen=True)
class Additive:
    """The additive model of curves Y on curves X, as options ask for it, which are texts or None."""

    files: tuple[Path, Path]
    components: str | None
    basis_x: str | None
    basis_s: str | None
    smoothing: str
    missing: str
    progress: bool | str
    how: Reading
    id: str | None
    law: dict[str, Any]

    def fit(self, table: Path | None, groups: str | None) -> Any:
        """Fit without privacy."""
        if table is not None or groups is not None:
            raise InputError("--table and --groups are there for formulas, and for private fits of two files")
        model = self._model()
        files = dict(zip("XY", self.files, strict=True))
        data, by = labelled_files(files, self.how, id=self.id)
        return model.fit(*data.values(), by=by)

    def fit_privately(
        self, table: Path | None, groups: str | None, privacy: Privacy, bounds: dict[str, Any], *, dry_run: bool
    ) -> Any:
        """Show the plan, then fit from files; None for a dry run."""
        refuse_given(
            {"--components": self.components, "--basis-x": self.basis_x, "--basis-s": self.basis_s},
            "cannot be chosen in a private fit: the public plan sets sizes",
        )
        if (table is None) is not (groups is None):
            raise InputError("--table and --groups must be given together with two files: whose each row is")
        files = PrivateFiles.of(dict(zip("XY", self.files, strict=True)), table, self.id, self.how).by_names(
            groups, privacy
        )
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

        model.fit_chunks(
            rows if files.id is None else files.joined(),
            s=grids["X"],
            t=grids["Y"],
            groups=None if groups is None else True,
        )
        typer.echo("" if privacy.n is not None else f"{model.plan_}\n")
        return model

    def _model(self, **private: Any) -> Any:
        from fdadp.regression.additive import AdditiveFunctionOnFunction

        return AdditiveFunctionOnFunction(
            **self.law,
            n_basis_x=_basis(self.basis_x),
            n_basis_s=_basis(self.basis_s),
            n_components=components_of(self.components),
            smoothing=_smoothing(self.smoothing),
            missing=self.missing,
            progress=self.progress,
            **private,
        )


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
