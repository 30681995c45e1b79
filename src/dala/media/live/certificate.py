"""A certificate for WebRTC, which knows its sender by the fingerprint of one."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dala.errors import MissingPackage
from dala.extras import pip_install


@contextmanager
def certificate_files() -> Iterator[dict[str, str]]:
    """Make a key and a certificate of it; yield FFmpeg's options that name their files.

    The files are deleted after the block. Browsers refuse the certificates that FFmpeg makes.

    Raises:
        MissingPackage: ``cryptography`` is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ModuleNotFoundError:
        raise MissingPackage(
            f"live: cryptography is not installed, and WHIP needs it. Run: {pip_install('live')}"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dala")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    with tempfile.TemporaryDirectory(prefix="dala-live-") as folder:  # only this user can enter
        paths = {"key_file": Path(folder, "key.pem"), "cert_file": Path(folder, "cert.pem")}
        paths["key_file"].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        paths["cert_file"].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        yield {option: str(path) for option, path in paths.items()}
