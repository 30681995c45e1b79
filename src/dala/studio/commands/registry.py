"""The registry of commands, and what a command gets."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.errors import ParameterError, did_you_mean
from dala.studio.cards.card import Card
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.document.tab import Tab
from dala.studio.message import Message
from dala.untrusted.place import NewFile

if TYPE_CHECKING:
    from dala.studio.session import StudioSession


class PageRequest(Message):
    """A message with the session that it changes."""

    def __init__(self, session: StudioSession, data: JsonObject) -> None:
        super().__init__(data)
        self.session = session

    @property
    def tab(self) -> Tab:
        """The active tab."""
        return self.session.tab(self.name)

    def card(self, kind: str | None = None) -> tuple[Tab, int, Card]:
        """Return the active tab, and the place and the card of it that the message names."""
        tab = self.tab
        number, card = tab.card(self.get("card"), self.name)
        if kind is not None and card.kind != kind:
            self.fail("card", f"the id of a {kind} card")
        return tab, number, card

    def target(self, usual: str) -> NewFile:
        """Return the file that ``path`` names, or the usual one, to write.

        Raises:
            ParameterError: it is outside of the folders; or it exists, the studio has neither
                opened nor made it, and ``replace`` is not true.
        """
        found = self.session.folders.target(self.get("path") or usual, self.name)
        if not self.flag("replace", False) and not self.session.owns(found):
            raise ParameterError(
                f"{self.name}: {found.name.name!r} exists, and is not of this studio. "
                "Choose another name, or say that it is replaced.",
                call=self.name,
                argument="replace",
            )
        return found


#: A command: it gets the message with its session, and returns what the reply has besides "ok".
Command: TypeAlias = "Callable[[PageRequest], JsonObject | None]"

_COMMANDS: Final[dict[str, Command]] = {}
#: The modules that declare commands.
_MODULES: Final = ("sources", "chain", "time", "scenes", "home")


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
