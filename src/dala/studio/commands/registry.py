"""The registry of commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.errors import ParameterError, did_you_mean
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.message import Message

if TYPE_CHECKING:
    from dala.studio.session import StudioSession

#: A command: it gets the session and the message, and returns what the reply has besides "ok".
Command: TypeAlias = "Callable[[StudioSession, Message], JsonObject | None]"

_COMMANDS: Final[dict[str, Command]] = {}
#: The modules that declare commands.
_MODULES: Final = ("sources", "chain", "time", "scenes", "home")


def command(name: str) -> Callable[[Command], Command]:
    """Declare a function as a command.

    >>> @command("example")
    ... def example(session, message):
    ...     return {"seen": True}
    >>> find("example")(None, Message({}))
    {'seen': True}
    >>> _ = _COMMANDS.pop("example")
    """

    def declare(function: Command) -> Command:
        _COMMANDS[name] = function
        return function

    return declare


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
