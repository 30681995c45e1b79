"""The folders that a studio may read and write; every path of a page passes through here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dala.errors import ParameterError
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.typing import PathLike

#: Kinds of files by suffix.
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "picture": (
        ".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".ppm", ".pgm", ".heic",
    ),
    "video": (
        ".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".ts", ".mpg", ".mpeg", ".gif", ".ogv",
        ".flv", ".wmv", ".y4m",
    ),
    "kernel": (".py",),
    "lut": (".cube", ".3dl", ".spi1d", ".spi3d", ".csp", ".clf"),
    "json": (".json",),
}  # fmt: skip
#: The most names of one folder that are listed.
_LISTED: Final = 2000
#: The longest path of a page.
_LONGEST: Final = 4096


def kind_of(path: PathLike) -> str:
    """Return the kind of a file by its name: "picture", "video", "kernel", "lut", "json", "other".

    >>> kind_of("Clip.MP4"), kind_of("notes.txt")
    ('video', 'other')
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    return next((kind for kind, ends in _KINDS.items() if suffix in ends), "other")


class Folders:
    """Folders whose files may be opened, after ``..`` and links are resolved.

    >>> Folders(["/tmp"]).roots[0].is_absolute()
    True
    """

    def __init__(self, roots: Iterable[PathLike]) -> None:
        #: The folders, resolved, as they were given.
        self.roots: tuple[Path, ...] = tuple(dict.fromkeys(Path(r).resolve() for r in roots))
        #: Folders that are allowed but not listed, such as that of uploads.
        self.hidden: tuple[Path, ...] = ()
        #: Files and addresses outside that the scene named at the start needs.
        self.trusted: frozenset[str] = frozenset()

    def resolve(self, text: Json, call: str, *, argument: str = "path") -> Path:
        """Return an allowed path.

        Raises:
            ParameterError: it is not text, or leads outside of the folders.
        """
        if not isinstance(text, str) or not text or len(text) > _LONGEST or "\0" in text:
            raise ParameterError.invalid(call, argument, "the path of a file", text)
        path = Path(text)
        if not path.is_absolute() and self.roots:
            path = self.roots[0] / path
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):  # a loop of links, or a name that cannot be
            raise self._outside(call, argument, text) from None
        inside = any(map(found.is_relative_to, (*self.roots, *self.hidden)))
        if not inside and str(found) not in self.trusted:
            raise self._outside(call, argument, text)
        return found

    def existing(self, text: Json, call: str, *, argument: str = "path") -> Path:
        """Return an allowed path of a file that exists.

        Raises:
            ParameterError: it is outside of the folders, or there is no such file.
        """
        found = self.resolve(text, call, argument=argument)
        if not found.is_file():
            raise ParameterError(
                f"{call}: there is no file {text!r}.", call=call, argument=argument
            )
        return found

    def target(self, text: Json, call: str, *, argument: str = "path") -> Path:
        """Return an allowed path of a file to write; its folder exists.

        Raises:
            ParameterError: it is outside of the folders, or no file can be there.
        """
        found = self.resolve(text, call, argument=argument)
        if not found.parent.is_dir() or found.is_dir():
            raise ParameterError(
                f"{call}: no file can be written at {text!r}. Name a file in a folder that exists.",
                call=call,
                argument=argument,
            )
        return found

    def _outside(self, call: str, argument: str, text: str) -> ParameterError:
        listed = ", ".join(map(str, self.roots)) or "none"
        return ParameterError.invalid(
            call, argument, f"in an allowed folder ({listed})", text,
            "Start the studio with the folder.",
        )  # fmt: skip

    def listing(self, under: str | None) -> JsonObject:
        """Return the names in a folder, folders first; without one, the allowed folders.

        Raises:
            ParameterError: the folder is not allowed, or does not exist.
        """
        if under is None:
            listed: list[Json] = [str(root) for root in self.roots]
            return {"path": None, "parent": None, "folders": listed, "files": []}
        folder = self.resolve(under, "files", argument="under")
        if not folder.is_dir():
            raise ParameterError(f"files: there is no folder {under!r}.", argument="under")
        folders: list[Json] = []
        files: list[Json] = []
        try:
            with os.scandir(folder) as entries:
                shown = (e for e in entries if not e.name.startswith("."))
                found = sorted(shown, key=lambda entry: entry.name.lower())
        except OSError as error:
            raise ParameterError(f"files: cannot read {under!r}: {error.strerror}.") from None
        for entry in found[:_LISTED]:
            try:
                path = Path(entry.path).resolve()
                if not any(map(path.is_relative_to, self.roots)):
                    continue  # a link that leads elsewhere
                if entry.is_dir():
                    folders.append(entry.name)
                elif entry.is_file():
                    size = entry.stat().st_size
                    files.append({"name": entry.name, "kind": kind_of(entry.name), "bytes": size})
            except (OSError, RuntimeError):
                continue
        parent = str(folder.parent) if folder not in self.roots else None
        return {"path": str(folder), "parent": parent, "folders": folders, "files": files}
