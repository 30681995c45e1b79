"""Times as people type them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_CLOCK: Final = re.compile(r"(-?)(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:[.,]\d{1,9})?)", re.ASCII)
_SPAN: Final = re.compile(
    r"(?:(\d{1,9}(?:\.\d{1,9})?)\s*h)?\s*(?:(\d{1,9}(?:\.\d{1,9})?)\s*m(?:in)?(?!s))?\s*"
    r"(?:(\d{1,9}(?:\.\d{1,9})?)\s*s(?:ec)?)?\s*(?:(\d{1,9}(?:\.\d{1,9})?)\s*ms)?",
    re.ASCII,
)
_UNITS: Final = (Fraction(3600), Fraction(60), Fraction(1), Fraction(1, 1000))


def seconds(text: str) -> Fraction:
    """Return the seconds that a text stands for, exact; raise ValueError for others.

    >>> [float(seconds(text)) for text in ("90", "1/4", "1:02:03.5", "2s", "500ms", "1m30s")]
    [90.0, 0.25, 3723.5, 2.0, 0.5, 90.0]
    """
    text = text.strip().lower()
    if clock := _CLOCK.fullmatch(text):
        sign, hours, minutes, rest = clock.groups()
        second = Fraction(rest.replace(",", "."))
        if second >= 60 or (hours is not None and int(minutes) >= 60):
            raise ValueError
        whole = int(hours or 0) * 3600 + int(minutes) * 60 + second
        return -whole if sign else whole
    if text and (span := _SPAN.fullmatch(text)):
        pairs = zip(span.groups("0"), _UNITS, strict=True)
        return sum((Fraction(part) * unit for part, unit in pairs), Fraction())
    if "e" in text:  # an exponent is bounded by what a float holds
        return Fraction(float(text)).limit_denominator(1_000_000)
    return Fraction(text)
