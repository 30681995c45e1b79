"""Times in subtitle files."""

from __future__ import annotations

import re
from typing import Final

_TIME: Final = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,]\s?(\d{1,9}))?"
#: A line with the times of a cue, and its settings, which WebVTT allows right after the digits.
TIMING: Final = re.compile(
    rf"^\s*{_TIME}\s*-->\s*{_TIME}(?:(?:\s+|(?<=\.\d\d\d)(?=[a-zA-Z]))(\S.*?))?\s*$", re.ASCII
)


def is_timing(line: str) -> bool:
    """Return whether a line has the times of a cue.

    >>> is_timing("00:01.000 --> 00:02.000 line:0"), is_timing("a --> b")
    (True, False)
    """
    return "-->" in line and TIMING.match(line) is not None


def timing(line: str) -> tuple[float, float, str] | str:
    """Return start, end and settings of a line with times; or why it has none, as text."""
    match = TIMING.match(line)
    if match is None:
        return "does not have two times"
    start, end = seconds(match.group(1, 2, 3, 4)), seconds(match.group(5, 6, 7, 8))
    if start is None or end is None:
        return "minutes and seconds must be below 60"
    if end < start:
        return "it ends before it starts"
    return start, end, match[9] or ""


def seconds(parts: tuple[str | None, ...]) -> float | None:
    """Return hours, minutes, seconds and a fraction in seconds; None if one is above 59."""
    hours, minutes, whole, fraction = (part or "0" for part in parts)
    if int(minutes) > 59 or int(whole) > 59:
        return None
    total = (int(hours) * 60 + int(minutes)) * 60 + int(whole)
    return (total * 1000 + int(fraction.ljust(3, "0")[:3])) / 1000


def clock(time: float, mark: str) -> str:
    """Return a time as it is written in a file.

    >>> clock(3723.5, ",")
    '01:02:03,500'
    """
    minutes, milliseconds = divmod(round(time * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, part = divmod(milliseconds, 1000)
    return f"{hours:02d}:{minutes:02d}:{whole:02d}{mark}{part:03d}"
