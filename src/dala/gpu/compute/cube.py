"""Color lookup tables and .cube files.

A file has ``LUT_3D_SIZE n`` (or ``LUT_1D_SIZE n``), optionally a title and the domain, then a line
of three numbers per entry, red changing fastest. With both sizes, as DaVinci Resolve writes them,
the entries of the curves are first, and colors pass through them before the 3D table. Files may be
untrusted: an invalid line is refused with its number.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from dala import memory
from dala.budget import checked
from dala.errors import CubeError
from dala.extensions import write_whole
from dala.forks import cached_property
from dala.gpu.compute.buffer import Buffer
from dala.typing import NDArray, PathLike

#: Minimum and maximum number of entries along an axis, by the number of axes.
SIZES: Final = {1: (2, 65536), 3: (2, 129)}

#: The largest file: a table of 129 entries per axis has two million lines.
#: Bytes of memory for each character while it is read: numbers are objects.
PARSED: Final = 16
MAX_BYTES: Final = 256 << 20

_Triple = tuple[float, float, float]
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ROW: Final = re.compile(rf"\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*", re.ASCII)
_NUMBERS: Final = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER})*\s*", re.ASCII)
#: Numbers of this magnitude or more round to infinity in f32.
_F32_END: Final = 3.4028235677973366e38
#: The maximum length of a line, in characters.
_MAX_LINE: Final = 1000
#: How many numbers the keywords of domains have.
_RANGES: Final = {
    "DOMAIN_MIN": 3, "DOMAIN_MAX": 3, "LUT_1D_INPUT_RANGE": 2, "LUT_3D_INPUT_RANGE": 2,
}  # fmt: skip
_ADVICE: Final = "The file may be truncated or damaged. Download it again."


@dataclass(frozen=True, eq=False)
class Cube:
    """A color lookup table: ``table[r, g, b]``, or ``table[i]`` per channel. 1.0 is white.

    Attributes:
        table: an f32 array of shape (n, n, n, 3), or (n, 3) for one curve per channel.
        title: the title, one line without quotation marks.
        domain_min: the input color of the first entry.
        domain_max: the input color of the last entry.
        shaper: curves before a 3D table, an f32 array of shape (n, 3); None if there are none.
        shaper_min: the input color of the first entry of the curves.
        shaper_max: the input color of the last entry of the curves.

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
    shaper: NDArray | None = None
    shaper_min: _Triple = (0.0, 0.0, 0.0)
    shaper_max: _Triple = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        table = _checked_table(self.table, "table")
        low, high = _checked_domain(self.domain_min, self.domain_max, "domain")
        axes, size = table.ndim - 1, table.shape[0] if table.ndim else 0
        if axes not in SIZES or table.shape != (size,) * axes + (3,):
            raise CubeError.invalid(
                "Cube", "table", "of shape (n, n, n, 3), or (n, 3) for curves", table.shape
            )
        _check_size(size, axes, "table")
        first, last = _checked_domain(self.shaper_min, self.shaper_max, "shaper")
        if self.shaper is not None:
            shaper = _checked_table(self.shaper, "shaper")
            if axes != 3 or shaper.ndim != 2 or shaper.shape[1] != 3:
                expected = "of shape (n, 3), before a table of shape (n, n, n, 3)"
                raise CubeError.invalid("Cube", "shaper", expected, shaper.shape)
            _check_size(shaper.shape[0], 1, "shaper")
            shaper.flags.writeable = False
            object.__setattr__(self, "shaper", shaper)
        if not isinstance(self.title, str) or '"' in self.title or not self.title.isprintable():
            expected = "one line of text without quotation marks"
            raise CubeError.invalid("Cube", "title", expected, self.title)
        table.flags.writeable = False
        for name, value in (
            ("table", table), ("domain_min", low), ("domain_max", high),
            ("shaper_min", first), ("shaper_max", last),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.table.shape[:-1]))
        curves = "" if self.shaper is None else f" behind curves of {len(self.shaper)}"
        return f"<Cube {self.title!r} {size}{curves}>"

    @property
    def size(self) -> int:
        """The number of entries along each axis."""
        return int(self.table.shape[0])

    @cached_property
    def packed(self) -> NDArray:
        """The numbers that ``lut_apply`` takes: the table, behind the entries of the curves."""
        if self.shaper is None:
            return self.table
        packed = np.concatenate([self.shaper, self.table.reshape(-1, 3)])
        packed.flags.writeable = False
        return packed

    @property
    def params(self) -> dict[str, _Triple | int]:
        """The domain, and that of the curves, as parameters of ``lut_apply``."""
        found: dict[str, _Triple | int] = {
            "domain_min": self.domain_min,
            "domain_max": self.domain_max,
        }
        if self.shaper is not None:
            found["shaper"] = len(self.shaper)
            found |= {"shaper_min": self.shaper_min, "shaper_max": self.shaper_max}
        return found

    def buffer(self, device: str | None = None) -> Buffer:
        """Return the packed table as a buffer, the second input of ``lut_apply``."""
        from dala.gpu.compute.create import from_array

        return from_array(self.packed, device=device)

    def text(self) -> str:
        """Return the table as the text of a .cube file; reading it gives the same f32 numbers.

        Raises:
            CubeError: curves before the table, with a domain that differs between the channels.
        """
        lines = [f'TITLE "{self.title}"'] if self.title else []
        axes = self.table.ndim - 1
        if self.shaper is None:
            lines.append(f"LUT_{axes}D_SIZE {self.size}")
            for word, domain in (("MIN", self.domain_min), ("MAX", self.domain_max)):
                lines.append(f"DOMAIN_{word} {' '.join(f'{v:.17g}' for v in domain)}")
        else:
            for words, size, low, high in (
                ("LUT_1D", len(self.shaper), self.shaper_min, self.shaper_max),
                ("LUT_3D", self.size, self.domain_min, self.domain_max),
            ):
                if len({*low}) > 1 or len({*high}) > 1:
                    raise CubeError(
                        "Cube.text: a .cube file with curves has one domain for all channels, got "
                        f"{low} to {high}."
                    )
                lines += [f"{words}_SIZE {size}"]
                lines += [f"{words}_INPUT_RANGE {low[0]:.17g} {high[0]:.17g}"]
            lines += _rows(self.shaper)
        lines += _rows(self.table.transpose(2, 1, 0, 3) if axes == 3 else self.table)
        return "\n".join(lines) + "\n"


