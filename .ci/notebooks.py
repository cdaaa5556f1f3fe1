"""Run every notebook from its jupytext .py pair; fail if one fails, if a pair differs or if there is none.

python .ci/notebooks.py              run, keep the committed files as they are
python .ci/notebooks.py --write      run, store the outputs in the .ipynb
python .ci/notebooks.py --pairs      only compare the pairs
python .ci/notebooks.py 07 09        only these

Cells that need data which are not part of fdadp name the loader as a tag, ``# %% tags=["load_icu"]``. Where the data
are not on this machine such cells, text among them, are left out of the run, and the notebook cannot be stored.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Kind and text of every cell that is not empty."""
    pairs = [(cell.cell_type, cell.source.strip()) for cell in notebook.cells]
    return [pair for pair in pairs if pair[1]]


def pair_problem(script: Path) -> str | None:
    """What is wrong with the committed .ipynb of a script, if anything."""
    stored = script.with_suffix(".ipynb")
    if not stored.exists():
        return f"{stored.name} is missing: run 'make notebooks NOTEBOOK_ARGS=--write'"
    notebook = nbformat.read(stored, as_version=4)
    if cells(notebook) != cells(jupytext.read(script)):
        return f"{stored.name} and {script.name} differ: run 'make notebooks NOTEBOOK_ARGS=--write'"
    if not any(cell.get("outputs") for cell in notebook.cells):
        return f"{stored.name} is stored without outputs: run 'make notebooks NOTEBOOK_ARGS=--write'"
    return None


def absent(notebook: nbformat.NotebookNode) -> list[str]:
    """Loaders that cells name, and whose data are not here; these cells are taken out of the notebook."""
    from fdadp import datasets
    from fdadp.errors import MissingDataError

    wanted = {tag for cell in notebook.cells for tag in cell.metadata.get("tags", ()) if tag.startswith("load_")}
    missing = []
    for name in sorted(wanted):
        load = getattr(datasets, name)
        try:
            load(**({"download": False} if "download" in inspect.signature(load).parameters else {}))
        except MissingDataError:
            missing.append(name)
    notebook.cells = [cell for cell in notebook.cells if not set(missing) & set(cell.metadata.get("tags", ()))]
    return missing


def execute(script: Path, write: bool) -> str | None:
    """Run one notebook in its own kernel; the text of the error, if any."""
    notebook = jupytext.read(script)
    missing = absent(notebook)
    if missing and write:
        return f"not stored: the data of {', '.join(missing)} are not here"
    if missing:
        print(f"        {script.stem}: without cells that need {', '.join(missing)}")
    notebook.metadata.setdefault("kernelspec", {"name": "python3", "display_name": "Python 3", "language": "python"})
    os.environ.pop("MPLBACKEND", None)  # the kernel's own, which puts pictures into the notebook
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}})
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, TimeoutError) as error:
        return str(error)
    if write:
        jupytext.write(notebook, script.with_suffix(".ipynb"))
    return None


def main() -> int:
    """Command line; the exit status is the number of notebooks with a problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store the outputs in the .ipynb")
    parser.add_argument("--pairs", action="store_true", help="compare the pairs, run nothing")
    parser.add_argument("only", nargs="*", help="beginnings of names; default all")
    options = parser.parse_args()
    scripts = [path for path in sorted(FOLDER.glob("*.py")) if path.name.startswith(tuple(options.only or [""]))]
    orphans = [path for path in sorted(FOLDER.glob("*.ipynb")) if not path.with_suffix(".py").exists()]
    if not scripts:
        print(f"There is no notebook (.py pair) in {FOLDER.name}/.", file=sys.stderr)
        return 1
    bad = len(orphans)
    for path in orphans:
        print(f"FAILED  {path.name}: has no .py pair")
    for script in scripts:
        start = time.perf_counter()
        problem = None if options.pairs else execute(script, options.write)
        problem = problem or pair_problem(script)
        print(f"{'FAILED' if problem else 'ok    '}  {script.stem}  ({time.perf_counter() - start:.0f} s)", flush=True)
        if problem:
            print(problem)
            bad += 1
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
