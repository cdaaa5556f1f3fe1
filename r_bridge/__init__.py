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

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    submod_attrs={
        "_check_recorded": ["check"],
        "_crosscheck_additive": ["crosscheck"],
        "_crosscheck_terms": ["crosscheck_terms"],
        "_record_cases": ["record"],
        "_status": ["status"],
        "convert": ["Frame"],
        "errors": ["RBridgeUnavailable", "RError", "RWarning"],
    },
)
