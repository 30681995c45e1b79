"""What a terminal sends, parsed: keys, text, mouse, and hostile bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.gpu.input.events import MAX_TEXT, checked_event
from dala.gpu.input.sequences import TerminalParser

KEYS = [
    (b"a", "a", ()),
    (b"A", "A", ()),
    ("é".encode(), "é", ()),
    ("日".encode(), "日", ()),
    (b" ", " ", ()),
    (b"\r", "Enter", ()),
    (b"\t", "Tab", ()),
    (b"\x7f", "Backspace", ()),
    (b"\x01", "a", ("Control",)),
    (b"\x1a", "z", ("Control",)),
    (b"\0", " ", ("Control",)),
    (b"\x1bx", "x", ("Alt",)),
    (b"\x1b[A", "ArrowUp", ()),
    (b"\x1bOD", "ArrowLeft", ()),
    (b"\x1b[1;5C", "ArrowRight", ("Control",)),
    (b"\x1b[1;2H", "Home", ("Shift",)),
    (b"\x1b[3~", "Delete", ()),
    (b"\x1b[5;3~", "PageUp", ("Alt",)),
    (b"\x1bOP", "F1", ()),
    (b"\x1b[15~", "F5", ()),
    (b"\x1b[24;6~", "F12", ("Shift", "Control")),
    (b"\x1b[Z", "Tab", ("Shift",)),
]


def parsed(data, *, final=True):
    parser = TerminalParser()
    return parser.feed(data) + (parser.flush() if final else [])


@pytest.mark.parametrize(("data", "key", "modifiers"), KEYS)
def test_keys(data, key, modifiers):
    found = [e for e in parsed(data) if e["event_type"] != "char"]
    assert [(e["event_type"], e["key"], e["modifiers"]) for e in found] == [
        ("key_down", key, modifiers),
        ("key_up", key, modifiers),
    ]


@given(st.lists(st.sampled_from([data for data, *_ in KEYS])), st.data())
def test_bytes_may_arrive_in_any_parts(parts, data):
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=9)))
    parser, found = TerminalParser(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += parser.feed(whole[start:end])
    assert found + parser.flush() == parsed(whole)
    assert not parser.waiting


def test_text_is_typed():
    assert [e["data"] for e in parsed("añ €".encode()) if e["event_type"] == "char"] == [*"añ €"]
    assert [e for e in parsed(b"\x1bq\x03") if e["event_type"] == "char"] == []


def test_escape_is_a_key_once_nothing_follows():
    parser = TerminalParser()
    assert parser.feed(b"\x1b") == []
    assert parser.waiting
    assert [e["key"] for e in parser.flush()] == ["Escape", "Escape"]
    assert parser.feed(b"\x1b") == []
    assert [e["key"] for e in parser.feed(b"[A")] == ["ArrowUp", "ArrowUp"]


def test_mouse():
    found = parsed(
        b"\x1b[<35;1;1M\x1b[<0;3;5M\x1b[<2;3;5M\x1b[<32;4;5M\x1b[<0;4;5m\x1b[<2;4;5m"
        b"\x1b[<64;4;5M\x1b[<85;4;5M\x1b[<66;4;5M\x1b[<1;200;300M"
    )
    assert [
        (e["event_type"], e["x"], e["y"], e.get("button"), e.get("buttons")) for e in found
    ] == [
        ("pointer_move", 0, 0, 0, ()),
        ("pointer_down", 2, 4, 1, (1,)),
        ("pointer_down", 2, 4, 2, (1, 2)),
        ("pointer_move", 3, 4, 0, (1, 2)),
        ("pointer_up", 3, 4, 1, (2,)),
        ("pointer_up", 3, 4, 2, ()),
        ("wheel", 3, 4, None, None),
        ("wheel", 3, 4, None, None),
        ("wheel", 3, 4, None, None),
        ("pointer_down", 199, 299, 3, (3,)),
    ]
    wheels = [(e["dx"], e["dy"], e["modifiers"]) for e in found if e["event_type"] == "wheel"]
    assert wheels == [(0, -100, ()), (0, 100, ("Shift", "Control")), (-100, 0, ())]


def test_focus():
    assert [e["event_type"] for e in parsed(b"\x1b[O\x1b[I")] == ["blur", "focus"]


def test_kitty_reports_releases():
    found = parsed(
        b"\x1b[97;;97u\x1b[97;1:2;97u\x1b[97;1:3u"  # a, held, released
        b"\x1b[97:65;2;65u\x1b[57441;1:3u"  # A, the left Shift released
        b"\x1b[1;1:3D\x1b[13u\x1b[99;5u\x1b[57376u"
    )
    plain = [(e["event_type"], e.get("key") or e["data"], e["modifiers"]) for e in found]
    assert plain == [
        ("key_down", "a", ()),
        ("char", "a", ()),
        ("char", "a", ()),
        ("key_up", "a", ()),
        ("key_down", "A", ("Shift",)),
        ("char", "A", ("Shift",)),
        ("key_up", "Shift", ()),
        ("key_up", "ArrowLeft", ()),
        ("key_down", "Enter", ()),
        ("key_down", "c", ("Control",)),
    ]


def test_paste():
    parser = TerminalParser()
    assert parser.feed(b"\x1b[200~one\rt") == []
    found = parser.feed(b"wo\x1b[A\x1b[201~x")
    assert [e.get("data") for e in found] == ["one\ntwo\x1b[A", None, "x", None]
    assert parser.pasted == "one\ntwo\x1b[A"
    assert parser.feed(b"\x1b[200~" + b"a" * (2 * MAX_TEXT))[0]["data"] == "a" * (MAX_TEXT - 6)
    assert not parser._rest  # what is too long is cut off


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from(
                [b"\x1b", b"\x1b[", b"\x1b[<", b";", b":", b"9" * 30, b"M", b"u", b"~"]
            ),
            st.from_regex(rb"\x1b\[[<?]?[0-9:;]{0,20}[A-Za-z~]", fullmatch=True),
        ),
        max_size=12,
    )
)
def test_any_bytes_give_valid_events(parts):
    parser = TerminalParser()
    for part in parts:
        for event in parser.feed(part):
            checked_event("terminal", event)
        assert len(parser._rest) < 70 + len(part) or parser._rest.startswith("\x1b[200~")
    for event in parser.flush():
        checked_event("terminal", event)
