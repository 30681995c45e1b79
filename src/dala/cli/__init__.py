"""The ``dala`` command. Each module here without a leading underscore is one of its commands.

Folders hold parts of them.

The first line of a command's docstring is its help line, the rest its examples. The module has
``ARGUMENTS``, the rows of its arguments, and ``run(args)``, which returns the exit code; some have
``USAGE``. A command that takes filters names the paths before them as ``PATHS``. A
module is imported only when its command is used.

Exit codes: 0 success, 1 a negative answer (``dala doctor --strict``), 2 an error, reported in one
line.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import gc
import os
import pkgutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, NoReturn

import dala
from dala.errors import did_you_mean, masked, masked_error

#: Options of every command, before it or after it.
COMMON: Final[dict[str, dict[str, str]]] = {
    "--debug": {"help": "show the traceback of an error"},
    "-q, --quiet": {"help": "print errors and asked-for results only", "dest": "quiet"},
    "-v, --verbose": {"help": "print which device runs, and other notes", "dest": "verbose"},
    "--trace": {"help": "record why frames are late, for `dala why PATH`", "metavar": "PATH"},
}
#: Commands that may run for days: their traces keep the last minute.
_LASTING: Final = ("live", "studio", "view")
#: Names of the commands.
COMMANDS: Final = tuple(
    m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_" and not m.ispkg
)


def help_parts(command: str) -> tuple[str, str]:
    """Return the help line of a command and its examples, from its source, without importing it.

    >>> help_parts("kernels")[0]
    'list the built-in kernels, or explain one'
    """
    spec = find_spec(f"{__name__}.{command}")
    assert spec is not None
    source = getattr(spec.loader, "get_source", lambda name: None)(spec.name)
    first, _, rest = (ast.get_docstring(ast.parse(source or "")) or command).partition("\n\n")
    return f"{first[0].lower()}{first[1:]}".rstrip("."), rest


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        argv: the arguments after the program's name; by default those of the process.
    """
    _open_streams()
    if argv is None:
        gc.set_threshold(20_000)  # imports make many objects that stay: a tenth of the start
        atexit.register(gc.freeze)  # else Python collects all objects, some times over, at its end
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "numpy" not in sys.modules:  # OpenBLAS threads take time to start; no command needs them
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    path = _take_trace(arguments)
    name, module, args = parse(arguments)
    from dala.cli.common import settings
    from dala.cli.common.verbosity import made_folders, spoken

    try:
        settings.apply(args)
        with spoken(args), made_folders(args), _traced(path, name):
            code: int = module.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt as stop:  # one of `stopping` has the number of its signal
        return 128 + getattr(stop, "number", 2)
    except BrokenPipeError:  # the reader (`| head`) has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        shown = masked_error(error)
        if args.debug:
            if shown is error:
                raise
            raise shown from None
        text = str(shown) or type(error).__name__
        if isinstance(error, MemoryError) and not isinstance(error, dala.DalaError):
            text = "there is not enough memory. Use smaller pictures, or close other programs."
        elif not isinstance(error, dala.DalaError | OSError):  # ours are clear without the type
            text = f"{type(error).__name__}: {text} (--debug shows where)"
        print(f"dala {name}: {text}", file=sys.stderr)
        return 2
    return code


def _take_trace(arguments: list[str]) -> str | None:
    """Take ``--trace PATH`` out of a command line, and return the path; None without it."""
    for at, word in enumerate(arguments):
        if word.startswith("--trace="):
            return arguments.pop(at).partition("=")[2]
        if word == "--trace" and at + 1 < len(arguments):
            del arguments[at]
            return arguments.pop(at)
    return None


def _traced(path: str | None, name: str) -> AbstractContextManager[object]:
    """Return a context manager that traces a command, if there is a path to write to."""
    return nullcontext() if path is None else dala.trace(path, all=name not in _LASTING)


