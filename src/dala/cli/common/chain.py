"""Filters as command-line options: ``--blur 3 --sepia --resize 640x360,method=area``, in order.

The grammar, which docs/command-line.md explains::

    command = path.. (option | filter)..      paths stand together, before or after the options
    filter  = --NAME [value] | --NAME=value   a word after a filter with parameters is its value
              --kernel FILE[,NAME=part ..]    a kernel of a file
    value   = part {"," part}                 the first part may be without a name
    part    = [NAME "="] (number | numbers with ":" between | WxH | word | path)

The options are derived from the filters' declarations.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from dala.arguments import sides
from dala.arguments.paths import missing_file
from dala.cli.common.kernels import READERS, params_of
from dala.errors import KernelSyntaxError, ParameterError, UnknownParameter, did_you_mean
from dala.gpu.color import unit_color

if TYPE_CHECKING:
    from dala.gpu.compute.kernels.filter import FilterParam, FilterSpec
    from dala.gpu.compute.runnable import Runnable
    from dala.media.filters.plans import FilterValue

#: A filter: its name, or a kernel, and its parameters.
Link: TypeAlias = "tuple[str | Runnable, dict[str, FilterValue]]"

#: A value of a JSON document.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: Short names of options.
SHORT: Final = {"lut": "lut_apply"}
#: Types of parameters that are given as paths.
PICTURES: Final = ("picture", "background")
FILES: Final = ("lut", "map")
_BOOLS: Final = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip


def filters() -> dict[str, FilterSpec]:
    """Return every filter by name, sorted."""
    from dala.media.filters.declarations import declared, filter_names

    found = declared()
    return {name: found[name] for name in filter_names()}


@cache
def params(name: str | Runnable) -> dict[str, FilterParam]:
    """Return the parameters of a filter by name."""
    if not isinstance(name, str):
        return params_of(name)
    return {p.name: p for p in filters()[name].parameters}


# options ----------------------------------------------------------------------------------------
def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each filter; ``args.chain`` has the parsed ones in order."""
    from dala.gpu.compute.kernels.filter import CATEGORIES

    used = {spec.category for spec in filters().values()}
    order = [*(c for c in CATEGORIES if c in used), *sorted(used.difference(CATEGORIES))]
    about = "Applied in the order given. `dala kernels NAME` explains one."
    groups = {
        category: parser.add_argument_group(
            f"filters: {category.lower()}", None if number else about
        )
        for number, category in enumerate(order)
    }
    for name, spec in filters().items():
        groups[spec.category].add_argument(
            f"--{name}",
            action=_Append,
            dest="chain",
            help=spec.summary.replace("%", "%%").replace("``", ""),
        )
    for short, name in SHORT.items():
        groups[filters()[name].category].add_argument(
            f"--{short}", action=_Append, dest="chain", metavar="FILE", help=f"--{name} lut=FILE"
        )
    own = parser.add_argument_group("filters: your own")
    for name in READERS:
        own.add_argument(
            f"--{name}", action=_Append, dest="chain", metavar="FILE[,NAME=..]",
            help=f"a {name} of a file; its text is not executed",
        )  # fmt: skip
    parser.set_defaults(chain=[])


def metavar(name: str) -> str:
    """Return the form of a filter's value, in brackets if it may be left out.

    >>> metavar("temperature"), metavar("video_mix"), metavar("grayscale")
    ('[VALUE,tint=..]', 'FILE,t=..', '')
    """
    known = list(params(name).values())
    if not known:
        return ""
    first, *others = known
    shown = ",".join([_form(first), *(f"{p.name}=.." for p in others)])
    return shown if first.required else f"[{shown}]"


def _form(p: FilterParam) -> str:
    if p.type == "size":
        return "WxH"
    if p.type in FILES or p.type in PICTURES:
        return "FILE"
    if p.type == "points":
        return "x:y:x:y"
    if p.size in (2, 3, 4):
        return {2: "X:Y", 3: "R:G:B", 4: "N:N:N:N"}[p.size]
    return p.name.upper()


class _Append(argparse.Action):
    """Adds a filter to the chain. Its form is found when help is shown: that reads every kernel."""

    @property
    def metavar(self) -> str | tuple[str, ...] | None:
        return self._given or metavar(self.option_strings[0].removeprefix("--"))

    @metavar.setter
    def metavar(self, given: str | tuple[str, ...] | None) -> None:
        self._given = given

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
        except (ParameterError, KernelSyntaxError) as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
        namespace.chain = [*namespace.chain, link]


