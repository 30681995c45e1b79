"""The files that a scene document names: checked before they are opened, and made relative."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dala.errors import ParameterError
from dala.media.scene.file.record import is_file_param, is_font_file
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.folders import Folders
from dala.untrusted.address import is_text, scheme_of


def _named(value: Json, key: str, change: Callable[[str], str]) -> Json:
    """Return a value with the names of files changed."""
    if isinstance(value, dict):
        return {name: _named(item, name, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_named(item, key, change) for item in value]
    if isinstance(value, str) and value and not is_text(value):
        font = key == "font" and is_font_file(value)
        if font or key in ("source", "picture") or is_file_param(key, value):
            return change(value)
    return value


def named_in(document: JsonObject) -> Iterator[str]:
    """Yield the files and addresses that a document names, as it writes them.

    >>> list(named_in({"nodes": [{"type": "image", "source": "a.png"}]}))
    ['a.png']
    """
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    _named(document, "", note)
    yield from found


def check_files(document: JsonObject, base: Path, folders: Folders, call: str) -> None:
    """Refuse a document that names files outside of the allowed folders, or addresses.

    Raises:
        ParameterError: it names one.
    """
    for name in named_in(document):
        if scheme_of(name) is not None:
            if name not in folders.trusted:
                raise ParameterError.invalid(
                    call, "source", "a file", name, "Scenes of pages cannot open addresses."
                )
        else:
            folders.resolve(str(base / name), call, argument="source")


def rebased(document: JsonObject, old: Path, new: Path) -> JsonObject:
    """Return a document whose relative files are found from another folder.

    >>> rebased({"nodes": [{"source": "a.png"}]}, Path("/x"), Path("/x/y"))
    {'nodes': [{'source': '../a.png'}]}
    """
    if old == new:
        return document

    def change(name: str) -> str:
        if scheme_of(name) is not None or os.path.isabs(name):
            return name
        return Path(os.path.relpath(old / name, new)).as_posix()

    made = _named(copy.deepcopy(document), "", change)
    assert isinstance(made, dict)
    return made
