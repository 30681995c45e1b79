"""Names of files in storage: local paths and URLs, and the roots that a job is kept to."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from dala.errors import ParameterError, did_you_mean
from dala.errors.masking import masked_url
from dala.untrusted.address import has_control

#: Kinds of storage, by the protocol of their URLs. Those of fsspec that run code, name other
#: storage or read archives are not among them: a URL leads to one file of one place.
PROTOCOLS: Final = (
    "file", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "http",
    "https", "sftp", "ssh", "smb", "hdfs", "webhdfs",
)  # fmt: skip
#: Those that are only read, and cannot be listed.
WEB: Final = frozenset(("http", "https"))

_PROTOCOL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def protocol_of(url: str) -> str:
    """Return the protocol of a URL in lower case; "file" for a path.

    Raises:
        ParameterError: storage of this kind is not supported.

    >>> protocol_of("s3://films/a.mp4"), protocol_of("films/a.mp4"), protocol_of("C:/a.mp4")
    ('s3', 'file', 'file')
    """
    if not isinstance(url, str):
        raise ParameterError.invalid("storage", "url", "a path or a URL as text", type(url))
    if "\0" in url or "\n" in url:
        raise ParameterError.invalid("storage", "url", "a path or a URL on one line", url)
    found = _PROTOCOL.match(url)
    if found is None:
        return "file"
    if has_control(url, url=True):
        raise ParameterError.invalid("storage", "url", "a URL without control characters", url)
    name = found[1].lower()
    if name == "local":
        return "file"
    check_protocol("storage", "url", "a path or the URL of a known storage", name, shown(url))
    return name


def check_protocol(call: str, argument: str, expected: str, name: str, got: str) -> None:
    """Raise ParameterError if there is no storage of a protocol."""
    if name not in PROTOCOLS:
        advice = did_you_mean(name, PROTOCOLS) or f"Protocols: {', '.join(PROTOCOLS)}."
        raise ParameterError.invalid(call, argument, expected, got, advice)


def is_url(name: str) -> bool:
    """Return whether a name is a URL; ``file://`` counts as a path.

    >>> is_url("s3://films/a.mp4"), is_url("films/a.mp4"), is_url("file:///films/a.mp4")
    (True, False, False)
    """
    return protocol_of(name) != "file"


def path_of(url: str) -> str:
    """Return the path of a local URL.

    >>> path_of("file:///films/a%20b.mp4"), path_of("films/a%20b.mp4")
    ('/films/a b.mp4', 'films/a%20b.mp4')
    """
    found = _PROTOCOL.match(url)
    return url if found is None else unquote(url[found.end() :])


def local_path(name: str) -> Path | None:
    """Return the path of a local file; None for a URL.

    >>> local_path("memory://a"), local_path("file:///a")
    (None, PosixPath('/a'))
    """
    return None if is_url(name) else Path(path_of(name))


def join(url: str, *names: str) -> str:
    """Return the URL of a file below a folder.

    >>> join("s3://films/out/", "a", "b.mp4"), join("out", "b.mp4")
    ('s3://films/out/a/b.mp4', 'out/b.mp4')
    """
    made = url
    for name in names:
        if not made or made.endswith("/"):
            made += name.lstrip("/") if made else name
        else:
            made += "/" + name.lstrip("/")
    return made


def parent(url: str) -> str:
    """Return the folder of a file.

    >>> parent("s3://films/out/b.mp4"), parent("b.mp4"), parent("/b.mp4")
    ('s3://films/out', '.', '/')
    """
    found = _PROTOCOL.match(url)
    head = "" if found is None else url[: found.end()]
    rest = url[len(head) :]
    folder = rest.rpartition("/")[0]
    if folder or head:
        return head + folder
    return "/" if rest.startswith("/") else "."


def name_of(url: str) -> str:
    """Return the last part of a URL, without the query of a web address.

    >>> name_of("s3://films/out/b.mp4"), name_of("https://example.com/b.mp4?key=1")
    ('b.mp4', 'b.mp4')
    """
    path = urlsplit(url).path if protocol_of(url) in WEB else url
    return path.rstrip("/").rpartition("/")[2]


def shown(url: str) -> str:
    """Return a URL for messages and tables: without passwords, and without a query.

    >>> shown("https://me:secret@example.com/a.mp4?signature=1")
    'https://***@example.com/a.mp4'
    >>> shown("films/what?.mp4")
    'films/what?.mp4'
    """
    return masked_url(url)


def plain(url: str) -> str:
    """Return the one form of a URL by which it is compared: absolute, without ``.`` and ``..``.

    >>> plain("s3://films/a/../b/./c.mp4"), plain("S3A://films//c.mp4")
    ('s3://films/b/c.mp4', 's3://films/c.mp4')
    """
    protocol = protocol_of(url)
    if protocol == "file":
        return os.path.abspath(path_of(url)).replace(os.sep, "/")
    if protocol in WEB:
        parts = urlsplit(url)
        path = posixpath.normpath(parts.path) if parts.path else "/"
        return f"{protocol}://{parts.netloc.lower()}{'/' + path.lstrip('/')}"
    protocol = {"s3a": "s3", "gcs": "gs", "ssh": "sftp"}.get(protocol, protocol)
    found = _PROTOCOL.match(url)
    assert found is not None
    rest = url[found.end() :]
    place, _, path = rest.lstrip("/").partition("/")
    if place in (".", ".."):
        place, path = "", rest
    # "/" in front keeps ".." from leaving the bucket.
    inside = posixpath.normpath("/" + path).lstrip("/")
    return f"{protocol}://{place}/{inside}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Facts:
    """A file in storage.

    Attributes:
        name: its path or URL.
        size: its bytes.
        stamp: a text that changes when the file does: its time, or the storage's tag.
        path: its name below the folder that was searched.

    >>> Facts("films/a/b.mp4", 12, "", "b.mp4").below("a").path
    'a/b.mp4'
    """

    name: str
    size: int
    stamp: str
    path: str = ""

    def inside(self, root: str) -> str:
        """Return the name from a folder on."""
        return self.name[len(root) :].strip("/")

    def below(self, folder: str) -> Facts:
        """Return the same file with a path that begins with a folder."""
        return replace(self, path=f"{folder}/{self.path}" if folder else self.path)


class Roots:
    """The places that a job reads and writes; all others are refused.

    A plan or a manifest of unknown origin cannot make a worker read or replace files
    that the job's caller did not name.

    Args:
        urls: folders and files.

    >>> roots = Roots(["s3://films/in", "out"])
    >>> roots.contain("s3://films/in/a.mp4"), roots.contain("s3://films/in/../secret.mp4")
    (True, False)
    """

    def __init__(self, urls: Iterable[str]) -> None:
        self.urls = tuple(dict.fromkeys(plain(url) for url in urls))

    def contain(self, url: str) -> bool:
        """Return whether a URL is one of the roots, or below one."""
        name = plain(url)
        return any(name == root or name.startswith(root.rstrip("/") + "/") for root in self.urls)

    def check(self, call: str, url: str, *, writes: bool = False) -> None:
        """Raise ParameterError for a URL outside of the roots.

        Links of the file system are followed for what is written.
        """
        inside = self.contain(url)
        if inside and writes and not is_url(url):
            folder = os.path.realpath(os.path.dirname(os.path.abspath(path_of(url))))
            real = Roots(os.path.realpath(r) for r in self.urls if not is_url(r))
            inside = real.contain(join(folder, os.path.basename(path_of(url))))
        if not inside:
            listed = ", ".join(map(shown, self.urls)) or "nothing"
            expected = f"a file of the job, which is kept to {listed}"
            raise ParameterError.invalid(call, "url", expected, shown(url))

    def __repr__(self) -> str:
        return f"Roots([{', '.join(repr(shown(url)) for url in self.urls)}])"
