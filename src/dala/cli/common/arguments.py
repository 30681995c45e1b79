"""Arguments of commands as rows, shared arguments, and reports."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

from dala.arguments import Rate
from dala.cli import COMMON
from dala.cli.common.verbosity import says_what_it_did
from dala.errors import masked
from dala.media.pictures.options import PictureOptions
from dala.options import CommandOptions, DeviceOptions, OptionFacts

#: Arguments by name or flag ("-o, --out" for two flags), and the facts of ``add_argument``.
Options = CommandOptions

#: What a command did, as ``--json`` prints it.
Report: TypeAlias = dict[str, Any]


def argument(help: str = "", **facts: Any) -> OptionFacts:
    """Return the row of an argument.

    Besides the facts of ``add_argument`` it may have ``group``, the title of a group of arguments,
    and ``one_of``, a name: of the arguments with the same one, only one may be given.
    """
    return cast("OptionFacts", {"help": help, **facts} if help else facts)


def switch(help: str, **facts: Any) -> OptionFacts:
    """Return the row of an option without a value."""
    return argument(help, action="store_true", **facts)


def grouped(title: str, options: Options) -> Options:
    """Return options under a title of their own in the help."""
    return {name: argument(**facts, group=title) for name, facts in options.items()}


RATE: Final = Rate(1000, "a number above 0 and up to 1000, or a fraction such as 30000/1001")
DEVICE: Final[Options] = DeviceOptions.command_line()
JSON: Final[Options] = {"--json": switch("print a report as JSON")}
_PIXELS: Final = PictureOptions.specs()["max_pixels"]
MAX_PIXELS: Final[Options] = {_PIXELS.flag: {**_PIXELS.facts(), "default": _PIXELS.default}}


def add_options(parser: argparse.ArgumentParser, options: Options) -> None:
    """Add arguments to a parser."""
    groups: dict[str, Any] = {"": parser}
    for name, facts in options.items():
        given: dict[str, Any] = dict(facts)
        title, one_of = given.pop("group", ""), given.pop("one_of", "")
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        place = f"{title}/{one_of}" if one_of else title
        if place not in groups:
            groups[place] = groups[title].add_mutually_exclusive_group()
        groups[place].add_argument(*name.split(", "), **given)


def flags(options: Options) -> dict[str, bool]:
    """Return every option, --help and --debug included, and whether it takes a value."""
    own = {
        flag: "store" not in facts.get("action", "")
        for name, facts in options.items()
        for flag in name.split(", ")
        if flag.startswith("-")
    }
    common = {f: "metavar" in facts for name, facts in COMMON.items() for f in name.split(", ")}
    return {"--help": False, "-h": False, **common, **own}


def dest(flag: str, facts: OptionFacts) -> str:
    """Return the name of an option's value."""
    return facts.get("dest") or flag.lstrip("-").replace("-", "_")


def show(
    args: argparse.Namespace,
    report: Any,
    text: object = None,
    notes: Iterable[str] = (),
    code: int = 0,
) -> int:
    """Print a report as JSON if --json was given, else the text, if there is one, and notes.

    Returns:
        The exit code.
    """
    if args.json:
        print(masked(json.dumps(report, indent=2)))
    elif text is not None:
        say(args, text)
    note(args, notes)
    return code


def say(args: argparse.Namespace, text: object) -> None:
    """Print the result of a command, unless --json or --quiet was given."""
    if not args.json and says_what_it_did(args):
        print(masked(str(text)), flush=True)


def note(args: argparse.Namespace, texts: Iterable[str]) -> None:
    """Print notes on standard error, unless --json or --quiet was given."""
    for text in () if args.json or args.quiet else texts:
        print(f"dala {args.command}: {masked(text)}", file=sys.stderr)


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
