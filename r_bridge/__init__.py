"""The bridge to R: refund, mgcv and VGAM called from Python, and fdadp checked against them.

* :func:`status`: what is there, what is missing, which command mends it.
* :mod:`r_bridge.mgcv`, :mod:`r_bridge.refund`, :mod:`r_bridge.vgam`: typed calls with plain results, through rpy2.
* :func:`record`, :func:`check`: record what R gives, replay it anywhere without R.
* :func:`crosscheck`, :func:`crosscheck_terms`: the same data through R, live.
* ``python -m r_bridge status | record | check | crosscheck``; a pytest plugin with the fixture ``refund_reference``.

Neither R nor rpy2 is loaded before the first call that needs them.

Examples
--------
>>> import r_bridge
>>> print(r_bridge.status())  # doctest: +SKIP
R          4.2.2 (/usr/lib/R)
rpy2       3.6.4
...
"""

from __future__ import annotations

from fdadp._common.lazy import lazy_exports

_EXPORTS = {
    "RBridgeUnavailable": "r_bridge.errors",
    "RError": "r_bridge.errors",
    "RWarning": "r_bridge.errors",
    "Frame": "r_bridge.convert",
    "status": "r_bridge._status",
    "check": "r_bridge._check_recorded",
    "crosscheck": "r_bridge._crosscheck_additive",
    "crosscheck_terms": "r_bridge._crosscheck_terms",
    "record": "r_bridge._record_cases",
}

__all__ = sorted(_EXPORTS)

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
