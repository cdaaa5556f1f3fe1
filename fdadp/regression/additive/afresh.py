"""Fits of the additive model that start from nothing, and leave what was there where they fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEFT = "_left_by_fit"
"""Attribute with the names of what a fit left, itself among them."""


@contextmanager
def afresh(model: Any) -> Iterator[None]:
    """Fit a model as if it were new: nothing of an earlier fit is left, and all of it comes back on an error.

    What others attached to the model, such as callbacks, stays.
    """
    state = vars(model)
    before = {name: state.pop(name) for name in state.get(LEFT, ()) if name in state}
    others = set(state)
    try:
        yield
    except BaseException:
        for name in set(state) - others:
            del state[name]
        state.update(before)
        raise
    state[LEFT] = tuple(sorted({*state, LEFT} - others))
