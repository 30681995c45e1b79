"""The files that a scene document names: listed, and made relative."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dala.media.scene.file.record import names_file
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.untrusted.address import scheme_of


def _named(value: Json, key: str, change: Callable[[str], str]) -> Json:
    """Return a value with the names of files changed."""
    if isinstance(value, dict):
        return {name: _named(item, name, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_named(item, key, change) for item in value]
    if isinstance(value, str) and names_file(key, value):
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