def _rows(entries: NDArray) -> list[str]:
    flat = entries.reshape(-1).astype(np.float64)
    short, full = np.char.mod("%.7g", flat), np.char.mod("%.9g", flat)
    exact = short.astype(np.float32) == flat.astype(np.float32)
    return [" ".join(row) for row in np.where(exact, short, full).reshape(-1, 3).tolist()]


def _checked_table(given: NDArray, name: str) -> NDArray:
    try:
        table = np.array(given, np.float32, order="C")
    except (TypeError, ValueError):
        raise CubeError("Cube: table and domain must be numbers.", call="Cube") from None
    if not np.isfinite(table).all():
        raise CubeError(f"Cube: {name} must be finite numbers that fit f32.", call="Cube")
    return table


def _checked_domain(low: _Triple, high: _Triple, name: str) -> tuple[_Triple, _Triple]:
    try:
        lows, highs = (tuple(map(float, d)) for d in (low, high))
    except (TypeError, ValueError):
        raise CubeError("Cube: table and domain must be numbers.", call="Cube") from None
    if len(lows) != 3 or len(highs) != 3 or not all(map(_in_order, lows, highs)):
        expected = f"three finite numbers below those of {name}_max"
        raise CubeError.invalid("Cube", f"{name}_min", expected, (low, high))
    return _triple(*lows), _triple(*highs)


