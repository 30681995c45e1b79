"""Addresses (URLs): parsed once, allowed or refused, and built again before they are opened."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from dala.errors import ParameterError
from dala.untrusted.secret import SecretUrl

#: Protocols whose requests have no fragment, and no spaces.
_WEB: Final = ("http", "https", "whip+http", "whip+https")
_PARTS: Final = re.compile(r"(?:([^/?#\\]*)@)?([^/?#@]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_PLACE: Final = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[\w.~%-]*)(?::([0-9]{1,5}))?")


def scheme_of(name: str) -> str | None:
    """Return the protocol of a URL in lower case; None if the text is a path.

    >>> scheme_of("https://example.org/a.mp4"), scheme_of("concat:a|file:///b"), scheme_of("C://a")
    ('https', None, None)
    """
    scheme, colon, _ = name.partition("://")
    scheme = scheme.lower()
    plain = scheme.replace("+", "").replace("-", "").replace(".", "")
    return scheme if colon and len(scheme) > 1 and plain.isascii() and plain.isalnum() else None


def has_control(text: str, *, url: bool = False) -> bool:
    """Return whether a text has a character that controls something, such as the end of a line.

    In a URL those are refused, too, that names of files may have: they join letters, turn their
    direction, or stand for bytes.

    >>> has_control("a.mp4"), has_control("a.mp4" + chr(10)), has_control("a" + chr(0x202E))
    (False, True, False)
    """
    refused = ("Cc", "Zl", "Zp", *(("Cf", "Cs") if url else ()))
    return any(unicodedata.category(letter) in refused for letter in text)


def is_text(value: str) -> bool:
    """Return whether a value is text of several lines, and neither a path nor a URL.

    >>> is_text("1" + chr(10) + "00:01 --> 00:02"), is_text("http://host/a.mp4" + chr(10))
    (True, False)
    """
    return "\n" in value and scheme_of(value) is None


def _is_host(text: str) -> bool:
    """Return whether a host is a name or a number, or in brackets one of IPv6."""
    if not text.startswith("["):
        return True
    with suppress(ValueError):
        return bool(IPv6Address(text[1:-1]))
    return False


@dataclass(frozen=True, slots=True)
class Address:
    """A URL that was parsed and allowed.

    Attributes:
        scheme: its protocol, in lower case.
        host: the host in lower case; "" if it names none.
        port: its number; None if it names none.
        url: what is opened: built from the parts, never the text that was given.
    """

    scheme: str
    host: str
    port: int | None
    url: SecretUrl

    @classmethod
    def parse(
        cls, text: str, call: str, argument: str, schemes: Collection[str], expected: str
    ) -> Address:
        """Return the address that a text is.

        Raises:
            ParameterError: it is none, it is of another protocol, or it has control characters.

        >>> found = Address.parse("HTTP://me:pw@Host:80/a b#c", "open", "source", ["http"], "a URL")
        >>> found, found.url.reveal()
        (Address(scheme='http', host='host', port=80, url=SecretUrl('http://***@Host:80/a%20b')), \
'http://me:pw@Host:80/a%20b')
        """
        scheme = scheme_of(text)
        if scheme is None or scheme not in schemes:
            raise ParameterError.invalid(call, argument, expected, text)
        if has_control(text, url=True) or text != text.strip():
            what = "a URL without line ends and other control characters"
            raise ParameterError.invalid(call, argument, what, text)
        found = _PARTS.fullmatch(text[len(scheme) + 3 :])
        matched = None if found is None else _PLACE.fullmatch(found[2])
        port = None if matched is None or matched[2] is None else int(matched[2])
        if found is None or matched is None or (port or 0) > 65535 or not _is_host(matched[1]):
            raise ParameterError.invalid(call, argument, "a URL with a valid host and port", text)
        user, place, path, query, fragment = found.groups()
        rest = f"{path}{query or ''}"
        rest = rest.replace(" ", "%20") if scheme in _WEB else f"{rest}{fragment or ''}"
        if user is not None and scheme in _WEB:  # brackets are for hosts there
            user = user.replace("[", "%5B").replace("]", "%5D")
        who = "" if user is None else f"{user}@"
        made = f"{scheme}://{who}{place}{rest}"
        with suppress(ValueError):
            urlsplit(made)  # Python refuses characters that it takes for a slash, in names too
            return cls(scheme, matched[1].lower(), port, SecretUrl(made))
        raise ParameterError.invalid(call, argument, "a URL with a valid host and port", text)
