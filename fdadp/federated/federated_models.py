"""What can be fitted by many owners: private estimators whose releases are sums with Gaussian noise.

:func:`fit_in_clear` is the protocol without masks: the same integers and model, faster; for studies of accuracy only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fdadp._common.argument_checks import is_one_of, whole
from fdadp._common.typing import FloatArray, IntArray
from fdadp.errors import InputError, PrivacyError, PublicInputWarning
from fdadp.files.atomic_writes import replacing
from fdadp.privacy.account._reservations import Binding
from fdadp.privacy.account.budget import Budget
from fdadp.privacy.guarantee_checks import UNITS
from fdadp.privacy.noise.distributed import DistributedNoise, NextRound, noise_source

if TYPE_CHECKING:
    from fdadp.federated.run_contract import Contract
    from fdadp.privacy.study import Study


@dataclass(frozen=True)
class Model:
    """How to make an estimator from a contract's settings, and empty data of the right shape.

    Attributes
    ----------
    estimator : callable
        From the settings to an unfitted estimator.
    nobody : callable
        From the settings to data of one row without a single number, for parties that only follow.
    keywords : callable
        From the settings to keyword arguments of ``fit``.
    coordinates : callable
        From an estimator and the settings to public arrays that each party computes for itself, and on which rows are
        expressed: linear algebra on other machines may turn the sign of an eigenvector.
    uniform : bool
        Whether all releases are of one kind, so that one that can be made in shares means that all can.
    draws : bool
        Whether the estimator makes public random choices, which all parties must make alike.
    """

    estimator: Callable[[dict[str, Any]], Any]
    nobody: Callable[[dict[str, Any]], tuple[FloatArray, ...]]
    keywords: Callable[[dict[str, Any]], dict[str, Any]] = lambda settings: {}
    coordinates: Callable[[Any, dict[str, Any]], tuple[FloatArray, ...]] = lambda estimator, settings: ()
    uniform: bool = False
    draws: bool = False


def _learner(name: str, settings: dict[str, Any]) -> Any:
    import fdadp.learners

    return _made(getattr(fdadp.learners, name), {k: v for k, v in settings.items() if k != "n_features"})


def _made(kind: Callable[..., Any], settings: dict[str, Any]) -> Any:
    try:
        return kind(**settings)
    except TypeError as exc:
        raise InputError(f"settings must be parameters of {kind.__name__}: {exc}") from exc


def _row(settings: dict[str, Any]) -> FloatArray:
    d = settings.get("n_features")
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise InputError(f"settings must give n_features, the number of columns of X, got {d!r}")
    return np.full((1, d), np.nan)


def _row_and_number(settings: dict[str, Any]) -> tuple[FloatArray, ...]:
    return _row(settings), np.full(1, np.nan)


def _regression(settings: dict[str, Any]) -> Any:
    from fdadp import AdditiveFunctionOnFunction, Privacy, PublicPrior
    from fdadp.private.release.mechanisms import SHORT, mechanism_of

    own = ("s", "t", "bounds", "mechanism", "prior", "allow_useless")
    privacy = _made(Privacy, {k: v for k, v in settings.items() if k not in own})
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.get("prior", {}).items()}
    name = mechanism_of(settings.get("mechanism", "dp-aff")).name
    mechanism = SHORT[name](prior=_made(PublicPrior, given), allow_useless=settings.get("allow_useless", False))
    return AdditiveFunctionOnFunction(privacy=privacy, bounds=settings.get("bounds"), mechanism=mechanism)


def _white(estimator: Any, settings: dict[str, Any]) -> tuple[FloatArray, ...]:
    design = estimator.mechanism.prior.design(settings["s"], settings["t"])
    return design.only.whitening, design.response


def _curves(settings: dict[str, Any]) -> tuple[FloatArray, ...]:
    return tuple(np.full((1, len(grid)), np.nan) for grid in _grids(settings).values())


def _grids(settings: dict[str, Any]) -> dict[str, Any]:
    grids = {name: settings.get(name) for name in ("s", "t")}
    for name, grid in grids.items():
        if not isinstance(grid, list):
            raise InputError(f"settings must give {name}, the grid of the curves, got {grid!r}")
    return grids


MODELS: dict[str, Model] = {
    "pca": Model(partial(_learner, "DPPCA"), lambda settings: (_row(settings),), draws=True),
    "linear": Model(partial(_learner, "DPLinearRegression"), _row_and_number),
    "gaussian-naive-bayes": Model(partial(_learner, "DPGaussianNB"), _row_and_number),
    "kmeans": Model(partial(_learner, "DPKMeans"), lambda settings: (_row(settings),), draws=True),
    "regression": Model(_regression, _curves, _grids, _white, uniform=True),
}
"""By name. ``"pca"`` is DPDPCA; ``"regression"`` the additive function-on-function model; settings are the parameters
of the estimators, and n_features of a table. Those of the regression: of Privacy, bounds, the short name of a mechanism
with its prior and allow_useless, and the grids s and t."""


def check(contract: Contract) -> None:
    """Refuse a contract whose model cannot be fitted in shares; tried by a dry run with totals of zero.

    Up to the first release where they are all of one kind.

    Raises
    ------
    InputError, PrivacyError
        From the estimator's own checks of its settings; no data were there.
    """
    if not is_one_of(contract.model, MODELS):
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {contract.model!r}")
    if not contract.settings.keys().isdisjoint(("study", "budget")):
        raise InputError("settings must give epsilon and delta, and no study: each owner charges one of its own")
    if "epsilon" not in contract.settings:
        raise InputError("settings must give epsilon: what a run may cost is agreed on, and is no default")
    if contract.settings.get("delta") is None:
        raise InputError("settings must give delta: sums of many owners carry Gaussian noise")
    totals: list[IntArray] = []
    uniform = MODELS[contract.model].uniform
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicInputWarning)  # of totals that are nobody's
        while isinstance(waits := fit(contract, None, totals), NextRound) and not uniform:
            totals.append(np.zeros(waits.size, dtype=np.int64))


def charge(contract: Contract, study: Study, by: str) -> None:
    """Take the whole budget of a contract from an owner's own study, once; on the disk when this returns.

    Parameters
    ----------
    contract : Contract
    study : Study
    by : str
        Name of the owner's folder: another folder is refused.

    Raises
    ------
    PrivacyError
        The study has not got so much, protects something else, or has other bounds of a column; or the contract was
        charged from another folder.
    """
    of = contract.settings
    bounds = of.get("bounds")
    for column, agreed in bounds.items() if isinstance(bounds, dict) else ():
        fixed = study.bounds_of(column)
        if fixed is not None and list(fixed) != list(agreed):
            raise PrivacyError(
                f"the contract's bounds of {column} must be the study's, {list(fixed)}, got {agreed}. Nothing was spent"
            )
    adjacency = of.get("adjacency") or ("add-remove" if of.get("n") is None else "zero-out")
    digest = contract.digest.hex()
    public = {"purpose": of.get("purpose") or "a contract of many owners", "contract": digest}
    about = {"mechanism": f"federated {contract.model}", "public": public, "secure": not contract.simulation}
    study.charge(
        Budget(of["epsilon"], of["delta"]),
        Binding(digest, UNITS[contract.groups], adjacency),
        about,
        name=f"contract {digest}",
        by=by,
    )


def seed_of(random_state: int | None, owner: int) -> int | None:
    """Seed of one owner's shares in a simulation, another one for each; raises InputError for what is no seed."""
    return None if random_state is None else 1000 * whole(random_state, "random_state", least=0) + owner