def _open_streams() -> None:
    """Open the standard streams that the caller has closed (``>&-``), to nowhere.

    Else the next file that is opened gets the number of one, and what libraries print goes into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(opened, True)  # for processes that this one starts
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def parse(arguments: Sequence[str]) -> tuple[str, ModuleType, argparse.Namespace]:
    """Return the command's name, its module and its parsed arguments; exit with 2 for wrong ones.

    >>> parse(["filter", "a.jpg", "b.png", "--blur", "3"])[2].paths
    ['a.jpg', 'b.png']
    """
    name = next((word for word in arguments if not word.startswith("-")), "")
    module = import_module(f"{__name__}.{name}") if name in COMMANDS else None
    parser = _parser(name, module)
    args, rest = parser.parse_known_args(_prepared(list(arguments), name, module, parser))
    if rest:
        shown = f"dala {name}: {rest[0]!r} is no argument of this command."
        names = [flag for key in getattr(module, "ARGUMENTS", ()) for flag in key.split(", ")]
        hint = did_you_mean(rest[0].lstrip("-"), [flag[2:] for flag in names if flag[1:2] == "-"])
        if rest[0][:1] != "-" and getattr(args, "out", "") is None:
            hint = f"Write -o {rest[0]} if it is the result."
        hint = hint or f"`dala {name} --help` has examples."
        parser.exit(2, f"{shown} {hint}\n")
    assert module is not None  # argparse has exited otherwise
    args.line = list(arguments)
    return name, module, args


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, as the commands do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. `{self.prog} --help` has examples.\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        super().exit(status, None if message is None else masked(message))


def _parser(name: str, module: ModuleType | None) -> argparse.ArgumentParser:
    parser = _Parser(prog="dala", description="A portable GPU stack for realtime media.")
    parser.add_argument("--version", action="version", version=f"dala {dala.__version__}")
    for flags, facts in COMMON.items():
        parser.add_argument(*flags.split(", "), **_whole(facts))
    if name and module is None:
        from dala.errors import did_you_mean
        from dala.media.filters.declarations import filter_names

        hint = did_you_mean(name, COMMANDS) or f"There are: {', '.join(COMMANDS)}."
        if name in filter_names():
            hint = f"It is a filter: dala filter IN OUT --{name}"
        parser.exit(2, f"dala: there is no command {name!r}. {hint}\n")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for each in COMMANDS if module is None else (name,):
        line, text = help_parts(each)
        examples, _, rest = text.partition("\n\n")
        description = f"{line[0].upper()}{line[1:]}.\n\n{examples}"  # help leads with them
        command = commands.add_parser(each, help=line, description=description, allow_abbrev=False)
        for flags, facts in COMMON.items():
            # Without a default, so that it does not undo one before the command.
            given = {**_whole(facts), "default": argparse.SUPPRESS}
            if flags == "--debug":
                given["help"] = argparse.SUPPRESS
            command.add_argument(*flags.split(", "), **given)
        if module is not None:
            command.epilog = rest
            command.formatter_class = argparse.RawDescriptionHelpFormatter
            configure(command, module)
    return parser


def _whole(facts: dict[str, str]) -> dict[str, Any]:
    """Return all facts of an option of every command; one without a metavar is a switch."""
    return facts if "metavar" in facts else {**facts, "action": "store_true"}


def configure(parser: argparse.ArgumentParser, module: ModuleType) -> None:
    """Add the arguments of a command."""
    from dala.cli.common import arguments, chain

    parser.usage = getattr(module, "USAGE", None)
    arguments.add_options(parser, module.ARGUMENTS)
    if hasattr(module, "PATHS"):
        chain.add_options(parser)


def _prepared(
    arguments: list[str], name: str, module: ModuleType | None, parser: argparse.ArgumentParser
) -> list[str]:
    """Return the arguments in a form that argparse can parse."""
    if module is None or not hasattr(module, "PATHS"):
        return arguments
    from dala.cli.common import chain
    from dala.cli.common.arguments import flags

    at = arguments.index(name) + 1
    try:
        joined = chain.join(arguments[at:], flags(module.ARGUMENTS), module.PATHS)
        return [*arguments[:at], *joined]
    except dala.DalaError as error:
        parser.exit(2, f"dala {name}: {error}\n")
