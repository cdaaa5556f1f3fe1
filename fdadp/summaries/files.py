"""Files and summary tables of private summaries: releases and settings, nothing of the curves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fdadp import storage
from fdadp._typing import FloatArray
from fdadp.errors import FileFormatError
from fdadp.privacy import Bounds, Ledger, Privacy

__all__ = ["load", "save", "summary"]


def save(
    path: str | os.PathLike[str], kind: str, model: Any, content: Mapping[str, Any], arrays: Mapping[str, FloatArray]
) -> Path:
    """Write a fitted summary: its own `content` and `arrays`, and what all summaries have."""
    params = model.get_params(deep=False)
    # A budget is a live object of one session; pilot curves may be large. The ledger keeps what was spent.
    params["privacy"] = asdict(replace(model.privacy_, budget=None, prior=None))
    columns = model._columns
    shared = {
        "params": {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()},
        "kind": model._kind,
        "columns": None if columns is None else [c.item() if isinstance(c, np.generic) else c for c in columns],
        "ledger": model.ledger_.to_json(),
    }
    return storage.write(path, kind, {**shared, "own": dict(content)}, {**arrays, "grid": model.grid_})


def load(path: str | os.PathLike[str], kind: str, model: Any) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Read a summary into an empty model; returns its own content and arrays."""
    content, arrays = storage.read(path, kind)
    try:
        settings = dict(content["params"]["privacy"])
        settings["bounds"] = Bounds(**{k: v and tuple(v) for k, v in settings["bounds"].items()})
        model.set_params(**{**content["params"], "privacy": Privacy(**settings)})
        model.privacy_, model.ledger_ = model.privacy, Ledger.from_json(content["ledger"])
        model._kind, model.grid_ = content["kind"], arrays["grid"]
        model._columns = None if content["columns"] is None else pd.Index(content["columns"])
        return content["own"], arrays
    except (KeyError, TypeError) as exc:
        raise FileFormatError(f"path must hold a complete {kind}, got {str(path)!r}, which lacks {exc}") from exc


def summary(title: str, model: Any, facts: list[tuple[str, str, str, str]]) -> Any:
    """Table of facts with the ledger's first line below it, as statsmodels' ``Summary``."""
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable

    result = Summary()
    result.tables.append(SimpleTable(facts, title=title))
    result.add_extra_txt([model.ledger_.headline, f"adjacency {model.privacy_.stated_adjacency}; details: ledger_"])
    return result
