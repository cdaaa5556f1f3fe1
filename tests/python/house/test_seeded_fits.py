"""Seeded fits give the numbers that they gave before: what is not meant to change them does not.

``seeded_fits.json`` holds the shape of each array, its largest absolute value, its norm and its first eight numbers,
and says which commit computed them. Not compared: what is missing in private fits (NaN); smoothing parameters of fits
without privacy, which may be of any size where the criterion is flat; effective degrees of freedom of "output", which
are rounding about zero. Other processors round otherwise: 5e-8 of an array's size was seen, 1e-6 is allowed.

Where a fit is meant to give other numbers, this writes them ("new": all that are not there yet); say so in the file's
"about": ``PYTHONPATH=tests/python python tests/python/house/test_seeded_fits.py NAME ...``
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_registry import LEARNERS, toy
from output_perturbation import OutputPerturbation

from fdadp import AdditiveFunctionOnFunction, Privacy, PrivateFPCA, PrivateMean, simulate_affr
from fdadp.published import PublishedNoise

STORED = Path(__file__).with_name("seeded_fits.json")
FIRST, CLOSE, DIGITS = 8, 1e-6, 10
BOUNDS = {"X": (-4.5, 4.5), "Y": (-8.0, 8.0)}
ADJACENCIES = ("zero-out", "add-remove", "replace")
FITTED = (
    *("coef_", "mean_", "noise_variance_", "edf_", "smoothing_parameters_", "residual_variance_", "eigenvalues_"),
    *("r2_", "criterion_"),
)
Arrays = dict[str, Any]


@functools.cache
def curves(scenario: int = 1, n: int = 300, *, gaps: bool = False) -> tuple[Any, Any]:
    sim = simulate_affr(scenario, n, np.random.default_rng(5), n_points=31)
    X, Y = sim.X.data_matrix[..., 0].copy(), sim.Y.data_matrix[..., 0].copy()
    if gaps:
        rng = np.random.default_rng(1)
        for table in (X, Y):
            table[rng.random(table.shape) < 0.1] = np.nan
    return X, Y


def plain(**settings: Any) -> AdditiveFunctionOnFunction:
    return AdditiveFunctionOnFunction(n_basis_x=7, n_basis_s=7, progress=False, **settings)


def private(mechanism: Any = "dp-aff", **guarantee: Any) -> AdditiveFunctionOnFunction:
    privacy = Privacy(**{"epsilon": 2.0, "delta": 1e-6, "random_state": 3, **guarantee})
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=BOUNDS, mechanism=mechanism, progress=False)


def summary(kind: Any, adjacency: str, **settings: Any) -> Any:
    n = None if adjacency == "add-remove" else 3000
    privacy = Privacy(2.0, 1e-6, n=n, adjacency=adjacency, random_state=3)
    return kind(privacy=privacy, bounds=BOUNDS["Y"], **settings).fit(curves(2, 3000)[1])


def of_model(model: Any, X: Any = None) -> Arrays:
    """Numbers of a fit to curves, with predictions for the first five."""
    found = {name: getattr(model, name) for name in FITTED if getattr(model, name, None) is not None}
    if X is not None:
        found |= {"predict": model.predict(X[:5]), "se": model.predict_se(X[:5])}
    return found


def of_learner(entry: Any) -> Arrays:
    """Numbers that a learner keeps, with predictions for the first five rows."""
    rows, target = toy(entry.kind)
    model = entry.make(random_state=4)
    model.fit(rows) if target is None else model.fit(rows, target)
    found = {name: value for name, value in vars(model).items() if name.endswith("_") and is_numbers(value)}
    method = next((name for name in ("predict_proba", "predict", "transform") if hasattr(model, name)), None)
    return found if method is None else found | {method: getattr(model, method)(rows[:5])}


def is_numbers(value: Any) -> bool:
    try:
        np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def of_chunks() -> Arrays:
    (X, Y), grid = curves(), np.linspace(0, 1, 31)
    return of_model(private(n=300).fit_chunks([(X[:100], Y[:100]), (X[100:], Y[100:])], s=grid, t=grid), X)


def configurations() -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Each fit by its name."""

    def fit(model: Any, *data: Any, **more: Any) -> Callable[[], Arrays]:
        X, Y = curves(*data, **more)
        return lambda: of_model(model.fit(X, Y), np.nan_to_num(X))

    for scenario in (1, 2, 3):
        yield f"plain S{scenario} 7x7", fit(plain(), scenario, 100)
    yield "plain gcv K3", fit(plain(smoothing="gcv", n_components=3))
    yield "plain fpca gaps", fit(plain(missing="fpca"), 1, 200, gaps=True)
    mechanisms = {"dp-aff": "dp-aff", "moments": "moments", "output": OutputPerturbation()}
    for mechanism, adjacency, delta in itertools.product(mechanisms, ADJACENCIES, (1e-6, None)):
        if mechanism == "dp-aff" or delta or adjacency == "zero-out":
            n = None if adjacency == "add-remove" else 300
            model = private(mechanisms[mechanism], delta=delta, adjacency=adjacency, n=n)
            yield f"{mechanism} {adjacency} {'approx' if delta else 'pure'}", fit(model)
    X, Y = curves()
    yield "dp-aff groups", lambda: of_model(private(n=100, epsilon=6.0).fit(X, Y, groups=np.arange(300) // 3), X)
    yield "dp-aff S2 3000", fit(private(n=3000), 2, 3000)
    yield "moments S2 3000", fit(private("moments", n=3000), 2, 3000)
    yield "dp-aff gaps", fit(private(n=200, epsilon=5.0), 1, 200, gaps=True)
    yield "dp-aff chunks", of_chunks
    for adjacency in ADJACENCIES:
        yield f"mean {adjacency}", lambda a=adjacency: of_model(summary(PrivateMean, a))
        yield f"fpca {adjacency}", lambda a=adjacency: of_model(summary(PrivateFPCA, a, n_components=3))
    yield "published", fit(plain(privacy=Privacy(1.0, random_state=1), mechanism=PublishedNoise()))
    for entry in LEARNERS:
        yield f"learner {entry}", functools.partial(of_learner, entry)


CONFIGURATIONS = dict(configurations())


def left_out(name: str, key: str) -> bool:
    """Numbers that no comparison can hold (see above)."""
    plain_fit = name.startswith(("plain", "published"))
    return (plain_fit and key == "smoothing_parameters_") or (name.startswith("output") and key == "edf_")


def digest(name: str, arrays: Arrays) -> dict[str, Any]:
    """What the file keeps of a fit."""
    kept = {}
    for key, value in arrays.items():
        array = np.asarray(value, dtype=np.float64)
        if array.size and np.isfinite(array).all() and not left_out(name, key):
            numbers = [
                float(f"{v:.{DIGITS}g}") for v in (np.abs(array).max(), np.linalg.norm(array), *array.ravel()[:FIRST])
            ]
            kept[key] = {"shape": list(array.shape), "largest": numbers[0], "norm": numbers[1], "first": numbers[2:]}
    return kept


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Where two digests differ by more than is allowed."""
    off = [f"{key}: there, or not" for key in found.keys() ^ wanted.keys()]
    for key in found.keys() & wanted.keys():
        a, b = found[key], wanted[key]
        if a["shape"] != b["shape"]:
            off.append(f"{key}: of shape {a['shape']}, was {b['shape']}")
        elif not np.allclose(a["first"], b["first"], rtol=0, atol=CLOSE * b["largest"]):
            off.append(f"{key}: {a['first']}, was {b['first']}")
        elif not abs(a["norm"] - b["norm"]) <= CLOSE * b["norm"]:
            off.append(f"{key}: of norm {a['norm']}, was {b['norm']}")
    return sorted(off)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_seeded_fit_gives_what_it_gave(name: str) -> None:
    assert differences(digest(name, CONFIGURATIONS[name]()), stored()["fits"][name]) == []


def test_the_file_has_these_fits_and_no_others() -> None:
    assert stored()["fits"].keys() == CONFIGURATIONS.keys()


def test_what_differs_is_seen() -> None:
    wanted = digest("a", {"x": np.arange(20.0), "y": 1.0, "nan": np.nan})
    assert wanted.keys() == {"x", "y"} and differences(wanted, wanted) == []
    beyond = np.arange(20.0)
    beyond[19] += 1e-3  # not among the first eight
    others = ({"x": np.arange(20.0)}, {"x": np.arange(20.0), "y": 1 + 1e-5}, {"x": beyond, "y": 1.0})
    others += ({"x": np.arange(20.0)[None], "y": 1.0},)
    assert [len(differences(digest("a", other), wanted)) for other in others] == [1, 1, 1, 1]
    assert differences(digest("a", {"x": np.arange(20.0) + 1e-6, "y": 1.0}), wanted) == []


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def write(names: list[str]) -> None:
    """Write the digests of the fits named, and keep the others."""
    warnings.simplefilter("ignore")
    about, fits = stored().values()
    chosen = [name for name in CONFIGURATIONS if name in names or ("new" in names and name not in fits)]
    fits |= {name: digest(name, CONFIGURATIONS[name]()) for name in chosen}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(fits[name])}" for name in CONFIGURATIONS)
    STORED.write_text(f'{{\n "about": {json.dumps(about)},\n "fits": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
