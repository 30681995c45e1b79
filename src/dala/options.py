"""How options are declared: a frozen dataclass for each group, a line for each option.

A line has the option's type, kind (what is accepted, :mod:`dala.arguments`), default and help. The
docstring of the group may say more about it, in a section ``Args:`` as that of a function:

>>> @dataclass(frozen=True, kw_only=True)
... class Grain(Options):
...     amount: int = option(Integer(0, 9), 3, "how much grain; 0 is none", command=True)

Everything else is derived: checks and their errors, signatures and the ``Args:`` of docstrings
(:func:`takes`), options of commands, records in JSON, controls of the studio, tables of documents,
and the types that checkers see: ``python -m tests.support.option_stubs`` writes ``keywords.pyi``
beside each module ``options.py``, and the tables in the documents; a test keeps them current.

>>> Grain.checked("film", {"amount": 12})
Traceback (most recent call last):
dala.errors.ParameterError: film: amount must be an int from 0 to 9, got 12.
>>> Grain(amount=5).to_json(), Grain.command_line()["--amount"]["metavar"]
({'amount': 5}, 'N')
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypedDict, TypeVar

from dala.arguments import ArgumentKind, Fitting, Flag, Integer, Selection
from dala.errors import UnknownParameter, did_you_mean

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["Integer", "OptionFacts", "OptionSpec", "Options", "check_all", "option", "takes"]

_T = TypeVar("_T", bound=Callable[..., Any])
#: An argument in a docstring, and its description.
_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.M)
#: Sections of docstrings that follow the arguments.
_SECTIONS = ("Returns:", "Raises:", "Yields:", "Example", ">>>")
#: The form of an argument.
_ROW: dict[str, Any] = {"width": 96, "initial_indent": " " * 4, "subsequent_indent": " " * 8}


class OptionFacts(TypedDict, total=False):
    """The keyword arguments of ``add_argument``."""

    action: str
    choices: Sequence[str]
    const: object
    default: float | str | None
    dest: str
    help: str
    metavar: str
    required: bool
    type: Callable[[str], Any]


#: Options of a command line by flag.
CommandOptions: TypeAlias = Mapping[str, OptionFacts]


@dataclass(frozen=True)
class OptionSpec:
    """The declaration of an option."""

    name: str
    annotation: str
    kind: ArgumentKind[Any]
    default: Any
    #: One line, for commands.
    help: str
    #: What documents say, from the docstring of the group; "" for the help.
    doc: str
    #: Whether commands have it.
    command: bool
    #: Whether pages of strangers may set it.
    page: bool
    #: Whether calls name it themselves: for its place, or because it decides their result's type.
    named: bool

    def check(self, call: str, value: Any) -> Any:
        """Return a value in its final form; None is accepted where it is the default."""
        if value is None and self.default is None:
            return None
        return self.kind.check(call, self.name, value)

    @property
    def text(self) -> str:
        """The description in documents."""
        return self.doc or f"{self.help}."

    @property
    def flag(self) -> str:
        """The flag on the command line; where an option is on by default, the flag turns it off."""
        return f"--{'no-' if self.default is True else ''}{self.name.replace('_', '-')}"

    def facts(self) -> OptionFacts:
        """Return how argparse takes it. Where it is not given, the value is None."""
        made: OptionFacts = {"dest": self.name, "help": self.help.replace("%", "%%")}
        if isinstance(self.kind, Flag):
            return {**made, "action": "store_const", "const": not self.default}
        if isinstance(self.kind, Selection):
            listed = ",".join(map(str, self.kind.values))
            return {**made, "type": self.kind.parse, "metavar": f"{{{listed}}}"}
        return {**made, "type": self.kind.parse, "metavar": self.kind.metavar or self.name.upper()}

    def parameter(self) -> inspect.Parameter:
        """Return it as a parameter of a signature."""
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default, annotation=self.annotation)

    def card(self) -> dict[str, Any]:
        """Return it as the studio's page gets it."""
        facts = {"name": self.name, "default": self.default, "doc": self.text}
        return {**facts, **self.kind.card()}


def option(
    kind: ArgumentKind[Any], default: Any = None, help: str = "", *, command: bool = False,
    page: bool = False, named: bool = False,
) -> Any:  # fmt: skip
    """Declare an option; see :class:`OptionSpec`. None is accepted where it is the default."""
    facts = {"kind": kind, "help": help, "command": command, "page": page, "named": named}
    return field(default=default, metadata={"option": facts})


