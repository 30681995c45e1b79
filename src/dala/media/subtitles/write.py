"""Cues as the text of a file."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from dala.arguments import Selection
from dala.errors import ParameterError
from dala.media.subtitles.cue import Cue, clock


def format_subtitles(cues: Iterable[Cue], kind: str = "srt") -> str:
    """Return cues as the text of an SRT ("srt") or WebVTT ("vtt") file.

    >>> print(format_subtitles([Cue(1.0, 2.5, "Hello")], "vtt"))
    WEBVTT
    <BLANKLINE>
    00:00:01.000 --> 00:00:02.500
    Hello
    <BLANKLINE>

    Raises:
        ParameterError: the kind is unknown, or a cue ends before its start.
    """
    Selection("srt", "vtt", expected="'srt' or 'vtt'").check("format_subtitles", "kind", kind)
    blocks = ["WEBVTT\n"] if kind == "vtt" else []
    regions = getattr(cues, "regions", {}) if kind == "vtt" else {}
    for name, settings in regions.items():
        blocks.append(
            "\n".join(["REGION", f"id:{name}", *(f"{k}:{v}" for k, v in settings.items())]) + "\n"
        )
    for number, cue in enumerate(cues, 1):
        if not 0 <= cue.start <= cue.end < 10_000 * 3600:
            raise ParameterError(
                f"format_subtitles: cue {number} must have 0 <= start <= end, got {cue.start} to "
                f"{cue.end}."
            )
        mark = "," if kind == "srt" else "."
        settings = cue.settings if kind == "srt" else {**_placed(cue), **cue.settings}
        options = " ".join(f"{k}:{v}" for k, v in settings.items() if k != "an")
        times = f"{clock(cue.start, mark)} --> {clock(cue.end, mark)} {options}".strip()
        text = _srt(cue) if kind == "srt" else _vtt(cue)
        blocks.append((f"{number}\n" if kind == "srt" else "") + f"{times}\n{text}\n")
    return "\n".join(blocks)


def _text(cue: Cue) -> str:
    return re.sub(r"\n\s*\n", "\n", cue.text.strip())


def _srt(cue: Cue) -> str:
    text = _styled(cue, _text(cue))
    text = f'<font color="{cue.color}">{text}</font>' if cue.color else text
    return f"{{\\an{cue.settings['an']}}}{text}" if "an" in cue.settings else text


def _vtt(cue: Cue) -> str:
    from dala.media.subtitles.cue import COLORS

    text = _styled(cue, html.escape(_text(cue), quote=False))
    for name, color in COLORS.items():
        if color == cue.color:
            text = f"<c.{name}>{text}</c>"
    for voice in reversed(cue.voices):
        text = f"<v {html.escape(voice, quote=False)}>{text}"
    return text


def _placed(cue: Cue) -> dict[str, str]:
    """Return a position on the keypad as settings of WebVTT."""
    row, column = divmod(int(cue.settings.get("an", "2")) - 1, 3)
    placed = {} if row == 0 else {"line": "50%" if row == 1 else "0"}
    return placed if column == 1 else {**placed, "align": "start" if column == 0 else "end"}


def _styled(cue: Cue, text: str) -> str:
    for on, tag in ((cue.italic, "i"), (cue.bold, "b")):
        text = f"<{tag}>{text}</{tag}>" if on else text
    return text
