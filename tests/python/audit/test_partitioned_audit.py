"""Exact replays of private fits whose curves lie in partitions: the loss of one process, and nothing else shown."""

from __future__ import annotations

import dataclasses

import pytest

from fdadp.audit import replay_audit
from fdadp.audit.private_regression_audits import replay_pairs
from fdadp.privacy.rows import _dask_partitions
from fdadp.privacy.rows._dask_partitions import RowsOnTheWay

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

ROWS = 37
"""Of a partition: a person's are in several."""


@pytest.fixture
def workers(monkeypatch):
    """A cluster's work done in this process; returns which vaults there were."""
    made = []
    init = _dask_partitions.PartitionedVault.__init__
    monkeypatch.setattr(_dask_partitions, "active_client", object)

    def counted(self, data, *law):
        made.append(data.grouped)
        init(self, data, *law)

    monkeypatch.setattr(_dask_partitions.PartitionedVault, "__init__", counted)
    with dask.config.set(scheduler="synchronous"):
        yield made


def in_partitions(tapes, seed):
    def lazy(table):
        values = table.to_numpy() if hasattr(table, "to_numpy") else table
        return da.from_array(values, chunks=(ROWS, *values.shape[1:]))

    for pair in replay_pairs(tapes, seed=seed):

        def run(data, noise, pair=pair):
            return pair.run((lazy(data[0]), lazy(data[1]), data[2]), noise)

        yield dataclasses.replace(pair, run=run)


def test_fits_on_partitions_cost_at_most_their_budget(workers):
    result = replay_audit(in_partitions(4, seed=2), seed=2)
    assert result.passed, str(result)
    assert result.ratios.max() <= 1 and result.changes.max() <= 1 and result.finished >= 3
    assert len(workers) >= 8 and set(workers) == {False, True}


@pytest.mark.statistics
def test_the_audit_sees_a_shuffle_that_is_left_out(workers, monkeypatch):
    def apart(piece, buckets):
        empty = RowsOnTheWay(tuple(a[:0] for a in piece.arrays), piece.whole[:0], {})
        at = int(abs(piece.arrays[0].sum()) * 1e6) % buckets
        return tuple(piece if b == at else empty for b in range(buckets))

    grouped = [pair for pair in in_partitions(24, seed=3) if "several rows" in pair.name][:4]
    assert replay_audit(grouped, seed=3).passed
    monkeypatch.setattr(_dask_partitions, "scattered", apart)
    result = replay_audit(grouped, seed=3)
    assert not result.passed and result.changes.max() > 1


@pytest.mark.statistics
def test_thirty_tapes_on_partitions(workers):
    result = replay_audit(in_partitions(30, seed=5), seed=5)
    assert result.passed, str(result)


@pytest.mark.long
def test_three_hundred_tapes_on_partitions(workers):
    result = replay_audit(in_partitions(300, seed=12), seed=12)
    print(result)
    assert result.passed, str(result)
    assert result.finished > 240 and result.ratios.max() <= 1 and result.changes.max() <= 1