def _settings(contract: Contract) -> dict[str, Any]:
    """The contract's settings; the name of the run seeds public random choices where they do not say how."""
    if not MODELS[contract.model].draws:
        return dict(contract.settings)
    seed = int.from_bytes(contract.run.encode(), "big") % (2**31 - 1)
    return {"random_state": seed, **contract.settings}


def _nobody(contract: Contract) -> tuple[FloatArray, ...]:
    rows = MODELS[contract.model].nobody(dict(contract.settings))
    return (*rows, np.zeros(1)) if contract.groups else rows


def check_owners(contract: Contract, data: Sequence[tuple[Any, ...]]) -> None:
    """Refuse data of another number of owners, or of other shapes; raises InputError."""
    found = len(data) if isinstance(data, tuple | list) else type(data).__name__
    if found != contract.owners:
        raise InputError(f"data must be of {contract.owners} owners, got {found}")
    for rows in data:
        check_data(contract, rows)


def check_data(contract: Contract, data: tuple[Any, ...]) -> None:
    """Compare the shapes of an owner's arrays with those of the contract; values are not looked at.

    Raises
    ------
    InputError
        They differ.
    """
    wanted = [np.shape(a)[1:] for a in _nobody(contract)]
    found = [_row_shape(a) for a in data] if isinstance(data, tuple | list) else type(data).__name__
    if found != wanted or len({len(a) for a in data}) != 1:
        raise InputError(
            f"data must be a tuple of {len(wanted)} arrays of equal length with rows of shapes {wanted}, got {found}"
        )


def _row_shape(array: Any) -> Any:
    """The shape of a row; of lists of rows, which no estimator takes, that they are lists."""
    shape = np.shape(array)[1:]
    return "list" if shape and isinstance(array, tuple | list) else shape


def check_seed(contract: Contract, random_state: int | None) -> None:
    """Refuse seeded noise under a contract that is no simulation; raises PrivacyError."""
    if random_state is not None and not contract.simulation:
        raise PrivacyError("random_state must be None unless the contract is a simulation: seeded noise hides nobody")


def fingerprint(contract: Contract) -> bytes:
    """Coarsely rounded public coordinates: the same bytes for all parties whose rows can be added up."""
    model, settings = MODELS[contract.model], _settings(contract)
    arrays = model.coordinates(model.estimator(settings), settings)
    return b"".join(np.rint(a / np.abs(a).max() * 1e3).astype(">i4").tobytes() for a in arrays)


