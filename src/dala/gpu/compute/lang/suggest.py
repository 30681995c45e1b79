"""The nearest names to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A question such as "Did you mean ...?" for a misspelt name, or an empty text.

    >>> nearest("grayscal", ["grayscale", "blur"])
    "Did you mean 'grayscale'?"
    """
    import difflib  # only mistakes need it

    close = difflib.get_close_matches(name, sorted(known), n=3)
    if not close:
        return ""
    return "Did you mean " + " or ".join(repr(c) for c in close) + "?"
