"""What a fit of many terms takes of the machine's memory, said before it is taken."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from fdadp.errors import InputError
from fdadp.solve.form.long_form import LongForm
from fdadp.terms.numbers.labels import levels_of

SQUARES = 11
"""Matrices with a row and a column for each coefficient that a fit holds at its peak."""

FEW = 2000
"""Coefficients that fit everywhere."""


def refuse_too_large(form: LongForm) -> None:
    """Refuse a model whose matrices of coefficients are larger than the memory that is free.

    Raises
    ------
    InputError
        Naming the largest term, what the fit would take, and what to do instead.
    """
    free = None if form.size <= FEW else free_memory()
    need = SQUARES * 8 * form.size**2
    if free is None or need <= free:
        return
    design = max(form.designs, key=lambda d: d.size)
    cure = "give its bases fewer functions, k"
    if levels_of(design) is not None:
        fewer = "leave out its k, which gives each level a number, or " if design.along.size > 1 else ""
        cure = f"{fewer}leave out the term and say fit(groups={design.columns[0]!r}): standard errors then allow for it"
    raise InputError(
        f"{design.name} must have fewer coefficients, got {design.size:,} of {form.size:,}: the fit would take about "
        f"{need / 1e9:,.0f} GB of memory, of which {free / 1e9:,.1f} GB are free; {cure}"
    )


def free_memory() -> int | None:
    """Bytes that this process can take, within the limit of its container; None where the system does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        names = getattr(os, "sysconf_names", {})
        if "SC_PHYS_PAGES" in names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=None)
