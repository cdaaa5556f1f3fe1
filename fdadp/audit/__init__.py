"""Audits: what a private procedure gives away, measured from outside.

:func:`replay_audit` measures the exact privacy loss on neighbouring data; :func:`black_box_audit` and
:func:`one_run_audit` give lower bounds on ε from scores of outputs; :func:`audit` does all three to a mechanism of the
regression, and its result has a picture. An audit can show that a claim is false; that it finds nothing is no proof.
The proofs stand with the kernel (``docs/theory/kernel.md``). Names are loaded on first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
