"""Private fits from chunks: the fit in memory bit for bit, and nothing told about the source."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from output_perturbation import OutputPerturbation
from private_settings import regression_settings
from skfda import FDataGrid

from fdadp import AdditiveFunctionOnFunction, Privacy, simulate_affr
from fdadp.audit.replay import fingerprint
from fdadp.errors import InputError, PrivacyError
from fdadp.privacy import Budget
from fdadp.privacy.rows import _vault

pytestmark = pytest.mark.filterwarnings("ignore::fdadp.errors.ExtrapolationWarning")

GRID = np.linspace(0, 1, 21)
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8, 8)}
N = 1300


@pytest.fixture(scope="module")
def curves():
    sim = simulate_affr(scenario=1, n=N, seed=0, n_points=21)
    x, y = sim.X.data_matrix[..., 0].copy(), sim.Y.data_matrix[..., 0].copy()
    x[3, 5], y[700, 0], x[1299] = np.nan, np.inf, 1e30
    return x, y


def settings(**kwargs):
    return regression_settings(**{"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "n": N, "random_state": 7} | kwargs)


def model(**kwargs):
    return AdditiveFunctionOnFunction(**settings(**kwargs))


def cut(arrays, sizes):
    """Tuples of pieces, of these sizes and then of what is left."""
    edges = np.append(np.cumsum(sizes, dtype=int), len(arrays[0]))
    return [tuple(a[i:j] for a in arrays) for i, j in zip(np.append(0, edges[:-1]), edges, strict=True)]


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.fitted_.surface.fit.spread.blocks, other.fitted_.surface.fit.spread.blocks)
    assert one.fitted_.surface.law.scale == other.fitted_.surface.law.scale
    assert one.fitted_.surface.law.inverse_dof == other.fitted_.surface.law.inverse_dof
    assert [r.sd for r in one.ledger_.releases] == [r.sd for r in other.ledger_.releases]
    assert one.ledger_.details["unit"] == other.ledger_.details["unit"]


@pytest.mark.each_once
@pytest.mark.parametrize(
    "settings", [{}, {"n": None}, {"delta": None}, {"mechanism": "moments"}, {"mechanism": OutputPerturbation()}]
)
@pytest.mark.parametrize("sizes", [(), (1, 511, 512), (0, 100, 0, 7, 600)], ids=str)
def test_chunks_give_the_fit_in_memory_bit_for_bit(curves, settings, sizes):
    pieces = cut(curves, sizes)
    in_memory = model(**settings).fit(*curves, s=GRID, t=GRID)
    same(model(**settings).fit_chunks(pieces, s=GRID, t=GRID), in_memory)
    same(model(**settings).fit_chunks(lambda: iter(pieces), s=GRID, t=GRID), in_memory)


@pytest.mark.parametrize("settings", [{}, {"n": None, "epsilon": 3.0}])
def test_persons_spread_over_chunks(curves, settings):
    ids = np.array([f"p{i % 431}" for i in range(N)], dtype=object)
    ids[17] = None
    settings |= {"n": 431} if "n" not in settings else {}
    in_memory = model(**settings).fit(*curves, s=GRID, t=GRID, groups=ids)
    assert in_memory.ledger_.details["unit"] != model().fit(*curves, s=GRID, t=GRID).ledger_.details["unit"]
    for sizes in ((), (1, 511, 512), (0, 100, 0, 7, 600)):
        triples = cut((*curves, ids), sizes)
        same(model(**settings).fit_chunks(lambda: iter(triples), s=GRID, t=GRID, groups=True), in_memory)  # noqa: B023
        same(model(**settings).fit_chunks(cut(curves, sizes), s=GRID, t=GRID, groups=ids), in_memory)


def test_kinds_of_chunks(curves):
    in_memory = model().fit(*curves, s=GRID, t=GRID)
    frames = [tuple(pd.DataFrame(a) for a in piece) for piece in cut(curves, (600,))]
    grids = [tuple(FDataGrid(a, GRID) for a in piece) for piece in cut(curves, (600,))]
    lists = [tuple(a.tolist() for a in piece) for piece in cut(curves, (600,))]
    declared = {"frame": pd.DataFrame, "fdatagrid": FDataGrid, None: np.ndarray}
    for pieces, kind in ((frames, "frame"), (grids, "fdatagrid"), (lists, None)):
        fitted = model().fit_chunks(pieces, s=GRID, t=GRID, kind=kind)
        same(fitted, in_memory)
        assert isinstance(fitted.predict(curves[0][10:13]), declared[kind])
    labels = pd.Index(GRID, name="day")
    fitted = model().fit_chunks(frames, s=GRID, t=labels, kind="frame")
    assert fitted.predict(curves[0][10:13]).columns.equals(labels)
    with pytest.raises(InputError, match="kind must be one of"):
        model().fit_chunks(frames, s=GRID, t=GRID, kind="list")


def test_what_a_chunk_is_called_does_not_leave(curves):
    """Column labels and kind of a chunk may be somebody's: the caller declares them."""
    named = [tuple(pd.DataFrame(a) for a in piece) for piece in cut(curves, (600,))]
    named[1][1].columns = [f"patient 17, {j}" for j in range(21)]
    fitted = model().fit_chunks(lambda: iter(named), s=GRID, t=GRID)
    assert "patient" not in str(fingerprint(vars(fitted)))
    assert isinstance(fitted.predict(curves[0][:2]), np.ndarray)


