"""Paths that users pass."""

from __future__ import annotations

import os
from pathlib import Path

from dala.errors import DalaError, ParameterError
from dala.typing import PathLike


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
