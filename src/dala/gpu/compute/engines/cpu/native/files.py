"""Digests of source files: what code on disk was made from."""

from __future__ import annotations

import hashlib


class Unsure(Exception):
    """What something depends on cannot be told for certain."""


_digests: dict[str, str] = {}


def file_digest(path: str, *, again: bool = False) -> str:
    """Of a source file as this process first saw it; ``again`` makes sure that it still is so.

    Trees are kept, so code made later in a process may come from what a file held earlier.
    """
    known = _digests.get(path)
    if known is None or again:
        try:
            with open(path, "rb") as file:
                found = hashlib.sha256(file.read()).hexdigest()
        except (OSError, ValueError):
            raise Unsure from None
        known = _digests.setdefault(path, found)
        if known != found:
            raise Unsure
    return known