def test_a_source_may_use_its_memory_again(curves):
    """Blocks are under way on several threads while the source is asked for the next chunk."""

    def source():
        x, y = np.empty((100, 21)), np.empty((100, 21))
        for start in range(0, N, 100):
            x[:], y[:] = curves[0][start : start + 100], curves[1][start : start + 100]
            yield x, y

    same(model().fit_chunks(source, s=GRID, t=GRID), model().fit(*curves, s=GRID, t=GRID))


@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # n is declared of rows
@pytest.mark.each_once
@pytest.mark.parametrize("settings", [{}, {"n": None}, {"mechanism": "moments"}], ids=str)
@pytest.mark.parametrize("groups", [None, True])
def test_what_fits_is_read_once_and_what_does_not_gives_the_same(curves, monkeypatch, settings, groups):
    ids = np.arange(N) % 700
    pieces = cut((*curves, ids) if groups else curves, (600, 0, 3))
    reads = []

    def source():
        reads.append(0)
        yield from pieces

    def fit():
        reads.clear()
        fitted = model(**settings).fit_chunks(source, s=GRID, t=GRID, groups=groups)
        return fitted, len(reads)

    in_memory = model(**settings).fit(*curves, s=GRID, t=GRID, groups=ids if groups else None)
    passes = set()
    rows = N * 42 * 8
    for kept in (2**28, int(1.3 * rows), 2**16):  # all is kept; the rows, not what is derived from them; nothing
        monkeypatch.setattr(_vault, "KEPT", kept)
        fitted, times = fit()
        same(fitted, in_memory)
        passes.add(times - bool(groups))  # the persons are read once, apart
    assert min(passes) == 1 and max(passes) > 5


def test_dask_and_memory_maps(curves, tmp_path):
    in_memory = model().fit(*curves, s=GRID, t=GRID)
    maps = []
    for name, a in zip("xy", curves, strict=True):
        np.save(tmp_path / f"{name}.npy", a)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    same(model().fit(*maps, s=GRID, t=GRID), in_memory)
    same(model().fit_chunks(cut(maps, (512,)), s=GRID, t=GRID), in_memory)
    da = pytest.importorskip("dask.array")
    same(model().fit(*(da.from_array(a, chunks=(400, 10)) for a in curves), s=GRID, t=GRID), in_memory)


# --- what is refused, and what is told ---


class Unread:
    """A source that must not be read."""

    def __iter__(self):
        raise AssertionError("read")


