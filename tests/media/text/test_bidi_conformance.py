"""The bidirectional algorithm against Unicode's own tests, BidiCharacterTest and BidiTest."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from dala.media.text.bidi import CLOSING, classes, levels, visual_order

FOLDER = Path("/usr/share/unicode")
CHARACTERS = FOLDER / "BidiCharacterTest.txt"
BRACKETS = FOLDER / "BidiBrackets.txt"
CLASSES = FOLDER / "BidiTest.txt"

#: Classes of characters that the algorithm removes; the files give them no level.
REMOVED = ("LRE", "RLE", "LRO", "RLO", "PDF", "BN")
#: Whitespace and isolate controls, which rule L1 resets before separators and line ends.
SPACES = ("WS", "FSI", "LRI", "RLI", "PDI", *REMOVED)
#: One character of each class.
SAMPLE = {
    "L": "a", "R": "\u05d0", "EN": "1", "ES": "+", "ET": "#", "AN": "\u0660", "CS": ",",
    "B": "\u2029", "S": "\t", "WS": " ", "ON": "!", "NSM": "\u0300", "AL": "\u0627",
    "BN": "\u00ad", "LRE": "\u202a", "RLE": "\u202b", "PDF": "\u202c", "LRO": "\u202d",
    "RLO": "\u202e", "LRI": "\u2066", "RLI": "\u2067", "FSI": "\u2068", "PDI": "\u2069",
}  # fmt: skip
DIRECTIONS = ("ltr", "rtl", "auto")


def need(path: Path) -> Path:
    if not path.is_file():
        pytest.skip(f"{path} does not exist; Debian's package unicode-data has it")
    return path


def line_levels(text: str, direction: str) -> tuple[int, list[int | None]]:
    """Return the levels of a line after rule L1, None for removed characters."""
    base, found = levels(text, direction)
    kinds = classes(text)
    resets = True
    for index in range(len(text) - 1, -1, -1):
        if kinds[index] in ("B", "S"):
            resets = True
        elif kinds[index] not in SPACES:
            resets = False
        if resets:
            found[index] = base
    return base, [None if k in REMOVED else level for k, level in zip(kinds, found, strict=True)]


def expected_levels(field: str) -> list[int | None]:
    return [None if level == "x" else int(level) for level in field.split()]


def check(text: str, direction: str, wanted: list[int | None], order: list[int]) -> None:
    _, found = line_levels(text, direction)
    assert found == wanted, (text.encode("unicode_escape"), direction)
    kept = [i for i, level in enumerate(found) if level is not None]
    shown = visual_order([level for level in found if level is not None])
    assert [kept[i] for i in shown] == order, (text.encode("unicode_escape"), direction)


def character_cases() -> Iterator[tuple[str, str, int, list[int | None], list[int]]]:
    for line in need(CHARACTERS).read_text().splitlines():
        if line and not line.startswith("#"):
            codes, direction, base, wanted, order = line.split(";")
            text = "".join(chr(int(code, 16)) for code in codes.split())
            yield (
                text, DIRECTIONS[int(direction)], int(base), expected_levels(wanted),
                [int(i) for i in order.split()],
            )  # fmt: skip


def test_brackets():
    pairs = {}
    for line in need(BRACKETS).read_text().splitlines():
        fields = line.partition("#")[0].split(";")
        if len(fields) == 3 and fields[2].strip() == "o":
            pairs[chr(int(fields[0], 16))] = chr(int(fields[1], 16))
    assert pairs == CLOSING


#: `make test-long` tries all cases, `make test` every seventh or thirtieth.
ALL = pytest.param(1, marks=pytest.mark.long)


@pytest.mark.parametrize("share", [7, ALL])
def test_characters(share):
    count = 0
    for text, direction, base, wanted, order in islice(character_cases(), 0, None, share):
        assert levels(text, direction)[0] == base
        check(text, direction, wanted, order)
        count += 1
    assert count > 90_000 // share


@pytest.mark.parametrize("share", [31, ALL])
def test_classes(share):
    assert {unicodedata.bidirectional(c) for c in SAMPLE.values()} == set(SAMPLE)
    wanted: list[int | None] = []
    order: list[int] = []
    count = 0
    for number, line in enumerate(need(CLASSES).read_text().splitlines()):
        if line.startswith("@Levels:"):
            wanted = expected_levels(line.partition(":")[2])
        elif line.startswith("@Reorder:"):
            order = [int(i) for i in line.partition(":")[2].split()]
        elif line and line[0] not in "#@" and number % share == 0:
            kinds, bits = line.split(";")
            text = "".join(SAMPLE[kind] for kind in kinds.split())
            for bit, direction in ((1, "auto"), (2, "ltr"), (4, "rtl")):
                if int(bits) & bit:
                    check(text, direction, wanted, order)
                    count += 1
    assert count > 500_000 // share
