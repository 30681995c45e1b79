"""Line layout: break paragraphs into lines and put each line in visual order.

Lines break at spaces, after hyphens and dashes, at zero-width spaces and soft hyphens, and between
Chinese, Japanese and Korean characters (but not before closing or after opening punctuation). A
word wider than the box is broken between letters. So are Thai, Lao and Khmer words, because there
is no dictionary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from dala.budget import check_deadline, checked
from dala.media.text import shaping
from dala.media.text.bidi import levels, visual_order
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import FontSet
from dala.media.text.shaping import ShapedRun, ShapingOptions, joins_previous

#: Characters that no line starts with, and characters that no line ends with.
_NO_START: Final = frozenset(
    ")]}’”»›!?,.:;%…、。〉》」』】〕〗〙〛！？，．：；）］｝～ー々〻ゝゞヽヾ"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ・゠‐–〜｡｣､･\u00a0\u2060\u202f\ufeff"
)
_NO_END: Final = frozenset("([{‘“«‹〈《「『【〔〖〘〚（［｛｢$£¥€\u00a0\u2060\u202f\ufeff")
_SPACES: Final = " \u1680\u2000-\u2006\u2008-\u200a\u205f\u3000"
_WORDS: Final = re.compile(f"[{_SPACES}]+|[^{_SPACES}]+")
_SPACE: Final = re.compile(f"[{_SPACES}]")

#: Ranges of characters between which lines may break without a space.
_WIDE: Final = (
    (0x2E80, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF00, 0xFFDC),
    (0x1F300, 0x1FAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
ELLIPSIS: Final = "…"
#: Tolerance of widths, which are sums of floats.
_TOLERANCE: Final = 1 / 64
#: Longest word that is cached after shaping.
_LONGEST_CACHED: Final = 64


class TextRun(NamedTuple):
    """Glyphs of one bidi level. ``spaces`` counts the spaces that justification may stretch."""

    shaped: ShapedRun
    level: int
    spaces: int


@dataclass(frozen=True)
class TextToken:
    """A part of a paragraph between two line break opportunities, or a run of spaces."""

    text: str
    levels: tuple[int, ...]
    space: bool
    runs: tuple[TextRun, ...]
    width: float


@dataclass(frozen=True)
class TextLine:
    """A line of text: its runs from left to right, and its width."""

    text: str
    runs: tuple[TextRun, ...]
    width: float
    rtl: bool
    #: Whether the paragraph continues, so that the line may be justified.
    wrapped: bool

    @property
    def gaps(self) -> int:
        """Number of spaces between words."""
        return sum(item.spaces for item in self.runs)


@dataclass(frozen=True)
class LineBreaker:
    """Breaks paragraphs of one style into lines."""

    font: FontSet
    options: ShapingOptions
    direction: str

    def lines(self, text: str, width: float | None, most: int) -> list[TextLine]:
        """Return the lines of a text: at most ``most``, and one more if there are more.

        ``width`` is the width to wrap to; None for no wrapping.
        """
        found: list[TextLine] = []
        for paragraph in text.split("\n"):
            base, tokens = self.tokens(paragraph, wrap=width is not None)
            rows = [tokens] if width is None else self._fill(tokens, width)
            for number, row in enumerate(rows):
                found.append(self.line(row, base, wrapped=number + 1 < len(rows)))
                if len(found) > most:
                    return found
        return found

    def tokens(self, paragraph: str, *, wrap: bool) -> tuple[int, list[TextToken]]:
        """Return the paragraph's level and its tokens."""
        base, found = levels(paragraph, self.direction)
        tokens = []
        for match in checked(_WORDS.finditer(paragraph), "text"):
            word, start = match[0], match.start()
            space = _SPACE.match(word) is not None
            cuts = [len(word)] if space or not wrap else breaks(word)
            begin = 0
            for cut in cuts:
                run_levels = tuple(found[start + begin : start + cut])
                tokens.append(self.token(word[begin:cut], run_levels, space))
                begin = cut
        return base, tokens

    def token(self, text: str, run_levels: tuple[int, ...], space: bool = False) -> TextToken:
        """Return a shaped token; short ones are cached."""
        if len(text) > _LONGEST_CACHED:
            return _shape_token.__wrapped__(self.font, self.options, text, run_levels, space)
        return _shape_token(self.font, self.options, text, run_levels, space)

    def line(self, row: list[TextToken], base: int, *, wrapped: bool) -> TextLine:
        """Return a line of tokens in visual order, without trailing spaces."""
        end = len(row)
        while end and row[end - 1].space:
            end -= 1
        row = row[:end]
        text = "".join(token.text for token in row)
        if wrapped and row and row[-1].text.endswith("\u00ad"):
            row = [*row, self.token("-", (row[-1].levels[-1],))]
        runs = [item for token in row for item in token.runs]
        if base or any(item.level for item in runs):
            runs = [runs[n] for n in visual_order([item.level for item in runs])]
        width = sum(item.shaped.width for item in runs) - (self.options.spacing if runs else 0)
        return TextLine(text, tuple(runs), width, bool(base), wrapped)

    def _fill(self, tokens: list[TextToken], width: float) -> list[list[TextToken]]:
        rows: list[list[TextToken]] = []
        row: list[TextToken] = []
        used = 0.0
        limit = width + _TOLERANCE + self.options.spacing
        queue = tokens[::-1]
        while queue:
            token = queue.pop()
            if token.space and rows and not row:
                rows[-1].append(token)
            elif token.space or used + token.width <= limit:
                row.append(token)
                used += token.width
            elif any(not one.space for one in row):
                rows.append(row)
                row, used = [], 0.0
                queue.append(token)
            elif row and used > limit / 2:  # an indent that is wider than half of the box
                row, used = [], 0.0
                queue.append(token)
            else:  # a word wider than the box
                *parts, last = self._split(token, limit - used, limit)
                for part in parts:
                    rows.append([*row, part])
                    row = []
                row = [*row, last]
                used = sum(one.width for one in row)
        if row or not rows:
            rows.append(row)
        return rows

    def _split(self, token: TextToken, first: float, limit: float) -> list[TextToken]:
        """Split a wide word into parts that fit, of at least one letter each.

        The first part has the width ``first``, which an indent leaves.
        """
        ends = [end for _, end in shaping.clusters(token.text)]
        parts: list[TextToken] = []
        begin = 0
        while begin < len(ends):
            available = limit if parts else first
            start = ends[begin - 1] if begin else 0
            low, high = begin + 1, begin + 2
            while high <= len(ends) and self._part(token, start, ends[high - 1]).width <= available:
                low, high = high, high + 2 * (high - begin)
            high = min(high - 1, len(ends))
            while low < high:
                middle = (low + high + 1) // 2
                if self._part(token, start, ends[middle - 1]).width <= available:
                    low = middle
                else:
                    high = middle - 1
            parts.append(self._part(token, start, ends[low - 1]))
            begin = low
        return parts

    def _part(self, token: TextToken, start: int, end: int) -> TextToken:
        check_deadline("text")
        return self.token(token.text[start:end], token.levels[start:end])

    def shorten(self, line: TextLine, width: float | None) -> TextLine:
        """Return the line shortened to fit with "…" at its end."""
        base = int(line.rtl)
        breaker = replace(self, direction=("ltr", "rtl")[base])
        _, tokens = breaker.tokens(line.text, wrap=False)
        mark = self.token(ELLIPSIS, (base,))
        while tokens:
            while tokens and tokens[-1].space:
                tokens.pop()
            found = self.line([*tokens, mark], base, wrapped=False)
            if width is None or found.width <= width + _TOLERANCE or not tokens:
                return found
            last = tokens.pop()
            ends = [end for _, end in shaping.clusters(last.text)][:-1]
            if ends:
                tokens.append(self.token(last.text[: ends[-1]], last.levels[: ends[-1]]))
        return self.line([mark], base, wrapped=False)


