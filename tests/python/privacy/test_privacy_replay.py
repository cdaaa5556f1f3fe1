"""Replay: exact losses stay within their shares, the audit sees broken mechanisms; and rows stay hidden."""

from __future__ import annotations

import ast
import copy
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from privacy_tools import COUNT, MODES, RELEASES, assemble, run, toy
from scipy import stats

from fdadp.errors import PrivacyError
from fdadp.privacy import Budget, Cohort, OpenDPNoise, SeededNoise, TapeNoise
from fdadp.privacy.replayed_loss import losses
from fdadp.privacy.rows._clipped_sums import L1, L2, LINF, quantise

ROOT = Path(__file__).resolve().parents[3]


def fit(c):
    """A little fit whose later clips depend on earlier releases."""
    n = c.n or c.count(share=0.05, floor=5).value
    scale = c.geometric_mean(lambda r: np.abs(r[0][:, 0]), 0.01, 100.0, share=0.1, name="scale", n=n).value
    mean = c.sum(lambda r: np.clip(r[0], -scale, scale), clip=2 * scale, share=0.2, name="mean").value / n
    rows = c.derive(lambda r: r[0] - mean)
    best = rows.select(lambda r: np.abs(r[0]) < scale, share=0.1, name="best")
    outer = rows.sum_outer(lambda r: r[0], lambda r: r[0], clip=scale, share=0.3, name="outer")
    h = rows.histogram(lambda r: np.stack([r[0][:, 0] < 0, r[0][:, 0] >= 0], 1) * 1.0, share=0.2, name="h")
    return scale, mean.tolist(), best, outer.value.tolist(), h.value.tolist(), c.ledger.to_json()


def replayed(people, neighbour, grouped, pure, adjacency, seed=0, noise=SeededNoise, the_fit=fit):
    runs, tape = [], None
    for p in (people, neighbour):
        rows, ids = assemble(p, grouped)
        record = TapeNoise(noise(seed), tape)
        c = Cohort(
            rows,
            groups=ids,
            budget=Budget(1.0, None if pure else 1e-6),
            adjacency=adjacency,
            n=None if adjacency == "add-remove" else 9,
            noise=record,
        )
        runs.append((the_fit(c), record.entries))
        tape = record.entries if tape is None else tape
    return runs


@pytest.mark.each_once
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("pure", "adjacency"), MODES)
def test_exact_loss_is_within_the_budget_on_every_tape(pure, adjacency, grouped):
    people = toy(grouped)
    for i in range(9):
        if adjacency == "replace":
            neighbour = [*people[:i], people[(i + 2) % 9], *people[i + 1 :]]
        else:
            neighbour = people[:i] + people[i + 1 :]
        first, second = replayed(people, neighbour, grouped, pure, adjacency, seed=i)
        assert first[0] == second[0]
        each = losses(first[1], second[1])
        assert all(x.spent <= x.amount and x.change <= 1 for x in each)
        assert sum(x.spent for x in each) <= (1.0 if pure else Budget(1.0, 1e-6).total)
        if pure:
            assert abs(sum(x.loss for x in each)) <= 1.0


def test_mutants_show_in_the_replay():
    def exact_n(c):
        n = len(ROWS[0])
        return c.sum(lambda r: r[0], clip=1.0 / n, share=0.5, name="mean").value.tolist()

    def raw_maximum(c):
        clip = float(np.nanmax(np.where(np.isfinite(ROWS[0]), ROWS[0], 0)))
        return c.sum(lambda r: r[0], clip=clip, share=0.5, name="mean").value.tolist()

    def unnoised_mean(c):
        c.sum(lambda r: r[0], clip=1.0, share=0.5, name="mean")
        return float(np.nansum(ROWS[0]))

    people = toy(False)
    people = [people[i] for i in (0, 1, 2, 3, 8)]
    ROWS: list = []
    DONE: list = []
    for mutant in (exact_n, raw_maximum, unnoised_mean):
        pair = [people, people[:2] + people[3:]]

        def peeking(c, mutant=mutant, queue=tuple(pair)):
            # What the kernel prevents inside the package: a fit that looks at the rows beside it.
            ROWS[:] = [assemble(queue[len(DONE) % 2], False)[0]]
            DONE.append(1)
            return mutant(c)

        first, second = replayed(*pair, False, False, "zero-out", the_fit=peeking)
        assert first[0] != second[0]  # the values are forced, so any difference is a leak


