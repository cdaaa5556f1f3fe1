"""``python -m fdadp summary | ledger | plot``: what a saved model says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fdadp._common.terminal import no_window, plain_messages
from fdadp.cli import options as option
from fdadp.cli.inputs import load_model
from fdadp.errors import FileFormatError, InputError


def summary(model: option.Model) -> None:
    """Show the table of a saved model.

    \b
    Example:
      fdadp summary model.npz
    """
    with plain_messages():
        fitted = load_model(model)
        typer.echo(fitted.summary().as_text())
        for note in getattr(fitted, "notes_", ()):
            typer.echo(f"note: {note}")


def ledger(
    model: option.Model,
    out: Annotated[Path | None, typer.Option(help="The ledger as JSON. (default: only shown)")] = None,
) -> None:
    """Show what a private fit released, and under which assumptions.

    \b
    Example:
      fdadp ledger model.npz --out ledger.json
    """
    with plain_messages():
        from fdadp.files.atomic import replacing

        found = getattr(load_model(model), "ledger_", None)
        if found is None:
            raise InputError(f"{model} must hold a private fit to have a ledger, got one without privacy")
        typer.echo(str(found))
        if out is not None:
            with replacing(out) as stream:
                stream.write(found.to_json().encode())
            typer.echo(f"\nledger: {out}")


def plot(
    model: option.Model,
    out: Annotated[Path, typer.Option(help="The figure: .png, .pdf or .svg.")] = Path("model.png"),
    term: Annotated[str | None, typer.Option(help="Of a formula: this term. (default: all)")] = None,
) -> None:
    """Draw a saved model: its terms, its surface, a mean curve with its band, or eigenfunctions.

    \b
    Examples:
      fdadp plot model.npz --out surface.png
      fdadp plot model.npz --term "s(age)" --out age.pdf
    """
    no_window()
    with plain_messages():
        if out.suffix not in (".png", ".pdf", ".svg"):
            raise FileFormatError(f"--out must end in .png, .pdf or .svg, got {out.name!r}")
        fitted = load_model(model)
        by_formula = hasattr(fitted, "response_name_")
        if term is not None and not by_formula:
            raise InputError(f"--term is there for models by a formula, got a {type(fitted).__name__}")
        figure: Any = fitted.plot(term) if by_formula else _picture(fitted)
        out.parent.mkdir(parents=True, exist_ok=True)  # as of every --out
        figure.savefig(out, dpi=150)
        typer.echo(f"figure: {out}")


def _picture(fitted: Any) -> Any:
    from fdadp import plot as pictures
    from fdadp.summaries import PrivateTable1

    if isinstance(fitted, PrivateTable1):
        raise InputError("plot must be of a model of curves or of terms, got a table, which has no picture")
    if hasattr(fitted, "plot_surface"):
        return fitted.plot_surface()
    return pictures.mean(fitted) if hasattr(fitted, "band") else pictures.eigenfunctions(fitted)