def _check_size(size: int, axes: int, name: str) -> None:
    least, most = SIZES[axes]
    if not least <= size <= most:
        expected = f"of {least} to {most} entries along each of {axes} axes"
        raise CubeError.invalid("Cube", name, expected, size)


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
        write_whole(path, text.encode())
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
        #: Entries along an axis, by the number of axes.
        self.sizes: dict[int, int] = {}

    def fail(self, problem: str, advice: str = _ADVICE) -> NoReturn:
        raise CubeError(f"load_cube: {self.name}, line {self.line}: {problem}. {advice}")

    def read(self, text: str) -> Cube:
        memory.check(PARSED * len(text), "load_cube")
        rows: list[_Triple] = []
        wanted = 0
        # Lines are split one by one, whatever their ends are.
        lines = enumerate(io.StringIO(text, newline=None), 1)
        for number, ended in checked(lines, "load_cube"):
            line = ended.removesuffix("\n")
            row = _ROW.fullmatch(line) if len(line) <= _MAX_LINE else None
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            self.line = number
            if row is None:
                if rows or len(line) > _MAX_LINE:
                    self.fail(f"{_shown(line)} is not three numbers")
                self.keyword(stripped)
                wanted = sum(size**axes for axes, size in self.sizes.items())
                continue
            if len(rows) >= wanted:
                if not self.sizes:
                    self.fail(
                        "numbers before LUT_1D_SIZE or LUT_3D_SIZE",
                        "A .cube file starts with the size of its table.",
                    )
                self.fail(f"more than the {wanted} lines of numbers of {self.words()}")
            a, b, c = map(float, row.groups())
            if not (abs(a) < _F32_END and abs(b) < _F32_END and abs(c) < _F32_END):
                self.fail(f"{_shown(line)} has a number that does not fit f32")
            rows.append((a, b, c))
        return self.finish(rows, wanted)

    def words(self, sizes: bool = False) -> str:
        return " and ".join(
            f"LUT_{axes}D_SIZE" + (f" {size}" if sizes else "")
            for axes, size in sorted(self.sizes.items())
        )

    def keyword(self, line: str) -> None:
        word = line.replace("\t", " ").partition(" ")[0]
        rest = line[len(word) :].strip()
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
        elif word in _RANGES:
            self.ranges[word] = self.numbers(word, rest, _RANGES[word])
        else:
            self.fail(
                f"{_shown(line)} is not a keyword of .cube files",
                "Known keywords: TITLE, LUT_1D_SIZE, LUT_3D_SIZE, DOMAIN_MIN, DOMAIN_MAX.",
            )

    def set_size(self, word: str, rest: str) -> None:
        axes = int(word[4])
        least, most = SIZES[axes]
        # Limit the digits: int() of a million digits takes minutes.
        size = int(rest) if re.fullmatch(r"\d{1,9}", rest, re.ASCII) else -1
        if not least <= size <= most:
            self.fail(f"{word} must be an int from {least} to {most}, got {_shown(rest)}")
        self.sizes[axes] = size

    def numbers(self, word: str, rest: str, count: int) -> tuple[float, ...]:
        found = tuple(map(float, rest.split())) if _NUMBERS.fullmatch(rest) else ()
        if len(found) != count or not all(map(math.isfinite, found)):
            self.fail(f"{word} must be {count} numbers, got {_shown(rest)}")
        return found

    def finish(self, rows: list[_Triple], wanted: int) -> Cube:
        if not self.sizes:
            self.fail(
                "the file has no LUT_1D_SIZE or LUT_3D_SIZE", "Check that it is a .cube file."
            )
        if len(rows) != wanted:
            require = "requires" if len(self.sizes) == 1 else "require"
            self.fail(
                f"the file ends after {len(rows)} of the {wanted} lines of numbers that "
                f"{self.words(sizes=True)} {require}"
            )
        table = np.array(rows, np.float64).astype(np.float32)
        curves, size = self.sizes.get(1, 0), self.sizes.get(3, 0)
        if not size:
            return Cube(table, self.title, *self.domain(1, own=True))
        cube = table[curves:].reshape(size, size, size, 3).transpose(2, 1, 0, 3)
        if not curves:
            return Cube(cube, self.title, *self.domain(3, own=True))
        # The domain is that of colors, which meet the curves first.
        first, last = self.domain(1, own=True)
        low, high = self.domain(3, own=False)
        return Cube(cube, self.title, low, high, table[:curves], first, last)

    def domain(self, axes: int, *, own: bool) -> tuple[_Triple, _Triple]:
        span = self.ranges.get(f"LUT_{axes}D_INPUT_RANGE", (0.0, 1.0))
        low, high = (_triple(*(end,) * 3) for end in span)
        if own:
            low = _triple(*self.ranges.get("DOMAIN_MIN", low))
            high = _triple(*self.ranges.get("DOMAIN_MAX", high))
        if not all(map(_in_order, low, high)):
            self.fail(f"the domain from {_joined(low)} to {_joined(high)} is empty or too wide")
        return low, high


def _triple(a: float, b: float, c: float) -> _Triple:
    return a, b, c


def _joined(numbers: Iterable[float]) -> str:
    return " ".join(f"{n:g}" for n in numbers)


def _shown(text: str) -> str:
    """Return text from a file for an error message, shortened."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")