def fit(
    contract: Contract, data: tuple[Any, ...] | None, totals: Sequence[IntArray], random_state: int | None = None
) -> NextRound | Any:
    """Run the model's program with the totals that are public so far.

    Parameters
    ----------
    contract : Contract
    data : tuple of arrays, or None
        One owner's rows, with the person of each as a last array where the contract has groups. None: only follow.
    totals : sequence of ndarray of int64
    random_state : int, optional
        Seeded shares, for simulation.

    Returns
    -------
    NextRound, or the fitted estimator

    Raises
    ------
    PrivacyError
        Totals beyond the last one.
    """
    model, settings = MODELS[contract.model], _settings(contract)
    estimator, keywords = model.estimator(settings), model.keywords(settings)
    rows: tuple[Any, ...] = _nobody(contract) if data is None else tuple(data)
    check_data(contract, rows)
    if len(rows[0]) == 0:  # what an owner says must not tell that it has no rows
        rows = _nobody(contract)
    if contract.groups:
        rows, keywords["groups"] = rows[:-1], rows[-1]
    elif settings.get("n") is not None:  # then a person more or less moves no other one to another place
        rows = tuple(a[: contract.n_max] for a in rows)
    noise = DistributedNoise(
        owners=contract.owners,
        honest=contract.honest,
        n_max=contract.n_max,
        totals=totals,
        listen=data is None,
        random_state=random_state,
        simulation=contract.simulation,
        carried=contract.carried,
    )
    try:
        with noise_source(noise):
            fitted = estimator.fit(*rows, **keywords)
    except NextRound as waits:
        return waits
    noise.check_all_used()
    return fitted


def totals_to_bytes(totals: Sequence[IntArray]) -> bytes:
    """Released totals as the content of a file: of each the number of its values, and these, big-endian."""
    return b"".join(len(total).to_bytes(4, "big") + total.astype(">i8").tobytes() for total in totals)


def write_totals(file: Any, totals: Sequence[IntArray]) -> None:
    """Write them: that the file is there says that the run is over."""
    with replacing(file) as stream:
        stream.write(totals_to_bytes(totals))


def totals_from_bytes(data: bytes) -> list[IntArray]:
    """Read them; raises InputError."""
    found, at = [], 0
    while at < len(data):
        start = at + 4
        size = int.from_bytes(data[at:start], "big") if start <= len(data) else len(data)
        at = start + 8 * size
        if at > len(data):
            raise InputError("totals must be as long as they say")
        found.append(np.frombuffer(data, ">i8", size, start).astype(np.int64))
    return found


def total_of_shares(shares: Sequence[IntArray]) -> IntArray:
    """Sum of int64 shares (d,). Totals have at most 62 bits."""
    total: IntArray = np.sum(shares, axis=0, dtype=np.int64)
    return total


def fit_in_clear(contract: Contract, data: Sequence[tuple[Any, ...]], *, random_state: int | None = None) -> Any:
    """Fit as :func:`~fdadp.federated.fit_together` does, by adding the owners' shares up in clear.

    The totals are those of a run with masks, bit for bit, and so is the model. But whoever calls this sees the rows and
    shares of all owners: it stands for many owners in an experiment, for none in use, and the ledger says that nothing
    of it is for release.

    Parameters
    ----------
    contract : Contract
    data : sequence of tuples of arrays
        One for each owner.
    random_state : int, optional
        Seeded shares, those of :func:`~fdadp.federated.fit_together` with this seed.

    Returns
    -------
    The fitted estimator.

    Raises
    ------
    InputError
        Data of another number of owners, or of other shapes than the contract's.

    Examples
    --------
    >>> import numpy as np
    >>> from fdadp.federated import Contract
    >>> terms = Contract("pca", {"epsilon": 1.0, "delta": 1e-6, "data_norm": 5.0, "n_features": 4}, 5, n_max=10_000)
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [2.0, 0.3, 0.3, 0.3]
    >>> model = fit_in_clear(terms, [(part,) for part in np.array_split(X, 5)], random_state=0)
    >>> abs(model.components_[0]).round(1)
    array([1., 0., 0., 0.])
    """
    check_owners(contract, data)
    contract = replace(contract, simulation=True)
    totals: list[IntArray] = []
    while True:
        waits = fit(contract, None, totals)
        if not isinstance(waits, NextRound):
            return waits
        shares = [_share(contract, rows, totals, random_state, i) for i, rows in enumerate(data)]
        totals.append(total_of_shares(shares))


def _share(contract: Contract, rows: tuple[Any, ...], totals: list[IntArray], seed: int | None, i: int) -> IntArray:
    waits = fit(contract, rows, totals, seed_of(seed, i))
    assert isinstance(waits, NextRound) and waits.share is not None
    return waits.share
