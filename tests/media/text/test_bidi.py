"""Bidirectional text: single rules of UAX 9, and another implementation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.media.text.bidi import MAX_DEPTH, levels, visual_order

LRE, RLE, PDF, LRO, RLO = "\u202a", "\u202b", "\u202c", "\u202d", "\u202e"
LRI, RLI, FSI, PDI = "\u2066", "\u2067", "\u2068", "\u2069"


def shown(text: str, direction: str = "auto") -> str:
    found = levels(text, direction)[1]
    return "".join(text[n] for n in visual_order(found))


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("abc", 0, [0, 0, 0]),
        ("אבג", 1, [1, 1, 1]),
        ("", 0, []),
        ("12", 0, [0, 0]),
        ("אב 12", 1, [1, 1, 1, 2, 2]),  # numbers stay left to right
        ("ab אב cd", 0, [0, 0, 0, 1, 1, 0, 0, 0]),
        ("אב 1,2", 1, [1, 1, 1, 2, 2, 2]),  # W4: a comma between digits
        ("אב $5", 1, [1, 1, 1, 2, 2]),  # W5: a currency sign beside digits
        ("ب 5", 1, [1, 1, 2]),  # W2: digits after Arabic
        ("a (אב) c", 0, [0, 0, 0, 1, 1, 0, 0, 0]),  # N0: brackets are the paragraph's
        ("אב (cd)", 1, [1, 1, 1, 1, 2, 2, 1]),
        ("א\u0301ב", 1, [1, 1, 1]),  # W1: marks go with their letter
        (f"a{RLE}b{PDF}c", 0, [0, 0, 2, 2, 0]),
        (f"a{RLO}bc{PDF}d", 0, [0, 0, 1, 1, 1, 0]),
        (f"a{RLI}אb{PDI}c", 0, [0, 0, 1, 2, 0, 0]),
        (f"a{FSI}אב{PDI}c", 0, [0, 0, 1, 1, 0, 0]),
        (f"{LRI}a{PDI}א", 1, [1, 2, 1, 1]),  # P2: what is isolated does not count
    ],
)
def test_levels(text: str, base: int, expected: list[int]) -> None:
    assert levels(text) == (base, expected)


def test_given_direction() -> None:
    assert levels("abc", "rtl") == (1, [2, 2, 2])
    assert levels("אב!", "ltr") == (0, [1, 1, 0])
    assert shown("אב!", "rtl") == "!בא"


def test_embeddings_deeper_than_allowed_are_ignored() -> None:
    found = levels("a" + RLE * 300 + "א" + PDF * 300 + "b")[1]
    assert max(found) <= MAX_DEPTH + 1
    assert found[0] == found[-1] == 0


def test_visual_order_of_nested_levels() -> None:
    assert visual_order([0, 1, 2, 2, 1, 0]) == [0, 4, 2, 3, 1, 5]
    assert visual_order([]) == []
    assert visual_order([2, 2]) == [0, 1]


ALPHABET = "ab12 ,.+-$%()[]<>!אבג\u0627\u0628\u0661\u0662\u0300" + LRE + RLE + PDF + LRO + RLO
ALPHABET += LRI + RLI + FSI + PDI + "\u200e\u200f"


@settings(max_examples=400, deadline=None)
@given(st.text(ALPHABET, max_size=16), st.sampled_from(("auto", "ltr", "rtl")))
def test_order_agrees_with_another_implementation(text: str, direction: str) -> None:
    bidi = pytest.importorskip("bidi")
    text += PDI * 20 + "x"  # so that no isolate is open where the other resets trailing spaces
    theirs = bidi.get_display(text, base_dir={"auto": None, "ltr": "L", "rtl": "R"}[direction])
    unseen = str.maketrans("", "", LRE + RLE + PDF + LRO + RLO)
    assert shown(text, direction).translate(unseen) == theirs.translate(unseen)


@given(st.text(max_size=40), st.sampled_from(("auto", "ltr", "rtl")))
def test_any_text_has_an_order(text: str, direction: str) -> None:
    base, found = levels(text, direction)
    assert len(found) == len(text)
    assert all(base <= level <= MAX_DEPTH + 1 for level in found)
    assert sorted(visual_order(found)) == list(range(len(text)))
