"""Pictures of fits, predictions and curves. Needs matplotlib: ``pip install matplotlib``.

Every function returns the matplotlib ``Figure``, and raises ``MissingPlotsError`` where matplotlib is not installed.
They read the model or the curves they are given: a picture of a fit without privacy, or of a person's curve, is not
private.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
