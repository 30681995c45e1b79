"""TLS for phones: a certificate made on the spot, the machine's address, and a QR code of it."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dala.errors import MissingPackage
from dala.extras import pip_install


@contextmanager
def server_certificate(names: Iterable[str]) -> Iterator[tuple[Path, Path]]:
    """Make a key and a certificate for the names and addresses of a server.

    Browsers warn about it once, because no authority has signed it. The files are deleted after
    the block.

    Yields:
        The paths of the certificate and of the key.

    Raises:
        MissingPackage: ``cryptography`` is not installed.

    >>> with server_certificate(["localhost", "127.0.0.1"]) as (certificate, key):
    ...     certificate.read_text()[:27]
    '-----BEGIN CERTIFICATE-----'
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ModuleNotFoundError:
        raise MissingPackage(
            f"studio: cryptography is not installed, and TLS needs it. Run: {pip_install('studio')}"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dala studio")])
    now = datetime.datetime.now(datetime.UTC)
    known: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            known.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            known.append(x509.DNSName(name))
    made = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(title)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    with tempfile.TemporaryDirectory(prefix="dala-tls-") as folder:  # only this user can enter
        certificate, secret = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        yield certificate, secret


def network_address() -> str:
    """Return the address of this machine in its network; "127.0.0.1" without one.

    >>> bool(network_address())
    True
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: this only chooses a route
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def qr_code(text: str) -> str:
    """Return a QR code of a text, drawn with the characters of a terminal.

    Raises:
        MissingPackage: ``segno`` is not installed.

    >>> len(qr_code("https://127.0.0.1/").splitlines()) > 10
    True
    """
    try:
        import segno
    except ModuleNotFoundError:
        raise MissingPackage(
            f"studio: segno is not installed, and QR codes need it. Run: {pip_install('studio')}"
        ) from None
    import io

    out = io.StringIO()
    segno.make(text, error="l").terminal(out, compact=True)
    return out.getvalue()
