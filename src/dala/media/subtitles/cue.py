"""Cues, and the list of cues of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


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
