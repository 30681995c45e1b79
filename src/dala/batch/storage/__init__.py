"""Files of a job in folders, S3, Google Cloud, Azure or behind HTTP, through one set of calls."""

from __future__ import annotations

from dala.batch.storage.calls import (
    configure,
    create,
    current,
    exists,
    facts,
    is_url,
    listing,
    local_path,
    open_read,
    read_bytes,
    remove,
    remove_tree,
    write_bytes,
    writing,
)
from dala.batch.storage.entries import Facts, StoredPart
from dala.batch.storage.faults import Retries
from dala.batch.storage.reading import RangeReader
from dala.batch.storage.store import FileStore, StorageOption, StorageOptions
from dala.batch.storage.urls import Roots, join, name_of, parent, shown

__all__ = [
    "Facts",
    "FileStore",
    "RangeReader",
    "Retries",
    "Roots",
    "StorageOption",
    "StorageOptions",
    "StoredPart",
    "configure",
    "create",
    "current",
    "exists",
    "facts",
    "is_url",
    "join",
    "listing",
    "local_path",
    "name_of",
    "open_read",
    "parent",
    "read_bytes",
    "remove",
    "remove_tree",
    "shown",
    "write_bytes",
    "writing",
]
