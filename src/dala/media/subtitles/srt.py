"""SubRip: numbered blocks of times and text."""

from __future__ import annotations

import re
from typing import Final

from dala.media.subtitles import markup
from dala.media.subtitles.cue import Cue, Parsed, short
from dala.media.subtitles.times import is_timing, timing

_ASS: Final = re.compile(r"\{\\[^{}]*+\}")
_ALIGNED: Final = re.compile(r"\\an([1-9])")


def parse(lines: list[str]) -> Parsed:
    """Read all cues; a cue starts at a line with times and ends at a blank one."""
    found = Parsed("srt")
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif "-->" in line:
            end = block_end(lines, at + 1)
            _cue(found, lines, at, end)
            at = end
        elif at + 1 < len(lines) and "-->" in lines[at + 1]:
            at += 1  # the number or name of a cue
        else:
            found.skip(at, f"no line with times in a block that starts with {short(line)}")
            at = block_end(lines, at)
    return found


def block_end(lines: list[str], at: int) -> int:
    """Return the end of a block of text: a blank line, or the next cue if there is none."""
    while at < len(lines) and lines[at].strip():
        if "-->" in lines[at]:
            return at
        if lines[at].strip().isdigit() and at + 1 < len(lines) and is_timing(lines[at + 1]):
            return at
        at += 1
    return at


def _cue(found: Parsed, lines: list[str], at: int, end: int) -> None:
    times = timing(lines[at])
    if isinstance(times, str):
        found.skip(at, f"{short(lines[at])}: {times}")
        return
    start, stop, options = times
    raw = "\n".join(lines[at + 1 : end]).strip()
    settings = {}
    for part in options.split():
        name, colon, value = part.partition(":")
        if colon and name and value:
            settings[name] = value
    if aligned := _ALIGNED.search("".join(_ASS.findall(raw))):
        settings["an"] = aligned[1]
    text = markup.plain(_ASS.sub("", raw))
    found.add(Cue(start, stop, text.text, settings, text.italic, text.bold, text.color))
