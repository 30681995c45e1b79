"""From paragraphs to lines: where lines may break, what fits, and in which order a line is shown.

Lines break at spaces, after hyphens and dashes, at zero-width spaces and soft hyphens, and between
Chinese, Japanese and Korean characters (but not before closing signs nor after opening ones).
A word wider than the box is cut between letters. Thai, Lao and Khmer are cut so too, for want of
a dictionary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from dala.media.text.bidi import levels, visual_order
from dala.media.text.fonts import faces as fonts
from dala.media.text.fonts.faces import FontSet
from dala.media.text.shaping import Setting, Shaped, clusters, joins_previous, segments, shape

#: Signs that no line begins with, and those that no line ends with.
_NO_START: Final = frozenset(
    ")]}’”»›!?,.:;%…、。〉》」』】〕〗〙〛！？，．：；）］｝～ー々〻ゝゞヽヾ"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ・゠‐–〜｡｣､･\u00a0\u2060\u202f\ufeff"
)
_NO_END: Final = frozenset("([{‘“«‹〈《「『【〔〖〘〚（［｛｢$£¥€\u00a0\u2060\u202f\ufeff")
_SPACES: Final = " \u1680\u2000-\u2006\u2008-\u200a\u205f\u3000"
_WORDS: Final = re.compile(f"[{_SPACES}]+|[^{_SPACES}]+")
_SPACE: Final = re.compile(f"[{_SPACES}]")

ELLIPSIS: Final = "…"
#: Widths are sums of floats; this much is none.
_SLACK: Final = 1 / 64
#: Letters in a word that is worth keeping shaped.
_USUAL: Final = 64


class Piece(NamedTuple):
    """Glyphs of one level. ``spaces`` counts the gaps that justifying may stretch."""

    shaped: Shaped
    level: int
    spaces: int


@dataclass(frozen=True)
class Token:
    """A part of a paragraph between two places where a line may break; or a run of spaces."""

    text: str
    levels: tuple[int, ...]
    space: bool
    pieces: tuple[Piece, ...]
    width: float


@dataclass(frozen=True)
class Line:
    """One line: its pieces from left to right, with their widths and what may be stretched."""

    text: str
    pieces: tuple[Piece, ...]
    width: float
    rtl: bool
    #: The paragraph goes on after it, so that it may be justified.
    wrapped: bool

    @property
    def gaps(self) -> int:
        """How many spaces it has between words."""
        return sum(piece.spaces for piece in self.pieces)


class Breaker:
    """Sets paragraphs into lines, in one style."""

    def __init__(self, font: FontSet, setting: Setting, direction: str) -> None:
        self.font = font
        self.setting = setting
        self.direction = direction

    def lines(self, text: str, width: float | None, most: int) -> list[Line]:
        """The lines of a text, no more than ``most``, and one to tell that there are more.

        ``width`` is that of the box; None is for lines as they come.
        """
        found: list[Line] = []
        for paragraph in text.split("\n"):
            base, tokens = self.tokens(paragraph, wrap=width is not None)
            rows = [tokens] if width is None else self._fill(tokens, width)
            for number, row in enumerate(rows):
                found.append(self.line(row, base, wrapped=number + 1 < len(rows)))
                if len(found) > most:
                    return found
        return found

    def tokens(self, paragraph: str, *, wrap: bool) -> tuple[int, list[Token]]:
        """The paragraph's level, and its parts."""
        if paragraph.isascii() and self.direction != "rtl":
            base, found = 0, None
        else:
            base, found = levels(paragraph, self.direction)
        tokens = []
        for match in _WORDS.finditer(paragraph):
            word, start = match[0], match.start()
            space = _SPACE.match(word) is not None
            cuts = [len(word)] if space or not wrap else breaks(word)
            begin = 0
            for cut in cuts:
                part = word[begin:cut]
                if found is None:
                    run = (0,) * len(part)
                else:
                    run = tuple(found[start + begin : start + cut])
                tokens.append(self.token(part, run, space))
                begin = cut
        return base, tokens

    def token(self, text: str, run: tuple[int, ...], space: bool = False) -> Token:
        """A part, shaped. Those of usual length are kept for the next time."""
        if len(text) > _USUAL:
            return _shape_token.__wrapped__(self.font, self.setting, text, run, space)
        return _shape_token(self.font, self.setting, text, run, space)

    def line(self, row: list[Token], base: int, *, wrapped: bool) -> Line:
        """Parts side by side, in the order they are read by the eye. Spaces at its end go."""
        end = len(row)
        while end and row[end - 1].space:
            end -= 1
        row = row[:end]
        text = "".join(token.text for token in row)
        if wrapped and row and row[-1].text.endswith("\u00ad"):
            row = [*row, self.token("-", (row[-1].levels[-1],))]
        pieces = [piece for token in row for piece in token.pieces]
        if base or any(piece.level for piece in pieces):
            pieces = [pieces[n] for n in visual_order([piece.level for piece in pieces])]
        width = sum(piece.shaped.width for piece in pieces) - (
            self.setting.spacing if pieces else 0
        )
        return Line(text, tuple(pieces), width, bool(base), wrapped)

    def _fill(self, tokens: list[Token], width: float) -> list[list[Token]]:
        rows: list[list[Token]] = []
        row: list[Token] = []
        used = 0.0
        limit = width + _SLACK + self.setting.spacing
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
            elif row and used > limit / 2:  # an indent that leaves no room
                row, used = [], 0.0
                queue.append(token)
            else:  # a word that is wider than the box
                *parts, last = self._cut(token, limit - used, limit)
                for part in parts:
                    rows.append([*row, part])
                    row = []
                row = [*row, last]
                used = sum(one.width for one in row)
        if row or not rows:
            rows.append(row)
        return rows

    def _cut(self, token: Token, first: float, limit: float) -> list[Token]:
        """A wide word in parts that fit: the first beside an indent. Each has at least a letter."""
        ends = [end for _, end in clusters(token.text)]
        parts: list[Token] = []
        begin = 0
        while begin < len(ends):
            room = limit if parts else first
            start = ends[begin - 1] if begin else 0
            low, high = begin + 1, begin + 2
            while high <= len(ends) and self._part(token, start, ends[high - 1]).width <= room:
                low, high = high, high + 2 * (high - begin)
            high = min(high - 1, len(ends))
            while low < high:
                middle = (low + high + 1) // 2
                if self._part(token, start, ends[middle - 1]).width <= room:
                    low = middle
                else:
                    high = middle - 1
            parts.append(self._part(token, start, ends[low - 1]))
            begin = low
        return parts

    def _part(self, token: Token, start: int, end: int) -> Token:
        return self.token(token.text[start:end], token.levels[start:end])

    def shorten(self, line: Line, width: float | None) -> Line:
        """The line with "…" at its end, and no more of its letters than fit beside that."""
        base = int(line.rtl)
        _, tokens = Breaker(self.font, self.setting, ("ltr", "rtl")[base]).tokens(
            line.text, wrap=False
        )
        mark = self.token(ELLIPSIS, (base,))
        while tokens:
            while tokens and tokens[-1].space:
                tokens.pop()
            found = self.line([*tokens, mark], base, wrapped=False)
            if width is None or found.width <= width + _SLACK or not tokens:
                return found
            last = tokens.pop()
            ends = [end for _, end in clusters(last.text)][:-1]
            if ends:
                tokens.append(self.token(last.text[: ends[-1]], last.levels[: ends[-1]]))
        return self.line([mark], base, wrapped=False)


