"""Neighbouring tables as users have them, and what the exact sums of any private estimator move by between them."""

from __future__ import annotations

import io
import warnings
from unittest import mock

import numpy as np
import pandas as pd

from fdadp.audit.replay import own_garbage
from fdadp.privacy import Budget, SeededNoise, TapeNoise
from fdadp.privacy.replayed_loss import losses
from fdadp.privacy.rows._vault import padded


def on_tape(fit, data, tape=None):
    """Entries of the tape of one fit with seeded noise, of whatever estimator."""
    noise = TapeNoise(SeededNoise(0), tape)
    with mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: noise):
        fit(data)
    return noise.entries


def change(fit, first, second, *, constant=False, entries=None):
    """Largest distance of the exact integer sums of neighbours over the declared sensitivity: at most 1.

    `entries` is `sums_of_rows` of the first, where it is known.
    """
    entries = sums_of_rows(fit, first, constant=constant) if entries is None else entries
    return max(loss.change for loss in losses(entries, on_tape(fit, second, entries)))


def sums_of_rows(fit, first, *, constant=False):
    """Entries of the tape of one fit.

    The sums must be of the rows: a fit that reads nobody's values moves by nothing, whoever the neighbours are.
    `constant` says that they are to be so.
    """
    entries = on_tape(fit, first)
    assert entries
    with mock.patch(
        "fdadp.privacy.rows._vault.padded", lambda rows, spec: tuple(a * np.nan for a in padded(rows, spec))
    ):
        nobody = on_tape(fit, first, entries)
    assert ([e.exact for e in entries] == [e.exact for e in nobody]) == constant, (
        "the exact sums are constant, or should be"
    )
    return entries


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


def observed(fit, data, tape=None):
    """Tape of a fit, what was said (its error and its warnings), and what was spent of each budget."""
    taped = TapeNoise(SeededNoise(0), tape)
    said, budgets, reserve = None, [], Budget.reserve

    def noted(budget, *args, **kwargs):
        budgets.append(budget)
        return reserve(budget, *args, **kwargs)

    with (
        mock.patch("fdadp.privacy.noise.sources.SeededNoise", lambda seed: taped),
        mock.patch.object(Budget, "reserve", noted),
        own_garbage(),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        try:
            fit(data)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    warned = [str(w.message) for w in seen if "NotAccounted" not in w.category.__name__]
    return taped.entries, said, warned, [budget.spent for budget in budgets]


def moved(fit, first, second):
    """Largest change over sensitivity; infinite where anything else than the sums tells the two apart."""
    entries, *said = observed(fit, first)
    again, *said_again = observed(fit, second, entries)
    if said != said_again or len(entries) != len(again):
        raise AssertionError(f"neighbours were told apart: {said} and {said_again}")
    return max((loss.change for loss in losses(entries, again)), default=0.0)


def costs_the_same(fit, first, second):
    """A source that fails at somebody's entry: no sum is left to compare, but what was spent is."""
    *_, spent = observed(fit, first)
    *_, spent_again = observed(fit, second)
    assert any(spent), "nothing was spent"
    if spent != spent_again:
        raise AssertionError(f"a failed read gave budget back: {spent} and {spent_again}")
    return 0.0
