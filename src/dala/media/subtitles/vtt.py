"""WebVTT, by the parsing rules of the standard: browsers show the same cues.

A line with times starts a cue wherever it stands, right under the header and inside a NOTE block
too: by the standard a comment ends there.
"""

from __future__ import annotations

import re
from typing import Final

from dala.budget import checked
from dala.media.subtitles.cue import Cue, Parsed, is_timing, plain_vtt
from dala.media.subtitles.srt import read_blocks

_BLOCK: Final = re.compile(r"(NOTE|STYLE|REGION)(?:[ \t].*)?$")
#: The old form of a region: a line of the header.
_OLD_REGION: Final = re.compile(r"Region\s*[:=]\s*(.*)", re.IGNORECASE)
_HUNDRED: Final = r"(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?)%"
#: The values that the standard allows; others are left out.
_SETTINGS: Final = {
    "vertical": re.compile(r"rl|lr"),
    "line": re.compile(rf"(?:-?\d+(?:\.\d+)?|{_HUNDRED})(?:,(?:start|center|middle|end))?"),
    "position": re.compile(rf"{_HUNDRED}(?:,(?:line-left|center|middle|line-right|start|end))?"),
    "size": re.compile(_HUNDRED),
    "align": re.compile(r"start|center|middle|end|left|right"),
    "region": re.compile(r"\S+"),
}
_REGIONS: Final = {
    "id": re.compile(r"\S+"),
    "width": re.compile(_HUNDRED),
    "lines": re.compile(r"\d+"),
    "regionanchor": re.compile(rf"{_HUNDRED},{_HUNDRED}"),
    "viewportanchor": re.compile(rf"{_HUNDRED},{_HUNDRED}"),
    "scroll": re.compile(r"up"),
}


def is_vtt(first: str) -> bool:
    """Return whether a file's first line is that of WebVTT."""
    return first == "WEBVTT" or first.startswith(("WEBVTT ", "WEBVTT\t"))


def parse(lines: list[str]) -> Parsed:
    """Read all cues and regions."""
    found = Parsed("vtt")

    def cue(raw: str, times: tuple[float, float, str]) -> Cue:
        settings = _settings(found, times[2].split(), ":", _SETTINGS)
        text = plain_vtt(raw)
        return Cue(times[0], times[1], text.text, settings, *text[1:])

    def comment(at: int) -> int:
        block = _BLOCK.match(lines[at])
        return at if block is None else _comment(found, lines, at, block[1])

    read_blocks(found, lines, _header(found, lines), cue, comment)
    for made in checked(found.cues, "load_subtitles"):
        region = made.settings.get("region")
        if region is not None and region not in found.regions:
            found.left_out["regions that are not in the file"] += 1
            del made.settings["region"]
    return found


def _header(found: Parsed, lines: list[str]) -> int:
    """Read the header; return the index of the line after it, a cue's or a blank one."""
    at = 1
    while at < len(lines) and lines[at].strip() and "-->" not in lines[at]:
        if at + 1 < len(lines) and is_timing(lines[at + 1]):
            break  # the name of a cue
        if old := _OLD_REGION.match(lines[at]):
            _region(found, old[1].split(), "=")
        at += 1
    return at


def _comment(found: Parsed, lines: list[str], at: int, kind: str) -> int:
    """Skip a NOTE, STYLE or REGION block, up to a blank line or a line with times."""
    end = at + 1
    while end < len(lines) and lines[end].strip() and not is_timing(lines[end]):
        end += 1
    if kind == "REGION":
        words = " ".join(lines[at:end]).split()[1:]
        _region(found, words, ":")
    else:
        found.left_out["style sheets" if kind == "STYLE" else "comments"] += 1
    return end


def _region(found: Parsed, words: list[str], mark: str) -> None:
    made = _settings(found, words, mark, _REGIONS)
    if name := made.pop("id", ""):
        found.regions[name] = made


def _settings(
    found: Parsed, words: list[str], mark: str, known: dict[str, re.Pattern[str]]
) -> dict[str, str]:
    """Return the valid settings; others are counted."""
    made: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition(mark)
        pattern = known.get(name)
        if pattern is not None and pattern.fullmatch(value):
            made[name] = value
        else:
            found.left_out["settings"] += 1
    return made
