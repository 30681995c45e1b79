"""Reading a subtitle file of any kind.

The readers are ours because FFmpeg's keep neither voices nor regions, and do not say which lines
of a file they skip.
"""

from __future__ import annotations

import codecs
import os
import pathlib
import re
import warnings
from typing import Final, NamedTuple, Self

from dala import memory
from dala.arguments import refuse_url
from dala.budget import checked
from dala.errors import DtypeError, ParameterError
from dala.media.subtitles import charset, srt, vtt
from dala.media.subtitles.cue import Cue, Marked, Parsed, Subtitles, seconds, short
from dala.typing import PathLike

_SCRIPT: Final = re.compile(
    r"^[ \t]*\[(?:Script Info|Events|V4\+? Styles)\][ \t]*$", re.IGNORECASE | re.MULTILINE
)
_SECTION: Final = re.compile(r"\[([^\]]+)\]\s*$")
_TIME: Final = re.compile(r"\s*(\d{1,4}):(\d{1,2}):(\d{1,2})[.:,](\d{1,3})\s*", re.ASCII)
_BLOCK: Final = re.compile(r"\{([^{}]*)\}")
#: The tags that matter; other names start with the same letters (bord, clip, pos).
_TAG: Final = re.compile(r"\\(?:(an|a|p|i|b|1c|c)(?![a-zA-Z])|(r))(&H[0-9a-fA-F]+&?|-?\d*)")
_NAMES: Final = (
    "Layer", "Start", "End", "Style", "Name", "MarginL", "MarginR", "MarginV", "Effect", "Text",
)  # fmt: skip


def is_ass(text: str) -> bool:
    """Return whether a text is a script: it has sections, and events or styles.

    >>> is_ass("[Script Info]\\n\\n[Events]\\nDialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,Hi")
    True
    """
    return _SCRIPT.search(text) is not None


class _Style(NamedTuple):
    """The properties of a style, or of a place in a text, that our text can show."""

    italic: bool = False
    bold: bool = False
    color: str = ""
    an: str = "2"

    @classmethod
    def of(cls, fields: dict[str, str], old: bool) -> Self:
        """Return the style of a line; those of old scripts number alignments otherwise."""
        italic, bold = (fields.get(n, "0").strip() not in ("0", "") for n in ("italic", "bold"))
        an = fields.get("alignment", "2").strip()
        return cls(
            italic, bold, _color(fields.get("primarycolour", "")), _keypad(an) if old else an
        )


class _Reader:
    """Reads the lines of one script."""

    def __init__(self) -> None:
        self.found = Parsed("ass")
        self.section = ""
        self.formats: dict[str, list[str]] = {}
        self.styles: dict[str, _Style] = {}
        self.seen: set[tuple[float, float, str]] = set()
        self.soft_breaks = True

    def line(self, at: int, line: str) -> None:
        if section := _SECTION.match(line.strip()):
            self.section = section[1].strip().lower()
            return
        word, colon, rest = line.partition(":")
        word = word.strip().lower()
        if not colon or line.lstrip().startswith((";", "!:")):
            return
        if word == "format":
            self.formats[self.section] = [name.strip().lower() for name in rest.split(",")]
        elif word == "wrapstyle" and self.section == "script info":
            self.soft_breaks = rest.strip() != "2"
        elif word == "style" and "styles" in self.section:
            fields = self.fields(rest, ())
            name = fields.get("name", "").strip().lstrip("*")
            self.styles[name.lower()] = _Style.of(fields, "+" not in self.section)
        elif word == "comment" and self.section == "events":
            self.found.left_out["comments"] += 1
        elif word == "dialogue":  # in whatever section: some tools misname it
            self.dialogue(at, rest)
        elif self.section == "events" and word in ("picture", "sound", "movie", "command"):
            self.found.left_out[f"{word} events"] += 1

    def fields(self, rest: str, names: tuple[str, ...]) -> dict[str, str]:
        known = self.formats.get(self.section) or [name.lower() for name in names]
        values = rest.split(",", max(len(known) - 1, 0))
        return dict(zip(known, values, strict=False))

    def dialogue(self, at: int, rest: str) -> None:
        fields = self.fields(rest, _NAMES)
        times = [_TIME.fullmatch(fields.get(name, "")) for name in ("start", "end")]
        start, end = (seconds(m.groups()) if m else None for m in times)
        if start is None or end is None or "text" not in fields:
            self.found.skip(at, f"{short(rest)}: it does not have two times and a text")
        elif end < start:
            self.found.skip(at, f"{short(rest)}: it ends before it starts")
        else:
            self.cue(start, end, fields)

    def cue(self, start: float, end: float, fields: dict[str, str]) -> None:
        name = fields.get("style", "").strip().lstrip("*").lower()
        style = self.styles.get(name) or self.styles.get("default") or _Style()
        words = _Words(style, self.soft_breaks)
        made = words.read(fields["text"])
        if not made.text:
            self.found.left_out["drawings" if words.drew else "empty cues"] += 1
            return
        key = start, end, made.text
        if key in self.seen:
            self.found.left_out["repeated lines"] += 1
            return
        self.seen.add(key)
        settings = {"an": words.now.an} if words.now.an not in ("", "2") else {}
        actor = fields.get("name", fields.get("actor", "")).strip()
        voices = (actor,) if actor else ()
        self.found.add(Cue(start, end, made.text, settings, *made[1:4], voices))


