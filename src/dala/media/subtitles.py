"""Subtitles: SRT and WebVTT files as lists of cues.

>>> from dala.media.subtitles import load_subtitles
>>> load_subtitles("1\\n00:00:01,000 --> 00:00:02,500\\n<i>Hello</i>\\n")
[Cue(start=1.0, end=2.5, text='Hello', settings={}, italic=True, bold=False)]

Many subtitle files have small mistakes. A cue that cannot be read is skipped, with a warning that
names its line and the reason.
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
from dala.typing import PathLike

__all__ = ["Cue", "format_subtitles", "load_subtitles"]

#: Larger files are refused.
MAX_BYTES: Final = 64 << 20

_TIME: Final = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING: Final = re.compile(rf"^\s*{_TIME}\s*-->\s*{_TIME}(?:\s+(\S.*?))?\s*$")
_TAG: Final = re.compile(r"</?([a-zA-Z]+)(?:[.\s][^<>]*)?/?>|<(?:\d+:)?\d+:\d+[.,]\d+>|</?>")
_ASS: Final = re.compile(r"\{\\[^{}]*\}")
_ALIGNED: Final = re.compile(r"\{[^{}]*\\an([1-9])[^{}]*\}")
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
#: Known tags; anything else in angle brackets is text.
_TAGS: Final = frozenset(("b", "i", "u", "s", "c", "v", "font", "ruby", "rt", "lang", "span"))
_BLOCKS: Final = ("NOTE", "STYLE", "REGION")


@dataclass(frozen=True)
class Cue:
    """A subtitle: text without tags, shown from ``start`` to ``end`` in seconds.

    ``settings`` are those after the times (WebVTT's line, position, align, size, vertical, region;
    SRT's X1, X2, Y1, Y2), and ``an`` is the position of an ``{\\an8}`` tag, numbered as on a
    keypad. ``italic`` and ``bold`` say whether the whole cue is.

    >>> Cue(1.0, 2.5, "Hello").text
    'Hello'
    """

    start: float
    end: float
    text: str
    settings: dict[str, str] = field(default_factory=dict)
    italic: bool = False
    bold: bool = False


def load_subtitles(source: PathLike | bytes) -> list[Cue]:
    """Return the cues of an SRT or WebVTT file in order of their start.

    Args:
        source: a path, or the contents of a file (a string of more than one line, or bytes).

    Raises:
        ParameterError: the file does not exist, cannot be read, or has no subtitles.
        DtypeError: the source is neither a path nor text.

    Warns:
        UserWarning: a malformed cue was skipped, or the file is not UTF-8.

    >>> load_subtitles("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nHi\\n")[0].text
    'Hi'
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
            f"load_subtitles: {name} is neither SRT nor WebVTT: it has no line with times "
            '("00:00:01,000 --> 00:00:02,000") and does not start with WEBVTT.'
        )
    parser.run()
    for line, reason in parser.problems:
        warnings.warn(
            f"load_subtitles: {name}, line {line}: {reason}; the cue is skipped.",
            UserWarning,
            stacklevel=2,
        )
    return sorted(parser.cues, key=lambda cue: cue.start)


