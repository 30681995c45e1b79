"""Filters as command-line options: ``--blur radius=3,sigma=1.5 --sepia --lut film.cube``, in order.

Lists of numbers are written with colons (``key=0:1:0``), sizes as WIDTHxHEIGHT, and pictures as
paths. The options are derived from the filters' declarations.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from dala.errors import ParameterError, UnknownParameter, did_you_mean

if TYPE_CHECKING:
    from dala.gpu.compute.kernels.filter import FilterParam, FilterSpec
    from dala.media.filters.plans import FilterValue
    from dala.typing import NDArray

#: A filter: its name and its parameters.
Link: TypeAlias = "tuple[str, dict[str, FilterValue]]"

#: A value of a JSON document.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: Short names of options.
SHORT: Final = {"lut": "lut_apply"}
#: Types of parameters that are given as paths.
PICTURES: Final = ("picture", "background")
FILES: Final = ("lut", "map")


def filters() -> dict[str, FilterSpec]:
    """Return every filter by name, sorted."""
    from dala.media.filters.declarations import declared, filter_names

    found = declared()
    return {name: found[name] for name in filter_names()}


@cache
def params(name: str) -> dict[str, FilterParam]:
    """Return the parameters of a filter by name."""
    return {p.name: p for p in filters()[name].parameters}


# options ----------------------------------------------------------------------------------------
def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each filter; ``args.chain`` has the parsed ones in order."""
    group = parser.add_argument_group(
        "filters, applied in the order given", "`dala kernels NAME` explains one."
    )
    for name, spec in filters().items():
        group.add_argument(
            f"--{name}", action=_Append, dest="chain", metavar=_metavar(name), help=_help(spec)
        )
    for short, name in SHORT.items():
        group.add_argument(
            f"--{short}", action=_Append, dest="chain", metavar="FILE", help=f"--{name} lut=FILE"
        )
    parser.set_defaults(chain=[])


def _help(spec: FilterSpec) -> str:
    return spec.summary.replace("%", "%%")


def _metavar(name: str) -> str:
    shown = ",".join(f"{p}=.." for p in params(name))
    return f"[{shown}]" if shown else "[]"


