"""Differentially private learners on the privacy kernel, with scikit-learn's interface.

Everything that depends on private rows comes from a :class:`fdadp.privacy.Cohort`; what a learner needs to know
besides (classes, bounds, bins, iterations) is public and must be given. Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
