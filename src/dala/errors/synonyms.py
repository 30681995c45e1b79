"""Names that people know from elsewhere, and names that are almost right.

Words of OpenCV, Pillow, ffmpeg, MoviePy, scikit-image, CSS, GLSL, NumPy and After Effects, each
with the names here that do the same. One table, ``synonyms.txt``, serves filters, parameters,
transitions, easings, codecs, fonts, positions and functions of the kernel language: a name counts
only where it is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources


@lru_cache(4096)
def normalized(name: str) -> str:
    """Return a name in small letters, without separators of words.

    >>> normalized("GaussianBlur"), normalized("ease-in_out")
    ('gaussianblur', 'easeinout')
    """
    return "".join(c for c in name.lower() if c.isalnum())


@cache
def _rows() -> list[tuple[str, list[str]]]:
    text = resources.files(__package__).joinpath("synonyms.txt").read_text("utf-8")
    found = (line.partition(": ") for line in text.splitlines() if line[0] != "#")
    return [(name, words.split(", ")) for name, _, words in found]


def words_for(name: str) -> tuple[str, ...]:
    """Return the names of other libraries for a name, for searches.

    >>> words_for("dissolve")[:3]
    ('crossfade', 'xfade', 'cross dissolve')
    """
    return tuple(word for ours, words in _rows() if ours == name for word in words)


def meant_by(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a name probably means, at most three; none for a guess.

    >>> meant_by("crossfade", ["fade", "dissolve", "wipe"])
    ['dissolve']
    >>> meant_by("grayscal", ["grayscale", "blur"]), meant_by("cross", ["cos"])
    (['grayscale'], [])
    """
    wanted, among = normalized(name), sorted(known)
    if not wanted:
        return []
    same = [one for one in among if normalized(one) == wanted]
    if same:
        return same[:3]
    ours = {one for one, words in _rows() if wanted in map(normalized, words)}
    if "-" in ours:
        return []
    found = [one for one in among if one in ours]
    return found[:3] or _misspelled(wanted, among)


def _misspelled(wanted: str, among: list[str]) -> list[str]:
    """Return the nearest names, if they are near: one letter in four may be wrong.

    A name may also be the beginning of another.
    """
    near: list[tuple[int, str]] = []
    for one in among:
        other = normalized(one)
        if min(len(wanted), len(other)) >= 3 and (
            other.startswith(wanted) or (len(other) > 3 and wanted.startswith(other))
        ):
            near.append((1, one))
            continue
        for part in {other, other[: len(wanted) + 1] if len(wanted) > 4 else other}:
            longest = max(len(wanted), len(part))
            most = max(longest // 4, int(longest > 2))
            if (far := _distance(wanted, part, most)) <= most:
                near.append((far, one))
    best = min(near, default=(0, ""))[0]
    return sorted({one for far, one in near if far == best})[:3]


def _distance(a: str, b: str, most: int) -> int:
    """Return how many letters differ, up to ``most``; two exchanged neighbors count as one."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before, last = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return last[-1]