def _read(source: PathLike | bytes) -> tuple[str, str]:
    """Return the text of a source, and its name for messages."""
    if isinstance(source, str) and ("\n" in source or "\r" in source or "-->" in source):
        return source.removeprefix("\ufeff"), "the text"
    if isinstance(source, bytes | bytearray | memoryview):
        return _decode(bytes(source), "the text"), "the text"
    if not isinstance(source, str | os.PathLike):
        raise DtypeError.invalid("load_subtitles", "source", "a path or the text of a file", source)
    path = pathlib.Path(source)
    name = repr(os.fspath(source))
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ParameterError(
                f"load_subtitles: {name} must be at most {MAX_BYTES >> 20} MiB, got "
                f"{path.stat().st_size >> 20} MiB. Is it a video?"
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
    """Reads the lines in order; a cue starts at a line with times and ends at a blank one."""

    def __init__(self, lines: list[str], *, vtt: bool) -> None:
        self.lines = lines
        self.vtt = vtt
        #: Line numbers and descriptions of mistakes.
        self.problems: list[tuple[int, str]] = []
        self.cues: list[Cue] = []

    def run(self) -> None:
        """Read all cues, in the order of the file."""
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
                at += 1  # the number or name of a cue
            else:
                self._skip(at, f"no line with times in a block that starts with {_short(line)}")
                at = self._block_end(at)

    def _blank(self, at: int) -> int:
        """Return the index of the next blank line."""
        while at < len(self.lines) and self.lines[at].strip():
            at += 1
        return at

    def _block_end(self, at: int) -> int:
        """Return the end of a block of text: a blank line, or the next cue if there is none."""
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
            self._skip(at, f"{_short(self.lines[at])} does not have two times")
            return end
        start, stop = _seconds(match.group(1, 2, 3, 4)), _seconds(match.group(5, 6, 7, 8))
        if start is None or stop is None:
            self._skip(at, f"{_short(self.lines[at])}: minutes and seconds must be below 60")
        elif stop <= start:
            self._skip(at, f"{_short(self.lines[at])}: it ends before it starts")
        else:
            raw = "\n".join(self.lines[at + 1 : end]).strip()
            cue = _make(start, stop, raw, match[9] or "", vtt=self.vtt)
            if cue.text:  # an empty cue is not a mistake
                self.cues.append(cue)
        return end

    def _skip(self, at: int, reason: str) -> None:
        self.problems.append((at + 1, reason))


def _short(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= 40 else line[:39] + "…")


def _seconds(parts: tuple[str | None, ...]) -> float | None:
    """Return a time in seconds; None if minutes or seconds are above 59."""
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole * 1000 + int(fraction.ljust(3, "0"))) / 1000


def _make(start: float, end: float, raw: str, options: str, *, vtt: bool) -> Cue:
    settings = {}
    for part in options.split():
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
    """Return True if all text is inside the tag."""
    outside = re.sub(rf"<{tag}(?:\.[^<>]*)?>.*?(?:</{tag}>|$)", "", text, flags=re.S | re.I)
    return outside != text and not _TAG.sub("", outside).strip()


def format_subtitles(cues: Iterable[Cue], kind: str = "srt") -> str:
    """Return cues as the text of an SRT ("srt") or WebVTT ("vtt") file.

    >>> print(format_subtitles([Cue(1.0, 2.5, "Hello")], "vtt"))
    WEBVTT
    <BLANKLINE>
    00:00:01.000 --> 00:00:02.500
    Hello
    <BLANKLINE>

    Raises:
        ParameterError: the kind is unknown, or a cue does not end after its start.
    """
    if kind not in ("srt", "vtt"):
        raise ParameterError.invalid("format_subtitles", "kind", "'srt' or 'vtt'", kind)
    blocks = ["WEBVTT\n"] if kind == "vtt" else []
    for number, cue in enumerate(cues, 1):
        if not 0 <= cue.start < cue.end < 10_000 * 3600:
            raise ParameterError(
                f"format_subtitles: cue {number} must have 0 <= start < end, got {cue.start} to "
                f"{cue.end}."
            )
        text = re.sub(r"\n\s*\n", "\n", cue.text.strip())
        if kind == "vtt":
            text = html.escape(text, quote=False)
        for on, tag in ((cue.italic, "i"), (cue.bold, "b")):
            text = f"<{tag}>{text}</{tag}>" if on else text
        options = " ".join(f"{k}:{v}" for k, v in cue.settings.items() if k != "an")
        if "an" in cue.settings and kind == "srt":
            text = f"{{\\an{cue.settings['an']}}}{text}"
        mark = "," if kind == "srt" else "."
        times = f"{_clock(cue.start, mark)} --> {_clock(cue.end, mark)} {options}".strip()
        blocks.append((f"{number}\n" if kind == "srt" else "") + f"{times}\n{text}\n")
    return "\n".join(blocks)


def _clock(seconds: float, mark: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, part = divmod(milliseconds, 1000)
    return f"{hours:02d}:{minutes:02d}:{whole:02d}{mark}{part:03d}"