def test_a_replay_that_differs_is_refused():
    ask = lambda share, size: lambda c: c.sum(lambda r: r[0][:, :size], clip=1.0, share=share, name="s")  # noqa: E731
    record = TapeNoise()
    rows = np.ones((9, 2))
    ask(0.1, 2)(Cohort(rows, budget=Budget(1.0), n=9, noise=record))
    for share, size in ((0.2, 2), (0.1, 1)):
        with pytest.raises(PrivacyError, match="replay"):
            ask(share, size)(Cohort(rows, budget=Budget(1.0), n=9, noise=TapeNoise(tape=record.entries)))
    c = Cohort(rows, budget=Budget(1.0), n=9, noise=TapeNoise(tape=record.entries))
    ask(0.1, 2)(c)
    with pytest.raises(PrivacyError, match="beyond the tape"):
        ask(0.1, 2)(c)
    with pytest.raises(PrivacyError, match="releases"):
        losses(record.entries, [])


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_loss_is_that_of_the_mass_function(kind):
    people = toy(False)
    pure = kind == "laplace"
    runs = replayed(people, people[:1] + people[2:], False, pure, "zero-out", the_fit=RELEASES["sum"])
    (a,), (b,) = runs[0][1], runs[1][1]
    law = stats.laplace if pure else stats.norm
    wanted = sum(
        law(x, a.scale).logpdf(o) - law(y, a.scale).logpdf(o)
        for x, y, o in zip(a.exact, b.exact, a.released, strict=True)
    )
    assert losses([a], [b])[0].loss == pytest.approx(wanted, abs=1e-8)


# ------------------------------------------------------------------ (g) a lower bound on epsilon, from outside


def lower_bound(hits, misses, trials):
    """Clopper-Pearson at 99.9 % a side: log(p/q)."""
    p = stats.beta.ppf(0.001, hits, trials - hits + 1)
    q = stats.beta.ppf(0.999, misses + 1, trials - misses)
    return math.log(p / q)


def audit(noise_class, trials=3000):
    present, absent = np.array([[0.0], [1.0]]), np.array([[0.0]])
    values = []
    for k, rows in enumerate((present, absent)):
        rng = np.random.default_rng(k)
        out = []
        for _ in range(trials):
            c = Cohort(rows, budget=Budget(1.0), n=2, noise=noise_class(rng))
            out.append(c.sum(lambda r: r[0], clip=1.0, share=1.0, name="s").value[0])
        values.append(np.array(out))
    return max(lower_bound((values[0] > t).sum(), (values[1] > t).sum(), trials) for t in (0.5, 1.0))


class Broken(SeededNoise):
    """Claims its share and adds a quarter of the noise."""

    def prepare(self, kind, size, sensitivity, amount, columns=1):
        import dataclasses

        quarter = super().prepare(kind, size, sensitivity, 4 * amount, columns)
        return dataclasses.replace(super().prepare(kind, size, sensitivity, amount, columns), draw=quarter.draw)


@pytest.mark.statistics
def test_black_box_audit_finds_no_violation_and_finds_the_broken_one():
    assert 0.3 < audit(SeededNoise) <= 1.0
    assert audit(Broken) > 1.5


# ------------------------------------------------------------------ integers, by generated input


