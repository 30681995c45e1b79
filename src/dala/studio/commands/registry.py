"""The registry of commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, TypeAlias

from dala.errors import ParameterError, did_you_mean
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.message import PageRequest as PageRequest

#: A command: it gets the message with its session, and returns what the reply has besides "ok".
Command: TypeAlias = "Callable[[PageRequest], JsonObject | None]"

_COMMANDS: Final[dict[str, Command]] = {}
#: The modules that declare commands.
_MODULES: Final = ("tabs", "chain", "scenes", "home")


def command(function: Command) -> Command:
    """Declare a function as the command of its name, which may end with an underscore.

    >>> @command
    ... def example_(request):
    ...     return {"seen": True}
    >>> find("example")(PageRequest(None, {}))
    {'seen': True}
    >>> _ = _COMMANDS.pop("example")
    """
    _COMMANDS[function.__name__.rstrip("_")] = function
    return function


def commands() -> dict[str, Command]:
    """Return every command by name.

    >>> "undo" in commands()
    True
    """
    for module in _MODULES:
        import_module(f"dala.studio.commands.{module}")
    return _COMMANDS


def find(name: str) -> Command:
    """Return a command.

    Raises:
        ParameterError: there is no such command.
    """
    known = commands()
    if name not in known:
        hint = did_you_mean(name, known) if name else ""
        raise ParameterError.invalid("message", "do", "the name of a command", name, hint)
    return known[name]
