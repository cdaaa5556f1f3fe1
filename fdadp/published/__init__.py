"""NOT PRIVATE: schemes as they were published, kept to compare with; their ledgers say what they lack.

Each warns when it is fitted, has ``privacy_spent_ = None`` and a ledger that says in its first line that it is not
private and lists what is released without noise. They read plain arrays, not a :class:`fdadp.privacy.Cohort`: what they
do to the data cannot be had from it. The private counterparts are in :mod:`fdadp.regression`, :mod:`fdadp.learners` and
:mod:`fdadp.federated`. Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
