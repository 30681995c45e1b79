"""SubRip: numbered blocks of times and text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dala.budget import check_deadline
from dala.media.subtitles.cue import Cue, Parsed, is_timing, plain, short, timing

_ASS: Final = re.compile(r"\{\\[^{}]*+\}")
_ALIGNED: Final = re.compile(r"\\an([1-9])")


def parse(lines: list[str]) -> Parsed:
    """Read all cues; a cue starts at a line with times and ends at a blank one."""
    found = Parsed("srt")
    read_blocks(found, lines, 0, _cue)
    return found


def read_blocks(
    found: Parsed,
    lines: list[str],
    at: int,
    cue: Callable[[str, tuple[float, float, str]], Cue],
    other: Callable[[int], int] = lambda at: at,
) -> None:
    """Read the cues from a line on, each by its text and its timing.

    ``other`` reads a block of another kind at a line, if there is one, and returns its end.
    """
    while at < len(lines):
        check_deadline("load_subtitles")
        line, after = lines[at], other(at)
        if after > at:
            at = after
        elif not line.strip():
            at += 1
        elif "-->" in line:
            end, times = block_end(lines, at + 1), timing(line)
            if isinstance(times, str):
                found.skip(at, f"{short(line)}: {times}")
            else:
                found.add(cue("\n".join(lines[at + 1 : end]), times))
            at = end
        elif at + 1 < len(lines) and "-->" in lines[at + 1]:
            at += 1  # the number or name of a cue
        else:
            found.skip(at, f"no line with times in a block that starts with {short(line)}")
            at = block_end(lines, at)


def block_end(lines: list[str], at: int) -> int:
    """Return the end of a block of text: a blank line, or the next cue if there is none."""
    while at < len(lines) and lines[at].strip():
        check_deadline("load_subtitles")
        if "-->" in lines[at]:
            return at
        if lines[at].strip().isdigit() and at + 1 < len(lines) and is_timing(lines[at + 1]):
            return at
        at += 1
    return at


def _cue(raw: str, times: tuple[float, float, str]) -> Cue:
    start, stop, options = times
    raw = raw.strip()
    parts = (part.partition(":") for part in options.split())
    settings = {name: value for name, _, value in parts if name and value}
    if aligned := _ALIGNED.search("".join(_ASS.findall(raw))):
        settings["an"] = aligned[1]
    text = plain(_ASS.sub("", raw))
    return Cue(start, stop, text.text, settings, *text[1:])
