"""How copied programs name files: relative to one folder, so that they can move."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class FileNames:
    """Names of files in a program: relative where they are below one of some folders.

    Args:
        folders: the first one that has the first file is the one that names are relative to.
        uploads: the folder of uploaded files, which have no place of their own.

    >>> names = FileNames([Path("/home/me")], Path("/tmp/uploads"))
    >>> names.of("/home/me/photos/a.jpg"), names.of("/srv/b.jpg"), names.of("/tmp/uploads/1/c.jpg")
    ('photos/a.jpg', '/srv/b.jpg', 'c.jpg')
    >>> print("\\n".join(names.notes()))
    # Run it in the folder 'me', to which its paths are relative.
    # 'c.jpg' was uploaded: put it there too.
    """

    def __init__(self, folders: Sequence[Path], uploads: Path) -> None:
        self._folders = folders
        self._uploads = uploads
        self._base: Path | None = None
        self._uploaded: dict[str, None] = {}

    def of(self, path: str) -> str:
        """Return the name of a file."""
        found = Path(path)
        if found.is_relative_to(self._uploads):
            self._uploaded[found.name] = None
            return found.name
        inside = next((f for f in self._folders if found.is_relative_to(f)), None)
        if inside is None:
            return path
        self._base = self._base or inside
        return Path(os.path.relpath(found, self._base)).as_posix()

    def notes(self) -> list[str]:
        """Return comments that say where the program finds its files."""
        lines = []
        if self._base is not None:
            name = self._base.name or str(self._base)
            lines.append(f"# Run it in the folder {name!r}, to which its paths are relative.")
        for name in self._uploaded:
            where = "there too" if self._base is not None else "beside the program"
            lines.append(f"# {name!r} was uploaded: put it {where}.")
        return lines
