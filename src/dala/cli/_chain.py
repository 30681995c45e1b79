"""Filters on a command line: ``--blur radius=3,sigma=1.5 --sepia --lut film.cube``, in that order.

Numbers that belong together have colons between them (``key=0:1:0``), sizes are as everywhere
(``size=1280x720``), and pictures are paths.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from dala.errors import ParameterError, UnknownParameter, did_you_mean

#: A filter as it is written, and as it is run: its name and its parameters.
Link = tuple[str, dict[str, Any]]

#: Arguments of a call that are no parameters of the filter.
_CALL: Final = ("img", "width", "height", "out", "device")
#: Options under a shorter name.
SHORT: Final = {"lut": "lut_apply"}
#: Parameters that are pictures, and so are paths here.
PICTURES: Final = ("over", "second", "picture", "mask", "background")
#: Parameters that are other files.
FILES: Final = ("lut", "map")


@cache
def calls() -> dict[str, Callable[..., Any]]:
    """The call of each filter, by its name."""
    from dala.media import effects, gpu

    found = {name: getattr(gpu, name, None) or getattr(effects, name) for name in gpu.filters()}
    return dict(sorted(found.items()))


@cache
def params(name: str) -> dict[str, Any]:
    """The parameters of a filter with their defaults; ``inspect.Parameter.empty`` for none."""
    signature = inspect.signature(calls()[name])
    return {p.name: p.default for p in signature.parameters.values() if p.name not in _CALL}


def summary(name: str) -> str:
    """The first line of a filter's documentation."""
    return (calls()[name].__doc__ or "").strip().splitlines()[0]


# arguments --------------------------------------------------------------------------------------
def add_options(parser: argparse.ArgumentParser) -> None:
    """An option for each filter; the parsed ones are ``args.chain``, in their order."""
    group = parser.add_argument_group(
        "filters, applied in the order given", "`dala kernels NAME` explains one."
    )
    for name in calls():
        group.add_argument(
            f"--{name}", action=_Append, dest="chain", metavar=_metavar(name), help=summary(name)
        )
    for short, name in SHORT.items():
        group.add_argument(
            f"--{short}", action=_Append, dest="chain", metavar="FILE", help=f"--{name} lut=FILE"
        )
    parser.set_defaults(chain=[])


def _metavar(name: str) -> str:
    shown = ",".join(f"{p}=.." for p in params(name))
    return f"[{shown}]" if shown else "[]"


class _Append(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        name = (option or "").lstrip("-").replace("-", "_")
        try:
            link = parse(name, str(values))
        except ParameterError as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
        namespace.chain = [*namespace.chain, link]


def join(arguments: Sequence[str], flags: Mapping[str, bool]) -> list[str]:
    """Arguments with each filter and its parameters in one (``--blur=radius=3``), paths last.

    So that a filter may stand anywhere: ``--sepia in.png out.png`` gives it no parameters.

    Args:
        arguments: as they came.
        flags: the options that are no filters, such as ``--json``, and whether they take a value.

    Raises:
        ParameterError: an option is neither; the nearest is offered.
    """
    known = [*calls(), *SHORT]
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
    """Whether a word holds a filter's parameters; it is a path or an option otherwise."""
    if name in SHORT:
        return not word.startswith("--")
    head, equals, _ = word.partition("=")
    if equals:
        return head.isidentifier()
    if word in params(name):  # a value was forgotten, unless a file is called so
        return not Path(word).exists()
    return bool(params(name)) and _number(word) is not None


def parse(name: str, text: str) -> Link:
    """A filter from its option's text.

    >>> parse("blur", "radius=3,sigma=1.5")
    ('blur', {'radius': 3, 'sigma': 1.5})
    >>> parse("brightness", "-0.2")
    ('brightness', {'value': -0.2})
    >>> parse("chroma_key", "key=0:1:0")
    ('chroma_key', {'key': (0, 1, 0)})

    Raises:
        ParameterError: a parameter is unknown, missing or written wrongly.
    """
    if name in SHORT:
        if not text:
            raise ParameterError(f"--{name}: a file is missing, such as --{name} film.cube.")
        text = text if text.startswith("lut=") else f"lut={text}"
        name = SHORT[name]
    takes = params(name)
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals and not given and takes and _number(part) is not None:
            key, value = next(iter(takes)), part
        elif not equals:
            raise ParameterError(f"--{name}: parameters are NAME=VALUE, {part!r} came.")
        if key not in takes:
            listed = f"It takes: {', '.join(takes)}." if takes else "It takes none."
            raise UnknownParameter(
                f"--{name}: there is no parameter {key!r}. {did_you_mean(key, takes) or listed}"
            )
        if key in given:
            raise ParameterError(f"--{name}: {key!r} is given twice.")
        given[key] = _value(name, key, value)
    for key, default in takes.items():
        if default is inspect.Parameter.empty and key not in given:
            raise ParameterError(f"--{name}: the parameter {key!r} is missing: --{name} {key}=...")
    return name, given


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _value(name: str, key: str, text: str) -> Any:
    if key == "size":
        sides = [int(s) if s.isdecimal() else 0 for s in text.split("x")]
        if len(sides) != 2 or not all(sides):
            raise ParameterError(
                f"--{name}: size is WIDTHxHEIGHT, such as 1280x720; {text!r} came."
            )
        return sides[1], sides[0]
    if key in FILES:
        return Path(text)
    numbers = [_number(part) for part in text.split(":")]
    if None not in numbers:
        if name == "curves":
            if len(numbers) % 2:
                raise ParameterError(
                    f"--{name}: {key} is points x:y:x:y.., such as 0:0:0.5:0.6:1:1; {text!r} came."
                )
            return list(zip(numbers[0::2], numbers[1::2], strict=True))
        return tuple(numbers) if len(numbers) > 1 else numbers[0]
    if key in PICTURES:
        return Path(text)
    return {"true": True, "false": False}.get(text.lower(), text)


# what is run ------------------------------------------------------------------------------------
def files(chain: Sequence[Link]) -> list[Path]:
    """The files that filters read."""
    return [value for _, given in chain for value in given.values() if isinstance(value, Path)]


def load(chain: Sequence[Link], max_pixels: int) -> list[Link]:
    """The chain with its pictures and maps read, and its parameters checked.

    Raises:
        FileNotFoundError: one of them does not exist.
        ParameterError: one of them is not what it should be.
    """
    from dala.media.filters import blame

    loaded = [
        (name, {key: _loaded(name, key, value, max_pixels) for key, value in given.items()})
        for name, given in chain
    ]
    for link in loaded:
        blame.check(link, f"--{link[0]}")
    return loaded


def _loaded(name: str, key: str, value: Any, max_pixels: int) -> Any:
    if not isinstance(value, Path):
        return value
    if not value.is_file():
        raise FileNotFoundError(f"--{name}: {key}={value} is no file.")
    if key in PICTURES:
        from dala.media.files import load as load_picture

        return load_picture(value, max_pixels)
    if key == "map":
        import numpy as np

        try:
            return np.load(value, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise ParameterError(
                f"--{name}: {key}={value} is read by numpy.load, which says: {error}"
            ) from None
    return value


def shown(chain: Sequence[Link]) -> list[dict[str, Any]]:
    """The chain as it is printed as JSON."""
    return [
        {"filter": name, **{k: str(v) if isinstance(v, Path) else v for k, v in given.items()}}
        for name, given in chain
    ]
