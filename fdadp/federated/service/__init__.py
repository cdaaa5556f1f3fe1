"""Owners of masked sums on machines of their own: a coordinator that only listens, owners that only call.

========================= =========================================================================================
``run_certificates``      certificates of one run, and TLS 1.3 with them: both sides show one
``coordinator_service``   collects signed messages over HTTP, forwards them, runs nothing at the owners
``owner_client``          an owner polls outward, so that no hospital opens a port
========================= =========================================================================================

What is said, and what each party keeps before it says so: :mod:`fdadp.federated.owners`. Whose message it is says its
signature alone; certificates keep strangers out. No code travels.
"""

from importlib.util import find_spec

from fdadp.errors import InputError

for _package in ("cryptography", "httpx", "starlette", "uvicorn"):
    if find_spec(_package) is None:
        raise InputError(f"owners on machines of their own need {_package}: pip install 'fdadp[service]'")
