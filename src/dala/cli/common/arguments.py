"""Types of arguments, and options that several commands have."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias, TypedDict


class OptionFacts(TypedDict, total=False):
    """The keyword arguments of ``add_argument``."""

    action: str
    choices: Sequence[str]
    default: float | str
    help: str
    metavar: str
    required: bool
    type: Callable[[str], float | str | tuple[float, float]]


#: Options by name.
Options: TypeAlias = Mapping[str, OptionFacts]

#: The largest side of a picture or video that ``--size`` accepts.
_MAX_SIDE: Final = 16384


def integer(low: int, high: int) -> Callable[[str], int]:
    """Return the type of an int in a range.

    >>> integer(1, 100)("92")
    92
    """

    def parse(text: str) -> int:
        if not (text.isdecimal() and len(text) < 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"must be an int from {low} to {high}, got {text!r}")
        return int(text)

    return parse


def seconds(text: str, most: float = 1e9) -> float:
    """Parse a time in seconds, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text!r}")
    return value


def duration(text: str) -> float:
    """Parse a time in seconds above 0."""
    value = seconds(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text!r}")
    return value


def rate(text: str) -> str:
    """Check frames per second: a number, or a fraction such as 30000/1001.

    >>> rate("29.97"), rate("30000/1001")
    ('29.97', '30000/1001')
    """
    try:
        good = 0 < Fraction(text) <= 1000
    except (ValueError, ZeroDivisionError):
        good = False
    if not good:
        raise argparse.ArgumentTypeError(
            f"must be a number above 0 and up to 1000, or a fraction such as 30000/1001, "
            f"got {text!r}"
        )
    return text


def sides(text: str) -> tuple[int | None, int | None] | None:
    """Parse WxH, Wx or xH; return None for anything else.

    >>> sides("1280x720"), sides("640x"), sides("x360"), sides("640")
    ((1280, 720), (640, None), (None, 360), None)
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part == "" or _is_side(part) for part in parts):
        return None
    width, height = (int(part) if part else None for part in parts)
    return width, height


def _is_side(text: str) -> bool:
    return text.isdecimal() and len(text) < 9 and int(text) > 0


def size(text: str) -> tuple[int, int]:
    """Parse WxH.

    >>> size("1280x720")
    (1280, 720)
    """
    width, height = sides(text) or (None, None)
    if width is None or height is None or max(width, height) > _MAX_SIDE:
        raise argparse.ArgumentTypeError(f"must be WxH such as 1280x720, got {text!r}")
    return width, height


def number(low: float, high: float) -> Callable[[str], float]:
    """Return the type of a number in a range.

    >>> number(0, 1)("0.25")
    0.25
    """

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"must be a number from {low:g} to {high:g}, got {text!r}"
            )
        return value

    return parse


DEVICE: Final[Options] = {"--device": {"help": "auto, gpu, cpu, webgpu, webgpu:N or reference"}}
JSON: Final[Options] = {"--json": {"action": "store_true", "help": "print a report as JSON"}}
MAX_PIXELS: Final[Options] = {
    "--max-pixels": {
        "type": integer(1, 1 << 40),
        "default": 1 << 27,
        "metavar": "N",
        "help": "refuse larger pictures (134217728); raise it for files you trust",
    }
}


def add_options(parser: argparse.ArgumentParser, options: Options) -> None:
    """Add options to a parser."""
    for name, facts in options.items():
        parser.add_argument(name, **facts)


def flags(options: Options) -> dict[str, bool]:
    """Return every option, --help and --debug included, and whether it takes a value."""
    own = {name: facts.get("action") != "store_true" for name, facts in options.items()}
    return {"--help": False, "--debug": False, **own}


def volume(text: str) -> float:
    """Return the factor of a volume.

    >>> volume("0.5"), round(volume("-6dB"), 3)
    (0.5, 0.501)
    """
    found = re.fullmatch(r"\s*([-+0-9.eE]+)\s*(db)?\s*", text, re.IGNORECASE)
    try:
        value = float(found[1]) if found is not None else math.nan
        if found is not None and found[2]:
            value = 10 ** (value / 20) if value < 61 else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError(
            f"must be a factor from 0 to 1000, or decibels such as -6dB, got {text!r}."
        )
    return value


def loudness(text: str) -> float:
    """Return a loudness in LUFS.

    >>> loudness("-16")
    -16.0
    """
    try:
        value = float(text.lower().removesuffix("lufs"))
    except ValueError:
        value = math.nan
    if not -70 <= value <= 0:
        raise argparse.ArgumentTypeError(f"must be from -70 to 0 LUFS, got {text!r}.")
    return value


def fades(text: str) -> tuple[float, float]:
    """Return the seconds of fades in and out.

    >>> fades("1"), fades("0.5,2")
    ((1.0, 1.0), (0.5, 2.0))
    """
    parts = text.split(",")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(0 <= value <= 1e6 for value in values):
        raise argparse.ArgumentTypeError(
            f"must be seconds, such as 1, or 0.5,2 for in and out, got {text!r}."
        )
    return values[0], values[-1]