class _Words:
    """The text of a line without its override tags, and the style that they set for all of it."""

    def __init__(self, style: _Style, soft_breaks: bool) -> None:
        self.style = self.now = style
        self.soft_breaks = soft_breaks
        self.drew = self._drawing = False

    def read(self, raw: str) -> Marked:
        """Return the words, and the look that all of them have."""
        parts: list[str] = []
        runs: list[_Style] = []
        for index, part in enumerate(_BLOCK.split(raw)):
            if index % 2:
                self.tags(part)
            elif self._drawing:
                self.drew = self.drew or bool(part.strip())
            elif part:
                if part.replace("\\N", "").replace("\\n", "").replace("\\h", "").strip():
                    runs.append(self.now)
                parts.append(part)
        text = "".join(parts).replace("\\N", "\n").replace("\\h", " ")
        text = text.replace("\\n", " " if self.soft_breaks else "\n")
        text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
        italic, bold = (bool(runs) and all(run[n] for run in runs) for n in (0, 1))
        tints = {run.color for run in runs}
        color = tints.pop() if len(tints) == 1 else ""
        return Marked(text, italic, bold, "" if color == "#ffffff" else color)  # the default

    def tags(self, block: str) -> None:
        """Apply the tags of a block."""
        for name, reset, value in _TAG.findall(block):
            if name == "p":
                self._drawing = value not in ("", "0")
            elif name in ("i", "b"):
                # weights from 100 on are numbers: 600 and more is bold
                number = int(value) if value.lstrip("-").isdigit() else None
                own = self.style.italic if name == "i" else self.style.bold
                on = own if number is None else number == 1 or number >= 600
                now = self.now
                self.now = now._replace(italic=on) if name == "i" else now._replace(bold=on)
            elif name == "an" and value in tuple("123456789"):
                self.now = self.now._replace(an=value)
            elif name == "a" and value.isdigit():
                self.now = self.now._replace(an=_keypad(value))
            elif name in ("c", "1c"):
                self.now = self.now._replace(color=_color(value) if value else self.style.color)
            elif reset:
                self.now = self.style._replace(an=self.now.an)


def _keypad(old: str) -> str:
    """Return an alignment of the old format (1 to 3, 5 to 7, 9 to 11) as on a keypad."""
    number = int(old) if old.isascii() and old.isdigit() and len(old) < 3 else 2
    column = (number - 1) % 4 + 1
    if number > 11 or column > 3 or number < 1:
        return "2"
    return str(column + (0 if number < 4 else 6 if number < 8 else 3))


def _color(text: str) -> str:
    """Return &HAABBGGRR, or the same as a decimal number, as "#rrggbb"; "" if it is none."""
    text = text.strip().rstrip("&")
    try:
        value = int(text[2:], 16) if text[:2].upper() == "&H" else int(text)
    except ValueError:
        return ""
    value &= 0xFFFFFF
    return f"#{value & 255:02x}{value >> 8 & 255:02x}{value >> 16:02x}"


def _parse_ass(lines: list[str]) -> Parsed:
    """Read all cues of a script."""
    reader = _Reader()
    for at, line in checked(enumerate(lines), "load_subtitles"):
        reader.line(at, line)
    return reader.found


#: Larger files are refused.
MAX_BYTES: Final = 64 << 20
#: Bytes of memory for each character while it is read: lines and cues are objects.
PARSED: Final = 16
#: How many skipped cues a warning names.
_NAMED: Final = 3


