"""Subtitles: SRT and WebVTT files as lists of cues.

>>> from dala.media.subtitles import load_subtitles
>>> load_subtitles("1\\n00:00:01,000 --> 00:00:02,500\\n<i>Hello</i>\\n")
[Cue(start=1.0, end=2.5, text='Hello', settings={}, italic=True, bold=False)]

Files in the wild are often a little wrong. Whatever can be read is; a cue that cannot is left out,
with a warning that names its line and the reason.
"""

from __future__ import annotations

import html
import os
import pathlib
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dala.errors import DtypeError, ParameterError

__all__ = ["Cue", "format_subtitles", "load_subtitles"]

#: More than any film has.
MAX_BYTES: Final = 64 << 20

_TIME: Final = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING: Final = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}(?:\s+(\S.*?))?\s*$")
_TAG: Final = re.compile(r"</?([a-zA-Z]+)(?:[.\s][^<>]*)?/?>|<(?:\d+:)?\d+:\d+[.,]\d+>|</?>")
_ASS: Final = re.compile(r"\{\\[^{}]*\}")
_ALIGNED: Final = re.compile(r"\{[^{}]*\\an([1-9])[^{}]*\}")
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
#: Tags that are known to stand in subtitles; other things in angle brackets are words.
_TAGS: Final = frozenset(("b", "i", "u", "s", "c", "v", "font", "ruby", "rt", "lang", "span"))
_BLOCKS: Final = ("NOTE", "STYLE", "REGION")


@dataclass(frozen=True)
class Cue:
    """What is shown from ``start`` to ``end``, in seconds; tags are taken out of the text.

    ``settings`` are those after the times (WebVTT's line, position, align, size, vertical, region;
    SRT's X1, X2, Y1, Y2) and ``an`` where a ``{\\an8}`` says where on the screen, as on a keypad.
    ``italic`` and ``bold`` are True where the whole cue is.
    """

    start: float
    end: float
    text: str
    settings: dict[str, str] = field(default_factory=dict)
    italic: bool = False
    bold: bool = False


def load_subtitles(source: str | os.PathLike[str] | bytes) -> list[Cue]:
    """The cues of an SRT or WebVTT file in order of their start; overlapping ones are all kept.

    ``source`` is a path, or what is in the file (a string with more than one line, or bytes).

    Raises:
        ParameterError: there is no such file, it cannot be read, or it is no subtitles at all.
        DtypeError: it is neither a path nor text.

    Warns:
        UserWarning: a cue is malformed and left out, or the file is not in UTF-8.
    """
    text, name = _read(source)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = lines[0]
    if first == "WEBVTT" or first.startswith(("WEBVTT ", "WEBVTT\t")):
        parser = _Parser(lines, vtt=True)
    elif "-->" in text or not text.strip():
        parser = _Parser(lines, vtt=False)
    else:
        raise ParameterError(
            f"load_subtitles: {name} is neither SRT nor WebVTT: no line has times "
            '("00:00:01,000 --> 00:00:02,000") and it does not begin with WEBVTT.'
        )
    parser.run()
    for line, reason in parser.faults:
        warnings.warn(
            f"load_subtitles: {name}, line {line}: {reason}; the cue is left out.",
            UserWarning,
            stacklevel=2,
        )
    return sorted(parser.cues, key=lambda cue: cue.start)


def _read(source: object) -> tuple[str, str]:
    """The text of a source, and what to call it."""
    if isinstance(source, str) and ("\n" in source or "\r" in source or "-->" in source):
        return source.removeprefix("\ufeff"), "the text"
    if isinstance(source, bytes | bytearray | memoryview):
        return _decode(bytes(source), "the text"), "the text"
    if not isinstance(source, str | os.PathLike):
        raise DtypeError(
            "load_subtitles: a path or the text of a file is expected, "
            f"{type(source).__name__} came."
        )
    path = pathlib.Path(source)
    name = repr(os.fspath(source))
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ParameterError(
                f"load_subtitles: {name} has {path.stat().st_size >> 20} MiB; subtitles have at "
                f"most {MAX_BYTES >> 20}. Is it a video?"
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"load_subtitles: {name} cannot be read ({reason}).") from None
    return _decode(data, name), name


