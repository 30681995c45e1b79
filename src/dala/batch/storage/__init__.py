"""Files of a job in folders, S3, Google Cloud, Azure or behind HTTP, through one set of calls.

The calls are those of this process's :class:`FileStore`; ``configure`` sets its options.

It is ours, above fsspec, because that has neither files that are whole or absent, nor ranges read
ahead for videos, nor retries by fault, nor folders that no link leads out of.
"""

from __future__ import annotations

from dala.batch.storage.beneath import STATE, LinkRefused, home_of
from dala.batch.storage.store import FileStore, StorageOptions
from dala.batch.storage.urls import Facts, Roots, is_url, join, local_path, name_of, parent, shown

__all__ = [
    "STATE", "Facts", "FileStore", "LinkRefused", "Roots", "StorageOptions", "configure", "current",
    "home_of", "is_url", "join", "local_path", "name_of", "parent", "shown",
]  # fmt: skip

#: The storage of this process.
current = FileStore()
configure = current.configure
exists, facts, is_folder, list_folder = (
    current.exists,
    current.stat,
    current.is_folder,
    current.list,
)
listing, open_read, read_bytes, source = current.find, current.open, current.read, current.source
create, writing, write_bytes = current.create, current.writing, current.write
settle, locked = current.settle, current.locked
remove, remove_tree = current.remove, current.remove_tree
