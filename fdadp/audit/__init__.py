"""Audits: what a private procedure gives away, measured from outside.

:func:`replay_audit` measures the exact privacy loss on neighbouring data; :func:`black_box_audit` and
:func:`one_run_audit` give lower bounds on ε from scores of outputs; :func:`audit` does all three to a mechanism of the
regression, and its result has a picture. An audit can show that a claim is false; that it finds nothing is no proof.
The proofs stand with the kernel (``docs/theory/kernel.md``). Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdadp._common.lazy import lazy_exports

if TYPE_CHECKING:
    from fdadp.audit.black_box import BlackBoxAudit as BlackBoxAudit
    from fdadp.audit.black_box import OneRunAudit as OneRunAudit
    from fdadp.audit.black_box import black_box_audit as black_box_audit
    from fdadp.audit.black_box import one_run_audit as one_run_audit
    from fdadp.audit.mechanisms import MECHANISMS as MECHANISMS
    from fdadp.audit.mechanisms import MechanismAudit as MechanismAudit
    from fdadp.audit.mechanisms import audit as audit
    from fdadp.audit.replay import Neighbours as Neighbours
    from fdadp.audit.replay import ReplayAudit as ReplayAudit
    from fdadp.audit.replay import replay_audit as replay_audit

_MODULES = {
    "black_box": "BlackBoxAudit OneRunAudit black_box_audit one_run_audit",
    "mechanisms": "MECHANISMS MechanismAudit audit",
    "replay": "Neighbours ReplayAudit replay_audit",
}
_EXPORTS = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
