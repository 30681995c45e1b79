"""Colour look-up tables and the .cube files that hold them.

A file says ``LUT_3D_SIZE n`` (or ``LUT_1D_SIZE n``), perhaps a title and the domain, then a line of
three numbers for each entry, red changing fastest. Files come from anywhere: what is not understood
is refused with its line, never guessed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from dala.errors import CubeError
from dala.gpu.compute.buffer import Buffer

#: Entries along an axis, (least, most), by the number of axes that a table has.
SIZES: Final = {1: (2, 65536), 3: (2, 129)}

#: Largest file that is read: a table of 129 entries an axis has two million lines.
MAX_BYTES: Final = 256 << 20

_Triple = tuple[float, float, float]
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ROW: Final = re.compile(rf"\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*", re.ASCII)
_NUMBERS: Final = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER})*\s*", re.ASCII)
#: From here on numbers round to an f32 of infinity.
_F32_END: Final = 3.4028235677973366e38
#: Longer lines hold no three numbers; what they hold is not worth looking at.
_LONGEST: Final = 1000
_ADVICE: Final = "It may be cut off or damaged: get it again from where it came."


@dataclass(frozen=True, eq=False)
class Cube:
    """A table of colours: ``table[r, g, b]`` (or ``table[i]`` for each channel), 1.0 being white.

    ``table`` is an f32 array of shape (n, n, n, 3), or (n, 3) for a curve a channel. ``domain_min``
    and ``domain_max`` are the colours that its first and last entries are for.

    >>> ramp = np.linspace(0, 1, 2)
    >>> cube = Cube(np.stack(np.meshgrid(ramp, ramp, ramp, indexing="ij"), axis=-1), "identity")
    >>> cube
    <Cube 'identity' 2x2x2>
    >>> load_cube(cube.text()).table[1, 0, 1].tolist()
    [1.0, 0.0, 1.0]
    """

    table: np.ndarray[Any, Any]
    title: str = ""
    domain_min: _Triple = (0.0, 0.0, 0.0)
    domain_max: _Triple = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        try:
            table = np.array(self.table, np.float32, order="C")
            low, high = (tuple(map(float, d)) for d in (self.domain_min, self.domain_max))
        except (TypeError, ValueError):
            raise CubeError("Cube: the table and its domain must be numbers.") from None
        axes = table.ndim - 1
        size = table.shape[0] if table.ndim else 0
        if axes not in SIZES or table.shape != (size,) * axes + (3,):
            raise CubeError(
                f"Cube: a table has shape (n, n, n, 3), or (n, 3) for a curve a channel; "
                f"{table.shape} came."
            )
        least, most = SIZES[axes]
        if not least <= size <= most:
            raise CubeError(
                f"Cube: a table of {axes} axes has {least} to {most} entries along each, "
                f"{size} came."
            )
        if not np.isfinite(table).all():
            raise CubeError("Cube: the table holds NaN, infinity or numbers beyond f32.")
        if len(low) != 3 or len(high) != 3 or not all(map(_in_order, low, high)):
            raise CubeError(
                f"Cube: domain_min and domain_max are three finite numbers each, the first below "
                f"the second; {self.domain_min} and {self.domain_max} came."
            )
        if not isinstance(self.title, str) or '"' in self.title or not self.title.isprintable():
            raise CubeError(
                f"Cube: the title is one line of text without quotation marks, {self.title!r} came."
            )
        table.flags.writeable = False
        for name, value in (("table", table), ("domain_min", low), ("domain_max", high)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.table.shape[:-1]))
        return f"<Cube {self.title!r} {size}>"

    @property
    def size(self) -> int:
        """Entries along each axis."""
        return int(self.table.shape[0])

    @property
    def params(self) -> dict[str, _Triple]:
        """The domain, as parameters of ``lut_apply``."""
        return {"domain_min": self.domain_min, "domain_max": self.domain_max}

    def buffer(self, device: str | None = None) -> Buffer:
        """The table as a buffer, the second input of ``lut_apply``."""
        from dala.gpu.compute.create import from_array

        return from_array(self.table, device=device)

    def text(self) -> str:
        """The table as a .cube file, every number so long that reading it gives the same f32."""
        lines = [f'TITLE "{self.title}"'] if self.title else []
        axes = self.table.ndim - 1
        lines.append(f"LUT_{axes}D_SIZE {self.size}")
        for word, domain in (("MIN", self.domain_min), ("MAX", self.domain_max)):
            lines.append(f"DOMAIN_{word} {' '.join(f'{v:.17g}' for v in domain)}")
        turned = self.table.transpose(2, 1, 0, 3) if axes == 3 else self.table
        flat = turned.reshape(-1).astype(np.float64)
        short, full = np.char.mod("%.7g", flat), np.char.mod("%.9g", flat)
        exact = short.astype(np.float32) == flat.astype(np.float32)
        rows = np.where(exact, short, full).reshape(-1, 3).tolist()
        lines += [" ".join(row) for row in rows]
        return "\n".join(lines) + "\n"


def load_cube(source: str | os.PathLike[str] | bytes) -> Cube:
    """Reads a .cube file.

    Args:
        source: a path; or the contents, as bytes or as text of more than one line.

    Raises:
        CubeError: it cannot be read, or is not a .cube file; names the file and the line.
    """
    if isinstance(source, bytes):
        return _Reader("<bytes>").read(_decoded(source, "<bytes>"))
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return _Reader("<text>").read(source)
    if not isinstance(source, str | os.PathLike):
        raise CubeError(
            f"load_cube: source must be a path, or the contents as text or bytes; "
            f"{type(source).__name__} came."
        )
    name = repr(os.fspath(source))
    try:
        with open(source, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CubeError(f"load_cube: {name} cannot be read: {why}.") from error
    return _Reader(name).read(_decoded(data, name))


def save_cube(cube: Cube, path: str | os.PathLike[str]) -> None:
    """Writes a .cube file; :func:`load_cube` reads the same numbers back.

    Raises:
        CubeError: the file cannot be written.
    """
    if not isinstance(cube, Cube):
        raise CubeError(
            f"save_cube: cube must be a Cube, {type(cube).__name__} came. Make one: Cube(table)."
        )
    text = cube.text()
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except (OSError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CubeError(f"save_cube: {path!r} cannot be written: {why}.") from error


def _in_order(low: float, high: float) -> bool:
    return low < high and math.isfinite(high - low)


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise CubeError(
            f"load_cube: {name} has more than {MAX_BYTES >> 20} MiB; no .cube file has."
        )
    if b"\0" in data:
        raise CubeError(f"load_cube: {name} is not text, so it is no .cube file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # old titles; whatever else it is gets refused by its line


class _Reader:
    """The state of reading one file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.words: dict[str, Any] = {}
        self.axes = 0
        self.size = 0

    def fail(self, problem: str, advice: str = _ADVICE) -> NoReturn:
        raise CubeError(f"load_cube: {self.name}, line {self.line}: {problem}. {advice}")

    def read(self, text: str) -> Cube:
        rows: list[_Triple] = []
        wanted = 0
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
            row = _ROW.fullmatch(line) if len(line) <= _LONGEST else None
            if row is None:
                stripped = line.strip()
                if not stripped or stripped.startswith("#"):
                    continue
                self.line = number
                if rows or len(line) > _LONGEST:
                    self.fail(f"{_shown(line)} is not three numbers")
                self.keyword(stripped)
                wanted = self.size**self.axes if self.axes else 0
                continue
            self.line = number
            if len(rows) >= wanted:
                self.too_many(wanted)
            a, b, c = map(float, row.groups())
            if not (abs(a) < _F32_END and abs(b) < _F32_END and abs(c) < _F32_END):
                self.fail(f"{_shown(line)} holds a number that no f32 holds")
            rows.append((a, b, c))
        return self.made(rows, wanted)

    def too_many(self, wanted: int) -> NoReturn:
        if not self.axes:
            self.fail(
                "numbers stand before LUT_1D_SIZE or LUT_3D_SIZE",
                "A .cube file says how large its table is first.",
            )
        self.fail(f"this is one line of numbers more than the {wanted} of LUT_{self.axes}D_SIZE")

    def keyword(self, line: str) -> None:
        word, _, rest = line.partition(" ") if "\t" not in line else _at_space(line)
        rest = rest.strip()
        if word in self.words:
            self.fail(f"{word} stands there twice")
        if word == "TITLE":
            quoted = len(rest) >= 2 and rest[0] == rest[-1] == '"'
            title = rest[1:-1] if quoted else rest
            if '"' in title or not title.isprintable():
                self.fail(f'the title {_shown(rest)} is not a text within "quotation marks"')
            self.words[word] = title
        elif word in ("LUT_1D_SIZE", "LUT_3D_SIZE"):
            self.sized(word, rest)
        elif word in ("DOMAIN_MIN", "DOMAIN_MAX"):
            self.words[word] = self.numbers(word, rest, 3)
        elif word in ("LUT_1D_INPUT_RANGE", "LUT_3D_INPUT_RANGE"):
            self.words[word] = self.numbers(word, rest, 2)
        else:
            self.fail(
                f"{_shown(line)} is nothing a .cube file has",
                "Known words: TITLE, LUT_1D_SIZE, LUT_3D_SIZE, DOMAIN_MIN, DOMAIN_MAX.",
            )

    def sized(self, word: str, rest: str) -> None:
        axes = int(word[4])
        if self.axes:
            self.fail(
                "LUT_1D_SIZE and LUT_3D_SIZE stand in one file",
                "Split it into two files and apply one after the other.",
            )
        least, most = SIZES[axes]
        # No more digits than the limit has: int() of a million digits takes minutes.
        size = int(rest) if re.fullmatch(r"\d{1,9}", rest, re.ASCII) else -1
        if not least <= size <= most:
            self.fail(f"{word} is a whole number within {least}..{most}, {_shown(rest)} came")
        self.axes, self.size, self.words[word] = axes, size, size

    def numbers(self, word: str, rest: str, count: int) -> tuple[float, ...]:
        found = tuple(map(float, rest.split())) if _NUMBERS.fullmatch(rest) else ()
        if len(found) != count or not all(map(math.isfinite, found)):
            self.fail(f"{word} is {count} numbers, {_shown(rest)} came")
        return found

    def made(self, rows: list[_Triple], wanted: int) -> Cube:
        if not self.axes:
            self.fail(
                "the file ends without LUT_1D_SIZE or LUT_3D_SIZE", "Is it a .cube file at all?"
            )
        if len(rows) != wanted:
            self.fail(
                f"the file ends after {len(rows)} of the {wanted} lines of numbers that "
                f"LUT_{self.axes}D_SIZE {self.size} asks for"
            )
        table = np.array(rows, np.float64).astype(np.float32)
        if self.axes == 3:
            table = table.reshape(self.size, self.size, self.size, 3).transpose(2, 1, 0, 3)
        low, high = self.domain()
        return Cube(table, self.words.get("TITLE", ""), low, high)

    def domain(self) -> tuple[_Triple, _Triple]:
        span = self.words.get(f"LUT_{self.axes}D_INPUT_RANGE", (0.0, 1.0))
        low = self.words.get("DOMAIN_MIN", (span[0],) * 3)
        high = self.words.get("DOMAIN_MAX", (span[1],) * 3)
        if not all(map(_in_order, low, high)):
            self.fail(f"the domain from {_spaced(low)} to {_spaced(high)} is empty or too wide")
        return low, high


def _at_space(line: str) -> tuple[str, str, str]:
    word, *rest = line.split(maxsplit=1)
    return word, " ", rest[0] if rest else ""


def _spaced(numbers: Iterable[float]) -> str:
    return " ".join(f"{n:g}" for n in numbers)


def _shown(text: str) -> str:
    """A piece of a file in an error, short whatever is in there."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")
