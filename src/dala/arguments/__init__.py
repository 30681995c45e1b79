"""The vocabulary of arguments: one small value for each kind of thing that a call accepts.

A kind checks a value that Python code passed, reads a text of a command line, and has the words
that errors, help and documents use for what it accepts. Options (:mod:`dala.options`) are declared
with kinds; calls that have no options use them alone:

>>> Integer(1, 100).check("Frame.save", "quality", 92)
92
>>> Integer(1, 100).check("Frame.save", "quality", 0)
Traceback (most recent call last):
dala.errors.ParameterError: Frame.save: quality must be an int from 1 to 100, got 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dala.arguments.kind import ArgumentKind
from dala.arguments.numbers import (
    DURATION,
    SECONDS,
    WAIT,
    Duration,
    Integer,
    Quantity,
    Rate,
    Ratio,
    Size,
    sides,
)
from dala.arguments.words import Fitting, Flag, Selection, Settings, Text
from dala.errors import DalaError, FolderGiven, ParameterError
from dala.errors.masking import resembles_url

if TYPE_CHECKING:
    from dala.typing import PathLike

__all__ = [
    "DURATION", "SECONDS", "WAIT", "ArgumentKind", "Duration", "Fitting", "Flag", "Integer",
    "Quantity", "Rate", "Ratio", "Selection", "Settings", "Size", "Text", "checked_path",
    "items_of", "refuse_folder", "refuse_url", "sides",
]  # fmt: skip

T = TypeVar("T")


def refuse_folder(call: str, path: Path) -> None:
    """Raise if a path that must name a file names a folder.

    >>> refuse_folder("Frame.open", Path("/"))
    Traceback (most recent call last):
    dala.errors.FolderGiven: Frame.open: '/' is a folder. Name a file in it.
    """
    if path.is_dir():
        raise FolderGiven(f"{call}: '{path}' is a folder. Name a file in it.", call=call)


def checked_path(
    call: str, argument: str, given: PathLike, error: type[DalaError] = ParameterError
) -> Path:
    """Return a path; raise for other values and for names that no file can have.

    >>> checked_path("Scene.save", "path", "scene.json").name
    'scene.json'
    >>> checked_path("Scene.save", "path", "")
    Traceback (most recent call last):
    dala.errors.ParameterError: Scene.save: path must be a str or Path, got ''.
    """
    try:
        text = os.fspath(given)
        encoded = os.fsencode(text)
    except (TypeError, ValueError):
        encoded = b""
    if not encoded or b"\0" in encoded or isinstance(given, bytes):
        raise error.invalid(call, argument, "a str or Path", given)
    refuse_url(call, argument, given, error)
    return Path(os.fsdecode(encoded))


def refuse_url(
    call: str, argument: str, given: object, error: type[DalaError] = ParameterError
) -> None:
    """Raise for a URL in place of a path: the system's error would quote its secrets."""
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else ""
    if isinstance(text, str) and resembles_url(text):
        raise error.invalid(call, argument, "a path, not a URL", text)


def items_of(value: Iterable[T]) -> list[T] | None:
    """Return the items of an iterable argument as a list; None if it is not iterable.

    >>> items_of((1, 2)), items_of(3)
    ([1, 2], None)
    """
    try:
        return list(value)
    except (TypeError, NotImplementedError):  # a memoryview of several axes has no items
        return None
