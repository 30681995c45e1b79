"""Tags in the text of SRT and WebVTT cues.

Files may be hostile: patterns are written so that they take linear time.
"""

from __future__ import annotations

import html
import re
from typing import Final, NamedTuple

from dala.errors import DalaError

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
    """Text without tags, and what the tags said about all of it."""

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
