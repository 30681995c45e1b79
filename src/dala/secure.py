"""Certificates made on the spot, addresses of this machine, and QR codes of addresses.

Browsers offer WebGPU and cameras only to secure pages. On this machine ``http://localhost`` is one;
for a phone it takes https, and so a certificate.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from dala.extras import needing

#: Days for which a certificate is valid.
_DAYS: Final = 30


def local_addresses() -> list[str]:
    """Return the addresses of this machine in its networks, the likeliest first; none offline.

    >>> all("." in address or ":" in address for address in local_addresses())
    True
    """
    found: list[str] = []
    # Connecting a datagram socket sends nothing: it only chooses the interface.
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            found.append(probe.getsockname()[0])
    return [a for a in found if not ipaddress.ip_address(a).is_loopback]


def certificate(names: Iterable[str], call: str, extra: str = "studio") -> tuple[bytes, bytes]:
    """Return a new self-signed certificate and its key, as PEM.

    Browsers warn about it once, because no authority has signed it.

    Args:
        names: host names and IP addresses that it is for.
        call: the call that needs it, for the error.
        extra: the extra that brings the package, for the error.

    Raises:
        MissingPackage: ``cryptography`` is not installed.

    >>> certificate(["localhost", "127.0.0.1"], "example")[0][:27]
    b'-----BEGIN CERTIFICATE-----'
    """
    with needing(call, extra, why=", and certificates need it"):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dala")])
    now = datetime.now(UTC)
    others: list[x509.GeneralName] = []
    for each in dict.fromkeys(names):
        try:
            others.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            others.append(x509.DNSName(each))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if others:
        made = made.add_extension(x509.SubjectAlternativeName(others), critical=False)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), secret


@contextmanager
def certificate_files(
    names: Iterable[str], call: str, extra: str = "studio"
) -> Iterator[tuple[Path, Path]]:
    """Write a new certificate and its key to files, which are deleted after the block.

    Yields:
        The paths of the certificate and of the key.

    Raises:
        MissingPackage: ``cryptography`` is not installed.

    >>> with certificate_files(["localhost"], "example") as (chain, key):
    ...     chain.read_text()[:27]
    '-----BEGIN CERTIFICATE-----'
    """
    made, secret = certificate(names, call, extra)
    with tempfile.TemporaryDirectory(prefix="dala-tls-") as folder:  # only this user can enter
        chain, key = Path(folder, "chain.pem"), Path(folder, "key.pem")
        chain.write_bytes(made)
        key.touch(mode=0o600)
        key.write_bytes(secret)
        yield chain, key


def tls_context(names: Iterable[str], call: str, extra: str = "studio") -> ssl.SSLContext:
    """Return a server's TLS context with a new certificate, which is kept in memory only.

    >>> tls_context(["localhost"], "example").verify_mode.name
    'CERT_NONE'
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with certificate_files(names, call, extra) as (chain, key):
        context.load_cert_chain(chain, key)
    return context


def qr_text(address: str) -> str:
    """Return the QR code of an address as text for a terminal, or "" without the package segno.

    >>> qr_text("https://192.0.2.7:8443/").count(chr(10)) > 10
    True
    """
    try:
        import segno
    except ImportError:
        return ""
    file = io.StringIO()
    segno.make(address, error="l").terminal(out=file, compact=True)
    return file.getvalue()