class _Append(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        name = (option or "").lstrip("-").replace("-", "_")
        try:
            link = parse(name, str(values))
        except ParameterError as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
        namespace.chain = [*namespace.chain, link]


def join(arguments: Sequence[str], flags: Mapping[str, bool]) -> list[str]:
    """Join each filter with its parameters (``--blur=radius=3``) and move paths to the end.

    Filters may then be given anywhere: ``--sepia in.png out.png`` has no parameters.

    Args:
        arguments: the command's arguments.
        flags: the options that are not filters, such as ``--json``, and whether they take a value.

    Raises:
        ParameterError: an option is neither; the nearest is suggested.
    """
    known = [*filters(), *SHORT]
    options: list[str] = []
    paths: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        option, equals, value = word.partition("=")
        name = option[2:].replace("-", "_")
        if word == "--":
            paths += waiting
            break
        if not word.startswith("-") or word == "-":
            paths.append(word)
        elif not word.startswith("--") or option in flags:
            options.append(word)
            if flags.get(word) and waiting:
                options.append(waiting.pop(0))
        elif name not in known:
            hint = did_you_mean(name, [*known, *(flag[2:] for flag in flags)])
            raise ParameterError(
                f"{option}: no such filter or option. {hint or '`dala kernels` lists the filters.'}"
            )
        elif equals:
            options.append(f"--{name}={value}")
        elif waiting and _belongs(name, waiting[0]):
            options.append(f"--{name}={waiting.pop(0)}")
        else:
            options.append(f"--{name}=")
    return [*options, *(["--"] if any(p.startswith("-") for p in paths) else []), *paths]


def _belongs(name: str, word: str) -> bool:
    """Return whether a word holds a filter's parameters, and is not a path or an option."""
    if name in SHORT:
        return not word.startswith("--")
    head, equals, _ = word.partition("=")
    if equals:
        return head.isidentifier()
    if word in params(name):  # the value is missing, unless there is a file of that name
        return not Path(word).exists()
    return bool(params(name)) and _number(word) is not None


def parse(name: str, text: str) -> Link:
    """Parse a filter from the text of its option.

    >>> parse("blur", "radius=3,sigma=1.5")
    ('blur', {'radius': 3, 'sigma': 1.5})
    >>> parse("brightness", "-0.2")
    ('brightness', {'value': -0.2})
    >>> parse("chroma_key", "key=0:1:0")
    ('chroma_key', {'key': (0, 1, 0)})

    Raises:
        ParameterError: a parameter is unknown, missing or malformed.
    """
    if name in SHORT:
        if not text:
            raise ParameterError(f"--{name}: missing a file, such as --{name} film.cube.")
        text = text if text.startswith("lut=") else f"lut={text}"
        name = SHORT[name]
    known = params(name)
    given: dict[str, FilterValue] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals and not given and known and _number(part) is not None:
            key, value = next(iter(known)), part
        elif not equals:
            raise ParameterError(f"--{name}: parameters must be NAME=VALUE, got {part!r}.")
        if key not in known:
            listed = f"It takes: {', '.join(known)}." if known else "It takes no parameters."
            raise UnknownParameter(
                f"--{name}: no parameter {key!r}. {did_you_mean(key, known) or listed}"
            )
        if key in given:
            raise ParameterError(f"--{name}: {key} is given twice.")
        given[key] = _value(name, known[key], value)
    for key, p in known.items():
        if p.required and key not in given:
            raise ParameterError(
                f"--{name}: missing required parameter {key!r}: --{name} {key}=..."
            )
    return name, given


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _value(name: str, p: FilterParam, text: str) -> FilterValue:
    if p.name == "size":
        sides = [int(s) if s.isdecimal() else 0 for s in text.split("x")]
        if len(sides) != 2 or not all(sides):
            raise ParameterError.invalid(
                f"--{name}", "size", "WIDTHxHEIGHT, such as 1280x720", text
            )
        return sides[1], sides[0]
    if p.type in FILES:
        return Path(text)
    parts = [_number(part) for part in text.split(":")]
    numbers = [number for number in parts if number is not None]
    if len(numbers) == len(parts):
        if p.type == "points":
            if len(numbers) % 2:
                raise ParameterError.invalid(
                    f"--{name}", p.name, "points x:y:x:y.., such as 0:0:0.5:0.6:1:1", text
                )
            return list(zip(numbers[0::2], numbers[1::2], strict=True))
        return tuple(numbers) if len(numbers) > 1 else numbers[0]
    if p.type in PICTURES:
        return Path(text)
    return {"true": True, "false": False}.get(text.lower(), text)


# files ------------------------------------------------------------------------------------------
def files(chain: Sequence[Link]) -> list[Path]:
    """Return the files that filters read."""
    return [value for _, given in chain for value in given.values() if isinstance(value, Path)]


def load(chain: Sequence[Link], max_pixels: int) -> list[Link]:
    """Return the chain with its pictures and maps loaded and its parameters checked.

    Raises:
        FileNotFoundError: a file does not exist.
        ParameterError: a parameter is refused.
    """
    from dala.media.filters.plans import check

    loaded = [
        (name, {key: _loaded(name, key, value, max_pixels) for key, value in given.items()})
        for name, given in chain
    ]
    for link in loaded:
        check(link, f"--{link[0]}")
    return loaded


def _loaded(name: str, key: str, value: FilterValue, max_pixels: int) -> FilterValue:
    if not isinstance(value, Path):
        return value
    if not value.is_file():
        raise FileNotFoundError(f"--{name}: there is no file {key}={value}.")
    kind = params(name)[key].type
    if kind in PICTURES:
        from dala.media.files import load as load_picture

        return load_picture(value, max_pixels)
    if kind == "map":
        import numpy as np

        try:
            loaded: NDArray = np.load(value, allow_pickle=False)
            return loaded
        except (ValueError, EOFError, OSError) as error:
            raise ParameterError(
                f"--{name}: {key}={value} cannot be read by numpy.load: {error}"
            ) from None
    return value


def as_json(chain: Sequence[Link]) -> list[dict[str, Json]]:
    """Return the chain as it is printed with ``--json``."""
    return [
        {"filter": name, **{key: _json(value) for key, value in given.items()}}
        for name, given in chain
    ]


def _json(value: FilterValue) -> Json:
    """Return a parsed parameter as JSON: a number, a word, a list or a path."""
    return str(value) if isinstance(value, Path) else cast("Json", value)
