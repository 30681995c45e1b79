"""Records: small objects of JSON, each in a file that is whole and on the disk, or not there.

A record has the checksum of its text, so that one that a power cut, a full disk or an editor has
damaged is known without knowing what it should say. There is one reader. To it a damaged record is
one that is not there, and it says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from dala.batch import storage
from dala.errors import StorageNotFound

T = TypeVar("T")

#: Is called with a sentence about a damaged record.
Say = Callable[[str], object]

#: What stands before the checksum, between it and the text, and after that. It is JSON.
_HEAD, _NECK, _TAIL = b'{"sha256":"', b'","record":', b"}"
_DIGITS: Final = 32
#: The most bytes of a record: an index of 30 hours of video has a quarter of it.
_MOST: Final = 256 << 20


def pack(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record.

    >>> pack({"id": "a"})
    b'{"sha256":"8489a5deb454a360345c7868bca8672d","record":{"id":"a"}}'
    """
    text = json.dumps(content, separators=(",", ":")).encode()
    return _HEAD + _checksum(text) + _NECK + text + _TAIL


def unpack(data: bytes) -> dict[str, Any]:
    """Return the content of the bytes of a record.

    Raises:
        ValueError: they are damaged.

    >>> unpack(pack({"id": "a"}))
    {'id': 'a'}
    """
    start = len(_HEAD) + _DIGITS + len(_NECK)
    text = data[start : -len(_TAIL)]
    if data != _HEAD + _checksum(text) + _NECK + text + _TAIL:
        raise ValueError("its checksum differs" if data.startswith(_HEAD) else "it is no record")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:_DIGITS].encode()


def write(name: str, content: Mapping[str, Any]) -> None:
    """Keep a record: it is on the disk when this returns."""
    storage.write_bytes(name, pack(content))


def read(name: str, make: Callable[[dict[str, Any]], T], say: Say) -> T | None:
    """Return a record, parsed by a function; None if there is none, or if it is damaged.

    Args:
        name: of the file.
        make: takes the content. Whatever it raises, the record is damaged.
        say: is called for one that is damaged.

    Raises:
        StorageError: storage cannot be reached, which says nothing about the record.

    >>> read("memory://nothing/a.json", dict, print)
    """
    try:
        data = storage.read_bytes(name, _MOST)
    except StorageNotFound:
        return None
    except storage.LinkRefused as error:
        say(f"batch: {error}")
        return None
    try:
        return make(unpack(data))
    except MemoryError:
        raise
    except Exception as error:  # also RecursionError and OverflowError: anything may be in there
        why = "it is empty" if not data else str(error)[:120] or type(error).__name__
        say(f"batch: the record {storage.shown(name)!r} is damaged and counts as missing ({why}).")
        return None