def join(words: Sequence[str], flags: Mapping[str, bool], paths: str) -> list[str]:
    """Join each option with its value (``--blur=radius=3``) and move paths to the end.

    Which words are paths does not depend on their text: a word directly after an option that takes
    a value is that value, all others are paths, and they stand together.

    Args:
        words: the command's arguments.
        flags: the options that are not filters, such as ``--json``, and whether they take a value.
        paths: the command and its paths, such as ``dala view IN``, for advice.

    Raises:
        ParameterError: an option is unknown, a value cannot be parsed, or a word is no path.
    """
    options: list[str] = []
    found: list[str] = []
    waiting = list(words)
    before = ""  # the option since the last path
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            if found and waiting:
                raise _stray(waiting[0], word, paths)
            found += waiting
            break
        if not word.startswith("-") or word == "-":
            if found and before:
                raise _stray(word, before, paths)
            found.append(word)
            before = ""
            continue
        option, equals, value = word.partition("=")
        name = option[2:].replace("-", "_")
        before = option
        if option in flags or option == "-h":
            if flags.get(option) and not equals and waiting and not waiting[0].startswith("--"):
                word = f"{option}={waiting.pop(0)}"
            options.append(word)
            continue
        if not option.startswith("--") or name not in (*filters(), *SHORT, *READERS):
            raise _unknown(option, name, flags, options[-1] if options else "")
        takes = name in SHORT or name in READERS or bool(params(name))
        if not equals and takes and waiting and _is_value(waiting[0]):
            equals, value = "=", waiting.pop(0)
        if equals:
            _check_value(option, name, value, "" if found else paths)
        options.append(f"--{name}={value}")
    return [*options, *(["--"] if any(p.startswith("-") for p in found) else []), *found]


def _is_value(word: str) -> bool:
    """Return whether a word is no option: ``-0.5`` and ``-`` are not."""
    return not word.startswith("-") or word == "-" or word[1:2] in tuple(".0123456789")


def _check_value(option: str, name: str, value: str, paths: str) -> None:
    """Parse a value early, where it is still known whether it may be a path in the wrong place."""
    try:
        if not value and name not in READERS:
            raise ParameterError(f"{option}: the value is empty. {_takes(name)}")
        parse(name, value)
    except ParameterError as error:
        if not paths:
            raise
        error.args = (f"{error} Paths stand before the filters: {paths} {option}",)
        raise


def _stray(word: str, before: str, paths: str) -> ParameterError:
    name = before[2:].replace("-", "_")
    if name in filters() and not params(name):
        return ParameterError(f"{before}: takes no value, got {word!r}.")
    return ParameterError(
        f"{word!r} after {before} is neither a value nor a path. Paths stand together, before the "
        f"filters: {paths} {before if before != '--' else '--FILTER'}"
    )


#: Advice for options of other programs that are no filters here.
_ELSEWHERE: Final = {
    ("i", "o", "in", "out", "input", "output"): "Paths stand before the filters: IN OUT --blur 3.",
    (
        "ss",
        "t",
        "to",
        "from",
        "start",
        "end",
        "duration",
        "trim",
        "cut",
    ): "`dala cut` takes a part of a video.",
    ("fps", "r", "framerate", "speed", "reverse"): (
        "A scene has its own fps, and add_video(speed=2): docs/how-to/speed.md."
    ),
}


def _unknown(option: str, name: str, flags: Mapping[str, bool], before: str) -> ParameterError:
    """Return the error of an unknown option; ``before`` is the option that it follows."""
    last, _, value = before[2:].partition("=")
    if name and last in filters() and name in params(last):
        value = f"{value}," if value else ""
        return ParameterError(
            f"{option}: no such filter or option. It is a parameter of {last}: "
            f"--{last} {value}{name}=.."
        )
    known = [*filters(), *SHORT, *READERS, *(flag.lstrip("-") for flag in flags)]
    word = option.lstrip("-")
    others = [advice for words, advice in _ELSEWHERE.items() if word in words]
    hint = others[0] if others else did_you_mean(word, known)
    return ParameterError(
        f"{option}: no such filter or option. {hint or '`dala kernels` lists the filters.'}"
    )


def _takes(name: str | Runnable) -> str:
    """Return the parameters of a filter, as advice."""
    known = params(SHORT.get(name, name) if isinstance(name, str) else name)
    return f"It takes: {', '.join(known)}." if known else "It takes no parameters."


def _first(known: Iterable[str], value: str) -> str:
    """Return the parameter that a value without a name is for: a WxH is the size."""
    return "size" if "size" in known and sides(value) is not None else next(iter(known))


