"""The folders that a studio may read and write; every path of a page passes through here."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dala.errors import ParameterError
from dala.media.video.suffixes import STILL_SUFFIXES, VIDEO_SUFFIXES
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.typing import PathLike
from dala.untrusted.place import Place

#: Kinds of files by suffix.
_KINDS: Final[dict[str, Collection[str]]] = {
    "picture": STILL_SUFFIXES,
    "video": VIDEO_SUFFIXES | {".gif"},
    "kernel": (".py", ".fs", ".glsl", ".frag"),
    "lut": (".cube", ".3dl", ".spi1d", ".spi3d", ".csp", ".clf"),
    "json": (".json",),
}
#: The most names of one folder that are listed.
_LISTED: Final = 2000


def kind_of(path: PathLike) -> str:
    """Return the kind of a file by its name: "picture", "video", "kernel", "lut", "json", "other".

    >>> kind_of("Clip.MP4"), kind_of("notes.txt")
    ('video', 'other')
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    return next((kind for kind, ends in _KINDS.items() if suffix in ends), "other")


class Folders(Place):
    """Folders whose files pages may open.

    >>> Folders(["/tmp"]).roots[0].is_absolute()
    True
    """

    def __init__(self, roots: Iterable[PathLike]) -> None:
        super().__init__(roots, "Start the studio with the folder.")

    def listing(self, under: str | None) -> JsonObject:
        """Return the names in a folder, folders first; without one, the allowed folders.

        Raises:
            ParameterError: the folder is not allowed, or does not exist.
        """
        if under is None:
            listed: list[Json] = [str(root) for root in self.roots]
            return {"path": None, "parent": None, "folders": listed, "files": []}
        folder = self.folder(under, "files", argument="under")
        folders: list[Json] = []
        files: list[Json] = []
        try:
            with os.scandir(folder) as entries:
                shown = (e for e in entries if not e.name.startswith("."))
                found = sorted(shown, key=lambda entry: entry.name.lower())
        except OSError as error:
            raise ParameterError(f"files: cannot read {under!r}: {error.strerror}.") from None
        for entry in found[:_LISTED]:
            with suppress(OSError, ParameterError):
                if entry.is_symlink():
                    there = str(folder.name / entry.name)  # refused if it leads elsewhere
                    self.folder(there, "files") if entry.is_dir() else self.open(there, "files")
                if entry.is_dir():
                    folders.append(entry.name)
                elif entry.is_file():
                    size = entry.stat().st_size
                    files.append({"name": entry.name, "kind": kind_of(entry.name), "bytes": size})
        parent = str(folder.name.parent) if folder.name not in self.roots else None
        return {"path": str(folder.name), "parent": parent, "folders": folders, "files": files}
