"""The ``dala`` command: one module here for each of its commands.

A command's module has ``configure(parser)``, which adds its arguments, and ``run(args)``, which
returns the exit code; some have ``prepare(arguments)``, which puts them into a form that argparse
understands. It is imported only when the command is used.

Exit codes: 0 done, 1 the answer is no (``dala doctor --strict``), 2 an error, told in one line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

import dala

COMMANDS: Final = {
    "background": "blur or replace the background of people",
    "classify": "say what pictures show",
    "compose": "make videos and pictures of scene files, or show them while you edit",
    "demo": "make a short video and a picture with kernels of this machine's best device",
    "detect": "find things in pictures and videos",
    "doctor": "explain this machine: devices, drivers, what is missing and how to install it",
    "faces": "find faces in pictures and videos",
    "filter": "put pictures and videos through filters",
    "info": "list versions and devices",
    "kernels": "list the built-in kernels, or explain one",
    "models": "list the models, fetch their weights, check them",
    "poses": "find people and how they stand in pictures and videos",
    "segment": "say what each pixel of pictures and videos belongs to",
    "view": "show a picture or a video, through filters if you like",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code.

    Args:
        argv: the arguments after the program's name; those of the process if None.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "numpy" not in sys.modules:  # its threads take time to start, and no command needs them
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = _parser(arguments)
    _check(_command(arguments), parser)
    args = parser.parse_args(_prepared(arguments, parser))
    try:
        code: int = import_module(f"dala.cli.{args.command}").run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader (`| head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if args.debug:
            raise
        text = str(error) or type(error).__name__
        if not isinstance(error, dala.DalaError | OSError):  # ours say enough by themselves
            text = f"{type(error).__name__}: {text} (--debug shows where)"
        print(f"dala {args.command}: {text}", file=sys.stderr)
        return 2
    return code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the commands themselves do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. `{self.prog} --help` has examples.\n")


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="dala", description="A portable GPU stack for realtime media.")
    parser.add_argument("--version", action="version", version=f"dala {dala.__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        description = f"{text[0].upper()}{text[1:]}."
        command = commands.add_parser(name, help=text, description=description, allow_abbrev=False)
        # Without a default of its own, so that it does not undo a --debug before the command.
        command.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
        if name == _command(arguments):
            import_module(f"dala.cli.{name}").configure(command)
    return parser


def _check(name: str, parser: argparse.ArgumentParser) -> None:
    if name and name not in COMMANDS:
        from dala.errors import did_you_mean

        hint = did_you_mean(name, COMMANDS) or f"There are: {', '.join(COMMANDS)}."
        parser.exit(2, f"dala: there is no command {name!r}. {hint}\n")


def _command(arguments: list[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")


def _prepared(arguments: list[str], parser: argparse.ArgumentParser) -> list[str]:
    name = _command(arguments)
    prepare = (
        getattr(import_module(f"dala.cli.{name}"), "prepare", None) if name in COMMANDS else None
    )
    if prepare is None:
        return arguments
    at = arguments.index(name) + 1
    try:
        return [*arguments[:at], *prepare(arguments[at:])]
    except dala.DalaError as error:
        parser.exit(2, f"dala {name}: {error}\n")