@dataclass(frozen=True, kw_only=True)
class Options:
    """A group of options; subclasses declare them."""

    @classmethod
    @cache
    def specs(cls) -> dict[str, OptionSpec]:
        """Return the declarations by name."""
        docs: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            _, _, rows = (inspect.getdoc(base) or "").partition("\nArgs:\n")
            docs |= {m[1]: " ".join(m[2].split()) for m in _ARGUMENT.finditer(rows)}
        return {
            f.name: OptionSpec(
                f.name, str(f.type), default=f.default, doc=docs.get(f.name, ""),
                **f.metadata["option"],
            )
            for f in fields(cls)
            if "option" in f.metadata
        }  # fmt: skip

    @classmethod
    def checked(cls, call: str, given: Mapping[str, object]) -> Self:
        """Return options from keyword arguments.

        Raises:
            ParameterError: a value is not accepted.
            UnknownParameter: there is no such option.
        """
        return cls(**check_all(call, cls.specs(), given))

    @classmethod
    def of(cls, other: Options, **more: Any) -> Self:
        """Return options with the values of another group, as far as both have them, and more."""
        shared = {name: getattr(other, name) for name in cls.specs() if hasattr(other, name)}
        return cls(**{**shared, **more})

    def changed(self) -> dict[str, Any]:
        """Return the values that are not the defaults."""
        found = {name: (getattr(self, name), s.default) for name, s in self.specs().items()}
        return {
            name: value for name, (value, default) in found.items() if not _same(value, default)
        }

    # records ----------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """Return all values as JSON, for records."""
        return {name: _json(getattr(self, name)) for name in self.specs()}

    @classmethod
    def from_json(cls, call: str, record: Mapping[str, object]) -> Self:
        """Return the options of a record that may have more, checked like those of a caller."""
        return cls.checked(call, {name: record[name] for name in cls.specs() if name in record})

    # command lines ----------------------------------------------------------------------------
    @classmethod
    def command_line(cls, *names: str) -> dict[str, OptionFacts]:
        """Return the options of a command by flag: those named, or all that commands have."""
        found = cls.specs()
        chosen = [found[n] for n in names] if names else [s for s in found.values() if s.command]
        return {spec.flag: spec.facts() for spec in chosen}

    @classmethod
    def given(cls, args: Namespace, *names: str) -> dict[str, Any]:
        """Return the values that a command line has, of the named options or all, by name."""
        found = {name: getattr(args, name, None) for name in names or cls.specs()}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def page(cls) -> dict[str, OptionSpec]:
        """Return the options that pages of strangers may set."""
        found = {name: spec for name, spec in cls.specs().items() if spec.page}
        return {name: replace(spec, kind=spec.kind.strict()) for name, spec in found.items()}


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """The option of everything that runs on a device, which checks the name itself.

    Args:
        device: where the work is done; by default the current device.
    """

    device: str | None = option(
        Fitting(), None, "auto, gpu, cpu, webgpu, webgpu:N, cuda, cuda:N or reference", command=True
    )


def _same(value: Any, default: Any) -> bool:
    """Return True if a value is the default; an array is none, whatever it compares to."""
    return value is default or (type(value) is type(default) and value == default)


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: str(one) for name, one in value.items()}
    return str(value) if isinstance(value, Fraction) else value


def check_all(
    call: str, specs: Mapping[str, OptionSpec], given: Mapping[str, object]
) -> dict[str, Any]:
    """Return the given values in their final form.

    Raises:
        ParameterError: a value is not accepted.
        UnknownParameter: there is no such option.
    """
    for name in given:
        if name not in specs:
            hint = did_you_mean(str(name), specs) or f"There are: {', '.join(specs)}."
            raise UnknownParameter(f"{call}: there is no option {name!r}. {hint}", call=call)
    return {name: specs[name].check(call, value) for name, value in given.items()}


def takes(group: type[Options]) -> Callable[[_T], _T]:
    """Give a function or class with ``**given`` the signature and docs of a group of options."""

    def documented(thing: _T) -> _T:
        function: Any = thing.__init__ if inspect.isclass(thing) else thing
        own, specs = inspect.signature(function), group.specs()
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        # Options that a call names itself keep their place among the others.
        first = [p for p in named if p.kind is not p.KEYWORD_ONLY or p.name not in specs]
        taken = {p.name for p in first}
        added = [spec for spec in specs.values() if spec.name not in taken]
        whole = own.replace(parameters=[*first, *(spec.parameter() for spec in added)])
        kinds = {p.name: p.annotation for p in whole.parameters.values()}
        kinds = {name: kind for name, kind in kinds.items() if kind is not own.empty}
        function.__annotations__ = {**kinds, "return": own.return_annotation}
        function.__signature__ = whole
        thing.__doc__ = with_arguments(thing.__doc__ or "", [(s.name, s.text) for s in added])
        return thing

    return documented


def with_arguments(doc: str, arguments: Sequence[tuple[str, str]]) -> str:
    """Return a docstring with more arguments at the end of its section ``Args:``, or with one.

    >>> print(with_arguments("Blur.\\n\\nArgs:\\n    img: it.", [("radius", "how far.")]))
    Blur.
    <BLANKLINE>
    Args:
        img: it.
        radius: how far.
    """
    parts = inspect.cleandoc(doc).split("\n\n")
    at = next((n for n, part in enumerate(parts) if part.startswith("Args:")), None)
    if at is None:
        others = (n for n, part in enumerate(parts) if n and part.startswith(_SECTIONS))
        parts.insert(at := next(others, len(parts)), "Args:")
    rows = (textwrap.fill(f"{name}: {text}", **_ROW) for name, text in arguments)
    parts[at] = "\n".join([parts[at], *rows])
    return "\n\n".join(parts)
