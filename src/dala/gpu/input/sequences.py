"""The input of a terminal, parsed: keys, typed and pasted text, the mouse (SGR 1006), focus.

Terminals report a key when it is pressed, so that its release follows at once; those that know
kitty's keyboard protocol report releases too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, cast

from dala.gpu.input.events import MAX_TEXT, InputEvent

#: Characters of a sequence at most; a longer one is text.
MAX_SEQUENCE: Final = 64

_CSI: Final = re.compile(r"\x1b\[([<=>?]?)([0-9:;]*)[ -/]*([@-~])")
_PARTIAL: Final = re.compile(r"\x1b(\[[<=>?]?[0-9:;]*[ -/]*|O)?")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"

_FINALS: Final = {
    "A": "ArrowUp", "B": "ArrowDown", "C": "ArrowRight", "D": "ArrowLeft", "H": "Home", "F": "End",
    "P": "F1", "Q": "F2", "R": "F3", "S": "F4", "M": "Enter",
}  # fmt: skip
_NUMBERS: Final = {
    1: "Home", 2: "Insert", 3: "Delete", 4: "End", 5: "PageUp", 6: "PageDown", 7: "Home", 8: "End",
    **{11 + n: f"F{1 + n}" for n in range(5)}, **{17 + n: f"F{6 + n}" for n in range(5)},
    23: "F11", 24: "F12",
}  # fmt: skip
_CONTROLS: Final = {
    "\r": "Enter",
    "\n": "Enter",
    "\t": "Tab",
    "\x7f": "Backspace",
    "\b": "Backspace",
}
#: Keys of kitty's protocol that are no characters.
_CODES: Final = {
    27: "Escape", 57358: "CapsLock", 57359: "ScrollLock", 57360: "NumLock", 57361: "PrintScreen",
    57362: "Pause", 57414: "Enter", **{ord(c): name for c, name in _CONTROLS.items()},
    **{57399 + n: str(n) for n in range(10)},
    **{57441 + 6 * n + i: name for n in range(2)
       for i, name in enumerate(("Shift", "Control", "Alt", "Meta"))},
}  # fmt: skip
#: The modifiers of a parameter's bits, and of the bits in a report of the mouse.
_BITS: Final = ("Shift", "Alt", "Control", "Meta")
_MOUSE_BITS: Final = {4: "Shift", 8: "Alt", 16: "Control"}
#: The buttons of the mouse by the numbers of the report: left, middle, right; none.
_BUTTONS: Final = (1, 3, 2, 0)


class TerminalParser:
    r"""Turns bytes into events. Positions are in cells, from the top left, which is 0, 0.

    >>> parser = TerminalParser()
    >>> [event["event_type"] for event in parser.feed(b"a\x1b[<0;3;5M")]
    ['key_down', 'char', 'key_up', 'pointer_down']
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._held: set[int] = set()
        #: The text that was pasted last.
        self.pasted: str | None = None

    @property
    def waiting(self) -> bool:
        """True while an Escape may be the begin of a sequence, or a key."""
        return bool(self._rest) and not self._rest.startswith(_PASTE)

    def feed(self, data: bytes) -> list[InputEvent]:
        """Return the events of some more bytes."""
        self._rest += self._decoder.decode(data)
        return [*self._events(final=False)]

    def flush(self) -> list[InputEvent]:
        """Return the events of the waiting bytes: no more belong to them."""
        return [*self._events(final=True)]

    def _events(self, *, final: bool) -> Iterator[InputEvent]:
        while self._rest:
            text = self._rest
            if text.startswith(_PASTE):
                end = text.find(_PASTED)
                if end < 0 and len(text) <= MAX_TEXT:
                    return
                self._rest = text[end + len(_PASTED) :] if end >= 0 else ""
                yield from self._paste(text[len(_PASTE) : end if end >= 0 else MAX_TEXT])
                continue
            found = _CSI.match(text)
            if found is not None:
                self._rest = text[found.end() :]
                yield from self._sequence(*found.groups())
                continue
            partial = _PARTIAL.match(text)
            whole = partial is not None and partial.end() == len(text)
            if whole and not final and len(text) < MAX_SEQUENCE:
                return
            used = 1
            if text.startswith("\x1bO") and text[2:3] in _FINALS:
                used, name = 3, _FINALS[text[2]]
                yield from self._press(name, ())
            elif text[0] == "\x1b" and len(text) > 1 and text[1] not in "\x1b[":
                used = 2
                yield from self._character(text[1], ("Alt",))
            else:
                yield from self._character(text[0], ())
            self._rest = text[used:]

    # keys and text ------------------------------------------------------------------------------
    def _character(self, text: str, modifiers: tuple[str, ...]) -> Iterator[InputEvent]:
        if text == "\x1b":
            yield from self._press("Escape", modifiers)
        elif text in _CONTROLS:
            yield from self._press(_CONTROLS[text], modifiers)
        elif text < " ":
            name = " " if text == "\0" else chr(ord(text) + 96)
            yield from self._press(name, ("Control", *modifiers))
        else:
            yield from self._press(text, modifiers, text="" if modifiers else text)

    def _press(
        self, key: str, modifiers: tuple[str, ...], *, text: str = "", kind: int = 0
    ) -> Iterator[InputEvent]:
        """Yield the events of a key: pressed (1), repeated (2), released (3), or not known (0)."""
        if kind in (0, 1):
            yield _event("key_down", key=key, modifiers=modifiers)
        if text and kind != 3:
            yield _event("char", data=text, modifiers=modifiers)
        if kind in (0, 3):
            yield _event("key_up", key=key, modifiers=modifiers)

    def _paste(self, text: str) -> Iterator[InputEvent]:
        self.pasted = text.replace("\r\n", "\n").replace("\r", "\n")
        yield _event("char", data=self.pasted, modifiers=())

    def _sequence(self, private: str, numbers: str, final: str) -> Iterator[InputEvent]:
        """Yield the events of a sequence; one that is not known has none."""
        given = [[int(n[:9] or 0) for n in each.split(":")] for each in numbers.split(";")]
        first = given[0][0]
        if private == "<" and final in "Mm" and len(given) == 3:
            yield from self._mouse(first, given[1][0] - 1, given[2][0] - 1, final == "M")
            return
        if private:
            return
        bits = max((given[1][0] if len(given) > 1 else 1) - 1, 0)
        modifiers = tuple(name for n, name in enumerate(_BITS) if bits >> n & 1)
        kind = given[1][1] if len(given) > 1 and len(given[1]) > 1 else 0
        if final == "u":
            yield from self._kitty(given, modifiers, kind or 1)
        elif final in "IO" and not numbers:
            yield _event("focus" if final == "I" else "blur")
        elif final == "Z":
            yield from self._press("Tab", ("Shift",))
        else:
            name = _NUMBERS.get(first) if final == "~" else _FINALS.get(final)
            if name is not None:
                yield from self._press(name, modifiers, kind=kind)

    def _kitty(
        self, given: list[list[int]], modifiers: tuple[str, ...], kind: int
    ) -> Iterator[InputEvent]:
        codes = given[0]
        code = codes[1] if "Shift" in modifiers and len(codes) > 1 and codes[1] else codes[0]
        name = _CODES.get(code) or _chr(code)
        text = "".join(_chr(n) for n in given[2]) if len(given) > 2 else ""
        if name:
            yield from self._press(name, modifiers, text=text, kind=kind)

    # the mouse ----------------------------------------------------------------------------------
    def _mouse(self, code: int, column: int, line: int, pressed: bool) -> Iterator[InputEvent]:
        modifiers = tuple(name for bit, name in _MOUSE_BITS.items() if code & bit)
        at = {"x": float(column), "y": float(line), "modifiers": modifiers}
        button = _BUTTONS[code & 3]
        if code & 64:
            along, step = ("dx", "dy")[code & 3 < 2], (-100.0, 100.0)[code & 1]
            yield _event("wheel", **{"dx": 0.0, "dy": 0.0, along: step}, **at)
            return
        if code & 32:
            kind, button = "pointer_move", 0
        elif pressed:
            kind = "pointer_down"
            self._held.add(button)
        else:
            kind = "pointer_up"
            self._held.discard(button)
        yield _event(kind, button=button, buttons=tuple(sorted(self._held)), **at)


def _chr(code: int) -> str:
    """Return a printable character, or ""."""
    printable = code < 0x110000 and not 57344 <= code < 63744
    return chr(code) if printable and chr(code).isprintable() else ""


def _event(kind: str, **fields: object) -> InputEvent:
    return cast("InputEvent", {"event_type": kind, **fields})