def parse(name: str, text: str) -> Link:
    """Parse a filter from the text of its option.

    >>> parse("blur", "radius=3,sigma=1.5")
    ('blur', {'radius': 3, 'sigma': 1.5})
    >>> parse("brightness", "-0.2")
    ('brightness', {'value': -0.2})
    >>> parse("resize", "640x360,method=area"), parse("resize", "640x")
    (('resize', {'size': (640, 360), 'method': 'area'}), ('resize', {'size': (640, None)}))
    >>> parse("crop", "640x360"), parse("crop", "10:20:650:380")
    (('crop', {'size': (640, 360)}), ('crop', {'box': (10, 20, 650, 380)}))
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
    what: str | Runnable = name
    if name in READERS:
        if not text:
            raise ParameterError(f"--{name}: missing a file, such as --{name} glow.py,amount=0.5.")
        path, _, text = text.partition(",")
        what = READERS[name](path)
    known = params(what)
    given: dict[str, FilterValue] = {}
    for number, part in enumerate(text.split(",") if text else ()):
        key, equals, value = part.partition("=")
        if not equals and number == 0 and known and what is name:
            key, value = _first(known, part), part
        elif not equals and not known:
            raise ParameterError(f"--{name}: takes no value, got {part!r}.")
        elif not equals:
            raise ParameterError(
                f"--{name}: parameters after the first must be NAME=VALUE, got {part!r}. "
                f"{_takes(what)}"
            )
        if key not in known:
            raise UnknownParameter(
                f"--{name}: no parameter {key!r}. {did_you_mean(key, known) or _takes(what)}"
            )
        if key in given:
            raise ParameterError(f"--{name}: {key} is given twice.")
        given[key] = _value(name, known[key], value)
    for key, p in known.items():
        if p.required and key not in given:
            example = _form(p) if key == next(iter(known)) else f"{key}={_form(p)}"
            raise ParameterError(
                f"--{name}: missing required parameter {key!r}: --{name} {example}"
            )
    return what, given


def option_of(link: Link) -> str:
    """Return the option of a filter, as errors name it."""
    return f"--{link[0]}" if isinstance(link[0], str) else f"the filter {link[0].name}"


def _value(name: str, p: FilterParam, text: str) -> FilterValue:
    """Parse the text of a parameter. Ranges are checked by :func:`load`."""
    try:
        return _read(p, text)
    except (ValueError, KeyError):
        raise ParameterError.invalid(f"--{name}", p.name, _expected(p), text) from None


def _read(p: FilterParam, text: str) -> FilterValue:
    """Return the value of a text, by the type of its parameter; raise ValueError or KeyError."""
    if not text:
        raise ValueError
    if p.type == "size":
        if p.spread and text.isdecimal() and len(text) < 9:
            return int(text)  # both sides
        width, height = sides(text) or (None, None)
        if width is None and height is None:
            raise ValueError
        from dala.gpu.compute.params import PixelSize

        return PixelSize.of((width, height))
    if p.type in FILES or p.type == "picture":
        return Path(text)
    if p.type == "choice":
        return text
    if p.type == "bool":
        return _BOOLS[text.lower()]
    try:
        numbers = [_number(part) for part in text.split(":")]
    except ValueError:
        if unit_color(text, 4 if p.type == "background" else p.size):
            return text
        if p.type in PICTURES:
            return Path(text)
        raise
    if p.type == "points":
        return list(zip(numbers[0::2], numbers[1::2], strict=True))
    if len(numbers) == 1:
        return numbers[0]
    if p.type in ("int", "float"):
        raise ValueError
    return tuple(numbers)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _expected(p: FilterParam) -> str:
    """Return the values that a parameter takes, in the words of errors.

    >>> _expected(params("blur")["radius"]), _expected(params("brightness")["value"])
    ('an int from 0 to 200', 'a number')
    """
    limits = f"{' from' if ' to ' in p.range else ','} {p.range}" if p.range else ""
    if p.type == "size":
        both = ", or one number for both" if p.spread else ""
        return f"WxH such as 640x360, or 640x or x360, which keep the aspect{both}"
    if p.type == "points":
        return "points x:y:x:y.., such as 0:0:0.5:0.6:1:1"
    if p.type == "choice":
        return f"one of {p.range}"
    if p.type in ("int", "float"):
        return f"{'an int' if p.type == 'int' else 'a number'}{limits}"
    if p.type in ("ints", "floats"):
        count = f"{p.size} numbers" if p.size else "numbers"
        count = f"a color such as red or #f80, or {count}" if p.size in (3, 4) else count
        return f"{count} with colons between, such as {':'.join(['1'] * (p.size or 3))}{limits}"
    return {"bool": "true or false", "background": "a file or a color r:g:b"}.get(p.type, "a file")


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
        check(link, option_of(link))
    return loaded


def _loaded(name: str | Runnable, key: str, value: FilterValue, max_pixels: int) -> FilterValue:
    if not isinstance(value, Path):
        return value
    if not value.is_file():
        raise missing_file(value, f"--{name}: {key}")
    kind = params(name)[key].type
    if kind in PICTURES:
        from dala.media.files import load as load_picture

        return load_picture(value, max_pixels)
    if kind == "map":
        from dala.media.files import load_array

        try:
            return load_array(value)
        except ParameterError as error:
            raise ParameterError(f"--{name}: {key}={value} {error}") from None
    return value


def as_json(chain: Sequence[Link]) -> list[dict[str, Json]]:
    """Return the chain as it is printed with ``--json``."""
    made: list[dict[str, Json]] = []
    for name, given in chain:
        values = {k: str(v) if isinstance(v, Path) else cast("Json", v) for k, v in given.items()}
        own: dict[str, Json] = {"filter": name, **values} if isinstance(name, str) else {}
        made.append(own or {"kernel": name.source(), "params": values})  # type: ignore[union-attr]
    return made
