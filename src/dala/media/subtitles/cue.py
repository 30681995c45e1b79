"""Cues, and the list of cues of a file."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dala.errors import DalaError


@dataclass(frozen=True)
class Cue:
    """A subtitle: text without tags, shown from ``start`` to ``end`` in seconds.

    ``settings`` are those after the times (WebVTT's line, position, align, size, vertical, region;
    SRT's X1, X2, Y1, Y2), and ``an`` is the position of an ``{\\an8}`` tag or of an ASS style,
    numbered as on a keypad. ``italic``, ``bold`` and ``color`` ("#rrggbb") are set if the whole cue
    has them. ``voices`` are the speakers that the file names; they are not shown, so they do not
    count when cues are compared.

    >>> Cue(1.0, 2.5, "Hello").text
    'Hello'
    """

    start: float
    end: float
    text: str
    settings: dict[str, str] = field(default_factory=dict)
    italic: bool = False
    bold: bool = False
    color: str = ""
    voices: tuple[str, ...] = field(default=(), compare=False)


class Subtitles(list[Cue]):
    """The cues of a file: a list, with facts about the file.

    Attributes:
        kind: "srt", "vtt" or "ass".
        charset: the encoding of the file, such as "UTF-8" or "Windows-1252"; "" for text.
        regions: WebVTT's regions by their id, each with its settings.
        left_out: how many things of each kind were left out, such as ``{"empty cues": 2}``.

    >>> Subtitles([Cue(0.0, 1.0, "Hi")], kind="srt").left_out
    {}
    """

    def __init__(
        self,
        cues: Iterable[Cue] = (),
        *,
        kind: str = "srt",
        charset: str = "",
        regions: Mapping[str, Mapping[str, str]] | None = None,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(cues)
        self.kind = kind
        self.charset = charset
        self.regions = {name: dict(settings) for name, settings in (regions or {}).items()}
        self.left_out = {name: count for name, count in (left_out or {}).items() if count}


@dataclass(eq=False)
class Parsed:
    """The result of a parser, in the file's order."""

    kind: str
    cues: list[Cue] = field(default_factory=list)
    #: Line numbers and descriptions of mistakes, one for each cue that was skipped.
    problems: list[tuple[int, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    regions: dict[str, dict[str, str]] = field(default_factory=dict)

    def skip(self, at: int, reason: str) -> None:
        """Record a cue that is skipped, by the index of its line."""
        self.problems.append((at + 1, reason))

    def add(self, cue: Cue) -> None:
        """Append a cue; one without text is only counted."""
        if cue.text:
            self.cues.append(cue)
        else:
            self.left_out["empty cues"] += 1


def short(line: str) -> str:
    """Return a line for a message, in quotes and shortened."""
    line = line.strip()
    return repr(line if len(line) <= 40 else line[:39] + "…")


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


_TAG: Final = re.compile(r"</?([a-zA-Z]+)(?:[.\s][^<>]*)?/?>|<(?:\d+:)?\d+:\d+[.,]\d+>|</?>")
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
#: Tags of SRT; anything else in angle brackets is text.
_TAGS: Final = frozenset(("b", "i", "u", "s", "c", "v", "font", "ruby", "rt", "lang", "span"))
_FONT: Final = re.compile(r"<font\b[^<>]{0,200}?\bcolor\s*=\s*[\"']?([#\w]+)[^<>]*>", re.IGNORECASE)
#: Every tag of WebVTT; what it does not know is no text either.
_VTT_TAG: Final = re.compile(r"<(?=[/a-zA-Z.0-9>])[^>]*(?:>|$)")
_VOICE: Final = re.compile(r"<v(?:\.[^\s<>]*+)?[ \t\n]++([^<>]*+)>")
_RUBY: Final = re.compile(r"<rt(?:[.\s][^<>]*)?>(.*?)(?=</rt>|</ruby>|<rt|$)", re.DOTALL)
_CLASSES: Final = re.compile(r"<c\.([^\s<>]*+)[^<>]*+>")
#: WebVTT's predefined color classes.
COLORS: Final = {
    "white": "#ffffff", "lime": "#00ff00", "cyan": "#00ffff", "red": "#ff0000",
    "yellow": "#ffff00", "magenta": "#ff00ff", "blue": "#0000ff", "black": "#000000",
}  # fmt: skip


class Marked(NamedTuple):
    """Text without tags, and the style that they set for all of it."""

    text: str
    italic: bool = False
    bold: bool = False
    color: str = ""
    voices: tuple[str, ...] = ()


def plain(raw: str) -> Marked:
    """Return the text of an SRT cue.

    >>> plain("<i>a <grin></i>")
    Marked(text='a <grin>', italic=True, bold=False, color='', voices=())
    """
    text = _BREAK.sub("\n", raw)
    color = ""
    font = _FONT.search(text)
    if font and _whole(text, "font"):
        color = _hex(font[1])
    italic, bold = _whole(text, "i"), _whole(text, "b")
    text = _TAG.sub(lambda m: "" if m[1] is None or m[1].lower() in _TAGS else m[0], text)
    return Marked(_lines(text), italic, bold, color)


def plain_vtt(raw: str) -> Marked:
    """Return the text of a WebVTT cue.

    >>> plain_vtt("<v Ann>a &lt;<c.red>b</c></v>").voices
    ('Ann',)
    """
    voices = [" ".join(html.unescape(name).split()) for name in _VOICE.findall(raw)]
    italic, bold = _whole(raw, "i"), _whole(raw, "b")
    color = ""
    classes = _CLASSES.search(raw)
    if classes and _whole(raw, "c"):
        known = [COLORS[name] for name in classes[1].split(".") if name in COLORS]
        color = known[-1] if known else ""
    text = _RUBY.sub(lambda match: f"({match[1]})" if match[1].strip() else "", raw)
    text = html.unescape(_VTT_TAG.sub("", text))
    return Marked(_lines(text), italic, bold, color, tuple(dict.fromkeys(filter(None, voices))))


def _lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n")).strip()


def _whole(text: str, tag: str) -> bool:
    """Return True if all text is inside the tag."""
    outside = re.sub(rf"<{tag}(?:[.\s][^<>]*)?>.*?(?:</{tag}>|$)", "", text, flags=re.S | re.I)
    return outside != text and not _TAG.sub("", outside).strip()


def _hex(name: str) -> str:
    """Return a color as "#rrggbb"; "" if it is none."""
    from dala.gpu.color import color_to_rgba

    if re.fullmatch(r"[0-9a-fA-F]{6}", name):
        name = "#" + name
    try:
        red, green, blue, _ = color_to_rgba(name)
    except DalaError:
        return ""
    return f"#{red:02x}{green:02x}{blue:02x}"