@pytest.mark.parametrize("norm", [L1, L2, LINF])
def test_integers_never_exceed_the_limit(norm):
    rng = np.random.default_rng(0)
    for bits in (8, 24, 26):
        limit = 2**bits
        for trial in range(400):
            d = int(rng.integers(1, 60))
            v = rng.normal(size=d) * 10.0 ** rng.uniform(-12, 12)
            if trial % 5 == 0:
                v = np.full(d, rng.choice([1.0, 0.1, 1 / 3, 1e-160, 1e150, 5e-324]))
            if trial % 7 == 0:
                v[rng.integers(d)] = rng.choice([np.nan, np.inf, -np.inf, 1e30, 1e308, -0.0])
            clip = float(10.0 ** rng.uniform(-6, 6)) if trial % 3 else float(abs(v[0]))
            if not 1e-100 < clip < 1e100:
                clip = 1.0
            q = np.empty(d, dtype=np.int64)
            usable = quantise(v, clip, float(limit), norm, q)
            ints = [int(x) for x in q]
            square = sum(i * i for i in ints)
            size = {L1: sum(map(abs, ints)), LINF: max(map(abs, ints))}.get(norm, 0)
            assert size <= limit and (norm != L2 or square <= limit * limit)
            assert usable or not any(ints)
            if np.isfinite(v).all() and np.abs(v).max() < 1e100 and norm == L2 and usable:
                wanted = v * min(1, clip / max(np.linalg.norm(v), 1e-300)) * limit / clip
                assert np.abs(q - wanted).max() <= 1 + 1e-5 * limit / 1000


# ------------------------------------------------------------------ hidden rows


SECRET = 1234.56789


def secret_cohort():
    return Cohort(
        np.full((7, 3), SECRET), groups=[f"name{i}" for i in range(7)], budget=Budget(1.0), n=7, noise=SeededNoise(0)
    )


def test_no_attribute_gives_rows():
    c = secret_cohort()
    c.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
    assert not hasattr(c, "__dict__")
    for name in dir(c):
        if name.startswith("__") and name != "__repr__":
            continue
        value = getattr(c, name)
        text = repr(value() if name == "__repr__" else value)
        assert "1234" not in text and "name0" not in text, name
        assert not isinstance(value, np.ndarray)
    assert "1234" not in str(c.ledger) + c.ledger._repr_html_()
    inside = c._kernel, c._kernel.vault  # even the private slots show nothing by accident
    assert all(repr(item) == "<private rows>" and not hasattr(item, "__dict__") for item in inside)
    for item in (c, *inside):
        for how in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(PrivacyError, match="pickled"):
                how(item)
    for bad in (len, iter, lambda x: x[0], np.sum):
        with pytest.raises(TypeError):
            bad(c)


def test_reads_are_counted():
    c = secret_cohort()
    assert c.reads == 0
    d = c.derive(lambda r: r[0] + 1)
    assert (c.reads, d.reads) == (1, 1)
    d.sum(lambda r: r[0], clip=1.0, share=0.5, name="s")
    assert c.reads == d.reads == 2
    assert d.ledger == c.ledger and d.left == c.left == 0.5
    for adjacency in ("zero-out", "add-remove"):
        for kind, release in (RELEASES | COUNT).items():
            if kind not in ("derived", "count" if adjacency == "zero-out" else ""):
                run(release, np.ones((3, 2)), adjacency=adjacency)


def test_only_the_kernel_opens_the_vault():
    """No module of the package but those of the kernel names its private parts."""
    kernel = {"_vault", "_kernel", "cohort", "_clipped_sums", "_dask_partitions", "_exact_sums", "_loss_minimisers"}
    kernel |= {"_perturbed_minimisers", "_person_contributions", "_sealed_row_functions", "_sum_releases"}
    parts = r"privacy\.(rows|kernel)\._(vault|clipped_sums|exact_sums|kernel)"
    inside = re.compile(parts + r"|^_kernel$|_Vault__|exact_sum|\b(Vault|Kernel)\b")
    offenders = []
    for path in (ROOT / "fdadp").rglob("*.py"):
        if path.relative_to(ROOT / "fdadp").parts[0] == "privacy" and path.stem in kernel:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
        names += [a.name for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names]
        names += [n.attr for n in nodes if isinstance(n, ast.Attribute)]
        names += [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        offenders += [f"{path.name}: {x}" for x in names if inside.search(x) and len(x) < 40]
    assert offenders == []


def test_secure_noise_end_to_end():
    for pure in (False, True):
        c = Cohort(
            np.random.default_rng(0).normal(size=(300, 2)),
            budget=Budget(1.0, None if pure else 1e-6),
            noise=OpenDPNoise(),
        )
        fit(c)
        assert c.ledger.for_release
        assert c.left == pytest.approx(0.05)
