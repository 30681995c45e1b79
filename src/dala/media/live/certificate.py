"""A certificate for WebRTC, which knows its sender by the fingerprint of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dala.secure import certificate_files


@contextmanager
def certificate_options() -> Iterator[dict[str, str]]:
    """Make a key and a certificate of it; yield FFmpeg's options that name their files.

    The files are deleted after the block. Browsers refuse the certificates that FFmpeg makes.

    Raises:
        MissingPackage: ``cryptography`` is not installed.
    """
    with certificate_files((), "live", "live") as (chain, key):
        yield {"key_file": str(key), "cert_file": str(chain)}
