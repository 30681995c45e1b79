"""Patterns of file names, matched folder by folder so that a large archive is never one list."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from dala.batch.storage.urls import WEB, Facts, join, protocol_of

#: Returns the folders and files of a folder.
Scan: TypeAlias = Callable[[str], tuple[list[str], Iterator[Facts]]]

_MAGIC: Final = re.compile(r"[*?\[]")
#: The part of a pattern that stands for any number of folders.
_ANY: Final = "**"


def has_magic(url: str) -> bool:
    """Return whether a URL is a pattern. Web addresses are none: a ``?`` begins their query.

    >>> has_magic("films/*.mp4"), has_magic("https://example.com/a.mp4?key=*")
    (True, False)
    """
    return protocol_of(url) not in WEB and _MAGIC.search(url) is not None


def split(pattern: str) -> tuple[str, list[str]]:
    """Return the folder that a pattern begins with, and the parts after it.

    >>> split("s3://films/2024/**/*.mp4")
    ('s3://films/2024', ['**', '*.mp4'])
    >>> split("*.mp4"), split("/*.mp4")
    (('.', ['*.mp4']), ('/', ['*.mp4']))
    """
    found = _MAGIC.search(pattern)
    assert found is not None
    at = pattern.rfind("/", 0, found.start())
    head = pattern[:at] if at >= 0 else "."
    if head == "" or head.endswith((":", "/")):
        head = pattern[: at + 1]
    return head, [part for part in pattern[at + 1 :].split("/") if part]


def walk(scan: Scan, folder: str, parts: list[str]) -> Iterator[Facts]:
    """Yield the files that match the parts of a pattern, sorted by name in each folder.

    ``*`` and ``?`` match no name that begins with a dot, as in a shell. Folders in which nothing
    can match are not listed, and no file is found twice.
    """
    if parts[-1] == _ANY:
        parts = [*parts, "*"]
    matchers = [_matcher(part) for part in parts]

    def closed(states: set[int]) -> set[int]:
        """Add the parts after each "**", which may stand for no folder at all."""
        for at in sorted(states):
            while parts[at] == _ANY:
                at += 1
                states.add(at)
        return states

    def inside(url: str, states: set[int], below: str) -> Iterator[Facts]:
        folders, files = scan(url)
        if len(parts) - 1 in states:
            for file in files:
                if matchers[-1](file.path):
                    yield file.below(below)
        for name in folders:
            after = {at for at in states if parts[at] == _ANY and not name.startswith(".")}
            after |= {at + 1 for at in states if at + 1 < len(parts) and matchers[at](name)}
            if after:
                found = f"{below}/{name}" if below else name
                yield from inside(join(url, name), closed(after), found)

    yield from inside(folder, closed({0}), "")


def _matcher(pattern: str) -> Callable[[str], bool]:
    if pattern == _ANY:
        return lambda name: False
    compiled = re.compile(fnmatch.translate(pattern)).match
    hidden = pattern.startswith(".")
    return lambda name: (hidden or not name.startswith(".")) and compiled(name) is not None