def _decode(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").removeprefix("\ufeff")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        try:
            text, used = data.decode("cp1252"), "Windows-1252"
        except UnicodeDecodeError:
            text, used = data.decode("latin-1"), "Latin-1"
    warnings.warn(
        f"load_subtitles: {name}, line {line}: not UTF-8; the file is read as {used}. "
        "If letters look wrong, save it as UTF-8.",
        UserWarning,
        stacklevel=4,
    )
    return text


class _Parser:
    """Walks over the lines once; a cue begins at a line with times and ends at a blank one."""

    def __init__(self, lines: list[str], *, vtt: bool) -> None:
        self.lines = lines
        self.vtt = vtt
        #: Lines at which something is wrong, and what.
        self.faults: list[tuple[int, str]] = []
        self.cues: list[Cue] = []

    def run(self) -> None:
        """Reads all cues, in the order of the file."""
        at = self._blank(1) if self.vtt else 0
        while at < len(self.lines):
            line = self.lines[at]
            if not line.strip():
                at += 1
            elif "-->" in line:
                at = self._cue(at)
            elif self.vtt and line.startswith(_BLOCKS) and line.split()[0] in _BLOCKS:
                at = self._blank(at)
            elif at + 1 < len(self.lines) and "-->" in self.lines[at + 1]:
                at += 1  # its number or its name
            else:
                self._skip(at, f"no line with times in a block that begins with {_short(line)}")
                at = self._block_end(at)

    def _blank(self, at: int) -> int:
        """The next blank line."""
        while at < len(self.lines) and self.lines[at].strip():
            at += 1
        return at

    def _block_end(self, at: int) -> int:
        """Where a block of text ends: at a blank line, or before the next cue that lacks one."""
        while at < len(self.lines) and self.lines[at].strip():
            if "-->" in self.lines[at]:
                return at
            number = self.lines[at].strip().isdigit()
            if number and at + 1 < len(self.lines) and _TIMING.match(self.lines[at + 1]):
                return at
            at += 1
        return at

    def _cue(self, at: int) -> int:
        end = self._block_end(at + 1)
        match = _TIMING.match(self.lines[at])
        if match is None:
            self._skip(at, f"{_short(self.lines[at])} has no two times")
            return end
        start, stop = _seconds(match.group(1, 2, 3, 4)), _seconds(match.group(5, 6, 7, 8))
        if start is None or stop is None:
            self._skip(at, f"{_short(self.lines[at])}: minutes and seconds are below 60")
        elif stop <= start:
            self._skip(at, f"{_short(self.lines[at])}: it ends before it begins")
        else:
            raw = "\n".join(self.lines[at + 1 : end]).strip()
            cue = _make(start, stop, raw, match[9] or "", vtt=self.vtt)
            if cue.text:  # nothing to show is no fault
                self.cues.append(cue)
        return end

    def _skip(self, at: int, reason: str) -> None:
        self.faults.append((at + 1, reason))


def _short(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= 40 else line[:39] + "…")


def _seconds(parts: tuple[str | None, ...]) -> float | None:
    """Seconds of hours (may be missing), minutes, seconds and a fraction of one to three digits."""
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole * 1000 + int(fraction.ljust(3, "0"))) / 1000


def _make(start: float, end: float, raw: str, told: str, *, vtt: bool) -> Cue:
    settings = {}
    for part in told.split():
        name, colon, value = part.partition(":")
        if colon and name and value:
            settings[name] = value
    aligned = _ALIGNED.search(raw)
    if aligned and not vtt:
        settings["an"] = aligned[1]
    text = raw if vtt else _ASS.sub("", raw)
    text = _BREAK.sub("\n", text)
    italic, bold = _whole(text, "i"), _whole(text, "b")
    text = _TAG.sub(lambda match: "" if _known(match) else match[0], text)
    if vtt:
        text = html.unescape(text)
    text = "\n".join(line.strip() for line in text.split("\n")).strip()
    return Cue(start, end, text, settings, italic, bold)


def _known(match: re.Match[str]) -> bool:
    return match[1] is None or match[1].lower() in _TAGS


def _whole(text: str, tag: str) -> bool:
    """True where every letter is inside the tag."""
    outside = re.sub(rf"<{tag}(?:\.[^<>]*)?>.*?(?:</{tag}>|$)", "", text, flags=re.S | re.I)
    return outside != text and not _TAG.sub("", outside).strip()


def format_subtitles(cues: Iterable[Cue], kind: str = "srt") -> str:
    """Cues as the text of an SRT ("srt") or a WebVTT ("vtt") file; times are whole milliseconds.

    >>> print(format_subtitles([Cue(1.0, 2.5, "Hello")], "vtt"))
    WEBVTT
    <BLANKLINE>
    00:00:01.000 --> 00:00:02.500
    Hello
    <BLANKLINE>

    Raises:
        ParameterError: the kind is neither, or a cue has no time to be shown in.
    """
    if kind not in ("srt", "vtt"):
        raise ParameterError(f'format_subtitles: kind is "srt" or "vtt", {kind!r} came.')
    blocks = ["WEBVTT\n"] if kind == "vtt" else []
    for number, cue in enumerate(cues, 1):
        if not 0 <= cue.start < cue.end < 10_000 * 3600:
            raise ParameterError(
                f"format_subtitles: cue {number} lasts from {cue.start} to {cue.end}; "
                "0 <= start < end is expected."
            )
        text = re.sub(r"\n\s*\n", "\n", cue.text.strip())
        if kind == "vtt":
            text = html.escape(text, quote=False)
        for on, tag in ((cue.italic, "i"), (cue.bold, "b")):
            text = f"<{tag}>{text}</{tag}>" if on else text
        told = " ".join(f"{k}:{v}" for k, v in cue.settings.items() if k != "an")
        if "an" in cue.settings and kind == "srt":
            text = f"{{\\an{cue.settings['an']}}}{text}"
        mark = "," if kind == "srt" else "."
        times = f"{_clock(cue.start, mark)} --> {_clock(cue.end, mark)} {told}".strip()
        blocks.append((f"{number}\n" if kind == "srt" else "") + f"{times}\n{text}\n")
    return "\n".join(blocks)


def _clock(seconds: float, mark: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, part = divmod(milliseconds, 1000)
    return f"{hours:02d}:{minutes:02d}:{whole:02d}{mark}{part:03d}"