@lru_cache(maxsize=4096)
def _shape_token(
    font: FontSet, options: ShapingOptions, text: str, run_levels: tuple[int, ...], space: bool
) -> TextToken:
    """Return a token with one run for each face, script and level."""
    runs = []
    with fonts.lock:
        for start, end, face, kind in shaping.segments(font, text):
            for level, run in groupby(range(start, end), key=run_levels.__getitem__):
                part = "".join(text[index] for index in run)
                shaped = shaping.shape(face, part, bool(level & 1), kind, options)
                runs.append(TextRun(shaped, level, len(part) if space else 0))
    return TextToken(text, run_levels, space, tuple(runs), sum(item.shaped.width for item in runs))


def breaks(word: str) -> list[int]:
    """Return the positions where a line may break inside a word, its end included.

    >>> breaks("well-known"), breaks("漢字、仮名"), breaks("x-1")
    ([5, 10], [1, 3, 4, 5], [3])
    """
    may = not word.isascii() or "-" in word or "/" in word
    return [*(at for at in range(1, len(word)) if may and may_break(word, at)), len(word)]


def may_break(word: str, at: int) -> bool:
    """Return True if a line may break between two characters that are not spaces."""
    before, after = word[at - 1], word[at]
    if before == "\u200b" or before == "\u00ad":
        return not joins_previous(after)
    if joins_previous(after) or before == "\u200d" or before in _NO_END or after in _NO_START:
        return False
    if before in "-‐/":
        return at > 1 and word[at - 2].isalpha() and after.isalpha()
    if before in "–—" or after == "—":
        return True
    return _wide(before) or _wide(after)


def _wide(character: str) -> bool:
    """Return True for characters of scripts without spaces, and for Hangul syllables."""
    return any(first <= ord(character) <= last for first, last in _WIDE)
