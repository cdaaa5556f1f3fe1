"""Functional principal components: one estimator, and the eigenbases it is made of.

Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