@pytest.mark.parametrize(
    ("chunks", "kwargs", "text"),
    [
        (lambda: Unread(), {"s": None}, "s=None"),
        (lambda: Unread(), {"t": None}, "t=None"),
        (lambda: Unread(), {"s": [0.0, 0.0, 1.0]}, "s must be|increasing"),
        (lambda: Unread(), {"x_range": (0, 1)}, "x_range"),
        ((pair for pair in [1]), {}, "one-way generator"),
        ((lambda one: lambda: one)(iter([])), {}, "same iterator"),
        ([], {}, "at least one chunk"),
        ([3], {}, "got int"),
        ([(np.zeros((5, 21)),) * 3], {}, "of 3 parts"),
        ([(np.zeros((5, 21)),) * 2], {"groups": True}, "X, Y, groups"),
        ([(np.zeros((5, 20)), np.zeros((5, 21)))], {}, "X of each chunk must have 21 points"),
        ([(np.zeros((5, 21)), np.zeros((4, 21)))], {}, "same length"),
        ([(FDataGrid(np.zeros((5, 21)), 2 * GRID), np.zeros((5, 21)))], {}, "declared grid"),
    ],
)
def test_public_mistakes_are_refused_before_anything_is_read(chunks, kwargs, text):
    budget = Budget(1.0, 1e-6)
    with pytest.raises(InputError, match=text):
        model(budget=budget).fit_chunks(chunks, **{"s": GRID, "t": GRID} | kwargs)
    assert budget.spent == budget.reserved == 0


def test_without_bounds_or_budget_nothing_is_read():
    with pytest.raises(PrivacyError, match="bounds"):
        AdditiveFunctionOnFunction(privacy=Privacy(1.0, 1e-6, n=N)).fit_chunks(Unread, s=GRID, t=GRID)
    spent = Budget(1.0, 1e-6)
    spent.reserve(1.0, None)
    with pytest.raises(PrivacyError):
        model(budget=spent).fit_chunks(Unread, s=GRID, t=GRID)


SECRET = "1234.5"


@pytest.mark.parametrize("wrong", ["raise", "shape", "parts", "ids", "ids raise"])
def test_a_failing_source_spends_the_budget_and_says_nothing(curves, wrong):
    budget = Budget(1.0, 1e-6)
    ids = np.arange(N)

    def source():
        yield curves[0][:600], curves[1][:600], ids[:600]
        if wrong == "raise":
            raise RuntimeError(SECRET)
        x = curves[0][600:, : 20 if wrong == "shape" else 21]
        yield (x, curves[1][600:]) if wrong == "parts" else (x, curves[1][600:], ids[600 : 1299 + (wrong != "ids")])
        if wrong == "ids raise":
            raise ValueError(SECRET)

    with pytest.raises(PrivacyError) as refused:
        model(budget=budget).fit_chunks(source, s=GRID, t=GRID, groups=True)
    assert str(refused.value) == "the source of chunks failed or changed the shape of its rows; the budget is spent"
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert budget.left == 0


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::fdadp.errors.PublicInputWarning")  # one n for all
def test_memory_does_not_grow_with_the_number_of_rows(monkeypatch):
    """Peak of what Python and NumPy allocate at four times the chunks: the same, but for what may be kept."""
    # On one thread: how many blocks are under way on several at the peak depends on how busy the machine is.
    monkeypatch.setattr("fdadp._common.threads.N_THREADS", 1)
    sim = simulate_affr(scenario=1, n=2000, seed=0, n_points=21)
    x, y = sim.X.data_matrix[..., 0], sim.Y.data_matrix[..., 0]

    def peak(times, kept):
        def source():
            for _ in range(times):
                yield x.copy(), y.copy()

        monkeypatch.setattr(_vault, "KEPT", kept)
        tracemalloc.start()
        model(n=8000, mechanism="moments").fit_chunks(source, s=GRID, t=GRID)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1, 0)  # compiles
    few, many = peak(5, 0), peak(20, 0)
    assert many < 1.2 * few  # rows, features and responses of all chunks would be four times as much
    bound = 2**23  # less than the rows of 20 chunks, 13 MB, and more than what a fit needs besides, 6 MB
    assert few + bound / 2 < peak(20, bound) < many + 2.1 * bound
