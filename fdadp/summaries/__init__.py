"""Private summaries: of curves (mean with bands, covariance and eigenfunctions), and of numbers and classes.

Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
