"""The Unicode bidirectional algorithm (UAX 9): the embedding levels of a paragraph.

Characters of an even level run left to right, those of an odd level right to left. Lines are broken
after the levels are known; :func:`visual_order` then orders the pieces of each line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from dala.budget import checked

#: Deepest embedding; deeper ones are ignored.
MAX_DEPTH: Final = 125

_STRONG: Final = ("L", "R", "AL")
_ISOLATES: Final = ("LRI", "RLI", "FSI")
_EXPLICIT: Final = {"LRE": 0, "RLE": 1, "LRO": 0, "RLO": 1}
_REMOVED: Final = frozenset(("LRE", "RLE", "LRO", "RLO", "PDF", "BN"))
_NEUTRAL: Final = frozenset(("B", "S", "WS", "ON", "LRI", "RLI", "FSI", "PDI"))
#: A paragraph without any of these classes is entirely left to right.
_BIDI: Final = frozenset(("R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI"))

#: Paired brackets, opening and closing ones alternating.
_BRACKETS: Final = (
    "()[]{}༺༻༼༽᚛᚜⁅⁆⁽⁾₍₎⌈⌉⌊⌋\u2329\u232a❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟪⟫⟬⟭⟮⟯⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦐⦏⦎⦑⦒⦓⦔⦕⦖⦗⦘"
    "⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩\u2e55\u2e56\u2e57\u2e58\u2e59\u2e5a\u2e5b\u2e5c〈〉《》「」『』【】〔〕〖〗〘〙〚〛﹙﹚﹛﹜﹝﹞（）［］｛｝｟｠｢｣"
)
CLOSING: Final = dict(zip(_BRACKETS[::2], _BRACKETS[1::2], strict=True))
_OPENING: Final = {closing: opening for opening, closing in CLOSING.items()}
#: Angle brackets with a canonical equivalent, which the algorithm does not distinguish.
_CANONICAL: Final = {"\u2329": "\u3008", "\u232a": "\u3009"}

#: Mirrored characters, for right-to-left text that is not shaped by HarfBuzz.
MIRRORED: Final = CLOSING | _OPENING | {"<": ">", ">": "<", "«": "»", "»": "«", "‹": "›", "›": "‹"}


def classes(text: str) -> list[str]:
    """Return the bidirectional class of each character; unassigned ones count as "L".

    >>> classes("a1 ")
    ['L', 'EN', 'WS']
    """
    return [unicodedata.bidirectional(character) or "L" for character in text]


def levels(text: str, direction: str = "auto") -> tuple[int, list[int]]:
    """Return the level of a paragraph, and of each of its characters (before rule L1).

    >>> levels("abc אבג")
    (0, [0, 0, 0, 0, 1, 1, 1])
    """
    kinds = classes(text)
    pairs = _matching(kinds)
    if direction == "auto":
        base = _first_strong(kinds, 0, pairs)
    else:
        base = int(direction == "rtl")
    if base == 0 and _BIDI.isdisjoint(kinds):
        return 0, [0] * len(text)
    embedded, resolved = _explicit(kinds, base, pairs)
    found = list(embedded)
    for sequence in _sequences(kinds, embedded, pairs):
        here = [resolved[index] for index in sequence]
        level = embedded[sequence[0]]
        sos, eos = _outer_types(kinds, embedded, sequence, base)
        _weak(here, sos)
        _brackets(text, kinds, here, sequence, level, sos)
        _neutral(here, level, sos, eos)
        for index, kind in zip(sequence, here, strict=True):  # rules I1 and I2
            if level & 1:
                found[index] = level + (kind != "R")
            else:
                found[index] = level + {"L": 0, "R": 1}.get(kind, 2)
    last = base
    for index, kind in enumerate(kinds):  # removed characters get the level of the one before
        if kind in _REMOVED:
            found[index] = last
        last = found[index]
    return base, found


def visual_order(levels: Sequence[int]) -> list[int]:
    """Return the indices of the pieces of a line from left to right, by level (rule L2).

    >>> visual_order([0, 1, 1, 0])
    [0, 2, 1, 3]
    """
    order = list(range(len(levels)))
    if not levels:
        return order
    odd = [level for level in levels if level & 1]
    for level in range(max(levels), (min(odd) if odd else max(levels) + 1) - 1, -1):
        runs = groupby(order, key=lambda index: levels[index] >= level)
        order = [index for high, run in runs for index in (reversed([*run]) if high else run)]
    return order


def _matching(kinds: list[str]) -> dict[int, int]:
    """Return the index of the matching PDI of each isolate initiator (rule BD9)."""
    pairs: dict[int, int] = {}
    open_: list[int] = []
    for index, kind in enumerate(kinds):
        if kind in _ISOLATES:
            open_.append(index)
        elif kind == "PDI" and open_:
            pairs[open_.pop()] = index
    return pairs


def _first_strong(kinds: list[str], start: int, pairs: dict[int, int], end: int = -1) -> int:
    """Return 0 or 1 by the first strong character outside isolates (rules P2 and P3)."""
    index, end = start, len(kinds) if end < 0 else end
    while index < end:
        kind = kinds[index]
        if kind in _STRONG:
            return int(kind != "L")
        if kind in _ISOLATES:
            index = pairs.get(index, len(kinds))
        index += 1
    return 0


def _explicit(kinds: list[str], base: int, pairs: dict[int, int]) -> tuple[list[int], list[str]]:
    """Return the explicit levels, and the classes after overrides (rules X1 to X8)."""
    found, resolved = [base] * len(kinds), list(kinds)
    stack: list[tuple[int, str, bool]] = [(base, "", False)]
    too_many_isolates = too_many_embeddings = isolates = 0
    for index, kind in enumerate(kinds):
        if kind == "PDI" and too_many_isolates:
            too_many_isolates -= 1
        elif kind == "PDI" and isolates:
            too_many_embeddings = 0
            while not stack.pop()[2]:
                pass
            isolates -= 1
        elif kind == "PDF" and not too_many_isolates:
            if too_many_embeddings:
                too_many_embeddings -= 1
            elif not stack[-1][2] and len(stack) > 1:
                stack.pop()
        level, override, _ = stack[-1]
        if kind not in _REMOVED and kind != "B":  # rule X8: a separator has the paragraph's level
            found[index] = level
            if override:
                resolved[index] = override
        if kind in _EXPLICIT or kind in _ISOLATES:
            is_isolate = kind in _ISOLATES
            if kind == "FSI":
                side = _first_strong(kinds, index + 1, pairs, pairs.get(index, len(kinds)))
            else:
                side = int(kind[0] == "R")
            deeper = level + 1 + ((level + 1 + side) & 1)
            if deeper <= MAX_DEPTH and not too_many_isolates and not too_many_embeddings:
                isolates += is_isolate
                forced = ("L", "R")[side] if kind[-1] == "O" else ""
                stack.append((deeper, forced, is_isolate))
            elif is_isolate:
                too_many_isolates += 1
            elif not too_many_isolates:
                too_many_embeddings += 1
    return found, resolved


def _sequences(kinds: list[str], found: list[int], pairs: dict[int, int]) -> list[list[int]]:
    """Return the isolating run sequences as lists of indices (rule X10)."""
    ends = set(pairs.values())
    kept = (index for index, kind in enumerate(kinds) if kind not in _REMOVED)
    runs = [list(run) for _, run in groupby(kept, key=found.__getitem__)]
    by_start = {run[0]: run for run in runs}
    sequences = []
    for run in runs:
        if kinds[run[0]] == "PDI" and run[0] in ends:
            continue  # it continues the run of its isolate
        sequence = list(run)
        while kinds[sequence[-1]] in _ISOLATES and sequence[-1] in pairs:
            following = by_start.get(pairs[sequence[-1]])
            if following is None:
                break
            sequence += following
        sequences.append(sequence)
    return sequences


def _outer_types(
    kinds: list[str], embedded: list[int], sequence: list[int], base: int
) -> tuple[str, str]:
    """Return the types at the start and end of a sequence, "L" or "R" (rule X10)."""
    first, last = sequence[0], sequence[-1]
    earlier = range(first - 1, -1, -1)
    before = next((embedded[i] for i in earlier if kinds[i] not in _REMOVED), base)
    after = base
    if kinds[last] not in _ISOLATES:
        later = range(last + 1, len(kinds))
        after = next((embedded[i] for i in later if kinds[i] not in _REMOVED), base)
    level = embedded[first]
    return "LR"[max(level, before) & 1], "LR"[max(level, after) & 1]


def _weak(here: list[str], sos: str) -> None:
    """Resolve weak types in place (rules W1 to W7)."""
    last = sos
    for n, kind in enumerate(here):
        if kind == "NSM":
            here[n] = "ON" if last in _ISOLATES or last == "PDI" else last
        last = here[n]
    strong = sos
    for n, kind in enumerate(here):
        if kind in _STRONG:
            strong = kind
        elif kind == "EN" and strong == "AL":
            here[n] = "AN"
    here[:] = ["R" if kind == "AL" else kind for kind in here]
    for n in range(1, len(here) - 1):
        sides = here[n - 1], here[n + 1]
        if here[n] in ("ES", "CS") and sides == ("EN", "EN"):
            here[n] = "EN"
        elif here[n] == "CS" and sides == ("AN", "AN"):
            here[n] = "AN"
    for n, kind in enumerate(here):
        if kind == "EN":
            for step in (-1, 1):
                beside = n + step
                while 0 <= beside < len(here) and here[beside] == "ET":
                    here[beside] = "EN"
                    beside += step
    strong = sos
    for n, kind in enumerate(here):
        if kind in ("ES", "CS", "ET"):
            here[n] = "ON"
        elif kind in _STRONG:
            strong = kind
        elif kind == "EN" and strong == "L":
            here[n] = "L"


def _brackets(
    text: str, kinds: list[str], here: list[str], sequence: list[int], level: int, sos: str
) -> None:
    """Resolve paired brackets in place (rule N0)."""
    own = "LR"[level & 1]
    stack: list[tuple[str, int]] = []
    pairs: list[tuple[int, int]] = []
    for n, index in enumerate(sequence):
        character = text[index]
        if here[n] != "ON":
            continue
        if character in CLOSING:
            if len(stack) == 63:
                break
            stack.append((_CANONICAL.get(CLOSING[character], CLOSING[character]), n))
        elif character in _OPENING:
            wanted = _CANONICAL.get(character, character)
            for depth in range(len(stack) - 1, -1, -1):
                if stack[depth][0] == wanted:
                    pairs.append((stack[depth][1], n))
                    del stack[depth:]
                    break
    for start, end in checked(sorted(pairs), "text"):
        inside = {_direction(kind) for kind in here[start + 1 : end]} - {""}
        if own in inside:
            side = own
        elif inside:
            earlier = (_direction(here[n]) for n in range(start - 1, -1, -1))
            context = next((kind for kind in earlier if kind), sos)
            side = context if context != own else own
        else:
            continue
        for at in (start, end):
            here[at] = side
            for n in range(at + 1, len(sequence)):  # marks on a bracket get its type
                if kinds[sequence[n]] != "NSM":
                    break
                here[n] = side


def _direction(kind: str) -> str:
    return "R" if kind in ("R", "EN", "AN") else "L" if kind == "L" else ""


def _neutral(here: list[str], level: int, sos: str, eos: str) -> None:
    """Resolve neutral types in place (rules N1 and N2)."""
    n = 0
    for neutral, run in groupby(list(here), key=_NEUTRAL.__contains__):
        end = n + sum(1 for _ in run)
        if neutral:
            left = _direction(here[n - 1]) if n else sos
            right = _direction(here[end]) if end < len(here) else eos
            here[n:end] = [left if left == right else "LR"[level & 1]] * (end - n)
        n = end
