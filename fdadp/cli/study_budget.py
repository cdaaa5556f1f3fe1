"""``python -m fdadp study new | show | verify | report | key | close``: budgets in files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import fdadp
from fdadp.cli.private_files import bounds_of
from fdadp.cli.shared_options import spread
from fdadp.errors import InputError

PASSWORD = "FDADP_KEY_PASSWORD"  # name of a variable
"""Variable of the environment with the password of secret keys: not an option, which other users could read."""
study = typer.Typer(help="A study: a budget in a file, on which every fit to its data draws.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's file.")]


@dataclass(frozen=True)
class Facts:
    """What a study says of its data, and the budget."""

    name: Annotated[str, typer.Option(help="Of the data, as their custodian calls them.")]
    epsilon: Annotated[float, typer.Option(help="All that may ever be spent.")]
    unit: Annotated[str, typer.Option(help="Whom it protects: person (fits need groups) or row.")]
    delta: Annotated[float | None, typer.Option(help="Of (ε, δ), below 1/n, as 1e-6. (default: 0, pure ε)")] = None
    n: Annotated[int | None, typer.Option("--n", help="Number of persons, where it is public.")] = None
    adjacency: Annotated[str | None, typer.Option(help="zero-out, replace or add-remove.")] = None
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOW:HIGH", help="Public range, or COLUMN=a,b,c: levels.")
    ] = None
    source: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]TEXT", help="Where bounds are from, of one column or of all.")
    ] = None
    custodian: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None
    data: Annotated[str | None, typer.Option(help="What the data are, in a sentence.")] = None
    expires: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Last day of fits.")] = None


@study.command()
@spread
def new(file: File, *, facts: Facts) -> None:
    """Make a study: once, before anything is fitted."""
    said = dict(vars(facts))
    ranges = bounds_of(said.pop("bounds"))
    sources = _sources(said.pop("source") or [], ranges)
    typer.echo(str(fdadp.Study.new(file, bounds=ranges, sources=sources, **said)))


@study.command()
def show(file: File) -> None:
    """Say what is left, and what drew on it; status 1 if anything is wrong."""
    text, wrong = fdadp.Study(file).shown()
    typer.echo(text)
    if wrong:
        raise typer.Exit(1)


@study.command()
def verify(
    file: File,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Models, and certificates (.json).")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Public key, .pub, that certificates must be signed with.")] = None,
) -> None:
    """Recompute hashes and sums, and hold models and certificates against the study; status 1 if anything is wrong."""
    from fdadp.privacy.study.verification import unchecked

    of = fdadp.Study(file)
    wrong = False
    for what, found in [(str(file), of.verify()), *((str(f), of.wrong_with(f, key)) for f in files or [])]:
        said = unchecked(what) if what.endswith(".json") else ""
        typer.echo(f"{what}: " + "; ".join([*(found or ["verified"]), *filter(None, [said])]))
        wrong |= bool(found)
    position, last = of.head
    typer.echo(f"last entry: {position}, {last}")
    if wrong:
        raise typer.Exit(1)


@study.command()
def report(
    file: File,
    out: Annotated[Path, typer.Option(help="The certificate to write, .html, and beside it .json.")],
    models: Annotated[list[Path] | None, typer.Argument(metavar="[MODEL]...", help="Files of models.")] = None,
    custodian: Annotated[str | None, typer.Option(help="Who answers for the data.")] = None,
    data: Annotated[str | None, typer.Option(help="What the data are, in a sentence.")] = None,
    use: Annotated[str | None, typer.Option(help="What the release is for.")] = None,
    region: Annotated[str | None, typer.Option(help="Where the persons are, and whose law applies.")] = None,
    author: Annotated[str | None, typer.Option(help="Who writes this.")] = None,
    registry: Annotated[str | None, typer.Option(metavar="SLUG", help="Also an entry for OpenDP's registry.")] = None,
    sector: Annotated[str | None, typer.Option(help="For the registry, such as Healthcare.")] = None,
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="Secret key, as `study key` makes it.")] = None,
) -> None:
    """Write a certificate of everything that drew on the study, after it was verified."""
    from fdadp.files.atomic_writes import write_text

    said = {"custodian": custodian, "data": data, "use": use, "region": region, "author": author}
    made = fdadp.Study(file).report(models or [], (), **{k: v for k, v in said.items() if v is not None})
    made = made if sign is None else made.signed(sign, os.environ.get(PASSWORD))
    entry = None if registry is None else made.registry_entry(slug=registry, sector=sector)
    written = [*made.save(out)]
    if entry is not None:
        written.append(out.with_suffix(".registry.json"))
        write_text(written[-1], json.dumps(entry, indent=2, ensure_ascii=False))
    for path in written:
        typer.echo(str(path))


@study.command()
def key(file: Annotated[Path, typer.Argument(metavar="KEY", help="The secret key; beside it .pub.")]) -> None:
    """Make a pair of keys to sign certificates with; $FDADP_KEY_PASSWORD, where it is set, encrypts the secret one."""
    from fdadp.privacy.certificate.signature import new_keys

    for path in new_keys(file, os.environ.get(PASSWORD)):
        typer.echo(str(path))


@study.command()
def close(file: File, reason: Annotated[str, typer.Option(help="Why, for the record.")]) -> None:
    """Let nobody fit any more, for good."""
    of = fdadp.Study(file)
    of.close(reason)
    typer.echo(of.headline)


@study.command()
def restored(file: File, reason: Annotated[str, typer.Option(help="Why, for the record.")]) -> None:
    """Say that an older copy was put back on purpose, because the newer file is lost for good."""
    of = fdadp.Study(file)
    of.restored(reason)
    typer.echo(of.headline)


@study.command()
def migrate(file: File) -> None:
    """Convert, in its place, the file of a study that fdadp 0.2 made: the same entries, with the same hashes."""
    typer.echo(fdadp.Study.migrate(file).headline)


def _sources(texts: list[str], ranges: dict[str, Any]) -> dict[str, str]:
    """Source of each column's bounds."""
    everywhere = [text for text in texts if text.partition("=")[0] not in ranges]
    if len(everywhere) > 1:
        raise InputError(f"--source without a column must be given once, got {everywhere!r}")
    sources = dict.fromkeys(ranges, everywhere[0]) if everywhere else {}
    return sources | dict(text.split("=", 1) for text in texts if text not in everywhere)
