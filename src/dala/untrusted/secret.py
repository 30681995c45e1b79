"""URLs that may hold a password, a stream key or a token."""

from __future__ import annotations

import re
from typing import Final

from dala.errors import masked
from dala.errors.masking import masked_url

#: Parts of a URL that other programs may quote alone: user and password, path, query, fragment.
_PARTS: Final = re.compile(
    r"[^:]*:/*(?:([^/?#]*)@)?[^/?#]*([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
#: Shorter parts are not looked for: other text would have them by chance.
_SHORTEST: Final = 4


class SecretUrl:
    """A URL whose text is masked; only ``reveal`` returns the true one.

    >>> url = SecretUrl("rtmp://me:secret@host/app/stream-key")
    >>> print(url, repr(url))
    rtmp://***@host/... SecretUrl('rtmp://***@host/...')
    >>> url.reveal()
    'rtmp://me:secret@host/app/stream-key'
    """

    __slots__ = ("_true",)

    def __init__(self, url: str) -> None:
        self._true = url

    def reveal(self) -> str:
        """Return the true URL, for the library that opens it and for nothing else."""
        return self._true

    def hide(self, text: str) -> str:
        """Return a text of another program with this URL and its parts masked.

        >>> SecretUrl("whip+https://host/whip/key-1").hide("POST /whip/key-1: 404, https://host/")
        'POST ***: 404, https://host/'
        """
        text = text.replace(self._true, str(self))
        for part in sorted(self._parts(), key=len, reverse=True):
            text = text.replace(part, "***")
        return masked(text)

    def _parts(self) -> set[str]:
        """Return the secrets of the URL, in whole and in parts."""
        found = _PARTS.fullmatch(self._true)
        user, path, query, fragment = found.groups("") if found is not None else ("",) * 4
        values = (pair.partition("=")[2] or pair for pair in query.split("&"))
        parts = [user, *user.split(":"), query, *values, fragment]
        if not str(self).endswith(path):
            parts += [path, path.rpartition("/")[2]]
        return {part for part in parts if len(part) >= _SHORTEST}

    def hidden(self, value: object) -> object:
        """Return an argument of another library's error, with its texts as ``hide`` returns them.

        >>> SecretUrl("rtmp://host/app/key-1").hidden((3, "no stream key-1", ("x", "/app/key-1")))
        (3, 'no stream ***', ('x', '***'))
        """
        if isinstance(value, tuple):
            return tuple(map(self.hidden, value))
        return self.hide(value) if isinstance(value, str) else value

    def __str__(self) -> str:
        return masked_url(self._true)

    def __repr__(self) -> str:
        return f"SecretUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretUrl) and self._true == other._true

    def __hash__(self) -> int:
        return hash(self._true)
