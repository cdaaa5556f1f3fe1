"""The many-owner protocol as Flower apps: proxy, data user and owners in processes, and on machines, of their own.

Flower carries bytes and starts processes; the protocol (:mod:`fdadp.federated.parties`) knows nothing of it.

============== ==================================================================================================
``transport``  bytes as Flower messages; Flower's grid as the proxy's transport, which finds out who is where
``client_app`` an owner or the data user, on a SuperNode
``server_app`` the proxy, beside the SuperLink
``store``      what a party must not forget between two messages, in a folder of its own
``local``      SuperLink, SuperNodes and a run on this machine alone; the demonstration
``app/``       the Flower app: a ``pyproject.toml`` that names the two apps
============== ==================================================================================================

Those who run it
----------------
Beforehand all parties agree on the contract, a file of public JSON. Each party keeps its own copy and answers for no
other terms. On a machine of the coordinator::

    flower-superlink --host 0.0.0.0 --disable-runtime-dependency-installation \\
        --ssl-certfile server.pem --ssl-keyfile server.key --ssl-ca-certfile ca.pem --enable-supernode-auth

Each party makes a key (``ssh-keygen -t ecdsa -b 384 -f owner-3.key``) and sends its public half to the
coordinator, who admits it with ``flwr supernode register owner-3.key.pub my-superlink``. At each owner, and at the data
user (``party='user'``, without ``data``)::

    flower-supernode --superlink coordinator:8000 --root-certificates ca.pem --auth-supernode-private-key owner-3.key \\
        --node-config "party='owner-3' contract='/safe/contract.json' store='/safe/fdadp' data='/safe/rows.npz'"

Then, at the coordinator, ``flwr run`` with this package's ``app`` folder::

    flwr run .../fdadp/federated/flower/app my-superlink -c "contract='/path/contract.json' out='/path/totals'"

``data`` is an ``.npz`` file with the arrays X, or X and y (or Y), in this order; or ``module:function``, which is
called without arguments and returns them as a tuple. ``FLWR_TELEMETRY_ENABLED=0`` and ``FLWR_DISABLE_UPDATE_CHECK=1``
keep Flower from calling home.

What Flower does not protect
----------------------------
* A Flower app is code, and a SuperNode runs the app that the SuperLink sends it, with all that the SuperNode can read.
  In flwr 1.41 the same port takes nodes, new runs and registrations of nodes, the last two from anyone who can reach
  it. Let nobody but the coordinator and the nodes reach it, and run a SuperNode as a user, or in a container, that can
  read its owner's rows and nothing else: owners trust the coordinator's machine with more than the protocol asks for.
  (``--trusted-entities`` restricts a SuperNode to apps that Flower's hub has signed; this one is not among them.)
* Names of parties are what SuperNodes say they are. ``--enable-supernode-auth`` decides who may connect at all; of two
  nodes with one name the run is refused.
* Without TLS (``--insecure``, as in the demonstration on 127.0.0.1) who listens sees ciphertexts, totals and names.

The engine needs POSIX (file locks, process groups) and Python 3.11.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fdadp.errors import InputError

__all__ = ["APP", "require_flower"]

APP = Path(__file__).parent / "app"
"""Folder of the Flower app, for ``flwr run``."""


def require_flower() -> None:
    """Say what to install where Flower is not.

    Raises
    ------
    InputError
        There is no flwr.
    """
    if find_spec("flwr") is None:
        raise InputError("the Flower engine needs flwr (Python 3.11 or newer): pip install 'flwr>=1.41,<1.42'")