def load_subtitles(source: PathLike | bytes, *, encoding: str | None = None) -> Subtitles:
    """Return the cues of an SRT, WebVTT or ASS file in order of their start.

    Args:
        source: a path, or the contents of a file (a string of more than one line, or bytes).
        encoding: the file's encoding, such as "cp1250". By default it is found out.

    Returns:
        A list of cues with the ``kind`` and ``charset`` of the file, WebVTT's ``regions``, and
        ``left_out``: how much was left out, by kind.

    Raises:
        ParameterError: the file does not exist, cannot be read, or has no subtitles; or the
            encoding is unknown.
        DtypeError: the source is neither a path nor text.

    Warns:
        UserWarning: cues were skipped or drawings left out, or the file is not Unicode.

    >>> load_subtitles("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nHi\\n")[0].text
    'Hi'
    """
    text, name, used = _read(source, encoding)
    memory.check(PARSED * len(text), "load_subtitles")
    found = _parse(text.removeprefix("\ufeff").replace("\0", "\ufffd"), name)
    if found.problems:
        found.left_out["malformed cues"] = len(found.problems)
        _warn(_skipped(name, found.problems))
    if drawings := found.left_out["drawings"]:
        plural = "s are" if drawings > 1 else " is"
        _warn(f"load_subtitles: {name}: {drawings} drawing{plural} left out.")
    return Subtitles(
        sorted(found.cues, key=lambda cue: cue.start),
        kind=found.kind,
        charset=used,
        regions=found.regions,
        left_out=found.left_out,
    )


def _parse(text: str, name: str) -> Parsed:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if vtt.is_vtt(lines[0]):
        return vtt.parse(lines)
    if is_ass(text):
        return _parse_ass(lines)
    if "-->" in text or not text.strip():
        return srt.parse(lines)
    raise ParameterError(
        f"load_subtitles: {name} is neither SRT nor WebVTT nor ASS: it has no line with times "
        '("00:00:01,000 --> 00:00:02,000"), no [Events], and does not start with WEBVTT.'
    )


def _skipped(name: str, problems: list[tuple[int, str]]) -> str:
    line, reason = problems[0]
    if len(problems) == 1:
        return f"load_subtitles: {name}, line {line}: {reason}; the cue is skipped."
    shown = "; ".join(f"line {line}: {reason}" for line, reason in problems[:_NAMED])
    more = len(problems) - _NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return f"load_subtitles: {name}: {len(problems)} cues are skipped: {shown}{rest}."


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)


def _read(source: PathLike | bytes, encoding: str | None) -> tuple[str, str, str]:
    """Return the text of a source, its name for messages, and its encoding."""
    if encoding is not None:
        try:
            codecs.lookup(encoding)
            "".encode(encoding)  # refuses codecs of other things, such as "hex"
        except (LookupError, TypeError, ValueError):
            raise ParameterError.invalid(
                "load_subtitles", "encoding", "the name of a text encoding", encoding
            ) from None
    if isinstance(source, str) and ("\n" in source or "\r" in source or "-->" in source):
        return source, "the text", ""
    if isinstance(source, bytes | bytearray | memoryview):
        return _decode(bytes(source), "the text", encoding)
    if not isinstance(source, str | os.PathLike):
        raise DtypeError.invalid("load_subtitles", "source", "a path or the text of a file", source)
    refuse_url("load_subtitles", "source", source)
    path = pathlib.Path(source)
    name = repr(os.fspath(source))
    try:
        size = path.stat().st_size
        data = b"" if size > MAX_BYTES else path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"load_subtitles: {name} cannot be read ({reason}).") from None
    if size > MAX_BYTES:
        raise ParameterError(
            f"load_subtitles: {name} must be at most {MAX_BYTES >> 20} MiB, got "
            f"{size >> 20} MiB. Is it a video?"
        )
    return _decode(data, name, encoding)


def _decode(data: bytes, name: str, encoding: str | None) -> tuple[str, str, str]:
    if encoding is not None:
        return data.decode(encoding, "replace"), name, encoding
    text, used, at = charset.decode(data)
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        if used == "UTF-8":
            damaged = text.count("\ufffd")
            problem = f"not UTF-8 ({damaged} damaged characters); they are shown as \ufffd."
        else:
            problem = (
                f"not UTF-8; the file is read as {used}. If letters look wrong, give encoding=."
            )
        warnings.warn(f"load_subtitles: {name}, line {line}: {problem}", UserWarning, stacklevel=4)
    return text, name, used
