"""Color lookup tables and .cube files.

A file has ``LUT_3D_SIZE n`` (or ``LUT_1D_SIZE n``), optionally a title and the domain, then a line
of three numbers per entry, red changing fastest. Files may be untrusted: an invalid line raises an
error with its line number.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from dala.errors import CubeError
from dala.gpu.compute.buffer import Buffer
from dala.typing import NDArray, PathLike

#: Minimum and maximum number of entries along an axis, by the number of axes.
SIZES: Final = {1: (2, 65536), 3: (2, 129)}

#: The largest file: a table of 129 entries per axis has two million lines.
MAX_BYTES: Final = 256 << 20

_Triple = tuple[float, float, float]
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ROW: Final = re.compile(rf"\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*", re.ASCII)
_NUMBERS: Final = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER})*\s*", re.ASCII)
#: Numbers of this magnitude or more round to infinity in f32.
_F32_END: Final = 3.4028235677973366e38
#: The maximum length of a line, in characters.
_MAX_LINE: Final = 1000
_ADVICE: Final = "The file may be truncated or damaged. Download it again."


@dataclass(frozen=True, eq=False)
class Cube:
    """A color lookup table: ``table[r, g, b]``, or ``table[i]`` per channel. 1.0 is white.

    Attributes:
        table: an f32 array of shape (n, n, n, 3), or (n, 3) for one curve per channel.
        title: the title, one line without quotation marks.
        domain_min: the input color of the first entry.
        domain_max: the input color of the last entry.

    >>> ramp = np.linspace(0, 1, 2)
    >>> cube = Cube(np.stack(np.meshgrid(ramp, ramp, ramp, indexing="ij"), axis=-1), "identity")
    >>> cube
    <Cube 'identity' 2x2x2>
    >>> load_cube(cube.text()).table[1, 0, 1].tolist()
    [1.0, 0.0, 1.0]
    """

    table: NDArray
    title: str = ""
    domain_min: _Triple = (0.0, 0.0, 0.0)
    domain_max: _Triple = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        try:
            table = np.array(self.table, np.float32, order="C")
            low, high = (tuple(map(float, d)) for d in (self.domain_min, self.domain_max))
        except (TypeError, ValueError):
            raise CubeError("Cube: table and domain must be numbers.", call="Cube") from None
        axes = table.ndim - 1
        size = table.shape[0] if table.ndim else 0
        if axes not in SIZES or table.shape != (size,) * axes + (3,):
            raise CubeError.invalid(
                "Cube", "table", "of shape (n, n, n, 3), or (n, 3) for curves", table.shape
            )
        least, most = SIZES[axes]
        if not least <= size <= most:
            expected = f"of {least} to {most} entries along each of {axes} axes"
            raise CubeError.invalid("Cube", "table", expected, size)
        if not np.isfinite(table).all():
            raise CubeError("Cube: table must be finite numbers that fit f32.", call="Cube")
        if len(low) != 3 or len(high) != 3 or not all(map(_in_order, low, high)):
            raise CubeError.invalid(
                "Cube",
                "domain_min",
                "three finite numbers below those of domain_max",
                (self.domain_min, self.domain_max),
            )
        if not isinstance(self.title, str) or '"' in self.title or not self.title.isprintable():
            expected = "one line of text without quotation marks"
            raise CubeError.invalid("Cube", "title", expected, self.title)
        table.flags.writeable = False
        for name, value in (("table", table), ("domain_min", low), ("domain_max", high)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.table.shape[:-1]))
        return f"<Cube {self.title!r} {size}>"

    @property
    def size(self) -> int:
        """The number of entries along each axis."""
        return int(self.table.shape[0])

    @property
    def params(self) -> dict[str, _Triple]:
        """The domain as parameters of ``lut_apply``."""
        return {"domain_min": self.domain_min, "domain_max": self.domain_max}

    def buffer(self, device: str | None = None) -> Buffer:
        """Return the table as a buffer, the second input of ``lut_apply``."""
        from dala.gpu.compute.create import from_array

        return from_array(self.table, device=device)

    def text(self) -> str:
        """Return the table as the text of a .cube file; reading it gives the same f32 numbers."""
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


def load_cube(source: PathLike | bytes) -> Cube:
    """Read a .cube file.

    Args:
        source: a path; or the contents, as bytes or as text of more than one line.

    Raises:
        CubeError: the file cannot be read, or is not a .cube file; names the file and the line.

    >>> load_cube("LUT_1D_SIZE 2\\n0 0 0\\n1 0.5 0\\n").table[1].tolist()
    [1.0, 0.5, 0.0]
    """
    if isinstance(source, bytes):
        return _Reader("<bytes>").read(_decoded(source, "<bytes>"))
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return _Reader("<text>").read(source)
    if not isinstance(source, str | os.PathLike):
        raise CubeError.invalid(
            "load_cube", "source", "a path, or the contents as text or bytes", source
        )
    name = repr(os.fspath(source))
    try:
        with open(source, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CubeError(f"load_cube: {name} cannot be read: {why}.") from error
    return _Reader(name).read(_decoded(data, name))


def save_cube(cube: Cube, path: PathLike) -> None:
    """Write a .cube file; :func:`load_cube` reads the same numbers back.

    Raises:
        CubeError: the file cannot be written.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "curve.cube")
    >>> save_cube(Cube([[0, 0, 0], [1, 1, 1]], "line"), path)
    >>> load_cube(path)
    <Cube 'line' 2>
    """
    if not isinstance(cube, Cube):
        raise CubeError.invalid("save_cube", "cube", "a Cube", cube, "Make one: Cube(table).")
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
            f"load_cube: {name} is larger than {MAX_BYTES >> 20} MiB, the limit of a .cube file."
        )
    if b"\0" in data:
        raise CubeError(f"load_cube: {name} is not text, so it is not a .cube file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # titles of old files; other lines must be ASCII


class _Reader:
    """Parses one .cube file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.seen: set[str] = set()
        self.title = ""
        self.ranges: dict[str, tuple[float, ...]] = {}
        self.axes = 0
        self.size = 0

    def fail(self, problem: str, advice: str = _ADVICE) -> NoReturn:
        raise CubeError(f"load_cube: {self.name}, line {self.line}: {problem}. {advice}")

    def read(self, text: str) -> Cube:
        rows: list[_Triple] = []
        wanted = 0
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
            row = _ROW.fullmatch(line) if len(line) <= _MAX_LINE else None
            if row is None:
                stripped = line.strip()
                if not stripped or stripped.startswith("#"):
                    continue
                self.line = number
                if rows or len(line) > _MAX_LINE:
                    self.fail(f"{_shown(line)} is not three numbers")
                self.keyword(stripped)
                wanted = self.size**self.axes if self.axes else 0
                continue
            self.line = number
            if len(rows) >= wanted:
                self.too_many(wanted)
            a, b, c = map(float, row.groups())
            if not (abs(a) < _F32_END and abs(b) < _F32_END and abs(c) < _F32_END):
                self.fail(f"{_shown(line)} has a number that does not fit f32")
            rows.append((a, b, c))
        return self.finish(rows, wanted)

    def too_many(self, wanted: int) -> NoReturn:
        if not self.axes:
            self.fail(
                "numbers before LUT_1D_SIZE or LUT_3D_SIZE",
                "A .cube file starts with the size of its table.",
            )
        self.fail(f"more than the {wanted} lines of numbers of LUT_{self.axes}D_SIZE")

    def keyword(self, line: str) -> None:
        word, _, rest = line.partition(" ") if "\t" not in line else _split_word(line)
        rest = rest.strip()
        if word in self.seen:
            self.fail(f"{word} is repeated")
        self.seen.add(word)
        if word == "TITLE":
            quoted = len(rest) >= 2 and rest[0] == rest[-1] == '"'
            title = rest[1:-1] if quoted else rest
            if '"' in title or not title.isprintable():
                self.fail(f'the title {_shown(rest)} must be text in "quotation marks"')
            self.title = title
        elif word in ("LUT_1D_SIZE", "LUT_3D_SIZE"):
            self.set_size(word, rest)
        elif word in ("DOMAIN_MIN", "DOMAIN_MAX"):
            self.ranges[word] = self.numbers(word, rest, 3)
        elif word in ("LUT_1D_INPUT_RANGE", "LUT_3D_INPUT_RANGE"):
            self.ranges[word] = self.numbers(word, rest, 2)
        else:
            self.fail(
                f"{_shown(line)} is not a keyword of .cube files",
                "Known keywords: TITLE, LUT_1D_SIZE, LUT_3D_SIZE, DOMAIN_MIN, DOMAIN_MAX.",
            )

    def set_size(self, word: str, rest: str) -> None:
        axes = int(word[4])
        if self.axes:
            self.fail(
                "the file has both LUT_1D_SIZE and LUT_3D_SIZE",
                "Split it into two files and apply one after the other.",
            )
        least, most = SIZES[axes]
        # Limit the digits: int() of a million digits takes minutes.
        size = int(rest) if re.fullmatch(r"\d{1,9}", rest, re.ASCII) else -1
        if not least <= size <= most:
            self.fail(f"{word} must be an int from {least} to {most}, got {_shown(rest)}")
        self.axes, self.size = axes, size

    def numbers(self, word: str, rest: str, count: int) -> tuple[float, ...]:
        found = tuple(map(float, rest.split())) if _NUMBERS.fullmatch(rest) else ()
        if len(found) != count or not all(map(math.isfinite, found)):
            self.fail(f"{word} must be {count} numbers, got {_shown(rest)}")
        return found

    def finish(self, rows: list[_Triple], wanted: int) -> Cube:
        if not self.axes:
            self.fail(
                "the file has no LUT_1D_SIZE or LUT_3D_SIZE", "Check that it is a .cube file."
            )
        if len(rows) != wanted:
            self.fail(
                f"the file ends after {len(rows)} of the {wanted} lines of numbers that "
                f"LUT_{self.axes}D_SIZE {self.size} requires"
            )
        table = np.array(rows, np.float64).astype(np.float32)
        if self.axes == 3:
            table = table.reshape(self.size, self.size, self.size, 3).transpose(2, 1, 0, 3)
        low, high = self.domain()
        return Cube(table, self.title, low, high)

    def domain(self) -> tuple[_Triple, _Triple]:
        span = self.ranges.get(f"LUT_{self.axes}D_INPUT_RANGE", (0.0, 1.0))
        low = _triple(*self.ranges.get("DOMAIN_MIN", (span[0],) * 3))
        high = _triple(*self.ranges.get("DOMAIN_MAX", (span[1],) * 3))
        if not all(map(_in_order, low, high)):
            self.fail(f"the domain from {_joined(low)} to {_joined(high)} is empty or too wide")
        return low, high


def _triple(a: float, b: float, c: float) -> _Triple:
    return a, b, c


def _split_word(line: str) -> tuple[str, str, str]:
    word, *rest = line.split(maxsplit=1)
    return word, " ", rest[0] if rest else ""


def _joined(numbers: Iterable[float]) -> str:
    return " ".join(f"{n:g}" for n in numbers)


def _shown(text: str) -> str:
    """Return text from a file for an error message, shortened."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")
