"""What storage says about a file, and what each kind of storage can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from dala.media.parts import UnfinishedFile


@dataclass(frozen=True, slots=True)
class Facts:
    """A file in storage.

    Attributes:
        name: its path or URL.
        size: its bytes.
        stamp: a text that changes when the file does: its time, or the storage's tag.
        path: its name below the folder that was searched.

    >>> Facts("films/a/b.mp4", 12, "", "a/b.mp4").stem
    'b'
    """

    name: str
    size: int
    stamp: str
    path: str = ""

    @property
    def stem(self) -> str:
        """The name without folders and suffix."""
        name = (self.path or self.name).rpartition("/")[2]
        head, dot, _ = name.rpartition(".")
        return head if dot and head else name

    def below(self, folder: str) -> Facts:
        """Return the same file with a path that begins with a folder."""
        return replace(self, path=f"{folder}/{self.path}" if folder else self.path)


#: A file that is being written, on this machine, until it gets its name in storage.
StoredPart: TypeAlias = UnfinishedFile


class Place(Protocol):
    """One kind of storage. URLs are whole; errors are those of the library below."""

    def stat(self, url: str) -> Facts:
        """Return the facts of a file, or raise FileNotFoundError; IsADirectoryError for folders."""

    def is_folder(self, url: str) -> bool:
        """Return whether there is such a folder."""

    def scan(self, url: str) -> tuple[list[str], Iterator[Facts]]:
        """Return the names of the folders in a folder, and its files, both sorted by name."""

    def read(self, url: str, start: int, end: int) -> bytes:
        """Return bytes of a file."""

    def write(self, url: str, data: bytes) -> None:
        """Write a file, whole or not at all."""

    def create(self, url: str, data: bytes) -> None:
        """Write a file, or raise FileExistsError."""

    def remove(self, url: str) -> None:
        """Remove a file, or raise FileNotFoundError."""

    def remove_tree(self, url: str) -> None:
        """Remove a folder with all that is in it."""

    def part(self, url: str, suffix: str) -> StoredPart:
        """Return a new file to write."""
