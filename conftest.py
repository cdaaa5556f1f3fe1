"""Doctests of modules that need an extra are not collected where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec

NEED_FLOWER = ("client_app.py", "server_app.py", "transport.py")
collect_ignore = [] if find_spec("flwr") else [f"fdadp/federated/flower/{name}" for name in NEED_FLOWER]