@lru_cache(maxsize=4096)
def _shape_token(
    font: FontSet, setting: Setting, text: str, run: tuple[int, ...], space: bool
) -> Token:
    """One piece for each face, script and level in a part."""
    pieces = []
    with fonts.lock:
        for start, end, face, kind in segments(font, text):
            begin = start
            while begin < end:
                stop = begin + 1
                while stop < end and run[stop] == run[begin]:
                    stop += 1
                shaped = shape(face, text[begin:stop], bool(run[begin] & 1), kind, setting)
                pieces.append(Piece(shaped, run[begin], stop - begin if space else 0))
                begin = stop
    return Token(text, run, space, tuple(pieces), sum(piece.shaped.width for piece in pieces))


def breaks(word: str) -> list[int]:
    """Where a line may break inside a word, its end included.

    >>> breaks("well-known"), breaks("漢字、仮名"), breaks("x-1")
    ([5, 10], [1, 3, 4, 5], [3])
    """
    found = []
    if not word.isascii() or "-" in word or "/" in word:
        for at in range(1, len(word)):
            if may_break(word, at):
                found.append(at)
    return [*found, len(word)]


def may_break(word: str, at: int) -> bool:
    """True where a line may end between two characters that are no spaces."""
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
    """True for characters of scripts written without spaces, and for syllables of Hangul."""
    code = ord(character)
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xA960 <= code <= 0xA97F
        or 0xAC00 <= code <= 0xD7FF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF00 <= code <= 0xFFDC
        or 0x1F300 <= code <= 0x1FAFF
        or 0x20000 <= code <= 0x3FFFF
    )
