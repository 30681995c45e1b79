"""Types of arguments, and options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypedDict


class OptionFacts(TypedDict, total=False):
    """The keyword arguments of ``add_argument``."""

    action: str
    choices: Sequence[str]
    default: int | str
    help: str
    metavar: str
    type: Callable[[str], float]


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
        if not (text.isdecimal() and low <= int(text) <= high):
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


def size(text: str) -> tuple[int, int]:
    """Parse WIDTHxHEIGHT.

    >>> size("1280x720")
    (1280, 720)
    """
    sides = [int(side) if side.isdecimal() else 0 for side in text.lower().split("x")]
    if len(sides) != 2 or not all(1 <= side <= _MAX_SIDE for side in sides):
        raise argparse.ArgumentTypeError(f"must be a size such as 1280x720, got {text!r}")
    return sides[0], sides[1]


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
