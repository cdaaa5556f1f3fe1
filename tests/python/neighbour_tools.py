"""Neighbouring tables as users have them, and what the exact sums of any private estimator move by between them."""

from __future__ import annotations

import io
from unittest import mock

import numpy as np
import pandas as pd

from fdadp.privacy import SeededNoise, TapeNoise
from fdadp.privacy._sources import padded
from fdadp.privacy.replay import losses


def on_tape(fit, data, tape=None):
    """Entries of the tape of one fit with seeded noise, of whatever estimator."""
    noise = TapeNoise(SeededNoise(0), tape)
    with mock.patch("fdadp.privacy.noise.SeededNoise", lambda seed: noise):
        fit(data)
    return noise.entries


def change(fit, first, second, *, constant=False):
    """Largest distance of the exact integer sums of neighbours over the declared sensitivity: at most 1.

    The sums must be of the rows: a fit that reads nobody's values moves by nothing, whoever the neighbours are.
    `constant` says that they are to be so.
    """
    entries = on_tape(fit, first)
    assert entries
    with mock.patch("fdadp.privacy._vault.padded", lambda rows, spec: tuple(a * np.nan for a in padded(rows, spec))):
        nobody = on_tape(fit, first, entries)
    assert ([e.exact for e in entries] == [e.exact for e in nobody]) == constant, (
        "the exact sums are constant, or should be"
    )
    return max(loss.change for loss in losses(entries, on_tape(fit, second, entries)))


def csv(columns):
    """A file of columns of texts, one column a name."""
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    return "\n".join(lines) + "\n"


def frame(columns, **options):
    """What pandas makes of the file."""
    return pd.read_csv(io.StringIO(csv(columns)), **options)


def chunks(columns, size, split):
    """A source that reads the file anew, in pieces, and hands each to `split`."""
    text = csv(columns)

    def source():
        for piece in pd.read_csv(io.StringIO(text), chunksize=size):
            yield split(piece)

    return source


def texts(values):
    """Numbers as they stand in a file."""
    return [f"{value:.6g}" for value in np.ravel(values)]
