"""Path data of SVG: read with its whole grammar, and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.budget import checked
from dala.errors import ParameterError
from dala.gpu.path.curves import CLOSE, CUBIC, LINE, MOVE, POINTS, QUAD
from dala.gpu.path.numbers import LIMIT
from dala.gpu.path.shapes import endpoint_arc
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.path.path import Path

#: Most characters of path data.
MAX_CHARACTERS: Final = 1 << 23
#: The number of arguments of each command.
_ARGUMENTS: Final = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_SPACE: Final = re.compile(r"[ \t\n\f\r]*")
_COMMA: Final = re.compile(r"[ \t\n\f\r]*,?[ \t\n\f\r]*")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BEGIN: Final = re.compile(r"\s*[Mm]\s*[-+.\d]", re.ASCII)
_FLAG: Final = re.compile(r"[01]")


def is_path_data(value: object) -> bool:
    """Return True for a text that begins as path data does, unlike the name of a color.

    >>> is_path_data("M0 0L5 5"), is_path_data("magenta")
    (True, False)
    """
    return isinstance(value, str) and _BEGIN.match(value) is not None


class _Reader:
    """Reads path data, and remembers the points that relative and smooth commands refer to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.x = self.y = 0.0
        self.start = (0.0, 0.0)
        #: The last control point, and the verb whose smooth commands mirror it.
        self.control = (0.0, 0.0)
        self.mirrored = -1
        self.verbs = bytearray()
        self.points: list[tuple[float, float]] = []

    def fail(self, expected: str) -> ParameterError:
        """Return the error for the text at the current position."""
        rest = self.text[self.at : self.at + 12]
        found = f"{rest!r}" if rest else "the end"
        return ParameterError(
            f"Path.svg: data must have {expected} at character {self.at}, got {found}.",
            call="Path.svg", argument="data", expected=expected, got=rest,
        )  # fmt: skip

    def skip(self, what: re.Pattern[str]) -> None:
        """Skip separators."""
        found = what.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def number(self) -> float:
        """Return the next number."""
        found = _NUMBER.match(self.text, self.at)
        value = float(found[0]) if found is not None else LIMIT * 2
        if found is None or not abs(value) <= LIMIT:
            raise self.fail("a number" if found is None else "a number from -1e9 to 1e9")
        self.at = found.end()
        return value

    def arguments(self, letter: str) -> list[float]:
        """Return the arguments of one command."""
        found: list[float] = []
        for n in range(_ARGUMENTS[letter]):
            if n:
                self.skip(_COMMA)
            if letter == "A" and n in (3, 4):
                if not _FLAG.match(self.text, self.at):
                    raise self.fail("a flag, 0 or 1,")
                found.append(float(self.text[self.at]))
                self.at += 1
            else:
                found.append(self.number())
        return found

    def more(self) -> bool:
        """Skip separators, and return True if arguments of the same command follow."""
        before = self.at
        self.skip(_COMMA)
        if _NUMBER.match(self.text, self.at):
            return True
        self.at = before
        self.skip(_SPACE)
        return False

    def commands(self) -> Iterator[tuple[str, bool, list[float]]]:
        """Yield each command as its capital letter, whether it is relative, and its arguments."""
        self.skip(_SPACE)
        while self.at < len(self.text):
            given = self.text[self.at]
            letter = given.upper()
            if letter not in _ARGUMENTS or (not self.verbs and letter != "M"):
                raise self.fail("a command" if self.verbs else "M or m, which begins a path,")
            self.at += 1
            self.skip(_SPACE)
            yield letter, given.islower(), self.arguments(letter)
            if letter == "Z":
                self.skip(_SPACE)
                continue
            while self.more():
                letter = "L" if letter == "M" else letter
                yield letter, given.islower(), self.arguments(letter)

    def add(self, verb: int, *points: tuple[float, float]) -> None:
        """Append a verb; after a closed contour a new one begins at its start."""
        if verb != MOVE and self.verbs[-1] == CLOSE:
            self.verbs.append(MOVE)
            self.points.append(self.start)
        self.verbs.append(verb)
        self.points.extend(points)
        if points:
            self.x, self.y = points[-1]
            if not (abs(self.x) <= LIMIT and abs(self.y) <= LIMIT):
                raise self.fail("coordinates from -1e9 to 1e9 before")
        self.mirrored = -1

    def apply(self, letter: str, relative: bool, given: list[float]) -> None:
        """Append the segments of a command."""
        dx, dy = (self.x, self.y) if relative else (0.0, 0.0)
        if letter == "Z":
            self.add(CLOSE)
            self.x, self.y = self.start
        elif letter == "H":
            self.add(LINE, (given[0] + dx, self.y))
        elif letter == "V":
            self.add(LINE, (self.x, given[0] + dy))
        elif letter == "A":
            self.arc(given, (given[5] + dx, given[6] + dy))
        else:
            pairs = [(x + dx, y + dy) for x, y in zip(given[::2], given[1::2], strict=True)]
            if letter == "M":
                self.start = pairs[0]
                self.add(MOVE, *pairs)
            elif letter == "L":
                self.add(LINE, *pairs)
            else:
                self.curve(letter, pairs)

    def curve(self, letter: str, pairs: list[tuple[float, float]]) -> None:
        """Append a curve; smooth ones mirror the control point before them."""
        verb = CUBIC if letter in "CS" else QUAD
        if letter in "ST":
            at = self.x, self.y
            cx, cy = self.control if self.mirrored == verb else at
            pairs = [(2 * at[0] - cx, 2 * at[1] - cy), *pairs]
        self.add(verb, *pairs)
        self.control, self.mirrored = pairs[-2], verb

    def arc(self, given: list[float], last: tuple[float, float]) -> None:
        """Append an arc; one without radii is a line."""
        first = self.x, self.y
        found = endpoint_arc(
            first, last, (given[0], given[1]), given[2], bool(given[3]), bool(given[4])
        )
        if found is None:
            self.add(LINE, last)
            return
        rows = [(x, y) for x, y in found.tolist()]
        for n in range(1, len(rows), 3):
            self.add(CUBIC, *rows[n : n + 3])


def read(data: str) -> tuple[bytes, NDArray]:
    """Return the verbs and points of path data."""
    if not isinstance(data, str):
        raise ParameterError.invalid("Path.svg", "data", "a str of SVG path data", data)
    if len(data) > MAX_CHARACTERS:
        raise ParameterError.invalid(
            "Path.svg", "data", f"at most {MAX_CHARACTERS} characters", len(data)
        )
    reader = _Reader(data)
    for letter, relative, given in checked(reader.commands(), "Path.svg"):
        reader.apply(letter, relative, given)
    return bytes(reader.verbs), np.array(reader.points, np.float64).reshape(-1, 2)


def written(path: Path) -> str:
    """Return a path as path data that reads back to an equal path."""
    parts = []
    rows = iter(path.points.tolist())
    for verb in path.verbs:
        numbers = [_short(value) for _ in range(POINTS[verb]) for value in next(rows)]
        parts.append("MLQCZ"[verb] + " ".join(numbers))
    return "".join(parts)


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
