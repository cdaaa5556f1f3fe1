"""Masked sums on Flower: coordinator and owners in processes, and on machines, of their own.

Flower carries bytes and starts processes; the protocol (:mod:`fdadp.federated.owners`) knows nothing of it.

================= ===============================================================================================
``apps``          an owner, on a SuperNode; the coordinator, beside the SuperLink; what travels between
``localhost_run`` SuperLink, SuperNodes and a run on this machine alone; the demonstration
``app/``          the Flower app: a ``pyproject.toml`` that names the two apps
================= ===============================================================================================

Those who run it
----------------
*Terms.* All owners agree on a draft of the contract (``Contract(..., transport="flower").to_json()``), public JSON.
Each makes a key and sends its public half to all others. The coordinator makes the final contract::

    python -m fdadp study key /safe/owner-1.pem
    python -m fdadp federated contract draft.json contract.json --owner owner-1.pem.pub --owner owner-2.pem.pub ...

``contract.json`` goes to all owners, who read its SHA-256 and those of their own public keys to each other by
telephone. The keys that an owner compared it puts into a folder of its own. It answers for no other terms than its own
copy.

*Certificates.* The coordinator's SuperLink needs a certificate for its name, from an authority (``ca.pem``) that all
parties know; one made for this purpose is enough::

    openssl req -x509 -newkey rsa:4096 -nodes -days 365 -subj "/CN=our own CA" -keyout ca.key -out ca.pem
    openssl req -newkey rsa:4096 -nodes -subj "/CN=coordinator" -keyout server.key -out server.csr
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -out server.pem \\
        -extfile <(printf "subjectAltName=DNS:coordinator,IP:127.0.0.1")

(Parts of the SuperLink talk to each other on 127.0.0.1, so that the certificate must name it.)

*Coordinator.* ::

    flower-superlink --host 0.0.0.0 --disable-runtime-dependency-installation --database superlink.db \\
        --ssl-certfile server.pem --ssl-keyfile server.key --ssl-ca-certfile ca.pem --enable-supernode-auth

``flwr`` finds it by ``config.toml`` in ``$FLWR_HOME`` (``~/.flwr``)::

    [superlink.my-superlink]
    address = "coordinator:8000"
    root-certificates = "/path/ca.pem"

*Nodes.* Each owner makes a key for Flower (``ssh-keygen -t ecdsa -b 384 -f owner-3.key``) and sends its public half to
the coordinator, who admits it with ``flwr supernode register owner-3.key.pub my-superlink``. At each owner::

    flower-supernode --superlink coordinator:8000 --root-certificates ca.pem --auth-supernode-private-key owner-3.key \\
        --node-config "contract='/safe/contract.json' key='/safe/owner-3.pem' verified='/safe/verified'
        store='/safe/masks' data='/safe/rows.npz' out='/safe/totals'"

``key`` is the owner's secret key, whose public half the contract names; ``verified`` the folder of the other owners'
public keys that this owner compared. ``data`` is an ``.npz`` file with the arrays X, or X and y (or Y), in this order;
or ``module:function``, which is called without arguments and returns them as a tuple. ``out`` is for the totals.
``FLWR_TELEMETRY_ENABLED=0`` and ``FLWR_DISABLE_UPDATE_CHECK=1`` keep Flower from calling home.

*The run.* At the coordinator, with this package's ``app`` folder::

    flwr run .../fdadp/federated/flower/app my-superlink \\
        -c "contract='/path/contract.json' store='/path/store' out='/path/totals'"

It waits for all owners, and ends if none has answered for a day (``patience``).

*Restart.* Whatever dies is started again with the same command: SuperLink, a SuperNode, and the run itself (``flwr
run``), which goes on at the message where it was. All repeat what they have said from their ``store``: it is kept there
before it leaves. Do not delete it, copy it, or put an old copy back before the run is done.

What Flower does not protect
----------------------------
* **With Flower the coordinator can run any code at the owners.** A Flower app is code, and a SuperNode runs the app
  that the SuperLink sends it, with all that the SuperNode can read: rows, contract, key, store. What is proved of masks
  holds against others, not against a coordinator who uses that, and each ledger says so. In flwr 1.41 the same port
  takes nodes, new runs and registrations of nodes, the last two from anyone who can reach it. Let nobody but the
  coordinator and the nodes reach it, and run a SuperNode as a user, or in a container, that can read its own owner's
  files and nothing else. Where that is not enough: :mod:`fdadp.federated.service`, with which no code travels.
* *Signed apps* are Flower's remedy: ``flower-supernode --trusted-entities keys.yaml`` (identifiers and Ed25519 public
  keys) refuses every app that none of these has signed. Signatures come with apps from Flower's hub only; this app is
  not there. Owners who want it publish the app, review it, sign it there and run it by its name in the hub.
* An owner is the node that signs with the key in the contract. ``--enable-supernode-auth`` decides who may connect.
* Without TLS (``--insecure``, as in the demonstration on 127.0.0.1) who listens sees shares, hence totals and model.

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

    Examples
    --------
    >>> require_flower()  # says what to install where Flower is missing
    """
    if find_spec("flwr") is None:
        raise InputError("the Flower engine needs flwr (Python 3.11 or newer): pip install 'flwr>=1.41,<1.42'")
