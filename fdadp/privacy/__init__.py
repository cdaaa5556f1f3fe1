"""Privacy: the kernel (`Cohort`), budget, noise, ledger, and settings. Knows nothing of curves."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
