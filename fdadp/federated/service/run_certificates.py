"""Certificates of one run (X.509), and connections in which both sides show one (TLS 1.3, RFC 8446).

An authority is made for the run, certifies the coordinator and the owners of a contract, and its secret key is
forgotten: nobody can be added. An owner's certificate is for the key that the contract names, with which it also signs
messages. What TLS signs begins with 64 spaces, so neither signature can stand for the other.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fdadp._common.argument_checks import whole
from fdadp.errors import InputError, PrivacyError
from fdadp.federated.run_contract import Contract
from fdadp.files.atomic_writes import PUBLIC, SECRET, replacing

AUTHORITY, COORDINATOR = "ca.crt", "coordinator"
MOST_DAYS = 36500
"""For which certificates are valid."""


def new_certificates(contract: Contract, host: str, folder: str | os.PathLike[str], *, days: int = 365) -> list[Path]:
    """Make the certificates of a run.

    Parameters
    ----------
    contract : Contract
        It names the owners' keys.
    host : str
        Name or address under which owners reach the coordinator.
    folder : path
        For ``ca.crt``, ``coordinator.crt``, the secret ``coordinator.key``, and ``owner-1.crt`` and so on.
    days : int
        How long they are valid.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        No host, or no number of days.
    PrivacyError
        Certificates are there already.
    ProtocolError
        The contract names no keys.
    """
    contract.check_final()
    days, home, served_as = whole(days, "days", least=1, most=MOST_DAYS), Path(folder), _host(host)
    if (home / AUTHORITY).exists():
        raise PrivacyError(f"folder must hold no certificates yet, got {str(folder)!r}, which has {AUTHORITY}")
    authority, own = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    issuer = _name(f"fdadp run {contract.digest.hex()[:16]}")
    until = datetime.now(UTC) + timedelta(days=days)

    def certified(name: x509.Name, key: Ed25519PublicKey, usage: list[tuple[x509.ExtensionType, bool]]) -> bytes:
        made = (
            x509.CertificateBuilder(issuer, name, key, x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(days=1))  # clocks differ
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        )
        for extension, critical in usage:
            made = made.add_extension(extension, critical=critical)
        return bytes(made.sign(authority, None).public_bytes(serialization.Encoding.PEM))

    served = [*_leaf(ExtendedKeyUsageOID.SERVER_AUTH), (x509.SubjectAlternativeName([served_as]), False)]
    files = {
        f"{COORDINATOR}.crt": certified(_name(COORDINATOR), own.public_key(), served),
        **{
            f"{name}.crt": certified(
                _name(name),
                Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)),
                _leaf(ExtendedKeyUsageOID.CLIENT_AUTH),
            )
            for name, key in zip(contract.names, contract.owner_keys, strict=True)
        },
        f"{COORDINATOR}.key": own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        AUTHORITY: certified(issuer, authority.public_key(), _root()),  # last: with it they are all there
    }
    for name, content in files.items():
        (home / name).unlink(missing_ok=True)
        with replacing(home / name, SECRET if name.endswith(".key") else PUBLIC) as stream:
            stream.write(content)
    return [home / name for name in files]


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(host))
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise InputError(f"host must be a name as in a URL, in ASCII, or an address, got {host!r}")
    return x509.DNSName(host)


def _leaf(purpose: x509.ObjectIdentifier) -> list[tuple[x509.ExtensionType, bool]]:
    """What a certificate of a party may do: show who it is, in one of both roles."""
    return [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(digital_signature=True), True),
        (x509.ExtendedKeyUsage([purpose]), False),
    ]


def _root() -> list[tuple[x509.ExtensionType, bool]]:
    return [(x509.BasicConstraints(ca=True, path_length=0), True), (_key_usage(key_cert_sign=True), True)]


def _key_usage(**wanted: bool) -> x509.KeyUsage:
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    more = ("key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{name: wanted.get(name, False) for name in (*names, *more)})


def server_connections(folder: str | os.PathLike[str]) -> ssl.SSLContext:
    """How the coordinator speaks: with its files of :func:`new_certificates`, to owners of the run alone."""
    home = Path(folder)
    return _context(ssl.PROTOCOL_TLS_SERVER, home / AUTHORITY, home / f"{COORDINATOR}.crt", home / f"{COORDINATOR}.key")


def owner_connections(authority: Any, certificate: Any, key: Any) -> ssl.SSLContext:
    """How an owner speaks, to the coordinator of the run alone.

    Parameters
    ----------
    authority, certificate : path
        ``ca.crt`` and ``owner-1.crt``, ...
    key : path
        This owner's secret key.

    Raises
    ------
    PrivacyError
        A file is no certificate, or the certificate is not for this key.
    """
    return _context(ssl.PROTOCOL_TLS_CLIENT, authority, certificate, key)


def _context(side: int, authority: Any, certificate: Any, key: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED  # an owner's context asks for the host's name, too
    try:
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as exc:
        raise PrivacyError(
            f"certificates must be PEM files of one run, with this party's key, got {authority!s} and {certificate!s}"
        ) from exc
    return context
