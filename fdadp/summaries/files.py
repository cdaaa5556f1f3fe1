"""Files and summary tables of private summaries: releases and settings, nothing of the curves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdadp._common.typing import FloatArray
from fdadp.files.container import Layout, complete
from fdadp.files.records import labels_from_json, labels_to_json
from fdadp.privacy import Ledger
from fdadp.privacy.study.verified import record_model
from fdadp.private.release.mechanisms import params_from_json, params_to_json

if TYPE_CHECKING:
    from pandas import Index

MEAN = Layout("private-mean", {"grid": "T", "mean": "T", "noise": "T m", "sampling": "T m", "clipping": "T m"})
COMPONENTS = Layout(
    "private-fpca",
    {"grid": "T", "weights": "T", "mean": "T", "functions": "K T", "values": "K", "explained_ratio": "K"},
)


def check_saveable(model: Any, columns: Index[Any] | None) -> None:
    """Refuse before a fit what a file of it could not hold: settings and labels of columns; raises InputError."""
    params_to_json(model)
    labels_to_json(columns, "Y")


def save(
    path: str | os.PathLike[str],
    layout: Layout,
    model: Any,
    content: Mapping[str, Any],
    arrays: Mapping[str, FloatArray],
    note: str,
) -> Path:
    """Write a fitted summary: its own `content` and `arrays`, what all have, and a `note` on how accurate it is."""
    shared = {
        "params": params_to_json(model, model._fitted_with),
        "kind": model._kind,
        "columns": labels_to_json(model._columns, "Y"),
        "ledger": model.ledger_.to_json(),
        "notes": [note],
    }
    arrays = {**arrays, "grid": model.grid_}
    written = layout.write(path, {**shared, "own": dict(content)}, arrays, released=model.ledger_.for_release)
    record_model(written, model.ledger_, model.privacy_)
    return written


def load(path: str | os.PathLike[str], layout: Layout, model: Any) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Read a summary into an empty model; returns its own content and arrays."""
    content, arrays = layout.read(path)
    with complete(path, layout.kind):
        model.set_params(**params_from_json(content["params"]))
        model.privacy_, model.ledger_ = replace(model.privacy), Ledger.from_json(content["ledger"])
        model._fitted_with = {"privacy": model.privacy_, "bounds": model.bounds}
        model._kind, model.grid_ = content["kind"], arrays["grid"]
        model._columns = labels_from_json(content["columns"])
        return dict(content["own"]), arrays


def summary(title: str, model: Any, facts: list[tuple[str, str, str, str]]) -> Any:
    """Table of facts with the ledger's first line below it, as statsmodels' ``Summary``."""
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable

    result = Summary()
    result.tables.append(SimpleTable(facts, title=title))
    result.add_extra_txt([model.ledger_.headline, f"adjacency {model.privacy_.stated_adjacency}; details: ledger_"])
    return result
