"""Checks of arguments that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dala.errors import DalaError, ParameterError

if TYPE_CHECKING:
    from dala.typing import PathLike

T = TypeVar("T")


def checked_path(
    call: str, argument: str, given: PathLike, error: type[DalaError] = ParameterError
) -> Path:
    """Return a path; raise for what is none, and for names that no file can have.

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
    return Path(os.fsdecode(encoded))


def items_of(value: Iterable[T]) -> list[T] | None:
    """Return the items of what was passed as several things; None if it has none to give.

    >>> items_of((1, 2)), items_of(3)
    ([1, 2], None)
    """
    try:
        return list(value)
    except (TypeError, NotImplementedError):  # a memoryview of several axes has no items
        return None
